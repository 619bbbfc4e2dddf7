//! What suspends commands.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What suspends commands: CLIENT PAUSE, a stop of the server that is under way, and FAILOVER. None
/// ends another. Written with the world stopped; by UNPAUSE inside its gate; or before scripts are
/// ended in the middle, which stay inside theirs.
#[derive(Default)]
pub struct Pause {
    /// Until when, as [`crate::turn::Turn::monotonic`], at least writes are suspended: the only
    /// field to look at while nothing is.
    until: AtomicU64,
    /// Until when CLIENT PAUSE asks for it.
    asked_until: AtomicU64,
    /// CLIENT PAUSE asks for writes alone.
    asked_writes_only: AtomicBool,
    /// A stop suspends writes, for as long as it takes.
    stopping: AtomicBool,
    /// FAILOVER suspends writes, or the hand-over of a node of a cluster, for as long as it takes.
    handing_over: AtomicBool,
}

impl Pause {
    /// CLIENT PAUSE for this many milliseconds. A pause that is on becomes neither shorter nor
    /// weaker.
    pub fn extend(&self, now: u64, timeout: u64, writes_only: bool) {
        let running = self.asked_until.load(Relaxed);
        let still_all = running > now && !self.asked_writes_only.load(Relaxed);
        self.asked_until.store(running.max(now.saturating_add(timeout)), Relaxed);
        self.asked_writes_only.store(writes_only && !still_all, Relaxed);
        self.combine();
    }

    /// CLIENT UNPAUSE.
    pub fn end(&self) {
        self.asked_until.store(0, Relaxed);
        self.combine();
    }

    /// Sets whether a stop suspends writes.
    pub(crate) fn set_stopping(&self, stopping: bool) {
        self.stopping.store(stopping, Relaxed);
        self.combine();
    }

    /// Sets whether FAILOVER suspends writes.
    pub(crate) fn set_handing_over(&self, handing_over: bool) {
        self.handing_over.store(handing_over, Relaxed);
        self.combine();
    }

    /// Whether a stop suspends writes, those of a primary too.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// Whether FAILOVER suspends writes, or the hand-over of a node of a cluster.
    pub fn is_handing_over(&self) -> bool {
        self.handing_over.load(Relaxed)
    }

    fn combine(&self) {
        let until = match self.stopping.load(Relaxed) || self.handing_over.load(Relaxed) {
            true => u64::MAX,
            false => self.asked_until.load(Relaxed),
        };
        self.until.store(until, Relaxed);
    }

    /// Whether at least writes are suspended.
    #[inline]
    pub(crate) fn is_on(&self, now: u64) -> bool {
        self.until.load(Relaxed) > now
    }

    /// Until when a command is suspended, depending on whether it is a write.
    #[inline]
    pub fn suspends(&self, now: u64, writes: impl FnOnce() -> bool) -> Option<u64> {
        if self.is_on(now) { self.suspends_now(now, writes()) } else { None }
    }

    #[cold]
    fn suspends_now(&self, now: u64, writes: bool) -> Option<u64> {
        if writes {
            return Some(self.until.load(Relaxed));
        }
        let asked = self.asked_until.load(Relaxed);
        (asked > now && !self.asked_writes_only.load(Relaxed)).then_some(asked)
    }
}
