//! The directory of a server while a restore writes there.
//!
//! The user of the server owns it, and whoever has broken into the server may put links or other
//! directories in the place of what a restore by root has made. So it is opened once. Each step
//! after that goes from an open directory to a name in it, and follows no link.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FlockOperation, Mode, OFlags, flock, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::files::{BEGUN, create_directory, give_to_owner_of, make_durable, sync_directory};

/// The files that are written for a server.
pub(crate) struct Names {
    pub(crate) base: String,
    pub(crate) increment: String,
    pub(crate) manifest: String,
}

impl Names {
    pub(crate) fn of(prefix: &str) -> Names {
        Names {
            base: format!("{prefix}.1.base.rdb"),
            increment: format!("{prefix}.1.incr.aof"),
            manifest: format!("{prefix}.manifest"),
        }
    }

    fn remove_from(&self, directory: &File) -> io::Result<()> {
        [&self.base, &self.increment, &self.manifest].iter().try_for_each(|name| {
            match unlinkat(directory, name.as_str(), AtFlags::empty()) {
                Err(Errno::NOENT) => Ok(()),
                removed => Ok(removed?),
            }
        })
    }
}

/// See the module's text. A server that finds some of the files only would start empty: they lie in
/// a directory with another name until all of them are there.
pub(crate) struct Place {
    path: PathBuf,
    /// Locked, so that no other restore writes there.
    directory: File,
    is_new: bool,
    folder: String,
    name_of_part: String,
    part: File,
    pub(crate) names: Names,
    is_over: bool,
}

impl Place {
    /// Whether the directory is there. It is an error if it has anything but what a restore that
    /// was killed has left.
    pub(crate) fn check(path: &Path, folder: &str) -> Result<bool, String> {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let directory = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            directory => directory.map_err(failed)?,
        };
        match is_empty_but_for(&directory, &format!("{folder}{BEGUN}")).map_err(failed)? {
            true => Ok(true),
            false => Err(format!("{} is not empty", path.display())),
        }
    }

    /// Makes it ready, and removes what a restore that was killed has left. What others have put
    /// there stays, and is an error.
    pub(crate) fn open(path: &Path, folder: &str, names: Names) -> Result<Place, String> {
        let is_new = !Place::check(path, folder)?;
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        create_directory(path).map_err(failed)?;
        let directory = File::open(path).map_err(failed)?;
        // Some file systems have no locks of directories.
        if flock(&directory, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(format!("{}: another restore writes there", path.display()));
        }
        let name_of_part = format!("{folder}{BEGUN}");
        // What another restore was writing looks like what one that was killed has left.
        if !is_empty_but_for(&directory, &name_of_part).map_err(failed)? {
            return Err(format!("{} is not empty", path.display()));
        }
        let begin = || {
            match open_in(&directory, &name_of_part) {
                Err(Errno::NOENT) => {}
                left => {
                    names.remove_from(&left?)?;
                    unlinkat(&directory, &name_of_part, AtFlags::REMOVEDIR)?;
                }
            }
            mkdirat(&directory, &name_of_part, Mode::from_raw_mode(0o750))?;
            let part = open_in(&directory, &name_of_part)?;
            match is_empty_but_for(&part, ".")? {
                true => Ok(part),
                false => Err(Errno::NOTEMPTY.into()),
            }
        };
        let part = begin().map_err(|error: io::Error| {
            if is_new {
                // It is empty, as nothing was written.
                let _ = fs::remove_dir(path);
            }
            format!("{}: {error}", path.join(&name_of_part).display())
        })?;
        let (path, folder) = (path.to_owned(), folder.to_owned());
        Ok(Place { path, directory, is_new, folder, name_of_part, part, names, is_over: false })
    }

    /// Creates one of the files.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(openat(&self.part, name, flags, Mode::from_raw_mode(0o640))?.into())
    }

    /// Makes a file durable that is complete. A restore by root leaves files that the server may
    /// read.
    pub(crate) fn complete(&self, file: &File) -> io::Result<()> {
        give_to_owner_of(&self.directory, file)?;
        make_durable(file)
    }

    /// All files are there: they get their place together.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        give_to_owner_of(&self.directory, &self.part)?;
        sync_directory(&self.part)?;
        let named = statat(&self.directory, &self.name_of_part, AtFlags::SYMLINK_NOFOLLOW)?;
        let own = self.part.metadata()?;
        if (named.st_dev, named.st_ino) != (own.dev(), own.ino()) {
            let name = &self.name_of_part;
            return Err(io::Error::other(format!("somebody has replaced {name} meanwhile")));
        }
        renameat(&self.directory, &self.name_of_part, &self.directory, &self.folder)?;
        self.is_over = true;
        sync_directory(&self.directory)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_over {
            // The directory was empty, and is so again. What stays is removed by the next restore.
            let _ = self.names.remove_from(&self.part);
            let _ = unlinkat(&self.directory, &self.name_of_part, AtFlags::REMOVEDIR);
            if self.is_new {
                let _ = fs::remove_dir(&self.path);
            }
        }
    }
}

