//! Figures over repetitions: the one in the middle, and how far they lie apart.

/// One figure over repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The one in the middle; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// How many there are.
    pub count: usize,
}

impl Summary {
    /// The summary of some figures; none when there are none. What is not a finite number is left
    /// out.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let mut sorted: Vec<f64> =
            figures.into_iter().filter(|figure| figure.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Summary { median, low, high, count: sorted.len() })
    }

    /// From the smallest to the largest.
    pub fn spread(&self) -> f64 {
        self.high - self.low
    }

    /// Half of the spread as a share of the median: the number behind a "±".
    pub fn half_width(&self) -> Option<f64> {
        (self.count > 1 && self.median != 0.0).then(|| self.spread() / 2.0 / self.median.abs())
    }

    /// This median as a multiple of the other's; none when the other's is zero.
    pub fn ratio(&self, other: &Summary) -> Option<f64> {
        (other.median != 0.0).then(|| self.median / other.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary<const N: usize>(figures: [f64; N]) -> Summary {
        Summary::of(figures).expect("there are figures")
    }

    #[test]
    fn median_and_spread() {
        let odd = summary([5.0, 1.0, 3.0]);
        assert_eq!((odd.median, odd.low, odd.high, odd.count), (3.0, 1.0, 5.0, 3));
        assert_eq!(odd.spread(), 4.0);
        assert_eq!(odd.half_width(), Some(2.0 / 3.0));
        assert_eq!(summary([4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(summary([7.0]).half_width(), None);
        assert_eq!(summary([0.0, 0.0]).half_width(), None);
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([f64::NAN, 2.0, f64::INFINITY]), Summary::of([2.0]));
    }

    #[test]
    fn there_is_no_ratio_to_zero() {
        let none = summary([0.0, 0.0]);
        assert_eq!(none.ratio(&none), None);
        assert_eq!(summary([3.0, 3.0]).ratio(&summary([2.0])), Some(1.5));
    }
}
