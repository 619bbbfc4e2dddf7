//! Who counts for the quorum of a shard. Only its primary changes that: one node at a time, or all
//! dead ones that leave.
//!
//! From when it begins to change the members until it knows that the change is written down, a
//! write is acknowledged only when both quorums know it; and the change is written down only when
//! the new quorum knows everything that was acknowledged before. So an election by either set
//! finds all of it.

use crate::control::quorum::{Group, Quorum};
use crate::control::state::{Change, Control, Doubts, Purpose, Role, Rule};
use crate::ids::{Epoch, NodeId, ShardId};
use crate::keys::{ShardValue, Subject, encode};
use crate::store::Operation;

/// How far behind a node may be that is taken in, in bytes.
pub(super) const NEAR: u64 = 1 << 20;

/// How long a change may wait for nodes that fall behind, in milliseconds.
const PATIENCE_MS: u64 = 10_000;

/// How long a change is not tried again for which a node fell behind, in milliseconds; each time
/// longer.
const PAUSE_MS: u64 = 30_000;

impl Control {
    pub(super) fn step_members(&mut self) {
        let Role::Leading { shard, epoch, leader } = self.role else { return };
        let Some(entry) = self.mirror.shards.get(&shard) else { return };
        let modified = entry.modified;
        if let Some(change) = &mut self.change
            && change.modified != modified
            && change.old == entry.value.members
        {
            // Slots have come or gone. What has left cannot be done any more.
            (change.modified, change.doubts) = (modified, Doubts::default());
        }
        if let Some(change) = &self.change {
            let is_late = self.now >= change.since + PATIENCE_MS;
            // One that joins and is gone would only keep the others from going on without etcd.
            let mut joining = change.members.iter().filter(|node| !change.old.contains(node));
            let is_in_vain = is_late
                || !self.is_linked_quorum(&change.members, leader.start)
                || joining.any(|node| !self.is_linked(node, leader.start));
            if change.modified != modified {
                self.change = None;
                self.in_vain_members.clear();
            } else if is_in_vain && !change.doubts.are_there() {
                let reached = |members| self.reached(members, leader.start);
                let wanted = reached(&change.old).max(change.offset.unwrap_or(0));
                // Otherwise etcd is what took so long.
                let fell_behind = is_late && reached(&change.members) < wanted;
                let members = change.members.clone();
                let (times, not_before) = self.in_vain_members.entry(members).or_default();
                *not_before = self.now;
                if fell_behind {
                    // Writes may have waited for it all the time.
                    *not_before += PAUSE_MS << (*times).min(4);
                    *times += 1;
                }
                self.change = None;
            } else {
                self.send_change(shard, epoch, leader.start);
            }
            return;
        }
        let has_key = self.leader().is_some_and(|entry| entry.created == epoch);
        if !has_key || !self.hears_etcd() || self.handover.is_some() || self.stop.is_some() {
            return;
        }
        let old = self.mirror.voters(shard);
        let reached = |members: &[NodeId]| self.reached(members, leader.start);
        let mut sets = self.wanted_members(shard, old, leader.start);
        // Nothing shall have to wait because of the change.
        let tried =
            |new: &Vec<NodeId>| self.in_vain_members.get(new).map(|(_, not_before)| *not_before);
        sets.retain(|new| {
            self.is_linked_quorum(new, leader.start)
                && reached(new) + NEAR >= reached(old)
                && tried(new).is_none_or(|not_before| self.now >= not_before)
        });
        let Some(new) = sets.into_iter().min_by_key(tried) else { return };
        let since = self.now;
        let old = old.to_vec();
        self.log(format!("The members of shard {shard} are going to be {new:?}"));
        let (members, doubts) = (new, Doubts::default());
        self.change =
            Some(Change { old, members, since, offset: None, ticks: 0, modified, doubts });
    }

