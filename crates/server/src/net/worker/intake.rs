//! The incoming side: messages from other threads, new connections, and the input of clients.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::Ticks;
use base::limits;
use config::TlsAuthClientsUser;
use engine::command::{PUBSUB, Spec};
use engine::host::{Frequent, LogLevel};
use engine::session::client::{Client, Served, flag};
use engine::session::{Session, User};
use engine::users::log::{Reason, Refusal, RefusalContext};
use mio::Token;
use resp::reply::Reply;

use super::{NOT_DURABLE, READING_NS, Worker};
use crate::net::arrival::Arrival;
use crate::net::connection::{Connection, OVER_OUTPUT_LIMIT, OVER_QUERY_LIMIT};
use crate::net::intake::Intake;
use crate::net::pending::WaitsFor;
use crate::net::protocol::Protocol;
use crate::net::transport::Transport;

impl Worker {
    pub(super) fn take_messages(&mut self) {
        let messages = self.mailbox.take();
        if messages.journal_progressed || messages.journal_failed {
            self.hear_of_the_journal(messages.journal_failed);
        }
        self.arrivals.extend(messages.arrivals);
        for client in messages.clients {
            if let Some(&index) = self.indexes.get(&client) {
                self.take_inbox(index);
                self.schedule(index);
            }
        }
    }

    /// Takes some of the new connections. The others wait until those that are there have been
    /// served.
    pub(super) fn admit_some(&mut self) {
        for _ in 0..self.turn.config.max_new_connections_per_cycle {
            let Some(arrival) = self.arrivals.pop_front() else { return };
            self.admit(arrival);
        }
    }

    /// Looks again at the connections that wait for the journal, because it has moved on. When the
    /// journal has failed they are closed, because nobody knows what became of their writes.
    fn hear_of_the_journal(&mut self, failed: bool) {
        for index in std::mem::take(&mut self.awaiting_journal) {
            if let Some(connection) = &mut self.connections[index] {
                connection.listed_as_awaiting_journal = false;
                if failed && connection.defers_replies() {
                    connection.close_reason = Some(NOT_DURABLE);
                }
                self.schedule(index);
            }
        }
    }

    fn admit(&mut self, arrival: Arrival) {
        let Arrival { mut transport, origin, speaks, names, id } = arrival;
        let index = self.free.pop().unwrap_or(self.connections.len());
        if let Err(error) = transport.register(self.poll.registry(), Token(index)) {
            self.engine.host.log_frequent(Frequent::Accept, LogLevel::Warning, &|| {
                format!("Registering a client failed: {error} ({origin})")
            });
            self.free.push(index);
            self.mailbox.connections.fetch_sub(1, Relaxed);
            return;
        }
        let mut client = Client::new(
            id,
            self.number,
            origin.address,
            origin.local_address,
            transport.descriptor(),
            self.turn.monotonic,
        );
        // Each request of HTTP shows anew who sends it.
        if speaks.is_http() {
            client.certificate_names = names.clone().into();
        }
        let client = Arc::new(client);
        client.set_flag(flag::UNIX, origin.peer.is_none());
        client.set_flag(speaks.flag(), true);
        client.set_flag(flag::ENCRYPTED, speaks.is_encrypted());
        self.engine.clients.add(&client);
        self.indexes.insert(client.id, index);
        let mut session = Session::new(client, speaks.user_at_first(&self.engine.users));
        self.recognize(&mut session, names, speaks.is_http());
        let connection = Connection::new(transport, speaks.open(self.turn.monotonic), session);
        if index == self.connections.len() {
            self.connections.push(None);
        }
        self.connections[index] = Some(Box::new(connection));
        self.schedule(index);
    }

    /// Makes a client the user whom its certificate names; of HTTP, its requests are that user's.
    /// If there is none who may log in, it is what it would be without a certificate.
    fn recognize(&self, session: &mut Session, mut names: Vec<Vec<u8>>, is_http: bool) {
        let (config, users) = (&self.turn.config, &self.engine.users);
        let client = Arc::clone(&session.client);
        let shown = |name: &[u8]| match config.hide_user_data_from_log {
            true => "*redacted*".into(),
            false => String::from_utf8_lossy(name).into_owned(),
        };
        let line = match (User::by_certificate(users, &names), names.pop()) {
            (Some(user), _) => {
                let line = format!("TLS: Auto-authenticated client as {}", shown(user.name()));
                if !is_http {
                    session.set_user(user);
                }
                line
            }
            // As in Valkey, the last of several names stands for all.
            (None, Some(user)) => {
                let line = match config.tls_auth_clients_user {
                    TlsAuthClientsUser::Uri => {
                        "TLS: No matching user found in certificate SAN URI fields".to_owned()
                    }
                    _ => {
                        format!("TLS: No matching user found for certificate CN {}", shown(&user))
                    }
                };
                let (reason, context) = (Reason::Certificate, RefusalContext::TopLevel);
                let refusal = Refusal { reason, context, object: Vec::new(), user };
                let shown = client.describe(self.turn.monotonic, self.engine.commands);
                let most = usize::try_from(config.acllog_max_len).unwrap_or(usize::MAX);
                users.note_refusal(refusal, shown, self.turn.now, most);
                line
            }
            (None, None) => return,
        };
        let line = format!("{line} (addr={})", client.address);
        self.engine.host.log(LogLevel::Verbose, &line);
    }

