//! Disks that are full or read-only: reads go on, writes get clear errors, old files stay as they
//! are, and when there is room again everything works.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use tests::client::{Client, Received, Reply};
use tests::observe::{PATIENCE, figure, number, wait_until};
use tests::replication::check_alike;
use tests::server::{Server, Target};
use tests::volume::Volume;

const MEGABYTE: u64 = 1024 * 1024;

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

fn start(directory: &Path, options: &[(&str, &str)]) -> Result<Server> {
    let mut all = vec![("dir", directory.to_str().context("a path in UTF-8")?)];
    all.extend(options);
    Server::start(Target::Dunlin, &all)
}

/// Begins a rewrite and says what became of it.
fn rewritten(client: &mut Client) -> Result<String> {
    client.call_text("BGREWRITEAOF")?;
    wait_until("the rewrite", || Ok(figure(client, "aof_rewrite_in_progress")? == "0"))?;
    figure(client, "aof_last_bgrewrite_status")
}

fn names(directory: &Path) -> Result<Vec<String>> {
    let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name()));
    let names: Result<Vec<_>> = names.collect();
    Ok(names?.iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

/// Takes all room but so much.
fn fill_up(volume: &Volume, left: u64) -> Result<()> {
    let statistics = rustix::fs::statvfs(volume.path())?;
    let free = (statistics.f_bavail * statistics.f_frsize).saturating_sub(left);
    fs::write(volume.path().join("ballast"), vec![1; usize::try_from(free)?])?;
    Ok(())
}

fn make_room(volume: &Volume) -> Result<()> {
    Ok(fs::remove_file(volume.path().join("ballast"))?)
}

/// Writes until it is refused. Returns the key of the last write that was acknowledged.
fn write_until_refused(server: &Server, refusal: &str) -> Result<u32> {
    let value = "x".repeat(1000);
    let mut acknowledged = 0;
    let mut client = server.connect()?;
    let begin = Instant::now();
    for number in 1.. {
        ensure!(begin.elapsed() < PATIENCE, "writes are not refused");
        client.send(&["SET", &format!("key:{number}"), &value])?;
        match client.receive() {
            Ok(Received::Reply(reply)) if reply == ok() => acknowledged = number,
            Ok(Received::Reply(reply)) => {
                ensure!(text(&reply) == refusal, "{reply:?}");
                return Ok(acknowledged);
            }
            // What was under way is neither acknowledged nor refused: the connection is closed.
            _ => client = server.connect()?,
        }
    }
    bail!("there are not so many numbers")
}

/// Sees to it that a server which loads a copy of the files has all keys up to this number.
fn ensure_kept(directory: &Path, options: &[(&str, &str)], acknowledged: u32) -> Result<()> {
    let (copy, from) = (tempfile::tempdir()?, directory.join("appendonlydir"));
    let to = copy.path().join("appendonlydir");
    fs::create_dir(&to)?;
    for name in names(&from)? {
        fs::copy(from.join(&name), to.join(&name))?;
    }
    let other = start(copy.path(), options)?;
    let mut reader = other.connect()?;
    ensure!(reader.call_text("GET first")? == Reply::Bulk(b"1".to_vec()));
    for number in 1..=acknowledged {
        let there = reader.call_text(&format!("EXISTS key:{number}"))?;
        ensure!(there == Reply::Integer(1), "key:{number} is lost");
    }
    Ok(())
}

fn full_beside_the_append_only_file(policy: &str) -> Result<()> {
    let test = "a_full_disk_refuses_writes_until_there_is_room";
    let Some(volume) = Volume::mount(8 * MEGABYTE, test)? else { return Ok(()) };
    let options = [("appendonly", "yes"), ("appendfsync", policy), ("rdbcompression", "no")];
    let mut server = start(volume.path(), &options)?;
    let mut client = server.connect()?;
    ensure!(client.call_text("SET first 1")? == ok());
    fill_up(&volume, MEGABYTE / 4)?;
    let refusal = "MISCONF Errors writing to the AOF file: No space left on device";
    let acknowledged = write_until_refused(&server, refusal)?;
    ensure!(acknowledged > 0);

    // Reads go on, of what is durable.
    let mut client = server.connect()?;
    ensure!(client.call_text("GET first")? == Reply::Bulk(b"1".to_vec()));
    ensure!(text(&client.call_text("PING")?) == refusal, "who watches over it hears of it");
    ensure!(figure(&mut client, "aof_last_write_status")? == "err");
    ensure!(server.log().contains("AOF error while "), "{}", server.log_tail());
    // There is no room for another file either; that changes nothing.
    ensure!(rewritten(&mut client)? == "err", "{}", server.log_tail());
    ensure!(text(&client.call_text("SET first 2")?) == refusal);
    ensure!(!names(&volume.path().join("appendonlydir"))?.iter().any(|it| it.contains("temp-")));

    // What was acknowledged is in the files that are there.
    ensure_kept(volume.path(), &options, acknowledged)?;

    make_room(&volume)?;
    wait_until("recovery", || Ok(client.call_text("SET first 2")? == ok()))?;
    ensure!(rewritten(&mut client)? == "ok", "{}", server.log_tail());
    for number in 1..=acknowledged {
        let there = client.call_text(&format!("EXISTS key:{number}"))?;
        ensure!(there == Reply::Integer(1), "key:{number} is lost");
    }
    ensure!(client.call_text("PING")? == Reply::Status(b"PONG".to_vec()));
    ensure!(figure(&mut client, "aof_last_write_status")? == "ok");
    client.call_text("WAITAOF 1 0 0")?;
    let digest = client.call_text("DEBUG DIGEST")?;
    server.kill();
    server.start_again()?;
    ensure!(server.connect()?.call_text("DEBUG DIGEST")? == digest, "{}", server.log_tail());
    Ok(())
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() -> Result<()> {
    ["always", "everysec", "no"].into_iter().try_for_each(|policy| {
        full_beside_the_append_only_file(policy).with_context(|| format!("appendfsync {policy}"))
    })
}

/// A server is told to stop while its last writes have no room. It stays, unless it is forced, and
/// takes them along as soon as it can.
#[test]
fn a_stop_beside_a_full_disk_loses_nothing() -> Result<()> {
    let test = "a_stop_beside_a_full_disk_loses_nothing";
    let Some(volume) = Volume::mount(8 * MEGABYTE, test)? else { return Ok(()) };
    let options = [("appendonly", "yes"), ("appendfsync", "everysec"), ("rdbcompression", "no")];
    let mut server = start(volume.path(), &options)?;
    fill_up(&volume, MEGABYTE / 4)?;
    let refusal = "MISCONF Errors writing to the AOF file: No space left on device";
    let acknowledged = write_until_refused(&server, refusal)?;
    let mut client = server.connect()?;
    let refused = client.call_text("SHUTDOWN")?;
    ensure!(text(&refused) == "ERR Errors trying to SHUTDOWN. Check logs.", "{refused:?}");
    let pid = i32::try_from(server.pid())?;
    let pid = rustix::process::Pid::from_raw(pid).context("a process")?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    let line = "Errors trying to shut down the server. Check the logs for more information.";
    wait_until("the refusal", || Ok(server.log().matches(line).count() == 2))?;
    ensure!(client.call_text("GET key:1")?.text().is_some());
    make_room(&volume)?;
    ensure!(server.terminate()? == Some(0), "{}", server.log_tail());
    server.start_again()?;
    let mut client = server.connect()?;
    for number in 1..=acknowledged {
        let there = client.call_text(&format!("EXISTS key:{number}"))?;
        ensure!(there == Reply::Integer(1), "key:{number} is lost");
    }
    // FORCE overrides that.
    fill_up(&volume, MEGABYTE / 4)?;
    write_until_refused(&server, refusal)?;
    server.connect()?.send(&["SHUTDOWN", "FORCE"])?;
    wait_until("the end", || Ok(server.connect().is_err()))?;
    Ok(())
}

/// What a write is answered while snapshots fail.
const SNAPSHOTS_FAIL: &str = "MISCONF Redis is configured to save RDB snapshots, but it's \
    currently unable to persist to disk. ";

/// A server whose snapshots fail for `reason`, until `mend` is called.
fn snapshots_fail(
    volume: &Volume,
    reason: &str,
    spoil: fn(&Volume) -> Result<()>,
    mend: fn(&Volume) -> Result<()>,
) -> Result<()> {
    let mut server = start(volume.path(), &[("save", "3600 1"), ("rdbcompression", "no")])?;
    let mut client = server.connect()?;
    client.call_text("DEBUG POPULATE 1000 key 1000")?;
    ensure!(client.call_text("SAVE")? == ok(), "{}", server.log_tail());
    ensure!(client.call_text("SET first 1")? == ok());
    let file = volume.path().join("dump.rdb");
    let before = fs::read(&file)?;
    spoil(volume)?;
    // A client that waits for a save is told; after a save for which no client waits, writes are
    // refused.
    for (line, status) in [("SAVE", "ok"), ("BGSAVE", "err")] {
        client.call_text(line)?;
        wait_until("the end", || Ok(figure(&mut client, "rdb_bgsave_in_progress")? == "0"))?;
        ensure!(figure(&mut client, "rdb_last_bgsave_status")? == status, "{line}");
        let expected = format!("Background saving error: {reason}");
        ensure!(server.log().contains(&expected), "{}", server.log_tail());
        let written = client.call_text("SET first 1")?;
        let refused = text(&written).starts_with(SNAPSHOTS_FAIL);
        ensure!(refused == (status == "err"), "{line}: {written:?}");
        ensure!(client.call_text("GET first")? == Reply::Bulk(b"1".to_vec()), "reads go on");
        ensure!(fs::read(&file)? == before, "the old file is as it was");
        ensure!(!names(volume.path())?.iter().any(|name| name.starts_with("temp-")));
    }
    let refused = client.call_text("SHUTDOWN")?;
    ensure!(text(&refused) == "ERR Errors trying to SHUTDOWN. Check logs.", "{refused:?}");
    mend(volume)?;
    ensure!(client.call_text("SAVE")? == ok(), "{}", server.log_tail());
    ensure!(client.call_text("SET first 2")? == ok());
    ensure!(server.terminate()? == Some(0), "{}", server.log_tail());
    server.start_again()?;
    ensure!(server.connect()?.call_text("GET first")? == Reply::Bulk(b"2".to_vec()));
    Ok(())
}

#[test]
fn a_full_disk_leaves_the_old_snapshot() -> Result<()> {
    let test = "a_full_disk_leaves_the_old_snapshot";
    let Some(volume) = Volume::mount(8 * MEGABYTE, test)? else { return Ok(()) };
    let spoil = |volume: &Volume| fill_up(volume, MEGABYTE / 2);
    snapshots_fail(&volume, "No space left on device", spoil, make_room)
}

#[test]
fn a_read_only_disk_leaves_the_old_snapshot() -> Result<()> {
    let test = "a_read_only_disk_leaves_the_old_snapshot";
    let Some(volume) = Volume::mount(8 * MEGABYTE, test)? else { return Ok(()) };
    let spoil = |volume: &Volume| volume.set_read_only(true);
    let mend = |volume: &Volume| volume.set_read_only(false);
    snapshots_fail(&volume, "Read-only file system", spoil, mend)
}

#[test]
fn a_read_only_disk_gets_no_append_only_file() -> Result<()> {
    let test = "a_read_only_disk_gets_no_append_only_file";
    let Some(volume) = Volume::mount(8 * MEGABYTE, test)? else { return Ok(()) };
    let server = start(volume.path(), &[])?;
    let mut client = server.connect()?;
    ensure!(client.call_text("SET first 1")? == ok());
    volume.set_read_only(true)?;
    let refused = match start(volume.path(), &[("appendonly", "yes")]) {
        Ok(_) => bail!("it serves without a file"),
        Err(error) => error.to_string(),
    };
    ensure!(refused.contains("Read-only file system"), "{refused}");

    let refused = client.call_text("CONFIG SET appendonly yes")?;
    ensure!(text(&refused).ends_with("Unable to turn on AOF. Check server logs."), "{refused:?}");
    ensure!(server.log().contains("Read-only file system"), "{}", server.log_tail());
    ensure!(figure(&mut client, "aof_enabled")? == "0");
    ensure!(client.call_text("SET first 1")? == ok(), "the server goes on without");
    volume.set_read_only(false)?;
    ensure!(client.call_text("CONFIG SET appendonly yes")? == ok());
    ensure!(client.call_text("SET first 2")? == ok());
    ensure!(client.call_text("WAITAOF 1 0 0")?.elements().is_some());
    drop(server);
    let again = start(volume.path(), &[("appendonly", "yes")])?;
    ensure!(again.connect()?.call_text("GET first")? == Reply::Bulk(b"2".to_vec()));
    Ok(())
}

/// A server whose process makes a system call fail or wait that concerns the append-only file.
fn start_with_fault(options: &[(&str, &str)], fault: &str) -> Result<Option<Server>> {
    if Command::new("strace").arg("--version").output().is_err() {
        return Ok(None);
    }
    let mut server = Server::start(Target::Dunlin, options)?;
    let file = server.directory().join("appendonlydir/appendonly.aof.1.incr.aof");
    let file = file.to_str().context("a path in UTF-8")?.to_owned();
    let inject = format!("inject=write,writev:{fault}");
    let words = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-P", &file];
    server.set_wrapper(&[&words[..], &["-e", "trace=write,writev", "-e", &inject]].concat());
    server.terminate()?;
    server.start_again()?;
    Ok(Some(server))
}

/// While one worker waits for the disk, another one must not acknowledge what is in memory alone.
#[test]
fn nothing_is_acknowledged_beside_a_write_that_takes_long() -> Result<()> {
    let options = [("appendonly", "yes"), ("appendfsync", "no"), ("threads", "4"), ("save", "")];
    let Some(mut server) = start_with_fault(&options, "delay_enter=30000000:when=2+")? else {
        return Ok(());
    };
    let mut clients = (0..8).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    ensure!(clients[0].call_text("SET first 1")? == ok());
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&["SET", &format!("key:{number}"), "1"])?;
    }
    // The worker that writes is stuck; the clients of others are served.
    let mut acknowledged = Vec::new();
    for (number, client) in clients.iter_mut().enumerate() {
        if client.has_input(Duration::from_millis(200))? {
            acknowledged.push(number);
        }
    }
    server.kill();
    server.set_wrapper(&[]);
    server.start_again()?;
    let mut client = server.connect()?;
    ensure!(client.call_text("GET first")? == Reply::Bulk(b"1".to_vec()));
    for number in acknowledged {
        let there = client.call_text(&format!("EXISTS key:{number}"))?;
        ensure!(there == Reply::Integer(1), "key:{number} was acknowledged and is lost");
    }
    Ok(())
}

