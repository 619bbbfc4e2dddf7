//! Sets of slots, kept and printed as ranges.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many slots there are.
pub const SLOT_COUNT: u16 = 16_384;

/// A set of slots: ranges that are sorted, and neither overlap nor touch.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct SlotRanges {
    ranges: Vec<(u16, u16)>,
}

impl SlotRanges {
    /// No slot.
    pub fn new() -> Self {
        SlotRanges::default()
    }

    /// All slots.
    pub fn all() -> Self {
        SlotRanges { ranges: vec![(0, SLOT_COUNT - 1)] }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many slots there are.
    pub fn count(&self) -> usize {
        self.ranges.iter().map(|(first, last)| usize::from(last - first) + 1).sum()
    }

    /// Whether `slot` is one of them.
    pub fn contains(&self, slot: u16) -> bool {
        let after = self.ranges.partition_point(|&(first, _)| first <= slot);
        after > 0 && slot <= self.ranges[after - 1].1
    }

    /// The ranges, ascending: first and last slot of each.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = (u16, u16)> + '_ {
        self.ranges.iter().copied()
    }

    /// The slots, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.ranges.iter().flat_map(|&(first, last)| first..=last)
    }

    /// Adds the slots of a range.
    ///
    /// # Panics
    ///
    /// If the range reaches beyond the last slot.
    pub fn insert(&mut self, range: RangeInclusive<u16>) {
        let (mut first, mut last) = range.into_inner();
        assert!(last < SLOT_COUNT, "slot {last} is none");
        if first > last {
            return;
        }
        self.ranges.retain(|&(other_first, other_last)| {
            let is_apart = other_last + 1 < first || last + 1 < other_first;
            if !is_apart {
                first = first.min(other_first);
                last = last.max(other_last);
            }
            is_apart
        });
        let at = self.ranges.partition_point(|&(other_first, _)| other_first < first);
        self.ranges.insert(at, (first, last));
    }

    /// All slots of both.
    pub fn union(&self, other: &SlotRanges) -> SlotRanges {
        let mut all = self.clone();
        other.ranges().for_each(|(first, last)| all.insert(first..=last));
        all
    }

    /// These slots without those of `other`.
    pub fn without(&self, other: &SlotRanges) -> SlotRanges {
        let mut rest = SlotRanges::new();
        for (first, last) in self.ranges() {
            let mut next = first;
            for (other_first, other_last) in other.ranges() {
                if other_last < next || other_first > last {
                    continue;
                }
                if other_first > next {
                    rest.insert(next..=other_first - 1);
                }
                next = other_last + 1;
            }
            if next <= last {
                rest.insert(next..=last);
            }
        }
        rest
    }

    /// The slots that both have.
    pub fn intersection(&self, other: &SlotRanges) -> SlotRanges {
        self.without(&self.without(other))
    }

    /// Whether no slot is in both.
    pub fn is_apart_from(&self, other: &SlotRanges) -> bool {
        self.intersection(other).is_empty()
    }

    /// Whether all slots of `other` are among these.
    pub fn contains_all(&self, other: &SlotRanges) -> bool {
        other.without(self).is_empty()
    }
}

impl FromIterator<u16> for SlotRanges {
    fn from_iter<I: IntoIterator<Item = u16>>(slots: I) -> Self {
        let mut sorted: Vec<u16> = slots.into_iter().collect();
        sorted.sort_unstable();
        let mut set = SlotRanges::new();
        for slot in sorted {
            assert!(slot < SLOT_COUNT, "slot {slot} is none");
            match set.ranges.last_mut() {
                Some((_, last)) if slot <= *last + 1 => *last = slot,
                _ => set.ranges.push((slot, slot)),
            }
        }
        set
    }
}

/// As `0-5460,5462`; nothing for the empty set.
impl fmt::Display for SlotRanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.ranges().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match first == last {
                true => write!(formatter, "{comma}{first}")?,
                false => write!(formatter, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for SlotRanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// What is no list of slots and ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotSlots(String);

impl fmt::Display for NotSlots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "'{}' is no slot or range of slots from 0 to {}", self.0, SLOT_COUNT - 1)
    }
}

impl std::error::Error for NotSlots {}

impl FromStr for SlotRanges {
    type Err = NotSlots;

    fn from_str(text: &str) -> Result<Self, NotSlots> {
        let mut set = SlotRanges::new();
        if text.is_empty() {
            return Ok(set);
        }
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.parse().ok().filter(|slot| *slot < SLOT_COUNT);
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => set.insert(first..=last),
                _ => return Err(NotSlots(part.into())),
            }
        }
        Ok(set)
    }
}

impl Serialize for SlotRanges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'d> Deserialize<'d> for SlotRanges {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'d, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use base::rng::Rng;

    use super::*;

    #[test]
    fn sets_agree_with_plain_sets() {
        let mut rng = Rng::from_seed(1);
        for _ in 0..300 {
            let mut sets =
                [(SlotRanges::new(), BTreeSet::new()), (SlotRanges::new(), BTreeSet::new())];
            for (ranges, plain) in &mut sets {
                for _ in 0..rng.below(8) {
                    let first = rng.below(60) as u16;
                    let last = first + rng.below(6) as u16;
                    ranges.insert(first..=last);
                    plain.extend(first..=last);
                }
                assert_eq!(ranges.iter().collect::<BTreeSet<_>>(), *plain);
                assert_eq!(ranges.count(), plain.len());
                assert_eq!(*ranges, plain.iter().copied().collect());
                assert_eq!(*ranges, ranges.to_string().parse().expect("it was printed so"));
                assert!((0..70).all(|slot| ranges.contains(slot) == plain.contains(&slot)));
            }
            let [(a, plain_a), (b, plain_b)] = &sets;
            assert_eq!(a.union(b), plain_a.union(plain_b).copied().collect());
            assert_eq!(a.without(b), plain_a.difference(plain_b).copied().collect());
            assert_eq!(a.intersection(b), plain_a.intersection(plain_b).copied().collect());
            assert_eq!(a.contains_all(b), plain_a.is_superset(plain_b));
        }
        assert_eq!(SlotRanges::all().count(), usize::from(SLOT_COUNT));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["16384", "5-4", "-1", "1-", "1,,2", "x", "0-16384", " 1"] {
            assert!(text.parse::<SlotRanges>().is_err(), "{text}");
        }
        assert_eq!("7,1-2,3".parse::<SlotRanges>().expect("good").to_string(), "1-3,7");
    }
}
