//! What the nodes of a cluster say that etcd has lost, and what speaks against writing it by that.
//!
//! Nodes that are named are asked, and all of which one of those knows. They may ask another etcd,
//! be of another cluster of the same name, or not answer; and etcd may have what they know.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::Duration;

use base::clock::monotonic_ms;
use cluster::ids::NodeId;
use cluster::rebuild::{Rebuild, Witness, are_apart};
use cluster::topology::{Address, Node, Shard, Topology};

use crate::claim::Claim;
use crate::link::{self, place_of};
use crate::options::{Access, Options, Recovery, Word};
use crate::print::say;
use crate::record::{Reading, Store};
use crate::status::short;
use crate::trouble::Trouble;

/// So many nodes are asked at most: who names more of them is no node of a cluster.
const MOST_NODES: usize = 1000;
/// So many of them are asked at the same time.
const ASKED_AT_ONCE: usize = 32;
/// How long nodes may take to notice that etcd has lost the cluster, in milliseconds.
const NOTICE_MS: u64 = 15_000;
/// How often they are asked meanwhile.
const PAUSE: Duration = Duration::from_millis(500);
/// What nodes have said, and why others have not.
pub(crate) struct Answers {
    pub(crate) witnesses: Vec<Witness>,
    failures: BTreeMap<String, String>,
    /// The node whose picture the user trusts.
    pub(crate) trusted: Option<NodeId>,
}

impl Answers {
    pub(crate) fn of(&self, node: NodeId) -> Option<&Witness> {
        self.witnesses.iter().find(|own| own.node == node)
    }

    /// The witness that a user means.
    fn named(&self, word: &str) -> Option<&Witness> {
        let is_meant = |own: &&Witness| {
            let known = Reading::of(own.topology.clone());
            known.node_in(word, true).is_ok_and(|node| node.id == own.node)
        };
        self.witnesses.iter().find(is_meant)
    }

    /// The picture of which others may be apart: the one that is trusted.
    fn trusted(&self) -> Option<&Topology> {
        Some(&self.of(self.trusted?)?.topology)
    }

    /// Those whose word counts: not of another cluster than the one that is trusted.
    fn counted(&self) -> impl Iterator<Item = &Witness> {
        let trusted = self.trusted();
        let counts = move |own: &&Witness| trusted.is_none_or(|it| !are_apart(it, &own.topology));
        self.witnesses.iter().filter(counts)
    }

    /// All nodes of which those know that were asked. Where pictures are of different clusters, the
    /// nodes of the one that is trusted, or of the first.
    fn known(&self) -> Vec<Node> {
        let pictures = || self.witnesses.iter().map(|own| &own.topology);
        let right = self.trusted().or_else(|| pictures().find(|own| !own.shards.is_empty()));
        let is_right = |own: &&Topology| right.is_none_or(|right| !are_apart(right, own));
        pictures().filter(is_right).flat_map(|own| own.nodes.values().cloned()).collect()
    }

    /// Forgets nodes of another cluster than the one that is trusted: it goes its own way. Nodes of
    /// that one stay, which know another.
    fn forget_others(&mut self) {
        let Some(trusted) = self.trusted().cloned() else { return };
        self.witnesses.retain(|own| {
            trusted.nodes.contains_key(&own.node) || !are_apart(&trusted, &own.topology)
        });
    }

    /// Nodes that ask addresses of etcd that are not given here, too or only. A member that is
    /// asked somewhere else may be another etcd.
    pub(crate) fn elsewhere(&self, options: &Options) -> Vec<&Witness> {
        let given: BTreeSet<_> = given(options).into_iter().collect();
        let is_here = |own: &Witness| {
            !own.etcd.is_empty() && own.etcd.iter().all(|url| given.contains(&whole(url)))
        };
        self.witnesses.iter().filter(|own| !is_here(own)).collect()
    }
}

