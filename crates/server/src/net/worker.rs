//! A worker and its turn.
//!
//! A turn is a sequence of phases over batches: wait, open the mail, read and parse, execute, run
//! what needs more than slot locks, send, close, look at the clock. Commands of all readable
//! connections are executed as one batch, inside the worker's gate; what they lie in is fetched into
//! the cache a window ahead, so that cache misses overlap instead of adding up. While many
//! connections are busy, or wait for a sync, a turn begins with a short pause: see
//! [`super::coalesce`].

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};

use base::limits;
use engine::command::Row;
use engine::engine::{Authority, Engine, LogLevel, Outcome, Request, Turn};
use engine::handler::args::KeyAt;
use engine::session::Session;
use engine::session::client::{Client, flag, memory_limit};
use hashbrown::HashMap;
use mio::{Events, Poll, Token};
use resp::args::{ArgRange, Arguments, OwnedArguments};
use resp::reply::Reply;
use resp::request::{Limits, Parsed};
use store::gate::{Gate, Presence};

use super::coalesce::Coalescing;
use super::connection::{Connection, Hold, OVER_OUTPUT_LIMIT};
use super::mailbox::{Mailbox, WAKE, Wakers};
use super::stream::Stream;
use super::timers::Timers;

/// Commands fetched ahead of execution together.
const WINDOW: usize = 32;
/// Connections that are read, executed and answered together. What many more of them send does not
/// stay in the processor's cache until it is executed.
const TOGETHER: usize = 64;
/// Commands of one connection parsed in one turn: its neighbours come next.
const COMMANDS_PER_TURN: usize = 1024;
/// The longest sleep: idle connections and stop requests are looked at this often.
const TICK: Duration = Duration::from_millis(100);
/// The longest sleep beside a sync, without a look at the sockets: somebody who does not depend on
/// the sync may have come.
const NAP_MAX: Duration = Duration::from_micros(500);
/// Milliseconds that a stopping worker goes on sending what waits.
const FLUSH_ON_STOP: u64 = 2000;

/// Why a connection is closed whose replies tell of what the journal has lost.
const NOT_DURABLE: &str = "what it is to be told could not be made durable";

/// One parsed command of the batch.
struct Item {
    place: usize,
    row: Option<&'static Row>,
    args: std::ops::Range<usize>,
    keys: std::ops::Range<usize>,
}

/// A worker thread's state.
pub(super) struct Worker {
    engine: Arc<Engine>,
    index: usize,
    poll: Poll,
    mailbox: Arc<Mailbox>,
    turn: Turn,
    gate: Gate,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    places: HashMap<u64, usize>,
    timers: Timers,
    /// Connections to look at in this turn.
    scheduled: Vec<usize>,
    /// Connections that wait for the journal.
    awaiting_journal: Vec<usize>,
    /// Connections whose commands wait for slots, those first that were tried first.
    parked: Vec<usize>,
    items: Vec<Item>,
    args: Vec<ArgRange>,
    keys: Vec<KeyAt>,
    /// Read buffers without content, for the next connections that read.
    buffers: Vec<Vec<u8>>,
    next_tick: u64,
    coalescing: Coalescing,
    /// Whether `maxmemory-clients` is set, as of the last tick.
    limits_client_memory: bool,
}

