//! The ways between nodes, etcd and clients.

use std::net::SocketAddr;

use anyhow::Result;
use tests::client::Client;
use tests::cluster::Deployment;
use tests::host::Host;
use tests::random::Random;

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

/// What a node may be parted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Node(usize),
    Etcd,
    Clients,
}

/// See the module's text. Nobody is told what does not arrive, unless it is said otherwise.
pub(crate) trait Network: Sync {
    /// Where a node runs, and what it is told so that it goes these ways.
    fn place_of(&self, node: usize) -> (Host, Vec<(&'static str, String)>);

    /// Leads to nodes that run by now.
    fn lead_to(&self, deployment: &Deployment);

    /// Whether a node can be parted from another one to which it has to be connected.
    fn is_connected(&self, from: usize, to: usize) -> bool;

    /// Has the calling thread be one of a client.
    fn join_clients(&self) -> Result<()>;

    /// Connects a client to a node.
    fn connect(&self, node: usize) -> Result<Client>;

    /// Which node is announced with this place.
    fn node_at(&self, place: SocketAddr) -> Option<usize>;

    /// Parts a node from others.
    fn part(&self, node: usize, peers: &[Peer], part: Part) -> Result<()>;

    /// Puts another machine in the place of that of a node, whose process is gone: it knows
    /// nothing of connections of before, as after a power cut. Returns where the next process runs.
    fn replace_machine(&self, node: usize) -> Result<Host>;

    /// Slows a node down, and says how.
    fn slow(&self, node: usize, random: &mut Random) -> Result<String>;

    /// Cuts a node off in a way that others are told of, and says how.
    fn cut(&self, node: usize) -> Result<String>;

    /// Ends what was done to the ways.
    fn heal(&self) -> Result<()>;
}
