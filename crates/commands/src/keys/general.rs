//! DEL, UNLINK, EXISTS, TYPE, TOUCH, RENAME, RENAMENX, COPY and MOVE.

use resp::args::Arguments;
use store::{Entry, Key, Removed};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::Db;
use engine::db::notify::{Class, Event};
use engine::engine::Context;

/// DEL key [key ...], UNLINK key [key ...]
///
/// The two are alike: large values are freed in the background in any case.
pub(super) fn del(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let mut deleted = 0;
    while !args.is_empty() {
        let key = args.key()?;
        if cx.db.remove(&key) {
            cx.db.changed(&key, Event(Class::GENERIC, "del"));
            deleted += 1;
        }
    }
    cx.reply.integer(deleted);
    Ok(())
}

/// EXISTS key [key ...]
pub(super) fn exists(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let mut found = 0;
    while !args.is_empty() {
        found += i64::from(cx.db.find_untouched(&args.key()?).is_some());
    }
    cx.reply.integer(found);
    Ok(())
}

/// TYPE key
pub(super) fn type_of(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let value = cx.db.find_untouched(&args.key()?).map(Entry::value);
    cx.reply.simple(value.map_or("none", |value| value.type_name()).as_bytes());
    Ok(())
}

/// TOUCH key [key ...]
pub(super) fn touch(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let mut found = 0;
    while !args.is_empty() {
        found += i64::from(cx.db.find(&args.key()?).is_some());
    }
    cx.reply.integer(found);
    Ok(())
}

/// RENAME key newkey
pub(super) fn rename(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (from, to) = (args.key()?, args.key()?);
    if cx.db.find_mut(&from).is_none() {
        return Err(CommandError::NO_SUCH_KEY);
    }
    if from.bytes != to.bytes {
        move_value(&mut cx.db, &from, &to);
    }
    cx.reply.ok();
    Ok(())
}

/// RENAMENX key newkey
pub(super) fn renamenx(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (from, to) = (args.key()?, args.key()?);
    if cx.db.find_mut(&from).is_none() {
        return Err(CommandError::NO_SUCH_KEY);
    }
    let free = from.bytes != to.bytes && cx.db.find_mut(&to).is_none();
    if free {
        move_value(&mut cx.db, &from, &to);
    }
    cx.reply.integer(i64::from(free));
    Ok(())
}

/// Moves the value of a live key to another key, and replaces what is there.
fn move_value(db: &mut Db<'_>, from: &Key<'_>, to: &Key<'_>) {
    let Some(moved) = db.take(from) else { return };
    db.remove(to);
    put(db, to, moved);
    db.changed_times(from, Event(Class::GENERIC, "rename_from"), 0);
    db.changed(to, Event(Class::GENERIC, "rename_to"));
}

/// Puts a value from elsewhere under a free key. Its expiry, its content type and its
/// access data go with it.
fn put(db: &mut Db<'_>, key: &Key<'_>, moved: Removed) {
    let (expire_at, clock) = (moved.entry().expire_at(), moved.entry().clock());
    let content_type_id = moved.entry().content_type_id();
    db.set(key, moved.into_value(), expire_at);
    if let Some(entry) = db.peek(key) {
        entry.set_clock(clock);
    }
    db.set_content_type_id(key, content_type_id);
}

/// Finds the databases of COPY: each that is named, whichever counts.
pub(super) fn database_of_copy(argv: Arguments<'_>, visit: &mut dyn FnMut(Option<usize>)) {
    let mut index = 3;
    while index < argv.len() {
        if index + 1 < argv.len() && argv.at(index).eq_ignore_ascii_case(b"db") {
            index += 1;
            visit(Some(index));
        }
        index += 1;
    }
}

/// Finds the database of MOVE.
pub(super) fn database_of_move(_argv: Arguments<'_>, visit: &mut dyn FnMut(Option<usize>)) {
    visit(Some(2));
}

/// COPY source destination [DB destination-db] [REPLACE]
pub(super) fn copy(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (source, destination) = (args.key()?, args.key()?);
    let (mut database, mut replace) = (cx.db.index, false);
    while !args.is_empty() {
        if args.word("replace") {
            replace = true;
        } else if args.len() >= 2 && args.word("db") {
            database = args.database(cx.engine.keyspace.databases())?;
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    if database == cx.db.index && source.bytes == destination.bytes {
        return Err(CommandError::SAME_OBJECT);
    }
    let found = cx.db.find(&source);
    let copied =
        found.is_some() && cx.db.with_database(database, |db| free(db, &destination, replace));
    if copied && let Some(entry) = cx.db.peek(&source) {
        let (value, expire_at, content_type_id) =
            (entry.value().to_value(), entry.expire_at(), entry.content_type_id());
        cx.db.with_database(database, |db| {
            db.set(&destination, value, expire_at);
            db.set_content_type_id(&destination, content_type_id);
            db.changed(&destination, Event(Class::GENERIC, "copy_to"));
        });
    }
    cx.reply.integer(i64::from(copied));
    Ok(())
}

/// Makes sure that a key is free. If `replace` says so, removes the value that is there.
fn free(db: &mut Db<'_>, key: &Key<'_>, replace: bool) -> bool {
    if db.find_mut(key).is_none() {
        return true;
    }
    replace && db.remove(key)
}

/// MOVE key db
pub(super) fn move_to_database(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let databases = cx.engine.keyspace.databases();
    if databases == 1 && cx.db.cluster.is_some() {
        return Err(CommandError::text("ERR MOVE is not allowed in cluster mode"));
    }
    let database = args.database(databases)?;
    if database == cx.db.index {
        return Err(CommandError::SAME_OBJECT);
    }
    let possible = cx.db.find_mut(&key).is_some()
        && cx.db.with_database(database, |db| db.find_mut(&key).is_none());
    if possible && let Some(moved) = cx.db.take(&key) {
        cx.db.with_database(database, |db| put(db, &key, moved));
        cx.db.changed_times(&key, Event(Class::GENERIC, "move_from"), 0);
        cx.db.with_database(database, |db| {
            db.changed(&key, Event(Class::GENERIC, "move_to"));
        });
    }
    cx.reply.integer(i64::from(possible));
    Ok(())
}
