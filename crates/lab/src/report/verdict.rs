//! What an experiment's figures say, in a sentence or two.

use std::collections::BTreeSet;

use super::analysis::Analysis;
use super::number;
use crate::results::figure::{CHECK_RECOVERY, LOAD_RECOVERY, was_broken};
use crate::results::{Better, Check, Difference, ENOUGH_RUNS, Figure, Run, Unit};

/// Failed or invalid runs that are told beside the answer; the table of runs has them all.
const MOST_TROUBLES: usize = 12;

/// The figures that matter most, the most important first: those that the file asks for among its
/// views; otherwise the knee, what targets felt of what was done to them, processor time and memory,
/// which repeat well, then throughput (of a closed load) and p99 of each load, which depend on what
/// else a machine does.
pub(crate) fn headline_figures<'a>(analysis: &'a Analysis<'_>) -> Vec<&'a Figure> {
    let wanted = &analysis.experiment.views;
    let asked: Vec<&Figure> = wanted
        .iter()
        .flat_map(|view| analysis.figures.iter().filter(move |figure| figure.id == *view))
        .collect();
    if !asked.is_empty() {
        return asked;
    }
    // A figure that no valid run has answers nothing, such as the time beside an event when all runs
    // with one are INVALID.
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

/// The answer to the experiment's question, computed from its valid runs: one sentence about losses,
/// where a checker looked, one about recovery where targets were broken, one for Dunlin against each of
/// the others, in the two most important figures, and one about targets that did not bear what was sent.
pub(crate) fn answer(analysis: &Analysis<'_>) -> Vec<String> {
    if !analysis.has_valid_runs() {
        let none = "There is no valid run, so there is no answer.".to_owned();
        return losses(analysis).into_iter().chain([none]).collect();
    }
    let figures: Vec<&Figure> = headline_figures(analysis).into_iter().take(2).collect();
    let rivals = rivals(analysis);
    let mut sentences: Vec<String> = Vec::new();
    sentences.extend(losses(analysis));
    sentences.extend(recoveries(analysis));
    if rivals.is_empty() {
        sentences.extend(figures.iter().filter_map(|figure| alone(analysis, figure)));
    }
    for (target, other) in rivals {
        sentences.extend(compared(analysis, &figures, target, other));
    }
    sentences.extend(not_borne(analysis));
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

/// How long it took at most until all was as before: for the loads, or for the checker where no load
/// was watched. Runs that were not back before their end are counted.
fn recoveries(analysis: &Analysis<'_>) -> Option<String> {
    let figure = analysis.figure(LOAD_RECOVERY).or(analysis.figure(CHECK_RECOVERY))?;
    let recovered = |index| recovery(analysis, figure, index);
    let parts: Vec<String> = (0..analysis.targets.len()).filter_map(recovered).collect();
    (!parts.is_empty()).then(|| format!("Back at 90 % of the throughput: {}.", parts.join(", ")))
}

/// `dunlin after 1.2 s (not in 1 of 3 runs)`, the longest of the points' medians.
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
    match longest.map(number::duration) {
        Some(time) if missed == 0 => Some(format!("{name} after {time}")),
        Some(time) => Some(format!("{name} after {time} (not in {missed} of {of} runs)")),
        None if missed > 0 => Some(format!("{name} in none of {of} runs")),
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

/// Whom to compare with whom: Dunlin with the baseline and then each of the others, or, where it is not
/// measured, each target with the baseline. Several targets that are Dunlin are compared with the baseline only.
fn rivals(analysis: &Analysis<'_>) -> Vec<(usize, usize)> {
    let is_measured =
        |target: &usize| analysis.points.iter().any(|point| !point.cells[*target].valid.is_empty());
    let all: Vec<usize> = (0..analysis.targets.len()).filter(is_measured).collect();
    let is_ours =
        |target: &usize| analysis.targets[*target].to_ascii_lowercase().starts_with("dunlin");
    let ours: Vec<usize> = all.iter().copied().filter(is_ours).collect();
    let baseline = analysis.baseline;
    if let [own] = ours[..]
        && own != baseline
    {
        let others = all.into_iter().filter(|other| *other != own && *other != baseline);
        return std::iter::once(baseline).chain(others).map(|other| (own, other)).collect();
    }
    let compared = if ours.len() > 1 { ours } else { all };
    let compared = compared.into_iter().filter(|target| *target != baseline);
    compared.map(|target| (target, baseline)).collect()
}

/// Where a target stands beside another one: its multiples of the other's figure at each point.
#[derive(Default)]
struct Standing {
    /// At points where it is higher, sorted.
    higher: Vec<f64>,
    /// At points where it is lower, sorted.
    lower: Vec<f64>,
    ties: usize,
    /// The logarithms of all multiples, ties among them.
    logs: Vec<f64>,
}

impl Standing {
    fn of(analysis: &Analysis<'_>, figure: &Figure, target: usize, other: usize) -> Standing {
        let mut standing = Standing::default();
        for point in 0..analysis.points.len() {
            let Some(contrast) = analysis.contrast(figure, point, target, other) else { continue };
            match (contrast.difference, contrast.ratio) {
                (Difference::Tie, _) => standing.ties += 1,
                (Difference::Higher, Some(ratio)) => standing.higher.push(ratio),
                (Difference::Lower, Some(ratio)) => standing.lower.push(ratio),
                // Of nothing there is no multiple; the tables show it.
                (_, None) => continue,
            }
            standing.logs.extend(contrast.ratio.filter(|ratio| *ratio > 0.0).map(f64::ln));
        }
        for list in [&mut standing.higher, &mut standing.lower] {
            list.sort_by(f64::total_cmp);
        }
        standing
    }

    fn count(&self) -> usize {
        self.higher.len() + self.lower.len() + self.ties
    }

    /// The multiple over all points: the geometric mean, of which twice and half make one.
    fn mean(&self) -> Option<String> {
        let count = self.logs.len() as f64;
        (count > 0.0).then(|| number::ratio((self.logs.iter().sum::<f64>() / count).exp()))
    }

    /// `ahead at 14 of 19 points, level at 3, behind at 2 (1.30× to 1.45×)`.
    fn places(&self, better: Better) -> String {
        let count = self.count();
        let [higher, lower] = match better {
            Better::Higher => ["ahead", "behind"],
            Better::Lower => ["behind", "ahead"],
            Better::Neither => ["higher", "lower"],
        };
        let mut sides = [(higher, &self.higher), (lower, &self.lower)];
        if better == Better::Lower {
            sides.reverse();
        }
        let mut parts: Vec<String> = Vec::new();
        for (word, ratios) in sides {
            let range =
                if word == "behind" { format!(" ({})", range(ratios)) } else { String::new() };
            match ratios.len() {
                0 => {}
                all if all == count => parts.push(format!("{word} at all {count} points{range}")),
                some if parts.is_empty() => {
                    parts.push(format!("{word} at {some} of {count} points{range}"));
                }
                some => parts.push(format!("{word} at {some}{range}")),
            }
        }
        if self.ties > 0 {
            // Before what is behind.
            let place = parts.len().min(1);
            parts.insert(place, format!("level at {}", self.ties));
        }
        parts.join(", ")
    }
}

/// One line: by which multiple a target is ahead of another one, in the two most important figures, and
/// at how many points. The table has the rest.
fn compared(
    analysis: &Analysis<'_>,
    figures: &[&Figure],
    target: usize,
    other: usize,
) -> Option<String> {
    let (name, other_name) = (analysis.targets[target], analysis.targets[other]);
    let mut clauses: Vec<String> = Vec::new();
    for figure in figures {
        let standing = Standing::of(analysis, figure, target, other);
        let count = standing.count();
        let Some(mean) = standing.mean().filter(|_| count > 0) else { continue };
        let label = match figure.id.as_str() {
            "throughput" if figure.load.is_empty() => "requests a second".to_owned(),
            "throughput" => format!("requests a second of {}", figure.load),
            _ => figure.full_label(),
        };
        let average = if count > 1 { " on average" } else { "" };
        clauses.push(if standing.ties == count {
            let everywhere =
                if count > 1 { format!(" at all {count} points") } else { String::new() };
            format!("level in {label}{everywhere} ({mean}{average})")
        } else {
            let places = if count > 1 {
                format!(", {}", standing.places(figure.better))
            } else {
                String::new()
            };
            format!("{mean} the {label}{average}{places}")
        });
    }
    (!clauses.is_empty()).then(|| format!("{name} against {other_name}: {}.", clauses.join("; ")))
}

/// `1.30× to 1.45×`.
fn range(ratios: &[f64]) -> String {
    match (ratios.first().copied().map(number::ratio), ratios.last().copied().map(number::ratio)) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (Some(only), _) => only,
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
    let mut troubles = Troubles::default();
    let (mut few, mut cells) = (0, 0);
    for (index, point) in analysis.points.iter().enumerate() {
        for (target, cell) in analysis.targets.iter().zip(&point.cells) {
            let point = analysis.point_label(index);
            let mut add = |run: &Run, what| troubles.add(target, &point, run.repetition, what);
            for run in &cell.failed {
                let why = without_stop(run.failure.as_deref().unwrap_or_default());
                add(run, format!("failed: {why}."));
            }
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
                _ => format!("{target}{place} and {} more runs, {words}", runs - 1),
            })
            .collect();
        if more > 0 {
            told.push(format!("{more} more kinds of runs are in doubt, failed or INVALID."));
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
