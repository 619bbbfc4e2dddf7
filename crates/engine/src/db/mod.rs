//! The database as a handler sees it: the keys that its command named, with their slots locked.
//!
//! Reads go through `&self`, so that a handler may look at several values at once. An expired key
//! then counts as absent, and is deleted when the command ends. Changes go through `&mut self`. A
//! handler that has changed a key calls [`Db::changed`], which stamps the version, marks the
//! watchers, counts the change and records the notification.
//!
//! | file | what it answers |
//! |---|---|
//! | [`fields`] | how are expired fields of hashes removed? |
//! | [`effects`] | what has a command done besides its reply? |
//! | [`notify`] | what has happened to which key, and how do publications leave? |
//! | [`slot_access`] | how does a command reach slots? |

pub mod effects;
pub(crate) mod expiry;
pub mod fields;
pub mod notify;
pub mod slot_access;

use base::limits::{FULL_ELEMENTS, SLOTS};
use store::list::ListLimits;
use store::{
    Entry, EntryMut, Hash, Key, Limits, List, LockedSlots, Removed, Set, SetLimits, Stream,
    StringRef, StringValue, Value, ValueMut, ValueRef, Zset,
};

use crate::cluster::view::ClusterView;
use crate::command::error::{CommandError, CommandResult};
use crate::db::effects::{Effects, Expired};
use crate::db::expiry::Expiry;
use crate::db::notify::{Class, Event};
use crate::db::slot_access::SlotAccess;
use crate::observe::stats::ThreadStats;
use crate::session::attachment::Attachment;
use crate::session::watcher::Change;
use config::Config;

/// See the module's text.
pub struct Db<'a> {
    /// The locked slots.
    pub locked: LockedSlots<'a, Attachment>,
    /// The number of the selected database.
    pub index: usize,
    /// The time of the command, in milliseconds of Unix time: it does not change while the command
    /// runs.
    pub now: u64,
    /// The same instant in microseconds.
    pub now_us: u64,
    /// The same instant as [`crate::turn::Turn::monotonic`], for deadlines and ages.
    pub monotonic: u64,
    /// The settings of this turn.
    pub config: &'a Config,
    /// The cluster as this turn knows it, if the server is a node of one.
    pub cluster: Option<&'a ClusterView>,
    /// What the command does besides its reply.
    pub effects: &'a mut Effects,
    /// The thread's counters.
    pub stats: &'a ThreadStats,
    /// List elements of at least this size get a node of their own.
    pub(crate) packed_threshold: usize,
    /// The eviction clock of this turn: see [`crate::reclaim::eviction`].
    pub clock: EvictionClock,
    /// Whether accesses leave traces in the eviction clock: CLIENT NO-TOUCH.
    pub(crate) touch: bool,
    /// What expires before this has expired, for the client of the command. A client that imports
    /// data finds expired keys: CLIENT IMPORT-SOURCE.
    pub(crate) expire_by: u64,
    /// Who decides when data expires.
    pub(crate) expiry: Expiry,
}

/// The parts of a turn that a database reads, besides the effects, which it changes.
pub(crate) struct TurnParts<'t> {
    pub(crate) now: u64,
    pub(crate) now_us: u64,
    pub(crate) monotonic: u64,
    pub(crate) config: &'t Config,
    pub(crate) cluster: Option<&'t ClusterView>,
    pub(crate) stats: &'t ThreadStats,
    pub(crate) clock: EvictionClock,
    pub(crate) expiry: Expiry,
    pub(crate) packed_threshold: usize,
}

/// How accesses are remembered for eviction.
#[derive(Clone, Copy, Debug)]
pub struct EvictionClock {
    /// `maxmemory-policy` is one of the LFU ones.
    pub lfu: bool,
    /// LRU: seconds, 24 bits. LFU: minutes, 16 bits.
    pub now: u32,
    pub(crate) log_factor: u32,
    /// LFU: minutes after which the count of accesses falls by one.
    pub decay_minutes: u32,
}

