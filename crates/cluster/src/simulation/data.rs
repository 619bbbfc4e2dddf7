//! The data path of simulated nodes: writes, replication, slots on their way; and the checks of
//! what clients were told.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::control::Event;
use crate::ids::{Epoch, NodeId, ShardId};
use crate::simulation::host::{DataRole, Entry, Message};
use crate::simulation::world::{Happening, SLOT_STEP, World, node_id, number_of, shard_id};
use crate::slots::{SLOT_COUNT, SlotRanges};

impl World {
    /// A client writes: each node that takes itself for a primary gets a try.
    pub(super) fn write_somewhere(&mut self) {
        for host in 0..self.hosts.len() {
            if self.hosts[host].leads().is_some() {
                self.write_at(host);
            }
        }
        let after = self.plan.write_every_ms / 2 + self.rng.below(self.plan.write_every_ms);
        self.at(after, Happening::Write);
    }

    /// A client writes to this node.
    pub(super) fn write_at(&mut self, host: usize) {
        let clock = self.hosts[host].clock(self.now);
        let Some(epoch) = self.hosts[host].leads() else { return };
        if self.hosts[host].is_stopped {
            return;
        }
        let process = self.hosts[host].process.as_ref().expect("it leads");
        let own = process.topology.shard_of(node_id(host)).map(|shard| shard.id);
        let slots = (0..SLOT_COUNT / SLOT_STEP).map(|at| at * SLOT_STEP);
        let slots = slots.filter(|slot| {
            let owner = process.topology.owner_of_slot(*slot);
            owner.is_some_and(|shard| Some(shard.id) == own)
        });
        let slots: Vec<u16> = slots.collect();
        let Some(slot) = slots.get(self.rng.index(slots.len())).copied() else { return };
        let is_held = process.holds_writes
            || process.sends.values().any(|send| send.is_held && send.slots.contains(slot));
        if clock >= process.serve_until || is_held {
            return;
        }
        self.last_number += 1;
        let id = self.last_number;
        self.trace(|| format!("n{host} writes {id} to {slot}"));
        self.hosts[host].journal.push(Entry::Write { id, slot });
        self.clients.in_memory += 1;
        let shard = own.expect("it owns the slot");
        self.check_epoch(host, epoch, shard);
        self.check_owner(host, shard, slot);
        let offset = self.hosts[host].journal.len() as u64;
        self.process(host).expect("it leads").waiting.push((offset, id, slot));
        self.replicate(host);
        self.settle(host);
    }

    /// Sends replicas what they have not been sent yet.
    fn replicate(&mut self, host: usize) {
        let Some(process) = &self.hosts[host].process else { return };
        let links = process.confirmed.iter().map(|(node, (link, _))| (*node, *link));
        // Those that are behind get it with the rest.
        let is_behind =
            |of: &(usize, u64)| process.behind.get(&of.0).is_some_and(|(link, _)| *link == of.1);
        let links: Vec<(usize, u64)> = links.filter(|of| !is_behind(of)).collect();
        let length = self.hosts[host].journal.len();
        for (node, link) in links {
            let entries = vec![self.hosts[host].journal[length - 1].clone()];
            self.send(host, node, Message::Entries { link, from: length - 1, entries });
        }
    }

