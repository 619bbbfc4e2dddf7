//! The cost of durability: processor time and throughput with an append-only file, and how long it
//! takes to load files.
//!
//! Throughput is compared as time passed per request, so that in all rows less is better. It is
//! noise on a machine that does other things; the rows with processor time are not.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tests::peers;
use tests::server::{Server, Target};

use crate::background::Background;
use crate::load::{fill, measure};
use crate::pinning::Places;
use crate::{Options, Row, heading, median};

/// A mode of the append-only file, as options of a server.
type Mode = &'static [(&'static str, &'static str)];

const NONE: Mode = &[("appendonly", "no")];
const EVERY_SECOND: Mode = &[
    ("appendonly", "yes"),
    ("appendfsync", "everysec"),
    // The cost of a rewrite is measured separately.
    ("auto-aof-rewrite-percentage", "0"),
];
const ALWAYS: Mode = &[("appendonly", "yes"), ("appendfsync", "always")];

/// Processor time of a SET with `everysec`, beside that without a file.
pub(crate) fn every_second(options: &Options) -> Result<()> {
    let name = "everysec, SET -P 16";
    if !options.wants(name) {
        return Ok(());
    }
    let places = Places::new(1)?;
    let servers = [
        places.start_with(Target::Dunlin, 1, EVERY_SECOND)?,
        places.start_with(Target::Dunlin, 1, NONE)?,
    ];
    fill(&servers)?;
    let title = "Microseconds of dunlin's processor time per request, 50 connections";
    heading(title, "everysec", "no file")?;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..options.repetitions {
        for (server, times) in servers.iter().zip(&mut times) {
            let count = options.scaled(2_000_000);
            times.push(measure(server, count, "-c 50 -t set -r 1000000 -P 16")?);
        }
    }
    let [ours, theirs] = times.map(median);
    Row { name: name.to_owned(), ours, theirs, bar: 1.15 }.print()
}

/// Requests under `always`: beside the reference, beside none of it, and reads beside writes.
pub(crate) fn always(options: &Options) -> Result<()> {
    if !options.wants("always") {
        return Ok(());
    }
    let places = Places::new(1)?;
    let ours = places.start_with(Target::Dunlin, 1, ALWAYS)?;
    let theirs = places.start_with(Target::Reference, 1, ALWAYS)?;
    let without = places.start_with(Target::Dunlin, 1, NONE)?;
    let set = |clients: usize| format!("-c {clients} -t set -r 100000 -d 100");

    heading("Microseconds passed per request, appendfsync always", "dunlin", "reference")?;
    let count = options.scaled(500_000);
    let [mine, other] = paced(options, [&ours, &theirs], count, &set(50))?;
    row("always, SET of 100 B", mine.0, other.0, 1.0 / 1.2)?;
    row("always, SET, 99 % in ms", mine.1, other.1, 1.0)?;

    heading("Microseconds passed per request, dunlin", "always", "no file")?;
    let [mine, other] = paced(options, [&ours, &without], count, &set(500))?;
    row("always, SET by 500", mine.0, other.0, 1.0 / 0.9)?;
    let writes = "-c 8 -t set -r 100000 -d 100";
    let writers = [Background::start(&ours, writes)?, Background::start(&without, writes)?];
    let reads = format!("-c 50 -t get -r 100000 -n {}", options.scaled(1_000_000));
    let mut passed = [Vec::new(), Vec::new()];
    for _ in 0..options.repetitions {
        for (index, server) in [&ours, &without].into_iter().enumerate() {
            // Only the measured file is written to.
            writers[index].go_on()?;
            writers[1 - index].halt()?;
            passed[index].push(benchmark(server, &reads)?.0);
        }
    }
    let [mine, other] = passed.map(median);
    row("always, GET beside SETs", mine, other, 1.0 / 0.8)
}

fn row(name: &str, ours: f64, theirs: f64, bar: f64) -> Result<()> {
    Row { name: name.to_owned(), ours, theirs, bar }.print()
}

/// Microseconds per request and the 99th percentile in milliseconds, of two servers in turn.
fn paced(
    options: &Options,
    servers: [&Server; 2],
    count: usize,
    arguments: &str,
) -> Result<[(f64, f64); 2]> {
    let mut figures = [Vec::new(), Vec::new()];
    for _ in 0..options.repetitions {
        for (server, figures) in servers.into_iter().zip(&mut figures) {
            figures.push(benchmark(server, &format!("{arguments} -n {count}"))?);
        }
    }
    Ok(figures.map(|figures| {
        let (passed, percentiles) = figures.into_iter().unzip();
        (median(passed), median(percentiles))
    }))
}

/// Runs redis-benchmark: the microseconds that passed per request, and the 99th percentile in
/// milliseconds.
fn benchmark(server: &Server, arguments: &str) -> Result<(f64, f64)> {
    let output = Command::new(peers::program("redis-benchmark"))
        .args(["--csv", "-p", &server.port().to_string()])
        .args(arguments.split(' '))
        .output()?;
    ensure!(output.status.success(), "redis-benchmark {arguments} failed");
    let text = String::from_utf8(output.stdout)?;
    let last = text.lines().last().context("redis-benchmark printed nothing")?;
    // "test","rps","avg","min","p50","p95","p99","max"
    let number = |index: usize| -> Result<f64> {
        let field = last.split(',').nth(index).context("too few columns")?;
        Ok(field.trim_matches('"').parse()?)
    };
    Ok((1e6 / number(1)?, number(6)?))
}

/// How long it takes to load files of five million keys, on all processors.
pub(crate) fn loading(options: &Options) -> Result<()> {
    let names = ["load a snapshot", "load an append-only file"];
    if !names.iter().any(|name| options.wants(name)) {
        return Ok(());
    }
    heading("Seconds from the start to being ready", "dunlin", "reference")?;
    let keys = options.scaled(5_000_000);
    for (name, append_only) in [(names[0], false), (names[1], true)] {
        if options.wants(name) {
            let [ours, theirs] = [Target::Dunlin, Target::Reference]
                .map(|target| load(target, append_only, keys, options.repetitions));
            row(name, ours?, theirs?, 0.6)?;
        }
    }
    Ok(())
}

fn load(target: Target, append_only: bool, keys: usize, repetitions: usize) -> Result<f64> {
    // The written commands stay as they are: as increments.
    let mode: Mode = match append_only {
        true => &[("appendonly", "yes"), ("auto-aof-rewrite-percentage", "0")],
        false => NONE,
    };
    let mut server = Server::start(target, mode)?;
    let arguments = format!("-c 50 -t set -r {keys} -d 100 -P 100");
    measure(&server, keys, &arguments)?;
    if !append_only {
        let mut client = server.connect()?;
        client.call(&["SAVE"])?;
    }
    let mut seconds = Vec::new();
    for _ in 0..repetitions {
        server.terminate()?;
        let began = Instant::now();
        server.start_again()?;
        seconds.push(began.elapsed().as_secs_f64());
    }
    Ok(median(seconds))
}
