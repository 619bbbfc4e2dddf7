//! `dunlin lab report` and `compare`: reports and comparisons of existing results.

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
    /// Results that `lab run` wrote.
    results: PathBuf,
    /// Where the report goes; by default beside the results.
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Writes a short page in Markdown with its charts there too, an answer per published question.
    #[arg(long, value_name = "DIRECTORY")]
    markdown: Option<PathBuf>,
}

/// Writes a page and the files that belong to it into a directory; returns the files, the page first.
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
    let results = match Results::read(&options.results) {
        // Written by hand, or by an earlier version, it may contain more than may be shown.
        Ok(mut results) => {
            redact::results(&mut results);
            results
        }
        Err(error) => return mistake(&error.to_string()),
    };
    let beside = options.results.parent().unwrap_or(Path::new("."));
    let directory = options.out.as_deref().unwrap_or(beside);
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
