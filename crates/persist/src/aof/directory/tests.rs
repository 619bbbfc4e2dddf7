use std::fs;
use std::io::Write;

use tempfile::TempDir;

use super::*;
use crate::disk::RealDisk;
use crate::disk::faulty::{FaultyDisk, Operation};

const NAME: &str = "appendonly.aof";

fn open(disk: impl Disk + 'static, directory: &TempDir) -> Result<AofDirectory, DirectoryError> {
    let subdirectory = OsStr::new("appendonlydir");
    let (disk, name) = (Arc::new(disk), OsStr::new(NAME));
    AofDirectory::open(disk, directory.path(), subdirectory, name, OldFile::Adopt)
}

fn list(directory: &AofDirectory) -> Vec<String> {
    let mut names = RealDisk.list(directory.path()).unwrap();
    names.sort();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

/// What a start would load: the contents of the files in their order.
fn loaded(directory: &TempDir) -> String {
    let opened = open(RealDisk, directory).unwrap();
    opened.live_files().iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

fn write(opened: io::Result<Opened>, content: &str) {
    opened.unwrap().file.write_all(content.as_bytes()).unwrap();
}

/// A complete base, outside the directory.
fn written_base(directory: &TempDir, content: &str) -> PathBuf {
    let path = directory.path().join("temp-rewrite");
    fs::write(&path, content).unwrap();
    path
}

#[test]
fn a_rewrite_replaces_what_it_covers() {
    let home = tempfile::tempdir().unwrap();
    let directory = open(RealDisk, &home).unwrap();
    assert!(directory.live_files().is_empty() && !directory.path().exists());
    let base = written_base(&home, "(empty)");
    write(directory.open_hidden_increment(), "1");
    assert_eq!(loaded(&home), "", "an increment without its base is nothing");
    directory.finish_rewrite(&base, BaseFormat::Rdb, Successor::Hidden).unwrap();
    assert_eq!(loaded(&home), "(empty)1");
    write(directory.resume(), "2");
    write(directory.open_increment(), "3");
    let sizes = (directory.closed_size().unwrap(), directory.sizes().unwrap());
    assert_eq!(sizes, (9, (7, 10)), "all but the newest; the base, and all");
    let cut = Successor::Listed(directory.last_increment());
    assert_eq!(loaded(&home), "(empty)123", "a rewrite that does not end changes nothing");
    let base = written_base(&home, "(12)");
    directory.finish_rewrite(&base, BaseFormat::Aof, cut).unwrap();
    assert_eq!(loaded(&home), "(12)3");
    assert_eq!(directory.sizes().unwrap(), (4, 5));
    assert_eq!(directory.manifest().history.len(), 2);
    let removed = directory.remove_history().unwrap();
    assert_eq!(removed, ["appendonly.aof.1.base.rdb", "appendonly.aof.1.incr.aof"]);
    let left = ["2.base.aof", "2.incr.aof", "manifest"].map(|suffix| format!("{NAME}.{suffix}"));
    assert_eq!(list(&directory), left);
    assert_eq!(loaded(&home), "(12)3");
    let resumed = directory.resume().unwrap();
    assert_eq!((resumed.name.to_str(), resumed.length), (Some(&left[1][..]), 1));
}

#[test]
fn what_an_earlier_process_left_is_durable_before_more_is_written() {
    let home = tempfile::tempdir().unwrap();
    let earlier = open(RealDisk, &home).unwrap();
    let base = written_base(&home, "(empty)");
    write(earlier.open_hidden_increment(), "1");
    earlier.finish_rewrite(&base, BaseFormat::Rdb, Successor::Hidden).unwrap();
    write(earlier.open_increment(), "2");
    let disk = FaultyDisk::new();
    let directory = open(disk.clone(), &home).unwrap();
    write(directory.resume(), "3");
    assert_eq!(
        disk.count(Operation::Sync),
        2,
        "both increments: their process may have been killed"
    );
    assert_eq!(disk.count(Operation::SyncDirectory), 2, "the list, and the name of its directory");
    disk.fail(Operation::Sync, 0, 5);
    assert!(directory.resume().is_err());
    assert_eq!(loaded(&home), "(empty)123");
}

/// At every place where a rewrite can fail, the data from before it can be loaded, or the data from
/// after it.
#[test]
fn a_failure_leaves_the_data_as_it_was() {
    let steps = [
        Operation::Create,
        Operation::Write,
        Operation::Sync,
        Operation::Rename,
        Operation::SyncDirectory,
        Operation::Remove,
    ];
    let mut failures = 0;
    for step in steps {
        for after in 0..8 {
            let home = tempfile::tempdir().unwrap();
            let disk = FaultyDisk::new();
            let directory = open(disk.clone(), &home).unwrap();
            write(directory.open_increment(), "old");
            disk.fail(step, after, libc::ENOSPC);
            let rewritten = (|| {
                directory.open_increment()?.file.write_all(b"new")?;
                let cut = Successor::Listed(directory.last_increment());
                let base = written_base(&home, "old");
                directory.finish_rewrite(&base, BaseFormat::Aof, cut)?;
                directory.remove_history()
            })();
            let content = loaded(&home);
            match rewritten {
                Ok(_) => assert_eq!(content, "oldnew", "{step:?} {after}"),
                Err(error) => {
                    failures += 1;
                    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{step:?} {after}");
                    assert!(
                        ["old", "oldnew"].contains(&&content[..]),
                        "{step:?} {after} {content}"
                    );
                }
            }
            // When there is space again, everything goes on.
            disk.heal();
            let base = written_base(&home, "(all)");
            directory.open_hidden_increment().unwrap();
            directory.finish_rewrite(&base, BaseFormat::Rdb, Successor::Hidden).unwrap();
            directory.remove_history().unwrap();
            assert_eq!(loaded(&home), "(all)", "{step:?} {after}");
        }
    }
    assert!(failures >= steps.len(), "{failures}");
}

#[test]
fn a_file_from_before_the_directory_moves_in() {
    let home = tempfile::tempdir().unwrap();
    let old = home.path().join(NAME);
    let disk = FaultyDisk::new();
    fs::write(&old, "old").unwrap();
    // The second rename is that of the old file; the first is that of the manifest.
    disk.fail(Operation::Rename, 1, libc::EIO);
    assert!(matches!(open(disk, &home), Err(DirectoryError::System { .. })));
    assert!(old.exists());
    let directory = open(RealDisk, &home).unwrap();
    assert!(!old.exists());
    assert_eq!(directory.live_files(), [directory.path().join(NAME)]);
    assert_eq!(loaded(&home), "old");
    write(directory.open_increment(), "new");
    let manifest = fs::read_to_string(directory.manifest_path()).unwrap();
    assert_eq!(
        manifest,
        "file appendonly.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"
    );
    // Once there is a directory, a file of that name beside it does not belong to us.
    fs::write(&old, "other").unwrap();
    assert_eq!(loaded(&home), "oldnew");
    assert!(old.exists());
}

/// Files without a list are neither replaced nor added to.
#[test]
fn files_without_a_list_stay_as_they_are() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("appendonlydir");
    fs::create_dir(&path).unwrap();
    let stale = ["appendonly.aof.2.base.rdb", "appendonly.aof.3.incr.aof"];
    stale.iter().for_each(|name| fs::write(path.join(name), "stale").unwrap());
    fs::write(path.join("appendonly.aof.x.incr.aof"), "of somebody else").unwrap();
    fs::write(path.join("other.aof.9.incr.aof"), "of another prefix").unwrap();
    let directory = open(RealDisk, &home).unwrap();
    assert!(directory.has_unlisted_parts());
    directory.add_base(BaseFormat::Rdb, |file| file.write_all(b"(empty)")).unwrap();
    write(directory.resume(), "1");
    assert_eq!(loaded(&home), "(empty)1");
    let opened = open(RealDisk, &home).unwrap();
    assert!(!opened.has_unlisted_parts());
    assert_eq!(opened.last_increment(), 4);
    stale.iter().for_each(|name| assert_eq!(fs::read(path.join(name)).unwrap(), b"stale"));
}

/// A rewrite that ended between the renames and the list leaves files that do not count.
#[test]
fn what_a_list_does_not_name_is_not_added_to() {
    let home = tempfile::tempdir().unwrap();
    let directory = open(RealDisk, &home).unwrap();
    directory.add_base(BaseFormat::Rdb, |file| file.write_all(b"(base)")).unwrap();
    fs::write(directory.path().join("appendonly.aof.1.incr.aof"), "stale").unwrap();
    write(directory.resume(), "1");
    assert_eq!(loaded(&home), "(base)1");
    assert_eq!(fs::read(directory.path().join("appendonly.aof.1.incr.aof")).unwrap(), b"stale");
}

#[test]
fn an_old_file_that_is_not_loaded_stays() {
    let home = tempfile::tempdir().unwrap();
    let old = home.path().join(NAME);
    fs::write(&old, "old").unwrap();
    let (disk, name) = (Arc::new(RealDisk), OsStr::new(NAME));
    let subdirectory = OsStr::new("appendonlydir");
    let directory =
        AofDirectory::open(disk, home.path(), subdirectory, name, OldFile::Leave).unwrap();
    let base = written_base(&home, "(base)");
    directory.open_hidden_increment().unwrap();
    directory.finish_rewrite(&base, BaseFormat::Rdb, Successor::Hidden).unwrap();
    directory.remove_history().unwrap();
    assert_eq!(fs::read_to_string(&old).unwrap(), "old");
    assert_eq!(loaded(&home), "(base)");
}

#[test]
fn a_directory_that_cannot_be_trusted_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let directory = open(RealDisk, &home).unwrap();
    write(directory.open_increment(), "x");
    let increment = directory.live_files().remove(0);
    directory.truncate(&increment, 0).unwrap();
    assert_eq!(fs::read(&increment).unwrap(), b"");
    fs::remove_file(&increment).unwrap();
    let error = open(RealDisk, &home).err().unwrap();
    assert!(matches!(&error, DirectoryError::Missing { path } if *path == increment), "{error}");
    assert!(error.to_string().ends_with("No such file or directory"), "{error}");
    fs::write(directory.manifest_path(), "what?\n").unwrap();
    let error = open(RealDisk, &home).err().unwrap().to_string();
    assert!(error.contains("appendonly.aof.manifest: line 1: "), "{error}");
}

/// A machine that stops leaves no list that names a file which is not there.
#[test]
fn the_name_of_an_increment_is_durable_before_a_list_has_it() {
    let home = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::new();
    let directory = open(disk.clone(), &home).unwrap();
    directory.open_increment().unwrap();
    let operations = disk.operations();
    let place = |wanted: Operation| operations.iter().position(|done| *done == wanted).unwrap();
    let made = place(Operation::Create);
    let synced = operations[made..].iter().position(|done| *done == Operation::SyncDirectory);
    assert!(made + synced.unwrap() < place(Operation::Rename), "{operations:?}");
}

#[test]
fn all_lists_of_a_directory_say_what_is_in_use() {
    let home = tempfile::tempdir().unwrap();
    let directory = open(RealDisk, &home).unwrap();
    assert_eq!(listed_names(&RealDisk, directory.path()), None, "there is none");
    directory.open_increment().unwrap();
    let listed = listed_names(&RealDisk, directory.path()).unwrap();
    assert_eq!(listed, ["appendonly.aof.1.incr.aof"]);
    fs::write(directory.path().join("other.manifest"), "?").unwrap();
    assert_eq!(listed_names(&RealDisk, directory.path()), None);
}