impl Worker {
    pub(super) fn new(engine: Arc<Engine>, wakers: &Wakers, index: usize) -> io::Result<Worker> {
        let poll = Poll::new()?;
        Ok(Worker {
            index,
            mailbox: wakers.register(&poll)?,
            poll,
            turn: Turn::new(&engine, &format!("worker-{index}")),
            gate: engine.gates.register(),
            engine,
            connections: Vec::new(),
            free: Vec::new(),
            places: HashMap::new(),
            timers: Timers::default(),
            scheduled: Vec::new(),
            awaiting_journal: Vec::new(),
            parked: Vec::new(),
            items: Vec::new(),
            args: Vec::new(),
            keys: Vec::new(),
            buffers: Vec::new(),
            next_tick: 0,
            coalescing: Coalescing::default(),
            limits_client_memory: false,
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
        self.turn.begin(&self.engine);
        self.note_events(events);
        self.open_mail();
        self.end_waits_that_are_due();
        self.schedule_parked();
        let batch = std::mem::take(&mut self.scheduled);
        // Where replies wait for a sync, all that came is to share one.
        let together = if self.turn.holds_replies() { batch.len().max(1) } else { TOGETHER };
        for places in batch.chunks(together) {
            self.serve(places);
        }
        self.recycle(batch);
        self.tick();
        self.engine.evict_clients(&mut self.turn);
        crate::memory::publish();
    }

    /// Reads what these connections have sent, executes it, and answers.
    fn serve(&mut self, places: &[usize]) {
        for &place in places {
            self.read_and_parse(place);
        }
        self.note_scratch(places);
        self.execute_batch();
        self.items.clear();
        self.args.clear();
        self.keys.clear();
        self.turn.announce_appends(&self.engine);
        for &place in places {
            self.run_with_more_authority(place);
            self.turn.announce_appends(&self.engine);
            self.send_and_reschedule(place);
        }
    }

    /// Waits until there is something to do. What came at the sockets is in `events`, or noted
    /// already.
    fn wait(&mut self, events: &mut Events) {
        events.clear();
        if !self.scheduled.is_empty() {
            return self.poll(events, Duration::ZERO);
        }
        if !self.parked.is_empty() {
            self.pause_for_slots();
            return self.poll(events, Duration::ZERO);
        }
        let pause = self.coalescing.pause(self.turn.steady_us);
        if self.coalescing.gathers() {
            if !self.awaiting_journal.is_empty() {
                if !self.mailbox.nap(NAP_MAX) {
                    self.poll(events, Duration::ZERO);
                }
                return;
            }
            self.gather(events);
        } else if let Some(pause) = pause {
            std::thread::sleep(pause);
        }
        let idle = self.scheduled.is_empty();
        let timer =
            || self.timers.wait(base::clock::steady_ms).map_or(TICK, |timer| timer.min(TICK));
        let timeout = if idle { timer() } else { Duration::ZERO };
        self.poll(events, timeout);
    }

    /// Waits until a command that was put aside may be tried again, unless something comes before.
    fn pause_for_slots(&self) {
        let next = |&place: &usize| match &self.connections[place].as_ref()?.hold {
            Hold::Contended(parked) => Some(parked.next_try()),
            _ => None,
        };
        let next = self.parked.iter().filter_map(next).min();
        let pause = next.map(|next| next.saturating_duration_since(Instant::now()));
        // Finer than the milliseconds that a poll has.
        crate::process::system::wait_readable(&self.poll, pause.unwrap_or_default());
    }

    /// Looks again at commands that wait for slots.
    fn schedule_parked(&mut self) {
        if self.parked.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut parked = std::mem::take(&mut self.parked);
        parked.retain(|&place| {
            let Some(connection) = &mut self.connections[place] else { return false };
            let waits =
                matches!(&connection.hold, Hold::Contended(parked) if parked.next_try() > now);
            if !waits {
                connection.listed_as_parked = false;
                self.schedule(place);
            }
            waits
        });
        self.parked = parked;
    }

    /// Lets requests come in until a sync is worth its while.
    fn gather(&mut self, events: &mut Events) {
        self.poll(events, Duration::ZERO);
        self.note_events(events);
        events.clear();
        if let Some(pause) = self.coalescing.gathering_pause(self.scheduled.len()) {
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
            let Token(place) = event.token();
            if event.token() == WAKE {
                continue;
            }
            let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
                continue;
            };
            connection.readable |= event.is_readable() || event.is_read_closed();
            if event.is_readable() {
                self.coalescing.note_event(&mut connection.counted_in_window);
            }
            connection.read_closed |= event.is_read_closed();
            connection.writable |= event.is_writable();
            self.schedule(place);
        }
    }

    fn schedule(&mut self, place: usize) {
        if let Some(connection) = &mut self.connections[place]
            && !std::mem::replace(&mut connection.scheduled, true)
        {
            self.scheduled.push(place);
        }
    }

    // ---- Mail -----------------------------------------------------------------------------------

    fn open_mail(&mut self) {
        self.hear_of_the_journal();
        let letters = self.mailbox.take();
        for stream in letters.arrivals {
            self.admit(stream);
        }
        for client in letters.clients {
            if let Some(&place) = self.places.get(&client) {
                self.take_inbox(place);
                self.schedule(place);
            }
        }
    }

    /// Looks at those again that wait for the journal, when it is further; when it has failed, they
    /// are closed: nobody knows what became of their writes.
    fn hear_of_the_journal(&mut self) {
        let failed = self.mailbox.journal_failed.swap(false, Acquire);
        if !failed && !self.mailbox.journal_progressed.swap(false, Acquire) {
            return;
        }
        for place in std::mem::take(&mut self.awaiting_journal) {
            if let Some(connection) = &mut self.connections[place] {
                connection.listed_as_waiting = false;
                if failed && connection.holds_replies() {
                    connection.doom = Some(NOT_DURABLE);
                }
                self.schedule(place);
            }
        }
    }

    fn admit(&mut self, mut stream: Stream) {
        let place = self.free.pop().unwrap_or(self.connections.len());
        if let Err(error) = stream.register(self.poll.registry(), Token(place)) {
            self.engine.host.log(LogLevel::Warning, &format!("Registering a client: {error}"));
            self.free.push(place);
            self.mailbox.connections.fetch_sub(1, Relaxed);
            return;
        }
        let client = Arc::new(Client::new(
            self.engine.next_client_id(),
            self.index,
            stream.address.clone(),
            stream.local_address.clone(),
            stream.descriptor(),
            self.turn.steady,
        ));
        client.set_flag(flag::UNIX, stream.is_unix());
        self.engine.clients.add(&client);
        self.places.insert(client.id, place);
        let authenticated = self.turn.config.requirepass.is_empty();
        let connection = Connection::new(stream, Session::new(client, authenticated));
        if place == self.connections.len() {
            self.connections.push(None);
        }
        self.connections[place] = Some(Box::new(connection));
        self.schedule(place);
    }

    /// Takes what others have left for a client: messages, the reply that it is blocked for, or
    /// the order to close.
    fn take_inbox(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        let inbox = std::mem::take(&mut *connection.session.client.inbox.lock());
        if self.turn.holds_replies() && (inbox.served.is_some() || !inbox.pushes.is_empty()) {
            // What others have left may tell of any of their writes, which came before it.
            connection.session.depends_on = self.engine.journal.end();
            connection.hold_replies(connection.output.end());
        }
        if let Some(reply) = inbox.served
            && let Hold::Blocked(waiter) = std::mem::replace(&mut connection.hold, Hold::None)
        {
            let inside = self.gate.enter();
            self.engine.end_wait(inside.presence(), &connection.session, &waiter);
            drop(inside);
            if connection.withheld_from.take().is_none() && connection.session.end_reply() {
                connection.output.push(&reply);
            }
        }
        if inbox.over_limit {
            connection.doom = Some(OVER_OUTPUT_LIMIT);
            return self.engine.host.drop_later(Box::new(inbox.pushes));
        }
        for message in inbox.pushes {
            connection.output.push_shared(&message);
        }
        connection.look_at_output_limit();
        if connection.session.client.killed.load(Relaxed) {
            connection.doom = Some("it was killed");
        }
    }

    fn end_waits_that_are_due(&mut self) {
        while let Some(place) = self.timers.due(self.turn.steady) {
            let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
                continue;
            };
            connection.timer = None;
            let Hold::Blocked(waiter) = &connection.hold else {
                self.schedule(place);
                continue;
            };
            let waiter = Arc::clone(waiter);
            if waiter.claim() {
                connection.hold = Hold::None;
                let resp3 = connection.session.resp3;
                let start = connection.output.mark();
                waiter.reply_timed_out(&mut Reply::new(&mut connection.output, resp3));
                let inside = self.gate.enter();
                self.engine.end_wait(inside.presence(), &connection.session, &waiter);
                drop(inside);
                connection.end_reply(start);
                self.schedule(place);
            }
        }
    }

