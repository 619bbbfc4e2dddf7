//! HTTP, as the protocol of a connection.

use std::cell::Cell;
use std::ops::Range;

use base::limits;
use engine::db::slot_access::SlotAccess;
use engine::engine::Engine;
use engine::engine::busy::Busy;
use engine::session::Session;
use engine::session::pubsub::take_messages;
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
        // Changes that it was told before it fell behind come first. What else is in the inbox is
        // for who takes it as a whole.
        take_messages(&session.client, &mut Reply::new(output, session.resp3));
        session.close |= read_on(engine, listener, output);
    }

    fn leave_slots(&mut self, session: &mut Session, output: &mut Output) {
        let Some(listener) = &self.exchanges.following else { return };
        if let Some(error) = listener.refusal() {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cluster::ids::{NodeId, ShardId};
    use cluster::topology::{Address, Leader, Node, Shard, Topology};
    use config::Config;
    use engine::journal::filter::{Filter, Keys};
    use engine::testing::TestServer;

    use super::*;

    /// Nodes 1 and 2 with a shard each. `k2` is in slot 449.
    fn topology(first: &str, second: &str) -> Arc<Topology> {
        let all = [(1, first), (2, second)];
        let nodes = all.map(|(number, _)| Node {
            id: NodeId([number; 20]),
            shard: Some(ShardId([number; 20])),
            address: Address {
                host: "10.0.0.2".to_owned(),
                port: 7000 + u16::from(number),
                ..Address::default()
            },
            zone: String::new(),
            alive: Some(1),
            version: String::new(),
            name: String::new(),
        });
        let shards = all.map(|(number, slots)| {
            let node = NodeId([number; 20]);
            let leader = Leader { node, incarnation: 1, epoch: i64::from(number), start: 0 };
            Shard {
                id: ShardId([number; 20]),
                slots: slots.parse().unwrap(),
                members: vec![node],
                joining: Vec::new(),
                leader: Some(leader),
                last_leader: Some(leader),
                is_failed: false,
                modified: 1,
            }
        });
        Arc::new(Topology::new("test".to_owned(), 1, nodes, shards, []))
    }

    /// A follower of `k2` that has read nothing yet. Its slot leaves, and comes back if `returns`.
    fn leaves(returns: bool) {
        let config = Config { cluster_enabled: true, ..Config::default() };
        let mut server = TestServer::with(commands::registry(), config);
        server.engine.cluster.set_own(NodeId([1; 20]));
        server.engine.follow_topology(topology("0-8000", "8001-16383"));
        server.engine.keep_changes();
        let from = server.engine.followers.delivered();
        assert_eq!(server.text("SET k2 v"), "+OK\r\n");
        let mut session = server.connect();
        let filter = Filter { database: None, keys: Keys::One(b"k2".as_slice().into()) };
        let follower = server.engine.followers.add(Arc::clone(&session.client), filter, from);
        let mut http = Http::new(0);
        http.exchanges.following = Some(follower);
        session.client.inbox.lock().pushes.push(Arc::new(b"earlier\n".to_vec()));
        server.engine.follow_topology(topology("1000-8000", "0-999,8001-16383"));
        // Its worker may read on for it before it takes the inbox.
        let mut output = Output::new();
        http.read_on(&server.engine, &mut session, &mut output);
        assert_eq!(output.to_vec(), b"earlier\n", "nothing of a key that lives on elsewhere");
        assert!(session.client.inbox.lock().slots_left, "that is for who takes the inbox");
        if returns {
            server.engine.follow_topology(topology("0-8000", "8001-16383"));
        }
        http.leave_slots(&mut session, &mut output);
        let text = String::from_utf8_lossy(&output.to_vec()).into_owned();
        let moved = "event: moved\ndata: {\"error\":\"MOVED 449 10.0.0.2:7002\"}\n\n";
        assert_eq!(text, format!("earlier\n{moved}"));
        assert!(session.close && server.engine.followers.is_empty());
    }

    #[test]
    fn a_follower_that_is_behind_hears_that_its_slot_has_left() {
        leaves(false);
    }

    /// Nobody tells it of changes any more, so it has to come again.
    #[test]
    fn a_follower_whose_slot_has_left_and_come_back_is_sent_away_all_the_same() {
        leaves(true);
    }
}
