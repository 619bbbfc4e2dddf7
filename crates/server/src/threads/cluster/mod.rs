//! The thread that makes this server a node of a cluster.
//!
//! It tells the machine of the crate `cluster` what happens, and does what the machine decides. All
//! that may wait for others has a thread of its own, so the machine hears of each in time.
//!
//! | file | what it answers |
//! |---|---|
//! | [`announcing`] | what shall others know of the node when its settings change? |
//! | [`part`] | what is the node at the moment, and how does it become something else? |
//! | [`etcd`] | who asks etcd, and who hears of changes there? |
//! | [`compare`] | are two addresses those of one etcd? |
//! | [`elsewhere`] | which etcd is asked when the settings name another one? |
//! | [`broadcast`] | how do other nodes hear what clients here publish? |
//! | [`peers`] | how are the other nodes of the shard asked, and how is it seen that one is gone? |
//! | [`reach`] | how is another node reached? |
//! | [`kept`] | what does a node know after a start? |
//! | [`setup`] | where is the node, and where is etcd? |
//! | [`message`] | what does the thread hear? |

mod announcing;
mod broadcast;
mod compare;
mod elsewhere;
mod etcd;
mod keeper;
pub mod kept;
mod message;
mod part;
mod peers;
mod reach;
mod setup;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cluster::control::{Action, Control, Event, RequestId, Ticket};
use cluster::ids::{Epoch, NodeId};
use cluster::store::Failure;
use cluster::topology::{Address, Topology};
use config::{ClusterDurability, Config, PrimaryAddress};
use engine::engine::Engine;
use engine::host::ClusterRequest;
use engine::session::attachment::Waiter;
use engine::session::pubsub::Kind;
use gateway::Gateway;
use parking_lot::Mutex;
use persist::aof::append_only::DeferredReplies;
use process::log::Log;
use process::thread;

use announcing::Announcing;
use broadcast::Broadcast;
use compare::Compared;
use elsewhere::Elsewhere;
use etcd::Etcd;
use keeper::Keeper;
use kept::{KeptFile, StoppedAt};
use message::Message;
use part::Part;
use peers::{Peers, Question};
use reach::Reach;

use crate::threads::slots::{Move, MoveEvent, SlotMovers};

/// How often the machine hears of the time, and of what the node looks at itself.
const TICK: Duration = Duration::from_millis(20);
/// The same while clients' writes wait for replicas.
const TICK_OF_HOLD: Duration = Duration::from_millis(1);
/// Events that are heard before the node looks again at itself.
const EVENTS_AT_ONCE: usize = 64;
/// A topology that has changed is on disk after this time.
const KEEP_AFTER: Duration = Duration::from_secs(1);
/// Errors of clients' commands begin so, unless the machine says otherwise.
const ERROR: &str = "ERR ";

/// What the thread works with.
pub struct Means {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The log.
    pub log: Arc<Log>,
    /// What encrypts connections.
    pub active: Arc<tls::Active>,
    /// The connections whose replies wait for replicas.
    pub replies: Arc<dyn DeferredReplies>,
    /// The threads that move slots to other servers.
    pub movers: SlotMovers,
}

/// The thread, which is started once.
pub struct ClusterThread {
    tell: Mutex<Sender<Message>>,
    /// What it is told before it starts, while data is loaded, it hears when it does.
    hear: Mutex<Option<Receiver<Message>>>,
    started: OnceLock<Started>,
}

impl Default for ClusterThread {
    fn default() -> ClusterThread {
        let (tell, hear) = mpsc::channel();
        let (tell, hear) = (Mutex::new(tell), Mutex::new(Some(hear)));
        ClusterThread { tell, hear, started: OnceLock::new() }
    }
}

struct Started {
    broadcast: Broadcast,
    thread: Mutex<Option<JoinHandle<()>>>,
    stopping: Arc<AtomicBool>,
}

/// Whether the settings say how etcd can be asked. Whether it answers is another matter.
///
/// # Errors
/// What is wrong with them.
pub fn check_etcd(config: &Config) -> Result<(), String> {
    Gateway::open(setup::of_etcd(config)).map(drop)
}

