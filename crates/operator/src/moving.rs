//! How slots go from their shards to another one.
//!
//! A record in etcd asks for it; the primaries of the shards do it, and delete the record when the
//! slots are there. This program only waits for that, so it may be ended and called again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use base::clock::monotonic_ms;
use base::rng;
use cluster::ids::ShardId;
use cluster::keys::{self, MigrationValue, Subject};
use cluster::plan::Move;
use cluster::slots::SlotRanges;
use cluster::store::{Compare, Operation};
use cluster::topology::{Migration, MigrationState, Topology};

use crate::link::{self, MoveReport};
use crate::options::{Access, Options};
use crate::print::{agreed, say};
use crate::record::{Reading, Store};
use crate::status::{hindrance, short};
use crate::trouble::Trouble;

/// How often sources are asked how far they are.
const LOOK_MS: u64 = 1000;

/// Carries out `dunlin cluster move`.
pub(crate) fn run(
    store: &Store,
    options: &Options,
    slots: &SlotRanges,
    to: &str,
) -> Result<(), Trouble> {
    let mut reading = store.read()?;
    let is_ending =
        |own: &Migration| own.state == MigrationState::Aborted && !own.slots.is_apart_from(slots);
    if reading.topology.migrations.values().any(is_ending) && !options.dry_run {
        say("a move of these slots is being given up: that comes first");
        let text = || "a move is being given up".to_owned();
        reading = store.wait(options.timeout, &mut |reading| {
            reading.topology.migrations.values().any(is_ending).then(text)
        })?;
    }
    let to = reading.shard(to)?.id;
    let topology = &reading.topology;
    let mut rest = slots.clone();
    let (mut under_way, mut sources) = (Vec::new(), BTreeSet::new());
    for own in topology.migrations.values().filter(|own| !own.slots.is_apart_from(slots)) {
        if own.to != to {
            return Err(Trouble::Failed(format!(
                "slots {} are on their way to shard {}: wait for that, or end it by dunlin cluster \
                 abort {}",
                own.slots,
                short(own.to),
                own.id
            )));
        }
        say(&format!("slots {} are on their way already: move {} goes on", own.slots, own.id));
        rest = rest.without(&own.slots);
        under_way.push(own.id.clone());
        sources.insert(own.from);
    }
    let mut parts = BTreeMap::<ShardId, SlotRanges>::new();
    for slot in rest.iter() {
        match topology.owner_of_slot(slot) {
            Some(owner) if owner.id == to => {}
            Some(owner) => parts.entry(owner.id).or_default().insert(slot..=slot),
            None => return Err(Trouble::Failed(format!("no shard has slot {slot}"))),
        }
    }
    if parts.is_empty() && under_way.is_empty() {
        say(&format!("shard {} has these slots already", short(to)));
        return Ok(());
    }
    for (from, slots) in &parts {
        say(&format!("slots {slots} go from shard {} to shard {}", short(*from), short(to)));
    }
    if !parts.is_empty() && !agreed(options)? || options.dry_run {
        return Ok(());
    }
    sources.extend(parts.keys());
    let moves: Vec<_> = parts.into_iter().map(|(from, slots)| Move { slots, from, to }).collect();
    under_way.extend(ask_for(store, &reading, &moves)?);
    let reading = wait_for(store, options, &under_way)?;
    let owned = reading.topology.shards.get(&to).map(|own| &own.slots);
    if !owned.is_some_and(|owned| owned.contains_all(slots)) {
        return Err(not_all_moved(&reading, sources.into_iter()));
    }
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
    let names = ask_for(store, reading, moves)?;
    let reading = wait_for(store, options, &names)?;
    let has_moved = |own: &Move| {
        let shard = reading.topology.shards.get(&own.to);
        shard.is_some_and(|shard| shard.slots.contains_all(&own.slots))
    };
    if moves.iter().all(has_moved) {
        return Ok(());
    }
    Err(not_all_moved(&reading, moves.iter().map(|own| own.from)))
}

/// The sources have given moves up, or somebody else has.
fn not_all_moved(reading: &Reading, sources: impl Iterator<Item = ShardId>) -> Trouble {
    let places: BTreeSet<String> =
        sources.filter_map(|from| reading.topology.primary_of(from)).map(link::place_of).collect();
    let places: Vec<_> = places.into_iter().collect();
    Trouble::Failed(format!("not all slots have moved; the log says why at {}", places.join(", ")))
}

/// Asks for moves, all at once. Returns their names.
fn ask_for(store: &Store, reading: &Reading, moves: &[Move]) -> Result<Vec<String>, Trouble> {
    if moves.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(Move { slots, from, to }) = moves.iter().find(|own| !is_possible(reading, own)) {
        return Err(Trouble::Failed(format!(
            "the cluster has changed meanwhile: slots {slots} cannot go from shard {} to shard {} \
             any more. Give the command again",
            short(*from),
            short(*to)
        )));
    }
    let (mut compares, mut operations) = (Vec::new(), Vec::new());
    let shards: BTreeSet<_> = moves.iter().flat_map(|own| [own.from, own.to]).collect();
    compares.extend(shards.into_iter().map(|id| store.unchanged(reading, &Subject::Shard(id))));
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
    Ok(names)
}

