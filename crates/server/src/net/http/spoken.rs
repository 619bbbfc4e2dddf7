//! HTTP, as the protocol of a connection.

use std::cell::Cell;
use std::ops::Range;

use base::limits;
use engine::db::slot_access::SlotAccess;
use engine::engine::Engine;
use engine::engine::busy::Busy;
use engine::session::Session;
use engine::turn::Turn;
use engine::turn::request::{Outcome, Request, Requests};
use resp::args::{ArgRange, Arguments};
use resp::output::Output;
use resp::reply::Reply;
use store::gate::Pinned;

use super::changes::{read_on, write_moved};
use super::exchange::Exchange;
use super::{Exchanges, Http, Input};
use crate::net::batch::{CommandBatch, Item};
use crate::net::intake::Intake;
use crate::net::pending::{Executed, PendingCommand};
use crate::net::protocol::{In, Parts, Protocol};

/// Requests for whose answers a connection that has nothing to do keeps room.
const FEW: usize = 4;

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

/// [`run_one`] on the fast path. Nothing if the command has to take the slow one, of which nothing
/// was touched then.
#[inline]
fn run_one_plainly(
    engine: &Engine,
    turn: &mut Turn,
    request: Request<'_>,
    pinned: Pinned<'_>,
    (exchanges, session, output): To<'_>,
) -> Option<Option<PendingCommand>> {
    exchanges.begin(turn, session, output);
    let mut reply = REPLY.take().unwrap_or_default();
    reply.set_limit(output.limit());
    let ran = engine.execute_fast(turn, session, &mut One(request), pinned, &mut reply);
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

/// Runs a command of the first request that waits, and writes the answer when its reply was the
/// last that the request needs. Otherwise another command may have to run next.
fn run_one(
    engine: &Engine,
    turn: &mut Turn,
    request: Request<'_>,
    slot_access: SlotAccess<'_>,
    (exchanges, session, output): To<'_>,
) -> Executed {
    exchanges.begin(turn, session, output);
    let from = output.end();
    let mut reply = REPLY.take().unwrap_or_default();
    reply.set_limit(output.limit());
    let outcome = engine.execute(turn, session, request, slot_access, &mut reply);
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
    fn arguments<'a>(&'a self, buffer: &'a [u8], ranges: &'a [ArgRange]) -> Arguments<'a> {
        Arguments::new(ranges, buffer, &self.side, &self.big)
    }
}

impl Protocol for Http {
    fn parse(&mut self, input: &[u8], intake: Intake<'_>, batch: &mut CommandBatch) -> bool {
        self.parse_requests(input, intake, batch)
    }

