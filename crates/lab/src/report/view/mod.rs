//! Views: which charts show an experiment, chosen by its file or by its data.

mod knee;
mod over_time;
mod percentiles;
mod swept;

use super::analysis::Analysis;
use super::chart::Chart;
use super::verdict;
use crate::results::figure::load_names;
use crate::results::{Difference, Figure, Results, Run, Unit};

/// The views that a file may ask for besides figures, by name.
pub const VIEWS: [&str; 6] = [
    "knee",
    "percentiles",
    "throughput-over-time",
    "latency-over-time",
    "memory-over-time",
    "cpu-over-time",
];

/// The most points of a matrix that each get charts of their own; of larger ones the first and the
/// last do.
const MOST_POINTS: usize = 4;

/// Bars for more points than these are shown for the two most important figures only.
const LONG: usize = 16;

/// Charts that belong together.
pub(crate) struct Section {
    /// Sections of one kind that have a single chart each are shown as one.
    kind: Kind,
    /// What they show.
    pub(crate) heading: String,
    /// How to read them.
    pub(crate) note: String,
    /// The charts, the most important first.
    pub(crate) charts: Vec<Chart>,
}

/// What sections are about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Figure,
    OverTime,
    Other,
}

/// The colour of each target, the same throughout a report.
pub(crate) struct Colours {
    names: Vec<String>,
}

impl Colours {
    /// Dunlin first, then all others in the order in which they appear.
    pub(crate) fn of(results: &Results) -> Colours {
        let mut names: Vec<String> = vec!["dunlin".to_owned()];
        for experiment in &results.experiments {
            for target in &experiment.targets {
                if !names.contains(&target.name) {
                    names.push(target.name.clone());
                }
            }
        }
        Colours { names }
    }

    /// The colour of a target.
    pub(crate) fn colour(&self, target: &str) -> usize {
        self.names.iter().position(|name| name == target).unwrap_or(self.names.len())
    }
}

/// What all views have at hand.
pub(crate) struct Context<'a> {
    /// The experiment.
    pub(crate) analysis: &'a Analysis<'a>,
    /// The targets' colours.
    pub(crate) colours: &'a Colours,
}

/// All charts of an experiment: those that its file asks for, in its order, or those that fit the
/// data.
pub(crate) fn sections(context: &Context<'_>) -> Vec<Section> {
    let analysis = context.analysis;
    if !analysis.has_valid_runs() {
        return Vec::new();
    }
    let wanted = &analysis.experiment.views;
    let mut sections = Vec::new();
    if wanted.is_empty() {
        let events = analysis.experiment.runs.iter().any(|run| !run.events.is_empty());
        sections.extend(knee::section(context));
        let knees = sections.len();
        if events {
            sections.extend(over_time::throughput(context));
        }
        if events || analysis.points.len() <= 2 {
            sections.extend(over_time::memory(context));
            sections.extend(over_time::processors(context));
        }
        if events {
            sections.extend(over_time::latency(context));
        }
        // What happened comes before what it came down to.
        let place = if events { sections.len() } else { knees };
        let figures = verdict::headline_figures(analysis).into_iter().enumerate();
        let shown = figures.filter(|(index, figure)| *index < 2 || is_worth(analysis, figure));
        let figures = shown.filter_map(|(_, figure)| swept::section(context, figure));
        sections.splice(place..place, figures);
        sections.extend(percentiles::section(context));
    }
    for view in wanted {
        match view.as_str() {
            "knee" => sections.extend(knee::section(context)),
            "percentiles" => sections.extend(percentiles::section(context)),
            "throughput-over-time" => sections.extend(over_time::throughput(context)),
            "latency-over-time" => sections.extend(over_time::latency(context)),
            "memory-over-time" => sections.extend(over_time::memory(context)),
            "cpu-over-time" => sections.extend(over_time::processors(context)),
            _ => {
                let named = analysis.figures.iter().filter(|figure| figure.id == *view);
                sections.extend(named.filter_map(|figure| swept::section(context, figure)));
            }
        }
    }
    sections.retain(|section| !section.charts.is_empty());
    joined(sections)
}

/// Whether a figure that is not among the first two deserves charts: when it differs somewhere, and
/// when its charts are not long. The tables have it in any case.
fn is_worth(analysis: &Analysis<'_>, figure: &Figure) -> bool {
    let long = analysis.points.len() > LONG && swept::line_parameter(analysis).is_none();
    let differs = |point: usize| {
        (0..analysis.targets.len()).any(|target| {
            let compared = analysis.against_baseline(figure, point, target);
            compared.is_some_and(|(difference, _)| difference != Difference::Tie)
        })
    };
    let alone = analysis.targets.len() == 1;
    !long && (alone || (0..analysis.points.len()).any(differs))
}

