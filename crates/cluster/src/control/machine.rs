//! How the machine goes on: it takes over what it hears, and then looks at everything once. Each
//! step says what is missing to the state that should be, so a step that was lost is made again.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::control::event::{Action, Event, Millis, RequestId};
use crate::control::mirror::Mirror;
use crate::control::state::{Control, Data, Doubts, Lease, Past, Purpose, Role, Rule};
use crate::ids::{Epoch, NodeId, ShardId};
use crate::keys::{LeaderValue, Subject, decode};
use crate::rebuild::Witness;
use crate::store::{Answer, Failure, Pair, Revision, WatchEvent};
use crate::topology::Topology;

/// How soon something is tried again of which etcd has said nothing, in milliseconds.
const RETRY_MS: u64 = 200;

/// How soon something is tried again that other changes have overtaken, in milliseconds.
const OVERTAKEN_MS: u64 = 40;

/// After which time all is read anew if every transaction is overtaken, in milliseconds.
const REFUSED_MS: u64 = 1000;

impl Control {
    /// Takes over what has happened, and adds what is to be done to `actions`.
    pub fn handle(&mut self, now: Millis, event: Event, actions: &mut Vec<Action>) {
        self.now = now;
        if self.started.is_none() {
            self.started = Some(now);
            self.heard = now;
            // What was true at the last stop is not true any more as soon as anything is confirmed.
            self.say_remember(self.data);
        }
        self.hear(event);
        self.look();
        actions.append(&mut self.actions);
    }

    /// Whether what etcd has is not what can have become of the cluster.
    pub fn disbelieves(&self) -> bool {
        self.disbelieves
    }

    /// What this node knows, for an operator whose etcd has lost the cluster. Who asks adds where
    /// the node asks etcd.
    pub fn witness(&self) -> Witness {
        let is_leased = self.lease.is_some_and(|lease| self.now < lease.until());
        let has_read = !self.mirror.shards.is_empty() && self.watch.is_some();
        Witness {
            node: self.me(),
            incarnation: self.setup.incarnation,
            etcd: Vec::new(),
            goes_by_etcd: has_read && !self.disbelieves && is_leased,
            leads: self.leading(),
            epoch: self.data.epoch,
            offset: self.data.offset,
            topology: Topology::clone(&self.topology),
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Announces(announced) => self.setup.announced = announced,
            Event::Tick => self.hear_tick(),
            Event::Answered { request, result } => self.hear_answer(request, result),
            Event::Watched { watch, events, .. }
                if self.watch == Some(watch)
                    && (self.lose_all(&events) || self.are_rebuilt(&events)) =>
            {
                // Whether to believe what is there is decided when all is read.
                self.watch = None;
            }
            Event::Watched { watch, revision, events } if self.watch == Some(watch) => {
                self.heard = self.now;
                let (before, ahead) = (self.mirror.revision, self.mirror.ahead());
                for event in events.iter().filter(|event| event.revision() + ahead > before) {
                    self.mirror.apply(&self.keys, event);
                    self.is_changed = true;
                }
                self.mirror.revision = before.max(revision + ahead);
            }
            Event::WatchEnded { watch } if self.watch == Some(watch) => self.watch = None,
            Event::OtherEtcd => {
                self.leave_lease();
                self.requests.retain(|_, (purpose, ..)| *purpose == Purpose::Revoke);
                (self.watch, self.is_unread) = (None, true);
                // Nobody has taken it out there.
                self.has_registered &= self.home.is_some();
            }
            Event::Watched { .. } | Event::WatchEnded { .. } => {}
            Event::Linked { epoch, offset, end } => self.hear_link(epoch, offset, end),
            Event::Applied { offset } => {
                self.data.offset = offset;
                self.catch_up();
                self.hear_written(offset);
            }
            Event::Detached { offset } => {
                if let Role::Apart { is_detached, past } = &mut self.role {
                    *is_detached = true;
                    self.data.offset = offset;
                    if let Some(Past { epoch, leader, is_linked: true }) = past.take() {
                        self.count_for(epoch, leader);
                    }
                }
            }
            Event::Replicas { epoch, confirmed } => {
                if self.leading() == Some(epoch) {
                    self.replicas = confirmed;
                }
            }
            Event::WritesHeld { epoch, offset } => self.hear_held(epoch, offset),
            Event::Gone { node, since } => self.hear_gone(node, since),
            Event::PredecessorGone { incarnation } => self.gone_predecessor = Some(incarnation),
            Event::PromiseAsked { from, epoch, round, duration_ms } => {
                self.hear_question(from, epoch, round, duration_ms);
            }
            Event::Promised { node, epoch, round, given } => {
                if given && self.leading() == Some(epoch) {
                    let latest = self.given.entry(node).or_default();
                    *latest = round.max(*latest);
                }
            }
            Event::FailoverAsked { ticket, force } => self.hear_failover(ticket, force),
            Event::StopAsked { ticket, within_ms } => self.hear_stop(ticket, within_ms),
            Event::StopRefused => self.hear_stop_refused(),
            Event::CaughtUp { migration, number } => self.hear_caught_up(&migration, number),
            Event::SlotsHeld { migration, number } => {
                self.hear_slots_held(&migration, number, true);
            }
            Event::SlotsLetGo { migration, number } => {
                self.hear_slots_held(&migration, number, false);
            }
            Event::MigrationRestarted { migration, number } => {
                self.hear_restarted(&migration, number);
            }
            Event::Delivered { migration, number } => self.hear_delivered(&migration, number),
            Event::MigrationFailed { migration, number, reason } => {
                self.give_up(&migration, number, &reason);
            }
        }
    }

