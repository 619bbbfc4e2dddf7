//! Files of this program: who may read them, and when they are durable. No server waits for that.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

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

/// Creates a directory, with those above it, that others of the group may enter.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o750).create(path)
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
