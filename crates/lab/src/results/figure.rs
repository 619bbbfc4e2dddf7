//! Figures: the single numbers that sum up a run, each with its unit and the direction that is
//! better.

use std::collections::BTreeSet;

use super::{Event, ExperimentResult, Observation, Run, Summary};
use crate::check::{BUCKET_SECONDS, is_judged};
use crate::load::{Pace, left_too_many};
use crate::record::Recording;

/// Which way a figure should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Throughput.
    Higher,
    /// Latency, processor time, memory, losses.
    Lower,
    /// It says how things are and is not judged.
    Neither,
}

/// What a figure counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Requests or other events a second.
    PerSecond,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// One figure as a multiple of another.
    Ratio,
    /// Hundredths.
    Percent,
    /// Processors kept busy.
    Processors,
    /// A number of things.
    Count,
}

/// One number that is read out of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// A short name that does not change: `throughput`, `p99`, or the name in [`Run::figures`].
    pub id: String,
    /// The load that it is of, where a run has several; empty otherwise.
    pub load: String,
    /// What a reader calls it: `p99 response time`.
    pub label: String,
    /// What it counts in.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    source: Source,
}

/// Where a figure is found. Loads are named, since a failed run may lack some.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Rate(String),
    Quantile(String, f64),
    Max(String),
    ServiceQuantile(String, f64),
    Errors(String),
    Unsent(String),
    BestRate,
    Lost,
    Stale,
    Wrong,
    Recovery,
    Gap,
    UsualGap,
    Refused,
    Unknown,
    Named(String),
}

impl Figure {
    /// What a run says; none when it was not measured there, or when it is a response time and the
    /// generator was late.
    pub fn of(&self, run: &Run) -> Option<f64> {
        if self.is_late(run) {
            return None;
        }
        let load = |name: &String| {
            let found = run.loads.iter().find(|load| load.name == *name)?;
            Some(&found.recording)
        };
        let answered = |name: &String| load(name).filter(|recording| recording.successes() > 0);
        match &self.source {
            Source::Rate(name) => load(name).map(Recording::rate),
            Source::Quantile(name, share) => {
                answered(name).map(|recording| recording.response().quantile_ms(*share))
            }
            Source::Max(name) => answered(name).map(|recording| recording.response().max_ms()),
            Source::ServiceQuantile(name, share) => {
                answered(name).map(|recording| recording.service().quantile_ms(*share))
            }
            Source::Errors(name) => load(name).map(|recording| recording.errors() as f64),
            Source::Unsent(name) => load(name).map(unsent_percent),
            Source::BestRate => run.knee.as_ref()?.best_rate,
            Source::Lost => run.check.as_ref().map(|check| check.lost as f64),
            Source::Stale => run.check.as_ref().map(|check| check.stale_reads as f64),
            Source::Wrong => run.check.as_ref().map(|check| check.wrong as f64),
            Source::Recovery => run.check.as_ref()?.recovery_seconds,
            Source::Gap => run.check.as_ref()?.longest_gap_seconds,
            Source::UsualGap => run.check.as_ref()?.usual_gap_seconds,
            Source::Refused => run.check.as_ref().map(|check| check.refused as f64),
            Source::Unknown => run.check.as_ref().map(|check| check.unknown as f64),
            Source::Named(name) => run.figures.get(name).copied(),
        }
    }

    /// Whether a run says nothing of it, since it is a response time and may be the generator's
    /// own.
    pub fn is_late(&self, run: &Run) -> bool {
        let is_late = |name: Option<&String>, share: f64| {
            let loads = run.loads.iter().filter(|load| name.is_none_or(|name| load.name == *name));
            loads.into_iter().any(|load| load.recording.is_late(share))
        };
        match &self.source {
            Source::Quantile(name, share) | Source::ServiceQuantile(name, share) => {
                is_late(Some(name), *share)
            }
            Source::Max(name) => is_late(Some(name), 1.0),
            Source::Named(name) => BESIDE_EVENTS
                .iter()
                .find(|(beginning, _)| name.starts_with(beginning) && name.ends_with("_ms"))
                .is_some_and(|(_, share)| is_late(None, *share)),
            _ => false,
        }
    }