    /// Takes what other threads have left for a client: messages, the reply for which it is
    /// blocked, or the order to close. A reply to a wait that is over is nobody's.
    pub(super) fn take_inbox(&mut self, index: usize) {
        let Some(connection) = &mut self.connections[index] else { return };
        let inbox = std::mem::take(&mut *connection.session.client.inbox.lock());
        let shows_others = inbox.served.is_some() || !inbox.pushes.is_empty();
        let heeds_disk = connection.session.durability.heeds_disk();
        if self.turn.defers_replies() && heeds_disk && shows_others {
            // Messages from other threads may tell of any of their writes, which came before them.
            connection.session.depends_on = self.engine.journal.end();
            connection.defer_replies(connection.output.end());
        }
        if let Some(served) = inbox.served
            && let WaitsFor::Blocked(wait) = &connection.pending.waits_for
            && Arc::ptr_eq(wait, &served.wait)
        {
            connection.pending.waits_for = WaitsFor::Nothing;
            let Served { wait, mut reply, write_offset } = *served;
            let session = &mut connection.session;
            if let Err(error) = self.engine.may_read_prepared(&self.turn, session, &wait) {
                reply.clear();
                Reply::new(&mut reply, session.resp3).error(error.as_bytes());
            }
            connection.session.write_offset = connection.session.write_offset.max(write_offset);
            connection.session.owed =
                self.engine.owed_by_served(&connection.session, &wait, (write_offset, &reply));
            let inside = self.gate.enter();
            self.engine.end_wait(inside.pinned(), &connection.session, &wait);
            drop(inside);
            self.engine.note_waited(&self.turn, &connection.session, &wait);
            connection.session.close |= connection.session.client.ends_with_reply();
            let is_written = connection.held.as_mut().is_some_and(|held| held.close_open());
            if connection.deferred_from.take().is_none() && !is_written {
                connection.reply((&self.engine, &self.turn), |_, output| {
                    output.output().append(&reply);
                    true
                });
            }
        }
        if inbox.over_limit {
            connection.close_reason = Some(OVER_OUTPUT_LIMIT);
            return self.engine.host.drop_later(Box::new(inbox.pushes));
        }
        for message in inbox.pushes {
            connection.push_message(&message);
        }
        if inbox.slots_left {
            connection.leave_channels(&self.engine);
        }
        connection.look_at_output_limit();
        if connection.session.client.is_killed() {
            connection.close_reason = Some("it was killed");
        }
    }

    /// Reads what a connection has sent, its share of the turn, and parses it. `begun` is when
    /// reading has begun.
    pub(super) fn read_and_parse(&mut self, index: usize, begun: Ticks) {
        let Some(connection) = &mut self.connections[index] else { return };
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
        while let Some(connection) = &mut self.connections[index] {
            let share = connection.reading_share().min(left);
            let count = connection.receive(share);
            left -= count.min(left);
            self.coalescing.note_bytes(count);
            self.turn.stats.net_input_bytes.add(count as u64);
            if count > 0 {
                connection.session.client.note_interaction(self.turn.monotonic);
            }
            let limit = self.turn.config.client_query_buffer_limit;
            let limit = match connection.is_unadmitted() {
                true => limit.min(limits::UNAUTHENTICATED_QUERY),
                false if connection.session.import.is_some() => limits::REPLICATED_UNIT as u64,
                false => limit,
            };
            if connection.query_length() as u64 > limit {
                if self.batch.items.len() == others {
                    self.turn.stats.query_buffer_limit_disconnections.add(1);
                    connection.close_reason = Some(OVER_QUERY_LIMIT);
                    return;
                }
                // What it has sent before runs first, and takes its own arguments with it.
                left = 0;
            }
            self.parse(index);
            let Some(connection) = &mut self.connections[index] else { return };
            let own = self.batch.items.len() - others;
            let more = connection.readable && connection.reading_share() > 0;
            let is_enough = count == 0 || left == 0 || own >= limits::COMMANDS_PER_TURN;
            if is_enough
                || !more
                || connection.protocol.has_refused()
                || begun.elapsed_ns() > READING_NS
            {
                return;
            }
            if own == 0 && connection.protocol.is_receiving_apart() {
                // The buffer need not grow for what follows the string.
                connection.forget_input();
            }
        }
    }

    /// Parses received bytes into the batch, up to the connection's share.
    fn parse(&mut self, index: usize) {
        let Some(connection) = &mut self.connections[index] else { return };
        let pending = connection.defers_input();
        connection.unparsed = pending;
        if pending {
            return;
        }
        let Connection { protocol, input, session, .. } = &mut **connection;
        let intake = Intake {
            engine: &self.engine,
            config: &self.turn.config,
            config_generation: self.turn.config_generation(),
            offer: self.offer.load(),
            client: &session.client,
            authenticated: session.user.is_admitted(),
            brings_slots: session.import.is_some(),
            by_own_name: own_names_of(session),
            connection_index: index,
            monotonic: self.turn.monotonic,
        };
        connection.has_more_input = protocol.parse(input, intake, &mut self.batch);
    }
}

/// A node that brings slots brings all kinds of commands, and what else it may not is refused
/// later. One that only says who it is brings messages.
fn own_names_of(session: &Session) -> Option<fn(&Spec) -> bool> {
    match () {
        () if session.import.is_some() => Some(|_| true),
        () if session.speaks_for_node() => Some(|command| command.has(PUBSUB)),
        () => None,
    }
}
