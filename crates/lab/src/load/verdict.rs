//! Whether the server was measured, or the generator; and whether the server kept up with the load.

use super::Pace;
use crate::record::{Generator, Latency, Recording};

/// What the generator adds to a response time may be as long as this, in milliseconds: more cannot
/// be told from the server's own time on a busy machine.
const LATENESS_MS: f64 = 1.0;
/// A longer response time forgives more: this share of it.
const LATENESS_SHARE: f64 = 0.1;
/// The percentiles that are looked at. Those of a tail beyond the last of [`USUAL`] may be doubtful
/// in a run whose times count.
const PERCENTILES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 1.0];
/// Percentiles up to this one must be the server's.
const USUAL: f64 = 0.99;
/// The thread of an open load must have idle time, or it could not keep a schedule.
const BUSY_OPEN: f64 = 0.9;
/// If a thread of a closed load never sleeps, the thread may be what was measured.
const BUSY_CLOSED: f64 = 0.95;
/// The share of its time that the threads of a closed load may wait for a processor: they send less
/// by about as much.
const HELD_UP_CLOSED: f64 = 0.1;
/// The unit in which the waiting time of a thread is counted, in milliseconds.
const HELD_UP_UNIT_MS: f64 = 10.0;
/// The share of requests that may remain unsent at the end.
const UNSENT_SHARE: f64 = 0.001;
/// In a short load that share is less than what waits at any moment: as many may be left as are due
/// in this many seconds ...
const UNSENT_SECONDS: f64 = 0.005;
/// ... but no larger share than this ...
const UNSENT_MOST_SHARE: f64 = 0.01;
/// ... and this many in any case: all connections of a server that keeps up are busy now and then.
pub(crate) const UNSENT_COUNT: f64 = 2.0;
/// How often a span of time is halved in the search for a percentile.
const HALVINGS: usize = 30;
/// Shorter runs say nothing about how busy a thread is.
const SHORTEST_SECONDS: f64 = 0.2;

/// Fills in what a recording says about itself: why it says nothing about the server (`invalid`),
/// why its response times do not (`late`; `doubtful_from` is the first such percentile), and why
/// the server could not keep up with the load (`overloaded`). Verdicts of agents are kept.
pub(crate) fn judge(recording: &mut Recording) {
    let doubtful = doubtful_from(recording);
    let late = lateness(recording, doubtful);
    let is_late = !late.is_empty() || !recording.generator.late.is_empty();
    let faults = faults(recording, is_late);
    let has_faults = is_late || !faults.is_empty() || !recording.generator.invalid.is_empty();
    let overloads = overloads(recording, has_faults);
    let generator = &mut recording.generator;
    if generator.invalid.is_empty() {
        generator.invalid = faults;
    }
    if generator.late.is_empty() {
        generator.late = late;
    }
    generator.overloaded = overloads;
    generator.doubtful_from = earliest(generator.doubtful_from, doubtful);
}

/// The smaller of two percentiles; none is beyond all of them.
pub(crate) fn earliest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::min)
}

/// The share of requests that were due and were never sent.
fn unsent_share(recording: &Recording) -> f64 {
    let generator = &recording.generator;
    let due = recording.requests() + generator.unsent;
    generator.unsent as f64 / due.max(1) as f64
}

/// Whether more due requests were never sent than were just waiting when the load ended.
pub(crate) fn left_too_many(recording: &Recording) -> bool {
    let unsent = recording.generator.unsent as f64;
    let due = recording.requests() as f64 + unsent;
    let moment = match recording.plan.pace {
        Pace::Open { rate, .. } => (rate * UNSENT_SECONDS).min(UNSENT_MOST_SHARE * due),
        Pace::Closed { .. } => 0.0,
    };
    unsent > (UNSENT_SHARE * due).max(moment).max(UNSENT_COUNT)
}

/// Why response times from a percentile on are not the server's alone, if that is one of the usual
/// ones.
fn lateness(recording: &Recording, doubtful: Option<f64>) -> Vec<String> {
    let Some(share) = doubtful.filter(|share| *share <= USUAL) else { return Vec::new() };
    let percent = (1.0 - share) * 100.0;
    let (sending, waiting) = added(recording, share);
    let allowed = allowed_ms(recording, share);
    let mut late = Vec::new();
    if sending > allowed {
        late.push(format!(
            "{percent:.0} % of the requests were sent {sending:.1} ms late or more although a \
             connection was free (up to {allowed:.1} ms is allowed)."
        ));
    }
    if waiting > allowed {
        late.push(format!(
            "{percent:.0} % of the requests may have waited {waiting:.1} ms or more for the generator, \
             which had no processor (up to {allowed:.1} ms is allowed): other work was running there."
        ));
    }
    late
}

