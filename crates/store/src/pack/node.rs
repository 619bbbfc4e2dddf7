//! A list's block: a listpack with free room on both sides, and a reference count.
//!
//! ```text
//! +-------------+-----------------+--------------+-----------+--------------+-----------+
//! | references  | block size      | start        | free room | listpack     | free room |
//! +-------------+-----------------+--------------+-----------+--------------+-----------+
//! ```
//! Appending to a plain listpack is cheap, but prepending moves all of it. Here a push at either
//! end writes the new entry beside the last one and moves nothing. The listpack's header is written
//! anew at its front, so the bytes can be dumped at any time. When one side has no room left, the
//! listpack moves once and takes the room of the other side.
//!
//! Nodes are shared with snapshots: a clone counts, and the next change copies the block first.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use smallvec::SmallVec;

use super::End;
use super::element::{Element, Needle};
use super::encoded::{Encoded, TERMINATOR, count_entries, decode, next, previous};
use super::slice::{EMPTY_BYTES, HEADER_BYTES, ListpackSlice, Position, header, header_total};
use base::size_class::good_size;

#[repr(C)]
struct Head {
    references: AtomicU32,
    /// Size of the whole block, including this head, as requested from the allocator.
    size: u32,
    /// Where the listpack begins, counted from the end of this head.
    start: u32,
}

/// Bytes of a block that are not room for its listpack.
pub(crate) const HEAD_BYTES: usize = size_of::<Head>();

/// Blocks are shrunk when less than a quarter is used, but not below this size.
const SMALLEST_WORTH_SHRINKING: usize = 64;

/// How a block that is too small grows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Growth {
    /// To the next size class: for small lists, since there may be millions.
    Tight,
    /// To twice the size, up to this many bytes: for the end nodes of long lists.
    Double(usize),
}

/// A shared handle to one block: eight bytes.
///
/// Invariants: the block was allocated with `size` bytes, all initialised; from `start` lies a
/// valid listpack that ends inside the block; code that changes anything except the count has the
/// only handle.
#[repr(transparent)]
pub(crate) struct Node(NonNull<Head>);

// SAFETY: the count is atomic, and everything else is changed only through the only handle
// (`parts_mut` makes sure), so handles may move to and be read from any thread.
unsafe impl Send for Node {}
// SAFETY: as above; `&Node` gives out shared slices only.
unsafe impl Sync for Node {}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).expect("a node is far below isize::MAX")
}

/// Writes the header of the listpack that begins at `at`.
#[inline]
fn write_header(room: &mut [u8], at: usize, total: usize, count: usize) {
    room[at..at + HEADER_BYTES].copy_from_slice(&header(total, count));
}

/// A change of the listpack's bytes in one place.
struct Edit {
    /// Offset in the listpack where the change is.
    at: usize,
    /// Bytes that vanish there.
    old: usize,
    /// Bytes that appear there.
    new: usize,
}

impl Node {
    /// An empty node of at least `size` bytes whose free room is where pushes at `end` need it.
    pub(crate) fn new(size: usize, end: End) -> Self {
        let mut node = Self::blank(size.max(HEAD_BYTES + EMPTY_BYTES));
        let (start, room) = node.parts_mut();
        let at = if end == End::Front { room.len() - EMPTY_BYTES } else { 0 };
        *start = at as u32;
        write_header(room, at, EMPTY_BYTES, 0);
        room[at + HEADER_BYTES] = TERMINATOR;
        node
    }

    /// A block of zeros, which is no valid node yet.
    fn blank(size: usize) -> Self {
        let size = good_size(size);
        let layout = layout(size);
        // SAFETY: the size is never zero.
        let block = unsafe { alloc_zeroed(layout) };
        let Some(block) = NonNull::new(block) else { handle_alloc_error(layout) };
        let block: NonNull<Head> = block.cast();
        let size = u32::try_from(size).expect("nodes hold packed elements, which are bounded");
        // SAFETY: fresh memory, aligned to 8, with room for the head.
        unsafe { block.write(Head { references: AtomicU32::new(1), size, start: 0 }) };
        Node(block)
    }

