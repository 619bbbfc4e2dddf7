//! What etcd has of the cluster, and how it is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use base::clock::monotonic_ms;
use base::rng;
use cluster::control::picture;
use cluster::ids::{NodeId, ShardId};
use cluster::keys::{self, CandidateValue, Keys, MemberValue, RebuiltValue, Subject};
use cluster::store::{Answer, Compare, Failure, Operation, Pair, Request, Revision, Transaction};
use cluster::topology::{Migration, Node, Shard, Topology};
use gateway::Gateway;

use crate::options::Options;
use crate::print::say;
use crate::trouble::Trouble;

/// How long etcd may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the keys are read again while something is awaited.
const TICK: Duration = Duration::from_millis(200);

/// The cluster's part of an etcd.
pub(crate) struct Store {
    gateway: Gateway,
    pub(crate) keys: Keys,
    name: String,
    /// Nothing is waited for any more.
    has_given_up: AtomicBool,
}

/// All that was there at one instant.
pub(crate) struct Reading {
    pub(crate) topology: Topology,
    /// Members of shards that were taken out of them: their primaries still count them.
    pub(crate) leaving: BTreeSet<NodeId>,
    pairs: BTreeMap<String, Pair>,
}

impl Store {
    pub(crate) fn open(options: &Options) -> Result<Store, Trouble> {
        let gateway = Gateway::open(options.etcd.clone()).map_err(Trouble::Failed)?;
        Ok(Store {
            gateway,
            keys: Keys::new(&options.name),
            name: options.name.clone(),
            has_given_up: AtomicBool::new(false),
        })
    }

    /// Asks etcd.
    pub(crate) fn ask(&self, request: &Request, limit: Duration) -> Result<Answer, Failure> {
        self.gateway.ask(request, limit)
    }

    pub(crate) fn read(&self) -> Result<Reading, Trouble> {
        let prefix = self.keys.prefix().to_owned();
        match self.ask(&Request::Read { prefix }, PATIENCE) {
            Ok(Answer::Pairs { revision, pairs }) => Ok(Reading::new(&self.name, revision, pairs)),
            Ok(_) => Err(Trouble::Failed("etcd has answered another question".to_owned())),
            Err(failure) => Err(Trouble::Failed(format!("etcd cannot be read: {failure}"))),
        }
    }

    /// Writes all of it, if what it compares is so, and if no other operator has changed the
    /// cluster since it was read.
    ///
    /// What etcd says of a failure is not all: it looks at its space after it has carried a
    /// transaction out as well, and says that it has none. What is there then is read.
    pub(crate) fn write(
        &self,
        reading: &Reading,
        mut compares: Vec<Compare>,
        mut operations: Vec<Operation>,
    ) -> Result<(), Trouble> {
        compares.push(self.unchanged(reading, &Subject::Change));
        let key = self.keys.of(&Subject::Change);
        // By this the change is known again.
        let own = format!("{:016x}", rng::entropy_u64()).into_bytes();
        operations.push(Operation::Put { key: key.clone(), value: own.clone(), lease: 0 });
        let request = Request::Transaction(Transaction { compares, operations });
        let failure = match self.ask(&request, PATIENCE) {
            Ok(Answer::Transaction { succeeded: true, .. }) => return Ok(()),
            Ok(_) => {
                let text = "the cluster has changed meanwhile, and nothing was done: look again";
                return Err(Trouble::Failed(text.to_owned()));
            }
            Err(Failure::NotDone(text)) => {
                return Err(Trouble::Failed(format!("nothing was done: {text}")));
            }
            Err(failure) => failure,
        };
        let now = self.read().ok();
        let has = |value: &[u8]| now.as_ref().is_some_and(|now| now.value(&key) == Some(value));
        if has(&own) {
            return Ok(());
        }
        let is_as_before =
            now.is_some_and(|now| now.unchanged(key.clone()) == reading.unchanged(key));
        Err(Trouble::Failed(match failure {
            // What was not refused may yet be carried out.
            Failure::NoSpace(text) if is_as_before => format!("nothing was done: {text}"),
            failure => format!(
                "it is not known whether it was done: {failure}. Look at the cluster's status \
                 before you try again"
            ),
        }))
    }

    /// Ends all waiting.
    pub(crate) fn give_up(&self) {
        self.has_given_up.store(true, Relaxed);
    }

