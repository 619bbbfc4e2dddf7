//! Views: which charts show an experiment, chosen by its file or by its data.

mod knee;
mod over_time;
mod percentiles;
mod section;
mod swept;

use super::analysis::Analysis;
use super::verdict;
use crate::results::{Difference, Figure};
use section::Kind;

pub(crate) use section::{Colours, Context, Section, capital, slug};

/// The views that a file may ask for besides figures, by name.
pub const VIEWS: [&str; 6] = [
    "knee",
    "percentiles",
    "throughput-over-time",
    "latency-over-time",
    "memory-over-time",
    "cpu-over-time",
];

/// Bars for more points than these are shown for the two most important figures only.
const LONG: usize = 16;

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
            compared.is_some_and(|contrast| contrast.difference != Difference::Tie)
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
