//! The files that a configuration is read from.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use process::paths::{path, reason};

/// The world as loading a configuration sees it.
pub struct ConfigFiles;

impl config::LoadEnvironment for ConfigFiles {
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
        commands::registry().find(name).is_some()
    }
}

/// The entries of `directory` (empty for the current one) that match one part of a pattern. As in a
/// shell, a leading dot must be written out.
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

#[cfg(test)]
mod tests {
    use config::LoadEnvironment;

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
}
