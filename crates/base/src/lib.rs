//! Small things that several crates share: numbers, globs, checksums, compression, bounds.
//!
//! Nothing here knows of keys, connections or files. Each module answers one question that several
//! crates ask. If clients can see the answer, it is that of Redis.
//!
//! | module | question |
//! |---|---|
//! | [`bytes`] | are these short strings the same? |
//! | [`num`] | how is a number read and printed? |
//! | [`glob`] | does this pattern match that string? |
//! | [`crc`] | which slot does a key belong to; is this file intact? |
//! | [`lzf`] | how are strings compressed in RDB files? |
//! | [`hash`] | where in a table does a key live? |
//! | [`clock`] | what time is it, and how long did that take? |
//! | [`time_slice`] | how soon does a thread run that is woken? |
//! | [`rng`] | what is a random number? |
//! | [`limits`] | how much of anything is too much? |
//! | [`size`] | how many bytes is "64mb"? |
//! | [`size_class`] | how many bytes does the allocator set aside? |
//! | [`passing`] | which memory is not data, and becomes free by itself? |

pub mod bytes;
pub mod clock;
pub mod crc;
pub mod glob;
pub mod hash;
pub mod json;
pub mod limits;
pub mod lzf;
pub mod num;
pub mod passing;
pub mod rng;
pub mod size;
pub mod size_class;
pub mod time_slice;
