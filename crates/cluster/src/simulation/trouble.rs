//! What goes wrong in a simulated world.

use std::collections::BTreeSet;

use crate::control::Event;
use crate::ids::{NodeId, ShardId};
use crate::keys::{
    AliveValue, CandidateValue, Keys, MemberValue, MigrationValue, ShardValue, Subject, decode,
    encode,
};
use crate::rebuild::{Witness, plan};
use crate::simulation::etcd::{Etcd, Refusal};
use crate::simulation::host::Host;
use crate::simulation::world::{Happening, SLOT_STEP, World, node_id, number_of, shard_id};
use crate::slots::{SLOT_COUNT, SlotRanges};
use crate::store::{Compare, Operation, Pair, Revision};
use crate::topology::{MigrationState, Topology};

/// A kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A process is killed, and starts again soon or later.
    Kill,
    /// Primaries are killed.
    KillPrimaries,
    /// A process stands still for a while.
    Stop,
    /// A node cannot send to etcd, or hears nothing of it, or both.
    PartFromEtcd,
    /// Primaries cannot.
    PartPrimariesFromEtcd,
    /// Two nodes cannot reach each other, one way or both.
    Cut,
    /// A node is cut off from all nodes.
    CutOff,
    /// etcd is away.
    EtcdDown,
    /// etcd has no space for a while. What it has space for last it carries out and refuses.
    EtcdFull,
    /// etcd has another leader, and renews all leases.
    EtcdLeader,
    /// etcd forgets its history.
    Compact,
    /// Messages take long, and overtake each other.
    Spike,
    /// A replica shall become primary.
    Failover,
    /// A process shall end in order.
    End,
    /// Slots shall move.
    Migrate,
    /// They shall not.
    Abort,
    /// A node joins a shard, or leaves it.
    Members,
    /// A machine is gone for good, and its node is forgotten.
    Scrap,
    /// etcd loses everything, and an operator writes the cluster anew from what nodes know.
    EtcdLost,
    /// etcd is saved.
    Save,
    /// It is set back to that, if no shard has got or lost slots or members since. When another
    /// primary was elected since, an operator empties it later, and writes the cluster anew.
    Restore,
}

/// All kinds, as often as they come.
pub(super) const ALL: &[Trouble] = &[
    Trouble::Kill,
    Trouble::Kill,
    Trouble::Kill,
    Trouble::KillPrimaries,
    Trouble::Stop,
    Trouble::Stop,
    Trouble::PartFromEtcd,
    Trouble::PartFromEtcd,
    Trouble::PartPrimariesFromEtcd,
    Trouble::Cut,
    Trouble::Cut,
    Trouble::CutOff,
    Trouble::EtcdDown,
    Trouble::EtcdFull,
    Trouble::EtcdLeader,
    Trouble::Compact,
    Trouble::Spike,
    Trouble::Failover,
    Trouble::End,
    Trouble::Migrate,
    Trouble::Migrate,
    Trouble::Abort,
    Trouble::Members,
];

