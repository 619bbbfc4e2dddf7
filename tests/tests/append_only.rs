//! The append-only file of the real process: what waits for the disk and what does not, rewrites,
//! failures, and the reference server on the same directory.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tests::client::{Client, Received, Reply};
use tests::observe::{figure, number, wait_until};
use tests::server::{Server, Target};

/// How long a write to the file is made to take in tests that look at waiting clients.
const SLOW: Duration = Duration::from_millis(400);

const ALWAYS: &[(&str, &str)] = &[("appendonly", "yes"), ("appendfsync", "always")];

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

fn start(options: &[(&str, &str)]) -> Result<Server> {
    Server::start(Target::Dunlin, options)
}

fn digest(client: &mut Client) -> Result<Reply> {
    client.call_text("DEBUG DIGEST")
}

/// Waits until this many rewrites were begun and none goes on.
fn wait_for_rewrite(client: &mut Client, begun: u64) -> Result<()> {
    wait_until("the rewrite", || {
        // In this order: one may begin in between.
        let have_begun = number(client, "aof_rewrites")? >= begun;
        Ok(have_begun && figure(client, "aof_rewrite_in_progress")? == "0")
    })
}

/// The names in the list of files, with their kinds.
fn listed(server: &Server) -> Result<Vec<(String, String)>> {
    let list = server.directory().join("appendonlydir/appendonly.aof.manifest");
    let text = fs::read_to_string(list)?;
    let words = text.lines().map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    Ok(words.map(|words| (words[1].clone(), words[5].clone())).collect())
}

fn set_slow(client: &mut Client, delay: Duration) -> Result<()> {
    let command = format!("DEBUG AOF-FLUSH-SLEEP {}", delay.as_micros());
    ensure!(client.call_text(&command)? == ok());
    Ok(())
}

/// Some of everything, in two databases.
fn fill(client: &mut Client) -> Result<()> {
    for line in ["SET s text", "SET n 12", "RPUSH l a b 3", "SADD i 1 2 3", "SADD w a b 3"] {
        client.call_text(line)?;
    }
    for number in 0..300 {
        client.call_text(&format!("HSET h field{number} {number}"))?;
        client.call_text(&format!("ZADD z {number}.5 member{number}"))?;
        client.call_text(&format!("RPUSH list {number}"))?;
        client.call_text(&format!("XADD stream {number}-1 number {number}"))?;
    }
    for line in [
        "XGROUP CREATE stream group 0",
        "XGROUP CREATE nothing group 7-7 MKSTREAM",
        "XREADGROUP GROUP group one COUNT 50 STREAMS stream >",
        "XREADGROUP GROUP group two COUNT 50 STREAMS stream >",
        "XREADGROUP GROUP group two COUNT 2 STREAMS stream 0",
        "XACK stream group 0-1 1-1 3-1 60-1",
        "XDEL stream 200-1 250-1",
        "XTRIM stream MINID 2",
        "HSET timed a 1 b 2 c 3",
        "HPEXPIREAT timed 33000000000000 FIELDS 1 b",
        "HPEXPIREAT h 33000000000000 FIELDS 3 field1 field7 field299",
        "HPERSIST h FIELDS 1 field7",
    ] {
        let reply = client.call_text(line)?;
        ensure!(!reply.is_error(), "{line}: {reply:?}");
    }
    for line in ["PEXPIREAT s 33000000000000", "SELECT 7", "SET other 1", "SELECT 0"] {
        client.call_text(line)?;
    }
    Ok(())
}

// ---- Who waits ----------------------------------------------------------------------------------

#[test]
fn under_always_a_reply_waits_for_what_it_tells_of_and_others_do_not() -> Result<()> {
    let server = start(ALWAYS)?;
    let mut control = server.connect()?;
    ensure!(control.call_text("SET other 1")? == ok());
    set_slow(&mut control, 5 * SLOW)?;
    let nothing = Duration::from_millis(1);
    let (mut writer, mut reader) = (server.connect()?, server.connect()?);
    let (mut counter, mut piped) = (server.connect()?, server.connect()?);
    let begin = Instant::now();
    writer.send(&["SET", "key", "value"])?;
    wait_until("the write", || Ok(control.call_text("EXISTS other")? == Reply::Integer(1)))?;
    ensure!(!writer.has_input(nothing)?, "a reader of another key waits");
    // The slot of `key` was written by now, or is soon; its readers wait as the writer does.
    std::thread::sleep(SLOW / 10);
    reader.send(&["GET", "key"])?;
    counter.send(&["DBSIZE"])?;
    piped.send(&["GET", "other"])?;
    piped.send(&["GET", "key"])?;
    ensure!(piped.receive()? == Received::Reply(bulk("1")));
    // What comes first in a pipeline need not wait for what follows.
    ensure!(!writer.has_input(nothing)? && !reader.has_input(nothing)?);
    ensure!(!counter.has_input(nothing)? && !piped.has_input(nothing)?);
    ensure!(reader.receive()? == Received::Reply(bulk("value")));
    ensure!(begin.elapsed() >= 5 * SLOW, "a read shows what may be lost");
    ensure!(writer.receive()? == Received::Reply(ok()));
    ensure!(counter.receive()? == Received::Reply(Reply::Integer(2)));
    ensure!(piped.receive()? == Received::Reply(bulk("value")));
    Ok(())
}