/// Whether a move that was planned before can be asked for now.
fn is_possible(reading: &Reading, own: &Move) -> bool {
    let Move { slots, from, to } = own;
    let Topology { shards, migrations, .. } = &reading.topology;
    shards.get(from).is_some_and(|from| from.slots.contains_all(slots))
        && shards.contains_key(to)
        && migrations.values().all(|other| other.slots.is_apart_from(slots))
}

/// Waits until moves are over, and tells how far they are.
fn wait_for(store: &Store, options: &Options, names: &[String]) -> Result<Reading, Trouble> {
    let told = RefCell::new((0, String::new()));
    let waited = store.wait(options.timeout, &mut |reading| {
        let own = |name: &String| reading.topology.migrations.get(name);
        let left: Vec<_> = names.iter().filter_map(own).collect();
        if left.is_empty() {
            return None;
        }
        let (mut asked, mut text) = told.borrow().clone();
        let now = monotonic_ms();
        if asked == 0 || now >= asked + LOOK_MS {
            asked = now;
            let parts: Vec<_> =
                left.iter().map(|own| progress(reading, &options.access, own)).collect();
            text = parts.join("; ");
            told.replace((asked, text.clone()));
        }
        Some(text)
    });
    waited.map_err(|trouble| match trouble {
        Trouble::NotYet(text) => Trouble::NotYet(format!(
            "{text}. It goes on by itself: give the command again to wait for it, or give it up by \
             dunlin cluster abort MOVE"
        )),
        other => other,
    })
}

/// What is known of how far a move is.
fn progress(reading: &Reading, access: &Access, own: &Migration) -> String {
    let start = format!("move {} of slots {}", own.id, own.slots);
    match (hindrance(&reading.topology, own), report_of(reading, access, own)) {
        (Some(hindrance), _) => format!("{start} waits: {hindrance}"),
        (None, Some(report)) => {
            // In steps, so that it is not told again and again.
            let tenths = (report.keys_sent * 10).checked_div(report.keys).unwrap_or(10).min(10);
            format!("{start} is {}, {}% of its keys are sent", report.state, tenths * 10)
        }
        (None, None) => format!("{start} is under way"),
    }
}

fn report_of(reading: &Reading, access: &Access, own: &Migration) -> Option<MoveReport> {
    let source = reading.topology.primary_of(own.from)?;
    link::ask(source, access).ok()?.moves.into_iter().find(|report| report.id == own.id)
}

/// Waits until no move is under way.
pub(crate) fn wait_for_all(
    store: &Store,
    options: &Options,
    reading: Reading,
) -> Result<Reading, Trouble> {
    let names: Vec<String> = reading.topology.migrations.keys().cloned().collect();
    if names.is_empty() {
        return Ok(reading);
    }
    if options.dry_run {
        return Err(Trouble::Failed(format!("slots are on their way: move {}", names.join(", "))));
    }
    say("slots are on their way already: that comes first");
    wait_for(store, options, &names)
}

/// Carries out `dunlin cluster abort`: gives moves up, whose slots stay where they are.
pub(crate) fn abort(store: &Store, options: &Options, words: &[String]) -> Result<(), Trouble> {
    let reading = store.read()?;
    let migrations = &reading.topology.migrations;
    let mut names = BTreeSet::new();
    for word in words {
        names.insert(reading.migration(word)?.id.clone());
    }
    let chosen: Vec<_> = names.iter().filter_map(|name| migrations.get(name)).collect();
    for own in &chosen {
        say(&format!(
            "move {} is given up: slots {} stay with shard {}",
            own.id,
            own.slots,
            short(own.from)
        ));
    }
    if !agreed(options)? {
        return Ok(());
    }
    let (mut compares, mut operations) = (Vec::new(), Vec::new());
    for own in &chosen {
        let subject = Subject::Migration(own.id.clone());
        let key = store.keys.of(&subject);
        compares.push(store.unchanged(&reading, &subject));
        // The source's primary deletes the record when the slots are not held any more.
        operations.push(match reading.topology.shards.contains_key(&own.from) {
            true => {
                let (slots, from, to) = (own.slots.clone(), own.from, own.to);
                let value = MigrationValue { slots, from, to, state: MigrationState::Aborted };
                Operation::Put { key, value: keys::encode(&value), lease: 0 }
            }
            false => Operation::Delete { key },
        });
    }
    store.write(&reading, compares, operations)?;
    store.wait(options.timeout, &mut |reading| {
        let own = |name: &String| reading.topology.migrations.get(name);
        let left = names.iter().find_map(own)?;
        let why = match reading.topology.primary_of(left.from) {
            Some(_) => "the source's primary has not ended it yet".to_owned(),
            None => format!("shard {} has no primary, which would end it", short(left.from)),
        };
        Some(format!("move {}: {why}", left.id))
    })?;
    say("nothing of it is under way any more");
    Ok(())
}

fn new_name() -> String {
    let mut name = [0; 8];
    rng::with(|rng| rng.fill(&mut name));
    name.iter().map(|byte| format!("{byte:02x}")).collect()
}
