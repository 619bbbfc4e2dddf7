//! Results as a lab might produce them, made from a seed: every kind of experiment, failure and
//! target that a report must be able to show.

use std::collections::BTreeMap;

use base::rng::Rng;
use lab::load::{Keys, Operation, Pace, Plan, RespWork, Schedule, Size, Work};
use lab::record::{Generator, Latency, OperationRecord, Recording, Second};
use lab::results::{
    Check, Event, ExperimentResult, Knee, KneeStep, LoadRecording, Machine, Results, Run, Sample,
    Skipped, TargetInfo,
};

/// The beginning of everything: 22 November 2026, 00:13 UTC.
pub(crate) const STARTED: u64 = 1_795_306_436_000;
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Everything.
pub(crate) fn results() -> Results {
    Results {
        experiments: vec![
            persistence(),
            self_heal(),
            snapshot(),
            value_size(),
            pipeline(),
            knee(),
            threads(),
            hopeless(),
        ],
        ..empty()
    }
}

/// No experiment at all.
pub(crate) fn empty() -> Results {
    Results {
        format: 1,
        started_unix_ms: STARTED,
        machine: Machine {
            processor: "AMD EPYC 7B13".to_owned(),
            processors: 2,
            memory_bytes: 8 << 30,
            kernel: "Linux 6.1.0-28-amd64".to_owned(),
            system: "Debian GNU/Linux 12".to_owned(),
            file_system: "ext4".to_owned(),
        },
        size: "quick".to_owned(),
        experiments: Vec::new(),
    }
}

/// An experiment without runs, against redis-server.
pub(crate) fn experiment(
    name: &str,
    title: &str,
    question: &str,
    answers: Option<&str>,
) -> ExperimentResult {
    ExperimentResult {
        name: name.to_owned(),
        title: title.to_owned(),
        question: question.to_owned(),
        answers: answers.map(str::to_owned),
        file: format!("name = \"{name}\"\n\n[[target]]\nkind = \"dunlin\"\n"),
        matrix: Vec::new(),
        targets: vec![
            target(
                "dunlin",
                "dunlin 0.2.0",
                &["dunlin", "serve", "--port", "7001", "--threads", "1"],
            ),
            target(
                "redis-server",
                "redis-server 7.0.15",
                &["redis-server", "--port", "7002", "--save", ""],
            ),
        ],
        skipped: Vec::new(),
        runs: Vec::new(),
        views: Vec::new(),
        columns: Vec::new(),
    }
}

