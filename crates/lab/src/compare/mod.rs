//! Comparisons: what changed between two results of the same experiments, beyond noise.

mod comparison;
mod harm;
mod table;

pub use comparison::{Change, Comparison, Row};

use std::collections::BTreeMap;

use crate::report::{invalid_reasons, overloaded_reasons};
use crate::results::figure::figures;
use crate::results::{
    Better, Contrast, Difference, ENOUGH_RUNS, ExperimentResult, Figure, Machine, Results, Run,
    Summary,
};

/// Figures that depend too much on luck to be judged.
const UNJUDGED: [&str; 3] = ["max", "p99.99", "service_p99"];

/// A point of an experiment's matrix.
type Parameters = BTreeMap<String, String>;

/// Compares two results. Nothing pairs the runs of two files, so that a figure changed when Welch's
/// t says so, and by 5 % at least (15 % when one side has fewer than three runs): the rule of
/// [`Contrast::unpaired`]. Losses, errors and failures have no noise: see [`harm`].
pub fn compare(before: &Results, after: &Results) -> Comparison {
    let mut comparison = Comparison {
        rows: Vec::new(),
        missing: Vec::new(),
        cautions: machines(&before.machine, &after.machine),
        failures: Vec::new(),
    };
    if before.size != after.size {
        comparison
            .cautions
            .push(format!("sizes differ: {} before, {} after", before.size, after.size));
    }
    for old in &before.experiments {
        match after.experiments.iter().find(|new| new.name == old.name) {
            Some(new) => experiment(old, new, &mut comparison),
            None => comparison.failures.push(format!("{}: only before", old.name)),
        }
    }
    for new in &after.experiments {
        if before.experiments.iter().all(|old| old.name != new.name) {
            comparison.missing.push(format!("{}: only after", new.name));
        }
    }
    if before.experiments.iter().all(|experiment| experiment.runs.is_empty()) {
        comparison.failures.push("there is no run before to compare with".to_owned());
    }
    let few = |row: &&Row| row.before.count.min(row.after.count) < ENOUGH_RUNS;
    let few = comparison.rows.iter().filter(few).count();
    if few > 0 {
        comparison.cautions.push(format!(
            "{few} of {} figures come from fewer than three runs on one side: their noise is \
             unknown, and only differences above 15 % count",
            comparison.rows.len()
        ));
    }
    comparison
}

fn machines(before: &Machine, after: &Machine) -> Vec<String> {
    let fields = [
        ("processor", &before.processor, &after.processor),
        ("kernel", &before.kernel, &after.kernel),
        ("system", &before.system, &after.system),
        ("file system", &before.file_system, &after.file_system),
    ];
    let mut cautions: Vec<String> = fields
        .into_iter()
        .filter(|(_, old, new)| old != new)
        .map(|(name, old, new)| format!("another {name}: {old} before, {new} after"))
        .collect();
    if before.processors != after.processors {
        cautions.push(format!(
            "another number of processors: {} before, {} after",
            before.processors, after.processors
        ));
    }
    cautions
}

fn experiment(before: &ExperimentResult, after: &ExperimentResult, comparison: &mut Comparison) {
    if before.file != after.file {
        comparison.cautions.push(format!("{}: the experiment's file has changed", before.name));
    }
    let mut both = figures(before);
    both.retain(|figure| !UNJUDGED.contains(&figure.id.as_str()));
    // A figure is the same when its name is the same; its place in the file may have changed.
    let new_figures = figures(after);
    let (old, new) = (cells(before), cells(after));
    for ((target, parameters), runs) in &old {
        let place = place(&before.name, target, parameters);
        let Some((_, new_runs)) = new.iter().find(|(key, _)| key == &(*target, *parameters)) else {
            let skipped = after.skipped.iter().find(|skipped| skipped.name == *target);
            let why = skipped.map_or(String::new(), |skipped| format!(": {}", skipped.reason));
            comparison.failures.push(format!("{place}: only before{why}"));
            continue;
        };
        let cell = Both { place: &place, before: runs, after: new_runs };
        comparison
            .failures
            .extend(harm::failing(runs, new_runs).map(|failure| format!("{place}: {failure}")));
        let valid = (valid(runs), valid_after(&place, runs, new_runs, comparison));
        if let (Some(old_runs), Some(new_runs)) = &valid {
            overload(&place, old_runs, new_runs, comparison);
        }
        for figure in &both {
            let same = |other: &&Figure| other.id == figure.id && other.load == figure.load;
            let Some(new_figure) = new_figures.iter().find(same) else {
                cell.vanished(figure, comparison);
                continue;
            };
            let row = if harm::is_harm(figure) {
                cell.harm(figure, new_figure, comparison)
            } else if let (Some(old_runs), Some(new_runs)) = &valid {
                let cell = Both { place: &place, before: old_runs, after: new_runs };
                cell.figure(figure, new_figure, comparison)
            } else {
                None
            };
            comparison.rows.extend(row.map(|(old, new, change)| Row {
                experiment: before.name.clone(),
                target: (*target).to_owned(),
                point: point(parameters),
                figure: figure.full_label(),
                unit: figure.unit,
                before: old,
                after: new,
                change,
                by_worst: harm::is_harm(figure),
            }));
        }
        cell.only_after(&both, &new_figures, comparison);
    }
    for ((target, parameters), _) in &new {
        if old.iter().all(|(key, _)| key != &(*target, *parameters)) {
            let place = place(&after.name, target, parameters);
            comparison.missing.push(format!("{place}: only after"));
        }
    }
}

