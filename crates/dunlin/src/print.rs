//! The output of the program.

use std::io::{self, Write};
use std::process::ExitCode;

/// Prints to standard output; a reader that has gone is no mistake of ours.
pub(crate) fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}
