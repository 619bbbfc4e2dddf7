//! Secrets among arguments: what MONITOR and the slow log show as `(redacted)`.

use resp::args::Arguments;

use crate::command::Spec;

/// The text in place of a secret.
pub(crate) const REDACTED: &[u8] = b"(redacted)";

/// The settings whose values are secrets.
const SECRET_SETTINGS: [&[u8]; 4] =
    [b"requirepass", b"masterauth", b"masteruser", b"tls-key-file-pass"];

/// The arguments of a command as they may be shown: secrets are replaced.
pub(crate) fn shown<'a>(
    command: &Spec,
    argv: Arguments<'a>,
) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let is_secret = rule(command);
    argv.iter().enumerate().map(
        move |(index, argument)| {
            if is_secret(argv, index) { REDACTED } else { argument }
        },
    )
}

/// Returns whether the argument at an index is a secret.
type Rule = fn(Arguments<'_>, usize) -> bool;

fn rule(command: &Spec) -> Rule {
    match (command.parent, command.name) {
        (None, "auth") => |_, index| index > 0,
        (None, "hello") => is_secret_of_hello,
        (Some("config"), "set") => |argv, index| {
            // After CONFIG SET, names and values alternate.
            let is_value = index >= 3 && index % 2 == 1;
            is_value
                && SECRET_SETTINGS.iter().any(|name| name.eq_ignore_ascii_case(argv.at(index - 1)))
        },
        _ => |_, _| false,
    }
}

/// HELLO version [AUTH user password] [SETNAME name]: the two arguments after AUTH.
fn is_secret_of_hello(argv: Arguments<'_>, wanted: usize) -> bool {
    let mut index = 2;
    while index < argv.len() {
        if argv.at(index).eq_ignore_ascii_case(b"auth") {
            if wanted == index + 1 || wanted == index + 2 {
                return true;
            }
            index += 3;
        } else if argv.at(index).eq_ignore_ascii_case(b"setname") {
            index += 2;
        } else {
            index += 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use resp::args::OwnedArguments;

    use super::shown;
    use crate::commands;

    #[test]
    fn passwords_are_not_shown() {
        for (line, expected) in [
            ("AUTH a", "AUTH (redacted)"),
            ("auth a b", "auth (redacted) (redacted)"),
            ("HELLO 3 AUTH u p SETNAME n", "HELLO 3 AUTH (redacted) (redacted) SETNAME n"),
            ("HELLO 3 SETNAME auth AUTH u p", "HELLO 3 SETNAME auth AUTH (redacted) (redacted)"),
            ("GET auth", "GET auth"),
            (
                "CONFIG SET requirepass a maxmemory 1 MASTERAUTH b",
                "CONFIG SET requirepass (redacted) maxmemory 1 MASTERAUTH (redacted)",
            ),
        ] {
            let argv: OwnedArguments = line.split(' ').collect();
            let row =
                commands::registry().resolve(argv.view()).expect("the commands of the test exist");
            let words: Vec<_> = shown(row.command, argv.view()).collect();
            assert_eq!(words.join(&b' '), expected.as_bytes());
        }
    }
}
