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
    if placed.iter().any(|(.., is_assigned)| *is_assigned) {
        if !agreed(options)? {
            return Ok(());
        }
        let (mut compares, mut operations) = (Vec::new(), Vec::new());
        for (node, shard, _) in placed.iter().filter(|(.., is_assigned)| *is_assigned) {
            compares.push(store.unchanged(&reading, &Subject::Member(*node)));
            operations.push(store.assign(&reading, *node, Some(*shard))?);
            if reading.leaving.contains(node) {
                // Until it is out, its keys are those of the shard.
                compares.push(store.unchanged(&reading, &Subject::Shard(*shard)));
            } else if *to == Destination::NewShards {
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

/// Takes nodes out of their shards. Those that are `gone` must not be alive; others are. Their
/// records go when no shard counts any of them, so that they are found when this is done again.
pub(crate) fn remove(
    store: &Store,
    options: &Options,
    words: &[String],
    gone: bool,
) -> Result<(), Trouble> {
    let reading = store.read()?;
    let nodes = named(&reading, words, !gone)?;
    if nodes.len() > MOST_AT_ONCE {
        return Err(Trouble::Failed(format!("{MOST_AT_ONCE} nodes at most are taken out at once")));
    }
    let out: BTreeSet<_> = nodes.iter().map(|node| node.id).collect();
    for node in nodes {
        check_removal(&reading, node, &out, gone)?;
        show_removal(&reading, node, &out);
    }
    if !agreed(options)? {
        return Ok(());
    }
    let shard_of = |id: &NodeId| reading.topology.shard_of(*id).map(|shard| shard.id);
    for shard in out.iter().filter_map(shard_of).collect::<BTreeSet<_>>() {
        leave(store, options, shard, &out, gone)?;
    }
    let reading = store.wait(options.timeout, &mut |reading| {
        let counted = out.iter().find_map(|id| Some((id, reading.topology.shard_of(*id)?.id)));
        counted.map(|(id, shard)| format!("shard {} still counts node {}", short(shard), short(id)))
    })?;
    delete_records(store, &reading, &out, gone)?;
    say("all of them are out");
    Ok(())
}

/// Has the nodes of a shard that are to be out leave it, all at once. A primary hands over first.
fn leave(
    store: &Store,
    options: &Options,
    shard: ShardId,
    out: &BTreeSet<NodeId>,
    gone: bool,
) -> Result<(), Trouble> {
    let mut reading = store.read()?;
    if leaving_primary(&reading, shard, out).is_some() {
        // One that has to stay does not hand over.
        leavers(&reading, shard, out, gone)?;
        failover::to_best(store, options, &reading, shard, out)?;
        reading = store.read()?;
    }
    let (compares, operations) = departure(store, &reading, shard, out, gone)?;
    if operations.is_empty() {
        return Ok(());
    }
    store.write(&reading, compares, operations)
}

/// The transaction by which nodes leave a shard, and all that it rests on. What was so when the
/// plan was shown need not be so now.
fn departure(
    store: &Store,
    reading: &Reading,
    id: ShardId,
    out: &BTreeSet<NodeId>,
    gone: bool,
) -> Result<(Vec<Compare>, Vec<Operation>), Trouble> {
    if let Some(primary) = leaving_primary(reading, id, out) {
        let text = format!("node {} is the primary again, and was not taken out", short(primary));
        return Err(Trouble::Failed(text));
    }
    let (mut compares, mut operations) = (Vec::new(), Vec::new());
    let nodes = leavers(reading, id, out, gone)?;
    let shard = reading.topology.shards.get(&id).filter(|_| !nodes.is_empty());
    let Some(shard) = shard else { return Ok((compares, operations)) };
    for node in &nodes {
        compares.push(store.unchanged(reading, &Subject::Member(node.id)));
        if !reading.leaving.contains(&node.id) {
            operations.push(store.assign(reading, node.id, None)?);
        }
    }
    let stays = stays(reading, shard, out, gone);
    let are_looked_at =
        if gone { nodes.iter().map(|node| node.id).collect() } else { stays.clone() };
    let alive = are_looked_at.into_iter().map(Subject::Alive);
    compares.extend(alive.map(|subject| store.unchanged(reading, &subject)));
    let of_shard = [Subject::Shard(id), Subject::Leader(id), Subject::Epoch(id)];
    compares.extend(of_shard.iter().map(|subject| store.unchanged(reading, subject)));
    if stays.is_empty() {
        let delete = |subject| Operation::Delete { key: store.keys.of(subject) };
        operations.extend(of_shard.iter().map(delete));
    }
    Ok((compares, operations))
}

/// The nodes of a shard that are to be out, and may be.
fn leavers<'r>(
    reading: &'r Reading,
    shard: ShardId,
    out: &BTreeSet<NodeId>,
    gone: bool,
) -> Result<Vec<&'r Node>, Trouble> {
    let topology = &reading.topology;
    let nodes = out.iter().filter_map(|id| topology.nodes.get(id));
    let nodes = nodes.filter(|node| topology.shard_of(node.id).is_some_and(|it| it.id == shard));
    let checked = nodes.map(|node| check_removal(reading, node, out, gone).map(|()| node));
    checked.collect()
}

/// The members of a shard that it keeps without those that are `out`. A primary that leaves leads
/// until another member takes its place, so it is left when all others are `gone`.
fn stays(reading: &Reading, shard: &Shard, out: &BTreeSet<NodeId>, gone: bool) -> Vec<NodeId> {
    let leads = |id: &NodeId| gone && shard.leader.is_some_and(|leader| leader.node == *id);
    let is_kept = |id: &NodeId| !out.contains(id) && (leads(id) || !reading.leaving.contains(id));
    shard.members.iter().copied().filter(is_kept).collect()
}

/// The primary of a shard, if it is to be out and others stay.
fn leaving_primary(reading: &Reading, shard: ShardId, out: &BTreeSet<NodeId>) -> Option<NodeId> {
    let shard = reading.topology.shards.get(&shard)?;
    let primary = shard.leader?.node;
    (out.contains(&primary) && !stays(reading, shard, out, false).is_empty()).then_some(primary)
}

/// Deletes the records of nodes that have no shard any more.
fn delete_records(
    store: &Store,
    reading: &Reading,
    out: &BTreeSet<NodeId>,
    gone: bool,
) -> Result<(), Trouble> {
    let (mut compares, mut operations) = (Vec::new(), Vec::new());
    for node in out.iter().filter_map(|id| reading.topology.nodes.get(id)) {
        check_removal(reading, node, out, gone)?;
        let subject = Subject::Member(node.id);
        compares.push(store.unchanged(reading, &subject));
        if gone {
            compares.push(store.unchanged(reading, &Subject::Alive(node.id)));
        }
        operations.push(Operation::Delete { key: store.keys.of(&subject) });
    }
    store.write(reading, compares, operations)
}

fn check_removal(
    reading: &Reading,
    node: &Node,
    out: &BTreeSet<NodeId>,
    gone: bool,
) -> Result<(), Trouble> {
    if gone && node.is_alive() {
        return Err(Trouble::Failed(format!(
            "node {} at {} is alive: dunlin cluster remove takes it out",
            short(node.id),
            place_of(node)
        )));
    }
    let Some(shard) = reading.topology.shard_of(node.id) else { return Ok(()) };
    let stays = stays(reading, shard, out, gone);
    if stays.is_empty() {
        check_unused(&reading.topology, shard, out)?;
    }
    if gone { Ok(()) } else { check_spared(&reading.topology, node, shard, &stays) }
}

fn show_removal(reading: &Reading, node: &Node, out: &BTreeSet<NodeId>) {
    let (own, place) = (short(node.id), place_of(node));
    let Some(shard) = reading.topology.shard_of(node.id) else {
        return say(&format!("node {own} at {place} has no shard: its record goes"));
    };
    let hands_over = leaving_primary(reading, shard.id, out) == Some(node.id);
    let first = if hands_over { "hands over and " } else { "" };
    say(&format!("node {own} at {place} {first}leaves shard {}", short(shard.id)));
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
    stays: &[NodeId],
) -> Result<(), Trouble> {
    let is_alive = |id: &&NodeId| topology.nodes.get(id).is_some_and(Node::is_alive);
    let living = stays.iter().filter(is_alive).count();
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

#[cfg(test)]
mod tests {
    use cluster::keys::{AliveValue, LeaderValue, MemberValue};
    use cluster::slots::SlotRanges;
    use cluster::store::Pair;
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
    fn slots_keep_a_node_that_has_not_been_taken_out_before() {
        let mut topology = of_one_shard(&[false, false], 2, Vec::new());
        topology.shards.get_mut(&SHARD).unwrap().slots = SlotRanges::all();
        let mut reading = Reading::of(topology);
        let first = NodeId([0; 20]);
        let may_leave = |reading: &Reading| {
            let node = &reading.topology.nodes[&first];
            check_removal(reading, node, &BTreeSet::from([first]), true).is_ok()
        };
        assert!(may_leave(&reading));
        reading.leaving.insert(NodeId([1; 20]));
        assert!(!may_leave(&reading), "nobody else is left");
    }

    /// What is to be written so that the first of two members leaves, of whom this one leads. It is
    /// `gone`, or else alive; the second one is, and is `leaving` or not.
    fn departure_from(
        leader: u8,
        gone: bool,
        leaving: bool,
    ) -> Result<(Vec<Compare>, Vec<Operation>), Trouble> {
        let words = ["remove".to_owned(), "h:7".to_owned()];
        let store = Store::open(&Options::parse(&words).unwrap()).unwrap();
        let ids = [NodeId([0; 20]), NodeId([1; 20])];
        let mut pairs = Vec::new();
        let mut put = |subject: Subject, value: Vec<u8>| {
            let revision = pairs.len() as i64 + 1;
            let key = store.keys.of(&subject);
            pairs.push(Pair { key, value, created: revision, modified: revision, lease: 0 });
        };
        for id in ids {
            let (zone, name) = (String::new(), String::new());
            let shard = (id == ids[0] || !leaving).then_some(SHARD);
            let member = MemberValue { shard, address: Address::default(), zone, name };
            put(Subject::Member(id), keys::encode(&member));
            if id == ids[0] && gone {
                continue;
            }
            let alive = AliveValue { incarnation: 1, replaces: 0, version: String::new() };
            put(Subject::Alive(id), keys::encode(&alive));
        }
        let shard = ShardValue { slots: SlotRanges::all(), members: ids.to_vec() };
        put(Subject::Shard(SHARD), keys::encode(&shard));
        let leader = LeaderValue {
            node: NodeId([leader; 20]),
            incarnation: 1,
            start: 0,
            continues: 0,
            carried: 0,
            ahead: 0,
        };
        put(Subject::Leader(SHARD), keys::encode(&leader));
        let reading = Reading::new("dunlin", 9, pairs);
        departure(&store, &reading, SHARD, &BTreeSet::from([ids[0]]), gone)
    }

    #[test]
    fn a_node_leaves_only_while_another_one_leads() {
        let (compares, operations) = departure_from(1, false, false).unwrap();
        for key in [format!("leaders/{SHARD}"), format!("shards/{SHARD}")] {
            assert!(compares.iter().any(|own| own.key().ends_with(&key)), "{key}: {compares:?}");
        }
        assert!(matches!(operations[..], [Operation::Put { .. }]), "{operations:?}");
        let again = departure_from(0, false, false).unwrap_err().to_string();
        assert!(again.contains("is the primary again"), "{again}");
    }

    #[test]
    fn a_primary_that_leaves_is_left_when_the_others_are_gone() {
        let (compares, operations) = departure_from(1, true, true).unwrap();
        assert!(compares.iter().any(|own| own.key().contains("leaders/")), "{compares:?}");
        assert!(matches!(operations[..], [Operation::Put { .. }]), "{operations:?}");
        let reasons = [departure_from(0, true, true), departure_from(1, false, true)];
        for reason in reasons.map(|own| own.unwrap_err().to_string()) {
            assert!(reason.contains("would have no node"), "{reason}");
        }
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
