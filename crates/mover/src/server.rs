//! A server, as this tool talks to it: few commands, each of which waits for its reply.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

use lab::load::Address;
use lab::targets::connection::{Connection, Endpoint, in_words, info_fields};
use resp::client::Value;

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a write may take where writes are not held.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);
/// A key that nobody has.
const PROBE_KEY: &str = "dunlin-move:f3b1c6f0-7f0e-4c5c-9d5a-0d9f2c1e8a47";

/// See the module's text.
pub(crate) struct Server {
    /// What it is to the user.
    part: &'static str,
    pub(crate) address: Address,
    connection: Connection,
}

/// The words of a command.
pub(crate) type Command = Vec<Vec<u8>>;

/// The fields of INFO.
pub(crate) type Info = BTreeMap<String, String>;

impl Server {
    pub(crate) fn open(part: &'static str, address: &Address) -> Result<Server, String> {
        Server::open_for(part, address, PATIENCE)
    }

    /// Opens a connection on which no command may take longer than that.
    fn open_for(
        part: &'static str,
        address: &Address,
        patience: Duration,
    ) -> Result<Server, String> {
        let Address { host, port, user, password, encryption, .. } = address;
        let failed = |problem: String| format!("{part} at {host}:{port}: {problem}");
        let endpoint = Endpoint {
            host: host.clone(),
            port: *port,
            password: None,
            encryption: encryption.clone(),
        };
        let connection = endpoint.connect(patience).map_err(|error| failed(error.to_string()))?;
        let mut server = Server { part, address: address.clone(), connection };
        if let Some(password) = password {
            match user {
                Some(user) => server.call(&["AUTH", user, password])?,
                None => server.call(&["AUTH", password])?,
            };
        }
        server.call(&["PING"])?;
        Ok(server)
    }

    /// Connects anew.
    pub(crate) fn again(&self) -> Result<Server, String> {
        Server::open(self.part, &self.address)
    }

    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.address.host, self.address.port)
    }

    /// Runs a command. An error of the server is one of this call, too.
    pub(crate) fn call(&mut self, words: &[&str]) -> Result<Value, String> {
        match self.connection.call(words) {
            Ok(Value::Error(text)) => {
                let text = String::from_utf8_lossy(&text);
                Err(format!("{} answers to {}: {text}", self.part, words[0]))
            }
            Ok(value) => Ok(value),
            Err(error) => Err(format!("{}, {}: {error}", self.part, self.name())),
        }
    }

    /// Runs commands together, and returns their replies, errors too.
    pub(crate) fn call_all(&mut self, commands: &[Command]) -> Result<Vec<Value>, String> {
        self.send_all(commands)?;
        self.receive_all(commands.len())
    }

    fn send_all(&mut self, commands: &[Command]) -> Result<(), String> {
        let sent = self.connection.send(commands.iter().map(Vec::as_slice));
        sent.map_err(|error| format!("{}: {error}", self.part))
    }

    fn receive_all(&mut self, count: usize) -> Result<Vec<Value>, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.part);
        (0..count).map(|_| self.connection.receive().map_err(failed)).collect()
    }

    /// Whether clients that write have to wait. Asked by a write that changes nothing.
    pub(crate) fn holds_writes(&mut self) -> Result<bool, String> {
        // A server that is slow answers the second time, or not to PING either.
        for _ in 0..2 {
            let mut probe = Server::open_for(self.part, &self.address, PROBE_PATIENCE)?;
            match probe.connection.call(&["UNLINK", PROBE_KEY]) {
                Ok(_) => return Ok(false),
                Err(error) if is_timeout(&error) => self.call(&["PING"]).map(drop)?,
                Err(error) => return Err(format!("{}: {error}", self.part)),
            }
        }
        Ok(true)
    }

    /// Sections of INFO.
    pub(crate) fn info(&mut self, section: &str) -> Result<Info, String> {
        let page = match self.call(&["INFO", section])? {
            Value::Bulk(text) | Value::Verbatim(_, text) => text,
            other => return Err(format!("{}: INFO is {}", self.part, in_words(&other))),
        };
        let page = String::from_utf8_lossy(&page);
        Ok(info_fields(&page)
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect())
    }

    /// The product and its version.
    pub(crate) fn product(&mut self) -> Result<String, String> {
        let info = self.info("server")?;
        for (field, name) in
            [("dunlin_version", "Dunlin"), ("valkey_version", "Valkey"), ("redis_version", "Redis")]
        {
            if let Some(version) = info.get(field) {
                return Ok(format!("{name} {version}"));
            }
        }
        Err(format!("{} is none that this tool knows", self.part))
    }

    /// Settings by a pattern; none where the server does not tell.
    pub(crate) fn settings(&mut self, pattern: &str) -> BTreeMap<String, String> {
        let Ok(Value::Array(words)) = self.call(&["CONFIG", "GET", pattern]) else {
            return BTreeMap::new();
        };
        let texts: Vec<String> = words.iter().map(text).collect();
        let pairs = texts.chunks_exact(2);
        pairs.map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    }

    pub(crate) fn setting(&mut self, name: &str) -> String {
        self.settings(name).remove(name).unwrap_or_default()
    }

    /// Makes it a replica of a server with this address, which needs these credentials.
    pub(crate) fn follow(
        &mut self,
        (host, port): &(String, u16),
        address: &Address,
    ) -> Result<(), String> {
        if let Some(password) = &address.password {
            self.call(&["CONFIG", "SET", "masterauth", password])?;
        }
        if let Some(user) = &address.user {
            self.call(&["CONFIG", "SET", "masteruser", user])?;
        }
        // The link is encrypted if this tool's own connections to that server are.
        let encrypted = if address.encryption.is_some() { "yes" } else { "no" };
        let present = self.setting("tls-replication");
        if !present.is_empty() && present != encrypted {
            self.call(&["CONFIG", "SET", "tls-replication", encrypted])?;
        }
        self.call(&["REPLICAOF", host, &port.to_string()]).map(drop)
    }

    /// How many keys each database has.
    pub(crate) fn sizes(&mut self) -> Result<BTreeMap<usize, u64>, String> {
        let info = self.info("keyspace")?;
        let of = |(name, value): (&String, &String)| {
            let number = name.strip_prefix("db")?.parse().ok()?;
            let keys = value.split(',').find_map(|part| part.strip_prefix("keys="))?;
            Some((number, keys.parse().ok()?))
        };
        Ok(info.iter().filter_map(of).filter(|(_, keys)| *keys > 0).collect())
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Runs the same commands at two servers at the same time.
pub(crate) fn call_both(
    one: &mut Server,
    other: &mut Server,
    commands: &[Command],
) -> Result<(Vec<Value>, Vec<Value>), String> {
    one.send_all(commands)?;
    other.send_all(commands)?;
    Ok((one.receive_all(commands.len())?, other.receive_all(commands.len())?))
}

/// A field of INFO as a number; 0 if there is none.
pub(crate) fn number(info: &Info, field: &str) -> i64 {
    info.get(field).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A reply as text.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Bulk(text) | Value::Simple(text) => String::from_utf8_lossy(text).into_owned(),
        other => in_words(other),
    }
}
