//! The journal: the one ordered stream of writes, as effects.
//!
//! An effect is a command that replays to the same state: SPOP becomes SREM, an expiry a DEL. The
//! effects of one command, transaction or program are gathered in a [`Batch`], in the bytes of the
//! stream, and appended in one piece while the slots that they concern are still locked.

use super::backlog::Backlog;

pub use super::batch::Batch;

/// The stream of writes as the engine sees it. It is called while slots are locked: an
/// implementation takes the bytes into memory and returns; it never waits for a disk or a socket.
pub trait Journal: Send + Sync {
    /// Whether the stream goes to a file.
    fn has_file(&self) -> bool;

    /// Whether it is turned on, but new writes would not survive yet, because the earlier data is still
    /// being written to a file.
    fn beginning(&self) -> bool {
        false
    }

    /// Appends a batch contiguously, as [`Batch::write_to`] writes it, and returns the offset in bytes
    /// after it, which is not 0.
    fn append(&self, batch: &Batch) -> u64;

    /// How things are, for a turn.
    fn state(&self) -> State {
        State { listening: self.has_file(), ..State::default() }
    }

    /// Tells that something was appended. Called once for many appends, without locks, before the
    /// replies leave. Returns what is covered then.
    fn nudge(&self) -> u64 {
        self.covered()
    }

    /// The offset after everything that was appended.
    fn end(&self) -> u64 {
        0
    }

    /// A reply that depends on effects up to this offset may leave.
    fn covered(&self) -> u64 {
        u64::MAX
    }

    /// Asks that the host is told as soon as more is covered. The caller looks once more afterwards.
    fn tell_when_covered(&self) {}

    /// The offset up to which everything survives a stop of the machine.
    fn synced(&self) -> u64 {
        0
    }

    /// Asks that everything up to this offset becomes durable soon, under every policy.
    fn request_sync(&self, _offset: u64) {}

    /// Why nothing is kept any more, in words, if that is so.
    fn failure(&self) -> Option<String> {
        None
    }

    /// The part of the stream that is kept for followers, if there can be any.
    fn changes(&self) -> Option<&Backlog> {
        None
    }

    /// Begins to keep appended effects for followers, in a history of this name unless an earlier one
    /// goes on. Must be called with all gates closed.
    fn keep_changes(&self, _history: String) {}

    /// Ends that, because no client has followed for long.
    fn let_changes_go(&self) {}

    /// The offset up to which followers may be told: replies that tell of the same may leave too.
    fn shown(&self) -> u64 {
        u64::MAX
    }
}

/// How a journal is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct State {
    /// A reader listens to the stream: a file or a follower. Without one, effects are not even put
    /// together.
    pub listening: bool,
    /// Replies wait until the effects that they depend on are durable (`appendfsync always`).
    pub defers_replies: bool,
    /// Nothing is kept any more: writes must be refused.
    pub failed: bool,
    /// The disk does not keep up: writes must wait, before they lock anything.
    pub pressed: bool,
}
