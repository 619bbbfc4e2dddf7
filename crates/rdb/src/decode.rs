//! Reading values in all their layouts.
//!
//! A block in a form that the store uses too is taken over after every byte was checked. Older
//! layouts are read element by element and added as if clients had added the elements, so the
//! limits choose the encoding.

use std::borrow::Cow;
use std::sync::Arc;

use base::limits::MAX_ELEMENTS;
use store::list::ListLimits;
use store::pack::{Element, End, Intset, Listpack, ListpackSlice, MAX_LISTPACK_BYTES};
use store::{
    Hash, INLINE_MAX, Limits, List, Set, SetLimits, StringValue, Value, Zset, ZsetBuilder,
};

use crate::layout::Layout;
use crate::opcodes::container;
use crate::read::{Input, ReadError, Reader, Text};
use crate::value::ValueLimits;
use crate::{module, ziplist, zipmap};

const DUPLICATE: ReadError = ReadError::Malformed("a field or member occurs twice");
const TOO_MANY: ReadError =
    ReadError::Unsupported(Cow::Borrowed("a collection of more than 4294967295 elements"));
const UNPAIRED: ReadError = ReadError::Malformed("a field without a value");
const FIELD_EXPIRY: ReadError = ReadError::Malformed("a field expires at an impossible time");

