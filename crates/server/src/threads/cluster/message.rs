//! What the thread hears that makes the server a node of a cluster.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use cluster::control::{Announced, Event};
use config::Config;
use engine::host::ClusterRequest;
use engine::session::attachment::Waiter;

use super::compare::Compared;

/// See the module's text.
pub(super) enum Message {
    /// Something has happened.
    Heard(Event),
    /// What the node announces of itself by these settings, or why that is not known.
    Announces { config: Arc<Config>, announced: Result<Announced, String> },
    /// CONFIG SET names an etcd. The settings say so a little later.
    EtcdNamed,
    /// What another etcd is that the settings name.
    Compared(Box<Compared>),
    /// A client asks for something.
    Requested(ClusterRequest, Waiter),
    /// What the node keeps could not be written, for this reason. It may have to stand still.
    NotWritten { reason: String, is_needed: bool },
    /// The server is to stop: it may when the sender is used. It waits so long for that.
    Stop(Sender<()>, Duration),
    /// The server does not stop after all.
    StopRefused,
    /// The server stops now.
    End,
}
