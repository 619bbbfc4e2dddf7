//! A topology as one node sees it.

use std::sync::Arc;

use cluster::ids::NodeId;
use cluster::store::Revision;
use cluster::topology::{Node, Shard, Topology};
use store::SlotSet;

use crate::command::args::KeyAt;
use config::{Config, EndpointType};

/// Who serves a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Owner<'v> {
    /// No node.
    Nobody,
    /// The shard of this node, which is its primary.
    Own,
    /// The shard of this node, whose primary this is, or was when it last had one: this node too.
    Primary(&'v Node),
    /// Another shard, whose primary this is, or was when it last had one.
    Other(&'v Node),
}

/// What the word of REPLCONF capa begins with by which a primary tells its replicas which slots the
/// shard has. Replicas of other kinds pass over words that they do not know.
pub const SAID_SLOTS: &[u8] = b"cluster-slots:";

/// The slots of a shard, as its primary knows them. A replica that does not reach etcd hears of
/// slots that have left in this way, before it hears that their keys are deleted.
pub struct SaidSlots {
    /// The revision of the topology in which they are so.
    pub revision: Revision,
    /// The slots.
    pub slots: SlotSet,
}

/// See the module's text.
pub struct ClusterView {
    /// The cluster.
    pub topology: Arc<Topology>,
    /// This node.
    pub own: NodeId,
    /// The slots of its shard.
    slots: SlotSet,
    /// What the primary of this replica says of them.
    said: Option<Arc<SaidSlots>>,
    leads: bool,
    is_covered: bool,
}

impl ClusterView {
    /// A topology as this node sees it.
    pub fn new(topology: Arc<Topology>, own: NodeId) -> ClusterView {
        let shard = topology.shard_of(own);
        let slots = shard.into_iter().flat_map(|shard| shard.slots.iter()).collect();
        let (leads, is_covered) = (topology.is_primary(own), topology.is_covered());
        ClusterView { topology, own, slots, said: None, leads, is_covered }
    }

    /// The same, but a replica has none of the slots that have left since then, as its primary has
    /// said. Its primary, to which it sends their clients, knows where they are.
    pub(super) fn heeding(mut self, said: Option<&Arc<SaidSlots>>) -> ClusterView {
        let newer = |own: &&Arc<SaidSlots>| !self.leads && own.revision > self.topology.revision;
        if let Some(said) = said.filter(newer) {
            self.slots = self.slots.iter().filter(|slot| said.slots.has(*slot)).collect();
            self.said = Some(Arc::clone(said));
        }
        self
    }

    /// What [`ClusterView::heeding`] has heeded.
    pub(super) fn said(&self) -> Option<&Arc<SaidSlots>> {
        self.said.as_ref()
    }

    /// The shard of this node.
    pub fn shard(&self) -> Option<&Shard> {
        self.topology.shard_of(self.own)
    }

    /// Whether this node is the primary of its shard.
    #[inline]
    pub fn leads(&self) -> bool {
        self.leads
    }

    /// Whether a slot belongs to the shard of this node.
    #[inline]
    pub fn has_slot(&self, slot: u16) -> bool {
        self.slots.has(slot)
    }

    /// Whether this node does the same for its slots as in another view.
    pub(crate) fn serves_as(&self, other: &ClusterView) -> bool {
        self.own == other.own && self.leads == other.leads && self.slots == other.slots
    }

    /// Whether this node does less for any slot than in the view before this one, or has another
    /// part. A replica does nothing that could be lost.
    pub(crate) fn ends_any_of(&self, before: &ClusterView) -> bool {
        let loses_slots = || before.slots.meets(&self.slots.complement());
        self.own != before.own || self.leads != before.leads || self.leads && loses_slots()
    }

    /// The slots that the shard of this node has had in the view before this one.
    pub(super) fn lost_since(&self, before: &ClusterView) -> impl Iterator<Item = u16> {
        before.slots.iter().filter(|slot| !self.slots.has(*slot))
    }

    /// Who serves a slot.
    pub fn owner(&self, slot: u16) -> Owner<'_> {
        if self.leads && self.slots.has(slot) {
            return Owner::Own;
        }
        match self.topology.primary_of_slot(slot) {
            Some(node) if self.slots.has(slot) => Owner::Primary(node),
            Some(node) => Owner::Other(node),
            None => Owner::Nobody,
        }
    }

    /// Whether the settings let commands run, as far as the other shards matter.
    #[inline]
    pub fn is_up(&self, config: &Config) -> bool {
        self.is_covered || !config.cluster_require_full_coverage
    }

    /// Whether this node certainly serves a command that names these keys.
    #[inline]
    pub(crate) fn surely_serves(&self, writes: bool, reads_here: bool, keys: &[KeyAt]) -> bool {
        if !(self.leads || reads_here && !writes) {
            return false;
        }
        match keys {
            [key] => self.slots.has(key.slot),
            [first, others @ ..] => {
                self.slots.has(first.slot) && others.iter().all(|key| key.slot == first.slot)
            }
            [] => true,
        }
    }
}

/// The name of a node for clients, as the settings choose it. Without one, clients take the address
/// by which they have reached the node that says so.
pub fn endpoint<'n>(node: &'n Node, config: &Config) -> Option<&'n str> {
    match config.cluster_preferred_endpoint_type {
        EndpointType::Ip => Some(&node.address.host),
        EndpointType::Hostname if node.address.hostname.is_empty() => Some("?"),
        EndpointType::Hostname => Some(&node.address.hostname),
        EndpointType::UnknownEndpoint => None,
    }
}

/// The port of a node for clients of one kind: 0 if it has none for them.
pub fn port(node: &Node, encrypted: bool) -> u16 {
    if encrypted { node.address.tls_port } else { node.address.port }
}
