//! The journal: the one ordered stream of writes, as effects.
//!
//! An effect is a command that replays to the same state: SPOP becomes SREM, an expiry a DEL. The
//! effects of one command, transaction or exclusive command are gathered in a [`EffectBatch`], in
//! the bytes of the stream, and appended in one piece while the slots that they concern are still
//! locked.
//!
//! | file | what it answers |
//! |---|---|
//! | [`batch`] | what are the effects of one command, in the bytes of the stream? |
//! | [`tail`] | how do effects become bytes of the stream, at which offsets? |
//! | [`block`] | where are these bytes, for all who read them? |
//! | [`records`] | which effects are in these bytes? |
//! | [`backlog`] | which part of the stream is kept for followers? |
//! | [`change`], [`filter`] | what is a follower told about a change, and to which does it listen? |
//! | `offsets` | up to where was each slot written? |

pub mod backlog;
pub mod batch;
pub mod block;
pub mod change;
pub mod filter;
pub mod offsets;
pub mod records;
pub mod tail;

use crate::journal::backlog::{Backlog, Position};

pub use crate::journal::batch::EffectBatch;

/// The stream of writes as the engine sees it. It is called while slots are locked: an
/// implementation takes the bytes into memory and returns; it never waits for a disk or a socket.
pub trait Journal: Send + Sync {
    /// Whether the stream goes to a file.
    fn has_file(&self) -> bool;

    /// Whether it is turned on, but new writes would not survive yet, because the earlier data is
    /// still being written to a file.
    fn beginning(&self) -> bool {
        false
    }

    /// Appends a batch contiguously, as [`EffectBatch::write_to`] writes it, and returns the offset
    /// in bytes after it, which is not 0. Every byte of the stream counts, SELECT, MULTI and EXEC
    /// too, and whether there is a file makes no difference.
    fn append(&self, batch: &EffectBatch) -> u64;

    /// Writes a batch into the file alone, if there is one: the stream is another server's, and has
    /// no room for it. Returns the end of the stream, which says nothing of the batch: nobody can
    /// wait for that.
    fn append_beside(&self, _batch: &EffectBatch) -> u64 {
        self.end()
    }

    /// Appends bytes of another server's stream as they are: whole effects, from MULTI to EXEC,
    /// after which this database is selected, if one is known to be. Of those that stand by
    /// themselves only the first may be a SELECT, so that a file can announce it. Returns the
    /// offset after them.
    fn append_raw(&self, _bytes: &[u8], _selected_after: Option<usize>) -> u64 {
        0
    }

    /// The same for one command or transaction that this server has not applied, because it does
    /// not know a command of it. The file says so, since a load would fail at that command.
    fn append_unknown(&self, bytes: &[u8], selected_after: Option<usize>) -> u64 {
        self.append_raw(bytes, selected_after)
    }

    /// Lets the file say what time it is before the next effects: they have times that count from
    /// then on.
    fn note_time(&self) {}

    /// Appends whole commands that change no data, such as PUBLISH: replicas get them, and the file
    /// does not. Nobody gets them while nothing is kept for followers.
    fn append_messages(&self, _bytes: &[u8]) {}

    /// Takes over a history of another server, which the journal is at this position of, or gives
    /// the present one another name. If the present history is at this offset it goes on: its
    /// positions stay valid up to here. Otherwise nothing of it is kept, and `selected` is the
    /// database that the next effects apply to, unless they begin with SELECT. From here on, until
    /// [`Journal::let_changes_go`], effects are kept and counted.
    ///
    /// Must be called with the world stopped. The journal's own offsets go on:
    /// [`Backlog::in_history`] says how the history counts them. Data that belongs to a history
    /// which does not go on is to be followed by a base: the file has it, and then these effects.
    fn adopt(&self, _position: Position, _selected: Option<usize>) {}

    /// The database that is selected at the end of the stream, if one is known to be.
    fn selected(&self) -> Option<usize> {
        None
    }

    /// How things are, for a turn.
    fn state(&self) -> State {
        State { listening: self.has_file(), ..State::default() }
    }

    /// Tells that something was appended. Called once for many appends, without locks, before the
    /// replies leave. Returns what is released then.
    fn notify(&self) -> u64 {
        self.released()
    }

    /// The offset after everything that was appended.
    fn end(&self) -> u64 {
        0
    }

    /// Replies that depend on effects up to this offset may leave.
    fn released(&self) -> u64 {
        u64::MAX
    }

    /// Asks that the host is notified as soon as more is released. The host must know already which
    /// worker to notify: it may be notified of something else before this returns, and then asks
    /// again. The caller looks once more afterwards.
    fn notify_when_released(&self) {}

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

    /// Begins to keep appended effects for followers, in a history of this name unless an earlier
    /// one goes on. Must be called with the world stopped.
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
