//! Primary, replica or neither: what etcd says of the own shard, and how a primary is found when
//! it says that there is none.
//!
//! A shard's last epoch is known for ever (`epochs/SHARD`). When its primary is gone, each member
//! lets go of it first, so that what it has does not grow any more, and then publishes how far it
//! is: a candidate "after" that epoch. A write that was acknowledged at quorum is known to
//! *quorum* members, so one of any *members - quorum + 1* candidates has it, and the furthest
//! candidate has all of them. That one takes the key, in a transaction that compares that there is
//! still no primary and that the epoch is still the last one.
//!
//! Of a node that was killed nobody knows whether its files have all that it had confirmed, so it
//! does not count for that number. It may still be the furthest: what it says it has, it has.

use crate::control::event::{Action, Millis};
use crate::control::state::{Control, Data, Past, Purpose, Role, Rule};
use crate::ids::{Epoch, NodeId, ShardId};
use crate::keys::{CandidateValue, LeaderValue, Subject, encode};
use crate::store::{Compare, LeaseId, Operation};

/// How long a candidate waits for members that are alive and not yet candidates, in milliseconds.
const GRACE_MS: u64 = 250;

/// How often a candidate says whom it waits for, in milliseconds.
const COMPLAINS_EACH_MS: u64 = 30_000;

impl Control {
    pub(super) fn step_role(&mut self) {
        if !self.mirror.is_loaded() {
            return;
        }
        if self.is_name_taken() {
            return self.stand_apart();
        }
        let Some(shard) = self.shard() else { return self.stand_apart() };
        self.count_in(shard);
        let Some(entry) = self.mirror.leaders.get(&shard) else { return self.seek(shard) };
        let (leader, epoch, lease) = (entry.value, entry.created, entry.lease);
        let own_lease = self.lease.map_or(0, |lease| lease.id);
        self.standing = None;
        if self.is_this_process(&leader) {
            let is_apart = self.is_detached();
            let is_leading = matches!(self.role, Role::Leading { .. });
            if lease == own_lease && (is_apart || is_leading) {
                self.lead(shard, epoch, leader);
            } else {
                self.unseat(shard, epoch);
            }
        } else if leader.node == self.me() {
            // This node's process before. It is gone, or has lost its name with its lease.
            if self.has_name() {
                self.unseat(shard, epoch);
            }
        } else {
            self.follow(epoch, leader);
            if self.gone == Some(epoch) {
                self.unseat(shard, epoch);
            }
            self.clear_candidate(shard);
        }
    }

    /// A node that has come from another shard has no data of an epoch of this one, however late
    /// theirs is.
    fn count_in(&mut self, shard: ShardId) {
        let Data { shard: before, offset, .. } = self.data;
        if before == Some(shard) || !self.is_detached() {
            return;
        }
        self.data = Data { shard: Some(shard), offset, ..Data::default() };
        self.remember(self.data);
    }

    /// Stops being what it is, and follows nobody.
    pub(super) fn stand_apart(&mut self) {
        let past = match self.role {
            Role::Apart { .. } => return,
            Role::Leading { epoch, .. } => {
                self.fence(epoch);
                None
            }
            Role::Following { epoch, leader, is_linked, .. } => {
                Some(Past { epoch, leader, is_linked })
            }
        };
        self.leave_lead();
        let is_detached = !self.keeps(Rule::DetachFirst);
        self.role = Role::Apart { is_detached, past };
        if !is_detached {
            self.act(Action::Detach);
        }
    }

    pub(super) fn fence(&mut self, epoch: Epoch) {
        self.serve_until = 0;
        self.act(Action::ServeUntil { epoch, until: 0 });
    }

    /// Forgets what only a primary knows.
    fn leave_lead(&mut self) {
        self.replicas.clear();
        self.given.clear();
        self.next_round = 0;
        self.change = None;
        self.in_vain_members.clear();
        self.left_in_vain = (0, 0);
        self.drop_handover();
        self.drop_moves();
    }

