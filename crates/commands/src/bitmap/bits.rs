//! Strings as arrays of bits: counting, searching, combining, and integers of any width in them.
//!
//! Bit 0 is the highest bit of the first byte, as SETBIT counts. Offsets are counted in bits with
//! 64 bits, because a string of 512 MB has 2^32 of them. Bits after the end of a string read as
//! zero.
//!
//! Counting and combining go eight bytes at a time in loops that compilers turn into vector
//! instructions; searching skips eight bytes at a time.

use std::ops::RangeInclusive;

/// The bit at an offset.
pub(crate) fn get(bytes: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8).ok().and_then(|index| bytes.get(index));
    byte.is_some_and(|byte| byte & mask(offset) != 0)
}

/// Sets or clears the bit at an offset, which lies inside. Returns its previous value.
///
/// # Panics
/// If it lies after the end.
pub(crate) fn set(bytes: &mut [u8], offset: u64, bit: bool) -> bool {
    let byte = &mut bytes[(offset / 8) as usize];
    let before = *byte & mask(offset) != 0;
    *byte = if bit { *byte | mask(offset) } else { *byte & !mask(offset) };
    before
}

fn mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// The number of bits that are set.
pub(crate) fn count(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole: u64 =
        words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    let rest: u64 = rest.iter().map(|byte| u64::from(byte.count_ones())).sum();
    whole + rest
}

/// The number of set bits from one offset to another, both included.
pub(crate) fn count_range(bytes: &[u8], bits: RangeInclusive<u64>) -> u64 {
    let (first, last) = (*bits.start(), *bits.end());
    let bytes = &bytes[(first / 8) as usize..=(last / 8) as usize];
    let (before, behind) = outside(first, last);
    let edges = u64::from((bytes[0] & before).count_ones())
        + u64::from((bytes[bytes.len() - 1] & behind).count_ones());
    count(bytes) - edges
}

/// The bits of the first and the last byte that lie outside of a range of bits.
fn outside(first: u64, last: u64) -> (u8, u8) {
    (!(0xff >> (first % 8)), (0x7f >> (last % 8)))
}

/// The offset of the first bit of this kind from one offset to another, both included.
pub(crate) fn position(bytes: &[u8], bit: bool, bits: RangeInclusive<u64>) -> Option<u64> {
    let (first, last) = (*bits.start(), *bits.end());
    let start = (first / 8) as usize;
    let bytes = &bytes[start..=(last / 8) as usize];
    // The search always looks for ones: a zero is a one of the complement.
    let flip = if bit { 0 } else { 0xff };
    let (before, _) = outside(first, last);
    let first_byte = (bytes[0] ^ flip) & !before;
    let index = if first_byte != 0 { 0 } else { 1 + first_unlike(&bytes[1..], flip)? };
    let byte = if index == 0 { first_byte } else { bytes[index] ^ flip };
    let found = (start + index) as u64 * 8 + u64::from(byte.leading_zeros());
    (found <= last).then_some(found)
}

/// The index of the first byte that is not `byte`.
fn first_unlike(bytes: &[u8], byte: u8) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = words.iter().position(|word| *word != [byte; 8]);
    let from = whole.map_or(bytes.len() - rest.len(), |word| word * 8);
    bytes[from..].iter().position(|other| *other != byte).map(|index| from + index)
}

/// The operations of BITOP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    /// Bits that are set in all strings.
    And,
    /// Bits that are set in any.
    Or,
    /// Bits that are set in an odd number of strings.
    Xor,
    /// Bits that are not set in the only string.
    Not,
}

/// Combines strings; shorter ones are continued with zeros. The result is as long as the longest.
pub(crate) fn combine(operation: Operation, strings: &[&[u8]]) -> Vec<u8> {
    let longest = strings.iter().map(|string| string.len()).max().unwrap_or(0);
    let mut result = Vec::with_capacity(longest);
    let Some((first, others)) = strings.split_first() else { return result };
    result.extend_from_slice(first);
    result.resize(longest, 0);
    for string in others {
        let (common, rest) = result.split_at_mut(string.len());
        let pairs = common.iter_mut().zip(*string);
        match operation {
            Operation::And => {
                pairs.for_each(|(own, other)| *own &= other);
                rest.fill(0);
            }
            Operation::Or => pairs.for_each(|(own, other)| *own |= other),
            Operation::Xor => pairs.for_each(|(own, other)| *own ^= other),
            Operation::Not => {}
        }
    }
    if operation == Operation::Not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    result
}

