//! How etcd gets a cluster again that it has lost for good: by what the nodes know of it.
//!
//! The crate `cluster` decides what is written, and why it is safe. This program asks the nodes,
//! shows what they say, and writes. Nodes believe nothing before the last transaction, so it may be
//! interrupted at any time and given again.
//!
//! What is written is what was true when the nodes were asked. Another operator may have written it
//! meanwhile, and the cluster may serve again and have changed. So etcd is read before the nodes
//! are asked for the last time, and the first transaction requires that it is as it was then. All
//! later ones require the mark of the first.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::{self, sleep};
use std::time::Duration;

use base::clock::{monotonic_ms, now_ms};
use base::rng;
use cluster::ids::NodeId;
use cluster::keys::{self, MemberValue, Subject};
use cluster::rebuild::{Rebuild, Witness, plan};
use cluster::store::{Compare, Operation};
use cluster::topology::{Address, Node, Shard};

use crate::claim::{self, Claim};
use crate::link::{self, place_of};
use crate::members::wait_until_served;
use crate::options::{Access, Options, Recovery, Word};
use crate::print::{agreed, say};
use crate::record::{Reading, Store};
use crate::status::short;
use crate::table::table;
use crate::trouble::Trouble;

/// So many keys are written in one transaction, with two more: etcd takes 128 by default.
const MOST_AT_ONCE: usize = 100;
/// How long nodes may take to notice that etcd has lost the cluster, in milliseconds.
const NOTICE_MS: u64 = 15_000;
/// How often they are asked meanwhile.
const PAUSE: Duration = Duration::from_millis(500);

/// Writes a cluster into an etcd that has lost it. If that was done before, waits until it serves.
pub(crate) fn run(store: &Store, options: &Options, wanted: &Recovery) -> Result<(), Trouble> {
    let (answers, reading) = ask_until_noticed(store, options, &wanted.nodes)?;
    if is_there(store, options, &reading, &answers)? {
        return wait(store, options, &answers);
    }
    let rebuild = decide(options, wanted, &answers)?;
    show(&rebuild, &answers, options);
    check_others(&reading, &rebuild)?;
    if !options.dry_run {
        check_elsewhere(&answers, options)?;
    }
    if !agreed(options)? {
        return Ok(());
    }
    claim::alone(store, "rebuild", |claim| {
        // The user may have thought about it for long, and nodes may take long to answer. What is
        // written is to follow on what is there now.
        let reading = store.read()?;
        let now = ask_all(&wanted.nodes, &options.access)?;
        // Nodes that have heard of another operator's rebuild may know more than was read.
        for known in [&answers, &now] {
            if is_there(store, options, &reading, known)? {
                return Ok(());
            }
        }
        let last = decide(options, wanted, &now)?;
        check_others(&reading, &last)?;
        check_elsewhere(&now, options)?;
        if last.topology != rebuild.topology {
            let text = "the nodes know something else now, and nothing was done: look again";
            return Err(Trouble::Failed(text.to_owned()));
        }
        write(store, &last, &reading, claim)?;
        say(&format!("etcd has cluster {} again", options.name));
        Ok(())
    })?;
    wait(store, options, &answers)
}

/// Whether etcd has the cluster because it was rebuilt.
///
/// # Errors
/// It has it, and was not rebuilt: somebody is mistaken.
fn is_there(
    store: &Store,
    options: &Options,
    reading: &Reading,
    answers: &Answers,
) -> Result<bool, Trouble> {
    if !has_cluster(store, reading, answers) {
        return Ok(false);
    }
    if store.rebuilt(reading).is_none() {
        return Err(Trouble::Failed(format!(
            "etcd has the cluster {}, and not less than its nodes know: there is nothing to rebuild",
            options.name
        )));
    }
    say(&format!("etcd has cluster {} already", options.name));
    Ok(true)
}

/// What is to be written.
fn decide(options: &Options, wanted: &Recovery, answers: &Answers) -> Result<Rebuild, Trouble> {
    let trusted = match &wanted.trust {
        Some(word) => Some(answers.named(word)?.node),
        None => None,
    };
    let rebuild = plan(&options.name, &answers.witnesses, trusted, now_ms() / 1000);
    let rebuild = rebuild.map_err(|reasons| Trouble::Failed(reasons.join("\n")))?;
    check_silent(&rebuild, answers, &wanted.without)?;
    Ok(rebuild)
}

