//! The 80-bit `long double` of x86 processors: reading, adding, printing.
//!
//! INCRBYFLOAT and HINCRBYFLOAT store their result as text, and in Redis that text is made by
//! 80-bit arithmetic: 0.1 + 0.2 is 0.3 there, and not 0.30000000000000004. To answer with the same
//! digits on every machine, the format (a 64-bit mantissa, 15-bit exponent, rounding to nearest
//! even) is done here in integer arithmetic. Numbers of ordinary size need 128 bits at most; longer
//! ones go through [`Bignum`].

use std::ops::Add;

use super::bignum::Bignum;
use super::hexfloat::{self, Binary, Format};

/// The x87 extended format.
const EXTENDED: Format = Format { bits: 64, min_exponent: -16_445, max_exponent: 16_320 };

/// Longest text that is read as a number (Redis copies it into a buffer of 5 kB).
const MAX_TEXT: usize = 5 * 1024 - 1;

/// 10^17: as many decimals are printed at most.
const DECIMALS: u32 = 17;

/// A decimal number whose first digit is worth 10^5000 or more is infinite in any case, and one
/// below 10^-5000 is zero.
const FAR_EXPONENT: i64 = 5000;

/// A number in the 80-bit extended format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    negative: bool,
    magnitude: Magnitude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Magnitude {
    /// `mantissa * 2^exponent`; the mantissa's highest bit is set unless it is zero or subnormal.
    Finite {
        mantissa: u64,
        exponent: i32,
    },
    Infinite,
    /// Not a number: the result of infinity minus infinity.
    Undefined,
}

impl LongDouble {
    /// Reads a number as INCRBYFLOAT takes it: decimal or hexadecimal as in C, or infinity. `None`
    /// for NaN, for anything before or after the number, for a number so large or small that only
    /// infinity or zero is left of it, and for texts of 5120 bytes and more.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let (negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
            return Some(LongDouble { negative, magnitude: Magnitude::Infinite });
        }
        let binary = match rest {
            [b'0', b'x' | b'X', ..] => hexfloat::parse(rest)?,
            _ => Decimal::parse(rest)?.to_binary()?,
        };
        let number = LongDouble::from_binary(negative, binary);
        let vanished = number.is_zero() && (binary.mantissa != 0 || binary.inexact);
        (number.is_finite() && !vanished).then_some(number)
    }

    fn from_binary(negative: bool, binary: Binary) -> Self {
        let magnitude = match binary.round(&EXTENDED) {
            Some((mantissa, exponent)) => Magnitude::Finite { mantissa, exponent },
            None => Magnitude::Infinite,
        };
        LongDouble { negative, magnitude }
    }

    fn add_special(self, other: LongDouble) -> LongDouble {
        match (self.magnitude, other.magnitude) {
            (Magnitude::Infinite, Magnitude::Infinite) if self.negative != other.negative => {
                LongDouble { negative: false, magnitude: Magnitude::Undefined }
            }
            (Magnitude::Finite { .. }, _) => other,
            (_, Magnitude::Undefined) => other,
            _ => self,
        }
    }

    /// The sum when at least one side is zero.
    fn add_zero(self, other: LongDouble) -> LongDouble {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => LongDouble { negative: self.negative && other.negative, ..self },
            (true, false) => other,
            _ => self,
        }
    }

    /// Whether this is a number, neither infinite nor undefined.
    pub fn is_finite(self) -> bool {
        matches!(self.magnitude, Magnitude::Finite { .. })
    }

    /// Whether it has a minus.
    pub fn is_negative(self) -> bool {
        self.negative
    }

    /// A thousand times this number, rounded as the format rounds, and then up to a whole number:
    /// seconds as milliseconds. `None` when that exceeds 64 bits.
    pub fn thousandfold_ceiling(self) -> Option<i64> {
        let Magnitude::Finite { mantissa, exponent } = self.magnitude else { return None };
        let product = Binary { mantissa: u128::from(mantissa) * 1000, exponent, inexact: false };
        let (mantissa, exponent) = product.round(&EXTENDED)?;
        if mantissa == 0 {
            return Some(0);
        }
        if exponent >= 0 {
            // The mantissa alone exceeds 63 bits.
            return None;
        }
        let shift = exponent.unsigned_abs();
        let whole = mantissa.checked_shr(shift).unwrap_or(0);
        let has_fraction = mantissa.trailing_zeros() < shift;
        let up = u64::from(has_fraction && !self.negative);
        let magnitude = i64::try_from(whole + up).ok()?;
        Some(if self.negative { -magnitude } else { magnitude })
    }

    fn is_zero(self) -> bool {
        matches!(self.magnitude, Magnitude::Finite { mantissa: 0, .. })
    }

    /// Appends the number with at most 17 decimals and no trailing zeros, never with an exponent,
    /// and without a sign if it is printed as zero.
    pub fn write_human(self, output: &mut Vec<u8>) {
        let start = output.len();
        if self.negative {
            output.push(b'-');
        }
        match self.magnitude {
            Magnitude::Infinite => output.extend_from_slice(b"inf"),
            Magnitude::Undefined => output.extend_from_slice(b"nan"),
            Magnitude::Finite { mantissa, exponent } if exponent >= 0 => {
                let mut number = Bignum::from_u64(mantissa);
                number.shift_left(exponent as usize);
                number.write(output);
            }
            Magnitude::Finite { mantissa, exponent } => {
                let scaled = u128::from(mantissa) * 10u128.pow(DECIMALS);
                let rounded = hexfloat::round_shift(scaled, exponent.unsigned_abs(), false);
                write_fixed(output, rounded);
            }
        }
        if &output[start..] == b"-0" {
            output.remove(start);
        }
    }

    /// [`LongDouble::write_human`] into a new buffer.
    pub fn to_human(self) -> Vec<u8> {
        let mut output = Vec::new();
        self.write_human(&mut output);
        output
    }
}

