//! The tables of a report.

use super::analysis::{Analysis, Cell, invalid_reasons, late_reasons, overloaded_reasons};
use super::columns::Columns;
use super::markup::Markup;
use super::number;
use super::view::capital;
use super::words::{self, command_line};
use crate::results::{Better, Contrast, Difference, Figure, Run, Summary};

/// Rows of events beyond these are in the file only.
const MOST_EVENTS: usize = 60;

/// One figure, side by side by target, with ratios: a row per point.
pub(crate) fn figure_table(analysis: &Analysis<'_>, figure: &Figure, page: &mut Markup) {
    let shown: Vec<usize> = (0..analysis.targets.len()).collect();
    let compared: Vec<usize> =
        shown.iter().copied().filter(|target| *target != analysis.baseline).collect();
    page.open("div", &[("class", &"box")]);
    page.open("table", &[]);
    page.leaf("caption", &[], caption(figure));
    page.open("thead", &[]);
    page.open("tr", &[]);
    let by_point = analysis.points.len() > 1;
    if by_point {
        page.leaf("th", &[("scope", &"col")], analysis.parameter_names().join(", "));
    }
    for target in &shown {
        page.leaf("th", &[("scope", &"col"), ("class", &"number")], analysis.targets[*target]);
    }
    for target in &compared {
        let baseline = analysis.targets[analysis.baseline];
        let text = format!("{} / {baseline}", analysis.targets[*target]);
        page.leaf("th", &[("scope", &"col"), ("class", &"number")], text);
    }
    page.close();
    page.close();
    page.open("tbody", &[]);
    for point in 0..analysis.points.len() {
        page.open("tr", &[]);
        if by_point {
            page.leaf("th", &[("scope", &"row")], row_label(analysis, point));
        }
        for target in &shown {
            let summary = analysis.summary(figure, point, *target);
            figure_cell(figure, summary, &analysis.points[point].cells[*target], page);
        }
        for target in &compared {
            ratio_cell(figure, analysis.against_baseline(figure, point, *target), page);
        }
        page.close();
    }
    page.close();
    page.close();
    page.close();
}

/// A table whose first columns are names.
pub(crate) fn side_by_side(columns: &Columns, page: &mut Markup) {
    page.open("div", &[("class", &"box")]);
    page.open("table", &[]);
    page.open("thead", &[]);
    page.open("tr", &[]);
    for (at, text) in columns.heads.iter().enumerate() {
        let class = if at < columns.names { "" } else { "number" };
        page.leaf("th", &[("scope", &"col"), ("class", &class)], text);
    }
    page.close();
    page.close();
    page.open("tbody", &[]);
    for row in &columns.rows {
        page.open("tr", &[]);
        for (at, text) in row.iter().enumerate() {
            let class = if at < columns.names { "" } else { "number" };
            page.leaf("td", &[("class", &class)], text);
        }
        page.close();
    }
    page.close();
    page.close();
    page.close();
}

/// The values of a point, without the names that stand above them.
fn row_label(analysis: &Analysis<'_>, point: usize) -> String {
    let parameters = analysis.points[point].parameters;
    let values = analysis.parameter_names().into_iter().filter_map(|name| parameters.get(name));
    values.cloned().collect::<Vec<String>>().join(", ")
}

fn caption(figure: &Figure) -> String {
    let label = capital(&figure.full_label());
    let direction = match figure.better {
        Better::Higher => "more is better",
        Better::Lower => "less is better",
        Better::Neither => return label,
    };
    let unit = match figure.unit {
        crate::results::Unit::PerSecond => " in requests a second",
        _ => "",
    };
    format!("{label}{unit}; {direction}")
}

/// A median with its spread, or why there is none.
fn figure_cell(figure: &Figure, summary: Option<Summary>, cell: &Cell<'_>, page: &mut Markup) {
    let Some(summary) = summary else {
        let is_said = cell.counted(figure) == 0 || cell.missed(figure).is_some();
        let class = if is_said { "number missing" } else { "number none" };
        page.leaf("td", &[("class", &class)], cell.without(figure));
        return;
    };
    let show = |value| number::show(figure.unit, value);
    let range =
        format!("{} to {} in {} runs", show(summary.low), show(summary.high), summary.count);
    page.open("td", &[("class", &"number"), ("title", &range)]);
    page.text(show(summary.median));
    if let Some(half) = summary.half_width() {
        page.leaf("small", &[], format!(" ±{}", share(half)));
    } else if summary.count > 1 && summary.high > summary.low {
        page.leaf("small", &[], format!(" to {}", show(summary.high)));
    }
    if cell.counted(figure) < cell.count() {
        let text = format!(" {} of {} runs", cell.counted(figure), cell.count());
        page.leaf("small", &[("class", &"warn")], text);
    }
    let mut doubts = Vec::new();
    doubts.extend(cell.missed(figure));
    doubts.extend(Some(("overloaded", cell.overloaded())).filter(|(_, count)| *count > 0));
    for (words, count) in doubts {
        let text = format!(" {words} in {count} of {}", cell.valid.len());
        page.leaf("small", &[("class", &"warn")], text);
    }
    page.close();
}

