//! What a command did, besides its reply.
//!
//! Effects gather while commands run and are settled before the slots are unlocked: waiters are
//! served, the journal receives the effects in their order, and so does the queue of publications
//! for other clients; watchers have been marked. Work that may take long (freeing, publishing)
//! follows after the slots are unlocked.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use base::clock::Ticks;
use hashbrown::HashSet;
use resp::args::Arguments;
use resp::output::Output;
use store::{Removed, garbage};

use crate::db::notify::{Event, Notification, OwnPublications, Publication};
use crate::journal::EffectBatch;
use crate::observe::command_log::NotedFrom;
use crate::script::cache::Lookups;
use crate::session::attachment::Waiter;
use crate::session::watcher::Watch;
use config::Config;

/// A key whose value may be what a waiter waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReadyKey {
    pub(crate) database: usize,
    pub(crate) key: Arc<[u8]>,
}

/// Up to this many keys are searched one by one for a key that is ready already.
const FEW_READY: usize = 16;

/// Such keys in the order in which they became ready, each once.
#[derive(Default)]
pub(crate) struct ReadyKeys {
    queue: VecDeque<ReadyKey>,
    /// The same keys, while there are many.
    known: HashSet<ReadyKey>,
}

impl ReadyKeys {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The first.
    pub(crate) fn first(&self) -> Option<&ReadyKey> {
        self.queue.front()
    }

    fn add(&mut self, ready: ReadyKey) {
        let is_new = if self.queue.len() < FEW_READY {
            !self.queue.contains(&ready)
        } else {
            if self.known.is_empty() {
                self.known.extend(self.queue.iter().cloned());
            }
            self.known.insert(ready.clone())
        };
        if is_new {
            self.queue.push_back(ready);
        }
    }

    /// Takes the first.
    pub(crate) fn take(&mut self) -> Option<ReadyKey> {
        let first = self.queue.pop_front()?;
        if self.queue.len() >= FEW_READY {
            self.known.remove(&first);
        } else if self.known.capacity() > 0 {
            self.known = HashSet::new();
            self.queue.shrink_to(FEW_READY);
        }
        Some(first)
    }
}

/// A key that has expired, or that has a hash with fields that may have expired.
pub(crate) struct Expired {
    pub(crate) database: usize,
    pub(crate) key: Box<[u8]>,
    pub(crate) field: Option<Box<[u8]>>,
}

impl Expired {
    /// Whether both are fields of one hash.
    pub(crate) fn is_of_same_hash(&self, other: &Expired) -> bool {
        let are_fields = self.field.is_some() && other.field.is_some();
        are_fields && self.database == other.database && self.key == other.key
    }
}

/// Bytes of another server's stream: a command, or a transaction from MULTI to EXEC. Where others
/// may write besides, the journal gets them before the slots of their last command are unlocked, so
/// that it has the writes to a key in the order in which they were made.
#[derive(Debug)]
pub struct StreamUnit {
    /// As they came.
    pub bytes: Vec<u8>,
    /// The database that is selected behind them, if one is known to be.
    pub selected_after: Option<usize>,
    /// Some of their times count from now on: see [`crate::journal::Journal::note_time`].
    pub counts_down: bool,
    /// This server does not know one of the commands: see
    /// [`crate::journal::Journal::append_unknown`].
    pub is_unknown: bool,
}

