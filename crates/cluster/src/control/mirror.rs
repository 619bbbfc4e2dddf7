//! What etcd has of the cluster, as far as this node has heard.

use std::collections::BTreeMap;

use crate::ids::{Epoch, NodeId, ShardId};
use crate::keys::{
    AliveValue, CandidateValue, FailoverValue, Keys, LeaderValue, MemberValue, MigrationValue,
    RebuiltValue, ShardValue, Subject, decode,
};
use crate::store::{LeaseId, Pair, Revision, WatchEvent};
use crate::topology::{Leader, Migration, Node, Shard, Topology};

/// A key's value, and what etcd says of the key. Its revisions are ahead of etcd's
/// ([`Mirror::ahead`]).
#[derive(Clone, Debug)]
pub(super) struct Entry<V> {
    pub(super) value: V,
    pub(super) created: Revision,
    pub(super) modified: Revision,
    pub(super) lease: LeaseId,
}

/// The keys of the cluster at one revision.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// As of when; 0: nothing was read yet.
    pub(super) revision: Revision,
    /// As of when all was read. What has changed since, a watch has told.
    pub(super) read_at: Revision,
    pub(super) members: BTreeMap<NodeId, Entry<MemberValue>>,
    pub(super) alive: BTreeMap<NodeId, Entry<AliveValue>>,
    pub(super) shards: BTreeMap<ShardId, Entry<ShardValue>>,
    pub(super) leaders: BTreeMap<ShardId, Entry<LeaderValue>>,
    pub(super) epochs: BTreeMap<ShardId, Entry<LeaderValue>>,
    pub(super) candidates: BTreeMap<(ShardId, NodeId), Entry<CandidateValue>>,
    pub(super) failovers: BTreeMap<ShardId, Entry<FailoverValue>>,
    pub(super) migrations: BTreeMap<String, Entry<MigrationValue>>,
    /// That the keys were written anew, and the value that says so as etcd has it.
    pub(super) rebuilt: Option<(RebuiltValue, Vec<u8>)>,
    /// Keys whose values say nothing that is understood.
    pub(super) unreadable: Vec<String>,
}

/// Stores a pair in a map, or takes the key out when its value is not understood.
fn put<K: Ord, V: for<'d> serde::Deserialize<'d>>(
    map: &mut BTreeMap<K, Entry<V>>,
    key: K,
    pair: &Pair,
    ahead: Revision,
) -> bool {
    let (created, modified, lease) = (pair.created + ahead, pair.modified + ahead, pair.lease);
    match decode(&pair.value) {
        Some(value) => map.insert(key, Entry { value, created, modified, lease }),
        None => {
            map.remove(&key);
            return false;
        }
    };
    true
}

impl Mirror {
    /// Whether anything was read yet.
    pub(super) fn is_loaded(&self) -> bool {
        self.revision > 0
    }

    /// How far revisions here are ahead of etcd's.
    pub(super) fn ahead(&self) -> Revision {
        self.rebuilt.as_ref().map_or(0, |(rebuilt, _)| rebuilt.ahead)
    }

    /// Takes over all keys as they were at etcd's `revision`.
    pub(super) fn load(&mut self, keys: &Keys, revision: Revision, pairs: &[Pair]) {
        let key = keys.of(&Subject::Rebuilt);
        let rebuilt = pairs.iter().find(|pair| pair.key == key);
        let rebuilt = rebuilt.and_then(|pair| Some((decode(&pair.value)?, pair.value.clone())));
        *self = Mirror { rebuilt, ..Mirror::default() };
        self.revision = revision + self.ahead();
        self.read_at = self.revision;
        pairs.iter().for_each(|pair| self.put(keys, pair));
    }

    /// Takes over one change.
    pub(super) fn apply(&mut self, keys: &Keys, event: &WatchEvent) {
        match event {
            WatchEvent::Put(pair) => self.put(keys, pair),
            WatchEvent::Delete { key, .. } => self.delete(keys, key),
        }
    }

    fn put(&mut self, keys: &Keys, pair: &Pair) {
        let Some(subject) = keys.subject(&pair.key) else { return };
        let ahead = self.ahead();
        let is_readable = match subject {
            Subject::Member(node) => put(&mut self.members, node, pair, ahead),
            Subject::Alive(node) => put(&mut self.alive, node, pair, ahead),
            Subject::Shard(shard) => put(&mut self.shards, shard, pair, ahead),
            Subject::Leader(shard) => put(&mut self.leaders, shard, pair, ahead),
            Subject::Epoch(shard) => put(&mut self.epochs, shard, pair, ahead),
            Subject::Candidate(shard, node) => {
                put(&mut self.candidates, (shard, node), pair, ahead)
            }
            Subject::Failover(shard) => put(&mut self.failovers, shard, pair, ahead),
            Subject::Migration(id) => put(&mut self.migrations, id, pair, ahead),
            Subject::Change => true,
            Subject::Rebuilt => self.rebuilt.is_some(),
        };
        if !is_readable {
            self.unreadable.push(pair.key.clone());
        }
    }

