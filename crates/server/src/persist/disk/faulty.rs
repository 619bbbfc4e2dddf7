//! A disk that fails when a test says so, and otherwise is the real one.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::{Disk, DiskFile, RealDisk};

/// What can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Opening a file for writing.
    Create,
    /// Writing.
    Write,
    /// Syncing a file.
    Sync,
    /// Cutting off the end of a file.
    Truncate,
    /// Renaming.
    Rename,
    /// Removing.
    Remove,
    /// Syncing a directory.
    SyncDirectory,
}

#[derive(Default)]
struct Faults {
    done: Vec<Operation>,
    /// The operations that still succeed, and the error after them, for good.
    failing: HashMap<Operation, (usize, i32)>,
    write_at_most: Option<usize>,
    sync_takes: Duration,
}

/// See the module's text. Copies share their faults.
#[derive(Clone, Default)]
pub struct FaultyDisk(Arc<Mutex<Faults>>);

impl FaultyDisk {
    /// A disk without faults.
    pub fn new() -> FaultyDisk {
        FaultyDisk::default()
    }

    /// Makes an operation fail, after some more that succeed, until [`FaultyDisk::heal`].
    pub fn fail(&self, operation: Operation, after: usize, errno: i32) {
        self.0.lock().failing.insert(operation, (after, errno));
    }

    /// Ends all failures.
    pub fn heal(&self) {
        self.0.lock().failing.clear();
    }

    /// Lets each write take so many bytes and no more.
    pub fn write_at_most(&self, bytes: usize) {
        self.0.lock().write_at_most = Some(bytes);
    }

    /// Makes each sync of a file take so long.
    pub fn sync_takes(&self, duration: Duration) {
        self.0.lock().sync_takes = duration;
    }

    /// What has succeeded, in order.
    pub fn operations(&self) -> Vec<Operation> {
        self.0.lock().done.clone()
    }

    /// How often an operation has succeeded.
    pub fn count(&self, operation: Operation) -> usize {
        self.0.lock().done.iter().filter(|done| **done == operation).count()
    }

    fn attempt(&self, operation: Operation) -> io::Result<()> {
        let mut faults = self.0.lock();
        if let Some((after, errno)) = faults.failing.get_mut(&operation) {
            match after.checked_sub(1) {
                Some(left) => *after = left,
                None => return Err(io::Error::from_raw_os_error(*errno)),
            }
        }
        faults.done.push(operation);
        Ok(())
    }

    fn wrap(&self, file: io::Result<Box<dyn DiskFile>>) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(FaultyFile { disk: self.clone(), file: file? }))
    }
}

impl Disk for FaultyDisk {
    fn create(&self, file: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.attempt(Operation::Create)?;
        self.wrap(RealDisk.create(file))
    }

    fn append(&self, file: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.attempt(Operation::Create)?;
        self.wrap(RealDisk.append(file))
    }

    fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        RealDisk.read(file)
    }

    fn length(&self, file: &Path) -> io::Result<Option<u64>> {
        RealDisk.length(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.attempt(Operation::Rename)?;
        RealDisk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.link(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        self.attempt(Operation::Remove)?;
        RealDisk.remove(file)
    }

    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        RealDisk.make_directory(directory)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        RealDisk.list(directory)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.attempt(Operation::SyncDirectory)?;
        RealDisk.sync_directory(directory)
    }
}

struct FaultyFile {
    disk: FaultyDisk,
    file: Box<dyn DiskFile>,
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.attempt(Operation::Write)?;
        let most = self.disk.0.lock().write_at_most.unwrap_or(bytes.len());
        self.file.write(&bytes[..bytes.len().min(most)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl DiskFile for FaultyFile {
    fn sync(&mut self) -> io::Result<()> {
        let duration = self.disk.0.lock().sync_takes;
        std::thread::sleep(duration);
        self.disk.attempt(Operation::Sync)?;
        self.file.sync()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.disk.attempt(Operation::Truncate)?;
        self.file.truncate(length)
    }
}