    /// A node of the smallest size that fits a copy of `listpack`.
    pub(crate) fn from_listpack(listpack: &ListpackSlice) -> Self {
        let mut node = Self::blank(HEAD_BYTES + listpack.total_bytes());
        let bytes = listpack.as_bytes();
        node.parts_mut().1[..bytes.len()].copy_from_slice(bytes);
        node
    }

    #[inline]
    fn head(&self) -> &Head {
        // SAFETY: the block lives as long as a handle does, and its head is initialised.
        unsafe { self.0.as_ref() }
    }

    /// All bytes after the head.
    #[inline]
    fn room(&self) -> &[u8] {
        let len = self.block_size() - HEAD_BYTES;
        // SAFETY: the block has `size` initialised bytes, and no one changes them while a handle is
        // borrowed: changing needs `&mut` of the only handle.
        unsafe { std::slice::from_raw_parts(self.0.add(1).cast().as_ptr(), len) }
    }

    /// The start field and all bytes after the head, for change: copies the block first if it is
    /// shared.
    #[inline]
    fn parts_mut(&mut self) -> (&mut u32, &mut [u8]) {
        if self.is_shared() {
            *self = self.copied();
        }
        let len = self.block_size() - HEAD_BYTES;
        // SAFETY: this is the only handle (none can be made while it is borrowed mutably), so
        // nothing else reads the block; `start` and the bytes after the head do not overlap.
        unsafe {
            let start = &mut (*self.0.as_ptr()).start;
            (start, std::slice::from_raw_parts_mut(self.0.add(1).cast().as_ptr(), len))
        }
    }