/// How much of a response time may be the generator's, in milliseconds.
fn allowed_ms(recording: &Recording, share: f64) -> f64 {
    LATENESS_MS.max(LATENESS_SHARE * recording.response().quantile_ms(share))
}

/// What the generator adds to a percentile of the response times, in milliseconds: by sending late,
/// and by waiting for a processor when a request is due or its reply is there.
fn added(recording: &Recording, share: f64) -> (f64, f64) {
    let generator = &recording.generator;
    let is_long = recording.seconds >= SHORTEST_SECONDS;
    let waiting = if is_long { held_up_ms(&generator.held_up, share) } else { 0.0 };
    (generator.lateness.quantile_ms(share), waiting)
}

/// For how long a request of this percentile waits at most when it falls anywhere into the time of
/// the threads, of which they waited for a processor as recorded. A wait of 3 ms in each tenth 10
/// ms meets three requests of a hundred, and one of them for more than 2 ms.
fn held_up_ms(held_up: &Latency, share: f64) -> f64 {
    let all = held_up.count().max(1) as f64;
    // The share of time from which on more than this is still to be waited.
    let beyond = |milliseconds: f64| -> f64 {
        let steps = held_up.histogram().iter_recorded();
        let rest = steps.map(|step| {
            let wait = step.value_iterated_to() as f64 / 1e6;
            let rest = (wait - milliseconds).max(0.0) / wait.max(HELD_UP_UNIT_MS);
            rest * step.count_at_value() as f64
        });
        rest.sum::<f64>() / all
    };
    let (mut low, mut high) = (0.0, held_up.max_ms());
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if beyond(middle) > 1.0 - share { low = middle } else { high = middle }
    }
    high
}

/// The faults of the generator, one sentence each.
fn faults(recording: &Recording, is_late: bool) -> Vec<String> {
    let mut faults = Vec::new();
    let generator = &recording.generator;
    let is_long = recording.seconds >= SHORTEST_SECONDS;
    let busy = generator.busiest_thread * 100.0;
    if let Pace::Open { .. } = recording.plan.pace {
        let is_short = left_too_many(recording);
        if is_long && generator.busiest_thread > BUSY_OPEN && (is_late || is_short) {
            faults.push(format!(
                "A thread of the generator used {busy:.0} % of a processor and missed its \
                 schedule: use more threads."
            ));
        } else if is_late && is_short {
            faults.push(format!(
                "{} requests were due and never sent, and the generator was late.",
                generator.unsent
            ));
        }
    } else {
        if is_long && generator.busiest_thread > BUSY_CLOSED {
            faults.push(format!(
                "A thread of the generator used {busy:.0} % of a processor: it may be the limit, \
                 and not the server. Use more threads."
            ));
        }
        let held_up = held_up_share(generator);
        if is_long && held_up > HELD_UP_CLOSED {
            faults.push(format!(
                "The generator waited for a processor {:.0} % of its time: other work was running there.",
                held_up * 100.0
            ));
        }
    }
    if generator.own_errors > 0 {
        faults.push(format!(
            "{} connections could not be opened: this machine ran out of descriptors, ports or memory.",
            generator.own_errors
        ));
    }
    faults
}

/// For which share of their time the threads waited for a processor. A wait that is longer than the
/// unit fills several units.
fn held_up_share(generator: &Generator) -> f64 {
    let counts = generator.held_up.histogram();
    let waited: f64 = counts
        .iter_recorded()
        .map(|step| {
            let milliseconds = step.value_iterated_to() as f64 / 1e6;
            milliseconds.min(HELD_UP_UNIT_MS) * step.count_at_value() as f64
        })
        .sum();
    waited / (HELD_UP_UNIT_MS * counts.len().max(1) as f64)
}

/// What was too much for the server, one sentence each. Requests that never left are the server's
/// doing only if the generator had no faults.
fn overloads(recording: &Recording, has_faults: bool) -> Vec<String> {
    let mut overloads = Vec::new();
    let generator = &recording.generator;
    let unsent = unsent_share(recording);
    if left_too_many(recording) && !has_faults {
        overloads.push(format!(
            "{} requests ({:.1} %) were due and never sent: all connections were waiting for the \
             server, so the offered rate was not reached.",
            generator.unsent,
            unsent * 100.0
        ));
    }
    let lost = generator.socket_errors.saturating_sub(generator.own_errors);
    if lost > 0 && !recording.plan.reconnect {
        overloads.push(format!("{lost} connections were lost."));
    }
    overloads
}

