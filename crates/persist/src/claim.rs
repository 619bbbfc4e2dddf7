//! Files that one server at a time may use. Two servers that write to the same files would destroy
//! each other's data.
//!
//! The lock is the kernel's (`flock`): it lasts as long as the process, however that ends. An
//! append-only file is locked by its directory. An RDB file is replaced at each save, so an empty
//! file beside it, with a name of its own, is locked instead.
//!
//! A locked file can be renamed or removed, and another server can then lock the file that takes
//! its place. So a claim counts only while its path still leads to the locked file.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::disk::short_name;

/// How often something is opened anew that was renamed or removed before it was locked.
const TRIES: usize = 10;

/// The right to write to some files. It ends when it is dropped.
#[derive(Debug)]
pub struct Claim {
    /// The file or directory that is claimed.
    path: PathBuf,
    /// The path of what is locked for it.
    lock: PathBuf,
    locked: File,
}

/// Another process has the right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InUse(
    /// The path that it uses.
    pub PathBuf,
);

impl fmt::Display for InUse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: another server uses it, and would lose its data", self.0.display())
    }
}

impl std::error::Error for InUse {}

impl Claim {
    /// Claims the directory of an append-only file. `None` where the file system locks nothing.
    ///
    /// # Errors
    /// [`InUse`].
    pub fn directory(path: &Path) -> Result<Option<Claim>, InUse> {
        lock(path, path.to_owned(), || File::open(path))
    }

    /// Claims an RDB file, whether it exists or not. `None` when the file system cannot lock, or
    /// when no file can be made, so that no server saves either.
    ///
    /// # Errors
    /// [`InUse`].
    pub fn snapshot(path: &Path) -> Result<Option<Claim>, InUse> {
        let beside = beside(path);
        lock(path, beside.clone(), || match File::open(&beside) {
            // It does not stay open for writing: its file system can be remounted read-only
            // meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => OpenOptions::new()
                .create(true)
                .append(true)
                .open(&beside)
                .and_then(|_| File::open(&beside)),
            opened => opened,
        })
    }

    /// Claims an RDB file, unless no server has ever claimed it.
    ///
    /// # Errors
    /// [`InUse`].
    pub fn known_snapshot(path: &Path) -> Result<Option<Claim>, InUse> {
        let beside = beside(path);
        lock(path, beside.clone(), || File::open(&beside))
    }

    /// Whether the claim is, or was once, for this file or directory.
    pub fn is_for(&self, path: &Path) -> bool {
        self.path == path
    }

    /// Whether the claim is for this file or directory, and others see what it has locked.
    pub fn covers(&self, path: &Path) -> bool {
        self.is_for(path) && self.is_seen()
    }

    fn is_seen(&self) -> bool {
        let identity = |found: io::Result<Metadata>| found.ok().map(|it| (it.dev(), it.ino()));
        let own = identity(self.locked.metadata());
        own.is_some() && identity(fs::metadata(&self.lock)) == own
    }
}

/// Locks what `open` opens at the path `lock`.
fn lock(
    path: &Path,
    lock: PathBuf,
    open: impl Fn() -> io::Result<File>,
) -> Result<Option<Claim>, InUse> {
    for _ in 0..TRIES {
        let Ok(locked) = open() else { return Ok(None) };
        match locked.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(_)) => return Ok(None),
        }
        let claim = Claim { path: path.to_owned(), lock: lock.clone(), locked };
        // It may have been renamed or removed between the two.
        if claim.is_seen() {
            return Ok(Some(claim));
        }
    }
    Err(InUse(path.to_owned()))
}

/// The file that is locked for an RDB file.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(short_name(path));
    name.push(".lock");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_claim_of_a_file_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let (file, other) = (home.path().join("dump.rdb"), home.path().join("other.rdb"));
        assert!(Claim::known_snapshot(&file).unwrap().is_none());
        let claim = Claim::snapshot(&file).unwrap().unwrap();
        assert!(claim.covers(&file) && !claim.covers(&other));
        assert_eq!(Claim::snapshot(&file).unwrap_err(), InUse(file.clone()));
        assert_eq!(Claim::known_snapshot(&file).unwrap_err(), InUse(file.clone()));
        let directory = Claim::directory(home.path()).unwrap().unwrap();
        assert!(Claim::directory(home.path()).is_err());
        assert!(Claim::snapshot(&other).unwrap().is_some());
        drop((claim, directory));
        assert!(Claim::snapshot(&file).unwrap().is_some());
        assert!(Claim::directory(home.path()).unwrap().is_some());
        assert!(Claim::directory(&file).unwrap().is_none(), "there is nothing to be locked");
    }

    #[test]
    fn a_claim_ends_when_what_is_locked_is_renamed_or_removed() {
        let home = tempfile::tempdir().unwrap();
        let (path, old) = (home.path().join("directory"), home.path().join("old"));
        std::fs::create_dir(&path).unwrap();
        let claim = Claim::directory(&path).unwrap().unwrap();
        std::fs::rename(&path, &old).unwrap();
        assert!(!claim.covers(&path), "there is nothing");
        std::fs::create_dir(&path).unwrap();
        assert!(!claim.covers(&path), "it is another one");
        let other = Claim::directory(&path).unwrap().unwrap();
        assert_eq!(Claim::directory(&old).unwrap_err(), InUse(old), "it is still locked");
        assert!(other.covers(&path));
        let file = home.path().join("dump.rdb");
        let claim = Claim::snapshot(&file).unwrap().unwrap();
        std::fs::remove_file(beside(&file)).unwrap();
        assert!(!claim.covers(&file));
        let other = Claim::snapshot(&file).unwrap().unwrap();
        assert!(other.covers(&file) && !claim.covers(&file));
    }

    #[test]
    fn a_file_with_the_longest_name_too() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("d".repeat(255));
        let claim = Claim::snapshot(&file).unwrap();
        assert!(claim.is_some_and(|claim| claim.covers(&file)));
    }
}
