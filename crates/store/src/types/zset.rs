//! Sorted sets: a listpack of members and scores while small; a table and a counted tree when
//! large.
//!
//! The two encodings, the conditions for leaving the first, and the bytes of the listpack are those
//! of Redis. Where Redis has a skip list, the order index is a B-tree that knows the number of
//! elements below each node (see [`crate::table::ranked`]). A range by score or by name is first
//! turned into a range of ranks; counting, iterating and removing then all work on ranks.

mod builder;
mod packed;
mod table;
#[cfg(test)]
mod tests;

use std::iter::FusedIterator;
use std::ops::Range;
use std::sync::Arc;

use base::limits::FREED_AT_ONCE_BYTES;
use base::rng::Rng;

use crate::pack::{
    Element, Form, FormMut, INTEGER_TEXT_BYTES, Listpack, ListpackSlice, OwnedElement, PackedOr,
};
use crate::snapshot::freeze::{Freezing, Frozen};
use crate::types::packed::{Limits, Malformed, choose, has_room_for_pair};
use packed::{Pairs, SCORE_TEXT_BYTES};
pub use table::Insertion;
use table::{RankedMembers, Ranks};

pub use builder::ZsetBuilder;

/// A bound of a range of scores. Infinite bounds are inclusive ones of an infinite score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScoreBound {
    /// The score itself belongs to the range.
    Inclusive(f64),
    /// The score itself lies outside.
    Exclusive(f64),
}

/// A bound of a range of members, in the order of their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// Before every member: `-`.
    Lowest,
    /// After every member: `+`.
    Highest,
    /// The member itself belongs to the range.
    Inclusive(&'a [u8]),
    /// The member itself lies outside.
    Exclusive(&'a [u8]),
}

impl LexBound<'_> {
    /// Whether `member` lies before a range that begins here.
    fn is_above(self, member: &[u8]) -> bool {
        match self {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(bound) => member < bound,
            LexBound::Exclusive(bound) => member <= bound,
        }
    }

    /// Whether `member` does not lie after a range that ends here.
    fn reaches(self, member: &[u8]) -> bool {
        match self {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(bound) => member <= bound,
            LexBound::Exclusive(bound) => member < bound,
        }
    }
}

/// A set of byte strings ordered by score, then by bytes: eight bytes, as `Option<Zset>` is.
///
/// Scores are never NaN: callers refuse it before they insert. Ranks count from 0 at the lowest.
#[repr(transparent)]
#[derive(Clone)]
pub struct Zset(PackedOr<Listpack, RankedMembers>);

impl Zset {
    /// Prefetches what these members lead to: see [`crate::ValueRef::prefetch`].
    pub(crate) fn prefetch(&self, members: &[&[u8]]) {
        if let Form::Boxed(ranked) = self.0.get() {
            ranked.members().prefetch(members);
        }
    }

    /// The snapshot that reads the table, if one does.
    pub(crate) fn frozen(&self) -> Option<&Arc<Frozen>> {
        match self.0.get() {
            Form::Packed(_) => None,
            Form::Boxed(ranked) => ranked.members().frozen(),
        }
    }

    /// The table, if it is large enough to have one.
    pub(crate) fn freezing(&mut self) -> Option<&mut dyn Freezing> {
        match self.0.get_mut() {
            FormMut::Packed(_) => None,
            FormMut::Boxed(ranked) => Some(ranked.members_mut()),
        }
    }

    /// An empty sorted set.
    pub fn new() -> Self {
        Zset(PackedOr::packed(Listpack::new()))
    }

    /// Takes over a listpack of members and scores, and unpacks it if it exceeds `limits.entries`.
    ///
    /// # Errors
    /// Any [`Malformed`].
    pub fn from_listpack(listpack: Listpack, limits: Limits) -> Result<Self, Malformed> {
        packed::validate(&listpack)?;
        let mut zset = Zset(PackedOr::packed(listpack));
        if zset.len() > limits.entries {
            zset.convert();
        }
        Ok(zset)
    }

    /// The listpack, while small: members and scores in turn, ascending.
    pub fn as_listpack(&self) -> Option<&ListpackSlice> {
        match self.0.get() {
            Form::Packed(listpack) => Some(listpack),
            Form::Boxed(_) => None,
        }
    }

    /// Whether the sorted set is still a listpack.
    pub fn is_packed(&self) -> bool {
        self.as_listpack().is_some()
    }

