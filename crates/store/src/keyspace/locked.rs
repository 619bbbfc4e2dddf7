//! The slots that a thread holds: how it locks them, and what it reads and changes there.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;

use base::limits::SLOTS;
use smallvec::SmallVec;

use super::key::Key;
use super::slot_table::{SlotTable, hash_of};
use super::{FREE, Keyspace, LOCKED, SlotState};
use crate::entry::{Entry, EntryMut, Removed, Value, Word};
use crate::locks::gate::{Pinned, StoppedWorld};
use crate::locks::reserve::Reservation;

/// So many slots are looked through one by one.
const FEW_SLOTS: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The slots that a command named.
    Declared,
    /// The world is stopped.
    Everything,
}

/// Few scripts ever borrow a slot.
type Borrowed = Option<Box<Vec<u16>>>;

/// The slots that the caller holds, and the way to their entries. Dropping it unlocks.
pub struct LockedSlots<'k, X> {
    space: &'k Keyspace<X>,
    /// No thread has stopped the world, except perhaps the owner of this.
    pinned: Pinned<'k>,
    /// Ascending.
    slots: RefCell<SmallVec<[u16; 12]>>,
    /// The slots among them that standing threads have locked: see
    /// [`LockedSlots::borrow`].
    borrowed: Cell<Borrowed>,
    mode: Cell<Mode>,
    clock: u64,
    /// The slot that was touched last, and may be touched again: most often it is the next too.
    recent: Cell<Option<u16>>,
    /// A further slot that was needed, and that another thread had locked.
    missed: Cell<Option<u16>>,
}

/// The locks of a [`LockedSlots`] on their way to another one of the same keyspace, with another
/// lifetime.
#[must_use = "the slots stay locked until the locks are attached again"]
pub struct Detached {
    slots: SmallVec<[u16; 12]>,
    borrowed: Borrowed,
    mode: Mode,
    clock: u64,
}

