//! Keyspace notifications: what happened to which key, for subscribers of `__keyspace@N__:key` and
//! `__keyevent@N__:event`; and the queue from which these and other publications leave in their
//! order.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use base::limits;
use hashbrown::HashMap;
use parking_lot::Mutex;
use resp::client::encode_command;

use crate::session::client::Client;
use crate::session::pubsub::Kind;
pub use config::NotifyEvents as Class;

/// An event: a class and a name.
#[derive(Clone, Copy, Debug)]
pub struct Event(pub Class, pub &'static str);

/// A message for other clients, which leaves after the journal has the writes that it reports.
pub(crate) enum Publication {
    /// An event of a key.
    Event(Notification),
    /// A message that was published within EXEC or a script.
    Message(Published),
    /// The line of a command that ran, for clients that monitor all commands.
    Line(Vec<u8>),
    /// More was said to this client than it may let wait: it is closed.
    TooMuch(Arc<Client>),
}

/// Which nodes of a cluster are to hear a message of a client of this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spread {
    /// This one and its replicas.
    Here,
    /// This one, and those that hear it from primaries: of all shards, or of the one that has the
    /// shard channel.
    Everywhere,
    /// The same, but this replica hears it from its primary too.
    ByPrimaries,
}

/// A message to a channel.
pub(crate) struct Published {
    pub(crate) kind: Kind,
    pub(crate) channel: Box<[u8]>,
    pub(crate) message: Box<[u8]>,
    /// It goes to replicas too.
    pub(crate) for_replicas: bool,
    pub(crate) spread: Spread,
}

/// The command by which replicas get a message for their own subscribers.
pub(crate) fn write_message(kind: Kind, channel: &[u8], message: &[u8], out: &mut Vec<u8>) {
    let name: &[u8] = match kind {
        Kind::Shard => b"SPUBLISH",
        Kind::Channel | Kind::Pattern => b"PUBLISH",
    };
    encode_command([name, channel, message].into_iter(), out);
}

impl Publication {
    /// Bytes of memory.
    fn memory(&self) -> usize {
        let own = match self {
            Publication::Event(event) => event.key.len(),
            Publication::Message(published) => published.channel.len() + published.message.len(),
            Publication::Line(line) => line.capacity(),
            Publication::TooMuch(_) => 0,
        };
        size_of::<Publication>() + own
    }

    /// Whether it is true of a command that begins again: it has removed keys that it found
    /// expired.
    fn outlives_attempt(&self) -> bool {
        matches!(self, Publication::Event(event) if event.event.0 != Class::KEY_MISS)
    }
}

/// An event that is going to be published.
#[derive(Debug)]
pub(crate) struct Notification {
    pub(crate) database: usize,
    pub(crate) event: Event,
    pub(crate) key: Box<[u8]>,
    /// The settings that asked for it. They name the channels to which it goes.
    pub(crate) asked: Class,
}

/// News of the commands of a thread that is not in the queue yet, in its order.
#[derive(Default)]
pub(crate) struct OwnPublications {
    publications: Vec<Publication>,
    /// So many of them were sifted: see [`crate::engine::Engine::sift_publications`].
    sifted: usize,
    /// Bytes of memory that the others take.
    unsifted_bytes: usize,
    /// Bytes that the sifted news has for clients whose output is limited, by their numbers.
    promised: HashMap<u64, usize>,
}

/// What becomes of a message that is added to those for a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Promise {
    /// The client gets it.
    Kept,
    /// It is more than the client may let wait.
    Exceeds,
    /// So was an earlier one.
    Broken,
}

impl OwnPublications {
    pub(crate) fn add(&mut self, publications: Publication) {
        self.unsifted_bytes += publications.memory();
        self.publications.push(publications);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.publications.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.publications.len()
    }

    /// The commands by which replicas get the messages among them, in their order.
    pub(crate) fn for_replicas(&self) -> Vec<u8> {
        let mut commands = Vec::new();
        for publication in &self.publications {
            if let Publication::Message(published) = publication
                && published.for_replicas
            {
                write_message(
                    published.kind,
                    &published.channel,
                    &published.message,
                    &mut commands,
                );
            }
        }
        commands
    }