    /// The name that OBJECT ENCODING gives.
    pub fn encoding(&self) -> &'static str {
        if self.is_packed() { "listpack" } else { "skiplist" }
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        match self.0.get() {
            Form::Packed(listpack) => listpack.len() / 2,
            Form::Boxed(table) => table.len(),
        }
    }

    /// Whether there are no members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self.0.get() {
            Form::Packed(listpack) => listpack.is_empty(),
            Form::Boxed(table) => table.len() == 0,
        }
    }

    /// The score of `member`.
    #[inline]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match self.0.get() {
            Form::Packed(listpack) => packed::find(listpack, member).map(|(_, score)| score),
            Form::Boxed(table) => table.score(member),
        }
    }

    /// Whether there is such a member.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        match self.0.get() {
            Form::Packed(listpack) => listpack.find(member, 1).is_some(),
            Form::Boxed(table) => table.contains(member),
        }
    }

    /// The rank of `member`.
    pub fn rank(&self, member: &[u8]) -> Option<usize> {
        match self.0.get() {
            Form::Packed(listpack) => packed::rank(listpack, member),
            Form::Boxed(table) => table.rank(member),
        }
    }

    /// Chooses the encoding by the number of members that a command brings. Those that are there
    /// already, come twice or are not added after all are counted too.
    #[inline]
    pub fn expect(&mut self, count: usize, limits: Limits) {
        if count > limits.entries {
            self.convert();
        }
    }

    /// Adds `member`, or gives it another score.
    pub fn insert(&mut self, member: &[u8], score: f64, limits: Limits) -> Insertion {
        debug_assert!(!score.is_nan(), "callers refuse NaN");
        if let FormMut::Packed(listpack) = self.0.get_mut() {
            if let Some((position, old_score)) = packed::find(listpack, member) {
                if old_score == score {
                    return Insertion::Same;
                }
                listpack.remove(position, 2);
                packed::insert(listpack, member, score);
                return Insertion::Updated;
            }
            if listpack.len() / 2 < limits.entries
                && limits.admit(member)
                && has_room_for_pair(listpack, member.len(), SCORE_TEXT_BYTES)
            {
                packed::insert(listpack, member, score);
                return Insertion::Added;
            }
        }
        self.convert().insert(member, score)
    }

    /// Removes `member`. Returns its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match self.0.get_mut() {
            FormMut::Packed(listpack) => {
                let (position, score) = packed::find(listpack, member)?;
                listpack.remove(position, 2);
                Some(score)
            }
            FormMut::Boxed(table) => table.remove(member),
        }
    }

    /// Removes the members whose ranks are in `ranks`, cut to those present. Returns how many.
    pub fn remove_ranks(&mut self, ranks: Range<usize>) -> usize {
        let before = self.len();
        let ranks = ranks.start.min(before)..ranks.end.min(before);
        match self.0.get_mut() {
            FormMut::Packed(listpack) if ranks.start < before => {
                let count = ranks.len().min(before);
                listpack.remove_range(2 * ranks.start as i64, 2 * count);
            }
            FormMut::Packed(_) => {}
            FormMut::Boxed(table) => table.remove_ranks(ranks),
        }
        before - self.len()
    }

    /// Removes and returns the lowest member with its score.
    pub fn pop_min(&mut self) -> Option<(OwnedElement, f64)> {
        match self.0.get_mut() {
            FormMut::Packed(listpack) => take_packed(listpack, 0),
            FormMut::Boxed(table) => table.pop_first(),
        }
    }

    /// Removes and returns the highest member with its score.
    pub fn pop_max(&mut self) -> Option<(OwnedElement, f64)> {
        match self.0.get_mut() {
            FormMut::Packed(listpack) => take_packed(listpack, -2),
            FormMut::Boxed(table) => table.pop_last(),
        }
    }

    /// The ranks of the members whose scores lie between two bounds; an empty range if there are
    /// none.
    pub fn rank_range_by_score(&self, min: ScoreBound, max: ScoreBound) -> Range<usize> {
        let start = match min {
            ScoreBound::Inclusive(score) => self.count_below(score),
            ScoreBound::Exclusive(score) => self.count_up_to(score),
        };
        let end = match max {
            ScoreBound::Inclusive(score) => self.count_up_to(score),
            ScoreBound::Exclusive(score) => self.count_below(score),
        };
        start..end.max(start)
    }

    /// Number of members whose score is below `score`: the rank of the first whose is not.
    pub fn count_below(&self, score: f64) -> usize {
        match self.0.get() {
            Form::Packed(listpack) => packed::count_while(listpack, |_, other| other < score),
            Form::Boxed(table) => table.count_below(score),
        }
    }

    /// Number of members whose score is at most `score`: the rank of the first above it.
    pub fn count_up_to(&self, score: f64) -> usize {
        match self.0.get() {
            Form::Packed(listpack) => packed::count_while(listpack, |_, other| other <= score),
            Form::Boxed(table) => table.count_up_to(score),
        }
    }

    /// The ranks of the members between two bounds by name, which are sorted by name when all
    /// scores are equal.
    ///
    /// When they are not, the members are in another order, and the answer is that of Redis for a
    /// listpack. It is empty when the first member lies after the range or the last before it.
    /// Otherwise it begins with the first member that is not before the range, and ends before the
    /// next one after the range. In reverse it is the other way round, from the highest member.
    pub fn rank_range_by_lex(
        &self,
        min: LexBound<'_>,
        max: LexBound<'_>,
        reverse: bool,
    ) -> Range<usize> {
        let mut buffer = [0; INTEGER_TEXT_BYTES];
        let mut lies_before =
            |(member, _): &(Element<'_>, f64)| min.is_above(member.as_bytes(&mut buffer));
        let mut buffer = [0; INTEGER_TEXT_BYTES];
        let mut is_reached =
            |(member, _): &(Element<'_>, f64)| max.reaches(member.as_bytes(&mut buffer));
        let length = self.len();
        let ends = (self.iter().next(), self.iter().next_back());
        let (Some(first), Some(last)) = ends else { return 0..0 };
        if lies_before(&last) || !is_reached(&first) {
            return 0..0;
        }
        if let Form::Boxed(table) = self.0.get() {
            let start = table.count_while(|member| min.is_above(member));
            let end = table.count_while(|member| max.reaches(member));
            return start..end.max(start);
        }
        if reverse {
            let behind = self.iter().rev().take_while(|pair| !is_reached(pair)).count();
            let within = self.iter().rev().skip(behind).take_while(|pair| !lies_before(pair));
            let within = within.count();
            return length - behind - within..length - behind;
        }
        let before = self.iter().take_while(&mut lies_before).count();
        let within = self.iter().skip(before).take_while(is_reached).count();
        before..before + within
    }

    /// The members whose ranks are in `ranks`, cut to those present, with their scores: ascending,
    /// or descending with `.rev()`.
    pub fn range(&self, ranks: Range<usize>) -> ZsetRange<'_> {
        ZsetRange(match self.0.get() {
            Form::Packed(listpack) => Inner::Packed(packed::range(listpack, ranks)),
            Form::Boxed(table) => Inner::Table(table.range(ranks)),
        })
    }

    /// All members with their scores, ascending.
    pub fn iter(&self) -> ZsetRange<'_> {
        self.range(0..self.len())
    }

    /// Shows the members at `position` of a scan, which begins at 0, and returns the next position,
    /// or `None` at the end. A member that is there during all of a scan is shown at least once. A
    /// listpack is shown as a whole.
    pub fn scan(&self, position: u32, mut visit: impl FnMut(Element<'_>, f64)) -> Option<u32> {
        match self.0.get() {
            Form::Packed(_) => {
                self.iter().for_each(|(member, score)| visit(member, score));
                None
            }
            Form::Boxed(table) => table.scan(position, visit),
        }
    }

    /// A member with its score, chosen with equal chances.
    pub fn random(&self, rng: &mut Rng) -> Option<(Element<'_>, f64)> {
        match self.0.get() {
            Form::Packed(listpack) => {
                let index = rng.index(self.len());
                Some(packed::pair_at(listpack, listpack.seek(2 * index as i64)?))
            }
            Form::Boxed(table) => table.random(rng),
        }
    }

    /// Shows `count` members with their scores, each chosen anew, so that some may come repeatedly.
    /// Nothing if the sorted set is empty.
    pub fn random_repeating<'a>(
        &'a self,
        count: usize,
        rng: &mut Rng,
        mut visit: impl FnMut(Element<'a>, f64),
    ) {
        match self.0.get() {
            Form::Packed(_) => {
                let pairs: Vec<_> = self.iter().collect();
                for _ in 0..count {
                    let Some(&(member, score)) = pairs.get(rng.index(pairs.len())) else { return };
                    visit(member, score);
                }
            }
            Form::Boxed(table) => {
                for _ in 0..count {
                    let Some((member, score)) = table.random(rng) else { return };
                    visit(member, score);
                }
            }
        }
    }

    /// Shows up to `count` different members with their scores, each set of them with equal
    /// chances.
    pub fn random_distinct<'a>(
        &'a self,
        count: usize,
        rng: &mut Rng,
        mut visit: impl FnMut(Element<'a>, f64),
    ) {
        let visit = |(member, score)| visit(member, score);
        match self.0.get() {
            Form::Packed(_) => choose(self.iter(), self.len(), count, rng, visit),
            Form::Boxed(table) => table.random_distinct(count, rng, visit),
        }
    }

    /// How many chains of the table's buckets have n members each; `None` for a packed sorted set.
    pub fn chain_histogram(&self) -> Option<Vec<usize>> {
        match self.0.get() {
            Form::Packed(_) => None,
            Form::Boxed(table) => Some(table.chain_histogram()),
        }
    }

    /// Whether freeing it should be left to the background: see [`crate::Entry::is_large`].
    pub(crate) fn frees_slowly(&self) -> bool {
        match self.0.get() {
            Form::Packed(listpack) => listpack.memory_usage() > FREED_AT_ONCE_BYTES,
            Form::Boxed(table) => table.frees_slowly(),
        }
    }

    /// Bytes that the sorted set takes besides its handle; a table's members are estimated from the
    /// first `samples` of them.
    pub fn memory_usage(&self, samples: usize) -> usize {
        match self.0.get() {
            Form::Packed(listpack) => listpack.memory_usage(),
            Form::Boxed(table) => table.memory_usage(samples),
        }
    }

    /// Turns a listpack into a table, for good.
    pub fn unpack(&mut self) {
        self.convert();
    }

    /// The table, made from the listpack if necessary.
    fn convert(&mut self) -> &mut RankedMembers {
        if self.is_packed() {
            let table = RankedMembers::from_ascending(self.iter());
            self.0 = PackedOr::boxed(Box::new(table));
        }
        match self.0.get_mut() {
            FormMut::Boxed(table) => table,
            FormMut::Packed(_) => unreachable!("the table was made just now"),
        }
    }

    /// Asserts the invariants.
    ///
    /// # Panics
    /// If one is violated.
    #[cfg(any(test, debug_assertions))]
    pub fn check(&self) {
        match self.0.get() {
            Form::Packed(listpack) => {
                assert!(ListpackSlice::from_bytes(listpack.as_bytes()).is_ok());
                assert_eq!(packed::validate(listpack), Ok(()));
            }
            Form::Boxed(table) => table.check(),
        }
    }
}

