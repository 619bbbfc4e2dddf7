//! Running what was parsed: commands of all connections as one batch, then those that were held back.

use std::sync::Arc;
use std::time::Instant;

use engine::engine::Engine;
use engine::handler::args::KeyAt;
use engine::run::authority::Authority;
use engine::run::request::{Outcome, Request};
use engine::run::turn::Turn;
use resp::args::{ArgRange, OwnedArguments};
use store::gate::Presence;

use super::Worker;
use crate::net::batch::{Batch, Item};
use crate::net::connection::Connection;
use crate::net::held_back::{Hold, Pending, Ran};
use crate::net::http::{self, Http};
use crate::net::protocol::Protocol;

/// Commands fetched ahead of execution together.
const WINDOW: usize = 32;

impl Worker {
    pub(super) fn execute_batch(&mut self) {
        let Worker { engine, gate, turn, connections, batch, .. } = self;
        let Batch { items, args, keys } = batch;
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

    /// Runs what held the connection back, if it may run by now, and the commands behind it.
    pub(super) fn run_with_more_authority(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        if connection.doom.is_some() || connection.session.close || !connection.is_held_back() {
            return;
        }
        let (engine, turn) = (Arc::clone(&self.engine), &mut self.turn);
        if let Hold::AwaitsSync(wait) = connection.held_back.hold {
            let steady = turn.steady;
            let settled = connection.reply((&engine, turn), |session, reply| {
                engine.settle_sync_wait(session, wait, steady, reply)
            });
            if !settled {
                return;
            }
            connection.held_back.hold = Hold::None;
        }
        let mut held_back = std::mem::take(&mut connection.held_back);
        let (space, gates) = (&engine.keyspace, &engine.gates);
        held_back.run(space, gates, &self.gate, Instant::now, |command, authority| {
            run_pending(&engine, turn, connection, command, authority)
        });
        connection.held_back = held_back;
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
    let row = item.row;
    let owned = |argv| Pending { row, argv: OwnedArguments::from(argv) };
    if !connection.runs() || !connection.held_back.is_empty() {
        if !connection.session.close && connection.doom.is_none() {
            let argv = connection.protocol.arguments(&connection.input, ranges);
            connection.held_back.push(owned(argv));
        }
        return;
    }
    let from = connection.output.end();
    let Connection { protocol, input, session, output, .. } = connection;
    let (outcome, again) = match protocol {
        Protocol::Resp(resp) => {
            let argv = resp.arguments(input, ranges);
            let request = Request { argv, row, keys };
            let outcome = engine.execute(turn, session, request, authority, output);
            let again = needs_another_try(&outcome).then(|| owned(argv));
            (outcome, again)
        }
        Protocol::Http(http) => {
            let Http { input: http_input, exchanges } = &mut **http;
            let argv = http_input.arguments(input, ranges);
            let request = Request { argv, row, keys };
            let to = (exchanges, session, output);
            let (outcome, next) = http::run(engine, turn, request, authority, to);
            let again = needs_another_try(&outcome).then(|| owned(argv));
            (outcome, again.or(next))
        }
    };
    conclude(turn, connection, &outcome, from);
    if !matches!(outcome, Outcome::Done) {
        let slot = turn.contended_slot;
        connection.held_back.hold_back(outcome, again, slot, Instant::now());
    } else if let Some(next) = again {
        connection.held_back.push_first(next);
    }
}

/// Runs a command that was held back.
fn run_pending(
    engine: &Engine,
    turn: &mut Turn,
    connection: &mut Connection,
    command: Pending,
    authority: Authority<'_>,
) -> Ran {
    let argv = command.argv.view();
    let mut keys = Vec::new();
    if let Some(row) = command.row {
        engine.find_keys(row, argv, &mut keys);
    }
    let request = Request { argv, row: command.row, keys: &keys };
    turn.enter(engine);
    let from = connection.output.end();
    let Connection { protocol, session, output, .. } = connection;
    let (outcome, next) = match protocol {
        Protocol::Resp(_) => (engine.execute(turn, session, request, authority, output), None),
        Protocol::Http(http) => {
            let to = (&mut http.exchanges, session, output);
            http::run(engine, turn, request, authority, to)
        }
    };
    conclude(turn, connection, &outcome, from);
    let command = needs_another_try(&outcome).then_some(command).or(next);
    let open = connection.doom.is_none() && !connection.session.close;
    Ran { outcome, command, slot: turn.contended_slot, open }
}

/// What follows when a command has run, or has not: what it wrote begins at `from` in the stream of
/// all output.
#[inline]
fn conclude(turn: &Turn, connection: &mut Connection, outcome: &Outcome, from: u64) {
    if !matches!(outcome, Outcome::Done) {
        connection.withhold_what_waits(outcome, from);
    }
    if turn.holds_replies() {
        connection.hold_replies(from);
    }
    connection.look_at_output_limit();
}

/// Whether a command that has run so far is to run again: one whose client waits has run to its end.
fn needs_another_try(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Done | Outcome::Blocked(_) | Outcome::AwaitsSync(_))
}
