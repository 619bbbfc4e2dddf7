//! A primary lets go in favour of a replica that has everything: CLUSTER FAILOVER, and the end of
//! the process.
//!
//! The replica writes `failovers/SHARD`. The primary sees it, lets writes wait, and waits until
//! the replica has all; then it acknowledges nothing more, and in one transaction deletes its key
//! and notes the offset. The replica then takes the key without an election, because its data end
//! there.

use crate::control::event::{Action, Ticket};
use crate::control::members::NEAR;
use crate::control::state::{Control, Doubts, Handover, Purpose, Role, Stop};
use crate::ids::{Epoch, NodeId, ShardId};
use crate::keys::{FailoverValue, Subject, encode};
use crate::store::{Compare, Operation, Request, Revision};

/// How long writes wait for the replica that shall become primary, in milliseconds.
const PATIENCE_MS: u64 = 5000;

/// How long a primary that leaves goes on before it tries again to hand over, in milliseconds;
/// each time longer.
const PAUSE_MS: u64 = 5000;

/// How long the end of the process waits at most for a replica, in milliseconds, and for etcd.
const STOP_MS: u64 = 3000;

impl Control {
    /// A client asks this replica to become primary.
    pub(super) fn hear_failover(&mut self, ticket: Ticket, force: bool) {
        let refusal = match &self.role {
            Role::Leading { .. } => Some("You should send CLUSTER FAILOVER to a replica"),
            _ if self
                .shard()
                .is_none_or(|shard| !self.mirror.voters(shard).contains(&self.me())) =>
            {
                Some("This node is no member of its shard yet")
            }
            Role::Following { is_linked: true, .. } => None,
            _ if force => None,
            _ => Some("Master is down or failed, please use CLUSTER FAILOVER FORCE"),
        };
        let refusal = match (refusal, self.failover, self.lease) {
            (Some(refusal), ..) => refusal,
            (None, Some(_), _) => "A failover is already in progress",
            (None, None, None) => "etcd cannot be reached",
            (None, None, Some(_)) => {
                self.failover = Some((ticket, force, self.now + PATIENCE_MS));
                return;
            }
        };
        let result = Err(refusal.to_owned());
        self.act(Action::Reply { ticket, result });
    }

    /// The process shall end.
    pub(super) fn hear_stop(&mut self, ticket: Ticket, within_ms: u64) {
        if let Some(Stop { ticket: before, .. }) = self.stop {
            self.act(Action::Reply { ticket: before, result: Ok(()) });
        }
        // Some of that time is for giving the lease back.
        let wait_ms = STOP_MS.min(within_ms - within_ms / 3);
        let deadline = self.now + wait_ms;
        self.stop = Some(Stop { ticket, deadline, wait_ms, is_revoking: false });
    }

    /// The process goes on.
    pub(super) fn hear_stop_refused(&mut self) {
        let Some(Stop { ticket, deadline, is_revoking, .. }) = self.stop.take() else { return };
        if deadline != u64::MAX {
            self.act(Action::Reply { ticket, result: Ok(()) });
        }
        // A late answer would end the next stop.
        self.requests.retain(|_, (purpose, ..)| *purpose != Purpose::Revoke);
        if is_revoking {
            // Whether it has ended is not known: another takes its place.
            self.lease = None;
        }
        if self.handover.as_ref().is_some_and(|it| it.is_own_wish && !it.is_releasing()) {
            self.drop_handover();
        }
        self.log("The process goes on, and takes its place in the cluster again".into());
    }

    pub(super) fn step_handover(&mut self) {
        self.step_wish();
        let Role::Leading { shard, epoch, .. } = self.role else { return };
        let has_key = self.leader().is_some_and(|entry| entry.created == epoch);
        if has_key {
            self.step_old_wish(shard);
            self.begin_handover(shard, epoch);
        }
        let Some(handover) = self.handover.clone() else { return };
        if handover.is_releasing() {
            return self.check_release(shard, epoch);
        }
        let wish = self.mirror.failovers.get(&shard);
        let is_asked_for = wish.is_some_and(|it| it.value.to == handover.to);
        let is_wished = handover.is_own_wish || is_asked_for;
        let is_in_time = self.now < handover.deadline;
        if !is_wished || !is_in_time || !has_key || !self.may_succeed(shard, handover.to) {
            self.give_up_handover();
            // Somebody else may have another wish since.
            if is_asked_for {
                self.clear_failover(shard);
            }
            return;
        }
        let Some(held) = handover.held else { return };
        let has_all =
            self.replicas.iter().any(|(node, offset)| *node == handover.to && *offset >= held);
        if has_all {
            self.release(shard, epoch, handover.to, held);
        }
    }

