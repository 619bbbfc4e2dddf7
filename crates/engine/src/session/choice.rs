//! What a client has chosen for itself: how durable its writes are before it hears of them (CLIENT
//! DURABILITY), and how new the data is that it reads (CLIENT READAFTER).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU64, AtomicUsize, fence};

use config::{ClusterDurability, Config};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::journal::backlog::Position;
use crate::session::client::Client;
use crate::session::replicas::quorum::Quorum;
use crate::session::sync::SyncWait;

/// The time for which a read waits if CLIENT READAFTER names none, in milliseconds.
pub const READAFTER_TIMEOUT: u64 = 1000;

/// How durable a client's writes are before it hears of them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Durability {
    /// As the settings of the server say.
    #[default]
    Default,
    /// They are in memory.
    Memory,
    /// They are synced here.
    Fsync,
    /// A quorum of the members of this server's shard has them, itself included.
    Quorum,
    /// So many replicas have them, in their files and in that of this server if `synced`.
    Replicas {
        /// How many.
        count: u32,
        /// Whether copies in memory do not count.
        synced: bool,
    },
}

impl Durability {
    /// Reads the words that [`Durability`]'s `Display` writes, in any case.
    pub fn parse<'w>(mut words: impl Iterator<Item = &'w [u8]>) -> Option<Durability> {
        let is = |word: &[u8], name: &[u8]| word.eq_ignore_ascii_case(name);
        let first = words.next()?;
        let read = match () {
            () if is(first, b"default") => Durability::Default,
            () if is(first, b"memory") => Durability::Memory,
            () if is(first, b"fsync") => Durability::Fsync,
            () if is(first, b"quorum") => Durability::Quorum,
            () if is(first, b"replicas") => {
                let count = words.next().and_then(base::num::parse_i64)?;
                let count = u32::try_from(count).ok().filter(|count| *count > 0)?;
                let synced = match words.next() {
                    None => false,
                    Some(word) if is(word, b"fsync") => true,
                    Some(_) => return None,
                };
                Durability::Replicas { count, synced }
            }
            () => return None,
        };
        words.next().is_none().then_some(read)
    }

    /// Whether replies to writes are held until something is reached that the settings of the
    /// server do not ask for.
    #[inline]
    pub fn holds_replies(self) -> bool {
        matches!(self, Durability::Fsync | Durability::Quorum | Durability::Replicas { .. })
    }

    /// Whether replies wait for the disk as `appendfsync` says.
    #[inline]
    pub fn heeds_disk(self) -> bool {
        matches!(self, Durability::Default | Durability::Fsync)
            || matches!(self, Durability::Replicas { synced: true, .. })
    }

    /// What a client that has chosen nothing gets under these settings.
    pub(crate) fn or_default(self, config: &Config) -> Durability {
        match (self, config.cluster_durability) {
            (Durability::Default, _) if !config.cluster_enabled => self,
            (Durability::Default, ClusterDurability::Fsync) => Durability::Fsync,
            (Durability::Default, ClusterDurability::Quorum) => Durability::Quorum,
            _ => self,
        }
    }

    /// What writes up to this offset of the journal wait for.
    pub fn sync(self, offset: u64, quorum: &Quorum) -> SyncWait {
        let (local, replicas) = match self {
            Durability::Default | Durability::Memory => (None, 0),
            Durability::Fsync => (Some(1), 0),
            Durability::Quorum => (None, quorum.replicas()),
            Durability::Replicas { count, synced } => (synced.then_some(1), u64::from(count)),
        };
        SyncWait { offset, local, replicas, of_shard: self == Durability::Quorum }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Durability::Default => formatter.write_str("DEFAULT"),
            Durability::Memory => formatter.write_str("MEMORY"),
            Durability::Fsync => formatter.write_str("FSYNC"),
            Durability::Quorum => formatter.write_str("QUORUM"),
            Durability::Replicas { count, synced: false } => {
                write!(formatter, "REPLICAS {count}")
            }
            Durability::Replicas { count, synced: true } => {
                write!(formatter, "REPLICAS {count} FSYNC")
            }
        }
    }
}

/// The reply of a write that is written, and is not to leave before this is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owed {
    /// What it waits for.
    pub sync: SyncWait,
    /// How many bytes of what was written are the reply; messages may follow it.
    pub length: usize,
}

