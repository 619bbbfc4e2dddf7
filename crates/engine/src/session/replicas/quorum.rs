//! Which members of this server's shard make a write known to a quorum, where the server is the
//! primary of a shard of a cluster.
//!
//! Replicas that are no members, such as a backup or a server outside of the cluster, do not count:
//! no election asks them. Where the server is a replica, it knows here whom it follows.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use cluster::control;
use cluster::ids::{Epoch, NodeId};
use parking_lot::Mutex;

/// See the module's text.
#[derive(Default)]
pub struct Quorum {
    quorum: Mutex<control::Quorum>,
    epoch: AtomicI64,
    /// The primary that this server is to follow, and in which epoch.
    follows: Mutex<Option<(NodeId, Epoch)>>,
}

impl Quorum {
    /// Sets the epoch in which this server follows, or since which its own journal goes on.
    pub fn set_epoch(&self, epoch: Epoch) {
        self.epoch.store(epoch, Relaxed);
    }

    /// This server follows that node, in that epoch.
    pub fn follow(&self, primary: NodeId, epoch: Epoch) {
        *self.follows.lock() = Some((primary, epoch));
        self.set_epoch(epoch);
    }

    /// Whom this server followed last. At the same address may be another node by now.
    pub fn follows(&self) -> Option<(NodeId, Epoch)> {
        *self.follows.lock()
    }

    /// See [`Quorum::set_epoch`]. A replica that follows in an earlier one does not know yet to
    /// which epoch its data belong, so what it has does not count.
    pub fn epoch(&self) -> Epoch {
        self.epoch.load(Relaxed)
    }

    /// Sets it. Its start is an offset of this server's own journal.
    pub fn set(&self, quorum: control::Quorum) {
        *self.quorum.lock() = quorum;
    }

    /// How many replicas it needs besides this server. Before the server knows of one, it needs one
    /// more than there are.
    pub fn replicas(&self) -> u64 {
        let own = self.quorum.lock();
        own.groups.iter().map(|group| group.needed as u64).max().unwrap_or(1)
    }

    /// Whether a quorum has everything up to this offset. `confirmed` says how far replicas are.
    pub fn has(&self, offset: u64, confirmed: &[(NodeId, u64)]) -> bool {
        let own = self.quorum.lock();
        !own.groups.is_empty() && own.reached(u64::MAX, confirmed) >= offset
    }
}

#[cfg(test)]
mod tests {
    use cluster::control::Group;

    use super::*;

    #[test]
    fn nothing_is_reached_before_anybody_has_said_who_counts() {
        let (one, other) = (NodeId([1; 20]), NodeId([2; 20]));
        let quorum = Quorum::default();
        assert!(quorum.replicas() == 1 && !quorum.has(0, &[(other, 9)]));
        let group = |members: &[NodeId]| control::Quorum {
            groups: vec![Group::new(members, one)],
            start: 5,
        };
        quorum.set(group(&[one]));
        assert!(quorum.replicas() == 0 && quorum.has(9, &[]));
        quorum.set(group(&[one, other]));
        assert!(quorum.replicas() == 1 && quorum.has(9, &[(other, 9)]));
        assert!(!quorum.has(9, &[(other, 8)]) && !quorum.has(9, &[(one, 9)]));
    }
}
