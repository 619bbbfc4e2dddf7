//! Processor time per operation, under loads of redis-benchmark.

use std::process::Command;

use anyhow::{Result, ensure};
use tests::peers;
use tests::process::scheduled_nanoseconds;
use tests::server::{Server, Target};

use crate::pinning::Places;
use crate::rivals::{self, Bars};
use crate::{Options, Row, heading, median};

/// A load of redis-benchmark.
struct Load {
    name: &'static str,
    /// Operations: requests as redis-benchmark counts them.
    count: usize,
    /// The options of redis-benchmark besides the number of operations.
    arguments: &'static str,
    /// What two workers may cost beside one, or Dunlin beside Redis 7.0.
    bar: f64,
    /// What Dunlin should cost beside the better one of Redis 8.0 and Valkey.
    goal: Option<f64>,
}

const fn load(name: &'static str, count: usize, arguments: &'static str, bar: f64) -> Load {
    Load { name, count, arguments, bar, goal: None }
}

impl Load {
    const fn goal(self, goal: f64) -> Load {
        Load { goal: Some(goal), ..self }
    }
}

const SMALL: &[Load] = &[
    load("SET", 200_000, "-t set -r 1000000", 0.85).goal(0.80),
    load("GET", 200_000, "-t get -r 1000000", 0.85).goal(0.80),
    load("SET -P 16", 2_000_000, "-t set -r 1000000 -P 16", 0.50).goal(0.62),
    load("GET -P 16", 2_000_000, "-t get -r 1000000 -P 16", 0.50).goal(0.68),
    load("INCR -P 16", 1_500_000, "-t incr -r 1000000 -P 16", 0.50).goal(0.66),
    load("SET -P 100", 3_000_000, "-t set -r 1000000 -P 100", 0.30).goal(0.38),
    load("GET -P 100", 3_000_000, "-t get -r 1000000 -P 100", 0.30).goal(0.45),
    load("MSET of 10, -P 16", 300_000, "-t mset -r 1000000 -P 16", 0.45).goal(0.47),
    load("ZADD -P 16", 1_500_000, "-t zadd -r 100000 -P 16", 0.60).goal(0.45),
    load("LPUSH -P 16", 1_500_000, "-t lpush -d 100 -P 16", 0.85).goal(0.66),
    load("RPOP -P 16", 1_500_000, "-t rpop -P 16", 0.85).goal(0.68),
    load("SADD -P 16", 1_500_000, "-t sadd -r 100000 -P 16", 0.85).goal(0.68),
    load("HSET -P 16", 1_500_000, "-t hset -r 100000 -P 16", 0.85).goal(0.66),
    load("LPUSH -P 100", 2_000_000, "-t lpush -d 100 -P 100", 0.55),
    load("RPOP -P 100", 2_000_000, "-t rpop -P 100", 0.55),
    load("SADD -P 100", 2_000_000, "-t sadd -r 100000 -P 100", 0.55),
    load("HSET -P 100", 2_000_000, "-t hset -r 100000 -P 100", 0.55),
    load("LRANGE of 100, -P 16", 200_000, "-t lrange_100 -P 16", 0.60).goal(0.55),
    load("LRANGE of 600, -P 16", 60_000, "-t lrange_600 -P 16", 0.60).goal(0.50),
];

/// Two workers beside one, which may cost a little more for the same operation.
const SHARED: &[Load] = &[
    load("2 workers, SET -P 16", 2_000_000, "-t set -r 1000000 -P 16", 1.15),
    load("2 workers, GET -P 16", 2_000_000, "-t get -r 1000000 -P 16", 1.15),
    load("2 workers, SET -P 100", 3_000_000, "-t set -r 1000000 -P 100", 1.15),
    load("2 workers, GET -P 100", 3_000_000, "-t get -r 1000000 -P 100", 1.15),
];

/// Sizes of large values, in bytes.
const LARGE: [usize; 6] = [100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000];

/// Microseconds of the server's processor time for each operation of a load.
pub(crate) fn measure(server: &Server, count: usize, arguments: &str) -> Result<f64> {
    measure_words(server, count, &arguments.split(' ').collect::<Vec<_>>())
}

