//! A disk that fails when a test says so, and otherwise is the real one.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::{Disk, DiskFile, RealDisk, SyncElsewhere};

/// The operations that can fail.
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
    /// How many operations have failed.
    failed: usize,
    /// The operations that still succeed, and the error after them, for good.
    failing: HashMap<Operation, (usize, i32)>,
    /// The operations that still succeed before the machine stops.
    left: Option<usize>,
    write_at_most: Option<usize>,
    write_takes: Duration,
    stalls_writes: bool,
    /// Writes that wait now.
    stalled_writes: usize,
    stalls_syncs: bool,
    /// Syncs wait of files whose names contain one of these.
    stalls_syncs_of: &'static [&'static str],
    begun_syncs: usize,
    /// Which file a name means, of those that were opened for writing.
    names: HashMap<PathBuf, usize>,
    /// How many bytes of each such file are durable.
    durable: Vec<u64>,
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

    /// Makes every operation fail after this many more of any kind, as if the process had ended
    /// there, until [`FaultyDisk::heal`].
    pub fn stop_after(&self, operations: usize) {
        self.0.lock().left = Some(operations);
    }

    /// Ends all failures.
    pub fn heal(&self) {
        let mut faults = self.0.lock();
        faults.failing.clear();
        faults.left = None;
    }

    /// Makes each write take at most this many bytes.
    pub fn write_at_most(&self, bytes: usize) {
        self.0.lock().write_at_most = Some(bytes);
    }

    /// Makes each write take so long.
    pub fn write_takes(&self, duration: Duration) {
        self.0.lock().write_takes = duration;
    }

    /// Lets writes wait until this is undone.
    pub fn stall_writes(&self, stall: bool) {
        self.0.lock().stalls_writes = stall;
    }

    /// How many writes wait.
    pub fn stalled_writes(&self) -> usize {
        self.0.lock().stalled_writes
    }

    fn begin_write(&self) {
        self.0.lock().stalled_writes += 1;
        while self.0.lock().stalls_writes {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.0.lock().stalled_writes -= 1;
    }

    /// Lets syncs of files wait until this is undone.
    pub fn stall_syncs(&self, stall: bool) {
        self.0.lock().stalls_syncs = stall;
    }

    /// How many syncs of files have begun.
    pub fn begun_syncs(&self) -> usize {
        self.0.lock().begun_syncs
    }

    /// Makes syncs wait of files whose names contain one of these, until other ones are given.
    pub fn stall_syncs_of(&self, parts: &'static [&'static str]) {
        self.0.lock().stalls_syncs_of = parts;
    }

    fn begin_sync(&self, name: &str) {
        self.0.lock().begun_syncs += 1;
        let is_stalled = || {
            let faults = self.0.lock();
            faults.stalls_syncs || faults.stalls_syncs_of.iter().any(|part| name.contains(part))
        };
        while is_stalled() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The operations that have succeeded, in order.
    pub fn operations(&self) -> Vec<Operation> {
        self.0.lock().done.clone()
    }

    /// How often an operation has succeeded.
    pub fn count(&self, operation: Operation) -> usize {
        self.0.lock().done.iter().filter(|done| **done == operation).count()
    }

    /// How many operations have failed.
    pub fn failures(&self) -> usize {
        self.0.lock().failed
    }

    fn attempt(&self, operation: Operation) -> io::Result<()> {
        let mut faults = self.0.lock();
        match &mut faults.left {
            Some(0) => {
                faults.failed += 1;
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        if let Some((after, errno)) = faults.failing.get_mut(&operation) {
            match after.checked_sub(1) {
                Some(left) => *after = left,
                None => {
                    let error = io::Error::from_raw_os_error(*errno);
                    faults.failed += 1;
                    return Err(error);
                }
            }
        }
        faults.done.push(operation);
        Ok(())
    }

    /// Copies a directory as it would be found after a power failure at this instant: the synced
    /// part of each file. Names are assumed to be durable.
    pub fn survivors(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.survivors_with(from, to, |_| false)
    }

    /// The same, with all that was written into some files.
    pub fn survivors_with(
        &self,
        from: &Path,
        to: &Path,
        is_whole: impl Fn(&str) -> bool,
    ) -> io::Result<()> {
        RealDisk.make_directory(to)?;
        for name in RealDisk.list(from)? {
            let path = from.join(&name);
            let mut content = RealDisk.read(&path)?;
            let faults = self.0.lock();
            let is_whole = is_whole(&name.to_string_lossy());
            if let Some(file) = faults.names.get(&path).filter(|_| !is_whole) {
                content.truncate(usize::try_from(faults.durable[*file]).unwrap());
            }
            std::fs::write(to.join(&name), content)?;
        }
        Ok(())
    }

    fn wrap(
        &self,
        path: &Path,
        length: u64,
        file: io::Result<Box<dyn DiskFile>>,
    ) -> io::Result<Box<dyn DiskFile>> {
        let file = file?;
        let mut faults = self.0.lock();
        let number = faults.durable.len();
        faults.durable.push(length);
        faults.names.insert(path.to_owned(), number);
        let name = path.to_string_lossy().into_owned();
        Ok(Box::new(FaultyFile { disk: self.clone(), name, number, length, file }))
    }
}

impl Disk for FaultyDisk {
    fn create(&self, file: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.attempt(Operation::Create)?;
        self.wrap(file, 0, RealDisk.create(file))
    }

    fn append(&self, file: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.attempt(Operation::Create)?;
        let length = RealDisk.length(file)?.unwrap_or(0);
        self.wrap(file, length, RealDisk.append(file))
    }

    fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        RealDisk.read(file)
    }

    fn length(&self, file: &Path) -> io::Result<Option<u64>> {
        RealDisk.length(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.attempt(Operation::Rename)?;
        RealDisk.rename(from, to)?;
        let mut faults = self.0.lock();
        match faults.names.remove(from) {
            Some(file) => faults.names.insert(to.to_owned(), file),
            None => faults.names.remove(to),
        };
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.link(from, to)
    }

    fn uncache(&self, file: &Path) {
        RealDisk.uncache(file);
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
    /// Its name when it was opened.
    name: String,
    number: usize,
    length: u64,
    file: Box<dyn DiskFile>,
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.begin_write();
        self.disk.attempt(Operation::Write)?;
        let (most, takes) = {
            let faults = self.disk.0.lock();
            (faults.write_at_most.unwrap_or(bytes.len()), faults.write_takes)
        };
        std::thread::sleep(takes);
        let written = self.file.write(&bytes[..bytes.len().min(most)])?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl DiskFile for FaultyFile {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.begin_sync(&self.name);
        self.disk.attempt(Operation::Sync)?;
        self.file.sync()?;
        self.disk.0.lock().durable[self.number] = self.length;
        Ok(())
    }

    fn sync_elsewhere(&self) -> io::Result<SyncElsewhere> {
        let (disk, number, length) = (self.disk.clone(), self.number, self.length);
        let sync = self.file.sync_elsewhere()?;
        let name = self.name.clone();
        Ok(Box::new(move || {
            disk.begin_sync(&name);
            disk.attempt(Operation::Sync)?;
            sync()?;
            let durable = &mut disk.0.lock().durable[number];
            *durable = length.max(*durable);
            Ok(())
        }))
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.disk.attempt(Operation::Truncate)?;
        self.file.truncate(length)?;
        self.length = length;
        let durable = &mut self.disk.0.lock().durable[self.number];
        *durable = length.min(*durable);
        Ok(())
    }
}
