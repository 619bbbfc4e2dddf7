//! Whether two targets differ in a figure, or only by chance.
//!
//! Repetitions are interleaved: run k of one target and run k of the other meet the machine in the
//! same state. Each such pair gives a ratio, and its logarithm treats "twice" and "half" alike.
//! Student's t gives a confidence interval for the mean of the logarithms. Two targets differ where
//! the 95 % interval leaves out a ratio of 1, and where the ratio is large enough to matter.

use super::Summary;

/// A smaller difference is a tie, however well figures repeat: a machine that was started again, or
/// a binary that was linked in another order, moves them as much.
pub const LEAST_SHARE: f64 = 0.05;
/// The same where a side has fewer than [`ENOUGH_RUNS`] runs, so that nobody knows how well its
/// figures repeat.
pub const FEW_RUNS_SHARE: f64 = 0.15;
/// Two runs lie close together by luck every other time: an interval takes at least this many.
pub const ENOUGH_RUNS: usize = 3;

/// How a figure lies to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Chance explains what lies between them, or it is too little to matter.
    Tie,
    /// It is larger.
    Higher,
    /// It is smaller.
    Lower,
}

/// A figure of one side beside the same figure of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// Whether they differ.
    pub difference: Difference,
    /// The first as a multiple of the second; none when the second is zero.
    pub ratio: Option<f64>,
}

/// A figure of one run, with the number of the repetition.
pub type Observation = (u32, f64);

impl Contrast {
    /// Compares two targets of one experiment at one point of its matrix. Their runs are pairs
    /// where both have one; where fewer than [`ENOUGH_RUNS`] pairs are left, since other runs do
    /// not count, they are compared as [`Contrast::unpaired`] does. None when one side has no run.
    pub fn paired(own: &[Observation], other: &[Observation]) -> Option<Contrast> {
        let partner = |repetition: u32| other.iter().find(|(number, _)| *number == repetition);
        let pairs: Vec<(f64, f64)> = own
            .iter()
            .filter_map(|(repetition, value)| Some((*value, partner(*repetition)?.1)))
            .collect();
        let is_complete = pairs.len() == own.len() && pairs.len() == other.len();
        if pairs.is_empty() || (pairs.len() < ENOUGH_RUNS && !is_complete) {
            let values = |side: &[Observation]| side.iter().map(|(_, value)| *value).collect();
            let (own, other): (Vec<f64>, Vec<f64>) = (values(own), values(other));
            return Contrast::unpaired(&own, &other);
        }
        if pairs.iter().any(|(own, other)| !has_logarithm(*own) || !has_logarithm(*other)) {
            return by_range(pairs.iter().map(|pair| pair.0), pairs.iter().map(|pair| pair.1));
        }
        let logs: Vec<f64> = pairs.iter().map(|(own, other)| (own / other).ln()).collect();
        let Summary { median, low, high, count } = Summary::of(logs.iter().copied())?;
        let is_certain = if count < ENOUGH_RUNS {
            // Nobody knows the noise: that all pairs agree is the least to ask for.
            low > 0.0 || high < 0.0
        } else {
            let (mean, variance) = mean_and_variance(&logs);
            let error = (variance / count as f64).sqrt();
            excludes_zero(mean, error, (count - 1) as f64)
        };
        Some(judged(median.exp(), is_certain, count))
    }

    /// Compares runs that nothing pairs, such as those of two results files, by Welch's t on their
    /// logarithms. None when one side has no run.
    pub fn unpaired(own: &[f64], other: &[f64]) -> Option<Contrast> {
        if own.iter().chain(other).any(|value| !has_logarithm(*value)) {
            return by_range(own.iter().copied(), other.iter().copied());
        }
        let logs = |side: &[f64]| side.iter().map(|value| value.ln()).collect::<Vec<f64>>();
        let (own, other) = (logs(own), logs(other));
        let own_summary = Summary::of(own.iter().copied())?;
        let other_summary = Summary::of(other.iter().copied())?;
        let count = own.len().min(other.len());
        let is_certain = if count < ENOUGH_RUNS {
            own_summary.low > other_summary.high || own_summary.high < other_summary.low
        } else {
            let ((own_mean, own_variance), (other_mean, other_variance)) =
                (mean_and_variance(&own), mean_and_variance(&other));
            let (own_share, other_share) =
                (own_variance / own.len() as f64, other_variance / other.len() as f64);
            let sum = own_share + other_share;
            // Welch and Satterthwaite: the noisier side decides how much is known.
            let freedom = sum * sum
                / (own_share * own_share / (own.len() - 1) as f64
                    + other_share * other_share / (other.len() - 1) as f64);
            // Without any spread there is nothing to divide by, and nothing in doubt.
            let freedom = if freedom.is_finite() { freedom } else { f64::INFINITY };
            excludes_zero(own_mean - other_mean, sum.sqrt(), freedom)
        };
        let ratio = (own_summary.median - other_summary.median).exp();
        Some(judged(ratio, is_certain, count))
    }
}

