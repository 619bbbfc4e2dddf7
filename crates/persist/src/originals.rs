//! Changing files in such a way that the originals stay beside them.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::{Disk, DiskFile, directory_of, temporary_of};

/// The ending of an original's name.
const ORIGINAL: &str = ".original";

/// Replaces this file by another one, and gives it the name of an original, which is returned.
/// There is a complete file of this name at every instant.
///
/// # Errors
/// The system's, or those of `write`; the file is then unchanged.
pub fn replace(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&mut dyn DiskFile) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let temporary = temporary_of(path);
    let original = free_name(disk, path)?;
    let replaced = disk.create(&temporary).and_then(|mut output| {
        write(&mut *output)?;
        output.sync()?;
        disk.link(path, &original)?;
        disk.rename(&temporary, path)
    });
    if let Err(error) = replaced {
        // The rest of the attempt is of no use; the first error is the one that matters.
        let _ = disk.remove(&temporary);
        let _ = disk.remove(&original);
        return Err(error);
    }
    disk.sync_directory(directory_of(path))?;
    Ok(original)
}

/// Renames a file to a free name for originals, and leaves nothing in its place.
///
/// # Errors
/// The system's.
pub fn set_aside(disk: &dyn Disk, path: &Path) -> io::Result<PathBuf> {
    let aside = free_name(disk, path)?;
    disk.rename(path, &aside)?;
    disk.sync_directory(directory_of(path))?;
    Ok(aside)
}

/// A name for the original that no file has.
fn free_name(disk: &dyn Disk, path: &Path) -> io::Result<PathBuf> {
    let mut count = 1;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(ORIGINAL);
        if count > 1 {
            name.push(format!(".{count}"));
        }
        let name = PathBuf::from(name);
        if disk.length(&name)?.is_none() {
            return Ok(name);
        }
        count += 1;
    }
}