    /// Why what was read cannot be what has become of the cluster that this node knows: etcd has
    /// lost it, or was set back to what it had before.
    fn disbelief(&self, read: &Mirror, known: Revision) -> Option<String> {
        if read.rebuilt.as_ref().is_some_and(|(rebuilt, _)| !rebuilt.is_complete) {
            return Some("the cluster is being written anew into etcd".to_owned());
        }
        let now = read.revision;
        // A node that has never seen a shard has nothing to lose.
        if now < known && !self.topology.shards.is_empty() {
            return Some(format!("etcd is at revision {now}, and was at {known} before"));
        }
        // Others may have raised its revision since. Who has which slots never goes back, and
        // neither does who was primary last.
        for (id, shard) in &self.topology.shards {
            let Some(entry) = read.shards.get(id) else { continue };
            let (is, was) = (entry.modified, shard.modified);
            if is < was {
                return Some(format!(
                    "etcd has the shard {id} as of revision {is}, and had it as of {was} before"
                ));
            }
            let is = read.epochs.get(id).map_or(0, |entry| entry.modified);
            let was = shard.last_leader.map_or(0, |leader| leader.epoch);
            if is < was {
                return Some(format!(
                    "etcd has the shard {id} as of epoch {is}, and had it as of {was} before"
                ));
            }
        }
        if let Some(etcds) = self.epoch_before_that_of_data(read) {
            let own = self.data.epoch;
            return Some(format!("the data here are of epoch {own}, and etcd is at {etcds}"));
        }
        // Shards come and go, but not all at once. Another cluster may have the same name.
        let known = &self.topology.shards;
        let is_of_one = self.topology.shard_of(self.me()).is_some();
        let has_none = !known.keys().any(|shard| read.shards.contains_key(shard));
        (is_of_one && has_none).then(|| {
            let (name, count) = (&self.setup.cluster, known.len());
            match read.shards.len() {
                0 => format!("etcd has nothing of the cluster {name}, which had {count} shards"),
                there => format!(
                    "etcd has another cluster of the name {name}: none of its {there} shards is \
                     one of the {count} that there were"
                ),
            }
        })
    }

    /// The epoch by what was read, if the data of this node are of a later one: what it knows of
    /// them it stores at once, and what it knows of the cluster later. Data from another shard may
    /// be of a later epoch than the last one here, but not of all. A primary that goes on with its
    /// journal since etcd was set back has a new epoch, but not a new journal.
    fn epoch_before_that_of_data(&self, read: &Mirror) -> Option<Epoch> {
        let home = read.shard_of(self.me())?;
        let last = read.epochs.get(&home)?;
        let newest = read.epochs.values().map(|entry| entry.modified).max()?;
        let etcds = match last.value.continues {
            0 => newest,
            continued => continued,
        };
        let counts = read.voters(home).contains(&self.me());
        (counts && etcds < self.data.epoch).then_some(etcds)
    }

    /// Whether these changes leave no shard of those that there are. Others may have come instead.
    fn lose_all(&self, events: &[WatchEvent]) -> bool {
        let known = &self.mirror.shards;
        let mut left: BTreeSet<ShardId> = known.keys().copied().collect();
        let after = self.mirror.revision - self.mirror.ahead();
        for event in events.iter().filter(|event| event.revision() > after) {
            match (event, self.keys.subject(event.key())) {
                (WatchEvent::Put(_), Some(Subject::Shard(shard))) if known.contains_key(&shard) => {
                    left.insert(shard);
                }
                (WatchEvent::Delete { .. }, Some(Subject::Shard(shard))) => {
                    left.remove(&shard);
                }
                _ => {}
            }
        }
        !known.is_empty() && left.is_empty()
    }

