//! Files that are synced while they grow.

use std::io::{self, Write};

use super::DiskFile;

/// Bytes that are written between two syncs of an unfinished file, so that the last sync has little
/// left to do, and no sync keeps the processor for long.
const SYNC_EVERY: usize = 1 << 20;

/// A file that is synced now and then while it grows.
pub struct Syncing<'f> {
    file: &'f mut dyn DiskFile,
    unsynced: Option<usize>,
}

impl<'f> Syncing<'f> {
    /// Writes to `file`, and syncs it now and then if asked to.
    pub fn new(file: &'f mut dyn DiskFile, incrementally: bool) -> Syncing<'f> {
        Syncing { file, unsynced: incrementally.then_some(0) }
    }
}

impl Write for Syncing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        if let Some(unsynced) = &mut self.unsynced {
            *unsynced += written;
            if *unsynced >= SYNC_EVERY {
                *unsynced = 0;
                self.file.sync()?;
            }
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
