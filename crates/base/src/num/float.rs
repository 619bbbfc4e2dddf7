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
/// byte. Unlike [`parse_f64`] it takes no hexadecimal number, takes an empty text as 0, and makes
/// infinity or zero of a number that is too large or too small. `None` for NaN, and for anything
/// before or after the number.
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

/// The value of a hexadecimal literal, and whether a double can represent it: a number that is too
/// large becomes infinity, one that is too small zero.
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

/// Appends `value` as Redis 8.0 prints a score: a whole number below 2^62 in full, others with few
/// digits that identify them, and `inf`, `-inf` and `nan`.
pub fn write_f64(output: &mut Vec<u8>, value: f64) {
    const WHOLE: f64 = (1i64 << 62) as f64;
    let whole = value as i64;
    // Zero has a sign that an integer lacks.
    if value.abs() <= WHOLE && whole as f64 == value && whole != 0 {
        super::write_i64(output, whole);
        return;
    }
    write_shortest(output, value);
}

/// As [`write_f64`], with an exponent also where a whole number ends in many zeros: `1e+8`.
pub fn write_shortest(output: &mut Vec<u8>, value: f64) {
    match value {
        f64::INFINITY => output.extend_from_slice(b"inf"),
        f64::NEG_INFINITY => output.extend_from_slice(b"-inf"),
        _ if value.is_nan() => output.extend_from_slice(b"nan"),
        _ => shortest::write(output, value),
    }
}

/// Appends `value` as C's `%.<precision>g` prints it. `precision` is 1 to 17: with 17 the digits
/// identify the number, as ZSCAN prints scores of a table.
///
/// Seventeen digits of a number of ordinary size come from one 128-bit multiplication and a shift,
/// exactly; the rest goes through the standard library, whose fixed-precision conversion is exact
/// too.
pub fn write_general(output: &mut Vec<u8>, value: f64, precision: u32) {
    debug_assert!((1..=17).contains(&precision));
    if value.is_sign_negative() {
        output.push(b'-');
    }
    let magnitude = value.abs();
    if !magnitude.is_finite() {
        output.extend_from_slice(if magnitude.is_nan() { b"nan" } else { b"inf" });
        return;
    }
    let limit = 10u64.pow(precision);
    let whole = magnitude as u64;
    if whole < limit && whole as f64 == magnitude {
        super::write_u64(output, whole);
        return;
    }
    let (digits, exponent) = significant_digits(magnitude, precision);
    write_digits(output, digits, exponent, precision);
}

/// The first `precision` significant digits of `value` (positive, finite) as one number, rounded to
/// nearest, ties to even; and the power of ten of the first of them.
fn significant_digits(value: f64, precision: u32) -> (u64, i32) {
    scaled_digits(value, precision).unwrap_or_else(|| printed_digits(value, precision))
}

/// [`significant_digits`] by one exact multiplication with a power of ten, if the result fits 128
/// bits.
fn scaled_digits(value: f64, precision: u32) -> Option<(u64, i32)> {
    const MANTISSA_MASK: u64 = (1 << 52) - 1;
    let bits = value.to_bits();
    let biased = (bits >> 52) as i32;
    if biased == 0 {
        return None;
    }
    let mantissa = u128::from(bits & MANTISSA_MASK | (MANTISSA_MASK + 1));
    // value = mantissa / 2^shift.
    let shift = u32::try_from(1075 - biased).ok().filter(|shift| *shift < 128)?;
    let limit = 10u128.pow(precision);
    // The logarithm may be wrong by one next to a power of ten; the loop corrects it.
    let mut exponent = value.log10().floor() as i32;
    for _ in 0..3 {
        // 10^22 is the largest power of ten that times 53 bits stays within 128.
        let power =
            u32::try_from(precision as i32 - 1 - exponent).ok().filter(|power| *power <= 22)?;
        let scaled = mantissa * 10u128.pow(power);
        let truncated = scaled >> shift;
        if truncated >= limit {
            exponent += 1;
        } else if truncated < limit / 10 {
            exponent -= 1;
        } else {
            let rounded = hexfloat::round_shift(scaled, shift, false);
            let carried = rounded == limit;
            let digits = if carried { limit / 10 } else { rounded };
            return Some((digits as u64, exponent + i32::from(carried)));
        }
    }
    None
}