    #[inline]
    fn arguments<'a>(&'a self, input: &'a [u8], ranges: &'a [ArgRange]) -> Arguments<'a> {
        self.input.arguments(input, ranges)
    }

    fn receives_apart(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        self.input.parser.receives_apart()
    }

    fn is_receiving_apart(&self) -> bool {
        self.input.parser.is_receiving_apart()
    }

    fn has_refused(&self) -> bool {
        self.input.refused
    }

    fn may_be_sending(&self) -> bool {
        self.input.abandoned
    }

    fn refuse_late(&mut self, input: &[u8], monotonic: u64, waits: bool) -> bool {
        if waits {
            self.wait_for_turn(monotonic);
        }
        if self.exchanges.waiting.is_empty() {
            self.exchanges.waiting.shrink_to(FEW);
        }
        !waits && self.end_slow_request(input, monotonic)
    }

    fn done(&self) -> usize {
        self.input.parser.done()
    }

    /// Forgets requests whose commands have run or were copied.
    fn compact_if_worthwhile(&mut self, length: usize) -> Range<usize> {
        self.input.side.clear();
        self.input.side.shrink_to(limits::READ_BUFFER);
        self.input.big.clear();
        self.input.parser.compact_if_worthwhile(length)
    }

    fn memory(&self) -> usize {
        let Input { cached_headers, side, big, .. } = &self.input;
        let cached_headers =
            cached_headers.as_ref().map_or(0, |cached_headers| cached_headers.memory());
        let bodies = big.iter().map(|body| body.capacity()).sum::<usize>();
        cached_headers + side.capacity() + bodies
    }

    fn unfinished(&self, length: usize) -> usize {
        let Input { side, big, .. } = &self.input;
        let arguments = side.len() + big.iter().map(|body| body.len()).sum::<usize>();
        length - self.done() + arguments
    }

    fn apart_memory(&self) -> (usize, usize) {
        self.input.parser.memory()
    }

    /// Runs one command at most: its reply decides what its request needs next.
    #[inline]
    fn run_fast(
        &mut self,
        (engine, turn): In<'_>,
        items: &[Item],
        batch: &CommandBatch,
        pinned: Pinned<'_>,
        parts: Parts<'_>,
    ) -> usize {
        let item = &items[0];
        let Some(row) = item.row.filter(|row| row.may_take_fast_path()) else { return 0 };
        let Parts { input, session, output, deferred_replies, pending } = parts;
        let from = output.end();
        let argv = self.input.arguments(input, &batch.args[item.args.clone()]);
        let keys = &batch.keys[item.keys.clone()];
        let request = Request { argv, row: Some(row), keys, busy: None };
        let to = (&mut self.exchanges, &mut *session, output);
        let Some(next) = run_one_plainly(engine, turn, request, pinned, to) else { return 0 };
        if turn.defers_replies() && session.durability.heeds_disk() {
            deferred_replies.add(from, session.depends_on);
        }
        if let Some(next) = next {
            pending.push_first(next);
        }
        1
    }

    fn run_parsed(
        &mut self,
        (engine, turn): In<'_>,
        item: &Item,
        batch: &CommandBatch,
        (slot_access, busy): (SlotAccess<'_>, Option<&dyn Busy>),
        parts: Parts<'_>,
    ) -> Executed {
        let Parts { input, session, output, .. } = parts;
        let argv = self.input.arguments(input, &batch.args[item.args.clone()]);
        let keys = &batch.keys[item.keys.clone()];
        let request = Request { argv, row: item.row, keys, busy };
        run_one(engine, turn, request, slot_access, (&mut self.exchanges, session, output))
    }

    fn run(
        &mut self,
        (engine, turn): In<'_>,
        request: Request<'_>,
        slot_access: SlotAccess<'_>,
        parts: Parts<'_>,
    ) -> Executed {
        let to = (&mut self.exchanges, parts.session, parts.output);
        run_one(engine, turn, request, slot_access, to)
    }

    fn has_answer(&self) -> bool {
        (!self.exchanges.waiting.is_empty() && !self.is_endless()) || self.input.wants_continue
    }

    /// Also tells the client to send its body when the body is needed.
    fn answer_ready(&mut self, now: u64, session: &mut Session, output: &mut Output) {
        self.exchanges.answer_ready(now, output);
        if self.exchanges.waiting.is_empty() && std::mem::take(&mut self.input.wants_continue) {
            output.push(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        session.close |= self.exchanges.closed;
    }

    #[inline]
    fn answer_earlier(&mut self, now: u64, output: &mut Output) {
        self.exchanges.answer_ready(now, output);
    }

    fn reply(
        &mut self,
        (engine, turn): (&Engine, &Turn),
        write: impl FnOnce(&Session, &mut Reply<'_>) -> bool,
        parts: Parts<'_>,
    ) -> bool {
        let Parts { session, output, pending, .. } = parts;
        let mut own = Output::new();
        let written = write(session, &mut Reply::new(&mut own, session.resp3));
        if written {
            let next = self.exchanges.take_reply(engine, turn, session, &mut own, output);
            next.into_iter().for_each(|next| pending.push_first(next));
        }
        written
    }

    #[inline]
    fn goes_on(&self) -> bool {
        self.exchanges.goes_on.is_some() || self.streams()
    }

    #[inline]
    fn streams(&self) -> bool {
        self.exchanges.streams()
    }

    fn go_on(&mut self, now: u64, parts: Parts<'_>) {
        if self.streams() {
            self.exchanges.stream(now, parts.session, parts.output);
        } else if let Some(next) = self.exchanges.goes_on.take() {
            parts.pending.push_first(next);
        }
    }

    fn is_endless(&self) -> bool {
        self.follows() || self.exchanges.goes_on.is_some()
    }

    fn follows(&self) -> bool {
        self.exchanges.following.is_some()
    }

    fn is_behind(&self) -> bool {
        self.exchanges.following.as_ref().is_some_and(|listener| listener.behind().is_some())
    }

    fn read_on(&mut self, engine: &Engine, session: &mut Session, output: &mut Output) {
        let Some(listener) = &self.exchanges.following else { return };
        // Changes that it was told before it fell behind come first.
        let inbox = std::mem::take(&mut *session.client.inbox.lock());
        inbox.pushes.iter().for_each(|message| output.push_shared(message));
        session.close |= read_on(engine, listener, output);
    }

    fn leave_slots(&mut self, engine: &Engine, session: &mut Session, output: &mut Output) {
        let Some(listener) = &self.exchanges.following else { return };
        let refusal = engine.refusal_of_follower(&session.client, &listener.filter);
        if let Some(error) = refusal {
            write_moved(error.as_bytes(), output);
            session.close = true;
        }
    }

    /// A part of an answer has to be taken before the next one is written.
    #[inline]
    fn is_choked(&self, unsent: impl FnOnce() -> usize) -> bool {
        unsent() > self.exchanges.most_pending() || self.streams()
    }

    #[inline]
    fn is_admitted(&self, _: &Session) -> bool {
        self.exchanges.is_admitted
    }

    fn is_to_be_taken(&self, _: bool) -> bool {
        !self.is_endless()
    }

    fn gathered_length(&self) -> usize {
        self.exchanges.waiting.front().map_or(0, Exchange::gathered_length)
    }

    fn gathered(&self) -> usize {
        self.exchanges.waiting.front().map_or(0, Exchange::gathered_memory)
    }

    fn objection(&self, input: usize) -> Option<&'static str> {
        let talks = self.follows() && input > limits::READ_BUFFER;
        talks.then_some("it sends while it follows changes")
    }

    fn only_waits(&self) -> bool {
        self.exchanges.waiting.front().is_some_and(Exchange::only_waits)
    }

    fn gives_up_at_end(&self) -> bool {
        true
    }

    fn stop(&mut self, times: (u64, u64), output: &mut Output) {
        self.exchanges.stop(times, output);
    }

    fn leave(&mut self, engine: &Engine) {
        if let Some(follower) = &self.exchanges.following {
            engine.followers.remove(follower);
        }
    }
}
