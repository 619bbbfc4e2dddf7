//! Deletes the keys of slots that belong to another server.
//!
//! They went there, or were to come from there and did not in the end. Nobody sees them
//! ([`store::Keyspace::hidden`]), so it has no hurry.

use std::time::Duration;

use store::SlotSet;
use store::gate::Gate;

use crate::engine::Engine;
use crate::turn::Turn;

/// Keys that go while a slot is held.
const KEYS_PER_LOCK: usize = 32;
/// The rest after each such step, so that commands come first.
const REST: Duration = Duration::from_micros(50);
/// The rest while a slot is locked, or nothing may be deleted.
const PAUSE: Duration = Duration::from_millis(1);

impl Engine {
    /// Deletes all keys of hidden slots, in a database or in all. Returns whether it has: it ends
    /// before when `goes_on` says so, or when this server becomes a replica. The caller is outside
    /// its gate, and holds no slot.
    pub fn empty_slots(
        &self,
        turn: &mut Turn,
        gate: &Gate,
        (slots, database): (&SlotSet, Option<usize>),
        goes_on: &dyn Fn() -> bool,
    ) -> bool {
        // What a source has sent before it was refused has run.
        drop(self.gates.stop_the_world());
        while !self.tell_slots(gate) {
            if !goes_on() {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        let databases = match database {
            Some(own) => own..own + 1,
            None => 0..self.keyspace.databases(),
        };
        for database in databases {
            let mut from = 0;
            while let Some(slot) = self.keyspace.next_of_all(database, from, Some(slots)) {
                if !goes_on() {
                    return false;
                }
                from = usize::from(slot);
                if !self.keyspace.hidden.has(slot) {
                    from += 1;
                    continue;
                }
                turn.begin(self);
                if turn.refuses_writes || self.replication.is_replica() {
                    return false;
                }
                let rest = if self.empty_some(turn, gate, database, slot) { REST } else { PAUSE };
                turn.announce_appends(self);
                std::thread::sleep(rest);
            }
        }
        true
    }

    /// Tells the replicas which slots this server has, unless nothing may enter the stream: the
    /// next primary is about to go on in it, or it stands still like the data that a stop saves.
    /// Returns whether that is not so.
    fn tell_slots(&self, gate: &Gate) -> bool {
        let _inside = gate.enter();
        let may_append = !(self.pause.is_handing_over() || self.pause.is_stopping());
        if let Some(command) = self.said_slots().filter(|_| may_append && self.tells_replicas()) {
            self.journal.append_messages(&command);
        }
        may_append
    }

    /// Deletes some keys of a slot. Returns whether it did.
    fn empty_some(&self, turn: &mut Turn, gate: &Gate, database: usize, slot: u16) -> bool {
        let inside = gate.enter();
        turn.enter(self);
        let locked = self.keyspace.try_lock_one(inside.pinned(), slot, turn.clock);
        let Some(locked) = locked.filter(|_| self.keyspace.hidden.has(slot)) else { return false };
        let mut keys = Vec::<Box<[u8]>>::new();
        let Some(table) = locked.table(database, slot) else { return false };
        let mut position = Some(0);
        while let Some(at) = position.filter(|_| keys.len() < KEYS_PER_LOCK) {
            position = table.walk(at, |entry| keys.push(entry.key().into()));
        }
        let before = self.keyspace.slot_len(database, slot);
        self.delete_unasked(turn, locked, database, |db| db.delete_moved_keys(&keys));
        self.keyspace.slot_len(database, slot) < before
    }
}
