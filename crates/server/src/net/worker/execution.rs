//! Running parsed commands: those of all connections as one batch, then the pending ones.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use base::clock::Ticks;
use engine::engine::Engine;
use engine::handler::args::KeyAt;
use engine::run::authority::Authority;
use engine::run::busy::Busy;
use engine::run::consists::runs_scripts;
use engine::run::request::{Outcome, Request, Requests};
use engine::run::turn::Turn;
use engine::session::Session;
use resp::args::OwnedArguments;
use resp::output::Output;
use store::gate::Presence;

use super::Worker;
use crate::net::batch::{Batch, Item};
use crate::net::connection::{Connection, Deferred};
use crate::net::http::{self, Http};
use crate::net::pending::{Executed, Pending, Ran, WaitsFor};
use crate::net::protocol::Protocol;
use crate::net::resp::Resp;

/// Commands fetched ahead of execution together.
const WINDOW: usize = 32;
/// How long a batch may take, in nanoseconds, before the rest of it is put off. One of small commands takes
/// less, however many there are; a client may also send a thousand that take long.
const BATCH_NS: u64 = 100_000_000;

impl Worker {
    pub(super) fn execute_batch(&mut self) {
        if self.batch.items.is_empty() {
            return;
        }
        // Apart, since scripts let the worker have another one meanwhile.
        let batch = std::mem::take(&mut self.batch);
        let gate = Arc::clone(&self.gate);
        let inside = gate.enter();
        self.turn.enter(&self.engine);
        let begun = Ticks::now();
        let (mut next, mut fetched) = (0, 0);
        while next < batch.items.len() {
            // A script ends a run of commands; the commands after it were prefetched with it.
            if next >= fetched {
                fetched = (next + WINDOW).min(batch.items.len());
                let window = &batch.items[next..fetched];
                prefetch(&self.engine, inside.presence(), &self.connections, &batch.keys, window);
            }
            next = self.execute_window(&batch, next..fetched, begun, inside.presence());
            // A script returns past the look that its window takes at the time.
            if next < batch.items.len() && begun.elapsed_ns() > BATCH_NS {
                put_off_all(&mut self.connections, &batch, next, |_| true);
                break;
            }
        }
        self.batch = batch;
    }

    /// Runs commands of a batch, up to the first script. Returns where to continue. When the batch has
    /// taken long, that is its end: the rest is put off.
    fn execute_window(
        &mut self,
        batch: &Batch,
        window: Range<usize>,
        begun: Ticks,
        presence: Presence<'_>,
    ) -> usize {
        let Worker { engine, turn, connections, .. } = self;
        let mut at = window.start;
        while at < window.end {
            let item = &batch.items[at];
            let Some(connection) = &mut connections[item.place] else {
                at += 1;
                continue;
            };
            let ran = execute_plainly(engine, turn, connection, batch, at..window.end, presence);
            if ran == 0 {
                if item.row.is_some_and(|row| runs_scripts(row.command, &connection.session)) {
                    return self.execute_script(batch, at, presence);
                }
                let authority = Authority::Ordinary(presence);
                execute(engine, turn, connection, item, batch, authority, None);
            }
            at += ran.max(1);
            if begun.elapsed_ns() > BATCH_NS {
                put_off_all(connections, batch, at, |_| true);
                return batch.items.len();
            }
        }
        window.end
    }

    /// Runs a script of the batch. If it takes long, other clients are served meanwhile. Returns where
    /// to continue.
    fn execute_script(&mut self, batch: &Batch, at: usize, presence: Presence<'_>) -> usize {
        let item = &batch.items[at];
        let rest = Some((batch, at + 1));
        let ran =
            self.with_relief(item.place, rest, presence, |engine, turn, connection, relief| {
                let authority = Authority::Ordinary(presence);
                execute(engine, turn, connection, item, batch, authority, Some(relief));
            });
        let Some(((), true)) = ran else { return at + 1 };
        let gate = Arc::clone(&self.gate);
        gate.within(presence, || self.take_inbox(item.place));
        // The others' are put off already.
        put_off_all(&mut self.connections, batch, at + 1, |other| other.place == item.place);
        batch.items.len()
    }

    /// Runs the command for which the connection waits, if it can run by now, and the commands after
    /// it.
    pub(super) fn run_with_more_authority(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        if connection.is_ending() || !connection.has_pending() {
            return;
        }
        if matches!(connection.pending.waits_for, WaitsFor::Nothing) {
            connection.answer_earlier(self.turn.now);
            if connection.is_choked() {
                return;
            }
        }
        let (engine, turn) = (Arc::clone(&self.engine), &self.turn);
        if let Some(wait) = connection.pending.sync_wait().map(Arc::clone) {
            let steady = turn.steady;
            let settled = connection.reply((&engine, turn), |session, reply| {
                engine.settle_sync_wait(session, &wait, steady, reply)
            });
            if !settled {
                return;
            }
            connection.pending.waits_for = WaitsFor::Nothing;
        }
        let mut pending = std::mem::take(&mut connection.pending);
        let gate = Arc::clone(&self.gate);
        // The gate of this thread stays shut until its script has ended.
        let gates = (!self.relieves).then_some(&engine.gates);
        let (space, slow, reliefs) = (&engine.keyspace, engine.scripts.slow.any(), self.reliefs);
        pending.run(space, gates, (&gate, slow), Instant::now, |command, authority| {
            self.run_pending(place, command, authority)
        });
        if let Some(connection) = &mut self.connections[place] {
            connection.pending = pending;
        }
        if self.reliefs != reliefs {
            self.take_inbox(place);
        }
    }

