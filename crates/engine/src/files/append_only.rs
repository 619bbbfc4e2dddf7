//! What the engine knows about the append-only file: the requests of BGREWRITEAOF, and the metrics
//! of INFO. The host writes the file itself.

use crate::observe::stats::Durations;

/// The answer to BGREWRITEAOF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RewriteAnswer {
    /// It has begun.
    Started,
    /// It begins when the running snapshot is written.
    Scheduled,
    /// One is under way.
    InProgress,
}

/// Whether something succeeded when it was tried last.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum LastStatus {
    /// It did, or was never tried.
    #[default]
    Ok,
    /// It did not.
    Failed,
}

impl LastStatus {
    /// The word in INFO.
    pub fn word(self) -> &'static str {
        match self {
            LastStatus::Ok => "ok",
            LastStatus::Failed => "err",
        }
    }
}

/// The rewrites of the append-only file.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rewrites {
    /// For how many seconds the running one has been going on.
    pub current_seconds: Option<u64>,
    /// One will begin when nothing else reads the data.
    pub scheduled: bool,
    /// How long the last one took, in seconds.
    pub last_seconds: Option<u64>,
    /// The result of the last one.
    pub last_status: LastStatus,
    /// How many were begun.
    pub begun: u64,
    /// How many of the last ones failed in a row.
    pub failures: u64,
}

/// The work of the journal's thread, while it has any.
#[derive(Clone, Copy, Default, Debug)]
pub struct Writing {
    /// Bytes of all files to be loaded.
    pub size: u64,
    /// Its size after the last rewrite, or at the start.
    pub base_size: u64,
    /// Bytes that were not yet given to the system.
    pub pending: u64,
    /// Whether something was given to the system that is not yet durable.
    pub pending_sync: bool,
    /// Syncs that came later than `everysec` promises.
    pub delayed_syncs: u64,
    /// How long syncs took.
    pub syncs: Durations,
}

/// The append-only file as INFO shows it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Metrics {
    /// Absent while there is no file.
    pub writing: Option<Writing>,
    /// The result of the last write to the file, or of the last sync.
    pub last_write: LastStatus,
    /// Its rewrites.
    pub rewrites: Rewrites,
}
