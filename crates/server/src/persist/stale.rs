//! Files that a process was writing when it ended: useless, and as large as the data.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::disk::{Disk, TEMPORARY_PREFIX, directory_of};

/// Where the file is written that will take the place of `file`. Another server may save another file in
/// the same directory, and have the same number where the two run in containers, so the name of the file
/// belongs to it. `kind` tells apart what one server writes at the same time.
pub fn unfinished(file: &Path, kind: &str) -> PathBuf {
    let mut name = OsString::from(format!("{TEMPORARY_PREFIX}{kind}{}-", std::process::id()));
    name.push(file.file_name().unwrap_or_default());
    file.with_file_name(name)
}

/// Removes what processes which have ended left unfinished of this file, if the caller has claimed it.
/// Returns the removed files.
pub fn remove_snapshots(disk: &dyn Disk, file: &Path) -> Vec<PathBuf> {
    let own = file.file_name().unwrap_or_default().as_bytes();
    remove(disk, directory_of(file), |rest| {
        let rest = rest.strip_prefix(b"emptied-").unwrap_or(rest);
        let number = rest.strip_suffix(own).and_then(|rest| rest.strip_suffix(b"-"));
        number.and_then(process).is_some_and(|process| !is_running(process))
    })
}

/// Removes the unfinished files, with names that begin with `prefix`, in the directory of an
/// append-only file. The caller has claimed it. Returns the removed files.
pub fn remove_unfinished(disk: &dyn Disk, directory: &Path, prefix: &OsStr) -> Vec<PathBuf> {
    remove(disk, directory, |rest| {
        rest.starts_with(b"rewriteaof-") || rest.starts_with(prefix.as_bytes())
    })
}

fn remove(disk: &dyn Disk, directory: &Path, is_stale: impl Fn(&[u8]) -> bool) -> Vec<PathBuf> {
    // In a directory that cannot be read, or does not exist yet, there is nothing to remove.
    let names = disk.list(directory).unwrap_or_default();
    let stale = names.iter().filter(|name| {
        name.as_bytes().strip_prefix(TEMPORARY_PREFIX.as_bytes()).is_some_and(&is_stale)
    });
    let paths = stale.map(|name| directory.join(name));
    // A file that cannot be removed does no harm.
    paths.filter(|path| path.is_file() && disk.remove(path).is_ok()).collect()
}

fn process(digits: &[u8]) -> Option<u32> {
    u32::try_from(base::num::parse_i64(digits)?).ok()
}

/// Whether another process with that number exists. A process that had ours is gone: we have written
/// nothing yet.
fn is_running(process: u32) -> bool {
    process != std::process::id() && Path::new(&format!("/proc/{process}")).exists()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::disk::RealDisk;
    use super::*;

    #[test]
    fn only_what_nobody_writes_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("dump.rdb");
        let own =
            ["", "emptied-"].map(|kind| format!("temp-{kind}{}-dump.rdb", std::process::id()));
        assert_eq!(unfinished(&file, "emptied-"), home.path().join(&own[1]));
        let stay = [
            "temp-1-dump.rdb",
            "temp-x-dump.rdb",
            "temp-4194999-other.rdb",
            "temp-4194999",
            "dump.rdb",
            "temp-b.aof.manifest",
        ];
        let goes = [
            "temp-4194999-dump.rdb",
            "temp-emptied-4194999-dump.rdb",
            &own[0],
            &own[1],
            "temp-rewriteaof-bg-7.aof",
            "temp-a.aof.incr",
        ];
        stay.iter().chain(&goes).for_each(|name| fs::write(home.path().join(name), "x").unwrap());
        let mut removed = remove_snapshots(&RealDisk, &file);
        removed.extend(remove_unfinished(&RealDisk, home.path(), OsStr::new("a.aof")));
        removed.sort();
        let mut expected = goes.map(|name| home.path().join(name)).to_vec();
        expected.sort();
        assert_eq!(removed, expected);
        stay.iter().for_each(|name| assert!(home.path().join(name).exists(), "{name}"));
        assert!(remove_snapshots(&RealDisk, &home.path().join("none/dump.rdb")).is_empty());
    }
}