/// An address of etcd with all its parts, as it can be compared. What is none stays as it is.
fn whole(url: &str) -> String {
    gateway::endpoint(url.trim()).unwrap_or_else(|_| url.to_owned())
}

/// The addresses of etcd that the user has given.
pub(crate) fn given(options: &Options) -> Vec<String> {
    options.etcd.endpoints.iter().map(|url| whole(url)).collect()
}

/// The addresses at which a node asks etcd.
pub(crate) fn places_of_etcd(own: &Witness) -> String {
    own.etcd.iter().map(|url| whole(url)).collect::<Vec<_>>().join(",")
}

/// Whether etcd has the cluster, and nothing that its nodes know is later.
pub(crate) fn has_cluster(store: &Store, reading: &Reading, answers: &Answers) -> bool {
    store.rebuilt(reading).is_none_or(|rebuilt| rebuilt.is_complete)
        && has_all(&reading.topology, answers)
}

/// Whether these shards are what has become of those that nodes know: nothing that is known is
/// later, neither as a whole nor of a shard, and not all shards are others. Nodes judge in the same
/// way whether to believe it.
fn has_all(there: &Topology, answers: &Answers) -> bool {
    let is_behind = |known: &Shard| {
        there.shards.get(&known.id).is_some_and(|shard| shard.modified < known.modified)
    };
    let is_later = |known: &Topology| {
        there.revision >= known.revision
            && !are_apart(there, known)
            && !known.shards.values().any(is_behind)
    };
    !there.shards.is_empty() && answers.counted().all(|own| is_later(&own.topology))
}

/// Refuses while a node asks another etcd: if that comes back with the cluster, it has another
/// primary than the one that is written here.
pub(crate) fn check_elsewhere(answers: &Answers, options: &Options) -> Result<(), Trouble> {
    let elsewhere = answers.elsewhere(options);
    if elsewhere.is_empty() {
        return Ok(());
    }
    let named =
        elsewhere.iter().map(|own| format!("{} ({})", short(own.node), places_of_etcd(own)));
    let named: Vec<_> = named.collect();
    let mut all = given(options);
    for url in elsewhere.iter().flat_map(|own| &own.etcd).map(|url| whole(url)) {
        if !all.contains(&url) {
            all.push(url);
        }
    }
    Err(Trouble::Failed(format!(
        "nodes ask another etcd than the one that is given, or may, and might go on by that: {}. If \
         all these addresses are members of one etcd, give --etcd {}; else stop the etcd there and \
         then CONFIG SET cluster-etcd {} at each of these nodes, or restart it with that. Then give \
         this command again",
        named.join(", "),
        all.join(","),
        given(options).join(",")
    )))
}

/// Makes sure that all addresses that are given are those of one etcd. Nodes may ask any of them,
/// and if one is another etcd, or was kept from this one, that may have the cluster too.
pub(crate) fn check_members(options: &Options, claim: &Claim) -> Result<(), Trouble> {
    let given = given(options);
    for url in given.iter().filter(|_| given.len() > 1) {
        let mut alone = options.clone();
        alone.etcd.endpoints = vec![url.clone()];
        let advice = format!(
            "leave it out here, and with CONFIG SET cluster-etcd {} at the nodes",
            given.iter().filter(|other| *other != url).cloned().collect::<Vec<_>>().join(",")
        );
        match Store::open(&alone).and_then(|store| claim.is_in(&store)) {
            Ok(true) => {}
            Ok(false) => {
                return Err(Trouble::Failed(format!(
                    "{url} is no member of the same etcd as the others: {advice}"
                )));
            }
            Err(trouble) => {
                return Err(Trouble::Failed(format!(
                    "{url} may be another etcd that comes back with the cluster ({trouble}): start \
                     it, or {advice}"
                )));
            }
        }
    }
    Ok(())
}

