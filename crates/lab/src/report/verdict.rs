//! What an experiment's figures say, in short sentences.

use std::collections::BTreeSet;

use super::analysis::Analysis;
use super::{number, standing};
use crate::results::figure::{CHECK_RECOVERY, LOAD_RECOVERY, was_broken};
use crate::results::{Better, Check, ENOUGH_RUNS, Figure, Run, Unit};

/// Failed or invalid runs that are told beside the answer; the table of runs has them all.
const MOST_TROUBLES: usize = 12;

/// The figures that matter most, the most important first: those that the file asks for among its
/// views; otherwise the knee, what targets felt of what was done to them, processor time and
/// memory, which repeat well, then throughput (of a closed load) and p99 of each load, which depend
/// on what else a machine does.
pub(crate) fn headline_figures<'a>(analysis: &'a Analysis<'_>) -> Vec<&'a Figure> {
    let wanted = &analysis.experiment.views;
    let asked: Vec<&Figure> = wanted
        .iter()
        .flat_map(|view| analysis.figures.iter().filter(move |figure| figure.id == *view))
        .collect();
    if !asked.is_empty() {
        return asked;
    }
    // A figure that no valid run has answers nothing, such as the time beside an event when all
    // runs with one are INVALID.
    let has_values = |figure: &&Figure| {
        (0..analysis.points.len()).any(|point| {
            (0..analysis.targets.len())
                .any(|target| analysis.summary(figure, point, target).is_some())
        })
    };
    let known = |id: &str| analysis.figure(id).filter(has_values);
    let mut chosen: Vec<&Figure> = Vec::new();
    chosen.extend(known("best_rate"));
    // Where something was done to the targets, the time meanwhile is what was asked about.
    let meanwhile = known("p99_during_events_ms");
    chosen.extend(meanwhile);
    chosen.extend(known("p99_quiet_ms"));
    chosen.extend(known(LOAD_RECOVERY).or(known(CHECK_RECOVERY)));
    chosen.extend(known("server_cpu_us_per_request"));
    if known("best_rate").is_none() {
        chosen.extend(analysis.figures.iter().filter(has_values).filter(|figure| {
            let throughput = figure.id == "throughput" && figure.better == Better::Higher;
            throughput || (figure.id == "p99" && meanwhile.is_none())
        }));
    }
    let growth = if meanwhile.is_some() { "peak_memory_ratio" } else { "peak_memory_bytes" };
    chosen.extend([growth, "peak_memory_bytes"].iter().find_map(|name| known(name)));
    chosen
}

/// The answer to the experiment's question, computed from its valid runs, in short sentences: for
/// each target what it lost, where a checker looked, and how it recovered, where targets were
/// broken; how Dunlin stands beside each of the others; and which targets could not keep up.
pub(crate) fn answer(analysis: &Analysis<'_>) -> Vec<String> {
    let of_each = |say: &dyn Fn(usize) -> Option<String>| -> Vec<String> {
        (0..analysis.targets.len()).filter_map(say).collect()
    };
    let mut sentences = of_each(&|target| loss(analysis, target));
    if !analysis.has_valid_runs() {
        sentences.push("There is no valid run, so there is no answer.".to_owned());
        return sentences;
    }
    if let Some(figure) = analysis.figure(LOAD_RECOVERY).or(analysis.figure(CHECK_RECOVERY)) {
        sentences.extend(of_each(&|target| recovery(analysis, figure, target)));
    }
    let figures = headline_figures(analysis);
    let standings = standing::sentences(analysis, &figures);
    if standings.is_empty() {
        match figures.first() {
            Some(figure) if standing::is_invalid(analysis, figure, analysis.baseline) => {
                let no_answer = standing::no_answer(analysis, figure, analysis.baseline);
                sentences.push(format!("{}: {no_answer}", analysis.targets[analysis.baseline]));
            }
            _ => sentences.extend(figures.iter().take(2).filter_map(|one| alone(analysis, one))),
        }
    }
    sentences.extend(standings);
    sentences.extend(of_each(&|target| overload(analysis, target)));
    sentences
}

