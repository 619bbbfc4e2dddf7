//! Which commands a request consists of: itself, and those that an EXEC runs.

use resp::args::Arguments;

use crate::command::{self, Group, Spec};
use crate::engine::Row;
use crate::session::{QueuedCommand, Session};

/// Whether a row is that of a container, because the second word is not one of its subcommands.
#[inline]
pub(crate) fn lacks_subcommand(row: &Row, argv: Arguments<'_>) -> bool {
    !row.command.subcommands.is_empty() && argv.len() >= 2
}

/// The commands of the transaction that a command executes.
#[inline]
pub(crate) fn queued<'s>(command: &Spec, session: &'s Session) -> &'s [QueuedCommand] {
    match &session.transaction {
        Some(transaction) if command.has(command::RUNS_QUEUED) => &transaction.commands,
        _ => &[],
    }
}

/// A command, and those of the transaction that it executes.
#[inline]
fn each<'s>(command: &'s Spec, session: &'s Session) -> impl Iterator<Item = &'s Spec> {
    let queued = queued(command, session).iter().map(|own| own.command);
    std::iter::once(command).chain(queued)
}

/// A command with its words, and those of the transaction that it executes.
pub(crate) fn each_request<'s>(
    command: &'s Spec,
    argv: Arguments<'s>,
    session: &'s Session,
) -> impl Iterator<Item = (&'s Spec, Arguments<'s>)> {
    let queued = queued(command, session).iter().map(|own| (own.command, own.argv.view()));
    std::iter::once((command, argv)).chain(queued)
}

/// Whether a command, or one of the transaction that it executes, has one of these flags.
pub(crate) fn any_has(command: &Spec, session: &Session, flags: command::Flags) -> bool {
    each(command, session).any(|own| own.has(flags))
}

/// Whether a command is a script, or a transaction with one.
pub fn runs_scripts(command: &Spec, session: &Session) -> bool {
    any_has(command, session, command::SCRIPT)
}

/// Whether a command, and all of the transaction that it executes, have one of these flags.
pub(crate) fn all_have(command: &Spec, session: &Session, flags: command::Flags) -> bool {
    each(command, session).all(|own| own.has(flags))
}

/// Whether a command, or one of the transaction that it executes, needs the thread's interpreter of
/// scripts.
pub(crate) fn concerns_scripts(command: &Spec, session: &Session) -> bool {
    each(command, session).any(|own| own.group == Group::Scripting && !own.has(command::ALLOW_BUSY))
}

/// Whether a command runs with the world stopped.
pub fn stops_the_world(command: &Spec, argv: Arguments<'_>) -> bool {
    let flags = command.reach.map_or(0, |reach| reach(argv));
    (flags | command.flags) & command::STOPS_THE_WORLD != 0
}

/// Whether a command, or one of the transaction that it executes, runs with the world stopped.
pub(crate) fn any_stops_the_world(command: &Spec, session: &Session, argv: Arguments<'_>) -> bool {
    stops_the_world(command, argv)
        || queued(command, session).iter().any(|own| stops_the_world(own.command, own.argv.view()))
}

/// Whether a command has to hold all slots because it cannot begin again in the middle: an EXEC
/// with commands that look at keys they do not name, or with scripts that declare none. A script
/// that uses further keys than it declares waits for them. SORT with BY or GET holds all slots on
/// its own only when it has met locked slots for long.
pub(crate) fn is_exclusive(command: &Spec, session: &Session, argv: Arguments<'_>) -> bool {
    reads_by_pattern(command, argv) || is_exclusive_exec(command, session)
}

/// Whether a command is an EXEC that has to hold all slots.
pub(crate) fn is_exclusive_exec(command: &Spec, session: &Session) -> bool {
    queued(command, session).iter().any(|own| {
        let (command, argv) = (own.command, own.argv.view());
        let flags = command.reach.map_or(command.flags, |reach| reach(argv));
        let walks = flags & command::WHOLE_KEYSPACE != 0;
        walks || is_script_without_keys(command, argv) || reads_by_pattern(command, argv)
    })
}

/// Whether a script declares no keys: it uses none, or any.
fn is_script_without_keys(command: &Spec, argv: Arguments<'_>) -> bool {
    command.has(command::SCRIPT) && argv.get(2).is_none_or(|count| count == b"0")
}

/// Whether a command finds names of keys in the values of other keys.
fn reads_by_pattern(command: &Spec, argv: Arguments<'_>) -> bool {
    let is_pattern =
        |word: &[u8]| word.eq_ignore_ascii_case(b"by") || word.eq_ignore_ascii_case(b"get");
    command.has(command::READS_BY_PATTERN) && argv.iter().any(is_pattern)
}
