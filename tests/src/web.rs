//! A client of HTTP that sends exactly what it is told.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a connection may go on that is to end.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers, names in small letters.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The tag of the version.
    #[must_use]
    pub fn tag(&self) -> &str {
        self.header("etag").unwrap_or_default()
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection.
#[derive(Debug)]
pub struct Web {
    stream: BufReader<TcpStream>,
}

impl Web {
    /// Connects to a port of this machine.
    ///
    /// # Errors
    /// The connection is refused.
    pub fn connect(port: u16) -> Result<Self> {
        Self::connect_at((Ipv4Addr::LOCALHOST, port).into())
    }

    /// Connects to another address than loopback, of a network that the test has made.
    ///
    /// # Errors
    /// The connection is refused.
    pub fn connect_at(place: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(place)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.get_mut().write_all(bytes)?)
    }

    /// Ends the client's side of the connection.
    ///
    /// # Errors
    /// It is closed already.
    pub fn end(&mut self) -> Result<()> {
        Ok(self.stream.get_ref().shutdown(std::net::Shutdown::Write)?)
    }

    /// Sends a request with these lines in its head, and a body if it is not empty.
    ///
    /// # Errors
    /// As [`Web::send`].
    pub fn request(&mut self, line: &str, headers: &[&str], body: &[u8]) -> Result<()> {
        let mut text = format!("{line} HTTP/1.1\r\nHost: localhost\r\n");
        headers.iter().for_each(|header| text += &format!("{header}\r\n"));
        if !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text += "\r\n";
        self.send(&[text.as_bytes(), body].concat())
    }

    /// Sends a request such as `GET /path` and reads the answer.
    ///
    /// # Errors
    /// No answer comes.
    pub fn ask(&mut self, line: &str, headers: &[&str], body: &[u8]) -> Result<Answer> {
        self.request(line, headers, body)?;
        self.answer(line.starts_with("HEAD "))
    }

    /// Reads an answer, without a body if the request was HEAD.
    ///
    /// # Errors
    /// There is none.
    pub fn answer(&mut self, to_head: bool) -> Result<Answer> {
        let line = self.line()?;
        let status = line.strip_prefix("HTTP/1.1 ").with_context(|| format!("{line:?}"))?;
        let status: u16 = status.get(..3).context("a status has three digits")?.parse()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").with_context(|| format!("{line:?}"))?;
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if !to_head && let Some(length) = answer.header("content-length") {
            answer.body = vec![0; length.parse()?];
            self.stream.read_exact(&mut answer.body)?;
        }
        Ok(answer)
    }

    /// Reads the next part of a body in chunks; nothing at its end.
    ///
    /// # Errors
    /// None comes in time.
    pub fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let length = usize::from_str_radix(&self.line()?, 16)?;
        let mut chunk = vec![0; length];
        self.stream.read_exact(&mut chunk)?;
        let end = self.line()?;
        if !end.is_empty() {
            bail!("behind a chunk there is {end:?}");
        }
        Ok((length > 0).then_some(chunk))
    }

    /// Sends a request and reads the answer, whose body may come in chunks.
    ///
    /// # Errors
    /// As [`Web::ask`].
    pub fn ask_whole(&mut self, line: &str, headers: &[&str], body: &[u8]) -> Result<Answer> {
        let mut answer = self.ask(line, headers, body)?;
        let is_chunked = answer.header("transfer-encoding") == Some("chunked");
        while is_chunked && let Some(chunk) = self.chunk()? {
            answer.body.extend_from_slice(&chunk);
        }
        Ok(answer)
    }

    /// Waits at most this long for the next bytes.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_patience(&self, patience: Duration) -> Result<()> {
        Ok(self.stream.get_ref().set_read_timeout(Some(patience))?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(text) => Ok(text.to_owned()),
            None => bail!("the connection ended behind {line:?}"),
        }
    }

    /// Reads to the end of the connection, and returns what still came.
    ///
    /// # Errors
    /// It does not end.
    pub fn rest(&mut self) -> Result<Vec<u8>> {
        let (mut rest, begun) = (Vec::new(), Instant::now());
        loop {
            let length = match self.stream.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(rest),
                Err(error) => return Err(error.into()),
                Ok([]) => return Ok(rest),
                Ok(bytes) => {
                    rest.extend_from_slice(bytes);
                    bytes.len()
                }
            };
            self.stream.consume(length);
            // A stream that goes on sends something again and again.
            if begun.elapsed() > LONGEST_REST {
                bail!("the connection goes on");
            }
        }
    }
}