    /// Waits until `missing` names nothing any more, and tells what it waits for.
    pub(crate) fn wait(
        &self,
        timeout: Duration,
        missing: &mut dyn FnMut(&Reading) -> Option<String>,
    ) -> Result<Reading, Trouble> {
        let begun = monotonic_ms();
        let mut told = String::new();
        loop {
            let read = self.read();
            let waits_for = match &read {
                Ok(reading) => missing(reading),
                Err(trouble) => Some(trouble.to_string()),
            };
            match (read, waits_for) {
                (Ok(reading), None) => return Ok(reading),
                (_, waits_for) => {
                    let text = waits_for.unwrap_or_default();
                    let waited = Duration::from_millis(monotonic_ms() - begun);
                    if waited > timeout || self.has_given_up.load(Relaxed) {
                        return Err(Trouble::NotYet(text));
                    }
                    if text != told {
                        say(&format!("waiting: {text}"));
                        told = text;
                    }
                }
            }
            sleep(TICK);
        }
    }

    /// What requires that a key is as it was read.
    pub(crate) fn unchanged(&self, reading: &Reading, subject: &Subject) -> Compare {
        reading.unchanged(self.keys.of(subject))
    }

    /// That the cluster was written anew, if it was.
    pub(crate) fn rebuilt(&self, reading: &Reading) -> Option<RebuiltValue> {
        keys::decode(&reading.pairs.get(&self.keys.of(&Subject::Rebuilt))?.value)
    }

    /// How far a member of a shard without a primary is, if it has let go of the last one and has
    /// said so.
    pub(crate) fn candidate(
        &self,
        reading: &Reading,
        shard: &Shard,
        node: NodeId,
    ) -> Option<CandidateValue> {
        let key = self.keys.of(&Subject::Candidate(shard.id, node));
        let value: CandidateValue = keys::decode(&reading.pairs.get(&key)?.value)?;
        let after = shard.last_leader.map_or(0, |leader| leader.epoch);
        let alive = reading.topology.nodes.get(&node)?.alive;
        (value.after == after && alive == Some(value.incarnation)).then_some(value)
    }

    /// Ends all leases with which keys of the cluster end, but for the claims of operators: no node
    /// has those.
    pub(crate) fn end_leases(&self, reading: &Reading) -> Result<(), Trouble> {
        let claims = format!("{}operators/", self.keys.prefix());
        let of_nodes = reading.pairs.values().filter(|pair| !pair.key.starts_with(&claims));
        let leases: BTreeSet<_> = of_nodes.map(|pair| pair.lease).collect();
        for lease in leases.into_iter().filter(|lease| *lease != 0) {
            match self.gateway.ask(&Request::Revoke { lease }, PATIENCE) {
                Ok(_) => {}
                Err(failure) => {
                    return Err(Trouble::Failed(format!("a lease cannot be ended: {failure}")));
                }
            }
        }
        Ok(())
    }

    /// What gives a node to a shard, or takes it out of its shard.
    pub(crate) fn assign(
        &self,
        reading: &Reading,
        node: NodeId,
        shard: Option<ShardId>,
    ) -> Result<Operation, Trouble> {
        let value = reading.member(&self.keys, node).ok_or_else(|| {
            Trouble::Failed(format!("etcd has no record of node {node} that can be read"))
        })?;
        let key = self.keys.of(&Subject::Member(node));
        let value = keys::encode(&MemberValue { shard, ..value });
        Ok(Operation::Put { key, value, lease: 0 })
    }
}

impl Reading {
    /// What these keys of the cluster with this name say.
    pub(crate) fn new(name: &str, revision: Revision, pairs: Vec<Pair>) -> Reading {
        let mut reading = Reading::of(picture(name, revision, &pairs));
        reading.pairs = pairs.into_iter().map(|pair| (pair.key.clone(), pair)).collect();
        let keys = Keys::new(name);
        let belongs = |node: &NodeId, shard: ShardId| {
            reading.member(&keys, *node).is_some_and(|own| own.shard == Some(shard))
        };
        let leaving = reading.topology.shards.values().flat_map(|shard| {
            shard.members.iter().copied().filter(|node| !belongs(node, shard.id))
        });
        reading.leaving = leaving.collect();
        reading
    }

    /// The cluster as it is known without etcd.
    pub(crate) fn of(topology: Topology) -> Reading {
        Reading { topology, leaving: BTreeSet::new(), pairs: BTreeMap::new() }
    }

    /// The record of a node.
    fn member(&self, keys: &Keys, node: NodeId) -> Option<MemberValue> {
        keys::decode(&self.pairs.get(&keys.of(&Subject::Member(node)))?.value)
    }

