//! Reservations: how a command gets slots that others lock again and again.
//!
//! No command waits for a slot: one that finds a slot locked gives up its slots, and tries again
//! later. Without more, a large command could starve beside many small ones. So a command that has
//! failed for long takes a [`Reservation`]. Reservations queue up. The first one keeps newcomers
//! away from each slot that its command finds locked, for as long as the command keeps trying. So
//! the slot is free as soon as its present owner unlocks it. A reservation locks nothing, and no
//! thread that holds a lock waits for one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::limits::SLOTS;

use crate::locks::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex};

/// After this many locked slots in a row, all needed slots are kept from newcomers instead of only
/// those that were found locked.
const FAILURES_MAX: u32 = 8;
/// Microseconds for which newcomers keep away after a try. Tries follow each other within a
/// millisecond or two, unless the worker is busy with a long command of another client: others do
/// not wait for that, and keep away again from the next try on. Another reservation takes its place
/// meanwhile.
const KEPT_FOR: u64 = if cfg!(any(test, feature = "explore")) { u64::MAX } else { 100_000 };
/// Tries for which all slots are kept while one of them stays locked. Its owner may hold it for
/// seconds, and all other commands would wait for it too.
const PATIENCE: u32 = 64;

/// The slots that are kept from newcomers, and the queue of reservations.
pub(crate) struct Reserved {
    /// Whether there is such a slot: other threads look at this alone while there is none.
    any: AtomicBool,
    /// A bit for each slot.
    slots: Box<[AtomicU64]>,
    /// Until when newcomers keep away, in microseconds of the monotonic clock.
    until: AtomicU64,
    queue: Mutex<VecDeque<u64>>,
    next_ticket: AtomicU64,
}

impl Reserved {
    pub(crate) fn new() -> Reserved {
        Reserved {
            any: AtomicBool::new(false),
            slots: (0..SLOTS / 64).map(|_| AtomicU64::new(0)).collect(),
            until: AtomicU64::new(0),
            queue: Mutex::default(),
            next_ticket: AtomicU64::new(0),
        }
    }

    /// Whether newcomers have to keep away from a slot.
    #[inline]
    pub(crate) fn has(&self, slot: u16) -> bool {
        self.any.load(Relaxed) && self.has_bit(slot)
    }

    #[cold]
    fn has_bit(&self, slot: u16) -> bool {
        self.is_kept(slot) && !self.has_lapsed()
    }

    /// Whether the command of the first reservation has not tried for long.
    fn has_lapsed(&self) -> bool {
        self.until.load(Relaxed) <= base::clock::monotonic_us()
    }

    /// Gives the command of the first reservation time until its next try.
    fn prolong(&self) {
        let until = base::clock::monotonic_us().saturating_add(KEPT_FOR);
        self.until.store(until, Relaxed);
    }

    fn is_kept(&self, slot: u16) -> bool {
        self.slots[usize::from(slot) / 64].load(Relaxed) & 1 << (slot % 64) != 0
    }

    /// Makes it as if no command had tried for long.
    #[cfg(test)]
    pub(crate) fn lapse(&self) {
        self.until.store(0, Relaxed);
    }

    fn add(&self, slot: u16) {
        self.slots[usize::from(slot) / 64].fetch_or(1 << (slot % 64), Relaxed);
        self.any.store(true, Relaxed);
    }

    fn remove(&self, slot: u16) {
        self.slots[usize::from(slot) / 64].fetch_and(!(1 << (slot % 64)), Relaxed);
    }

    fn clear(&self) {
        self.any.store(false, Relaxed);
        self.slots.iter().for_each(|word| word.store(0, Relaxed));
    }
}

/// A place in the queue of the commands that have failed for long. The first may keep newcomers
/// away from slots, until it is dropped. See the module's text.
pub struct Reservation {
    all: Arc<Reserved>,
    ticket: u64,
    /// Slots that were found locked before newcomers were kept away from them.
    failures: AtomicU32,
    /// Tries in vain since then.
    tries: AtomicU32,
    /// How many of those are too many. The number doubles each time, so that a command that needs
    /// all slots gets them in the end, however long others hold theirs.
    patience: AtomicU32,
}

