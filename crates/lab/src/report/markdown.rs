//! Results as a short page for a repository: per published question a table and pictures, which lie
//! beside it.

use std::collections::BTreeSet;

use super::analysis::Analysis;
use super::chart::Chart;
use super::columns::{self, Columns};
use super::view::{Colours, Context, sections};
use super::words::{self, free_name};
use super::{number, page, standing, verdict};
use crate::results::Results;

/// The published experiments, with what each asks.
const QUESTIONS: [(&str, &str); 5] = [
    ("E1", "Central store or a replica beside each reader?"),
    ("E2", "What do persistence modes cost, and what survives a kill?"),
    ("E3", "Pipelining and big replies, without fork"),
    ("E4", "The battle of blob storages"),
    ("E5", "One big instance or a cluster, by value size"),
];

/// Pictures of one experiment: the views of its most important figure.
const MOST_PICTURES: usize = 3;

/// The page, and the charts that it shows; they belong into `charts/` beside it.
pub(crate) fn markdown(results: &Results) -> (String, Vec<Chart>) {
    let colours = Colours::of(results);
    let mut text = format!(
        "# Results of the lab\n\n{} UTC, {} size. {}\n",
        number::moment(results.started_unix_ms),
        escape(&results.size),
        escape(&page::machine_line(&results.machine)),
    );
    let versions = versions(results);
    if !versions.is_empty() {
        text.push_str(&format!("\nMeasured: {}.\n", escape(&versions.join(", "))));
    }
    let mut used = Pictures::default();
    let mut section = |heading: &str, code: Option<&str>, is_told: bool, text: &mut String| {
        let own = results.experiments.iter().filter(|own| own.answers.as_deref() == code);
        let analyses: Vec<Analysis<'_>> = own.map(Analysis::of).collect();
        if analyses.is_empty() && !is_told {
            return;
        }
        text.push_str(&format!("\n## {heading}\n"));
        if analyses.is_empty() {
            text.push_str("\nNot measured here.\n");
        }
        for analysis in &analyses {
            experiment(analysis, &colours, text, &mut used);
        }
    };
    for (code, question) in QUESTIONS {
        section(&format!("{code} · {question}"), Some(code), true, &mut text);
    }
    section("Beyond these", None, false, &mut text);
    text.push_str(
        "\nFigures are medians over repetitions, ± half of the spread. Ratios are medians of the ratios of \
         paired runs. A tie is a ratio that chance explains (the 95 % confidence interval of its mean \
         has 1 in it), or that is within 5 % of 1 (15 % where there are fewer than three runs).\n",
    );
    (text, used.charts)
}

/// What the targets say of themselves, each once.
fn versions(results: &Results) -> Vec<&str> {
    let mut versions: Vec<&str> = Vec::new();
    for target in results.experiments.iter().flat_map(|experiment| &experiment.targets) {
        if !target.version.is_empty() && !versions.contains(&target.version.as_str()) {
            versions.push(&target.version);
        }
    }
    versions
}

/// The charts that the page shows, each under a name of its own.
#[derive(Default)]
struct Pictures {
    charts: Vec<Chart>,
    taken: BTreeSet<String>,
}

fn experiment(analysis: &Analysis<'_>, colours: &Colours, text: &mut String, used: &mut Pictures) {
    let experiment = analysis.experiment;
    text.push_str(&format!(
        "\n### {}\n\n{}\n",
        escape(&experiment.title),
        escape(&experiment.question)
    ));
    for sentence in verdict::answer(analysis) {
        text.push_str(&format!("\n**{}**\n", escape(&sentence)));
    }
    let mut told = verdict::failures(analysis);
    told.extend(verdict::cautions(analysis));
    if !told.is_empty() {
        text.push('\n');
    }
    for sentence in told {
        text.push_str(&format!("- {}\n", escape(&sentence)));
    }
    if let Some(details) = standing::details(analysis, &verdict::headline_figures(analysis)) {
        side_by_side(&details, text);
    }
    match columns::columns(analysis) {
        Some(columns) => side_by_side(&columns, text),
        None => table(analysis, text),
    }
    let first = sections(&Context { analysis, colours }).into_iter().next();
    for mut chart in first.into_iter().flat_map(|section| section.charts).take(MOST_PICTURES) {
        chart.name = free_name(&chart.name, &mut used.taken);
        text.push_str(&format!("\n![{}](charts/{}.svg)\n", escape(&chart.title), chart.name));
        used.charts.push(chart);
    }
}

/// A table whose first columns are names.
fn side_by_side(columns: &Columns, text: &mut String) {
    text.push_str(&format!("\n{}", table_row(&columns.heads)));
    let figures = columns.heads.len() - columns.names;
    text.push_str(&format!("|{}{}\n", "---|".repeat(columns.names), "--:|".repeat(figures)));
    for row in &columns.rows {
        text.push_str(&table_row(row));
    }
}

fn table(analysis: &Analysis<'_>, text: &mut String) {
    let Some(figure) = verdict::headline_figures(analysis).into_iter().next() else { return };
    let mut heads = vec![figure.full_label()];
    heads.extend(analysis.targets.iter().map(|target| (*target).to_owned()));
    let baseline = analysis.targets.get(analysis.baseline).copied().unwrap_or_default();
    let compared: Vec<usize> =
        (0..analysis.targets.len()).filter(|target| *target != analysis.baseline).collect();
    heads.extend(compared.iter().map(|index| format!("{} / {baseline}", analysis.targets[*index])));
    text.push_str(&format!("\n{}", table_row(&heads)));
    text.push_str(&format!("|---|{}\n", "--:|".repeat(heads.len() - 1)));
    for point in 0..analysis.points.len() {
        let mut fields = vec![analysis.point_label(point)];
        for target in 0..analysis.targets.len() {
            fields.push(match analysis.summary(figure, point, target) {
                Some(summary) => {
                    let half = summary.half_width().map(|half| format!(" ±{:.0} %", half * 100.0));
                    number::show(figure.unit, summary.median) + &half.unwrap_or_default()
                }
                None => analysis.points[point].cells[target].without(figure).to_owned(),
            });
        }
        for target in &compared {
            let contrast = analysis.against_baseline(figure, point, *target);
            fields.push(contrast.map_or_else(|| "–".to_owned(), words::contrast));
        }
        text.push_str(&table_row(&fields));
    }
}

fn table_row(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| escape(field)).collect();
    format!("| {} |\n", fields.join(" | "))
}

/// Text that Markdown shows as it is.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