    /// Acknowledges what a quorum knows.
    pub(super) fn settle(&mut self, host: usize) {
        let clock = self.hosts[host].clock(self.now);
        let Some(epoch) = self.hosts[host].leads() else { return };
        if self.hosts[host].is_stopped {
            return;
        }
        let written = self.hosts[host].journal.len() as u64;
        let process = self.hosts[host].process.as_mut().expect("it leads");
        let confirmed: Vec<_> =
            process.confirmed.iter().map(|(node, (_, offset))| (node_id(*node), *offset)).collect();
        let reached = process.quorum.reached(written, &confirmed);
        let count = process.waiting.partition_point(|(offset, ..)| *offset <= reached);
        let known: Vec<_> = process.waiting.drain(..count).collect();
        let serves = clock < process.serve_until;
        let importing = std::mem::take(&mut process.importing);
        let (done, rest) = importing.into_iter().partition(|(offset, ..)| *offset <= reached);
        process.importing = rest;
        let own = process.topology.shard_of(node_id(host)).map(|shard| shard.id);
        if let Some(shard) = own.filter(|_| serves) {
            for (_, id, slot) in known {
                // Its slot may have moved meanwhile: with the write.
                self.check_epoch(host, epoch, shard);
                self.trace(|| format!("n{host} acknowledges {id} in {slot}"));
                self.clients.acknowledged.insert(id, slot);
                self.excuse_moved(shard, id, slot);
                self.clients.last.insert(shard, self.now);
            }
        }
        let done: Vec<(u64, usize, String, u64)> = done;
        for (_, from, migration, attempt) in done {
            self.send(host, from, Message::Imported { migration, attempt });
        }
    }

    /// What a client is told now must be told by the only primary of the shard.
    fn check_epoch(&mut self, host: usize, epoch: Epoch, shard: ShardId) {
        let Some((last, leader)) = self.truth.epochs.get(&shard).copied() else { return };
        // It may have become so anew without a break, and not know it yet.
        let is_itself = self.hosts[host].process.as_ref().is_some_and(|process| {
            leader.incarnation == process.incarnation && leader.continues != 0
        });
        let may_be_two = self.plan.has_wild_clocks || self.was_set_back;
        if last > epoch && !is_itself && !may_be_two {
            self.violate(format!("n{host} acknowledges in epoch {epoch}, after {last} has begun"));
        }
    }

    /// A write must be accepted by the shard that owns its slot.
    fn check_owner(&mut self, host: usize, shard: ShardId, slot: u16) {
        let owns = self.truth.shards.get(&shard).is_some_and(|value| value.slots.contains(slot));
        if !owns && !self.plan.has_wild_clocks {
            self.violate(format!("n{host} accepts slot {slot}, which its shard has not"));
        }
    }

    /// Each slot has one owner.
    pub(super) fn check_owners(&mut self) {
        if self.truth.shards.len() < self.plan.shards {
            return;
        }
        let owners = self.truth.shards.values().map(|value| value.slots.count()).sum::<usize>();
        let all =
            self.truth.shards.values().fold(SlotRanges::new(), |all, it| all.union(&it.slots));
        if owners != usize::from(SLOT_COUNT) || all != SlotRanges::all() {
            self.violate(format!("{owners} slots are owned, {} different ones", all.count()));
        }
    }

    pub(super) fn receive(&mut self, host: usize, message: Message) {
        match message {
            Message::Event(event) => self.tell(host, event),
            Message::Entries { link, from, entries } => {
                self.take_entries(host, link, from, entries)
            }
            Message::Confirmed { link, node, offset } => {
                let Some(process) = self.process(host) else { return };
                if let Some((known, confirmed)) = process.confirmed.get_mut(&node)
                    && *known == link
                {
                    *confirmed = offset.max(*confirmed);
                    self.settle(host);
                }
            }
            Message::LinkClosed { link } => {
                if let Some(process) = self.process(host)
                    && process.link.is_some_and(|own| own.number == link)
                {
                    process.link = None;
                }
            }
            Message::SendRest { node, link } => self.send_rest(host, node, link),
            Message::Connect { leader, epoch } => self.connect(host, leader, epoch),
            Message::FullCopy { leader, epoch } => self.copy_all(host, leader, epoch),
            Message::SayLinked { link } => {
                let is_own = self.process(host).and_then(|it| it.link).map(|it| it.number);
                if is_own == Some(link) {
                    self.say_linked(host);
                }
            }
            Message::LetGo { turn } => {
                let offset = self.hosts[host].journal.len() as u64;
                if self.process(host).is_some_and(|process| process.turn == turn) {
                    self.say_linked(host);
                    self.close_links(host);
                    self.process(host).expect("it is there").role = DataRole::Nobody;
                    self.tell(host, Event::Detached { offset });
                }
            }
            Message::SendStep { migration, attempt } => self.send_slots(host, migration, attempt),
            Message::Import { from, migration, attempt, to_epoch, slots, writes } => {
                self.import(host, from, migration, attempt, to_epoch, slots, writes);
            }
            Message::Imported { migration, attempt } => {
                let send = self.process(host).and_then(|it| it.sends.get(&migration).cloned());
                if let Some(send) = send.filter(|send| send.attempt == attempt) {
                    // The machine may have begun anew when it hears of it.
                    let (run, after) = (self.hosts[host].runs, self.rng.below(20));
                    let message = Message::SayDelivered { migration, number: send.number };
                    self.at(after, Happening::Arrives { host, run, message });
                }
            }
            Message::SayDelivered { migration, number } => {
                self.tell(host, Event::Delivered { migration, number });
            }
        }
    }