/// The least difference that counts, between sides of which the smaller has this many runs.
pub(crate) fn least_share(count: usize) -> f64 {
    if count < ENOUGH_RUNS { FEW_RUNS_SHARE } else { LEAST_SHARE }
}

fn judged(ratio: f64, is_certain: bool, count: usize) -> Contrast {
    let difference = match ratio - 1.0 {
        share if !is_certain || share.abs() <= least_share(count) => Difference::Tie,
        share if share > 0.0 => Difference::Higher,
        _ => Difference::Lower,
    };
    Contrast { difference, ratio: Some(ratio) }
}

fn has_logarithm(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// What has no logarithm, since something is zero: medians differ when they are further apart than
/// the figures of either side lie among themselves, and by the least share.
fn by_range(own: impl Iterator<Item = f64>, other: impl Iterator<Item = f64>) -> Option<Contrast> {
    let (own, other) = (Summary::of(own)?, Summary::of(other)?);
    let gap = own.median - other.median;
    let least = least_share(own.count.min(other.count)) * other.median.abs();
    let difference = if gap.abs() <= own.spread().max(other.spread()).max(least) {
        Difference::Tie
    } else if gap > 0.0 {
        Difference::Higher
    } else {
        Difference::Lower
    };
    Some(Contrast { difference, ratio: own.ratio(&other) })
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (count - 1.0))
}

/// Whether the 95 % confidence interval of a mean leaves out zero.
fn excludes_zero(mean: f64, standard_error: f64, freedom: f64) -> bool {
    mean.abs() > student_t(freedom) * standard_error
}