    // ---- Reading and parsing --------------------------------------------------------------------

    fn read_and_parse(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        connection.scheduled = false;
        connection.session.limit_output(&self.turn.config, &mut connection.output);
        if connection.doom.is_some() || connection.session.close {
            return;
        }
        if connection.input.capacity() == 0 && connection.readable {
            connection.input = self.buffers.pop().unwrap_or_default();
        }
        let share = connection.reading_share();
        if connection.readable && share > 0 {
            let count = connection.receive(share);
            self.coalescing.note_bytes(count);
            self.turn.stats.net_input_bytes.add(count as u64);
            self.turn.stats.reads_processed.add(1);
        }
        if connection.query_memory() as u64 > self.turn.config.client_query_buffer_limit {
            self.turn.stats.query_buffer_limit_disconnections.add(1);
            connection.doom = Some("its query buffer went over client-query-buffer-limit");
            return;
        }
        self.parse(place);
    }

    /// Parses what has arrived into the batch, up to the connection's share.
    fn parse(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        let held_back = connection.defers_input();
        connection.unparsed = held_back;
        if held_back {
            return;
        }
        let share = if connection.session.authenticated { COMMANDS_PER_TURN } else { 1 };
        let mut parsed = 0;
        while parsed < share && connection.big.is_none() {
            let limits = Limits {
                max_bulk: self.turn.config.proto_max_bulk_len,
                authenticated: connection.session.authenticated,
                exact_line_ends: false,
            };
            let first = self.args.len();
            match connection.parser.parse(&connection.input, &limits, &mut self.args) {
                Parsed::Command { .. } => {
                    let args = first..self.args.len();
                    let ranges = &self.args[args.clone()];
                    let arguments = connection.parser.arguments(&connection.input, ranges);
                    let keys = self.keys.len();
                    let row = self.engine.prepare(arguments, &mut self.keys);
                    self.items.push(Item { place, row, args, keys: keys..self.keys.len() });
                    parsed += 1;
                    if connection.parser.position() == connection.input.len() {
                        break;
                    }
                }
                Parsed::Empty { .. } => {}
                Parsed::Incomplete => break,
                Parsed::BigArgument { .. } => {
                    connection.big = connection.parser.take_big(&connection.input);
                    let big = connection.big.as_ref();
                    if big.is_some_and(|big| big.missing() == 0)
                        && let Some(big) = connection.big.take()
                    {
                        connection.parser.supply_big(big);
                    }
                }
                Parsed::Protocol(error) => {
                    connection.protocol_error = Some(error);
                    break;
                }
            }
        }
        // A full share may leave commands in the buffer: they come next turn.
        connection.backlog = parsed == share;
    }