/// Removes and returns the member with this index in the listpack (negative: from the back).
fn take_packed(listpack: &mut Listpack, index: i64) -> Option<(OwnedElement, f64)> {
    let position = listpack.seek(index)?;
    let (member, score) = packed::pair_at(listpack, position);
    let taken = (member.to_owned_element(), score);
    listpack.remove(position, 2);
    Some(taken)
}

impl Default for Zset {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Zset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Zset {
    type Item = (Element<'a>, f64);
    type IntoIter = ZsetRange<'a>;

    fn into_iter(self) -> ZsetRange<'a> {
        self.iter()
    }
}

/// Iterator over members of a [`Zset`] with their scores in the order of their ranks.
pub struct ZsetRange<'a>(Inner<'a>);

enum Inner<'a> {
    Packed(Pairs<'a>),
    Table(Ranks<'a>),
}

impl<'a> Iterator for ZsetRange<'a> {
    type Item = (Element<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Inner::Packed(pairs) => pairs.next(),
            Inner::Table(ranks) => ranks.next(),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            Inner::Packed(pairs) => pairs.len(),
            Inner::Table(ranks) => ranks.len(),
        };
        (left, Some(left))
    }
}

impl DoubleEndedIterator for ZsetRange<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Inner::Packed(pairs) => pairs.next_back(),
            Inner::Table(ranks) => ranks.next_back(),
        }
    }
}

impl ExactSizeIterator for ZsetRange<'_> {}

impl FusedIterator for ZsetRange<'_> {}