impl EvictionClock {
    pub(crate) fn new(config: &Config, now_ms: u64) -> EvictionClock {
        let lfu = config.maxmemory_policy.is_lfu();
        let now = if lfu { (now_ms / 60_000) & 0xffff } else { (now_ms / 1000) & 0xff_ffff };
        EvictionClock {
            lfu,
            now: now as u32,
            log_factor: config.lfu_log_factor,
            decay_minutes: config.lfu_decay_time,
        }
    }

    /// The clock of a new key.
    pub fn fresh(self) -> u32 {
        if self.lfu { (self.now << 8) | store::evict::LFU_INITIAL } else { self.now }
    }

    /// The clock of a key after an access.
    #[inline]
    pub(crate) fn accessed(self, clock: u32) -> u32 {
        if self.lfu {
            let counter = store::evict::lfu_decayed(clock, self.now, self.decay_minutes);
            (self.now << 8) | store::evict::lfu_incremented(counter, self.log_factor)
        } else {
            self.now
        }
    }
}

impl<'a> Db<'a> {
    #[inline]
    pub(crate) fn new(
        turn: TurnParts<'a>,
        effects: &'a mut Effects,
        index: usize,
        locked: LockedSlots<'a, Attachment>,
        touch: bool,
        imports: bool,
    ) -> Db<'a> {
        Db {
            locked,
            index,
            now: turn.now,
            now_us: turn.now_us,
            monotonic: turn.monotonic,
            config: turn.config,
            cluster: turn.cluster,
            effects,
            stats: turn.stats,
            clock: turn.clock,
            packed_threshold: turn.packed_threshold,
            touch,
            expire_by: if imports { 0 } else { turn.now },
            expiry: turn.expiry,
        }
    }

    /// Lets this many milliseconds pass since the command began.
    pub(crate) fn let_time_pass(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        if self.expire_by > 0 {
            self.expire_by = self.now;
        }
    }

    /// Whether a key with this expiry has expired, for the client of the command: the millisecond
    /// that the expiry names is its last.
    #[inline]
    pub fn has_expired(&self, at: u64) -> bool {
        at < self.expire_by
    }

    /// Fields that expire before this have expired, for the client of the command.
    #[inline]
    pub fn fields_expire_by(&self) -> u64 {
        self.expire_by
    }

    /// Whether a key or field that gets this time is removed at once.
    pub fn ends_at_once(&self, at: u64) -> bool {
        at <= self.now && self.expiry.deletes_at_once()
    }

    /// Whether a command that names a time which is over sets that time, instead of deleting.
    pub fn keeps_times_that_are_over(&self) -> bool {
        !self.expiry.deletes_at_once()
    }

    /// Remembers a key that a read found expired, to be removed when the command ends, if it may
    /// be.
    #[cold]
    pub(crate) fn note_expired(&self, expired: Expired) {
        if self.expiry.deletes_met(false) {
            self.effects.expired.borrow_mut().push(expired);
        }
    }

    /// Remembers a key that a walk has found expired. If its slot is locked for the walk alone, the
    /// key is removed after the command.
    pub fn note_expired_in_walk(&self, key: &[u8]) {
        let expired = Expired { database: self.index, key: key.into(), field: None };
        if self.locked.contains(base::crc::key_slot(key)) {
            self.note_expired(expired);
        } else if self.expiry.deletes_met(false) {
            self.effects.expired_elsewhere.borrow_mut().push(expired);
        }
    }

    /// Finds a live key without leaving a trace: no statistics, no access time.
    pub fn peek(&self, key: &Key<'_>) -> Option<Entry<'_>> {
        self.peek_in(self.index, key)
    }

    /// [`Db::peek`] in another database.
    #[inline(always)]
    pub fn peek_in(&self, database: usize, key: &Key<'_>) -> Option<Entry<'_>> {
        let entry = self.locked.find(database, key)?;
        if entry.expire_at().is_some_and(|at| self.has_expired(at)) {
            self.note_expired(Expired { database, key: key.bytes.into(), field: None });
            return None;
        }
        Some(entry)
    }

    /// Sets the content type of the string under a key: [`Entry::content_type_id`].
    pub fn set_content_type_id(&mut self, key: &Key<'_>, content_type_id: u8) {
        if let Some(mut entry) = self.locked.find_mut(self.index, key) {
            entry.set_content_type_id(content_type_id);
        }
    }

    /// Finds a live key for a read: counts a hit or a miss and notes the access.
    #[inline]
    pub fn find(&self, key: &Key<'_>) -> Option<Entry<'_>> {
        let entry = self.find_untouched(key)?;
        self.note_access(entry);
        Some(entry)
    }

    /// Finds a live key for a read that does not use its value (TYPE, TTL): counts a hit or a miss.
    #[inline]
    pub fn find_untouched(&self, key: &Key<'_>) -> Option<Entry<'_>> {
        let entry = self.find_quietly(key);
        if entry.is_none() {
            let event = Event(Class::KEY_MISS, "keymiss");
            self.effects.note(self.config, self.index, key.bytes, event);
        }
        entry
    }

    /// [`Db::find_untouched`] without an event for a miss (OBJECT).
    #[inline]
    pub fn find_quietly(&self, key: &Key<'_>) -> Option<Entry<'_>> {
        let entry = self.peek(key);
        match entry {
            Some(_) => self.stats.keyspace_hits.add(1),
            None => self.stats.keyspace_misses.add(1),
        }
        entry
    }

    #[inline]
    fn note_access(&self, entry: Entry<'_>) {
        if self.touch {
            entry.set_clock(self.clock.accessed(entry.clock()));
        }
    }

    /// Finds a live key for a change. An expired one is deleted first, or counts as absent.
    #[inline]
    pub fn find_mut(&mut self, key: &Key<'_>) -> Option<EntryMut<'_>> {
        if self.expire_if_needed(key) {
            return None;
        }
        let entry = self.locked.find_mut(self.index, key)?;
        if self.touch {
            let clock = self.clock.accessed(entry.as_ref().clock());
            entry.as_ref().set_clock(clock);
        }
        Some(entry)
    }

    /// Deletes a key that has expired, if it may be deleted. Returns whether there is one that
    /// stays, and counts as absent.
    #[inline]
    fn expire_if_needed(&mut self, key: &Key<'_>) -> bool {
        let table = self.locked.table(self.index, key.slot);
        table.is_some_and(|table| self.has_expired(table.next_expiry()))
            && self.delete_if_expired(key)
    }

    fn delete_if_expired(&mut self, key: &Key<'_>) -> bool {
        let expire_at = self.locked.find(self.index, key).and_then(Entry::expire_at);
        if !expire_at.is_some_and(|at| self.has_expired(at)) {
            return false;
        }
        let deletes = self.expiry.deletes_before_change();
        if deletes {
            self.delete_expired(self.index, key);
        }
        !deletes
    }

    /// Takes an expired key that stays out of the way of a new one. That is no deletion: nobody is
    /// told.
    #[inline]
    fn make_way(&mut self, key: &Key<'_>) {
        if !self.expiry.deletes_before_change()
            && self.expire_if_needed(key)
            && let Some(removed) = self.locked.remove(self.index, key)
        {
            self.discard(removed);
        }
    }

    /// Deletes an expired key: its DEL goes into the journal before the effects of the command.
    fn delete_expired(&mut self, database: usize, key: &Key<'_>) {
        if self.drop_unasked(database, key, Event(Class::EXPIRED, "expired")) {
            self.stats.expired_keys.add(1);
            let command = [self.expiry_command(), key.bytes];
            self.effects.journal_command(database, command.into_iter());
        }
    }

    /// Deletes expired keys, with one command in the journal.
    pub(crate) fn delete_expired_keys(&mut self, keys: &[Box<[u8]>]) {
        let index = self.index;
        for key in keys {
            self.drop_unasked(index, &Key::new(key), Event(Class::EXPIRED, "expired"));
        }
        self.stats.expired_keys.add(keys.len() as u64);
        let names = keys.iter().map(|key| &**key);
        let command = std::iter::once(self.expiry_command());
        self.effects.journal_command(index, command.chain(names));
    }

    /// Deletes keys that another server has now, with one command in the journal. Nobody hears of
    /// events.
    pub(crate) fn delete_moved_keys(&mut self, keys: &[Box<[u8]>]) {
        let index = self.index;
        self.effects.silent = true;
        for key in keys {
            self.drop_unasked(index, &Key::new(key), Event(Class::GENERIC, "del"));
        }
        let names = keys.iter().map(|key| &**key);
        let command = std::iter::once(&b"UNLINK"[..]);
        self.effects.journal_command(index, command.chain(names));
    }

    /// Deletes a key to make room.
    pub(crate) fn delete_evicted(&mut self, key: &Key<'_>) {
        let index = self.index;
        if self.drop_unasked(index, key, Event(Class::EVICTED, "evicted")) {
            let lazy = self.config.lazyfree_lazy_eviction;
            let command: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
            self.effects.journal_command(index, [command, key.bytes].into_iter());
        }
    }

    /// The journal's command for an expiry.
    fn expiry_command(&self) -> &'static [u8] {
        if self.config.lazyfree_lazy_expire { b"UNLINK" } else { b"DEL" }
    }

    /// Removes a key that no client's command asked to delete.
    fn drop_unasked(&mut self, database: usize, key: &Key<'_>, event: Event) -> bool {
        let Some(removed) = self.locked.remove(database, key) else { return false };
        self.discard(removed);
        self.locked.next_version(key.slot);
        self.with_database(database, |db| {
            db.note_gone(key);
            db.mark_watchers(key);
            db.notify(key, event);
        });
        true
    }

    /// Deletes the keys that reads found expired. Called after the command has ended, still under
    /// its locks; `at` is the place in the journal where the command began.
    pub(crate) fn settle_expired(&mut self, at: usize) {
        let expired = std::mem::take(self.effects.expired.get_mut());
        if expired.is_empty() {
            return;
        }
        let own = self.effects.journal.split_off(at);
        for of_one_key in expired.chunk_by(|one, next| one.is_of_same_hash(next)) {
            let Expired { database, key, field } = &of_one_key[0];
            let (database, key) = (*database, Key::new(key));
            if field.is_some() {
                let fields = of_one_key.iter().filter_map(|expired| expired.field.as_deref());
                self.delete_fields(database, &key, &fields.collect::<Vec<_>>());
                continue;
            }
            let expire_at = self.locked.find(database, &key).and_then(Entry::expire_at);
            // The command may have put another value in its place meanwhile.
            if expire_at.is_some_and(|expire_at| self.has_expired(expire_at)) {
                self.delete_expired(database, &key);
            }
        }
        self.effects.journal.extend(&own);
    }

    /// Finds a live key for a change, or adds it with the value that `make` gives.
    #[inline]
    fn find_or_insert(
        &mut self,
        key: &Key<'_>,
        make: impl FnOnce() -> Value<'static>,
    ) -> EntryMut<'_> {
        if self.expire_if_needed(key) {
            self.make_way(key);
        }
        let awaited = self.is_awaited(key);
        let (entry, added) = self.locked.find_or_insert(self.index, key, make);
        let clock = entry.as_ref().clock();
        if added {
            entry.as_ref().set_clock(self.clock.fresh());
            let event = Event(Class::NEW, "new");
            self.effects.note(self.config, self.index, key.bytes, event);
            if awaited {
                self.effects.add_ready(self.index, key.bytes);
            }
        } else if self.touch {
            entry.as_ref().set_clock(self.clock.accessed(clock));
        }
        entry
    }

    /// The string under a key.
    #[inline]
    pub fn string(&self, key: &Key<'_>) -> Result<Option<StringRef<'_>>, CommandError> {
        let Some(entry) = self.find(key) else { return Ok(None) };
        entry.value().as_string().map(Some).ok_or(CommandError::WRONG_TYPE)
    }

    /// Puts a value under a key, and replaces what is there. Lists and sorted sets wake clients
    /// that wait for them. The caller calls [`Db::changed`].
    pub fn set(&mut self, key: &Key<'_>, value: Value<'_>, expire_at: Option<u64>) {
        let wakes = matches!(value, Value::List(_) | Value::Zset(_) | Value::Stream(_));
        self.locked.note_placed(self.index, key, &value);
        if let Some(mut entry) = self.find_mut(key) {
            if let Some(old) = entry.replace(value, expire_at) {
                self.discard(old);
            }
        } else {
            let fresh = self.clock.fresh();
            self.make_way(key);
            self.locked.insert(self.index, key, value, expire_at).set_clock(fresh);
            self.notify(key, Event(Class::NEW, "new"));
        }
        if wakes {
            self.wake_waiters(key);
        } else {
            self.note_gone(key);
        }
    }

    /// Puts a string under a key, replaces what is there, and does the work of [`Db::changed`] in
    /// the same lookup.
    #[inline]
    pub fn set_string(
        &mut self,
        key: &Key<'_>,
        value: StringValue<'_>,
        expire_at: Option<u64>,
        event: Event,
    ) {
        let value = Value::String(value);
        let version = self.locked.next_version(key.slot);
        if let Some(mut entry) = self.find_mut(key) {
            entry.set_version(version);
            if let Some(old) = entry.replace(value, expire_at) {
                self.discard(old);
            }
        } else {
            let fresh = self.clock.fresh();
            self.make_way(key);
            let entry = self.locked.insert(self.index, key, value, expire_at);
            entry.set_clock(fresh);
            self.notify(key, Event(Class::NEW, "new"));
        }
        self.note_gone(key);
        self.note_changes(key, 1);
        self.notify(key, event);
    }

    /// Changes the value of a live key where it lies, and does the work of [`Db::changed`] in the
    /// same lookup. Returns nothing when the key does not exist. When `action` fails, it has
    /// changed nothing.
    #[inline]
    pub fn change<T>(
        &mut self,
        key: &Key<'_>,
        event: Event,
        action: impl FnOnce(&mut EntryMut<'_>) -> Result<T, CommandError>,
    ) -> Result<Option<T>, CommandError> {
        let version = self.locked.next_version(key.slot);
        let Some(mut entry) = self.find_mut(key) else { return Ok(None) };
        let result = action(&mut entry)?;
        entry.set_version(version);
        self.note_changes(key, 1);
        self.notify(key, event);
        Ok(Some(result))
    }

    /// The common part of [`Db::add_to_list`] and similar functions.
    #[inline]
    fn add_to(
        &mut self,
        key: &Key<'_>,
        event: Event,
        make: impl FnOnce() -> Value<'static>,
        action: impl FnOnce(ValueMut<'_>) -> Result<u64, CommandError>,
    ) -> CommandResult {
        let version = self.locked.next_version(key.slot);
        let mut entry = self.find_or_insert(key, make);
        let changes = action(entry.value_mut())?;
        if changes > 0 {
            entry.note_fields();
            entry.set_version(version);
            self.note_changes(key, changes);
            self.notify(key, event);
        }
        Ok(())
    }

    /// The common part of [`Db::take_from_list`] and similar functions; `action` also returns
    /// whether nothing is left.
    #[inline]
    fn take_from(
        &mut self,
        key: &Key<'_>,
        event: Event,
        action: impl FnOnce(ValueMut<'_>) -> Result<(u64, bool), CommandError>,
    ) -> Result<bool, CommandError> {
        let version = self.locked.next_version(key.slot);
        let Some(mut entry) = self.find_mut(key) else { return Ok(false) };
        let (changes, emptied) = action(entry.value_mut())?;
        if changes > 0 {
            entry.note_fields();
            entry.set_version(version);
            self.note_changes(key, changes);
            self.notify(key, event);
            if emptied {
                self.remove_empty(key);
            }
        }
        Ok(true)
    }

    /// Puts a result under a key and replaces what is there, or removes the key when the result is
    /// empty, and calls [`Db::changed_times`]: the common part of the commands named ...STORE.
    pub fn set_or_remove(
        &mut self,
        key: &Key<'_>,
        result: Option<Value<'_>>,
        event: Event,
        changes: u64,
    ) {
        if let Some(value) = result {
            self.set(key, value, None);
            self.changed_times(key, event, changes);
        } else if self.remove(key) {
            self.changed(key, Event(Class::GENERIC, "del"));
        }
    }

    /// Removes a live key. The caller calls [`Db::changed`].
    pub fn remove(&mut self, key: &Key<'_>) -> bool {
        let removed = self.take(key);
        let found = removed.is_some();
        if let Some(removed) = removed {
            self.discard(removed);
        }
        found
    }

    /// Takes a live key out, to use its value. The caller calls [`Db::changed`].
    pub fn take(&mut self, key: &Key<'_>) -> Option<Removed> {
        if self.expire_if_needed(key) {
            return None;
        }
        let removed = self.locked.remove(self.index, key)?;
        self.note_gone(key);
        Some(removed)
    }

    /// Frees a removed value: a small string at once, all else after the slots are unlocked.
    #[inline]
    pub fn discard(&mut self, removed: Removed) {
        if !removed.is_small() {
            self.effects.garbage.push(removed);
        }
    }

    /// When a live key expires, in milliseconds of Unix time. Leaves no trace.
    pub fn expire_at(&self, key: &Key<'_>) -> Option<u64> {
        self.peek(key).and_then(Entry::expire_at)
    }

    /// Sets or removes the expiry of a live key. The caller calls [`Db::changed`].
    pub fn set_expire_at(&mut self, key: &Key<'_>, expire_at: Option<u64>) -> bool {
        match self.find_mut(key) {
            Some(mut entry) => {
                entry.set_expire_at(expire_at);
                true
            }
            None => false,
        }
    }

    /// Says that a key was changed or removed.
    #[inline]
    pub fn changed(&mut self, key: &Key<'_>, event: Event) {
        self.changed_times(key, event, 1);
    }

    /// Notes that a key was changed or removed, and counts this many changes.
    #[inline]
    pub fn changed_times(&mut self, key: &Key<'_>, event: Event, changes: u64) {
        self.changed_silently(key, changes);
        self.notify(key, event);
    }

    /// Records that a key was changed without an event.
    #[inline]
    pub fn changed_silently(&mut self, key: &Key<'_>, changes: u64) {
        self.stamp(key);
        self.note_changes(key, changes);
    }

    /// Records that a key was only brought into another form: clients that watch it need not know.
    pub fn converted(&mut self, key: &Key<'_>) {
        self.stamp(key);
        self.effects.dirty += 1;
    }

    #[inline]
    fn stamp(&mut self, key: &Key<'_>) {
        let version = self.locked.next_version(key.slot);
        if let Some(mut entry) = self.locked.find_mut(self.index, key) {
            entry.set_version(version);
        }
    }

    /// The consequences of a change after the version was stamped.
    #[inline]
    fn note_changes(&mut self, key: &Key<'_>, changes: u64) {
        self.mark_watchers(key);
        self.effects.dirty += changes;
    }

    /// Records a second event of the same change.
    #[inline]
    pub fn notify(&mut self, key: &Key<'_>, event: Event) {
        self.effects.note(self.config, self.index, key.bytes, event);
    }

    /// Removes a key whose collection has become empty, with the event "del".
    pub fn remove_empty(&mut self, key: &Key<'_>) {
        self.remove_silently(key);
        self.notify(key, Event(Class::GENERIC, "del"));
    }

    /// The same without an event: the command is about to fill it again.
    pub(crate) fn remove_silently(&mut self, key: &Key<'_>) {
        self.remove(key);
        self.locked.next_version(key.slot);
    }

    /// Tells those who watch a key that it has changed.
    #[inline]
    pub fn mark_watchers(&mut self, key: &Key<'_>) {
        if self.locked.attachment(key.slot).is_some_and(Attachment::has_watchers) {
            let there = self.locked.find(self.index, key).is_some();
            let change = if there { Change::Changed } else { Change::Gone };
            if let Some(attachment) = self.locked.attachment_mut(key.slot) {
                attachment.mark_watchers(self.index, key.bytes, change);
            }
        }
    }

    /// Remembers a key for the waiters that it may satisfy: it got a value, or a stream got more.
    #[inline]
    pub fn wake_waiters(&mut self, key: &Key<'_>) {
        if self.is_awaited(key) {
            self.effects.add_ready(self.index, key.bytes);
        }
    }

    /// Remembers a key whose value is gone, for clients that read a stream in a group there.
    #[inline]
    fn note_gone(&mut self, key: &Key<'_>) {
        let attachment = self.locked.attachment(key.slot);
        if attachment.is_some_and(Attachment::has_stream_waiters) {
            self.wake_waiters(key);
        }
    }

    /// Remembers all keys of some databases for which clients wait until a stream appears or
    /// disappears. The caller holds all slots.
    pub fn wake_stream_waiters(&mut self, concerns: impl Fn(usize) -> bool) {
        for slot in 0..SLOTS as u16 {
            let attachment = self.locked.attachment(slot);
            let Some(attachment) = attachment.filter(|own| own.has_stream_waiters()) else {
                continue;
            };
            for (database, key) in attachment.waited().filter(|(database, _)| concerns(*database)) {
                self.effects.add_ready(database, key);
            }
        }
    }

    /// The stream under a key.
    #[inline]
    pub fn stream(&self, key: &Key<'_>) -> Result<Option<&Stream>, CommandError> {
        match self.find(key).map(Entry::value) {
            None => Ok(None),
            Some(ValueRef::Stream(stream)) => Ok(Some(stream)),
            Some(_) => Err(CommandError::WRONG_TYPE),
        }
    }

    /// The stream under a key, for a change. A stream that becomes empty stays.
    #[inline]
    pub fn stream_mut(&mut self, key: &Key<'_>) -> Result<Option<&mut Stream>, CommandError> {
        match self.find_mut(key).map(EntryMut::into_value_mut) {
            None => Ok(None),
            Some(ValueMut::Stream(stream)) => Ok(Some(stream)),
            Some(_) => Err(CommandError::WRONG_TYPE),
        }
    }

    /// Whether a client waits for this key.
    #[inline]
    fn is_awaited(&self, key: &Key<'_>) -> bool {
        let attachment = self.locked.attachment(key.slot);
        attachment.is_some_and(|own| own.has_waiters(self.index, key.bytes))
    }

    /// The limits at which a list's elements go into a new node.
    #[inline]
    pub fn list_limits(&self) -> ListLimits {
        ListLimits::new(self.config.list_max_listpack_size, self.packed_threshold)
    }

    /// How large a packed set may grow.
    #[inline]
    pub fn set_limits(&self) -> SetLimits {
        set_limits(self.config)
    }

    /// How large a packed hash may grow.
    #[inline]
    pub fn hash_limits(&self) -> Limits {
        let config = self.config;
        Limits { entries: config.hash_max_listpack_entries, value: config.hash_max_listpack_value }
    }

    /// How large a packed sorted set may grow.
    #[inline]
    pub fn zset_limits(&self) -> Limits {
        let config = self.config;
        Limits { entries: config.zset_max_listpack_entries, value: config.zset_max_listpack_value }
    }

    /// Locks one slot while `action` looks at it, whether the command named it or not. When the
    /// command has not named it, the slot is locked for the action alone, so the action must be
    /// bounded. `None` when another thread has locked the slot: then the command has to give up its
    /// work, and is tried again.
    pub fn with_slot<T>(
        &self,
        slot_access: SlotAccess<'_>,
        slot: u16,
        action: impl FnOnce(&LockedSlots<'_, Attachment>) -> T,
    ) -> Option<T> {
        if self.locked.contains(slot) {
            return Some(action(&self.locked));
        }
        self.lock_other(slot_access, slot).map(|locked| action(&locked))
    }

    /// Locks a slot that the command has not named, on its own. `None` when another thread has
    /// locked it: see [`Db::with_slot`].
    pub fn lock_other(
        &self,
        slot_access: SlotAccess<'_>,
        slot: u16,
    ) -> Option<LockedSlots<'a, Attachment>> {
        let (space, pinned) = (self.locked.space(), self.locked.pinned());
        let clock = base::clock::now_us();
        let locked = match slot_access.reservation() {
            None => space.try_lock_one(pinned, slot, clock),
            Some(reservation) => space.try_lock_reserved(pinned, reservation, &[slot], clock),
        };
        if locked.is_none() {
            self.locked.note_missed(slot);
        }
        locked
    }

    /// Runs `action` under the same locks with another database selected.
    pub fn with_database<T>(&mut self, index: usize, action: impl FnOnce(&mut Self) -> T) -> T {
        let own = std::mem::replace(&mut self.index, index);
        let result = action(self);
        self.index = own;
        result
    }
}

/// The accessors of one collection type: to read, to change, to change or create, to add to, to
/// take from; and the number of elements with which it takes no more.
macro_rules! collection {
    (
        $type:ident,
        $read:ident,
        $change:ident,
        $create:ident,
        $add:ident,
        $take:ident,
        $word:literal,
        $full:expr
    ) => {
        impl Db<'_> {
            #[doc = concat!("The ", $word, " under a key.")]
            #[inline]
            pub fn $read(&self, key: &Key<'_>) -> Result<Option<&$type>, CommandError> {
                match self.find(key).map(Entry::value) {
                    None => Ok(None),
                    Some(ValueRef::$type(value)) => Ok(Some(value)),
                    Some(_) => Err(CommandError::WRONG_TYPE),
                }
            }

            #[doc = concat!("The ", $word, " under a key, for a change.")]
            #[inline]
            pub fn $change(&mut self, key: &Key<'_>) -> Result<Option<&mut $type>, CommandError> {
                match self.find_mut(key).map(EntryMut::into_value_mut) {
                    None => Ok(None),
                    Some(ValueMut::$type(value)) => Ok(Some(value)),
                    Some(_) => Err(CommandError::WRONG_TYPE),
                }
            }

            #[doc = concat!("The ", $word, " under a key, created empty where there is none.")]
            #[doc = "The caller must not leave it empty."]
            #[inline]
            pub fn $create(&mut self, key: &Key<'_>) -> Result<&mut $type, CommandError> {
                let entry = self.find_or_insert(key, || Value::$type($type::new()));
                match entry.into_value_mut() {
                    ValueMut::$type(value) if value.len() >= $full => {
                        Err(CommandError::TOO_MANY_ELEMENTS)
                    }
                    ValueMut::$type(value) => Ok(value),
                    _ => Err(CommandError::WRONG_TYPE),
                }
            }

            #[doc = concat!("Adds to the ", $word, " under a key, created where there is none, and")]
            #[doc = "says [`Db::changed_times`] in the same lookup, by as many changes as `action`"]
            #[doc = "returns. Without any it has changed nothing, and found something there."]
            #[inline]
            pub fn $add(
                &mut self,
                key: &Key<'_>,
                event: Event,
                action: impl FnOnce(&mut $type) -> u64,
            ) -> CommandResult {
                self.add_to(key, event, || Value::$type($type::new()), |value| match value {
                    ValueMut::$type(value) if value.len() >= $full => {
                        Err(CommandError::TOO_MANY_ELEMENTS)
                    }
                    ValueMut::$type(value) => Ok(action(value)),
                    _ => Err(CommandError::WRONG_TYPE),
                })
            }

            #[doc = concat!("Takes from the ", $word, " under a key, and says [`Db::changed_times`]")]
            #[doc = "in the same lookup, by as many changes as `action` returns. Removes it when"]
            #[doc = "nothing is left. Returns whether there was one."]
            #[inline]
            pub fn $take(
                &mut self,
                key: &Key<'_>,
                event: Event,
                action: impl FnOnce(&mut $type) -> u64,
            ) -> Result<bool, CommandError> {
                self.take_from(key, event, |value| match value {
                    ValueMut::$type(value) => Ok((action(value), value.is_empty())),
                    _ => Err(CommandError::WRONG_TYPE),
                })
            }
        }
    };
}

collection!(
    List,
    list,
    list_mut,
    list_or_new,
    add_to_list,
    take_from_list,
    "list",
    isize::MAX as usize
);
collection!(Set, set_of, set_mut, set_or_new, add_to_set, take_from_set, "set", FULL_ELEMENTS);
collection!(
    Hash,
    stored_hash,
    hash_mut,
    hash_or_new,
    add_to_hash,
    take_from_hash,
    "hash",
    FULL_ELEMENTS
);
collection!(
    Zset,
    zset,
    zset_mut,
    zset_or_new,
    add_to_zset,
    take_from_zset,
    "sorted set",
    FULL_ELEMENTS
);

/// How large packed sets may be, as the settings say.
#[inline]
pub fn set_limits(config: &Config) -> SetLimits {
    let (entries, value) = (config.set_max_listpack_entries, config.set_max_listpack_value);
    SetLimits { integers: config.set_max_intset_entries, listpack: Limits { entries, value } }
}
