//! The keyspace: 16 384 slots, each with its lock and its tables, and the view of a thread that
//! holds the locks.
//!
//! A slot is the unit of locking. Its lock covers the slot's table in every database and everything
//! that the layer above attaches to it (waiters, watchers: the parameter `X`).
//! [`Keyspace::try_lock_slots`] locks the slots that a command names, in ascending order. A
//! [`LockedSlots`] is the proof that they are locked, and the only way to an entry.
//!
//! A thread that has stopped the world holds all slots without locking any. Other threads cannot
//! lock slots at that time, because each lock asks for a [`Pinned`]: see [`crate::locks::gate`].
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use base::limits::SLOTS;

use crate::locks::gate::{Pinned, StoppedWorld};
use crate::locks::reserve::{Reservation, Reserved};
use crate::locks::sync::{AtomicBool, AtomicU32, AtomicU64, RwLock, spin_loop};
use crate::locks::waits::Waits;
use crate::slot_set::{SharedSlotSet, SlotSet};
use crate::snapshot::cut::{Cut, Walker};

pub use key::Key;
pub use locked::{Detached, LockedSlots};
pub use slot_table::{Look, SlotTable};

mod key;
mod locked;
pub mod promote;
mod slot_table;
#[cfg(test)]
mod tests;

/// How often a contended slot is tried before the attempt is given up.
const SPINS: u32 = if cfg!(feature = "explore") { 2 } else { 400 };

/// The data under a slot's lock besides the tables of the further databases.
struct SlotState<X> {
    /// The version of the last write to any key of the slot, deletions included.
    last_version: u64,
    attachment: Option<Box<X>>,
    /// Database 0 lies here, so that lock and table share a cache line.
    first: SlotTable,
}

#[repr(align(64))]
struct Slot<X> {
    lock: AtomicU32,
    state: UnsafeCell<SlotState<X>>,
}

const _: () = assert!(size_of::<Slot<u64>>() == 64, "a slot is one cache line");

const FREE: u32 = 0;
const LOCKED: u32 = 1;

struct Database {
    /// The tables of databases above 0, made at first use.
    tables: OnceLock<Box<[UnsafeCell<SlotTable>]>>,
    /// A bit per slot that has keys, so that walks skip the empty ones.
    occupied: Box<[AtomicU64]>,
}

impl Database {
    fn new() -> Database {
        let occupied = (0..SLOTS / 64).map(|_| AtomicU64::new(0)).collect();
        Database { tables: OnceLock::new(), occupied }
    }
}

/// All slots and databases. See the module's text.
pub struct Keyspace<X> {
    slots: Box<[Slot<X>]>,
    databases: Box<[Database]>,
    /// Versions that are given from now on are above this.
    floor: AtomicU64,
    /// Whether `cut` has a cut: while it has none, writers look at this alone.
    cutting: AtomicBool,
    cut: RwLock<Option<Arc<Cut>>>,
    /// Entries may have the mark of a cut whose walk ended early.
    pub(crate) marked: AtomicBool,
    /// A thread has found a slot locked.
    waited_for: AtomicBool,
    /// Slots whose keys belong to another server: those that arrive from it, or were given to it.
    /// Walks and counts leave them out; cuts and [`Keyspace::take_all`] do not.
    pub hidden: SharedSlotSet,
    /// Slots that newcomers keep away from.
    reserved: Arc<Reserved>,
    /// The scripts that wait for slots while they hold others.
    pub(crate) waits: Waits,
}

// SAFETY: only a thread that holds the slot's lock (through `LockedSlots`) or has stopped the world
// reaches what lies in the cells. Never both at once, because only a thread that shows its `Pinned`
// locks a slot. Everything in the cells may move between threads.
unsafe impl<X: Send> Sync for Keyspace<X> {}
// SAFETY: as above; the keyspace owns all that its tables point to.
unsafe impl<X: Send> Send for Keyspace<X> {}

