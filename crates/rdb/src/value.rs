//! Values: what each type byte is followed by.
//!
//! A type that the store keeps packed is written as that block. Older layouts are read element by
//! element through the types' own additions, which choose the encoding by the limits as if clients
//! had added the elements.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::sync::Arc;

use store::list::{ListLimits, NodeRef};
use store::pack::{Element, End, Intset, Listpack, MAX_LISTPACK_BYTES};
use store::{
    Hash, INLINE_MAX, Limits, List, Set, StringRef, StringValue, Value, ValueRef, Zset, ZsetBuilder,
};

use crate::opcodes::{container, kind};
use crate::read::{ReadError, Reader};
use crate::write::Writer;
use crate::{ziplist, zipmap};

const DUPLICATE: ReadError = ReadError::Malformed("a field or member occurs twice");
const EMPTY: ReadError = ReadError::Malformed("a collection is empty");
const UNPAIRED: ReadError = ReadError::Malformed("a field without a value");

/// How large values may become before they leave their packed encoding: the settings
/// `*-max-listpack-*` and `*-max-intset-entries`.
#[derive(Debug, Clone, Copy)]
pub struct ValueLimits {
    /// For lists.
    pub list: ListLimits,
    /// For sets.
    pub set: Limits,
    /// For hashes.
    pub hash: Limits,
    /// For sorted sets.
    pub zset: Limits,
}

/// The byte that says how a value is laid out when [`Writer::value`] writes it.
pub(crate) fn kind_of(value: ValueRef<'_>) -> u8 {
    match value {
        ValueRef::String(_) => kind::STRING,
        ValueRef::List(_) => kind::LIST_QUICKLIST_2,
        ValueRef::Set(set) if set.as_intset().is_some() => kind::SET_INTSET,
        ValueRef::Set(_) => kind::SET,
        ValueRef::Hash(hash) if hash.is_packed() => kind::HASH_LISTPACK,
        ValueRef::Hash(_) => kind::HASH,
        ValueRef::Zset(zset) if zset.is_packed() => kind::ZSET_LISTPACK,
        ValueRef::Zset(_) => kind::ZSET_BINARY,
    }
}

impl<W: Write> Writer<W> {
    /// Writes the type byte of a value.
    ///
    /// # Errors
    /// The sink's.
    pub fn kind(&mut self, value: ValueRef<'_>) -> io::Result<()> {
        self.bytes(&[kind_of(value)])
    }

    /// Writes a value without its type byte.
    ///
    /// # Errors
    /// The sink's.
    pub fn value(&mut self, value: ValueRef<'_>) -> io::Result<()> {
        match value {
            ValueRef::String(StringRef::Int(number)) => self.integer(number),
            ValueRef::String(string) => self.string(&string.bytes()),
            ValueRef::List(list) => self.list(list),
            ValueRef::Set(set) => self.set(set),
            ValueRef::Hash(hash) => self.hash(hash),
            ValueRef::Zset(zset) => self.zset(zset),
        }
    }