impl World {
    /// Something goes wrong, or an operator wants something.
    pub(super) fn trouble(&mut self) {
        if self.now >= self.trouble_until {
            return;
        }
        let every = self.plan.trouble_every_ms;
        let after = every / 4 + self.rng.below(every * 3 / 2);
        self.at(after, Happening::Trouble);
        let host = self.rng.index(self.hosts.len());
        match self.plan.troubles[self.rng.index(self.plan.troubles.len())] {
            Trouble::Kill => self.kill_for_a_while(host),
            Trouble::KillPrimaries => {
                // The primaries of all shards, or what is left of them.
                for host in 0..self.hosts.len() {
                    if self.hosts[host].leads().is_some() && self.rng.below(2) == 0 {
                        self.kill_for_a_while(host);
                    }
                }
            }
            Trouble::Stop => self.stop_for_a_while(host),
            Trouble::PartFromEtcd => self.part_from_etcd(host),
            Trouble::PartPrimariesFromEtcd => self.part_primaries_from_etcd(),
            Trouble::Cut => {
                let other = self.rng.index(self.hosts.len());
                self.cut(host, other);
            }
            Trouble::CutOff => {
                for other in 0..self.hosts.len() {
                    self.cut(host, other);
                }
            }
            Trouble::EtcdDown => {
                let after = 300 + self.rng.below(8000);
                self.trace(|| format!("etcd is down for {after} ms"));
                self.etcd_is_up = false;
                self.at(after, Happening::EtcdBack);
            }
            Trouble::EtcdFull if self.is_lost => {}
            Trouble::EtcdFull => {
                let after = 100 + self.rng.below(5000);
                self.trace(|| format!("etcd has no space for {after} ms"));
                self.etcd.refuses = Some(Refusal::Last);
                self.at(after, Happening::EtcdHasSpace);
            }
            Trouble::EtcdLeader => {
                self.trace(|| "etcd has another leader".into());
                self.etcd.renew_all(self.now);
            }
            Trouble::Compact => {
                self.trace(|| "etcd compacts".into());
                self.etcd.compact();
            }
            Trouble::Spike => self.spike_until = self.now + self.rng.below(1500),
            Trouble::Failover => {
                let force = self.rng.below(3) == 0;
                self.trace(|| format!("n{host} shall be primary"));
                self.send(host, host, message(Event::FailoverAsked { ticket: 1, force }));
            }
            Trouble::End => {
                if self.hosts[host].runs_freely()
                    && let Some(process) = self.process(host)
                {
                    process.is_stopping = true;
                    self.trace(|| format!("n{host} shall end"));
                    self.tell(host, Event::StopAsked { ticket: 7, within_ms: 10_000 });
                }
            }
            Trouble::Migrate => self.want_migration(),
            Trouble::Abort => self.abort_migration(),
            Trouble::Members => self.change_members(host),
            Trouble::Scrap => self.scrap(host),
            Trouble::EtcdLost => self.lose_etcd(),
            Trouble::Save => self.saved = Some(self.etcd.clone()),
            Trouble::Restore => {
                if let Some(saved) = self.saved.take() {
                    self.restore_if_shards_are_the_same(saved);
                }
            }
        }
    }

    fn kill_for_a_while(&mut self, host: usize) {
        self.kill(host);
        let after = match self.rng.below(3) {
            0 => self.rng.below(30),
            1 => self.rng.below(1000),
            _ => self.rng.below(8000),
        };
        self.at(after, Happening::Restart { host });
    }

    fn stop_for_a_while(&mut self, host: usize) {
        if self.hosts[host].runs_freely() {
            self.trace(|| format!("n{host} stands still"));
            self.hosts[host].is_stopped = true;
            let after = 50 + self.rng.below(7000);
            self.at(after, Happening::Resume { host });
        }
    }

    fn part_from_etcd(&mut self, host: usize) {
        let (mute, deaf) = match self.rng.below(4) {
            0 => (true, false),
            1 => (false, true),
            _ => (true, true),
        };
        self.trace(|| format!("n{host} cannot reach etcd (mute {mute}, deaf {deaf})"));
        self.hosts[host].is_mute |= mute;
        self.hosts[host].is_deaf |= deaf;
        let after = 200 + self.rng.below(9000);
        self.at(after, Happening::Reconnect { host });
    }

    fn part_primaries_from_etcd(&mut self) {
        for host in 0..self.hosts.len() {
            if self.hosts[host].leads().is_some() && self.rng.below(3) > 0 {
                self.part_from_etcd(host);
            }
        }
    }

    fn cut(&mut self, one: usize, other: usize) {
        if one == other {
            return;
        }
        let ways = self.rng.below(3);
        let after = 200 + self.rng.below(7000);
        for (from, to) in
            [(one, other), (other, one)].into_iter().take(if ways == 0 { 1 } else { 2 })
        {
            self.trace(|| format!("n{from} does not reach n{to}"));
            self.cuts.insert((from, to));
            self.at(after, Happening::Mend { from, to });
        }
    }

    fn want_migration(&mut self) {
        if self.plan.shards < 2 {
            return;
        }
        let from = shard_id(self.rng.index(self.plan.shards));
        let to = shard_id(self.rng.index(self.plan.shards));
        let Some(owned) = self.truth.shards.get(&from).map(|value| value.slots.clone()) else {
            return;
        };
        let mut slots = SlotRanges::new();
        for step in 0..SLOT_COUNT / SLOT_STEP {
            let first = step * SLOT_STEP;
            if owned.contains(first) && self.rng.below(3) == 0 {
                slots.insert(first..=first + SLOT_STEP - 1);
            }
        }
        self.last_number += 1;
        let key = self.keys.of(&Subject::Migration(format!("m{}", self.last_number)));
        self.trace(|| format!("operator: {slots} from {from} to {to}"));
        let value = MigrationValue { slots, from, to, state: MigrationState::Wanted };
        self.operate(Vec::new(), vec![Operation::Put { key, value: encode(&value), lease: 0 }]);
    }

