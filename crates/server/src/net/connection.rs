//! One connection: its transport and protocol, its buffers, its session, and what it waits for.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::Ticks;
use base::limits;
use config::Config;
use engine::engine::Engine;
use engine::observe::stats::ThreadStats;
use engine::run::turn::Turn;
use engine::session::Session;
use resp::output::Output;
use resp::reply::Reply;

use super::http::read_on;
use super::pending::{PendingCommands, WaitsFor};
use super::protocol::Protocol;
use super::transport::{Received, Transport};

/// Why a connection is closed that lets too much output wait.
pub(super) const OVER_OUTPUT_LIMIT: &str = "its output went over client-output-buffer-limit";

/// Read buffers that a worker keeps for reuse.
const POOLED_BUFFERS: usize = 256;

/// Replies that wait until the journal covers an offset.
struct DeferredReply {
    /// Where they begin in the stream of all output; they end at the next such place.
    from: u64,
    offset: u64,
    since: Ticks,
}

/// All replies of a connection that wait for the journal, places and offsets ascending.
#[derive(Default)]
pub(super) struct Deferred {
    replies: VecDeque<DeferredReply>,
    /// Where the output ended when replies were added that had been written before.
    held: u64,
}

impl Deferred {
    /// Lets the output behind this place wait for this offset of the journal.
    #[inline]
    pub(super) fn add(&mut self, from: u64, offset: u64) {
        if self.replies.back().is_none_or(|last| last.offset < offset) {
            self.replies.push_back(DeferredReply { from, offset, since: Ticks::now() });
        }
    }

    /// Lets output wait that is written already, as far as it was neither sent nor waits.
    #[cold]
    fn hold(&mut self, output: &Output, offset: u64) {
        let sent = output.end() - output.len() as u64;
        self.add(sent.max(self.held), offset);
        self.held = output.end();
    }
}

/// How long a client has taken nothing of what waits for it.
#[derive(Default)]
struct Stuck(Option<(u64, u64)>);

impl Stuck {
    /// Notes how many bytes were sent by this millisecond of the steady clock, if more wait that the client
    /// has to take. Returns whether it has taken nothing for too long.
    fn note(&mut self, waits: bool, sent: u64, steady: u64) -> bool {
        let since = match self.0 {
            Some((before, since)) if before == sent => since,
            _ => steady,
        };
        self.0 = waits.then_some((sent, since));
        waits && steady.saturating_sub(since) > limits::PATIENCE_OF_SENDING_MS
    }
}

/// See the module's text.
pub(super) struct Connection {
    pub(super) transport: Transport,
    pub(super) session: Session,
    pub(super) protocol: Protocol,
    /// Bytes that were received and not parsed, or parsed and not executed yet.
    pub(super) input: Vec<u8>,
    pub(super) output: Output,
    /// The parts of the output that wait for the journal.
    pub(super) deferred_replies: Deferred,
    /// Where replies that were written but wait for the host begin in the stream of all output.
    pub(super) deferred_from: Option<u64>,
    /// It is in the worker's list of connections that wait for the journal.
    pub(super) listed_as_waiting: bool,
    /// Commands that were parsed but cannot run yet.
    pub(super) pending: PendingCommands,
    /// The socket may have more to read.
    pub(super) readable: bool,
    /// The peer has closed its side: reading goes on to the end of its data.
    pub(super) read_closed: bool,
    /// The peer has sent urgent data. A read ends there, so a short one does not say that no more is there.
    pub(super) urgent: bool,
    /// Everything that the peer sent was read. The connection is closed when it is answered.
    pub(super) ended: bool,
    /// The socket may take more.
    pub(super) writable: bool,
    /// It is in the worker's list for the next turn.
    pub(super) scheduled: bool,
    /// Set when it must be closed: the reason, for the log.
    pub(super) doom: Option<&'static str>,
    /// Its share of the turn is used up: more commands may lie in the buffer.
    pub(super) backlog: bool,
    /// Input that it received while its commands waited was not parsed.
    pub(super) unparsed: bool,
    /// It is in the worker's list of connections whose commands wait for slots.
    pub(super) listed_as_parked: bool,
    /// It is in the worker's list of connections that read on in the kept changes.
    pub(super) listed_as_behind: bool,
    /// Its deadline that the worker's timers know.
    pub(super) timer: Option<u64>,
    /// Since when the output is above the soft limit, in milliseconds of the steady clock.
    pub(super) over_soft_limit_since: Option<u64>,
    stuck: Stuck,
    /// Until when what comes is thrown away, when the last answer was sent.
    lingers_until: Option<u64>,
    /// When [`super::coalesce::Coalescing`] counted it last.
    pub(super) counted_in_window: u32,
}

