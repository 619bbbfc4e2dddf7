//! A small synchronous client for RESP2 and RESP3.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use rustls::ClientConfig;
use tls::Stream;

use crate::certificates::Encryption;

/// How long a reply may take before a test gives up on it: it hangs then. A script that takes a
/// second takes ten where ten processes share a processor.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Longer than that no client waits for a node of a cluster that says nothing.
pub const SILENCE: Duration = Duration::from_millis(300);

/// One reply, with its wire type kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// `+`
    Status(Vec<u8>),
    /// `-` and `!`
    Error(Vec<u8>),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `$-1` and `_`
    Nil,
    /// `*-1`
    NilArray,
    /// `*`
    Array(Vec<Reply>),
    /// `,` with the digits as sent
    Double(Vec<u8>),
    /// `#`
    Boolean(bool),
    /// `(` with the digits as sent
    BigNumber(Vec<u8>),
    /// `=`: the three letters of the format, and the text
    Verbatim(Vec<u8>, Vec<u8>),
    /// `%`
    Map(Vec<(Reply, Reply)>),
    /// `~`
    Set(Vec<Reply>),
    /// `>`
    Push(Vec<Reply>),
    /// `|` and the reply that it adorns
    Attributed(Vec<(Reply, Reply)>, Box<Reply>),
}

impl Reply {
    /// The bytes of a text-like reply (bulk, verbatim, status, error).
    #[must_use]
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Reply::Status(text)
            | Reply::Error(text)
            | Reply::Bulk(text)
            | Reply::Verbatim(_, text) => Some(text),
            _ => None,
        }
    }

    /// Whether this is an error reply.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    /// The elements of any aggregate, maps as keys and values in turn.
    #[must_use]
    pub fn elements(self) -> Option<Vec<Reply>> {
        match self {
            Reply::Array(elements) | Reply::Set(elements) | Reply::Push(elements) => Some(elements),
            Reply::Map(pairs) => {
                Some(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect())
            }
            _ => None,
        }
    }
}

/// What came from the connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Received {
    /// A whole reply.
    Reply(Reply),
    /// The server closed the connection.
    Closed,
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<Stream>,
}

/// A port whose clients are encrypted in part: see [`Client::encrypt_every_second`].
struct Shared {
    port: u16,
    encrypted_port: u16,
    config: Arc<ClientConfig>,
    connections: AtomicUsize,
}

static SHARED: OnceLock<Shared> = OnceLock::new();

impl Client {
    /// From now on, every second connection of this process to a port goes to another one instead,
    /// where the same server speaks TLS. For programs that know nothing of that.
    pub fn encrypt_every_second(port: u16, encrypted_port: u16, config: Arc<ClientConfig>) {
        let connections = AtomicUsize::new(0);
        // The first one counts.
        let _ = SHARED.set(Shared { port, encrypted_port, config, connections });
    }

    /// Connects to a loopback port.
    ///
    /// # Errors
    /// The connection is refused.
    pub fn connect(port: u16) -> Result<Self> {
        match SHARED.get().filter(|shared| shared.port == port) {
            Some(shared) if shared.connections.fetch_add(1, Relaxed) % 2 == 1 => {
                Self::open(shared.encrypted_port, Some(Arc::clone(&shared.config)))
            }
            _ => Self::open(port, None),
        }
    }

    /// Connects to a loopback port, and encrypts the connection if the server wants that.
    ///
    /// # Errors
    /// The connection is refused, or one end does not believe the other.
    pub fn connect_through(port: u16, encryption: Option<&Encryption>) -> Result<Self> {
        Self::open(port, encryption.map(Encryption::config))
    }

    /// Connects to a port of an address that this machine has.
    ///
    /// # Errors
    /// The connection is refused.
    pub fn connect_to(host: &str, port: u16) -> Result<Self> {
        Self::over((host, port), None)
    }

    /// Connects to an address of a network that the test has made.
    ///
    /// # Errors
    /// As [`Client::connect_through`].
    pub fn connect_at(place: SocketAddr, encryption: Option<Arc<ClientConfig>>) -> Result<Self> {
        let host = place.ip().to_string();
        Self::over((&*host, place.port()), encryption)
    }

    /// The same for an address that may not answer: waits no longer than that for it.
    ///
    /// # Errors
    /// Nobody has answered, or the connection is refused.
    pub fn connect_within(place: SocketAddr, patience: Duration) -> Result<Self> {
        let socket = TcpStream::connect_timeout(&place, patience)
            .with_context(|| format!("connecting to {place}"))?;
        Self::speak(socket, None)
    }

    fn open(port: u16, encryption: Option<Arc<ClientConfig>>) -> Result<Self> {
        Self::over(("127.0.0.1", port), encryption)
    }

