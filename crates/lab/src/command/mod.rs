//! `dunlin lab`: runs experiments and works with their results.

mod agent;
mod experiments;
mod files;
mod limit;
mod options;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use experiments::choose;
use options::{MISTAKE, RunOptions, mistake, print};

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
    Run(Box<RunOptions>),
    /// Waits for loads that another machine spreads over several.
    Agent(agent::AgentOptions),
    /// Answers all requests alike: the least that a server can do.
    Limit(limit::LimitOptions),
    /// Makes the report of results again.
    Report(files::ReportOptions),
    /// Shows what changed between two results beyond noise; exits with 1 when anything is worse.
    Compare(files::CompareOptions),
    /// Lists the bundled experiments, and which servers are on this machine.
    List,
    /// Prints a bundled experiment's file, to copy and change.
    Show {
        /// Its name.
        name: String,
    },
}

/// Carries out `dunlin lab ARGUMENTS`.
pub fn run(arguments: &[String]) -> ExitCode {
    let words = std::iter::once("dunlin lab").chain(arguments.iter().map(String::as_str));
    let options = match Options::try_parse_from(words) {
        Ok(options) => options,
        Err(error) => {
            // If this fails, nobody can be told.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(MISTAKE));
        }
    };
    crate::load::descriptors::raise_limit();
    match options.command {
        Command::Run(options) => experiments::run_lab(&options),
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