impl Connection {
    pub(super) fn new(transport: Transport, protocol: Protocol, session: Session) -> Connection {
        Connection {
            transport,
            session,
            protocol,
            input: Vec::new(),
            output: Output::new(),
            deferred_replies: Deferred::default(),
            deferred_from: None,
            listed_as_waiting: false,
            pending: PendingCommands::default(),
            readable: true,
            read_closed: false,
            urgent: false,
            ended: false,
            writable: true,
            scheduled: false,
            doom: None,
            backlog: false,
            unparsed: false,
            listed_as_parked: false,
            listed_as_behind: false,
            timer: None,
            over_soft_limit_since: None,
            stuck: Stuck::default(),
            lingers_until: None,
            counted_in_window: 0,
        }
    }

    /// Whether its commands may run.
    #[inline]
    pub(super) fn runs(&self) -> bool {
        self.pending.runs() && !self.is_ending()
    }

    /// Whether it runs no further command, because it is about to be closed.
    #[inline]
    pub(super) fn is_ending(&self) -> bool {
        self.doom.is_some() || self.session.close || self.session.client.is_killed()
    }

    /// Whether commands that were parsed earlier may have to run now.
    #[inline]
    pub(super) fn has_pending(&self) -> bool {
        let may_go_on = match &self.pending.waits_for {
            WaitsFor::Nothing => false,
            WaitsFor::Blocked(wait) => wait.awaits_sync(),
            WaitsFor::Contended(_) | WaitsFor::NeedsGates(_) | WaitsFor::Paused(_) => true,
        };
        may_go_on || !self.pending.is_empty()
    }

    /// Whether its commands wait, for any reason, so that further input has to wait too.
    #[inline]
    pub(super) fn defers_input(&self) -> bool {
        !self.pending.is_empty() || !self.pending.runs() || self.is_choked()
    }

    /// Whether so many answers wait for a client of HTTP, or a part of one, that it gets no more before it
    /// has taken some. A client of Redis may let as much wait as `client-output-buffer-limit` says.
    #[inline]
    pub(super) fn is_choked(&self) -> bool {
        match &self.protocol {
            Protocol::Resp(_) => false,
            Protocol::Http(http) => {
                self.output.len() > limits::HTTP_PENDING || http.exchanges.streams()
            }
        }
    }

    /// Writes the answers to earlier requests of HTTP that need no command. When they choke the connection,
    /// the next command has to wait: what it replies would be taken for theirs.
    #[inline]
    pub(super) fn answer_earlier(&mut self, now: u64) {
        if let Protocol::Http(http) = &mut self.protocol {
            http.exchanges.answer_ready(now, &mut self.output);
        }
    }

    /// Whether a client of HTTP, or one that has ended its stream, has taken nothing of its answer for too
    /// long. To be asked now and then.
    pub(super) fn is_stuck(&mut self, steady: u64) -> bool {
        let (waits, sent) = (self.sendable() > 0, self.output.end() - self.output.len() as u64);
        let may_be = waits
            && match &self.protocol {
                Protocol::Resp(_) => self.ended,
                Protocol::Http(http) => http.is_answering(),
            };
        self.stuck.note(may_be, sent, steady)
    }

    /// How much to read in this turn. Input that was received comes first: a fast sender must not fill
    /// the memory. When commands wait for slots or gates, little is read beyond them: the rest stays in the
    /// socket, where it slows its sender down.
    pub(super) fn reading_share(&self) -> usize {
        if self.waits_for_others() {
            limits::READ_PER_TURN
        } else if self.backlog {
            0
        } else if !self.defers_input() {
            limits::READ_PER_TURN
        } else if !self.protocol.is_receiving_apart() {
            limits::READ_PER_TURN.saturating_sub(self.unparsed_input())
        } else {
            0
        }
    }

