//! `dunlin lab`: runs experiments, and what belongs to them.

mod agent;
mod experiments;
mod files;
mod limit;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use experiments::choose;

/// The exit code for a file or an option that is wrong: nothing was started.
const MISTAKE: u8 = 2;

/// The lab: measures servers side by side, breaks them on purpose, and writes a report.
#[derive(Debug, Parser)]
#[command(name = "dunlin lab", bin_name = "dunlin lab", disable_version_flag = true)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs experiments and writes a report.
    Run(RunOptions),
    /// Waits for loads that another machine spreads over several.
    Agent(agent::AgentOptions),
    /// Answers all requests alike: the least that a server can do.
    Limit(limit::LimitOptions),
    /// Makes the report of results again.
    Report(files::ReportOptions),
    /// Says what changed between two results beyond noise; exits with 1 when anything is worse.
    Compare(files::CompareOptions),
    /// Lists the bundled experiments, and which servers are on this machine.
    List,
    /// Prints a bundled experiment's file, to copy and change.
    Show {
        /// Its name.
        name: String,
    },
}

/// What is run, and how.
#[derive(Debug, Args)]
struct RunOptions {
    /// Names of bundled experiments, paths of files, or `all`.
    #[arg(required = true)]
    experiments: Vec<String>,
    /// The size for publication: longer runs, more of them.
    #[arg(long)]
    full: bool,
    /// Where results and report go; by default a new directory here.
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Where servers keep their data while they run, and with it the file system whose fsync is
    /// measured; by default TMPDIR, or /tmp.
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Only these targets.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    targets: Vec<String>,
    /// How often each point is measured.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: Option<u32>,
    /// Replaces a value of the file, or the values of a swept parameter: connections=1,50.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Machines that send the load in place of this one, each with `dunlin lab agent`.
    #[arg(long, value_delimiter = ',', value_name = "ADDRESSES")]
    agents: Vec<String>,
    /// The file with the agents' secret; without it, DUNLIN_LAB_TOKEN.
    #[arg(long, value_name = "FILE", requires = "agents")]
    token_file: Option<PathBuf>,
}

/// Carries out `dunlin lab ARGUMENTS`.
pub fn run(arguments: &[String]) -> ExitCode {
    let words = std::iter::once("dunlin lab").chain(arguments.iter().map(String::as_str));
    let options = match Options::try_parse_from(words) {
        Ok(options) => options,
        Err(error) => {
            // Nobody could be told that nobody can be told.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(MISTAKE));
        }
    };
    crate::load::descriptors::raise_limit();
    match options.command {
        Command::Run(options) => experiments::run(&options),
        Command::Agent(options) => agent::run(&options),
        Command::Limit(options) => limit::run(&options),
        Command::Report(options) => files::report(&options),
        Command::Compare(options) => files::compare(&options),
        Command::List => print(&experiments::list()),
        Command::Show { name } => match choose::bundled(&name) {
            Ok(text) => print(text),
            Err(message) => mistake(&message),
        },
    }
}

/// Prints to standard output; a reader that has gone is no mistake of ours.
fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Says what is wrong with what was asked for.
fn mistake(message: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "dunlin lab: {message}");
    ExitCode::from(MISTAKE)
}
