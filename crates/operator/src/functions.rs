//! How a new shard gets the functions that the others have, as by `redis-cli --cluster add-node`.
//! Whether it can is looked at before anything is changed.

use std::collections::BTreeMap;

use cluster::ids::NodeId;
use cluster::topology::{Node, Topology};
use lab::targets::connection::in_words;
use resp::client::Value;

use crate::link::{call, connect, place_of};
use crate::options::{Access, Options};
use crate::print::say;
use crate::record::{Reading, Store};
use crate::status::short;
use crate::trouble::Trouble;

/// How an operator goes on who does not want that.
const OTHERWISE: &str = "--without-functions adds it as it is";

/// The codes of errors with which a node answers that does not lead yet, or not know of it.
const NOT_YET: [&[u8]; 4] = [b"READONLY", b"CLUSTERDOWN", b"LOADING", b"MASTERDOWN"];

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
            let mut given = Ok(());
            store.wait(options.timeout, &mut |_| match restore(node, access, &payload) {
                Ok(later) => later.map(|why| format!("the node gets functions then: {why}")),
                Err(reason) => {
                    given = Err(not_given(&reason));
                    None
                }
            })?;
            given?;
        }
        Ok(())
    }
}

/// Gives a node functions. Returns why it takes none yet, if it does not: one that etcd has as a
/// primary may not know that yet.
fn restore(node: &Node, access: &Access, payload: &[u8]) -> Result<Option<String>, String> {
    let words = [&b"FUNCTION"[..], b"RESTORE", payload];
    let mut connection = connect(node, access)?;
    let place = place_of(node);
    match connection.call(&words).map_err(|error| format!("{place}: {error}"))? {
        Value::Error(text) => {
            let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
            let is_too_early = NOT_YET.contains(&code);
            let why = format!("{place}: {}", in_words(&Value::Error(text)));
            if is_too_early { Ok(Some(why)) } else { Err(why) }
        }
        _ => Ok(None),
    }
}

/// What has failed when the shards are there.
fn not_given(reason: &str) -> Trouble {
    Trouble::Failed(format!(
        "new shards are without functions: {reason}. Give the command again before slots go there"
    ))
}

/// The primaries of the shards of which none of these nodes is.
///
/// # Errors
/// Such a shard has none now and may have functions: it has had one, or has slots.
fn primaries<'r>(topology: &'r Topology, nodes: &[NodeId]) -> Result<Vec<&'r Node>, Trouble> {
    let mut primaries = Vec::new();
    for shard in topology.shards.values() {
        match topology.primary_of(shard.id) {
            Some(node) if nodes.contains(&node.id) => {}
            Some(node) => primaries.push(node),
            None if shard.nodes().any(|node| nodes.contains(&node)) => {}
            // Nobody can have given functions to one that has just been made.
            None if shard.last_leader.is_none() && shard.slots.is_empty() => {}
            None => {
                return Err(untold(format!("shard {} has no primary now", short(shard.id))));
            }
        }
    }
    Ok(primaries)
}

/// The functions that the shards have of which none of these nodes is, and who has them.
fn common<'r>(
    reading: &'r Reading,
    access: &Access,
    nodes: &[NodeId],
) -> Result<Option<(&'r Node, Libraries)>, Trouble> {
    let mut found: Option<(&Node, Libraries)> = None;
    for node in primaries(&reading.topology, nodes)? {
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use cluster::ids::ShardId;
    use cluster::topology::{Address, Leader, Shard};

    use super::*;

    fn node(number: u8, port: u16) -> Node {
        Node {
            id: NodeId([number; 20]),
            shard: Some(ShardId([number; 20])),
            address: Address { host: "127.0.0.1".to_owned(), port, ..Address::default() },
            zone: String::new(),
            alive: Some(1),
            version: String::new(),
            name: String::new(),
        }
    }

    fn access() -> Access {
        Access { user: None, password: None, encryption: None }
    }

    #[test]
    fn a_node_that_does_not_lead_yet_is_asked_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let node = node(1, listener.local_addr().unwrap().port());
        let answers = ["READONLY no", "CLUSTERDOWN no", "LOADING no", "OK", "ERR READONLY no"];
        let serving = std::thread::spawn(move || {
            for answer in answers {
                let (mut client, _) = listener.accept().unwrap();
                assert!(client.read(&mut [0; 512]).unwrap() > 0);
                let kind = if answer == "OK" { '+' } else { '-' };
                client.write_all(format!("{kind}{answer}\r\n").as_bytes()).unwrap();
            }
        });
        for code in ["READONLY", "CLUSTERDOWN", "LOADING"] {
            let later = restore(&node, &access(), b"payload").unwrap();
            assert!(later.is_some_and(|why| why.contains(code)), "{code}");
        }
        assert_eq!(restore(&node, &access(), b"payload"), Ok(None));
        let refused = restore(&node, &access(), b"payload").unwrap_err();
        assert!(refused.ends_with("ERR READONLY no"), "{refused}");
        serving.join().unwrap();
    }

    #[test]
    fn a_shard_without_a_primary_may_have_functions() {
        let shard = |number: u8, slots: &str, has_led: bool, leads: bool| {
            let node = NodeId([number; 20]);
            let leader = Some(Leader { node, incarnation: 1, epoch: 1, start: 0 });
            Shard {
                id: ShardId([number; 20]),
                slots: slots.parse().unwrap(),
                members: vec![NodeId([number; 20])],
                joining: Vec::new(),
                leader: leader.filter(|_| leads),
                last_leader: leader.filter(|_| has_led),
                is_failed: false,
                modified: 0,
            }
        };
        let names = |shards: &[Shard]| {
            let mut topology = Topology::default();
            topology.nodes =
                (1..4).map(|number| node(number, 7)).map(|own| (own.id, own)).collect();
            topology.shards = shards.iter().map(|own| (own.id, own.clone())).collect();
            let found = primaries(&topology, &[NodeId([3; 20])]);
            found.map(|own| own.iter().map(|node| node.id.0[0]).collect::<Vec<_>>())
        };
        let whole = shard(1, "0-16383", true, true);
        // The node that is added, and a shard that has just been made.
        let (own, fresh) = (shard(3, "", true, false), shard(2, "", false, false));
        assert_eq!(names(&[whole.clone(), fresh, own]).ok(), Some(vec![1]));
        for (slots, has_led) in [("", true), ("5", false), ("5", true)] {
            let told = names(&[whole.clone(), shard(2, slots, has_led, false)]);
            let told = told.unwrap_err().to_string();
            assert!(told.contains("has no primary now") && told.contains(OTHERWISE), "{told}");
        }
    }
}
