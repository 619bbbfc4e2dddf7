//! What is shown of a cluster, and first what is wrong with it.

use std::collections::BTreeMap;

use cluster::ids::NodeId;
use cluster::slots::SLOT_COUNT;
use cluster::topology::{Migration, Node, Shard, Topology};
use serde_json::{Value, json};

use crate::link::{self, MoveReport, NodeReport, place_of};
use crate::options::{Access, Options};
use crate::print::{say, word};
use crate::record::{Reading, Store};
use crate::table::table;
use crate::trouble::Trouble;

/// How much of an id is shown where whole ones would not fit.
const SHORT: usize = 8;
/// A replica that lacks more of the stream is told of.
const LONG_LAG: u64 = 64 << 20;
/// A move of slots that has begun so often does not get on.
const MANY_TRIES: u64 = 10;

/// The beginning of an id.
pub(crate) fn short(id: impl ToString) -> String {
    id.to_string().chars().take(SHORT).collect()
}

/// What the nodes say of themselves, for those that answer, and why others do not.
type Answers = BTreeMap<NodeId, Result<NodeReport, String>>;

fn ask_all(topology: &Topology, access: &Access) -> Answers {
    std::thread::scope(|scope| {
        let nodes = topology.nodes.values();
        let asked = nodes.map(|node| (node.id, scope.spawn(move || link::ask(node, access))));
        let asked: Vec<_> = asked.collect();
        let answers = asked.into_iter().map(|(id, thread)| {
            (id, thread.join().unwrap_or_else(|_| Err("it could not be asked".to_owned())))
        });
        answers.collect()
    })
}

/// Shows a cluster. Returns whether nothing is wrong with it.
pub(crate) fn show(store: &Store, options: &Options, as_json: bool) -> Result<bool, Trouble> {
    let reading = store.read()?;
    let topology = &reading.topology;
    let answers = ask_all(topology, &options.access);
    let mut problems = problems(topology, &answers);
    if store.rebuilt(&reading).is_some_and(|rebuilt| !rebuilt.is_complete) {
        let text = "etcd has a part of the cluster, and no node goes by it: dunlin cluster rebuild, \
                    given again, writes the rest";
        problems.insert(0, text.to_owned());
    }
    match as_json {
        true => say(&format!("{:#}", to_json(store, &reading, &answers, &problems))),
        false => say(text(options, &reading, &answers, &problems).trim_end()),
    }
    Ok(problems.is_empty())
}

/// What somebody has to look at, the worst first.
fn problems(topology: &Topology, answers: &Answers) -> Vec<String> {
    let mut problems = Vec::new();
    if topology.shards.is_empty() {
        let text = "there is no cluster of this name: dunlin cluster create makes it, and dunlin \
                    cluster rebuild writes one anew that etcd has lost";
        problems.push(text.to_owned());
        return problems;
    }
    for shard in topology.shards.values() {
        let own = short(shard.id);
        let alive = shard.members.iter().filter(|id| is_alive(topology, **id)).count();
        let (members, quorum) = (shard.members.len(), shard.quorum());
        if shard.leader.is_none() && !shard.slots.is_empty() {
            problems.push(format!(
                "shard {own} has no primary: {} slots are not served ({alive} of {members} \
                 members are alive)",
                shard.slots.count()
            ));
        } else if alive < quorum {
            problems.push(format!(
                "shard {own} has {alive} of {members} members: writes at quorum wait, and nobody \
                 can take over"
            ));
        } else if alive < members && alive == quorum {
            problems.push(format!(
                "shard {own} has {alive} of {members} members: one more must not be lost"
            ));
        }
    }
    let unowned = topology.unowned();
    if !unowned.is_empty() {
        problems.push(format!("{} slots have no shard: {unowned}", unowned.count()));
    }
    for node in topology.nodes.values().filter(|node| node.shard.is_some()) {
        let (own, place) = (short(node.id), place_of(node));
        if topology.shard_of(node.id).is_none() {
            problems.push(format!(
                "node {own} at {place} belongs to a shard that is gone: dunlin cluster add gives \
                 it another one"
            ));
            continue;
        }
        match (node.is_alive(), answers.get(&node.id)) {
            (false, _) => problems.push(format!("node {own} at {place} is not alive")),
            (true, Some(Err(problem))) => {
                problems.push(format!("node {own} cannot be asked: {problem}"));
            }
            (true, Some(Ok(told))) if told.link == Some(false) && !topology.is_primary(node.id) => {
                problems.push(format!("node {own} at {place} has no link to its primary"));
            }
            _ => {}
        }
        match lag(topology, node, answers) {
            Some(bytes) if bytes > LONG_LAG => problems.push(format!(
                "node {own} at {place} lacks {} of the stream",
                bytes_in_words(bytes)
            )),
            _ => {}
        }
    }
    for own in topology.migrations.values() {
        let start = format!("move {} of slots {}", own.id, own.slots);
        if let Some(hindrance) = hindrance(topology, own) {
            problems.push(format!(
                "{start} waits: {hindrance}; it goes on by itself then, or dunlin cluster abort {} \
                 gives it up",
                own.id
            ));
        } else if let Some(report) = report_of(topology, own, answers)
            && (report.tries >= MANY_TRIES || report.tries > 2 && !report.trouble.is_empty())
        {
            let why = match &*report.trouble {
                "" => "the log of its source says why",
                why => why,
            };
            problems.push(format!(
                "{start} has begun {} times: {why}. dunlin cluster abort {} gives it up",
                report.tries, own.id
            ));
        }
    }
    problems
}

