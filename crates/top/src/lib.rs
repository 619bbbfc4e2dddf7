//! `dunlin top`: what a server does just now, in a terminal or for a script.
//!
//! | file | what it answers |
//! |---|---|
//! | `options`, `view` | what does the user want to see? |
//! | `source` | how is the server asked? |
//! | `look` | what does it say? |
//! | `table`, `numbers` | what is in a view? |
//! | `screen` | how does it look in a terminal? |
//! | `report` | how does it look without one? |
//! | `live` | which keys are pressed, and when is the server asked again? |

mod live;
mod look;
mod numbers;
mod options;
mod report;
mod screen;
mod source;
mod table;
mod view;

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread::sleep;

use look::Look;
use options::Options;
pub use options::USAGE;
use screen::{Chosen, Drawn};
use source::Source;

/// The exit code after a wrong option.
const MISTAKE: u8 = 2;

/// Carries out `dunlin top ARGUMENTS`.
pub fn run(arguments: &[String]) -> ExitCode {
    let options = match options::parse(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => {
            return match print(USAGE) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        Err(problem) => {
            complain(&format!("{problem}\n\ndunlin top --help lists the options."));
            return ExitCode::from(MISTAKE);
        }
    };
    let mut source = match options.http.clone() {
        Some(http) => Source::http(http),
        None => Source::resp(options.address.clone(), options.finds_http),
    };
    let name = source.name();
    let ended = match options.once || options.json {
        true => report(&mut source, &options),
        false => live::run(&mut source, &options),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{name}: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints looks. Before the first there is one that it is compared with.
fn report(source: &mut Source, options: &Options) -> io::Result<()> {
    let mut before = Look::take(source, false)?;
    for _ in 0..options.count {
        sleep(options.interval);
        let now = Look::take(source, true)?;
        let server = source.name();
        if options.json {
            print(&format!("{}\n", report::json(&server, &now, Some(&before))))?;
        } else {
            let mut table = table::table(options.view, &now, Some(&before));
            if table.order < table.columns.len() {
                table.sort(table.order, false);
            }
            let drawn = Drawn {
                server: &server,
                now: &now,
                before: Some(&before),
                table: &table,
                rates: &[],
                trouble: None,
            };
            let chosen = Chosen::new(options.view, options.interval.as_millis() as u64, false);
            print(&report::text(&drawn, &chosen))?;
        }
        before = now;
    }
    Ok(())
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn complain(text: &str) {
    // If this fails, nobody can be told.
    let _ = writeln!(io::stderr(), "dunlin: {text}");
}
