//! Slots that are on their way between servers: those that this server gives away, and those that
//! it takes over.
//!
//! A source holds the slots for an instant while they change their owner: commands for them wait.
//! A target hides what it imports ([`store::Keyspace::hidden`]) until the slots are its own. The
//! connection of the source has an [`Import`] in its session; its end is the end of the import,
//! unless the target has said that it has everything: then others decide what becomes of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
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
    /// All had arrived, and then a client here has flushed it. The slots may still come, but if
    /// the source keeps them, it has to begin anew.
    Flushed = 2,
    /// The slots belong to this server.
    Taken = 3,
    /// What has arrived is dropped.
    Over = 4,
}

/// The stages of an import that may still become anything.
const UNDECIDED: [Stage; 3] = [Stage::Arrives, Stage::Ready, Stage::Flushed];

/// Which try it is: the epoch of the source, and a number that grows with each try of any of its
/// moves.
pub type Attempt = (u64, u64);

/// Slots that arrive from another server.
pub struct Import {
    /// The name of the move.
    pub id: Box<[u8]>,
    /// The number of the client that brings them.
    client: u64,
    attempt: Attempt,
    /// The slots.
    pub slots: SlotSet,
    stage: AtomicU8,
    /// The journal's offset after the last time that keys of the slots were deleted for it.
    emptied: AtomicU64,
}

impl Import {
    fn new(id: &[u8], client: u64, attempt: Attempt, slots: SlotSet) -> Import {
        let (stage, emptied) = (AtomicU8::new(Stage::Arrives as u8), AtomicU64::new(0));
        Import { id: id.into(), client, attempt, slots, stage, emptied }
    }

    /// The keys of the slots were deleted, and the journal had this end after that.
    pub fn note_emptied(&self, end: u64) {
        self.emptied.fetch_max(end, Relaxed);
    }

    /// See [`Import::note_emptied`]. Also where nothing had to be deleted: what an earlier move has
    /// left may have been deleted shortly before, and somebody may not know that yet.
    pub fn emptied(&self) -> u64 {
        self.emptied.load(Relaxed)
    }

    /// How far it is.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Relaxed) {
            0 => Stage::Arrives,
            1 => Stage::Ready,
            2 => Stage::Flushed,
            3 => Stage::Taken,
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
    /// The import which is told how far the journal is after that.
    pub import: Option<Arc<Import>>,
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
        if let Some(own) = self.0.wanted.lock().get_mut(&self.1.id) {
            own.progressed_ms = own.progressed_ms.max(self.1.progressed_ms());
        }
        self.0.leaving.lock().retain(|own| !Arc::ptr_eq(own, &self.1));
    }
}

/// A move that the cluster wants of this server, as the primary of its source.
struct Wanted {
    slots: SlotSet,
    /// When it was heard of, or an attempt that is over has last come nearer to the end.
    progressed_ms: u64,
}

/// What moves to other servers have come to since the server has started.
#[derive(Default)]
pub struct MoveCounts {
    /// Moves of the cluster whose slots are at their target.
    pub finished: AtomicU64,
    /// Those that were given up.
    pub aborted: AtomicU64,
    /// Copies that were begun.
    pub tries: AtomicU64,
    /// Keys that were sent in copies.
    pub keys: AtomicU64,
    /// Bytes that were sent: of copies, and of what was written meanwhile.
    pub bytes: AtomicU64,
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
    /// The moves that the cluster wants of this server.
    wanted: Mutex<BTreeMap<String, Wanted>>,
    /// See [`MoveCounts`].
    pub counts: MoveCounts,
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

    /// The cluster wants these moves of this server, whose slots are `owned`, as the primary of
    /// their source. What is not among them any more has ended.
    pub fn want<'w>(
        &self,
        moves: impl Iterator<Item = (&'w str, SlotSet)>,
        owned: &SlotSet,
        now_ms: u64,
    ) {
        let mut wanted = self.wanted.lock();
        let mut before = std::mem::take(&mut *wanted);
        for (id, slots) in moves {
            let known = before.remove(id).filter(|own| own.slots == slots);
            let own = known.unwrap_or(Wanted { slots, progressed_ms: now_ms });
            wanted.insert(id.to_owned(), own);
        }
        for own in before.values() {
            let count =
                if own.slots.meets(owned) { &self.counts.aborted } else { &self.counts.finished };
            count.fetch_add(1, Relaxed);
        }
    }