/// What a move waits for that may take long.
pub(crate) fn hindrance(topology: &Topology, own: &Migration) -> Option<String> {
    [own.from, own.to].into_iter().find_map(|id| match topology.shards.get(&id) {
        None => Some(format!("there is no shard {}", short(id))),
        Some(shard) if shard.leader.is_none() => {
            Some(format!("shard {} has no primary", short(id)))
        }
        Some(_) => None,
    })
}

/// How far a move is, as the source's primary says.
fn report_of<'a>(
    topology: &Topology,
    own: &Migration,
    answers: &'a Answers,
) -> Option<&'a MoveReport> {
    let source = topology.primary_of(own.from)?;
    let told = answers.get(&source.id)?.as_ref().ok()?;
    told.moves.iter().find(|report| report.id == own.id)
}

fn is_alive(topology: &Topology, node: NodeId) -> bool {
    topology.nodes.get(&node).is_some_and(Node::is_alive)
}

/// How much of the primary's stream a replica lacks, in bytes.
fn lag(topology: &Topology, node: &Node, answers: &Answers) -> Option<u64> {
    let leader = topology.shard_of(node.id)?.leader?;
    let offset = |id: &NodeId| answers.get(id)?.as_ref().ok()?.offset;
    if leader.node == node.id {
        return None;
    }
    // The replica may have been asked a moment later.
    Some(offset(&leader.node)?.saturating_sub(offset(&node.id)?))
}

fn role(topology: &Topology, shard: &Shard, node: NodeId) -> &'static str {
    if topology.is_primary(node) {
        "primary"
    } else if shard.members.contains(&node) {
        "replica"
    } else {
        "joining"
    }
}

fn bytes_in_words(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if size < 1000.0 {
            let digits = usize::from(unit != "B" && size < 10.0);
            return format!("{size:.digits$} {unit}");
        }
        size /= 1000.0;
    }
    format!("{size:.1} TB")
}

fn state(topology: &Topology, node: &Node, answers: &Answers) -> String {
    match (node.is_alive(), answers.get(&node.id)) {
        (false, _) => "gone".to_owned(),
        (true, Some(Err(_))) => "no answer".to_owned(),
        (true, Some(Ok(told))) if told.link == Some(false) && !topology.is_primary(node.id) => {
            "no link".to_owned()
        }
        _ => "ok".to_owned(),
    }
}

/// The nodes of a shard, the primary first.
fn nodes_of<'t>(topology: &'t Topology, shard: &Shard) -> Vec<&'t Node> {
    let mut nodes: Vec<_> = shard.nodes().filter_map(|id| topology.nodes.get(&id)).collect();
    nodes.sort_by_key(|node| (!topology.is_primary(node.id), place_of(node)));
    nodes
}

/// The nodes without a shard, or whose shard is gone.
fn spare(topology: &Topology) -> impl Iterator<Item = &Node> {
    topology.nodes.values().filter(|node| topology.shard_of(node.id).is_none())
}