/// Refuses to write over a cluster of this name that has other shards or other living nodes.
pub(crate) fn check_others(
    store: &Store,
    reading: &Reading,
    rebuild: &Rebuild,
) -> Result<(), Trouble> {
    let own = &rebuild.topology;
    let is_other = |node: &&Node| {
        let of_other = node.shard.is_some_and(|shard| !own.shards.contains_key(&shard));
        of_other || node.is_alive() && node.shard.is_some() && !own.nodes.contains_key(&node.id)
    };
    let nodes = reading.topology.nodes.values().filter(is_other);
    let mut others: Vec<_> = nodes.map(|node| format!("node {}", place_of(node))).collect();
    let shards = reading.topology.shards.keys().filter(|id| !own.shards.contains_key(id));
    others.extend(shards.map(|id| format!("shard {}", short(*id))));
    if others.is_empty() {
        return Ok(());
    }
    Err(Trouble::Failed(format!(
        "etcd has another cluster {} there, or what was removed from this one: {}. Give another etcd \
         with --etcd; or, if nobody needs that any more, delete it first: etcdctl del --prefix {}",
        own.name,
        others.join(", "),
        store.keys.prefix()
    )))
}

/// The node at an address, of which nothing else is known.
fn node_at(word: &str) -> Result<Node, Trouble> {
    let parts = word.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) =
        parts.filter(|(host, port)| !host.is_empty() && *port != 0).ok_or_else(|| {
            Trouble::Failed(format!("'{word}' is no address of a node, as 10.0.0.1:6379 is"))
        })?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Node {
        id: NodeId([0; 20]),
        shard: None,
        address: Address { host, port, tls_port: port, ..Address::default() },
        zone: String::new(),
        alive: None,
        version: String::new(),
        name: String::new(),
    })
}

/// Asks the nodes that are named, and all of which one of them knows.
pub(crate) fn ask_all(wanted: &Recovery, access: &Access) -> Result<Answers, Trouble> {
    let mut answers = Answers { witnesses: Vec::new(), failures: BTreeMap::new(), trusted: None };
    // The one that is trusted may be named in another way, and is found then.
    let trusted = wanted.trust.as_ref().and_then(|word| node_at(word).ok());
    let place_of_trusted = trusted.as_ref().map(place_of);
    let named = wanted.nodes.iter().map(|word| node_at(word)).collect::<Result<Vec<_>, _>>()?;
    let mut next: Vec<Node> = trusted.into_iter().chain(named).collect();
    let mut asked = BTreeSet::new();
    loop {
        next.retain(|node| asked.insert(place_of(node)));
        if next.is_empty() {
            break;
        }
        if asked.len() > MOST_NODES {
            return Err(too_many(&answers));
        }
        for (node, told) in next.iter().zip(ask_each(&next, access)) {
            match told {
                Ok(own) => {
                    if place_of_trusted == Some(place_of(node)) {
                        answers.trusted = Some(own.node);
                    }
                    let is_same = |other: &Witness| {
                        (other.node, other.incarnation) == (own.node, own.incarnation)
                    };
                    if !answers.witnesses.iter().any(is_same) {
                        answers.witnesses.push(own);
                    }
                }
                Err(reason) => drop(answers.failures.insert(place_of(node), reason)),
            }
        }
        if let (None, Some(word)) = (answers.trusted, &wanted.trust) {
            answers.trusted = answers.named(word).map(|own| own.node);
        }
        next = answers.known();
    }
    if answers.witnesses.is_empty() {
        let reasons: Vec<_> = answers.failures.into_values().collect();
        return Err(Trouble::Failed(format!("no node answers: {}", reasons.join("; "))));
    }
    if let (None, Some(word)) = (answers.trusted, &wanted.trust) {
        return Err(Trouble::Failed(format!("no node '{word}' has answered")));
    }
    answers.forget_others();
    Ok(answers)
}