impl Add for LongDouble {
    type Output = LongDouble;

    /// The sum, rounded to nearest even. The sum of opposite infinities is not finite either.
    fn add(self, other: LongDouble) -> LongDouble {
        let (
            Magnitude::Finite { mantissa, exponent },
            Magnitude::Finite { mantissa: m, exponent: e },
        ) = (self.magnitude, other.magnitude)
        else {
            return self.add_special(other);
        };
        if mantissa == 0 || m == 0 {
            return self.add_zero(other);
        }
        // The number with the larger exponent is the larger one, for mantissas are normalised
        // (subnormals all share the smallest exponent, where nothing is shifted away).
        if (exponent, mantissa) < (e, m) {
            return other + self;
        }
        // 63 bits of room below, and one above for the carry.
        let large = u128::from(mantissa) << 63;
        let wide = u128::from(m) << 63;
        let distance = (exponent - e) as u32;
        let small = wide.checked_shr(distance).unwrap_or(0);
        let lost = wide.trailing_zeros() < distance;
        let sum = if self.negative == other.negative {
            Binary { mantissa: large + small, exponent: exponent - 63, inexact: lost }
        } else {
            // The bits that were shifted away make the difference smaller: take one unit more, and
            // the true value lies above the rest.
            let mantissa = large - small - u128::from(lost);
            Binary { mantissa, exponent: exponent - 63, inexact: lost }
        };
        // An exact zero is positive whatever the signs were.
        LongDouble::from_binary(self.negative && sum.mantissa != 0, sum)
    }
}

/// Appends `value / 10^17` without trailing zeros.
fn write_fixed(output: &mut Vec<u8>, value: u128) {
    let unit = 10u128.pow(DECIMALS);
    let whole = value / unit;
    output.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    let fraction = (value % unit) as u64;
    if fraction == 0 {
        return;
    }
    output.push(b'.');
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(fraction);
    output.extend(std::iter::repeat_n(b'0', DECIMALS as usize - digits.len()));
    output.extend_from_slice(digits.trim_end_matches('0').as_bytes());
}

