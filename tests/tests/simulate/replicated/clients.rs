//! What runs in the world besides the servers: clients that work, and those that look, ask and
//! compare for the conductor. Each is a process of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind};
use std::process::ExitCode;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::{self, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply};
use tests::random::Random;

use crate::actor::World;
use crate::clients::{ENCRYPTED_PORT, PORT, RECORD, speak_tls};
use crate::data;
use crate::history::Clock;
use crate::record::Record;
use crate::replicas::{Assurance, Replicas, interrupt};
use crate::roles;

/// Where answers are left.
pub(crate) const ANSWER: &str = "/data/answer";
/// How often somebody looks whether the server is still there.
const LOOK: Duration = Duration::from_millis(25);
/// How long clients may go on with what they have begun.
const LAST_WORDS: Duration = Duration::from_millis(60);
/// How long servers may take until they have the same.
const CALM: Duration = Duration::from_secs(150);
/// Databases of a server.
const DATABASES: usize = 16;

/// The port of a server.
pub(crate) fn port(server: usize) -> u16 {
    PORT + u16::try_from(server).unwrap_or(0)
}

/// Where it speaks TLS, if it does.
pub(crate) fn encrypted_port(server: usize) -> u16 {
    ENCRYPTED_PORT + u16::try_from(server).unwrap_or(0)
}

/// What writers of an act are promised.
pub(crate) fn assurances(seed: u64, direct: u64) -> Vec<Assurance> {
    Assurance::draw(&mut Random::new(seed ^ 0x5eed), direct, true)
}

/// The work of an act.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) seed: u64,
    pub(crate) life: u64,
    pub(crate) primary: usize,
    pub(crate) servers: usize,
    /// Replicas that follow the primary itself.
    pub(crate) direct: usize,
    pub(crate) began_alike: bool,
    /// Some clients speak TLS.
    pub(crate) is_encrypted: bool,
    /// How long it lasts, in milliseconds.
    pub(crate) lasts: u64,
}

impl Work {
    /// As arguments of a program.
    pub(crate) fn words(&self) -> Vec<String> {
        let Work { seed, life, primary, servers, direct, began_alike, is_encrypted, lasts } = *self;
        let flags = [began_alike, is_encrypted].map(usize::from);
        let counts = [&[primary, servers, direct][..], &flags].concat();
        let counts = counts.iter().map(usize::to_string);
        [seed, life].iter().map(u64::to_string).chain(counts).chain([lasts.to_string()]).collect()
    }

    fn read(words: &[String]) -> Result<Work> {
        let numbers: Vec<u64> = words.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
        let &[seed, life, primary, servers, direct, alike, tls, lasts] = numbers.as_slice() else {
            bail!("the work has other words: {words:?}")
        };
        let [primary, servers, direct] =
            [primary, servers, direct].map(|number| usize::try_from(number).unwrap_or(0));
        let [began_alike, is_encrypted] = [alike, tls].map(|flag| flag == 1);
        Ok(Work { seed, life, primary, servers, direct, began_alike, is_encrypted, lasts })
    }
}