    fn take_entries(&mut self, host: usize, link: u64, from: usize, entries: Vec<Entry>) {
        let Some(own) = self.process(host).and_then(|process| process.link) else { return };
        if own.number != link {
            return;
        }
        if from != self.hosts[host].journal.len() {
            // Something was lost on the way: the connection has broken.
            self.process(host).expect("it is linked").link = None;
            return;
        }
        self.hosts[host].journal.extend(entries);
        let offset = self.hosts[host].journal.len() as u64;
        self.send(host, own.leader, Message::Confirmed { link, node: host, offset });
    }

    fn are_apart(&self, one: usize, other: usize) -> bool {
        self.cuts.contains(&(one, other)) || self.cuts.contains(&(other, one))
    }

    /// Looks after the link to the primary.
    pub(super) fn watch_links(&mut self, host: usize) {
        let run = self.hosts[host].runs;
        let process = self.hosts[host].process.as_ref().expect("it ticks");
        // As a primary it drops replicas that it cannot reach.
        let lost: Vec<usize> =
            process.confirmed.keys().copied().filter(|node| self.are_apart(host, *node)).collect();
        if !lost.is_empty() && self.rng.below(4) == 0 {
            let process = self.process(host).expect("it ticks");
            process.confirmed.retain(|node, _| !lost.contains(node));
        }
        let process = self.hosts[host].process.as_ref().expect("it ticks");
        let DataRole::Following { leader, epoch } = process.role else { return };
        if self.are_apart(host, leader) {
            if self.rng.below(4) == 0 {
                self.process(host).expect("it ticks").link = None;
            }
            return;
        }
        if self.hosts[leader].process.is_none() {
            let since = self.hosts[host].clock(self.now);
            self.process(host).expect("it ticks").link = None;
            return self.tell(host, Event::Gone { node: node_id(leader), since });
        }
        // A primary that has dropped the link has closed it.
        let is_known = self.hosts[leader].process.as_ref().is_some_and(|other| {
            let known = other.confirmed.get(&host).map(|(link, _)| *link);
            known == process.link.map(|link| link.number)
        });
        if process.link.is_some() && !is_known {
            self.process(host).expect("it ticks").link = None;
        }
        let process = self.process(host).expect("it ticks");
        if process.link.is_none() && !process.is_connecting {
            let after = 2 + self.rng.below(50);
            let message = Message::Connect { leader, epoch };
            self.at(after, Happening::Arrives { host, run, message });
        }
    }

    /// Whether the primary can be linked with now.
    fn may_link(&self, host: usize, leader: usize, epoch: Epoch) -> bool {
        let process = self.hosts[host].process.as_ref().expect("it runs");
        process.role == (DataRole::Following { leader, epoch })
            && process.link.is_none()
            && !self.are_apart(host, leader)
            && self.hosts[leader].runs_freely()
            && self.hosts[leader].leads() == Some(epoch)
    }

