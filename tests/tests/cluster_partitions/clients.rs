//! Clients that write and read registers and lists, and note when they did and what they saw.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tests::client::{Client, Reply, SILENCE, encode};
use tests::cluster::moved_to;
use tests::random::Random;

use crate::history::{Kind, Operation};
use crate::network::Network;
use crate::partitions::shard_of;

/// So many registers, and lists, are in use at a time.
const KEYS: usize = 4;

/// What clients have in common.
pub(crate) struct Work<'a> {
    pub(crate) network: &'a dyn Network,
    /// Times count from here.
    pub(crate) begun: Instant,
    pub(crate) nodes: usize,
    pub(crate) over: AtomicBool,
    /// Keys carry the number of their block, and most that of their round as well, so that no
    /// history grows too long for the judge.
    pub(crate) block: u64,
    pub(crate) round: AtomicUsize,
    /// How many writes each shard has acknowledged.
    pub(crate) acknowledged: [AtomicU64; 2],
}

/// One of them.
pub(crate) struct Worker<'a> {
    work: &'a Work<'a>,
    number: usize,
    random: Random,
    connections: HashMap<usize, Client>,
    /// Who was last known to have a key.
    owners: HashMap<String, usize>,
    /// Values are there once.
    values: usize,
    history: Vec<Operation>,
}

