//! From values to MessagePack.

use std::ffi::c_int;

use crate::output::{Output, Room};
use crate::stack::{Kind, Stack};

/// Tables within tables. Those further down are nil.
const DEPTH_MAX: usize = 16;

/// The arguments, one after the other.
pub(super) fn pack(stack: Stack<'_>) -> c_int {
    let arguments = stack.top();
    if arguments == 0 {
        stack.fail_argument(0, format_args!("MessagePack pack needs input."));
    }
    stack.need(arguments, "Function called with too many arguments.");
    let mut room = Room::new();
    stack.push_nil();
    let mut output = Output::new(stack, arguments + 1, &mut room);
    for index in 1..=arguments {
        stack.push_copy(index);
        value(stack, &mut output, 0);
        stack.pop(1);
    }
    output.push_string();
    1
}

/// Writes the value on top of the stack.
fn value(stack: Stack<'_>, output: &mut Output<'_, '_>, depth: usize) {
    stack.work(1);
    match stack.kind(-1) {
        Kind::String => string(output, stack.bytes(-1)),
        Kind::Boolean => output.push(if stack.boolean(-1) { 0xc3 } else { 0xc2 }),
        Kind::Number => number(output, stack.number(-1)),
        Kind::Table if depth < DEPTH_MAX => table(stack, output, depth),
        _ => output.push(0xc0),
    }
}

fn table(stack: Stack<'_>, output: &mut Output<'_, '_>, depth: usize) {
    // A key, a value, and the stack that the buffer needs to grow.
    stack.need(4, "in function mp_encode_lua_table_as_map");
    if is_array(stack) {
        let length = stack.length(-1);
        head(output, length, (0x90, 15), 0xdc);
        for index in 1..=length {
            stack.push_element(-1, index as c_int);
            value(stack, output, depth + 1);
            stack.pop(1);
        }
    } else {
        let mut pairs = 0;
        stack.push_nil();
        while stack.next(-2) {
            stack.pop(1);
            pairs += 1;
        }
        head(output, pairs, (0x80, 15), 0xde);
        stack.push_nil();
        while stack.next(-2) {
            stack.push_copy(-2);
            value(stack, output, depth + 1);
            stack.pop(1);
            value(stack, output, depth + 1);
            stack.pop(1);
        }
    }
}

/// Whether the keys of the table on top of the stack are 1, 2, and so on, or it is empty.
fn is_array(stack: Stack<'_>) -> bool {
    let (mut highest, mut count) = (0.0, 0.0);
    stack.push_nil();
    while stack.next(-2) {
        stack.work(1);
        stack.pop(1);
        let index = if stack.kind(-1) == Kind::Number { stack.number(-1) } else { 0.0 };
        if index <= 0.0 || index.floor() != index {
            stack.pop(1);
            return false;
        }
        highest = index.max(highest);
        count += 1.0;
    }
    highest == count
}

fn number(output: &mut Output<'_, '_>, value: f64) {
    /// The first number beyond 64 bits.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    let whole = value as i64;
    if value < BEYOND && whole as f64 == value {
        return integer(output, whole);
    }
    let short = value as f32;
    if f64::from(short) == value {
        output.push(0xca);
        output.extend(&short.to_be_bytes());
    } else {
        output.push(0xcb);
        output.extend(&value.to_be_bytes());
    }
}

fn integer(output: &mut Output<'_, '_>, value: i64) {
    let bytes = value.to_be_bytes();
    // The kind, and this many of the bytes.
    let (kind, size) = match value {
        -32..=127 => return output.push(value as u8),
        128..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..=-33 => (0xd0, 1),
        -0x8000..=-0x81 => (0xd1, 2),
        -0x8000_0000..=-0x8001 => (0xd2, 4),
        ..=-0x8000_0001 => (0xd3, 8),
    };
    output.push(kind);
    output.extend(&bytes[8 - size..]);
}

fn string(output: &mut Output<'_, '_>, text: &[u8]) {
    match text.len() {
        length @ 0x20..=0xff => output.extend(&[0xd9, length as u8]),
        length => head(output, length, (0xa0, 31), 0xda),
    }
    output.extend(text);
}

/// Writes the kind and the length of something: in one byte up to a bound, else after `long` in two
/// bytes, or after the next kind in four.
fn head(output: &mut Output<'_, '_>, length: usize, (short, most): (u8, usize), long: u8) {
    if length <= most {
        output.push(short | length as u8);
    } else if let Ok(length) = u16::try_from(length) {
        output.push(long);
        output.extend(&length.to_be_bytes());
    } else {
        output.push(long + 1);
        output.extend(&(length as u32).to_be_bytes());
    }
}
