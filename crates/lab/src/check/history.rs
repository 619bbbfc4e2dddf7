//! The history of one writer, and its verdict on the values that a server has in the end.

use std::collections::BTreeMap;

/// All writes of one writer.
#[derive(Debug, Default)]
pub(super) struct History {
    /// By generation and slot.
    keys: BTreeMap<(u64, usize), Key>,
}

/// The writes of one key, in order.
#[derive(Debug, Default)]
struct Key {
    /// Sequence numbers that were acknowledged, and when, in seconds.
    acknowledged: Vec<(u64, f64)>,
    /// Sequence numbers that were sent and whose outcome is unknown.
    unknown: Vec<u64>,
}

/// The verdict on one key's value.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// Nothing that was acknowledged is missing.
    Whole,
    /// The newest acknowledged writes are missing.
    Lost {
        /// How many.
        count: u64,
        /// When the oldest of them was acknowledged, in seconds.
        oldest: f64,
        /// The sequence number of the newest of them.
        newest: u64,
        /// The sequence number that was found in its place.
        found: Option<u64>,
    },
    /// The value does not belong to this key.
    Wrong(String),
}

/// The value of a write. It names its key, so that a value of another key is not taken for a right
/// one.
pub(super) fn value(writer: usize, (generation, slot): (u64, usize), sequence: u64) -> String {
    format!("{writer}.{generation}.{slot}.{sequence}")
}

/// The sequence number in a value, if it is a value of this key.
pub(super) fn sequence(writer: usize, place: (u64, usize), value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let number: u64 = text.rsplit_once('.')?.1.parse().ok()?;
    (self::value(writer, place, number) == text).then_some(number)
}

impl History {
    /// A write was acknowledged.
    pub(super) fn acknowledge(&mut self, place: (u64, usize), sequence: u64, at: f64) {
        self.keys.entry(place).or_default().acknowledged.push((sequence, at));
    }

    /// The connection was lost while a write was open.
    pub(super) fn lose_sight(&mut self, place: (u64, usize), sequence: u64) {
        self.keys.entry(place).or_default().unknown.push(sequence);
    }

    /// Writes that were acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.keys.values().map(|key| key.acknowledged.len() as u64).sum()
    }

    /// Writes whose outcome is unknown.
    pub(super) fn unknown(&self) -> u64 {
        self.keys.values().map(|key| key.unknown.len() as u64).sum()
    }

    /// The keys that were written, by generation and slot.
    pub(super) fn places(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        self.keys.keys().copied()
    }

    /// When writes were acknowledged, in seconds, in no order.
    pub(super) fn times(&self) -> impl Iterator<Item = f64> + '_ {
        self.keys.values().flat_map(|key| key.acknowledged.iter().map(|(_, at)| *at))
    }

    /// Judges the final value of a key.
    pub(super) fn judge(
        &self,
        writer: usize,
        place: (u64, usize),
        value: Option<&[u8]>,
    ) -> Verdict {
        let Some(key) = self.keys.get(&place) else { return Verdict::Whole };
        let found = match value {
            None => None,
            Some(value) => {
                let number = sequence(writer, place, value);
                let is_ours = |number: &u64| {
                    key.unknown.contains(number)
                        || key
                            .acknowledged
                            .binary_search_by_key(number, |(other, _)| *other)
                            .is_ok()
                };
                match number.filter(is_ours) {
                    Some(number) => Some(number),
                    None => {
                        return Verdict::Wrong(String::from_utf8_lossy(value).into_owned());
                    }
                }
            }
        };
        let lost = |(number, _): &&(u64, f64)| found.is_none_or(|found| *number > found);
        let mut missing = key.acknowledged.iter().filter(lost);
        match (missing.next(), key.acknowledged.last()) {
            (Some((_, oldest)), Some((newest, _))) => Verdict::Lost {
                count: 1 + missing.count() as u64,
                oldest: *oldest,
                newest: *newest,
                found,
            },
            _ => Verdict::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: (u64, usize) = (1, 7);

    fn history() -> History {
        let mut history = History::default();
        for sequence in [10, 20, 30] {
            history.acknowledge(PLACE, sequence, sequence as f64 / 10.0);
        }
        history.lose_sight(PLACE, 40);
        history
    }

    fn judge(value: Option<&str>) -> Verdict {
        history().judge(3, PLACE, value.map(str::as_bytes))
    }

    #[test]
    fn the_newest_or_an_open_write_is_whole() {
        assert_eq!(judge(Some("3.1.7.30")), Verdict::Whole);
        assert_eq!(judge(Some("3.1.7.40")), Verdict::Whole);
    }

    #[test]
    fn an_older_value_means_that_later_writes_are_lost() {
        let lost = Verdict::Lost { count: 2, oldest: 2.0, newest: 30, found: Some(10) };
        assert_eq!(judge(Some("3.1.7.10")), lost);
        let lost = Verdict::Lost { count: 3, oldest: 1.0, newest: 30, found: None };
        assert_eq!(judge(None), lost);
    }

    #[test]
    fn a_value_of_another_key_or_of_nobody_is_wrong() {
        for text in ["3.1.8.30", "2.1.7.30", "3.1.7.25", "3.1.7.030", "x", ""] {
            assert_eq!(judge(Some(text)), Verdict::Wrong(text.to_owned()));
        }
    }

    #[test]
    fn counts_are_those_of_all_keys() {
        let history = history();
        assert_eq!((history.acknowledged(), history.unknown()), (3, 1));
        assert_eq!(history.places().collect::<Vec<_>>(), [PLACE]);
        assert_eq!(history.judge(3, (9, 9), None), Verdict::Whole);
    }
}
