//! One thread of a load: an event loop over its share of the connections.
//!
//! A request costs only what is unavoidable: one write for a pipeline, one read for its replies,
//! and a share of one wait for events. Nothing is allocated per request. The clock is read right
//! after each read and before each write, so that times are those of the wire and not of the turn.

mod opening;
mod receiving;
mod scattering;
mod sending;

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use base::clock::monotonic_ns;
use resp::client::ReplyScanner;
use rustix::event::epoll;
use rustix::time::Timespec;

use super::channel::Encryption;
use super::connection::{Connection, Scanner, State};
use super::control::Control;
use super::error::LoadError;
use super::render::Renderer;
use super::responses::ResponseScanner;
use super::schedule::DueTimes;
use super::socket::Endpoint;
use super::tally::Tally;
use super::topology::{Cluster, Spread};
use super::usage::{Usage, Watch};
use super::{Pace, Plan, Work};
/// Connections that are being opened at the same time before the load begins: fewer than a server
/// usually lets wait.
const OPENING_TOGETHER: usize = 64;
/// How long all connections may take to open.
const OPENING_PATIENCE: u64 = 20_000_000_000;
/// How long replies are waited for when no more requests are sent.
const DRAIN_PATIENCE: u64 = 10_000_000_000;
/// The same when the load was ended before its bound, and a user waits for it.
const SHORT_PATIENCE: u64 = 1_000_000_000;
/// How often a thread checks whether to stop, in nanoseconds.
const LOOK: u64 = 50_000_000;
/// Bytes that are read at once.
const READ_BUFFER: usize = 128 * 1024;
/// Events that are taken from the kernel at once.
const EVENTS_PER_TURN: usize = 256;

/// State that the threads of a load share.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) control: &'a Control,
    /// The server, and others that serve the same.
    pub(crate) members: Vec<(String, Endpoint)>,
    /// What is known of the cluster, if the server is a node of one.
    pub(super) cluster: Option<Cluster>,
    /// What encrypts connections, if they are to be encrypted.
    pub(crate) encryption: Option<Encryption>,
    /// The greeting with which every connection begins, and how many replies it has.
    pub(crate) greeting: (Vec<u8>, usize),
    /// Passed when all connections are open, and again when the start is known.
    pub(crate) barrier: Barrier,
    /// When the load begins, on the monotonic clock.
    pub(crate) start: AtomicU64,
    /// Requests of the measured part that were given out.
    pub(crate) issued: AtomicU64,
    /// Why the load ended before its bound.
    pub(crate) ended: Mutex<Option<String>>,
    pub(crate) has_ended: AtomicBool,
    /// Why the load did not begin.
    pub(crate) failure: Mutex<Option<LoadError>>,
}

impl Shared<'_> {
    /// Takes up to `count` requests out of those that are still to be made.
    #[inline]
    fn take(&self, count: usize) -> usize {
        let Some(limit) = self.plan.requests else { return count };
        let issued = self.issued.fetch_add(count as u64, Ordering::Relaxed);
        limit.saturating_sub(issued).min(count as u64) as usize
    }

    /// Ends the load for all threads.
    pub(crate) fn end(&self, reason: String) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.get_or_insert(reason);
        self.has_ended.store(true, Ordering::Relaxed);
    }

    fn fail(&self, error: LoadError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// The results of a thread.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    /// Processor time within the measured part.
    pub(crate) usage: Usage,
    /// When it was over, on the monotonic clock.
    pub(crate) end: u64,
}

/// One who sends requests, and waits for their replies: over one connection, or, in a cluster, over
/// one to each node.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    /// Requests that were not answered.
    waiting: usize,
    /// Whether it is in the list of those that have room for a request.
    is_free: bool,
}

/// One thread of a load.
pub(crate) struct Worker<'a> {
    shared: &'a Shared<'a>,
    plan: &'a Plan,
    keep_alive: bool,
    /// Whether an operation's responses have no body.
    bodiless: Vec<bool>,
    /// The pause of a closed load, in nanoseconds.
    think: u64,
    epoll: OwnedFd,
    clients: Vec<Client>,
    /// That of the client `c` to the node `n` is at `n * clients.len() + c`.
    connections: Vec<Connection>,
    /// Where requests go in a cluster.
    spread: Option<Spread>,
    renderer: Renderer,
    tally: Tally,
    buffer: Box<[u8]>,
    /// The schedule of an open load.
    due: Option<DueTimes>,
    /// Due times of the requests that leave together.
    due_times: Vec<u64>,
    /// Clients with room for a request, of an open load.
    free: VecDeque<usize>,
    /// Since when at least one client was free.
    free_since: u64,
    /// Clients of a closed load that pause, and until when.
    thinking: VecDeque<(u64, usize)>,
    /// Connections that were lost, and when they are opened again. In a cluster, clients that met
    /// an error, and when they go on.
    reopening: VecDeque<(u64, usize)>,
    /// Requests that were sent and not answered.
    in_flight: usize,
    /// Whether requests are still to be sent.
    is_sending: bool,
    /// Whether connections are opened and nothing is sent yet.
    is_gathering: bool,
    gathered: usize,
    measured_from: u64,
    deadline: u64,
    /// Whether it was the deadline that ended the sending.
    reached_deadline: bool,
    /// When the sending ended, once that is known.
    sending_ended: Option<u64>,
    /// Whether the load was ended before its bound.
    was_cut: bool,
    /// A node of a cluster has just said that it does not serve now.
    is_down: bool,
}

