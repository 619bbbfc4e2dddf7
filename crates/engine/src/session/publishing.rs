//! How messages are published, and how a publishing connection gets its own messages.

use std::sync::Arc;

use crate::engine::{Context, Engine};
use crate::observe::notify::News;
use crate::session::client::Client;
use crate::session::pubsub::{Kind, Message, deliver, take, write};

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

impl Context<'_> {
    /// Sends a message as [`Engine::publish`] does, or to a shard channel. If this connection is among
    /// the receivers, the code that ends the reply calls [`Context::write_own_messages`].
    pub(crate) fn publish(&mut self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        if self.nested && self.db.effects.defers_replies {
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
    /// here. Inside EXEC that is EXEC's.
    pub(crate) fn write_own_messages(&mut self) {
        if self.hears_itself && !self.nested {
            self.write_messages();
        }
    }

    /// A message within EXEC may tell of the transaction's writes, so it leaves after the journal has
    /// them. Returns how many clients will receive it.
    fn publish_later(&mut self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        let receivers = self.engine.pubsub.publish_as(kind, channel, message, &mut |_, _| {});
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
