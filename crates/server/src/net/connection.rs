//! One connection: its transport and protocol, its buffers, its session, and what it waits for.

mod fence;
mod holding;
#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering::Relaxed;

use base::limits;
use config::Config;
use engine::engine::Engine;
use engine::observe::stats::ThreadStats;
use engine::session::{ReplyMode, Session};
use engine::turn::Turn;
use resp::output::Output;
use resp::reply::Reply;

use super::deferred::Deferred;
use super::pending::{PendingCommands, WaitsFor};
use super::protocol::{AnyProtocol, Parts, Protocol};
use super::transport::{AnyTransport, Flushed, Readiness, Received, Sent, Transport};
use super::withheld::Withheld;

/// Why a connection is closed that lets too much output wait.
pub(super) const OVER_OUTPUT_LIMIT: &str = "its output went over client-output-buffer-limit";

/// Why a connection is closed that sends too much before it can be run.
pub(super) const OVER_QUERY_LIMIT: &str = "its query buffer went over client-query-buffer-limit";

/// Why a connection is closed whose client does not read.
pub(super) const TAKES_TOO_LITTLE: &str = "its client does not take the answer";

/// Why a connection is closed whose client has not said who it is.
pub(super) const NOT_LOGGED_IN: &str = "it did not log in within authentication-timeout";

/// The reasons of those that an operator should know.
pub(super) const EXCESSES: [&str; 4] =
    [OVER_OUTPUT_LIMIT, OVER_QUERY_LIMIT, TAKES_TOO_LITTLE, NOT_LOGGED_IN];

/// Read buffers that a worker keeps for reuse.
const POOLED_BUFFERS: usize = 256;

/// Bytes that had been sent to a client which has to take more, and when that was.
#[derive(Default)]
struct Stuck(Option<(u64, u64)>);

impl Stuck {
    /// Bytes that a client takes at least while it is waited for.
    const LEAST: i64 =
        (limits::PATIENCE_OF_SENDING_MS * limits::HTTP_LEAST_RATE / 1000).cast_signed();

    /// Notes how many bytes were sent by this millisecond of the monotonic clock, if more wait that
    /// the client has to take. Returns whether it has taken too little for too long.
    fn note(&mut self, waits: bool, sent: u64, monotonic: u64) -> bool {
        let (before, since) = self.0.filter(|_| waits).unwrap_or((sent, monotonic));
        let is_over = monotonic.saturating_sub(since) > limits::PATIENCE_OF_SENDING_MS;
        let took_enough = sent.wrapping_sub(before).cast_signed() >= Self::LEAST;
        let now = if is_over && took_enough { (sent, monotonic) } else { (before, since) };
        self.0 = waits.then_some(now);
        waits && is_over && !took_enough
    }
}

/// See the module's text.
pub(super) struct Connection {
    pub(super) transport: AnyTransport,
    pub(super) session: Session,
    pub(super) protocol: AnyProtocol,
    /// Bytes that were received and not parsed, or parsed and not executed yet.
    pub(super) input: Vec<u8>,
    pub(super) output: Output,
    /// The parts of the output that wait for the journal.
    pub(super) deferred_replies: Deferred,
    /// Replies that wait for the durability that the client has chosen, and all that comes after.
    pub(super) held: Option<Box<Withheld>>,
    /// Where replies that were written but wait for the host begin in the stream of all output.
    pub(super) deferred_from: Option<u64>,
    /// It is in the worker's list of connections that wait for the journal.
    pub(super) listed_as_awaiting_journal: bool,
    /// Commands that were parsed but cannot run yet.
    pub(super) pending: PendingCommands,
    /// The socket may have more to read.
    pub(super) readable: bool,
    /// The peer has closed its side: reading goes on to the end of its data.
    pub(super) read_closed: bool,
    /// The peer has sent urgent data. A read ends there, so a short one does not say that no more
    /// is there.
    pub(super) urgent: bool,
    /// Everything that the peer sent was read. The connection is closed when it is answered.
    pub(super) ended: bool,
    /// The input has ended because the transport has failed.
    failed: bool,
    /// The socket may take more.
    pub(super) writable: bool,
    /// It is in the worker's list for the next turn.
    pub(super) scheduled: bool,
    /// Set when it must be closed: the reason, for the log.
    pub(super) close_reason: Option<&'static str>,
    /// Its share of the turn is used up: more commands may lie in the buffer.
    pub(super) has_more_input: bool,
    /// Input that it received while its commands waited was not parsed.
    pub(super) unparsed: bool,
    /// It is in the worker's list of connections whose commands wait for slots.
    pub(super) listed_as_parked: bool,
    /// It is in the worker's list of connections that read on in the kept changes.
    pub(super) listed_as_behind: bool,
    /// Its deadline that the worker's timers know.
    pub(super) timer: Option<u64>,
    /// Since when the output is above the soft limit, in milliseconds of the monotonic clock.
    pub(super) over_soft_limit_since: Option<u64>,
    stuck: Stuck,
    /// The last write of which the client was told, as [`Session::write_offset`].
    told: u64,
    /// Until when what comes is thrown away, when the last answer was sent.
    lingers_until: Option<u64>,
    /// Since when its client has not shown who it is.
    unadmitted_since: Option<u64>,
    /// When [`super::coalesce::Coalescing`] counted it last.
    pub(super) counted_in_window: u32,
}

