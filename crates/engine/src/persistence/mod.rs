//! What the engine knows of data that outlives it. The files themselves are the host's: see
//! [`crate::engine::Storage`].
//!
//! | file | what it answers |
//! |---|---|
//! | [`journal`], [`batch`] | what is the stream of writes, as a trait? |
//! | [`backlog`] | what is kept of the stream for those who follow it? |
//! | [`durability`], `offsets` | what does a reply depend on, and what stands in the way of writes? |
//! | [`saving`], [`append_only`] | how do the files stand? |
//! | [`loading`], `progress` | how does data get back, and how far is that? |

pub mod append_only;
pub mod backlog;
pub mod batch;
pub mod durability;
pub mod journal;
pub mod loading;
pub(crate) mod offsets;
pub(crate) mod progress;
pub mod saving;
