//! The hash table of the keyspace, of hashes, of sets and of sorted sets.
//!
//! A table maps a 64-bit hash to *words*: non-zero 64-bit handles whose low 48 bits are a pointer
//! that the owner knows how to read. It never looks behind a word itself; the owner passes a
//! closure that compares or hashes what the word stands for. Two textbook ideas are combined:
//!
//! * **Bucketised chaining.** A bucket is one cache line: seven words and seven one-byte tags (the
//!   top byte of the hash). A lookup compares seven tags at once and reads a word only where the
//!   tag agrees, so that a miss costs one cache line and a hit one more. A bucket that overflows
//!   gives up its last word for a pointer to a further bucket.
//! * **Linear hashing** (Litwin, VLDB 1980). Buckets split one at a time, in index order, so growth
//!   never stalls, no second table exists, and the table is always nearly full. Shrinking runs the
//!   same steps backwards.
//!
//! The difference to the textbook is the order of a walk: positions are *reversed hash bits*. A
//! bucket covers an interval of that order and splitting cuts the interval in two, so a cursor
//! stays valid through any number of splits and merges: whatever was in the table from the start
//! of a walk to its end is visited at least once.
//!
//! Buckets and the table's root are atomics that are written under the owner's lock alone. The only
//! readers without it are [`Table::prefetch_entry`] and its kin, which prefetch cache lines before
//! a batch of commands runs; blocks that they could be reading are handed to [`super::retire`]
//! rather than freed at once.
//!
//! Those readers decide the orderings. They follow pointers to blocks that may have been made a
//! moment ago, so a pointer to a block is stored with `Release` and loaded by them with `Acquire`:
//! they see what the block was filled with before, its capacity above all. They believe nothing
//! else: the number of buckets, tags and words may be older or newer than the pointer, so an index
//! is checked against the bound that came with the pointer, a pointer to a further bucket is told
//! from a word by a bit of its own, and a word is an address to prefetch, never to read. All other
//! accesses are the owner's, whose lock orders them, hence `Relaxed`. `len` is a metric alone.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::marker::{PhantomData, PhantomPinned};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::retire;
use crate::locks::sync;

mod prefetch;
#[cfg(test)]
mod tests;
mod visit;

/// Words in a bucket.
const WORDS: usize = 7;
/// The capacity of a table whose only bucket is a small one.
const ONE_SMALL: u32 = 0;
/// Words in the only bucket of a small table: half a cache line. With a few keys per slot, most
/// tables of a keyspace are small.
const FEW: usize = 3;
/// Buckets in a segment: the unit in which big tables grow (4 kB).
const SEGMENT: u32 = 64;
/// The mean number of words per bucket above which a bucket is split, times two.
const SPLIT_ABOVE_TWICE: u64 = 11;
/// The mean number of words per bucket below which two buckets are merged.
const MERGE_BELOW: u64 = 2;
/// In the control byte: the last word points to a further bucket.
const CHAINED: u64 = 1 << 56;
/// Marks, in the control byte, a bucket of [`FEW`] words.
const SMALL: u64 = 1 << 57;
/// Bits of the first bucket's control byte: how many further buckets the longest chain of the table
/// has, or once had. Random draws need that bound, and a table's own fields have no room for it.
const LONGEST_SHIFT: u32 = 58;
/// Stands for "that many or more".
const LONGEST_MAX: u64 = 63;
const LONGEST: u64 = LONGEST_MAX << LONGEST_SHIFT;
const TAG_BITS: u64 = 0x00ff_ffff_ffff_ffff;
const ONES: u64 = 0x0001_0101_0101_0101;
const HIGHS: u64 = 0x0080_8080_8080_8080;
const POINTER: u64 = 0x0000_ffff_ffff_ffff;
/// Tells a pointer to a further bucket from a word, which has this bit never.
const LINK: u64 = 1 << 63;

/// One cache line: a word of seven tags and a control byte, then seven words; or half of one, with
/// three. A handle, because the type does not say how long the bucket is.
#[derive(Clone, Copy)]
struct Bucket<'t> {
    at: NonNull<AtomicU64>,
    table: PhantomData<&'t AtomicU64>,
}

/// A bucket of full size, as it is allocated.
#[repr(C, align(64))]
struct Line([AtomicU64; WORDS + 1]);

