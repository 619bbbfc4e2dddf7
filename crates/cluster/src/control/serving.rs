//! Until when a primary acknowledges, and which replicas must know a write.
//!
//! A primary acknowledges while its lease lasts, by its own clock, from before the request was
//! sent that renewed it, less a margin. When etcd is silent, it asks all members of its shard for
//! a promise not to stand for election for some time; while it has the promises of *every* member,
//! no other primary can come up, whatever etcd does, and it goes on.

use crate::control::event::{Action, Millis};
use crate::control::quorum::{Group, Quorum};
use crate::control::state::{Control, Role, Rule};
use crate::ids::{Epoch, NodeId, ShardId};

/// How often promises are asked for, in milliseconds.
const ROUND_MS: u64 = 300;

impl Control {
    pub(super) fn step_serving(&mut self) {
        let Role::Leading { shard, epoch, leader } = self.role else { return };
        let quorum = self.wanted_quorum(shard, leader.start);
        if quorum != self.quorum {
            self.quorum = quorum.clone();
            self.act(Action::Quorum { epoch, quorum });
        }
        let is_last = self.mirror.last_epoch(shard) == epoch;
        let is_releasing = self.handover.as_ref().is_some_and(|it| it.is_releasing());
        let is_ending = self.stop.is_some_and(|stop| stop.is_revoking);
        let mut until = 0;
        if is_last && !is_releasing && !is_ending && !self.is_displaced {
            until = self.leased_until(shard, epoch);
            if self.mirror.voters(shard).contains(&self.me()) {
                let others = self.other_members(shard);
                self.ask_promises(epoch, &others);
                until = until.max(self.promised_by(&others));
            }
        }
        if until != self.serve_until {
            self.serve_until = until;
            self.act(Action::ServeUntil { epoch, until });
        }
    }

    /// Until when the key is this node's for certain. A lease at an etcd that is not believed says
    /// nothing.
    fn leased_until(&self, shard: ShardId, epoch: Epoch) -> Millis {
        let Some(lease) = self.lease.filter(|_| !self.disbelieves) else { return 0 };
        let entry = self.mirror.leaders.get(&shard);
        match entry.is_some_and(|entry| entry.created == epoch && entry.lease == lease.id) {
            true => lease.until().saturating_sub(self.margin(lease.ttl_ms)),
            false => 0,
        }
    }

    /// The members that could be elected, but for this node. While they change, of both sets.
    fn other_members(&self, shard: ShardId) -> Vec<NodeId> {
        let mut members = self.mirror.voters(shard).to_vec();
        if let Some(change) = &self.change {
            members.extend(
                change.members.iter().filter(|node| !self.mirror.voters(shard).contains(node)),
            );
        }
        members.retain(|node| *node != self.me());
        members
    }

    /// Until when none of these nodes stands for election.
    fn promised_by(&self, others: &[NodeId]) -> Millis {
        let duration = self.setup.node_timeout_ms;
        let mut asked: Vec<Millis> =
            others.iter().map(|node| self.given.get(node).copied().unwrap_or(0)).collect();
        if !self.keeps(Rule::EveryMember) {
            // As if a quorum, this node included, were enough.
            asked.sort_unstable();
            asked.drain(..others.len().div_ceil(2).min(others.len()));
        }
        match asked.into_iter().min() {
            Some(0) => 0,
            Some(first) => first + duration - self.margin(duration),
            None if self.next_round == 0 => 0,
            // It is alone, and promises itself.
            None => self.next_round - ROUND_MS + duration - self.margin(duration),
        }
    }

    fn ask_promises(&mut self, epoch: Epoch, nodes: &[NodeId]) {
        let is_renewed =
            self.lease.is_some_and(|lease| self.now < lease.renewed + lease.ttl_ms / 2);
        let has_key = self.leader().is_some_and(|entry| entry.created == epoch);
        if (is_renewed && has_key && !self.disbelieves) || self.now < self.next_round {
            return;
        }
        self.next_round = self.now + ROUND_MS;
        if !nodes.is_empty() {
            let (nodes, duration_ms) = (nodes.to_vec(), self.setup.node_timeout_ms);
            self.act(Action::AskPromises { nodes, epoch, round: self.now, duration_ms });
        }
    }

    /// The sets of nodes of which each must know a write.
    fn wanted_quorum(&self, shard: ShardId, start: u64) -> Quorum {
        let me = self.me();
        let mut groups = vec![Group::new(self.mirror.voters(shard), me)];
        if let Some(change) = &self.change
            && self.keeps(Rule::JointQuorum)
        {
            groups.push(Group::new(&change.members, me));
        }
        Quorum { groups, start }
    }
}
