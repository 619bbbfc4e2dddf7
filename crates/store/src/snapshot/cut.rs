//! A cut: the data as it was at an instant between two commands, read while commands go on.
//!
//! It begins with the world stopped and costs a look at each slot. From then on a [`Walker`] goes
//! through all entries in the order of (database, slot, reversed hash) and shows them to a
//! [`Sink`]. A writer that is about to change or remove an entry as old as the cut, which the
//! walker has not passed yet, first hands over the old entry. So each entry of the cut is shown
//! exactly once, through splits and merges, RENAME, expiry, eviction, SWAPDB and FLUSHALL. Small
//! values are handed over as copies; lists, streams and larger strings by reference. Large tables
//! and strings stay where they are and are [frozen](crate::snapshot::freeze): they are read in
//! pieces.
//!
//! A handed-over entry is marked and keeps its version, because the command may change nothing in
//! the end. The walker removes the marks. A walk that ended early has left some; the next cut then
//! gives each entry that is handed over a new version instead, as a write does.
//!
//! While a collection is shown, nothing else can be shown, and copies of other keys wait. So huge
//! collections are shown at the end, after all other keys, unless many copies of their own members
//! wait.
//!
//! There is one cut at a time: `docs/decisions/0006-a-cut-has-one-reader.md` says why. The walker
//! holds one slot at a time, for some dozens of small entries. It shows large values after it has
//! unlocked the slot and left the gate, because a sink compresses and computes checksums. Other
//! threads may then still wait for a copy in memory: of one member of some 256 kB, of a packed
//! block, of a list's directory (a reference for each node), or of a large string that two keys
//! share, when a writer changes it in place while the walker still reads it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::limits::SLOTS;
use base::passing::Passing;

use crate::entry::{Entry, Value, ValueRef, Word};
use crate::keyspace::{Key, Keyspace, LockedSlots, SlotTable};
use crate::locks::gate::{Access, Pinned};
use crate::locks::sync::{AtomicU64, Mutex};
use crate::slot_set::SlotSet;
use crate::snapshot::cut_memory::CutMemory;
use crate::snapshot::freeze::{Frozen, Location, Piece, PieceKind, Pieces};
use crate::snapshot::frozen_text::{FrozenText, LARGE_TEXT};
use crate::types::sizes::Sizes;
use crate::types::string::StringRef;

/// Tables with more members than this are frozen rather than copied.
const COPIED_MEMBERS: usize = 64;
/// Tables with more members than this are huge.
const HUGE_MEMBERS: usize = if cfg!(test) { 600 } else { 64 * 1024 };
/// Tables with more bytes than this are huge, too.
const HUGE_BYTES: usize = if cfg!(test) { 256 << 10 } else { 8 << 20 };
/// Huge tables wait no longer when this part of the copied bytes that may be borne is theirs.
const PRESSED_SHARE: usize = 4;
/// Lists with more elements than this are shown after their slot is unlocked.
const COPIED_ELEMENTS: usize = 128;
/// Values with more bytes than this are large, even if they have few parts: tables are frozen, and
/// all others are shown after their slot is unlocked.
const LARGE_VALUE: usize = 16 * 1024;
/// This many tables of a database that is taken away are looked at, to estimate what all of them
/// take.
const SAMPLED_TABLES: usize = 256;
/// Entries that are looked at in each table: one in this many, and this many at most.
const SAMPLES: usize = 16;
/// About how many entries the walker looks at under one lock of a slot.
const ENTRIES_PER_LOCK: usize = 64;
/// Buckets whose entries are prefetched at the beginning of a lock: about this many have as many
/// entries as are shown. Small entries are read in less time than memory takes to answer.
const BUCKETS_AHEAD: usize = 12;
/// Bytes that it looks at, about.
const BYTES_PER_LOCK: usize = 64 * 1024;
/// About how many members of a frozen table it reads under one lock of the table's slot.
const MEMBERS_PER_LOCK: usize = 256;
/// Parts of a large string that are shown in one step.
const PARTS_PER_STEP: usize = 4;
/// Pieces of more bytes than this are copied while the slot is locked, and shown after it is
/// unlocked.
const LARGE_PIECE: usize = 2 * 1024;
/// When this many bytes are copied for the walker and not written yet, writers should wait, unless
/// a larger number is allowed.
const CUT_MEMORY_MAX: usize = 64 << 20;

