//! Machines of their own for nodes, etcd and clients, and a router between them, in namespaces.
//!
//! What proxies hide is here: a connection that is asked for in vain, packets that are lost without
//! a word and sent again ever less often, and a machine that is gone.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::client::{Client, SILENCE};
use tests::cluster::Deployment;
use tests::host::Host;
use tests::namespace::Namespace;
use tests::random::Random;
use tests::server::Server;

use crate::network::{Network, Part, Peer};

/// See the module's text. The router is this process's own network, which reaches all of them.
pub(crate) struct Machines {
    /// Those of the nodes, that of etcd and that of the clients.
    all: Mutex<Vec<Namespace>>,
    nodes: usize,
    /// Where nodes listen.
    places: Mutex<Vec<SocketAddr>>,
    /// What the router is to be told at the end of the cuts that there are.
    ends: Mutex<BTreeSet<String>>,
}

impl Machines {
    /// Makes them for so many nodes.
    pub(crate) fn start(nodes: usize) -> Result<Machines> {
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        tell_router(["link set lo up"])?;
        let all = (0..nodes + 2).map(plug_in).collect::<Result<_>>()?;
        let (all, places, ends) = (Mutex::new(all), Mutex::default(), Mutex::default());
        Ok(Machines { all, nodes, places, ends })
    }

    fn number(&self, peer: Peer) -> usize {
        match peer {
            Peer::Node(node) => node,
            Peer::Etcd => self.nodes,
            Peer::Clients => self.nodes + 1,
        }
    }

    fn host(&self, peer: Peer) -> Host {
        let number = self.number(peer);
        lock(&self.all)[number].host(address(number))
    }

    /// The host of etcd.
    pub(crate) fn etcd(&self) -> Host {
        self.host(Peer::Etcd)
    }

    /// Has the router lose what comes from a machine for another one.
    fn lose(&self, (from, to): (usize, usize)) -> Result<()> {
        let rule = format!("iif m{from} to {} blackhole", address(to));
        self.cut_off(&format!("rule add {rule}"), format!("rule del {rule}"))
    }

    /// Tells the router something until its end, unless it was told that already.
    fn cut_off(&self, beginning: &str, end: String) -> Result<()> {
        let is_new = lock(&self.ends).insert(end);
        if is_new { tell_router([beginning]) } else { Ok(()) }
    }
}

fn lock<T>(own: &Mutex<T>) -> MutexGuard<'_, T> {
    own.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The address of a machine.
fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, number as u8, 2)
}

/// Makes a machine, and a cable from it to the router.
fn plug_in(number: usize) -> Result<Namespace> {
    let (machine, address) = (Namespace::make()?, address(number));
    let router = format!("10.77.{number}.1");
    tell_router([
        &*format!("link add m{number} type veth peer name eth0 netns {}", machine.id()),
        &format!("address add {router}/24 dev m{number}"),
        &format!("link set m{number} up"),
    ])?;
    machine.run(&format!(
        "ip link set lo up; ip address add {address}/24 dev eth0; ip link set eth0 up
         ip route add default via {router}"
    ))?;
    Ok(machine)
}

/// Gives `ip` these lines.
fn tell_router<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let mut router = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting ip")?;
    let mut input = router.stdin.take().context("a pipe")?;
    lines.into_iter().try_for_each(|line| writeln!(input, "{line}"))?;
    drop(input);
    let output = router.wait_with_output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

impl Network for Machines {
    fn place_of(&self, node: usize) -> (Host, Vec<(&'static str, String)>) {
        let host = self.host(Peer::Node(node));
        let address = host.address.to_string();
        (host, vec![("cluster-announce-ip", address), ("protected-mode", "no".to_owned())])
    }

    fn lead_to(&self, deployment: &Deployment) {
        *lock(&self.places) = deployment.nodes.iter().map(Server::place).collect();
    }

    fn is_connected(&self, _: usize, _: usize) -> bool {
        true
    }

    fn join_clients(&self) -> Result<()> {
        lock(&self.all)[self.number(Peer::Clients)].join()
    }

    fn connect(&self, node: usize) -> Result<Client> {
        let place = lock(&self.places)[node];
        Client::connect_within(place, SILENCE)
    }

    fn node_at(&self, place: SocketAddr) -> Option<usize> {
        (0..self.nodes).find(|node| address(*node) == place.ip())
    }

    fn part(&self, node: usize, peers: &[Peer], part: Part) -> Result<()> {
        for peer in peers {
            let other = self.number(*peer);
            let ways = [(node, other), (other, node)];
            let ways = match part {
                Part::Mute => &ways[..1],
                Part::Deaf => &ways[1..],
                Part::Both => &ways,
            };
            ways.iter().try_for_each(|way| self.lose(*way))?;
        }
        Ok(())
    }

    fn replace_machine(&self, node: usize) -> Result<Host> {
        tell_router([&*format!("link del m{node}")])?;
        lock(&self.all)[node] = plug_in(node)?;
        Ok(self.host(Peer::Node(node)))
    }

    fn slow(&self, node: usize, random: &mut Random) -> Result<String> {
        let times = 1 + random.below(20);
        let mut pause = || sleep(Duration::from_millis(random.below(30) as u64));
        for _ in 0..times {
            tell_router([&*format!("rule add iif m{node} blackhole")])?;
            pause();
            tell_router([&*format!("rule del iif m{node} blackhole")])?;
            pause();
        }
        Ok(format!("what {node} sends is lost {times} times for some milliseconds"))
    }

    fn cut(&self, node: usize) -> Result<String> {
        self.cut_off(&format!("link set m{node} down"), format!("link set m{node} up"))?;
        Ok(format!("{node} is unplugged, and others are told"))
    }

    fn heal(&self) -> Result<()> {
        let ends = std::mem::take(&mut *lock(&self.ends));
        tell_router(ends.iter().map(|end| &**end))
    }
}
