//! What gives memory back: keys whose time is over, and keys that have to go for others.

pub(crate) mod eviction;
pub mod expire;
