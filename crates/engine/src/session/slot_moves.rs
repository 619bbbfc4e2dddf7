//! Slots that are on their way between servers: those that this server gives away, and those that
//! it takes over.
//!
//! A source holds the slots for an instant while they change their owner: commands for them wait.
//! A target hides what it imports ([`store::Keyspace::hidden`]) until the slots are its own. The
//! connection of the source has an [`Import`] in its session; its end is the end of the import,
//! unless the target has said that it has everything: then others decide what becomes of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use store::{SharedSlotSet, SlotSet};

use crate::session::attachment::Waiter;
use crate::session::leaving::Leaving;

/// How far an import is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Stage {
    /// Data arrives.
    Arrives = 0,
    /// All has arrived, as far as the source knows.
    Ready = 1,
    /// The slots belong to this server.
    Taken = 2,
    /// What has arrived is dropped.
    Over = 3,
}

/// Which try of a move it is: the epoch of the source, and a number that grows with each of its
/// tries.
pub type Attempt = (u64, u64);

/// Slots that arrive from another server.
pub struct Import {
    /// The name of the move.
    pub id: Box<[u8]>,
    attempt: Attempt,
    /// The slots.
    pub slots: SlotSet,
    stage: AtomicU8,
}

impl Import {
    /// How far it is.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Relaxed) {
            0 => Stage::Arrives,
            1 => Stage::Ready,
            2 => Stage::Taken,
            _ => Stage::Over,
        }
    }

    /// All has arrived. Returns whether the import still counts.
    pub fn note_ready(&self) -> bool {
        self.go_on(&[Stage::Arrives, Stage::Ready], Stage::Ready)
    }

    /// Whether its source may still write into these slots. Then it is not ready any more.
    pub fn admits(&self, mut slots: impl Iterator<Item = u16>) -> bool {
        self.go_on(&[Stage::Arrives, Stage::Ready], Stage::Arrives)
            && slots.all(|slot| self.slots.has(slot))
    }

    /// Goes on to another stage, from one of these. Returns whether it does.
    fn go_on(&self, from: &[Stage], to: Stage) -> bool {
        from.iter().any(|from| {
            self.stage.compare_exchange(*from as u8, to as u8, Relaxed, Relaxed).is_ok()
        })
    }
}

/// The part of an import that the session of the source's connection has.
pub struct Importing {
    /// The import.
    pub import: Arc<Import>,
    moves: Arc<SlotMoves>,
}

impl Drop for Importing {
    fn drop(&mut self) {
        if self.import.stage() == Stage::Arrives || self.moves.owned.lock().is_none() {
            self.moves.end(&self.import);
        }
    }
}

/// Slots whose keys are to be deleted.
pub struct Emptying {
    /// The slots.
    pub slots: SlotSet,
    /// The only database of which they are, if not of all.
    pub database: Option<usize>,
    /// Who waits for that.
    pub waiter: Option<Waiter>,
}

/// What a command of a client for some slots has to do.
#[derive(PartialEq, Eq, Debug)]
pub enum Passage {
    /// Run.
    Free,
    /// Wait: a slot changes its owner.
    Waits,
    /// A slot is somewhere else: its number, and where.
    Moved(u16, String),
}

/// See [`SlotMoves::show`].
pub struct Shown<'m>(&'m SlotMoves, Arc<Leaving>);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.leaving.lock().retain(|own| !Arc::ptr_eq(own, &self.1));
    }
}

/// See the module's text.
#[derive(Default)]
pub struct SlotMoves {
    /// Whether slots are held or have been given away: the only field to look at while none is.
    any: AtomicBool,
    /// The slots that are held.
    waiting: SharedSlotSet,
    /// The same, by who holds them.
    holds: Mutex<Vec<SlotSet>>,
    /// Where slots are that were given away without a cluster that knows it.
    given: Mutex<HashMap<u16, String>>,
    /// How far the moves to other servers are.
    leaving: Mutex<Vec<Arc<Leaving>>>,
    imports: Mutex<Vec<Arc<Import>>>,
    /// The moves towards this server that the cluster knows.
    expected: Mutex<HashMap<Box<[u8]>, SlotSet>>,
    /// The slots of this server, in a cluster.
    owned: Mutex<Option<SlotSet>>,
    emptying: Mutex<Vec<Emptying>>,
    /// Wakes the thread that empties slots.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl SlotMoves {
    /// Connects the thread that empties slots.
    pub fn connect(&self, wake: Box<dyn Fn() + Send + Sync>) {
        drop(self.wake.set(wake));
    }

