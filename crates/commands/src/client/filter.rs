//! The filters of CLIENT LIST and CLIENT KILL: those of Redis, and the further ones of Valkey.
//!
//! A client has to pass all of them. Most have an opposite, with `NOT-` before the name. When a
//! filter is given twice, the last one counts.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Engine;
use engine::session::client::{Client, ClientClass, FLAG_LETTERS, flag};

/// Which clients are meant.
#[derive(Default)]
pub(super) struct Filter<'a> {
    wanted: Traits<'a>,
    unwanted: Traits<'a>,
    /// Seconds since it connected, at least.
    age: Option<u64>,
    /// Seconds since it last sent something, at least.
    idle: Option<u64>,
    /// Whether the client that asks is left out.
    pub(super) skip_me: bool,
}

/// The traits that a client must have to pass. All that are given must match.
#[derive(Default)]
struct Traits<'a> {
    ids: Option<Vec<i64>>,
    class: Option<ClientClass>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    flags: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
    library: Option<&'a [u8]>,
    library_version: Option<&'a [u8]>,
    database: Option<u32>,
    capabilities: Option<&'a [u8]>,
    host: Option<&'a [u8]>,
}

/// Which command's words are read. Where Redis and Valkey differ, Redis's way is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Ids may be any number; a word that is not a number has an error of its own.
    List,
    /// Numbers of clients are above zero.
    Kill,
}

impl<'a> Filter<'a> {
    /// Reads all arguments that are left.
    pub(super) fn parse(
        args: &mut Args<'a>,
        reader: Reader,
        engine: &Engine,
    ) -> Result<Filter<'a>, CommandError> {
        let mut filter = Filter { skip_me: reader == Reader::Kill, ..Filter::default() };
        while !args.is_empty() {
            if args.len() < 2 {
                return Err(CommandError::SYNTAX);
            }
            if args.word("skipme") {
                filter.skip_me = yes_or_no(args)?;
            } else if args.word("maxage") {
                filter.age = Some(seconds(args, "maxage")?);
            } else if args.word("idle") {
                filter.idle = Some(seconds(args, "idle")?);
            } else {
                let name = args.bytes()?;
                let (traits, plain) = match strip_not(name) {
                    Some(plain) => (&mut filter.unwanted, plain),
                    None => (&mut filter.wanted, name),
                };
                traits.read(plain, args, &Words { reader, name, engine })?;
            }
        }
        Ok(filter)
    }

    /// Whether it means a client. `now` is [`engine::engine::Turn::monotonic`].
    pub(super) fn includes(&self, client: &Client, now: u64) -> bool {
        let seconds_since = |at: u64| now.saturating_sub(at) / 1000;
        let idle_since = client.last_interaction.load(std::sync::atomic::Ordering::Relaxed);
        self.age.is_none_or(|least| seconds_since(client.connected_at) >= least)
            && self.idle.is_none_or(|least| seconds_since(idle_since) >= least)
            && self.wanted.of(client).all(|holds| holds)
            && !self.unwanted.of(client).any(|holds| holds)
    }
}

/// The words from which a trait is read.
struct Words<'w> {
    reader: Reader,
    /// The filter's name as it came.
    name: &'w [u8],
    engine: &'w Engine,
}

impl<'a> Traits<'a> {
    fn read(&mut self, plain: &[u8], args: &mut Args<'a>, words: &Words<'_>) -> CommandResult {
        match &*plain.to_ascii_lowercase() {
            b"id" => self.ids = Some(ids(args, words.reader)?),
            b"type" => self.class = Some(class(args)?),
            b"addr" => self.address = Some(args.bytes()?),
            b"laddr" => self.local_address = Some(args.bytes()?),
            b"user" => self.user = Some(known_user(args.bytes()?, words.engine)?),
            b"flags" => self.flags = Some(letters(args, words, FLAG_LETTERS, "flags")?),
            b"name" => self.name = Some(args.bytes()?),
            b"lib-name" => self.library = Some(args.bytes()?),
            b"lib-ver" => self.library_version = Some(args.bytes()?),
            b"db" => self.database = Some(database(args, words)?),
            b"capa" => self.capabilities = Some(letters(args, words, "r", "capa")?),
            b"ip" => self.host = Some(args.bytes()?),
            _ => return Err(CommandError::SYNTAX),
        }
        Ok(())
    }