impl From<f64> for LongDouble {
    /// Exact: every double is a long double.
    fn from(value: f64) -> Self {
        let negative = value.is_sign_negative();
        let bits = value.to_bits() & !(1 << 63);
        let (biased, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
        match (biased, fraction) {
            (0x7ff, 0) => LongDouble { negative, magnitude: Magnitude::Infinite },
            (0x7ff, _) => LongDouble { negative, magnitude: Magnitude::Undefined },
            (0, _) => LongDouble::from_binary(negative, exact(fraction, -1074)),
            _ => LongDouble::from_binary(negative, exact(fraction | 1 << 52, biased - 1075)),
        }
    }
}

impl From<i64> for LongDouble {
    /// Exact: the mantissa has 64 bits.
    fn from(value: i64) -> Self {
        LongDouble::from_binary(value < 0, exact(value.unsigned_abs(), 0))
    }
}

fn exact(mantissa: u64, exponent: i32) -> Binary {
    Binary { mantissa: u128::from(mantissa), exponent, inexact: false }
}

/// A decimal literal without its sign: `digits * 10^exponent`, digits without the point and without
/// zeros at either end.
struct Decimal<'a> {
    /// The digits before and after the point.
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Reads digits with at most one point among them, optionally `e` and an exponent; all of
    /// `text`.
    fn parse(text: &'a [u8]) -> Option<Self> {
        let digit_run = |text: &'a [u8]| {
            text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
        };
        let (mut whole, mut rest) = digit_run(text);
        let mut fraction: &[u8] = &[];
        if let [b'.', after @ ..] = rest {
            (fraction, rest) = digit_run(after);
        }
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut exponent = match rest {
            [] => 0,
            [b'e' | b'E', power @ ..] => hexfloat::parse_exponent(power)?,
            _ => return None,
        };
        fraction = trim_end_zeros(fraction);
        whole = trim_start_zeros(whole);
        if fraction.is_empty() {
            let trimmed = trim_end_zeros(whole);
            exponent += (whole.len() - trimmed.len()) as i64;
            whole = trimmed;
        }
        exponent -= fraction.len() as i64;
        if whole.is_empty() {
            fraction = trim_start_zeros(fraction);
        }
        Some(Decimal { whole, fraction, exponent })
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).copied()
    }

    /// The nearest binary number of more than 64 bits; `None` when it is far too large.
    fn to_binary(&self) -> Option<Binary> {
        let count = self.whole.len() + self.fraction.len();
        if count == 0 {
            return Some(exact(0, 0));
        }
        let first_digit = self.exponent + count as i64 - 1;
        if first_digit > FAR_EXPONENT {
            return None;
        }
        if first_digit < -FAR_EXPONENT {
            return Some(Binary { mantissa: 0, exponent: 0, inexact: true });
        }
        // The exponent now lies within the text's length and the far exponent.
        let exponent = self.exponent as i32;
        if count <= 19 && exponent.unsigned_abs() <= 27 {
            let number = self.digits().fold(0, |number, byte| number * 10 + u64::from(byte - b'0'));
            return Some(scale_short(number, exponent));
        }
        Some(self.scale_long(exponent))
    }

    /// Any number of digits and any exponent, through big integers.
    fn scale_long(&self, exponent: i32) -> Binary {
        let mut number = Bignum::from_digits(self.digits());
        if exponent >= 0 {
            number.mul_power_of_five(exponent.unsigned_abs());
            let (mantissa, shift, inexact) = number.top();
            return Binary { mantissa, exponent: exponent + shift as i32, inexact };
        }
        let mut divisor = Bignum::from_u64(1);
        divisor.mul_power_of_five(exponent.unsigned_abs());
        let (mantissa, shift, inexact) = number.divide(divisor);
        Binary { mantissa, exponent: exponent + shift, inexact }
    }
}

/// `number * 10^exponent` for a number other than zero and an exponent of -27 to 27, where the
/// power of five fits 64 bits.
fn scale_short(number: u64, exponent: i32) -> Binary {
    let five = 5u128.pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return Binary { mantissa: u128::from(number) * five, exponent, inexact: false };
    }
    // With the dividend's highest bit set, the quotient has 65 bits or more.
    let shift = 64 + number.leading_zeros();
    let dividend = u128::from(number) << shift;
    Binary {
        mantissa: dividend / five,
        exponent: exponent - shift as i32,
        inexact: !dividend.is_multiple_of(five),
    }
}

fn trim_start_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    &digits[zeros..]
}

