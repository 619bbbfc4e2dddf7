//! Clients of a primary with replicas: what they are promised for their writes, and what they may
//! read on a replica.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use tests::client::{Client, Received, Reply, encode};
use tests::random::Random;
use tests::replication::Traffic;

use crate::actor::{Actor, World};
use crate::data;
use crate::history::{Action, Time};

/// What is said in logs when something went wrong that never should. The streams of these servers
/// are whole.
pub(crate) const ALARMS: [&str; 5] = [
    "panicked at",
    "BUG REPORT",
    "== CRITICAL ==",
    "EXEC without MULTI",
    "MULTI within a transaction",
];

/// Clients that write registers; each has its own.
pub(crate) const WRITERS: usize = 4;

/// When a writer hears that its writes are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assurance {
    /// As the server does it for all.
    Usual,
    /// They are in memory.
    Memory,
    /// They are synced on the primary's disk.
    Synced,
    /// So many replicas have them: the replies wait for that.
    Replicas(u64),
    /// They are synced on the disks of so many replicas, and on the primary's.
    SyncedReplicas(u64),
    /// So many replicas have them, by a WAIT after them.
    Wait(u64),
}

impl Assurance {
    /// Those of all writers. `replicas` attach to the primary itself.
    pub(crate) fn draw(random: &mut Random, replicas: u64, is_own: bool) -> Vec<Assurance> {
        let one = |random: &mut Random| {
            let count = 1 + random.below(replicas.max(1) as usize) as u64;
            match random.below(if is_own { 12 } else { 4 }) {
                0 => Assurance::Usual,
                1..4 => Assurance::Wait(count),
                4 => Assurance::Memory,
                5 => Assurance::Synced,
                6 | 7 => Assurance::SyncedReplicas(count),
                _ => Assurance::Replicas(count),
            }
        };
        (0..WRITERS).map(|_| one(random)).collect()
    }

    /// What asks for it on a new connection.
    fn greeting(self) -> Option<String> {
        match self {
            Assurance::Usual | Assurance::Wait(_) => None,
            Assurance::Memory => Some("CLIENT DURABILITY MEMORY".to_owned()),
            Assurance::Synced => Some("CLIENT DURABILITY FSYNC".to_owned()),
            Assurance::Replicas(count) => Some(format!("CLIENT DURABILITY REPLICAS {count}")),
            Assurance::SyncedReplicas(count) => {
                Some(format!("CLIENT DURABILITY REPLICAS {count} FSYNC"))
            }
        }
    }

    /// Whether what it acknowledges is on the primary's disk as far as `appendfsync` says.
    pub(crate) fn is_of_disk(self) -> bool {
        !matches!(self, Assurance::Memory | Assurance::Replicas(_))
    }

    /// Whether what it acknowledges is synced on the disk of each server that has it.
    pub(crate) fn is_synced(self) -> bool {
        matches!(self, Assurance::Synced | Assurance::SyncedReplicas(_))
    }
}

/// What a client may expect to read of a register.
#[derive(Clone, Debug)]
struct Known {
    value: u64,
    /// The position after it was written.
    position: String,
    /// Flushes that were over before it was written.
    flushes: u64,
}

/// The replicas of the server that clients work on.
pub(crate) struct Replicas {
    /// Their ports.
    pub(crate) ports: Vec<u16>,
    /// Of each writer.
    pub(crate) assurances: Vec<Assurance>,
    /// Whether the primary and its replicas know of positions.
    pub(crate) have_positions: bool,
    /// Whether no replica was ahead of the one that it follows.
    pub(crate) began_alike: bool,
    /// Whether all of them do what HPERSIST asks when the time of the field has passed by their own
    /// clock: a redis-server does not.
    pub(crate) persist_fields: bool,
    known: Mutex<BTreeMap<usize, Known>>,
    /// Flushes that have begun, and those that are over.
    flushes_begun: AtomicU64,
    flushes_done: AtomicU64,
}

impl Replicas {
    pub(crate) fn new(ports: Vec<u16>, assurances: Vec<Assurance>) -> Replicas {
        Replicas {
            ports,
            assurances,
            have_positions: true,
            began_alike: true,
            persist_fields: true,
            known: Mutex::default(),
            flushes_begun: AtomicU64::new(0),
            flushes_done: AtomicU64::new(0),
        }
    }

    /// A flush begins.
    pub(crate) fn note_flush(&self) {
        self.flushes_begun.fetch_add(1, SeqCst);
    }

    /// A flush is over.
    pub(crate) fn note_flushed(&self) {
        self.flushes_done.fetch_add(1, SeqCst);
    }
}

