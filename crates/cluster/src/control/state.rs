//! What the machine knows. The files beside this one say what it makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::rng::Rng;

use crate::control::event::{Action, Millis, Recovered, RequestId, Setup, Ticket};
use crate::control::mirror::{Entry, Mirror};
use crate::control::quorum::Quorum;
use crate::ids::{Epoch, Incarnation, NodeId, ShardId};
use crate::keys::{Keys, LeaderValue, Subject};
use crate::slots::SlotRanges;
use crate::store::{Compare, LeaseId, Operation, Request, Revision, Transaction};
use crate::topology::{Address, Topology};

/// The revision of no key, not even of one that is absent.
const NEVER: Revision = -1;

/// What a request is for. There is one at a time for each purpose, except to keep a lease.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// To read all keys.
    Load,
    /// To get a lease.
    Grant,
    /// To keep it.
    KeepAlive(LeaseId),
    /// To end it.
    Revoke,
    /// To write `members/NODE`.
    Register,
    /// To write `alive/NODE`.
    ShowAlive,
    /// To write `candidates/SHARD/NODE`, or to delete an old one.
    Stand,
    /// To become primary.
    Take,
    /// To delete the key of a primary that is gone.
    Unseat,
    /// To ask the primary to let go.
    AskFailover,
    /// To let go as a primary.
    Release,
    /// To delete a wish for that, or what has become of it.
    ClearFailover,
    /// To change who counts for the quorum.
    ChangeMembers,
    /// To give slots away.
    HandOver(String),
    /// To write down how far a migration is, or to delete its record.
    NoteMigration(String),
}

/// A lease of this node's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) id: LeaseId,
    pub(super) ttl_ms: u64,
    /// When the request left that etcd has answered last.
    pub(super) renewed: Millis,
    /// When the next one leaves.
    pub(super) next: Millis,
}

impl Lease {
    /// Until when etcd keeps it for certain, by this node's clock.
    pub(super) fn until(&self) -> Millis {
        self.renewed + self.ttl_ms
    }
}

/// The data of this node: the beginning of the journal of `epoch`, up to `offset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Data {
    /// The shard in which they count, if that is known.
    pub(super) shard: Option<ShardId>,
    pub(super) epoch: Epoch,
    /// Where the epoch began. Data that do not reach it are not of that epoch.
    pub(super) start: u64,
    pub(super) offset: u64,
    /// Whether they have all that this node has ever confirmed.
    pub(super) complete: bool,
}

/// Whom a node has followed that lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Past {
    pub(super) epoch: Epoch,
    pub(super) leader: LeaderValue,
    pub(super) is_linked: bool,
}

/// What this node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It follows nobody. Once it is detached, its data do not change any more. Until then they
    /// may still grow from whom it has followed.
    Apart { is_detached: bool, past: Option<Past> },
    /// It follows the primary of an epoch.
    Following { node: NodeId, address: Address, epoch: Epoch, leader: LeaderValue, is_linked: bool },
    /// It is the primary of a shard.
    Leading { shard: ShardId, epoch: Epoch, leader: LeaderValue },
}

/// Transactions for one purpose of which it is not known what has become of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Doubts {
    /// How many may be done, or may have been.
    open: u32,
    /// How many of these etcd has refused: what is read from then on shows whether they were done.
    refused: u32,
}

impl Doubts {
    pub(super) fn are_there(self) -> bool {
        self.open > 0
    }

    /// Whether one may leave: not before it is known what has become of a refused one.
    pub(super) fn allow_another(self) -> bool {
        self.refused == 0
    }

    pub(super) fn note_sent(&mut self) {
        self.open += 1;
    }

    /// The last one has not been done, and will not be. Returns whether none is left now.
    pub(super) fn note_not_done(&mut self) -> bool {
        let before = self.open;
        self.open = before.saturating_sub(1).max(self.refused);
        before > 0 && self.open == 0
    }

    /// The last one was refused.
    pub(super) fn note_refused(&mut self) {
        self.refused = (self.refused + 1).min(self.open);
    }

    /// What was read since shows that none has been done of those that were refused. Returns
    /// whether there were any.
    pub(super) fn settle(&mut self) -> bool {
        let refused = std::mem::take(&mut self.refused);
        self.open -= refused;
        refused > 0
    }
}

