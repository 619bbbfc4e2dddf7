//! How etcd gets a cluster again that it has lost for good: by what the nodes know of it.
//!
//! The crate `cluster` decides what is written, and why it is safe. This program asks the nodes,
//! for which there is the file `answers`, shows what they say, and writes. Nodes believe nothing
//! before the last transaction, so it may be interrupted at any time and given again.
//!
//! What is written is what was true when the nodes were asked. Another operator may have written it
//! meanwhile, and the cluster may serve again and have changed. So etcd is read before the nodes
//! are asked for the last time, and the first transaction requires that it is as it was then. All
//! later ones require the mark of the first.

use std::collections::BTreeMap;

use base::clock::now_ms;
use base::rng;
use cluster::ids::NodeId;
use cluster::keys::{self, MemberValue, Subject};
use cluster::rebuild::{Rebuild, Witness, plan};
use cluster::store::{Compare, Operation};
use cluster::topology::{Node, Shard};

use crate::answers::{
    Answers, ask_all, ask_until_noticed, check_elsewhere, check_members, check_others,
    check_silent, given, has_cluster, places_of_etcd,
};
use crate::claim::{self, Claim};
use crate::link::place_of;
use crate::members::wait_until_served;
use crate::options::{Options, Recovery};
use crate::print::{agreed, say};
use crate::record::{Reading, Store};
use crate::status::short;
use crate::table::table;
use crate::trouble::Trouble;

/// So many keys are written in one transaction, with two more: etcd takes 128 by default.
const MOST_AT_ONCE: usize = 100;

/// Writes a cluster into an etcd that has lost it. If that was done before, waits until it serves.
pub(crate) fn run(store: &Store, options: &Options, wanted: &Recovery) -> Result<(), Trouble> {
    let (answers, reading) = ask_until_noticed(store, options, wanted)?;
    if is_there(store, options, &reading, &[&answers])? {
        return if options.dry_run { Ok(()) } else { wait(store, options, &answers) };
    }
    let rebuild = decide(options, wanted, &answers)?;
    show(&rebuild, &answers, options);
    check_others(store, &reading, &rebuild)?;
    if !options.dry_run {
        check_elsewhere(&answers, options)?;
    }
    if !agreed(options)? {
        return Ok(());
    }
    claim::alone(store, "rebuild", |claim| {
        check_members(options, claim)?;
        // The user may have thought about it for long, and nodes may take long to answer. What is
        // written is to follow on what is there now.
        let reading = store.read()?;
        let now = ask_all(wanted, &options.access)?;
        // Nodes may know of what came after the reading. An etcd that was set back still lacks it.
        if has_cluster(store, &reading, &answers)
            && is_there(store, options, &store.read()?, &[&answers, &now])?
        {
            return Ok(());
        }
        let last = decide(options, wanted, &now)?;
        check_others(store, &reading, &last)?;
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

/// Whether etcd has the cluster, with all of these answers, because it was rebuilt.
///
/// # Errors
/// It has it, and was not rebuilt: somebody is mistaken.
fn is_there(
    store: &Store,
    options: &Options,
    reading: &Reading,
    answers: &[&Answers],
) -> Result<bool, Trouble> {
    if !answers.iter().all(|own| has_cluster(store, reading, own)) {
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
    let rebuild = plan(&options.name, &answers.witnesses, answers.trusted, now_ms() / 1000);
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
                role(rebuild, shard, node.id, told).to_owned(),
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
            "! node {} asks {}: stop the etcd there and then CONFIG SET cluster-etcd {}, or restart it",
            short(own.node),
            places_of_etcd(own),
            given(options).join(",")
        ));
    }
    say(&format!(
        "{} gets it; revisions and epochs go on at {}",
        given(options).join(","),
        rebuild.ahead
    ));
}

fn role(rebuild: &Rebuild, shard: &Shard, node: NodeId, told: Option<&Witness>) -> &'static str {
    match told {
        None => "no answer",
        Some(_) if !rebuild.told.contains(&node) => "of another cluster",
        Some(own) if own.leads.is_some() => "primary",
        Some(_) if shard.members.contains(&node) => "replica",
        Some(_) => "joining",
    }
}

/// Says how a shard comes to a primary.
fn show_shard(rebuild: &Rebuild, answers: &Answers, shard: &Shard) {
    let silent = rebuild.silent(shard.id).len();
    let (own, members) = (short(shard.id), shard.members.len());
    let needed = members - shard.quorum().min(members) + 1;
    let carried = rebuild.epochs.get(&shard.id).map(|value| value.carried);
    let leads = |id: &NodeId| answers.of(*id).is_some_and(|own| own.leads == carried);
    if silent > 0 {
        say(&format!(
            "! shard {own}: {silent} of {members} members tell nothing of it; it elects a primary when \
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
    write_rest(store, rebuild, (&key, &id), claim)
}

/// What has failed before the last transaction, while the mark was this operator's.
fn partly(trouble: Trouble) -> Trouble {
    Trouble::Failed(format!(
        "not all of it is in etcd yet, and no node goes by it: give the command again. {trouble}"
    ))
}

/// What has failed when all of it may be there.
fn perhaps(trouble: Trouble) -> Trouble {
    Trouble::Failed(format!(
        "etcd may have all of it, or a part by which no node goes: see dunlin cluster status, and \
         give the command again if it is a part. {trouble}"
    ))
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
            true => claim.check().map_err(partly),
            false => Err(perhaps(Trouble::Failed(text.to_owned()))),
        }
    };
    // A primary that cannot be asked may have a lease here, if etcd was set back.
    let reading = store.read().map_err(partly)?;
    is_own(&reading)?;
    store.end_leases(&reading).map_err(partly)?;
    loop {
        let reading = store.read().map_err(partly)?;
        is_own(&reading)?;
        let mut operations = missing(store, &reading, &values);
        let is_last = operations.len() <= MOST_AT_ONCE;
        operations.truncate(MOST_AT_ONCE);
        let compares = operations.iter().map(|own| reading.unchanged(own.key().to_owned()));
        let own = Compare::Value { key: key.clone(), value: begun.clone() };
        let compares = compares.chain([own, claim.holds()]).collect();
        let value = rebuild.mark(id, is_last);
        operations.push(Operation::Put { key: key.clone(), value, lease: 0 });
        let written = store.write(&reading, compares, operations);
        if is_last {
            return written.map_err(perhaps);
        }
        written.map_err(partly)?;
    }
}
