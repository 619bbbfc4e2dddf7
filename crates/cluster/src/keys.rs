//! The keys of etcd under which a cluster is, and their values: JSON, so that `etcdctl` shows
//! them.
//!
//! | key under `/dunlin/NAME/` | lasts | value |
//! |---|---|---|
//! | `members/NODE` | for ever | [`MemberValue`] |
//! | `alive/NODE` | with the node's lease | [`AliveValue`] |
//! | `shards/SHARD` | for ever | [`ShardValue`]: slots, and the members that count for the quorum |
//! | `leaders/SHARD` | with the primary's lease | [`LeaderValue`]; its revision of creation is the **epoch** |
//! | `epochs/SHARD` | for ever | [`LeaderValue`] of the last primary, written together with `leaders/SHARD`, so its revision of modification is the last epoch |
//! | `candidates/SHARD/NODE` | with the node's lease | [`CandidateValue`] |
//! | `failovers/SHARD` | with the asking replica's lease | [`FailoverValue`] |
//! | `migrations/ID` | until done | [`MigrationValue`] |
//! | `change` | for ever | nothing: its revision is that of the last change by an operator |
//! | `operators/WHAT` | with the lease of a command that nobody else gives meanwhile | who gives it; no node reads it |
//! | `rebuilt` | for ever, if these keys were written anew after etcd had lost them | [`RebuiltValue`] |

use serde::{Deserialize, Serialize};

use crate::ids::{Epoch, Incarnation, NodeId, ShardId};
use crate::slots::SlotRanges;
use crate::store::Revision;
use crate::texts;
use crate::topology::{Address, MigrationState};

/// The keys of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

/// What a key is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// `members/NODE`.
    Member(NodeId),
    /// `alive/NODE`.
    Alive(NodeId),
    /// `shards/SHARD`.
    Shard(ShardId),
    /// `leaders/SHARD`.
    Leader(ShardId),
    /// `epochs/SHARD`.
    Epoch(ShardId),
    /// `candidates/SHARD/NODE`.
    Candidate(ShardId, NodeId),
    /// `failovers/SHARD`.
    Failover(ShardId),
    /// `migrations/ID`.
    Migration(String),
    /// `change`.
    Change,
    /// `rebuilt`.
    Rebuilt,
}

impl Keys {
    /// The keys of the cluster with this name.
    pub fn new(name: &str) -> Self {
        Keys { prefix: format!("/dunlin/{name}/") }
    }

    /// How all keys of the cluster begin, and no others.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The key of a subject.
    pub fn of(&self, subject: &Subject) -> String {
        let prefix = &self.prefix;
        match subject {
            Subject::Member(node) => format!("{prefix}members/{node}"),
            Subject::Alive(node) => format!("{prefix}alive/{node}"),
            Subject::Shard(shard) => format!("{prefix}shards/{shard}"),
            Subject::Leader(shard) => format!("{prefix}leaders/{shard}"),
            Subject::Epoch(shard) => format!("{prefix}epochs/{shard}"),
            Subject::Candidate(shard, node) => format!("{prefix}candidates/{shard}/{node}"),
            Subject::Failover(shard) => format!("{prefix}failovers/{shard}"),
            Subject::Migration(id) => format!("{prefix}migrations/{id}"),
            Subject::Change => format!("{prefix}change"),
            Subject::Rebuilt => format!("{prefix}rebuilt"),
        }
    }

    /// What a key is about; `None` for one that is no key of this cluster's.
    pub fn subject(&self, key: &str) -> Option<Subject> {
        let rest = key.strip_prefix(&self.prefix)?;
        match rest {
            "change" => return Some(Subject::Change),
            "rebuilt" => return Some(Subject::Rebuilt),
            _ => {}
        }
        let (kind, name) = rest.split_once('/')?;
        Some(match kind {
            "members" => Subject::Member(name.parse().ok()?),
            "alive" => Subject::Alive(name.parse().ok()?),
            "shards" => Subject::Shard(name.parse().ok()?),
            "leaders" => Subject::Leader(name.parse().ok()?),
            "epochs" => Subject::Epoch(name.parse().ok()?),
            "candidates" => {
                let (shard, node) = name.split_once('/')?;
                Subject::Candidate(shard.parse().ok()?, node.parse().ok()?)
            }
            "failovers" => Subject::Failover(name.parse().ok()?),
            // It is shown in lines.
            "migrations" if name.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Subject::Migration(name.into())
            }
            _ => return None,
        })
    }
}

/// The value of `members/NODE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberValue {
    /// The shard whose data the node has or gets; none until an operator has given it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardId>,
    /// Where it is reached.
    pub address: Address,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "texts::line")]
    pub zone: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "texts::line")]
    pub name: String,
}

/// The value of `alive/NODE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AliveValue {
    /// The run of the node's process.
    pub incarnation: Incarnation,
    /// The run of the node before, if it is known to be gone; else 0.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub replaces: Incarnation,
    /// The version of its program.
    #[serde(deserialize_with = "texts::line")]
    pub version: String,
}

