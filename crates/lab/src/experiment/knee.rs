//! The highest rate that a target keeps up with: rates grow by a factor until one is bad, then the
//! interval between the largest good rate and the smallest bad rate is halved a few times.

use super::case::KneeRule;
use crate::load::UNSENT_COUNT;
use crate::record::Recording;
use crate::results::{Knee, KneeStep};

/// At least this share of the due requests must have been answered.
const ANSWERED_SHARE: f64 = 0.97;
/// No search takes more steps.
const MOST_STEPS: usize = 40;

/// Judges the result of one rate. A rate that the server could not keep up with is bad. A rate that
/// the generator could not offer is not good either, and is marked.
pub(crate) fn step(rule: &KneeRule, offered_rate: f64, recording: &Recording) -> KneeStep {
    let response = recording.response();
    let answered_rate = recording.rate();
    let errors = recording.errors();
    let due = recording.requests() + recording.generator.unsent;
    // A rate is judged by response times.
    let generator = &recording.generator;
    let invalid: Vec<String> = generator.invalid.iter().chain(&generator.late).cloned().collect();
    let good = invalid.is_empty()
        && errors == 0
        && response.count() > 0
        && response.quantile_ms(rule.quantile) <= rule.limit_ms
        && recording.generator.overloaded.is_empty()
        // Not against the rate: by chance, a Poisson process has more or fewer requests due.
        // Requests that were just waiting when the step ended, when there are few requests, are not
        // a backlog.
        && recording.generator.unsent as f64
            <= ((1.0 - ANSWERED_SHARE) * due as f64).max(UNSENT_COUNT);
    KneeStep {
        offered_rate,
        answered_rate,
        p50_ms: response.quantile_ms(0.5),
        p99_ms: response.quantile_ms(0.99),
        p999_ms: response.quantile_ms(0.999),
        errors,
        good,
        invalid,
    }
}

