//! Sets: an intset while all members are integers and few, a table of members otherwise.
//!
//! The two encodings and the conditions for leaving the first are those of Redis. A set of integers
//! costs its intset block and nothing else (see [`PackedOr`]).

use std::iter::FusedIterator;
use std::sync::Arc;

use base::limits::FREED_AT_ONCE_BYTES;
use base::num::parse_i64;
use base::rng::Rng;

use crate::freeze::{Freezing, Frozen};
use crate::member::{Member, MemberIter, Members, Plain};
use crate::pack::{
    Element, Form, FormMut, INTEGER_TEXT_BYTES, Intset, IntsetIter, OwnedElement, PackedOr,
    format_integer,
};
use crate::packed::{Limits, choose};

/// An intset may not grow beyond this, whatever the setting says: its length field has 32 bits.
const MAX_INTSET_ENTRIES: usize = 1 << 30;

/// A set of byte strings: eight bytes, as `Option<Set>` is.
#[repr(transparent)]
#[derive(Clone)]
pub struct Set(PackedOr<Intset, Members<Plain>>);

impl Set {
    /// The snapshot that reads the table, if one does.
    pub(crate) fn frozen(&self) -> Option<&Arc<Frozen>> {
        match self.0.get() {
            Form::Packed(_) => None,
            Form::Boxed(members) => members.frozen(),
        }
    }

    /// The table, if it is large enough to have one.
    pub(crate) fn freezing(&mut self) -> Option<&mut dyn Freezing> {
        match self.0.get_mut() {
            FormMut::Packed(_) => None,
            FormMut::Boxed(members) => Some(members),
        }
    }

    /// An empty set.
    pub fn new() -> Self {
        Set(PackedOr::packed(Intset::new()))
    }

    /// Takes over an intset, and makes it a table if it exceeds `limits.entries`.
    pub fn from_intset(intset: Intset, limits: Limits) -> Self {
        let mut set = Set(PackedOr::packed(intset));
        set.convert_above(limits.entries);
        set
    }

    /// The intset, while the set is one.
    pub fn as_intset(&self) -> Option<&Intset> {
        match self.0.get() {
            Form::Packed(intset) => Some(intset),
            Form::Boxed(_) => None,
        }
    }

