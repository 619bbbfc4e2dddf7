//! `bit`: operations on 32 bits.

use std::ffi::c_int;

use crate::stack::{Function, Kind, Stack, function};
use std::ffi::CStr;

const FUNCTIONS: &[(&CStr, Function)] = &[
    (c"tobit", function(to_bit)),
    (c"bnot", function(not)),
    (c"band", function(|stack| fold(stack, |one, other| one & other))),
    (c"bor", function(|stack| fold(stack, |one, other| one | other))),
    (c"bxor", function(|stack| fold(stack, |one, other| one ^ other))),
    (c"lshift", function(|stack| shift(stack, |bits, by| bits << by))),
    (c"rshift", function(|stack| shift(stack, |bits, by| bits >> by))),
    (c"arshift", function(|stack| shift(stack, |bits, by| (bits as i32 >> by) as u32))),
    (c"rol", function(|stack| shift(stack, u32::rotate_left))),
    (c"ror", function(|stack| shift(stack, u32::rotate_right))),
    (c"bswap", function(swap)),
    (c"tohex", function(to_hex)),
];

/// Pushes the library.
pub(crate) fn open(stack: Stack<'_>) {
    stack.push_table();
    stack.set_functions(FUNCTIONS, 0);
}

/// The 32 bits of an argument, modulo 2^32, rounded to the nearest integer.
fn argument(stack: Stack<'_>, index: c_int) -> u32 {
    // With this added, the integer part of a number is in the low bits of its mantissa.
    const SHIFTED: f64 = 6_755_399_441_055_744.0;
    let bits = (stack.number(index) + SHIFTED).to_bits() as u32;
    if bits == 0 && !stack.is_number(index) {
        stack.fail_type(index, c"number");
    }
    bits
}

/// Results are signed.
fn give(stack: Stack<'_>, bits: u32) -> c_int {
    stack.push_number(f64::from(bits as i32));
    1
}

fn to_bit(stack: Stack<'_>) -> c_int {
    give(stack, argument(stack, 1))
}

fn not(stack: Stack<'_>) -> c_int {
    give(stack, !argument(stack, 1))
}

fn swap(stack: Stack<'_>) -> c_int {
    give(stack, argument(stack, 1).swap_bytes())
}

fn fold(stack: Stack<'_>, operation: fn(u32, u32) -> u32) -> c_int {
    let mut bits = argument(stack, 1);
    for index in (2..=stack.top()).rev() {
        bits = operation(bits, argument(stack, index));
    }
    give(stack, bits)
}

fn shift(stack: Stack<'_>, operation: fn(u32, u32) -> u32) -> c_int {
    let bits = argument(stack, 1);
    let by = argument(stack, 2) & 31;
    give(stack, operation(bits, by))
}

/// This many digits, from the right; in capitals when the number of digits is negative.
fn to_hex(stack: Stack<'_>) -> c_int {
    let mut bits = argument(stack, 1);
    let wanted = if stack.kind(2) == Kind::None { 8 } else { argument(stack, 2) as i32 };
    let digits: &[u8; 16] = if wanted < 0 { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let mut text = [0; 8];
    let wanted = wanted.unsigned_abs().min(8) as usize;
    for place in text[..wanted].iter_mut().rev() {
        *place = digits[(bits & 15) as usize];
        bits >>= 4;
    }
    stack.push_bytes(&text[..wanted]);
    1
}
