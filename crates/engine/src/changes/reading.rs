//! What the records of the journal have changed, key by key.
//!
//! Effects are commands. An effect that stores or deletes a whole string is told as that change.
//! Any other effect is told as the command itself, for each key that it writes.

use std::rc::Rc;

use resp::args::{ArgRange, Arguments};
use smallvec::SmallVec;

use crate::command::{ChangeForm, MAY_REPLICATE, NOT_KEY, OW, PUBSUB, RM, RW, WRITE};
use crate::engine::{Registry, Row};
use crate::journal::batch::words_aside;
use crate::journal::change::{Change, Operation};

/// What effects with their databases have changed, in order.
pub fn changes_of<'r>(
    registry: &Registry,
    effects: impl Iterator<Item = (usize, &'r [u8])>,
) -> SmallVec<[Change<'r>; 1]> {
    let mut changes = SmallVec::new();
    for (database, command) in effects {
        add_changes(registry, database, command, &mut changes);
    }
    changes
}

type Changes<'r> = SmallVec<[Change<'r>; 1]>;

fn add_changes<'r>(
    registry: &Registry,
    database: usize,
    command: &'r [u8],
    changes: &mut Changes<'r>,
) {
    let ranges = ranges_of(command);
    let words: SmallVec<[&[u8]; 6]> =
        ranges.iter().map(|&(from, length)| &command[from..from + length]).collect();
    if words.is_empty() {
        return;
    }
    let ranges: SmallVec<[ArgRange; 6]> =
        ranges.iter().map(|&(from, length)| ArgRange::in_buffer(from, length)).collect();
    let argv = Arguments::new(&ranges, command, &[], &[]);
    let row = registry.resolve(argv);
    // What a primary sends its replicas besides effects changes nothing.
    let writes = |row: &Row| row.command.has(WRITE | MAY_REPLICATE) && !row.command.has(PUBSUB);
    let is_aside = words_aside(|index| words.get(index).copied()) > 0;
    if !is_aside && row.is_some_and(|row| !writes(row)) {
        return;
    }
    let mut shared: Option<Rc<[&[u8]]>> = None;
    let mut add = |database, key, operation| {
        let is_update = operation == Operation::Update;
        let words = is_update.then(|| Rc::clone(shared.get_or_insert_with(|| words[..].into())));
        changes.push(Change { database, key, operation, words });
    };
    let here = Some(database);
    match (row.map_or(ChangeForm::Keys, |row| row.command.told), &words[1..]) {
        (ChangeForm::Set, [key, value, options @ ..]) if !keeps_time(options) => {
            add(here, Some(key), Operation::Set(value, expiry_of(options)));
        }
        (ChangeForm::SetEach, pairs) => {
            for pair in pairs.chunks_exact(2) {
                add(here, Some(pair[0]), Operation::Set(pair[1], None));
            }
        }
        (ChangeForm::Delete, keys) => {
            keys.iter().for_each(|key| add(here, Some(key), Operation::Delete));
        }
        (ChangeForm::Rename, [from, to]) => {
            add(here, Some(from), Operation::Delete);
            add(here, Some(to), Operation::Update);
        }
        (ChangeForm::Move, [key, other]) => {
            add(here, Some(key), Operation::Delete);
            add(number(other), Some(key), Operation::Update);
        }
        (ChangeForm::Copy, [_, to, options @ ..]) => {
            let other = options.windows(2).find(|pair| pair[0].eq_ignore_ascii_case(b"db"));
            let other = other.and_then(|pair| number(pair[1]));
            add(other.or(here), Some(to), Operation::Update);
        }
        (ChangeForm::FlushDatabase, _) => add(here, None, Operation::Flush),
        (ChangeForm::FlushAll, _) => add(None, None, Operation::Flush),
        (ChangeForm::Swap, [one, other]) => {
            add(number(one), None, Operation::Swap(number(other).unwrap_or_default()));
            add(number(other), None, Operation::Swap(number(one).unwrap_or_default()));
        }
        _ => {
            let mut any = false;
            written_keys(row, argv, |index| {
                any = true;
                add(here, words.get(index).copied(), Operation::Update);
            });
            if !any {
                add(here, None, Operation::Update);
            }
        }
    }
}

fn number(word: &[u8]) -> Option<usize> {
    base::num::parse_i64(word)?.try_into().ok()
}

/// Whether a string that is set with these options expires when the one before it would have: the
/// effect does not say when.
fn keeps_time(options: &[&[u8]]) -> bool {
    options.iter().any(|word| word.eq_ignore_ascii_case(b"keepttl"))
}

/// When a string that is set with these options expires: effects name the time itself.
fn expiry_of(options: &[&[u8]]) -> Option<i64> {
    let pair = options.windows(2).find(|pair| pair[0].eq_ignore_ascii_case(b"pxat"))?;
    base::num::parse_i64(pair[1])
}

/// Where the words of a command in RESP begin, as this server has written it, and their lengths.
pub(super) fn ranges_of(command: &[u8]) -> SmallVec<[(usize, usize); 6]> {
    let line = |from: usize| {
        // A few digits: sooner read than searched.
        let end = from + command.get(from..)?.iter().position(|byte| *byte == b'\r')?;
        Some((base::num::parse_i64(command.get(from + 1..end)?)?, end + 2))
    };
    let mut ranges = SmallVec::new();
    let Some((count, mut at)) = line(0) else { return ranges };
    for _ in 0..count {
        let Some((length, from)) = line(at) else { break };
        let Some(end) = from.checked_add(length as usize).filter(|end| *end <= command.len())
        else {
            break;
        };
        ranges.push((from, length as usize));
        at = end + 2;
    }
    let word = |index: usize| {
        let &(from, length) = ranges.get(index)?;
        command.get(from..from + length)
    };
    let aside = words_aside(word);
    ranges.drain(..aside);
    ranges
}

/// Visits the positions of the keys that a command writes.
fn written_keys(row: Option<&Row>, argv: Arguments<'_>, mut visit: impl FnMut(usize)) {
    let Some(row) = row else { return };
    const WRITES: u16 = RW | OW | RM;
    if let Some(finder) = row.command.key_finder {
        return finder(argv, &mut |index, flags| {
            if flags & WRITES != 0 {
                visit(index);
            }
        });
    }
    for spec in row.command.keys {
        if spec.flags & NOT_KEY == 0 && spec.flags & WRITES != 0 {
            spec.each(argv, &mut visit);
        }
    }
}
