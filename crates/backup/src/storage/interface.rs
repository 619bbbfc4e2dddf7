//! What each kind of store can do.

use std::io::{Read, Write};

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

/// All of a small file.
pub(crate) fn read_all(store: &dyn Source, file: &str) -> Result<Option<Vec<u8>>, String> {
    let Some(mut reader) = store.read(file)? else { return Ok(None) };
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|error| format!("{file}: {error}"))?;
    Ok(Some(bytes))
}

/// A file that the manifest names.
pub(crate) fn read_listed(store: &dyn Source, file: &str) -> Result<Box<dyn Read + Send>, String> {
    store.read(file)?.ok_or_else(|| format!("{file} is missing in {}", store.name()))
}
