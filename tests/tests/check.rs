//! `dunlin check` as an operator runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::Result;
use tests::client::Reply;
use tests::server::{Server, Target, dunlin_binary};

fn check(arguments: &[&str]) -> Result<Output> {
    Ok(Command::new(dunlin_binary()?).arg("check").args(arguments).output()?)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_exit_code_says_whether_a_server_can_load_it() -> Result<()> {
    let home = tempfile::tempdir()?;
    let file = home.path().join("x.aof");
    let path = file.to_str().expect("a plain name");
    let good = "#TS:100\r\n*1\r\n$4\r\nPING\r\n#TS:200\r\n*1\r\n$4\r\nPING\r\n";
    fs::write(&file, format!("{good}*1\r\n$9\r\nPI"))?;
    let damaged = check(&[path])?;
    assert_eq!(damaged.status.code(), Some(1));
    assert!(text(&damaged.stdout).contains("TORN: the file ends within a command"));
    let fixed = check(&["--fix", path])?;
    assert_eq!(fixed.status.code(), Some(0), "{}", text(&fixed.stdout));
    assert_eq!(fs::read_to_string(&file)?, good);
    assert_eq!(check(&[path])?.status.code(), Some(0));
    assert_eq!(check(&[path, "--truncate-to-timestamp", "150"])?.status.code(), Some(0));
    assert_eq!(fs::read_to_string(&file)?, &good[..good.len() / 2]);
    let early = check(&[path, "--truncate-to-timestamp", "99"])?;
    assert_eq!(early.status.code(), Some(1));
    assert!(text(&early.stderr).contains("nothing to go back to"), "{}", text(&early.stderr));
    Ok(())
}

#[test]
fn arguments_that_make_no_sense_are_explained() -> Result<()> {
    let wrong: [&[&str]; 5] = [
        &[],
        &["--what", "x"],
        &["x", "y"],
        &["x", "--truncate-to-timestamp"],
        &["x", "--truncate-to-timestamp", "soon"],
    ];
    for arguments in wrong {
        let output = check(arguments)?;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains("Usage: dunlin check"), "{arguments:?}");
    }
    let help = check(&["--help"])?;
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("Usage: dunlin check"));
    let missing = check(&["/nonexistent/x.aof"])?;
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).starts_with("dunlin: /nonexistent/x.aof: No such file"));
    Ok(())
}

/// Names below a directory, and the contents of the files.
type Files<'f> = &'f [(&'f str, &'f [u8])];

/// An RDB file of the reference.
fn golden(name: &str) -> Result<Vec<u8>> {
    Ok(fs::read(format!("{}/golden/{name}.rdb", env!("CARGO_MANIFEST_DIR")))?)
}

/// Puts files into a directory.
fn write(directory: &Path, files: Files) -> Result<()> {
    for (name, content) in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap_or(directory))?;
        fs::write(path, content)?;
    }
    Ok(())
}

