//! Random commands get the answers of a redis-server in cluster mode.

use std::time::Duration;

use anyhow::{Result, bail};
use tests::client::{Client, Reply};
use tests::random::{Random, Rounds};

use crate::nodes::Nodes;

/// Keys of the first shard, of one slot and of another; of the second shard; of nobody's slots.
const KEYS: &[&str] = &["k2", "{k2}a", "{k2}b", "bar", "k0", "{k0}a", "foo", "k24", "{k24}a"];

/// Commands with places for keys. Each leaves strings, so that all keys have one type.
const LINES: &[&str] = &[
    "GET K",
    "SET K v",
    "SET K v NX BAD",
    "GET",
    "MGET K K",
    "MGET K K K",
    "MSET K 1 K 2",
    "DEL K K",
    "EXISTS K K",
    "RENAME K K",
    "COPY K K REPLACE",
    "COPY K K DB 1",
    "MOVE K 1",
    "GETEX K",
    "TOUCH K K",
    "OBJECT ENCODING K",
    "SELECT 0",
    "SELECT 1",
    "SELECT x",
    "SWAPDB 0 1",
    "REPLICAOF NO ONE",
    "FAILOVER",
    "PFCOUNT K K",
    "BITOP AND K K K",
    "LCS K K",
    "WATCH K",
    "WATCH K K",
    "UNWATCH",
    "MULTI",
    "EXEC",
    "EXEC",
    "DISCARD",
    "SPUBLISH K x",
    "SUNSUBSCRIBE K",
    "PUBLISH K x",
    "READONLY",
    "READWRITE",
    "ASKING",
    "NOSUCHCOMMAND K",
    "CLUSTER KEYSLOT K",
    "CLUSTER COUNTKEYSINSLOT x",
    "CLUSTER GETKEYSINSLOT 1 x",
    "SORT K BY nosort",
    "SORT K BY K_*",
    "SORT K GET x*",
    "SORT_RO K GET #",
    "SORT K BY nosort STORE K",
    "OBJECT FREQ K",
    "XREAD COUNT 1 STREAMS K K 0 0",
    "LMPOP 2 K K LEFT",
    "SINTERCARD 2 K K",
];

/// Scripts, with places for keys in their text.
const SCRIPTS: &[&str] = &[
    "return 1",
    "return redis.call('get','K')",
    "return redis.pcall('get','K')",
    "return redis.call('set','K','v')",
    "return redis.call('mget','K','K')",
    "redis.call('get','K') return redis.call('get','K')",
    "redis.call('get',KEYS[1] or 'K') return redis.call('get','K')",
    "return redis.call('spublish','K','v')",
    "return redis.call('select','1')",
    "#!lua flags=no-writes\nreturn redis.pcall('get','K')",
    "#!lua\nreturn redis.call('get','K')",
    "#!lua\nredis.call('get','K') return redis.call('get','K')",
    "#!lua flags=allow-cross-slot-keys\nredis.call('get','K') return redis.call('get','K')",
    "#!lua flags=no-cluster\nreturn 1",
];
fn with_keys(random: &mut Random, line: &str) -> String {
    let mut parts = line.split('K');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut last = *random.pick(KEYS);
    for part in parts {
        // Often one slot, so that something happens.
        if random.percent(40) {
            last = *random.pick(KEYS);
        }
        // `KEYS`, `LOCK` and the like are no keys.
        let inner = text.ends_with(|c: char| c.is_ascii_uppercase())
            || part.starts_with(|c: char| c.is_ascii_uppercase());
        text += if inner { "K" } else { last };
        text += part;
    }
    text
}

/// The words of a random command. No script is queued: after one in a transaction that names a key
/// of another slot, the reference looks for the keys of later commands in that slot.
fn words(random: &mut Random, in_multi: bool) -> Vec<String> {
    if random.percent(30) && !in_multi {
        let name = if random.percent(20) { "EVAL_RO" } else { "EVAL" };
        let script = *random.pick(SCRIPTS);
        let script = with_keys(random, script);
        let count = random.below(3);
        let keys = with_keys(random, &["K"; 3][..count].join(" "));
        let mut words = vec![name.to_owned(), script, count.to_string()];
        words.extend(keys.split_whitespace().map(str::to_owned));
        return words;
    }
    let line = *random.pick(LINES);
    with_keys(random, line).split(' ').map(str::to_owned).collect()
}

/// What is compared of a reply: on the replica, errors alone, because data comes later there.
fn compared(nodes: &Nodes, reply: Result<Reply>, is_replica: bool) -> String {
    match reply {
        Ok(Reply::Error(line)) => nodes.without_ports(&line),
        Ok(_) if is_replica => "no error".to_owned(),
        Ok(reply) => format!("{reply:?}"),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn random_commands_are_answered_as_by_a_cluster_of_the_reference() -> Result<()> {
    let both = [Nodes::start(&[])?, Nodes::start_reference()?];
    for seed in Rounds::from_environment(Duration::from_secs(2)).seeds() {
        let mut random = Random::new(seed);
        for node in [0, 2] {
            let mut clients: Vec<Client> = Vec::new();
            for nodes in &both {
                clients.push(nodes.all[node].connect()?);
            }
            let (mut said, mut in_multi) = (Vec::new(), false);
            for _ in 0..200 {
                let words = words(&mut random, in_multi);
                in_multi = match &*words[0] {
                    "MULTI" => true,
                    "EXEC" | "DISCARD" => false,
                    _ => in_multi,
                };
                let replies: Vec<String> = both
                    .iter()
                    .zip(&mut clients)
                    .map(|(nodes, client)| compared(nodes, client.call(&words), node == 2))
                    .collect();
                said.push(words.join(" "));
                let mut replies = replies;
                for (at, nodes) in both.iter().enumerate().filter(|_| node == 0) {
                    let mut looks = nodes.all[0].connect()?;
                    for key in KEYS.iter().take(4) {
                        replies[at] += &format!("; {:?}", looks.call(&["GET", key])?);
                    }
                }
                if replies[0] != replies[1] {
                    let before = said[said.len().saturating_sub(8)..].join("\n");
                    bail!(
                        "seed {seed}, node {node}:\n{before}\nours:   {}\ntheirs: {}",
                        replies[0],
                        replies[1]
                    );
                }
            }
        }
    }
    Ok(())
}