/// Does what the world has started this process for.
pub(crate) fn run(task: &str, words: &[String]) -> ExitCode {
    let (path, text) = match task {
        "work" => (RECORD, recorded(Work::read(words).and_then(work))),
        "read" => (RECORD, recorded(read(words))),
        "look" => (ANSWER, told(look(words))),
        "ask" => (ANSWER, told(ask(words))),
        "compare" => (ANSWER, told(compare(words))),
        _ => return ExitCode::FAILURE,
    };
    match fs::write(path, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn recorded(record: Result<Record>) -> String {
    let record = record.unwrap_or_else(|error| Record {
        violations: vec![format!("{error:#}")],
        ..Record::default()
    });
    record.text()
}

fn told(answer: Result<String>) -> String {
    answer.unwrap_or_else(|error| format!("! {error:#}"))
}

/// Works until the primary is gone, or the time is over.
fn work(work: Work) -> Result<Record> {
    let begin = Instant::now();
    let port_of_primary = port(work.primary);
    if work.is_encrypted {
        speak_tls(port_of_primary, encrypted_port(work.primary))?;
    }
    let loaded = Client::connect(port_of_primary)
        .and_then(|mut client| client.call(&["FUNCTION", "LOAD", "REPLACE", data::LIBRARY]));
    match loaded {
        Ok(reply) => ensure!(!reply.is_error() || crate::actor::is_refusal(&reply), "{reply:?}"),
        Err(error) => {
            // A server that is gone does not answer. One that is there does.
            let kind = error.root_cause().downcast_ref::<io::Error>().map(io::Error::kind);
            let waited = matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut));
            ensure!(!waited, "the primary does not answer a write");
        }
    }
    let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let (began, clock) = (u64::try_from(wall_clock.as_nanos())?, Clock::new());
    let mut world = World::new(port_of_primary, clock, work.life + 1);
    let ports = (0..work.servers).filter(|server| *server != work.primary).map(port).collect();
    let mut replicas = Replicas::new(ports, assurances(work.seed, work.direct as u64));
    replicas.began_alike = work.began_alike;
    world.replicas = Some(replicas);
    let mut record = Record { began, ..Record::default() };
    let lasts = Duration::from_millis(work.lasts);
    thread::scope(|scope| {
        let players = roles::cast(&world, work.seed, roles::AMONG_REPLICAS);
        let players: Vec<_> = players.into_iter().map(|play| scope.spawn(play)).collect();
        while begin.elapsed() < lasts && Client::connect(port_of_primary).is_ok() {
            sleep(LOOK.min(lasts.saturating_sub(begin.elapsed())));
        }
        world.stop.store(true, SeqCst);
        sleep(LAST_WORDS);
        // Those that wait for an element hear nothing any more.
        while !players.iter().all(|player| player.is_finished()) {
            interrupt((0..work.servers).map(port));
            sleep(LOOK);
        }
        for player in players {
            record.operations.extend(player.join().expect("clients do not panic"));
        }
    });
    record.violations = world.violations.into_inner().expect("no client panics");
    Ok(record)
}

/// A connection to a server that has loaded its data.
fn loaded(port: u16) -> Result<Client> {
    for _ in 0..4000 {
        let mut client = Client::connect(port)?;
        match client.call_text("PING")? {
            Reply::Error(text) if text.starts_with(b"LOADING ") => sleep(Duration::from_millis(5)),
            _ => return Ok(client),
        }
    }
    bail!("the server does not end loading")
}

fn server_port(word: &str) -> Result<u16> {
    Ok(port(word.parse().context("a server's number")?))
}

/// Reads what is there.
fn read(words: &[String]) -> Result<Record> {
    let mut client = loaded(server_port(words.first().context("a server")?)?)?;
    let (state, violations) = data::read_state(&mut client).context("reading the state")?;
    Ok(Record { state, violations, ..Record::default() })
}

/// Sends a command to a server, and returns the answer as text.
fn ask(words: &[String]) -> Result<String> {
    let (server, command) = words.split_first().context("a server")?;
    let reply = loaded(server_port(server)?)?.call(command)?;
    match reply.text() {
        Some(text) if !reply.is_error() => Ok(String::from_utf8_lossy(text).into_owned()),
        _ => bail!("{command:?} was answered {reply:?}"),
    }
}

/// The fields of INFO that the conductor wants.
const FIELDS: [&str; 10] = [
    "role",
    "master_replid",
    "master_repl_offset",
    "master_link_status",
    "master_failover_state",
    "sync_full",
    "aof_enabled",
    "aof_rewrite_in_progress",
    "aof_rewrite_scheduled",
    "loading",
];