fn share(half: f64) -> String {
    let percent = half * 100.0;
    if percent < 0.05 {
        "0 %".to_owned()
    } else if percent < 0.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

fn ratio_cell(figure: &Figure, contrast: Option<Contrast>, page: &mut Markup) {
    let Some(contrast) = contrast else {
        page.leaf("td", &[("class", &"number none")], "–");
        return;
    };
    let (class, word) = match (contrast.difference, figure.better) {
        (Difference::Tie, _) => ("tie", ""),
        (Difference::Higher, Better::Higher) | (Difference::Lower, Better::Lower) => {
            ("better", " better")
        }
        (_, Better::Neither) => ("", ""),
        _ => ("worse", " worse"),
    };
    page.open("td", &[("class", &format!("number {class}"))]);
    page.text(words::contrast(contrast));
    if !word.is_empty() {
        page.leaf("small", &[], word);
    }
    page.close();
}

/// Every figure of every point and target.
pub(crate) fn all_figures(analysis: &Analysis<'_>, page: &mut Markup) {
    page.open("div", &[("class", &"box")]);
    page.open("table", &[]);
    page.open("thead", &[]);
    page.open("tr", &[]);
    let names = analysis.parameter_names();
    for name in names.iter().copied().chain(["target", "valid runs"]) {
        page.leaf("th", &[("scope", &"col")], name);
    }
    for figure in &analysis.figures {
        page.leaf("th", &[("scope", &"col"), ("class", &"number")], figure.full_label());
    }
    page.close();
    page.close();
    page.open("tbody", &[]);
    for point in 0..analysis.points.len() {
        for (target, name) in analysis.targets.iter().enumerate() {
            let cell = &analysis.points[point].cells[target];
            if cell.count() == 0 {
                continue;
            }
            page.open("tr", &[]);
            for parameter in &names {
                let value = analysis.points[point].parameters.get(*parameter);
                page.leaf("td", &[], value.map_or("", String::as_str));
            }
            page.leaf("th", &[("scope", &"row")], name);
            page.leaf("td", &[], format!("{} of {}", cell.valid.len(), cell.count()));
            for figure in &analysis.figures {
                figure_cell(figure, analysis.summary(figure, point, target), cell, page);
            }
            page.close();
        }
    }
    page.close();
    page.close();
    page.close();
}

/// What the checker found, by point and target.
pub(crate) fn checks(analysis: &Analysis<'_>, page: &mut Markup) {
    if analysis.experiment.runs.iter().all(|run| run.check.is_none()) {
        return;
    }
    let heads = [
        "point",
        "target",
        "run",
        "acknowledged",
        "unknown",
        "lost",
        "oldest lost",
        "stale reads",
        "wrong",
        "checker recovered after",
    ];
    page.leaf("h3", &[], "What became of acknowledged writes");
    head(analysis, &heads, 3, page);
    for (run, label) in runs(analysis) {
        let Some(check) = &run.check else { continue };
        page.open("tr", &[]);
        point_cell(analysis, &label, page);
        page.leaf("th", &[("scope", &"row")], &run.target);
        page.leaf("td", &[], run.repetition + 1);
        let counts = [check.acknowledged, check.unknown, check.lost]
            .map(|count| number::grouped(count as f64));
        for (index, count) in counts.iter().enumerate() {
            let class = if index == 2 && check.lost > 0 { "number worse" } else { "number" };
            page.leaf("td", &[("class", &class)], count);
        }
        let seconds = |value: Option<f64>| value.map_or("–".to_owned(), number::duration);
        page.leaf("td", &[("class", &"number")], seconds(check.oldest_lost_seconds));
        for count in [check.stale_reads, check.wrong] {
            let class = if count > 0 { "number worse" } else { "number" };
            page.leaf("td", &[("class", &class)], number::grouped(count as f64));
        }
        page.leaf("td", &[("class", &"number")], seconds(check.recovery_seconds));
        page.close();
    }
    end(page);
}

/// What was done to the targets.
pub(crate) fn events(analysis: &Analysis<'_>, page: &mut Markup) {
    let all = runs(analysis);
    let events = || {
        all.iter().flat_map(|(run, label)| run.events.iter().map(move |event| (run, label, event)))
    };
    if events().next().is_none() {
        return;
    }
    head(analysis, &["point", "target", "run", "event", "at", "took", "outcome"], 7, page);
    for (run, label, event) in events().take(MOST_EVENTS) {
        page.open("tr", &[]);
        point_cell(analysis, label, page);
        page.leaf("th", &[("scope", &"row")], &run.target);
        page.leaf("td", &[], run.repetition + 1);
        page.leaf("td", &[], &event.name);
        page.leaf("td", &[("class", &"number")], number::duration(event.at));
        let took = event.until.map(|until| number::duration((until - event.at).max(0.0)));
        page.leaf("td", &[("class", &"number")], took.as_deref().unwrap_or("–"));
        page.leaf("td", &[("class", &"text")], &event.outcome);
        page.close();
    }
    end(page);
}

/// Every run, with what became of it and the command that started its target.
pub(crate) fn every_run(analysis: &Analysis<'_>, page: &mut Markup) {
    head(analysis, &["point", "started", "target", "run", "outcome", "command"], 6, page);
    for (run, label) in runs(analysis) {
        page.open("tr", &[]);
        point_cell(analysis, &label, page);
        page.leaf("td", &[], number::moment(run.started_unix_ms));
        page.leaf("th", &[("scope", &"row")], &run.target);
        page.leaf("td", &[], run.repetition + 1);
        match (&run.failure, invalid_reasons(run)) {
            (Some(failure), _) => {
                page.leaf("td", &[("class", &"missing text")], format!("failed: {failure}"));
            }
            (None, reasons) if !reasons.is_empty() => {
                let text = format!("INVALID: {}", reasons.join("; "));
                page.leaf("td", &[("class", &"missing text")], text);
            }
            _ if !late_reasons(run).is_empty() => {
                let text = format!("valid without its times: {}", late_reasons(run).join("; "));
                page.leaf("td", &[("class", &"text")], text);
            }
            _ => match overloaded_reasons(run) {
                reasons if reasons.is_empty() => page.leaf("td", &[], interrupted(run)),
                reasons => {
                    let text = format!("valid, overloaded: {}", reasons.join("; "));
                    page.leaf("td", &[("class", &"text")], text);
                }
            },
        }
        page.open("td", &[("class", &"command")]);
        page.leaf("code", &[], command_line(&run.command));
        page.close();
        page.close();
    }
    end(page);
}

fn interrupted(run: &Run) -> String {
    let why = run.loads.iter().find_map(|load| load.recording.interrupted.as_ref());
    why.map_or("valid".to_owned(), |why| format!("valid, ended early: {why}"))
}

fn runs<'a>(analysis: &Analysis<'a>) -> Vec<(&'a Run, String)> {
    let runs = analysis.experiment.runs.iter();
    runs.map(|run| (run, analysis.label_without(&run.parameters, ""))).collect()
}

/// Where a run belongs in the matrix, if there is one.
fn point_cell(analysis: &Analysis<'_>, label: &str, page: &mut Markup) {
    if !analysis.parameter_names().is_empty() {
        page.leaf("td", &[], label);
    }
}

/// Begins a table; the heads from `numbers` on stand over numbers. The first is the point, which
/// only an experiment with a matrix has.
fn head(analysis: &Analysis<'_>, heads: &[&str], numbers: usize, page: &mut Markup) {
    page.open("div", &[("class", &"box")]);
    page.open("table", &[]);
    page.open("thead", &[]);
    page.open("tr", &[]);
    let skipped = usize::from(analysis.parameter_names().is_empty());
    for (index, text) in heads.iter().enumerate().skip(skipped) {
        let class = if index >= numbers { "number" } else { "" };
        page.leaf("th", &[("scope", &"col"), ("class", &class)], text);
    }
    page.close();
    page.close();
    page.open("tbody", &[]);
}

fn end(page: &mut Markup) {
    page.close();
    page.close();
    page.close();
}
