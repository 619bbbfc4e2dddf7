//! Emptying databases, with all gates closed.

use std::ops::Range;

use store::gate::Closed;

use crate::handler::context::Context;
use crate::run::authority::Authority;
use crate::wait::watcher::Fate;

/// The authority of a command that changes all slots at once: its row makes it run with all gates
/// closed.
pub(crate) fn closed<'a>(cx: &Context<'a>) -> &'a Closed<'a> {
    match cx.authority {
        Authority::Closed(closed) => closed,
        _ => unreachable!("the row says that it closes the gates"),
    }
}

/// Removes all keys of some databases. Returns how many there were.
pub(crate) fn empty(cx: &mut Context<'_>, databases: Range<usize>) -> usize {
    cx.db.mark_all_watchers(|database| match databases.contains(&database) {
        true => Fate::Emptied,
        false => Fate::Stays,
    });
    cx.db.wake_stream_waiters(|database| databases.contains(&database));
    databases.map(|database| empty_one(cx, database)).sum()
}

fn empty_one(cx: &mut Context<'_>, database: usize) -> usize {
    let slots: Vec<u16> = cx.engine.keyspace.occupied(database).collect();
    if slots.is_empty() {
        return 0;
    }
    for slot in slots {
        // A key that comes back has a higher version than the removed one.
        cx.db.held.next_version(slot);
    }
    // A reader of a cut keeps some of the tables.
    let keys = cx.engine.keyspace.len(database);
    let tables = cx.engine.keyspace.take_all(closed(cx), database);
    if !tables.is_empty() {
        cx.engine.free_tables_later(tables);
    }
    keys
}

/// Tells the saver that there is no data any more. If a file has to say so, the client waits for it.
/// Data from a file that is being loaded is saved already.
pub(crate) fn note_emptied(cx: &mut Context<'_>) {
    if cx.session.replays {
        return;
    }
    let changes = cx.engine.stats.changes() + cx.db.effects.dirty;
    if cx.engine.storage.note_emptied(cx.engine, changes, closed(cx)) {
        let waiter = cx.wait_for_host();
        cx.engine.storage.save_emptied(waiter);
    }
}
