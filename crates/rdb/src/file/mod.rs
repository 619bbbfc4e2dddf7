//! The RDB file: what SAVE writes, what a server reads at its start, and the base of an append-only
//! file.
//!
//! ```text
//! REDIS0011            magic and version
//! [name and text]*     who wrote it, and when
//! [library]*           functions
//! database, sizes      for each that is not empty, then for each of its keys:
//!   [content type] [expiry] [idle time | frequency] type key value
//! end, CRC-64
//! ```
//!
//! [`FileWriter`] writes one. Values may also come in pieces, so that commands can go on while a
//! large collection is written.
//!
//! [`FileReader`] reads one, of any version up to [`NEWEST_REDIS`] or [`NEWEST_VALKEY`]. It only
//! finds where each value ends, and returns keys and values in [`EntryBatch`]es of raw bytes, which
//! other threads may decode:
//!
//! ```text
//! one thread:     for item in FileReader::open(file)?  ->  Item::Entries(batch)  -> queue
//! some threads:   for raw in batch.entries()  ->  raw.decode(..)  ->  the store
//! ```

mod batch;
mod error;
mod output;
mod reader;
mod source;
mod writer;

pub use batch::{DecodeOptions, Entries, Entry, EntryBatch, RawEntry};
pub use error::FileError;
pub use reader::{Checksum, FileReader, Function, Item, NEWEST_REDIS, NEWEST_VALKEY};
pub use writer::{Collection, FileWriter, Finished, Head, Preamble, StreamPlace, WriteOptions};

/// The name of the text that gives the content type of the keys after it. Only Dunlin knows it.
pub const CONTENT_TYPE: &str = "content-type";

/// The usage of a key, for eviction. Servers write one or the other, by their policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// Seconds since its last use.
    IdleSeconds(u64),
    /// The logarithmic counter of uses.
    Frequency(u8),
}
