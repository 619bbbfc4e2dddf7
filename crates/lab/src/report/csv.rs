//! Figures as comma-separated values: a row per run and load, for spreadsheets and other programs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::analysis::{invalid_reasons, late_reasons, overloaded_reasons};
use crate::record::{Latency, Recording};
use crate::results::{Results, Run};

/// Percentiles with the ends of their columns' names.
const SHARES: [(&str, f64); 8] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
    ("p9999", 0.9999),
    ("p99999", 0.99999),
];

/// All runs of all experiments. Times are in milliseconds, rates in requests a second.
pub(crate) fn csv(results: &Results) -> String {
    let runs = || results.experiments.iter().flat_map(|experiment| &experiment.runs);
    let parameters: BTreeSet<&str> =
        runs().flat_map(|run| run.parameters.keys()).map(String::as_str).collect();
    let figures: BTreeSet<&str> =
        runs().flat_map(|run| run.figures.keys()).map(String::as_str).collect();
    let mut out = String::new();
    let mut heads: Vec<String> =
        ["experiment", "target", "version", "repetition", "started_unix_ms"]
            .map(str::to_owned)
            .to_vec();
    heads.extend(parameters.iter().map(|name| format!("parameter_{name}")));
    heads.extend(
        ["outcome", "reason", "load", "seconds", "requests", "errors", "requests_per_second"]
            .map(str::to_owned),
    );
    for kind in ["response", "service"] {
        heads.extend(["min", "mean"].map(|name| format!("{kind}_{name}_ms")));
        heads.extend(SHARES.map(|(name, _)| format!("{kind}_{name}_ms")));
        heads.push(format!("{kind}_max_ms"));
    }
    heads.extend(["generator_busiest_thread", "generator_lateness_p99_ms"].map(str::to_owned));
    heads.extend(figures.iter().map(|name| (*name).to_owned()));
    row(&mut out, &heads);
    for experiment in &results.experiments {
        for run in &experiment.runs {
            let target = experiment.targets.iter().find(|target| target.name == run.target);
            let version = target.map_or("", |target| target.version.as_str());
            let mut begin = vec![
                experiment.name.clone(),
                run.target.clone(),
                version.to_owned(),
                (run.repetition + 1).to_string(),
                run.started_unix_ms.to_string(),
            ];
            let parameter = |name: &&str| run.parameters.get(*name).cloned().unwrap_or_default();
            begin.extend(parameters.iter().map(parameter));
            begin.extend(outcome(run));
            let figure = |name: &&str| run.figures.get(*name).map(f64::to_string);
            let end: Vec<String> =
                figures.iter().map(|name| figure(name).unwrap_or_default()).collect();
            // A run without a load still has a row, for its outcome and its figures.
            let loads: Vec<Vec<String>> =
                run.loads.iter().map(|load| load_fields(&load.name, &load.recording)).collect();
            let none = vec![vec![String::new(); heads.len() - begin.len() - end.len()]];
            for load in if loads.is_empty() { none } else { loads } {
                let fields: Vec<String> = begin.iter().chain(&load).chain(&end).cloned().collect();
                row(&mut out, &fields);
            }
        }
    }
    out
}

fn outcome(run: &Run) -> [String; 2] {
    let (reasons, overloaded) = (invalid_reasons(run), overloaded_reasons(run));
    let late = late_reasons(run);
    match &run.failure {
        Some(failure) => ["failed".to_owned(), failure.clone()],
        None if !reasons.is_empty() => ["invalid".to_owned(), reasons.join("; ")],
        None if !late.is_empty() => ["late".to_owned(), late.join("; ")],
        None if !overloaded.is_empty() => ["overloaded".to_owned(), overloaded.join("; ")],
        None => ["valid".to_owned(), String::new()],
    }
}

fn load_fields(name: &str, recording: &Recording) -> Vec<String> {
    let mut fields = vec![
        name.to_owned(),
        decimal(recording.seconds),
        recording.requests().to_string(),
        recording.errors().to_string(),
        decimal(recording.rate()),
    ];
    for latency in [recording.response(), recording.service()] {
        latency_fields(&latency, &mut fields);
    }
    fields.push(decimal(recording.generator.busiest_thread));
    fields.push(decimal(recording.generator.lateness.quantile_ms(0.99)));
    fields
}

fn latency_fields(latency: &Latency, fields: &mut Vec<String>) {
    if latency.count() == 0 {
        fields.extend(std::iter::repeat_n(String::new(), SHARES.len() + 3));
        return;
    }
    fields.push(decimal(latency.min_ms()));
    fields.push(decimal(latency.mean_ms()));
    fields.extend(SHARES.map(|(_, share)| decimal(latency.quantile_ms(share))));
    fields.push(decimal(latency.max_ms()));
}

fn decimal(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { String::new() }
}

/// One line; fields that hold separators are quoted, as of RFC 4180.
fn row(out: &mut String, fields: &[String]) {
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        if field.contains([',', '"', '\n', '\r']) {
            let _ = write!(out, "\"{}\"", field.replace('"', "\"\""));
        } else {
            out.push_str(field);
        }
    }
    out.push('\n');
}
