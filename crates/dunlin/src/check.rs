//! `dunlin check`: shows what data files contain and where they are damaged, and keeps what can be
//! kept.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use config::{LoadError, Location, Origin};
use persist::check::{CheckError, Options, Verdict, check};
use process::permissions;

pub(crate) const USAGE: &str = "\
Shows what an append-only file, its directory or an RDB file contains, and where it is damaged.

Usage: dunlin check FILE | DIRECTORY [--fix] [--truncate-to-timestamp SECONDS]
       dunlin check CONFIG-FILE

Of a file whose name ends in .conf it shows all that this server would not accept, and which of its
directives have no effect here.

  --fix                            keeps what can be kept of damaged files; a file of which nothing
                                   can be kept is not changed
  --truncate-to-timestamp SECONDS  removes everything that was written after this Unix second

The original of a changed file stays beside the new one, with .original after its name. While a server
uses the files nothing is changed. The exit code is 0 if this server can load everything (now), and 1
otherwise: also for commands and types that it does not know, which --fix keeps, and for parts of an
append-only file without their manifest.
";

/// Runs the command with these arguments.
pub(crate) fn run(arguments: &[Vec<u8>]) -> ExitCode {
    if matches!(arguments, [only] if matches!(&only[..], b"-h" | b"--help")) {
        return crate::print::print(USAGE);
    }
    let Some((path, options)) = parse(arguments) else {
        complain(USAGE);
        return ExitCode::FAILURE;
    };
    permissions::choose();
    if path.extension().is_some_and(|extension| extension == "conf") {
        return check_configuration(&path);
    }
    match check(&path, options, &mut io::stdout().lock()) {
        Ok(Verdict::Good | Verdict::Changed) => ExitCode::SUCCESS,
        Ok(Verdict::Damaged | Verdict::Unsupported) => ExitCode::FAILURE,
        Err(CheckError::Report(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::FAILURE
        }
        Err(error) => {
            complain(&format!("dunlin: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn check_configuration(path: &Path) -> ExitCode {
    let name = path.as_os_str().as_bytes();
    let (config, problems) = config::check(name, &server::files::ConfigFiles);
    let mut report = String::new();
    for LoadError { location, message } in &problems {
        if let Some(Location { origin: Origin::File(file), line, text }) = location {
            let (file, text) = (String::from_utf8_lossy(file), String::from_utf8_lossy(text));
            report.push_str(&format!("{file}:{line}: {text}\n    "));
        }
        report.push_str(&format!("{message}\n"));
    }
    for note in config::notes(&config) {
        report.push_str(&format!("note: {note}\n"));
    }
    let sum = match problems.len() {
        0 => "this server accepts the file".to_owned(),
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    };
    report.push_str(&format!("{}: {sum}\n", path.display()));
    match (crate::print::print(&report), problems.is_empty()) {
        (printed, true) => printed,
        (_, false) => ExitCode::FAILURE,
    }
}

fn parse(arguments: &[Vec<u8>]) -> Option<(PathBuf, Options)> {
    let mut path = None;
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match &argument[..] {
            b"--fix" => options.fix = true,
            b"--truncate-to-timestamp" => {
                options.truncate_to = Some(std::str::from_utf8(rest.next()?).ok()?.parse().ok()?);
            }
            [b'-', ..] => return None,
            _ if path.is_some() => return None,
            name => path = Some(PathBuf::from(OsString::from_vec(name.to_vec()))),
        }
    }
    Some((path?, options))
}

fn complain(text: &str) {
    // If this fails, nobody can be told.
    let _ = io::stderr().write_all(text.as_bytes());
}
