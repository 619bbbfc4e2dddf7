//! A connection to a server that takes keys. What comes from there may be anything: a reply is one
//! line of bounded length, and silence is bounded too.

use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::engine::Engine;
use resp::args::Arguments;
use resp::client::encode_command;
use tls::Stream;

use crate::connecting::{bound_silence, connect, resolve};

/// A line of a target is not longer than this.
const LONGEST_LINE: usize = 64 * 1024;
/// How long a system call may wait before the thread looks around.
const SLICE: Duration = Duration::from_millis(100);

/// Why a target is of no use.
#[derive(Debug)]
pub(in crate::threads) enum Trouble {
    /// Its name has no address.
    Unknown,
    Writing,
    Reading,
    /// The connection has ended without a word, as one does that has waited for too long.
    Ended,
    /// It is no server that takes keys.
    Unclear,
    Itself,
    /// It is to be reached encrypted, or not, and has no such port.
    NoPort(bool),
    Stopping,
    /// The target has refused something, with this line.
    Refused(String),
}

impl Display for Trouble {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Trouble::Unknown => "IOERR error or timeout connecting to the client",
            Trouble::Writing => "IOERR error or timeout writing to target instance",
            Trouble::Reading | Trouble::Ended => {
                "IOERR error or timeout reading to target instance"
            }
            Trouble::Unclear => "IOERR the target instance does not answer as Redis does",
            Trouble::Itself => "ERR The target instance is this server",
            Trouble::NoPort(true) => "ERR it has no tls-port, and tls-replication is on here",
            Trouble::NoPort(false) => "ERR it has no port without TLS, and tls-replication is off",
            Trouble::Stopping => "IOERR this server is about to stop",
            Trouble::Refused(line) => {
                return write!(to, "ERR Target instance replied with error: {line}");
            }
        })
    }
}

/// Where a target is.
pub(in crate::threads) struct Address<'a> {
    pub(in crate::threads) host: &'a str,
    pub(in crate::threads) port: u16,
    /// What encrypts the connection, if it is to be encrypted.
    pub(in crate::threads) active: Option<&'a Arc<tls::Active>>,
}

/// See the module's text.
pub(in crate::threads) struct Target {
    stream: Stream,
    /// What has come and was not looked at.
    input: Vec<u8>,
    /// The database that is selected there.
    database: Option<i64>,
}

/// How long to wait, and whether to go on.
#[derive(Clone, Copy)]
pub(in crate::threads) struct Patience<'p> {
    pub(in crate::threads) timeout: Duration,
    pub(in crate::threads) is_stopped: &'p dyn Fn() -> bool,
}

impl Patience<'_> {
    /// Whether there is no more time for something that has begun then.
    fn is_over(&self, begun: Instant) -> Result<bool, Trouble> {
        if (self.is_stopped)() {
            return Err(Trouble::Stopping);
        }
        Ok(begun.elapsed() >= self.timeout)
    }
}

