//! Which nodes come into the cluster: create and add.

use std::collections::BTreeSet;
use std::time::Duration;

use base::rng;
use cluster::ids::{NodeId, ShardId};
use cluster::keys::{self, ShardValue, Subject};
use cluster::plan::{self, NewShard};
use cluster::store::{Compare, Operation};
use cluster::topology::Node;

use crate::functions::Copies;
use crate::link::{self, place_of};
use crate::options::{Destination, Options};
use crate::print::{agreed, say};
use crate::record::{Reading, Store};
use crate::status::short;
use crate::table::table;
use crate::trouble::Trouble;

/// So many nodes can be written in one transaction of etcd, with their shards.
pub(crate) const MOST_AT_ONCE: usize = 60;

fn new_id() -> ShardId {
    let mut id = [0; 20];
    rng::with(|rng| rng.fill(&mut id));
    ShardId(id)
}

/// Makes a cluster. If there is one, waits until it serves.
pub(crate) fn create(
    store: &Store,
    options: &Options,
    words: &[String],
    replicas: usize,
) -> Result<(), Trouble> {
    let mut reading = store.read()?;
    if reading.topology.shards.is_empty() {
        reading = wait_for_nodes(store, options, words, replicas + 1)?;
        let nodes = chosen(&reading, words)?;
        if nodes.len() > MOST_AT_ONCE {
            return Err(Trouble::Failed(format!(
                "a cluster is created with {MOST_AT_ONCE} nodes at most: add the others then"
            )));
        }
        if nodes.len() > 1 {
            check_empty(&nodes, options)?;
        }
        let shards = plan::create(&nodes, replicas)?;
        show_shards(&reading, &shards);
        if !agreed(options)? {
            return Ok(());
        }
        write_shards(store, &reading, &shards)?;
    } else {
        say(&format!("cluster {} is there already", options.name));
        for word in words {
            let node = reading.node(word)?;
            if reading.topology.shard_of(node.id).is_none() {
                return Err(Trouble::Failed(format!(
                    "node {} at {} is not in it: dunlin cluster add gives it a shard",
                    short(node.id),
                    place_of(node)
                )));
            }
        }
    }
    wait_until_served(store, options.timeout)?;
    say(&format!("cluster {} serves all slots", options.name));
    Ok(())
}

/// The nodes that are named, or all that are alive and have no shard.
fn chosen<'r>(reading: &'r Reading, words: &[String]) -> Result<Vec<&'r Node>, Trouble> {
    if !words.is_empty() {
        return named(reading, words, true);
    }
    let mut free: Vec<_> = reading
        .topology
        .nodes
        .values()
        .filter(|node| reading.topology.shard_of(node.id).is_none() && node.is_alive())
        .collect();
    free.sort_by_key(|node| (node.address.host.clone(), node.address.port));
    Ok(free)
}

/// The nodes that are named: of several at one address rather one that is alive, or that is not.
pub(crate) fn named<'r>(
    reading: &'r Reading,
    words: &[String],
    is_alive: bool,
) -> Result<Vec<&'r Node>, Trouble> {
    let mut seen = BTreeSet::new();
    let mut nodes = Vec::new();
    for word in words {
        let node = reading.node_in(word, is_alive)?;
        if !seen.insert(node.id) {
            return Err(Trouble::Failed(format!("node '{word}' is named twice")));
        }
        nodes.push(node);
    }
    Ok(nodes)
}

/// Waits until the nodes that are named have come to etcd, or as many as are needed.
fn wait_for_nodes(
    store: &Store,
    options: &Options,
    words: &[String],
    needed: usize,
) -> Result<Reading, Trouble> {
    store.wait(options.timeout, &mut |reading| {
        let is_there = |word: &str| reading.node(word).is_ok_and(Node::is_alive);
        let absent = words.iter().find(|word| !is_there(word));
        if let Some(word) = absent {
            return Some(format!(
                "node {word} has not come to etcd; one that was taken out comes with its next start"
            ));
        }
        let count = chosen(reading, words).map_or(0, |nodes| nodes.len());
        (count < needed).then(|| format!("{count} of at least {needed} nodes have come to etcd"))
    })
}

