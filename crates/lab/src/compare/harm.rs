//! Harm that chance does not excuse: acknowledged writes that are lost, stale reads, values that
//! nobody wrote, errors, and runs that fail. Median and spread tell noise from a change elsewhere,
//! but they would hide such harm: when one of three runs is a disaster, the median is still zero
//! and the spread is large.

use super::comparison::Change;
use crate::report::invalid_reasons;
use crate::results::figure::was_broken;
use crate::results::{Figure, Run, Summary, least_share};

/// Whether a figure counts harm.
pub(super) fn is_harm(figure: &Figure) -> bool {
    is_of_checker(figure) || figure.id == "errors"
}

/// The checker's findings are true even when the generator was late or something else failed.
fn is_of_checker(figure: &Figure) -> bool {
    ["lost", "stale", "wrong"].contains(&figure.id.as_str())
}

/// The runs that say something about such a figure. For the checker's figures, all runs, failed and
/// INVALID ones too; for errors, all except those in which the generator may have caused them.
pub(super) fn witnesses<'a>(figure: &Figure, runs: &[&'a Run]) -> Vec<&'a Run> {
    let counts = |run: &&Run| is_of_checker(figure) || invalid_reasons(run).is_empty();
    runs.iter().copied().filter(counts).collect()
}

/// How such a figure changed. It is worse when it was zero before and is not any more, when the
/// worst run is worse, or when there is more in all. There is one exception. When the lab broke the
/// targets itself, and every run on both sides met some harm, chance decides how much was on its
/// way at that moment: then it is worse when it grew by more than the figures lay apart before. How
/// far they lie apart now excuses nothing.
pub(super) fn change(figure: &Figure, before: &[&Run], after: &[&Run]) -> Option<Change> {
    let (old, new) = (values(figure, before), values(figure, after));
    let (old_summary, new_summary) =
        (Summary::of(old.iter().copied())?, Summary::of(new.iter().copied())?);
    let broken = |runs: &[&Run]| runs.iter().all(|run| was_broken(run));
    let is_expected = figure.id == "lost" || figure.id == "errors";
    let by_chance = is_expected
        && old_summary.low > 0.0
        && new_summary.low > 0.0
        && broken(before)
        && broken(after);
    let share = least_share(old.len().min(new.len())) * old_summary.high;
    let noise = if by_chance { old_summary.spread().max(share) } else { 0.0 };
    let gaps = [new_summary.high - old_summary.high, mean(&new) - mean(&old)];
    Some(if gaps.iter().any(|gap| *gap > noise) {
        Change::Worse
    } else if gaps.iter().any(|gap| *gap < -noise) {
        Change::Better
    } else {
        Change::WithinNoise
    })
}

/// The sentence when more of the runs fail now than before.
pub(super) fn failing(before: &[&Run], after: &[&Run]) -> Option<String> {
    let failed = |runs: &[&Run]| runs.iter().filter(|run| run.failure.is_some()).count();
    let (was, is) = (failed(before), failed(after));
    if !is_larger_share((was, before.len()), (is, after.len())) {
        return None;
    }
    let why = after.iter().find_map(|run| run.failure.as_deref()).unwrap_or_default();
    let earlier = count_before(was, before.len());
    Some(format!("fails now: {is} of {} runs, {earlier} before: {why}", after.len()))
}

/// Whether the second is a larger share of its total than the first.
pub(super) fn is_larger_share(before: (usize, usize), after: (usize, usize)) -> bool {
    after.0 * before.1.max(1) > before.0 * after.1.max(1)
}

/// `none` or `1 of 3`.
pub(super) fn count_before(count: usize, of: usize) -> String {
    if count == 0 { "none".to_owned() } else { format!("{count} of {of}") }
}

fn values(figure: &Figure, runs: &[&Run]) -> Vec<f64> {
    runs.iter().filter_map(|run| figure.of(run)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