/// Looks for the largest good rate. `attempt` offers a rate and returns its result; when it returns
/// nothing, the search ends with the results so far.
///
/// A rate that the generator could not offer says nothing about the target. It is tried once more,
/// and when it fails again the search stays below it: the server then keeps up with at least the
/// best rate, which the knee notes.
pub(crate) fn find(rule: &KneeRule, mut attempt: impl FnMut(f64) -> Option<KneeStep>) -> Knee {
    let mut steps: Vec<KneeStep> = Vec::new();
    let (mut good, mut bad): (Option<f64>, Option<f64>) = (None, None);
    let mut halvings = 0;
    let mut second_try = false;
    // Whether the generator, and not the server, failed at the smallest bad rate.
    let mut limited_by_generator = false;
    while steps.len() < MOST_STEPS {
        let rate = match (good, bad) {
            (None, None) => rule.start,
            (Some(good), None) => good * rule.factor,
            // Even the first was too much.
            (None, Some(bad)) => bad / rule.factor,
            (Some(good), Some(bad)) => {
                if halvings == rule.bisections {
                    break;
                }
                f64::midpoint(good, bad)
            }
        };
        let Some(step) = attempt(rate) else { break };
        let unsaid = !step.invalid.is_empty();
        let is_good = step.good;
        steps.push(step);
        if unsaid && !second_try {
            second_try = true;
            continue;
        }
        second_try = false;
        if good.is_some() && bad.is_some() {
            halvings += 1;
        }
        if is_good {
            good = Some(rate);
        } else {
            bad = Some(rate);
            limited_by_generator = unsaid;
        }
        // Rates below a thousandth of the first rate are not worth trying.
        if good.is_none() && rate < rule.start / 1000.0 {
            break;
        }
    }
    Knee {
        limit_ms: rule.limit_ms,
        quantile: rule.quantile,
        steps,
        best_rate: good,
        limited_by_generator,
        ended_early: good.is_some() && bad.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Plan;
    use crate::record::{Generator, OperationRecord};

    const RULE: KneeRule = KneeRule {
        load: 0,
        limit_ms: 5.0,
        quantile: 0.99,
        start: 1000.0,
        factor: 2.0,
        seconds: 1.0,
        bisections: 4,
    };

    fn answer(rate: f64, good: bool) -> KneeStep {
        KneeStep {
            offered_rate: rate,
            answered_rate: rate,
            p50_ms: 1.0,
            p99_ms: 2.0,
            p999_ms: 3.0,
            errors: 0,
            good,
            invalid: Vec::new(),
        }
    }

    #[test]
    fn the_knee_of_a_server_is_found_from_below_and_from_above() {
        for start in [1000.0, 100_000.0] {
            let rule = KneeRule { start, ..RULE };
            let knee = find(&rule, |rate| Some(answer(rate, rate <= 23_000.0)));
            let best = knee.best_rate.expect("there is one");
            assert!((20_000.0..=23_000.0).contains(&best), "{best}");
            assert!(knee.steps.len() < 15, "{}", knee.steps.len());
            assert!(!knee.limited_by_generator);
        }
    }

    #[test]
    fn what_the_generator_cannot_offer_is_tried_twice_and_is_not_good() {
        let limited = |rate: f64| {
            let mut step = answer(rate, rate <= 4000.0);
            if rate > 4000.0 {
                step.invalid.push("the generator was late".to_owned());
            }
            Some(step)
        };
        let knee = find(&RULE, limited);
        let offered: Vec<f64> = knee.steps.iter().map(|step| step.offered_rate).collect();
        assert_eq!(offered[..5], [1000.0, 2000.0, 4000.0, 8000.0, 8000.0]);
        assert_eq!(knee.best_rate, Some(4000.0));
        assert!(knee.limited_by_generator, "it may keep up with more");
        // If the server could not keep up with a rate below that, the server was the limit.
        let both = |rate: f64| {
            let mut step = answer(rate, rate <= 4000.0);
            if rate > 7000.0 {
                step.invalid.push("the generator was late".to_owned());
            }
            Some(step)
        };
        let knee = find(&RULE, both);
        assert!(!knee.limited_by_generator, "{knee:?}");
    }

    fn recording(requests: u64, unsent: u64) -> Recording {
        let mut operation = OperationRecord { requests, ..OperationRecord::default() };
        operation.response.record_many(1_000_000, requests);
        Recording {
            plan: Plan::default(),
            started_unix_ms: 0,
            seconds: 1.0,
            operations: vec![operation],
            timeline: Vec::new(),
            generator: Generator { unsent, ..Generator::default() },
            interrupted: None,
        }
    }

    #[test]
    fn a_rate_is_judged_by_what_was_due_and_not_by_chance() {
        // Offered 1000 a second; by chance only 950 were due, and all were answered.
        assert!(step(&RULE, 1000.0, &recording(950, 0)).good);
        assert!(!step(&RULE, 1000.0, &recording(950, 50)).good);
        assert!(!step(&RULE, 1000.0, &recording(0, 0)).good);
    }

    #[test]
    fn an_overloaded_server_is_bad_and_not_the_generators_fault() {
        let mut overloaded = recording(1000, 0);
        overloaded.generator.overloaded.push("2 connections were lost.".to_owned());
        let step = step(&RULE, 1000.0, &overloaded);
        assert!(!step.good && step.invalid.is_empty());
        let knee = find(&RULE, |rate| Some(KneeStep { offered_rate: rate, ..step.clone() }));
        let offered: Vec<f64> = knee.steps.iter().map(|step| step.offered_rate).collect();
        assert_eq!(offered[..2], [1000.0, 500.0], "none is tried twice");
    }

    #[test]
    fn a_server_that_keeps_up_with_nothing_has_no_knee() {
        let knee = find(&RULE, |rate| Some(answer(rate, false)));
        assert_eq!(knee.best_rate, None);
        assert!(knee.steps.len() < MOST_STEPS);
    }

    #[test]
    fn one_request_that_waits_at_the_end_is_no_knee() {
        assert!(step(&RULE, 125.0, &recording(25, 1)).good);
        assert!(!step(&RULE, 125.0, &recording(25, 4)).good);
    }

    #[test]
    fn a_search_that_runs_out_of_steps_knows_a_lower_bound_only() {
        let rule = KneeRule { factor: 1.1, ..RULE };
        let knee = find(&rule, |rate| Some(answer(rate, true)));
        assert_eq!(knee.steps.len(), MOST_STEPS);
        assert!(knee.best_rate.is_some() && knee.is_lower_bound());
        let knee = find(&RULE, |rate| Some(answer(rate, rate <= 23_000.0)));
        assert!(!knee.is_lower_bound());
        let nothing = find(&RULE, |rate| Some(answer(rate, false)));
        assert!(!nothing.is_lower_bound(), "nothing is bounded");
    }

    #[test]
    fn an_interrupted_search_keeps_what_it_knows() {
        let mut left = 2;
        let knee = find(&RULE, |rate| {
            left -= 1;
            (left >= 0).then(|| answer(rate, true))
        });
        assert_eq!((knee.best_rate, knee.steps.len()), (Some(2000.0), 2));
        assert!(knee.is_lower_bound(), "nobody has seen a rate that is too much");
    }
}
