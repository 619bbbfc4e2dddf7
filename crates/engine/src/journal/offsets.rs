//! The journal's offsets after the last write of each slot.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use base::limits::SLOTS;
use store::LockedSlots;

/// The journal's offset after the last write of each slot, as far as offsets were recorded.
pub struct SlotOffsets {
    /// Read and written under the slot's lock.
    slots: Box<[AtomicU64]>,
    /// After the last write that concerned all slots.
    everywhere: AtomicU64,
    /// Everything that was written before offsets were kept is in `everywhere`.
    complete: AtomicBool,
}

impl Default for SlotOffsets {
    fn default() -> SlotOffsets {
        let slots = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        SlotOffsets { slots, everywhere: AtomicU64::new(0), complete: AtomicBool::new(false) }
    }
}

impl SlotOffsets {
    /// A thread begins to record the offsets of its writes; `unrecorded` says that it has left some
    /// out before. Other threads' earlier writes were not recorded either, so assume that every
    /// slot was written up to the journal's end.
    pub fn begin(&self, unrecorded: bool, journal_end: impl FnOnce() -> u64) {
        if unrecorded || !self.complete.load(Acquire) {
            self.note_everywhere(journal_end());
            self.complete.store(true, Release);
        }
    }

    /// A thread no longer keeps the offsets of its writes.
    pub(crate) fn stop(&self) {
        self.complete.store(false, Relaxed);
    }

    /// Records a write of the thread that holds these slots.
    pub(crate) fn note_write<X>(&self, locked: &LockedSlots<'_, X>, offset: u64) {
        if locked.is_everything() {
            return self.note_everywhere(offset);
        }
        locked.each_slot(|slot| self.slots[usize::from(slot)].store(offset, Relaxed));
    }

    /// Notes that any slot may have been written before this offset.
    fn note_everywhere(&self, offset: u64) {
        self.everywhere.fetch_max(offset, Relaxed);
    }

    /// The offset after the last write that concerned all slots.
    pub(crate) fn everywhere(&self) -> u64 {
        self.everywhere.load(Relaxed)
    }

    /// The largest offset of the held slots. A command that holds none has seen no data.
    pub(crate) fn newest<X>(&self, locked: &LockedSlots<'_, X>) -> u64 {
        let everywhere = self.everywhere.load(Relaxed);
        let mut newest = 0;
        locked.each_slot(|slot| {
            newest = newest.max(everywhere).max(self.slots[usize::from(slot)].load(Relaxed));
        });
        newest
    }
}
