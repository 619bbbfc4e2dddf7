//! Doubles: read as C's `strtod` reads them, printed as Redis 8.0 prints them.

use super::hexfloat::{self, Format};
use super::shortest;

/// IEEE 754 binary64.
const BINARY64: Format = Format { bits: 53, min_exponent: -1074, max_exponent: 971 };

/// Reads a double as ZADD takes a score: decimal or hexadecimal as in C, `inf` or `infinity` in any
/// case. `None` for NaN, for anything before or after the number, and for a finite number that is
/// too large or too small to be anything but infinity or zero.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    if let Some(value) = parse_short_integer(text) {
        return Some(value);
    }
    // The standard library's grammar of decimal literals equals that of `strtod`.
    match str::from_utf8(text).ok()?.parse::<f64>() {
        Ok(value) if value.is_infinite() => spells_infinity(text).then_some(value),
        Ok(value) if value == 0.0 => (!has_nonzero_digit(text)).then_some(value),
        Ok(value) => (!value.is_nan()).then_some(value),
        Err(_) => parse_hexadecimal(text).filter(|(_, in_range)| *in_range).map(|(value, _)| value),
    }
}

/// Reads a double as ZRANGEBYSCORE takes a bound, and SORT a weight: decimals, up to the first zero
/// byte. So unlike [`parse_f64`] it takes no hexadecimal number, takes an empty text as 0, and makes
/// infinity or zero of what is too large or too small. `None` for NaN, and for anything before or
/// behind the number.
pub fn parse_f64_lenient(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    if let Some(value) = parse_short_integer(text) {
        return Some(value);
    }
    let value: f64 = str::from_utf8(text).ok()?.parse().ok()?;
    (!value.is_nan()).then_some(value)
}

/// Up to 15 digits and a minus: the common case, and exact without any rounding.
fn parse_short_integer(text: &[u8]) -> Option<f64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1.0, digits),
        digits => (1.0, digits),
    };
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    let mut value = 0u64;
    for &byte in digits {
        value = value * 10 + u64::from(super::digit(byte)?);
    }
    Some(sign * value as f64)
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

fn spells_infinity(text: &[u8]) -> bool {
    matches!(split_sign(text).1, [b'i' | b'I', ..])
}

fn has_nonzero_digit(text: &[u8]) -> bool {
    let mantissa = text.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    mantissa.into_iter().any(|byte| matches!(byte, b'1'..=b'9'))
}

/// The value of a hexadecimal literal, and whether a double can hold it: what is too large becomes
/// infinity, what is too small zero.
fn parse_hexadecimal(text: &[u8]) -> Option<(f64, bool)> {
    let (negative, rest) = split_sign(text);
    let binary = hexfloat::parse(rest)?;
    let (magnitude, in_range) = match binary.round(&BINARY64) {
        None => (f64::INFINITY, false),
        Some((mantissa, exponent)) => {
            (binary64(mantissa, exponent), mantissa != 0 || binary.mantissa == 0)
        }
    };
    Some((if negative { -magnitude } else { magnitude }, in_range))
}

/// The double with this mantissa, rounded to fit, and exponent.
fn binary64(mantissa: u64, exponent: i32) -> f64 {
    if mantissa >> (BINARY64.bits - 1) == 0 {
        return f64::from_bits(mantissa);
    }
    let biased = (exponent - BINARY64.min_exponent + 1) as u64;
    f64::from_bits(biased << 52 | (mantissa & ((1 << 52) - 1)))
}