/// A server that has run in its directory, which has nothing but these files now.
fn ended_with(target: Target, files: Files) -> Result<Server> {
    let append_only = if files[0].0.contains('/') { "yes" } else { "no" };
    let mut server = Server::start(target, &[("appendonly", append_only)])?;
    server.kill();
    for entry in fs::read_dir(server.directory())? {
        let path = entry?.path();
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    write(server.directory(), files)?;
    Ok(server)
}

/// Whether a server starts with these files and has this many keys.
fn starts_with(target: Target, files: Files, keys: i64) -> Result<bool> {
    let mut server = ended_with(target, files)?;
    Ok(server.start_again().is_ok()
        && server.connect()?.call_text("DBSIZE")? == Reply::Integer(keys))
}

const MANIFEST: (&str, &[u8]) = (
    "appendonlydir/appendonly.aof.manifest",
    b"file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n",
);
const BASE: &str = "appendonlydir/appendonly.aof.1.base.rdb";
const INCREMENT: &str = "appendonlydir/appendonly.aof.1.incr.aof";
const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$3\r\nnew\r\n$1\r\n1\r\n";
const UNKNOWN: &[u8] = b"*2\r\n$3\r\nFOO\r\n$1\r\nx\r\n";
const UNKNOWN_WITHIN: &[u8] = b"*1\r\n$5\r\nMULTI\r\n*1\r\n$3\r\nFOO\r\n*1\r\n$4\r\nEXEC\r\n";

/// The exit code is 0 exactly if both servers start with all keys.
#[test]
fn the_exit_code_is_zero_if_servers_start_with_all_keys() -> Result<()> {
    let plain = golden("plain")?;
    let longer = [&plain[..], b"what nobody reads"].concat();
    let with_commands = [&plain[..], SET].concat();
    let wrong = [b"X", &plain[1..]].concat();
    // Expired keys of an append-only file stay, so this file has none.
    let base = golden("lru")?;
    let longer_base = [&base[..], SET].concat();
    let garbage_base = [&base[..], b"garbage"].concat();
    let cases: [(Files, i64, bool); 13] = [
        (&[("dump.rdb", &plain)], 33, true),
        (&[("dump.rdb", &longer)], 33, true),
        (&[("dump.rdb", &with_commands)], 33, true),
        (&[("dump.rdb", b"")], 0, false),
        (&[("dump.rdb", SET)], 1, false),
        (&[("dump.rdb", &wrong)], 33, false),
        (&[(BASE, &base), (INCREMENT, SET), MANIFEST], 2, true),
        (&[(BASE, &longer_base), (INCREMENT, b""), MANIFEST], 2, true),
        (&[(BASE, &garbage_base), (INCREMENT, SET), MANIFEST], 2, false),
        (&[(BASE, SET), (INCREMENT, b""), MANIFEST], 1, true),
        (&[(BASE, &base), (INCREMENT, UNKNOWN), MANIFEST], 1, false),
        (&[(BASE, &base), (INCREMENT, UNKNOWN_WITHIN), MANIFEST], 1, false),
        // Without a list they start with nothing.
        (&[(BASE, &base), (INCREMENT, SET)], 2, false),
    ];
    for (files, keys, good) in cases {
        let home = tempfile::tempdir()?;
        write(home.path(), files)?;
        let output = check(&[home.path().to_str().expect("a plain name")])?;
        let names: Vec<_> = files.iter().map(|(name, _)| *name).collect();
        let report = text(&output.stdout);
        assert_eq!(output.status.code(), Some(i32::from(!good)), "{names:?}: {report}");
        for target in [Target::Dunlin, Target::Reference] {
            assert_eq!(starts_with(target, files, keys)?, good, "{target:?} {names:?}: {report}");
        }
    }
    Ok(())
}

/// Bytes behind an RDB file may be cut off, and first bytes that are wrong are put right: both
/// servers load the result, and the original stays.
#[test]
fn a_damaged_rdb_file_is_repaired() -> Result<()> {
    let plain = golden("plain")?;
    for damaged in [[&plain[..], b"more"].concat(), [b"X", &plain[1..]].concat()] {
        for target in [Target::Dunlin, Target::Reference] {
            let mut server = ended_with(target, &[("dump.rdb", &damaged)])?;
            let file = server.directory().join("dump.rdb");
            let fixed = check(&["--fix", file.to_str().expect("a plain name")])?;
            assert_eq!(fixed.status.code(), Some(0), "{}", text(&fixed.stdout));
            assert!(fs::read(&file)? == plain, "{}", text(&fixed.stdout));
            assert!(fs::read(file.with_file_name("dump.rdb.original"))? == damaged);
            server.start_again()?;
            assert_eq!(server.connect()?.call_text("DBSIZE")?, Reply::Integer(33));
        }
    }
    Ok(())
}

/// A file is not emptied when nothing of it can be kept.
#[test]
fn a_file_of_which_nothing_can_be_kept_stays() -> Result<()> {
    let cases: [(&str, &[u8], &str); 10] = [
        ("dump.rdb", b"", "the file is empty"),
        ("x.base.rdb", b"", "the file is empty"),
        ("dump.rdb", SET, "its name is that of an RDB file"),
        ("dump.rdb", b"REDI", "begins with \"REDI\""),
        ("dump.rdb", &[0; 100], "neither an RDB file nor commands"),
        ("dump.rdb", b"REDISX010\xff", "Wrong signature"),
        ("x.incr.aof", b"set a b\r\n", "neither an RDB file nor commands"),
        ("x.incr.aof", b"*1\r\nPING\r\n*1\r\n", "DAMAGED at offset 0"),
        ("x.base.rdb", b"*1\r\n$5\r\n", "TORN"),
        ("x", b"\x7fELF", "neither an RDB file nor commands"),
    ];
    for (name, content, reason) in cases {
        let home = tempfile::tempdir()?;
        write(home.path(), &[(name, content)])?;
        let path = home.path().join(name);
        for arguments in [&[][..], &["--fix"], &[]] {
            let output = check(&[&[path.to_str().expect("a plain name")], arguments].concat())?;
            let report = text(&output.stdout);
            assert_eq!(output.status.code(), Some(1), "{name}: {report}");
            assert!(report.contains(reason), "{name}: {report}");
            let said = report.contains("nothing can be kept of it, so it is left as it is");
            assert_eq!(said, !arguments.is_empty(), "{name}: {report}");
            assert_eq!(fs::read(&path)?, content, "{name}");
            assert_eq!(fs::read_dir(home.path())?.count(), 1, "{name}");
        }
    }
    let home = tempfile::tempdir()?;
    let names = ["x.base.aof", "x.incr.aof", "appendonly.aof"];
    write(home.path(), &names.map(|name| (name, &b""[..])))?;
    for name in names {
        let output = check(&[home.path().join(name).to_str().expect("a plain name")])?;
        assert_eq!(output.status.code(), Some(0), "an empty {name} is fine");
    }
    let device = check(&["/dev/null"])?;
    assert_eq!(device.status.code(), Some(1));
    assert_eq!(text(&device.stderr), "dunlin: /dev/null: this is no regular file\n");
    Ok(())
}