    /// The name that OBJECT ENCODING gives.
    pub fn encoding(&self) -> &'static str {
        if self.as_intset().is_some() { "intset" } else { "hashtable" }
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        match self.0.get() {
            Form::Packed(intset) => intset.len(),
            Form::Boxed(members) => members.len(),
        }
    }

    /// Whether there are no members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `member` is in the set.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        match self.0.get() {
            Form::Packed(intset) => parse_i64(member).is_some_and(|value| intset.contains(value)),
            Form::Boxed(members) => members.find(member).is_some(),
        }
    }

    /// Whether a member of another set is in this one too.
    #[inline]
    pub fn contains_element(&self, member: Element<'_>) -> bool {
        match (self.0.get(), member) {
            (Form::Packed(intset), Element::Int(value)) => intset.contains(value),
            _ => self.contains(member.as_bytes(&mut [0; INTEGER_TEXT_BYTES])),
        }
    }

    /// Adds `member`. Returns whether it is new.
    pub fn add(&mut self, member: &[u8], limits: Limits) -> bool {
        match self.0.get_mut() {
            FormMut::Boxed(members) => members.add(member),
            FormMut::Packed(intset) => {
                let Some(value) = parse_i64(member) else {
                    return self.convert().add(member);
                };
                let added = intset.add(value);
                // A member that was there converts nothing, whatever the limit is by now.
                if added {
                    self.convert_above(limits.entries);
                }
                added
            }
        }
    }

    /// Adds a member of another set. Returns whether it is new.
    pub fn add_element(&mut self, member: Element<'_>, limits: Limits) -> bool {
        match (self.0.get_mut(), member) {
            (FormMut::Packed(intset), Element::Int(value)) => {
                let added = intset.add(value);
                // A member that was there converts nothing, whatever the limit is by now.
                if added {
                    self.convert_above(limits.entries);
                }
                added
            }
            _ => self.add(member.as_bytes(&mut [0; INTEGER_TEXT_BYTES]), limits),
        }
    }

    /// Removes `member`. Returns whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match self.0.get_mut() {
            FormMut::Packed(intset) => parse_i64(member).is_some_and(|value| intset.remove(value)),
            FormMut::Boxed(members) => members.remove(member),
        }
    }

    /// Removes a member that was found in another set. Returns whether it was there.
    pub fn remove_element(&mut self, member: Element<'_>) -> bool {
        match (self.0.get_mut(), member) {
            (FormMut::Packed(intset), Element::Int(value)) => intset.remove(value),
            _ => self.remove(member.as_bytes(&mut [0; INTEGER_TEXT_BYTES])),
        }
    }

    /// All members: ascending in an intset, in no order that means anything in a table.
    pub fn iter(&self) -> SetIter<'_> {
        SetIter(match self.0.get() {
            Form::Packed(intset) => Inner::Packed(intset.iter()),
            Form::Boxed(members) => Inner::Table(members.iter()),
        })
    }

    /// Shows the members at `position` of a scan, which begins at 0, and returns the next position, or
    /// `None` at the end. What is there during all of a scan is shown at least once. An intset is shown
    /// as a whole.
    pub fn scan(&self, position: u32, mut visit: impl FnMut(Element<'_>)) -> Option<u32> {
        match self.0.get() {
            Form::Packed(_) => {
                self.iter().for_each(visit);
                None
            }
            Form::Boxed(members) => members.scan(position, |member| visit(element(member))),
        }
    }

    /// A member chosen with equal chances.
    pub fn random(&self, rng: &mut Rng) -> Option<Element<'_>> {
        match self.0.get() {
            Form::Packed(intset) => intset.get(rng.index(intset.len())).map(Element::Int),
            Form::Boxed(members) => members.random(rng).map(element),
        }
    }

    /// Shows `count` members, each chosen anew, so that some may come repeatedly. Nothing if the set
    /// is empty.
    pub fn random_repeating<'a>(
        &'a self,
        count: usize,
        rng: &mut Rng,
        mut visit: impl FnMut(Element<'a>),
    ) {
        for _ in 0..count {
            let Some(member) = self.random(rng) else { return };
            visit(member);
        }
    }

    /// Shows up to `count` different members, each set of them with equal chances.
    pub fn random_distinct<'a>(
        &'a self,
        count: usize,
        rng: &mut Rng,
        mut visit: impl FnMut(Element<'a>),
    ) {
        match self.0.get() {
            Form::Packed(_) => choose(self.iter(), self.len(), count, rng, visit),
            Form::Boxed(members) => {
                members.random_distinct(count, rng, |member| visit(element(member)));
            }
        }
    }

    /// Removes and returns a member chosen with equal chances.
    pub fn pop_random(&mut self, rng: &mut Rng) -> Option<OwnedElement> {
        match self.0.get_mut() {
            FormMut::Packed(intset) => intset.take(rng.index(intset.len())).map(OwnedElement::Int),
            FormMut::Boxed(members) => {
                let name = members.random(rng)?.name();
                let popped = Element::Str(name).to_owned_element();
                let place = members.find(name)?;
                members.remove_at(place);
                Some(popped)
            }
        }
    }

    /// How many chains of the table's buckets hold n members each; `None` of a packed set.
    pub fn chain_histogram(&self) -> Option<Vec<usize>> {
        match self.0.get() {
            Form::Packed(_) => None,
            Form::Boxed(members) => Some(members.chain_histogram()),
        }
    }

    /// Whether freeing it should be left to the background: see [`crate::Entry::is_large`].
    pub(crate) fn frees_slowly(&self) -> bool {
        match self.0.get() {
            Form::Packed(intset) => intset.memory_usage() > FREED_AT_ONCE_BYTES,
            Form::Boxed(members) => members.frees_slowly(),
        }
    }

    /// Bytes that the set takes besides its handle; a table's members are estimated from the first
    /// `samples` of them.
    pub fn memory_usage(&self, samples: usize) -> usize {
        match self.0.get() {
            Form::Packed(intset) => intset.memory_usage(),
            Form::Boxed(members) => size_of_val(members) + members.memory(samples),
        }
    }

    /// Turns an intset into a table, for good.
    pub fn unpack(&mut self) {
        self.convert();
    }

    /// The table, made from the intset if necessary.
    fn convert(&mut self) -> &mut Members<Plain> {
        if let Form::Packed(intset) = self.0.get() {
            let mut members = Members::new();
            for value in intset {
                members.add(format_integer(value, &mut [0; INTEGER_TEXT_BYTES]));
            }
            self.0 = PackedOr::boxed(Box::new(members));
        }
        match self.0.get_mut() {
            FormMut::Boxed(members) => members,
            FormMut::Packed(_) => unreachable!("the table was made just now"),
        }
    }

    fn convert_above(&mut self, entries: usize) {
        if self.len() > entries.min(MAX_INTSET_ENTRIES) {
            self.convert();
        }
    }

    /// Asserts the invariants.
    ///
    /// # Panics
    /// If one does not hold.
    #[cfg(any(test, debug_assertions))]
    pub fn check(&self) {
        match self.0.get() {
            Form::Packed(intset) => intset.check(),
            Form::Boxed(members) => members.check(),
        }
    }
}

fn element(member: Member<'_, Plain>) -> Element<'_> {
    Element::Str(member.name())
}

impl Default for Set {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Set {
    type Item = Element<'a>;
    type IntoIter = SetIter<'a>;

    fn into_iter(self) -> SetIter<'a> {
        self.iter()
    }
}

/// Iterator over the members of a [`Set`].
pub struct SetIter<'a>(Inner<'a>);

#[expect(
    clippy::large_enum_variant,
    reason = "an iterator lives on the stack, and only one at a time"
)]
enum Inner<'a> {
    Packed(IntsetIter<'a>),
    Table(MemberIter<'a, Plain>),
}

impl<'a> Iterator for SetIter<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        match &mut self.0 {
            Inner::Packed(values) => values.next().map(Element::Int),
            Inner::Table(members) => members.next().map(element),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Inner::Packed(values) => values.size_hint(),
            Inner::Table(members) => members.size_hint(),
        }
    }
}

impl ExactSizeIterator for SetIter<'_> {}

impl FusedIterator for SetIter<'_> {}

#[cfg(test)]
mod tests;
