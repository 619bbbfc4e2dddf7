//! A target whose processes make up a cluster: how they come to be one, and who is primary in it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use resp::client::Value;

use super::connection::{Endpoint, in_words, info_fields};
use super::interrupt::Interrupt;
use super::kinds;
use super::member::Member;
use super::target::ClusterRule;
use super::{copied, tool};
use crate::load::topology::{self, Named, Range};

/// The name under which nodes find each other in etcd.
pub(crate) const NAME: &str = "lab";
/// What makes keys of slot 0: `{TAG}`.
pub(crate) const TAG: &str = "3560";
/// How long nodes may take to become a cluster.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one question may take.
const QUESTION: Duration = Duration::from_millis(500);
/// The pause between two looks.
const POLL: Duration = Duration::from_millis(20);
/// How many slots there are.
const SLOTS: usize = 16_384;

/// A cluster that runs.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    rule: ClusterRule,
    nodes: Vec<Endpoint>,
    /// The members of etcd, as tools take them; empty if there are none.
    etcd: String,
}

fn place(endpoint: &Endpoint) -> String {
    format!("{}:{}", endpoint.host, endpoint.port)
}

impl Cluster {
    /// Makes a cluster of processes that run, and waits until each knows all.
    ///
    /// # Errors
    /// It does not come so far.
    pub(super) fn form(
        rule: &ClusterRule,
        members: &[Member],
        interrupt: &Interrupt,
    ) -> Result<Self, String> {
        let endpoint = |place: &usize| members[*place].endpoint().clone();
        let etcd = rule.etcd.iter().map(|own| format!("http://{}", place(&endpoint(own))));
        let cluster = Cluster {
            rule: rule.clone(),
            nodes: rule.nodes.iter().map(endpoint).collect(),
            etcd: etcd.collect::<Vec<_>>().join(","),
        };
        if cluster.etcd.is_empty() {
            cluster.introduce(interrupt)?;
        } else {
            cluster.create(interrupt)?;
        }
        let replicas = rule.nodes.len() / rule.shards - 1;
        cluster.wait(interrupt, &mut |node| cluster.is_whole(node, replicas))?;
        Ok(cluster)
    }

    /// Where its nodes take commands.
    pub(crate) fn nodes(&self) -> &[Endpoint] {
        &self.nodes
    }

    /// As a user would: with `dunlin cluster create`.
    fn create(&self, interrupt: &Interrupt) -> Result<(), String> {
        let replicas = (self.nodes.len() / self.rule.shards - 1).to_string();
        let nodes: Vec<String> = self.nodes.iter().map(place).collect();
        let mut words = vec!["cluster", "create", "--etcd", &self.etcd, "--name", NAME];
        words.extend(["--yes", "--replicas", &replicas]);
        words.extend(nodes.iter().map(String::as_str));
        tool::run(&words, self.password(), interrupt).map(drop)
    }

    fn password(&self) -> Option<&str> {
        self.nodes.first()?.password.as_deref()
    }