/// A key, and the facts about it besides its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'h> {
    /// The number that the database had at the cut.
    pub database: usize,
    /// The key.
    pub key: &'h [u8],
    /// When it expires, in milliseconds of Unix time.
    pub expire_at: Option<u64>,
    /// Its eviction clock: see [`crate::evict`].
    pub clock: u32,
    /// The id of its content type; 0 for none.
    pub content_type_id: u8,
}

/// Receives the entries of a cut.
pub trait Sink {
    /// An entry. If it is small, its slot may be locked meanwhile: this must not wait.
    fn entry(&mut self, head: &Head<'_>, value: ValueRef<'_>);
    /// An entry while nothing is locked: this may take long, and wait for a disk.
    fn entry_at_leisure(&mut self, head: &Head<'_>, value: ValueRef<'_>) {
        self.entry(head, value);
    }
    /// The beginning of a collection of `len` pieces, which follow before anything else.
    fn begin(&mut self, head: &Head<'_>, kind: PieceKind, len: usize);
    /// A piece of the open collection. Its slot may be locked meanwhile if the piece is small.
    fn piece(&mut self, piece: Piece<'_>);
    /// The same while nothing is locked.
    fn piece_at_leisure(&mut self, piece: Piece<'_>) {
        self.piece(piece);
    }
    /// Its end.
    fn end(&mut self);
    /// The beginning of a string of `len` bytes; its parts follow before anything else.
    fn begin_text(&mut self, head: &Head<'_>, len: usize);
    /// The next part of the string.
    fn text(&mut self, part: &[u8]);
    /// Its end.
    fn end_text(&mut self);
}

/// A key by itself.
struct OwnedHead {
    database: usize,
    key: Box<[u8]>,
    expire_at: Option<u64>,
    clock: u32,
    content_type_id: u8,
}

impl OwnedHead {
    fn new(database: usize, entry: Entry<'_>) -> OwnedHead {
        OwnedHead {
            database,
            key: entry.key().into(),
            expire_at: entry.expire_at(),
            clock: entry.clock(),
            content_type_id: entry.content_type_id(),
        }
    }

    fn view(&self) -> Head<'_> {
        let OwnedHead { database, ref key, expire_at, clock, content_type_id } = *self;
        Head { database, key, expire_at, clock, content_type_id }
    }
}

/// An entry that was handed over.
struct Handed {
    head: OwnedHead,
    value: Value<'static>,
    /// Bytes of the copy.
    copied: usize,
    /// Bytes that it shared with a key which has dropped them since.
    kept: usize,
}

/// A collection that waits for being read in pieces.
struct WaitingCollection {
    head: OwnedHead,
    frozen: Arc<Frozen>,
    /// Showing it takes so long that others go first.
    is_huge: bool,
}

/// A table that FLUSHALL removed before the walk reached its end.
struct Taken {
    database: usize,
    slot: u16,
    /// From where on.
    position: u32,
    table: SlotTable,
    /// Roughly its bytes.
    kept: usize,
}

/// Entries that wait for the walker, until the walker ends. A writer that found the cut before it
/// ended may still bring something afterwards, and gets it back, because no walker would ever take
/// it.
struct Queue<T>(Mutex<Option<VecDeque<T>>>);

impl<T> Queue<T> {
    fn new() -> Queue<T> {
        Queue(Mutex::new(Some(VecDeque::new())))
    }

    /// Adds something at the end, or gives it back if the walker has ended.
    fn push(&self, item: T) -> Result<(), T> {
        match &mut *self.0.lock() {
            Some(items) => {
                items.push_back(item);
                Ok(())
            }
            None => Err(item),
        }
    }

    /// Puts back an entry that the walker took from the front.
    fn put_back(&self, item: T) {
        if let Some(items) = &mut *self.0.lock() {
            items.push_front(item);
        }
    }

    /// Takes up to `count` items from the front.
    fn take(&self, count: usize) -> Vec<T> {
        let mut items = self.0.lock();
        items.as_mut().map_or_else(Vec::new, |items| {
            let count = items.len().min(count);
            items.drain(..count).collect()
        })
    }

    fn pop(&self) -> Option<T> {
        self.0.lock().as_mut()?.pop_front()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().as_ref().is_none_or(VecDeque::is_empty)
    }

    /// Takes all, and nothing more from now on.
    fn end(&self) -> VecDeque<T> {
        self.0.lock().take().unwrap_or_default()
    }
}

/// State that walker and writers share.
pub struct Cut {
    version: u64,
    /// Marks are this cut's: no earlier one has left any.
    marks: bool,
    /// The slots that it is of, unless it is of all.
    slots: Option<SlotSet>,
    /// Fields of some hashes expire.
    has_expiring_fields: bool,
    /// The position of the walker: the database's number times [`SLOTS`], plus the slot. Written
    /// under the lock of the slot that it leaves, if that has keys.
    at: AtomicU64,
    /// Reversed hashes in that slot below this are passed.
    position: AtomicU64,
    /// The numbers that databases had at the cut, by their numbers now.
    databases: Box<[AtomicUsize]>,
    handed: Queue<Handed>,
    frozen: Queue<WaitingCollection>,
    texts: Queue<(OwnedHead, Arc<FrozenText>)>,
    taken: Queue<Taken>,
    /// By the numbers of the databases at the cut: their tables have been taken away since. All
    /// that is in them now came after the cut, or was handed over on its way there.
    emptied: Box<[AtomicBool]>,
    memory: Arc<CutMemory>,
    /// Copied bytes from which on writers should wait.
    borne: AtomicUsize,
}

impl Cut {
    pub(crate) fn new(
        (version, marks): (u64, bool),
        databases: usize,
        has_expiring_fields: bool,
        slots: Option<SlotSet>,
    ) -> Cut {
        Cut {
            version,
            marks,
            slots,
            has_expiring_fields,
            at: AtomicU64::new(0),
            position: AtomicU64::new(0),
            databases: (0..databases).map(AtomicUsize::new).collect(),
            handed: Queue::new(),
            frozen: Queue::new(),
            texts: Queue::new(),
            taken: Queue::new(),
            emptied: (0..databases).map(|_| AtomicBool::new(false)).collect(),
            memory: Arc::default(),
            borne: AtomicUsize::new(CUT_MEMORY_MAX),
        }
    }

    /// Entries with a version up to this belong to the cut.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether so much was copied and not yet written that writers should wait. Data that was there
    /// before, and would only be freed, is no reason to wait.
    pub fn is_behind(&self) -> bool {
        self.memory.copied() > self.borne.load(Ordering::Relaxed)
    }

    /// Whether half of that was copied, so that writers will soon have to wait.
    pub fn presses(&self) -> bool {
        self.memory.copied() > self.borne.load(Ordering::Relaxed) / 2
    }

    /// Bytes that were handed over and are not written yet.
    pub(crate) fn memory(&self) -> usize {
        self.memory.bytes()
    }

    /// The number at the cut of a database.
    pub(crate) fn number_of(&self, database: usize) -> usize {
        self.databases[database].load(Ordering::Relaxed)
    }

    /// The number that a database of the cut has now.
    fn database_of(&self, number: usize) -> usize {
        let mut databases = 0..self.databases.len();
        databases.find(|&database| self.number_of(database) == number).expect("a permutation")
    }

    /// A value is put under a key.
    pub(crate) fn note_placed(&self, database: usize, key: &[u8], value: &Value<'_>) {
        if let Some(frozen) = value.frozen() {
            let location = Location { database: self.number_of(database), key: key.into() };
            *frozen.location.lock() = location;
        }
    }

    /// Two databases were exchanged, with the world stopped.
    pub(crate) fn swap(&self, one: usize, other: usize) {
        let number = self.number_of(one);
        self.databases[one].store(self.number_of(other), Ordering::Relaxed);
        self.databases[other].store(number, Ordering::Relaxed);
    }

    /// The position from which a locked slot still has to be walked; `None` when the walk has
    /// passed it.
    fn rest_of(&self, number: usize, slot: u16) -> Option<u32> {
        let own = number as u64 * SLOTS as u64 + u64::from(slot);
        match self.at.load(Ordering::Acquire).cmp(&own) {
            std::cmp::Ordering::Less => Some(0),
            std::cmp::Ordering::Equal => u32::try_from(self.position.load(Ordering::Relaxed)).ok(),
            std::cmp::Ordering::Greater => None,
        }
    }

    /// Whether an entry belongs to the cut and was not shown yet. Its slot is locked.
    pub(crate) fn wants(&self, database: usize, key: &Key<'_>, word: Word) -> bool {
        let passed = || {
            let rest = self.rest_of(self.number_of(database), key.slot);
            rest.is_none_or(|rest| SlotTable::position_at(key.hash) < rest)
        };
        self.has(word, word.is_handed()) && self.is_of(key.slot) && !passed()
    }

    /// Whether it is of a slot.
    fn is_of(&self, slot: u16) -> bool {
        self.slots.as_ref().is_none_or(|slots| slots.has(slot))
    }

    /// Whether an entry belongs to the cut and was not handed over.
    fn has(&self, word: Word, handed: bool) -> bool {
        word.version() <= self.version && !(self.marks && handed)
    }

    /// Marks an entry that was handed over, if this cut may.
    pub(crate) fn mark(&self, word: Word) -> bool {
        if self.marks {
            word.set_handed(true);
        }
        self.marks
    }

    /// Takes an entry over before it changes, or before it leaves its table. The caller has it for
    /// itself, and marks it afterwards.
    pub(crate) fn take_over(&self, database: usize, word: Word, leaves: bool) {
        let number = self.number_of(database);
        let entry = Entry::new(word);
        if self.freeze(number, word) {
            return;
        }
        let head = OwnedHead::new(number, entry);
        let value = entry.value().to_value();
        let copied = entry.allocated() + value_bytes(entry.value());
        let kept = kept_bytes(entry, leaves);
        self.memory.add_copied(copied);
        self.memory.add_kept(kept);
        // After the walker's end the copy is not needed, and it is dropped here.
        drop(self.handed.push(Handed { head, value, copied, kept }));
    }

    /// Freezes a large table or string. Returns whether the value is one.
    fn freeze(&self, number: usize, word: Word) -> bool {
        let entry = Entry::new(word);
        if let ValueRef::String(StringRef::Shared(buffer)) = entry.value()
            && buffer.len() > LARGE_TEXT
        {
            let text = FrozenText::new(buffer, &self.memory);
            drop(self.texts.push((OwnedHead::new(number, entry), text)));
            return true;
        }
        let Some(table) = word.freezing() else { return false };
        if table.len() <= COPIED_MEMBERS && value_bytes(entry.value()) <= LARGE_VALUE {
            return false;
        }
        let location = Location { database: number, key: entry.key().into() };
        let memory = Arc::clone(&self.memory);
        let frozen = Frozen::new(table.kind(), table.len(), location, memory);
        let is_huge = table.len() > HUGE_MEMBERS || entry.memory_estimate() > HUGE_BYTES;
        let head = OwnedHead::new(number, entry);
        // First the queue: a table is frozen only for a walker that will read it or give it up. The
        // slot's lock, which the caller holds, keeps the walker from the table until it is frozen.
        let queued =
            self.frozen.push(WaitingCollection { head, frozen: Arc::clone(&frozen), is_huge });
        if queued.is_ok() {
            table.freeze(frozen);
        }
        true
    }

    /// The tables of a database leave the keyspace, with the world stopped. Gives back those of
    /// which the cut needs nothing.
    pub(crate) fn take_tables(
        &self,
        database: usize,
        tables: Vec<(u16, SlotTable)>,
    ) -> Vec<SlotTable> {
        let number = self.number_of(database);
        if self.emptied[number].swap(true, Ordering::Relaxed) {
            return tables.into_iter().map(|(_, table)| table).collect();
        }
        let entry = entry_bytes(&tables);
        let rest = tables.into_iter().filter_map(|(slot, table)| {
            // A table that the walker has passed may still be being read in pieces.
            let reading = !self.frozen.is_empty();
            if !self.is_of(slot) {
                return Some(table);
            }
            let position = match self.rest_of(number, slot) {
                Some(position) => position,
                None if reading => u32::MAX,
                None => return Some(table),
            };
            let kept = entry * table.len() + table.overhead();
            self.memory.add_kept(kept);
            let taken = self.taken.push(Taken { database: number, slot, position, table, kept });
            taken.err().map(|taken| taken.table)
        });
        rest.collect()
    }

    /// Ends the cut for writers: no walker reads on.
    fn give_up(&self) {
        drop(self.handed.end());
        drop(self.texts.end());
        for waiting in self.frozen.end() {
            waiting.frozen.give_up();
        }
        for taken in self.taken.end() {
            self.memory.remove_kept(taken.kept);
        }
    }
}

/// Bytes that a copy of a value takes; exact for values of few members.
fn value_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::String(_) | ValueRef::List(_) | ValueRef::Stream(_) => 0,
        ValueRef::Set(set) => set.memory_usage(COPIED_MEMBERS),
        ValueRef::Hash(hash) => hash.memory_usage(COPIED_MEMBERS),
        ValueRef::Zset(zset) => zset.memory_usage(COPIED_MEMBERS),
    }
}

