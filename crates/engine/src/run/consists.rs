//! Which commands a request consists of: itself, and those that an EXEC runs.

use resp::args::Arguments;

use crate::command::{self, Group, Spec};
use crate::engine::Row;
use crate::session::Session;

/// Whether a row is that of a container, because the second word is not one of its subcommands.
#[inline]
pub(crate) fn lacks_subcommand(row: &Row, argv: Arguments<'_>) -> bool {
    !row.command.subcommands.is_empty() && argv.len() >= 2
}

/// Whether a command, or one of the transaction that it executes, has a flag.
pub(crate) fn any_has(command: &Spec, session: &Session, flags: command::Flags) -> bool {
    if command.has(flags) {
        return true;
    }
    let transaction = session.transaction.as_ref().filter(|_| command.name == "exec");
    transaction.is_some_and(|own| own.commands.iter().any(|queued| queued.command.has(flags)))
}

/// Whether a command is a script, or a transaction with one.
pub fn runs_scripts(command: &Spec, session: &Session) -> bool {
    any_has(command, session, command::SCRIPT)
}

/// Whether a command, and all of the transaction that it executes, have a flag.
pub(crate) fn all_have(command: &Spec, session: &Session, flags: command::Flags) -> bool {
    let transaction = session.transaction.as_ref().filter(|_| command.name == "exec");
    command.has(flags)
        && transaction.is_none_or(|own| own.commands.iter().all(|queued| queued.command.has(flags)))
}

/// Whether a command, or one of the transaction that it executes, needs the thread's interpreter of
/// scripts.
pub(crate) fn concerns_scripts(command: &Spec, session: &Session) -> bool {
    let concerns =
        |command: &Spec| command.group == Group::Scripting && !command.has(command::ALLOW_BUSY);
    let transaction = session.transaction.as_ref().filter(|_| command.name == "exec");
    concerns(command)
        || transaction.is_some_and(|own| own.commands.iter().any(|queued| concerns(queued.command)))
}

pub(crate) fn transaction_writes(session: &Session) -> bool {
    let transaction = session.transaction.as_ref();
    transaction.is_some_and(|own| {
        let writes = command::WRITE | command::MAY_REPLICATE;
        own.commands.iter().any(|queued| queued.command.has(writes))
    })
}

/// Whether a command runs with all gates closed.
pub(crate) fn needs_gates(command: &Spec, argv: Arguments<'_>) -> bool {
    let flags = command.reach.map_or(0, |reach| reach(argv));
    (flags | command.flags) & command::CLOSES_GATES != 0
}

/// Whether a command, or one of the transaction that it executes, replaces all data.
pub(crate) fn reloads(command: &Spec, session: &Session, argv: Arguments<'_>) -> bool {
    let alone = |command: &Spec, argv: Arguments<'_>| {
        command.reach.is_some_and(|reach| reach(argv) & command::CLOSES_GATES != 0)
    };
    let transaction = session.transaction.as_ref().filter(|_| command.name == "exec");
    alone(command, argv)
        || transaction.is_some_and(|own| {
            own.commands.iter().any(|queued| alone(queued.command, queued.argv.view()))
        })
}

/// Whether a command has to hold all slots because it cannot begin again in the middle: an EXEC with
/// commands that look at keys they do not name, or may do so as scripts. SORT with BY or GET holds all
/// slots on its own only when it has met locked slots for long.
pub(crate) fn is_program(command: &Spec, session: &Session, argv: Arguments<'_>) -> bool {
    let by_pattern = |command: &Spec, argv: Arguments<'_>| {
        command.has(command::READS_BY_PATTERN)
            && argv
                .iter()
                .any(|word| word.eq_ignore_ascii_case(b"by") || word.eq_ignore_ascii_case(b"get"))
    };
    match session.transaction.as_ref().filter(|_| command.name == "exec") {
        Some(transaction) => transaction.commands.iter().any(|queued| {
            let (command, argv) = (queued.command, queued.argv.view());
            let flags = command.reach.map_or(command.flags, |reach| reach(argv));
            let walks = flags & command::WHOLE_KEYSPACE != 0;
            walks || command.has(command::SCRIPT) || by_pattern(command, argv)
        }),
        None => by_pattern(command, argv),
    }
}