    /// This server is not the primary of a source: it has no part in how moves end.
    pub fn want_nothing(&self) {
        self.wanted.lock().clear();
    }

    /// How many moves the cluster wants of this server, and for how many milliseconds the one has
    /// come no nearer to its end that stands still for the longest.
    pub fn standing(&self, now_ms: u64) -> (usize, u64) {
        let leaving = self.leaving();
        let wanted = self.wanted.lock();
        let since = wanted.iter().map(|(id, own)| {
            let present = leaving.iter().filter(|it| it.id == *id).map(|it| it.progressed_ms());
            present.max().unwrap_or(0).max(own.progressed_ms)
        });
        (wanted.len(), since.min().map_or(0, |first| now_ms.saturating_sub(first)))
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

    /// Whether this one is held.
    pub fn holds(&self, slot: u16) -> bool {
        self.are_any() && self.waiting.has(slot)
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

    /// The numbers of the clients that bring slots.
    pub fn importers(&self) -> Vec<u64> {
        self.imports.lock().iter().map(|own| own.client).collect()
    }

    /// Begins an import by this client: earlier ones of the same slots end. The keys of the slots
    /// are to be deleted before anything arrives: [`SlotMoves::flush`]. Nothing if the slots belong
    /// to this server by now, or a later try brings some of them. That may be one of another move,
    /// which the source has given up; slots have one source at a time, whose tries of all moves are
    /// counted together.
    pub fn begin(
        self: &Arc<Self>,
        hidden: &SharedSlotSet,
        (id, slots, attempt): (&[u8], SlotSet, Attempt),
        client: u64,
    ) -> Option<Importing> {
        let import = Arc::new(Import::new(id, client, attempt, slots));
        let mut imports = self.imports.lock();
        let is_owned = self.owned.lock().as_ref().is_some_and(|own| own.meets(&import.slots));
        let (earlier, others): (Vec<_>, Vec<_>) =
            imports.iter().cloned().partition(|own| own.slots.meets(&import.slots));
        if is_owned || earlier.iter().any(|own| own.attempt > attempt) {
            return None;
        }
        *imports = others;
        imports.push(Arc::clone(&import));
        hidden.insert(&import.slots);
        drop(imports);
        self.given.lock().retain(|slot, _| !import.slots.has(*slot));
        self.look(&self.holds.lock());
        earlier.iter().filter(|own| drops(own)).for_each(|own| self.empty(own.slots.clone()));
        Some(Importing { import, moves: Arc::clone(self) })
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
            !(is_own && own.go_on(&UNDECIDED, Stage::Taken))
        });
        // An import that begins meanwhile sees whose the slots are.
        *self.owned.lock() = Some(slots.clone());
        hidden.set(&slots.complement());
    }

    /// Ends an import, and drops what has arrived.
    pub fn end(&self, import: &Import) {
        if drops(import) {
            self.imports.lock().retain(|own| !std::ptr::eq(&**own, import));
            self.empty(import.slots.clone());
        }
    }

    /// Other data takes the place of all data: nothing of what has arrived is left.
    pub fn end_all(&self) {
        let imports = self.imports.lock().clone();
        imports.iter().for_each(|own| self.end(own));
    }

    /// The data of a database goes, or of all: what arrives would not be whole any more, so it is
    /// to begin anew. An import that has everything loses what is in the database, and its source
    /// can add nothing to it.
    pub fn note_flush(&self, database: Option<usize>) {
        let imports = self.imports.lock().clone();
        for import in imports {
            if import.go_on(&[Stage::Ready, Stage::Flushed], Stage::Flushed) {
                let slots = import.slots.clone();
                let import = Some(import);
                self.add_emptying(Emptying { slots, database, import, waiter: None });
            } else {
                self.end(&import);
            }
        }
    }

