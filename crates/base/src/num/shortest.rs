//! Doubles printed with few digits, the way Redis 8.0 does: by Grisu2.
//!
//! Grisu2 (Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with Integers", 2010)
//! finds digits that identify the number. In about one of a thousand cases they are not the fewest,
//! or not the closest of the fewest. An exact algorithm would print other digits there, and
//! replies, digests and files would differ from those of Redis; so the algorithm is the same one,
//! step by step.

/// Bits of a double's fraction.
const FRACTION_BITS: u32 = 52;
/// The bit that is not stored.
const HIDDEN: u64 = 1 << FRACTION_BITS;

/// A number as `fraction * 2^exponent`.
#[derive(Clone, Copy)]
struct Binary {
    fraction: u64,
    exponent: i32,
}

impl Binary {
    /// The product, rounded to 64 bits.
    fn times(self, other: Binary) -> Binary {
        let product = u128::from(self.fraction) * u128::from(other.fraction);
        Binary {
            fraction: ((product + (1 << 63)) >> 64) as u64,
            exponent: self.exponent + other.exponent + 64,
        }
    }

    /// The same number with the highest bit set.
    fn normalized(self) -> Binary {
        let shift = self.fraction.leading_zeros();
        Binary { fraction: self.fraction << shift, exponent: self.exponent - shift as i32 }
    }
}

/// Digits of a number, and the power of ten that they are multiplied with.
struct Digits {
    text: [u8; 20],
    count: usize,
    power: i32,
}

impl Digits {
    fn push(&mut self, digit: u64) {
        if digit != 0 || self.count != 0 {
            self.text[self.count] = b'0' + digit as u8;
            self.count += 1;
        }
    }

    /// Moves the last digit down towards the number, while that brings it closer and it stays
    /// within the distance `delta` of the upper bound. `rest` is the distance from the bound,
    /// `unit` one of the last digit, `target` how far the number is from the bound.
    fn round(&mut self, delta: u64, mut rest: u64, unit: u64, target: u64) {
        while rest < target
            && delta - rest >= unit
            && (rest + unit < target || target - rest > rest + unit - target)
        {
            self.text[self.count - 1] -= 1;
            rest += unit;
        }
    }
}

/// Appends `value`, which is finite, with few digits that identify it: whole as long as up to seven
/// zeros follow the digits, with decimals as long as few zeros precede them, else with an exponent.
pub(super) fn write(output: &mut Vec<u8>, value: f64) {
    if value.is_sign_negative() {
        output.push(b'-');
    }
    let magnitude = value.abs();
    if magnitude == 0.0 {
        output.push(b'0');
        return;
    }
    let digits = digits(magnitude);
    lay_out(output, &digits.text[..digits.count], digits.power);
}

fn lay_out(output: &mut Vec<u8>, digits: &[u8], power: i32) {
    let count = digits.len() as i32;
    let exponent = power + count - 1;
    if power >= 0 && exponent < count + 7 {
        output.extend_from_slice(digits);
        output.extend(std::iter::repeat_n(b'0', power as usize));
    } else if power < 0 && (power > -7 || exponent.abs() < 4) {
        if let Some(whole) = usize::try_from(count + power).ok().filter(|whole| *whole > 0) {
            output.extend_from_slice(&digits[..whole]);
            output.push(b'.');
            output.extend_from_slice(&digits[whole..]);
        } else {
            output.extend_from_slice(b"0.");
            output.extend(std::iter::repeat_n(b'0', (-power - count) as usize));
            output.extend_from_slice(digits);
        }
    } else {
        output.push(digits[0]);
        if digits.len() > 1 {
            output.push(b'.');
            output.extend_from_slice(&digits[1..]);
        }
        output.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        super::write_u64(output, u64::from(exponent.unsigned_abs()));
    }
}

