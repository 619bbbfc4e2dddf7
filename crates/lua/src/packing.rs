//! `struct`: numbers and strings laid out as C lays them out, by a format.

use std::ffi::{CStr, c_int};

use crate::output::{Output, Room};
use crate::stack::{Function, Stack, function};

const FUNCTIONS: &[(&CStr, Function)] =
    &[(c"pack", function(pack)), (c"unpack", function(unpack)), (c"size", function(size))];

/// Bytes of an integer at most.
const INTEGER_MAX: usize = 32;

/// The alignment of values when the format asks for one without a number.
const ALIGNMENT: i32 = 8;

/// Pushes the library.
pub(crate) fn open(stack: Stack<'_>) {
    stack.push_table();
    stack.set_functions(FUNCTIONS, 0);
}

/// A format that is being read, and the options read so far.
struct Format<'call> {
    stack: Stack<'call>,
    rest: &'call [u8],
    big_endian: bool,
    alignment: usize,
}

impl<'call> Format<'call> {
    /// The format that is the first argument.
    fn new(stack: Stack<'call>) -> Format<'call> {
        let text = stack.argument_bytes(1);
        // As a string of C's it ends at a zero byte.
        let rest = text.split(|byte| *byte == 0).next().unwrap_or_default();
        Format { stack, rest, big_endian: cfg!(target_endian = "big"), alignment: 1 }
    }

    /// The next option, and the size that belongs to it.
    fn next(&mut self) -> Option<(u8, usize)> {
        let (option, rest) = self.rest.split_first()?;
        self.rest = rest;
        let size = match option {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'f' => 4,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'c' => self.count(1) as usize,
            b'i' | b'I' => {
                let size = self.count(4) as usize;
                if size > INTEGER_MAX {
                    self.stack.fail(format_args!(
                        "integral size {size} is larger than limit of {INTEGER_MAX}"
                    ));
                }
                size
            }
            _ => 0,
        };
        Some((*option, size))
    }

    /// The next number in the format, if there is one.
    fn count(&mut self, usual: i32) -> i32 {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return usual;
        }
        let (text, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let number = text.iter().try_fold(0i32, |number, digit| {
            number.checked_mul(10)?.checked_add(i32::from(digit - b'0'))
        });
        match number {
            Some(number) => number,
            None => self.stack.fail(format_args!("integral size overflow")),
        }
    }

    /// How many bytes are left out before a value at this place.
    fn padding(&self, place: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let size = size.min(self.alignment);
        size.wrapping_sub(place & size.wrapping_sub(1)) & size.wrapping_sub(1)
    }

    /// Carries out an option that stands for no value.
    fn control(&mut self, option: u8) {
        match option {
            b' ' => {}
            b'>' => self.big_endian = true,
            b'<' => self.big_endian = false,
            b'!' => {
                let alignment = self.count(ALIGNMENT);
                if alignment <= 0 || alignment & (alignment - 1) != 0 {
                    self.stack.fail(format_args!("alignment {alignment} is not a power of 2"));
                }
                self.alignment = alignment as usize;
            }
            _ => self.stack.fail_letter(1, c"invalid format option '%c'", option),
        }
    }
}

fn pack(stack: Stack<'_>) -> c_int {
    let mut format = Format::new(stack);
    let mut room = Room::new();
    // It comes after the arguments, where a missing one is looked for.
    stack.push_nil();
    let mut output = Output::new(stack, stack.top(), &mut room);
    let mut argument = 2;
    // Zero bytes that C counts but does not write do not count here.
    while let Some((option, size)) = format.next() {
        for _ in 0..format.padding(output.len(), option, size) {
            output.push(0);
        }
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let number = stack.argument_number(argument);
                put_integer(&mut output, bits(number), size, format.big_endian);
            }
            b'f' => {
                let bytes = (stack.argument_number(argument) as f32).to_le_bytes();
                put(&mut output, bytes, format.big_endian);
            }
            b'd' => {
                let bytes = stack.argument_number(argument).to_le_bytes();
                put(&mut output, bytes, format.big_endian);
            }
            b'c' | b's' => {
                let text = stack.argument_bytes(argument);
                let size = if size == 0 { text.len() } else { size };
                let Some(text) = text.get(..size) else {
                    stack.fail_argument(argument + 1, format_args!("string too short"))
                };
                output.extend(text);
                if option == b's' {
                    output.push(0);
                }
            }
            b'x' => {
                output.push(0);
                continue;
            }
            _ => {
                format.control(option);
                continue;
            }
        }
        argument += 1;
    }
    output.push_string();
    1
}

