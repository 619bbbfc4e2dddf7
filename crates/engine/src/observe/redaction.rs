//! Secrets among arguments, as the rows of commands say: MONITOR and the slow log show
//! `(redacted)`.

use resp::args::Arguments;

use crate::command::Spec;

/// The text in place of a secret.
pub(crate) const REDACTED: &[u8] = b"(redacted)";

/// The arguments of a command as they may be shown: secrets are replaced.
pub fn shown<'a>(command: &Spec, argv: Arguments<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let is_secret = command.is_secret.unwrap_or(|_, _| false);
    argv.iter().enumerate().map(
        move |(index, argument)| {
            if is_secret(argv, index) { REDACTED } else { argument }
        },
    )
}