/// A primary lets go in favour of a replica.
#[derive(Clone, Debug)]
pub(super) struct Handover {
    pub(super) to: NodeId,
    pub(super) deadline: Millis,
    /// Where the journal ends, once writes are held.
    pub(super) held: Option<u64>,
    /// Of transactions that delete the key.
    pub(super) doubts: Doubts,
    /// Whether the primary does so by itself, because it ends or leaves.
    pub(super) is_own_wish: bool,
}

impl Handover {
    /// Whether the key may be gone, so that nothing is acknowledged any more.
    pub(super) fn is_releasing(&self) -> bool {
        self.doubts.are_there()
    }
}

/// The process is asked to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) ticket: Ticket,
    pub(super) deadline: Millis,
    /// How long all of that may take, but for giving the lease back.
    pub(super) wait_ms: u64,
    pub(super) is_revoking: bool,
}

/// A change of the members that count.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Those of before.
    pub(super) old: Vec<NodeId>,
    pub(super) members: Vec<NodeId>,
    pub(super) since: Millis,
    /// What the new quorum must know before the change is written down: where the journal ended
    /// when the node had begun to go by both quorums.
    pub(super) offset: Option<u64>,
    /// How many ticks have passed.
    pub(super) ticks: u32,
    /// The revision of `shards/SHARD` that is changed.
    pub(super) modified: Revision,
    pub(super) doubts: Doubts,
}

/// How far this node is with a migration as its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Move {
    /// Which try this is, of all.
    pub(super) number: u64,
    pub(super) slots: SlotRanges,
    /// To which primary of the target it sends.
    pub(super) to_epoch: Epoch,
    /// Whether the target has nearly everything.
    pub(super) is_near: bool,
    /// Since when it is its turn to hold its slots.
    pub(super) turn_since: Option<Millis>,
    /// Since when it does hold them.
    pub(super) held_since: Option<Millis>,
    /// Whether all is delivered.
    pub(super) is_delivered: bool,
    /// The revision of the record with which transactions have left that give the slots away.
    pub(super) sent_with: Revision,
    /// Of these.
    pub(super) doubts: Doubts,
    /// It cannot be done, which the record shall say.
    pub(super) has_failed: bool,
}

impl Move {
    /// Whether no transaction can give the slots away any more that compares the record as it was,
    /// and was last written at `modified`.
    pub(super) fn is_certain(&self, modified: Revision) -> bool {
        !self.doubts.are_there() || self.sent_with < modified
    }
}

/// Rules that make it safe. Tests take one away, to see that the simulation notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code, reason = "only tests take rules away"))]
pub(crate) enum Rule {
    /// A lease counts from before its request was sent, less a margin.
    Margin,
    /// A node that has promised not to stand does not stand.
    Promise,
    /// A primary without etcd needs the promise of every member, not of a quorum.
    EveryMember,
    /// A transaction that makes a primary compares the last epoch and the leader's absence.
    CompareLeader,
    /// A candidate waits until enough members have said how far they are.
    CandidateQuorum,
    /// A node that has said how far it is, receives no more.
    DetachFirst,
    /// The epoch of data counts before their offset.
    EpochFirst,
    /// Data count for an epoch only when they reach its start.
    StartOfEpoch,
    /// A node that may have lost its end is complete when it has what the primary had at the link.
    WholeAgain,
    /// What a source hears of its sending counts for the try that it is of.
    ThisTry,
    /// A node that came back without its data does not count as a candidate.
    Completeness,
    /// The furthest candidate is elected, even if others alone are known to have their end.
    Furthest,
    /// A restarted node does not stand while it may have promised not to.
    PromiseBeforeRestart,
    /// The transaction that gives slots away compares both primaries and the record.
    CompareHandOver,
    /// Slots are held until it is known who owns them.
    HoldUntilKnown,
    /// While members change, both quorums must know a write.
    JointQuorum,
    /// Transactions compare whether the keys are still those that were written anew last.
    CompareRebuilt,
}

