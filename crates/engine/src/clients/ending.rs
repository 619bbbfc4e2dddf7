//! The end of a connection, and of everything that it has begun.

use std::sync::Arc;

use base::limits;
use resp::output::Output;
use resp::reply::Reply;
use store::gate::Pinned;

use crate::engine::{Context, Engine};
use crate::session::awaited::{Awaited, Wait};
use crate::session::client::{Client, Served};
use crate::session::pubsub::{CHANNELS_AT_ONCE, Kind};
use crate::session::{Session, Transaction};

impl Engine {
    /// Frees the commands of a transaction. A million of them are freed in the background, because
    /// the caller may hold slots.
    pub fn free_transaction(&self, transaction: Box<Transaction>) {
        if transaction.bytes >= limits::FREED_LATER {
            self.host.drop_later(transaction);
        }
    }

    /// Removes a connection that goes away: its transaction, watches, subscriptions, and its place
    /// among the clients. The caller holds no slot and has ended the connection's waiting.
    pub fn close_session(&self, pinned: Pinned<'_>, session: &mut Session) {
        self.release_session(pinned, session);
        self.clients.remove(session.client.id);
    }

    /// Takes back what a session has left elsewhere: it runs no commands any more, but its client
    /// stays.
    pub fn release_session(&self, pinned: Pinned<'_>, session: &mut Session) {
        self.note_paused(session, false);
        self.choices.forget(session.client.id);
        self.abandon_transaction(pinned, session);
        self.drop_subscriptions(session);
    }

    /// A client is closed and no longer among the clients: the CLIENT KILL that has killed it is
    /// answered.
    pub fn note_closed(&self, client: &Client) {
        if client.is_killed() {
            self.killings.end(client).for_each(|waiter| self.answer(&waiter, b""));
        }
    }

    /// Ends some subscriptions of a connection without a message, if there are too many to be ended
    /// at once. Whether there were.
    pub fn drop_some_subscriptions(&self, session: &mut Session) -> bool {
        let Some(own) = &mut session.subscriptions else { return false };
        if own.count() + own.shard_channels.len() <= CHANNELS_AT_ONCE {
            return false;
        }
        let mut left = CHANNELS_AT_ONCE;
        for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
            let names: Vec<Vec<u8>> = own.of(kind).iter().take(left).cloned().collect();
            left -= names.len();
            for name in &names {
                own.remove(kind, name);
                self.pubsub.unsubscribe(kind, name, &session.client);
            }
        }
        session.publish_state();
        true
    }

    /// Ends all subscriptions of a connection without a message, and MONITOR.
    pub fn drop_subscriptions(&self, session: &mut Session) {
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

impl Engine {
    /// Ends what clients wait for keys or for copies of their writes for, with this error: this
    /// server is no longer the one to serve them.
    pub fn break_waits(&self, error: &[u8]) {
        for client in self.clients.all() {
            let wait = client.wait.lock().clone();
            let ends = |wait: &Wait| {
                matches!(wait.awaited, Awaited::Key(..) | Awaited::Sync(_) | Awaited::Event(_))
            };
            let claimed = wait.filter(|wait| ends(wait) && wait.claim());
            let Some(wait) = claimed else { continue };
            let mut reply = Output::new();
            Reply::new(&mut reply, wait.resp3).error(error);
            client.inbox.lock().served = Some(Box::new(Served { wait, reply, write_offset: 0 }));
            self.host.wake(&client);
        }
    }
}

impl Context<'_> {
    /// Kills other clients, or waits for those that were killed before. The caller replies, and its
    /// client gets the reply when they are closed: see [`crate::session::killing`].
    pub fn kill(&mut self, clients: &[Arc<Client>]) {
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
