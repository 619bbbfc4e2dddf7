//! Hashes: a listpack of fields and values while small, a table of members when large.
//!
//! The two encodings, the conditions for leaving the first, and the bytes of the listpack are those of
//! Redis. A small hash costs its listpack block and nothing else (see [`PackedOr`]).

use std::iter::FusedIterator;
use std::sync::Arc;

use base::limits::FREED_AT_ONCE_BYTES;
use base::rng::Rng;

use crate::freeze::{Freezing, Frozen};
use crate::member::{Member, MemberIter, Members, Valued};
use crate::pack::{Element, Elements, Encoded, Form, FormMut, Listpack, ListpackSlice, PackedOr};
use crate::packed::{Limits, Malformed, choose, has_duplicates, has_room_for_pair};

/// A map from fields to values: eight bytes, as `Option<Hash>` is.
#[repr(transparent)]
#[derive(Clone)]
pub struct Hash(PackedOr<Listpack, Members<Valued>>);

impl Hash {
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

    /// An empty hash.
    pub fn new() -> Self {
        Hash(PackedOr::packed(Listpack::new()))
    }

    /// Takes over a listpack of fields and values, and unpacks it if it exceeds `limits.entries`.
    ///
    /// # Errors
    /// [`Malformed::Unpaired`], [`Malformed::Duplicate`].
    pub fn from_listpack(listpack: Listpack, limits: Limits) -> Result<Self, Malformed> {
        if !listpack.len().is_multiple_of(2) {
            return Err(Malformed::Unpaired);
        }
        if has_duplicates(listpack.elements().step_by(2)) {
            return Err(Malformed::Duplicate);
        }
        let mut hash = Hash(PackedOr::packed(listpack));
        hash.unpack_above(limits.entries);
        Ok(hash)
    }

    /// The listpack, while small: fields and values in turn.
    pub fn as_listpack(&self) -> Option<&ListpackSlice> {
        match self.0.get() {
            Form::Packed(listpack) => Some(listpack),
            Form::Boxed(_) => None,
        }
    }

    /// Whether the hash is still a listpack.
    pub fn is_packed(&self) -> bool {
        self.as_listpack().is_some()
    }

