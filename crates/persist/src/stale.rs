//! Files that a process was writing when it ended: useless, and as large as the data.
//!
//! The process id in a name says little: servers in separate containers do not see each other's
//! processes. So a file is removed only while the right to write it is claimed. What Redis leaves
//! (`temp-<pid>.rdb`) stays: Redis claims nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::disk::{Disk, TEMPORARY_PREFIX, directory_of, short_name};

/// Where the file is written that will take the place of `file`. Another server may save another
/// file in the same directory, and have the same number where the two run in containers, so the
/// name of the file belongs to it. `kind` tells apart what one server writes at the same time.
pub fn unfinished(file: &Path, kind: &str) -> PathBuf {
    let mut name = OsString::from(format!("{TEMPORARY_PREFIX}{kind}{}-", std::process::id()));
    name.push(short_name(file));
    file.with_file_name(name)
}

/// Removes what processes left unfinished of RDB files in the directory of `own`, if no such
/// process is seen to run. `claim` claims the file that such a file belongs to; what it returns is
/// dropped after the removal. Nothing is removed of a file that it does not claim. The name of a
/// file other than `own` is the [short](short_name) one. Returns the removed files.
pub fn remove_snapshots<C>(
    disk: &dyn Disk,
    own: &Path,
    claim: impl Fn(&Path) -> Option<C>,
) -> Vec<PathBuf> {
    let own_name = short_name(own);
    remove(disk, directory_of(own), |path, rest| {
        let (process, name) = process_and_file(rest)?;
        if is_running(process) || path == own {
            return None;
        }
        if name == own_name.as_bytes() {
            return claim(own);
        }
        claim(&own.with_file_name(OsStr::from_bytes(name)))
    })
}

/// The process that was writing a file of this name, and the name that the file was to have.
fn process_and_file(rest: &[u8]) -> Option<(u32, &[u8])> {
    let rest = rest.strip_prefix(b"emptied-").unwrap_or(rest);
    let end = rest.iter().position(|&byte| byte == b'-')?;
    let process = u32::try_from(base::num::parse_i64(&rest[..end])?).ok()?;
    Some((process, &rest[end + 1..])).filter(|(_, name)| !name.is_empty())
}

/// Removes the unfinished files, with names that begin with `prefix`, in the directory of an
/// append-only file. The caller has claimed it. Nothing is removed that is in `listed`, nor a list:
/// an append-only file may have a name that begins as those of unfinished files do. Returns the
/// removed files.
pub fn remove_unfinished(
    disk: &dyn Disk,
    directory: &Path,
    prefix: &OsStr,
    listed: &[OsString],
) -> Vec<PathBuf> {
    remove(disk, directory, |path, rest| {
        let name = path.file_name().unwrap_or_default();
        let is_ours = is_base(rest) || rest.starts_with(prefix.as_bytes());
        let stays = name.as_bytes().ends_with(b".manifest") || listed.iter().any(|it| it == name);
        (is_ours && !stays).then_some(())
    })
}

/// Whether a process was writing a base under this name: see `rewrite`.
fn is_base(rest: &[u8]) -> bool {
    let number = rest.strip_prefix(b"rewriteaof-bg-").and_then(|rest| rest.strip_suffix(b".aof"));
    number.is_some_and(|number| number.iter().all(u8::is_ascii_digit))
}

/// Removes the files for which `claim` returns something, which it keeps until the file is removed.
/// It gets a file, and its name behind [`TEMPORARY_PREFIX`].
fn remove<C>(
    disk: &dyn Disk,
    directory: &Path,
    claim: impl Fn(&Path, &[u8]) -> Option<C>,
) -> Vec<PathBuf> {
    // In a directory that cannot be read, or does not exist yet, there is nothing to remove.
    let mut names = disk.list(directory).unwrap_or_default();
    names.retain(|name| {
        let rest = name.as_bytes().strip_prefix(TEMPORARY_PREFIX.as_bytes());
        let path = directory.join(name);
        let Some(rest) = rest.filter(|_| path.is_file()) else { return false };
        let claimed = claim(&path, rest);
        // A file that cannot be removed does no harm.
        claimed.is_some() && disk.remove(&path).is_ok()
    });
    names.iter().map(|name| directory.join(name)).collect()
}