/// A bucket of [`FEW`] words, as it is allocated.
#[repr(C, align(32))]
struct HalfLine([AtomicU64; FEW + 1]);

impl<'t> Bucket<'t> {
    /// # Safety
    /// There is a bucket, which lives for `'t`.
    unsafe fn at(pointer: NonNull<Line>) -> Bucket<'t> {
        Bucket { at: pointer.cast(), table: PhantomData }
    }

    fn meta(self) -> &'t AtomicU64 {
        // SAFETY: a bucket begins with this word, and lives for `'t`.
        unsafe { self.at.as_ref() }
    }

    /// A word that the bucket has: where its tag is not zero, or below its room.
    fn word(self, index: usize) -> &'t AtomicU64 {
        debug_assert!(index < FEW || self.meta().load(Relaxed) & SMALL == 0);
        // SAFETY: this many words lie after the first one, because the callers make sure of it:
        // tags beyond the room of a small bucket are always zero.
        unsafe { self.at.add(1 + index).as_ref() }
    }

    fn tag(meta: u64, index: usize) -> u8 {
        (meta >> (index * 8)) as u8
    }

    fn set_tag(self, index: usize, tag: u8) {
        let shift = index * 8;
        let meta = self.meta().load(Relaxed) & !(0xff << shift);
        self.meta().store(meta | (u64::from(tag) << shift), Relaxed);
    }

    fn chained(meta: u64) -> bool {
        meta & CHAINED != 0
    }

    /// Words that a bucket can have besides a pointer to the next one.
    fn room(meta: u64) -> usize {
        if meta & SMALL != 0 { FEW } else { WORDS - usize::from(Self::chained(meta)) }
    }

    fn next(self) -> Option<Bucket<'t>> {
        if !Self::chained(self.meta().load(Relaxed)) {
            return None;
        }
        // SAFETY: a chained bucket's last word is the address of a bucket that `push` made and
        // that lives until the chain is cut by the same owner.
        unsafe { Self::linked(self.word(WORDS - 1).load(Relaxed)) }
    }

    /// [`Bucket::next`] for a reader without the lock.
    ///
    /// # Safety
    /// The bucket is of a `SHARED` table, and the caller inside its gate.
    #[inline]
    unsafe fn next_unlocked(self) -> Option<Bucket<'t>> {
        // A block of one small bucket never chains.
        if !Self::chained(self.meta().load(Relaxed)) {
            return None;
        }
        let link = self.word(WORDS - 1).load(Acquire);
        if link & LINK == 0 {
            // It is chained no more.
            return None;
        }
        #[cfg(feature = "explore")]
        retire::look_at(link & POINTER);
        // SAFETY: it was a part of the table just now, and retired blocks outlive the caller's
        // gate.
        unsafe { Self::linked(link) }
    }

    /// The further bucket that a link points to.
    ///
    /// # Safety
    /// The bucket lives for `'t`.
    #[inline]
    unsafe fn linked(link: u64) -> Option<Bucket<'t>> {
        let further = NonNull::new((link & POINTER) as *mut Line)?;
        // SAFETY: by the caller's promise.
        Some(unsafe { Bucket::at(further) })
    }

    fn free_index(self) -> Option<usize> {
        let meta = self.meta().load(Relaxed);
        (0..Self::room(meta)).find(|&index| Self::tag(meta, index) == 0)
    }

    fn count(self) -> usize {
        let meta = self.meta().load(Relaxed);
        (0..Self::room(meta)).filter(|&index| Self::tag(meta, index) != 0).count()
    }

    fn for_each(self, mut visit: impl FnMut(u64)) {
        let mut bucket = Some(self);
        while let Some(here) = bucket {
            let meta = here.meta().load(Relaxed);
            for index in 0..Self::room(meta) {
                if Self::tag(meta, index) != 0 {
                    visit(here.word(index).load(Relaxed));
                }
            }
            bucket = here.next();
        }
    }

    fn set(self, index: usize, tag: u8, word: u64) {
        self.word(index).store(word, Relaxed);
        self.set_tag(index, tag);
    }

    /// The word with this number in the chain that begins here.
    fn nth(self, mut number: usize) -> Option<u64> {
        let mut bucket = Some(self);
        while let Some(here) = bucket {
            let meta = here.meta().load(Relaxed);
            for index in 0..Self::room(meta) {
                if Self::tag(meta, index) != 0 {
                    if number == 0 {
                        return Some(here.word(index).load(Relaxed));
                    }
                    number -= 1;
                }
            }
            bucket = here.next();
        }
        None
    }

    /// How many further buckets the chain that begins here has.
    fn further(self) -> u64 {
        std::iter::successors(self.next(), |bucket| bucket.next()).count() as u64
    }

    /// Appends to the chain that begins here, making a further bucket when all are full. Returns
    /// how many further buckets there are if one was made, else 0.
    fn push(self, tag: u8, word: u64) -> u64 {
        let (mut bucket, mut further, mut made) = (self, 0, 0);
        loop {
            if let Some(index) = bucket.free_index() {
                bucket.set(index, tag, word);
                return made;
            }
            further += 1;
            if bucket.next().is_none() {
                bucket.chain();
                made = further;
            }
            bucket = bucket.next().expect("the bucket was chained just now");
        }
    }

    /// Moves the last word of a full bucket to a new bucket, and puts a pointer to that bucket in
    /// its place.
    fn chain(self) {
        let further = allocate_buckets(1);
        // SAFETY: `further` was allocated as one zeroed bucket just now, and is part of the table
        // now.
        let bucket = unsafe { Bucket::at(further) };
        let meta = self.meta().load(Relaxed);
        bucket.set(0, Self::tag(meta, WORDS - 1), self.word(WORDS - 1).load(Relaxed));
        self.word(WORDS - 1).store(further.as_ptr() as u64 | LINK, Release);
        let last_tag = 0xff << ((WORDS - 1) * 8);
        self.meta().store((meta & !last_tag) | CHAINED, Relaxed);
    }

    /// Empties the chain, giving each (tag, word) to `visit`, and each further bucket to `free`.
    fn drain(self, mut visit: impl FnMut(u8, u64), free: impl Fn(NonNull<u8>, Layout)) {
        let mut cut = self.next();
        let mut bucket = Some(self);
        while let Some(here) = bucket {
            let meta = here.meta().load(Relaxed);
            for index in 0..Self::room(meta) {
                let tag = Self::tag(meta, index);
                if tag != 0 {
                    visit(tag, here.word(index).load(Relaxed));
                }
            }
            bucket = here.next();
        }
        // First the further buckets leave the table, and then they are freed: a reader without the
        // lock that enters its gate in between must not find them. Nor must one that sees the
        // bucket chained anew before it sees the new link.
        if cut.is_some() {
            self.word(WORDS - 1).store(0, Relaxed);
        }
        // The first bucket's information about itself and the longest chain stays.
        self.meta().store(self.meta().load(Relaxed) & (LONGEST | SMALL), Relaxed);
        while let Some(further) = cut {
            cut = further.next();
            free(further.at.cast(), bucket_layout(1));
        }
    }
}

