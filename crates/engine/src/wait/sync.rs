//! Clients that wait until their writes are durable: WAITAOF.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use resp::reply::Reply;

use crate::persistence::journal::Journal;

/// The answer of WAITAOF when a client waits for a file that does not exist.
pub(crate) const NO_FILE: &str =
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

/// A client that waits until its writes are durable: WAITAOF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncWait {
    /// The journal's offset after its last write.
    pub offset: u64,
    /// Copies on this machine that it waits for, 0 or 1.
    pub local: u64,
    /// Replicas that it waits for.
    pub replicas: u64,
    /// When it gives up, in milliseconds of the steady clock.
    pub deadline: Option<u64>,
}

impl SyncWait {
    /// Whether the writes are durable here.
    fn is_synced(&self, journal: &dyn Journal) -> bool {
        journal.has_file() && !journal.beginning() && journal.synced() >= self.offset
    }

    /// Whether it waits for a file that is missing, or no longer there.
    pub(crate) fn is_in_vain(&self, journal: &dyn Journal) -> bool {
        self.local > 0 && !journal.has_file() && !journal.beginning()
    }

    /// Whether there is nothing left to wait for at this millisecond of the steady clock.
    pub fn is_over(&self, journal: &dyn Journal, now: u64) -> bool {
        let local = self.local == 0 || self.is_synced(journal);
        let enough = local && self.replicas == 0;
        enough || self.is_in_vain(journal) || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Answers how many copies there are.
    pub fn reply(&self, journal: &dyn Journal, reply: &mut Reply<'_>) {
        if self.is_in_vain(journal) {
            return reply.error(NO_FILE.as_bytes());
        }
        reply.array(2);
        reply.integer(i64::from(self.is_synced(journal)));
        // There are no replicas.
        reply.integer(0);
    }
}

/// How CLIENT UNBLOCK ends the waiting of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unblocking {
    /// It is answered as if its time were up.
    Timeout,
    /// It is answered an error.
    Error,
}

impl Unblocking {
    /// The client's error with [`Unblocking::Error`].
    pub const ERROR: &'static [u8] = b"UNBLOCKED client unblocked via CLIENT UNBLOCK";
}

/// Whether a client waits for a sync, and whether CLIENT UNBLOCK has ended that. The connection's own
/// worker begins and ends the waiting; other threads only change how it ends, once.
#[derive(Default)]
pub struct SyncWaitState(AtomicU8);

impl SyncWaitState {
    const IDLE: u8 = 0;
    const WAITING: u8 = 1;
    const TIMEOUT: u8 = 2;
    const ERROR: u8 = 3;

    /// Ends the waiting. Returns false if the client does not wait for a sync, or another thread was
    /// quicker. Its worker has to be told.
    pub(crate) fn unblock(&self, how: Unblocking) -> bool {
        let ended = match how {
            Unblocking::Timeout => SyncWaitState::TIMEOUT,
            Unblocking::Error => SyncWaitState::ERROR,
        };
        self.0.compare_exchange(SyncWaitState::WAITING, ended, Relaxed, Relaxed).is_ok()
    }

    /// How CLIENT UNBLOCK has ended the waiting, if it has.
    pub fn unblocked(&self) -> Option<Unblocking> {
        SyncWaitState::meaning(self.0.load(Relaxed))
    }

    /// The waiting begins.
    pub(crate) fn begin(&self) {
        self.0.store(SyncWaitState::WAITING, Relaxed);
    }

    /// The waiting ends. Returns how CLIENT UNBLOCK has ended it before, if it has.
    pub(crate) fn end(&self) -> Option<Unblocking> {
        SyncWaitState::meaning(self.0.swap(SyncWaitState::IDLE, Relaxed))
    }

    fn meaning(state: u8) -> Option<Unblocking> {
        match state {
            SyncWaitState::TIMEOUT => Some(Unblocking::Timeout),
            SyncWaitState::ERROR => Some(Unblocking::Error),
            _ => None,
        }
    }
}