    /// As `redis-cli --cluster create` does, which refuses less than three primaries.
    fn introduce(&self, interrupt: &Interrupt) -> Result<(), String> {
        let shards = self.rule.shards;
        let (mut ids, mut buses) = (Vec::new(), Vec::new());
        for (at, node) in self.nodes.iter().enumerate() {
            ids.push(text(&call(node, &["CLUSTER", "MYID"])?));
            let Value::Array(found) = call(node, &["CONFIG", "GET", "cluster-port"])? else {
                return Err("a node does not say where its bus is".to_owned());
            };
            buses.push(found.last().map(text).unwrap_or_default());
            call(node, &["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()])?;
            if at < shards {
                let [first, end] = [at, at + 1].map(|at| at * SLOTS / shards);
                let (first, last) = (first.to_string(), (end - 1).to_string());
                call(node, &["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
            }
        }
        for (node, bus) in self.nodes.iter().zip(&buses).skip(1) {
            let port = node.port.to_string();
            call(&self.nodes[0], &["CLUSTER", "MEET", &node.host, &port, bus])?;
        }
        let all = self.nodes.len().to_string();
        self.wait(interrupt, &mut |node| {
            let known = call(node, &["CLUSTER", "INFO"])?;
            Ok(field(&known, "cluster_known_nodes").as_deref() == Some(&all))
        })?;
        for (at, node) in self.nodes.iter().enumerate().skip(shards) {
            call(node, &["CLUSTER", "REPLICATE", &ids[at % shards]])?;
        }
        Ok(())
    }

    /// Waits until something is so of each node.
    fn wait(
        &self,
        interrupt: &Interrupt,
        is_so: &mut dyn FnMut(&Endpoint) -> Result<bool, String>,
    ) -> Result<(), String> {
        let begin = Instant::now();
        for node in &self.nodes {
            loop {
                let seen = is_so(node);
                if seen == Ok(true) {
                    break;
                }
                if interrupt.is_set() {
                    return Err("interrupted".to_owned());
                }
                if begin.elapsed() > PATIENCE {
                    let why = seen.err().map(|error| format!(": {error}")).unwrap_or_default();
                    return Err(format!("{} never became part of the cluster{why}", place(node)));
                }
                std::thread::sleep(POLL);
            }
        }
        Ok(())
    }

    /// Whether a node serves, knows all others, and has the data of its primary.
    fn is_whole(&self, node: &Endpoint, replicas: usize) -> Result<bool, String> {
        let state = call(node, &["CLUSTER", "INFO"])?;
        let role = call(node, &["INFO", "replication"])?;
        let ranges = self.ranges_of(node)?;
        let has_link = field(&role, "role").as_deref() != Some("slave")
            || field(&role, "master_link_status").as_deref() == Some("up");
        Ok(has_link
            && field(&state, "cluster_state").as_deref() == Some("ok")
            && field(&state, "cluster_slots_assigned").as_deref() == Some("16384")
            && ranges.iter().all(|range| range.nodes.len() == replicas + 1))
    }

    fn ranges_of(&self, node: &Endpoint) -> Result<Vec<Range>, String> {
        let reply = call(node, &["CLUSTER", "SLOTS"])?;
        topology::read(&reply, &node.host).map_err(|error| error.to_string())
    }

    /// Who has which slots, as the first node says that answers.
    ///
    /// # Errors
    /// None does.
    fn ranges(&self) -> Result<Vec<Range>, String> {
        let mut failure = "there is no node".to_owned();
        for node in &self.nodes {
            match self.ranges_of(node) {
                Ok(ranges) if !ranges.is_empty() => return Ok(ranges),
                Ok(_) => {}
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// The place among all processes of the one that another one names.
    fn place_of(&self, named: &Named) -> Option<usize> {
        let at = self.nodes.iter().position(|node| node.port == named.port)?;
        Some(self.rule.nodes[at])
    }

    /// The place of the primary of slot 0.
    ///
    /// # Errors
    /// Nobody knows it.
    pub(super) fn primary(&self) -> Result<usize, String> {
        let ranges = self.ranges()?;
        let owner = ranges.iter().find(|range| range.has(0)).and_then(|range| range.nodes.first());
        owner.and_then(|owner| self.place_of(owner)).ok_or_else(|| "slot 0 has no node".to_owned())
    }

    /// Waits until each replica has what its primary has now.
    ///
    /// # Errors
    /// One of them does not get it, or the lab is to end.
    pub(super) fn wait_for_replicas(
        &self,
        members: &[Member],
        interrupt: &Interrupt,
    ) -> Result<(), String> {
        for range in self.ranges()? {
            let mut own = range.nodes.iter().filter_map(|node| self.place_of(node));
            if let Some(primary) = own.next() {
                copied::wait(&members[primary], own.map(|place| &members[place]), interrupt)?;
            }
        }
        Ok(())
    }

    /// Moves this many slots, from slot 0 on, to the shard after it.
    ///
    /// # Errors
    /// The tool's words when it has failed.
    pub(crate) fn move_slots(&self, count: u16, halt: &Interrupt) -> Result<String, String> {
        let ranges = self.ranges()?;
        let owner = ranges.iter().find(|range| range.has(0)).and_then(|range| range.nodes.first());
        let owner = owner.ok_or("slot 0 has no node")?;
        let primaries = ranges.iter().filter_map(|range| range.nodes.first());
        let other = primaries.into_iter().find(|node| node.id != owner.id);
        let other = other.ok_or("there is no other shard")?;
        let endpoint = |named: &Named| {
            self.nodes.iter().find(|node| node.port == named.port).ok_or("a node is not known")
        };
        let (from, to) = (endpoint(owner)?, endpoint(other)?);
        let last = (count - 1).to_string();
        if self.etcd.is_empty() {
            // It begins at the first slot of its source, too.
            let (count, from) = (count.to_string(), place(from));
            let mut words = vec!["--cluster", "reshard", &from, "--cluster-from", &owner.id];
            words.extend(["--cluster-to", &other.id, "--cluster-slots", &count, "--cluster-yes"]);
            return tool::run_program(&redis_cli()?, &words, self.password(), halt).map(drop_all);
        }
        let shard = text(&call(to, &["CLUSTER", "MYSHARDID"])?);
        let slots = format!("0-{last}");
        let mut words = vec!["cluster", "move", &slots, "--shard", &shard, "--yes"];
        words.extend(["--timeout", "600", "--etcd", &self.etcd, "--name", NAME]);
        tool::run(&words, self.password(), halt).map(drop_all)
    }
}

/// A tool says which slots it moves, and this may be long.
fn drop_all(_: String) -> String {
    "done".to_owned()
}

fn redis_cli() -> Result<PathBuf, String> {
    let found = ["redis-cli", "valkey-cli"].into_iter().find_map(kinds::find);
    found.ok_or_else(|| "redis-cli is not installed on this machine".to_owned())
}

fn call(node: &Endpoint, words: &[&str]) -> Result<Value, String> {
    let reply = node.connect(QUESTION).and_then(|mut connection| connection.call(words));
    let failed = |why: String| format!("{}: {}: {why}", place(node), words.join(" "));
    match reply {
        Ok(reply) if reply.is_error() => Err(failed(in_words(&reply))),
        Ok(reply) => Ok(reply),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned()
}

fn field(reply: &Value, name: &str) -> Option<String> {
    let text = text(reply);
    let found = info_fields(&text).find(|(own, _)| *own == name);
    found.map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tag_makes_keys_of_slot_0() {
        assert_eq!(base::crc::key_slot(format!("{{{}}}:a", super::TAG).as_bytes()), 0);
    }
}
