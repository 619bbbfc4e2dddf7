//! What the server knows about saving its data to a file: for INFO, LASTSAVE, the `save` rules and
//! `stop-writes-on-bgsave-error`. The host does the saving itself.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::command::error::CommandError;
use crate::session::attachment::Waiter;
use config::Config;

/// Seconds after a failed save before the rules begin another one.
const RETRY_SECONDS: u64 = 5;

/// Why a save does not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// One is under way.
    InProgress,
    /// The append-only file is being rewritten.
    Rewriting,
    /// The system provides no thread. The log says why.
    NoThread,
}

/// The data was not saved. The log says why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SaveFailed;

/// The source of a request to save.
pub enum SaveRequest {
    /// SAVE: the client waits until it is done.
    Answer(Waiter),
    /// BGSAVE. While the append-only file is being rewritten, a scheduled save follows.
    Background {
        /// SCHEDULE was given.
        schedule: bool,
        /// The client, which goes on when it is settled what data is saved: until then it must not
        /// change the data. It is answered only when the save is [`Accepted::Started`].
        begun: Option<Waiter>,
    },
}

/// The answer to a [`SaveRequest`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accepted {
    /// It has begun.
    Started,
    /// It follows the rewrite that is under way.
    Scheduled,
}

/// See the module's text. Times are Unix seconds.
pub struct Saving {
    in_progress: AtomicBool,
    /// No client waits for the save in progress.
    in_background: AtomicBool,
    began_at: AtomicU64,
    /// The date of the last file.
    last_save: AtomicU64,
    /// The same instant, as the other times here: see [`Saving::new`].
    saved_at: AtomicU64,
    last_attempt: AtomicU64,
    last_failed: AtomicBool,
    /// -1 before the first.
    last_seconds: AtomicI64,
    saves: AtomicU64,
    keys_written: AtomicU64,
    keys_total: AtomicU64,
    /// Changes that are in the last file.
    saved_changes: AtomicU64,
}

/// The metrics of INFO.
#[derive(Clone, Copy, Debug)]
pub struct SavingMetrics {
    /// A file is being written.
    pub in_progress: bool,
    /// For how many seconds.
    pub current_seconds: Option<u64>,
    /// When the last one was complete.
    pub last_save: u64,
    /// Whether the last attempt failed. Attempts in the background count, and other attempts that
    /// succeeded.
    pub last_failed: bool,
    /// How long the last save in the background took, in seconds; -1 before the first.
    pub last_seconds: i64,
    /// Files that were asked for.
    pub saves: u64,
    /// Keys of the present file that are written.
    pub keys_written: u64,
    /// Keys that it will have.
    pub keys_total: u64,
}

impl Saving {
    /// A server that starts at this second counts its data as saved then. All seconds are those of
    /// [`base::clock::monotonic_us`], so that no rule waits for a clock that was set back.
    pub(crate) fn new(now: u64) -> Saving {
        Saving {
            in_progress: AtomicBool::new(false),
            in_background: AtomicBool::new(false),
            began_at: AtomicU64::new(0),
            last_save: AtomicU64::new(base::clock::now_ms() / 1000),
            saved_at: AtomicU64::new(now),
            last_attempt: AtomicU64::new(0),
            last_failed: AtomicBool::new(false),
            last_seconds: AtomicI64::new(-1),
            saves: AtomicU64::new(0),
            keys_written: AtomicU64::new(0),
            keys_total: AtomicU64::new(0),
            saved_changes: AtomicU64::new(0),
        }
    }

    /// A file is begun; the last one has ended. If it was written in the background and fails, only
    /// INFO and the refusal of writes show that.
    pub fn begin(&self, now: u64, in_background: bool) {
        self.in_progress.store(true, Relaxed);
        self.in_background.store(in_background, Relaxed);
        self.began_at.store(now, Relaxed);
        self.last_attempt.store(now, Relaxed);
        self.keys_written.store(0, Relaxed);
        self.keys_total.store(0, Relaxed);
    }

    /// It is settled what data is saved; it has this many keys.
    pub fn note_total(&self, keys: u64) {
        self.keys_total.store(keys, Relaxed);
    }

    /// A file was requested, by SAVE, BGSAVE or a rule.
    pub fn note_request(&self) {
        self.saves.fetch_add(1, Relaxed);
    }

    /// This many keys are written.
    pub fn note_progress(&self, keys: u64) {
        self.keys_written.store(keys, Relaxed);
    }

