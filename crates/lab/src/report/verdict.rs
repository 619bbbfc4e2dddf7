//! What an experiment's figures say, in a sentence or two.

use std::collections::BTreeSet;

use super::analysis::Analysis;
use super::number;
use crate::results::figure::{CHECK_RECOVERY, LOAD_RECOVERY, was_broken};
use crate::results::{Better, Check, Difference, ENOUGH_RUNS, Figure, Run, Unit};

/// Failed or invalid runs that are told beside the answer; the table of runs has them all.
const MOST_TROUBLES: usize = 12;

/// The figures that matter most, the most important first: those that the file asks for among its
/// views; otherwise the knee, or throughput (of a closed load) and p99 of each load, then processor
/// time and memory.
pub(crate) fn headline_figures<'a>(analysis: &'a Analysis<'_>) -> Vec<&'a Figure> {
    let wanted = &analysis.experiment.views;
    let asked: Vec<&Figure> = wanted
        .iter()
        .flat_map(|view| analysis.figures.iter().filter(move |figure| figure.id == *view))
        .collect();
    if !asked.is_empty() {
        return asked;
    }
    let mut chosen: Vec<&Figure> = Vec::new();
    chosen.extend(analysis.figure("best_rate"));
    // Where something was done to the targets, the time meanwhile is what was asked about.
    let meanwhile = analysis.figure("p99_during_events_ms");
    if chosen.is_empty() {
        chosen.extend(analysis.figures.iter().filter(|figure| {
            let throughput = figure.id == "throughput" && figure.better == Better::Higher;
            throughput || (figure.id == "p99" && meanwhile.is_none())
        }));
    }
    chosen.extend(meanwhile);
    chosen.extend(analysis.figure("p99_quiet_ms"));
    chosen.extend(analysis.figure(LOAD_RECOVERY).or(analysis.figure(CHECK_RECOVERY)));
    chosen.extend(analysis.figure("server_cpu_us_per_request"));
    let growth = if meanwhile.is_some() { "peak_memory_ratio" } else { "peak_memory_bytes" };
    let memory = [growth, "peak_memory_bytes"];
    chosen.extend(memory.iter().find_map(|name| analysis.figure(name)));
    chosen
}

/// The answer to the experiment's question, computed from its valid runs: one sentence about losses,
/// where a checker looked, one about recovery where targets were broken, one about targets that did
/// not bear what was sent, one about the most important figure for each target, one about the second
/// figure.
pub(crate) fn answer(analysis: &Analysis<'_>) -> Vec<String> {
    if !analysis.has_valid_runs() {
        let none = "There is no valid run, so there is no answer.".to_owned();
        return losses(analysis).into_iter().chain([none]).collect();
    }
    let figures = headline_figures(analysis);
    let others: Vec<usize> = (0..analysis.targets.len())
        .filter(|target| *target != analysis.baseline)
        .filter(|target| analysis.points.iter().any(|point| !point.cells[*target].valid.is_empty()))
        .collect();
    let mut sentences: Vec<String> = Vec::new();
    sentences.extend(losses(analysis));
    sentences.extend(recoveries(analysis));
    sentences.extend(not_borne(analysis));
    for (index, figure) in figures.iter().take(2).enumerate() {
        if others.is_empty() {
            sentences.extend(alone(analysis, figure));
        }
        // The second figure is told of the first target only: more would be a table.
        let count = if index == 0 { others.len() } else { 1 };
        for target in others.iter().take(count) {
            sentences.extend(compared(analysis, figure, *target));
        }
    }
    sentences
}

