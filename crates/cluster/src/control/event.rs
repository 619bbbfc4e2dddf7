//! What the machine hears and what it wants done.

use std::sync::Arc;

use crate::control::quorum::Quorum;
use crate::ids::{Epoch, Incarnation, NodeId, ShardId};
use crate::slots::SlotRanges;
use crate::store::{Answer, Failure, Request, Revision, WatchEvent};
use crate::topology::{Address, Topology};

/// A time of the node's own monotonic clock, in milliseconds. It never goes back while the process
/// runs, and goes on while the process is stopped.
pub type Millis = u64;

/// By which an answer of etcd is told from others. A watch has one as well.
pub type RequestId = u64;

/// By which the answer to a client's command finds the client.
pub type Ticket = u64;

/// What the machine is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The cluster's name.
    pub cluster: String,
    /// This node's name.
    pub node: NodeId,
    /// The run of this process, drawn at its start.
    pub incarnation: Incarnation,
    /// What others shall know of it.
    pub announced: Announced,
    /// The version of the program.
    pub version: String,
    /// How long a silent node keeps its place (`cluster-node-timeout`), in milliseconds.
    pub node_timeout_ms: u64,
    /// For how long promises of the processes of this node before may last from its start on, in
    /// milliseconds; zero if none can be left.
    pub promised_ms: u64,
    /// What the node's files have brought back.
    pub recovered: Recovered,
    /// The topology that the node has kept on disk, if it has.
    pub cached: Option<Arc<Topology>>,
}

/// What others know of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    /// Where it is reached.
    pub address: Address,
    /// Where it stands; may be empty.
    pub zone: String,
    /// Its name for people; may be empty.
    pub name: String,
}

/// What a node knows of its own data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The shard to which the epoch belongs, if that is known.
    pub shard: Option<ShardId>,
    /// The epoch for which the data count, of those that [`Action::Remember`] has said: the last
    /// one whose start they reach; 0: none.
    pub epoch: Epoch,
    /// Where that epoch began.
    pub start: u64,
    /// The journal's offset up to which the data reach; 0 without data.
    pub offset: u64,
    /// Whether [`Action::Remember`] said so last, *and* the files have everything that the node
    /// has ever confirmed to a primary or a client. A node that keeps no files says `false`.
    pub complete: bool,
}