    /// The file is complete and has all changes up to this count, or it was given up.
    pub fn end(&self, now: u64, saved_changes: Option<u64>) {
        let in_background = self.in_background.load(Relaxed);
        if in_background {
            let seconds = now.saturating_sub(self.began_at.load(Relaxed));
            self.last_seconds.store(seconds.cast_signed(), Relaxed);
        }
        if saved_changes.is_some() || in_background {
            self.last_failed.store(saved_changes.is_none(), Relaxed);
        }
        if let Some(changes) = saved_changes {
            self.note_saved(now, changes);
        }
        self.in_progress.store(false, Relaxed);
    }

    /// The file is no longer wanted, since its data was removed: nothing has failed.
    pub fn give_up(&self, now: u64) {
        let seconds = now.saturating_sub(self.began_at.load(Relaxed));
        self.last_seconds.store(seconds.cast_signed(), Relaxed);
        self.in_progress.store(false, Relaxed);
    }

    /// All data was removed, and a file with all changes up to this count says so. It does not
    /// count as a requested file.
    pub fn note_emptied(&self, now: u64, saved_changes: u64) {
        self.note_saved(now, saved_changes);
        self.last_failed.store(false, Relaxed);
    }

    /// Changes up to this count are in a file, but not in a saved one.
    pub fn note_kept(&self, changes: u64) {
        // An earlier file may be told of later.
        self.saved_changes.fetch_max(changes, Relaxed);
    }

    fn note_saved(&self, now: u64, changes: u64) {
        self.note_kept(changes);
        self.last_save.store(base::clock::now_ms() / 1000, Relaxed);
        self.saved_at.store(now, Relaxed);
    }

    /// CONFIG RESETSTAT.
    pub fn reset_stats(&self) {
        self.saves.store(0, Relaxed);
    }

    /// The metrics of INFO at this second.
    pub fn metrics(&self, now: u64) -> SavingMetrics {
        let in_progress = self.in_progress.load(Relaxed);
        let running = now.saturating_sub(self.began_at.load(Relaxed));
        SavingMetrics {
            in_progress,
            current_seconds: in_progress.then_some(running),
            last_save: self.last_save.load(Relaxed),
            last_failed: self.last_failed.load(Relaxed),
            last_seconds: self.last_seconds.load(Relaxed),
            saves: self.saves.load(Relaxed),
            keys_written: if in_progress { self.keys_written.load(Relaxed) } else { 0 },
            keys_total: if in_progress { self.keys_total.load(Relaxed) } else { 0 },
        }
    }

    /// Whether a file is being written for which a client waits, or the server.
    pub fn is_in_foreground(&self) -> bool {
        self.in_progress.load(Relaxed) && !self.in_background.load(Relaxed)
    }

    /// When the last file was complete, in Unix seconds: LASTSAVE.
    pub fn last_save(&self) -> u64 {
        self.last_save.load(Relaxed)
    }

    /// Changes that are in the last file.
    pub(crate) fn saved_changes(&self) -> u64 {
        self.saved_changes.load(Relaxed)
    }

    /// The `save` rule that asks for a file now, at this second, after this many changes: (changes,
    /// seconds).
    pub(crate) fn rule_met(&self, config: &Config, changes: u64, now: u64) -> Option<(u32, u64)> {
        let since_attempt = now.saturating_sub(self.last_attempt.load(Relaxed));
        let hurt = self.last_failed.load(Relaxed) && since_attempt <= RETRY_SECONDS;
        if self.in_progress.load(Relaxed) || hurt {
            return None;
        }
        let since = now.saturating_sub(self.saved_at.load(Relaxed));
        let rule = config
            .save
            .iter()
            .find(|rule| changes >= u64::from(rule.changes) && since > rule.seconds);
        rule.map(|rule| (rule.changes, rule.seconds))
    }

    /// Whether writes are refused, because the last attempt failed and the settings ask for that.
    #[inline]
    pub(crate) fn stops_writes(&self, config: &Config) -> bool {
        self.last_failed.load(Relaxed)
            && config.stop_writes_on_bgsave_error
            && !config.save.is_empty()
    }
}

/// The answer to a write while data cannot be saved.
pub(crate) fn refusal() -> CommandError {
    CommandError::text(
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist \
         to disk. Commands that may modify the data set are disabled, because this instance is \
         configured to report errors during writes if RDB snapshotting fails \
         (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the \
         RDB error.",
    )
}
