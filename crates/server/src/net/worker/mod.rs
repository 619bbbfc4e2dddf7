//! A worker and its turn.
//!
//! A turn is a sequence of phases over batches: wait, take the messages, read and parse, execute,
//! run what needs more than slot locks, send, close, look at the clock. Commands of all readable
//! connections are executed as one batch, inside the worker's gate. Their data is prefetched into
//! the cache a window ahead, so that cache misses overlap instead of adding up. While many
//! connections are busy, or wait for a sync, a turn begins with a short pause: see
//! [`super::coalesce`].
//!
//! This file is the turn. [`intake`] has the incoming side, [`execution`] runs commands, and
//! [`delivery`] has the outgoing side. [`yielding`] serves other connections while a script runs
//! for long.

mod delivery;
mod execution;
mod intake;
mod yielding;

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Cache};
use base::clock::Ticks;
use base::limits;
use engine::clients::memory_limit;
use engine::engine::Engine;
use engine::host::LogLevel;
use engine::turn::Turn;
use hashbrown::HashMap;
use mio::{Events, Poll, Token, Waker};
use store::gate::Gate;
use views::Offer;

use super::arrival::Arrival;
use super::batch::CommandBatch;
use super::coalesce::Coalescing;
use super::connection::{Connection, NOT_LOGGED_IN, TAKES_TOO_LITTLE};
use super::mailbox::{Mailbox, WAKE, Wakers};
use super::protocol::Protocol;
use super::timers::Timers;
use super::transport::Readiness;

/// Connections that are read, executed and answered together. The input of many more does not stay
/// in the processor's cache until it is executed.
const TOGETHER: usize = 64;
/// The longest sleep: idle connections and requests to stop are looked at this often.
const TICK: Duration = Duration::from_millis(100);
/// The longest sleep during a sync, without a look at the sockets: a client that does not depend on
/// the sync may have come.
const SLEEP_MAX: Duration = Duration::from_micros(500);
/// How long a turn may take, in nanoseconds, before the rest of it is put off: requests that have
/// come meanwhile are served in between.
const TURN_NS: u64 = 5_000_000;
/// How long input is read together, in nanoseconds, before what has come is run. Most takes far
/// less; what a client sends in the smallest pieces, or in large JSON, takes longer.
const READING_NS: u64 = 2_000_000;
/// The same where replies wait for a sync.
const SHARED_READING_NS: u64 = 10_000_000;
/// Connections that read on in kept changes in one turn, at most, and how long they may take
/// together, in nanoseconds. A client that follows a few keys takes some ten microseconds, one that
/// follows all a hundred times that.
const READS_ON_PER_TURN: usize = 8;
const READING_ON_NS: u64 = 2_000_000;
/// Why a connection is closed whose replies were written when this node of a cluster might serve,
/// and would leave now that it may not.
const FENCED: &str = "this node may not serve any more";
/// Why a connection is closed whose replies tell of effects that the journal has lost.
const NOT_DURABLE: &str = "its replies could not be made durable";

