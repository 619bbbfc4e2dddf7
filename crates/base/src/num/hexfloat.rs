//! Hexadecimal floating-point literals (`0x1.8p3`), and the rounding that all binary formats share.

/// A non-negative binary number: `mantissa * 2^exponent`, plus a little if `inexact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Binary {
    pub(super) mantissa: u128,
    pub(super) exponent: i32,
    /// Whether the true value lies above, by less than one unit of the mantissa.
    pub(super) inexact: bool,
}

/// A binary floating-point format.
pub(super) struct Format {
    /// Bits of the mantissa, with the leading one.
    pub(super) bits: u32,
    /// Exponent of the lowest mantissa bit in the smallest numbers.
    pub(super) min_exponent: i32,
    /// Exponent of the lowest mantissa bit in the largest numbers.
    pub(super) max_exponent: i32,
}

impl Binary {
    /// Rounds to nearest, ties to even. The mantissa has all the format's bits unless the number is
    /// subnormal or zero. `None` when it is too large for the format.
    pub(super) fn round(self, format: &Format) -> Option<(u64, i32)> {
        let Binary { mut mantissa, mut exponent, inexact } = self;
        if mantissa == 0 {
            return Some((0, format.min_exponent));
        }
        let width = 128 - mantissa.leading_zeros() as i32;
        let drop = (width - format.bits as i32).max(format.min_exponent - exponent);
        if drop <= 0 {
            mantissa <<= -drop;
        } else {
            mantissa = round_shift(mantissa, drop as u32, inexact);
        }
        exponent += drop;
        if mantissa >> format.bits != 0 {
            // Rounding up carried into one more bit: a power of two.
            mantissa >>= 1;
            exponent += 1;
        }
        (exponent <= format.max_exponent).then_some((mantissa as u64, exponent))
    }
}

/// `value / 2^shift` rounded to nearest, ties to even; `more` tells of a part below `value`'s unit.
pub(super) fn round_shift(value: u128, shift: u32, more: bool) -> u128 {
    if shift == 0 {
        return value;
    }
    let quotient = value.checked_shr(shift).unwrap_or(0);
    // The bit worth one half, and whether anything is set below it.
    let half = value.checked_shr(shift - 1).unwrap_or(0) & 1 != 0;
    let below = value.trailing_zeros() < shift - 1 && value != 0;
    let up = half && (below || more || quotient & 1 != 0);
    quotient + u128::from(up)
}

/// Reads the part after the sign of a hexadecimal literal, as C's `strtod` does: `0x`, digits with
/// at most one point among them, optionally `p` and a decimal exponent. `None` unless all of `text`
/// is one.
pub(super) fn parse(text: &[u8]) -> Option<Binary> {
    let [b'0', b'x' | b'X', body @ ..] = text else { return None };
    let mut binary = Binary { mantissa: 0, exponent: 0, inexact: false };
    let (mut point, mut any_digit) = (false, false);
    let mut at = 0;
    // In 64 bits, for the literal may be long.
    let mut exponent: i64 = 0;
    while let Some(&byte) = body.get(at) {
        match (byte as char).to_digit(16) {
            Some(digit) => {
                any_digit = true;
                if binary.mantissa >> 124 == 0 {
                    binary.mantissa = binary.mantissa << 4 | u128::from(digit);
                    exponent -= if point { 4 } else { 0 };
                } else {
                    binary.inexact |= digit != 0;
                    exponent += if point { 0 } else { 4 };
                }
            }
            None if byte == b'.' && !point => point = true,
            None => break,
        }
        at += 1;
    }
    if !any_digit {
        return None;
    }
    match &body[at..] {
        [] => {}
        [b'p' | b'P', power @ ..] => exponent += parse_exponent(power)?,
        _ => return None,
    }
    // Far outside of any format already, and safe to add to.
    binary.exponent = exponent.clamp(-1_000_000, 1_000_000) as i32;
    Some(binary)
}

/// Reads a decimal exponent: an optional sign and digits. Saturates far beyond any format.
pub(super) fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    const SATURATED: i64 = 1 << 40;
    let value = digits.iter().try_fold(0i64, |value, &byte| {
        super::digit(byte).map(|digit| (value * 10 + i64::from(digit)).min(SATURATED))
    })?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_to_nearest_even() {
        for (value, shift, more, expected) in [
            (5, 0, true, 5),
            (0b101, 1, false, 0b10),
            (0b111, 1, false, 0b100),
            (0b101, 1, true, 0b11),
            (0b1011, 2, false, 0b11),
            (0b1001, 2, false, 0b10),
            (0b1010, 2, false, 0b10),
            (0b1110, 2, false, 0b100),
            (1, 200, true, 0),
            (u128::MAX, 128, false, 1),
            (1 << 127, 128, false, 0),
            (1 << 127, 128, true, 1),
            (u128::MAX, 129, false, 0),
            (0, 1, true, 0),
        ] {
            assert_eq!(round_shift(value, shift, more), expected, "{value:b} >> {shift} {more}");
        }
    }

    #[test]
    fn what_is_no_hexadecimal_literal() {
        for text in
            ["0x", "0x.", "0xp1", "0x1p", "0x1p+", "0xg", "0x1.2.3", "1x1", "0x1 ", "0x1p1x"]
        {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn long_literals_keep_their_scale() {
        let exactly = |text: &str| parse(text.as_bytes()).unwrap();
        let long = exactly(&format!("0x1{}p-400", "0".repeat(100)));
        assert_eq!(
            (long.mantissa.trailing_zeros() as i32 + long.exponent, long.inexact),
            (0, false)
        );
        let tail = exactly(&format!("0x1{}1", "0".repeat(100)));
        assert!(tail.inexact);
        assert_eq!(exactly("0x.0001").exponent, -16);
        assert_eq!(exactly("0x1p99999999999999999999").exponent, 1_000_000);
    }
}
