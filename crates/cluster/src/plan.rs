//! What an operator's command is going to do, before it does it: which nodes make up which shards,
//! and which slots go where.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{NodeId, ShardId};
use crate::slots::{SLOT_COUNT, SlotRanges};
use crate::topology::{Node, Shard, Topology};

/// A shard that is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewShard {
    /// The slots that it owns.
    pub slots: SlotRanges,
    /// Its nodes.
    pub members: Vec<NodeId>,
    /// Whether it has copies, all of them in the same place: one accident takes them all.
    pub is_in_one_place: bool,
}

/// Slots that are to go from one shard to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which slots.
    pub slots: SlotRanges,
    /// The shard that owns them.
    pub from: ShardId,
    /// The shard that is to own them.
    pub to: ShardId,
}

/// Where a node stands, for the question of what goes down together: its zone, or else its host.
pub fn place(node: &Node) -> &str {
    if node.zone.is_empty() { &node.address.host } else { &node.zone }
}

/// Shards for a new cluster: as many as there are groups of one node and `replicas` more, with the
/// same number of slots each, and copies in different places as far as there are such. Nodes that
/// are left make further replicas.
///
/// # Errors
/// There are too few nodes, or too many.
pub fn create(nodes: &[&Node], replicas: usize) -> Result<Vec<NewShard>, String> {
    let group = replicas.saturating_add(1);
    let count = nodes.len() / group;
    if count == 0 {
        return Err(format!("a shard of a primary and {replicas} replicas takes {group} nodes"));
    }
    if count > usize::from(SLOT_COUNT) {
        return Err(format!("there are {SLOT_COUNT} slots, and {count} shards would share them"));
    }
    // Nodes of the same place, in the order in which they were named.
    let mut places: Vec<(&str, Vec<NodeId>)> = Vec::new();
    for node in nodes {
        match places.iter_mut().find(|(own, _)| *own == place(node)) {
            Some((_, all)) => all.push(node.id),
            None => places.push((place(node), vec![node.id])),
        }
    }
    places.iter_mut().for_each(|(_, all)| all.reverse());
    let mut groups: Vec<Vec<(&str, NodeId)>> = vec![Vec::new(); count];
    for at in 0..nodes.len() {
        let group = &mut groups[at % count];
        // The place with the most nodes left, so that none is left with more than it can place.
        let best =
            places.iter_mut().filter(|(_, left)| !left.is_empty()).min_by_key(|(own, left)| {
                let is_used = group.iter().filter(|(other, _)| other == own).count();
                (is_used, usize::MAX - left.len())
            });
        let Some((own, left)) = best else { break };
        group.extend(left.pop().map(|node| (*own, node)));
    }
    let slots = usize::from(SLOT_COUNT);
    let border = |at: usize| u16::try_from(at * slots / count).unwrap_or(SLOT_COUNT);
    let shard = |(at, group): (usize, Vec<(&str, NodeId)>)| {
        let used: BTreeSet<_> = group.iter().map(|(own, _)| *own).collect();
        let mut own = SlotRanges::new();
        own.insert(border(at)..=border(at + 1) - 1);
        let mut members: Vec<_> = group.iter().map(|(_, node)| *node).collect();
        members.sort_unstable();
        NewShard { slots: own, members, is_in_one_place: group.len() > 1 && used.len() == 1 }
    };
    Ok(groups.into_iter().enumerate().map(shard).collect())
}

/// The shard that a node should join: the one with the fewest nodes; among these, one that has
/// none in the node's place.
pub fn attach(topology: &Topology, node: &Node) -> Option<ShardId> {
    let shards = topology.shards.values();
    let best = shards.min_by_key(|shard| {
        let nodes: Vec<_> = shard.nodes().filter_map(|id| topology.nodes.get(&id)).collect();
        let in_place = nodes.iter().filter(|other| place(other) == place(node)).count();
        (nodes.len(), in_place, shard.id)
    });
    best.map(|shard| shard.id)
}

