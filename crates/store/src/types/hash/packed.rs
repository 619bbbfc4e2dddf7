//! The listpack of a small hash: fields, each followed by its value. Once a field has had an
//! expiry, each value is followed by the time of its field, 0 for never. These triples are ordered:
//! fields that expire come first, the earliest at the front.

use crate::pack::{Element, Elements, Encoded, Listpack, ListpackSlice, Position};
use crate::types::packed::{Limits, has_room_for_pair};

/// Bytes that a time takes in a listpack, at most.
const TIME_BYTES: usize = 10;

/// A packed hash, to be read.
#[derive(Clone, Copy)]
pub(super) struct Packed<'a> {
    pub(super) listpack: &'a ListpackSlice,
    /// Whether times follow the values.
    pub(super) timed: bool,
}

impl<'a> Packed<'a> {
    #[inline]
    pub(super) fn len(self) -> usize {
        // Two divisions by numbers that the compiler knows.
        if self.timed { self.listpack.len() / 3 } else { self.listpack.len() / 2 }
    }

    /// Elements between a field and the next one.
    #[inline]
    pub(super) fn skip(self) -> usize {
        1 + usize::from(self.timed)
    }

    #[inline]
    pub(super) fn find(self, field: &[u8]) -> Option<Position> {
        self.listpack.find(field, self.skip())
    }

    /// The value of a field, and when it expires.
    #[inline]
    pub(super) fn get(self, field: &[u8]) -> Option<(Element<'a>, Option<u64>)> {
        let value = self.listpack.next(self.find(field)?)?;
        let expire_at =
            if self.timed { time_at(self.listpack, self.listpack.next(value)) } else { None };
        Some((self.listpack.element(value), expire_at))
    }

    /// The earliest time at which a field expires.
    #[inline]
    pub(super) fn next_expiry(self) -> Option<u64> {
        if !self.timed {
            return None;
        }
        let value = self.listpack.next(self.listpack.first()?)?;
        time_at(self.listpack, self.listpack.next(value))
    }

    /// The fields and values, without the times.
    pub(super) fn to_pairs(self) -> Listpack {
        if !self.timed {
            return self.listpack.to_listpack();
        }
        let mut pairs = Listpack::new();
        for (field, value, _) in self.iter() {
            pairs.extend_back([Encoded::from(field), Encoded::from(value)]);
        }
        pairs
    }

    pub(super) fn iter(self) -> PackedIter<'a> {
        PackedIter { elements: self.listpack.elements(), timed: self.timed, left: self.len() }
    }
}

/// Reads a time from a listpack.
fn time(element: Element<'_>) -> Option<u64> {
    element.to_integer().and_then(|at| u64::try_from(at).ok()).filter(|&at| at > 0)
}

fn time_at(listpack: &ListpackSlice, position: Option<Position>) -> Option<u64> {
    time(listpack.element(position?))
}

/// A time as a listpack has it.
fn encoded(expire_at: Option<u64>) -> Encoded<'static> {
    Encoded::integer(expire_at.map_or(0, u64::cast_signed))
}

/// Fields with their values and times.
#[derive(Clone)]
pub(super) struct PackedIter<'a> {
    elements: Elements<'a>,
    timed: bool,
    left: usize,
}

impl<'a> Iterator for PackedIter<'a> {
    type Item = (Element<'a>, Element<'a>, Option<u64>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (field, value) = (self.elements.next()?, self.elements.next()?);
        let expire_at = if self.timed { time(self.elements.next()?) } else { None };
        self.left -= 1;
        Some((field, value, expire_at))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// Whether a listpack may take a field and its value.
#[inline]
pub(super) fn admits(listpack: &Listpack, field: &[u8], value: &[u8], limits: Limits) -> bool {
    limits.admit(field)
        && limits.admit(value)
        && has_room_for_pair(listpack, field.len() + TIME_BYTES, value.len())
}

/// Sets a value in a listpack without times. Returns whether the field is new.
#[inline]
pub(super) fn set_pair(listpack: &mut Listpack, field: &[u8], value: &[u8]) -> bool {
    let position = listpack.find(field, 1).and_then(|field| listpack.next(field));
    match position {
        Some(position) => listpack.replace(position, value),
        None => listpack.extend_back([field, value].map(Encoded::text)),
    }
    position.is_none()
}

/// Sets a value in a listpack with times. An existing field keeps its place when `expire_at` is its
/// time already; otherwise it comes after all fields that expire at that time.
pub(super) fn set_triple(
    listpack: &mut Listpack,
    field: &[u8],
    value: &[u8],
    expire_at: Option<u64>,
) -> bool {
    let Some(found) = listpack.find(field, 2) else {
        let position = expire_at.and_then(|at| place_of(listpack, at + 1));
        insert_triple(listpack, position, field, value, expire_at);
        return true;
    };
    let position = listpack.next(found);
    if time_at(listpack, position.and_then(|position| listpack.next(position))) == expire_at {
        position.into_iter().for_each(|position| listpack.replace(position, value));
    } else {
        listpack.remove(found, 3);
        let position = expire_at.and_then(|at| place_of(listpack, at + 1));
        insert_triple(listpack, position, field, value, expire_at);
    }
    false
}

/// Sets when a field expires, if the field exists. It comes before all fields that expire at that
/// time already, as in Redis.
pub(super) fn set_expire_at(listpack: &mut Listpack, field: &[u8], expire_at: Option<u64>) {
    let Some(found) = listpack.find(field, 2) else { return };
    let value = listpack.next(found).map(|value| listpack.element(value).to_vec());
    listpack.remove(found, 3);
    let position = expire_at.and_then(|at| place_of(listpack, at));
    insert_triple(listpack, position, field, &value.unwrap_or_default(), expire_at);
}

/// Inserts a triple before a place, or at the end.
fn insert_triple(
    listpack: &mut Listpack,
    position: Option<Position>,
    field: &[u8],
    value: &[u8],
    expire_at: Option<u64>,
) {
    let triple = [Encoded::text(field), Encoded::text(value), encoded(expire_at)];
    let Some(mut position) = position else {
        listpack.extend_back(triple);
        return;
    };
    for (index, element) in triple.into_iter().enumerate() {
        if index == 0 {
            listpack.insert_before(position, element);
        } else {
            position = listpack.insert_after(position, element);
        }
    }
}

/// The first triple that expires at a time or later, or never.
fn place_of(listpack: &ListpackSlice, at: u64) -> Option<Position> {
    let mut position = listpack.first();
    while let Some(field) = position {
        let own = listpack.next(field).and_then(|value| listpack.next(value));
        if time_at(listpack, own).is_none_or(|own| own >= at) {
            return Some(field);
        }
        position = own.and_then(|own| listpack.next(own));
    }
    None
}

/// The same fields and values with times; no field expires.
pub(super) fn with_times(pairs: &ListpackSlice) -> Listpack {
    let mut triples = Listpack::new();
    let mut elements = pairs.elements();
    while let (Some(field), Some(value)) = (elements.next(), elements.next()) {
        triples.extend_back([Encoded::from(field), Encoded::from(value), encoded(None)]);
    }
    triples
}