    /// Whether a snapshot shares this block.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        // Acquire: other owners read before they let go, and that happens before we write.
        self.head().references.load(Ordering::Acquire) != 1
    }

    #[cold]
    fn copied(&self) -> Node {
        let mut copy = Self::blank(self.block_size());
        let (start, room) = copy.parts_mut();
        *start = self.head().start;
        room.copy_from_slice(self.room());
        copy
    }

    /// Size of the block, which is also its allocation.
    #[inline]
    pub(crate) fn block_size(&self) -> usize {
        self.head().size as usize
    }

    /// Adds an element at an end: with room there, the entry is written and the header, no more.
    #[inline]
    pub(crate) fn push(&mut self, end: End, element: &Encoded<'_>, growth: Growth) {
        self.push_if(end, element, growth, |_| true);
    }

    /// [`Node::push`], if `fits` accepts the listpack's present size. Returns whether it did: one
    /// look at the header serves both.
    #[inline]
    pub(crate) fn push_if(
        &mut self,
        end: End,
        element: &Encoded<'_>,
        growth: Growth,
        fits: impl FnOnce(usize) -> bool,
    ) -> bool {
        let len = element.len();
        let listpack: &ListpackSlice = self;
        let (total, count) = (listpack.total_bytes(), listpack.count_after(1, 0));
        if !fits(total) {
            return false;
        }
        let (start, room) = self.parts_mut();
        let from = *start as usize;
        match end {
            End::Front if from >= len => {
                let to = from - len;
                element.write(&mut room[to + HEADER_BYTES..from + HEADER_BYTES]);
                write_header(room, to, total + len, count);
                *start = to as u32;
            }
            End::Back if room.len() - from - total >= len => {
                let at = from + total - 1;
                element.write(&mut room[at..at + len]);
                room[at + len] = TERMINATOR;
                write_header(room, from, total + len, count);
            }
            End::Front => self.insert(Position::at(HEADER_BYTES), element, growth),
            End::Back => self.insert(Position::at(total - 1), element, growth),
        }
        true
    }

    /// Adds elements at the back, and makes room once.
    #[inline]
    pub(crate) fn push_all(&mut self, elements: &[Encoded<'_>], growth: Growth) {
        let len = elements.iter().map(Encoded::len).sum();
        let count = self.count_after(elements.len(), 0);
        let total = self.total_bytes();
        self.make_room(End::Back, len, growth);
        let (start, room) = self.parts_mut();
        let from = *start as usize;
        write_header(room, from, total + len, count);
        let (mut at, end) = (from + total - 1, from + total - 1 + len);
        room[end] = TERMINATOR;
        for element in elements {
            let len = element.len();
            element.write(&mut room[at..at + len]);
            at += len;
        }
        debug_assert_eq!(at, end);
    }

    /// Replaces the element at `position` where it lies, if the new one takes as many bytes.
    /// Returns whether it did.
    #[inline]
    pub(crate) fn overwrite(&mut self, position: Position, element: &Encoded<'_>) -> bool {
        let at = position.offset();
        let len = next(self.as_bytes(), at) - at;
        if len != element.len() {
            return false;
        }
        let (start, room) = self.parts_mut();
        element.write(&mut room[*start as usize + at..][..len]);
        true
    }

    /// Inserts an element before the one at `position`, which may be the end.
    #[inline]
    pub(crate) fn insert(&mut self, position: Position, element: &Encoded<'_>, growth: Growth) {
        let at = position.offset();
        let count = self.count_after(1, 0);
        let edit = Edit { at, old: 0, new: element.len() };
        element.write(self.open(&edit, count, growth));
    }

    /// Replaces the element at `position`.
    pub(crate) fn replace(&mut self, position: Position, element: &Encoded<'_>, growth: Growth) {
        let at = position.offset();
        let old = next(self.as_bytes(), at) - at;
        let count = self.count_after(0, 0);
        element.write(self.open(&Edit { at, old, new: element.len() }, count, growth));
    }

    /// Hands the element at an end to `take`, then removes it. The node is not empty.
    #[inline]
    pub(crate) fn pop_with<R>(&mut self, end: End, take: impl FnOnce(Element<'_>) -> R) -> R {
        let bytes = self.as_bytes();
        let total = bytes.len();
        let at = match end {
            End::Front => HEADER_BYTES,
            End::Back => previous(bytes, total - 1),
        };
        let (element, after) = decode(bytes, at);
        let count = self.count_after(0, 1);
        let taken = take(element);
        let len = after - at;
        let (start, room) = self.parts_mut();
        let from = *start as usize;
        match end {
            End::Front => {
                write_header(room, from + len, total - len, count);
                *start = (from + len) as u32;
            }
            End::Back => {
                room[from + at] = TERMINATOR;
                write_header(room, from, total - len, count);
            }
        }
        if self.is_sparse(total - len) {
            self.shrink();
        }
        taken
    }

    /// Removes the element at `position`; the next one is at `position` then.
    pub(crate) fn remove_at(&mut self, position: Position) {
        let at = position.offset();
        let after = next(self.as_bytes(), at);
        self.remove_span(at..after, 1);
    }

    /// Removes the whole entries in this range of offsets, `count` of them.
    #[inline]
    pub(crate) fn remove_span(&mut self, span: Range<usize>, count: usize) {
        let count = self.count_after(0, count);
        self.open(&Edit { at: span.start, old: span.len(), new: 0 }, count, Growth::Tight);
        self.shrink_if_sparse();
    }

    /// Removes up to `limit` elements that match, the ones nearest to `from` first. Returns how
    /// many.
    pub(crate) fn remove_matches(&mut self, needle: &Needle<'_>, from: End, limit: usize) -> usize {
        let mut spans: SmallVec<[Range<usize>; 16]> = SmallVec::new();
        let (bytes, end) = (self.as_bytes(), self.end());
        match from {
            End::Front => {
                let mut at = HEADER_BYTES;
                while at < end && spans.len() < limit {
                    let (element, after) = decode(bytes, at);
                    if needle.matches(element) {
                        spans.push(at..after);
                    }
                    at = after;
                }
            }
            End::Back => {
                let mut after = end;
                while after > HEADER_BYTES && spans.len() < limit {
                    let at = previous(bytes, after);
                    if needle.matches(decode(bytes, at).0) {
                        spans.push(at..after);
                    }
                    after = at;
                }
                spans.reverse();
            }
        }
        self.remove_spans(&spans);
        spans.len()
    }

    /// Removes one entry per range of offsets; the ranges ascend. All that stays moves at most
    /// once.
    fn remove_spans(&mut self, spans: &[Range<usize>]) {
        let Some(first) = spans.first() else { return };
        let total = self.total_bytes();
        let count = self.count_after(0, spans.len());
        let (start, room) = self.parts_mut();
        let bytes = &mut room[*start as usize..][..total];
        let mut write = first.start;
        for (index, span) in spans.iter().enumerate() {
            let until = spans.get(index + 1).map_or(total, |next| next.start);
            bytes.copy_within(span.end..until, write);
            write += until - span.end;
        }
        write_header(bytes, 0, write, count);
        self.shrink_if_sparse();
    }

    /// Removes the `count` elements nearest to an end.
    pub(crate) fn drop_elements(&mut self, end: End, count: usize) {
        if count == 0 {
            return;
        }
        let bytes = self.as_bytes();
        let span = match end {
            End::Front => HEADER_BYTES..(0..count).fold(HEADER_BYTES, |at, _| next(bytes, at)),
            End::Back => (0..count).fold(self.end(), |at, _| previous(bytes, at))..self.end(),
        };
        self.remove_span(span, count);
    }

    /// Keeps the elements before `position` and returns the others.
    pub(crate) fn split_off(&mut self, position: Position) -> Node {
        let at = position.offset();
        let moved = &self.as_bytes()[at..self.end()];
        let count = count_entries(moved);
        let mut rest = Self::blank(HEAD_BYTES + EMPTY_BYTES + moved.len());
        let (_, room) = rest.parts_mut();
        write_header(room, 0, EMPTY_BYTES + moved.len(), count);
        room[HEADER_BYTES..][..moved.len()].copy_from_slice(moved);
        room[HEADER_BYTES + moved.len()] = TERMINATOR;
        self.remove_span(at..self.end(), count);
        rest
    }

    /// Appends all elements of `other`.
    pub(crate) fn append(&mut self, other: &ListpackSlice, growth: Growth) {
        let entries = other.entry_bytes();
        let count = self.count_after(other.len(), 0);
        let edit = Edit { at: self.end(), old: 0, new: entries.len() };
        self.open(&edit, count, growth).copy_from_slice(entries);
    }

    /// Gives back the room that a full node will not use. A shared block stays as it is.
    pub(crate) fn trim(&mut self) {
        let fitting = good_size(HEAD_BYTES + self.total_bytes());
        if fitting < self.block_size() && !self.is_shared() {
            self.shrink();
        }
    }

    #[inline]
    fn shrink_if_sparse(&mut self) {
        if self.is_sparse(self.total_bytes()) {
            self.shrink();
        }
    }

    /// Whether a listpack of `total` bytes deserves a smaller block.
    #[inline]
    fn is_sparse(&self, total: usize) -> bool {
        let (used, size) = (HEAD_BYTES + total, self.block_size());
        size > SMALLEST_WORTH_SHRINKING && used * 4 <= size
    }

    #[cold]
    fn shrink(&mut self) {
        *self = Self::from_listpack(self);
    }

    /// Makes room for an edit: moves the entries around it, writes the header, and returns the new
    /// bytes to be written.
    fn open(&mut self, edit: &Edit, count: usize, growth: Growth) -> &mut [u8] {
        let &Edit { at, old, new } = edit;
        let total = self.total_bytes();
        let new_total = total - old + new;
        // The header is written anew in any case; the entries are what moves at the front.
        let side = self.cheaper_side(at - HEADER_BYTES, self.end() - at - old);
        if new > old {
            self.make_room(side, new - old, growth);
        }
        let (start, room) = self.parts_mut();
        let from = *start as usize;
        match side {
            End::Front => {
                let to = from + old - new;
                room.copy_within(from + HEADER_BYTES..from + at, to + HEADER_BYTES);
                *start = to as u32;
            }
            End::Back => room.copy_within(from + at + old..from + total, from + at + new),
        }
        let from = *start as usize;
        write_header(room, from, new_total, count);
        &mut room[from + at..from + at + new]
    }

    /// On which side of an edit to move the entries, given the bytes on each side.
    #[inline]
    fn cheaper_side(&self, before: usize, after: usize) -> End {
        let front_is_roomier = || 2 * self.head().start as usize > self.room().len();
        if before < after || (before == after && front_is_roomier()) {
            End::Front
        } else {
            End::Back
        }
    }

    /// Makes sure that `needed` bytes are free on this side.
    #[inline]
    fn make_room(&mut self, side: End, needed: usize, growth: Growth) {
        let front = self.head().start as usize;
        let back = self.room().len() - front - self.total_bytes();
        let available = if side == End::Front { front } else { back };
        if available < needed {
            self.rearrange(side, needed, growth);
        }
    }

    /// Moves the listpack, into a greater block if need be, so that this side gets most of the
    /// room. The other side keeps a quarter if it had any: lists pushed at both ends must not move
    /// each time.
    #[cold]
    fn rearrange(&mut self, side: End, needed: usize, growth: Growth) {
        let total = self.total_bytes();
        let required = HEAD_BYTES + total + needed;
        let size = self.block_size();
        let new_size = match growth {
            _ if required <= size => size,
            Growth::Tight => good_size(required),
            Growth::Double(ceiling) => good_size(required.max((2 * size).min(ceiling))),
        };
        let front = self.head().start as usize;
        let back = self.room().len() - front - total;
        let slack = new_size - required;
        let start = match side {
            End::Front => new_size - HEAD_BYTES - total - if back == 0 { 0 } else { slack / 4 },
            End::Back if front == 0 => 0,
            End::Back => slack / 4,
        };
        if new_size == size && !self.is_shared() {
            let (old_start, room) = self.parts_mut();
            room.copy_within(front..front + total, start);
            *old_start = start as u32;
        } else {
            let mut moved = Self::blank(new_size);
            let (new_start, room) = moved.parts_mut();
            room[start..start + total].copy_from_slice(self.as_bytes());
            *new_start = start as u32;
            *self = moved;
        }
    }

    /// Asserts the invariants.
    ///
    /// # Panics
    /// If one is violated.
    pub(crate) fn check(&self) {
        assert_eq!(self.block_size(), good_size(self.block_size()));
        let start = self.head().start as usize;
        assert!(start + self.total_bytes() <= self.room().len());
        assert!(ListpackSlice::from_bytes(self.as_bytes()).is_ok());
    }
}

impl Deref for Node {
    type Target = ListpackSlice;

    #[inline]
    fn deref(&self) -> &ListpackSlice {
        let bytes = &self.room()[self.head().start as usize..];
        ListpackSlice::trusted(&bytes[..header_total(bytes)])
    }
}

impl Clone for Node {
    /// Shares the block.
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: the cloned handle keeps the block alive.
        let before = self.head().references.fetch_add(1, Ordering::Relaxed);
        // Far below the overflow, which would free a block in use; no memory has room for that many
        // handles.
        if before > u32::MAX / 2 {
            std::process::abort();
        }
        Node(self.0)
    }
}

impl Drop for Node {
    #[inline]
    fn drop(&mut self) {
        // Release: our reads happen before the last owner frees or changes the block.
        if self.head().references.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        let layout = layout(self.block_size());
        // SAFETY: this was the last handle; the block was allocated with this layout.
        unsafe { dealloc(self.0.as_ptr().cast(), layout) };
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}
