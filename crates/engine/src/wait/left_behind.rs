//! What clients have left at slots that somebody held when they had done with them: waiters that
//! were served or have gone, and watches that were given up.
//!
//! Nobody waits for a slot, so whoever meets such a slot leaves the cleaning to the workers, which
//! look at it now and then. What lies there meanwhile does no harm: a waiter that was claimed is
//! passed over, and a flag that is raised for nobody means nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;
use store::gate::Presence;
use store::{Held, Key};

use crate::engine::Engine;
use crate::wait::waiting::{Attachment, Waiter};
use crate::wait::watching::WatchFlag;

/// Slots that are cleaned in one turn: the rest has time.
const PER_TURN: usize = 4096;

/// One thing that lies at a slot for nobody.
enum Remains {
    Waiter(Arc<Waiter>, Box<[u8]>),
    Watch(usize, Box<[u8]>, WatchFlag),
}

impl Remains {
    fn key(&self) -> &[u8] {
        match self {
            Remains::Waiter(_, key) | Remains::Watch(_, key, _) => key,
        }
    }

    fn remove(&self, held: &mut Held<'_, Attachment>, slot: u16) {
        match self {
            Remains::Waiter(waiter, key) => remove_waiter(held, slot, key, waiter),
            Remains::Watch(database, key, flag) => remove_watcher(held, slot, *database, key, flag),
        }
    }
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct LeftBehind {
    any: AtomicBool,
    remains: Mutex<VecDeque<Remains>>,
}

impl LeftBehind {
    fn add(&self, remains: Remains) {
        self.remains.lock().push_back(remains);
        self.any.store(true, Relaxed);
    }
}

impl Engine {
    /// Takes a waiter out of the slot of one of its keys, or leaves that for later.
    pub(crate) fn take_out_waiter(
        &self,
        presence: Presence<'_>,
        waiter: &Arc<Waiter>,
        key: &[u8],
        clock: u64,
    ) {
        let slot = base::crc::key_slot(key);
        match self.hold_if_free(presence, slot, clock) {
            Some(mut held) => remove_waiter(&mut held, slot, key, waiter),
            None => self.left_behind.add(Remains::Waiter(Arc::clone(waiter), key.into())),
        }
    }

    /// Takes a watcher out of the slot of one of its keys, or leaves that for later.
    pub(crate) fn take_out_watcher(
        &self,
        presence: Presence<'_>,
        (database, key): (usize, &[u8]),
        flag: &WatchFlag,
        clock: u64,
    ) {
        let slot = base::crc::key_slot(key);
        match self.hold_if_free(presence, slot, clock) {
            Some(mut held) => remove_watcher(&mut held, slot, database, key, flag),
            None => self.left_behind.add(Remains::Watch(database, key.into(), Arc::clone(flag))),
        }
    }

    /// Cleans slots that were held when it was their time. To be called now and then.
    pub fn clean_slots(&self, presence: Presence<'_>) {
        if !self.left_behind.any.load(Relaxed) {
            return;
        }
        let mut batch = {
            let mut remains = self.left_behind.remains.lock();
            let count = remains.len().min(PER_TURN);
            remains.drain(..count).collect::<Vec<_>>()
        };
        let clock = base::clock::now_us();
        batch.retain(|remains| {
            let slot = Key::new(remains.key()).slot;
            let held = self.hold_if_free(presence, slot, clock);
            held.map(|mut held| remains.remove(&mut held, slot)).is_none()
        });
        let mut remains = self.left_behind.remains.lock();
        remains.extend(batch);
        self.left_behind.any.store(!remains.is_empty(), Relaxed);
    }

    /// Holds a slot unless somebody has it now.
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

/// Takes a waiter out of the queue of a key whose slot is held.
pub(crate) fn remove_waiter(
    held: &mut Held<'_, Attachment>,
    slot: u16,
    key: &[u8],
    waiter: &Arc<Waiter>,
) {
    change(held, slot, |attachment| attachment.remove_waiter(key, waiter));
}

fn remove_watcher(
    held: &mut Held<'_, Attachment>,
    slot: u16,
    database: usize,
    key: &[u8],
    flag: &WatchFlag,
) {
    change(held, slot, |attachment| attachment.remove_watcher(database, key, flag));
}

fn change(held: &mut Held<'_, Attachment>, slot: u16, change: impl FnOnce(&mut Attachment)) {
    let place = held.attachment_mut(slot);
    if let Some(attachment) = place {
        change(attachment);
        if attachment.is_empty() {
            *place = None;
        }
    }
}
