//! Which client listens to which channel, and how messages reach it.
//!
//! A message is encoded once per protocol and goes into the inbox of each subscriber, whose worker
//! sends it. Messages of one channel reach all subscribers in one order, also when several workers
//! publish at the same time. A subscriber (in RESP3) gets the messages and events of its own
//! command after the reply, as in Redis.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::glob;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard, RwLock};
use resp::output::Output;
use resp::reply::Reply;

use crate::session::client::{Client, Inbox, Wake};
use crate::session::patterns::{Patterns, Subscribers};

type SubscribersByName = HashMap<Vec<u8>, Subscribers>;

/// Names to which a client subscribes, or stops to listen, before others have their turn.
pub(crate) const CHANNELS_AT_ONCE: usize = 500;

/// A table of subscribers shrinks when it has room for more than this many times as many.
const SPARE: usize = 8;

/// Channels, patterns and shard channels with their subscribers.
#[derive(Default)]
pub struct PubSub {
    channels: RwLock<SubscribersByName>,
    patterns: RwLock<Patterns>,
    shard_channels: RwLock<SubscribersByName>,
    /// Names of any kind with subscribers.
    subscribed: AtomicUsize,
    /// See [`PubSub::order_of`].
    order: [Mutex<()>; 32],
    monitors: Mutex<Vec<Arc<Client>>>,
    monitored: AtomicUsize,
}

/// The kind of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A channel.
    Channel,
    /// A pattern of channels.
    Pattern,
    /// A shard channel.
    Shard,
}

/// The wire form of a message, in both protocols, each made when the first subscriber needs it.
pub(crate) struct Message<'m> {
    parts: &'m [&'m [u8]],
    encoded: [Option<Arc<Vec<u8>>>; 2],
}

impl<'m> Message<'m> {
    fn new(parts: &'m [&'m [u8]]) -> Message<'m> {
        Message { parts, encoded: [None, None] }
    }

    pub(crate) fn bytes(&mut self, resp3: bool) -> Arc<Vec<u8>> {
        let parts = self.parts;
        let encoded = self.encoded[usize::from(resp3)].get_or_insert_with(|| {
            let mut output = Output::default();
            let mut reply = Reply::new(&mut output, resp3);
            reply.push(parts.len());
            parts.iter().for_each(|part| reply.bulk(part));
            Arc::new(output.to_vec())
        });
        Arc::clone(encoded)
    }

    /// Bytes that it has at least, in both protocols.
    pub(crate) fn least_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
}

/// Bytes of memory that a message takes in an inbox besides its own.
const MESSAGE_FRAME: usize =
    size_of::<Arc<Vec<u8>>>() + size_of::<Vec<u8>>() + 2 * size_of::<usize>();

/// Puts a message into a client's inbox, in the client's protocol, and wakes its worker. If more
/// waits than the client is allowed, it gets nothing further, and its worker closes it.
pub fn deliver(host: &dyn Wake, client: &Client, bytes: impl FnOnce(bool) -> Arc<Vec<u8>>) {
    let mut inbox = client.inbox.lock();
    if inbox.over_limit || client.is_killed() {
        return;
    }
    // The sender of the first message has woken the worker, which takes all of them at once.
    let tell = inbox.pushes.is_empty();
    let bytes = bytes(speaks_resp3(client));
    inbox.bytes += bytes.len() + MESSAGE_FRAME;
    inbox.pushes.push(bytes);
    let waiting = client.output_bytes.load(Relaxed).saturating_add(inbox.bytes);
    inbox.over_limit = waiting > client.output_limit.load(Relaxed);
    let tell = tell || inbox.over_limit;
    drop(inbox);
    if tell {
        host.wake(client);
    }
}

/// Has a client closed for which more waits than it is allowed. It gets nothing further.
pub(crate) fn give_up(host: &dyn Wake, client: &Client) {
    client.inbox.lock().over_limit = true;
    host.wake(client);
}