    fn over(place: (&str, u16), encryption: Option<Arc<ClientConfig>>) -> Result<Self> {
        let socket =
            TcpStream::connect(place).with_context(|| format!("connecting to {place:?}"))?;
        Self::speak(socket, encryption.map(|config| (config, place.0)))
    }

    fn speak(socket: TcpStream, encryption: Option<(Arc<ClientConfig>, &str)>) -> Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let stream = match encryption {
            None => Stream::Plain(socket),
            Some((config, host)) => {
                let name = tls::client::server_name(host).map_err(Error::msg)?;
                let begun = Instant::now();
                Stream::encrypt(socket, config, name, &|| begun.elapsed() >= PATIENCE)?
            }
        };
        Ok(Self { stream: BufReader::with_capacity(64 * 1024, stream) })
    }

    /// Waits until bytes, or the end of the connection, are there to read. Returns how many.
    fn fill(&mut self) -> std::io::Result<usize> {
        // What comes on an encrypted connection need not be data.
        loop {
            match self.stream.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                filled => return filled.map(<[u8]>::len),
            }
        }
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The connection is broken, or does not take the bytes in time.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes).and_then(|()| stream.flush()).context("sending")
    }

    /// Sends one command, without waiting for its reply.
    ///
    /// # Errors
    /// As [`Client::send_raw`].
    pub fn send<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<()> {
        let mut request = Vec::new();
        encode(words, &mut request);
        self.send_raw(&request)
    }

    /// Sends one command and returns its reply.
    ///
    /// # Errors
    /// The connection is broken or closed, silent for too long, or sends what is not RESP.
    pub fn call<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Reply> {
        self.send(words)?;
        self.next_reply()
    }

    /// Waits for a reply that has to come.
    fn next_reply(&mut self) -> Result<Reply> {
        match self.receive()? {
            Received::Reply(reply) => Ok(reply),
            Received::Closed => bail!("the server closed the connection instead of replying"),
        }
    }

    /// Sends one command and returns its reply, unless nothing of that comes for so long. What
    /// becomes of the command is not known then, and the connection is of no more use.
    ///
    /// # Errors
    /// As [`Client::call`], or nothing comes.
    pub fn call_within<W: AsRef<[u8]>>(
        &mut self,
        words: &[W],
        patience: Duration,
    ) -> Result<Reply> {
        self.send(words)?;
        self.receive_within(patience)
    }

    /// Waits so long for the next reply.
    ///
    /// # Errors
    /// Nothing comes, or the connection ends.
    pub fn receive_within(&mut self, patience: Duration) -> Result<Reply> {
        if !self.has_input(patience)? {
            bail!("silence");
        }
        self.next_reply()
    }

    /// Sends one command written as text, split at blanks.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn call_text(&mut self, command: &str) -> Result<Reply> {
        self.call(&command.split_whitespace().collect::<Vec<_>>())
    }

    /// Waits for the next reply or for the end of the connection.
    ///
    /// # Errors
    /// Nothing comes in time, the stream ends inside a reply, or the bytes are not RESP.
    pub fn receive(&mut self) -> Result<Received> {
        match self.fill() {
            Ok(0) => Ok(Received::Closed),
            Ok(_) => Ok(Received::Reply(read_reply(&mut self.stream, 0)?)),
            Err(error) if is_end(&error) => Ok(Received::Closed),
            Err(error) => Err(error).context("waiting for a reply"),
        }
    }

    /// Whether bytes, or the end of the connection, are there to read at this moment.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn is_readable(&mut self) -> Result<bool> {
        if !self.stream.buffer().is_empty() {
            return Ok(true);
        }
        self.stream.get_ref().socket().set_nonblocking(true)?;
        let filled = self.fill();
        self.stream.get_ref().socket().set_nonblocking(false)?;
        arrived(filled)
    }

    /// Whether bytes are there to read, waiting at most `patience` for them.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn has_input(&mut self, patience: Duration) -> Result<bool> {
        if !self.stream.buffer().is_empty() {
            return Ok(true);
        }
        self.stream.get_ref().socket().set_read_timeout(Some(patience))?;
        let filled = self.fill();
        self.stream.get_ref().socket().set_read_timeout(Some(PATIENCE))?;
        arrived(filled)
    }

    /// Reads at most `most` raw bytes, fewer when the stream ends or pauses for `patience`.
    /// The flag says whether the stream ended.
    ///
    /// # Errors
    /// The connection is broken in another way than by a reset.
    pub fn receive_raw(&mut self, most: usize, patience: Duration) -> Result<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        while bytes.len() < most && self.has_input(patience)? {
            match self.fill() {
                Ok(0) => return Ok((bytes, true)),
                Ok(count) => {
                    let taken = count.min(most - bytes.len());
                    bytes.extend_from_slice(&self.stream.buffer()[..taken]);
                    self.stream.consume(taken);
                }
                Err(error) if is_end(&error) => return Ok((bytes, true)),
                Err(error) => return Err(error).context("reading raw bytes"),
            }
        }
        Ok((bytes, false))
    }
}

