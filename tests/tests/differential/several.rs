//! Rounds of several clients, in one order on both servers.
//!
//! A client sends one command at a time. The next one goes out when everything that the command
//! causes has arrived at every client: its reply, messages and events, replies to clients that
//! waited. The reference writes all replies of a turn before the next turn, so everything has
//! arrived when it answers another client. On each connection Dunlin then has to send as many
//! replies as the reference did. CLIENT LIST says whether a command waits. A client that waits
//! sends nothing: its turns are skipped.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tests::client::{Client, Received, Reply};
use tests::grammar::{self, Command, Comparison};

use crate::alike::{answered_alike, shown};
use crate::pair::{Difference, Pair};
use crate::round::may_fail_to_overflow;

const DUNLIN: usize = 0;
const REFERENCE: usize = 1;

/// How long a connection is looked at before the server is asked whether it waits.
const GLANCE: Duration = Duration::from_millis(5);

/// A command, and the number of the client that sends it.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) by: usize,
    pub(crate) command: Command,
}

/// One client, on both servers.
struct Seat {
    connections: [Client; 2],
    /// The numbers that the servers know it by.
    ids: [i64; 2],
    /// How replies to the commands that wait for EXEC are compared.
    queue: Vec<Comparison>,
    /// Whether its commands wait for EXEC.
    is_queueing: bool,
    /// The command that it waits in.
    waits: Option<Command>,
    /// Whether it has subscribed to anything.
    listens: bool,
}

impl Seat {
    fn new(pair: &Pair) -> Result<Self> {
        let mut connections = [pair.dunlin.connect()?, pair.reference.connect()?];
        let mut ids = [0; 2];
        for (connection, id) in connections.iter_mut().zip(&mut ids) {
            let Reply::Integer(own) = connection.call_text("CLIENT ID")? else {
                bail!("CLIENT ID is no number");
            };
            *id = own;
        }
        Ok(Self {
            connections,
            ids,
            queue: Vec::new(),
            is_queueing: false,
            waits: None,
            listens: false,
        })
    }
}

impl Seat {
    /// Whether a command is worth sending: not while another is waited for, nor for EXEC where what
    /// comes of it is each server's own (`docs/COMPATIBILITY.md`).
    fn can(&self, command: &Command) -> bool {
        const NOT_QUEUED: [&str; 8] = [
            "CLIENT",
            "HELLO",
            "SWAPDB",
            "SUBSCRIBE",
            "UNSUBSCRIBE",
            "PSUBSCRIBE",
            "PUNSUBSCRIBE",
            "SUNSUBSCRIBE",
        ];
        let is_own = NOT_QUEUED.contains(&command.name().as_str()) || has_destination(command);
        let differs = self.is_queueing && is_own;
        // A client that listens may get messages about its own command, which do not answer it.
        let unclear = self.listens && grammar::may_wait(&command.words);
        // Redis 8.0 crashes when such a client serves one that waits.
        let untouching =
            command.words.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"no-touch"));
        self.waits.is_none() && !differs && !unclear && !untouching
    }

    /// Notes what the reply to an own command says of a transaction.
    fn follow(&mut self, command: &Command, heard: &[Received]) {
        let is_ok = |it: &Received| *it == Received::Reply(Reply::Status(b"OK".to_vec()));
        match command.name().as_str() {
            "MULTI" if heard.iter().any(is_ok) => self.is_queueing = true,
            "EXEC" | "DISCARD" => self.is_queueing = false,
            "RESET" => (self.is_queueing, self.listens) = (false, false),
            "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" => self.listens = true,
            _ => {}
        }
    }
}

/// Plays steps; tells the first difference. `controls` are the connections by which the servers are
/// asked.
pub(crate) fn play(
    pair: &Pair,
    controls: &mut [Client; 2],
    clients: usize,
    steps: &[Step],
) -> Result<Option<Difference>> {
    let seats = (0..clients).map(|_| Seat::new(pair)).collect::<Result<Vec<_>>>()?;
    let mut table = Table { pair, controls, seats };
    for (index, step) in steps.iter().enumerate() {
        let all_wait = table.seats.iter().all(|seat| seat.waits.is_some());
        let found = if all_wait { table.release(step.by)? } else { None };
        let found = match found {
            None if table.can(step) => table.take(step)?,
            found => found,
        };
        if let Some(difference) = found {
            return Ok(Some(Difference { length: index + 1, ..difference }));
        }
    }
    // What comes too much comes before the reply to this.
    for by in 0..clients {
        let words = vec![b"RESET".to_vec()];
        let reset = Step { by, command: Command { words, comparison: Comparison::Exact } };
        let found = match table.release(by)? {
            None => table.take(&reset)?,
            found => found,
        };
        if let Some(difference) = found {
            return Ok(Some(Difference { length: steps.len(), ..difference }));
        }
    }
    Ok(None)
}