/// Writes the messages in a client's inbox to its output. Only its own worker may call this.
pub fn take_messages(client: &Client, reply: &mut Reply<'_>) {
    write(take(&mut client.inbox.lock()), reply);
}

/// Empties an inbox.
pub(crate) fn take(inbox: &mut Inbox) -> Vec<Arc<Vec<u8>>> {
    inbox.bytes = 0;
    std::mem::take(&mut inbox.pushes)
}

/// Writes messages to the output.
pub(crate) fn write(messages: Vec<Arc<Vec<u8>>>, reply: &mut Reply<'_>) {
    messages.iter().for_each(|message| reply.output().push_shared(message));
}

/// Takes a message to one receiver.
pub(crate) type Deliver<'d> = &'d mut dyn FnMut(&Arc<Client>, &mut Message<'_>);

impl PubSub {
    /// The table of a kind that is no pattern.
    fn by_name(&self, kind: Kind) -> Option<&RwLock<SubscribersByName>> {
        match kind {
            Kind::Channel => Some(&self.channels),
            Kind::Pattern => None,
            Kind::Shard => Some(&self.shard_channels),
        }
    }

    /// Adds a subscriber.
    pub fn subscribe(&self, kind: Kind, name: &[u8], client: &Arc<Client>) {
        let add = |clients: &mut Subscribers| {
            if clients.is_empty() {
                self.subscribed.fetch_add(1, Relaxed);
            }
            clients.insert(client.id, Arc::clone(client));
        };
        match self.by_name(kind) {
            Some(by_name) => add(by_name.write().entry_ref(name).or_default()),
            None => add(self.patterns.write().entry(name)),
        }
    }

    /// Removes a subscriber.
    pub fn unsubscribe(&self, kind: Kind, name: &[u8], client: &Client) {
        // Whether it was the last one.
        let remove = |clients: &mut Subscribers| {
            clients.remove(&client.id);
            if clients.is_empty() {
                self.subscribed.fetch_sub(1, Relaxed);
            } else if clients.len() < clients.capacity() / SPARE {
                // A message looks at all places.
                clients.shrink_to_fit();
            }
            clients.is_empty()
        };
        match self.by_name(kind) {
            Some(by_name) => {
                let mut by_name = by_name.write();
                if by_name.get_mut(name).is_some_and(remove) {
                    by_name.remove(name);
                }
            }
            None => {
                let mut patterns = self.patterns.write();
                if patterns.get_mut(name).is_some_and(remove) {
                    patterns.remove(name);
                }
            }
        }
    }

    /// Whether anybody subscribes to anything.
    pub(crate) fn has_subscribers(&self) -> bool {
        self.subscribed.load(Relaxed) > 0
    }

    /// Has a message delivered to all subscribers. Returns how many these are.
    pub(crate) fn publish_as(
        &self,
        kind: Kind,
        channel: &[u8],
        message: &[u8],
        deliver: Deliver<'_>,
    ) -> usize {
        match kind {
            Kind::Shard => self.publish_shard(channel, message, deliver),
            Kind::Channel | Kind::Pattern => self.publish(channel, message, deliver),
        }
    }

    fn publish(&self, channel: &[u8], message: &[u8], deliver: Deliver<'_>) -> usize {
        let _in_order = self.order_of(channel);
        let mut receivers = 0;
        let parts: [&[u8]; 3] = [b"message", channel, message];
        let mut plain = Message::new(&parts);
        if let Some(clients) = self.channels.read().get(channel) {
            receivers += each_open(clients.values(), |client| deliver(client, &mut plain));
        }
        for (pattern, clients) in self.patterns.read().candidates(channel) {
            if glob::matches(pattern, channel) {
                let parts: [&[u8]; 4] = [b"pmessage", pattern, channel, message];
                let mut matched = Message::new(&parts);
                receivers += each_open(clients.values(), |client| deliver(client, &mut matched));
            }
        }
        receivers
    }

    fn publish_shard(&self, channel: &[u8], message: &[u8], deliver: Deliver<'_>) -> usize {
        let _in_order = self.order_of(channel);
        let parts: [&[u8]; 3] = [b"smessage", channel, message];
        let mut message = Message::new(&parts);
        let by_name = self.shard_channels.read();
        let clients = by_name.get(channel).into_iter().flat_map(Subscribers::values);
        each_open(clients, |client| deliver(client, &mut message))
    }

    /// Locked while a message is delivered, so that all subscribers of a channel get its messages
    /// in the same order.
    fn order_of(&self, channel: &[u8]) -> MutexGuard<'_, ()> {
        let stripe = base::hash::hash(channel) as usize % self.order.len();
        self.order[stripe].lock()
    }

    /// The names with subscribers.
    pub fn names(&self, kind: Kind) -> Vec<Vec<u8>> {
        let mut names = Vec::new();
        self.each_name(kind, |name, clients| {
            if clients.values().any(|client| is_open(client)) {
                names.push(name.to_vec());
            }
        });
        names
    }

    fn each_name(&self, kind: Kind, mut visit: impl FnMut(&[u8], &Subscribers)) {
        match self.by_name(kind) {
            Some(by_name) => by_name.read().iter().for_each(|(name, own)| visit(name, own)),
            None => self.patterns.read().iter().for_each(|(name, own)| visit(name, own)),
        }
    }

    /// Visits each name of a kind with each of its subscribers.
    pub(crate) fn each_subscriber(&self, kind: Kind, mut visit: impl FnMut(&[u8], &Client)) {
        self.each_name(kind, |name, clients| {
            clients.values().for_each(|client| visit(name, client));
        });
    }

    /// How many listen to a name.
    pub fn count(&self, kind: Kind, name: &[u8]) -> usize {
        let open =
            |clients: &Subscribers| clients.values().filter(|client| is_open(client)).count();
        match self.by_name(kind) {
            Some(by_name) => by_name.read().get(name).map_or(0, open),
            None => self.patterns.read().get(name).map_or(0, open),
        }
    }

    /// How many names of a kind have subscribers.
    pub fn len(&self, kind: Kind) -> usize {
        let mut count = 0;
        self.each_name(kind, |_, clients| {
            count += usize::from(clients.values().any(|client| is_open(client)));
        });
        count
    }

    /// Adds a client that sees all commands.
    pub fn add_monitor(&self, client: &Arc<Client>) {
        let mut monitors = self.monitors.lock();
        monitors.push(Arc::clone(client));
        self.monitored.store(monitors.len(), Relaxed);
    }

    /// Removes a client that saw all commands.
    pub(crate) fn remove_monitor(&self, client: &Client) {
        let mut monitors = self.monitors.lock();
        monitors.retain(|other| other.id != client.id);
        self.monitored.store(monitors.len(), Relaxed);
    }

    /// Whether any client monitors all commands.
    #[inline]
    pub fn is_monitored(&self) -> bool {
        self.monitored.load(Relaxed) > 0
    }

    /// Shows a command line to the monitors.
    pub(crate) fn show(&self, host: &dyn Wake, line: Vec<u8>) {
        let line = Arc::new(line);
        self.each_monitor(|client| deliver(host, client, |_| Arc::clone(&line)));
    }

    /// Does something for each client that monitors all commands.
    pub(crate) fn each_monitor(&self, action: impl FnMut(&Arc<Client>)) {
        self.monitors.lock().iter().for_each(action);
    }
}

/// Whether a subscriber still listens. A killed subscriber does not, though its worker has yet to
/// remove its subscriptions.
fn is_open(client: &Client) -> bool {
    !client.is_killed()
}

/// Does something for each subscriber that still listens. Returns their number.
fn each_open<'c>(
    clients: impl Iterator<Item = &'c Arc<Client>>,
    mut action: impl FnMut(&Arc<Client>),
) -> usize {
    let open = clients.filter(|client| is_open(client));
    open.inspect(|client| action(client)).count()
}

/// Whether a client speaks RESP3.
fn speaks_resp3(client: &Client) -> bool {
    client.protocol.load(Relaxed) == 3
}
