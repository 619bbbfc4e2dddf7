//! Proxies on all ways between nodes, etcd and clients.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tests::client::Client;
use tests::cluster::Deployment;
use tests::host::Host;
use tests::process::owner_of_connection;
use tests::proxy::{Link, Proxy, Way};
use tests::random::Random;

use crate::network::{Network, Part, Peer};

/// The ways of connections that a node has made itself, and those of others to it.
fn ways(part: Part) -> (&'static [Way], &'static [Way]) {
    const WAYS: [Way; 2] = [Way::There, Way::Back];
    match part {
        Part::Mute => (&WAYS[..1], &WAYS[1..]),
        Part::Deaf => (&WAYS[1..], &WAYS[..1]),
        Part::Both => (&WAYS, &WAYS),
    }
}

/// See the module's text.
pub(crate) struct Proxies {
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

impl Proxies {
    /// Makes the ways for so many nodes.
    pub(crate) fn start(count: usize, etcd: &str) -> Result<Proxies> {
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
        Ok(Proxies { etcd: proxies(port)?, gates, between, clients: proxies(0)?, processes })
    }

    /// The links of a node.
    fn links_of(&self, node: usize) -> Vec<&Link> {
        let mut links: Vec<&Link> = vec![&self.etcd[node], &self.clients[node]];
        for other in 0..self.between.len() {
            links.extend([&*self.between[node][other], &self.between[other][node]]);
        }
        links
    }
}

impl Network for Proxies {
    fn place_of(&self, node: usize) -> (Host, Vec<(&'static str, String)>) {
        let options = vec![
            ("cluster-etcd", format!("http://127.0.0.1:{}", self.etcd[node].port())),
            ("cluster-announce-port", self.gates[node].port().to_string()),
        ];
        (Host::default(), options)
    }

    fn lead_to(&self, deployment: &Deployment) {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.clear();
        for (at, node) in deployment.nodes.iter().enumerate() {
            processes.push(node.pid());
            self.gates[at].lead_to(node.port());
            self.clients[at].lead_to(node.port());
        }
    }

    fn is_connected(&self, from: usize, to: usize) -> bool {
        self.between[from][to].is_open()
    }

    fn join_clients(&self) -> Result<()> {
        Ok(())
    }

    fn connect(&self, node: usize) -> Result<Client> {
        Client::connect(self.clients[node].port())
    }

    fn node_at(&self, place: SocketAddr) -> Option<usize> {
        self.gates.iter().position(|gate| gate.port() == place.port())
    }

    fn part(&self, node: usize, peers: &[Peer], part: Part) -> Result<()> {
        let (own, others) = ways(part);
        let hold = |link: &Link, ways: &[Way]| {
            ways.iter().for_each(|way| link.hold_one(*way, true));
        };
        for peer in peers {
            match *peer {
                Peer::Etcd => hold(&self.etcd[node], own),
                Peer::Clients => hold(&self.clients[node], others),
                Peer::Node(other) => {
                    hold(&self.between[node][other], own);
                    hold(&self.between[other][node], others);
                }
            }
        }
        Ok(())
    }

    fn replace_machine(&self, _: usize) -> Result<Host> {
        Ok(Host::default())
    }

    fn slow(&self, node: usize, random: &mut Random) -> Result<String> {
        let (piece, pause) = (1 + random.below(300), random.below(20_000) as u64);
        for link in self.links_of(node) {
            link.split(piece, Duration::from_micros(pause));
        }
        Ok(format!("{node} sends and gets {piece} bytes in {pause} us"))
    }

    fn cut(&self, node: usize) -> Result<String> {
        self.links_of(node).iter().for_each(|link| link.cut());
        Ok(format!("all connections of {node} are cut"))
    }

    fn heal(&self) -> Result<()> {
        for link in (0..self.between.len()).flat_map(|node| self.links_of(node)) {
            link.hold(false);
            link.split(usize::MAX, Duration::ZERO);
        }
        Ok(())
    }
}
