use std::fs;
use std::io::Write;

use tempfile::TempDir;

use super::super::disk::RealDisk;
use super::super::disk::faulty::{FaultyDisk, Operation};
use super::*;

const NAME: &str = "appendonly.aof";

fn open(disk: impl Disk + 'static, directory: &TempDir) -> Result<AofDirectory, DirectoryError> {
    let subdirectory = OsStr::new("appendonlydir");
    AofDirectory::open(Arc::new(disk), directory.path(), subdirectory, OsStr::new(NAME))
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

/// Wherever a rewrite fails, what was there before it can be loaded, or what is there after it.
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
    // The second rename is that of the old file: the first one was the manifest's.
    disk.fail(Operation::Rename, 1, libc::EIO);
    assert!(matches!(open(disk, &home), Err(DirectoryError::System { .. })));
    assert!(old.exists());
    let directory = open(RealDisk, &home).unwrap();
    assert!(!old.exists() && directory.has_adopted());
    assert!(!open(RealDisk, &home).unwrap().has_adopted());
    assert_eq!(directory.live_files(), [directory.path().join(NAME)]);
    assert_eq!(loaded(&home), "old");
    write(directory.open_increment(), "new");
    let manifest = fs::read_to_string(directory.manifest_path()).unwrap();
    assert_eq!(
        manifest,
        "file appendonly.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"
    );
    // Once there is a directory, a file of that name beside it is none of ours.
    fs::write(&old, "other").unwrap();
    assert_eq!(loaded(&home), "oldnew");
    assert!(old.exists());
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
    fs::write(directory.manifest_path(), "what?\n").unwrap();
    let error = open(RealDisk, &home).err().unwrap().to_string();
    assert!(error.contains("appendonly.aof.manifest: line 1: "), "{error}");
}
