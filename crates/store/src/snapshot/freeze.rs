//! A large collection at an instant, read in pieces while it goes on changing.
//!
//! Copying a set of ten million members would lock its slot for seconds. Instead, a snapshot leaves
//! a [`Freeze`] in the collection's table, and reads the table piece by piece in the order of
//! reversed hash bits, which stays valid through splits and merges of buckets. A writer that
//! changes a member which the snapshot has not read yet first *hands over* its bucket, in the
//! division into buckets that the table had at the beginning, and marks it. So each of the original
//! buckets is read once, as it was at the beginning, by the snapshot or through a writer. A write
//! costs a copy of some six members at most. The memory beyond the data is what was handed over and
//! not written yet. A large member is lent rather than copied: it stays in its block until the
//! snapshot has written it, even if it leaves the table.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::entry::Removed;
use crate::garbage::Block;
use crate::locks::sync::{AtomicBool, Mutex};
use crate::snapshot::cut_memory::CutMemory;

/// The kind of pieces that a collection consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PieceKind {
    /// Members of a set.
    Member,
    /// Fields of a hash with their values; the earliest time at which one expires.
    Field(Option<u64>),
    /// Members of a sorted set with their scores.
    Scored,
}

/// A member of a frozen collection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Piece<'p> {
    /// A member of a set.
    Member(&'p [u8]),
    /// A field of a hash, its value, and when it expires.
    Field(&'p [u8], &'p [u8], Option<u64>),
    /// A member of a sorted set, and its score.
    Scored(&'p [u8], f64),
}

impl Piece<'_> {
    /// Bytes of its texts.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Piece::Member(member) | Piece::Scored(member, _) => member.len(),
            Piece::Field(field, value, _) => field.len() + value.len(),
        }
    }
}

/// Where a collection is now: it may have been renamed or moved since it was frozen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Location {
    /// The database, as it was numbered at the cut.
    pub(crate) database: usize,
    pub(crate) key: Box<[u8]>,
}

/// State that a snapshot and a collection's table share.
pub struct Frozen {
    kind: PieceKind,
    /// Members at the instant of the snapshot.
    len: usize,
    pub(crate) location: Mutex<Location>,
    handed: Mutex<Pieces>,
    loans: Mutex<Loans>,
    /// The entry with the collection, once it was removed.
    orphan: Mutex<Option<Removed>>,
    /// The bytes of that, once they count.
    orphaned: AtomicUsize,
    /// All members that were not read have been handed over, since there is no table any more.
    complete: AtomicBool,
    /// No snapshot reads any more what is handed over.
    given_up: AtomicBool,
    /// Bytes that were handed over and not yet taken, of everything that the snapshot reads.
    memory: Arc<CutMemory>,
}

impl Frozen {
    pub(crate) fn new(
        kind: PieceKind,
        len: usize,
        location: Location,
        memory: Arc<CutMemory>,
    ) -> Arc<Frozen> {
        #[cfg(feature = "explore")]
        ALIVE.set(ALIVE.get() + 1);
        Arc::new(Frozen {
            kind,
            len,
            location: Mutex::new(location),
            handed: Mutex::default(),
            loans: Mutex::default(),
            orphan: Mutex::default(),
            orphaned: AtomicUsize::new(0),
            complete: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            memory,
        })
    }

    /// The kind of its pieces.
    pub fn kind(&self) -> PieceKind {
        self.kind
    }

    /// Members at the instant of the snapshot.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there was none, which is never so.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the pieces that were handed over.
    pub(crate) fn take(&self) -> Pieces {
        let pieces = std::mem::take(&mut *self.handed.lock());
        self.memory.remove_copied(pieces.0.len());
        pieces
    }

