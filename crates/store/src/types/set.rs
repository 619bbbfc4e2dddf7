//! Sets: an intset while all members are integers and few, a listpack while they are few and short,
//! a table of members otherwise.
//!
//! The three encodings, and when a set changes from one to the next, are those of Redis. A small
//! set costs its block and nothing else (see [`PackedOr`]).

use std::iter::FusedIterator;
use std::sync::Arc;

use base::limits::FREED_AT_ONCE_BYTES;
use base::num::parse_i64;
use base::rng::Rng;

use crate::pack::{
    Either, EitherBlock, EitherMut, Element, Elements, Encoded, Form, FormMut, INTEGER_TEXT_BYTES,
    Intset, IntsetIter, Listpack, ListpackMut, ListpackSlice, OwnedElement, PackedOr, good_size,
};
use crate::snapshot::freeze::{Freezing, Frozen};
use crate::types::member::{Member, MemberIter, Members, Plain};
use crate::types::packed::{Malformed, SetLimits, choose, has_duplicates};

/// An intset may not grow beyond this, even if the setting is larger: its length field has 32 bits.
const MAX_INTSET_ENTRIES: usize = 1 << 30;

/// Bytes that a listpack spends on an entry besides its text, at most.
const ENTRY_OVERHEAD: usize = 5 + 5;

/// A set of byte strings: eight bytes, as `Option<Set>` is.
#[repr(transparent)]
#[derive(Clone)]
pub struct Set(PackedOr<EitherBlock<Intset>, Members<Plain>>);

