//! The primary's side: the thread that serves the replicas of this server.
//!
//! A connection that sends PSYNC or SYNC leaves its worker and comes here ([`Handover`]). Workers
//! do not serve replicas: a worker whose clients write would then also send what they have written,
//! and a turn of the others would wait for that. This thread sends what has gathered for all
//! replicas in one go, and a worker pays one wake-up at most for all that its turn has appended.
//!
//! | file | what it answers |
//! |---|---|
//! | `attach` | does a new one go on where it was, or does it need a copy? |
//! | `copies` | who gets the next copy, and when does it begin? |
//! | `link` | what does one replica get next, and what does it say? |
//! | `copy` | who makes the full copy for those that attach together? |
//! | `fan_out` | how do several take one copy, each at its own pace? |
//!
//! The stream of writes lies in the backlog, which keeps what the slowest replica still needs,
//! until `client-output-buffer-limit replica` ends its link.

mod attach;
mod copies;
mod copy;
mod fan_out;
mod link;

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use base::limits;
use engine::engine::Engine;
use engine::host::LogLevel;
use engine::journal::backlog::Reader;
use engine::session::replicas::GETACK;
use engine::session::replicas::introduction::Loads;
use mio::{Events, Poll, Token, Waker};
use persist::cuts::Cuts;
use store::gate::Gate;

use super::mailbox::{Mailbox, WAKE, Wakers};
use super::transport::Readiness;
use copy::Copy;
use link::{Known, LEFT_BEHIND, Link, STREAM_BROKE, Source, Stage};
use process::thread;

/// How often it looks at times and limits, at least.
const TICK: Duration = Duration::from_millis(100);
/// After something of the stream was sent it waits so long for more, unless a client waits for
/// replicas. So what many turns of workers append is sent together.
const GATHERING: Duration = Duration::from_micros(300);
/// The rest while something must not be seen yet: a write that is on its way to its file.
const UNSHOWN_PAUSE: Duration = Duration::from_millis(2);
/// Between two signs of life for replicas that wait for their copy.
const SIGN_OF_LIFE_MS: u64 = 1000;
/// How long it goes on sending when the server stops.
const FLUSH_ON_STOP: Duration = Duration::from_millis(500);

/// Between two lines of the log that say that writers are slowed down.
const SLOWED_LINE_MS: u64 = 60_000;

/// What a primary sends now and then, so that its replicas know that it lives.
const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

/// Starts the thread.
///
/// # Errors
/// A poll instance or the thread cannot be made.
pub(super) fn start(
    engine: Arc<Engine>,
    wakers: &Arc<Wakers>,
    cuts: &Arc<Cuts>,
) -> io::Result<JoinHandle<()>> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKE)?;
    // The only failure is a full counter, which wakes the thread as well.
    let (number, mailbox) = wakers.register_replicas(move || drop(waker.wake()));
    let wake = |mailbox: &Arc<Mailbox>| {
        let mailbox = Arc::clone(mailbox);
        move || mailbox.wake()
    };
    let own_thread = Arc::<OnceLock<Thread>>::default();
    engine.replicas.connect({
        let (wake, own_thread) = (wake(&mailbox), Arc::clone(&own_thread));
        move || {
            wake();
            // It may be gathering.
            own_thread.get().inspect(|thread| thread.unpark());
        }
    });
    let reader = engine.journal.changes().map(|own| own.add_reader(Box::new(wake(&mailbox))));
    let (wakers, cuts) = (Arc::clone(wakers), Arc::clone(cuts));
    let gate = engine.gates.register();
    thread::start("replicas", move || {
        own_thread.get_or_init(std::thread::current);
        let now = base::clock::monotonic_ms();
        Serving {
            engine,
            gate,
            wakers,
            mailbox,
            number,
            poll,
            cuts,
            reader,
            links: Vec::new(),
            copy: None,
            copy_pin: None,
            waits_since: None,
            no_copy_before: now,
            next_tick: now,
            next_ping: now,
            next_sign: now,
            last_sent: Instant::now(),
            seen: 0,
            slowed_at: now,
            next_slowed_line: now,
        }
        .run();
    })
}

