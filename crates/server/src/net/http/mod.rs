//! HTTP/1.1, as a connection speaks it.
//!
//! A request becomes commands, which run as those of any connection, with the same checks, locks,
//! journal, and parking when a slot is locked. There are two differences. Each request says anew who
//! sends it and for which database ([`guard`]). And its replies become one answer ([`exchange`]), after
//! the locks are released. [`route`] finds the commands for a request, and [`dashboard`] is the page
//! for browsers. Requests that wait for changes, or follow them, are in [`changes`], and answers for
//! clients of etcd in [`etcd`].

mod changes;
mod dashboard;
mod description;
mod etcd;
mod exchange;
mod familiar;
mod guard;
mod intake;
mod prepared;
mod route;

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use base::limits;
use config::Config;
use engine::changes::listeners::Listener;
use engine::engine::{Engine, Row};
use engine::run::authority::Authority;
use engine::run::request::{Outcome, Request, Requests};
use engine::run::turn::Turn;
use engine::session::Session;
use http::request::{Parsed, Parser, Refusal, with_head};
use resp::args::{ArgRange, Arguments};
use resp::output::Output;
use store::gate::Presence;

use super::batch::{Batch, Item};
use super::pending::{Executed, Pending};
use exchange::Exchange;
use familiar::Familiar;

pub use changes::ChangeEvents;
pub(super) use changes::read_on;
pub(super) use guard::refuse;
pub(super) use intake::Intake;

/// See the module's text.
pub(super) struct Http {
    pub(super) input: Input,
    pub(super) exchanges: Exchanges,
}

/// Received data that is not in the connection's buffer.
#[derive(Default)]
pub(super) struct Input {
    parser: Parser,
    /// Arguments that had to be decoded or composed.
    side: Vec<u8>,
    /// What the headers of the last request mean, if it was one of those that clients repeat.
    familiar: Option<Box<Familiar>>,
    /// Bodies that were received into allocations of their own.
    big: Vec<Arc<Vec<u8>>>,
    /// When the request that has not arrived in full began.
    began: Option<u64>,
    /// The client waits to be told to send its body.
    wants_continue: bool,
    /// Nothing that comes is looked at any more.
    refused: bool,
    /// Since the client has sent something that is refused: it may go on doing so.
    abandoned: bool,
}

/// Requests that were read and are not yet answered, in their order.
#[derive(Default)]
pub(super) struct Exchanges {
    waiting: VecDeque<Exchange>,
    /// Whether an answer has ended the connection.
    closed: bool,
    /// The first request follows changes: its answer does not end.
    following: Option<Arc<Listener>>,
    /// The command with which the first request goes on after the written part is sent.
    goes_on: Option<Pending>,
}

impl Http {
    /// A connection that has sent nothing yet, at this millisecond of the steady clock.
    pub(super) fn new(steady: u64) -> Http {
        let input = Input { began: Some(steady), ..Input::default() };
        Http { input, exchanges: Exchanges::default() }
    }

    /// Parses requests into the batch, up to the connection's share of the turn. Returns whether more
    /// of them may lie in `buffer`.
    pub(super) fn parse(&mut self, buffer: &[u8], intake: Intake<'_>, batch: &mut Batch) -> bool {
        let max_body = intake.config.proto_max_bulk_len;
        // Not more of them wait than one turn takes, whatever waits before them.
        for _ in self.exchanges.waiting.len()..limits::HTTP_REQUESTS_PER_TURN {
            if self.input.refused {
                return false;
            }
            let first = batch.items.len();
            let Input { parser, side, big, familiar, .. } = &mut self.input;
            // A body that is received apart does not lie behind its head.
            let begins = (!parser.is_within_body()).then(|| parser.done());
            let known = parser.next_head(buffer).and_then(|rest| {
                let (request, length) = familiar.as_ref()?.of(rest, intake.settings)?;
                parser.pass(length);
                let batch = &mut *batch;
                Some(route::Route { buffer, side, big, intake, batch }.take_familiar(request))
            });
            let is_known = known.is_some();
            let parsed = known.map(Parsed::Request).unwrap_or_else(|| {
                parser.parse(buffer, max_body, |head, body| {
                    let batch = &mut *batch;
                    route::Route { buffer, side, big, intake, batch }.take(head, body)
                })
            });
            match parsed {
                Parsed::Request(exchange) => {
                    if let Some(from) = begins.filter(|_| !is_known) {
                        let bytes = &buffer[from..parser.done()];
                        Familiar::note(familiar, bytes, &exchange, intake.settings);
                    }
                    self.input.began = None;
                    // Its body has come without that.
                    self.input.wants_continue = false;
                    self.input.refused = exchange.envelope.close;
                    self.exchanges.waiting.push_back(exchange);
                    if self.input.parser.done() == buffer.len() {
                        return false;
                    }
                    // It may wait, or change the password: what comes behind it is judged after it.
                    let is_short = |item: &Item| item.row.is_some_and(Row::may_go_short);
                    if !batch.items[first..].iter().all(is_short) {
                        return true;
                    }
                }
                Parsed::Head { from, to } => self.look_at_head(&buffer[from..to], intake),
                Parsed::Incomplete => {
                    if self.input.parser.is_within_request(buffer) {
                        self.input.began.get_or_insert(intake.steady);
                    }
                    return false;
                }
                Parsed::Refused(refusal) => self.refuse(refusal),
            }
        }
        true
    }