/// The machine of one node.
#[derive(Debug)]
pub struct Control {
    pub(super) setup: Setup,
    pub(super) keys: Keys,
    pub(super) rng: Rng,
    pub(super) now: Millis,
    pub(super) started: Option<Millis>,
    pub(super) actions: Vec<Action>,

    pub(super) mirror: Mirror,
    pub(super) topology: Arc<Topology>,
    pub(super) is_changed: bool,
    /// The shard that this node belongs to, as etcd has it.
    pub(super) home: Option<ShardId>,
    /// What is asked for, since when, and at which revision etcd was known to be then.
    pub(super) requests: BTreeMap<RequestId, (Purpose, Millis, Revision)>,
    pub(super) last_request: RequestId,
    pub(super) not_before: BTreeMap<Purpose, Millis>,
    pub(super) watch: Option<RequestId>,
    pub(super) heard: Millis,
    /// etcd has something else than what can have become of the cluster.
    pub(super) disbelieves: bool,
    /// etcd has refused something, and what it has now shows whether it was done.
    pub(super) must_read: bool,
    /// Another etcd is asked than before, and nothing was read there yet.
    pub(super) is_unread: bool,
    /// Since when all transactions are overtaken by others.
    pub(super) refused_since: Option<Millis>,
    /// When this node has first read keys that were written anew; zero if they were not.
    pub(super) rebuilt_seen: Millis,

    pub(super) lease: Option<Lease>,
    pub(super) has_registered: bool,
    pub(super) has_shown_alive: bool,
    /// The revision at which etcd last had that.
    pub(super) shown_alive_at: Revision,
    /// Another process has this node's name.
    pub(super) is_displaced: bool,
    /// Where etcd said that this node is, before this process has written anything.
    pub(super) found_at: Option<Address>,
    /// The run of this node that is known to be gone.
    pub(super) gone_predecessor: Option<Incarnation>,
    pub(super) next_probe: Millis,

    pub(super) role: Role,
    pub(super) data: Data,
    /// How far the journal of whom it follows reached when the link was made: so much this node
    /// has confirmed before, at most.
    pub(super) whole_at: u64,
    /// How many times slots were sent.
    pub(super) sends: u64,
    pub(super) remembered: Data,
    /// As a member: it does not stand before this time.
    pub(super) promised_until: Millis,
    /// The epoch whose primary is a process that is gone.
    pub(super) gone: Option<Epoch>,
    /// The last primary that etcd had of the own shard, and since when this node knows.
    pub(super) seen: (Epoch, Millis),
    /// Since when shards have no primary.
    pub(super) absent_since: BTreeMap<ShardId, Millis>,
    pub(super) failed: Vec<ShardId>,
    /// Since when this node is a candidate after this epoch.
    pub(super) standing: Option<(Epoch, Millis)>,
    /// Before this time it does not say again whom its shard's election waits for.
    pub(super) next_complaint: Millis,
    pub(super) failover: Option<(Ticket, bool, Millis)>,

    pub(super) replicas: Vec<(NodeId, u64)>,
    pub(super) serve_until: Millis,
    pub(super) quorum: Quorum,
    /// When the promises were asked for that nodes have given, in the present epoch.
    pub(super) given: BTreeMap<NodeId, Millis>,
    pub(super) next_round: Millis,
    pub(super) handover: Option<Handover>,
    /// The last wish of a replica by its revision, and since when this node knows of it.
    pub(super) wish_seen: (Revision, Millis),
    /// How often the primary has tried in vain to hand over because it leaves, and before which
    /// time it does not again.
    pub(super) left_in_vain: (u32, Millis),
    pub(super) stop: Option<Stop>,
    pub(super) change: Option<Change>,
    /// Sets of members to which a change was given up: how often that took too long, and before
    /// which time it is not tried again.
    pub(super) in_vain_members: BTreeMap<Vec<NodeId>, (u32, Millis)>,
    pub(super) moves: BTreeMap<String, Move>,
    /// How often a migration has held its slots in vain, and before which time it is not tried
    /// again.
    pub(super) in_vain: BTreeMap<String, (u32, Millis, Revision)>,
    #[cfg(test)]
    pub(crate) reverted: Option<Rule>,
}