/// The thread's own state.
struct Serving {
    engine: Arc<Engine>,
    gate: Gate,
    wakers: Arc<Wakers>,
    mailbox: Arc<Mailbox>,
    /// The number of its mailbox.
    number: usize,
    poll: Poll,
    cuts: Arc<Cuts>,
    reader: Option<Arc<Reader>>,
    /// By the tokens of their sockets.
    links: Vec<Option<Box<Link>>>,
    /// The copy that is being made.
    copy: Option<Arc<Copy>>,
    /// The stream is kept from here on for a copy that has not begun yet.
    copy_pin: Option<u64>,
    /// Since when a replica waits for its copy, in milliseconds of the monotonic clock.
    waits_since: Option<u64>,
    /// The last copy could not begin: no other begins before this millisecond.
    no_copy_before: u64,
    next_tick: u64,
    next_ping: u64,
    next_sign: u64,
    /// When something of the stream was sent last.
    last_sent: Instant,
    /// The end of the stream when it was looked at last.
    seen: u64,
    /// When it was looked last at how long writers have to wait.
    slowed_at: u64,
    /// The log says no earlier again that writers are slowed down.
    next_slowed_line: u64,
}

impl Serving {
    fn run(mut self) {
        let mut events = Events::with_capacity(limits::EVENTS_PER_TURN);
        let mut timeout = TICK;
        while !self.mailbox.stopping.load(Acquire) {
            let timeout_now = self.mailbox.wait(timeout);
            if let Err(error) = self.poll.poll(&mut events, Some(timeout_now))
                && error.kind() != io::ErrorKind::Interrupted
            {
                let line = format!("Waiting for events of replicas failed: {error}");
                self.engine.host.log(LogLevel::Warning, &line);
            }
            for event in &events {
                let Token(index) = event.token();
                if event.token() != WAKE
                    && let Some(link) = self.links.get_mut(index).and_then(Option::as_mut)
                {
                    link.note_readiness(Readiness::from(event));
                }
            }
            timeout = self.round();
            process::memory::publish();
        }
        self.stop();
    }

    /// One round over all links. Returns how long the next one may wait for an event.
    fn round(&mut self) -> Duration {
        for handover in self.mailbox.take().handovers {
            self.adopt(handover);
        }
        let asks = self.engine.replicas.take_asked();
        if self.links.iter().all(Option::is_none) && self.copy.is_none() {
            self.slow_writers(base::clock::monotonic_ms());
            return TICK;
        }
        let breaks = self.engine.replication.breaks();
        for link in self.links.iter_mut().flatten().filter(|link| link.breaks != breaks) {
            link.close(STREAM_BROKE);
        }
        self.hear();
        if asks && !self.engine.replicas.is_empty() {
            self.put(GETACK);
        }
        self.look_at_copy();
        let now = base::clock::monotonic_ms();
        if now >= self.next_tick {
            self.next_tick = now + TICK.as_millis() as u64;
            self.tick(now);
        }
        self.begin_copy(now);
        let elapsed = self.last_sent.elapsed();
        if !asks && elapsed < GATHERING && self.copy.is_none() {
            std::thread::park_timeout(GATHERING - elapsed);
            if self.engine.replicas.take_asked() {
                self.put(GETACK);
            }
        }
        let more = self.send();
        self.close_some();
        self.slow_writers(now);
        let unread = self.links.iter().flatten().any(|link| link.has_unread());
        if more || unread { Duration::ZERO } else { self.rest() }
    }

    /// How long it may rest: not at all when something was appended meanwhile.
    fn rest(&self) -> Duration {
        let (Some(backlog), Some(reader)) = (self.engine.journal.changes(), &self.reader) else {
            return TICK;
        };
        let follows = |link: &Link| matches!(link.stage, Stage::Follows { .. });
        if !self.links.iter().flatten().any(|link| follows(link)) {
            return TICK;
        }
        if self.engine.journal.shown() < self.seen {
            return UNSHOWN_PAUSE;
        }
        if backlog.begin_rest(reader, self.seen) { TICK } else { Duration::ZERO }
    }

