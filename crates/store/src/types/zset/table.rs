//! A large sorted set: members found by name, and an index of them by score.
//!
//! The table owns the members; the order index has the same addresses a second time. So a score is
//! stored once, and a member costs its block and two words.
#![allow(unsafe_code)]

use std::ops;

use base::rng::Rng;

use crate::garbage;
use crate::pack::{Element, OwnedElement};
use crate::snapshot::freeze::Freezing;
use crate::table::ranked::{self, Ranked};
use crate::types::member::{Member, Members, Scored};

/// The result of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insertion {
    /// The member is new.
    Added,
    /// The member was there and has another score now.
    Updated,
    /// The member was there with this very score.
    Same,
}

/// When more members than this are removed at once, and twice as many as stay, the others are
/// copied.
const LEFT_BEHIND: usize = 1024;
/// Members that the size of a table is estimated from.
const SAMPLES: usize = 64;

/// An address kept beside its owner. It stays inside this module, where the invariant of
/// [`RankedMembers`] keeps it valid; an address that leaves is bound to a borrow again.
type Handle = Member<'static, Scored>;

/// The two structures.
///
/// Invariant: `order` has exactly the members of `members`. A member enters the table before the
/// index, and leaves the index before it is freed.
pub(super) struct RankedMembers {
    members: Members<Scored>,
    order: Ranked<Handle>,
}

impl RankedMembers {
    /// Sorts members, whose scores are not NaN.
    pub(super) fn from_members(members: Members<Scored>) -> Self {
        // SAFETY: the handles go into the index of these very members.
        let handles = members.iter().map(|member| unsafe { member.detach() });
        let mut handles: Vec<Handle> = handles.collect();
        // Adding zero makes one zero of both, as the index has it.
        handles.sort_unstable_by(|left, right| {
            let by_score = (left.score() + 0.0).total_cmp(&(right.score() + 0.0));
            by_score.then_with(|| left.name().cmp(right.name()))
        });
        RankedMembers { members, order: Ranked::from_sorted(handles) }
    }

