//! How messages are published, and how a connection that publishes hears itself.

use std::sync::Arc;

use crate::engine::{Context, Engine};
use crate::observe::notify::News;
use crate::session::client::Client;
use crate::session::pubsub::{Kind, Message, deliver, speaks_resp3, take, take_messages, write};

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
    /// Sends a message as [`Engine::publish`] does, or to a shard channel. If this connection is
    /// among the receivers, it gets the message before the reply, behind what had arrived before.
    pub(crate) fn publish(&mut self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        if self.nested && self.db.effects.holds_replies {
            return self.publish_later(kind, channel, message);
        }
        let own = self.hears_messages_now().then_some(self.session.client.id);
        let mut hears_itself = false;
        let (engine, reply) = (self.engine, &mut self.reply);
        let deliver = &mut |client: &Client, message: &mut Message<'_>| {
            if own == Some(client.id) {
                hears_itself = true;
                take_messages(client, reply);
                reply.output().push_shared(&message.bytes(speaks_resp3(client)));
            } else {
                deliver(&*engine.host, client, |resp3| message.bytes(resp3));
            }
        };
        let receivers = engine.pubsub.publish_as(kind, channel, message, deliver);
        if hears_itself {
            // What had arrived before may tell of anything that was written before it came.
            self.depend_on_all();
        }
        receivers
    }

    /// A message within EXEC may tell of what the transaction has written, and leaves when the
    /// journal has that. Returns how many are going to receive it.
    fn publish_later(&mut self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        let receivers = self.engine.pubsub.publish_as(kind, channel, message, &mut |_, _| {});
        if receivers > 0 {
            let news = News::Message { kind, channel: channel.into(), message: message.into() };
            self.db.effects.news.get_mut().push(news);
        }
        receivers
    }

    /// Chooses the protocol of the connection, and of the rest of the reply. Messages in the one
    /// before come first.
    pub(crate) fn set_resp3(&mut self, resp3: bool) {
        let earlier = {
            // Others choose the protocol of a message under this lock.
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
