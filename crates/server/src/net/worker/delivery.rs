//! The outgoing side: replies, and connections that end.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::clock::Ticks;
use base::limits;
use engine::engine::Engine;
use engine::host::{Frequent, LogLevel};
use engine::session::awaited::Wait;
use engine::turn::Turn;

use super::{FENCED, NOT_DURABLE, Worker};
use crate::net::arrival::Handover;
use crate::net::connection::{Connection, EXCESSES, OVER_OUTPUT_LIMIT};
use crate::net::pending::{PendingCommand, WaitsFor};
use crate::net::protocol::Protocol;
use crate::net::transport::Transport;

/// Milliseconds for which a stopping worker goes on sending.
const FLUSH_ON_STOP: u64 = 2000;

impl Worker {
    pub(super) fn end_expired_waits(&mut self) {
        while let Some(index) = self.timers.expired(self.turn.monotonic) {
            let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
                continue;
            };
            connection.timer = None;
            let wait = match &connection.pending.waits_for {
                WaitsFor::Blocked(wait) if !wait.awaits_sync() => Arc::clone(wait),
                _ => {
                    self.schedule(index);
                    continue;
                }
            };
            let now = self.turn.monotonic;
            if wait.deadline.is_none_or(|deadline| deadline > now) {
                if wait.again_at.is_some_and(|at| at <= now) {
                    self.run_again(index, &wait);
                }
                self.schedule(index);
                continue;
            }
            if let Some(nothing) = self.engine.time_out(&wait) {
                connection.pending.waits_for = WaitsFor::Nothing;
                let inside = self.gate.enter();
                self.engine.end_wait(inside.pinned(), &connection.session, &wait);
                drop(inside);
                self.engine.note_waited(&self.turn, &connection.session, &wait);
                connection.reply((&self.engine, &self.turn), |_, reply| {
                    reply.raw(&nothing);
                    true
                });
                self.schedule(index);
            }
        }
    }

    /// Runs the command of a waiting client again, unless the client was just served.
    fn run_again(&mut self, index: usize, wait: &Arc<Wait>) {
        let Some(connection) = &mut self.connections[index] else { return };
        if wait.claim() {
            connection.pending.waits_for = WaitsFor::Nothing;
            let inside = self.gate.enter();
            self.engine.end_wait(inside.pinned(), &connection.session, wait);
            drop(inside);
            let command = PendingCommand::new(self.engine.commands, wait.argv.clone());
            connection.pending.push_first(command);
        }
    }

    pub(super) fn send_and_reschedule(&mut self, index: usize) {
        let Some(connection) = &mut self.connections[index] else { return };
        if connection.session.sync_request.is_some() {
            return self.hand_over(index);
        }
        connection.forget_executed(&mut self.buffers);
        if connection.protocol.has_answer() && connection.pending.is_empty() && connection.runs() {
            let from = connection.output.end();
            let Connection { protocol, session, output, .. } = &mut **connection;
            protocol.answer_ready(self.turn.now, session, output);
            connection.hold_back((&self.engine, &self.turn), from, false);
        }
        connection.settle_held((&self.engine, &self.turn), None);
        let deadline = connection.deadline();
        if deadline != connection.timer {
            self.timers.change(index, std::mem::replace(&mut connection.timer, deadline), deadline);
        }
        if connection.pending.next_try().is_some()
            && !std::mem::replace(&mut connection.listed_as_parked, true)
        {
            self.parked.push(index);
        }
        self.hold_replies(index);
        let Some(connection) = &mut self.connections[index] else { return };
        if connection.defers_replies() {
            connection.release_replies(self.engine.journal.released(), &self.turn.stats);
            if connection.defers_replies() && self.engine.journal.state().failed {
                connection.close_reason = Some(NOT_DURABLE);
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
        let fenced = is_fenced(&self.engine, &self.turn, self.served, connection);
        if fenced {
            connection.close_reason = Some(FENCED);
        }
        connection.look_at_output_limit();
        let over_limit = connection.close_reason == Some(OVER_OUTPUT_LIMIT);
        let may_send = !(over_limit || fenced);
        let sent = if may_send { connection.send(limits::WRITE_PER_TURN) } else { 0 };
        connection.note_told();
        if sent > 0 {
            self.turn.stats.net_output_bytes.add(sent as u64);
            self.turn.stats.writes_processed.add(1);
            connection.session.client.note_interaction(self.turn.monotonic);
        }
        connection.publish();
        if self.limits_client_memory {
            self.engine.clients.count_memory(&connection.session.client);
        }
        let all_is_said =
            connection.session.close && (connection.is_all_sent() || connection.is_lingering());
        if all_is_said && !connection.lingers(self.turn.monotonic) {
            connection.close_reason.get_or_insert("it asked to");
        }
        let paused = self.engine.is_paused(self.turn.monotonic);
        connection.give_up(paused);
        if connection.is_finished(paused) {
            connection.close_reason.get_or_insert(connection.why_finished());
        }
        if connection.over_output_limit(&self.turn.config, self.turn.monotonic) {
            connection.close_reason = Some(OVER_OUTPUT_LIMIT);
        }
        if connection.close_reason.is_some() {
            if self.engine.drop_some_subscriptions(&mut connection.session) {
                return self.schedule_again(index);
            }
            return self.close(index);
        }
        if connection.awaits_journal() {
            self.await_journal(index);
        }
        let Some(connection) = &mut self.connections[index] else { return };
        if connection.is_to_read_on() && !std::mem::replace(&mut connection.listed_as_behind, true)
        {
            self.behind.push_back(index);
        }
        if connection.wants_another_turn(self.turn.monotonic) {
            self.schedule_again(index);
        }
    }

    /// Keeps replies until the system has what their connection has written, if it does not have it
    /// yet.
    fn hold_replies(&mut self, index: usize) {
        let Some(connection) = &mut self.connections[index] else { return };
        if let Some(offset) = self.turn.awaits_write(&self.engine, &connection.session) {
            connection.hold_replies(offset);
        }
    }

    /// Remembers a connection that waits for the journal, and checks the journal once more: it may
    /// have got there before it knew of the waiting connection.
    fn await_journal(&mut self, index: usize) {
        let Some(connection) = &mut self.connections[index] else { return };
        if std::mem::replace(&mut connection.listed_as_awaiting_journal, true) {
            return;
        }
        self.awaiting_journal.push(index);
        self.coalescing.note_deferred();
        self.mailbox.await_journal(&*self.engine.journal);
        let (before, engine) = (connection.deferred_count(), &self.engine);
        connection.release_replies(self.engine.journal.released(), &self.turn.stats);
        let sync_wait = connection.pending.sync_wait();
        let over =
            sync_wait.is_some_and(|wait| self.engine.is_sync_wait_over(wait, self.turn.monotonic));
        let over = over || connection.held.as_ref().is_some_and(|held| held.is_first_over(engine));
        if over || connection.deferred_count() < before {
            self.schedule(index);
        }
    }

    fn close(&mut self, index: usize) {
        let Some(mut connection) = self.connections[index].take() else { return };
        let client = &connection.session.client;
        let reason = connection.close_reason.unwrap_or("the server stops");
        let line = || format!("Client closed: id={} addr={}: {reason}", client.id, client.address);
        if EXCESSES.contains(&reason) {
            self.engine.host.log_frequent(Frequent::Excess, LogLevel::Warning, &line);
        } else {
            self.engine.host.log(LogLevel::Verbose, &line());
        }
        if connection.close_reason == Some(OVER_OUTPUT_LIMIT) {
            self.turn.stats.output_buffer_limit_disconnections.add(1);
        }
        self.indexes.remove(&client.id);
        self.timers.change(index, connection.timer, None);
        let inside = self.gate.enter();
        if let WaitsFor::Blocked(wait) = &connection.pending.waits_for {
            // Claimed or served meanwhile: either way no thread serves it from now on.
            wait.claim();
            self.engine.end_wait(inside.pinned(), &connection.session, wait);
        }
        connection.protocol.leave(&self.engine);
        self.engine.close_session(inside.pinned(), &mut connection.session);
        drop(inside);
        let client = Arc::clone(&connection.session.client);
        if let Some(buffers) = connection.close() {
            self.engine.host.drop_later(buffers);
        }
        self.engine.note_closed(&client);
        self.free.push(index);
        self.mailbox.connections.fetch_sub(1, Relaxed);
    }

    /// Gives a connection that becomes a replica to the thread that serves replicas.
    #[cold]
    fn hand_over(&mut self, index: usize) {
        let Some(mut connection) = self.connections[index].take() else { return };
        let client = Arc::clone(&connection.session.client);
        self.indexes.remove(&client.id);
        self.timers.change(index, connection.timer, None);
        let inside = self.gate.enter();
        if let WaitsFor::Blocked(wait) = &connection.pending.waits_for {
            wait.claim();
            self.engine.end_wait(inside.pinned(), &connection.session, wait);
        }
        self.engine.release_session(inside.pinned(), &mut connection.session);
        drop(inside);
        self.free.push(index);
        self.mailbox.connections.fetch_sub(1, Relaxed);
        connection.forget_input();
        let Connection { mut transport, session, input, .. } = *connection;
        // Its events would be taken for those of the next connection at this index.
        let withdrawn = transport.deregister(self.poll.registry());
        let request = session.sync_request.filter(|_| withdrawn.is_ok());
        match request {
            Some(request) => {
                self.wakers.hand_over(Handover { transport, client, input, request: *request });
            }
            None => {
                self.engine.clients.remove(client.id);
                self.engine.note_closed(&client);
            }
        }
    }

    /// Answers a request that waits and that the server ends because it stops.
    fn stop_serving(&mut self, index: usize) {
        let Some(connection) = &self.connections[index] else { return };
        if let WaitsFor::Blocked(wait) = &connection.pending.waits_for
            && !wait.claim()
        {
            // Another thread has served it, or is about to.
            self.take_inbox(index);
        }
        let Some(connection) = &mut self.connections[index] else { return };
        let Connection { protocol, output, .. } = &mut **connection;
        protocol.stop((self.turn.now, self.turn.monotonic), output);
    }

    /// Ends all connections. What waits for them is sent by turns: a client that takes nothing must
    /// not use up the time of the others.
    pub(super) fn flush_and_close(&mut self) {
        let until = base::clock::monotonic_ms() + FLUSH_ON_STOP;
        for index in 0..self.connections.len() {
            self.stop_serving(index);
            self.hold_replies(index);
        }
        let Worker { connections, engine, turn, .. } = self;
        let mut left: Vec<_> = connections.iter_mut().flatten().collect();
        left.retain(|connection| connection.has_output());
        loop {
            let (mut sent, now) = (0, base::clock::monotonic_ms());
            left.retain_mut(|connection| {
                connection.writable = true;
                let end = (now + FLUSH_ON_STOP / 2 >= until).then_some("the server stops");
                connection.settle_held((engine, turn), end);
                connection.release_replies(engine.journal.released(), &turn.stats);
                connection.go_on(turn.now);
                // The right to serve may have ended since the last part was sent.
                if is_fenced(engine, turn, false, connection) {
                    connection.close_reason = Some(FENCED);
                    return false;
                }
                sent += connection.send(limits::WRITE_PER_TURN);
                connection.note_told();
                let is_to_be_sent = connection.has_output();
                connection.close_reason.is_none() && (is_to_be_sent || connection.lingers(now))
            });
            if left.is_empty() || now >= until {
                break;
            }
            if sent == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        for index in 0..self.connections.len() {
            self.close(index);
        }
    }
}

/// Whether a connection would be told now of what this node of a cluster may no longer tell: of
/// writes, and of anything that it has read since the turn began, if it might `serve` then.
#[inline]
fn is_fenced(engine: &Engine, turn: &Turn, served: bool, connection: &Connection) -> bool {
    let tells = || if served { connection.has_replies() } else { connection.is_to_be_told() };
    engine.cluster.is_enabled() && tells() && !engine.cluster.may_serve(turn.monotonic_now())
}
