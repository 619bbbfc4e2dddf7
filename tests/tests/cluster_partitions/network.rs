//! Proxies on all ways between nodes, etcd and clients.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tests::cluster::Deployment;
use tests::process::owner_of_connection;
use tests::proxy::{Link, Proxy, Way};

/// Which of a node's bytes do not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Those that it sends.
    Mute,
    /// Those that it is sent.
    Deaf,
    /// All.
    Both,
}

impl Part {
    /// The ways of connections that the node has made itself, and those of others to it.
    fn ways(self) -> (&'static [Way], &'static [Way]) {
        const WAYS: [Way; 2] = [Way::There, Way::Back];
        match self {
            Part::Mute => (&WAYS[..1], &WAYS[1..]),
            Part::Deaf => (&WAYS[1..], &WAYS[..1]),
            Part::Both => (&WAYS, &WAYS),
        }
    }
}

/// See the module's text.
pub(crate) struct Network {
    /// From each node to etcd.
    etcd: Vec<Proxy>,
    /// To each node from other nodes, which know it by this address.
    gates: Vec<Proxy>,
    /// The connections that go through gates: by who has made them, and to whom.
    between: Vec<Vec<Arc<Link>>>,
    /// To each node from clients.
    clients: Vec<Proxy>,
    /// The processes of the nodes.
    processes: Arc<Mutex<Vec<u32>>>,
}

impl Network {
    /// Makes the ways for so many nodes.
    pub(crate) fn start(count: usize, etcd: &str) -> Result<Network> {
        let port = etcd.rsplit(':').next().context("a port")?.parse()?;
        let processes = Arc::<Mutex<Vec<u32>>>::default();
        let links = |_| (0..count).map(|_| Arc::<Link>::default()).collect();
        let between: Vec<Vec<Arc<Link>>> = (0..count).map(links).collect();
        let mut gates = Vec::new();
        for to in 0..count {
            let links: Vec<_> = between.iter().map(|from| Arc::clone(&from[to])).collect();
            let processes = Arc::clone(&processes);
            gates.push(Proxy::start_with(0, move |port, others| {
                let processes = processes.lock().unwrap_or_else(PoisonError::into_inner);
                let from = owner_of_connection(port, &processes).ok().flatten();
                Arc::clone(from.map_or(others, |from| &links[from]))
            })?);
        }
        let proxies = |to| (0..count).map(|_| Proxy::start(to)).collect::<Result<Vec<_>>>();
        Ok(Network { etcd: proxies(port)?, gates, between, clients: proxies(0)?, processes })
    }

    /// What a node is told so that it goes these ways.
    pub(crate) fn options(&self, node: usize) -> [(&'static str, String); 2] {
        [
            ("cluster-etcd", format!("http://127.0.0.1:{}", self.etcd[node].port())),
            ("cluster-announce-port", self.gates[node].port().to_string()),
        ]
    }

    /// Leads to nodes that run by now.
    pub(crate) fn lead_to(&self, deployment: &Deployment) {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.clear();
        for (at, node) in deployment.nodes.iter().enumerate() {
            processes.push(node.pid());
            self.gates[at].lead_to(node.port());
            self.clients[at].lead_to(node.port());
        }
    }

    /// The port at which clients find a node.
    pub(crate) fn port(&self, node: usize) -> u16 {
        self.clients[node].port()
    }

    /// Which node is announced with this port.
    pub(crate) fn announced(&self, port: u16) -> Option<usize> {
        self.gates.iter().position(|gate| gate.port() == port)
    }

    /// Parts a node from etcd.
    pub(crate) fn part_from_etcd(&self, node: usize, part: Part) {
        part.ways().0.iter().for_each(|way| self.etcd[node].hold_one(*way, true));
    }

    /// Parts a node from clients.
    pub(crate) fn part_from_clients(&self, node: usize, part: Part) {
        part.ways().1.iter().for_each(|way| self.clients[node].hold_one(*way, true));
    }

    /// Parts a node from another one.
    pub(crate) fn part_from(&self, node: usize, other: usize, part: Part) {
        let (own, others) = part.ways();
        own.iter().for_each(|way| self.between[node][other].hold_one(*way, true));
        others.iter().for_each(|way| self.between[other][node].hold_one(*way, true));
    }

    /// The links of a node.
    pub(crate) fn links_of(&self, node: usize) -> Vec<&Link> {
        let mut links: Vec<&Link> = vec![&self.etcd[node], &self.clients[node]];
        for other in 0..self.between.len() {
            links.extend([&*self.between[node][other], &self.between[other][node]]);
        }
        links
    }

    /// Ends what was done to the ways.
    pub(crate) fn heal(&self) {
        for link in (0..self.between.len()).flat_map(|node| self.links_of(node)) {
            link.hold(false);
            link.split(usize::MAX, Duration::ZERO);
        }
    }

    /// Whether a node has connected to another one.
    pub(crate) fn is_connected(&self, from: usize, to: usize) -> bool {
        self.between[from][to].is_open()
    }
}
