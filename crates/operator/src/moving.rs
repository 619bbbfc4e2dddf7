//! How slots go from their shards to another one.
//!
//! A record in etcd asks for it; the primaries of the shards do it, and delete the record when the
//! slots are there. This program only waits for that.

use std::collections::{BTreeMap, BTreeSet};

use base::rng;
use cluster::ids::ShardId;
use cluster::keys::{self, MigrationValue, Subject};
use cluster::plan::Move;
use cluster::slots::SlotRanges;
use cluster::store::{Compare, Operation};
use cluster::topology::MigrationState;

use crate::options::Options;
use crate::print::{agreed, say};
use crate::record::{Reading, Store};
use crate::status::short;
use crate::trouble::Trouble;

/// Carries out `dunlin cluster move`.
pub(crate) fn run(
    store: &Store,
    options: &Options,
    slots: &SlotRanges,
    to: &str,
) -> Result<(), Trouble> {
    let reading = store.read()?;
    let topology = &reading.topology;
    let to = reading.shard(to)?.id;
    let mut parts = BTreeMap::<ShardId, SlotRanges>::new();
    for slot in slots.iter() {
        match topology.owner_of_slot(slot) {
            Some(owner) if owner.id == to => {}
            Some(owner) => parts.entry(owner.id).or_default().insert(slot..=slot),
            None => return Err(Trouble::Failed(format!("no shard has slot {slot}"))),
        }
    }
    let under_way = topology.migrations.values().find(|own| !own.slots.is_apart_from(slots));
    if let Some(other) = under_way {
        let text = format!("slots {} are on their way already: {}", other.slots, other.id);
        return Err(Trouble::Failed(text));
    }
    if parts.is_empty() {
        say(&format!("shard {} has these slots already", short(to)));
        return Ok(());
    }
    for (from, slots) in &parts {
        say(&format!("slots {slots} go from shard {} to shard {}", short(*from), short(to)));
    }
    if !agreed(options)? {
        return Ok(());
    }
    let moves: Vec<_> = parts.into_iter().map(|(from, slots)| Move { slots, from, to }).collect();
    carry_out(store, options, &reading, &moves)?;
    say(&format!("shard {} has slots {slots}", short(to)));
    Ok(())
}

/// Asks for moves, all at once, and waits until they are over.
pub(crate) fn carry_out(
    store: &Store,
    options: &Options,
    reading: &Reading,
    moves: &[Move],
) -> Result<(), Trouble> {
    let (mut compares, mut operations) = (Vec::new(), Vec::new());
    let sources: BTreeSet<_> = moves.iter().map(|own| own.from).collect();
    compares.extend(sources.into_iter().map(|id| store.unchanged(reading, &Subject::Shard(id))));
    let mut names = Vec::new();
    for Move { slots, from, to } in moves {
        let (name, from, to, slots) = (new_name(), *from, *to, slots.clone());
        let key = store.keys.of(&Subject::Migration(name.clone()));
        let value = MigrationValue { slots, from, to, state: MigrationState::Wanted };
        compares.push(Compare::is_absent(key.clone()));
        operations.push(Operation::Put { key, value: keys::encode(&value), lease: 0 });
        names.push(name);
    }
    store.write(reading, compares, operations)?;
    let reading = store.wait(options.timeout, &mut |reading| {
        let is_under_way = |name: &&String| reading.topology.migrations.contains_key(*name);
        let left = names.iter().filter(is_under_way).count();
        (left > 0).then(|| format!("{left} parts are under way"))
    })?;
    let has_moved = |own: &Move| {
        let shard = reading.topology.shards.get(&own.to);
        shard.is_some_and(|shard| shard.slots.contains_all(&own.slots))
    };
    if !moves.iter().all(has_moved) {
        let text = "not all slots have moved; the logs of their primaries say why".to_owned();
        return Err(Trouble::Failed(text));
    }
    Ok(())
}

fn new_name() -> String {
    let mut name = [0; 8];
    rng::with(|rng| rng.fill(&mut name));
    name.iter().map(|byte| format!("{byte:02x}")).collect()
}
