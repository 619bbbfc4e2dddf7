//! The members of a large hash, set or sorted set: one allocation each. `member/table.rs` finds
//! them by name.
//!
//! ```text
//! set           [length][member]
//! hash          [length][field][length][value]
//!               [expiry: 8 bytes][length][field][length][value]
//! sorted set    [score: 8 bytes][length][member]
//! ```
//! A length takes one byte up to 127, two up to 16383 and nine beyond. Nothing else is stored,
//! neither hash nor version nor reference count: a member of 12 bytes meets the allocator's class
//! of 16, a field and a value of 12 bytes each that of 32. The table's words are the addresses;
//! that of a field that expires has its lowest bit set, so that the others pay nothing for it. A
//! large field always has room for the time, so that it is not copied when it begins or ceases to
//! expire.
//!
//! Blocks always have the [`good_size`] of what they hold, so a value is overwritten where it lies
//! whenever the new one fits the same class.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::garbage::{self, Block};
use crate::pack::good_size;
use crate::snapshot::freeze::{Frozen, Piece, PieceKind};
use crate::table::dict::prefetch;
use crate::table::ranked::RankedItem;

pub(crate) use table::{MemberIter, Members};

mod table;
#[cfg(test)]
mod tests;

/// Bytes of a score.
const SCORE_BYTES: usize = 8;

/// Marks the word of a field that expires: blocks are aligned to 8.
const EXPIRES: usize = 1;
/// Marks the word of a field that does not, and whose block begins with room for a time all the
/// same.
const ROOM: usize = 2;
/// The bits of a word in which those are.
const TAGS: usize = EXPIRES | ROOM;
/// Bytes of the time at which it does.
const EXPIRY_BYTES: usize = 8;
/// Fields of more bytes than this always have room for a time.
const ROOM_FROM: usize = 4096;

/// Members of more bytes than this are lent to snapshots, smaller ones are copied.
const LENT_BYTES: usize = if cfg!(test) { 10_000 } else { 256 * 1024 };

/// Lengths below this take one byte.
const SHORT: usize = 0x80;
/// Lengths below this take two bytes, of which the first begins with the bits 10.
const MIDDLE: usize = 0x4000;
/// The first byte of a length of nine bytes.
const LONG_MARK: u8 = 0xC0;

/// The contents of a member's block besides its name.
pub(crate) trait Shape: Sized {
    /// Bytes in front of the name.
    const HEAD: usize;
    /// Whether a value follows the name.
    const HAS_VALUE: bool;

    /// The name of such members for snapshots.
    const KIND: PieceKind;

    /// The member as snapshots have it.
    fn piece(member: Member<'_, Self>) -> Piece<'_>;
}

/// A set's member: a name.
pub(crate) enum Plain {}

/// A hash's field and its value.
pub(crate) enum Valued {}

/// A sorted set's member and its score.
pub(crate) enum Scored {}

impl Shape for Plain {
    const HEAD: usize = 0;
    const HAS_VALUE: bool = false;
    const KIND: PieceKind = PieceKind::Member;

    fn piece(member: Member<'_, Self>) -> Piece<'_> {
        Piece::Member(member.name())
    }
}

impl Shape for Valued {
    const HEAD: usize = 0;
    const HAS_VALUE: bool = true;
    const KIND: PieceKind = PieceKind::Field(None);

    fn piece(member: Member<'_, Self>) -> Piece<'_> {
        Piece::Field(member.name(), member.value(), member.expire_at())
    }
}

impl Shape for Scored {
    const HEAD: usize = SCORE_BYTES;
    const HAS_VALUE: bool = false;
    const KIND: PieceKind = PieceKind::Scored;

