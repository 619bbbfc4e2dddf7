//! How all nodes are restarted while the cluster serves.

use std::process::{Command, Stdio};

use cluster::ids::{Incarnation, NodeId};
use cluster::topology::Node;

use crate::failover;
use crate::link::{self, place_of};
use crate::options::Options;
use crate::print::{agreed, say};
use crate::record::{Reading, Store};
use crate::status::short;
use crate::table::table;
use crate::trouble::Trouble;

/// Restarts one node after the other, the replicas of each shard before its primary. Before that,
/// a primary hands over.
pub(crate) fn run(
    store: &Store,
    options: &Options,
    restart: &str,
    version: Option<&str>,
) -> Result<(), Trouble> {
    let reading = store.read()?;
    let nodes = order(&reading, version);
    if nodes.is_empty() {
        say("no node is left to be restarted");
        return Ok(());
    }
    if let Some(node) = nodes.iter().find(|node| !node.is_alive()) {
        let text = format!("node {} at {} is not alive", short(node.id), place_of(node));
        return Err(Trouble::Failed(text));
    }
    let rows: Vec<_> = nodes
        .iter()
        .map(|node| {
            let is_primary = reading.topology.is_primary(node.id);
            let role = if is_primary { "primary" } else { "replica" };
            vec![short(node.id), place_of(node), role.to_owned(), node.version.clone()]
        })
        .collect();
    say(table(&["NODE", "ADDRESS", "ROLE", "VERSION"], &rows).trim_end());
    if !agreed(options)? {
        return Ok(());
    }
    let count = nodes.len();
    let ids: Vec<NodeId> = nodes.iter().map(|node| node.id).collect();
    for (number, id) in ids.into_iter().enumerate() {
        say(&format!("{} of {count}: node {}", number + 1, short(id)));
        restart_one(store, options, restart, version, id)?;
    }
    say("all nodes were restarted");
    Ok(())
}

fn order<'r>(reading: &'r Reading, version: Option<&str>) -> Vec<&'r Node> {
    let topology = &reading.topology;
    let mut nodes = Vec::new();
    for shard in topology.shards.values() {
        let mut own: Vec<_> = shard.nodes().filter_map(|id| topology.nodes.get(&id)).collect();
        own.sort_by_key(|node| topology.is_primary(node.id));
        nodes.extend(own);
    }
    nodes.retain(|node| version.is_none_or(|version| node.version != version));
    nodes
}

fn restart_one(
    store: &Store,
    options: &Options,
    restart: &str,
    version: Option<&str>,
    id: NodeId,
) -> Result<(), Trouble> {
    // Nobody is restarted while its shard could not spare it.
    let reading = store.wait(options.timeout, &mut |reading| {
        let shard = reading.topology.shard_of(id)?;
        let others = shard.members.iter().filter(|member| **member != id);
        let missing = others.filter(|member| !is_well(reading, options, **member)).count();
        (missing > 0).then(|| format!("{missing} other members of the shard are not well"))
    })?;
    let node = reading.topology.nodes.get(&id);
    let node = node.ok_or_else(|| format!("node {} is gone", short(id)))?;
    let shard = reading.topology.shard_of(id);
    let shard = shard.ok_or_else(|| format!("node {} has no shard now", short(id)))?;
    if reading.topology.is_primary(id) && shard.members.len() > 1 {
        failover::to_best(store, options, &reading, shard.id)?;
    }
    // The command is the operator's, and what a node calls itself is not: `ssh $DUNLIN_NODE_HOST`
    // would take one that begins with a hyphen for an option.
    let host = &node.address.host;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '_' | '-');
    if host.is_empty() || host.starts_with('-') || !host.chars().all(is_plain) {
        let text = format!("node {} has no address that can be used: {host:?}", short(id));
        return Err(Trouble::Failed(text));
    }
    let before = node.alive;
    let status = Command::new("sh")
        .args(["-c", restart])
        .env("DUNLIN_NODE", id.to_string())
        .env("DUNLIN_NODE_HOST", &node.address.host)
        .env("DUNLIN_NODE_PORT", node.address.port.to_string())
        .env("DUNLIN_NODE_NAME", &node.name)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("sh: {error}"))?;
    if !status.success() {
        return Err(Trouble::Failed(format!("the command to restart ended with {status}")));
    }
    let reading = store.wait(options.timeout, &mut |reading| {
        let now = reading.topology.nodes.get(&id).and_then(|node| node.alive);
        if !is_new_run(before, now) {
            return Some(format!("node {} has not come back", short(id)));
        }
        let text = format!("node {} catches up", short(id));
        (!is_well(reading, options, id)).then_some(text)
    })?;
    let runs = reading.topology.nodes.get(&id).map(|node| node.version.as_str());
    match (version, runs) {
        (Some(wanted), Some(runs)) if runs != wanted => Err(Trouble::Failed(format!(
            "node {} was restarted and has version {runs}, not {wanted}",
            short(id)
        ))),
        _ => Ok(()),
    }
}

fn is_new_run(before: Option<Incarnation>, now: Option<Incarnation>) -> bool {
    now.is_some() && now != before
}

/// Whether a node is alive, and follows its primary if it is none.
fn is_well(reading: &Reading, options: &Options, id: NodeId) -> bool {
    let Some(node) = reading.topology.nodes.get(&id).filter(|node| node.is_alive()) else {
        return false;
    };
    if reading.topology.is_primary(id) {
        return true;
    }
    link::ask(node, &options.access).is_ok_and(|told| told.link == Some(true))
}
