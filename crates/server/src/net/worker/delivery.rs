//! The outgoing side: replies, and connections that end.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::clock::Ticks;
use base::limits;
use engine::host::LogLevel;
use engine::wait::awaited::Wait;

use super::{NOT_DURABLE, Worker};
use crate::net::connection::{Connection, OVER_OUTPUT_LIMIT};
use crate::net::pending::{Pending, WaitsFor};

/// Milliseconds for which a stopping worker goes on sending.
const FLUSH_ON_STOP: u64 = 2000;

impl Worker {
    pub(super) fn end_waits_that_are_due(&mut self) {
        while let Some(place) = self.timers.due(self.turn.steady) {
            let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
                continue;
            };
            connection.timer = None;
            let wait = match &connection.pending.waits_for {
                WaitsFor::Blocked(wait) if !wait.awaits_sync() => Arc::clone(wait),
                _ => {
                    self.schedule(place);
                    continue;
                }
            };
            let now = self.turn.steady;
            if wait.deadline.is_none_or(|deadline| deadline > now) {
                if wait.again_at.is_some_and(|at| at <= now) {
                    self.run_again(place, &wait);
                }
                self.schedule(place);
                continue;
            }
            if let Some(nothing) = self.engine.time_out(&wait) {
                connection.pending.waits_for = WaitsFor::Nothing;
                let inside = self.gate.enter();
                self.engine.end_wait(inside.presence(), &connection.session, &wait);
                drop(inside);
                self.engine.note_waited(&self.turn, &connection.session, &wait);
                connection.reply((&self.engine, &self.turn), |_, reply| {
                    reply.raw(&nothing);
                    true
                });
                self.schedule(place);
            }
        }
    }

    /// Runs the command of a waiting client again, unless the client was just served.
    fn run_again(&mut self, place: usize, wait: &Arc<Wait>) {
        let Some(connection) = &mut self.connections[place] else { return };
        if wait.claim() {
            connection.pending.waits_for = WaitsFor::Nothing;
            let inside = self.gate.enter();
            self.engine.end_wait(inside.presence(), &connection.session, wait);
            drop(inside);
            let command = Pending::new(self.engine.commands, wait.argv.clone());
            connection.pending.push_first(command);
        }
    }

    pub(super) fn send_and_reschedule(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        connection.forget_executed(&mut self.buffers);
        if connection.protocol.has_answer() && connection.pending.is_empty() && connection.runs() {
            let Connection { protocol, session, output, .. } = &mut **connection;
            protocol.answer_ready(self.turn.now, session, output);
        }
        let deadline = connection.pending.deadline();
        if deadline != connection.timer {
            self.timers.change(place, std::mem::replace(&mut connection.timer, deadline), deadline);
        }
        if connection.pending.next_try().is_some()
            && !std::mem::replace(&mut connection.listed_as_parked, true)
        {
            self.parked.push(place);
        }
        if let Some(offset) = self.turn.awaits_write(&self.engine, &connection.session) {
            connection.hold_replies(offset);
        }
        if connection.defers_replies() {
            connection.release_replies(self.engine.journal.covered(), &self.turn.stats);
            if connection.defers_replies() && self.engine.journal.state().failed {
                connection.doom = Some(NOT_DURABLE);
            }
        }
        connection.look_at_talk();
        if self.reads_on > 0 && connection.is_to_read_on() {
            self.reads_on -= 1;
            let begun = Ticks::now();
            connection.read_on(&self.engine);
            let (count, ns) = self.reading_on;
            self.reading_on = (count + 1, ns + begun.elapsed_ns());
        }
        connection.go_on(self.turn.now);
        connection.look_at_output_limit();
        let over_limit = connection.doom == Some(OVER_OUTPUT_LIMIT);
        let sent = if over_limit { 0 } else { connection.send(limits::WRITE_PER_TURN) };
        if sent > 0 {
            self.turn.stats.net_output_bytes.add(sent as u64);
            self.turn.stats.writes_processed.add(1);
            connection.session.client.note_interaction(self.turn.steady);
        }
        connection.publish();
        if self.limits_client_memory {
            self.engine.clients.count_memory(&connection.session.client);
        }
        let all_is_said = connection.session.close && connection.output.is_empty();
        if all_is_said && !connection.lingers(self.turn.steady) {
            connection.doom.get_or_insert("it asked to");
        }
        if connection.is_finished(self.engine.is_paused(self.turn.steady)) {
            connection.doom.get_or_insert("the client closed the connection");
        }
        if connection.over_output_limit(&self.turn.config, self.turn.steady) {
            connection.doom = Some(OVER_OUTPUT_LIMIT);
        }
        if connection.doom.is_some() {
            return self.close(place);
        }
        if connection.awaits_journal() {
            self.await_journal(place);
        }
        let Some(connection) = &mut self.connections[place] else { return };
        if connection.is_to_read_on() && !std::mem::replace(&mut connection.listed_as_behind, true)
        {
            self.behind.push_back(place);
        }
        if connection.wants_another_turn(self.turn.steady) {
            self.schedule(place);
        }
    }

    /// Remembers a connection that waits for the journal, and checks the journal once more: it may have
    /// got there before it knew of the waiting connection.
    fn await_journal(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        if std::mem::replace(&mut connection.listed_as_waiting, true) {
            return;
        }
        self.awaiting_journal.push(place);
        self.coalescing.note_deferred();
        self.engine.journal.tell_when_covered();
        self.mailbox.await_journal();
        let before = connection.deferred_count();
        connection.release_replies(self.engine.journal.covered(), &self.turn.stats);
        let sync_wait = connection.pending.sync_wait();
        let over =
            sync_wait.is_some_and(|wait| self.engine.is_sync_wait_over(wait, self.turn.steady));
        if over || connection.deferred_count() < before {
            self.schedule(place);
        }
    }

    fn close(&mut self, place: usize) {
        let Some(mut connection) = self.connections[place].take() else { return };
        let client = &connection.session.client;
        let reason = connection.doom.unwrap_or("the server stops");
        let line = format!("Client closed: id={} addr={}: {reason}", client.id, client.address);
        self.engine.host.log(LogLevel::Verbose, &line);
        if connection.doom == Some(OVER_OUTPUT_LIMIT) {
            self.turn.stats.output_buffer_limit_disconnections.add(1);
        }
        self.places.remove(&client.id);
        self.timers.change(place, connection.timer, None);
        let inside = self.gate.enter();
        if let WaitsFor::Blocked(wait) = &connection.pending.waits_for {
            // Claimed or served meanwhile: either way no thread serves it from now on.
            wait.claim();
            self.engine.end_wait(inside.presence(), &connection.session, wait);
        }
        if let Some(listener) = connection.protocol.following() {
            self.engine.listeners.remove(listener);
        }
        self.engine.close_session(inside.presence(), &mut connection.session);
        drop(inside);
        let client = Arc::clone(&connection.session.client);
        if let Some(buffers) = connection.close() {
            self.engine.host.drop_later(buffers);
        }
        self.engine.note_closed(&client);
        self.free.push(place);
        self.mailbox.connections.fetch_sub(1, Relaxed);
    }

    /// Answers a request of HTTP that waits and that the server ends because it stops.
    fn stop_serving(&mut self, place: usize) {
        let Some(connection) = &self.connections[place] else { return };
        if let WaitsFor::Blocked(wait) = &connection.pending.waits_for
            && !wait.claim()
        {
            // Another thread has served it, or is about to.
            self.take_inbox(place);
        }
        let Some(connection) = &mut self.connections[place] else { return };
        let Connection { protocol, output, .. } = &mut **connection;
        protocol.stop((self.turn.now, self.turn.steady), output);
    }

    /// Ends all connections. What waits for them is sent by turns: a client that takes nothing must not use
    /// up the time of the others.
    pub(super) fn flush_and_close(&mut self) {
        let until = base::clock::steady_ms() + FLUSH_ON_STOP;
        for place in 0..self.connections.len() {
            self.stop_serving(place);
        }
        let Worker { connections, engine, turn, .. } = self;
        let mut left: Vec<_> = connections.iter_mut().flatten().collect();
        left.retain(|connection| connection.has_output());
        loop {
            let (mut sent, now) = (0, base::clock::steady_ms());
            left.retain_mut(|connection| {
                connection.writable = true;
                connection.release_replies(engine.journal.covered(), &turn.stats);
                connection.go_on(turn.now);
                sent += connection.send(limits::WRITE_PER_TURN);
                let is_to_be_sent = connection.has_output();
                connection.doom.is_none() && (is_to_be_sent || connection.lingers(now))
            });
            if left.is_empty() || now >= until {
                break;
            }
            if sent == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        for place in 0..self.connections.len() {
            self.close(place);
        }
    }
}