impl<X> Keyspace<X> {
    /// An empty keyspace with this many databases.
    pub fn new(databases: usize) -> Keyspace<X> {
        let slot = || Slot {
            lock: AtomicU32::new(FREE),
            state: UnsafeCell::new(SlotState {
                last_version: 0,
                attachment: None,
                first: SlotTable::default(),
            }),
        };
        Keyspace {
            slots: (0..SLOTS).map(|_| slot()).collect(),
            databases: (0..databases.max(1)).map(|_| Database::new()).collect(),
            floor: AtomicU64::new(0),
            cutting: AtomicBool::new(false),
            cut: RwLock::new(None),
            marked: AtomicBool::new(false),
            waited_for: AtomicBool::new(false),
            hidden: SharedSlotSet::default(),
            reserved: Arc::new(Reserved::new()),
            waits: Waits::default(),
        }
    }

    /// Databases.
    pub fn databases(&self) -> usize {
        self.databases.len()
    }

    /// Queues up for keeping newcomers away from slots: see [`crate::locks::reserve`].
    pub fn reserve(&self) -> Reservation {
        Reservation::new(&self.reserved)
    }

    /// Whether trying to lock a slot is of no use for now, with this reservation if it is one that
    /// may be used.
    pub fn is_busy(&self, slot: u16, reservation: Option<&Reservation>) -> bool {
        self.is_locked(slot) || (reservation.is_none() && self.reserved.has(slot))
    }

    fn is_locked(&self, slot: u16) -> bool {
        self.slots[usize::from(slot)].lock.load(Ordering::Relaxed) != FREE
    }

    #[inline]
    fn try_lock(&self, slot: u16) -> bool {
        if !self.spin_for(slot) {
            return false;
        }
        if self.reserved.has(slot) {
            self.unlock(slot);
            return false;
        }
        true
    }