/// The worker of many writers looks at no socket for a moment while a sync goes on.
#[test]
fn under_always_a_reader_is_answered_beside_many_writers() -> Result<()> {
    let server = start(&[ALWAYS, &[("threads", "1")]].concat())?;
    let mut reader = server.connect()?;
    ensure!(reader.call_text("SET other 1")? == ok());
    set_slow(&mut reader, 5 * SLOW)?;
    let mut writers = (0..40).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    writers.iter_mut().try_for_each(|writer| writer.send(&["SET", "key", "value"]))?;
    // With the first read at the latest the worker sees that all others wait for the sync.
    for _ in 0..2 {
        std::thread::sleep(SLOW / 10);
        ensure!(reader.call_text("GET other")? == bulk("1"));
    }
    // The first sync covers those that wrote first.
    let answered = writers[0].has_input(Duration::from_millis(1))?;
    ensure!(!answered, "the reader has waited too");
    for writer in &mut writers {
        ensure!(writer.receive()? == Received::Reply(ok()));
    }
    Ok(())
}

#[test]
fn under_always_messages_and_served_waiters_wait_too() -> Result<()> {
    let server = start(&[ALWAYS, &[("notify-keyspace-events", "KEA")]].concat())?;
    let mut control = server.connect()?;
    set_slow(&mut control, SLOW)?;
    let (mut waiter, mut listener) = (server.connect()?, server.connect()?);
    waiter.send(&["BLPOP", "queue", "0"])?;
    listener.call(&["SUBSCRIBE", "__keyevent@0__:lpush"])?;
    wait_until("the waiter", || {
        let info = control.call_text("INFO clients")?;
        Ok(String::from_utf8_lossy(info.text().unwrap_or_default()).contains("blocked_clients:1"))
    })?;
    let begin = Instant::now();
    let mut writer = server.connect()?;
    writer.send(&["LPUSH", "queue", "element"])?;
    ensure!(
        waiter.receive()? == Received::Reply(Reply::Array(vec![bulk("queue"), bulk("element")]))
    );
    ensure!(begin.elapsed() >= SLOW, "the element may still be lost");
    listener.receive()?;
    ensure!(begin.elapsed() >= SLOW, "the message tells of a write that may be lost");
    Ok(())
}

#[test]
fn under_everysec_a_reply_waits_for_the_write_and_waitaof_for_the_sync() -> Result<()> {
    let server = start(&[("appendonly", "yes"), ("appendfsync", "everysec")])?;
    let mut client = server.connect()?;
    set_slow(&mut client, SLOW)?;
    let begin = Instant::now();
    client.send(&["SET", "key", "value"])?;
    client.send(&["WAITAOF", "1", "0", "10"])?;
    ensure!(client.receive()? == Received::Reply(ok()));
    ensure!(begin.elapsed() >= SLOW, "it waits for the write");
    let none = Reply::Array(vec![Reply::Integer(0), Reply::Integer(0)]);
    ensure!(client.receive()? == Received::Reply(none), "its time was up before");
    let one = Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]);
    ensure!(client.call_text("WAITAOF 1 0 0")? == one);
    ensure!(client.call_text("WAITAOF 1 1 10")? == one, "there is no replica to wait for");
    let mut control = server.connect()?;
    client.send(&["WAITAOF", "1", "1", "0"])?;
    ensure!(!client.has_input(SLOW / 10)?, "it waits for the replica");
    ensure!(control.call_text("CONFIG SET appendonly no")? == ok());
    let Received::Reply(refused) = client.receive()? else { bail!("the connection was closed") };
    ensure!(refused.is_error(), "{refused:?}");
    Ok(())
}

#[test]
fn client_unblock_ends_waitaof() -> Result<()> {
    let server = start(&[("appendonly", "yes"), ("appendfsync", "everysec")])?;
    let (mut client, mut control) = (server.connect()?, server.connect()?);
    let Reply::Integer(id) = client.call_text("CLIENT ID")? else { bail!("no number") };
    let error = Reply::Error(b"UNBLOCKED client unblocked via CLIENT UNBLOCK".to_vec());
    // The write is durable and there is no replica, so it waits until another client ends it.
    ensure!(client.call_text("SET key value")? == ok());
    ensure!(client.call_text("WAITAOF 1 0 0")?.elements().is_some());
    let counts = Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]);
    for (how, expected) in [("", &counts), ("TIMEOUT", &counts), ("ERROR", &error)] {
        client.send(&["WAITAOF", "1", "1", "0"])?;
        client.send(&["GET", "key"])?;
        let request = format!("CLIENT UNBLOCK {id} {how}");
        wait_until("the client's waiting", || {
            Ok(control.call_text(request.trim_end())? == Reply::Integer(1))
        })?;
        ensure!(client.receive()? == Received::Reply(expected.clone()), "{how}");
        ensure!(client.receive()? == Received::Reply(bulk("value")), "what follows is run");
        ensure!(control.call_text(request.trim_end())? == Reply::Integer(0));
    }
    Ok(())
}

