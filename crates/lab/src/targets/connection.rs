//! One blocking connection for commands to a target: few, and never in the way of the load.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use resp::client::{ReplyParser, Value, encode_command};
use tls::Stream;

use crate::load::Encryption;

/// Where a target listens, and how to enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The password of AUTH.
    pub password: Option<String>,
    /// How connections are encrypted, if they are to be.
    pub encryption: Option<Encryption>,
}

/// A connection that waits for each reply.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    parser: ReplyParser,
    input: Vec<u8>,
    /// How long a whole reply may take, and how many bytes it may have.
    bounds: Option<(Duration, usize)>,
}

impl Endpoint {
    /// Opens a TCP connection; `patience` bounds the opening, and each read and write after it.
    ///
    /// # Errors
    /// The name is unknown, or nothing answers there.
    pub fn open(&self, patience: Duration) -> io::Result<TcpStream> {
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, patience) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(patience))?;
                    stream.set_write_timeout(Some(patience))?;
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// The same, encrypted if that is to be, for one of these protocols.
    ///
    /// # Errors
    /// As [`Endpoint::open`], or one end does not believe the other.
    pub fn open_stream(&self, patience: Duration, protocols: Vec<Vec<u8>>) -> io::Result<Stream> {
        let socket = self.open(patience)?;
        let Some(own) = &self.encryption else { return Ok(Stream::Plain(socket)) };
        let (config, name) = own.read(&self.host, protocols).map_err(io::Error::other)?;
        let begun = Instant::now();
        Stream::encrypt(socket, config, name, &|| begun.elapsed() >= patience)
    }

    /// Opens a connection for commands, with the password sent.
    ///
    /// # Errors
    /// As [`Endpoint::open_stream`], or the password is refused.
    pub fn connect(&self, patience: Duration) -> io::Result<Connection> {
        let stream = self.open_stream(patience, Vec::new())?;
        let mut connection =
            Connection { stream, parser: ReplyParser::new(), input: Vec::new(), bounds: None };
        if let Some(password) = &self.password
            && let Value::Error(text) = connection.call(&["AUTH", password])?
        {
            return Err(io::Error::other(String::from_utf8_lossy(&text).into_owned()));
        }
        Ok(connection)
    }
}

impl Connection {
    /// Waits no longer than this for a whole reply, and reads no more of it.
    #[must_use]
    pub fn bounded(mut self, patience: Duration, bytes: usize) -> Connection {
        self.bounds = Some((patience, bytes));
        self
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    /// The connection is lost, the reply takes too long, or it is not valid. The connection is of
    /// no use after that.
    pub fn call<A: AsRef<[u8]>>(&mut self, words: &[A]) -> io::Result<Value> {
        self.send(std::iter::once(words))?;
        self.receive()
    }

    /// Sends commands without waiting for their replies.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send<'a, A: AsRef<[u8]> + 'a>(
        &mut self,
        commands: impl Iterator<Item = &'a [A]>,
    ) -> io::Result<()> {
        let mut output = Vec::new();
        for words in commands {
            encode_command(words.iter(), &mut output);
        }
        self.stream.write_all(&output)?;
        self.stream.flush()
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub fn receive(&mut self) -> io::Result<Value> {
        let begun = Instant::now();
        loop {
            let next = self.parser.next(&self.input);
            let next = next.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if let Some((value, length)) = next {
                self.input.drain(..length);
                return Ok(value);
            }
            if let Some((patience, bytes)) = self.bounds {
                if begun.elapsed() >= patience {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                if self.input.len() > bytes {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "its reply is too long",
                    ));
                }
            }
            let mut piece = [0; 16 * 1024];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.input.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A reply in one line, for a reader.
pub fn in_words(value: &Value) -> String {
    match value {
        Value::Simple(text) | Value::Error(text) | Value::Bulk(text) => {
            let text = String::from_utf8_lossy(text);
            let mut line: String =
                text.lines().next().unwrap_or_default().chars().take(100).collect();
            if line.len() < text.trim_end().len() {
                line.push_str(" ...");
            }
            line
        }
        Value::Integer(number) => number.to_string(),
        Value::Null | Value::NullArray => "nil".to_owned(),
        Value::Array(values) => format!("{} values", values.len()),
        _ => "a reply".to_owned(),
    }
}

/// The fields of a reply of INFO.
pub fn info_fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once(':'))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Asks who answers by this piece again and again, within these bounds.
    fn asked(piece: &'static [u8], patience: Duration, bytes: usize) -> io::ErrorKind {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let endpoint =
            Endpoint { host: "127.0.0.1".to_owned(), port, password: None, encryption: None };
        let answers = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            // Until nobody listens any more.
            while client.write_all(piece).is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
        });
        let connection = endpoint.connect(Duration::from_secs(60)).unwrap();
        let reply = connection.bounded(patience, bytes).call(&["PING"]);
        answers.join().unwrap();
        reply.unwrap_err().kind()
    }

    #[test]
    fn a_reply_without_an_end_is_not_waited_for() {
        assert_eq!(asked(b"+", Duration::from_millis(50), 1 << 20), io::ErrorKind::TimedOut);
        let longest = 64 << 10;
        assert_eq!(
            asked(&[b'+'; 4096], Duration::from_secs(60), longest),
            io::ErrorKind::InvalidData
        );
    }
}
