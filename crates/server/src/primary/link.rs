//! A link to the primary, from its first byte to its end, and what comes after that.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use config::{Config, PrimaryAddress};
use engine::engine::Engine;
use engine::replication::LinkState;
use parking_lot::Mutex;
use process::thread;
use replication::LinkError;
use replication::handshake::{Handshake, Introduction, Offer, SYNC, Step, Wanted};
use replication::id::HistoryId;
use replication::line::Lines;

use super::apply::Applier;
use super::handing_over::{self, HandingOver};
use super::successor::{Successor, Verdict};
use super::sync;
use super::term::{Means, Term, next_line};
use super::wire::{Trouble, Wire};

/// The version of Valkey whose files are read here.
const VALKEY_VERSION: &str = "9.1.2";

/// The longest time for which the thread waits without a look at whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The pause after a link that has ended, and the longest one after several.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(2));
/// The same for a node of a cluster: the others hear of a new primary as soon as that one does.
const PAUSE_IN_CLUSTER: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// The same after a full sync that has failed: the primary has done much for it.
const PAUSE_OF_SYNCS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The same after data that is not understood.
const PAUSE_OF_STRANGE_DATA: (Duration, Duration) =
    (Duration::from_secs(10), Duration::from_secs(600));

/// A line that says the same as the one before is logged no more often than that.
const SAID_AGAIN: Duration = Duration::from_secs(10);

/// The thread.
pub struct ReplicaThread {
    engine: Arc<Engine>,
    stopping: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl ReplicaThread {
    /// Starts it. The data of the files is there.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(means: Means) -> io::Result<ReplicaThread> {
        let (engine, stopping) = (Arc::clone(&means.engine), Arc::<AtomicBool>::default());
        let stops = Arc::clone(&stopping);
        let thread = thread::start("replica", move || Follower::new(means, stops).run())?;
        Ok(ReplicaThread { engine, stopping, thread: Mutex::new(Some(thread)) })
    }

    /// Ends it.
    pub fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.engine.replication.wake();
        if let Some(thread) = self.thread.lock().take() {
            // A panic has ended the process already.
            let _ = thread.join();
        }
    }
}

/// How links have ended lately.
#[derive(Default)]
struct Failures {
    count: u32,
    /// What the log was told last, and when.
    said: Option<(String, Instant)>,
}

struct Follower {
    means: Means,
    stopping: Arc<AtomicBool>,
    failures: Failures,
    term: u64,
    successor: Successor,
}

impl Follower {
    fn new(means: Means, stopping: Arc<AtomicBool>) -> Follower {
        let failures = Failures::default();
        Follower { means, stopping, failures, term: 0, successor: Successor::default() }
    }

    fn run(mut self) {
        let engine = Arc::clone(&self.means.engine);
        let gate = engine.gates.register();
        let mut applier = Applier::new(&engine, &gate);
        let stopping = Arc::clone(&self.stopping);
        let mut handing_over = HandingOver::new(&engine, &gate, &stopping);
        while !self.stopping.load(Relaxed) {
            let (term, primary) = self.means.engine.replication.assignment();
            if term != self.term {
                (self.term, self.failures) = (term, Failures::default());
                self.successor = Successor::default();
            }
            // A node of a cluster may be the replica of nobody.
            let Some(primary) = primary.filter(|own| own.port != 0) else {
                let hands_over = engine.failover.is_on();
                if hands_over {
                    handing_over.look();
                }
                let pause = if hands_over { handing_over::LOOK_EVERY } else { LOOK_EVERY };
                engine.replication.wait_for_change(term, pause);
                continue;
            };
            let began = Instant::now();
            let ended = self.follow(term, &primary, &mut applier, &mut handing_over);
            let link = Term { means: &self.means, number: term, stopping: &self.stopping };
            let was_up =
                self.means.engine.replication.view().is_some_and(|view| view.link == LinkState::Up);
            link.set_link(LinkState::Down);
            if !link.lasts() {
                continue;
            }
            let Err(trouble) = ended;
            if link.is_late() {
                handing_over.note_late();
                continue;
            }
            link.note_trouble(&trouble);
            match trouble {
                // It is not where the stream of the data goes on: all data has to come again.
                Trouble::Protocol(_) if was_up => self.means.engine.replication.forget_stream(term),
                Trouble::Data { .. } => {}
                _ if was_up => self.failures = Failures::default(),
                _ => {}
            }
            let pause = self.pause_after(&trouble, was_up && began.elapsed() > PAUSE.0);
            self.say(&primary, &trouble, pause);
            self.rest(term, pause);
        }
    }

