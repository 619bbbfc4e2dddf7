//! A store in a directory.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

use super::interface::{Source, Store, Upload, has_changed, read_all};
use crate::files::{create, create_directory, make_durable, sync_names};
use crate::manifest::LONGEST;

/// What the names of files end with that are not complete.
const BEGUN: &str = ".part";
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

    fn start(&self, file: &str) -> io::Result<Part> {
        let (to, path) = (self.path.join(file), self.path.join(format!("{file}{BEGUN}")));
        let file = create(&path, true)?;
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
        let lock =
            create(&self.path.join(LOCK), true).map_err(|error| self.failed(LOCK, &error))?;
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
        match fs::remove_file(self.path.join(file)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(file, &error)),
            _ => Ok(()),
        }
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