/// Joins neighbours of one kind that have a single chart each: charts side by side are easier to
/// compare than charts under headings of their own.
fn joined(sections: Vec<Section>) -> Vec<Section> {
    let mut joined: Vec<Section> = Vec::new();
    let mut singles = false;
    for section in sections {
        let single = section.charts.len() == 1;
        match joined.last_mut() {
            Some(last)
                if single && singles && last.kind == section.kind && last.kind != Kind::Other =>
            {
                last.heading = match last.kind {
                    Kind::OverTime => "Over time".to_owned(),
                    _ => "Figures".to_owned(),
                };
                if !last.note.contains(&section.note) {
                    last.note = if section.note.contains(&last.note) {
                        section.note
                    } else {
                        format!("{} {}", last.note, section.note)
                    };
                }
                last.charts.extend(section.charts);
            }
            _ => {
                joined.push(section);
                singles = single;
            }
        }
    }
    joined
}

/// The points that get charts of their own.
fn chosen_points(analysis: &Analysis<'_>) -> Vec<usize> {
    let with_runs =
        |point: &usize| analysis.points[*point].cells.iter().any(|cell| !cell.valid.is_empty());
    let all: Vec<usize> = (0..analysis.points.len()).filter(with_runs).collect();
    match all[..] {
        [first, .., last] if all.len() > MOST_POINTS => vec![first, last],
        _ => all,
    }
}

/// What a reader of few points must know.
fn choice_note(analysis: &Analysis<'_>) -> String {
    if analysis.points.len() > MOST_POINTS {
        " Shown at the first and the last point of the matrix.".to_owned()
    } else {
        String::new()
    }
}

/// The run that stands for its repetitions: the one with the median throughput.
fn typical<'a>(analysis: &Analysis<'a>, point: usize, target: usize) -> Option<&'a Run> {
    let mut runs = analysis.points[point].cells[target].valid.clone();
    let rate = |run: &Run| run.loads.iter().map(|load| load.recording.rate()).sum::<f64>();
    runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    runs.get(runs.len().saturating_sub(1) / 2).copied()
}

/// The loads' names with how they are told apart in titles: not at all when there is only one.
fn loads(analysis: &Analysis<'_>) -> Vec<(String, String)> {
    let names = load_names(analysis.experiment);
    let several = names.len() > 1;
    names
        .into_iter()
        .map(|name| {
            let shown = if several { name.clone() } else { String::new() };
            (name, shown)
        })
        .collect()
}

/// A title with what tells the chart from its neighbours.
fn title(what: &str, details: &[&str]) -> String {
    let details: Vec<&str> = details.iter().copied().filter(|part| !part.is_empty()).collect();
    if details.is_empty() { what.to_owned() } else { format!("{what}: {}", details.join(", ")) }
}

/// A name for a file: the words of all parts in small letters and digits, with hyphens.
pub(crate) fn slug(parts: &[&str]) -> String {
    let mut slug = String::new();
    for c in parts.join("-").chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    // File systems take 255 bytes, and a suffix must still fit.
    slug.truncate(120);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "unnamed".to_owned() } else { slug.to_owned() }
}

/// What stands beside an axis of this unit: nothing where its ticks and the title say it.
fn axis_label(unit: Unit) -> String {
    let label = match unit {
        Unit::PerSecond => "requests a second",
        Unit::Seconds => "seconds",
        Unit::Processors => "processors kept busy",
        _ => "",
    };
    label.to_owned()
}

/// A label at the beginning of a line; p99 stays as it is.
pub(crate) fn capital(label: &str) -> String {
    let mut letters = label.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if !second.is_ascii_digit() => {
            first.to_uppercase().chain(letters).collect()
        }
        _ => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_harmless() {
        assert_eq!(
            slug(&["value-size", "p99", "op GET, size 2mb"]),
            "value-size-p99-op-get-size-2mb"
        );
        assert_eq!(slug(&["../../etc/passwd"]), "etc-passwd");
        assert_eq!(slug(&["", "ü"]), "unnamed");
        assert!(slug(&[&"x".repeat(500)]).len() <= 120);
    }
}