    fn connect(&mut self, host: usize, leader: usize, epoch: Epoch) {
        if !self.may_link(host, leader, epoch) {
            return;
        }
        let pairs = self.hosts[host].journal.iter().zip(&self.hosts[leader].journal);
        let common = pairs.take_while(|(own, other)| own.id() == other.id()).count();
        let length = self.hosts[host].journal.len();
        if common < length && self.rng.below(2) == 0 {
            // It cannot go on from here: it gets everything. Its own data stay until that has come.
            self.process(host).expect("it runs").is_connecting = true;
            let (run, after) = (self.hosts[host].runs, 20 + self.rng.below(400));
            let message = Message::FullCopy { leader, epoch };
            return self.at(after, Happening::Arrives { host, run, message });
        }
        self.hosts[host].journal.truncate(common);
        self.link(host, leader, epoch);
    }

    fn copy_all(&mut self, host: usize, leader: usize, epoch: Epoch) {
        self.process(host).expect("it runs").is_connecting = false;
        if self.may_link(host, leader, epoch) {
            self.hosts[host].journal = self.hosts[leader].journal.clone();
            self.link(host, leader, epoch);
        }
    }

    fn link(&mut self, host: usize, leader: usize, epoch: Epoch) {
        let link = self.new_link(leader);
        let from = self.hosts[host].journal.len();
        self.process(host).expect("it runs").link = Some(link);
        let process = self.process(leader).expect("it leads");
        process.confirmed.insert(host, (link.number, 0));
        let end = self.hosts[leader].journal.len();
        // What is missing may take a while, and what has arrived of it is confirmed.
        let first = match end - from > 3 && self.rng.below(3) == 0 {
            true => from + self.rng.index(end - from),
            false => end,
        };
        let entries = self.hosts[leader].journal[from..first].to_vec();
        self.send(leader, host, Message::Entries { link: link.number, from, entries });
        if first < end {
            let process = self.process(leader).expect("it leads");
            process.behind.insert(host, (link.number, first));
            let (run, after) = (self.hosts[leader].runs, 20 + self.rng.below(600));
            let message = Message::SendRest { node: host, link: link.number };
            self.at(after, Happening::Arrives { host: leader, run, message });
        }
        let end = end as u64;
        let process = self.process(host).expect("it runs");
        process.untold = Some((epoch, from as u64, end));
        let (run, after) = (self.hosts[host].runs, self.rng.below(60));
        let message = Message::SayLinked { link: link.number };
        self.at(after, Happening::Arrives { host, run, message });
    }

    fn send_rest(&mut self, host: usize, node: usize, link: u64) {
        let Some(process) = self.process(host) else { return };
        if process.behind.get(&node).is_none_or(|(of, _)| *of != link) {
            return;
        }
        let (_, from) = process.behind.remove(&node).expect("it is there");
        if process.confirmed.get(&node).is_some_and(|(of, _)| *of == link) {
            let entries = self.hosts[host].journal[from..].to_vec();
            self.send(host, node, Message::Entries { link, from, entries });
        }
    }

    /// Tells the machine of a link, if it has not heard of it.
    fn say_linked(&mut self, host: usize) {
        if let Some((epoch, offset, end)) = self.process(host).and_then(|it| it.untold.take()) {
            self.tell(host, Event::Linked { epoch, offset, end });
        }
    }

    /// Closes all links of a node, which others notice.
    pub(super) fn close_links(&mut self, host: usize) {
        let Some(process) = self.process(host) else { return };
        let replicas = std::mem::take(&mut process.confirmed);
        let link = process.link.take();
        process.untold = None;
        process.sends.clear();
        process.importing.clear();
        process.waiting.clear();
        for (node, (link, _)) in replicas {
            self.send(host, node, Message::LinkClosed { link });
        }
        if let Some(link) = link
            && let Some(process) = self.process(link.leader)
            && process.confirmed.get(&host).is_some_and(|(number, _)| *number == link.number)
        {
            process.confirmed.remove(&host);
        }
    }