impl Connection {
    pub(super) fn new(
        transport: AnyTransport,
        protocol: AnyProtocol,
        session: Session,
    ) -> Connection {
        Connection {
            transport,
            session,
            protocol,
            input: Vec::new(),
            output: Output::new(),
            deferred_replies: Deferred::default(),
            held: None,
            deferred_from: None,
            listed_as_awaiting_journal: false,
            pending: PendingCommands::default(),
            readable: true,
            read_closed: false,
            urgent: false,
            ended: false,
            failed: false,
            writable: true,
            scheduled: false,
            close_reason: None,
            has_more_input: false,
            unparsed: false,
            listed_as_parked: false,
            listed_as_behind: false,
            timer: None,
            over_soft_limit_since: None,
            stuck: Stuck::default(),
            told: 0,
            lingers_until: None,
            unadmitted_since: None,
            counted_in_window: 0,
        }
    }

    /// Whether it has had no answer yet. Who wants none has shown who it is.
    #[inline]
    pub(super) fn is_newcomer(&self) -> bool {
        self.output.end() == 0 && self.session.reply_mode != ReplyMode::Off
    }

    /// Whether it has had no answer yet, and there is nothing to do for it.
    pub(super) fn is_silent_newcomer(&self, now: u64) -> bool {
        self.is_newcomer() && self.runs() && !self.wants_another_turn(now)
    }

    /// Whether its commands may run.
    #[inline]
    pub(super) fn runs(&self) -> bool {
        self.pending.runs() && !self.is_ending()
    }

    /// Whether it runs no further command, because it is about to be closed.
    #[inline]
    pub(super) fn is_ending(&self) -> bool {
        self.close_reason.is_some() || self.session.close || self.session.client.is_killed()
    }

    /// Whether commands that were parsed earlier may have to run now.
    #[inline]
    pub(super) fn has_pending(&self) -> bool {
        let may_go_on = match &self.pending.waits_for {
            WaitsFor::Nothing => false,
            WaitsFor::Blocked(wait) => wait.awaits_sync(),
            WaitsFor::Contended(_) | WaitsFor::NeedsStoppedWorld(_) | WaitsFor::Paused(_) => true,
        };
        may_go_on || !self.pending.is_empty()
    }

    /// Whether its commands wait, for any reason, so that further input has to wait too.
    #[inline]
    pub(super) fn defers_input(&self) -> bool {
        !self.pending.is_empty() || !self.pending.runs() || self.is_choked()
    }

    /// Whether so much waits for its client that it gets no more before it has taken some.
    #[inline]
    pub(super) fn is_choked(&self) -> bool {
        self.protocol.is_choked(|| self.unsent())
            || self.held.as_ref().is_some_and(|held| held.is_full())
    }

    /// Its protocol, and the other parts that this uses when a command runs.
    #[inline]
    pub(super) fn parts(&mut self) -> (&mut AnyProtocol, Parts<'_>) {
        let Connection { protocol, input, session, output, deferred_replies, pending, .. } = self;
        (protocol, Parts { input, session, output, deferred_replies, pending })
    }

