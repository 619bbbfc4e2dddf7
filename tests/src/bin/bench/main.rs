//! Measures the server beside Redis and Valkey on this machine, and prints how each figure compares
//! with the goal that the project has set for it.
//!
//! Throughput on a machine that also does other things is noise; the server's processor time per
//! operation repeats. So each load runs against both servers in turn, with the server and the load
//! generator on processors of their own, and the median of a few repetitions counts. It reports and
//! does not judge: the exit code tells only whether it could measure.

mod background;
mod durability;
mod growth;
mod http;
mod load;
mod memory;
mod pinning;
mod rivals;
mod saving;
mod scripts;
mod unpipelined;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: bench [--only TEXT] [--quick] [--reps N]

  --only TEXT   the rows whose name contains TEXT
  --quick       fewer operations, once: for a first look
  --reps N      repetitions of each load, of which the median counts (3)
";

/// What was asked for.
struct Options {
    only: String,
    quick: bool,
    repetitions: usize,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Options>> {
        let mut options = Options { only: String::new(), quick: false, repetitions: 0 };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--only" => options.only = words.next().context("--only needs a text")?,
                "--quick" => options.quick = true,
                "--reps" => {
                    let count = words.next().context("--reps needs a number")?;
                    options.repetitions = count.parse().context("--reps needs a number")?;
                }
                "--help" => return Ok(None),
                other => bail!("unknown option {other}\n\n{USAGE}"),
            }
        }
        if options.repetitions == 0 {
            options.repetitions = if options.quick { 1 } else { 3 };
        }
        Ok(Some(options))
    }

    /// Whether the row with this name should be measured.
    fn wants(&self, name: &str) -> bool {
        name.to_lowercase().contains(&self.only.to_lowercase())
    }

    /// A number of operations, fewer for a quick run.
    fn scaled(&self, count: usize) -> usize {
        if self.quick { count / 5 } else { count }
    }
}

/// One row: a figure of ours, one to compare it with, and what their ratio should not exceed.
struct Row {
    name: String,
    ours: f64,
    theirs: f64,
    bar: f64,
}

impl Row {
    fn print(&self) -> Result<()> {
        let ratio = self.ours / self.theirs;
        let verdict = if ratio <= self.bar { "" } else { "  above" };
        line(&format!(
            "{:28} {:>10.3} {:>10.3} {ratio:>8.2} {:>6.2}{verdict}",
            self.name, self.ours, self.theirs, self.bar
        ))
    }
}

fn heading(title: &str, ours: &str, theirs: &str) -> Result<()> {
    line(&format!("\n{title}\n{:28} {ours:>10} {theirs:>10} {:>8} {:>6}", "", "ratio", "bar"))
}

fn line(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// The one in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn run() -> Result<()> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        return line(USAGE);
    };
    load::small_values(&options)?;
    unpipelined::all_connections(&options)?;
    load::large_values(&options)?;
    load::two_workers(&options)?;
    scripts::beside_rivals(&options)?;
    scripts::on_two_workers(&options)?;
    http::reads(&options)?;
    http::views(&options)?;
    http::metrics(&options)?;
    memory::resident(&options)?;
    memory::within_a_limit(&options)?;
    growth::longest_request(&options)?;
    durability::every_second(&options)?;
    durability::always(&options)?;
    durability::loading(&options)?;
    saving::noticed(&options)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If even standard error is gone, nobody can be told.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
