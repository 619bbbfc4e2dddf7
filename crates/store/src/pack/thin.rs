//! A heap block behind one thin pointer, its length read from its own bytes.
//!
//! The block always has the [`good_size`] of its length, so neither length nor capacity is stored
//! outside of the format's own header, and growing within a size class costs no allocation.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error, realloc};
use std::marker::PhantomData;
use std::ptr::NonNull;

use base::size_class::good_size;

/// A byte format that states its own length.
pub(super) trait Format {
    /// The fixed first bytes of every block.
    type Header: AsRef<[u8]> + Copy;

    /// Size of [`Header`](Self::Header).
    const HEADER_BYTES: usize;

    /// Length of the whole block, header included, as its first
    /// [`HEADER_BYTES`](Self::HEADER_BYTES) state it: a pure function of these bytes.
    fn total(header: &[u8]) -> usize;
}

/// An owned block of format `F`.
///
/// Invariants: the allocation has `good_size(total)` bytes, of which the first `total`, as stated
/// by the header, are initialised. The header changes only together with the allocation.
#[repr(transparent)]
pub(super) struct ThinBytes<F: Format> {
    start: NonNull<u8>,
    format: PhantomData<F>,
}

// SAFETY: the block is plain bytes owned by this handle alone, and is changed through `&mut` only.
unsafe impl<F: Format> Send for ThinBytes<F> {}
// SAFETY: as above; `&ThinBytes` gives out `&[u8]` only.
unsafe impl<F: Format> Sync for ThinBytes<F> {}

fn layout(total: usize) -> Layout {
    // Eight, so that the three low bits of the pointer are free for its owner.
    Layout::from_size_align(good_size(total), 8).expect("a packed block is far below isize::MAX")
}

impl<F: Format> ThinBytes<F> {
    /// A block with this header and a body of zeros.
    pub(super) fn new(header: F::Header) -> Self {
        let header = header.as_ref();
        assert_eq!(header.len(), F::HEADER_BYTES);
        let total = F::total(header);
        assert!(total >= F::HEADER_BYTES);
        let layout = layout(total);
        // SAFETY: `good_size` is never zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // SAFETY: the block has at least `HEADER_BYTES` bytes and is not shared yet.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(header).cast(), header.len()) };
        ThinBytes { start, format: PhantomData }
    }

    fn header(&self) -> &[u8] {
        // SAFETY: the header is always there and initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), F::HEADER_BYTES) }
    }

    #[inline]
    fn total(&self) -> usize {
        F::total(self.header())
    }

    /// The whole block.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `total` bytes are allocated and initialised, by the invariants.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.total()) }
    }

    /// The block after its header, for change. The header changes through [`resize`](Self::resize).
    #[inline]
    pub(super) fn body_mut(&mut self) -> &mut [u8] {
        let len = self.total() - F::HEADER_BYTES;
        // SAFETY: as in `bytes`; the header, on which the length rests, stays out of reach.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(F::HEADER_BYTES), len) }
    }

    /// Replaces the header, and grows (with zeros) or cuts the body to the length it states.
    pub(super) fn resize(&mut self, header: F::Header) {
        let header = header.as_ref();
        assert_eq!(header.len(), F::HEADER_BYTES);
        let (old, new) = (self.total(), F::total(header));
        assert!(new >= F::HEADER_BYTES);
        let old_layout = layout(old);
        let new_layout = layout(new);
        if new_layout != old_layout {
            // SAFETY: the block was allocated with `old_layout`, by the invariants; the new size is
            // not zero and was accepted by `Layout`.
            let start = unsafe { realloc(self.start.as_ptr(), old_layout, new_layout.size()) };
            let Some(start) = NonNull::new(start) else { handle_alloc_error(new_layout) };
            self.start = start;
        }
        // SAFETY: the allocation has at least `new` bytes; the bytes beyond the old length become
        // initialised here, before any slice covers them.
        unsafe {
            if new > old {
                self.start.add(old).write_bytes(0, new - old);
            }
            self.start.copy_from_nonoverlapping(NonNull::from(header).cast(), header.len());
        }
    }

    /// What the block takes from the allocator, in bytes.
    #[inline]
    pub(super) fn allocated(&self) -> usize {
        good_size(self.total())
    }
}

impl<F: Format> Clone for ThinBytes<F> {
    fn clone(&self) -> Self {
        let bytes = self.bytes();
        let layout = layout(bytes.len());
        // SAFETY: `good_size` is never zero.
        let start = unsafe { std::alloc::alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // SAFETY: the new block has room for the same length, and is initialised up to it here.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        ThinBytes { start, format: PhantomData }
    }
}

impl<F: Format> Drop for ThinBytes<F> {
    fn drop(&mut self) {
        // SAFETY: allocated with this very layout, by the invariants.
        unsafe { dealloc(self.start.as_ptr(), layout(self.total())) }
    }
}