    // ---- The source -----------------------------------------------------------------------------

    /// Has commands for these slots wait. A thread that was in its gate before may not know it yet.
    pub fn hold(&self, slots: &SlotSet) {
        let mut holds = self.holds.lock();
        holds.push(slots.clone());
        self.look(&holds);
    }

    /// Ends that. Slots that somebody else holds too stay held.
    pub fn release(&self, slots: &SlotSet) {
        let mut holds = self.holds.lock();
        if let Some(at) = holds.iter().position(|own| own == slots) {
            holds.swap_remove(at);
        }
        self.look(&holds);
    }

    /// Sends clients to another server from now on, where there is no cluster that does.
    pub fn give(&self, slots: &SlotSet, address: &str) {
        self.given.lock().extend(slots.iter().map(|slot| (slot, address.to_owned())));
        self.look(&self.holds.lock());
    }

    /// Looks at who holds slots and which were given away. The lock of the holds keeps two threads
    /// from doing so in another order than they have changed them.
    fn look(&self, holds: &[SlotSet]) {
        self.waiting.set(&holds.iter().flat_map(SlotSet::iter).collect());
        let any = !holds.is_empty() || !self.given.lock().is_empty();
        self.any.store(any, Relaxed);
    }

    /// A move to another server is under way. It is shown until the guard is dropped.
    pub fn show(&self, leaving: &Arc<Leaving>) -> Shown<'_> {
        self.leaving.lock().push(Arc::clone(leaving));
        Shown(self, Arc::clone(leaving))
    }

    /// The moves to other servers.
    pub fn leaving(&self) -> Vec<Arc<Leaving>> {
        self.leaving.lock().clone()
    }

    /// Whether any slot is held or given away.
    #[inline]
    pub fn are_any(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Whether any is held.
    pub fn holds_any(&self) -> bool {
        !self.holds.lock().is_empty()
    }

    /// What a command with keys in these slots has to do.
    pub fn passage(&self, slots: impl Iterator<Item = u16> + Clone) -> Passage {
        if slots.clone().any(|slot| self.waiting.has(slot)) {
            return Passage::Waits;
        }
        let given = self.given.lock();
        let mut slots = slots.filter_map(|slot| given.get(&slot).map(|at| (slot, at.clone())));
        slots.next().map_or(Passage::Free, |(slot, at)| Passage::Moved(slot, at))
    }

    // ---- The target -----------------------------------------------------------------------------

    /// Whether the cluster knows this move towards this server.
    pub fn expects(&self, id: &[u8], slots: &SlotSet) -> bool {
        self.expected.lock().get(id) == Some(slots)
    }

    /// In a cluster, these slots are the ones of this server, and these moves go on towards it. All
    /// other slots are hidden, and what has arrived of moves that are gone is dropped.
    pub fn follow(
        &self,
        hidden: &SharedSlotSet,
        slots: &SlotSet,
        coming: Vec<(Box<[u8]>, SlotSet)>,
    ) {
        *self.expected.lock() = coming.into_iter().collect();
        self.own(hidden, slots);
        let mut gone = self.imports.lock().clone();
        gone.retain(|own| !self.expects(&own.id, &own.slots));
        gone.iter().for_each(|own| self.end(own));
    }

    /// Whether a later try of the same move brings these slots already: an earlier one is late.
    pub fn is_outdated(&self, id: &[u8], attempt: Attempt) -> bool {
        self.imports.lock().iter().any(|own| *own.id == *id && own.attempt > attempt)
    }

    /// Begins an import: earlier ones of the same slots end. The keys of the slots are to be
    /// deleted before anything arrives, for which the waiter waits.
    pub fn begin(
        self: &Arc<Self>,
        hidden: &SharedSlotSet,
        (id, slots, attempt): (&[u8], SlotSet, Attempt),
        waiter: Waiter,
    ) -> Importing {
        self.given.lock().retain(|slot, _| !slots.has(*slot));
        self.look(&self.holds.lock());
        let import = Arc::new(Import { id: id.into(), attempt, slots, stage: AtomicU8::new(0) });
        let mut earlier = self.imports.lock().clone();
        earlier.retain(|own| own.slots.meets(&import.slots));
        earlier.iter().for_each(|own| self.end(own));
        self.imports.lock().push(Arc::clone(&import));
        hidden.insert(&import.slots);
        self.empty(import.slots.clone(), Some(waiter));
        Importing { import, moves: Arc::clone(self) }
    }

    /// The slots of an import belong to this server, without a cluster that says so. Returns
    /// whether they do.
    pub fn take(&self, hidden: &SharedSlotSet, import: &Import) -> bool {
        let takes = import.go_on(&[Stage::Ready], Stage::Taken);
        if takes {
            self.imports.lock().retain(|own| !std::ptr::eq(&**own, import));
            hidden.remove(&import.slots);
        }
        takes
    }

    /// These slots are the ones of this server. What has arrived of them stays.
    fn own(&self, hidden: &SharedSlotSet, slots: &SlotSet) {
        let mut imports = self.imports.lock();
        imports.retain(|own| {
            let is_own = own.slots.iter().all(|slot| slots.has(slot));
            !(is_own && own.go_on(&[Stage::Ready, Stage::Arrives], Stage::Taken))
        });
        drop(imports);
        *self.owned.lock() = Some(slots.clone());
        hidden.set(&slots.complement());
    }

    /// Ends an import, and drops what has arrived.
    pub fn end(&self, import: &Import) {
        if drops(import) {
            self.imports.lock().retain(|own| !std::ptr::eq(&**own, import));
            self.empty(import.slots.clone(), None);
        }
    }

    /// Other data takes the place of all data: nothing of what has arrived is left.
    pub fn end_all(&self) {
        let imports = self.imports.lock().clone();
        imports.iter().for_each(|own| self.end(own));
    }

    /// The data of a database goes, or of all: what arrives would not be whole any more, so it is
    /// to begin anew. An import that has everything loses what is in the database.
    pub fn note_flush(&self, database: Option<usize>) {
        let imports = self.imports.lock().clone();
        for import in imports {
            if import.stage() == Stage::Ready {
                let slots = import.slots.clone();
                self.add_emptying(Emptying { slots, database, waiter: None });
            } else {
                self.end(&import);
            }
        }
    }

    // ---- Slots that are emptied -----------------------------------------------------------------

    /// Has a thread delete the keys of slots that belong to another server.
    pub fn empty(&self, slots: SlotSet, waiter: Option<Waiter>) {
        self.add_emptying(Emptying { slots, database: None, waiter });
    }

    /// Has it delete what has arrived in a database, or in all, for which the waiter waits.
    pub fn flush(&self, import: &Import, database: Option<usize>, waiter: Waiter) {
        let (slots, waiter) = (import.slots.clone(), Some(waiter));
        self.add_emptying(Emptying { slots, database, waiter });
    }

    fn add_emptying(&self, emptying: Emptying) {
        self.emptying.lock().push(emptying);
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    /// Takes what is to be emptied.
    pub fn take_emptying(&self) -> Vec<Emptying> {
        std::mem::take(&mut *self.emptying.lock())
    }

    /// Slots were emptied: outside of a cluster they are shown, unless more arrives in them.
    pub fn note_empty(&self, hidden: &SharedSlotSet, slots: &SlotSet) {
        let imports = self.imports.lock();
        if self.owned.lock().is_none() {
            let arrives = |slot: &u16| imports.iter().any(|own| own.slots.has(*slot));
            hidden.remove(&slots.iter().filter(|slot| !arrives(slot)).collect());
        }
    }
}

/// Ends an import. Returns whether that dropped it.
fn drops(import: &Import) -> bool {
    import.go_on(&[Stage::Arrives, Stage::Ready], Stage::Over)
}