/// The clients of a round.
struct Table<'a> {
    pair: &'a Pair,
    controls: &'a mut [Client; 2],
    seats: Vec<Seat>,
}

impl Table<'_> {
    /// Whether a step is worth taking. Of several waiting clients, SWAPDB serves first the one
    /// whose key comes first out of a hash table; the reply of a BITFIELD that fails differs
    /// between the servers.
    fn can(&self, step: &Step) -> bool {
        let waits = self.seats.iter().filter_map(|seat| seat.waits.as_ref());
        let is_chance = waits.clone().count() > 1 && step.command.name() == "SWAPDB";
        // Dunlin serves a client that waits for a key when the key gets another type in this way.
        // The reference does not.
        let replaces = step.command.words.iter().any(|word| {
            has_destination(&step.command) && waits.clone().any(|it| it.words.contains(word))
        });
        let is_own = may_fail_to_overflow(&step.command);
        self.seats[step.by].can(&step.command) && !is_chance && !is_own && !replaces
    }

    /// Lets a client send a command, and compares what all hear of it.
    fn take(&mut self, step: &Step) -> Result<Option<Difference>> {
        let Step { by, command } = step;
        let may_wait = may_wait(command);
        for server in [DUNLIN, REFERENCE] {
            let words = self.addressed(command, server);
            self.seats[*by].connections[server].send(&words)?;
        }
        let waits = !self.is_answered(REFERENCE, *by, may_wait)?;
        let heard = self.hear_reference()?;
        if waits {
            if self.is_answered(DUNLIN, *by, true)? {
                let signature = format!("{} does not wait", command.name());
                let ours = shown(&self.seats[*by].connections[DUNLIN].receive()?);
                return Ok(Some(difference(signature, ours, "(waits)".to_owned())));
            }
            self.seats[*by].waits = Some(command.clone());
        } else if may_wait && !self.is_answered(DUNLIN, *by, true)? {
            let signature = format!("{} waits", command.name());
            let theirs = heard[*by].iter().map(shown).collect();
            return Ok(Some(difference(signature, "(waits)".to_owned(), theirs)));
        }
        self.compare(&heard, Some(step).filter(|_| !waits))
    }

    /// Ends the waiting of a client.
    fn release(&mut self, by: usize) -> Result<Option<Difference>> {
        if self.seats[by].waits.is_none() {
            return Ok(None);
        }
        for (control, id) in self.controls.iter_mut().zip(self.seats[by].ids) {
            let released = control.call(&["CLIENT", "UNBLOCK", &id.to_string()])?;
            if released != Reply::Integer(1) {
                bail!("a client that waits is not released: {released:?}");
            }
        }
        let heard = self.hear_reference()?;
        self.compare(&heard, None)
    }

    /// The words of a command for a server, by which clients have other numbers.
    fn addressed(&self, command: &Command, server: usize) -> Vec<Vec<u8>> {
        let number = |word: &Vec<u8>| {
            let digits = word.strip_prefix(b"client-")?;
            let seat = std::str::from_utf8(digits).ok()?.parse::<usize>().ok()?;
            Some(self.seats.get(seat)?.ids[server].to_string().into_bytes())
        };
        command.words.iter().map(|word| number(word).unwrap_or_else(|| word.clone())).collect()
    }

    /// Waits until there is something to read for a client; tells whether that is so, or the client
    /// waits in its command.
    fn is_answered(&mut self, server: usize, by: usize, may_wait: bool) -> Result<bool> {
        let start = Instant::now();
        let id = self.seats[by].ids[server].to_string();
        while start.elapsed() < self.pair.patience {
            let connection = &mut self.seats[by].connections[server];
            if connection.is_readable()? || !may_wait && connection.has_input(GLANCE)? {
                return Ok(true);
            }
            if may_wait {
                let about = self.controls[server].call(&["CLIENT", "LIST", "ID", &id])?;
                // Between the look at the connection and this one the reply may have come.
                if flags(&about).is_some_and(|flags| flags.contains('b'))
                    && !self.seats[by].connections[server].is_readable()?
                {
                    return Ok(false);
                }
            }
        }
        let who = if server == DUNLIN { "dunlin" } else { "the reference" };
        let about = self.controls[server].call(&["CLIENT", "LIST", "ID", &id])?;
        bail!("a command is neither answered by {who} nor does it wait: {about:?}")
    }

    /// All that has come from the reference, by client.
    fn hear_reference(&mut self) -> Result<Vec<Vec<Received>>> {
        // Connections that are closed are so at the end of the turn after.
        for _ in 0..2 {
            self.controls[REFERENCE].call_text("PING")?;
        }
        let mut all = Vec::new();
        for seat in &mut self.seats {
            let mut own = Vec::new();
            while own.last() != Some(&Received::Closed)
                && seat.connections[REFERENCE].is_readable()?
            {
                own.push(seat.connections[REFERENCE].receive()?);
            }
            all.push(own);
        }
        Ok(all)
    }

    /// Compares what dunlin's clients hear with what those of the reference have heard, after a
    /// step that was answered.
    fn compare(
        &mut self,
        heard: &[Vec<Received>],
        answered: Option<&Step>,
    ) -> Result<Option<Difference>> {
        for (index, theirs) in heard.iter().enumerate() {
            let seat = &mut self.seats[index];
            let own = answered.filter(|step| step.by == index).map(|step| &step.command);
            let command = own.or(seat.waits.as_ref()).cloned();
            // A client that waits and listens to events hears of the command that served it after
            // its reply.
            let mut theirs = theirs.clone();
            if own.is_none() && seat.waits.is_some() {
                theirs.sort_by_key(is_message);
            }
            let mut ours = hear(&mut seat.connections[DUNLIN], theirs.len(), self.pair.patience)?;
            for heard in [&mut theirs, &mut ours] {
                put_names_in_order(heard);
                if answered.is_some_and(|step| may_be_many(&step.command)) {
                    put_events_last(heard);
                }
            }
            for (place, their) in theirs.iter().enumerate() {
                let ours = ours.get(place);
                let alike = match (ours, &command) {
                    (Some(ours), Some(command)) if !is_message(their) => {
                        answered_alike(command, &mut seat.queue, ours, their)
                            || *ours == Received::Closed && *their == Received::Closed
                    }
                    (ours, _) => ours == Some(their),
                };
                if !alike {
                    let signature = signature(command.as_ref(), own.is_some(), their);
                    let end = match ours {
                        Some(Received::Closed) => format!("\n{}", self.pair.dunlin.log_tail()),
                        _ => String::new(),
                    };
                    let ours = ours.map_or("(nothing)".to_owned(), shown) + &end;
                    let ours = format!("{ours}\n(to client {index})");
                    return Ok(Some(difference(signature, ours, shown(their))));
                }
            }
            if let Some(own) = own {
                seat.follow(own, &theirs);
            }
            if theirs.iter().any(|it| !is_message(it)) {
                seat.waits = None;
            }
            if theirs.last() == Some(&Received::Closed) {
                // Until then CLIENT LIST may show it on dunlin.
                let id = seat.ids[DUNLIN].to_string();
                let start = Instant::now();
                while flags(&self.controls[DUNLIN].call(&["CLIENT", "LIST", "ID", &id])?).is_some()
                {
                    if start.elapsed() > self.pair.patience {
                        bail!("a connection that was closed is still there");
                    }
                }
                *seat = Seat::new(self.pair)?;
            }
        }
        self.find_surplus()
    }

    /// What dunlin has sent and the reference has not.
    fn find_surplus(&mut self) -> Result<Option<Difference>> {
        for (index, seat) in self.seats.iter_mut().enumerate() {
            if seat.connections[DUNLIN].is_readable()? {
                let more = seat.connections[DUNLIN].receive().context("what is too much")?;
                let signature = "a client hears too much".to_owned();
                let ours = format!("{}\n(to client {index})", shown(&more));
                return Ok(Some(difference(signature, ours, "(nothing)".to_owned())));
            }
        }
        Ok(None)
    }
}

