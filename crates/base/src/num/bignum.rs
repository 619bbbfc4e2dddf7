//! An unsigned integer of any size, with the few operations that exact decimal conversion needs.
//!
//! Only numbers beyond 128 bits come here (1e300, or hundreds of digits), so plain schoolbook loops
//! over 64-bit limbs serve. All inputs are bounded by the callers: some 35 000 bits at most.

use std::cmp::Ordering;

/// Limbs in little-endian order; the last one is never zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bignum {
    limbs: Vec<u64>,
}

/// The largest power of ten in a limb, and its exponent.
const TEN_POWER: (u64, usize) = (10_000_000_000_000_000_000, 19);
/// The largest power of five in a limb, and its exponent.
const FIVE_POWER: (u64, u32) = (5u64.pow(27), 27);

impl Bignum {
    pub(super) fn from_u64(value: u64) -> Self {
        Bignum { limbs: if value == 0 { Vec::new() } else { vec![value] } }
    }

    /// The number whose decimal digits (ASCII, checked by the caller) are given.
    pub(super) fn from_digits(digits: impl Iterator<Item = u8>) -> Self {
        let mut number = Bignum::from_u64(0);
        let (mut pending, mut scale) = (0u64, 1u64);
        for digit in digits {
            pending = pending * 10 + u64::from(digit - b'0');
            scale *= 10;
            if scale == TEN_POWER.0 {
                number.mul_add(scale, pending);
                (pending, scale) = (0, 1);
            }
        }
        number.mul_add(scale, pending);
        number
    }

    pub(super) fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    /// Position of the highest set bit plus one.
    pub(super) fn bits(&self) -> usize {
        self.limbs.last().map_or(0, |top| self.limbs.len() * 64 - top.leading_zeros() as usize)
    }

    /// Multiplies by `factor` (not zero), then adds `term`.
    fn mul_add(&mut self, factor: u64, term: u64) {
        let mut carry = u128::from(term);
        for limb in &mut self.limbs {
            let product = u128::from(*limb) * u128::from(factor) + carry;
            *limb = product as u64;
            carry = product >> 64;
        }
        if carry > 0 {
            self.limbs.push(carry as u64);
        }
    }

    pub(super) fn mul_power_of_five(&mut self, exponent: u32) {
        for _ in 0..exponent / FIVE_POWER.1 {
            self.mul_add(FIVE_POWER.0, 0);
        }
        self.mul_add(5u64.pow(exponent % FIVE_POWER.1), 0);
    }

    pub(super) fn shift_left(&mut self, bits: usize) {
        if self.is_zero() {
            return;
        }
        let within = bits % 64;
        if within > 0 {
            self.mul_add(1 << within, 0);
        }
        self.limbs.splice(0..0, std::iter::repeat_n(0, bits / 64));
    }

    /// The highest 128 bits (fewer if the number is shorter), how far they are shifted to the
    /// right, and whether any bit below them is set.
    pub(super) fn top(&self) -> (u128, usize, bool) {
        let shift = self.bits().saturating_sub(128);
        let (first, within) = (shift / 64, shift % 64);
        let limb = |index: usize| u128::from(self.limbs.get(index).copied().unwrap_or(0));
        let mut top = limb(first) >> within | limb(first + 1) << (64 - within);
        if within > 0 {
            top |= limb(first + 2) << (128 - within);
        }
        let below = self.limbs.iter().take(first).any(|&limb| limb != 0)
            || limb(first) & ((1u128 << within) - 1) != 0;
        (top, shift, below)
    }

    /// Subtracts `other`, which must not be larger.
    fn subtract(&mut self, other: &Bignum) {
        let mut borrow = false;
        for (index, limb) in self.limbs.iter_mut().enumerate() {
            let term = other.limbs.get(index).copied().unwrap_or(0);
            let (difference, first) = limb.overflowing_sub(term);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            *limb = difference;
            borrow = first || second;
        }
        debug_assert!(!borrow, "the subtrahend is larger");
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }

    /// `self / divisor` (neither zero) to at least 66 significant bits: the quotient, its binary
    /// exponent, and whether a remainder is left.
    pub(super) fn divide(mut self, mut divisor: Bignum) -> (u128, i32, bool) {
        const QUOTIENT_BITS: i32 = 67;
        let (own, others) = (self.bits(), divisor.bits());
        if own < others {
            self.shift_left(others - own);
        } else {
            divisor.shift_left(own - others);
        }
        let mut quotient = 0u128;
        for _ in 0..QUOTIENT_BITS {
            quotient <<= 1;
            if self.cmp(&divisor) != Ordering::Less {
                self.subtract(&divisor);
                quotient |= 1;
            }
            self.shift_left(1);
        }
        (quotient, own as i32 - others as i32 - (QUOTIENT_BITS - 1), !self.is_zero())
    }

    /// Appends the decimal digits.
    pub(super) fn write(mut self, output: &mut Vec<u8>) {
        let mut groups = Vec::new();
        while !self.is_zero() {
            let mut remainder = 0u128;
            for limb in self.limbs.iter_mut().rev() {
                let dividend = remainder << 64 | u128::from(*limb);
                *limb = (dividend / u128::from(TEN_POWER.0)) as u64;
                remainder = dividend % u128::from(TEN_POWER.0);
            }
            while self.limbs.last() == Some(&0) {
                self.limbs.pop();
            }
            groups.push(remainder as u64);
        }
        super::write_u64(output, groups.pop().unwrap_or(0));
        for group in groups.into_iter().rev() {
            let mut buffer = itoa::Buffer::new();
            let digits = buffer.format(group);
            output.extend(std::iter::repeat_n(b'0', TEN_POWER.1 - digits.len()));
            output.extend_from_slice(digits.as_bytes());
        }
    }
}

impl Bignum {
    fn cmp(&self, other: &Bignum) -> Ordering {
        let lengths = self.limbs.len().cmp(&other.limbs.len());
        lengths.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(number: Bignum) -> String {
        let mut output = Vec::new();
        number.write(&mut output);
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn zero_and_powers_of_ten_are_printed() {
        assert_eq!(text(Bignum::from_u64(0)), "0");
        let mut power = Bignum::from_u64(1);
        power.mul_power_of_five(60);
        power.shift_left(60);
        assert_eq!(text(power), format!("1{}", "0".repeat(60)));
    }

    proptest! {
        #[test]
        fn digits_come_back(digits in "[1-9][0-9]{0,200}") {
            prop_assert_eq!(text(Bignum::from_digits(digits.bytes())), digits);
        }

        #[test]
        fn top_is_the_number_shifted(value in 1u128.., shift in 0usize..300, tail in 0u64..2) {
            let mut number = Bignum::from_digits(value.to_string().bytes());
            number.shift_left(shift + 1);
            number.mul_add(1, tail);
            let (top, right, below) = number.top();
            let expected_right = (value.ilog2() as usize + shift + 2).saturating_sub(128);
            prop_assert_eq!(right, expected_right);
            if right > 0 {
                prop_assert_eq!(top, value << value.leading_zeros());
            }
            prop_assert_eq!(below, right > 0 && tail > 0);
        }

        #[test]
        fn quotients_are_exact(dividend in 1u64.., divisor in 1u64..) {
            let (quotient, exponent, inexact) =
                Bignum::from_u64(dividend).divide(Bignum::from_u64(divisor));
            // dividend * 2^-exponent = quotient * divisor + remainder; the exponent lies in
            // -130..0.
            let mut left = Bignum::from_u64(dividend);
            left.shift_left((-exponent) as usize);
            let mut right = Bignum::from_digits(quotient.to_string().bytes());
            right.mul_add(divisor, 0);
            prop_assert!(right.cmp(&left) != Ordering::Greater);
            left.subtract(&right);
            prop_assert_eq!(!left.is_zero(), inexact);
            prop_assert!(left.cmp(&Bignum::from_u64(divisor)) == Ordering::Less);
            prop_assert!(quotient >> 65 != 0);
        }
    }
}
