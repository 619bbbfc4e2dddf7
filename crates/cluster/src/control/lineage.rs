//! Of which epochs data are.

use serde::{Deserialize, Serialize};

use crate::ids::Epoch;

/// How many epochs are known at most.
const LONGEST: usize = 16;

/// The epochs whose journals a node's data are the beginning of, each with the offset at which it
/// began; ascending. Files may come back without their end, even without what was written in the
/// last epoch: the data count for the epoch whose start they still reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage(Vec<(Epoch, u64)>);

impl Lineage {
    /// The data count for this epoch from now on, which began at `start`; 0: for none.
    pub fn note(&mut self, epoch: Epoch, start: u64) {
        self.0.retain(|(other, _)| *other < epoch);
        if epoch != 0 {
            self.0.push((epoch, start));
        }
        let surplus = self.0.len().saturating_sub(LONGEST);
        self.0.drain(..surplus);
    }

    /// The epoch for which data count that reach this offset, and its start; zeros: for none.
    pub fn at(&self, offset: u64) -> (Epoch, u64) {
        let reached = self.0.iter().rev().find(|(_, start)| *start <= offset);
        reached.copied().unwrap_or_default()
    }

    /// The same, of the epochs up to `last` alone.
    pub fn at_until(&self, offset: u64, last: Epoch) -> (Epoch, u64) {
        let mut known = self.clone();
        known.cut_to(last);
        known.at(offset)
    }

    /// The data are of no epoch after this one.
    pub fn cut_to(&mut self, last: Epoch) {
        self.0.retain(|(epoch, _)| *epoch <= last);
    }

    /// The last epoch; 0: none.
    pub fn last(&self) -> Epoch {
        self.0.last().map_or(0, |(epoch, _)| *epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_were_cut_back_count_for_an_earlier_epoch() {
        let mut lineage = Lineage::default();
        assert_eq!(lineage.at(50), (0, 0));
        lineage.note(7, 0);
        lineage.note(9, 80);
        assert_eq!((lineage.at(80), lineage.at(79), lineage.last()), ((9, 80), (7, 0), 9));
        assert_eq!((lineage.at_until(80, 8), lineage.at_until(80, 6)), ((7, 0), (0, 0)));
        lineage.note(7, 0);
        assert_eq!(lineage.at(80), (7, 0));
        lineage.note(0, 0);
        assert_eq!((lineage.at(80), lineage.last()), ((0, 0), 0));
        (1..100).for_each(|epoch| lineage.note(epoch, epoch.unsigned_abs() * 10));
        assert_eq!((lineage.at(2000), lineage.at(100)), ((99, 990), (0, 0)));
    }
}
