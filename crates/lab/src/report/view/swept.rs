//! A figure against the parameters that were swept: lines over a parameter that is a number, bars
//! over one that is not.

use super::section::{Context, Kind, Section, axis_label, capital, slug, title};
use crate::report::analysis::Analysis;
use crate::report::chart::{
    Axis, Bar, Bars, Body, Category, Chart, Lines, Point, Scale, Series, Stroke, Tick,
};
use crate::report::number;
use crate::results::{Figure, Summary, Unit};

/// Lines need a direction, and two points have hardly one.
const LEAST_VALUES: usize = 3;
/// As many points are shown in one chart of bars; more are split by parameter.
const MOST_BARS: usize = 8;
/// Charts whose largest values are within this factor have one scale.
const SHARED_SCALE: f64 = 6.0;
/// The most charts of one figure; what is left out is in the table.
const MOST_CHARTS: usize = 6;

/// The charts of a figure; none when no run has it.
pub(super) fn section(context: &Context<'_>, figure: &Figure) -> Option<Section> {
    let analysis = context.analysis;
    let parameter = line_parameter(analysis);
    let charts = match parameter {
        Some(parameter) => line_charts(context, figure, parameter),
        None => bar_charts(context, figure),
    };
    let mut heading = capital(&figure.full_label());
    if let Some(parameter) = parameter {
        heading = format!("{heading} against {parameter}");
    }
    let repeated =
        analysis.points.iter().flat_map(|point| &point.cells).any(|cell| cell.valid.len() > 1);
    let note = if repeated {
        "Median over repetitions; the whiskers reach from the smallest to the largest."
    } else {
        "One run each."
    };
    Some(Section { kind: Kind::Figure, heading, note: note.to_owned(), charts })
}

/// The parameter along the x axis: the first whose values are all numbers, and enough of them.
pub(crate) fn line_parameter<'a>(analysis: &Analysis<'a>) -> Option<&'a str> {
    analysis.parameter_names().into_iter().find(|name| {
        let values = analysis.values(name);
        values.len() >= LEAST_VALUES
            && values.iter().all(|value| number::parameter(value).is_some())
    })
}

/// The points, split by all parameters but one.
fn facets(analysis: &Analysis<'_>, parameter: &str) -> Vec<(String, Vec<usize>)> {
    let mut facets: Vec<(String, Vec<usize>)> = Vec::new();
    for (index, point) in analysis.points.iter().enumerate() {
        let label = analysis.label_without(point.parameters, parameter);
        match facets.iter_mut().find(|(other, _)| *other == label) {
            Some((_, points)) => points.push(index),
            None => facets.push((label, vec![index])),
        }
    }
    facets
}

/// A chart per facet. They share a scale, so that one may look from one to the other, unless
/// figures are so far apart that the small ones would be flat.
fn line_charts(context: &Context<'_>, figure: &Figure, parameter: &str) -> Vec<Chart> {
    let mut facets: Vec<Facet> = facets(context.analysis, parameter)
        .into_iter()
        .take(MOST_CHARTS)
        .map(|(label, points)| Facet::of(context, figure, parameter, label, &points))
        .collect();
    facets.retain(|facet| !facet.series.is_empty());
    let highest = |facet: &Facet| ends(&facet.series).fold(0.0, f64::max);
    let least = facets.iter().map(highest).fold(f64::INFINITY, f64::min);
    let most = facets.iter().map(highest).fold(0.0, f64::max);
    let shared = (most < SHARED_SCALE * least)
        .then(|| value_scale(facets.iter().flat_map(|facet| ends(&facet.series)), figure.unit));
    facets
        .into_iter()
        .map(|facet| {
            let own = || value_scale(ends(&facet.series), figure.unit);
            let scale = shared.clone().unwrap_or_else(own);
            facet.chart(context, figure, parameter, scale)
        })
        .collect()
}

/// The lines of one chart.
struct Facet {
    label: String,
    ticks: Vec<Tick>,
    series: Vec<Series>,
}

impl Facet {
    fn of(
        context: &Context<'_>,
        figure: &Figure,
        parameter: &str,
        label: String,
        points: &[usize],
    ) -> Facet {
        let analysis = context.analysis;
        let at = |point: usize| {
            let value = analysis.points[point].parameters.get(parameter)?;
            Some((number::parameter(value)?, value.clone()))
        };
        let places = points.iter().filter_map(|point| at(*point));
        let mut ticks: Vec<Tick> = places.map(|(value, label)| Tick { value, label }).collect();
        ticks.sort_by(|a, b| a.value.total_cmp(&b.value));
        ticks.dedup_by(|a, b| a.value == b.value);
        let mut series = Vec::new();
        for (target, name) in analysis.targets.iter().enumerate() {
            let point = |point: &usize| {
                let summary = analysis.summary(figure, *point, target);
                Some(Point {
                    x: at(*point)?.0,
                    y: summary.map(|summary| summary.median),
                    spread: summary.map(|summary| (summary.low, summary.high)),
                    hollow: false,
                })
            };
            let mut line: Vec<Point> = points.iter().filter_map(point).collect();
            line.sort_by(|a, b| a.x.total_cmp(&b.x));
            if line.iter().any(|point| point.y.is_some()) {
                series.push(Series {
                    name: (*name).to_owned(),
                    colour: context.colours.colour(name),
                    stroke: Stroke::Solid,
                    marks: true,
                    points: line,
                });
            }
        }
        Facet { label, ticks, series }
    }