    /// Decides by the head of a request whether its body should be received.
    fn look_at_head(&mut self, head: &[u8], intake: Intake<'_>) {
        let verdict = with_head(head, |head| route::look_at_head(head, intake));
        match verdict {
            Ok(Ok(reception)) => {
                self.input.wants_continue = reception.wants_continue;
                self.input.parser.limit_body(reception.most);
            }
            Ok(Err(exchange)) => {
                (self.input.refused, self.input.abandoned) = (true, true);
                self.exchanges.waiting.push_back(*exchange);
            }
            Err(refusal) => self.refuse(refusal),
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.input.wants_continue = false;
        (self.input.refused, self.input.abandoned) = (true, true);
        self.exchanges.waiting.push_back(Exchange::refused(refusal));
    }

    /// Notes that what has come is not looked at for now: the client is not late meanwhile.
    pub(super) fn wait_for_turn(&mut self, steady: u64) {
        self.input.began = self.input.began.map(|_| steady);
    }

    /// Refuses a request that takes too long to arrive. Returns whether there is one.
    pub(super) fn end_slow_request(&mut self, buffer: &[u8], steady: u64) -> bool {
        let Some(began) = self.input.began.filter(|_| !self.input.refused) else { return false };
        let received = self.input.parser.body_so_far(buffer) as u64;
        let patience = limits::HTTP_PATIENCE_MS + received * 1000 / limits::HTTP_LEAST_RATE;
        if steady.saturating_sub(began) <= patience {
            return false;
        }
        self.refuse(Refusal { status: 408, reason: "the request took too long to arrive" });
        true
    }

    /// Whether what waits for the client is an answer that ends, and that it has to take.
    pub(super) fn is_answering(&self) -> bool {
        self.exchanges.following.is_none() && !self.goes_on()
    }

    /// Writes the answers that are ready and that no command precedes, and tells the client to send its
    /// body when the body is needed. Returns whether the connection must be closed.
    pub(super) fn answer_ready(&mut self, now: u64, output: &mut Output) -> bool {
        self.exchanges.answer_ready(now, output);
        if self.exchanges.waiting.is_empty() && std::mem::take(&mut self.input.wants_continue) {
            output.push(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        self.exchanges.closed
    }

    /// Whether [`Http::answer_ready`] may have something to do.
    pub(super) fn has_answer(&self) -> bool {
        let follows = self.exchanges.following.is_some() || self.exchanges.goes_on.is_some();
        (!self.exchanges.waiting.is_empty() && !follows) || self.input.wants_continue
    }

    /// Whether the first request goes on after the written part is sent.
    pub(super) fn goes_on(&self) -> bool {
        self.exchanges.goes_on.is_some()
    }

    /// The command with which it does.
    pub(super) fn go_on(&mut self) -> Option<Pending> {
        self.exchanges.goes_on.take()
    }

    /// The listener of this connection, if it follows changes.
    pub(super) fn following(&self) -> Option<&Arc<Listener>> {
        self.exchanges.following.as_ref()
    }
}

thread_local! {
    /// Where replies are written before they become answers.
    static REPLY: Cell<Option<Box<Output>>> = const { Cell::new(None) };
}

/// Where the reply of a command goes: the waiting requests, the session, and the output.
type To<'a> = (&'a mut Exchanges, &'a mut Session, &'a mut Output);

/// The next command of the first request that waits.
struct One<'r>(Request<'r>);

impl Requests for One<'_> {
    #[inline]
    fn count(&self) -> usize {
        1
    }

