//! `dunlin move`: moves all data from one server to another while clients go on.
//!
//! | file | what it answers |
//! |---|---|
//! | `options` | what does the user want? |
//! | `print` | how does it tell the user something? |
//! | `server` | how does it talk to a server? |
//! | `findings` | what has a look found? |
//! | `check` | what will not move, or not work afterwards? |
//! | `rights` | may it, and may each server, do what is to be done? |
//! | `clock` | how long ago was something? |
//! | `versions` | does a server load what another one writes? |
//! | `copy` | is the new server up to date? |
//! | `compare` | do both servers have the same data? |
//! | `values` | does a key have the same value at both? |
//! | `steps` | how does it move the data? |
//! | `failure` | how far had it come when it failed? |
//! | `undo` | how does it put everything back after a failure? |
//! | `last_steps` | what becomes of the old server after the promotion? |
//! | `resume` | what is missing of a move that has ended after the promotion? |
//!
//! What a look has shown may be otherwise when somebody has thought about it. So the tool looks
//! anew after each question, and before a step that nobody can take back it first holds the writes
//! that could change what it sees, then looks, and then acts.

mod check;
mod clock;
mod compare;
mod copy;
mod failure;
mod findings;
mod last_steps;
mod options;
mod print;
mod resume;
mod rights;
mod server;
mod steps;
mod undo;
mod values;
mod versions;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use failure::Failure;
use findings::{Finding, Findings};
use lab::targets::Interrupt;
use options::{After, Options, USAGE};
use print::{say, wait_until_printed};
use resume::Missing;
use server::{NAME, Pauses, Server, Writes};

/// The exit code after a failure: the new server does not lead.
const FAILED: u8 = 1;
/// The exit code after a wrong option.
const MISTAKE: u8 = 2;
/// The exit code when something stands in the way.
const PREVENTED: u8 = 3;
/// The exit code when a last step is missing: the new server leads, or may lead, or the old one
/// holds its writes.
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

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// Nothing, since something stands in the way.
    Nothing,
    /// What an earlier move has left out.
    Finish(Missing),
    Move,
}

/// What a question is about: the data of these servers, and not of others that have taken their
/// places, or have lost it when they were started anew.
struct Subject {
    /// What the servers are called while they run.
    runs: [Option<String>; 2],
    /// The old server has keys.
    has_data: bool,
    /// The move begins with the end of a pause that the old server has.
    ends_pause: bool,
    /// What tells that pause from others.
    pauses: Pauses,
}

impl Subject {
    fn of(
        from: &mut Server,
        to: &mut Server,
        pauses: Pauses,
        findings: &[Finding],
    ) -> Result<Subject, String> {
        let ends_pause = findings.iter().any(|finding| finding.ends_pause);
        let has_data = !from.sizes()?.is_empty();
        let runs = [from.info("server")?.remove("run_id"), to.info("server")?.remove("run_id")];
        Ok(Subject { runs, has_data, ends_pause, pauses })
    }

    /// Whether the question has said all of what is so now. `--unpause` has said it of any pause.
    fn is_still_so(&self, now: &Subject, options: &Options) -> bool {
        let is_same_pause = self.ends_pause && self.pauses == now.pauses;
        let has_told_of_pause = is_same_pause || options.unpause;
        self.runs == now.runs
            && (now.has_data || !self.has_data)
            && (has_told_of_pause || !now.ends_pause)
    }
}

impl Plan {
    fn unless_prevented(self, findings: &[Finding]) -> Plan {
        if findings.iter().any(|finding| finding.prevents) { Plan::Nothing } else { self }
    }
}

