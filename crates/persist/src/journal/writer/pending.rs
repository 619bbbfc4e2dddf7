//! Written data that is not durable yet, and the threads that make it durable.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::sync::AtomicBool;
use store::sync::thread::JoinHandle;

use crate::disk::DiskFile;

/// The errors of a sync, each with the number of the series of its file.
pub(super) type Errors = Vec<(u64, io::Error)>;

/// A thread that performs syncs. It returns the errors, and how long it took.
pub(super) type Syncer = JoinHandle<(Errors, Duration)>;

/// A file that was followed by another one before it was durable.
pub(super) struct Left {
    pub(super) file: Box<dyn DiskFile>,
    /// The number of the file's series.
    pub(super) series: u64,
    /// The offset after it.
    pub(super) end: u64,
    /// When the oldest data that is not durable was appended.
    pub(super) since: Instant,
}

/// Syncs that another thread waits for.
pub(super) struct SyncElsewhere {
    pub(super) thread: Syncer,
    /// The thread ends now.
    pub(super) done: Arc<AtomicBool>,
    /// The offset after the data that it makes durable.
    pub(super) target: u64,
    /// When the oldest of that was appended.
    pub(super) since: Instant,
    /// The present file is among those that are synced.
    pub(super) slows_writing: bool,
}