/// The client whose write fails is not told that it succeeded; what was kept in memory is written
/// later.
#[test]
fn a_write_that_fails_is_not_acknowledged() -> Result<()> {
    for policy in ["everysec", "no"] {
        let options = [("appendonly", "yes"), ("appendfsync", policy), ("save", "")];
        let Some(server) = start_with_fault(&options, "error=ENOSPC:when=2")? else {
            return Ok(());
        };
        let mut client = server.connect()?;
        // The second call of each thread fails. Beside a worker that writes there is the file's own
        // thread, which may be the one that has this effect and the next.
        let mut last = 0;
        let begin = Instant::now();
        loop {
            last += 1;
            ensure!(begin.elapsed() < PATIENCE, "no write fails");
            client.send(&["SET", &format!("key:{last}"), "1"])?;
            match client.receive() {
                Ok(Received::Reply(reply)) => ensure!(reply == ok(), "{reply:?}"),
                Ok(Received::Closed) => break,
                other => bail!("{other:?}"),
            }
        }
        // The call fails once in each thread, so another connection may be closed, too.
        wait_until("recovery", || {
            let reply = server.connect()?.call_text("SET third 3");
            Ok(reply.is_ok_and(|reply| reply == ok()))
        })?;
        let mut client = server.connect()?;
        for number in 1..=last {
            let kept = client.call_text(&format!("EXISTS key:{number}"))?;
            ensure!(kept == Reply::Integer(1), "key:{number} is lost");
        }
    }
    Ok(())
}

