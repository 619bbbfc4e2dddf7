//! An allocator that counts, for tests of the memory that something takes.
//!
//! A test binary declares it: `#[global_allocator] static COUNTING: Counting = Counting;`.

// A global allocator cannot be without.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with an account of each thread.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    // Neither is ever dropped, so that they are there as long as the thread allocates.
    static TAKEN: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn note(change: isize) {
    let taken = TAKEN.get() + change;
    TAKEN.set(taken);
    MOST.set(MOST.get().max(taken));
}

fn signed(size: usize) -> isize {
    isize::try_from(size).unwrap_or(isize::MAX)
}

// SAFETY: everything is left to the system's allocator; accounts are the thread's own numbers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(signed(layout.size()));
        // SAFETY: the caller's promises are those that it asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(-signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are there for a while.
        note(signed(size));
        note(-signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// The most bytes that the calling thread had at once while it ran `action`, beyond those that it
/// had before.
pub fn most_taken(action: impl FnOnce()) -> usize {
    let before = TAKEN.get();
    MOST.set(before);
    action();
    usize::try_from(MOST.get() - before).unwrap_or(0)
}
