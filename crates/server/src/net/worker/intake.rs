//! The incoming side: mail from other threads, new connections, and the input of clients.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::limits;
use engine::host::LogLevel;
use engine::session::Session;
use engine::session::client::{Client, Served, flag};
use mio::Token;

use super::{NOT_DURABLE, Worker};
use crate::net::arrival::{Arrival, Speaks};
use crate::net::connection::{Connection, OVER_OUTPUT_LIMIT};
use crate::net::http::{Http, Intake};
use crate::net::pending::WaitsFor;
use crate::net::protocol::Protocol;
use crate::net::resp::Resp;

impl Worker {
    pub(super) fn open_mail(&mut self) {
        let mail = self.mailbox.take();
        if mail.journal_progressed || mail.journal_failed {
            self.hear_of_the_journal(mail.journal_failed);
        }
        for arrival in mail.arrivals {
            self.admit(arrival);
        }
        for client in mail.clients {
            if let Some(&place) = self.places.get(&client) {
                self.take_inbox(place);
                self.schedule(place);
            }
        }
    }

    /// Looks again at the connections that wait for the journal, because it has moved on. When the
    /// journal has failed they are closed, because nobody knows what became of their writes.
    fn hear_of_the_journal(&mut self, failed: bool) {
        for place in std::mem::take(&mut self.awaiting_journal) {
            if let Some(connection) = &mut self.connections[place] {
                connection.listed_as_waiting = false;
                if failed && connection.defers_replies() {
                    connection.doom = Some(NOT_DURABLE);
                }
                self.schedule(place);
            }
        }
    }

    fn admit(&mut self, arrival: Arrival) {
        let Arrival { mut transport, speaks, id } = arrival;
        let place = self.free.pop().unwrap_or(self.connections.len());
        if let Err(error) = transport.register(self.poll.registry(), Token(place)) {
            self.engine
                .host
                .log(LogLevel::Warning, &format!("Registering a client failed: {error}"));
            self.free.push(place);
            self.mailbox.connections.fetch_sub(1, Relaxed);
            return;
        }
        let client = Arc::new(Client::new(
            id,
            self.index,
            transport.address.clone(),
            transport.local_address.clone(),
            transport.descriptor(),
            self.turn.steady,
        ));
        client.set_flag(flag::UNIX, transport.is_unix());
        client.set_flag(flag::HTTP, speaks == Speaks::Http);
        self.engine.clients.add(&client);
        self.places.insert(client.id, place);
        // In HTTP, each request shows by itself who sends it.
        let authenticated = speaks == Speaks::Http || self.turn.config.requirepass.is_empty();
        let protocol = match speaks {
            Speaks::Resp => Protocol::Resp(Resp::default()),
            Speaks::Http => Protocol::Http(Box::new(Http::new(self.turn.steady))),
        };
        let session = Session::new(client, authenticated);
        let connection = Connection::new(transport, protocol, session);
        if place == self.connections.len() {
            self.connections.push(None);
        }
        self.connections[place] = Some(Box::new(connection));
        self.schedule(place);
    }

    /// Takes what other threads have left for a client: messages, the reply for which it is blocked, or
    /// the order to close. A reply to a wait that is over is nobody's.
    pub(super) fn take_inbox(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        let inbox = std::mem::take(&mut *connection.session.client.inbox.lock());
        if self.turn.defers_replies() && (inbox.served.is_some() || !inbox.pushes.is_empty()) {
            // Mail from other threads may tell of any of their writes, which came before it.
            connection.session.depends_on = self.engine.journal.end();
            connection.defer_replies(connection.output.end());
        }
        if let Some(served) = inbox.served
            && let WaitsFor::Blocked(wait) = &connection.pending.waits_for
            && Arc::ptr_eq(wait, &served.wait)
        {
            connection.pending.waits_for = WaitsFor::Nothing;
            let Served { wait, reply, written_to } = *served;
            connection.session.written_to = connection.session.written_to.max(written_to);
            let inside = self.gate.enter();
            self.engine.end_wait(inside.presence(), &connection.session, &wait);
            drop(inside);
            self.engine.note_waited(&self.turn, &connection.session, &wait);
            if connection.deferred_from.take().is_none() {
                connection.reply((&self.engine, &self.turn), |_, output| {
                    output.output().append(&reply);
                    true
                });
            }
        }
        if inbox.over_limit {
            connection.doom = Some(OVER_OUTPUT_LIMIT);
            return self.engine.host.drop_later(Box::new(inbox.pushes));
        }
        for message in inbox.pushes {
            connection.output.push_shared(&message);
        }
        connection.look_at_output_limit();
        if connection.session.client.is_killed() {
            connection.doom = Some("it was killed");
        }
    }

    pub(super) fn read_and_parse(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        connection.scheduled = false;
        connection.session.limit_output(&self.turn.config, &mut connection.output);
        if connection.is_ending() {
            return;
        }
        if connection.input.capacity() == 0 && connection.readable {
            connection.input = self.buffers.pop().unwrap_or_default();
        }
        if connection.readable && connection.reading_share() > 0 {
            self.turn.stats.reads_processed.add(1);
        }
        let (mut left, others) = (limits::READ_PER_TURN, self.batch.items.len());
        while let Some(connection) = &mut self.connections[place] {
            let share = connection.reading_share().min(left);
            let count = connection.receive(share);
            left -= count.min(left);
            self.coalescing.note_bytes(count);
            self.turn.stats.net_input_bytes.add(count as u64);
            if count > 0 {
                connection.session.client.note_interaction(self.turn.steady);
            }
            if connection.query_length() as u64 > self.turn.config.client_query_buffer_limit {
                if self.batch.items.len() == others {
                    self.turn.stats.query_buffer_limit_disconnections.add(1);
                    connection.doom = Some("its query buffer went over client-query-buffer-limit");
                    return;
                }
                // What it has sent before runs first, and takes its own arguments with it.
                left = 0;
            }
            self.parse(place);
            let Some(connection) = &mut self.connections[place] else { return };
            let own = self.batch.items.len() - others;
            let more = connection.readable && connection.reading_share() > 0;
            let is_enough = count == 0 || left == 0 || own >= limits::COMMANDS_PER_TURN;
            if is_enough || !more || connection.protocol.has_refused() {
                return;
            }
            if own == 0 && connection.protocol.is_receiving_apart() {
                // The buffer need not grow for what follows the string.
                connection.forget_input();
            }
        }
    }

    /// Parses received bytes into the batch, up to the connection's share.
    fn parse(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        let pending = connection.defers_input();
        connection.unparsed = pending;
        if pending {
            return;
        }
        let Connection { protocol, input, session, .. } = &mut **connection;
        let intake = Intake {
            engine: &self.engine,
            config: &self.turn.config,
            settings: self.turn.settings(),
            offer: self.offer.load(),
            client: &session.client,
            place,
            steady: self.turn.steady,
        };
        connection.backlog = protocol.parse(input, session, intake, &mut self.batch);
    }
}
