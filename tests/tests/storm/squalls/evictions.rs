//! A cache at its memory limit whose append-only file is slow, or that gets large values which fit:
//! it evicts no more than the size of the new data.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Received, encode};
use tests::observe::number;
use tests::server::{Server, Target};

use super::{Gust, done, integer, stalling_writes, together, with_server};

/// Keys of the cache, and the bytes of each value.
const KEYS: usize = 20_000;
const VALUE: usize = 200;
/// Keys that may be evicted beyond those that make room: the limit is judged in steps, and buffers
/// of clients count.
const SLACK: i64 = KEYS as i64 / 10;
/// Bytes that clients, the queue of the file and the tables may take for some time.
const PASSING: u64 = 4 << 20;
/// Bytes of a large value. Two of them may be on their way in the buffer of a client.
const LARGE: usize = 24 << 20;

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let mut rounds = 0;
    while rounds < 2 || gust.goes_on() {
        match rounds % 2 {
            0 => stall(gust)?,
            _ => take_large_values(gust)?,
        }
        rounds += 1;
    }
    Ok(())
}

/// Fills the cache; returns the bytes that it takes.
fn fill(client: &mut Client) -> Result<u64> {
    let value = "v".repeat(VALUE);
    for first in (0..KEYS).step_by(500) {
        let mut request = Vec::new();
        let keys = first..(first + 500).min(KEYS);
        for key in keys.clone() {
            encode(&["SET", &format!("cached:{key}"), &value], &mut request);
        }
        client.send_raw(&request)?;
        for _ in keys {
            ensure!(matches!(client.receive()?, Received::Reply(_)), "the connection was closed");
        }
    }
    number(client, "used_memory")
}

/// Writes go on at the limit while one to the file stalls.
fn stall(gust: &mut Gust) -> Result<()> {
    let policy = *gust.random.pick(&["everysec", "no"]);
    let options = [
        ("threads", "2"),
        ("appendonly", "yes"),
        ("appendfsync", policy),
        ("auto-aof-rewrite-percentage", "0"),
        ("maxmemory-policy", "allkeys-lru"),
    ];
    let mut server = Server::start(Target::Dunlin, &options)?;
    let directory = server.directory().to_string_lossy().into_owned();
    let seconds = gust.random.between(1, 2).unsigned_abs();
    // A thread of the server writes at least once for each pipeline that fills the cache.
    let when = gust.random.between(25, 60);
    let Some(words) = stalling_writes(&directory, seconds, &format!("{when}..{}", when + 1)) else {
        return Ok(());
    };
    server.set_wrapper(&words.iter().map(String::as_str).collect::<Vec<_>>());
    server.start_again()?;
    let result = write_at_limit(&server, seconds, gust);
    with_server(result, &mut server)
}

fn write_at_limit(server: &Server, seconds: u64, gust: &mut Gust) -> Result<()> {
    let mut client = server.connect()?;
    let used = fill(&mut client)?;
    done(&mut client, &["CONFIG", "SET", "maxmemory", &used.to_string()])?;
    let before = integer(&mut client, "DBSIZE")?;
    let mut counts = [0, 0, 0];
    let mut parts: Vec<super::Part<'_>> = Vec::new();
    let until = Instant::now() + Duration::from_millis(seconds * 1000 + 500);
    for count in &mut counts {
        let mut branch = Gust { end: until, ..gust.branch() };
        parts.push(Box::new(move || {
            let mut client = server.connect()?;
            let value = "w".repeat(VALUE);
            while branch.goes_on() {
                let key = format!("new:{}", branch.random.bits());
                done(&mut client, &["SET", &key, &value])?;
                *count += 1;
                branch.rest(2000);
            }
            Ok(())
        }));
    }
    together(parts)?;
    let written = counts.iter().sum();
    judge(&mut client, before, written, "small values while a write stalls")
}

/// The limit leaves room for large values, which come, are saved and go.
fn take_large_values(gust: &mut Gust) -> Result<()> {
    let appends = *gust.random.pick(&["yes", "no"]);
    let options = [
        ("threads", "2"),
        ("appendonly", appends),
        ("auto-aof-rewrite-percentage", "0"),
        ("maxmemory-policy", "allkeys-random"),
    ];
    let mut server = Server::start(Target::Dunlin, &options)?;
    let result = (|| {
        let mut client = server.connect()?;
        let room = 6 * LARGE as u64 + PASSING;
        let limit = fill(&mut client)? + room;
        done(&mut client, &["CONFIG", "SET", "maxmemory", &limit.to_string()])?;
        let before = integer(&mut client, "DBSIZE")?;
        let value = vec![b'x'; LARGE];
        for index in 0..4 {
            let key = format!("large:{index}");
            done(&mut client, &[&b"SET"[..], key.as_bytes(), &value])?;
        }
        judge(&mut client, before, 4, "large values that fit")?;
        let before = integer(&mut client, "DBSIZE")?;
        let command = *gust.random.pick(&["BGSAVE", "BGREWRITEAOF"]);
        done(&mut client, &[command])?;
        let small = "w".repeat(VALUE);
        let mut written = 0;
        while number(&mut client, "rdb_bgsave_in_progress")? != 0
            || number(&mut client, "aof_rewrite_in_progress")? != 0
            || written < 50
        {
            let key = format!("new:{written}");
            done(&mut client, &["SET", &key, &small]).context(command)?;
            written += 1;
        }
        judge(&mut client, before, written, command)
    })();
    with_server(result, &mut server)
}

/// Compares the number of keys with the number before this many came.
fn judge(client: &mut Client, before: i64, came: i64, what: &str) -> Result<()> {
    let after = integer(client, "DBSIZE")?;
    let evicted = before + came - after;
    ensure!(
        evicted <= came + SLACK,
        "{evicted} of {before} keys were evicted for {came} new ones: {what}"
    );
    Ok(())
}
