//! Streams that are slow, broken, cut off or large.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use resp::client::Value;
use rustls::ClientConnection;
use tests::observe::{PATIENCE, number, wait_until};
use tls::Stream;
use tls::client::server_name;

use crate::house::{APART, Caller, House, bulk, is_served, read_some, run, simple};

/// A session whose bytes the test carries.
struct Carried {
    socket: TcpStream,
    session: ClientConnection,
}

impl Carried {
    fn begin(house: &House) -> Result<Carried> {
        let socket = TcpStream::connect(("127.0.0.1", house.port))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let name = server_name("127.0.0.1").map_err(anyhow::Error::msg)?;
        let mut session = ClientConnection::new(house.config()?, name)?;
        session.set_buffer_limit(None);
        Ok(Carried { socket, session })
    }

    /// What the session has to say, encrypted.
    fn said(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// Sends it in pieces of this size.
    fn pass_on(&mut self, size: usize) -> Result<()> {
        for piece in self.said()?.chunks(size) {
            self.socket.write_all(piece)?;
            std::thread::sleep(APART);
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<()> {
        ensure!(self.session.read_tls(&mut self.socket)? > 0, "the server has closed it");
        self.session.process_new_packets()?;
        Ok(())
    }

    fn shake_hands(&mut self, size: usize) -> Result<()> {
        while self.session.is_handshaking() {
            self.pass_on(size)?;
            if self.session.is_handshaking() {
                self.hear()?;
            }
        }
        self.pass_on(size)
    }

    fn say(&mut self, text: &str) -> Result<()> {
        Ok(self.session.writer().write_all(text.as_bytes())?)
    }

    /// Waits for so much of the reply.
    fn replied(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut reply = vec![0; count];
        let mut length = 0;
        while length < count {
            match self.session.reader().read(&mut reply[length..]) {
                Ok(read) => length += read,
                Err(_) => self.hear()?,
            }
        }
        Ok(reply)
    }
}

#[test]
fn records_may_come_byte_by_byte() -> Result<()> {
    let house = House::open(&[])?;
    for size in [1, 7] {
        let mut carried = Carried::begin(&house)?;
        carried.shake_hands(size)?;
        carried.say("SET slow bytes\r\n")?;
        carried.say("GET slow\r\nPING\r\n")?;
        carried.pass_on(size)?;
        ensure!(carried.replied(23)? == b"+OK\r\n$5\r\nbytes\r\n+PONG\r\n");
    }
    Ok(())
}

#[test]
fn what_comes_with_the_end_of_the_handshake_is_not_lost() -> Result<()> {
    let house = House::open(&[])?;
    let mut carried = Carried::begin(&house)?;
    while carried.session.is_handshaking() {
        let said = carried.said()?;
        carried.socket.write_all(&said)?;
        carried.hear()?;
    }
    // The last part of the handshake and thousands of commands in one piece.
    for index in 0..2000 {
        carried.say(&format!("SET key-{index} value\r\n"))?;
    }
    let said = carried.said()?;
    carried.socket.write_all(&said)?;
    ensure!(carried.replied(5 * 2000)? == b"+OK\r\n".repeat(2000));
    Ok(())
}

#[test]
fn large_commands_and_replies_pass_in_both_directions() -> Result<()> {
    let house = House::open(&[("threads", "2")])?;
    let value: Vec<u8> = (0..8_000_000_u32).map(|index| (index % 251) as u8).collect();
    let mut caller = house.connect()?;
    let head = format!("*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n${}\r\n", value.len());
    let mut request = [head.as_bytes(), &value, b"\r\n"].concat();
    request.extend_from_slice(b"GET large\r\n");
    for _ in 0..3 {
        caller.stream.write_all(&request)?;
        caller.stream.flush()?;
        ensure!(caller.receive()? == simple("OK"));
        ensure!(caller.receive()? == bulk(&value));
    }
    // Commands that wait in the socket while nobody reads their replies.
    for _ in 0..4 {
        caller.send("GET large")?;
    }
    for _ in 0..4 {
        ensure!(caller.receive()? == bulk(&value));
    }
    Ok(())
}

#[test]
fn a_stream_that_is_cut_off_loses_what_was_incomplete_and_nothing_else() -> Result<()> {
    let house = House::open(&[])?;
    let mut control = house.control()?;
    let mut carried = Carried::begin(&house)?;
    carried.shake_hands(1000)?;
    carried.say("SET whole 1\r\n")?;
    carried.pass_on(1000)?;
    carried.say("SET half 1\r\n")?;
    let record = carried.said()?;
    carried.socket.write_all(&record[..record.len() - 1])?;
    carried.socket.shutdown(Shutdown::Write)?;
    // It has ended its stream without a word, and gets its answers all the same.
    ensure!(carried.replied(5)? == b"+OK\r\n");
    let mut rest = Vec::new();
    carried.socket.read_to_end(&mut rest)?;
    ensure!(control.call_text("EXISTS whole half")? == tests::client::Reply::Integer(1));
    wait_until("the client is gone", || Ok(number(&mut control, "connected_clients")? == 1))
}

#[test]
fn a_client_may_leave_without_a_word() -> Result<()> {
    let house = House::open(&[])?;
    let mut control = house.control()?;
    let mut caller = house.connect()?;
    caller.send("SET left behind")?;
    // Without the warning that TLS wants.
    let Stream::Encrypted(own) = &caller.stream else { unreachable!("it is encrypted") };
    own.sock.shutdown(Shutdown::Both)?;
    wait_until("the write is there", || {
        Ok(control.call_text("GET left")?.text() == Some(b"behind"))
    })?;
    wait_until("the client is gone", || Ok(number(&mut control, "connected_clients")? == 1))
}

#[test]
fn a_client_that_says_that_it_ends_gets_its_answers() -> Result<()> {
    let house = House::open(&[])?;
    let mut carried = Carried::begin(&house)?;
    carried.shake_hands(1000)?;
    carried.say("SET a 1\r\nGET a\r\n")?;
    carried.session.send_close_notify();
    carried.pass_on(10_000)?;
    ensure!(carried.replied(12)? == b"+OK\r\n$1\r\n1\r\n");
    // The server says that it ends, too.
    while !carried.session.process_new_packets()?.peer_has_closed() {
        carried.hear()?;
    }
    Ok(())
}

#[test]
fn what_is_no_handshake_is_refused() -> Result<()> {
    let house = House::open(&[("loglevel", "verbose")])?;
    let garbage: Vec<u8> = (0..60_000_u32).map(|index| (index * 7919 % 256) as u8).collect();
    let mut too_long = vec![22, 3, 1, 0xff, 0xff];
    too_long.extend_from_slice(&garbage);
    for bytes in [&b"PING\r\n"[..], b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &garbage, &too_long] {
        let mut socket = TcpStream::connect(("127.0.0.1", house.port))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        // The server may have closed it meanwhile.
        let _ = socket.write_all(bytes);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        // At most a warning of TLS, which has the number 21.
        ensure!(answer.is_empty() || answer[0] == 21, "{}", answer.escape_ascii());
    }
    // A record that was changed on its way.
    let mut carried = Carried::begin(&house)?;
    carried.shake_hands(1000)?;
    carried.say("SET changed 1\r\n")?;
    let mut record = carried.said()?;
    let last = record.len() - 1;
    record[last] ^= 1;
    carried.socket.write_all(&record)?;
    while carried.hear().is_ok() {}
    house.logs("Error accepting a client connection")?;
    ensure!(house.control()?.call_text("EXISTS changed")? == tests::client::Reply::Integer(0));
    ensure!(is_served(house.connect()));
    Ok(())
}

#[test]
fn half_open_handshakes_delay_nobody() -> Result<()> {
    let house = House::open(&[("threads", "1"), ("maxclients", "4000")])?;
    let mut before = house.connect()?;
    let mut hello = Vec::new();
    {
        let mut carried = Carried::begin(&house)?;
        hello.append(&mut carried.said()?);
    }
    let mut open = Vec::new();
    for index in 0..2000 {
        let mut socket = TcpStream::connect(("127.0.0.1", house.port))?;
        // Some say nothing, some a part, and some all before they fall silent.
        let part = [0, hello.len() / 2, hello.len()][index % 3];
        socket.write_all(&hello[..part])?;
        open.push(socket);
        if index % 100 == 0 {
            ensure!(before.call("PING")? == simple("PONG"));
            ensure!(is_served(house.connect()), "after {index}");
        }
    }
    let mut control = house.control()?;
    ensure!(control.call_text("PING")? == tests::client::Reply::Status(b"PONG".to_vec()));
    // They are no clients yet, and go when their time is over.
    ensure!(number(&mut control, "connected_clients")? == 2);
    for mut socket in open {
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut rest = Vec::new();
        // The system may say that it was reset.
        let _ = socket.read_to_end(&mut rest);
    }
    ensure!(before.call("PING")? == simple("PONG"));
    Ok(())
}

#[test]
fn a_handshake_that_goes_on_for_ever_is_given_up() -> Result<()> {
    let house = House::open(&[])?;
    let mut carried = Carried::begin(&house)?;
    let hello = carried.said()?;
    let begun = Instant::now();
    // A byte now and then does not keep it alive.
    for byte in hello.iter().cycle() {
        if carried.socket.write_all(&[*byte]).is_err() {
            break;
        }
        ensure!(begun.elapsed() < PATIENCE, "it lives on");
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

#[test]
fn limits_of_output_count_what_was_encrypted() -> Result<()> {
    let house = House::open(&[("client-output-buffer-limit", "pubsub 1mb 0 0")])?;
    let mut control = house.control()?;
    let mut subscriber = house.connect()?;
    subscriber.send("SUBSCRIBE news")?;
    subscriber.receive()?;
    let message = vec![b'm'; 100_000];
    wait_until("the subscriber is closed", || {
        control.call(&[&b"PUBLISH"[..], b"news", &message])?;
        Ok(number(&mut control, "connected_clients")? == 1)
    })?;
    ensure!(number(&mut control, "client_output_buffer_limit_disconnections")? == 1);
    ensure!(subscriber.is_ended());
    Ok(())
}

#[test]
fn clients_are_killed_and_time_out() -> Result<()> {
    let house = House::open(&[])?;
    let mut control = house.control()?;
    let mut caller = house.connect()?;
    let Value::Integer(id) = caller.call("CLIENT ID")? else { panic!("a number") };
    control.call_text(&format!("CLIENT KILL ID {id}"))?;
    ensure!(caller.is_ended());
    let mut idle = house.connect()?;
    ensure!(idle.call("PING")? == simple("PONG"));
    control.call_text("CONFIG SET timeout 1")?;
    ensure!(idle.is_ended());
    Ok(())
}

#[test]
fn waiting_clients_are_served_and_leave() -> Result<()> {
    let house = House::open(&[("threads", "3")])?;
    let mut control = house.control()?;
    let mut waiting = house.connect()?;
    waiting.send("BLPOP queue 0")?;
    wait_until("it waits", || Ok(number(&mut control, "blocked_clients")? == 1))?;
    let mut other = house.connect()?;
    ensure!(other.call("RPUSH queue item")? == Value::Integer(1));
    ensure!(waiting.receive()? == Value::Array(vec![bulk(b"queue"), bulk(b"item")]));
    waiting.send("BLPOP queue 0")?;
    wait_until("it waits again", || Ok(number(&mut control, "blocked_clients")? == 1))?;
    drop(waiting);
    wait_until("it has left", || Ok(number(&mut control, "blocked_clients")? == 0))?;
    ensure!(other.call("RPUSH queue kept")? == Value::Integer(1));
    ensure!(other.call("LLEN queue")? == Value::Integer(1));
    Ok(())
}

#[test]
fn changes_stream_to_a_follower() -> Result<()> {
    let house = House::open(&[])?;
    let config = {
        let mut settings = house.settings(Some(&house.client));
        settings.alpn = vec![b"http/1.1".to_vec()];
        crate::house::read(&settings)?
    };
    let mut follower = Caller::connect(house.https, Arc::clone(&config))?.stream;
    follower.write_all(
        b"GET /v1/changes HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n",
    )?;
    follower.flush()?;
    let mut control = house.control()?;
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    let begun = Instant::now();
    while !text.contains("noticed-key") {
        ensure!(begun.elapsed() < PATIENCE, "{text}");
        control.call_text("SET noticed-key value")?;
        let count = read_some(&mut follower, &mut piece)?;
        ensure!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    ensure!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    Ok(())
}

#[test]
fn a_session_counts_as_memory_of_its_client() -> Result<()> {
    let house = House::open(&[])?;
    let mut control = house.control()?;
    let mut caller = house.connect()?;
    let own = |value: &Value| -> Result<u64> {
        let Value::Bulk(line) = value else { anyhow::bail!("{value:?}") };
        let line = String::from_utf8_lossy(line).into_owned();
        let found = line.split(' ').find_map(|field| field.strip_prefix("tot-mem="));
        Ok(found.context("its memory")?.parse()?)
    };
    // Its buffers are shown after a command.
    ensure!(caller.call("PING")? == simple("PONG"));
    ensure!(!control.call_text("PING")?.is_error());
    let encrypted = own(&caller.call("CLIENT INFO")?)?;
    let open =
        own(&Value::Bulk(control.call_text("CLIENT INFO")?.text().context("a line")?.to_vec()))?;
    ensure!(encrypted >= open + 8 * 1024, "{encrypted} {open}");
    let before = number(&mut control, "mem_clients_normal")?;
    let more = (0..20).map(|_| house.connect()).collect::<Result<Vec<_>>>()?;
    wait_until("all of them", || Ok(number(&mut control, "connected_clients")? == 22))?;
    wait_until("their memory", || {
        Ok(number(&mut control, "mem_clients_normal")? >= before + 20 * 8 * 1024)
    })?;
    drop(more);
    Ok(())
}

#[test]
fn who_ends_right_after_the_handshake_is_no_trouble() -> Result<()> {
    let house = House::open(&[("loglevel", "verbose")])?;
    for version in ["-tls1_2", "-tls1_3"] {
        for _ in 0..10 {
            let output = run(house.openssl(&[version, "-brief"]), b"")?;
            ensure!(output.status.success(), "{output:?}");
        }
    }
    ensure!(is_served(house.connect()));
    let log = house.server.log();
    ensure!(!log.contains("the client ended it"), "{log}");
    Ok(())
}
