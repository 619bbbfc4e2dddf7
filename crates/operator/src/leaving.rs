//! Which nodes leave the cluster: remove and forget.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster::ids::{NodeId, ShardId};
use cluster::keys::{self, ShardValue, Subject};
use cluster::store::{Compare, Operation};
use cluster::topology::{Node, Shard, Topology};

use crate::failover;
use crate::link::place_of;
use crate::members::{MOST_AT_ONCE, named};
use crate::options::Options;
use crate::print::{agreed, say};
use crate::record::{Reading, Store};
use crate::status::short;
use crate::trouble::Trouble;

/// How long a shard without a primary may take to elect one, before what its missing members have
/// is given up.
const ELECTION: Duration = Duration::from_secs(10);

/// The nodes that are to be out.
struct Departure {
    nodes: BTreeSet<NodeId>,
    /// They are gone for ever, and must not be alive. Otherwise they are.
    is_forgotten: bool,
    /// What only they have is given up.
    accepts_loss: bool,
    /// The user has been told that these shards go on with what these nodes have.
    told: BTreeMap<ShardId, NodeId>,
}

/// Carries out `dunlin cluster remove`: takes live nodes out of their shards.
pub(crate) fn remove(store: &Store, options: &Options, words: &[String]) -> Result<(), Trouble> {
    take_out(store, options, words, false, false)
}

/// Carries out `dunlin cluster forget`: takes nodes out that are gone for ever. With
/// `accepts_loss`, shards without a primary elect one without them.
pub(crate) fn forget(
    store: &Store,
    options: &Options,
    words: &[String],
    accepts_loss: bool,
) -> Result<(), Trouble> {
    take_out(store, options, words, true, accepts_loss)
}

/// The records of the nodes go when no shard counts any of them, so that they are found when this
/// is done again.
fn take_out(
    store: &Store,
    options: &Options,
    words: &[String],
    is_forgotten: bool,
    accepts_loss: bool,
) -> Result<(), Trouble> {
    let mut reading = store.read()?;
    let nodes = named(&reading, words, !is_forgotten)?.iter().map(|node| node.id).collect();
    let mut departure = Departure { nodes, is_forgotten, accepts_loss, told: BTreeMap::new() };
    if departure.nodes.len() > MOST_AT_ONCE {
        return Err(Trouble::Failed(format!("{MOST_AT_ONCE} nodes at most are taken out at once")));
    }
    if accepts_loss {
        reading = departure.wait_for_elections(store)?;
    }
    for node in departure.nodes.iter().filter_map(|id| reading.topology.nodes.get(id)) {
        departure.check(&reading, node)?;
        departure.show(&reading, node);
    }
    let shards = departure.shards(&reading);
    for shard in shards.iter().filter_map(|id| reading.topology.shards.get(id)) {
        departure.show_loss(store, &reading, shard)?;
    }
    if !agreed(options)? {
        return Ok(());
    }
    for shard in shards {
        departure.begin(store, options, shard)?;
    }
    let reading = store.wait(options.timeout, &mut |reading| departure.waits_for(reading))?;
    departure.delete_records(store, &reading)?;
    say("all of them are out");
    Ok(())
}

impl Departure {
    /// The shards that lose nodes.
    fn shards(&self, reading: &Reading) -> BTreeSet<ShardId> {
        let of_node = |id: &NodeId| reading.topology.shard_of(*id).map(|shard| shard.id);
        self.nodes.iter().filter_map(of_node).collect()
    }

    /// Waits whether the shards elect primaries after all: then nothing is lost.
    fn wait_for_elections(&self, store: &Store) -> Result<Reading, Trouble> {
        let elected = store.wait(ELECTION, &mut |reading| {
            let shards = self.shards(reading);
            let mut shards = shards.iter().filter_map(|id| reading.topology.shards.get(id));
            let without = shards.find(|shard| self.gives_up(shard))?;
            Some(format!("shard {} may elect a primary", short(without.id)))
        });
        match elected {
            Err(Trouble::NotYet(_)) => store.read(),
            elected => elected,
        }
    }

