//! `dunlin cli`: a command line client with the options and the output of redis-cli.
//!
//! | file | what it answers |
//! |---|---|
//! | `options`, `usage` | what does the user want? |
//! | `print`, `interrupt` | how does it tell the user something, and how does the user stop it? |
//! | `connection` | how do bytes come and go? |
//! | `session` | what is remembered of a connection, and where does a cluster send a command? |
//! | `format`, `quote` | how does a reply look? |
//! | `command` | how is one command run? |
//! | `docs`, `hints`, `help` | what are the commands and their arguments? |
//! | `repl`, `line_editor`, `editor`, `history`, `terminal` | how are commands typed? |
//! | `eval`, `pipe` | how are scripts and many commands sent? |
//! | `scan`, `big_keys`, `key_stats`, `hot_keys`, `bytes` | which keys are there, and which stand out? |
//! | `stat`, `latency`, `monitor` | what does the server do just now? |
//! | `dump` | what does a replica get? |

mod big_keys;
mod bytes;
mod command;
mod connection;
mod docs;
mod dump;
mod editor;
mod eval;
mod format;
mod help;
mod hints;
mod history;
mod hot_keys;
mod interrupt;
mod key_stats;
mod latency;
mod line_editor;
mod monitor;
mod options;
mod pipe;
mod print;
mod quote;
mod repl;
mod scan;
mod session;
mod stat;
mod terminal;
mod usage;

use std::process::ExitCode;

use monitor::Filter;
use options::{Invocation, Mode, Options};
use print::{complain, output, say};
use session::{Failed, Session};
pub use usage::USAGE;

/// Carries out `dunlin cli ARGUMENTS`.
pub fn run(arguments: &[Vec<u8>]) -> ExitCode {
    let options = match options::parse(arguments) {
        Ok(Invocation::Help) => {
            output(USAGE.as_bytes());
            return ExitCode::SUCCESS;
        }
        Ok(Invocation::Version) => {
            say(&format!("dunlin cli {}", env!("CARGO_PKG_VERSION")));
            return ExitCode::SUCCESS;
        }
        Ok(Invocation::Run(options)) => *options,
        Err(problem) => {
            complain(&problem);
            return ExitCode::FAILURE;
        }
    };
    match carry_out(options) {
        Ok(code) => code,
        Err(Failed) => ExitCode::FAILURE,
    }
}

fn carry_out(mut options: Options) -> Result<ExitCode, Failed> {
    settle_password(&mut options)?;
    let is_long = !matches!(options.mode, Mode::Commands | Mode::Eval(_) | Mode::Pipe);
    let mut session = Session::new(options);
    if is_long {
        // What was found until then is shown when the mode is interrupted.
        interrupt::catch().map_err(|error| {
            complain(&format!("signals cannot be caught: {}", print::reason(&error)));
            Failed
        })?;
    }
    match session.options.mode.clone() {
        Mode::Commands if session.options.words.is_empty() => repl::run(&mut session)?,
        Mode::Commands => command::run(&mut session)?,
        Mode::Eval(file) => eval::run(&mut session, &file)?,
        Mode::Pipe => return pipe::run(&mut session),
        Mode::Scan => scan::run(&mut session)?,
        Mode::BigKeys | Mode::MemoryKeys => big_keys::run(&mut session)?,
        Mode::KeyStats => key_stats::run(&mut session)?,
        Mode::HotKeys => hot_keys::run(&mut session)?,
        Mode::Stat => stat::run(&mut session)?,
        Mode::Latency | Mode::LatencyHistory | Mode::LatencySpectrum => latency::run(&mut session)?,
        Mode::Dump { file, functions } => dump::run(&mut session, &file, functions)?,
        Mode::Replica => dump::follow(&mut session)?,
        Mode::Monitor => {
            let filter = Filter::new(&session.options.words);
            monitor::run(&mut session, &filter)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The variable with a password for those that name none.
const PASSWORD: &str = "REDISCLI_AUTH";

/// Takes the password from where it is, and warns of one in the command line.
fn settle_password(options: &mut Options) -> Result<(), Failed> {
    let address = &mut options.address;
    if options.asks_password {
        address.password = Some(terminal::password().ok_or(Failed)?);
    } else if address.password.is_none() {
        address.password = std::env::var(PASSWORD).ok();
    } else if options.warns_of_password {
        complain(
            "Warning: Using a password with '-a' or '-u' option on the command line interface may \
             not be safe.",
        );
    }
    Ok(())
}