/// The same for a load whose arguments have blanks in them.
pub(crate) fn measure_words(server: &Server, count: usize, arguments: &[&str]) -> Result<f64> {
    let before = scheduled_nanoseconds(server.pid())?;
    let output = Command::new(peers::program("redis-benchmark"))
        .args(["-q", "-p", &server.port().to_string(), "-n", &count.to_string()])
        .args(arguments)
        .output()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "redis-benchmark {arguments:?}: {complaints}");
    let spent = scheduled_nanoseconds(server.pid())?.saturating_sub(before);
    Ok(spent as f64 / count as f64 / 1e3)
}

/// Runs loads against two servers in turn, and prints a row for each.
fn compare(
    options: &Options,
    servers: &[Server; 2],
    loads: &[(String, usize, String, f64)],
) -> Result<()> {
    for (name, count, arguments, bar) in loads {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..options.repetitions {
            for (server, times) in servers.iter().zip(&mut times) {
                times.push(measure(server, *count, arguments)?);
            }
        }
        let [ours, theirs] = times.map(median);
        Row { name: name.clone(), ours, theirs, bar: *bar }.print()?;
    }
    Ok(())
}

/// What redis-benchmark is told of a load.
fn told(load: &Load) -> String {
    format!("-c 50 {}", load.arguments)
}

/// Stores about as many keys as the loads draw from, so that reads find something.
pub(crate) fn fill(servers: &[Server]) -> Result<()> {
    for server in servers {
        measure(server, 3_000_000, "-c 50 -t set -r 1000000 -P 100")?;
    }
    Ok(())
}

/// Small values, 50 connections.
pub(crate) fn small_values(options: &Options) -> Result<()> {
    let loads: Vec<_> = SMALL.iter().filter(|load| options.wants(load.name)).collect();
    if loads.is_empty() {
        return Ok(());
    }
    let (places, targets) = (Places::new(1)?, rivals::all());
    let servers = rivals::start(&places, &targets)?;
    fill(&servers)?;
    let title = "Microseconds of processor time per request, one thread, 50 connections";
    rivals::heading(title, &targets)?;
    for load in loads {
        let count = options.scaled(load.count);
        let figures =
            rivals::in_turn(options, &servers, |server| measure(server, count, &told(load)))?;
        let bars = Bars { oldest: load.bar, better: load.goal };
        rivals::row(load.name, &targets, &figures, bars)?;
    }
    Ok(())
}

/// Values of 100 kB to 5 MB, 25 connections.
pub(crate) fn large_values(options: &Options) -> Result<()> {
    let mut loads = Vec::new();
    for size in LARGE {
        for (command, bar) in [("SET", 1.05), ("GET", 0.85)] {
            let name = format!("{command} of {} kB", size / 1000);
            let count = (1_500_000_000 / size).clamp(200, 4000);
            let arguments = format!("-c 25 -t {} -d {size}", command.to_lowercase());
            if options.wants(&name) {
                loads.push((name, options.scaled(count), arguments, bar));
            }
        }
    }
    if loads.is_empty() {
        return Ok(());
    }
    let places = Places::new(1)?;
    let servers = [places.start(Target::Dunlin, 1)?, places.start(Target::Reference, 1)?];
    let title = "Microseconds of processor time per request, one thread, 25 connections";
    heading(title, "dunlin", "reference")?;
    compare(options, &servers, &loads)
}

/// What a second worker costs.
pub(crate) fn two_workers(options: &Options) -> Result<()> {
    let wanted = SHARED.iter().filter(|load| options.wants(load.name));
    let loads: Vec<_> = wanted
        .map(|load| (load.name.to_owned(), options.scaled(load.count), told(load), load.bar))
        .collect();
    if loads.is_empty() {
        return Ok(());
    }
    // Both have the same processors, so that both run beside the same load.
    let places = Places::new(2)?;
    let servers = [places.start(Target::Dunlin, 2)?, places.start(Target::Dunlin, 1)?];
    fill(&servers)?;
    let title = "Microseconds of processor time per request, dunlin with two workers and with one";
    heading(title, "two", "one")?;
    compare(options, &servers, &loads)
}