    // ---- Executing ------------------------------------------------------------------------------

    fn execute_batch(&mut self) {
        let Worker { engine, gate, turn, connections, items, args, keys, .. } = self;
        if items.is_empty() {
            return;
        }
        let inside = gate.enter();
        turn.enter(engine);
        for window in items.chunks(WINDOW) {
            prefetch(engine, inside.presence(), connections, keys, window);
            for item in window {
                let Some(connection) = &mut connections[item.place] else { continue };
                let (args, keys) = (&args[item.args.clone()], &keys[item.keys.clone()]);
                let authority = Authority::Ordinary(inside.presence());
                execute(engine, turn, connection, item, args, keys, authority);
            }
        }
    }

    /// Runs what held the connection back, where that needs slots that were locked, closed gates, or
    /// just another attempt; then the commands behind it.
    fn run_with_more_authority(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        if connection.doom.is_some() || !connection.is_held_back() {
            return;
        }
        let engine = Arc::clone(&self.engine);
        match connection.hold {
            Hold::None | Hold::Blocked(_) => {}
            Hold::AwaitsSync(wait) => {
                let session = &connection.session;
                let start = connection.output.mark();
                let mut reply = Reply::new(&mut connection.output, session.resp3);
                if !engine.settle_sync_wait(session, wait, self.turn.steady, &mut reply) {
                    return;
                }
                connection.hold = Hold::None;
                connection.end_reply(start);
            }
            // Even before the time has come: UNPAUSE may have ended the pause.
            Hold::Paused(_) => connection.hold = Hold::None,
            Hold::Contended(_) => try_again(&engine, &self.gate, &mut self.turn, connection),
            Hold::NeedsGates => {
                let closed = engine.gates.close();
                let first = connection.pending.pop_front().expect("what is held back is pending");
                connection.hold = Hold::None;
                let authority = Authority::Closed(&closed);
                run_owned(&engine, &mut self.turn, connection, first, authority);
            }
        }
        if connection.pending.is_empty() || !connection.runs() {
            return;
        }
        let inside = self.gate.enter();
        while let Some(next) = connection.next_pending() {
            let authority = Authority::Ordinary(inside.presence());
            run_owned(&engine, &mut self.turn, connection, next, authority);
        }
    }

