//! The replicas of this server, as all threads see them: who they are, and how far they are. Whom
//! this server follows itself is in [`crate::replication`].
//!
//! | file | what it answers |
//! |---|---|
//! | [`introduction`] | what does a client say before it becomes one? |
//! | [`quorum`] | in a cluster, which of them make a write known to a quorum? |
//! | [`slowing`] | how long do writes wait for one that falls behind? |
//!
//! A thread of the server serves them. Commands show them, count those that have a write (WAIT,
//! WAITAOF), and refuse writes while too few keep up (`min-replicas-to-write`).

pub mod introduction;
pub mod quorum;
pub mod slowing;

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};

use cluster::ids::NodeId;
use config::Config;
use parking_lot::Mutex;

use crate::session::client::Client;
use crate::session::replicas::introduction::Introduction;
use crate::session::replicas::quorum::Quorum;
use crate::session::replicas::slowing::Slowing;
use crate::session::sync::SyncWait;

/// A replica says every second how far it is. One that says nothing for so many milliseconds may be
/// gone.
const SILENCE_MS: u64 = 1500;

/// What asks replicas how far they are. It is a part of the stream.
pub const GETACK: &[u8] = b"*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";

/// How a replica stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Standing {
    /// It waits for its copy to begin.
    Waits,
    /// It gets the copy.
    GetsCopy,
    /// It has got the copy, and wanted nothing else.
    HasCopy,
    /// It follows the stream.
    Online,
}

impl Standing {
    const ALL: [Standing; 4] =
        [Standing::Waits, Standing::GetsCopy, Standing::HasCopy, Standing::Online];

    /// What INFO calls it.
    pub fn name(self) -> &'static str {
        match self {
            Standing::Waits => "wait_bgsave",
            Standing::GetsCopy => "send_bulk",
            Standing::HasCopy => "rdb_transmitted",
            Standing::Online => "online",
        }
    }
}

/// A replica.
pub struct Replica {
    /// Its connection.
    pub client: Arc<Client>,
    /// What it has said.
    pub introduction: Introduction,
    /// It has asked by SYNC, and tells nothing of how far it is.
    pub is_silent: bool,
    standing: AtomicU8,
    /// The stream that it follows is over.
    is_left_behind: AtomicBool,
    acknowledged: AtomicU64,
    synced: AtomicU64,
    attached_at: u64,
    heard_at: AtomicU64,
    /// Bytes of the stream and of the copy that wait for it.
    pub waiting: AtomicU64,
}

impl Replica {
    /// One that waits for its copy, from this millisecond of the monotonic clock on.
    pub fn new(
        client: Arc<Client>,
        introduction: Introduction,
        is_silent: bool,
        monotonic: u64,
    ) -> Replica {
        Replica {
            client,
            introduction,
            is_silent,
            standing: AtomicU8::new(Standing::Waits as u8),
            is_left_behind: AtomicBool::new(false),
            acknowledged: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            attached_at: monotonic,
            heard_at: AtomicU64::new(monotonic),
            waiting: AtomicU64::new(0),
        }
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        Standing::ALL[usize::from(self.standing.load(Acquire))]
    }

    /// Notes how it stands.
    pub fn stand(&self, standing: Standing) {
        self.standing.store(standing as u8, Release);
    }

    /// Whether it follows the present stream.
    pub fn is_online(&self) -> bool {
        self.standing() == Standing::Online && !self.is_left_behind.load(Relaxed)
    }

