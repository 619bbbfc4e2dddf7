//! What `dunlin check` reports about files of the reference, and that the reference loads repaired
//! files.

#![allow(clippy::unwrap_used, reason = "what fails is the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use persist::check::{Options, Verdict, check};
use tests::client::Reply;
use tests::server::{Server, Target};

const OPTIONS: &[(&str, &str)] =
    &[("appendonly", "yes"), ("aof-timestamp-enabled", "yes"), ("aof-load-truncated", "no")];

/// The report, and its verdict.
fn run(path: &Path, options: Options) -> Result<(Verdict, String)> {
    let mut out = Vec::new();
    let verdict = check(path, options, &mut out)?;
    Ok((verdict, String::from_utf8(out)?))
}

const FIX: Options = Options { fix: true, truncate_to: None };

/// A reference server that has written numbers into a list and no longer runs.
fn stopped_after(count: usize) -> Result<Server> {
    let mut server = Server::start(Target::Reference, OPTIONS)?;
    let mut client = server.connect()?;
    for number in 0..count {
        client.call_text(&format!("RPUSH l {number}"))?;
    }
    ensure!(server.terminate()? == Some(0));
    Ok(server)
}

fn increment(server: &Server) -> PathBuf {
    server.directory().join("appendonlydir/appendonly.aof.1.incr.aof")
}

fn length_of_list(server: &mut Server) -> Result<i64> {
    server.start_again()?;
    match server.connect()?.call_text("LLEN l")? {
        Reply::Integer(length) => Ok(length),
        other => anyhow::bail!("{other:?}"),
    }
}

#[test]
fn a_directory_of_the_reference_is_described() -> Result<()> {
    let server = stopped_after(100)?;
    let (verdict, report) = run(server.directory(), Options::default())?;
    assert_eq!(verdict, Verdict::Good, "{report}");
    for part in ["a base, 1 increments", "redis-ver 8.0.", "101 commands", "RPUSH 100"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    Ok(())
}

/// At every place where an increment of the reference is damaged, the reference refuses to start,
/// and starts after a repair with the commands before the damage.
#[test]
fn the_reference_starts_after_a_repair() -> Result<()> {
    for garbage in [&b""[..], b"*1\r\n$5\r\nMULTI\r\n", b"not a command", &[0; 5000]] {
        let mut server = stopped_after(100)?;
        let path = increment(&server);
        let whole = fs::read(&path)?;
        // After the 51st command, SELECT counted, comes something else.
        let at = whole.windows(6).enumerate().filter(|(_, bytes)| *bytes == b"*3\r\n$5");
        let at = at.map(|(at, _)| at).nth(50).unwrap();
        // Or it breaks off within the next command.
        let rest = if garbage.is_empty() { &whole[at..at + 20] } else { garbage };
        fs::write(&path, [&whole[..at], rest].concat())?;
        assert!(server.start_again().is_err(), "the reference starts with {garbage:?}");
        let (verdict, report) = run(&path.with_file_name("appendonly.aof.manifest"), FIX)?;
        assert_eq!(verdict, Verdict::Changed, "{report}");
        assert_eq!(length_of_list(&mut server)?, 50, "{report}");
    }
    Ok(())
}

#[test]
fn the_reference_starts_at_an_earlier_time() -> Result<()> {
    let mut server = Server::start(Target::Reference, OPTIONS)?;
    let mut client = server.connect()?;
    let begun = Instant::now();
    // Waits until the second has changed: then there are two times in the file.
    let mut seconds = Vec::new();
    while seconds.len() < 3 {
        ensure!(begun.elapsed() < Duration::from_secs(30));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
        if seconds.last() != Some(&now) {
            seconds.push(now);
        }
        client.call_text("RPUSH l x")?;
        std::thread::sleep(Duration::from_millis(20));
    }
    ensure!(server.terminate()? == Some(0));
    let text = String::from_utf8(fs::read(increment(&server))?)?;
    let later = text.rfind("#TS:").unwrap();
    let second: i64 = text[later + 4..].lines().next().unwrap().parse()?;
    let before = text[..later].matches("RPUSH").count();
    let options = Options { fix: false, truncate_to: Some(second - 1) };
    let (verdict, report) = run(server.directory(), options)?;
    assert_eq!(verdict, Verdict::Changed, "{report}");
    assert_eq!(length_of_list(&mut server)?, i64::try_from(before)?, "{report}");
    Ok(())
}
