//! Data on disk, as the engine asks for it: files, and the threads that write them; one trait for
//! each kind of question. The other questions to the world outside are in [`crate::host`]; these
//! name the engine.

use std::time::Duration;

use store::gate::StoppedWorld;

use crate::engine::Engine;
use crate::files::append_only::{self, RewriteAnswer};
use crate::files::progress::{LoadFailed, Source};
use crate::files::saving::{Accepted, Refusal, SaveFailed, SaveRequest};
use crate::session::attachment::Waiter;

/// Files with all data: RDB.
pub trait Snapshots {
    /// Begins to save all data to the file that the settings name.
    ///
    /// # Errors
    /// Why it does not.
    fn save(&self, request: SaveRequest) -> Result<Accepted, Refusal>;

    /// Saves all data to the file, while nothing changes: DEBUG RELOAD.
    ///
    /// # Errors
    /// The log says why.
    fn save_standing(&self, engine: &Engine, stopped: &StoppedWorld<'_>) -> Result<(), SaveFailed>;

    /// All data was just removed: FLUSHALL. `changes` counts the changes up to now. A file that is
    /// being written is of no use any more. Returns whether a file has to say that there is no
    /// data: [`Snapshots::save_emptied`].
    fn note_emptied(&self, engine: &Engine, changes: u64, stopped: &StoppedWorld<'_>) -> bool;

    /// Begins to save the fact that there is no data, and ends the wait of `waiter` without a reply
    /// when that is done: its reply is written already.
    fn save_emptied(&self, waiter: Waiter);
}

/// The append-only file. Effects reach it through [`crate::journal::Journal`].
pub trait AppendOnlyFile {
    /// Begins to rewrite the append-only file, or with `soon` only schedules that.
    fn rewrite_append_only(&self, soon: bool) -> RewriteAnswer;

    /// How the append-only file is.
    fn append_only(&self) -> append_only::Metrics;

    /// Resets the counters of the append-only file: CONFIG RESETSTAT.
    fn reset_append_only_stats(&self);

    /// Makes each write to the append-only file take this much longer: DEBUG AOF-FLUSH-SLEEP.
    fn delay_append_only(&self, delay: Duration);
}

/// The way of data back from files.
pub trait Loader {
    /// Loads data in addition to what is there: DEBUG RELOAD and LOADAOF. After an error, the data
    /// that was loaded before it stays.
    ///
    /// # Errors
    /// A file cannot be loaded; the log says why.
    fn load_data(
        &self,
        engine: &Engine,
        source: Source,
        stopped: &StoppedWorld<'_>,
    ) -> Result<(), LoadFailed>;
}

/// Work that a slow disk may delay, done away from the workers. Returns the reply.
pub type BackgroundJob = Box<dyn FnOnce(&Engine) -> Vec<u8> + Send>;

/// The thread for [`BackgroundJob`]s.
pub trait Background {
    /// Has another thread do work that a disk may make slow, and answers `waiter` with the result.
    fn run_in_background(&self, waiter: Waiter, job: BackgroundJob);
}

/// All questions together.
pub trait Storage: Snapshots + AppendOnlyFile + Loader + Background + Send + Sync {}

impl<T> Storage for T where T: Snapshots + AppendOnlyFile + Loader + Background + Send + Sync {}