    /// Has the nodes of a shard that are to be out leave it, all at once. A primary hands over
    /// first.
    fn begin(&self, store: &Store, options: &Options, shard: ShardId) -> Result<(), Trouble> {
        let mut reading = store.read()?;
        if self.leaving_primary(&reading, shard).is_some() {
            // One that has to stay does not hand over.
            self.leavers(&reading, shard)?;
            failover::to_best(store, options, &reading, shard, &self.nodes)?;
            reading = store.read()?;
        }
        let (compares, operations) = self.changes(store, &reading, shard)?;
        if operations.is_empty() {
            return Ok(());
        }
        store.write(&reading, compares, operations)
    }

    /// The transaction by which nodes leave a shard, and all that it rests on. What was so when
    /// the plan was shown need not be so now.
    fn changes(
        &self,
        store: &Store,
        reading: &Reading,
        id: ShardId,
    ) -> Result<(Vec<Compare>, Vec<Operation>), Trouble> {
        if let Some(primary) = self.leaving_primary(reading, id) {
            let text =
                format!("node {} is the primary again, and was not taken out", short(primary));
            return Err(Trouble::Failed(text));
        }
        let (mut compares, mut operations) = (Vec::new(), Vec::new());
        let nodes = self.leavers(reading, id)?;
        let shard = reading.topology.shards.get(&id).filter(|_| !nodes.is_empty());
        let Some(shard) = shard else { return Ok((compares, operations)) };
        for node in &nodes {
            compares.push(store.unchanged(reading, &Subject::Member(node.id)));
            if !reading.leaving.contains(&node.id) {
                operations.push(store.assign(reading, node.id, None)?);
            }
        }
        let stays = self.stays(reading, shard);
        let are_looked_at = match self.is_forgotten {
            true => nodes.iter().map(|node| node.id).collect(),
            false => stays.clone(),
        };
        let alive = are_looked_at.into_iter().map(Subject::Alive);
        compares.extend(alive.map(|subject| store.unchanged(reading, &subject)));
        let of_shard = [Subject::Shard(id), Subject::Leader(id), Subject::Epoch(id)];
        compares.extend(of_shard.iter().map(|subject| store.unchanged(reading, subject)));
        if let Some(heir) = self.heir(store, reading, shard)? {
            if self.told.get(&id) != Some(&heir) {
                let text =
                    format!("shard {} has lost its primary meanwhile: look again", short(id));
                return Err(Trouble::Failed(text));
            }
            let subjects = [Subject::Alive(heir), Subject::Candidate(id, heir)];
            compares.extend(subjects.iter().map(|subject| store.unchanged(reading, subject)));
            let members = vec![heir];
            let value = ShardValue { slots: shard.slots.clone(), members };
            let key = store.keys.of(&Subject::Shard(id));
            operations.push(Operation::Put { key, value: keys::encode(&value), lease: 0 });
        } else if stays.is_empty() {
            let delete = |subject| Operation::Delete { key: store.keys.of(subject) };
            operations.extend(of_shard.iter().map(delete));
        }
        Ok((compares, operations))
    }