    /// Takes over pairs that ascend.
    pub(super) fn from_ascending<'a>(pairs: impl Iterator<Item = (Element<'a>, f64)>) -> Self {
        let (mut members, mut buffer) = (Members::new(), Default::default());
        let mut handles = Vec::new();
        for (member, score) in pairs {
            let added = members.add_scored(member.as_bytes(&mut buffer), score);
            debug_assert!(added.is_some(), "members are unique");
            // SAFETY: the handles go into the index of these very members.
            handles.extend(added.map(|member| unsafe { member.detach() }));
        }
        RankedMembers { members, order: Ranked::from_sorted(handles) }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// The members.
    pub(super) fn members(&self) -> &Members<Scored> {
        &self.members
    }

    /// The members, to be read by a snapshot: none may be added, removed or changed there.
    pub(super) fn members_mut(&mut self) -> &mut Members<Scored> {
        &mut self.members
    }

    #[inline]
    pub(super) fn contains(&self, member: &[u8]) -> bool {
        self.members.find(member).is_some()
    }

    #[inline]
    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        Some(self.members.get(member)?.score())
    }

    pub(super) fn rank(&self, member: &[u8]) -> Option<usize> {
        self.order.rank_of(self.score(member)?, member)
    }

    pub(super) fn insert(&mut self, member: &[u8], score: f64) -> Insertion {
        let (member, added) = self.members.get_or_add(member, score);
        // SAFETY: used within this function, and kept by the index alone.
        let member = unsafe { member.detach() };
        if added {
            self.order.insert(member);
            return Insertion::Added;
        }
        if member.score() == score {
            return Insertion::Same;
        }
        self.members.before_change(base::hash::hash(member.name()));
        // SAFETY: the members are borrowed mutably, and the index calls this when it reads none.
        let found = self.order.rescore(member, score, |member, score| unsafe {
            member.set_score(score);
        });
        debug_assert!(found, "the index holds every member");
        Insertion::Updated
    }

    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let position = self.members.find(member)?;
        let score = self.members.at(position).score();
        let removed = self.order.remove(score, member);
        debug_assert!(removed.is_some(), "the index holds every member");
        self.members.remove_at(position);
        Some(score)
    }

    pub(super) fn remove_ranks(&mut self, ranks: ops::Range<usize>) {
        let kept = self.len() - ranks.len();
        // A table that a snapshot reads stays where it is.
        if ranks.len() > LEFT_BEHIND && ranks.len() / 2 >= kept && self.members.frozen().is_none() {
            return self.leave_behind(ranks);
        }
        let members = &mut self.members;
        self.order.remove_ranks(ranks.start, ranks.end, |member| {
            // SAFETY: it is a member of this table, by the invariant, and has left the index.
            unsafe { members.remove_member(member) }
        });
    }

    /// Copies the members that stay, which are few, and puts all others aside, because taking that
    /// many out of the table one by one would take long.
    #[cold]
    fn leave_behind(&mut self, ranks: ops::Range<usize>) {
        let (mut members, mut handles) = (Members::new(), Vec::new());
        for member in
            self.order.range(0..ranks.start).chain(self.order.range(ranks.end..self.len()))
        {
            // SAFETY: the handles go into the index of these very members.
            handles.push(unsafe { members.add_copy(member).detach() });
        }
        let order = Ranked::from_sorted(handles);
        let whole = std::mem::replace(self, RankedMembers { members, order });
        let bytes = whole.memory_usage(SAMPLES);
        garbage::put_others_aside(whole, bytes);
    }

    pub(super) fn pop_first(&mut self) -> Option<(OwnedElement, f64)> {
        let member = self.order.pop_first()?;
        Some(self.take(member))
    }

    pub(super) fn pop_last(&mut self) -> Option<(OwnedElement, f64)> {
        let member = self.order.pop_last()?;
        Some(self.take(member))
    }

    /// Frees a member that has left the index.
    fn take(&mut self, member: Handle) -> (OwnedElement, f64) {
        let taken = (Element::Str(member.name()).to_owned_element(), member.score());
        // SAFETY: it was in the index, hence is a member of this table; `taken` is a copy.
        unsafe { self.members.remove_member(member) };
        taken
    }

    pub(super) fn count_below(&self, score: f64) -> usize {
        self.order.count_below(score)
    }

    pub(super) fn count_up_to(&self, score: f64) -> usize {
        self.order.count_up_to(score)
    }

    /// Number of members at the front for which `before` is true.
    pub(super) fn count_while(&self, before: impl Fn(&[u8]) -> bool) -> usize {
        self.order.partition_point(|member| before(member.name()))
    }

    pub(super) fn range(&self, ranks: ops::Range<usize>) -> Ranks<'_> {
        Ranks(self.order.range(ranks))
    }

    pub(super) fn scan(
        &self,
        position: u32,
        mut visit: impl FnMut(Element<'_>, f64),
    ) -> Option<u32> {
        self.members.scan(position, |member| {
            let (member, score) = pair(member);
            visit(member, score);
        })
    }

    pub(super) fn random(&self, rng: &mut Rng) -> Option<(Element<'_>, f64)> {
        self.members.random(rng).map(pair)
    }

    pub(super) fn random_distinct<'a>(
        &'a self,
        count: usize,
        rng: &mut Rng,
        mut visit: impl FnMut((Element<'a>, f64)),
    ) {
        self.members.random_distinct(count, rng, |member| visit(pair(member)));
    }

    pub(super) fn chain_histogram(&self) -> Vec<usize> {
        self.members.chain_histogram()
    }

    /// Whether freeing it should be left to the background.
    pub(super) fn frees_slowly(&self) -> bool {
        self.members.frees_slowly()
    }

    pub(super) fn memory_usage(&self, samples: usize) -> usize {
        size_of_val(&self.members) + self.members.memory(samples) + self.order.memory_usage()
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn check(&self) {
        self.members.check();
        self.order.check();
        assert_eq!(self.order.len(), self.members.len());
        for (member, score) in self.range(0..self.len()) {
            let Element::Str(name) = member else { unreachable!("tables keep members as text") };
            assert_eq!(self.score(name), Some(score), "what the index holds is in the table");
        }
    }
}

impl Clone for RankedMembers {
    fn clone(&self) -> Self {
        let mut members = Members::new();
        let mut handles = Vec::with_capacity(self.len());
        for member in self.order.iter() {
            // SAFETY: the handles go into the index of these very members.
            handles.push(unsafe { members.add_copy(member).detach() });
        }
        RankedMembers { members, order: Ranked::from_sorted(handles) }
    }
}

#[inline]
fn pair(member: Member<'_, Scored>) -> (Element<'_>, f64) {
    (Element::Str(member.name()), member.score())
}

/// Iterator over members with their scores in the order of their ranks, from either end.
pub(super) struct Ranks<'a>(ranked::Range<'a, Handle>);

impl Ranks<'_> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a> Iterator for Ranks<'a> {
    type Item = (Element<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(pair)
    }
}

impl DoubleEndedIterator for Ranks<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(pair)
    }
}
