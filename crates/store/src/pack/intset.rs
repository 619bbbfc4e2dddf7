//! A set of integers as one sorted array.
//!
//! ```text
//! +--------------+---------------+------------+-----+
//! | width u32 LE | length u32 LE | integer LE | ... |    width: 2, 4 or 8 bytes, for all alike
//! +--------------+---------------+------------+-----+
//! ```
//! The width is the smallest that every member added so far fit; it never shrinks.

use std::iter::FusedIterator;
use std::ops::Range;

use super::PackError;
use super::thin::{Format, ThinBytes};

const HEADER_BYTES: usize = 8;

struct IntsetFormat;

impl Format for IntsetFormat {
    type Header = [u8; HEADER_BYTES];

    const HEADER_BYTES: usize = HEADER_BYTES;

    #[inline]
    fn total(header: &[u8]) -> usize {
        HEADER_BYTES + header_width(header) * header_len(header)
    }
}

#[inline]
fn header_width(bytes: &[u8]) -> usize {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
}

#[inline]
fn header_len(bytes: &[u8]) -> usize {
    u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize
}

fn header(width: usize, len: usize) -> [u8; HEADER_BYTES] {
    let len = u32::try_from(len).expect("callers convert an intset long before 2^32 members");
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&(width as u32).to_le_bytes());
    header[4..].copy_from_slice(&len.to_le_bytes());
    header
}

/// Bytes needed for `value`: 2, 4 or 8.
#[inline]
fn width_of(value: i64) -> usize {
    if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    }
}

/// The integer at `index` of a body of this width.
#[inline]
fn read(body: &[u8], width: usize, index: usize) -> i64 {
    let at = index * width;
    match width {
        2 => i64::from(i16::from_le_bytes([body[at], body[at + 1]])),
        4 => {
            let bytes = &body[at..at + 4];
            i64::from(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        }
        _ => {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&body[at..at + 8]);
            i64::from_le_bytes(bytes)
        }
    }
}

#[inline]
fn write(body: &mut [u8], width: usize, index: usize, value: i64) {
    body[index * width..(index + 1) * width].copy_from_slice(&value.to_le_bytes()[..width]);
}

/// An ascending set of integers in one heap block, in Redis's intset format.
///
/// Eight bytes, as `Option<Intset>` is. Finding costs a binary search, changing a move of the tail.
#[repr(transparent)]
#[derive(Clone)]
pub struct Intset(ThinBytes<IntsetFormat>);

impl Intset {
    /// An empty set.
    pub fn new() -> Self {
        Intset(ThinBytes::new(header(2, 0)))
    }

