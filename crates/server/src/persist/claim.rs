//! Files that one server at a time may use. Two servers that write to the same files would destroy each
//! other's data.
//!
//! The lock is the kernel's (`flock`): it lasts as long as the process, however that ends. An
//! append-only file is locked by its directory. An RDB file is replaced at each save, so an empty file
//! beside it, with a name of its own, is locked instead.

use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::disk::short_name;

/// The right to write to some files. It ends when it is dropped.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    _locked: File,
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
        lock(path, File::open(path))
    }

    /// Claims an RDB file, whether it exists or not. `None` when the file system cannot lock, or when
    /// no file can be made, so that no server saves either.
    ///
    /// # Errors
    /// [`InUse`].
    pub fn snapshot(path: &Path) -> Result<Option<Claim>, InUse> {
        let beside = beside(path);
        let opened = match File::open(&beside) {
            // It does not stay open for writing: its file system can be remounted read-only meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => OpenOptions::new()
                .create(true)
                .append(true)
                .open(&beside)
                .and_then(|_| File::open(&beside)),
            opened => opened,
        };
        lock(path, opened)
    }

    /// Claims an RDB file, unless no server has ever claimed it.
    ///
    /// # Errors
    /// [`InUse`].
    pub fn known_snapshot(path: &Path) -> Result<Option<Claim>, InUse> {
        lock(path, File::open(beside(path)))
    }

    /// Whether the claim is for this file or directory.
    pub fn covers(&self, path: &Path) -> bool {
        self.path == path
    }
}

fn lock(path: &Path, opened: io::Result<File>) -> Result<Option<Claim>, InUse> {
    let Ok(file) = opened else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(Claim { path: path.to_owned(), _locked: file })),
        Err(TryLockError::WouldBlock) => Err(InUse(path.to_owned())),
        Err(TryLockError::Error(_)) => Ok(None),
    }
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
    fn one_at_a_time() {
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
    fn a_file_with_the_longest_name_too() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("d".repeat(255));
        let claim = Claim::snapshot(&file).unwrap();
        assert!(claim.is_some_and(|claim| claim.covers(&file)));
    }
}
