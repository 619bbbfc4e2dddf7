//! Blocks that are out of use but that a thread without the lock may still be looking at.
//!
//! Workers look at bucket tables without a lock only inside their gate, and keep nothing from one
//! turn to the next. A block may therefore be freed as soon as every gate has been open once after
//! the block was taken out of its table; a thread that stays inside for long says when it looks at
//! no table. The caller of [`collect`] passes the function that waits for that.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::locks::sync::Mutex;

struct Block(NonNull<u8>, Layout);

// SAFETY: a retired block belongs to this list alone; which thread frees it does not matter.
unsafe impl Send for Block {}

static RETIRED: Mutex<Vec<Block>> = Mutex::new(Vec::new());
static RETIRED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Hands a block over, to be freed later with this layout.
pub(crate) fn retire(block: NonNull<u8>, layout: Layout) {
    let mut blocks = RETIRED.lock();
    let before = blocks.capacity();
    blocks.push(Block(block, layout));
    let grown = (blocks.capacity() - before) * size_of::<Block>();
    RETIRED_BYTES.fetch_add(layout.size() + grown, Relaxed);
}

/// Bytes that wait to be freed, and those of the list of them.
pub fn waiting_bytes() -> usize {
    RETIRED_BYTES.load(Relaxed)
}

/// Bytes that were freed and that count as waiting until this is dropped. Until then the caller
/// tells the counter of used memory about them, so that they are not taken for data meanwhile.
pub struct Freed(usize);

impl Drop for Freed {
    fn drop(&mut self) {
        RETIRED_BYTES.fetch_sub(self.0, Relaxed);
    }
}

/// Frees what was retired before this call, if `pass_gates` says that it may.
///
/// # Safety
/// `pass_gates` returns true only when every thread that reads tables without a lock has left its
/// gate at least once since it was called, or has kept nothing of what it had read.
pub unsafe fn collect(pass_gates: impl FnOnce() -> bool) -> Freed {
    let mut blocks = std::mem::take(&mut *RETIRED.lock());
    if blocks.is_empty() {
        return Freed(0);
    }
    if !pass_gates() {
        let mut retired = RETIRED.lock();
        let before = retired.capacity() + blocks.capacity();
        retired.append(&mut blocks);
        let grown = retired.capacity() as isize - before as isize;
        RETIRED_BYTES.fetch_add((grown * size_of::<Block>() as isize) as usize, Relaxed);
        return Freed(0);
    }
    let mut bytes = blocks.capacity() * size_of::<Block>();
    bytes += blocks.iter().map(|Block(_, layout)| layout.size()).sum::<usize>();
    for block in blocks {
        free(block);
    }
    Freed(bytes)
}

#[cfg(not(feature = "explore"))]
fn free(Block(block, layout): Block) {
    // SAFETY: no thread can reach the block from a table any more, and by the promise of the caller
    // of `collect` none still has it from before.
    unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
}

#[cfg(feature = "explore")]
thread_local! {
    static FREED: std::cell::RefCell<std::collections::HashSet<u64>> = Default::default();
}

/// Blocks stay, so that no other block gets the same address.
#[cfg(feature = "explore")]
fn free(Block(block, _): Block) {
    FREED.with_borrow_mut(|freed| freed.insert(block.as_ptr() as u64));
}

/// A thread without the lock has found a block in a table, and reads it only now.
#[cfg(feature = "explore")]
pub(crate) fn look_at(block: u64) {
    crate::locks::sync::point();
    crate::locks::sync::check_seen(block);
    assert!(!FREED.with_borrow(|freed| freed.contains(&block)), "the block was freed");
}