    /// The name that OBJECT ENCODING gives.
    pub fn encoding(&self) -> &'static str {
        if self.is_packed() { "listpack" } else { "hashtable" }
    }

    /// Number of fields.
    #[inline]
    pub fn len(&self) -> usize {
        match self.0.get() {
            Form::Packed(listpack) => listpack.len() / 2,
            Form::Boxed(members) => members.len(),
        }
    }

    /// Whether there are no fields.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self.0.get() {
            Form::Packed(listpack) => listpack.is_empty(),
            Form::Boxed(members) => members.is_empty(),
        }
    }

    /// The value of `field`.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Element<'_>> {
        match self.0.get() {
            Form::Packed(listpack) => {
                let value = listpack.next(listpack.find(field, 1)?)?;
                Some(listpack.element(value))
            }
            Form::Boxed(members) => Some(Element::Str(members.get(field)?.value())),
        }
    }

    /// Whether there is such a field.
    #[inline]
    pub fn contains(&self, field: &[u8]) -> bool {
        match self.0.get() {
            Form::Packed(listpack) => listpack.find(field, 1).is_some(),
            Form::Boxed(members) => members.find(field).is_some(),
        }
    }

    /// Length of the value of `field` in bytes, zero if there is no such field.
    pub fn value_len(&self, field: &[u8]) -> usize {
        self.get(field).map_or(0, |value| value.len())
    }

    /// Sets the value of `field`. Returns whether the field is new.
    pub fn set(&mut self, field: &[u8], value: &[u8], limits: Limits) -> bool {
        if let FormMut::Packed(listpack) = self.0.get_mut() {
            let fits = limits.admit(field)
                && limits.admit(value)
                && has_room_for_pair(listpack, field.len(), value.len());
            if fits {
                let added = set_packed(listpack, field, value);
                self.unpack_above(limits.entries);
                return added;
            }
        }
        self.convert().set(field, value)
    }

    /// Removes `field`. Returns whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match self.0.get_mut() {
            FormMut::Packed(listpack) => {
                let position = listpack.find(field, 1);
                position.map(|position| listpack.remove(position, 2)).is_some()
            }
            FormMut::Boxed(members) => members.remove(field),
        }
    }

    /// All fields with their values, in no order that means anything.
    pub fn iter(&self) -> HashIter<'_> {
        HashIter(match self.0.get() {
            Form::Packed(listpack) => Inner::Packed(listpack.elements(), listpack.len() / 2),
            Form::Boxed(members) => Inner::Table(members.iter()),
        })
    }

    /// Shows the fields at `position` of a scan, which begins at 0, and returns the next position, or
    /// `None` at the end. What is there during all of a scan is shown at least once. A listpack is
    /// shown as a whole.
    pub fn scan(
        &self,
        position: u32,
        mut visit: impl FnMut(Element<'_>, Element<'_>),
    ) -> Option<u32> {
        match self.0.get() {
            Form::Packed(_) => {
                self.iter().for_each(|(field, value)| visit(field, value));
                None
            }
            Form::Boxed(members) => members.scan(position, |member| {
                let (field, value) = pair(member);
                visit(field, value);
            }),
        }
    }

    /// A field with its value, chosen with equal chances.
    pub fn random(&self, rng: &mut Rng) -> Option<(Element<'_>, Element<'_>)> {
        match self.0.get() {
            Form::Packed(listpack) => {
                let index = rng.index(self.len());
                let field = listpack.seek(2 * index as i64)?;
                let value = listpack.next(field)?;
                Some((listpack.element(field), listpack.element(value)))
            }
            Form::Boxed(members) => members.random(rng).map(pair),
        }
    }

    /// Shows `count` fields with their values, each chosen anew, so that some may come repeatedly.
    /// Nothing if the hash is empty.
    pub fn random_repeating<'a>(
        &'a self,
        count: usize,
        rng: &mut Rng,
        mut visit: impl FnMut(Element<'a>, Element<'a>),
    ) {
        match self.0.get() {
            Form::Packed(_) => {
                let pairs: Vec<_> = self.iter().collect();
                for _ in 0..count {
                    let Some(&(field, value)) = pairs.get(rng.index(pairs.len())) else { return };
                    visit(field, value);
                }
            }
            Form::Boxed(members) => {
                for _ in 0..count {
                    let Some(member) = members.random(rng) else { return };
                    let (field, value) = pair(member);
                    visit(field, value);
                }
            }
        }
    }

    /// Shows up to `count` different fields with their values, each set of them with equal chances.
    pub fn random_distinct<'a>(
        &'a self,
        count: usize,
        rng: &mut Rng,
        mut visit: impl FnMut(Element<'a>, Element<'a>),
    ) {
        let mut visit = |(field, value)| visit(field, value);
        match self.0.get() {
            Form::Packed(_) => choose(self.iter(), self.len(), count, rng, visit),
            Form::Boxed(members) => {
                members.random_distinct(count, rng, |member| visit(pair(member)));
            }
        }
    }

    /// How many chains of the table's buckets hold n members each; `None` of a packed hash.
    pub fn chain_histogram(&self) -> Option<Vec<usize>> {
        match self.0.get() {
            Form::Packed(_) => None,
            Form::Boxed(members) => Some(members.chain_histogram()),
        }
    }

    /// Whether freeing it should be left to the background: see [`crate::Entry::is_large`].
    pub(crate) fn frees_slowly(&self) -> bool {
        match self.0.get() {
            Form::Packed(listpack) => listpack.memory_usage() > FREED_AT_ONCE_BYTES,
            Form::Boxed(members) => members.frees_slowly(),
        }
    }

    /// Bytes that the hash takes besides its handle; a table's members are estimated from the first
    /// `samples` of them.
    pub fn memory_usage(&self, samples: usize) -> usize {
        match self.0.get() {
            Form::Packed(listpack) => listpack.memory_usage(),
            Form::Boxed(members) => size_of_val(members) + members.memory(samples),
        }
    }

    /// Turns a listpack into a table, for good.
    pub fn unpack(&mut self) {
        self.convert();
    }

    /// The table, made from the listpack if necessary.
    fn convert(&mut self) -> &mut Members<Valued> {
        if self.is_packed() {
            let mut members = Members::new();
            let (mut field_text, mut value_text) = Default::default();
            for (field, value) in self.iter() {
                members.set(field.as_bytes(&mut field_text), value.as_bytes(&mut value_text));
            }
            self.0 = PackedOr::boxed(Box::new(members));
        }
        match self.0.get_mut() {
            FormMut::Boxed(members) => members,
            FormMut::Packed(_) => unreachable!("the table was made just now"),
        }
    }

    fn unpack_above(&mut self, entries: usize) {
        if self.len() > entries {
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
            Form::Packed(listpack) => {
                assert!(ListpackSlice::from_bytes(listpack.as_bytes()).is_ok());
                assert_eq!(listpack.len() % 2, 0, "each field has a value");
                assert!(!has_duplicates(listpack.elements().step_by(2)), "fields are unique");
            }
            Form::Boxed(members) => members.check(),
        }
    }
}

fn set_packed(listpack: &mut Listpack, field: &[u8], value: &[u8]) -> bool {
    let place = listpack.find(field, 1).and_then(|field| listpack.next(field));
    match place {
        Some(place) => listpack.replace(place, value),
        None => listpack.extend_back([field, value].map(Encoded::text)),
    }
    place.is_none()
}

fn pair(member: Member<'_, Valued>) -> (Element<'_>, Element<'_>) {
    (Element::Str(member.name()), Element::Str(member.value()))
}

impl Default for Hash {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Hash {
    type Item = (Element<'a>, Element<'a>);
    type IntoIter = HashIter<'a>;

    fn into_iter(self) -> HashIter<'a> {
        self.iter()
    }
}

/// Iterator over the fields of a [`Hash`] with their values.
pub struct HashIter<'a>(Inner<'a>);

#[expect(
    clippy::large_enum_variant,
    reason = "an iterator lives on the stack, and only one at a time"
)]
enum Inner<'a> {
    /// The elements of a listpack, and how many pairs are left.
    Packed(Elements<'a>, usize),
    Table(MemberIter<'a, Valued>),
}

impl<'a> Iterator for HashIter<'a> {
    type Item = (Element<'a>, Element<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Inner::Packed(elements, left) => {
                let pair = (elements.next()?, elements.next()?);
                *left -= 1;
                Some(pair)
            }
            Inner::Table(members) => members.next().map(pair),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            Inner::Packed(_, left) => *left,
            Inner::Table(members) => members.len(),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for HashIter<'_> {}

impl FusedIterator for HashIter<'_> {}

#[cfg(test)]
mod tests;
