//! The keys of a cluster, written anew from what its nodes know when etcd has lost them.
//!
//! Epochs are revisions of etcd, and another etcd counts from one again. So the key `rebuilt` says
//! how far nodes are to be ahead of etcd's count ([`RebuiltValue::ahead`]): far enough that
//! all that comes is later than all that was. Nodes believe nothing before that key says that all
//! others are there.
//!
//! Who is primary is not written. Of a shard whose members have all told what they know, the last
//! epoch is carried over: if its primary still runs, it goes on in it. Where a member was not
//! asked, there may have been a later primary, so an epoch is carried over that nobody was primary
//! in. Then, and when the last primary has ended, the members elect one, as after any loss of a
//! primary: by what they have, not by what anybody says of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{Epoch, Incarnation, NodeId, ShardId};
use crate::keys::{
    Keys, LeaderValue, MemberValue, MigrationValue, RebuiltValue, ShardValue, Subject, encode,
};
use crate::slots::SlotRanges;
use crate::store::Revision;
use crate::topology::{MigrationState, Topology};

/// How far revisions go on from the last that a node knows, at least: nodes that are away may know
/// later ones.
const STEP: Revision = 1_000_000_000;

/// How far revisions go on in a second, at least. Nodes may know of another rebuild of which those
/// that are asked know nothing.
const STEP_OF_SECOND: Revision = 1_000_000;

/// No etcd counts as far as this, however often its cluster was written anew. Who names a later
/// revision is no node of a cluster, and what others add to it would be no number any more.
const LAST: Revision = 1 << 62;

/// What a node knows of its cluster and of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// Its name.
    pub node: NodeId,
    /// The run of its process.
    pub incarnation: Incarnation,
    /// The addresses at which it asks etcd.
    pub etcd: Vec<String>,
    /// Whether it goes by what etcd has: it has read it, believes it, and has a lease there.
    pub goes_by_etcd: bool,
    /// The epoch in which it is primary, if it is.
    pub leads: Option<Epoch>,
    /// The epoch for which its data count.
    pub epoch: Epoch,
    /// Up to which offset it has them.
    pub offset: u64,
    /// The cluster as it knows it.
    pub topology: Topology,
}

impl Witness {
    /// Whether it knows of a cluster at all.
    pub fn knows(&self) -> bool {
        !self.topology.shards.is_empty()
    }

    /// Whether the etcd that it goes by has the cluster. An etcd that has lost everything is the
    /// right one for a node that knows nothing.
    pub fn goes_by_cluster(&self) -> bool {
        self.goes_by_etcd && self.knows()
    }
}

/// What is to be written.
#[derive(Clone, Debug)]
pub struct Rebuild {
    /// The cluster, as one of the nodes knows it.
    pub topology: Topology,
    /// Which node that is.
    pub source: NodeId,
    /// What nodes are to add to etcd's revisions.
    pub ahead: Revision,
    /// The last epochs of the shards; shards that never had a primary have none.
    pub epochs: BTreeMap<ShardId, LeaderValue>,
    /// The nodes whose word counted.
    pub told: BTreeSet<NodeId>,
}

/// Whether two pictures are of two clusters: both have shards, and none in common. Shards come and
/// go, but not all at once.
pub fn are_apart(one: &Topology, other: &Topology) -> bool {
    let (one, other) = (&one.shards, &other.shards);
    !one.is_empty() && !other.is_empty() && !one.keys().any(|shard| other.contains_key(shard))
}