impl Control {
    /// The machine of a node that has just started. It draws from `seed` when it must not do the
    /// same as other nodes at the same time.
    pub fn new(setup: Setup, seed: u64) -> Self {
        let Recovered { shard, epoch, start, offset, complete } = setup.recovered;
        let data = Data { shard, epoch, start, offset, complete };
        Control {
            keys: Keys::new(&setup.cluster),
            rng: Rng::from_seed(seed),
            now: 0,
            started: None,
            actions: Vec::new(),
            mirror: Mirror::default(),
            topology: setup.cached.clone().unwrap_or_default(),
            is_changed: false,
            home: None,
            requests: BTreeMap::new(),
            last_request: 0,
            not_before: BTreeMap::new(),
            watch: None,
            heard: 0,
            disbelieves: false,
            must_read: false,
            is_unread: false,
            refused_since: None,
            rebuilt_seen: 0,
            lease: None,
            has_registered: false,
            has_shown_alive: false,
            shown_alive_at: 0,
            is_displaced: false,
            found_at: None,
            gone_predecessor: None,
            next_probe: 0,
            role: Role::Apart { is_detached: true, past: None },
            data,
            whole_at: 0,
            sends: 0,
            remembered: data,
            promised_until: 0,
            gone: None,
            seen: (0, 0),
            absent_since: BTreeMap::new(),
            failed: Vec::new(),
            standing: None,
            next_complaint: 0,
            failover: None,
            replicas: Vec::new(),
            serve_until: 0,
            quorum: Quorum::default(),
            given: BTreeMap::new(),
            next_round: 0,
            handover: None,
            wish_seen: (0, 0),
            left_in_vain: (0, 0),
            stop: None,
            change: None,
            in_vain_members: BTreeMap::new(),
            moves: BTreeMap::new(),
            in_vain: BTreeMap::new(),
            #[cfg(test)]
            reverted: None,
            setup,
        }
    }

    /// The topology that is true as far as this node knows.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The epoch in which this node is primary, if it is.
    pub fn leading(&self) -> Option<Epoch> {
        match self.role {
            Role::Leading { epoch, .. } => Some(epoch),
            _ => None,
        }
    }

    /// What this node knows of its data. It is true of the files, too, when the process ends in
    /// order and has heard of all links. [`Action::Remember`] says less: a process that is killed
    /// may not have heard of a link.
    pub fn data(&self) -> Recovered {
        let Data { shard, epoch, start, offset, complete } = self.data;
        Recovered { shard, epoch, start, offset, complete }
    }

    /// Whether this node's data have all that it has ever confirmed.
    #[cfg(test)]
    pub(crate) fn is_complete(&self) -> bool {
        self.data.complete
    }

    /// The epoch for which this node's data count.
    #[cfg(test)]
    pub(crate) fn data_epoch(&self) -> Epoch {
        self.data.epoch
    }

    /// Whether a safety rule applies: always, except in tests that take it away.
    pub(super) fn keeps(&self, rule: Rule) -> bool {
        #[cfg(test)]
        return self.reverted != Some(rule);
        #[cfg(not(test))]
        {
            let _ = rule;
            true
        }
    }

    /// This node's name.
    pub(super) fn me(&self) -> NodeId {
        self.setup.node
    }

    /// Whether this node follows nobody, and its data do not change.
    pub(super) fn is_detached(&self) -> bool {
        matches!(self.role, Role::Apart { is_detached: true, .. })
    }

    /// The shard that this node leads, or else belongs to.
    pub(super) fn shard(&self) -> Option<ShardId> {
        match self.role {
            Role::Leading { shard, .. } => Some(shard),
            _ => self.home,
        }
    }

    /// The primary that etcd has of the own shard.
    pub(super) fn leader(&self) -> Option<&Entry<LeaderValue>> {
        self.mirror.leaders.get(&self.shard()?)
    }

    /// Whether a value names this process, not just this node.
    pub(super) fn is_this_process(&self, leader: &LeaderValue) -> bool {
        leader.node == self.me() && leader.incarnation == self.setup.incarnation
    }

    /// Whether this node's name is this process's.
    pub(super) fn has_name(&self) -> bool {
        let own = self.mirror.alive.get(&self.me());
        !self.is_displaced && own.is_some_and(|it| it.value.incarnation == self.setup.incarnation)
    }