/// Bytes that a value shares with what was handed over, and that the key will drop.
fn kept_bytes(entry: Entry<'_>, leaves: bool) -> usize {
    match entry.value() {
        // It is replaced, or copied before it is changed.
        ValueRef::String(StringRef::Shared(buffer)) => buffer.capacity(),
        ValueRef::List(_) | ValueRef::Stream(_) if leaves => entry.memory_estimate(),
        _ => 0,
    }
}

/// About how many bytes an entry of some tables takes. They leave the keyspace while the world is
/// stopped, so only a few are looked at.
fn entry_bytes(tables: &[(u16, SlotTable)]) -> usize {
    let entries = tables.iter().map(|(_, table)| table.len()).sum();
    let mut sizes = Sizes::default();
    for (_, table) in tables.iter().step_by(tables.len().div_ceil(SAMPLED_TABLES).max(1)) {
        let samples = table.len().div_ceil(SAMPLES).min(SAMPLES);
        let drawn = (0..samples).filter_map(|_| table.random());
        drawn.for_each(|entry| sizes.note(entry.memory_estimate()));
    }
    sizes.average(entries)
}

/// Whether showing a value takes so long that its slot should be unlocked meanwhile.
fn is_large(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::String(string) => string.len() > LARGE_VALUE,
        ValueRef::List(list) => {
            list.len() > COPIED_ELEMENTS
                || list.node_count() > 1
                || list.memory_usage() > LARGE_VALUE
        }
        ValueRef::Stream(stream) => {
            stream.block_count() > 1
                || stream.group_count() > 0
                || stream.memory_usage(1) > LARGE_VALUE
        }
        value => value_bytes(value) > LARGE_VALUE,
    }
}

