//! Requests that were damaged at random: in memory to the parser, and over sockets to the server
//! and to the reference, which answers with the same bytes.
//!
//! Each test runs for some seconds. `SECONDS=n` sets how many; `SEED=n` plays the round that a
//! report names.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use resp::request::{BigArgument, Limits, Parsed, Parser, ProtocolError};
use tests::client::encode;
use tests::quoting::quote;
use tests::random::{Random, Rounds};
use tests::server::{Server, Target};

/// How long each test goes on by default.
const USUAL_TIME: Duration = Duration::from_secs(6);

/// Plays rounds, each with the generator of a seed of its own, until the time is up.
fn play_rounds(mut round: impl FnMut(&mut Random) -> Result<()>) -> Result<()> {
    for seed in Rounds::from_environment(USUAL_TIME).seeds() {
        round(&mut Random::new(seed)).map_err(|error| error.context(format!("SEED={seed}")))?;
    }
    Ok(())
}

// ---- Requests, and damage -----------------------------------------------------------------------

/// Commands whose replies depend on nothing but the commands before them.
const COMMANDS: &[&str] = &[
    "PING",
    "PING text",
    "ECHO text",
    "SET k v",
    "SET k v GET",
    "GET k",
    "APPEND k tail",
    "STRLEN k",
    "INCR n",
    "DECRBY n 5",
    "MSET a 1 b 2",
    "MGET a b none",
    "DEL k n l",
    "EXISTS k n",
    "RPUSH l 1 2 3",
    "LRANGE l 0 -1",
    "LPOP l",
    "HSET h f 1",
    "HGET h f",
    "ZINCRBY z 1 m",
    "ZSCORE z m",
    "TYPE l",
    "SELECT 1",
    "SELECT 0",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH k",
    "UNWATCH",
    "SUBSCRIBE c",
    "UNSUBSCRIBE c",
    "NOSUCH thing here",
    "GET",
    "RESET",
    "QUIT",
];

/// One valid request, in one of the ways in which it may be written.
fn request(random: &mut Random, bytes: &mut Vec<u8>) {
    let command = *random.pick(COMMANDS);
    match random.below(12) {
        0..2 => bytes.extend_from_slice(format!("{command}\r\n").as_bytes()),
        2 => bytes.extend_from_slice(format!("{command}\n").as_bytes()),
        3 => {
            let words: Vec<_> = command.split(' ').map(|word| format!("\"{word}\"")).collect();
            bytes.extend_from_slice(format!("{}\r\n", words.join("  ")).as_bytes());
        }
        4 => bytes.extend_from_slice(b"\r\n*0\r\n*-1\r\n"),
        5 => {
            let length = random.below(200);
            let binary: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
            encode(&[b"ECHO", &binary[..]], bytes);
        }
        6 if random.percent(15) => {
            // In lines: damage may make inline commands of them, whose length has a limit that
            // depends on how the bytes arrive.
            let lines = format!("{}\r\n", "x".repeat(500)).repeat(40 + random.below(200));
            encode(&["ECHO", &lines], bytes);
        }
        _ => encode(&command.split(' ').collect::<Vec<_>>(), bytes),
    }
}

fn requests(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.between(1, 12) {
        request(random, &mut bytes);
    }
    bytes
}

/// Texts that mean something where they are misplaced.
const MEANINGFUL: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"*",
    b"$",
    b"*1\r\n",
    b"$0\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"-",
    b"+",
    b"0",
    b"00",
    b" ",
    b"\"",
    b"'",
    b"\\x",
    b"\0",
    b"\xff",
    b"2147483648",
    b"9223372036854775808",
    b"18446744073709551616",
    b"1048577",
    b"536870913",
];

