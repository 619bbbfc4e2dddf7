//! One key and its value in one allocation.
//!
//! The table keeps one word per entry: 48 bits of address, four bits of kind, three flags, and a
//! content-type id.
//!
//! ```text
//!  bit 63 62     61    54 53   52     51..48  47                                0
//!     +--+------+--------+----+------+-------+----------------------------------+
//!     |0 |FIELDS|type id |WIDE|EXPIRY| kind  |  address of the allocation       |
//!     +--+------+--------+----+------+-------+----------------------------------+
//!
//!     [expiry: 8 bytes, if EXPIRY] [payload: 8 bytes, unless the value is inline]
//!     version 7 | clock 3 | key length 1 | value length 1 | key | inline value
//!     version 7 | clock 3 | unused 2 | key length 4 | value length 4 | key | ...   if WIDE
//! ```
//!
//! Parts that need alignment come first, so nothing is padded: a 16-byte key with a 3-byte value
//! takes 31 bytes, one with 100 bytes 128, each just inside an allocator's size class. The payload
//! is an integer, a shared buffer, or one of the collections, each of which is one thin pointer.
//! FIELDS says that the value is a hash of which fields expire, so code that looks for expired
//! fields skips all other hashes. The highest bit of the version says that a cut was handed the
//! entry.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::borrow::Cow;
use std::sync::Arc;

use base::limits::{FREED_AT_ONCE_SINGLE, MAX_KEY};

use crate::snapshot::freeze::{Freezing, Frozen};
use crate::types::string;
use crate::{Hash, List, Set, Stream, StringRef, StringValue, Zset};

mod change;
mod removed;
mod stamp;
#[cfg(test)]
mod tests;

pub use change::EntryMut;
pub use removed::Removed;

const POINTER: u64 = 0x0000_ffff_ffff_ffff;
const KIND_SHIFT: u32 = 48;
const KIND_BITS: u32 = 4;
const EXPIRY: u64 = 1 << 52;
const WIDE: u64 = 1 << 53;
const CONTENT_TYPE_ID_SHIFT: u32 = 54;
const CONTENT_TYPE_ID: u64 = 0xff << CONTENT_TYPE_ID_SHIFT;
const FIELDS: u64 = 1 << 62;

const SHORT_LENGTHS_AT: usize = 10;
const SHORT_HEADER: usize = 12;
const WIDE_LENGTHS_AT: usize = 12;
const WIDE_HEADER: usize = 20;

/// Parts of a collection from which its size is estimated.
const SAMPLES: usize = 8;

/// Strings up to this many bytes lie in their entry; longer ones in a shared buffer, so that a
/// reply can send them without copying.
pub const INLINE_MAX: usize = 16 * 1024;

/// A string that has grown beyond this many bytes by being modified moves to a buffer with room to
/// grow further.
const GROWN_INLINE_MAX: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Kind {
    Int = 0,
    /// A string as SET stored it.
    Inline = 1,
    /// A string that was modified in place: Redis calls it `raw` however short it is.
    InlineRaw = 2,
    Shared = 3,
    List = 4,
    Set = 5,
    Hash = 6,
    Zset = 7,
    Stream = 8,
}

impl Kind {
    const ALL: [Kind; 9] = [
        Kind::Int,
        Kind::Inline,
        Kind::InlineRaw,
        Kind::Shared,
        Kind::List,
        Kind::Set,
        Kind::Hash,
        Kind::Zset,
        Kind::Stream,
    ];

    /// The kind with this number.
    ///
    /// # Safety
    /// The number is a kind's.
    #[inline]
    const unsafe fn from_number(number: u64) -> Kind {
        match number {
            0 => Kind::Int,
            1 => Kind::Inline,
            2 => Kind::InlineRaw,
            3 => Kind::Shared,
            4 => Kind::List,
            5 => Kind::Set,
            6 => Kind::Hash,
            7 => Kind::Zset,
            8 => Kind::Stream,
            // SAFETY: by the caller's promise.
            _ => unsafe { std::hint::unreachable_unchecked() },
        }
    }

