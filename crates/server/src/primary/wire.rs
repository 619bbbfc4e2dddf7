//! The bytes of a link: a socket that is read for short whiles, so that its thread can do what else
//! has to be done.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::{Config, PrimaryAddress};
use engine::engine::Engine;
use process::paths::reason;
use replication::LinkError;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use tls::Stream;

use crate::connecting::{bound_silence, connect, resolve};

/// The longest time for which the thread waits for bytes before it looks at other things.
pub(super) const WHILE: Duration = Duration::from_millis(50);
/// The longest time for which an address may not answer.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const READ_SIZE: usize = 256 * 1024;

/// Why a link has ended.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server stops, or follows somebody else.
    Over,
    /// The primary cannot be reached.
    Unreachable(String),
    /// The connection is lost.
    Lost(String),
    /// Nothing has come for `repl-timeout`.
    Silent,
    /// The primary has said something that ends the link.
    Protocol(LinkError),
    /// Its data cannot be taken in. Trying again helps only if `lasting` is false.
    Data {
        /// What is wrong.
        reason: String,
        /// The same data would fail again.
        lasting: bool,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Over => formatter.write_str("it is over"),
            Trouble::Unreachable(reason) => write!(formatter, "it cannot be reached: {reason}"),
            Trouble::Lost(reason) => write!(formatter, "the connection is lost: {reason}"),
            Trouble::Silent => {
                formatter.write_str("timeout: no data nor PING received (repl-timeout)")
            }
            Trouble::Protocol(error) => error.fmt(formatter),
            Trouble::Data { reason, .. } => write!(formatter, "its data is of no use: {reason}"),
        }
    }
}

impl From<LinkError> for Trouble {
    fn from(error: LinkError) -> Trouble {
        Trouble::Protocol(error)
    }
}

/// See the module's text.
pub(super) struct Wire {
    stream: Stream,
    buffer: Box<[u8]>,
    /// Bytes of the buffer that have arrived and were not taken.
    waiting: std::ops::Range<usize>,
    /// The last read has filled the buffer: an encrypted stream may hold more.
    was_filled: bool,
    /// When the last byte came.
    heard: Instant,
    /// How long the primary may be silent, as the settings say at the moment.
    patience: Box<dyn Fn() -> Duration>,
    /// How long a read may wait for bytes.
    waits: Duration,
}

/// How long a primary may be silent.
fn patience_of(config: &Config) -> Duration {
    Duration::from_secs(u64::from(config.repl_timeout))
}

/// Sets how long its reads and writes wait, and when a node of a cluster gives it up.
fn prepare(socket: TcpStream, config: &Config) -> io::Result<TcpStream> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(WHILE))?;
    socket.set_write_timeout(Some(patience_of(config).min(CONNECT_MAX)))?;
    if config.cluster_enabled {
        // Writes wait for what a network has lost.
        bound_silence(&socket, Duration::from_millis(config.cluster_node_timeout))?;
    }
    Ok(socket)
}

fn encrypt(
    socket: TcpStream,
    active: &tls::Active,
    host: &str,
    is_unwanted: &dyn Fn() -> bool,
) -> io::Result<Stream> {
    let by = active.for_server().ok_or_else(|| io::Error::other("there are no certificates"))?;
    // What is not the name of a host in the sense of TLS goes by its address.
    let name = match tls::client::server_name(host) {
        Ok(name) => name,
        Err(_) => socket.peer_addr()?.ip().into(),
    };
    let begun = Instant::now();
    Stream::encrypt(socket, by, name, &|| begun.elapsed() >= CONNECT_MAX || is_unwanted())
}

impl Wire {
    /// Connects, unless the link is not wanted any more. `active` is what encrypts the connection,
    /// if the settings of the engine ask for that.
    pub(super) fn connect(
        primary: &PrimaryAddress,
        engine: &Arc<Engine>,
        active: &tls::Active,
        is_unwanted: &dyn Fn() -> bool,
    ) -> Result<Wire, Trouble> {
        let engine = Arc::clone(engine);
        let config = &engine.config.snapshot();
        let unreachable = |error: io::Error| Trouble::Unreachable(reason(&error));
        let host = String::from_utf8_lossy(&primary.host);
        let of_address = patience_of(config).min(CONNECT_MAX);
        let addresses = resolve(&host, primary.port, of_address, is_unwanted);
        let addresses = addresses.map_err(unreachable)?;
        let mut last = io::Error::other("its name has no address");
        for address in addresses {
            match connect(address, &config.bind_source_addr, of_address, is_unwanted) {
                Ok(socket) => {
                    let made = prepare(socket, config).and_then(|socket| {
                        if config.tls_replication {
                            encrypt(socket, active, &host, is_unwanted)
                        } else {
                            Ok(Stream::Plain(socket))
                        }
                    });
                    let patience = move || patience_of(&engine.config.load());
                    let wire = |stream| Wire::over(stream, Box::new(patience));
                    return made.map(wire).map_err(unreachable);
                }
                Err(error) => last = error,
            }
        }
        Err(unreachable(last))
    }

