//! The keys of one slot in one database, and when the next of them expires.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;

use super::key::Key;
use crate::entry::{Entry, Removed, Word};
use crate::locks::sync::{AtomicU32, AtomicU64};
use crate::table::dict::{Position, Table};

/// The hash of the key of the entry with this word.
///
/// # Safety
/// The word is a live entry's.
pub(super) unsafe fn hash_of(word: u64) -> u64 {
    // SAFETY: by the caller's promise.
    base::hash::hash(unsafe { Word::from_bits(word) }.key())
}

/// The keys of one slot in one database.
///
/// The table knows a lower bound of when its next key expires, so that expiry does not look at it
/// in vain. When a key goes or its expiry moves, the bound does not rise. A look at all entries
/// raises it. That look is done in steps ([`SlotTable::look_for_expired`]) and stays valid through
/// all changes of the table between them.
///
/// Invariant: the words are those of live entries, which belong to this table alone.
pub struct SlotTable {
    pub(crate) words: Table<true>,
    /// Keys that have an expiry.
    pub(super) expires: AtomicU32,
    /// Hashes with expiring fields.
    pub(super) field_expires: AtomicU32,
    /// No key of this table, and no field of a hash, expires before this time: a lower bound, in
    /// Unix milliseconds. Atomic, because threads read it without the lock.
    pub(super) next_expiry: AtomicU64,
    /// The running scan of all entries.
    pub(super) looking: Option<Box<Looking>>,
}

/// A look at all entries of a table.
pub(super) struct Looking {
    /// Where it stands.
    position: u32,
    /// A lower bound over the entries that it has passed, and the expiries set since it began.
    expiry: u64,
}

/// The result of one step of a look at a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// Entries looked at.
    pub entries: usize,
    /// Whether all entries have been looked at.
    pub finished: bool,
}

impl Default for SlotTable {
    fn default() -> SlotTable {
        SlotTable {
            words: Table::new(),
            expires: AtomicU32::new(0),
            field_expires: AtomicU32::new(0),
            next_expiry: AtomicU64::new(u64::MAX),
            looking: None,
        }
    }
}

impl SlotTable {
    pub(crate) fn note_expiry(&mut self, at: u64) {
        self.next_expiry.store(self.next_expiry().min(at), Ordering::Relaxed);
        if let Some(look) = &mut self.looking {
            look.expiry = look.expiry.min(at);
        }
    }

    pub(crate) fn count_expiry(&mut self, had: bool, now: Option<u64>) {
        Self::count(&self.expires, had, now.is_some());
        self.note_count(now);
    }

    /// Counts a hash whose fields begin to expire, or no longer expire: `expiry` is when the first
    /// does.
    pub(crate) fn count_fields(&mut self, had: bool, expiry: Option<u64>) {
        if had || expiry.is_some() {
            Self::count(&self.field_expires, had, expiry.is_some());
            self.note_count(expiry);
        }
    }

    fn count(counter: &AtomicU32, had: bool, has: bool) {
        let count = counter.load(Ordering::Relaxed) + u32::from(has) - u32::from(had);
        counter.store(count, Ordering::Relaxed);
    }

    fn note_count(&mut self, expiry: Option<u64>) {
        if let Some(at) = expiry {
            self.note_expiry(at);
        } else if self.expires() == 0 && self.field_expires() == 0 {
            self.next_expiry.store(u64::MAX, Ordering::Relaxed);
            self.looking = None;
        }
    }

