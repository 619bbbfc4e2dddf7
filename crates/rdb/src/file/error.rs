//! Why a file could not be read, and where.

use crate::read::ReadError;

/// Longest part of a key that an error shows, in bytes.
const SHOWN_KEY_BYTES: usize = 100;

/// Why a file could not be read, and where.
#[derive(Debug, thiserror::Error)]
#[error("offset {offset}, {reading}: {cause}")]
pub struct FileError {
    /// Bytes of the file before the part that could not be read.
    pub offset: u64,
    /// The part that was being read.
    pub reading: String,
    /// The error.
    #[source]
    pub cause: ReadError,
}

/// A key as errors show it.
pub(super) fn shown_key(key: &[u8]) -> String {
    match key.split_at_checked(SHOWN_KEY_BYTES) {
        Some((start, rest)) if !rest.is_empty() => format!("key \"{}\"..", start.escape_ascii()),
        _ => format!("key \"{}\"", key.escape_ascii()),
    }
}
