//! What the user is told and asked.

use std::io::{self, IsTerminal, Write};

use crate::options::Options;
use crate::trouble::Trouble;

/// Tells the user something. If nobody listens any more, there is nobody to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{}", shown(line));
}

/// A text without what would control a terminal: nodes choose their names and addresses.
fn shown(text: &str) -> String {
    text.replace(|c: char| is_ruling(c) && c != '\n', "?")
}

/// A word of others, for a place in a line: without line ends, too.
pub(crate) fn word(text: &str) -> String {
    text.replace(is_ruling, "?")
}

/// Whether a sign controls a terminal, or turns the direction of the text around it.
fn is_ruling(sign: char) -> bool {
    let turns =
        matches!(sign, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    sign.is_control() || turns
}

/// Tells the user that something is wrong.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "dunlin: {}", shown(text));
}

/// Whether a plan that was shown is to be carried out; asks the user.
///
/// # Errors
/// The user does not want it, or nobody can be asked.
pub(crate) fn agreed(options: &Options) -> Result<bool, Trouble> {
    if options.dry_run || options.yes {
        return Ok(!options.dry_run);
    }
    if !io::stdin().is_terminal() {
        let text = "nobody can be asked whether this shall be done: add --yes";
        return Err(Trouble::Failed(text.to_owned()));
    }
    let _ = write!(io::stdout(), "Do this? [y/N] ").and_then(|()| io::stdout().flush());
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| error.to_string())?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(true),
        _ => Err(Trouble::Refused),
    }
}
