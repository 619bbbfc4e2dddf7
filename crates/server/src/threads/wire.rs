//! A connection over which commands go out in a stream. Replies are read meanwhile, so that neither
//! end waits for the other. An error among them ends it; the others say nothing, except those to
//! marks, which tell how far the target has come.

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use engine::engine::random_id;
use resp::client::{Found, ReplyError, ReplyParser, ReplyScanner, Value, encode_command};
use tls::Stream;

/// The rest while neither end can go on.
const REST: Duration = Duration::from_micros(100);
/// A target that takes nothing for so long is lost.
pub(in crate::threads) const SILENCE: Duration = Duration::from_secs(10);
/// A mark is sent after so many bytes, and for fewer after this time.
const MARK_BYTES: u64 = 16 * 1024;
const MARK_TIME: Duration = Duration::from_millis(5);
/// Bytes that are read at once, and how often that is done before something else is.
const READ_AT_ONCE: usize = 64 * 1024;
const READS: usize = 16;
/// So many bytes of a reply are kept. What is longer is a value of a client, of which nothing but
/// its end matters.
const LONGEST_REPLY: usize = 64 * 1024;

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
const PASSING: [&str; 14] = [
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MOVED",
    "BUSY",
    "NODURABLE",
    "NOREPLICAS",
    "MISCONF",
    "OOM command not allowed",
    "ERR the import of these slots is over",
    "ERR no such move of slots to this server",
    "ERR the slots could not be emptied",
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
    /// Finds the ends of replies.
    scanner: ReplyScanner,
    /// What has come of a reply, up to [`LONGEST_REPLY`].
    input: Vec<u8>,
    /// What the replies to marks begin with.
    name: String,
    /// Marks that were sent, and those to which there was a reply.
    marked: u64,
    reached: u64,
    /// For each mark between these two: how many bytes were sent before it, and when it was.
    marks: VecDeque<(u64, Instant)>,
    /// Bytes that were sent; and those that the target has reached, with when it was sent the mark
    /// behind them.
    sent: u64,
    taken: (u64, Instant),
    /// How many were sent with the last mark, and when.
    last_mark: (u64, Instant),
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
            scanner: ReplyScanner::default(),
            input: Vec::new(),
            // Values of clients are among the replies.
            name: format!("{name}:{}:", random_id()),
            marked: 0,
            reached: 0,
            marks: VecDeque::new(),
            sent: 0,
            taken: (0, Instant::now()),
            last_mark: (0, Instant::now()),
            awaited: None,
            awaits: false,
            buffer: vec![0; READ_AT_ONCE].into(),
        })
    }

    /// Sends bytes.
    pub(in crate::threads) fn send(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.send_unless(bytes, &|_| None)
    }

    /// Sends bytes. While the target takes none of them, it is asked why that is too long.
    pub(in crate::threads) fn send_unless(
        &mut self,
        mut bytes: &[u8],
        is_too_long: &dyn Fn(Duration) -> Option<&'static str>,
    ) -> Result<(), Trouble> {
        self.sent += bytes.len() as u64;
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
                    let silent = moved_at.elapsed();
                    let lost = (silent > SILENCE).then_some("the target takes nothing");
                    if let Some(why) = lost.or_else(|| is_too_long(silent)) {
                        return Err(Trouble::Broken(why.into()));
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
        self.marks.push_back((self.sent, Instant::now()));
        let (text, mut command) = (format!("{}{}", self.name, self.marked), Vec::new());
        encode_command([b"PING", text.as_bytes()].into_iter(), &mut command);
        self.last_mark = (self.sent + command.len() as u64, Instant::now());
        self.send(&command)
    }

    /// Sends a mark if there was none for long.
    pub(in crate::threads) fn mark_now_and_then(&mut self) -> Result<(), Trouble> {
        let (sent, at) = self.last_mark;
        let unmarked = self.sent - sent;
        match unmarked >= MARK_BYTES || unmarked > 0 && at.elapsed() >= MARK_TIME {
            true => self.mark(),
            false => Ok(()),
        }
    }

    /// How many bytes the target has not reached yet, as far as it is known.
    pub(in crate::threads) fn unreached(&self) -> u64 {
        self.sent - self.taken.0
    }

    /// Everything that the target has not reached yet was sent in this time, as far as it is known.
    pub(in crate::threads) fn lag(&self) -> Duration {
        if self.marks.is_empty() { Duration::ZERO } else { self.taken.1.elapsed() }
    }

    /// How many marks the target has not reached yet.
    pub(in crate::threads) fn ahead(&self) -> u64 {
        self.marked - self.reached
    }

    /// Sends a mark, and waits until the target has reached it.
    pub(in crate::threads) fn settle(&mut self, patience: Duration) -> Result<(), Trouble> {
        self.mark()?;
        self.wait(patience, |own| own.ahead() == 0)
    }

    /// Sends a command by itself, and waits for its reply.
    pub(in crate::threads) fn ask(
        &mut self,
        words: &[&[u8]],
        patience: Duration,
    ) -> Result<Value, Trouble> {
        if self.sent > 0 {
            self.settle(patience)?;
        }
        let mut command = Vec::new();
        encode_command(words.iter(), &mut command);
        (self.awaits, self.awaited) = (true, None);
        self.send(&command)?;
        self.wait(patience, |own| own.awaited.is_some())?;
        Ok(self.awaited.take().unwrap_or(Value::Null))
    }

    /// Hears until this is so.
    fn wait(&mut self, patience: Duration, is_so: impl Fn(&Wire) -> bool) -> Result<(), Trouble> {
        let begun = Instant::now();
        while !is_so(self) {
            let is_late = begun.elapsed() > patience;
            let any = self.hear()?;
            if is_late && !is_so(self) {
                return Err(Trouble::Broken("the target does not answer in time".into()));
            }
            if !any {
                std::thread::sleep(REST);
            }
        }
        Ok(())
    }

    /// Takes replies that are there, but some at a time: more may come for ever. Returns whether
    /// anything has come.
    pub(in crate::threads) fn hear(&mut self) -> Result<bool, Trouble> {
        let mut any = false;
        for _ in 0..READS {
            match self.stream.read(&mut self.buffer) {
                Ok(0) => {
                    return Err(Trouble::Broken("the target has ended".into()));
                }
                Ok(count) => {
                    any = true;
                    self.take_replies(count)?;
                }
                Err(error) if is_not_yet(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(any)
    }

    /// Takes the bytes that were read.
    fn take_replies(&mut self, count: usize) -> Result<(), Trouble> {
        let broken = |error: ReplyError| Trouble::Broken(error.to_string());
        let mut at = 0;
        while at < count {
            let bytes = &self.buffer[at..count];
            let mut is_whole = false;
            let ends = |_: Found<'_>| {
                is_whole = true;
                true
            };
            let taken = self.scanner.scan_until(bytes, ends).map_err(broken)?;
            at += taken;
            let room = LONGEST_REPLY - self.input.len();
            self.input.extend_from_slice(&bytes[..taken.min(room)]);
            if is_whole {
                if taken > room {
                    self.note_long()?;
                } else if let Some((value, _)) =
                    ReplyParser::new().next(&self.input).map_err(broken)?
                {
                    self.note(value)?;
                }
                self.input.clear();
            }
        }
        Ok(())
    }

    /// Takes a reply of which only the beginning was kept.
    fn note_long(&self) -> Result<(), Trouble> {
        match self.input.strip_prefix(b"-") {
            Some(text) => Err(Trouble::of_error(text)),
            None if self.awaits => Err(Trouble::Broken("a reply is too long".into())),
            None => Ok(()),
        }
    }

    fn note(&mut self, value: Value) -> Result<(), Trouble> {
        let mark = match &value {
            Value::Bulk(text) => text.strip_prefix(self.name.as_bytes()),
            _ => None,
        };
        if let Some(number) = mark.and_then(base::num::parse_i64) {
            let reached = self.reached.max(number.unsigned_abs().min(self.marked));
            let count = usize::try_from(reached - self.reached).unwrap_or(usize::MAX);
            let mut passed = self.marks.drain(..count.min(self.marks.len()));
            self.taken = passed.next_back().unwrap_or(self.taken);
            self.reached = reached;
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

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::thread::{JoinHandle, spawn};

    use super::*;

    fn connected() -> (Wire, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Wire::new(Stream::Plain(own), "test").unwrap(), listener.accept().unwrap().0)
    }

    /// Says this, and then a text again and again, until the other end has gone or all is said.
    fn speak(mut peer: TcpStream, first: &str, again: &str, bytes: usize) -> JoinHandle<()> {
        let (first, again) = (first.to_owned(), again.repeat((1 << 20) / again.len()));
        spawn(move || {
            let said = peer.write_all(first.as_bytes());
            let _ = said.and_then(|()| {
                (0..bytes).step_by(again.len()).try_for_each(|_| peer.write_all(again.as_bytes()))
            });
        })
    }

    #[test]
    fn a_reply_that_does_not_end_is_not_kept() {
        for first in ["+", "$500000000\r\n", "*2000000\r\n+", "-ERR "] {
            let (mut wire, peer) = connected();
            let peer = speak(peer, first, "x", 32 << 20);
            while wire.hear().is_ok() {}
            peer.join().unwrap();
            assert!(wire.input.len() <= 1 << 20, "{first:?}: {} bytes", wire.input.len());
        }
    }

    #[test]
    fn what_comes_after_a_long_reply_is_heard() {
        let (mut wire, mut peer) = connected();
        wire.marked = 1;
        let mark = format!("{}1", wire.name);
        let replies =
            format!("$300000\r\n{}\r\n${}\r\n{mark}\r\n", "x".repeat(300_000), mark.len());
        peer.write_all(replies.as_bytes()).unwrap();
        while wire.ahead() > 0 {
            wire.hear().unwrap();
        }
        let error = format!("-ERR {}\r\n", "x".repeat(300_000));
        peer.write_all(error.as_bytes()).unwrap();
        let refused = loop {
            if let Err(trouble) = wire.hear() {
                break trouble;
            }
        };
        assert!(matches!(&refused, Trouble::Refused(why) if why.starts_with("ERR x")), "{refused}");
    }

    #[test]
    fn marks_tell_how_many_bytes_are_on_their_way() {
        let (mut wire, mut peer) = connected();
        for _ in 0..64 {
            wire.send(&[b'\n'; 1024]).unwrap();
            wire.mark_now_and_then().unwrap();
        }
        assert!(wire.unreached() > 64 * 1024);
        let first = format!("{}1", wire.name);
        peer.write_all(format!("${}\r\n{first}\r\n", first.len()).as_bytes()).unwrap();
        while wire.reached == 0 {
            wire.hear().unwrap();
        }
        let (sent, all) = (wire.taken.0, wire.sent);
        assert!(sent > 0 && wire.unreached() == all - sent);
        wire.mark().unwrap();
        let last = format!("{}{}", wire.name, wire.marked);
        peer.write_all(format!("${}\r\n{last}\r\n", last.len()).as_bytes()).unwrap();
        while wire.ahead() > 0 {
            wire.hear().unwrap();
        }
        assert!(wire.taken.0 == all && wire.lag() == Duration::ZERO);
    }

    #[test]
    fn a_peer_that_does_not_stop_keeps_nobody() {
        let (mut wire, mut peer) = connected();
        (wire.marked, wire.reached) = (2_000_000, 1_000_000);
        let name = wire.name.clone();
        let reply = move |number: u64| {
            let mark = format!("{name}{number}");
            format!("${}\r\n{mark}\r\n", mark.len())
        };
        let length = reply(wire.marked).len();
        let peer = spawn(move || {
            for first in (1_000_000..2_000_000).step_by(10_000) {
                let replies: String = (first + 1..=first + 10_000).map(&reply).collect();
                peer.write_all(replies.as_bytes()).unwrap();
            }
            // It is not closed before all is heard.
            peer
        });
        while wire.ahead() > 0 {
            let before = wire.reached;
            wire.hear().unwrap();
            let bytes = (wire.reached - before) as usize * length;
            assert!(bytes <= READS * READ_AT_ONCE + length, "{bytes} bytes at once");
        }
        drop(peer.join().unwrap());
        let (mut wire, peer) = connected();
        let peer = speak(peer, "", "+OK\r\n", 256 << 20);
        assert!(wire.settle(Duration::ZERO).is_err());
        assert!(!peer.is_finished());
        drop(wire);
        peer.join().unwrap();
    }

    #[test]
    fn what_a_target_gets_over_does_not_end_a_move() {
        for text in [
            "NOREPLICAS Not enough good replicas to write.",
            "MISCONF Errors writing to the AOF file: no space",
            "OOM command not allowed when used memory > 'maxmemory'.",
            "ERR the slots could not be emptied",
        ] {
            let trouble = Trouble::of_error(text.as_bytes());
            assert!(matches!(trouble, Trouble::Broken(_)), "{text}");
        }
        for text in ["ERR unknown command", "OOM the server keeps 255 different content types"] {
            let trouble = Trouble::of_error(text.as_bytes());
            assert!(matches!(trouble, Trouble::Refused(_)), "{text}");
        }
    }
}
