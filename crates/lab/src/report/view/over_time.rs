//! Seconds of a run: throughput, response times, memory and processors, with what was done to the
//! target meanwhile.

use super::section::{
    Context, Kind, Section, axis_label, capital, choice_note, chosen_points, loads, slug, title,
    typical, typical_in_time,
};
use crate::record::{Recording, Second, TENTHS};
use crate::report::analysis::Analysis;
use crate::report::chart::{Axis, Body, Chart, Lines, Point, Scale, Series, Span, Stroke};
use crate::results::figure::{faults, memory_of};
use crate::results::{Run, Sample, Unit};

/// Events of two targets that are no further apart happened at the same time.
const SAME_SECONDS: f64 = 0.75;

/// Answered requests in each second, all targets in one chart.
pub(super) fn throughput(context: &Context<'_>) -> Option<Section> {
    let analysis = context.analysis;
    let mut charts = Vec::new();
    for point in chosen_points(analysis) {
        for (load, shown) in loads(analysis) {
            let line = |run: &Run| throughput_line(run, &load);
            let subject = Subject { what: "throughput", detail: shown, unit: Unit::PerSecond };
            charts.extend(together(context, point, &subject, line));
        }
    }
    Some(section("Throughput over time", analysis, charts))
}

/// p50, p99 and the longest of each second, a chart per target, all on the same scale.
pub(super) fn latency(context: &Context<'_>) -> Option<Section> {
    let analysis = context.analysis;
    let mut charts = Vec::new();
    for point in chosen_points(analysis) {
        for (load, shown) in loads(analysis) {
            charts.extend(latency_charts(context, point, &load, &shown));
        }
    }
    Some(section("Response times over time", analysis, charts))
}

/// Memory at each sample, all targets in one chart.
pub(super) fn memory(context: &Context<'_>) -> Option<Section> {
    let analysis = context.analysis;
    let subject = Subject { what: "memory", detail: String::new(), unit: Unit::Bytes };
    let line = |run: &Run| {
        let point = |sample: &Sample| Point {
            x: sample.at,
            // A process that is gone has no memory, and a line at zero would hide that.
            y: (memory_of(sample) > 0).then(|| memory_of(sample) as f64),
            ..Point::default()
        };
        run.samples.iter().map(point).collect()
    };
    let points = chosen_points(analysis).into_iter();
    let charts = points.filter_map(|point| together(context, point, &subject, line)).collect();
    let mut section = section("Memory over time", analysis, charts);
    section.note.push_str(
        " The memory of the process and its children; pages that they share count once (PSS).",
    );
    Some(section)
}

/// Processors that were kept busy between samples, all targets in one chart.
pub(super) fn processors(context: &Context<'_>) -> Option<Section> {
    let analysis = context.analysis;
    let subject = Subject { what: "processors", detail: String::new(), unit: Unit::Processors };
    let points = chosen_points(analysis).into_iter();
    let line = |run: &Run| processor_line(&run.samples);
    let charts = points.filter_map(|point| together(context, point, &subject, line)).collect();
    Some(section("Processors over time", analysis, charts))
}

fn section(heading: &str, analysis: &Analysis<'_>, charts: Vec<Chart>) -> Section {
    let note = format!(
        "The repetition with the median throughput of each target.{}",
        choice_note(analysis)
    );
    Section { kind: Kind::OverTime, heading: heading.to_owned(), note, charts }
}

/// What a chart is about.
struct Subject {
    what: &'static str,
    detail: String,
    unit: Unit,
}

/// A chart with a line per target.
fn together(
    context: &Context<'_>,
    point: usize,
    subject: &Subject,
    line: impl Fn(&Run) -> Vec<Point>,
) -> Option<Chart> {
    let analysis = context.analysis;
    let mut series = Vec::new();
    let mut runs = Vec::new();
    for (target, name) in analysis.targets.iter().enumerate() {
        let Some(run) = typical(analysis, point, target) else { continue };
        let points = line(run);
        if points.iter().all(|point| point.y.is_none()) {
            continue;
        }
        runs.push(run);
        series.push(Series {
            name: (*name).to_owned(),
            colour: context.colours.colour(name),
            stroke: Stroke::Solid,
            marks: points.len() == 1,
            points,
        });
    }
    if series.is_empty() {
        return None;
    }
    let values = series.iter().flat_map(|series| &series.points).filter_map(|point| point.y);
    let scale = Scale::from_zero(values.fold(0.0, f64::max), subject.unit);
    let body = over_time(series, subject, scale, spans(&runs));
    let label = analysis.point_label(point);
    let file = format!("{}-over-time", subject.what);
    Some(Chart {
        name: slug(&[&analysis.experiment.name, &file, &subject.detail, &label]),
        title: title(&format!("{} over time", capital(subject.what)), &[&subject.detail, &label]),
        body,
    })
}

