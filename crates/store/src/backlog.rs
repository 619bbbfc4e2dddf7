//! How much waits for the reader of a cut.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that were handed over to the reader of a cut, and that it has not written yet.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Copies.
    copied: AtomicUsize,
    /// What belongs to the reader alone since it was removed, or replaced, or most often is: it was
    /// there before.
    kept: AtomicUsize,
}

impl Backlog {
    /// Copies alone: what the cut has cost so far.
    pub(crate) fn copied(&self) -> usize {
        self.copied.load(Ordering::Relaxed)
    }

    /// Everything.
    pub(crate) fn bytes(&self) -> usize {
        self.copied() + self.kept.load(Ordering::Relaxed)
    }

    pub(crate) fn add_copied(&self, bytes: usize) {
        self.copied.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove_copied(&self, bytes: usize) {
        self.copied.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_kept(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove_kept(&self, bytes: usize) {
        self.kept.fetch_sub(bytes, Ordering::Relaxed);
    }
}