    fn is_inline(self) -> bool {
        matches!(self, Kind::Inline | Kind::InlineRaw)
    }
}

// Every kind comes back from its number, and fits a word beside address and flags.
const _: () = {
    let mut number = 0;
    while number < Kind::ALL.len() {
        // SAFETY: kinds are numbered from 0 without gaps, as asserted here.
        assert!(Kind::ALL[number] as usize == number);
        assert!(unsafe { Kind::from_number(number as u64) } as usize == number);
        number += 1;
    }
    assert!(Kind::ALL.len() <= 1 << KIND_BITS && 1 << (KIND_SHIFT + KIND_BITS) == EXPIRY);
};

/// A value on its way into an entry, or out of a removed one.
#[derive(Debug)]
pub enum Value<'v> {
    /// A string.
    String(StringValue<'v>),
    /// A list.
    List(List),
    /// A set.
    Set(Set),
    /// A hash.
    Hash(Hash),
    /// A sorted set.
    Zset(Zset),
    /// A stream.
    Stream(Stream),
}

impl Value<'_> {
    /// The value as a reader sees it.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::String(string) => ValueRef::String(string.as_ref()),
            Value::List(list) => ValueRef::List(list),
            Value::Set(set) => ValueRef::Set(set),
            Value::Hash(hash) => ValueRef::Hash(hash),
            Value::Zset(zset) => ValueRef::Zset(zset),
            Value::Stream(stream) => ValueRef::Stream(stream),
        }
    }

    /// The snapshot that reads the value in pieces, if one does.
    pub(crate) fn frozen(&self) -> Option<&Arc<Frozen>> {
        match self {
            Value::String(_) | Value::List(_) | Value::Stream(_) => None,
            Value::Set(set) => set.frozen(),
            Value::Hash(hash) => hash.frozen(),
            Value::Zset(zset) => zset.frozen(),
        }
    }
}

