//! What this node is at the moment, and how it becomes something else.

use std::sync::Arc;
use std::time::Duration;

use cluster::control::{Event, Quorum};
use cluster::ids::{Epoch, NodeId};
use config::PrimaryAddress;
use engine::engine::Engine;
use persist::aof::append_only::DeferredReplies;
use resp::args::OwnedArguments;

use crate::threads::internal_client::InternalClient;

/// The words that make it the replica of nobody.
const NOBODY: [&[u8]; 3] = [b"follow", b"", b"0"];

/// How long the world may take to stop so that writes wait, or wait no more. It is tried again at
/// the next look: a script may run for longer than the lease lasts, which has to be renewed.
const LONGEST_STOP: Duration = Duration::from_millis(50);

/// What the node is.
#[derive(Debug, PartialEq, Eq)]
enum Role {
    /// A replica that follows nobody.
    Nobody,
    /// A replica.
    Replica {
        /// In which epoch its primary is one.
        epoch: Epoch,
        /// Where it is.
        at: PrimaryAddress,
        /// Which node it is.
        primary: NodeId,
        /// The term of replication in which it follows.
        term: u64,
        /// The machine knows that the data are its primary's.
        is_linked: bool,
        /// The machine knows that they reach so far.
        told: Option<u64>,
    },
    /// A primary.
    Primary {
        /// In which epoch.
        epoch: Epoch,
        /// The machine knows that replicas are so far, and the end of the journal.
        told: (Option<Vec<(NodeId, u64)>>, u64),
    },
}

/// See the module's text.
pub(super) struct Part {
    engine: Arc<Engine>,
    replies: Arc<dyn DeferredReplies>,
    client: InternalClient,
    role: Role,
    holds_writes: bool,
    /// Whether it is to be so.
    is_to_hold: bool,
    /// Which replicas make a quorum in an epoch.
    quorum: Option<(Epoch, Quorum)>,
}

impl Part {
    /// That of a server that has started as the replica of nobody.
    pub(super) fn new(engine: &Arc<Engine>, replies: Arc<dyn DeferredReplies>) -> Part {
        let client = InternalClient::new(Arc::clone(engine), "cluster");
        Part {
            engine: Arc::clone(engine),
            replies,
            client,
            role: Role::Nobody,
            holds_writes: false,
            is_to_hold: false,
            quorum: None,
        }
    }

    /// Whether clients' writes wait until replicas have everything.
    pub(super) fn holds_writes(&self) -> bool {
        self.holds_writes
    }

    /// The history of the data, and how far they have it.
    pub(super) fn place(&self) -> (String, u64) {
        let stream = self.engine.stream();
        (stream.present, self.offset())
    }

    /// How far the data reach, as all nodes of the shard count it.
    pub(super) fn offset(&self) -> u64 {
        self.engine.replication_offset()
    }

    /// Whether this is the primary in an epoch.
    pub(super) fn leads(&self, epoch: Epoch) -> bool {
        matches!(self.role, Role::Primary { epoch: own, .. } if own == epoch)
    }

    /// Becomes primary. It may not serve yet, unless it `continues` to lead under the name of
    /// another epoch. Else its history gets a name.
    pub(super) fn lead(&mut self, epoch: Epoch, continues: bool, history: &str) {
        if !continues {
            self.fence();
            self.engine.replicas.quorum.set_epoch(epoch);
            self.say(&[b"lead", history.as_bytes()]);
        }
        self.release_writes();
        self.role = Role::Primary { epoch, told: (None, 0) };
        self.apply_quorum();
    }

    /// Becomes the replica of a primary. Before that it tells what it was.
    pub(super) fn follow(
        &mut self,
        (primary, at): (NodeId, &PrimaryAddress),
        epoch: Epoch,
        tell: &mut dyn FnMut(Event),
    ) {
        self.look(tell);
        self.fence();
        if self.engine.replication.primary().as_ref() == Some(at) {
            // Another process may be there now: the link that stands says nothing of its data.
            self.say(&NOBODY);
        }
        self.engine.replicas.quorum.follow(primary, epoch);
        self.say(&[b"follow", &at.host, at.port.to_string().as_bytes()]);
        self.look_back(tell);
        self.release_writes();
        let (term, is_linked, told) = (self.engine.replication.term(), false, None);
        self.role = Role::Replica { epoch, at: at.clone(), primary, term, is_linked, told };
    }

    /// Acknowledges and confirms nothing for now, whatever it is.
    pub(super) fn stand_still(&mut self) {
        self.fence();
        if matches!(self.role, Role::Replica { .. }) {
            self.say(&NOBODY);
        }
    }

    /// Is again what it was. As a primary it waits for [`Part::serve_until`].
    pub(super) fn go_on(&mut self, tell: &mut dyn FnMut(Event)) {
        if let Role::Replica { epoch, at, primary, .. } = &self.role {
            let (epoch, at, primary) = (*epoch, at.clone(), *primary);
            self.follow((primary, &at), epoch, tell);
        }
    }