/// Waits until all slots are served, and says who has not come yet.
fn wait(store: &Store, options: &Options, answers: &Answers) -> Result<(), Trouble> {
    wait_until_served(store, options.timeout)?;
    let is_awaited = |id: NodeId| answers.of(id).is_some();
    let is_absent = |node: &&Node| node.shard.is_some() && !node.is_alive();
    let reading = store.wait(options.timeout, &mut |reading| {
        let absent = reading.topology.nodes.values().filter(is_absent);
        let count = absent.filter(|node| is_awaited(node.id)).count();
        (count > 0).then(|| format!("{count} nodes have not come"))
    })?;
    for node in reading.topology.nodes.values().filter(is_absent) {
        say(&format!("! node {} at {} has not come yet", short(node.id), place_of(node)));
    }
    say(&format!("cluster {} serves all slots", options.name));
    Ok(())
}

/// What nodes have said, and why others have not.
struct Answers {
    witnesses: Vec<Witness>,
    failures: BTreeMap<String, String>,
}

impl Answers {
    fn of(&self, node: NodeId) -> Option<&Witness> {
        self.witnesses.iter().find(|own| own.node == node)
    }

    /// The witness that a user means.
    fn named(&self, word: &str) -> Result<&Witness, Trouble> {
        let is_meant = |own: &&Witness| {
            let known = Reading::of(own.topology.clone());
            known.node_in(word, true).is_ok_and(|node| node.id == own.node)
        };
        let found = self.witnesses.iter().find(is_meant);
        found.ok_or_else(|| Trouble::Failed(format!("no node '{word}' has answered")))
    }

    /// Nodes that ask none of the addresses of etcd that are given here.
    fn elsewhere(&self, options: &Options) -> Vec<&Witness> {
        let bare = |url: &String| url.trim_end_matches('/').to_owned();
        let given: BTreeSet<_> = options.etcd.endpoints.iter().map(bare).collect();
        let asks_it = |own: &&Witness| !own.etcd.iter().any(|url| given.contains(&bare(url)));
        self.witnesses.iter().filter(asks_it).collect()
    }
}

/// Whether etcd has the cluster, and nothing that its nodes know is later: neither as a whole nor
/// of a shard. Nodes judge in the same way whether to believe it.
fn has_cluster(store: &Store, reading: &Reading, answers: &Answers) -> bool {
    let is_complete = store.rebuilt(reading).is_none_or(|rebuilt| rebuilt.is_complete);
    let there = &reading.topology.shards;
    let is_behind =
        |known: &Shard| there.get(&known.id).is_some_and(|shard| shard.modified < known.modified);
    let mut known = answers.witnesses.iter().map(|own| &own.topology);
    !there.is_empty()
        && is_complete
        && known.all(|known| {
            reading.revision() >= known.revision && !known.shards.values().any(is_behind)
        })
}

/// Refuses while a node asks another etcd: if that comes back with the cluster, it has another
/// primary than the one that is written here.
fn check_elsewhere(answers: &Answers, options: &Options) -> Result<(), Trouble> {
    let elsewhere = answers.elsewhere(options);
    let named: Vec<_> = elsewhere.iter().map(|own| short(own.node)).collect();
    if named.is_empty() {
        return Ok(());
    }
    Err(Trouble::Failed(format!(
        "nodes that ask another etcd might go on by that: {}. Give CONFIG SET cluster-etcd {} at all \
         of them, and this command again",
        named.join(", "),
        options.etcd.endpoints.join(",")
    )))
}