    #[inline]
    fn spin_for(&self, slot: u16) -> bool {
        let lock = &self.slots[usize::from(slot)].lock;
        for _ in 0..SPINS {
            match lock.compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                // Its owner may keep it for long, or another thread waits for it already.
                Err(_) if self.reserved.has(slot) => break,
                Err(_) => spin_loop(),
            }
        }
        self.waited_for.store(true, Ordering::Relaxed);
        false
    }

    #[inline]
    fn unlock(&self, slot: u16) {
        self.slots[usize::from(slot)].lock.store(FREE, Ordering::Release);
    }

    /// The cell of a slot's table; null while the database was never used.
    #[inline]
    fn cell(&self, database: usize, slot: u16) -> *mut SlotTable {
        if database == 0 {
            // SAFETY: only the address is taken, through raw pointers, without a reference.
            unsafe { &raw mut (*self.slots[usize::from(slot)].state.get()).first }
        } else {
            match self.databases[database].tables.get() {
                Some(tables) => tables[usize::from(slot)].get(),
                None => std::ptr::null_mut(),
            }
        }
    }

    #[inline]
    fn cell_or_new(&self, database: usize, slot: u16) -> *mut SlotTable {
        if database > 0 {
            self.make_tables(database);
        }
        self.cell(database, slot)
    }

    fn make_tables(&self, database: usize) {
        self.databases[database]
            .tables
            .get_or_init(|| (0..SLOTS).map(|_| UnsafeCell::new(SlotTable::default())).collect());
    }

    fn set_occupied(&self, database: usize, slot: u16, occupied: bool) {
        let word = &self.databases[database].occupied[usize::from(slot) / 64];
        let bit = 1 << (slot % 64);
        if occupied {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// The first slot at or after `from` that has keys in `database` and is not hidden. Read
    /// without a lock.
    pub fn next_occupied(&self, database: usize, from: usize) -> Option<u16> {
        self.next_with_keys(database, from, |index| !self.hidden.word(index))
    }

    /// The first slot at or after `from` that has keys in `database`, hidden or not, among `slots`
    /// if that is given. Read without a lock.
    pub fn next_of_all(
        &self,
        database: usize,
        from: usize,
        slots: Option<&SlotSet>,
    ) -> Option<u16> {
        self.next_with_keys(database, from, |index| slots.map_or(u64::MAX, |own| own.word(index)))
    }

    #[inline]
    fn next_with_keys(
        &self,
        database: usize,
        from: usize,
        mask: impl Fn(usize) -> u64,
    ) -> Option<u16> {
        let words = &self.databases[database].occupied;
        let read = |index: usize| Some(words.get(index)?.load(Ordering::Relaxed) & mask(index));
        let mut index = from / 64;
        let mut word = read(index)? & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = read(index)?;
        }
        Some((index * 64) as u16 + word.trailing_zeros() as u16)
    }

    /// The slots that have keys in `database` and are not hidden, ascending. Read without locks.
    pub fn occupied(&self, database: usize) -> impl Iterator<Item = u16> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let slot = self.next_occupied(database, from)?;
            from = usize::from(slot) + 1;
            Some(slot)
        })
    }

    /// The slots that have keys in `database`, hidden or not, ascending. Read without locks.
    pub fn all_occupied(&self, database: usize) -> impl Iterator<Item = u16> {
        self.all_occupied_among(database, None)
    }

    fn all_occupied_among(
        &self,
        database: usize,
        slots: Option<&SlotSet>,
    ) -> impl Iterator<Item = u16> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let slot = self.next_of_all(database, from, slots)?;
            from = usize::from(slot) + 1;
            Some(slot)
        })
    }

    /// Keys of a slot, read without its lock.
    pub fn slot_len(&self, database: usize, slot: u16) -> usize {
        let cell = self.cell(database, slot);
        // SAFETY: only an atomic inside the cell is read, through a shared reference to it alone.
        if cell.is_null() { 0 } else { unsafe { (*cell).words.len() } }
    }

    /// Keys of a slot that have an expiry, read without its lock.
    pub fn slot_expires(&self, database: usize, slot: u16) -> usize {
        let cell = self.cell(database, slot);
        if cell.is_null() {
            return 0;
        }
        // SAFETY: only an atomic inside the cell is read, through a shared reference to it alone.
        unsafe { (*cell).expires.load(Ordering::Relaxed) as usize }
    }

    /// Hashes with expiring fields in a slot, read without its lock.
    fn slot_field_expires(&self, database: usize, slot: u16) -> usize {
        let cell = self.cell(database, slot);
        if cell.is_null() {
            return 0;
        }
        // SAFETY: only an atomic inside the cell is read, through a shared reference to it alone.
        unsafe { (*cell).field_expires.load(Ordering::Relaxed) as usize }
    }

    /// A time before which nothing in a slot expires, read without its lock.
    pub fn slot_next_expiry(&self, database: usize, slot: u16) -> u64 {
        let cell = self.cell(database, slot);
        if cell.is_null() {
            return u64::MAX;
        }
        // SAFETY: only an atomic inside the cell is read, through a shared reference to it alone.
        unsafe { (*cell).next_expiry.load(Ordering::Relaxed) }
    }

    /// Keys in a database, counted without locks.
    pub fn len(&self, database: usize) -> usize {
        self.occupied(database).map(|slot| self.slot_len(database, slot)).sum()
    }

    /// Whether a database has no key, hidden or not.
    pub fn is_empty(&self, database: usize) -> bool {
        self.next_of_all(database, 0, None).is_none()
    }

    /// Keys with an expiry in a database, counted without locks.
    pub fn expires(&self, database: usize) -> usize {
        self.occupied(database).map(|slot| self.slot_expires(database, slot)).sum()
    }

    /// Hashes with expiring fields in a database, counted without locks.
    pub fn field_expires(&self, database: usize) -> usize {
        self.occupied(database).map(|slot| self.slot_field_expires(database, slot)).sum()
    }

    /// Whether there are hashes with expiring fields, in hidden slots too, among `slots` if that is
    /// given: in what a cut has. Read without locks.
    pub fn has_expiring_fields(&self, slots: Option<&SlotSet>) -> bool {
        (0..self.databases()).any(|database| {
            self.all_occupied_among(database, slots)
                .any(|slot| self.slot_field_expires(database, slot) > 0)
        })
    }

    /// A slot chosen with a chance in proportion to its keys.
    pub fn random_slot(&self, database: usize) -> Option<u16> {
        let mut remaining = match self.len(database) {
            0 => return None,
            total => base::rng::below(total as u64) as usize,
        };
        let mut last = None;
        for slot in self.occupied(database) {
            let len = self.slot_len(database, slot);
            if remaining < len {
                return Some(slot);
            }
            remaining -= len;
            last = Some(slot);
        }
        last
    }

    /// Exchanges two databases.
    pub fn swap(&self, stopped: &StoppedWorld<'_>, one: usize, other: usize) {
        stopped.check();
        if one == other {
            return;
        }
        for slot in 0..SLOTS as u16 {
            let (a, b) = (self.cell_or_new(one, slot), self.cell_or_new(other, slot));
            // SAFETY: the world is stopped, so no other thread uses a table; the cells differ.
            unsafe { std::ptr::swap(a, b) };
        }
        if let Some(cut) = self.cut() {
            cut.swap(one, other);
        }
        for (a, b) in self.databases[one].occupied.iter().zip(&self.databases[other].occupied) {
            b.store(a.swap(b.load(Ordering::Relaxed), Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Exchanges all data with another keyspace of as many databases, which nobody else uses. What
    /// is attached to slots stays where it is. No cut is being read.
    pub fn exchange(&self, stopped: &StoppedWorld<'_>, other: &mut Keyspace<X>) {
        stopped.check();
        assert!(self.cut().is_none(), "a cut has to see each change of its data");
        assert_eq!(self.databases(), other.databases());
        self.raise_floor(other.floor.load(Ordering::Relaxed));
        for (own, other) in self.slots.iter().zip(&mut other.slots) {
            // SAFETY: the world is stopped, so no other thread uses a slot.
            let own = unsafe { &mut *own.state.get() };
            let other = other.state.get_mut();
            // The versions of a key only grow, whichever data it belongs to.
            own.last_version = own.last_version.max(other.last_version);
            std::mem::swap(&mut own.first, &mut other.first);
        }
        for database in 0..self.databases() {
            if database > 0 && (self.is_used(database) || other.is_used(database)) {
                for slot in 0..SLOTS as u16 {
                    let own = self.cell_or_new(database, slot);
                    // SAFETY: the world is stopped, and nobody else uses the other keyspace.
                    unsafe { std::ptr::swap(own, other.cell_or_new(database, slot)) };
                }
            }
            let (own, other) = (&self.databases[database], &other.databases[database]);
            for (a, b) in own.occupied.iter().zip(&other.occupied) {
                b.store(a.swap(b.load(Ordering::Relaxed), Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    /// Whether a database above 0 has tables.
    fn is_used(&self, database: usize) -> bool {
        self.databases[database].tables.get().is_some()
    }

    /// Takes all tables of a database away; the caller drops them when it has time.
    pub fn take_all(&self, stopped: &StoppedWorld<'_>, database: usize) -> Vec<SlotTable> {
        stopped.check();
        let mut taken = Vec::new();
        for slot in self.all_occupied(database) {
            let cell = self.cell(database, slot);
            // SAFETY: the world is stopped; an occupied slot has a cell.
            let table = unsafe { std::mem::take(&mut *cell) };
            self.set_occupied(database, slot, false);
            taken.push((slot, table));
        }
        match self.cut() {
            Some(cut) => cut.take_tables(database, taken),
            None => taken.into_iter().map(|(_, table)| table).collect(),
        }
    }

    /// Begins a cut: the data as it is now. `None` while there is one already.
    pub fn begin_cut(&self, stopped: &StoppedWorld<'_>, clock: u64) -> Option<Walker<'_, X>> {
        self.begin_cut_of(stopped, clock, None)
    }

    /// Begins a cut of these slots alone, or of all. `None` while there is one already.
    pub fn begin_cut_of(
        &self,
        stopped: &StoppedWorld<'_>,
        clock: u64,
        slots: Option<SlotSet>,
    ) -> Option<Walker<'_, X>> {
        stopped.check();
        if self.cutting.load(Ordering::Relaxed) {
            return None;
        }
        let newest = self.slots.iter().map(|slot| {
            // SAFETY: the world is stopped, so no other thread uses a slot.
            unsafe { (*slot.state.get()).last_version }
        });
        let floor = self.floor.load(Ordering::Relaxed).max(clock);
        let version = newest.fold(floor, u64::max);
        self.raise_floor(version);
        let expiring = self.has_expiring_fields(slots.as_ref());
        let marks = !self.marked.swap(true, Ordering::Relaxed);
        let cut = Arc::new(Cut::new((version, marks), self.databases(), expiring, slots));
        *self.cut.write() = Some(Arc::clone(&cut));
        self.cutting.store(true, Ordering::Relaxed);
        Some(Walker::new(self, cut))
    }

    /// Ends the cut.
    pub(crate) fn end_cut(&self) {
        self.cutting.store(false, Ordering::Relaxed);
        *self.cut.write() = None;
    }

    /// The cut, if there is one.
    pub(crate) fn cut(&self) -> Option<Arc<Cut>> {
        if self.cutting.load(Ordering::Relaxed) { self.cut.read().clone() } else { None }
    }

    /// Whether a thread has found a slot locked since the last call.
    pub(crate) fn was_waited_for(&self) -> bool {
        self.waited_for.load(Ordering::Relaxed) && self.waited_for.swap(false, Ordering::Relaxed)
    }

    /// Whether writers should wait until more of a cut is written.
    pub fn cut_is_behind(&self) -> bool {
        self.cutting.load(Ordering::Relaxed) && self.cut().is_some_and(|cut| cut.is_behind())
    }

    /// Whether writers will soon have to wait for that.
    pub fn cut_presses(&self) -> bool {
        self.cutting.load(Ordering::Relaxed) && self.cut().is_some_and(|cut| cut.presses())
    }

    /// Bytes that were handed over to the reader of a cut and that it has not written yet: copies,
    /// and data that only the reader still has.
    pub fn cut_memory(&self) -> usize {
        if !self.cutting.load(Ordering::Relaxed) {
            return 0;
        }
        self.cut().map_or(0, |cut| cut.memory())
    }

    /// Raises the floor of versions.
    pub fn raise_floor(&self, floor: u64) {
        self.floor.fetch_max(floor, Ordering::Relaxed);
    }

    /// Prefetches a slot's lock and first table.
    #[inline]
    pub fn prefetch_slot(&self, slot: u16) {
        crate::table::dict::prefetch((&raw const self.slots[usize::from(slot)]).cast());
    }

    /// Prefetches the bucket of a key.
    #[inline]
    pub fn prefetch_bucket(&self, _: Pinned<'_>, database: usize, slot: u16, hash: u64) {
        let cell = self.cell(database, slot);
        if !cell.is_null() {
            // SAFETY: a shared reference to the table alone, of which only atomics are read, and
            // whose retired blocks outlive the caller's presence.
            unsafe { (*cell).words.prefetch_bucket(hash) };
        }
    }

    /// Prefetches the entry of a key. Returns whether it may lie behind the bucket that was
    /// prefetched before, so that [`Keyspace::prefetch_chained`] has to follow.
    #[inline]
    pub fn prefetch_entry(&self, _: Pinned<'_>, database: usize, slot: u16, hash: u64) -> bool {
        let cell = self.cell(database, slot);
        // SAFETY: a shared reference to the table alone, of which only atomics are read, and
        // whose retired blocks outlive the caller's presence.
        !cell.is_null() && unsafe { (*cell).words.prefetch_entry(hash) }
    }

    /// Prefetches the entry of a key that may lie behind its bucket.
    #[inline]
    pub fn prefetch_chained(&self, _: Pinned<'_>, database: usize, slot: u16, hash: u64) {
        let cell = self.cell(database, slot);
        if !cell.is_null() {
            // SAFETY: as above.
            unsafe { (*cell).words.prefetch_chained(hash) };
        }
    }
}
