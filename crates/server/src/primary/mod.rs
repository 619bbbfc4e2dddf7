//! The replica's side: the thread that follows the primary of this server, while it is a replica.
//! Those who follow this server are served elsewhere (`crate::net`).
//!
//! It connects, takes in all data or goes on where it was, and applies the stream of writes: one
//! thread does all of that, and workers serve reads meanwhile. When the link ends, it says why in
//! the log, waits, and begins again. The protocol is in the crate `replication`.
//!
//! | file | what it answers |
//! |---|---|
//! | [`link`] | how is a link made, and what comes after its end? |
//! | [`term`] | for how long is a link wanted, and with what does it work? |
//! | `wire` | how do bytes of the primary arrive, or fail to? |
//! | `successor` | does the one lead that FAILOVER has asked to? |
//! | `sync` | how is all data of the primary taken in? |
//! | `apply` | how are its writes applied? |
//! | `acknowledge` | how does it hear how far the replica is? |
//! | `unwritten` | which of them are not in the journal yet, and how is one tried again? |

mod acknowledge;
mod apply;
pub mod handing_over;
mod link;
mod successor;
mod sync;
pub mod term;
mod unwritten;
mod wire;

pub use link::ReplicaThread;