impl<X> Keyspace<X> {
    /// Locks these slots, which are ascending and distinct, or none of them when one stays
    /// contended. `clock` is the time of the turn in Unix microseconds, for versions.
    #[inline]
    pub fn try_lock_slots<'k>(
        &'k self,
        pinned: Pinned<'k>,
        slots: &[u16],
        clock: u64,
    ) -> Option<LockedSlots<'k, X>> {
        debug_assert!(slots.is_sorted_by(|a, b| a < b), "ascending and distinct");
        for (count, &slot) in slots.iter().enumerate() {
            if !self.try_lock(slot) {
                slots[..count].iter().for_each(|&slot| self.unlock(slot));
                return None;
            }
        }
        Some(self.locked_slots(pinned, SmallVec::from_slice(slots), Mode::Declared, clock))
    }

    /// [`Keyspace::try_lock_slots`] of one slot.
    #[inline]
    pub fn try_lock_one<'k>(
        &'k self,
        pinned: Pinned<'k>,
        slot: u16,
        clock: u64,
    ) -> Option<LockedSlots<'k, X>> {
        if !self.try_lock(slot) {
            return None;
        }
        let mut slots = SmallVec::new();
        slots.push(slot);
        Some(self.locked_slots(pinned, slots, Mode::Declared, clock))
    }

    /// [`Keyspace::try_lock_one`], even if newcomers are kept away from the slot: for threads that
    /// hold one slot for a moment, and that have to go on while the world is stopped, when nothing
    /// uses the reserved slots.
    pub fn try_lock_briefly<'k>(
        &'k self,
        pinned: Pinned<'k>,
        slot: u16,
        clock: u64,
    ) -> Option<LockedSlots<'k, X>> {
        let slots = SmallVec::from_slice(&[slot]);
        self.spin_for(slot).then(|| self.locked_slots(pinned, slots, Mode::Declared, clock))
    }

    #[inline]
    fn locked_slots<'k>(
        &'k self,
        pinned: Pinned<'k>,
        slots: SmallVec<[u16; 12]>,
        mode: Mode,
        clock: u64,
    ) -> LockedSlots<'k, X> {
        let (recent, missed) = (Cell::new(slots.first().copied()), Cell::new(None));
        let (slots, borrowed) = (RefCell::new(slots), Cell::new(None));
        let mode = Cell::new(mode);
        LockedSlots { space: self, pinned, slots, borrowed, mode, clock, recent, missed }
    }

    /// [`Keyspace::try_lock_slots`] by the first command in the queue of reservations. From then on
    /// newcomers are kept away from the slots that it finds locked.
    pub fn try_lock_reserved<'k>(
        &'k self,
        pinned: Pinned<'k>,
        reservation: &Reservation,
        slots: &[u16],
        clock: u64,
    ) -> Option<LockedSlots<'k, X>> {
        debug_assert!(slots.is_sorted_by(|a, b| a < b), "ascending and distinct");
        reservation.note_try();
        // A slot that was locked the last time is probably locked still: this finds that out at
        // little cost, without getting in the way of others.
        let known = |slot: &&u16| reservation.has(**slot) && self.is_locked(**slot);
        if let Some(&slot) = slots.iter().find(known) {
            reservation.note_failure(slot, slots);
            return None;
        }
        for (count, &slot) in slots.iter().enumerate() {
            if !self.spin_for(slot) {
                slots[..count].iter().for_each(|&slot| self.unlock(slot));
                reservation.note_failure(slot, slots);
                return None;
            }
        }
        Some(self.locked_slots(pinned, SmallVec::from_slice(slots), Mode::Declared, clock))
    }

    /// [`Keyspace::try_lock_reserved`] of all slots.
    pub fn try_lock_all<'k>(
        &'k self,
        pinned: Pinned<'k>,
        reservation: &Reservation,
        clock: u64,
    ) -> Option<LockedSlots<'k, X>> {
        let slots: Vec<u16> = (0..SLOTS as u16).collect();
        self.try_lock_reserved(pinned, reservation, &slots, clock)
    }

    /// Locks nothing: a stand-in, or to go on from ([`LockedSlots::try_lock_next`]).
    pub fn no_slots<'k>(&'k self, pinned: Pinned<'k>, clock: u64) -> LockedSlots<'k, X> {
        self.locked_slots(pinned, SmallVec::new(), Mode::Declared, clock)
    }

    /// Attaches locks that were detached, with the same right by which they were held.
    pub fn attach<'k>(&'k self, pinned: Pinned<'k>, detached: Detached) -> LockedSlots<'k, X> {
        let Detached { slots, borrowed, mode, clock } = detached;
        let locked = self.locked_slots(pinned, slots, mode, clock);
        locked.borrowed.set(borrowed);
        locked
    }

    /// Holds all slots, with the world stopped.
    pub fn all_slots<'k>(
        &'k self,
        stopped: &'k StoppedWorld<'_>,
        clock: u64,
    ) -> LockedSlots<'k, X> {
        stopped.check();
        self.locked_slots(stopped.pinned(), SmallVec::new(), Mode::Everything, clock)
    }
}

impl<'k, X> LockedSlots<'k, X> {
    /// Lets go of the locks without unlocking.
    pub fn detach(self) -> Detached {
        let slots = std::mem::take(&mut *self.slots.borrow_mut());
        Detached { slots, borrowed: self.borrowed.take(), mode: self.mode.get(), clock: self.clock }
    }

    /// Makes sure that a slot is locked.
    #[inline]
    fn ensure(&self, slot: u16) {
        if self.recent.get() != Some(slot) {
            self.ensure_another(slot);
        }
    }

    #[inline(never)]
    fn ensure_another(&self, slot: u16) {
        assert!(self.contains(slot), "a command touches a key that it did not name");
        self.recent.set(Some(slot));
    }

    /// Whether touching this slot is allowed without locking more.
    pub fn contains(&self, slot: u16) -> bool {
        let slots = self.slots.borrow();
        let found = match slots.len() {
            // Without a branch for each: quicker than halving so few.
            0..=FEW_SLOTS => slots.iter().fold(false, |found, own| found | (*own == slot)),
            _ => slots.binary_search(&slot).is_ok(),
        };
        found || self.mode.get() == Mode::Everything
    }