/// Whether another process with that number exists. A process that had ours is gone: we have
/// written nothing yet.
fn is_running(process: u32) -> bool {
    process != std::process::id() && Path::new(&format!("/proc/{process}")).exists()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::disk::RealDisk;
    use super::*;

    #[test]
    fn only_files_that_nobody_writes_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("dump.rdb");
        let own =
            ["", "emptied-"].map(|kind| format!("temp-{kind}{}-dump.rdb", std::process::id()));
        assert_eq!(unfinished(&file, "emptied-"), home.path().join(&own[1]));
        let long = "d".repeat(255);
        let of_long = unfinished(Path::new(&long), "emptied-");
        let stay = [
            "temp-1-dump.rdb",
            "temp-x-dump.rdb",
            "temp-4194999-other.rdb",
            "temp-4194999",
            "temp-4194999-",
            "temp-4194999.rdb",
            "dump.rdb",
            "temp-b.aof.manifest",
        ];
        let goes = [
            "temp-4194999-dump.rdb",
            "temp-emptied-4194999-dump.rdb",
            "temp-4194999-former-dump.rdb",
            of_long.to_str().unwrap(),
            &own[0],
            &own[1],
            "temp-rewriteaof-bg-7.aof",
            "temp-a.aof.incr",
        ];
        stay.iter().chain(&goes).for_each(|name| fs::write(home.path().join(name), "x").unwrap());
        // The right to write `other.rdb` is another server's.
        let free = |path: &Path| {
            assert_eq!(path.parent(), Some(home.path()));
            (!path.ends_with("other.rdb")).then_some(())
        };
        assert!(remove_snapshots(&RealDisk, &file, |_| None::<()>).is_empty());
        let mut removed = remove_snapshots(&RealDisk, &file, free);
        removed.extend(remove_unfinished(&RealDisk, home.path(), OsStr::new("a.aof"), &[]));
        removed.sort();
        let mut expected = goes.map(|name| home.path().join(name)).to_vec();
        expected.sort();
        assert_eq!(removed, expected);
        stay.iter().for_each(|name| assert!(home.path().join(name).exists(), "{name}"));
        assert!(remove_snapshots(&RealDisk, &home.path().join("none/dump.rdb"), free).is_empty());
    }

    /// Files whose names look like those of unfinished ones.
    #[test]
    fn what_is_in_use_is_not_removed() {
        let home = tempfile::tempdir().unwrap();
        let names = [
            "temp-rewriteaof-a.1.base.rdb",
            "temp-rewriteaof-a.manifest",
            "temp-rewriteaof-bg-7.aof",
            "temp-4194999-dump.rdb",
        ];
        names.iter().for_each(|name| fs::write(home.path().join(name), "x").unwrap());
        let directory = home.path();
        for prefix in ["temp-rewriteaof-a", "rewriteaof-a", "temp-rewriteaof-bg-7.aof"] {
            let listed = ["temp-rewriteaof-bg-7.aof", "temp-rewriteaof-a.1.base.rdb"];
            let listed = listed.map(OsString::from);
            let prefix = OsStr::new(prefix);
            assert!(remove_unfinished(&RealDisk, directory, prefix, &listed).is_empty());
        }
        assert!(remove_snapshots(&RealDisk, &directory.join(names[3]), |_| Some(())).is_empty());
    }

    #[test]
    fn a_file_with_a_long_name_is_recognised() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("d".repeat(255));
        let path = unfinished(&file, "");
        fs::write(&path, "x").unwrap();
        let claim = |path: &Path| (path == file).then_some(());
        assert_eq!(remove_snapshots(&RealDisk, &file, claim), [path]);
    }
}