/// Refuses to write over a cluster of this name that has other shards or other living nodes.
fn check_others(reading: &Reading, rebuild: &Rebuild) -> Result<(), Trouble> {
    let own = &rebuild.topology;
    let is_other = |node: &&Node| {
        let of_other = node.shard.is_some_and(|shard| !own.shards.contains_key(&shard));
        of_other || node.is_alive() && node.shard.is_some() && !own.nodes.contains_key(&node.id)
    };
    let others: Vec<_> = reading.topology.nodes.values().filter(is_other).map(place_of).collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(Trouble::Failed(format!(
        "etcd has another cluster {} there, or what was removed from this one, with nodes at {}: \
         choose another etcd, or delete the keys of that one first",
        own.name,
        others.join(", ")
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
fn ask_all(words: &[Word], access: &Access) -> Result<Answers, Trouble> {
    let mut answers = Answers { witnesses: Vec::new(), failures: BTreeMap::new() };
    let mut next = words.iter().map(|word| node_at(word)).collect::<Result<Vec<_>, _>>()?;
    let mut asked = BTreeSet::new();
    while !next.is_empty() {
        next.retain(|node| asked.insert(place_of(node)));
        let told: Vec<_> = thread::scope(|scope| {
            let ask = |node| scope.spawn(move || link::witness(node, access));
            let threads: Vec<_> = next.iter().map(ask).collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        let mut known = Vec::new();
        for (node, told) in next.iter().zip(told) {
            match told.unwrap_or_else(|_| Err("it could not be asked".to_owned())) {
                Ok(own) => {
                    known.extend(own.topology.nodes.values().cloned());
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
        next = known;
    }
    if answers.witnesses.is_empty() {
        let reasons: Vec<_> = answers.failures.into_values().collect();
        return Err(Trouble::Failed(format!("no node answers: {}", reasons.join("; "))));
    }
    Ok(answers)
}

/// Asks all nodes and etcd, again until no node goes by what etcd has had. If one still does, that
/// is a reason not to do it.
fn ask_until_noticed(
    store: &Store,
    options: &Options,
    words: &[Word],
) -> Result<(Answers, Reading), Trouble> {
    let begun = monotonic_ms();
    let longest = NOTICE_MS.min(options.timeout.as_millis() as u64);
    let mut has_told = false;
    loop {
        let answers = ask_all(words, &options.access)?;
        let reading = store.read()?;
        let count = answers.witnesses.iter().filter(|own| own.goes_by_etcd).count();
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
fn check_silent(rebuild: &Rebuild, answers: &Answers, without: &[Word]) -> Result<(), Trouble> {
    let known = Reading::of(rebuild.topology.clone());
    let mut excused = BTreeSet::new();
    for word in without {
        let node = known.node_in(word, false)?;
        if answers.of(node.id).is_some() {
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

fn show(rebuild: &Rebuild, answers: &Answers, options: &Options) {
    let topology = &rebuild.topology;
    say(&format!(
        "cluster {} as node {} knows it, at revision {}",
        options.name,
        short(rebuild.source),
        topology.revision
    ));
    let mut rows = Vec::new();
    for shard in topology.shards.values() {
        let (mut id, mut slots) = (short(shard.id), shard.slots.to_string());
        for node in shard.nodes().filter_map(|id| topology.nodes.get(&id)) {
            let told = answers.of(node.id);
            let number = |of: &dyn Fn(&Witness) -> String| told.map(of).unwrap_or_default();
            rows.push(vec![
                std::mem::take(&mut id),
                std::mem::take(&mut slots),
                short(node.id),
                place_of(node),
                role(shard, node.id, told).to_owned(),
                number(&|own| own.leads.unwrap_or(own.epoch).to_string()),
                number(&|own| own.offset.to_string()),
                number(&|own| own.topology.revision.to_string()),
            ]);
        }
    }
    let headings = ["SHARD", "SLOTS", "NODE", "ADDRESS", "ROLE", "EPOCH", "OFFSET", "KNOWS"];
    say(table(&headings, &rows).trim_end());
    for shard in topology.shards.values() {
        show_shard(rebuild, answers, shard);
    }
    for own in topology.migrations.values() {
        say(&format!("move {} of slots {} begins anew", own.id, own.slots));
    }
    for own in answers.elsewhere(options) {
        say(&format!(
            "! node {} asks {}: CONFIG SET cluster-etcd {}",
            short(own.node),
            own.etcd.join(","),
            options.etcd.endpoints.join(",")
        ));
    }
    say(&format!(
        "{} gets it; revisions and epochs go on at {}",
        options.etcd.endpoints.join(","),
        rebuild.ahead
    ));
}

fn role(shard: &Shard, node: NodeId, told: Option<&Witness>) -> &'static str {
    match told {
        None => "no answer",
        Some(own) if own.leads.is_some() => "primary",
        Some(_) if shard.members.contains(&node) => "replica",
        Some(_) => "joining",
    }
}

/// Says how a shard comes to a primary.
fn show_shard(rebuild: &Rebuild, answers: &Answers, shard: &Shard) {
    let silent = rebuild.silent(shard.id, &answers.witnesses).len();
    let (own, members) = (short(shard.id), shard.members.len());
    let needed = members - shard.quorum().min(members) + 1;
    let carried = rebuild.epochs.get(&shard.id).map(|value| value.carried);
    let leads = |id: &NodeId| answers.of(*id).is_some_and(|own| own.leads == carried);
    if silent > 0 {
        say(&format!(
            "! shard {own}: {silent} of {members} members do not answer; it elects a primary when \
             {needed} are there that were stopped in order or never ended, or all"
        ));
    } else if !shard.members.iter().any(leads) {
        say(&format!("shard {own} elects a primary: its last one has ended"));
    }
}

/// What of the cluster must not stay in etcd if it is not written.
fn is_left_over(subject: &Subject, value: &[u8]) -> bool {
    match subject {
        Subject::Member(_) => {
            keys::decode::<MemberValue>(value).is_none_or(|own| own.shard.is_some())
        }
        Subject::Alive(_) | Subject::Change | Subject::Rebuilt => false,
        _ => true,
    }
}

/// What makes of the keys that were read those that there are to be.
fn missing(store: &Store, reading: &Reading, values: &BTreeMap<String, Vec<u8>>) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (key, value) in values.iter().filter(|(key, own)| reading.value(key) != Some(&own[..])) {
        operations.push(Operation::Put { key: key.clone(), value: value.clone(), lease: 0 });
    }
    for key in reading.keys().filter(|key| !values.contains_key(*key)) {
        let subject = store.keys.subject(key);
        let value = reading.value(key).unwrap_or_default();
        if subject.is_some_and(|subject| is_left_over(&subject, value)) {
            operations.push(Operation::Delete { key: key.clone() });
        }
    }
    operations
}

/// Writes all keys, over what was read before the nodes were asked.
fn write(
    store: &Store,
    rebuild: &Rebuild,
    reading: &Reading,
    claim: &Claim,
) -> Result<(), Trouble> {
    let values = rebuild.values(&store.keys);
    let id = format!("{:016x}", rng::entropy_u64());
    let key = store.keys.of(&Subject::Rebuilt);
    let begun = rebuild.mark(&id, false);
    // Nodes believe nothing under this mark, and no other operator writes unseen. Of the keys that
    // change, as many as possible have to be as they were; those of shards are the last ones.
    let changed = missing(store, reading, &values);
    let changed = changed.iter().rev().take(MOST_AT_ONCE).map(|own| own.key().to_owned());
    let compares = changed.chain([key.clone()]).map(|key| reading.unchanged(key));
    let compares = compares.chain([claim.holds()]).collect();
    claim.check()?;
    let mark = Operation::Put { key: key.clone(), value: begun.clone(), lease: 0 };
    store.write(reading, compares, vec![mark])?;
    write_rest(store, rebuild, (&key, &id), claim).map_err(|trouble| {
        Trouble::Failed(format!(
            "not all of it is in etcd yet, and no node goes by it: give the command again. {trouble}"
        ))
    })
}

/// Writes all keys under the mark that was written. Of too many for one transaction it writes some
/// first.
fn write_rest(
    store: &Store,
    rebuild: &Rebuild,
    (key, id): (&String, &str),
    claim: &Claim,
) -> Result<(), Trouble> {
    let values = rebuild.values(&store.keys);
    let begun = rebuild.mark(id, false);
    let is_own = |reading: &Reading| {
        let text = "another operator has gone on";
        match reading.value(key) == Some(&begun[..]) {
            true => claim.check(),
            false => Err(Trouble::Failed(text.to_owned())),
        }
    };
    // A primary that cannot be asked may have a lease here, if etcd was set back.
    let reading = store.read()?;
    is_own(&reading)?;
    store.end_leases(&reading)?;
    loop {
        let reading = store.read()?;
        is_own(&reading)?;
        let mut operations = missing(store, &reading, &values);
        let is_last = operations.len() <= MOST_AT_ONCE;
        operations.truncate(MOST_AT_ONCE);
        let compares = operations.iter().map(|own| reading.unchanged(own.key().to_owned()));
        let own = Compare::Value { key: key.clone(), value: begun.clone() };
        let compares = compares.chain([own, claim.holds()]).collect();
        let value = rebuild.mark(id, is_last);
        operations.push(Operation::Put { key: key.clone(), value, lease: 0 });
        store.write(&reading, compares, operations)?;
        if is_last {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
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
}
