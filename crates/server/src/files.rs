//! The files of the configuration, and paths as configurations give them: as bytes.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The path that these bytes name.
pub fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// What went wrong, in the system's words alone.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// The world as loading a configuration sees it.
pub struct ConfigFiles;

impl config::Host for ConfigFiles {
    fn read(&self, file: &[u8]) -> Result<Vec<u8>, String> {
        fs::read(path(file)).map_err(|error| reason(&error))
    }

    fn glob(&self, pattern: &[u8]) -> Vec<Vec<u8>> {
        let mut found = vec![if pattern.starts_with(b"/") { b"/".to_vec() } else { Vec::new() }];
        for part in pattern.split(|&byte| byte == b'/').filter(|part| !part.is_empty()) {
            found = found.iter().flat_map(|directory| matches_in(directory, part)).collect();
        }
        found.sort();
        found
    }

    fn directory(&self, directory: &[u8]) -> Result<Vec<u8>, String> {
        let found = fs::canonicalize(path(directory)).map_err(|error| reason(&error))?;
        if !found.is_dir() {
            return Err("Not a directory".to_owned());
        }
        Ok(found.as_os_str().as_bytes().to_vec())
    }

    fn has_command(&self, name: &[u8]) -> bool {
        engine::commands::registry().find(name).is_some()
    }
}

/// The entries of `directory` (empty for the current one) that one part of a pattern matches. As in
/// a shell, a leading dot must be written out.
fn matches_in(directory: &[u8], part: &[u8]) -> Vec<Vec<u8>> {
    let join = |name: &[u8]| match directory {
        b"" => name.to_vec(),
        b"/" => [b"/", name].concat(),
        _ => [directory, b"/", name].concat(),
    };
    if !part.iter().any(|byte| b"*?[".contains(byte)) {
        let whole = join(part);
        return if path(&whole).exists() { vec![whole] } else { Vec::new() };
    }
    let searched = if directory.is_empty() { Path::new(".") } else { path(directory) };
    let Ok(entries) = fs::read_dir(searched) else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().as_bytes().to_vec()));
    names
        .filter(|name| !name.starts_with(b".") || part.starts_with(b"."))
        .filter(|name| base::glob::matches(part, name))
        .map(|name| join(&name))
        .collect()
}

/// Replaces a file by one with this text, all or nothing, also if the machine stops meanwhile. The
/// permissions stay; a link stays a link.
///
/// # Errors
/// The system's; the old file is untouched then.
pub fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mode = fs::metadata(&file).map_or(0o644, |metadata| metadata.permissions().mode());
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
        // What remains of the attempt is of no use; the first error is the one that matters.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_synced(file: &Path, mode: u32, text: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(file)?;
    file.write_all(text)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use config::Host;

    use super::*;

    #[test]
    fn patterns_find_files_in_order() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b.conf", "a.conf", ".hidden.conf", "c.txt"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let base = directory.path().to_str().unwrap();
        let find = |pattern: &str| -> Vec<String> {
            let found = ConfigFiles.glob(format!("{base}{pattern}").as_bytes());
            let names = found.into_iter().map(|path| String::from_utf8(path).unwrap());
            names.map(|path| path.strip_prefix(base).unwrap().to_owned()).collect()
        };
        assert_eq!(find("/*.conf"), ["/a.conf", "/b.conf"]);
        assert_eq!(find("/[bc].*"), ["/b.conf", "/c.txt"]);
        assert_eq!(find("/x/*.conf"), [""; 0]);
        assert_eq!(find("/.h*"), ["/.hidden.conf"]);
    }

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
        assert!(replace(&directory.path().join("no/x.conf"), b"").is_err());
    }
}
