//! Comparisons: what changed between two results of the same experiments, beyond noise.

mod table;

use std::collections::BTreeMap;

use crate::report::{invalid_reasons, overloaded_reasons};
use crate::results::figure::figures;
use crate::results::{
    Better, Difference, ENOUGH_RUNS, ExperimentResult, Figure, Machine, Results, Run, Summary, Unit,
};

/// Figures that are too much a matter of luck to be judged.
const UNJUDGED: [&str; 3] = ["max", "p99.99", "service_p99"];

/// What changed from one file of results to another.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// A row per experiment, target, point of the matrix and figure that both have.
    pub rows: Vec<Row>,
    /// What only one side has, a sentence each.
    pub missing: Vec<String>,
    /// What makes the two hard to compare, a sentence each.
    pub cautions: Vec<String>,
    /// What was there before and is not now, a sentence each: runs that fail or have no valid
    /// repetition, loads that are not borne, a recovery or a good rate that is not found. These are
    /// regressions too.
    pub failures: Vec<String>,
}

/// One figure of one target at one point, before and after.
#[derive(Clone, Debug)]
pub struct Row {
    /// The experiment's name.
    pub experiment: String,
    /// The target's name.
    pub target: String,
    /// The point of the matrix: `connections 50, fsync always`; empty without one.
    pub point: String,
    /// What a reader calls the figure.
    pub figure: String,
    /// What it counts in.
    pub unit: Unit,
    /// Over the valid repetitions before.
    pub before: Summary,
    /// Over the valid repetitions after.
    pub after: Summary,
    /// What became of it.
    pub change: Change,
}

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is no further away than figures lie among themselves.
    WithinNoise,
    /// It is better, beyond noise.
    Better,
    /// It is worse, beyond noise.
    Worse,
    /// It is different, and nobody can say what is better.
    Different,
}

/// A point of an experiment's matrix.
type Parameters = BTreeMap<String, String>;

/// Compares two results. A figure changed when its medians are further apart than the figures of
/// either side lie among themselves, and by 5 % at least (15 % when one side has fewer than three runs): the
/// rule of [`Summary::against`].
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
            None => comparison.missing.push(format!("{}: only before", old.name)),
        }
    }
    for new in &after.experiments {
        if before.experiments.iter().all(|old| old.name != new.name) {
            comparison.missing.push(format!("{}: only after", new.name));
        }
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

impl Comparison {
    /// The rows that became worse beyond noise.
    pub fn regressions(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.change == Change::Worse)
    }

    /// Whether anything became worse: a figure beyond noise, or a run that fails now.
    pub fn is_regression(&self) -> bool {
        self.regressions().next().is_some() || !self.failures.is_empty()
    }
}

impl Row {
    /// By which share the median changed: 0.1 for a tenth more; none from zero.
    pub fn share(&self) -> Option<f64> {
        self.after.ratio(&self.before).map(|ratio| ratio - 1.0)
    }
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
    // A figure is the same when its name is; where it is found may have changed with the file.
    let new_figures = figures(after);
    let (old, new) = (cells(before), cells(after));
    for ((target, parameters), runs) in &old {
        let place = place(&before.name, target, parameters);
        let Some((_, new_runs)) = new.iter().find(|(key, _)| key == &(*target, *parameters)) else {
            comparison.missing.push(format!("{place}: only before"));
            continue;
        };
        let (Some(old_runs), Some(new_runs)) =
            (valid(runs), valid_after(&place, runs, new_runs, comparison))
        else {
            continue;
        };
        overload(&place, &old_runs, &new_runs, comparison);
        for figure in &both {
            if let Some(why) = gone(figure, &old_runs, &new_runs) {
                comparison.failures.push(format!("{place}, {}: {why}", figure.full_label()));
            }
            let same = |other: &&Figure| other.id == figure.id && other.load == figure.load;
            let summary = figure.summary(old_runs.iter().copied());
            let other = new_figures.iter().find(same);
            let new_summary = other.and_then(|other| other.summary(new_runs.iter().copied()));
            match (summary, new_summary) {
                (Some(old), Some(new)) => {
                    comparison.rows.push(row(before, target, parameters, figure, old, new));
                }
                (Some(_), None) if gone(figure, &old_runs, &new_runs).is_none() => {
                    let label = figure.full_label();
                    comparison.missing.push(format!("{place}, {label}: only before"));
                }
                _ => {}
            }
        }
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

/// What to say when some runs look for a figure in vain now, and none did before.
fn gone(figure: &Figure, before: &[&Run], after: &[&Run]) -> Option<String> {
    if before.iter().any(|run| figure.missed(run).is_some()) {
        return None;
    }
    figure.summary(before.iter().copied())?;
    let words: Vec<&str> = after.iter().filter_map(|run| figure.missed(run)).collect();
    let first = words.first()?;
    Some(format!("{first} in {} of {} runs now, in none before", words.len(), after.len()))
}

/// A load that was borne and is not now is a regression when it is so in half of the runs.
fn overload(place: &str, before: &[&Run], after: &[&Run], comparison: &mut Comparison) {
    let count =
        |runs: &[&Run]| runs.iter().filter(|run| !overloaded_reasons(run).is_empty()).count();
    let now = count(after);
    if count(before) > 0 || now == 0 {
        return;
    }
    let why = after.iter().find_map(|run| overloaded_reasons(run).first().copied());
    let text = format!(
        "{place}: overloaded in {now} of {} runs now, in none before: {}",
        after.len(),
        why.unwrap_or_default()
    );
    if 2 * now >= after.len() {
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

/// The same for the later side; what cannot be compared is named.
fn valid_after<'a>(
    place: &str,
    before: &[&Run],
    after: &[&'a Run],
    comparison: &mut Comparison,
) -> Option<Vec<&'a Run>> {
    let found = valid(after);
    let failure = |runs: &[&Run]| runs.iter().find_map(|run| run.failure.clone());
    match (valid(before).is_some(), found.is_some()) {
        (true, false) => match failure(after) {
            Some(why) => comparison.failures.push(format!("{place}: fails now: {why}")),
            None => {
                let reasons = after.iter().find_map(|run| invalid_reasons(run).first().copied());
                let why = reasons.unwrap_or_default();
                comparison.failures.push(format!("{place}: no valid run now: INVALID: {why}"));
            }
        },
        (false, true) => {
            let how = if failure(before).is_some() { "failed" } else { "was INVALID" };
            comparison.missing.push(format!("{place}: {how} before"));
        }
        (false, false) => comparison.missing.push(format!("{place}: no valid run on either side")),
        (true, true) => {}
    }
    found
}

fn row(
    experiment: &ExperimentResult,
    target: &str,
    parameters: &Parameters,
    figure: &Figure,
    before: Summary,
    after: Summary,
) -> Row {
    let change = match (after.against(&before), figure.better) {
        (Difference::Tie, _) => Change::WithinNoise,
        (Difference::Higher, Better::Higher) | (Difference::Lower, Better::Lower) => Change::Better,
        (_, Better::Neither) => Change::Different,
        _ => Change::Worse,
    };
    Row {
        experiment: experiment.name.clone(),
        target: target.to_owned(),
        point: point(parameters),
        figure: figure.full_label(),
        unit: figure.unit,
        before,
        after,
        change,
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