    fn delete(&mut self, keys: &Keys, key: &str) {
        match keys.subject(key) {
            Some(Subject::Member(node)) => drop(self.members.remove(&node)),
            Some(Subject::Alive(node)) => drop(self.alive.remove(&node)),
            Some(Subject::Shard(shard)) => drop(self.shards.remove(&shard)),
            Some(Subject::Leader(shard)) => drop(self.leaders.remove(&shard)),
            Some(Subject::Epoch(shard)) => drop(self.epochs.remove(&shard)),
            Some(Subject::Candidate(shard, node)) => drop(self.candidates.remove(&(shard, node))),
            Some(Subject::Failover(shard)) => drop(self.failovers.remove(&shard)),
            Some(Subject::Migration(id)) => drop(self.migrations.remove(&id)),
            Some(Subject::Change | Subject::Rebuilt) | None => {}
        }
    }

    /// The shard that an operator has given a node.
    pub(super) fn wanted_shard(&self, node: NodeId) -> Option<ShardId> {
        self.members.get(&node)?.value.shard
    }

    /// The shard of a node: that for whose quorum it counts, until its primary has taken it out;
    /// or else the one that an operator has given it.
    pub(super) fn shard_of(&self, node: NodeId) -> Option<ShardId> {
        let wanted = self.wanted_shard(node);
        if wanted.is_some_and(|shard| self.voters(shard).contains(&node)) {
            return wanted;
        }
        let of = self.shards.iter().find(|(_, shard)| shard.value.members.contains(&node));
        of.map(|(shard, _)| *shard).or(wanted)
    }

    /// The last epoch of a shard; 0: it never had a primary.
    pub(super) fn last_epoch(&self, shard: ShardId) -> Epoch {
        self.epochs.get(&shard).map_or(0, epoch_of)
    }

    /// The members of a shard that count for its quorum.
    pub(super) fn voters(&self, shard: ShardId) -> &[NodeId] {
        self.shards.get(&shard).map_or(&[], |entry| &entry.value.members)
    }

    /// Whether the process that was the last primary of a shard has been followed by another one
    /// of the same node, which knows that it is gone.
    pub(super) fn was_succeeded(&self, leader: &LeaderValue) -> bool {
        let alive = self.alive.get(&leader.node);
        alive.is_some_and(|alive| alive.value.replaces == leader.incarnation)
    }

    /// The picture for all who do not decide.
    pub(super) fn topology(&self, name: &str, is_failed: impl Fn(ShardId) -> bool) -> Topology {
        let mut counts = BTreeMap::new();
        for (shard, entry) in &self.shards {
            counts.extend(entry.value.members.iter().map(|node| (*node, *shard)));
        }
        let nodes = self.members.iter().map(|(id, member)| {
            let alive = self.alive.get(id);
            Node {
                id: *id,
                shard: counts.get(id).copied().or(member.value.shard),
                address: member.value.address.clone(),
                zone: member.value.zone.clone(),
                alive: alive.map(|alive| alive.value.incarnation),
                version: alive.map(|alive| alive.value.version.clone()).unwrap_or_default(),
                name: member.value.name.clone(),
            }
        });
        let mut joining: BTreeMap<ShardId, Vec<NodeId>> = BTreeMap::new();
        for (node, member) in &self.members {
            let Some(shard) = member.value.shard else { continue };
            if !counts.contains_key(node) {
                joining.entry(shard).or_default().push(*node);
            }
        }
        let leader = |value: &LeaderValue, epoch| Leader {
            node: value.node,
            incarnation: value.incarnation,
            epoch,
            start: value.start,
        };
        let shards = self.shards.iter().map(|(id, shard)| Shard {
            id: *id,
            slots: shard.value.slots.clone(),
            members: shard.value.members.clone(),
            joining: joining.remove(id).unwrap_or_default(),
            leader: self.leaders.get(id).map(|entry| leader(&entry.value, entry.created)),
            last_leader: self.epochs.get(id).map(|entry| leader(&entry.value, epoch_of(entry))),
            is_failed: is_failed(*id),
            modified: shard.modified,
        });
        let migrations = self.migrations.iter().map(|(id, entry)| Migration {
            id: id.clone(),
            slots: entry.value.slots.clone(),
            from: entry.value.from,
            to: entry.value.to,
            state: entry.value.state,
            modified: entry.modified,
        });
        Topology::new(name.into(), self.revision, nodes, shards, migrations)
    }
}

/// The epoch of which `epochs/SHARD` tells.
fn epoch_of(last: &Entry<LeaderValue>) -> Epoch {
    if last.value.carried == 0 { last.modified } else { last.value.carried }
}

/// The picture of the cluster `name` that all its keys make, as they were read at `revision`. A
/// shard without a primary counts as failed: how long it has had none, the keys do not say.
pub fn picture(name: &str, revision: Revision, pairs: &[Pair]) -> Topology {
    let mut mirror = Mirror::default();
    mirror.load(&Keys::new(name), revision, pairs);
    mirror.topology(name, |shard| !mirror.leaders.contains_key(&shard))
}
