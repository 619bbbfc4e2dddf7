//! When a block of a stream is full.

/// The largest block, even if the settings allow more.
const MAX_BLOCK_BYTES: usize = 1 << 30;

/// As many entries as are counted.
const MAX_BLOCK_ENTRIES: u64 = u32::MAX as u64;

/// When an entry goes into a new block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    pub(super) block_bytes: usize,
    pub(super) block_entries: u64,
}

impl StreamLimits {
    /// Limits from the settings `stream-node-max-bytes` and `stream-node-max-entries`, of which 0
    /// means none.
    pub const fn new(bytes: usize, entries: u64) -> StreamLimits {
        let unbound_bytes = bytes == 0 || bytes > MAX_BLOCK_BYTES;
        let unbound_entries = entries == 0 || entries > MAX_BLOCK_ENTRIES;
        StreamLimits {
            block_bytes: if unbound_bytes { MAX_BLOCK_BYTES } else { bytes },
            block_entries: if unbound_entries { MAX_BLOCK_ENTRIES } else { entries },
        }
    }

    /// Entries of a block at most.
    pub fn entries(&self) -> u64 {
        self.block_entries
    }
}
