//! Clients that wait until their writes are durable: WAITAOF; or until replicas have them: WAIT.

use resp::reply::Reply;

use crate::journal::Journal;

/// The answer of WAITAOF when a client waits for a file that does not exist.
pub const NO_FILE: &str =
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

/// A client that waits for copies of its writes: WAITAOF and WAIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncWait {
    /// The journal's offset after its last write.
    pub offset: u64,
    /// Copies on this machine that it waits for, 0 or 1; none if it asks for replicas alone.
    pub local: Option<u64>,
    /// Replicas that it waits for.
    pub replicas: u64,
    /// Only members of this server's shard count among them.
    pub of_shard: bool,
}

impl SyncWait {
    /// In place of the offset: the writes are beside the stream of another server, and nothing
    /// counts how far they are.
    pub(crate) const UNCOUNTED: u64 = i64::MAX as u64;

    /// Whether anything counts how far the writes are.
    pub fn is_counted(&self) -> bool {
        self.offset != SyncWait::UNCOUNTED
    }

    /// Whether the writes are durable here.
    pub(crate) fn is_synced(&self, journal: &dyn Journal) -> bool {
        journal.has_file() && !journal.beginning() && journal.synced() >= self.offset
    }

    fn awaits_file(&self) -> bool {
        self.local.is_some_and(|copies| copies > 0)
    }

    /// Whether it waits for a file that is missing, or no longer there.
    pub fn is_in_vain(&self, journal: &dyn Journal) -> bool {
        self.awaits_file() && !journal.has_file() && !journal.beginning()
    }

    /// Whether there is nothing left to wait for, with so many copies at replicas.
    pub fn is_over(&self, journal: &dyn Journal, copies: impl FnOnce() -> u64) -> bool {
        let local = !self.awaits_file() || self.is_synced(journal);
        let enough = || self.replicas == 0 || copies() >= self.replicas;
        (local && enough()) || self.is_in_vain(journal)
    }

    /// Answers that the writes have no copy, wherever.
    pub fn reply_without_copies(&self, reply: &mut Reply<'_>) {
        if self.local.is_some() {
            reply.array(2);
            reply.integer(0);
        }
        reply.integer(0);
    }

    /// Answers how many copies there are, of which so many are at replicas.
    pub fn reply(&self, journal: &dyn Journal, copies: u64, reply: &mut Reply<'_>) {
        if self.is_in_vain(journal) {
            return reply.error(NO_FILE.as_bytes());
        }
        if self.local.is_some() {
            reply.array(2);
            reply.integer(i64::from(self.is_synced(journal)));
        }
        reply.integer(copies as i64);
    }
}