    /// Takes over bytes from outside after checking all of them.
    ///
    /// # Errors
    /// [`PackError::Length`], [`Width`](PackError::Width), [`Order`](PackError::Order), or
    /// [`Empty`](PackError::Empty), as no server stores a set without members.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PackError> {
        if bytes.len() < HEADER_BYTES {
            return Err(PackError::Length);
        }
        let (width, len) = (header_width(bytes), header_len(bytes));
        if !matches!(width, 2 | 4 | 8) {
            return Err(PackError::Width);
        }
        let body = &bytes[HEADER_BYTES..];
        if width.checked_mul(len) != Some(body.len()) {
            return Err(PackError::Length);
        }
        if len == 0 {
            return Err(PackError::Empty);
        }
        if (1..len).any(|index| read(body, width, index - 1) >= read(body, width, index)) {
            return Err(PackError::Order);
        }
        let mut set = Intset(ThinBytes::new(header(width, len)));
        set.0.body_mut().copy_from_slice(body);
        Ok(set)
    }

    /// The bytes as they go into a dump.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        header_len(self.as_bytes())
    }

    /// Whether there are no members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes per member: 2, 4 or 8.
    #[inline]
    pub fn width(&self) -> usize {
        header_width(self.as_bytes())
    }

    /// What the block takes from the allocator, in bytes.
    #[inline]
    pub fn memory_usage(&self) -> usize {
        self.0.allocated()
    }

    #[inline]
    fn body(&self) -> &[u8] {
        &self.as_bytes()[HEADER_BYTES..]
    }

    /// The member with this rank, counted from 0 in ascending order. Random picks use it too.
    #[inline]
    pub fn get(&self, index: usize) -> Option<i64> {
        (index < self.len()).then(|| read(self.body(), self.width(), index))
    }

    /// Whether `value` is a member.
    #[inline]
    pub fn contains(&self, value: i64) -> bool {
        self.search(value).is_ok()
    }

    /// The rank of `value`, or the rank it would take.
    fn search(&self, value: i64) -> Result<usize, usize> {
        let (body, width, len) = (self.body(), self.width(), self.len());
        // Sets are often filled in ascending order.
        if len == 0 || read(body, width, len - 1) < value {
            return Err(len);
        }
        let (mut low, mut high) = (0, len);
        while low < high {
            let middle = low + (high - low) / 2;
            match read(body, width, middle).cmp(&value) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Adds a member. Returns whether it is new.
    pub fn add(&mut self, value: i64) -> bool {
        if width_of(value) > self.width() {
            self.widen_with(value);
            return true;
        }
        let Err(index) = self.search(value) else { return false };
        let (width, len) = (self.width(), self.len());
        self.0.resize(header(width, len + 1));
        let body = self.0.body_mut();
        body.copy_within(index * width..len * width, (index + 1) * width);
        write(body, width, index, value);
        true
    }

    /// Adds a value that needs a greater width than all members, so it is less or greater than all
    /// of them.
    fn widen_with(&mut self, value: i64) {
        let (width, len) = (width_of(value), self.len());
        let mut wider = ThinBytes::new(header(width, len + 1));
        let first = usize::from(value < 0);
        let body = wider.body_mut();
        for (index, member) in self.iter().enumerate() {
            write(body, width, first + index, member);
        }
        write(body, width, if value < 0 { 0 } else { len }, value);
        self.0 = wider;
    }

    /// Removes a member. Returns whether it was there.
    pub fn remove(&mut self, value: i64) -> bool {
        let Ok(index) = self.search(value) else { return false };
        self.remove_at(index);
        true
    }

    /// Removes and returns the member of this rank.
    pub fn take(&mut self, index: usize) -> Option<i64> {
        let value = self.get(index)?;
        self.remove_at(index);
        Some(value)
    }

    fn remove_at(&mut self, index: usize) {
        let (width, len) = (self.width(), self.len());
        self.0.body_mut().copy_within((index + 1) * width.., index * width);
        self.0.resize(header(width, len - 1));
    }

    /// All members in ascending order, from either end.
    #[inline]
    pub fn iter(&self) -> IntsetIter<'_> {
        IntsetIter { body: self.body(), width: self.width(), range: 0..self.len() }
    }

    /// Asserts the invariants.
    ///
    /// # Panics
    /// If one is violated.
    pub fn check(&self) {
        assert!(matches!(self.width(), 2 | 4 | 8));
        assert!(self.iter().zip(self.iter().skip(1)).all(|(low, high)| low < high));
        assert!(self.iter().all(|value| width_of(value) <= self.width()));
    }
}

impl Default for Intset {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Intset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Intset {
    type Item = i64;
    type IntoIter = IntsetIter<'a>;

    fn into_iter(self) -> IntsetIter<'a> {
        self.iter()
    }
}

/// Iterator over the members of an [`Intset`], ascending.
#[derive(Debug, Clone)]
pub struct IntsetIter<'a> {
    body: &'a [u8],
    width: usize,
    range: Range<usize>,
}

impl Iterator for IntsetIter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        Some(read(self.body, self.width, self.range.next()?))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl DoubleEndedIterator for IntsetIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<i64> {
        Some(read(self.body, self.width, self.range.next_back()?))
    }
}

impl ExactSizeIterator for IntsetIter<'_> {}
impl FusedIterator for IntsetIter<'_> {}