    /// The keys that there were.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.pairs.keys()
    }

    /// The value of a key, if it was there.
    pub(crate) fn value(&self, key: &str) -> Option<&[u8]> {
        self.pairs.get(key).map(|pair| &pair.value[..])
    }

    /// What requires that a key is as it was read.
    pub(crate) fn unchanged(&self, key: String) -> Compare {
        let revision = self.pairs.get(&key).map_or(0, |pair| pair.modified);
        Compare::Modified { key, revision }
    }

    /// The lease under which a node is alive, if it is.
    pub(crate) fn lease_of(&self, keys: &Keys, node: NodeId) -> Option<i64> {
        self.pairs.get(&keys.of(&Subject::Alive(node))).map(|pair| pair.lease)
    }

    /// The revision as of which it was read.
    pub(crate) fn revision(&self) -> Revision {
        self.topology.revision
    }

    /// The node that a user means. Where one was replaced by another at its address, the one that
    /// is alive.
    pub(crate) fn node(&self, word: &str) -> Result<&Node, Trouble> {
        self.node_in(word, true)
    }

    /// The node that a user means, of several rather one that is alive or that is not.
    pub(crate) fn node_in(&self, word: &str, is_alive: bool) -> Result<&Node, Trouble> {
        let is_meant = |node: &&Node| {
            node.name == word && !word.is_empty()
                || places(node).iter().any(|place| place == word)
                || is_beginning(&node.id.to_string(), word)
        };
        let meant = || self.topology.nodes.values().filter(is_meant);
        let rather = || meant().filter(|node| node.is_alive() == is_alive);
        match rather().next() {
            Some(_) => one(rather(), "node", word),
            None => one(meant(), "node", word),
        }
    }

    /// The shard that a user means.
    pub(crate) fn shard(&self, word: &str) -> Result<&Shard, Trouble> {
        let is_meant = |shard: &&Shard| is_beginning(&shard.id.to_string(), word);
        one(self.topology.shards.values().filter(is_meant), "shard", word)
    }

    /// The move of slots that a user means.
    pub(crate) fn migration(&self, word: &str) -> Result<&Migration, Trouble> {
        let is_meant = |own: &&Migration| is_beginning(&own.id, word);
        one(self.topology.migrations.values().filter(is_meant), "move under way", word)
    }
}

/// The addresses of a node as people write them.
fn places(node: &Node) -> Vec<String> {
    let address = &node.address;
    let mut places = Vec::new();
    for host in [&address.host, &address.hostname] {
        for port in [address.port, address.tls_port] {
            if !host.is_empty() && port != 0 {
                places.push(place(host, port));
            }
        }
    }
    places
}

/// Host and port as people write them.
pub(crate) fn place(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn is_beginning(id: &str, word: &str) -> bool {
    word.len() >= 4 && id.starts_with(&word.to_ascii_lowercase())
}

fn one<'t, T>(
    mut found: impl Iterator<Item = &'t T>,
    kind: &str,
    word: &str,
) -> Result<&'t T, Trouble> {
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Trouble::Failed(format!("there is no {kind} '{word}'"))),
        _ => Err(Trouble::Failed(format!("'{word}' is more than one {kind}"))),
    }
}

#[cfg(test)]
mod tests {
    use cluster::slots::SlotRanges;
    use cluster::topology::{Address, MigrationState};

    use super::*;

    fn node(number: u8, is_alive: bool) -> Node {
        let address = Address { host: "h".to_owned(), port: 7, ..Address::default() };
        Node {
            id: NodeId([number; 20]),
            shard: None,
            address,
            zone: String::new(),
            alive: is_alive.then_some(1),
            version: String::new(),
            name: String::new(),
        }
    }

    #[test]
    fn of_nodes_at_one_address_the_live_one_is_meant_unless_it_is_to_be_forgotten() {
        let found = |nodes: Vec<Node>, is_alive| {
            let topology = Topology::new("c".to_owned(), 1, nodes, [], []);
            let reading = Reading::of(topology);
            reading.node_in("h:7", is_alive).map(|node| node.id.0[0]).map_err(|it| it.to_string())
        };
        let both = || vec![node(1, false), node(2, true)];
        assert_eq!((found(both(), true), found(both(), false)), (Ok(2), Ok(1)));
        assert_eq!(found(vec![node(1, false)], true), Ok(1));
        let several = Err("'h:7' is more than one node".to_owned());
        assert_eq!(found(vec![node(1, true), node(2, true), node(3, false)], true), several);
    }

    #[test]
    fn a_letter_is_no_name_of_a_move() {
        let own = Migration {
            id: "0f1e2d3c4b5a6978".to_owned(),
            slots: SlotRanges::all(),
            from: ShardId([1; 20]),
            to: ShardId([2; 20]),
            state: MigrationState::Wanted,
            modified: 1,
        };
        let reading = Reading::of(Topology::new("c".to_owned(), 1, [], [], [own]));
        let is_meant = |word: &str| reading.migration(word).is_ok();
        assert!(is_meant("0f1e") && is_meant("0f1e2d3c4b5a6978"));
        assert!(!is_meant("0") && !is_meant("") && !is_meant("1e2d"));
    }
}