/// What became of acknowledged writes, where a checker looked: in INVALID and failed runs too, since
/// no lateness of the generator and no failure makes a loss undone.
fn losses(analysis: &Analysis<'_>) -> Option<String> {
    let mut parts = Vec::new();
    for (index, target) in analysis.targets.iter().enumerate() {
        let points: Vec<(usize, u64, u64)> = (0..analysis.points.len())
            .filter_map(|point| {
                let (lost, acknowledged) = lost_at(analysis.points[point].cells[index].all())?;
                Some((point, lost, acknowledged))
            })
            .collect();
        if points.is_empty() {
            continue;
        }
        let all: u64 = points.iter().map(|(_, _, acknowledged)| acknowledged).sum();
        let with_losses: Vec<String> = points
            .iter()
            .filter(|(_, lost, _)| *lost > 0)
            .map(|(point, lost, acknowledged)| {
                let (lost, of) =
                    (number::grouped(*lost as f64), number::grouped(*acknowledged as f64));
                match analysis.point_label(*point) {
                    label if label.is_empty() => format!("{lost} of {of} acknowledged writes"),
                    label => format!("{lost} of {of} acknowledged writes at {label}"),
                }
            })
            .collect();
        let mut part = match with_losses.len() {
            0 => format!("none of {} acknowledged writes", number::grouped(all as f64)),
            lossy if lossy < points.len() => format!("{}, none elsewhere", with_losses.join(", ")),
            _ => with_losses.join(", "),
        };
        let runs = analysis.points.iter().flat_map(|point| point.cells[index].all());
        let checks: Vec<&Check> = runs.filter_map(|run| run.check.as_ref()).collect();
        let stale: u64 = checks.iter().map(|check| check.stale_reads).sum();
        let wrong: u64 = checks.iter().map(|check| check.wrong).sum();
        for (count, what) in [(stale, "stale reads"), (wrong, "values that nobody wrote")] {
            if count > 0 {
                part.push_str(&format!(", with {} {what}", number::grouped(count as f64)));
            }
        }
        parts.push(format!("{target} lost {part}"));
    }
    (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
}

/// How long it took until all was as before, by point: for the loads, and for the checker. Runs that
/// were not back before their end are counted.
fn recoveries(analysis: &Analysis<'_>) -> Option<String> {
    let mut sentences = Vec::new();
    for (id, who) in [(LOAD_RECOVERY, "The load"), (CHECK_RECOVERY, "The checker")] {
        let Some(figure) = analysis.figure(id) else { continue };
        let mut parts = Vec::new();
        for (index, target) in analysis.targets.iter().enumerate() {
            let recovery = |point| recovery(analysis, figure, point, index);
            let recoveries: Vec<String> = (0..analysis.points.len()).filter_map(recovery).collect();
            if !recoveries.is_empty() {
                parts.push(format!("with {target} {}", recoveries.join(", ")));
            }
        }
        if !parts.is_empty() {
            let parts = parts.join("; ");
            sentences.push(format!("{who} was back at 90 % of its throughput {parts}."));
        }
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// `after 1.2 s at fsync always (not in 1 of 3 runs)`.
fn recovery(
    analysis: &Analysis<'_>,
    figure: &Figure,
    point: usize,
    target: usize,
) -> Option<String> {
    let cell = &analysis.points[point].cells[target];
    let summary = analysis.summary(figure, point, target);
    let missed = cell.missed(figure).map_or(0, |(_, count)| count);
    let of = missed + summary.map_or(0, |summary| summary.count);
    let place = match analysis.point_label(point) {
        label if label.is_empty() => label,
        label => format!(" at {label}"),
    };
    match summary.map(|summary| number::duration(summary.median)) {
        Some(time) if missed == 0 => Some(format!("after {time}{place}")),
        Some(time) => Some(format!("after {time}{place} (not in {missed} of {of} runs)")),
        None if missed > 0 => Some(format!("in none of {of} runs{place}")),
        None => None,
    }
}

/// Targets that did not bear what was sent, and at how many points.
fn not_borne(analysis: &Analysis<'_>) -> Option<String> {
    let mut parts = Vec::new();
    for (index, target) in analysis.targets.iter().enumerate() {
        let cells = || analysis.points.iter().map(|point| &point.cells[index]);
        let runs: usize = cells().map(|cell| cell.valid.len()).sum();
        let overloaded: usize = cells().map(super::analysis::Cell::overloaded).sum();
        if overloaded > 0 {
            parts.push(format!("{target} in {overloaded} of {runs} runs"));
        }
    }
    (!parts.is_empty())
        .then(|| format!("Could not keep up with what was sent: {}.", parts.join(", ")))
}

/// How many writes are gone, of how many that were acknowledged; none where no checker looked.
fn lost_at<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<(u64, u64)> {
    let checks: Vec<_> = runs.filter_map(|run| run.check.as_ref()).collect();
    let lost = checks.iter().map(|check| check.lost).sum();
    let acknowledged = checks.iter().map(|check| check.acknowledged).sum();
    (!checks.is_empty()).then_some((lost, acknowledged))
}

/// A target that there is nothing to compare with.
fn alone(analysis: &Analysis<'_>, figure: &Figure) -> Option<String> {
    let target = analysis.targets.get(analysis.baseline)?;
    let mut all: Vec<(usize, f64)> = (0..analysis.points.len())
        .filter_map(|point| {
            Some((point, analysis.summary(figure, point, analysis.baseline)?.median))
        })
        .collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let ((low, lowest), (high, highest)) = (all.first()?, all.last()?);
    let label = figure.full_label();
    let show = |value: f64| shown(figure, value);
    if all.len() == 1 {
        return Some(format!("The {label} of {target} is {}.", show(*lowest)));
    }
    Some(format!(
        "The {label} of {target} goes from {} ({}) to {} ({}).",
        show(*lowest),
        analysis.point_label(*low),
        show(*highest),
        analysis.point_label(*high)
    ))
}

fn shown(figure: &Figure, value: f64) -> String {
    let text = number::show(figure.unit, value);
    if figure.unit == Unit::PerSecond { format!("{text} a second") } else { text }
}

/// Where a target stands above, below and level with the baseline.
#[derive(Default)]
struct Standing {
    higher: Vec<(usize, f64)>,
    lower: Vec<(usize, f64)>,
    ties: Vec<usize>,
}

impl Standing {
    fn of(analysis: &Analysis<'_>, figure: &Figure, target: usize) -> Standing {
        let mut standing = Standing::default();
        for point in 0..analysis.points.len() {
            match analysis.against_baseline(figure, point, target) {
                Some((Difference::Tie, _)) => standing.ties.push(point),
                Some((Difference::Higher, Some(ratio))) => standing.higher.push((point, ratio)),
                Some((Difference::Lower, Some(ratio))) => standing.lower.push((point, ratio)),
                // Of nothing there is no multiple; the tables show it.
                Some((_, None)) | None => {}
            }
        }
        for list in [&mut standing.higher, &mut standing.lower] {
            list.sort_by(|a, b| a.1.total_cmp(&b.1));
        }
        standing
    }

    fn count(&self) -> usize {
        self.higher.len() + self.lower.len() + self.ties.len()
    }
}

fn compared(analysis: &Analysis<'_>, figure: &Figure, target: usize) -> Option<String> {
    let standing = Standing::of(analysis, figure, target);
    let (name, baseline) = (analysis.targets[target], analysis.targets[analysis.baseline]);
    let label = figure.full_label();
    let count = standing.count();
    if count == 0 {
        return None;
    }
    if standing.ties.len() == count {
        let places = if count == 1 { String::new() } else { format!(" at each of {count} points") };
        return Some(format!(
            "In {label}, {name} and {baseline} are level{places}: the difference is within the \
             spread, a tie."
        ));
    }
    let (higher, lower) = (standing.higher.as_slice(), standing.lower.as_slice());
    let (more, less) = if higher.len() >= lower.len() { (higher, lower) } else { (lower, higher) };
    let mut sentence = multiple(figure, more, name, baseline);
    if more.len() < count {
        sentence.push_str(&format!(" at {} of {count} points", more.len()));
    } else if count > 1 {
        let furthest = more.iter().max_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()));
        let furthest = furthest.map(|(point, _)| analysis.point_label(*point));
        let furthest = furthest.unwrap_or_default();
        sentence.push_str(&format!(" at each of {count} points, furthest apart at {furthest}"));
    }
    if !less.is_empty() {
        sentence.push_str(&format!(
            "; {} at {}",
            times(less),
            places(analysis, less.iter().map(|(point, _)| *point))
        ));
    }
    if !standing.ties.is_empty() {
        let places = places(analysis, standing.ties.iter().copied());
        sentence.push_str(&format!("; at {places} the difference is within the spread: a tie"));
    }
    Some(sentence + ".")
}

/// Some points by name, all when they are few.
fn places(analysis: &Analysis<'_>, points: impl ExactSizeIterator<Item = usize>) -> String {
    let count = points.len();
    if count > 3 {
        return format!("{count} others");
    }
    let places: Vec<String> = points.map(|point| analysis.point_label(point)).collect();
    places.join(" and at ")
}

/// What a target is in terms of the baseline, without the end of the sentence.
fn multiple(figure: &Figure, list: &[(usize, f64)], name: &str, baseline: &str) -> String {
    let times = times(list);
    if figure.id == "throughput" {
        let load =
            if figure.load.is_empty() { String::new() } else { format!(" of {}", figure.load) };
        format!("{name} answers {times} as many requests{load} a second as {baseline}")
    } else {
        format!("The {} of {name} is {times} that of {baseline}", figure.full_label())
    }
}

/// `1.4 to 2.1 times`.
fn times(list: &[(usize, f64)]) -> String {
    let text = |value: f64| number::ratio(value).trim_end_matches('×').to_owned();
    match (list.first(), list.last()) {
        (Some((_, low)), Some((_, high))) if text(*low) != text(*high) => {
            format!("{} to {} times", text(*low), text(*high))
        }
        (Some((_, only)), _) => format!("{} times", text(*only)),
        _ => String::new(),
    }
}

/// What a reader must know before believing a figure: who was not measured, which runs failed or
/// are invalid, and figures whose spread is unknown.
pub(crate) fn cautions(analysis: &Analysis<'_>) -> Vec<String> {
    let mut cautions = Vec::new();
    let skipped = analysis.experiment.skipped.iter();
    let skipped: Vec<String> =
        skipped.map(|one| format!("{} ({})", one.name, without_stop(&one.reason))).collect();
    if !skipped.is_empty() {
        cautions.push(format!("Skipped: {}.", skipped.join(", ")));
    }
    let mut troubles: Vec<(String, Vec<String>, String)> = Vec::new();
    let mut add = |place: &str, run: &Run, trouble: String| {
        let repetition = (run.repetition + 1).to_string();
        match troubles.iter_mut().find(|(at, _, what)| at == place && *what == trouble) {
            Some((_, repetitions, _)) => repetitions.push(repetition),
            None => troubles.push((place.to_owned(), vec![repetition], trouble)),
        }
    };
    let (mut few, mut cells) = (0, 0);
    for (index, point) in analysis.points.iter().enumerate() {
        for (target, cell) in analysis.targets.iter().zip(&point.cells) {
            let place = match analysis.point_label(index) {
                label if label.is_empty() => (*target).to_owned(),
                label => format!("{target} at {label}"),
            };
            for run in &cell.failed {
                let why = without_stop(run.failure.as_deref().unwrap_or_default());
                add(&place, run, format!("failed: {why}."));
            }
            for run in &cell.invalid {
                let why = super::analysis::invalid_reasons(run);
                let why: Vec<&str> = why.into_iter().map(without_stop).collect();
                add(&place, run, format!("INVALID and not counted: {}.", why.join("; ")));
            }
            for run in &cell.valid {
                let why: Vec<&str> = super::analysis::overloaded_reasons(run)
                    .into_iter()
                    .map(without_stop)
                    .collect();
                if !why.is_empty() {
                    add(&place, run, format!("overloaded, which counts: {}.", why.join("; ")));
                }
                if let Some(kinds) = unexplained_errors(run) {
                    add(&place, run, format!("had errors that no event explains: {kinds}."));
                }
                if run.knee.as_ref().is_some_and(|knee| knee.limited_by_generator) {
                    let what = "the generator could not offer more: the rate is a lower bound.";
                    add(&place, run, what.to_owned());
                }
                if run.knee.as_ref().is_some_and(|knee| knee.ended_early) {
                    let what = "the search ended before a rate was bad: the rate is a lower bound.";
                    add(&place, run, what.to_owned());
                }
            }
            cells += usize::from(!cell.valid.is_empty());
            few += usize::from((1..ENOUGH_RUNS).contains(&cell.valid.len()));
        }
    }
    let more = troubles.len().saturating_sub(MOST_TROUBLES);
    for (place, repetitions, trouble) in troubles.into_iter().take(MOST_TROUBLES) {
        let word = if repetitions.len() == 1 { "repetition" } else { "repetitions" };
        cautions.push(format!("{place}, {word} {}, {trouble}", repetitions.join(", ")));
    }
    if more > 0 {
        cautions
            .push(format!("{more} more runs or groups of runs are in doubt, failed or INVALID."));
    }
    if few > 0 {
        let which = if few == cells { "Every figure" } else { "Some figures" };
        let verb = if few == cells { "comes" } else { "come" };
        cautions.push(format!(
            "{which} {verb} from fewer than three runs: how well these repeat is unknown, and \
             differences below 15 % count as ties."
        ));
    }
    cautions
}

/// The kinds of errors of a run in which nobody broke the target.
fn unexplained_errors(run: &Run) -> Option<String> {
    if was_broken(run) {
        return None;
    }
    let operations = run.loads.iter().flat_map(|load| &load.recording.operations);
    let kinds: BTreeSet<&str> =
        operations.flat_map(|operation| operation.errors.keys()).map(String::as_str).collect();
    (!kinds.is_empty()).then(|| kinds.into_iter().collect::<Vec<&str>>().join(", "))
}

fn without_stop(sentence: &str) -> &str {
    sentence.trim_end().trim_end_matches('.')
}