    /// The offset up to which it has applied the stream, as it said last.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Relaxed)
    }

    /// The offset up to which its own append-only file has the stream.
    pub fn synced(&self) -> u64 {
        self.synced.load(Relaxed)
    }

    /// It has said how far it is, at this millisecond of the monotonic clock. Returns whether it is
    /// further than before.
    pub fn acknowledge(&self, offset: u64, synced: Option<u64>, monotonic: u64) -> bool {
        self.hear(monotonic);
        let before = self.acknowledged.fetch_max(offset, Relaxed);
        let synced_before =
            synced.map_or(u64::MAX, |synced| self.synced.fetch_max(synced, Relaxed));
        before < offset || synced.is_some_and(|synced| synced_before < synced)
    }

    /// It has shown that it lives.
    pub fn hear(&self, monotonic: u64) {
        self.heard_at.store(monotonic, Relaxed);
    }

    /// For how many milliseconds it was silent.
    pub fn silent_for(&self, monotonic: u64) -> u64 {
        monotonic.saturating_sub(self.heard_at.load(Relaxed))
    }

    /// For how many seconds it was silent, as INFO shows it.
    pub fn lag(&self, monotonic: u64) -> u64 {
        self.silent_for(monotonic) / 1000
    }

    /// Whether this link and a later one may be of one server, which has connected again before
    /// this side heard of the end of its link. Of two that are behind one address with one port
    /// the earlier one goes on speaking.
    fn may_be_again(&self, later: &Replica) -> bool {
        let (own, other) = (&self.introduction, &later.introduction);
        later.client.id > self.client.id
            && self.heard_at.load(Relaxed) <= later.attached_at.saturating_add(SILENCE_MS)
            && own.listening_port == other.listening_port
            && own.listening_port != 0
            && self.address() == later.address()
    }

    /// The address at which clients reach it.
    pub fn address(&self) -> String {
        if !self.introduction.address.is_empty() {
            return String::from_utf8_lossy(&self.introduction.address).into_owned();
        }
        let host = self.client.address.rsplit_once(':').map_or("", |(host, _)| host);
        host.trim_matches(['[', ']']).to_owned()
    }
}

/// See the module's text.
#[derive(Default)]
pub struct Replicas {
    all: Mutex<Vec<Arc<Replica>>>,
    count: AtomicUsize,
    /// There was one since the start.
    were_there: AtomicBool,
    /// A client waits for replicas, which are to say how far they are.
    asked: AtomicBool,
    /// Wakes the thread that serves them.
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Writers are slowed down for one that falls behind.
    pub slowing: Slowing,
    /// Which of them make a write known to a quorum, where this is the primary of a shard.
    pub quorum: Quorum,
    /// Counts for INFO.
    pub counts: Counts,
}

/// What became of requests for a sync.
#[derive(Default)]
pub struct Counts {
    /// Whole copies.
    pub full: AtomicU64,
    /// Those that went on where they had been.
    pub partial: AtomicU64,
    /// Those that could not.
    pub refused_partial: AtomicU64,
    /// Bytes sent to replicas.
    pub sent_bytes: AtomicU64,
    /// Milliseconds for which writers were slowed down.
    pub slowed_ms: AtomicU64,
}

impl Replicas {
    /// Says how the thread is woken that serves them.
    pub fn connect(&self, waker: impl Fn() + Send + Sync + 'static) {
        // Only the first thread is asked.
        let _ = self.waker.set(Box::new(waker));
    }

    /// Adds one.
    pub fn add(&self, replica: &Arc<Replica>) {
        let mut all = self.all.lock();
        all.push(Arc::clone(replica));
        self.were_there.store(true, Relaxed);
        self.count.store(all.len(), Release);
    }

    /// Removes one.
    pub fn remove(&self, replica: &Arc<Replica>) {
        let mut all = self.all.lock();
        all.retain(|other| !Arc::ptr_eq(other, replica));
        self.count.store(all.len(), Release);
    }

    /// The stream has broken off, while the world is stopped. What those say that have followed it
    /// counts no more: they have to ask anew, and may lack what is here now.
    pub fn leave_behind(&self) {
        for replica in self.all.lock().iter() {
            replica.is_left_behind.store(true, Relaxed);
        }
    }

    /// All, in the order in which they came.
    pub fn all(&self) -> Vec<Arc<Replica>> {
        self.all.lock().clone()
    }

    /// Whether there was one since the start.
    #[inline]
    pub(crate) fn were_there(&self) -> bool {
        self.were_there.load(Relaxed)
    }