/// The digits of a number that is positive and finite.
fn digits(value: f64) -> Digits {
    let bits = value.to_bits();
    let (fraction, biased) = (bits & (HIDDEN - 1), (bits >> FRACTION_BITS) as i32);
    let number = match biased {
        0 => Binary { fraction, exponent: -1074 },
        _ => Binary { fraction: fraction | HIDDEN, exponent: biased - 1075 },
    };
    // Half way to the next number up, and to the next one down, which is closer below a power of
    // two.
    let upper = Binary { fraction: number.fraction * 2 + 1, exponent: number.exponent - 1 };
    let upper = upper.normalized();
    let closer = if number.fraction == HIDDEN { 2 } else { 1 };
    let below = (number.fraction << closer) - 1;
    let lower = Binary {
        fraction: below << (number.exponent - closer - upper.exponent),
        exponent: upper.exponent,
    };
    let (scale, power) = scale_for(upper.exponent);
    let number = number.normalized().times(scale);
    // The products may be wrong by one: numbers between these are right in any case.
    let mut upper = upper.times(scale);
    upper.fraction -= 1;
    let lower = lower.times(scale).fraction + 1;
    generate(number.fraction, upper, lower, -power)
}

/// Digits of something between `lower` and `upper`, as close to `number` as Grisu2 comes.
fn generate(number: u64, upper: Binary, lower: u64, power: i32) -> Digits {
    let mut digits = Digits { text: [0; 20], count: 0, power };
    let target = upper.fraction - number;
    let mut delta = upper.fraction - lower;
    // Scaled so that 32 to 60 bits are after the point.
    let point = upper.exponent.unsigned_abs();
    let one = 1u64 << point;
    let mut whole = upper.fraction >> point;
    let mut part = upper.fraction & (one - 1);

    let mut unit = 1_000_000_000;
    for place in (0..10).rev() {
        digits.push(whole / unit);
        whole %= unit;
        let rest = (whole << point) + part;
        if rest <= delta {
            digits.power += place;
            digits.round(delta, rest, unit << point, target);
            return digits;
        }
        unit /= 10;
    }
    let mut target = target;
    let mut place = 0;
    loop {
        part *= 10;
        delta *= 10;
        target = target.wrapping_mul(10);
        place -= 1;
        digits.push(part >> point);
        part &= one - 1;
        if part < delta {
            digits.power += place;
            digits.round(delta, part, one, target);
            return digits;
        }
    }
}

/// The power of ten that brings a number of this binary exponent to one of -60 to -32, and its
/// decimal exponent.
fn scale_for(exponent: i32) -> (Binary, i32) {
    const LOG10_OF_2: f64 = 0.301_029_995_663_981_14;
    let guess = (f64::from(-(exponent + POWERS.len() as i32)) * LOG10_OF_2) as i32;
    let mut index = (guess - FIRST_POWER) / STEP;
    loop {
        let power = FIRST_POWER + index * STEP;
        let scale = Binary { fraction: POWERS[index as usize], exponent: binary_exponent(power) };
        match exponent + scale.exponent + 64 {
            ..-60 => index += 1,
            -60..=-32 => return (scale, power),
            _ => index -= 1,
        }
    }
}

/// Of 10^power as a fraction of 64 bits: that many bits less than its logarithm.
const fn binary_exponent(power: i32) -> i32 {
    // 1741647 / 2^19 is the logarithm of ten to base two, close enough for these powers.
    ((power * 1_741_647) >> 19) - 63
}

const FIRST_POWER: i32 = -348;
const STEP: i32 = 8;