    fn abort_migration(&mut self) {
        let Some(id) = self.truth.migrations.first().cloned() else { return };
        let key = self.keys.of(&Subject::Migration(id));
        let Some(pair) = self.etcd.pairs.get(&key) else { return };
        let value: MigrationValue = decode(&pair.value).expect("a migration");
        let compares = vec![Compare::Modified { key: key.clone(), revision: pair.modified }];
        let value = encode(&MigrationValue { state: MigrationState::Aborted, ..value });
        self.trace(|| format!("operator: aborts {key}"));
        self.operate(compares, vec![Operation::Put { key, value, lease: 0 }]);
    }

    /// Takes a replica out of its shard, or gives a node without a shard one.
    fn change_members(&mut self, host: usize) {
        if self.hosts[host].is_scrapped {
            return;
        }
        match self.wanted_shard(host) {
            None => {
                let shard = shard_id(self.rng.index(self.plan.shards));
                self.trace(|| format!("operator: n{host} joins {shard}"));
                self.assign(host, Some(shard));
            }
            Some(shard) => {
                let is_primary = self.hosts[host].leads().is_some();
                let count = self.truth.shards.get(&shard).map_or(0, |value| value.members.len());
                if !is_primary && count > 2 && self.plan.spares > 0 {
                    self.trace(|| format!("operator: n{host} leaves {shard}"));
                    self.assign(host, None);
                }
            }
        }
    }

    /// The shard that an operator has given a node.
    pub(super) fn wanted_shard(&self, host: usize) -> Option<ShardId> {
        let pair = self.etcd.pairs.get(&self.keys.of(&Subject::Member(node_id(host))))?;
        decode::<MemberValue>(&pair.value).expect("a member").shard
    }

    /// Gives a node to a shard, or takes it out of its shard.
    pub(super) fn assign(&mut self, host: usize, shard: Option<ShardId>) {
        let key = self.keys.of(&Subject::Member(node_id(host)));
        let Some(pair) = self.etcd.pairs.get(&key) else { return };
        let member: MemberValue = decode(&pair.value).expect("a member");
        let compares = vec![Compare::Modified { key: key.clone(), revision: pair.modified }];
        let value = encode(&MemberValue { shard, ..member });
        self.operate(compares, vec![Operation::Put { key, value, lease: 0 }]);
    }

    /// All machines of a shard but one that stays, at most. When none of the others is elected, an
    /// operator gives up what was lost.
    fn scrap(&mut self, host: usize) {
        let stays = |node: &&NodeId| {
            let other = number_of(**node);
            let is_whole = other != host && !self.hosts[other].is_scrapped;
            is_whole && self.wanted_shard(other).is_some()
        };
        let shard = self.truth.shards.values().find(|own| own.members.contains(&node_id(host)));
        let is_last = shard.is_none_or(|own| !own.members.iter().any(|node| stays(&node)));
        if is_last || self.hosts[host].is_scrapped {
            return;
        }
        self.trace(|| format!("n{host} is gone for good"));
        self.kill(host);
        self.hosts[host].is_scrapped = true;
        self.assign(host, None);
        let after = 2000 + self.rng.below(3000);
        self.at(after, Happening::AcceptLoss);
    }

