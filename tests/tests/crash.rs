//! The process is killed at random instants under load, started again, and asked for all that it
//! had acknowledged.
//!
//! `DUNLIN_CRASHES` says how often in each mode; 3 unless set. `DUNLIN_SEED` chooses the instants.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, Reply};
use tests::random::Random;
use tests::server::{Server, Target};

/// Connections that write.
const WRITERS: usize = 4;

/// The data of this many rounds is kept, so that some is old when the process is killed.
const KEPT_ROUNDS: u64 = 5;

/// What `everysec` may lose at most, before the last write that it acknowledged.
const MAY_LOSE: Duration = Duration::from_secs(2);

/// How far one connection's work got. Step n makes all its keys say n.
struct Work {
    writer: usize,
    /// The last step that was begun.
    begun: u64,
    /// The steps that were acknowledged as a whole, with their times.
    acknowledged: Vec<(Instant, u64)>,
}

impl Work {
    /// The last step that must have survived, if what is younger than `may_lose` at the time `last`
    /// need not.
    fn promised(&self, last: Instant, may_lose: Duration) -> u64 {
        let old = |at: &Instant| last.saturating_duration_since(*at) >= may_lose;
        self.acknowledged.iter().rev().find(|(at, _)| old(at)).map_or(0, |(_, step)| *step)
    }
}

