//! What the user is told and asked.

use std::io::{self, IsTerminal, Write};

/// Tells the user something. If nobody listens any more, there is nobody to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Tells the user that something is wrong.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "dunlin: {text}");
}

/// Asks whether this shall be done.
///
/// # Errors
/// Nobody can be asked.
pub(crate) fn confirm(yes: bool) -> Result<bool, String> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err("nobody can be asked whether this shall be done: add --yes".to_owned());
    }
    let _ = write!(io::stdout(), "Do this? [y/N] ").and_then(|()| io::stdout().flush());
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| error.to_string())?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