fn too_many(answers: &Answers) -> Trouble {
    let count = |own: &&Witness| own.topology.nodes.len();
    let most = answers.witnesses.iter().max_by_key(count);
    let most = most.map(|own| format!(": node {} knows {}", short(own.node), count(&own)));
    Trouble::Failed(format!(
        "more than {MOST_NODES} nodes would have to be asked{}",
        most.unwrap_or_default()
    ))
}

/// What nodes say, in their order. A few are asked at the same time.
fn ask_each(nodes: &[Node], access: &Access) -> Vec<Result<Witness, String>> {
    let (next, told) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let ask = || {
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(node) = nodes.get(at) else { return };
            let own = link::witness(node, access);
            told.lock().unwrap_or_else(PoisonError::into_inner).insert(at, own);
        }
    };
    thread::scope(|scope| {
        for _ in 1..nodes.len().min(ASKED_AT_ONCE) {
            // Where no thread can be started, the others ask.
            let _ = thread::Builder::new().spawn_scoped(scope, ask);
        }
        ask();
    });
    told.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

/// Asks all nodes and etcd, again until no node goes by what etcd has had. If one still does, that
/// is a reason not to do it.
pub(crate) fn ask_until_noticed(
    store: &Store,
    options: &Options,
    wanted: &Recovery,
) -> Result<(Answers, Reading), Trouble> {
    let begun = monotonic_ms();
    let longest = NOTICE_MS.min(options.timeout.as_millis() as u64);
    let mut has_told = false;
    loop {
        let answers = ask_all(wanted, &options.access)?;
        let reading = store.read()?;
        let count = answers.counted().filter(|own| own.goes_by_cluster()).count();
        let is_decided = count == 0 || has_cluster(store, &reading, &answers);
        if is_decided || options.dry_run || monotonic_ms() - begun >= longest {
            return Ok((answers, reading));
        }
        if !std::mem::replace(&mut has_told, true) {
            say(&format!("waiting: {count} nodes still go by an etcd that has the cluster"));
        }
        sleep(PAUSE);
    }
}

