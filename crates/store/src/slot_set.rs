//! Sets of slots: one for its owner, and one that threads share.

use base::limits::SLOTS;

use crate::locks::sync::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Words of 64 slots.
pub(crate) const WORDS: usize = SLOTS / 64;

/// A set of slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotSet(Box<[u64; WORDS]>);

impl Default for SlotSet {
    /// No slot.
    fn default() -> SlotSet {
        SlotSet(Box::new([0; WORDS]))
    }
}

impl FromIterator<u16> for SlotSet {
    fn from_iter<T: IntoIterator<Item = u16>>(slots: T) -> SlotSet {
        let mut set = SlotSet::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

impl SlotSet {
    /// Parses ranges: `0-5460,5462`. Nothing where one is malformed, or has no slot.
    pub fn parse(text: &[u8]) -> Option<SlotSet> {
        let text = std::str::from_utf8(text).ok()?;
        let mut set = SlotSet::default();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| {
                let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse::<u16>().ok().filter(|slot| is_number && usize::from(*slot) < SLOTS)
            };
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            (first..=last).for_each(|slot| set.insert(slot));
        }
        Some(set)
    }

    /// Adds a slot.
    pub fn insert(&mut self, slot: u16) {
        self.0[usize::from(slot) / 64] |= 1 << (slot % 64);
    }

    /// Whether it has a slot.
    #[inline]
    pub fn has(&self, slot: u16) -> bool {
        self.0[usize::from(slot) / 64] >> (slot % 64) & 1 != 0
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// How many it has.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether both have a slot.
    pub fn meets(&self, other: &SlotSet) -> bool {
        self.0.iter().zip(&*other.0).any(|(own, other)| own & other != 0)
    }

    /// The slots that it has, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        (0..SLOTS as u16).filter(|slot| self.has(*slot))
    }

    /// All other slots.
    #[must_use]
    pub fn complement(&self) -> SlotSet {
        let mut set = self.clone();
        set.0.iter_mut().for_each(|word| *word = !*word);
        set
    }

    /// The word with the slots from 64 times `index` on.
    pub(crate) fn word(&self, index: usize) -> u64 {
        self.0[index]
    }
}

/// A set of slots that threads share. Changes are seen by other threads after the world was stopped
/// once.
pub struct SharedSlotSet(Box<[AtomicU64]>);

impl Default for SharedSlotSet {
    /// No slot.
    fn default() -> SharedSlotSet {
        SharedSlotSet((0..WORDS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl SharedSlotSet {
    /// Adds slots.
    pub fn insert(&self, slots: &SlotSet) {
        for (own, added) in self.0.iter().zip(&*slots.0) {
            own.fetch_or(*added, Relaxed);
        }
    }

    /// Removes slots.
    pub fn remove(&self, slots: &SlotSet) {
        for (own, removed) in self.0.iter().zip(&*slots.0) {
            own.fetch_and(!removed, Relaxed);
        }
    }

    /// Has these slots alone.
    pub fn set(&self, slots: &SlotSet) {
        self.0.iter().zip(&*slots.0).for_each(|(own, word)| own.store(*word, Relaxed));
    }

    /// Whether it has a slot.
    #[inline]
    pub fn has(&self, slot: u16) -> bool {
        self.word(usize::from(slot) / 64) >> (slot % 64) & 1 != 0
    }

    /// The word with the slots from 64 times `index` on.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> u64 {
        self.0[index].load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_sets() {
        let set = SlotSet::parse(b"0-2,64,16383").unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 1, 2, 64, 16383]);
        assert_eq!((set.len(), set.complement().len()), (5, SLOTS - 5));
        assert!(!set.meets(&set.complement()) && set.meets(&SlotSet::parse(b"64").unwrap()));
        for wrong in ["", "-", "1-", "2-1", "16384", "1,,2", "+1", " 1", "1-2-3"] {
            assert_eq!(SlotSet::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_shared_changes_by_whole_sets() {
        let (shared, set) = (SharedSlotSet::default(), SlotSet::parse(b"5-70").unwrap());
        shared.insert(&set);
        shared.remove(&SlotSet::parse(b"6").unwrap());
        assert!(shared.has(5) && shared.has(70) && !shared.has(6) && !shared.has(71));
        shared.set(&SlotSet::default());
        assert!(!shared.has(5));
    }
}