/// The value of `shards/SHARD`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardValue {
    /// The slots that it owns.
    pub slots: SlotRanges,
    /// The nodes that count for its quorum, sorted.
    pub members: Vec<NodeId>,
}

/// The value of `leaders/SHARD` and `epochs/SHARD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderValue {
    /// The primary.
    pub node: NodeId,
    /// The run of its process.
    pub incarnation: Incarnation,
    /// The journal's offset from which on it writes in this epoch, or has in the one it continues.
    pub start: u64,
    /// The epoch whose journal goes on without a break, because the same process is primary again;
    /// 0: a new one begins, at `start`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub continues: Epoch,
    /// In `epochs/SHARD` of a cluster that was written anew: the last epoch by what etcd had before
    /// ([`crate::rebuild`]); 0: it is the revision at which this was written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub carried: Epoch,
    /// How far its writer was ahead of etcd's revisions ([`RebuiltValue::ahead`]): who is ahead by
    /// something else has not read what is in etcd now.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ahead: Revision,
}

fn is_nothing(incarnation: &Incarnation) -> bool {
    *incarnation == 0
}

fn is_zero(epoch: &Epoch) -> bool {
    *epoch == 0
}

impl LeaderValue {
    /// The epoch by which data of this primary's journal count, if it is primary in `epoch`: of
    /// two nodes the one with the later epoch of data is further, and in the same epoch the one
    /// with the larger offset.
    pub fn data_epoch(&self, epoch: Epoch) -> Epoch {
        if self.continues == 0 { epoch } else { self.continues }
    }
}

/// The value of `candidates/SHARD/NODE`: how far a node is that has let go of the last primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateValue {
    /// The epoch after which a primary is wanted.
    pub after: Epoch,
    /// The run of the node's process.
    pub incarnation: Incarnation,
    /// The epoch of the node's data.
    pub epoch: Epoch,
    /// The journal's offset up to which it has that epoch's data.
    pub offset: u64,
    /// Whether it has all that it has ever confirmed. A node that lost its end with its machine,
    /// or has no data yet, does not count for the number of candidates.
    pub complete: bool,
}

/// The value of `failovers/SHARD`: a replica shall become primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailoverValue {
    /// Which replica.
    pub to: NodeId,
    /// The epoch of the primary that is asked to let go.
    pub epoch: Epoch,
    /// The offset at which that primary has let go, once it has. The replica has this offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<u64>,
    /// Whether the replica shall also be preferred in an election, should the primary be silent.
    #[serde(default)]
    pub force: bool,
}

/// The value of `migrations/ID`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationValue {
    /// The slots that move.
    pub slots: SlotRanges,
    /// The shard that owns them.
    pub from: ShardId,
    /// The shard that gets them.
    pub to: ShardId,
    /// How far it is.
    pub state: MigrationState,
}

/// The value of `rebuilt`: the keys were written anew ([`crate::rebuild`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebuiltValue {
    /// Drawn for each time, so that no two of these values are the same.
    pub id: String,
    /// What nodes add to etcd's revisions, so that they go on from those of the etcd before.
    pub ahead: Revision,
    /// Whether all keys are there. Nodes believe nothing before.
    pub is_complete: bool,
}

/// A value as it is stored.
pub fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain values have a form in JSON")
}

/// What a stored value says; `None` when it says nothing of the kind.
pub fn decode<'d, V: Deserialize<'d>>(value: &'d [u8]) -> Option<V> {
    serde_json::from_slice(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_with_a_text_that_is_more_than_that_is_none() {
        let member = |host: &str, hostname: &str, zone: &str, name: &str| {
            let address = format!(r#"{{"host":"{host}","hostname":"{hostname}"}}"#);
            let text = format!(r#"{{"address":{address},"zone":"{zone}","name":"{name}"}}"#);
            decode::<MemberValue>(text.as_bytes()).is_some()
        };
        for host in ["10.0.0.1", "fe80::1%eth0", "db-1.my_zone.example", ""] {
            assert!(member(host, host, "east 1", "né"), "{host}");
        }
        for host in [r"a\r\nb", "a b", "user@host", "host/x?", r"\u001b[31m", "<img>"] {
            assert!(!member(host, "b", "", "") && !member("b", host, "", ""), "{host}");
        }
        for text in [r"a\nb", r"\u001b[2J", r"\u0007"] {
            assert!(!member("a", "", text, "") && !member("a", "", "", text), "{text}");
            let text = format!(r#"{{"incarnation":1,"version":"{text}"}}"#);
            assert_eq!(decode::<AliveValue>(text.as_bytes()), None, "{text}");
        }
        let own = Keys::new("x");
        let key = |id: &str| own.of(&Subject::Migration(id.into()));
        assert!(own.subject(&key("4a2b")).is_some());
        assert_eq!(own.subject(&key("4a\n2b")), None);
    }
}
