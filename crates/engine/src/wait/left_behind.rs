//! What clients have left at slots that another thread had locked when the clients were done: waiters
//! that were served or have gone, and watches that were given up.
//!
//! No thread waits for a slot, so a thread that meets such a slot leaves the cleaning to the workers,
//! which do it now and then. What lies there meanwhile does no harm: a claimed waiter is skipped, and a
//! flag without a watching client means nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use base::limits;
use parking_lot::Mutex;
use store::Held;

use crate::wait::awaited::Wait;
use crate::wait::waiting::Attachment;
use crate::wait::watcher::WatchFlag;

/// Something at a slot that no client needs any more.
pub(super) enum Remains {
    Waiter(Arc<Wait>, Box<[u8]>),
    Watch(usize, Box<[u8]>, WatchFlag),
}

impl Remains {
    pub(super) fn key(&self) -> &[u8] {
        match self {
            Remains::Waiter(_, key) | Remains::Watch(_, key, _) => key,
        }
    }

    /// Removes the watcher from its slot. Returns whether it was the last watcher of its key.
    pub(super) fn remove(&self, held: &mut Held<'_, Attachment>, slot: u16) -> bool {
        match self {
            Remains::Waiter(wait, key) => {
                remove_waiter(held, slot, key, wait);
                false
            }
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
    pub(super) fn add(&self, remains: Remains) {
        self.remains.lock().push_back(remains);
        self.any.store(true, Relaxed);
    }

    /// Takes some of it, to be tried.
    pub(super) fn take(&self) -> Vec<Remains> {
        if !self.any.load(Relaxed) {
            return Vec::new();
        }
        let mut remains = self.remains.lock();
        let count = remains.len().min(limits::LEFT_BEHIND_PER_TURN);
        remains.drain(..count).collect()
    }

    /// Puts back what could not be removed yet.
    pub(super) fn put_back(&self, rest: Vec<Remains>) {
        let mut remains = self.remains.lock();
        remains.extend(rest);
        self.any.store(!remains.is_empty(), Relaxed);
    }
}

/// Takes a waiter out of the queue of a key whose slot the caller holds.
pub(crate) fn remove_waiter(
    held: &mut Held<'_, Attachment>,
    slot: u16,
    key: &[u8],
    wait: &Arc<Wait>,
) {
    change(held, slot, |attachment| attachment.remove_waiter(key, wait));
}

/// Takes a watcher out of the list of a key whose slot the caller holds. Returns whether it was the
/// last one.
pub(super) fn remove_watcher(
    held: &mut Held<'_, Attachment>,
    slot: u16,
    database: usize,
    key: &[u8],
    flag: &WatchFlag,
) -> bool {
    let mut was_last = false;
    change(held, slot, |attachment| was_last = attachment.remove_watcher(database, key, flag));
    was_last
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
