//! What follows from commands: under the locks, after them, and for keys that no command asked to
//! delete.

use store::gate::Pinned;
use store::{Entry, Key, LockedSlots, garbage};

use crate::db::Db;
use crate::db::effects::{Effects, Expired, Woken};
use crate::engine::Engine;
use crate::session::attachment::Attachment;
use crate::turn::Turn;
use crate::wait::blocking;

impl Engine {
    /// The rest of the work under the locks: the journal receives the effects, and the queue of
    /// publications what other clients hear of them. Returns the journal's offset after them, if
    /// there were any that the stream counts.
    #[inline(always)]
    pub fn settle(&self, db: &mut Db<'_>) -> Option<u64> {
        let effects = &mut db.effects;
        // Keys found expired while waiters were served are deleted by the next command that meets
        // them.
        effects.expired.get_mut().clear();
        if effects.dirty > 0 {
            db.stats.changes.add(effects.dirty);
            effects.dirty = 0;
            if effects.applied_to > 0 {
                self.note_applied_write(db);
            }
        }
        let effects = &mut db.effects;
        let appended = if effects.journal.is_empty() { None } else { self.append_effects(db) };
        if !db.effects.publications.get_mut().is_empty() {
            self.queue_publications(db.effects);
        }
        appended
    }

    #[inline(never)]
    fn append_effects(&self, db: &mut Db<'_>) -> Option<u64> {
        let effects = &mut db.effects;
        // Otherwise its own clients have written. Its stream is that of its primary.
        let is_counted = !self.replication.is_replica();
        let appended = if is_counted {
            self.journal.append(&effects.journal)
        } else {
            self.replication.note_difference();
            self.journal.append_beside(&effects.journal)
        };
        if std::mem::take(&mut effects.changes_tree) {
            self.nodes.note_written(appended);
        }
        db.stats.journaled.add(effects.journal.len_in_stream() as u64);
        effects.journal.clear();
        effects.unannounced = true;
        if effects.defers_replies {
            self.slot_offsets.note_write(&db.locked, appended);
        } else {
            effects.unrecorded = true;
        }
        is_counted.then_some(appended)
    }

    /// The journal gets the bytes of another server's stream whose last command has run, under its
    /// locks: before what clients of this server have got by it, or write to the same keys later.
    #[cold]
    pub(crate) fn append_unit(&self, effects: &mut Effects) {
        let Some(unit) = effects.unit.take() else { return };
        if unit.counts_down {
            self.journal.note_time();
        }
        match unit.is_unknown {
            true => self.journal.append_unknown(&unit.bytes, unit.selected_after),
            false => self.journal.append_raw(&unit.bytes, unit.selected_after),
        };
    }

    /// A command of another server's stream has written. Unless others may write too, the bytes are
    /// appended after this thread has unlocked the slots, before it leaves its gate: those that
    /// read there until then depend on the same offset.
    #[inline(never)]
    fn note_applied_write(&self, db: &mut Db<'_>) {
        let effects = &mut db.effects;
        if effects.defers_replies {
            self.slot_offsets.note_write(&db.locked, effects.applied_to);
        } else {
            effects.unrecorded = true;
        }
    }

    /// The work after the slots are unlocked: waking, publishing and freeing.
    #[inline]
    pub(crate) fn clean_up(&self, pinned: Pinned<'_>, turn: &mut Turn) {
        if turn.effects.leave_work() {
            self.finish_effects(pinned, turn);
        }
    }

    fn finish_effects(&self, pinned: Pinned<'_>, turn: &mut Turn) {
        let effects = &mut turn.effects;
        for Woken { waiter, reply, write_offset } in effects.woken.drain(..) {
            let by_command = || self.journal.end().max(effects.applied_to);
            waiter.leave(reply, write_offset.unwrap_or_else(by_command));
            self.host.wake(&waiter.client);
        }
        for watch in effects.forgotten_watches.drain(..) {
            self.remove_watch(pinned, &watch);
        }
        if std::mem::take(&mut effects.undelivered) {
            self.deliver_publications();
        }
        self.free_removed(effects);
        for expired in std::mem::take(effects.expired_elsewhere.get_mut()) {
            self.delete_if_expired(pinned, turn, &expired);
        }
        if std::mem::take(&mut turn.effects.config_changed) {
            turn.load_config(self);
            // The append-only file may have been turned on.
            turn.look_at_journal(self);
            // The limit may have been lowered.
            self.evict(pinned, turn);
        }
    }

    /// Frees what commands have removed, in the background if that takes long. Scripts and
    /// transactions do so after each of their commands: they may be many, and each may replace what
    /// the one before has stored.
    pub fn free_removed(&self, effects: &mut Effects) {
        for removed in effects.garbage.drain(..) {
            if removed.is_large() {
                self.free_later(removed);
            }
        }
        if garbage::is_there() {
            self.free_parts(garbage::take());
        }
    }

    /// Deletes a key that a walk has found expired, unless its slot is locked: active expiry
    /// removes it then.
    fn delete_if_expired(&self, pinned: Pinned<'_>, turn: &mut Turn, expired: &Expired) {
        let (database, key, now) = (expired.database, Key::new(&expired.key), turn.now);
        if !turn.may_expire(self) {
            return;
        }
        let Some(locked) = self.keyspace.try_lock_one(pinned, key.slot, turn.clock) else { return };
        let expire_at = locked.find(database, &key).and_then(Entry::expire_at);
        if expire_at.is_some_and(|expire_at| expire_at < now) {
            self.delete_unasked(turn, locked, database, |db| {
                db.delete_expired_keys(std::slice::from_ref(&expired.key));
            });
        }
    }

    /// Deletes a key that no command asked to delete (eviction, expiry), unless the data is to
    /// stand still. The calling thread holds the key's slot and no other.
    pub(crate) fn delete_unasked(
        &self,
        turn: &mut Turn,
        locked: LockedSlots<'_, Attachment>,
        database: usize,
        delete: impl FnOnce(&mut Db<'_>),
    ) {
        turn.look_at_journal(self);
        if self.stands_still(turn.monotonic, turn.effects.journal_failed) {
            return;
        }
        let pinned = locked.pinned();
        let (parts, effects) = turn.parts();
        effects.silent = false;
        let mut db = Db::new(parts, effects, database, locked, true, false);
        delete(&mut db);
        if db.effects.ready.is_empty() {
            self.settle(&mut db);
            drop(db);
        } else {
            blocking::serve_unasked(self, db);
        }
        self.clean_up(pinned, turn);
    }
}
