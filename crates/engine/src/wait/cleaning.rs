//! Removes from slots what clients have left there: at once when a slot is free, else later.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use store::gate::Presence;
use store::{Held, Key};

use crate::engine::Engine;
use crate::wait::awaited::Wait;
use crate::wait::left_behind::{Remains, remove_waiter, remove_watcher};
use crate::wait::waiting::Attachment;
use crate::wait::watcher::WatchFlag;

impl Engine {
    /// Removes a waiter from the slot of one of its keys, or leaves that for later.
    pub(crate) fn take_out_waiter(
        &self,
        presence: Presence<'_>,
        wait: &Arc<Wait>,
        key: &[u8],
        clock: u64,
    ) {
        let slot = base::crc::key_slot(key);
        match self.hold_if_free(presence, slot, clock) {
            Some(mut held) => remove_waiter(&mut held, slot, key, wait),
            None => self.left_behind.add(Remains::Waiter(Arc::clone(wait), key.into())),
        }
    }

    /// Removes a watcher from the slot of one of its keys, or leaves that for later.
    pub(crate) fn take_out_watcher(
        &self,
        presence: Presence<'_>,
        (database, key): (usize, &[u8]),
        flag: &WatchFlag,
        clock: u64,
    ) {
        let slot = base::crc::key_slot(key);
        match self.hold_if_free(presence, slot, clock) {
            Some(mut held) => {
                let was_last = remove_watcher(&mut held, slot, database, key, flag);
                self.note_watcher_gone(was_last);
            }
            None => self.left_behind.add(Remains::Watch(database, key.into(), Arc::clone(flag))),
        }
    }

    /// Cleans slots that were locked when they should have been cleaned. Must be called now and then.
    pub fn clean_slots(&self, presence: Presence<'_>) {
        let mut batch = self.left_behind.take();
        if batch.is_empty() {
            return;
        }
        let clock = base::clock::now_us();
        batch.retain(|remains| {
            let slot = Key::new(remains.key()).slot;
            let held = self.hold_if_free(presence, slot, clock);
            let removed = held.map(|mut held| remains.remove(&mut held, slot));
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
    fn hold_if_free<'k>(
        &'k self,
        presence: Presence<'k>,
        slot: u16,
        clock: u64,
    ) -> Option<Held<'k, Attachment>> {
        if self.keyspace.is_busy(slot, None) {
            return None;
        }
        self.keyspace.try_hold_one(presence, slot, clock)
    }
}