fn is_slice_over(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Encrypts a connection, if it is to be encrypted.
fn encrypted(
    stream: TcpStream,
    address: &Address<'_>,
    patience: Patience<'_>,
) -> Result<Stream, Trouble> {
    let Some(active) = address.active else { return Ok(Stream::Plain(stream)) };
    let by = active.for_server().ok_or(Trouble::Writing)?;
    let name = match (tls::client::server_name(address.host), stream.peer_addr()) {
        (Ok(name), _) => name,
        (Err(_), Ok(peer)) => peer.ip().into(),
        (Err(_), Err(_)) => return Err(Trouble::Writing),
    };
    let begun = Instant::now();
    let is_over = || patience.is_over(begun).unwrap_or(true);
    Stream::encrypt(stream, by, name, &is_over).map_err(|_| Trouble::Writing)
}

impl Target {
    /// Connects, logs in, selects a database if one is named, and makes sure that it is another
    /// server.
    pub(in crate::threads) fn connect(
        engine: &Engine,
        address: &Address<'_>,
        credentials: Arguments<'_>,
        database: Option<i64>,
        patience: Patience<'_>,
    ) -> Result<Target, Trouble> {
        let begun = Instant::now();
        let is_over = || patience.is_over(begun).unwrap_or(true);
        let addresses = resolve(address.host, address.port, patience.timeout, &is_over);
        let addresses = addresses.map_err(|_| Trouble::Unknown)?;
        let mut streams =
            addresses.into_iter().map(|at| connect(at, b"", patience.timeout, &is_over));
        let stream = streams.find_map(Result::ok).ok_or(Trouble::Writing)?;
        let slice = Some(SLICE.min(patience.timeout));
        let set = stream.set_nodelay(true);
        set.and_then(|()| stream.set_read_timeout(slice))
            .and_then(|()| stream.set_write_timeout(slice))
            .map_err(|_| Trouble::Writing)?;
        let own = stream.local_addr().map(|own| own.to_string()).unwrap_or_default();
        let stream = encrypted(stream, address, patience)?;
        let mut target = Target { stream, input: Vec::new(), database: None };
        if !credentials.is_empty() {
            let words = [&b"AUTH"[..]].into_iter().chain(credentials.iter());
            target.ask(words, patience)?;
        }
        match database {
            Some(database) => target.select(database, patience)?,
            None => target.ping(patience)?,
        }
        // The target has answered, so if it is this server, it knows this connection.
        if engine.clients.all().iter().any(|client| client.address == own) {
            return Err(Trouble::Itself);
        }
        Ok(target)
    }

    /// Has the target say anything. It may have renamed this command.
    fn ping(&mut self, patience: Patience<'_>) -> Result<(), Trouble> {
        match self.ask([&b"PING"[..]].into_iter(), patience) {
            Err(Trouble::Refused(line)) if line.starts_with("ERR unknown command") => Ok(()),
            asked => asked,
        }
    }

    /// Ends the connection when the target's system has acknowledged nothing for so long.
    pub(in crate::threads) fn bound_silence(&self, bound: Duration) -> Result<(), Trouble> {
        bound_silence(self.stream.socket(), bound).map_err(|_| Trouble::Writing)
    }

    /// The connection alone.
    pub(in crate::threads) fn into_stream(self) -> Stream {
        self.stream
    }

    /// Whether nothing has come that nobody has asked for, such as the end of the connection.
    pub(in crate::threads) fn is_quiet(&self) -> bool {
        let socket = self.stream.socket();
        let is_empty = || {
            let peeked = socket.peek(&mut [0]);
            matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
        };
        self.input.is_empty()
            && socket.set_nonblocking(true).is_ok()
            && is_empty()
            && socket.set_nonblocking(false).is_ok()
    }

    /// Selects a database, if another one is.
    pub(in crate::threads) fn select(
        &mut self,
        database: i64,
        patience: Patience<'_>,
    ) -> Result<(), Trouble> {
        if self.database != Some(database) {
            self.ask([&b"SELECT"[..], database.to_string().as_bytes()].into_iter(), patience)?;
            self.database = Some(database);
        }
        Ok(())
    }

    /// Sends a command, and takes its reply.
    pub(in crate::threads) fn ask<'w>(
        &mut self,
        words: impl Iterator<Item = &'w [u8]> + Clone,
        patience: Patience<'_>,
    ) -> Result<(), Trouble> {
        let mut command = Vec::new();
        encode_command(words, &mut command);
        self.send(&command, patience)?;
        self.receive(patience)?.map_err(Trouble::Refused)
    }

    /// Sends bytes. Silence counts from the last byte that the system has taken.
    pub(in crate::threads) fn send(
        &mut self,
        mut bytes: &[u8],
        patience: Patience<'_>,
    ) -> Result<(), Trouble> {
        let mut begun = Instant::now();
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(Trouble::Writing),
                Ok(count) => {
                    bytes = &bytes[count..];
                    begun = Instant::now();
                }
                Err(error) if is_slice_over(&error) => {}
                Err(_) => return Err(Trouble::Writing),
            }
            if !bytes.is_empty() && patience.is_over(begun)? {
                return Err(Trouble::Writing);
            }
        }
        // What was encrypted may not have been passed on.
        while let Err(error) = self.stream.flush() {
            if !is_slice_over(&error) || patience.is_over(begun)? {
                return Err(Trouble::Writing);
            }
        }
        Ok(())
    }

    /// The next reply: whether the target has done it, or why not.
    pub(in crate::threads) fn receive(
        &mut self,
        patience: Patience<'_>,
    ) -> Result<Result<(), String>, Trouble> {
        self.receive_as(understood, patience)
    }

    /// The next reply to a command that answers with a number.
    pub(super) fn receive_number(
        &mut self,
        patience: Patience<'_>,
    ) -> Result<Result<(), String>, Trouble> {
        self.receive_as(understood_number, patience)
    }

    fn receive_as(
        &mut self,
        understood: fn(&[u8]) -> Option<Result<(), String>>,
        patience: Patience<'_>,
    ) -> Result<Result<(), String>, Trouble> {
        let begun = Instant::now();
        let mut looked_at = 0;
        loop {
            let end = memchr::memchr(b'\n', &self.input[looked_at..]);
            if let Some(end) = end.map(|end| looked_at + end) {
                let reply = understood(&self.input[..end]);
                self.input.drain(..=end);
                return reply.ok_or(Trouble::Unclear);
            }
            looked_at = self.input.len();
            if looked_at > LONGEST_LINE {
                return Err(Trouble::Unclear);
            }
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(Trouble::Ended),
                Ok(count) => self.input.extend_from_slice(&piece[..count]),
                Err(error) if is_slice_over(&error) => {}
                Err(_) => return Err(Trouble::Ended),
            }
            if patience.is_over(begun)? {
                return Err(Trouble::Reading);
            }
        }
    }
}

/// A line as a reply; nothing if it is none.
fn understood(line: &[u8]) -> Option<Result<(), String>> {
    match line.strip_suffix(b"\r")? {
        b"+OK" | b"+PONG" => Some(Ok(())),
        [b'-', text @ ..] => Some(Err(String::from_utf8_lossy(text).into_owned())),
        _ => None,
    }
}

/// The same of a reply that is a number.
fn understood_number(line: &[u8]) -> Option<Result<(), String>> {
    match line.strip_prefix(b":").and_then(|rest| rest.strip_suffix(b"\r")) {
        Some(digits) => base::num::parse_i64(digits).map(|_| Ok(())),
        None => understood(line).filter(Result::is_err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_are_replies() {
        assert_eq!(understood(b"+OK\r"), Some(Ok(())));
        assert_eq!(understood(b"-ERR no\r"), Some(Err("ERR no".to_owned())));
        for line in [&b"+OK"[..], b"", b"\r", b"+QUEUED\r", b"$5\r", b"HTTP/1.1 400\r", b":1\r"] {
            assert_eq!(understood(line), None, "{}", line.escape_ascii());
        }
    }
    #[test]
    fn only_lines_with_numbers_are_replies_to_what_answers_so() {
        assert_eq!(understood_number(b":1\r"), Some(Ok(())));
        assert_eq!(understood_number(b"-ERR no\r"), Some(Err("ERR no".to_owned())));
        for line in [&b"+OK\r"[..], b":\r", b":1", b":x\r", b"$1\r", b""] {
            assert_eq!(understood_number(line), None, "{}", line.escape_ascii());
        }
    }
}