    fn chart(self, context: &Context<'_>, figure: &Figure, parameter: &str, scale: Scale) -> Chart {
        let values: Vec<f64> = self.ticks.iter().map(|tick| tick.value).collect();
        let x = Axis {
            label: parameter.to_owned(),
            unit: Unit::Count,
            scale: Scale::swept(&values),
            ticks: Some(self.ticks),
        };
        let y = Axis { label: axis_label(figure.unit), unit: figure.unit, scale, ticks: None };
        let (spans, limits) = (Vec::new(), Vec::new());
        let body = Body::Lines(Lines { x, y, series: self.series, spans, limits });
        let experiment = &context.analysis.experiment.name;
        let name = slug(&[experiment, &figure.id, &figure.load, &self.label]);
        Chart { name, title: title(&capital(&figure.full_label()), &[&self.label]), body }
    }
}

/// The ends of all whiskers.
fn ends(series: &[Series]) -> impl Iterator<Item = f64> {
    let points = series.iter().flat_map(|series| &series.points);
    points.filter_map(|point| point.spread).flat_map(|(low, high)| [low, high])
}

/// From zero, unless times are so far apart that the small ones would lie on the axis.
fn value_scale(ends: impl Iterator<Item = f64>, unit: Unit) -> Scale {
    let ends: Vec<f64> = ends.collect();
    let highest = ends.iter().copied().fold(0.0, f64::max);
    let lowest = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let is_time = matches!(unit, Unit::Milliseconds | Unit::Microseconds);
    if is_time && lowest > 0.0 && highest / lowest > 15.0 {
        Scale::log(ends)
    } else {
        Scale::from_zero(highest, unit)
    }
}

fn bar_charts(context: &Context<'_>, figure: &Figure) -> Vec<Chart> {
    let analysis = context.analysis;
    let names = analysis.parameter_names();
    let all: Vec<usize> = (0..analysis.points.len()).collect();
    if names.len() < 2 || all.len() <= MOST_BARS {
        let labels = all.iter().map(|point| match names[..] {
            [only] => analysis.points[*point].parameters.get(only).cloned().unwrap_or_default(),
            _ => analysis.point_label(*point),
        });
        let groups: Vec<(String, usize)> = labels.zip(all.iter().copied()).collect();
        let axis = if names.len() == 1 { names[0] } else { "" };
        return vec![bars(context, figure, axis, "", groups)];
    }
    let longest = names.iter().copied().max_by_key(|name| analysis.values(name).len());
    let parameter = longest.unwrap_or_default();
    facets(analysis, parameter)
        .into_iter()
        .take(MOST_CHARTS)
        .map(|(facet, points)| {
            let value = |point: &usize| analysis.points[*point].parameters.get(parameter).cloned();
            let groups =
                points.iter().map(|point| (value(point).unwrap_or_default(), *point)).collect();
            bars(context, figure, parameter, &facet, groups)
        })
        .collect()
}

fn bars(
    context: &Context<'_>,
    figure: &Figure,
    parameter: &str,
    facet: &str,
    groups: Vec<(String, usize)>,
) -> Chart {
    let analysis = context.analysis;
    let series = analysis
        .targets
        .iter()
        .map(|name| ((*name).to_owned(), context.colours.colour(name)))
        .collect();
    let bar = |point: usize, target: usize| {
        let cell = &analysis.points[point].cells[target];
        let summary: Option<Summary> = analysis.summary(figure, point, target);
        let missing = match cell.without(figure) {
            "–" => "no figure",
            words => words,
        };
        summary.map_or_else(|| Bar::Missing(missing.to_owned()), Bar::Value)
    };
    let categories = groups
        .into_iter()
        .map(|(label, point)| {
            let bars = (0..analysis.targets.len()).map(|target| bar(point, target)).collect();
            Category { label, bars }
        })
        .collect();
    let by = if parameter.is_empty() { String::new() } else { format!("by {parameter}") };
    let body =
        Body::Bars(Bars { label: axis_label(figure.unit), unit: figure.unit, series, categories });
    let name = slug(&[&analysis.experiment.name, &figure.id, &figure.load, facet]);
    let what =
        if by.is_empty() { figure.full_label() } else { format!("{} {by}", figure.full_label()) };
    Chart { name, title: title(&capital(&what), &[facet]), body }
}
