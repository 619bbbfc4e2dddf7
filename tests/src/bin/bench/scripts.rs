//! Scripts and streams, beside Redis 8.0 and Valkey.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply};
use tests::process::scheduled_nanoseconds;
use tests::server::{Server, Target};

use crate::load::measure_words;
use crate::pinning::Places;
use crate::rivals::{self, Bars};
use crate::{Options, Row, heading, line, median};

/// A small script: it reads a key and writes it.
const SCRIPT: &str = "redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], ARGV[1])";
const EVAL: &[&str] =
    &["-c", "50", "-P", "16", "-r", "1000000", "EVAL", SCRIPT, "1", "key:__rand_int__", "xxx"];

/// An entry of five fields, which has 100 bytes in all.
const XADD: &[&str] = &[
    "-c",
    "50",
    "-P",
    "16",
    "-r",
    "1000000",
    "XADD",
    "stream",
    "MAXLEN",
    "~",
    "1000000",
    "*",
    "temperature",
    "00021.50",
    "humidity",
    "00000.47",
    "pressure",
    "001013.2",
    "sensor",
    "__rand_int__",
    "place",
    "hall-004",
];

/// Entries that a consumer takes and acknowledges at once.
const TAKEN: usize = 10;

/// Commands that both rivals have: microseconds of processor time for each call.
pub(crate) fn beside_rivals(options: &Options) -> Result<()> {
    const NAMES: [&str; 4] =
        ["EVAL -P 16", "XADD -P 16", "XREADGROUP and XACK of 10", "the same, 50 consumers"];
    if !NAMES.iter().any(|name| options.wants(name)) {
        return Ok(());
    }
    let (places, targets) = (Places::new(1)?, rivals::all());
    let servers = rivals::start(&places, &targets)?;
    let title = "Microseconds of processor time per call, one thread";
    rivals::heading(title, &targets)?;
    for (name, count, words, better) in
        [(NAMES[0], 500_000, EVAL, 0.70), (NAMES[1], 1_000_000, XADD, 0.60)]
    {
        if options.wants(name) {
            let count = options.scaled(count);
            let figures =
                rivals::in_turn(options, &servers, |server| measure_words(server, count, words))?;
            let bars = Bars { oldest: 1.0, better: Some(better) };
            rivals::row(name, &targets, &figures, bars)?;
        }
    }
    for (name, consumers) in [(NAMES[2], 1), (NAMES[3], 50)] {
        if options.wants(name) {
            let rounds = options.scaled(30_000).next_multiple_of(consumers);
            let take = |server: &Server| consume(server, rounds, consumers);
            let figures = rivals::in_turn(options, &servers, take)?;
            let bars = Bars { oldest: 1.0, better: Some(0.70) };
            rivals::row(name, &targets, &figures, bars)?;
        }
    }
    Ok(())
}

/// Lets consumers of a group take entries and acknowledge them. Each is a connection, and all of
/// them send before any of them receives. Microseconds of processor time for each round of both
/// commands.
fn consume(server: &Server, rounds: usize, consumers: usize) -> Result<f64> {
    let mut client = server.connect()?;
    client.call(&["DEL", "work"])?;
    client.call(&["XGROUP", "CREATE", "work", "group", "0", "MKSTREAM"])?;
    for _ in 0..rounds {
        for _ in 0..TAKEN {
            client.send(&["XADD", "work", "*", "job", "0123456789", "state", "new"])?;
        }
        for _ in 0..TAKEN {
            client.receive()?;
        }
    }
    let names: Vec<String> = (0..consumers).map(|number| format!("worker-{number:02}")).collect();
    let mut clients = (0..consumers).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    let before = scheduled_nanoseconds(server.pid())?;
    for _ in 0..rounds / consumers {
        for (client, name) in clients.iter_mut().zip(&names) {
            let words = ["GROUP", "group", name, "COUNT", "10", "STREAMS", "work", ">"];
            client.send(&[&["XREADGROUP"][..], &words].concat())?;
        }
        for client in &mut clients {
            let ids = ids(reply(client)?).context("entries of one stream")?;
            ensure!(ids.len() == TAKEN, "{} entries instead of {TAKEN}", ids.len());
            let head = [&b"XACK"[..], b"work", b"group"];
            let words: Vec<&[u8]> = head.into_iter().chain(ids.iter().map(|id| &**id)).collect();
            client.send(&words)?;
        }
        for client in &mut clients {
            let acknowledged = reply(client)?;
            ensure!(acknowledged == Reply::Integer(TAKEN as i64), "{acknowledged:?}");
        }
    }
    let spent = scheduled_nanoseconds(server.pid())?.saturating_sub(before);
    Ok(spent as f64 / rounds as f64 / 1e3)
}

