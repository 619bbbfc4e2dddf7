//! Numbers as C prints and reads them: `%.14g`, and `strtod`.

use std::fmt::{self, Write};
use std::io::Write as _;

/// At most this many digits are asked of `%g`. A double of another length is the caller's mistake.
const DIGITS_MAX: usize = 17;

/// The text of a number, and its length.
pub(crate) type Printed = ([u8; 40], usize);

/// A number with at most this many significant digits, as `%.*g` prints it.
pub(crate) fn print(value: f64, digits: usize) -> Printed {
    /// Below these, integers have no more than that many digits.
    const INTEGERS: [f64; 16] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let digits = digits.clamp(1, DIGITS_MAX);
    let mut text = [0; 40];
    let whole = value as i64;
    let exact = whole as f64 == value && value.abs() < INTEGERS[digits.min(15)];
    let length = if exact && (whole != 0 || value.is_sign_positive()) {
        put(&mut text, itoa::Buffer::new().format(whole).as_bytes())
    } else if value.is_nan() {
        put(&mut text, if value.is_sign_negative() { b"-nan" } else { b"nan" })
    } else if value.is_infinite() {
        put(&mut text, if value < 0.0 { b"-inf" } else { b"inf" })
    } else {
        print_digits(&mut text, value, digits)
    };
    (text, length)
}

