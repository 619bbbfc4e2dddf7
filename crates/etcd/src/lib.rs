//! The keys API of etcd's second version (`/v2/keys`), as etcd 3.4 answers it.
//!
//! This crate stores nothing and does not communicate. A [`tree::Tree`] gives access to nodes and
//! events, a [`request::Request`] is a client's request, [`change`] carries it out, and an
//! [`event::Event`] or an [`error::Error`] describes the result in JSON. Paths are absolute, clean
//! and of any bytes: the root is `/`, and no other path ends in a slash.

pub mod change;
pub mod date;
pub mod error;
pub mod event;
pub mod form;
pub mod json;
pub mod listing;
pub mod media;
pub mod member;
pub mod node;
pub mod path;
pub mod request;
mod syntax;
pub mod tree;
pub mod watch;

#[cfg(test)]
mod memory;
#[cfg(test)]
mod tests;

/// The version of etcd that Dunlin imitates: the answer to clients that ask.
pub const ETCD_VERSION: &str = "3.4.23";

/// The version of a cluster of those.
pub const CLUSTER_VERSION: &str = "3.4.0";
