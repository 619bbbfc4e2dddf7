//! Connections that become replicas and then misbehave: they stall, leave, or say what is not so.
//! Others must not suffer.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use tests::client::{Client, Received, Reply};
use tests::notation;
use tests::observe::{figure, number, wait_until};
use tests::process::{resume, stop};
use tests::quoting;
use tests::server::{Server, Target};

fn primary(options: &[(&str, &str)]) -> Result<Server> {
    let usual = [("threads", "2"), ("repl-diskless-sync-delay", "0"), ("rdbcompression", "no")];
    Server::start(Target::Dunlin, &[&usual, options].concat())
}

fn say(client: &mut Client, command: &str) -> Result<Reply> {
    client.call(&quoting::split(command)?)
}

fn shown(client: &mut Client, command: &str) -> Result<String> {
    Ok(notation::lines(&say(client, command)?).join("\n"))
}

/// Data that no socket takes as a whole while nobody reads it, nor the buffer of a copy.
fn fill(client: &mut Client) -> Result<()> {
    let reply = say(client, "DEBUG POPULATE 40000 key 1000")?;
    ensure!(!reply.is_error(), "{reply:?}");
    Ok(())
}

/// Bytes that a copy of this data has at least.
const COPY: usize = 40_000_000;

/// A replica of the test's own, which has asked for a copy and has read nothing yet.
fn attach(port: u16) -> Result<TcpStream> {
    let mut socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_read_timeout(Some(tests::observe::PATIENCE))?;
    socket.write_all(b"REPLCONF capa eof capa psync2\r\n")?;
    let mut answer = [0; 5];
    socket.read_exact(&mut answer)?;
    ensure!(answer == *b"+OK\r\n", "{answer:?}");
    socket.write_all(b"PSYNC ? -1\r\n")?;
    Ok(socket)
}

/// Reads a copy. Returns how much came before the connection ended, if it did.
fn read_copy(socket: &mut TcpStream) -> Result<usize> {
    let (mut all, mut buffer) = (0, vec![0; 1 << 18]);
    while all < COPY {
        let read = socket.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        all += read;
    }
    Ok(all)
}

#[test]
fn one_that_takes_nothing_is_let_go_and_the_others_get_their_copy() -> Result<()> {
    // The longest silence that the tests would not survive, and the shortest one that the walk
    // itself may keep a fast replica waiting for.
    for timeout in ["600", "3"] {
        let primary = primary(&[("repl-timeout", timeout), ("repl-diskless-sync-delay", "1")])?;
        let mut client = primary.connect()?;
        fill(&mut client)?;
        let stalled = attach(primary.port())?;
        let mut fast = attach(primary.port())?;
        let read = read_copy(&mut fast)?;
        ensure!(read >= COPY, "timeout {timeout}: the fast one got {read} bytes alone");
        wait_until("the stalled one is let go", || {
            Ok(primary.log().contains("it takes its copy too slowly"))
        })?;
        drop(stalled);
    }
    Ok(())
}

#[test]
fn those_that_leave_at_once_keep_nobody_waiting() -> Result<()> {
    let primary = primary(&[("repl-timeout", "600")])?;
    let mut client = primary.connect()?;
    fill(&mut client)?;
    let (port, stop) = (primary.port(), AtomicBool::new(false));
    thread::scope(|scope| {
        let leavers: Vec<_> = (0..16_u64)
            .map(|own| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut number = own;
                    while !stop.load(Relaxed) {
                        number = (number * 7 + 3) % 41;
                        // Whatever becomes of it.
                        let socket = attach(port);
                        thread::sleep(Duration::from_micros(number * 100));
                        drop(socket);
                    }
                })
            })
            .collect();
        let read = (0..12).try_for_each(|number| {
            let read = read_copy(&mut attach(port)?)?;
            ensure!(read >= COPY, "copy {number}: {read} bytes");
            Ok(())
        });
        stop.store(true, Relaxed);
        leavers.into_iter().for_each(|leaver| leaver.join().expect("no panic"));
        read
    })?;
    wait_until("all have gone", || Ok(number(&mut client, "connected_slaves")? == 0))
}

/// The end of a stream may come in one event with the last bytes before it.
#[test]
fn one_that_ends_its_stream_with_its_last_words_is_let_go() -> Result<()> {
    let primary = primary(&[("repl-timeout", "600")])?;
    let mut client = primary.connect()?;
    let mut socket = attach(primary.port())?;
    wait_until("it has its copy", || {
        Ok(shown(&mut client, "INFO replication")?.contains("state=online"))
    })?;
    stop(primary.pid())?;
    socket.write_all(b"REPLCONF ACK 1\r\n")?;
    // It may still be sent what comes, so no failure to send tells of it.
    socket.shutdown(Shutdown::Write)?;
    resume(primary.pid())?;
    wait_until("it is let go", || Ok(number(&mut client, "connected_slaves")? == 0))
}

