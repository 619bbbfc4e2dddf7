//! Bytes that a function gathers, to return them as a string.
//!
//! A few bytes are stored in the caller's frame, more of them in memory that Lua owns. Lua frees
//! that memory, also when an error ends the function, and counts it as memory of the script.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use crate::stack::{Kind, Stack};

/// Bytes that fit without memory of Lua's.
const INLINE: usize = 4096;

/// Where an output's first bytes lie.
pub(crate) struct Room<const SIZE: usize = INLINE>([MaybeUninit<u8>; SIZE]);

impl Room {
    pub(crate) fn new() -> Room {
        Room::sized()
    }
}

impl<const SIZE: usize> Room<SIZE> {
    pub(crate) fn sized() -> Room<SIZE> {
        Room([MaybeUninit::uninit(); SIZE])
    }
}

/// Bytes that are gathered.
pub(crate) struct Output<'room, 'call> {
    stack: Stack<'call>,
    /// The place on the stack that keeps the memory, nil before there is any.
    place: c_int,
    start: *mut u8,
    length: usize,
    capacity: usize,
    room: PhantomData<&'room mut [u8]>,
}

impl<'room, 'call> Output<'room, 'call> {
    /// An empty output, which takes a place on the stack that is nil, and does not move.
    pub(crate) fn new<const SIZE: usize>(
        stack: Stack<'call>,
        place: c_int,
        room: &'room mut Room<SIZE>,
    ) -> Self {
        debug_assert!(stack.kind(place) == Kind::Nil);
        let start = room.0.as_mut_ptr().cast();
        Output { stack, place, start, length: 0, capacity: SIZE, room: PhantomData }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, byte: u8) {
        if self.length == self.capacity {
            self.grow(1);
        }
        // SAFETY: there is room for one more.
        unsafe { self.start.add(self.length).write(byte) };
        self.length += 1;
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.stack.work(bytes.len() / 16);
        if bytes.len() > self.capacity - self.length {
            self.grow(bytes.len());
        }
        // SAFETY: there is room for this many more, and nothing else refers to the room.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(self.length), bytes.len());
        }
        self.length += bytes.len();
    }

    /// Pushes the bytes as a string.
    pub(crate) fn push_string(&self) {
        // SAFETY: this many bytes were written.
        self.stack.push_bytes(unsafe { std::slice::from_raw_parts(self.start, self.length) });
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        self.stack.need(1, "no place for a buffer");
        let capacity = (self.length + more).max(self.capacity * 2);
        let start = self.stack.push_memory(capacity);
        // SAFETY: the new memory is larger than the written part of the old, which is kept until
        // here.
        unsafe { ptr::copy_nonoverlapping(self.start, start, self.length) };
        self.stack.replace(self.place);
        self.start = start;
        self.capacity = capacity;
    }
}