impl ClusterThread {
    /// Starts it. The data of the files is there.
    ///
    /// # Errors
    /// What the settings say is of no use, or a thread cannot be made.
    pub fn start(&self, means: Means, kept: KeptFile) -> Result<(), String> {
        let Some(hear) = self.hear.lock().take() else { return Ok(()) };
        let stopping = Arc::<AtomicBool>::default();
        let reach = Reach {
            own: kept.node(),
            engine: Arc::clone(&means.engine),
            active: Arc::clone(&means.active),
            log: Arc::clone(&means.log),
            stopping: Arc::clone(&stopping),
            told: Arc::default(),
        };
        let broadcast = Broadcast::new(reach.clone());
        let node = Node::new(means, kept, &self.tell.lock(), reach)?;
        let thread = thread::start("cluster", move || node.run(&hear));
        let thread = thread.map_err(|error| format!("a thread cannot be started: {error}"))?;
        let _ = self.started.set(Started { broadcast, thread: Mutex::new(Some(thread)), stopping });
        Ok(())
    }

    /// Passes on what a client asks for.
    pub fn ask(&self, request: ClusterRequest, waiter: Waiter) {
        self.tell(Message::Requested(request, waiter));
    }

    /// CONFIG SET names an etcd, maybe the one that it has named before.
    pub fn name_etcd(&self) {
        self.tell(Message::EtcdNamed);
    }

    /// Passes on what a client of this node has published.
    pub fn publish(&self, kind: Kind, channel: &[u8], message: &[u8]) {
        if let Some(started) = self.started.get() {
            started.broadcast.publish(kind, channel, message);
        }
    }

    fn tell(&self, message: Message) {
        // It ends after all clients are gone.
        let _ = self.tell.lock().send(message);
    }

    /// Gives up what the node is to the cluster, because the server is to stop: a primary hands
    /// over to a replica that has everything, if there is one. It has so much time.
    pub fn hand_over(&self, longest: Duration) {
        let (done, is_done) = mpsc::channel();
        if self.started.get().is_some() {
            self.tell(Message::Stop(done, longest));
            // What it could not do in time, others find out.
            let _ = is_done.recv_timeout(longest);
        }
    }

    /// The server does not stop after all: the node takes its place in the cluster again.
    pub fn stay(&self) {
        self.tell(Message::StopRefused);
    }

    /// Ends it.
    pub fn stop(&self) {
        let Some(started) = self.started.get() else { return };
        started.stopping.store(true, Relaxed);
        self.tell(Message::End);
        if let Some(thread) = started.thread.lock().take() {
            // A panic has ended the process already.
            let _ = thread.join();
        }
    }
}

/// Who is answered when the machine has done something.
enum Asker {
    Client(Waiter),
    Stop(Sender<()>),
}

/// The thread's own state.
struct Node {
    engine: Arc<Engine>,
    log: Arc<Log>,
    control: Control,
    part: Part,
    etcd: Etcd,
    elsewhere: Elsewhere,
    /// The watch that is open there, the last request, and the last one that was sent elsewhere.
    watch: Option<RequestId>,
    last_request: RequestId,
    outdated: RequestId,
    peers: Peers,
    kept: KeptFile,
    keeper: Keeper,
    /// Something that is not on disk yet, and since when.
    to_keep: Option<Instant>,
    /// What is to be done once it is on disk to which epochs the data belong, if that could not be
    /// written.
    unwritten: Option<Vec<Action>>,
    /// The answers to what etcd is not asked meanwhile.
    refused: Vec<Event>,
    /// When all promises are over that are on disk.
    promised_until: Instant,
    askers: HashMap<Ticket, Asker>,
    next_ticket: Ticket,
    /// Nodes that wait for a promise, by whom, the epoch and the round.
    promises: HashMap<(NodeId, Epoch, u64), Waiter>,
    actions: Vec<Action>,
    movers: SlotMovers,
    /// How threads tell this one what has happened.
    tell: Sender<Message>,
    announcing: Announcing,
}