    /// Puts a command into the stream, unless that is the stream of another primary. The next
    /// effect names its database anew: nobody knows here which one is selected.
    fn put(&self, command: &[u8]) {
        let engine = &self.engine;
        // Inside the gate this server stays what it is.
        let inside = self.gate.enter();
        // Where writes are held, another server begins: with anything behind that in its journal
        // this one could not go on in the stream of the other. Replicas were asked as last.
        let hands_over = engine.pause.is_handing_over();
        let may_append = !engine.replication.is_replica() && !hands_over;
        if may_append {
            engine.journal.append_raw(command, None);
        }
        drop(inside);
        if may_append {
            engine.journal.notify();
        }
    }

    /// What to add to the journal's offsets for those that replicas know.
    fn ahead(&self) -> u64 {
        self.engine.journal.changes().map_or(0, |backlog| backlog.in_history(0))
    }

    // ---- Links ----------------------------------------------------------------------------------

    /// Takes what replicas say.
    fn hear(&mut self) {
        let known = Known { ahead: self.ahead(), end: self.engine.journal.end() };
        let monotonic = base::clock::monotonic_ms();
        let mut is_further = false;
        for link in self.links.iter_mut().flatten() {
            is_further |= link.hear(known, monotonic);
        }
        if is_further {
            self.wakers.note_journal_progress();
            if self.engine.failover.is_on() {
                self.engine.replication.wake();
            }
        }
    }

    /// Sends what there is. Returns whether there may be more at once.
    fn send(&mut self) -> bool {
        let Some(backlog) = self.engine.journal.changes() else { return false };
        // What waits for a socket is announced by the socket.
        self.seen = backlog.newest();
        let shown = self.engine.journal.shown();
        let (mut more, mut streamed) = (false, false);
        for link in self.links.iter_mut().flatten() {
            let before = link.needs();
            more |= link.send(&self.engine, backlog, shown);
            streamed |= link.needs() != before;
        }
        if streamed {
            self.last_sent = Instant::now();
            self.pin();
        }
        more
    }

    /// Has the backlog keep what a replica still needs.
    fn pin(&self) {
        if let Some(backlog) = self.engine.journal.changes() {
            let needed = self.links.iter().flatten().filter_map(|link| link.needs());
            backlog.keep_from(needed.chain(self.copy_pin).min());
        }
    }

    /// Looks at times and limits.
    fn tick(&mut self, now: u64) {
        let config = self.engine.config.snapshot();
        let Some(backlog) = self.engine.journal.changes() else { return };
        backlog.note_use(now);
        let period = u64::from(config.repl_ping_replica_period) * 1000;
        // It may have become shorter.
        self.next_ping = self.next_ping.min(now + period);
        // While writes are held, nothing enters the stream: the ping comes right after that.
        if now >= self.next_ping && !self.engine.pause.is_handing_over() {
            self.next_ping = now + period;
            // The stream stands still when the server stops, like the data that is being saved.
            if !self.engine.pause.is_stopping() {
                self.put(PING);
                if let Some(slots) = self.engine.said_slots() {
                    self.put(&slots);
                }
            }
        }
        let says = now >= self.next_sign;
        if says {
            self.next_sign = now + SIGN_OF_LIFE_MS;
        }
        let (end, timeout) = (backlog.newest(), u64::from(config.repl_timeout) * 1000);
        for link in self.links.iter_mut().flatten() {
            if link.replica.client.is_killed() {
                link.close("it was killed");
            }
            if self.engine.replicas.is_replaced(&link.replica, now) {
                link.close("its node has connected again, and is silent here");
            }
            link.look_at_limits(&self.engine, end, now);
            match &link.stage {
                Stage::Waits | Stage::Copy { source: Source::Unfinished, .. } if says => {
                    link.say_that_it_lives();
                }
                Stage::Copy { source: Source::Chunks { from, .. }, .. }
                    if !from.reads(link.id()) =>
                {
                    link.close(LEFT_BEHIND);
                }
                Stage::Copy { .. } | Stage::Done if now.saturating_sub(link.moved_at) > timeout => {
                    link.close("it took nothing of its copy for longer than repl-timeout");
                }
                Stage::Loads { .. } | Stage::Follows { .. }
                    if !link.replica.is_silent && link.replica.silent_for(now) > timeout =>
                {
                    link.close("it was silent for longer than repl-timeout");
                }
                _ => {}
            }
        }
        self.tell_of_fields();
    }