    /// Locks one more slot, unless another thread has it; then it counts as missed. In any order: a
    /// command that misses one gives up all, so no thread waits for another.
    pub fn try_acquire(&self, slot: u16, reservation: Option<&Reservation>) -> bool {
        if self.recent.get() == Some(slot) || self.contains(slot) {
            return true;
        }
        let locked = match reservation {
            None => self.space.try_lock(slot),
            Some(reservation) => {
                let locked = self.space.spin_for(slot);
                if !locked {
                    reservation.note_failure(slot, &[]);
                }
                locked
            }
        };
        if !locked {
            self.note_missed(slot);
            return false;
        }
        self.add(slot);
        true
    }

    /// Locks one more slot, even if newcomers are kept away from it, unless another thread has it.
    /// For scripts that cannot give up the slots that they hold.
    pub fn try_acquire_briefly(&self, slot: u16) -> bool {
        if self.contains(slot) {
            return true;
        }
        let locked = self.space.spin_for(slot);
        if locked {
            self.add(slot);
        }
        locked
    }

    fn add(&self, slot: u16) {
        let mut slots = self.slots.borrow_mut();
        let at = slots.partition_point(|&other| other < slot);
        slots.insert(at, slot);
    }

    /// Shares a slot that another thread has locked, which stands still until this is dropped: see
    /// [`crate::keyspace::promote`], which alone may allow that. The slot stays locked by its owner
    /// then.
    pub(crate) fn borrow(&self, slot: u16) {
        debug_assert!(!self.contains(slot) && self.space.is_locked(slot), "it is somebody's");
        self.add(slot);
        let mut borrowed = self.borrowed.take().unwrap_or_default();
        borrowed.push(slot);
        self.borrowed.set(Some(borrowed));
    }

    /// A thread that has stopped the world lets others in again, and holds all slots instead.
    /// Returns whether that is possible.
    pub fn let_others_in(&self, stopped: &StoppedWorld<'_>) -> bool {
        if !self.is_everything() {
            return false;
        }
        stopped.check();
        // No other thread is inside a gate, so none has a slot.
        let slots = 0..SLOTS as u16;
        slots.clone().for_each(|slot| {
            let lock = &self.space.slots[usize::from(slot)].lock;
            assert!(lock.swap(LOCKED, Ordering::Acquire) == FREE, "somebody has a slot");
        });
        if !stopped.resume_others() {
            slots.for_each(|slot| self.space.unlock(slot));
            return false;
        }
        self.mode.set(Mode::Declared);
        self.slots.borrow_mut().extend(slots);
        true
    }

    /// A thread that has let others in keeps them out again, unless one of them stays inside its
    /// gate for long. Returns whether no other thread is inside a gate.
    pub fn keep_others_out(&self, stopped: &StoppedWorld<'_>) -> bool {
        if !self.is_everything() {
            debug_assert!(self.count() == SLOTS, "it has let others in");
            if !stopped.stop_others() {
                return false;
            }
            self.slots.borrow_mut().drain(..).for_each(|slot| self.space.unlock(slot));
            self.mode.set(Mode::Everything);
        }
        true
    }

    /// Slots that are locked.
    pub fn count(&self) -> usize {
        self.slots.borrow().len()
    }

    /// Notes that a slot was needed that another thread has.
    pub fn note_missed(&self, slot: u16) {
        self.missed.set(Some(slot));
    }

    /// The slot that could not be locked is not needed after all.
    pub fn forgive_missed(&self) {
        self.missed.set(None);
    }

    /// The slot that was needed and that another thread has, if there is one: what was done with
    /// these locks has to be tried again.
    #[inline]
    pub fn missed(&self) -> Option<u16> {
        self.missed.get()
    }

    /// Whether the world is stopped, so that every slot may be touched without a lock.
    pub fn is_everything(&self) -> bool {
        self.mode.get() == Mode::Everything
    }

