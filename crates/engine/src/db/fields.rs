//! Expired fields of hashes: no command sees them, and a command that meets one has it removed.

use store::pack::Element;
use store::{Entry, HashView, Key, ValueMut, ValueRef};

use crate::command::error::CommandError;
use crate::db::Db;
use crate::db::effects::Expired;
use crate::db::notify::{Class, Event};

/// Fields that a command removes when it meets a hash whose fields have expired.
pub const FIELDS_AT_ONCE: usize = 256;

/// What became of fields that may have expired.
#[derive(Default)]
struct Dropped {
    /// Some are gone.
    any: bool,
    /// No field is left.
    is_empty: bool,
}

impl Db<'_> {
    /// The hash under a key, as it is now.
    #[inline]
    pub fn hash(&self, key: &Key<'_>) -> Result<Option<HashView<'_>>, CommandError> {
        Ok(self.stored_hash(key)?.map(|hash| HashView::new(hash, self.fields_expire_by())))
    }

    /// The present hash under a key, for a command that will change it: counts neither as a hit nor
    /// as a miss.
    pub fn hash_to_change(&self, key: &Key<'_>) -> Result<Option<HashView<'_>>, CommandError> {
        match self.peek(key).map(Entry::value) {
            None => Ok(None),
            Some(ValueRef::Hash(hash)) => Ok(Some(HashView::new(hash, self.fields_expire_by()))),
            Some(_) => Err(CommandError::WRONG_TYPE),
        }
    }

    /// The value of a field of the hash under a key. An expired field is removed when the command
    /// ends.
    #[inline]
    pub fn field<'h>(
        &self,
        key: &Key<'_>,
        hash: HashView<'h>,
        field: &[u8],
    ) -> Option<Element<'h>> {
        let found = hash.get(field);
        if found.is_none() && hash.hides_some() && hash.whole().contains(field) {
            self.note_expired_field(key, field);
        }
        found
    }

    /// Remembers a field whose time is over, to be removed when the command ends. Only a bounded
    /// number is remembered: no command sees the rest, and a command may name one field a million
    /// times.
    #[cold]
    fn note_expired_field(&self, key: &Key<'_>, field: &[u8]) {
        if self.effects.expired.borrow().len() < FIELDS_AT_ONCE {
            let (key, field) = (key.bytes.into(), Some(field.into()));
            self.note_expired(Expired { database: self.index, key, field });
        }
    }

    /// Remembers fields whose time is over, to be removed when the command ends: as many as may be
    /// removed at once.
    pub fn note_expired_fields(&self, key: &Key<'_>, hash: Option<HashView<'_>>) {
        if let Some(hash) = hash.filter(|hash| hash.hides_some()) {
            let expired = hash.whole().expired(self.fields_expire_by(), FIELDS_AT_ONCE);
            expired.iter().for_each(|field| self.note_expired_field(key, field));
        }
    }

    /// Removes fields whose time is over, before the command that names them changes the hash.
    pub fn expire_fields<'f>(&mut self, key: &Key<'_>, fields: impl Iterator<Item = &'f [u8]>) {
        let entry = self.locked.find(self.index, key);
        if self.expiry.deletes_before_change()
            && entry
                .and_then(|entry| entry.next_field_expiry())
                .is_some_and(|at| self.has_expired(at))
        {
            self.delete_fields(self.index, key, &fields.collect::<Vec<_>>());
        }
    }

    /// Removes up to `count` fields of a hash whose time is over. Returns how many it removed.
    pub fn delete_expired_fields(&mut self, key: &Key<'_>, count: usize) -> usize {
        let now = self.now;
        let expired = match self.locked.find(self.index, key).map(|entry| entry.value()) {
            _ if !self.expiry.deletes_before_change() => return 0,
            Some(ValueRef::Hash(hash)) => hash.expired(now, count),
            _ => return 0,
        };
        let fields: Vec<&[u8]> = expired.iter().map(Vec::as_slice).collect();
        self.delete_fields(self.index, key, &fields);
        fields.len()
    }

    /// Removes fields whose time is over, before a command goes on that has looked for them:
    /// without an event, as in Redis. If no field is left the key goes too, and that is an event if
    /// the command `fails`.
    pub fn drop_expired_fields<'f>(
        &mut self,
        key: &Key<'_>,
        fields: impl Iterator<Item = &'f [u8]>,
        fails: bool,
    ) {
        let expired = self.locked.find(self.index, key).and_then(|entry| entry.next_field_expiry());
        let is_any = expired.is_some_and(|at| self.has_expired(at));
        if !is_any
            || !self.expiry.deletes_before_change()
            || !self.drop_fields(self.index, key, &fields.collect::<Vec<_>>()).is_empty
        {
            return;
        }
        self.mark_watchers(key);
        match fails {
            true => self.remove_empty(key),
            false => self.remove_silently(key),
        }
    }

    /// Removes those of the given fields whose time is over, and the key if no field is left. That
    /// is one event, however many fields they are.
    pub(crate) fn delete_fields(&mut self, database: usize, key: &Key<'_>, fields: &[&[u8]]) {
        let Dropped { any, is_empty } = self.drop_fields(database, key, fields);
        if any {
            self.with_database(database, |db| {
                db.mark_watchers(key);
                db.notify(key, Event(Class::HASH, "hexpired"));
                if is_empty {
                    db.remove_empty(key);
                }
            });
        }
    }

    /// Removes those of the given fields whose time is over. The hash may be empty then.
    fn drop_fields(&mut self, database: usize, key: &Key<'_>, fields: &[&[u8]]) -> Dropped {
        let now = self.now;
        let version = self.locked.next_version(key.slot);
        let Some(mut entry) = self.locked.find_mut(database, key) else {
            return Dropped::default();
        };
        let ValueMut::Hash(hash) = entry.value_mut() else { return Dropped::default() };
        let mut gone = fields.to_vec();
        gone.retain(|field| {
            let expire_at = hash.get_timed(field).and_then(|(_, expire_at)| expire_at);
            expire_at.is_some_and(|at| at < now) && hash.remove(field)
        });
        if gone.is_empty() {
            return Dropped::default();
        }
        let is_empty = hash.is_empty();
        entry.note_fields();
        entry.set_version(version);
        self.stats.expired_subkeys.add(gone.len() as u64);
        let words = [&b"HDEL"[..], key.bytes].into_iter().chain(gone.iter().copied());
        self.effects.journal_command(database, words);
        Dropped { any: true, is_empty }
    }

    /// Must be called when the times of fields of the hash under a key may have changed.
    pub fn note_fields(&mut self, key: &Key<'_>) {
        if let Some(mut entry) = self.locked.find_mut(self.index, key) {
            entry.note_fields();
        }
    }
}