/// Makes sure that nodes have nothing to lose: a replica takes over its primary's data, and a node
/// deletes keys in slots of other shards.
fn check_empty(nodes: &[&Node], options: &Options) -> Result<(), Trouble> {
    if options.discard_keys {
        return Ok(());
    }
    for node in nodes {
        if link::has_keys(node, &options.access)? {
            return Err(Trouble::Failed(format!(
                "node {} at {} has keys, and would lose them: --discard-keys permits that. To keep \
                 them, create a cluster of this node alone, and add the others then",
                short(node.id),
                place_of(node)
            )));
        }
    }
    Ok(())
}

fn show_shards(reading: &Reading, shards: &[NewShard]) {
    let mut rows = Vec::new();
    for (number, shard) in shards.iter().enumerate() {
        let (mut number, mut slots) = ((number + 1).to_string(), shard.slots.to_string());
        for node in shard.members.iter().filter_map(|id| reading.topology.nodes.get(id)) {
            rows.push(vec![
                std::mem::take(&mut number),
                std::mem::take(&mut slots),
                short(node.id),
                place_of(node),
                node.zone.clone(),
            ]);
        }
    }
    say(table(&["SHARD", "SLOTS", "NODE", "ADDRESS", "ZONE"], &rows).trim_end());
    let near = shards.iter().filter(|shard| shard.is_in_one_place).count();
    if near > 0 {
        say(&format!("! {near} shards have all their copies on one host or in one zone"));
    }
}

fn write_shards(store: &Store, reading: &Reading, shards: &[NewShard]) -> Result<(), Trouble> {
    let (mut compares, mut operations) = (Vec::new(), Vec::new());
    for shard in shards {
        let id = new_id();
        put_shard(store, id, shard, &mut compares, &mut operations);
        for node in &shard.members {
            compares.push(store.unchanged(reading, &Subject::Member(*node)));
            operations.push(store.assign(reading, *node, Some(id))?);
        }
    }
    store.write(reading, compares, operations)
}

fn put_shard(
    store: &Store,
    id: ShardId,
    shard: &NewShard,
    compares: &mut Vec<Compare>,
    operations: &mut Vec<Operation>,
) {
    let key = store.keys.of(&Subject::Shard(id));
    let value = ShardValue { slots: shard.slots.clone(), members: shard.members.clone() };
    compares.push(Compare::is_absent(key.clone()));
    operations.push(Operation::Put { key, value: keys::encode(&value), lease: 0 });
}

pub(crate) fn wait_until_served(store: &Store, timeout: Duration) -> Result<(), Trouble> {
    store.wait(timeout, &mut |reading| {
        let shards = reading.topology.shards.values();
        let without = shards.filter(|own| own.leader.is_none() && !own.slots.is_empty()).count();
        if without > 0 {
            return Some(format!("{without} shards have no primary"));
        }
        let unowned = reading.topology.unowned();
        (!unowned.is_empty()).then(|| format!("{} slots have no shard", unowned.count()))
    })?;
    Ok(())
}

