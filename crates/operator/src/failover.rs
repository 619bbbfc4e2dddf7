//! How a replica becomes the primary of its shard on request.

use std::collections::BTreeSet;

use cluster::ids::{NodeId, ShardId};
use cluster::topology::{Node, Shard};

use crate::link::{self, place_of};
use crate::options::{Options, Target};
use crate::print::{agreed, say};
use crate::record::{Reading, Store};
use crate::status::short;
use crate::trouble::Trouble;

/// Carries out `dunlin cluster failover`.
pub(crate) fn run(store: &Store, options: &Options, target: &Target) -> Result<(), Trouble> {
    let reading = store.read()?;
    let node = match target {
        Target::Node(word) => reading.node(word)?,
        Target::AnyOf(word) => best(&reading, options, reading.shard(word)?, &BTreeSet::new())?,
    };
    let Some(shard) = reading.topology.shard_of(node.id) else {
        return Err(Trouble::Failed(format!("node {} has no shard", short(node.id))));
    };
    if reading.topology.is_primary(node.id) {
        say(&format!("node {} at {} is the primary already", short(node.id), place_of(node)));
        return Ok(());
    }
    let from = match reading.topology.primary_of(shard.id) {
        Some(primary) => format!("from node {} at {}", short(primary.id), place_of(primary)),
        None => "which has no primary".to_owned(),
    };
    say(&format!(
        "node {} at {} takes over shard {}, {from}",
        short(node.id),
        place_of(node),
        short(shard.id)
    ));
    if !agreed(options)? {
        return Ok(());
    }
    hand_over(store, options, shard.id, node)
}

/// Makes the replica that lacks least the primary, of those that are not to be `out`.
pub(crate) fn to_best(
    store: &Store,
    options: &Options,
    reading: &Reading,
    shard: ShardId,
    out: &BTreeSet<NodeId>,
) -> Result<(), Trouble> {
    let own = reading.topology.shards.get(&shard);
    let own = own.ok_or_else(|| "the shard is gone".to_owned())?;
    hand_over(store, options, shard, best(reading, options, own, out)?)
}

/// The member that has most of the stream, but for the primary and for those that leave.
fn best<'r>(
    reading: &'r Reading,
    options: &Options,
    shard: &Shard,
    out: &BTreeSet<NodeId>,
) -> Result<&'r Node, Trouble> {
    let leaves = |id: &NodeId| out.contains(id) || reading.leaving.contains(id);
    let replicas = shard.members.iter().filter(|id| !leaves(id));
    let replicas = replicas.filter(|id| !reading.topology.is_primary(**id));
    let replicas = replicas.filter_map(|id| reading.topology.nodes.get(id));
    let told = replicas.filter(|node| node.is_alive()).filter_map(|node| {
        let told = link::ask(node, &options.access).ok()?;
        Some((told.offset, node))
    });
    let best = told.max_by_key(|(offset, _)| *offset);
    best.map(|(_, node)| node).ok_or_else(|| {
        Trouble::Failed(format!("shard {} has no replica that answers", short(shard.id)))
    })
}

fn hand_over(store: &Store, options: &Options, shard: ShardId, node: &Node) -> Result<(), Trouble> {
    link::call(node, &options.access, &["CLUSTER", "FAILOVER"])?;
    let reading = store.wait(options.timeout, &mut |reading| {
        let leader = leader_of(reading, shard);
        let text = format!("node {} is not the primary yet", short(node.id));
        (leader != Some(node.id)).then_some(text)
    })?;
    let epoch = reading.topology.shards.get(&shard).and_then(|own| own.leader);
    let epoch = epoch.map(|leader| leader.epoch.to_string()).unwrap_or_default();
    say(&format!("node {} is the primary, in epoch {epoch}", short(node.id)));
    Ok(())
}

fn leader_of(reading: &Reading, shard: ShardId) -> Option<NodeId> {
    Some(reading.topology.shards.get(&shard)?.leader?.node)
}
