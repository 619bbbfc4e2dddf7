//! What the engine knows of data on disk. The files themselves belong to the host: see
//! [`crate::engine::Storage`].
//!
//! | file | what it answers |
//! |---|---|
//! | [`journal`], [`batch`] | what is the stream of writes, as a trait? |
//! | [`backlog`] | which part of the stream is kept for followers? |
//! | [`durability`], `offsets` | what does a reply depend on, and what stops writes? |
//! | [`saving`], [`append_only`] | what is the state of the files? |
//! | [`loading`], `progress` | how is data loaded, and how far is that? |

pub mod append_only;
pub mod backlog;
pub mod batch;
pub mod durability;
pub mod journal;
pub mod loading;
pub(crate) mod offsets;
pub(crate) mod progress;
pub mod saving;
