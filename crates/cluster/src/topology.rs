//! The picture of a cluster at one revision of etcd. It does not change; nodes share it by `Arc`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{Epoch, Incarnation, NodeId, ShardId};
use crate::slots::{SLOT_COUNT, SlotRanges};
use crate::store::Revision;
use crate::texts;

/// Where clients and other nodes reach a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Address {
    /// An IP address, or what else the operator announces.
    #[serde(deserialize_with = "texts::host")]
    pub host: String,
    /// The port for plain connections; 0: there is none.
    #[serde(default)]
    pub port: u16,
    /// The port for encrypted connections; 0: there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tls_port: u16,
    /// The port of HTTP where it has one of its own; 0: it has none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub http_port: u16,
    /// The port of encrypted HTTP; 0: there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub https_port: u16,
    /// The host's name, if the operator announces one; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "texts::host")]
    pub hostname: String,
}

fn is_zero(port: &u16) -> bool {
    *port == 0
}

/// A member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// The shard whose data it has or gets; `None` until an operator has given it one.
    pub shard: Option<ShardId>,
    /// Where it is reached.
    pub address: Address,
    /// Where it stands (a rack, a zone); empty when nobody has said. Copies are placed apart.
    pub zone: String,
    /// The run of its process that etcd has seen last, while its lease lasts.
    pub alive: Option<Incarnation>,
    /// The version of its program; empty while it is not alive.
    pub version: String,
    /// Its name for people (`cluster-announce-human-nodename`); may be empty.
    pub name: String,
}

impl Node {
    /// Whether its lease lasts.
    pub fn is_alive(&self) -> bool {
        self.alive.is_some()
    }
}

/// The primary of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// Which node it is.
    pub node: NodeId,
    /// The run of its process.
    pub incarnation: Incarnation,
    /// The epoch in which it is primary.
    pub epoch: Epoch,
    /// The journal's offset from which on it has written in this epoch.
    pub start: u64,
}

/// Nodes with the data of the same slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Its name.
    pub id: ShardId,
    /// The slots that it owns.
    pub slots: SlotRanges,
    /// The nodes that count for its quorum, sorted.
    pub members: Vec<NodeId>,
    /// The nodes that follow its primary and do not count yet, or no more; sorted.
    pub joining: Vec<NodeId>,
    /// Its primary, if etcd has one now.
    pub leader: Option<Leader>,
    /// Its last primary, which may be the present one.
    pub last_leader: Option<Leader>,
    /// Whether there has been no primary for so long that its slots count as not served.
    pub is_failed: bool,
    /// The revision at which its slots or its members last changed; 0: it is not known.
    #[serde(default)]
    pub modified: Revision,
}

impl Shard {
    /// How many members make a quorum: more than half of them, the primary included.
    pub fn quorum(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Its nodes, those that count and those that do not.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.members.iter().chain(&self.joining).copied()
    }
}

/// How far the slots of a migration are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MigrationState {
    /// It is asked for; the source sends the data when it may.
    Wanted,
    /// The source sends the data.
    Copying,
    /// It was given up; the target drops what it has got.
    Aborted,
}

/// Slots on their way from one shard to another. It is gone from etcd when the target owns them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    /// Its name.
    pub id: String,
    /// The slots that move.
    pub slots: SlotRanges,
    /// The shard that has owned them.
    pub from: ShardId,
    /// The shard that gets them.
    pub to: ShardId,
    /// How far it is.
    pub state: MigrationState,
    /// The revision at which its record was last written.
    pub modified: Revision,
}

/// A cluster at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// The cluster's name.
    pub name: String,
    /// etcd's revision as of which this is so; 0: nothing is known yet.
    pub revision: Revision,
    /// All nodes by name.
    pub nodes: BTreeMap<NodeId, Node>,
    /// All shards by name.
    pub shards: BTreeMap<ShardId, Shard>,
    /// All migrations by name.
    pub migrations: BTreeMap<String, Migration>,
    /// The owners of all slots: ranges, sorted by their first slot.
    owners: Vec<(u16, u16, ShardId)>,
}

