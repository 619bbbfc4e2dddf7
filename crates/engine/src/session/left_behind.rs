//! What clients have left at slots: waiters that were served or have gone, and watches that were
//! given up, where another thread had the slot locked at that time.
//!
//! No thread waits for a slot, so a thread that meets such a slot leaves the cleaning to the
//! workers, which do it now and then. Meanwhile these do no harm: a claimed waiter is skipped, and
//! a flag without a watching client means nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use base::limits;
use parking_lot::Mutex;
use store::LockedSlots;

use crate::session::attachment::Attachment;
use crate::session::awaited::Wait;
use crate::session::watcher::WatchFlag;

/// Something at a slot that no client needs any more.
pub(crate) enum Remains {
    Waiter(Arc<Wait>, Box<[u8]>),
    Watch(usize, Box<[u8]>, WatchFlag),
}

impl Remains {
    pub(crate) fn key(&self) -> &[u8] {
        match self {
            Remains::Waiter(_, key) | Remains::Watch(_, key, _) => key,
        }
    }

    /// Removes the watcher from its slot. Returns whether it was the last watcher of its key.
    pub(crate) fn remove(&self, locked: &mut LockedSlots<'_, Attachment>, slot: u16) -> bool {
        match self {
            Remains::Waiter(wait, key) => {
                remove_waiter(locked, slot, key, wait);
                false
            }
            Remains::Watch(database, key, flag) => {
                remove_watcher(locked, slot, *database, key, flag)
            }
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
    pub(crate) fn add(&self, remains: Remains) {
        self.remains.lock().push_back(remains);
        self.any.store(true, Relaxed);
    }

    /// Takes some of it, to be tried.
    pub(crate) fn take(&self) -> Vec<Remains> {
        if !self.any.load(Relaxed) {
            return Vec::new();
        }
        let mut remains = self.remains.lock();
        let count = remains.len().min(limits::LEFT_BEHIND_PER_TURN);
        remains.drain(..count).collect()
    }

    /// Puts back what could not be removed yet.
    pub(crate) fn put_back(&self, rest: Vec<Remains>) {
        let mut remains = self.remains.lock();
        remains.extend(rest);
        self.any.store(!remains.is_empty(), Relaxed);
    }
}

/// Takes a waiter out of the queue of a key whose slot the caller holds.
pub(crate) fn remove_waiter(
    locked: &mut LockedSlots<'_, Attachment>,
    slot: u16,
    key: &[u8],
    wait: &Arc<Wait>,
) {
    change(locked, slot, |attachment| attachment.remove_waiter(key, wait));
}

/// Takes a watcher out of the list of a key whose slot the caller holds. Returns whether it was the
/// last one.
pub(crate) fn remove_watcher(
    locked: &mut LockedSlots<'_, Attachment>,
    slot: u16,
    database: usize,
    key: &[u8],
    flag: &WatchFlag,
) -> bool {
    let mut was_last = false;
    change(locked, slot, |attachment| was_last = attachment.remove_watcher(database, key, flag));
    was_last
}

fn change(
    locked: &mut LockedSlots<'_, Attachment>,
    slot: u16,
    change: impl FnOnce(&mut Attachment),
) {
    let place = locked.attachment_mut(slot);
    if let Some(attachment) = place {
        change(attachment);
        if attachment.is_empty() {
            *place = None;
        }
    }
}