/// Damages a request in one place.
fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len() + 1);
    let end = at + random.below((bytes.len() - at + 1).min(40));
    match random.below(8) {
        0 if at < bytes.len() => bytes[at] = random.bits() as u8,
        1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        2 => drop(bytes.drain(at..end)),
        3 => bytes.truncate(at),
        4 => {
            let copied = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copied);
        }
        5 => {
            let replaced = random.pick(MEANINGFUL).to_vec();
            bytes.splice(at..end.min(at + 4), replaced);
        }
        // A digit, of which most are lengths.
        6 => {
            let digits: Vec<_> =
                (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).collect();
            if !digits.is_empty() {
                let at = *random.pick(&digits);
                bytes[at] = b'0' + random.below(10) as u8;
            }
        }
        _ => {
            let inserted = random.pick(MEANINGFUL).to_vec();
            bytes.splice(at..at, inserted);
        }
    }
}

/// Requests of which most are damaged here and there, some consist of nonsense, and some are whole.
fn stream(random: &mut Random) -> Vec<u8> {
    let mut bytes = requests(random);
    match random.below(10) {
        0..2 => {}
        2 => {
            let length = random.below(600);
            bytes
                .extend((0..length).map(|_| *random.pick(b"*$+-:0123456789\r\n \"'\\aGETx\0\xff")));
        }
        _ => {
            for _ in 0..random.between(1, 4) {
                damage(random, &mut bytes);
            }
        }
    }
    bytes
}

/// The beginning of a stream, for reports.
fn shown(stream: &[u8]) -> String {
    quote(&stream[..stream.len().min(1000)])
}

/// Where to cut a stream into pieces.
fn cuts(random: &mut Random, length: usize) -> Vec<usize> {
    let mut cuts: Vec<_> = (0..random.below(8)).map(|_| random.below(length + 1)).collect();
    cuts.push(length);
    cuts.sort_unstable();
    cuts
}

// ---- In memory ----------------------------------------------------------------------------------

/// What a parser found in a stream.
#[derive(Debug, Default, PartialEq)]
struct Found {
    commands: Vec<Vec<Vec<u8>>>,
    error: Option<ProtocolError>,
}

/// The input side of a connection.
#[derive(Default)]
struct Input {
    parser: Parser,
    buffer: Vec<u8>,
    big: Option<BigArgument>,
    found: Found,
}

impl Input {
    fn receive(&mut self, mut piece: &[u8]) -> Result<()> {
        if let Some(mut argument) = self.big.take() {
            let (missing, rest) = piece.split_at(piece.len().min(argument.missing()));
            argument.make_room();
            argument.bytes.extend_from_slice(missing);
            if argument.missing() > 0 {
                self.big = Some(argument);
                return Ok(());
            }
            self.parser.supply_big(argument);
            piece = rest;
        }
        self.buffer.extend_from_slice(piece);
        while self.found.error.is_none() && self.big.is_none() && self.parse_one()? {
            self.buffer.drain(..self.parser.compact());
        }
        Ok(())
    }

    /// Takes the next step; says whether there may be another.
    fn parse_one(&mut self) -> Result<bool> {
        let mut ranges = Vec::new();
        match self.parser.parse(&self.buffer, &Limits::default(), &mut ranges) {
            Parsed::Command { argc, .. } => {
                ensure!(argc == ranges.len() && argc > 0);
                let words = self.parser.arguments(&self.buffer, &ranges);
                self.found.commands.push(words.iter().map(<[u8]>::to_vec).collect());
            }
            Parsed::Empty { .. } => {}
            Parsed::Incomplete => return Ok(false),
            Parsed::BigArgument { length } => {
                let argument = self.parser.take_big(&self.buffer).context("one was announced")?;
                ensure!(argument.bytes.len() + argument.missing() == length);
                if argument.missing() > 0 {
                    self.big = Some(argument);
                } else {
                    self.parser.supply_big(argument);
                }
            }
            Parsed::Protocol(error) => {
                ensure!(error.message().starts_with(b"Protocol error: "));
                self.found.error = Some(error);
            }
        }
        Ok(true)
    }
}

/// Parses a stream that arrives in pieces.
fn parse(stream: &[u8], cuts: &[usize]) -> Result<Found> {
    let mut input = Input::default();
    let mut begin = 0;
    for &end in cuts {
        input.receive(&stream[begin..end])?;
        begin = end;
        let (memory, most) = (input.parser.memory(), 16 * stream.len() + 100_000);
        ensure!(memory < most, "{memory} bytes for a stream of {}", stream.len());
    }
    Ok(input.found)
}

