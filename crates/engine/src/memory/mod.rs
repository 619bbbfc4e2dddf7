//! What the engine knows of memory besides the allocator: how much waits to be freed, and how much
//! a thread sees in use.
//!
//! | file | what it answers |
//! |---|---|
//! | `candidates` | which key goes next, when one has to? |

pub(crate) mod candidates;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::host::Host;

/// What the engine knows about memory besides the allocator.
#[derive(Default)]
pub struct Memory {
    /// Bytes in use when the server had started.
    startup: AtomicUsize,
    /// The most bytes that a sample has seen.
    peak: AtomicUsize,
    lazy: Arc<LazyFree>,
    /// Bytes of memory in which all workers read and parse requests.
    pub(crate) scratch: AtomicUsize,
    /// Since when more than `maxmemory` is used, in Unix microseconds; 0 while it is not.
    exceeded_since: AtomicU64,
    /// Microseconds for which memory had exceeded the limit up to then.
    exceeded_before: AtomicU64,
}

/// Memory that was handed to the background to be freed.
#[derive(Default)]
struct LazyFree {
    pending_objects: AtomicU64,
    pending_bytes: AtomicUsize,
    freed_objects: AtomicU64,
}

/// Something on its way to be freed, counted until it is.
pub(crate) struct PendingFree<T> {
    garbage: Option<T>,
    objects: u64,
    bytes: usize,
    lazy: Arc<LazyFree>,
    host: Arc<dyn Host>,
}

impl<T> Drop for PendingFree<T> {
    fn drop(&mut self) {
        drop(self.garbage.take());
        // Published first: otherwise a thread that looks in between takes it for data, and evicts
        // as much.
        self.host.used_memory();
        self.lazy.pending_objects.fetch_sub(self.objects, Relaxed);
        self.lazy.pending_bytes.fetch_sub(self.bytes, Relaxed);
        self.lazy.freed_objects.fetch_add(self.objects, Relaxed);
    }
}

impl Memory {
    pub(crate) fn note_startup(&self, used: usize) {
        self.startup.store(used, Relaxed);
        self.note_peak(used);
    }

    pub(crate) fn note_peak(&self, used: usize) {
        self.peak.fetch_max(used, Relaxed);
    }

    pub(crate) fn startup(&self) -> usize {
        self.startup.load(Relaxed)
    }

    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Objects that wait to be freed.
    pub fn pending_objects(&self) -> u64 {
        self.lazy.pending_objects.load(Relaxed)
    }

    /// Objects freed in the background so far.
    pub fn freed_objects(&self) -> u64 {
        self.lazy.freed_objects.load(Relaxed)
    }

    /// Bytes that wait to be freed.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.lazy.pending_bytes.load(Relaxed)
    }

    /// CONFIG RESETSTAT.
    pub fn reset_stats(&self) {
        self.lazy.freed_objects.store(0, Relaxed);
        self.exceeded_before.store(0, Relaxed);
    }

    pub(crate) fn free_later<T: Send + 'static>(
        &self,
        garbage: T,
        objects: u64,
        bytes: usize,
        host: &Arc<dyn Host>,
    ) -> PendingFree<T> {
        self.lazy.pending_objects.fetch_add(objects, Relaxed);
        self.lazy.pending_bytes.fetch_add(bytes, Relaxed);
        let (lazy, host) = (Arc::clone(&self.lazy), Arc::clone(host));
        PendingFree { garbage: Some(garbage), objects, bytes, lazy, host }
    }

    pub(crate) fn note_exceeded(&self, now_us: u64) {
        let _ = self.exceeded_since.compare_exchange(0, now_us, Relaxed, Relaxed);
    }

    pub(crate) fn note_within(&self, now_us: u64) {
        // Loading first keeps the cache line shared while all is well.
        if self.exceeded_since.load(Relaxed) != 0 {
            let since = self.exceeded_since.swap(0, Relaxed);
            if since != 0 {
                self.exceeded_before.fetch_add(now_us.saturating_sub(since), Relaxed);
            }
        }
    }

    /// How long more than `maxmemory` was used, in microseconds: in total, and at present.
    pub fn exceeded(&self, now_us: u64) -> (u64, u64) {
        let since = self.exceeded_since.load(Relaxed);
        let current = if since == 0 { 0 } else { now_us.saturating_sub(since) };
        (self.exceeded_before.load(Relaxed) + current, current)
    }
}

/// Bytes that a thread may have allocated or freed before it publishes them.
const UNPUBLISHED_MAX: u64 = 32 * 1024;

/// The used memory as a thread sees it, without passing memory: the sum of all threads when it
/// looked, plus its own allocations since.
#[derive(Default)]
pub(crate) struct UsedMemory {
    /// The turn of the last look.
    turn_clock: u64,
    /// The memory in use then.
    seen: usize,
    /// This thread's balance then.
    balance: i64,
    /// The memory in use now.
    pub(crate) bytes: usize,
    /// This thread's share of the space in which requests are read and parsed.
    pub(crate) scratch: usize,
}

impl UsedMemory {
    /// Updates the metric; looks at the other threads once a turn.
    pub(crate) fn follow(&mut self, turn_clock: u64, host: &dyn Host) {
        let moved = host.memory_balance().wrapping_sub(self.balance);
        if self.turn_clock != turn_clock || moved.unsigned_abs() > UNPUBLISHED_MAX {
            self.turn_clock = turn_clock;
            self.look(host);
        } else {
            self.bytes = self.seen.saturating_add_signed(moved as isize);
        }
    }

    /// Publishes this thread's share, and adds up the shares of all threads.
    pub(crate) fn look(&mut self, host: &dyn Host) {
        self.seen = host.counted_memory();
        self.balance = host.memory_balance();
        self.bytes = self.seen;
    }
}