    /// Whether these changes are those of keys that were written anew since they were read.
    fn are_rebuilt(&self, events: &[WatchEvent]) -> bool {
        let ahead = self.mirror.ahead();
        events.iter().any(|event| match (event, self.keys.subject(event.key())) {
            (_, Some(Subject::Rebuilt)) => true,
            (WatchEvent::Put(pair), Some(Subject::Leader(_) | Subject::Epoch(_))) => {
                decode::<LeaderValue>(&pair.value).is_some_and(|leader| leader.ahead != ahead)
            }
            _ => false,
        })
    }

    /// Looks at everything once.
    fn look(&mut self) {
        if self.is_changed {
            self.home = self.mirror.shard_of(self.me());
        }
        self.step_session();
        self.step_absences();
        // Before anything that is decided by it: who becomes primary serves the slots of this
        // picture.
        if self.is_changed {
            self.publish();
        }
        self.step_role();
        self.step_handover();
        self.step_members();
        self.step_migrations();
        self.step_serving();
        self.step_stop();
    }

    fn publish(&mut self) {
        self.is_changed = false;
        for key in std::mem::take(&mut self.mirror.unreadable) {
            self.warn(format!("The value of the key {key} is not understood: it is ignored"));
        }
        let failed = &self.failed;
        let topology = self.mirror.topology(&self.setup.cluster, |shard| failed.contains(&shard));
        self.topology = Arc::new(topology);
        self.act(Action::Publish(Arc::clone(&self.topology)));
    }

    /// Notes since when shards have had no primary, and which count as failed.
    fn step_absences(&mut self) {
        let now = self.now;
        if !self.mirror.is_loaded() {
            return;
        }
        let mirror = &self.mirror;
        self.absent_since.retain(|shard, _| {
            mirror.shards.contains_key(shard) && !mirror.leaders.contains_key(shard)
        });
        for shard in mirror.shards.keys().filter(|shard| !mirror.leaders.contains_key(shard)) {
            self.absent_since.entry(*shard).or_insert(now);
        }
        let patience = self.setup.node_timeout_ms;
        let failed: Vec<_> = self
            .absent_since
            .iter()
            .filter(|(shard, since)| now - **since >= patience || mirror.last_epoch(**shard) == 0)
            .map(|(shard, _)| *shard)
            .collect();
        if failed != self.failed {
            self.failed = failed;
            self.is_changed = true;
        }
        if let Some(epoch) = self.leader().map(|leader| leader.created)
            && self.seen.0 != epoch
        {
            self.seen = (epoch, now);
        }
    }

    /// Has the node store what a restart must know of its data, if that has changed.
    pub(super) fn remember(&mut self, data: Data) {
        let known = self.remembered;
        let of = |data: Data| (data.shard, data.epoch, data.complete);
        if of(known) != of(data) {
            self.say_remember(data);
        }
    }

    fn say_remember(&mut self, data: Data) {
        let Data { shard, epoch, start, complete, .. } = data;
        self.act(Action::Remember { shard, epoch, start, complete });
        self.remembered = data;
    }

    fn hear_link(&mut self, of: Epoch, offset: u64, end: u64) {
        match &mut self.role {
            Role::Following { epoch, leader, is_linked, .. }
                if (leader.data_epoch(*epoch)..=*epoch).contains(&of) =>
            {
                let (data_epoch, is_first) = (leader.data_epoch(*epoch), !*is_linked);
                *is_linked = true;
                self.data.offset = offset;
                self.whole_at = end;
                self.catch_up();
                if is_first && self.data.epoch != data_epoch {
                    // Its history has another name from now on, by which a restart knows it.
                    let complete = false;
                    self.say_remember(Data { complete, ..self.data });
                }
            }
            Role::Apart { is_detached: false, past: Some(past) }
                if (past.leader.data_epoch(past.epoch)..=past.epoch).contains(&of) =>
            {
                past.is_linked = true;
                self.whole_at = end;
            }
            _ => {}
        }
    }

    fn catch_up(&mut self) {
        if let Role::Following { epoch, leader, is_linked: true, .. } = self.role {
            self.count_for(epoch, leader);
        }
    }

