//! The connection over which a server gives its data and its stream, as it does to a replica.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use lab::load::Address;
use lab::targets::Interrupt;
use lab::targets::connection::{Endpoint, in_words, info_fields};
use replication::handshake::{Handshake, Introduction, Offer, Step, Wanted, acknowledgement};
use replication::id::HistoryId;
use replication::line::Lines;
use replication::payload::{End, Payload};
use resp::client::Value;
use tls::Stream;

use crate::print::say;

/// How long a connection, a command and a write may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a read waits before this program looks around.
const TICK: Duration = Duration::from_millis(100);
/// A server that says nothing for so long is gone. Primaries speak each 10 seconds.
const SILENCE_MS: u64 = 60_000;
/// How often the server hears how far this program is.
const ACKNOWLEDGED_EACH_MS: u64 = 1000;
/// An answer to a question has no more bytes.
const LONGEST_ANSWER: usize = 1 << 20;
const READ_BYTES: usize = 256 * 1024;
/// The version of Valkey whose files this program reads; a Redis does not look at it.
const VALKEY_VERSION: &str = "9.1.2";

/// Why a link has ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The user has asked for it.
    Interrupted,
    /// In words; most likely it can be made again.
    Lost(String),
    /// The address leads to another server than before, so that what came does not fit together.
    Moved(HistoryId),
    /// This side cannot go on: another attempt would not help.
    Failed(String),
}

impl std::fmt::Display for Ended {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Interrupted => formatter.write_str("interrupted"),
            Ended::Moved(history) => write!(
                formatter,
                "the address leads to another server by now, with the history {history}"
            ),
            Ended::Lost(text) | Ended::Failed(text) => formatter.write_str(text),
        }
    }
}

/// What a server is and how far its stream is, as far as it tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerState {
    /// Name and version.
    pub(crate) product: Option<String>,
    pub(crate) history: Option<HistoryId>,
    pub(crate) offset: Option<u64>,
}

impl ServerState {
    fn is_dunlin(&self) -> bool {
        self.product.as_deref().is_some_and(|product| product.starts_with("Dunlin"))
    }
}

/// Host and port as people write them.
pub(crate) fn place(address: &Address) -> String {
    let Address { host, port, .. } = address;
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Asks the server over a connection of its own. Nothing is told where the user has no right to
/// ask.
pub(crate) fn ask(address: &Address, interrupt: &Interrupt) -> Result<ServerState, Ended> {
    let failed = |error: std::io::Error| Ended::Lost(format!("{}: {error}", place(address)));
    let connection = endpoint(address).connect(PATIENCE).map_err(failed)?;
    let mut connection = connection.bounded(PATIENCE, LONGEST_ANSWER);
    let mut call = |words: &[&str]| match interrupt.is_set() {
        true => Err(Ended::Interrupted),
        false => connection.call(words).map_err(failed),
    };
    if let Some(password) = &address.password {
        let words = match &address.user {
            Some(user) => vec!["AUTH", user, password],
            None => vec!["AUTH", password],
        };
        let answer = call(&words)?;
        // A server without a password says that it needs none.
        let needs_none = |text: &[u8]| text.starts_with(b"ERR");
        if let Value::Error(text) = &answer
            && !needs_none(text)
        {
            return Err(Ended::Lost(format!("{}: {}", place(address), in_words(&answer))));
        }
    }
    let server = page(call(&["INFO", "server"])?);
    let known =
        [("dunlin_version", "Dunlin"), ("valkey_version", "Valkey"), ("redis_version", "Redis")];
    let found = known.iter().find_map(|(field, name)| {
        let version = field_of(&server, field)?;
        Some(format!("{name} {version}"))
    });
    let state = page(call(&["INFO", "replication"])?);
    let history = field_of(&state, "master_replid");
    let history = history.and_then(|text| HistoryId::parse(text.as_bytes()));
    let offset = field_of(&state, "master_repl_offset").and_then(|text| text.parse().ok());
    Ok(ServerState { product: found, history, offset })
}

/// What INFO has answered; nothing if it was refused.
fn page(answer: Value) -> String {
    match answer {
        Value::Bulk(text) | Value::Verbatim(_, text) => String::from_utf8_lossy(&text).into_owned(),
        _ => String::new(),
    }
}

fn field_of(page: &str, name: &str) -> Option<String> {
    info_fields(page).find(|(own, _)| *own == name).map(|(_, value)| value.trim().to_owned())
}

fn endpoint(address: &Address) -> Endpoint {
    let Address { host, port, encryption, .. } = address.clone();
    Endpoint { host, port, password: None, encryption }
}

/// See the module's text.
pub(crate) struct Link<'i> {
    stream: Stream,
    /// Bytes that have arrived and were not taken.
    rest: Vec<u8>,
    buffer: Vec<u8>,
    interrupt: &'i Interrupt,
    heard_ms: u64,
    acknowledged_ms: u64,
}

