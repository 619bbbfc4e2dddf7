//! The page: one file of HTML that needs nothing else.

use super::analysis::Analysis;
use super::chart::{CHART_SHEET, COLOUR_SHEET, Chart};
use super::columns::columns;
use super::markup::Markup;
use super::view::{Colours, Context, Section, sections, slug};
use super::{number, setup, standing, table, verdict};
use crate::experiment::machine::is_in_memory;
use crate::results::{Machine, Results};

/// How the page looks, besides colours and charts.
const PAGE_SHEET: &str = include_str!("page.css");

/// Tables stand before the charts when they are short; longer ones are folded.
const LONG_TABLE: usize = 12;

/// Folded parts are unfolded for the printer, but for the list of all runs. Without it a print
/// lacks them, and nothing else.
const SCRIPT: &str = "addEventListener('beforeprint',function(){\
document.querySelectorAll('details:not(.bulk)').forEach(function(d){if(!d.open){d.open=true;d.folded=true}})});\
addEventListener('afterprint',function(){\
document.querySelectorAll('details').forEach(function(d){if(d.folded){d.open=false;d.folded=false}})});";

/// The whole report.
pub(crate) fn page(results: &Results) -> String {
    let colours = Colours::of(results);
    let mut page = Markup::new();
    page.markup("<!DOCTYPE html>\n");
    page.open("html", &[("lang", &"en")]);
    head(results, &mut page);
    page.open("body", &[]);
    header(results, &mut page);
    let analyses: Vec<Analysis<'_>> = results.experiments.iter().map(Analysis::of).collect();
    contents(&analyses, &mut page);
    page.open("main", &[]);
    for (index, analysis) in analyses.iter().enumerate() {
        experiment(index, analysis, &colours, &mut page);
    }
    page.close();
    footer(&mut page);
    page.open("script", &[]);
    page.markup(SCRIPT);
    page.close();
    page.finish()
}