    #[inline]
    fn at(&self, _: usize) -> Request<'_> {
        self.0
    }

    /// The answer is held, not the reply.
    fn defer_reply(&mut self, _: u64, _: u64) {}
}

/// [`run`] on the short path. Nothing if the command has to take the long one, of which nothing was
/// touched then.
#[inline]
pub(super) fn run_plainly(
    engine: &Engine,
    turn: &mut Turn,
    request: Request<'_>,
    presence: Presence<'_>,
    (exchanges, session, output): To<'_>,
) -> Option<Option<Pending>> {
    exchanges.begin(&turn.config, session, output);
    let mut reply = REPLY.take().unwrap_or_default();
    reply.set_limit(output.limit());
    let ran = engine.execute_plainly(turn, session, &mut One(request), presence, &mut reply);
    let next = (ran > 0).then(|| {
        if reply.is_over_limit() {
            output.lose_what_exceeds(usize::MAX);
            return None;
        }
        exchanges.take_reply(engine, turn, session, &mut reply, output)
    });
    reply.clear();
    REPLY.set(Some(reply));
    next
}

/// Runs a command of the first request that waits, and writes the answer when its reply was the last
/// that the request needs. Otherwise another command may have to run next.
pub(super) fn run(
    engine: &Engine,
    turn: &mut Turn,
    request: Request<'_>,
    authority: Authority<'_>,
    (exchanges, session, output): To<'_>,
) -> Executed {
    exchanges.begin(&turn.config, session, output);
    let from = output.end();
    let mut reply = REPLY.take().unwrap_or_default();
    reply.set_limit(output.limit());
    let outcome = engine.execute(turn, session, request, authority, &mut reply);
    let (mut next, replied) = (None, !reply.is_empty());
    if reply.is_over_limit() {
        // The connection is closed, like one whose output itself has grown too long.
        output.lose_what_exceeds(usize::MAX);
    } else if matches!(outcome, Outcome::Done) || replied {
        next = exchanges.take_reply(engine, turn, session, &mut reply, output);
    }
    reply.clear();
    REPLY.set(Some(reply));
    Executed { outcome, next, from, replied }
}

impl Input {
    /// The arguments for ranges that were put into the batch.
    #[inline]
    pub(super) fn arguments<'a>(
        &'a self,
        buffer: &'a [u8],
        ranges: &'a [ArgRange],
    ) -> Arguments<'a> {
        Arguments::new(ranges, buffer, &self.side, &self.big)
    }

    /// Whether nothing that comes is looked at any more.
    pub(super) fn has_refused(&self) -> bool {
        self.refused
    }

    /// Whether the client has sent something that is refused, and may go on doing so.
    pub(super) fn may_be_sending(&self) -> bool {
        self.abandoned
    }

    pub(super) fn receives_apart(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        self.parser.receives_apart()
    }

    pub(super) fn is_receiving_apart(&self) -> bool {
        self.parser.is_receiving_apart()
    }

    pub(super) fn done(&self) -> usize {
        self.parser.done()
    }

    /// Forgets requests whose commands have run or were copied. Returns which bytes to remove from a buffer of
    /// this length.
    pub(super) fn compact_when_due(&mut self, length: usize) -> Range<usize> {
        self.side.clear();
        self.side.shrink_to(limits::READ_BUFFER);
        self.big.clear();
        self.parser.compact_when_due(length)
    }

    /// Bytes of memory besides the body that is being received.
    pub(super) fn memory(&self) -> usize {
        let familiar = self.familiar.as_ref().map_or(0, |familiar| familiar.memory());
        let bodies = self.big.iter().map(|body| body.capacity()).sum::<usize>();
        familiar + self.side.capacity() + bodies
    }

    /// Bytes of arguments that are not in the buffer.
    pub(super) fn length(&self) -> usize {
        self.side.len() + self.big.iter().map(|body| body.len()).sum::<usize>()
    }

    /// Bytes of the body, and bytes allocated for it.
    pub(super) fn body_memory(&self) -> (usize, usize) {
        self.parser.memory()
    }
}

impl Exchanges {
    /// Bytes of an answer that is not complete.
    pub(super) fn gathered(&self) -> usize {
        self.waiting.front().map_or(0, Exchange::gathered_memory)
    }

