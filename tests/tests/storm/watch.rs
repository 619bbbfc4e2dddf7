//! The watchdog: PINGs on connections of every worker, and whether the server is to blame when one
//! waited.
//!
//! On a busy machine a thread may not run because others do. So a second thread notes how late its
//! own sleeps end, and for how long the server's threads were ready to run and did not. It notes
//! the same for the program that makes the disk slow, because the server's threads wait for it at
//! each sync. A wait counts only as far as it was longer than all that.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use tests::client::{Client, Received};

use crate::actor::World;
use crate::history::Time;

/// Connections, which the server spreads over its workers.
pub(crate) const CONNECTIONS: usize = 4;
/// What is too long.
const LIMIT: Time = 100_000_000;

/// A PING that waited.
#[derive(Clone, Debug)]
pub(crate) struct Stall {
    pub(crate) begin: Time,
    pub(crate) end: Time,
    pub(crate) connection: usize,
}

/// Sends PINGs on one connection until the world stops, and returns those that waited long.
pub(crate) fn ping(world: &World, connection: usize) -> Vec<Stall> {
    let mut stalls = Vec::new();
    let Ok(mut client) = Client::connect(world.port) else { return stalls };
    while world.goes_on() {
        let begin = world.clock.now();
        let Ok(()) = client.send(&["PING"]) else { break };
        let Ok(Received::Reply(_)) = client.receive() else { break };
        let end = world.clock.now();
        if end - begin > LIMIT {
            stalls.push(Stall { begin, end, connection });
        }
        sleep(Duration::from_millis(7));
    }
    stalls
}

/// How late threads were up to some time, in nanoseconds since the beginning.
#[derive(Clone, Debug)]
struct Sample {
    at: Time,
    own: Time,
    /// By the server's threads.
    waited: BTreeMap<u32, Time>,
    /// By the program that traces them, if one does.
    tracer: Time,
}

/// What kept threads from running.
#[derive(Debug, Default)]
pub(crate) struct Lateness(Vec<Sample>);

impl Lateness {
    /// The most that a thread was kept from running in some time.
    pub(crate) fn between(&self, begin: Time, end: Time) -> Time {
        let first = self.0.iter().rev().find(|sample| sample.at <= begin);
        let last = self.0.iter().find(|sample| sample.at >= end);
        // Without a sample on either side nothing is known, and the server is not blamed.
        let (Some(first), Some(last)) = (first, last) else { return end - begin };
        let waited = |(id, after): (&u32, &Time)| after - first.waited.get(id).unwrap_or(after);
        let server = last.waited.iter().map(waited).max().unwrap_or(0);
        server + last.tracer.saturating_sub(first.tracer) + (last.own - first.own)
    }
}

/// Measures lateness until the world stops.
pub(crate) fn measure(world: &World, pid: u32) -> Lateness {
    const STEP: Duration = Duration::from_millis(10);
    let mut samples = Vec::new();
    let (mut own, mut steps) = (0, 0u32);
    while world.goes_on() {
        let begin = world.clock.now();
        sleep(STEP);
        let at = world.clock.now();
        own += (at - begin).saturating_sub(STEP.as_nanos() as Time);
        steps += 1;
        if steps.is_multiple_of(3) {
            samples.push(Sample { at, own, waited: waits(pid), tracer: tracer_wait(pid) });
        }
    }
    let at = world.clock.now();
    samples.push(Sample { at, own, waited: waits(pid), tracer: tracer_wait(pid) });
    Lateness(samples)
}

/// How long each thread of a process was ready and did not run, in nanoseconds.
fn waits(pid: u32) -> BTreeMap<u32, Time> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return BTreeMap::new() };
    let wait = |task: fs::DirEntry| {
        Some((task.file_name().to_str()?.parse().ok()?, wait_of(&task.path())?))
    };
    tasks.flatten().filter_map(wait).collect()
}

/// How long a thread was ready and did not run, by its directory in /proc.
fn wait_of(thread: &Path) -> Option<Time> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    text.split(' ').nth(1)?.parse().ok()
}

/// The same of the program that traces a process; 0 where none does.
fn tracer_wait(pid: u32) -> Time {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    let tracer = tracer.map(str::trim).filter(|id| *id != "0");
    tracer.and_then(|id| wait_of(&Path::new("/proc").join(id))).unwrap_or(0)
}

/// The stalls that no lateness explains, with what went on meanwhile.
pub(crate) fn explain(world: &World, stalls: &[Stall], lateness: &Lateness) -> Vec<String> {
    let happenings = world.happenings.lock().expect("no client panics");
    let mut sentences = Vec::new();
    let mut told: Vec<&Stall> = Vec::new();
    for stall in stalls {
        // Connections of one worker wait together.
        if told.iter().any(|other| other.begin < stall.end && stall.begin < other.end) {
            continue;
        }
        let late = lateness.between(stall.begin, stall.end);
        let waited = stall.end - stall.begin;
        let overlap = |begin: Time, end: Time| begin < stall.end && end > stall.begin;
        let meanwhile = happenings.iter().filter(|it| overlap(it.begin, it.end));
        let names: Vec<&str> = meanwhile.map(|it| it.what.as_str()).collect();
        // A command that stops the world by its own definition is not a finding.
        let excused = names.iter().any(|name| name.starts_with('!'));
        if excused || waited.saturating_sub(late) <= LIMIT {
            continue;
        }
        told.push(stall);
        sentences.push(format!(
            "a PING of connection {} waited {} ms ({} ms of that the machine was busy), during {}",
            stall.connection,
            waited / 1_000_000,
            late / 1_000_000,
            if names.is_empty() { "nothing special".to_owned() } else { names.join(", ") }
        ));
    }
    sentences
}
