//! What gives memory back: removing expired keys, and evicting keys to make room.
//!
//! `eviction` makes room, [`expire`] removes expired keys that no command looks at, and `nodes`
//! expired nodes of `/v2/keys`. [`slots`] deletes keys of slots that other servers have. `overview`
//! says what takes the memory.

pub mod eviction;
pub mod expire;
pub(crate) mod nodes;
pub mod overview;
pub mod slots;
