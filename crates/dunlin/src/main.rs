//! `dunlin`: one binary, one subcommand per purpose.

mod allocator;
mod certificates;
mod check;
mod print;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use print::print;
use server::boot::{self, Start};

/// The commands, for hints after a typing error.
const COMMANDS: [&str; 7] = ["serve", "check", "move", "bench", "lab", "tls", "help"];

const USAGE: &str = "\
An in-memory data-structure server that speaks the Redis protocol and uses every core.

Usage: dunlin [serve] [CONFIG-FILE] [OPTIONS] [-]
       dunlin check FILE | DIRECTORY [--fix] [--truncate-to-timestamp SECONDS]
       dunlin check CONFIG-FILE
       dunlin move --from URL [--to URL] [OPTIONS]
       dunlin bench [OPTIONS] [COMMAND ARGS...]
       dunlin lab run EXPERIMENT... | list | show NAME | report | compare | agent | limit
       dunlin tls dev DIRECTORY [NAME...]
       dunlin --help | --version

Commands:
  serve    Runs a server; so does dunlin alone
  check    Shows what data files contain and where they are damaged, or what is wrong with a
           configuration file
  move     Moves all data of a running Redis, Valkey or Dunlin to another one, without downtime
  bench    Measures one server, with redis-benchmark's options and more
  lab      Measures servers side by side, breaks them on purpose, and writes a report
  tls dev  Makes certificates for trials: an authority, a server (for localhost and the names given),
           and a client

CONFIG-FILE and OPTIONS are those of redis-server: each directive of a configuration
file is an option as well, and - reads directives from standard input. `dunlin serve --help`
lists them all.

  dunlin                                  on 127.0.0.1:6379
  dunlin --port 7000
  dunlin serve /etc/dunlin.conf --port 7000
  echo 'maxmemory 128mb' | dunlin serve -
";

fn main() -> ExitCode {
    let mut words = boot::words(std::env::args_os()).into_iter();
    let program = words.next().unwrap_or_else(|| b"dunlin".to_vec());
    let mut arguments: Vec<Vec<u8>> = words.collect();
    let names_command = arguments.first().is_some_and(|first| !begins_service(first));
    let command = names_command.then(|| arguments.remove(0));
    match (command.as_deref(), &arguments[..]) {
        (Some(b"-h" | b"--help" | b"help"), _) => print(USAGE),
        (Some(b"-v" | b"-V" | b"--version"), _) => print(&version()),
        (Some(b"serve"), [only]) if matches!(&only[..], b"-h" | b"--help") => print(&options()),
        (None | Some(b"serve"), [only]) if matches!(&only[..], b"-v" | b"--version") => {
            print(&version())
        }
        (None | Some(b"serve"), _) => {
            match boot::serve(Start { program, arguments, ..Start::default() }) {
                Ok(()) => ExitCode::SUCCESS,
                Err(boot::Failed) => ExitCode::FAILURE,
            }
        }
        // For `make docs`, not for users: the page is in the repository.
        (Some(b"docs"), [page]) if page == b"compatibility" => {
            print(&commands::compatibility::page(commands::registry()))
        }
        (Some(b"check"), arguments) => check::run(arguments),
        (Some(b"move"), arguments) => mover::run(&texts(arguments)),
        (Some(b"bench"), arguments) => lab::bench::run(&texts(arguments)),
        (Some(b"lab"), arguments) => lab::command::run(&texts(arguments)),
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

/// What `serve --help` prints: the options that do something, with their defaults.
fn options() -> String {
    let mut text = format!("{USAGE}\nOptions of a server, with their defaults:\n");
    for directive in config::directives() {
        if directive.is_hidden() || directive.effect() != config::Effect::Full {
            continue;
        }
        let default = directive.default_value();
        let default = match &default[..] {
            b"" => "\"\"".into(),
            default => String::from_utf8_lossy(default),
        };
        text.push_str(&format!("\n  --{} {default}", directive.name()));
        let mut width = usize::MAX;
        for word in directive.doc().split_whitespace() {
            let fits = width.saturating_add(word.len()) < 90;
            text.push_str(if fits { " " } else { "\n      " });
            text.push_str(word);
            width = if fits { width + 1 + word.len() } else { 6 + word.len() };
        }
        text.push('\n');
    }
    text
}

/// Arguments as text; bytes that are not UTF-8 become replacement characters.
fn texts(arguments: &[Vec<u8>]) -> Vec<String> {
    arguments.iter().map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

fn version() -> String {
    format!("Dunlin server v={} bits=64\n", env!("CARGO_PKG_VERSION"))
}
