//! What clients are told that lack a right.

use super::account::Account;
use super::verdict::{CheckedCommand, Lack};
use crate::command::{INTERNAL, Spec};

/// The name of a command as a refusal has it. An internal command appears as the one for which it
/// stands.
pub fn shown_name(spec: &Spec) -> String {
    match spec.stands_for {
        [first, ..] if spec.has(INTERNAL) => (*first).to_owned(),
        _ => spec.full_name(),
    }
}

/// What is lacking, without the code of an error. It names the key or the channel if `is_long`.
pub fn text(account: &Account, asked: CheckedCommand<'_>, lack: Lack, is_long: bool) -> Vec<u8> {
    let user = [b"User ", &*account.name, b" has no permissions to "].concat();
    let argument = asked.argv.get(lack.argument()).unwrap_or_default();
    let named = |kind: &str| {
        let kind = kind.as_bytes();
        [&*user, b"access the '", argument, b"' ", kind].concat()
    };
    match lack {
        Lack::Command => {
            let name = shown_name(asked.spec);
            [&*user, b"run the '", name.as_bytes(), b"' command"].concat()
        }
        Lack::Key(_) if is_long => named("key"),
        Lack::Channel(_) if is_long => named("channel"),
        Lack::Database(_) if is_long => [&*user, b"access database ", argument].concat(),
        Lack::Key(_) => b"No permissions to access a key".to_vec(),
        Lack::Channel(_) => b"No permissions to access a channel".to_vec(),
        Lack::Database(_) => b"No permissions to access database".to_vec(),
    }
}

/// Why a command that was queued may no longer run.
pub fn reason_at_exec(lack: Lack) -> &'static str {
    match lack {
        Lack::Command => "no permission to execute the command or subcommand",
        Lack::Key(_) => "no permission to touch the specified keys",
        Lack::Channel(_) => {
            "no permission to access one of the channels used as arguments to the command"
        }
        // As Valkey says it.
        Lack::Database(_) => "no permission",
    }
}
