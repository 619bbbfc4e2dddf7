//! Figures over repetitions: the one in the middle, how far they lie apart, and whether two of them
//! differ or are a tie.

/// A difference below this share is a tie, however well figures repeat: a machine that was started
/// again, or a binary that was linked in another order, moves them as much.
pub const LEAST_SHARE: f64 = 0.05;
/// The same where one side has fewer runs than [`ENOUGH_RUNS`], so that nobody knows how well its
/// figures repeat.
pub const FEW_RUNS_SHARE: f64 = 0.15;
/// So many runs say how far figures lie apart: two lie close together by luck every other time.
pub const ENOUGH_RUNS: usize = 3;

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

/// How a figure lies to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// No further apart than they lie among themselves.
    Tie,
    /// It is larger.
    Higher,
    /// It is smaller.
    Lower,
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

    /// How this lies to `other`. The medians differ when they are further apart than the figures of
    /// either side lie among themselves, and by at least [`LEAST_SHARE`] of the other's median
    /// ([`FEW_RUNS_SHARE`] when one side has fewer than [`ENOUGH_RUNS`] runs). All else is a tie.
    pub fn against(&self, other: &Summary) -> Difference {
        let share = self.least_share(other);
        let gap = self.median - other.median;
        let noise = self.spread().max(other.spread()).max(share * other.median.abs());
        if gap.abs() <= noise {
            Difference::Tie
        } else if gap > 0.0 {
            Difference::Higher
        } else {
            Difference::Lower
        }
    }

    /// A difference below this share says nothing.
    pub fn least_share(&self, other: &Summary) -> f64 {
        let few = self.count.min(other.count) < ENOUGH_RUNS;
        if few { FEW_RUNS_SHARE } else { LEAST_SHARE }
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
    fn a_difference_within_either_spread_is_a_tie() {
        let wide = summary([80.0, 100.0, 120.0]);
        let narrow = summary([129.0, 130.0, 131.0]);
        assert_eq!(narrow.against(&wide), Difference::Tie);
        assert_eq!(wide.against(&narrow), Difference::Tie);
        let far = summary([150.0, 151.0, 152.0]);
        assert_eq!(far.against(&wide), Difference::Higher);
        assert_eq!(wide.against(&far), Difference::Lower);
    }

    #[test]
    fn a_small_difference_is_a_tie_however_well_it_repeats() {
        let one = summary([100.0, 100.0, 100.0]);
        assert_eq!(summary([104.9; 3]).against(&one), Difference::Tie);
        assert_eq!(summary([105.1; 3]).against(&one), Difference::Higher);
    }

    #[test]
    fn few_runs_must_differ_by_more() {
        let one = summary([100.0]);
        assert_eq!(summary([114.0]).against(&one), Difference::Tie);
        assert_eq!(summary([86.0, 86.0]).against(&one), Difference::Tie);
        assert_eq!(summary([116.0]).against(&one), Difference::Higher);
        // Two that happen to be the same say little more than one.
        let three = summary([100.0; 3]);
        assert_eq!(summary([110.0, 110.0]).against(&three), Difference::Tie);
        assert_eq!(summary([110.0; 3]).against(&three), Difference::Higher);
        assert_eq!(summary([84.0, 84.0]).against(&three), Difference::Lower);
    }

    #[test]
    fn nothing_against_nothing_is_a_tie() {
        let none = summary([0.0, 0.0]);
        assert_eq!(none.against(&none), Difference::Tie);
        assert_eq!(none.ratio(&none), None);
        assert_eq!(summary([3.0, 3.0]).against(&none), Difference::Higher);
    }
}
