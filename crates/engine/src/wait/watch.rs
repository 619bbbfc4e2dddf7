//! WATCH: which keys the next EXEC of each connection depends on.
//!
//! A watched key has a `Watcher` at its slot, which the slot's lock protects. A thread that changes
//! the key raises the flag that all watchers of one connection share. EXEC looks at the flag, and
//! at the expiry of the watched keys, with the slots of all of them locked.
//!
//! A key that has expired but was not deleted yet counts as absent. So a key that was expired at
//! WATCH may be deleted without any effect on the watch, and a key that expires later makes EXEC
//! fail though no command has touched it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use store::gate::Pinned;
use store::{Entry, Key};

use crate::db::Db;
use crate::engine::{Context, Engine};
use crate::session::Session;
use crate::session::client::Client;
use crate::session::watcher::{Change, Fate, Watch, WatchFlag, Watcher};

impl Watch {
    /// Whether a watched key has changed, or has expired since it was watched. Looks at the slots
    /// of the watched keys, which EXEC has locked, so that no thread can raise the flag any more.
    pub fn is_stale(&self, db: &Db<'_>) -> bool {
        let expired = self.keys.iter().any(|(database, key)| {
            let (database, key) = (*database, Key::new(key));
            has_expired(db, database, &key) && !self.was_expired(db, database, &key)
        });
        expired || self.flag.has_changed()
    }

    /// Whether a key that has expired counted as such when it was watched.
    fn was_expired(&self, db: &Db<'_>, database: usize, key: &Key<'_>) -> bool {
        let watchers = db.locked.attachment(key.slot).map(|own| own.watchers(database, key.bytes));
        let own = |watcher: &&Watcher| Arc::ptr_eq(&watcher.flag, &self.flag);
        let own = watchers.and_then(|watchers| watchers.iter().find(own));
        own.is_some_and(|watcher| watcher.expired)
    }
}

/// Whether a key is there, but has expired.
fn has_expired(db: &Db<'_>, database: usize, key: &Key<'_>) -> bool {
    let expire_at = db.locked.find(database, key).and_then(Entry::expire_at);
    expire_at.is_some_and(|at| at < db.now)
}

impl Context<'_> {
    /// Lets the next EXEC depend on a key of the selected database, which is locked.
    pub fn watch(&mut self, key: &Key<'_>) {
        let database = self.db.index;
        let expired = has_expired(&self.db, database, key);
        let watch = self.session.watch.get_or_insert_default();
        // EXEC fails already.
        if watch.flag.has_changed() {
            return;
        }
        if !watch.keys.insert((database, key.bytes.into())) {
            return;
        }
        let bytes = 2 * key.bytes.len() + size_of::<(usize, Box<[u8]>)>() + 4 * size_of::<usize>();
        self.session.client.watched_bytes.fetch_add(bytes, Relaxed);
        self.session.client.watched.fetch_add(1, Relaxed);
        let watcher = Watcher { flag: Arc::clone(&watch.flag), expired };
        let attachment = self.db.locked.attachment_mut(key.slot).get_or_insert_default();
        if attachment.add_watcher(database, key.bytes, watcher) {
            self.engine.watched_keys.fetch_add(1, Relaxed);
        }
        show(&self.session.client, Some(&watch.flag));
    }

    /// Gives up the watched keys. Their slots are cleaned when all slots are unlocked.
    pub fn forget_watch(&mut self) {
        if let Some(watch) = self.session.watch.take() {
            show(&self.session.client, None);
            self.db.effects.forgotten_watches.push(*watch);
        }
    }

    /// Ends MULTI, whether by EXEC, DISCARD or RESET.
    pub fn end_transaction(&mut self) {
        if let Some(transaction) = self.session.transaction.take() {
            self.engine.free_transaction(transaction);
        }
        self.forget_watch();
        self.session.publish_state();
    }
}

/// Lets CLIENT LIST show whether a watched key has changed.
fn show(client: &Client, flag: Option<&WatchFlag>) {
    *client.watch.lock() = flag.map(Arc::clone);
    if flag.is_none() {
        client.watched_bytes.store(0, Relaxed);
        client.watched.store(0, Relaxed);
    }
}

impl Engine {
    /// Ends a connection's transaction and watches outside of any command. The caller holds no
    /// slot.
    pub(crate) fn abandon_transaction(&self, pinned: Pinned<'_>, session: &mut Session) {
        if let Some(transaction) = session.transaction.take() {
            self.free_transaction(transaction);
        }
        if let Some(watch) = session.watch.take() {
            show(&session.client, None);
            self.remove_watch(pinned, &watch);
        }
        session.publish_state();
    }

    /// Removes a client's watchers from their slots. The caller holds no slot.
    pub(crate) fn remove_watch(&self, pinned: Pinned<'_>, watch: &Watch) {
        let clock = base::clock::now_us();
        for (database, key) in &watch.keys {
            self.take_out_watcher(pinned, (*database, key), &watch.flag, clock);
        }
    }
}

impl Db<'_> {
    /// Tells the watchers of every key what is about to happen to its database, as `fate` says of
    /// each. With the world stopped, before it happens.
    pub fn mark_all_watchers(&mut self, fate: impl Fn(usize) -> Fate) {
        for slot in 0..base::limits::SLOTS as u16 {
            let Some(mut attachment) = self.locked.attachment_mut(slot).take() else { continue };
            for (database, key, watchers) in attachment.watched() {
                let replaced_with = match fate(database) {
                    Fate::Stays => continue,
                    Fate::Emptied => None,
                    Fate::Replaced(other) => Some(other),
                };
                let key = Key::new(key);
                let was_there = self.locked.find(database, &key).is_some();
                let replacement =
                    replaced_with.filter(|&other| self.locked.find(other, &key).is_some());
                let replaced_by_expired =
                    replacement.is_some_and(|other| has_expired(self, other, &key));
                for watcher in watchers {
                    match replacement {
                        // An expired key replaces a missing or expired one: absent as before.
                        Some(_) if replaced_by_expired && (watcher.expired || !was_there) => {
                            watcher.expired = true;
                        }
                        Some(_) => _ = watcher.note_with_all(Change::Changed),
                        None if was_there => _ = watcher.note_with_all(Change::Gone),
                        None => {}
                    }
                }
            }
            *self.locked.attachment_mut(slot) = Some(attachment);
        }
    }
}