    /// Takes down members that are handed over.
    pub(crate) fn hand_over(&self, fill: impl FnOnce(&mut dyn FnMut(Piece<'_>))) {
        let mut handed = self.handed.lock();
        // Checked under the lock: a snapshot that gives up sets the flag first, and then takes what
        // is here.
        if self.is_given_up() {
            return;
        }
        let before = handed.0.len();
        fill(&mut |piece| handed.push(piece));
        self.memory.add_copied(handed.0.len() - before);
    }

    /// Bytes of copies that were handed over and not taken.
    pub(crate) fn copied(&self) -> usize {
        self.handed.lock().0.len()
    }

    /// Notes that the table is going away, and that all of it that was not read has been handed
    /// over.
    pub(crate) fn complete(&self) {
        self.complete.store(true, Ordering::Release);
    }

    /// Whether everything that is left to read was handed over.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// Lends a large member, in the block of this number, so that it need not be copied. Its texts
    /// stay as they are until it is given back, since the table asks before it writes to them
    /// ([`Frozen::has_lent`]) and before it frees the block ([`Frozen::keep`]).
    pub(crate) fn lend(&self, number: u64, piece: Piece<'static>) {
        let mut loans = self.loans.lock();
        // As in `hand_over`.
        if !self.is_given_up() {
            loans.out.insert(number, None);
            loans.waiting.push((number, piece));
        }
    }

    /// Whether a block is lent.
    pub(crate) fn has_lent(&self, number: u64) -> bool {
        self.loans.lock().out.contains_key(&number)
    }

    /// Whether any is.
    pub(crate) fn has_loans(&self) -> bool {
        !self.loans.lock().out.is_empty()
    }

    /// Takes over a block that has left the table, if it is lent. Says whether it is.
    pub(crate) fn keep(&self, number: u64, block: impl FnOnce() -> Block) -> bool {
        let mut loans = self.loans.lock();
        let Some(position) = loans.out.get_mut(&number) else { return false };
        let block = block();
        self.memory.add_kept(block.bytes());
        *position = Some(block);
        true
    }

    /// Shows the members that were lent, and gives them back.
    pub(crate) fn show_lent(&self, mut visit: impl FnMut(Piece<'_>)) {
        let waiting = std::mem::take(&mut self.loans.lock().waiting);
        for (number, piece) in waiting {
            visit(piece);
            let block = self.loans.lock().out.remove(&number).flatten();
            self.release(block);
        }
    }

    /// Frees a block that was kept. No lock is held meanwhile.
    fn release(&self, block: Option<Block>) {
        if let Some(block) = block {
            self.memory.remove_kept(block.bytes());
        }
    }

    /// Says that the snapshot ended: tables forget about it at their next change.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
        self.take();
        let loans = std::mem::take(&mut *self.loans.lock());
        loans.out.into_values().for_each(|block| self.release(block));
        // Dropped when the lock is free again, since its drop asks here whether to be adopted.
        let orphan = self.orphan.lock().take();
        drop(orphan);
        self.memory.remove_kept(self.orphaned.swap(0, Ordering::Relaxed));
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Takes ownership of a collection that was removed before it was read to its end, unless no
    /// snapshot reads it any more. Returns whether it did.
    pub(crate) fn adopt(&self, removed: Removed) -> bool {
        let mut orphan = self.orphan.lock();
        if self.is_given_up() {
            // The caller frees it.
            std::mem::forget(removed);
            return false;
        }
        // It comes back here after each piece that is read.
        if self.orphaned.load(Ordering::Relaxed) == 0 {
            let bytes = removed.entry().memory_estimate();
            self.orphaned.store(bytes, Ordering::Relaxed);
            self.memory.add_kept(bytes);
        }
        *orphan = Some(removed);
        true
    }

    pub(crate) fn take_orphan(&self) -> Option<Removed> {
        self.orphan.lock().take()
    }
}

#[cfg(feature = "explore")]
thread_local! {
    static ALIVE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How many collections are frozen, or kept by their snapshot.
#[cfg(feature = "explore")]
pub fn alive() -> usize {
    ALIVE.get()
}

#[cfg(feature = "explore")]
impl Drop for Frozen {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
    }
}

/// Members that a snapshot reads where they lie.
#[derive(Default)]
struct Loans {
    /// Loans that were not given back, by the numbers of their blocks; the blocks that have left
    /// the table.
    out: HashMap<u64, Option<Block>>,
    /// The pieces to show.
    waiting: Vec<(u64, Piece<'static>)>,
}

/// A table that can be frozen.
pub(crate) trait Freezing {
    fn kind(&self) -> PieceKind;
    fn len(&self) -> usize;
    /// Lets a snapshot read the table as it is now.
    fn freeze(&mut self, frozen: Arc<Frozen>);
    /// The snapshot that reads the table, if one does.
    fn frozen(&self) -> Option<&Arc<Frozen>>;
    /// Reads on, for the snapshot: about `count` members or `bytes`, fewer only at the end of the
    /// table, but at least one member. Returns whether more are left; when none is, the snapshot
    /// has left the table.
    fn read_frozen(&mut self, count: usize, bytes: usize, visit: &mut dyn FnMut(Piece<'_>))
    -> bool;
}

/// Marks, in the length of a field, that the time follows at which it expires.
const EXPIRES: usize = 1 << (usize::BITS - 1);

/// Members in one buffer: lengths in eight bytes, then the bytes.
#[derive(Default)]
pub(crate) struct Pieces(Vec<u8>);

impl Pieces {
    /// Bytes that the allocator has set aside for it.
    pub(crate) fn allocated(&self) -> usize {
        base::passing::allocated(self.0.capacity())
    }

    pub(crate) fn push(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Member(member) => self.text(member),
            Piece::Field(field, value, None) => {
                self.text(field);
                self.text(value);
            }
            Piece::Field(field, value, Some(at)) => {
                self.0.extend_from_slice(&(field.len() | EXPIRES).to_le_bytes());
                self.0.extend_from_slice(&at.to_le_bytes());
                self.0.extend_from_slice(field);
                self.text(value);
            }
            Piece::Scored(member, score) => {
                self.text(member);
                self.0.extend_from_slice(&score.to_le_bytes());
            }
        }
    }

    fn text(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&bytes.len().to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    /// Shows all members.
    pub(crate) fn show(&self, kind: PieceKind, mut visit: impl FnMut(Piece<'_>)) {
        let mut rest = &self.0[..];
        while !rest.is_empty() {
            let length = usize::from_le_bytes(take_word(&mut rest));
            let expires = length & EXPIRES != 0;
            let at = expires.then(|| u64::from_le_bytes(take_word(&mut rest)));
            let first = take_bytes(&mut rest, length & !EXPIRES);
            visit(match kind {
                PieceKind::Member => Piece::Member(first),
                PieceKind::Field(_) => Piece::Field(first, take_text(&mut rest), at),
                PieceKind::Scored => Piece::Scored(first, f64::from_le_bytes(take_word(&mut rest))),
            });
        }
    }
}

fn take_word(rest: &mut &[u8]) -> [u8; 8] {
    let (word, behind) = rest.split_first_chunk().expect("what was pushed is whole");
    *rest = behind;
    *word
}

fn take_text<'p>(rest: &mut &'p [u8]) -> &'p [u8] {
    let length = usize::from_le_bytes(take_word(rest));
    take_bytes(rest, length)
}

fn take_bytes<'p>(rest: &mut &'p [u8], length: usize) -> &'p [u8] {
    let (text, behind) = rest.split_at(length);
    *rest = behind;
    text
}

/// A snapshot's place in a table. Belongs to the table, and is used under its owner's lock.
pub(crate) struct Freeze {
    pub(crate) frozen: Arc<Frozen>,
    /// Buckets of the table at the beginning.
    buckets: u32,
    /// The buckets that were handed over.
    marked: Box<[u64]>,
    /// Reversed hashes below this were read.
    position: u64,
}

/// The position after all others.
const END: u64 = 1 << 32;

impl Freeze {
    pub(crate) fn new(frozen: Arc<Frozen>, buckets: usize) -> Freeze {
        let marked = vec![0; buckets.div_ceil(64)].into_boxed_slice();
        Freeze { frozen, buckets: buckets as u32, marked, position: 0 }
    }

    pub(crate) fn buckets(&self) -> u32 {
        self.buckets
    }

    /// Whether the table is read to its end.
    pub(crate) fn is_finished(&self) -> bool {
        self.position == END
    }

    /// Where to read next.
    pub(crate) fn position(&self) -> u32 {
        self.position as u32
    }

    /// Goes on to a position of a walk, or to the end.
    pub(crate) fn advance(&mut self, position: Option<u32>) {
        self.position = position.map_or(END, u64::from);
    }

    /// Whether the members at a reversed hash, in a bucket of the beginning, are still to be read.
    pub(crate) fn wants(&self, position: u32, bucket: u32) -> bool {
        u64::from(position) >= self.position && !self.is_marked(bucket)
    }

    fn is_marked(&self, bucket: u32) -> bool {
        self.marked[bucket as usize / 64] >> (bucket % 64) & 1 != 0
    }

    /// Marks a bucket at the beginning as handed over.
    pub(crate) fn mark(&mut self, bucket: u32) {
        self.marked[bucket as usize / 64] |= 1 << (bucket % 64);
    }
}