    /// Waits, unless the term ends.
    fn rest(&self, term: u64, pause: Duration) {
        let until = Instant::now() + pause;
        let link = Term { means: &self.means, number: term, stopping: &self.stopping };
        while link.go_on().is_ok() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.means.engine.replication.wait_for_change(term, left.min(LOOK_EVERY));
        }
    }

    fn pause_after(&mut self, trouble: &Trouble, at_once: bool) -> Duration {
        let (first, most) = match trouble {
            // It worked until now.
            Trouble::Lost(_) | Trouble::Silent if at_once => return Duration::ZERO,
            Trouble::Data { lasting: true, .. } => PAUSE_OF_STRANGE_DATA,
            Trouble::Data { .. } => PAUSE_OF_SYNCS,
            // Clients' writes wait for the end of a failover.
            _ if self.means.engine.failover.is_on() => PAUSE,
            Trouble::Protocol(error) if !error.is_temporary() => PAUSE_OF_SYNCS,
            _ if self.means.engine.cluster.is_enabled() => PAUSE_IN_CLUSTER,
            _ => PAUSE,
        };
        let pause = first.saturating_mul(1 << self.failures.count.min(10));
        self.failures.count += 1;
        pause.min(most)
    }

    /// Says in the log why the link has ended.
    fn say(&mut self, primary: &PrimaryAddress, trouble: &Trouble, pause: Duration) {
        let name = String::from_utf8_lossy(&primary.host);
        let what = format!("No link to MASTER {name}:{}: {trouble}", primary.port);
        let is_old = |(said, at): &(String, Instant)| *said == what && at.elapsed() < SAID_AGAIN;
        if self.failures.said.as_ref().is_some_and(is_old) {
            return;
        }
        let seconds = pause.as_secs();
        let line = match seconds {
            0 => format!("{what}. Trying again at once"),
            _ => format!("{what}. Trying again in {seconds} s"),
        };
        self.means.log.warning(line);
        self.failures.said = Some((what, Instant::now()));
    }

    /// Makes a link and follows it to its end.
    fn follow(
        &mut self,
        number: u64,
        primary: &PrimaryAddress,
        applier: &mut Applier<'_>,
        handing_over: &mut HandingOver<'_>,
    ) -> Result<std::convert::Infallible, Trouble> {
        let term = Term { means: &self.means, number, stopping: &self.stopping };
        let engine = &self.means.engine;
        let config = engine.config.snapshot();
        let name = String::from_utf8_lossy(&primary.host);
        if self.failures.count == 0 {
            term.notice(format!("Connecting to MASTER {name}:{}", primary.port));
        }
        term.set_link(LinkState::Connecting);
        let active = &self.means.active;
        let mut wire = Wire::connect(primary, engine, active, &|| term.go_on().is_err())?;
        term.notice("MASTER <-> REPLICA sync started");
        let resumes = engine.replication.resumes_at();
        let hands_over = engine.failover.asks();
        let forced = hands_over && engine.failover.is_forced(base::clock::monotonic_ms());
        let end = resumes.as_ref().filter(|_| !forced).map(|(_, applied)| *applied);
        let asks_to_lead = hands_over && self.successor.may_be_asked();
        let wanted = wanted(resumes.as_ref(), asks_to_lead.then_some(forced));
        let epoch = engine.replicas.quorum.epoch();
        let node = engine.cluster.view().map(|view| format!("{}:{epoch}", view.own));
        let follows = node.as_ref().and_then(|_| engine.replicas.quorum.follows());
        let introduction = Introduction {
            node: node.unwrap_or_default().into_bytes(),
            primary: follows
                .map(|(node, epoch)| format!("{node}:{epoch}").into_bytes())
                .unwrap_or_default(),
            ..introduction(&config)
        };
        let (mut handshake, first) = Handshake::begin(introduction, wanted);
        wire.send(&first)?;
        let offer = shake_hands(&term, &mut wire, &mut handshake, asks_to_lead);
        if hands_over {
            match self.successor.after(handshake.has_asked(), end, &offer) {
                Verdict::Leads => handing_over.note_answer(true),
                Verdict::Refuses => handing_over.note_answer(false),
                Verdict::Open(successor) => {
                    let advice = self.successor.advice(&offer);
                    self.successor = successor;
                    if let Some(advice) = advice {
                        return Err(Trouble::Protocol(LinkError::Malformed(advice.to_owned())));
                    }
                }
            }
        }
        let offer = offer?;
        let mut with_offsets = true;
        match offer {
            Offer::All { history, offset } => {
                term.notice(format!("Full resync from master: {history}:{offset}"));
                let position = Some((history.to_string(), offset));
                sync::take_all(&term, &mut wire, applier, primary, position)?;
            }
            Offer::AllWithoutOffsets => {
                term.notice("The primary does not know PSYNC: asking for all data by SYNC");
                wire.send(SYNC)?;
                with_offsets = false;
                sync::take_all(&term, &mut wire, applier, primary, None)?;
            }
            Offer::Rest { history, end } => {
                engine.replication.note_end(number, end);
                let known = resumes.map(|(known, _)| known).unwrap_or_default();
                if let Some(history) = history.map(|history| history.to_string())
                    && history != known
                {
                    term.notice(format!("Master replication ID changed to {history}"));
                    // Between two commands: others may be about to follow this server.
                    let stopped = engine.gates.stop_the_world();
                    engine.rename_history(&stopped, number, known, history);
                }
                term.notice("Successful partial resynchronization with master.");
            }
        }
        term.set_link(LinkState::Up);
        applier.apply(&term, &mut wire, with_offsets)
    }
}

