//! How messages are published, and how a publishing connection gets its own messages.

use std::sync::Arc;

use resp::reply::Reply;

use crate::engine::{Context, Engine};
use crate::observe::notify::News;
use crate::run::effects::Effects;
use crate::run::request::Call;
use crate::session::client::Client;
use crate::session::pubsub::{Kind, Message, deliver, take, take_messages, write};

impl Engine {
    /// Sends a message to the subscribers of a channel, and of patterns that match it. Returns how
    /// many received it.
    pub fn publish(&self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        let deliver = &mut |client: &Client, message: &mut Message<'_>| {
            deliver(&*self.host, client, |resp3| message.bytes(resp3));
        };
        self.pubsub.publish_as(kind, channel, message, deliver)
    }
}

impl Engine {
    /// Sends the messages that a script has published so far, which runs on.
    pub(crate) fn publish_messages(&self, effects: &mut Effects) {
        let news = effects.news.get_mut();
        if news.iter().any(|news| matches!(news, News::Message { .. })) {
            for message in news.extract_if(.., |news| matches!(news, News::Message { .. })) {
                if let News::Message { kind, channel, message } = message {
                    self.publish(kind, &channel, &message);
                }
            }
        }
    }

    /// Writes the messages that a transaction or script has published to its own connection, after its
    /// reply.
    pub(crate) fn write_own_messages(&self, call: &mut Call<'_>) {
        let Call { turn, session, output, .. } = call;
        if session.hears_replies() {
            take_messages(&session.client, &mut Reply::new(output, session.resp3));
            if turn.defers_replies() {
                // The writes that they report were made before they came.
                session.depends_on = self.journal.end();
            }
        }
    }
}

impl Context<'_> {
    /// Sends a message as [`Engine::publish`] does, or to a shard channel. If this connection is among
    /// the receivers, the code that ends the reply calls [`Context::write_own_messages`].
    pub(crate) fn publish(&mut self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        if self.nested {
            return self.publish_later(kind, channel, message);
        }
        let own = self.session.client.id;
        let (engine, mut hears_itself) = (self.engine, self.hears_itself);
        let deliver = &mut |client: &Client, message: &mut Message<'_>| {
            hears_itself |= client.id == own;
            deliver(&*engine.host, client, |resp3| message.bytes(resp3));
        };
        let receivers = engine.pubsub.publish_as(kind, channel, message, deliver);
        self.hears_itself = hears_itself;
        receivers
    }

    /// Writes the messages that this connection has published to itself, after the reply that ends
    /// here.
    pub(crate) fn write_own_messages(&mut self) {
        if self.hears_itself && !self.nested {
            self.write_messages();
        }
    }

    /// A message within EXEC or a script leaves after the slots are unlocked: it may tell of their writes,
    /// which the journal has by then, waking a worker is a system call, and a script that begins again has
    /// said nothing. Returns how many clients will receive it.
    fn publish_later(&mut self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        let (own, mut hears_itself) = (self.session.client.id, false);
        let note = &mut |client: &Client, _: &mut Message<'_>| hears_itself |= client.id == own;
        let receivers = self.engine.pubsub.publish_as(kind, channel, message, note);
        self.db.effects.hears_itself |= hears_itself;
        if receivers > 0 {
            let news = News::Message { kind, channel: channel.into(), message: message.into() };
            self.db.effects.news.get_mut().push(news);
        }
        receivers
    }

    /// Chooses the protocol of the connection, and of the rest of the reply. Messages that have arrived
    /// come first, in the old protocol.
    pub(crate) fn set_resp3(&mut self, resp3: bool) {
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