    /// An operator has the shards without a primary go on with what is left of them.
    pub(super) fn accept_loss(&mut self) {
        for (shard, value) in self.truth.shards.clone() {
            let is_whole = |node: &&NodeId| !self.hosts[number_of(**node)].is_scrapped;
            let left: Vec<_> = value.members.iter().filter(is_whole).copied().collect();
            let is_alive =
                |node: &NodeId| self.etcd.pairs.contains_key(&self.keys.of(&Subject::Alive(*node)));
            let waits = value.members.iter().any(|node| !is_whole(&node) && is_alive(node));
            let has_primary = self.truth.leaders.contains_key(&shard);
            if has_primary || waits || left == value.members {
                continue;
            }
            let Some(heir) = self.furthest_candidate(shard, &left) else { continue };
            self.trace(|| format!("operator: {shard} goes on with {heir}, furthest of {left:?}"));
            let slots = value.slots.clone();
            let key = self.keys.of(&Subject::Shard(shard));
            let value = encode(&ShardValue { members: vec![heir], ..value });
            self.operate(Vec::new(), vec![Operation::Put { key, value, lease: 0 }]);
            let content = |node: &NodeId| self.content_of(number_of(*node), &slots);
            let left: BTreeSet<u64> = left.iter().flat_map(content).map(|(_, id)| id).collect();
            let lost = self.clients.acknowledged.iter();
            let lost = lost.filter(|(id, slot)| slots.contains(**slot) && !left.contains(id));
            self.clients.excused.extend(lost.map(|(id, _)| *id));
        }
    }

    /// The furthest of these members, if all of them have said how far they are.
    fn furthest_candidate(&self, shard: ShardId, members: &[NodeId]) -> Option<NodeId> {
        let after = self.truth.epochs.get(&shard).map_or(0, |(epoch, _)| *epoch);
        let position = |node: &NodeId| {
            let alive = self.etcd.pairs.get(&self.keys.of(&Subject::Alive(*node)))?;
            let alive: AliveValue = decode(&alive.value)?;
            let pair = self.etcd.pairs.get(&self.keys.of(&Subject::Candidate(shard, *node)))?;
            let value: CandidateValue = decode(&pair.value)?;
            let counts = value.after == after && value.incarnation == alive.incarnation;
            counts.then_some((value.epoch, value.offset, *node))
        };
        let positions: Option<Vec<_>> = members.iter().map(position).collect();
        positions?.into_iter().max().map(|(.., node)| node)
    }

    fn restore_if_shards_are_the_same(&mut self, saved: Etcd) {
        let shards = |etcd: &Etcd| -> Vec<Revision> {
            let is_shard =
                |pair: &&Pair| matches!(self.keys.subject(&pair.key), Some(Subject::Shard(_)));
            etcd.pairs.values().filter(is_shard).map(|pair| pair.modified).collect()
        };
        if !self.etcd_is_up || self.is_lost || shards(&saved) != shards(&self.etcd) {
            return;
        }
        let epoch = |etcd: &Etcd, shard| {
            let pair = etcd.pairs.get(&self.keys.of(&Subject::Epoch(shard)));
            pair.map(|pair| pair.modified)
        };
        let mut shards = self.truth.shards.keys();
        self.is_set_back |= shards.any(|shard| epoch(&saved, *shard) != epoch(&self.etcd, *shard));
        self.was_set_back |= self.is_set_back;
        self.restore(saved);
        if self.is_set_back {
            let after = 2 * self.plan.node_timeout_ms + self.rng.below(8000);
            self.at(after, Happening::Empty);
        }
    }

    /// An operator empties an etcd that was set back too far.
    pub(super) fn empty(&mut self) {
        if std::mem::take(&mut self.is_set_back) {
            self.lose_etcd();
        }
    }

    /// A backup takes the place of etcd, which is away until all leases have ended.
    pub(super) fn restore(&mut self, saved: Etcd) {
        self.trace(|| "etcd is set back".into());
        self.etcd.restore(saved);
        self.truth.revision = self.etcd.revision;
        self.truth.leaders.clear();
        let ahead = self.ahead();
        for pair in self.etcd.pairs.values() {
            if let Some(Subject::Leader(shard)) = self.keys.subject(&pair.key) {
                self.truth.leaders.insert(shard, pair.created + ahead);
            }
        }
        self.etcd_is_up = false;
        let after = self.plan.node_timeout_ms + self.rng.below(2000);
        self.at(after, Happening::EtcdBack);
        self.end_watches();
    }

    pub(super) fn lose_etcd(&mut self) {
        // What no node has kept, nobody can write anew.
        let is_kept = |host: &Host| host.kept.as_ref().is_some_and(|own| !own.shards.is_empty());
        if self.is_lost || self.now < 3000 || !self.hosts.iter().any(is_kept) {
            return;
        }
        self.trace(|| "etcd has lost everything".into());
        self.etcd.lose();
        self.saved = None;
        self.truth.revision = 0;
        self.truth.leaders.clear();
        self.truth.migrations.clear();
        self.is_lost = true;
        let after = 100 + self.rng.below(4000);
        self.at(after, Happening::Rebuild);
    }

