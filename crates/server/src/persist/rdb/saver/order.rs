//! Which of several files has the latest data.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use store::gate::Closed;

/// The order of the instants whose data files contain.
#[derive(Default)]
pub(super) struct Order {
    /// How many there were.
    instants: AtomicU64,
    /// The last instant at which all data was removed.
    pub(super) emptied: AtomicU64,
    /// The instant whose data the file contains. Locked while a file takes its place.
    pub(super) filed: Mutex<u64>,
}

impl Order {
    /// The present instant's place. No thread changes data now.
    pub(super) fn next(&self, _closed: &Closed<'_>) -> u64 {
        self.instants.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether all data was removed after this instant.
    pub(super) fn was_emptied_since(&self, place: u64) -> bool {
        self.emptied.load(Ordering::Relaxed) > place
    }

    /// Whether the file contains data of a later instant.
    pub(super) fn is_overtaken(&self, place: u64) -> bool {
        *self.filed.lock() > place
    }

    /// The right to put a file with this instant's data in its place, unless it is overtaken.
    pub(super) fn file(&self, place: u64) -> Option<MutexGuard<'_, u64>> {
        Some(self.filed.lock()).filter(|filed| **filed < place)
    }
}

/// That there is no data.
pub(super) struct Emptied {
    pub(super) file: PathBuf,
    pub(super) place: u64,
    /// Changes up to there.
    pub(super) changes: u64,
}
