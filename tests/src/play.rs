//! Plays one section of a transcript against a running server.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::client::{Client, PATIENCE, Received, Reply};
use crate::notation;
use crate::quoting::{command_line, quote};
use crate::server::{Server, Target, settings};
use crate::transcript::{Action, Expectation, Protocol, Section, Step};

/// What happens to a reply before it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Sorts the elements of every array of like elements, of sets and of maps.
    Unordered,
    /// Sorts flat arrays two by two, as fields and values, and maps.
    Pairs,
    /// Keeps the number of elements.
    Count,
    /// Keeps the length of a text.
    Length,
    /// Keeps the keys of a map or of a flat array of keys and values.
    Keys,
    /// Keeps the field names of a text such as INFO's or CLIENT LIST's.
    Fields,
    /// Keeps the value of one field of such a text.
    Field(String),
    /// Keeps the reply for later commands of the section, which refer to it as `$(name)`.
    Keep(String),
    /// Follows the cursor of a SCAN to its end; keeps all elements, sorted, each once.
    Walk,
    /// Repeats the command until it replies as expected.
    Eventually,
}

impl Filter {
    /// The filter with the name `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self> {
        Ok(match name {
            "unordered" => Filter::Unordered,
            "pairs" => Filter::Pairs,
            "count" => Filter::Count,
            "length" => Filter::Length,
            "keys" => Filter::Keys,
            "fields" => Filter::Fields,
            "walk" => Filter::Walk,
            "eventually" => Filter::Eventually,
            _ => match name.split_once('=') {
                Some(("field", field)) => Filter::Field(field.to_owned()),
                Some(("keep", variable)) => Filter::Keep(variable.to_owned()),
                _ => bail!("no filter is called {name}"),
            },
        })
    }

    fn apply(&self, reply: Reply) -> Reply {
        let bulk = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
        match self {
            Filter::Unordered => sorted(reply, 1),
            Filter::Pairs => sorted(reply, 2),
            Filter::Count => match reply.clone().elements() {
                Some(elements) => Reply::Integer(elements.len().try_into().unwrap_or(i64::MAX)),
                None => reply,
            },
            Filter::Length => match reply.text() {
                Some(text) if !reply.is_error() => {
                    Reply::Integer(text.len().try_into().unwrap_or(i64::MAX))
                }
                _ => reply,
            },
            Filter::Keys => match reply.clone().elements() {
                Some(elements) => Reply::Array(elements.into_iter().step_by(2).collect()),
                None => reply,
            },
            Filter::Fields => match fields(&reply) {
                Some(fields) => Reply::Array(fields.iter().map(|(name, _)| bulk(name)).collect()),
                None => reply,
            },
            Filter::Field(wanted) => match fields(&reply) {
                Some(fields) => {
                    let field = fields.iter().find(|(name, _)| name == wanted);
                    field.map_or(Reply::Nil, |(_, value)| bulk(value))
                }
                None => reply,
            },
            Filter::Keep(_) | Filter::Walk | Filter::Eventually => reply,
        }
    }
}

