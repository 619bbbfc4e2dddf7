//! Fields of hashes whose time is over: nobody sees them, and who meets one sees to it that it goes.

use store::pack::Element;
use store::{HashView, Key, ValueMut, ValueRef};

use crate::handler::db::Db;
use crate::handler::error::CommandError;
use crate::observe::notify::{Class, Event};
use crate::run::effects::Expired;

/// Fields that a command removes which meets a hash whose fields have expired.
const FIELDS_AT_ONCE: usize = 256;

impl Db<'_> {
    /// The hash under a key as it is now.
    #[inline]
    pub fn hash(&self, key: &Key<'_>) -> Result<Option<HashView<'_>>, CommandError> {
        Ok(self.stored_hash(key)?.map(|hash| HashView::new(hash, self.now)))
    }

    /// The value of a field of the hash under a key. One that has expired is removed when the command
    /// ends.
    #[inline]
    pub fn field<'h>(
        &self,
        key: &Key<'_>,
        hash: HashView<'h>,
        field: &[u8],
    ) -> Option<Element<'h>> {
        let found = hash.get(field);
        if found.is_none() && hash.hides_some() {
            self.note_missing_field(key, field);
        }
        found
    }

    /// Remembers a field that was looked for and not found, where some have expired: it may be one of
    /// them.
    #[cold]
    pub fn note_missing_field(&self, key: &Key<'_>, field: &[u8]) {
        self.effects.expired.borrow_mut().push(Expired {
            database: self.index,
            key: key.bytes.into(),
            field: Some(field.into()),
        });
    }

    /// Remembers fields whose time is over, to be removed when the command ends: as many as may go at
    /// once.
    pub fn note_due_fields(&self, key: &Key<'_>, hash: Option<HashView<'_>>) {
        if let Some(hash) = hash.filter(|hash| hash.hides_some()) {
            let due = hash.whole().due(self.now, FIELDS_AT_ONCE);
            due.iter().for_each(|field| self.note_missing_field(key, field));
        }
    }

    /// Removes a field if its time is over, before the command that names it changes the hash.
    pub fn expire_field(&mut self, key: &Key<'_>, field: &[u8]) {
        let entry = self.held.find(self.index, key);
        if entry.and_then(|entry| entry.fields_due()).is_some_and(|due| due <= self.now) {
            self.delete_fields(self.index, key, &[field]);
        }
    }

    /// Removes a field that a read did not find, if it is one whose time is over.
    pub(crate) fn settle_field(&mut self, database: usize, key: &Key<'_>, field: &[u8]) {
        self.delete_fields(database, key, &[field]);
    }

    /// Removes up to `count` fields of a hash whose time is over. Returns how many there were.
    pub(crate) fn delete_due_fields(&mut self, key: &Key<'_>, count: usize) -> usize {
        let now = self.now;
        let due = match self.held.find(self.index, key).map(|entry| entry.value()) {
            Some(ValueRef::Hash(hash)) => hash.due(now, count),
            _ => return 0,
        };
        let fields: Vec<&[u8]> = due.iter().map(Vec::as_slice).collect();
        self.delete_fields(self.index, key, &fields);
        fields.len()
    }

    /// Removes those of some fields whose time is over, and the key if none is left.
    fn delete_fields(&mut self, database: usize, key: &Key<'_>, fields: &[&[u8]]) {
        let now = self.now;
        let version = self.held.next_version(key.slot);
        let Some(mut entry) = self.held.find_mut(database, key) else { return };
        let ValueMut::Hash(hash) = entry.value_mut() else { return };
        let mut gone = fields.to_vec();
        gone.retain(|field| {
            let expire_at = hash.get_timed(field).and_then(|(_, expire_at)| expire_at);
            expire_at.is_some_and(|at| at < now) && hash.remove(field)
        });
        if gone.is_empty() {
            return;
        }
        let is_empty = hash.is_empty();
        entry.note_fields();
        entry.set_version(version);
        self.stats.expired_subkeys.add(gone.len() as u64);
        let words = [&b"HDEL"[..], key.bytes].into_iter().chain(gone.iter().copied());
        self.effects.journal_command(database, words);
        self.with_database(database, |db| {
            db.mark_watchers(key);
            db.notify(key, Event(Class::HASH, "hexpired"));
            if is_empty {
                db.remove_empty(key);
            }
        });
    }

    /// To be called when the times of fields of the hash under a key may have changed.
    pub fn note_fields(&mut self, key: &Key<'_>) {
        if let Some(mut entry) = self.held.find_mut(self.index, key) {
            entry.note_fields();
        }
    }
}
