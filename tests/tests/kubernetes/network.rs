//! A network of its own for the pods of a cluster: a bridge, and for each pod a process that stands
//! for its network.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use anyhow::{Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tests::observe::wait_until;

/// The first address of a pod; the next one has the next.
const FIRST: u8 = 10;

/// A process in a network of its own, which ends with it.
#[derive(Debug)]
pub(crate) struct Pause(Child);

impl Pause {
    fn start() -> Result<Pause> {
        let mut command = Command::new("unshare");
        // It ends by itself in any case.
        command.args(["--net", "sleep", "600"]).stdin(Stdio::null()).stdout(Stdio::null());
        let pause = Pause(command.spawn()?);
        // It begins in that of this thread, which may not be that of the process.
        let own = fs::read_link("/proc/thread-self/ns/net")?;
        wait_until("a network", || Ok(fs::read_link(pause.file())? != own))?;
        Ok(pause)
    }

    fn file(&self) -> String {
        format!("/proc/{}/ns/net", self.id())
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    fn run(&self, script: &str) -> Result<()> {
        let id = self.id().to_string();
        let mut command = Command::new("nsenter");
        let output = command.args(["-t", &id, "-n", "sh", "-ec", script]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Moves this thread into the network.
    pub(crate) fn join(&self) -> Result<()> {
        let file = File::open(self.file())?;
        Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The network of a node, which reaches all pods.
#[derive(Debug)]
pub(crate) struct Node(Pause);

impl Node {
    /// Makes it.
    ///
    /// # Errors
    /// The right to do so is missing.
    pub(crate) fn make() -> Result<Node> {
        let pause = Pause::start()?;
        pause.run(
            "ip link set lo up; ip link add bridge type bridge
             ip address add 10.77.0.1/16 dev bridge; ip link set bridge up",
        )?;
        Ok(Node(pause))
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
    pub(crate) fn connect(&self, number: u8) -> Result<Pause> {
        let pod = Pause::start()?;
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
