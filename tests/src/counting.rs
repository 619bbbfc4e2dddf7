//! Clients that add to counters while a cluster changes, and what the counters must have then.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::client::{Client, Reply};
use crate::cluster::moved_to;
use crate::observe::wait_until;
use crate::random::Random;

/// Counts of a client: those that were acknowledged, and those of which nothing is known.
#[derive(Debug, Default)]
pub struct Counts {
    acknowledged: HashMap<String, i64>,
    unknown: HashMap<String, i64>,
}

/// How a client adds to a counter.
#[derive(Clone, Copy, Debug)]
pub enum Way {
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
#[must_use]
pub fn count(ports: &[u16], (seed, way): (u64, Way), over: &AtomicBool) -> Counts {
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
                    Some(to) => port = to.port(),
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
///
/// # Errors
/// No node has it.
pub fn value_of(ports: &[u16], key: &str) -> Result<i64> {
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

/// Fails if a counter has less than was acknowledged, or more than was asked for. Returns how many
/// there are.
///
/// # Errors
/// A counter is wrong, or no node has it.
pub fn check_counts(ports: &[u16], all: &[Counts]) -> Result<usize> {
    let mut checked = 0;
    for counts in all {
        for (key, acknowledged) in &counts.acknowledged {
            let unknown = counts.unknown.get(key).copied().unwrap_or_default();
            let value = value_of(ports, key)?;
            ensure!(
                (*acknowledged..=acknowledged + unknown).contains(&value),
                "{key} is {value}: {acknowledged} were acknowledged, {unknown} are unknown"
            );
            checked += 1;
        }
    }
    Ok(checked)
}
