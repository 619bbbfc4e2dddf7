//! Emptying databases and replacing all of them, with the world stopped.

use std::ops::Range;

use base::limits::SLOTS;
use store::gate::StoppedWorld;
use store::{Key, Keyspace};

use crate::db::slot_access::SlotAccess;
use crate::engine::Context;
use crate::session::attachment::Attachment;
use crate::session::watcher::Fate;

/// The stopped world of a command that changes all slots at once: its row makes it run with the
/// world stopped.
pub fn stopped_world<'a>(cx: &Context<'a>) -> &'a StoppedWorld<'a> {
    match cx.slot_access {
        SlotAccess::Stopped(stopped) => stopped,
        _ => unreachable!("the row says that it closes the gates"),
    }
}

/// Removes all keys of some databases. Returns how many there were.
pub fn empty(cx: &mut Context<'_>, databases: Range<usize>) -> usize {
    // What arrives from another server would not be whole any more.
    let all = databases.len() == cx.engine.keyspace.databases();
    cx.engine.slot_moves.note_flush((!all).then_some(databases.start));
    cx.db.mark_all_watchers(|database| match databases.contains(&database) {
        true => Fate::Emptied,
        false => Fate::Stays,
    });
    cx.db.wake_stream_waiters(|database| databases.contains(&database));
    databases.map(|database| empty_one(cx, database)).sum()
}

fn empty_one(cx: &mut Context<'_>, database: usize) -> usize {
    let slots: Vec<u16> = cx.engine.keyspace.all_occupied(database).collect();
    if slots.is_empty() {
        return 0;
    }
    for slot in slots {
        // A key that comes back has a higher version than the removed one.
        cx.db.locked.next_version(slot);
    }
    // A reader of a cut keeps some of the tables.
    let keys = cx.engine.keyspace.len(database);
    let tables = cx.engine.keyspace.take_all(stopped_world(cx), database);
    if !tables.is_empty() {
        cx.engine.free_tables_later(tables);
    }
    keys
}

/// Serves clients that wait for keys which these databases have got.
pub fn serve_waiters(cx: &mut Context<'_>, concerns: impl Fn(usize) -> bool) {
    cx.db.wake_stream_waiters(&concerns);
    let locked = &cx.db.locked;
    for slot in 0..SLOTS as u16 {
        let Some(attachment) = locked.attachment(slot) else { continue };
        for (database, key) in attachment.waited().filter(|(database, _)| concerns(*database)) {
            if locked.find(database, &Key::new(key)).is_some() {
                cx.db.effects.add_ready(database, key);
            }
        }
    }
}

/// Puts data in the place of the present data. Clients that watch a key which one of the two has
/// find it changed, and those that wait for a key which the new data has are served.
pub fn replace_all(cx: &mut Context<'_>, mut keyspace: Keyspace<Attachment>) {
    cx.engine.slot_moves.end_all();
    cx.db.mark_all_watchers(|_| Fate::Emptied);
    cx.engine.keyspace.exchange(stopped_world(cx), &mut keyspace);
    cx.db.mark_all_watchers(|_| Fate::Emptied);
    serve_waiters(cx, |_| true);
    for database in 0..keyspace.databases() {
        let tables = keyspace.take_all(stopped_world(cx), database);
        if !tables.is_empty() {
            cx.engine.free_tables_later(tables);
        }
    }
}

/// Tells the saver that there is no data any more. If a file has to say so, the client waits for
/// it. Data from a file that is being loaded is saved already.
pub fn note_emptied(cx: &mut Context<'_>) {
    if cx.session.replays {
        return;
    }
    let changes = cx.engine.stats.changes() + cx.db.effects.dirty;
    if cx.engine.storage.note_emptied(cx.engine, changes, stopped_world(cx)) {
        let waiter = cx.wait_for_host();
        cx.engine.storage.save_emptied(waiter);
    }
}
