//! The RDB format.
//!
//! RDB is Redis's binary form of a value: a snapshot file is a header, values and a footer, and the
//! payload of DUMP is one value with a footer of its own. The format is little more than two ideas,
//! strings with a length that packs itself, and values that are sequences of strings. Reading
//! order: `opcodes` (the numbers) and [`Layout`], `read` and [`mod@write`] (lengths and strings),
//! `decode` and `value` (the types, in both directions), then their uses: [`dump`](mod@dump) (the
//! payload) and [`mod@file`] (the snapshot).
//!
//! We write what Redis 8.0 writes and read what any version of Redis and Valkey writes, back to the
//! encodings of the first one. Nothing from outside is trusted: every byte is checked, under all
//! settings. A length alone allocates nothing: memory grows with the bytes that have arrived.

mod decode;
pub mod dump;
mod extent;
pub mod file;
mod layout;
mod long_text;
mod module;
mod opcodes;
mod read;
mod stream;
mod value;
pub mod write;
mod ziplist;
mod zipmap;

pub use dump::{
    DUMP_VERSION, RestoreError, dump, dump_for_others, dump_functions, restore, restore_functions,
    serialize,
};
pub use layout::{Dialect, Layout};
pub use read::ReadError;
pub use value::ValueLimits;
pub use write::Writer;

/// The default version of files without hash fields that expire: that of Redis 7.2 and Valkey 7.2.
pub const FILE_VERSION: u16 = 11;

/// The version of files with hash fields that expire: that of Redis 7.4 and later.
pub const FILE_VERSION_WITH_EXPIRING_FIELDS: u16 = 12;

/// The version of Valkey's files with hash fields that expire: that of Valkey 9. Redis loads none.
pub const FILE_VERSION_OF_VALKEY: u16 = 80;
