//! Hashes: a listpack of fields and values while small, a table of members when large.
//!
//! The encodings, the conditions for leaving the first, and the bytes of the listpack are those of
//! Redis. A small hash costs its listpack block and nothing else (see [`PackedOr`]). A hash of
//! which no field expires pays nothing for expiry. In a hash with fields that expire, the listpack
//! has times too, which a bit of its pointer marks, and the table has an index by time.
//!
//! This file reads all fields that are stored. Code that serves a client reads a [`HashView`],
//! which leaves out fields that have expired but were not removed yet.

use std::iter::FusedIterator;
use std::sync::Arc;

use base::limits::FREED_AT_ONCE_BYTES;

use crate::pack::{
    Either, EitherBlock, EitherMut, Element, Form, FormMut, Listpack, ListpackMut, ListpackSlice,
    PackedOr,
};
use crate::snapshot::freeze::{Freezing, Frozen};
use crate::types::member::{Member, MemberIter, Valued};
use crate::types::packed::{Limits, Malformed, has_duplicates};

use fields::Fields;
use packed::{Packed, PackedIter};

pub use view::HashView;

mod fields;
mod packed;
mod view;

/// A map from fields to values: eight bytes, as `Option<Hash>` is.
#[repr(transparent)]
#[derive(Clone)]
pub struct Hash(PackedOr<EitherBlock<Listpack>, Fields>);