/// The first percentile of which too much may be the generator's own.
fn doubtful_from(recording: &Recording) -> Option<f64> {
    // The usual times of a closed loop are those of a queue that the generator is a part of.
    let is_looked_at =
        |share: &f64| *share > USUAL || matches!(recording.plan.pace, Pace::Open { .. });
    PERCENTILES.into_iter().filter(is_looked_at).find(|&share| {
        let (sending, waiting) = added(recording, share);
        sending.max(waiting) > allowed_ms(recording, share)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Plan, Schedule};
    use crate::record::OperationRecord;

    /// The verdict on a thousand requests of 0.2 ms within a second.
    fn judged(pace: Pace, generator: Generator) -> Recording {
        judged_with(pace, generator, |_| {})
    }

    fn judged_with(
        pace: Pace,
        generator: Generator,
        change: impl FnOnce(&mut Recording),
    ) -> Recording {
        let mut operation = OperationRecord { requests: 1000, ..OperationRecord::default() };
        operation.service.record_many(200_000, 1000);
        operation.response.record_many(200_000, 1000);
        let mut recording = Recording {
            plan: Plan { pace, ..Plan::default() },
            started_unix_ms: 0,
            seconds: 1.0,
            operations: vec![operation],
            timeline: Vec::new(),
            generator,
            interrupted: None,
        };
        change(&mut recording);
        judge(&mut recording);
        recording
    }

    /// The number of reasons for which the generator has made response times too long.
    fn lates(recording: &Recording) -> usize {
        recording.generator.late.len()
    }

    /// How many faults the generator has, and how many the server.
    fn counts(recording: &Recording) -> (usize, usize) {
        (recording.generator.invalid.len(), recording.generator.overloaded.len())
    }

    const OPEN: Pace = Pace::Open { rate: 1000.0, schedule: Schedule::Constant };
    const CLOSED: Pace = Pace::Closed { think_seconds: 0.0 };

    #[test]
    fn a_run_on_schedule_is_valid() {
        let mut generator = Generator { busiest_thread: 0.93, unsent: 1, ..Generator::default() };
        generator.lateness.record_many(100_000, 1000);
        generator.held_up.record_many(500_000, 100);
        let recording = judged(OPEN, generator);
        assert_eq!(counts(&recording), (0, 0), "{recording:?}");
        assert!(recording.is_valid() && !recording.is_doubtful(1.0));
        let mut generator = Generator { busiest_thread: 0.94, ..Generator::default() };
        generator.held_up.record_many(900_000, 100);
        assert_eq!(counts(&judged(CLOSED, generator)), (0, 0));
    }

    #[test]
    fn each_fault_of_the_generator_is_said() {
        let mut late = Generator { busiest_thread: 0.95, ..Generator::default() };
        late.lateness.record_many(2_000_000, 1000);
        let recording = judged(OPEN, late);
        assert_eq!((counts(&recording), lates(&recording)), ((1, 0), 1));
        let busy = Generator { busiest_thread: 0.97, ..Generator::default() };
        assert_eq!(counts(&judged(CLOSED, busy)), (1, 0));
        let lacking = Generator { socket_errors: 2, own_errors: 2, ..Generator::default() };
        assert_eq!(counts(&judged(CLOSED, lacking)), (1, 0));
        let mut held_up = Generator::default();
        held_up.held_up.record_many(0, 80);
        held_up.held_up.record_many(8_000_000, 20);
        let recording = judged(OPEN, held_up.clone());
        assert_eq!((counts(&recording), lates(&recording)), ((0, 0), 1));
        let recording = judged(CLOSED, held_up);
        assert_eq!((counts(&recording), lates(&recording)), ((1, 0), 0));
    }

    #[test]
    fn lateness_spoils_the_times_that_it_reaches_and_nothing_else() {
        // Two of a hundred are late: the median is the server's, and so is the throughput.
        let mut some = Generator::default();
        some.lateness.record_many(10_000, 980);
        some.lateness.record_many(3_000_000, 20);
        let recording = judged(OPEN, some.clone());
        assert!(recording.is_valid() && recording.is_late(0.99) && !recording.is_late(0.5));
        assert!(
            recording.generator.late[0].starts_with("1 % of the requests were sent 3.0 ms late")
        );
        // What was never sent as well is nobody's doing for sure.
        let lost = Generator { unsent: 100, ..some };
        assert_eq!(counts(&judged(OPEN, lost)), (1, 0));
    }

    #[test]
    fn a_wait_for_a_processor_delays_the_requests_in_it() {
        // 3 ms in each tenth 10 ms.
        let mut held_up = Latency::new();
        held_up.record_many(3_000_000, 10);
        held_up.record_many(0, 90);
        assert!((held_up_ms(&held_up, 0.99) - 2.0).abs() < 0.01);
        assert!((held_up_ms(&held_up, 1.0) - 3.0).abs() < 0.01);
        assert!(held_up_ms(&held_up, 0.5) < 0.01);
        // 100 ms at once, of a second: a tenth of the requests meet it, and one of ten of them
        // waits longer than nine tenths of it.
        let mut once = Latency::new();
        once.record_many(100_000_000, 10);
        once.record_many(0, 90);
        assert!((held_up_ms(&once, 0.99) - 90.0).abs() < 0.5);
        assert_eq!(held_up_ms(&Latency::new(), 0.99), 0.0);
        // A hundredth of the time with waits of 3 ms meets three of a thousand requests: not the
        // p99.
        let mut rare = Generator::default();
        rare.held_up.record_many(3_000_000, 15);
        rare.held_up.record_many(0, 985);
        let recording = judged(OPEN, rare);
        assert!(recording.is_valid() && !recording.is_late(0.99), "{recording:?}");
        assert!(recording.is_doubtful(0.999));
    }

    #[test]
    fn what_the_server_did_not_keep_up_with_is_not_the_generator_s_fault() {
        let unsent = Generator { unsent: 10, ..Generator::default() };
        assert_eq!(counts(&judged(OPEN, unsent.clone())), (0, 1));
        // A thread without time for its replies cannot tell why connections were not free.
        let busy = Generator { busiest_thread: 0.95, ..unsent };
        assert_eq!(counts(&judged(OPEN, busy)), (1, 0));
        let lost = Generator { socket_errors: 1, ..Generator::default() };
        let recording = judged(CLOSED, lost.clone());
        assert_eq!(counts(&recording), (0, 1));
        assert!(recording.is_valid());
        let expected = judged_with(CLOSED, lost, |recording| recording.plan.reconnect = true);
        assert_eq!(counts(&expected), (0, 0));
    }

    #[test]
    fn a_few_requests_that_wait_at_the_end_are_no_overload() {
        // 125 a second for two seconds: one that waited at the end is more than a thousandth.
        let pace = Pace::Open { rate: 125.0, schedule: Schedule::Poisson };
        let after = |unsent: u64, answered: u64| {
            judged_with(pace, Generator { unsent, ..Generator::default() }, |recording| {
                recording.operations[0].requests = answered;
            })
        };
        assert_eq!(counts(&after(1, 249)), (0, 0));
        assert_eq!(counts(&after(2, 248)), (0, 0));
        assert_eq!(counts(&after(10, 240)), (0, 1));
        assert_eq!(counts(&after(4, 4)), (0, 1), "half of them");
        assert_eq!(counts(&after(500, 99_500)), (0, 1), "of a long load it is a thousandth");
    }

    #[test]
    fn a_wait_for_a_processor_is_no_longer_than_it_was() {
        // 300 ms at once, within three seconds: a tenth of the time, told as thirty values.
        let mut generator = Generator::default();
        generator.held_up.record_many(300_000_000, 30);
        generator.held_up.record_many(0, 270);
        assert!((held_up_share(&generator) - 0.1).abs() < 1e-3);
        generator.held_up.record_many(5_000_000, 300);
        assert!((held_up_share(&generator) - 0.3).abs() < 1e-3);
        assert_eq!(held_up_share(&Generator::default()), 0.0);
    }

    #[test]
    fn a_slow_server_forgives_lateness() {
        let mut late = Generator::default();
        late.lateness.record_many(2_000_000, 1000);
        let recording = judged_with(OPEN, late, |recording| {
            recording.operations[0].service.record_many(30_000_000, 5000);
            recording.operations[0].response.record_many(30_000_000, 5000);
        });
        assert_eq!(counts(&recording), (0, 0));
        assert!(!recording.is_doubtful(1.0));
    }

    #[test]
    fn a_tail_that_may_be_the_generator_s_own_is_marked() {
        let mut late = Generator::default();
        late.lateness.record_many(10_000, 9_985);
        late.lateness.record_many(5_000_000, 15);
        let recording = judged_with(OPEN, late.clone(), |recording| {
            recording.operations[0].response.record_many(6_000_000, 15);
        });
        assert!(recording.is_valid());
        assert!(recording.is_doubtful(0.999) && !recording.is_doubtful(0.99));
        // A time far longer than any lateness is the server's.
        let recording = judged_with(OPEN, late, |recording| {
            recording.operations[0].response.record_many(80_000_000, 15);
        });
        assert!(!recording.is_doubtful(1.0));
    }
}