/// The runs of one target at one point.
type Cell<'a> = ((&'a str, &'a Parameters), Vec<&'a Run>);

fn cells(experiment: &ExperimentResult) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for run in &experiment.runs {
        let key = (run.target.as_str(), &run.parameters);
        match cells.iter_mut().find(|(other, _)| *other == key) {
            Some((_, runs)) => runs.push(run),
            None => cells.push((key, vec![run])),
        }
    }
    cells
}

/// The runs of one target at one point, on both sides.
struct Both<'a> {
    place: &'a str,
    before: &'a [&'a Run],
    after: &'a [&'a Run],
}

/// A figure on both sides, and how it changed.
type Compared = Option<(Summary, Summary, Change)>;

impl Both<'_> {
    /// A figure that repeats more or less.
    fn figure(&self, old: &Figure, new: &Figure, comparison: &mut Comparison) -> Compared {
        let lacking = self.gone(old, new);
        if let Some(why) = &lacking {
            let label = old.full_label();
            comparison.failures.push(format!("{}, {label}: {why}", self.place));
        }
        let before = old.summary(self.before.iter().copied())?;
        let Some(after) = new.summary(self.after.iter().copied()) else {
            if lacking.is_none() {
                self.vanished(old, comparison);
            }
            return None;
        };
        let values = |figure: &Figure, runs: &[&Run]| -> Vec<f64> {
            figure.observations(runs.iter().copied()).into_iter().map(|(_, value)| value).collect()
        };
        let contrast = Contrast::unpaired(&values(new, self.after), &values(old, self.before))?;
        Some((before, after, judged(old.better, contrast.difference)))
    }

    /// A figure that counts harm.
    fn harm(&self, old: &Figure, new: &Figure, comparison: &mut Comparison) -> Compared {
        let (old_runs, new_runs) =
            (harm::witnesses(old, self.before), harm::witnesses(new, self.after));
        let before = old.summary(old_runs.iter().copied())?;
        let Some(after) = new.summary(new_runs.iter().copied()) else {
            self.vanished(old, comparison);
            return None;
        };
        let change = harm::change(old, &old_runs, &new_runs)?;
        Some((before, after, change))
    }

    /// A figure that only the earlier side has. A figure that every load, check or search has is
    /// missing together with it, and a reader must not take that for "the same".
    fn vanished(&self, figure: &Figure, comparison: &mut Comparison) {
        if figure.summary(self.before.iter().copied()).is_none() {
            return;
        }
        let text = format!("{}, {}: only before", self.place, figure.full_label());
        // Runs that failed, or that the generator spoilt, have been named already.
        let is_told = valid(self.after).is_none() && !harm::is_harm(figure);
        if figure.is_always_told() && !is_told {
            comparison.failures.push(text);
        } else {
            comparison.missing.push(text);
        }
    }

    /// Figures that only the later side has: their earlier values are unknown. Harm is reported as
    /// a failure when there is any.
    fn only_after(&self, old: &[Figure], new: &[Figure], comparison: &mut Comparison) {
        for figure in new.iter().filter(|figure| !UNJUDGED.contains(&figure.id.as_str())) {
            let same = |other: &&Figure| other.id == figure.id && other.load == figure.load;
            let old = old.iter().find(same);
            let before = old.and_then(|old| old.summary(self.before.iter().copied()));
            let Some(after) = figure.summary(self.after.iter().copied()) else { continue };
            if before.is_some() {
                continue;
            }
            let label = figure.full_label();
            if harm::is_harm(figure) && after.high > 0.0 {
                comparison.failures.push(format!(
                    "{}, {label}: up to {} in a run now, and not measured before",
                    self.place, after.high
                ));
            } else {
                comparison.missing.push(format!("{}, {label}: only after", self.place));
            }
        }
    }

    /// The sentence when more of the runs than before lack a figure now.
    fn gone(&self, old: &Figure, new: &Figure) -> Option<String> {
        let missed = |figure: &Figure, runs: &[&Run]| -> Vec<&'static str> {
            runs.iter().filter_map(|run| figure.missed(run)).collect()
        };
        let (was, is) = (missed(old, self.before), missed(new, self.after));
        let (old_count, count) = (self.before.len(), self.after.len());
        let first = is.first()?;
        if !harm::is_larger_share((was.len(), old_count), (is.len(), count)) {
            return None;
        }
        let earlier = harm::count_before(was.len(), old_count);
        Some(format!("{first} in {} of {count} runs now, in {earlier} before", is.len()))
    }
}

