//! Slots that move to another shard, as the source's primary sees it.
//!
//! It sends the data and what is written meanwhile, holds the slots' writes for a moment, brings
//! the rest across, and gives the slots away in one transaction. That one compares both primaries,
//! both shards and the migration's record: whatever else has happened to one of them makes it
//! fail. Whether it has been done may stay unknown for a while; until that is known the slots stay
//! held.

use crate::control::event::Action;
use crate::control::state::{Control, Doubts, Move, Purpose, Role, Rule};
use crate::ids::{Epoch, NodeId, ShardId};
use crate::keys::{MigrationValue, ShardValue, Subject, encode};
use crate::store::{Operation, Revision};
use crate::topology::MigrationState;

/// How many migrations a source has under way at the same time.
const AT_ONCE: usize = 4;

/// How long slots are held for a target that does not confirm, in milliseconds.
const HOLD_MS: u64 = 1000;

/// How long a migration may wait for its target before it holds its slots, while another one waits
/// for its turn, in milliseconds.
const TURN_MS: u64 = 5000;

/// How long a migration waits that has held its slots in vain, in milliseconds; each time longer.
const RETRY_MS: u64 = 250;

impl Control {
    pub(super) fn step_migrations(&mut self) {
        let Role::Leading { shard, epoch, .. } = self.role else { return };
        let gone: Vec<String> = self
            .moves
            .keys()
            .filter(|id| !self.mirror.migrations.contains_key(*id))
            .cloned()
            .collect();
        for id in gone {
            self.finish(&id, shard);
        }
        let mirror = &self.mirror;
        self.in_vain.retain(|id, _| mirror.migrations.contains_key(id));
        let has_key = self.leader().is_some_and(|entry| entry.created == epoch);
        if !has_key || self.stop.is_some() {
            return;
        }
        let own: Vec<(String, MigrationValue, Revision)> = self
            .mirror
            .migrations
            .iter()
            .filter(|(_, entry)| entry.value.from == shard)
            .map(|(id, entry)| (id.clone(), entry.value.clone(), entry.modified))
            .collect();
        for (id, value, modified) in own {
            self.step_migration(shard, epoch, &id, value, modified);
        }
    }

    fn step_migration(
        &mut self,
        shard: ShardId,
        epoch: Epoch,
        id: &str,
        value: MigrationValue,
        modified: Revision,
    ) {
        let owned = self.mirror.shards.get(&shard).map(|entry| &entry.value.slots);
        let is_possible = owned.is_some_and(|owned| owned.contains_all(&value.slots))
            && !value.slots.is_empty()
            && value.to != shard
            && self.mirror.shards.contains_key(&value.to);
        if value.state == MigrationState::Aborted || !is_possible {
            if self.release_slots(id, modified, None) {
                self.delete_migration(id, modified);
            } else {
                self.note(id, value, modified, MigrationState::Aborted);
            }
            return;
        }
        if self.moves.get(id).is_some_and(|one| one.has_failed) {
            return self.note(id, value, modified, MigrationState::Aborted);
        }
        let target = self.mirror.leaders.get(&value.to);
        let target = target.map(|entry| (entry.created, entry.value.node));
        let Some(one) = self.moves.get(id).cloned() else {
            return self.send_slots(id, value, target, modified);
        };
        let now = self.now;
        let is_over = |since: Option<u64>, longest| since.is_some_and(|it| now >= it + longest);
        let is_held_long = is_over(one.held_since, HOLD_MS);
        match target {
            Some((to_epoch, _)) if to_epoch != one.to_epoch => {
                // What was sent to the primary before is not there any more.
                self.release_slots(id, modified, Some(to_epoch));
            }
            // One that is refused again and again is given up between two of them.
            Some(_) if is_held_long && one.is_certain(modified) => {}
            Some((to_epoch, _)) if one.is_delivered => {
                self.give_away(shard, epoch, id, &value, modified, to_epoch);
            }
            Some(_) if value.state == MigrationState::Copying => self.hold(id),
            // Slots are not held while not even this can be written down.
            Some(_) => self.note(id, value.clone(), modified, MigrationState::Copying),
            // Others may have its place meanwhile: all is sent anew to the next primary anyway.
            None if self.release_slots(id, modified, None) => return,
            None => {}
        }
        let is_slow = one.held_since.is_none()
            && is_over(one.turn_since, TURN_MS)
            && self.moves.values().any(|other| other.is_near && other.turn_since.is_none());
        if is_slow || is_held_long {
            if self.release_slots(id, modified, None) {
                let (times, not_before, tried) = self.in_vain.entry(id.to_owned()).or_default();
                *not_before = self.now + (RETRY_MS << (*times).min(4));
                *times += 1;
                *tried = modified;
            } else {
                self.note(id, value, modified, MigrationState::Wanted);
            }
        }
    }

