//! A server, as this tool talks to it: few commands, each of which waits for its reply.
//!
//! A command whose reply is missing may still be under way, and arrive after others that are given
//! over a new connection. So a connection that has failed is never used again, and ended at the
//! server before a new one takes its place.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::thread::sleep;
use std::time::Duration;

use lab::load::Address;
use lab::targets::connection::{Connection, Endpoint, in_words, info_fields};
use resp::client::{Value, encode_command};

use crate::print::say;

/// What a replica goes by when it connects to its primary, and when clients write to it.
pub(crate) const REPLICA_SETTINGS: [&str; 4] =
    ["masterauth", "masteruser", "tls-replication", "replica-read-only"];
/// What `--after paused` leaves, and what a promotion needs so that no write gets in between. It is
/// long because a write would be lost that the old server takes after the promotion. If nobody ends
/// it, since this tool was killed there, the next one does ([`crate::resume`]).
pub(crate) const LONG_PAUSE: Duration = Duration::from_secs(3600);
/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a write may take where writes are not held.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);
/// The pause between two looks at a server that loads, or at others of this tool.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// How often others are looked for before they are in the way: longer than one that begins looks.
const LOOKS_FOR_OTHERS: usize = 20;
/// How the names of this tool's connections begin while it moves data, by which others see that it
/// is at work.
pub(crate) const NAME: &str = "dunlin-move";
/// What a primary sends to its replicas in an hour without writes is far less than this.
const MOST_IDLE_BYTES: i64 = 64 * 1024;
/// A key that nobody has.
pub(crate) const PROBE_KEY: &str = "dunlin-move:f3b1c6f0-7f0e-4c5c-9d5a-0d9f2c1e8a47";
/// Asks whether a server knows times of fields, and of no key that may be there with another type.
pub(crate) const ASKS_FOR_TIMES: [&str; 5] = ["HPEXPIRETIME", PROBE_KEY, "FIELDS", "1", "field"];

/// See the module's text.
pub(crate) struct Server {
    /// What it is to the user.
    part: &'static str,
    pub(crate) address: Address,
    /// None after a failure: the next reply could be one that comes late.
    connection: Option<Connection>,
    /// What CLIENT KILL ends the connection by.
    identity: Option<Identity>,
    /// By which others of this tool see it.
    name: Option<String>,
    /// Whether its writes may be paused, and by this tool.
    has_paused: bool,
}

/// How often clients have begun pauses of a server, and ended some. While both stay the same, a
/// pause is the one that it was: servers have no names for them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pauses([u64; 2]);

/// A connection, as the server calls it. Numbers begin anew when a server does.
struct Identity {
    id: String,
    address: String,
}

/// What becomes of a write.
pub(crate) enum Writes {
    Taken,
    /// Who writes has to wait.
    Waiting,
    /// The server answers with this error, and would whether it holds writes or not.
    Unknown(String),
}

/// The words of a command.
pub(crate) type Command = Vec<Vec<u8>>;

/// The fields of INFO.
pub(crate) type Info = BTreeMap<String, String>;

impl Server {
    pub(crate) fn open(part: &'static str, address: &Address) -> Result<Server, String> {
        let mut server = Server::connect(part, address, PATIENCE)?;
        server.call(&["PING"])?;
        server.identity = server.identify()?;
        Ok(server)
    }

    /// Opens a connection on which no command may take longer than that.
    fn connect(
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
        let mut server = Server {
            part,
            address: address.clone(),
            connection: Some(connection),
            identity: None,
            name: None,
            has_paused: false,
        };
        if let Some(password) = password {
            match user {
                Some(user) => server.call(&["AUTH", user, password])?,
                None => server.call(&["AUTH", password])?,
            };
        }
        Ok(server)
    }

    /// Who this connection is to the server; nothing where that is not told, which the check says.
    fn identify(&mut self) -> Result<Option<Identity>, String> {
        let reply = self.talk(|connection| connection.call(&["CLIENT", "INFO"]))?;
        let line = text(&reply);
        let field = |name| field(&line, name).map(str::to_owned);
        let (id, address) = (field("id="), field("addr="));
        Ok(id.zip(address).map(|(id, address)| Identity { id, address }))
    }

    /// Takes a new connection, and ends the one so far: what is under way on it never arrives.
    /// Others of this tool see one of both all the time. All this a server does while it loads.
    pub(crate) fn renew(&mut self) -> Result<(), String> {
        let mut other = Server::connect(self.part, &self.address, PATIENCE)?;
        other.identity = other.identify()?;
        if let Some(name) = &self.name {
            other.take_name(name)?;
        }
        if let Some(Identity { id, address }) = &self.identity {
            other.call(&["CLIENT", "KILL", "ID", id, "ADDR", address])?;
        }
        other.has_paused = self.has_paused;
        *self = other;
        Ok(())
    }

