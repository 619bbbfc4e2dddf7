//! Who is connected: a client as all threads see it, its session as its own worker does, and the
//! channels that it listens to.

pub mod client;
pub mod pubsub;
mod state;

pub(crate) use state::KeysSoFar;
pub use state::{QueuedCommand, ReplyMode, Session, Subscriptions, Transaction};
