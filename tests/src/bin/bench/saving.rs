//! How a snapshot or a rewrite affects clients: requests at a steady pace while nothing is saved
//! and while something is, under writes without pause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply};
use tests::process::proportional_bytes;
use tests::random::Random;
use tests::server::{Server, Target};

use crate::background::Background;
use crate::pinning::Places;
use crate::{Options, line};

/// Between two requests of the prober.
const PACE: Duration = Duration::from_millis(1);
/// How long the prober watches a server that saves nothing.
const IDLE: Duration = Duration::from_secs(6);
/// Bytes of a value.
const VALUE_SIZE: usize = 200;
/// How long a save may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The observations of one save, times in milliseconds.
struct Seen {
    idle: Vec<f64>,
    saving: Vec<f64>,
    /// Writes to the large sorted set while it was saved.
    writes: Vec<f64>,
    seconds: f64,
    /// The highest memory, as a multiple of the memory before.
    memory: f64,
}

/// Measures both servers with both ways of saving.
pub(crate) fn noticed(options: &Options) -> Result<()> {
    let ways = ["BGSAVE", "BGREWRITEAOF"];
    if !ways.iter().any(|way| options.wants(way)) {
        return Ok(());
    }
    line(
        "\nMilliseconds that requests took, every millisecond one, under 4 connections that write: \
         99.9 % while\nnothing is saved and while it is saved (bar: twice), the longest (20), the \
         longest write to a set of\n1 000 000 members (10); seconds of the save; memory as a \
         multiple of that before (1.05)",
    )?;
    line(&format!(
        "{:28} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "", "idle", "saving", "longest", "to set", "seconds", "memory"
    ))?;
    for way in ways.into_iter().filter(|way| options.wants(way)) {
        for target in [Target::Dunlin, Target::Reference] {
            let seen = watch(target, way, options)?;
            let longest = |times: &[f64]| times.last().copied().unwrap_or(f64::NAN);
            line(&format!(
                "{:28} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8.3}",
                format!("{way}, {}", target.name()),
                percentile(&seen.idle),
                percentile(&seen.saving),
                longest(&seen.saving),
                longest(&seen.writes),
                seen.seconds,
                seen.memory
            ))?;
        }
    }
    Ok(())
}

/// The value that 99.9 % of sorted times do not exceed.
fn percentile(times: &[f64]) -> f64 {
    times.get(times.len() * 999 / 1000).copied().unwrap_or(f64::NAN)
}

fn watch(target: Target, way: &str, options: &Options) -> Result<Seen> {
    let keys = options.scaled(3_000_000);
    let places = Places::new(1)?;
    let mode: &[(&str, &str)] = match way {
        "BGSAVE" => &[("appendonly", "no")],
        _ => &[("appendonly", "yes"), ("auto-aof-rewrite-percentage", "0")],
    };
    let server = places.start_with(target, 1, mode)?;
    let mut client = server.connect()?;
    fill_keys(&mut client, keys)?;
    fill_sorted_set(&mut client, options.scaled(1_000_000))?;
    let writes = format!("-c 4 -P 4 -t set -d {VALUE_SIZE} -r {keys}");
    let _writers = Background::start(&server, &writes)?;
    std::thread::sleep(Duration::from_secs(1));

    let never = AtomicBool::new(false);
    let idle = probe(&server, keys, &never, IDLE)?;
    let (before, over) = (proportional_bytes(server.pid())?, AtomicBool::new(false));
    std::thread::scope(|scope| {
        let prober = scope.spawn(|| probe(&server, keys, &over, PATIENCE));
        std::thread::sleep(Duration::from_millis(500));
        let saved = save(&mut client, way, server.pid());
        over.store(true, Ordering::Relaxed);
        let saving = prober.join().map_err(|_| anyhow::anyhow!("the prober panicked"))??;
        let (seconds, mut writes, peak) = saved?;
        writes.sort_by(f64::total_cmp);
        Ok(Seen { idle, saving, writes, seconds, memory: peak as f64 / before as f64 })
    })
}

/// Saves, and writes to the large set meanwhile: seconds, milliseconds of the writes, peak bytes.
fn save(client: &mut Client, way: &str, pid: u32) -> Result<(f64, Vec<f64>, u64)> {
    let began = Instant::now();
    ensure!(!client.call(&[way])?.is_error(), "{way} was refused");
    let (mut writes, mut peak) = (Vec::new(), 0);
    while began.elapsed() < PATIENCE {
        peak = peak.max(proportional_bytes(pid)?);
        let sent = Instant::now();
        client.call(&["ZADD", "large", "7", "member:7"])?;
        writes.push(sent.elapsed().as_secs_f64() * 1e3);
        let info = client.call(&["INFO", "persistence"])?;
        let text = String::from_utf8_lossy(info.text().context("INFO is text")?).into_owned();
        let busy = ["rdb_bgsave_in_progress:1", "aof_rewrite_in_progress:1"];
        if !busy.iter().any(|field| text.contains(field)) {
            return Ok((began.elapsed().as_secs_f64(), writes, peak));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    anyhow::bail!("{way} did not end")
}

/// Sends requests at a steady pace until `over`, or for this long. A time counts from when the
/// request was due.
fn probe(server: &Server, keys: usize, over: &AtomicBool, most: Duration) -> Result<Vec<f64>> {
    // With a higher priority than the load on the same processor, if that is allowed.
    let _ = rustix::process::setpriority_process(None, -15);
    let mut client = server.connect()?;
    let mut random = Random::new(1);
    let (began, mut times) = (Instant::now(), Vec::new());
    let mut due = began;
    while !over.load(Ordering::Relaxed) && began.elapsed() < most {
        due += PACE;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let key = name_of(random.below(keys));
        let reply = match times.len() % 2 {
            0 => client.call(&["GET", &key])?,
            _ => client.call(&["SET", &key, "yyy"])?,
        };
        ensure!(!matches!(reply, Reply::Error(_)), "{reply:?}");
        times.push(due.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Sets every key that the writers draw from: a new key would count as memory of the save.
fn fill_keys(client: &mut Client, keys: usize) -> Result<()> {
    let value = "x".repeat(VALUE_SIZE);
    for first in (0..keys).step_by(1000) {
        let pairs = (first..first + 1000).map(|key| [name_of(key), value.clone()]);
        let words: Vec<_> = ["MSET".to_owned()].into_iter().chain(pairs.flatten()).collect();
        client.call(&words)?;
    }
    Ok(())
}

/// What redis-benchmark calls a key.
fn name_of(key: usize) -> String {
    format!("key:{key:012}")
}

fn fill_sorted_set(client: &mut Client, members: usize) -> Result<()> {
    for first in (0..members).step_by(1000) {
        let mut words = vec!["ZADD".to_owned(), "large".to_owned()];
        for member in first..first + 1000 {
            words.extend([member.to_string(), format!("member:{member}")]);
        }
        client.call(&words)?;
    }
    Ok(())
}