/// A client is not idle while its reply waits for a slow disk.
#[test]
fn a_client_that_waits_for_the_disk_is_not_idle() -> Result<()> {
    let options = [("appendonly", "yes"), ("threads", "4"), ("save", ""), ("timeout", "1")];
    let Some(server) = start_with_fault(&options, "delay_enter=2500000:when=2..4")? else {
        return Ok(());
    };
    let mut clients = (0..4).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    ensure!(clients[0].call_text("SET first 1")? == ok());
    clients.iter_mut().try_for_each(|client| client.send(&["INCR", "count"]))?;
    for client in &mut clients {
        ensure!(matches!(client.receive()?, Received::Reply(Reply::Integer(_))), "it was closed");
    }
    Ok(())
}

/// A full sync for which the disk has no room: the present data stays, the link is tried again, and
/// comes when there is room.
#[test]
fn a_full_sync_waits_for_room() -> Result<()> {
    let test = "a_full_sync_waits_for_room";
    let Some(volume) = Volume::mount(16 * MEGABYTE, test)? else { return Ok(()) };
    let primary = Server::start(Target::Dunlin, &[("repl-diskless-sync-delay", "0")])?;
    let mut writer = primary.connect()?;
    let value = "x".repeat(1000);
    for number in 0..2000 {
        writer.call(&["SET", &format!("key:{number}"), &value])?;
    }
    writer.call_text("CONFIG SET rdbcompression no")?;
    let replica = start(volume.path(), &[("appendonly", "yes")])?;
    let mut reader = replica.connect()?;
    ensure!(reader.call_text("SET own data")? == ok());
    fill_up(&volume, MEGABYTE / 2)?;
    tests::replication::follow(&replica, primary.port())?;
    let told = "the file for it: No space left on device";
    wait_until("it is told", || Ok(replica.log().contains(told)))?;
    ensure!(text(&reader.call_text("GET own")?) == "data");
    let left = names(volume.path())?;
    ensure!(left.iter().all(|name| !name.contains("sync-")), "{left:?}");
    make_room(&volume)?;
    check_alike(&primary, &replica)?;
    ensure!(number(&mut writer, "sync_full")? < 8, "it is asked again and again");
    Ok(())
}

/// Without a number for another file the link is tried again.
#[test]
fn a_full_sync_waits_for_a_file_number() -> Result<()> {
    let primary = Server::start(Target::Dunlin, &[("repl-diskless-sync-delay", "0")])?;
    ensure!(primary.connect()?.call_text("SET k v")? == ok());
    let replica = Server::start(Target::Dunlin, &[("appendonly", "yes")])?;
    let mut reader = replica.connect()?;
    ensure!(reader.call_text("SET own data")? == ok());
    let limit = |files: Option<u64>| -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(replica.pid())?);
        let usual = getrlimit(Resource::Nofile);
        let limit = Rlimit { current: files.or(usual.maximum), maximum: usual.maximum };
        prlimit(pid, Resource::Nofile, limit)?;
        Ok(())
    };
    // Those that are open stay so.
    limit(Some(3))?;
    let port = primary.port().to_string();
    ensure!(reader.call(&["REPLICAOF", "127.0.0.1", &port])? == ok());
    wait_until("it is told", || Ok(replica.log().contains("Too many open files")))?;
    ensure!(text(&reader.call_text("GET own")?) == "data");
    limit(None)?;
    check_alike(&primary, &replica)
}
