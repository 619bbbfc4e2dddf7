//! Clients that wait for a key, and clients that watch one: both are attached to the key's slot.

pub(crate) mod blocking;
pub(crate) mod left_behind;
pub mod waiting;
pub mod watching;