/// What comes from a connection, up to `count` replies and messages.
fn hear(connection: &mut Client, count: usize, patience: Duration) -> Result<Vec<Received>> {
    let mut heard = Vec::new();
    while heard.len() < count
        && heard.last() != Some(&Received::Closed)
        && connection.has_input(patience)?
    {
        heard.push(connection.receive()?);
    }
    Ok(heard)
}

/// The parts of a received message that is not a single value.
fn parts(received: &mut Received) -> Option<&mut Vec<Reply>> {
    match received {
        Received::Reply(Reply::Push(parts) | Reply::Array(parts)) => Some(parts),
        _ => None,
    }
}

/// Puts given-up names into one order: a client that gives up all gets that of a hash table. How
/// many are left is told in the order of the replies.
fn put_names_in_order(heard: &mut [Received]) {
    const KINDS: [&[u8]; 3] = [b"unsubscribe", b"punsubscribe", b"sunsubscribe"];
    for kind in KINDS {
        let is_kind = |parts: &&mut Vec<Reply>| {
            parts.len() == 3 && parts.first().and_then(Reply::text) == Some(kind)
        };
        let mut all: Vec<_> = heard.iter_mut().filter_map(parts).filter(is_kind).collect();
        let mut names: Vec<Reply> = all.iter().map(|parts| parts[1].clone()).collect();
        names.sort_by(|one, other| one.text().cmp(&other.text()));
        for (parts, name) in all.iter_mut().zip(names) {
            parts[1] = name;
        }
    }
}

