//! What the thread hears that makes the server a node of a cluster.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use cluster::control::{Announced, Event};
use config::Config;
use engine::host::ClusterRequest;
use engine::session::attachment::Waiter;
use gateway::Gateway;

/// See the module's text.
pub(super) enum Message {
    /// Something has happened.
    Heard(Event),
    /// What the node announces of itself by these settings, or why that is not known.
    Announces { config: Arc<Config>, announced: Result<Announced, String> },
    /// What another etcd is that the settings name.
    Compared(Box<Compared>),
    /// A client asks for something.
    Requested(ClusterRequest, Waiter),
    /// What the node keeps could not be written, for this reason. It may have to stand still.
    NotWritten { reason: String, is_needed: bool },
    /// The server is to stop: it may when the sender is used.
    Stop(Sender<()>),
    /// The server does not stop after all.
    StopRefused,
    /// The server stops now.
    End,
}

/// What was found of another etcd that the settings name.
pub(super) struct Compared {
    /// For which value of `cluster-etcd`.
    pub(super) places: Vec<u8>,
    /// Whether the etcd that is asked answers.
    pub(super) answers: bool,
    /// How the other one is asked, or why it cannot be.
    pub(super) gateway: Result<Gateway, String>,
    /// Whether it is the same, or why not as far as is known.
    pub(super) is_same: Result<(), String>,
}