/// What the machine hears. Each request gets one [`Event::Answered`], in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The settings say something else than before of what others know of this node.
    Announces(Announced),
    /// Time has passed. At least every 50 ms. What has changed of [`Event::Applied`] and
    /// [`Event::Replicas`] is told right before.
    Tick,
    /// etcd has answered, or will not.
    Answered {
        /// To which request.
        request: RequestId,
        /// What.
        result: Result<Answer, Failure>,
    },
    /// A watch reports changes, in the order of their revisions, those of one revision together.
    Watched {
        /// Which watch.
        watch: RequestId,
        /// Up to which revision it has now reported everything.
        revision: Revision,
        /// The changes; none when only the revision is reported (progress).
        events: Vec<WatchEvent>,
    },
    /// A watch is over: it was lost, or what it should go on with is compacted.
    WatchEnded {
        /// Which watch.
        watch: RequestId,
    },
    /// From now on another etcd is asked than before, as far as is known. All requests before are
    /// answered as if they had failed, and the watch is over.
    OtherEtcd,
    /// As a replica: the link to the primary of this epoch stands, and the data here are the
    /// beginning of that primary's journal: after CONTINUE, or when a full copy is complete.
    Linked {
        /// The epoch, as [`Action::Follow`] named it.
        epoch: Epoch,
        /// How far the data reach.
        offset: u64,
        /// How far that journal reached when the link was made.
        end: u64,
    },
    /// How far the journal reaches: as a replica, what is applied and confirmed. It is looked at
    /// after all actions before were carried out.
    Applied {
        /// Its offset.
        offset: u64,
    },
    /// The answer to [`Action::Detach`]: nothing is received or confirmed any more. If a link has
    /// come to stand of which the machine has not heard, [`Event::Linked`] comes before this.
    Detached {
        /// Where the data end.
        offset: u64,
    },
    /// As a primary: the replicas that are linked now, and how far each has confirmed.
    Replicas {
        /// The epoch of which this is true.
        epoch: Epoch,
        /// Which and how far.
        confirmed: Vec<(NodeId, u64)>,
    },
    /// The answer to [`Action::HoldWrites`]: all writes are in the journal, no other can be.
    WritesHeld {
        /// The epoch, as the action named it.
        epoch: Epoch,
        /// Where the journal ends.
        offset: u64,
    },
    /// A node's process is gone for certain: its connections were reset, and connecting is
    /// refused.
    Gone {
        /// Which node.
        node: NodeId,
        /// The time right before the attempt that was refused.
        since: Millis,
    },
    /// The answer to [`Action::Probe`]: that process is gone for certain.
    PredecessorGone {
        /// Which run of this node.
        incarnation: Incarnation,
    },
    /// A primary asks over the replication link that this node does not stand for election.
    PromiseAsked {
        /// Who.
        from: NodeId,
        /// In which epoch it is primary.
        epoch: Epoch,
        /// A number that the answer repeats.
        round: u64,
        /// For how long from now on.
        duration_ms: u64,
    },
    /// A node has given the promise of this round, or has refused it.
    Promised {
        /// Who.
        node: NodeId,
        /// As it was asked.
        epoch: Epoch,
        /// As it was asked.
        round: u64,
        /// Whether it has promised.
        given: bool,
    },
    /// A client asks this replica to become primary (CLUSTER FAILOVER).
    FailoverAsked {
        /// Where the answer goes.
        ticket: Ticket,
        /// Whether it shall not depend on the primary's help.
        force: bool,
    },
    /// The process shall end: a primary hands over to a replica first, if there is one.
    StopAsked {
        /// Where the answer goes: the process may end then.
        ticket: Ticket,
        /// How long the process waits for that answer.
        within_ms: u64,
    },
    /// The process does not end after all: it takes its place again.
    StopRefused,
    /// As the source of a migration: the target has nearly all data of the slots.
    CaughtUp {
        /// Which migration.
        migration: String,
        /// Which [`Action::Send`].
        number: u64,
    },
    /// As the source of a migration, after [`Action::HoldSlots`]: clients of the slots wait from
    /// now on.
    SlotsHeld {
        /// Which migration.
        migration: String,
        /// Which [`Action::Send`].
        number: u64,
    },
    /// As the source of a migration: the target was too slow, so they wait no longer. They are held
    /// again later.
    SlotsLetGo {
        /// Which migration.
        migration: String,
        /// Which [`Action::Send`].
        number: u64,
    },
    /// As the source of a migration: the link has broken, and all is sent anew.
    MigrationRestarted {
        /// Which migration.
        migration: String,
        /// Which [`Action::Send`].
        number: u64,
    },
    /// As the source of a migration: the slots are held, and a quorum of the target has all data.
    Delivered {
        /// Which migration.
        migration: String,
        /// Which [`Action::Send`].
        number: u64,
    },
    /// As the source of a migration: it cannot be done (the target refuses, has no memory ..).
    /// A link that breaks is no reason: it is opened again.
    MigrationFailed {
        /// Which migration.
        migration: String,
        /// Which [`Action::Send`].
        number: u64,
        /// Why.
        reason: String,
    },
}

