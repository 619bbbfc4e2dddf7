//! The end of a connection, and of everything that it has begun.

use std::sync::Arc;

use base::limits;
use store::gate::Presence;

use crate::engine::{Context, Engine};
use crate::session::client::Client;
use crate::session::pubsub::Kind;
use crate::session::{Session, Transaction};

impl Engine {
    /// Frees the commands of a transaction. A million of them are freed in the background, because the
    /// caller may hold slots.
    pub(crate) fn free_transaction(&self, transaction: Box<Transaction>) {
        if transaction.bytes >= limits::FREED_LATER {
            self.host.drop_later(transaction);
        }
    }

    /// Removes a connection that goes away: its transaction, watches, subscriptions, and its place
    /// among the clients. The caller holds no slot and has ended the connection's waiting.
    pub fn close_session(&self, presence: Presence<'_>, session: &mut Session) {
        self.note_paused(session, false);
        self.abandon_transaction(presence, session);
        self.drop_subscriptions(session);
        self.clients.remove(session.client.id);
    }

    /// A client is closed, and no more among the clients: whoever has killed it is answered.
    pub fn note_closed(&self, client: &Client) {
        if client.is_killed() {
            self.killings.end(client).for_each(|waiter| self.answer(&waiter, b""));
        }
    }

    /// Ends all subscriptions of a connection without a message, and MONITOR.
    pub(crate) fn drop_subscriptions(&self, session: &mut Session) {
        if let Some(mut own) = session.subscriptions.take() {
            for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
                for name in own.of(kind).drain() {
                    self.pubsub.unsubscribe(kind, &name, &session.client);
                }
            }
        }
        if std::mem::take(&mut session.monitor) {
            self.pubsub.remove_monitor(&session.client);
        }
        session.publish_state();
    }
}

impl Context<'_> {
    /// Kills other clients. The caller replies, and its client gets the reply when they are closed: see
    /// [`crate::session::killing`].
    pub(crate) fn kill(&mut self, clients: &[Arc<Client>]) {
        if clients.is_empty() {
            return;
        }
        clients.iter().for_each(|client| client.kill());
        let waiter = self.wait_for_host();
        self.engine.killings.add(waiter, clients);
        for client in clients {
            self.engine.host.wake(client);
            // Its worker may have closed it before it could see that it was killed.
            if self.engine.clients.get(client.id).is_none() {
                self.engine.note_closed(client);
            }
        }
    }
}
