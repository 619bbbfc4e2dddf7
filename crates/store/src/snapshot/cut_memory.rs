//! How much waits for the reader of a cut.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that were handed over to the reader of a cut, and that it has not written yet.
#[derive(Default)]
pub(crate) struct CutMemory {
    /// Copies.
    copied: AtomicUsize,
    /// Bytes that only the reader still needs, because their key was removed or replaced, or
    /// usually will be. They were there before the cut.
    kept: AtomicUsize,
}

impl CutMemory {
    /// Copies alone: the memory that the cut has added so far.
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
        let before = self.copied.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(bytes <= before, "more copies are shown than were handed over");
    }

    pub(crate) fn add_kept(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove_kept(&self, bytes: usize) {
        let before = self.kept.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(bytes <= before, "more is let go than was kept");
    }
}