fn information(client: &mut Client) -> Result<BTreeMap<String, String>> {
    let reply = client.call_text("INFO everything")?;
    let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    Ok(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// The state of each server that is there.
fn look(words: &[String]) -> Result<String> {
    let mut text = String::new();
    for word in words {
        let told = Client::connect(server_port(word)?).and_then(|mut it| information(&mut it));
        let Ok(told) = told else { continue };
        let _ = write!(text, "{word}");
        for field in FIELDS {
            let _ = write!(text, " {}", told.get(field).map_or("-", String::as_str));
        }
        text.push('\n');
    }
    Ok(text)
}

/// Waits until all servers have what the first one has, and says what differs.
fn compare(words: &[String]) -> Result<String> {
    let ports = words.iter().map(|word| server_port(word)).collect::<Result<Vec<_>>>()?;
    let (first, others) = ports.split_first().context("a server")?;
    let begin = Instant::now();
    let mut last = String::new();
    while begin.elapsed() < CALM {
        last.clear();
        let mut primary = loaded(*first)?;
        for other in others {
            if let Some(different) = difference(&mut primary, &mut loaded(*other)?)? {
                let _ = write!(last, "port {first} and {other}: {different}; ");
            }
        }
        if last.is_empty() {
            return Ok(String::new());
        }
        sleep(Duration::from_millis(200));
    }
    bail!("after {CALM:?} of calm: {last}")
}

/// In words, the first thing that is not the same on two servers at rest.
fn difference(own: &mut Client, other: &mut Client) -> Result<Option<String>> {
    let (here, there) = (information(own)?, information(other)?);
    let get = |from: &BTreeMap<String, String>, name: &str| from.get(name).cloned();
    if get(&there, "master_link_status").as_deref() != Some("up") {
        return Ok(Some("the link is down".to_owned()));
    }
    for name in ["master_replid", "master_repl_offset"] {
        if get(&here, name) != get(&there, name) {
            return Ok(Some(format!("{name} {:?} and {:?}", get(&here, name), get(&there, name))));
        }
    }
    for database in 0..DATABASES {
        let select = format!("SELECT {database}");
        let (mut mine, its) = (content(own, &select)?, content(other, &select)?);
        for (here, there) in mine.iter_mut().zip(&its) {
            if here.0 == there.0 && here != there && are_same_estimate(own, other, &here.0)? {
                here.clone_from(there);
            }
        }
        if mine != its {
            let (mine, its): (BTreeSet<_>, BTreeSet<_>) =
                (mine.into_iter().collect(), its.into_iter().collect());
            let only = |one: &BTreeSet<_>, another: &BTreeSet<_>| {
                one.difference(another).take(3).cloned().collect::<Vec<_>>()
            };
            let (mine, its) = (only(&mine, &its), only(&its, &mine));
            let mut values = String::new();
            for (key, _) in mine.iter().chain(&its).take(1) {
                let dumps = [own.call(&["DUMP", key])?, other.call(&["DUMP", key])?];
                values = dumps.map(|dump| shown(&dump)).join(" and ");
            }
            return Ok(Some(format!("database {database}: {mine:?} and {its:?}: {values}")));
        }
    }
    let list = ["FUNCTION", "LIST", "WITHCODE"];
    let same = own.call(&list)? == other.call(&list)?;
    Ok((!same).then(|| "the functions differ".to_owned()))
}

/// Whether a key is a HyperLogLog, of which one server alone remembers the count: a replica that is
/// asked for it does so for itself, as in Redis.
fn are_same_estimate(own: &mut Client, other: &mut Client, key: &str) -> Result<bool> {
    let registers = |client: &mut Client| -> Result<Option<Vec<u8>>> {
        let reply = client.call(&["GET", key])?;
        let text = reply.text().filter(|text| text.starts_with(b"HYLL") && text.len() >= 16);
        Ok(text.map(|text| [&text[..8], &text[16..]].concat()))
    };
    let registers = (registers(own)?, registers(other)?);
    Ok(registers.0.is_some() && registers.0 == registers.1)
}

fn shown(reply: &Reply) -> String {
    let text = reply.text().unwrap_or(b"nothing");
    text[..text.len().min(300)].escape_ascii().to_string()
}

/// The keys of a database with digests of their values and their deadlines.
fn content(client: &mut Client, select: &str) -> Result<Vec<(String, String)>> {
    client.call_text(select)?;
    let mut keys = client.call_text("KEYS *")?.elements().unwrap_or_default();
    keys.sort_by(|one, other| one.text().cmp(&other.text()));
    let keys: Vec<&[u8]> = keys.iter().filter_map(Reply::text).collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let question = [&b"DEBUG"[..], b"DIGEST-VALUE"];
    let digests = client.call(&[&question[..], &keys].concat())?.elements().context("digests")?;
    let mut request = Vec::new();
    keys.iter().for_each(|key| tests::client::encode(&[b"PEXPIRETIME", *key], &mut request));
    client.send_raw(&request)?;
    let mut content = Vec::new();
    for (key, digest) in keys.iter().zip(digests) {
        let Received::Reply(deadline) = client.receive()? else { bail!("it has closed") };
        let digest = String::from_utf8_lossy(digest.text().unwrap_or_default()).into_owned();
        content.push((key.escape_ascii().to_string(), format!("{digest} {deadline:?}")));
    }
    Ok(content)
}
