//! `dunlin`: one binary, one subcommand per purpose.

mod allocator;
mod certificates;
mod check;
mod container;
mod environment;
mod health;
mod pages;
mod print;
mod usage;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use print::print;
use server::boot::{self, Start};
use usage::{COMMANDS, USAGE};

fn main() -> ExitCode {
    let mut words = boot::words(std::env::args_os()).into_iter();
    let program = words.next().unwrap_or_else(|| b"dunlin".to_vec());
    let arguments: Vec<Vec<u8>> = words.collect();
    match arguments.split_first() {
        Some((first, rest)) if first == b"container" => match rest {
            [only] if only == b"--help" => print(container::USAGE),
            rest => run_in_container(program, container::without_server(rest.to_vec())),
        },
        _ => run(program, arguments),
    }
}

/// An image has one entry point for the server and for everything else.
fn run_in_container(program: Vec<u8>, arguments: Vec<Vec<u8>>) -> ExitCode {
    let is_own = |name: &&str| *name != "serve" && *name != "container";
    let mut others = COMMANDS.iter().filter(|name| is_own(name));
    let first = arguments.first();
    match first {
        Some(first) if others.any(|name| name.as_bytes() == first) => run(program, arguments),
        Some(first) if first == b"serve" => container::run(program, arguments[1..].to_vec()),
        Some(first) if matches!(&first[..], b"--version" | b"-v") => run(program, arguments),
        _ => container::run(program, arguments),
    }
}

fn run(program: Vec<u8>, mut arguments: Vec<Vec<u8>>) -> ExitCode {
    let names_command = arguments.first().is_some_and(|first| !begins_service(first));
    let command = names_command.then(|| arguments.remove(0));
    match (command.as_deref(), &arguments[..]) {
        (Some(b"-h" | b"--help" | b"help"), _) => print(USAGE),
        (Some(b"-v" | b"-V" | b"--version"), _) => print(&version()),
        (Some(b"serve"), [only]) if matches!(&only[..], b"-h" | b"--help") => {
            print(&pages::options())
        }
        (None | Some(b"serve"), [only]) if matches!(&only[..], b"-v" | b"--version") => {
            print(&version())
        }
        (None | Some(b"serve"), _) => {
            match boot::serve(Start { program, arguments, ..Start::default() }) {
                Ok(()) => ExitCode::SUCCESS,
                Err(boot::Failed) => ExitCode::FAILURE,
            }
        }
        // For `make docs` and for packages, not for users: these are where users find them.
        (Some(b"docs"), [page]) if page == b"compatibility" => {
            print(&commands::compatibility::page(commands::registry()))
        }
        (Some(b"docs"), [page]) if let Some(text) = pages::page(page) => print(&text),
        (Some(b"check"), arguments) => check::run(arguments),
        (Some(b"cli"), arguments) => cli::run(arguments),
        (Some(b"top"), arguments) => top::run(&texts(arguments)),
        (Some(b"cluster"), arguments) => operator::run(&texts(arguments)),
        (Some(b"move"), arguments) => mover::run(&texts(arguments)),
        (Some(b"backup"), arguments) => backup::run_backup(&texts(arguments)),
        (Some(b"restore"), arguments) => backup::run_restore(&texts(arguments)),
        (Some(b"bench"), arguments) => lab::bench::run(&texts(arguments)),
        (Some(b"lab"), arguments) => lab::command::run(&texts(arguments)),
        (Some(b"health"), arguments) => health::run(&texts(arguments)),
        (Some(b"tls"), arguments) => certificates::run(&texts(arguments)),
        (Some(unknown), _) => {
            let unknown = String::from_utf8_lossy(unknown);
            let meant = config::nearest(&unknown, COMMANDS.into_iter());
            let hint = meant.map(|meant| format!("; did you mean '{meant}'?")).unwrap_or_default();
            // If this fails, nobody can be told.
            let _ =
                write!(io::stderr(), "dunlin: there is no command '{unknown}'{hint}\n\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

/// Whether a server is wanted although the first word does not say so, as with `redis-server`: it
/// is an option, or a file.
fn begins_service(first: &[u8]) -> bool {
    let asks_about_itself = matches!(first, b"--help" | b"--version");
    let is_file = || !COMMANDS.iter().any(|name| name.as_bytes() == first) && names_file(first);
    first == b"-" || (first.starts_with(b"--") && !asks_about_itself) || is_file()
}

/// Whether this looks like a path, or is the name of a file.
fn names_file(word: &[u8]) -> bool {
    word.contains(&b'/') || word.ends_with(b".conf") || Path::new(OsStr::from_bytes(word)).is_file()
}

/// Arguments as text; bytes that are not UTF-8 become replacement characters.
fn texts(arguments: &[Vec<u8>]) -> Vec<String> {
    arguments.iter().map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

/// As `redis-server --version` says it, where a build has no identity beyond its commit.
fn version() -> String {
    let commit = match env!("DUNLIN_COMMIT") {
        "" => String::new(),
        commit => format!(" commit={commit}"),
    };
    format!("Dunlin server v={}{commit} bits=64\n", env!("CARGO_PKG_VERSION"))
}
