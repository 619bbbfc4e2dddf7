//! A simulated machine with one node: its clock, its data, and its process while there is one.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::control::{Control, Event, Lineage, Quorum, RequestId};
use crate::ids::{Epoch, Incarnation, NodeId, ShardId};
use crate::slots::SlotRanges;
use crate::store::Revision;
use crate::topology::Topology;

/// One record of a journal.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// A write to a slot.
    Write { id: u64, slot: u16 },
    /// All writes of slots that have come from another shard, in place of what was there.
    Import { id: u64, slots: SlotRanges, writes: Rc<Vec<(u16, u64)>> },
}

impl Entry {
    pub(super) fn id(&self) -> u64 {
        match self {
            Entry::Write { id, .. } | Entry::Import { id, .. } => *id,
        }
    }
}

/// The writes that a journal has left in some slots.
pub(super) fn content(journal: &[Entry], of: &SlotRanges) -> Vec<(u16, u64)> {
    let mut writes: Vec<(u16, u64)> = Vec::new();
    for entry in journal {
        match entry {
            Entry::Write { id, slot } if of.contains(*slot) => writes.push((*slot, *id)),
            Entry::Write { .. } => {}
            Entry::Import { slots, writes: imported, .. } => {
                writes.retain(|(slot, _)| !slots.contains(*slot));
                writes.extend(imported.iter().filter(|(slot, _)| of.contains(*slot)));
            }
        }
    }
    writes
}

/// What the data path of a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DataRole {
    Nobody,
    Following { leader: usize, epoch: Epoch },
    Leading { epoch: Epoch },
}

/// What arrives at a process.
#[derive(Clone, Debug)]
pub(super) enum Message {
    /// For its machine.
    Event(Event),
    /// From the primary: records from an offset on.
    Entries { link: u64, from: usize, entries: Vec<Entry> },
    /// From a replica: how far it is.
    Confirmed { link: u64, node: usize, offset: u64 },
    /// The primary has closed a link.
    LinkClosed { link: u64 },
    /// A replica tries to connect.
    Connect { leader: usize, epoch: Epoch },
    /// A full copy has arrived.
    FullCopy { leader: usize, epoch: Epoch },
    /// The machine hears of its link to a primary.
    SayLinked { link: u64 },
    /// The node has let go of its primary.
    LetGo { turn: u64 },
    /// The next step of sending slots.
    SendStep { migration: String, attempt: u64 },
    /// As a primary: a replica gets the rest of what was written before it was linked.
    SendRest { node: usize, link: u64 },
    /// The data of slots arrive at their target.
    Import {
        from: usize,
        migration: String,
        attempt: u64,
        to_epoch: Epoch,
        slots: SlotRanges,
        writes: Rc<Vec<(u16, u64)>>,
    },
    /// The target's quorum has them.
    Imported { migration: String, attempt: u64 },
    /// The thread that sends slots has heard of that, and says so.
    SayDelivered { migration: String, number: u64 },
}

/// What a source does for a migration.
#[derive(Clone, Debug)]
pub(super) struct Send {
    /// As the machine calls it.
    pub(super) number: u64,
    pub(super) slots: SlotRanges,
    pub(super) target: usize,
    pub(super) to_epoch: Epoch,
    pub(super) attempt: u64,
    pub(super) is_held: bool,
}

/// A link to the primary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) number: u64,
    pub(super) leader: usize,
}

/// A running process.
pub(super) struct Process {
    pub(super) control: Control,
    pub(super) incarnation: Incarnation,
    pub(super) role: DataRole,
    /// Counts what the node was told to be, so that what comes late has no effect.
    pub(super) turn: u64,
    pub(super) is_connecting: bool,
    pub(super) link: Option<Link>,
    /// The epoch of a link of which the machine has not heard yet, and where it began.
    pub(super) untold: Option<(Epoch, u64, u64)>,
    /// The offset that the machine knows.
    pub(super) told: Option<u64>,
    pub(super) serve_until: u64,
    pub(super) quorum: Quorum,
    pub(super) holds_writes: bool,
    pub(super) topology: Arc<Topology>,
    /// As a primary: the link and the offset of each replica.
    pub(super) confirmed: BTreeMap<usize, (u64, u64)>,
    /// The links of those that are being sent what was written before, and how far.
    pub(super) behind: BTreeMap<usize, (u64, usize)>,
    /// Writes that wait for a quorum: offset, number, slot.
    pub(super) waiting: Vec<(u64, u64, u16)>,
    pub(super) importing: Vec<(u64, usize, String, u64)>,
    pub(super) sends: BTreeMap<String, Send>,
    /// The attempts to send slots that have arrived.
    pub(super) arrived: Vec<(SlotRanges, u64)>,
    pub(super) watch: Option<(RequestId, Revision)>,
    pub(super) asked: BTreeSet<RequestId>,
    pub(super) is_stopping: bool,
}

/// A machine.
pub(super) struct Host {
    pub(super) id: NodeId,
    pub(super) clock_offset: u64,
    /// How fast its clock runs, in millionths.
    pub(super) clock_rate: u64,
    pub(super) process: Option<Process>,
    pub(super) is_stopped: bool,
    /// What has arrived while it was stopped.
    pub(super) backlog: Vec<Message>,
    pub(super) journal: Vec<Entry>,
    /// When it last lost some of that.
    pub(super) lost_at: Option<u64>,
    /// What its machine has asked it to remember.
    pub(super) remembered: (Option<ShardId>, Lineage, bool),
    /// The cluster as its disk has it, and since when that is old.
    pub(super) kept: Option<Arc<Topology>>,
    pub(super) is_old_since: Option<u64>,
    /// Its process has ended in order, and knows so.
    pub(super) has_ended_in_order: bool,
    pub(super) runs: u64,
    /// How long a silent node keeps its place, as the node's settings say.
    pub(super) node_timeout_ms: u64,
    /// For how long it has promised something last, and until when by its clock.
    pub(super) promised: (u64, u64),
    /// Nothing reaches etcd.
    pub(super) is_mute: bool,
    /// Nothing comes back from etcd.
    pub(super) is_deaf: bool,
    /// It never starts again.
    pub(super) is_scrapped: bool,
}

impl Host {
    pub(super) fn clock(&self, now: u64) -> u64 {
        self.clock_offset + now * self.clock_rate / 1_000_000
    }

    /// What its disk says of its promises, in milliseconds from the start of a process on.
    pub(super) fn may_have_promised_ms(&self, now: u64) -> u64 {
        let (duration_ms, until) = self.promised;
        if self.clock(now) <= until { duration_ms } else { 0 }
    }

    pub(super) fn runs_freely(&self) -> bool {
        self.process.is_some() && !self.is_stopped
    }

    pub(super) fn leads(&self) -> Option<Epoch> {
        match self.process.as_ref()?.role {
            DataRole::Leading { epoch } => Some(epoch),
            _ => None,
        }
    }
}