fn replicas<'w>(actor: &Actor<'w>) -> &'w Replicas {
    let world: &'w World = actor.world;
    world.replicas.as_ref().expect("such a client is only where replicas are")
}

/// Whether a reply says that a write is done, and not as durable as it should be.
fn is_not_durable(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with(b"NODURABLE "))
}

/// Writes registers, and notes where they are assured.
pub(crate) fn write(actor: &mut Actor<'_>, number: usize) {
    let replicas = replicas(actor);
    let assurance = replicas.assurances[number];
    actor.greeting = assurance.greeting();
    let own: Vec<usize> =
        (0..data::ALL_REGISTERS).filter(|register| register % WRITERS == number).collect();
    let mut count = 0;
    while actor.world.goes_on() {
        let (mut commands, mut writes) = (Vec::new(), Vec::new());
        for _ in 0..=actor.random.below(6) {
            count += 1;
            let register = *actor.random.pick(&own);
            let value = actor.fresh(number, count);
            commands.extend(data::write(register, value, &mut actor.random));
            writes.push((register, value, commands.len() - 1));
        }
        let asks = replicas.have_positions && actor.random.percent(40);
        if asks {
            commands.push("CLIENT POSITION".to_owned());
        }
        let (breaks, begin) = (actor.breaks, actor.now());
        let flushes = replicas.flushes_done.load(SeqCst);
        let answers = actor.exchange(&commands);
        let mut done = Vec::new();
        for (register, value, at) in writes {
            let action = Action::Write { register, value };
            match &answers[at] {
                Some((reply, _)) if is_not_durable(reply) => actor.record(action, begin, None),
                Some((reply, _)) if reply.is_error() => {}
                Some((_, end)) => {
                    actor.record(action, begin, Some(*end));
                    done.push((register, value, *end));
                }
                None => actor.record(action, begin, None),
            }
        }
        let position = answers.last().filter(|_| asks).and_then(Option::as_ref);
        if let Some((Reply::Bulk(position), _)) = position {
            let position = String::from_utf8_lossy(position).into_owned();
            let mut known = replicas.known.lock().expect("no client panics");
            for &(register, value, _) in &done {
                let position = position.clone();
                known.insert(register, Known { value, position, flushes });
            }
        }
        match assurance {
            Assurance::Replicas(copies) | Assurance::SyncedReplicas(copies) => {
                note_assured(actor, &done, copies, begin)
            }
            Assurance::Synced => note_assured(actor, &done, 0, begin),
            Assurance::Wait(count) if !done.is_empty() && actor.breaks == breaks => {
                let wait = format!("WAIT {count} {}", 50 + actor.random.below(500));
                if let Some((Reply::Integer(copies), end)) = actor.call(&wait)
                    && actor.breaks == breaks
                    && let Ok(copies) = u64::try_from(copies)
                    && copies > 0
                {
                    done.iter_mut().for_each(|(_, _, known)| *known = end);
                    note_assured(actor, &done, copies, begin);
                }
            }
            _ => {}
        }
        actor.rest(3000);
    }
}

fn note_assured(actor: &mut Actor<'_>, done: &[(usize, u64, Time)], copies: u64, begin: Time) {
    for &(register, value, end) in done {
        actor.record(Action::Assured { register, value, copies }, begin, Some(end));
    }
}

/// The commands that read a register at once, and which of their replies has it.
fn reading(register: usize) -> Vec<String> {
    match register.checked_sub(data::REGISTERS) {
        None => vec![data::read(register)],
        Some(pair) => {
            let [first, second] = data::read_pair(pair);
            vec!["MULTI".to_owned(), first, second, "EXEC".to_owned()]
        }
    }
}

/// What such a reading has read; a pair that is torn is an error.
fn read_value(register: usize, reply: &Reply) -> anyhow::Result<Option<u64>> {
    match reply {
        Reply::Array(both) if register >= data::REGISTERS => {
            anyhow::ensure!(both.len() == 2, "a pair was read as {reply:?}");
            let (one, other) = (data::value(&both[0])?, data::value(&both[1])?);
            anyhow::ensure!(one == other, "a pair was seen torn: {one:?} and {other:?}");
            Ok(one)
        }
        other => data::value(other),
    }
}

/// Errors that a replica may give to a reader.
fn is_excuse(reply: &Reply) -> bool {
    const EXCUSES: [&[u8]; 6] =
        [b"STALE ", b"NOHISTORY ", b"LOADING ", b"MASTERDOWN ", b"EXECABORT ", b"BUSY "];
    matches!(reply, Reply::Error(text) if EXCUSES.iter().any(|start| text.starts_with(start)))
}