    // ---- Slots that are emptied -----------------------------------------------------------------

    /// Has a thread delete the keys of slots that belong to another server.
    pub fn empty(&self, slots: SlotSet) {
        self.add_emptying(Emptying { slots, database: None, import: None, waiter: None });
    }

    /// Has it delete what has arrived in a database, or in all, for which the waiter waits.
    pub fn flush(&self, import: &Arc<Import>, database: Option<usize>, waiter: Waiter) {
        let (slots, waiter) = (import.slots.clone(), Some(waiter));
        let import = Some(Arc::clone(import));
        self.add_emptying(Emptying { slots, database, import, waiter });
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
    import.go_on(&UNDECIDED, Stage::Over)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(numbers: &[u16]) -> SlotSet {
        numbers.iter().copied().collect()
    }

    #[test]
    fn a_move_stands_still_until_it_comes_nearer_to_its_end() {
        let moves = SlotMoves::default();
        let all = slots(&[1, 2, 3, 4]);
        assert_eq!(moves.standing(900), (0, 0));
        let both = || [("a", slots(&[1, 2])), ("b", slots(&[3]))].into_iter();
        moves.want(both(), &all, 1000);
        assert_eq!(moves.standing(5000), (2, 4000));
        // It is heard of again whenever anything changes.
        moves.want(both(), &all, 5000);
        assert_eq!(moves.standing(5000), (2, 4000));
        let leaving = ["a", "b"].map(|id| Arc::new(Leaving::new(id, 1, "h:1".into(), 5000)));
        let shown = [moves.show(&leaving[0]), moves.show(&leaving[1])];
        leaving[0].note_sent(1, 6000);
        assert_eq!(moves.standing(6000), (2, 5000), "the other one has sent nothing");
        leaving[1].note_sent(1, 7000);
        assert_eq!(moves.standing(7500), (2, 1500));
        drop(shown);
        assert_eq!(moves.standing(7500), (2, 1500), "an attempt has ended");
    }

    #[test]
    fn what_begins_late_takes_no_slots_from_their_owner() {
        let (moves, hidden) = (Arc::new(SlotMoves::default()), SharedSlotSet::default());
        let begin = |slots: &[u16], attempt: Attempt| {
            moves.begin(&hidden, (b"m", self::slots(slots), attempt), 1)
        };
        let coming = || vec![(b"m"[..].into(), slots(&[1, 2]))];
        moves.follow(&hidden, &slots(&[5]), coming());
        let first = begin(&[1, 2], (7, 3)).expect("nobody else brings them");
        assert!(begin(&[2], (7, 2)).is_none(), "a later try brings them");
        let second = begin(&[1, 2], (7, 4)).expect("a later try");
        assert_eq!(first.import.stage(), Stage::Over);
        assert!(second.import.note_ready() && hidden.has(1));
        moves.follow(&hidden, &slots(&[1, 2, 5]), Vec::new());
        assert_eq!(second.import.stage(), Stage::Taken);
        assert!(begin(&[1, 2], (7, 3)).is_none() && begin(&[2], (7, 9)).is_none());
        assert!(!hidden.has(1) && !hidden.has(2), "they are served");
    }

    #[test]
    fn moves_end_with_their_slots_elsewhere_or_not() {
        let moves = SlotMoves::default();
        let ended = || (moves.counts.finished.load(Relaxed), moves.counts.aborted.load(Relaxed));
        let both = [("a", slots(&[1, 2])), ("b", slots(&[3]))];
        moves.want(both.clone().into_iter(), &slots(&[1, 2, 3]), 1);
        moves.want([].into_iter(), &slots(&[3]), 1);
        assert_eq!(ended(), (1, 1));
        // Who is no primary any more does not know how they end.
        moves.want(both.into_iter(), &slots(&[1, 2, 3]), 1);
        moves.want_nothing();
        moves.want([].into_iter(), &slots(&[]), 1);
        assert_eq!((ended(), moves.standing(9)), ((1, 1), (0, 0)));
    }
}
