//! How large the nodes of a list become.

use super::element::ListInput;
use crate::pack::{EMPTY_LISTPACK_BYTES, Encoded, Growth, NODE_HEAD_BYTES};

/// The largest listpack of a list that a number of elements bounds.
const COUNTED_LISTPACK_BYTES: usize = 8 << 10;

/// When an element goes into a new node, and when it gets a plain node of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimits {
    /// Size of the largest listpack that is a list by itself.
    listpack_bytes: usize,
    /// Whether a chain has to shrink to half of `listpack_bytes`, too, to become a listpack again.
    pub(super) bounded_by_bytes: bool,
    /// Size of the largest packed block of a chain.
    pub(super) block_bytes: usize,
    /// Elements in a packed node.
    pub(super) elements: usize,
    /// Elements of at least this length get a plain node, even if they would fit a packed one.
    pub(super) plain_from: usize,
}

impl ListLimits {
    /// Limits from the setting `list-max-listpack-size` and the packed threshold in bytes (1 GiB
    /// unless a debug command changes it).
    ///
    /// `fill` is a number of elements, or -1 to -5 for a bound of 4 to 64 kB. The blocks of a chain
    /// are below that bound: 7/8 of it, and 14 kB at most. jemalloc serves blocks of 7 times a
    /// power of two from shared slabs, but gives one of exactly 8 kB a slab with a record of its
    /// own (2% of overhead), and one beyond 14 kB a page more than it asked for.
    pub fn new(fill: i32, packed_threshold: usize) -> Self {
        let (listpack_bytes, elements) = match fill {
            0.. => (COUNTED_LISTPACK_BYTES, usize::try_from(fill).unwrap_or(1).max(1)),
            -4..0 => (2048 << fill.unsigned_abs(), usize::MAX),
            _ => (64 << 10, usize::MAX),
        };
        let block_bytes = (listpack_bytes / 8 * 7).min(14 << 10);
        let bounded_by_bytes = fill < 0;
        let plain_from = packed_threshold;
        ListLimits { listpack_bytes, bounded_by_bytes, block_bytes, elements, plain_from }
    }

    /// Whether a listpack of this size is small enough to be a list by itself.
    #[inline]
    pub(super) fn is_small(&self, bytes: usize, count: usize) -> bool {
        bytes <= self.listpack_bytes && count <= self.elements
    }

    /// Whether a chain's only node of this size becomes a list by itself.
    pub(super) fn has_become_small(&self, bytes: usize, count: usize) -> bool {
        (!self.bounded_by_bytes || bytes <= self.listpack_bytes / 2) && count <= self.elements / 2
    }

    /// Whether a node of `total` listpack bytes and `count` elements takes one of `extra` bytes
    /// more.
    #[inline]
    pub(super) fn fits(&self, total: usize, count: usize, extra: usize) -> bool {
        NODE_HEAD_BYTES + total + extra <= self.block_bytes && count < self.elements
    }

    /// Whether two nodes of `total` listpack bytes and `count` elements together become one. If
    /// bytes bound a node a quarter stays free, so that the next insertion does not split it again.
    pub(super) fn may_join(&self, total: usize, count: usize) -> bool {
        let kept_free = if self.bounded_by_bytes { self.block_bytes / 4 } else { 0 };
        NODE_HEAD_BYTES + total <= self.block_bytes - kept_free && count <= self.elements
    }

    /// The encoded form of `value`, unless it must be plain.
    #[inline(always)]
    pub(super) fn encode<'a>(&self, value: &'a ListInput<'_>) -> Option<Encoded<'a>> {
        let encoded = match value {
            ListInput::Int(value) => Encoded::integer(*value),
            ListInput::Bytes(text) if self.may_pack(text.len()) => Encoded::text(text),
            ListInput::Shared(text) if self.may_pack(text.len()) => Encoded::text(text),
            _ => return None,
        };
        self.fits(EMPTY_LISTPACK_BYTES, 0, encoded.len()).then_some(encoded)
    }

    #[inline]
    fn may_pack(&self, len: usize) -> bool {
        len < self.plain_from && len < self.block_bytes
    }

    /// The size at which a chain's new end node begins.
    pub(super) fn first_block(&self) -> usize {
        self.block_bytes / 4
    }

    /// How the end nodes of a chain grow.
    pub(super) fn growth(&self) -> Growth {
        Growth::Double(self.block_bytes)
    }
}

impl Default for ListLimits {
    fn default() -> Self {
        ListLimits::new(-2, 1 << 30)
    }
}