    /// The sets of members that are one change nearer to what they should be, the best first.
    fn wanted_members(&self, shard: ShardId, old: &[NodeId], start: u64) -> Vec<Vec<NodeId>> {
        let belongs = |node: &NodeId| self.mirror.wanted_shard(*node) == Some(shard);
        let leaves = |node: &NodeId| *node != self.me() && !belongs(node);
        let (alive, dead): (Vec<&NodeId>, Vec<&NodeId>) =
            old.iter().filter(|node| leaves(node)).partition(|node| self.is_linked(node, start));
        // The dead ones are no help to the quorum, and leave first and at once: of two dead among
        // three, neither could leave alone.
        let dead = (!dead.is_empty()).then_some(dead);
        let departures = dead.into_iter().chain(alive.into_iter().map(|node| vec![node]));
        let without = departures.map(|departure| {
            old.iter().copied().filter(|node| !departure.contains(&node)).collect()
        });
        let joins = |node: &NodeId| !old.contains(node) && belongs(node);
        let joining = self.replicas.iter().filter(|(node, confirmed)| {
            joins(node) && self.is_linked(node, start) && confirmed + NEAR >= self.data.offset
        });
        let with = joining.map(|(node, _)| {
            let mut new = old.to_vec();
            new.push(*node);
            new.sort_unstable();
            new
        });
        without.chain(with).collect()
    }

    /// How far a quorum of these has everything.
    fn reached(&self, members: &[NodeId], start: u64) -> u64 {
        let groups = vec![Group::new(members, self.me())];
        Quorum { groups, start }.reached(self.data.offset, &self.replicas)
    }

    /// Whether a replica receives what is written in this epoch. The link to a machine that is gone
    /// may stand for long, its lease does not.
    fn is_linked(&self, node: &NodeId, start: u64) -> bool {
        let is_there = |(other, confirmed): &(NodeId, u64)| other == node && *confirmed >= start;
        self.mirror.alive.contains_key(node) && self.replicas.iter().any(is_there)
    }

    /// Whether so many of these are linked that they can acknowledge at quorum.
    fn is_linked_quorum(&self, members: &[NodeId], start: u64) -> bool {
        let Group { replicas, needed } = Group::new(members, self.me());
        replicas.iter().filter(|node| self.is_linked(node, start)).count() >= needed
    }

    /// The journal's end, looked at when both quorums were in force.
    pub(super) fn hear_written(&mut self, offset: u64) {
        if let Some(change) = &mut self.change
            && change.offset.is_none()
        {
            change.offset = Some(offset);
        }
    }

    /// A journal that nobody writes to is not reported again. At the first tick what is known of
    /// it may be from before the quorums were in force, at the second one it is not.
    pub(super) fn hear_tick(&mut self) {
        let offset = self.data.offset;
        if let Some(change) = &mut self.change {
            change.ticks += 1;
            if change.ticks > 1 {
                change.offset.get_or_insert(offset);
            }
        }
    }

    fn send_change(&mut self, shard: ShardId, epoch: Epoch, start: u64) {
        let Some(change) = &self.change else { return };
        let Some(offset) = change.offset else { return };
        let quorum = Quorum { groups: vec![Group::new(&change.members, self.me())], start };
        let knows = quorum.reached(offset, &self.replicas) >= offset;
        let is_certain = knows || change.doubts.are_there() || !self.keeps(Rule::JointQuorum);
        if !is_certain || !change.doubts.allow_another() {
            return;
        }
        let Some(entry) = self.mirror.shards.get(&shard) else { return };
        let subject = Subject::Shard(shard);
        let value = ShardValue { members: change.members.clone(), ..entry.value.clone() };
        let compares =
            vec![self.is_leader(shard, epoch), self.is_unchanged(&subject, change.modified)];
        let put = Operation::Put { key: self.key(&subject), value: encode(&value), lease: 0 };
        if self.transact(Purpose::ChangeMembers, compares, vec![put])
            && let Some(change) = &mut self.change
        {
            change.doubts.note_sent();
        }
    }
}
