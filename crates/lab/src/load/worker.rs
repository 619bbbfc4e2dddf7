//! One thread of a load: an event loop over its share of the connections.
//!
//! A request costs what cannot be avoided: one write for a pipeline, one read for its replies, and a
//! part of one wait for events. Nothing is allocated per request. The clock is read right behind
//! each read and before each write, so that times are those of the wire and not of the turn.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use base::clock::monotonic_ns;
use rustix::event::epoll;
use rustix::time::Timespec;

use super::connection::{Connection, Scanner, State};
use super::control::Control;
use super::error::LoadError;
use super::render::Renderer;
use super::replies::ReplyScanner;
use super::responses::ResponseScanner;
use super::schedule::DueTimes;
use super::socket::{self, Endpoint};
use super::tally::{Flight, Tally};
use super::usage::Usage;
use super::{Pace, Plan, Work};

/// Connections that are being opened at the same time before the load begins: fewer than a server
/// usually lets wait.
const OPENING_TOGETHER: usize = 64;
/// How long all connections may take to open.
const OPENING_PATIENCE: u64 = 20_000_000_000;
/// A lost connection is opened again after so long, and after so long again.
const REOPEN_PAUSE: u64 = 50_000_000;
/// How long replies are waited for when no more requests are sent.
const DRAIN_PATIENCE: u64 = 10_000_000_000;
/// How often a thread looks whether it is to stop, in nanoseconds.
const LOOK: u64 = 50_000_000;
/// Bytes that are read at once.
const READ_BUFFER: usize = 128 * 1024;
/// Reads of one connection before others have their turn.
const READS_PER_TURN: usize = 16;
/// A pipeline from which on the time of laying it out is told from the time of the server.
const LONG_PIPELINE: usize = 4;
/// Events that are taken from the kernel at once.
const EVENTS_PER_TURN: usize = 256;

/// What the threads of a load share.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) control: &'a Control,
    pub(crate) endpoint: Endpoint,
    /// What every connection begins with, and how many replies that has.
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
    /// Takes up to `count` requests out of those that are to be made.
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