    /// Looks at some entries, at least `entries` unless the table ends before. Shows those whose
    /// time was before `now`, which the caller deletes, and hashes with expired fields, which the
    /// caller removes. The next call goes on after them. When all have been looked at, the lower
    /// bound of the next expiry is exact, and the next call begins anew. It is lower only when a
    /// hash goes with its last field before its own time.
    pub fn look_for_expired(
        &mut self,
        now: u64,
        entries: usize,
        mut show: impl FnMut(Entry<'_>),
    ) -> Look {
        let begun = self.looking.take();
        let mut look = begun.unwrap_or_else(|| Box::new(Looking { position: 0, expiry: u64::MAX }));
        let (mut position, mut seen) = (Some(look.position), 0);
        while let Some(at) = position.filter(|_| seen < entries) {
            position = self.words.walk(at, |word| {
                seen += 1;
                // SAFETY: the table's words are live entries.
                let entry = Entry::new(unsafe { Word::from_bits(word) });
                let expiry = entry.expire_at().unwrap_or(u64::MAX);
                let next_field_expiry = entry.next_field_expiry().unwrap_or(u64::MAX);
                if expiry >= now {
                    look.expiry = look.expiry.min(expiry);
                }
                if expiry.min(next_field_expiry) < now {
                    show(entry);
                } else {
                    look.expiry = look.expiry.min(next_field_expiry);
                }
            });
        }
        match position {
            None => self.next_expiry.store(look.expiry, Ordering::Relaxed),
            Some(position) => {
                look.position = position;
                self.looking = Some(look);
            }
        }
        Look { entries: seen, finished: position.is_none() }
    }

    /// Keys.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Keys with an expiry.
    pub fn expires(&self) -> usize {
        self.expires.load(Ordering::Relaxed) as usize
    }

    /// Hashes with expiring fields.
    pub fn field_expires(&self) -> usize {
        self.field_expires.load(Ordering::Relaxed) as usize
    }

    /// A time before which nothing in this table expires.
    pub fn next_expiry(&self) -> u64 {
        self.next_expiry.load(Ordering::Relaxed)
    }

    /// Visits the entries at `position` of a walk: see the docs of the table. `None` ends it.
    pub fn walk<'t>(&'t self, position: u32, mut visit: impl FnMut(Entry<'t>)) -> Option<u32> {
        // SAFETY: the table's words are live entries.
        self.words.walk(position, |word| visit(Entry::new(unsafe { Word::from_bits(word) })))
    }

    /// Prefetches what the next steps of a walk visit, `count` positions of them.
    pub(crate) fn prefetch_walk(&self, position: u32, count: usize) {
        self.words.prefetch_walk(position, count);
    }

    /// Where a key lies in the order of a walk.
    pub fn position_of(key: &[u8]) -> u32 {
        Table::<true>::position_of(base::hash::hash(key))
    }

    /// Where a hash lies in the order of a walk.
    pub(crate) fn position_at(hash: u64) -> u32 {
        Table::<true>::position_of(hash)
    }

    /// An entry chosen with equal chances.
    pub fn random(&self) -> Option<Entry<'_>> {
        // SAFETY: the table's words are live entries.
        self.words.random(base::rng::below).map(|word| Entry::new(unsafe { Word::from_bits(word) }))
    }

    /// How many buckets have n keys, for DEBUG HTSTATS.
    pub fn chain_histogram(&self) -> Vec<usize> {
        self.words.chain_histogram()
    }

    /// Buckets.
    pub fn bucket_count(&self) -> usize {
        self.words.bucket_count()
    }

    /// Bytes that the buckets take.
    pub fn overhead(&self) -> usize {
        self.words.memory()
    }

    /// The word of a key.
    pub(crate) fn word_of(&self, key: &Key<'_>) -> Option<Word> {
        Some(self.word_at(self.find(key)?))
    }

    /// The word at a position that was just found.
    #[inline]
    pub(super) fn word_at(&self, position: Position) -> Word {
        // SAFETY: the table's words are live entries.
        unsafe { Word::from_bits(self.words.word(position)) }
    }

    #[inline]
    pub(super) fn find(&self, key: &Key<'_>) -> Option<Position> {
        self.words.find(key.hash, |word| {
            // SAFETY: the table's words are live entries.
            base::bytes::same(unsafe { Word::from_bits(word) }.key(), key.bytes)
        })
    }
}

impl Drop for SlotTable {
    fn drop(&mut self) {
        // SAFETY: the entries leave the table, which owned them.
        self.words.drain(|word| drop(unsafe { Removed::new(Word::from_bits(word)) }));
    }
}
