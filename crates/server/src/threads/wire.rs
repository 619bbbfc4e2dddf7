//! A connection over which commands go out in a stream. Replies are read meanwhile, so that neither
//! end waits for the other. An error among them ends it; the others say nothing, except those to
//! marks, which tell how far the target has come.

use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use engine::engine::random_id;
use resp::client::{ReplyParser, Value, encode_command};
use tls::Stream;

/// The rest while neither end can go on.
const REST: Duration = Duration::from_micros(100);
/// A target that takes and says nothing for so long is lost.
const SILENCE: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const READ_AT_ONCE: usize = 64 * 1024;

/// Why a connection is of no use any more.
#[derive(Debug)]
pub(in crate::threads) enum Trouble {
    /// It has ended, or may be tried again.
    Broken(String),
    /// The target has refused something.
    Refused(String),
}

impl Display for Trouble {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let (Trouble::Broken(why) | Trouble::Refused(why)) = self;
        to.write_str(why)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Broken(error.to_string())
    }
}

/// What the errors begin with that a target has only for a while, or for this connection.
const PASSING: [&str; 9] = [
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MOVED",
    "BUSY",
    "ERR the import of these slots is over",
    "ERR no such move of slots to this server",
];

impl Trouble {
    /// What an error of the target means.
    pub(in crate::threads) fn of_error(text: &[u8]) -> Trouble {
        let text = String::from_utf8_lossy(text).into_owned();
        match PASSING.iter().any(|start| text.starts_with(start)) {
            true => Trouble::Broken(text),
            false => Trouble::Refused(text),
        }
    }
}

/// See the module's text.
pub(in crate::threads) struct Wire {
    stream: Stream,
    input: Vec<u8>,
    parser: ReplyParser,
    /// What the replies to marks begin with.
    name: String,
    /// Marks that were sent, and those to which there was a reply.
    marked: u64,
    reached: u64,
    /// Replies of commands that wait for theirs.
    awaited: Option<Value>,
    awaits: bool,
    buffer: Box<[u8]>,
}

impl Wire {
    /// A connection at which nothing is waited for. `name` is part of what its marks are called.
    pub(in crate::threads) fn new(stream: Stream, name: &str) -> io::Result<Wire> {
        stream.socket().set_nonblocking(true)?;
        Ok(Wire {
            stream,
            input: Vec::new(),
            parser: ReplyParser::new(),
            // Values of clients are among the replies.
            name: format!("{name}:{}:", random_id()),
            marked: 0,
            reached: 0,
            awaited: None,
            awaits: false,
            buffer: vec![0; READ_AT_ONCE].into(),
        })
    }

    /// Sends bytes.
    pub(in crate::threads) fn send(&mut self, mut bytes: &[u8]) -> Result<(), Trouble> {
        let mut moved_at = Instant::now();
        let mut is_flushed = bytes.is_empty();
        while !is_flushed {
            let sent = match bytes.is_empty() {
                false => self.stream.write(bytes),
                true => self.stream.flush().map(|()| 0),
            };
            match sent {
                Ok(0) if !bytes.is_empty() => {
                    return Err(Trouble::Broken("the target has ended".into()));
                }
                Ok(count) => {
                    is_flushed = bytes.is_empty();
                    bytes = &bytes[count..];
                    moved_at = Instant::now();
                }
                Err(error) if is_not_yet(&error) => {
                    if !self.hear()? {
                        std::thread::sleep(REST);
                    }
                    if moved_at.elapsed() > SILENCE {
                        return Err(Trouble::Broken("the target takes nothing".into()));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.hear().map(drop)
    }

    /// Sends a mark.
    pub(in crate::threads) fn mark(&mut self) -> Result<(), Trouble> {
        self.marked += 1;
        let (text, mut command) = (format!("{}{}", self.name, self.marked), Vec::new());
        encode_command([b"PING", text.as_bytes()].into_iter(), &mut command);
        self.send(&command)
    }

    /// How many marks the target has not reached yet.
    pub(in crate::threads) fn ahead(&self) -> u64 {
        self.marked - self.reached
    }

    /// Sends a mark, and waits until the target has reached it.
    pub(in crate::threads) fn settle(&mut self, patience: Duration) -> Result<(), Trouble> {
        self.mark()?;
        let begun = Instant::now();
        while self.ahead() > 0 {
            self.rest(begun, patience)?;
        }
        Ok(())
    }

    /// Sends a command by itself, and waits for its reply.
    pub(in crate::threads) fn ask(
        &mut self,
        words: &[&[u8]],
        patience: Duration,
    ) -> Result<Value, Trouble> {
        self.settle(patience)?;
        let mut command = Vec::new();
        encode_command(words.iter(), &mut command);
        (self.awaits, self.awaited) = (true, None);
        self.send(&command)?;
        let begun = Instant::now();
        loop {
            if let Some(reply) = self.awaited.take() {
                return Ok(reply);
            }
            self.rest(begun, patience)?;
        }
    }

    fn rest(&mut self, begun: Instant, patience: Duration) -> Result<(), Trouble> {
        if !self.hear()? {
            if begun.elapsed() > patience {
                return Err(Trouble::Broken("the target does not answer in time".into()));
            }
            std::thread::sleep(REST);
        }
        Ok(())
    }

    /// Takes the replies that are there. Returns whether anything has come.
    pub(in crate::threads) fn hear(&mut self) -> Result<bool, Trouble> {
        let mut any = false;
        loop {
            match self.stream.read(&mut self.buffer) {
                Ok(0) => {
                    return Err(Trouble::Broken("the target has ended".into()));
                }
                Ok(count) => {
                    any = true;
                    self.input.extend_from_slice(&self.buffer[..count]);
                    self.take_replies()?;
                }
                Err(error) if is_not_yet(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(any)
    }

    fn take_replies(&mut self) -> Result<(), Trouble> {
        let mut at = 0;
        while at < self.input.len() {
            let next = self.parser.next(&self.input[at..]);
            let next = next.map_err(|error| Trouble::Broken(error.to_string()))?;
            let Some((value, length)) = next else { break };
            at += length;
            self.note(value)?;
        }
        self.input.drain(..at);
        Ok(())
    }

    fn note(&mut self, value: Value) -> Result<(), Trouble> {
        let mark = match &value {
            Value::Bulk(text) => text.strip_prefix(self.name.as_bytes()),
            _ => None,
        };
        if let Some(number) = mark.and_then(base::num::parse_i64) {
            self.reached = self.reached.max(number.unsigned_abs().min(self.marked));
            return Ok(());
        }
        if self.awaits {
            (self.awaits, self.awaited) = (false, Some(value));
            return Ok(());
        }
        match value {
            // The write is done. How durable it is, is asked at the end.
            Value::Error(text) if text.starts_with(b"NODURABLE") => Ok(()),
            Value::Error(text) => Err(Trouble::of_error(&text)),
            _ => Ok(()),
        }
    }
}

fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