    /// The nodes of a shard that are to be out, and may be.
    fn leavers<'r>(&self, reading: &'r Reading, shard: ShardId) -> Result<Vec<&'r Node>, Trouble> {
        let topology = &reading.topology;
        let nodes = self.nodes.iter().filter_map(|id| topology.nodes.get(id));
        let is_of_shard =
            |node: &&Node| topology.shard_of(node.id).is_some_and(|it| it.id == shard);
        nodes.filter(is_of_shard).map(|node| self.check(reading, node).map(|()| node)).collect()
    }

    /// The members of a shard that it keeps. A primary that leaves leads until another member
    /// takes its place, so it is left when all others are gone.
    fn stays(&self, reading: &Reading, shard: &Shard) -> Vec<NodeId> {
        self.stays_of(reading, shard, self.is_forgotten)
    }

    fn stays_of(&self, reading: &Reading, shard: &Shard, are_gone: bool) -> Vec<NodeId> {
        let leads = |id: &NodeId| are_gone && shard.leader.is_some_and(|own| own.node == *id);
        let is_kept =
            |id: &NodeId| !self.nodes.contains(id) && (leads(id) || !reading.leaving.contains(id));
        shard.members.iter().copied().filter(is_kept).collect()
    }

    /// Whether a shard goes on with what is left of it.
    fn gives_up(&self, shard: &Shard) -> bool {
        self.accepts_loss && shard.leader.is_none() && !self.survivors(shard).is_empty()
    }

    /// What is left of a shard. When all members are gone, these are the nodes that were to join
    /// them.
    fn survivors(&self, shard: &Shard) -> Vec<NodeId> {
        let kept = |nodes: &[NodeId]| -> Vec<NodeId> {
            nodes.iter().copied().filter(|node| !self.nodes.contains(node)).collect()
        };
        let members = kept(&shard.members);
        if members.is_empty() { kept(&shard.joining) } else { members }
    }

    /// The only member of a shard from now on that goes on with what is left of it: of the members
    /// that are left the one that is furthest. The others join it again. More members could elect
    /// one of them without the furthest.
    fn heir(
        &self,
        store: &Store,
        reading: &Reading,
        shard: &Shard,
    ) -> Result<Option<NodeId>, Trouble> {
        if !self.gives_up(shard) {
            return Ok(None);
        }
        let (own, survivors) = (short(shard.id), self.survivors(shard));
        if !shard.members.contains(&survivors[0]) {
            return match survivors[..] {
                [heir] if reading.topology.nodes.get(&heir).is_none_or(|it| !it.is_alive()) => {
                    Err(Trouble::Failed(format!(
                        "node {}, which was joining shard {own}, does not run: start it, so that \
                         it can go on",
                        short(heir)
                    )))
                }
                [heir] => Ok(Some(heir)),
                _ => Err(Trouble::Failed(format!(
                    "shard {own} has lost all its members, and {} nodes are joining it: take all \
                     of them out but the one with whose data it is to go on",
                    survivors.len()
                ))),
            };
        }
        let mut furthest = None;
        for node in survivors {
            let Some(candidate) = store.candidate(reading, shard, node) else {
                return Err(Trouble::Failed(format!(
                    "node {} has not told etcd how far its data are: start it, or wait until it has \
                     let go of the last primary, or name it as well, and lose what it has",
                    short(node)
                )));
            };
            furthest = furthest.max(Some((candidate.epoch, candidate.offset, node)));
        }
        Ok(furthest.map(|(.., node)| node))
    }

    /// The primary of a shard, if it is to be out and others stay.
    fn leaving_primary(&self, reading: &Reading, shard: ShardId) -> Option<NodeId> {
        let shard = reading.topology.shards.get(&shard)?;
        let primary = shard.leader?.node;
        let stays = self.stays_of(reading, shard, false);
        let leaves = self.nodes.contains(&primary) && !stays.is_empty();
        leaves.then_some(primary)
    }

    /// Which shard still counts one of the nodes, and what it may need to let it go.
    fn waits_for(&self, reading: &Reading) -> Option<String> {
        let of_shard = |id: &NodeId| Some((*id, reading.topology.shard_of(*id)?));
        let (node, shard) = self.nodes.iter().find_map(of_shard)?;
        let (own, node) = (short(shard.id), short(node));
        Some(match shard.leader {
            None if self.is_forgotten => format!(
                "shard {own} still counts node {node}, and has no primary to take it out: start its \
                 other members. If they elect none, --accept-loss has them do so without the nodes \
                 that you name"
            ),
            _ => format!("shard {own} still counts node {node}"),
        })
    }

    /// Deletes the records of nodes that have no shard any more.
    fn delete_records(&self, store: &Store, reading: &Reading) -> Result<(), Trouble> {
        let (mut compares, mut operations) = (Vec::new(), Vec::new());
        for node in self.nodes.iter().filter_map(|id| reading.topology.nodes.get(id)) {
            self.check(reading, node)?;
            let subject = Subject::Member(node.id);
            compares.push(store.unchanged(reading, &subject));
            if self.is_forgotten {
                compares.push(store.unchanged(reading, &Subject::Alive(node.id)));
            }
            operations.push(Operation::Delete { key: store.keys.of(&subject) });
        }
        store.write(reading, compares, operations)
    }

    /// Whether a node may be taken out.
    fn check(&self, reading: &Reading, node: &Node) -> Result<(), Trouble> {
        if self.is_forgotten && node.is_alive() {
            return Err(Trouble::Failed(format!(
                "node {} at {} is alive: dunlin cluster remove takes it out",
                short(node.id),
                place_of(node)
            )));
        }
        let Some(shard) = reading.topology.shard_of(node.id) else { return Ok(()) };
        let stays = self.stays(reading, shard);
        if stays.is_empty() && !self.gives_up(shard) {
            self.check_unused(&reading.topology, shard)?;
        }
        match self.is_forgotten {
            true => Ok(()),
            false => check_spared(&reading.topology, node, shard, &stays),
        }
    }

    fn show(&self, reading: &Reading, node: &Node) {
        let (own, place) = (short(node.id), place_of(node));
        let Some(shard) = reading.topology.shard_of(node.id) else {
            return say(&format!("node {own} at {place} has no shard: its record goes"));
        };
        let hands_over = self.leaving_primary(reading, shard.id) == Some(node.id);
        let first = if hands_over { "hands over and " } else { "" };
        say(&format!("node {own} at {place} {first}leaves shard {}", short(shard.id)));
    }

    /// Says what is given up where a shard has no primary.
    fn show_loss(
        &mut self,
        store: &Store,
        reading: &Reading,
        shard: &Shard,
    ) -> Result<(), Trouble> {
        let Some(heir) = self.heir(store, reading, shard)? else { return Ok(()) };
        self.told.insert(shard.id, heir);
        let (own, heir, count) = (short(shard.id), short(heir), shard.members.len());
        let left = shard.members.iter().filter(|node| !self.nodes.contains(node)).count();
        say(&match left {
            0 => format!(
                "! shard {own} has lost all its {count} members, and all that they had. Its slots \
                 are served with what node {heir} has"
            ),
            _ => format!(
                "! shard {own} has no primary, and goes on with what node {heir} has, the furthest \
                 of {left} that are left of {count} members. Writes that it lacks are lost, also \
                 those that were acknowledged"
            ),
        });
        Ok(())
    }

    /// Makes sure that nobody needs a shard, which goes with its last member.
    fn check_unused(&self, topology: &Topology, shard: &Shard) -> Result<(), Trouble> {
        let own = short(shard.id);
        if !shard.slots.is_empty() {
            let count = shard.slots.count();
            let text = format!("shard {own} would have no node for its {count} slots");
            return Err(Trouble::Failed(text));
        }
        if let Some(node) = shard.joining.iter().find(|id| !self.nodes.contains(id)) {
            let text = format!(
                "node {} is joining shard {own}, which would be gone: take it out, too, or wait",
                short(*node)
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
    use cluster::topology::{Address, Leader, Migration, MigrationState};

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

    /// That the first nodes shall be out.
    fn departure_of(count: u8, is_forgotten: bool) -> Departure {
        let nodes = (0..count).map(|at| NodeId([at; 20])).collect();
        Departure { nodes, is_forgotten, accepts_loss: false, told: BTreeMap::new() }
    }

    /// Whether the first node, and as many others as `also`, may leave a topology.
    fn may_leave_it(topology: Topology, also: usize) -> bool {
        let reading = Reading::of(topology);
        let node = &reading.topology.nodes[&NodeId([0; 20])];
        departure_of(also as u8 + 1, !node.is_alive()).check(&reading, node).is_ok()
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
            departure_of(1, true).check(reading, node).is_ok()
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
        departure_of(1, gone).changes(&store, &reading, SHARD)
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
    fn a_loss_is_accepted_only_where_nobody_leads() {
        let accepting = |count| Departure { accepts_loss: true, ..departure_of(count, true) };
        let mut topology = of_one_shard(&[false, false, true, true], 3, Vec::new());
        let mut shard = topology.shards.remove(&SHARD).unwrap();
        let id = |at: u8| NodeId([at; 20]);
        assert!(!departure_of(2, true).gives_up(&shard));
        for (count, left) in [(1, vec![id(1), id(2)]), (2, vec![id(2)]), (3, vec![id(3)])] {
            assert!(accepting(count).gives_up(&shard));
            assert_eq!(accepting(count).survivors(&shard), left);
        }
        assert!(!accepting(4).gives_up(&shard), "nobody is left");
        shard.leader = Some(Leader { node: id(2), incarnation: 1, epoch: 1, start: 0 });
        assert!(!accepting(2).gives_up(&shard));
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
