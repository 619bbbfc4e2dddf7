//! Messages of clients to the other shards: a connection to the primary of each, on a thread of its
//! own, which are made when the first message is published. That primary brings a message to its
//! subscribers and to its replicas. A message to a shard channel goes from a replica to its primary
//! in this way, and to no other shard.
//!
//! A message is brought once or not at all, as over Redis's own bus: what a connection has taken
//! when it breaks is not sent again, and what comes while there is none is dropped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use cluster::ids::NodeId;
use cluster::topology::Node;
use config::PrimaryAddress;
use engine::session::pubsub::Kind;
use parking_lot::Mutex;
use process::thread;
use resp::client::encode_command;

use super::reach::{PATIENCE, Reach};
use super::setup;
use crate::threads::moving::target::Patience;
use crate::threads::wire::Wire;

/// Between two looks at a connection over which nothing goes.
const LOOK: Duration = Duration::from_millis(100);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// Between two lines in the log of messages that do not reach a node.
const LINE: Duration = Duration::from_secs(60);
/// Bytes that are sent at once.
const AT_ONCE: usize = 256 * 1024;
/// With so many bytes waiting for a node, further messages for it are dropped.
const MOST_WAITING: usize = 64 << 20;

/// A node to which messages are sent.
struct Receiving {
    at: PrimaryAddress,
    /// Its thread ends with it.
    messages: Sender<Arc<[u8]>>,
    waiting: Arc<AtomicUsize>,
}

/// See the module's text.
pub(super) struct Broadcast {
    reach: Reach,
    all: Mutex<HashMap<NodeId, Receiving>>,
}

impl Broadcast {
    pub(super) fn new(reach: Reach) -> Broadcast {
        Broadcast { reach, all: Mutex::default() }
    }

    /// Has a message brought to all other primaries that it concerns.
    pub(super) fn publish(&self, kind: Kind, channel: &[u8], message: &[u8]) {
        let Some(view) = self.reach.engine.cluster.view() else { return };
        let primaries =
            view.topology.shards.keys().filter_map(|own| view.topology.primary_of(*own));
        let others: Vec<_> = primaries.filter(|node| node.id != self.reach.own).collect();
        let mut command = Vec::new();
        if !others.is_empty() {
            let name: &[u8] = if kind == Kind::Shard { b"SPUBLISH" } else { b"PUBLISH" };
            encode_command([name, channel, message].into_iter(), &mut command);
        }
        let own_shard = view.shard().map(|own| own.id);
        let concerns = |node: &Node| kind != Kind::Shard || node.shard == own_shard;
        let command: Arc<[u8]> = command.into();
        let config = self.reach.engine.config.load();
        let mut all = self.all.lock();
        all.retain(|id, _| others.iter().any(|node| node.id == *id));
        for node in others.into_iter().filter(|node| concerns(node)) {
            let at = setup::way_to(&node.address, &config);
            if all.get(&node.id).is_none_or(|own| own.at != at) {
                let Some(receiving) = self.start(node.id, at) else { continue };
                all.insert(node.id, receiving);
            }
            if let Some(own) = all.get(&node.id)
                && own.waiting.load(Relaxed) < MOST_WAITING
            {
                own.waiting.fetch_add(command.len(), Relaxed);
                // Its thread ends with the server alone.
                let _ = own.messages.send(Arc::clone(&command));
            }
        }
    }

    fn start(&self, node: NodeId, at: PrimaryAddress) -> Option<Receiving> {
        let (messages, given) = mpsc::channel();
        let waiting = Arc::<AtomicUsize>::default();
        let link = Link {
            reach: self.reach.clone(),
            node,
            at: at.clone(),
            waiting: Arc::clone(&waiting),
            wire: None,
            next_line: Instant::now(),
            next_try: Instant::now(),
        };
        match thread::start("cluster-publish", move || link.run(&given)) {
            Ok(_) => Some(Receiving { at, messages, waiting }),
            // The next message brings another attempt.
            Err(error) => {
                self.reach.log.warning(format!("No thread for messages to a node: {error}"));
                None
            }
        }
    }
}

/// The connection to one node, and its thread's state.
struct Link {
    reach: Reach,
    node: NodeId,
    at: PrimaryAddress,
    waiting: Arc<AtomicUsize>,
    wire: Option<Wire>,
    /// The log has it why messages do not reach the node, until then.
    next_line: Instant,
    next_try: Instant,
}

impl Link {
    fn run(mut self, given: &Receiver<Arc<[u8]>>) {
        while !self.reach.stopping.load(Relaxed) {
            match given.recv_timeout(LOOK) {
                Ok(first) => {
                    let mut bytes = first.to_vec();
                    while bytes.len() < AT_ONCE
                        && let Ok(next) = given.try_recv()
                    {
                        bytes.extend_from_slice(&next);
                    }
                    self.send(&bytes);
                    self.waiting.fetch_sub(bytes.len(), Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(Err(_)) = self.wire.as_mut().map(Wire::hear) {
                        self.wire = None;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            process::memory::publish();
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        if self.wire.is_none() && Instant::now() >= self.next_try {
            match self.connect() {
                Ok(wire) => self.wire = Some(wire),
                Err(why) => self.lose(&why),
            }
        }
        let sent = self.wire.as_mut().map(|wire| wire.send(bytes));
        if let Some(Err(trouble)) = sent {
            self.lose(&trouble.to_string());
        }
    }

    fn lose(&mut self, why: &str) {
        self.wire = None;
        self.next_try = Instant::now() + PAUSE;
        if Instant::now() >= self.next_line {
            self.next_line = Instant::now() + LINE;
            let node = self.node;
            self.reach
                .log
                .warning(format!("Messages do not reach the clients of node {node}: {why}"));
        }
    }

    fn connect(&self) -> Result<Wire, String> {
        let target = self.reach.connect(&self.at);
        let mut target = target.map_err(|trouble| trouble.to_string())?;
        // What a node says is not passed on again.
        let own = format!("{}:0", self.reach.own);
        let words = [&b"REPLCONF"[..], b"cluster-node", own.as_bytes()];
        let is_stopped = || self.reach.stopping.load(Relaxed);
        let patience = Patience { timeout: PATIENCE, is_stopped: &is_stopped };
        target.ask(words.into_iter(), patience).map_err(|trouble| trouble.to_string())?;
        Wire::new(target.into_stream(), "publish").map_err(|error| error.to_string())
    }
}