impl<'a> Reader<'a> {
    /// Reads a value that is laid out as `layout` says. Fields that expired before `now_ms` are
    /// left out. `None` if nothing is left: an empty collection, or a hash of which all fields
    /// expired.
    pub(crate) fn value(
        &mut self,
        layout: Layout,
        limits: &ValueLimits,
        now_ms: u64,
    ) -> Result<Option<Value<'a>>, ReadError> {
        let mut value = match layout {
            Layout::String => Value::String(self.string_value()?),
            Layout::List => Value::List(self.list_of_strings(&limits.list)?),
            Layout::ListZiplist => Value::List(self.list_of_ziplists(1, &limits.list)?),
            Layout::ListOfZiplists => {
                let nodes = self.length()?;
                Value::List(self.list_of_ziplists(nodes, &limits.list)?)
            }
            Layout::ListOfNodes => Value::List(self.list_of_nodes(&limits.list)?),
            Layout::Set => Value::Set(self.set_of_strings(limits.set)?),
            Layout::SetIntset => {
                let intset = Intset::from_bytes(&self.string()?)?;
                Value::Set(Set::from_intset(intset, limits.set))
            }
            Layout::SetListpack => {
                let listpack = Listpack::from_bytes(&self.string()?)?;
                Value::Set(Set::from_listpack(listpack, limits.set)?)
            }
            Layout::Hash => Value::Hash(self.hash_of_strings(limits.hash)?),
            Layout::HashZipmap => Value::Hash(self.hash_of_zipmap(limits.hash)?),
            Layout::HashZiplist => {
                Value::Hash(Hash::from_listpack(self.ziplist_as_listpack()?, limits.hash)?)
            }
            Layout::HashListpack => {
                let listpack = Listpack::from_bytes(&self.string()?)?;
                Value::Hash(Hash::from_listpack(listpack, limits.hash)?)
            }
            Layout::HashExpiring
            | Layout::HashExpiringEarly
            | Layout::HashExpiringValkey
            | Layout::HashExpiringListpack
            | Layout::HashExpiringListpackEarly => {
                let mut hash = ExpiringHash::new(limits.hash, now_ms);
                self.expiring_hash(layout, &mut hash)?;
                Value::Hash(hash.hash)
            }
            Layout::Zset => Value::Zset(self.zset_of_pairs(limits.zset, Self::text_score)?),
            Layout::ZsetBinary => Value::Zset(self.zset_of_pairs(limits.zset, Self::binary_score)?),
            Layout::ZsetZiplist => {
                Value::Zset(Zset::from_listpack(self.ziplist_as_listpack()?, limits.zset)?)
            }
            Layout::ZsetListpack => {
                let listpack = Listpack::from_bytes(&self.string()?)?;
                Value::Zset(Zset::from_listpack(listpack, limits.zset)?)
            }
            Layout::Stream1
            | Layout::Stream2
            | Layout::Stream3
            | Layout::Stream4
            | Layout::Stream5 => Value::Stream(self.stream(layout)?),
            Layout::Module => {
                let name = module::name(self.length()?);
                return Err(ReadError::Unsupported(
                    format!("a value of module type {name}").into(),
                ));
            }
            Layout::ModuleEarly => return Err(module::EARLY),
        };
        if let Value::List(list) = &mut value {
            match layout {
                // A dump of the oldest versions keeps the large encoding, however small it is.
                Layout::ListZiplist => list.unpack(),
                _ => list.choose_encoding(&limits.list),
            }
        }
        Ok((!is_empty(&value)).then_some(value))
    }

    fn string_value(&mut self) -> Result<StringValue<'a>, ReadError> {
        Ok(match self.text()? {
            Text::Integer(number) => StringValue::Int(number),
            Text::Plain(bytes) => string_value(Cow::Borrowed(bytes)),
            Text::Inflated(bytes) => string_value(Cow::Owned(bytes)),
        })
    }

    fn list_of_strings(&mut self, limits: &ListLimits) -> Result<List, ReadError> {
        let mut list = List::new();
        for _ in 0..self.length()? {
            push_string(&mut list, self.string()?, limits);
        }
        Ok(list)
    }

    fn list_of_ziplists(&mut self, nodes: u64, limits: &ListLimits) -> Result<List, ReadError> {
        let mut list = List::new();
        for _ in 0..nodes {
            for element in ziplist::elements(&self.string()?)? {
                list.push(End::Back, element, limits);
            }
        }
        Ok(list)
    }

    fn list_of_nodes(&mut self, limits: &ListLimits) -> Result<List, ReadError> {
        let mut list = List::new();
        for _ in 0..self.length()? {
            let form = self.length()?;
            let node = self.string()?;
            match form {
                container::PACKED => list.push_packed_node(&node, limits)?,
                // Redis writes no empty plain node, and passes over one.
                container::PLAIN if node.is_empty() => {}
                container::PLAIN => push_string(&mut list, node, limits),
                _ => return Err(ReadError::Malformed("an unknown form of list node")),
            }
        }
        Ok(list)
    }

    /// A number of members, if a table can count them.
    fn members(&mut self) -> Result<u64, ReadError> {
        let members = self.length()?;
        if members > MAX_ELEMENTS as u64 { Err(TOO_MANY) } else { Ok(members) }
    }

    fn set_of_strings(&mut self, limits: SetLimits) -> Result<Set, ReadError> {
        let mut set = Set::new();
        let members = self.members()?;
        if members > limits.integers as u64 {
            set.unpack();
        }
        for _ in 0..members {
            if !set.add(&self.string()?, limits) {
                return Err(DUPLICATE);
            }
        }
        Ok(set)
    }

    fn hash_of_strings(&mut self, limits: Limits) -> Result<Hash, ReadError> {
        let mut hash = Hash::new();
        for _ in 0..self.members()? {
            let (field, value) = (self.string()?, self.string()?);
            if !hash.set(&field, &value, limits) {
                return Err(DUPLICATE);
            }
        }
        Ok(hash)
    }

    fn hash_of_zipmap(&mut self, limits: Limits) -> Result<Hash, ReadError> {
        let mut hash = Hash::new();
        for (field, value) in zipmap::pairs(&self.string()?)? {
            if !hash.set(field, value, limits) {
                return Err(DUPLICATE);
            }
        }
        Ok(hash)
    }

    fn expiring_hash(&mut self, layout: Layout, hash: &mut ExpiringHash) -> Result<(), ReadError> {
        // The earliest expiry of all fields. Counted hashes state the others relative to it.
        let earliest = match layout {
            Layout::HashExpiring | Layout::HashExpiringListpack => {
                u64::from_le_bytes(self.array()?)
            }
            _ => 0,
        };
        if matches!(layout, Layout::HashExpiringListpack | Layout::HashExpiringListpackEarly) {
            return hash.add_listpack(ListpackSlice::from_bytes(&self.string()?)?);
        }
        for _ in 0..self.members()? {
            if layout == Layout::HashExpiringValkey {
                let (field, value) = (self.string()?, self.string()?);
                let at = i64::from_le_bytes(self.array()?);
                // -1 is "never". A time outside our range is replaced by the nearest one in it.
                let in_range = |at: i64| {
                    u64::try_from(at).map(|at| at.clamp(1, Hash::LATEST)).map_err(|_| FIELD_EXPIRY)
                };
                let at = if at == -1 { None } else { Some(in_range(at)?) };
                hash.add(&field, &value, at)?;
                continue;
            }
            let at = match (self.length()?, layout) {
                (0, _) => None,
                (after, Layout::HashExpiring) => {
                    Some(earliest.checked_add(after - 1).ok_or(FIELD_EXPIRY)?)
                }
                (at, _) => Some(at),
            };
            let at = at.map(|at| to_ms(at.cast_signed())).transpose()?;
            let (field, value) = (self.string()?, self.string()?);
            hash.add(&field, &value, at)?;
        }
        Ok(())
    }

    fn zset_of_pairs(
        &mut self,
        limits: Limits,
        read_score: fn(&mut Self) -> Result<f64, ReadError>,
    ) -> Result<Zset, ReadError> {
        let mut members = ZsetBuilder::new();
        for _ in 0..self.members()? {
            let member = self.string()?;
            let score = read_score(self)?;
            if !members.add(&member, score) {
                return Err(DUPLICATE);
            }
        }
        Ok(members.finish(limits))
    }

    fn ziplist_as_listpack(&mut self) -> Result<Listpack, ReadError> {
        let block = self.string()?;
        let elements = ziplist::elements(&block)?;
        if !elements.len().is_multiple_of(2) {
            return Err(UNPAIRED);
        }
        // A listpack spends at most ten bytes on an element besides its text.
        let size: usize = elements.iter().map(|element| element.len() + 10).sum();
        if size >= MAX_LISTPACK_BYTES {
            return Err(ReadError::Malformed("a packed block is too large"));
        }
        Ok(Listpack::from_elements(elements.iter().copied()))
    }
}