    /// Runs a pending command.
    fn run_pending(&mut self, place: usize, command: Pending, authority: Authority<'_>) -> Ran {
        let Worker { engine, turn, connections, .. } = self;
        let Some(connection) = &mut connections[place] else { return GONE };
        let is_script =
            command.row.is_some_and(|row| runs_scripts(row.command, &connection.session));
        if !is_script {
            return run_pending(engine, turn, connection, command, authority, None);
        }
        let ran = self.with_relief(
            place,
            None,
            authority.presence(),
            |engine, turn, connection, relief| {
                run_pending(engine, turn, connection, command, authority, Some(relief))
            },
        );
        ran.map_or(GONE, |(ran, _)| ran)
    }
}

/// The outcome of a command whose connection is away.
const GONE: Ran = Ran { outcome: Outcome::Done, command: None, slot: None, open: false };

/// Prefetches the data of a window of commands: slots, then buckets, then entries.
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
    let alike =
        |one: &Item, next: &Item| one.place == next.place || database(one) == database(next);
    let parts = || {
        window.chunk_by(alike).map(|part| {
            let (first, last) = (&part[0], &part[part.len() - 1]);
            (database(first), &keys[first.keys.start..last.keys.end])
        })
    };
    for (database, keys) in parts() {
        engine.prefetch_buckets(presence, database, keys);
    }
    for (database, keys) in parts() {
        engine.prefetch_entries(presence, database, keys);
    }
}

/// Commands of one connection that follow each other in the batch.
struct Run<'c> {
    items: &'c [Item],
    batch: &'c Batch,
    resp: &'c Resp,
    input: &'c [u8],
    deferred_replies: &'c mut Deferred,
}

impl Requests for Run<'_> {
    #[inline]
    fn count(&self) -> usize {
        self.items.len()
    }

    #[inline]
    fn at(&self, index: usize) -> Request<'_> {
        let item = &self.items[index];
        let argv = self.resp.arguments(self.input, &self.batch.args[item.args.clone()]);
        Request { argv, row: item.row, keys: &self.batch.keys[item.keys.clone()], busy: None }
    }

    fn defer_reply(&mut self, from: u64, offset: u64) {
        self.deferred_replies.add(from, offset);
    }
}

/// Runs commands of the batch on the short path that its first connection has sent, up to the first that
/// has to take the long one. Returns how many have run.
#[inline]
fn execute_plainly(
    engine: &Engine,
    turn: &mut Turn,
    connection: &mut Connection,
    batch: &Batch,
    window: Range<usize>,
    presence: Presence<'_>,
) -> usize {
    if !connection.runs() || !connection.pending.is_empty() {
        return 0;
    }
    let rest = &batch.items[window];
    if matches!(connection.protocol, Protocol::Http(_)) {
        return usize::from(execute_http_plainly(
            engine, turn, connection, &rest[0], batch, presence,
        ));
    }
    let Connection { protocol, input, session, output, deferred_replies, .. } = connection;
    let Protocol::Resp(resp) = protocol else { return 0 };
    let own = rest.iter().take_while(|item| item.place == rest[0].place).count();
    let mut run = Run { items: &rest[..own], batch, resp, input, deferred_replies };
    let ran = engine.execute_plainly(turn, session, &mut run, presence, output);
    connection.look_at_output_limit();
    ran
}

/// Runs one command of a request of HTTP on the short path. Returns whether it has run.
#[inline]
fn execute_http_plainly(
    engine: &Engine,
    turn: &mut Turn,
    connection: &mut Connection,
    item: &Item,
    batch: &Batch,
    presence: Presence<'_>,
) -> bool {
    let Some(row) = item.row.filter(|row| row.may_go_short()) else { return false };
    connection.answer_earlier(turn.now);
    if connection.is_choked() {
        return false;
    }
    let from = connection.output.end();
    let Connection { protocol, input, session, output, .. } = connection;
    let Protocol::Http(http) = protocol else { return false };
    let Http { input: http_input, exchanges, .. } = &mut **http;
    let argv = http_input.arguments(input, &batch.args[item.args.clone()]);
    let keys = &batch.keys[item.keys.clone()];
    let request = Request { argv, row: Some(row), keys, busy: None };
    let to = (exchanges, session, output);
    let Some(next) = http::run_plainly(engine, turn, request, presence, to) else { return false };
    if turn.defers_replies() {
        connection.defer_replies(from);
    }
    connection.look_at_output_limit();
    if let Some(next) = next {
        connection.pending.push_first(next);
    }
    true
}

