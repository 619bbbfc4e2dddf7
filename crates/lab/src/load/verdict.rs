//! Whether the server was measured, or the generator; and whether the server bore the load.

use super::Pace;
use crate::record::{Generator, Recording};

/// Sends may be this late in one of a hundred cases, in milliseconds: on a busy machine this cannot be
/// told from the server's own time.
const LATENESS_MS: f64 = 1.0;
/// A server that is slow itself allows more lateness: this share of its median response time.
const LATENESS_SHARE: f64 = 0.1;
/// If more than this share of a percentile may be lateness, it says nothing about the server.
const DOUBTFUL_SHARE: f64 = 0.1;
/// The percentiles that are looked at, from where a late run is not INVALID altogether.
const TAIL: [f64; 3] = [0.999, 0.9999, 1.0];
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
/// In a short load that share is less than what waits at any moment: as many may be left as are due in
/// this many seconds ...
const UNSENT_SECONDS: f64 = 0.005;
/// ... but no larger share than this ...
const UNSENT_MOST_SHARE: f64 = 0.01;
/// ... and this many in any case: all connections of a server that keeps up are busy now and then.
pub(crate) const UNSENT_COUNT: f64 = 2.0;
/// Shorter runs say nothing about how busy a thread is.
const SHORTEST_SECONDS: f64 = 0.2;

/// Fills in a recording's verdict on itself: why it says nothing about the server (`invalid`), why the
/// server did not bear the load (`overloaded`), and from which percentile on response times may be the
/// generator's own. Verdicts of agents are kept.
pub(crate) fn judge(recording: &mut Recording) {
    let faults = faults(recording);
    let has_faults = !faults.is_empty() || !recording.generator.invalid.is_empty();
    let overloads = overloads(recording, has_faults);
    let doubtful = doubtful_from(recording);
    let generator = &mut recording.generator;
    if generator.invalid.is_empty() {
        generator.invalid = faults;
    }
    generator.overloaded = overloads;
    generator.doubtful_from = doubtful;
}

/// How late sends may be, in milliseconds.
fn borne_ms(recording: &Recording) -> f64 {
    LATENESS_MS.max(LATENESS_SHARE * recording.service().quantile_ms(0.5))
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

/// The faults of the generator, one sentence each.
fn faults(recording: &Recording) -> Vec<String> {
    let mut faults = Vec::new();
    let generator = &recording.generator;
    let is_long = recording.seconds >= SHORTEST_SECONDS;
    let busy = generator.busiest_thread * 100.0;
    if let Pace::Open { .. } = recording.plan.pace {
        let (late, borne) = (generator.lateness.quantile_ms(0.99), borne_ms(recording));
        let is_late = generator.lateness.count() > 0 && late > borne;
        if is_late {
            faults.push(format!(
                "1 % of the requests were sent more than {late:.1} ms late although a connection was \
                 free (up to {borne:.1} ms is allowed)."
            ));
        }
        let held_up = generator.held_up.quantile_ms(0.99);
        if is_long && generator.held_up.count() > 0 && held_up > borne {
            faults.push(format!(
                "For 1 % of the time, a thread of the generator waited {held_up:.1} ms or more for a \
                 processor (up to {borne:.1} ms is allowed): other work was running there."
            ));
        }
        let has_missed = is_late || left_too_many(recording);
        if is_long && generator.busiest_thread > BUSY_OPEN && has_missed {
            faults.push(format!(
                "A thread of the generator used {busy:.0} % of a processor and missed its \
                 schedule: use more threads."
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

/// What was too much for the server, one sentence each. Requests that never left are the server's doing
/// only if the generator had no faults.
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

/// The first percentile of the tail that may be the generator's own.
fn doubtful_from(recording: &Recording) -> Option<f64> {
    let Generator { lateness, held_up, .. } = &recording.generator;
    let response = recording.response();
    TAIL.into_iter().find(|&share| {
        let own = [lateness, held_up].map(|one| one.quantile_ms(share)).into_iter();
        let own = own.fold(0.0, f64::max);
        own > LATENESS_MS && own > DOUBTFUL_SHARE * response.quantile_ms(share)
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
        assert_eq!(counts(&judged(OPEN, late)), (2, 0));
        let busy = Generator { busiest_thread: 0.97, ..Generator::default() };
        assert_eq!(counts(&judged(CLOSED, busy)), (1, 0));
        let lacking = Generator { socket_errors: 2, own_errors: 2, ..Generator::default() };
        assert_eq!(counts(&judged(CLOSED, lacking)), (1, 0));
        let mut held_up = Generator::default();
        held_up.held_up.record_many(0, 80);
        held_up.held_up.record_many(8_000_000, 20);
        assert_eq!(counts(&judged(OPEN, held_up.clone())), (1, 0));
        assert_eq!(counts(&judged(CLOSED, held_up)), (1, 0));
    }

    #[test]
    fn what_the_server_did_not_bear_is_not_the_generator_s_fault() {
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
    fn what_just_waits_when_a_load_ends_is_no_overload() {
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