/// A hash with fields that expire, while it is being read.
struct ExpiringHash {
    hash: Hash,
    limits: Limits,
    now_ms: u64,
}

impl ExpiringHash {
    fn new(limits: Limits, now_ms: u64) -> ExpiringHash {
        ExpiringHash { hash: Hash::new(), limits, now_ms }
    }

    /// Adds a field, unless it expired.
    fn add(&mut self, field: &[u8], value: &[u8], at_ms: Option<u64>) -> Result<(), ReadError> {
        if at_ms.is_some_and(|at| at < self.now_ms) {
            return Ok(());
        }
        if self.hash.set_timed(field, value, at_ms, self.limits) { Ok(()) } else { Err(DUPLICATE) }
    }

    /// Adds the fields of a listpack: each is followed by its value and its expiry, 0 for never.
    /// The first to expire come first.
    fn add_listpack(&mut self, listpack: &ListpackSlice) -> Result<(), ReadError> {
        let mut elements = listpack.elements();
        let mut before = 0;
        while let Some(field) = elements.next() {
            let (Some(value), Some(at)) = (elements.next(), elements.next()) else {
                return Err(UNPAIRED);
            };
            let at = match at {
                Element::Int(0) => None,
                Element::Int(at) => Some(to_ms(at)?),
                Element::Str(_) => return Err(FIELD_EXPIRY),
            };
            let order = at.unwrap_or(u64::MAX);
            if order < std::mem::replace(&mut before, order) {
                return Err(FIELD_EXPIRY);
            }
            self.add(&field.to_vec(), &value.to_vec(), at)?;
        }
        Ok(())
    }
}

/// The time of a field as Redis writes it. It refuses others, too.
fn to_ms(at: i64) -> Result<u64, ReadError> {
    u64::try_from(at).ok().filter(|at| (1..=Hash::LATEST).contains(at)).ok_or(FIELD_EXPIRY)
}

fn is_empty(value: &Value<'_>) -> bool {
    match value {
        // A stream may be empty, and have groups.
        Value::String(_) | Value::Stream(_) => false,
        Value::List(list) => list.is_empty(),
        Value::Set(set) => set.is_empty(),
        Value::Hash(hash) => hash.is_empty(),
        Value::Zset(zset) => zset.is_empty(),
    }
}

/// The form in which SET would store a string.
pub(crate) fn string_value(text: Cow<'_, [u8]>) -> StringValue<'_> {
    match base::num::parse_i64(&text) {
        Some(number) => StringValue::Int(number),
        None if text.len() > INLINE_MAX => StringValue::Shared(Arc::new(text.into_owned())),
        None => StringValue::Plain(text),
    }
}

fn push_string(list: &mut List, text: Cow<'_, [u8]>, limits: &ListLimits) {
    if text.len() > INLINE_MAX {
        list.push(End::Back, Arc::new(text.into_owned()), limits);
    } else {
        list.push(End::Back, &*text, limits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_of_more_elements_than_can_be_counted_are_refused() {
        let counted =
            |bytes: &[u8]| Reader::new(bytes).members().map_err(|error| error.to_string());
        assert_eq!(counted(b"\x80\xff\xff\xff\xff"), Ok(u64::from(u32::MAX)));
        assert_eq!(counted(b"\x81\0\0\0\x01\0\0\0\0"), Err(TOO_MANY.to_string()));
    }
}
