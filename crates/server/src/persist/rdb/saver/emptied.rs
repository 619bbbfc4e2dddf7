//! What FLUSHALL means for files: one that is being written gives way, and where there are `save`
//! rules, the file says at once that there is no data.
//!
//! The file without data needs no cut, so it is written while another reader of a cut is at work.
//! A thread of its own writes it, so only the client that asked waits. Commands go on meanwhile and
//! other files may be begun: of several, the one with the latest data stays.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::engine::{Engine, LogLevel};
use parking_lot::{Mutex, MutexGuard};
use store::gate::Closed;

use super::{Saver, file_of, now};
use crate::persist::disk::{directory_of, replace};
use crate::persist::snapshot::{self, Purpose, not_wanted};

/// The order of the instants whose data files hold.
#[derive(Default)]
pub(super) struct Order {
    /// How many there were.
    instants: AtomicU64,
    /// The last one at which all data was removed.
    emptied: AtomicU64,
    /// The one whose data the file holds. Locked while a file takes its place.
    filed: Mutex<u64>,
}

impl Order {
    /// The present instant's place. Nobody changes data.
    pub(super) fn next(&self, _closed: &Closed<'_>) -> u64 {
        self.instants.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether all data was removed behind this instant.
    pub(super) fn was_emptied_since(&self, place: u64) -> bool {
        self.emptied.load(Ordering::Relaxed) > place
    }

    /// Whether the file holds data of a later instant.
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
    file: PathBuf,
    place: u64,
    /// Changes up to there.
    changes: u64,
}

impl Saver {
    /// All data has just been removed, and these are the changes up to that. Returns whether
    /// [`Saver::save_emptied`] has to follow.
    pub fn note_emptied(&self, engine: &Engine, changes: u64, closed: &Closed<'_>) -> bool {
        let place = self.order.next(closed);
        self.order.emptied.store(place, Ordering::Relaxed);
        let config = engine.config.load();
        if config.save.is_empty() {
            return false;
        }
        *self.emptied.lock() = Some(Emptied { file: file_of(&config), place, changes });
        true
    }

    /// Saves that there is no data, as of the last time that this was noted. A failure is in the log;
    /// the changes then count as not saved.
    pub fn save_emptied(&self, engine: &Engine) {
        // Another client's errand, whose turn came first, has done this one's too.
        let Some(emptied) = self.emptied.lock().take() else { return };
        match self.write_emptied(engine, &emptied) {
            Ok(()) => {
                engine.host.log(LogLevel::Notice, "DB saved on disk");
                engine.saving.note_emptied(now(), emptied.changes);
            }
            // A later file is there.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let reason = crate::files::reason(&error);
                let line = format!("Error saving that all data was removed: {reason}");
                engine.host.log(LogLevel::Warning, &line);
            }
        }
    }

    fn write_emptied(&self, engine: &Engine, emptied: &Emptied) -> io::Result<()> {
        let mut filed = self.order.filed.lock();
        if *filed > emptied.place {
            return Err(not_wanted());
        }
        self.claim(&emptied.file).map_err(io::Error::other)?;
        // Not the name of a file that is being written beside this one.
        let name = format!("temp-emptied-{}.rdb", std::process::id());
        let temporary = emptied.file.with_file_name(name);
        replace(&*self.disk, &emptied.file, &temporary, |file| {
            snapshot::write_none(engine, Purpose::Whole, file)
        })?;
        *filed = emptied.place;
        self.disk.sync_directory(directory_of(&emptied.file))
    }
}
