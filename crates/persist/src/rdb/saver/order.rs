//! Which of several files has the latest data.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use store::gate::StoppedWorld;

/// The order of the instants whose data files contain.
#[derive(Default)]
pub(super) struct Order {
    /// How many there were.
    instants: AtomicU64,
    /// The last instant at which all data was removed.
    pub(super) emptied: AtomicU64,
    /// The instant whose data each file contains that was written. Locked while a file takes its
    /// place.
    filed: Mutex<HashMap<PathBuf, u64>>,
}

/// The right to put a file in its place: the instant whose data it will contain goes here.
pub(super) type Filing<'f> = MappedMutexGuard<'f, u64>;

impl Order {
    /// The present instant's number. No thread changes data now.
    pub(super) fn next(&self, _stopped: &StoppedWorld<'_>) -> u64 {
        self.instants.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether all data was removed after this instant.
    pub(super) fn was_emptied_since(&self, sequence: u64) -> bool {
        self.emptied.load(Ordering::Relaxed) > sequence
    }

    /// Whether the file contains data of a later instant.
    pub(super) fn is_overtaken(&self, file: &Path, sequence: u64) -> bool {
        self.filed.lock().get(file).is_some_and(|filed| *filed > sequence)
    }

    /// The right to put a file with this instant's data in its place, unless it is overtaken.
    pub(super) fn file(&self, file: &Path, sequence: u64) -> Option<Filing<'_>> {
        let all = self.filed.lock();
        let filed = MutexGuard::map(all, |all| all.entry(file.to_owned()).or_default());
        Some(filed).filter(|filed| **filed < sequence)
    }
}

/// A file that says that there is no data.
pub(super) struct Emptied {
    pub(super) file: PathBuf,
    pub(super) sequence: u64,
    /// Changes up to there.
    pub(super) changes: u64,
}
