//! An entry that is changed where it lies in its table.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::{Entry, Kind, Removed, Value, ValueMut, ValueRef, Word};
use crate::StringValue;
use crate::keyspace::SlotTable;
use crate::snapshot::frozen_text;
use crate::table::dict::Position;
use crate::types::string;

/// An entry that may be changed. Created by the keyspace, which knows the table's place.
pub struct EntryMut<'e> {
    pub(crate) word: Word,
    pub(crate) table: &'e mut SlotTable,
    pub(crate) position: Position,
}

impl<'e> EntryMut<'e> {
    /// The entry as a reader sees it.
    pub fn as_ref(&self) -> Entry<'_> {
        Entry::new(self.word)
    }

    /// The value, for changes in place; the keyspace stays borrowed.
    pub fn into_value_mut(self) -> ValueMut<'e> {
        self.word.value_mut()
    }

    /// The value, for a change in place.
    pub fn value_mut(&mut self) -> ValueMut<'_> {
        self.word.value_mut()
    }

    /// Stamps the number of a write.
    pub fn set_version(&mut self, version: u64) {
        self.word.set_version(version);
    }

    /// Gives the value a content type, by a number of the caller's choice. Changes in place and
    /// changes of the expiry keep the content-type id; a new value has none.
    pub fn set_content_type_id(&mut self, content_type_id: u8) {
        self.put(self.word.with_content_type_id(content_type_id));
    }

    /// Sets, moves or removes the expiry.
    pub fn set_expire_at(&mut self, expire_at: Option<u64>) {
        match (self.word.has_expiry(), expire_at) {
            (false, None) => {}
            (true, Some(at)) => {
                // SAFETY: an entry with the flag begins with its expiry.
                unsafe { self.word.base().cast::<u64>().write(at) };
                self.table.note_expiry(at);
            }
            _ => {
                self.table.count_expiry(self.word.has_expiry(), expire_at);
                self.word = self.word.with_expiry(expire_at);
                self.table.words.replace(self.position, self.word.bits());
            }
        }
    }

    /// Must be called when the times of a hash's fields may have changed, so that those are found
    /// that have expired.
    #[inline]
    pub fn note_fields(&mut self) {
        if let ValueRef::Hash(hash) = self.word.value() {
            let expiry = hash.next_expiry();
            if expiry.is_some() || self.word.has_expiring_fields() {
                self.table.count_fields(self.word.has_expiring_fields(), expiry);
                self.put(self.word.with_expiring_fields(expiry.is_some()));
            }
        }
    }

    /// Puts another value, and another expiry, in place of the old value, which is returned unless
    /// it was overwritten where it lay. The eviction clock stays.
    #[inline]
    pub fn replace(&mut self, value: Value<'_>, expire_at: Option<u64>) -> Option<Removed> {
        if self.word.has_expiry() == expire_at.is_some()
            && let Value::String(string) = &value
            && let Some(word) = self.word.overwrite(string)
        {
            self.put(word);
            self.set_expire_at(expire_at);
            return None;
        }
        let word = Word::new(self.word.key(), value, expire_at);
        word.set_clock(self.word.clock());
        word.set_stamp(self.word.stamp());
        self.table.count_expiry(self.word.has_expiry(), expire_at);
        self.table.count_fields(self.word.has_expiring_fields(), word.next_field_expiry());
        let old = self.word;
        self.put(word);
        // SAFETY: it has left the table.
        Some(unsafe { Removed::new(old) })
    }

    /// Overwrites an integer by another where it lies. Returns false where the value is none.
    #[inline]
    pub fn set_integer(&mut self, number: i64) -> bool {
        let word = self.word.overwrite(&StringValue::Int(number));
        word.inspect(|word| self.put(*word)).is_some()
    }

    /// The bytes of a string for a change in place, lengthened by zeros to `length` where they are
    /// fewer. The string counts as raw from now on. `None` when the value is no string.
    ///
    /// Growing step by step costs O(1) per byte on average.
    pub fn string_mut(&mut self, length: usize) -> Option<&mut [u8]> {
        let ValueRef::String(string) = self.word.value() else { return None };
        let old_length = string.len();
        let length = length.max(old_length);
        if let Some(word) = self.word.resized(Kind::InlineRaw, length) {
            self.put(word);
            word.inline_mut()[old_length..].fill(0);
        } else if !self.grow_buffer(length) {
            // Read again, because the buffer was borrowed for a change meanwhile.
            let ValueRef::String(string) = self.word.value() else { return None };
            let word = self.word.with_grown_string(&string.bytes(), length);
            let old = self.word;
            self.put(word);
            // SAFETY: it has left the table, and its bytes were copied.
            unsafe { old.free() };
        }
        Some(self.string_bytes_mut())
    }

    /// [`EntryMut::string_mut`], limited to a range. A snapshot that reads a large string goes on
    /// reading its old bytes, at the cost of the bytes in the range.
    pub fn string_range_mut(&mut self, length: usize, range: Range<usize>) -> Option<&mut [u8]> {
        if let Some(buffer) = self.buffer_mut()
            && Arc::get_mut(buffer).is_none()
            && let Some(mut bytes) = frozen_text::change(buffer, length, &range)
        {
            // SAFETY: only a snapshot has the buffer besides, and it was told of the range.
            return Some(unsafe { bytes.as_mut() });
        }
        Some(&mut self.string_mut(length)?[range])
    }

    /// Lengthens a buffer where it lies, if there is one and nothing else reads it.
    fn grow_buffer(&mut self, length: usize) -> bool {
        let buffer = self.buffer_mut().and_then(Arc::get_mut);
        buffer.is_some_and(|buffer| {
            string::grow_buffer(buffer, length);
            true
        })
    }

    /// The buffer of a string that has one.
    fn buffer_mut(&mut self) -> Option<&mut Arc<Vec<u8>>> {
        // SAFETY: the payload of this kind is the handle of a buffer; `self` is borrowed for as
        // long as it may be used.
        (self.word.kind() == Kind::Shared).then(|| unsafe { &mut *self.word.payload().cast() })
    }

    /// The bytes of a raw string that nothing else reads.
    fn string_bytes_mut(&mut self) -> &mut [u8] {
        if self.word.kind() == Kind::InlineRaw {
            return self.word.inline_mut();
        }
        let buffer = self.buffer_mut().and_then(Arc::get_mut);
        buffer.expect("a raw string is inline or has a buffer of its own")
    }

    fn put(&mut self, word: Word) {
        if word != self.word {
            self.table.words.replace(self.position, word.bits());
            self.word = word;
        }
    }
}
