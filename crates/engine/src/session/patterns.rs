//! Patterns of channels with their subscribers, found by the channels that they may match.
//!
//! A channel that a pattern matches begins with what stands before the first special byte of the
//! pattern, and ends with what stands behind its last star. So patterns are sorted by these ends,
//! as far as [`LONGEST`] says, and a message looks only at those whose ends are its channel's. A
//! client may subscribe to a million patterns, and others publish as if they were not there; except
//! patterns such as `*news*`, which have no ends.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::session::client::Client;

/// The subscribers of a name, by their numbers: many may leave together, each of many names.
pub(super) type Subscribers = HashMap<u64, Arc<Client>>;

/// Bytes of each end by which patterns are found.
const LONGEST: [usize; 2] = [16, 8];

/// By what a pattern is sorted: its ends, then all of it.
trait Sorted {
    fn parts(&self) -> [&[u8]; 3];
}

/// A pattern, with the lengths of its ends.
struct Pattern {
    name: Box<[u8]>,
    ends: [u8; 2],
}

/// The same, of something that is only looked for.
struct Sought<'n>([&'n [u8]; 3]);

impl Sorted for Pattern {
    fn parts(&self) -> [&[u8]; 3] {
        let [beginning, end] = self.ends.map(usize::from);
        [&self.name[..beginning], &self.name[self.name.len() - end..], &self.name]
    }
}

impl Sorted for Sought<'_> {
    fn parts(&self) -> [&[u8]; 3] {
        self.0
    }
}

impl PartialEq for dyn Sorted + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn Sorted + '_ {}

impl PartialOrd for dyn Sorted + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Sorted + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Pattern {}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pattern {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl<'n> Borrow<dyn Sorted + 'n> for Pattern {
    fn borrow(&self) -> &(dyn Sorted + 'n) {
        self
    }
}

/// The lengths of a pattern's ends.
fn ends_of(pattern: &[u8]) -> [usize; 2] {
    let is_special = |byte: &u8| b"*?[\\".contains(byte);
    let beginning = pattern.iter().position(is_special).unwrap_or(pattern.len());
    // What looks like an end behind one of these may mean something else.
    let is_plain = !pattern.iter().any(|byte| b"[\\".contains(byte));
    let star = pattern.iter().rposition(|byte| *byte == b'*').filter(|_| is_plain);
    let end = star.map_or(0, |star| pattern.len() - star - 1);
    let end = if pattern[pattern.len() - end..].contains(&b'?') { 0 } else { end };
    [beginning.min(LONGEST[0]), end.min(LONGEST[1])]
}

fn sought(pattern: &[u8]) -> Sought<'_> {
    let [beginning, end] = ends_of(pattern);
    Sought([&pattern[..beginning], &pattern[pattern.len() - end..], pattern])
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Patterns {
    all: BTreeMap<Pattern, Subscribers>,
    /// How many of them have ends of these lengths.
    counts: [[usize; LONGEST[1] + 1]; LONGEST[0] + 1],
}

impl Patterns {
    /// The subscribers of a pattern, which is new if these are none.
    pub(super) fn entry(&mut self, name: &[u8]) -> &mut Subscribers {
        let ends = ends_of(name);
        let pattern = Pattern { name: name.into(), ends: ends.map(|length| length as u8) };
        self.all.entry(pattern).or_insert_with(|| {
            self.counts[ends[0]][ends[1]] += 1;
            Subscribers::default()
        })
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&Subscribers> {
        self.all.get(&sought(name) as &dyn Sorted)
    }

    pub(super) fn get_mut(&mut self, name: &[u8]) -> Option<&mut Subscribers> {
        self.all.get_mut(&sought(name) as &dyn Sorted)
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        let [beginning, end] = ends_of(name);
        if self.all.remove(&sought(name) as &dyn Sorted).is_some() {
            self.counts[beginning][end] -= 1;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &Subscribers)> {
        self.all.iter().map(|(pattern, clients)| (&*pattern.name, clients))
    }

    /// The patterns whose ends are those of a channel, with their subscribers. Whether they match
    /// is to be asked.
    pub(super) fn candidates<'p>(
        &'p self,
        channel: &'p [u8],
    ) -> impl Iterator<Item = (&'p [u8], &'p Subscribers)> {
        let lengths = self.counts.iter().enumerate().flat_map(|(beginning, counts)| {
            let used = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            used.map(move |(end, _)| (beginning, end))
        });
        let fit = lengths.filter(|(one, other)| *one.max(other) <= channel.len());
        fit.flat_map(|(beginning, end)| {
            let ends = [&channel[..beginning], &channel[channel.len() - end..]];
            let first = Sought([ends[0], ends[1], b""]);
            let from = Bound::Included(&first as &dyn Sorted);
            let behind = self.all.range::<dyn Sorted, _>((from, Bound::Unbounded));
            let own = behind.take_while(move |(pattern, _)| pattern.parts()[..2] == ends);
            own.map(|(pattern, clients)| (&*pattern.name, clients))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use base::glob;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_are_what_every_channel_has() {
        for (pattern, beginning, end) in [
            ("", 0, 0),
            ("news", 4, 0),
            ("news*", 4, 0),
            ("*news", 0, 4),
            ("a*b?*cd", 1, 2),
            ("a?bc", 1, 0),
            ("a*b?c", 1, 0),
            ("a\\*bc*d", 1, 0),
            ("a*[bc", 1, 0),
            ("a[*]b*c", 1, 0),
            ("0123456789abcdef0*0123456789", 16, 8),
        ] {
            assert_eq!(ends_of(pattern.as_bytes()), [beginning, end], "{pattern}");
        }
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(b"ab*?[]\\^".to_vec()), 0..8)
    }

    proptest! {
        #[test]
        fn each_pattern_that_matches_is_a_candidate(
            patterns in prop::collection::vec(text(), 0..30),
            removed in prop::collection::vec(text(), 0..10),
            channel in prop::collection::vec(prop::sample::select(b"ab*".to_vec()), 0..8),
        ) {
            let mut all = Patterns::default();
            for pattern in &patterns {
                all.entry(pattern);
            }
            removed.iter().chain(patterns.first()).for_each(|pattern| all.remove(pattern));
            let left: BTreeSet<&[u8]> = patterns
                .iter()
                .filter(|pattern| !removed.contains(pattern) && Some(*pattern) != patterns.first())
                .map(Vec::as_slice)
                .collect();
            prop_assert_eq!(all.iter().map(|(name, _)| name).collect::<BTreeSet<_>>(), left.clone());
            prop_assert!(left.iter().all(|pattern| all.get(pattern).is_some()));
            let matching = |pattern: &&[u8]| glob::matches(pattern, &channel);
            let found: Vec<&[u8]> =
                all.candidates(&channel).map(|(name, _)| name).filter(matching).collect();
            let distinct: BTreeSet<&[u8]> = found.iter().copied().collect();
            prop_assert_eq!(found.len(), distinct.len());
            let expected: BTreeSet<&[u8]> = left.into_iter().filter(matching).collect();
            prop_assert_eq!(distinct, expected);
        }
    }
}
