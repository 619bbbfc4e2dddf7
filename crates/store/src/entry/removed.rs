//! An entry that was removed from its table.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;

use super::{Entry, Kind, Value, ValueRef, Word};
use crate::snapshot::frozen_text::{self, LARGE_TEXT};
use crate::types::string::StringRef;

/// An entry that has left its table. Dropping it frees it, which may take long for a large
/// collection: see [`Removed::is_large`].
///
/// Invariant: nothing else has the entry's word.
pub struct Removed(Word);

// SAFETY: the entry is owned; strings and collections are plain memory, and shared buffers are
// counted atomically.
unsafe impl Send for Removed {}

impl Removed {
    /// Owns the entry of a word.
    ///
    /// # Safety
    /// Nothing else has it: it has left its table, or was never in one.
    #[inline]
    pub(crate) unsafe fn new(word: Word) -> Removed {
        Removed(word)
    }

    /// Its word, until it is freed.
    pub(crate) fn word(&self) -> Word {
        self.0
    }

    /// The entry.
    pub fn entry(&self) -> Entry<'_> {
        Entry::new(self.0)
    }

    /// The value, to be stored elsewhere.
    pub fn into_value(self) -> Value<'static> {
        // SAFETY: we own the entry, and do not free it again.
        unsafe { ManuallyDrop::new(self).0.into_value() }
    }

    /// Whether freeing it costs no more than the allocator's fastest way: one small allocation.
    pub fn is_small(&self) -> bool {
        matches!(self.0.kind(), Kind::Int | Kind::Inline | Kind::InlineRaw)
    }

    /// Whether freeing it should be left to the background thread: see [`Entry::is_large`].
    pub fn is_large(&self) -> bool {
        self.entry().is_large()
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        if self.0.kind() == Kind::Shared
            && let ValueRef::String(StringRef::Shared(buffer)) = self.entry().value()
            && buffer.len() > LARGE_TEXT
        {
            frozen_text::note_left(buffer);
        }
        let frozen = self.0.freezing().and_then(|table| table.frozen().cloned());
        // A snapshot that has not read it to its end goes on with it, and frees it in the end.
        if frozen.is_none_or(|frozen| !frozen.adopt(Removed(self.0))) {
            // SAFETY: we own the entry, and nothing borrows from it.
            unsafe { self.0.free() };
        }
    }
}