    fn over(stream: Stream, patience: Box<dyn Fn() -> Duration>) -> Wire {
        let buffer = vec![0; READ_SIZE].into_boxed_slice();
        let heard = Instant::now();
        Wire { stream, buffer, waiting: 0..0, was_filled: false, heard, patience, waits: WHILE }
    }

    /// Sends bytes: few, which the system takes at once.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let sent = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
        sent.map_err(|error| Trouble::Lost(reason(&error)))
    }

    /// Has the next look wait no longer than that.
    pub(super) fn wait_at_most(&mut self, longest: Duration) -> Result<(), Trouble> {
        if self.waits != longest {
            let set = self.stream.socket().set_read_timeout(Some(longest));
            set.map_err(|error| Trouble::Lost(reason(&error)))?;
            self.waits = longest;
        }
        Ok(())
    }

    /// Says that the replica is alive, where the primary waits for nothing else.
    pub(super) fn send_sign_of_life(&mut self) -> Result<(), Trouble> {
        self.send(b"\n")
    }

    /// Waits for bytes for a short while. Returns those that have arrived and were not taken.
    pub(super) fn look(&mut self) -> Result<&[u8], Trouble> {
        if self.waiting.is_empty() {
            match self.stream.read(&mut self.buffer) {
                Ok(0) => return Err(Trouble::Lost("the primary has closed it".into())),
                Ok(read) => {
                    self.waiting = 0..read;
                    self.was_filled = read == self.buffer.len();
                    self.heard = Instant::now();
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) =>
                {
                    if self.heard.elapsed() > (self.patience)() {
                        return Err(Trouble::Silent);
                    }
                }
                Err(error) => return Err(Trouble::Lost(reason(&error))),
            }
        }
        Ok(&self.buffer[self.waiting.clone()])
    }

    /// Whether all that has come was taken.
    pub(super) fn is_all_taken(&self) -> bool {
        let at_once = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let has_more = || rustix::net::recv(self.stream.socket(), &mut [0; 1][..], at_once);
        self.waiting.is_empty() && !self.was_filled && has_more() == Err(Errno::AGAIN)
    }

    /// Takes so many of the bytes that have arrived.
    pub(super) fn take(&mut self, count: usize) {
        self.waiting.start += count;
    }

    /// The replica was busy: silence is counted from now on.
    pub(super) fn forgive_silence(&mut self) {
        self.heard = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    /// A wire and its other end, with so much patience.
    fn pair(patience: impl Fn() -> Duration + 'static) -> (Wire, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let primary = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = listener.accept().unwrap().0;
        (Wire::over(Stream::Plain(socket), Box::new(patience)), primary)
    }

    #[test]
    fn patience_is_what_it_is_at_the_moment() {
        let seconds = Arc::new(AtomicU64::new(3600));
        let own = Arc::clone(&seconds);
        let (mut wire, _primary) = pair(move || Duration::from_secs(own.load(Relaxed)));
        wire.stream.socket().set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        assert!(wire.look().unwrap().is_empty());
        seconds.store(0, Relaxed);
        assert!(matches!(wire.look(), Err(Trouble::Silent)));
    }

    #[test]
    fn all_is_taken_when_the_socket_has_nothing_more() {
        let (mut wire, mut primary) = pair(|| CONNECT_MAX);
        assert!(wire.is_all_taken());
        wire.buffer = vec![0; 16].into_boxed_slice();
        primary.write_all(&[7; 40]).unwrap();
        while wire.stream.socket().peek(&mut [0; 64]).unwrap() < 40 {}
        let mut found = Vec::new();
        for _ in 0..3 {
            let count = wire.look().unwrap().len();
            assert!(!wire.is_all_taken());
            wire.take(count);
            found.push((count, wire.is_all_taken()));
        }
        assert_eq!(found, [(16, false), (16, false), (8, true)]);
        drop(primary);
        assert!(matches!(wire.look(), Err(Trouble::Lost(_))));
        assert!(!wire.is_all_taken(), "nobody knows what was to come");
    }
}