/// An integer of some width inside a string: what BITFIELD calls `i5` or `u63`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    signed: bool,
    width: u32,
}

/// What happens to a number that does not fit a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overflow {
    /// Its lowest bits remain.
    Wrap,
    /// It is replaced by the nearest number that fits.
    Saturate,
    /// It is refused.
    Fail,
}

impl Field {
    /// Reads `i` or `u` and a width: up to 64 bits, or 63 unsigned ones, since a reply is a signed
    /// integer.
    pub(crate) fn parse(text: &[u8]) -> Option<Field> {
        let (signed, width) = match text {
            [b'i', width @ ..] => (true, width),
            [b'u', width @ ..] => (false, width),
            _ => return None,
        };
        let width = u32::try_from(base::num::parse_i64(width)?).ok()?;
        (1..=63 + u32::from(signed)).contains(&width).then_some(Field { signed, width })
    }

    /// Bits that it takes.
    pub(crate) fn width(self) -> u32 {
        self.width
    }

    /// The number in the field that begins at an offset.
    pub(crate) fn get(self, bytes: &[u8], offset: u64) -> i64 {
        self.wrap((window(bytes, offset) >> self.shift(offset)).cast_signed())
    }

    /// Writes a number into the field that begins at an offset, all inside.
    ///
    /// # Panics
    /// If a part of it lies after the end.
    pub(crate) fn set(self, bytes: &mut [u8], offset: u64, value: i64) {
        let shift = self.shift(offset);
        let mask = (u128::MAX >> (u128::BITS - self.width)) << shift;
        let value = (i128::from(value).cast_unsigned() << shift) & mask;
        let written = window(bytes, offset) & !mask | value;
        let start = (offset / 8) as usize;
        let touched = ((offset % 8) as usize + self.width as usize).div_ceil(8);
        bytes[start..start + touched].copy_from_slice(&written.to_be_bytes()[..touched]);
    }

    /// Bits after the field in the window of its offset.
    fn shift(self, offset: u64) -> u32 {
        u128::BITS - self.width - (offset % 8) as u32
    }

    /// The number itself if it fits the field, or else what `overflow` makes of it.
    pub(crate) fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let bits = self.width - u32::from(self.signed);
        let highest = (1i128 << bits) - 1;
        let lowest = if self.signed { -highest - 1 } else { 0 };
        if (lowest..=highest).contains(&number) {
            return Some(number as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.wrap(number)),
            Overflow::Saturate => Some(number.clamp(lowest, highest) as i64),
            Overflow::Fail => None,
        }
    }

    /// The number that SET takes from an argument. An unsigned field reads the argument as
    /// unsigned. In a signed field of fewer than 64 bits, as in Redis, an argument that is too far
    /// above the highest number counts as a number above it, so that saturation ends at the
    /// highest.
    pub(crate) fn argument(self, value: i64) -> i128 {
        if !self.signed {
            return i128::from(value.cast_unsigned());
        }
        let highest = i64::MAX >> (64 - self.width);
        let wraps = highest.checked_sub(value).is_none();
        i128::from(value) + if wraps && self.width < 64 { 1 << 64 } else { 0 }
    }

    /// The lowest bits of a number, with the sign that they have in this field.
    fn wrap(self, number: i128) -> i64 {
        let unused = 64 - self.width;
        let bits = (number as u64) << unused;
        if self.signed { bits.cast_signed() >> unused } else { (bits >> unused).cast_signed() }
    }
}