/// Appends `value` as Redis 8.0 prints a score: a whole number below 2^62 in full, others with few digits
/// that identify them, and `inf`, `-inf` and `nan`.
pub fn write_f64(output: &mut Vec<u8>, value: f64) {
    const WHOLE: f64 = (1i64 << 62) as f64;
    if !value.is_finite() {
        output.extend_from_slice(match value {
            f64::INFINITY => b"inf",
            f64::NEG_INFINITY => b"-inf",
            _ => b"nan",
        });
        return;
    }
    let whole = value as i64;
    // Zero has a sign that an integer lacks.
    if value.abs() <= WHOLE && whole as f64 == value && whole != 0 {
        super::write_i64(output, whole);
        return;
    }
    shortest::write(output, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(value: f64) -> String {
        let mut output = Vec::new();
        write_f64(&mut output, value);
        String::from_utf8(output).unwrap()
    }

    /// What a reference server answers to ZADD and ZSCORE (sorted set with `skiplist` encoding, for
    /// the compact one stores whole numbers as integers and so loses the sign of zero).
    const SCORES: &[(&str, Option<&str>)] = &[
        ("3.14", Some("3.14")),
        ("0.30000000000000004", Some("0.30000000000000004")),
        ("1e15", Some("1000000000000000")),
        ("1e16", Some("10000000000000000")),
        ("1e17", Some("100000000000000000")),
        ("123456789012345678", Some("123456789012345680")),
        ("9.3e18", Some("9.3e+18")),
        ("1e21", Some("1e+21")),
        ("1.5e300", Some("1.5e+300")),
        ("-0.0", Some("-0")),
        ("-0", Some("-0")),
        ("0", Some("0")),
        ("inf", Some("inf")),
        ("+inf", Some("inf")),
        ("-inf", Some("-inf")),
        ("InFinity", Some("inf")),
        ("nan", None),
        ("NaN", None),
        ("nan(1)", None),
        ("0x1p3", Some("8")),
        ("0X1.8P1", Some("3")),
        ("-0x10", Some("-16")),
        ("0x.8", Some("0.5")),
        ("0x", None),
        ("0xg", None),
        ("0x1p", None),
        (" 1", None),
        ("\t1", None),
        ("1 ", None),
        ("1a", None),
        ("1\0", None),
        ("", None),
        ("-", None),
        (".", None),
        ("1e", None),
        ("1e+", None),
        ("+-1", None),
        ("1_000", None),
        ("infin", None),
        ("infinity1", None),
        (".5", Some("0.5")),
        ("5.", Some("5")),
        ("+.5", Some("0.5")),
        ("0000.5", Some("0.5")),
        ("1e5", Some("100000")),
        ("1E5", Some("100000")),
        ("1e400", None),
        ("-1e400", None),
        ("1e-400", None),
        ("1e1000000000000", None),
        ("0e-9999", Some("0")),
        ("4.9e-324", Some("5e-324")),
        ("1e-310", Some("1e-310")),
        ("1e-5", Some("0.00001")),
        ("0.0001", Some("0.0001")),
        ("1e-7", Some("1e-7")),
        ("5e-20", Some("5e-20")),
        ("1.7976931348623157e308", Some("1.7976931348623157e+308")),
        ("123456.789", Some("123456.789")),
        ("1234567890.5", Some("1234567890.5")),
        ("2251799813685248.5", Some("2251799813685248.5")),
        ("4503599627370495", Some("4503599627370495")),
        ("4503599627370496.5", Some("4503599627370496")),
        ("9007199254740993", Some("9007199254740992")),
        ("99999999999999984", Some("99999999999999984")),
        ("0.1", Some("0.1")),
    ];

    #[test]
    fn scores_as_the_reference_takes_and_prints_them() {
        for (text, expected) in SCORES {
            let printed = parse_f64(text.as_bytes()).map(printed);
            assert_eq!(printed.as_deref(), *expected, "{text:?}");
        }
    }

    #[test]
    fn bounds_are_read_as_leniently_as_the_reference_reads_them() {
        // As a reference server's ZCOUNT takes them.
        let cases: &[(&str, Option<f64>)] = &[
            ("", Some(0.0)),
            ("5", Some(5.0)),
            ("+5", Some(5.0)),
            ("1\0a", Some(1.0)),
            ("\0", Some(0.0)),
            ("1e400", Some(f64::INFINITY)),
            ("-1e-9999", Some(-0.0)),
            ("5.", Some(5.0)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("Infinity", Some(f64::INFINITY)),
            (" 1", None),
            ("1 ", None),
            ("1e", None),
            ("0x10", None),
            (".", None),
            ("-", None),
            ("nan", None),
            ("nan(1)", None),
            ("infinit", None),
            ("(1", None),
        ];
        for (text, expected) in cases {
            let read = parse_f64_lenient(text.as_bytes());
            assert_eq!(read.map(f64::to_bits), expected.map(f64::to_bits), "{text:?}");
        }
    }

    #[test]
    fn hexadecimal_edges() {
        let cases = [
            ("0x1.fffffffffffffp1023", Some(f64::MAX)),
            ("0x1.fffffffffffff7p1023", Some(f64::MAX)),
            ("0x1.fffffffffffff8p1023", None),
            ("0x1p-1074", Some(5e-324)),
            ("0x1p-1075", None),
            ("0x1.8p-1075", Some(5e-324)),
            ("0x1p-1022", Some(f64::MIN_POSITIVE)),
            ("0x0p0", Some(0.0)),
            ("0x0p-99999", Some(0.0)),
            ("0x123456789abcdef01", Some(20_988_295_479_420_645_121.0)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_f64(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn hexadecimal_comes_back(bits: u64) {
            let value = f64::from_bits(bits & !(1 << 63));
            if value.is_finite() {
                let (exponent, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
                let text = if exponent == 0 {
                    format!("0x0.{fraction:013x}p-1022")
                } else {
                    format!("0x1.{fraction:013x}p{}", exponent as i64 - 1023)
                };
                prop_assert_eq!(parse_f64(text.as_bytes()), Some(value), "{}", text);
            }
        }

        #[test]
        fn garbage_never_panics(text in "[-+0-9a-fxpinty. ]{0,12}") {
            let _ = parse_f64(text.as_bytes());
        }
    }
}
