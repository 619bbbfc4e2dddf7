//! Connected clients.
//!
//! | file | what it answers |
//! |---|---|
//! | [`client`] | what do all threads see of a client? |
//! | `state` | what does its own worker see, its session? |
//! | [`pubsub`], `publishing` | which client listens to which channel, and how do messages get there? |
//! | `describe` | what does CLIENT LIST show, and how much memory does a client take? |
//! | `eviction` | which client is closed when clients take too much? |
//! | `killing` | when is a client gone that CLIENT KILL has killed? |
//! | `ending` | what is done when a connection ends? |

pub mod client;
mod describe;
mod ending;
mod eviction;
pub(crate) mod killing;
mod publishing;
pub mod pubsub;
mod state;

pub use eviction::memory_limit;
pub(crate) use state::{KeysSoFar, ScriptNeeds};
pub use state::{QueuedCommand, ReplyMode, Session, Subscriptions, Transaction};
