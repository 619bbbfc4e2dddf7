//! The directories of targets: each is removed with its target, and those of a lab that was killed
//! are removed by the next one. A lock shows that a directory is in use; the kernel releases it
//! with the process, however that ends.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// The beginning of the names of all of them.
const PREFIX: &str = "dunlin-lab-run-";
/// The same until the lock is taken, so that a directory that has just been made is not taken for
/// one left behind.
const NEW_PREFIX: &str = "dunlin-lab-new-";

/// How often [`remove_all`] tries to remove a directory, with 10 ms between.
const ATTEMPTS: u32 = 100;

/// The directories of this process.
static IN_USE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A target's directory. Dropping it removes it with all that is in it.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Locked for as long as the directory is in use.
    _lock: File,
}

impl Directory {
    /// Makes a new one, below `parent` or in the system's directory for temporary files.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn fresh(parent: Option<&Path>) -> io::Result<Self> {
        // A thread that removes all of them waits until this one is among them.
        let mut held = held();
        let mut builder = tempfile::Builder::new();
        builder.prefix(NEW_PREFIX);
        let new = parent.map_or_else(|| builder.tempdir(), |parent| builder.tempdir_in(parent))?;
        let lock = File::open(new.path())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let name = new.path().file_name().unwrap_or_default().to_string_lossy();
        let path = new.path().with_file_name(name.replacen(NEW_PREFIX, PREFIX, 1));
        fs::rename(new.path(), &path)?;
        // The directory has moved; `new` must not remove whatever has its old path.
        let _ = new.keep();
        held.insert(path.clone());
        Ok(Directory { path, _lock: lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Until it is gone, no other thread ends the process.
        let mut held = held();
        // A directory that cannot be removed now is removed when the lab runs again.
        let _ = fs::remove_dir_all(&self.path);
        held.remove(&self.path);
    }
}

/// Removes the directories that killed labs have left behind; returns how many.
pub(crate) fn remove_leftovers(parent: &Path) -> usize {
    let Ok(entries) = fs::read_dir(parent) else { return 0 };
    let ours = entries.flatten().filter(|entry| {
        // No link that another user made, in a directory to which all may write.
        entry.file_type().is_ok_and(|kind| kind.is_dir())
            && entry.file_name().to_string_lossy().starts_with(PREFIX)
    });
    ours.filter(|entry| remove_if_left(&entry.path()).is_ok()).count()
}

fn remove_if_left(path: &Path) -> io::Result<()> {
    let lock = File::open(path)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    fs::remove_dir_all(path)
}

/// Removes the directories of this process, which is about to end abruptly. None is made
/// afterwards: a thread that tries waits for that end.
pub(crate) fn remove_all() {
    let held = held();
    for path in &*held {
        // A server that was killed a moment ago may still be making a file.
        for _ in 0..ATTEMPTS {
            if fs::remove_dir_all(path).is_ok() || !path.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    std::mem::forget(held);
}

fn held() -> std::sync::MutexGuard<'static, BTreeSet<PathBuf>> {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_stays_and_what_was_left_goes() {
        let parent = tempfile::tempdir().expect("there is room");
        let used = Directory::fresh(Some(parent.path())).expect("there is room");
        let left = parent.path().join("dunlin-lab-run-dead");
        let other = parent.path().join("another");
        for path in [&left, &other] {
            fs::create_dir(path).expect("there is room");
            fs::write(path.join("file"), "x").expect("there is room");
        }
        assert_eq!(remove_leftovers(parent.path()), 1);
        assert!(used.path().is_dir() && other.is_dir() && !left.exists());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
        assert_eq!(remove_leftovers(Path::new("/nowhere")), 0);
    }
}
