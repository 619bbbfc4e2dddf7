//! Reports: one page for people, tables and logs for programs, all made from [`Results`] alone.
//!
//! [`html`] is the page. Its parts, in the order in which a reader meets them: [`verdict`] sums the
//! figures up in sentences, and [`standing`] says which target is ahead; [`table`] shows the
//! figures, [`view`] chooses the charts that [`chart`] draws, and [`setup`] tells how it was done.
//! [`analysis`] lays an experiment out for all of them.

mod analysis;
mod chart;
mod columns;
mod csv;
pub(crate) mod hlog;
mod markdown;
mod markup;
mod number;
mod page;
mod setup;
mod standing;
mod table;
mod verdict;
mod view;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use view::VIEWS;

use crate::results::{ExperimentResult, Results};
pub(crate) use analysis::{invalid_reasons, overloaded_reasons};
pub(crate) use number::{grouped, show as show_figure, stamp};

use analysis::Analysis;
use chart::Chart;
use view::{Colours, Context, sections, slug};
use words::free_name;

/// The report as one HTML file that needs nothing else, neither files nor a network.
pub fn html(results: &Results) -> String {
    page::page(results)
}

/// A page in Markdown that answers the published questions E1 to E5, each with a table and with
/// pictures from `charts/` beside it, which [`write_markdown`] puts there.
pub fn markdown(results: &Results) -> String {
    markdown::markdown(results).0
}

/// Every run and load as a line of comma-separated values.
pub fn csv(results: &Results) -> String {
    csv::csv(results)
}

/// Writes everything there is to say about some results into a directory, which is made if need be:
/// `report.html`, `results.json`, `results.csv`, `charts/*.svg` and `logs/*.hlog`. Tells the files'
/// paths, the page first.
///
/// # Errors
/// When a file cannot be written; those before it are there.
pub fn write_all(results: &Results, directory: &Path) -> io::Result<Vec<PathBuf>> {
    let charts = directory.join("charts");
    let logs = directory.join("logs");
    fs::create_dir_all(&charts)?;
    fs::create_dir_all(&logs)?;
    // First what cannot be made again.
    let json = directory.join("results.json");
    results.write(&json)?;
    let page = directory.join("report.html");
    fs::write(&page, html(results))?;
    let table = directory.join("results.csv");
    fs::write(&table, csv(results))?;
    let mut written = vec![page, json, table];
    write_charts(all_charts(results), &charts, &mut written)?;
    let mut taken = BTreeSet::new();
    for experiment in &results.experiments {
        write_logs(experiment, &logs, &mut taken, &mut written)?;
    }
    Ok(written)
}

/// Writes [`markdown`] as `README.md` into a directory, which is made if need be, with its charts
/// in `charts/`. Tells the files' paths, the page first.
///
/// # Errors
/// When a file cannot be written.
pub fn write_markdown(results: &Results, directory: &Path) -> io::Result<Vec<PathBuf>> {
    let charts = directory.join("charts");
    fs::create_dir_all(&charts)?;
    let (text, used) = markdown::markdown(results);
    let page = directory.join("README.md");
    fs::write(&page, text)?;
    let mut written = vec![page];
    write_charts(used, &charts, &mut written)?;
    Ok(written)
}

fn all_charts(results: &Results) -> Vec<Chart> {
    let colours = Colours::of(results);
    let mut charts = Vec::new();
    for experiment in &results.experiments {
        let analysis = Analysis::of(experiment);
        let context = Context { analysis: &analysis, colours: &colours };
        charts.extend(sections(&context).into_iter().flat_map(|section| section.charts));
    }
    charts
}

fn write_charts(
    charts: Vec<Chart>,
    directory: &Path,
    written: &mut Vec<PathBuf>,
) -> io::Result<()> {
    let mut taken = BTreeSet::new();
    for chart in charts {
        let path = directory.join(format!("{}.svg", free_name(&chart.name, &mut taken)));
        fs::write(&path, chart.alone())?;
        written.push(path);
    }
    Ok(())
}

fn write_logs(
    experiment: &ExperimentResult,
    directory: &Path,
    taken: &mut BTreeSet<String>,
    written: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for run in &experiment.runs {
        let parameters: Vec<&str> = run.parameters.values().map(String::as_str).collect();
        let repetition = format!("run {}", run.repetition + 1);
        for load in &run.loads {
            let title = [
                &[experiment.name.as_str(), &run.target],
                &parameters[..],
                &[load.name.as_str(), &repetition],
            ]
            .concat();
            let path = directory.join(format!("{}.hlog", free_name(&slug(&title), taken)));
            fs::write(&path, hlog::hlog(&title.join(", "), &load.recording)?)?;
            written.push(path);
        }
    }
    Ok(())
}