fn put(text: &mut [u8; 40], bytes: &[u8]) -> usize {
    text[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

fn print_digits(text: &mut [u8; 40], value: f64, digits: usize) -> usize {
    let mut scientific = Short::default();
    // One digit, a point, the others, and the exponent of ten. It fits.
    let _fits = write!(scientific, "{:.*e}", digits - 1, value.abs());
    let scientific = scientific.bytes();
    let split = scientific.iter().position(|byte| *byte == b'e').unwrap_or(scientific.len());
    let exponent: i32 = scientific
        .get(split + 1..)
        .and_then(|text| std::str::from_utf8(text).ok())
        .map_or(0, |text| text.parse().unwrap_or_default());
    let mut mantissa = [b'0'; DIGITS_MAX];
    let mut count = 0;
    for byte in scientific[..split].iter().filter(|byte| byte.is_ascii_digit()) {
        mantissa[count] = *byte;
        count += 1;
    }
    while count > 1 && mantissa[count - 1] == b'0' {
        count -= 1;
    }
    let mantissa = &mantissa[..count];
    let mut rest = &mut text[..];
    if value.is_sign_negative() {
        give(&mut rest, b"-");
    }
    if exponent < -4 || exponent >= digits as i32 {
        give(&mut rest, &mantissa[..1]);
        if count > 1 {
            give(&mut rest, b".");
            give(&mut rest, &mantissa[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        let _fits = write!(rest, "e{sign}{:02}", exponent.unsigned_abs());
    } else if exponent < 0 {
        give(&mut rest, b"0.");
        give(&mut rest, &b"000"[..(-1 - exponent) as usize]);
        give(&mut rest, mantissa);
    } else {
        let whole = exponent as usize + 1;
        give(&mut rest, &mantissa[..whole.min(count)]);
        give(&mut rest, &[b'0'; DIGITS_MAX][..whole.saturating_sub(count)]);
        if count > whole {
            give(&mut rest, b".");
            give(&mut rest, &mantissa[whole..]);
        }
    }
    let left = rest.len();
    text.len() - left
}

fn give(rest: &mut &mut [u8], bytes: &[u8]) {
    let _fits = rest.write_all(bytes);
}

/// Text of a number on its way.
#[derive(Default)]
struct Short {
    text: [u8; 32],
    length: usize,
}

impl Short {
    fn bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let place = self.text.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

/// The number at the beginning of a text, and how many bytes it has: as `strtod` reads it, without
/// leading spaces. Without a number, the number of bytes is 0.
pub(crate) fn read(text: &[u8]) -> (f64, usize) {
    let signs = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let negative = text.first() == Some(&b'-');
    let (value, length) = read_unsigned(&text[signs..]);
    if length == 0 {
        return (0.0, 0);
    }
    (if negative { -value } else { value }, signs + length)
}

fn read_unsigned(text: &[u8]) -> (f64, usize) {
    let is_word =
        |word: &[u8]| text.len() >= word.len() && text[..word.len()].eq_ignore_ascii_case(word);
    match text.first() {
        Some(b'i' | b'I') if is_word(b"infinity") => (f64::INFINITY, 8),
        Some(b'i' | b'I') if is_word(b"inf") => (f64::INFINITY, 3),
        Some(b'n' | b'N') if is_word(b"nan") => (f64::NAN, 3 + payload(&text[3..])),
        Some(b'0') if matches!(text.get(1), Some(b'x' | b'X')) => match hexadecimal(&text[2..]) {
            (_, 0) => (0.0, 1),
            (value, length) => (value, 2 + length),
        },
        _ => decimal(text),
    }
}

/// The length of the part that may come after "nan": letters, digits and underlines in parentheses.
fn payload(text: &[u8]) -> usize {
    if text.first() != Some(&b'(') {
        return 0;
    }
    let inner = text[1..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
    let inner = inner.count();
    if text.get(1 + inner) == Some(&b')') { inner + 2 } else { 0 }
}

fn digits_of(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The length of an exponent: the letter, a sign, and one digit at least.
fn exponent_of(text: &[u8], letter: u8) -> usize {
    if text.first().map(u8::to_ascii_lowercase) != Some(letter) {
        return 0;
    }
    let sign = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    match digits_of(&text[1 + sign..]) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

fn decimal(text: &[u8]) -> (f64, usize) {
    let whole = digits_of(text);
    let mut length = whole;
    let mut digits = whole;
    if text.get(whole) == Some(&b'.') {
        let fraction = digits_of(&text[whole + 1..]);
        if whole + fraction > 0 {
            length += 1 + fraction;
            digits += fraction;
        }
    }
    if digits == 0 {
        return (0.0, 0);
    }
    length += exponent_of(&text[length..], b'e');
    if length == whole && whole <= 15 {
        let value =
            text[..whole].iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        return (value as f64, whole);
    }
    let value = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.parse().ok());
    (value.unwrap_or_default(), length)
}

/// The part after "0x": digits with a point among them, and a power of two.
fn hexadecimal(text: &[u8]) -> (f64, usize) {
    let mut mantissa: u64 = 0;
    let mut exponent: i64 = 0;
    let (mut length, mut digits, mut point) = (0, 0, false);
    for byte in text {
        match (*byte as char).to_digit(16) {
            Some(digit) => {
                digits += 1;
                if mantissa >> 60 == 0 {
                    mantissa = mantissa << 4 | u64::from(digit);
                    exponent -= if point { 4 } else { 0 };
                } else {
                    // Lost digits decide how a number just between two others is rounded.
                    mantissa |= u64::from(digit != 0);
                    exponent += if point { 0 } else { 4 };
                }
            }
            None if *byte == b'.' && !point => point = true,
            None => break,
        }
        length += 1;
    }
    if digits == 0 {
        return (0.0, 0);
    }
    let power = exponent_of(&text[length..], b'p');
    if power > 0 {
        let written = std::str::from_utf8(&text[length + 1..length + power]).unwrap_or_default();
        let too_far = if written.starts_with('-') { -1_000_000_000 } else { 1_000_000_000 };
        exponent = exponent.saturating_add(written.parse().unwrap_or(too_far));
        length += power;
    }
    (scaled(mantissa, exponent), length)
}

/// `mantissa * 2^exponent`, rounded once; of two equally near numbers, to the even one.
fn scaled(mantissa: u64, exponent: i64) -> f64 {
    /// Exponents of the highest bit of the largest number, and of the smallest with all its bits.
    const EXPONENTS: (i64, i64) = (1023, -1022);
    if mantissa == 0 {
        return 0.0;
    }
    // The highest bit is where it always is.
    let zeros = mantissa.leading_zeros();
    let highest = exponent.saturating_add(63 - i64::from(zeros));
    if highest > EXPONENTS.0 {
        return f64::INFINITY;
    }
    let lost = 11 + (EXPONENTS.1 - highest).max(0);
    if lost > 64 {
        return 0.0;
    }
    let mantissa = u128::from(mantissa << zeros);
    let (kept, rest, half) = (mantissa >> lost, mantissa & ((1 << lost) - 1), 1 << (lost - 1));
    let up = rest > half || rest == half && kept & 1 == 1;
    // A mantissa that overflows raises the exponent, which stands before it.
    let before = ((highest - EXPONENTS.1).max(0) as u64) << 52;
    f64::from_bits(before + kept as u64 + u64::from(up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn prints(value: f64, digits: usize, expected: &str) {
        let (text, length) = print(value, digits);
        assert_eq!(std::str::from_utf8(&text[..length]), Ok(expected));
    }

    #[test]
    fn numbers_are_printed_as_c_prints_them() {
        prints(0.0, 14, "0");
        prints(-0.0, 14, "-0");
        prints(0.1 + 0.2, 14, "0.3");
        prints(0.1 + 0.2, 17, "0.30000000000000004");
        prints(1e14, 14, "1e+14");
        prints(99_999_999_999_999.0, 14, "99999999999999");
        prints(-123_456.75, 3, "-1.23e+05");
        prints(1.5, 1, "2");
        prints(2.5, 1, "2");
        prints(100.0, 1, "1e+02");
        prints(0.0001, 14, "0.0001");
        prints(0.00001234, 14, "1.234e-05");
        prints(5e-324, 14, "4.9406564584125e-324");
        prints(f64::MAX, 14, "1.7976931348623e+308");
        prints(f64::NEG_INFINITY, 14, "-inf");
        prints(120.0, 2, "1.2e+02");
        prints(120.5, 3, "120");
    }

    #[track_caller]
    fn reads(text: &str, value: f64, length: usize) {
        let (found, taken) = read(text.as_bytes());
        assert_eq!((found.to_bits(), taken), (value.to_bits(), length), "{text}");
    }

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        reads("12]", 12.0, 2);
        reads("-0", -0.0, 2);
        reads("1.", 1.0, 2);
        reads(".5e1x", 5.0, 4);
        reads("1e+", 1.0, 1);
        reads("1e400", f64::INFINITY, 5);
        reads("123456789012345678901", 123_456_789_012_345_678_901.0, 21);
        reads(".", 0.0, 0);
        reads("-", 0.0, 0);
        reads("0x", 0.0, 1);
        reads("0x1F", 31.0, 4);
        reads("0x.8p1", 1.0, 6);
        reads("0xAp-1p", 5.0, 6);
        reads("-Infinity", f64::NEG_INFINITY, 9);
        reads("INFx", f64::INFINITY, 3);
        reads("NaN(a_1)", f64::NAN, 8);
        reads("nan(", f64::NAN, 3);
    }

    #[test]
    fn hexadecimal_numbers_are_rounded_once() {
        reads("0x1p-1074", 5e-324, 9);
        reads("0x1p-1075", 0.0, 9);
        reads("0x1.8p-1075", 5e-324, 11);
        reads("0x1p-1076", 0.0, 9);
        reads("0x1.fffffffffffff8p-1023", f64::MIN_POSITIVE, 24);
        reads("0x1.fffffffffffff7p1023", f64::MAX, 23);
        reads("0x1.fffffffffffff8p1023", f64::INFINITY, 23);
        reads("0x1.00000000000008", 1.0, 18);
        reads("0x1.000000000000080000000001", 1.0 + f64::EPSILON, 28);
        reads("0x1p99999999999999999999", f64::INFINITY, 24);
        reads("0x1p-99999999999999999999", 0.0, 25);
        reads("0x0p99", 0.0, 6);
    }
}
