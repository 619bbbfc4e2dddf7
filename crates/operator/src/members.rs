//! Which nodes make up the cluster: create, add, remove and forget.

use std::collections::BTreeSet;
use std::time::Duration;

use base::rng;
use cluster::ids::{NodeId, ShardId};
use cluster::keys::{self, ShardValue, Subject};
use cluster::plan::{self, NewShard};
use cluster::store::{Compare, Operation};
use cluster::topology::{Node, Shard, Topology};

use crate::link::place_of;
use crate::options::{Destination, Options};
use crate::print::{agreed, say};
use crate::record::{Reading, Store};
use crate::status::short;
use crate::table::table;
use crate::trouble::Trouble;
use crate::{failover, link};

/// So many nodes can be written in one transaction of etcd, with their shards.
const MOST_AT_ONCE: usize = 60;

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
fn named<'r>(
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
    // Each is placed with those before it in mind.
    let mut topology = reading.topology.clone();
    let mut placed = Vec::new();
    for node in nodes {
        if let Some(shard) = shard_of(node) {
            // It was added before, and the command was interrupted.
            let text = format!("node {} belongs to shard {} already", short(node.id), short(shard));
            if !is_where(&reading, node.id, shard, to)? {
                return Err(Trouble::Failed(text));
            }
            say(&text);
            placed.push((node.id, shard, false));
            continue;
        }
        let shard = match to {
            Destination::Shard(word) => reading.shard(word)?.id,
            Destination::NewShards => new_id(),
            Destination::WhereNeeded => {
                plan::attach(&topology, node).ok_or_else(|| "there is no shard".to_owned())?
            }
        };
        if let Some(own) = topology.shards.get_mut(&shard) {
            own.joining.push(node.id);
        }
        let whose = if *to == Destination::NewShards { "a new shard" } else { "shard" };
        say(&format!(
            "node {} at {} joins {whose} {}",
            short(node.id),
            place_of(node),
            short(shard)
        ));
        placed.push((node.id, shard, true));
    }
    if placed.iter().any(|(.., is_new)| *is_new) {
        if !agreed(options)? {
            return Ok(());
        }
        let (mut compares, mut operations) = (Vec::new(), Vec::new());
        for (node, shard, _) in placed.iter().filter(|(.., is_new)| *is_new) {
            compares.push(store.unchanged(&reading, &Subject::Member(*node)));
            operations.push(store.assign(&reading, *node, Some(*shard))?);
            if *to == Destination::NewShards {
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
        Destination::NewShards => reading
            .topology
            .shards
            .get(&shard)
            .is_some_and(|own| own.slots.is_empty() && own.nodes().all(|other| other == node)),
    })
}

/// Takes nodes out of their shards. Those that are `gone` must not be alive; others are.
pub(crate) fn remove(
    store: &Store,
    options: &Options,
    words: &[String],
    gone: bool,
) -> Result<(), Trouble> {
    let reading = store.read()?;
    let nodes = named(&reading, words, !gone)?;
    let out: BTreeSet<_> = nodes.iter().map(|node| node.id).collect();
    for node in &nodes {
        check_removal(&reading, node, &out, gone)?;
    }
    if !agreed(options)? {
        return Ok(());
    }
    // A shard goes with its last member, and whoever joins it has left by then.
    let (members, joining): (Vec<_>, Vec<_>) = out.into_iter().partition(|id| {
        reading.topology.shard_of(*id).is_some_and(|shard| shard.members.contains(id))
    });
    for id in joining.into_iter().chain(members) {
        take_out(store, options, id, gone)?;
    }
    say("all of them are out");
    Ok(())
}

fn check_removal(
    reading: &Reading,
    node: &Node,
    out: &BTreeSet<NodeId>,
    gone: bool,
) -> Result<(), Trouble> {
    let (own, place) = (short(node.id), place_of(node));
    if gone && node.is_alive() {
        let text = format!("node {own} at {place} is alive: dunlin cluster remove takes it out");
        return Err(Trouble::Failed(text));
    }
    let Some(shard) = reading.topology.shard_of(node.id) else {
        say(&format!("node {own} at {place} has no shard: its record goes"));
        return Ok(());
    };
    let stays: Vec<_> = shard.members.iter().filter(|id| !out.contains(id)).collect();
    if stays.is_empty() {
        check_unused(&reading.topology, shard, out)?;
    }
    if !gone {
        check_spared(&reading.topology, node, shard, out)?;
    }
    let hands_over = reading.topology.is_primary(node.id) && !stays.is_empty();
    let first = if hands_over { "hands over and " } else { "" };
    say(&format!("node {own} at {place} {first}leaves shard {}", short(shard.id)));
    Ok(())
}

