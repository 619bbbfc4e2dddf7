//! HTTP/1.1, as a connection speaks it.
//!
//! A request becomes commands, which run as those of any connection, with the same checks, locks,
//! journal, and parking when a slot is locked. There are two differences. Each request says anew
//! who sends it and for which database ([`guard`]). And its replies become one answer
//! ([`exchange`]), after the locks are released. [`route`] finds the commands for a request, and
//! [`dashboard`] is the page for browsers. Requests that wait for changes, or follow them, are in
//! [`changes`], and answers for clients of etcd in [`etcd`].

mod arriving;
mod cached_headers;
mod changes;
mod dashboard;
mod description;
mod etcd;
mod exchange;
mod guard;
mod prepared;
mod route;
mod spoken;
mod url;

use std::collections::VecDeque;
use std::sync::Arc;

use base::limits;
use engine::engine::{Engine, Row};
use engine::session::followers::Follower;
use engine::session::{Session, User};
use engine::turn::Turn;
use http::request::{Parsed, Parser, Refusal, with_head};
use resp::output::Output;

use super::batch::{CommandBatch, Item};
use super::intake::Intake;
use super::pending::PendingCommand;
use arriving::Arriving;
use cached_headers::CachedHeaders;
use exchange::Exchange;

pub use changes::ChangeEvents;
pub(super) use guard::refuse;

/// See the module's text.
pub(super) struct Http {
    input: Input,
    exchanges: Exchanges,
}

/// Received data that is not in the connection's buffer.
#[derive(Default)]
struct Input {
    parser: Parser,
    /// Arguments that had to be decoded or composed.
    side: Vec<u8>,
    /// What the headers of the last request mean, if it was one of those that clients repeat.
    cached_headers: Option<Box<CachedHeaders>>,
    /// The user of the last request with a command.
    last_user: Option<User>,
    /// Bodies that were received into allocations of their own.
    big: Vec<Arc<Vec<u8>>>,
    /// The request that has not arrived in full.
    arriving: Option<Arriving>,
    /// The client waits to be told to send its body.
    wants_continue: bool,
    /// Nothing that comes is looked at any more.
    refused: bool,
    /// Since the client has sent something that is refused: it may go on doing so.
    abandoned: bool,
}

/// Requests that were read and are not yet answered, in their order.
#[derive(Default)]
struct Exchanges {
    waiting: VecDeque<Exchange>,
    /// The sender of the last request was known, or need not be.
    is_admitted: bool,
    /// Whether an answer has ended the connection.
    closed: bool,
    /// The first request follows changes: its answer does not end.
    following: Option<Arc<Follower>>,
    /// The command with which the first request goes on after the written part is sent.
    goes_on: Option<PendingCommand>,
}

impl Http {
    /// A connection that has sent nothing yet, at this millisecond of the monotonic clock.
    pub(super) fn new(monotonic: u64) -> Http {
        let input = Input { arriving: Some(Arriving::begin(monotonic)), ..Input::default() };
        Http { input, exchanges: Exchanges::default() }
    }

