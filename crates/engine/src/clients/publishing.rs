//! How messages and other publications reach clients, and how a connection gets what it has
//! published itself.

use std::sync::Arc;

use resp::reply::Reply;

use crate::db::effects::Effects;
use crate::db::notify::{
    Class, Notification, Promise, Publication, Published, Spread, write_message,
};
use crate::engine::{Context, Engine};
use crate::session::client::Client;
use crate::session::pubsub::{Deliver, Kind, Message, deliver, give_up, take, write};
use crate::turn::request::Call;

impl Engine {
    /// Sends a message to the subscribers of a channel, and of patterns that match it. Returns how
    /// many received it.
    pub fn publish(&self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        self.pubsub.publish_as(kind, channel, message, &mut |client, message| {
            deliver(&*self.host, client, |resp3| message.bytes(resp3));
        })
    }

    /// Adds the publications of a thread to the queue. The thread holds the slots that they
    /// concern, and delivers them when it has unlocked these.
    #[inline(never)]
    pub(crate) fn queue_publications(&self, effects: &mut Effects) {
        if self.tells_replicas() {
            let messages = effects.publications.get_mut().for_replicas();
            self.tell_replicas(&messages, effects);
        }
        let publications = effects.publications.get_mut();
        for (kind, channel, message) in publications.for_cluster() {
            self.host.publish_to_cluster(kind, channel, message);
        }
        if !self.pubsub.has_subscribers() {
            publications.keep_lines();
        }
        if !publications.is_empty() {
            self.publications.add(publications);
            effects.undelivered = true;
        }
    }

    /// Whether replicas get published messages: those of a primary that has had one, as long as the
    /// stream is kept for it.
    #[inline]
    pub(crate) fn tells_replicas(&self) -> bool {
        self.replicas.were_there()
            && !self.replication.is_replica()
            && matches!(self.journal.changes(), Some(backlog) if backlog.is_on())
    }

    /// Puts messages into the stream, as commands. They change nothing, so the file lacks them.
    fn tell_replicas(&self, messages: &[u8], effects: &mut Effects) {
        if !messages.is_empty() {
            self.journal.append_messages(messages);
            effects.unannounced = true;
        }
    }

    /// Delivers all publications of the queue.
    pub(crate) fn deliver_publications(&self) {
        self.publications.deliver(|publications| match publications {
            Publication::Event(event) => self.publish_event(&event, &mut |client, message| {
                deliver(&*self.host, client, |resp3| message.bytes(resp3));
            }),
            Publication::Message(Published { spread: Spread::ByPrimaries, .. }) => {}
            Publication::Message(Published { kind, channel, message, .. }) => {
                self.publish(kind, &channel, &message);
            }
            Publication::Line(line) => self.pubsub.show(&*self.host, line),
            Publication::TooMuch(client) => give_up(&*self.host, &client),
        });
    }

    /// Takes an event to the subscribers of its channels.
    fn publish_event(&self, event: &Notification, deliver: Deliver<'_>) {
        let Notification { database, event, key, asked } = event;
        if asked.contains(Class::KEYSPACE) {
            let mut channel = format!("__keyspace@{database}__:").into_bytes();
            channel.extend_from_slice(key);
            self.pubsub.publish_as(Kind::Channel, &channel, event.1.as_bytes(), deliver);
        }
        if asked.contains(Class::KEYEVENT) {
            let channel = format!("__keyevent@{database}__:{}", event.1).into_bytes();
            self.pubsub.publish_as(Kind::Channel, &channel, key, deliver);
        }
    }

