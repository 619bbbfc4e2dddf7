//! Whether data is being loaded, from where, and how far the load is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Whether data is being loaded, and how far the load is.
#[derive(Debug, Default)]
pub struct Loading {
    on: AtomicBool,
    /// Unix seconds.
    started_at: AtomicU64,
    total_bytes: AtomicU64,
    loaded_bytes: AtomicU64,
    /// The memory that the writer of the file used, in bytes.
    writer_memory: AtomicU64,
    keys_loaded: AtomicU64,
    keys_expired: AtomicU64,
}

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// When it began, in Unix seconds.
    pub started_at: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
    /// Bytes that were read.
    pub loaded_bytes: u64,
    /// The memory that the writer of the file used, in bytes; 0 if the file does not say.
    pub writer_memory: u64,
}

impl Progress {
    /// The part that was read, in percent.
    pub fn percentage(&self) -> f64 {
        if self.total_bytes == 0 {
            return 0.0;
        }
        self.loaded_bytes as f64 / self.total_bytes as f64 * 100.0
    }

    /// How many more seconds the load will take at the pace up to `now`, in Unix seconds. 1 as long
    /// as nothing is known.
    pub fn remaining_seconds(&self, now: u64) -> u64 {
        let elapsed = now.saturating_sub(self.started_at);
        if elapsed == 0 {
            return 1;
        }
        let remaining = self.total_bytes.saturating_sub(self.loaded_bytes);
        let seconds = u128::from(elapsed) * u128::from(remaining);
        u64::try_from(seconds / (u128::from(self.loaded_bytes) + 1)).unwrap_or(u64::MAX)
    }
}

impl Loading {
    /// Begins to load files of this many bytes.
    pub fn begin(&self, total_bytes: u64) {
        self.started_at.store(base::clock::now_ms() / 1000, Relaxed);
        self.total_bytes.store(total_bytes, Relaxed);
        self.loaded_bytes.store(0, Relaxed);
        self.writer_memory.store(0, Relaxed);
        self.on.store(true, Relaxed);
    }

    /// Notes how many bytes of all files were read so far.
    pub fn note_bytes(&self, loaded: u64) {
        self.loaded_bytes.store(loaded, Relaxed);
    }

    /// Notes how much memory the writer of the file used.
    pub fn note_writer_memory(&self, bytes: u64) {
        self.writer_memory.store(bytes, Relaxed);
    }

    /// Notes the counts of an RDB file, which INFO shows from now on.
    pub fn note_outcome(&self, counts: Counts) {
        self.keys_loaded.store(counts.loaded, Relaxed);
        self.keys_expired.store(counts.expired, Relaxed);
    }

    /// Ends.
    pub fn end(&self) {
        self.on.store(false, Relaxed);
    }

    /// Whether data is being loaded.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// The progress; `None` if nothing is being loaded.
    pub fn progress(&self) -> Option<Progress> {
        self.is_on().then(|| Progress {
            started_at: self.started_at.load(Relaxed),
            total_bytes: self.total_bytes.load(Relaxed),
            loaded_bytes: self.loaded_bytes.load(Relaxed),
            writer_memory: self.writer_memory.load(Relaxed),
        })
    }

    /// The counts of the last RDB file.
    pub fn last_outcome(&self) -> Counts {
        Counts { loaded: self.keys_loaded.load(Relaxed), expired: self.keys_expired.load(Relaxed) }
    }
}

/// The source, if a command asked for the load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The RDB file.
    Snapshot(Duplicates),
    /// The append-only file.
    AppendOnly,
}

/// A load failed. The log says why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadFailed;

/// Keys that were taken in and left out.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// In the keyspace now.
    pub loaded: u64,
    /// Left out, because they have expired.
    pub expired: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.loaded += other.loaded;
        self.expired += other.expired;
    }
}

/// What happens to a key that exists already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplicates {
    /// The file is damaged.
    Refuse,
    /// The one from the file takes its place.
    Replace,
}