/// Whether a command may consist of several, whose events dunlin sends behind their messages.
fn may_be_many(command: &Command) -> bool {
    ["EXEC", "EVAL", "EVALSHA", "FCALL"].contains(&command.name().as_str())
}

/// Puts events behind what was published; replies stay in their places.
fn put_events_last(heard: &mut [Received]) {
    let places: Vec<_> = (0..heard.len()).filter(|&place| is_message(&heard[place])).collect();
    let mut messages: Vec<_> = places.iter().map(|&place| heard[place].clone()).collect();
    messages.sort_by_key(is_event);
    for (place, message) in places.into_iter().zip(messages) {
        heard[place] = message;
    }
}

/// Whether a message tells what happened to a key.
fn is_event(message: &Received) -> bool {
    let Received::Reply(Reply::Push(parts) | Reply::Array(parts)) = message else { return false };
    let texts = parts.iter().filter_map(Reply::text);
    texts.take(3).any(|text| text.starts_with(b"__key"))
}

fn difference(signature: String, dunlin: String, reference: String) -> Difference {
    Difference { signature, length: 0, dunlin, reference }
}

fn signature(command: Option<&Command>, own: bool, theirs: &Received) -> String {
    match (command, own) {
        _ if is_message(theirs) => "a client hears something else".to_owned(),
        (Some(command), true) => format!("{} is answered differently", command.name()),
        (Some(command), false) => format!("{} ends its waiting differently", command.name()),
        (None, _) => "a client hears something else".to_owned(),
    }
}

/// Whether a command replaces the value of a key by its result.
fn has_destination(command: &Command) -> bool {
    let names = |word: &Vec<u8>| word.to_ascii_uppercase().ends_with(b"STORE");
    command.words.iter().any(names) || command.name() == "GEORADIUS"
}

/// Whether a command may wait for longer than a moment.
fn may_wait(command: &Command) -> bool {
    const WITH_LIMIT_LAST: [&str; 6] =
        ["BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BZPOPMIN", "BZPOPMAX"];
    let words = &command.words;
    let name = command.name();
    let is_zero = |word: Option<&Vec<u8>>| word.is_some_and(|word| word == b"0");
    match name.as_str() {
        "BLMPOP" | "BZMPOP" => is_zero(words.get(1)),
        "XREAD" | "XREADGROUP" => {
            words.windows(2).any(|pair| pair[0].eq_ignore_ascii_case(b"block") && pair[1] == b"0")
        }
        name => WITH_LIMIT_LAST.contains(&name) && is_zero(words.last()),
    }
}

/// Whether this is no reply, but what others have caused.
fn is_message(received: &Received) -> bool {
    const KINDS: [&[u8]; 3] = [b"message", b"pmessage", b"smessage"];
    match received {
        Received::Reply(Reply::Push(parts) | Reply::Array(parts)) => {
            let kind = parts.first().and_then(Reply::text);
            parts.len() > 2 && kind.is_some_and(|kind| KINDS.contains(&kind))
        }
        _ => false,
    }
}

/// The flags in the line of CLIENT LIST about a client that is there.
fn flags(about: &Reply) -> Option<String> {
    let text = String::from_utf8_lossy(about.text().unwrap_or_default()).into_owned();
    text.split(' ').find_map(|field| field.strip_prefix("flags=")).map(str::to_owned)
}
