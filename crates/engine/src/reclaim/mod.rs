//! What gives memory back: keys whose time is over, and keys that have to go for others.
//!
//! `memory` keeps the count, `eviction` makes room, `candidates` says which key goes next, and
//! [`expire`] looks for keys that nobody asks for.

pub(crate) mod candidates;
pub(crate) mod eviction;
pub mod expire;
pub(crate) mod memory;
