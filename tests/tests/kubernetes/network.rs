//! A network of its own for the pods of a cluster: a bridge, and for each pod a process that stands
//! for its network.

use std::net::Ipv4Addr;

use anyhow::Result;
use tests::namespace::Namespace;

/// The first address of a pod; the next one has the next.
const FIRST: u8 = 10;

/// The network of a node, which reaches all pods.
#[derive(Debug)]
pub(crate) struct Node(Namespace);

impl Node {
    /// Makes it.
    ///
    /// # Errors
    /// The right to do so is missing.
    pub(crate) fn make() -> Result<Node> {
        let namespace = Namespace::make()?;
        namespace.run(
            "ip link set lo up; ip link add bridge type bridge
             ip address add 10.77.0.1/16 dev bridge; ip link set bridge up",
        )?;
        Ok(Node(namespace))
    }

    /// Moves this thread into it.
    pub(crate) fn join(&self) -> Result<()> {
        self.0.join()
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// The address of the node.
    pub(crate) fn own_address() -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, 1)
    }

    /// The address of the pod with this number.
    pub(crate) fn address(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, FIRST + number)
    }

    /// Makes a network for a pod, and connects it.
    pub(crate) fn connect(&self, number: u8) -> Result<Namespace> {
        let pod = Namespace::make()?;
        let (id, address) = (pod.id(), Node::address(number));
        self.0.run(&format!(
            "ip link add pod{number} type veth peer name eth0 netns {id}
             ip link set pod{number} master bridge up"
        ))?;
        pod.run(&format!(
            "ip link set lo up; ip address add {address}/16 dev eth0; ip link set eth0 up"
        ))?;
        Ok(pod)
    }
}