    /// Writes answers that depend on no command.
    #[inline]
    pub(super) fn answer_ready(&mut self, now: u64, output: &mut Output) {
        while !self.closed
            && output.len() <= limits::HTTP_PENDING
            && self.waiting.front().is_some_and(Exchange::is_ready)
        {
            if let Some(exchange) = self.waiting.pop_front() {
                self.closed |= exchange.envelope.close;
                exchange.write_ready(now, output);
            }
        }
    }

    /// Answers the first request that waits, and no other, because the server stops.
    pub(super) fn stop(&mut self, (now, steady): (u64, u64), output: &mut Output) {
        self.answer_ready(now, output);
        if self.closed || self.following.is_some() || self.streams() {
            return;
        }
        if let Some(mut first) = self.waiting.pop_front() {
            first.envelope.close = true;
            first.stop((now, steady), output);
            self.closed = true;
        }
    }

    /// Prepares the session for a command of the first waiting request. Those before it are answered.
    fn begin(&mut self, config: &Config, session: &mut Session, output: &mut Output) {
        let Some(first) = self.waiting.front_mut() else { return };
        debug_assert!(!first.is_ready(), "it needs a command");
        first.begin(session);
        session.limit_output(config, output);
    }

    /// Goes on after the first request, which is answered.
    fn end_first(&mut self, now: u64, session: &mut Session, output: &mut Output) {
        if let Some(first) = self.waiting.pop_front() {
            self.closed |= first.envelope.close;
        }
        self.answer_ready(now, output);
        session.close |= self.closed;
    }

    /// Ends the connection in the middle of an answer.
    fn break_off(&mut self, session: &mut Session) {
        self.waiting.clear();
        self.closed = true;
        session.close = true;
    }

    /// Whether the first request's answer goes on when the client has taken what is written.
    #[inline]
    pub(super) fn streams(&self) -> bool {
        self.waiting.front().is_some_and(Exchange::streams)
    }

    /// Writes the next piece of such an answer.
    pub(super) fn stream(&mut self, now: u64, session: &mut Session, output: &mut Output) {
        match self.waiting.front_mut().map(|first| first.go_on(output)) {
            Some(exchange::Next::Answered) => self.end_first(now, session, output),
            Some(exchange::Next::Breaks) => self.break_off(session),
            _ => {}
        }
    }

    /// Bytes of replies of which answers are still to be made.
    pub(super) fn gathered_length(&self) -> usize {
        self.waiting.front().map_or(0, Exchange::gathered_length)
    }

    /// Whether the first request waits for a change of a key, and takes nothing from the data.
    pub(super) fn only_waits(&self) -> bool {
        self.waiting.front().is_some_and(Exchange::only_waits)
    }

    /// Takes the reply of a command. Writes the answer when it was the last of its request. Returns
    /// what the request still has to do, if that follows from the reply.
    pub(super) fn take_reply(
        &mut self,
        engine: &Engine,
        turn: &Turn,
        session: &mut Session,
        reply: &mut Output,
        output: &mut Output,
    ) -> Option<Pending> {
        let first = self.waiting.front_mut()?;
        match first.take_reply((turn.now, turn.steady), reply, output) {
            exchange::Next::Answered => {
                self.end_first(turn.now, session, output);
                None
            }
            exchange::Next::Streams(streaming) => {
                first.stream(streaming);
                None
            }
            exchange::Next::Breaks => {
                self.break_off(session);
                None
            }
            exchange::Next::Waits => {
                if first.gathered_length() > output.limit() {
                    // The connection is closed, as if this lay in its output already.
                    output.lose_what_exceeds(usize::MAX);
                }
                None
            }
            exchange::Next::Runs(argv) => Some(Pending::new(engine.commands, argv)),
            exchange::Next::Reads(argv) => {
                Some(Pending { row: Some(engine.commands.http().get), argv })
            }
            exchange::Next::Watches(argv) => {
                Some(Pending { row: Some(engine.commands.http().node_wait), argv })
            }
            exchange::Next::GoesOn(argv) => {
                self.goes_on = Some(Pending { row: Some(engine.commands.http().node_wait), argv });
                None
            }
            exchange::Next::Follows(filter, from) => {
                let client = Arc::clone(&session.client);
                self.following = Some(engine.listeners.add(client, filter, from));
                None
            }
        }
    }
}
