//! Promotion: how a script locks further slots when it cannot give up those that it holds.
//!
//! A command that finds a slot locked gives up its slots and begins again. A script that has
//! written and uses a key that it did not declare cannot do that, because its writes cannot be
//! undone. So the script waits for the slot while it holds others. Ordinary commands never wait in
//! this way, so they unlock their slots in the end. But two scripts may each wait for a slot of the
//! other. Then one of them borrows the slot, and runs to its end while the owner stands still: the
//! owner waits, directly or through others, for a slot that the borrower holds until its end.
//! Before it waits, the owner has put its effects so far into the journal, so the order of the
//! journal is that of the data.

use crate::keyspace::{Keyspace, LockedSlots};
pub use crate::locks::waits::Next;

/// A script's wait for a slot; dropping it ends the wait.
pub struct Promotion<'k, X> {
    space: &'k Keyspace<X>,
    id: u64,
    slot: u16,
}

impl<'k, X> Promotion<'k, X> {
    /// The thread that holds these locks begins to wait for one more.
    pub fn new(locked: &LockedSlots<'k, X>, slot: u16) -> Promotion<'k, X> {
        let space = locked.space();
        let mut slots = Vec::new();
        locked.each_slot(|slot| slots.push(slot));
        let id = space.waits.begin(slot, slots);
        Promotion { space, id, slot }
    }

    /// The next step, with the locks that this was made from.
    pub fn next(&self, locked: &LockedSlots<'k, X>) -> Next {
        if locked.try_acquire_briefly(self.slot) {
            return Next::Locked;
        }
        let next = self.space.waits.next(self.id);
        if next == Next::Borrowed {
            locked.borrow(self.slot);
        }
        next
    }

    /// The effects so far are in the journal.
    pub fn note_settled(&self) {
        self.space.waits.note_settled(self.id);
    }
}

impl<X> Drop for Promotion<'_, X> {
    fn drop(&mut self) {
        self.space.waits.end(self.id);
    }
}

#[cfg(test)]
mod tests {
    use base::limits::SLOTS;

    use super::*;
    use crate::locks::gate::Gates;

    #[test]
    fn what_is_borrowed_stays_locked_by_its_owner() {
        let (space, gates) = (Keyspace::<()>::new(1), Gates::new());
        let gate = gates.register();
        let inside = gate.enter();
        let hold = |slot| space.try_lock_one(inside.pinned(), slot, 0).unwrap();
        let (one, other) = (hold(1), hold(2));
        let (ones, others) = (Promotion::new(&one, 2), Promotion::new(&other, 1));
        assert_eq!(ones.next(&one), Next::Wait, "the owner is asked");
        assert_eq!(others.next(&other), Next::Settle);
        others.note_settled();
        assert_eq!(ones.next(&one), Next::Borrowed);
        drop(ones);
        // Detached on their way, as on the way to a script's own context.
        let one = space.attach(inside.pinned(), one.detach());
        assert!(one.contains(2), "to the end of all that follows from it");
        drop(one);
        assert!(!space.is_busy(1, None) && space.is_busy(2, None));
        assert_eq!(others.next(&other), Next::Locked);
        drop((others, other));
        assert!(!space.is_busy(1, None) && !space.is_busy(2, None));
    }

    #[test]
    fn a_thread_that_has_stopped_the_world_keeps_all_slots_when_others_are_let_in() {
        let (space, gates) = (Keyspace::<()>::new(1), Gates::new());
        let (gate, others) = (gates.register(), gates.register());
        let stopped = gates.try_stop_the_world(&gate).unwrap();
        let locked = space.all_slots(&stopped, 0);
        assert!(locked.let_others_in(&stopped) && !locked.let_others_in(&stopped));
        assert_eq!((locked.is_everything(), locked.count()), (false, SLOTS));
        let inside = others.enter();
        assert!(space.try_lock_one(inside.pinned(), 7, 0).is_none());
        assert!(!locked.keep_others_out(&stopped), "one is inside");
        drop(inside);
        assert!(locked.keep_others_out(&stopped) && locked.is_everything());
        assert!(locked.let_others_in(&stopped));
        let inside = others.enter();
        drop(locked);
        assert!(space.try_lock_one(inside.pinned(), 7, 0).is_some());
        drop((inside, stopped));
        // A thread that has no gate of its own stays alone.
        let stopped = gates.stop_the_world();
        let locked = space.all_slots(&stopped, 0);
        assert!(!locked.let_others_in(&stopped) && locked.is_everything());
        drop(locked);
        assert!((0..SLOTS as u16).all(|slot| !space.is_busy(slot, None)));
    }
}
