//! Splits a plan over agents, and adds up their recordings.

use crate::load::{Pace, Plan, Work, verdict};
use crate::record::{OperationRecord, Recording, Second};

/// An agent that reports a start this many seconds after another has a wrong clock: all wait for
/// the same instant.
const LATEST: f64 = 60.0;

/// The shares of a plan, one for each of `count` agents.
///
/// # Errors
/// There is not enough for all of them.
pub(super) fn split(plan: &Plan, count: usize) -> Result<Vec<Plan>, String> {
    if plan.connections < count {
        return Err(format!("{} connections cannot be shared by {count} agents", plan.connections));
    }
    Ok((0..count)
        .map(|agent| {
            let connections = share(plan.connections as u64, count, agent) as usize;
            let pace = match plan.pace {
                Pace::Open { rate, schedule } => Pace::Open { rate: rate / count as f64, schedule },
                closed @ Pace::Closed { .. } => closed,
            };
            Plan {
                connections,
                threads: plan.threads.min(connections),
                pace,
                phase: agent as f64 / count as f64,
                requests: plan.requests.map(|requests| share(requests, count, agent)),
                seed: plan.seed.wrapping_add((agent as u64) << 32),
                ..plan.clone()
            }
        })
        .collect())
}

/// The share of one of several that are as equal as whole numbers can be.
fn share(all: u64, count: usize, agent: usize) -> u64 {
    all / count as u64 + u64::from((agent as u64) < all % count as u64)
}

/// Refuses a recording that cannot come from this plan, or covers more seconds than have passed.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(plan: &Plan, recording: &Recording, elapsed: f64) -> Result<(), &'static str> {
    let operations = match &plan.work {
        Work::Resp(work) => work.operations.len(),
        Work::Http(work) => work.requests.len(),
    };
    if recording.operations.len() != operations {
        return Err("its report is of other operations");
    }
    let has_passed = |seconds: f64| (0.0..=elapsed).contains(&seconds);
    let is_within = |second: &Second| has_passed(f64::from(second.at));
    if !has_passed(recording.seconds) || !recording.timeline.iter().all(is_within) {
        return Err("its report is of more time than has passed");
    }
    Ok(())
}

/// Merges the recordings of several agents; `offsets` is how many milliseconds each agent's clock
/// is ahead of ours.
pub(super) fn merge(
    plan: &Plan,
    recordings: Vec<(String, Recording)>,
    offsets: &[f64],
) -> Option<Recording> {
    let starts: Vec<f64> = recordings
        .iter()
        .zip(offsets)
        .map(|((_, recording), offset)| recording.started_unix_ms as f64 - offset)
        .collect();
    let start = starts.iter().copied().min_by(f64::total_cmp)?;
    let mut merged: Option<Recording> = None;
    let (mut reasons, mut late_reasons) = (Vec::new(), Vec::new());
    for ((name, mut recording), began) in recordings.into_iter().zip(starts) {
        let late = ((began - start) / 1e3).clamp(0.0, LATEST);
        recording.seconds += late;
        for second in &mut recording.timeline {
            second.at += late.round() as u32;
        }
        let named = |reason: String| format!("Agent {name}: {reason}");
        reasons.extend(std::mem::take(&mut recording.generator.invalid).into_iter().map(named));
        late_reasons.extend(std::mem::take(&mut recording.generator.late).into_iter().map(named));
        match &mut merged {
            Some(sum) => add(sum, recording),
            None => merged = Some(recording),
        }
    }
    let mut merged = merged?;
    merged.plan = crate::redact::plan(plan);
    merged.started_unix_ms = start as u64;
    merged.timeline = Second::filled(std::mem::take(&mut merged.timeline));
    merged.generator.invalid = reasons;
    merged.generator.late = late_reasons;
    // Also findings that only the sum shows, and no agent by itself.
    verdict::judge(&mut merged);
    Some(merged)
}

