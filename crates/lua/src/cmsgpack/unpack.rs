//! From MessagePack to values.

use std::ffi::c_int;

use crate::levels::Levels;
use crate::stack::Stack;

/// An array or a map that is being read. It is on the stack, a map with the key of the value that
/// comes next.
#[derive(Clone, Copy)]
enum Level {
    /// The number of elements that are left, and the index of the present one.
    Array { left: u32, index: u32 },
    /// The number of pairs that are left, and whether the key of one was read.
    Map { left: u32, keyed: bool },
}

struct Reader<'call> {
    stack: Stack<'call>,
    /// The unread rest.
    rest: &'call [u8],
}

pub(super) fn unpack(stack: Stack<'_>) -> c_int {
    values(stack, 0, 0)
}

pub(super) fn unpack_one(stack: Stack<'_>) -> c_int {
    let offset = stack.argument_integer_or(2, 0) as c_int;
    values(stack, 1, offset)
}

pub(super) fn unpack_limit(stack: Stack<'_>) -> c_int {
    let limit = stack.argument_integer(2) as c_int;
    let offset = stack.argument_integer_or(3, 0) as c_int;
    values(stack, limit, offset)
}

/// Reads `limit` values at most, and returns them after the offset of the next one, -1 at the end.
/// Without limit and offset, all values are read, and returned alone.
fn values(stack: Stack<'_>, limit: c_int, offset: c_int) -> c_int {
    if stack.top() > 1 {
        stack.set_top(1);
    }
    let text = stack.argument_bytes(1);
    let length = text.len();
    if offset < 0 || limit < 0 {
        stack.fail(format_args!(
            "Invalid request to unpack with offset of {offset} and limit of {}.",
            length as c_int
        ));
    }
    let Some(rest) = text.get(offset as usize..) else {
        stack.fail(format_args!(
            "Start offset {offset} greater than input length {}.",
            length as c_int
        ))
    };
    let all = limit == 0 && offset == 0;
    let limit = if all { c_int::MAX } else { limit };
    let mut reader = Reader { stack, rest };
    let mut count = 0;
    while !reader.rest.is_empty() && count < limit {
        reader.value();
        count += 1;
    }
    if !all {
        stack.need(1, "in function mp_unpack_full");
        let left = reader.rest.len();
        stack.push_number(if left == 0 { -1.0 } else { (length - left) as c_int as f64 });
        stack.insert(2);
        count += 1;
    }
    count
}

impl<'call> Reader<'call> {
    /// Pushes a value, with everything that it consists of.
    fn value(&mut self) {
        let Some(outermost) = self.begin() else { return };
        let mut outer = Levels::new();
        let mut level = outermost;
        loop {
            let ended = matches!(
                level,
                Level::Array { left: 0, .. } | Level::Map { left: 0, keyed: false }
            );
            if !ended {
                if let Some(inner) = self.begin() {
                    outer.push(level);
                    level = inner;
                    continue;
                }
            } else {
                match outer.pop() {
                    Some(around) => level = around,
                    None => return,
                }
            }
            // A value is complete, or a key, which waits for its value.
            match &mut level {
                Level::Array { left, index } => {
                    self.stack.set_element(-2, *index as c_int);
                    *left -= 1;
                    *index = index.wrapping_add(1);
                }
                Level::Map { keyed: keyed @ false, .. } => *keyed = true,
                Level::Map { left, keyed } => {
                    self.stack.set(-3);
                    *left -= 1;
                    *keyed = false;
                }
            }
        }
    }

    /// Pushes a value, or a table to be filled.
    fn begin(&mut self) -> Option<Level> {
        self.stack
            .need(1, "too many return values at once; use unpack_one or unpack_limit instead.");
        self.stack.work(1);
        let [kind] = self.take();
        match kind {
            0x00..=0x7f | 0xe0..=0xff => self.stack.push_number(f64::from(kind as i8)),
            0xcc => self.number(u8::from_be_bytes),
            0xcd => self.number(u16::from_be_bytes),
            0xce => self.number(u32::from_be_bytes),
            0xd0 => self.number(i8::from_be_bytes),
            0xd1 => self.number(i16::from_be_bytes),
            0xd2 => self.number(i32::from_be_bytes),
            // The highest bit is taken for a sign in both.
            0xcf | 0xd3 => {
                let number = i64::from_be_bytes(self.take()) as f64;
                self.stack.push_number(number);
            }
            0xca => self.number(f32::from_be_bytes),
            0xcb => self.number(f64::from_be_bytes),
            0xc0 => self.stack.push_nil(),
            0xc2 => self.stack.push_boolean(false),
            0xc3 => self.stack.push_boolean(true),
            0xa0..=0xbf => self.string(u32::from(kind & 31)),
            0xd9 => {
                let [length] = self.take();
                self.string(u32::from(length));
            }
            0xda => {
                let length = u16::from_be_bytes(self.take());
                self.string(u32::from(length));
            }
            0xdb => {
                let length = u32::from_be_bytes(self.take());
                self.string(length);
            }
            0x90..=0x9f => return Some(self.array(u32::from(kind & 15))),
            0xdc => {
                let length = u16::from_be_bytes(self.take());
                return Some(self.array(u32::from(length)));
            }
            0xdd => {
                let length = u32::from_be_bytes(self.take());
                return Some(self.array(length));
            }
            0x80..=0x8f => return Some(self.map(u32::from(kind & 15))),
            0xde => {
                let length = u16::from_be_bytes(self.take());
                return Some(self.map(u32::from(length)));
            }
            0xdf => {
                let length = u32::from_be_bytes(self.take());
                return Some(self.map(length));
            }
            0xc1 | 0xc4..=0xc9 | 0xd4..=0xd8 => {
                self.stack.fail(format_args!("Bad data format in input."))
            }
        }
        None
    }

    fn missing(&self) -> ! {
        self.stack.fail(format_args!("Missing bytes in input."))
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((bytes, rest)) = self.rest.split_first_chunk() else { self.missing() };
        self.rest = rest;
        *bytes
    }

    fn number<T: Into<f64>, const N: usize>(&mut self, read: fn([u8; N]) -> T) {
        let number = read(self.take()).into();
        self.stack.push_number(number);
    }

    fn string(&mut self, length: u32) {
        let Some((text, rest)) = self.rest.split_at_checked(length as usize) else {
            self.missing()
        };
        self.rest = rest;
        self.stack.push_bytes(text);
    }

    fn array(&self, left: u32) -> Level {
        self.stack.push_table();
        self.stack.need(1, "in function mp_decode_to_lua_array");
        Level::Array { left, index: 1 }
    }

    fn map(&self, left: u32) -> Level {
        self.stack.push_table();
        Level::Map { left, keyed: false }
    }
}
