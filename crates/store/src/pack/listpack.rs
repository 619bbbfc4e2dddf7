//! An owned listpack: one thin pointer to one block.

use std::ops::Deref;

use super::PackError;
use super::element::OwnedElement;
use super::encoded::{Encoded, TERMINATOR, count_entries, next};
use super::slice::{
    EMPTY_BYTES, HEADER_BYTES, ListpackSlice, MAX_LISTPACK_BYTES, Position, header, header_total,
};
use super::thin::{Format, ThinBytes};

struct ListpackFormat;

impl Format for ListpackFormat {
    type Header = [u8; HEADER_BYTES];

    const HEADER_BYTES: usize = HEADER_BYTES;

    #[inline]
    fn total(header: &[u8]) -> usize {
        header_total(header)
    }
}

/// A sequence of short strings and integers in one heap block, in Redis's listpack format.
///
/// Eight bytes, as `Option<Listpack>` is. Reading is [`ListpackSlice`]'s. Every change costs time
/// in the size of the block; callers convert to another form when it grows beyond a configured
/// bound, and ask [`fits`](Self::fits) before they add: past 4 GiB an insertion panics.
#[repr(transparent)]
#[derive(Clone)]
pub struct Listpack(ThinBytes<ListpackFormat>);

impl Listpack {
    /// An empty listpack.
    pub fn new() -> Self {
        Self::with_body(EMPTY_BYTES, 0)
    }

    /// A listpack of `total` bytes whose body is zeros except for the terminator.
    fn with_body(total: usize, count: usize) -> Self {
        let mut bytes = ThinBytes::new(header(total, count));
        if let Some(last) = bytes.body_mut().last_mut() {
            *last = TERMINATOR;
        }
        Listpack(bytes)
    }

    /// Builds a listpack with a single allocation; iterates over the elements twice.
    pub fn from_elements<'a, I>(elements: I) -> Self
    where
        I: IntoIterator<Item: Into<Encoded<'a>>, IntoIter: Clone>,
    {
        let mut listpack = Self::new();
        listpack.extend_back(elements);
        listpack
    }