    /// Writes the answers to earlier requests that need no command: see
    /// [`Protocol::answer_earlier`].
    #[inline]
    pub(super) fn answer_earlier(&mut self, now: u64) {
        self.protocol.answer_earlier(now, &mut self.output);
    }

    /// Whether a client that has to take its answer, or one that has ended its stream, has taken
    /// too little of it for too long. To be asked now and then.
    pub(super) fn is_stuck(&mut self, monotonic: u64) -> bool {
        let waits = self.sendable() > 0 || self.transport.held_back() > 0;
        // What a transport says of its own counts too: the difference shows progress, and is no
        // place.
        let sent = self.output.end().wrapping_sub(self.unsent() as u64);
        let may_be = waits && self.protocol.is_to_be_taken(self.ended);
        self.stuck.note(may_be, sent, monotonic)
    }

    /// Whether its client has not shown who it is, so that little is kept for it.
    #[inline]
    pub(super) fn is_unadmitted(&self) -> bool {
        !self.protocol.is_admitted(&self.session)
    }

    /// Whether its client has not shown for longer than `timeout` milliseconds who it is (0: for
    /// ever). To be asked now and then.
    pub(super) fn is_unadmitted_beyond(&mut self, timeout: u64, monotonic: u64) -> bool {
        if !self.is_unadmitted() {
            self.unadmitted_since = None;
            return false;
        }
        let since = *self.unadmitted_since.get_or_insert(monotonic);
        timeout > 0 && monotonic.saturating_sub(since) > timeout
    }

    /// How much to read in this turn. Input that was received comes first: a fast sender must not
    /// fill the memory. When commands wait for slots or gates, little is read beyond them: the rest
    /// stays in the socket, where it slows its sender down.
    pub(super) fn reading_share(&self) -> usize {
        let is_unadmitted = self.is_unadmitted();
        let most = if is_unadmitted { limits::UNAUTHENTICATED_READ } else { limits::READ_PER_TURN };
        if self.waits_for_others() && !is_unadmitted {
            most
        } else if self.has_more_input {
            0
        } else if !self.defers_input() {
            most
        } else if !self.protocol.is_receiving_apart() {
            most.saturating_sub(self.unparsed_input())
        } else {
            0
        }
    }

    /// Whether its command may have to wait for as long as other clients like. Then all that comes
    /// is read, up to `client-query-buffer-limit`: the end of the stream comes after it, and shows
    /// that the client has gone.
    fn waits_for_others(&self) -> bool {
        matches!(self.pending.waits_for, WaitsFor::Blocked(_) | WaitsFor::Paused(_))
    }

    /// Bytes of the input that were received, but not parsed to the end of a command.
    fn unparsed_input(&self) -> usize {
        self.input.len() - self.protocol.done()
    }