/// A worker thread's state.
pub(super) struct Worker {
    engine: Arc<Engine>,
    offer: Cache<Arc<ArcSwap<Offer>>, Arc<Offer>>,
    number: usize,
    poll: Poll,
    mailbox: Arc<Mailbox>,
    wakers: Arc<Wakers>,
    turn: Box<Turn>,
    /// For connections that are served while a script keeps the thread busy.
    yielded_turn: Option<Box<Turn>>,
    /// A script keeps the thread busy, and other clients are served meanwhile: see [`yielding`].
    relieves: bool,
    /// How often that has begun.
    yields: u64,
    /// The connection whose script runs.
    away: Option<Away>,
    gate: Arc<Gate>,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    indexes: HashMap<u64, usize>,
    timers: Timers,
    /// New connections, of which each turn takes a few.
    arrivals: VecDeque<Arrival>,
    /// Connections to look at in this turn.
    scheduled: Vec<usize>,
    /// Connections to look at that have had no answer yet, of which each turn takes a few: however
    /// many come at once, those that were there before are served in between.
    newcomers: VecDeque<usize>,
    /// Connections of earlier turns that were cut off because they lasted too long, and those that
    /// have more to do. The first is the one that has waited for the longest time.
    late: Vec<usize>,
    /// Connections that wait for the journal.
    awaiting_journal: Vec<usize>,
    /// Connections whose commands wait for slots, in the order in which they were first tried.
    parked: Vec<usize>,
    /// Connections that read on in the kept changes. The first is the one that has not done so for
    /// the longest time.
    behind: VecDeque<usize>,
    /// How many of them may read on in this turn.
    reads_on: usize,
    /// How many have done so in this turn, and for how many nanoseconds.
    reading_on: (u64, u64),
    batch: CommandBatch,
    /// Read buffers without content, for the next connections that read.
    buffers: Vec<Vec<u8>>,
    next_tick: u64,
    coalescing: Coalescing,
    /// Whether `maxmemory-clients` is set, as of the last tick.
    limits_client_memory: bool,
    /// This node of a cluster might serve when the turn began.
    served: bool,
}

/// Events at the socket of the connection whose script runs, while it is not in its place.
struct Away {
    index: usize,
    /// Its client has given the script up when it ends its stream.
    gives_up_at_end: bool,
    read_closed: bool,
    urgent: bool,
}

impl Away {
    /// Notes an event for a place without a connection.
    fn note(&mut self, index: usize, readiness: Readiness) {
        if index == self.index {
            self.read_closed |= readiness.read_closed;
            self.urgent |= readiness.urgent;
        }
    }
}