/// Decides what is to be written of the cluster `name`, by what its nodes know: what the node with
/// the latest picture knows, or the one that the operator trusts: then a node that knows another
/// cluster counts as one that has told nothing. `now_s` is the time by the calendar, in seconds.
///
/// # Errors
/// Why it cannot be decided: each reason as a sentence for the operator.
pub fn plan(
    name: &str,
    witnesses: &[Witness],
    trusted: Option<NodeId>,
    now_s: u64,
) -> Result<Rebuild, Vec<String>> {
    let knows = |own: &&Witness| own.knows();
    let newest = match trusted {
        Some(node) => witnesses.iter().find(|own| own.node == node),
        None => witnesses.iter().filter(knows).max_by_key(|own| own.topology.revision),
    };
    let Some(newest) = newest.filter(knows) else {
        return Err(vec!["no node that was asked knows the cluster".to_owned()]);
    };
    let mut reasons = Vec::new();
    for own in witnesses.iter().filter(|own| latest(own) > LAST) {
        let text = format!("node {} knows a revision to which no etcd has counted", own.node);
        reasons.push(format!("{text}: {}", latest(own)));
    }
    // Also those that do not count have to find etcd further than what they know.
    let highest = witnesses.iter().map(latest).max().unwrap_or(0);
    let counts = |own: &&Witness| trusted.is_none() || !are_apart(&newest.topology, &own.topology);
    let counted: Vec<&Witness> = witnesses.iter().filter(counts).collect();
    for (at, own) in counted.iter().enumerate() {
        let known = &own.topology.name;
        if own.knows() && known != name {
            reasons.push(format!("node {} is one of the cluster {known}, not of {name}", own.node));
        }
        if own.goes_by_cluster() {
            reasons.push(format!(
                "node {} goes by an etcd that has the cluster: {}",
                own.node,
                own.etcd.join(",")
            ));
        }
        if counted[..at].iter().any(|other| other.node == own.node) {
            reasons.push(format!("two processes have the name of node {}: end one", own.node));
        }
        if trusted.is_none() && own.node != newest.node && own.knows() {
            reasons.extend(contradiction(newest, own));
        }
    }
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let by_calendar = i64::try_from(now_s).unwrap_or(0).saturating_mul(STEP_OF_SECOND);
    // No revision is later than LAST, so this is a number.
    let ahead = ((highest / STEP + 2) * STEP).max(by_calendar.min(LAST));
    let shards = newest.topology.shards.keys();
    let epochs = shards.filter_map(|shard| Some((*shard, last(newest, &counted, *shard, ahead)?)));
    Ok(Rebuild {
        topology: newest.topology.clone(),
        source: newest.node,
        ahead,
        epochs: epochs.collect(),
        told: counted.iter().map(|own| own.node).collect(),
    })
}

/// The latest revision that a node knows of.
fn latest(own: &Witness) -> Revision {
    let known = [own.topology.revision, own.topology.epoch(), own.epoch];
    known.into_iter().chain(own.leads).max().unwrap_or(0)
}

/// What an operator makes of a cluster: the slots and members of each shard, and the nodes' shards.
type Layout<'t> = (Vec<(ShardId, &'t SlotRanges, &'t [NodeId])>, Vec<(NodeId, Option<ShardId>)>);

fn layout(topology: &Topology) -> Layout<'_> {
    let shards = topology.shards.values();
    let shards = shards.map(|shard| (shard.id, &shard.slots, &shard.members[..])).collect();
    (shards, topology.nodes.values().map(|node| (node.id, node.shard)).collect())
}

/// Why two nodes cannot have seen the same etcd.
fn contradiction(newest: &Witness, other: &Witness) -> Option<String> {
    let (now, before) = (&newest.topology, &other.topology);
    let a_word = "--trust NODE says whose picture is right";
    if are_apart(now, before) {
        return Some(format!(
            "nodes {} and {} know different clusters, without a shard in common: {a_word}",
            newest.node, other.node
        ));
    }
    if before.revision == now.revision && layout(before) != layout(now) {
        return Some(format!(
            "nodes {} and {} know different clusters at the same revision {}: {a_word}",
            newest.node, other.node, now.revision
        ));
    }
    let later = before.shards.values().find_map(|own| {
        let (known, last) = (now.shards.get(&own.id)?, own.last_leader?);
        (last.epoch > known.last_leader.map_or(0, |it| it.epoch)).then_some((own.id, last.epoch))
    });
    later.map(|(shard, epoch)| {
        format!(
            "node {} knows the revision {} and node {} the later {}, but only the first knows the \
             epoch {epoch} of shard {shard}: {a_word}",
            other.node, before.revision, newest.node, now.revision
        )
    })
}

