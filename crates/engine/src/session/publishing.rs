//! How messages and other news are published, and how a connection gets what it has published itself.

use std::sync::Arc;

use resp::reply::Reply;

use crate::engine::{Context, Engine};
use crate::observe::notify::{Class, News, Notification};
use crate::run::effects::Effects;
use crate::run::request::Call;
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

    /// Adds the news of a thread to the queue. The thread holds the slots that they concern, and
    /// delivers them when it has unlocked these.
    #[inline(never)]
    pub(crate) fn queue_news(&self, effects: &mut Effects) {
        let news = effects.news.get_mut();
        if !self.pubsub.has_subscribers() {
            news.retain(|news| matches!(news, News::Line(_)));
        }
        if !news.is_empty() {
            self.news.add(news);
            effects.undelivered = true;
        }
    }

    /// Delivers all news of the queue.
    pub(crate) fn deliver_news(&self) {
        self.news.deliver(|news| match news {
            News::Event(event) => self.publish_notification(&event),
            News::Message { kind, channel, message } => {
                self.publish(kind, &channel, &message);
            }
            News::Line(line) => self.pubsub.show(&*self.host, line),
        });
    }

    fn publish_notification(&self, notification: &Notification) {
        let Notification { database, event, key, asked } = notification;
        if asked.contains(Class::KEYSPACE) {
            let mut channel = format!("__keyspace@{database}__:").into_bytes();
            channel.extend_from_slice(key);
            self.publish(Kind::Channel, &channel, event.1.as_bytes());
        }
        if asked.contains(Class::KEYEVENT) {
            let channel = format!("__keyevent@{database}__:{}", event.1).into_bytes();
            self.publish(Kind::Channel, &channel, key);
        }
    }

    /// Sends what a script has published so far, which runs on.
    pub(crate) fn publish_messages(&self, effects: &mut Effects) {
        if !effects.news.get_mut().is_empty() {
            self.queue_news(effects);
            self.deliver_news();
        }
    }

    /// Writes the messages that have arrived for a connection after a reply that has ended: among them
    /// those that its command has published to itself.
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
    /// Sends a message as [`Engine::publish`] does, or to a shard channel. If this connection is among
    /// the receivers, it gets the message after the reply.
    pub(crate) fn publish(&mut self, kind: Kind, channel: &[u8], message: &[u8]) -> usize {
        if self.nested {
            return self.publish_later(kind, channel, message);
        }
        // Events of changes that this client has seen come before its message.
        self.engine.deliver_news();
        self.engine.publish(kind, channel, message)
    }

    /// A message within EXEC or a script leaves after the slots are unlocked, behind the events that the
    /// commands before it have caused. It may tell of their writes, which the journal has by then, and a
    /// script that begins again has said nothing. Returns how many clients will receive it.
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