fn over_time(series: Vec<Series>, subject: &Subject, scale: Scale, spans: Vec<Span>) -> Body {
    let points = series.iter().flat_map(|series| &series.points);
    let end = points.map(|point| point.x).chain(spans.iter().map(|span| span.from));
    let end = end.filter(|end| end.is_finite()).fold(1.0, f64::max).ceil();
    Body::Lines(Lines {
        x: Axis {
            label: "seconds".to_owned(),
            unit: Unit::Seconds,
            scale: Scale::Linear { low: 0.0, high: end },
            ticks: None,
        },
        y: Axis { label: axis_label(subject.unit), unit: subject.unit, scale, ticks: None },
        series,
        spans,
        limits: Vec::new(),
    })
}

fn latency_charts(context: &Context<'_>, point: usize, load: &str, shown: &str) -> Vec<Chart> {
    let analysis = context.analysis;
    let mut drawn = Vec::new();
    for (target, name) in analysis.targets.iter().enumerate() {
        let Some(run) = typical_in_time(analysis, point, target) else { continue };
        let colour = context.colours.colour(name);
        let series: Vec<Series> = LATENCY_LINES
            .iter()
            .map(|(label, stroke, value)| Series {
                name: (*label).to_owned(),
                colour,
                stroke: *stroke,
                marks: false,
                points: latency_line(run, load, *value),
            })
            .collect();
        if series.iter().flat_map(|series| &series.points).any(|point| point.y.is_some()) {
            drawn.push((*name, run, series));
        }
    }
    let all = drawn.iter().flat_map(|(_, _, series)| series).flat_map(|series| &series.points);
    let scale = Scale::log(all.filter_map(|point| point.y));
    let label = analysis.point_label(point);
    let subject =
        Subject { what: "response time", detail: String::new(), unit: Unit::Milliseconds };
    drawn
        .into_iter()
        .map(|(name, run, series)| Chart {
            name: slug(&[&analysis.experiment.name, "latency-over-time", name, shown, &label]),
            title: title(&format!("{name}, response times over time"), &[shown, &label]),
            body: over_time(series, &subject, scale.clone(), spans(&[run])),
        })
        .collect()
}

/// A line of the chart of latencies: its name, how it is drawn, and its value for a second.
type LatencyLine = (&'static str, Stroke, fn(&Second) -> f64);

const LATENCY_LINES: [LatencyLine; 3] = [
    ("longest", Stroke::Dotted, |second| second.response.max_ms()),
    ("p99", Stroke::Solid, |second| second.response.quantile_ms(0.99)),
    ("p50", Stroke::Dashed, |second| second.response.quantile_ms(0.5)),
];

fn latency_line(run: &Run, load: &str, value: fn(&Second) -> f64) -> Vec<Point> {
    let no_tenths = |_, _: &Second, _| Vec::new();
    seconds(run, load, no_tenths, |second, _| (second.response.count() > 0).then(|| value(second)))
}

/// A point for each second, and for each tenth of a second around faults, so that a server which is
/// ended for a moment is seen to answer nothing.
fn throughput_line(run: &Run, load: &str) -> Vec<Point> {
    let faults: Vec<f64> = faults(run).collect();
    let tenths = |start: f64, second: &Second, length: f64| {
        let near = |fault: &f64| {
            let from = start + f64::from(second.at);
            (from - AFTER_FAULT..from + 1.0 + BEFORE_FAULT).contains(fault)
        };
        let is_counted = second.successes() == 0 || !second.tenths.is_empty();
        let fits = is_counted && faults.iter().any(near);
        let count = if fits { (length * TENTHS as f64 + 0.5) as usize } else { 0 };
        let counted = |tenth: usize| second.tenths.get(tenth).copied().unwrap_or(0);
        (0..count).map(|tenth| (tenth, counted(tenth) as f64 * TENTHS as f64)).collect()
    };
    seconds(run, load, tenths, |second, length| Some(second.successes() as f64 / length))
}

/// How long before a fault, and after it, tenths of seconds are shown.
const BEFORE_FAULT: f64 = 0.5;
const AFTER_FAULT: f64 = 2.5;

/// A point in the middle of each second; `value` is told how long the second was, too. `tenths` may
/// give the points of a second's tenths instead, each with its place.
fn seconds(
    run: &Run,
    load: &str,
    tenths: impl Fn(f64, &Second, f64) -> Vec<(usize, f64)>,
    value: impl Fn(&Second, f64) -> Option<f64>,
) -> Vec<Point> {
    let mut points = Vec::new();
    for (start, recording) in recordings(run, load) {
        for second in &recording.timeline {
            // The last second may have been cut short; much shorter, it says nothing.
            let length = (recording.seconds - f64::from(second.at)).min(1.0);
            let fine = tenths(start, second, length);
            if !fine.is_empty() {
                points.extend(fine.into_iter().map(|(tenth, value)| {
                    let x = start + f64::from(second.at) + (tenth as f64 + 0.5) / TENTHS as f64;
                    Point { x, y: Some(value), ..Point::default() }
                }));
            } else if length >= 0.5 {
                let x = start + f64::from(second.at) + length / 2.0;
                points.push(Point { x, y: value(second, length), ..Point::default() });
            }
        }
    }
    points
}

/// The recordings of a load with their beginnings, in seconds from the run's.
fn recordings<'a>(run: &'a Run, load: &str) -> impl Iterator<Item = (f64, &'a Recording)> {
    run.loads.iter().filter(move |one| one.name == load).map(|one| {
        let start = one.recording.started_unix_ms.saturating_sub(run.started_unix_ms);
        (start as f64 / 1e3, &one.recording)
    })
}