/// The layout of a block of this many buckets; [`ONE_SMALL`] stands for a single one of [`FEW`]
/// words.
fn bucket_layout(count: u32) -> Layout {
    match count {
        ONE_SMALL => Layout::new::<HalfLine>(),
        count => Layout::array::<Line>(count as usize).expect("a segment is at most 4 kB"),
    }
}

fn allocate_buckets(count: u32) -> NonNull<Line> {
    let layout = bucket_layout(count);
    // SAFETY: the layout has a size above zero, and all-zero bytes are an empty bucket.
    let pointer = unsafe { alloc_zeroed(layout) };
    let block = NonNull::new(pointer.cast()).unwrap_or_else(|| handle_alloc_error(layout));
    sync::note_made(pointer as u64);
    if count == ONE_SMALL {
        // SAFETY: allocated just now.
        unsafe { Bucket::at(block) }.meta().store(SMALL, Relaxed);
    }
    block
}

/// Whether this many words call for another bucket. A single bucket may be filled completely, and
/// so may one bucket that it chains: most tables of a sparse keyspace are such, and a chain leaves
/// no outgrown block behind.
fn is_full(words: u64, buckets: u64) -> bool {
    if buckets == 1 {
        words > 2 * WORDS as u64 - 1
    } else {
        words * 2 > buckets * SPLIT_ABOVE_TWICE
    }
}