impl Worker {
    pub(super) fn new(
        engine: Arc<Engine>,
        wakers: &Arc<Wakers>,
        offer: Arc<ArcSwap<Offer>>,
        number: usize,
    ) -> io::Result<Worker> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        // The only failure is a full counter, which wakes the worker as well.
        let wake = move || drop(waker.wake());
        let mailbox = wakers.register(wake);
        Ok(Worker {
            number,
            mailbox,
            wakers: Arc::clone(wakers),
            poll,
            turn: Box::new(Turn::new(&engine, &format!("worker-{number}"))),
            yielded_turn: None,
            relieves: false,
            yields: 0,
            away: None,
            gate: Arc::new(engine.gates.register()),
            engine,
            offer: Cache::new(offer),
            connections: Vec::new(),
            free: Vec::new(),
            indexes: HashMap::new(),
            timers: Timers::default(),
            arrivals: VecDeque::new(),
            scheduled: Vec::new(),
            newcomers: VecDeque::new(),
            late: Vec::new(),
            awaiting_journal: Vec::new(),
            parked: Vec::new(),
            behind: VecDeque::new(),
            reads_on: 0,
            reading_on: (0, 0),
            batch: CommandBatch::default(),
            buffers: Vec::new(),
            next_tick: 0,
            coalescing: Coalescing::default(),
            limits_client_memory: false,
            served: false,
        })
    }

    pub(super) fn run(mut self) {
        // The kernel lets short sleeps take 50 microseconds longer, unless asked not to.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        // A snapshot's thread may run on this processor when a request comes.
        base::time_slice::shorten();
        let mut events = Events::with_capacity(limits::EVENTS_PER_TURN);
        while !self.mailbox.stopping.load(Acquire) {
            self.run_turn(&mut events);
        }
        self.flush_and_close();
    }

    /// One turn: see the module's text.
    fn run_turn(&mut self, events: &mut Events) {
        self.wait(events);
        self.take_turn(events);
    }

    /// The part of a turn in which nothing waits.
    fn take_turn(&mut self, events: &Events) {
        self.turn.begin(&self.engine);
        self.served = self.engine.cluster.may_serve(self.turn.monotonic_us);
        if !self.relieves && self.mailbox.runs_slow_script.load(Relaxed) {
            self.mailbox.runs_slow_script.store(false, Relaxed);
        }
        self.note_events(events);
        self.take_messages();
        self.admit_some();
        self.end_expired_waits();
        self.schedule_parked();
        self.schedule_behind();
        self.schedule_newcomers();
        let batch = std::mem::take(&mut self.scheduled);
        let late = std::mem::take(&mut self.late);
        let [from, late_from] = self.serve_by_turns([&batch, &late]);
        let again = std::mem::take(&mut self.late);
        self.late.extend_from_slice(&late[late_from..]);
        self.late.extend_from_slice(&batch[from..]);
        self.late.extend_from_slice(&again);
        self.recycle(batch);
        self.tick();
        self.engine.evict_clients(&mut self.turn);
        process::memory::publish();
        self.turn.end();
    }

    /// Serves the connections of two lists, some of each by turns, so that neither late connections
    /// nor new ones wait for all others. Ends when the turn has lasted for long. Returns how many
    /// of each list need not be served any more.
    fn serve_by_turns(&mut self, lists: [&[usize]; 2]) -> [usize; 2] {
        // When replies wait for a sync, everything that has come should share one.
        let together = if self.turn.defers_replies() { usize::MAX } else { TOGETHER };
        let (yields, all) = (self.yields, lists.map(<[usize]>::len));
        let mut served = [0, 0];
        while served != all {
            for (list, at) in lists.iter().zip(&mut served) {
                let end = at.saturating_add(together).min(list.len());
                if *at < end {
                    *at += self.serve(&list[*at..end]);
                }
                if self.yields != yields {
                    // All connections were listed anew, and served beside a script.
                    return all;
                }
            }
            if self.turn.begun().elapsed_ns() > TURN_NS {
                break;
            }
        }
        served
    }

    /// Reads the input of these connections, or of the first of them if that takes long, executes
    /// it, and answers. Returns how many they are.
    fn serve(&mut self, indexes: &[usize]) -> usize {
        let (begun, mut count) = (Ticks::now(), 0);
        // Writes that come together share a sync.
        let longest = if self.turn.defers_replies() { SHARED_READING_NS } else { READING_NS };
        for &index in indexes {
            self.read_and_parse(index, begun);
            count += 1;
            if begun.elapsed_ns() > longest {
                break;
            }
        }
        let indexes = &indexes[..count];
        self.note_scratch(indexes);
        let (commands, parsed) = (self.batch.items.len(), Ticks::now());
        self.execute_batch();
        self.batch.clear();
        self.turn.announce_appends(&self.engine);
        let executed = Ticks::now();
        for &index in indexes {
            self.run_with_more_access(index);
            self.turn.announce_appends(&self.engine);
            self.send_and_reschedule(index);
        }
        if commands > 0 {
            let stages = &self.turn.stats.stages;
            stages.queue.record(parsed.since_ns(self.turn.begun()), commands);
            stages.execute.record(executed.since_ns(parsed), commands);
            stages.flush.record(executed.elapsed_ns(), commands);
        }
        count
    }

    /// Waits until there is something to do. Events at the sockets are in `events`, or noted
    /// already.
    fn wait(&mut self, events: &mut Events) {
        events.clear();
        let lists = [self.scheduled.is_empty(), self.late.is_empty(), self.behind.is_empty()];
        if lists.contains(&false) || !self.arrivals.is_empty() || !self.newcomers.is_empty() {
            return self.poll(events, Duration::ZERO);
        }
        if !self.parked.is_empty() {
            self.pause_for_slots();
            return self.poll(events, Duration::ZERO);
        }
        let pause = self.coalescing.pause(self.turn.monotonic_us);
        if self.coalescing.gathers() {
            if !self.awaiting_journal.is_empty() {
                if !self.mailbox.sleep(SLEEP_MAX) {
                    self.poll(events, Duration::ZERO);
                }
                return;
            }
            self.gather(events);
        } else if let Some(pause) = pause {
            std::thread::sleep(pause);
        }
        let idle = self.scheduled.is_empty() && self.newcomers.is_empty();
        let timer =
            || self.timers.wait(base::clock::monotonic_ms).map_or(TICK, |timer| timer.min(TICK));
        let timeout = if idle { self.mailbox.wait(timer()) } else { Duration::ZERO };
        self.poll(events, timeout);
    }

    /// Waits until a deferred command may be tried again, unless something comes before.
    fn pause_for_slots(&self) {
        let next = |&index: &usize| self.connections[index].as_ref()?.pending.next_try();
        let next = self.parked.iter().filter_map(next).min();
        let pause = next.map(|next| next.saturating_duration_since(Instant::now()));
        // Finer than the milliseconds that a poll has.
        process::system::wait_readable(&self.poll, pause.unwrap_or_default());
    }

    /// Looks again at commands that wait for slots.
    fn schedule_parked(&mut self) {
        if self.parked.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut parked = std::mem::take(&mut self.parked);
        parked.retain(|&index| {
            let Some(connection) = &mut self.connections[index] else { return false };
            let waits = connection.pending.next_try().is_some_and(|next| next > now);
            if !waits {
                connection.listed_as_parked = false;
                self.schedule(index);
            }
            waits
        });
        self.parked = parked;
    }

    /// Lets some of the followers that are behind read on. There may be thousands at once, when
    /// they have all lost their connections: others are served in between.
    fn schedule_behind(&mut self) {
        let (count, ns) = std::mem::take(&mut self.reading_on);
        // As many as there was time for last time.
        self.reads_on = match ns {
            0..READING_ON_NS => READS_ON_PER_TURN,
            _ => ((count * READING_ON_NS / ns) as usize).clamp(1, READS_ON_PER_TURN),
        };
        for _ in 0..self.reads_on {
            let Some(index) = self.behind.pop_front() else { return };
            if let Some(connection) = &mut self.connections[index] {
                connection.listed_as_behind = false;
                self.schedule(index);
            }
        }
    }

    /// Lets requests come in until a sync is worthwhile.
    fn gather(&mut self, events: &mut Events) {
        self.poll(events, Duration::ZERO);
        self.note_events(events);
        events.clear();
        let count = self.scheduled.len() + self.newcomers.len();
        if let Some(pause) = self.coalescing.gathering_pause(count) {
            std::thread::sleep(pause);
        }
    }

    fn poll(&mut self, events: &mut Events, timeout: Duration) {
        if let Err(error) = self.poll.poll(events, Some(timeout))
            && error.kind() != io::ErrorKind::Interrupted
        {
            self.engine.host.log(LogLevel::Warning, &format!("Waiting for events failed: {error}"));
        }
    }

    fn note_events(&mut self, events: &Events) {
        for event in events {
            let Token(index) = event.token();
            if event.token() == WAKE {
                continue;
            }
            let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
                self.away.iter_mut().for_each(|away| away.note(index, event.into()));
                continue;
            };
            let readiness = Readiness::from(event);
            if readiness.readable {
                self.coalescing.note_event(&mut connection.counted_in_window);
            }
            connection.note_readiness(readiness);
            self.schedule(index);
        }
    }

    fn schedule(&mut self, index: usize) {
        if let Some(connection) = &mut self.connections[index]
            && !std::mem::replace(&mut connection.scheduled, true)
        {
            if connection.is_newcomer() {
                self.newcomers.push_back(index);
            } else {
                self.scheduled.push(index);
            }
        }
    }

    /// Takes some of the newcomers into this turn; more of them where writes that come together
    /// share a sync, for who has shown who it is may write.
    fn schedule_newcomers(&mut self) {
        let is_shared = self.turn.defers_replies();
        let mut left = self.turn.config.max_new_connections_per_cycle as usize;
        while let Some(&index) = self.newcomers.front() {
            let may_write =
                self.connections[index].as_ref().is_some_and(|own| !own.is_unadmitted());
            if !(is_shared && may_write) {
                let Some(fewer) = left.checked_sub(1) else { break };
                left = fewer;
            }
            self.newcomers.pop_front();
            self.scheduled.push(index);
        }
    }

    /// Lists a connection that wants another turn behind those that have not had theirs.
    fn schedule_again(&mut self, index: usize) {
        if let Some(connection) = &mut self.connections[index]
            && !std::mem::replace(&mut connection.scheduled, true)
        {
            self.late.push(index);
        }
    }

    fn recycle(&mut self, mut batch: Vec<usize>) {
        // The list that was filled meanwhile is for the next turn; the old one gives its space.
        batch.clear();
        if self.scheduled.is_empty() {
            self.scheduled = batch;
        }
    }

    /// Now and then: idle connections, paused connections, limits that only time exceeds.
    fn tick(&mut self) {
        if self.turn.monotonic < self.next_tick {
            return;
        }
        self.next_tick = self.turn.monotonic + TICK.as_millis() as u64;
        self.give_back_space();
        // What the connections of the last batch had was counted until it had run.
        self.note_scratch(&[]);
        self.engine.clean_slots(self.gate.enter().pinned());
        let timeout = u64::from(self.turn.config.timeout) * 1000;
        let login_timeout = u64::from(self.turn.config.authentication_timeout) * 1000;
        // Connections that were idle when the limit was set have to be counted too.
        self.limits_client_memory = memory_limit(&self.turn.config).is_some();
        for index in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[index] else { continue };
            if self.limits_client_memory {
                self.engine.clients.count_memory(&connection.session.client);
            }
            // Publishers go by it, and it may have been changed since the client was served.
            connection.session.limit_output(&self.turn.config, &mut connection.output);
            if connection.is_idle_beyond(timeout, self.turn.monotonic) {
                connection.close_reason = Some("it was idle for longer than timeout");
            }
            if !connection.session.user.is_known() {
                connection.session.user.look(&self.engine.users);
            }
            if connection.is_unadmitted_beyond(login_timeout, self.turn.monotonic) {
                connection.close_reason = Some(NOT_LOGGED_IN);
            }
            let waits = connection.defers_input() || connection.unparsed;
            if connection.protocol.refuse_late(&connection.input, self.turn.monotonic, waits) {
                self.schedule(index);
                continue;
            }
            if connection.is_stuck(self.turn.monotonic) {
                connection.close_reason = Some(TAKES_TOO_LITTLE);
            }
            let overdue = connection.over_soft_limit_since.is_some();
            let lingers = connection.is_lingering();
            if connection.close_reason.is_some() || overdue || lingers || !connection.pending.runs()
            {
                self.schedule(index);
            }
        }
    }

    /// If a limit is set, tells the engine how much space requests are read and parsed in. The
    /// buffers of connections count as far as they belong to this turn only.
    fn note_scratch(&mut self, batch: &[usize]) {
        if self.turn.config.maxmemory == 0 {
            return self.engine.note_scratch(&mut self.turn, 0);
        }
        let connections = batch.iter().filter_map(|&index| self.connections[index].as_ref());
        let lent: usize = connections
            .map(|connection| connection.input.capacity().min(2 * limits::READ_PER_TURN))
            .sum();
        let spare: usize = self.buffers.iter().map(Vec::capacity).sum();
        self.engine.note_scratch(&mut self.turn, lent + spare + self.batch.memory());
    }

    fn give_back_space(&mut self) {
        self.batch.give_back_space();
        self.buffers.retain(|buffer| buffer.capacity() <= limits::READ_BUFFER);
    }
}