impl Topology {
    /// The picture made of its parts.
    pub fn new(
        name: String,
        revision: Revision,
        nodes: impl IntoIterator<Item = Node>,
        shards: impl IntoIterator<Item = Shard>,
        migrations: impl IntoIterator<Item = Migration>,
    ) -> Self {
        let shards: BTreeMap<_, _> = shards.into_iter().map(|shard| (shard.id, shard)).collect();
        let mut owners = Vec::new();
        for shard in shards.values() {
            owners.extend(shard.slots.ranges().map(|(first, last)| (first, last, shard.id)));
        }
        owners.sort_unstable();
        Topology {
            name,
            revision,
            nodes: nodes.into_iter().map(|node| (node.id, node)).collect(),
            shards,
            migrations: migrations.into_iter().map(|one| (one.id.clone(), one)).collect(),
            owners,
        }
    }

    /// The shard that owns `slot`, if any does.
    pub fn owner_of_slot(&self, slot: u16) -> Option<&Shard> {
        let after = self.owners.partition_point(|&(first, ..)| first <= slot);
        let (_, last, shard) = self.owners.get(after.checked_sub(1)?)?;
        if slot > *last { None } else { self.shards.get(shard) }
    }

    /// The owners of all slots: first slot, last slot and shard of each range, ascending.
    pub fn owners(&self) -> impl ExactSizeIterator<Item = (u16, u16, ShardId)> + '_ {
        self.owners.iter().copied()
    }

    /// The shard of a node.
    pub fn shard_of(&self, node: NodeId) -> Option<&Shard> {
        self.shards.get(&self.nodes.get(&node)?.shard?)
    }

    /// Whether both say the same of what a node has: the slots of its shard, and who counts there.
    pub fn is_alike_for(&self, node: NodeId, other: &Topology) -> bool {
        match (self.home_of(node), other.home_of(node)) {
            (Some(one), Some(other)) => {
                (one.id, &one.slots, &one.members) == (other.id, &other.slots, &other.members)
            }
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// The shard of which a node is a member, or is to be.
    pub fn home_of(&self, node: NodeId) -> Option<&Shard> {
        let of_member = self.shards.values().find(|shard| shard.members.contains(&node));
        of_member.or_else(|| self.shard_of(node))
    }

    /// The primary of a shard, if etcd has one now.
    pub fn primary_of(&self, shard: ShardId) -> Option<&Node> {
        self.nodes.get(&self.shards.get(&shard)?.leader?.node)
    }

    /// Where clients find the primary of `slot`. While there is none, the last one: they come back
    /// and ask again.
    pub fn primary_of_slot(&self, slot: u16) -> Option<&Node> {
        let shard = self.owner_of_slot(slot)?;
        self.nodes.get(&shard.leader.or(shard.last_leader)?.node)
    }

    /// Whether this node is the primary of its shard, as etcd has it.
    pub fn is_primary(&self, node: NodeId) -> bool {
        self.shard_of(node).and_then(|shard| shard.leader).is_some_and(|it| it.node == node)
    }

    /// The slots that no shard owns.
    pub fn unowned(&self) -> SlotRanges {
        self.shards.values().fold(SlotRanges::all(), |rest, shard| rest.without(&shard.slots))
    }

    /// How many slots are owned by shards that have not failed.
    pub fn served_count(&self) -> usize {
        self.shards.values().filter(|shard| !shard.is_failed).map(|shard| shard.slots.count()).sum()
    }

    /// Whether each slot is owned by a shard that has not failed: what
    /// `cluster-require-full-coverage` asks for.
    pub fn is_covered(&self) -> bool {
        self.served_count() == usize::from(SLOT_COUNT)
    }

    /// The newest epoch of all shards.
    pub fn epoch(&self) -> Epoch {
        self.shards
            .values()
            .filter_map(|shard| shard.last_leader)
            .map(|it| it.epoch)
            .max()
            .unwrap_or(0)
    }
}
