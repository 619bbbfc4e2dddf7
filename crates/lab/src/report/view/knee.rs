//! The knee: what happens to response times as the offered rate grows.

use super::section::{Context, Kind, Section, choice_note, chosen_points, slug, title};
use crate::report::chart::{Axis, Body, Chart, Lines, Marked, Point, Scale, Series, Stroke};
use crate::report::number;
use crate::results::{Knee, KneeStep, Run, Unit};

pub(super) fn section(context: &Context<'_>) -> Option<Section> {
    let analysis = context.analysis;
    let charts: Vec<Chart> =
        chosen_points(analysis).into_iter().filter_map(|point| chart(context, point)).collect();
    if charts.is_empty() {
        return None;
    }
    let note = format!(
        "Each mark is one offered rate; an empty one was too much: beyond the limit, with errors, or \
         behind its schedule. Where it says \"at least\", the generator could not offer more. The \
         repetition with the median result.{}",
        choice_note(analysis)
    );
    Some(Section {
        kind: Kind::Other,
        heading: "Throughput and latency up to the knee".to_owned(),
        note,
        charts,
    })
}

fn chart(context: &Context<'_>, point: usize) -> Option<Chart> {
    let analysis = context.analysis;
    let mut series = Vec::new();
    let mut limit = None;
    for (target, name) in analysis.targets.iter().enumerate() {
        let Some(knee) = typical(&analysis.points[point].cells[target].valid) else { continue };
        let (_, _, percentile) = percentile(knee);
        limit = Some((knee.limit_ms, percentile));
        let mut steps: Vec<&KneeStep> = knee.steps.iter().collect();
        steps.sort_by(|a, b| a.offered_rate.total_cmp(&b.offered_rate));
        let points = steps.iter().map(|step| step_point(knee, step)).collect();
        let best = knee.best_rate.map(|rate| number::show(Unit::PerSecond, rate));
        // Where the generator gave up, the server may keep up with more.
        let bound = if knee.is_lower_bound() { "at least" } else { "up to" };
        let best = best.map_or("no good rate".to_owned(), |rate| format!("{bound} {rate}/s"));
        series.push(Series {
            name: format!("{name}, {best}"),
            colour: context.colours.colour(name),
            stroke: Stroke::Solid,
            marks: true,
            points,
        });
    }
    let (limit_ms, percentile) = limit?;
    let points = || series.iter().flat_map(|series| &series.points);
    let highest = points().map(|point| point.x).fold(0.0, f64::max);
    let times: Vec<f64> = points().filter_map(|point| point.y).chain([limit_ms]).collect();
    let body = Body::Lines(Lines {
        x: Axis {
            label: "offered requests a second".to_owned(),
            unit: Unit::PerSecond,
            scale: Scale::from_zero(highest, Unit::PerSecond),
            ticks: None,
        },
        y: Axis {
            label: String::new(),
            unit: Unit::Milliseconds,
            scale: Scale::log(times),
            ticks: None,
        },
        series,
        spans: Vec::new(),
        limits: vec![Marked {
            at: limit_ms,
            label: format!("limit {}", number::show(Unit::Milliseconds, limit_ms)),
        }],
    });
    let label = analysis.point_label(point);
    let what = format!("{percentile} response time against offered rate");
    Some(Chart {
        name: slug(&[&analysis.experiment.name, "knee", &label]),
        title: title(&what, &[&label]),
        body,
    })
}

/// The knee of the run that stands for its repetitions.
fn typical<'a>(runs: &[&'a Run]) -> Option<&'a Knee> {
    let mut knees: Vec<&Knee> = runs.iter().filter_map(|run| run.knee.as_ref()).collect();
    let best = |knee: &Knee| knee.best_rate.unwrap_or(0.0);
    knees.sort_by(|a, b| best(a).total_cmp(&best(b)));
    knees.get(knees.len().saturating_sub(1) / 2).copied()
}

/// A percentile that steps record: its share, where it is, and its name.
type Percentile = (f64, fn(&KneeStep) -> f64, &'static str);

/// The recorded percentile that is nearest to the one which the limit is about.
fn percentile(knee: &Knee) -> Percentile {
    let others: [Percentile; 2] =
        [(0.99, |step| step.p99_ms, "p99"), (0.999, |step| step.p999_ms, "p99.9")];
    let mut nearest: Percentile = (0.5, |step| step.p50_ms, "p50");
    for other in others {
        if (other.0 - knee.quantile).abs() <= (nearest.0 - knee.quantile).abs() {
            nearest = other;
        }
    }
    nearest
}

fn step_point(knee: &Knee, step: &KneeStep) -> Point {
    let (_, value, _) = percentile(knee);
    let value = value(step);
    Point {
        x: step.offered_rate,
        y: (value > 0.0 && value.is_finite()).then_some(value),
        spread: None,
        hollow: !step.good,
    }
}
