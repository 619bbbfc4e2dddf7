//! The figures of a run that its recordings do not show by themselves: what the server spent, and
//! what events changed.

use std::collections::BTreeMap;

use super::attaching::ATTACHES;
use super::backing_up::BACKUP;
use super::lag::Seen;
use super::moving::{self, MOVE, MOVE_SLOTS};
use crate::check::recovery_seconds;
use crate::load::left_too_many;
use crate::record::{Latency, Recording};
use crate::results::figure::answers_by_second;
use crate::results::{Event, Run};

/// All figures that [`of`] may return.
pub(crate) const NAMES: [&str; 24] = [
    "server_cpu_us_per_request",
    "generator_cpu_us_per_request",
    "server_cpu_processors",
    "store_cpu_processors",
    "errors_percent",
    "base_memory_bytes",
    "peak_memory_bytes",
    "peak_memory_ratio",
    "memory_bytes_per_request",
    "recovery_seconds",
    "online_seconds",
    "moved_seconds",
    "backed_up_seconds",
    "writes_held_ms",
    "lag_p50_ms",
    "lag_p99_ms",
    "lag_max_ms",
    "lag_unseen",
    "p50_quiet_ms",
    "p99_quiet_ms",
    "p999_quiet_ms",
    "p50_during_events_ms",
    "p99_during_events_ms",
    "p999_during_events_ms",
];

/// Measurements that only the runner has.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Processor seconds that the target used while the loads ran.
    pub(crate) cpu_seconds: Option<f64>,
    /// Processor seconds that its store used, if that is a process beside it.
    pub(crate) store_cpu_seconds: Option<f64>,
    /// How long the loads ran, in seconds.
    pub(crate) seconds: f64,
    /// When the target was broken, each time, in seconds from the run's start.
    pub(crate) faults: Vec<f64>,
    /// The lag of a replica, if it was measured.
    pub(crate) lag: Option<Seen>,
}

/// All figures that a run has.
pub(crate) fn of(run: &Run, measured: &Measured) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            figures.insert(name.to_owned(), value);
        }
    };
    let recordings: Vec<&Recording> = run.loads.iter().map(|load| &load.recording).collect();
    // Refusing is cheap: the cost is divided by the successful requests, as rates are.
    let requests: u64 = recordings.iter().map(|recording| recording.successes()).sum();
    if requests > 0 {
        let micros = |seconds: f64| seconds * 1e6 / requests as f64;
        put("server_cpu_us_per_request", measured.cpu_seconds.map(micros));
        let generator: f64 = recordings
            .iter()
            .map(|recording| {
                recording.generator.cpu_user_seconds + recording.generator.cpu_system_seconds
            })
            .sum();
        put("generator_cpu_us_per_request", Some(micros(generator)));
    }
    let share = |cpu: Option<f64>| Some(cpu? / measured.seconds);
    put("server_cpu_processors", share(measured.cpu_seconds));
    put("store_cpu_processors", share(measured.store_cpu_seconds));
    put("errors_percent", errors_percent(&recordings));
    for (name, value) in memory(run, requests) {
        put(name, Some(value));
    }
    // The checker's own traffic, a trickle, may be back before the load is, or after it.
    put("recovery_seconds", recovery(run, &measured.faults));
    put("online_seconds", online(run));
    let is_move = |name: &str| name == MOVE || name == MOVE_SLOTS;
    if let Some(event) = run.events.iter().find(|event| is_move(&event.name) && event.done) {
        put("moved_seconds", event.until.map(|end| end - event.at));
        put("writes_held_ms", moving::held_ms(&event.outcome));
    }
    if let Some(event) = run.events.iter().find(|event| event.name == BACKUP && event.done) {
        put("backed_up_seconds", event.until.map(|end| end - event.at));
    }
    if let Some(Seen { lag, unseen }) = &measured.lag {
        put("lag_p50_ms", Some(lag.quantile_ms(0.5)));
        put("lag_p99_ms", Some(lag.quantile_ms(0.99)));
        put("lag_max_ms", Some(lag.max_ms()));
        put("lag_unseen", Some(*unseen as f64));
    }
    let (idle, busy) = beside_events(run);
    if busy.count() > 0 && idle.count() > 0 {
        put("p50_quiet_ms", Some(idle.quantile_ms(0.5)));
        put("p99_quiet_ms", Some(idle.quantile_ms(0.99)));
        put("p999_quiet_ms", Some(idle.quantile_ms(0.999)));
        put("p50_during_events_ms", Some(busy.quantile_ms(0.5)));
        put("p99_during_events_ms", Some(busy.quantile_ms(0.99)));
        put("p999_during_events_ms", Some(busy.quantile_ms(0.999)));
    }
    figures
}