/// The machine in a line.
pub(crate) fn machine_line(machine: &Machine) -> String {
    let count = match machine.processors {
        0 => String::new(),
        1 => "1 processor".to_owned(),
        many => format!("{many} processors"),
    };
    let memory = if machine.memory_bytes > 0 {
        format!("{} of memory", number::bytes(machine.memory_bytes as f64))
    } else {
        String::new()
    };
    let data = match machine.file_system.as_str() {
        "" => String::new(),
        kind if is_in_memory(kind) => format!("data on {kind}, which is not a disk"),
        kind => format!("data on {kind}"),
    };
    let mut parts = vec![
        machine.processor.clone(),
        count,
        memory,
        machine.system.clone(),
        machine.kernel.clone(),
        data,
    ];
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

fn head(results: &Results, page: &mut Markup) {
    page.open("head", &[]);
    page.empty("meta", &[("charset", &"utf-8")]);
    page.empty(
        "meta",
        &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")],
    );
    let title = format!("Dunlin lab, {}", number::moment(results.started_unix_ms));
    page.leaf("title", &[], title);
    page.open("style", &[]);
    page.markup(COLOUR_SHEET);
    page.markup(CHART_SHEET);
    page.markup(PAGE_SHEET);
    page.close();
    page.close();
}

fn header(results: &Results, page: &mut Markup) {
    page.open("header", &[]);
    page.leaf("h1", &[], "Dunlin lab report");
    let size =
        if results.size.is_empty() { String::new() } else { format!(", {} size", results.size) };
    page.leaf("p", &[], format!("{} UTC{size}", number::moment(results.started_unix_ms)));
    page.leaf("p", &[("class", &"machine")], machine_line(&results.machine));
    page.close();
}

fn anchor(index: usize, name: &str) -> String {
    format!("{}-{}", slug(&[name]), index + 1)
}

fn contents(analyses: &[Analysis<'_>], page: &mut Markup) {
    page.open("nav", &[]);
    page.leaf("h2", &[], "Questions and answers");
    if analyses.is_empty() {
        page.leaf("p", &[], "No experiment was run.");
    }
    page.open("ol", &[]);
    for (index, analysis) in analyses.iter().enumerate() {
        page.open("li", &[]);
        let link = format!("#{}", anchor(index, &analysis.experiment.name));
        page.leaf("a", &[("href", &link)], &analysis.experiment.title);
        let answer = verdict::answer(analysis);
        // The first sentence is about what matters most.
        page.leaf("span", &[("class", &"short")], answer.first().map_or("", String::as_str));
        let failed = verdict::failed_runs(analysis);
        if failed > 0 {
            let of = experiment_runs(failed, analysis.experiment.runs.len());
            page.leaf("span", &[("class", &"failed")], format!(" {of}"));
        }
        page.close();
    }
    page.close();
    page.close();
}

/// `1 of 6 runs failed.`
fn experiment_runs(failed: usize, of: usize) -> String {
    format!("{failed} of {of} {} failed.", if of == 1 { "run" } else { "runs" })
}

fn experiment(index: usize, analysis: &Analysis<'_>, colours: &Colours, page: &mut Markup) {
    let experiment = analysis.experiment;
    page.open("section", &[("id", &anchor(index, &experiment.name))]);
    page.open("h2", &[]);
    page.text(&experiment.title);
    page.leaf("small", &[], format!(" {}", experiment.name));
    if let Some(answers) = &experiment.answers {
        page.leaf("span", &[("class", &"tag")], answers);
    }
    page.close();
    page.leaf("p", &[("class", &"question")], &experiment.question);
    page.leaf("p", &[("class", &"answer")], verdict::answer(analysis).join(" "));
    for (class, sentences) in
        [("failures", verdict::failures(analysis)), ("cautions", verdict::cautions(analysis))]
    {
        if !sentences.is_empty() {
            page.open("ul", &[("class", &class)]);
            for sentence in sentences {
                page.leaf("li", &[], sentence);
            }
            page.close();
        }
    }
    if let Some(details) = standing::details(analysis, &verdict::headline_figures(analysis)) {
        table::side_by_side(&details, page);
    }
    if let Some(columns) = columns(analysis) {
        table::side_by_side(&columns, page);
    }
    tables(analysis, page);
    for section in sections(&Context { analysis, colours }) {
        charts(&section, page);
    }
    table::checks(analysis, page);
    if analysis.experiment.runs.iter().any(|run| !run.events.is_empty()) {
        page.open("details", &[]);
        page.leaf("summary", &[], "What was done to the targets, and what came of it");
        table::events(analysis, page);
        page.close();
    }
    if !analysis.figures.is_empty() {
        page.open("details", &[]);
        page.leaf("summary", &[], "All figures");
        table::all_figures(analysis, page);
        page.close();
    }
    setup::setup(analysis, page);
    page.close();
}

fn tables(analysis: &Analysis<'_>, page: &mut Markup) {
    let figures = verdict::headline_figures(analysis);
    if figures.is_empty() {
        return;
    }
    let long = analysis.points.len() > LONG_TABLE;
    if long {
        page.open("details", &[]);
        page.leaf("summary", &[], "The figures side by side");
    }
    page.open("div", &[("class", &"tables")]);
    for figure in figures {
        table::figure_table(analysis, figure, page);
    }
    page.close();
    if long {
        page.close();
    }
}

fn charts(section: &Section, page: &mut Markup) {
    page.leaf("h3", &[], &section.heading);
    page.leaf("p", &[("class", &"note")], &section.note);
    page.open("div", &[("class", &"charts")]);
    for chart in &section.charts {
        page.open("figure", &[]);
        page.markup(&Chart::inline(chart));
        page.close();
    }
    page.close();
}

fn footer(page: &mut Markup) {
    page.open("footer", &[]);
    page.leaf("h2", &[], "How to read this");
    for text in [
        "A figure is the median over repetitions, ± half of the way from the smallest to the \
         largest. Targets took turns, so that a slow minute of the machine affects all of them.",
        "A ratio is a target's figure divided by that of the server named after the stroke: the first \
         that is neither Dunlin nor the built-in limit, or, where there is none, the first target. \
         Targets took turns, so that each run stands beside one of the other, and the median of \
         the ratios of these pairs is shown. It is a tie when chance explains it, since the 95 % \
         confidence interval of the mean ratio has 1 in it, or when it is within 5 % of 1 (15 % \
         where there are fewer than three runs).",
        "A run in which the load generator, and not the server, was the limit is INVALID: it is \
         named, and counts in no figure, chart or answer. One in which the server could not keep \
         up, so that requests were never sent or connections were lost, is overloaded: it counts.",
        "Response time counts from when a request was due; in a closed loop, where the next request \
         waits for the last reply, that is when it was sent. A memory figure counts pages that \
         processes share once.",
    ] {
        page.leaf("p", &[], text);
    }
    page.close();
}