    /// What to say of a run that looked for this figure and did not find it, which is a result, and
    /// a bad one: a server that keeps up with no rate, or does not recover. None where the figure
    /// is there, or was not looked for.
    pub fn missed(&self, run: &Run) -> Option<&'static str> {
        if self.of(run).is_some() || run.failure.is_some() {
            return None;
        }
        match &self.source {
            Source::BestRate => run.knee.is_some().then_some("no good rate"),
            Source::Recovery => {
                (run.check.is_some() && check_can_be_judged(run)).then_some("not recovered")
            }
            Source::Named(name) if name == LOAD_RECOVERY => {
                load_can_be_judged(run).then_some("not recovered")
            }
            _ => None,
        }
    }

    /// Whether every run with such a load, check or search has it, and not only those that it fits.
    pub fn is_always_told(&self) -> bool {
        !matches!(self.source, Source::Named(_) | Source::Recovery | Source::Gap)
    }

    /// The figure in each run that has it, with the number of the repetition.
    pub fn observations<'a>(&self, runs: impl IntoIterator<Item = &'a Run>) -> Vec<Observation> {
        runs.into_iter().filter_map(|run| Some((run.repetition, self.of(run)?))).collect()
    }

    /// The figure over repetitions.
    pub fn summary<'a>(&self, runs: impl IntoIterator<Item = &'a Run>) -> Option<Summary> {
        Summary::of(runs.into_iter().filter_map(|run| self.of(run)))
    }

    /// The label, with the load's name where a run has several.
    pub fn full_label(&self) -> String {
        if self.load.is_empty() {
            self.label.clone()
        } else {
            format!("{} of {}", self.label, self.load)
        }
    }
}

/// Response times of all loads together, in the seconds with and without an event, by the
/// beginnings of their names.
const BESIDE_EVENTS: [(&str, f64); 3] = [("p50_", 0.5), ("p99_", 0.99), ("p999_", 0.999)];
/// The figure for how long the loads themselves took to recover, by the second.
pub(crate) const LOAD_RECOVERY: &str = "recovery_seconds";
/// The same of the checker's own writes and reads, which are few, and looked at more closely.
pub(crate) const CHECK_RECOVERY: &str = "check_recovery_seconds";

/// Whether the target was ended or stopped on purpose.
pub(crate) fn was_broken(run: &Run) -> bool {
    faults(run).next().is_some()
}

/// When the target was ended or stopped on purpose, in seconds from the run's start.
pub(crate) fn faults(run: &Run) -> impl Iterator<Item = f64> {
    // Of stops and ends, only these were the lab's doing, and only if they were done.
    let broke = |event: &&Event| {
        event.done && ["kill", "SIGSTOP", "cut"].iter().any(|name| event.name.starts_with(name))
    };
    run.events.iter().filter(broke).map(|event| event.at)
}

/// Only a load that ran before a fault, and after it, can be back at what it was.
fn load_can_be_judged(run: &Run) -> bool {
    let Some((first, seconds)) = answers_by_second(run) else { return false };
    let Some(answered) = seconds.iter().position(|count| *count > 0.0) else { return false };
    faults(run)
        .map(|fault| fault - first)
        .any(|fault| is_judged(seconds.len(), 1.0, fault) && (answered as f64) < fault.floor())
}

/// The same of the checker, which runs for as long as samples are taken.
fn check_can_be_judged(run: &Run) -> bool {
    let end = run.samples.last().map_or(0.0, |sample| sample.at);
    let buckets = (end / BUCKET_SECONDS) as usize;
    faults(run).any(|fault| is_judged(buckets, BUCKET_SECONDS, fault))
}