    /// Data count for the epoch of the primary that is followed once they reach its start: before,
    /// a node with data of the epoch before may have more of what was acknowledged. From then on
    /// what it confirms counts too. If it may have lost some of what it had confirmed before, it is
    /// complete when it has all that the primary had when the link was made.
    fn count_for(&mut self, epoch: Epoch, leader: LeaderValue) {
        if self.data.offset < leader.start && self.keeps(Rule::StartOfEpoch) {
            return;
        }
        (self.data.epoch, self.data.start) = (leader.data_epoch(epoch), leader.start);
        self.data.complete |= self.data.offset >= self.whole_at || !self.keeps(Rule::WholeAgain);
        self.remember(self.data);
    }

    fn hear_gone(&mut self, node: NodeId, since: Millis) {
        let Some(leader) = self.leader() else {
            // The key has ended already, but what was promised to the process is void too.
            let shard = self.shard();
            let epoch = shard.map_or(0, |shard| self.mirror.last_epoch(shard));
            if let Some(last) = shard.and_then(|shard| self.mirror.epochs.get(&shard))
                && last.value.node == node
                && self.seen.0 == epoch
                && self.seen.1 < since
            {
                self.gone = Some(epoch);
            }
            return;
        };
        if leader.value.node == node && self.seen.0 == leader.created && self.seen.1 < since {
            self.gone = Some(leader.created);
        }
    }

    fn hear_answer(&mut self, request: RequestId, result: Result<Answer, Failure>) {
        let Some((purpose, asked, known)) = self.requests.remove(&request) else { return };
        let answer = match result {
            Ok(answer) => answer,
            Err(failure) => return self.hear_failure(purpose, &failure),
        };
        match (purpose, answer) {
            // The watch was silent, and is not any more: it has said what was read, and when.
            (Purpose::Load, _) if self.watch.is_some() && self.heard > asked && !self.must_read => {
            }
            (Purpose::Load, Answer::Pairs { revision, pairs }) => {
                self.load((known, revision), &pairs);
            }
            (Purpose::Grant, Answer::Granted { lease, ttl_s }) => {
                let ttl_ms = u64::try_from(ttl_s).unwrap_or(0) * 1000;
                let renewed = if self.keeps(Rule::Margin) { asked } else { self.now };
                self.lease = Some(Lease { id: lease, ttl_ms, renewed, next: asked + ttl_ms / 3 });
                self.not_before.retain(|purpose, _| !matches!(purpose, Purpose::KeepAlive(_)));
            }
            (Purpose::KeepAlive(lease), Answer::KeptAlive { ttl_s }) => {
                let renewed = if self.keeps(Rule::Margin) { asked } else { self.now };
                match &mut self.lease {
                    Some(own) if own.id == lease && ttl_s <= 0 => {
                        self.lease = None;
                        self.warn("The lease at etcd has ended".into());
                    }
                    // An etcd that was set back may have the lease, and not what it stood for.
                    Some(_) if self.watch.is_none() => {}
                    Some(own) if own.id == lease => {
                        // A late answer to an old request renews nothing.
                        own.renewed = own.renewed.max(renewed);
                        own.ttl_ms = ttl_s.unsigned_abs() * 1000;
                    }
                    _ => {}
                }
            }
            (Purpose::Revoke, _) => self.has_ended(),
            (purpose, Answer::Transaction { succeeded, revision }) => {
                if revision + self.mirror.ahead() < known {
                    // It is not the etcd that it was: all is read anew.
                    self.watch = None;
                }
                self.note_transaction(succeeded);
                if !succeeded && let Some(doubts) = self.doubts_of(&purpose) {
                    doubts.note_not_done();
                }
                // What has succeeded comes back by the watch. Until then it is not asked again.
                if purpose == Purpose::AskFailover {
                    self.hear_failover_asked(succeeded);
                }
                self.put_off(purpose, if succeeded { RETRY_MS } else { OVERTAKEN_MS });
            }
            (purpose, _) => self.put_off(purpose, RETRY_MS),
        }
    }

    /// What has overtaken a transaction comes by the watch. If it does not come, etcd has another
    /// cluster than the one that was read: one that was written anew.
    fn note_transaction(&mut self, succeeded: bool) {
        if succeeded {
            self.refused_since = None;
            return;
        }
        let since = *self.refused_since.get_or_insert(self.now);
        if self.now >= since + REFUSED_MS {
            (self.watch, self.refused_since) = (None, None);
        }
    }

    /// What is not known of the transactions for a purpose, where that matters.
    fn doubts_of(&mut self, purpose: &Purpose) -> Option<&mut Doubts> {
        match purpose {
            Purpose::Release => self.handover.as_mut().map(|handover| &mut handover.doubts),
            Purpose::ChangeMembers => self.change.as_mut().map(|change| &mut change.doubts),
            Purpose::HandOver(id) => self.moves.get_mut(id).map(|one| &mut one.doubts),
            _ => None,
        }
    }

