//! Partitions by chance, under clients.

use std::io::{Write, stderr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::cluster::{Deployment, OTHER_SHARD, SHARD};
use tests::namespace;
use tests::observe::wait_until;
use tests::process;
use tests::random::Random;

use crate::clients::{Work, Worker};
use crate::history::{Operation, judge, one_primary_at_a_time};
use crate::machines::Machines;
use crate::network::{Network, Part, Peer};
use crate::proxies::Proxies;

/// Nodes of the first shard, and of both.
pub(crate) const FIRST: usize = 3;
pub(crate) const ALL: usize = 5;

/// The shard of a node.
pub(crate) fn shard_of(node: usize) -> usize {
    usize::from(node >= FIRST)
}

/// Milliseconds of a lease: the shortest that there is.
const LEASE: u64 = 1000;

/// So many partitions have a history together.
const BLOCK: u64 = 5;

/// Writes of a shard that show that it works.
const ENOUGH: u64 = 20;

/// The slots that move to and fro: those of some of the keys.
const MOVING: &str = "4000-7999";

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// Nodes, and all ways between them.
pub(crate) struct World {
    pub(crate) deployment: Deployment,
    pub(crate) network: Arc<dyn Network>,
    moves: u64,
    /// How many disturbances there were.
    disturbed: usize,
    /// Nodes that stand still, and nodes whose process is gone.
    stopped: Vec<usize>,
    killed: Vec<usize>,
}

impl World {
    fn of_proxies() -> Result<World> {
        let deployment = Deployment::empty()?;
        let proxies = Proxies::start(ALL, &deployment.etcd.url(0))?;
        World::start(deployment, Arc::new(proxies))
    }

    pub(crate) fn of_machines() -> Result<World> {
        let machines = Machines::start(ALL)?;
        World::start(Deployment::empty_on(machines.etcd())?, Arc::new(machines))
    }

    fn start(mut deployment: Deployment, network: Arc<dyn Network>) -> Result<World> {
        let timeout = LEASE.to_string();
        for node in 0..ALL {
            let (host, ways) = network.place_of(node);
            let mut options: Vec<_> = ways.iter().map(|(name, value)| (*name, &**value)).collect();
            options.extend([("cluster-node-timeout", &*timeout), ("durability-timeout", "500")]);
            // Nothing waits for that.
            options.extend([("appendonly", "yes"), ("repl-timeout", "3600")]);
            deployment.start_node_on(host, &options)?;
        }
        network.lead_to(&deployment);
        deployment.form_shard(SHARD, "0-8191", 0..FIRST)?;
        deployment.form_shard(OTHER_SHARD, "8192-16383", FIRST..ALL)?;
        deployment.wait_for_leader(0..FIRST)?;
        deployment.wait_for_leader(FIRST..ALL)?;
        let world = World {
            deployment,
            network,
            moves: 0,
            disturbed: 0,
            stopped: Vec::new(),
            killed: Vec::new(),
        };
        // Who has made a connection has to be known, or nothing would be parted.
        for (from, to) in (0..ALL).flat_map(|from| (0..ALL).map(move |to| (from, to))) {
            let are_peers = from != to && shard_of(from) == shard_of(to);
            wait_until("nodes are connected", || {
                Ok(!are_peers || world.network.is_connected(from, to))
            })?;
        }
        Ok(world)
    }

    /// A node: a primary more often than not.
    fn node(&self, random: &mut Random) -> usize {
        let nodes = if random.percent(50) { 0..FIRST } else { FIRST..ALL };
        let anybody = random.below(ALL);
        let leader = self.deployment.leader(nodes).filter(|_| random.percent(60));
        leader.unwrap_or(anybody)
    }

    /// Does something to some nodes or their ways, and says what.
    fn disturb(&mut self, random: &mut Random) -> Result<String> {
        let (network, node) = (&self.network, self.node(random));
        if self.killed.contains(&node) {
            return Ok(format!("{node} stays dead"));
        }
        let part = *random.pick(&[Part::Both, Part::Both, Part::Mute, Part::Deaf]);
        let others = (0..ALL).filter(|other| *other != node).map(Peer::Node);
        let all: Vec<_> = [Peer::Clients, Peer::Etcd].into_iter().chain(others).collect();
        // Two in turn are of different kinds, and a few of many.
        self.disturbed += 1;
        match (self.disturbed * 5) % 13 {
            0 | 1 => {
                network.part(node, &[Peer::Etcd], part)?;
                Ok(format!("{part:?}: {node} and etcd"))
            }
            2 | 3 => {
                network.part(node, &all[2..], part)?;
                Ok(format!("{part:?}: {node} and all nodes"))
            }
            4 => {
                network.part(node, &all[1..], part)?;
                Ok(format!("{part:?}: {node}, all nodes and etcd"))
            }
            5 => {
                network.part(node, &all, part)?;
                Ok(format!("{part:?}: {node} and all"))
            }
            6 => {
                let other = (node + 1 + random.below(ALL - 1)) % ALL;
                network.part(node, &[Peer::Node(other)], part)?;
                Ok(format!("{part:?}: {node} and {other}"))
            }
            7 => {
                (0..ALL).try_for_each(|node| network.part(node, &[Peer::Etcd], part))?;
                Ok(format!("{part:?}: all nodes and etcd"))
            }
            8 => network.slow(node, random),
            9 => network.cut(node),
            10 => {
                process::stop(self.deployment.nodes[node].pid())?;
                self.stopped.push(node);
                Ok(format!("{node} stands still"))
            }
            11 => {
                let has_power = random.percent(50);
                if !has_power {
                    network.part(node, &all, Part::Both)?;
                }
                // Behind a proxy nobody sees that its port is closed.
                let process = &mut self.deployment.nodes[node];
                process.kill();
                if !has_power {
                    process.set_host(network.replace_machine(node)?);
                }
                self.stopped.retain(|own| *own != node);
                self.killed.push(node);
                Ok(format!("{node} is killed{}", if has_power { "" } else { " with its machine" }))
            }
            _ => {
                let asked = self.deployment.nodes[node].connect();
                let asked = asked.and_then(|mut client| client.send(&["CLUSTER", "FAILOVER"]));
                // One that is unplugged is not asked.
                let heard = if asked.is_ok() { "is" } else { "cannot be asked" };
                Ok(format!("{node} {heard} to be primary"))
            }
        }
    }

    /// Lets slots move, if none do.
    fn move_slots(&mut self) -> Result<()> {
        self.moves += 1;
        let is_first = !self.deployment.slots_of(SHARD)?.starts_with("0-3999");
        let (from, to) = if is_first { (SHARD, OTHER_SHARD) } else { (OTHER_SHARD, SHARD) };
        self.deployment.move_slots(&format!("m{}", self.moves), MOVING, from, to)
    }

    /// Ends what was done.
    fn heal(&mut self) -> Result<()> {
        self.network.heal()?;
        let mut stopped = std::mem::take(&mut self.stopped);
        stopped.dedup();
        for node in stopped {
            process::resume(self.deployment.nodes[node].pid())?;
        }
        for node in std::mem::take(&mut self.killed) {
            self.deployment.nodes[node].start_again()?;
            self.network.lead_to(&self.deployment);
        }
        Ok(())
    }

    /// One partition, or two at a time, of some length, and its end. Returns what was done.
    fn round(&mut self, random: &mut Random, work: &Work<'_>) -> Result<String> {
        let mut told = String::new();
        let moves = random.percent(30);
        if moves {
            self.move_slots()?;
            told += "slots move; ";
        }
        for _ in 0..1 + random.below(2) {
            told += &self.disturb(random)?;
            told += "; ";
            sleep(Duration::from_millis(random.below(100) as u64));
        }
        // Some are over before a lease is. A few are long enough for packets that are sent again
        // ever less often.
        let most = *random.pick(&[300, 300, 300, 300, 300, 2500, 2500, 2500, 2500, 10_000]);
        let length = random.below(most);
        told += &format!("{length} ms");
        sleep(Duration::from_millis(length as u64));
        let kills = !self.killed.is_empty();
        self.heal()?;
        let healed = Instant::now();
        let before = [0, 1].map(|shard| work.acknowledged[shard].load(Relaxed));
        for (shard, before) in before.iter().enumerate() {
            wait_until("the shard takes writes again", || {
                Ok(work.acknowledged[shard].load(Relaxed) >= before + ENOUGH)
            })
            .with_context(|| format!("shard {shard} after: {told}"))?;
        }
        told += &format!("; writes after {} ms", healed.elapsed().as_millis());
        if kills {
            // The next one may be another of the same shard.
            self.deployment.wait_for_leader(0..FIRST)?;
            self.deployment.wait_for_leader(FIRST..ALL)?;
        }
        if moves {
            self.deployment
                .wait_for_move(&format!("m{}", self.moves))
                .with_context(|| format!("after: {told}"))?;
        }
        Ok(told)
    }
}

/// Clients work while partitions come and go. Returns what was done, and what clients have seen.
fn block(
    world: &mut World,
    (seed, block, count): (u64, u64, u64),
) -> Result<(Vec<String>, Vec<Operation>)> {
    let network = Arc::clone(&world.network);
    let work = Work {
        network: &*network,
        begun: Instant::now(),
        nodes: ALL,
        over: AtomicBool::new(false),
        block,
        round: AtomicUsize::new(0),
        acknowledged: Default::default(),
    };
    let mut random = Random::new(seed);
    let workers = (0..5).map(|number| Worker::new(&work, number, random.bits()));
    let workers: Vec<_> = workers.collect();
    let (told, mut history) = scope(|scope| {
        let threads: Vec<_> =
            workers.into_iter().map(|own| scope.spawn(move || own.run())).collect();
        let mut told = Vec::new();
        let played = (0..count).try_for_each(|round| -> Result<()> {
            work.round.store(round as usize, Relaxed);
            told.push(world.round(&mut random, &work)?);
            Ok(())
        });
        // They do not end while a node stands still.
        let healed = world.heal();
        work.over.store(true, Relaxed);
        let all: Result<Vec<_>> =
            threads.into_iter().map(|own| own.join().expect("no panic")).collect();
        played.and(healed).and(all).map(|all| (told, all.concat()))
    })?;
    work.over.store(false, Relaxed);
    let last = Worker::new(&work, 9, seed).read_all(&history)?;
    history.extend(last);
    Ok((told, history))
}

/// Goes through as many partitions as are wanted.
fn endure(world: &mut World) -> Result<()> {
    let count = setting("DUNLIN_PARTITIONS", 4);
    let seed = setting("DUNLIN_SEED", 1);
    for first in (0..count).step_by(BLOCK as usize) {
        let (own, size) = (seed.wrapping_mul(1000) + first, BLOCK.min(count - first));
        let (told, history) = block(world, (own, first, size)).with_context(|| {
            format!("block {first} of seed {seed}\n{}", world.deployment.logs())
        })?;
        let known = history.iter().filter(|own| own.returned.is_some()).count();
        let judged = one_primary_at_a_time(&history).and_then(|()| judge(&history));
        let judged = judged.with_context(|| {
            format!("block {first} of seed {seed}: {told:#?}\n{}", world.deployment.logs())
        })?;
        let (all, told) = (history.len(), told.join("\n    "));
        let _ =
            writeln!(stderr(), "{known} of {all} operations were answered; {judged}:\n    {told}");
        ensure!(known > 40 * size as usize, "only {known} operations were answered");
    }
    Ok(())
}

/// The worlds are there one after the other, since each has many processes.
pub(crate) static ONE: Mutex<()> = Mutex::new(());

#[test]
fn no_partition_by_proxies_loses_a_write_or_makes_two_primaries() -> Result<()> {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    endure(&mut World::of_proxies()?)
}

#[test]
fn no_partition_of_machines_loses_a_write_or_makes_two_primaries() -> Result<()> {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let name = "partitions::no_partition_of_machines_loses_a_write_or_makes_two_primaries";
    namespace::within(name, || endure(&mut World::of_machines()?))
}