impl Node {
    fn new(
        means: Means,
        mut kept: KeptFile,
        tell: &Sender<Message>,
        reach: Reach,
    ) -> Result<Node, String> {
        let Means { engine, log, replies, movers, .. } = means;
        let config = engine.config.snapshot();
        let gateway = Gateway::open(setup::of_etcd(&config))?;
        let part = Part::new(&engine, replies);
        let (history, offset) = part.place();
        let own_name = String::from_utf8_lossy(&config.cluster_name);
        if let Some(before) = kept.kept.enter(&own_name) {
            log.warning(format!("This was a node of the cluster {before}: that is forgotten"));
        }
        kept.kept.loaded(&history, offset);
        let setup = setup::of_node(&config, &kept.kept, (&history, offset))?;
        let promised_until = Instant::now() + Duration::from_millis(kept.kept.promised_ms);
        // What it confirms from now on, the files may lack after a kill.
        kept.kept.stopped_at = None;
        kept.store().map_err(|error| format!("{}: {error}", kept.path().display()))?;
        let etcd = Etcd::start(gateway, setup::patience(&config), tell, &log);
        let etcd = etcd.map_err(|error| format!("a thread cannot be started: {error}"))?;
        let keeper = Keeper::start(kept.path().to_owned(), tell.clone());
        let keeper = keeper.map_err(|error| format!("a thread cannot be started: {error}"))?;
        let peers = Peers::new(reach, tell.clone());
        let elsewhere = Elsewhere::new(&config, &log, tell);
        let announcing = Announcing::new(config, &log, tell);
        log.notice(format!(
            "Node {} of the cluster {}, as {} says",
            kept.node(),
            setup.cluster,
            kept.path().display()
        ));
        Ok(Node {
            control: Control::new(setup, base::rng::entropy_u64()),
            engine,
            log,
            part,
            etcd,
            elsewhere,
            watch: None,
            last_request: 0,
            outdated: 0,
            peers,
            kept,
            keeper,
            to_keep: None,
            unwritten: None,
            refused: Vec::new(),
            promised_until,
            askers: HashMap::new(),
            next_ticket: 1,
            promises: HashMap::new(),
            actions: Vec::new(),
            movers,
            tell: tell.clone(),
            announcing,
        })
    }