    // ---- Sending and closing --------------------------------------------------------------------

    fn send_and_reschedule(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        connection.forget_executed(&mut self.buffers);
        if let Some(error) = connection.protocol_error.take() {
            if connection.pending.is_empty() && connection.runs() {
                let mut text = b"ERR ".to_vec();
                text.extend_from_slice(&error.message());
                Reply::new(&mut connection.output, connection.session.resp3).error(&text);
                connection.session.close = true;
            } else {
                connection.protocol_error = Some(error);
            }
        }
        let deadline = connection.deadline();
        if deadline != connection.timer {
            self.timers.change(place, std::mem::replace(&mut connection.timer, deadline), deadline);
        }
        if matches!(connection.hold, Hold::Contended(_))
            && !std::mem::replace(&mut connection.listed_as_parked, true)
        {
            self.parked.push(place);
        }
        if connection.holds_replies() {
            connection.release_replies(self.engine.journal.covered());
            if connection.holds_replies() && self.engine.journal.state().failed {
                connection.doom = Some(NOT_DURABLE);
            }
        }
        connection.look_at_output_limit();
        let over_limit = connection.doom == Some(OVER_OUTPUT_LIMIT);
        let sent = if over_limit { 0 } else { connection.send(limits::WRITE_PER_TURN) };
        if sent > 0 {
            self.turn.stats.net_output_bytes.add(sent as u64);
            self.turn.stats.writes_processed.add(1);
        }
        connection.publish(self.turn.steady);
        if self.limits_client_memory {
            self.engine.clients.count_memory(&connection.session.client);
        }
        if connection.session.close && connection.output.is_empty() {
            connection.doom.get_or_insert("it asked to");
        }
        if connection.is_finished() {
            connection.doom.get_or_insert("the client closed the connection");
        }
        if connection.over_output_limit(&self.turn.config, self.turn.steady) {
            connection.doom = Some(OVER_OUTPUT_LIMIT);
        }
        if connection.doom.is_some() {
            return self.close(place);
        }
        if connection.awaits_journal() {
            self.await_journal(place);
        }
        let Some(connection) = &mut self.connections[place] else { return };
        if connection.wants_another_turn(self.turn.steady) {
            self.schedule(place);
        }
    }

    /// Remembers a connection that waits for the journal, and lets it look once more: the journal
    /// may have got there before it knew that somebody waits.
    fn await_journal(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        if std::mem::replace(&mut connection.listed_as_waiting, true) {
            return;
        }
        self.awaiting_journal.push(place);
        self.coalescing.note_held();
        self.mailbox.await_journal();
        let before = connection.held_count();
        connection.release_replies(self.engine.journal.covered());
        let over = match connection.hold {
            Hold::AwaitsSync(wait) => wait.is_over(&*self.engine.journal, self.turn.steady),
            _ => false,
        };
        if over || connection.held_count() < before {
            self.schedule(place);
        }
    }