fn reply(client: &mut Client) -> Result<Reply> {
    match client.receive()? {
        Received::Reply(reply) => Ok(reply),
        other => bail!("{other:?} instead of a reply"),
    }
}

/// The ids of entries in a reply of XREADGROUP from one stream.
fn ids(reply: Reply) -> Option<Vec<Vec<u8>>> {
    let stream = reply.elements()?.pop()?.elements()?;
    let entries = stream.into_iter().nth(1)?.elements()?;
    entries
        .into_iter()
        .map(|entry| Some(entry.elements()?.into_iter().next()?.text()?.to_vec()))
        .collect()
}

/// Scripts on two workers beside one, and reads beside scripts that run for long.
pub(crate) fn on_two_workers(options: &Options) -> Result<()> {
    const NAME: &str = "2 workers, EVAL -P 16";
    if options.wants(NAME) {
        let places = Places::new(2)?;
        let two = places.start(Target::Dunlin, 2)?;
        let one = places.start(Target::Dunlin, 1)?;
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..options.repetitions {
            for (server, times) in [&two, &one].into_iter().zip(&mut times) {
                times.push(measure_words(server, options.scaled(500_000), EVAL)?);
            }
        }
        let [ours, theirs] = times.map(median);
        heading("Microseconds of processor time per script, dunlin", "two", "one")?;
        Row { name: NAME.to_owned(), ours, theirs, bar: 1.15 }.print()?;
    }
    beside_long_scripts(options)
}

/// The times of GETs on one worker while scripts of 50 ms run on the other.
fn beside_long_scripts(options: &Options) -> Result<()> {
    if !options.wants("GET beside scripts of 50 ms") {
        return Ok(());
    }
    let server = Server::start(Target::Dunlin, &[("threads", "2")])?;
    let turns = turns_of_50_ms(&mut server.connect()?)?;
    let ended = AtomicBool::new(false);
    let times = scope(|scope| {
        let scripts = scope.spawn(|| -> Result<()> {
            let mut client = server.connect()?;
            while !ended.load(Ordering::Relaxed) {
                client.call(&["EVAL", BUSY, "1", "{script}key", &turns])?;
            }
            Ok(())
        });
        let times = reads(&server, options.scaled(20_000));
        ended.store(true, Ordering::Relaxed);
        scripts.join().map_err(|_| anyhow::anyhow!("the scripts' thread panicked"))??;
        times
    })?;
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied();
    line(&format!(
        "\nGETs of the other worker beside scripts of 50 ms, in ms (bar: p99 of 1)\n{:28} p50 {:.3}, p99 {:.3}, \
         longest {:.3}",
        "dunlin",
        at(0.5).unwrap_or(f64::NAN),
        at(0.99).unwrap_or(f64::NAN),
        times.last().copied().unwrap_or(f64::NAN)
    ))
}

/// A script that counts.
const BUSY: &str = "local sum = 0 for i = 1, tonumber(ARGV[1]) do sum = sum + i end return sum";

/// How far the script has to count to take 50 ms.
fn turns_of_50_ms(client: &mut Client) -> Result<String> {
    let begun = Instant::now();
    client.call(&["EVAL", BUSY, "0", "1000000"])?;
    Ok(format!("{:.0}", 0.05 / begun.elapsed().as_secs_f64() * 1e6))
}

/// Milliseconds that GETs took, in order, of a connection whose worker runs no script: connections
/// are tried until one is not kept waiting.
fn reads(server: &Server, count: usize) -> Result<Vec<f64>> {
    let mut read = {
        let mut client = (0..8).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
        let mut waits = Vec::new();
        for (number, client) in client.iter_mut().enumerate() {
            let begun = Instant::now();
            for _ in 0..20 {
                client.call(&["GET", "key"])?;
            }
            waits.push((begun.elapsed(), number));
        }
        let (_, least) = waits.into_iter().min().context("there are connections")?;
        client.swap_remove(least)
    };
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        read.call(&["GET", "key"])?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        // A reader that never rests would take the generator's processor from the scripts' worker.
        std::thread::sleep(Duration::from_micros(200));
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}