fn trim_end_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|&&digit| digit == b'0').count();
    &digits[..digits.len() - zeros]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn human(number: LongDouble) -> String {
        String::from_utf8(number.to_human()).unwrap()
    }

    fn sum(left: &str, right: &str) -> Option<String> {
        let sum = LongDouble::parse(left.as_bytes())? + LongDouble::parse(right.as_bytes())?;
        Some(human(sum))
    }

    /// The answers of a reference server to SET and INCRBYFLOAT.
    const SUMS: &[(&str, &str, &str)] = &[
        ("0.1", "0.2", "0.3"),
        ("0", "3.0e3", "3000"),
        ("10.5", "0.1", "10.6"),
        ("5.0e3", "2.0e2", "5200"),
        ("0", "5.0e-20", "0"),
        ("1", "1e-17", "1.00000000000000001"),
        ("1", "1e-18", "1"),
        ("0", "5e-18", "0"),
        ("0", "4.9e-18", "0"),
        ("0", "1.5e-17", "0.00000000000000002"),
        ("0", "2.5e-17", "0.00000000000000002"),
        ("-0.5", "0.5", "0"),
        ("-0", "-0", "0"),
        ("0", "-5e-20", "0"),
        ("1e17", "0.1", "100000000000000000.1015625"),
        ("1e18", "0.5", "1000000000000000000.5"),
        ("1e19", "1e-3", "10000000000000000000"),
        ("9223372036854775807", "1", "9223372036854775808"),
        ("18446744073709551615", "1", "18446744073709551616"),
        ("18446744073709551615", "0.5", "18446744073709551616"),
        ("18446744073709551616", "-0.1", "18446744073709551616"),
        ("3.14159265358979323846", "0", "3.14159265358979324"),
        ("2.718281828459045", "3.141592653589793", "5.859874482048838"),
        ("1e60", "1", "999999999999999999999373423426722168652130621984886772203520"),
        ("1e40", "1e40", "19999999999999999999567372184540512518144"),
        ("0", "0x1p3", "8"),
        ("0x.8", "0X1.8P1", "3.5"),
        ("123456789012345678901234567890", "-1", "123456789012345678899921813504"),
        ("1e-5", "1e-6", "0.000011"),
        ("100", "-99.99", "0.01"),
        ("0.3", "-0.1", "0.2"),
        ("1.1", "2.2", "3.3"),
        ("99999999999999999", "0.99999999999999999", "100000000000000000"),
        ("12345.6789", "-12345.6788", "0.00009999999999977"),
        (".5", "5.", "5.5"),
        ("1e4", "-1E-4", "9999.99990000000000023"),
        ("1073741824.0000000009313225746154785", "1", "1073741825.00000000093132257"),
    ];

    #[test]
    fn sums_as_the_reference_prints_them() {
        for (left, right, expected) in SUMS {
            assert_eq!(sum(left, right).as_deref(), Some(*expected), "{left} + {right}");
            assert_eq!(sum(right, left).as_deref(), Some(*expected), "{right} + {left}");
        }
    }

    #[test]
    fn what_the_reference_refuses_to_read() {
        let refused = [
            "",
            "-",
            ".",
            "e5",
            "1e",
            "1e+",
            " 1",
            "1 ",
            "1x",
            "nan",
            "-nan",
            "infin",
            "0x",
            "0x1p",
            "1e4933",
            "-1e4933",
            "1e-4951",
            "1e-99999999999999999999",
            "1e99999999999999999999",
            "0x1p16384",
            "0x1p-16446",
            "1_0",
            "--1",
            "+-1",
        ];
        for text in refused {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(LongDouble::parse("1".repeat(5119).as_bytes()), None, "too large");
        assert_eq!(LongDouble::parse("0".repeat(5120).as_bytes()), None, "too long");
        let padded = format!("{}1", "0".repeat(5118));
        assert_eq!(LongDouble::parse(padded.as_bytes()).map(human).as_deref(), Some("1"));
    }

    #[test]
    fn the_ends_of_the_range() {
        let largest = human(LongDouble::parse(b"1e4932").unwrap());
        assert!(largest.starts_with("10000000000000000000060189493879638913238377742545331147737"));
        assert_eq!(largest.len(), 4933);
        // Half of the smallest subnormal, and a number that rounds up to the smallest.
        for text in ["1e-4950", "0e-99999", "0x1p-16445", "-1e-4932"] {
            assert_eq!(
                LongDouble::parse(text.as_bytes()).map(human).as_deref(),
                Some("0"),
                "{text}"
            );
        }
        let large = LongDouble::parse(b"0x1.fffffffffffffffep16383").unwrap();
        assert!(large.is_finite() && !(large + large).is_finite());
    }

    #[test]
    fn infinity_is_read_but_not_finite() {
        let infinity = LongDouble::parse(b"Inf").unwrap();
        let negative = LongDouble::parse(b"-INFINITY").unwrap();
        let one = LongDouble::from(1);
        for number in [infinity, infinity + one, one + negative, infinity + negative] {
            assert!(!number.is_finite());
        }
        assert_eq!(human(one + negative), "-inf");
        assert_eq!(human(infinity + infinity), "inf");
        assert!(!LongDouble::from(f64::NAN).is_finite());
    }

    #[test]
    fn seconds_become_milliseconds() {
        let milliseconds = |text: &str| {
            LongDouble::parse(text.as_bytes()).and_then(LongDouble::thousandfold_ceiling)
        };
        for (text, expected) in [
            ("0", Some(0)),
            ("1", Some(1000)),
            ("0.01", Some(10)),
            ("0.1", Some(100)),
            ("2.5", Some(2500)),
            ("0.0001", Some(1)),
            ("1e-4000", Some(1)),
            ("-0.0001", Some(0)),
            ("-0.5", Some(-500)),
            ("9223372036854775", Some(9_223_372_036_854_775_000)),
            ("9223372036854776", None),
            ("-1e400", None),
            ("inf", None),
        ] {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }

    #[test]
    fn coordinates_as_geopos_prints_them() {
        // Doubles whose decimal expansion is longer than 17 decimals.
        assert_eq!(human(LongDouble::from(13.361_389_338_970_184)), "13.36138933897018433");
        assert_eq!(human(LongDouble::from(38.115_556_395_496_3)), "38.11555639549629859");
        assert_eq!(human(LongDouble::from(f64::MIN_POSITIVE)), "0");
        assert_eq!(human(LongDouble::from(5e-324)), "0");
    }

    proptest! {
        #[test]
        fn integers_are_exact(left: i64, right: i64) {
            let sum = LongDouble::from(left) + LongDouble::from(right);
            let expected = i128::from(left) + i128::from(right);
            // 65 bits may need rounding; all that fit 64 are exact.
            if expected.unsigned_abs() >> 64 == 0 {
                prop_assert_eq!(human(sum), expected.to_string());
            }
        }

        #[test]
        fn decimals_of_small_numbers_come_back(units in -63i32..=63, decimals in "[0-9]{8}[1-9]") {
            let text = format!("{units}.{decimals}");
            let number = LongDouble::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(human(number), text);
        }

        #[test]
        fn short_and_long_ways_agree(
            number in 1u64..10_000_000_000_000_000_000,
            exponent in -27i32..=27,
        ) {
            let text = number.to_string();
            let digits = trim_end_zeros(text.as_bytes());
            let decimal = Decimal { whole: digits, fraction: &[], exponent: i64::from(exponent) };
            let short = scale_short(text.trim_end_matches('0').parse().unwrap(), exponent);
            let long = decimal.scale_long(exponent);
            prop_assert_eq!(short.round(&EXTENDED), long.round(&EXTENDED));
        }

        #[test]
        fn doubles_agree_with_the_standard_library(value in -1e15f64..1e15) {
            // Seventeen decimals of a double, which both print exactly.
            let expected = format!("{value:.17}");
            let expected = expected.trim_end_matches('0').trim_end_matches('.');
            prop_assert_eq!(human(LongDouble::from(value)), expected);
        }

        #[test]
        fn garbage_never_panics(text in "[-+0-9a-fxpinty. ]{0,14}") {
            let _ = LongDouble::parse(text.as_bytes()).map(human);
        }
    }
}