    fn close(&mut self, place: usize) {
        let Some(mut connection) = self.connections[place].take() else { return };
        let client = &connection.session.client;
        let reason = connection.doom.unwrap_or("the server stops");
        let line = format!("Client closed: id={} addr={}: {reason}", client.id, client.address);
        self.engine.host.log(LogLevel::Verbose, &line);
        if connection.doom == Some(OVER_OUTPUT_LIMIT) {
            self.turn.stats.output_buffer_limit_disconnections.add(1);
        }
        self.places.remove(&client.id);
        self.timers.change(place, connection.timer, None);
        if matches!(connection.hold, Hold::AwaitsSync(_)) {
            self.engine.end_sync_wait(&connection.session);
        }
        let inside = self.gate.enter();
        if let Hold::Blocked(waiter) = &connection.hold {
            // Claimed or served meanwhile: either way nobody serves it from now on.
            waiter.claim();
            self.engine.end_wait(inside.presence(), &connection.session, waiter);
        }
        self.engine.close_session(inside.presence(), &mut connection.session);
        drop(inside);
        if let Some(buffers) = connection.close() {
            self.engine.host.drop_later(buffers);
        }
        self.free.push(place);
        self.mailbox.connections.fetch_sub(1, Relaxed);
    }

    fn recycle(&mut self, mut batch: Vec<usize>) {
        // The list that was filled meanwhile is next turn's; the old one gives its space.
        batch.clear();
        if self.scheduled.is_empty() {
            self.scheduled = batch;
        }
    }

    /// Now and then: idle connections, paused ones, limits that only time exceeds.
    fn tick(&mut self) {
        if self.turn.steady < self.next_tick {
            return;
        }
        self.next_tick = self.turn.steady + TICK.as_millis() as u64;
        self.give_back_space();
        self.engine.clean_slots(self.gate.enter().presence());
        let timeout = u64::from(self.turn.config.timeout) * 1000;
        // Those that were idle when the limit was set have to be counted too.
        self.limits_client_memory = memory_limit(&self.turn.config).is_some();
        for place in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[place] else { continue };
            if self.limits_client_memory {
                self.engine.clients.count_memory(&connection.session.client);
            }
            // Publishers go by it, and it may have been changed since the client was served.
            connection.session.limit_output(&self.turn.config, &mut connection.output);
            if connection.is_idle_beyond(timeout, self.turn.steady) {
                connection.doom = Some("it was idle for longer than timeout");
            }
            let overdue = connection.over_soft_limit_since.is_some();
            if connection.doom.is_some() || overdue || !matches!(connection.hold, Hold::None) {
                self.schedule(place);
            }
        }
    }

    /// Tells the engine, where a limit is set, in how much space requests are read and parsed. The
    /// buffers of connections count as far as they are for this turn only.
    fn note_scratch(&mut self, batch: &[usize]) {
        if self.turn.config.maxmemory == 0 {
            return;
        }
        let connections = batch.iter().filter_map(|&place| self.connections[place].as_ref());
        let lent: usize = connections
            .map(|connection| connection.input.capacity().min(2 * limits::READ_PER_TURN))
            .sum();
        let spare: usize = self.buffers.iter().map(Vec::capacity).sum();
        let parsed = self.items.capacity() * size_of::<Item>()
            + size_of_val(self.args.spare_capacity_mut())
            + size_of_val(self.args.as_slice())
            + size_of_val(self.keys.spare_capacity_mut())
            + size_of_val(self.keys.as_slice());
        self.engine.note_scratch(&mut self.turn, lent + spare + parsed);
    }

    /// Frees what a large batch has left behind. A load that goes on has it again in no time.
    fn give_back_space(&mut self) {
        self.items.shrink_to(WINDOW);
        self.args.shrink_to(WINDOW);
        self.keys.shrink_to(WINDOW);
        self.buffers.retain(|buffer| buffer.capacity() <= limits::READ_BUFFER);
    }

    fn flush_and_close(&mut self) {
        let until = base::clock::steady_ms() + FLUSH_ON_STOP;
        for place in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[place] {
                while !connection.output.is_empty()
                    && connection.doom.is_none()
                    && base::clock::steady_ms() < until
                {
                    connection.writable = true;
                    connection.release_replies(self.engine.journal.covered());
                    if connection.send(usize::MAX) == 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            }
            self.close(place);
        }
    }
}