    /// The proof with which the slots are held.
    #[inline]
    pub fn pinned(&self) -> Pinned<'k> {
        self.pinned
    }

    /// Visits the slots that are locked.
    #[inline]
    pub fn each_slot(&self, visit: impl FnMut(u16)) {
        self.slots.borrow().iter().copied().for_each(visit);
    }

    /// The keyspace.
    pub fn space(&self) -> &'k Keyspace<X> {
        self.space
    }

    #[inline]
    fn state(&self, slot: u16) -> *mut SlotState<X> {
        self.ensure(slot);
        self.space.slots[usize::from(slot)].state.get()
    }

    /// The table of a slot, or `None` when the database was never used.
    #[inline]
    pub fn table(&self, database: usize, slot: u16) -> Option<&SlotTable> {
        self.ensure(slot);
        // SAFETY: we hold the slot's lock until `self` is dropped, and our presence keeps away
        // threads that need no lock (or we have stopped the world), so nothing else writes, and the
        // shared borrow of `self` rules out `table_mut` meanwhile.
        unsafe { self.space.cell(database, slot).as_ref() }
    }

    /// The table of a slot, for changes.
    #[inline]
    pub fn table_mut(&mut self, database: usize, slot: u16) -> &mut SlotTable {
        self.ensure(slot);
        // SAFETY: as in `table`, with `self` borrowed exclusively; the cell exists.
        unsafe { &mut *self.space.cell_or_new(database, slot) }
    }

    /// What the layer above has attached to a slot.
    #[inline]
    pub fn attachment(&self, slot: u16) -> Option<&X> {
        // SAFETY: the slot is locked by us; shared borrow of `self`.
        unsafe { (*self.state(slot)).attachment.as_deref() }
    }

    /// The place for an attachment. An empty one should be taken away again.
    pub fn attachment_mut(&mut self, slot: u16) -> &mut Option<Box<X>> {
        // SAFETY: the slot is locked by us; exclusive borrow of `self`.
        unsafe { &mut (*self.state(slot)).attachment }
    }

    /// The number of a new write to a slot: above all before it in this slot, and near the time in
    /// microseconds.
    #[inline]
    pub fn next_version(&mut self, slot: u16) -> u64 {
        let floor = self.space.floor.load(Ordering::Relaxed);
        // SAFETY: the slot is locked by us; exclusive borrow of `self`.
        let state = unsafe { &mut *self.state(slot) };
        state.last_version = 1 + state.last_version.max(floor).max(self.clock);
        state.last_version
    }

    /// Finds a key, whether expired or not.
    #[inline(always)]
    pub fn find(&self, database: usize, key: &Key<'_>) -> Option<Entry<'_>> {
        let table = self.table(database, key.slot)?;
        Some(Entry::new(table.word_at(table.find(key)?)))
    }

    /// Must be called before an entry is changed: a cut that it belongs to gets it first.
    #[inline]
    fn before_change(&mut self, database: usize, key: &Key<'_>) {
        if self.space.cutting.load(Ordering::Relaxed) {
            self.hand_over(database, key, false);
        }
    }

    #[cold]
    fn hand_over(&mut self, database: usize, key: &Key<'_>, leaves: bool) {
        let Some(cut) = self.space.cut() else { return };
        let Some(word) = self.find(database, key).map(|entry| entry.word) else { return };
        if cut.wants(database, key, word) {
            cut.take_over(database, word, leaves);
            if !cut.mark(word) {
                word.set_version(self.next_version(key.slot));
            }
        }
    }

    /// Must be called with a value that is put under a key and may come from another key: a cut
    /// that reads the value in pieces goes on there.
    #[inline]
    pub fn note_placed(&self, database: usize, key: &Key<'_>, value: &Value<'_>) {
        if self.space.cutting.load(Ordering::Relaxed)
            && let Some(cut) = self.space.cut()
        {
            cut.note_placed(database, key.bytes, value);
        }
    }

    /// Finds a key for a change.
    #[inline]
    pub fn find_mut(&mut self, database: usize, key: &Key<'_>) -> Option<EntryMut<'_>> {
        self.before_change(database, key);
        let table = self.table_mut(database, key.slot);
        let position = table.find(key)?;
        let word = table.word_at(position);
        Some(EntryMut { word, table, position })
    }

    /// Adds a key that is not there. It has the version of a new write.
    pub fn insert(
        &mut self,
        database: usize,
        key: &Key<'_>,
        value: Value<'_>,
        expire_at: Option<u64>,
    ) -> Entry<'_> {
        let space = self.space;
        let version = self.next_version(key.slot);
        let table = self.table_mut(database, key.slot);
        debug_assert!(table.find(key).is_none(), "insert is for keys that are not there");
        let word = Word::new(key.bytes, value, expire_at);
        word.set_version(version);
        if table.is_empty() {
            space.set_occupied(database, key.slot, true);
        }
        table.count_expiry(false, expire_at);
        table.count_fields(false, word.next_field_expiry());
        // SAFETY: the table's words are live entries.
        table.words.insert(key.hash, word.bits(), |word| unsafe { hash_of(word) });
        Entry::new(word)
    }

    /// Finds a key for a change, or adds it with the value that `make` gives, and the version of a
    /// new write. Says whether it was added.
    #[inline]
    pub fn find_or_insert(
        &mut self,
        database: usize,
        key: &Key<'_>,
        make: impl FnOnce() -> Value<'static>,
    ) -> (EntryMut<'_>, bool) {
        let space = self.space;
        self.before_change(database, key);
        if let Some(position) = self.table_mut(database, key.slot).find(key) {
            let table = self.table_mut(database, key.slot);
            let word = table.word_at(position);
            return (EntryMut { word, table, position }, false);
        }
        let version = self.next_version(key.slot);
        let table = self.table_mut(database, key.slot);
        if table.is_empty() {
            space.set_occupied(database, key.slot, true);
        }
        let word = Word::new(key.bytes, make(), None);
        word.set_version(version);
        table.count_fields(false, word.next_field_expiry());
        // SAFETY: the table's words are live entries.
        table.words.insert(key.hash, word.bits(), |word| unsafe { hash_of(word) });
        let position = table.find(key).expect("the key was added just now");
        (EntryMut { word, table, position }, true)
    }

    /// Takes a key out.
    pub fn remove(&mut self, database: usize, key: &Key<'_>) -> Option<Removed> {
        let space = self.space;
        if space.cutting.load(Ordering::Relaxed) {
            self.hand_over(database, key, true);
        }
        let table = self.table_mut(database, key.slot);
        let position = table.find(key)?;
        let word = table.word_at(position);
        table.words.remove(position);
        table.count_expiry(word.expire_at().is_some(), None);
        table.count_fields(word.has_expiring_fields(), None);
        if table.is_empty() {
            space.set_occupied(database, key.slot, false);
        }
        // SAFETY: it has left its table.
        Some(unsafe { Removed::new(word) })
    }
}