    fn run(mut self, hear: &Receiver<Message>) {
        if let Some(known) = self.kept.kept.known(&self.kept.kept.cluster) {
            self.publish(known);
        }
        let mut next_look = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next_look {
                self.look();
                let pause = if self.part.holds_writes() { TICK_OF_HOLD } else { TICK };
                next_look = Instant::now() + pause;
            }
            let mut message = hear.recv_timeout(next_look.saturating_duration_since(now)).ok();
            for _ in 0..EVENTS_AT_ONCE {
                match message {
                    Some(Message::End) => return self.end(),
                    Some(Message::Heard(event)) => {
                        // An etcd that is not believed is of no more use than one that is silent.
                        let event = self.unless_outdated(event);
                        if let Event::Answered { result: Ok(answer), .. } = &event
                            && !self.control.disbelieves()
                        {
                            let now = base::clock::monotonic_ms();
                            self.engine.cluster.etcd_answered_at.store(now, Relaxed);
                            self.elsewhere.hear(answer);
                        }
                        self.hear(event);
                    }
                    Some(Message::Announces { config, announced }) => {
                        if let Some(event) = self.announcing.end(config, announced) {
                            self.hear(event);
                        }
                    }
                    Some(Message::EtcdNamed) => self.elsewhere.begin_anew(),
                    Some(Message::Compared(found)) => {
                        if let Some(event) = self.change_etcd(*found) {
                            self.hear(event);
                        }
                    }
                    Some(Message::Requested(request, waiter)) => self.take_request(request, waiter),
                    Some(Message::NotWritten { reason, is_needed }) => {
                        self.tell_of_unwritten(&reason);
                        if is_needed {
                            self.stand_still();
                        } else {
                            self.to_keep.get_or_insert_with(Instant::now);
                        }
                    }
                    Some(Message::Stop(done, longest)) => {
                        // A replica that has just come may be the one to hand over to.
                        self.look();
                        let ticket = self.ticket(Asker::Stop(done));
                        let within_ms = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
                        self.hear(Event::StopAsked { ticket, within_ms });
                    }
                    Some(Message::StopRefused) => self.hear(Event::StopRefused),
                    None => break,
                }
                message = hear.try_recv().ok();
            }
            process::memory::publish();
        }
    }

    fn look(&mut self) {
        let mut events = Vec::new();
        self.part.look(&mut |event| events.push(event));
        let config = self.engine.config.snapshot();
        self.elsewhere.look(&config, self.etcd.gateway());
        self.announcing.look(config, self.elsewhere.asked());
        events.append(&mut self.refused);
        events.push(Event::Tick);
        for event in events {
            self.hear(event);
        }
        if self.part.place().0 != self.kept.kept.history {
            self.note_name();
        }
        if self.kept.kept.promised_ms > 0 && Instant::now() > self.promised_until {
            self.kept.kept.promised_ms = 0;
            self.to_keep.get_or_insert_with(Instant::now);
        }
        if self.unwritten.is_some() {
            self.write_again();
        } else if self.to_keep.is_some_and(|since| since.elapsed() >= KEEP_AFTER) {
            self.to_keep = None;
            self.keeper.write_later(self.kept.text(), false);
        }
    }

    /// Tells the machine, and does what follows.
    fn hear(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut actions = std::mem::take(&mut self.actions);
            self.control.handle(base::clock::monotonic_ms(), event, &mut actions);
            for action in actions.drain(..) {
                // What the machine is told of one action, it hears after the others.
                self.act(action, &mut |event| events.insert(0, event));
            }
            self.actions = actions;
        }
    }

    /// Does something, and tells what follows at once.
    fn act(&mut self, action: Action, tell: &mut dyn FnMut(Event)) {
        let Some(action) = self.put_off(action) else { return };
        match action {
            Action::Ask { request, what } => {
                self.last_request = request;
                self.etcd.ask(request, what);
            }
            Action::Watch { watch, prefix, from } => {
                self.watch = Some(watch);
                if let Err(error) = self.etcd.watch(watch, prefix, from) {
                    self.log.warning(format!("etcd cannot be watched: {error}"));
                    tell(Event::WatchEnded { watch });
                }
            }
            Action::PassOver => self.etcd.gateway().ask_another(),
            Action::Remember { shard, epoch, start, complete } => {
                let (history, _) = self.part.place();
                self.kept.kept.note(epoch, start, history);
                (self.kept.kept.shard, self.kept.kept.complete) = (shard, complete);
                self.remember();
            }
            Action::Lead { epoch, continues } => {
                self.part.lead(epoch, continues, &self.kept.kept.next);
                self.note_name();
            }
            Action::Follow { node, address, epoch } => {
                let at = setup::place_of(&address, &self.engine.config.load());
                self.part.follow((node, &at), epoch, tell);
            }
            Action::Detach => self.part.detach(tell),
            Action::ServeUntil { epoch, until } => self.part.serve_until(epoch, until),
            Action::Quorum { epoch, quorum } => self.part.set_quorum(epoch, quorum),
            Action::HoldWrites { epoch } => {
                if let Some(event) = self.part.hold_writes(epoch) {
                    tell(event);
                }
            }
            Action::ReleaseWrites { epoch } => {
                if self.part.leads(epoch) {
                    self.part.release_writes();
                }
            }
            Action::Probe { incarnation, address } => {
                let at = setup::place_of(&address, &self.engine.config.load());
                self.peers.probe(incarnation, at);
            }
            Action::AskPromises { nodes, epoch, round, duration_ms } => {
                for node in nodes {
                    self.peers.ask(node, Question { epoch, round, duration_ms });
                }
            }
            Action::AnswerPromise { to, epoch, round, duration_ms, given } => {
                if let Some(asker) = self.promises.remove(&(to, epoch, round)) {
                    let given = given && self.can_promise(duration_ms);
                    let given = if given { Ok(()) } else { Err("no promise".to_owned()) };
                    self.answer(&asker, given);
                }
            }
            Action::Publish(topology) => self.publish(topology),
            Action::Reply { ticket, result } => match self.askers.remove(&ticket) {
                // Nobody waits any more if that took too long.
                Some(Asker::Stop(done)) => drop(done.send(())),
                Some(Asker::Client(waiter)) => self.answer(&waiter, result),
                None => {}
            },
            Action::Log { is_warning: true, text } => self.log.warning(text),
            Action::Log { is_warning: false, text } => self.log.notice(text),
            Action::Send { migration, number, slots, address, .. } => {
                self.send_slots((migration, number), slots.iter().collect(), &address);
            }
            Action::HoldSlots { migration } => self.movers.hold(&migration),
            Action::Finish { migration, moved } => self.movers.finish(&migration, moved),
        }
    }

    /// Puts off what must not be done before that is on disk which had to be stored. What etcd
    /// would be asked for is not: others shall have this node's place if that takes long.
    fn put_off(&mut self, action: Action) -> Option<Action> {
        let Some(later) = &mut self.unwritten else { return Some(action) };
        match action {
            Action::Ask { request, .. } => {
                let reason = "the node cannot write its own file".to_owned();
                let result = Err(Failure::NotDone(reason));
                // It asks again as soon as it hears that, so it hears it at the next look.
                self.refused.push(Event::Answered { request, result });
            }
            Action::Probe { .. } | Action::AskPromises { .. } => {}
            Action::Watch { .. }
            | Action::PassOver
            | Action::Publish(_)
            | Action::Reply { .. }
            | Action::AnswerPromise { .. }
            | Action::Log { .. } => return Some(action),
            _ => later.push(action),
        }
        None
    }

    /// Tries again to write what had to be stored, and does what waits for it.
    fn write_again(&mut self) {
        if self.keeper.write(self.kept.text()).is_err() {
            return;
        }
        self.log.notice(format!("{} could be written", self.kept.path().display()));
        self.to_keep = None;
        let later = self.unwritten.take().unwrap_or_default();
        let mut events = Vec::new();
        self.part.go_on(&mut |event| events.push(event));
        for action in later {
            self.act(action, &mut |event| events.push(event));
        }
        events.into_iter().for_each(|event| self.hear(event));
    }

    /// Begins to send slots to a primary of another shard. They change their owner when a quorum of
    /// that shard has them, whatever the settings say of writes: some of them may have been
    /// acknowledged so.
    fn send_slots(
        &self,
        (migration, number): (String, u64),
        slots: store::SlotSet,
        address: &Address,
    ) {
        let config = self.engine.config.snapshot();
        let topology = self.kept.kept.topology.as_ref();
        let own = topology.and_then(|topology| topology.shard_of(self.kept.node()));
        let epoch = own.and_then(|own| own.leader).map_or(0, |leader| leader.epoch.unsigned_abs());
        let job = Move {
            id: migration.clone(),
            slots,
            host: address.host.clone(),
            ports: (address.port, address.tls_port),
            rate: None,
            needs_file: config.cluster_durability == ClusterDurability::Fsync,
            epoch,
            alone: false,
        };
        let tell = self.tell.clone();
        let notify = move |event: MoveEvent| {
            let migration = migration.clone();
            let event = match event {
                MoveEvent::CaughtUp => Event::CaughtUp { migration, number },
                MoveEvent::Holds => Event::SlotsHeld { migration, number },
                MoveEvent::LetGo => Event::SlotsLetGo { migration, number },
                MoveEvent::BeginsAnew => Event::MigrationRestarted { migration, number },
                MoveEvent::Delivered => Event::Delivered { migration, number },
                MoveEvent::Failed(reason) => Event::MigrationFailed { migration, number, reason },
                MoveEvent::Done(_) => return,
            };
            // It is not there any more when the server stops.
            let _ = tell.send(Message::Heard(event));
        };
        self.movers.start(job, Box::new(notify));
    }

    /// Asks etcd elsewhere, if it may: all is read anew.
    fn change_etcd(&mut self, found: Compared) -> Option<Event> {
        let config = self.engine.config.snapshot();
        let known = self.control.witness();
        let is_bound = known.leads.is_some() || known.topology.shard_of(known.node).is_some();
        let is_believed = !self.control.disbelieves();
        let (gateway, is_same) = self.elsewhere.end(found, &config, (is_bound, is_believed))?;
        let patience = setup::patience(&config);
        match Etcd::start(gateway, patience, &self.tell, &self.log) {
            Ok(etcd) => self.etcd = etcd,
            Err(error) => {
                self.elsewhere.put_off(&format!("a thread cannot be started: {error}"));
                return None;
            }
        }
        self.elsewhere.arrive();
        let watch = self.watch.take();
        if is_same {
            return watch.map(|watch| Event::WatchEnded { watch });
        }
        self.outdated = self.last_request;
        Some(Event::OtherEtcd)
    }

    /// An answer says nothing of the etcd that is asked now if another one has given it.
    fn unless_outdated(&self, event: Event) -> Event {
        match event {
            Event::Answered { request, result: Ok(_) } if request <= self.outdated => {
                let reason = "another etcd is asked now".to_owned();
                Event::Answered { request, result: Err(Failure::Unknown(reason)) }
            }
            event => event,
        }
    }

    fn ticket(&mut self, asker: Asker) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.askers.insert(ticket, asker);
        ticket
    }

    fn take_request(&mut self, request: ClusterRequest, waiter: Waiter) {
        // The machine has to know how things are before it decides.
        self.look();
        match request {
            ClusterRequest::Failover { force } => {
                let ticket = self.ticket(Asker::Client(waiter));
                self.hear(Event::FailoverAsked { ticket, force });
            }
            ClusterRequest::Promise { from, epoch, round, duration_ms } => {
                // The same question over another link: the earlier one is answered too.
                if let Some(earlier) = self.promises.insert((from, epoch, round), waiter) {
                    self.answer(&earlier, Err("no promise".to_owned()));
                }
                self.hear(Event::PromiseAsked { from, epoch, round, duration_ms });
            }
            ClusterRequest::Topology => {
                let mut witness = self.control.witness();
                witness.etcd = self.elsewhere.endpoints();
                let text = serde_json::to_string(&witness).expect("its keys are strings");
                self.engine.answer(&waiter, format!("${}\r\n{text}\r\n", text.len()).as_bytes());
            }
        }
    }

    fn answer(&self, waiter: &Waiter, result: Result<(), String>) {
        match result {
            Ok(()) => self.engine.answer(waiter, b"+OK\r\n"),
            Err(text) => {
                let is_whole = text.split(' ').next().is_some_and(|word| {
                    !word.is_empty() && word.bytes().all(|letter| letter.is_ascii_uppercase())
                });
                let begin = if is_whole { "" } else { ERROR };
                let line = text.replace(['\r', '\n'], " ");
                self.engine.answer(waiter, format!("-{begin}{line}\r\n").as_bytes());
            }
        }
    }

    /// All nodes and slots are these now.
    fn publish(&mut self, topology: Arc<Topology>) {
        let config = self.engine.config.snapshot();
        let own = self.kept.node();
        let others = topology.shard_of(own).into_iter().flat_map(|shard| shard.nodes());
        let others: Vec<(NodeId, PrimaryAddress)> = others
            .filter(|node| *node != own)
            .filter_map(|node| topology.nodes.get(&node))
            .map(|node| (node.id, setup::place_of(&node.address, &config)))
            .collect();
        self.peers.set(&others);
        let known = self.kept.kept.topology.replace(Arc::clone(&topology));
        if known.is_some_and(|known| known.is_alike_for(own, &topology)) {
            self.to_keep.get_or_insert_with(Instant::now);
        } else {
            // When etcd has lost everything, the cluster is what nodes know.
            self.to_keep = None;
            self.keeper.write_later(self.kept.text(), true);
        }
        self.engine.follow_topology(topology);
    }

    /// Stores to which epochs the data belong.
    fn remember(&mut self) {
        self.kept.kept.stopped_at = None;
        if !self.keep() {
            self.stand_still();
        }
    }

    /// The history of the data may have another name now: by its own epoch, and then it is the one
    /// that the file knows already, or by that of the primary. Nothing rests on that but that it
    /// is known after a kill, so that nobody waits for the data.
    fn note_name(&mut self) {
        let (history, _) = self.part.place();
        self.kept.kept.rename(history);
        self.keeper.write_later(self.kept.text(), true);
    }

    /// Nothing that clients are told may rest on what could not be written.
    fn stand_still(&mut self) {
        if self.unwritten.is_none() {
            self.log.warning("This node serves and confirms nothing until it can be written");
            self.unwritten = Some(Vec::new());
            self.part.stand_still();
        }
    }

    /// Whether the next process of this node will know of a promise for so long. A node that has
    /// promised nothing may stand for election as soon as it is started.
    fn can_promise(&mut self, duration_ms: u64) -> bool {
        self.promised_until =
            self.promised_until.max(Instant::now() + Duration::from_millis(duration_ms));
        if self.kept.kept.promised_ms >= duration_ms {
            return true;
        }
        let before = std::mem::replace(&mut self.kept.kept.promised_ms, duration_ms);
        let is_kept = self.keep();
        if !is_kept {
            self.kept.kept.promised_ms = before;
        }
        is_kept
    }

    fn keep(&mut self) -> bool {
        self.to_keep = None;
        let written = self.keeper.write(self.kept.text());
        if let Err(reason) = &written {
            self.tell_of_unwritten(reason);
        }
        written.is_ok()
    }

    fn tell_of_unwritten(&self, reason: &str) {
        let path = self.kept.path().display();
        self.log.warning(format!("{path} cannot be written: {reason}"));
    }

    /// The server stops: it serves no client any more, and follows nobody.
    fn end(mut self) {
        self.engine.cluster.serve_until(0);
        let mut events = Vec::new();
        self.part.look(&mut |event| events.push(event));
        events.into_iter().for_each(|event| self.hear(event));
        let (history, offset) = self.part.place();
        let data = self.control.data();
        if history == self.kept.kept.history && offset == data.offset {
            // It may have heard of another primary, and not have had a link to it.
            self.kept.kept.note(data.epoch, data.start, history.clone());
            (self.kept.kept.shard, self.kept.kept.complete) = (data.shard, data.complete);
        }
        self.kept.kept.rename(history.clone());
        self.kept.kept.stopped_at = Some(StoppedAt { history, offset });
        self.keep();
    }
}
