//! The view of a running load from another thread: how far it is, and the way to end it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::clock::monotonic_ns;

/// Ends a load early, and shows its progress.
#[derive(Debug, Default)]
pub struct Control {
    stopped: AtomicBool,
    /// When the measured part began on the monotonic clock; 0 before.
    started: AtomicU64,
    requests: AtomicU64,
    errors: AtomicU64,
    nanoseconds: AtomicU64,
}

/// How far a load is. Everything counts from the end of the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Seconds since the measured part began; 0 before.
    pub seconds: f64,
    /// Requests that were answered.
    pub requests: u64,
    /// Errors among them, and requests lost with their connection.
    pub errors: u64,
    /// The sum of all response times, in milliseconds.
    pub response_ms: f64,
}

impl Control {
    /// Asks the load to end soon. Its recording until then is kept.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether [`Control::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// How far the load is.
    pub fn progress(&self) -> Progress {
        let started = self.started.load(Ordering::Relaxed);
        let now = monotonic_ns();
        let seconds = if started == 0 { 0.0 } else { now.saturating_sub(started) as f64 / 1e9 };
        Progress {
            seconds,
            requests: self.requests.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            response_ms: self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e6,
        }
    }

    /// The measured part begins at this time of the monotonic clock.
    pub(crate) fn begin(&self, at: u64) {
        self.started.store(at.max(1), Ordering::Relaxed);
    }

    /// The measured part begins now.
    pub(crate) fn begin_now(&self) {
        self.begin(monotonic_ns());
    }

    /// Counts what a thread has seen since its last report.
    pub(crate) fn add(&self, requests: u64, errors: u64, nanoseconds: u64) {
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.errors.fetch_add(errors, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}