fn processor_line(samples: &[Sample]) -> Vec<Point> {
    let total = |sample: &Sample| sample.cpu_user_seconds + sample.cpu_system_seconds;
    samples
        .windows(2)
        .map(|pair| {
            let seconds = pair[1].at - pair[0].at;
            let used = total(&pair[1]) - total(&pair[0]);
            // A process that was started again counts from zero.
            let known = seconds > 0.0 && used >= 0.0;
            Point {
                x: f64::midpoint(pair[0].at, pair[1].at),
                y: known.then(|| used / seconds),
                ..Point::default()
            }
        })
        .collect()
}

/// The events of some runs. What happened to all at the same time is one line; what did not names
/// its target.
fn spans(runs: &[&Run]) -> Vec<Span> {
    let mut spans: Vec<(Span, usize, &str)> = Vec::new();
    for run in runs {
        for event in run.events.iter().filter(|event| event.done) {
            let same = spans.iter_mut().find(|(span, _, target)| {
                span.label == event.name
                    && *target != run.target
                    && (span.from - event.at).abs() <= SAME_SECONDS
            });
            if let Some((span, count, target)) = same {
                *count += 1;
                *target = &run.target;
                // It lasted differently for each, which the tables tell.
                span.until = None;
            } else {
                let until = event.until.filter(|until| *until > event.at);
                let span = Span { from: event.at, until, label: event.name.clone() };
                spans.push((span, 1, &run.target));
            }
        }
    }
    spans
        .into_iter()
        .map(|(mut span, count, target)| {
            if count < runs.len() {
                span.label = format!("{} ({target})", span.label);
            }
            span
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::load::Plan;
    use crate::record::Generator;
    use crate::results::{Event, LoadRecording};

    /// Ten seconds at a thousand a second; in the sixth a server is killed for half a second.
    fn killed(has_tenths: bool) -> Run {
        let second = |at: u32| {
            let tenth = |tenth: usize| if at == 5 && (3..8).contains(&tenth) { 0 } else { 100 };
            let tenths: Vec<u64> = (0..TENTHS).map(tenth).collect();
            let requests = tenths.iter().sum();
            let tenths = if has_tenths { tenths } else { Vec::new() };
            Second { at, requests, tenths, ..Second::default() }
        };
        let recording = Recording {
            plan: Plan::default(),
            started_unix_ms: 0,
            seconds: 10.0,
            operations: Vec::new(),
            timeline: (0..10).map(second).collect(),
            generator: Generator::default(),
            interrupted: None,
        };
        let event = Event {
            at: 5.3,
            until: None,
            name: "kill -9".to_owned(),
            outcome: String::new(),
            done: true,
            unfinished: false,
        };
        Run {
            target: "dunlin".to_owned(),
            parameters: BTreeMap::new(),
            repetition: 0,
            started_unix_ms: 0,
            command: Vec::new(),
            loads: vec![LoadRecording {
                name: "clients".to_owned(),
                recording,
                agents: Vec::new(),
            }],
            samples: Vec::new(),
            events: vec![event],
            knee: None,
            check: None,
            figures: BTreeMap::new(),
            failure: None,
        }
    }

    #[test]
    fn a_server_that_is_gone_for_a_moment_is_seen_at_zero() {
        let line = throughput_line(&killed(true), "clients");
        let low: Vec<f64> = line.iter().filter(|own| own.y == Some(0.0)).map(|own| own.x).collect();
        assert_eq!(low.len(), 5, "{low:?}");
        assert!((low[0] - 5.35).abs() < 1e-9, "{low:?}");
        // Far from the fault a second has one point, and each tells a rate per second.
        assert!(line.iter().any(|own| (own.x - 1.5).abs() < 1e-9 && own.y == Some(1000.0)));
        assert!(line.windows(2).all(|pair| pair[0].x < pair[1].x), "in order");
        let old = throughput_line(&killed(false), "clients");
        assert_eq!(old.len(), 10, "results of earlier versions have seconds only");
    }
}