fn text(options: &Options, reading: &Reading, answers: &Answers, problems: &[String]) -> String {
    let topology = &reading.topology;
    let mut text = format!(
        "cluster {} in {}, revision {}: {} shards, {} nodes, {} of {SLOT_COUNT} slots served, \
         epoch {}\n",
        options.name,
        options.etcd.endpoints.join(","),
        reading.revision(),
        topology.shards.len(),
        topology.nodes.len(),
        topology.served_count(),
        topology.epoch(),
    );
    for problem in problems {
        text.push_str(&format!("! {}\n", word(problem)));
    }
    let headings =
        ["SHARD", "SLOTS", "NODE", "ADDRESS", "ROLE", "STATE", "EPOCH", "LAG", "ZONE", "VERSION"];
    let mut rows = Vec::new();
    for shard in topology.shards.values() {
        let (mut id, mut slots) = (short(shard.id), shard.slots.to_string());
        if slots.is_empty() {
            slots = "none".to_owned();
        }
        let nodes = nodes_of(topology, shard);
        if nodes.is_empty() {
            rows.push(vec![id.clone(), slots.clone(), "none".to_owned()]);
        }
        for node in nodes {
            let lag = lag(topology, node, answers);
            let epoch = shard.leader.filter(|leader| leader.node == node.id);
            rows.push(vec![
                std::mem::take(&mut id),
                std::mem::take(&mut slots),
                short(node.id),
                place_of(node),
                role(topology, shard, node.id).to_owned(),
                state(topology, node, answers),
                epoch.map(|leader| leader.epoch.to_string()).unwrap_or_default(),
                lag.map(bytes_in_words).unwrap_or_default(),
                node.zone.clone(),
                node.version.clone(),
            ]);
        }
    }
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&table(&headings, &rows));
    }
    let rows: Vec<_> = spare(topology)
        .map(|node| {
            let state = if node.is_alive() { "ok" } else { "gone" };
            vec![short(node.id), place_of(node), state.to_owned(), node.version.clone()]
        })
        .collect();
    if !rows.is_empty() {
        text.push_str("\nWithout a shard:\n");
        text.push_str(&table(&["NODE", "ADDRESS", "STATE", "VERSION"], &rows));
    }
    let rows: Vec<_> = topology
        .migrations
        .values()
        .map(|own| {
            let mut state = format!("{:?}", own.state).to_lowercase();
            let (mut keys, mut sent, mut rate) = (String::new(), String::new(), String::new());
            if let Some(report) = report_of(topology, own, answers) {
                state.clone_from(&report.state);
                keys = format!("{} of {}", report.keys_sent, report.keys);
                sent = bytes_in_words(report.bytes_sent + report.journal_bytes_sent);
                rate = format!("{}/s", bytes_in_words(report.bytes_per_second));
            }
            let (id, slots) = (own.id.clone(), own.slots.to_string());
            vec![id, slots, short(own.from), short(own.to), state, keys, sent, rate]
        })
        .collect();
    if !rows.is_empty() {
        text.push_str("\nSlots on their way:\n");
        let headings = ["MOVE", "SLOTS", "FROM", "TO", "STATE", "KEYS", "SENT", "RATE"];
        text.push_str(&table(&headings, &rows));
    }
    text
}

