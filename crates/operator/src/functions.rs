//! How a new shard gets the functions that the others have, as by `redis-cli --cluster add-node`.
//! Whether it can is looked at before anything is changed.

use std::collections::BTreeMap;

use cluster::ids::NodeId;
use cluster::topology::Node;
use lab::targets::connection::in_words;
use resp::client::Value;

use crate::link::{call, place_of};
use crate::options::{Access, Options};
use crate::print::say;
use crate::record::{Reading, Store};
use crate::status::short;
use crate::trouble::Trouble;

/// How an operator goes on who does not want that.
const OTHERWISE: &str = "--without-functions adds it as it is";

/// The source of each library, by its name.
type Libraries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Which nodes get the functions of which one.
pub(crate) struct Copies<'r> {
    from: Option<&'r Node>,
    to: Vec<&'r Node>,
}

impl<'r> Copies<'r> {
    /// No node gets any.
    pub(crate) fn none() -> Copies<'r> {
        Copies { from: None, to: Vec::new() }
    }

    /// Looks which of these nodes, which are or become shards without slots, need the functions
    /// that the other shards have, and says so.
    ///
    /// # Errors
    /// A node cannot be asked, the shards differ, or a node has other functions.
    pub(crate) fn plan(
        reading: &'r Reading,
        access: &Access,
        nodes: &[NodeId],
    ) -> Result<Copies<'r>, Trouble> {
        let Some((from, wanted)) = common(reading, access, nodes)? else {
            return Ok(Copies::none());
        };
        let mut to = Vec::new();
        for node in nodes.iter().filter_map(|id| reading.topology.nodes.get(id)) {
            let own = libraries(node, access)?;
            if own == wanted {
                continue;
            }
            if !own.is_empty() {
                return Err(Trouble::Failed(format!(
                    "node {} at {} has other functions than the cluster: {OTHERWISE}. Then FUNCTION \
                     FLUSH deletes them, and this command without that option copies the others",
                    short(node.id),
                    place_of(node)
                )));
            }
            say(&format!(
                "node {} gets the functions of node {} at {}: {}",
                short(node.id),
                short(from.id),
                place_of(from),
                names(wanted.keys())
            ));
            to.push(node);
        }
        Ok(Copies { from: Some(from), to })
    }

    /// Whether any node gets some.
    pub(crate) fn are_any(&self) -> bool {
        !self.to.is_empty()
    }

    /// Carries it out, as soon as the nodes are primaries: before, they take no writes.
    ///
    /// # Errors
    /// They do not become primaries, a node cannot be asked, or one does not take the functions.
    pub(crate) fn make(&self, store: &Store, options: &Options) -> Result<(), Trouble> {
        let Some(from) = self.from.filter(|_| !self.to.is_empty()) else { return Ok(()) };
        let access = &options.access;
        let dumped = call(from, access, &["FUNCTION", "DUMP"]).map_err(|own| not_given(&own))?;
        let Value::Bulk(payload) = dumped else {
            return Err(not_given(&format!("{}: {}", place_of(from), in_words(&dumped))));
        };
        store.wait(options.timeout, &mut |reading| {
            let late = self.to.iter().find(|node| !reading.topology.is_primary(node.id))?;
            Some(format!("node {} becomes primary, and gets functions then", short(late.id)))
        })?;
        for node in &self.to {
            let words = [&b"FUNCTION"[..], b"RESTORE", &payload];
            call(node, access, &words).map_err(|reason| not_given(&reason))?;
        }
        Ok(())
    }
}

/// What has failed when the shards are there.
fn not_given(reason: &str) -> Trouble {
    Trouble::Failed(format!(
        "new shards are without functions: {reason}. Give the command again before slots go there"
    ))
}

/// The functions that the shards have of which none of these nodes is, and who has them.
fn common<'r>(
    reading: &'r Reading,
    access: &Access,
    nodes: &[NodeId],
) -> Result<Option<(&'r Node, Libraries)>, Trouble> {
    let topology = &reading.topology;
    let primaries = topology.shards.keys().filter_map(|shard| topology.primary_of(*shard));
    let mut found: Option<(&Node, Libraries)> = None;
    for node in primaries.filter(|node| !nodes.contains(&node.id)) {
        let own = libraries(node, access)?;
        match &found {
            None => found = Some((node, own)),
            Some((first, wanted)) if *wanted != own => {
                let differ = |name: &&Vec<u8>| wanted.get(*name) != own.get(*name);
                let both =
                    wanted.keys().chain(own.keys().filter(|name| !wanted.contains_key(*name)));
                return Err(Trouble::Failed(format!(
                    "nodes {} at {} and {} at {} have different functions ({}): give both the same, \
                     or {OTHERWISE}",
                    short(first.id),
                    place_of(first),
                    short(node.id),
                    place_of(node),
                    names(both.filter(differ))
                )));
            }
            Some(_) => {}
        }
    }
    Ok(found)
}

fn names<'n>(libraries: impl Iterator<Item = &'n Vec<u8>>) -> String {
    let shown = libraries.map(|name| String::from_utf8_lossy(name).into_owned());
    shown.collect::<Vec<_>>().join(", ")
}

fn untold(reason: String) -> Trouble {
    Trouble::Failed(format!("it cannot be told which functions there are: {reason}; {OTHERWISE}"))
}

/// The libraries of a node.
fn libraries(node: &Node, access: &Access) -> Result<Libraries, Trouble> {
    let answer = call(node, access, &["FUNCTION", "LIST", "WITHCODE"]).map_err(untold)?;
    let unclear = || untold(format!("{}: {}", place_of(node), in_words(&answer)));
    let Value::Array(rows) = &answer else { return Err(unclear()) };
    rows.iter().map(|row| library(row).ok_or_else(unclear)).collect()
}

/// Name and source of a library.
fn library(row: &Value) -> Option<(Vec<u8>, Vec<u8>)> {
    let Value::Array(parts) = row else { return None };
    let part = |name: &[u8]| {
        let is_meant = |pair: &&[Value]| matches!(&pair[0], Value::Bulk(own) if own == name);
        match &parts.chunks_exact(2).find(is_meant)?[1] {
            Value::Bulk(bytes) => Some(bytes.to_vec()),
            _ => None,
        }
    };
    Some((part(b"library_name")?, part(b"library_code")?))
}
