//! The levels of a value that is walked: arrays and objects that are open, the innermost last.
//!
//! They are a list rather than frames of a recursion, because thousands may be open: Lua's stack
//! limits how deep a value nests, not the thread's stack.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use crate::stack::VALUES_MAX;

/// Open levels. As many as Lua's stack has places, since each takes one there.
pub(crate) struct Levels<T> {
    // Memory is not written before it is used: hardly any value has more than a few levels.
    open: [MaybeUninit<T>; VALUES_MAX],
    count: usize,
}

impl<T: Copy> Levels<T> {
    pub(crate) fn new() -> Levels<T> {
        Levels { open: [const { MaybeUninit::uninit() }; VALUES_MAX], count: 0 }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn push(&mut self, level: T) {
        self.open[self.count].write(level);
        self.count += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.count = self.count.checked_sub(1)?;
        // SAFETY: the levels below the count were written.
        Some(unsafe { self.open[self.count].assume_init() })
    }
}
