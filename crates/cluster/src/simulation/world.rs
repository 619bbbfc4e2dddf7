//! The simulated world: machines, links, etcd and clients, driven by one seed.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use base::rng::Rng;

use crate::control::{Action, Announced, Control, Event, Recovered, Rule, Setup, Ticket};
use crate::ids::{Epoch, NodeId, ShardId};
use crate::keys::{
    Keys, LeaderValue, MemberValue, RebuiltValue, ShardValue, Subject, decode, encode,
};
use crate::rebuild::Rebuild;
use crate::simulation::etcd::{Etcd, Refusal};
use crate::simulation::host::{DataRole, Entry, Host, Link, Message, Process, Send, content};
use crate::simulation::trouble::Trouble;
use crate::slots::SlotRanges;
use crate::store::{Failure, Operation, Request, Revision, Transaction, WatchEvent};
use crate::topology::{Address, Topology};

/// What survives the end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    /// All data, and it is known that they are all.
    Disk,
    /// All data, of which that is known only when the process has ended in order.
    Files,
    /// Data without their end.
    Tail,
    /// Nothing.
    Memory,
}

impl Keeping {
    /// Whether data may be gone after a kill.
    pub(super) fn loses_data(self) -> bool {
        matches!(self, Keeping::Tail | Keeping::Memory)
    }
}

/// What a world is made of.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) shards: usize,
    pub(super) members: usize,
    pub(super) spares: usize,
    pub(super) keeping: Keeping,
    /// How long things go wrong.
    pub(super) trouble_ms: u64,
    pub(super) reverted: Option<Rule>,
    /// Clocks run as they like, so that only the quorum keeps writes.
    pub(super) has_wild_clocks: bool,
    pub(super) node_timeout_ms: u64,
    /// How often something goes wrong, in milliseconds; 0: never.
    pub(super) trouble_every_ms: u64,
    pub(super) write_every_ms: u64,
    /// Of what kinds the troubles are.
    pub(super) troubles: &'static [Trouble],
}

/// How long after a change a node has the topology on disk, in milliseconds.
const KEEP_AFTER_MS: u64 = 1000;

/// How much of the slots' space one simulated slot stands for.
pub(super) const SLOT_STEP: u16 = 1024;

pub(super) enum Happening {
    Tick { host: usize, run: u64 },
    AtEtcd { host: usize, run: u64, request: u64, what: Request },
    Unanswered { host: usize, run: u64, request: u64 },
    Arrives { host: usize, run: u64, message: Message },
    Pump { host: usize, run: u64 },
    Expire,
    Write,
    Trouble,
    Restart { host: usize },
    Resume { host: usize },
    Reconnect { host: usize },
    Mend { from: usize, to: usize },
    EtcdBack,
    EtcdHasSpace,
    AcceptLoss,
    Empty,
    Rebuild,
    RebuildRest,
    CheckGone { host: usize, run: u64, gone: usize },
}

/// What the clients know.
#[derive(Default)]
pub(super) struct Clients {
    /// Writes that were acknowledged at quorum, with their slots.
    pub(super) acknowledged: BTreeMap<u64, u16>,
    /// Of these, writes of which the world has destroyed all copies.
    pub(super) excused: BTreeSet<u64>,
    /// When a write of a shard was last acknowledged at quorum.
    pub(super) last: BTreeMap<ShardId, u64>,
    pub(super) in_memory: u64,
}

/// What etcd has, for checks.
#[derive(Default)]
pub(super) struct Truth {
    pub(super) revision: i64,
    pub(super) epochs: BTreeMap<ShardId, (Epoch, LeaderValue)>,
    pub(super) leaders: BTreeMap<ShardId, Epoch>,
    pub(super) shards: BTreeMap<ShardId, ShardValue>,
    pub(super) migrations: BTreeSet<String>,
    pub(super) elections: u64,
}

pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) rng: Rng,
    pub(super) now: u64,
    pub(super) trouble_until: u64,
    sequence: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    pub(super) keys: Keys,
    pub(super) etcd: Etcd,
    pub(super) etcd_is_up: bool,
    /// etcd has lost the cluster, and nobody has written it anew.
    pub(super) is_lost: bool,
    /// What an operator's program has written a part of.
    pub(super) rebuilding: Option<Rebuild>,
    /// How often the cluster was written anew.
    pub(super) rebuilds: u64,
    /// A backup of etcd.
    pub(super) saved: Option<Etcd>,
    /// etcd has such a one, of before an election.
    pub(super) is_set_back: bool,
    /// It has had one: a node that was away meanwhile may have led beside another one.
    pub(super) was_set_back: bool,
    pub(super) hosts: Vec<Host>,
    pub(super) cuts: BTreeSet<(usize, usize)>,
    pub(super) clients: Clients,
    pub(super) truth: Truth,
    pub(super) last_number: u64,
    pub(super) violation: Option<String>,
    /// What clients of nodes were answered: node, ticket, answer.
    pub(super) replies: Vec<(usize, Ticket, Result<(), String>)>,
    pub(super) is_traced: bool,
    pub(super) spike_until: u64,
    /// Since when the primary of a shard changes its members.
    changes: BTreeMap<ShardId, u64>,
    /// Replicas that confirm nothing.
    pub(super) stuck: BTreeSet<usize>,
    /// Until when new links are slow.
    slow_links: BTreeMap<u64, u64>,
}

pub(super) fn node_id(number: usize) -> NodeId {
    let mut bytes = [0; 20];
    bytes[18..].copy_from_slice(&(number as u16 + 1).to_be_bytes());
    NodeId(bytes)
}

pub(super) fn shard_id(number: usize) -> ShardId {
    let mut bytes = [0xaa; 20];
    bytes[18..].copy_from_slice(&(number as u16 + 1).to_be_bytes());
    ShardId(bytes)
}

pub(super) fn number_of(node: NodeId) -> usize {
    usize::from(u16::from_be_bytes([node.0[18], node.0[19]])) - 1
}

impl World {
    pub(super) fn new(plan: Plan) -> Self {
        let mut rng = Rng::from_seed(plan.seed);
        let count = plan.shards * plan.members + plan.spares;
        let hosts = (0..count).map(|number| {
            let drift = if plan.has_wild_clocks { 900_000 } else { 5_000 };
            Host {
                id: node_id(number),
                clock_offset: 1_000_000 + rng.below(1_000_000),
                clock_rate: 1_000_000 - drift + rng.below(2 * drift),
                process: None,
                is_stopped: false,
                backlog: Vec::new(),
                journal: Vec::new(),
                lost_at: None,
                remembered: Default::default(),
                kept: None,
                is_old_since: None,
                has_ended_in_order: false,
                node_timeout_ms: plan.node_timeout_ms,
                promised: (0, 0),
                runs: 0,
                is_mute: false,
                is_deaf: false,
                is_scrapped: false,
            }
        });
        let mut world = World {
            hosts: hosts.collect(),
            rng,
            now: 0,
            trouble_until: plan.trouble_ms,
            sequence: 0,
            queue: BTreeMap::new(),
            keys: Keys::new("simulated"),
            etcd: Etcd::new(),
            etcd_is_up: true,
            is_lost: false,
            rebuilding: None,
            rebuilds: 0,
            saved: None,
            is_set_back: false,
            was_set_back: false,
            cuts: BTreeSet::new(),
            clients: Clients::default(),
            truth: Truth::default(),
            last_number: 0,
            violation: None,
            replies: Vec::new(),
            is_traced: std::env::var_os("TRACE").is_some(),
            spike_until: 0,
            changes: BTreeMap::new(),
            slow_links: BTreeMap::new(),
            stuck: BTreeSet::new(),
            plan,
        };
        world.found();
        world
    }

    /// Writes down the shards, and starts all nodes.
    fn found(&mut self) {
        let mut operations = Vec::new();
        let put = |key, value| Operation::Put { key, value, lease: 0 };
        let (shards, members) = (self.plan.shards, self.plan.members);
        for shard in 0..shards {
            let slots = SlotRanges::all()
                .iter()
                .filter(|slot| usize::from(slot / SLOT_STEP) % shards == shard)
                .collect();
            let nodes: Vec<_> = (0..members).map(|at| node_id(shard * members + at)).collect();
            for node in &nodes {
                let value = MemberValue {
                    shard: Some(shard_id(shard)),
                    address: address(number_of(*node)),
                    zone: String::new(),
                    name: String::new(),
                };
                operations.push(put(self.keys.of(&Subject::Member(*node)), encode(&value)));
            }
            let key = self.keys.of(&Subject::Shard(shard_id(shard)));
            operations.push(put(key, encode(&ShardValue { slots, members: nodes })));
        }
        self.operate(Vec::new(), operations);
        for host in 0..self.hosts.len() {
            let after = self.rng.below(200);
            self.at(after, Happening::Restart { host });
        }
        self.at(50, Happening::Expire);
        self.at(1000, Happening::Write);
        if self.plan.trouble_every_ms > 0 {
            self.at(1500, Happening::Trouble);
        }
    }

