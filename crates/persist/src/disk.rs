//! The disk: what the process does to files that must survive it.
//!
//! All of it goes through the trait [`Disk`], so that tests can make the third write or the second
//! sync fail and look at the result ([`faulty`]). Reading large files does not go through it: a
//! failing read is an error of one load, and changes nothing.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Advice, fadvise};

#[cfg(test)]
pub mod faulty;
pub mod syncing;

/// The beginning of the name of a file that is not complete yet. Redis uses the same.
pub const TEMPORARY_PREFIX: &str = "temp-";

/// Bytes of a file that the kernel is asked to forget in one go.
const UNCACHED_AT_ONCE: u64 = 1 << 20;
/// The rest after each.
const UNCACHING_REST: Duration = Duration::from_micros(50);

/// Operations on files. The errors are the system's.
pub trait Disk: Send + Sync {
    /// Opens a file for writing, empty. Creates it if it does not exist.
    ///
    /// # Errors
    /// The system's.
    fn create(&self, file: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file for appending. Creates it if it does not exist.
    ///
    /// # Errors
    /// The system's.
    fn append(&self, file: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Reads a whole file, which should be small.
    ///
    /// # Errors
    /// The system's.
    fn read(&self, file: &Path) -> io::Result<Vec<u8>>;

    /// The length of a file in bytes; `None` if there is none.
    ///
    /// # Errors
    /// The system's.
    fn length(&self, file: &Path) -> io::Result<Option<u64>>;

    /// Gives a file another name, and replaces the file that has it.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name, which no file may have.
    ///
    /// # Errors
    /// The system's.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the kernel forget, piece by piece, its cached pages of a durable file that is about to
    /// be removed or replaced. Otherwise the kernel would forget all of them at once, which takes
    /// the processor for as long as a request may take. Does nothing if that is not possible.
    fn uncache(&self, file: &Path);

    /// Removes a file.
    ///
    /// # Errors
    /// The system's.
    fn remove(&self, file: &Path) -> io::Result<()>;

    /// Makes a directory, unless it is there.
    ///
    /// # Errors
    /// The system's.
    fn make_directory(&self, directory: &Path) -> io::Result<()>;

    /// The names in a directory, in no particular order.
    ///
    /// # Errors
    /// The system's.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// The system's.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
}

/// Replaces a file by what `write` writes, all or nothing, also if the machine stops. Only after
/// [`Disk::sync_directory`] is it certain which of the two survives. It is written to `temporary`
/// in the same directory.
///
/// # Errors
/// The system's, or those of `write`; the old file is untouched then.
pub fn replace<T>(
    disk: &dyn Disk,
    file: &Path,
    temporary: &Path,
    write: impl FnOnce(&mut dyn DiskFile) -> io::Result<T>,
) -> io::Result<T> {
    let written = disk.create(temporary).and_then(|mut output| {
        let written = write(&mut *output)?;
        output.sync()?;
        Ok(written)
    });
    let replaced = written.and_then(|written| {
        disk.rename(temporary, file)?;
        Ok(written)
    });
    if replaced.is_err() {
        // The rest of the attempt is of no use; the first error is the one that matters.
        let _ = disk.remove(temporary);
    }
    replaced
}

/// The name that a file has while it is written, before it takes this place.
pub fn temporary_of(file: &Path) -> PathBuf {
    let mut name = OsString::from(TEMPORARY_PREFIX);
    name.push(file.file_name().unwrap_or_default());
    file.with_file_name(name)
}

/// The longest name of a file, in bytes, on nearly all file systems.
const NAME_MAX: usize = 255;
/// What names of files that lie beside another one add to its name, in bytes, at most.
const ADDED_MAX: usize = "temp-emptied-4294967295-".len();

/// The name of a file as the names of files beside it contain it: if nothing could be added to the
/// name, its beginning and a checksum of the whole. The short name of a short name is the same.
pub fn short_name(file: &Path) -> Cow<'_, OsStr> {
    const SUM: usize = "-0123456789abcdef".len();
    let name = file.file_name().unwrap_or_default();
    let bytes = name.as_bytes();
    if bytes.len() <= NAME_MAX - ADDED_MAX {
        return Cow::Borrowed(name);
    }
    // Some file systems want whole characters.
    let is_boundary = |at: &usize| bytes[*at] & 0xc0 != 0x80;
    let end = (1..=NAME_MAX - ADDED_MAX - SUM).rev().find(is_boundary).unwrap_or(1);
    let mut short = OsStr::from_bytes(&bytes[..end]).to_owned();
    short.push(format!("-{:016x}", base::crc::crc64(bytes)));
    Cow::Owned(short)
}

/// The directory that a file lies in.
pub fn directory_of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// See [`DiskFile::sync_elsewhere`]. Its errors are those of [`DiskFile::sync`].
pub type SyncElsewhere = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// A file open for writing.
pub trait DiskFile: Write + Send {
    /// Waits until everything that was written is durable, with the length that is needed to read
    /// it.
    ///
    /// # Errors
    /// The system's. Data written since the last successful sync may be lost then, even if a later
    /// sync succeeds: the kernel reports a failed page once and forgets it.
    fn sync(&mut self) -> io::Result<()>;

    /// A sync of everything written so far, for another thread to do, so that writing can go on.
    ///
    /// # Errors
    /// The system's; nothing has been tried then.
    fn sync_elsewhere(&self) -> io::Result<SyncElsewhere>;

    /// Cuts the file off after this many bytes; writing goes on there.
    ///
    /// # Errors
    /// The system's.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// The real one.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, file: &Path) -> io::Result<Box<dyn DiskFile>> {
        // Appending keeps the position of the next write at the end, also after a truncation.
        let file = OpenOptions::new().append(true).create(true).open(file)?;
        file.set_len(0)?;
        Ok(Box::new(file))
    }