/// Gives nodes to shards.
pub(crate) fn add(
    store: &Store,
    options: &Options,
    words: &[String],
    to: &Destination,
) -> Result<(), Trouble> {
    let reading = wait_for_nodes(store, options, words, words.len())?;
    if reading.topology.shards.is_empty() {
        return Err(Trouble::Failed("there is no cluster: dunlin cluster create".to_owned()));
    }
    let nodes = chosen(&reading, words)?;
    if nodes.len() > MOST_AT_ONCE {
        return Err(Trouble::Failed(format!("{MOST_AT_ONCE} nodes at most are added at once")));
    }
    // One whose shard is gone is free as well.
    let shard_of = |node: &Node| reading.topology.shard_of(node.id).map(|shard| shard.id);
    let new: Vec<_> = nodes.iter().copied().filter(|node| shard_of(node).is_none()).collect();
    check_empty(&new, options)?;
    let is_new_shard = matches!(to, Destination::NewShards { .. });
    // Each is placed with those before it in mind.
    let mut topology = reading.topology.clone();
    let mut placed = Vec::new();
    for node in nodes {
        if let Some(shard) = shard_of(node) {
            // It was added before, and the command was interrupted; or it was to be taken out.
            let leaves = reading.leaving.contains(&node.id);
            let (own, of) = (short(node.id), short(shard));
            if !is_where(&reading, node.id, shard, to)? {
                return Err(Trouble::Failed(match leaves {
                    true => format!("node {own} is on its way out of shard {of}: wait for that"),
                    false => format!("node {own} belongs to shard {of} already"),
                }));
            }
            say(&match leaves {
                true => format!("node {own} does not leave shard {of}"),
                false => format!("node {own} belongs to shard {of} already"),
            });
            placed.push((node.id, shard, leaves));
            continue;
        }
        let shard = match to {
            Destination::Shard(word) => reading.shard(word)?.id,
            Destination::NewShards { .. } => new_id(),
            Destination::WhereNeeded => {
                plan::attach(&topology, node).ok_or_else(|| "there is no shard".to_owned())?
            }
        };
        if let Some(own) = topology.shards.get_mut(&shard) {
            own.joining.push(node.id);
        }
        let whose = if is_new_shard { "a new shard" } else { "shard" };
        say(&format!(
            "node {} at {} joins {whose} {}",
            short(node.id),
            place_of(node),
            short(shard)
        ));
        placed.push((node.id, shard, true));
    }
    let copies = match to {
        Destination::NewShards { with_functions: true } => {
            let nodes: Vec<_> = placed.iter().map(|(node, ..)| *node).collect();
            Copies::plan(&reading, &options.access, &nodes)?
        }
        _ => Copies::none(),
    };
    let is_any_assigned = placed.iter().any(|(.., is_assigned)| *is_assigned);
    if (is_any_assigned || copies.are_any()) && !agreed(options)? {
        return Ok(());
    }
    if is_any_assigned {
        let (mut compares, mut operations) = (Vec::new(), Vec::new());
        for (node, shard, _) in placed.iter().filter(|(.., is_assigned)| *is_assigned) {
            compares.push(store.unchanged(&reading, &Subject::Member(*node)));
            operations.push(store.assign(&reading, *node, Some(*shard))?);
            if reading.leaving.contains(node) {
                // Until it is out, its keys are those of the shard.
                compares.push(store.unchanged(&reading, &Subject::Shard(*shard)));
            } else if is_new_shard {
                let new = NewShard {
                    slots: cluster::slots::SlotRanges::new(),
                    members: vec![*node],
                    is_in_one_place: false,
                };
                put_shard(store, *shard, &new, &mut compares, &mut operations);
            }
        }
        store.write(&reading, compares, operations)?;
    }
    store.wait(options.timeout, &mut |reading| {
        let is_in = |node: &NodeId, shard: &ShardId| {
            let own = reading.topology.shards.get(shard);
            own.is_some_and(|own| own.members.contains(node))
        };
        let left: Vec<_> = placed.iter().filter(|(node, shard, _)| !is_in(node, shard)).collect();
        left.first().map(|(node, ..)| {
            format!("{} nodes get their data, node {} first", left.len(), short(node))
        })
    })?;
    copies.make(store, options)?;
    say("all of them are members of their shards");
    Ok(())
}

/// Whether a node of a shard is where it was to be added.
fn is_where(
    reading: &Reading,
    node: NodeId,
    shard: ShardId,
    to: &Destination,
) -> Result<bool, Trouble> {
    Ok(match to {
        Destination::WhereNeeded => true,
        Destination::Shard(word) => reading.shard(word)?.id == shard,
        Destination::NewShards { .. } => reading
            .topology
            .shards
            .get(&shard)
            .is_some_and(|own| own.slots.is_empty() && own.nodes().all(|other| other == node)),
    })
}
