//! Reading a listpack.
//!
//! ```text
//! +--------------+---------------+---------+-----+---------+------+
//! | total u32 LE | count u16 LE  | entry 0 | ... | entry n | 0xFF |
//! +--------------+---------------+---------+-----+---------+------+
//! ```
//! `total` counts every byte of the block. A `count` of 65535 means "more than fits: count them".

#![allow(unsafe_code)]

use std::iter::FusedIterator;

use super::PackError;
use super::element::{Element, Needle};
use super::encoded::{TERMINATOR, decode, next, previous, validate};

/// Bytes before the first entry.
pub(crate) const HEADER_BYTES: usize = 6;
/// Bytes of a listpack without entries.
pub(crate) const EMPTY_BYTES: usize = HEADER_BYTES + 1;
/// The count that stands for "not known".
pub(super) const COUNT_UNKNOWN: u16 = u16::MAX;

/// The size no packed collection may reach; beyond it, convert to the unpacked form.
pub const MAX_LISTPACK_BYTES: usize = 1 << 30;

/// Where an entry begins: an offset into the block, good until the block is changed before or at
/// it.
///
/// A stale position reads a wrong element or panics; it never reads outside the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub(super) u32);

impl Position {
    #[inline]
    pub(super) fn at(offset: usize) -> Self {
        Position(offset as u32)
    }

    #[inline]
    pub(super) fn offset(self) -> usize {
        self.0 as usize
    }

    /// How many bytes it is after an earlier position.
    #[inline]
    pub(crate) fn bytes_after(self, earlier: Position) -> u32 {
        self.0 - earlier.0
    }

    /// The position this many bytes later.
    #[inline]
    pub(crate) fn plus(self, bytes: u32) -> Position {
        Position(self.0 + bytes)
    }
}

/// Builds the header of a listpack of `total` bytes and `count` elements.
#[inline]
pub(super) fn header(total: usize, count: usize) -> [u8; HEADER_BYTES] {
    let total = u32::try_from(total).expect("callers keep listpacks below MAX_LISTPACK_BYTES");
    let count = u16::try_from(count).unwrap_or(COUNT_UNKNOWN);
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&total.to_le_bytes());
    header[4..].copy_from_slice(&count.to_le_bytes());
    header
}

/// The total length a header states.
#[inline]
pub(super) fn header_total(header: &[u8]) -> usize {
    let total = header.first_chunk().expect("a listpack begins with its length");
    u32::from_le_bytes(*total) as usize
}

/// The number of elements a header states, which may be [`COUNT_UNKNOWN`].
#[inline]
fn header_count(header: &[u8]) -> u16 {
    let [_, _, _, _, low, high] =
        *header.first_chunk::<HEADER_BYTES>().expect("a listpack has a header");
    u16::from_le_bytes([low, high])
}

/// A valid listpack's bytes. It relates to [`Listpack`](super::Listpack) as `str` to `String`.
#[repr(transparent)]
pub struct ListpackSlice([u8]);

