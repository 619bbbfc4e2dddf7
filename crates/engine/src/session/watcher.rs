//! What a watched key leaves at its slot, and what a connection knows of the keys that it watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hashbrown::HashSet;

/// State that the watchers of one connection share.
pub type WatchFlag = Arc<WatchState>;

/// What has happened to the keys that a connection watches.
#[derive(Default)]
pub struct WatchState {
    /// One of them has changed.
    changed: AtomicBool,
    /// The change was one of the key itself, not of all its database: then Redis watches none of
    /// the keys any more, and CLIENT LIST shows that.
    given_up: AtomicBool,
}

impl WatchState {
    pub(crate) fn has_changed(&self) -> bool {
        self.changed.load(Relaxed)
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }
}

/// One connection's interest in one key.
pub(crate) struct Watcher {
    /// Shared by all keys that the connection watches.
    pub(crate) flag: WatchFlag,
    /// When the watch began, the key had expired but was not deleted.
    pub(crate) expired: bool,
}

/// What happened to a watched key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its value has changed.
    Changed,
    /// It is gone.
    Gone,
}

/// What happens to a whole database.
#[derive(Clone, Copy)]
pub enum Fate {
    /// Its keys stay.
    Stays,
    /// They are gone.
    Emptied,
    /// It gets the content of another one.
    Replaced(usize),
}

impl Watcher {
    /// Notes a change of the key itself, unless the change only deletes an expired key.
    pub(crate) fn note(&mut self, change: Change) {
        if self.note_with_all(change) {
            self.flag.given_up.store(true, Relaxed);
        }
    }

    /// As [`Watcher::note`], for a change of the whole database. Returns whether it changes the
    /// key.
    pub(crate) fn note_with_all(&mut self, change: Change) -> bool {
        if self.expired && change == Change::Gone {
            self.expired = false;
            return false;
        }
        self.flag.changed.store(true, Relaxed);
        true
    }
}

/// The watched keys of a connection.
#[derive(Default)]
pub struct Watch {
    /// The keys, with their databases.
    pub keys: HashSet<(usize, Box<[u8]>)>,
    /// Raised by the first change; shared with the slots.
    pub(crate) flag: WatchFlag,
}