/// What all loads that began together had answered in each second, without errors, and when they
/// began, in seconds from the run's start. None when none began with the run.
pub(crate) fn answers_by_second(run: &Run) -> Option<(f64, Vec<f64>)> {
    // A load that began later, or with the event, says nothing about before; and seconds that do
    // not begin together cannot be added up.
    const TOGETHER: f64 = 0.25;
    let start = |recording: &Recording| {
        recording.started_unix_ms.saturating_sub(run.started_unix_ms) as f64 / 1000.0
    };
    let recordings = || run.loads.iter().map(|load| &load.recording);
    let first = recordings().map(start).reduce(f64::min).filter(|first| *first < 1.0)?;
    let mut seconds: Vec<f64> = Vec::new();
    for recording in recordings().filter(|recording| start(recording) < first + TOGETHER) {
        // Seconds without an answer count, those at the end too; the last one, which is not whole
        // and has what was still on its way, does not.
        let length = (recording.seconds + 0.05) as usize;
        seconds.resize(seconds.len().max(length), 0.0);
        for second in recording.timeline.iter().filter(|second| (second.at as usize) < length) {
            seconds[second.at as usize] += second.successes() as f64;
        }
    }
    Some((first, seconds))
}

/// How many of a hundred requests were due and never left, all connections being in use; those that
/// just waited at the moment at which the load ended are none.
fn unsent_percent(recording: &Recording) -> f64 {
    let unsent = recording.generator.unsent;
    let percent = unsent as f64 * 100.0 / (recording.requests() + unsent).max(1) as f64;
    if left_too_many(recording) { percent } else { 0.0 }
}

/// The memory of a sample: proportional bytes where the kernel tells them, resident ones otherwise.
pub(crate) fn memory_of(sample: &super::Sample) -> u64 {
    if sample.pss_bytes > 0 { sample.pss_bytes } else { sample.rss_bytes }
}

/// All figures that any run of an experiment has, in the order in which a report tells them.
pub fn figures(experiment: &ExperimentResult) -> Vec<Figure> {
    let mut figures = Vec::new();
    if experiment.runs.iter().any(|run| run.knee.is_some()) {
        figures.push(Figure {
            id: "best_rate".to_owned(),
            load: String::new(),
            label: "largest good rate".to_owned(),
            unit: Unit::PerSecond,
            better: Better::Higher,
            source: Source::BestRate,
        });
    }
    let loads = load_names(experiment);
    for name in &loads {
        let shown = if loads.len() > 1 { name.as_str() } else { "" };
        load_figures(experiment, name, shown, &mut figures);
    }
    if experiment.runs.iter().any(|run| run.check.is_some()) {
        check_figures(&mut figures);
    }
    let named: BTreeSet<&String> =
        experiment.runs.iter().flat_map(|run| run.figures.keys()).collect();
    let mut named: BTreeSet<&str> = named.into_iter().map(String::as_str).collect();
    if experiment.runs.iter().any(was_broken) {
        named.insert(LOAD_RECOVERY);
    }
    // What the checker found is read from there.
    named.remove(CHECK_RECOVERY);
    // In a closed loop a faster server does more in the same time, and is busier for it.
    let is_closed = loads.iter().any(|name| !is_open(experiment, name));
    let judged = |figure: Figure| match figure.unit {
        Unit::Processors if is_closed => Figure { better: Better::Neither, ..figure },
        _ => figure,
    };
    figures.extend(named.into_iter().map(named_figure).map(judged));
    let has_it = |figure: &Figure, run: &Run| figure.of(run).or(figure.missed(run).map(|_| 0.0));
    let is_told = |figure: &Figure, run: &Run| has_it(figure, run).is_some() || figure.is_late(run);
    figures.retain(|figure| experiment.runs.iter().any(|run| is_told(figure, run)));
    figures
}

