//! Random choices: which operation, which size, which key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::rng::Rng;

use super::Keys;

/// Chooses indices in proportion to weights.
#[derive(Clone, Debug)]
pub(crate) struct Weighted {
    /// The sum of the weights up to each index, this included; the last is the sum of all.
    sums: Vec<f64>,
}

impl Weighted {
    /// Weights that are not above 0 are never chosen.
    pub(crate) fn new(weights: impl Iterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let sums = weights
            .map(|weight| {
                sum += weight.max(0.0);
                sum
            })
            .collect();
        Weighted { sums }
    }

    #[inline]
    pub(crate) fn choose(&self, random: &mut Rng) -> usize {
        let [.., total] = &self.sums[..] else { return 0 };
        if self.sums.len() == 1 {
            return 0;
        }
        let point = random.f64() * total;
        self.sums.partition_point(|sum| *sum <= point).min(self.sums.len() - 1)
    }
}

/// Chooses numbers of keys, from 0.
#[derive(Clone, Debug)]
pub(crate) enum KeyChooser {
    Literal,
    Uniform(u64),
    Zipf(Zipf),
    Hot {
        count: u64,
        hot: u64,
        share: f64,
    },
    /// The next is taken by whichever thread asks first, so that none is left out.
    Sequential {
        next: Arc<AtomicU64>,
        count: u64,
    },
}

impl KeyChooser {
    /// A chooser; those with the same `sequence` share it out among them.
    pub(crate) fn new(keys: &Keys, sequence: &Arc<AtomicU64>) -> Self {
        match *keys {
            Keys::Literal => KeyChooser::Literal,
            Keys::Uniform { count } => KeyChooser::Uniform(count),
            Keys::Zipf { count, exponent } => KeyChooser::Zipf(Zipf::new(count, exponent)),
            Keys::Hot { count, hot, share } => KeyChooser::Hot { count, hot, share },
            Keys::Sequential { count } => {
                KeyChooser::Sequential { next: Arc::clone(sequence), count }
            }
        }
    }

    #[inline]
    pub(crate) fn choose(&mut self, random: &mut Rng) -> u64 {
        match self {
            KeyChooser::Literal => 0,
            KeyChooser::Uniform(count) => random.below(*count),
            KeyChooser::Zipf(zipf) => zipf.choose(random),
            KeyChooser::Hot { count, hot, share } => {
                if random.f64() < *share {
                    random.below(*hot)
                } else {
                    *hot + random.below(*count - *hot)
                }
            }
            KeyChooser::Sequential { next, count } => next.fetch_add(1, Ordering::Relaxed) % *count,
        }
    }
}

/// Zipf's law by rejection-inversion (Hoermann and Derflinger, 1996): constant time and memory for
/// any number of keys and any exponent. The area under x^-exponent is sampled by its inverse, and
/// the rare points that lie between the curve and the steps of the law are drawn again.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    count: u64,
    exponent: f64,
    /// The area up to the left edge of the first step.
    first: f64,
    /// The area up to the right edge of the last step.
    last: f64,
    /// Points this close to the left of their step need no look.
    sure: f64,
}

impl Zipf {
    pub(crate) fn new(count: u64, exponent: f64) -> Self {
        let mut zipf = Zipf { count, exponent, first: 0.0, last: 0.0, sure: 0.0 };
        zipf.first = zipf.area(1.5) - 1.0;
        zipf.last = zipf.area(count as f64 + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    /// The number of a key: 0 is the most popular.
    #[inline]
    pub(crate) fn choose(&self, random: &mut Rng) -> u64 {
        loop {
            let area = self.last + random.f64() * (self.first - self.last);
            let point = self.inverse(area);
            let rank = point.round().clamp(1.0, self.count as f64);
            if rank - point <= self.sure || area >= self.area(rank + 0.5) - self.height(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn height(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The area under the curve from 1 to `x`.
    fn area(&self, x: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 { x.ln() } else { (power * x.ln()).exp_m1() / power }
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 {
            area.exp()
        } else {
            ((area * power).max(-1.0).ln_1p() / power).exp()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far counts are from their expectations, relative to what chance would do: about 1.
    fn chi_square(counts: &[u64], expected: &[f64]) -> f64 {
        let sum: f64 = counts.iter().zip(expected).map(|(&c, e)| (c as f64 - e).powi(2) / e).sum();
        sum / (counts.len() as f64 - 1.0)
    }

    #[test]
    fn zipf_follows_its_law() {
        const DRAWS: u64 = 200_000;
        for exponent in [0.0, 0.6, 0.99, 1.0, 1.2, 2.0] {
            let mut chooser = KeyChooser::new(&Keys::Zipf { count: 50, exponent }, &Arc::default());
            let mut random = Rng::from_seed(7);
            let mut counts = [0u64; 50];
            for _ in 0..DRAWS {
                counts[chooser.choose(&mut random) as usize] += 1;
            }
            let heights: Vec<f64> = (1..=50).map(|k| f64::from(k).powf(-exponent)).collect();
            let sum: f64 = heights.iter().sum();
            let expected: Vec<f64> = heights.iter().map(|h| h / sum * DRAWS as f64).collect();
            let deviation = chi_square(&counts, &expected);
            assert!(deviation < 1.7, "exponent {exponent}: {deviation}");
        }
    }

    #[test]
    fn zipf_of_one_key_and_of_many_stays_in_bounds() {
        let mut random = Rng::from_seed(1);
        assert_eq!(Zipf::new(1, 1.0).choose(&mut random), 0);
        let many = Zipf::new(100_000_000_000, 0.8);
        assert!((0..10_000).all(|_| many.choose(&mut random) < 100_000_000_000));
    }

    #[test]
    fn hot_keys_get_their_share() {
        let keys = Keys::Hot { count: 1000, hot: 10, share: 0.9 };
        let mut chooser = KeyChooser::new(&keys, &Arc::default());
        let mut random = Rng::from_seed(3);
        let mut counts = [0u64; 2];
        for _ in 0..100_000 {
            let key = chooser.choose(&mut random);
            assert!(key < 1000);
            counts[usize::from(key >= 10)] += 1;
        }
        assert!(chi_square(&counts, &[90_000.0, 10_000.0]) < 6.0, "{counts:?}");
    }

    #[test]
    fn threads_share_out_a_sequence() {
        let (mut seen, sequence) = (Vec::new(), Arc::default());
        // However unevenly they draw.
        for draws in [1, 6, 2] {
            let mut chooser = KeyChooser::new(&Keys::Sequential { count: 9 }, &sequence);
            let mut random = Rng::from_seed(1);
            seen.extend((0..draws).map(|_| chooser.choose(&mut random)));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn weights_are_kept() {
        let weighted = Weighted::new([80.0, 0.0, 20.0].into_iter());
        let mut random = Rng::from_seed(5);
        let mut counts = [0u64; 3];
        for _ in 0..100_000 {
            counts[weighted.choose(&mut random)] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!(chi_square(&[counts[0], counts[2]], &[80_000.0, 20_000.0]) < 6.0, "{counts:?}");
    }
}