    fn list(&mut self, list: &List) -> io::Result<()> {
        self.length(list.node_count() as u64)?;
        for node in list.nodes() {
            match node {
                NodeRef::Packed(bytes) => {
                    self.length(container::PACKED)?;
                    self.string(bytes)?;
                }
                // We keep elements apart that Redis would still pack: it knows a plain node only
                // for what no listpack can hold.
                NodeRef::Plain(text) if text.len() < MAX_LISTPACK_BYTES => {
                    let listpack = Listpack::from_elements([Element::Str(text)]);
                    self.length(container::PACKED)?;
                    self.string(listpack.as_bytes())?;
                }
                NodeRef::Plain(text) => {
                    self.length(container::PLAIN)?;
                    self.string(text)?;
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, set: &Set) -> io::Result<()> {
        if let Some(intset) = set.as_intset() {
            return self.string(intset.as_bytes());
        }
        self.length(set.len() as u64)?;
        set.iter().try_for_each(|member| self.element(member))
    }

    fn hash(&mut self, hash: &Hash) -> io::Result<()> {
        if let Some(listpack) = hash.as_listpack() {
            return self.string(listpack.as_bytes());
        }
        self.length(hash.len() as u64)?;
        hash.iter().try_for_each(|(field, value)| {
            self.element(field)?;
            self.element(value)
        })
    }

    /// The highest member comes first, as Redis writes it: its reader inserts each in front.
    fn zset(&mut self, zset: &Zset) -> io::Result<()> {
        if let Some(listpack) = zset.as_listpack() {
            return self.string(listpack.as_bytes());
        }
        self.length(zset.len() as u64)?;
        zset.iter().rev().try_for_each(|(member, score)| {
            self.element(member)?;
            self.bytes(&score.to_le_bytes())
        })
    }

    fn element(&mut self, element: Element<'_>) -> io::Result<()> {
        match element {
            Element::Str(text) => self.string(text),
            Element::Int(number) => self.integer(number),
        }
    }
}

impl<R: Read> Reader<R> {
    /// Reads a value that is laid out as the type byte says.
    ///
    /// # Errors
    /// [`ReadError`]: unknown types, damaged blocks, repeated members, empty collections.
    pub fn value(&mut self, kind: u8, limits: &ValueLimits) -> Result<Value<'static>, ReadError> {
        let value = match kind {
            kind::STRING => return Ok(Value::String(string_value(self.string()?))),
            kind::LIST => Value::List(self.list_of_strings(&limits.list)?),
            kind::LIST_ZIPLIST => Value::List(self.list_of_ziplists(1, &limits.list)?),
            kind::LIST_QUICKLIST => {
                let nodes = self.length()?;
                Value::List(self.list_of_ziplists(nodes, &limits.list)?)
            }
            kind::LIST_QUICKLIST_2 => Value::List(self.list_of_nodes(&limits.list)?),
            kind::SET => Value::Set(self.set_of_strings(limits.set)?),
            kind::SET_INTSET => {
                let intset = Intset::from_bytes(&self.string()?)?;
                Value::Set(Set::from_intset(intset, limits.set))
            }
            kind::HASH => Value::Hash(self.hash_of_strings(limits.hash)?),
            kind::HASH_ZIPMAP => Value::Hash(self.hash_of_zipmap(limits.hash)?),
            kind::HASH_ZIPLIST => {
                Value::Hash(Hash::from_listpack(self.ziplist_as_listpack()?, limits.hash)?)
            }
            kind::HASH_LISTPACK => {
                let listpack = Listpack::from_bytes(&self.string()?)?;
                Value::Hash(Hash::from_listpack(listpack, limits.hash)?)
            }
            kind::ZSET => Value::Zset(self.zset_of_pairs(limits.zset, Self::text_score)?),
            kind::ZSET_BINARY => Value::Zset(self.zset_of_pairs(limits.zset, Self::binary_score)?),
            kind::ZSET_ZIPLIST => {
                Value::Zset(Zset::from_listpack(self.ziplist_as_listpack()?, limits.zset)?)
            }
            kind::ZSET_LISTPACK => {
                let listpack = Listpack::from_bytes(&self.string()?)?;
                Value::Zset(Zset::from_listpack(listpack, limits.zset)?)
            }
            _ => return Err(ReadError::Malformed("an unknown type of value")),
        };
        if is_empty(&value) { Err(EMPTY) } else { Ok(value) }
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
                // Redis writes no plain node of nothing, and passes over one.
                container::PLAIN if node.is_empty() => {}
                container::PLAIN => push_string(&mut list, node, limits),
                _ => return Err(ReadError::Malformed("an unknown form of list node")),
            }
        }
        Ok(list)
    }

    fn set_of_strings(&mut self, limits: Limits) -> Result<Set, ReadError> {
        let mut set = Set::new();
        for _ in 0..self.length()? {
            if !set.add(&self.string()?, limits) {
                return Err(DUPLICATE);
            }
        }
        Ok(set)
    }

    fn hash_of_strings(&mut self, limits: Limits) -> Result<Hash, ReadError> {
        let mut hash = Hash::new();
        for _ in 0..self.length()? {
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

    fn zset_of_pairs(
        &mut self,
        limits: Limits,
        read_score: fn(&mut Self) -> Result<f64, ReadError>,
    ) -> Result<Zset, ReadError> {
        let mut members = ZsetBuilder::new();
        for _ in 0..self.length()? {
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

fn is_empty(value: &Value<'_>) -> bool {
    match value {
        Value::String(_) => false,
        Value::List(list) => list.is_empty(),
        Value::Set(set) => set.is_empty(),
        Value::Hash(hash) => hash.is_empty(),
        Value::Zset(zset) => zset.is_empty(),
    }
}

/// The form in which SET would store a string.
pub(crate) fn string_value(text: Vec<u8>) -> StringValue<'static> {
    match base::num::parse_i64(&text) {
        Some(number) => StringValue::Int(number),
        None if text.len() > INLINE_MAX => StringValue::Shared(Arc::new(text)),
        None => StringValue::Plain(Cow::Owned(text)),
    }
}

fn push_string(list: &mut List, text: Vec<u8>, limits: &ListLimits) {
    if text.len() > INLINE_MAX {
        list.push(End::Back, Arc::new(text), limits);
    } else {
        list.push(End::Back, text.as_slice(), limits);
    }
}
