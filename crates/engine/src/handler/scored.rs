//! Sorted sets, as far as several families work on them: adding under conditions, for ZADD and
//! GEOADD, and the shape of a reply of members with their scores.

use resp::reply::Reply;
use smallvec::SmallVec;
use store::pack::Element;
use store::{Insertion, Key, Zset};

use crate::command::error::CommandError;
use crate::db::notify::{Class, Event};
use crate::engine::Context;
use crate::handler::elements::ReplyElements;

/// Members with their new scores. Most commands bring one.
pub type ScoredMembers<'a> = SmallVec<[(f64, &'a [u8]); 4]>;

/// When a member is added or given another score: the options of ZADD.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Conditions {
    /// NX: only if it is not there.
    pub only_new: bool,
    /// XX: only if it is there.
    pub only_present: bool,
    /// GT: only if its score becomes greater, or it is not there.
    pub only_greater: bool,
    /// LT: only if its score becomes less, or it is not there.
    pub only_less: bool,
}

impl Conditions {
    /// Whether a member that has this score, or is missing, may get another one.
    pub fn admit(self, present: Option<f64>, score: f64) -> bool {
        match present {
            None => !self.only_present,
            Some(present) => {
                !self.only_new
                    && (!self.only_greater || score > present)
                    && (!self.only_less || score < present)
            }
        }
    }

    /// Whether there are any.
    fn any(self) -> bool {
        self != Conditions::default()
    }
}

/// The result of adding members.
#[derive(Clone, Copy, Default)]
pub struct Additions {
    /// Members that were not there.
    pub added: u64,
    /// Members that have another score now.
    pub updated: u64,
}

impl Context<'_> {
    /// The sorted set to which members are about to be added. It is created if it does not exist,
    /// unless only existing members may change.
    #[inline]
    pub fn zset_to_fill(
        &mut self,
        key: &Key<'_>,
        conditions: Conditions,
    ) -> Result<Option<&mut Zset>, CommandError> {
        if conditions.only_present {
            self.db.zset_mut(key)
        } else {
            self.db.zset_or_new(key).map(Some)
        }
    }

    /// Adds members or changes their scores; the conditions must be met for each.
    #[inline]
    pub fn add_scored(
        &mut self,
        key: &Key<'_>,
        conditions: Conditions,
        members: &[(f64, &[u8])],
    ) -> Result<Additions, CommandError> {
        let limits = self.db.zset_limits();
        let mut additions = Additions::default();
        let Some(zset) = self.zset_to_fill(key, conditions)? else { return Ok(additions) };
        zset.expect(members.len(), limits);
        for &(score, member) in members {
            if conditions.any() && !conditions.admit(zset.score(member), score) {
                continue;
            }
            match zset.insert(member, score, limits) {
                Insertion::Added => additions.added += 1,
                Insertion::Updated => additions.updated += 1,
                Insertion::Same => {}
            }
        }
        let changes = additions.added + additions.updated;
        if changes > 0 {
            self.db.changed_times(key, Event(Class::ZSET, "zadd"), changes);
        }
        Ok(additions)
    }
}

/// Writes members of sorted sets, alone or with their scores: then pairs are arrays of their own in
/// RESP3, and follow each other in RESP2.
pub trait ReplyScored {
    /// The beginning of an array of this many members.
    fn scored_array(&mut self, members: usize, with_scores: bool);

    /// One member of such an array.
    fn scored(&mut self, member: Element<'_>, score: f64, with_scores: bool);
}

impl ReplyScored for Reply<'_> {
    #[inline]
    fn scored_array(&mut self, members: usize, with_scores: bool) {
        let flat = with_scores && !self.is_resp3();
        self.array(if flat { 2 * members } else { members });
    }

    #[inline]
    fn scored(&mut self, member: Element<'_>, score: f64, with_scores: bool) {
        if with_scores && self.is_resp3() {
            self.array(2);
        }
        self.element(member);
        if with_scores {
            self.double(score);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Conditions;

    #[test]
    fn conditions_look_at_the_present_score() {
        let none = Conditions::default();
        assert!(none.admit(None, 1.0) && none.admit(Some(1.0), 1.0) && !none.any());
        let only_new = Conditions { only_new: true, ..none };
        assert!(only_new.admit(None, 1.0) && !only_new.admit(Some(1.0), 2.0));
        let only_present = Conditions { only_present: true, ..none };
        assert!(!only_present.admit(None, 1.0) && only_present.admit(Some(1.0), 1.0));
        let only_greater = Conditions { only_greater: true, ..none };
        assert!(only_greater.admit(None, 1.0) && only_greater.admit(Some(1.0), 2.0));
        assert!(!only_greater.admit(Some(1.0), 1.0) && !only_greater.admit(Some(1.0), 0.0));
        let only_less = Conditions { only_less: true, ..none };
        assert!(only_less.admit(Some(1.0), 0.0) && !only_less.admit(Some(1.0), 1.0));
    }
}
