//! Slots move between shards while clients count, and primaries of both are killed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply};
use tests::observe::wait_until;
use tests::random::Random;

use crate::deployment::{Deployment, OTHER_SHARD, SHARD};

/// Counts of a client: those that were acknowledged, and those of which nothing is known.
#[derive(Default)]
struct Counts {
    acknowledged: HashMap<String, i64>,
    unknown: HashMap<String, i64>,
}

/// Where a reply sends the client.
fn moved_to(text: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(text);
    text.strip_prefix("MOVED ")?.rsplit(':').next()?.parse().ok()
}

/// How a client adds to a counter.
#[derive(Clone, Copy)]
enum Way {
    /// By a command, which says which key it has.
    Command,
    /// By a script that does not say which key it will use.
    Script,
}

impl Way {
    fn words(self, key: &str) -> Vec<&str> {
        match self {
            Way::Command => vec!["INCR", key],
            Way::Script => vec!["EVAL", "return redis.call('incr', ARGV[1])", "0", key],
        }
    }
}

/// Adds to random counters until told to stop, at whichever node takes them.
fn count(ports: &[u16], (seed, way): (u64, Way), over: &AtomicBool) -> Counts {
    let (mut random, mut counts) = (Random::new(seed), Counts::default());
    let mut clients: HashMap<u16, Client> = HashMap::new();
    let mut port = ports[0];
    while !over.load(Relaxed) {
        let key = format!("{seed}:{}", random.below(200));
        while !over.load(Relaxed) {
            let client = match clients.entry(port) {
                Entry::Occupied(own) => own.into_mut(),
                Entry::Vacant(free) => match Client::connect(port) {
                    Ok(client) => free.insert(client),
                    Err(_) => {
                        port = ports[random.below(ports.len())];
                        sleep(Duration::from_millis(5));
                        continue;
                    }
                },
            };
            match client.call(&way.words(&key)) {
                Ok(Reply::Integer(_)) => {
                    *counts.acknowledged.entry(key).or_default() += 1;
                    break;
                }
                Ok(Reply::Error(text)) => match moved_to(&text) {
                    Some(to) => port = to,
                    None if text.windows(13).any(|own| own == b"non local key") => {
                        port = ports[random.below(ports.len())];
                    }
                    None => {
                        *counts.unknown.entry(key.clone()).or_default() += 1;
                        port = ports[random.below(ports.len())];
                        sleep(Duration::from_millis(5));
                    }
                },
                _ => {
                    *counts.unknown.entry(key.clone()).or_default() += 1;
                    clients.remove(&port);
                }
            }
        }
    }
    counts
}

/// The value of a counter, wherever it is.
fn value_of(ports: &[u16], key: &str) -> Result<i64> {
    let mut value = None;
    wait_until("a node has the key", || {
        for port in ports {
            let Ok(mut client) = Client::connect(*port) else { continue };
            match client.call(&["GET", key])? {
                Reply::Bulk(text) => value = Some(String::from_utf8(text)?.parse()?),
                Reply::Nil => value = Some(0),
                _ => continue,
            }
            return Ok(true);
        }
        Ok(false)
    })?;
    value.context("it was found")
}

#[test]
fn no_count_is_lost_while_slots_move_and_primaries_are_killed() -> Result<()> {
    let mut deployment = Deployment::start(2, &[])?;
    deployment.add_shard(2)?;
    let ports = deployment.ports();
    let over = AtomicBool::new(false);
    let all = scope(|scope| -> Result<Vec<Counts>> {
        let (ports, over) = (&ports, &over);
        let writers: Vec<_> = [(1, Way::Command), (2, Way::Command), (3, Way::Script)]
            .map(|own| scope.spawn(move || count(ports, own, over)))
            .into();
        let moves = (|| {
            sleep(Duration::from_millis(300));
            deployment.move_slots("one", "0-4000", SHARD, OTHER_SHARD)?;
            deployment.wait_for_move("one")?;
            // The target's primary, then the source's.
            for (id, slots, index) in [("two", "4001-8191", 2), ("three", "8192-9000,16383", 0)] {
                deployment.move_slots(id, slots, SHARD, OTHER_SHARD)?;
                sleep(Duration::from_millis(30));
                deployment.nodes[index].kill();
                sleep(Duration::from_millis(500));
                deployment.nodes[index].start_again()?;
                deployment.wait_for_move(id)?;
            }
            deployment.move_slots("back", "100-300", OTHER_SHARD, SHARD)?;
            deployment.wait_for_move("back")
        })();
        over.store(true, Relaxed);
        let counts = writers.into_iter().map(|own| own.join().expect("no panic")).collect();
        moves.map(|()| counts)
    })
    .with_context(|| deployment.logs())?;
    let slots = deployment.slots_of(OTHER_SHARD)?;
    ensure!(slots == "0-99,301-9000,16383", "{slots}");
    for counts in &all {
        for (key, acknowledged) in &counts.acknowledged {
            let unknown = counts.unknown.get(key).copied().unwrap_or_default();
            let value = value_of(&ports, key)?;
            ensure!(
                (*acknowledged..=acknowledged + unknown).contains(&value),
                "{key} is {value}: {acknowledged} were acknowledged, {unknown} are unknown\n{}",
                deployment.logs()
            );
        }
    }
    Ok(())
}