fn carry_out(options: &Options) -> Result<ExitCode, Failure> {
    let mut from = Server::open("the old server", &options.from)?;
    let mut to = Server::open("the new server", &options.to)?;
    say(&format!("from {}, {}", from.name(), from.product()?));
    say(&format!("to   {}, {}", to.name(), to.product()?));
    // A name that no other process has, on whichever machine.
    let name = format!("{NAME}:{:016x}", RandomState::new().hash_one(std::process::id()));
    let name = (!options.check_only).then_some(&*name);
    let pauses = from.pauses()?;
    let (plan, findings) = look(&mut from, &mut to, options, name)?;
    let subject = Subject::of(&mut from, &mut to, pauses, &findings)?;
    tell(&findings);
    let question = match plan {
        Plan::Nothing => {
            say("Nothing was changed. What says STOP has to be settled first.");
            return Ok(ExitCode::from(PREVENTED));
        }
        Plan::Finish(missing) => {
            say("the data has moved already: a move has ended after the promotion");
            Some(match (missing, options.after) {
                (Missing::Turn, After::Replica) => {
                    "The old server becomes a replica of the new one now."
                }
                (Missing::Turn, After::Paused) => "The old server stays paused for an hour more.",
                (Missing::Unpause, After::Paused) if !options.unpause => {
                    "The old server, a replica already, refuses writes from now on. If it holds \
                     them, that goes on."
                }
                (Missing::Unpause, _) => {
                    "The old server, a replica already, refuses writes and holds none from now on."
                }
            })
        }
        Plan::Move => Some("The new server becomes a replica now, and loses the data that it has."),
    };
    if options.check_only {
        say(match plan {
            Plan::Finish(_) => {
                "Nothing was changed. Without --check the steps are taken that are missing."
            }
            _ => "Nothing was changed. Nothing stands in the way.",
        });
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(question) = question.filter(|_| !options.yes) {
        if !agrees(question) {
            say("Nothing was changed.");
            return Ok(ExitCode::from(FAILED));
        }
        // Whoever answers may have thought for an hour.
        from.renew()?;
        to.renew()?;
        let (plan_now, findings) = look(&mut from, &mut to, options, name)?;
        let pauses = from.pauses()?;
        let subject_now = Subject::of(&mut from, &mut to, pauses, &findings)?;
        if plan_now != plan || !subject.is_still_so(&subject_now, options) {
            tell(&findings);
            say("Nothing was changed. The servers are not as they were before the question.");
            return Ok(ExitCode::from(PREVENTED));
        }
    }
    // An interrupt would leave a step out.
    let interrupt = interrupts()?;
    match plan {
        Plan::Finish(missing) => {
            last_steps::finish(&mut from, &mut to, options, missing).map_err(Failure::Unfinished)?
        }
        _ => {
            let agreed = (subject.ends_pause && !options.yes).then_some(subject.pauses);
            steps::move_all(&mut from, &mut to, options, agreed, &interrupt)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be done as the servers are now, and what the user should know of that.
fn look(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    name: Option<&str>,
) -> Result<(Plan, Vec<Finding>), String> {
    if let Some(problem) = other_at_work(from, to, name) {
        return Ok((Plan::Nothing, vec![Finding::stop(problem)]));
    }
    if let Some(missing) = resume::missing(from, to, options)? {
        if matches!(to.writes()?, Writes::Waiting) {
            let problem = "the data has moved to the new server, and that one holds writes, as a \
                           move from it to another one leaves them, or somebody else: CLIENT \
                           UNPAUSE there, if no other one leads";
            return Ok((Plan::Nothing, vec![Finding::stop(problem)]));
        }
        let mut found = Findings::default();
        if missing == Missing::Turn && options.after == After::Replica {
            check::address(options, "old", &mut found);
        }
        return Ok((Plan::Finish(missing).unless_prevented(&found.0), found.0));
    }
    let findings = check::all(from, to, options)?;
    Ok((Plan::Move.unless_prevented(&findings), findings))
}

fn tell(findings: &[Finding]) {
    for Finding { prevents, text, .. } in findings {
        say(&format!("{} {text}", if *prevents { "STOP" } else { "note" }));
    }
}

/// Why others of this tool are in the way: one is moving data from or to one of these servers, or
/// nobody knows that. They see this one by its name, if it has one, from now on.
fn other_at_work(from: &mut Server, to: &mut Server, name: Option<&str>) -> Option<String> {
    let mut look = || -> Result<Option<String>, String> {
        if let Some(name) = name {
            from.take_name(name)?;
            to.take_name(name)?;
        }
        Ok(from.others()?.into_iter().chain(to.others()?).next())
    };
    let mut other = look();
    for _ in 0..LOOKS_FOR_OTHERS {
        if !matches!(other, Ok(Some(_))) {
            break;
        }
        // One that has just ended may be seen for a while.
        sleep(BETWEEN_LOOKS);
        other = look();
    }
    match other {
        Ok(other) => other.map(|address| {
            format!(
                "another 'dunlin move' is at work at these servers, from {address}: if it is none \
                 any more, CLIENT KILL ADDR ends its connection"
            )
        }),
        // The check says so of one that only looks, and is in nobody's way.
        Err(problem) => {
            name.map(|_| format!("{problem}: other moves and late requests would not be seen"))
        }
    }
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