/// A hash as a reader sees it.
enum Parts<'a> {
    Packed(Packed<'a>),
    Table(&'a Fields),
}

/// A field, its value, and when it expires in milliseconds of Unix time.
pub type Field<'a> = (Element<'a>, Element<'a>, Option<u64>);

impl Hash {
    /// The latest time at which a field may expire: times have 48 bits, and the highest number
    /// means none in Redis.
    pub const LATEST: u64 = (1 << 48) - 2;

    #[inline]
    fn parts(&self) -> Parts<'_> {
        match self.0.get() {
            Form::Boxed(fields) => Parts::Table(fields),
            Form::Packed(block) => Parts::Packed(match block.get() {
                Either::First(listpack) => Packed { listpack, timed: false },
                Either::Listpack(listpack) => Packed { listpack, timed: true },
            }),
        }
    }

    /// Prefetches what these fields lead to: see [`crate::ValueRef::prefetch`].
    pub(crate) fn prefetch(&self, fields: &[&[u8]]) {
        if let Parts::Table(table) = self.parts() {
            table.members().prefetch(fields);
        }
    }

    /// The snapshot that reads the table, if one does.
    pub(crate) fn frozen(&self) -> Option<&Arc<Frozen>> {
        match self.0.get() {
            Form::Packed(_) => None,
            Form::Boxed(fields) => fields.frozen(),
        }
    }

    /// The table, if it is large enough to have one.
    pub(crate) fn freezing(&mut self) -> Option<&mut dyn Freezing> {
        match self.0.get_mut() {
            FormMut::Packed(_) => None,
            FormMut::Boxed(fields) => Some(fields),
        }
    }

    /// An empty hash.
    pub fn new() -> Self {
        Hash(PackedOr::packed(EitherBlock::first(Listpack::new())))
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
        let mut hash = Hash(PackedOr::packed(EitherBlock::first(listpack)));
        hash.unpack_above(limits.entries);
        Ok(hash)
    }

    /// The listpack, while small: fields and values in turn, and the times after the values if
    /// [`Hash::is_timed`].
    pub fn as_listpack(&self) -> Option<&ListpackSlice> {
        match self.parts() {
            Parts::Packed(packed) => Some(packed.listpack),
            Parts::Table(_) => None,
        }
    }

    /// The fields and values of a small hash, without the times, as a listpack of their own.
    pub fn to_pairs(&self) -> Option<Listpack> {
        match self.parts() {
            Parts::Packed(packed) => Some(packed.to_pairs()),
            Parts::Table(_) => None,
        }
    }

    /// Whether the hash is still a listpack.
    pub fn is_packed(&self) -> bool {
        self.as_listpack().is_some()
    }

    /// Whether the hash is a listpack with room for times, because a field of it once had an
    /// expiry.
    pub fn is_timed(&self) -> bool {
        matches!(self.parts(), Parts::Packed(Packed { timed: true, .. }))
    }

    /// The name that OBJECT ENCODING gives.
    pub fn encoding(&self) -> &'static str {
        match self.parts() {
            Parts::Packed(Packed { timed: false, .. }) => "listpack",
            Parts::Packed(_) => "listpackex",
            Parts::Table(_) => "hashtable",
        }
    }

    /// Number of fields.
    #[inline]
    pub fn len(&self) -> usize {
        match self.parts() {
            Parts::Packed(packed) => packed.len(),
            Parts::Table(fields) => fields.len(),
        }
    }

    /// Whether there are no fields.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self.parts() {
            Parts::Packed(packed) => packed.listpack.is_empty(),
            Parts::Table(fields) => fields.members().is_empty(),
        }
    }

    /// The value of `field`.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Element<'_>> {
        match self.parts() {
            Parts::Packed(packed) => {
                let value = packed.listpack.next(packed.find(field)?)?;
                Some(packed.listpack.element(value))
            }
            Parts::Table(fields) => Some(Element::Str(fields.members().get(field)?.value())),
        }
    }

    /// The value of `field`, and when it expires.
    pub fn get_timed(&self, field: &[u8]) -> Option<(Element<'_>, Option<u64>)> {
        match self.parts() {
            Parts::Packed(packed) => packed.get(field),
            Parts::Table(fields) => {
                let member = fields.members().get(field)?;
                Some((Element::Str(member.value()), member.expire_at()))
            }
        }
    }

    /// Whether there is such a field.
    #[inline]
    pub fn contains(&self, field: &[u8]) -> bool {
        match self.parts() {
            Parts::Packed(packed) => packed.find(field).is_some(),
            Parts::Table(fields) => fields.members().find(field).is_some(),
        }
    }

    /// The earliest time at which a field expires, in milliseconds of Unix time.
    #[inline]
    pub fn next_expiry(&self) -> Option<u64> {
        match self.parts() {
            Parts::Packed(packed) => packed.next_expiry(),
            Parts::Table(fields) => fields.next_expiry(),
        }
    }

    /// Whether a field has expired at `now`.
    #[inline]
    pub fn has_expired(&self, now: u64) -> bool {
        self.next_expiry().is_some_and(|at| at < now)
    }

    /// Up to `count` fields that expire before `now`.
    pub fn expired(&self, now: u64, count: usize) -> Vec<Vec<u8>> {
        let mut expired = Vec::new();
        match self.parts() {
            Parts::Packed(packed) => {
                let timed = packed.iter().take_while(|field| field.2.is_some_and(|at| at < now));
                expired.extend(timed.take(count).map(|(field, ..)| field.to_vec()));
            }
            Parts::Table(fields) => {
                fields.each_expired(now, count, |field| expired.push(field.to_vec()));
            }
        }
        expired
    }

    /// How many fields expire before `now`.
    fn count_expired(&self, now: u64) -> usize {
        match self.parts() {
            Parts::Packed(packed) => {
                packed.iter().take_while(|field| field.2.is_some_and(|at| at < now)).count()
            }
            Parts::Table(fields) => fields.count_expired(now),
        }
    }

    /// Chooses the encoding by the number of fields that a command is about to set. Those that are
    /// there already, or come twice, are counted too.
    #[inline]
    pub fn expect(&mut self, count: usize, limits: Limits) {
        if count > limits.entries {
            self.convert();
        }
    }

    /// Sets the value of `field`, which does not expire from now on. Returns whether it is new.
    #[inline]
    pub fn set(&mut self, field: &[u8], value: &[u8], limits: Limits) -> bool {
        if let FormMut::Boxed(fields) = self.0.get_mut() {
            return fields.set(field, value, None);
        }
        if let Some(listpack) = self.pairs_mut()
            && packed::admits(listpack, field, value, limits)
        {
            let added = packed::set_pair(listpack, field, value);
            self.unpack_above(limits.entries);
            return added;
        }
        self.put(field, value, None, limits)
    }

    /// Sets the value of `field` and keeps its expiry.
    pub fn set_keeping(&mut self, field: &[u8], value: &[u8], limits: Limits) -> bool {
        match self.get_timed(field).and_then(|(_, expire_at)| expire_at) {
            None => self.set(field, value, limits),
            expire_at => self.set_timed(field, value, expire_at, limits),
        }
    }

    /// Sets the value of `field`, and when it expires, which is from 1 to [`Hash::LATEST`]. Returns
    /// whether the field is new.
    pub fn set_timed(
        &mut self,
        field: &[u8],
        value: &[u8],
        expire_at: Option<u64>,
        limits: Limits,
    ) -> bool {
        if expire_at.is_none() {
            return self.set(field, value, limits);
        }
        self.make_room_for_times();
        self.put(field, value, expire_at, limits)
    }

    /// Sets a value and a time in a listpack with times, or in the table that the hash becomes if
    /// it is neither.
    fn put(&mut self, field: &[u8], value: &[u8], expire_at: Option<u64>, limits: Limits) -> bool {
        let packed = match self.triples_mut() {
            Some(mut listpack) if packed::admits(&listpack, field, value, limits) => {
                Some(packed::set_triple(&mut listpack, field, value, expire_at))
            }
            _ => None,
        };
        let Some(added) = packed else { return self.convert().set(field, value, expire_at) };
        self.unpack_above(limits.entries);
        added
    }

    /// Sets when `field` expires, if the field exists; `None` for never.
    pub fn set_expire_at(&mut self, field: &[u8], expire_at: Option<u64>) {
        if expire_at.is_some() {
            self.make_room_for_times();
        }
        match self.0.get_mut() {
            FormMut::Boxed(fields) => fields.set_expire_at(field, expire_at),
            FormMut::Packed(block) => {
                if let EitherMut::Listpack(mut listpack) = block.get_mut() {
                    packed::set_expire_at(&mut listpack, field, expire_at);
                }
            }
        }
    }

    /// The listpack without times, for change.
    #[inline]
    fn pairs_mut(&mut self) -> Option<&mut Listpack> {
        match self.0.get_mut() {
            FormMut::Boxed(_) => None,
            FormMut::Packed(block) => match block.get_mut() {
                EitherMut::First(listpack) => Some(listpack),
                EitherMut::Listpack(_) => None,
            },
        }
    }

    /// The listpack with times, for change.
    fn triples_mut(&mut self) -> Option<ListpackMut<'_>> {
        match self.0.get_mut() {
            FormMut::Boxed(_) => None,
            FormMut::Packed(block) => match block.get_mut() {
                EitherMut::First(_) => None,
                EitherMut::Listpack(listpack) => Some(listpack),
            },
        }
    }

    /// Gives a listpack room for times, for good.
    pub fn make_room_for_times(&mut self) {
        if let Parts::Packed(pairs @ Packed { timed: false, .. }) = self.parts() {
            let triples = packed::with_times(pairs.listpack);
            self.0 = PackedOr::packed(EitherBlock::listpack(triples));
        }
    }

    /// Removes `field`. Returns whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match self.0.get_mut() {
            FormMut::Packed(block) => match block.get_mut() {
                EitherMut::First(listpack) => remove(listpack, field, 2),
                EitherMut::Listpack(mut listpack) => remove(&mut listpack, field, 3),
            },
            FormMut::Boxed(fields) => fields.remove(field),
        }
    }

    /// All fields with their values, in no particular order, expired ones too.
    pub fn iter(&self) -> HashIter<'_> {
        HashIter(match self.parts() {
            Parts::Packed(packed) => Inner::Packed(packed.iter()),
            Parts::Table(fields) => Inner::Table(fields.members().iter()),
        })
    }

    /// How many chains of the table's buckets have n members each; `None` for a packed hash.
    pub fn chain_histogram(&self) -> Option<Vec<usize>> {
        match self.parts() {
            Parts::Packed(_) => None,
            Parts::Table(fields) => Some(fields.members().chain_histogram()),
        }
    }

    /// Whether freeing it should be left to the background: see [`crate::Entry::is_large`].
    pub(crate) fn frees_slowly(&self) -> bool {
        match self.parts() {
            Parts::Packed(packed) => memory_of(packed.listpack) > FREED_AT_ONCE_BYTES,
            Parts::Table(fields) => fields.frees_slowly(),
        }
    }

    /// Bytes that the hash takes besides its handle; a table's members are estimated from the first
    /// `samples` of them.
    pub fn memory_usage(&self, samples: usize) -> usize {
        match self.parts() {
            Parts::Packed(packed) => memory_of(packed.listpack),
            Parts::Table(fields) => fields.memory_usage(samples),
        }
    }

    /// Turns a listpack into a table, for good.
    pub fn unpack(&mut self) {
        self.convert();
    }

    /// The table, made from the listpack if necessary.
    fn convert(&mut self) -> &mut Fields {
        if self.is_packed() {
            let mut fields = Fields::new();
            let (mut field_text, mut value_text) = Default::default();
            for (field, value, expire_at) in self.iter() {
                let (field, value) =
                    (field.as_bytes(&mut field_text), value.as_bytes(&mut value_text));
                fields.set(field, value, expire_at);
            }
            self.0 = PackedOr::boxed(Box::new(fields));
        }
        match self.0.get_mut() {
            FormMut::Boxed(fields) => fields,
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
    /// If one is violated.
    #[cfg(any(test, debug_assertions))]
    pub fn check(&self) {
        match self.parts() {
            Parts::Packed(packed) => {
                let (listpack, width) = (packed.listpack, 1 + packed.skip());
                assert!(ListpackSlice::from_bytes(listpack.as_bytes()).is_ok());
                assert_eq!(listpack.len() % width, 0, "each field has a value, and a time");
                assert!(!has_duplicates(listpack.elements().step_by(width)), "fields are unique");
                let times = packed.iter().map(|field| field.2.unwrap_or(u64::MAX));
                assert!(times.is_sorted(), "the earliest is in front");
            }
            Parts::Table(fields) => fields.check(),
        }
    }
}

/// Removes a field of a listpack in which each field takes `width` elements.
fn remove(listpack: &mut Listpack, field: &[u8], width: usize) -> bool {
    let position = listpack.find(field, width - 1);
    position.map(|position| listpack.remove(position, width)).is_some()
}

/// What a listpack takes from the allocator, in bytes.
fn memory_of(listpack: &ListpackSlice) -> usize {
    crate::pack::good_size(listpack.total_bytes())
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
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Hash {
    type Item = Field<'a>;
    type IntoIter = HashIter<'a>;

    fn into_iter(self) -> HashIter<'a> {
        self.iter()
    }
}

/// Iterator over the fields of a [`Hash`] with their values and the times at which they expire.
pub struct HashIter<'a>(Inner<'a>);

#[expect(
    clippy::large_enum_variant,
    reason = "an iterator lives on the stack, and only one at a time"
)]
enum Inner<'a> {
    Packed(PackedIter<'a>),
    Table(MemberIter<'a, Valued>),
}

impl<'a> Iterator for HashIter<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Inner::Packed(packed) => packed.next(),
            Inner::Table(members) => members.next().map(|member| {
                let (field, value) = pair(member);
                (field, value, member.expire_at())
            }),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Inner::Packed(packed) => packed.size_hint(),
            Inner::Table(members) => members.size_hint(),
        }
    }
}

impl ExactSizeIterator for HashIter<'_> {}

impl FusedIterator for HashIter<'_> {}

#[cfg(test)]
mod tests;
