//! Nodes of a cluster with an etcd of their own, which clients and failures then meet.

use std::net::SocketAddr;
use std::ops::Range;

use anyhow::{Context, Result, bail};

use crate::client::{Client, Reply, SILENCE};
use crate::etcd_members::EtcdMembers;
use crate::host::Host;
use crate::observe::wait_until;
use crate::server::{Server, Target};

/// Milliseconds for which a silent primary keeps its place here, unless a test says otherwise.
pub const NODE_TIMEOUT: u64 = 2000;
/// The first shard, which begins with all slots.
pub const SHARD: &str = "00000000000000000000000000000000000000aa";
/// The one that comes after it, and begins with none.
pub const OTHER_SHARD: &str = "00000000000000000000000000000000000000bb";
/// All slots.
pub const ALL_SLOTS: &str = "0-16383";
const PREFIX: &str = "/dunlin/dunlin/";

/// See the module's text. Dropping it ends everything.
#[derive(Debug)]
pub struct Deployment {
    /// The nodes, in the order in which they were started.
    pub nodes: Vec<Server>,
    /// Where they keep what they agree on.
    pub etcd: EtcdMembers,
}

impl Deployment {
    /// Starts an etcd, and no node yet.
    ///
    /// # Errors
    /// As [`EtcdMembers::start`].
    pub fn empty() -> Result<Deployment> {
        Deployment::empty_on(Host::default())
    }

    /// The same with etcd on some host.
    ///
    /// # Errors
    /// As [`EtcdMembers::start`].
    pub fn empty_on(host: Host) -> Result<Deployment> {
        Ok(Deployment { nodes: Vec::new(), etcd: EtcdMembers::start_on(host)? })
    }

    /// Starts so many nodes that form one shard with all slots, and waits until one of them leads
    /// and the others follow.
    ///
    /// # Errors
    /// They do not come to that.
    pub fn start(count: usize, options: &[(&str, &str)]) -> Result<Deployment> {
        let mut deployment = Deployment::empty()?;
        deployment.start_nodes(count, options)?;
        deployment.form_shard(SHARD, ALL_SLOTS, 0..count)?;
        deployment.wait_until_whole()?;
        Ok(deployment)
    }