/// What became of a target's acknowledged writes, where a checker looked: in INVALID and failed
/// runs too, since no lateness of the generator and no failure makes a loss undone.
fn loss(analysis: &Analysis<'_>, target: usize) -> Option<String> {
    let points: Vec<(usize, u64, u64)> = (0..analysis.points.len())
        .filter_map(|point| {
            let (lost, acknowledged) = lost_at(analysis.points[point].cells[target].all())?;
            Some((point, lost, acknowledged))
        })
        .collect();
    if points.is_empty() {
        return None;
    }
    let lossy: Vec<String> = points
        .iter()
        .filter(|(_, lost, _)| *lost > 0)
        .map(|(point, lost, acknowledged)| {
            let (lost, of) = (number::grouped(*lost as f64), number::grouped(*acknowledged as f64));
            match analysis.point_label(*point) {
                label if label.is_empty() => format!("{lost} of {of}"),
                label => format!("{lost} of {of} at {label}"),
            }
        })
        .collect();
    let mut sentence = format!("{} lost ", analysis.targets[target]);
    sentence += &match lossy.len() {
        0 => {
            let all: u64 = points.iter().map(|(_, _, acknowledged)| acknowledged).sum();
            format!("none of {} acknowledged writes", number::grouped(all as f64))
        }
        1 if points.len() == 1 => format!("{} acknowledged writes", lossy[0]),
        some if some < points.len() => {
            format!("acknowledged writes: {}, none elsewhere", lossy.join(", "))
        }
        _ => format!("acknowledged writes: {}", lossy.join(", ")),
    };
    let runs = analysis.points.iter().flat_map(|point| point.cells[target].all());
    let checks: Vec<&Check> = runs.filter_map(|run| run.check.as_ref()).collect();
    let stale: u64 = checks.iter().map(|check| check.stale_reads).sum();
    let wrong: u64 = checks.iter().map(|check| check.wrong).sum();
    for (count, what) in [(stale, "stale reads"), (wrong, "values that nobody wrote")] {
        if count > 0 {
            sentence += &format!(", with {} {what}", number::grouped(count as f64));
        }
    }
    Some(sentence + ".")
}

/// How long it took a target at most until all was as before: for the loads, or for the checker
/// where no load was watched. It is the longest of the points' medians. Runs that were not back
/// before their end are counted.
fn recovery(analysis: &Analysis<'_>, figure: &Figure, target: usize) -> Option<String> {
    let name = analysis.targets[target];
    let missed: usize = analysis
        .points
        .iter()
        .filter_map(|point| Some(point.cells[target].missed(figure)?.1))
        .sum();
    let summaries =
        (0..analysis.points.len()).filter_map(|point| analysis.summary(figure, point, target));
    let (found, longest) = summaries.fold((0, None::<f64>), |(found, longest), summary| {
        let median = longest.map_or(summary.median, |longest| longest.max(summary.median));
        (found + summary.count, Some(median))
    });
    let of = missed + found;
    let back = "back at 90 % of its throughput";
    match longest.map(number::duration) {
        Some(time) if missed == 0 => Some(format!("{name}: {back} after {time}.")),
        Some(time) => {
            Some(format!("{name}: {back} after {time}, but not in {missed} of {of} runs."))
        }
        None if missed > 0 => Some(format!("{name}: {back} in none of {of} runs.")),
        None => None,
    }
}