/// How many buckets a table of one segment allocates when it needs `buckets`: the allocator's own
/// size classes, four to a doubling, so that nothing is rounded up and growing copies little.
fn segment_capacity(buckets: u32) -> u32 {
    if buckets <= 8 {
        return buckets.max(1);
    }
    let step = (buckets - 1).next_power_of_two() / 8;
    buckets.div_ceil(step.max(1)) * step.max(1)
}

/// The segments of a table of more than one.
#[repr(C)]
struct Directory {
    capacity: u64,
    segments: [AtomicU64; 0],
}

impl Directory {
    fn layout(capacity: u64) -> Layout {
        Layout::array::<u64>(capacity as usize + 1).expect("a directory fits the address space")
    }

    fn allocate(capacity: u64) -> NonNull<Directory> {
        let layout = Self::layout(capacity);
        // SAFETY: the size is above zero; zero is the null segment.
        let pointer = unsafe { alloc_zeroed(layout) }.cast::<Directory>();
        let directory = NonNull::new(pointer).unwrap_or_else(|| handle_alloc_error(layout));
        sync::note_made(directory.as_ptr() as u64);
        // SAFETY: allocated just now, not shared yet.
        unsafe { (*directory.as_ptr()).capacity = capacity };
        directory
    }

    /// # Safety
    /// `directory` is live, and `index` below its capacity.
    unsafe fn segment(directory: NonNull<Directory>, index: u64) -> *const AtomicU64 {
        // SAFETY: the segments lie after the header word in the same allocation.
        unsafe { directory.as_ptr().cast::<AtomicU64>().add(1 + index as usize) }
    }
}

/// Where a table keeps its buckets, as one word so that a reader without the lock sees a pointer
/// and the bound that belongs to it together.
#[derive(Clone, Copy)]
enum Root {
    Empty,
    /// One block of up to 64 buckets, or [`ONE_SMALL`].
    Single(NonNull<Line>, u32),
    Many(NonNull<Directory>),
}

const MANY: u64 = 1 << 63;

impl Root {
    fn pack(self) -> u64 {
        match self {
            Root::Empty => 0,
            Root::Single(buckets, capacity) => {
                buckets.as_ptr() as u64 | (u64::from(capacity) << 48)
            }
            Root::Many(directory) => directory.as_ptr() as u64 | MANY,
        }
    }

    /// Where its block begins.
    #[cfg(feature = "explore")]
    fn block(&self) -> u64 {
        match self {
            Root::Empty => 0,
            Root::Single(buckets, _) => buckets.as_ptr() as u64,
            Root::Many(directory) => directory.as_ptr() as u64,
        }
    }

    fn unpack(word: u64) -> Root {
        let address = word & POINTER;
        if word & MANY != 0 {
            NonNull::new(address as *mut Directory).map_or(Root::Empty, Root::Many)
        } else {
            NonNull::new(address as *mut Line)
                .map_or(Root::Empty, |buckets| Root::Single(buckets, (word >> 48) as u32))
        }
    }
}

/// Where a word lies; valid until the table is changed.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    home: u32,
    bucket: NonNull<AtomicU64>,
    index: usize,
}

/// A set of words found by hash. See the module's text.
///
/// Dropping a table frees its buckets, not the data behind the words: the owner drains it first.
///
/// A `SHARED` table is the keyspace's: other workers may run [`Table::prefetch_entry`] while it is
/// written, so its blocks are retired. Only the lock's owner sees other tables.
pub(crate) struct Table<const SHARED: bool = false> {
    root: sync::AtomicU64,
    buckets: AtomicU32,
    /// Atomic, because threads count keys without the lock.
    len: AtomicU32,
    /// An exclusive reference to a table excludes other owners, not the readers without the lock:
    /// the compiler must not take it for the only way to these words.
    _read_beside: PhantomPinned,
}

/// The tag of a hash: its top byte, where zero stands for "empty".
fn tag_of(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(1)
}

/// The bucket of `hash` among `buckets`, and how many low hash bits decided it.
fn address(hash: u64, buckets: u32) -> (u32, u32) {
    let level = 31 - buckets.leading_zeros();
    let low = hash as u32;
    let wide = low & (((2u64 << level) - 1) as u32);
    if wide < buckets { (wide, level + 1) } else { (wide & ((1u32 << level) - 1), level) }
}