/// Runs a command of the batch, or puts it after the pending ones of its connection.
fn execute(
    engine: &Engine,
    turn: &mut Turn,
    connection: &mut Connection,
    item: &Item,
    batch: &Batch,
    authority: Authority<'_>,
    busy: Option<&dyn Busy>,
) {
    let (ranges, keys) = (&batch.args[item.args.clone()], &batch.keys[item.keys.clone()]);
    let row = item.row;
    let owned = |argv| Pending { row, argv: OwnedArguments::from(argv) };
    connection.answer_earlier(turn.now);
    if !connection.runs() || connection.defers_input() {
        return put_off(connection, item, batch);
    }
    let Connection { protocol, input, session, output, .. } = connection;
    let (ran, again) = match protocol {
        Protocol::Resp(resp) => {
            let argv = resp.arguments(input, ranges);
            let request = Request { argv, row, keys, busy };
            let ran = run_resp(engine, turn, request, authority, (session, output));
            let again = ran.outcome.runs_again().then(|| owned(argv));
            (ran, again)
        }
        Protocol::Http(http) => {
            let Http { input: http_input, exchanges, .. } = &mut **http;
            let argv = http_input.arguments(input, ranges);
            let request = Request { argv, row, keys, busy };
            let to = (exchanges, session, output);
            let mut ran = http::run(engine, turn, request, authority, to);
            let again = ran.outcome.runs_again().then(|| owned(argv));
            let next = ran.next.take();
            (ran, again.or(next))
        }
    };
    conclude(turn, connection, &ran);
    let outcome = ran.outcome;
    if !matches!(outcome, Outcome::Done) {
        let slot = turn.contended_slot;
        connection.pending.wait_for(outcome, again, slot, Instant::now());
    } else if let Some(next) = again {
        connection.pending.push_first(next);
    }
}

/// Puts off those commands of the batch from this one on.
pub(super) fn put_off_all(
    connections: &mut [Option<Box<Connection>>],
    batch: &Batch,
    first: usize,
    which: impl Fn(&Item) -> bool,
) {
    for item in batch.items[first..].iter().filter(|item| which(item)) {
        if let Some(connection) = &mut connections[item.place] {
            put_off(connection, item, batch);
        }
    }
}

/// Puts a command of the batch after the pending ones of its connection.
fn put_off(connection: &mut Connection, item: &Item, batch: &Batch) {
    if !connection.is_ending() {
        let ranges = &batch.args[item.args.clone()];
        let argv = OwnedArguments::from(connection.protocol.arguments(&connection.input, ranges));
        connection.pending.push(Pending { row: item.row, argv });
    }
}

/// Runs a pending command.
fn run_pending(
    engine: &Engine,
    turn: &mut Turn,
    connection: &mut Connection,
    command: Pending,
    authority: Authority<'_>,
    busy: Option<&dyn Busy>,
) -> Ran {
    let argv = command.argv.view();
    let mut keys = Vec::new();
    if let Some(row) = command.row {
        engine.find_keys(row, argv, &mut keys);
    }
    let request = Request { argv, row: command.row, keys: &keys, busy };
    turn.enter(engine);
    let Connection { protocol, session, output, .. } = connection;
    let mut ran = match protocol {
        Protocol::Resp(_) => run_resp(engine, turn, request, authority, (session, output)),
        Protocol::Http(http) => {
            let to = (&mut http.exchanges, session, output);
            http::run(engine, turn, request, authority, to)
        }
    };
    conclude(turn, connection, &ran);
    let (outcome, next) = (ran.outcome, ran.next.take());
    let command = outcome.runs_again().then_some(command).or(next);
    let open = !connection.is_ending() && !connection.is_choked();
    Ran { outcome, command, slot: turn.contended_slot, open }
}

/// Runs a command of a client of RESP, which writes its reply where it is sent from.
#[inline]
fn run_resp(
    engine: &Engine,
    turn: &mut Turn,
    request: Request<'_>,
    authority: Authority<'_>,
    (session, output): (&mut Session, &mut Output),
) -> Executed {
    let from = output.end();
    let outcome = engine.execute(turn, session, request, authority, output);
    Executed { outcome, next: None, from, replied: output.end() > from }
}

/// Settles a command that has run, or has not.
#[inline]
fn conclude(turn: &Turn, connection: &mut Connection, ran: &Executed) {
    if !matches!(ran.outcome, Outcome::Done) {
        // What it replied leaves when its client has waited to the end.
        let waits = matches!(ran.outcome, Outcome::Blocked(_)) && ran.replied;
        connection.deferred_from = waits.then_some(ran.from);
    }
    if turn.defers_replies() {
        connection.defer_replies(ran.from);
    }
    connection.look_at_output_limit();
}