    /// Writes down what a client has asked this replica for.
    fn step_wish(&mut self) {
        let Some((ticket, force, deadline)) = self.failover else { return };
        if self.now >= deadline {
            self.failover = None;
            let result = Err("The failover could not be written down at etcd".to_owned());
            return self.act(Action::Reply { ticket, result });
        }
        let (Some(shard), Some(lease)) = (self.shard(), self.lease) else { return };
        if !self.has_name() {
            return;
        }
        let epoch = self.mirror.last_epoch(shard);
        let subject = Subject::Failover(shard);
        let before = self.mirror.failovers.get(&shard).map_or(0, |entry| entry.modified);
        let leader = self.leader().map_or(0, |entry| entry.created);
        let compares = vec![self.is_leader(shard, leader), self.is_unchanged(&subject, before)];
        let value = encode(&FailoverValue { to: self.me(), epoch, released: None, force });
        let put = Operation::Put { key: self.key(&subject), value, lease: lease.id };
        self.transact(Purpose::AskFailover, compares, vec![put]);
    }

    pub(super) fn hear_failover_asked(&mut self, succeeded: bool) {
        if succeeded && let Some((ticket, ..)) = self.failover.take() {
            self.act(Action::Reply { ticket, result: Ok(()) });
        }
    }

    /// Deletes a wish that could not be fulfilled in time: it would be one day, when nobody wants
    /// it any more.
    fn step_old_wish(&mut self, shard: ShardId) {
        let Some(modified) = self.mirror.failovers.get(&shard).map(|entry| entry.modified) else {
            return;
        };
        if self.wish_seen.0 != modified {
            self.wish_seen = (modified, self.now);
        }
        if self.handover.is_none() && self.is_wish_old() {
            self.clear_failover(shard);
        }
    }

    fn is_wish_old(&self) -> bool {
        self.now >= self.wish_seen.1 + PATIENCE_MS
    }

    /// Whether this node may be primary next: it is a member, and no change takes it out.
    fn may_succeed(&self, shard: ShardId, node: NodeId) -> bool {
        let stays = self.change.as_ref().is_none_or(|change| change.members.contains(&node));
        stays && self.mirror.voters(shard).contains(&node)
    }

    /// Begins to let go, if a replica is wanted in this node's place.
    fn begin_handover(&mut self, shard: ShardId, epoch: Epoch) {
        if self.handover.is_some() || self.is_displaced || !self.hears_etcd() {
            return;
        }
        let is_linked = |node: NodeId| self.replicas.iter().any(|(other, _)| *other == node);
        let is_ending = self.stop.is_some_and(|stop| !stop.is_revoking);
        let stays = |node: NodeId| self.mirror.wanted_shard(node) == Some(shard);
        let wish = self.mirror.failovers.get(&shard).map(|entry| entry.value);
        let wish = wish.filter(|wish| wish.epoch == epoch && wish.released.is_none());
        let wish = wish.filter(|wish| is_linked(wish.to) && self.may_succeed(shard, wish.to));
        let leaves = !stays(self.me()) && self.now >= self.left_in_vain.1;
        let (to, is_own_wish) = match wish.filter(|_| !self.is_wish_old()) {
            Some(wish) => (Some(wish.to), false),
            // One that leaves would hand over to another one that does, and that one to it.
            None if is_ending || leaves => {
                let is_fit = |node: NodeId, offset: u64| {
                    is_ending || (stays(node) && offset + NEAR >= self.data.offset)
                };
                let furthest = self.replicas.iter().filter(|(node, offset)| {
                    self.may_succeed(shard, *node)
                        && self.mirror.alive.contains_key(node)
                        && is_fit(*node, *offset)
                });
                (furthest.max_by_key(|(_, offset)| *offset).map(|(node, _)| *node), true)
            }
            _ => (None, false),
        };
        if let Some(to) = to {
            let deadline = self.now + if is_own_wish { STOP_MS * 2 / 3 } else { PATIENCE_MS };
            let held = None;
            let doubts = Doubts::default();
            self.handover = Some(Handover { to, deadline, held, doubts, is_own_wish });
            self.log(format!("Writes wait until replica {to} has everything"));
            self.act(Action::HoldWrites { epoch });
        }
    }

