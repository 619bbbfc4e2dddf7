//! MIGRATE, and the two internal commands with which its thread reads keys and deletes them.
//!
//! The handler parses. A thread of the server does the rest while the client waits: it holds the
//! keys ([`engine::engine::moving_keys`]), reads them, sends them, and deletes each key that the
//! target has taken, if it still has the version that was sent.

use std::collections::HashSet;
use std::time::Duration;

use base::num;
use resp::args::{Arguments, OwnedArguments};

use engine::admission::slots::owns_slot;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{ACCESS, DELETE, INCOMPLETE, KeyFlags, KeySpec, RW};
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::host::Migration;

const TWO_LISTS: CommandError = CommandError::text(
    "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
);

/// Milliseconds that the target may keep silent, for a client that names no such time.
const USUAL_TIMEOUT: i64 = 1000;

/// The first argument that is an option.
const OPTIONS: usize = 6;

/// Where the key stands, or nothing.
const KEY: usize = 3;

/// The key, or the keys after the word KEYS, as clients are told. See [`find_keys`].
pub(super) const MOVES: &[KeySpec] = &[
    KeySpec::at(RW | ACCESS | DELETE, 3),
    KeySpec {
        find: engine::command::Find::Range { last: -1, step: 1, limit: 0 },
        ..KeySpec::behind(RW | ACCESS | DELETE | INCOMPLETE, "KEYS", -2)
    },
];

/// Finds the keys as [`migrate`] does: they may have the names of options.
pub(super) fn find_keys(argv: Arguments<'_>, visit: &mut dyn FnMut(usize, KeyFlags)) {
    let is_one = argv.get(KEY).is_none_or(|key| !key.is_empty());
    let listed = keyword(argv).filter(|index| !is_one && index + 1 < argv.len());
    let places = listed.map_or(KEY..KEY + 1, |index| index + 1..argv.len());
    places.for_each(|index| visit(index, RW | ACCESS | DELETE));
}

/// Where the word KEYS stands, if it is there.
fn keyword(argv: Arguments<'_>) -> Option<usize> {
    let mut index = OPTIONS;
    while index < argv.len() {
        let is = |word: &str| argv.at(index).eq_ignore_ascii_case(word.as_bytes());
        index += match () {
            () if is("keys") => return Some(index),
            () if is("auth") => 2,
            () if is("auth2") => 3,
            () => 1,
        };
    }
    None
}