    /// Whether its command may have to wait for as long as other clients like. Then all that comes is read,
    /// up to `client-query-buffer-limit`: the end of the stream comes after it, and shows that the client
    /// has gone.
    fn waits_for_others(&self) -> bool {
        matches!(self.pending.waits_for, WaitsFor::Blocked(_) | WaitsFor::Paused(_))
    }

    /// Bytes of the input that were received, but not parsed to the end of a command.
    fn unparsed_input(&self) -> usize {
        self.input.len() - self.protocol.done()
    }

    /// Reads about this many bytes, or fewer if they are worth a look first: the protocol may find that a
    /// long string begins, and the rest of it is to be received in its place. Returns how many.
    pub(super) fn receive(&mut self, share: usize) -> usize {
        let mut total = 0;
        while self.readable && total < share && (total == 0 || self.protocol.is_receiving_apart()) {
            let received = match self.protocol.receives_apart() {
                Some((bytes, room)) => self.transport.receive(bytes, room),
                None => {
                    if self.input.capacity() - self.input.len() < limits::READ_BUFFER / 4 {
                        self.input.reserve(limits::READ_BUFFER.max(self.input.len()));
                    }
                    // A buffer that has grown for a long command has room for more than a connection
                    // may send before that is parsed.
                    let room = (self.input.capacity() - self.input.len()).min(share);
                    self.transport.receive(&mut self.input, room)
                }
            };
            match received {
                Received::Bytes { count, drained } => {
                    total += count;
                    // The end of the stream may have come with the same event.
                    self.readable = !drained || self.read_closed || self.urgent;
                    self.protocol.note_received();
                }
                Received::Interrupted => break,
                Received::Nothing => {
                    self.readable = false;
                    break;
                }
                Received::End => {
                    self.end_input();
                    break;
                }
            }
        }
        total
    }

    /// Whether it stays open for some time, though all is said, because the client may be sending still. What
    /// nobody has read would make the system take back what the client has not received yet.
    pub(super) fn lingers(&mut self, steady: u64) -> bool {
        self.readable = true;
        let thrown_away = self.discard_input();
        if self.lingers_until.is_none() {
            // Most clients have sent nothing more. The rest of what the others send may be on its way.
            let is_more = self.readable || thrown_away > 0 || self.unparsed_input() > 0;
            if self.ended || !(is_more || self.protocol.may_be_sending()) {
                return false;
            }
            self.transport.end_output();
            self.lingers_until = Some(steady + limits::LINGER_MS);
        }
        !self.ended && self.lingers_until.is_some_and(|until| steady < until)
    }

    /// Whether the last answer was sent, and what still comes is thrown away.
    #[inline]
    pub(super) fn is_lingering(&self) -> bool {
        self.lingers_until.is_some()
    }

    /// Throws away what has come, for a while. Returns how many bytes.
    fn discard_input(&mut self) -> usize {
        let (mut thrown_away, mut count_of_all) = (Vec::with_capacity(limits::READ_BUFFER), 0);
        while self.readable && count_of_all < limits::READ_PER_TURN {
            thrown_away.clear();
            match self.transport.receive(&mut thrown_away, limits::READ_BUFFER) {
                Received::Bytes { count, drained } => {
                    count_of_all += count;
                    self.readable = !drained || self.read_closed || self.urgent;
                }
                Received::Interrupted => break,
                Received::Nothing => self.readable = false,
                Received::End => self.end_input(),
            }
        }
        count_of_all
    }

    fn end_input(&mut self) {
        self.ended = true;
        self.readable = false;
    }

    /// Defers the output after this place until the session's dependence is satisfied.
    #[inline]
    pub(super) fn defer_replies(&mut self, from: u64) {
        self.deferred_replies.add(from, self.session.depends_on);
    }