    /// Forgets news of a script that nobody is going to receive. The news leaves when the script
    /// has ended, which may say more than there is memory. A client for which more waits then than
    /// it may let wait is closed, so it need not have the rest, as in Redis.
    #[cold]
    pub(crate) fn sift_publications(&self, effects: &mut Effects) {
        let own = effects.publications.get_mut();
        for publications in own.take_unsifted() {
            let (mut is_heard, mut exceeded) = (false, Vec::new());
            let mut promise = |client: &Arc<Client>, bytes| match own.promise(client, bytes) {
                Promise::Kept => is_heard = true,
                Promise::Exceeds => exceeded.push(Arc::clone(client)),
                Promise::Broken => {}
            };
            let mut count = |client: &Arc<Client>, message: &mut Message<'_>| {
                promise(client, message.least_bytes());
            };
            match &publications {
                Publication::Event(event) => self.publish_event(event, &mut count),
                Publication::Message(own) => {
                    let Published { kind, channel, message, for_replicas, spread } = own;
                    self.pubsub.publish_as(*kind, channel, message, &mut count);
                    is_heard |= *for_replicas || *spread != Spread::Here;
                }
                Publication::Line(line) => {
                    self.pubsub.each_monitor(|client| promise(client, line.len()));
                }
                Publication::TooMuch(_) => is_heard = true,
            }
            exceeded.into_iter().for_each(|client| own.add_sifted(Publication::TooMuch(client)));
            if is_heard {
                own.add_sifted(publications);
            }
        }
    }

    /// Sends what a script has published so far, which runs on.
    pub(crate) fn publish_messages(&self, effects: &mut Effects) {
        if !effects.publications.get_mut().is_empty() {
            self.queue_publications(effects);
            self.deliver_publications();
        }
    }

    /// Writes the messages that have arrived for a connection after a reply that has ended: among
    /// them those that its command has published to itself.
    pub(crate) fn write_own_messages(&self, call: &mut Call<'_>) {
        let Call { turn, session, output, .. } = call;
        if !session.hears_replies() {
            return;
        }
        let messages = take(&mut session.client.inbox.lock());
        if !messages.is_empty() {
            write(messages, &mut Reply::new(output, session.resp3));
            if turn.effects.defers_replies {
                // The writes that they report were made before they came.
                session.depends_on = self.journal.end();
            }
        }
    }
}

impl Context<'_> {
    /// Sends a message as [`Engine::publish`] does, or to a shard channel. If this connection is
    /// among the receivers, it gets the message after the reply.
    pub fn publish(&mut self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        if self.session.replays {
            // It was published before the server stopped.
            return 0;
        }
        let for_replicas = self.db.effects.journaling && self.engine.tells_replicas();
        let spread = self.spread(kind);
        if self.nested {
            let (channel, message) = (channel.into(), message.into());
            let published = Published { kind, channel, message, for_replicas, spread };
            return self.publish_later(published);
        }
        // Events of changes that this client has seen come before its message.
        self.engine.deliver_publications();
        if for_replicas {
            let mut command = Vec::new();
            write_message(kind, channel, message, &mut command);
            self.engine.tell_replicas(&command, self.db.effects);
        }
        if spread != Spread::Here {
            self.engine.host.publish_to_cluster(kind, channel, message);
        }
        match spread {
            Spread::ByPrimaries => self.count_receivers(kind, channel, message),
            Spread::Here | Spread::Everywhere => self.engine.publish(kind, channel, message),
        }
    }

    /// Which nodes of a cluster are to hear what the client publishes.
    fn spread(&self, kind: Kind) -> Spread {
        let Some(view) = self.db.cluster else { return Spread::Here };
        // Other nodes tell this one, and its primary does, of what their clients have published.
        if self.session.link.is_some() || self.session.speaks_for_node() {
            return Spread::Here;
        }
        match (view.leads(), kind) {
            // No other shard has subscribers of a shard channel.
            (true, Kind::Shard) => Spread::Here,
            (true, _) => Spread::Everywhere,
            (false, _) if self.engine.replication.is_stale() => Spread::Everywhere,
            (false, _) => Spread::ByPrimaries,
        }
    }

    fn count_receivers(&self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        self.engine.pubsub.publish_as(kind, channel, message, &mut |_, _| {})
    }

    /// A message within EXEC or a script leaves after the slots are unlocked, behind the events
    /// that the commands before it have caused. It may tell of their writes, which the journal has
    /// by then, and a script that begins again has said nothing. Returns how many clients will
    /// receive it.
    fn publish_later(&mut self, published: Published) -> usize {
        let Published { kind, channel, message, for_replicas, spread } = &published;
        let receivers = self.count_receivers(*kind, channel, message);
        if receivers > 0 || *for_replicas || *spread != Spread::Here {
            self.db.effects.publications.get_mut().add(Publication::Message(published));
        }
        receivers
    }

    /// Chooses the protocol of the connection, and of the rest of the reply. Messages that have
    /// arrived come first, in the old protocol.
    pub fn set_resp3(&mut self, resp3: bool) {
        let earlier = {
            // Other threads choose the protocol of a message under this lock.
            let client = Arc::clone(&self.session.client);
            let mut inbox = client.inbox.lock();
            self.session.set_resp3(resp3);
            if self.hears_messages_now() { take(&mut inbox) } else { Vec::new() }
        };
        if !earlier.is_empty() {
            self.depend_on_all();
            write(earlier, &mut self.reply);
        }
        self.reply.set_protocol(resp3);
    }
}