impl ListpackSlice {
    /// Checks every entry of `bytes`, which may come from anywhere.
    ///
    /// # Errors
    /// The first thing found that no server writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<&Self, PackError> {
        if bytes.len() < EMPTY_BYTES || header_total(bytes) != bytes.len() {
            return Err(PackError::Length);
        }
        let end = bytes.len() - 1;
        if bytes[end] != TERMINATOR {
            return Err(PackError::Length);
        }
        let (mut at, mut count) = (HEADER_BYTES, 0usize);
        while at < end {
            at = validate(bytes, at, end).ok_or(PackError::Entry)?;
            count += 1;
        }
        let stated = header_count(bytes);
        if stated != COUNT_UNKNOWN && usize::from(stated) != count {
            return Err(PackError::Count);
        }
        Ok(Self::trusted(bytes))
    }

    /// Takes bytes this module wrote or validated.
    #[inline]
    pub(super) fn trusted(bytes: &[u8]) -> &Self {
        debug_assert!(bytes.len() >= EMPTY_BYTES && header_total(bytes) == bytes.len());
        // SAFETY: `ListpackSlice` is a transparent wrapper of `[u8]`, so the layout and the
        // lifetime of the reference stay as they are. Broken contents could cause a panic, not a
        // foreign read.
        unsafe { &*(std::ptr::from_ref(bytes) as *const ListpackSlice) }
    }

    /// The bytes as they go into a dump.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Size of the block in bytes, header and terminator included.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        self.0.len()
    }

    /// Number of elements. Counts them when there are 65 535 or more.
    #[inline]
    pub fn len(&self) -> usize {
        match header_count(&self.0) {
            COUNT_UNKNOWN => self.elements().count(),
            count => usize::from(count),
        }
    }

    /// The count to write after this many elements are added and removed. Once the header says
    /// "unknown" it keeps saying so: counting at each change would cost more than counting when
    /// asked.
    #[inline]
    pub(super) fn count_after(&self, added: usize, removed: usize) -> usize {
        match header_count(&self.0) {
            COUNT_UNKNOWN => usize::from(COUNT_UNKNOWN),
            count => usize::from(count) + added - removed,
        }
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.len() == EMPTY_BYTES
    }

    /// The entries, without header and terminator.
    #[inline]
    pub(super) fn entry_bytes(&self) -> &[u8] {
        &self.0[HEADER_BYTES..self.end()]
    }

    /// Offset of the terminator: where an element would be appended.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.0.len() - 1
    }

    /// The end, after the last element.
    #[inline]
    pub(crate) fn end_position(&self) -> Position {
        Position::at(self.end())
    }

    /// Position of the first element.
    #[inline]
    pub fn first(&self) -> Option<Position> {
        self.checked(HEADER_BYTES)
    }

    /// Position of the last element.
    #[inline]
    pub fn last(&self) -> Option<Position> {
        (!self.is_empty()).then(|| Position::at(previous(&self.0, self.end())))
    }

    /// Position after `position`.
    #[inline]
    pub fn next(&self, position: Position) -> Option<Position> {
        self.checked(next(&self.0, position.offset()))
    }

    /// Position before `position`.
    #[inline]
    pub fn prev(&self, position: Position) -> Option<Position> {
        (position.offset() > HEADER_BYTES)
            .then(|| Position::at(previous(&self.0, position.offset())))
    }

    /// Position after `position`, or the end, before which an element can be inserted too.
    #[inline]
    pub(crate) fn next_or_end(&self, position: Position) -> Position {
        Position::at(next(&self.0, position.offset()))
    }

    /// Whether `position` is that of the first element.
    #[inline]
    pub(crate) fn is_first(&self, position: Position) -> bool {
        position.offset() == HEADER_BYTES
    }

    /// Whether `position` is the end, after the last element.
    #[inline]
    pub(crate) fn is_end(&self, position: Position) -> bool {
        position.offset() == self.end()
    }

    #[inline]
    fn checked(&self, offset: usize) -> Option<Position> {
        (offset < self.end()).then(|| Position::at(offset))
    }

    /// The element at `position`.
    #[inline]
    pub fn element(&self, position: Position) -> Element<'_> {
        decode(&self.0, position.offset()).0
    }

    /// The element at `position`, and the position after it.
    #[inline]
    pub fn element_and_next(&self, position: Position) -> (Element<'_>, Option<Position>) {
        let (element, after) = decode(&self.0, position.offset());
        (element, self.checked(after))
    }

    /// Position of the element with this index; negative indexes count from the back, -1 the last.
    /// Walks from the nearer end.
    pub fn seek(&self, index: i64) -> Option<Position> {
        let len = self.len();
        let magnitude = usize::try_from(index.unsigned_abs()).ok()?;
        let index = if index < 0 { len.checked_sub(magnitude)? } else { magnitude };
        if index >= len {
            return None;
        }
        let offset = if index <= len / 2 {
            (0..index).fold(HEADER_BYTES, |at, _| next(&self.0, at))
        } else {
            (index..len).fold(self.end(), |at, _| previous(&self.0, at))
        };
        Some(Position::at(offset))
    }

    /// The element with this index; negative indexes count from the back.
    #[inline]
    pub fn get(&self, index: i64) -> Option<Element<'_>> {
        Some(self.element(self.seek(index)?))
    }

    /// All elements with their positions, from either end.
    #[inline]
    pub fn iter(&self) -> Entries<'_> {
        Entries(self.elements())
    }

    /// All elements, from either end.
    #[inline]
    pub fn elements(&self) -> Elements<'_> {
        Elements { bytes: &self.0, front: HEADER_BYTES, back: self.end() }
    }

    /// The elements from index `first` on, for walking towards the back.
    pub(crate) fn elements_from(&self, first: usize) -> Elements<'_> {
        let front = self.seek(first as i64).map_or(self.end(), Position::offset);
        Elements { bytes: &self.0, front, back: self.end() }
    }

    /// The elements up to index `last`, for walking towards the front.
    pub(crate) fn elements_through(&self, last: usize) -> Elements<'_> {
        let back = self.seek(last as i64 + 1).map_or(self.end(), Position::offset);
        Elements { bytes: &self.0, front: HEADER_BYTES, back }
    }

    /// Position of the first element whose text is `text`, comparing one element and skipping
    /// `skip` after it (1: only the fields of field-value pairs).
    #[inline]
    pub fn find(&self, text: &[u8], skip: usize) -> Option<Position> {
        self.find_from(self.first()?, &Needle::new(text), skip)
    }

    /// [`find`](Self::find) from `position` on, which is compared first.
    #[inline]
    pub fn find_from(
        &self,
        position: Position,
        needle: &Needle<'_>,
        skip: usize,
    ) -> Option<Position> {
        let end = self.end();
        let mut at = position.offset();
        while at < end {
            let (element, after) = decode(&self.0, at);
            if needle.matches(element) {
                return Some(Position::at(at));
            }
            at = after;
            for _ in 0..skip {
                if at < end {
                    at = next(&self.0, at);
                }
            }
        }
        None
    }

    /// Calls `visit` with the position of each index in `indexes`, which ascend (repeats are fine),
    /// in one walk. For random picks. Indexes beyond the end are passed over.
    pub fn visit(&self, indexes: impl IntoIterator<Item = usize>, mut visit: impl FnMut(Position)) {
        let end = self.end();
        let (mut at, mut index) = (HEADER_BYTES, 0);
        for wanted in indexes {
            debug_assert!(wanted >= index, "indexes ascend");
            while index < wanted && at < end {
                at = next(&self.0, at);
                index += 1;
            }
            if at < end {
                visit(Position::at(at));
            }
        }
    }
}