    fn lead(&mut self, shard: ShardId, epoch: Epoch, leader: LeaderValue) {
        if matches!(self.role, Role::Leading { epoch: own, .. } if own == epoch) {
            return;
        }
        let continues = leader.continues != 0;
        self.leave_lead();
        self.serve_until = 0;
        self.role = Role::Leading { shard, epoch, leader };
        (self.data.epoch, self.data.start) = (leader.data_epoch(epoch), leader.start);
        self.data.complete = true;
        self.remember(self.data);
        self.quorum = Default::default();
        self.act(Action::Lead { epoch, continues });
        self.log(format!("Primary of shard {shard} in epoch {epoch} from offset {}", leader.start));
    }

    fn follow(&mut self, of: Epoch, leader: LeaderValue) {
        let Some(member) = self.mirror.members.get(&leader.node) else { return };
        let address = member.value.address.clone();
        let mut is_linked = false;
        match &self.role {
            Role::Following { epoch, address: known, .. } if *epoch == of && *known == address => {
                return;
            }
            Role::Following { epoch, leader: known, is_linked: was_linked, .. } => {
                if known.data_epoch(*epoch) != leader.data_epoch(of) {
                    // How far its data are in the epoch before is known when it has let go.
                    return self.stand_apart();
                }
                is_linked = *was_linked;
            }
            Role::Leading { epoch, .. } => {
                let epoch = *epoch;
                self.fence(epoch);
            }
            Role::Apart { is_detached: false, .. } => return,
            Role::Apart { .. } => {}
        }
        self.leave_lead();
        if self.data.epoch != leader.data_epoch(of) {
            // What a restart brings back may from now on be of this epoch, but not yet all of it.
            let mut data = self.data;
            data.complete = false;
            self.remember(data);
        }
        let node = leader.node;
        self.log(format!("Replica of {node} in epoch {of}"));
        self.role =
            Role::Following { node, address: address.clone(), epoch: of, leader, is_linked };
        self.act(Action::Follow { node, address, epoch: of });
    }

    /// Deletes the key of a primary whose process is gone, and with it that it is alive.
    fn unseat(&mut self, shard: ShardId, epoch: Epoch) {
        let Some(leader) = self.mirror.leaders.get(&shard) else { return };
        let leader = leader.value;
        let mut compares = vec![self.is_leader(shard, epoch)];
        let mut operations = vec![Operation::Delete { key: self.key(&Subject::Leader(shard)) }];
        let alive = self.mirror.alive.get(&leader.node);
        if let Some(alive) = alive.filter(|it| it.value.incarnation == leader.incarnation)
            && leader.node != self.me()
        {
            let subject = Subject::Alive(leader.node);
            compares.push(self.is_unchanged(&subject, alive.modified));
            operations.push(Operation::Delete { key: self.key(&subject) });
        }
        if self.transact(Purpose::Unseat, compares, operations) {
            self.log(format!("The process of primary {} of epoch {epoch} is gone", leader.node));
        }
    }

    /// Deletes a candidate's key of this node that has had its day.
    fn clear_candidate(&mut self, shard: ShardId) {
        let me = self.me();
        let last = self.mirror.last_epoch(shard);
        if let Some(entry) = self.mirror.candidates.get(&(shard, me))
            && entry.value.after != last
        {
            let subject = Subject::Candidate(shard, me);
            let compares = vec![self.is_unchanged(&subject, entry.modified)];
            let operations = vec![Operation::Delete { key: self.key(&subject) }];
            self.transact(Purpose::Stand, compares, operations);
        }
    }

    /// etcd has no primary of the own shard.
    fn seek(&mut self, shard: ShardId) {
        let after = self.mirror.last_epoch(shard);
        let last = self.mirror.epochs.get(&shard).map(|entry| (entry.value, after));
        match self.role {
            Role::Leading { epoch, leader, .. } if epoch == after => {
                if !self.is_released_to_other(shard, after) && self.stop.is_none() {
                    let continues = leader.data_epoch(epoch);
                    self.take(shard, leader.start, continues);
                }
                return;
            }
            Role::Leading { .. } => return self.stand_apart(),
            _ => {}
        }
        if self.stop.is_some() || self.lease.is_none() {
            return;
        }
        if !self.mirror.voters(shard).contains(&self.me()) {
            return;
        }
        if self.is_released_to_me(shard, after) {
            // How far its data are is known for certain when it has let go, too.
            self.stand_apart();
            if !self.is_detached() {
                return;
            }
            if let Some(released) = self.released_offset(shard, after) {
                return self.take(shard, released, 0);
            }
        }
        self.decline_release(shard, after);
        if self.is_released_to_other(shard, after) || !self.may_stand(last) {
            return;
        }
        self.stand_apart();
        if !self.is_detached() {
            return;
        }
        if self.stand(shard, after) {
            self.count(shard, after);
        }
    }

