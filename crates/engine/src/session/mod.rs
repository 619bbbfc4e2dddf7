//! Who is connected, and what each waits for.
//!
//! | file | what it answers |
//! |---|---|
//! | [`client`] | what do all threads see of a client? |
//! | `state` | what does its own worker see, its session? |
//! | `user` | who does it act for? |
//! | [`pubsub`] | which client listens to which channel, and how do messages get there? |
//! | `patterns` | which patterns may match a channel? |
//! | [`followers`] | which client listens to changes of which keys? |
//! | [`awaited`] | what does a client wait for, and which thread ends the wait? |
//! | [`choice`] | how durable are its writes, and how new its reads, if it has chosen? |
//! | [`sync`] | when are the writes durable for which a client waits? |
//! | [`replicas`] | what do replicas of this server say of themselves, and how far are they? |
//! | [`failover`] | which of them takes over, and when? |
//! | [`attachment`], `watcher` | what do clients leave at a slot? |
//! | `left_behind` | what have they left at slots that another thread had locked? |
//! | [`leaving`] | how far is a move of slots to another server? |
//! | [`slot_moves`] | which slots are on their way to another server, or from one? |
//! | `killing` | when are the clients closed that CLIENT KILL has killed? |

pub mod attachment;
pub mod awaited;
pub mod choice;
pub mod client;
pub mod failover;
pub mod followers;
pub(crate) mod killing;
pub mod leaving;
pub(crate) mod left_behind;
mod patterns;
pub mod pubsub;
pub mod replicas;
pub mod slot_moves;
mod state;
pub mod sync;
pub(crate) mod user;
pub mod watcher;

pub use state::{KeysSoFar, ScriptNeeds};
pub use state::{QueuedCommand, ReplyMode, Session, Subscriptions, Transaction};
pub use user::User;