/// The names of all loads, in the order in which they first appear.
pub fn load_names(experiment: &ExperimentResult) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for load in experiment.runs.iter().flat_map(|run| &run.loads) {
        if !names.contains(&load.name) {
            names.push(load.name.clone());
        }
    }
    names
}

fn load_figures(experiment: &ExperimentResult, name: &str, shown: &str, figures: &mut Vec<Figure>) {
    let mut add = |id: &str, label: &str, unit, better, source| {
        figures.push(Figure {
            id: id.to_owned(),
            load: shown.to_owned(),
            label: label.to_owned(),
            unit,
            better,
            source,
        });
    };
    let owned = || name.to_owned();
    // In an open load the rate is given: it says whether the server kept up, and no more.
    let open = is_open(experiment, name);
    let better = if open { Better::Neither } else { Better::Higher };
    add("throughput", "throughput", Unit::PerSecond, better, Source::Rate(owned()));
    for (id, share) in QUANTILES {
        let label = format!("{id} response time");
        let source = Source::Quantile(owned(), share);
        add(id, &label, Unit::Milliseconds, Better::Lower, source);
    }
    add("max", "longest response time", Unit::Milliseconds, Better::Lower, Source::Max(owned()));
    if open {
        let source = Source::ServiceQuantile(owned(), 0.99);
        add("service_p99", "p99 service time", Unit::Milliseconds, Better::Lower, source);
    }
    if open {
        let source = Source::Unsent(owned());
        add(
            "unsent_percent",
            "requests that were never sent",
            Unit::Percent,
            Better::Lower,
            source,
        );
    }
    add("errors", "errors", Unit::Count, Better::Lower, Source::Errors(owned()));
}

/// The percentiles that tables show.
pub const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// Whether a load sent at a given rate, without waiting for replies.
pub fn is_open(experiment: &ExperimentResult, load: &str) -> bool {
    let mut all = experiment.runs.iter().flat_map(|run| &run.loads);
    all.any(|one| one.name == load && matches!(one.recording.plan.pace, Pace::Open { .. }))
}

fn check_figures(figures: &mut Vec<Figure>) {
    let rows = [
        ("lost", "acknowledged writes lost", Unit::Count, Source::Lost),
        ("stale", "stale reads", Unit::Count, Source::Stale),
        ("wrong", "values that nobody wrote", Unit::Count, Source::Wrong),
        ("refused", "writes refused", Unit::Count, Source::Refused),
        ("unknown", "writes without an answer that counts", Unit::Count, Source::Unknown),
        (
            "write_gap_seconds",
            "longest time without an acknowledged write",
            Unit::Seconds,
            Source::Gap,
        ),
        (
            "usual_write_gap_seconds",
            "usual time without an acknowledged write after a fault",
            Unit::Seconds,
            Source::UsualGap,
        ),
        (CHECK_RECOVERY, "time until the checker had recovered", Unit::Seconds, Source::Recovery),
    ];
    for (id, label, unit, source) in rows {
        figures.push(Figure {
            id: id.to_owned(),
            load: String::new(),
            label: label.to_owned(),
            unit,
            better: Better::Lower,
            source,
        });
    }
}

/// Endings of names, the longest that fits first.
const ENDINGS: [(&str, Unit, &str, Better); 10] = [
    ("_us_per_request", Unit::Microseconds, " per request", Better::Lower),
    ("_bytes_per_request", Unit::Bytes, " per request", Better::Lower),
    ("_per_second", Unit::PerSecond, "", Better::Higher),
    ("_us", Unit::Microseconds, "", Better::Lower),
    ("_ms", Unit::Milliseconds, "", Better::Lower),
    ("_seconds", Unit::Seconds, "", Better::Lower),
    ("_bytes", Unit::Bytes, "", Better::Lower),
    ("_ratio", Unit::Ratio, " ratio", Better::Lower),
    ("_processors", Unit::Processors, "", Better::Lower),
    // Errors are judged where they are counted.
    ("_percent", Unit::Percent, "", Better::Neither),
];