/// What `aof_fsync_latency_usec` says: the percentiles in their order, the longest, the count.
fn sync_durations(client: &mut Client) -> Result<(Vec<f64>, u64)> {
    let field = figure(client, "aof_fsync_latency_usec")?;
    let pairs: Vec<_> = field.split(',').filter_map(|pair| pair.split_once('=')).collect();
    let [durations @ .., ("count", count)] = &pairs[..] else { bail!("{field}") };
    let names: Vec<_> = durations.iter().map(|(name, _)| *name).collect();
    ensure!(names == ["p50", "p99", "p99.9", "max"], "{field}");
    let durations = durations.iter().map(|(_, duration)| duration.parse());
    Ok((durations.collect::<Result<_, _>>()?, count.parse()?))
}

#[test]
fn info_tells_how_long_syncs_take_until_resetstat() -> Result<()> {
    let server = start(ALWAYS)?;
    let mut client = server.connect()?;
    ensure!(sync_durations(&mut client)? == (vec![0.0; 4], 0));
    for _ in 0..20 {
        client.call_text("INCR counter")?;
    }
    let (durations, count) = sync_durations(&mut client)?;
    ensure!(count == 20, "each write waited for a sync of its own: {count}");
    ensure!(durations[0] > 0.0 && durations.is_sorted(), "{durations:?}");
    ensure!(client.call_text("CONFIG RESETSTAT")? == ok());
    ensure!(sync_durations(&mut client)? == (vec![0.0; 4], 0));
    Ok(())
}

// ---- Rewrites -----------------------------------------------------------------------------------

#[test]
fn a_rewrite_keeps_all_in_either_format() -> Result<()> {
    for (preamble, extension) in [("yes", "base.rdb"), ("no", "base.aof")] {
        let mut server = start(&[("appendonly", "yes"), ("aof-use-rdb-preamble", preamble)])?;
        let mut client = server.connect()?;
        fill(&mut client)?;
        let started = client.call_text("BGREWRITEAOF")?;
        let text = b"Background append only file rewriting started".to_vec();
        ensure!(started == Reply::Status(text), "{started:?}");
        client.call_text("SET later 1")?;
        wait_for_rewrite(&mut client, 1)?;
        let files = listed(&server)?;
        ensure!(files.len() == 2 && files[0].0.ends_with(extension), "{files:?}");
        ensure!(files[1].1 == "i", "{files:?}");
        let names = fs::read_dir(server.directory().join("appendonlydir"))?.count();
        ensure!(names == 3, "old files are gone: {names}");
        let log = server.log();
        for line in [
            "Background append only file rewriting started by pid",
            "Creating AOF incr file appendonly.aof.2.incr.aof on background rewrite",
            "Background AOF rewrite terminated with success",
            "Background AOF rewrite finished successfully",
        ] {
            ensure!(log.contains(line), "{line}\n{}", server.log_tail());
        }
        ensure!(number(&mut client, "aof_base_size")? <= number(&mut client, "aof_current_size")?);
        let (before, groups) = (digest(&mut client)?, groups(&mut client)?);
        server.kill();
        server.start_again()?;
        let mut client = server.connect()?;
        ensure!(digest(&mut client)? == before, "{}", server.log_tail());
        ensure!(self::groups(&mut client)? == groups, "{preamble}");
    }
    Ok(())
}

/// What the groups of all streams have; a digest says nothing about it.
fn groups(client: &mut Client) -> Result<Vec<Reply>> {
    let mut all = Vec::new();
    for line in ["XINFO GROUPS stream", "XINFO GROUPS nothing", "XPENDING stream group"] {
        all.push(client.call_text(line)?);
    }
    Ok(all)
}

#[test]
fn memory_in_use_is_known_after_a_start_from_either_kind_of_file() -> Result<()> {
    let mut server = start(&[("appendonly", "yes"), ("auto-aof-rewrite-percentage", "0")])?;
    let mut client = server.connect()?;
    let value = "x".repeat(1000);
    for key in 0..20_000 {
        client.send(&["SET", &format!("key:{key}"), &value])?;
    }
    for _ in 0..20_000 {
        ensure!(matches!(client.receive()?, Received::Reply(reply) if reply == ok()));
    }
    let before = number(&mut client, "used_memory")?;
    for rewrite in [false, true] {
        if rewrite {
            client.call_text("BGREWRITEAOF")?;
            wait_for_rewrite(&mut client, 1)?;
        }
        server.kill();
        server.start_again()?;
        client = server.connect()?;
        let after = number(&mut client, "used_memory")?;
        ensure!(after > before / 2 && after < before * 2, "{before} before, {after} after");
    }
    Ok(())
}

