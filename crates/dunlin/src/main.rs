//! `dunlin`: one binary, one subcommand per purpose.

mod allocator;
mod check;
mod print;

use std::io::{self, Write};
use std::process::ExitCode;

use print::print;
use server::boot;

const USAGE: &str = "\
An in-memory data-structure server that speaks the Redis protocol and uses every core.

Usage: dunlin [serve [CONFIG-FILE] [OPTIONS] [-]]
       dunlin check FILE | DIRECTORY [--fix] [--truncate-to-timestamp SECONDS]
       dunlin bench [OPTIONS] [COMMAND ARGS...]
       dunlin lab run EXPERIMENT... | list | show NAME | report | compare | agent | limit
       dunlin --help | --version

Commands:
  serve    Runs a server; so does dunlin alone
  check    Shows what data files contain and where they are damaged
  bench    Measures one server, with redis-benchmark's options and more
  lab      Measures servers side by side, breaks them on purpose, and writes a report

CONFIG-FILE and OPTIONS are those of redis-server: each directive of a configuration
file is an option as well, and - reads directives from standard input.

  dunlin serve                            on 127.0.0.1:6379
  dunlin serve /etc/dunlin.conf --port 7000
  echo 'maxmemory 128mb' | dunlin serve -
";

fn main() -> ExitCode {
    let mut words = boot::words(std::env::args_os()).into_iter();
    let program = words.next().unwrap_or_else(|| b"dunlin".to_vec());
    let command = words.next();
    let arguments: Vec<Vec<u8>> = words.collect();
    match (command.as_deref(), &arguments[..]) {
        (Some(b"-h" | b"--help" | b"help"), _) => print(USAGE),
        (Some(b"-v" | b"-V" | b"--version"), _) => print(&version()),
        (None | Some(b"serve"), [only]) if matches!(&only[..], b"-h" | b"--help") => print(USAGE),
        (None | Some(b"serve"), [only]) if matches!(&only[..], b"-v" | b"--version") => {
            print(&version())
        }
        (None | Some(b"serve"), _) => match boot::serve(&program, &arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(boot::Failed) => ExitCode::FAILURE,
        },
        // For `make docs`, not for users: the page is in the repository.
        (Some(b"docs"), [page]) if page == b"compatibility" => {
            print(&engine::compatibility::page(engine::commands::registry()))
        }
        (Some(b"check"), arguments) => check::run(arguments),
        (Some(b"bench"), arguments) => lab::bench::run(&texts(arguments)),
        (Some(b"lab"), arguments) => lab::command::run(&texts(arguments)),
        (Some(unknown), _) => {
            let unknown = String::from_utf8_lossy(unknown);
            // If this fails, nobody can be told.
            let _ = write!(io::stderr(), "dunlin: there is no command '{unknown}'\n\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

/// Arguments as text; bytes that are not UTF-8 become replacement characters.
fn texts(arguments: &[Vec<u8>]) -> Vec<String> {
    arguments.iter().map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

fn version() -> String {
    format!("Dunlin server v={} bits=64\n", env!("CARGO_PKG_VERSION"))
}
