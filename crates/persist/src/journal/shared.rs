//! What the journal, the writer of its file and its observer share.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use config::AppendFsync;
use engine::observe::stats::{Counter, Histogram};
use store::sync::{AtomicBool, AtomicU8, AtomicU64, Condvar, Mutex};

use super::stream::Stream;

/// Is told how far the journal is. Called by the thread that writes or syncs, which does nothing
/// else meanwhile.
pub trait Observer: Send + Sync {
    /// Effects up to this offset are durable, or `ServerJournal::released` has changed otherwise.
    fn progressed(&self, synced: u64);

    /// A write or a sync has failed. Replies that wait for effects after [`Failure::synced`] must
    /// not leave.
    fn failed(&self, failure: &Failure);

    /// A write that had failed has succeeded.
    fn recovered(&self);

    /// An event that LATENCY knows by this name took this long.
    fn took(&self, event: &'static str, duration: Duration);
}

/// What the journal's thread was doing when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writing, which is tried again.
    Write,
    /// Syncing. The file is given up.
    Sync,
}

/// Why nothing is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The operation.
    pub operation: Operation,
    /// The system's number for the error, if it was the system's.
    pub errno: Option<i32>,
    /// The error in words.
    pub reason: String,
    /// Effects after this offset are not durable.
    pub synced: u64,
}

impl Failure {
    /// The error in the system's words alone, as clients see it.
    pub fn reason(&self) -> String {
        match self.errno {
            Some(number) => process::paths::reason(&io::Error::from_raw_os_error(number)),
            None => self.reason.clone(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self.operation {
            Operation::Write => "writing to the append-only file",
            Operation::Sync => "syncing the append-only file",
        };
        write!(formatter, "{operation}: {}", self.reason)
    }
}

impl std::error::Error for Failure {}

/// The times that the journal's thread goes by.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Under `everysec` a sync begins when the oldest effect that is not durable is this old, so
    /// that it is durable within a second.
    pub sync_age: Duration,
    /// The disk is late when the oldest effect that is not durable is this old.
    pub late: Duration,
    /// The pause between two writes, unless a client waits for them: many effects share one.
    pub pause: Duration,
    /// The pause before a failed write is tried again.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            sync_age: Duration::from_millis(800),
            late: Duration::from_secs(2),
            pause: Duration::from_millis(4),
            retry: Duration::from_secs(1),
        }
    }
}

/// Figures of the thread's work.
#[derive(Default)]
pub struct Metrics {
    /// Calls to write.
    pub writes: Counter,
    /// Syncs.
    pub syncs: Counter,
    /// Syncs after which an effect had waited longer than [`Timing::late`]: `aof_delayed_fsync`.
    pub delayed_syncs: Counter,
    /// How long syncs took.
    pub sync_durations: Histogram,
}

/// Settings that change while the journal runs.
pub(super) struct JournalConfig {
    pub(super) policy: AtomicU8,
    pub(super) syncs_paused: AtomicBool,
    /// One of the two above has changed, so that more or less may be released than before.
    pub(super) changed: AtomicBool,
    pub(super) write_delay_us: AtomicU64,
}

/// How far the file is, in offsets.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) written: AtomicU64,
    /// A reply waits until more is written.
    pub(super) write_awaited: AtomicBool,
    pub(super) synced: AtomicU64,
    /// Since when something is not durable, on [`base::clock::monotonic_ns`]; 0 if everything is.
    pub(super) unsynced_since_ns: AtomicU64,
    /// The length of the present file.
    pub(super) file_length: AtomicU64,
}

impl Progress {
    /// The system has everything up to this offset.
    pub(super) fn note_written(&self, offset: u64) {
        debug_assert!(
            self.written.load(Ordering::Relaxed) <= offset,
            "what is written stays written"
        );
        self.written.store(offset, Ordering::Release);
    }

    /// Everything up to this offset is durable.
    pub(super) fn note_synced(&self, offset: u64) {
        assert!(
            offset <= self.written.load(Ordering::Relaxed),
            "nothing is durable that is not written"
        );
        self.synced.fetch_max(offset, Ordering::Release);
    }

    pub(super) fn set_unsynced_since(&self, since: Instant) {
        let age = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let since = base::clock::monotonic_ns().saturating_sub(age).max(1);
        self.unsynced_since_ns.store(since, Ordering::Relaxed);
    }
}

/// State that appenders and the thread share.
pub(super) struct Shared {
    pub(super) stream: Stream,
    /// Effects go to a file.
    pub(super) has_file: AtomicBool,
    /// The first file has no value yet, or is not even begun.
    pub(super) beginning: AtomicBool,
    /// Why that does not end, if it is known, and whether it is.
    pub(super) cannot_begin: Mutex<Option<String>>,
    pub(super) is_stuck_beginning: AtomicBool,
    pub(super) progress: Progress,
    pub(super) config: JournalConfig,
    pub(super) timing: Timing,
    pub(super) metrics: Metrics,
    /// The writer was in use for longer than a worker waits: the thread will write.
    pub(super) locked_long: AtomicBool,
    /// The thread has nothing to do and wants to be woken when it has.
    pub(super) resting: AtomicBool,
    pub(super) stopping: AtomicBool,
    /// A thread waits until everything up to here is durable.
    pub(super) flush_to: AtomicU64,
    /// Effects up to here are in a base: they need not be written.
    pub(super) replaced_to: AtomicU64,
    /// Why nothing is written. A thread that waits for a flush locks it.
    pub(super) failure: Mutex<Option<Failure>>,
    /// Whether there is a failure.
    pub(super) failed: AtomicBool,
    /// Whether the file was given up: only another file with a base of its own repairs that.
    pub(super) given_up: AtomicBool,
    /// Why writes are refused although nothing has failed, in words.
    pub(super) refusal: Mutex<Option<String>>,
    /// Whether there is such a reason.
    pub(super) refusing: AtomicBool,
    /// What was durable when the refusing, or the beginning, began.
    pub(super) refused_from: AtomicU64,
    /// Where the last file has ended. What is appended later, while there is none, is for followers
    /// alone.
    pub(super) ended_at: AtomicU64,
    pub(super) settled: Condvar,
    pub(super) observer: Arc<dyn Observer>,
}

impl Shared {
    /// Must be called with the queue locked, in which the state of effects changes.
    pub(super) fn forget_failure(&self) {
        *self.failure.lock() = None;
        self.failed.store(false, Ordering::Relaxed);
        self.given_up.store(false, Ordering::Relaxed);
    }
}

impl JournalConfig {
    #[inline]
    pub(super) fn policy(&self) -> AppendFsync {
        match self.policy.load(Ordering::Relaxed) {
            policy if policy == AppendFsync::Always as u8 => AppendFsync::Always,
            policy if policy == AppendFsync::EverySecond as u8 => AppendFsync::EverySecond,
            _ => AppendFsync::No,
        }
    }

    #[inline]
    pub(super) fn syncs_paused(&self) -> bool {
        self.syncs_paused.load(Ordering::Relaxed)
    }

    pub(super) fn write_delay(&self) -> Duration {
        Duration::from_micros(self.write_delay_us.load(Ordering::Relaxed))
    }
}