impl std::fmt::Debug for ListpackSlice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.elements()).finish()
    }
}

/// Iterator over elements.
#[derive(Debug, Clone, Default)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    front: usize,
    back: usize,
}

impl Elements<'_> {
    /// Where the next element begins, or the end.
    #[inline]
    pub(crate) fn current_position(&self) -> Position {
        Position::at(self.front)
    }

    /// Passes over the elements before a position.
    #[inline]
    pub(crate) fn pass_to(&mut self, position: Position) {
        self.front = position.offset().min(self.back);
    }

    /// Passes over the next `count` elements, or all that are left.
    #[inline]
    pub(crate) fn pass(&mut self, count: usize) {
        for _ in 0..count {
            if self.front >= self.back {
                return;
            }
            self.front = next(self.bytes, self.front);
        }
    }

    /// Takes the last `count` elements off, or all that are left, and returns them.
    #[inline]
    pub(crate) fn take_back(&mut self, count: usize) -> Self {
        let back = self.back;
        for _ in 0..count {
            if self.front >= self.back {
                break;
            }
            self.back = previous(self.bytes, self.back);
        }
        Elements { bytes: self.bytes, front: self.back, back }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        if self.front >= self.back {
            return None;
        }
        let (element, next) = decode(self.bytes, self.front);
        self.front = next;
        Some(element)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        // The shortest entry has two bytes.
        (usize::from(self.front < self.back), Some((self.back.saturating_sub(self.front)) / 2))
    }
}

impl<'a> DoubleEndedIterator for Elements<'a> {
    #[inline]
    fn next_back(&mut self) -> Option<Element<'a>> {
        if self.front >= self.back {
            return None;
        }
        self.back = previous(self.bytes, self.back);
        Some(decode(self.bytes, self.back).0)
    }
}

impl FusedIterator for Elements<'_> {}

/// Iterator over elements with their positions.
#[derive(Debug, Clone, Default)]
pub struct Entries<'a>(Elements<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = (Position, Element<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let position = Position::at(self.0.front);
        Some((position, self.0.next()?))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Entries<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let element = self.0.next_back()?;
        Some((Position::at(self.0.back), element))
    }
}

impl FusedIterator for Entries<'_> {}
