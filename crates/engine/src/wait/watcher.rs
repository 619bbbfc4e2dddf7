//! What a watched key has at its slot, and what a connection knows of the keys that it watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hashbrown::HashSet;

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

/// The watched keys of a connection.
#[derive(Default)]
pub struct Watch {
    /// The keys, with their databases.
    pub keys: HashSet<(usize, Box<[u8]>)>,
    /// Raised by the first change; shared with the slots.
    pub(crate) flag: WatchFlag,
}
