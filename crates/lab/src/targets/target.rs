//! A target before anything is started.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::load::Encryption;

/// A server, alone or with other processes beside it: how to start it, or where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its name in tables.
    pub name: String,
    /// How it comes to be there.
    pub origin: Origin,
    /// The TCP port that it listens on.
    pub port: u16,
    /// The port of its HTTP, if HTTP has its own.
    pub http_port: Option<u16>,
    /// The port over which others reach it, where that way can be cut.
    pub link_port: Option<u16>,
    /// The processors it may use; empty: any.
    pub cpus: Vec<usize>,
    /// Its limits below what the machine has.
    pub limits: Limits,
    /// Environment variables besides those of the lab itself.
    pub environment: BTreeMap<String, String>,
    /// Files that are in its directory when it starts: their names and contents.
    pub files: BTreeMap<String, String>,
    /// The password that clients send.
    pub password: Option<String>,
    /// How connections to it are encrypted, if they are.
    pub encryption: Option<Encryption>,
    /// Where the lab puts certificates for it and for its clients, if it makes them.
    pub certificates: Option<PathBuf>,
    /// How to find out that it is ready.
    pub probe: Probe,
    /// The processes that are started before it, in this order, and measured with it.
    pub beside: Vec<Target>,
    /// The process beside it that keeps the data: commands go there, and kills and stops.
    pub store: Option<usize>,
    /// How its processes make up a cluster, if they do.
    pub cluster: Option<ClusterRule>,
}

/// How the processes of a target make up a cluster. They are named by their places: those beside
/// the target come first, and then the target itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRule {
    /// Shards, each with slots of its own.
    pub shards: usize,
    /// The nodes: first the primaries, then their replicas.
    pub nodes: Vec<usize>,
    /// The members of etcd in which the nodes keep what they have agreed on; none where they tell
    /// each other.
    pub etcd: Vec<usize>,
}

/// The limits of a process below what the machine has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The time of this many processors: 0.1 is a tenth of one.
    pub cpus: Option<f64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
}

/// How a target comes to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The lab starts this program with these arguments.
    Command {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// It is running.
    Running {
        /// A name or an address.
        host: String,
        /// The TCP port.
        port: u16,
    },
    /// It cannot be measured on this machine, for this reason.
    Missing(String),
}

/// How to find out that a target is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// PING is answered, and not with LOADING.
    Ping,
    /// It is a replica, and has all that its master has.
    Replica,
    /// `GET /` is answered as HTTP.
    Http,
    /// A connection is accepted.
    Connect,
}

impl Limits {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }
}