    /// Whether this node may stand for election: not while it may have promised not to.
    fn may_stand(&self, last: Option<(LeaderValue, Epoch)>) -> bool {
        let Some((leader, epoch)) = last else { return true };
        if leader.carried != 0 {
            return self.may_stand_anew();
        }
        let own = self.setup.incarnation;
        let was_own = leader.node == self.me()
            && (leader.incarnation == own || self.gone_predecessor == Some(leader.incarnation));
        if was_own
            || self.gone == Some(epoch)
            || self.mirror.was_succeeded(&leader)
            || !self.keeps(Rule::Promise)
        {
            return true;
        }
        self.now >= self.promised_for()
    }

    /// Until when this node may have promised not to stand.
    fn promised_for(&self) -> Millis {
        let mut until = self.promised_until;
        if self.keeps(Rule::PromiseBeforeRestart) {
            // When processes before have promised something is not known, but for how long.
            until = until.max(self.started.unwrap_or(0) + self.setup.promised_ms);
        }
        until
    }

    /// The same when the keys were written anew by what nodes knew. None of them may have known the
    /// last primary: it serves for a lease after etcd was lost, or as long as it was promised to.
    fn may_stand_anew(&self) -> bool {
        let lease_ends = self.rebuilt_seen + self.setup.node_timeout_ms;
        self.now >= self.promised_for().max(lease_ends)
    }

    /// Says how far this node is. True once etcd has it.
    fn stand(&mut self, shard: ShardId, after: Epoch) -> bool {
        let me = self.me();
        let lease = self.lease.map_or(0, |lease| lease.id);
        let value = CandidateValue {
            after,
            incarnation: self.setup.incarnation,
            epoch: self.data.epoch,
            offset: self.data.offset,
            complete: self.data.complete || !self.keeps(Rule::Completeness),
        };
        let entry = self.mirror.candidates.get(&(shard, me));
        if entry.is_some_and(|entry| entry.value == value && entry.lease == lease) {
            if self.standing.is_none_or(|(epoch, _)| epoch != after) {
                self.standing = Some((after, self.now));
            }
            return true;
        }
        let subject = Subject::Candidate(shard, me);
        let compares = self.has_no_newer_leader(shard);
        let put = Operation::Put { key: self.key(&subject), value: encode(&value), lease };
        self.transact(Purpose::Stand, compares, vec![put]);
        false
    }

    /// Takes the key, if this node is the furthest of enough candidates.
    fn count(&mut self, shard: ShardId, after: Epoch) {
        let voters = self.mirror.voters(shard);
        let candidates: Vec<(NodeId, CandidateValue)> = voters
            .iter()
            .filter_map(|node| {
                let value = self.mirror.candidates.get(&(shard, *node))?.value;
                let alive = self.mirror.alive.get(node)?;
                let counts = value.after == after && alive.value.incarnation == value.incarnation;
                counts.then_some((*node, value))
            })
            .collect();
        let is_complete = |value: &CandidateValue| value.complete || after == 0;
        let complete = candidates.iter().filter(|(_, value)| is_complete(value)).count();
        let quorum = voters.len() / 2 + 1;
        let needed = match self.keeps(Rule::CandidateQuorum) {
            true => voters.len() - quorum + 1,
            false => 1,
        };
        // When no member is missing, nobody can have more than the furthest.
        if complete < needed && candidates.len() < voters.len() {
            let is_candidate = |node: &NodeId| candidates.iter().any(|(other, _)| other == node);
            let missing = voters.iter().filter(|node| !is_candidate(node)).copied().collect();
            return self.complain(shard, needed, complete, missing);
        }
        let is_missing = |node: &NodeId| {
            self.mirror.alive.contains_key(node)
                && !candidates.iter().any(|(other, _)| other == node)
        };
        let since = self.standing.map_or(self.now, |(_, since)| since);
        if voters.iter().any(is_missing) && self.now < since + GRACE_MS {
            return;
        }
        let wished = self.mirror.failovers.get(&shard).filter(|it| it.value.epoch == after);
        let wished = wished.map(|entry| entry.value.to);
        let furthest = candidates.iter().max_by_key(|(node, value)| {
            let epoch = if self.keeps(Rule::EpochFirst) { value.epoch } else { 0 };
            let known = !self.keeps(Rule::Furthest) && is_complete(value);
            let rest = (is_complete(value), wished == Some(*node), *node);
            (known, epoch, value.offset, rest)
        });
        if furthest.is_some_and(|(node, _)| *node == self.me()) {
            self.take(shard, self.data.offset, 0);
        }
    }

