//! What the records of the journal have changed, key by key.
//!
//! Effects are commands. An effect that stores or deletes a whole string is told as that change. Any
//! other effect is told as the command itself, for each key that it writes.

use std::rc::Rc;

use resp::args::{ArgRange, Arguments};
use smallvec::SmallVec;

use super::change::{Change, Operation};
use crate::command::{NOT_KEY, OW, RM, RW};
use crate::persistence::batch::{Batch, words_aside};
use crate::registry::Registry;

/// What a batch has changed, in order.
pub fn changes_of<'r>(registry: &Registry, batch: &'r Batch) -> SmallVec<[Change<'r>; 1]> {
    let mut changes = SmallVec::new();
    for (database, command) in batch.commands() {
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
    let words = words_of(command);
    let Some(name) = words.first().map(|name| name.to_ascii_lowercase()) else { return };
    let mut shared: Option<Rc<[&[u8]]>> = None;
    let mut add = |database, key, operation| {
        let is_update = operation == Operation::Update;
        let words = is_update.then(|| Rc::clone(shared.get_or_insert_with(|| words[..].into())));
        changes.push(Change { database, key, operation, words });
    };
    let here = Some(database);
    match (name.as_slice(), &words[1..]) {
        (b"set", [key, value, options @ ..]) if !keeps_time(options) => {
            add(here, Some(key), Operation::Set(value, expiry_of(options)));
        }
        (b"setnx" | b"getset", [key, value]) => add(here, Some(key), Operation::Set(value, None)),
        (b"mset" | b"msetnx", pairs) => {
            for pair in pairs.chunks_exact(2) {
                add(here, Some(pair[0]), Operation::Set(pair[1], None));
            }
        }
        (b"del" | b"unlink" | b"getdel", keys) => {
            keys.iter().for_each(|key| add(here, Some(key), Operation::Delete));
        }
        (b"rename" | b"renamenx", [from, to]) => {
            add(here, Some(from), Operation::Delete);
            add(here, Some(to), Operation::Update);
        }
        (b"move", [key, other]) => {
            add(here, Some(key), Operation::Delete);
            add(number(other), Some(key), Operation::Update);
        }
        (b"copy", [_, to, options @ ..]) => {
            let other = options.windows(2).find(|pair| pair[0].eq_ignore_ascii_case(b"db"));
            let other = other.and_then(|pair| number(pair[1]));
            add(other.or(here), Some(to), Operation::Update);
        }
        (b"flushdb", _) => add(here, None, Operation::Flush),
        (b"flushall", _) => add(None, None, Operation::Flush),
        (b"swapdb", [one, other]) => {
            add(number(one), None, Operation::Swap(number(other).unwrap_or_default()));
            add(number(other), None, Operation::Swap(number(one).unwrap_or_default()));
        }
        _ => {
            let mut any = false;
            written_keys(registry, command, |index| {
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

/// Whether a string that is set with these options expires when the one before it would have: the effect
/// does not say when.
fn keeps_time(options: &[&[u8]]) -> bool {
    options.iter().any(|word| word.eq_ignore_ascii_case(b"keepttl"))
}

/// When a string that is set with these options expires: effects name the time itself.
fn expiry_of(options: &[&[u8]]) -> Option<i64> {
    let pair = options.windows(2).find(|pair| pair[0].eq_ignore_ascii_case(b"pxat"))?;
    base::num::parse_i64(pair[1])
}

/// The words of a command in RESP, as this server has written it.
fn words_of(command: &[u8]) -> SmallVec<[&[u8]; 6]> {
    ranges_of(command).iter().map(|&(from, length)| &command[from..from + length]).collect()
}

/// Where the words of a command begin, and their lengths.
fn ranges_of(command: &[u8]) -> SmallVec<[(usize, usize); 6]> {
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
fn written_keys(registry: &Registry, command: &[u8], mut visit: impl FnMut(usize)) {
    let ranges = ranges_of(command);
    let ranges: SmallVec<[ArgRange; 6]> =
        ranges.iter().map(|&(from, length)| ArgRange::in_buffer(from, length)).collect();
    let argv = Arguments::new(&ranges, command, &[], &[]);
    let Some(row) = registry.resolve(argv) else { return };
    const WRITES: u16 = RW | OW | RM;
    for spec in row.command.keys {
        if spec.flags & NOT_KEY == 0 && spec.flags & WRITES != 0 {
            spec.each(argv, &mut visit);
        }
    }
    if let Some(finder) = row.command.key_finder {
        finder(argv, &mut |index, flags| {
            if flags & WRITES != 0 {
                visit(index);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(commands: &[(usize, &str)]) -> Vec<String> {
        let mut batch = Batch::default();
        for (database, line) in commands {
            batch.push(*database, line.split(' ').map(str::as_bytes));
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let changes = changes_of(crate::commands::registry(), &batch);
        let shown = changes.iter().map(|change| {
            let database = change.database.map_or("*".to_owned(), |own| own.to_string());
            let key = change.key.map_or("*".to_owned(), text);
            let operation = match change.operation {
                Operation::Set(value, expires) => format!("set {} {expires:?}", text(value)),
                other => format!("{other:?}").to_lowercase(),
            };
            format!("{database} {key} {operation}")
        });
        shown.collect()
    }

    #[test]
    fn keys_of_one_command_share_its_words() {
        // A copy for each would be the square of their number.
        for (line, shared) in
            [("MSET a 1 b 2", 0), ("UNLINK a b", 0), ("LMOVE a b LEFT RIGHT", 2), ("SWAPDB 1 2", 0)]
        {
            let mut batch = Batch::default();
            batch.push(0, line.split(' ').map(str::as_bytes));
            let changes = changes_of(crate::commands::registry(), &batch);
            let owners = changes.iter().map(|own| own.words.as_ref().map_or(0, Rc::strong_count));
            assert_eq!(owners.collect::<Vec<_>>(), [shared; 2], "{line}");
        }
    }

    #[test]
    fn each_key_that_is_written_is_a_change() {
        assert_eq!(told(&[(0, "SET k v")]), ["0 k set v None"]);
        assert_eq!(told(&[(3, "set k v PXAT 99")]), ["3 k set v Some(99)"]);
        assert_eq!(told(&[(0, "SET k v KEEPTTL")]), ["0 k update"], "it may have a time");
        assert_eq!(told(&[(0, "MSET a 1 b 2")]), ["0 a set 1 None", "0 b set 2 None"]);
        assert_eq!(told(&[(0, "UNLINK a b")]), ["0 a delete", "0 b delete"]);
        assert_eq!(told(&[(0, "RENAME a b")]), ["0 a delete", "0 b update"]);
        assert_eq!(told(&[(0, "MOVE a 2")]), ["0 a delete", "2 a update"]);
        assert_eq!(told(&[(1, "COPY a b DB 2 REPLACE")]), ["2 b update"]);
        assert_eq!(told(&[(1, "COPY a b")]), ["1 b update"]);
        assert_eq!(told(&[(0, "HSET h f v")]), ["0 h update"]);
        assert_eq!(told(&[(0, "LMOVE a b LEFT RIGHT")]), ["0 a update", "0 b update"]);
        assert_eq!(told(&[(0, "SINTERSTORE to a b")]), ["0 to update"], "a and b were read");
        assert_eq!(told(&[(0, "SORT a STORE to")]), ["0 to update"]);
        assert_eq!(told(&[(4, "FLUSHDB")]), ["4 * flush"]);
        assert_eq!(told(&[(4, "FLUSHALL ASYNC")]), ["* * flush"]);
        assert_eq!(told(&[(0, "SWAPDB 1 2")]), ["1 * swap(2)", "2 * swap(1)"]);
        assert_eq!(told(&[(0, "INCR n"), (1, "DEL n")]), ["0 n update", "1 n delete"]);
    }
}