    /// Parses requests into the batch, up to the connection's share of the turn. Returns whether
    /// more of them may lie in `buffer`.
    fn parse_requests(
        &mut self,
        buffer: &[u8],
        intake: Intake<'_>,
        batch: &mut CommandBatch,
    ) -> bool {
        let max_body = intake.config.proto_max_bulk_len;
        let share = match self.exchanges.is_admitted {
            true => limits::HTTP_REQUESTS_PER_TURN,
            false => limits::UNAUTHENTICATED_REQUESTS,
        };
        let mut prepared = 0;
        // Not more of them wait than one turn takes, whatever waits before them.
        for _ in self.exchanges.waiting.len()..share {
            if self.input.refused {
                return false;
            }
            if prepared > limits::HTTP_PREPARED_PER_TURN {
                return true;
            }
            let first = batch.items.len();
            let Input { parser, side, big, cached_headers, last_user, .. } = &mut self.input;
            // A body that is received apart does not lie behind its head.
            let begins = (!parser.is_within_body()).then(|| parser.done());
            let generation = generation(intake);
            let known = parser.next_head(buffer).and_then(|rest| {
                let cached_headers = cached_headers.as_ref()?;
                let (request, length) = cached_headers.of(rest, generation)?;
                parser.pass(length);
                let batch = &mut *batch;
                let user = cached_headers.user().filter(|user| !user.is_same(last_user)).cloned();
                let to = (&mut *side, &mut *big);
                let mut route = route::Route::new(buffer, to, intake, batch);
                Some(route.take_cached(request, user))
            });
            let is_known = known.is_some();
            let is_admitted = &mut self.exchanges.is_admitted;
            // Headers of others are not kept.
            *is_admitted |= is_known;
            let parsed = known.map(Parsed::Request).unwrap_or_else(|| {
                parser.parse(buffer, max_body, |head, body| {
                    let batch = &mut *batch;
                    let mut route = route::Route::new(buffer, (side, big), intake, batch);
                    let exchange = route.take(head, body);
                    *is_admitted = route.is_admitted;
                    exchange
                })
            });
            match parsed {
                Parsed::Request(exchange) => {
                    if let Some(from) = begins.filter(|_| !is_known) {
                        let bytes = &buffer[from..parser.done()];
                        CachedHeaders::note(cached_headers, bytes, &exchange, generation);
                    }
                    if let Some(user) = exchange.user().filter(|_| !exchange.is_ready()) {
                        *last_user = Some(user.clone());
                    }
                    self.input.arriving = None;
                    // Its body has come without that.
                    self.input.wants_continue = false;
                    self.input.refused = exchange.envelope.close;
                    prepared += exchange.prepared_length();
                    self.exchanges.waiting.push_back(exchange);
                    if self.input.parser.done() == buffer.len() {
                        return false;
                    }
                    // It may wait, or change the password: what comes behind it is judged after it.
                    let is_short = |item: &Item| item.row.is_some_and(Row::may_take_fast_path);
                    if !batch.items[first..].iter().all(is_short) {
                        return true;
                    }
                }
                Parsed::Head { from, to } => self.look_at_head(&buffer[from..to], intake),
                Parsed::Incomplete => {
                    if self.input.parser.is_within_request(buffer) {
                        let begin = || Arriving::begin(intake.monotonic);
                        self.input.arriving.get_or_insert_with(begin);
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
                self.exchanges.is_admitted = reception.is_admitted;
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
    fn wait_for_turn(&mut self, monotonic: u64) {
        if let Some(arriving) = &mut self.input.arriving {
            arriving.wait(monotonic);
        }
    }

    /// Refuses a request that takes too long to arrive. Returns whether there is one.
    fn end_slow_request(&mut self, buffer: &[u8], monotonic: u64) -> bool {
        let received = self.input.parser.body_so_far(buffer) as u64;
        let is_late = |arriving: &mut Arriving| arriving.is_late(received, monotonic);
        if self.input.refused || !self.input.arriving.as_mut().is_some_and(is_late) {
            return false;
        }
        self.refuse(Refusal { status: 408, reason: "the request took too long to arrive" });
        true
    }
}

/// Rises when the settings change, or a user: what a request has meant under another one may no
/// longer hold.
fn generation(intake: Intake<'_>) -> u64 {
    intake.config_generation.wrapping_add(intake.engine.users.generation())
}

impl Exchanges {
    /// Bytes that may wait for the client before its next request is answered.
    #[inline]
    fn most_pending(&self) -> usize {
        if self.is_admitted { limits::HTTP_PENDING } else { limits::UNAUTHENTICATED_OUTPUT }
    }

    /// Writes answers that depend on no command.
    #[inline]
    fn answer_ready(&mut self, now: u64, output: &mut Output) {
        while !self.closed
            && output.len() <= self.most_pending()
            && self.waiting.front().is_some_and(Exchange::is_ready)
        {
            if let Some(exchange) = self.waiting.pop_front() {
                self.closed |= exchange.envelope.close;
                exchange.write_ready(now, output);
            }
        }
    }

    /// Answers the first request that waits, and no other, because the server stops.
    fn stop(&mut self, (now, monotonic): (u64, u64), output: &mut Output) {
        self.answer_ready(now, output);
        if self.closed || self.following.is_some() || self.streams() {
            return;
        }
        if let Some(mut first) = self.waiting.pop_front() {
            first.envelope.close = true;
            first.stop((now, monotonic), output);
            self.closed = true;
        }
    }

    /// Prepares the session for a command of the first waiting request. Those before it are
    /// answered.
    fn begin(&mut self, turn: &Turn, session: &mut Session, output: &mut Output) {
        let Some(first) = self.waiting.front_mut() else { return };
        debug_assert!(!first.is_ready(), "it needs a command");
        first.begin(turn.monotonic, session);
        session.limit_output(&turn.config, output);
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
    fn streams(&self) -> bool {
        self.waiting.front().is_some_and(Exchange::streams)
    }

    /// Writes the next piece of such an answer.
    fn stream(&mut self, now: u64, session: &mut Session, output: &mut Output) {
        match self.waiting.front_mut().map(|first| first.go_on(output)) {
            Some(exchange::Next::Answered) => self.end_first(now, session, output),
            Some(exchange::Next::Breaks) => self.break_off(session),
            _ => {}
        }
    }

    /// Takes the reply of a command. Writes the answer when it was the last of its request. Returns
    /// what the request still has to do, if that follows from the reply.
    fn take_reply(
        &mut self,
        engine: &Engine,
        turn: &Turn,
        session: &mut Session,
        reply: &mut Output,
        output: &mut Output,
    ) -> Option<PendingCommand> {
        let first = self.waiting.front_mut()?;
        match first.take_reply_or_wait((engine, turn), session, reply, output) {
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
            exchange::Next::Runs(argv) => Some(PendingCommand::new(engine.commands, argv)),
            exchange::Next::Reads(argv) => {
                Some(PendingCommand { row: Some(commands::http_rows().get), argv })
            }
            exchange::Next::AwaitsCopies(argv) => {
                Some(PendingCommand { row: Some(commands::http_rows().await_copies), argv })
            }
            exchange::Next::Watches(argv) => {
                Some(PendingCommand { row: Some(commands::http_rows().node_wait), argv })
            }
            exchange::Next::GoesOn(argv) => {
                self.goes_on =
                    Some(PendingCommand { row: Some(commands::http_rows().node_wait), argv });
                None
            }
            exchange::Next::Follows(filter, from) => {
                let client = Arc::clone(&session.client);
                let follower = engine.followers.add(client, filter, from);
                // The slot may have left between the command and here.
                engine.look_again_at_follower(&follower);
                self.following = Some(follower);
                None
            }
        }
    }
}