    /// As the source: the next step of a migration.
    fn send_slots(&mut self, host: usize, migration: String, attempt: u64) {
        let run = self.hosts[host].runs;
        let Some(process) = self.process(host) else { return };
        let Some(send) = process.sends.get(&migration).cloned() else { return };
        if send.attempt != attempt {
            return;
        }
        let (number, to_epoch) = (send.number, send.to_epoch);
        if send.is_held {
            self.tell(host, Event::SlotsHeld { migration: migration.clone(), number });
        }
        let is_ready =
            !self.are_apart(host, send.target) && self.hosts[send.target].leads() == Some(to_epoch);
        if is_ready && !send.is_held {
            self.tell(host, Event::CaughtUp { migration: migration.clone(), number });
        } else if is_ready {
            let writes = Rc::new(self.content_of(host, &send.slots));
            let (migration, slots) = (migration.clone(), send.slots);
            let message =
                Message::Import { from: host, migration, attempt, to_epoch, slots, writes };
            self.send(host, send.target, message);
        }
        let message = Message::SendStep { migration, attempt };
        let after = 100 + self.rng.below(200);
        self.at(after, Happening::Arrives { host, run, message });
    }

    #[expect(clippy::too_many_arguments, reason = "they are the message")]
    fn import(
        &mut self,
        host: usize,
        from: usize,
        migration: String,
        attempt: u64,
        to_epoch: Epoch,
        slots: SlotRanges,
        writes: Rc<Vec<(u16, u64)>>,
    ) {
        if self.hosts[host].leads() != Some(to_epoch) {
            return;
        }
        let process = self.process(host).expect("it leads");
        if process.holds_writes {
            // What arrives waits as other writes do: the source tries it again.
            return;
        }
        let topology = Rc::new(process.topology.clone());
        let own = topology.shard_of(node_id(host));
        let is_wanted = topology.migrations.get(&migration).is_some_and(|record| {
            own.is_some_and(|shard| record.to == shard.id && shard.slots.is_apart_from(&slots))
        });
        // What is late, also of another move of the same slots.
        let is_late =
            |(own, newest): &(SlotRanges, u64)| !own.is_apart_from(&slots) && attempt < *newest;
        if !is_wanted || process.arrived.iter().any(is_late) {
            return;
        }
        process.arrived.push((slots.clone(), attempt));
        self.trace(|| format!("n{host} imports {migration}, try {attempt}, of {slots}"));
        let entry = self.imported(slots, writes);
        self.hosts[host].journal.push(entry);
        let offset = self.hosts[host].journal.len() as u64;
        let process = self.process(host).expect("it leads");
        process.importing.push((offset, from, migration, attempt));
        self.replicate(host);
        self.settle(host);
    }

    /// Excuses writes of which no copy is left in the shard that owns their slot, but for copies
    /// at nodes that have lost their end and are not of the last epoch any more.
    pub(super) fn excuse(&mut self) {
        for (shard, value) in &self.truth.shards {
            let last = self.truth.epochs.get(shard).map(|(epoch, own)| own.data_epoch(*epoch));
            let mut left = BTreeSet::new();
            for node in &value.members {
                let process = &self.hosts[number_of(*node)].process;
                let counts = process.as_ref().is_some_and(|it| {
                    it.control.is_complete() || Some(it.control.data_epoch()) == last
                });
                if self.plan.keeping.loses_data() && !counts {
                    continue;
                }
                let content = self.content_of(number_of(*node), &value.slots);
                left.extend(content.into_iter().map(|(_, id)| id));
            }
            let lost = self
                .clients
                .acknowledged
                .iter()
                .filter(|(id, slot)| value.slots.contains(**slot) && !left.contains(id));
            self.clients.excused.extend(lost.map(|(id, _)| *id));
        }
    }

    /// What a machine has of slots that are on their way to its shard. The source may give them
    /// away before it hears that the machine has lost it.
    pub(super) fn arriving_at(&self, host: usize) -> BTreeSet<u64> {
        let own = self.truth.shards.values().find(|own| own.members.contains(&node_id(host)));
        let foreign = own.map(|own| SlotRanges::all().without(&own.slots));
        let content = foreign.map(|slots| self.content_of(host, &slots));
        content.into_iter().flatten().map(|(_, id)| id).collect()
    }

