//! Replacing the configuration file: CONFIG REWRITE.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The mode of a file that was not there before.
const USUAL_MODE: u32 = 0o640;

/// Replaces a file by one with this text, all or nothing, also if the machine stops meanwhile. The
/// permissions stay; a link stays a link.
///
/// # Errors
/// The system's; the old file is untouched then.
pub fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mode = fs::metadata(&file).map_or(USUAL_MODE, |metadata| metadata.permissions().mode());
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = directory.join(name);
    let written = write_synced(&temporary, mode, text)
        .and_then(|()| fs::rename(&temporary, &file))
        .and_then(|()| File::open(&directory)?.sync_all());
    if written.is_err() {
        // The rest of the attempt is of no use; the first error is the one that matters.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_synced(file: &Path, mode: u32, text: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(file)?;
    // The umask has taken some of that away.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(text)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.conf");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let link = directory.path().join("link.conf");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        replace(&file, b"newer").unwrap();
        let made = directory.path().join("y.conf");
        replace(&made, b"").unwrap();
        for (file, mode) in [(file, 0o666), (made, USUAL_MODE)] {
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, mode);
        }
        assert!(replace(&directory.path().join("no/x.conf"), b"").is_err());
    }
}
