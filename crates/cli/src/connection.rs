//! One connection to a server: bytes out, replies in.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use lab::load::Address;
use lab::targets::connection::Endpoint;
use resp::client::{ReplyParser, Value, encode_command};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
use tls::Stream;

use crate::interrupt;
use crate::options::Preference;

/// How long opening a connection may take where nobody has said it: longer than systems try.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How long a wait lasts before an interrupt is looked for again.
const GLANCE: Duration = Duration::from_millis(250);
/// How often the system looks whether an idle connection is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// What is read at once.
const PIECE: usize = 64 * 1024;

/// The words of a command.
pub(crate) type Words = Vec<Vec<u8>>;

/// What carries the bytes.
enum Wire {
    Internet(Stream),
    Unix(UnixStream),
}

/// See the module's text.
pub(crate) struct Connection {
    wire: Wire,
    parser: ReplyParser,
    input: Vec<u8>,
    /// How many bytes at the front of the input are done with.
    done: usize,
}

/// What a wait for a server and for standard input has ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// The server has sent something.
    Server,
    /// Standard input has something, or has ended.
    Input,
    /// Ctrl-C was pressed.
    Interrupt,
    /// The time is over.
    Timeout,
}

impl Connection {
    /// Opens a connection, without a word to the server.
    pub(crate) fn open(
        address: &Address,
        timeout: Option<Duration>,
        preference: Option<Preference>,
    ) -> io::Result<Connection> {
        let wire = match &address.socket {
            Some(path) => Wire::Unix(UnixStream::connect(path)?),
            None => Wire::Internet(internet(address, timeout.unwrap_or(PATIENCE), preference)?),
        };
        Ok(Connection { wire, parser: ReplyParser::new(), input: Vec::new(), done: 0 })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.wire {
            Wire::Internet(stream) => stream,
            Wire::Unix(stream) => stream,
        }
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        match &self.wire {
            Wire::Internet(stream) => stream.socket().as_fd(),
            Wire::Unix(stream) => stream.as_fd(),
        }
    }

