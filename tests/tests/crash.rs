//! The process is killed at random instants under load, started again, and asked for all that it had
//! acknowledged.
//!
//! `DUNLIN_CRASHES` says how often in each mode; 3 unless set. `DUNLIN_SEED` chooses the instants.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply};
use tests::random::Random;
use tests::server::{Server, Target};

/// Connections that write.
const WRITERS: usize = 4;

/// The data of so many rounds is kept, so that some is old when the process is killed.
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

/// One step: a counter, a list, a sorted set, and two keys that change together.
fn step(client: &mut Client, prefix: &str, step: u64) -> Result<()> {
    client.send(&["INCR", &format!("{prefix}:counter")])?;
    client.send(&["RPUSH", &format!("{prefix}:list"), &step.to_string()])?;
    client.send(&["ZADD", &format!("{prefix}:scores"), &step.to_string(), "member"])?;
    client.send(&["MULTI"])?;
    // In different slots, so that nothing but the transaction keeps them together.
    client.send(&["SET", &format!("{prefix}:one"), &step.to_string()])?;
    client.send(&["SET", &format!("{prefix}:other"), &step.to_string()])?;
    client.send(&["EXEC"])?;
    for _ in 0..7 {
        let received = client.receive()?;
        ensure!(matches!(received, tests::client::Received::Reply(_)), "closed");
    }
    Ok(())
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
    let one = figure(client, &["GET", &key("one")])?;
    let other = figure(client, &["GET", &key("other")])?;
    ensure!(one == other, "a torn transaction: {one} and {other}");
    let length = figure(client, &["LLEN", &list])?;
    let found = [
        ("counter", figure(client, &["GET", &counter])?),
        ("list", length),
        ("scores", figure(client, &["ZSCORE", &key("scores"), "member"])?),
        ("pair", one),
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

fn crash(policy: &str, may_lose: Duration, longest: Duration) -> Result<()> {
    let options = [("appendonly", "yes"), ("appendfsync", policy), ("threads", "2")];
    let mut server = Server::start(Target::Dunlin, &options)?;
    let seed = from_environment("DUNLIN_SEED", 1);
    let mut random = Random::new(seed);
    for round in 0..from_environment("DUNLIN_CRASHES", 3) {
        let port = server.port();
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| thread::spawn(move || work(port, writer, round))).collect();
        let most = i64::try_from(longest.as_millis())?;
        let first = random.between(20, most / 2).unsigned_abs();
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
    crash("always", Duration::ZERO, Duration::from_millis(400))
}

#[test]
fn under_everysec_nothing_old_is_lost() -> Result<()> {
    crash("everysec", MAY_LOSE, 2 * MAY_LOSE)
}

#[test]
fn without_syncs_the_file_is_whole_all_the_same() -> Result<()> {
    crash("no", Duration::MAX, Duration::from_millis(400))
}