    pub(super) fn hear_held(&mut self, epoch: Epoch, offset: u64) {
        if self.leading() == Some(epoch)
            && let Some(handover) = &mut self.handover
        {
            handover.held = Some(offset);
        }
    }

    /// Gives the key back. From now on nothing is acknowledged until etcd has said what became of
    /// it.
    fn release(&mut self, shard: ShardId, epoch: Epoch, to: NodeId, offset: u64) {
        let Some(alive) = self.mirror.alive.get(&to) else { return };
        let lease = alive.lease;
        let subject = Subject::Failover(shard);
        let before = self.mirror.failovers.get(&shard).map_or(0, |entry| entry.modified);
        let members = self.mirror.shards.get(&shard).map_or(0, |entry| entry.modified);
        let value = FailoverValue { to, epoch, released: Some(offset), force: false };
        let compares = vec![
            self.is_leader(shard, epoch),
            self.is_unchanged(&subject, before),
            self.is_unchanged(&Subject::Shard(shard), members),
        ];
        let put = Operation::Put { key: self.key(&subject), value: encode(&value), lease };
        self.delete_key(shard, epoch, compares, put);
    }

    /// Deletes the key of this primary, if etcd takes `put` as well. It acknowledges nothing from
    /// before the request leaves.
    fn delete_key(&mut self, shard: ShardId, epoch: Epoch, compares: Vec<Compare>, put: Operation) {
        let is_unread = self.handover.as_ref().is_some_and(|it| !it.doubts.allow_another());
        if is_unread || !self.may_transact(&Purpose::Release) {
            return;
        }
        self.fence(epoch);
        let operations = vec![Operation::Delete { key: self.key(&Subject::Leader(shard)) }, put];
        self.transact(Purpose::Release, compares, operations);
        if let Some(handover) = &mut self.handover {
            handover.doubts.note_sent();
        }
    }

    /// etcd refuses to take the key, or is not there. If the key is there for certain, this node
    /// goes on as primary.
    pub(super) fn hear_not_released(&mut self) {
        if self.handover.as_ref().is_some_and(|it| it.held.is_some() && !it.is_releasing()) {
            self.give_up_handover();
        }
    }

    /// Asks again what has become of the key: the same transaction, which can succeed only once.
    /// When the replica is gone, or no member any more, or it takes too long, the key is given back
    /// without it: then that transaction cannot succeed any more, wherever it is, and this node
    /// takes the key anew. An etcd that would refuse that, because it has no space, refuses this.
    fn check_release(&mut self, shard: ShardId, epoch: Epoch) {
        let Some(Handover { to, held: Some(held), deadline, .. }) = self.handover else { return };
        if self.leader().is_none_or(|entry| entry.created != epoch) {
            return;
        }
        let is_alive = self.mirror.alive.contains_key(&to);
        if self.now < deadline && is_alive && self.may_succeed(shard, to) {
            return self.release(shard, epoch, to, held);
        }
        let value = FailoverValue { to: self.me(), epoch, released: None, force: false };
        let key = self.key(&Subject::Failover(shard));
        let put = Operation::Put { key, value: encode(&value), lease: 0 };
        self.delete_key(shard, epoch, vec![self.is_leader(shard, epoch)], put);
    }

    /// Lets writes go on, because nobody has taken the key.
    fn give_up_handover(&mut self) {
        if self.handover.as_ref().is_some_and(|it| it.is_own_wish) {
            let (times, not_before) = &mut self.left_in_vain;
            *not_before = self.now + (PAUSE_MS << (*times).min(6));
            *times += 1;
        }
        self.drop_handover();
    }

    /// Lets writes go on.
    pub(super) fn drop_handover(&mut self) {
        if self.handover.take().is_some()
            && let Some(epoch) = self.leading()
        {
            self.act(Action::ReleaseWrites { epoch });
        }
    }

    fn clear_failover(&mut self, shard: ShardId) {
        let subject = Subject::Failover(shard);
        let Some(modified) = self.mirror.failovers.get(&shard).map(|entry| entry.modified) else {
            return;
        };
        let compares = vec![self.is_unchanged(&subject, modified)];
        let operations = vec![Operation::Delete { key: self.key(&subject) }];
        self.transact(Purpose::ClearFailover, compares, operations);
    }