    /// Has writers wait for a part of the time, if a replica falls behind.
    fn slow_writers(&mut self, now: u64) {
        let (config, end, mut tenths) = (self.engine.config.load(), self.seen, 0);
        // A replica that has replicas of its own has no writers: it follows as fast as it can.
        let leads = !self.engine.replication.is_replica();
        let all = self.links.iter_mut().flatten().filter(|own| own.close_reason.is_none());
        for link in all.filter(|_| leads) {
            tenths = link.slows_writers(&config, end, now).max(tenths);
        }
        drop(config);
        let before = self.engine.replicas.slowing.set(tenths);
        if before > 0 {
            let passed = now.saturating_sub(self.slowed_at);
            self.engine.replicas.counts.slowed_ms.fetch_add(passed, Relaxed);
        }
        self.slowed_at = now;
        if before == 0 && tenths > 0 && now >= self.next_slowed_line {
            self.next_slowed_line = now + SLOWED_LINE_MS;
            let all = self.links.iter().flatten().map(|link| (link.waiting(end), link.name()));
            let (waiting, name) = all.max().unwrap_or_default();
            let line = format!(
                "Writers are slowed down: {} MB wait for replica {name}, whose link would end at \
                 the limit of client-output-buffer-limit replica",
                waiting >> 20
            );
            self.log(LogLevel::Warning, &line);
        }
    }

    /// Says in the log, once for each, which replicas follow that may not know what HEXPIRE asks of
    /// them. Their data differs from then on, and another copy would not help.
    fn tell_of_fields(&mut self) {
        let keyspace = &self.engine.keyspace;
        let concerns = |own: &Link| {
            let follows = matches!(own.stage, Stage::Follows { .. } | Stage::Loads { .. });
            follows && !own.was_told && own.introduction().loads() == Loads::Common
        };
        if !self.links.iter().flatten().any(|link| concerns(link))
            || !keyspace.has_expiring_fields(None)
        {
            return;
        }
        for link in self.links.iter_mut().flatten().filter(|own| concerns(own)) {
            link.was_told = true;
            let line = format!(
                "Replica {} follows, fields of hashes expire, and it has not said that it knows \
                 such fields. If it does not, its data differs from now on",
                link.name()
            );
            self.engine.host.log(LogLevel::Warning, &line);
        }
    }

    /// Closes the links that have a reason.
    fn close_some(&mut self) {
        let mut closed = false;
        for own in &mut self.links {
            let Some(link) = own.take_if(|link| link.close_reason.is_some()) else { continue };
            closed = true;
            let reason = link.close_reason.as_deref().unwrap_or_default();
            let line = format!("The link with replica {} ends: {reason}", link.name());
            self.engine.host.log(LogLevel::Warning, &line);
            // The walk must not wait for it, even if it has not begun.
            if let Some(copy) = &self.copy {
                copy.leave(link.id());
            }
            if let Stage::Copy { source: Source::Chunks { from, .. }, .. } = &link.stage {
                from.leave(link.id());
            }
            self.engine.replicas.remove(&link.replica);
            let client = Arc::clone(&link.replica.client);
            self.engine.clients.remove(client.id);
            drop(link);
            self.engine.note_closed(&client);
            self.mailbox.connections.fetch_sub(1, Relaxed);
        }
        if closed {
            self.pin();
            // A quorum may be there without it.
            self.wakers.note_journal_progress();
        }
    }

    /// The server stops: what can be sent at once is sent.
    fn stop(&mut self) {
        let until = Instant::now() + FLUSH_ON_STOP;
        if let Some(copy) = &self.copy {
            copy.give_up();
        }
        while self.send() && Instant::now() < until {}
        for link in self.links.iter_mut().flatten() {
            link.close("the server stops");
        }
        self.close_some();
    }

    fn log(&self, level: LogLevel, line: &str) {
        self.engine.host.log(level, line);
    }
}