/// Student's t that 97.5 % of values lie below, by degrees of freedom from 1 on.
const STUDENT_T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Degrees in between, and those beyond the table, count as the next lower ones in it: the interval
/// is then a little too wide.
fn student_t(freedom: f64) -> f64 {
    let last = STUDENT_T.len() as f64;
    STUDENT_T[freedom.clamp(1.0, last) as usize - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;

    fn runs(values: &[f64]) -> Vec<Observation> {
        (0..).zip(values.iter().copied()).collect()
    }

    fn paired(own: &[f64], other: &[f64]) -> Difference {
        Contrast::paired(&runs(own), &runs(other)).expect("both have runs").difference
    }

    fn unpaired(own: &[f64], other: &[f64]) -> Difference {
        Contrast::unpaired(own, other).expect("both have runs").difference
    }

    #[test]
    fn pairs_see_through_what_moves_both() {
        // The machine slows down by half meanwhile, and one target takes 0.6 of the other's time.
        let other = [16.0, 20.0, 24.0, 18.0, 22.0];
        let own = [9.9, 11.8, 14.2, 11.0, 13.1];
        let contrast = Contrast::paired(&runs(&own), &runs(&other)).expect("both have runs");
        assert_eq!(contrast.difference, Difference::Lower);
        assert!((contrast.ratio.expect("not zero") - 0.595).abs() < 0.01, "{contrast:?}");
        assert_eq!(paired(&other, &own), Difference::Higher);
        // Sorted differently, the ranges overlap and nothing can be said of so few runs.
        let shifted = [16.0, 24.0, 9.0, 30.0, 12.0];
        assert_eq!(paired(&shifted, &other), Difference::Tie);
    }

    #[test]
    fn heavy_overlap_is_a_tie() {
        let one = [100.0, 130.0, 90.0, 120.0, 110.0];
        let two = [125.0, 95.0, 115.0, 105.0, 100.0];
        assert_eq!(paired(&one, &two), Difference::Tie);
        assert_eq!(unpaired(&one, &two), Difference::Tie);
        // One wild run of five widens the interval far beyond the ratio.
        let wild = [112.0, 111.0, 113.0, 300.0, 110.0];
        assert_eq!(paired(&wild, &[100.0; 5]), Difference::Tie);
    }

    #[test]
    fn a_known_sample_is_judged_as_by_hand() {
        // Log ratios 0.10, 0.20, 0.30: mean 0.2, standard error 0.0577, t(2) 4.303: 0.2 < 0.248.
        let ratios = [0.10f64, 0.20, 0.30].map(f64::exp);
        assert_eq!(paired(&ratios, &[1.0; 3]), Difference::Tie);
        // 0.15, 0.20, 0.25: standard error 0.0289, 0.2 > 0.124.
        let ratios = [0.15f64, 0.20, 0.25].map(f64::exp);
        assert_eq!(paired(&ratios, &[1.0; 3]), Difference::Higher);
        // Welch: means 0.2 apart, variances 0.01 and 0.0025 of five each, 5.88 degrees of freedom
        // that count as 5: 0.2 > 2.571 * 0.05.
        let spread = |middle: f64, step: f64| {
            [-1.264_911, -0.632_456, 0.0, 0.632_456, 1.264_911]
                .map(|place: f64| (middle + place * step).exp())
        };
        assert_eq!(unpaired(&spread(0.2, 0.1), &spread(0.0, 0.05)), Difference::Higher);
        assert_eq!(unpaired(&spread(0.12, 0.1), &spread(0.0, 0.05)), Difference::Tie);
    }

    #[test]
    fn a_small_difference_is_a_tie_however_well_it_repeats() {
        for judge in [paired, unpaired] {
            assert_eq!(judge(&[104.9; 3], &[100.0; 3]), Difference::Tie);
            assert_eq!(judge(&[105.1; 3], &[100.0; 3]), Difference::Higher);
            assert_eq!(judge(&[94.0; 3], &[100.0; 3]), Difference::Lower);
        }
    }

    #[test]
    fn few_runs_must_differ_by_more_and_agree() {
        for judge in [paired, unpaired] {
            assert_eq!(judge(&[114.0], &[100.0]), Difference::Tie);
            assert_eq!(judge(&[116.0], &[100.0]), Difference::Higher);
            assert_eq!(judge(&[86.0, 86.0], &[100.0, 100.0]), Difference::Tie);
            assert_eq!(judge(&[70.0, 80.0], &[100.0, 100.0]), Difference::Lower);
            assert_eq!(judge(&[150.0, 90.0], &[100.0, 100.0]), Difference::Tie);
        }
        // Two that happen to be the same say little more than one.
        assert_eq!(unpaired(&[110.0, 110.0], &[100.0; 3]), Difference::Tie);
        assert_eq!(unpaired(&[110.0; 3], &[100.0; 3]), Difference::Higher);
    }

    #[test]
    fn runs_without_a_partner_are_left_out_while_enough_pairs_remain() {
        // Run 2 of the second did not count. Beside their partners, all are twice as large.
        let own = runs(&[20.0, 40.0, 1.0, 60.0, 80.0]);
        let other: Vec<Observation> = vec![(0, 10.0), (1, 20.0), (3, 30.0), (4, 40.0)];
        let contrast = Contrast::paired(&own, &other).expect("both have runs");
        assert_eq!(contrast, Contrast { difference: Difference::Higher, ratio: Some(2.0) });
        // With one pair left, all runs of both count.
        let other = vec![(0, 10.0), (7, 10.1), (8, 9.9)];
        let own = vec![(0, 20.0), (2, 20.1), (3, 19.9)];
        let contrast = Contrast::paired(&own, &other).expect("both have runs");
        assert_eq!(contrast.difference, Difference::Higher);
        assert_eq!(Contrast::paired(&own, &[]), None);
    }

    #[test]
    fn what_has_no_logarithm_is_compared_by_range() {
        for judge in [paired, unpaired] {
            assert_eq!(judge(&[0.0, 0.0], &[0.0, 0.0]), Difference::Tie);
            assert_eq!(judge(&[3.0, 3.0], &[0.0, 0.0]), Difference::Higher);
            assert_eq!(judge(&[0.0, 8.0, 2.0], &[0.0, 0.0, 0.0]), Difference::Tie);
        }
        let contrast = Contrast::unpaired(&[3.0], &[0.0]).expect("both have a run");
        assert_eq!(contrast.ratio, None);
    }

    #[test]
    fn t_is_that_of_the_tables() {
        assert_eq!(student_t(4.0), 2.776);
        assert_eq!(student_t(4.9), 2.776);
        assert_eq!(student_t(1e9), 2.042);
        assert_eq!(student_t(f64::INFINITY), 2.042);
    }

    /// A normal number: the sum of twelve uniform ones, less six.
    fn normal(random: &mut Rng) -> f64 {
        let unit = |random: &mut Rng| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        (0..12).map(|_| unit(random)).sum::<f64>() - 6.0
    }

    /// How often of a thousand two targets are called different, of which one takes `ratio` times
    /// what the other does: five runs each, on a machine whose mood moves both by a fifth, with a
    /// tenth of noise in each run.
    fn called_different(ratio: f64, judge: impl Fn(&[f64], &[f64]) -> Difference) -> usize {
        let mut random = Rng::from_seed(4711);
        (0..1000)
            .filter(|_| {
                let mut sides = (Vec::new(), Vec::new());
                for _ in 0..5 {
                    let mood = 0.2 * normal(&mut random);
                    sides.0.push((mood + ratio.ln() + 0.1 * normal(&mut random)).exp());
                    sides.1.push((mood + 0.1 * normal(&mut random)).exp());
                }
                judge(&sides.0, &sides.1) != Difference::Tie
            })
            .count()
    }

    #[test]
    fn equal_targets_are_rarely_called_different_and_unequal_ones_mostly() {
        for (name, most, equal) in [
            ("paired", 60, called_different(1.0, paired)),
            ("unpaired", 60, called_different(1.0, unpaired)),
        ] {
            assert!(equal <= most, "{name}: {equal} of 1000 equal ones");
        }
        let (seen, blind) = (called_different(0.7, paired), called_different(0.7, unpaired));
        assert!(seen > 900, "{seen} of 1000 that take 0.7 of the time");
        assert!(blind < seen, "the machine's mood hides {blind}, and pairs see {seen}");
    }
}
