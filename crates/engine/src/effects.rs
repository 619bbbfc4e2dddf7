//! What a command did, besides its reply.
//!
//! Effects gather while commands run and are settled before the slots are unlocked: waiters are
//! served, the journal receives the effects in their order, watchers have been marked. What may
//! take long (freeing, publishing) follows when the slots are free again.

use std::cell::RefCell;
use std::sync::Arc;

use store::Removed;

use crate::client::Client;
use crate::config::Config;
use crate::notify::{Event, Notification};

/// The one ordered stream of writes. It is called while slots are locked: an implementation takes
/// the bytes into memory and returns; it never waits for a disk or a socket.
pub trait Journal: Send + Sync {
    /// Whether anybody reads the stream. When nobody does, effects are not even put together.
    fn listening(&self) -> bool;

    /// Appends the effects of one command, transaction or program, contiguously, and returns the
    /// offset behind them. `database` is the one that each command applies to.
    fn append(&self, effects: &[Effect]) -> u64;
}

/// One command of the journal: what happened, in terms that replay to the same state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The database.
    pub database: usize,
    /// The command and its arguments.
    pub argv: Vec<Vec<u8>>,
}

/// A key that may have become what a waiter waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadyKey {
    pub(crate) database: usize,
    pub(crate) key: Box<[u8]>,
}

/// The effects of a command or transaction so far.
#[derive(Default)]
pub struct Effects {
    /// Changes so far, as Redis counts them for `save` points.
    pub dirty: u64,
    /// Whether the journal listens: see [`Journal::listening`].
    pub(crate) journaling: bool,
    pub(crate) journal: Vec<Effect>,
    /// A handler said what goes into the journal for the command that runs now.
    pub(crate) explicit: bool,
    pub(crate) ready: Vec<ReadyKey>,
    /// Clients that were served, to be told when the slots are unlocked.
    pub(crate) woken: Vec<Arc<Client>>,
    /// In a cell, since a read that misses is an event too.
    pub(crate) notifications: RefCell<Vec<Notification>>,
    /// CONFIG SET or DEBUG changed what a turn looks at only once.
    pub(crate) settings_changed: bool,
    /// Freed when the slots are unlocked.
    pub(crate) garbage: Vec<Removed>,
}

impl Effects {
    /// Records an event of a key, if the settings ask for its class.
    #[inline]
    pub(crate) fn note(&self, config: &Config, database: usize, key: &[u8], event: Event) {
        if config.notify_keyspace_events.contains(event.0) {
            let notification = Notification { database, event, key: key.into() };
            self.notifications.borrow_mut().push(notification);
        }
    }

    /// Remembers a key that somebody waits for.
    pub(crate) fn add_ready(&mut self, database: usize, key: &[u8]) {
        let ready = ReadyKey { database, key: key.into() };
        if !self.ready.contains(&ready) {
            self.ready.push(ready);
        }
    }

    pub(crate) fn journal_command<'c>(
        &mut self,
        database: usize,
        argv: impl IntoIterator<Item = &'c [u8]>,
    ) {
        if self.journaling {
            let argv = argv.into_iter().map(<[u8]>::to_vec).collect();
            self.journal.push(Effect { database, argv });
        }
    }
}