    /// Lets the replies of this turn, which are written already, wait for this offset of the journal.
    pub(super) fn hold_replies(&mut self, offset: u64) {
        self.deferred_replies.hold(&self.output, offset);
    }

    /// Releases deferred replies that depend on nothing after this offset.
    pub(super) fn release_replies(&mut self, covered: u64, stats: &ThreadStats) {
        while let Some(first) =
            self.deferred_replies.replies.pop_front_if(|first| first.offset <= covered)
        {
            stats.stages.commit.record(first.since.elapsed_ns(), 1);
        }
    }

    /// Writes the reply of a command that has waited, if `write` returns that there is one. Returns
    /// whether there is.
    pub(super) fn reply(
        &mut self,
        (engine, turn): (&Engine, &Turn),
        write: impl FnOnce(&Session, &mut Reply<'_>) -> bool,
    ) -> bool {
        let Connection { protocol, session, output, pending, .. } = self;
        match protocol {
            Protocol::Resp(_) => {
                let start = output.mark();
                let written = write(session, &mut Reply::new(output, session.resp3));
                if written && !session.end_reply() {
                    output.rollback(start);
                }
                written
            }
            Protocol::Http(http) => {
                let mut own = Output::new();
                let written = write(session, &mut Reply::new(&mut own, session.resp3));
                if written {
                    let next = http.exchanges.take_reply(engine, turn, session, &mut own, output);
                    next.into_iter().for_each(|next| pending.push_first(next));
                }
                written
            }
        }
    }

    /// Whether replies wait for the journal.
    #[inline]
    pub(super) fn defers_replies(&self) -> bool {
        !self.deferred_replies.replies.is_empty()
    }

    /// Places in the output from which replies wait for more than the ones before.
    pub(super) fn deferred_count(&self) -> usize {
        self.deferred_replies.replies.len()
    }

    /// Whether replies, or the client, wait for the journal.
    #[inline]
    pub(super) fn awaits_journal(&self) -> bool {
        self.defers_replies() || self.pending.sync_wait().is_some()
    }

    /// Bytes of output that wait for nothing but the socket.
    fn sendable(&self) -> usize {
        let waiting = self.output.len();
        let deferred = self.deferred_replies.replies.front().map(|first| first.from);
        let Some(from) = deferred.into_iter().chain(self.deferred_from).min() else {
            return waiting;
        };
        let sent = self.output.end() - waiting as u64;
        usize::try_from(from.saturating_sub(sent)).map_or(waiting, |free| free.min(waiting))
    }

    /// Sends waiting output, its share of this turn. Returns bytes sent.
    pub(super) fn send(&mut self, limit: usize) -> usize {
        let limit = limit.min(self.sendable());
        let mut total = 0;
        while self.writable && total < limit && !self.output.is_empty() {
            let offered = self.output.len().min(limit - total);
            match self.transport.write(&self.output, limit - total) {
                Ok(count) => {
                    self.output.advance(count);
                    total += count;
                    if count < offered && count < self.output.len() {
                        // The kernel took a part; more slices may still fit, so ask again.
                        continue;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.doom = Some("the connection failed while writing");
                    break;
                }
            }
        }
        total
    }

    /// Gives up the bytes of commands that were executed. An empty buffer goes back to the pool.
    pub(super) fn forget_executed(&mut self, pool: &mut Vec<Vec<u8>>) {
        self.forget_input();
        if !self.input.is_empty() {
            return;
        }
        if self.input.capacity() > 0 && pool.len() < POOLED_BUFFERS {
            let mut buffer = std::mem::take(&mut self.input);
            buffer.shrink_to(limits::READ_PER_TURN);
            pool.push(buffer);
        } else {
            self.input = Vec::new();
        }
    }

    /// Forgets the input that is finished with, when no command of the batch has arguments there.
    pub(super) fn forget_input(&mut self) {
        let done = self.protocol.compact_when_due(self.input.len());
        self.input.drain(done);
    }

    /// Whether it follows changes, is behind, and has sent most of its output.
    #[inline]
    pub(super) fn is_to_read_on(&self) -> bool {
        let Some(listener) = self.protocol.following() else { return false };
        let little_waits = self.output.len() <= limits::CHANGES_PENDING / 2;
        listener.behind().is_some() && little_waits && !self.session.close
    }

    /// Whether a request can go on now that had to wait until most of its output was sent.
    #[inline]
    fn is_to_go_on(&self) -> bool {
        let little_waits = self.output.len() <= limits::CHANGES_PENDING / 2;
        (self.protocol.goes_on() || self.protocol.streams()) && little_waits && !self.session.close
    }

    /// Lets such a request go on.
    pub(super) fn go_on(&mut self, now: u64) {
        if !self.is_to_go_on() {
            return;
        }
        let Connection { protocol, session, output, pending, .. } = self;
        match protocol {
            Protocol::Http(http) if http.exchanges.streams() => {
                http.exchanges.stream(now, session, output);
            }
            protocol => protocol.go_on().into_iter().for_each(|next| pending.push_first(next)),
        }
    }

    /// Whether something is still to be sent.
    pub(super) fn has_output(&self) -> bool {
        !self.output.is_empty() || self.protocol.streams()
    }

    /// Ends a connection that follows changes but sends something else.
    #[inline]
    pub(super) fn look_at_talk(&mut self) {
        if self.protocol.following().is_some() && self.input.len() > limits::READ_BUFFER {
            self.doom = Some("it sends while it follows changes");
        }
    }

    /// Lets a connection that follows changes read on, if it is behind.
    pub(super) fn read_on(&mut self, engine: &Engine) {
        let Connection { protocol, session, output, .. } = self;
        let Some(listener) = protocol.following() else { return };
        // Changes that it was told before it fell behind come first.
        let inbox = std::mem::take(&mut *session.client.inbox.lock());
        inbox.pushes.iter().for_each(|message| output.push_shared(message));
        session.close |= read_on(engine, listener, output);
    }

    /// Whether everything that the peer sent before it closed is answered, or waits and is given up with it.
    /// `paused` says whether CLIENT PAUSE suspends commands.
    pub(super) fn is_finished(&self, paused: bool) -> bool {
        let blocked = match self.pending.waits_for {
            // A client of HTTP may close its side when it has sent its request, and read the answer. A command
            // that takes something when it is served would take it for nobody if the client has gone.
            WaitsFor::Blocked(_) => !self.protocol.only_waits(),
            // A slow disk delays commands too, but they run before long, and are answered.
            WaitsFor::Paused(_) => paused,
            _ => false,
        };
        let running = self.pending.runs();
        let parsed = !self.backlog && !self.unparsed && !self.protocol.has_answer();
        let answered = self.pending.is_empty() && parsed;
        // Input after the command in which a client waits is not read while it waits, so the end of its
        // input may come after that. A client that follows changes has nothing more to say, but its
        // input does not show when it leaves.
        let follows = self.protocol.following().is_some() || self.protocol.goes_on();
        ((blocked || follows) && (self.ended || self.read_closed))
            || (self.ended && running && answered && (self.output.is_empty() || self.listens()))
    }

    /// Whether it gets messages that answer nothing.
    fn listens(&self) -> bool {
        self.session.monitor || self.session.subscriptions.as_ref().is_some_and(|own| own.any())
    }

    /// Whether there is something to do for it before its socket or another thread announces anything.
    pub(super) fn wants_another_turn(&self, now: u64) -> bool {
        let runnable = match self.pending.waits_for {
            WaitsFor::Nothing => {
                self.readable
                    || self.backlog
                    || self.unparsed
                    || !self.pending.is_empty()
                    || self.protocol.has_answer()
            }
            WaitsFor::Contended(_) | WaitsFor::NeedsGates(_) => false,
            WaitsFor::Blocked(_) => self.readable,
            WaitsFor::Paused(until) => until <= now || self.readable,
        };
        (runnable && !self.session.close && !self.is_choked())
            || (self.readable && self.is_lingering())
            || (self.writable && self.sendable() > 0)
            || self.is_to_go_on()
    }

    /// Closes the socket. Returns the buffers if freeing them would take long.
    pub(super) fn close(self) -> Option<Box<dyn Send>> {
        let large = self.output.memory() + self.query_memory() >= limits::FREED_LATER;
        let Connection { transport, output, input, protocol, pending, .. } = self;
        drop(transport);
        large.then(|| Box::new((output, input, protocol, pending)) as Box<dyn Send>)
    }

    /// Whether it has sent nothing for longer than `timeout` milliseconds (0: for ever).
    pub(super) fn is_idle_beyond(&self, timeout: u64, now: u64) -> bool {
        let exempt = !self.pending.runs() || self.listens() || self.protocol.following().is_some();
        let last = self.session.client.last_interaction.load(Relaxed);
        timeout > 0 && !exempt && now.saturating_sub(last) > timeout
    }

    /// Bytes of input that it has received and not executed, with the commands that MULTI queues, and without
    /// the room that buffers have besides: what a client may send must not depend on how they grow.
    pub(super) fn query_length(&self) -> usize {
        let (big, _) = self.protocol.apart_memory();
        let queued = self.session.transaction.as_ref().map_or(0, |own| own.bytes);
        self.protocol.unfinished(self.input.len()) + big + self.pending.length() + queued
    }

    /// Bytes of memory for that.
    fn query_memory(&self) -> usize {
        let (_, big) = self.protocol.apart_memory();
        let queued = self.session.transaction.as_ref().map_or(0, |own| own.bytes);
        self.input.capacity() + self.protocol.memory() + big + self.pending.memory() + queued
    }

    /// Dooms it if more output waits than its class of clients may ever let wait. Must be called after
    /// every write to the output, so that nothing more is done for it.
    #[inline]
    pub(super) fn look_at_output_limit(&mut self) {
        if self.output.is_over_limit() {
            self.doom = Some(OVER_OUTPUT_LIMIT);
        }
    }

    /// Whether the output has been above the limits of its class for too long.
    pub(super) fn over_output_limit(&mut self, config: &Config, now: u64) -> bool {
        let limits = &config.client_output_buffer_limits;
        let limit = match self.session.subscriptions.as_ref().is_some_and(|own| own.any()) {
            true => limits.pubsub,
            false => limits.normal,
        };
        // The room that the buffer has besides is no more than this.
        let waiting = (self.output.len() + self.protocol.gathered_length()) as u64;
        if limit.hard_bytes > 0 && waiting > limit.hard_bytes {
            return true;
        }
        if limit.soft_bytes == 0 || waiting <= limit.soft_bytes {
            self.over_soft_limit_since = None;
            return false;
        }
        let since = *self.over_soft_limit_since.get_or_insert(now);
        now.saturating_sub(since) > limit.soft_seconds.saturating_mul(1000)
    }

    /// Shows the state of the buffers to CLIENT LIST.
    pub(super) fn publish(&self) {
        let client = &self.session.client;
        let (big_used, big_room) = self.protocol.apart_memory();
        let used = self.unparsed_input() + big_used;
        let room = self.input.capacity() + big_room;
        client.query_bytes.store(used, Relaxed);
        client.query_free.store(room - used, Relaxed);
        client.argument_bytes.store(self.protocol.memory() + self.pending.memory(), Relaxed);
        let deferred = self.deferred_replies.replies.capacity() * size_of::<DeferredReply>();
        let gathered = self.protocol.gathered();
        let waiting = self.output.len() + self.protocol.gathered_length();
        client.note_output(waiting, self.output.memory() + deferred + gathered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_stuck_that_takes_nothing_for_long() {
        let mut stuck = Stuck::default();
        let patience = limits::PATIENCE_OF_SENDING_MS;
        assert!(!stuck.note(true, 100, 1000));
        assert!(!stuck.note(true, 100, 1000 + patience));
        assert!(stuck.note(true, 100, 1001 + patience));
        assert!(!stuck.note(true, 101, 1002 + patience), "it has taken some");
        assert!(!stuck.note(false, 101, 1003 + 2 * patience), "nothing waits for it");
        assert!(!stuck.note(true, 101, 1004 + 3 * patience), "that has come just now");
        assert!(stuck.note(true, 101, 1005 + 4 * patience));
    }
}
