//! Fields of hashes whose time is over: no command sees them, and a command that meets one has it
//! removed.

use store::pack::Element;
use store::{Entry, HashView, Key, ValueMut, ValueRef};

use crate::handler::db::Db;
use crate::handler::error::CommandError;
use crate::observe::notify::{Class, Event};
use crate::run::effects::Expired;

/// Fields that a command removes when it meets a hash whose fields have expired.
const FIELDS_AT_ONCE: usize = 256;

impl Db<'_> {
    /// The hash under a key, as it is now.
    #[inline]
    pub fn hash(&self, key: &Key<'_>) -> Result<Option<HashView<'_>>, CommandError> {
        Ok(self.stored_hash(key)?.map(|hash| HashView::new(hash, self.fields_due_by())))
    }

    /// The present hash under a key, for a command that will change it: counts neither as a hit nor as
    /// a miss.
    pub(crate) fn hash_to_change(
        &self,
        key: &Key<'_>,
    ) -> Result<Option<HashView<'_>>, CommandError> {
        match self.peek(key).map(Entry::value) {
            None => Ok(None),
            Some(ValueRef::Hash(hash)) => Ok(Some(HashView::new(hash, self.fields_due_by()))),
            Some(_) => Err(CommandError::WRONG_TYPE),
        }
    }

    /// The value of a field of the hash under a key. An expired field is removed when the command ends.
    #[inline]
    pub fn field<'h>(
        &self,
        key: &Key<'_>,
        hash: HashView<'h>,
        field: &[u8],
    ) -> Option<Element<'h>> {
        let found = hash.get(field);
        if found.is_none() && hash.hides_some() && hash.whole().contains(field) {
            self.note_due_field(key, field);
        }
        found
    }

    /// Remembers a field whose time is over, to be removed when the command ends. Only a bounded number
    /// is remembered: no command sees the rest, and a command may name one field a million times.
    #[cold]
    fn note_due_field(&self, key: &Key<'_>, field: &[u8]) {
        if self.effects.expired.borrow().len() < FIELDS_AT_ONCE {
            let (key, field) = (key.bytes.into(), Some(field.into()));
            self.note_expired(Expired { database: self.index, key, field });
        }
    }

    /// Remembers fields whose time is over, to be removed when the command ends: as many as may be
    /// removed at once.
    pub fn note_due_fields(&self, key: &Key<'_>, hash: Option<HashView<'_>>) {
        if let Some(hash) = hash.filter(|hash| hash.hides_some()) {
            let due = hash.whole().due(self.fields_due_by(), FIELDS_AT_ONCE);
            due.iter().for_each(|field| self.note_due_field(key, field));
        }
    }

    /// Removes fields whose time is over, before the command that names them changes the hash.
    pub fn expire_fields<'f>(&mut self, key: &Key<'_>, fields: impl Iterator<Item = &'f [u8]>) {
        let entry = self.held.find(self.index, key);
        if entry.and_then(|entry| entry.fields_due()).is_some_and(|due| self.is_due(due)) {
            self.delete_fields(self.index, key, &fields.collect::<Vec<_>>());
        }
    }

    /// Removes up to `count` fields of a hash whose time is over. Returns how many it removed.
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

    /// Removes those of the given fields whose time is over, and the key if no field is left. That is one
    /// event, however many fields they are.
    pub(crate) fn delete_fields(&mut self, database: usize, key: &Key<'_>, fields: &[&[u8]]) {
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

    /// Must be called when the times of fields of the hash under a key may have changed.
    pub fn note_fields(&mut self, key: &Key<'_>) {
        if let Some(mut entry) = self.held.find_mut(self.index, key) {
            entry.note_fields();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;

    /// A hash with this many fields whose time is over.
    fn with_due_fields(fields: usize) -> TestServer {
        let mut server = TestServer::new();
        let now = server.turn.now;
        server.now = Some(now);
        server.text("HSET h kept v");
        for number in 0..fields {
            server.text(&format!("HSETEX h PX 5 FIELDS 1 f{number} v"));
        }
        server.now = Some(now + 10);
        server.journal.take();
        server
    }

    #[test]
    fn a_read_removes_what_it_meets_and_remembers_nothing_that_was_never_there() {
        let mut server = with_due_fields(2);
        server.text("HMGET h f0 absent f0 kept");
        let removals: Vec<_> = server.journal.take().into_iter().map(|own| own.argv).collect();
        assert_eq!(removals, [[b"HDEL".to_vec(), b"h".to_vec(), b"f0".to_vec()]]);
        assert_eq!(server.text("HLEN h"), ":2\r\n");
        server.text(&format!("HMGET h{} f1", " absent".repeat(2 * FIELDS_AT_ONCE)));
        assert_eq!(server.text("HLEN h"), ":1\r\n");
    }

    #[test]
    fn fields_that_one_command_finds_expired_are_one_event() {
        for read in ["HMGET h f0 f1 kept f2", "HGETDEL h FIELDS 3 f0 f1 f2"] {
            let mut server = with_due_fields(3);
            server.text("CONFIG SET notify-keyspace-events Eh");
            let mut subscriber = server.connect();
            server.text_as(&mut subscriber, "SUBSCRIBE __keyevent@0__:hexpired");
            server.text(read);
            let heard = crate::testing::messages(&subscriber);
            assert_eq!(heard.matches("hexpired").count(), 1, "{read}: {heard}");
            assert_eq!(server.text("HLEN h"), ":1\r\n");
        }
    }

    #[test]
    fn a_read_that_names_fields_without_end_removes_some_of_them() {
        let mut server = with_due_fields(2 * FIELDS_AT_ONCE);
        let fields = (0..2 * FIELDS_AT_ONCE).map(|number| format!(" f{number}"));
        let reply = server.text(&format!("HMGET h{}", fields.collect::<String>()));
        assert_eq!(reply.matches("$-1\r\n").count(), 2 * FIELDS_AT_ONCE);
        assert_eq!(server.text("HLEN h"), format!(":{}\r\n", FIELDS_AT_ONCE + 1));
        assert_eq!(server.text("HGETALL h"), "*2\r\n$4\r\nkept\r\n$1\r\nv\r\n");
    }
}