/// How many of a hundred requests that were due failed: answered with an error, not answered, or
/// never sent, since all connections waited for the server.
fn errors_percent(recordings: &[&Recording]) -> Option<f64> {
    let (mut bad, mut all) = (0, 0);
    for recording in recordings {
        let errors = recording.errors();
        let answered: u64 = recording.operations.iter().map(|operation| operation.failed).sum();
        let unsent = if left_too_many(recording) { recording.generator.unsent } else { 0 };
        bad += errors + unsent;
        all += recording.requests() + errors.saturating_sub(answered) + unsent;
    }
    (all > 0).then(|| bad as f64 * 100.0 / all as f64)
}

/// The memory before, the highest memory, and the growth for each request.
fn memory(run: &Run, requests: u64) -> Vec<(&'static str, f64)> {
    let sizes = run.samples.iter().map(|sample| sample.pss_bytes).filter(|bytes| *bytes > 0);
    let sizes: Vec<f64> = sizes.map(|bytes| bytes as f64).collect();
    let (Some(&base), Some(&last)) = (sizes.first(), sizes.last()) else { return Vec::new() };
    let peak = sizes.iter().copied().fold(0.0, f64::max);
    let mut figures = vec![
        ("base_memory_bytes", base),
        ("peak_memory_bytes", peak),
        ("peak_memory_ratio", peak / base),
    ];
    // Only when requests leave data behind; otherwise it would be noise divided by a large number.
    if requests > 0 && last > 2.0 * base {
        figures.push(("memory_bytes_per_request", (last - base) / requests as f64));
    }
    figures
}

/// From a fault until the loads together had 90 % of their usual throughput, by the second: the
/// longest time.
fn recovery(run: &Run, faults: &[f64]) -> Option<f64> {
    let (first, seconds) = answers_by_second(run)?;
    let faults: Vec<f64> = faults.iter().map(|fault| fault - first).collect();
    recovery_seconds(&seconds, 1.0, 1, &faults)
}

/// How long replicas took to attach: the longest time. None when one has not.
fn online(run: &Run) -> Option<f64> {
    let attaching = run.events.iter().filter(|event| event.name.ends_with(ATTACHES));
    let times = attaching.map(|event| event.until.filter(|_| event.done).map(|end| end - event.at));
    times.reduce(|left, right| Some(left?.max(right?))).flatten()
}

/// When a load began, in seconds from the run's start.
fn start(run: &Run, recording: &Recording) -> f64 {
    recording.started_unix_ms.saturating_sub(run.started_unix_ms) as f64 / 1000.0
}

