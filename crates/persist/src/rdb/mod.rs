//! The RDB file: who asks for it, and when. `persist::snapshot` writes its contents.
//!
//! It may import the other files of `persist`, but not `aof`.

pub mod saver;
