//! Response times by percentile: how long the slowest ten, one, a tenth of a per cent took.

use super::section::{Context, Kind, Section, choice_note, chosen_points, loads, slug, title};
use crate::record::{Latency, Recording};
use crate::report::chart::{Axis, Body, Chart, Lines, Point, Scale, Series, Stroke};
use crate::results::Unit;
use crate::results::figure::is_open;

/// Points per step from one nine to the next.
const STEPS: usize = 12;

pub(super) fn section(context: &Context<'_>) -> Option<Section> {
    let analysis = context.analysis;
    let mut charts = Vec::new();
    for (load, shown) in loads(analysis) {
        for point in chosen_points(analysis) {
            charts.extend(chart(context, &load, &shown, point));
        }
    }
    let mut note = "Each step to the right is ten times rarer; both axes are by ratio. All valid \
                    repetitions together."
        .to_owned();
    if loads(analysis).iter().any(|(load, _)| is_open(analysis.experiment, load)) {
        note.push_str(
            " Response time counts from when a request was due, service time (dashed) from when \
             it was sent.",
        );
    }
    note.push_str(&choice_note(analysis));
    Some(Section {
        kind: Kind::Other,
        heading: "Response times by percentile".to_owned(),
        note,
        charts,
    })
}

fn chart(context: &Context<'_>, load: &str, shown: &str, point: usize) -> Option<Chart> {
    let analysis = context.analysis;
    let mut series = Vec::new();
    let mut most = 0;
    for (target, name) in analysis.targets.iter().enumerate() {
        let merged = |part: fn(&Recording) -> Latency| {
            let mut all = Latency::new();
            let runs = analysis.points[point].cells[target].in_time();
            for recording in runs.flat_map(|run| &run.loads).filter(|one| one.name == load) {
                all.merge(&part(&recording.recording));
            }
            all
        };
        let response = merged(Recording::response);
        if response.count() == 0 {
            continue;
        }
        most = most.max(response.count());
        let colour = context.colours.colour(name);
        let line = |name: String, stroke, latency: &Latency| Series {
            name,
            colour,
            stroke,
            marks: false,
            points: curve(latency),
        };
        series.push(line((*name).to_owned(), Stroke::Solid, &response));
        if is_open(analysis.experiment, load) {
            let service = merged(Recording::service);
            series.push(line(format!("{name}, service"), Stroke::Dashed, &service));
        }
    }
    if series.is_empty() {
        return None;
    }
    let values = series.iter().flat_map(|series| &series.points).filter_map(|point| point.y);
    let body = Body::Lines(Lines {
        x: Axis {
            label: "percentile of requests".to_owned(),
            unit: Unit::Percent,
            scale: Scale::Rarity { high: rarest(most) },
            ticks: None,
        },
        y: Axis {
            label: String::new(),
            unit: Unit::Milliseconds,
            scale: Scale::log(values),
            ticks: None,
        },
        series,
        spans: Vec::new(),
        limits: Vec::new(),
    });
    let label = analysis.point_label(point);
    Some(Chart {
        name: slug(&[&analysis.experiment.name, "percentiles", shown, &label]),
        title: title("Response time by percentile", &[shown, &label]),
        body,
    })
}

/// The rarest percentile that this many requests say something about.
fn rarest(count: u64) -> f64 {
    let nines = count.max(10).ilog10().clamp(1, 5);
    1.0 - 10f64.powi(-(nines as i32))
}

fn curve(latency: &Latency) -> Vec<Point> {
    let high = -(1.0 - rarest(latency.count())).log10();
    let steps = (high * STEPS as f64).round() as usize;
    // From the fastest fifth on: the very fastest would only stretch the axis.
    (1..=steps)
        .map(|step| {
            let share = 1.0 - 10f64.powf(-(step as f64) / STEPS as f64);
            let value = latency.quantile_ms(share);
            Point { x: share, y: (value > 0.0).then_some(value), ..Point::default() }
        })
        .collect()
}