    fn piece(member: Member<'_, Self>) -> Piece<'_> {
        Piece::Scored(member.name(), member.score())
    }
}

/// Bytes that a text takes with its length.
#[inline]
fn text_bytes(text: &[u8]) -> usize {
    text.len()
        + match text.len() {
            0..SHORT => 1,
            SHORT..MIDDLE => 2,
            _ => 9,
        }
}

/// Writes a text with its length.
///
/// # Safety
/// `at` is good for writing [`text_bytes`] bytes, which do not overlap `text`.
#[inline]
unsafe fn write_text(at: *mut u8, text: &[u8]) {
    let len = text.len();
    // SAFETY: all writes lie within `text_bytes(text)`, by the caller's promise.
    unsafe {
        let start = match len {
            0..SHORT => {
                at.write(len as u8);
                at.add(1)
            }
            SHORT..MIDDLE => {
                at.cast::<[u8; 2]>().write((0x8000 | len as u16).to_be_bytes());
                at.add(2)
            }
            _ => {
                at.write(LONG_MARK);
                at.add(1).cast::<[u8; 8]>().write((len as u64).to_le_bytes());
                at.add(9)
            }
        };
        start.copy_from_nonoverlapping(text.as_ptr(), len);
    }
}

/// Reads a text that `write_text` wrote.
///
/// # Safety
/// `at` points to such a text, which stays unchanged for `'a`.
#[inline]
unsafe fn read_text<'a>(at: *const u8) -> &'a [u8] {
    // SAFETY: the first byte tells how many more the length has; then follows the text.
    unsafe {
        let first = at.read();
        let (len, start) = if usize::from(first) < SHORT {
            (usize::from(first), at.add(1))
        } else if first < LONG_MARK {
            let bits = u16::from_be_bytes(at.cast::<[u8; 2]>().read());
            (usize::from(bits & 0x3FFF), at.add(2))
        } else {
            (u64::from_le_bytes(at.add(1).cast::<[u8; 8]>().read()) as usize, at.add(9))
        };
        std::slice::from_raw_parts(start, len)
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(good_size(bytes), 8)
        .expect("a member is smaller than the address space")
}

/// A member where it lies: a thin pointer to its block, borrowed from the [`Members`] that own it.
///
/// Invariant: the pointer is the address of a live block, with [`EXPIRES`] if the block begins with
/// a time, and [`ROOM`] if it begins with room for one, which only members with a value do.
pub(crate) struct Member<'a, S> {
    start: NonNull<u8>,
    life: PhantomData<(&'a [u8], S)>,
}

impl<S> Clone for Member<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Member<'_, S> {}

// SAFETY: a member is plain bytes, which are changed only while its owner is borrowed mutably.
unsafe impl<S> Send for Member<'_, S> {}
// SAFETY: as above.
unsafe impl<S> Sync for Member<'_, S> {}

impl<'a, S: Shape> Member<'a, S> {
    /// Allocates a member. The caller writes the head, if there is one.
    fn allocate(name: &[u8], value: Option<&[u8]>) -> Self {
        Self::allocate_with_head(S::HEAD, name, value)
    }

    fn allocate_with_head(head: usize, name: &[u8], value: Option<&[u8]>) -> Self {
        debug_assert_eq!(value.is_some(), S::HAS_VALUE);
        let layout = layout(head + text_bytes(name) + value.map_or(0, text_bytes));
        // SAFETY: a member has at least one byte.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // SAFETY: the block has room for head, name and value.
        unsafe {
            let name_at = start.as_ptr().add(head);
            write_text(name_at, name);
            if let Some(value) = value {
                write_text(name_at.add(text_bytes(name)), value);
            }
        }
        Member { start, life: PhantomData }
    }

    /// What marks the word.
    #[inline]
    fn tags(self) -> usize {
        if S::HAS_VALUE { self.start.addr().get() & TAGS } else { 0 }
    }

    /// Whether the block begins with the time at which it expires.
    #[inline]
    fn expires(self) -> bool {
        self.tags() == EXPIRES
    }

    /// Where the block begins.
    #[inline]
    fn base(self) -> *mut u8 {
        let start = self.start.as_ptr();
        if S::HAS_VALUE { start.map_addr(|address| address & !TAGS) } else { start }
    }

    /// The number by which a snapshot knows the block, whatever becomes of its marks.
    fn block_number(self) -> u64 {
        self.base().addr() as u64
    }

    /// Bytes in front of the name.
    #[inline]
    fn head(self) -> usize {
        if self.tags() != 0 { EXPIRY_BYTES } else { S::HEAD }
    }

    /// A copy of this member in a block of its own.
    fn duplicate(self) -> Member<'static, S> {
        let layout = layout(self.bytes());
        // SAFETY: a member has at least one byte.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // SAFETY: both blocks have this many bytes, and the new one is not shared yet.
        unsafe { start.as_ptr().copy_from_nonoverlapping(self.base(), self.bytes()) };
        let tags = self.tags();
        Member { start: start.map_addr(|address| address | tags), life: PhantomData }
    }

    /// The word under which a table keeps this member.
    #[inline]
    fn word(self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }

    /// # Safety
    /// `word` is a live member's, and the member lives and stays unchanged for `'a`.
    #[inline]
    unsafe fn from_word(word: u64) -> Self {
        let start = std::ptr::with_exposed_provenance_mut(word as usize);
        // SAFETY: words are addresses of allocations, hence not null.
        Member { start: unsafe { NonNull::new_unchecked(start) }, life: PhantomData }
    }

    /// The same member without a lifetime, for an index that is kept beside its owner.
    ///
    /// # Safety
    /// The owner of the result uses it only while the member lives, and never while it changes.
    pub(crate) unsafe fn detach(self) -> Member<'static, S> {
        Member { start: self.start, life: PhantomData }
    }

    /// The bytes by which the member is found.
    #[inline]
    pub(crate) fn name(self) -> &'a [u8] {
        // SAFETY: the name follows the head, and stays unchanged as long as the member lives.
        unsafe { read_text(self.base().add(self.head())) }
    }

    /// The value's place.
    #[inline]
    fn value_offset(self) -> usize {
        self.head() + text_bytes(self.name())
    }

    /// Prefetches the block.
    pub(crate) fn prefetch(self) {
        prefetch(self.base());
    }