    /// Begins to send the data of slots.
    fn send_slots(
        &mut self,
        id: &str,
        value: MigrationValue,
        target: Option<(Epoch, NodeId)>,
        modified: Revision,
    ) {
        let Some((to_epoch, node)) = target else { return };
        let Some(member) = self.mirror.members.get(&node) else { return };
        let (_, not_before, tried) = self.in_vain.get(id).copied().unwrap_or_default();
        if self.moves.len() >= AT_ONCE || self.handover.is_some() || self.now < not_before {
            return;
        }
        let is_taken = self.moves.values().any(|other| !other.slots.is_apart_from(&value.slots));
        if is_taken {
            return;
        }
        if tried == modified {
            // Nothing is copied anew while nothing can be written down.
            return self.note(id, value, modified, MigrationState::Copying);
        }
        let address = member.value.address.clone();
        if value.state == MigrationState::Wanted {
            self.note(id, value.clone(), modified, MigrationState::Copying);
        }
        let (migration, slots, to) = (id.to_owned(), value.slots, value.to);
        self.sends += 1;
        let number = self.sends;
        let one = Move {
            number,
            slots: slots.clone(),
            to_epoch,
            is_near: false,
            turn_since: None,
            held_since: None,
            is_delivered: false,
            sent_with: 0,
            doubts: Doubts::default(),
            has_failed: false,
        };
        self.moves.insert(migration.clone(), one);
        self.log(format!("Slots {slots} are being sent to shard {to}"));
        self.act(Action::Send { migration, number, slots, to, node, address, to_epoch });
    }

    /// The migration, if this is its present try. What a try before has done, whose end it has not
    /// heard of, says nothing of this one.
    fn present(&mut self, migration: &str, number: u64) -> Option<&mut Move> {
        let counts = !self.keeps(Rule::ThisTry);
        self.moves.get_mut(migration).filter(|one| one.number == number || counts)
    }

    pub(super) fn hear_caught_up(&mut self, migration: &str, number: u64) {
        if let Some(one) = self.present(migration, number) {
            one.is_near = true;
        }
    }

    /// Holds the slots of a migration, one migration after the other: two that give slots away at
    /// the same time would get in each other's way. While etcd is silent, clients need not wait
    /// for it.
    fn hold(&mut self, id: &str) {
        if !self.hears_etcd() || self.moves.values().any(|one| one.turn_since.is_some()) {
            return;
        }
        let now = self.now;
        if let Some(one) = self.moves.get_mut(id).filter(|one| one.is_near) {
            one.turn_since = Some(now);
            self.act(Action::HoldSlots { migration: id.to_owned() });
        }
    }

    pub(super) fn hear_delivered(&mut self, migration: &str, number: u64) {
        let now = self.now;
        if let Some(one) = self.present(migration, number) {
            one.turn_since.get_or_insert(now);
            one.held_since.get_or_insert(now);
            one.is_delivered = true;
        }
    }

    pub(super) fn hear_slots_held(&mut self, migration: &str, number: u64, are_held: bool) {
        let now = self.now;
        if let Some(one) = self.present(migration, number) {
            one.held_since = are_held.then(|| one.held_since.unwrap_or(now));
        }
    }

    /// Nothing is held any more. Another migration may have its turn meanwhile.
    pub(super) fn hear_restarted(&mut self, migration: &str, number: u64) {
        if let Some(one) = self.present(migration, number) {
            (one.is_near, one.is_delivered) = (false, false);
            (one.turn_since, one.held_since) = (None, None);
        }
    }