fn target(name: &str, version: &str, command: &[&str]) -> TargetInfo {
    TargetInfo {
        name: name.to_owned(),
        version: version.to_owned(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        cpus: "0".to_owned(),
        limits: String::new(),
    }
}

/// The shape of a run of a target.
pub(crate) struct Shape {
    /// Requests a second.
    pub(crate) rate: f64,
    /// The median response time, in milliseconds.
    pub(crate) median_ms: f64,
    /// How long the slow ones take: the spread of the logarithm.
    pub(crate) tail: f64,
    /// Seconds of load.
    pub(crate) seconds: u32,
    /// An open load is sent at the rate, whatever the server does.
    pub(crate) open: bool,
}

/// A run that follows a shape. `change` says by how much a second's rate and latency differ.
pub(crate) fn run(
    target: &str,
    parameters: &[(&str, &str)],
    repetition: u32,
    shape: &Shape,
    change: impl Fn(u32) -> (f64, f64),
) -> Run {
    let parameters: BTreeMap<String, String> =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let seed = parameters.values().flat_map(|value| value.bytes()).chain(target.bytes());
    let seed = seed.fold(u64::from(repetition), |seed, byte| {
        seed.wrapping_mul(1_099_511_628_211).wrapping_add(u64::from(byte))
    });
    let mut random = Rng::from_seed(seed);
    let started_unix_ms = STARTED + u64::from(repetition) * 60_000;
    let recording = recording(&mut random, shape, started_unix_ms + 500, &change);
    let busy = if target == "dunlin" { 0.62 } else { 0.93 };
    let samples = samples(&mut random, f64::from(shape.seconds) + 1.0, busy, 120.0);
    let peak = samples.iter().map(|sample| sample.pss_bytes).max().unwrap_or(0) as f64;
    let cpu = busy * 1e6 / shape.rate.max(1.0) * wobble(&mut random, 0.02);
    Run {
        target: target.to_owned(),
        parameters,
        repetition,
        started_unix_ms,
        command: vec![target.to_owned(), "--port".to_owned(), format!("70{repetition:02}")],
        loads: vec![LoadRecording { name: "main".to_owned(), recording, agents: Vec::new() }],
        samples,
        events: Vec::new(),
        knee: None,
        check: None,
        figures: BTreeMap::from([
            ("server_cpu_us_per_request".to_owned(), cpu),
            ("peak_memory_bytes".to_owned(), peak),
        ]),
        failure: None,
    }
}

fn wobble(random: &mut Rng, share: f64) -> f64 {
    1.0 + share * (unit(random) * 2.0 - 1.0)
}

fn unit(random: &mut Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A latency: around the median, with a long tail.
fn latency(random: &mut Rng, median_ms: f64, tail: f64) -> u64 {
    let normal: f64 = (0..12).map(|_| unit(random)).sum::<f64>() - 6.0;
    let rare = if unit(random) < 0.002 { 4.0 } else { 1.0 };
    (median_ms * 1e6 * rare * (normal * tail).exp()) as u64
}

fn recording(
    random: &mut Rng,
    shape: &Shape,
    started_unix_ms: u64,
    change: &impl Fn(u32) -> (f64, f64),
) -> Recording {
    let luck = wobble(random, 0.02);
    let mut operation = OperationRecord { name: "SET".to_owned(), ..Default::default() };
    let mut timeline = Vec::new();
    for at in 0..shape.seconds {
        let (rate, slowness) = change(at);
        let requests = shape.rate * rate * luck * wobble(random, 0.03);
        // Fewer values than requests, each counted several times, draw the same curve.
        let values = 400;
        let times = (requests / f64::from(values)).round() as u64;
        let mut response = Latency::new();
        for _ in 0..if times == 0 { 0 } else { values } {
            let value = latency(random, shape.median_ms * slowness, shape.tail);
            response.record_many(value, times);
            operation.service.record_many((value as f64 * 0.8) as u64, times);
        }
        let requests = response.count();
        let errors = if rate == 0.0 { 40 } else { 0 };
        operation.requests += requests;
        *operation.errors.entry("connection".to_owned()).or_default() += errors;
        operation.response.merge(&response);
        timeline.push(Second { at, requests, errors, response, ..Second::default() });
    }
    operation.errors.retain(|_, count| *count > 0);
    operation.sent_bytes = operation.requests * 130;
    operation.received_bytes = operation.requests * 5;
    Recording {
        plan: plan(shape),
        started_unix_ms,
        seconds: f64::from(shape.seconds),
        operations: vec![operation],
        timeline,
        generator: Generator { busiest_thread: 0.41, connects: 50, ..Generator::default() },
        interrupted: None,
    }
}

fn plan(shape: &Shape) -> Plan {
    Plan {
        connections: 50,
        pace: if shape.open {
            Pace::Open { rate: shape.rate, schedule: Schedule::Poisson }
        } else {
            Pace::Closed { think_seconds: 0.0 }
        },
        requests: None,
        seconds: Some(f64::from(shape.seconds)),
        warmup_seconds: 1.0,
        work: Work::Resp(RespWork {
            operations: vec![Operation {
                name: "SET".to_owned(),
                weight: 1.0,
                arguments: ["SET", "__key__", "__data__"].map(str::to_owned).to_vec(),
            }],
            keys: Keys::Zipf { count: 1_000_000, exponent: 0.99 },
            sizes: vec![Size { bytes: 100, weight: 99.0 }, Size { bytes: 2 << 20, weight: 1.0 }],
            ..RespWork::default()
        }),
        ..Plan::default()
    }
}

fn samples(random: &mut Rng, seconds: f64, busy: f64, mebibytes: f64) -> Vec<Sample> {
    let count = (seconds * 2.0) as u32;
    let mut cpu = 0.4;
    (0..count)
        .map(|index| {
            cpu += busy * 0.5 * wobble(random, 0.1);
            let memory = (mebibytes + f64::from(index) * 0.6) * MEBIBYTE;
            Sample {
                at: f64::from(index) / 2.0,
                cpu_user_seconds: cpu * 0.3,
                cpu_system_seconds: cpu * 0.7,
                rss_bytes: memory as u64,
                pss_bytes: memory as u64,
                info: BTreeMap::from([("used_memory".to_owned(), memory * 0.9)]),
            }
        })
        .collect()
}

fn steady(_: u32) -> (f64, f64) {
    (1.0, 1.0)
}

fn matrix(parameters: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    parameters.iter().map(|(name, values)| ((*name).to_owned(), owned(values))).collect()
}

/// A sweep over connections and persistence modes; a tie at one point, an INVALID run at another.
fn persistence() -> ExperimentResult {
    let mut result = experiment(
        "persistence",
        "Persistence modes against connections",
        "What does each persistence mode cost, and does the cost fall with the number of connections?",
        Some("E2"),
    );
    let connections = ["10", "50", "100", "200", "500"];
    let modes = [("none", 1.0), ("everysec", 0.92), ("always", 0.3)];
    result.matrix =
        matrix(&[("fsync", &["none", "everysec", "always"]), ("connections", &connections)]);
    result.skipped = vec![
        Skipped {
            name: "valkey-server".to_owned(),
            reason: "not found on this machine".to_owned(),
        },
        Skipped { name: "dragonfly".to_owned(), reason: "not found on this machine".to_owned() },
    ];
    for repetition in 0..3 {
        for (fsync, cost) in modes {
            for connection in connections {
                for name in ["dunlin", "redis-server"] {
                    let count: f64 = connection.parse().expect("a number");
                    let full = if name == "dunlin" { 210_000.0 } else { 120_000.0 };
                    let cost = if name == "dunlin" && fsync == "always" { 0.7 } else { cost };
                    let mut rate = full * cost * count / (count + 25.0);
                    if count > 400.0 && fsync == "none" {
                        // Both end where the network does.
                        rate = 119_000.0;
                    }
                    let shape = Shape {
                        rate,
                        median_ms: count / rate * 1e3,
                        tail: 0.35,
                        seconds: 4,
                        open: false,
                    };
                    let parameters = [("fsync", fsync), ("connections", connection)];
                    let mut one = run(name, &parameters, repetition, &shape, steady);
                    if name == "dunlin" && fsync == "none" && connection == "200" && repetition == 1
                    {
                        one.loads[0].recording.generator.invalid.push(
                            "the busiest sending thread took 97 % of a processor.".to_owned(),
                        );
                    }
                    result.runs.push(one);
                }
            }
        }
    }
    result
}

/// A kill in the middle; the checker counts the lost writes.
fn self_heal() -> ExperimentResult {
    let mut result = experiment(
        "self-heal",
        "A kill under load",
        "The server is killed while a thousand users write: how long until it serves as before, how \
         many see errors, and what is lost?",
        Some("E2"),
    );
    for repetition in 0..3 {
        for name in ["dunlin", "redis-server"] {
            let down = if name == "dunlin" { 11 } else { 13 };
            let shape =
                Shape { rate: 30_000.0, median_ms: 1.1, tail: 0.5, seconds: 30, open: false };
            let change = |at: u32| match at {
                10 => (0.1, 8.0),
                at if at > 10 && at < down => (0.0, 1.0),
                at if at == down => (0.5, 30.0),
                _ => (1.0, 1.0),
            };
            let mut one = run(name, &[], repetition, &shape, change);
            let mut before = (0.0, 0.0);
            for sample in one.samples.iter_mut().filter(|sample| sample.at > 10.5) {
                // The process that is started again counts its time from zero.
                if sample.at < f64::from(down) {
                    before = (sample.cpu_user_seconds, sample.cpu_system_seconds);
                    sample.pss_bytes = 0;
                    sample.rss_bytes = 0;
                }
                sample.cpu_user_seconds -= before.0;
                sample.cpu_system_seconds -= before.1;
            }
            let back = f64::from(down) + 0.4;
            one.events = vec![
                event(4.0, None, "CONFIG SET appendfsync everysec", "OK"),
                event(10.6, Some(back), "kill -9 and restart", "process 4711, then 4712"),
                event(11.0, None, "connection storm", "200 of 200 connected"),
            ];
            one.figures.insert("recovery_seconds".to_owned(), back - 9.0);
            one.check = Some(Check {
                acknowledged: 812_345 + u64::from(repetition),
                unknown: 50,
                lost: if name == "dunlin" { 0 } else { 1_204 + u64::from(repetition) },
                oldest_lost_seconds: (name != "dunlin").then_some(0.84),
                recovery_seconds: Some(back - 10.0),
                ..Check::default()
            });
            result.runs.push(one);
        }
    }
    result
}

fn event(at: f64, until: Option<f64>, name: &str, outcome: &str) -> Event {
    Event::new(at, until, name, outcome)
}

/// A background save under an open load; the forking server's memory grows.
fn snapshot() -> ExperimentResult {
    let mut result = experiment(
        "snapshot",
        "Latency while saving",
        "What do users feel of a background save?",
        None,
    );
    for repetition in 0..3 {
        for name in ["dunlin", "redis-server"] {
            let shape =
                Shape { rate: 20_000.0, median_ms: 0.12, tail: 0.4, seconds: 24, open: true };
            let slow = if name == "dunlin" { 1.3 } else { 9.0 };
            let change = |at: u32| if (8..14).contains(&at) { (1.0, slow) } else { (1.0, 1.0) };
            let mut one = run(name, &[], repetition, &shape, change);
            for sample in &mut one.samples {
                if name != "dunlin" && (8.0..14.0).contains(&sample.at) {
                    let share = 1.0 + (sample.at - 8.0) / 7.0;
                    sample.pss_bytes = (sample.pss_bytes as f64 * share) as u64;
                    sample.rss_bytes = (sample.pss_bytes as f64 * 1.5) as u64;
                }
            }
            one.figures.insert("p99_quiet_ms".to_owned(), 0.3 + 0.001 * f64::from(repetition));
            let busy = 0.3 * slow + 0.01 * f64::from(repetition);
            one.figures.insert("p99_during_events_ms".to_owned(), busy);
            one.events = vec![event(8.0, Some(13.6), "BGSAVE", "Background saving started")];
            result.runs.push(one);
        }
    }
    result
}

/// Value sizes with their units, two commands, a single repetition.
fn value_size() -> ExperimentResult {
    let mut result = experiment(
        "value-size",
        "Throughput by value size",
        "How far does throughput fall as values grow from 100 kB to 2 MB?",
        Some("E5"),
    );
    let sizes = ["100kb", "200kb", "500kb", "1mb", "2mb"];
    result.matrix = matrix(&[("command", &["GET", "SET"]), ("size", &sizes)]);
    for command in ["GET", "SET"] {
        for (index, size) in sizes.iter().enumerate() {
            for name in ["dunlin", "redis-server"] {
                let faster = if name == "dunlin" { 1.7 } else { 1.0 };
                let rate = 9_000.0 * faster / 2.1f64.powi(index as i32);
                let median_ms = 25.0 / rate * 1e3;
                let shape = Shape { rate, median_ms, tail: 0.3, seconds: 3, open: false };
                let parameters = [("command", command), ("size", size)];
                result.runs.push(run(name, &parameters, 0, &shape, steady));
            }
        }
    }
    result
}

/// Many tests without an order, with and without pipelines; a failed run.
fn pipeline() -> ExperimentResult {
    let mut result = experiment(
        "pipeline",
        "All default tests, with and without pipelines",
        "How many requests does one processor answer, and do long replies fall behind?",
        Some("E3"),
    );
    let tests = [
        "PING_INLINE",
        "PING_MBULK",
        "SET",
        "GET",
        "INCR",
        "LPUSH",
        "RPUSH",
        "LPOP",
        "RPOP",
        "SADD",
        "HSET",
        "SPOP",
        "ZADD",
        "ZPOPMIN",
        "LRANGE_100",
        "LRANGE_300",
        "LRANGE_500",
        "LRANGE_600",
        "MSET",
    ];
    result.matrix = matrix(&[("pipeline", &["1", "16"]), ("test", &tests)]);
    for repetition in 0..3 {
        for (depth, factor) in [("1", 1.0), ("16", 7.0)] {
            for (index, test) in tests.iter().enumerate() {
                for name in ["dunlin", "redis-server"] {
                    let full = if name == "dunlin" { 118_000.0 } else { 96_000.0 };
                    let heavy = if test.starts_with("LRANGE") { 0.12 } else { 1.0 };
                    let rate = full * factor * heavy * (1.0 - 0.013 * index as f64);
                    let median_ms = 45.0 / rate * 1e3;
                    let shape = Shape { rate, median_ms, tail: 0.3, seconds: 2, open: false };
                    let parameters = [("pipeline", depth), ("test", *test)];
                    let mut one = run(name, &parameters, repetition, &shape, steady);
                    if name == "redis-server" && *test == "ZPOPMIN" && depth == "16" {
                        one.failure = Some("no reply to PING within 5 s".to_owned());
                        one.loads.clear();
                        one.figures.clear();
                    }
                    result.runs.push(one);
                }
            }
        }
    }
    result
}

/// Offered rates up to the knee, and one that the generator could not offer.
fn knee() -> ExperimentResult {
    let mut result = experiment(
        "knee",
        "The largest rate with p99 below 2 ms",
        "How many requests a second may be offered before one in a hundred waits longer than 2 ms?",
        Some("E1"),
    );
    for repetition in 0..3 {
        for (name, capacity) in [("dunlin", 152_000.0), ("redis-server", 98_000.0)] {
            let mut random = Rng::from_seed(u64::from(repetition) + 77);
            let mut steps: Vec<KneeStep> = Vec::new();
            for offered in [10e3, 20e3, 40e3, 80e3, 160e3, 120e3, 140e3, 100e3, 90e3] {
                let load: f64 = (offered / capacity * wobble(&mut random, 0.02)).min(0.999);
                let p99_ms = (0.25 / (1.0 - load)).min(900.0);
                steps.push(KneeStep {
                    offered_rate: offered,
                    answered_rate: offered.min(capacity),
                    p50_ms: p99_ms / 4.0,
                    p99_ms,
                    p999_ms: p99_ms * 2.0,
                    errors: 0,
                    good: p99_ms <= 2.0,
                    invalid: Vec::new(),
                });
            }
            let good = steps.iter().filter(|step| step.good).map(|step| step.offered_rate);
            let best_rate = Some(good.fold(0.0, f64::max));
            result.runs.push(Run {
                knee: Some(Knee {
                    limit_ms: 2.0,
                    quantile: 0.99,
                    steps,
                    best_rate,
                    limited_by_generator: false,
                    ended_early: false,
                }),
                loads: Vec::new(),
                ..run(name, &[], repetition, &Shape { seconds: 2, ..IDLE }, steady)
            });
        }
    }
    result
}

const IDLE: Shape = Shape { rate: 1_000.0, median_ms: 0.1, tail: 0.2, seconds: 2, open: false };

/// One target alone, against two numbers of threads, with two loads.
fn threads() -> ExperimentResult {
    let mut result =
        experiment("threads", "Dunlin by threads", "What does a second thread bring?", None);
    result.targets.truncate(1);
    result.matrix = matrix(&[("threads", &["1", "2"])]);
    for repetition in 0..2 {
        for (threads, rate) in [("1", 110_000.0), ("2", 190_000.0)] {
            let shape = Shape { rate, median_ms: 0.3, tail: 0.3, seconds: 3, open: false };
            let mut one = run("dunlin", &[("threads", threads)], repetition, &shape, steady);
            one.loads[0].name = "readers".to_owned();
            let mut second = one.loads[0].clone();
            second.name = "writers".to_owned();
            one.loads.push(second);
            result.runs.push(one);
        }
    }
    result
}

/// Nothing worked.
fn hopeless() -> ExperimentResult {
    let mut result = experiment(
        "api-read",
        "Reads over HTTP",
        "How many reads a second does the API answer?",
        Some("E1"),
    );
    result.targets.truncate(1);
    result.skipped = vec![Skipped {
        name: "redis-server".to_owned(),
        reason: "does not answer HTTP.".to_owned(),
    }];
    result.runs = (0..2)
        .map(|repetition| Run {
            loads: Vec::new(),
            samples: Vec::new(),
            figures: BTreeMap::new(),
            failure: Some("connection refused".to_owned()),
            ..run("dunlin", &[], repetition, &IDLE, steady)
        })
        .collect();
    result
}