impl<X> LockedSlots<'_, X> {
    /// Locks a slot, where it holds none: [`Keyspace::try_lock_one`], for commands that follow each
    /// other. Returns false, and holds none, when the slot stays locked.
    #[inline]
    pub fn try_lock_next(&mut self, slot: u16) -> bool {
        let slots = self.slots.get_mut();
        debug_assert!(slots.is_empty() && self.mode.get_mut() == &Mode::Declared, "it holds none");
        let locked = self.space.try_lock(slot);
        if locked {
            slots.push(slot);
            *self.recent.get_mut() = Some(slot);
        }
        locked
    }

    /// [`LockedSlots::try_lock_next`] with several slots, which are ascending and distinct.
    pub fn try_lock_next_slots(&mut self, wanted: &[u16]) -> bool {
        debug_assert!(wanted.is_sorted_by(|a, b| a < b), "ascending and distinct");
        for &slot in wanted {
            if !self.space.try_lock(slot) {
                self.release();
                return false;
            }
            self.slots.get_mut().push(slot);
        }
        true
    }

    /// Whether the layer above has attached nothing to any slot that it holds.
    pub fn is_bare(&self) -> bool {
        self.slots.borrow().iter().all(|&slot| {
            // SAFETY: the slot is locked by us; shared borrow of `self`.
            unsafe { (*self.space.slots[usize::from(slot)].state.get()).attachment.is_none() }
        })
    }

    /// Unlocks the slots that it holds, and holds none from then on.
    #[inline]
    pub fn release(&mut self) {
        let slots = self.slots.get_mut();
        debug_assert!(self.borrowed.get_mut().is_none(), "they are its own");
        while let Some(slot) = slots.pop() {
            self.space.unlock(slot);
        }
        *self.recent.get_mut() = None;
    }
}

impl<X> Drop for LockedSlots<'_, X> {
    #[inline]
    fn drop(&mut self) {
        let slots = self.slots.get_mut();
        match self.borrowed.get_mut() {
            None => slots.iter().for_each(|&slot| self.space.unlock(slot)),
            Some(borrowed) => {
                let own = slots.iter().filter(|slot| !borrowed.contains(slot));
                own.for_each(|&slot| self.space.unlock(slot));
            }
        }
    }
}