    /// Reads about this many bytes, or fewer if they are worth a look first: the protocol may find
    /// that a long string begins, and the rest of it is to be received in its place. Returns how
    /// many.
    pub(super) fn receive(&mut self, share: usize) -> usize {
        let mut total = 0;
        while self.readable && total < share && (total == 0 || self.protocol.is_receiving_apart()) {
            let received = match self.protocol.receives_apart() {
                Some((bytes, room)) => self.transport.receive(bytes, room),
                None => {
                    if self.input.capacity() - self.input.len() < limits::READ_BUFFER / 4 {
                        self.input.reserve(limits::READ_BUFFER.max(self.input.len()));
                    }
                    // A buffer that has grown for a long command has room for more than a
                    // connection may send before that is parsed.
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
                Received::Nothing => {
                    self.readable = false;
                    break;
                }
                Received::Later => break,
                Received::End => {
                    self.end_input();
                    break;
                }
                Received::Failed => {
                    self.fail_input();
                    break;
                }
            }
        }
        total
    }

    /// Whether it stays open for some time, though all is said, because the client may be sending
    /// still. What nobody has read would make the system take back what the client has not received
    /// yet.
    pub(super) fn lingers(&mut self, monotonic: u64) -> bool {
        self.readable = true;
        let thrown_away = self.discard_input();
        if self.lingers_until.is_none() {
            // Most clients have sent nothing more. The rest of what the others send may be on its
            // way.
            let is_more = self.readable || thrown_away > 0 || self.unparsed_input() > 0;
            if self.ended || !(is_more || self.protocol.may_be_sending()) {
                return false;
            }
            self.transport.end_output();
            self.lingers_until = Some(monotonic + limits::LINGER_MS);
        }
        !self.ended && self.lingers_until.is_some_and(|until| monotonic < until)
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
                Received::Nothing => self.readable = false,
                Received::Later => break,
                Received::End => self.end_input(),
                Received::Failed => self.fail_input(),
            }
        }
        count_of_all
    }

    fn end_input(&mut self) {
        self.ended = true;
        self.readable = false;
    }

    /// The transport has failed. What came before is executed as if the peer had ended its stream.
    fn fail_input(&mut self) {
        self.end_input();
        self.failed = true;
    }

    /// Notes what an event says.
    #[inline]
    pub(super) fn note_readiness(&mut self, readiness: Readiness) {
        self.readable |= readiness.readable || readiness.read_closed;
        self.read_closed |= readiness.read_closed;
        self.urgent |= readiness.urgent;
        self.writable |= readiness.writable;
    }

    /// Why it is closed when it [is finished](Connection::is_finished), for the log.
    pub(super) fn why_finished(&self) -> &'static str {
        if self.failed { "the connection failed" } else { "the client closed the connection" }
    }

    /// Defers the output after this position until the session's dependence is satisfied.
    #[inline]
    pub(super) fn defer_replies(&mut self, from: u64) {
        self.deferred_replies.add(from, self.session.depends_on);
    }

    /// Lets the replies of this turn, which are written already, wait for this offset of the
    /// journal.
    pub(super) fn hold_replies(&mut self, offset: u64) {
        self.deferred_replies.hold(&self.output, offset);
    }

    /// Releases deferred replies that depend on nothing after this offset.
    pub(super) fn release_replies(&mut self, released: u64, stats: &ThreadStats) {
        self.deferred_replies.release(released, |since| {
            stats.stages.commit.record(since.elapsed_ns(), 1);
        });
    }

    /// When its waiting ends by itself, in milliseconds of the monotonic clock.
    #[inline]
    pub(super) fn deadline(&self) -> Option<u64> {
        let held = self.held.as_ref().and_then(|held| held.deadline());
        self.pending.deadline().into_iter().chain(held).min()
    }

    /// Writes the reply of a command that has waited, if `write` returns that there is one. Returns
    /// whether there is.
    pub(super) fn reply(
        &mut self,
        (engine, turn): (&Engine, &Turn),
        write: impl FnOnce(&Session, &mut Reply<'_>) -> bool,
    ) -> bool {
        let from = self.output.end();
        let (protocol, parts) = self.parts();
        let written = protocol.reply((engine, turn), write, parts);
        if written {
            self.hold_back((engine, turn), from, false);
        }
        written
    }

    /// Whether replies wait for the journal.
    #[inline]
    pub(super) fn defers_replies(&self) -> bool {
        !self.deferred_replies.is_empty()
    }

    /// Positions in the output from which replies wait for more than the ones before.
    pub(super) fn deferred_count(&self) -> usize {
        self.deferred_replies.len()
    }

    /// Whether replies, or the client, wait for the journal.
    #[inline]
    pub(super) fn awaits_journal(&self) -> bool {
        self.defers_replies() || self.holds_replies() || self.pending.sync_wait().is_some()
    }

    /// Bytes of output that wait for nothing but the socket.
    fn sendable(&self) -> usize {
        let waiting = self.output.len();
        let deferred = self.deferred_replies.first();
        let Some(from) = deferred.into_iter().chain(self.deferred_from).min() else {
            return waiting;
        };
        let sent = self.output.end() - waiting as u64;
        usize::try_from(from.saturating_sub(sent)).map_or(waiting, |free| free.min(waiting))
    }

    /// Bytes of output that were not passed on yet.
    #[inline]
    fn unsent(&self) -> usize {
        let held = self.held.as_ref().map_or(0, |held| held.length());
        self.output.len() + self.transport.held_back() + held
    }

    /// Whether all output was passed on.
    #[inline]
    pub(super) fn is_all_sent(&self) -> bool {
        self.unsent() == 0
    }

    /// Has the transport pass on what it holds back.
    #[inline]
    fn flush(&mut self) {
        let wants_write = self.transport.wants_write();
        self.writable |= wants_write;
        if wants_write || (self.writable && self.transport.held_back() > 0) {
            match self.transport.flush() {
                Flushed::All => {}
                Flushed::Part => self.writable = false,
                Flushed::Failed => self.fail_output(),
            }
        }
    }

    #[cold]
    fn fail_output(&mut self) {
        self.close_reason = Some("the connection failed while writing");
        self.writable = false;
    }

    /// Sends waiting output, its share of this turn. Returns bytes sent.
    pub(super) fn send(&mut self, limit: usize) -> usize {
        let limit = limit.min(self.sendable());
        match limit > 0 && self.transport.says_with_output() {
            true => self.writable = true,
            false => self.flush(),
        }
        let mut total = 0;
        while self.writable && total < limit && !self.output.is_empty() {
            match self.transport.send(&self.output, limit - total) {
                Sent::Bytes(count) => {
                    self.output.advance(count);
                    total += count;
                }
                Sent::Full => self.writable = false,
                Sent::Failed => self.fail_output(),
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
        let done = self.protocol.compact_if_worthwhile(self.input.len());
        self.input.drain(done);
    }

    /// Whether it follows changes, is behind, and has sent most of its output.
    #[inline]
    pub(super) fn is_to_read_on(&self) -> bool {
        self.protocol.is_behind() && self.little_waits() && !self.session.close
    }

    /// Whether a request can go on now that had to wait until most of its output was sent.
    #[inline]
    fn is_to_go_on(&self) -> bool {
        self.protocol.goes_on() && self.little_waits() && !self.session.close
    }

    /// Whether most of its output was sent.
    fn little_waits(&self) -> bool {
        self.unsent() <= limits::CHANGES_PENDING / 2
    }

    /// Lets such a request go on.
    pub(super) fn go_on(&mut self, now: u64) {
        if self.is_to_go_on() {
            let (protocol, parts) = self.parts();
            protocol.go_on(now, parts);
        }
    }

    /// Whether something is still to be sent.
    pub(super) fn has_output(&self) -> bool {
        self.unsent() > 0 || self.protocol.streams()
    }

    /// Ends a connection whose client sends though it has nothing to say.
    #[inline]
    pub(super) fn look_at_talk(&mut self) {
        if let Some(objection) = self.protocol.objection(self.input.len()) {
            self.close_reason = Some(objection);
        }
    }

    /// Lets a connection that follows changes read on, if it is behind.
    pub(super) fn read_on(&mut self, engine: &Engine) {
        self.protocol.read_on(engine, &mut self.session, &mut self.output);
    }

    /// Whether its client has given up the command in which it waits, because it has ended its
    /// stream. `paused` says whether CLIENT PAUSE suspends commands.
    fn has_given_up(&self, paused: bool) -> bool {
        let waits = match self.pending.waits_for {
            WaitsFor::Blocked(_) => !self.protocol.only_waits(),
            // A slow disk delays commands too, but they run before long, and are answered.
            // So does one for data that is new enough.
            WaitsFor::Paused(_) => paused || self.session.waits_to_read(),
            _ => false,
        };
        // Input after the command in which a client waits is not read while it waits, so the end of
        // its input may come after that.
        waits && (self.ended || self.read_closed)
    }

    /// Sees to it that a client which has given up its wait is not served any more: that would be
    /// for nobody.
    pub(super) fn give_up(&self, paused: bool) {
        if let WaitsFor::Blocked(wait) = &self.pending.waits_for
            && !wait.awaits_sync()
            && self.has_given_up(paused)
        {
            wait.claim();
        }
    }

    /// Whether everything that the peer sent before it closed is answered, or waits and is given up
    /// with it. `paused` says whether CLIENT PAUSE suspends commands.
    pub(super) fn is_finished(&self, paused: bool) -> bool {
        if self.has_given_up(paused) {
            // The answers to what it sent before that are its own.
            let is_told = self.sendable() == 0 && self.transport.held_back() == 0;
            return is_told && !self.defers_replies() && !self.holds_replies();
        }
        // A client that follows changes has nothing more to say, but its input does not show when
        // it leaves.
        if self.protocol.is_endless() && (self.ended || self.read_closed) {
            return true;
        }
        let running = self.pending.runs();
        let parsed = !self.has_more_input && !self.unparsed && !self.protocol.has_answer();
        let answered = self.pending.is_empty() && parsed;
        let told = self.unsent() == 0
            || (self.listens() && !self.defers_replies() && !self.holds_replies());
        self.ended && running && answered && told
    }

    /// Whether it gets messages that answer nothing.
    fn listens(&self) -> bool {
        self.session.monitor || self.session.subscriptions.as_ref().is_some_and(|own| own.any())
    }

    /// Whether there is something to do for it before its socket or another thread announces
    /// anything.
    pub(super) fn wants_another_turn(&self, now: u64) -> bool {
        let runnable = match self.pending.waits_for {
            WaitsFor::Nothing => {
                self.readable
                    || self.has_more_input
                    || self.unparsed
                    || !self.pending.is_empty()
                    || self.protocol.has_answer()
            }
            WaitsFor::Contended(_) | WaitsFor::NeedsStoppedWorld(_) => false,
            // What is not to be read before the wait is over stays where it is.
            WaitsFor::Blocked(_) => self.readable && self.reading_share() > 0,
            WaitsFor::Paused(until) => until <= now || (self.readable && self.reading_share() > 0),
        };
        (runnable && !self.session.close && !self.is_choked())
            || (self.readable && self.is_lingering())
            || (self.writable && (self.sendable() > 0 || self.transport.held_back() > 0))
            || self.is_to_go_on()
    }

    /// Closes the socket. Returns the buffers if freeing them would take long.
    pub(super) fn close(self) -> Option<Box<dyn Send>> {
        let large = self.output.memory() + self.query_memory() >= limits::FREED_LATER;
        let Connection { transport, output, input, protocol, pending, .. } = self;
        drop(transport);
        large.then(|| Box::new((output, input, protocol, pending)) as Box<dyn Send>)
    }

    /// Whether it has sent nothing for longer than `timeout` milliseconds (0: for ever), and waits
    /// for nothing.
    pub(super) fn is_idle_beyond(&self, timeout: u64, now: u64) -> bool {
        let waits = !self.pending.runs() || self.defers_replies() || self.holds_replies();
        // The other end is a node, which knows best for how long it has nothing to say.
        let is_link = self.session.import.is_some() || self.session.speaks_for_node();
        let exempt = waits || is_link || self.listens() || self.protocol.follows();
        let last = self.session.client.last_interaction.load(Relaxed);
        timeout > 0 && !exempt && now.saturating_sub(last) > timeout
    }

    /// Bytes of input that it has received and not executed, with the commands that MULTI queues,
    /// and without unused room in buffers: what a client may send must not depend on how buffers
    /// grow.
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

    /// Gives it a close reason if more output waits than its class of clients may ever let wait.
    /// Must be called after every write to the output, so that nothing more is done for it.
    #[inline]
    pub(super) fn look_at_output_limit(&mut self) {
        if self.output.is_over_limit() || self.unsent() > self.output.limit() {
            self.close_reason = Some(OVER_OUTPUT_LIMIT);
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
        let waiting = (self.unsent() + self.protocol.gathered_length()) as u64;
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
        let transport = self.transport.memory();
        if transport > 0 {
            client.transport_memory.store(transport, Relaxed);
        }
        client.argument_bytes.store(self.protocol.memory() + self.pending.memory(), Relaxed);
        let held = self.held.as_ref().map_or(0, |held| held.memory());
        let deferred = self.deferred_replies.memory() + held;
        let gathered = self.protocol.gathered();
        let waiting = self.unsent() + self.protocol.gathered_length();
        client.note_output(waiting, self.output.memory() + deferred + gathered);
    }
}