/// Moves after which each shard has its share of what slots weigh, as nearly as whole slots allow.
/// `shares` says how much of the whole each shard should have, in any unit; shards without a share
/// give all that they have. Nothing moves while no shard differs from its share by more than
/// `tolerance` of it.
pub fn rebalance(
    topology: &Topology,
    weight: &dyn Fn(u16) -> u64,
    shares: &BTreeMap<ShardId, u64>,
    tolerance: f64,
) -> Vec<Move> {
    let share_of = |shard: ShardId| shares.get(&shard).copied().unwrap_or(0);
    let whole: u128 = topology.shards.keys().map(|shard| u128::from(share_of(*shard))).sum();
    if whole == 0 {
        return Vec::new();
    }
    let weight = |slot: u16| weight(slot) as f64;
    let own = |shard: &Shard| shard.slots.iter().map(weight).sum::<f64>();
    let total: f64 = topology.shards.values().map(own).sum();
    // How much more than its share each shard has.
    let mut surplus: BTreeMap<ShardId, f64> = BTreeMap::new();
    let mut is_even = true;
    for shard in topology.shards.values() {
        let share = total * share_of(shard.id) as f64 / whole as f64;
        let difference = own(shard) - share;
        is_even &= difference.abs() <= share * tolerance;
        is_even &= share_of(shard.id) > 0 || shard.slots.is_empty();
        surplus.insert(shard.id, difference);
    }
    if is_even {
        return Vec::new();
    }
    let mut donors: Vec<&Shard> = topology.shards.values().collect();
    donors.sort_by(|one, other| surplus[&other.id].total_cmp(&surplus[&one.id]));
    let mut moves: BTreeMap<(ShardId, ShardId), Vec<u16>> = BTreeMap::new();
    for shard in donors {
        let gives_all = share_of(shard.id) == 0;
        let slots: Vec<u16> = shard.slots.iter().collect();
        // The last slots go first, and to one shard until it has its share, so that ranges stay
        // whole: clients and nodes keep one for each.
        let mut receiver: Option<ShardId> = None;
        let mut last = None;
        for slot in slots.into_iter().rev() {
            let fits = |to: ShardId| match weight(slot) {
                0.0 => {
                    last.is_none_or(|own| own == (slot + 1, to))
                        && surplus[&to] < 0.0
                        && surplus[&shard.id] > 0.0
                }
                // Of the two, neither is to be further from its share than before.
                own => own < 2.0 * (-surplus[&to]).min(surplus[&shard.id]),
            };
            let stays = |to: ShardId| fits(to) || gives_all && surplus[&to] < 0.0;
            if !receiver.is_some_and(stays) {
                let others =
                    surplus.iter().filter(|(id, _)| **id != shard.id && share_of(**id) > 0);
                receiver = others.min_by(|one, other| one.1.total_cmp(other.1)).map(|own| *own.0);
            }
            let Some(to) = receiver else { break };
            if gives_all || fits(to) {
                moves.entry((shard.id, to)).or_default().push(slot);
                last = Some((slot, to));
                *surplus.entry(shard.id).or_default() -= weight(slot);
                *surplus.entry(to).or_default() += weight(slot);
            }
        }
    }
    let made = moves.into_iter().map(|((from, to), slots)| Move {
        slots: slots.into_iter().collect(),
        from,
        to,
    });
    made.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Address;

    fn node(number: u8, host: &str, zone: &str) -> Node {
        Node {
            id: NodeId([number; 20]),
            shard: None,
            address: Address { host: host.to_owned(), port: 7000, ..Address::default() },
            zone: zone.to_owned(),
            alive: Some(1),
            version: String::new(),
            name: String::new(),
        }
    }

    fn shard(number: u8, slots: &str, members: &[u8]) -> Shard {
        Shard {
            id: ShardId([number; 20]),
            slots: slots.parse().unwrap(),
            members: members.iter().map(|number| NodeId([*number; 20])).collect(),
            joining: Vec::new(),
            leader: None,
            last_leader: None,
            is_failed: false,
            modified: 0,
        }
    }

    fn topology(nodes: Vec<Node>, shards: Vec<Shard>) -> Topology {
        Topology::new("c".to_owned(), 1, nodes, shards, [])
    }

    /// The slots of each shard after moves.
    fn after(topology: &Topology, moves: &[Move]) -> BTreeMap<ShardId, SlotRanges> {
        let mut slots: BTreeMap<_, _> =
            topology.shards.values().map(|shard| (shard.id, shard.slots.clone())).collect();
        for Move { slots: moved, from, to } in moves {
            assert!(slots[from].contains_all(moved) && from != to);
            slots.insert(*from, slots[from].without(moved));
            slots.insert(*to, slots[to].union(moved));
        }
        slots
    }

    #[test]
    fn copies_stand_apart() {
        let zones = ["a", "b", "c"];
        for count in 1..40_u8 {
            for replicas in 0..3 {
                let nodes: Vec<_> =
                    (0..count).map(|at| node(at, "h", zones[usize::from(at / 2) % 3])).collect();
                let named: Vec<_> = nodes.iter().collect();
                let shards = match create(&named, replicas) {
                    Ok(shards) => shards,
                    Err(_) => {
                        assert!(usize::from(count) <= replicas);
                        continue;
                    }
                };
                assert_eq!(shards.len(), usize::from(count) / (replicas + 1));
                let all: BTreeSet<_> = shards.iter().flat_map(|own| own.members.clone()).collect();
                assert_eq!(all.len(), usize::from(count), "each node is in one shard");
                let slots = shards.iter().fold(SlotRanges::new(), |all, own| all.union(&own.slots));
                assert_eq!(slots, SlotRanges::all());
                let sizes = shards.iter().map(|own| own.slots.count());
                assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
                if count % 6 == 0 && replicas == 2 {
                    for own in &shards {
                        let used: BTreeSet<_> = own
                            .members
                            .iter()
                            .map(|id| place(&nodes[usize::from(id.0[0])]))
                            .collect();
                        assert_eq!(used.len(), 3, "{own:?}");
                    }
                }
            }
        }
        let alone = [node(1, "h", ""), node(2, "h", "")];
        let shards = create(&alone.iter().collect::<Vec<_>>(), 1).unwrap();
        assert!(shards[0].is_in_one_place);
        let apart = [node(1, "h", ""), node(2, "i", "")];
        let shards = create(&apart.iter().collect::<Vec<_>>(), 1).unwrap();
        assert!(!shards[0].is_in_one_place);
        assert!(create(&[], 0).is_err());
    }

    #[test]
    fn a_node_joins_where_it_is_needed() {
        let nodes = vec![node(1, "h", ""), node(2, "i", ""), node(3, "i", "")];
        let shards = vec![shard(1, "0-9", &[1]), shard(2, "10-19", &[2])];
        let topology = topology(nodes, shards);
        assert_eq!(attach(&topology, &node(4, "h", "")), Some(ShardId([2; 20])));
        assert_eq!(attach(&topology, &node(4, "i", "")), Some(ShardId([1; 20])));
        assert_eq!(attach(&Topology::default(), &node(4, "i", "")), None);
    }

    #[test]
    fn shards_get_their_shares() {
        let own = topology(
            Vec::new(),
            vec![shard(1, "0-8191", &[]), shard(2, "8192-16383", &[]), shard(3, "", &[])],
        );
        let equal: BTreeMap<_, _> = own.shards.keys().map(|id| (*id, 1)).collect();
        let moves = rebalance(&own, &|_| 1, &equal, 0.02);
        let slots = after(&own, &moves);
        let counts: Vec<_> = slots.values().map(SlotRanges::count).collect();
        assert!(counts.iter().all(|count| (5461..=5462).contains(count)), "{counts:?}");
        assert_eq!(slots[&ShardId([1; 20])].ranges().len(), 1, "{slots:?}");
        // Two that give to two others, by the number of slots and by a few heavy ones.
        let halves = [
            shard(1, "0-8191", &[]),
            shard(2, "8192-16383", &[]),
            shard(3, "", &[]),
            shard(4, "", &[]),
        ];
        let doubled = topology(Vec::new(), halves.to_vec());
        let quarters: BTreeMap<_, _> = doubled.shards.keys().map(|id| (*id, 1)).collect();
        for weight in [|_: u16| 1, |slot: u16| u64::from(slot.is_multiple_of(16))] {
            let slots = after(&doubled, &rebalance(&doubled, &weight, &quarters, 0.02));
            assert!(slots.values().all(|own| own.ranges().len() == 1), "{slots:?}");
            let weights = slots.values().map(|own| own.iter().map(weight).sum::<u64>());
            let whole: u64 = (0..SLOT_COUNT).map(weight).sum();
            assert!(weights.clone().all(|own| own.abs_diff(whole / 4) <= 1), "{slots:?}");
        }
        // What is even stays.
        let even = topology(Vec::new(), vec![shard(1, "0-8291", &[]), shard(2, "8292-16383", &[])]);
        let halves = even.shards.keys().map(|id| (*id, 1)).collect();
        assert_eq!(rebalance(&even, &|_| 1, &halves, 0.02), Vec::new());
        assert_ne!(rebalance(&even, &|_| 1, &halves, 0.01), Vec::new());
        // A shard without a share gives everything.
        let without: BTreeMap<_, _> = [(ShardId([1; 20]), 1), (ShardId([3; 20]), 3)].into();
        let slots = after(&own, &rebalance(&own, &|_| 1, &without, 0.02));
        assert!(slots[&ShardId([2; 20])].is_empty());
        assert_eq!(slots[&ShardId([1; 20])].count(), 4096);
        // However large the shares are.
        let large: BTreeMap<_, _> = own.shards.keys().map(|id| (*id, u64::MAX)).collect();
        assert_eq!(rebalance(&own, &|_| 1, &large, 0.02), moves);
        // One heavy slot is not thrown from shard to shard, and light ones make up for it.
        let heavy = |slot: u16| if slot == 16383 { 10_000 } else { 1 };
        let slots = after(&own, &rebalance(&own, &heavy, &equal, 0.02));
        let weigh = |own: &SlotRanges| own.iter().map(heavy).sum::<u64>();
        let weights: Vec<_> = slots.values().map(weigh).collect();
        let share = (16383 + 10_000) / 3;
        assert!(weights.iter().all(|own| own.abs_diff(share) <= 1300), "{weights:?}");
        assert_eq!(rebalance(&own, &|_| 1, &BTreeMap::new(), 0.02), Vec::new());
    }
}
