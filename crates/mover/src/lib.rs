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

use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use check::Finding;
use lab::targets::Interrupt;
use options::{Options, USAGE};
use print::{say, wait_until_printed};
use server::{NAME, Server};
use steps::Failure;

/// The exit code after a failure: the old server leads on.
const FAILED: u8 = 1;
/// The exit code after a wrong option.
const MISTAKE: u8 = 2;
/// The exit code when something stands in the way.
const PREVENTED: u8 = 3;
/// The exit code when the new server leads, and a last step is missing.
const UNFINISHED: u8 = 4;

/// How often others of this tool are looked for again, and the pause in between.
const LOOKS_FOR_OTHERS: usize = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Carries out `dunlin move ARGUMENTS`.
pub fn run(arguments: &[String]) -> ExitCode {
    if arguments.iter().any(|word| word == "-h" || word == "--help") {
        say(USAGE.trim_end());
        wait_until_printed();
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(problem) => {
            complain(&format!("{problem}\n\n{USAGE}"));
            return ExitCode::from(MISTAKE);
        }
    };
    let ended = carry_out(&options);
    wait_until_printed();
    match ended {
        Ok(code) => code,
        Err(Failure::Unmoved(problem)) => {
            complain(&problem);
            ExitCode::from(FAILED)
        }
        Err(Failure::Unfinished(problem)) => {
            complain(&problem);
            ExitCode::from(UNFINISHED)
        }
    }
}

fn carry_out(options: &Options) -> Result<ExitCode, Failure> {
    let mut from = Server::open("the old server", &options.from)?;
    let mut to = Server::open("the new server", &options.to)?;
    say(&format!("from {}, {}", from.name(), from.product()?));
    say(&format!("to   {}, {}", to.name(), to.product()?));
    if let Some(other) = other_at_work(&mut from, &mut to, options) {
        say(&format!("STOP another 'dunlin move' is at work at these servers, from {other}"));
        say("Nothing was changed. If it is none any more, CLIENT KILL ADDR ends its connection.");
        return Ok(ExitCode::from(PREVENTED));
    }
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
        // An interrupt would leave a step out again.
        let _catches = interrupts()?;
        steps::finish(&mut from, &mut to, options, missing).map_err(Failure::Unfinished)?;
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
    steps::move_all(&mut from, &mut to, options, &interrupts()?)?;
    Ok(ExitCode::SUCCESS)
}

/// The address of another of this tool that is moving data from or to one of these servers.
fn other_at_work(from: &mut Server, to: &mut Server, options: &Options) -> Option<String> {
    // A name that no other process has, on whichever machine.
    let name = format!("{NAME}:{:016x}", RandomState::new().hash_one(std::process::id()));
    let own = (!options.check_only).then_some(name.as_str());
    let mut look = || [&mut *from, &mut *to].map(|server| server.others(own));
    let mut others = look();
    for _ in 0..LOOKS_FOR_OTHERS {
        if others.iter().all(Vec::is_empty) {
            break;
        }
        // One that has just ended may be seen for a while.
        sleep(BETWEEN_LOOKS);
        others = look();
    }
    others.into_iter().flatten().next()
}

/// From now on an interrupt ends the tool when it has put everything back.
fn interrupts() -> Result<Interrupt, String> {
    Interrupt::by_signals().map_err(|error| error.to_string())
}

fn agrees(what: &str) -> bool {
    say(&format!("{what} Go on? [y/N]"));
    wait_until_printed();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn complain(text: &str) {
    // If this fails, nobody can be told.
    let _ = writeln!(io::stderr(), "dunlin: {text}");
}