    /// Whether another process has this node's name, of which it is not known that it is gone.
    pub(super) fn is_name_taken(&self) -> bool {
        let other = self.mirror.alive.get(&self.me()).map(|entry| entry.value.incarnation);
        let other = other.filter(|it| *it != self.setup.incarnation);
        self.is_displaced || (other.is_some() && other != self.gone_predecessor)
    }

    /// How much sooner than etcd this node ends a lease of `ttl_ms`: clocks run apart a little,
    /// and between the look at the clock and the reply's leaving some time passes.
    pub(super) fn margin(&self, ttl_ms: u64) -> u64 {
        if self.keeps(Rule::Margin) { (ttl_ms / 10).max(100) } else { 0 }
    }

    /// Says what is to be done.
    pub(super) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Writes a line for the log.
    pub(super) fn log(&mut self, text: String) {
        self.act(Action::Log { is_warning: false, text });
    }

    /// Writes a warning for the log.
    pub(super) fn warn(&mut self, text: String) {
        self.act(Action::Log { is_warning: true, text });
    }

    /// Whether a request for this purpose may leave now.
    pub(super) fn may_ask(&self, purpose: &Purpose) -> bool {
        self.not_before.get(purpose).is_none_or(|time| self.now >= *time)
            && !self.requests.values().any(|(other, ..)| other == purpose)
    }

    /// Asks etcd.
    pub(super) fn ask(&mut self, purpose: Purpose, what: Request) {
        self.last_request += 1;
        let known = self.mirror.revision.max(self.topology.revision);
        self.requests.insert(self.last_request, (purpose, self.now, known));
        self.act(Action::Ask { request: self.last_request, what });
    }

    /// Whether a transaction for this purpose may leave now.
    pub(super) fn may_transact(&self, purpose: &Purpose) -> bool {
        self.may_ask(purpose) && !self.disbelieves && !self.is_unread
    }

    /// Asks etcd for a transaction, unless one of the same purpose is on its way. What it compares
    /// is meant of the keys that this node knows, not of others that were written in their place.
    pub(super) fn transact(
        &mut self,
        purpose: Purpose,
        mut compares: Vec<Compare>,
        operations: Vec<Operation>,
    ) -> bool {
        let may = self.may_transact(&purpose);
        if may {
            let ahead = self.mirror.ahead();
            compares.iter_mut().for_each(|compare| in_etcds_count(compare, ahead));
            if self.keeps(Rule::CompareRebuilt) {
                let key = self.key(&Subject::Rebuilt);
                compares.push(match &self.mirror.rebuilt {
                    Some((_, value)) => Compare::Value { key, value: value.clone() },
                    None => Compare::is_absent(key),
                });
            }
            self.ask(purpose, Request::Transaction(Transaction { compares, operations }));
        }
        may
    }

    /// Lets a purpose wait for some time, which is drawn around `pause_ms`.
    pub(super) fn put_off(&mut self, purpose: Purpose, pause_ms: u64) {
        let pause = pause_ms / 2 + self.rng.below(pause_ms);
        self.not_before.insert(purpose, self.now + pause);
    }

    /// The key of a subject.
    pub(super) fn key(&self, subject: &Subject) -> String {
        self.keys.of(subject)
    }

    /// The comparison that a key was last written at `revision`.
    pub(super) fn is_unchanged(&self, subject: &Subject, revision: Revision) -> Compare {
        Compare::Modified { key: self.key(subject), revision }
    }

    /// The comparison that a shard's primary is that of `epoch`.
    pub(super) fn is_leader(&self, shard: ShardId, epoch: Epoch) -> Compare {
        Compare::Created { key: self.key(&Subject::Leader(shard)), revision: epoch }
    }
}

/// Has a comparison count as etcd does, whose revisions others are `ahead` of. A revision of before
/// the keys were written anew is none of any key now.
fn in_etcds_count(compare: &mut Compare, ahead: Revision) {
    if let Compare::Created { revision, .. } | Compare::Modified { revision, .. } = compare
        && *revision != 0
    {
        *revision = match *revision - ahead {
            own if own > 0 => own,
            _ => NEVER,
        };
    }
}
