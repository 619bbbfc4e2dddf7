//! A hash as it is at an instant: fields whose time is over are hidden, though they may not have
//! been removed yet.

use std::collections::HashSet;

use base::rng::Rng;

use super::{Field, Hash, Parts, pair};
use crate::pack::Element;
use crate::types::packed::choose;

/// A hash, without the fields that have expired. If none has, which is found out once, it costs no
/// more than the hash itself.
#[derive(Clone, Copy)]
pub struct HashView<'a> {
    hash: &'a Hash,
    /// Fields that expire before this time are hidden. 0 if none is.
    now: u64,
}

impl<'a> HashView<'a> {
    /// The hash at a time, in milliseconds of Unix time.
    #[inline]
    pub fn new(hash: &'a Hash, now: u64) -> HashView<'a> {
        HashView { hash, now: if hash.has_expired(now) { now } else { 0 } }
    }

    /// The hash as it is stored, with the expired fields.
    pub fn whole(self) -> &'a Hash {
        self.hash
    }

    /// Whether the hash still contains a field that has expired.
    #[inline]
    pub fn hides_some(self) -> bool {
        self.now > 0
    }

    #[inline]
    fn shows(self, expire_at: Option<u64>) -> bool {
        expire_at.is_none_or(|at| at >= self.now)
    }

    fn hidden(self) -> usize {
        if self.hides_some() { self.hash.count_expired(self.now) } else { 0 }
    }

    /// Number of fields.
    #[inline]
    pub fn len(self) -> usize {
        self.hash.len() - self.hidden()
    }

    /// Whether there are no fields.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The value of `field`.
    #[inline]
    pub fn get(self, field: &[u8]) -> Option<Element<'a>> {
        if self.hides_some() {
            return self.get_timed(field).map(|(value, _)| value);
        }
        self.hash.get(field)
    }

    /// The value of `field`, and when it expires.
    pub fn get_timed(self, field: &[u8]) -> Option<(Element<'a>, Option<u64>)> {
        self.hash.get_timed(field).filter(|&(_, expire_at)| self.shows(expire_at))
    }

    /// Whether there is such a field.
    #[inline]
    pub fn contains(self, field: &[u8]) -> bool {
        if self.hides_some() { self.get(field).is_some() } else { self.hash.contains(field) }
    }

    /// All fields with their values and times, in no particular order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Field<'a>> {
        self.hash.iter().filter(move |field| self.shows(field.2))
    }

    /// Shows the fields at `position` of a scan, which begins at 0, and returns the next position,
    /// or `None` at the end. A field that is there during all of a scan is shown at least once. A
    /// listpack is shown as a whole.
    pub fn scan(
        self,
        position: u32,
        mut visit: impl FnMut(Element<'_>, Element<'_>),
    ) -> Option<u32> {
        match self.hash.parts() {
            Parts::Packed(_) => {
                self.iter().for_each(|(field, value, _)| visit(field, value));
                None
            }
            Parts::Table(fields) => fields.members().scan(position, |member| {
                if self.shows(member.expire_at()) {
                    let (field, value) = pair(member);
                    visit(field, value);
                }
            }),
        }
    }

    /// Whether most of the fields are visible, so that finding a visible one takes two draws at
    /// most, on average.
    fn shows_most(self) -> bool {
        2 * self.hidden() <= self.hash.len()
    }

    /// A field with its value, chosen with equal chances.
    pub fn random(self, rng: &mut Rng) -> Option<(Element<'a>, Element<'a>)> {
        let mut drawn = None;
        match self.hash.parts() {
            Parts::Packed(packed) if !self.hides_some() => {
                let index = rng.index(packed.len());
                let field = packed.listpack.seek(((1 + packed.skip()) * index) as i64)?;
                let value = packed.listpack.next(field)?;
                drawn = Some((packed.listpack.element(field), packed.listpack.element(value)));
            }
            Parts::Table(fields) if self.shows_most() => loop {
                let member = fields.members().random(rng)?;
                if self.shows(member.expire_at()) {
                    return Some(pair(member));
                }
            },
            _ => choose(self.iter(), self.len(), 1, rng, |(field, value, _)| {
                drawn = Some((field, value));
            }),
        }
        drawn
    }

    /// Shows `count` fields with their values, each chosen anew, so that some may come repeatedly.
    /// Nothing if the hash is empty.
    pub fn random_repeating(
        self,
        count: usize,
        rng: &mut Rng,
        mut visit: impl FnMut(Element<'a>, Element<'a>),
    ) {
        if matches!(self.hash.parts(), Parts::Table(_)) && self.shows_most() {
            for _ in 0..count {
                let Some((field, value)) = self.random(rng) else { return };
                visit(field, value);
            }
            return;
        }
        let fields: Vec<_> = self.iter().collect();
        for _ in 0..count {
            if fields.is_empty() {
                return;
            }
            let (field, value, _) = fields[rng.index(fields.len())];
            visit(field, value);
        }
    }

    /// Shows up to `count` different fields with their values, each set of them with equal chances.
    pub fn random_distinct(
        self,
        count: usize,
        rng: &mut Rng,
        mut visit: impl FnMut(Element<'a>, Element<'a>),
    ) {
        match self.hash.parts() {
            Parts::Table(fields) if !self.hides_some() => {
                fields.members().random_distinct(count, rng, |member| {
                    let (field, value) = pair(member);
                    visit(field, value);
                });
            }
            // As there: drawing until a new one comes is quick while most are new.
            Parts::Table(_) if count + self.hidden() <= self.hash.len() / 3 => {
                let mut seen = HashSet::with_capacity(count);
                while seen.len() < count {
                    let Some((field, value)) = self.random(rng) else { return };
                    if seen.insert(field.to_vec()) {
                        visit(field, value);
                    }
                }
            }
            _ => choose(self.iter(), self.len(), count, rng, |(field, value, _)| {
                visit(field, value);
            }),
        }
    }
}

impl std::fmt::Debug for HashView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