fn to_json(store: &Store, reading: &Reading, answers: &Answers, problems: &[String]) -> Value {
    let topology = &reading.topology;
    let of_node = |node: &Node| {
        let shard = topology.shard_of(node.id);
        let told = answers.get(&node.id).and_then(|told| told.as_ref().ok());
        json!({
            "id": node.id.to_string(),
            "name": node.name,
            "host": node.address.host,
            "port": node.address.port,
            "tls_port": node.address.tls_port,
            "zone": node.zone,
            "alive": node.is_alive(),
            "lease": reading.lease_of(&store.keys, node.id).map(|lease| lease.to_string()),
            "version": node.version,
            "role": shard.map(|shard| role(topology, shard, node.id)),
            "state": state(topology, node, answers),
            "offset": told.and_then(|told| told.offset),
            "lag_bytes": lag(topology, node, answers),
        })
    };
    let shards = topology.shards.values().map(|shard| {
        let nodes: Vec<_> = nodes_of(topology, shard).into_iter().map(of_node).collect();
        json!({
            "id": shard.id.to_string(),
            "slots": shard.slots.to_string(),
            "slot_count": shard.slots.count(),
            "quorum": shard.quorum(),
            "epoch": shard.leader.map(|leader| leader.epoch),
            "primary": shard.leader.map(|leader| leader.node.to_string()),
            "nodes": nodes,
        })
    });
    let spare = spare(topology).map(of_node);
    let migrations = topology.migrations.values().map(|own| {
        json!({
            "id": own.id,
            "slots": own.slots.to_string(),
            "from": own.from.to_string(),
            "to": own.to.to_string(),
            "state": own.state,
            "progress": report_of(topology, own, answers).map(|report| json!({
                "state": report.state,
                "tries": report.tries,
                "keys": report.keys,
                "keys_sent": report.keys_sent,
                "bytes_sent": report.bytes_sent,
                "bytes_per_second": report.bytes_per_second,
                "journal_bytes_sent": report.journal_bytes_sent,
                "seconds": report.seconds,
                "trouble": report.trouble,
            })),
        })
    });
    json!({
        "name": topology.name,
        "revision": reading.revision(),
        "epoch": topology.epoch(),
        "slots_served": topology.served_count(),
        "problems": problems,
        "shards": shards.collect::<Vec<_>>(),
        "without_shard": spare.collect::<Vec<_>>(),
        "migrations": migrations.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use cluster::ids::ShardId;
    use cluster::slots::SlotRanges;
    use cluster::topology::{Address, Leader, MigrationState};

    use super::*;

    #[test]
    fn sizes_are_short() {
        let shown = [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (20_000_000, "20 MB")];
        for (bytes, text) in shown {
            assert_eq!(bytes_in_words(bytes), text);
        }
    }

    #[test]
    fn a_move_that_does_not_get_on_is_shown_with_the_reason() {
        let (from, to) = (ShardId([1; 20]), ShardId([2; 20]));
        let node = |id: u8, shard| Node {
            id: NodeId([id; 20]),
            shard: Some(shard),
            address: Address::default(),
            zone: String::new(),
            alive: Some(1),
            version: String::new(),
            name: String::new(),
        };
        let shard = |id, number: u8| {
            let leader = Leader { node: NodeId([number; 20]), incarnation: 1, epoch: 1, start: 0 };
            Shard {
                id,
                slots: SlotRanges::new(),
                members: vec![leader.node],
                joining: Vec::new(),
                leader: Some(leader),
                last_leader: Some(leader),
                is_failed: false,
                modified: 0,
            }
        };
        let migration = Migration {
            id: "m".to_owned(),
            slots: SlotRanges::new(),
            from,
            to,
            state: MigrationState::Wanted,
            modified: 0,
        };
        let (nodes, shards) = ([node(1, from), node(2, to)], [shard(from, 1), shard(to, 2)]);
        let topology = Topology::new("c".to_owned(), 1, nodes, shards, [migration]);
        let shown = |tries, trouble: &str| {
            let trouble = trouble.to_owned();
            let report = MoveReport { id: "m".to_owned(), tries, trouble, ..Default::default() };
            let report = NodeReport { moves: vec![report], ..NodeReport::default() };
            let answers = Answers::from([(NodeId([1; 20]), Ok(report))]);
            problems(&topology, &answers).into_iter().find(|text| text.starts_with("move m"))
        };
        assert_eq!((shown(2, "it is gone"), shown(9, "")), (None, None));
        assert!(shown(3, "it is gone").is_some_and(|text| text.contains("3 times: it is gone.")));
        assert!(shown(10, "").is_some_and(|text| text.contains("log of its source")));
    }

    #[test]
    fn a_node_whose_shard_is_gone_is_shown() {
        let (own, other) = (ShardId([1; 20]), ShardId([2; 20]));
        let node = Node {
            id: NodeId([1; 20]),
            shard: Some(other),
            address: Address::default(),
            zone: String::new(),
            alive: Some(1),
            version: String::new(),
            name: String::new(),
        };
        let shard = Shard {
            id: own,
            slots: SlotRanges::new(),
            members: Vec::new(),
            joining: Vec::new(),
            leader: None,
            last_leader: None,
            is_failed: false,
            modified: 0,
        };
        let topology = Topology::new("c".to_owned(), 1, [node], [shard], []);
        assert_eq!(spare(&topology).count(), 1);
        let problems = problems(&topology, &Answers::new());
        assert!(problems.iter().any(|text| text.contains("a shard that is gone")), "{problems:?}");
    }
}
