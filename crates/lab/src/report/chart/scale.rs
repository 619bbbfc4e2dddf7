//! Scales: where a value lies along an axis, and which round values deserve a tick.

use crate::report::number;
use crate::results::Unit;

/// How values are spread along an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    /// Evenly, from one bound to the other.
    Linear {
        /// The value at the beginning.
        low: f64,
        /// The value at the end.
        high: f64,
    },
    /// By ratio: each factor of ten takes the same length.
    Log {
        /// The value at the beginning, above zero.
        low: f64,
        /// The value at the end.
        high: f64,
    },
    /// Shares of requests, by how rare the rest is: 0.9, 0.99 and 0.999 lie one step apart.
    Rarity {
        /// The largest share that is shown.
        high: f64,
    },
}

/// A labelled place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The value.
    pub(crate) value: f64,
    /// What is written there.
    pub(crate) label: String,
}

impl Scale {
    /// From zero to a round value above `high`, for figures whose length must not mislead.
    pub(crate) fn from_zero(high: f64, unit: Unit) -> Scale {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        let step = step(high / 4.0, unit);
        Scale::Linear { low: 0.0, high: (high / step - 1e-9).ceil() * step }
    }

    /// By ratio, between the round values (1, 2, 5) around all positive ones.
    pub(crate) fn log(values: impl IntoIterator<Item = f64>) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for value in values.into_iter().filter(|value| value.is_finite() && *value > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        if high <= 0.0 {
            return Scale::Log { low: 0.1, high: 1.0 };
        }
        let (low, mut high) = (round_down(low), round_up(high));
        if high <= low {
            high = low * 10.0;
        }
        Scale::Log { low, high }
    }

    /// The scale for the values of a swept parameter: by ratio when they span a wide range.
    pub(crate) fn swept(values: &[f64]) -> Scale {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !low.is_finite() || !high.is_finite() || low == high {
            let middle = if low.is_finite() { low } else { 0.0 };
            Scale::Linear { low: middle - 1.0, high: middle + 1.0 }
        } else if low > 0.0 && high / low > 6.0 {
            Scale::Log { low, high }
        } else {
            Scale::Linear { low, high }
        }
    }

    /// Where a value lies, 0 at the beginning and 1 at the end; beyond for values out of bounds.
    pub(crate) fn place(&self, value: f64) -> f64 {
        match *self {
            Scale::Linear { low, high } => (value - low) / (high - low),
            Scale::Log { low, high } => (value.max(low / 10.0) / low).ln() / (high / low).ln(),
            Scale::Rarity { high } => rarity(value.min(high)) / rarity(high),
        }
    }

    /// Round values within the scale, at most about `count` of them.
    pub(crate) fn ticks(&self, unit: Unit, count: usize) -> Vec<Tick> {
        let values: Vec<f64> = match *self {
            Scale::Linear { low, high } => {
                let step = step((high - low) / count.max(1) as f64, unit);
                let first = (low / step - 1e-9).ceil() as i64;
                let last = (high / step + 1e-9).floor() as i64;
                // Bounds beyond all measure have no round numbers between them.
                let last = if last.saturating_sub(first) > 50 { first } else { last };
                (first..=last).map(|index| index as f64 * step).collect()
            }
            Scale::Log { low, high } => log_ticks(low, high, count),
            Scale::Rarity { high } => {
                return [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999]
                    .into_iter()
                    .filter(|share| *share <= high + 1e-12)
                    .map(|share| Tick { value: share, label: percent(share) })
                    .collect();
            }
        };
        let label = |value| Tick { value, label: number::tick(unit, value) };
        values.into_iter().map(label).collect()
    }
}

/// The number of nines, with fractions: 1 for 0.9, 2 for 0.99.
fn rarity(share: f64) -> f64 {
    -(1.0 - share).log10()
}