    /// Says from time to time whom an election waits for that takes long.
    fn complain(&mut self, shard: ShardId, needed: usize, complete: usize, missing: Vec<NodeId>) {
        let since = self.standing.map_or(self.now, |(_, since)| since);
        if self.now < self.next_complaint.max(since + self.setup.node_timeout_ms) {
            return;
        }
        self.next_complaint = self.now + COMPLAINS_EACH_MS;
        let missing: Vec<String> = missing.iter().map(NodeId::to_string).collect();
        self.warn(format!(
            "Shard {shard} has no primary and waits for {}. It elects one when they are there, or \
             {needed} members that have all they ever confirmed: {complete} are",
            missing.join(", ")
        ));
    }

    /// That a shard has no primary, and has had none after the last epoch that this node knows.
    fn has_no_newer_leader(&self, shard: ShardId) -> Vec<Compare> {
        let last = self.mirror.epochs.get(&shard).map_or(0, |entry| entry.modified);
        vec![
            Compare::is_absent(self.key(&Subject::Leader(shard))),
            self.is_unchanged(&Subject::Epoch(shard), last),
        ]
    }

    /// Takes the key of the shard's primary.
    pub(super) fn take(&mut self, shard: ShardId, start: u64, continues: Epoch) {
        let Some(lease) = self.lease.map(|lease| lease.id) else { return };
        let operations = self.leader_writes(shard, lease, start, continues);
        let mut compares = self.has_no_newer_leader(shard);
        if !self.keeps(Rule::CompareLeader) {
            compares.clear();
        }
        let members = self.mirror.shards.get(&shard).map_or(0, |entry| entry.modified);
        compares.push(self.is_unchanged(&Subject::Shard(shard), members));
        self.transact(Purpose::Take, compares, operations);
    }

    /// What makes this node primary, when nothing has come between.
    fn leader_writes(
        &self,
        shard: ShardId,
        lease: LeaseId,
        start: u64,
        continues: Epoch,
    ) -> Vec<Operation> {
        let incarnation = self.setup.incarnation;
        let (node, ahead) = (self.me(), self.mirror.ahead());
        let value = LeaderValue { node, incarnation, start, continues, carried: 0, ahead };
        let value = encode(&value);
        vec![
            Operation::Put { key: self.key(&Subject::Leader(shard)), value: value.clone(), lease },
            Operation::Put { key: self.key(&Subject::Epoch(shard)), value, lease: 0 },
            Operation::Delete { key: self.key(&Subject::Candidate(shard, self.me())) },
            Operation::Delete { key: self.key(&Subject::Failover(shard)) },
        ]
    }

    /// A primary wants to go on without etcd, and asks that this node does not stand.
    pub(super) fn hear_question(&mut self, from: NodeId, of: Epoch, round: u64, duration_ms: u64) {
        let is_its_replica = matches!(
            self.role, Role::Following { node, epoch, .. } if node == from && epoch == of
        );
        let shard = self.shard();
        let last = shard.map_or(0, |shard| self.mirror.last_epoch(shard));
        // Its name may be another process's.
        let leader = shard.and_then(|shard| self.mirror.epochs.get(&shard)).map(|it| it.value);
        let alive = self.mirror.alive.get(&from).map(|entry| entry.value.incarnation);
        let has_name = leader.is_some_and(|it| alive.is_none_or(|alive| alive == it.incarnation));
        // No primary has a use for more than its lease lasts.
        let is_short = duration_ms <= self.setup.node_timeout_ms;
        let given = is_its_replica && last == of && has_name && is_short;
        if given {
            let until: Millis = self.now + duration_ms;
            self.promised_until = self.promised_until.max(until);
        }
        self.act(Action::AnswerPromise { to: from, epoch: of, round, duration_ms, given });
    }
}
