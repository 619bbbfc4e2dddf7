//! The directory of the append-only file, and how its list of files changes.
//!
//! The list on the disk is right at every instant: a file is complete and synced before a list
//! names it, a list replaces the old one as a whole, and a file is removed only after the list
//! without it is durable. A machine that stops in between leaves a file that no list names; the
//! next file of that name replaces it. When there is no list at all, no file is replaced or
//! appended to: the list may have been lost, and the files may be all that is left of the data. If
//! the sync of the directory fails, a stop of the machine decides between the old list and the new
//! one, and both are right.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::manifest::{
    AofFile, BaseFormat, Kind, Manifest, ManifestError, manifest_name, sequence_of,
};
use crate::disk::{Disk, DiskFile, TEMPORARY_PREFIX, directory_of, replace, temporary_of};
use crate::journal::Opened;
use crate::originals;

/// See the module's text.
pub struct AofDirectory {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// The beginning of the names of all files: `appendfilename`.
    prefix: OsString,
    manifest: Mutex<Manifest>,
}

/// What happens to an append-only file of the time before Redis 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldFile {
    /// It becomes the base: the caller is going to load it.
    Adopt,
    /// It stays where it is.
    Leave,
}

/// Why the directory is of no use.
#[derive(Debug)]
pub enum DirectoryError {
    /// The system refuses something.
    System {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The list cannot be read.
    Manifest {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        error: ManifestError,
    },
    /// A file of the list is not there.
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectoryError::System { path, error } => {
                write!(formatter, "{}: {error}", path.display())
            }
            DirectoryError::Manifest { path, error } => {
                write!(formatter, "{}: {error}", path.display())
            }
            DirectoryError::Missing { path } => {
                write!(
                    formatter,
                    "{}: the manifest names this file: No such file or directory",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for DirectoryError {}

/// The increment that goes on from the cut of a new base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Successor {
    /// It is listed, from [`AofDirectory::open_increment`]: this is its sequence.
    Listed(u64),
    /// It was opened by [`AofDirectory::open_hidden_increment`].
    Hidden,
}

impl AofDirectory {
    /// Reads what is there, below the server's `directory`. No files are an empty list.
    ///
    /// # Errors
    /// [`DirectoryError`]. Nothing was changed then, or only half of the move of an old file, which
    /// the next call completes.
    pub fn open(
        disk: Arc<dyn Disk>,
        directory: &Path,
        directory_name: &OsStr,
        file_name: &OsStr,
        old_file: OldFile,
    ) -> Result<AofDirectory, DirectoryError> {
        let path = directory.join(directory_name);
        let prefix = file_name.to_owned();
        let system = |path: &Path| {
            let path = path.to_owned();
            move |error| DirectoryError::System { path, error }
        };
        let manifest = read_list(&*disk, &path, &prefix)?;
        let opened = AofDirectory { disk, path, prefix, manifest: Mutex::new(manifest) };
        if old_file == OldFile::Adopt {
            let old = directory.join(file_name);
            opened.adopt(&old).map_err(system(&old))?;
        }
        opened.check_presence()?;
        Ok(opened)
    }

    /// Takes over an append-only file of the time before there was a directory. The list comes
    /// first, so that a move that was interrupted is seen: the only file listed is missing.
    fn adopt(&self, old: &Path) -> io::Result<()> {
        if self.disk.length(old)?.is_none() || old == self.path {
            return Ok(());
        }
        let base = AofFile { name: self.prefix.clone(), sequence: 1, kind: Kind::Base };
        let adopted = Manifest { base: Some(base), ..Manifest::default() };
        let home = self.path.join(&self.prefix);
        let listed = *self.manifest.lock() == adopted;
        if listed && self.disk.length(&home)?.is_some() {
            return Ok(());
        }
        if !listed {
            if self.disk.length(&self.manifest_path())?.is_some() {
                return Ok(());
            }
            self.store(&mut self.manifest.lock(), adopted)?;
        }
        self.disk.rename(old, &home)?;
        self.disk.sync_directory(&self.path)?;
        self.disk.sync_directory(crate::disk::directory_of(old))
    }

    fn check_presence(&self) -> Result<(), DirectoryError> {
        for path in self.live_files() {
            match self.disk.length(&path) {
                Ok(Some(_)) => {}
                Ok(None) => return Err(DirectoryError::Missing { path }),
                Err(error) => return Err(DirectoryError::System { path, error }),
            }
        }
        Ok(())
    }

    /// Whether the files of the list are there.
    pub fn has_its_files(&self) -> bool {
        self.check_presence().is_ok()
    }

    /// Makes a file as a rewrite does, and removes it. It syncs nothing: a worker may call it.
    ///
    /// # Errors
    /// The system's: no rewrite can succeed.
    pub fn try_to_make_files(&self) -> io::Result<()> {
        let made = self.open_hidden_increment().map(drop);
        self.discard_hidden_increment();
        made
    }

    /// Reads the list again, which another process may have changed since.
    ///
    /// # Errors
    /// [`DirectoryError`]. The list is then the previous one.
    pub fn read_again(&self) -> Result<(), DirectoryError> {
        let mut manifest = self.manifest.lock();
        *manifest = read_list(&*self.disk, &self.path, &self.prefix)?;
        Ok(())
    }

    /// Whether there are parts of an append-only file, and no list of them.
    pub fn has_unlisted_parts(&self) -> bool {
        self.manifest.lock().taken > 0
    }

    /// Where the directory is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The list as it is now.
    pub fn manifest(&self) -> Manifest {
        self.manifest.lock().clone()
    }

    /// The files to be loaded, in their order.
    pub fn live_files(&self) -> Vec<PathBuf> {
        self.manifest.lock().live().map(|file| self.path.join(&file.name)).collect()
    }

    /// The bytes of the base, and of all files to be loaded.
    ///
    /// # Errors
    /// The system's.
    pub fn sizes(&self) -> io::Result<(u64, u64)> {
        let manifest = self.manifest();
        let base = self.size(manifest.base.as_slice())?;
        Ok((base, base + self.size(&manifest.increments)?))
    }

    /// The bytes of all files to be loaded but the newest increment, which is still written.
    ///
    /// # Errors
    /// The system's.
    pub fn closed_size(&self) -> io::Result<u64> {
        let manifest = self.manifest();
        let closed = manifest.increments.split_last().map_or(&[][..], |(_, closed)| closed);
        Ok(self.size(manifest.base.as_slice())? + self.size(closed)?)
    }

    fn size(&self, files: &[AofFile]) -> io::Result<u64> {
        files.iter().try_fold(0, |size, file| {
            Ok(size + self.disk.length(&self.path.join(&file.name))?.unwrap_or(0))
        })
    }

    /// Makes durable what an earlier process has left and this one has loaded. Whatever is written
    /// from now on follows that, and is of no use without it.
    ///
    /// # Errors
    /// The system's.
    fn settle(&self, manifest: &Manifest) -> io::Result<()> {
        if manifest.live().next().is_none() {
            return Ok(());
        }
        for AofFile { name, .. } in &manifest.increments {
            self.disk.append(&self.path.join(name))?.sync()?;
        }
        self.disk.sync_directory(directory_of(&self.path))?;
        self.disk.sync_directory(&self.path)
    }

    /// Opens the last increment to append to its end; all of them are durable then, and so is the
    /// list. If there is none it adds the first one, under a name that no file has: the contents of
    /// an existing file of that name would be unknown.
    ///
    /// # Errors
    /// The system's.
    pub fn resume(&self) -> io::Result<Opened> {
        let manifest = self.manifest.lock();
        self.settle(&manifest)?;
        if let Some(AofFile { name, .. }) = manifest.increments.last().cloned() {
            let path = self.path.join(&name);
            let length = self.disk.length(&path)?.unwrap_or(0);
            let is_behind_durable = manifest.increments.len() > 1;
            return Ok(Opened { file: self.disk.append(&path)?, name, length, is_behind_durable });
        }
        drop(manifest);
        self.open_unused_increment()
    }

    /// Adds the first base of a list that has none, and returns its name.
    ///
    /// # Errors
    /// The system's, or those of `write`.
    pub fn add_base(
        &self,
        format: BaseFormat,
        write: impl FnOnce(&mut dyn DiskFile) -> io::Result<()>,
    ) -> io::Result<OsString> {
        self.make()?;
        let mut manifest = self.manifest.lock();
        let mut changed = manifest.clone();
        let AofFile { name, .. } = changed.replace_base(&self.prefix, format, 0);
        let path = self.path.join(&name);
        replace(&*self.disk, &path, &temporary_of(&path), write)?;
        self.disk.sync_directory(&self.path)?;
        self.store(&mut manifest, changed)?;
        Ok(name)
    }

    fn open_unused_increment(&self) -> io::Result<Opened> {
        loop {
            let mut next = self.manifest();
            let AofFile { name, sequence, .. } = next.add_increment(&self.prefix);
            if self.disk.length(&self.path.join(name))?.is_none() {
                return self.open_increment();
            }
            self.manifest.lock().taken = sequence;
        }
    }

    /// Adds an increment and opens it, empty. A rewrite does this before its cut.
    ///
    /// # Errors
    /// The system's. The list is then unchanged, or has one more increment, which is empty.
    pub fn open_increment(&self) -> io::Result<Opened> {
        self.make()?;
        let mut manifest = self.manifest.lock();
        let mut changed = manifest.clone();
        let AofFile { name, .. } = changed.add_increment(&self.prefix);
        let path = self.path.join(&name);
        let file = self.disk.create(&path)?;
        // A list never names a file that a stop of the machine can take away.
        let listed = self.disk.sync_directory(&self.path);
        if let Err(error) = listed.and_then(|()| self.store(&mut manifest, changed)) {
            if manifest.increments.last().is_none_or(|last| last.name != name) {
                // An empty file that no list names does no harm; the first error is the one that
                // matters.
                let _ = self.disk.remove(&path);
            }
            return Err(error);
        }
        Ok(Opened { file, name, length: 0, is_behind_durable: false })
    }

    /// Takes back the last increment that [`AofDirectory::open_increment`] has added, into which
    /// nothing was written.
    ///
    /// # Errors
    /// The system's. It may still be listed then, empty.
    pub fn withdraw_increment(&self, unused: Opened) -> io::Result<()> {
        let mut manifest = self.manifest.lock();
        let mut changed = manifest.clone();
        changed.increments.retain(|file| file.name != unused.name);
        self.store(&mut manifest, changed)?;
        self.disk.remove(&self.path.join(&unused.name))
    }

    /// Opens an increment that is not listed before its base is complete: without that base it
    /// means nothing, and the listed files are worth more.
    ///
    /// # Errors
    /// The system's.
    pub fn open_hidden_increment(&self) -> io::Result<Opened> {
        self.make()?;
        let path = self.hidden_increment();
        let file = self.disk.create(&path)?;
        let name = path.file_name().unwrap_or_default().to_owned();
        Ok(Opened { file, name, length: 0, is_behind_durable: false })
    }

    /// Removes the increment that [`AofDirectory::open_hidden_increment`] has made, if it is still
    /// hidden. A thread that has it open may go on writing to nowhere.
    pub fn discard_hidden_increment(&self) {
        // If it stays, the next one that is made empties it.
        let _ = self.disk.remove(&self.hidden_increment());
    }

    fn hidden_increment(&self) -> PathBuf {
        let mut name = OsString::from(TEMPORARY_PREFIX);
        name.push(&self.prefix);
        name.push(".incr");
        self.path.join(name)
    }

    /// The sequence of the last increment, or 0.
    pub fn last_increment(&self) -> u64 {
        self.manifest.lock().last_increment()
    }

    /// Ends a rewrite: the file `complete`, which was written and synced, becomes the base, and
    /// `successor` the increment after it. Files that these make obsolete become history.
    ///
    /// # Errors
    /// The system's. The old list or the new one is in force then, and its files are complete.
    pub fn finish_rewrite(
        &self,
        complete: &Path,
        format: BaseFormat,
        successor: Successor,
    ) -> io::Result<()> {
        self.make()?;
        let mut manifest = self.manifest.lock();
        let mut changed = manifest.clone();
        let contained = match successor {
            Successor::Listed(sequence) => sequence - 1,
            Successor::Hidden => changed.last_increment(),
        };
        let base = changed.replace_base(&self.prefix, format, contained);
        let base = (complete.to_owned(), base.name);
        let increment = (successor == Successor::Hidden)
            .then(|| (self.hidden_increment(), changed.add_increment(&self.prefix).name));
        let renamed = [Some(base), increment];
        let renamed = renamed.iter().flatten().map(|(from, name)| (from, self.path.join(name)));
        let renamed: Vec<_> = renamed.collect();
        let finished = (|| {
            for (from, to) in &renamed {
                self.disk.rename(from, to)?;
            }
            // The names that the list will mention are made durable first.
            self.disk.sync_directory(&self.path)?;
            self.store(&mut manifest, changed)
        })();
        if finished.is_err() {
            let live = manifest.live().map(|file| self.path.join(&file.name));
            let live: Vec<_> = live.collect();
            for (_, to) in renamed.iter().filter(|(_, to)| !live.contains(to)) {
                // It may not be there; the first error is the one that matters.
                let _ = self.disk.remove(to);
            }
        }
        finished
    }

    /// Removes files that are of no use any more, and returns their names.
    ///
    /// # Errors
    /// The system's; files that could not be removed stay in the list.
    pub fn remove_history(&self) -> io::Result<Vec<OsString>> {
        let history = self.manifest.lock().history.clone();
        history.iter().for_each(|file| self.disk.uncache(&self.path.join(&file.name)));
        let mut manifest = self.manifest.lock();
        if manifest.history.is_empty() {
            return Ok(Vec::new());
        }
        self.disk.sync_directory(&self.path)?;
        let mut changed = manifest.clone();
        let mut removed = Vec::new();
        let mut failure = None;
        for file in std::mem::take(&mut changed.history) {
            match self.disk.remove(&self.path.join(&file.name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    failure = Some(error);
                    changed.history.push(file);
                }
                _ => removed.push(file.name),
            }
        }
        if !removed.is_empty() {
            self.store(&mut manifest, changed)?;
        }
        failure.map_or(Ok(removed), Err)
    }

    /// Cuts a file of the list off after this many bytes, durably.
    ///
    /// # Errors
    /// The system's.
    pub fn truncate(&self, file: &Path, length: u64) -> io::Result<()> {
        let mut file = self.disk.append(file)?;
        file.truncate(length)?;
        file.sync()
    }

    /// Puts an empty file in the place of a file of the list, durably. The file that was there gets
    /// another name, which is returned.
    ///
    /// # Errors
    /// The system's; the file is then unchanged.
    pub fn empty(&self, file: &Path) -> io::Result<PathBuf> {
        originals::replace(&*self.disk, file, |_| Ok(()))
    }

    /// Opens a file beside those of the list, empty, for writing.
    ///
    /// # Errors
    /// The system's.
    pub fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.disk.create(path)
    }

    /// Removes a file that the list does not name.
    ///
    /// # Errors
    /// The system's.
    pub fn discard(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    /// Makes the directory itself, durably, unless it is there.
    ///
    /// # Errors
    /// The system's.
    pub fn make(&self) -> io::Result<()> {
        make(&*self.disk, &self.path)
    }

    fn manifest_path(&self) -> PathBuf {
        self.path.join(manifest_name(&self.prefix))
    }

    /// Makes `changed` the list. If only the sync fails, it is the list nevertheless: the names in
    /// it must not be given again.
    fn store(&self, manifest: &mut Manifest, changed: Manifest) -> io::Result<()> {
        self.make()?;
        // The directory may be new, and not synced yet.
        self.disk.sync_directory(directory_of(&self.path))?;
        let (path, content) = (self.manifest_path(), changed.format());
        replace(&*self.disk, &path, &temporary_of(&path), |output| output.write_all(&content))?;
        *manifest = changed;
        self.disk.sync_directory(&self.path)
    }
}

/// Makes a directory unless it is there. Storing a list in it makes it durable.
///
/// # Errors
/// The system's.
pub fn make(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.length(path)? {
        Some(_) => Ok(()),
        None => disk.make_directory(path),
    }
}

/// The names in all lists of a directory. None if it cannot be read, or a list has no meaning.
pub fn listed_names(disk: &dyn Disk, path: &Path) -> Option<Vec<OsString>> {
    let mut listed = Vec::new();
    for name in disk.list(path).ok()? {
        let is_list = name.as_bytes().ends_with(b".manifest");
        if is_list && let Some(manifest) = read_manifest(disk, &path.join(&name)).ok()? {
            listed.extend(manifest.live().chain(&manifest.history).map(|file| file.name.clone()));
        }
    }
    Some(listed)
}

/// The list, or without one the files that are there.
fn read_list(disk: &dyn Disk, path: &Path, prefix: &OsStr) -> Result<Manifest, DirectoryError> {
    if let Some(manifest) = read_manifest(disk, &path.join(manifest_name(prefix)))? {
        return Ok(manifest);
    }
    let taken = last_sequence(disk, path, prefix)
        .map_err(|error| DirectoryError::System { path: path.to_owned(), error })?;
    Ok(Manifest { taken, ..Manifest::default() })
}

fn read_manifest(disk: &dyn Disk, path: &Path) -> Result<Option<Manifest>, DirectoryError> {
    match disk.read(path) {
        Ok(content) => Manifest::parse(&content)
            .map(Some)
            .map_err(|error| DirectoryError::Manifest { path: path.to_owned(), error }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DirectoryError::System { path: path.to_owned(), error }),
    }
}

/// The highest sequence of the existing parts of an append-only file, or 0.
fn last_sequence(disk: &dyn Disk, path: &Path, prefix: &OsStr) -> io::Result<u64> {
    let names = match disk.list(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        listed => listed?,
    };
    Ok(names.iter().filter_map(|name| sequence_of(name, prefix)).max().unwrap_or(0))
}

#[cfg(test)]
mod tests;
