//! Building a sorted set in one go: results of ZUNIONSTORE and similar commands, and loading.

use super::table::RankedMembers;
use super::{Zset, packed};
use crate::pack::{Element, Listpack, PackedOr};
use crate::types::member::{Members, Scored};
use crate::types::packed::{Limits, has_room_for_pair};

/// Members on their way into a [`Zset`]: they come in any order and are sorted once, at the end.
///
/// The result is a listpack if it fits the limits, even if there was more in between. Scores are
/// never NaN: callers refuse or replace it.
pub struct ZsetBuilder {
    members: Members<Scored>,
}

impl ZsetBuilder {
    /// Nothing yet.
    pub fn new() -> Self {
        ZsetBuilder { members: Members::new() }
    }

    /// Number of members so far.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no members so far.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The score that `member` has so far.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        Some(self.members.get(member)?.score())
    }

    /// Adds `member`. Returns whether it is new; if not, nothing changes.
    pub fn add(&mut self, member: &[u8], score: f64) -> bool {
        debug_assert!(!score.is_nan(), "callers refuse NaN");
        self.members.add_scored(member, score).is_some()
    }

    /// Adds `member`, or gives it the score that `combine` computes from its present one and
    /// `score`.
    pub fn merge(&mut self, member: &[u8], score: f64, combine: impl FnOnce(f64, f64) -> f64) {
        let Some(position) = self.members.find(member) else {
            self.add(member, score);
            return;
        };
        let combined = combine(self.members.at(position).score(), score);
        debug_assert!(!combined.is_nan(), "callers replace NaN");
        self.members.set_score(position, combined);
    }

    /// Removes `member`. Returns whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        self.members.remove(member)
    }

    /// The sorted set.
    pub fn finish(self, limits: Limits) -> Zset {
        let fits = self.members.len() <= limits.entries
            && self.members.iter().all(|member| limits.admit(member.name()));
        let table = RankedMembers::from_members(self.members);
        if fits && let Some(listpack) = pack(&table) {
            return Zset(PackedOr::packed(listpack));
        }
        Zset(PackedOr::boxed(Box::new(table)))
    }
}

/// The members as a listpack, unless it would be too large for one.
fn pack(table: &RankedMembers) -> Option<Listpack> {
    let mut listpack = Listpack::new();
    for (member, score) in table.range(0..table.len()) {
        let Element::Str(name) = member else { unreachable!("tables keep members as text") };
        if !has_room_for_pair(&listpack, name.len(), packed::SCORE_TEXT_BYTES) {
            return None;
        }
        packed::insert(&mut listpack, name, score);
    }
    Some(listpack)
}

impl Default for ZsetBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for ZsetBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZsetBuilder").field("len", &self.len()).finish_non_exhaustive()
    }
}