/// A figure that the experiment itself computed; its name ends in its unit.
fn named_figure(name: &str) -> Figure {
    let (stem, unit, suffix, better) = ENDINGS
        .iter()
        .find_map(|(ending, unit, suffix, better)| {
            let stem = name.strip_suffix(ending).filter(|stem| !stem.is_empty())?;
            Some((stem, *unit, *suffix, *better))
        })
        .unwrap_or((name, Unit::Count, "", Better::Neither));
    // What the generator spends is about the lab, not about a target.
    let better = if name.starts_with("generator_") { Better::Neither } else { better };
    let words: Vec<&str> = stem
        .split('_')
        .map(|word| match word {
            "cpu" => "CPU time",
            "rss" => "RSS",
            "pss" => "PSS",
            other => other,
        })
        .collect();
    let label = match name {
        LOAD_RECOVERY => "time until the load had recovered".to_owned(),
        "errors_percent" => "requests that failed".to_owned(),
        "lag_p50_ms" => "p50 lag".to_owned(),
        "lag_p99_ms" => "p99 lag".to_owned(),
        "lag_max_ms" => "longest lag".to_owned(),
        "lag_unseen" => "markers that the replica never had".to_owned(),
        "writes_held_ms" => "time for which writes were held".to_owned(),
        "moved_seconds" => "time until all was moved".to_owned(),
        "backed_up_seconds" => "time until all was backed up".to_owned(),
        _ => format!("{}{suffix}", words.join(" ")),
    };
    Figure {
        id: name.to_owned(),
        load: String::new(),
        label,
        unit,
        better,
        source: Source::Named(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_done_breaks_nothing_and_what_cannot_be_seen_is_not_missed() {
        let sample = |at| crate::results::Sample { at, ..Default::default() };
        let mut run = Run {
            target: String::new(),
            parameters: std::collections::BTreeMap::new(),
            repetition: 0,
            started_unix_ms: 0,
            command: Vec::new(),
            loads: Vec::new(),
            samples: vec![sample(0.0), sample(10.0)],
            events: vec![Event::new(5.0, None, "kill -9", "process 1 killed")],
            knee: None,
            check: Some(crate::results::Check::default()),
            figures: std::collections::BTreeMap::new(),
            failure: None,
        };
        let mut figures = Vec::new();
        check_figures(&mut figures);
        let recovery = figures.pop().expect("it is the last");
        assert_eq!(recovery.missed(&run), Some("not recovered"));
        run.events[0].done = false;
        assert!(!was_broken(&run));
        assert_eq!(recovery.missed(&run), None);
        // At the very end, nobody could see it come back.
        run.events[0] = Event::new(9.95, None, "kill -9", "process 1 killed");
        assert!(was_broken(&run));
        assert_eq!(recovery.missed(&run), None);
    }

    #[test]
    fn names_tell_unit_and_direction() {
        let figure = named_figure("server_cpu_us_per_request");
        assert_eq!(figure.label, "server CPU time per request");
        assert_eq!((figure.unit, figure.better), (Unit::Microseconds, Better::Lower));
        let figure = named_figure("peak_memory_ratio");
        assert_eq!((figure.label.as_str(), figure.unit), ("peak memory ratio", Unit::Ratio));
        let figure = named_figure("bytes_per_second");
        assert_eq!((figure.unit, figure.better), (Unit::PerSecond, Better::Higher));
        assert_eq!(named_figure(LOAD_RECOVERY).unit, Unit::Seconds);
        let figure = named_figure("saves");
        assert_eq!((figure.unit, figure.better), (Unit::Count, Better::Neither));
        assert_eq!(named_figure("generator_cpu_us_per_request").better, Better::Neither);
    }
}
