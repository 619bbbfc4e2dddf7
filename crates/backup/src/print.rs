//! What the user is told.

use std::io::{self, Write};

/// Tells the user something.
pub(crate) fn say(line: &str) {
    // Nobody may be listening. What is to be done is done all the same.
    let _ = give(line);
}

/// Tells the user what went wrong.
pub(crate) fn complain(line: &str) {
    // If this fails, nobody can be told.
    let _ = writeln!(io::stderr(), "dunlin: {}", visible(line));
}

/// Gives the user what was asked for.
pub(crate) fn give(text: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{}", visible(text)) {
        // Who has read enough goes.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Text of a server or of a store may have characters that a terminal obeys.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() && letter != '\n' {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_is_shown() {
        assert_eq!(visible("a\u{1b}]0;b\u{7}\r\u{9b}1m\nü"), "a\\u{1b}]0;b\\u{7}\\r\\u{9b}1m\nü");
    }
}