/// A value that is shown later.
type Later = (OwnedHead, Value<'static>);

/// The result of a step of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WalkProgress {
    /// Something was done, and more is left.
    More,
    /// A slot is in use: try again.
    Contended,
    /// All entries of the cut were shown.
    Finished,
}

/// Shows all entries of a cut, step by step. Dropping it ends the cut.
pub struct Walker<'k, X> {
    space: &'k Keyspace<X>,
    cut: Arc<Cut>,
    /// The collection that is being read in pieces.
    open: Option<(OwnedHead, Arc<Frozen>)>,
    /// Huge collections that are shown later.
    huge: Vec<WaitingCollection>,
    /// The string that is.
    text: Option<Arc<FrozenText>>,
    /// A piece of the collection.
    part: Vec<u8>,
}

impl<'k, X> Walker<'k, X> {
    pub(crate) fn new(space: &'k Keyspace<X>, cut: Arc<Cut>) -> Walker<'k, X> {
        Walker { space, cut, open: None, huge: Vec::new(), text: None, part: Vec::new() }
    }

    /// Lets this many bytes of copies wait before writers do, if it is more than usual. While one
    /// large collection is shown, which may take long, no copy is shown.
    pub fn bear(&self, bytes: usize) {
        self.cut.borne.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Whether there are hashes with expiring fields.
    pub fn has_expiring_fields(&self) -> bool {
        self.cut.has_expiring_fields
    }

    /// Whether another thread has found a slot locked since the last call. Then it is time to let
    /// others go first, because a large collection is read by locking one slot again and again.
    pub fn was_in_the_way(&self) -> bool {
        self.space.was_waited_for()
    }

    /// Goes on a little, inside the gate where data is touched and outside where it is shown.
    pub fn step(&mut self, access: Access<'_>, sink: &mut dyn Sink) -> WalkProgress {
        if self.open.is_some() {
            return self.read_open(access, sink);
        }
        if self.show_text(sink) || self.show_handed(sink) {
            return WalkProgress::More;
        }
        if let Some(waiting) = self.cut.frozen.pop() {
            match waiting.is_huge {
                true => self.huge.push(waiting),
                false => self.begin(waiting, sink),
            }
            return WalkProgress::More;
        }
        if let Some(pressed) = self.take_pressed() {
            self.begin(pressed, sink);
            return WalkProgress::More;
        }
        if self.show_taken(sink) {
            return WalkProgress::More;
        }
        let mut later = Vec::new();
        let inside = access.enter();
        let step = self.walk(inside.pinned(), sink, &mut later);
        drop(inside);
        for (head, value) in later {
            sink.entry_at_leisure(&head.view(), value.as_ref());
        }
        match (step, self.huge.pop_if(|_| step == WalkProgress::Finished)) {
            (WalkProgress::Finished, Some(huge)) => {
                self.begin(huge, sink);
                WalkProgress::More
            }
            (step, _) => step,
        }
    }

    /// Begins to show a collection.
    fn begin(
        &mut self,
        WaitingCollection { head, frozen, .. }: WaitingCollection,
        sink: &mut dyn Sink,
    ) {
        sink.begin(&head.view(), frozen.kind(), frozen.len());
        self.open = Some((head, frozen));
    }

    /// Takes the huge collection of which most copies wait, if they are so many that it should wait
    /// no longer. Copies of all others have been shown.
    fn take_pressed(&mut self) -> Option<WaitingCollection> {
        let borne = self.cut.borne.load(Ordering::Relaxed);
        if self.cut.memory.copied() <= borne / PRESSED_SHARE {
            return None;
        }
        let copied = |huge: &WaitingCollection| huge.frozen.copied();
        let most = (0..self.huge.len()).max_by_key(|&at| copied(&self.huge[at]))?;
        (copied(&self.huge[most]) > 0).then(|| self.huge.swap_remove(most))
    }

    fn show_handed(&self, sink: &mut dyn Sink) -> bool {
        let handed = self.cut.handed.take(ENTRIES_PER_LOCK);
        let any = !handed.is_empty();
        for handed in handed {
            sink.entry_at_leisure(&handed.head.view(), handed.value.as_ref());
            self.cut.memory.remove_copied(handed.copied);
            self.cut.memory.remove_kept(handed.kept);
        }
        any
    }

    /// Shows some of a large string. Needs no lock except that of the string; no other thread needs
    /// the string until its end.
    fn show_text(&mut self, sink: &mut dyn Sink) -> bool {
        let Some(text) = &self.text else {
            let Some((head, text)) = self.cut.texts.pop() else { return false };
            sink.begin_text(&head.view(), text.len());
            self.text = Some(text);
            return true;
        };
        for _ in 0..PARTS_PER_STEP {
            if !text.read(&mut self.part) {
                sink.end_text();
                (self.text, self.part) = (None, Vec::new());
                break;
            }
            sink.text(&self.part);
        }
        true
    }

    // ---- Collections in pieces ------------------------------------------------------------------

    fn read_open(&mut self, access: Access<'_>, sink: &mut dyn Sink) -> WalkProgress {
        let Some((_, frozen)) = &self.open else { return WalkProgress::More };
        let frozen = Arc::clone(frozen);
        let mut large = Pieces::default();
        let mut show = |piece: Piece<'_>| {
            if piece.bytes() > LARGE_PIECE { large.push(piece) } else { sink.piece(piece) }
        };
        let more = match frozen.take_orphan() {
            // No other thread knows it: it is read without a lock, and freed here after it was
            // read.
            Some(orphan) => {
                let more = read_if_frozen(orphan.word(), &frozen, &mut show);
                if more == Some(true) {
                    frozen.adopt(orphan);
                }
                more
            }
            None => {
                let inside = access.enter();
                self.read_where_it_lies(inside.pinned(), &frozen, &mut show)
            }
        };
        let more = match more {
            None if frozen.is_complete() => Some(false),
            more => more,
        };
        let _copied = Passing::new(large.allocated());
        large.show(frozen.kind(), |piece| sink.piece_at_leisure(piece));
        frozen.show_lent(|piece| sink.piece_at_leisure(piece));
        frozen.take().show(frozen.kind(), |piece| sink.piece_at_leisure(piece));
        match more {
            // The entry is on its way from one place to another, or its slot is in use.
            None => WalkProgress::Contended,
            Some(true) => WalkProgress::More,
            Some(false) => {
                sink.end();
                frozen.give_up();
                self.open = None;
                WalkProgress::More
            }
        }
    }

    /// Reads on in a table that other threads may use: in the keyspace or in one that was taken
    /// away. Returns whether more is left, or nothing when the table was not found.
    fn read_where_it_lies(
        &self,
        pinned: Pinned<'_>,
        frozen: &Arc<Frozen>,
        show: &mut dyn FnMut(Piece<'_>),
    ) -> Option<bool> {
        let location = frozen.location.lock().clone();
        let key = Key::new(&location.key);
        for taken in self.cut.taken.0.lock().iter().flatten() {
            if (taken.database, taken.slot) == (location.database, key.slot)
                && let Some(word) = taken.table.word_of(&key)
                && let Some(more) = read_if_frozen(word, frozen, show)
            {
                return Some(more);
            }
        }
        let locked = self.space.try_lock_briefly(pinned, key.slot, 0)?;
        let database = self.cut.database_of(location.database);
        let word = locked.table(database, key.slot)?.word_of(&key)?;
        read_if_frozen(word, frozen, show)
    }

    // ---- Tables that were taken away ------------------------------------------------------------

    /// Shows some entries of a table that was taken away, where they lie: no other thread uses it
    /// any more. Frozen collections are read before the next entries are shown, from the table or
    /// as an orphan.
    fn show_taken(&self, sink: &mut dyn Sink) -> bool {
        let Some(mut taken) = self.cut.taken.pop() else { return false };
        let mut entries = 0;
        let mut position = (taken.position < u32::MAX).then_some(taken.position);
        while let Some(at) = position.filter(|_| entries < ENTRIES_PER_LOCK) {
            position = taken.table.walk(at, |entry| {
                entries += 1;
                let wanted = self.cut.has(entry.word, entry.word.is_handed())
                    && SlotTable::position_of(entry.key()) >= at;
                if wanted && !self.freeze(taken.database, entry) {
                    sink.entry_at_leisure(&head_of(taken.database, entry), entry.value());
                }
            });
        }
        if let Some(position) = position {
            taken.position = position;
            self.cut.taken.put_back(taken);
        } else {
            self.cut.memory.remove_kept(taken.kept);
        }
        true
    }

    // ---- The keyspace ---------------------------------------------------------------------------

    fn walk(
        &mut self,
        pinned: Pinned<'_>,
        sink: &mut dyn Sink,
        later: &mut Vec<Later>,
    ) -> WalkProgress {
        let at = self.cut.at.load(Ordering::Relaxed);
        let (number, slot) = ((at / SLOTS as u64) as usize, (at % SLOTS as u64) as usize);
        if number == self.space.databases() {
            // Marks that an earlier cut has left in other slots are still there.
            if self.cut.slots.is_none() || self.cut.marks {
                self.space.marked.store(false, Ordering::Relaxed);
            }
            return WalkProgress::Finished;
        }
        let database = self.cut.database_of(number);
        let Some(next) = self.space.next_of_all(database, slot, self.cut.slots.as_ref()) else {
            self.go_to(number + 1, 0);
            return WalkProgress::More;
        };
        if usize::from(next) != slot {
            self.go_to(number, next);
        }
        let Some(mut locked) = self.space.try_lock_briefly(pinned, next, 0) else {
            return WalkProgress::Contended;
        };
        self.walk_locked(&mut locked, (number, database, next), sink, later);
        WalkProgress::More
    }

    /// Shows some entries of a slot, and keeps those that are better shown after the slot is
    /// unlocked.
    fn walk_locked(
        &self,
        locked: &mut LockedSlots<'_, X>,
        (number, database, slot): (usize, usize, u16),
        sink: &mut dyn Sink,
        later: &mut Vec<Later>,
    ) {
        let (mut entries, mut bytes) = (0, 0);
        let from = self.cut.position.load(Ordering::Relaxed) as u32;
        let mut position = Some(from);
        let Some(table) = locked.table(database, slot) else { return };
        table.prefetch_walk(from, BUCKETS_AHEAD);
        while let Some(at) =
            position.filter(|_| entries < ENTRIES_PER_LOCK && bytes < BYTES_PER_LOCK)
        {
            position = table.walk(at, |entry| {
                entries += 1;
                bytes += entry.allocated();
                let handed = entry.word.is_handed();
                if handed {
                    entry.word.set_handed(false);
                }
                // A bucket that grew by a merge begins before the place where we are.
                let passed = SlotTable::position_of(entry.key()) < at;
                if passed || !self.cut.has(entry.word, handed) || self.freeze(number, entry) {
                    return;
                }
                bytes += value_bytes(entry.value());
                show_or_keep(number, entry, sink, later);
            });
        }
        match position {
            Some(position) => {
                debug_assert!(from < position, "the walk goes on");
                self.cut.position.store(u64::from(position), Ordering::Relaxed);
            }
            None => self.go_to_behind(number, slot),
        }
    }

    fn freeze(&self, number: usize, entry: Entry<'_>) -> bool {
        self.cut.freeze(number, entry.word)
    }

    fn go_to_behind(&self, number: usize, slot: u16) {
        match slot + 1 {
            next if usize::from(next) < SLOTS => self.go_to(number, next),
            _ => self.go_to(number + 1, 0),
        }
    }

    fn go_to(&self, number: usize, slot: u16) {
        // No thread uses the slot that is left: we have locked it, or it has no keys of the cut. A
        // thread that uses the next slot sees the new position together with it.
        let at = number as u64 * SLOTS as u64 + u64::from(slot);
        debug_assert!(self.cut.at.load(Ordering::Relaxed) < at, "the walk never goes back");
        self.cut.position.store(0, Ordering::Relaxed);
        self.cut.at.store(at, Ordering::Release);
    }
}

/// Reads on in the table of a large collection, if it is the one that is being read. Returns
/// whether more is left then.
fn read_if_frozen(
    word: Word,
    frozen: &Arc<Frozen>,
    show: &mut dyn FnMut(Piece<'_>),
) -> Option<bool> {
    let table = word.freezing()?;
    let same = table.frozen().is_some_and(|other| Arc::ptr_eq(other, frozen));
    same.then(|| table.read_frozen(MEMBERS_PER_LOCK, BYTES_PER_LOCK, show))
}

/// Shows an entry, or keeps a large one to be shown later: large strings, lists and streams by
/// reference.
fn show_or_keep(number: usize, entry: Entry<'_>, sink: &mut dyn Sink, later: &mut Vec<Later>) {
    let value = entry.value();
    if is_large(value) {
        later.push((OwnedHead::new(number, entry), value.to_value()));
    } else {
        sink.entry(&head_of(number, entry), value);
    }
}

fn head_of<'e>(database: usize, entry: Entry<'e>) -> Head<'e> {
    Head {
        database,
        key: entry.key(),
        expire_at: entry.expire_at(),
        clock: entry.clock(),
        content_type_id: entry.content_type_id(),
    }
}

impl<X> Drop for Walker<'_, X> {
    fn drop(&mut self) {
        self.space.end_cut();
        if let Some((_, frozen)) = self.open.take() {
            frozen.give_up();
        }
        for huge in self.huge.drain(..) {
            huge.frozen.give_up();
        }
        self.cut.give_up();
    }
}

#[cfg(test)]
mod tests;
