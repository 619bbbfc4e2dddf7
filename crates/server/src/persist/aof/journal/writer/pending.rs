//! What is written and not durable yet, and those who make it so.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::sync::AtomicBool;
use store::sync::thread::JoinHandle;

use crate::persist::disk::DiskFile;

/// What a sync failed with, and the number of the series that its file belongs to.
pub(super) type Errors = Vec<(u64, io::Error)>;

/// A thread that performs syncs. It returns what failed, and how long it took.
pub(super) type Syncer = JoinHandle<(Errors, Duration)>;

/// A file that another one has followed before it was durable.
pub(super) struct Left {
    pub(super) file: Box<dyn DiskFile>,
    /// The number of the series that it belongs to.
    pub(super) series: u64,
    /// The offset behind it.
    pub(super) end: u64,
    /// When the oldest of what is not durable was appended.
    pub(super) since: Instant,
}

/// Syncs that another thread waits for.
pub(super) struct SyncElsewhere {
    pub(super) thread: Syncer,
    /// The thread ends now.
    pub(super) done: Arc<AtomicBool>,
    /// The offset behind what it makes durable.
    pub(super) target: u64,
    /// When the oldest of that was appended.
    pub(super) since: Instant,
    /// The present file is among those that are synced.
    pub(super) slows_writing: bool,
}
