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
