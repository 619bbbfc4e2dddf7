//! The node's part in a cluster: which slots it serves, and until when.
//!
//! The topology of the cluster comes from outside, as a whole, and is exchanged as a whole
//! ([`crate::engine::Engine::follow_topology`]). What commands need of it is put together once, in
//! a [`ClusterView`]. A thread looks for another view when it enters its gate. The view changes
//! while the world is stopped if the node serves less than before, so no command runs that it does
//! not serve any more.
//!
//! A primary also has a time until which it may serve ([`Cluster::serve_until`]), because another
//! node may take over after it. That is one number, which each turn reads.
//!
//! | file | what it answers |
//! |---|---|
//! | [`view`] | which slots does this node serve, and who serves the others? |
//! | [`slot_stats`] | what do the commands of each slot cost? |

pub mod slot_stats;
pub mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use cluster::ids::NodeId;
use cluster::topology::Topology;
use parking_lot::Mutex;

use self::slot_stats::SlotStats;
use self::view::{ClusterView, SaidSlots};

/// See the module's text.
pub struct Cluster {
    view: Option<Mutex<Arc<ClusterView>>>,
    /// The number of the present view; 0 without a cluster.
    generation: AtomicU64,
    serves_until: AtomicU64,
    /// When etcd last answered, in milliseconds of the monotonic clock; 0: not yet.
    pub etcd_answered_at: AtomicU64,
    /// What the commands of each slot cost.
    pub slot_stats: SlotStats,
}

impl Cluster {
    /// The part of a server that is a node of a cluster or is not. A node serves nothing before it
    /// knows a topology.
    pub fn new(enabled: bool) -> Cluster {
        let nothing = || Mutex::new(Arc::new(ClusterView::new(Arc::default(), NodeId([0; 20]))));
        Cluster {
            view: enabled.then(nothing),
            generation: AtomicU64::new(u64::from(enabled)),
            serves_until: AtomicU64::new(u64::MAX),
            etcd_answered_at: AtomicU64::new(0),
            slot_stats: SlotStats::default(),
        }
    }

    /// Whether this is a node of a cluster.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.view.is_some()
    }

    /// The present view, if this is a node of a cluster.
    pub fn view(&self) -> Option<Arc<ClusterView>> {
        self.view.as_ref().map(|view| Arc::clone(&view.lock()))
    }

    /// The number of the present view: views with one number are the same.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    /// Says which node this is. Must be called before clients connect.
    pub fn set_own(&self, own: NodeId) {
        if let Some(view) = self.view() {
            self.set_view(ClusterView::new(Arc::clone(&view.topology), own));
        }
    }

    /// The view of another topology.
    pub(crate) fn view_of(&self, topology: Arc<Topology>) -> Option<ClusterView> {
        Some(ClusterView::new(topology, self.view()?.own))
    }

    /// Exchanges the view.
    pub(crate) fn set_view(&self, view: ClusterView) {
        if let Some(place) = &self.view {
            let mut place = place.lock();
            let view = view.heeding(place.said());
            self.exchange(&mut place, view);
        }
    }

    fn exchange(&self, place: &mut Arc<ClusterView>, view: ClusterView) {
        self.slot_stats.forget(view.lost_since(place));
        *place = Arc::new(view);
        self.generation.fetch_add(1, Release);
    }

    /// The primary of this replica says which slots the shard has. Returns whether that is news.
    pub(crate) fn heed(&self, said: SaidSlots) -> bool {
        let Some(place) = &self.view else { return false };
        let mut place = place.lock();
        let (topology, said) = (Arc::clone(&place.topology), Arc::new(said));
        let view = ClusterView::new(topology, place.own).heeding(Some(&said));
        let differs = !view.serves_as(&place);
        if differs {
            self.exchange(&mut place, view);
        }
        differs
    }

    /// Sets the time until which this node may serve its slots as their primary, in microseconds of
    /// the monotonic clock: 0 for not at all, `u64::MAX` for ever. Commands that begin later are
    /// answered that the cluster is down. Replicas serve reads without a limit.
    pub fn serve_until(&self, until_us: u64) {
        self.serves_until.store(until_us, Relaxed);
    }

    /// See [`Cluster::serve_until`].
    #[inline]
    pub fn serves_until(&self) -> u64 {
        self.serves_until.load(Relaxed)
    }

    /// Whether this node may serve its slots as their primary at this microsecond of the monotonic
    /// clock.
    #[inline]
    pub fn may_serve(&self, now_us: u64) -> bool {
        now_us < self.serves_until()
    }

    /// Whether this node may serve what is its own, whatever its part is.
    #[inline]
    pub fn may_serve_as(&self, view: &ClusterView, now_us: u64) -> bool {
        !view.leads() || self.may_serve(now_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_alone_has_no_view_and_serves_for_ever() {
        let alone = Cluster::new(false);
        alone.set_own(NodeId([1; 20]));
        assert!(!alone.is_enabled() && alone.view().is_none() && alone.generation() == 0);
        assert!(alone.may_serve(u64::MAX - 1));
    }

    #[test]
    fn a_node_serves_until_its_time_is_over() {
        let node = Cluster::new(true);
        let before = node.generation();
        node.set_own(NodeId([1; 20]));
        assert!(node.generation() > before);
        assert_eq!(node.view().map(|view| view.own), Some(NodeId([1; 20])));
        node.serve_until(100);
        assert!(node.may_serve(99) && !node.may_serve(100));
        node.serve_until(0);
        assert!(!node.may_serve(0));
    }
}
