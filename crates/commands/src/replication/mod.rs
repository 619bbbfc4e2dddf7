//! The commands of replication.
//!
//! | file | what it answers |
//! |---|---|
//! | [`primary`] | on a replica: whom does it follow, and how is that one's data taken in? |
//! | [`replicas`] | on a primary: what do those say that are about to follow it? |
//! | [`failover`] | how does a primary hand over to one of its replicas? |

pub(crate) mod failover;
pub(crate) mod primary;
pub(crate) mod replicas;