/// What came of one attempt.
enum Outcome {
    Done(Option<String>, Option<i64>, Option<u64>),
    /// Another node has the key, and nothing was done.
    Moved(Option<usize>),
    Unknown,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(work: &'a Work<'a>, number: usize, seed: u64) -> Worker<'a> {
        let random = Random::new(seed);
        let (connections, owners) = (HashMap::new(), HashMap::new());
        Worker { work, number, random, connections, owners, values: 0, history: Vec::new() }
    }

    /// Works until told to stop. Returns what it did.
    pub(crate) fn run(mut self) -> Result<Vec<Operation>> {
        self.work.network.join_clients()?;
        while !self.work.over.load(Relaxed) {
            let kinds = [Kind::Set, Kind::Set, Kind::Get, Kind::Push, Kind::Push, Kind::List];
            let kind = *self.random.pick(&kinds);
            let key = self.key(kind);
            self.operate(&key, kind);
            sleep(Duration::from_micros(self.random.below(4000) as u64));
        }
        Ok(self.history)
    }

    /// Reads what each key has at last.
    pub(crate) fn read_all(mut self, history: &[Operation]) -> Result<Vec<Operation>> {
        let mut keys: Vec<_> = history.iter().map(|own| (&own.key, own.kind)).collect();
        keys.sort_by_key(|(key, _)| *key);
        keys.dedup_by_key(|(key, _)| *key);
        for (key, kind) in keys {
            let kind = if matches!(kind, Kind::Set | Kind::Get) { Kind::Get } else { Kind::List };
            tests::observe::wait_until("the key is read", || Ok(self.operate(key, kind)))
                .with_context(|| key.clone())?;
        }
        Ok(self.history)
    }

    fn key(&mut self, kind: Kind) -> String {
        let letter = if matches!(kind, Kind::Set | Kind::Get) { 'r' } else { 'l' };
        let (block, number) = (self.work.block, self.random.below(KEYS));
        match self.random.percent(25) {
            true => format!("{letter}:{block}:{number}"),
            false => format!("{letter}:{block}:{}:{number}", self.work.round.load(Relaxed)),
        }
    }

    fn now(&self) -> u64 {
        self.work.begun.elapsed().as_nanos() as u64
    }

    /// Does one operation, and notes it. Returns whether its outcome is known.
    fn operate(&mut self, key: &str, kind: Kind) -> bool {
        let value = matches!(kind, Kind::Set | Kind::Push).then(|| {
            self.values += 1;
            format!("{}.{}", self.number, self.values)
        });
        loop {
            let anybody = self.random.below(self.work.nodes);
            let node = self.owners.get(key).copied().unwrap_or(anybody);
            let call = self.now();
            let outcome = self.attempt(node, key, kind, value.as_deref());
            let mut noted = Operation {
                client: self.number,
                key: key.to_owned(),
                kind,
                value: value.clone(),
                length: None,
                call,
                returned: None,
                node,
                shard: shard_of(node),
                epoch: None,
            };
            match outcome {
                Ok(Outcome::Done(seen, length, epoch)) => {
                    if value.is_none() {
                        noted.value = seen;
                    } else {
                        self.work.acknowledged[shard_of(node)].fetch_add(1, Relaxed);
                    }
                    (noted.length, noted.epoch) = (length, epoch);
                    noted.returned = Some(self.now());
                    self.history.push(noted);
                    self.owners.insert(key.to_owned(), node);
                    return true;
                }
                Ok(Outcome::Moved(to)) => {
                    match to {
                        Some(to) => self.owners.insert(key.to_owned(), to),
                        None => self.owners.remove(key),
                    };
                    // Two nodes may send it to each other for a while.
                    if self.work.over.load(Relaxed) || self.random.percent(10) {
                        return false;
                    }
                }
                unknown => {
                    if unknown.is_err() {
                        self.connections.remove(&node);
                    }
                    self.owners.remove(key);
                    // Nothing is learnt from a read without an answer.
                    if value.is_some() {
                        self.history.push(noted);
                    }
                    sleep(Duration::from_millis(10));
                    return false;
                }
            }
        }
    }

    /// Asks a node. An error says that nobody knows what becomes of it.
    fn attempt(
        &mut self,
        node: usize,
        key: &str,
        kind: Kind,
        value: Option<&str>,
    ) -> Result<Outcome> {
        let value = value.unwrap_or_default();
        // A script that may write is answered when all before it is durable. A plain read may see
        // what a failover takes back.
        let words = match kind {
            Kind::Set => vec!["SET", key, value],
            Kind::Push => vec!["RPUSH", key, value],
            Kind::Get => vec!["EVAL", "return redis.call('get', KEYS[1])", "1", key],
            Kind::List => vec!["EVAL", "return redis.call('lrange', KEYS[1], 0, -1)", "1", key],
        };
        let mut request = Vec::new();
        encode(&words, &mut request);
        encode(&["CLUSTER", "INFO"], &mut request);
        if !self.connections.contains_key(&node) {
            self.connections.insert(node, self.work.network.connect(node)?);
        }
        let client = self.connections.get_mut(&node).context("a connection")?;
        client.send_raw(&request)?;
        let reply = client.receive_within(SILENCE)?;
        // It was asked in the same moment.
        let epoch = match client.receive_within(SILENCE) {
            Ok(info) => epoch(&info),
            Err(_) => {
                self.connections.remove(&node);
                None
            }
        };
        Ok(match reply {
            Reply::Status(_) => Outcome::Done(None, None, epoch),
            Reply::Integer(length) => Outcome::Done(None, Some(length), epoch),
            Reply::Nil => Outcome::Done(None, None, epoch),
            Reply::Bulk(text) => Outcome::Done(Some(String::from_utf8(text)?), None, epoch),
            Reply::Array(elements) => {
                let texts: Vec<_> = elements.iter().filter_map(Reply::text).collect();
                let text = String::from_utf8(texts.join(&b","[..]))?;
                Outcome::Done((!text.is_empty()).then_some(text), None, epoch)
            }
            Reply::Error(text) => match moved_to(&text) {
                Some(place) => Outcome::Moved(self.work.network.node_at(place)),
                None => Outcome::Unknown,
            },
            other => bail!("{other:?}"),
        })
    }
}

/// The epoch of the node's shard, as it is in CLUSTER INFO.
fn epoch(info: &Reply) -> Option<u64> {
    let info = String::from_utf8_lossy(info.text()?).into_owned();
    info.lines().find_map(|line| line.strip_prefix("cluster_my_epoch:")?.parse().ok())
}