/// Whether the connection has ended, if only because the server was killed.
fn is_end(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof)
}

/// Whether an attempt to read shows that something is there: a connection that was reset has its
/// end to read.
fn arrived(filled: std::io::Result<usize>) -> Result<bool> {
    match filled {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(false)
        }
        Err(error) if is_end(&error) => Ok(true),
        Err(error) => Err(error).context("looking for input"),
    }
}

/// Appends one command as an array of bulk strings.
pub fn encode<W: AsRef<[u8]>>(words: &[W], request: &mut Vec<u8>) {
    request.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        let word = word.as_ref();
        request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
}

/// Reads one reply. `depth` bounds nesting, so that a broken server cannot exhaust the stack.
fn read_reply(stream: &mut BufReader<Stream>, depth: usize) -> Result<Reply> {
    if depth > 64 {
        bail!("a reply nests too deeply");
    }
    let line = read_line(stream)?;
    let Some((&kind, rest)) = line.split_first() else { bail!("an empty line instead of a reply") };
    Ok(match kind {
        b'+' => Reply::Status(rest.to_vec()),
        b'-' => Reply::Error(rest.to_vec()),
        b':' => Reply::Integer(number(rest)?),
        b',' => Reply::Double(rest.to_vec()),
        b'(' => Reply::BigNumber(rest.to_vec()),
        b'_' if rest.is_empty() => Reply::Nil,
        b'#' if rest == b"t" => Reply::Boolean(true),
        b'#' if rest == b"f" => Reply::Boolean(false),
        b'$' if rest == b"-1" => Reply::Nil,
        b'*' if rest == b"-1" => Reply::NilArray,
        b'$' => Reply::Bulk(read_blob(stream, rest)?),
        b'!' => Reply::Error(read_blob(stream, rest)?),
        b'=' => {
            let blob = read_blob(stream, rest)?;
            match (blob.get(..3), blob.get(3), blob.get(4..)) {
                (Some(format), Some(b':'), Some(text)) => {
                    Reply::Verbatim(format.to_vec(), text.to_vec())
                }
                _ => bail!("a verbatim string without its format"),
            }
        }
        b'*' => Reply::Array(read_elements(stream, number(rest)?, depth)?),
        b'~' => Reply::Set(read_elements(stream, number(rest)?, depth)?),
        b'>' => Reply::Push(read_elements(stream, number(rest)?, depth)?),
        b'%' => Reply::Map(read_pairs(stream, number(rest)?, depth)?),
        b'|' => {
            let attributes = read_pairs(stream, number(rest)?, depth)?;
            Reply::Attributed(attributes, Box::new(read_reply(stream, depth + 1)?))
        }
        _ => bail!("not RESP: {}", crate::quoting::quote(&line)),
    })
}

fn read_elements(stream: &mut BufReader<Stream>, count: i64, depth: usize) -> Result<Vec<Reply>> {
    if count < 0 {
        bail!("an aggregate of {count} elements");
    }
    (0..count).map(|_| read_reply(stream, depth + 1)).collect()
}

fn read_pairs(
    stream: &mut BufReader<Stream>,
    count: i64,
    depth: usize,
) -> Result<Vec<(Reply, Reply)>> {
    if count < 0 {
        bail!("a map of {count} pairs");
    }
    (0..count)
        .map(|_| Ok((read_reply(stream, depth + 1)?, read_reply(stream, depth + 1)?)))
        .collect()
}

/// Reads a length-prefixed text and the line end after it.
fn read_blob(stream: &mut BufReader<Stream>, length: &[u8]) -> Result<Vec<u8>> {
    let length = usize::try_from(number(length)?).context("a negative length")?;
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes).context("inside a bulk string")?;
    let mut end = [0; 2];
    stream.read_exact(&mut end).context("behind a bulk string")?;
    if bytes.len() != length || &end != b"\r\n" {
        bail!("a bulk string does not end where its length says");
    }
    Ok(bytes)
}

/// Reads up to CR LF, which is removed.
fn read_line(stream: &mut BufReader<Stream>) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line).context("inside a reply")?;
    match line.strip_suffix(b"\r\n") {
        Some(content) => Ok(content.to_vec()),
        None => bail!("a line that does not end in CR LF: {}", crate::quoting::quote(&line)),
    }
}

/// A decimal number of the protocol.
fn number(digits: &[u8]) -> Result<i64> {
    let text = std::str::from_utf8(digits)?;
    text.parse().with_context(|| format!("not a number of the protocol: {text:?}"))
}
