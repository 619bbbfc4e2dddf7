//! Whether the server was measured, or the generator.

use super::Pace;
use crate::record::Recording;

/// Sends may be this late in one of a hundred cases, in milliseconds: more cannot be told from the
/// server's own time on a busy machine.
const LATENESS_MS: f64 = 1.0;
/// A server that is slow by itself forgives more: this share of its median response time.
const LATENESS_SHARE: f64 = 0.1;
/// An open load leaves its thread room, or it could not keep a schedule.
const BUSY_OPEN: f64 = 0.9;
/// A thread of a closed load that never sleeps may be what was measured.
const BUSY_CLOSED: f64 = 0.95;
/// The share of requests that may be left unsent at the end.
const UNSENT_SHARE: f64 = 0.001;
/// Shorter runs say nothing about how busy a thread is.
const SHORTEST_SECONDS: f64 = 0.2;

/// Why a recording says nothing about the server, one sentence each; empty if it does.
pub(crate) fn reasons(recording: &Recording) -> Vec<String> {
    let mut reasons = Vec::new();
    let generator = &recording.generator;
    let is_long = recording.seconds >= SHORTEST_SECONDS;
    let busy = generator.busiest_thread * 100.0;
    if let Pace::Open { .. } = recording.plan.pace {
        let late = generator.lateness.quantile_ms(0.99);
        let limit = LATENESS_MS.max(LATENESS_SHARE * recording.service().quantile_ms(0.5));
        let is_late = generator.lateness.count() > 0 && late > limit;
        if is_late {
            reasons.push(format!(
                "1 % of the requests left more than {late:.1} ms after they were due though a \
                 connection was free (up to {limit:.1} ms is borne)."
            ));
        }
        let due = recording.requests() + generator.unsent;
        let unsent = generator.unsent as f64 / due.max(1) as f64;
        let is_short = unsent > UNSENT_SHARE;
        if is_short {
            reasons.push(format!(
                "{} requests ({:.1} %) were due and never left: all connections waited for the \
                 server, so that the offered rate was not reached.",
                generator.unsent,
                unsent * 100.0
            ));
        }
        if is_long && generator.busiest_thread > BUSY_OPEN && (is_late || is_short) {
            reasons.push(format!(
                "A thread of the generator used {busy:.0} % of a processor and missed its \
                 schedule: use more threads."
            ));
        }
    } else if is_long && generator.busiest_thread > BUSY_CLOSED {
        reasons.push(format!(
            "A thread of the generator used {busy:.0} % of a processor: it may be the limit, and \
             not the server. Use more threads."
        ));
    }
    if generator.socket_errors > 0 && !recording.plan.reconnect {
        reasons.push(format!("{} connections were lost.", generator.socket_errors));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Plan, Schedule};
    use crate::record::{Generator, OperationRecord};

    fn recording(pace: Pace, generator: Generator) -> Recording {
        let requests = 1000;
        Recording {
            plan: Plan { pace, ..Plan::default() },
            started_unix_ms: 0,
            seconds: 1.0,
            operations: vec![OperationRecord { requests, ..OperationRecord::default() }],
            timeline: Vec::new(),
            generator,
            interrupted: None,
        }
    }

    const OPEN: Pace = Pace::Open { rate: 1000.0, schedule: Schedule::Constant };
    const CLOSED: Pace = Pace::Closed { think_seconds: 0.0 };

    #[test]
    fn a_run_on_schedule_is_valid() {
        let mut generator = Generator { busiest_thread: 0.93, unsent: 1, ..Generator::default() };
        generator.lateness.record_many(100_000, 1000);
        assert_eq!(reasons(&recording(OPEN, generator)), Vec::<String>::new());
        let generator = Generator { busiest_thread: 0.94, ..Generator::default() };
        assert_eq!(reasons(&recording(CLOSED, generator)), Vec::<String>::new());
    }

    #[test]
    fn each_fault_is_said() {
        let mut late = Generator { busiest_thread: 0.95, ..Generator::default() };
        late.lateness.record_many(2_000_000, 1000);
        assert_eq!(reasons(&recording(OPEN, late)).len(), 2);
        let unsent = Generator { unsent: 10, ..Generator::default() };
        assert_eq!(reasons(&recording(OPEN, unsent)).len(), 1);
        let busy = Generator { busiest_thread: 0.97, ..Generator::default() };
        assert_eq!(reasons(&recording(CLOSED, busy)).len(), 1);
        let lost = Generator { socket_errors: 1, ..Generator::default() };
        assert_eq!(reasons(&recording(CLOSED, lost.clone())).len(), 1);
        let mut with_faults = recording(CLOSED, lost);
        with_faults.plan.reconnect = true;
        assert!(reasons(&with_faults).is_empty());
    }

    #[test]
    fn a_slow_server_forgives_lateness() {
        let mut late = Generator::default();
        late.lateness.record_many(2_000_000, 1000);
        let mut slow = recording(OPEN, late);
        slow.operations[0].service.record_many(30_000_000, 1000);
        assert!(reasons(&slow).is_empty());
    }
}