/// Sends commands at once and returns the answers to all of them, if they came.
fn ask(client: &mut Client, commands: &[String]) -> Option<Vec<Reply>> {
    let mut request = Vec::new();
    for command in commands {
        encode(&command.split(' ').collect::<Vec<_>>(), &mut request);
    }
    client.send_raw(&request).ok()?;
    let mut replies = Vec::new();
    for _ in commands {
        match client.receive() {
            Ok(Received::Reply(reply)) => replies.push(reply),
            _ => return None,
        }
    }
    Some(replies)
}

/// A connection to one of the replicas.
fn visit(actor: &mut Actor<'_>) -> Option<Client> {
    let replicas = replicas(actor);
    if replicas.ports.is_empty() {
        actor.rest(50_000);
        return None;
    }
    let port = *actor.random.pick(&replicas.ports);
    let client = Client::connect(port).ok().filter(|_| actor.world.goes_on());
    if client.is_none() {
        actor.rest(10_000);
    }
    client
}

/// Reads on a replica what was written on the primary: never anything older.
pub(crate) fn read_after(actor: &mut Actor<'_>, _: usize) {
    let replicas = replicas(actor);
    let Some(mut client) = visit(actor) else { return };
    for _ in 0..20 {
        actor.rest(4000);
        let known: Vec<(usize, Known)> = {
            let known = replicas.known.lock().expect("no client panics");
            known.iter().map(|(register, known)| (*register, known.clone())).collect()
        };
        if known.is_empty() || !actor.world.goes_on() {
            actor.rest(20_000);
            return;
        }
        let (register, known) = actor.random.pick(&known).clone();
        let patience = *actor.random.pick(&[0, 30, 1000]);
        let mut commands = vec![
            format!("SELECT {}", data::HOME),
            format!("CLIENT READAFTER {} TIMEOUT {patience}", known.position),
        ];
        commands.extend(reading(register));
        let Some(replies) = ask(&mut client, &commands) else { return };
        let (after, reply) = (&replies[1], &replies[replies.len() - 1]);
        let error = [after, reply].into_iter().find(|reply| reply.is_error());
        if let Some(error) = error {
            if !is_excuse(error) {
                actor.world.complain(format!("a replica answered {error:?} to a reader"));
            }
            continue;
        }
        let Known { value: written, position, flushes } = known;
        let what = format!("register {register}, read on a replica after {position},");
        match read_value(register, reply) {
            Err(error) => actor.world.complain(format!("{what} {error:#}")),
            Ok(Some(value)) if value < written => {
                actor.world.complain(format!("{what} had {value}, and {written} before that"));
            }
            Ok(None) if replicas.flushes_begun.load(SeqCst) == flushes => {
                actor.world.complain(format!("{what} had nothing, and {written} before that"));
            }
            Ok(_) => {}
        }
    }
}

/// Looks at a replica again and again: it goes forward only, and shows nothing by halves.
pub(crate) fn look(actor: &mut Actor<'_>, _: usize) {
    let forward_only = replicas(actor).began_alike;
    let Some(mut client) = visit(actor) else { return };
    let select = [format!("SELECT {}", data::HOME)];
    if ask(&mut client, &select).is_none() {
        return;
    }
    let mut seen: BTreeMap<usize, u64> = BTreeMap::new();
    while actor.world.goes_on() {
        actor.rest(5000);
        if actor.random.percent(15) {
            let sides = ["MULTI", "GET mark", "SELECT 3", "GET side", "SELECT 4", "GET side"];
            let sides = sides.iter().chain(&["SELECT 2", "EXEC"]).map(|line| (*line).to_owned());
            let Some(replies) = ask(&mut client, &sides.collect::<Vec<_>>()) else { return };
            if let Some(Reply::Array(replies)) = replies.last()
                && let Ok(mark) = data::value(&replies[0])
                && let Some(wrong) = data::wrong_sides(mark.unwrap_or(0), &replies[2], &replies[4])
            {
                actor.world.complain(format!("a replica showed the middle of a swap: {wrong}"));
            }
            continue;
        }
        let bundle = actor.random.percent(30).then(|| actor.random.below(data::BUNDLES));
        let register = actor.random.below(data::ALL_REGISTERS);
        let commands = bundle.map_or_else(|| reading(register), |own| vec![data::read_bundle(own)]);
        let Some(replies) = ask(&mut client, &commands) else { return };
        let reply = &replies[replies.len() - 1];
        if reply.is_error() {
            if !is_excuse(reply) {
                actor.world.complain(format!("a replica answered {reply:?} to a reader"));
            }
            continue;
        }
        if bundle.is_some() {
            if let Some(wrong) = data::wrong_bundle(reply) {
                actor.world.complain(format!("on a replica: {wrong}"));
            }
            continue;
        }
        match read_value(register, reply) {
            Err(error) => {
                actor.world.complain(format!("on a replica: register {register}: {error:#}"))
            }
            Ok(None) => {}
            Ok(Some(value)) => {
                let before = seen.insert(register, value).unwrap_or(0);
                if forward_only && value < before {
                    actor.world.complain(format!(
                        "register {register} of a replica went back from {before} to {value}"
                    ));
                }
            }
        }
    }
}