/// What a thread brings back.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    /// Processor time within the measured part.
    pub(crate) usage: Usage,
    /// When it was over, on the monotonic clock.
    pub(crate) end: u64,
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
    connections: Vec<Connection>,
    renderer: Renderer,
    tally: Tally,
    buffer: Box<[u8]>,
    /// The schedule of an open load.
    due: Option<DueTimes>,
    /// Due times of the requests that leave together.
    due_times: Vec<u64>,
    /// Connections with room for a request, of an open load.
    free: VecDeque<usize>,
    /// Since when at least one connection was free.
    free_since: u64,
    /// Connections of a closed load that pause, and until when.
    thinking: VecDeque<(u64, usize)>,
    /// Connections that were lost, and when they are opened again.
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
            connections: (0..count).map(|_| Connection::new(scanner())).collect(),
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
        })
    }

    /// Runs the load to its end. Other threads wait at the barrier, so that even a thread that
    /// cannot open its connections comes there.
    pub(crate) fn run(mut self, thread: usize) -> Result<Option<Outcome>, LoadError> {
        // Sleeps end when they should; a kernel that does not do this makes them 50 us longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
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
        let patience = monotonic_ns() + OPENING_PATIENCE;
        let mut begun = 0;
        while self.gathered < self.connections.len() {
            while begun < self.connections.len() && begun - self.gathered < OPENING_TOGETHER {
                self.open(begun);
                begun += 1;
            }
            self.wait(LOOK)?;
            if self.shared.has_ended.load(Ordering::Relaxed) {
                let reason =
                    self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
                return Err(LoadError::Opening(reason.unwrap_or_default()));
            }
            if self.shared.control.is_stopped() {
                return Ok(());
            }
            if monotonic_ns() > patience {
                let (open, all) = (self.gathered, self.connections.len());
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
            let Plan { threads, seed, .. } = *self.plan;
            self.due = Some(DueTimes::new(rate, schedule, start, thread, threads, seed));
        }
    }

    /// The loop; returns the processor time that had been used when the measured part began.
    fn run_to_the_end(&mut self) -> Result<Usage, LoadError> {
        let mut now = monotonic_ns();
        let mut before = Usage::of_this_thread();
        let mut is_warming = now < self.measured_from;
        self.free_since = now;
        for index in 0..self.connections.len() {
            self.give_work(index, now);
        }
        loop {
            self.tally.tell(self.shared.control);
            if is_warming && now >= self.measured_from {
                is_warming = false;
                before = Usage::of_this_thread();
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
        if self.shared.control.is_stopped() || self.shared.has_ended.load(Ordering::Relaxed) {
            return true;
        }
        if self.is_sending && now >= self.deadline {
            self.is_sending = false;
            self.reached_deadline = true;
            self.count_unsent();
        }
        if self.is_sending {
            return false;
        }
        if self.in_flight > 0 && now > self.deadline.saturating_add(DRAIN_PATIENCE) {
            for connection in &mut self.connections {
                for flight in connection.flights.drain(..) {
                    self.tally.lost(&flight, "timeout", now);
                }
            }
            return true;
        }
        self.in_flight == 0
    }

    /// Counts the requests that were due before the deadline and found no connection.
    fn count_unsent(&mut self) {
        let Some(due) = &mut self.due else { return };
        while due.next() < self.deadline {
            self.tally.unsent += 1;
            due.advance();
        }
    }

    /// When the measured part was over for this thread.
    fn end_time(&self, now: u64) -> u64 {
        let was_cut =
            self.shared.control.is_stopped() || self.shared.has_ended.load(Ordering::Relaxed);
        if self.reached_deadline {
            self.deadline.max(self.tally.last_reply)
        } else if was_cut || self.tally.last_reply == 0 {
            now
        } else {
            self.tally.last_reply
        }
    }

    /// How long it may wait for events: until something is to be done without one.
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

    // ---- opening and losing -------------------------------------------------------------------

    fn open(&mut self, index: usize) {
        match self.shared.endpoint.open() {
            Ok(socket) => {
                let (data, flags) =
                    (epoll::EventData::new_u64(index as u64), epoll::EventFlags::OUT);
                if let Err(error) = epoll::add(&self.epoll, &socket, data, flags) {
                    return self.lose(index, &io::Error::from(error).to_string());
                }
                self.connections[index].socket = Some(socket);
                self.connections[index].state = State::Opening;
            }
            Err(error) => self.lose(index, &error.to_string()),
        }
    }

    /// The connection became writable for the first time, or failed to.
    fn opened(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(socket) = &connection.socket else { return };
        match socket.take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return self.lose(index, &error.to_string()),
        }
        self.tally.connects += 1;
        let (greeting, replies) = &self.shared.greeting;
        connection.state = State::Open;
        connection.greet(greeting, *replies);
        let flushed = connection.flush();
        // Told until now that it is writable, it is to be told from now on what there is to read.
        self.connections[index].awaits_room = true;
        if self.settle(index, flushed) && *replies == 0 {
            self.greeted(index);
        }
    }

    /// The connection may be used.
    fn greeted(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if self.is_gathering {
            self.gathered += usize::from(!connection.is_gathered);
            connection.is_gathered = true;
        } else if connection.waiting == 0 {
            self.give_work(index, monotonic_ns());
        }
    }

    /// Asks for the events that the connection needs; returns whether it still is one.
    #[inline]
    fn settle(&mut self, index: usize, result: io::Result<()>) -> bool {
        if let Err(error) = result {
            self.lose(index, &error.to_string());
            return false;
        }
        let connection = &mut self.connections[index];
        let awaits = connection.has_unsent();
        if awaits == connection.awaits_room {
            return true;
        }
        connection.awaits_room = awaits;
        let Some(socket) = &connection.socket else { return false };
        let out = if awaits { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        let data = epoll::EventData::new_u64(index as u64);
        let changed = epoll::modify(&self.epoll, socket, data, epoll::EventFlags::IN | out);
        if let Err(error) = changed {
            self.lose(index, &io::Error::from(error).to_string());
            return false;
        }
        true
    }

    /// The connection is lost, with all that was not answered.
    fn lose(&mut self, index: usize, reason: &str) {
        let now = monotonic_ns();
        let connection = &mut self.connections[index];
        connection.close();
        for flight in connection.flights.drain(..) {
            self.tally.lost(&flight, "connection", now);
        }
        self.in_flight -= std::mem::take(&mut connection.waiting);
        connection.is_free = false;
        self.tally.socket_errors += 1;
        if self.plan.reconnect && !self.is_gathering {
            self.reopening.push_back((now + REOPEN_PAUSE, index));
        } else {
            self.shared.end(format!("connection lost: {reason}"));
        }
    }

    /// Closes a connection that has done what it was for.
    fn retire(&mut self, index: usize) {
        self.connections[index].close();
    }

    // ---- sending ------------------------------------------------------------------------------

    /// What a connection without requests does next.
    #[inline]
    fn give_work(&mut self, index: usize, now: u64) {
        if self.due.is_some() {
            self.make_free(index, now);
        } else {
            self.send_next(index, now);
        }
    }

    /// A connection of an open load has room.
    fn make_free(&mut self, index: usize, now: u64) {
        if !self.connections[index].is_free {
            if self.free.is_empty() {
                self.free_since = now;
            }
            self.connections[index].is_free = true;
            self.free.push_back(index);
        }
    }

    /// Sends the next pipeline of a closed load.
    #[inline]
    fn send_next(&mut self, index: usize, now: u64) {
        if !self.is_sending {
            return;
        }
        let mut count = self.plan.pipeline;
        let is_measured = now >= self.measured_from;
        if is_measured {
            count = self.shared.take(count);
            if count == 0 {
                self.is_sending = false;
                return;
            }
        }
        let (bytes, rendered) = self.renderer.render(count);
        let connection = &mut self.connections[index];
        let sent = if count >= LONG_PIPELINE { monotonic_ns() } else { now };
        for run in rendered {
            if is_measured {
                self.tally.sent(run.operation, run.bytes);
            }
            connection.flights.push_back(Flight {
                due: sent,
                sent,
                operation: run.operation as u32,
                count: run.count as u32,
                is_measured,
            });
        }
        connection.waiting += count;
        self.in_flight += count;
        let result = connection.send(bytes);
        self.sent(index, result);
    }

    /// What follows when requests were given to a connection.
    #[inline]
    fn sent(&mut self, index: usize, result: io::Result<()>) {
        if self.connections[index].state == State::Closed && result.is_ok() {
            self.open(index);
        } else if self.connections[index].state == State::Open {
            self.settle(index, result);
        }
    }

    /// Sends the requests of an open load that are due, as far as connections are free.
    fn send_due(&mut self) {
        loop {
            let now = monotonic_ns();
            let Some(due) = &mut self.due else { return };
            if !self.is_sending || due.next() > now || due.next() >= self.deadline {
                return;
            }
            let Some(index) = self.free.pop_front() else { return };
            let connection = &mut self.connections[index];
            if !std::mem::take(&mut connection.is_free) {
                // It was lost since.
                continue;
            }
            // Many at once are shared out evenly.
            let share = due.overdue(now).div_ceil(self.free.len() + 1);
            let room = (self.plan.pipeline - connection.waiting).min(share.max(1));
            self.due_times.clear();
            while self.due_times.len() < room && due.next() <= now && due.next() < self.deadline {
                let is_measured = due.next() >= self.measured_from;
                if is_measured && self.shared.take(1) == 0 {
                    self.is_sending = false;
                    break;
                }
                self.due_times.push(due.next());
                due.advance();
            }
            if !self.due_times.is_empty() {
                self.send_these(index, now);
            }
            let connection = &self.connections[index];
            if connection.waiting > 0 && connection.waiting < self.plan.pipeline {
                let since = self.free_since;
                self.make_free(index, since);
            }
        }
    }

    /// Sends requests with these due times.
    fn send_these(&mut self, index: usize, now: u64) {
        let (bytes, rendered) = self.renderer.render(self.due_times.len());
        let connection = &mut self.connections[index];
        let mut due_times = self.due_times.iter();
        for run in rendered {
            self.tally.sent(run.operation, run.bytes);
            for &due in due_times.by_ref().take(run.count) {
                let is_measured = due >= self.measured_from;
                if is_measured {
                    self.tally.lateness.record(now.saturating_sub(due.max(self.free_since)));
                }
                let operation = run.operation as u32;
                connection.flights.push_back(Flight {
                    due,
                    sent: now,
                    operation,
                    count: 1,
                    is_measured,
                });
            }
        }
        connection.waiting += self.due_times.len();
        self.in_flight += self.due_times.len();
        let result = connection.send(bytes);
        self.sent(index, result);
    }

    /// Does what was to be done at a time: ends pauses, opens connections again.
    fn wake(&mut self, now: u64) {
        while let Some((at, index)) = self.thinking.front().copied()
            && at <= now
        {
            self.thinking.pop_front();
            if self.connections[index].waiting == 0 {
                self.send_next(index, now);
            }
        }
        while let Some((at, index)) = self.reopening.front().copied()
            && at <= now
        {
            self.reopening.pop_front();
            if self.connections[index].state == State::Closed && self.is_sending {
                if self.keep_alive {
                    self.open(index);
                } else {
                    self.give_work(index, now);
                }
            }
        }
    }

    // ---- receiving ----------------------------------------------------------------------------

    /// Reads what there is, and counts what is answered.
    fn receive(&mut self, index: usize) {
        for _ in 0..READS_PER_TURN {
            let Some(socket) = &self.connections[index].socket else { return };
            let length = match socket::read(socket, &mut self.buffer) {
                Ok(None) => return,
                Ok(Some(0)) => return self.closed(index),
                Ok(Some(length)) => length,
                Err(error) => return self.lose(index, &error.to_string()),
            };
            let now = monotonic_ns();
            match self.take_replies(index, length, now) {
                Ok(answered) => self.answered(index, answered, now),
                Err(reason) => return self.lose(index, &reason),
            }
            if length < self.buffer.len() {
                return;
            }
        }
    }

    /// The server has closed the connection, which may be how a response ends.
    fn closed(&mut self, index: usize) {
        let now = monotonic_ns();
        let Connection { scanner, flights, waiting, .. } = &mut self.connections[index];
        let mut no_greetings = 0;
        let mut counter = Counter::new(&mut self.tally, flights, &mut no_greetings, now);
        if let Scanner::Http(scanner) = scanner {
            scanner.end(|length, error| counter.reply(length, error));
        }
        let answered = counter.finish();
        *waiting -= answered;
        self.in_flight -= answered;
        if answered > 0 && self.connections[index].waiting == 0 {
            self.retire(index);
            self.next_after(index, now);
        } else {
            self.lose(index, "closed by the server");
        }
    }

    /// Finds the replies in what was read; returns how many requests they answer.
    #[inline]
    fn take_replies(&mut self, index: usize, length: usize, now: u64) -> Result<usize, String> {
        let Connection { scanner, flights, greetings, .. } = &mut self.connections[index];
        let bytes = &self.buffer[..length];
        let is_bodiless =
            flights.front().is_some_and(|flight| self.bodiless[flight.operation as usize]);
        let mut counter = Counter::new(&mut self.tally, flights, greetings, now);
        match scanner {
            Scanner::Resp(scanner) => scanner
                .scan(bytes, |length, error| counter.reply(length, error))
                .map_err(|error| error.to_string())?,
            Scanner::Http(scanner) => scanner
                .scan(bytes, is_bodiless, |length, error| counter.reply(length, error))
                .map_err(|error| error.to_string())?,
        }
        if let Some(error) = counter.refused.take() {
            return Err(error);
        }
        if counter.unexpected {
            return Err("the server sent a reply that nobody asked for".to_owned());
        }
        Ok(counter.finish())
    }

    /// So many requests of a connection were answered.
    #[inline]
    fn answered(&mut self, index: usize, count: usize, now: u64) {
        let connection = &mut self.connections[index];
        connection.waiting -= count;
        self.in_flight -= count;
        if connection.waiting > 0 {
            if count > 0 && self.due.is_some() {
                self.make_free(index, now);
            }
            return;
        }
        if count == 0 {
            if connection.greetings == 0 {
                self.greeted(index);
            }
            return;
        }
        let closes = match &connection.scanner {
            Scanner::Resp(_) => false,
            Scanner::Http(scanner) => scanner.closes(),
        };
        if closes || !self.keep_alive {
            self.retire(index);
        }
        self.next_after(index, now);
    }

    /// All requests of a connection were answered.
    #[inline]
    fn next_after(&mut self, index: usize, now: u64) {
        if self.think > 0 {
            self.thinking.push_back((now + self.think, index));
        } else {
            self.give_work(index, now);
        }
    }
}

/// Counts the replies in what was read at once.
struct Counter<'a> {
    tally: &'a mut Tally,
    flights: &'a mut VecDeque<Flight>,
    greetings: &'a mut usize,
    now: u64,
    /// Replies to the flight at the front, and their bytes.
    replies: u64,
    bytes: u64,
    answered: usize,
    /// A greeting was answered with this error.
    refused: Option<String>,
    unexpected: bool,
}

impl<'a> Counter<'a> {
    fn new(
        tally: &'a mut Tally,
        flights: &'a mut VecDeque<Flight>,
        greetings: &'a mut usize,
        now: u64,
    ) -> Self {
        Counter {
            tally,
            flights,
            greetings,
            now,
            replies: 0,
            bytes: 0,
            answered: 0,
            refused: None,
            unexpected: false,
        }
    }

    #[inline]
    fn reply(&mut self, length: u64, error: Option<&[u8]>) {
        if *self.greetings > 0 {
            *self.greetings -= 1;
            self.refused = error.map(|text| String::from_utf8_lossy(text).into_owned());
            return;
        }
        let Some(flight) = self.flights.front_mut() else {
            self.unexpected = true;
            return;
        };
        self.replies += 1;
        self.bytes += length;
        if let Some(text) = error {
            self.tally.error(flight, text, self.now);
        }
        if self.replies == u64::from(flight.count) {
            self.tally.answered(flight, self.replies, self.bytes, self.now);
            self.answered += self.replies as usize;
            (self.replies, self.bytes) = (0, 0);
            self.flights.pop_front();
        }
    }

    /// Counts the replies to a flight that is not answered in full.
    fn finish(self) -> usize {
        if self.replies > 0
            && let Some(flight) = self.flights.front_mut()
        {
            self.tally.answered(flight, self.replies, self.bytes, self.now);
            flight.count -= self.replies as u32;
            return self.answered + self.replies as usize;
        }
        self.answered
    }
}
