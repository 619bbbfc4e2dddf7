//! The result of a comparison.

use crate::results::{Summary, Unit};

/// The changes from one file of results to another.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// A row per experiment, target, point of the matrix and figure that both have.
    pub rows: Vec<Row>,
    /// Figures that cannot be compared though nothing got worse, a sentence each: those that only
    /// the later side has, and those that are reported only where they fit.
    pub missing: Vec<String>,
    /// Reasons why the two are hard to compare, a sentence each.
    pub cautions: Vec<String>,
    /// What was there before and is not now, a sentence each: experiments, targets, points, loads
    /// and checks that are gone, runs that fail or have no valid repetition, loads that the server
    /// no longer keeps up with, a recovery or a good rate that is not found. These are regressions
    /// too.
    pub failures: Vec<String>,
}

/// One figure of one target at one point, before and after.
#[derive(Clone, Debug)]
pub struct Row {
    /// The experiment's name.
    pub experiment: String,
    /// The target's name.
    pub target: String,
    /// The point of the matrix: `connections 50, fsync always`; empty without one.
    pub point: String,
    /// The figure's name for a reader.
    pub figure: String,
    /// Its unit.
    pub unit: Unit,
    /// Over the valid repetitions before.
    pub before: Summary,
    /// Over the valid repetitions after.
    pub after: Summary,
    /// How it changed.
    pub change: Change,
    /// It counts harm, so the worst run matters.
    pub by_worst: bool,
}

/// How a figure changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The distance is no larger than the spread of the figures.
    WithinNoise,
    /// It is better, beyond noise.
    Better,
    /// It is worse, beyond noise.
    Worse,
    /// It is different, and neither value is better in itself.
    Different,
}

impl Comparison {
    /// The rows that became worse beyond noise.
    pub fn regressions(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.change == Change::Worse)
    }

    /// Whether anything became worse: a figure beyond noise, or a run that fails now.
    pub fn is_regression(&self) -> bool {
        self.regressions().next().is_some() || !self.failures.is_empty()
    }
}

impl Row {
    /// The relative change of the median, or of the worst run's figure: 0.1 for a tenth more; none
    /// from zero.
    pub fn share(&self) -> Option<f64> {
        if self.by_worst {
            return (self.before.high != 0.0).then(|| self.after.high / self.before.high - 1.0);
        }
        self.after.ratio(&self.before).map(|ratio| ratio - 1.0)
    }
}
