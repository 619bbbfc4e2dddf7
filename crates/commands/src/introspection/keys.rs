//! COMMAND GETKEYS: which arguments of a command are keys, and what happens to them.

use resp::args::Arguments;

use engine::command::error::CommandError;
use engine::command::keys::flags_of;
use engine::command::{self, Begin, KeyFlags, KeySpec, NO_MANDATORY_KEYS, NOT_KEY};
use engine::engine::Command;
use engine::engine::client_names::ClientNames;

/// A key among the arguments of a command.
pub(super) struct FoundKey {
    /// Which argument it is.
    pub(super) index: usize,
    /// What happens to the key.
    pub(super) flags: KeyFlags,
}

/// Finds the keys of a command, in the order of its key specs.
pub(super) fn find(
    commands: &ClientNames,
    argv: Arguments<'_>,
) -> Result<Vec<FoundKey>, CommandError> {
    let row = commands.resolve(argv).filter(|row| {
        // A container whose subcommand does not exist is not a command.
        row.command.subcommands.is_empty() || argv.len() < 2
    });
    let row = row.ok_or(CommandError::text("ERR Invalid command specified"))?;
    let specs = || row.command.keys.iter().filter(|spec| spec.flags & NOT_KEY == 0);
    if specs().next().is_none() {
        return Err(CommandError::text("ERR The command has no key arguments"));
    }
    if !row.command.accepts(argv.len()) {
        return Err(CommandError::text("ERR Invalid number of arguments specified for command"));
    }
    let mut found = Vec::new();
    for spec in specs() {
        if !add_keys(row.command, spec, argv, &mut found) {
            return Err(INVALID_ARGUMENTS);
        }
    }
    if specs().any(|spec| spec.counts_oddly(argv)) {
        // Redis's specs do not find these keys. Its procedures do, which tell nothing more about
        // them, and name the destination last.
        found.iter_mut().for_each(|key| key.flags = 0);
        found.rotate_left(specs().count() - 1);
    }
    if let Some(finder) = row.command.key_finder {
        found.clear();
        finder(argv, &mut |index, flags| found.push(FoundKey { index, flags }));
    }
    if found.is_empty() && !row.command.has(NO_MANDATORY_KEYS) {
        return Err(INVALID_ARGUMENTS);
    }
    Ok(found)
}

const INVALID_ARGUMENTS: CommandError =
    CommandError::text("ERR Invalid arguments specified for command");

/// Adds the keys of one spec. Returns false when the arguments do not fit it.
fn add_keys(
    command: &Command,
    spec: &KeySpec,
    argv: Arguments<'_>,
    found: &mut Vec<FoundKey>,
) -> bool {
    let first = found.len();
    let flags = flags_of(command, spec, argv);
    let fits = spec.each(argv, |index| found.push(FoundKey { index, flags }));
    // An empty range is as wrong as one beyond the end.
    if found.len() == first && matches!(spec.begin, Begin::Index(_)) {
        return command.has(NO_MANDATORY_KEYS);
    }
    // A word may stand there twice: the first one counts.
    if matches!(spec.begin, Begin::Keyword(..)) && is_single(spec) {
        found.truncate(first + 1);
    }
    fits
}

/// Whether a spec finds one key.
fn is_single(spec: &KeySpec) -> bool {
    matches!(spec.find, command::Find::Range { last: 0, .. })
}