/// When most runs bore a load before, it is a regression when half of them do not now.
fn overload(place: &str, before: &[&Run], after: &[&Run], comparison: &mut Comparison) {
    let count =
        |runs: &[&Run]| runs.iter().filter(|run| !overloaded_reasons(run).is_empty()).count();
    let (earlier, now) = (count(before), count(after));
    if !harm::is_larger_share((earlier, before.len()), (now, after.len())) {
        return;
    }
    let why = after.iter().find_map(|run| overloaded_reasons(run).first().copied());
    let text = format!(
        "{place}: overloaded in {now} of {} runs now, in {} before: {}",
        after.len(),
        harm::count_before(earlier, before.len()),
        why.unwrap_or_default()
    );
    if 2 * now >= after.len() && 2 * earlier < before.len() {
        comparison.failures.push(text);
    } else {
        comparison.cautions.push(text);
    }
}

/// The runs that say something about the target, if any.
fn valid<'a>(runs: &[&'a Run]) -> Option<Vec<&'a Run>> {
    let counts = |run: &&Run| run.failure.is_none() && invalid_reasons(run).is_empty();
    let valid: Vec<&Run> = runs.iter().copied().filter(counts).collect();
    (!valid.is_empty()).then_some(valid)
}

/// The same for the later side; runs that cannot be compared are named.
fn valid_after<'a>(
    place: &str,
    before: &[&Run],
    after: &[&'a Run],
    comparison: &mut Comparison,
) -> Option<Vec<&'a Run>> {
    let found = valid(after);
    let failure = |runs: &[&Run]| runs.iter().find_map(|run| run.failure.clone());
    match (valid(before).is_some(), found.is_some()) {
        (true, false) => {
            let reasons = after.iter().find_map(|run| invalid_reasons(run).first().copied());
            // Where all have failed, that is said already.
            if let Some(why) = reasons {
                comparison.failures.push(format!("{place}: no valid run now: INVALID: {why}"));
            }
        }
        (false, true) => {
            let how = if failure(before).is_some() { "failed" } else { "was INVALID" };
            comparison.missing.push(format!("{place}: {how} before"));
        }
        (false, false) => comparison.missing.push(format!("{place}: no valid run on either side")),
        (true, true) => {}
    }
    found
}

/// How a figure with this difference changed.
fn judged(better: Better, difference: Difference) -> Change {
    match (difference, better) {
        (Difference::Tie, _) => Change::WithinNoise,
        (Difference::Higher, Better::Higher) | (Difference::Lower, Better::Lower) => Change::Better,
        (_, Better::Neither) => Change::Different,
        _ => Change::Worse,
    }
}

fn point(parameters: &Parameters) -> String {
    let parts: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
    parts.join(", ")
}

fn place(experiment: &str, target: &str, parameters: &Parameters) -> String {
    let point = point(parameters);
    if point.is_empty() {
        format!("{experiment}, {target}")
    } else {
        format!("{experiment}, {target}, {point}")
    }
}
