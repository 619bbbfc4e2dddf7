//! The fields of a large hash: found by name, and fields that expire also by their times.
//!
//! The table owns the fields. The index by time, which exists only while a field expires, has the
//! same addresses a second time. So a time is stored once, and a field that expires costs eight
//! bytes and a word of the index.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::snapshot::freeze::{Freezing, Frozen, Piece, PieceKind};
use crate::table::dict::Position;
use crate::table::ranked::{Ranked, RankedItem};
use crate::types::member::{Member, Members, Valued};

/// An address kept beside its owner. It stays inside this module, where the invariant of [`Fields`]
/// keeps it valid.
#[derive(Clone, Copy)]
struct Expiring(Member<'static, Valued>);

impl Expiring {
    fn at(self) -> u64 {
        self.0.expire_at().unwrap_or(u64::MAX)
    }
}

impl RankedItem for Expiring {
    /// Times have 48 bits at most, so that none is rounded.
    #[inline]
    fn score(&self) -> f64 {
        self.at() as f64
    }

    #[inline]
    fn member(&self) -> &[u8] {
        self.0.name()
    }

    #[inline]
    fn prefetch(&self) {
        self.0.prefetch();
    }
}

/// The two structures.
///
/// Invariant: `by_expiry` has exactly those of `members` that expire, and exists only if one does.
/// A field enters the table before the index, and leaves the index before it is changed or freed.
pub(super) struct Fields {
    members: Members<Valued>,
    by_expiry: Option<Box<Ranked<Expiring>>>,
}

impl Fields {
    pub(super) const fn new() -> Self {
        Fields { members: Members::new(), by_expiry: None }
    }

    #[inline]
    pub(super) fn members(&self) -> &Members<Valued> {
        &self.members
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// The earliest time at which a field expires.
    #[inline]
    pub(super) fn next_expiry(&self) -> Option<u64> {
        self.by_expiry.as_ref()?.first().map(Expiring::at)
    }

    /// How many fields expire before a time.
    pub(super) fn count_expired(&self, now: u64) -> usize {
        self.by_expiry.as_ref().map_or(0, |by_expiry| by_expiry.count_below(now as f64))
    }

    /// Shows up to `count` of the fields that expire before a time, the earliest first.
    pub(super) fn each_expired(&self, now: u64, count: usize, mut visit: impl FnMut(&[u8])) {
        if let Some(by_expiry) = &self.by_expiry {
            let count = by_expiry.count_below(now as f64).min(count);
            by_expiry.range(0..count).for_each(|by_expiry| visit(by_expiry.0.name()));
        }
    }

    /// Sets the value of a field, which expires at `expire_at` from now on. Returns whether it is
    /// new.
    pub(super) fn set(&mut self, name: &[u8], value: &[u8], expire_at: Option<u64>) -> bool {
        let position = self.members.find(name);
        match position {
            Some(position) => {
                self.forget(position);
                self.members.set_value(position, value, expire_at);
                if expire_at.is_some() {
                    self.note(position);
                }
            }
            None => {
                let member = self.members.put_field(name, value, expire_at);
                if expire_at.is_some() {
                    // SAFETY: the handle goes into the index of these very members.
                    let member = unsafe { member.detach() };
                    self.index(member);
                }
            }
        }
        position.is_none()
    }

    /// Sets when a field expires, if the field exists.
    pub(super) fn set_expire_at(&mut self, name: &[u8], expire_at: Option<u64>) {
        if let Some(position) = self.members.find(name) {
            self.forget(position);
            self.members.set_expire_at(position, expire_at);
            self.note(position);
        }
    }

    /// Removes a field. Returns whether it was there.
    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        let Some(position) = self.members.find(name) else { return false };
        self.forget(position);
        self.members.remove_at(position);
        true
    }

    /// Takes a field out of the index, if it expires.
    #[inline]
    fn forget(&mut self, position: Position) {
        let Some(index) = &mut self.by_expiry else { return };
        let member = self.members.at(position);
        let Some(at) = member.expire_at() else { return };
        let removed = index.remove(at as f64, member.name());
        debug_assert!(removed.is_some(), "the index holds every field that expires");
        if index.is_empty() {
            self.by_expiry = None;
        }
    }

    /// Takes a field into the index, if it expires.
    #[inline]
    fn note(&mut self, position: Position) {
        // SAFETY: the handle goes into the index of these very members.
        let member = unsafe { self.members.at(position).detach() };
        self.index(member);
    }

    #[inline]
    fn index(&mut self, member: Member<'static, Valued>) {
        if member.expire_at().is_some() {
            self.by_expiry.get_or_insert_with(Box::default).insert(Expiring(member));
        }
    }

    /// Whether freeing it should be left to the background.
    pub(super) fn frees_slowly(&self) -> bool {
        self.members.frees_slowly()
    }

    pub(super) fn memory_usage(&self, samples: usize) -> usize {
        let index = self.by_expiry.as_ref().map_or(0, |by_expiry| by_expiry.memory_usage());
        size_of_val(&self.members) + self.members.memory(samples) + index
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn check(&self) {
        self.members.check();
        let expiring = self.members.iter().filter(|member| member.expire_at().is_some()).count();
        let Some(by_expiry) = &self.by_expiry else {
            assert_eq!(expiring, 0, "what expires is in the index");
            return;
        };
        by_expiry.check();
        assert!(
            expiring > 0 && by_expiry.len() == expiring,
            "what expires is in the index, and no more"
        );
        for Expiring(member) in by_expiry.iter() {
            let found = self.members.get(member.name()).and_then(Member::expire_at);
            assert_eq!(found, member.expire_at(), "what the index holds is in the table");
        }
    }
}

impl Clone for Fields {
    fn clone(&self) -> Self {
        let members = self.members.clone();
        let by_expiry = self.by_expiry.as_ref().map(|by_expiry| {
            let copy_of = |Expiring(member): Expiring| {
                let copy = members.get(member.name()).expect("a copy has all members");
                // SAFETY: the handle goes into the index of these very members.
                Expiring(unsafe { copy.detach() })
            };
            Box::new(Ranked::from_sorted(by_expiry.iter().map(copy_of)))
        });
        Fields { members, by_expiry }
    }
}

impl Freezing for Fields {
    fn kind(&self) -> PieceKind {
        PieceKind::Field(self.next_expiry())
    }

    fn len(&self) -> usize {
        self.members.len()
    }

    fn freeze(&mut self, frozen: Arc<Frozen>) {
        self.members.freeze(frozen);
    }

    fn frozen(&self) -> Option<&Arc<Frozen>> {
        self.members.frozen()
    }

    fn read_frozen(
        &mut self,
        count: usize,
        bytes: usize,
        visit: &mut dyn FnMut(Piece<'_>),
    ) -> bool {
        self.members.read_frozen(count, bytes, visit)
    }
}