#[test]
fn growth_begins_a_rewrite() -> Result<()> {
    let options = [("appendonly", "yes"), ("auto-aof-rewrite-min-size", "8kb")];
    let server = start(&options)?;
    let mut client = server.connect()?;
    let value = "x".repeat(1000);
    for _ in 0..20 {
        client.call(&["SET", "key", &value])?;
    }
    wait_for_rewrite(&mut client, 1)?;
    ensure!(number(&mut client, "aof_current_size")? < 8192);
    ensure!(server.log().contains("Starting automatic rewriting of AOF on "));
    ensure!(figure(&mut client, "aof_last_bgrewrite_status")? == "ok");
    Ok(())
}

#[test]
fn it_is_turned_on_and_off_while_the_server_runs() -> Result<()> {
    let mut server = start(&[])?;
    let mut client = server.connect()?;
    fill(&mut client)?;
    ensure!(figure(&mut client, "aof_enabled")? == "0");
    for round in 1..=2 {
        ensure!(client.call_text("CONFIG SET appendonly yes")? == ok());
        client.call_text(&format!("SET during {round}"))?;
        wait_for_rewrite(&mut client, round)?;
        ensure!(figure(&mut client, "aof_enabled")? == "1");
        client.call_text(&format!("SET after {round}"))?;
        if round == 1 {
            ensure!(client.call_text("CONFIG SET appendonly no")? == ok());
            client.call_text("SET unkept 1")?;
            client.call_text("DEL unkept")?;
        }
    }
    let before = digest(&mut client)?;
    ensure!(client.call_text("WAITAOF 1 0 0")?.elements().is_some());
    server.kill();
    let directory = server.directory().to_str().context("a path")?.to_owned();
    let again = start(&[("appendonly", "yes"), ("dir", &directory)])?;
    ensure!(digest(&mut again.connect()?)? == before, "{}", again.log_tail());
    Ok(())
}

#[test]
fn the_first_file_is_complete_before_the_server_ends_and_before_waitaof_answers() -> Result<()> {
    let mut server = start(&[])?;
    let (mut client, mut other) = (server.connect()?, server.connect()?);
    client.call_text("DEBUG POPULATE 10000 key 200")?;
    client.call_text("SET last 1")?;
    client.call_text("CONFIG SET rdb-key-save-delay 50")?;
    client.send(&["CONFIG", "SET", "appendonly", "yes"])?;
    client.send(&["SHUTDOWN"])?;
    client.send(&["WAITAOF", "1", "0", "0"])?;
    ensure!(client.receive()? == Received::Reply(ok()));
    let refused = b"ERR Errors trying to SHUTDOWN. Check logs.".to_vec();
    ensure!(client.receive()? == Received::Reply(Reply::Error(refused)), "{}", server.log_tail());
    ensure!(server.log().contains("Writing initial AOF, can't exit."), "{}", server.log_tail());
    ensure!(figure(&mut other, "aof_rewrite_in_progress")? == "1", "it took too little time");
    let durable = Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]);
    ensure!(client.receive()? == Received::Reply(durable));
    server.kill();
    let directory = server.directory().to_str().context("a path")?.to_owned();
    let again = start(&[("appendonly", "yes"), ("dir", &directory)])?;
    ensure!(again.connect()?.call_text("DBSIZE")? == Reply::Integer(10_001));
    Ok(())
}

// ---- The reference ------------------------------------------------------------------------------

#[test]
fn the_directory_goes_to_the_reference_and_back() -> Result<()> {
    let mut server = start(&[("appendonly", "yes"), ("aof-timestamp-enabled", "yes")])?;
    let directory = server.directory().to_str().context("a path")?.to_owned();
    let mut client = server.connect()?;
    fill(&mut client)?;
    client.call_text("BGREWRITEAOF")?;
    wait_for_rewrite(&mut client, 1)?;
    for line in ["MULTI", "SET first 1", "SET second 2", "EXEC", "SPOP w", "INCR n"] {
        client.call_text(line)?;
    }
    let before = digest(&mut client)?;
    ensure!(server.terminate()? == Some(0));
    let options = [("appendonly", "yes"), ("dir", directory.as_str())];
    let mut reference = Server::start(Target::Reference, &options)?;
    let mut client = reference.connect()?;
    ensure!(digest(&mut client)? == before, "{}", reference.log_tail());
    client.call_text("SET by-the-reference 1")?;
    let before = digest(&mut client)?;
    ensure!(reference.terminate()? == Some(0));
    server.start_again()?;
    ensure!(digest(&mut server.connect()?)? == before, "{}", server.log_tail());
    Ok(())
}

// ---- Failures -----------------------------------------------------------------------------------

/// Sets how large files of the process may become.
fn limit_files(server: &Server, bytes: Option<u64>) -> Result<()> {
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw).context("a process id")?;
    prlimit(Some(pid), Resource::Fsize, Rlimit { current: bytes, maximum: None })?;
    Ok(())
}