/// How many low hash bits decide membership of bucket `index`.
fn depth_of(index: u32, buckets: u32) -> u32 {
    let level = 31 - buckets.leading_zeros();
    let split = buckets - (1 << level);
    if index < split || index >= (1 << level) { level + 1 } else { level }
}

impl<const SHARED: bool> Table<SHARED> {
    /// An empty table, which takes no memory but its own.
    pub(crate) const fn new() -> Self {
        Table {
            root: sync::AtomicU64::new(0),
            buckets: AtomicU32::new(0),
            len: AtomicU32::new(0),
            _read_beside: PhantomPinned,
        }
    }

    /// Words in the table.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Relaxed) as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Home buckets, for DEBUG HTSTATS.
    pub(crate) fn bucket_count(&self) -> usize {
        self.buckets.load(Relaxed) as usize
    }

    fn root(&self) -> Root {
        Root::unpack(self.root.load(Relaxed))
    }

    fn bucket(&self, index: u32) -> Bucket<'_> {
        let pointer = match self.root() {
            Root::Empty => unreachable!("an empty table has no buckets"),
            // SAFETY: `index` is below the number of buckets in the block.
            Root::Single(buckets, _) => unsafe { buckets.add(index as usize) },
            Root::Many(directory) => {
                // SAFETY: every bucket below the count lies in a segment of the directory.
                unsafe {
                    let segment = &*Directory::segment(directory, u64::from(index / SEGMENT));
                    let first = NonNull::new_unchecked(segment.load(Relaxed) as *mut Line);
                    first.add((index % SEGMENT) as usize)
                }
            }
        };
        // SAFETY: buckets are freed by `&mut self` methods alone.
        unsafe { Bucket::at(pointer) }
    }

    /// Finds the word with this hash for which `same` is true.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut same: impl FnMut(u64) -> bool) -> Option<Position> {
        let buckets = self.buckets.load(Relaxed);
        if buckets == 0 {
            return None;
        }
        let (home, _) = address(hash, buckets);
        let pattern = u64::from(tag_of(hash)) * ONES;
        let mut bucket = Some(self.bucket(home));
        while let Some(here) = bucket {
            let meta = here.meta().load(Relaxed);
            let difference = (meta ^ pattern) & TAG_BITS;
            let mut candidates = difference.wrapping_sub(ONES) & !difference & HIGHS;
            while candidates != 0 {
                let index = candidates.trailing_zeros() as usize / 8;
                candidates &= candidates - 1;
                let live = index < Bucket::room(meta) && Bucket::tag(meta, index) != 0;
                if live && same(here.word(index).load(Relaxed)) {
                    return Some(Position { home, bucket: here.at, index });
                }
            }
            bucket = here.next();
        }
        None
    }

    /// The word at a position that `find` gave, with the table unchanged since.
    #[inline]
    pub(crate) fn word(&self, position: Position) -> u64 {
        // SAFETY: positions are made by `find` and used before the table changes (see `Position`).
        unsafe { Bucket::at(position.bucket.cast()) }.word(position.index).load(Relaxed)
    }

    /// Replaces a word by another one with the same hash.
    #[inline]
    pub(crate) fn replace(&mut self, position: Position, word: u64) {
        // SAFETY: as in `word`.
        unsafe { Bucket::at(position.bucket.cast()) }.word(position.index).store(word, Relaxed);
    }

    /// Adds a word that is not there yet. `hash_of` gives the hashes of words that have to move.
    pub(crate) fn insert(&mut self, hash: u64, word: u64, hash_of: impl Fn(u64) -> u64) {
        debug_assert_ne!(word, 0, "zero is no word");
        let len = self.len.load(Relaxed).checked_add(1).expect("full tables are refused before");
        self.len.store(len, Relaxed);
        let buckets = self.buckets.load(Relaxed);
        if buckets == 0 {
            self.add_bucket();
        } else if len as usize == FEW + 1 && matches!(self.root(), Root::Single(_, ONE_SMALL)) {
            self.move_single(1);
        } else if is_full(u64::from(len), u64::from(buckets)) && Self::may_resize() {
            self.split(hash_of);
        }
        let (home, _) = address(hash, self.buckets.load(Relaxed));
        let further = self.bucket(home).push(tag_of(hash), word);
        if further > 0 {
            self.note_chain(further);
        }
    }

    /// Notes that a chain has this many further buckets.
    #[cold]
    fn note_chain(&self, further: u64) {
        if further > self.longest_chain() {
            self.set_longest_chain(further);
        }
    }

    /// How many further buckets the longest chain has at most; possibly more if it is
    /// [`LONGEST_MAX`].
    fn longest_chain(&self) -> u64 {
        self.bucket(0).meta().load(Relaxed) >> LONGEST_SHIFT
    }

    fn set_longest_chain(&self, further: u64) {
        let meta = self.bucket(0).meta();
        let longest = further.min(LONGEST_MAX) << LONGEST_SHIFT;
        meta.store(meta.load(Relaxed) & !LONGEST | longest, Relaxed);
    }

    /// Removes and returns the word at a position that `find` gave.
    pub(crate) fn remove(&mut self, position: Position) -> u64 {
        let word = self.word(position);
        // SAFETY: as in `word`: the bucket of the position is there.
        unsafe { Bucket::at(position.bucket.cast()) }.set_tag(position.index, 0);
        self.len.store(self.len.load(Relaxed) - 1, Relaxed);
        self.compact_chain(self.bucket(position.home));
        if self.is_empty() {
            self.release();
        } else if (self.len() as u64) < u64::from(self.buckets.load(Relaxed)) * MERGE_BELOW
            && Self::may_resize()
        {
            self.merge();
        }
        word
    }

    /// The switch is for tables of keys alone.
    fn may_resize() -> bool {
        !SHARED || super::is_resizing()
    }

    /// Shortens a chain when its words fit one bucket less.
    fn compact_chain(&self, home: Bucket<'_>) {
        let Some(mut further) = home.next() else { return };
        let (mut words, mut chain) = (home.count() + further.count(), 1);
        while let Some(next) = further.next() {
            (further, chain) = (next, chain + 1);
            words += further.count();
        }
        // A chain of n further buckets has room for up to 6n + 7 words; rebuilding is due at 6n +
        // 1.
        if words <= chain * (WORDS - 1) + 1 {
            let mut kept = Vec::with_capacity(words);
            home.drain(|tag, word| kept.push((tag, word)), Self::free);
            for (tag, word) in kept {
                home.push(tag, word);
            }
        }
    }

    /// Adds one empty bucket at the end.
    fn add_bucket(&mut self) {
        let buckets = self.buckets.load(Relaxed);
        let grown = buckets + 1;
        match self.root() {
            Root::Single(_, capacity) if grown <= capacity => {}
            Root::Empty if SHARED => self.move_single(ONE_SMALL),
            Root::Empty | Root::Single(..) if grown <= SEGMENT => {
                self.move_single(segment_capacity(grown));
            }
            Root::Empty => unreachable!("an empty table grows to one bucket first"),
            Root::Single(first, _) => {
                let directory = Directory::allocate(8);
                // SAFETY: a fresh directory of eight segments.
                unsafe { &*Directory::segment(directory, 0) }.store(first.as_ptr() as u64, Release);
                self.root.store(Root::Many(directory).pack(), Release);
                self.add_segment(directory, buckets / SEGMENT);
            }
            Root::Many(directory) => {
                if buckets.is_multiple_of(SEGMENT) {
                    let directory = self.grow_directory(directory, buckets / SEGMENT);
                    self.add_segment(directory, buckets / SEGMENT);
                }
            }
        }
        self.buckets.store(grown, Relaxed);
    }

    /// Moves the one segment to a block of another capacity.
    fn move_single(&mut self, capacity: u32) {
        let block = allocate_buckets(capacity);
        if let Root::Single(old, old_capacity) = self.root() {
            let used = self.buckets.load(Relaxed).min(capacity) as usize;
            for index in 0..used {
                // SAFETY: both blocks have `used` buckets, and the new one is not shared yet.
                let (from, to) =
                    unsafe { (Bucket::at(old.add(index)), Bucket::at(block.add(index))) };
                let meta = from.meta().load(Relaxed);
                to.meta().store(meta & !SMALL, Relaxed);
                for index in 0..if meta & SMALL == 0 { WORDS } else { FEW } {
                    to.word(index).store(from.word(index).load(Relaxed), Relaxed);
                }
            }
            self.root.store(Root::Single(block, capacity).pack(), Release);
            Self::free(old.cast(), bucket_layout(old_capacity));
        } else {
            self.root.store(Root::Single(block, capacity).pack(), Release);
        }
    }

    fn add_segment(&mut self, directory: NonNull<Directory>, index: u32) {
        let segment = allocate_buckets(SEGMENT).as_ptr() as u64;
        // SAFETY: the caller made sure that the directory has room for `index`.
        unsafe { &*Directory::segment(directory, u64::from(index)) }.store(segment, Release);
    }

    fn grow_directory(&mut self, old: NonNull<Directory>, used: u32) -> NonNull<Directory> {
        // SAFETY: the root's directory is live.
        let capacity = unsafe { old.as_ref().capacity };
        if u64::from(used) < capacity {
            return old;
        }
        let directory = Directory::allocate(capacity * 2);
        for index in 0..capacity {
            // SAFETY: `index` is below both capacities.
            unsafe {
                let segment = (*Directory::segment(old, index)).load(Relaxed);
                (*Directory::segment(directory, index)).store(segment, Release);
            }
        }
        self.root.store(Root::Many(directory).pack(), Release);
        Self::free(old.cast(), Directory::layout(capacity));
        directory
    }

    /// Frees a block of this table, or retires it when other threads may still be reading it.
    fn free(block: NonNull<u8>, layout: Layout) {
        if SHARED {
            retire::retire(block, layout);
        } else {
            // SAFETY: allocated with this layout, and no longer reachable from the root.
            unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
        }
    }

    /// Splits the next bucket in turn: one step of growth.
    fn split(&mut self, hash_of: impl Fn(u64) -> u64) {
        let buckets = self.buckets.load(Relaxed);
        let level = 31 - buckets.leading_zeros();
        let source = buckets - (1 << level);
        self.add_bucket();
        let (from, to) = (self.bucket(source), self.bucket(buckets));
        prefetch_words(from);
        let mut stay = smallvec::SmallVec::<[(u8, u64); 16]>::new();
        // Neither chain becomes longer than this one was.
        let sort = |tag, word| {
            if (hash_of(word) >> level) & 1 == 1 {
                to.push(tag, word);
            } else {
                stay.push((tag, word));
            }
        };
        from.drain(sort, Self::free);
        for (tag, word) in stay {
            from.push(tag, word);
        }
    }

    /// Merges the last bucket into the one it was split from: one step of shrinking.
    fn merge(&mut self) {
        let buckets = self.buckets.load(Relaxed);
        if buckets <= 1 {
            return;
        }
        let last = buckets - 1;
        let level = 31 - last.leading_zeros();
        let target = last - (1 << level);
        let (from, to) = (self.bucket(last), self.bucket(target));
        let mut further = 0;
        from.drain(|tag, word| further = to.push(tag, word).max(further), Self::free);
        if further > 0 {
            self.note_chain(further);
        }
        self.buckets.store(last, Relaxed);
        match self.root() {
            Root::Single(_, capacity) if segment_capacity(last) * 2 <= capacity => {
                self.move_single(segment_capacity(last));
            }
            Root::Many(directory) if last.is_multiple_of(SEGMENT) => {
                self.drop_segment(directory, last / SEGMENT);
            }
            _ => {}
        }
    }

    fn drop_segment(&mut self, directory: NonNull<Directory>, index: u32) {
        // SAFETY: segment `index` was the last in use, so it is below the capacity.
        let cell = unsafe { &*Directory::segment(directory, u64::from(index)) };
        let segment = NonNull::new(cell.swap(0, Relaxed) as *mut u8);
        Self::free(segment.expect("a segment in use"), bucket_layout(SEGMENT));
        if index == 1 {
            // SAFETY: the directory is live and its first segment always exists.
            let (first, capacity) = unsafe {
                (
                    (*Directory::segment(directory, 0)).load(Relaxed) as *mut Line,
                    directory.as_ref().capacity,
                )
            };
            let first = NonNull::new(first).expect("the first segment");
            self.root.store(Root::Single(first, SEGMENT).pack(), Release);
            Self::free(directory.cast(), Directory::layout(capacity));
        }
    }

    /// Gives back all buckets of a table whose words are gone.
    fn release(&mut self) {
        let buckets = self.buckets.swap(0, Relaxed);
        let root = Root::unpack(self.root.swap(0, Relaxed));
        self.len.store(0, Relaxed);
        match root {
            Root::Empty => {}
            Root::Single(block, capacity) => Self::free(block.cast(), bucket_layout(capacity)),
            Root::Many(directory) => {
                for index in 0..buckets.div_ceil(SEGMENT) {
                    // SAFETY: segments below the used count exist.
                    let segment = unsafe { &*Directory::segment(directory, u64::from(index)) };
                    let segment = NonNull::new(segment.load(Relaxed) as *mut u8);
                    Self::free(segment.expect("a segment in use"), bucket_layout(SEGMENT));
                }
                // SAFETY: still live: it is freed on the next line.
                let capacity = unsafe { directory.as_ref().capacity };
                Self::free(directory.cast(), Directory::layout(capacity));
            }
        }
    }

    /// Empties the table, giving each word to `visit`.
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(u64)) {
        for index in 0..self.buckets.load(Relaxed) {
            self.bucket(index).drain(|_, word| visit(word), Self::free);
        }
        self.release();
    }

    /// Bytes that the buckets take.
    pub(crate) fn memory(&self) -> usize {
        let mut bytes = match self.root() {
            Root::Empty => 0,
            Root::Single(_, capacity) => bucket_layout(capacity).size(),
            Root::Many(directory) => {
                // SAFETY: the root's directory is live.
                let capacity = unsafe { directory.as_ref().capacity };
                let segments = self.buckets.load(Relaxed).div_ceil(SEGMENT) as usize;
                Directory::layout(capacity).size() + segments * bucket_layout(SEGMENT).size()
            }
        };
        let buckets = self.buckets.load(Relaxed);
        // Chains are counted exactly in small tables and estimated from the first ones in big.
        let sampled = buckets.min(64);
        let mut further = 0;
        for index in 0..sampled {
            let mut bucket = self.bucket(index);
            while let Some(next) = bucket.next() {
                (bucket, further) = (next, further + 1);
            }
        }
        if sampled > 0 {
            bytes += further * size_of::<Line>() * buckets as usize / sampled as usize;
        }
        bytes
    }

    /// Chain lengths: how many home buckets have n words, for DEBUG HTSTATS.
    pub(crate) fn chain_histogram(&self) -> Vec<usize> {
        let mut histogram = Vec::new();
        for index in 0..self.buckets.load(Relaxed) {
            let mut words = 0usize;
            self.bucket(index).for_each(|_| words += 1);
            if histogram.len() <= words {
                histogram.resize(words + 1, 0);
            }
            histogram[words] += 1;
        }
        histogram
    }

    /// Asserts every invariant of the structure.
    #[cfg(any(test, debug_assertions))]
    pub(crate) fn check(&self, hash_of: impl Fn(u64) -> u64) {
        let buckets = self.buckets.load(Relaxed);
        let mut words = 0;
        for index in 0..buckets {
            self.bucket(index).for_each(|word| {
                words += 1;
                assert_ne!(word, 0);
                assert_eq!(address(hash_of(word), buckets).0, index, "a word in its home bucket");
            });
        }
        let further = (0..buckets).map(|index| self.bucket(index).further()).max().unwrap_or(0);
        let bound = if buckets == 0 { 0 } else { self.longest_chain() };
        assert!(further.min(LONGEST_MAX) <= bound, "no chain is longer than the longest");
        assert_eq!(words, self.len(), "the count agrees with the words");
        assert_eq!(buckets == 0, self.is_empty(), "an empty table holds no buckets");
    }
}

impl<const SHARED: bool> Drop for Table<SHARED> {
    fn drop(&mut self) {
        for index in 0..self.buckets.load(Relaxed) {
            self.bucket(index).drain(|_, _| {}, Self::free);
        }
        self.release();
    }
}

/// Prefetches the entries of the words of a bucket, so that hashing them does not wait for each.
fn prefetch_words(bucket: Bucket<'_>) {
    bucket.for_each(|word| prefetch((word & POINTER) as *const u8));
}

#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint; any address is allowed.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = address;
}
