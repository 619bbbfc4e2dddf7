//! `/v2` of a cluster, as clients of etcd's first interface use it: three members of which one may
//! go, and a tree that moves to another shard.

mod clients;
mod events;
mod members;
mod nodes;
