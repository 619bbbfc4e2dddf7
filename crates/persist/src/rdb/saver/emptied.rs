//! What FLUSHALL means for files: one that is being written gives way, and if there are `save`
//! rules, the file says at once that there is no data.
//!
//! The file without data needs no cut, so it can be written while another file reads one. A thread
//! of its own writes it, so only the client that asked waits. Commands go on meanwhile and other
//! files may be begun: of several, the one with the latest data stays.

use std::io;
use std::sync::atomic::Ordering;

use engine::engine::Engine;
use engine::host::LogLevel;
use store::gate::StoppedWorld;

use super::order::Emptied;
use super::{Saver, file_of, now};
use crate::disk::{directory_of, replace};
use crate::snapshot::{self, Purpose, not_wanted};
use crate::stale;

impl Saver {
    /// All data has just been removed, and these are the changes up to that. Returns whether
    /// [`Saver::save_emptied`] has to follow.
    pub fn note_emptied(&self, engine: &Engine, changes: u64, stopped: &StoppedWorld<'_>) -> bool {
        let sequence = self.order.next(stopped);
        self.order.emptied.store(sequence, Ordering::Relaxed);
        let config = engine.config.load();
        if config.save.is_empty() {
            return false;
        }
        *self.emptied.lock() = Some(Emptied { file: file_of(&config), sequence, changes });
        true
    }

    /// Saves that there is no data, as of the last time that this was noted. A failure is in the
    /// log; the changes then count as not saved.
    pub fn save_emptied(&self, engine: &Engine) {
        // Another client's job came first and has done this one's work too.
        let Some(emptied) = self.emptied.lock().take() else { return };
        match self.write_emptied(engine, &emptied) {
            Ok(()) => {
                engine.host.log(LogLevel::Notice, "DB saved on disk");
                engine.saving.note_emptied(now(), emptied.changes);
            }
            // A later file is there.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let reason = process::paths::reason(&error);
                let line = format!("Error saving that all data was removed: {reason}");
                engine.host.log(LogLevel::Warning, &line);
            }
        }
    }

    fn write_emptied(&self, engine: &Engine, emptied: &Emptied) -> io::Result<()> {
        let filed = self.order.file(&emptied.file, emptied.sequence);
        let mut filed = filed.ok_or_else(not_wanted)?;
        let _claimed = self.claim(&emptied.file).map_err(io::Error::other)?;
        // Not the name of a file that is being written at the same time.
        let temporary = stale::unfinished(&emptied.file, "emptied-");
        replace(&*self.disk, &emptied.file, &temporary, |file| {
            snapshot::write_none(engine, Purpose::Whole, file)
        })?;
        *filed = emptied.sequence;
        self.disk.sync_directory(directory_of(&emptied.file))
    }
}