/// The sixteen bytes from the one that the field begins in: any field lies in the first nine.
fn window(bytes: &[u8], offset: u64) -> u128 {
    let mut window = [0; 16];
    let start = usize::try_from(offset / 8).unwrap_or(usize::MAX).min(bytes.len());
    let length = (bytes.len() - start).min(window.len());
    window[..length].copy_from_slice(&bytes[start..start + length]);
    u128::from_be_bytes(window)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bits(bytes: &[u8]) -> Vec<bool> {
        (0..bytes.len() as u64 * 8).map(|offset| get(bytes, offset)).collect()
    }

    #[test]
    fn fields_are_read_by_their_names() {
        assert_eq!(Field::parse(b"i64"), Some(Field { signed: true, width: 64 }));
        assert_eq!(Field::parse(b"u63"), Some(Field { signed: false, width: 63 }));
        for text in ["", "i", "u", "8", "i0", "u0", "u64", "i65", "x8", "I8", "i08", "u-1", "i 8"] {
            assert_eq!(Field::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn bit_zero_is_the_highest() {
        let mut bytes = [0, 0];
        assert!(!set(&mut bytes, 0, true) && !set(&mut bytes, 9, true) && set(&mut bytes, 9, true));
        assert_eq!(bytes, [0x80, 0x40]);
        assert!(!get(&bytes, 16) && !get(&bytes, u64::MAX));
    }

    proptest! {
        #[test]
        fn counting_and_searching_agree_with_single_bits(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 1..40),
                (1usize..60).prop_map(|length| vec![0xff; length]),
                (1usize..60).prop_map(|length| vec![0; length]),
            ],
            ends in any::<(prop::sample::Index, prop::sample::Index)>(),
            flipped in any::<prop::sample::Index>(),
        ) {
            let mut bytes = bytes;
            let all = bytes.len() * 8;
            let at = flipped.index(all) as u64;
            let before = get(&bytes, at);
            set(&mut bytes, at, !before);
            let (one, other) = (ends.0.index(all), ends.1.index(all));
            let (first, last) = (one.min(other), one.max(other));
            let bits = bits(&bytes);
            let ones = |bits: &[bool]| bits.iter().filter(|bit| **bit).count() as u64;
            prop_assert_eq!(count(&bytes), ones(&bits));
            let range = first as u64..=last as u64;
            prop_assert_eq!(count_range(&bytes, range.clone()), ones(&bits[first..=last]));
            for bit in [false, true] {
                let expected = (first..=last).find(|&at| bits[at] == bit).map(|at| at as u64);
                prop_assert_eq!(position(&bytes, bit, range.clone()), expected);
            }
        }

        #[test]
        fn combining_agrees_with_single_bits(
            strings in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..30), 1..5),
        ) {
            let strings: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
            let longest = strings.iter().map(|string| string.len()).max().unwrap_or(0);
            let not = combine(Operation::Not, &strings[..1]);
            prop_assert!(not.iter().zip(strings[0]).all(|(own, other)| *own == !other));
            let results = [Operation::And, Operation::Or, Operation::Xor]
                .map(|operation| combine(operation, &strings));
            for offset in 0..longest as u64 * 8 {
                let set = strings.iter().filter(|string| get(string, offset)).count();
                prop_assert_eq!(get(&results[0], offset), set == strings.len());
                prop_assert_eq!(get(&results[1], offset), set > 0);
                prop_assert_eq!(get(&results[2], offset), set % 2 == 1);
            }
            prop_assert!(results.iter().all(|result| result.len() == longest));
        }

        #[test]
        fn a_field_holds_what_fits_and_leaves_the_rest_alone(
            bytes in proptest::collection::vec(any::<u8>(), 20),
            offset in 0u64..90,
            signed: bool,
            width in 1u32..=63,
            number: i64,
            add: i64,
        ) {
            let field = Field { signed, width: width + u32::from(signed) };
            let exact = i128::from(number >> (number & 63)) + i128::from(add >> (add & 63));
            let modulus = 1i128 << field.width;
            let lowest = if signed { -(modulus / 2) } else { 0 };
            let fits = (lowest..lowest + modulus).contains(&exact);
            prop_assert_eq!(field.fit(exact, Overflow::Fail).is_some(), fits);
            let saturated = field.fit(exact, Overflow::Saturate).map(i128::from);
            prop_assert_eq!(saturated, Some(exact.clamp(lowest, lowest + modulus - 1)));
            let wrapped = field.fit(exact, Overflow::Wrap).expect("wrapping always fits");
            prop_assert_eq!((i128::from(wrapped) - exact).rem_euclid(modulus), 0);
            prop_assert!((lowest..lowest + modulus).contains(&i128::from(wrapped)));

            let mut written = bytes.clone();
            field.set(&mut written, offset, wrapped);
            prop_assert_eq!(field.get(&written, offset), wrapped);
            let inside = offset..offset + u64::from(field.width);
            for at in (0..160).filter(|at| !inside.contains(at)) {
                prop_assert_eq!(get(&written, at), get(&bytes, at));
            }
        }
    }
}
