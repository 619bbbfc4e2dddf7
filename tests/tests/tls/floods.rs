//! Many connections that never become encrypted ones.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Result, ensure};
use tests::observe::{PATIENCE, log_stays_short};

use crate::house::{House, simple};

#[test]
fn a_flood_of_failed_handshakes_is_a_line_a_second_and_others_are_served() -> Result<()> {
    let house = House::open(&[("threads", "1")])?;
    let mut before = house.connect()?;
    log_stays_short(&house.server, "Error accepting a client connection", 300, || {
        let mut socket = TcpStream::connect(("127.0.0.1", house.port))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.write_all(b"this is no handshake\r\n")?;
        let mut answer = Vec::new();
        // The system may say that it was reset.
        let _ = socket.read_to_end(&mut answer);
        ensure!(before.call("PING")? == simple("PONG"));
        Ok(())
    })
}

/// The bytes of a vector, after their number in so many bytes (RFC 8446, section 3.4).
fn vector(width: usize, bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_be_bytes();
    [&length[4 - width..], bytes].concat()
}

/// A hello of TLS 1.3 with this key, in records (RFC 8446, section 4.1.2). Sixty kilobytes of it
/// are padding.
fn long_hello(key: &[u8]) -> Vec<u8> {
    let extension =
        |number: u16, bytes: &[u8]| [&number.to_be_bytes()[..], &vector(2, bytes)].concat();
    let extensions = [
        extension(43, &vector(1, b"\x03\x04")),
        extension(10, &vector(2, b"\x00\x1d")),
        extension(13, &vector(2, b"\x04\x03\x08\x04\x08\x07")),
        extension(51, &vector(2, key)),
        extension(21, &[0; 60_000]),
    ];
    let hello = [
        &b"\x03\x03"[..],
        &[b'r'; 32],
        &vector(1, b""),
        &vector(2, b"\x13\x01"),
        &vector(1, b"\x00"),
        &vector(2, &extensions.concat()),
    ];
    let message = [&b"\x01"[..], &vector(3, &hello.concat())].concat();
    let records = message.chunks(16_000);
    records.flat_map(|part| [&b"\x16\x03\x01"[..], &vector(2, part)].concat()).collect()
}

#[test]
fn a_handshake_of_many_kilobytes_keeps_nobody_else_from_one() -> Result<()> {
    let house = House::open(&[("threads", "1")])?;
    // The server asks for a key of another kind than none. All comes at once, and does not end.
    let share = [&b"\x00\x1d"[..], &vector(2, &[b'k'; 32])].concat();
    let mut second = long_hello(&share);
    second.truncate(second.len() - 1000);
    let all = [long_hello(b""), second].concat();
    let mut sockets = Vec::new();
    for _ in 0..3 {
        let mut socket = TcpStream::connect(("127.0.0.1", house.port))?;
        socket.write_all(&all)?;
        sockets.push(socket);
        ensure!(house.connect()?.call("PING")? == simple("PONG"));
    }
    Ok(())
}