/// Makes sure that nobody needs a shard, which goes with its last member.
fn check_unused(topology: &Topology, shard: &Shard, out: &BTreeSet<NodeId>) -> Result<(), Trouble> {
    let own = short(shard.id);
    if !shard.slots.is_empty() {
        let count = shard.slots.count();
        let text = format!("shard {own} would have no node for its {count} slots");
        return Err(Trouble::Failed(text));
    }
    if let Some(node) = shard.joining.iter().find(|id| !out.contains(id)) {
        let text = format!(
            "node {} is joining shard {own}, which would be gone: take it out, too, or wait",
            short(node)
        );
        return Err(Trouble::Failed(text));
    }
    let comes = topology.migrations.values().filter(|own| own.to == shard.id);
    let moves: Vec<_> = comes.map(|own| own.id.as_str()).collect();
    if !moves.is_empty() {
        return Err(Trouble::Failed(format!(
            "slots are on their way to shard {own}, which would be gone: dunlin cluster abort {}",
            moves.join(" ")
        )));
    }
    Ok(())
}

/// Makes sure that a shard can go on without a live node: those that stay need a quorum of
/// themselves to acknowledge writes and to choose a primary.
fn check_spared(
    topology: &Topology,
    node: &Node,
    shard: &Shard,
    out: &BTreeSet<NodeId>,
) -> Result<(), Trouble> {
    let is_alive = |id: &&NodeId| topology.nodes.get(id).is_some_and(Node::is_alive);
    let stays: Vec<_> = shard.members.iter().filter(|id| !out.contains(id)).collect();
    let living = stays.iter().copied().filter(is_alive).count();
    let quorum = stays.len() / 2 + 1;
    let counts = node.is_alive() && shard.members.contains(&node.id);
    if !counts || stays.is_empty() || living >= quorum {
        return Ok(());
    }
    Err(Trouble::Failed(format!(
        "without node {} at {}, {living} of {} members of shard {} would be alive, and it needs \
         {quorum}: start the others, or take the dead ones out first with dunlin cluster forget",
        short(node.id),
        place_of(node),
        stays.len(),
        short(shard.id)
    )))
}

fn take_out(store: &Store, options: &Options, id: NodeId, gone: bool) -> Result<(), Trouble> {
    let mut reading = store.read()?;
    // What was so when the plan was shown need not be so now.
    if let Some(node) = reading.topology.nodes.get(&id).filter(|node| gone && node.is_alive()) {
        let text = format!("node {} at {} is alive again", short(id), place_of(node));
        return Err(Trouble::Failed(text));
    }
    let is_alone = |shard: &Shard| shard.members.iter().all(|member| *member == id);
    let check = |reading: &Reading, shard: &Shard| match reading.topology.nodes.get(&id) {
        Some(node) if !gone => check_spared(&reading.topology, node, shard, &BTreeSet::from([id])),
        _ => Ok(()),
    };
    // A primary that has to stay does not hand over first.
    if let Some(shard) = reading.topology.shard_of(id) {
        check(&reading, shard)?;
    }
    let shard = reading.topology.shard_of(id).map(|shard| (shard.id, is_alone(shard)));
    if let Some((shard, false)) = shard
        && reading.topology.is_primary(id)
    {
        failover::to_best(store, options, &reading, shard)?;
        reading = store.read()?;
    }
    let shard = shard.map(|(shard, _)| shard);
    let Some(shard) = shard.and_then(|shard| reading.topology.shards.get(&shard)) else {
        return delete(store, &reading, &[Subject::Member(id)]);
    };
    if is_alone(shard) {
        check_unused(&reading.topology, shard, &BTreeSet::from([id]))?;
        // The shard goes with its last node.
        let of_shard = shard.id;
        return delete(
            store,
            &reading,
            &[
                Subject::Member(id),
                Subject::Shard(of_shard),
                Subject::Leader(of_shard),
                Subject::Epoch(of_shard),
            ],
        );
    }
    check(&reading, shard)?;
    let of_shard = shard.id;
    delete(store, &reading, &[Subject::Member(id)])?;
    store.wait(options.timeout, &mut |reading| {
        let own = reading.topology.shards.get(&of_shard)?;
        let text = format!("shard {} still counts node {}", short(of_shard), short(id));
        own.members.contains(&id).then_some(text)
    })?;
    Ok(())
}

