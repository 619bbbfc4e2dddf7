//! WATCH: whose next EXEC depends on which keys.
//!
//! A watched key has a [`Watcher`] at its slot, behind the slot's lock. Whoever changes the key
//! raises the flag that all watchers of one connection share; EXEC looks at the flag, and at the
//! expiry of the watched keys, with the slots of all of them locked.
//!
//! A key that has expired but was not deleted yet is as good as absent. So one that was in that
//! state at WATCH may be deleted without the watcher minding, and one that comes into that state
//! makes EXEC fail though nobody has touched it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use store::gate::Presence;
use store::{Entry, Key};

use crate::client::Client;
use crate::context::Context;
use crate::db::Db;
use crate::engine::Engine;
use crate::session::Session;

/// A flag that is raised when a watched key changes.
pub(crate) type WatchFlag = Arc<AtomicBool>;

/// One connection's interest in one key.
pub(crate) struct Watcher {
    /// Shared by all keys that the connection watches.
    pub(crate) flag: WatchFlag,
    /// When it began, the key had expired without having been deleted.
    pub(crate) expired: bool,
}

/// What happened to a watched key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It holds another value.
    Changed,
    /// It is gone.
    Gone,
}

impl Watcher {
    /// Raises the flag, unless the change is only that an expired key is deleted at last.
    pub(crate) fn note(&mut self, change: Change) {
        if self.expired && change == Change::Gone {
            self.expired = false;
        } else {
            self.flag.store(true, Relaxed);
        }
    }
}

/// A key that the next EXEC depends on.
pub struct WatchedKey {
    /// Its database.
    pub database: usize,
    /// The key.
    pub key: Box<[u8]>,
}

/// The watched keys of a connection.
#[derive(Default)]
pub struct Watch {
    /// The keys.
    pub keys: Vec<WatchedKey>,
    /// Raised by the first change; shared with the slots.
    pub(crate) flag: WatchFlag,
}

impl Watch {
    /// Whether a key is watched already.
    pub fn contains(&self, database: usize, key: &[u8]) -> bool {
        self.keys.iter().any(|own| own.database == database && *own.key == *key)
    }

    /// Whether a watched key has changed, or has expired since it was watched. Looks at the slots
    /// of the watched keys, which EXEC has locked, or locks by looking where it runs as the program:
    /// so the flag comes last, when nobody can raise it any more.
    pub(crate) fn is_stale(&self, db: &Db<'_>) -> bool {
        let expired = self.keys.iter().any(|watched| {
            let (database, key) = (watched.database, Key::new(&watched.key));
            has_expired(db, database, &key) && !self.was_expired(db, database, &key)
        });
        expired || self.flag.load(Relaxed)
    }

    /// Whether a key that has expired counted as such when it was watched.
    fn was_expired(&self, db: &Db<'_>, database: usize, key: &Key<'_>) -> bool {
        let watchers = db.held.attachment(key.slot).map(|own| own.watchers(database, key.bytes));
        let own = |watcher: &&Watcher| Arc::ptr_eq(&watcher.flag, &self.flag);
        let own = watchers.and_then(|watchers| watchers.iter().find(own));
        own.is_some_and(|watcher| watcher.expired)
    }
}

/// Whether a key is there, but due.
fn has_expired(db: &Db<'_>, database: usize, key: &Key<'_>) -> bool {
    let due = db.held.find(database, key).and_then(Entry::expire_at);
    due.is_some_and(|at| at <= db.now)
}

impl Context<'_> {
    /// Lets the next EXEC depend on a key of the selected database, which is locked.
    pub(crate) fn watch(&mut self, key: &Key<'_>) {
        let database = self.db.index;
        let expired = has_expired(&self.db, database, key);
        let watch = self.session.watch.get_or_insert_default();
        if watch.contains(database, key.bytes) {
            return;
        }
        let bytes = 2 * key.bytes.len() + size_of::<WatchedKey>() + 4 * size_of::<usize>();
        self.session.client.watched_bytes.fetch_add(bytes, Relaxed);
        watch.keys.push(WatchedKey { database, key: key.bytes.into() });
        let watcher = Watcher { flag: Arc::clone(&watch.flag), expired };
        let attachment = self.db.held.attachment_mut(key.slot).get_or_insert_default();
        attachment.add_watcher(database, key.bytes, watcher);
        show(&self.session.client, Some(&watch.flag));
    }

    /// Gives up the watched keys. Their slots are cleaned when all is unlocked.
    pub(crate) fn forget_watch(&mut self) {
        if let Some(watch) = self.session.watch.take() {
            show(&self.session.client, None);
            self.db.effects.forgotten_watches.push(*watch);
        }
    }

    /// Ends MULTI, whether by EXEC, DISCARD or RESET.
    pub(crate) fn end_transaction(&mut self) {
        if let Some(transaction) = self.session.transaction.take() {
            self.engine.free_transaction(transaction);
        }
        self.forget_watch();
        self.session.publish_state();
    }
}