fn add(sum: &mut Recording, other: Recording) {
    for (operation, more) in sum.operations.iter_mut().zip(&other.operations) {
        OperationRecord::merge(operation, more);
    }
    Second::merge(&mut sum.timeline, other.timeline);
    sum.seconds = sum.seconds.max(other.seconds);
    let (generator, more) = (&mut sum.generator, other.generator);
    generator.cpu_user_seconds += more.cpu_user_seconds;
    generator.cpu_system_seconds += more.cpu_system_seconds;
    generator.busiest_thread = generator.busiest_thread.max(more.busiest_thread);
    generator.lateness.merge(&more.lateness);
    generator.held_up.merge(&more.held_up);
    generator.unsent += more.unsent;
    generator.connects += more.connects;
    generator.resumed += more.resumed;
    generator.redirects += more.redirects;
    generator.socket_errors += more.socket_errors;
    generator.own_errors += more.own_errors;
    generator.doubtful_from = verdict::earliest(generator.doubtful_from, more.doubtful_from);
    sum.interrupted = sum.interrupted.take().or(other.interrupted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Schedule;
    use crate::record::Generator;

    #[test]
    fn shares_add_up_to_the_whole() {
        let pace = Pace::Open { rate: 900.0, schedule: Schedule::Constant };
        let plan =
            Plan { connections: 10, requests: Some(11), threads: 4, pace, ..Plan::default() };
        let plans = split(&plan, 3).expect("enough for all");
        assert_eq!(plans.iter().map(|one| one.connections).collect::<Vec<_>>(), [4, 3, 3]);
        assert_eq!(plans.iter().filter_map(|one| one.requests).sum::<u64>(), 11);
        assert_eq!(plans[2].threads, 3);
        assert_eq!(plans[0].pace, Pace::Open { rate: 300.0, schedule: Schedule::Constant });
        assert_ne!(plans[0].seed, plans[1].seed);
        assert_eq!(plans.iter().map(|one| one.phase * 3.0).collect::<Vec<_>>(), [0.0, 1.0, 2.0]);
        assert!(split(&plan, 11).is_err());
    }

    #[test]
    fn reports_that_cannot_be_are_refused() {
        let plan = Plan::default();
        let told = recording(0, &[5, 5, 5]);
        assert!(check(&plan, &told, 3.5).is_ok());
        assert!(check(&plan, &told, 2.5).is_err());
        let mut far = told.clone();
        far.timeline[2].at = u32::MAX;
        assert!(check(&plan, &far, 3.5).is_err());
        assert!(check(&plan, &Recording { seconds: f64::NAN, ..told.clone() }, 3.5).is_err());
        assert!(check(&plan, &Recording { operations: Vec::new(), ..told }, 3.5).is_err());
    }

    fn recording(start: u64, per_second: &[u64]) -> Recording {
        let mut operation = OperationRecord::default();
        let mut timeline = Vec::new();
        for (at, &requests) in per_second.iter().enumerate() {
            operation.requests += requests;
            operation.response.record_many(1_000_000, requests);
            timeline.push(Second { at: at as u32, requests, ..Second::default() });
        }
        Recording {
            plan: Plan::default(),
            started_unix_ms: start,
            seconds: per_second.len() as f64,
            operations: vec![operation],
            timeline,
            generator: Generator::default(),
            interrupted: None,
        }
    }

    #[test]
    fn recordings_are_added_up_at_the_time_they_took_place() {
        // The second agent's clock is 5 s ahead; it began 2 s after the first.
        let first = ("a".to_owned(), recording(10_000, &[5, 5, 5]));
        let mut second = ("b".to_owned(), recording(17_000, &[1, 1]));
        second.1.generator.invalid.push("Too slow.".to_owned());
        let merged = merge(&Plan::default(), vec![first, second], &[0.0, 5000.0]).expect("two");
        let requests: Vec<u64> = merged.timeline.iter().map(|second| second.requests).collect();
        assert_eq!(requests, [5, 5, 6, 1]);
        assert_eq!((merged.requests(), merged.seconds), (17, 4.0));
        assert_eq!(merged.started_unix_ms, 10_000);
        assert_eq!(merged.generator.invalid, ["Agent b: Too slow."]);
        assert_eq!(merged.response().count(), 17);
    }
}