    /// For how many milliseconds the stream is kept for replicas that may come back.
    pub fn patience(&self, config: &Config) -> u64 {
        match config.repl_backlog_ttl {
            // What a node of a cluster has written has to be known by its offset.
            _ if config.cluster_enabled => u64::MAX,
            _ if !self.were_there() => 0,
            0 => u64::MAX,
            seconds => seconds.saturating_mul(1000),
        }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.count.load(Acquire)
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn count(&self, which: impl Fn(&Replica) -> bool) -> usize {
        if self.is_empty() {
            return 0;
        }
        let all = self.all.lock();
        // Nobody is two copies.
        let is_again = |own: &Replica| all.iter().any(|later| own.may_be_again(later));
        all.iter().filter(|own| own.is_online() && which(own) && !is_again(own)).count()
    }

    /// How many have applied the stream up to this offset.
    fn having(&self, offset: u64) -> usize {
        self.count(|own| own.acknowledged() >= offset)
    }

    /// How many have it in their append-only files up to this offset. One without a file says
    /// nothing of it.
    fn having_synced(&self, offset: u64) -> usize {
        self.count(|own| own.synced() >= offset && own.synced() > 0)
    }

    /// The nodes of a cluster that follow in the present epoch, and how far each has applied the
    /// stream. A node with several links, as after its process was started again elsewhere, is as
    /// far as the slowest of them: nobody knows here which of them stands for election. See
    /// [`Replicas::is_replaced`].
    pub fn nodes(&self) -> Vec<(NodeId, u64)> {
        let epoch = self.quorum.epoch();
        let mut nodes: Vec<(NodeId, Option<u64>)> = Vec::new();
        for own in self.all() {
            let Some(node) = own.introduction.node else { continue };
            // One whose user has lost the right to speak for a node is about to be closed.
            let counts =
                own.is_online() && own.introduction.epoch >= epoch && !own.client.is_killed();
            let offset = counts.then(|| own.acknowledged());
            match nodes.iter_mut().find(|(other, _)| *other == node) {
                // Nothing is less than any offset.
                Some((_, least)) => *least = offset.min(*least),
                None => nodes.push((node, offset)),
            }
        }
        nodes.into_iter().filter_map(|(node, offset)| Some((node, offset?))).collect()
    }

    /// Whether the link of a node of a cluster may end: the node has connected once more since, and
    /// says nothing here. The other side may be a machine that is gone, or a process that stands
    /// still.
    pub fn is_replaced(&self, replica: &Replica, monotonic: u64) -> bool {
        let Some(node) = replica.introduction.node else { return false };
        replica.silent_for(monotonic) > SILENCE_MS && {
            let is_later = |own: &Arc<Replica>| {
                own.introduction.node == Some(node) && own.client.id > replica.client.id
            };
            self.all.lock().iter().any(is_later)
        }
    }

    /// How many of the members that a quorum needs have what a client waits for.
    fn members_having(&self, sync: &SyncWait) -> u64 {
        let nodes = self.nodes();
        if self.quorum.has(sync.offset, &nodes) {
            return sync.replicas;
        }
        let having = nodes.iter().filter(|(_, offset)| *offset >= sync.offset).count() as u64;
        having.min(sync.replicas.saturating_sub(1))
    }

    /// How many have the writes for which a client waits: in memory for WAIT, on disk for WAITAOF.
    pub fn copies(&self, sync: &SyncWait) -> u64 {
        let count = match sync.local {
            _ if sync.of_shard => return self.members_having(sync),
            Some(_) => self.having_synced(sync.offset),
            None => self.having(sync.offset),
        };
        count as u64
    }

    /// How many were heard of in the last seconds that `min-replicas-max-lag` names.
    pub fn keeping_up(&self, config: &Config, monotonic: u64) -> usize {
        self.count(|own| own.lag(monotonic) <= u64::from(config.min_replicas_max_lag))
    }

    /// Whether there are as many as `min-replicas-to-write` asks for.
    #[inline]
    pub fn are_enough(&self, config: &Config, monotonic: u64) -> bool {
        let wanted = config.min_replicas_to_write;
        wanted == 0
            || config.min_replicas_max_lag == 0
            || self.keeping_up(config, monotonic) >= wanted as usize
    }

    /// Has all of them asked how far they are.
    pub fn ask(&self) {
        if !self.is_empty() && !self.asked.swap(true, Release) {
            self.wake();
        }
    }

    /// Wakes the thread that serves them.
    pub fn wake(&self) {
        self.waker.get().inspect(|wake| wake());
    }

    /// Whether they are to be asked, since the last call.
    pub fn take_asked(&self) -> bool {
        self.asked.load(Relaxed) && self.asked.swap(false, Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::client::Client;

    fn replica(address: &str) -> Arc<Replica> {
        let client = Client::new(1, 0, address.to_owned(), String::new(), 0, 0);
        Arc::new(Replica::new(Arc::new(client), Introduction::default(), false, 0))
    }

    #[test]
    fn a_server_that_has_connected_again_is_one_copy() {
        let replicas = Replicas::default();
        let attach = |id: u64, peer: &str, (port, announced): (i64, &str), at: u64| {
            let client = Client::new(id, 0, peer.to_owned(), String::new(), 0, 0);
            let address = announced.as_bytes().to_vec();
            let introduction =
                Introduction { listening_port: port, address, ..Introduction::default() };
            let link = Arc::new(Replica::new(Arc::new(client), introduction, false, at));
            link.stand(Standing::Online);
            link.acknowledge(10, Some(10), at);
            replicas.add(&link);
            link
        };
        let counts = || (replicas.having(10), replicas.having_synced(10));
        let first = attach(1, "127.0.0.1:5", (6379, ""), 1000);
        attach(2, "127.0.0.1:6", (6380, ""), 1000);
        attach(3, "127.0.0.2:7", (6379, ""), 1000);
        attach(4, "127.0.0.1:8", (6379, "127.0.0.3"), 1000);
        assert_eq!(counts(), (4, 4), "another port, another machine, another address");
        let again = attach(5, "127.0.0.1:9", (6379, ""), 9000);
        assert_eq!(counts(), (4, 4), "the first has connected again");
        first.acknowledge(11, None, 9000 + SILENCE_MS);
        assert_eq!(counts(), (4, 4), "that was on its way");
        first.acknowledge(12, None, 9001 + SILENCE_MS);
        assert_eq!(counts(), (5, 5), "both speak: they are two behind one address");
        replicas.remove(&again);
        // Who does not say where it listens is nobody that is known.
        attach(6, "127.0.0.4:1", (0, ""), 1000);
        attach(7, "127.0.0.4:2", (0, ""), 1000);
        assert_eq!(counts(), (6, 6));
    }

    #[test]
    fn those_online_are_counted_by_what_they_have() {
        let replicas = Replicas::default();
        let own = replica("127.0.0.1:5");
        replicas.add(&own);
        assert!(own.acknowledge(10, None, 1000));
        assert!(!own.acknowledge(9, None, 1000), "offsets only rise");
        assert_eq!(replicas.having(5), 0, "it is not online");
        own.stand(Standing::Online);
        assert_eq!((replicas.having(10), replicas.having(11)), (1, 0));
        assert_eq!(replicas.having_synced(0), 0, "it has no file");
        assert!(own.acknowledge(10, Some(7), 1000));
        assert_eq!((replicas.having_synced(7), replicas.having_synced(8)), (1, 0));
        let config = Config { min_replicas_to_write: 1, ..Config::default() };
        assert_eq!(replicas.patience(&config), 3_600_000);
        assert!(replicas.are_enough(&config, 11_999));
        assert!(!replicas.are_enough(&config, 12_000));
        replicas.leave_behind();
        own.acknowledge(11, Some(11), 1000);
        assert_eq!((replicas.having(0), replicas.having_synced(0)), (0, 0), "of an older stream");
        replicas.remove(&own);
        assert!(replicas.is_empty() && !replicas.are_enough(&config, 1000));
    }

    #[test]
    fn a_node_with_two_links_is_as_far_as_the_slower_one_until_that_is_silent() {
        let (node, replicas) = (NodeId([7; 20]), Replicas::default());
        let link = |id: u64, offset: u64, heard: u64| {
            let client = Client::new(id, 0, String::new(), String::new(), 0, 0);
            let introduction = Introduction { node: Some(node), ..Introduction::default() };
            let link = Arc::new(Replica::new(Arc::new(client), introduction, false, heard));
            link.acknowledge(offset, None, heard);
            replicas.add(&link);
            link
        };
        let earlier = link(1, 10, 1000);
        earlier.stand(Standing::Online);
        assert_eq!(replicas.nodes(), [(node, 10)]);
        assert!(!replicas.is_replaced(&earlier, 90_000), "it has no other");
        let later = link(2, 14, 3000);
        assert_eq!(replicas.nodes(), [], "it gets its copy");
        later.stand(Standing::Online);
        assert_eq!(replicas.nodes(), [(node, 10)]);
        assert!(!replicas.is_replaced(&earlier, 1000 + SILENCE_MS), "it may live");
        assert!(replicas.is_replaced(&earlier, 1001 + SILENCE_MS));
        assert!(!replicas.is_replaced(&later, 90_000), "it is the last");
        replicas.remove(&earlier);
        assert_eq!(replicas.nodes(), [(node, 14)]);
        later.client.kill();
        assert_eq!(replicas.nodes(), [], "it counts no more, closed or not");
    }

    #[test]
    fn an_address_is_that_of_the_connection_unless_it_says_another() {
        assert_eq!(replica("127.0.0.1:5").address(), "127.0.0.1");
        assert_eq!(replica("[::1]:5").address(), "::1");
    }
}
