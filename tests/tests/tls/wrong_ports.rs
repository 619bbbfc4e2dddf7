//! Clients of TLS at ports that do not speak it, and the other way round.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use anyhow::{Result, ensure};
use tests::client::{Received, Reply};
use tests::observe::PATIENCE;
use tests::server::dunlin_binary;

use crate::house::{House, is_served, run};

#[test]
fn the_log_says_who_speaks_no_tls() -> Result<()> {
    let house = House::open(&[])?;
    // Each has its line then.
    ensure!(!house.control()?.call_text("CONFIG SET loglevel verbose")?.is_error());
    for (bytes, what) in [
        (&b"PING\r\n"[..], "it sends text without TLS"),
        (b"*1\r\n$4\r\nPING\r\n", "it speaks RESP without TLS"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "it speaks HTTP without TLS"),
        (b"\0\0\0\0\0\0\0\0", "most likely it does not speak TLS"),
    ] {
        for port in [house.port, house.https] {
            let mut socket = TcpStream::connect(("127.0.0.1", port))?;
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.write_all(bytes)?;
            let mut answer = Vec::new();
            socket.read_to_end(&mut answer)?;
            // An alert of TLS, which is all that can be said there.
            ensure!(answer.starts_with(b"\x15\x03"), "{}", answer.escape_ascii());
        }
        house.logs(&format!("Error accepting a client connection: {what}"))?;
        let log = house.server.log();
        let line = log.lines().find(|line| line.contains(what));
        ensure!(line.is_some_and(|line| line.contains("(addr=127.0.0.1:")), "{log}");
    }
    ensure!(is_served(house.connect()));
    Ok(())
}

#[test]
fn a_client_of_tls_at_an_open_port_is_answered() -> Result<()> {
    let house = House::open(&[])?;
    let mut socket = TcpStream::connect(("127.0.0.1", house.server.port()))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // The beginning of a hello, in which no byte ends a line.
    socket.write_all(b"PING\r\n\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    let expected =
        b"+PONG\r\n-ERR Protocol error: the client speaks TLS, and this port does not\r\n";
    ensure!(answer == expected, "{}", answer.escape_ascii());
    // As data, they are bytes like others.
    let mut control = house.control()?;
    control.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\n\x16\x03")?;
    ensure!(house.control()?.call_text("PING")?.text() == Some(&b"PONG"[..]));
    control.send_raw(b"\x01abc\r\n")?;
    ensure!(control.receive()? == Received::Reply(Reply::Status(b"OK".to_vec())));
    Ok(())
}

#[test]
fn tools_say_that_a_server_most_likely_speaks_no_tls() -> Result<()> {
    let house = House::open(&[])?;
    let open = house.server.port().to_string();
    let mut bench = Command::new(dunlin_binary()?);
    bench.args(["bench", "--tls", "--insecure", "-p", &open, "-n", "10", "-q", "-t", "set"]);
    let mut moves = Command::new(dunlin_binary()?);
    let (from, to) = (format!("rediss://127.0.0.1:{open}"), "rediss://127.0.0.1:1");
    moves.args(["move", "--from", &from, "--to", to, "--yes"]);
    for command in [bench, moves] {
        let output = run(command, b"")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success(), "{said}");
        ensure!(said.contains("most likely the server does not speak TLS at this port"), "{said}");
    }
    Ok(())
}