fn delete(store: &Store, reading: &Reading, subjects: &[Subject]) -> Result<(), Trouble> {
    let compares = subjects.iter().map(|subject| store.unchanged(reading, subject)).collect();
    let delete = |subject| Operation::Delete { key: store.keys.of(subject) };
    store.write(reading, compares, subjects.iter().map(delete).collect())
}

#[cfg(test)]
mod tests {
    use cluster::slots::SlotRanges;
    use cluster::topology::{Address, Migration, MigrationState};

    use super::*;

    const SHARD: ShardId = ShardId([9; 20]);

    /// Nodes of a shard without slots, of which these are alive. Those after the first `members`
    /// are joining it.
    fn of_one_shard(alive: &[bool], members: usize, moves: Vec<Migration>) -> Topology {
        let ids: Vec<_> = (0..alive.len()).map(|at| NodeId([at as u8; 20])).collect();
        let nodes = ids.iter().zip(alive).map(|(id, is_alive)| Node {
            id: *id,
            shard: Some(SHARD),
            address: Address { host: "h".to_owned(), port: 7, ..Address::default() },
            zone: String::new(),
            alive: is_alive.then_some(1),
            version: String::new(),
            name: String::new(),
        });
        let shard = Shard {
            id: SHARD,
            slots: SlotRanges::new(),
            members: ids[..members].to_vec(),
            joining: ids[members..].to_vec(),
            leader: None,
            last_leader: None,
            is_failed: false,
            modified: 0,
        };
        Topology::new("c".to_owned(), 1, nodes, [shard], moves)
    }

    /// Whether the first node, and as many others as `also`, may leave a topology.
    fn may_leave_it(topology: Topology, also: usize) -> bool {
        let out = (0..=also).map(|at| NodeId([at as u8; 20])).collect();
        let reading = Reading::of(topology);
        let node = &reading.topology.nodes[&NodeId([0; 20])];
        check_removal(&reading, node, &out, !node.is_alive()).is_ok()
    }

    fn may_leave(alive: &[bool], also: usize) -> bool {
        may_leave_it(of_one_shard(alive, alive.len(), Vec::new()), also)
    }

    #[test]
    fn a_shard_to_which_something_comes_stays() {
        assert!(!may_leave_it(of_one_shard(&[true, true], 1, Vec::new()), 0), "a node joins it");
        assert!(may_leave_it(of_one_shard(&[true, true], 1, Vec::new()), 1), "both leave");
        let comes = Migration {
            id: "move".to_owned(),
            slots: SlotRanges::all(),
            from: ShardId([1; 20]),
            to: SHARD,
            state: MigrationState::Wanted,
            modified: 1,
        };
        assert!(!may_leave_it(of_one_shard(&[true], 1, vec![comes.clone()]), 0), "slots come");
        assert!(may_leave_it(of_one_shard(&[true, true], 2, vec![comes]), 0), "another one stays");
    }

    #[test]
    fn a_live_node_stays_while_the_others_are_no_quorum_without_it() {
        assert!(may_leave(&[true, true], 0));
        assert!(may_leave(&[true, true, true], 0));
        assert!(may_leave(&[true, true, true, true, false], 0));
        assert!(!may_leave(&[true, true, false], 0), "the third one is dead");
        assert!(!may_leave(&[true, true, true, true, false, false], 1));
        assert!(may_leave(&[false, true, false], 0), "it is dead itself");
        assert!(may_leave(&[true], 0), "the shard goes with it");
    }
}
