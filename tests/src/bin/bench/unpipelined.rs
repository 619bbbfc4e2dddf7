//! Requests that wait for their replies, by few connections and by many, from a heavy and a light
//! client.
//!
//! A server may save system calls by letting clients wait, and a slow client hides such waits. So
//! throughput and median latency count as well as processor time.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::peers;
use tests::process::scheduled_nanoseconds;
use tests::server::{Server, Target, dunlin_binary};

use crate::load::fill;
use crate::pinning::Places;
use crate::rivals;
use crate::{Options, line, median};

const CONNECTIONS: [usize; 5] = [1, 10, 50, 200, 1000];

/// The share of the better rival's processor time, with redis-benchmark.
const BAR: f64 = 0.80;

/// What one run showed.
struct Seen {
    /// Thousand requests a second.
    throughput: f64,
    /// Median latency in milliseconds.
    median: f64,
    /// Microseconds of the server's processor time for a request.
    processor: f64,
}

/// A program that sends requests.
struct Generator {
    name: &'static str,
    program: PathBuf,
    /// Words before its options.
    words: &'static [&'static str],
}

impl Generator {
    fn run(&self, server: &Server, connections: usize, count: usize) -> Result<Seen> {
        let before = scheduled_nanoseconds(server.pid())?;
        let output = Command::new(&self.program)
            .args(self.words)
            .args(["-p", &server.port().to_string(), "-c", &connections.to_string()])
            .args(["-n", &count.to_string(), "-t", "get", "-r", "1000000", "--csv"])
            .output()?;
        let complaints = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {complaints}", self.name);
        let spent = scheduled_nanoseconds(server.pid())?.saturating_sub(before);
        let text = String::from_utf8(output.stdout)?;
        let row = text.lines().find(|row| row.starts_with("\"GET")).context("a row for GET")?;
        // "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms" and so on
        let number = |index: usize| -> Result<f64> {
            let cell = row.split(',').nth(index).context("too few columns")?;
            Ok(cell.trim_matches('"').parse()?)
        };
        let processor = spent as f64 / count as f64 / 1e3;
        Ok(Seen { throughput: number(1)? / 1e3, median: number(4)?, processor })
    }
}

/// GETs without pipeline, for each number of connections and each generator.
pub(crate) fn all_connections(options: &Options) -> Result<()> {
    let generators = [
        Generator {
            name: "redis-benchmark",
            program: peers::program("redis-benchmark"),
            words: &[],
        },
        Generator { name: "dunlin bench", program: dunlin_binary()?, words: &["bench"] },
    ];
    let name = |generator: &Generator, connections: usize| {
        format!("unpipelined, {}, {connections}", generator.name)
    };
    let wanted: Vec<_> = generators
        .iter()
        .flat_map(|generator| CONNECTIONS.map(|connections| (generator, connections)))
        .filter(|(generator, connections)| options.wants(&name(generator, *connections)))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let (places, targets) = (Places::new(1)?, rivals::all());
    let servers = rivals::start(&places, &targets)?;
    fill(&servers)?;
    line(&format!(
        "\nGETs without pipeline, one thread: thousand requests a second, median latency in ms, and \
         microseconds of\nprocessor time, of which {BAR:.2} of the better of Redis 8.0 and Valkey is the bar \
         with redis-benchmark"
    ))?;
    for (generator, connections) in wanted {
        let count = options.scaled(if connections == 1 { 100_000 } else { 500_000 });
        let mut runs: Vec<Vec<Seen>> = targets.iter().map(|_| Vec::new()).collect();
        for _ in 0..options.repetitions {
            for (server, runs) in servers.iter().zip(&mut runs) {
                runs.push(generator.run(server, connections, count)?);
            }
        }
        line(&name(generator, connections))?;
        let medians: Vec<Seen> = runs.iter().map(|runs| middle(runs)).collect();
        for (target, seen) in targets.iter().zip(&medians) {
            let verdict = if *target == Target::Dunlin {
                verdict(generator, seen, &targets, &medians)
            } else {
                String::new()
            };
            line(&format!(
                "    {:24} {:>10.1} {:>10.3} {:>10.2}{verdict}",
                rivals::title(*target),
                seen.throughput,
                seen.median,
                seen.processor
            ))?;
        }
    }
    Ok(())
}

fn middle(runs: &[Seen]) -> Seen {
    let of = |figure: fn(&Seen) -> f64| median(runs.iter().map(figure).collect());
    Seen {
        throughput: of(|seen| seen.throughput),
        median: of(|seen| seen.median),
        processor: of(|seen| seen.processor),
    }
}

/// In which figures Dunlin is behind.
fn verdict(generator: &Generator, ours: &Seen, targets: &[Target], all: &[Seen]) -> String {
    let rivals = targets.iter().zip(all);
    let rivals = rivals.filter(|(target, _)| matches!(target, Target::Reference | Target::Valkey));
    let rivals: Vec<&Seen> = rivals.map(|(_, seen)| seen).collect();
    let best = |figure: fn(&Seen) -> f64, pick: fn(f64, f64) -> f64| {
        rivals.iter().map(|seen| figure(seen)).reduce(pick).unwrap_or(f64::NAN)
    };
    let mut behind = Vec::new();
    if ours.throughput < best(|seen| seen.throughput, f64::max) {
        behind.push("throughput");
    }
    if ours.median > best(|seen| seen.median, f64::min) {
        behind.push("median");
    }
    let share = ours.processor / best(|seen| seen.processor, f64::min);
    if generator.words.is_empty() && share > BAR {
        behind.push("processor time");
    }
    let behind = if behind.is_empty() {
        String::new()
    } else {
        format!("  above the bar: {}", behind.join(", "))
    };
    format!("  {share:.2}{behind}")
}
