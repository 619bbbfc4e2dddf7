//! Which writes a quorum knows.

use crate::ids::NodeId;

/// The sets of nodes of which each must have a write. There are two while members change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quorum {
    /// The sets.
    pub groups: Vec<Group>,
    /// The offset at which the primary has begun to write. A replica that is not yet there knows
    /// nothing that counts.
    pub start: u64,
}

/// Nodes of which some must have a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The nodes without the primary.
    pub replicas: Vec<NodeId>,
    /// How many of them must have it.
    pub needed: usize,
}

impl Group {
    /// The replicas of which a quorum of `members` consists besides the primary.
    pub fn new(members: &[NodeId], primary: NodeId) -> Self {
        let replicas: Vec<NodeId> =
            members.iter().copied().filter(|node| *node != primary).collect();
        let counts_itself = usize::from(members.contains(&primary));
        Group { replicas, needed: (members.len() / 2 + 1).saturating_sub(counts_itself) }
    }
}

impl Quorum {
    /// The offset up to which a quorum has everything, at most `written`: the primary's own.
    /// `confirmed` are the offsets that replicas have confirmed in this epoch.
    pub fn reached(&self, written: u64, confirmed: &[(NodeId, u64)]) -> u64 {
        let of = |node: &NodeId| {
            let offset =
                confirmed.iter().find(|(other, _)| other == node).map(|(_, offset)| *offset);
            offset.filter(|offset| *offset >= self.start).unwrap_or(0)
        };
        let reached = self.groups.iter().map(|group| {
            let mut offsets: Vec<u64> = group.replicas.iter().map(of).collect();
            offsets.sort_unstable_by(|a, b| b.cmp(a));
            match group.needed {
                0 => written,
                needed => offsets.get(needed - 1).copied().unwrap_or(0),
            }
        });
        reached.min().unwrap_or(0).min(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u8) -> NodeId {
        NodeId([number; 20])
    }

    #[test]
    fn a_quorum_is_more_than_half_with_the_primary() {
        let members = [node(1), node(2), node(3)];
        let quorum = Quorum { groups: vec![Group::new(&members, node(1))], start: 10 };
        assert_eq!(quorum.reached(50, &[]), 0);
        assert_eq!(quorum.reached(50, &[(node(3), 30)]), 30);
        assert_eq!(quorum.reached(50, &[(node(2), 40), (node(3), 30)]), 40);
        assert_eq!(quorum.reached(50, &[(node(9), 40)]), 0, "a node that is no member");
        assert_eq!(quorum.reached(50, &[(node(2), 9)]), 0, "a replica before the start");
        assert_eq!(quorum.reached(50, &[(node(2), 60)]), 50);
        let alone = Quorum { groups: vec![Group::new(&[node(1)], node(1))], start: 0 };
        assert_eq!(alone.reached(50, &[]), 50);
        let two = Quorum { groups: vec![Group::new(&members[..2], node(1))], start: 0 };
        assert_eq!(two.reached(50, &[(node(2), 20)]), 20);
    }

    #[test]
    fn while_members_change_both_sets_must_know() {
        let old = Group::new(&[node(1), node(2), node(3)], node(1));
        let new = Group::new(&[node(1), node(2)], node(1));
        let quorum = Quorum { groups: vec![old, new], start: 0 };
        assert_eq!(quorum.reached(50, &[(node(3), 50)]), 0);
        assert_eq!(quorum.reached(50, &[(node(3), 50), (node(2), 20)]), 20);
    }
}