/// Response times in the seconds without and with an event that lasts. What the event itself sends,
/// such as a burst, is no part of what it changes.
fn beside_events(run: &Run) -> (Latency, Latency) {
    let (mut quiet, mut busy) = (Latency::new(), Latency::new());
    // An event without an end lasts until the end of the run.
    let spans: Vec<(f64, f64)> = run.events.iter().filter_map(Event::span).collect();
    let is_event = |name: &String| run.events.iter().any(|event| event.name == *name);
    for load in run.loads.iter().filter(|load| !is_event(&load.name)) {
        let offset = start(run, &load.recording);
        for second in &load.recording.timeline {
            let (from, to) = (offset + f64::from(second.at), offset + f64::from(second.at) + 1.0);
            let meets = spans.iter().any(|(begin, end)| *begin < to && *end > from);
            if meets { &mut busy } else { &mut quiet }.merge(&second.response);
        }
    }
    (quiet, busy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Plan;
    use crate::record::{Generator, OperationRecord, Second};
    use crate::results::{LoadRecording, Sample};

    /// A load of 100 requests a second, each taking 1 ms, and 50 ms in the seconds given.
    fn recording(timeline: &[u64], slow: &[u32]) -> Recording {
        let mut operation =
            OperationRecord { name: "GET".to_owned(), ..OperationRecord::default() };
        let second = |(at, requests): (usize, &u64)| {
            let at = u32::try_from(at).expect("it is short");
            let mut response = Latency::new();
            let nanoseconds = if slow.contains(&at) { 50_000_000 } else { 1_000_000 };
            response.record_many(nanoseconds, *requests);
            Second { at, requests: *requests, response, ..Second::default() }
        };
        let timeline: Vec<Second> = timeline.iter().enumerate().map(second).collect();
        for second in &timeline {
            operation.requests += second.requests;
            operation.response.merge(&second.response);
        }
        Recording {
            plan: Plan::default(),
            started_unix_ms: 1_000_000,
            seconds: timeline.len() as f64,
            operations: vec![operation],
            timeline,
            generator: Generator { cpu_user_seconds: 0.5, ..Generator::default() },
            interrupted: None,
        }
    }

    fn run(recording: Recording) -> Run {
        let sample = |at: f64, pss_bytes| Sample { at, pss_bytes, ..Sample::default() };
        Run {
            target: "dunlin".to_owned(),
            parameters: BTreeMap::new(),
            repetition: 0,
            started_unix_ms: 1_000_000,
            command: Vec::new(),
            loads: vec![LoadRecording {
                name: "clients".to_owned(),
                recording,
                agents: Vec::new(),
            }],
            samples: vec![sample(0.0, 1000), sample(1.0, 3000), sample(2.0, 1500)],
            events: Vec::new(),
            knee: None,
            check: None,
            figures: BTreeMap::new(),
            failure: None,
        }
    }

    #[test]
    fn what_was_spent_is_shared_out_over_requests() {
        let mut run = run(recording(&[100, 100, 100, 100, 100], &[]));
        let measured = Measured {
            cpu_seconds: Some(2.0),
            store_cpu_seconds: Some(0.5),
            seconds: 5.0,
            ..Measured::default()
        };
        let figures = of(&run, &measured);
        assert_eq!(figures["server_cpu_us_per_request"], 4000.0);
        assert_eq!(figures["generator_cpu_us_per_request"], 1000.0);
        assert_eq!(figures["server_cpu_processors"], 0.4);
        assert_eq!(figures["store_cpu_processors"], 0.1);
        assert_eq!(figures["base_memory_bytes"], 1000.0);
        assert_eq!(figures["peak_memory_ratio"], 3.0);
        assert_eq!(figures["errors_percent"], 0.0);
        assert!(!figures.contains_key("memory_bytes_per_request"), "it has not grown much");
        run.samples[2].pss_bytes = 6000;
        assert_eq!(of(&run, &measured)["memory_bytes_per_request"], 10.0);
        assert!(!figures.contains_key("recovery_seconds"));
        let unknown = Measured { cpu_seconds: None, ..measured };
        assert!(!of(&run, &unknown).contains_key("server_cpu_us_per_request"));
    }

    #[test]
    fn what_was_refused_cost_nothing() {
        let mut run = run(recording(&[100, 100, 100, 100, 100], &[]));
        run.loads[0].recording.operations[0].requests += 500;
        run.loads[0].recording.operations[0].failed = 500;
        run.samples[2].pss_bytes = 6000;
        let measured = Measured { cpu_seconds: Some(2.0), seconds: 5.0, ..Measured::default() };
        let figures = of(&run, &measured);
        assert_eq!(figures["server_cpu_us_per_request"], 4000.0);
        assert_eq!(figures["generator_cpu_us_per_request"], 1000.0);
        assert_eq!(figures["memory_bytes_per_request"], 10.0);
    }

    #[test]
    fn what_failed_is_told_as_a_share_of_what_was_due() {
        let mut run = run(recording(&[90, 90], &[]));
        let recording = &mut run.loads[0].recording;
        // Ten were refused, and ten never answered.
        recording.operations[0].requests += 10;
        recording.operations[0].failed = 10;
        recording.operations[0].errors =
            [("ERR".to_owned(), 10), ("connection".to_owned(), 10)].into();
        assert_eq!(of(&run, &Measured::default())["errors_percent"], 10.0);
        // And as many never left.
        run.loads[0].recording.generator.unsent = 200;
        assert_eq!(of(&run, &Measured::default())["errors_percent"], 55.0);
    }

    #[test]
    fn a_fault_has_a_recovery_by_the_second() {
        let run = run(recording(&[90, 100, 100, 20, 0, 95, 100], &[]));
        let measured = Measured { seconds: 7.0, faults: vec![3.5], ..Measured::default() };
        assert_eq!(of(&run, &measured)["recovery_seconds"], 1.5);
    }

    #[test]
    fn seconds_with_an_event_are_told_from_those_without() {
        let mut run = run(recording(&[100, 100, 100, 100], &[2]));
        let event = |at, until| Event::new(at, until, "BGSAVE", "");
        run.events = vec![event(0.5, None)];
        let measured = Measured::default();
        assert!(!of(&run, &measured).contains_key("p99_quiet_ms"), "it has no end");
        run.events = vec![event(2.1, Some(2.9))];
        let figures = of(&run, &measured);
        assert!((figures["p999_during_events_ms"] - 50.0).abs() < 0.5, "{figures:?}");
        assert!((figures["p999_quiet_ms"] - 1.0).abs() < 0.01, "{figures:?}");
        assert!(figures.keys().all(|name| NAMES.contains(&name.as_str())), "{figures:?}");
    }

    #[test]
    fn replicas_are_online_when_the_last_of_them_is() {
        let mut run = run(recording(&[100, 100, 100, 100], &[]));
        let event = |until, name| Event::new(1.0, until, name, "");
        run.events = vec![
            event(Some(2.5), "one attaches"),
            event(Some(3.0), "two attaches"),
            event(Some(3.9), "BGSAVE"),
        ];
        assert_eq!(of(&run, &Measured::default())["online_seconds"], 2.0);
        // One that never has all data is not left out.
        run.events.push(event(None, "three attaches"));
        assert!(!of(&run, &Measured::default()).contains_key("online_seconds"));
    }

    #[test]
    fn a_move_says_how_long_writes_were_held() {
        let mut run = run(recording(&[100, 100], &[]));
        let outcome = "done in 1.2 s; writes were held for 7 ms";
        run.events = vec![Event::new(0.5, Some(1.75), MOVE, outcome)];
        let figures = of(&run, &Measured::default());
        assert_eq!((figures["moved_seconds"], figures["writes_held_ms"]), (1.25, 7.0));
        // One that has failed has moved nothing.
        run.events[0] = Event::new(0.5, None, MOVE, "exit status: 1: the servers differ");
        let figures = of(&run, &Measured::default());
        assert!(!figures.contains_key("moved_seconds") && !figures.contains_key("writes_held_ms"));
    }

    #[test]
    fn a_backup_says_how_long_it_took() {
        let mut run = run(recording(&[100, 100], &[]));
        run.events = vec![Event::new(0.5, Some(1.75), BACKUP, "the backup reaches 1:2")];
        assert_eq!(of(&run, &Measured::default())["backed_up_seconds"], 1.25);
        run.events[0] = Event::new(0.5, None, BACKUP, "exit status: 1: no link");
        assert!(!of(&run, &Measured::default()).contains_key("backed_up_seconds"));
    }

    #[test]
    fn the_lag_is_told_with_what_was_never_seen() {
        let run = run(recording(&[100, 100], &[]));
        let mut lag = Latency::new();
        lag.record_many(2_000_000, 98);
        lag.record_many(9_000_000, 2);
        let lag = Some(Seen { lag, unseen: 1 });
        let figures = of(&run, &Measured { lag, ..Measured::default() });
        assert!((figures["lag_p50_ms"] - 2.0).abs() < 0.05, "{figures:?}");
        assert!((figures["lag_p99_ms"] - 9.0).abs() < 0.05, "{figures:?}");
        assert_eq!(figures["lag_unseen"], 1.0);
    }

    #[test]
    fn what_a_burst_sends_is_no_part_of_what_it_changes() {
        let mut run = run(recording(&[100, 100, 100, 100], &[]));
        let mut burst = run.loads[0].clone();
        burst.name = "hot-key burst".to_owned();
        burst.recording = recording(&[100, 100], &[0, 1]);
        burst.recording.started_unix_ms += 2000;
        run.events = vec![Event::new(2.0, Some(3.9), burst.name.as_str(), "")];
        run.loads.push(burst);
        let figures = of(&run, &Measured::default());
        assert!((figures["p999_during_events_ms"] - 1.0).abs() < 0.01, "{figures:?}");
    }

    #[test]
    fn an_event_without_an_end_lasts_until_that_of_the_run() {
        // Stopped in the third second and never continued: slow from then on.
        let mut run = run(recording(&[100, 100, 100, 100], &[2, 3]));
        let stop = Event { unfinished: true, ..Event::new(2.1, None, "SIGSTOP", "stopped") };
        // A save that touches the first second only.
        run.events = vec![Event::new(0.1, Some(0.2), "BGSAVE", ""), stop];
        let figures = of(&run, &Measured::default());
        assert!((figures["p999_during_events_ms"] - 50.0).abs() < 0.5, "{figures:?}");
        assert!((figures["p999_quiet_ms"] - 1.0).abs() < 0.01, "{figures:?}");
        // An event that never happened changes nothing.
        run.events[1].done = false;
        let figures = of(&run, &Measured::default());
        assert!((figures["p999_quiet_ms"] - 50.0).abs() < 0.5, "{figures:?}");
    }

    #[test]
    fn every_fault_of_a_run_has_its_recovery() {
        let run = run(recording(&[100, 100, 0, 100, 100, 0, 0, 0, 100, 100], &[]));
        let measured = Measured { faults: vec![2.0, 5.0], ..Measured::default() };
        assert_eq!(of(&run, &measured)["recovery_seconds"], 3.0);
        let gone = self::run(recording(&[100, 100, 0, 100, 100, 0, 0, 0, 0, 0], &[]));
        assert!(!of(&gone, &measured).contains_key("recovery_seconds"));
    }

    #[test]
    fn a_run_that_saw_nothing_has_no_figures() {
        let mut run = run(recording(&[], &[]));
        run.samples.clear();
        assert!(of(&run, &Measured::default()).is_empty());
    }
}