    /// Whether the last primary has let go in favour of this node, and this node has seen it. What
    /// it finds when it reads all may be of an etcd that was set back to before another one led.
    pub(super) fn is_released_to_me(&self, shard: ShardId, after: Epoch) -> bool {
        let release = self.release_to_me(shard, after);
        release.is_some_and(|modified| modified > self.mirror.read_at)
    }

    /// The revision at which etcd says that the last primary has let go in favour of this node.
    fn release_to_me(&self, shard: ShardId, after: Epoch) -> Option<Revision> {
        let entry = self.mirror.failovers.get(&shard)?;
        let wish = entry.value;
        let is_to_me = wish.to == self.me() && wish.epoch == after && wish.released.is_some();
        is_to_me.then_some(entry.modified)
    }

    /// Others wait for a while for whom the last primary has let go. This node makes nothing of
    /// what it has not seen.
    pub(super) fn decline_release(&mut self, shard: ShardId, after: Epoch) {
        if self.release_to_me(shard, after).is_some() && !self.is_released_to_me(shard, after) {
            self.clear_failover(shard);
        }
    }

    /// Where this node's data end, if they have everything up to where it has let go. What lies
    /// behind is no write: a primary that holds writes still asks its replicas how far they are.
    pub(super) fn released_offset(&self, shard: ShardId, after: Epoch) -> Option<u64> {
        let released = self.mirror.failovers.get(&shard)?.value.released?;
        let last = self.mirror.epochs.get(&shard)?;
        let has_all = self.data.complete && self.data.epoch == last.value.data_epoch(after);
        (has_all && self.data.offset >= released).then_some(self.data.offset)
    }

    /// Whether the last primary has let go in favour of another node, which shall get some time.
    pub(super) fn is_released_to_other(&self, shard: ShardId, after: Epoch) -> bool {
        let Some(entry) = self.mirror.failovers.get(&shard) else { return false };
        let since = self.absent_since.get(&shard).copied().unwrap_or(self.now);
        entry.value.epoch == after
            && entry.value.released.is_some()
            && entry.value.to != self.me()
            && self.now < since + self.setup.node_timeout_ms
    }

    /// Whether a hand-over may begin soon: when etcd is heard again, or a member has come that is
    /// alive.
    fn may_yet_hand_over(&self) -> bool {
        let Role::Leading { shard, .. } = self.role else { return false };
        if self.moves.values().any(|one| one.turn_since.is_some()) {
            // Clients wait for slots that it holds, and that it gives to nobody any more.
            return false;
        }
        let others = self.mirror.voters(shard).iter().filter(|node| **node != self.me());
        let is_there = |node: &NodeId| self.replicas.iter().any(|(other, _)| other == node);
        let mut living = others.filter(|node| self.mirror.alive.contains_key(*node)).peekable();
        living.peek().is_some() && (!self.hears_etcd() || !living.any(is_there))
    }

    pub(super) fn step_stop(&mut self) {
        let Some(stop) = self.stop else { return };
        if stop.is_revoking {
            if self.now >= stop.deadline {
                self.has_ended();
            }
            return;
        }
        let is_leading = matches!(self.role, Role::Leading { .. });
        let has_key = is_leading && self.leader().is_some_and(|it| self.is_this_process(&it.value));
        if has_key && self.handover.is_some() && self.now < stop.deadline {
            return;
        }
        if has_key && self.now + stop.wait_ms / 3 < stop.deadline && self.may_yet_hand_over() {
            return;
        }
        let deadline = self.now + STOP_MS;
        self.stop = Some(Stop { deadline, is_revoking: true, ..stop });
        if let Some(epoch) = self.leading() {
            self.serve_until = 0;
            self.act(Action::ServeUntil { epoch, until: 0 });
        }
        match self.lease {
            Some(lease) => self.ask(Purpose::Revoke, Request::Revoke { lease: lease.id }),
            None => self.has_ended(),
        }
    }

    /// Nothing at etcd is this process's any more, or etcd does not answer: it may end.
    pub(super) fn has_ended(&mut self) {
        if let Some(stop) = &mut self.stop
            && stop.deadline != u64::MAX
        {
            let ticket = stop.ticket;
            stop.deadline = u64::MAX;
            self.lease = None;
            self.act(Action::Reply { ticket, result: Ok(()) });
        }
    }
}
