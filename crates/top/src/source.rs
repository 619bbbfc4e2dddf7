//! How a server is asked: over the Redis protocol, over HTTP, or both.

use std::io::{self, Read, Write};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lab::load::{Address, Encryption};
use lab::targets::connection::{Connection, Endpoint};
use resp::client::Value;
use serde_json::Value as Json;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer over HTTP.
const ANSWER_MAX: u64 = 64 << 20;

/// A server that is asked.
pub(crate) struct Source {
    address: Address,
    connection: Option<Connection>,
    http: Option<Http>,
    /// Whether the port of HTTP is still to be found.
    finds_http: bool,
}

/// The addresses of a server for HTTP.
struct Http {
    endpoint: Endpoint,
    user: Option<String>,
    password: Option<String>,
}

impl Source {
    /// A server that is asked over the Redis protocol, and over HTTP where that is found.
    pub(crate) fn resp(address: Address, finds_http: bool) -> Source {
        Source { address, connection: None, http: None, finds_http }
    }

    /// A server that is asked over HTTP alone.
    pub(crate) fn http(address: Address) -> Source {
        let http = Http::new(&address, address.port, address.encryption.clone());
        Source { address, connection: None, http: Some(http), finds_http: false }
    }

    /// Its name for people.
    pub(crate) fn name(&self) -> String {
        let Address { host, port, .. } = &self.address;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    fn is_http_alone(&self) -> bool {
        self.connection.is_none() && self.http.is_some() && !self.finds_http
    }

    /// Runs a command and returns its reply as text. `None` if the server does not know it, or does
    /// not let this user run it.
    ///
    /// # Errors
    /// The connection is lost. The next call makes a new one.
    pub(crate) fn text(&mut self, words: &[&str]) -> io::Result<Option<String>> {
        if self.is_http_alone() {
            let body = serde_json::to_string(words).map_err(io::Error::other)?;
            let answer = self.ask("POST", "/v1/command", &body)?;
            let answer: Json = serde_json::from_str(&answer).map_err(io::Error::other)?;
            return Ok(answer["result"].as_str().map(str::to_owned));
        }
        let reply = self.call(words)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(match &reply {
            Value::Bulk(bytes) | Value::Simple(bytes) | Value::Verbatim(_, bytes) => {
                Some(text(bytes))
            }
            _ => None,
        })
    }

    /// Runs a command; errors of the server are replies.
    fn call(&mut self, words: &[&str]) -> io::Result<Value> {
        if self.connection.is_none() {
            self.connection = Some(self.connect()?);
        }
        let Some(connection) = &mut self.connection else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let reply = connection.call(words);
        if reply.is_err() {
            self.connection = None;
        }
        reply
    }

    fn connect(&mut self) -> io::Result<Connection> {
        let Address { host, port, user, password, encryption, .. } = &self.address;
        let endpoint = Endpoint {
            host: host.clone(),
            port: *port,
            password: None,
            encryption: encryption.clone(),
        };
        let mut connection = endpoint.connect(PATIENCE)?;
        if let Some(password) = password {
            let reply = match user {
                Some(user) => connection.call(&["AUTH", user, password])?,
                None => connection.call(&["AUTH", password])?,
            };
            if let Value::Error(text) = reply {
                return Err(io::Error::other(String::from_utf8_lossy(&text).into_owned()));
            }
        }
        if let Value::Error(text) = connection.call(&["PING"])? {
            return Err(io::Error::other(String::from_utf8_lossy(&text).into_owned()));
        }
        // A server that does not let itself be asked is not asked over HTTP.
        if self.finds_http {
            self.http = self.find_http(&mut connection)?;
        }
        Ok(connection)
    }

    /// Where the same server is asked over HTTP, by its settings.
    fn find_http(&self, connection: &mut Connection) -> io::Result<Option<Http>> {
        let mut port = |name: &str| {
            let Value::Array(words) = connection.call(&["CONFIG", "GET", name])? else {
                return Ok(None);
            };
            let port = words.get(1).and_then(Value::as_bytes).unwrap_or_default();
            let port = std::str::from_utf8(port).ok().and_then(|port| port.parse::<u16>().ok());
            io::Result::Ok(port.filter(|port| *port != 0))
        };
        let address = &self.address;
        if let Some(encryption) = &address.encryption {
            let port = port("https-port")?;
            return Ok(port.map(|port| Http::new(address, port, Some(encryption.clone()))));
        }
        Ok(port("http-port")?.map(|port| Http::new(address, port, None)))
    }

    /// A page over HTTP as JSON. `None` where there is no HTTP, or the page is not given.
    pub(crate) fn json(&mut self, path: &str) -> Option<Json> {
        serde_json::from_str(&self.page(path)?).ok()
    }

    /// The same as text.
    pub(crate) fn page(&mut self, path: &str) -> Option<String> {
        self.ask("GET", path, "").ok()
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> io::Result<String> {
        let http = self.http.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        http.ask(method, path, body)
    }
}

impl Http {
    fn new(address: &Address, port: u16, encryption: Option<Encryption>) -> Http {
        let endpoint = Endpoint { host: address.host.clone(), port, password: None, encryption };
        let (user, password) = (address.user.clone(), address.password.clone());
        Http { endpoint, user, password }
    }

    /// Sends a request and reads the answer; only that of a success is returned.
    fn ask(&self, method: &str, path: &str, body: &str) -> io::Result<String> {
        let mut stream = self.endpoint.open_stream(PATIENCE, Vec::new())?;
        let host = match self.endpoint.host.contains(':') {
            true => format!("[{}]", self.endpoint.host),
            false => self.endpoint.host.clone(),
        };
        let mut request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        if let Some(password) = &self.password {
            let user = self.user.as_deref().unwrap_or("default");
            let word = STANDARD.encode(format!("{user}:{password}"));
            request.push_str(&format!("Authorization: Basic {word}\r\n"));
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes())?;
        stream.flush()?;
        let mut bytes = Vec::new();
        stream.take(ANSWER_MAX).read_to_end(&mut bytes)?;
        let answer = String::from_utf8_lossy(&bytes);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).unwrap_or_default();
        if status.starts_with('2') {
            return Ok(body.to_owned());
        }
        let line = head.lines().next().unwrap_or("nothing");
        Err(io::Error::other(format!("HTTP is answered with {line}")))
    }
}