    /// The messages among them that other nodes of the cluster are to hear, in their order.
    pub(crate) fn for_cluster(&self) -> impl Iterator<Item = (Kind, &[u8], &[u8])> {
        self.publications.iter().filter_map(|publication| match publication {
            Publication::Message(own) if own.spread != Spread::Here => {
                Some((own.kind, &*own.channel, &*own.message))
            }
            _ => None,
        })
    }

    /// Lets replicas have none of the messages after the first `first` publications.
    pub(crate) fn keep_from_replicas(&mut self, first: usize) {
        for publication in &mut self.publications[first..] {
            if let Publication::Message(published) = publication {
                published.for_replicas = false;
            }
        }
    }

    /// Whether it takes so much memory that it is to be sifted.
    #[inline]
    pub(crate) fn is_much(&self) -> bool {
        self.unsifted_bytes > limits::PUBLICATIONS_UNSIFTED
    }

    /// Takes out the news that was not sifted. The caller gives back what somebody is going to
    /// hear.
    pub(crate) fn take_unsifted(&mut self) -> Vec<Publication> {
        self.unsifted_bytes = 0;
        self.publications.split_off(self.sifted.min(self.publications.len()))
    }

    /// Adds news that was sifted.
    pub(crate) fn add_sifted(&mut self, publications: Publication) {
        self.publications.push(publications);
        self.sifted = self.publications.len();
    }

    /// Counts a message of at least this many bytes for a client.
    pub(crate) fn promise(&mut self, client: &Client, bytes: usize) -> Promise {
        let limit = client.output_limit.load(Relaxed);
        if limit == usize::MAX {
            return Promise::Kept;
        }
        let promised = self.promised.entry(client.id).or_default();
        if *promised > limit {
            return Promise::Broken;
        }
        *promised = promised.saturating_add(bytes);
        if *promised > limit { Promise::Exceeds } else { Promise::Kept }
    }

    /// Forgets the publications after the first `first`, because their command begins again: it has
    /// done nothing yet, apart from removing keys that it found expired.
    pub(crate) fn take_back(&mut self, first: usize) {
        let mut at = 0;
        self.publications.retain(|publications| {
            at += 1;
            at <= first || publications.outlives_attempt()
        });
        (self.sifted, self.unsifted_bytes) = (self.sifted.min(first), 0);
        self.promised = HashMap::new();
    }

    /// Keeps only lines for MONITOR, and forgets everything for subscribers.
    pub(crate) fn keep_lines(&mut self) {
        self.publications.retain(|publications| matches!(publications, Publication::Line(_)));
    }

    /// Moves all of it to the end of other news.
    fn move_to(&mut self, others: &mut Vec<Publication>) {
        others.append(&mut self.publications);
        (self.sifted, self.unsifted_bytes) = (0, 0);
        if !self.promised.is_empty() {
            self.promised = HashMap::new();
        }
    }
}

/// Publications in the order in which they happened.
///
/// A thread that has changed keys adds its publications while it holds their slots, which costs no
/// more than a short lock. It delivers them after it has unlocked the slots. So the publications of
/// one key are in the order of its changes, and every receiver gets all publications in one order,
/// whichever threads deliver them.
#[derive(Default)]
pub(crate) struct PublicationQueue {
    waiting: Mutex<Vec<Publication>>,
    /// Locked by the thread that delivers.
    delivering: Mutex<()>,
    /// Publications that were added and not delivered yet.
    undelivered: AtomicUsize,
}

impl PublicationQueue {
    /// Adds publications, in their order. The calling thread holds the slots that they concern.
    pub(crate) fn add(&self, own: &mut OwnPublications) {
        let mut waiting = self.waiting.lock();
        self.undelivered.fetch_add(own.len(), Relaxed);
        own.move_to(&mut waiting);
    }

    /// Delivers all that was added before. Returns when that has been delivered, perhaps by another
    /// thread.
    pub(crate) fn deliver(&self, deliver: impl FnMut(Publication)) {
        if self.undelivered.load(Acquire) == 0 {
            return;
        }
        let _one_at_a_time = self.delivering.lock();
        let publications = std::mem::take(&mut *self.waiting.lock());
        let count = publications.len();
        publications.into_iter().for_each(deliver);
        self.undelivered.fetch_sub(count, Release);
    }
}
