//! The other nodes of the shard: a connection to each, on a thread of its own.
//!
//! A primary asks over it for promises. Its end shows that a process is gone: the system closes the
//! connections of a process that has ended, and refuses new ones. A process that stands still, or
//! that cannot be reached, does neither.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use cluster::control::Event;
use cluster::ids::{Epoch, Incarnation, NodeId};
use config::{Config, PrimaryAddress};
use process::thread;

use super::message::Message;
use super::reach::{PATIENCE, Reach};
use crate::connecting::resolve;
use crate::threads::moving::target::{Patience, Target, Trouble};

/// Between two looks whether the connection still stands.
const LOOK: Duration = Duration::from_millis(10);
/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(200);

/// What a primary asks the others.
#[derive(Clone, Copy)]
pub(super) struct Question {
    pub(super) epoch: Epoch,
    pub(super) round: u64,
    pub(super) duration_ms: u64,
}

/// Another node.
struct Peer {
    at: PrimaryAddress,
    /// Its thread ends with it.
    questions: Sender<Question>,
}

/// See the module's text.
pub(super) struct Peers {
    reach: Reach,
    /// How the node's thread hears what has happened.
    tell: Sender<Message>,
    all: HashMap<NodeId, Peer>,
}

impl Peers {
    pub(super) fn new(reach: Reach, tell: Sender<Message>) -> Peers {
        Peers { reach, tell, all: HashMap::new() }
    }

    /// Sets who they are, and where.
    pub(super) fn set(&mut self, wanted: &[(NodeId, PrimaryAddress)]) {
        let stays = |node: &NodeId, peer: &Peer| {
            wanted.iter().any(|(other, at)| other == node && *at == peer.at)
        };
        self.all.retain(|node, peer| stays(node, peer));
        for (node, at) in wanted {
            if self.all.contains_key(node) {
                continue;
            }
            let (questions, asked) = mpsc::channel();
            let link = Link::new(self.reach.clone(), self.tell.clone(), *node, at.clone());
            match thread::start("cluster-peer", move || link.run(&asked)) {
                Ok(_) => drop(self.all.insert(*node, Peer { at: at.clone(), questions })),
                // The next topology brings another attempt.
                Err(error) => self.reach.log.warning(format!("No thread for a peer: {error}")),
            }
        }
    }

    /// Looks whether the process of this node that was at this place is gone.
    pub(super) fn probe(&self, incarnation: Incarnation, at: PrimaryAddress) {
        let (engine, tell) = (Arc::clone(&self.reach.engine), self.tell.clone());
        let look = move || {
            if is_refused(&at) || leads_here(&at, &engine.config.snapshot()) {
                let _ = tell.send(Message::Heard(Event::PredecessorGone { incarnation }));
            }
        };
        if let Err(error) = thread::start("cluster-probe", look) {
            self.reach.log.warning(format!("No thread to look for a process: {error}"));
        }
    }

    /// Asks one of them. No answer comes if it cannot be asked.
    pub(super) fn ask(&self, node: NodeId, question: Question) {
        if let Some(peer) = self.all.get(&node) {
            let _ = peer.questions.send(question);
        }
    }
}

/// The connection to one node, and its thread's state.
struct Link {
    reach: Reach,
    tell: Sender<Message>,
    node: NodeId,
    at: PrimaryAddress,
    target: Option<Target>,
    /// A connection stood, and nothing has been said of its end.
    stood: bool,
    next_try: Instant,
}

impl Link {
    fn new(reach: Reach, tell: Sender<Message>, node: NodeId, at: PrimaryAddress) -> Link {
        Link { reach, tell, node, at, target: None, stood: false, next_try: Instant::now() }
    }

    fn run(mut self, asked: &Receiver<Question>) {
        while !self.reach.stopping.load(Relaxed) {
            match asked.recv_timeout(LOOK) {
                Ok(question) => self.ask(question),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.target.as_ref().is_some_and(|target| !target.is_quiet()) {
                self.lose();
            }
            if self.target.is_none() && Instant::now() >= self.next_try {
                self.connect();
            }
            process::memory::publish();
        }
    }

    fn lose(&mut self) {
        self.target = None;
        self.next_try = Instant::now();
    }

    /// Tries to connect. Says so if the process is gone.
    fn connect(&mut self) {
        let since = base::clock::monotonic_ms();
        self.next_try = Instant::now() + PAUSE;
        if is_refused(&self.at) {
            if std::mem::replace(&mut self.stood, false) {
                let _ = self.tell.send(Message::Heard(Event::Gone { node: self.node, since }));
            }
            return;
        }
        let connected = self.reach.connect(&self.at);
        if let Ok(target) = connected {
            (self.target, self.stood) = (Some(target), true);
        }
    }

    /// Asks for a promise, and passes the answer on.
    fn ask(&mut self, question: Question) {
        let Some(target) = &mut self.target else { return };
        let Question { epoch, round, duration_ms } = question;
        let promise = format!("{} {epoch} {round} {duration_ms} {}", self.reach.own, self.node);
        let words = [&b"REPLCONF"[..], b"cluster-promise", promise.as_bytes()];
        let is_stopped = || self.reach.stopping.load(Relaxed);
        let patience = Patience { timeout: PATIENCE, is_stopped: &is_stopped };
        let given = match target.ask(words.into_iter(), patience) {
            Ok(()) => true,
            Err(Trouble::Refused(_)) => false,
            Err(_) => return self.lose(),
        };
        let node = self.node;
        let _ = self.tell.send(Message::Heard(Event::Promised { node, epoch, round, given }));
    }
}

/// Whether the system there says that nobody listens.
fn is_refused(at: &PrimaryAddress) -> bool {
    let host = String::from_utf8_lossy(&at.host);
    let Ok(addresses) = resolve(&host, at.port, PATIENCE, &|| false) else { return false };
    let refused = |at| {
        let tried = TcpStream::connect_timeout(&at, PATIENCE);
        tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    };
    let mut some = false;
    for address in addresses {
        some = true;
        if !refused(address) {
            return false;
        }
    }
    some
}

/// Whether connections to a place come to this very process: the place is on this machine, and at a
/// port on which this process listens.
fn leads_here(at: &PrimaryAddress, config: &Config) -> bool {
    let host = String::from_utf8_lossy(&at.host);
    let Ok(addresses) = resolve(&host, at.port, PATIENCE, &|| false) else { return false };
    let is_own = |at: &SocketAddr| {
        let Ok(tried) = TcpStream::connect_timeout(at, PATIENCE) else { return false };
        let (from, to) = (tried.local_addr(), tried.peer_addr());
        from.is_ok_and(|from| to.is_ok_and(|to| from.ip() == to.ip()))
            && config.bind.iter().any(|word| binds(word, at.ip()))
    };
    let is_own_port = [config.port, config.tls_port].contains(&at.port);
    is_own_port && !addresses.is_empty() && addresses.iter().all(is_own)
}

/// Whether a word of `bind` means this address.
fn binds(word: &[u8], address: IpAddr) -> bool {
    let word = String::from_utf8_lossy(word.strip_prefix(b"-").unwrap_or(word));
    match word.parse::<IpAddr>() {
        Ok(own) => own == address || own.is_unspecified() && own.is_ipv4() == address.is_ipv4(),
        Err(_) => word == if address.is_ipv4() { "*" } else { "::*" },
    }
}
