//! What each kind of store can do.

use std::io::{self, Read, Write};

use crate::manifest::StoredFile;

/// A file that is being written.
pub(crate) trait Upload: Write + Send {
    /// The file is complete, and durable before this returns. Without this call nothing is left of
    /// it.
    fn finish(self: Box<Self>) -> Result<(), String>;
}

/// What files are read from. Errors are texts for the user, which name the file.
pub(crate) trait Source: Send + Sync {
    /// What the user calls it.
    fn name(&self) -> String;

    /// A file from its beginning; none if there is no such file.
    fn read(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, String>;
}

/// A store.
pub(crate) trait Store: Source {
    /// Makes sure that it can be written to, and locks it for as long as the store lives. A lock
    /// may run out or get lost while its owner stands still, who writes when it goes on.
    fn prepare(&self) -> Result<(), String>;

    /// Begins a file that may be large.
    fn begin(&self, file: &str) -> Result<Box<dyn Upload>, String>;

    /// Writes a small file, or replaces it, in one step: readers find the old one or the new one.
    fn put(&self, file: &str, bytes: &[u8]) -> Result<(), String>;

    /// Writes a small file as `put` does, if it is `known` still: what this program has read or
    /// written last, or no file. That is an error otherwise.
    fn replace(&self, file: &str, known: Option<&[u8]>, bytes: &[u8]) -> Result<(), String>;

    /// Removes a file. It is no error if it is gone.
    fn remove(&self, file: &str) -> Result<(), String>;

    /// The names of all files, whole and begun.
    fn files(&self) -> Result<Vec<String>, String>;
}

/// That a file is not what this program knows of it.
pub(super) fn has_changed(store: &str) -> String {
    format!("{store}: another backup has written there meanwhile")
}

/// All of a small file. It is an error if that is more than `most` bytes.
pub(crate) fn read_all(
    store: &dyn Source,
    file: &str,
    most: u64,
) -> Result<Option<Vec<u8>>, String> {
    let Some(mut reader) = store.read(file)? else { return Ok(None) };
    read_at_most(&mut reader, most).map(Some).map_err(|error| format!("{file}: {error}"))
}

/// Reads to the end, which a server that cannot be believed may never give.
pub(super) fn read_at_most(reader: &mut dyn Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it has more than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// A file that the manifest names, up to the first byte that it should not have.
pub(crate) fn read_listed(store: &dyn Source, file: &StoredFile) -> Result<impl Read, String> {
    let StoredFile { name, bytes, .. } = file;
    let reader = store.read(name)?;
    let reader = reader.ok_or_else(|| format!("{name} is missing in {}", store.name()))?;
    Ok(reader.take(bytes.saturating_add(1)))
}