    /// Becomes the replica of nobody. Before it says how far the data reach, it says of whom they
    /// are, if the machine does not know that yet.
    pub(super) fn detach(&mut self, tell: &mut dyn FnMut(Event)) {
        self.look(tell);
        self.fence();
        self.say(&NOBODY);
        self.look_back(tell);
        self.release_writes();
        self.role = Role::Nobody;
        tell(Event::Detached { offset: self.engine.replication.applied() });
    }

    /// May acknowledge until this millisecond of the monotonic clock.
    pub(super) fn serve_until(&self, epoch: Epoch, until: u64) {
        if self.leads(epoch) {
            self.engine.cluster.serve_until(until.saturating_mul(1000));
        }
    }

    fn fence(&self) {
        self.engine.cluster.serve_until(0);
    }

    /// Sets which replicas make a quorum.
    pub(super) fn set_quorum(&mut self, epoch: Epoch, quorum: Quorum) {
        self.quorum = Some((epoch, quorum));
        self.apply_quorum();
    }

    fn apply_quorum(&self) {
        let Some((epoch, quorum)) = &self.quorum else { return };
        if self.leads(*epoch) {
            // The journal of this server counts from elsewhere.
            let start = match self.engine.journal.changes() {
                Some(own) => own.in_journal(quorum.start),
                None => quorum.start,
            };
            self.engine.replicas.quorum.set(Quorum { start, ..quorum.clone() });
            // A write that waits may have one now.
            self.replies.note_progress();
        }
    }

    /// Has clients' writes wait, as soon as the world stops. Returns what is true then.
    pub(super) fn hold_writes(&mut self, epoch: Epoch) -> Option<Event> {
        if !self.leads(epoch) {
            return None;
        }
        self.is_to_hold = true;
        self.settle_hold()
    }

    /// Lets them go on.
    pub(super) fn release_writes(&mut self) {
        self.is_to_hold = false;
        self.settle_hold();
    }

    /// Has writes wait or go on as they are to, if the world can be stopped for that.
    fn settle_hold(&mut self) -> Option<Event> {
        if self.holds_writes != self.is_to_hold {
            let stopped = self.engine.gates.stop_the_world_within(LONGEST_STOP)?;
            self.engine.suspend_writes(&stopped, self.is_to_hold);
            let has_replicas = || !self.engine.replicas.is_empty();
            if self.is_to_hold && !self.engine.replication.is_replica() && has_replicas() {
                self.engine.ask_as_last(&stopped);
            }
            drop(stopped);
            self.holds_writes = self.is_to_hold;
            if !self.is_to_hold {
                self.engine.wake_all_clients();
            }
        }
        let Role::Primary { epoch, .. } = self.role else { return None };
        if !self.holds_writes {
            return None;
        }
        Some(Event::WritesHeld { epoch, offset: self.offset() })
    }

    fn say(&mut self, words: &[&[u8]]) {
        let argv: OwnedArguments = [&b"part"[..]].iter().chain(words).collect();
        self.client.run_with_stopped_world(commands::part_row(), &argv);
    }

    /// Looks again at what it was as a replica, after the end of that: a link may have come to
    /// stand, and brought more, right after the look before.
    fn look_back(&mut self, tell: &mut dyn FnMut(Event)) {
        if matches!(self.role, Role::Replica { .. }) {
            self.look(tell);
        }
    }

    /// What has changed since the last look.
    pub(super) fn look(&mut self, tell: &mut dyn FnMut(Event)) {
        if self.holds_writes != self.is_to_hold
            && let Some(event) = self.settle_hold()
        {
            tell(event);
        }
        let engine = &self.engine;
        match &mut self.role {
            Role::Nobody => {}
            Role::Replica { epoch, term, is_linked, told, .. } => {
                let Some(end) = engine.replication.joined(*term) else { return };
                let offset = engine.replication.applied();
                if !std::mem::replace(is_linked, true) {
                    *told = Some(offset);
                    return tell(Event::Linked { epoch: *epoch, offset, end: end.max(offset) });
                }
                if *told != Some(offset) {
                    *told = Some(offset);
                    tell(Event::Applied { offset });
                }
            }
            Role::Primary { epoch, told } => {
                // First: what replicas have may begin a change of members, for which the next look
                // at the end counts.
                let offset = engine.replication_offset();
                if told.1 != offset {
                    told.1 = offset;
                    tell(Event::Applied { offset });
                }
                let shown = |(node, offset)| (node, engine.shown_offset(offset));
                let confirmed: Vec<_> = engine.replicas.nodes().into_iter().map(shown).collect();
                if told.0.as_ref() != Some(&confirmed) {
                    told.0 = Some(confirmed.clone());
                    tell(Event::Replicas { epoch: *epoch, confirmed });
                }
            }
        }
    }
}