/// The effects of a command or transaction so far.
#[derive(Default)]
pub struct Effects {
    /// Nobody hears of events of keys: they are those of another server.
    pub(crate) silent: bool,
    /// Changes so far, as Redis counts them for `save` points.
    pub dirty: u64,
    /// Whether the journal listens: see [`crate::journal::State::listening`].
    pub(crate) journaling: bool,
    /// The journal has failed: see [`crate::persistence::durability`]. Writes are refused, and
    /// nothing is deleted that no command asked to delete. Such deletions could not be made
    /// durable, and neither could what is read after them.
    pub journal_failed: bool,
    /// Replies wait for the journal: see [`crate::persistence::durability`].
    pub(crate) defers_replies: bool,
    /// Something was appended without an offset in a slot, since replies waited for nothing.
    pub(crate) unrecorded: bool,
    /// Something was appended that the journal was not yet told about.
    pub(crate) unannounced: bool,
    /// What goes into the journal.
    pub journal: EffectBatch,
    /// Some of that changes the tree of [`crate::nodes`].
    pub(crate) changes_tree: bool,
    /// The journal's offset after the bytes of another server's stream that are being applied; 0
    /// for a thread that applies none. The journal gets those bytes, and no effects.
    pub(crate) applied_to: u64,
    /// What the journal gets of that stream when the running command ends.
    pub(crate) unit: Option<StreamUnit>,
    /// A handler has set what goes into the journal for the running command.
    pub(crate) explicit: bool,
    pub(crate) ready: ReadyKeys,
    /// Clients that were served. They get their replies after the slots are unlocked, and so after
    /// the journal got the effects on which the replies depend.
    pub(crate) woken: Vec<Woken>,
    /// In a cell, since a read that misses records an event too.
    pub(crate) publications: RefCell<OwnPublications>,
    /// Publications were added to the engine's queue, and have to be delivered when the slots are
    /// unlocked.
    pub(crate) undelivered: bool,
    /// CONFIG SET or DEBUG changed a setting that a turn looks at only once.
    pub config_changed: bool,
    /// The thresholds from which a command is logged.
    pub(crate) noted_from: NotedFrom,
    /// When the command before ended: see [`crate::turn::Turn::start_timing`].
    pub(crate) last_end: Ticks,
    /// Freed when the slots are unlocked, or before the next command of a script or transaction.
    pub(crate) garbage: Vec<Removed>,
    /// Keys that reads found expired. In a cell, because reads fill it.
    pub(crate) expired: RefCell<Vec<Expired>>,
    /// Keys that a walk found expired in slots that the command does not hold.
    pub(crate) expired_elsewhere: RefCell<Vec<Expired>>,
    /// Watches that were given up; they are removed from their slots when all slots are unlocked.
    pub(crate) forgotten_watches: Vec<Watch>,
    /// More than `maxmemory` was in use when the running script began, or no key could be evicted.
    pub(crate) short_of_memory: bool,
    /// Where the replies of commands called by a script go.
    pub(crate) script_output: Output,
    /// Scripts that this thread has looked up.
    pub scripts: Lookups,
}

/// A client that was served.
pub(crate) struct Woken {
    pub(crate) waiter: Waiter,
    pub(crate) reply: Output,
    /// The journal's offset on which the reply depends. Absent where it depends on what the running
    /// command does.
    pub(crate) write_offset: Option<u64>,
}

impl Woken {
    /// One whose reply tells of what the running command does.
    pub(crate) fn by_command(waiter: Waiter, reply: Output) -> Woken {
        Woken { waiter, reply, write_offset: None }
    }
}

impl Effects {
    /// Whether there is anything to do when the slots are unlocked.
    #[inline]
    pub(crate) fn leave_work(&mut self) -> bool {
        !self.woken.is_empty()
            || !self.garbage.is_empty()
            || !self.forgotten_watches.is_empty()
            || self.undelivered
            || !self.expired_elsewhere.get_mut().is_empty()
            || self.config_changed
            || garbage::is_there()
    }

    /// Records an event of a key, if the settings ask for its class.
    #[inline]
    pub fn note(&self, config: &Config, database: usize, key: &[u8], event: Event) {
        if config.notify_keyspace_events.contains(event.0) && !self.silent {
            let asked = config.notify_keyspace_events;
            let notification = Notification { database, event, key: key.into(), asked };
            self.publications.borrow_mut().add(Publication::Event(notification));
        }
    }

    /// Remembers a key for which a client waits.
    pub fn add_ready(&mut self, database: usize, key: &[u8]) {
        self.ready.add(ReadyKey { database, key: key.into() });
    }

    pub(crate) fn journal_command<'c>(
        &mut self,
        database: usize,
        argv: impl Iterator<Item = &'c [u8]> + Clone,
    ) {
        if self.journaling {
            self.journal.push(database, argv);
        }
    }

    /// The journal gets the command as it came.
    #[inline]
    pub(crate) fn journal_request(&mut self, database: usize, argv: Arguments<'_>) {
        self.journal.push_request(database, argv);
    }
}