    /// What an operator's program does.
    pub(super) fn operate(
        &mut self,
        compares: Vec<crate::store::Compare>,
        operations: Vec<Operation>,
    ) {
        let request = Request::Transaction(Transaction { compares, operations });
        let _ = self.etcd.carry_out(self.now, &request);
        self.etcd_has_changed();
    }

    pub(super) fn trace(&self, text: impl FnOnce() -> String) {
        if self.is_traced {
            println!("{:>7} {}", self.now, text());
        }
    }

    pub(super) fn violate(&mut self, text: String) {
        self.trace(|| format!("VIOLATION {text}"));
        self.violation.get_or_insert(format!("at {} ms: {text}", self.now));
    }

    pub(super) fn at(&mut self, after: u64, happening: Happening) {
        self.sequence += 1;
        self.queue.insert((self.now + after, self.sequence), happening);
    }

    /// How long a message takes.
    pub(super) fn latency(&mut self) -> u64 {
        match self.rng.below(if self.now < self.spike_until { 4 } else { 200 }) {
            0 if self.now < self.trouble_until => self.rng.below(3000),
            _ => 1 + self.rng.below(4),
        }
    }

    /// Goes on until `end`, or until something has gone wrong that must not.
    pub(super) fn run_until(&mut self, end: u64) {
        while self.violation.is_none() {
            let Some(entry) = self.queue.first_entry() else { return };
            if entry.key().0 > end {
                break;
            }
            let ((time, _), happening) = entry.remove_entry();
            self.now = time;
            self.happen(happening);
        }
        self.now = self.now.max(end);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Tick { host, run } => self.tick(host, run),
            Happening::AtEtcd { host, run, request, what } => {
                self.at_etcd(host, run, request, &what);
            }
            Happening::Unanswered { host, run, request } => {
                let failure = Failure::Unknown("no answer in time".into());
                let message = Message::Event(Event::Answered { request, result: Err(failure) });
                self.answer(host, run, request, message);
            }
            Happening::Arrives { host, run, message } => {
                if let Message::Event(Event::Answered { request, .. }) = message {
                    self.answer(host, run, request, message);
                } else {
                    self.arrive(host, run, message);
                }
            }
            Happening::Pump { host, run } => self.pump(host, run),
            Happening::Expire => {
                if self.etcd_is_up {
                    self.etcd.expire(self.now.saturating_sub(self.rng.below(300)));
                    self.etcd_has_changed();
                }
                self.at(50, Happening::Expire);
            }
            Happening::Write => self.write_somewhere(),
            Happening::Trouble => self.trouble(),
            Happening::Restart { host } => self.start(host),
            Happening::Resume { host } => self.resume(host),
            Happening::Reconnect { host } => {
                self.hosts[host].is_mute = false;
                self.hosts[host].is_deaf = false;
                let run = self.hosts[host].runs;
                self.at(1, Happening::Pump { host, run });
            }
            Happening::Mend { from, to } => drop(self.cuts.remove(&(from, to))),
            Happening::EtcdBack => {
                self.etcd_is_up = true;
                self.etcd.renew_all(self.now);
                self.pump_all();
            }
            Happening::EtcdHasSpace => self.etcd.refuses = None,
            Happening::AcceptLoss => self.accept_loss(),
            Happening::Empty => self.empty(),
            Happening::Rebuild => self.rebuild(),
            Happening::RebuildRest => self.rebuild_rest(),
            Happening::CheckGone { host, run, gone } => self.check_gone(host, run, gone),
        }
    }

    /// Starts the process of a host.
    pub(super) fn start(&mut self, host: usize) {
        if self.hosts[host].process.is_some() || self.hosts[host].is_scrapped {
            return;
        }
        let incarnation = self.rng.next_u64() >> 12;
        let (shard, lineage, complete) = &self.hosts[host].remembered;
        let offset = self.hosts[host].journal.len() as u64;
        let is_known = match self.plan.keeping {
            Keeping::Disk => true,
            Keeping::Files => self.hosts[host].has_ended_in_order,
            Keeping::Tail | Keeping::Memory => false,
        };
        let complete = *complete && is_known;
        let (epoch, start) = lineage.at(offset);
        let recovered = match self.plan.keeping {
            Keeping::Memory => Recovered::default(),
            _ => Recovered { shard: *shard, epoch, start, offset, complete },
        };
        let setup = Setup {
            cluster: "simulated".into(),
            node: self.hosts[host].id,
            incarnation,
            announced: Announced {
                address: address(host),
                zone: String::new(),
                name: String::new(),
            },
            version: "1".into(),
            node_timeout_ms: self.hosts[host].node_timeout_ms,
            promised_ms: self.hosts[host].may_have_promised_ms(self.now),
            recovered,
            cached: self.hosts[host].kept.clone(),
        };
        let mut control = Control::new(setup, self.rng.next_u64());
        control.reverted = self.plan.reverted;
        let machine = &mut self.hosts[host];
        machine.runs += 1;
        machine.is_stopped = false;
        machine.has_ended_in_order = false;
        machine.is_old_since = None;
        machine.backlog.clear();
        machine.process = Some(Process {
            control,
            incarnation,
            role: DataRole::Nobody,
            turn: 0,
            is_connecting: false,
            link: None,
            untold: None,
            told: None,
            serve_until: 0,
            quorum: Default::default(),
            holds_writes: false,
            topology: Default::default(),
            confirmed: BTreeMap::new(),
            behind: BTreeMap::new(),
            waiting: Vec::new(),
            importing: Vec::new(),
            sends: BTreeMap::new(),
            arrived: Vec::new(),
            watch: None,
            asked: BTreeSet::new(),
            is_stopping: false,
        });
        let run = machine.runs;
        self.trace(|| format!("n{host} starts"));
        self.at(0, Happening::Tick { host, run });
    }

    pub(super) fn process(&mut self, host: usize) -> Option<&mut Process> {
        self.hosts[host].process.as_mut()
    }

    pub(super) fn is_run(&self, host: usize, run: u64) -> bool {
        self.hosts[host].process.is_some() && self.hosts[host].runs == run
    }

    fn tick(&mut self, host: usize, run: u64) {
        if !self.is_run(host, run) {
            return;
        }
        let after = 80 + self.rng.below(40);
        self.at(after, Happening::Tick { host, run });
        if self.hosts[host].is_stopped {
            return;
        }
        self.keep(host);
        self.watch_links(host);
        let offset = self.hosts[host].journal.len() as u64;
        // What it has seen of its links may have been all that it waited for to end.
        let Some(process) = self.process(host) else { return };
        if process.told != Some(offset) {
            process.told = Some(offset);
            self.tell(host, Event::Applied { offset });
        }
        if let Some(epoch) = self.hosts[host].leads() {
            let confirmed = self.confirmed(host);
            self.tell(host, Event::Replicas { epoch, confirmed });
        }
        self.tell(host, Event::Tick);
    }

    /// A topology that has changed is on disk some time later.
    fn keep(&mut self, host: usize) {
        let now = self.now;
        let machine = &mut self.hosts[host];
        if machine.is_old_since.is_some_and(|since| now >= since + KEEP_AFTER_MS)
            && let Some(process) = &machine.process
        {
            machine.kept = Some(Arc::clone(&process.topology));
            machine.is_old_since = None;
        }
    }

    fn confirmed(&self, host: usize) -> Vec<(NodeId, u64)> {
        let Some(process) = &self.hosts[host].process else { return Vec::new() };
        process.confirmed.iter().map(|(node, (_, offset))| (node_id(*node), *offset)).collect()
    }

    /// Gives an event to a machine, and carries out what it wants.
    pub(super) fn tell(&mut self, host: usize, event: Event) {
        let clock = self.hosts[host].clock(self.now);
        let Some(process) = self.process(host) else { return };
        let mut actions = Vec::new();
        process.control.handle(clock, event, &mut actions);
        // That writes are held is heard at once where nobody writes: such a step would have no end.
        let holds = actions.iter().position(|own| matches!(own, Action::HoldWrites { .. }));
        let lets_go = |own: &Action| matches!(own, Action::ReleaseWrites { .. });
        if holds.is_some_and(|at| actions[at..].iter().any(lets_go)) {
            self.violate(format!("node {host} holds writes and lets them go in one step"));
        }
        for action in actions {
            self.act(host, action);
            if self.rng.below(30) == 0 {
                self.write_at(host);
            }
        }
    }

    fn act(&mut self, host: usize, action: Action) {
        if self.is_traced && !matches!(action, Action::Publish(_) | Action::ServeUntil { .. }) {
            let text = format!("{action:?}");
            if !text.contains("KeepAlive") && !text.starts_with("Ask { request") {
                self.trace(|| format!("n{host} {text}"));
            } else if text.contains("Transaction") {
                self.trace(|| format!("n{host} {}", short(&text)));
            }
        }
        let run = self.hosts[host].runs;
        let Some(process) = self.hosts[host].process.as_mut() else { return };
        match action {
            Action::Ask { request, what } => {
                process.asked.insert(request);
                self.send_to_etcd(host, run, request, what);
            }
            Action::Watch { watch, from, .. } => {
                process.watch = Some((watch, from - 1));
                let after = self.latency();
                self.at(after, Happening::Pump { host, run });
            }
            Action::Remember { shard, epoch, start, complete } => {
                let remembered = &mut self.hosts[host].remembered;
                remembered.1.note(epoch, start);
                (remembered.0, remembered.2) = (shard, complete);
            }
            Action::Lead { epoch, continues } => self.lead(host, epoch, continues),
            Action::Follow { node, epoch, .. } => {
                if let Some((epoch, offset, end)) = process.untold.take() {
                    let message = Message::Event(Event::Linked { epoch, offset, end });
                    self.at(0, Happening::Arrives { host, run, message });
                }
                self.close_links(host);
                let process = self.process(host).expect("it acts");
                process.turn += 1;
                process.is_connecting = false;
                process.role = DataRole::Following { leader: number_of(node), epoch };
            }
            Action::Detach => {
                if let DataRole::Leading { .. } = process.role {
                    process.serve_until = 0;
                }
                process.turn += 1;
                let turn = process.turn;
                let after = self.rng.below(5);
                self.at(after, Happening::Arrives { host, run, message: Message::LetGo { turn } });
            }
            Action::ServeUntil { epoch, until } => {
                if process.role == (DataRole::Leading { epoch }) {
                    process.serve_until = until;
                }
            }
            Action::Quorum { epoch, quorum } => {
                if process.role == (DataRole::Leading { epoch }) {
                    let own = process.topology.shard_of(node_id(host)).map(|shard| shard.id);
                    match own {
                        Some(shard) if quorum.groups.len() > 1 => {
                            self.changes.entry(shard).or_insert(self.now);
                        }
                        Some(shard) => drop(self.changes.remove(&shard)),
                        None => {}
                    }
                    process.quorum = quorum;
                    self.settle(host);
                }
            }
            Action::HoldWrites { epoch } => {
                process.holds_writes = true;
                let offset = self.hosts[host].journal.len() as u64;
                let message = Message::Event(Event::WritesHeld { epoch, offset });
                self.at(1, Happening::Arrives { host, run, message });
            }
            Action::ReleaseWrites { .. } => process.holds_writes = false,
            Action::Probe { incarnation, .. } => {
                // The process is the only one of its node, so that the one before is gone.
                let message = Message::Event(Event::PredecessorGone { incarnation });
                let after = self.latency();
                self.at(after, Happening::Arrives { host, run, message });
            }
            Action::AskPromises { nodes, epoch, round, duration_ms } => {
                let from = node_id(host);
                for node in nodes {
                    let event = Event::PromiseAsked { from, epoch, round, duration_ms };
                    self.send(host, number_of(node), Message::Event(event));
                }
            }
            Action::AnswerPromise { to, epoch, round, duration_ms, given } => {
                if given {
                    let clock = self.hosts[host].clock(self.now);
                    self.hosts[host].promised = (duration_ms, clock + duration_ms);
                }
                let node = node_id(host);
                let event = Event::Promised { node, epoch, round, given };
                self.send(host, number_of(to), Message::Event(event));
            }
            Action::Publish(topology) => {
                process.topology = Arc::clone(&topology);
                let machine = &mut self.hosts[host];
                let known = machine.kept.as_ref();
                if known.is_some_and(|known| known.is_alike_for(machine.id, &topology)) {
                    machine.is_old_since.get_or_insert(self.now);
                } else {
                    // That takes a moment in which no node is killed here.
                    (machine.kept, machine.is_old_since) = (Some(topology), None);
                }
            }
            Action::Send { migration, number, slots, node, to_epoch, .. } => {
                self.last_number += 1;
                let attempt = self.last_number;
                let target = number_of(node);
                let send = Send { number, slots, target, to_epoch, attempt, is_held: false };
                let process = self.process(host).expect("it acts");
                process.sends.insert(migration.clone(), send);
                let after = 20 + self.rng.below(300);
                let message = Message::SendStep { migration, attempt };
                self.at(after, Happening::Arrives { host, run, message });
            }
            Action::HoldSlots { migration } => {
                if let Some(send) = process.sends.get_mut(&migration) {
                    send.is_held = true;
                    let attempt = send.attempt;
                    let message = Message::SendStep { migration, attempt };
                    self.at(2, Happening::Arrives { host, run, message });
                }
            }
            Action::Finish { migration, .. } => drop(process.sends.remove(&migration)),
            Action::Reply { ticket, result } => {
                let ends = process.is_stopping && ticket == 7;
                self.replies.push((host, ticket, result));
                if ends {
                    self.note_end(host);
                    self.kill(host);
                    self.hosts[host].has_ended_in_order = true;
                    let after = self.rng.below(3000);
                    self.at(after, Happening::Restart { host });
                }
            }
            // Here it has one address.
            Action::PassOver | Action::Log { .. } => {}
        }
    }

    /// A process that ends in order stores what it knows of its data, if it has heard of all that
    /// has become of them.
    fn note_end(&mut self, host: usize) {
        let offset = self.hosts[host].journal.len() as u64;
        let Some(process) = self.process(host) else { return };
        let data = process.control.data();
        if process.untold.is_none() && data.offset == offset {
            let remembered = &mut self.hosts[host].remembered;
            remembered.1.note(data.epoch, data.start);
            (remembered.0, remembered.2) = (data.shard, data.complete);
        }
    }

    fn lead(&mut self, host: usize, epoch: Epoch, continues: bool) {
        let length = self.hosts[host].journal.len() as u64;
        let Some(process) = self.process(host) else { return };
        process.turn += 1;
        process.link = None;
        process.serve_until = 0;
        process.holds_writes = false;
        if !continues {
            process.waiting.clear();
        }
        let was = std::mem::replace(&mut process.role, DataRole::Leading { epoch });
        if !matches!(was, DataRole::Leading { .. }) {
            process.confirmed.clear();
        } else if !continues {
            self.violate(format!("n{host} leads anew without a break"));
        }
        let shard = self.truth.epochs.iter().find(|(_, (last, _))| *last == epoch);
        if let Some((_, (_, value))) = shard
            && !continues
            && value.start != length
        {
            let start = value.start;
            self.violate(format!("n{host} leads from {length}, but said {start}"));
        }
    }

    /// Brings a message to another host, unless the way is cut.
    pub(super) fn send(&mut self, from: usize, to: usize, message: Message) {
        if self.cuts.contains(&(from, to)) || self.hosts[to].process.is_none() {
            return;
        }
        if matches!(message, Message::Confirmed { .. }) && self.stuck.contains(&from) {
            return;
        }
        let run = self.hosts[to].runs;
        let after = match message {
            // These have connections on which nothing overtakes.
            Message::Entries { link, .. } => {
                let fast = self.slow_links.get(&link).copied().unwrap_or(0);
                2 + fast.saturating_sub(self.now)
            }
            Message::Confirmed { .. } => 2,
            _ => self.latency(),
        };
        self.at(after, Happening::Arrives { host: to, run, message });
    }

    fn send_to_etcd(&mut self, host: usize, run: u64, request: u64, what: Request) {
        self.at(2000, Happening::Unanswered { host, run, request });
        if self.hosts[host].is_mute {
            return;
        }
        let refuses = self.etcd.refuses == Some(Refusal::Connections);
        if !self.etcd_is_up && (refuses || self.rng.below(2) == 0) {
            let failure = Failure::NotDone("connection refused".into());
            let message = Message::Event(Event::Answered { request, result: Err(failure) });
            self.at(2, Happening::Arrives { host, run, message });
            return;
        }
        if self.now < self.trouble_until && self.rng.below(60) == 0 {
            // It has waited too long behind others, and does not leave any more.
            let failure = Failure::NotDone("etcd has not answered earlier requests".into());
            let message = Message::Event(Event::Answered { request, result: Err(failure) });
            let after = self.rng.below(1000);
            self.at(after, Happening::Arrives { host, run, message });
            return;
        }
        let after = self.latency();
        self.at(after, Happening::AtEtcd { host, run, request, what });
    }

    fn at_etcd(&mut self, host: usize, run: u64, request: u64, what: &Request) {
        // What was sent arrives even when its sender is gone.
        if !self.etcd_is_up {
            return;
        }
        let result = self.etcd.carry_out(self.now, what);
        self.etcd_has_changed();
        if self.hosts[host].is_deaf || (self.now < self.trouble_until && self.rng.below(100) == 0) {
            return;
        }
        let after = self.latency();
        let message = Message::Event(Event::Answered { request, result });
        self.at(after, Happening::Arrives { host, run, message });
    }

    fn answer(&mut self, host: usize, run: u64, request: u64, message: Message) {
        if self.is_run(host, run)
            && self.process(host).is_some_and(|process| process.asked.remove(&request))
        {
            self.arrive(host, run, message);
        }
    }

    /// How far nodes are ahead of etcd's revisions.
    pub(super) fn ahead(&self) -> Revision {
        let rebuilt = self.etcd.pairs.get(&self.keys.of(&Subject::Rebuilt));
        let rebuilt = rebuilt.and_then(|pair| decode::<RebuiltValue>(&pair.value));
        rebuilt.map_or(0, |rebuilt| rebuilt.ahead)
    }

    /// Takes note of what has changed at etcd, and lets watches report it.
    pub(super) fn etcd_has_changed(&mut self) {
        if self.etcd.revision == self.truth.revision {
            return;
        }
        let counts = self.etcd.counts;
        let changes = self.etcd.changes_after(self.truth.revision).unwrap_or_default();
        self.etcd.counts = counts;
        self.truth.revision = self.etcd.revision;
        let ahead = self.ahead();
        for change in &changes {
            let Some(subject) = self.keys.subject(change.key()) else { continue };
            match (subject, change) {
                (Subject::Epoch(shard), WatchEvent::Put(pair)) => {
                    let value: LeaderValue = decode(&pair.value).expect("a leader");
                    if value.carried == 0 {
                        let epoch = pair.modified + ahead;
                        self.truth.epochs.insert(shard, (epoch, value));
                        self.truth.elections += 1;
                        let node = number_of(value.node);
                        self.trace(|| format!("etcd: n{node} has epoch {epoch} of {shard}"));
                    }
                }
                (Subject::Leader(shard), WatchEvent::Put(pair)) => {
                    self.truth.leaders.insert(shard, pair.created + ahead);
                }
                (Subject::Leader(shard), WatchEvent::Delete { .. }) => {
                    self.trace(|| format!("etcd: {shard} has no leader"));
                    self.truth.leaders.remove(&shard);
                }
                (Subject::Shard(shard), WatchEvent::Put(pair)) => {
                    let value: ShardValue = decode(&pair.value).expect("a shard");
                    self.trace(|| format!("etcd: {shard} is {value:?}"));
                    let since = self.changes.get(&shard).copied();
                    let has_lost = |node: &&NodeId| {
                        let lost_at = self.hosts[number_of(**node)].lost_at;
                        lost_at.zip(since).is_some_and(|(lost_at, since)| lost_at >= since)
                    };
                    let lost = value.members.iter().filter(has_lost).count();
                    let is_majority = 2 * lost > value.members.len();
                    let before = self.truth.shards.insert(shard, value);
                    if is_majority && before.is_some() {
                        // A quorum of those that are members from now on had everything, and has
                        // lost its memory while this was on its way.
                        self.excuse();
                    }
                }
                (Subject::Migration(id), WatchEvent::Put(_)) => {
                    self.truth.migrations.insert(id);
                }
                (Subject::Migration(id), WatchEvent::Delete { .. }) => {
                    self.truth.migrations.remove(&id);
                }
                _ => {}
            }
        }
        self.check_owners();
        self.pump_all();
    }

    pub(super) fn pump_all(&mut self) {
        for host in 0..self.hosts.len() {
            let run = self.hosts[host].runs;
            if self.hosts[host].process.as_ref().is_some_and(|process| process.watch.is_some()) {
                let after = self.latency();
                self.at(after, Happening::Pump { host, run });
            }
        }
    }

    /// The connections of all watches break.
    pub(super) fn end_watches(&mut self) {
        for host in 0..self.hosts.len() {
            let (run, is_deaf) = (self.hosts[host].runs, self.hosts[host].is_deaf);
            if let Some(process) = self.process(host)
                && !is_deaf
                && let Some((watch, _)) = process.watch.take()
            {
                let message = Message::Event(Event::WatchEnded { watch });
                self.at(1, Happening::Arrives { host, run, message });
            }
        }
    }

    /// Lets the watch of a host report what it has not yet reported.
    fn pump(&mut self, host: usize, run: u64) {
        if !self.is_run(host, run) || self.hosts[host].is_deaf || !self.etcd_is_up {
            return;
        }
        let is_lost = self.now < self.trouble_until && self.rng.below(150) == 0;
        let revision = self.etcd.revision;
        let process = self.hosts[host].process.as_mut().expect("it runs");
        let Some((watch, from)) = process.watch else { return };
        if from >= revision {
            return;
        }
        let changes = if is_lost { None } else { self.etcd.changes_after(from) };
        let event = match changes {
            Some(events) => {
                process.watch = Some((watch, revision));
                Event::Watched { watch, revision, events }
            }
            None => {
                process.watch = None;
                Event::WatchEnded { watch }
            }
        };
        self.at(1, Happening::Arrives { host, run, message: Message::Event(event) });
    }

    fn arrive(&mut self, host: usize, run: u64, message: Message) {
        if !self.is_run(host, run) {
            return;
        }
        if self.hosts[host].is_stopped {
            self.hosts[host].backlog.push(message);
            return;
        }
        self.receive(host, message);
    }

    fn resume(&mut self, host: usize) {
        if !self.hosts[host].is_stopped {
            return;
        }
        self.trace(|| format!("n{host} goes on"));
        self.hosts[host].is_stopped = false;
        // Threads that serve clients may run before the machine hears anything.
        for _ in 0..3 {
            self.write_at(host);
            self.settle(host);
        }
        let run = self.hosts[host].runs;
        for message in std::mem::take(&mut self.hosts[host].backlog) {
            // One of them may have ended the process.
            self.arrive(host, run, message);
            self.write_at(host);
        }
    }

    /// The process ends, with what it has not kept.
    pub(super) fn kill(&mut self, host: usize) {
        if self.hosts[host].process.is_none() {
            return;
        }
        self.trace(|| format!("n{host} ends"));
        self.close_links(host);
        let arriving = self.arriving_at(host);
        let machine = &mut self.hosts[host];
        machine.process = None;
        machine.is_stopped = false;
        machine.backlog.clear();
        match self.plan.keeping {
            Keeping::Disk | Keeping::Files => {}
            Keeping::Memory => {
                machine.journal.clear();
                machine.lost_at = Some(self.now);
            }
            Keeping::Tail => {
                let lost = self.rng.index(machine.journal.len().min(20) + 1);
                machine.journal.truncate(machine.journal.len() - lost);
                machine.lost_at = Some(self.now);
            }
        }
        self.excuse();
        if self.plan.keeping.loses_data() {
            self.excuse_arriving(host, arriving);
        }
        for other in 0..self.hosts.len() {
            if self.hosts[other].process.is_some() {
                let run = self.hosts[other].runs;
                let after = 2 + self.rng.below(20);
                self.at(after, Happening::CheckGone { host: other, run, gone: host });
            }
        }
    }

    fn check_gone(&mut self, host: usize, run: u64, gone: usize) {
        let is_refused = self.hosts[gone].process.is_none()
            && !self.cuts.contains(&(host, gone))
            && !self.cuts.contains(&(gone, host));
        if is_refused && self.is_run(host, run) {
            let since = self.hosts[host].clock(self.now);
            let event = Event::Gone { node: node_id(gone), since };
            let after = self.rng.below(4);
            self.at(after, Happening::Arrives { host, run, message: Message::Event(event) });
        }
    }

    pub(super) fn imported(&mut self, slots: SlotRanges, writes: Rc<Vec<(u16, u64)>>) -> Entry {
        self.last_number += 1;
        Entry::Import { id: self.last_number, slots, writes }
    }

    /// The topology that a node goes by.
    pub(super) fn topology_of(&self, host: usize) -> Option<&Topology> {
        Some(&self.hosts[host].process.as_ref()?.topology)
    }

    pub(super) fn content_of(&self, host: usize, slots: &SlotRanges) -> Vec<(u16, u64)> {
        content(&self.hosts[host].journal, slots)
    }

    pub(super) fn new_link(&mut self, leader: usize) -> Link {
        self.last_number += 1;
        if self.rng.below(2) == 0 {
            let slow = self.rng.below(800);
            self.slow_links.insert(self.last_number, self.now + slow);
        }
        Link { number: self.last_number, leader }
    }
}

fn short(text: &str) -> String {
    let mut shown = String::new();
    for part in text.split("value: [") {
        let rest = if shown.is_empty() { part } else { part.split_once(']').map_or("", |it| it.1) };
        shown.push_str(rest);
    }
    shown
}

pub(super) fn address(number: usize) -> Address {
    Address { host: "127.0.0.1".into(), port: 7000 + number as u16, ..Address::default() }
}