    /// Sends bytes.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer().write_all(bytes)?;
        self.writer().flush()
    }

    /// Sends a command.
    pub(crate) fn send<A: AsRef<[u8]>>(&mut self, words: &[A]) -> io::Result<()> {
        let mut output = Vec::new();
        encode_command(words.iter(), &mut output);
        self.send_bytes(&output)
    }

    /// Sends a command and waits for its reply. Messages that come before it are dropped.
    pub(crate) fn call<A: AsRef<[u8]>>(&mut self, words: &[A]) -> io::Result<Value> {
        self.send(words)?;
        loop {
            match self.receive()? {
                Value::Push(_) => {}
                reply => return Ok(reply),
            }
        }
    }

    /// Sends commands together, and waits for all replies.
    pub(crate) fn call_all(&mut self, commands: &[Words]) -> io::Result<Vec<Value>> {
        let mut output = Vec::new();
        commands.iter().for_each(|words| encode_command(words.iter(), &mut output));
        self.send_bytes(&output)?;
        let mut replies = Vec::with_capacity(commands.len());
        while replies.len() < commands.len() {
            match self.receive()? {
                Value::Push(_) => {}
                reply => replies.push(reply),
            }
        }
        Ok(replies)
    }

    /// The next reply, if it has arrived in full.
    pub(crate) fn received(&mut self) -> io::Result<Option<Value>> {
        let next = self.parser.next(&self.input[self.done..]);
        let invalid = |error: resp::client::ReplyError| {
            io::Error::new(io::ErrorKind::InvalidData, format!("Protocol error, {error}"))
        };
        let Some((value, length)) = next.map_err(invalid)? else { return Ok(None) };
        self.done += length;
        Ok(Some(value))
    }

    /// Waits for the next reply. An interrupt ends the wait with [`io::ErrorKind::Interrupted`].
    pub(crate) fn receive(&mut self) -> io::Result<Value> {
        loop {
            if let Some(value) = self.received()? {
                return Ok(value);
            }
            if self.wait(None, false)? == Ready::Interrupt {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.read()?;
        }
    }

    /// Reads what is there, after [`Connection::wait`].
    pub(crate) fn read(&mut self) -> io::Result<()> {
        self.input.drain(..self.done);
        self.done = 0;
        let end = self.input.len();
        self.input.resize(end + PIECE, 0);
        let Connection { wire, input, .. } = self;
        let read = match wire {
            Wire::Internet(Stream::Plain(socket)) => socket.read(&mut input[end..]),
            Wire::Internet(Stream::Encrypted(stream)) => (|| {
                // What has come may be a message of TLS alone: a wait for data would last too long.
                let state = stream.conn.process_new_packets().map_err(io::Error::other)?;
                if state.plaintext_bytes_to_read() == 0 {
                    stream.conn.read_tls(&mut stream.sock)?;
                    stream.conn.process_new_packets().map_err(io::Error::other)?;
                    if stream.conn.wants_write() {
                        stream.conn.write_tls(&mut stream.sock)?;
                    }
                }
                stream.conn.reader().read(&mut input[end..])
            })(),
            Wire::Unix(stream) => stream.read(&mut input[end..]),
        };
        self.input.truncate(end + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(closed()),
            Ok(_) => Ok(()),
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Takes bytes that are no reply: those that have been received already first.
    pub(crate) fn take_bytes(&mut self, most: usize) -> io::Result<Vec<u8>> {
        if self.done == self.input.len() {
            if self.wait(None, false)? == Ready::Interrupt {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.read()?;
        }
        let end = self.input.len().min(self.done.saturating_add(most));
        let bytes = self.input[self.done..end].to_vec();
        self.done = end;
        Ok(bytes)
    }

    /// Whether bytes wait that an encrypted connection has decrypted already.
    fn has_decrypted(&mut self) -> bool {
        match &mut self.wire {
            Wire::Internet(Stream::Encrypted(own)) => own
                .conn
                .process_new_packets()
                .is_ok_and(|state| state.plaintext_bytes_to_read() > 0),
            _ => false,
        }
    }

    /// Waits until the server has sent something, or, if that is asked for, until standard input
    /// has something.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>, input: bool) -> io::Result<Ready> {
        if self.has_decrypted() {
            return Ok(Ready::Server);
        }
        let end = timeout.map(|timeout| base::clock::monotonic_ns() + timeout.as_nanos() as u64);
        loop {
            if interrupt::is_asked() {
                return Ok(Ready::Interrupt);
            }
            let left = end.map_or(GLANCE, |end| {
                Duration::from_nanos(end.saturating_sub(base::clock::monotonic_ns())).min(GLANCE)
            });
            let stdin = io::stdin();
            let mut events = vec![PollFd::from_borrowed_fd(self.socket(), PollFlags::IN)];
            if input {
                events.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
            }
            let span =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            match poll(&mut events, Some(&span)) {
                Ok(0) if end.is_some_and(|end| base::clock::monotonic_ns() >= end) => {
                    return Ok(Ready::Timeout);
                }
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            let happened: Vec<bool> = events.iter().map(|one| !one.revents().is_empty()).collect();
            return Ok(if happened[0] { Ready::Server } else { Ready::Input });
        }
    }

    /// Whether the server has closed the connection, as far as it is known here.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut one = [0; 1];
        let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
        match rustix::net::recv(self.socket(), &mut one, flags) {
            Ok((_, length)) => length == 0,
            Err(error) => error != Errno::AGAIN && error != Errno::INTR,
        }
    }

    /// Sends and receives bytes in both directions at once: sends as much as the socket takes, and
    /// takes what has come, without waiting for longer than `timeout`. Returns how many bytes of
    /// `output` were sent.
    pub(crate) fn exchange(&mut self, output: &[u8], timeout: Duration) -> io::Result<usize> {
        let may_read = self.has_decrypted();
        let mut flags = PollFlags::IN;
        if !output.is_empty() {
            flags |= PollFlags::OUT;
        }
        let mut events = [PollFd::from_borrowed_fd(self.socket(), flags)];
        let span = if may_read { Duration::ZERO } else { timeout };
        let span =
            Timespec { tv_sec: span.as_secs() as i64, tv_nsec: i64::from(span.subsec_nanos()) };
        match poll(&mut events, Some(&span)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        let came = events[0].revents();
        if may_read || came.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.read()?;
            return Ok(0);
        }
        if !came.contains(PollFlags::OUT) {
            return Ok(0);
        }
        // The socket blocks; it takes this much at once when it is ready to be written to.
        let most = output.len().min(PIECE / 4);
        let Connection { wire, .. } = self;
        match wire {
            Wire::Internet(Stream::Plain(_)) | Wire::Unix(_) => {
                let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
                match rustix::net::send(self.socket(), &output[..most], flags) {
                    Ok(length) => Ok(length),
                    Err(Errno::AGAIN | Errno::INTR) => Ok(0),
                    Err(error) => Err(error.into()),
                }
            }
            Wire::Internet(Stream::Encrypted(stream)) => {
                let length = stream.write(&output[..most])?;
                stream.flush()?;
                Ok(length)
            }
        }
    }
}

/// The server has closed the connection.
fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "Server closed the connection")
}

fn internet(
    address: &Address,
    patience: Duration,
    preference: Option<Preference>,
) -> io::Result<Stream> {
    let mut endpoint = Endpoint {
        host: address.host.clone(),
        port: address.port,
        password: None,
        encryption: address.encryption.clone(),
    };
    if let Some(preference) = preference {
        let is_meant = |place: &SocketAddr| match preference {
            Preference::V4 => place.is_ipv4(),
            Preference::V6 => place.is_ipv6(),
        };
        let places = (endpoint.host.as_str(), endpoint.port).to_socket_addrs()?;
        if let Some(place) = places.into_iter().find(is_meant) {
            // The certificate is for the name and not for the address.
            if let Some(encryption) = &mut endpoint.encryption {
                encryption.name.get_or_insert_with(|| endpoint.host.clone());
            }
            endpoint.host = place.ip().to_string();
        }
    }
    let stream = endpoint.open_stream(patience, Vec::new())?;
    let socket = stream.socket();
    socket.set_read_timeout(None)?;
    socket.set_write_timeout(None)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEP_ALIVE)?;
    Ok(stream)
}
