//! The RDB format over byte readers and writers.
//!
//! RDB is Redis's binary form of a value: a snapshot file is a header, values and a footer, and the
//! payload of DUMP is one value with a footer of its own. The format is little more than two ideas,
//! strings with a length that packs itself, and values that are sequences of strings. Reading order:
//! `opcodes` (the numbers), [`mod@read`] and [`mod@write`] (lengths and strings), `value` (the types),
//! [`dump`](mod@dump) (the payload).
//!
//! We write what Redis 7.0 writes and read all that it reads, back to the first version's encodings.
//! The difference lies in what we believe: every byte from outside is checked, whatever the settings
//! say, and nothing is allocated because a length announces it: memory grows with the bytes that
//! really came.

pub mod dump;
mod opcodes;
pub mod read;
mod value;
pub mod write;
mod ziplist;
mod zipmap;

pub use dump::{RestoreError, dump, restore};
pub use read::{ReadError, Reader};
pub use value::ValueLimits;
pub use write::Writer;

/// The version of the format that we write, and the newest that we read: that of Redis 7.0.
pub const VERSION: u16 = 10;