/// A set as a reader sees it.
enum View<'a> {
    Intset(&'a Intset),
    Listpack(&'a ListpackSlice),
    Table(&'a Members<Plain>),
}

impl Set {
    #[inline]
    fn view(&self) -> View<'_> {
        match self.0.get() {
            Form::Boxed(members) => View::Table(members),
            Form::Packed(block) => match block.get() {
                Either::First(intset) => View::Intset(intset),
                Either::Listpack(listpack) => View::Listpack(listpack),
            },
        }
    }

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
        Set::of_intset(Intset::new())
    }

    fn of_intset(intset: Intset) -> Self {
        Set(PackedOr::packed(EitherBlock::first(intset)))
    }

    fn of_listpack(listpack: Listpack) -> Self {
        Set(PackedOr::packed(EitherBlock::listpack(listpack)))
    }

    /// An empty set for members that may be no integers.
    pub fn new_listpack() -> Self {
        Set::of_listpack(Listpack::new())
    }

    /// Takes over an intset, and makes it a table if it has too many members.
    pub fn from_intset(intset: Intset, limits: SetLimits) -> Self {
        let mut set = Set::of_intset(intset);
        set.convert_above(limits.integers);
        set
    }

    /// Takes over a listpack, and makes it a table if it has too many members.
    ///
    /// # Errors
    /// [`Malformed::Duplicate`].
    pub fn from_listpack(listpack: Listpack, limits: SetLimits) -> Result<Self, Malformed> {
        if has_duplicates(listpack.elements()) {
            return Err(Malformed::Duplicate);
        }
        let mut set = Set::of_listpack(listpack);
        if set.len() > limits.listpack.entries {
            set.convert();
        }
        Ok(set)
    }

    /// The intset, while the set is one.
    pub fn as_intset(&self) -> Option<&Intset> {
        match self.view() {
            View::Intset(intset) => Some(intset),
            _ => None,
        }
    }

    /// The listpack, while the set is one.
    pub fn as_listpack(&self) -> Option<&ListpackSlice> {
        match self.view() {
            View::Listpack(listpack) => Some(listpack),
            _ => None,
        }
    }

    /// The name that OBJECT ENCODING gives.
    pub fn encoding(&self) -> &'static str {
        match self.view() {
            View::Intset(_) => "intset",
            View::Listpack(_) => "listpack",
            View::Table(_) => "hashtable",
        }
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        match self.view() {
            View::Intset(intset) => intset.len(),
            View::Listpack(listpack) => listpack.len(),
            View::Table(members) => members.len(),
        }
    }

    /// Whether there are no members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Prefetches what these members lead to: see [`crate::ValueRef::prefetch`].
    pub(crate) fn prefetch(&self, members: &[&[u8]]) {
        if let View::Table(table) = self.view() {
            table.prefetch(members);
        }
    }

    /// Whether `member` is in the set.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        match self.view() {
            View::Intset(intset) => parse_i64(member).is_some_and(|value| intset.contains(value)),
            View::Listpack(listpack) => listpack.find(member, 0).is_some(),
            View::Table(members) => members.find(member).is_some(),
        }
    }

    /// Whether a member of another set is in this one too.
    #[inline]
    pub fn contains_element(&self, member: Element<'_>) -> bool {
        match (self.view(), member) {
            (View::Intset(intset), Element::Int(value)) => intset.contains(value),
            _ => self.contains(member.as_bytes(&mut [0; INTEGER_TEXT_BYTES])),
        }
    }

    /// Chooses the encoding by the number of members that a command is about to add, of which
    /// `first` is the first. Members that exist already, or come twice, count too.
    #[inline]
    pub fn expect(&mut self, first: &[u8], count: usize, limits: SetLimits) {
        let (intset_holds, listpack_holds) =
            (count <= limits.integers, count <= limits.listpack.entries);
        let holds = match self.view() {
            View::Table(_) => true,
            View::Intset(intset) if intset.is_empty() => {
                let stays = intset_holds && parse_i64(first).is_some();
                if !stays && listpack_holds {
                    *self = Set::new_listpack();
                }
                stays || listpack_holds
            }
            View::Intset(_) => intset_holds,
            View::Listpack(_) => listpack_holds,
        };
        if !holds {
            self.convert();
        }
    }

    /// Adds `member`. Returns whether it is new.
    pub fn add(&mut self, member: &[u8], limits: SetLimits) -> bool {
        if let FormMut::Boxed(members) = self.0.get_mut() {
            return members.add(member);
        }
        if self.as_intset().is_some() {
            return match parse_i64(member) {
                Some(value) => self.add_integer(value, limits),
                None => self.add_first_text(member, limits),
            };
        }
        if let Some(mut listpack) = self.listpack_mut() {
            if listpack.find(member, 0).is_some() {
                return false;
            }
            let fits = listpack.len() < limits.listpack.entries
                && limits.listpack.admit(member)
                && listpack.fits(member.len() + ENTRY_OVERHEAD);
            if fits {
                listpack.push_back(member);
                return true;
            }
        }
        self.convert().add(member)
    }

    /// The listpack, for change.
    fn listpack_mut(&mut self) -> Option<ListpackMut<'_>> {
        match self.0.get_mut() {
            FormMut::Boxed(_) => None,
            FormMut::Packed(block) => match block.get_mut() {
                EitherMut::First(_) => None,
                EitherMut::Listpack(listpack) => Some(listpack),
            },
        }
    }

    /// Adds an integer to an intset.
    fn add_integer(&mut self, value: i64, limits: SetLimits) -> bool {
        let FormMut::Packed(block) = self.0.get_mut() else { return false };
        let EitherMut::First(intset) = block.get_mut() else { return false };
        let added = intset.add(value);
        // An existing member converts nothing, even if the limit has changed.
        if added {
            self.convert_above(limits.integers);
        }
        added
    }

    /// Adds a member that is not an integer to an intset, which becomes a listpack if all of it
    /// fits one.
    fn add_first_text(&mut self, member: &[u8], limits: SetLimits) -> bool {
        let View::Intset(intset) = self.view() else { return false };
        let longest = |value: Option<i64>| value.map_or(0, |value| Element::Int(value).len());
        let longest = longest(intset.get(0)).max(longest(intset.iter().next_back()));
        let bytes = intset.len().saturating_mul(longest + ENTRY_OVERHEAD);
        let mut listpack = Listpack::new();
        let fits = intset.len() < limits.listpack.entries
            && longest <= limits.listpack.value
            && limits.listpack.admit(member)
            && listpack.fits(bytes.saturating_add(member.len() + ENTRY_OVERHEAD));
        if !fits {
            return self.convert().add(member);
        }
        listpack.extend_back(intset.iter().map(Encoded::integer));
        listpack.push_back(member);
        *self = Set::of_listpack(listpack);
        true
    }

    /// Adds a member of another set. Returns whether it is new.
    pub fn add_element(&mut self, member: Element<'_>, limits: SetLimits) -> bool {
        match (self.view(), member) {
            (View::Intset(_), Element::Int(value)) => self.add_integer(value, limits),
            _ => self.add(member.as_bytes(&mut [0; INTEGER_TEXT_BYTES]), limits),
        }
    }

    /// Makes a set of integers an intset, if it fits one: an intersection is stored in this form.
    pub fn pack_integers(&mut self, limits: SetLimits) {
        if self.as_intset().is_some() || self.len() > limits.integers.min(MAX_INTSET_ENTRIES) {
            return;
        }
        let mut text = [0; INTEGER_TEXT_BYTES];
        let mut values: Vec<i64> = Vec::with_capacity(self.len());
        for member in self.iter() {
            let Some(value) = parse_i64(member.as_bytes(&mut text)) else { return };
            values.push(value);
        }
        values.sort_unstable();
        let mut intset = Intset::new();
        for value in values {
            intset.add(value);
        }
        *self = Set::of_intset(intset);
    }

    /// Makes a table of few short members a listpack.
    pub fn repack(&mut self, limits: SetLimits) {
        let View::Table(members) = self.view() else { return };
        if members.len() > limits.listpack.entries {
            return;
        }
        let mut repacked = Set::new_listpack();
        for member in self.iter() {
            repacked.add_element(member, limits);
        }
        *self = repacked;
    }

    /// Removes `member`. Returns whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match self.0.get_mut() {
            FormMut::Boxed(members) => members.remove(member),
            FormMut::Packed(block) => match block.get_mut() {
                EitherMut::First(intset) => {
                    parse_i64(member).is_some_and(|value| intset.remove(value))
                }
                EitherMut::Listpack(mut listpack) => {
                    let position = listpack.find(member, 0);
                    position.map(|position| listpack.remove(position, 1)).is_some()
                }
            },
        }
    }

    /// Removes a member that was found in another set. Returns whether it was there.
    pub fn remove_element(&mut self, member: Element<'_>) -> bool {
        self.remove(member.as_bytes(&mut [0; INTEGER_TEXT_BYTES]))
    }

    /// All members: ascending in an intset, in the order of their addition in a listpack, in no
    /// particular order in a table.
    pub fn iter(&self) -> SetIter<'_> {
        SetIter(match self.view() {
            View::Intset(intset) => Inner::Intset(intset.iter()),
            View::Listpack(listpack) => Inner::Listpack(listpack.elements(), listpack.len()),
            View::Table(members) => Inner::Table(members.iter()),
        })
    }

    /// Shows the members at `position` of a scan, which begins at 0, and returns the next position,
    /// or `None` at the end. A member that is there during all of a scan is shown at least once. A
    /// packed set is shown as a whole.
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
        match self.view() {
            View::Intset(intset) => intset.get(rng.index(intset.len())).map(Element::Int),
            View::Listpack(listpack) => listpack.get(rng.index(listpack.len()) as i64),
            View::Table(members) => members.random(rng).map(element),
        }
    }

    /// Shows `count` members, each chosen anew, so that some may come repeatedly. Nothing if the
    /// set is empty.
    pub fn random_repeating<'a>(
        &'a self,
        count: usize,
        rng: &mut Rng,
        mut visit: impl FnMut(Element<'a>),
    ) {
        if let View::Listpack(listpack) = self.view() {
            let members: Vec<_> = listpack.elements().collect();
            for _ in 0..count {
                let Some(&member) = members.get(rng.index(members.len())) else { return };
                visit(member);
            }
            return;
        }
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
            FormMut::Boxed(members) => {
                let name = members.random(rng)?.name();
                let popped = Element::Str(name).to_owned_element();
                let position = members.find(name)?;
                members.remove_at(position);
                Some(popped)
            }
            FormMut::Packed(block) => match block.get_mut() {
                EitherMut::First(intset) => {
                    intset.take(rng.index(intset.len())).map(OwnedElement::Int)
                }
                EitherMut::Listpack(mut listpack) => {
                    let at = rng.index(listpack.len());
                    listpack.pop(at as i64)
                }
            },
        }
    }

    /// How many chains of the table's buckets have n members each; `None` for a packed set.
    pub fn chain_histogram(&self) -> Option<Vec<usize>> {
        match self.0.get() {
            Form::Packed(_) => None,
            Form::Boxed(members) => Some(members.chain_histogram()),
        }
    }

    /// Whether freeing it should be left to the background: see [`crate::Entry::is_large`].
    pub(crate) fn frees_slowly(&self) -> bool {
        match self.view() {
            View::Intset(intset) => intset.memory_usage() > FREED_AT_ONCE_BYTES,
            View::Listpack(listpack) => listpack.total_bytes() > FREED_AT_ONCE_BYTES,
            View::Table(members) => members.frees_slowly(),
        }
    }

    /// Bytes that the set takes besides its handle; a table's members are estimated from the first
    /// `samples` of them.
    pub fn memory_usage(&self, samples: usize) -> usize {
        match self.view() {
            View::Intset(intset) => intset.memory_usage(),
            View::Listpack(listpack) => good_size(listpack.total_bytes()),
            View::Table(members) => size_of_val(members) + members.memory(samples),
        }
    }

    /// Turns a packed set into a table, for good.
    pub fn unpack(&mut self) {
        self.convert();
    }

    /// The table, made from the packed block if necessary.
    fn convert(&mut self) -> &mut Members<Plain> {
        if let Form::Packed(_) = self.0.get() {
            let mut members = Members::new();
            let mut text = [0; INTEGER_TEXT_BYTES];
            for member in self.iter() {
                members.add(member.as_bytes(&mut text));
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
    /// If one is violated.
    #[cfg(any(test, debug_assertions))]
    pub fn check(&self) {
        match self.view() {
            View::Intset(intset) => intset.check(),
            View::Listpack(listpack) => {
                assert!(ListpackSlice::from_bytes(listpack.as_bytes()).is_ok());
                assert!(!has_duplicates(listpack.elements()), "members are unique");
            }
            View::Table(members) => members.check(),
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
    Intset(IntsetIter<'a>),
    /// The elements of a listpack, and how many are left.
    Listpack(Elements<'a>, usize),
    Table(MemberIter<'a, Plain>),
}

impl<'a> Iterator for SetIter<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        match &mut self.0 {
            Inner::Intset(values) => values.next().map(Element::Int),
            Inner::Listpack(elements, left) => {
                let element = elements.next()?;
                *left -= 1;
                Some(element)
            }
            Inner::Table(members) => members.next().map(element),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Inner::Intset(values) => values.size_hint(),
            Inner::Listpack(_, left) => (*left, Some(*left)),
            Inner::Table(members) => members.size_hint(),
        }
    }
}

impl ExactSizeIterator for SetIter<'_> {}

impl FusedIterator for SetIter<'_> {}

#[cfg(test)]
mod tests;