/// CLIENT READAFTER.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadAfter {
    /// Reads wait until the server has applied as much.
    pub position: Position,
    /// Until this millisecond of the monotonic clock.
    pub deadline: u64,
    /// For how long they wait, in milliseconds.
    pub timeout: u64,
    /// The server has applied as much, and has had so many breaks in its stream until then
    /// ([`crate::replication::Replication::breaks`]): after another one its data may lack it again.
    pub reached: Option<u64>,
}

impl ReadAfter {
    /// Whether reads may have to wait, or be refused, where the stream has had so many breaks.
    #[inline]
    pub fn is_open(&self, breaks: u64) -> bool {
        self.reached != Some(breaks)
    }
}

/// A client that waits for an offset.
struct Reader {
    offset: u64,
    client: Arc<Client>,
}

/// What has come of the choices of all clients, and who waits to read.
#[derive(Default)]
pub struct Choices {
    /// Writes that were not as durable in time as their clients had chosen.
    pub not_durable: AtomicU64,
    /// Reads that were refused because the data was too old.
    pub stale: AtomicU64,
    /// Clients whose replies are held.
    pub holding: AtomicU64,
    readers: Mutex<HashMap<u64, Reader>>,
    reading: AtomicUsize,
}

impl Choices {
    /// A client waits until the server has applied the stream up to this offset. It has to look
    /// once more after this.
    pub(crate) fn expect(&self, offset: u64, client: &Arc<Client>) {
        let mut readers = self.readers.lock();
        readers.insert(client.id, Reader { offset, client: Arc::clone(client) });
        self.reading.store(readers.len(), Relaxed);
        drop(readers);
        // Either the client sees what was applied meanwhile, or who has applied it sees the client.
        fence(SeqCst);
    }

    /// A client waits no more.
    pub(crate) fn forget(&self, client: u64) {
        if self.reading.load(Relaxed) > 0 {
            let mut readers = self.readers.lock();
            readers.remove(&client);
            self.reading.store(readers.len(), Relaxed);
        }
    }

    /// How many clients wait to read.
    pub fn reading(&self) -> usize {
        self.reading.load(Relaxed)
    }

    /// The clients that wait for no more than this offset; for all if the data has become another.
    pub(crate) fn take_readers(&self, until: impl FnOnce() -> u64) -> Vec<Arc<Client>> {
        fence(SeqCst);
        if self.reading.load(Relaxed) == 0 {
            return Vec::new();
        }
        let until = until();
        let mut readers = self.readers.lock();
        let taken = readers.extract_if(|_, reader| reader.offset <= until);
        let clients = taken.map(|(_, reader)| reader.client).collect();
        self.reading.store(readers.len(), Relaxed);
        clients
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_as_it_is_shown() {
        let parse = |text: &str| Durability::parse(text.split(' ').map(str::as_bytes));
        let all =
            ["DEFAULT", "MEMORY", "FSYNC", "QUORUM", "REPLICAS 1", "REPLICAS 4294967295 FSYNC"];
        for text in all {
            assert_eq!(parse(text).unwrap().to_string(), text);
            assert_eq!(parse(&text.to_ascii_lowercase()), parse(text));
        }
        for wrong in ["", "x", "FSYNC 1", "REPLICAS", "REPLICAS 0", "REPLICAS -1", "REPLICAS x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        for wrong in ["REPLICAS 1 x", "REPLICAS 1 FSYNC x", "REPLICAS 4294967296", "DEFAULT x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn those_are_woken_that_wait_for_no_more_than_there_is() {
        let client = |id| Arc::new(Client::new(id, 0, String::new(), String::new(), 0, 0));
        let choices = Choices::default();
        for (id, offset) in [(1, 10), (2, 20), (3, 30)] {
            choices.expect(offset, &client(id));
        }
        choices.forget(3);
        let woken = |until| {
            let clients = choices.take_readers(|| until);
            clients.iter().map(|client| client.id).collect::<Vec<_>>()
        };
        assert!(woken(9).is_empty());
        assert_eq!(woken(10), [1]);
        assert_eq!((woken(u64::MAX), choices.reading()), (vec![2], 0));
    }
}
