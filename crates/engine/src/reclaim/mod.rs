//! What gives memory back: removing expired keys, and evicting keys to make room.
//!
//! `memory` keeps the count, `eviction` makes room, `candidates` says which key goes next, and
//! [`expire`] removes expired keys that no command looks at.

pub(crate) mod candidates;
pub(crate) mod eviction;
pub mod expire;
pub(crate) mod memory;
