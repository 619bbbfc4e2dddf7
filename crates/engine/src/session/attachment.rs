//! What clients leave at a slot: waiters (BLPOP and the like) and watchers (WATCH).
//!
//! The slot's lock protects both, so that finding a key empty and beginning to wait for it is one
//! step. A compare-and-swap claims a waiter, so that only one of these ever happens to it: it is
//! served, times out, is unblocked, or goes away.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{Equivalent, HashMap};
use resp::output::Output;

use crate::session::awaited::Wait;
use crate::session::client::{Client, Served};
use crate::session::watcher::{Change, WatchFlag, Watcher};

/// A client that waits.
#[derive(Clone)]
pub struct Waiter {
    /// The client that gets the reply.
    pub client: Arc<Client>,
    /// Its wait, which the client knows too.
    pub wait: Arc<Wait>,
}

impl Waiter {
    /// The client begins to wait.
    pub fn new(client: &Arc<Client>, wait: Wait) -> Waiter {
        Waiter { client: Arc::clone(client), wait: Arc::new(wait) }
    }

    /// Leaves the reply for the client's worker, which has to be woken. The caller has claimed the
    /// wait. `write_offset` is the journal's offset after what was written for the client.
    pub(crate) fn leave(&self, reply: Output, write_offset: u64) {
        let served = Served { wait: Arc::clone(&self.wait), reply, write_offset };
        self.client.inbox.lock().served = Some(Box::new(served));
    }

    /// Whether this is the wait of the client.
    pub(crate) fn is_in(&self, wait: &Arc<Wait>) -> bool {
        Arc::ptr_eq(&self.wait, wait)
    }
}

type PerKey<T> = HashMap<(usize, Box<[u8]>), T>;

/// A key of a [`PerKey`], borrowed: to look one up without making it.
#[derive(Hash)]
struct KeyRef<'k>(usize, &'k [u8]);

impl Equivalent<(usize, Box<[u8]>)> for KeyRef<'_> {
    fn equivalent(&self, (database, key): &(usize, Box<[u8]>)) -> bool {
        self.0 == *database && *self.1 == **key
    }
}

/// What lies at a slot. Boxed, and absent while no client waits or watches there.
#[derive(Default)]
pub struct Attachment {
    waiters: PerKey<VecDeque<Waiter>>,
    /// Keys that also may change when the waiters are served, each with the number of those
    /// waiters.
    destinations: HashMap<Box<[u8]>, usize>,
    /// How many of the waiters wait for streams.
    stream_waiters: usize,
    watchers: PerKey<Vec<Watcher>>,
}

impl Attachment {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty() && self.watchers.is_empty()
    }

    pub(crate) fn has_waiters(&self, database: usize, key: &[u8]) -> bool {
        !self.waiters.is_empty() && self.waiters.contains_key(&KeyRef(database, key))
    }

    /// Adds a waiter after all others. A client that names the key twice waits there once.
    pub(crate) fn add_waiter(&mut self, key: &[u8], waiter: &Waiter) {
        let wait = &waiter.wait;
        let queue = self.waiters.entry((wait.database, key.into())).or_default();
        if !queue.back().is_some_and(|last| last.is_in(wait)) {
            queue.push_back(waiter.clone());
            self.stream_waiters += usize::from(wait.awaits_stream());
            if let Some(destination) = &wait.destination {
                *self.destinations.entry(destination.clone()).or_default() += 1;
            }
        }
    }

    pub(crate) fn remove_waiter(&mut self, key: &[u8], wait: &Arc<Wait>) {
        let id = KeyRef(wait.database, key);
        let Some(queue) = self.waiters.get_mut(&id) else { return };
        // The waiter that is served is nearly always the first.
        if let Some(at) = queue.iter().position(|other| other.is_in(wait)) {
            queue.remove(at);
            self.stream_waiters -= usize::from(wait.awaits_stream());
            if let Some(destination) = &wait.destination
                && let Some(count) = self.destinations.get_mut(destination)
            {
                *count -= 1;
                if *count == 0 {
                    self.destinations.remove(destination);
                }
            }
        }
        if self.waiters.get(&id).is_some_and(VecDeque::is_empty) {
            self.waiters.remove(&id);
        }
    }

    /// Whether a client waits for a stream in this slot: a client that reads in a group is told
    /// when the group goes.
    pub(crate) fn has_stream_waiters(&self) -> bool {
        self.stream_waiters > 0
    }

    /// The waiter of a key that has this many others before it.
    pub(crate) fn waiter(&self, database: usize, key: &[u8], place: usize) -> Option<Waiter> {
        self.waiters.get(&KeyRef(database, key))?.get(place).cloned()
    }

    /// Keys that serving the waiters of this slot may change too.
    pub(crate) fn all_destinations(&self) -> impl Iterator<Item = &[u8]> {
        self.destinations.keys().map(|key| &**key)
    }

    /// Adds a watcher. Returns whether it is the first of its key.
    pub(crate) fn add_watcher(&mut self, database: usize, key: &[u8], watcher: Watcher) -> bool {
        let watchers = self.watchers.entry((database, key.into())).or_default();
        watchers.push(watcher);
        watchers.len() == 1
    }

    /// Removes a watcher. Returns whether it was the last of its key.
    pub(crate) fn remove_watcher(&mut self, database: usize, key: &[u8], flag: &WatchFlag) -> bool {
        let id = KeyRef(database, key);
        let Some(watchers) = self.watchers.get_mut(&id) else { return false };
        watchers.retain(|other| !Arc::ptr_eq(&other.flag, flag));
        let was_last = watchers.is_empty();
        if was_last {
            self.watchers.remove(&id);
        }
        was_last
    }

    /// Whether any client watches a key of this slot.
    pub(crate) fn has_watchers(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// The watchers of a key.
    pub(crate) fn watchers(&self, database: usize, key: &[u8]) -> &[Watcher] {
        self.watchers.get(&KeyRef(database, key)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Tells the watchers of a key what happened to it.
    pub fn mark_watchers(&mut self, database: usize, key: &[u8], change: Change) {
        let watchers = self.watchers.get_mut(&KeyRef(database, key));
        watchers.into_iter().flatten().for_each(|watcher| watcher.note(change));
    }

    /// The watched keys with their databases and watchers.
    pub(crate) fn watched(&mut self) -> impl Iterator<Item = (usize, &[u8], &mut [Watcher])> {
        let all = self.watchers.iter_mut();
        all.map(|((database, key), watchers)| (*database, &**key, watchers.as_mut_slice()))
    }

    /// The waited-for keys with their databases.
    pub fn waited(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.waiters.keys().map(|(database, key)| (*database, &**key))
    }
}
