//! Running parsed commands: those of all connections as one batch, then the pending ones.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use base::clock::Ticks;
use engine::command::args::KeyAt;
use engine::db::slot_access::SlotAccess;
use engine::engine::Engine;
use engine::engine::busy::Busy;
use engine::turn::Turn;
use engine::turn::expansion::runs_scripts;
use engine::turn::request::{Outcome, Request};
use resp::args::OwnedArguments;
use store::gate::Pinned;

use super::Worker;
use crate::net::batch::{CommandBatch, Item};
use crate::net::connection::Connection;
use crate::net::pending::{Executed, PendingCommand, Ran, WaitsFor};
use crate::net::protocol::Protocol;

/// Commands fetched ahead of execution together.
const WINDOW: usize = 32;
/// How long a batch may take, in nanoseconds, before the rest of it is put off. One of small
/// commands takes less, however many there are; a client may also send a thousand that take long.
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
                prefetch(&self.engine, inside.pinned(), &self.connections, &batch.keys, window);
            }
            next = self.execute_window(&batch, next..fetched, begun, inside.pinned());
            // A script returns past the look that its window takes at the time.
            if next < batch.items.len() && begun.elapsed_ns() > BATCH_NS {
                put_off_all(&mut self.connections, &batch, next, |_| true);
                break;
            }
        }
        self.batch = batch;
    }

    /// Runs commands of a batch, up to the first script. Returns where to continue. When the batch
    /// has taken long, that is its end: the rest is put off.
    fn execute_window(
        &mut self,
        batch: &CommandBatch,
        window: Range<usize>,
        begun: Ticks,
        pinned: Pinned<'_>,
    ) -> usize {
        let Worker { engine, turn, connections, .. } = self;
        let mut at = window.start;
        while at < window.end {
            let item = &batch.items[at];
            let Some(connection) = &mut connections[item.connection_index] else {
                at += 1;
                continue;
            };
            let ran = execute_fast(engine, turn, connection, batch, at..window.end, pinned);
            if ran == 0 {
                if item.row.is_some_and(|row| runs_scripts(row.command, &connection.session)) {
                    return self.execute_script(batch, at, pinned);
                }
                let slot_access = SlotAccess::Ordinary(pinned);
                execute(engine, turn, connection, item, batch, slot_access, None);
            }
            at += ran.max(1);
            if begun.elapsed_ns() > BATCH_NS {
                put_off_all(connections, batch, at, |_| true);
                return batch.items.len();
            }
        }
        window.end
    }

    /// Runs a script of the batch. If it takes long, other clients are served meanwhile. Returns
    /// where to continue.
    fn execute_script(&mut self, batch: &CommandBatch, at: usize, pinned: Pinned<'_>) -> usize {
        let item = &batch.items[at];
        let rest = Some((batch, at + 1));
        let ran = self.with_yielding(
            item.connection_index,
            rest,
            pinned,
            |engine, turn, connection, yielding| {
                let slot_access = SlotAccess::Ordinary(pinned);
                execute(engine, turn, connection, item, batch, slot_access, Some(yielding));
            },
        );
        let Some(((), true)) = ran else { return at + 1 };
        let gate = Arc::clone(&self.gate);
        gate.within(pinned, || self.take_inbox(item.connection_index));
        // The others' are put off already.
        put_off_all(&mut self.connections, batch, at + 1, |other| {
            other.connection_index == item.connection_index
        });
        batch.items.len()
    }

    /// Runs the command for which the connection waits, if it can run by now, and the commands
    /// after it.
    pub(super) fn run_with_more_access(&mut self, index: usize) {
        let Some(connection) = &mut self.connections[index] else { return };
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
            let monotonic = turn.monotonic;
            let settled = connection.reply((&engine, turn), |session, reply| {
                engine.settle_sync_wait(session, &wait, monotonic, reply)
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
        let (space, slow, yields) = (&engine.keyspace, engine.scripts.slow.any(), self.yields);
        pending.run(space, gates, (&gate, slow), Instant::now, |command, slot_access| {
            self.run_pending(index, command, slot_access)
        });
        if let Some(connection) = &mut self.connections[index] {
            connection.pending = pending;
        }
        if self.yields != yields {
            self.take_inbox(index);
        }
    }

    /// Runs a pending command.
    fn run_pending(
        &mut self,
        index: usize,
        command: PendingCommand,
        slot_access: SlotAccess<'_>,
    ) -> Ran {
        let Worker { engine, turn, connections, .. } = self;
        let Some(connection) = &mut connections[index] else { return GONE };
        let is_script =
            command.row.is_some_and(|row| runs_scripts(row.command, &connection.session));
        if !is_script {
            return run_pending(engine, turn, connection, command, slot_access, None);
        }
        let ran = self.with_yielding(
            index,
            None,
            slot_access.pinned(),
            |engine, turn, connection, yielding| {
                run_pending(engine, turn, connection, command, slot_access, Some(yielding))
            },
        );
        ran.map_or(GONE, |(ran, _)| ran)
    }
}

/// The outcome of a command whose connection is away.
const GONE: Ran =
    Ran { outcome: Outcome::Done, command: None, parts: Vec::new(), slot: None, open: false };

/// Prefetches the data of a window of commands: slots, then buckets, then entries.
fn prefetch(
    engine: &Engine,
    pinned: Pinned<'_>,
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
        connections[item.connection_index]
            .as_ref()
            .map_or(0, |connection| connection.session.database)
    };
    let alike = |one: &Item, next: &Item| {
        one.connection_index == next.connection_index || database(one) == database(next)
    };
    let parts = || {
        window.chunk_by(alike).map(|part| {
            let (first, last) = (&part[0], &part[part.len() - 1]);
            (database(first), &keys[first.keys.start..last.keys.end])
        })
    };
    for (database, keys) in parts() {
        engine.prefetch_buckets(pinned, database, keys);
    }
    for (database, keys) in parts() {
        engine.prefetch_entries(pinned, database, keys);
    }
}

