//! Serving other connections while a script keeps the thread busy.
//!
//! A script runs inside a handler, and its worker has other connections. When the script has run
//! for longer than `busy-reply-threshold`, it lets the worker take turns meanwhile, with a separate
//! [`Turn`] and batch. Commands of other connections that are left in the first batch become
//! pending commands of those connections. Commands that need a slot of the script are refused with
//! BUSY; SCRIPT KILL and SHUTDOWN are served. The thread stays inside its gate all the time, so
//! commands that need the world stopped are not served.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::limits;
use engine::engine::Engine;
use engine::engine::busy::{Asker, Busy};
use engine::turn::Turn;
use mio::Events;
use store::gate::Pinned;

use super::execution::put_off_all;
use super::{Away, Worker};
use crate::net::batch::CommandBatch;
use crate::net::connection::Connection;
use crate::net::protocol::Protocol;

/// The shortest time between two turns. It is as long as the last turn, at least: the script has
/// half of the thread's time, whatever the others have to do, because those who need its slots wait
/// for its end.
const PAUSE: Duration = Duration::from_millis(1);

/// The other connections of a worker whose thread a script keeps busy.
struct Yielding<'w> {
    worker: &'w mut Worker,
    pinned: Pinned<'w>,
    rest: Option<Rest<'w>>,
    /// The journal was not told yet of effects that were appended before.
    unannounced: bool,
    /// When the next turn may begin, if there was one.
    next: Option<Instant>,
    events: Option<Events>,
}

/// The commands of a batch after a script: the batch, and the number of the first of them.
pub(super) type Rest<'b> = (&'b CommandBatch, usize);

struct Shared<'w>(RefCell<Yielding<'w>>);

impl Busy for Shared<'_> {
    fn note_slow_script(&self) -> Asker {
        // No script runs in a turn beside another script.
        let Ok(mut yielding) = self.0.try_borrow_mut() else { return Asker::Waits };
        yielding.serve();
        yielding.asker()
    }
}

impl Yielding<'_> {
    fn serve(&mut self) {
        self.worker.mailbox.note_slow_script();
        let begun = Instant::now();
        if self.next.is_some_and(|next| begun < next) {
            return;
        }
        if self.next.is_none() {
            if self.unannounced {
                // Before the replies leave that depend on it.
                self.worker.engine.journal.notify();
            }
            self.worker.begin_yielded_turn(self.rest);
        }
        let gate = Arc::clone(&self.worker.gate);
        // It may stay inside for minutes, and tables that others replace meanwhile are to be freed.
        // What was prefetched before the script was a hint alone.
        gate.note_quiet(self.pinned);
        self.worker.relieves = true;
        let events =
            self.events.get_or_insert_with(|| Events::with_capacity(limits::EVENTS_PER_TURN));
        events.clear();
        self.worker.poll(events, Duration::ZERO);
        gate.within(self.pinned, || self.worker.take_turn(events));
        self.worker.relieves = false;
        let ended = Instant::now();
        self.next = Some(ended + (ended - begun).max(PAUSE));
    }

    /// Whether the client of the script has gone.
    fn asker(&self) -> Asker {
        match &self.worker.away {
            Some(away) if away.gives_up_at_end && away.read_closed => Asker::Gone,
            _ => Asker::Waits,
        }
    }
}

impl Worker {
    /// Runs something for the connection at a place that may take long. If it did, others were
    /// served meanwhile, and only this connection's commands are left of the rest of the batch: the
    /// second part of the result says so.
    pub(super) fn with_yielding<T>(
        &mut self,
        index: usize,
        rest: Option<Rest<'_>>,
        pinned: Pinned<'_>,
        run: impl FnOnce(&Engine, &mut Turn, &mut Connection, &dyn Busy) -> T,
    ) -> Option<(T, bool)> {
        let mut connection = self.connections[index].take()?;
        let spare = self.yielded_turn.take();
        let spare = spare.unwrap_or_else(|| Box::new(self.turn.beside_script()));
        let mut turn = std::mem::replace(&mut self.turn, spare);
        let engine = Arc::clone(&self.engine);
        let unannounced = turn.has_unannounced();
        // Beside a script, another one is refused here: the first one's connection stays away.
        let gives_up_at_end = connection.protocol.gives_up_at_end();
        let read_closed = connection.read_closed;
        let before = self.away.replace(Away { index, gives_up_at_end, read_closed, urgent: false });
        let yielding =
            Yielding { worker: self, pinned, rest, unannounced, next: None, events: None };
        let shared = Shared(RefCell::new(yielding));
        let result = run(&engine, &mut turn, &mut connection, &shared);
        let Yielding { worker, next, .. } = shared.0.into_inner();
        let mut spare = std::mem::replace(&mut worker.turn, turn);
        worker.turn.take_over(&mut spare);
        // It has no batch any more.
        engine.note_scratch(&mut spare, 0);
        worker.yielded_turn = Some(spare);
        let away = std::mem::replace(&mut worker.away, before);
        if next.is_none() {
            worker.connections[index] = Some(connection);
            return Some((result, false));
        }
        if let Some(away) = away {
            connection.read_closed |= away.read_closed;
            connection.urgent |= away.urgent;
        }
        worker.put_back(index, connection);
        worker.turn.resume(&engine);
        Some((result, true))
    }

    /// Puts the rest of a batch after the pending commands of its connections, as far as these are
    /// here, and has all connections looked at: replies of the present turn have not left yet, and
    /// those that it had still to serve do not wait for its end.
    fn begin_yielded_turn(&mut self, rest: Option<Rest<'_>>) {
        if let Some((batch, first)) = rest {
            put_off_all(&mut self.connections, batch, first, |_| true);
        }
        self.yields += 1;
        self.scheduled.clear();
        self.newcomers.clear();
        self.late.clear();
        let now = self.turn.monotonic;
        for index in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[index] {
                let was_scheduled = std::mem::take(&mut connection.scheduled);
                // One that has not said anything yet would keep others waiting that have.
                if was_scheduled || !connection.is_silent_newcomer(now) {
                    self.schedule(index);
                }
            }
        }
    }

    /// Puts a connection back that was away for some turns: events that concerned it then were
    /// lost, and lists may have lost it. The caller takes its inbox when it knows what the
    /// connection waits for: the answer to that may have come already.
    fn put_back(&mut self, index: usize, mut connection: Box<Connection>) {
        connection.readable = true;
        connection.writable = true;
        // Whatever list it was in has been made anew without it.
        connection.scheduled = false;
        connection.listed_as_awaiting_journal = self.awaiting_journal.contains(&index);
        connection.listed_as_parked = self.parked.contains(&index);
        connection.listed_as_behind = self.behind.contains(&index);
        self.connections[index] = Some(connection);
        self.schedule(index);
    }
}
