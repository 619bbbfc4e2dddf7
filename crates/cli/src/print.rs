//! How the tool tells something: standard output for results, standard error for the rest.

use std::io::{self, Write};

/// The exit code of a process whose reader has gone.
const READER_GONE: i32 = 141;

/// Writes results and passes them on at once. When nobody reads them any more, the process ends as
/// other tools do.
pub(crate) fn output(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        if error.kind() == io::ErrorKind::BrokenPipe {
            std::process::exit(READER_GONE);
        }
        complain(&format!("cannot write: {}", reason(&error)));
        std::process::exit(1);
    }
}

/// Writes a line of results.
pub(crate) fn say(line: &str) {
    output(format!("{line}\n").as_bytes());
}

/// Writes a line beside the results.
pub(crate) fn complain(line: &str) {
    // If this fails, nobody can be told.
    let _ = writeln!(io::stderr(), "{line}");
}

/// An error in the system's own words.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

/// The text of a reply that is an error.
pub(crate) fn error_text(reply: &resp::client::Value) -> String {
    match reply {
        resp::client::Value::Error(text) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}
