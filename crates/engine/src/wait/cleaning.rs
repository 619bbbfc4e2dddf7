//! Removes from slots what clients have left there: at once when a slot is free, else later.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use store::gate::Pinned;
use store::{Key, LockedSlots};

use crate::engine::Engine;
use crate::session::attachment::Attachment;
use crate::session::awaited::Wait;
use crate::session::left_behind::{Remains, remove_waiter, remove_watcher};
use crate::session::watcher::WatchFlag;

impl Engine {
    /// Removes a waiter from the slot of one of its keys, or leaves that for later.
    pub(crate) fn take_out_waiter(
        &self,
        pinned: Pinned<'_>,
        wait: &Arc<Wait>,
        key: &[u8],
        clock: u64,
    ) {
        let slot = base::crc::key_slot(key);
        match self.lock_if_free(pinned, slot, clock) {
            Some(mut locked) => remove_waiter(&mut locked, slot, key, wait),
            None => self.left_behind.add(Remains::Waiter(Arc::clone(wait), key.into())),
        }
    }

    /// Removes a watcher from the slot of one of its keys, or leaves that for later.
    pub(crate) fn take_out_watcher(
        &self,
        pinned: Pinned<'_>,
        (database, key): (usize, &[u8]),
        flag: &WatchFlag,
        clock: u64,
    ) {
        let slot = base::crc::key_slot(key);
        match self.lock_if_free(pinned, slot, clock) {
            Some(mut locked) => {
                let was_last = remove_watcher(&mut locked, slot, database, key, flag);
                self.note_watcher_gone(was_last);
            }
            None => self.left_behind.add(Remains::Watch(database, key.into(), Arc::clone(flag))),
        }
    }

    /// Cleans slots that were locked when they should have been cleaned. Must be called now and
    /// then.
    pub fn clean_slots(&self, pinned: Pinned<'_>) {
        let mut batch = self.left_behind.take();
        if batch.is_empty() {
            return;
        }
        let clock = base::clock::now_us();
        batch.retain(|remains| {
            let slot = Key::new(remains.key()).slot;
            let locked = self.lock_if_free(pinned, slot, clock);
            let removed = locked.map(|mut locked| remains.remove(&mut locked, slot));
            self.note_watcher_gone(removed == Some(true));
            removed.is_none()
        });
        self.left_behind.put_back(batch);
    }

    /// A watcher is gone; it may have been the last one of its key.
    fn note_watcher_gone(&self, was_last: bool) {
        if was_last {
            self.watched_keys.fetch_sub(1, Relaxed);
        }
    }

    /// Locks a slot unless another thread has locked it.
    fn lock_if_free<'k>(
        &'k self,
        pinned: Pinned<'k>,
        slot: u16,
        clock: u64,
    ) -> Option<LockedSlots<'k, Attachment>> {
        if self.keyspace.is_busy(slot, None) {
            return None;
        }
        self.keyspace.try_lock_one(pinned, slot, clock)
    }
}
