//! Passing memory: bytes that are on their way, to a file or to a follower.
//!
//! They are not clients' data and become free by themselves, so they do not count against
//! `maxmemory`. Otherwise the deletions that eviction itself sends to a slow disk would evict
//! further keys. Code that keeps such bytes bounds their number.
//!
//! Each thread counts what it takes and what it gives back. A thread may give back what another
//! took, so only the sum over all threads means anything. The counter of used memory leaves out a
//! thread's passing bytes in the same step in which it publishes the thread's allocations. So no
//! other thread ever sees one without the other.

use std::cell::Cell;
use std::ops::Deref;

use crate::size_class::good_size;

thread_local! {
    static BALANCE: Cell<i64> = const { Cell::new(0) };
}

/// Passing bytes that the calling thread has taken so far, less those that it has given back.
#[inline]
pub fn balance() -> i64 {
    BALANCE.get()
}

/// Notes that passing memory has grown by this many bytes, or has shrunk. The caller is the thread
/// that allocated or freed them.
#[inline]
pub fn note(change: i64) {
    BALANCE.set(BALANCE.get().wrapping_add(change));
}

/// A buffer whose memory is passing.
#[derive(Default)]
pub struct PassingBytes {
    bytes: Vec<u8>,
    /// What was noted of it.
    noted: usize,
}

impl PassingBytes {
    /// An empty buffer with room for this many bytes.
    pub fn with_capacity(capacity: usize) -> PassingBytes {
        let mut own = PassingBytes::default();
        own.change(|bytes| bytes.reserve_exact(capacity));
        own
    }

    /// Changes the bytes.
    #[inline]
    pub fn change<R>(&mut self, change: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let before = self.bytes.capacity();
        let result = change(&mut self.bytes);
        if self.bytes.capacity() != before {
            self.note_capacity();
        }
        result
    }

    /// Adds bytes at the end.
    #[inline]
    pub fn extend(&mut self, more: &[u8]) {
        self.change(|bytes| bytes.extend_from_slice(more));
    }

    /// Removes all bytes, and keeps the room if it is no more than this.
    pub fn clear(&mut self, most_room: usize) {
        self.change(|bytes| {
            bytes.clear();
            if bytes.capacity() > most_room {
                *bytes = Vec::new();
            }
        });
    }

    /// Bytes that fit without another allocation.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    #[cold]
    fn note_capacity(&mut self) {
        let taken = allocated(self.bytes.capacity());
        note(taken as i64 - self.noted as i64);
        self.noted = taken;
    }
}

/// Memory that is passing while this is there: something other than a buffer, of this many bytes.
#[derive(Default)]
pub struct Passing(usize);

impl Passing {
    /// Counts bytes that the calling thread has just allocated.
    pub fn new(bytes: usize) -> Passing {
        note(bytes as i64);
        Passing(bytes)
    }

    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.0
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        note(-(self.0 as i64));
    }
}

/// What the allocator sets aside for a buffer.
pub fn allocated(capacity: usize) -> usize {
    if capacity == 0 { 0 } else { good_size(capacity) }
}

impl Deref for PassingBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PassingBytes {
    fn drop(&mut self) {
        note(-(self.noted as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_counts_from_its_first_byte_until_it_is_gone() {
        let before = balance();
        let mut bytes = PassingBytes::default();
        assert_eq!(balance(), before, "an empty one takes nothing");
        (0..1000).for_each(|_| bytes.extend(b"some bytes"));
        assert_eq!(balance() - before, good_size(bytes.capacity()) as i64);
        bytes.clear(1 << 20);
        assert_eq!(balance() - before, good_size(bytes.capacity()) as i64);
        bytes.clear(100);
        assert_eq!(balance(), before);
        bytes.change(|own| own.resize(5000, 0));
        assert_eq!(bytes.len(), 5000);
        std::thread::spawn(move || {
            drop(bytes);
            assert_eq!(balance(), -5120, "the thread that frees it gives it back");
        })
        .join()
        .unwrap();
        assert_eq!(balance() - before, 5120);
    }
}