    /// Bytes in use of the block.
    fn bytes(self) -> usize {
        let offset = self.value_offset();
        if S::HAS_VALUE {
            // SAFETY: members of this shape have a value there.
            offset + text_bytes(unsafe { read_text(self.base().add(offset)) })
        } else {
            offset
        }
    }

    /// # Safety
    /// Nothing uses the member any more.
    unsafe fn free(self) {
        // SAFETY: allocated with this layout: blocks have the size class of their content.
        unsafe { dealloc(self.base(), layout(self.bytes())) }
    }

    /// Hands it over to a snapshot, or lends it if it is large.
    ///
    /// The caller keeps the promise of [`Frozen::lend`]: as the members of a table that is frozen
    /// for this snapshot until it is read to its end.
    fn hand_to(self, frozen: &Frozen, visit: &mut dyn FnMut(Piece<'_>)) {
        if self.bytes() <= LENT_BYTES {
            return visit(S::piece(self));
        }
        // SAFETY: the texts stay where they are, and as they are, until they are given back.
        let lent = unsafe { Member::<S>::from_word(self.word()) };
        frozen.lend(self.block_number(), S::piece(lent));
    }

    /// Leaves the block to a snapshot that reads it. The member has left its table.
    #[cold]
    fn is_kept_by(self, frozen: &Frozen) -> bool {
        frozen.keep(self.block_number(), || {
            let layout = layout(self.bytes());
            // SAFETY: allocated with this layout, and not null; the table will not free it.
            unsafe { Block::new(NonNull::new_unchecked(self.base()), layout) }
        })
    }

    /// Frees it, or puts it aside if it is large: the slot may be locked.
    ///
    /// # Safety
    /// Nothing uses the member any more.
    unsafe fn release(self) {
        // SAFETY: allocated with this layout, and not null.
        unsafe {
            garbage::free_block(NonNull::new_unchecked(self.base()), layout(self.bytes()));
        }
    }
}

impl<'a> Member<'a, Valued> {
    /// The value.
    #[inline]
    pub(crate) fn value(self) -> &'a [u8] {
        // SAFETY: the value follows the name; it changes only while the owner is borrowed mutably.
        unsafe { read_text(self.base().add(self.value_offset())) }
    }

    /// When it expires, in milliseconds of Unix time.
    #[inline]
    pub(crate) fn expire_at(self) -> Option<u64> {
        // SAFETY: the block of a member that expires begins with the time, and is aligned to 8.
        self.expires().then(|| unsafe { self.base().cast::<u64>().read() })
    }

    /// Allocates a field.
    fn new(name: &[u8], value: &[u8], expire_at: Option<u64>) -> Self {
        if expire_at.is_none() && text_bytes(name) + text_bytes(value) <= ROOM_FROM {
            return Self::allocate(name, Some(value));
        }
        let member = Self::allocate_with_head(EXPIRY_BYTES, name, Some(value));
        let start = member.start.map_addr(|address| address | ROOM);
        // SAFETY: the block is not shared yet.
        unsafe { Member { start, life: PhantomData }.with_time(expire_at) }
    }

    /// Whether it can have this time, or none, without moving. A small one gives the room back when
    /// it ceases to expire.
    fn has_room_for(self, expire_at: Option<u64>) -> bool {
        match expire_at {
            Some(_) => self.tags() != 0,
            None => self.tags() == 0 || self.bytes() > ROOM_FROM + EXPIRY_BYTES,
        }
    }

    /// The same field where it lies, with another time, or none: there is room for it.
    ///
    /// # Safety
    /// The caller has the owner for itself, and puts the result in the place of this.
    unsafe fn with_time(self, expire_at: Option<u64>) -> Self {
        if self.tags() == 0 {
            return self;
        }
        let tag = if expire_at.is_some() { EXPIRES } else { ROOM };
        let start = self.base().map_addr(|address| address | tag);
        // SAFETY: the block begins with room for a time and is aligned to 8, and no reference to
        // these bytes is ever given out; its address is not null.
        unsafe {
            if let Some(at) = expire_at {
                self.base().cast::<u64>().write(at);
            }
            Member { start: NonNull::new_unchecked(start), life: PhantomData }
        }
    }
}

impl Member<'_, Scored> {
    /// The score.
    #[inline]
    pub(crate) fn score(self) -> f64 {
        // SAFETY: the block begins with the score, and blocks are aligned to 8.
        unsafe { self.start.cast::<f64>().read() }
    }

    /// Overwrites the score.
    ///
    /// # Safety
    /// The caller has the owner for itself: nothing else reads or writes this member meanwhile.
    pub(crate) unsafe fn set_score(self, score: f64) {
        // SAFETY: as in `score`; no reference to these bytes is ever given out.
        unsafe { self.start.cast::<f64>().write(score) }
    }
}

impl RankedItem for Member<'static, Scored> {
    #[inline]
    fn score(&self) -> f64 {
        Member::score(*self)
    }

    #[inline]
    fn member(&self) -> &[u8] {
        self.name()
    }

    #[inline]
    fn prefetch(&self) {
        Member::prefetch(*self);
    }
}