fn from_environment(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// Sets two keys; it knows the first.
const SCRIPT: &str = "redis.call('set', KEYS[1], ARGV[1]) redis.call('set', ARGV[2], ARGV[1])";
/// A function that does the same.
const LIBRARY: &str = "#!lua name=crash\n\
    redis.register_function('both', function(KEYS, ARGV) \
    redis.call('set', KEYS[1], ARGV[1]) redis.call('set', ARGV[2], ARGV[1]) end)";

/// One step: a counter, a list, a sorted set, two keys that change together, by a transaction, a
/// script and a function, and an entry of a stream that a group gets and settles.
fn step(client: &mut Client, prefix: &str, step: u64) -> Result<()> {
    let (number, stream) = (step.to_string(), format!("{prefix}:stream"));
    if step == 1 {
        client.call(&["XGROUP", "CREATE", &stream, "group", "0", "MKSTREAM"])?;
    }
    client.send(&["XADD", &stream, "*", "step", &number])?;
    let read = ["XREADGROUP", "GROUP", "group", "one", "COUNT", "1", "STREAMS", &stream, ">"];
    let id = entry_id(client, &read)?;
    client.send(&["XACK", &stream, "group", &id])?;
    let (first, second) = (format!("{prefix}:three"), format!("{prefix}:four"));
    client.send(&["EVAL", SCRIPT, "1", &first, &number, &second])?;
    let (first, second) = (format!("{prefix}:five"), format!("{prefix}:six"));
    client.send(&["FCALL", "both", "1", &first, &number, &second])?;
    client.send(&["INCR", &format!("{prefix}:counter")])?;
    client.send(&["RPUSH", &format!("{prefix}:list"), &step.to_string()])?;
    client.send(&["ZADD", &format!("{prefix}:scores"), &step.to_string(), "member"])?;
    client.send(&["MULTI"])?;
    // In different slots, so that nothing but the transaction keeps them together.
    client.send(&["SET", &format!("{prefix}:one"), &step.to_string()])?;
    client.send(&["SET", &format!("{prefix}:other"), &step.to_string()])?;
    client.send(&["EXEC"])?;
    for _ in 0..10 {
        let Received::Reply(reply) = client.receive()? else { bail!("closed") };
        ensure!(!reply.is_error(), "{reply:?}");
    }
    Ok(())
}

/// Sends a command behind one that was sent, and returns the ID of the only entry in its reply.
fn entry_id(client: &mut Client, read: &[&str]) -> Result<String> {
    client.send(read)?;
    for is_entry in [false, true] {
        let Received::Reply(reply) = client.receive()? else { bail!("closed") };
        if is_entry {
            let mut part = reply;
            // The stream, its entries, the entry, its ID.
            for at in [0, 1, 0, 0] {
                let parts = part.elements().context("an entry")?;
                part = parts.into_iter().nth(at).context("an entry")?;
            }
            return Ok(String::from_utf8(part.text().context("an ID")?.to_vec())?);
        }
    }
    bail!("there is an entry")
}

/// Works until the server is gone.
fn work(port: u16, writer: usize, round: u64) -> Work {
    let mut work = Work { writer, begun: 0, acknowledged: Vec::new() };
    let Ok(mut client) = Client::connect(port) else { return work };
    let prefix = format!("{round}:{writer}");
    loop {
        work.begun += 1;
        if step(&mut client, &prefix, work.begun).is_err() {
            return work;
        }
        work.acknowledged.push((Instant::now(), work.begun));
    }
}

fn figure(client: &mut Client, words: &[&str]) -> Result<u64> {
    match client.call(words)? {
        Reply::Integer(number) => Ok(u64::try_from(number)?),
        Reply::Bulk(text) => Ok(std::str::from_utf8(&text)?.parse()?),
        Reply::Nil => Ok(0),
        other => anyhow::bail!("{words:?} answers {other:?}"),
    }
}

/// Holds what is there against what was begun and what was promised.
fn check(client: &mut Client, round: u64, work: &Work, promised: u64) -> Result<()> {
    let key = |name: &str| format!("{round}:{}:{name}", work.writer);
    let (counter, list) = (key("counter"), key("list"));
    let mut pairs = Vec::new();
    for (first, second) in [("one", "other"), ("three", "four"), ("five", "six")] {
        let one = figure(client, &["GET", &key(first)])?;
        let other = figure(client, &["GET", &key(second)])?;
        ensure!(one == other, "{first} and {second} are torn: {one} and {other}");
        pairs.push(one);
    }
    let [transaction, script, function] = pairs[..] else { bail!("three pairs") };
    let (added, delivered) = stream(client, &key("stream"))?;
    let length = figure(client, &["LLEN", &list])?;
    let found = [
        ("counter", figure(client, &["GET", &counter])?),
        ("list", length),
        ("scores", figure(client, &["ZSCORE", &key("scores"), "member"])?),
        ("the transaction", transaction),
        ("the script", script),
        ("the function", function),
        ("the stream", added),
        ("the group", delivered),
    ];
    for (name, step) in found {
        let range = promised..=work.begun;
        ensure!(range.contains(&step), "{name} says {step}, which is not in {range:?}");
    }
    let last = client.call(&["LRANGE", &list, "0", "-1"])?.elements().context("a list")?;
    let expected = (1..=length).map(|step| Reply::Bulk(step.to_string().into_bytes()));
    ensure!(last.into_iter().eq(expected), "the list has a gap");
    Ok(())
}

/// How many entries a stream has, and how many its group has got: all but the last are settled.
fn stream(client: &mut Client, key: &str) -> Result<(u64, u64)> {
    let entries = client.call(&["XRANGE", key, "-", "+"])?.elements().context("a stream")?;
    for (at, entry) in entries.iter().enumerate() {
        let Reply::Array(parts) = entry else { bail!("{entry:?}") };
        let fields = [Reply::Bulk(b"step".to_vec()), Reply::Bulk((at + 1).to_string().into())];
        ensure!(parts[1] == Reply::Array(fields.into()), "entry {at} of {key}: {entry:?}");
    }
    let Reply::Array(groups) = client.call(&["XINFO", "GROUPS", key])? else {
        return Ok((0, 0));
    };
    let Some(Reply::Array(fields)) = groups.into_iter().next() else {
        ensure!(entries.is_empty(), "{key} has lost its group");
        return Ok((0, 0));
    };
    let (Reply::Integer(pending), delivered) = (&fields[5], &fields[9]) else {
        bail!("{fields:?}")
    };
    let delivered = match delivered {
        Reply::Integer(delivered) => u64::try_from(*delivered)?,
        _ => 0,
    };
    ensure!(*pending <= 1 && delivered <= entries.len() as u64, "{key}: {fields:?}");
    Ok((entries.len() as u64, delivered))
}

fn crash(policy: &str, may_lose: Duration, longest: Duration) -> Result<()> {
    let options = [("appendonly", "yes"), ("appendfsync", policy), ("threads", "2")];
    let mut server = Server::start(Target::Dunlin, &options)?;
    let seed = from_environment("DUNLIN_SEED", 1);
    let mut random = Random::new(seed);
    server.connect()?.call(&["FUNCTION", "LOAD", LIBRARY])?;
    for round in 0..from_environment("DUNLIN_CRASHES", 3) {
        let port = server.port();
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| thread::spawn(move || work(port, writer, round))).collect();
        let most = i64::try_from(longest.as_millis())?;
        let first = random.between(most / 8, most / 2).unsigned_abs();
        thread::sleep(Duration::from_millis(first));
        if random.percent(70) {
            // The instant falls into a rewrite, or soon after.
            server.connect()?.call_text("BGREWRITEAOF")?;
        }
        thread::sleep(Duration::from_millis(random.between(0, most / 2).unsigned_abs()));
        server.kill();
        let works: Vec<Work> =
            writers.into_iter().map(|writer| writer.join().expect("it ends")).collect();
        ensure!(works.iter().any(|work| work.begun > 1), "nothing was written");
        // While the disk stands still nothing is acknowledged, so that this time does not count.
        let last = works.iter().flat_map(|work| work.acknowledged.last()).map(|(at, _)| *at).max();
        server.start_again()?;
        let mut client = server.connect()?;
        for work in &works {
            let promised = last.map_or(0, |last| work.promised(last, may_lose));
            check(&mut client, round, work, promised)
                .with_context(|| format!("{policy}, seed {seed}, round {round}"))?;
        }
        // What was loaded is what the files say, once more.
        let digest = client.call_text("DEBUG DIGEST")?;
        drop(client);
        server.kill();
        server.start_again()?;
        let mut client = server.connect()?;
        ensure!(client.call_text("DEBUG DIGEST")? == digest, "round {round}");
        if round % KEPT_ROUNDS == KEPT_ROUNDS - 1 {
            client.call_text("FLUSHALL")?;
        }
    }
    Ok(())
}

#[test]
fn under_always_nothing_acknowledged_is_lost() -> Result<()> {
    crash("always", Duration::ZERO, Duration::from_secs(1))
}

#[test]
fn under_everysec_nothing_old_is_lost() -> Result<()> {
    crash("everysec", MAY_LOSE, 2 * MAY_LOSE)
}

#[test]
fn without_syncs_the_file_is_whole_all_the_same() -> Result<()> {
    crash("no", Duration::MAX, Duration::from_millis(400))
}
