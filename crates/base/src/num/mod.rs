//! Numbers exactly as Redis reads and prints them.
//!
//! Three kinds of numbers are visible on the wire, each with its own rules:
//!
//! - integers ([`parse_i64`], [`write_i64`]): strict decimal, one spelling per number;
//! - doubles ([`parse_f64`], [`write_f64`]): read as by C's `strtod`, printed with few digits, for
//!   scores;
//! - long doubles ([`LongDouble`]): the 80-bit numbers of INCRBYFLOAT and HINCRBYFLOAT.

mod bignum;
mod float;
mod hexfloat;
mod longdouble;
mod shortest;

pub use float::{parse_f64, parse_f64_lenient, write_f64, write_general, write_shortest};
pub use longdouble::LongDouble;

/// Reads a signed integer with the one spelling that [`write_i64`] gives it: no `+`, no space, no
/// leading zero, no `-0`. `None` for anything else, or beyond 64 bits.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => {
            let magnitude = parse_u64(digits)?;
            let in_range = magnitude != 0 && magnitude <= i64::MIN.unsigned_abs();
            in_range.then_some((magnitude as i64).wrapping_neg())
        }
        digits => i64::try_from(parse_u64(digits)?).ok(),
    }
}

/// Reads an unsigned integer as strictly as [`parse_i64`], over the whole range of 64 bits.
#[inline]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    /// This many digits cannot overflow.
    const SAFE_DIGITS: usize = 19;
    if text.is_empty() || (text[0] == b'0' && text.len() > 1) || text.len() > SAFE_DIGITS + 1 {
        return None;
    }
    let mut value: u64 = 0;
    let (safe, last) = text.split_at(text.len().min(SAFE_DIGITS));
    for &byte in safe {
        value = value * 10 + u64::from(digit(byte)?);
    }
    match last {
        [] => Some(value),
        [byte, ..] => value.checked_mul(10)?.checked_add(u64::from(digit(*byte)?)),
    }
}

/// Reads an unsigned integer as the parts of stream ids may be spelled: also with leading spaces, a
/// `+` and leading zeros.
pub fn parse_u64_lenient(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if digits.is_empty() {
        return None;
    }
    digits
        .iter()
        .try_fold(0u64, |value, &byte| value.checked_mul(10)?.checked_add(u64::from(digit(byte)?)))
}

#[inline]
fn digit(byte: u8) -> Option<u8> {
    let value = byte.wrapping_sub(b'0');
    (value < 10).then_some(value)
}

/// Appends `value` in decimal.
#[inline]
pub fn write_i64(output: &mut Vec<u8>, value: i64) {
    output.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends `value` in decimal.
#[inline]
pub fn write_u64(output: &mut Vec<u8>, value: u64) {
    output.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The number of bytes that [`write_i64`] takes for `value`, 1 to 20.
#[inline]
pub fn i64_len(value: i64) -> usize {
    let sign = usize::from(value < 0);
    sign + value.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_have_one_spelling() {
        // As a reference server's INCRBY takes them.
        let cases: &[(&str, Option<i64>)] = &[
            ("0", Some(0)),
            ("1", Some(1)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("18446744073709551615", None),
            ("99999999999999999999", None),
            ("100000000000000000000", None),
            ("01", None),
            ("00", None),
            ("-0", None),
            ("-01", None),
            ("+1", None),
            ("--1", None),
            (" 1", None),
            ("1 ", None),
            ("1a", None),
            ("1/", None),
            ("1:", None),
            ("", None),
            ("-", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_i64(text.as_bytes()), *expected, "{text:?}");
        }
    }

    #[test]
    fn unsigned_integers_use_all_bits() {
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"28446744073709551615"), None);
        assert_eq!(parse_u64(b"1844674407370955161x"), None);
        assert_eq!(parse_u64(b"-1"), None);
    }

    #[test]
    fn stream_id_parts_are_lenient() {
        for text in ["5", "05", "+5", " 5", " +005"] {
            assert_eq!(parse_u64_lenient(text.as_bytes()), Some(5), "{text:?}");
        }
        for text in ["", "+", "-1", "5 ", "0x5", "18446744073709551616"] {
            assert_eq!(parse_u64_lenient(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn integers_come_back(value: i64, shift in 0u32..64) {
            let value = value >> shift;
            let mut text = Vec::new();
            write_i64(&mut text, value);
            prop_assert_eq!(parse_i64(&text), Some(value));
            prop_assert_eq!(i64_len(value), text.len());
        }

        #[test]
        fn accepted_integers_are_what_they_spell(text in "[-+0-9]{0,21}") {
            if let Some(value) = parse_i64(text.as_bytes()) {
                prop_assert_eq!(value.to_string(), text.clone());
            }
            if let Some(value) = parse_u64(text.as_bytes()) {
                prop_assert_eq!(value.to_string(), text);
            }
        }
    }
}