/// Gives keys and fields short times to live, and longer ones in time or too late: only the primary
/// says which of them have expired.
pub(crate) fn prolong(actor: &mut Actor<'_>, _: usize) {
    let key = format!("short:{}", actor.random.below(6));
    let time = 5 + actor.random.below(60);
    let is_hash = actor.random.percent(40);
    let first = match is_hash {
        true => vec![format!("HSET h{key} f 1 g 2"), format!("HPEXPIRE h{key} {time} FIELDS 1 f")],
        false => vec![format!("SET {key} 1 PX {time}")],
    };
    actor.exchange(&first);
    // About when the time is over.
    actor.rest(time as i64 * 1500);
    let can_persist = replicas(actor).persist_fields;
    let second = match (is_hash, actor.random.below(6)) {
        (true, 0) if can_persist => format!("HGETEX h{key} PERSIST FIELDS 1 f"),
        (true, 1) if can_persist => format!("HPERSIST h{key} FIELDS 1 f"),
        (true, 2) => format!("HINCRBY h{key} f 1"),
        (true, 3) => format!("HGETEX h{key} PX 10000000 FIELDS 1 f"),
        (true, _) => format!("HPEXPIRE h{key} 10000000 FIELDS 1 f"),
        (false, 0) => format!("PERSIST {key}"),
        (false, 1) => format!("INCR {key}"),
        (false, 2) => format!("APPEND {key} 1"),
        (false, 3) => format!("GETEX {key} PX 10000000"),
        (false, _) => format!("PEXPIRE {key} 10000000"),
    };
    actor.call(&second);
    actor.rest(3000);
}

/// Writes many keys in one transaction, of which nobody sees a part.
pub(crate) fn bundle(actor: &mut Actor<'_>, number: usize) {
    let bundle = actor.random.below(data::BUNDLES);
    let value = 1 + actor.random.below(1_000_000) as u64 * 10 + number as u64;
    let commands = data::write_bundle(bundle, value, &mut actor.random);
    actor.exchange(&commands);
    actor.rest(8000);
}

/// Random commands that write, which servers of all kinds understand alike.
pub(crate) fn make_traffic(actor: &mut Actor<'_>, _: usize) {
    let Ok(mut client) = Client::connect(actor.world.port) else { return actor.rest(5000) };
    let mut traffic = Traffic::new(actor.random.bits());
    // A connection that ends in between is none of its concerns.
    while actor.world.goes_on() && traffic.write(&mut client, 10).is_ok() {
        actor.rest(4000);
    }
}

/// Large values, come and gone, which fill links, backlogs and copies.
pub(crate) fn lift(actor: &mut Actor<'_>, _: usize) {
    let (size, key) = (5000 + actor.random.below(250_000), actor.random.below(4));
    let command = match actor.random.below(5) {
        0 | 1 => format!("SET heavy:{key} {}", "x".repeat(size)),
        2 => format!("APPEND heavy:{key} {}", "y".repeat(size / 4)),
        3 => format!("RPUSH heavy:list{}", " element".repeat(size / 100)),
        _ => "UNLINK heavy:0 heavy:1 heavy:list".to_owned(),
    };
    actor.call(&command);
    actor.rest(80_000);
}

/// Ends what clients of these servers still wait for.
pub(crate) fn interrupt(ports: impl Iterator<Item = u16>) {
    for port in ports {
        if let Ok(mut client) = Client::connect(port) {
            // A server that is killed says nothing.
            let _ = client.call_text("CLIENT KILL TYPE normal SKIPME yes");
            let _ = client.call_text("CLIENT KILL TYPE pubsub");
        }
    }
}

/// Looks after all servers: rewrites, snapshots, and figures that somebody wants.
pub(crate) fn keep(actor: &mut Actor<'_>, _: usize) {
    let replicas = replicas(actor);
    let ports: Vec<u16> = replicas.ports.iter().copied().chain([actor.world.port]).collect();
    let port = *actor.random.pick(&ports);
    if let Ok(mut client) = Client::connect(port) {
        let command = match actor.random.below(8) {
            0..3 => "BGREWRITEAOF",
            3 | 4 => "BGSAVE",
            5 => "INFO everything",
            6 => "CLIENT LIST",
            _ => "ROLE",
        };
        // A server that is killed says nothing.
        let _ = client.call_text(command);
    }
    actor.rest(300_000);
}