    /// For each given flag, whether a client has it.
    fn of(&self, client: &Client) -> impl Iterator<Item = bool> {
        use std::sync::atomic::Ordering::Relaxed;
        let names = client.names.lock();
        let host = client.address.rsplit_once(':').map_or(&*client.address, |(host, _)| host);
        let capable = if client.has_flag(flag::REDIRECT) { "r" } else { "" };
        let has_all =
            |own: &str, wanted: &[u8]| wanted.iter().all(|it| own.as_bytes().contains(it));
        [
            self.ids.as_ref().map(|ids| ids.iter().any(|&id| u64::try_from(id) == Ok(client.id))),
            self.class.map(|class| class == client.class()),
            self.address.map(|address| address == client.address.as_bytes()),
            self.local_address.map(|address| address == client.local_address.as_bytes()),
            self.user.map(|user| user == names.user()),
            self.flags.map(|flags| has_all(&client.flag_letters(), flags)),
            self.name.map(|name| name == names.name),
            self.library.map(|library| library == names.library),
            self.library_version.map(|version| version == names.library_version),
            self.database.map(|database| database == client.database.load(Relaxed)),
            self.capabilities.map(|wanted| has_all(capable, wanted)),
            self.host.map(|wanted| wanted == host.as_bytes()),
        ]
        .into_iter()
        .flatten()
    }
}

/// The name after `NOT-`.
fn strip_not(name: &[u8]) -> Option<&[u8]> {
    let (not, plain) = name.split_at_checked(4)?;
    not.eq_ignore_ascii_case(b"not-").then_some(plain)
}

/// One or more numbers: all that follow each other.
fn ids(args: &mut Args<'_>, reader: Reader) -> Result<Vec<i64>, CommandError> {
    let mut ids = Vec::new();
    while let Some(word) = args.peek() {
        match base::num::parse_i64(word) {
            Some(1..) => {}
            Some(_) if reader == Reader::List => {}
            // The next word, which may be the name of a filter.
            None if !ids.is_empty() && (reader == Reader::Kill || args.len() > 1) => break,
            _ if reader == Reader::List => return Err(CommandError::text("ERR Invalid client ID")),
            _ => return Err(CommandError::text("ERR client-id should be greater than 0")),
        }
        ids.push(args.i64()?);
    }
    Ok(ids)
}

fn class(args: &mut Args<'_>) -> Result<ClientClass, CommandError> {
    let name = args.bytes()?;
    ClientClass::parse(name)
        .ok_or_else(|| CommandError::quoting("ERR Unknown client type '", name, "'"))
}

/// The name of a user, if there is one of this name.
fn known_user<'a>(name: &'a [u8], engine: &Engine) -> Result<&'a [u8], CommandError> {
    if engine.users.find(name).is_some() {
        return Ok(name);
    }
    Err(CommandError::quoting("ERR No such user '", name, "'"))
}

fn yes_or_no(args: &mut Args<'_>) -> Result<bool, CommandError> {
    if args.word("yes") {
        Ok(true)
    } else if args.word("no") {
        Ok(false)
    } else {
        Err(CommandError::SYNTAX)
    }
}

fn seconds(args: &mut Args<'_>, name: &str) -> Result<u64, CommandError> {
    let number = args.i64().map_err(|_| {
        CommandError::owned(format!("ERR {name} is not an integer or out of range"))
    })?;
    let seconds = u64::try_from(number).ok().filter(|seconds| *seconds > 0);
    seconds.ok_or_else(|| CommandError::owned(format!("ERR {name} should be greater than 0")))
}

/// Letters; each must be known.
fn letters<'a>(
    args: &mut Args<'a>,
    words: &Words<'_>,
    known: &str,
    what: &str,
) -> Result<&'a [u8], CommandError> {
    let letters = args.bytes()?;
    if letters.iter().all(|letter| known.as_bytes().contains(letter)) {
        return Ok(letters);
    }
    let place = match strip_not(words.name) {
        Some(_) => format!("the {} filter", String::from_utf8_lossy(words.name).to_uppercase()),
        None => "the provided filter".to_owned(),
    };
    Err(CommandError::quoting(&format!("ERR Unknown {what} found in {place}: "), letters, ""))
}

fn database(args: &mut Args<'_>, words: &Words<'_>) -> Result<u32, CommandError> {
    let name = String::from_utf8_lossy(words.name).to_uppercase();
    let number = args.i64().map_err(|_| {
        CommandError::owned(format!("ERR {name} is not an integer or out of range"))
    })?;
    let known =
        usize::try_from(number).ok().filter(|index| *index < words.engine.keyspace.databases());
    known.map(|index| index as u32).ok_or_else(|| {
        let last = words.engine.keyspace.databases() - 1;
        CommandError::owned(format!("ERR {name} number should be between 0 and {last}"))
    })
}
