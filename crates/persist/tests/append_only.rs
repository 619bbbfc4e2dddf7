//! The append-only directory goes back and forth between Dunlin and the reference server: each
//! reads what the other has written, and goes on.

#![allow(clippy::unwrap_used, reason = "what fails is the test")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use config::AppendFsync;
use engine::journal::{EffectBatch, Journal};
use persist::aof::directory::{AofDirectory, OldFile, Successor};
use persist::aof::manifest::BaseFormat;
use persist::aof::reader::{Ending, Item, Scanner, begins_with_rdb};
use persist::disk::RealDisk;
use persist::journal::{Failure, Observer, ServerJournal, Timing};
use tests::client::Reply;
use tests::peers;
use tests::server::{Server, Target};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

const OPTIONS: &[(&str, &str)] = &[("appendonly", "yes"), ("aof-timestamp-enabled", "yes")];

struct Silent;

impl Observer for Silent {
    fn progressed(&self, _: u64) {}
    fn failed(&self, failure: &Failure) {
        panic!("{failure}");
    }
    fn recovered(&self) {}
    fn took(&self, _: &'static str, _: Duration) {}
}

/// The reference, which has run in its directory and no longer runs.
fn stopped_reference() -> Result<Server> {
    let mut server = Server::start(Target::Reference, OPTIONS)?;
    ensure!(server.terminate()? == Some(0));
    Ok(server)
}

fn directory(home: &Path) -> Result<Arc<AofDirectory>> {
    let (subdirectory, name) = (OsStr::new("appendonlydir"), OsStr::new("appendonly.aof"));
    let disk = Arc::new(RealDisk);
    Ok(Arc::new(AofDirectory::open(disk, home, subdirectory, name, OldFile::Adopt)?))
}

fn journal() -> Result<ServerJournal> {
    let journal = ServerJournal::start(AppendFsync::Always, Timing::default(), Arc::new(Silent))?;
    journal.set_timestamps(true);
    Ok(journal)
}

fn append(journal: &ServerJournal, database: usize, commands: &[&str]) {
    let mut batch = EffectBatch::default();
    for command in commands {
        batch.push(database, command.split(' ').map(str::as_bytes));
    }
    journal.append(&batch);
}

/// All commands of the increments, in order.
fn commands(directory: &AofDirectory) -> Result<Vec<String>> {
    let mut commands = Vec::new();
    for path in directory.live_files() {
        if begins_with_rdb(&fs::read(&path)?) {
            continue;
        }
        let mut scanner = Scanner::new(File::open(&path)?, 0);
        loop {
            match scanner.next()? {
                Item::Command(arguments) => {
                    let words: Vec<_> = arguments.iter().map(String::from_utf8_lossy).collect();
                    commands.push(words.join(" "));
                }
                Item::Timestamp(second) => ensure!(second > 0),
                Item::End(Ending::Complete) => break,
                Item::End(ending) => bail!("{}: {ending:?}", path.display()),
            }
        }
    }
    Ok(commands)
}

/// The reference's tool for such directories finds nothing wrong with it.
fn accepted_by_its_checker(directory: &AofDirectory) -> Result<()> {
    let manifest = directory.path().join("appendonly.aof.manifest");
    let output = Command::new(peers::program("redis-check-aof")).arg(manifest).output()?;
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success() && report.contains("are valid"), "{report}");
    Ok(())
}

fn answer(server: &Server, command: &str) -> Result<Reply> {
    server.connect()?.call_text(command)
}

fn text(word: &str) -> Reply {
    Reply::Bulk(word.as_bytes().to_vec())
}

#[test]
fn what_we_write_the_reference_loads() -> Result<()> {
    let mut server = stopped_reference()?;
    let home = server.directory().to_owned();
    fs::remove_dir_all(home.join("appendonlydir"))?;
    let ours = directory(&home)?;
    let journal = journal()?;
    // The journal begins: the file after the cut is hidden until the base is complete.
    journal.begin_file(ours.open_hidden_increment()?);
    append(&journal, 0, &["SET a 1"]);
    append(&journal, 3, &["RPUSH l x y", "INCR n"]);
    journal.flush()?;
    let base = home.join("temp-base.aof");
    fs::write(&base, "*3\r\n$3\r\nSET\r\n$4\r\nbase\r\n$1\r\n1\r\n")?;
    ours.finish_rewrite(&base, BaseFormat::Aof, Successor::Hidden)?;
    append(&journal, 0, &["SET b 2"]);
    // A rewrite that never ends.
    journal.rotate(ours.open_increment()?);
    append(&journal, 0, &["SET c 3", "DEL a"]);
    journal.flush()?;
    drop(journal);
    assert_eq!(ours.live_files().len(), 3);
    accepted_by_its_checker(&ours)?;
    server.start_again()?;
    let expected = [("base", "1"), ("b", "2"), ("c", "3")];
    for (key, value) in expected {
        assert_eq!(answer(&server, &format!("GET {key}"))?, text(value), "{key}");
    }
    assert_eq!(answer(&server, "EXISTS a")?, Reply::Integer(0));
    let mut client = server.connect()?;
    client.call_text("SELECT 3")?;
    assert_eq!(client.call_text("LRANGE l 0 -1")?, Reply::Array(vec![text("x"), text("y")]));
    assert_eq!(client.call_text("GET n")?, text("1"));
    Ok(())
}

#[test]
fn what_the_reference_writes_we_read_and_go_on() -> Result<()> {
    let mut server = Server::start(Target::Reference, OPTIONS)?;
    let mut client = server.connect()?;
    for command in ["SET a 1", "BGREWRITEAOF"] {
        client.call_text(command)?;
    }
    let begun = Instant::now();
    while !server.log().contains("Background AOF rewrite finished successfully") {
        ensure!(begun.elapsed() < PATIENCE, "{}", server.log_tail());
        std::thread::sleep(Duration::from_millis(5));
    }
    for command in ["MULTI", "SET b 2", "INCR a", "EXEC", "SPOP nothing", "SET c 3"] {
        client.call_text(command)?;
    }
    ensure!(server.terminate()? == Some(0));
    let ours = directory(server.directory())?;
    let (base, all) = ours.sizes()?;
    assert!(base > 0 && all > base);
    let written = ["MULTI", "SELECT 0", "SET b 2", "INCR a", "EXEC", "SET c 3"];
    assert_eq!(commands(&ours)?, written);
    let journal = journal()?;
    let opening = Arc::clone(&ours);
    journal.begin_file(opening.resume()?);
    append(&journal, 0, &["SET d 4"]);
    journal.flush()?;
    drop(journal);
    accepted_by_its_checker(&ours)?;
    server.start_again()?;
    for (key, value) in [("a", "2"), ("b", "2"), ("c", "3"), ("d", "4")] {
        assert_eq!(answer(&server, &format!("GET {key}"))?, text(value), "{key}");
    }
    Ok(())
}

#[test]
fn a_file_from_before_there_was_a_directory_serves_both() -> Result<()> {
    let mut server = stopped_reference()?;
    let home = server.directory().to_owned();
    fs::remove_dir_all(home.join("appendonlydir"))?;
    fs::write(home.join("appendonly.aof"), "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n")?;
    let ours = directory(&home)?;
    assert_eq!(commands(&ours)?, ["SET a 1"]);
    accepted_by_its_checker(&ours)?;
    server.start_again()?;
    assert_eq!(answer(&server, "GET a")?, text("1"));
    Ok(())
}