fn percent(share: f64) -> String {
    let text = format!("{:.3}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The smallest round number (1, 2, 5 and their tenfolds; powers of two for bytes) that is not
/// below `least`. Things that are counted have no fractions.
fn step(least: f64, unit: Unit) -> f64 {
    if !least.is_finite() || least <= 0.0 {
        return 1.0;
    }
    if unit == Unit::Bytes {
        return least.log2().ceil().exp2();
    }
    let step = round_up(least);
    if unit == Unit::Count { step.max(1.0) } else { step }
}

fn round_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    for factor in [1.0, 2.0, 5.0] {
        if value <= factor * decade * (1.0 + 1e-9) {
            return factor * decade;
        }
    }
    10.0 * decade
}

fn round_down(value: f64) -> f64 {
    let decade = 10f64.powf((value * (1.0 + 1e-9)).log10().floor());
    for factor in [5.0, 2.0] {
        if value >= factor * decade * (1.0 - 1e-9) {
            return factor * decade;
        }
    }
    decade
}

/// 1, 2, 5 in every decade when they fit, else decades, else every second decade.
fn log_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let within = |value: &f64| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9);
    let of = |factors: &[f64], every: usize| -> Vec<f64> {
        (first..=last)
            .step_by(every)
            .flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)))
            .filter(within)
            .collect()
    };
    let mut ticks = of(&[1.0, 2.0, 5.0], 1);
    if ticks.len() > count {
        ticks = of(&[1.0], 1);
    }
    let mut every = 2;
    while ticks.len() > count {
        ticks = of(&[1.0], every);
        every += 1;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale, unit: Unit, count: usize) -> Vec<String> {
        scale.ticks(unit, count).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let scale = Scale::from_zero(183_000.0, Unit::PerSecond);
        assert_eq!(scale, Scale::Linear { low: 0.0, high: 200_000.0 });
        assert_eq!(labels(&scale, Unit::PerSecond, 4), ["0", "50k", "100k", "150k", "200k"]);
        let scale = Scale::from_zero(3.0 * 1024.0 * 1024.0, Unit::Bytes);
        assert_eq!(labels(&scale, Unit::Bytes, 4), ["0 B", "1 MiB", "2 MiB", "3 MiB"]);
        assert_eq!(Scale::from_zero(f64::NAN, Unit::Count), Scale::from_zero(1.0, Unit::Count));
        assert_eq!(labels(&Scale::from_zero(2.0, Unit::Count), Unit::Count, 4), ["0", "1", "2"]);
    }

    #[test]
    fn log_ticks_fit() {
        let scale = Scale::log([0.13, 87.0]);
        assert_eq!(scale, Scale::Log { low: 0.1, high: 100.0 });
        assert_eq!(labels(&scale, Unit::Milliseconds, 5), ["100 µs", "1 ms", "10 ms", "100 ms"]);
        let scale = Scale::log([1.2, 4.0]);
        assert_eq!(labels(&scale, Unit::Milliseconds, 5), ["1 ms", "2 ms", "5 ms"]);
        assert!(scale.place(2.0) > 0.4 && scale.place(2.0) < 0.45);
        assert_eq!(Scale::log([]), Scale::Log { low: 0.1, high: 1.0 });
        assert_eq!(Scale::log([5.0]), Scale::Log { low: 5.0, high: 50.0 });
    }

    #[test]
    fn nines_of_a_percentile_are_a_step_apart() {
        let scale = Scale::Rarity { high: 0.9999 };
        assert_eq!(labels(&scale, Unit::Percent, 9), ["50", "90", "99", "99.9", "99.99"]);
        assert!((scale.place(0.99) - 0.5).abs() < 1e-9);
        assert!((scale.place(1.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn swept_values_span_the_axis() {
        assert_eq!(Scale::swept(&[1.0, 128.0]), Scale::Log { low: 1.0, high: 128.0 });
        assert_eq!(Scale::swept(&[1.0, 2.0, 4.0]), Scale::Linear { low: 1.0, high: 4.0 });
        assert_eq!(Scale::swept(&[7.0]).place(7.0), 0.5);
        assert!(Scale::swept(&[]).place(0.0).is_finite());
    }
}