/// A value as it lies in its entry.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'e> {
    /// A string.
    String(StringRef<'e>),
    /// A list.
    List(&'e List),
    /// A set.
    Set(&'e Set),
    /// A hash.
    Hash(&'e Hash),
    /// A sorted set.
    Zset(&'e Zset),
    /// A stream.
    Stream(&'e Stream),
}

impl<'e> ValueRef<'e> {
    /// The string, if it is one.
    #[inline]
    pub fn as_string(self) -> Option<StringRef<'e>> {
        match self {
            ValueRef::String(string) => Some(string),
            _ => None,
        }
    }

    /// Prefetches what commands are about to look for in it: members or fields of these names, at
    /// most [`base::limits::PREFETCH_MAX`] of them. The processor then waits for all of them at
    /// once.
    pub fn prefetch(self, names: &[&[u8]]) {
        match self {
            ValueRef::Set(set) => set.prefetch(names),
            ValueRef::Hash(hash) => hash.prefetch(names),
            ValueRef::Zset(zset) => zset.prefetch(names),
            ValueRef::String(_) | ValueRef::List(_) | ValueRef::Stream(_) => {}
        }
    }

    /// An independent copy. Large strings, the nodes of lists and all parts of streams are shared
    /// until one side changes them.
    pub fn to_value(self) -> Value<'static> {
        match self {
            ValueRef::String(StringRef::Int(number)) => Value::String(StringValue::Int(number)),
            ValueRef::String(StringRef::Inline { bytes, raw }) => {
                let bytes = Cow::Owned(bytes.to_vec());
                Value::String(if raw { StringValue::Raw(bytes) } else { StringValue::Plain(bytes) })
            }
            ValueRef::String(StringRef::Shared(buffer)) => {
                Value::String(StringValue::Shared(Arc::clone(buffer)))
            }
            ValueRef::List(list) => Value::List(list.clone()),
            ValueRef::Set(set) => Value::Set(set.clone()),
            ValueRef::Hash(hash) => Value::Hash(hash.clone()),
            ValueRef::Zset(zset) => Value::Zset(zset.clone()),
            ValueRef::Stream(stream) => Value::Stream(stream.clone()),
        }
    }

    /// The name of the type, as TYPE answers it.
    pub fn type_name(self) -> &'static str {
        match self {
            ValueRef::String(_) => "string",
            ValueRef::List(_) => "list",
            ValueRef::Set(_) => "set",
            ValueRef::Hash(_) => "hash",
            ValueRef::Zset(_) => "zset",
            ValueRef::Stream(_) => "stream",
        }
    }

    /// The name that OBJECT ENCODING gives.
    pub fn encoding(self) -> &'static str {
        match self {
            ValueRef::String(string) => string.encoding(),
            ValueRef::List(list) => list.encoding(),
            ValueRef::Set(set) => set.encoding(),
            ValueRef::Hash(hash) => hash.encoding(),
            ValueRef::Zset(zset) => zset.encoding(),
            ValueRef::Stream(_) => "stream",
        }
    }
}

/// A value that may be changed in place. Strings are changed by [`EntryMut::string_mut`].
#[derive(Debug)]
pub enum ValueMut<'e> {
    /// A string.
    String(StringRef<'e>),
    /// A list.
    List(&'e mut List),
    /// A set.
    Set(&'e mut Set),
    /// A hash.
    Hash(&'e mut Hash),
    /// A sorted set.
    Zset(&'e mut Zset),
    /// A stream.
    Stream(&'e mut Stream),
}

// The payload is written and read as one of these; each must be one thin pointer.
const _: () = {
    assert!(size_of::<List>() == 8 && align_of::<List>() == 8);
    assert!(size_of::<Set>() == 8 && align_of::<Set>() == 8);
    assert!(size_of::<Hash>() == 8 && align_of::<Hash>() == 8);
    assert!(size_of::<Zset>() == 8 && align_of::<Zset>() == 8);
    assert!(size_of::<Stream>() == 8 && align_of::<Stream>() == 8);
    assert!(size_of::<Arc<Vec<u8>>>() == 8);
};

/// The word of an entry. A plain copyable number: the keyspace decides which code may read or free
/// the entry behind it, and hands out [`Entry`] and [`EntryMut`] with a lifetime.
///
/// Invariant: the number came from [`Word::new`], and the entry lives as long as the word is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    /// The word that [`Word::bits`] gave.
    ///
    /// # Safety
    /// The bits are a word's, whose entry lives as long as the result is used. Meanwhile only code
    /// that has the entry for itself changes it.
    #[inline]
    pub(crate) unsafe fn from_bits(bits: u64) -> Word {
        Word(bits)
    }

    /// The number under which a table keeps the entry.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    fn kind(self) -> Kind {
        // SAFETY: `Word::allocate` and `Word::with_kind` put the number of a `Kind` there.
        unsafe { Kind::from_number((self.0 >> KIND_SHIFT) & ((1 << KIND_BITS) - 1)) }
    }

    fn base(self) -> *mut u8 {
        (self.0 & POINTER) as *mut u8
    }

    fn has_expiry(self) -> bool {
        self.0 & EXPIRY != 0
    }

    fn is_wide(self) -> bool {
        self.0 & WIDE != 0
    }

    fn content_type_id(self) -> u8 {
        ((self.0 & CONTENT_TYPE_ID) >> CONTENT_TYPE_ID_SHIFT) as u8
    }

    fn with_content_type_id(self, content_type_id: u8) -> Word {
        Word(self.0 & !CONTENT_TYPE_ID | u64::from(content_type_id) << CONTENT_TYPE_ID_SHIFT)
    }

    /// Whether fields of the hash that is the value expire.
    pub(crate) fn has_expiring_fields(self) -> bool {
        self.0 & FIELDS != 0
    }

    fn with_expiring_fields(self, some: bool) -> Word {
        Word(self.0 & !FIELDS | if some { FIELDS } else { 0 })
    }

    /// When the first field of the hash expires.
    pub(crate) fn next_field_expiry(self) -> Option<u64> {
        if !self.has_expiring_fields() {
            return None;
        }
        match self.value() {
            ValueRef::Hash(hash) => hash.next_expiry(),
            _ => None,
        }
    }

    fn payload_offset(self) -> usize {
        usize::from(self.has_expiry()) * 8
    }

    fn header_offset(self) -> usize {
        self.payload_offset() + usize::from(!self.kind().is_inline()) * 8
    }

    fn key_offset(self) -> usize {
        self.header_offset() + if self.is_wide() { WIDE_HEADER } else { SHORT_HEADER }
    }

    /// Key length and inline value length.
    fn lengths(self) -> (usize, usize) {
        // SAFETY: the header of a live entry, by the contract of `Word`'s methods: the keyspace
        // calls them only for entries that are in its tables, or that it has just taken out.
        unsafe {
            let header = self.base().add(self.header_offset());
            if self.is_wide() {
                let lengths = header.add(WIDE_LENGTHS_AT).cast::<[u32; 2]>().read_unaligned();
                (lengths[0] as usize, lengths[1] as usize)
            } else {
                let lengths = header.add(SHORT_LENGTHS_AT).cast::<[u8; 2]>().read();
                (usize::from(lengths[0]), usize::from(lengths[1]))
            }
        }
    }

    fn layout(self) -> Layout {
        let (key, value) = self.lengths();
        entry_layout(self.key_offset() + key + value)
    }

    /// Bytes of the entry's own allocation.
    pub(crate) fn allocated(self) -> usize {
        self.layout().size()
    }

    pub(crate) fn key<'e>(self) -> &'e [u8] {
        let (length, _) = self.lengths();
        // SAFETY: the key lies after the header; the callers bound the lifetime.
        unsafe { std::slice::from_raw_parts(self.base().add(self.key_offset()), length) }
    }

    fn inline<'e>(self) -> &'e [u8] {
        let (key, value) = self.lengths();
        // SAFETY: the inline value lies after the key.
        unsafe { std::slice::from_raw_parts(self.base().add(self.key_offset() + key), value) }
    }

    fn payload(self) -> *mut u64 {
        debug_assert!(!self.kind().is_inline());
        // SAFETY: within the allocation, and aligned: allocations are aligned to 8 bytes.
        unsafe { self.base().add(self.payload_offset()).cast() }
    }

    pub(crate) fn expire_at(self) -> Option<u64> {
        // SAFETY: an entry with the flag begins with its expiry, aligned.
        self.has_expiry().then(|| unsafe { self.base().cast::<u64>().read() })
    }

    pub(crate) fn value<'e>(self) -> ValueRef<'e> {
        // SAFETY: the payload has the type of the kind; `allocate` put it there. The collections
        // are one thin pointer each, so a reference to the payload is a reference to them.
        unsafe {
            match self.kind() {
                Kind::Int => ValueRef::String(StringRef::Int(self.payload().read().cast_signed())),
                Kind::Inline => {
                    ValueRef::String(StringRef::Inline { bytes: self.inline(), raw: false })
                }
                Kind::InlineRaw => {
                    ValueRef::String(StringRef::Inline { bytes: self.inline(), raw: true })
                }
                Kind::Shared => ValueRef::String(StringRef::Shared(&*self.payload().cast())),
                Kind::List => ValueRef::List(&*self.payload().cast()),
                Kind::Set => ValueRef::Set(&*self.payload().cast()),
                Kind::Hash => ValueRef::Hash(&*self.payload().cast()),
                Kind::Zset => ValueRef::Zset(&*self.payload().cast()),
                Kind::Stream => ValueRef::Stream(&*self.payload().cast()),
            }
        }
    }

    fn value_mut<'e>(self) -> ValueMut<'e> {
        // SAFETY: as in `value`; `EntryMut` borrows the keyspace exclusively.
        unsafe {
            match self.kind() {
                Kind::List => ValueMut::List(&mut *self.payload().cast()),
                Kind::Set => ValueMut::Set(&mut *self.payload().cast()),
                Kind::Hash => ValueMut::Hash(&mut *self.payload().cast()),
                Kind::Zset => ValueMut::Zset(&mut *self.payload().cast()),
                Kind::Stream => ValueMut::Stream(&mut *self.payload().cast()),
                _ => match self.value() {
                    ValueRef::String(string) => ValueMut::String(string),
                    _ => unreachable!("the other kinds are strings"),
                },
            }
        }
    }

    /// The table of a large set, hash or sorted set, for a snapshot to begin or go on with. The
    /// caller has the entry for itself: it holds the slot's lock, or owns the entry's table.
    pub(crate) fn freezing<'e>(self) -> Option<&'e mut dyn Freezing> {
        match self.value_mut() {
            ValueMut::Set(set) => set.freezing(),
            ValueMut::Hash(hash) => hash.freezing(),
            ValueMut::Zset(zset) => zset.freezing(),
            ValueMut::String(_) | ValueMut::List(_) | ValueMut::Stream(_) => None,
        }
    }

    /// Makes an entry. Version and clock are zero.
    pub(crate) fn new(key: &[u8], value: Value<'_>, expire_at: Option<u64>) -> Word {
        match value {
            Value::String(StringValue::Int(number)) => {
                Self::with_payload(Kind::Int, key, number.cast_unsigned(), expire_at)
            }
            Value::String(StringValue::Plain(bytes)) => {
                Self::with_bytes(Kind::Inline, key, bytes, expire_at)
            }
            Value::String(StringValue::Raw(bytes)) => {
                Self::with_bytes(Kind::InlineRaw, key, bytes, expire_at)
            }
            Value::String(StringValue::Shared(buffer)) => {
                Self::with_payload(Kind::Shared, key, buffer, expire_at)
            }
            Value::List(list) => Self::with_payload(Kind::List, key, list, expire_at),
            Value::Set(set) => Self::with_payload(Kind::Set, key, set, expire_at),
            Value::Hash(hash) => {
                let expiring = hash.next_expiry().is_some();
                let word = Self::with_payload(Kind::Hash, key, hash, expire_at);
                word.with_expiring_fields(expiring)
            }
            Value::Zset(zset) => Self::with_payload(Kind::Zset, key, zset, expire_at),
            Value::Stream(stream) => Self::with_payload(Kind::Stream, key, stream, expire_at),
        }
    }

    fn with_bytes(kind: Kind, key: &[u8], bytes: Cow<'_, [u8]>, expire_at: Option<u64>) -> Word {
        if bytes.len() > INLINE_MAX {
            let buffer = Arc::new(bytes.into_owned());
            return Self::with_payload(Kind::Shared, key, buffer, expire_at);
        }
        let word = Self::allocate(kind, key, bytes.len(), expire_at);
        // SAFETY: the allocation has room for the value after the key.
        unsafe {
            let at = word.base().add(word.key_offset() + key.len());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
        }
        word
    }

    /// Makes an entry that owns a number, or a handle of one thin pointer, as its payload.
    fn with_payload<T>(kind: Kind, key: &[u8], payload: T, expire_at: Option<u64>) -> Word {
        const { assert!(size_of::<T>() == 8 && align_of::<T>() == 8) };
        let word = Self::allocate(kind, key, 0, expire_at);
        // SAFETY: kinds that are not inline have room for the payload, and remember its type.
        // Written as what it is: as a number, a pointer would lose which memory it is for.
        unsafe { word.payload().cast::<T>().write(payload) };
        word
    }

    /// Allocates and fills all but the value.
    fn allocate(kind: Kind, key: &[u8], inline: usize, expire_at: Option<u64>) -> Word {
        let mut word = Word((kind as u64) << KIND_SHIFT);
        if key.len() > 255 || inline > 255 {
            assert!(key.len() <= MAX_KEY && inline <= INLINE_MAX, "longer keys are refused before");
            word.0 |= WIDE;
        }
        if expire_at.is_some() {
            word.0 |= EXPIRY;
        }
        let layout = entry_layout(word.key_offset() + key.len() + inline);
        // SAFETY: the layout has a size of at least the header; every write below stays inside it:
        // expiry at 0, the header at its offset, the key after it.
        unsafe {
            let base = alloc(layout);
            if base.is_null() {
                handle_alloc_error(layout);
            }
            debug_assert_eq!(base as u64 & !POINTER, 0, "addresses have 48 bits");
            word.0 |= base as u64;
            if let Some(at) = expire_at {
                base.cast::<u64>().write(at);
            }
            let header = base.add(word.header_offset());
            header.cast::<[u8; SHORT_LENGTHS_AT]>().write([0; SHORT_LENGTHS_AT]);
            word.write_lengths(key.len(), inline);
            std::ptr::copy_nonoverlapping(key.as_ptr(), base.add(word.key_offset()), key.len());
        }
        word
    }

    /// Overwrites a string with another one that fits the same allocation. Returns the entry's new
    /// word, or nothing when a new entry must be made.
    #[inline]
    fn overwrite(self, value: &StringValue<'_>) -> Option<Word> {
        let (kind, bytes) = match value {
            StringValue::Int(number) if self.kind() == Kind::Int => {
                // SAFETY: the payload of an integer is the integer.
                unsafe { self.payload().write(number.cast_unsigned()) };
                return Some(self.with_content_type_id(0));
            }
            StringValue::Plain(bytes) => (Kind::Inline, bytes),
            StringValue::Raw(bytes) => (Kind::InlineRaw, bytes),
            _ => return None,
        };
        let word = self.resized(kind, bytes.len())?;
        word.inline_mut().copy_from_slice(bytes);
        Some(word.with_content_type_id(0))
    }

    /// Gives an inline string another kind and length in the same allocation, if there is room.
    /// Bytes beyond the old length are not cleared.
    fn resized(self, kind: Kind, length: usize) -> Option<Word> {
        if !self.kind().is_inline() || length > INLINE_MAX || (length > 255 && !self.is_wide()) {
            return None;
        }
        let (key, old) = self.lengths();
        if old == length {
            return Some(self.with_kind(kind));
        }
        if entry_layout(self.key_offset() + key + length) != self.layout() {
            return None;
        }
        // SAFETY: the header of a live entry; the allocation has room for the new length, since
        // its layout is that of an entry of this length.
        unsafe { self.write_lengths(key, length) };
        Some(self.with_kind(kind))
    }

    /// The same entry under another kind with the same parts.
    fn with_kind(self, kind: Kind) -> Word {
        debug_assert_eq!(self.kind().is_inline(), kind.is_inline());
        Word(self.0 & !(((1 << KIND_BITS) - 1) << KIND_SHIFT) | (kind as u64) << KIND_SHIFT)
    }

    /// # Safety
    /// The lengths are those of the allocation, and fit the header's width.
    unsafe fn write_lengths(self, key: usize, inline: usize) {
        // SAFETY: both kinds of header have room for their lengths there.
        unsafe {
            let header = self.base().add(self.header_offset());
            if self.is_wide() {
                let lengths = [key as u32, inline as u32];
                header.add(WIDE_LENGTHS_AT).cast::<[u32; 2]>().write_unaligned(lengths);
            } else {
                let lengths = [key as u8, inline as u8];
                header.add(SHORT_LENGTHS_AT).cast::<[u8; 2]>().write(lengths);
            }
        }
    }

    /// The inline value, for a change. The caller has the entry to itself.
    fn inline_mut<'e>(self) -> &'e mut [u8] {
        let (key, value) = self.lengths();
        // SAFETY: the inline value lies after the key.
        unsafe { std::slice::from_raw_parts_mut(self.base().add(self.key_offset() + key), value) }
    }

    /// A new entry with the same key, expiry, version and clock, and a raw string of `length`
    /// bytes: `bytes` followed by zeros.
    fn with_grown_string(self, bytes: &[u8], length: usize) -> Word {
        let word = if length <= GROWN_INLINE_MAX {
            let word = Self::allocate(Kind::InlineRaw, self.key(), length, self.expire_at());
            let (kept, added) = word.inline_mut().split_at_mut(bytes.len());
            kept.copy_from_slice(bytes);
            added.fill(0);
            word
        } else {
            let buffer = Arc::new(string::grown_buffer(bytes, length));
            Self::with_payload(Kind::Shared, self.key(), buffer, self.expire_at())
        };
        word.set_stamp(self.stamp());
        word.set_clock(self.clock());
        word.with_content_type_id(self.content_type_id())
    }

    /// The same entry in a new allocation with another expiry; the old one is freed without its
    /// payload, which the new one owns.
    fn with_expiry(self, expire_at: Option<u64>) -> Word {
        let (key, inline) = self.lengths();
        let word = Self::allocate(self.kind(), self.key(), inline, expire_at);
        word.set_stamp(self.stamp());
        word.set_clock(self.clock());
        // SAFETY: both have a value of the same kind and length.
        unsafe {
            if self.kind().is_inline() {
                let from = self.base().add(self.key_offset() + key);
                let to = word.base().add(word.key_offset() + key);
                std::ptr::copy_nonoverlapping(from, to, inline);
            } else {
                // Copied as bytes, since it may be a pointer.
                word.payload().copy_from_nonoverlapping(self.payload(), 1);
            }
            dealloc(self.base(), self.layout());
        }
        word.with_content_type_id(self.content_type_id())
            .with_expiring_fields(self.has_expiring_fields())
    }

    /// Takes the value out and frees the entry.
    ///
    /// # Safety
    /// Nothing uses the entry any more, nor anything borrowed from it.
    unsafe fn into_value(self) -> Value<'static> {
        // SAFETY: the payload is read once, and its entry is freed here.
        unsafe {
            let value = match self.kind() {
                Kind::Int => Value::String(StringValue::Int(self.payload().read().cast_signed())),
                Kind::Inline => {
                    Value::String(StringValue::Plain(Cow::Owned(self.inline().to_vec())))
                }
                Kind::InlineRaw => {
                    Value::String(StringValue::Raw(Cow::Owned(self.inline().to_vec())))
                }
                Kind::Shared => {
                    let buffer = self.payload().cast::<Arc<Vec<u8>>>().read();
                    Value::String(StringValue::Shared(buffer))
                }
                Kind::List => Value::List(self.payload().cast::<List>().read()),
                Kind::Set => Value::Set(self.payload().cast::<Set>().read()),
                Kind::Hash => Value::Hash(self.payload().cast::<Hash>().read()),
                Kind::Zset => Value::Zset(self.payload().cast::<Zset>().read()),
                Kind::Stream => Value::Stream(self.payload().cast::<Stream>().read()),
            };
            dealloc(self.base(), self.layout());
            value
        }
    }

    /// Frees the entry and its value.
    ///
    /// # Safety
    /// Nothing uses the entry any more, nor anything borrowed from it.
    pub(crate) unsafe fn free(self) {
        if self.kind().is_inline() {
            // SAFETY: nothing but the allocation belongs to the entry.
            unsafe { dealloc(self.base(), self.layout()) };
        } else {
            // SAFETY: by the caller's promise.
            drop(unsafe { self.into_value() });
        }
    }
}

/// The allocation of an entry of `size` bytes. It has the allocator's own size class (multiples of
/// 16, and above 128 four to a doubling), so that an entry knows how much room it has.
fn entry_layout(size: usize) -> Layout {
    let step = (size.next_power_of_two() / 8).max(16);
    let size = size.next_multiple_of(step);
    Layout::from_size_align(size, 8).expect("an entry is smaller than the address space")
}

/// An entry that a lock keeps still.
#[derive(Clone, Copy)]
pub struct Entry<'e> {
    pub(crate) word: Word,
    pub(crate) life: std::marker::PhantomData<&'e ()>,
}

impl<'e> Entry<'e> {
    pub(crate) fn new(word: Word) -> Entry<'e> {
        Entry { word, life: std::marker::PhantomData }
    }

    /// The key.
    pub fn key(self) -> &'e [u8] {
        self.word.key()
    }

    /// The value.
    #[inline]
    pub fn value(self) -> ValueRef<'e> {
        self.word.value()
    }

    /// When it expires, in milliseconds of Unix time.
    #[inline]
    pub fn expire_at(self) -> Option<u64> {
        self.word.expire_at()
    }

    /// When the first field of the hash that is the value expires, in milliseconds of Unix time.
    #[inline]
    pub fn next_field_expiry(self) -> Option<u64> {
        self.word.next_field_expiry()
    }

    /// The number of its last write.
    pub fn version(self) -> u64 {
        self.word.version()
    }

    /// The 24-bit eviction clock: see [`crate::evict`].
    pub fn clock(self) -> u32 {
        self.word.clock()
    }

    /// Sets the eviction clock. Readers do this too, while they hold the lock.
    #[inline]
    pub fn set_clock(self, clock: u32) {
        if self.word.clock() != clock {
            self.word.set_clock(clock);
        }
    }

    /// Whether freeing it takes long enough to leave it to the background thread: a string of more
    /// than [`FREED_AT_ONCE_SINGLE`] bytes, a collection of more than
    /// [`base::limits::FREED_AT_ONCE`] allocations or [`base::limits::FREED_AT_ONCE_BYTES`]. Looks
    /// at no more than that.
    pub fn is_large(self) -> bool {
        match self.value() {
            ValueRef::String(StringRef::Shared(buffer)) => buffer.capacity() > FREED_AT_ONCE_SINGLE,
            ValueRef::String(_) => false,
            ValueRef::List(list) => list.frees_slowly(),
            ValueRef::Set(set) => set.frees_slowly(),
            ValueRef::Hash(hash) => hash.frees_slowly(),
            ValueRef::Zset(zset) => zset.frees_slowly(),
            ValueRef::Stream(stream) => stream.frees_slowly(),
        }
    }

    /// The content-type id that [`EntryMut::set_content_type_id`] gave it; 0 for none.
    #[inline]
    pub fn content_type_id(self) -> u8 {
        self.word.content_type_id()
    }

    /// Bytes of the entry itself, without those that its value has elsewhere.
    pub fn allocated(self) -> usize {
        self.word.allocated()
    }

    /// Bytes of the entry with its value; those of a large collection are estimated.
    pub(crate) fn memory_estimate(self) -> usize {
        let value = match self.value() {
            ValueRef::String(StringRef::Shared(buffer)) => buffer.capacity(),
            ValueRef::String(_) => 0,
            ValueRef::List(list) => list.memory_estimate(SAMPLES),
            ValueRef::Set(set) => set.memory_usage(SAMPLES),
            ValueRef::Hash(hash) => hash.memory_usage(SAMPLES),
            ValueRef::Zset(zset) => zset.memory_usage(SAMPLES),
            ValueRef::Stream(stream) => stream.memory_usage(SAMPLES),
        };
        self.allocated() + value
    }
}