impl Reservation {
    pub(crate) fn new(all: &Arc<Reserved>) -> Reservation {
        let ticket = all.next_ticket.fetch_add(1, Relaxed);
        let mut queue = all.queue.lock();
        if queue.is_empty() {
            all.prolong();
        }
        queue.push_back(ticket);
        drop(queue);
        Reservation {
            all: Arc::clone(all),
            ticket,
            failures: AtomicU32::new(0),
            tries: AtomicU32::new(0),
            patience: AtomicU32::new(PATIENCE),
        }
    }

    /// Whether it may be used: it is the first in the queue. One whose command has not tried for
    /// long, since its worker is busy, goes to the end of the queue.
    pub fn is_first(&self) -> bool {
        let mut queue = self.all.queue.lock();
        if queue.front() != Some(&self.ticket) && self.all.has_lapsed() {
            queue.rotate_left(1);
            self.all.clear();
            self.all.prolong();
        }
        queue.front() == Some(&self.ticket)
    }

    /// Keeps newcomers away from a slot that was found locked. Must be called by the first in the
    /// queue only.
    pub fn note_locked(&self, slot: u16) {
        self.note_failure(slot, &[]);
    }

    /// Lets newcomers have a slot again that is not needed any more. Must be called by the first in
    /// the queue only.
    pub fn release(&self, slot: u16) {
        if self.has(slot) {
            self.all.remove(slot);
        }
    }

    /// Whether newcomers are kept away from this slot, as long as attempts go on.
    pub(crate) fn has(&self, slot: u16) -> bool {
        self.all.is_kept(slot)
    }

    /// Notes an attempt: newcomers keep away for a while longer.
    pub(crate) fn note_try(&self) {
        self.all.prolong();
    }

    /// Notes that `locked` was locked, out of all needed slots.
    pub(crate) fn note_failure(&self, locked: u16, needed: &[u16]) {
        self.note_try();
        if self.has(locked) {
            return self.note_try_in_vain(locked);
        }
        self.all.add(locked);
        self.tries.store(0, Relaxed);
        if self.failures.fetch_add(1, Relaxed) >= FAILURES_MAX {
            needed.iter().for_each(|&slot| self.all.add(slot));
        }
    }

    /// Notes that a slot is still locked. No newcomer gets it next, so nothing more can be done
    /// about that one; but in the long run other commands must not wait for it as well.
    fn note_try_in_vain(&self, locked: u16) {
        let tries = self.tries.fetch_add(1, Relaxed);
        let patience = self.patience.load(Relaxed);
        if tries < patience || self.failures.load(Relaxed) <= FAILURES_MAX {
            return;
        }
        self.all.clear();
        self.all.add(locked);
        self.failures.store(1, Relaxed);
        self.tries.store(0, Relaxed);
        self.patience.store(patience.saturating_mul(2), Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut queue = self.all.queue.lock();
        if queue.front() == Some(&self.ticket) {
            self.all.clear();
            // The next one has its time, too.
            self.all.prolong();
        }
        queue.retain(|ticket| *ticket != self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_that_is_not_tried_lets_the_next_go_first() {
        let all = Arc::new(Reserved::new());
        let [one, other, third] = [(); 3].map(|()| Reservation::new(&all));
        one.note_locked(7);
        assert!(one.is_first() && !other.is_first() && !third.is_first() && all.has(7));
        all.lapse();
        assert!(one.is_first(), "it comes back before the others");
        assert!(!third.is_first(), "the next one has its time first");
        assert!(other.is_first() && !one.is_first() && !all.has(7));
        drop(other);
        assert!(third.is_first());
        drop(third);
        assert!(one.is_first());
    }
}
