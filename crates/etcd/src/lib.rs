//! The keys API of etcd's second version (`/v2/keys`), as etcd 3.4 answers it.
//!
//! Nothing here is kept anywhere, and nobody is spoken to: a [`tree::Tree`] says where nodes and events
//! are, a [`request::Request`] what somebody wants, [`change`] does it, and an [`event::Event`] or an
//! [`error::Error`] says in JSON what came of it. Paths are absolute, clean and of any bytes: the root is
//! `/`, and no other path ends in a slash.

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

/// The version of etcd whose behaviour this is: what clients are told when they ask.
pub const ETCD_VERSION: &str = "3.4.23";

/// The version of a cluster of those.
pub const CLUSTER_VERSION: &str = "3.4.0";
