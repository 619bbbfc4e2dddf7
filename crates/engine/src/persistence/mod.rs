//! What the engine knows of data that outlives it. The files themselves are the host's: see
//! [`crate::engine::Storage`].
//!
//! | file | what it answers |
//! |---|---|
//! | [`journal`] | what is the stream of writes, as a trait? |
//! | [`durability`], `offsets` | what does a reply depend on, and what stands in the way of writes? |
//! | [`saving`], [`append_only`] | how do the files stand? |
//! | [`loading`], `progress` | how does data get back, and how far is that? |

pub mod append_only;
pub mod durability;
pub mod journal;
pub mod loading;
pub(crate) mod offsets;
pub(crate) mod progress;
pub mod saving;
