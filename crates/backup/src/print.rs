//! What the user is told.

use std::io::{self, Write};

/// Tells the user something.
pub(crate) fn say(line: &str) {
    // Nobody may be listening. What is to be done is done all the same.
    let _ = writeln!(io::stdout(), "{line}");
}

/// Tells the user what went wrong.
pub(crate) fn complain(line: &str) {
    // If this fails, nobody can be told.
    let _ = writeln!(io::stderr(), "dunlin: {line}");
}