/// What the machine wants done, in the order of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask etcd. The time of the request counts from now, so it must not be older when it is sent:
    /// a request that has waited too long is answered with [`Failure::NotDone`].
    Ask {
        /// Which the answer repeats.
        request: RequestId,
        /// What.
        what: Request,
    },
    /// Watch all keys that begin with `prefix`, from this revision on. It replaces the watch
    /// before.
    Watch {
        /// Which the reports repeat.
        watch: RequestId,
        /// How the keys begin.
        prefix: String,
        /// The first revision to report.
        from: Revision,
    },
    /// Ask another member of etcd first from now on, if several are named: what the one that was
    /// asked has is not the cluster. It is not answered.
    PassOver,
    /// Store this on disk, durably, before the next action: what [`Recovered`] says after a
    /// restart.
    /// It is also said once at the start, after which the files are not those of a node that was
    /// stopped in order any more.
    Remember {
        /// The shard to which the epoch belongs.
        shard: Option<ShardId>,
        /// The epoch of the data; 0: none.
        epoch: Epoch,
        /// Where that epoch began.
        start: u64,
        /// Whether nothing is missing.
        complete: bool,
    },
    /// Be primary in this epoch, with the data that are here. Writes wait for
    /// [`Action::ServeUntil`].
    Lead {
        /// The epoch.
        epoch: Epoch,
        /// Whether the journal goes on as it is, because this process was the last primary; else a
        /// new history begins.
        continues: bool,
    },
    /// Be replica of the primary of this epoch.
    Follow {
        /// Which node it is.
        node: NodeId,
        /// Where it is.
        address: Address,
        /// Its epoch.
        epoch: Epoch,
    },
    /// Be replica of nobody: receive and confirm nothing more. The answer is [`Event::Detached`].
    Detach,
    /// As a primary: acknowledge until this time, by the node's own clock, and never afterwards;
    /// 0: stop at once. The time before, if it is sooner, has no meaning any more.
    ServeUntil {
        /// The epoch for which it is true.
        epoch: Epoch,
        /// The time.
        until: Millis,
    },
    /// As a primary: which replicas make a write known to a quorum.
    Quorum {
        /// The epoch for which it is true.
        epoch: Epoch,
        /// Which they are.
        quorum: Quorum,
    },
    /// As a primary: let all writes wait until [`Action::ReleaseWrites`] or the end of the epoch.
    /// The answer is [`Event::WritesHeld`].
    HoldWrites {
        /// The epoch.
        epoch: Epoch,
    },
    /// Let writes go on.
    ReleaseWrites {
        /// The epoch.
        epoch: Epoch,
    },
    /// See whether the process of this node that was there before is gone. It is if connecting to
    /// it is refused, or leads to this process. The answer is [`Event::PredecessorGone`], or none.
    Probe {
        /// Its run.
        incarnation: Incarnation,
        /// Where it was.
        address: Address,
    },
    /// Ask these nodes over their replication links for a promise. It may get lost.
    AskPromises {
        /// Whom.
        nodes: Vec<NodeId>,
        /// In which epoch this node is primary.
        epoch: Epoch,
        /// A number that the answers repeat.
        round: u64,
        /// For how long, from when the question arrives.
        duration_ms: u64,
    },
    /// Answer to [`Event::PromiseAsked`]. Before the promise is given, it must be on disk for how
    /// long it lasts, as the next process's [`Setup::promised_ms`].
    AnswerPromise {
        /// Whom.
        to: NodeId,
        /// As it was asked.
        epoch: Epoch,
        /// As it was asked.
        round: u64,
        /// As it was asked.
        duration_ms: u64,
        /// Whether the promise is given.
        given: bool,
    },
    /// The topology that is true now. Nodes keep it on disk, and go by it to redirect clients.
    Publish(Arc<Topology>),
    /// As the source of a migration: send the data of the slots, and what is written meanwhile.
    /// Begins anew when the target's primary is another one.
    Send {
        /// Which migration.
        migration: String,
        /// Another one each time: what one try has done says nothing of the next.
        number: u64,
        /// Which slots.
        slots: SlotRanges,
        /// To which shard.
        to: ShardId,
        /// Its primary.
        node: NodeId,
        /// Where that is.
        address: Address,
        /// That primary's epoch.
        to_epoch: Epoch,
    },
    /// As the source of a migration: as soon as a quorum of the target has what was sent, let
    /// writes to its slots wait ([`Event::SlotsHeld`]), and bring the rest across. The answer is
    /// [`Event::Delivered`].
    HoldSlots {
        /// Which migration.
        migration: String,
    },
    /// As the source of a migration: it is over. Held writes go on: here, or by MOVED.
    Finish {
        /// Which migration.
        migration: String,
        /// Whether the target owns the slots now.
        moved: bool,
    },
    /// Answer to a client's command.
    Reply {
        /// Where it goes.
        ticket: Ticket,
        /// Nothing, or the error's text.
        result: Result<(), String>,
    },
    /// A line for the log.
    Log {
        /// Whether it deserves attention.
        is_warning: bool,
        /// What happened.
        text: String,
    },
}