/// The last epoch of a shard. Where members were not asked, it is one that nobody was primary in,
/// and so it is where a primary leads with data of an epoch before others': etcd was set back.
fn last(
    newest: &Witness,
    witnesses: &[&Witness],
    shard: ShardId,
    ahead: Revision,
) -> Option<LeaderValue> {
    let own = newest.topology.shards.get(&shard)?;
    let of = |node: &NodeId| witnesses.iter().find(|own| own.node == *node);
    let told: Vec<_> = own.members.iter().filter_map(of).collect();
    let leaders = witnesses.iter().filter_map(|own| own.topology.shards.get(&shard)?.last_leader);
    let leader = leaders.max_by_key(|leader| leader.epoch);
    let known = told.iter().flat_map(|own| [Some(own.epoch), own.leads]).flatten();
    let highest = known.chain(leader.map(|leader| leader.epoch)).max().unwrap_or(0);
    let furthest = told.iter().map(|own| own.epoch).max();
    let is_behind = told.iter().any(|own| own.leads.is_some() && Some(own.epoch) < furthest);
    let is_certain = told.len() == own.members.len() && !is_behind;
    let carried = if is_certain { highest } else { ahead };
    (carried != 0).then(|| LeaderValue {
        node: leader.map_or(NodeId([0; 20]), |leader| leader.node),
        incarnation: leader.map_or(0, |leader| leader.incarnation),
        start: leader.map_or(0, |leader| leader.start),
        continues: 0,
        carried,
        ahead,
    })
}

impl Rebuild {
    /// The keys with their values, all but `rebuilt`. A migration that was under way begins anew.
    pub fn values(&self, keys: &Keys) -> BTreeMap<String, Vec<u8>> {
        let topology = &self.topology;
        let mut values = BTreeMap::new();
        for node in topology.nodes.values() {
            let value = MemberValue {
                shard: node.shard,
                address: node.address.clone(),
                zone: node.zone.clone(),
                name: node.name.clone(),
            };
            values.insert(keys.of(&Subject::Member(node.id)), encode(&value));
        }
        for shard in topology.shards.values() {
            let value = ShardValue { slots: shard.slots.clone(), members: shard.members.clone() };
            values.insert(keys.of(&Subject::Shard(shard.id)), encode(&value));
        }
        for (shard, value) in &self.epochs {
            values.insert(keys.of(&Subject::Epoch(*shard)), encode(value));
        }
        for own in topology.migrations.values() {
            let state = match own.state {
                MigrationState::Aborted => MigrationState::Aborted,
                MigrationState::Wanted | MigrationState::Copying => MigrationState::Wanted,
            };
            let slots = own.slots.clone();
            let value = MigrationValue { slots, from: own.from, to: own.to, state };
            values.insert(keys.of(&Subject::Migration(own.id.clone())), encode(&value));
        }
        values
    }

    /// The value of `rebuilt`.
    pub fn mark(&self, id: &str, is_complete: bool) -> Vec<u8> {
        encode(&RebuiltValue { id: id.to_owned(), ahead: self.ahead, is_complete })
    }