#[test]
fn a_write_that_fails_refuses_writes_until_a_rewrite_succeeds() -> Result<()> {
    for policy in ["always", "everysec"] {
        let options = [("appendonly", "yes"), ("appendfsync", policy), ("rdbcompression", "no")];
        let mut server = start(&options)?;
        let mut client = server.connect()?;
        ensure!(client.call_text("SET kept 1")? == ok());
        limit_files(&server, Some(128 * 1024))?;
        let mut writer = server.connect()?;
        writer.send(&["SET", "lost", &"x".repeat(512 * 1024)])?;
        let answered = writer.receive();
        if policy == "always" {
            ensure!(!matches!(answered, Ok(Received::Reply(_))), "an answer for a lost write");
        }
        let refusal = b"MISCONF Errors writing to the AOF file: File too large".to_vec();
        wait_until("the refusal", || {
            Ok(client.call_text("SET kept 2")? == Reply::Error(refusal.clone()))
        })?;
        ensure!(client.call_text("EXISTS kept")? == Reply::Integer(1), "reads go on");
        if policy == "always" {
            let mut reader = server.connect()?;
            reader.send(&["GET", "lost"])?;
            let read = reader.receive();
            ensure!(!matches!(read, Ok(Received::Reply(_))), "a reader sees what may be lost");
        }
        ensure!(figure(&mut client, "aof_last_write_status")? == "err");
        // A rewrite that fails changes nothing.
        client.call_text("BGREWRITEAOF")?;
        wait_for_rewrite(&mut client, 1)?;
        ensure!(figure(&mut client, "aof_last_bgrewrite_status")? == "err");
        ensure!(client.call_text("SET kept 2")? == Reply::Error(refusal));
        limit_files(&server, None)?;
        client.call_text("BGREWRITEAOF")?;
        wait_for_rewrite(&mut client, 2)?;
        ensure!(client.call_text("SET kept 3")? == ok(), "{}", server.log_tail());
        ensure!(figure(&mut client, "aof_last_write_status")? == "ok");
        let before = digest(&mut client)?;
        client.call_text("WAITAOF 1 0 0")?;
        server.kill();
        server.start_again()?;
        ensure!(digest(&mut server.connect()?)? == before, "{}", server.log_tail());
    }
    Ok(())
}

#[test]
fn an_unusable_directory_is_reported() -> Result<()> {
    let server = start(&[])?;
    fs::write(server.directory().join("appendonlydir"), b"a file")?;
    let mut client = server.connect()?;
    let refused = client.call_text("CONFIG SET appendonly yes")?;
    let text = String::from_utf8_lossy(refused.text().unwrap_or_default()).into_owned();
    ensure!(text.ends_with("Unable to turn on AOF. Check server logs."), "{text}");
    ensure!(client.call_text("SET key value")? == ok(), "the server goes on without");
    ensure!(figure(&mut client, "aof_enabled")? == "0");
    let directory = server.directory().to_str().context("a path")?.to_owned();
    ensure!(start(&[("appendonly", "yes"), ("dir", &directory)]).is_err());
    Ok(())
}

/// Under `always` nothing counts as durable before the first base is complete.
#[test]
fn what_is_acknowledged_while_the_first_file_is_written_survives() -> Result<()> {
    let mut server = start(&[("appendfsync", "always"), ("save", "")])?;
    let (mut client, mut other) = (server.connect()?, server.connect()?);
    client.call_text("DEBUG POPULATE 1000 key 100")?;
    client.call_text("CONFIG SET rdb-key-save-delay 100000")?;
    ensure!(client.call_text("CONFIG SET appendonly yes")? == ok());
    other.send(&["SET", "late", "1"])?;
    let acknowledged = other.has_input(SLOW)?;
    ensure!(client.call_text("GET key:1")?.text().is_some(), "reads go on");
    server.kill();
    server.set_options(&[("appendonly", "yes")]);
    server.start_again()?;
    let there = server.connect()?.call_text("EXISTS late")?;
    ensure!(!acknowledged || there == Reply::Integer(1), "it was acknowledged and is lost");
    // The reply comes with the base.
    let server = start(&[("appendfsync", "always"), ("save", "")])?;
    let (mut client, mut other) = (server.connect()?, server.connect()?);
    client.call_text("DEBUG POPULATE 1000 key 100")?;
    ensure!(client.call_text("CONFIG SET appendonly yes")? == ok());
    ensure!(other.call_text("SET late 1")? == ok());
    ensure!(figure(&mut client, "aof_last_bgrewrite_status")? == "ok");
    Ok(())
}