/// Names and values of `name:value` lines, or of `name=value` words.
fn fields(reply: &Reply) -> Option<Vec<(String, String)>> {
    let text = match reply {
        Reply::Bulk(text) | Reply::Verbatim(_, text) => String::from_utf8_lossy(text).into_owned(),
        _ => return None,
    };
    let is_info = text.starts_with('#');
    let (parts, mark): (Vec<_>, _) = if is_info {
        (text.lines().collect(), ':')
    } else {
        (text.split([' ', '\n']).collect(), '=')
    };
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    let named = parts.map(|part| part.split_once(mark).unwrap_or((part, "")));
    Some(named.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Sorts whatever has no order of its own, `group` elements of an array staying together.
#[must_use]
pub fn sorted(reply: Reply, group: usize) -> Reply {
    let by_text = |reply: &Reply| notation::lines(reply);
    match reply {
        Reply::Array(elements) => {
            let elements: Vec<_> = elements.into_iter().map(|it| sorted(it, group)).collect();
            // Missing values are among elements of any kind.
            let kinds = elements.iter().filter(|it| !matches!(it, Reply::Nil | Reply::NilArray));
            let kinds: Vec<_> = kinds.map(discriminant).collect();
            let alike = kinds.windows(2).all(|it| it[0] == it[1]);
            if !alike || elements.len() % group != 0 {
                return Reply::Array(elements);
            }
            let mut groups: Vec<_> = elements.chunks(group).collect();
            groups.sort_by_key(|group| group.iter().map(by_text).collect::<Vec<_>>());
            Reply::Array(groups.concat())
        }
        Reply::Set(elements) => {
            let mut elements: Vec<_> = elements.into_iter().map(|it| sorted(it, group)).collect();
            elements.sort_by_key(by_text);
            Reply::Set(elements)
        }
        Reply::Map(pairs) => {
            let mut pairs: Vec<_> =
                pairs.into_iter().map(|(key, value)| (key, sorted(value, group))).collect();
            pairs.sort_by_key(|(key, value)| (by_text(key), by_text(value)));
            Reply::Map(pairs)
        }
        other => other,
    }
}

/// Plays sections against one server, and restores its first state in between.
#[derive(Debug)]
pub struct Player {
    server: Server,
    control: Client,
    pristine: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Player {
    /// Starts a server to play against.
    ///
    /// # Errors
    /// The server does not start, or does not tell its settings.
    pub fn start(target: Target, options: &[(String, String)]) -> Result<Self> {
        let options: Vec<_> =
            options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let server = Server::start(target, &options)?;
        let mut control = server.connect()?;
        let pristine = settings(&mut control)?;
        Ok(Self { server, control, pristine })
    }

    /// The last lines of the server's log, if the process has ended.
    pub fn obituary(&mut self) -> Option<String> {
        // A process that just crashed may need a moment to be gone.
        sleep(Duration::from_millis(20));
        if self.server.is_running() { None } else { Some(self.server.log_tail()) }
    }

    /// Plays a section and hands each step with its printed reply to `observe`, which says whether
    /// to go on. After an error the server is in an unknown state: drop the player.
    ///
    /// # Errors
    /// What `observe` returns, and whatever keeps a step from having a reply.
    pub fn play(
        &mut self,
        section: &Section,
        protocol: Protocol,
        mut observe: impl FnMut(usize, &Step, Vec<String>) -> Result<()>,
    ) -> Result<()> {
        self.reset()?;
        let mut state = SectionState {
            player: self,
            protocol,
            connections: BTreeMap::new(),
            blocked: Vec::new(),
            kept: BTreeMap::new(),
            configured: false,
        };
        for (index, step) in section.steps.iter().enumerate() {
            let at = || format!("line {}: {}", step.line + 1, shown(&step.action));
            let lines = state.perform(step).with_context(at)?;
            observe(index, step, lines).with_context(at)?;
        }
        let configured = state.configured;
        drop(state);
        if configured {
            self.restore_settings()?;
        }
        if section.steps.iter().any(|step| changes_users(&step.action)) {
            self.restore_users()?;
        }
        Ok(())
    }

    /// Deletes all users but the default one, which may do everything again.
    fn restore_users(&mut self) -> Result<()> {
        let users = self.control.call(&["ACL", "USERS"])?.elements().unwrap_or_default();
        for user in users.iter().filter_map(Reply::text).filter(|user| *user != b"default") {
            self.control.call(&[&b"ACL"[..], b"DELUSER", user])?;
        }
        let open = "ACL SETUSER default reset on nopass ~* &* +@all";
        let reply = self.control.call_text(open)?;
        if reply.is_error() {
            bail!("{open} answers {reply:?}");
        }
        self.control.call(&["ACL", "LOG", "RESET"])?;
        Ok(())
    }

    /// Empties the server and waits until the connections of the last section are gone.
    fn reset(&mut self) -> Result<()> {
        self.wait_for_info("connected_clients", 1)?;
        let reply = self.control.call(&["FLUSHALL"])?;
        if reply != Reply::Status(b"OK".to_vec()) {
            bail!("FLUSHALL answers {reply:?}");
        }
        Ok(())
    }

    /// Restores each setting that differs from its value at the start.
    fn restore_settings(&mut self) -> Result<()> {
        let now = settings(&mut self.control)?;
        for ((name, was), (_, is)) in self.pristine.iter().zip(&now) {
            if was != is {
                let words: [&[u8]; 4] = [b"CONFIG", b"SET", name, was];
                let reply = self.control.call(&words)?;
                if reply.is_error() {
                    bail!("{} answers {reply:?}", command_line(&words.map(<[u8]>::to_vec)));
                }
            }
        }
        Ok(())
    }

    /// Waits until a number of `INFO clients` is `wanted`.
    fn wait_for_info(&mut self, field: &str, wanted: usize) -> Result<()> {
        let start = Instant::now();
        loop {
            let reply = self.control.call(&["INFO", "clients"])?;
            let value = Filter::Field(field.to_owned()).apply(reply);
            if value == Reply::Bulk(wanted.to_string().into_bytes()) {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                bail!("{field} of INFO clients should become {wanted}, but is {value:?}");
            }
            sleep(Duration::from_micros(200));
        }
    }
}

/// Whether a step may change users.
fn changes_users(action: &Action) -> bool {
    let Action::Command { words, .. } = action else { return false };
    words.first().is_some_and(|name| name.eq_ignore_ascii_case(b"acl"))
}

fn shown(action: &Action) -> String {
    let of =
        |connection: &u8| if *connection == 1 { String::new() } else { connection.to_string() };
    match action {
        Action::Command { connection, words, .. } => {
            let mut line = format!("{}> {}", of(connection), command_line(words));
            if line.len() > 400 {
                line.truncate(400);
                line.push_str(" ...");
            }
            line
        }
        Action::Receive { connection, .. } => format!("{}<", of(connection)),
        Action::Raw { connection, .. } => format!("{}>> ...", of(connection)),
        Action::Config { name, value } => format!("config set {name} {value}"),
        Action::Sleep(milliseconds) => format!("sleep {milliseconds}"),
        Action::Close(connection) => format!("close {connection}"),
    }
}

/// The state of one section while it is played.
struct SectionState<'a> {
    player: &'a mut Player,
    protocol: Protocol,
    connections: BTreeMap<u8, Client>,
    /// Connections that wait in a blocking command.
    blocked: Vec<u8>,
    /// Replies that later commands take up.
    kept: BTreeMap<String, Vec<u8>>,
    /// Whether some setting may have been changed.
    configured: bool,
}

impl SectionState<'_> {
    /// Executes a step; returns the printed reply.
    fn perform(&mut self, step: &Step) -> Result<Vec<String>> {
        match &step.action {
            Action::Command { connection, filters, words } => {
                let words = &words.iter().map(|word| self.filled(word)).collect::<Vec<_>>();
                self.configured |=
                    words.first().is_some_and(|word| word.eq_ignore_ascii_case(b"config"));
                if filters.contains(&Filter::Walk) {
                    self.walk(*connection, words)
                } else if filters.contains(&Filter::Eventually) {
                    self.repeat(*connection, words, filters, &step.expected)
                } else {
                    self.command(*connection, words, filters, &step.expected)
                }
            }
            Action::Receive { connection, filters } => {
                self.blocked.retain(|blocked| blocked != connection);
                self.receive(*connection, filters)
            }
            Action::Raw { connection, bytes } => self.raw(*connection, bytes, &step.expected),
            Action::Config { name, value } => {
                self.configured = true;
                let reply = self.player.control.call(&["CONFIG", "SET", name, value])?;
                if reply.is_error() {
                    bail!("{}", notation::lines(&reply).join("\n"));
                }
                Ok(Vec::new())
            }
            Action::Sleep(milliseconds) => {
                sleep(Duration::from_millis(*milliseconds));
                Ok(Vec::new())
            }
            Action::Close(connection) => {
                self.blocked.retain(|blocked| blocked != connection);
                self.connections.remove(connection);
                Ok(Vec::new())
            }
        }
    }

    fn command(
        &mut self,
        connection: u8,
        words: &[Vec<u8>],
        filters: &[Filter],
        expected: &Expectation,
    ) -> Result<Vec<String>> {
        self.connection(connection)?.send(words)?;
        if expected.is_mark("(no reply)") {
            return Ok(expected.common.clone());
        }
        if expected.is_mark("(blocked)") {
            self.blocked.push(connection);
            return match self.player.wait_for_info("blocked_clients", self.blocked.len()) {
                Ok(()) => Ok(expected.common.clone()),
                // Not blocked: what did it answer instead?
                Err(error) => match self.connection(connection)?.has_input(Duration::ZERO) {
                    Ok(true) => self.receive(connection, filters),
                    _ => Err(error),
                },
            };
        }
        self.receive(connection, filters)
    }

    fn repeat(
        &mut self,
        connection: u8,
        words: &[Vec<u8>],
        filters: &[Filter],
        expected: &Expectation,
    ) -> Result<Vec<String>> {
        let start = Instant::now();
        loop {
            let lines = self.command(connection, words, filters, expected)?;
            if expected.accepts(self.protocol, &lines) || start.elapsed() > PATIENCE {
                return Ok(lines);
            }
            sleep(Duration::from_millis(1));
        }
    }

    /// Calls a command of the SCAN family with each cursor it returns.
    fn walk(&mut self, connection: u8, words: &[Vec<u8>]) -> Result<Vec<String>> {
        const MOST_TURNS: usize = 1_000_000;
        let mut words = words.to_vec();
        let at = if words[0].eq_ignore_ascii_case(b"scan") { 1 } else { 2 };
        let mut found = BTreeSet::new();
        for _ in 0..MOST_TURNS {
            let reply = self.connection(connection)?.call(&words)?;
            let Reply::Array(parts) = &reply else { return Ok(notation::lines(&reply)) };
            let [Reply::Bulk(cursor), Reply::Array(elements)] = parts.as_slice() else {
                return Ok(notation::lines(&reply));
            };
            found.extend(elements.iter().filter_map(|it| it.text().map(<[u8]>::to_vec)));
            words[at].clone_from(cursor);
            if cursor == b"0" {
                let found = found.into_iter().map(Reply::Bulk).collect();
                return Ok(notation::lines(&Reply::Array(found)));
            }
        }
        bail!("the cursor never comes back to 0")
    }

    fn receive(&mut self, connection: u8, filters: &[Filter]) -> Result<Vec<String>> {
        match self.connection(connection)?.receive()? {
            Received::Closed => Ok(vec!["(closed)".to_owned()]),
            Received::Reply(reply) => {
                let reply = filters.iter().fold(reply, |reply, filter| filter.apply(reply));
                let name = filters.iter().find_map(|filter| match filter {
                    Filter::Keep(name) => Some(name),
                    _ => None,
                });
                let text = match (&reply, reply.text()) {
                    (Reply::Error(_), _) => None,
                    (Reply::Integer(number), _) => Some(number.to_string().into_bytes()),
                    (_, text) => text.map(<[u8]>::to_vec),
                };
                Ok(match (name, text) {
                    (Some(name), Some(text)) => {
                        self.kept.insert(name.clone(), text);
                        vec!["(kept)".to_owned()]
                    }
                    _ => notation::lines(&reply),
                })
            }
        }
    }

    /// Replaces `$(name)` in a word by the reply that was kept under that name.
    fn filled(&self, word: &[u8]) -> Vec<u8> {
        let mut filled = word.to_vec();
        for (name, text) in &self.kept {
            let mark = format!("$({name})").into_bytes();
            while let Some(at) = filled.windows(mark.len()).position(|window| window == mark) {
                filled.splice(at..at + mark.len(), text.iter().copied());
            }
        }
        filled
    }

    /// Sends raw bytes and reads as many as are expected; if no literal expectation gives their
    /// number, reads until there is a pause.
    fn raw(&mut self, connection: u8, bytes: &[u8], expected: &Expectation) -> Result<Vec<String>> {
        const PAUSE: Duration = Duration::from_millis(150);
        let protocol = self.protocol;
        let client = self.connection(connection)?;
        client.send_raw(bytes)?;
        let wanted = expected.lines(protocol);
        let counted: Result<Vec<_>> =
            wanted.iter().map(|line| crate::quoting::split(line)).collect();
        let closes = wanted.iter().any(|line| line == "(closed)");
        let length: usize = match &counted {
            Ok(texts) if !wanted.is_empty() && wanted.iter().all(|line| !line.starts_with('~')) => {
                let texts = texts.iter().filter(|words| words.concat() != b"(closed)");
                texts.map(|words| words.concat().len()).sum()
            }
            _ => usize::MAX,
        };
        let exact = length != usize::MAX && std::env::var_os("UPDATE").is_none();
        let patience = if exact { PATIENCE } else { PAUSE };
        let most = if exact && !closes { length } else { usize::MAX };
        let (received, closed) = client.receive_raw(most, patience)?;
        let mut lines = Vec::new();
        let mut start = 0;
        for (index, _) in received.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            lines.push(quote(&received[start..=index]));
            start = index + 1;
        }
        if start < received.len() {
            lines.push(quote(&received[start..]));
        }
        if closed {
            lines.push("(closed)".to_owned());
        }
        Ok(lines)
    }

    /// The connection with that number, opened at its first use.
    fn connection(&mut self, number: u8) -> Result<&mut Client> {
        if !self.connections.contains_key(&number) {
            let mut client = self.player.server.connect()?;
            if self.protocol == Protocol::Resp3 {
                let reply = client.call(&["HELLO", "3"])?;
                if reply.is_error() {
                    bail!("HELLO 3 answers {reply:?}");
                }
            }
            self.connections.insert(number, client);
        }
        self.connections.get_mut(&number).context("invariant: just inserted")
    }
}