    fn append(&self, file: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().append(true).create(true).open(file)?))
    }

    fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        fs::read(file)
    }

    fn length(&self, file: &Path) -> io::Result<Option<u64>> {
        match fs::metadata(file) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn uncache(&self, file: &Path) {
        // Opening anything but a plain file may wait.
        let length = fs::metadata(file).ok().filter(fs::Metadata::is_file).map(|found| found.len());
        let (Some(length), Ok(file)) = (length, File::open(file)) else { return };
        for offset in (0..length).step_by(UNCACHED_AT_ONCE as usize) {
            let piece = NonZeroU64::new(UNCACHED_AT_ONCE);
            if fadvise(&file, offset, piece, Advice::DontNeed).is_err() {
                return;
            }
            std::thread::sleep(UNCACHING_REST);
        }
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        fs::remove_file(file)
    }

    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        match fs::create_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        match File::open(directory)?.sync_all() {
            // Some file systems cannot sync a directory, and say so.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        }
    }
}

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn sync_elsewhere(&self) -> io::Result<SyncElsewhere> {
        let file = self.try_clone()?;
        Ok(Box::new(move || file.sync_data()))
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// Writes all the slices, with as few calls as the system makes of it. On an error `written` says
/// how many bytes went through.
///
/// # Errors
/// The system's. A write that takes nothing is [`io::ErrorKind::WriteZero`].
pub fn write_all_vectored(
    file: &mut dyn DiskFile,
    mut slices: &mut [IoSlice<'_>],
    written: &mut u64,
) -> io::Result<()> {
    // Empty slices at the front would make the system report that nothing was written.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                *written += count as u64;
                IoSlice::advance_slices(&mut slices, count);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::faulty::{FaultyDisk, Operation};
    use super::*;

    fn put(disk: &dyn Disk, file: &Path, content: &[u8]) -> io::Result<()> {
        replace(disk, file, &temporary_of(file), |output| output.write_all(content))
    }

    #[test]
    fn a_file_is_replaced_or_stays() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("list");
        put(&RealDisk, &file, b"old").unwrap();
        let steps = [Operation::Create, Operation::Write, Operation::Sync, Operation::Rename];
        for step in steps {
            let disk = FaultyDisk::new();
            disk.fail(step, 0, libc::EIO);
            let error = put(&disk, &file, b"new").unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EIO), "{step:?}");
            assert_eq!(fs::read(&file).unwrap(), b"old", "{step:?}");
            assert_eq!(RealDisk.list(directory.path()).unwrap(), ["list"], "{step:?}");
        }
        let disk = FaultyDisk::new();
        disk.write_at_most(1);
        put(&disk, &file, b"new").unwrap();
        assert_eq!(disk.read(&file).unwrap(), b"new");
        let done = [Operation::Create, Operation::Write, Operation::Write, Operation::Write];
        let done = [&done[..], &[Operation::Sync, Operation::Rename]];
        assert_eq!(disk.operations(), done.concat());
    }

    #[test]
    fn a_long_name_is_shortened_once() {
        let short = |name: &str| short_name(Path::new(name)).into_owned();
        assert_eq!(short("/data/dump.rdb"), "dump.rdb");
        let fits = "d".repeat(NAME_MAX - ADDED_MAX);
        assert_eq!(short(&fits), OsStr::new(&fits));
        let long = ["a", "b"].map(|end| short(&("\u{e4}".repeat(127) + end)));
        assert_ne!(long[0], long[1]);
        for name in long {
            let name = name.to_str().expect("whole characters");
            assert!(name.len() <= NAME_MAX - ADDED_MAX && name.starts_with("\u{e4}\u{e4}"));
            assert_eq!(short(name), name);
        }
    }

    #[test]
    fn what_is_forgotten_is_still_there() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let content = vec![b'x'; 3 * UNCACHED_AT_ONCE as usize + 7];
        put(&RealDisk, &file, &content).unwrap();
        RealDisk.uncache(&file);
        assert!(fs::read(&file).unwrap() == content);
        RealDisk.uncache(&directory.path().join("none"));
        RealDisk.uncache(directory.path());
    }

    #[test]
    fn slices_are_written_however_little_the_disk_takes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let disk = FaultyDisk::new();
        disk.write_at_most(3);
        let mut file = disk.create(&path).unwrap();
        let mut slices = [&b""[..], b"ab", b"", b"cdefg", b"h", b""].map(IoSlice::new);
        let mut written = 0;
        write_all_vectored(&mut *file, &mut slices, &mut written).unwrap();
        assert_eq!((written, fs::read(&path).unwrap()), (8, b"abcdefgh".to_vec()));
        file.truncate(4).unwrap();
        disk.fail(Operation::Write, 1, libc::ENOSPC);
        let mut slices = [IoSlice::new(b"12345")];
        let error = write_all_vectored(&mut *file, &mut slices, &mut written).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!((written, fs::read(&path).unwrap()), (11, b"abcd123".to_vec()));
    }

    #[test]
    fn a_file_is_opened_empty_or_at_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        assert_eq!(RealDisk.length(&file).unwrap(), None);
        for (content, expected) in [("one", "one"), ("two", "onetwo")] {
            RealDisk.append(&file).unwrap().write_all(content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), expected);
        }
        assert_eq!(RealDisk.length(&file).unwrap(), Some(6));
        RealDisk.create(&file).unwrap().write_all(b"x").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"x");
        RealDisk.make_directory(directory.path()).unwrap();
        RealDisk.sync_directory(directory.path()).unwrap();
        assert!(RealDisk.make_directory(&file.join("below")).is_err());
    }
}