    /// Takes over bytes from outside after checking every entry.
    ///
    /// # Errors
    /// As [`ListpackSlice::from_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PackError> {
        Ok(ListpackSlice::from_bytes(bytes)?.to_listpack())
    }

    /// Whether `extra` more bytes keep the block below [`MAX_LISTPACK_BYTES`].
    #[inline]
    pub fn fits(&self, extra: usize) -> bool {
        self.total_bytes().saturating_add(extra) < MAX_LISTPACK_BYTES
    }

    /// What the block takes from the allocator, in bytes.
    #[inline]
    pub fn memory_usage(&self) -> usize {
        self.0.allocated()
    }

    /// Appends an element.
    #[inline]
    pub fn push_back<'a>(&mut self, element: impl Into<Encoded<'a>>) {
        self.splice(self.end(), 0, Some(&element.into()), self.count_after(1, 0));
    }

    /// Prepends an element.
    #[inline]
    pub fn push_front<'a>(&mut self, element: impl Into<Encoded<'a>>) {
        self.splice(HEADER_BYTES, 0, Some(&element.into()), self.count_after(1, 0));
    }

    /// Appends all `elements` and grows the block once; iterates over the elements twice.
    pub fn extend_back<'a, I>(&mut self, elements: I)
    where
        I: IntoIterator<Item: Into<Encoded<'a>>, IntoIter: Clone>,
    {
        let elements = elements.into_iter();
        let (mut bytes, mut count) = (0, 0);
        for element in elements.clone() {
            let encoded: Encoded<'_> = element.into();
            bytes += encoded.len();
            count += 1;
        }
        let mut at = self.end();
        let mut room = self.open(at, 0, bytes, self.count_after(count, 0));
        for element in elements {
            let encoded: Encoded<'_> = element.into();
            let (entry, rest) = room.split_at_mut(encoded.len());
            encoded.write(entry);
            at += entry.len();
            room = rest;
        }
        debug_assert_eq!(at, self.end());
    }

    /// Inserts an element before `position`, which is then its position.
    pub fn insert_before<'a>(&mut self, position: Position, element: impl Into<Encoded<'a>>) {
        self.splice(position.offset(), 0, Some(&element.into()), self.count_after(1, 0));
    }

    /// Inserts an element after `position`. Returns the new element's position.
    pub fn insert_after<'a>(
        &mut self,
        position: Position,
        element: impl Into<Encoded<'a>>,
    ) -> Position {
        let at = next(self.as_bytes(), position.offset());
        self.splice(at, 0, Some(&element.into()), self.count_after(1, 0));
        Position::at(at)
    }

    /// Replaces the element at `position`, which is then the position of the new one.
    pub fn replace<'a>(&mut self, position: Position, element: impl Into<Encoded<'a>>) {
        let at = position.offset();
        let old = next(self.as_bytes(), at) - at;
        self.splice(at, old, Some(&element.into()), self.count_after(0, 0));
    }

    /// Removes up to `count` elements from `position` on; the elements after them are then at
    /// `position`. Returns how many it removed.
    pub fn remove(&mut self, position: Position, count: usize) -> usize {
        let at = position.offset();
        let (mut until, mut removed) = (at, 0);
        while removed < count && until < self.end() {
            until = next(self.as_bytes(), until);
            removed += 1;
        }
        self.splice(at, until - at, None, self.count_after(0, removed));
        removed
    }

    /// Removes up to `count` elements from `index` on (negative: from the back). Returns how many
    /// there were.
    pub fn remove_range(&mut self, index: i64, count: usize) -> usize {
        self.seek(index).map_or(0, |position| self.remove(position, count))
    }

    /// Removes and returns the element with this index (negative: from the back).
    pub fn pop(&mut self, index: i64) -> Option<OwnedElement> {
        let position = self.seek(index)?;
        let element = self.element(position).to_owned_element();
        self.remove(position, 1);
        Some(element)
    }

    /// Appends all elements of `other`.
    pub fn append(&mut self, other: &ListpackSlice) {
        let entries = other.entry_bytes();
        let count = self.count_after(other.len(), 0);
        self.open(self.end(), 0, entries.len(), count).copy_from_slice(entries);
    }

    /// Cuts the listpack in two: keeps what is before `position`, returns the rest.
    pub fn split_off(&mut self, position: Position) -> Listpack {
        let (at, end) = (position.offset(), self.end());
        let moved = count_entries(&self.as_bytes()[at..end]);
        let mut rest = Self::with_body(EMPTY_BYTES + end - at, moved);
        rest.0.body_mut()[..end - at].copy_from_slice(&self.as_bytes()[at..end]);
        self.splice(at, end - at, None, self.count_after(0, moved));
        rest
    }

    #[inline]
    fn splice(&mut self, at: usize, old: usize, new: Option<&Encoded<'_>>, count: usize) {
        let room = self.open(at, old, new.map_or(0, Encoded::len), count);
        if let Some(encoded) = new {
            encoded.write(room);
        }
    }

    /// Replaces `old` bytes at offset `at` by `new` bytes, which are returned to be written, and
    /// sets the count of elements.
    fn open(&mut self, at: usize, old: usize, new: usize, count: usize) -> &mut [u8] {
        let total = self.total_bytes();
        let header = header(total - old + new, count);
        let body = at - HEADER_BYTES;
        let tail = body + old..total - HEADER_BYTES;
        if new > old {
            self.0.resize(header);
            self.0.body_mut().copy_within(tail, body + new);
        } else {
            self.0.body_mut().copy_within(tail, body + new);
            self.0.resize(header);
        }
        &mut self.0.body_mut()[body..body + new]
    }
}

impl Default for Listpack {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Listpack {
    type Target = ListpackSlice;

    #[inline]
    fn deref(&self) -> &ListpackSlice {
        ListpackSlice::trusted(self.0.bytes())
    }
}

impl std::fmt::Debug for Listpack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

impl ListpackSlice {
    /// An owned copy. A count of "unknown" is filled in if it fits.
    pub fn to_listpack(&self) -> Listpack {
        let entries = self.entry_bytes();
        let mut copy = Listpack::with_body(self.total_bytes(), self.len());
        copy.0.body_mut()[..entries.len()].copy_from_slice(entries);
        copy
    }
}
