//! Prefetching what lies in a table, before it is looked at: without the table's lock, inside a
//! gate, or by its owner.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use base::limits::PREFETCH_MAX;
use smallvec::SmallVec;

use super::{
    Bucket, Directory, HIGHS, Line, ONES, POINTER, Root, SEGMENT, TAG_BITS, Table, address,
    prefetch, tag_of,
};
#[cfg(feature = "explore")]
use crate::table::retire;

impl Bucket<'_> {
    /// Prefetches what the first word here points to that could match `hash`. Returns whether there
    /// is one.
    #[inline]
    fn prefetch_word(self, hash: u64) -> bool {
        let pattern = u64::from(tag_of(hash)) * ONES;
        let difference = (self.meta().load(Relaxed) ^ pattern) & TAG_BITS;
        let candidates = difference.wrapping_sub(ONES) & !difference & HIGHS;
        if candidates == 0 {
            return false;
        }
        // The lowest candidate is no false one: its tag is not zero.
        let index = candidates.trailing_zeros() as usize / 8;
        let address = self.word(index).load(Relaxed) & POINTER;
        prefetch(address as *const u8);
        prefetch((address + 64) as *const u8);
        true
    }
}

impl<const SHARED: bool> Table<SHARED> {
    /// Prefetches the home bucket of `hash`. Needs no lock, but the caller is inside its gate, so
    /// that no directory of this table is freed meanwhile.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, hash: u64) {
        if let Some(bucket) = self.bucket_unlocked(hash) {
            prefetch(bucket.at.as_ptr().cast());
        }
    }

    /// Prefetches what a word of the home bucket of `hash` points to that could match. Where there
    /// is none and the bucket is chained, prefetches the next bucket instead, and returns true:
    /// [`Table::prefetch_chained`] goes on there. Needs no lock, but the caller is inside its gate,
    /// so that no block of this table is freed meanwhile.
    #[inline]
    pub(crate) fn prefetch_entry(&self, hash: u64) -> bool {
        let Some(bucket) = self.bucket_unlocked(hash) else { return false };
        if bucket.prefetch_word(hash) {
            return false;
        }
        // SAFETY: the table is shared, by the caller's presence.
        let next = unsafe { bucket.next_unlocked() };
        next.inspect(|next| prefetch(next.at.as_ptr().cast())).is_some()
    }

    /// [`Table::prefetch_entry`] in the bucket behind the home bucket.
    #[inline]
    pub(crate) fn prefetch_chained(&self, hash: u64) {
        if let Some(bucket) = self.bucket_unlocked(hash)
            // SAFETY: the table is shared, by the caller's presence.
            && let Some(next) = unsafe { bucket.next_unlocked() }
        {
            next.prefetch_word(hash);
        }
    }

    /// The home bucket of a hash, for a thread without the lock that is inside its gate. A bucket
    /// consists of atomics.
    #[inline]
    fn bucket_unlocked(&self, hash: u64) -> Option<Bucket<'_>> {
        debug_assert!(SHARED, "only shared tables retire their blocks");
        // The count may be newer or older than the root, so the index is checked against the bound
        // that comes with the pointer.
        let buckets = self.buckets.load(Relaxed);
        if buckets == 0 {
            return None;
        }
        let (index, _) = address(hash, buckets);
        let root = Root::unpack(self.root.load(Acquire));
        #[cfg(feature = "explore")]
        retire::look_at(root.block());
        match root {
            Root::Empty => None,
            Root::Single(block, capacity) => {
                // SAFETY: in bounds of the block, which was the table's at the load of the root;
                // retired blocks outlive the caller's gate.
                (index < capacity.max(1)).then(|| unsafe { Bucket::at(block.add(index as usize)) })
            }
            Root::Many(directory) => {
                // SAFETY: a directory, even a retired one, is readable inside the gate; a segment
                // that it names has 64 buckets.
                unsafe {
                    let segment = u64::from(index / SEGMENT);
                    if segment >= directory.as_ref().capacity {
                        return None;
                    }
                    let block = (*Directory::segment(directory, segment)).load(Acquire);
                    let block = NonNull::new(block as *mut Line)?;
                    Some(Bucket::at(block.add((index % SEGMENT) as usize)))
                }
            }
        }
    }

    /// Prefetches what the words point to that could match these hashes, [`PREFETCH_MAX`] at most.
    /// For the owner of the table.
    pub(crate) fn prefetch(&self, hashes: &[u64]) {
        let buckets = self.buckets.load(Relaxed);
        if buckets == 0 {
            return;
        }
        let home = |hash: u64| self.bucket(address(hash, buckets).0);
        for &hash in hashes {
            prefetch(home(hash).at.as_ptr().cast());
        }
        let mut chained: SmallVec<[(u64, Bucket<'_>); PREFETCH_MAX]> = SmallVec::new();
        for &hash in hashes {
            let bucket = home(hash);
            if !bucket.prefetch_word(hash)
                && let Some(next) = bucket.next()
                && chained.len() < PREFETCH_MAX
            {
                prefetch(next.at.as_ptr().cast());
                chained.push((hash, next));
            }
        }
        for (hash, bucket) in chained {
            bucket.prefetch_word(hash);
        }
    }
}