/// [`significant_digits`] by way of the standard library's scientific notation.
fn printed_digits(value: f64, precision: u32) -> (u64, i32) {
    let text = format!("{value:.*e}", precision as usize - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit);
    let number = digits.fold(0, |number, byte| number * 10 + u64::from(byte - b'0'));
    (number, exponent.parse().unwrap_or(0))
}

/// Lays out `precision` significant digits as `%g` does: with an exponent when it is below -4 or
/// not below the precision, and without trailing zeros.
fn write_digits(output: &mut Vec<u8>, digits: u64, exponent: i32, precision: u32) {
    let mut buffer = itoa::Buffer::new();
    let all = buffer.format(digits).as_bytes();
    let kept = all.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    let significant = &all[..kept];
    if exponent < -4 || exponent >= precision as i32 {
        write_scientific(output, significant, exponent);
    } else if exponent < 0 {
        output.extend_from_slice(b"0.");
        output.extend(std::iter::repeat_n(b'0', -exponent as usize - 1));
        output.extend_from_slice(significant);
    } else {
        let whole = exponent as usize + 1;
        if significant.len() > whole {
            output.extend_from_slice(&significant[..whole]);
            output.push(b'.');
            output.extend_from_slice(&significant[whole..]);
        } else {
            output.extend_from_slice(&all[..whole]);
        }
    }
}

fn write_scientific(output: &mut Vec<u8>, significant: &[u8], exponent: i32) {
    output.push(significant[0]);
    if significant.len() > 1 {
        output.push(b'.');
        output.extend_from_slice(&significant[1..]);
    }
    output.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
    if exponent.unsigned_abs() < 10 {
        output.push(b'0');
    }
    super::write_u64(output, u64::from(exponent.unsigned_abs()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn general(value: f64, precision: u32) -> String {
        let mut output = Vec::new();
        write_general(&mut output, value, precision);
        String::from_utf8(output).unwrap()
    }

    fn printed(value: f64) -> String {
        let mut output = Vec::new();
        write_f64(&mut output, value);
        String::from_utf8(output).unwrap()
    }

    /// The answers of a reference server to ZADD and ZSCORE (sorted set with `skiplist` encoding,
    /// because the compact one stores whole numbers as integers and so loses the sign of zero).
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

    #[test]
    fn a_given_number_of_digits_as_c_prints_them() {
        let cases = [
            (2.71, "2.71"),
            (0.1 + 0.2, "0.3"),
            (1e14, "1e+14"),
            (123_456_789_012_345.0, "1.2345678901234e+14"),
            (99_999_999_999_999.9, "1e+14"),
            (1e-5, "1e-05"),
            (-2.5, "-2.5"),
            (1e100, "1e+100"),
        ];
        for (value, expected) in cases {
            assert_eq!(general(value, 14), expected);
        }
        assert_eq!(general(2.5, 1), "2", "ties to even");
        assert_eq!(general(3.5, 1), "4");
        assert_eq!(general(-f64::NAN, 17), "-nan");
    }

    proptest! {
        #[test]
        fn both_ways_to_digits_agree(bits: u64, precision in 1u32..=17) {
            let value = f64::from_bits(bits).abs();
            if value.is_normal() && let Some(digits) = scaled_digits(value, precision) {
                prop_assert_eq!(digits, printed_digits(value, precision));
            }
        }

        #[test]
        fn both_ways_agree_for_ordinary_numbers(
            whole in 0u64..10_000_000_000,
            decimals in 0i32..12,
            precision in 1u32..=17,
        ) {
            let value = whole as f64 / 10f64.powi(decimals);
            if value > 0.0 && let Some(digits) = scaled_digits(value, precision) {
                prop_assert_eq!(digits, printed_digits(value, precision));
            }
        }

        #[test]
        fn seventeen_digits_identify_the_number(bits: u64) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let text = general(value, 17);
                let read = parse_f64(text.as_bytes()).map(f64::to_bits);
                prop_assert_eq!(read, Some(bits), "{}", text);
            }
        }

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
