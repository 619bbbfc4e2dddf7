//! The scripts that wait for a slot while they hold others: see [`crate::keyspace::promote`].

use std::sync::atomic::Ordering::Relaxed;

use crate::locks::sync::{AtomicU64, Mutex};

/// A script that waits for a slot, and the slots that it holds meanwhile.
struct WaitingScript {
    id: u64,
    wants: u16,
    locked: Vec<u16>,
    /// Another script would like to borrow a slot of it.
    asked: bool,
    /// Its effects so far are in the journal.
    settled: bool,
}

/// All scripts that wait.
#[derive(Default)]
pub(crate) struct Waits {
    waiting: Mutex<Vec<WaitingScript>>,
    next_id: AtomicU64,
}

/// The next step of a waiting script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Go on: the slot is locked.
    Locked,
    /// Go on: the slot is borrowed, until the locks are dropped.
    Borrowed,
    /// Look again in a moment.
    Wait,
    /// Put its effects into the journal, call
    /// [`crate::keyspace::promote::Promotion::note_settled`], and look again.
    Settle,
}

impl Waits {
    pub(crate) fn begin(&self, wants: u16, locked: Vec<u16>) -> u64 {
        let id = self.next_id.fetch_add(1, Relaxed);
        self.waiting.lock().push(WaitingScript { id, wants, locked, asked: false, settled: false });
        id
    }

    pub(crate) fn end(&self, id: u64) {
        self.waiting.lock().retain(|waiting| waiting.id != id);
    }

    /// The effects of a script so far are in the journal.
    pub(crate) fn note_settled(&self, id: u64) {
        if let Some(own) = self.waiting.lock().iter_mut().find(|waiting| waiting.id == id) {
            own.settled = true;
        }
    }

    /// The next step of a script that has found its slot locked once more. A script that is told to
    /// borrow it waits no longer.
    pub(crate) fn next(&self, id: u64) -> Next {
        let mut waiting = self.waiting.lock();
        let Some(own) = waiting.iter().position(|waiting| waiting.id == id) else {
            return Next::Wait;
        };
        if waiting[own].asked && !waiting[own].settled {
            return Next::Settle;
        }
        let Some(owner) = owner_in_circle(&waiting, own) else { return Next::Wait };
        if !waiting[owner].settled {
            waiting[owner].asked = true;
            return Next::Wait;
        }
        waiting.remove(own);
        Next::Borrowed
    }
}

/// The script that holds the slot that `own` waits for, if that one waits in turn, in the end, for
/// `own`.
fn owner_in_circle(waiting: &[WaitingScript], own: usize) -> Option<usize> {
    // A borrowed slot belongs to the last borrower: the others stand still for it. It began to wait
    // after them.
    let owner_of = |slot: u16| waiting.iter().rposition(|other| other.locked.contains(&slot));
    let first = owner_of(waiting[own].wants)?;
    let mut at = first;
    for _ in 0..waiting.len() {
        if at == own {
            return Some(first);
        }
        at = owner_of(waiting[at].wants)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_wait_for_each_other_borrow_once_the_owner_has_settled() {
        let all = Waits::default();
        let one = all.begin(20, vec![10, 11]);
        assert_eq!(all.next(one), Next::Wait, "an ordinary command has it");
        let two = all.begin(30, vec![20]);
        assert_eq!((all.next(one), all.next(two)), (Next::Wait, Next::Wait));
        let three = all.begin(11, vec![30, 31]);
        assert_eq!(all.next(three), Next::Wait, "the owner is asked first");
        assert_eq!(all.next(one), Next::Settle);
        all.note_settled(one);
        assert_eq!(all.next(three), Next::Borrowed);
        // The other two wait until the third has ended.
        assert_eq!((all.next(one), all.next(two)), (Next::Wait, Next::Wait));
        all.end(two);
        all.end(one);
        assert!(all.waiting.lock().is_empty());
    }

    #[test]
    fn a_borrowed_slot_is_borrowed_from_its_borrower() {
        let all = Waits::default();
        let owner = all.begin(2, vec![1]);
        let borrower = all.begin(1, vec![2]);
        assert_eq!(all.next(borrower), Next::Wait);
        assert_eq!(all.next(owner), Next::Settle);
        all.note_settled(owner);
        assert_eq!(all.next(borrower), Next::Borrowed);
        all.end(borrower);
        // The borrower goes on, writes to both, and needs a third.
        let borrower = all.begin(3, vec![1, 2]);
        let third = all.begin(1, vec![3]);
        assert_eq!(all.next(third), Next::Wait, "the borrower has written what is in no journal");
        assert_eq!(all.next(borrower), Next::Settle);
        all.note_settled(borrower);
        assert_eq!(all.next(third), Next::Borrowed);
    }
}
