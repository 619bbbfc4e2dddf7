//! What an entry knows of its writes and reads: its version, and its eviction clock.
#![allow(unsafe_code)]

use super::Word;

const CLOCK_AT: usize = 7;

/// Bits of a version with its mark.
const STAMP: u64 = (1 << 56) - 1;
/// Marks an entry that was handed over to a cut: see [`crate::snapshot::cut`].
const HANDED: u64 = 1 << 55;
const VERSION: u64 = STAMP & !HANDED;

impl Word {
    pub(crate) fn version(self) -> u64 {
        self.stamp() & VERSION
    }

    /// Stamps the number of a write, which no cut was handed yet.
    pub(crate) fn set_version(self, version: u64) {
        self.set_stamp(version & VERSION);
    }

    /// Whether a cut was handed the entry since its last write.
    pub(crate) fn is_handed(self) -> bool {
        self.stamp() & HANDED != 0
    }

    /// Says whether one was.
    pub(crate) fn set_handed(self, handed: bool) {
        self.set_stamp(self.version() | if handed { HANDED } else { 0 });
    }

    /// The version with its mark.
    pub(super) fn stamp(self) -> u64 {
        // SAFETY: the header has at least 12 bytes.
        unsafe {
            let header = self.base().add(self.header_offset());
            header.cast::<u64>().read_unaligned() & STAMP
        }
    }

    pub(super) fn set_stamp(self, stamp: u64) {
        let bytes = stamp.to_ne_bytes();
        // SAFETY: seven bytes at the start of the header.
        unsafe {
            let header = self.base().add(self.header_offset());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), header, 7);
        }
    }

    pub(crate) fn clock(self) -> u32 {
        // SAFETY: three bytes of clock and one of the lengths lie inside the header.
        unsafe {
            let at = self.base().add(self.header_offset() + CLOCK_AT);
            at.cast::<u32>().read_unaligned() & 0xff_ffff
        }
    }

    pub(crate) fn set_clock(self, clock: u32) {
        let bytes = clock.to_ne_bytes();
        // SAFETY: three bytes inside the header.
        unsafe {
            let at = self.base().add(self.header_offset() + CLOCK_AT);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, 3);
        }
    }
}
