//! Files of this program: who may read them, and when they are durable. No server waits for that.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// What follows the names of files and directories that are not complete.
pub(crate) const BEGUN: &str = ".part";

/// Creates a file that others of the group may read. Nothing is there before, not even a link.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).mode(0o640).create_new(true).open(path)
}

/// Removes a file if there is one.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Gives a file a name that no other one has.
pub(crate) fn name_anew(path: &Path, name: &Path) -> io::Result<()> {
    match renameat_with(CWD, path, CWD, name, RenameFlags::NOREPLACE) {
        // Some file systems cannot do it.
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(path, name),
        named => Ok(named?),
    }
}

/// Creates a directory that others of the group may enter, if it is not there, and those above it.
/// Their names are durable.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    let create = || DirBuilder::new().mode(0o750).create(path);
    let created = match (create(), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == ErrorKind::NotFound => {
            create_directory(parent).and_then(|()| create())
        }
        (created, _) => created,
    };
    match created {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        created => created.and_then(|()| sync_name_of(path)),
    }
}

/// Gives a new file, which is open, to the owner of the directory that it lies in.
pub(crate) fn give_to_owner_of(directory: &File, file: &File) -> io::Result<()> {
    let (owner, own) = (directory.metadata()?, file.metadata()?);
    match (owner.uid(), owner.gid()) == (own.uid(), own.gid()) {
        true => Ok(()),
        false => fchown(file, Some(owner.uid()), Some(owner.gid())),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_names(directory: &Path) -> io::Result<()> {
    sync_directory(&File::open(directory)?)
}

/// The same of a directory that is open.
pub(crate) fn sync_directory(directory: &File) -> io::Result<()> {
    match directory.sync_all() {
        // Some file systems cannot do it, and say so.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Makes the name of a file or a directory durable.
pub(crate) fn sync_name_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_names(parent.unwrap_or(Path::new(".")))
}

/// Waits until all that was written into a file is durable.
pub(crate) fn make_durable(file: &File) -> io::Result<()> {
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_made_with_those_above_them() {
        let work = tempfile::tempdir().unwrap();
        let path = work.path().join("one/two/three");
        create_directory(&path).unwrap();
        create_directory(&path).unwrap();
        let file = path.join("file");
        create(&file).unwrap();
        create_directory(&file).unwrap_err();
        create_directory(&file.join("four")).unwrap_err();
        create_directory(Path::new("")).unwrap_err();
    }

    #[test]
    fn a_name_that_another_file_has_is_not_given() {
        let work = tempfile::tempdir().unwrap();
        let [part, whole] = ["part", "whole"].map(|name| work.path().join(name));
        create(&part).unwrap();
        name_anew(&part, &whole).unwrap();
        create(&part).unwrap();
        name_anew(&part, &whole).unwrap_err();
    }
}
