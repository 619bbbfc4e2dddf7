//! What the commands of each slot cost: CLUSTER SLOT-STATS.
//!
//! The counters are made when `cluster-slot-stats-enabled` first asks for them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::limits::SLOTS;

/// What the commands of a slot have cost.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SlotCost {
    /// Nanoseconds for which they ran.
    pub nanoseconds: u64,
    /// Bytes of the commands, as clients send them.
    pub bytes_in: u64,
    /// Bytes of the replies.
    pub bytes_out: u64,
}

#[derive(Default)]
struct Counters {
    nanoseconds: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

/// See the module's text.
#[derive(Default)]
pub struct SlotStats {
    by_slot: OnceLock<Box<[Counters]>>,
}

impl SlotStats {
    /// Adds the cost of a command.
    pub(crate) fn add(&self, slot: u16, cost: SlotCost) {
        let make = || (0..SLOTS).map(|_| Counters::default()).collect();
        let own = &self.by_slot.get_or_init(make)[usize::from(slot)];
        own.nanoseconds.fetch_add(cost.nanoseconds, Relaxed);
        own.bytes_in.fetch_add(cost.bytes_in, Relaxed);
        own.bytes_out.fetch_add(cost.bytes_out, Relaxed);
    }

    /// The cost of the commands of a slot so far.
    pub fn of(&self, slot: u16) -> SlotCost {
        let own = self.by_slot.get().and_then(|own| own.get(usize::from(slot)));
        own.map_or_else(SlotCost::default, |own| SlotCost {
            nanoseconds: own.nanoseconds.load(Relaxed),
            bytes_in: own.bytes_in.load(Relaxed),
            bytes_out: own.bytes_out.load(Relaxed),
        })
    }

    /// Begins at nothing again: CONFIG RESETSTAT.
    pub fn reset(&self) {
        self.forget(0..SLOTS as u16);
    }

    /// Begins at nothing again for some slots: they have left, and may come back.
    pub(super) fn forget(&self, mut slots: impl Iterator<Item = u16>) {
        let Some(all) = self.by_slot.get() else { return };
        slots.by_ref().map(|slot| &all[usize::from(slot)]).for_each(|own| {
            own.nanoseconds.store(0, Relaxed);
            own.bytes_in.store(0, Relaxed);
            own.bytes_out.store(0, Relaxed);
        });
    }
}