/// 10^-348, 10^-340 and so on to 10^340: the first 64 bits, rounded.
#[rustfmt::skip]
const POWERS: [u64; 87] = [
    0xfa8f_d5a0_081c_0288, 0xbaae_e17f_a23e_bf76, 0x8b16_fb20_3055_ac76, 0xcf42_894a_5dce_35ea,
    0x9a6b_b0aa_5565_3b2d, 0xe61a_cf03_3d1a_45df, 0xab70_fe17_c79a_c6ca, 0xff77_b1fc_bebc_dc4f,
    0xbe56_91ef_416b_d60c, 0x8dd0_1fad_907f_fc3c, 0xd351_5c28_3155_9a83, 0x9d71_ac8f_ada6_c9b5,
    0xea9c_2277_23ee_8bcb, 0xaecc_4991_4078_536d, 0x823c_1279_5db6_ce57, 0xc210_9436_4dfb_5637,
    0x9096_ea6f_3848_984f, 0xd774_85cb_2582_3ac7, 0xa086_cfcd_97bf_97f4, 0xef34_0a98_172a_ace5,
    0xb238_67fb_2a35_b28e, 0x84c8_d4df_d2c6_3f3b, 0xc5dd_4427_1ad3_cdba, 0x936b_9fce_bb25_c996,
    0xdbac_6c24_7d62_a584, 0xa3ab_6658_0d5f_daf6, 0xf3e2_f893_dec3_f126, 0xb5b5_ada8_aaff_80b8,
    0x8762_5f05_6c7c_4a8b, 0xc9bc_ff60_34c1_3053, 0x964e_858c_91ba_2655, 0xdff9_7724_7029_7ebd,
    0xa6df_bd9f_b8e5_b88f, 0xf8a9_5fcf_8874_7d94, 0xb944_7093_8fa8_9bcf, 0x8a08_f0f8_bf0f_156b,
    0xcdb0_2555_6531_31b6, 0x993f_e2c6_d07b_7fac, 0xe45c_10c4_2a2b_3b06, 0xaa24_2499_6973_92d3,
    0xfd87_b5f2_8300_ca0e, 0xbce5_0864_9211_1aeb, 0x8cbc_cc09_6f50_88cc, 0xd1b7_1758_e219_652c,
    0x9c40_0000_0000_0000, 0xe8d4_a510_0000_0000, 0xad78_ebc5_ac62_0000, 0x813f_3978_f894_0984,
    0xc097_ce7b_c907_15b3, 0x8f7e_32ce_7bea_5c70, 0xd5d2_38a4_abe9_8068, 0x9f4f_2726_179a_2245,
    0xed63_a231_d4c4_fb27, 0xb0de_6538_8cc8_ada8, 0x83c7_088e_1aab_65db, 0xc45d_1df9_4271_1d9a,
    0x924d_692c_a61b_e758, 0xda01_ee64_1a70_8dea, 0xa26d_a399_9aef_774a, 0xf209_787b_b47d_6b85,
    0xb454_e4a1_79dd_1877, 0x865b_8692_5b9b_c5c2, 0xc835_53c5_c896_5d3d, 0x952a_b45c_fa97_a0b3,
    0xde46_9fbd_99a0_5fe3, 0xa59b_c234_db39_8c25, 0xf6c6_9a72_a398_9f5c, 0xb7dc_bf53_54e9_bece,
    0x88fc_f317_f222_41e2, 0xcc20_ce9b_d35c_78a5, 0x9816_5af3_7b21_53df, 0xe2a0_b5dc_971f_303a,
    0xa8d9_d153_5ce3_b396, 0xfb9b_7cd9_a4a7_443c, 0xbb76_4c4c_a7a4_4410, 0x8bab_8eef_b640_9c1a,
    0xd01f_ef10_a657_842c, 0x9b10_a4e5_e991_3129, 0xe710_9bfb_a19c_0c9d, 0xac28_20d9_623b_f429,
    0x8044_4b5e_7aa7_cf85, 0xbf21_e440_03ac_dd2d, 0x8e67_9c2f_5e44_ff8f, 0xd433_179d_9c8c_b841,
    0x9e19_db92_b4e3_1ba9, 0xeb96_bf6e_badf_77d9, 0xaf87_023b_9bf0_ee6b,
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(value: f64) -> String {
        let mut output = Vec::new();
        write(&mut output, value);
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn digits_are_those_of_the_reference() {
        // As Redis 8.0 answers ZSCORE. The first three are not the closest of the shortest.
        let cases = [
            (-1_039_514_241_563_211.8, "-1039514241563211.7"),
            (-3.131_670_971_615_857_7e78, "-3.1316709716158578e+78"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e-5, "0.00001"),
            (1e-7, "1e-7"),
            (1.5e-7, "1.5e-7"),
            (1e23, "99999999999999990000000"),
            (-4.606_348_609_474_027e22, "-46063486094740270000000"),
            (1e20, "1e+20"),
            (1.5e300, "1.5e+300"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (-0.0, "-0"),
        ];
        for (value, expected) in cases {
            assert_eq!(printed(value), expected);
        }
    }

    proptest! {
        #[test]
        fn digits_identify_the_number(bits: u64) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let text = printed(value);
                prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(bits), "{}", text);
            }
        }
    }
}