impl<'i> Link<'i> {
    /// Introduces this program as a replica, and asks for what is wanted.
    pub(crate) fn open(
        address: &Address,
        told: &ServerState,
        wanted: Wanted,
        interrupt: &'i Interrupt,
    ) -> Result<(Link<'i>, Offer), Ended> {
        let lost = |error: std::io::Error| Ended::Lost(format!("{}: {error}", place(address)));
        let stream = endpoint(address).open_stream(PATIENCE, Vec::new()).map_err(lost)?;
        stream.socket().set_read_timeout(Some(TICK)).map_err(lost)?;
        let mut link = Link {
            stream,
            rest: Vec::new(),
            buffer: vec![0; READ_BYTES],
            interrupt,
            heard_ms: base::clock::monotonic_ms(),
            acknowledged_ms: 0,
        };
        let text = |own: &Option<String>| own.clone().unwrap_or_default().into_bytes();
        let introduction = Introduction {
            user: text(&address.user),
            password: text(&address.password),
            // Nobody is to connect to it, and no Sentinel is to promote it.
            port: 0,
            address: Vec::new(),
            node: Vec::new(),
            primary: Vec::new(),
            // A Dunlin is asked for files that Redis reads too.
            version: if told.is_dunlin() { "" } else { VALKEY_VERSION },
        };
        let (mut handshake, first) = Handshake::begin(introduction, wanted);
        link.send(&first)?;
        let mut lines = Lines::default();
        loop {
            let line = link.line(&mut lines)?;
            let step = handshake.take(&line).map_err(|error| Ended::Lost(error.to_string()))?;
            match step {
                Step::Wait => {}
                Step::Send(bytes) => link.send(&bytes)?,
                Step::Note(note, bytes) => {
                    say(&note);
                    link.send(&bytes)?;
                }
                Step::Done(Offer::AllWithoutOffsets) => {
                    let text = "the server does not take PSYNC: its user lacks the right, or it is \
                                too old";
                    return Err(Ended::Lost(text.to_owned()));
                }
                Step::Done(offer) => return Ok((link, offer)),
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        let sent = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
        sent.map_err(|error| Ended::Lost(format!("the connection is lost: {error}")))
    }

    fn line(&mut self, lines: &mut Lines) -> Result<Vec<u8>, Ended> {
        loop {
            let arrived = self.receive()?;
            let mut unread = &arrived[..];
            let line = lines.next(&mut unread).map_err(|error| Ended::Lost(error.to_string()))?;
            self.rest = unread.to_vec();
            if let Some(line) = line {
                return Ok(line);
            }
        }
    }

    /// What has arrived; nothing if that is so after a short wait.
    pub(crate) fn receive(&mut self) -> Result<Vec<u8>, Ended> {
        if self.interrupt.is_set() {
            return Err(Ended::Interrupted);
        }
        if !self.rest.is_empty() {
            return Ok(std::mem::take(&mut self.rest));
        }
        let now = base::clock::monotonic_ms();
        match self.stream.read(&mut self.buffer) {
            Ok(0) => Err(Ended::Lost("the server has closed the connection".to_owned())),
            Ok(length) => {
                self.heard_ms = now;
                Ok(self.buffer[..length].to_vec())
            }
            Err(error) if is_tick(error.kind()) => {
                let silent = now.saturating_sub(self.heard_ms);
                if silent > SILENCE_MS {
                    return Err(Ended::Lost(format!("the server is silent for {silent} ms")));
                }
                Ok(Vec::new())
            }
            Err(error) => Err(Ended::Lost(format!("the connection is lost: {error}"))),
        }
    }

    /// Tells the server now and then how far this program is.
    pub(crate) fn acknowledge(&mut self, offset: u64, at_once: bool) -> Result<(), Ended> {
        let now = base::clock::monotonic_ms();
        if at_once || now >= self.acknowledged_ms + ACKNOWLEDGED_EACH_MS {
            self.acknowledged_ms = now;
            self.send(&acknowledgement(offset, None))?;
        }
        Ok(())
    }

    /// Receives the file with all data into `to`.
    pub(crate) fn receive_file(&mut self, to: &mut dyn Write) -> Result<(), Ended> {
        let mut lines = Lines::default();
        let end = loop {
            let line = self.line(&mut lines)?;
            match End::parse(&line).map_err(|error| Ended::Lost(error.to_string()))? {
                Some(end) => break end,
                None => continue,
            }
        };
        let mut payload = Payload::new(end);
        let mut file = Vec::new();
        while !payload.is_over() {
            let arrived = self.receive()?;
            let taken = payload.take(&arrived, &mut file);
            self.rest = arrived[taken..].to_vec();
            to.write_all(&file).map_err(|error| Ended::Failed(error.to_string()))?;
            file.clear();
        }
        Ok(())
    }
}

fn is_tick(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