    /// Starts nodes that belong to no shard yet. They acknowledge writes at quorum.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_nodes(&mut self, count: usize, options: &[(&str, &str)]) -> Result<()> {
        self.start_each(count, options, |all| Server::start(Target::Dunlin, all))
    }

    /// Starts one of them on some host.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_node_on(&mut self, host: Host, options: &[(&str, &str)]) -> Result<()> {
        self.start_each(1, options, |all| Server::start_on(host.clone(), all))
    }

    /// The same with HTTP. Returns the ports of that.
    ///
    /// # Errors
    /// As [`Server::start_with_http`].
    pub fn start_nodes_with_http(
        &mut self,
        count: usize,
        options: &[(&str, &str)],
    ) -> Result<Vec<u16>> {
        let mut ports = Vec::new();
        self.start_each(count, options, |all| {
            let (server, port) = Server::start_with_http(all)?;
            ports.push(port);
            Ok(server)
        })?;
        Ok(ports)
    }

    fn start_each(
        &mut self,
        count: usize,
        options: &[(&str, &str)],
        mut start: impl FnMut(&[(&str, &str)]) -> Result<Server>,
    ) -> Result<()> {
        let (address, timeout) = (self.etcd.url(0), NODE_TIMEOUT.to_string());
        let mut all = vec![
            ("cluster-enabled", "yes"),
            ("cluster-etcd", &*address),
            ("cluster-node-timeout", &*timeout),
            ("cluster-durability", "quorum"),
            ("repl-diskless-sync-delay", "0"),
        ];
        all.extend(options);
        for _ in 0..count {
            self.nodes.push(start(&all)?);
        }
        Ok(())
    }

    /// Starts another shard of so many nodes, which has no slots, and waits until one leads and has
    /// the others as replicas.
    ///
    /// # Errors
    /// They do not come to that.
    pub fn add_shard(&mut self, count: usize) -> Result<()> {
        let first = self.nodes.len();
        self.start_nodes(count, &[])?;
        self.form_shard(OTHER_SHARD, "", first..first + count)?;
        self.wait_for_leader(first..first + count).map(drop)
    }

    /// Writes a value into etcd, at a name behind the prefix of the cluster.
    ///
    /// # Errors
    /// etcd does not take it.
    pub fn put(&self, name: &str, value: &str) -> Result<()> {
        self.etcd.control(&["put", &format!("{PREFIX}{name}"), value]).map(drop)
    }

    /// Has a node belong to a shard. Returns its name.
    ///
    /// # Errors
    /// The node does not make itself known.
    pub fn join(&self, node: usize, shard: &str) -> Result<String> {
        let node = &self.nodes[node];
        let name = node.connect()?.call_text("CLUSTER MYID")?;
        let name = String::from_utf8(name.text().context("a name")?.to_vec())?;
        let key = format!("{PREFIX}members/{name}");
        let mut value = String::new();
        wait_until("the node has made itself known", || {
            value = self.etcd.control(&["get", "--print-value-only", &key])?;
            Ok(value.starts_with('{'))
        })
        .with_context(|| node.log_tail())?;
        let rest = value.trim().strip_prefix('{').context("an object")?;
        let rest = rest.strip_prefix("\"shard\":null,").unwrap_or(rest);
        self.put(&format!("members/{name}"), &format!("{{\"shard\":\"{shard}\",{rest}"))?;
        Ok(name)
    }

    /// Has nodes be the members of a shard that owns some slots.
    ///
    /// # Errors
    /// As [`Deployment::join`].
    pub fn form_shard(&self, shard: &str, slots: &str, nodes: Range<usize>) -> Result<()> {
        let mut names = Vec::new();
        for node in nodes {
            names.push(format!("\"{}\"", self.join(node, shard)?));
        }
        names.sort();
        let value = format!("{{\"slots\":\"{slots}\",\"members\":[{}]}}", names.join(","));
        self.put(&format!("shards/{shard}"), &value)
    }

    /// Asks for a move of slots.
    ///
    /// # Errors
    /// As [`Deployment::put`].
    pub fn move_slots(&self, id: &str, slots: &str, from: &str, to: &str) -> Result<()> {
        let value = format!(
            "{{\"slots\":\"{slots}\",\"from\":\"{from}\",\"to\":\"{to}\",\"state\":\"wanted\"}}"
        );
        self.put(&format!("migrations/{id}"), &value)
    }

    /// Waits until a move is over.
    ///
    /// # Errors
    /// It never is.
    pub fn wait_for_move(&self, id: &str) -> Result<()> {
        let key = format!("{PREFIX}migrations/{id}");
        wait_until("the slots have moved", || Ok(self.etcd.control(&["get", &key])?.is_empty()))
    }

    /// The slots of a shard.
    ///
    /// # Errors
    /// There is no such shard.
    pub fn slots_of(&self, shard: &str) -> Result<String> {
        let key = format!("{PREFIX}shards/{shard}");
        let value = self.etcd.control(&["get", "--print-value-only", &key])?;
        let slots = value.split("\"slots\":\"").nth(1).and_then(|rest| rest.split('"').next());
        Ok(slots.context("slots")?.to_owned())
    }

    /// Whether a node says that it is a primary.
    #[must_use]
    pub fn is_primary(&self, node: usize) -> bool {
        self.says(node, &["role:master"])
    }

    /// Whether a node serves the key `{w}` as its primary. It says that it is a primary a moment
    /// before that.
    #[must_use]
    pub fn serves(&self, node: usize) -> bool {
        let read = self.nodes[node].connect();
        let read = read.and_then(|mut client| client.call_within(&["GET", "{w}"], SILENCE));
        read.is_ok_and(|reply| !reply.is_error())
    }

    /// Which of some nodes is a primary that all others of them follow.
    #[must_use]
    pub fn leader(&self, mut nodes: Range<usize>) -> Option<usize> {
        let followed = format!("connected_slaves:{}\r\n", nodes.len() - 1);
        nodes.find(|node| self.says(*node, &["role:master", &followed]))
    }

    /// Whether a node says all of that of its part in replication. One that stands still says
    /// nothing.
    fn says(&self, node: usize, texts: &[&str]) -> bool {
        let info = self.nodes[node].connect().and_then(|mut client| {
            let info = client.call_within(&["INFO", "replication"], SILENCE)?;
            Ok(String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned())
        });
        info.is_ok_and(|info| texts.iter().all(|text| info.contains(text)))
    }

    /// Waits until one of some nodes is a primary that all others of them follow, and have the data
    /// of.
    ///
    /// # Errors
    /// None ever is.
    pub fn wait_for_leader(&self, nodes: Range<usize>) -> Result<usize> {
        let mut found = None;
        wait_until("the shard has a primary", || {
            found = self.leader(nodes.clone());
            let mut others = nodes.clone().filter(|node| Some(*node) != found);
            Ok(found.is_some() && others.all(|node| self.says(node, &["master_link_status:up"])))
        })
        .with_context(|| self.logs())?;
        found.context("it was found")
    }

    /// Which node takes writes to the key `{w}`, if one does.
    #[must_use]
    pub fn primary(&self) -> Option<usize> {
        (0..self.nodes.len()).find(|index| takes_writes(self.nodes[*index].port()))
    }

    /// Waits until a node takes writes, and returns which one.
    ///
    /// # Errors
    /// None does.
    pub fn wait_for_primary(&self) -> Result<usize> {
        let mut found = None;
        let waited = wait_until("a node takes writes", || {
            found = self.primary();
            Ok(found.is_some())
        });
        if waited.is_err() {
            let logs: Vec<_> = self.nodes.iter().map(|node| node.log_tail()).collect();
            bail!("nobody takes writes:\n{}", logs.join("\n----\n"));
        }
        found.context("it was found")
    }

    /// Waits until one node leads, and all others follow it and are members.
    ///
    /// # Errors
    /// They do not come to that.
    pub fn wait_until_whole(&self) -> Result<usize> {
        let primary = self.wait_for_primary()?;
        let place = format!("master_port:{}\r\n", self.nodes[primary].port());
        for index in (0..self.nodes.len()).filter(|index| *index != primary) {
            wait_until("it follows", || Ok(self.says(index, &[&place, "master_link_status:up"])))
                .with_context(|| self.nodes[index].log_tail())?;
        }
        Ok(primary)
    }

    /// All ports.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(Server::port).collect()
    }

    /// The logs of all nodes, for failures.
    #[must_use]
    pub fn logs(&self) -> String {
        let logs: Vec<_> =
            self.nodes.iter().map(|node| format!("{}:\n{}", node.place(), node.log())).collect();
        logs.join("\n----\n")
    }
}

/// Whether a node takes writes to the key `{w}`.
#[must_use]
pub fn takes_writes(port: u16) -> bool {
    let written = Client::connect(port)
        .and_then(|mut client| client.call_within(&["SET", "{w}", "x"], SILENCE));
    written.is_ok_and(|reply| reply == Reply::Status(b"OK".to_vec()))
}

/// Where a reply sends the client.
#[must_use]
pub fn moved_to(text: &[u8]) -> Option<SocketAddr> {
    let text = String::from_utf8_lossy(text);
    text.strip_prefix("MOVED ")?.rsplit(' ').next()?.parse().ok()
}
