//! How another node is reached.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use cluster::ids::NodeId;
use config::{Config, PrimaryAddress};
use engine::engine::Engine;
use parking_lot::Mutex;
use process::log::Log;
use resp::args::OwnedArguments;

use crate::threads::moving::target::{Address, Patience, Target, Trouble};
use crate::threads::wire::SILENCE;

/// How long an attempt to connect, or a question, may take.
pub(super) const PATIENCE: Duration = Duration::from_millis(1000);

/// What threads work with that have connections to other nodes.
#[derive(Clone)]
pub(super) struct Reach {
    /// This node.
    pub(super) own: NodeId,
    pub(super) engine: Arc<Engine>,
    pub(super) active: Arc<tls::Active>,
    pub(super) log: Arc<Log>,
    pub(super) stopping: Arc<AtomicBool>,
    /// Why nodes cannot be asked, as far as the log has it.
    pub(super) told: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Reach {
    /// Connects to a node, as a replica does to its primary.
    pub(super) fn connect(&self, at: &PrimaryAddress) -> Result<Target, Trouble> {
        let config = self.engine.config.snapshot();
        let host = String::from_utf8_lossy(&at.host);
        let active = config.tls_replication.then_some(&self.active);
        let address = Address { host: &host, port: at.port, active };
        let is_stopped = || self.stopping.load(Relaxed);
        let patience = Patience { timeout: PATIENCE, is_stopped: &is_stopped };
        let credentials = credentials(&config);
        let connected = match at.port {
            0 => Err(Trouble::NoPort(config.tls_replication)),
            _ => Target::connect(&self.engine, &address, credentials.view(), None, patience),
        };
        let connected = connected.and_then(|target| {
            let bound = SILENCE.max(Duration::from_millis(config.cluster_node_timeout));
            target.bound_silence(bound).map(|()| target)
        });
        self.tell(format!("{host}:{}", at.port), connected.as_ref().err());
        connected
    }

    /// Writes into the log, once, why a node cannot be asked.
    fn tell(&self, place: String, trouble: Option<&Trouble>) {
        let mut told = self.told.lock();
        match trouble {
            Some(Trouble::Stopping) => {}
            Some(trouble) => {
                let text = trouble.to_string();
                if told.get(&place) != Some(&text) {
                    self.log.warning(format!("The node at {place} cannot be asked: {text}"));
                    told.insert(place, text);
                }
            }
            None => drop(told.remove(&place)),
        }
    }
}

/// The words of AUTH, which are those of replication.
fn credentials(config: &Config) -> OwnedArguments {
    let (user, password) = (&*config.masteruser, &*config.masterauth);
    let words: &[&[u8]] = match (user.is_empty(), password.is_empty()) {
        (_, true) => &[],
        (true, false) => &[password],
        (false, false) => &[user, password],
    };
    words.iter().copied().collect()
}