fn open_in(directory: &File, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty()).map(File::from)
}

fn is_empty_but_for(directory: &File, left: &str) -> io::Result<bool> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if ![".", "..", left].map(str::as_bytes).contains(&entry.file_name().to_bytes()) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    /// An own directory of the server, and one of somebody else with a file of the same name.
    fn directories() -> (tempfile::TempDir, PathBuf, PathBuf, PathBuf) {
        let work = tempfile::tempdir().unwrap();
        let [own, others] = ["own", "others"].map(|name| work.path().join(name));
        fs::create_dir(&own).unwrap();
        fs::create_dir(&others).unwrap();
        let file = others.join("f.manifest");
        fs::write(&file, "of others").unwrap();
        (work, own, others, file)
    }

    fn open(path: &Path) -> Result<Place, String> {
        Place::open(path, "folder", Names::of("f"))
    }

    #[test]
    fn a_link_that_was_there_leads_nowhere() {
        let (_work, own, others, file) = directories();
        symlink(&others, own.join("folder.part")).unwrap();
        assert!(open(&own).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"of others");
    }

    #[test]
    fn what_is_put_in_its_place_is_left_alone() {
        let (_work, own, others, file) = directories();
        if rustix::process::geteuid().is_root() {
            chown(&own, Some(65534), Some(65534)).unwrap();
        }
        let place = open(&own).unwrap();
        let part = own.join("folder.part");
        fs::rename(&part, own.join("away")).unwrap();
        symlink(&others, &part).unwrap();
        let mut written = place.create(&place.names.manifest).unwrap();
        written.write_all(b"own").unwrap();
        place.complete(&written).unwrap();
        let before = fs::metadata(&file).unwrap();
        assert!(place.finish().unwrap_err().to_string().contains("has replaced"));
        let after = fs::metadata(&file).unwrap();
        assert_eq!(
            (before.uid(), after.uid()),
            (after.uid(), fs::metadata(&others).unwrap().uid())
        );
        assert_eq!(fs::read(&file).unwrap(), b"of others");
        assert!(!own.join("folder").exists());
        assert_eq!(fs::read_dir(own.join("away")).unwrap().count(), 0);
    }

    #[test]
    fn what_is_complete_is_of_the_owner_of_the_directory() {
        let (_work, own, ..) = directories();
        if rustix::process::geteuid().is_root() {
            chown(&own, Some(65534), Some(65534)).unwrap();
        }
        let place = open(&own).unwrap();
        let written = place.create(&place.names.base).unwrap();
        place.complete(&written).unwrap();
        place.finish().unwrap();
        let owner = fs::metadata(&own).unwrap().uid();
        for path in [own.join("folder"), own.join("folder/f.1.base.rdb")] {
            assert_eq!(fs::metadata(path).unwrap().uid(), owner);
        }
    }
}