    /// Whether a picture has the slots and the members of all shards as etcd had them last.
    fn knows_layout(&self, picture: &Topology) -> bool {
        self.truth.shards.iter().all(|(shard, own)| {
            let known = picture.shards.get(shard);
            known.is_some_and(|it| it.slots == own.slots && it.members == own.members)
        })
    }

    /// An operator's program asks the nodes that it reaches, and writes what they know.
    pub(super) fn rebuild(&mut self) {
        if !self.is_lost || self.rebuilding.is_some() {
            return;
        }
        let is_peace = self.now >= self.trouble_until;
        let mut witnesses: Vec<Witness> = Vec::new();
        for host in 0..self.hosts.len() {
            let is_reached = is_peace || self.rng.below(8) > 0;
            if let Some(process) = &self.hosts[host].process
                && self.hosts[host].runs_freely()
                && is_reached
            {
                witnesses.push(process.control.witness());
            }
        }
        let is_patient = !is_peace && self.rng.below(2) == 0;
        let waits = witnesses.iter().any(Witness::goes_by_cluster)
            || witnesses.iter().all(|own| own.topology.shards.len() < self.plan.shards)
            || (is_patient && witnesses.len() < self.hosts.len())
            // What those alone know that are not asked is lost, as the operator is told.
            || (!is_peace && !witnesses.iter().any(|own| self.knows_layout(&own.topology)));
        if waits || !self.etcd_is_up {
            return self.at(300, Happening::Rebuild);
        }
        // Where it was written anew without nodes that knew of another time, the operator decides.
        let newest =
            witnesses.iter().filter(|own| own.knows()).max_by_key(|own| own.topology.revision);
        let newest = newest.map(|own| own.node);
        let decided = plan("simulated", &witnesses, None, self.now)
            .or_else(|_| plan("simulated", &witnesses, newest, self.now));
        match decided {
            Ok(rebuild) => self.rebuilding = Some(rebuild),
            Err(reasons) => return self.violate(format!("nothing is rebuilt: {reasons:?}")),
        }
        self.trace(|| format!("operator: {} nodes know {:?}", witnesses.len(), self.rebuilding));
        if self.rng.below(3) == 0 {
            self.write_rebuild(false);
            let after = self.rng.below(1500);
            self.at(after, Happening::RebuildRest);
        } else {
            self.rebuild_rest();
        }
    }

    pub(super) fn rebuild_rest(&mut self) {
        self.write_rebuild(true);
        self.rebuilding = None;
        self.is_lost = false;
        self.rebuilds += 1;
    }

    fn write_rebuild(&mut self, is_complete: bool) {
        let Some(rebuild) = &self.rebuilding else { return };
        let keys = Keys::new("simulated");
        let put = |(key, value)| Operation::Put { key, value, lease: 0 };
        let mut operations: Vec<_> = rebuild.values(&keys).into_iter().map(put).collect();
        if !is_complete {
            operations.truncate(operations.len() / 2);
            operations.reverse();
        }
        let value = rebuild.mark(&self.rebuilds.to_string(), is_complete);
        operations.push(put((keys.of(&Subject::Rebuilt), value)));
        self.operate(Vec::new(), operations);
    }

    /// Ends all trouble.
    pub(super) fn make_peace(&mut self) {
        self.trace(|| "peace".into());
        self.trouble_until = self.now;
        self.cuts.clear();
        self.spike_until = 0;
        if !self.etcd_is_up {
            self.at(0, Happening::EtcdBack);
        }
        self.etcd.refuses = None;
        self.empty();
        if self.is_lost {
            self.at(500, Happening::Rebuild);
        }
        self.at(4000, Happening::AcceptLoss);
        self.at(6000, Happening::AcceptLoss);
        for host in 0..self.hosts.len() {
            self.at(0, Happening::Reconnect { host });
            self.at(0, Happening::Resume { host });
            self.at(0, Happening::Restart { host });
        }
    }
}

fn message(event: Event) -> crate::simulation::host::Message {
    crate::simulation::host::Message::Event(event)
}