/// Lets CLIENT LIST tell whether a watched key has changed.
fn show(client: &Client, flag: Option<&WatchFlag>) {
    *client.watch.lock() = flag.map(Arc::clone);
    if flag.is_none() {
        client.watched_bytes.store(0, Relaxed);
    }
}

impl Engine {
    /// Ends a connection's transaction and watches outside of any command. The caller holds no slot.
    pub(crate) fn abandon_transaction(&self, presence: Presence<'_>, session: &mut Session) {
        if let Some(transaction) = session.transaction.take() {
            self.free_transaction(transaction);
        }
        if let Some(watch) = session.watch.take() {
            show(&session.client, None);
            self.remove_watch(presence, &watch);
        }
        session.publish_state();
    }

    /// Takes a client's watchers out of their slots. The caller holds no slot.
    pub(crate) fn remove_watch(&self, presence: Presence<'_>, watch: &Watch) {
        for watched in &watch.keys {
            let slot = base::crc::key_slot(&watched.key);
            let mut held = self.hold_slot(presence, slot);
            let place = held.attachment_mut(slot);
            if let Some(attachment) = place {
                attachment.remove_watcher(watched.database, &watched.key, &watch.flag);
                if attachment.is_empty() {
                    *place = None;
                }
            }
        }
    }
}

impl Db<'_> {
    /// Tells the watchers of every key of `database` that the database is about to be emptied, or
    /// to be replaced with the content of another one (SWAPDB: to be called for both). With all
    /// gates closed, before it happens.
    pub fn mark_all_watchers(&mut self, database: usize, replaced_with: Option<usize>) {
        for slot in 0..base::limits::SLOTS as u16 {
            let Some(mut attachment) = self.held.attachment_mut(slot).take() else { continue };
            for (key, watchers) in attachment.watchers_of(database) {
                let key = Key::new(key);
                let was_there = self.held.find(database, &key).is_some();
                let replacement =
                    replaced_with.filter(|&other| self.held.find(other, &key).is_some());
                let replaced_by_expired =
                    replacement.is_some_and(|other| has_expired(self, other, &key));
                for watcher in watchers {
                    match replacement {
                        // An expired key replaces a missing or expired one: absent as before.
                        Some(_) if replaced_by_expired && (watcher.expired || !was_there) => {
                            watcher.expired = true;
                        }
                        Some(_) => watcher.note(Change::Changed),
                        None if was_there => watcher.note(Change::Gone),
                        None => {}
                    }
                }
            }
            *self.held.attachment_mut(slot) = Some(attachment);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use resp::args::OwnedArguments;
    use resp::output::Output;

    use super::*;
    use crate::engine::{Authority, Request};
    use crate::testing::TestServer;

    /// EXEC waits for the slot of a watched key while another thread changes the key.
    #[test]
    fn a_change_before_the_program_has_the_slot_counts() {
        let mut server = TestServer::new();
        for line in ["WATCH k", "MULTI", "DBSIZE"] {
            server.text(line);
        }
        let TestServer { engine, session, turn, gate, .. } = &mut server;
        let engine = &*engine;
        let flag = Arc::clone(&session.watch.as_ref().unwrap().flag);
        let (locked, is_locked) = mpsc::channel();
        let mut output = Output::new();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let slot = base::crc::key_slot(b"k");
                let gate = engine.gates.register();
                let inside = gate.enter();
                let held = engine.hold_slot(inside.presence(), slot);
                locked.send(()).unwrap();
                // EXEC gets as far as it gets without the slot.
                std::thread::sleep(Duration::from_millis(50));
                flag.store(true, Relaxed);
                drop(held);
            });
            is_locked.recv().unwrap();
            let argv: OwnedArguments = [b"EXEC"].into_iter().collect();
            let row = engine.prepare(argv.view(), &mut Vec::new());
            let request = Request { argv: argv.view(), row, keys: &[] };
            let program = engine.gates.program();
            let inside = gate.enter();
            let authority = Authority::Program(&program, inside.presence());
            engine.execute(turn, session, request, authority, &mut output);
        });
        assert_eq!(output.to_vec(), b"*-1\r\n");
    }
}