    /// Excuses those of these writes of which no other member of the machine's shard has a copy.
    pub(super) fn excuse_arriving(&mut self, host: usize, mut ids: BTreeSet<u64>) {
        let own = self.truth.shards.values().find(|own| own.members.contains(&node_id(host)));
        for node in own.into_iter().flat_map(|own| &own.members) {
            for (_, id) in self.content_of(number_of(*node), &SlotRanges::all()) {
                ids.remove(&id);
            }
        }
        self.clients.excused.append(&mut ids);
    }

    /// Excuses a write that is acknowledged by the shard that has accepted it, after its slot has
    /// moved to another shard, of which all machines have lost their memory since.
    fn excuse_moved(&mut self, shard: ShardId, id: u64, slot: u16) {
        let owner = self.truth.shards.iter().find(|(_, value)| value.slots.contains(slot));
        let Some((_, value)) = owner.filter(|(owner, _)| **owner != shard) else { return };
        let has = |node: &NodeId| {
            let content = self.content_of(number_of(*node), &value.slots);
            content.iter().any(|(_, other)| *other == id)
        };
        if self.plan.keeping.loses_data() && !value.members.iter().any(has) {
            self.clients.excused.insert(id);
        }
    }

    /// All that must be true some time after the last trouble.
    pub(super) fn check_end(&mut self) {
        let is_timely = !self.plan.has_wild_clocks;
        if !self.truth.migrations.is_empty() && is_timely {
            let migrations = self.truth.migrations.clone();
            return self.violate(format!("migrations do not end: {migrations:?}"));
        }
        for shard in (0..self.plan.shards).map(shard_id) {
            let Some(epoch) = self.truth.leaders.get(&shard).copied() else {
                if self.plan.has_wild_clocks {
                    continue;
                }
                return self.violate(format!("shard {shard} has no primary"));
            };
            let leader =
                (0..self.hosts.len()).find(|host| self.hosts[*host].leads() == Some(epoch));
            let Some(leader) = leader else {
                if self.plan.has_wild_clocks {
                    continue;
                }
                return self.violate(format!("nobody is primary in epoch {epoch} of {shard}"));
            };
            let last = self.clients.last.get(&shard).copied().unwrap_or(0);
            let slots = self.truth.shards[&shard].slots.clone();
            if self.now > last + 3000 && !slots.is_empty() && is_timely {
                return self.violate(format!("n{leader}: nothing is acknowledged since {last}"));
            }
            let present: BTreeSet<u64> =
                self.content_of(leader, &slots).into_iter().map(|(_, id)| id).collect();
            let lost: Vec<u64> = self
                .clients
                .acknowledged
                .iter()
                .filter(|(id, slot)| slots.contains(**slot) && !present.contains(id))
                .map(|(id, _)| *id)
                .filter(|id| !self.clients.excused.contains(id))
                .collect();
            if !lost.is_empty() {
                return self.violate(format!("n{leader} of {shard} has lost the writes {lost:?}"));
            }
            self.check_members(shard, leader);
            let topology = self.topology_of(leader).expect("it runs").clone();
            if !topology.is_covered() && is_timely {
                return self.violate(format!("n{leader} does not see all slots served"));
            }
        }
    }

    /// Whoever was taken out of a shard is out, but for a primary in whose place nobody stays.
    fn check_members(&mut self, shard: ShardId, leader: usize) {
        let members = self.truth.shards[&shard].members.clone();
        let stays = |node: &NodeId| self.wanted_shard(number_of(*node)) == Some(shard);
        let is_left = |node: &NodeId| *node == node_id(leader) && !members.iter().any(stays);
        if !self.plan.has_wild_clocks && !members.iter().all(|node| stays(node) || is_left(node)) {
            self.violate(format!("n{leader} does not take out who leaves: {members:?}"));
        }
    }
}