/// MIGRATE host port key|"" database timeout [COPY] [REPLACE] [AUTH password | AUTH2 user password]
/// [KEYS key ...]
pub(super) fn migrate(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (host, port, key) = (args.bytes()?, args.bytes()?, args.bytes()?);
    let numbers = [args.bytes()?, args.bytes()?];
    let (mut copy, mut replace) = (false, false);
    let (mut user, mut password) = (None, None);
    let mut keys: OwnedArguments = [key].into_iter().collect();
    while !args.is_empty() {
        if args.word("copy") {
            copy = true;
        } else if args.word("replace") {
            replace = true;
        } else if args.len() >= 2 && args.word("auth") {
            password = Some(args.bytes()?);
        } else if args.len() >= 3 && args.word("auth2") {
            (user, password) = (Some(args.bytes()?), Some(args.bytes()?));
        } else if args.word("keys") {
            if !key.is_empty() {
                return Err(TWO_LISTS);
            }
            let mut seen = HashSet::new();
            keys = args.rest().iter().filter(|key| seen.insert(*key)).collect();
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    let [database, timeout] = numbers.map(num::parse_i64);
    let timeout = timeout.ok_or(CommandError::NOT_AN_INTEGER)?;
    let timeout = if timeout > 0 { timeout } else { USUAL_TIMEOUT };
    let migration = Migration {
        host: host.to_vec(),
        port: num::parse_i64(port).and_then(|port| u16::try_from(port).ok()).unwrap_or(0),
        keys,
        database: cx.db.index,
        target_database: database.ok_or(CommandError::NOT_AN_INTEGER)?,
        timeout: Duration::from_millis(timeout.unsigned_abs()),
        copy,
        replace,
        credentials: user.into_iter().chain(password).collect(),
    };
    // Keys are deleted one by one, by another command.
    cx.propagate_nothing();
    let waiter = cx.wait_for_host();
    cx.engine.host.migrate(migration, waiter);
    Ok(())
}

/// The words after AUTH and AUTH2.
pub(super) fn is_secret(argv: Arguments<'_>, wanted: usize) -> bool {
    let mut index = OPTIONS;
    while index <= wanted.min(argv.len().saturating_sub(1)) {
        let word = argv.at(index);
        let secrets = match () {
            () if word.eq_ignore_ascii_case(b"auth") => 1,
            () if word.eq_ignore_ascii_case(b"auth2") => 2,
            () if word.eq_ignore_ascii_case(b"keys") => return false,
            () => 0,
        };
        if (index + 1..=index + secrets).contains(&wanted) {
            return true;
        }
        index += 1 + secrets;
    }
    false
}

/// The key's version, the time at which it expires or 0, its value for another server, and its
/// content type, which is empty if it has none; nothing if there is no such key. The slot may have
/// another owner by now, to whom the client is sent then.
pub(super) fn read(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    owns_slot(cx, key.slot)?;
    let compress = cx.db.config.rdbcompression;
    let Some(entry) = cx.db.find_untouched(&key) else {
        cx.reply.null();
        return Ok(());
    };
    let payload = rdb::dump_for_others(entry.value(), compress).into();
    let expire_at = entry.expire_at().unwrap_or(0);
    let content_type = cx.engine.content_types.name(entry.content_type_id());
    cx.reply.array(4);
    cx.reply.integer(entry.version().cast_signed());
    cx.reply.integer(expire_at.cast_signed());
    cx.reply.bulk_shared(&payload);
    cx.reply.bulk(&content_type.unwrap_or_default());
    Ok(())
}

/// Deletes a key if it has this version. Answers 1 if it had, 0 if it has another one, and -1 if
/// there is no such key. In a slot that has another owner by now nothing is deleted: the key lives
/// on there.
pub(super) fn remove(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    owns_slot(cx, key.slot)?;
    let version = args.i64()?;
    let present = cx.db.peek(&key).map(|entry| entry.version().cast_signed());
    let is_same = present == Some(version);
    if is_same && cx.db.remove(&key) {
        cx.db.changed(&key, Event(Class::GENERIC, "del"));
        cx.propagate(&[b"DEL", key.bytes]);
    }
    cx.reply.integer(present.map_or(-1, |_| i64::from(is_same)));
    Ok(())
}

/// The internal commands of the thread that moves keys.
pub struct MoveRows {
    /// Reads a key: see the handler.
    pub read: &'static engine::engine::Row,
    /// Deletes a key of a version: see the handler.
    pub remove: &'static engine::engine::Row,
}

impl MoveRows {
    /// Finds them among all rows.
    ///
    /// # Panics
    /// If one of them is missing.
    pub(crate) fn find(rows: &'static [engine::engine::Row]) -> MoveRows {
        let find = |name| {
            let mut rows = rows.iter().filter(|row| row.command.parent == Some("moving"));
            rows.find(|row| row.command.name == name).unwrap_or_else(|| panic!("no {name}"))
        };
        MoveRows { read: find("read"), remove: find("remove") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(line: &str) -> Vec<usize> {
        let argv: OwnedArguments = line.split(' ').collect();
        (0..argv.len()).filter(|index| is_secret(argv.view(), *index)).collect()
    }

    #[test]
    fn secrets_are_behind_their_words() {
        assert_eq!(secrets("migrate h 1 k 0 1 copy auth p"), [8]);
        assert_eq!(secrets("migrate h 1 k 0 1 AUTH2 u p replace"), [7, 8]);
        assert_eq!(secrets("migrate auth auth2 auth 0 1 auth auth2 x"), [7]);
        assert_eq!(secrets("migrate h 1 k 0 1 keys auth x"), [0; 0]);
        assert_eq!(secrets("migrate h 1 k 0 1"), [0; 0]);
    }
}
