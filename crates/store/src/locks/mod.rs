//! How threads share data safely: gates, locks, and which script waits for which slot.

pub mod gate;
pub mod reserve;
pub mod sync;
pub(crate) mod waits;
