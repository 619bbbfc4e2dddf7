//! `dunlin lab report` and `compare`: reports and comparisons of existing results.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::options::{mistake, print};
use crate::results::Results;
use crate::{compare, redact, report};

/// The exit code when something is worse than it was.
const WORSE: u8 = 1;

/// Which results, and where the report goes.
#[derive(Debug, Args)]
pub(super) struct ReportOptions {
    /// Results that `lab run` wrote. Of several files, an experiment counts as the last of them has
    /// it.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Where the report goes; by default beside the results. Several need one.
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Writes a short page in Markdown with its charts there too, an answer per published question.
    #[arg(long, value_name = "DIRECTORY")]
    markdown: Option<PathBuf>,
}

/// Writes a page and the files that belong to it into a directory; returns the files, the page
/// first.
type Writer = fn(&Results, &Path) -> io::Result<Vec<PathBuf>>;

/// Which results are compared.
#[derive(Debug, Args)]
pub(super) struct CompareOptions {
    /// Earlier results that `lab run` wrote.
    before: PathBuf,
    /// Later results that `lab run` wrote.
    after: PathBuf,
}

/// Makes the report of results again.
pub(super) fn report(options: &ReportOptions) -> ExitCode {
    let results = match joined(&options.results) {
        // Written by hand, or by an earlier version, it may contain more than may be shown.
        Ok(mut results) => {
            redact::results(&mut results);
            results
        }
        Err(message) => return mistake(&message),
    };
    // A report lies beside its results, and those of one file are not to be written over.
    let beside = match &options.results[..] {
        [only] => Some(only.parent().unwrap_or(Path::new("."))),
        _ => None,
    };
    let Some(directory) = options.out.as_deref().or(beside) else {
        return mistake("several results need --out, where the report of all goes");
    };
    if let Err(message) = loses_nothing(directory, &results) {
        return mistake(&message);
    }
    let mut pages = String::new();
    let all = [
        (Some(directory), report::write_all as Writer),
        (options.markdown.as_deref(), report::write_markdown),
    ];
    for (directory, write) in all {
        let Some(directory) = directory else { continue };
        match write(&results, directory) {
            Ok(files) => {
                pages.extend(files.first().map(|page| format!("{}\n", page.display())));
            }
            Err(error) => {
                let _ = writeln!(io::stderr(), "dunlin lab: {}: {error}", directory.display());
                return ExitCode::FAILURE;
            }
        }
    }
    print(&pages)
}

/// Whether a directory may be written to: if it has results, then of these runs only.
fn loses_nothing(directory: &Path, results: &Results) -> Result<(), String> {
    let present = directory.join("results.json");
    if !present.exists() {
        return Ok(());
    }
    let starts = |results: &Results| -> BTreeSet<u64> {
        let runs = results.experiments.iter().flat_map(|experiment| &experiment.runs);
        runs.map(|run| run.started_unix_ms).collect()
    };
    let before = Results::read(&present).map_err(|error| error.to_string())?;
    if starts(&before).is_subset(&starts(results)) {
        return Ok(());
    }
    Err(format!("{}: the results of other runs are there", directory.display()))
}

/// All experiments of some files, each as the last file has it.
fn joined(files: &[PathBuf]) -> Result<Results, String> {
    let mut all: Option<Results> = None;
    for file in files {
        let next = Results::read(file).map_err(|error| error.to_string())?;
        match &mut all {
            None => all = Some(next),
            Some(all) => {
                all.join(next).map_err(|error| format!("{}: {error}", file.display()))?;
            }
        }
    }
    all.ok_or_else(|| "there are no results".to_owned())
}

/// Reports what changed beyond noise; the exit code says whether anything is worse.
pub(super) fn compare(options: &CompareOptions) -> ExitCode {
    let read = |path: &Path| Results::read(path).map_err(|error| error.to_string());
    match read(&options.before).and_then(|before| Ok((before, read(&options.after)?))) {
        Err(message) => mistake(&message),
        Ok((mut before, mut after)) => {
            [&mut before, &mut after].into_iter().for_each(redact::results);
            let comparison = compare::compare(&before, &after);
            let printed = print(&comparison.to_string());
            if comparison.is_regression() { ExitCode::from(WORSE) } else { printed }
        }
    }
}
