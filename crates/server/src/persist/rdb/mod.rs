//! The RDB file: who asks for it, and when. What is in it is the work of `persist::snapshot`.
//!
//! It may import the other files of `persist`, but not `aof`.

pub mod saver;