    /// The transaction that gives slots to the target.
    fn give_away(
        &mut self,
        from: ShardId,
        epoch: Epoch,
        id: &str,
        value: &MigrationValue,
        modified: Revision,
        to_epoch: Epoch,
    ) {
        let is_unread = |one: &Move| one.sent_with == modified && !one.doubts.allow_another();
        if self.moves.get(id).is_some_and(is_unread) {
            return;
        }
        let shards = &self.mirror.shards;
        let (Some(source), Some(target)) = (shards.get(&from), shards.get(&value.to)) else {
            return;
        };
        let purpose = Purpose::HandOver(id.to_owned());
        let record = Subject::Migration(id.to_owned());
        let (source_key, target_key) = (Subject::Shard(from), Subject::Shard(value.to));
        let mut compares = vec![
            self.is_unchanged(&source_key, source.modified),
            self.is_unchanged(&target_key, target.modified),
        ];
        if self.keeps(Rule::CompareHandOver) {
            compares.push(self.is_leader(from, epoch));
            compares.push(self.is_leader(value.to, to_epoch));
            compares.push(self.is_unchanged(&record, modified));
        }
        let less = ShardValue {
            slots: source.value.slots.without(&value.slots),
            members: source.value.members.clone(),
        };
        let more = ShardValue {
            slots: target.value.slots.union(&value.slots),
            members: target.value.members.clone(),
        };
        let operations = vec![
            Operation::Put { key: self.key(&source_key), value: encode(&less), lease: 0 },
            Operation::Put { key: self.key(&target_key), value: encode(&more), lease: 0 },
            Operation::Delete { key: self.key(&record) },
        ];
        if self.transact(purpose, compares, operations)
            && let Some(one) = self.moves.get_mut(id)
        {
            if one.sent_with != modified {
                // Those of before cannot be done any more.
                (one.sent_with, one.doubts) = (modified, Doubts::default());
            }
            one.doubts.note_sent();
        }
    }

    /// Lets writes to the slots go on here, if no transaction can give them away any more: none
    /// has left, or the record has changed since, or the target has another primary.
    fn release_slots(&mut self, id: &str, modified: Revision, newer: Option<Epoch>) -> bool {
        let Some(one) = self.moves.get(id) else { return true };
        let is_certain =
            one.is_certain(modified) || newer.is_some_and(|newer| newer > one.to_epoch);
        if !is_certain && self.keeps(Rule::HoldUntilKnown) {
            return false;
        }
        self.moves.remove(id);
        self.act(Action::Finish { migration: id.to_owned(), moved: false });
        true
    }

    /// The record is gone: the slots have moved, or somebody has deleted it.
    fn finish(&mut self, id: &str, shard: ShardId) {
        let Some(one) = self.moves.remove(id) else { return };
        let owned = self.mirror.shards.get(&shard).map(|entry| &entry.value.slots);
        let moved = owned.is_none_or(|owned| !owned.contains_all(&one.slots));
        let whether = if moved { "have moved" } else { "have not moved" };
        self.log(format!("Slots {} {whether}", one.slots));
        self.act(Action::Finish { migration: id.to_owned(), moved });
    }

    /// A migration cannot be done.
    pub(super) fn give_up(&mut self, id: &str, number: u64, reason: &str) {
        let Some(one) = self.present(id, number) else { return };
        one.has_failed = true;
        self.warn(format!("Migration {id} is given up: {reason}"));
    }

    /// Writes the record anew, after which no transaction of before can succeed.
    fn note(&mut self, id: &str, value: MigrationValue, modified: Revision, state: MigrationState) {
        let subject = Subject::Migration(id.to_owned());
        let compares = vec![self.is_unchanged(&subject, modified)];
        let value = encode(&MigrationValue { state, ..value });
        let put = Operation::Put { key: self.key(&subject), value, lease: 0 };
        self.transact(Purpose::NoteMigration(id.to_owned()), compares, vec![put]);
    }

    fn delete_migration(&mut self, id: &str, modified: Revision) {
        let subject = Subject::Migration(id.to_owned());
        let compares = vec![self.is_unchanged(&subject, modified)];
        let operations = vec![Operation::Delete { key: self.key(&subject) }];
        self.transact(Purpose::NoteMigration(id.to_owned()), compares, operations);
    }

    /// This node is not the source any more.
    pub(super) fn drop_moves(&mut self) {
        for (migration, _) in std::mem::take(&mut self.moves) {
            self.act(Action::Finish { migration, moved: false });
        }
    }
}
