//! Writing values: the bytes after each type byte.
//!
//! A type that the store keeps packed is written as that block.

use std::io::{self, Write};

use store::list::{ListLimits, NodeRef};
use store::pack::{Element, Listpack};
use store::{Hash, Limits, List, Set, SetLimits, StringRef, ValueRef, Zset};

use crate::layout::Layout;
use crate::opcodes::{container, kind};
use crate::write::Writer;

/// The longest element that Redis packs, unless `list-max-listpack-size` is neither a number of
/// elements nor -2.
const PACKED_MAX: usize = 8 << 10;

/// How large values may become before they leave their packed encoding: the settings
/// `*-max-listpack-*` and `*-max-intset-entries`.
#[derive(Debug, Clone, Copy)]
pub struct ValueLimits {
    /// For lists.
    pub list: ListLimits,
    /// For sets.
    pub set: SetLimits,
    /// For hashes.
    pub hash: Limits,
    /// For sorted sets.
    pub zset: Limits,
}

/// The byte for the layout in which [`Writer::value`] writes a value.
pub(crate) fn kind_of(value: ValueRef<'_>) -> u8 {
    match value {
        ValueRef::String(_) => kind::STRING,
        ValueRef::List(_) => kind::LIST_OF_NODES,
        ValueRef::Set(set) if set.as_intset().is_some() => kind::SET_INTSET,
        ValueRef::Set(set) if set.as_listpack().is_some() => kind::SET_LISTPACK,
        ValueRef::Set(_) => kind::SET,
        ValueRef::Hash(hash) => match (hash.is_packed(), hash.next_expiry().is_some()) {
            (true, false) => kind::HASH_LISTPACK,
            (true, true) => kind::HASH_EXPIRING_LISTPACK,
            (false, false) => kind::HASH,
            (false, true) => kind::HASH_EXPIRING,
        },
        ValueRef::Zset(zset) if zset.is_packed() => kind::ZSET_LISTPACK,
        ValueRef::Zset(_) => kind::ZSET_BINARY,
        ValueRef::Stream(_) => kind::STREAM_3,
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
            ValueRef::Stream(stream) => self.stream(stream, Layout::Stream3),
        }
    }

    fn list(&mut self, list: &List) -> io::Result<()> {
        self.length(list.node_count() as u64)?;
        list.nodes().try_for_each(|node| self.node(node))
    }

    /// Writes one node of a list.
    pub(crate) fn node(&mut self, node: NodeRef<'_>) -> io::Result<()> {
        match node {
            NodeRef::Packed(bytes) => {
                self.length(container::PACKED)?;
                self.string(bytes)
            }
            // We keep elements apart that Redis would still pack, since they fit its nodes.
            NodeRef::Plain(text) if text.len() <= PACKED_MAX => {
                let listpack = Listpack::from_elements([Element::Str(text)]);
                self.length(container::PACKED)?;
                self.string(listpack.as_bytes())
            }
            NodeRef::Plain(text) => {
                self.length(container::PLAIN)?;
                self.string(text)
            }
        }
    }

    fn set(&mut self, set: &Set) -> io::Result<()> {
        if let Some(intset) = set.as_intset() {
            return self.string(intset.as_bytes());
        }
        if let Some(listpack) = set.as_listpack() {
            return self.string(listpack.as_bytes());
        }
        self.length(set.len() as u64)?;
        set.iter().try_for_each(|member| self.element(member))
    }

    fn hash(&mut self, hash: &Hash) -> io::Result<()> {
        let earliest = hash.next_expiry();
        if let Some(earliest) = earliest {
            self.bytes(&earliest.to_le_bytes())?;
        } else if hash.is_timed()
            && let Some(pairs) = hash.to_pairs()
        {
            // No field expires any more: the hash is written like any other.
            return self.string(pairs.as_bytes());
        }
        if let Some(listpack) = hash.as_listpack() {
            return self.string(listpack.as_bytes());
        }
        self.length(hash.len() as u64)?;
        hash.iter().try_for_each(|(field, value, expire_at)| {
            if let Some(earliest) = earliest {
                self.field_time(expire_at, earliest)?;
            }
            self.element(field)?;
            self.element(value)
        })
    }

    /// Writes when a field of a [`kind::HASH_EXPIRING`] expires. The first field to expire does so
    /// at `earliest`.
    pub(crate) fn field_time(&mut self, expire_at: Option<u64>, earliest: u64) -> io::Result<()> {
        self.length(expire_at.map_or(0, |at| at.saturating_sub(earliest) + 1))
    }

    /// The highest member comes first, as Redis writes it: its reader inserts each in front.
    fn zset(&mut self, zset: &Zset) -> io::Result<()> {
        if let Some(listpack) = zset.as_listpack() {
            return self.string(listpack.as_bytes());
        }
        self.length(zset.len() as u64)?;
        zset.iter().rev().try_for_each(|(member, score)| {
            self.element(member)?;
            self.score(score)
        })
    }

    /// Writes the score of a member of a [`kind::ZSET_BINARY`].
    pub(crate) fn score(&mut self, score: f64) -> io::Result<()> {
        self.bytes(&score.to_le_bytes())
    }

    /// Writes a member, a field or a value.
    pub(crate) fn element(&mut self, element: Element<'_>) -> io::Result<()> {
        match element {
            Element::Str(text) => self.string(text),
            Element::Int(number) => self.integer(number),
        }
    }
}