    /// What etcd has not answered may have been done: what comes by the watch says so.
    fn hear_failure(&mut self, purpose: Purpose, failure: &Failure) {
        if let Some(doubts) = self.doubts_of(&purpose) {
            match failure {
                Failure::NotDone(_) => {
                    if doubts.note_not_done() && purpose == Purpose::Release {
                        self.hear_not_released();
                    }
                }
                Failure::NoSpace(_) => {
                    doubts.note_refused();
                    // What is read from now on says whether it was done.
                    self.must_read = true;
                    self.requests.retain(|_, (purpose, ..)| *purpose != Purpose::Load);
                }
                Failure::Unknown(_) => {}
            }
        }
        match purpose {
            Purpose::KeepAlive(lease) => {
                let soon = self.now + RETRY_MS;
                self.not_before.insert(Purpose::KeepAlive(lease), soon);
                if let Some(own) = self.lease.as_mut().filter(|own| own.id == lease) {
                    own.next = own.next.min(soon);
                }
            }
            Purpose::Revoke => self.has_ended(),
            purpose => self.put_off(purpose, RETRY_MS),
        }
    }

    /// Forgets a lease that is not one of the etcd that is asked from now on. That one may have
    /// another lease of the same number.
    fn leave_lease(&mut self) {
        self.lease = None;
        let is_of_leases =
            |purpose: &Purpose| matches!(purpose, Purpose::Grant | Purpose::KeepAlive(_));
        self.requests.retain(|_, (purpose, ..)| !is_of_leases(purpose));
        self.not_before.retain(|purpose, _| !is_of_leases(purpose));
    }

    /// All was read after etcd has refused something. What is as it was before says that it was not
    /// done.
    fn settle_doubts(&mut self) {
        if let (Some(epoch), Some(leader)) = (self.leading(), self.leader())
            && leader.created == epoch
            && let Some(handover) = &mut self.handover
            && handover.doubts.settle()
        {
            self.hear_not_released();
        }
        let shard = self.shard().and_then(|shard| self.mirror.shards.get(&shard));
        if let (Some(shard), Some(change)) = (shard, &mut self.change)
            && shard.modified == change.modified
        {
            change.doubts.settle();
        }
        for (id, one) in &mut self.moves {
            let record = self.mirror.migrations.get(id);
            if record.is_some_and(|record| record.modified == one.sent_with) {
                one.doubts.settle();
            }
        }
    }

    fn load(&mut self, (known, revision): (Revision, Revision), pairs: &[Pair]) {
        let mut read = Mirror::default();
        read.load(&self.keys, revision, pairs);
        let (etcd_revision, revision) = (revision, read.revision);
        if (known..self.mirror.revision).contains(&revision) {
            // It is late: changes after it are known.
            return self.put_off(Purpose::Load, RETRY_MS);
        }
        if let Some(why) = self.disbelief(&read, known) {
            // One of the members that are named may be another etcd than the rest.
            self.leave_lease();
            self.watch = None;
            self.act(Action::PassOver);
            self.put_off(Purpose::Load, RETRY_MS * 10);
            if !std::mem::replace(&mut self.disbelieves, true) {
                self.warn(format!(
                    "{why}: it is not believed, and nothing changes here until it has all that it \
                     had: dunlin cluster rebuild gives it that. If this node is to be one of a new \
                     cluster, end it and delete its cluster-config-file, or give the new cluster \
                     another cluster-name"
                ));
            }
            return;
        }
        if std::mem::take(&mut self.disbelieves) {
            self.log("etcd has the cluster again".into());
        }
        if self.mirror.rebuilt != read.rebuilt {
            self.rebuilt_seen = self.now;
        }
        self.is_unread = false;
        self.mirror = read;
        self.heard = self.now;
        self.must_read = false;
        self.settle_doubts();
        self.is_changed = true;
        let asks = self.requests.values().any(|(it, ..)| matches!(it, Purpose::KeepAlive(_)));
        if let Some(lease) = self.lease.as_mut().filter(|_| !asks) {
            // Answers that came while nothing was watched did not count.
            lease.next = self.now;
        }
        self.last_request += 1;
        self.watch = Some(self.last_request);
        let prefix = self.keys.prefix().to_owned();
        self.act(Action::Watch { watch: self.last_request, prefix, from: etcd_revision + 1 });
    }
}