/// Runs commands of the batch on the fast path that its first connection has sent, up to the first
/// that has to take the slow one. Returns how many have run.
#[inline]
fn execute_fast(
    engine: &Engine,
    turn: &mut Turn,
    connection: &mut Connection,
    batch: &CommandBatch,
    window: Range<usize>,
    pinned: Pinned<'_>,
) -> usize {
    if !connection.runs() || !connection.pending.is_empty() || connection.holds_replies() {
        return 0;
    }
    connection.answer_earlier(turn.now);
    if connection.is_choked() {
        return 0;
    }
    let (protocol, parts) = connection.parts();
    let ran = protocol.run_fast((engine, turn), &batch.items[window], batch, pinned, parts);
    connection.look_at_output_limit();
    ran
}

/// Runs a command of the batch, or puts it after the pending ones of its connection.
fn execute(
    engine: &Engine,
    turn: &mut Turn,
    connection: &mut Connection,
    item: &Item,
    batch: &CommandBatch,
    slot_access: SlotAccess<'_>,
    busy: Option<&dyn Busy>,
) {
    connection.answer_earlier(turn.now);
    if !connection.runs() || connection.defers_input() {
        return put_off(connection, item, batch);
    }
    let (protocol, parts) = connection.parts();
    let argv = protocol.arguments(parts.input, &batch.args[item.args.clone()]);
    if let Some(all) = engine.parts_of(parts.session, item.row, argv) {
        return parts.pending.push_parts_first(item.row, all);
    }
    let mut ran =
        protocol.run_parsed((engine, &mut *turn), item, batch, (slot_access, busy), parts);
    let again = ran.outcome.runs_again().then(|| owned(connection, item, batch));
    let again = again.or(ran.next.take());
    conclude(engine, turn, connection, &ran);
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
    batch: &CommandBatch,
    first: usize,
    which: impl Fn(&Item) -> bool,
) {
    for item in batch.items[first..].iter().filter(|item| which(item)) {
        if let Some(connection) = &mut connections[item.connection_index] {
            put_off(connection, item, batch);
        }
    }
}

/// Puts a command of the batch after the pending ones of its connection.
fn put_off(connection: &mut Connection, item: &Item, batch: &CommandBatch) {
    if !connection.is_ending() {
        let command = owned(connection, item, batch);
        connection.pending.push(command);
    }
}

/// A command of the batch with its own copy of its arguments.
fn owned(connection: &Connection, item: &Item, batch: &CommandBatch) -> PendingCommand {
    let ranges = &batch.args[item.args.clone()];
    let argv = OwnedArguments::from(connection.protocol.arguments(&connection.input, ranges));
    PendingCommand { row: item.row, argv }
}

/// Runs a pending command.
fn run_pending(
    engine: &Engine,
    turn: &mut Turn,
    connection: &mut Connection,
    command: PendingCommand,
    slot_access: SlotAccess<'_>,
    busy: Option<&dyn Busy>,
) -> Ran {
    let argv = command.argv.view();
    if let Some(parts) = engine.parts_of(&mut connection.session, command.row, argv) {
        return Ran { parts, open: true, ..GONE };
    }
    let mut keys = Vec::new();
    if let Some(row) = command.row {
        engine.find_keys(row, argv, &mut keys);
    }
    let request = Request { argv, row: command.row, keys: &keys, busy };
    turn.enter(engine);
    let (protocol, parts) = connection.parts();
    let mut ran = protocol.run((engine, &mut *turn), request, slot_access, parts);
    conclude(engine, turn, connection, &ran);
    let (outcome, next) = (ran.outcome, ran.next.take());
    let command = outcome.runs_again().then_some(command).or(next);
    let open = !connection.is_ending() && !connection.is_choked();
    Ran { outcome, command, parts: Vec::new(), slot: turn.contended_slot, open }
}

/// Settles a command that has run, or has not.
#[inline]
fn conclude(engine: &Engine, turn: &Turn, connection: &mut Connection, ran: &Executed) {
    let is_done = matches!(ran.outcome, Outcome::Done);
    // What it replied leaves when its client has waited to the end.
    let waits = matches!(ran.outcome, Outcome::Blocked(_)) && ran.replied;
    if (is_done || waits) && connection.hold_back((engine, turn), ran.from, waits) {
        return connection.look_at_output_limit();
    }
    if !is_done {
        connection.deferred_from = waits.then_some(ran.from);
    }
    if turn.defers_replies() && connection.session.durability.heeds_disk() {
        connection.defer_replies(ran.from);
    }
    connection.look_at_output_limit();
}