    /// The same, unless the server takes no new connection and the one so far is good.
    pub(crate) fn renew_if_it_can(&mut self) -> Result<(), String> {
        self.renew().or_else(|problem| match self.connection {
            Some(_) => Ok(()),
            None => Err(problem),
        })
    }

    /// Waits while it loads its data, and refuses what changes its part.
    pub(crate) fn wait_until_loaded(&mut self) -> Result<(), String> {
        let mut is_told = false;
        while number(&self.info("persistence")?, "loading") == 1 {
            if !is_told {
                say(&format!("{} loads its data: waiting for the end of that", self.part));
                is_told = true;
            }
            sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    pub(crate) fn name(&self) -> String {
        let Address { host, port, .. } = &self.address;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Runs a command. An error of the server is one of this call, too.
    pub(crate) fn call<A: AsRef<[u8]>>(&mut self, words: &[A]) -> Result<Value, String> {
        match self.talk(|connection| connection.call(words))? {
            Value::Error(text) => {
                let text = String::from_utf8_lossy(&text);
                let name = String::from_utf8_lossy(words[0].as_ref());
                Err(format!("{} answers to {name}: {text}", self.part))
            }
            value => Ok(value),
        }
    }

    /// Uses the connection, for the last time if that fails.
    fn talk<R>(
        &mut self,
        over: impl FnOnce(&mut Connection) -> std::io::Result<R>,
    ) -> Result<R, String> {
        let problem = match self.connection.as_mut().map(over) {
            Some(Ok(result)) => return Ok(result),
            Some(Err(error)) if is_timeout(&error) => "it does not answer".to_owned(),
            Some(Err(error)) => error.to_string(),
            None => "the connection is lost".to_owned(),
        };
        self.connection = None;
        Err(format!("{}, {}: {problem}", self.part, self.name()))
    }

    /// Runs commands together, and returns their replies, errors too.
    pub(crate) fn call_all(&mut self, commands: &[Command]) -> Result<Vec<Value>, String> {
        self.send_all(commands)?;
        self.receive_all(commands.len())
    }

    fn send_all(&mut self, commands: &[Command]) -> Result<(), String> {
        self.talk(|connection| connection.send(commands.iter().map(Vec::as_slice)))
    }

    fn receive_all(&mut self, count: usize) -> Result<Vec<Value>, String> {
        self.talk(|connection| (0..count).map(|_| connection.receive()).collect())
    }

    /// Lets clients that write wait, for so long, or longer if they are to do so anyway.
    pub(crate) fn pause_writes(&mut self, length: Duration) -> Result<(), String> {
        // It may be so although the reply is lost.
        self.has_paused = true;
        self.call(&["CLIENT", "PAUSE", &length.as_millis().to_string(), "WRITE"]).map(drop)
    }

    /// Lets them go on.
    pub(crate) fn let_write(&mut self) -> Result<(), String> {
        self.has_paused = true;
        self.call(&["CLIENT", "UNPAUSE"])?;
        self.has_paused = false;
        Ok(())
    }

    /// Whether its writes may be paused, and by this tool.
    pub(crate) fn has_paused(&self) -> bool {
        self.has_paused
    }

    /// How often clients have begun and ended pauses of it.
    pub(crate) fn pauses(&mut self) -> Result<Pauses, String> {
        let mut stats = self.info("commandstats")?;
        let calls = ["pause", "unpause"].map(|name| {
            let line = stats.remove(&format!("cmdstat_client|{name}"))?;
            line.split(',').find_map(|field| field.strip_prefix("calls=")?.parse().ok())
        });
        Ok(Pauses(calls.map(Option::unwrap_or_default)))
    }

    /// How long its writes are still paused, where it tells that, as Valkey does.
    pub(crate) fn length_of_pause(&mut self) -> Result<Option<Duration>, String> {
        let left = self.info("clients")?.remove("paused_timeout_milliseconds");
        Ok(left.and_then(|left| left.parse().ok()).map(Duration::from_millis))
    }

    /// Whether clients that write have to wait. Asked by a write that changes nothing.
    pub(crate) fn writes(&mut self) -> Result<Writes, String> {
        // A server that is slow answers the second time, or not to PING either. One that stands
        // still for a moment may do so before it is asked.
        let mut problem = None;
        for _ in 0..2 {
            match self.probe() {
                Ok(Some(writes)) => return Ok(writes),
                Ok(None) => {}
                Err(other) => problem = Some(other),
            }
            self.call(&["PING"])?;
        }
        problem.map_or(Ok(Writes::Waiting), Err)
    }

    /// The same; nothing where the write is not answered in time.
    fn probe(&self) -> Result<Option<Writes>, String> {
        let mut probe = Server::connect(self.part, &self.address, PROBE_PATIENCE)?;
        let Some(connection) = &mut probe.connection else { return Ok(None) };
        match connection.call(&["UNLINK", PROBE_KEY]) {
            Ok(Value::Integer(_)) => Ok(Some(Writes::Taken)),
            // Servers refuse a write for other reasons before they would hold it.
            Ok(refused) => Ok(Some(Writes::Unknown(in_words(&refused)))),
            Err(error) if is_timeout(&error) => Ok(None),
            Err(error) => Err(format!("{}: {error}", self.part)),
        }
    }

    /// Whether so many bytes of its stream, from this offset on, change nothing: a primary that has
    /// replicas asks them now and then whether they are there, also while writes are held.
    pub(crate) fn is_idle(
        &mut self,
        history: &str,
        from: i64,
        length: i64,
    ) -> Result<bool, String> {
        let state = self.info("replication")?;
        let is_kept = number(&state, "repl_backlog_active") == 1
            && number(&state, "repl_backlog_first_byte_offset") <= from;
        // It would begin to give all its data otherwise.
        if !is_kept || !(0..=MOST_IDLE_BYTES).contains(&length) {
            return Ok(false);
        }
        let mut link = Server::connect(self.part, &self.address, PATIENCE)?;
        let reply = link.call(&["PSYNC", history, &from.to_string()]);
        let goes_on = |text: &[u8]| text.starts_with(b"CONTINUE");
        if !matches!(reply, Ok(Value::Simple(text)) if goes_on(&text)) {
            return Ok(false);
        }
        let mut left = length;
        while left > 0 {
            let received = link.talk(Connection::receive);
            let Ok(Value::Array(words)) = received else { return Ok(false) };
            let words: Vec<&[u8]> = words.iter().filter_map(Value::as_bytes).collect();
            let asks = |name: &&[u8]| {
                name.eq_ignore_ascii_case(b"PING") || name.eq_ignore_ascii_case(b"REPLCONF")
            };
            if !words.first().is_some_and(asks) {
                return Ok(false);
            }
            let mut encoded = Vec::new();
            encode_command(words.iter(), &mut encoded);
            left -= encoded.len() as i64;
        }
        Ok(left == 0)
    }

    /// Others of this tool see it by this name from now on. Who cannot be told from others could
    /// not be ended either.
    pub(crate) fn take_name(&mut self, name: &str) -> Result<(), String> {
        if self.identity.is_none() {
            return Err(format!("{} does not answer to CLIENT INFO", self.part));
        }
        self.call(&["CLIENT", "SETNAME", name])?;
        self.name = Some(name.to_owned());
        Ok(())
    }

    /// The addresses of others of this tool that are moving data from or to this server.
    pub(crate) fn others(&mut self) -> Result<Vec<String>, String> {
        let own = self.name.clone();
        self.clients(|name| name.starts_with(NAME) && Some(name) != own.as_deref())
    }

    /// Fails where another of this tool is at work, which has not seen this one while its
    /// connection was lost. One that sees it now ends soon.
    pub(crate) fn check_alone(&mut self) -> Result<(), String> {
        for _ in 0..LOOKS_FOR_OTHERS {
            if self.others()?.is_empty() {
                return Ok(());
            }
            sleep(BETWEEN_LOOKS);
        }
        Err(format!("another 'dunlin move' is at work at {}", self.part))
    }

    /// The addresses of Sentinels that watch this server.
    pub(crate) fn sentinels(&mut self) -> Result<Vec<String>, String> {
        self.clients(|name| name.starts_with("sentinel-") && name.ends_with("-cmd"))
    }

    /// The addresses of clients with such names.
    fn clients(&mut self, is_meant: impl Fn(&str) -> bool) -> Result<Vec<String>, String> {
        let list = text(&self.call(&["CLIENT", "LIST"])?);
        let meant = list.lines().filter(|line| field(line, "name=").is_some_and(&is_meant));
        Ok(meant.filter_map(|line| field(line, "addr=").map(str::to_owned)).collect())
    }

    /// Whether it says what this tool's user may do.
    pub(crate) fn tells_rights(&mut self) -> bool {
        let Ok(user) = self.call(&["ACL", "WHOAMI"]) else { return false };
        self.call(&["ACL", "DRYRUN", &text(&user), "PING"]).is_ok()
    }

    /// Whether it has a command of this name, as far as it tells.
    pub(crate) fn knows(&mut self, name: &str) -> bool {
        match self.call(&["COMMAND", "INFO", name]) {
            Ok(Value::Array(known)) => !matches!(known[..], [Value::Null | Value::NullArray]),
            _ => true,
        }
    }

    /// Why it would not run this command for this tool's user, as far as it tells.
    pub(crate) fn refuses(&mut self, words: &[&str]) -> Option<String> {
        if !self.knows(words[0]) {
            return Some("it has no such command, or under another name".to_owned());
        }
        let user = text(&self.call(&["ACL", "WHOAMI"]).ok()?);
        let verdict = self.call(&[&["ACL", "DRYRUN", user.as_str()][..], words].concat()).ok()?;
        match verdict {
            Value::Bulk(reason) => Some(String::from_utf8_lossy(&reason).into_owned()),
            _ => None,
        }
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

    /// What it has of [`REPLICA_SETTINGS`], as far as it tells. A password may be no text.
    pub(crate) fn replica_settings(&mut self) -> [Option<Vec<u8>>; 4] {
        REPLICA_SETTINGS.map(|name| match self.call(&["CONFIG", "GET", name]) {
            Ok(Value::Array(pair)) => pair.get(1).and_then(Value::as_bytes).map(<[u8]>::to_vec),
            _ => None,
        })
    }

    /// Gives it the settings of a replica, which refuses writes, of a server that needs these
    /// credentials.
    pub(crate) fn prepare_to_follow(&mut self, address: &Address) -> Result<(), String> {
        // The link is encrypted if this tool's own connections to that server are. A password that
        // is of another time is in the way as much as one that is missing.
        let encrypted = if address.encryption.is_some() { "yes" } else { "no" };
        let present = self.replica_settings();
        let wanted = [
            address.password.as_deref().unwrap_or(""),
            address.user.as_deref().unwrap_or(""),
            encrypted,
            "yes",
        ];
        for ((name, present), wanted) in REPLICA_SETTINGS.iter().zip(present).zip(wanted) {
            let is_so = match present {
                Some(present) => present == wanted.as_bytes(),
                // It cannot be asked, or knows no TLS.
                None => wanted.is_empty() || *name == "tls-replication",
            };
            if !is_so {
                self.call(&["CONFIG", "SET", name, wanted])?;
            }
        }
        Ok(())
    }

    /// Makes it a replica of the server at this place.
    pub(crate) fn replicate(&mut self, (host, port): &(String, u16)) -> Result<(), String> {
        self.call(&["REPLICAOF", host, &port.to_string()]).map(drop)
    }

    /// Lets it refuse writes while it is a replica. It would take them otherwise, and lose them
    /// with its next copy.
    pub(crate) fn refuse_writes(&mut self) -> Result<(), String> {
        // Nobody knows what one has that does not show it.
        if self.setting("replica-read-only") == "yes" {
            return Ok(());
        }
        self.call(&["CONFIG", "SET", "replica-read-only", "yes"]).map(drop)
    }

    /// How many keys each database has.
    pub(crate) fn sizes(&mut self) -> Result<BTreeMap<usize, u64>, String> {
        self.counts("keys=")
    }

    /// How many hashes have fields that expire.
    pub(crate) fn timed_hashes(&mut self) -> Result<u64, String> {
        // What Redis and Valkey call them.
        let names = ["subexpiry=", "keys_with_volatile_items="];
        names.iter().map(|name| Ok(self.counts(name)?.values().sum::<u64>())).sum()
    }

    /// What the line of each database says under this name, if it is more than nothing.
    fn counts(&mut self, name: &str) -> Result<BTreeMap<usize, u64>, String> {
        let info = self.info("keyspace")?;
        let of = |(database, value): (&String, &String)| {
            let number = database.strip_prefix("db")?.parse().ok()?;
            let count = value.split(',').find_map(|part| part.strip_prefix(name))?;
            Some((number, count.parse().ok()?))
        };
        Ok(info.iter().filter_map(of).filter(|(_, count)| *count > 0).collect())
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
    let count = commands.len();
    let sent = one.send_all(commands).and_then(|()| other.send_all(commands));
    let replies = sent.and_then(|()| Ok((one.receive_all(count)?, other.receive_all(count)?)));
    if replies.is_err() {
        // What the other one still answers would be taken for the reply to something else.
        (one.connection, other.connection) = (None, None);
    }
    replies
}

/// A field of a line of CLIENT LIST, by how it begins.
fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    line.split(' ').find_map(|field| field.strip_prefix(name))
}

/// Whether a replica follows its primary, by its INFO.
pub(crate) fn is_up(replica: &Info) -> bool {
    replica.get("master_link_status").is_some_and(|status| status == "up")
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
