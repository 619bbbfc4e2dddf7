//! Which slots go where, so that each shard has its share of slots or of keys.

use std::collections::BTreeMap;

use cluster::ids::ShardId;
use cluster::plan::{self, Move};

use crate::options::{Options, Rebalance};
use crate::print::{agreed, say};
use crate::record::{Reading, Store};
use crate::status::short;
use crate::table::table;
use crate::trouble::Trouble;
use crate::{link, moving};

/// So many moves are asked for in one transaction of etcd.
const MOVES_AT_ONCE: usize = 40;

/// Carries out `dunlin cluster rebalance`.
pub(crate) fn run(store: &Store, options: &Options, wanted: &Rebalance) -> Result<(), Trouble> {
    let mut reading = moving::wait_for_all(store, options, store.read()?)?;
    let moves = plan(&reading, options, wanted)?;
    if moves.is_empty() {
        say("each shard has its share");
        return Ok(());
    }
    let rows: Vec<_> = moves
        .iter()
        .map(|Move { slots, from, to }| {
            vec![short(*from), short(*to), slots.count().to_string(), slots.to_string()]
        })
        .collect();
    say(table(&["FROM", "TO", "COUNT", "SLOTS"], &rows).trim_end());
    if !agreed(options)? {
        return Ok(());
    }
    for some in moves.chunks(MOVES_AT_ONCE) {
        moving::carry_out(store, options, &reading, some)?;
        reading = store.read()?;
    }
    say("each shard has its share");
    Ok(())
}

fn plan(reading: &Reading, options: &Options, wanted: &Rebalance) -> Result<Vec<Move>, Trouble> {
    let topology = &reading.topology;
    let mut shares: BTreeMap<ShardId, u64> = topology.shards.keys().map(|id| (*id, 1)).collect();
    for (word, share) in &wanted.shares {
        shares.insert(reading.shard(word)?.id, *share);
    }
    if shares.values().all(|share| *share == 0) {
        return Err(Trouble::Failed("no shard would have a slot".to_owned()));
    }
    let mut keys = BTreeMap::new();
    if wanted.by_keys {
        for shard in topology.shards.values().filter(|shard| !shard.slots.is_empty()) {
            let primary = topology.primary_of(shard.id);
            let text = || format!("shard {} has no primary that could be asked", short(shard.id));
            let primary = primary.ok_or_else(|| Trouble::Failed(text()))?;
            keys.extend(link::count_keys(primary, &options.access, (0, 16383))?);
        }
    }
    let weight = |slot: u16| match wanted.by_keys {
        true => keys.get(&slot).copied().unwrap_or(0),
        false => 1,
    };
    Ok(plan::rebalance(topology, &weight, &shares, wanted.tolerance as f64 / 100.0))
}
