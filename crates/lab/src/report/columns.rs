//! Some figures side by side, a row for each target at each point: the table that published
//! measurements of such servers have.

use super::analysis::Analysis;
use super::number;
use crate::results::{Figure, Unit};

/// The table as texts.
pub(crate) struct Columns {
    /// Over each column.
    pub(crate) heads: Vec<String>,
    /// How many of the first columns are names and not figures.
    pub(crate) names: usize,
    /// A row for each target at each point.
    pub(crate) rows: Vec<Vec<String>>,
}

/// What tables of columns call some figures.
const HEADS: [(&str, &str); 17] = [
    ("throughput", "TPS"),
    ("server_cpu_processors", "CPU (millicores)"),
    ("store_cpu_processors", "CPU of the store (millicores)"),
    ("server_cpu_us_per_request", "CPU per request"),
    ("errors_percent", "errors"),
    ("base_memory_bytes", "memory before"),
    ("peak_memory_bytes", "peak memory"),
    ("peak_memory_ratio", "peak / before"),
    ("p50_quiet_ms", "p50 otherwise"),
    ("p50_during_events_ms", "p50 meanwhile"),
    ("p99_quiet_ms", "p99 otherwise"),
    ("p99_during_events_ms", "p99 meanwhile"),
    ("p999_quiet_ms", "p99.9 otherwise"),
    ("p999_during_events_ms", "p99.9 meanwhile"),
    ("recovery_seconds", "recovered after"),
    ("online_seconds", "online after"),
    ("backed_up_seconds", "backed up after"),
];

/// The table that an experiment asks for, if it does.
pub(crate) fn columns(analysis: &Analysis<'_>) -> Option<Columns> {
    let ids = &analysis.experiment.columns;
    if ids.is_empty() || !analysis.has_valid_runs() {
        return None;
    }
    // One point has one load and another the next: they share a column.
    let figures: Vec<(&String, Vec<&Figure>)> = ids
        .iter()
        .map(|id| (id, analysis.figures.iter().filter(|figure| figure.id == *id).collect()))
        .filter(|(_, figures): &(_, Vec<_>)| !figures.is_empty())
        .collect();
    let parameters = analysis.parameter_names();
    let mut heads: Vec<String> = parameters.iter().map(|name| (*name).to_owned()).collect();
    heads.push("target".to_owned());
    heads.extend(figures.iter().map(|(id, figures)| head(id, figures)));
    let mut rows = Vec::new();
    for (at, point) in analysis.points.iter().enumerate() {
        for (target, cell) in point.cells.iter().enumerate().filter(|(_, cell)| cell.count() > 0) {
            let mut row: Vec<String> = parameters
                .iter()
                .map(|name| point.parameters.get(*name).cloned().unwrap_or_default())
                .collect();
            row.push(analysis.targets[target].to_owned());
            row.extend(figures.iter().map(|(_, figures)| {
                let told = figures.iter().find_map(|figure| {
                    let summary = analysis.summary(figure, at, target)?;
                    Some(show(figure, summary.median))
                });
                let first = figures.first();
                told.or(first.map(|figure| cell.without(figure).to_owned())).unwrap_or_default()
            }));
            rows.push(row);
        }
    }
    Some(Columns { heads, names: parameters.len() + 1, rows })
}

fn head(id: &str, figures: &[&Figure]) -> String {
    let known = HEADS.iter().find(|(name, _)| *name == id).map(|(_, head)| (*head).to_owned());
    known.or(figures.first().map(|figure| figure.label.clone())).unwrap_or_default()
}

fn show(figure: &Figure, value: f64) -> String {
    match figure.unit {
        // Thousandths of a processor, as in clusters.
        Unit::Processors => number::show(Unit::Count, (value * 1000.0).round()),
        unit => number::show(unit, value),
    }
}