/// Makes sure that each node of the cluster has told what it knows, or is named as one that need
/// not.
pub(crate) fn check_silent(
    rebuild: &Rebuild,
    answers: &Answers,
    without: &[Word],
) -> Result<(), Trouble> {
    let known = Reading::of(rebuild.topology.clone());
    let mut excused = BTreeSet::new();
    for word in without {
        let node = known.node_in(word, false)?;
        if rebuild.told.contains(&node.id) {
            let text = format!("node {} at {} has answered", short(node.id), place_of(node));
            return Err(Trouble::Failed(text));
        }
        excused.insert(node.id);
    }
    let nodes = rebuild.topology.nodes.values().filter(|node| node.shard.is_some());
    let silent = nodes.filter(|node| answers.of(node.id).is_none() && !excused.contains(&node.id));
    let texts: Vec<_> = silent
        .map(|node| {
            let place = place_of(node);
            let reason = answers.failures.get(&place).cloned().unwrap_or_default();
            format!(
                "node {} does not answer ({reason}): start it, or go on --without {place}: what it \
                 alone knows is lost then",
                short(node.id)
            )
        })
        .collect();
    if texts.is_empty() { Ok(()) } else { Err(Trouble::Failed(texts.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use cluster::ids::ShardId;
    use cluster::slots::SlotRanges;

    use super::*;

    #[test]
    fn nodes_are_named_by_their_addresses() {
        let of = |word: &str| node_at(word).map(|node| (node.address.host, node.address.port));
        assert_eq!(of("10.0.0.1:6379").unwrap(), ("10.0.0.1".to_owned(), 6379));
        assert_eq!(of("[::1]:7").unwrap(), ("::1".to_owned(), 7));
        for wrong in ["h", "h:", ":7", "h:x", "h:0", ""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    fn picture(shard: u8, revision: i64, nodes: &[u8]) -> Topology {
        let id = ShardId([shard; 20]);
        let members: Vec<_> = nodes.iter().map(|number| NodeId([*number; 20])).collect();
        let all = members.iter().zip(nodes).map(|(node, number)| {
            let place = node_at(&format!("h:{number}")).unwrap();
            Node { id: *node, shard: Some(id), ..place }
        });
        let own = Shard {
            id,
            slots: SlotRanges::all(),
            members: members.clone(),
            joining: Vec::new(),
            leader: None,
            last_leader: None,
            is_failed: false,
            modified: 3,
        };
        Topology::new("c".to_owned(), revision, all, [own], [])
    }

    fn told(pictures: &[(u8, Topology)], trusted: Option<u8>) -> Answers {
        let witness = |(node, topology): &(u8, Topology)| Witness {
            node: NodeId([*node; 20]),
            incarnation: 1,
            etcd: vec!["http://e".to_owned()],
            goes_by_etcd: false,
            leads: None,
            epoch: 0,
            offset: 0,
            topology: topology.clone(),
        };
        Answers {
            witnesses: pictures.iter().map(witness).collect(),
            failures: BTreeMap::new(),
            trusted: trusted.map(|node| NodeId([node; 20])),
        }
    }

    #[test]
    fn another_cluster_of_the_same_name_is_not_the_one_that_nodes_know() {
        let ours = [(1, picture(0xaa, 20, &[1, 2])), (2, picture(0xaa, 20, &[1, 2]))];
        assert!(has_all(&picture(0xaa, 21, &[1, 2]), &told(&ours, None)));
        assert!(!has_all(&picture(0xaa, 19, &[1, 2]), &told(&ours, None)));
        assert!(!has_all(&picture(0xbb, 9000, &[8, 9]), &told(&ours, None)));
        assert!(!has_all(&Topology::default(), &told(&ours, None)));
    }

    #[test]
    fn nodes_of_another_cluster_are_not_followed() {
        let nodes = |answers: &Answers| -> BTreeSet<u8> {
            answers.known().iter().map(|node| node.id.0[0]).collect()
        };
        let foreign = picture(0xbb, 9000, &[8, 9]);
        let all = [
            (1, picture(0xaa, 20, &[1, 2])),
            (2, foreign.clone()),
            (8, foreign),
            (3, Topology::default()),
        ];
        assert_eq!(nodes(&told(&all, None)), BTreeSet::from([1, 2]), "the first one's");
        assert_eq!(nodes(&told(&all, Some(2))), BTreeSet::from([8, 9]));
        // The one of this cluster that knows the other one stays, and does not count.
        let mut answers = told(&all, Some(1));
        answers.forget_others();
        let left: Vec<_> = answers.witnesses.iter().map(|own| own.node.0[0]).collect();
        let counted: Vec<_> = answers.counted().map(|own| own.node.0[0]).collect();
        assert_eq!((&left[..], &counted[..]), (&[1, 2, 3][..], &[1, 3][..]));
        assert!(has_all(&picture(0xaa, 21, &[1, 2]), &answers));
    }

    #[test]
    fn a_node_asks_elsewhere_unless_all_its_addresses_are_given() {
        let is_elsewhere = |given: &str, asked: &[&str]| {
            let words = ["rebuild", "h:1", "--etcd", given].map(str::to_owned);
            let options = Options::parse(&words).unwrap();
            let mut answers = told(&[(1, Topology::default())], None);
            answers.witnesses[0].etcd = asked.iter().map(|url| (*url).to_owned()).collect();
            !answers.elsewhere(&options).is_empty()
        };
        assert!(!is_elsewhere("http://e:2379", &["http://e:2379"]));
        assert!(!is_elsewhere("e", &["http://e:2379/"]));
        assert!(!is_elsewhere("http://e:2379, http://f", &["f"]));
        assert!(is_elsewhere("http://e", &["http://e", "http://f"]));
        assert!(is_elsewhere("http://e", &["https://e"]));
        assert!(is_elsewhere("http://e", &[]));
    }
}