/// The 64 bits of a number without its fraction; of those that are too large, as the processor has
/// it.
fn bits(number: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    /// The result when there is no such integer.
    const NONE: i64 = i64::MIN;
    let signed = |number: f64| if (-HALF..HALF).contains(&number) { number as i64 } else { NONE };
    if number >= HALF { signed(number - HALF) as u64 ^ 1 << 63 } else { signed(number) as u64 }
}

fn put_integer(output: &mut Output<'_, '_>, bits: u64, size: usize, big_endian: bool) {
    let mut bytes = [0; INTEGER_MAX];
    bytes[..8].copy_from_slice(&bits.to_le_bytes());
    let bytes = &mut bytes[..size];
    if big_endian {
        bytes.reverse();
    }
    output.extend(bytes);
}

fn put<const N: usize>(output: &mut Output<'_, '_>, mut little: [u8; N], big_endian: bool) {
    if big_endian {
        little.reverse();
    }
    output.extend(&little);
}

fn unpack(stack: Stack<'_>) -> c_int {
    let mut format = Format::new(stack);
    let data = stack.argument_bytes(2);
    let place = stack.argument_integer_or(3, 1);
    // A negative number counts as far after the end, as in C, where it has no sign.
    if place == 0 {
        stack.fail_argument(3, format_args!("offset must be 1 or greater"));
    }
    let mut place = place.wrapping_sub(1) as usize;
    let mut results = 0;
    while let Some((option, size)) = format.next() {
        place = place.wrapping_add(format.padding(place, option, size));
        let mut size = size;
        let taken = piece(stack, data, place, size);
        stack.need(2, "too many results");
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let signed = option.is_ascii_lowercase();
                stack.push_number(integer(taken, format.big_endian, signed));
                results += 1;
            }
            b'f' => {
                stack.push_number(f64::from(f32::from_le_bytes(little(taken, format.big_endian))));
                results += 1;
            }
            b'd' => {
                stack.push_number(f64::from_le_bytes(little(taken, format.big_endian)));
                results += 1;
            }
            b'c' if size > 0 => {
                stack.push_bytes(taken);
                results += 1;
            }
            b'c' => {
                if results == 0 || !stack.is_number(-1) {
                    stack.fail(format_args!("format 'c0' needs a previous size"));
                }
                size = bits(stack.number(-1)) as usize;
                stack.pop(1);
                stack.push_bytes(piece(stack, data, place, size));
            }
            b's' => {
                let rest = &data[place..];
                let Some(length) = rest.iter().position(|byte| *byte == 0) else {
                    stack.fail(format_args!("unfinished string in data"))
                };
                stack.push_bytes(&rest[..length]);
                size = length + 1;
                results += 1;
            }
            b'x' => {}
            _ => format.control(option),
        }
        place += size;
    }
    stack.push_number(place.wrapping_add(1) as i64 as f64);
    results + 1
}

/// This many bytes of the data.
fn piece<'call>(stack: Stack<'call>, data: &'call [u8], place: usize, size: usize) -> &'call [u8] {
    let piece = data.get(place..).and_then(|rest| rest.get(..size));
    match piece {
        Some(piece) => piece,
        None => stack.fail_argument(2, format_args!("data string too short")),
    }
}

fn little<const N: usize>(bytes: &[u8], big_endian: bool) -> [u8; N] {
    let mut little = [0; N];
    little.copy_from_slice(bytes);
    if big_endian {
        little.reverse();
    }
    little
}

/// The integer in some bytes. Bits beyond 64 are left out.
fn integer(bytes: &[u8], big_endian: bool, signed: bool) -> f64 {
    let mut low = [0; 8];
    for (at, place) in low.iter_mut().enumerate().take(bytes.len()) {
        *place = if big_endian { bytes[bytes.len() - 1 - at] } else { bytes[at] };
    }
    let value = u64::from_le_bytes(low);
    if !signed {
        return value as f64;
    }
    // The highest bit that was written is the sign. Of more than eight bytes, the processor takes
    // that bit's number modulo 64.
    let mask = u64::MAX.wrapping_shl((8 * bytes.len() as u32).wrapping_sub(1));
    let value = if value & mask == 0 { value } else { value | mask };
    value as i64 as f64
}

fn size(stack: Stack<'_>) -> c_int {
    let mut format = Format::new(stack);
    let mut place = 0usize;
    while let Some((option, size)) = format.next() {
        place = place.wrapping_add(format.padding(place, option, size));
        match (option, size) {
            (b's', _) => stack.fail_argument(1, format_args!("option 's' has no fixed size")),
            (b'c', 0) => stack.fail_argument(1, format_args!("option 'c0' has no fixed size")),
            _ => {}
        }
        if !option.is_ascii_alphanumeric() {
            format.control(option);
        }
        place = place.wrapping_add(size);
    }
    stack.push_number(place as i64 as f64);
    1
}