impl<'a> Worker<'a> {
    /// The thread `thread`, with its share of the connections.
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        renderer: Renderer,
        thread: usize,
    ) -> Result<Self, LoadError> {
        let plan = shared.plan;
        let count =
            plan.connections / plan.threads + usize::from(thread < plan.connections % plan.threads);
        let (keep_alive, bodiless, names) = match &plan.work {
            Work::Resp(work) => {
                let names = work.operations.iter().map(|operation| operation.name.clone());
                (work.keep_alive, vec![false; work.operations.len()], names.collect::<Vec<_>>())
            }
            Work::Http(work) => {
                let names = work.requests.iter().map(|request| request.name.clone());
                let bodiless = work.requests.iter().map(|request| request.method == "HEAD");
                (work.keep_alive, bodiless.collect(), names.collect())
            }
        };
        let scanner = || match &plan.work {
            Work::Resp(_) => Scanner::Resp(ReplyScanner::default()),
            Work::Http(_) => Scanner::Http(ResponseScanner::default()),
        };
        let (think, is_open) = match plan.pace {
            Pace::Closed { think_seconds } => ((think_seconds * 1e9) as u64, false),
            Pace::Open { .. } => (0, true),
        };
        Ok(Worker {
            shared,
            plan,
            keep_alive,
            bodiless,
            think,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?,
            clients: vec![Client::default(); count],
            connections: (0..count)
                .map(|at| Connection::new(scanner()).to(at % shared.members.len()))
                .collect(),
            spread: shared.cluster.as_ref().map(|_| Spread::default()),
            renderer,
            tally: Tally::new(names, is_open),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            due: None,
            due_times: Vec::new(),
            free: VecDeque::new(),
            free_since: 0,
            thinking: VecDeque::new(),
            reopening: VecDeque::new(),
            in_flight: 0,
            is_sending: true,
            is_gathering: false,
            gathered: 0,
            measured_from: 0,
            deadline: u64::MAX,
            reached_deadline: false,
            sending_ended: None,
            was_cut: false,
            is_down: false,
        })
    }

    /// Runs the load to its end. Other threads wait at the barrier, so that even a thread that
    /// cannot open its connections comes there.
    pub(crate) fn run(mut self, thread: usize) -> Result<Option<Outcome>, LoadError> {
        // Sleeps end when they should; a kernel that does not do this makes them 50 us longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        base::time_slice::shorten();
        if let Err(error) = self.gather() {
            self.shared.fail(error);
        }
        self.shared.barrier.wait();
        self.shared.barrier.wait();
        if self.shared.has_failed() {
            return Ok(None);
        }
        let start = self.shared.start.load(Ordering::Acquire);
        self.begin(start, thread);
        let before = self.run_to_the_end()?;
        let usage = Usage::of_this_thread().since(before);
        self.tally.end();
        self.tally.tell(self.shared.control);
        let end = self.end_time(monotonic_ns());
        Ok(Some(Outcome { tally: self.tally, usage, end }))
    }

    /// Opens all connections, unless each request opens its own.
    fn gather(&mut self) -> Result<(), LoadError> {
        if !self.keep_alive {
            return Ok(());
        }
        self.is_gathering = true;
        self.look_at_cluster();
        let patience = monotonic_ns() + OPENING_PATIENCE;
        let all = self.first_connections();
        let mut begun = 0;
        while self.gathered < all.len() {
            while begun < all.len() && begun - self.gathered < OPENING_TOGETHER {
                self.open(all[begun]);
                begun += 1;
            }
            self.wait(LOOK)?;
            if self.shared.has_ended.load(Ordering::Relaxed) {
                let reason =
                    self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
                return Err(LoadError::Opening(reason.unwrap_or_default()));
            }
            if self.shared.control.is_stopped() {
                return Ok(());
            }
            if monotonic_ns() > patience {
                let (open, all) = (self.gathered, all.len());
                return Err(LoadError::Opening(format!("only {open} of {all} opened in time")));
            }
        }
        self.is_gathering = false;
        Ok(())
    }

    fn begin(&mut self, start: u64, thread: usize) {
        self.is_gathering = false;
        self.measured_from = start + (self.plan.warmup_seconds * 1e9) as u64;
        if let Some(seconds) = self.plan.seconds {
            self.deadline = self.measured_from.saturating_add((seconds * 1e9) as u64);
        }
        self.tally.begin(self.measured_from);
        if let Pace::Open { rate, schedule } = self.plan.pace {
            let Plan { threads, seed, phase, .. } = *self.plan;
            let start = (start, phase);
            self.due = Some(DueTimes::new(rate, schedule, start, thread, threads, seed));
        }
    }

    /// The loop; returns the processor time that had been used when the measured part began.
    fn run_to_the_end(&mut self) -> Result<Usage, LoadError> {
        let mut now = monotonic_ns();
        let mut before = Usage::of_this_thread();
        let mut is_warming = now < self.measured_from;
        let mut watch = Watch::begin(now);
        self.free_since = now;
        for client in 0..self.clients.len() {
            // Each at its own time: sending to all of them takes a while.
            self.give_work(client, monotonic_ns());
        }
        loop {
            self.look_at_cluster();
            self.tally.tell(self.shared.control);
            if is_warming && now >= self.measured_from {
                is_warming = false;
                before = Usage::of_this_thread();
                watch = Watch::begin(now);
            }
            if !is_warming {
                watch.look(now, &mut self.tally.held_up);
            }
            if self.is_over(now) {
                return Ok(before);
            }
            self.wake(now);
            self.send_due();
            let pause = self.pause(monotonic_ns());
            self.wait(pause)?;
            now = monotonic_ns();
        }
    }

    /// Whether nothing is left to do.
    fn is_over(&mut self, now: u64) -> bool {
        let is_cut =
            self.shared.control.is_stopped() || self.shared.has_ended.load(Ordering::Relaxed);
        if is_cut && !self.was_cut {
            self.was_cut = true;
            if self.is_sending {
                self.is_sending = false;
                // While clients are free, a request that is due just then is only a little late.
                if !self.has_free_client() {
                    self.count_unsent(now.min(self.deadline));
                }
            }
        }
        if self.is_sending && now >= self.deadline {
            // A request that was due a moment before the end leaves a moment after it, if it can.
            self.send_due();
            self.is_sending = false;
            self.reached_deadline = true;
            self.count_unsent(self.deadline);
        }
        if self.is_sending {
            return false;
        }
        let ended = *self.sending_ended.get_or_insert(now);
        let (patience, reason) =
            if self.was_cut { (SHORT_PATIENCE, "unanswered") } else { (DRAIN_PATIENCE, "timeout") };
        if self.in_flight > 0 && now.saturating_sub(ended) > patience {
            self.give_up(reason, now);
        }
        self.in_flight == 0
    }

    /// Stops waiting for the requests that are not answered.
    fn give_up(&mut self, reason: &str, now: u64) {
        for connection in &mut self.connections {
            for flight in connection.flights.drain(..) {
                self.tally.lost(&flight, reason, now);
            }
            connection.requests.clear();
            connection.waiting = 0;
        }
        self.clients.iter_mut().for_each(|client| client.waiting = 0);
        self.in_flight = 0;
    }

    /// Counts the requests that were due before a time and found no connection.
    fn count_unsent(&mut self, until: u64) {
        let Some(due) = &mut self.due else { return };
        due.pass(until.min(self.measured_from));
        let count = due.pass(until);
        let counted = usize::try_from(count).unwrap_or(usize::MAX);
        self.tally.unsent += self.shared.take(counted) as u64;
    }

    /// Whether a request of an open load could leave now.
    fn has_free_client(&self) -> bool {
        self.free.iter().any(|client| self.clients[*client].is_free)
    }

    /// When the measured part was over for this thread.
    fn end_time(&self, now: u64) -> u64 {
        if self.reached_deadline {
            self.deadline.max(self.tally.last_reply)
        } else if self.was_cut || self.tally.last_reply == 0 {
            self.sending_ended.unwrap_or(now).max(self.tally.last_reply)
        } else {
            self.tally.last_reply
        }
    }

    /// How long it may wait for events: until something must be done without one.
    fn pause(&self, now: u64) -> u64 {
        let mut until = now + LOOK;
        if self.is_sending {
            until = until.min(self.deadline);
            if let Some(due) = &self.due
                && !self.free.is_empty()
            {
                until = until.min(due.next());
            }
            if let Some((at, _)) = self.thinking.front() {
                until = until.min(*at);
            }
        }
        if let Some((at, _)) = self.reopening.front() {
            until = until.min(*at);
        }
        until.saturating_sub(now)
    }

    /// Waits for events, and handles them.
    fn wait(&mut self, nanoseconds: u64) -> Result<(), LoadError> {
        let timeout = Timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as i64,
            tv_nsec: (nanoseconds % 1_000_000_000) as i64,
        };
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_PER_TURN];
        let events = match epoll::wait(&self.epoll, &mut events[..], Some(&timeout)) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(io::Error::from(error).into()),
        };
        for event in &*events {
            let flags = event.flags;
            self.handle(event.data.u64() as usize, flags);
        }
        Ok(())
    }

    fn handle(&mut self, index: usize, flags: epoll::EventFlags) {
        match self.connections[index].state {
            State::Closed => {}
            State::Opening => self.opened(index),
            State::Open => {
                if flags.contains(epoll::EventFlags::OUT) {
                    let flushed = self.connections[index].flush();
                    self.settle(index, flushed);
                }
                if flags != epoll::EventFlags::OUT {
                    self.receive(index);
                }
            }
        }
    }
}