/// In how many runs a target could not keep up with what was sent.
fn overload(analysis: &Analysis<'_>, target: usize) -> Option<String> {
    let cells = || analysis.points.iter().map(|point| &point.cells[target]);
    let runs: usize = cells().map(|cell| cell.valid.len()).sum();
    let overloaded: usize = cells().map(super::analysis::Cell::overloaded).sum();
    let name = analysis.targets[target];
    (overloaded > 0)
        .then(|| format!("{name} could not keep up with the load in {overloaded} of {runs} runs."))
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

/// How many runs failed.
pub(crate) fn failed_runs(analysis: &Analysis<'_>) -> usize {
    analysis.experiment.runs.iter().filter(|run| run.failure.is_some()).count()
}

/// Which runs failed, and why.
pub(crate) fn failures(analysis: &Analysis<'_>) -> Vec<String> {
    let mut troubles = Troubles::default();
    for (index, point) in analysis.points.iter().enumerate() {
        for (target, cell) in analysis.targets.iter().zip(&point.cells) {
            for run in &cell.failed {
                let why = without_stop(run.failure.as_deref().unwrap_or_default());
                let point = analysis.point_label(index);
                troubles.add(target, &point, run.repetition, format!("failed: {why}."));
            }
        }
    }
    troubles.told()
}

/// What a reader must know before believing a figure: who was not measured, which runs are invalid,
/// and figures whose spread is unknown.
pub(crate) fn cautions(analysis: &Analysis<'_>) -> Vec<String> {
    let mut cautions = Vec::new();
    let skipped = analysis.experiment.skipped.iter();
    let skipped: Vec<String> =
        skipped.map(|one| format!("{} ({})", one.name, without_stop(&one.reason))).collect();
    if !skipped.is_empty() {
        cautions.push(format!("Skipped: {}.", skipped.join(", ")));
    }
    let mut troubles = Troubles::default();
    let (mut few, mut cells) = (0, 0);
    for (index, point) in analysis.points.iter().enumerate() {
        for (target, cell) in analysis.targets.iter().zip(&point.cells) {
            let point = analysis.point_label(index);
            let mut add = |run: &Run, what| troubles.add(target, &point, run.repetition, what);
            for run in &cell.invalid {
                let why = super::analysis::invalid_reasons(run);
                let why: Vec<&str> = why.into_iter().map(without_stop).collect();
                add(run, format!("INVALID and not counted: {}.", why.join("; ")));
            }
            for run in &cell.valid {
                let why = super::analysis::late_reasons(run);
                if !why.is_empty() {
                    let why: Vec<&str> = why.into_iter().map(without_stop).collect();
                    let words = "response times INVALID and not counted";
                    add(run, format!("{words}: {}.", why.join("; ")));
                }
                let why: Vec<&str> = super::analysis::overloaded_reasons(run)
                    .into_iter()
                    .map(without_stop)
                    .collect();
                if !why.is_empty() {
                    add(run, format!("overloaded, which counts: {}.", why.join("; ")));
                }
                if let Some(kinds) = unexplained_errors(run) {
                    add(run, format!("had errors that no event explains: {kinds}."));
                }
                if run.knee.as_ref().is_some_and(|knee| knee.limited_by_generator) {
                    let what = "the generator could not offer more: the rate is a lower bound.";
                    add(run, what.to_owned());
                }
                if run.knee.as_ref().is_some_and(|knee| knee.ended_early) {
                    let what = "the search ended before a rate was bad: the rate is a lower bound.";
                    add(run, what.to_owned());
                }
            }
            cells += usize::from(!cell.valid.is_empty());
            few += usize::from((1..ENOUGH_RUNS).contains(&cell.valid.len()));
        }
    }
    cautions.extend(troubles.told());
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

/// What was wrong with runs. Runs of one target with the same trouble are told together, whatever
/// the figures in it.
#[derive(Default)]
struct Troubles {
    found: Vec<Trouble>,
}

struct Trouble {
    target: String,
    /// The words without their figures.
    kind: String,
    /// Where it was seen first, and what was said there.
    place: String,
    words: String,
    runs: usize,
}

impl Troubles {
    fn add(&mut self, target: &str, point: &str, repetition: u32, words: String) {
        let kind: String = words.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
        let same = |one: &&mut Trouble| one.target == target && one.kind == kind;
        match self.found.iter_mut().find(same) {
            Some(known) => known.runs += 1,
            None => {
                let point = if point.is_empty() { String::new() } else { format!(" at {point}") };
                let place = format!("{point}, repetition {}", repetition + 1);
                let target = target.to_owned();
                self.found.push(Trouble { target, kind, place, words, runs: 1 });
            }
        }
    }

    fn told(self) -> Vec<String> {
        let more = self.found.len().saturating_sub(MOST_TROUBLES);
        let mut told: Vec<String> = self
            .found
            .into_iter()
            .take(MOST_TROUBLES)
            .map(|Trouble { target, place, words, runs, .. }| match runs {
                1 => format!("{target}{place}, {words}"),
                2 => format!("{target}{place} and 1 more run, {words}"),
                _ => format!("{target}{place} and {} more runs, {words}", runs - 1),
            })
            .collect();
        if more > 0 {
            let kinds = if more == 1 { "kind of run is" } else { "kinds of runs are" };
            told.push(format!("{more} more {kinds} in doubt, failed or INVALID."));
        }
        told
    }
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
