//! Blocks of the stream's bytes, which those who read the stream share.
//!
//! A block has room for a fixed number of bytes. One owner, [`Filling`], adds bytes at its end;
//! everybody else sees those that are published already, without a lock. A published byte never
//! changes, and a block ends after effects that belong together, never within.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use base::passing::{Passing, allocated};
use base::size_class::good_size;
use store::sync::AtomicU64;

use crate::journal::batch::Sink;

/// See the module's text.
pub struct Block {
    /// The journal's offset before its first byte.
    start: u64,
    /// The database that is selected there, if one is known to be.
    selected: Option<usize>,
    /// Room for so many bytes. Those before `published` are initialized.
    bytes: NonNull<[MaybeUninit<u8>]>,
    published: AtomicU64,
    /// The bytes count as passing memory while the block is there, whoever needs it.
    memory: Passing,
}

/// Memory of a block besides its bytes: itself, and the counts of references to it.
const FRAME: usize = good_size(size_of::<[usize; 2]>() + size_of::<Block>());

// SAFETY: the one `Filling` of a block writes behind the published bytes, where nobody reads. All
// others read published bytes, which nobody writes any more.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    fn new(capacity: usize) -> Block {
        let bytes = Box::into_raw(Box::<[u8]>::new_uninit_slice(capacity));
        Block {
            start: 0,
            selected: None,
            bytes: NonNull::new(bytes).expect("a box is somewhere"),
            published: AtomicU64::new(0),
            memory: Passing::new(allocated(capacity) + FRAME),
        }
    }

    /// The journal's offset before its first byte.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The journal's offset after the bytes that it has now.
    pub fn end(&self) -> u64 {
        self.start + self.published.load(Acquire)
    }

    /// The database that is selected before its first byte, if one is known to be.
    pub fn selected(&self) -> Option<usize> {
        self.selected
    }

    /// The bytes that it has now.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let length = self.published.load(Acquire) as usize;
        // SAFETY: so many bytes are initialized, which happened before they were published, and
        // nobody writes them while a reference to the block lives: `begin` has the only one.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast::<u8>(), length) }
    }

    /// Bytes that it can have.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.memory.bytes()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it came from such a box, and nobody refers to it any more.
        drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
    }
}

/// A block that bytes are added to.
pub(super) struct Filling {
    block: Arc<Block>,
    length: usize,
}

impl Filling {
    /// Begins a block for this many bytes at an offset, in `spare` if that fits and nobody reads
    /// it.
    pub(super) fn begin(
        (start, selected): (u64, Option<usize>),
        capacity: usize,
        spare: Option<Arc<Block>>,
    ) -> Filling {
        let spare = spare.filter(|block| block.capacity() == capacity);
        let mut block = spare.unwrap_or_else(|| Arc::new(Block::new(capacity)));
        if Arc::get_mut(&mut block).is_none() {
            block = Arc::new(Block::new(capacity));
        }
        let own = Arc::get_mut(&mut block).expect("nobody else has seen it");
        (own.start, own.selected) = (start, selected);
        own.published.store(0, Relaxed);
        Filling { block, length: 0 }
    }

    /// The block, to read what is published.
    #[inline]
    pub(super) fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// Bytes that were added.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Bytes that can still be added.
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.block.capacity() - self.length
    }

    /// Adds what `write` writes, and publishes it as a whole. Returns how much it is.
    ///
    /// # Panics
    /// There is no room for that.
    #[inline]
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Room<'_>)) -> usize {
        let room = self.room();
        // SAFETY: it is within the block's memory. Only the one filling of a block comes here, and
        // it has lent itself; others read nothing behind `length`, which is what is published.
        let free = unsafe {
            let free = self.block.bytes.as_ptr().cast::<MaybeUninit<u8>>().add(self.length);
            std::slice::from_raw_parts_mut(free, room)
        };
        let mut room = Room { free, used: 0 };
        write(&mut room);
        let used = room.used;
        self.length += used;
        self.block.published.store(self.length as u64, Release);
        used
    }
}

/// The free part of a block.
pub(super) struct Room<'b> {
    free: &'b mut [MaybeUninit<u8>],
    used: usize,
}

impl Sink for Room<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.free[self.used..][..bytes.len()].write_copy_of_slice(bytes);
        self.used += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(capacity: usize, spare: Option<Arc<Block>>) -> Filling {
        Filling::begin((100, Some(3)), capacity, spare)
    }

    #[test]
    fn readers_see_whole_additions_while_more_is_added() {
        const COUNT: usize = 50;
        let mut filling = begin(COUNT * 4, None);
        let block = Arc::clone(filling.block());
        assert_eq!((block.start(), block.end(), block.selected()), (100, 100, Some(3)));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..COUNT {
                    let added = filling.add(|room| {
                        room.put(b"ab");
                        room.put(&[b'c', number as u8]);
                    });
                    assert_eq!(added, 4);
                }
                assert_eq!((filling.len(), filling.room()), (COUNT * 4, 0));
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut seen = 0;
                    while seen < COUNT * 4 {
                        let bytes = block.bytes();
                        assert!(bytes.len() >= seen && bytes.len().is_multiple_of(4));
                        seen = bytes.len();
                        let whole = bytes.chunks(4).enumerate();
                        assert!(
                            whole
                                .into_iter()
                                .all(|(at, own)| own[..3] == *b"abc" && usize::from(own[3]) == at)
                        );
                        std::thread::yield_now();
                    }
                });
            }
        });
        assert_eq!(block.end(), 100 + 4 * COUNT as u64);
    }

    #[test]
    fn a_block_is_used_again_when_nobody_reads_it() {
        let before = base::passing::balance();
        let mut first = begin(64, None);
        assert!(base::passing::balance() - before >= 64);
        first.add(|room| room.put(b"first"));
        let reader = Arc::clone(first.block());
        let second = begin(64, Some(Arc::clone(first.block())));
        assert!(!Arc::ptr_eq(second.block(), &reader), "it is read");
        assert_eq!((reader.bytes(), second.block().bytes()), (&b"first"[..], &b""[..]));
        drop(first);
        let place = Arc::as_ptr(&reader);
        let mut third = begin(64, Some(reader));
        assert_eq!((Arc::as_ptr(third.block()), third.len()), (place, 0));
        third.add(|room| room.put(b"x"));
        assert_eq!(third.block().bytes(), b"x");
        let other = begin(65, Some(Arc::clone(third.block())));
        assert_eq!(other.block().capacity(), 65, "a spare one of another size is of no use");
        drop((second, third, other));
        assert_eq!(base::passing::balance(), before);
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn nothing_is_written_behind_the_end() {
        begin(4, None).add(|room| {
            room.put(b"abc");
            room.put(b"de");
        });
    }
}
