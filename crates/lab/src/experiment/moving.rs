//! `dunlin move` takes the data of one process of a target to another one, as a user would.

use crate::load::Encryption;
use crate::targets::Interrupt;
use crate::targets::connection::Endpoint;
use crate::targets::tool;

/// The name of such events.
pub(super) const MOVE: &str = "move";
/// The name of those that move slots of a cluster.
pub(super) const MOVE_SLOTS: &str = "move slots";
/// What stands before the time for which writes were held, in milliseconds.
pub(super) const HELD: &str = "writes were held for ";

/// Moves all data. Returns the tool's words about how long writes were held.
///
/// # Errors
/// The tool's words when it has failed.
pub(super) fn move_all(from: &Endpoint, to: &Endpoint, halt: &Interrupt) -> Result<String, String> {
    if from.password.is_some() || to.password.is_some() {
        return Err("servers with passwords are not moved by the lab".to_owned());
    }
    // The tool has one set of certificates for both.
    let encryption = match (&from.encryption, &to.encryption) {
        (Some(one), Some(other)) if one != other => {
            return Err("servers with different certificates are not moved by the lab".to_owned());
        }
        (one, other) => one.as_ref().or(other.as_ref()),
    };
    let (from, to) = (tool::url(from), tool::url(to));
    let mut words = vec!["move", "--from", &from, "--to", &to, "--yes"];
    words.extend(encryption.map(Encryption::options).unwrap_or_default());
    let said = tool::run(&words, None, halt)?;
    let held = said.lines().find(|line| line.contains(HELD));
    held.map(str::to_owned).ok_or_else(|| "it does not say how long writes were held".to_owned())
}

/// The milliseconds in these words.
pub(super) fn held_ms(words: &str) -> Option<f64> {
    let (_, rest) = words.split_once(HELD)?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_from_the_words() {
        assert_eq!(held_ms("done in 1.5 s; writes were held for 37 ms"), Some(37.0));
        assert_eq!(held_ms("done in 1.5 s"), None);
    }
}