#[test]
fn the_parser_survives_damage() -> Result<()> {
    play_rounds(|random| {
        let stream = stream(random);
        let whole = parse(&stream, &[stream.len()])?;
        let pieces = parse(&stream, &cuts(random, stream.len()))?;
        ensure!(whole == pieces, "{}: {whole:?} at once, {pieces:?} in pieces", shown(&stream));
        // What was understood is understood again when it is written in the usual way.
        let mut again = Vec::new();
        whole.commands.iter().for_each(|words| encode(words, &mut again));
        let found = parse(&again, &[again.len()])?;
        ensure!(found.commands == whole.commands && found.error.is_none(), "{}", shown(&stream));
        Ok(())
    })
}

// ---- Over sockets -------------------------------------------------------------------------------

/// Sends a stream in pieces, ends it, and returns all that comes back.
fn exchange(port: u16, stream: &[u8], cuts: &[usize]) -> Result<Vec<u8>> {
    let mut socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    socket.set_write_timeout(Some(Duration::from_secs(10)))?;
    let mut begin = 0;
    for &end in cuts {
        // The server closes at the first error, which may be before it has read the rest.
        if socket.write_all(&stream[begin..end]).is_err() {
            break;
        }
        begin = end;
    }
    let _ = socket.shutdown(Shutdown::Write);
    let mut replies = Vec::new();
    match socket.read_to_end(&mut replies) {
        Ok(_) => Ok(replies),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(replies),
        Err(error) => bail!("no end after {:?}: {error}", shown(&replies)),
    }
}

#[test]
fn the_server_answers_damage_as_the_reference_does() -> Result<()> {
    let mut dunlin = Server::start(Target::Dunlin, &[("threads", "4")])?;
    let reference = Server::start(Target::Reference, &[])?;
    let mut controls = [dunlin.connect()?, reference.connect()?];
    play_rounds(|random| {
        // Nothing but text, not even by escapes: the reference looks for the end of a line no
        // further than to a zero byte, and errors show arguments as text.
        let stream: Vec<_> = stream(random)
            .iter()
            .map(|byte| if *byte == b'\\' { b'/' } else { (byte & 0x7f).max(1) })
            .collect();
        let cuts = cuts(random, stream.len());
        let answers = [dunlin.port(), reference.port()].map(|port| exchange(port, &stream, &cuts));
        let [ours, theirs] = answers;
        let (ours, theirs) = (ours?, theirs?);
        // A connection that is closed before all was read is reset, and what the other side's
        // kernel has not taken by then is lost: the end of long replies only.
        let (short, long) = if ours.len() < theirs.len() { (&ours, &theirs) } else { (&theirs, &ours) };
        let cut_short = short.len() >= 60_000 && long.starts_with(short);
        if ours != theirs && !cut_short {
            let alike = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
            let from = alike.saturating_sub(100);
            let [ours, theirs] = [&ours[from..], &theirs[from..]].map(shown);
            let stream = shown(&stream);
            bail!("{stream}\nis answered from {from} on with\n{ours}\nand by the reference with\n{theirs}");
        }
        let keys = controls.each_mut().map(|control| control.call_text("DBSIZE"));
        ensure!(
            keys[0].as_ref().ok() == keys[1].as_ref().ok(),
            "{keys:?} after {}",
            shown(&stream)
        );
        for control in &mut controls {
            control.call_text("FLUSHALL")?;
        }
        Ok(())
    })
    .map_err(|error| error.context(dunlin.log_tail()))?;
    ensure!(dunlin.is_running(), "the server is gone:\n{}", dunlin.log_tail());
    let replies = exchange(dunlin.port(), b"PING\r\nQUIT\r\n", &[12])?;
    ensure!(replies == b"+PONG\r\n+OK\r\n");
    Ok(())
}