/// Brings near what a window of commands lies in: slots, then buckets, then entries.
fn prefetch(
    engine: &Engine,
    presence: Presence<'_>,
    connections: &[Option<Box<Connection>>],
    keys: &[KeyAt],
    window: &[Item],
) {
    let (Some(first), Some(last)) = (window.first(), window.last()) else { return };
    let all = &keys[first.keys.start..last.keys.end];
    if all.len() < 2 {
        return;
    }
    engine.prefetch_slots(all);
    let database = |item: &Item| {
        connections[item.place].as_ref().map_or(0, |connection| connection.session.database)
    };
    for item in window {
        engine.prefetch_buckets(presence, database(item), &keys[item.keys.clone()]);
    }
    for item in window {
        engine.prefetch_entries(presence, database(item), &keys[item.keys.clone()]);
    }
}

/// Runs a command of the batch, or puts it behind those of its connection that are held back.
fn execute(
    engine: &Engine,
    turn: &mut Turn,
    connection: &mut Connection,
    item: &Item,
    ranges: &[ArgRange],
    keys: &[KeyAt],
    authority: Authority<'_>,
) {
    let from = connection.output.end();
    let argv = connection.parser.arguments(&connection.input, ranges);
    if !connection.runs() {
        if !connection.session.close && connection.doom.is_none() {
            connection.pending.push_back(OwnedArguments::from(argv));
        }
        return;
    }
    let request = Request { argv, row: item.row, keys };
    let (session, output) = (&mut connection.session, &mut connection.output);
    let outcome = engine.execute(turn, session, request, authority, output);
    if !matches!(outcome, Outcome::Done) {
        let held_back = held_back(argv, &outcome);
        connection.hold_back(outcome, held_back, turn.contended_slot);
    }
    if turn.holds_replies() {
        connection.hold_replies(from);
    }
    connection.look_at_output_limit();
}

/// Runs a command that was held back.
fn run_owned(
    engine: &Engine,
    turn: &mut Turn,
    connection: &mut Connection,
    command: OwnedArguments,
    authority: Authority<'_>,
) {
    let argv = command.view();
    let mut keys = Vec::new();
    let row = engine.prepare(argv, &mut keys);
    let request = Request { argv, row, keys: &keys };
    turn.enter(engine);
    let from = connection.output.end();
    let (session, output) = (&mut connection.session, &mut connection.output);
    let outcome = engine.execute(turn, session, request, authority, output);
    if turn.holds_replies() {
        connection.hold_replies(from);
    }
    if !matches!(outcome, Outcome::Done) {
        let command = needs_another_try(&outcome).then_some(command);
        connection.withhold_what_waits(&outcome, from);
        connection.hold_back(outcome, command, turn.contended_slot);
    }
    connection.look_at_output_limit();
}

/// Runs a command again that found a slot locked, or needs all of them, if there is use in that.
fn try_again(engine: &Engine, gate: &Gate, turn: &mut Turn, connection: &mut Connection) {
    let Hold::Contended(parked) = &mut connection.hold else { return };
    if !parked.may_try(engine, Instant::now()) {
        return;
    }
    let Hold::Contended(mut parked) = std::mem::replace(&mut connection.hold, Hold::None) else {
        return;
    };
    let first = connection.pending.pop_front().expect("what is held back is pending");
    let inside = gate.enter();
    let authority = match parked.reservation() {
        Some(reservation) => Authority::Program(reservation, inside.presence()),
        None => Authority::Ordinary(inside.presence()),
    };
    run_owned(engine, turn, connection, first, authority);
    if let Hold::Contended(_) = connection.hold {
        // It goes on waiting where it was, with what it has reserved.
        parked.note_failure(turn.contended_slot);
        connection.hold = Hold::Contended(parked);
    }
}

/// Whether a command that was not done is to run again: one whose client waits has run.
fn needs_another_try(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Blocked(_) | Outcome::AwaitsSync(_))
}

/// A copy of a command that has to be tried again.
fn held_back(argv: Arguments<'_>, outcome: &Outcome) -> Option<OwnedArguments> {
    needs_another_try(outcome).then(|| OwnedArguments::from(argv))
}
