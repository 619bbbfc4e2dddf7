//! Replicas that keep up badly, or understand less than their primary: what writers and operators
//! notice, and what becomes of the link.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::net::sockopt;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use tests::client::{Client, Reply};
use tests::notation;
use tests::observe::{PATIENCE, figure, number, wait_until};
use tests::quoting;
use tests::server::{Server, Target};

fn primary(options: &[(&str, &str)]) -> Result<Server> {
    let usual = [("threads", "2"), ("repl-diskless-sync-delay", "0")];
    Server::start(Target::Dunlin, &[&usual, options].concat())
}

fn say(client: &mut Client, command: &str) -> Result<Reply> {
    client.call(&quoting::split(command)?)
}

fn shown(client: &mut Client, command: &str) -> Result<String> {
    Ok(notation::lines(&say(client, command)?).join("\n"))
}

/// A replica of the test's own that follows the stream: it is told the length of its copy, so that
/// it need not say that it has read the end.
fn follower(primary: &Server) -> Result<TcpStream> {
    let mut client = primary.connect()?;
    let mut socket = TcpStream::connect(("127.0.0.1", primary.port()))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(b"PSYNC ? -1\r\n")?;
    wait_until("it follows", || {
        Ok(shown(&mut client, "INFO replication")?.contains("state=online"))
    })?;
    Ok(socket)
}

/// Bytes that the test writes, ten times as many as the limit allows to wait.
const WRITTEN: usize = 640 << 20;
const VALUE: usize = 100_000;

/// The reader stays so far behind: less than the limit, and more than half of it.
const BEHIND: usize = 48 << 20;

fn write(primary: &Server, written: &AtomicUsize) -> Result<()> {
    let (mut client, value) = (primary.connect()?, "v".repeat(VALUE));
    for _ in 0..WRITTEN / VALUE {
        let reply = client.call(&["SET", "key", &value])?;
        ensure!(!reply.is_error(), "{reply:?}");
        written.fetch_add(VALUE, Relaxed);
    }
    Ok(())
}

/// Reads the stream, at some distance until all is written.
fn read(mut replica: TcpStream, written: &AtomicUsize, done: &AtomicBool) -> Result<()> {
    let (mut all, mut buffer) = (0, vec![0; 1 << 18]);
    while all < WRITTEN {
        while !done.load(Relaxed) && written.load(Relaxed) < all + BEHIND {
            thread::sleep(Duration::from_millis(1));
        }
        let read = replica.read(&mut buffer)?;
        ensure!(read > 0, "the link ended after {all} bytes");
        all += read;
    }
    Ok(())
}

#[test]
fn writers_are_slowed_down_for_one_that_is_slower_than_they_are() -> Result<()> {
    let primary = primary(&[("client-output-buffer-limit", "replica 64mb 0 0")])?;
    let (mut client, replica) = (primary.connect()?, follower(&primary)?);
    let (written, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let reader = scope.spawn(|| read(replica, &written, &done));
        let result = write(&primary, &written);
        done.store(true, Relaxed);
        reader.join().expect("no panic")?;
        result
    })?;
    ensure!(number(&mut client, "writers_slowed_ms")? > 0, "nobody was slowed down");
    ensure!(primary.log().contains("Writers are slowed down: "), "{}", primary.log_tail());
    wait_until("writers are free again", || Ok(number(&mut client, "writers_slowed_percent")? == 0))
}

/// How much writers are slowed down, or were: INFO shows it if there are replicas, or it was so.
fn slowed(client: &mut Client, unit: &str) -> u64 {
    number(client, &format!("writers_slowed_{unit}")).unwrap_or(0)
}

#[test]
fn nobody_is_slowed_down_for_one_that_takes_nothing() -> Result<()> {
    let primary = primary(&[("client-output-buffer-limit", "replica 512mb 64mb 1")])?;
    let (mut client, stopped) = (primary.connect()?, follower(&primary)?);
    write(&primary, &AtomicUsize::new(0))?;
    wait_until("its link ends", || Ok(number(&mut client, "connected_slaves")? == 0))?;
    wait_until("writers are free", || Ok(slowed(&mut client, "percent") == 0))?;
    drop(stopped);
    let before = slowed(&mut client, "ms");
    write(&primary, &AtomicUsize::new(0))?;
    ensure!(slowed(&mut client, "ms") == before, "no replica is there");
    Ok(())
}

#[test]
fn an_old_replica_that_follows_is_named_when_fields_expire() -> Result<()> {
    let primary = primary(&[])?;
    let replica = Server::start(Target::Valkey, &[])?;
    let (mut own, mut other) = (primary.connect()?, replica.connect()?);
    ensure!(!say(&mut other, &format!("REPLICAOF 127.0.0.1 {}", primary.port()))?.is_error());
    wait_until("it follows", || Ok(shown(&mut own, "INFO replication")?.contains("state=online")))?;
    say(&mut own, "HSET hash f v g w")?;
    say(&mut own, "HPEXPIRE hash 500000 FIELDS 1 f")?;
    let line = "it has not said that it knows such fields";
    wait_until("the log names it", || Ok(primary.log().contains(line)))?;
    say(&mut own, "SET after that")?;
    wait_until("the link goes on", || Ok(shown(&mut other, "GET after")? == "\"that\""))?;
    ensure!(figure(&mut own, "sync_full")? == "1", "no copy is of use");
    ensure!(primary.log().matches(line).count() == 1, "{}", primary.log_tail());
    Ok(())
}

/// Whether the server's end of this connection sends small packets at once.
fn sends_at_once(server: &Server, client: &TcpStream) -> Result<bool> {
    let pid = Pid::from_raw(i32::try_from(server.pid())?).context("a process id")?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let own = client.local_addr()?;
    for entry in std::fs::read_dir(format!("/proc/{}/fd", server.pid()))? {
        let number = entry?.file_name().to_string_lossy().parse()?;
        let Ok(descriptor) = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) else {
            continue;
        };
        let peer = rustix::net::getpeername(&descriptor).ok().flatten();
        if peer.and_then(|peer| peer.try_into().ok()) == Some(own) {
            return Ok(sockopt::tcp_nodelay(&descriptor)?);
        }
    }
    anyhow::bail!("no descriptor is the other end")
}

#[test]
fn small_packets_are_gathered_if_that_is_wanted() -> Result<()> {
    for (setting, at_once) in [("no", true), ("yes", false)] {
        let primary = primary(&[("repl-disable-tcp-nodelay", setting)])?;
        let replica = follower(&primary)?;
        ensure!(sends_at_once(&primary, &replica)? == at_once, "{setting}");
    }
    Ok(())
}