    /// The members of a shard that have told nothing that counts.
    pub fn silent(&self, shard: ShardId) -> Vec<NodeId> {
        let members = self.topology.shards.get(&shard).map_or(&[][..], |own| &own.members);
        members.iter().filter(|node| !self.told.contains(node)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Address, Leader, Node, Shard};

    const NAME: &str = "c";
    const NOW: u64 = 1000;

    fn node(number: u8) -> NodeId {
        NodeId([number; 20])
    }

    fn shard() -> ShardId {
        ShardId([0xaa; 20])
    }

    /// Two nodes, of which the first was primary in an epoch.
    fn topology(revision: Revision, epoch: Epoch) -> Topology {
        topology_of(shard(), revision, epoch)
    }

    fn topology_of(shard: ShardId, revision: Revision, epoch: Epoch) -> Topology {
        let nodes = [1, 2].map(|number| Node {
            id: node(number),
            shard: Some(shard),
            address: Address::default(),
            zone: String::new(),
            alive: None,
            version: String::new(),
            name: String::new(),
        });
        let last_leader =
            (epoch != 0).then_some(Leader { node: node(1), incarnation: 7, epoch, start: 3 });
        let own = Shard {
            id: shard,
            slots: SlotRanges::all(),
            members: vec![node(1), node(2)],
            joining: Vec::new(),
            leader: None,
            last_leader,
            is_failed: false,
            modified: 0,
        };
        Topology::new(NAME.to_owned(), revision, nodes, [own], [])
    }

    fn witness(number: u8, revision: Revision, epoch: Epoch) -> Witness {
        Witness {
            node: node(number),
            incarnation: u64::from(number),
            etcd: vec!["http://e:1".to_owned()],
            goes_by_etcd: false,
            leads: None,
            epoch,
            offset: 9,
            topology: topology(revision, epoch),
        }
    }

    fn epoch_of(plan: &Rebuild) -> Epoch {
        plan.epochs.get(&shard()).map_or(0, |value| value.carried)
    }

    #[test]
    fn the_last_epoch_is_carried_over_when_all_members_have_told_theirs() {
        let both = [witness(1, 20, 8), witness(2, 21, 8)];
        let all = plan(NAME, &both, None, NOW).unwrap();
        assert_eq!((epoch_of(&all), all.source, all.ahead), (8, node(2), 2 * STEP));
        let one = plan(NAME, &both[..1], None, NOW).unwrap();
        assert_eq!(epoch_of(&one), one.ahead, "nobody was primary in it");
        assert_eq!(one.silent(shard()), [node(2)]);
        // Data that count for an epoch of which no picture knows.
        let mut later = both.clone();
        later[0].epoch = 11;
        assert_eq!(epoch_of(&plan(NAME, &later, None, NOW).unwrap()), 11);
        later[1].leads = Some(12);
        let behind = plan(NAME, &later, None, NOW).unwrap();
        assert_eq!(epoch_of(&behind), behind.ahead, "it goes on with the journal of epoch 8");
        later[1].epoch = 11;
        assert_eq!(epoch_of(&plan(NAME, &later, None, NOW).unwrap()), 12);
        let never = [witness(1, 20, 0), witness(2, 21, 0)];
        assert_eq!(plan(NAME, &never, None, NOW).unwrap().epochs.len(), 0);
    }

    #[test]
    fn revisions_go_on_each_time() {
        let first = [witness(1, 20, 8), witness(2, 21, 8)];
        let ahead = plan(NAME, &first, None, NOW).unwrap().ahead;
        let again = [witness(1, ahead + 20, 8), witness(2, ahead + 20, 8)];
        let next = plan(NAME, &again, None, NOW).unwrap().ahead;
        assert!(next >= ahead + 20 + STEP, "{next}");
        // Nodes that know nothing of the first one are asked a second later.
        let late = |now_s| plan(NAME, &first, None, now_s).unwrap().ahead;
        assert!(late(1_700_000_001) >= late(1_700_000_000) + STEP_OF_SECOND);
    }

    #[test]
    fn what_cannot_be_decided_is_said() {
        let refused =
            |witnesses: &[Witness], trusted| plan(NAME, witnesses, trusted, NOW).unwrap_err();
        let both = [witness(1, 20, 8), witness(2, 20, 8)];
        assert!(refused(&[], None)[0].contains("no node"));
        assert!(plan("other", &both, None, NOW).unwrap_err()[0].contains("of the cluster c"));
        let mut by_etcd = both.clone();
        by_etcd[1].goes_by_etcd = true;
        assert!(refused(&by_etcd, None)[0].contains("http://e:1"));
        let twice = [both[0].clone(), both[0].clone()];
        assert!(refused(&twice, None)[0].contains("two processes"));
        let mut different = both.clone();
        let parts = different[1].topology.clone();
        let nodes = parts.nodes.into_values().take(1);
        let shards = parts.shards.into_values();
        different[1].topology = Topology::new(NAME.to_owned(), 20, nodes, shards, []);
        assert!(refused(&different, None)[0].contains("different clusters"));
        assert_eq!(plan(NAME, &different, Some(node(1)), NOW).unwrap().source, node(1));
        let torn = [witness(1, 20, 9), witness(2, 21, 8)];
        assert!(refused(&torn, None)[0].contains("only the first knows the epoch 9"));
        let trusted = plan(NAME, &torn, Some(node(2)), NOW).unwrap();
        assert_eq!((trusted.source, epoch_of(&trusted)), (node(2), 9));
        let mut fresh = witness(3, 0, 0);
        fresh.topology = Topology::default();
        let decided = |fresh| plan(NAME, &[both.as_slice(), &[fresh]].concat(), None, NOW);
        assert!(decided(fresh.clone()).is_ok());
        // It has found the empty etcd meanwhile, which counts further than the one before.
        fresh.topology = Topology::new(NAME.to_owned(), 9_000, [], [], []);
        fresh.goes_by_etcd = true;
        assert_eq!(decided(fresh).unwrap().source, node(2));
    }

    /// A node that was pointed at the etcd of another cluster of the same name.
    #[test]
    fn a_picture_of_another_cluster_is_a_contradiction_until_one_is_trusted() {
        let mut witnesses = [witness(1, 20, 8), witness(2, 9_000, 8_000)];
        witnesses[1].topology = topology_of(ShardId([0xbb; 20]), 9_000, 8_000);
        assert!(are_apart(&witnesses[0].topology, &witnesses[1].topology));
        let refused = plan(NAME, &witnesses, None, NOW).unwrap_err();
        assert!(refused[0].contains("without a shard in common: --trust"), "{refused:?}");
        // That one goes by it does not matter then, and it counts as one that has told nothing.
        witnesses[1].goes_by_etcd = true;
        let trusted = plan(NAME, &witnesses, Some(node(1)), NOW).unwrap();
        assert_eq!((trusted.source, trusted.topology.revision), (node(1), 20));
        assert_eq!(trusted.silent(shard()), [node(2)]);
        assert_eq!(epoch_of(&trusted), trusted.ahead, "nobody was primary in it");
        // It finds etcd further than what it knows.
        witnesses[1].epoch = 5 * STEP;
        assert!(plan(NAME, &witnesses, Some(node(1)), NOW).unwrap().ahead > 5 * STEP);
        // Who knows nothing, or has a shard in common, is of the same cluster.
        witnesses[1] = witness(2, 21, 8);
        assert!(!are_apart(&witnesses[0].topology, &witnesses[1].topology));
        assert!(!are_apart(&witnesses[0].topology, &Topology::default()));
        assert!(plan(NAME, &witnesses, None, NOW).is_ok());
    }

    #[test]
    fn revisions_that_no_etcd_counts_to_are_refused() {
        for revision in [Revision::MAX, LAST + 1] {
            let refused = plan(NAME, &[witness(1, revision, 8)], None, NOW).unwrap_err();
            assert!(refused[0].contains("no etcd has counted"), "{refused:?}");
        }
        let ahead = plan(NAME, &[witness(1, LAST, 8)], None, u64::MAX).unwrap().ahead;
        assert!(ahead > LAST && ahead < LAST + 3 * STEP, "{ahead}");
    }
}
