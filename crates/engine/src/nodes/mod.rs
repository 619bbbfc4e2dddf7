//! The tree of nodes that `/v2/keys` shows: where it is stored, and how it is watched.
//!
//! The crate `etcd` defines what nodes, requests and events mean. This module stores the tree in
//! the keyspace, in database 0, under keys that all begin with `{etcd}` and so share one slot:
//!
//! - `{etcd}/a/b/` is a hash of the children of the directory `/a/b`. A field is a child's name,
//!   its value the text of the node ([`etcd::node::Node::text`]). A directory without children has
//!   no key.
//! - `{etcd}:events` is a stream of the last events. The first number of an entry's id is the
//!   event's index, and the last id that was ever given is the index of the tree.
//! - `{etcd}:expiries` is a sorted set of the nodes that expire, by the time when they do.
//!
//! A request holds the slot, so it is one step for all others, and its effects are one transaction
//! in the journal. Other commands that change these keys change the tree without an event. An entry
//! or field that does not have the form of a node or an event is then ignored, and a node that
//! cannot be reached from the root does not exist.

pub mod hub;
pub mod kept;
