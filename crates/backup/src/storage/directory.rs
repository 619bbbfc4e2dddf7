//! A store in a directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;

use super::interface::{Source, Store, Upload, has_changed, read_all};
use crate::files::{
    BEGUN, create, create_directory, give_to_owner_of, make_durable, remove, sync_names,
};
use crate::manifest::LONGEST;

/// The file that is locked as long as a backup writes here.
const LOCK: &str = "lock";

/// See the module's text.
pub(super) struct Directory {
    path: PathBuf,
    lock: Mutex<Option<File>>,
}

impl Directory {
    pub(super) fn new(path: PathBuf) -> Directory {
        Directory { path, lock: Mutex::new(None) }
    }

    fn failed(&self, file: &str, error: &io::Error) -> String {
        format!("{}: {error}", self.path.join(file).display())
    }

    /// Creates a file. A run by root leaves what the owner of the store may read, whose backups go
    /// on.
    fn create(&self, path: &Path) -> io::Result<File> {
        let file = create(path)?;
        if geteuid().is_root() {
            give_to_owner_of(&File::open(&self.path)?, &file)?;
        }
        Ok(file)
    }

    fn open_lock(&self) -> io::Result<File> {
        let path = self.path.join(LOCK);
        match self.create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let no_link = OFlags::NOFOLLOW.bits().cast_signed();
                OpenOptions::new().write(true).custom_flags(no_link).open(path)
            }
            created => created,
        }
    }

    fn start(&self, file: &str) -> io::Result<Part> {
        let (to, path) = (self.path.join(file), self.path.join(format!("{file}{BEGUN}")));
        // What a run that was killed has left; or a link, which would lead elsewhere.
        remove(&path)?;
        let file = self.create(&path)?;
        Ok(Part { file, path, to, directory: self.path.clone(), is_over: false })
    }
}

impl Source for Directory {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn read(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
        match File::open(self.path.join(file)) {
            Ok(opened) => Ok(Some(Box::new(opened))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(file, &error)),
        }
    }
}

impl Store for Directory {
    fn prepare(&self) -> Result<(), String> {
        create_directory(&self.path).map_err(|error| self.failed("", &error))?;
        let lock = self.open_lock().map_err(|error| self.failed(LOCK, &error))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => {
                format!("{}: another backup writes there", self.name())
            }
            error => self.failed(LOCK, &error.into()),
        })?;
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(())
    }

    fn begin(&self, file: &str) -> Result<Box<dyn Upload>, String> {
        let part = self.start(file).map_err(|error| self.failed(file, &error))?;
        Ok(Box::new(part))
    }

    fn put(&self, file: &str, bytes: &[u8]) -> Result<(), String> {
        let write = || {
            let mut part = self.start(file)?;
            part.file.write_all(bytes)?;
            part.end()
        };
        write().map_err(|error| self.failed(file, &error))
    }

    fn replace(&self, file: &str, known: Option<&[u8]>, bytes: &[u8]) -> Result<(), String> {
        match read_all(self, file, LONGEST)?.as_deref() == known {
            true => self.put(file, bytes),
            false => Err(has_changed(&self.name())),
        }
    }

    fn remove(&self, file: &str) -> Result<(), String> {
        remove(&self.path.join(file)).map_err(|error| self.failed(file, &error))
    }

    fn files(&self) -> Result<Vec<String>, String> {
        let list = || -> io::Result<Vec<String>> {
            let entries = fs::read_dir(&self.path)?;
            entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
        };
        list().map_err(|error| self.failed("", &error))
    }
}

/// A file that gets its name at its end.
struct Part {
    file: File,
    path: PathBuf,
    to: PathBuf,
    directory: PathBuf,
    is_over: bool,
}

impl Part {
    fn end(&mut self) -> io::Result<()> {
        make_durable(&self.file)?;
        fs::rename(&self.path, &self.to)?;
        self.is_over = true;
        sync_names(&self.directory)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_over {
            // What stays is removed by the next run.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Upload for Part {
    fn finish(mut self: Box<Self>) -> Result<(), String> {
        let name = self.to.display().to_string();
        self.end().map_err(|error| format!("{name}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, chown, symlink};

    use super::*;

    #[test]
    fn what_root_writes_is_of_the_owner_of_the_store() {
        let path = tempfile::tempdir().unwrap();
        if geteuid().is_root() {
            chown(path.path(), Some(65534), Some(65534)).unwrap();
        }
        let owner = fs::metadata(path.path()).unwrap().uid();
        let store = Directory::new(path.path().to_owned());
        store.prepare().unwrap();
        store.replace("list", None, b"1").unwrap();
        store.begin("base").unwrap().finish().unwrap();
        for file in [LOCK, "list", "base"] {
            assert_eq!(fs::metadata(path.path().join(file)).unwrap().uid(), owner, "{file}");
        }
    }

    #[test]
    fn no_link_is_written_through() {
        let (path, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let others = work.path().join("of others");
        fs::write(&others, "theirs").unwrap();
        let store = Directory::new(path.path().to_owned());
        symlink(&others, path.path().join("list.part")).unwrap();
        store.put("list", b"1").unwrap();
        symlink(&others, path.path().join(LOCK)).unwrap();
        assert!(store.prepare().is_err());
        assert_eq!(fs::read(&others).unwrap(), b"theirs");
    }
}