/// `asks_to_lead`: of a replica that is to lead, and whether it is forced to.
fn wanted(resumes: Option<&(String, u64)>, asks_to_lead: Option<bool>) -> Wanted {
    let known = resumes
        .and_then(|(history, applied)| Some((HistoryId::parse(history.as_bytes())?, applied + 1)));
    match (known, asks_to_lead) {
        (None, _) => Wanted::All,
        (Some((history, first)), None) => Wanted::From { history, first },
        (Some((history, first)), Some(forced)) => Wanted::FromSuccessor { history, first, forced },
    }
}

fn introduction(config: &Config) -> Introduction {
    let port = match config.replica_announce_port {
        0 if config.tls_replication && config.tls_port != 0 => config.tls_port,
        0 => config.port,
        announced => announced,
    };
    Introduction {
        user: config.masteruser.clone(),
        password: config.masterauth.clone(),
        port,
        address: config.replica_announce_ip.clone(),
        version: VALKEY_VERSION,
        ..Introduction::default()
    }
}

/// The handshake, up to what the primary offers, or what a replica does that is asked to lead.
fn shake_hands(
    term: &Term<'_>,
    wire: &mut Wire,
    handshake: &mut Handshake,
    asks_to_lead: bool,
) -> Result<Offer, Trouble> {
    let mut lines = Lines::default();
    loop {
        match handshake.take(&next_line(term, wire, &mut lines)?)? {
            Step::Wait => {}
            Step::Send(bytes) => {
                note_request(term, handshake, asks_to_lead)?;
                wire.send(&bytes)?;
            }
            Step::Note(note, bytes) => {
                term.notice(note);
                note_request(term, handshake, asks_to_lead)?;
                wire.send(&bytes)?;
            }
            Step::Done(offer) => return Ok(offer),
        }
    }
}

/// Notes that a replica is about to be asked to lead. An error if that was given up just now.
fn note_request(term: &Term<'_>, handshake: &Handshake, asks_to_lead: bool) -> Result<(), Trouble> {
    let asks_now = asks_to_lead && handshake.has_asked();
    if asks_now && !term.means.engine.failover.note_sent() {
        return Err(Trouble::Over);
    }
    Ok(())
}