/// The answer of HTTP at this path.
fn fetched(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_first_file_that_cannot_be_written_is_told_everywhere() -> Result<()> {
    for policy in ["always", "everysec"] {
        let options = [("appendfsync", policy), ("save", ""), ("rdbcompression", "no")];
        let (mut server, port) = Server::start_with_http(&options)?;
        let mut client = server.connect()?;
        client.call_text("DEBUG POPULATE 1000 key 1000")?;
        ensure!(fetched(port, "/readyz")?.contains(r#"{"status":"ready"}"#));
        limit_files(&server, Some(100 * 1024))?;
        ensure!(client.call_text("CONFIG SET appendonly yes")? == ok());
        let failed =
            |client: &mut Client| Ok(figure(client, "aof_last_bgrewrite_status")? == "err");
        wait_until("the failure", || failed(&mut client))?;
        let written = client.call_text("SET late 1")?;
        let refusal = b"MISCONF Errors writing to the AOF file: File too large".to_vec();
        let expected = if policy == "always" { Reply::Error(refusal) } else { ok() };
        ensure!(written == expected, "{policy}: {written:?}");
        let ready = fetched(port, "/readyz")?;
        ensure!(ready.starts_with("HTTP/1.1 503 ") && ready.contains("File too large"), "{ready}");
        let metrics = fetched(port, "/metrics")?;
        ensure!(metrics.contains("dunlin_append_only_rewrite_last_failed 1"), "{metrics}");
        // No file has the data.
        ensure!(client.call_text("SHUTDOWN")?.is_error());
        ensure!(server.log().contains("can't exit"), "{}", server.log_tail());
        limit_files(&server, None)?;
        wait_until("the base", || Ok(!failed(&mut client)?))?;
        ensure!(client.call_text("SET late 2")? == ok());
        ensure!(fetched(port, "/readyz")?.contains(r#"{"status":"ready"}"#));
        ensure!(server.terminate()? == Some(0));
        server.set_options(&[("appendonly", "yes")]);
        server.start_again()?;
        ensure!(server.connect()?.call_text("DBSIZE")? == Reply::Integer(1001));
    }
    Ok(())
}

/// A list never names files that are somewhere else.
#[test]
fn a_directory_that_is_renamed_gets_a_new_beginning() -> Result<()> {
    let mut server = start(ALWAYS)?;
    let mut client = server.connect()?;
    ensure!(client.call_text("SET before 1")? == ok());
    let path = server.directory().join("appendonlydir");
    fs::rename(&path, server.directory().join("old"))?;
    client.call_text("BGREWRITEAOF")?;
    wait_until("a list", || Ok(listed(&server).is_ok_and(|names| !names.is_empty())))?;
    let refused = || server.log().contains("was moved or removed");
    ensure!(refused(), "{}", server.log_tail());
    wait_until("writes", || {
        let mut writer = server.connect()?;
        writer.send(&["SET", "after", "1"])?;
        Ok(matches!(writer.receive(), Ok(Received::Reply(reply)) if reply == ok()))
    })?;
    for (name, _) in listed(&server)?.iter().filter(|(_, kind)| kind != "h") {
        ensure!(path.join(name).exists(), "{name}");
    }
    server.kill();
    server.start_again()?;
    ensure!(server.connect()?.call_text("MGET before after")? == server_values(), "it has all");
    Ok(())
}

fn server_values() -> Reply {
    Reply::Array(vec![bulk("1"), bulk("1")])
}

/// Unfinished files are removed at the start, and no others.
#[test]
fn any_name_of_the_files_will_do() -> Result<()> {
    for name in ["temp-rewriteaof-bg-1.aof", "temp-rewriteaof-", "temp-a.manifest"] {
        let mut server = start(&[ALWAYS, &[("appendfilename", name)]].concat())?;
        ensure!(server.connect()?.call_text("SET key value")? == ok());
        server.kill();
        server.start_again()?;
        ensure!(server.connect()?.call_text("GET key")? == bulk("value"), "{name}");
    }
    Ok(())
}

#[test]
fn a_server_does_not_start_with_an_empty_base() -> Result<()> {
    let mut server = start(ALWAYS)?;
    ensure!(server.terminate()? == Some(0));
    fs::write(server.directory().join("appendonlydir/appendonly.aof.1.base.rdb"), b"")?;
    ensure!(server.start_again().is_err());
    ensure!(server.log().contains("the file is empty"), "{}", server.log_tail());
    Ok(())
}

/// Redis knows nothing of content types, which are in the file all the same.
#[test]
fn the_reference_loads_a_file_with_content_types() -> Result<()> {
    for preamble in ["yes", "no"] {
        let options = [ALWAYS, &[("aof-use-rdb-preamble", preamble)]].concat();
        let mut server = start(&options)?;
        let directory = server.directory().to_str().context("a path")?.to_owned();
        let mut client = server.connect()?;
        client.call_text("MSET page 1 note 2")?;
        client.call_text("CONTENTTYPE page text/html")?;
        client.call_text("BGREWRITEAOF")?;
        wait_for_rewrite(&mut client, 1)?;
        client.call_text("CONTENTTYPE note text/plain")?;
        let before = digest(&mut client)?;
        server.kill();
        let options = [("appendonly", "yes"), ("dir", directory.as_str())];
        let mut reference = Server::start(Target::Reference, &options)?;
        ensure!(digest(&mut reference.connect()?)? == before, "{}", reference.log_tail());
        ensure!(reference.terminate()? == Some(0));
        server.start_again()?;
        let mut client = server.connect()?;
        ensure!(client.call_text("CONTENTTYPE page")? == bulk("text/html"), "{preamble}");
        ensure!(client.call_text("CONTENTTYPE note")? == bulk("text/plain"), "{preamble}");
    }
    Ok(())
}

/// Where the append-only file has something.
fn in_directory(server: &Server, name: &str) -> PathBuf {
    server.directory().join("appendonlydir").join(name)
}

#[test]
fn a_first_start_makes_a_base_without_data() -> Result<()> {
    for (preamble, base) in
        [("yes", "appendonly.aof.1.base.rdb"), ("no", "appendonly.aof.1.base.aof")]
    {
        let options = [("appendonly", "yes"), ("aof-use-rdb-preamble", preamble)];
        let mut server = start(&options)?;
        let reference = Server::start(Target::Reference, &options)?;
        let manifest = "appendonly.aof.manifest";
        let [ours, theirs] = [&server, &reference].map(|it| fs::read(in_directory(it, manifest)));
        // Redis 8.0 notes where an increment begins for its replicas.
        let theirs = String::from_utf8(theirs?)?.replace(" startoffset 0", "");
        ensure!(ours? == theirs.as_bytes());
        for (verb, kind, name) in
            [("Creating", "base", base), ("Creating", "incr", "appendonly.aof.1.incr.aof")]
        {
            let line = format!("{verb} AOF {kind} file {name} on server start");
            ensure!(server.log().contains(&line), "{}", server.log());
            ensure!(reference.log().contains(&line), "{}", reference.log());
        }
        ensure!(server.connect()?.call_text("SET a 1")? == ok());
        server.terminate()?;
        server.start_again()?;
        let line = "Opening AOF incr file appendonly.aof.1.incr.aof on server start";
        ensure!(server.log().contains(line), "{}", server.log());
        ensure!(server.connect()?.call_text("GET a")? == bulk("1"));
    }
    Ok(())
}

/// Files without a list may be all that is left of the data: they are neither loaded nor changed,
/// so that a user who finds the list finds the data.
#[test]
fn files_that_no_list_names_stay_as_they_are() -> Result<()> {
    let mut server = start(ALWAYS)?;
    let [manifest, increment] = ["appendonly.aof.manifest", "appendonly.aof.1.incr.aof"]
        .map(|name| in_directory(&server, name));
    ensure!(server.connect()?.call_text("SET a 1")? == ok());
    server.kill();
    let (list, content) = (fs::read(&manifest)?, fs::read(&increment)?);
    let base = "file appendonly.aof.1.base.rdb seq 1 type b\n";
    for found in [None, Some(base)] {
        match found {
            None => fs::remove_file(&manifest)?,
            Some(list) => fs::write(&manifest, list)?,
        }
        server.start_again()?;
        let warned = server.log().contains("no manifest that lists them");
        ensure!(warned == found.is_none(), "{}", server.log_tail());
        ensure!(server.connect()?.call_text("SET b 1")? == ok());
        server.start_again()?;
        ensure!(server.connect()?.call_text("EXISTS a b")? == Reply::Integer(1));
        server.kill();
        ensure!(fs::read(&increment)? == content, "{found:?}");
    }
    fs::write(&manifest, list)?;
    server.start_again()?;
    ensure!(server.connect()?.call_text("EXISTS a b")? == Reply::Integer(1));
    ensure!(server.connect()?.call_text("GET a")? == bulk("1"));
    Ok(())
}

#[test]
fn what_is_of_no_use_is_removed_at_the_start() -> Result<()> {
    let mut server = start(&[("appendonly", "yes")])?;
    server.terminate()?;
    let [manifest, obsolete] = ["appendonly.aof.manifest", "appendonly.aof.7.incr.aof"]
        .map(|name| in_directory(&server, name));
    let list = fs::read_to_string(&manifest)?;
    fs::write(&obsolete, "old")?;
    fs::write(&manifest, format!("{list}file appendonly.aof.7.incr.aof seq 7 type h\n"))?;
    server.start_again()?;
    ensure!(!obsolete.exists(), "{}", server.log_tail());
    ensure!(fs::read_to_string(&manifest)? == list);
    Ok(())
}

#[test]
fn a_transaction_only_announces_a_rewrite() -> Result<()> {
    for target in [Target::Dunlin, Target::Reference] {
        let server = Server::start(target, &[("appendonly", "yes"), ("save", "")])?;
        let mut client = server.connect()?;
        for line in ["MULTI", "BGREWRITEAOF", "BGREWRITEAOF"] {
            client.call_text(line)?;
        }
        let scheduled = Reply::Status(b"Background append only file rewriting scheduled".to_vec());
        let both = Reply::Array(vec![scheduled.clone(), scheduled]);
        ensure!(client.call_text("EXEC")? == both, "{target:?}");
        wait_until("the rewrite", || {
            Ok(server.log().contains("Background AOF rewrite finished successfully"))
        })?;
    }
    Ok(())
}

#[test]
fn save_waits_for_a_rewrite_and_bgsave_follows_it() -> Result<()> {
    let server = start(&[("appendonly", "yes"), ("auto-aof-rewrite-percentage", "0")])?;
    let (mut client, mut other) = (server.connect()?, server.connect()?);
    client.call_text("DEBUG POPULATE 10000")?;
    client.call_text("CONFIG SET rdb-key-save-delay 50")?;
    client.call_text("BGREWRITEAOF")?;
    ensure!(client.call_text("BGSAVE")?.is_error());
    let scheduled = Reply::Status(b"Background saving scheduled".to_vec());
    ensure!(client.call_text("BGSAVE SCHEDULE")? == scheduled);
    client.send(&["SAVE"])?;
    ensure!(figure(&mut other, "aof_rewrite_in_progress")? == "1");
    ensure!(figure(&mut other, "rdb_bgsave_in_progress")? == "0");
    ensure!(client.receive()? == Received::Reply(ok()));
    ensure!(figure(&mut other, "aof_rewrite_in_progress")? == "0");
    wait_until("both", || Ok(figure(&mut other, "rdb_saves")? == "2"))?;
    Ok(())
}

#[test]
fn a_rewrite_that_nobody_wants_does_not_count_as_going_on() -> Result<()> {
    let server = start(&[("appendonly", "yes")])?;
    let mut client = server.connect()?;
    client.call_text("DEBUG POPULATE 10000")?;
    client.call_text("CONFIG SET rdb-key-save-delay 50")?;
    client.call_text("BGREWRITEAOF")?;
    ensure!(figure(&mut client, "aof_rewrite_in_progress")? == "1");
    client.call_text("CONFIG SET appendonly no")?;
    ensure!(figure(&mut client, "aof_rewrite_in_progress")? == "0");
    let given_up = || Ok(server.log().contains("Background AOF rewrite given up"));
    wait_until("the end of the rewrite", given_up)?;
    ensure!(figure(&mut client, "aof_last_bgrewrite_status")? == "ok");
    Ok(())
}

/// Files are not replaced while they are loaded.
#[test]
fn loading_goes_on_beside_the_end_of_a_rewrite() -> Result<()> {
    let server = start(&[("appendonly", "yes"), ("auto-aof-rewrite-percentage", "0")])?;
    let mut client = server.connect()?;
    for key in 0..100 {
        client.call(&["SET", &format!("key:{key}"), "value"])?;
    }
    for round in 0..100 {
        client.call(&["SET", "round", &round.to_string()])?;
        client.call_text("BGREWRITEAOF")?;
        std::thread::sleep(Duration::from_micros(200 * round));
        let loaded = client.call_text("DEBUG LOADAOF")?;
        ensure!(loaded == ok(), "{loaded:?}\n{}", server.log_tail());
        ensure!(client.call_text("GET round")? == bulk(&round.to_string()));
        ensure!(client.call_text("DBSIZE")? == Reply::Integer(101));
    }
    Ok(())
}

/// Only a start that loads it takes over an append-only file of the time before Redis 7: a file
/// that is not loaded is not replaced either.
#[test]
fn an_old_file_that_was_not_loaded_stays() -> Result<()> {
    for turns_on in [true, false] {
        let server = start(&[])?;
        let old = server.directory().join("appendonly.aof");
        let content = b"*3\r\n$3\r\nSET\r\n$3\r\nold\r\n$1\r\n1\r\n";
        fs::write(&old, content)?;
        let mut client = server.connect()?;
        if turns_on {
            ensure!(client.call_text("CONFIG SET appendonly yes")? == ok());
            wait_for_rewrite(&mut client, 1)?;
        }
        client.call_text("BGREWRITEAOF")?;
        wait_for_rewrite(&mut client, 1 + u64::from(turns_on))?;
        ensure!(figure(&mut client, "aof_last_bgrewrite_status")? == "ok");
        ensure!(fs::read(&old)? == content, "turned on: {turns_on}");
    }
    let mut server = start(ALWAYS)?;
    server.kill();
    fs::remove_dir_all(server.directory().join("appendonlydir"))?;
    fs::write(
        server.directory().join("appendonly.aof"),
        b"*3\r\n$3\r\nSET\r\n$3\r\nold\r\n$1\r\n1\r\n",
    )?;
    server.start_again()?;
    ensure!(server.connect()?.call_text("GET old")? == bulk("1"));
    Ok(())
}

/// When another setting of the same command fails, the file is neither ended nor begun for a
/// moment.
#[test]
fn settings_that_are_undone_leave_the_file_alone() -> Result<()> {
    let taken = TcpListener::bind(("127.0.0.1", 0))?;
    let port = taken.local_addr()?.port().to_string();
    for (before, asked) in [("yes", "no"), ("no", "yes")] {
        let server = start(&[("appendonly", before)])?;
        let mut client = server.connect()?;
        let reply = client.call(&["CONFIG", "SET", "appendonly", asked, "port", &port])?;
        ensure!(
            matches!(&reply, Reply::Error(text) if text.ends_with(b"Check server logs.")),
            "{reply:?}"
        );
        ensure!(figure(&mut client, "aof_rewrites")? == "0");
        ensure!(figure(&mut client, "aof_enabled")? == if before == "yes" { "1" } else { "0" });
    }
    Ok(())
}
