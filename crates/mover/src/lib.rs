//! `dunlin move`: moves all data from one server to another while clients go on.
//!
//! | file | what it answers |
//! |---|---|
//! | `options` | what does the user want? |
//! | `print` | how does it tell the user something? |
//! | `server` | how does it talk to a server? |
//! | `check` | what will not move, or not work afterwards? |
//! | `compare` | do both servers have the same data? |
//! | `values` | does a key have the same value at both? |
//! | `steps` | how does it move the data, and how does it put everything back? |
//! | `resume` | what is missing of a move that has ended after the promotion? |

mod check;
mod compare;
mod options;
mod print;
mod resume;
mod server;
mod steps;
mod values;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use check::Finding;
use lab::targets::Interrupt;
use options::{Options, USAGE};
use print::say;
use server::Server;

/// The exit code after a failure: everything is as it was before.
const FAILED: u8 = 1;
/// The exit code after a wrong option.
const MISTAKE: u8 = 2;
/// The exit code when something stands in the way.
const PREVENTED: u8 = 3;

/// Carries out `dunlin move ARGUMENTS`.
pub fn run(arguments: &[String]) -> ExitCode {
    if arguments.iter().any(|word| word == "-h" || word == "--help") {
        say(USAGE.trim_end());
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(problem) => {
            complain(&format!("{problem}\n\n{USAGE}"));
            return ExitCode::from(MISTAKE);
        }
    };
    match carry_out(&options) {
        Ok(code) => code,
        Err(problem) => {
            complain(&problem);
            ExitCode::from(FAILED)
        }
    }
}

fn carry_out(options: &Options) -> Result<ExitCode, String> {
    let interrupt = Interrupt::by_signals().map_err(|error| error.to_string())?;
    let mut from = Server::open("the old server", &options.from)?;
    let mut to = Server::open("the new server", &options.to)?;
    say(&format!("from {}, {}", from.name(), from.product()?));
    say(&format!("to   {}, {}", to.name(), to.product()?));
    if let Some(missing) = resume::missing(&mut from, &mut to, options)? {
        say("the data has moved already: a move has ended after the promotion");
        if options.check_only {
            say("Nothing was changed. Without --check the steps are taken that are missing.");
            return Ok(ExitCode::SUCCESS);
        }
        let turns = missing == resume::Missing::Turn;
        if turns && !options.yes && !agrees("The old server becomes a replica of the new one now.")
        {
            say("Nothing was changed.");
            return Ok(ExitCode::from(FAILED));
        }
        steps::finish(&mut from, &to, options, missing)?;
        return Ok(ExitCode::SUCCESS);
    }
    let findings = check::all(&mut from, &mut to, options)?;
    for Finding { prevents, text } in &findings {
        say(&format!("{} {text}", if *prevents { "STOP" } else { "note" }));
    }
    if findings.iter().any(|finding| finding.prevents) {
        say("Nothing was changed. What says STOP has to be settled first.");
        return Ok(ExitCode::from(PREVENTED));
    }
    if options.check_only {
        say("Nothing was changed. Nothing stands in the way.");
        return Ok(ExitCode::SUCCESS);
    }
    let loses = "The new server becomes a replica now, and loses the data that it has.";
    if !options.yes && !agrees(loses) {
        say("Nothing was changed.");
        return Ok(ExitCode::from(FAILED));
    }
    steps::move_all(&mut from, &mut to, options, &interrupt)?;
    Ok(ExitCode::SUCCESS)
}

fn agrees(what: &str) -> bool {
    say(&format!("{what} Go on? [y/N]"));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn complain(text: &str) {
    // If this fails, nobody can be told.
    let _ = writeln!(io::stderr(), "dunlin: {text}");
}