#[test]
fn no_client_waits_for_a_copy_that_nobody_takes() -> Result<()> {
    let primary = primary(&[("repl-timeout", "600"), ("appendonly", "yes")])?;
    let mut client = primary.connect()?;
    fill(&mut client)?;
    let stalled = attach(primary.port())?;
    wait_until("the copy goes on", || {
        Ok(shown(&mut client, "INFO replication")?.contains("state=send_bulk"))
    })?;
    for (command, reply) in [
        ("SAVE", "(error) ERR Background save already in progress"),
        ("BGSAVE", "(error) ERR Background save already in progress"),
        ("BGSAVE SCHEDULE", "Background saving scheduled"),
        ("SWAPDB 0 1", "OK"),
        ("FLUSHALL", "OK"),
    ] {
        let own = shown(&mut client, command)?;
        ensure!(own == reply, "{command}: {own}");
    }
    drop(stalled);
    wait_until("the file that was asked for is written", || {
        Ok(primary.log().contains("Background saving terminated with success"))
    })
}

#[test]
fn a_copy_that_cannot_begin_is_tried_again_after_a_pause() -> Result<()> {
    let primary = primary(&[("repl-diskless-sync", "no"), ("enable-protected-configs", "yes")])?;
    let mut client = primary.connect()?;
    let lost = primary.directory().join("lost");
    std::fs::create_dir(&lost)?;
    say(&mut client, &format!("CONFIG SET dir {}", lost.display()))?;
    std::fs::remove_dir(&lost)?;
    let begun = Instant::now();
    let mut replica = attach(primary.port())?;
    let failures = || primary.log().matches("A full copy for replicas cannot begin").count();
    wait_until("it has failed again and again", || Ok(failures() >= 3))?;
    let count = failures();
    let most = 2 + begun.elapsed().as_secs() as usize;
    ensure!(count <= most, "{count} attempts in {:?}", begun.elapsed());
    say(&mut client, &format!("CONFIG SET dir {}", primary.directory().display()))?;
    let mut first = [0; 12];
    loop {
        replica.read_exact(&mut first[..1])?;
        if first[0] != b'\n' {
            break;
        }
    }
    replica.read_exact(&mut first[1..])?;
    ensure!(first == *b"+FULLRESYNC ", "{first:?}");
    Ok(())
}

#[test]
fn what_was_never_there_is_not_acknowledged() -> Result<()> {
    let primary = primary(&[])?;
    let mut client = primary.connect()?;
    let mut replica = attach(primary.port())?;
    wait_until("it is online", || {
        Ok(shown(&mut client, "INFO replication")?.contains("state=online"))
    })?;
    for offset in ["9223372036854775807", "-1", "x", "99999999999999999999"] {
        replica.write_all(&encoded(&["REPLCONF", "ACK", offset]))?;
        say(&mut client, "SET k v")?;
        ensure!(say(&mut client, "WAIT 1 100")? == Reply::Integer(0), "{offset}");
    }
    let offset = figure(&mut client, "master_repl_offset")?;
    replica.write_all(&encoded(&["REPLCONF", "ACK", &offset]))?;
    ensure!(say(&mut client, "WAIT 1 60000")? == Reply::Integer(1), "{offset}");
    Ok(())
}

fn encoded(words: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    tests::client::encode(words, &mut bytes);
    bytes
}

#[test]
fn a_primary_that_follows_another_lets_no_client_wait_for_replicas() -> Result<()> {
    let primary = primary(&[("appendonly", "yes")])?;
    let _replica = attach(primary.port())?;
    let mut client = primary.connect()?;
    for (command, other) in
        [("WAIT 1 0", "REPLICAOF 127.0.0.1 1"), ("WAITAOF 0 1 0", "REPLICAOF 127.0.0.1 2")]
    {
        say(&mut client, "REPLICAOF NO ONE")?;
        say(&mut client, "SET k v")?;
        let mut waiting = primary.connect()?;
        say(&mut waiting, "SET k v")?;
        waiting.send(&quoting::split(command)?)?;
        wait_until("it waits", || Ok(number(&mut client, "blocked_clients")? == 1))?;
        say(&mut client, other)?;
        let error = match waiting.receive()? {
            Received::Reply(Reply::Error(error)) => error,
            other => bail!("{command}: {other:?}"),
        };
        ensure!(error.starts_with(b"UNBLOCKED "), "{command}: {}", error.escape_ascii());
    }
    Ok(())
}

#[test]
fn a_silent_link_of_a_node_ends_when_the_node_has_connected_again() -> Result<()> {
    let server = primary(&[])?;
    let mut client = server.connect()?;
    // A process that stands still keeps its connection, and its node is started elsewhere.
    let of_node = |node: u8| -> Result<TcpStream> {
        let mut socket = TcpStream::connect(("127.0.0.1", server.port()))?;
        socket.set_read_timeout(Some(tests::observe::PATIENCE))?;
        let node = format!("{node:02x}").repeat(20);
        socket.write_all(format!("REPLCONF capa eof cluster-node {node}:1\r\n").as_bytes())?;
        let mut answer = [0; 5];
        socket.read_exact(&mut answer)?;
        ensure!(answer == *b"+OK\r\n", "{answer:?}");
        socket.write_all(b"PSYNC ? -1\r\n")?;
        Ok(socket)
    };
    let mut before = of_node(7)?;
    let _other = of_node(8)?;
    let _after = of_node(7)?;
    let mut buffer = [0; 4096];
    while before.read(&mut buffer)? > 0 {}
    wait_until("the other two are left", || {
        Ok(shown(&mut client, "INFO replication")?.contains("connected_slaves:2"))
    })
}
