//! Which listener listens to which keys.
//!
//! A change finds the listeners of its key by the key itself. It finds the listeners of a prefix by
//! looking up the beginnings of the key, in the lengths that the prefixes have. So the number of
//! listeners to other keys does not matter.
//!
//! A listener that keeps up is told of a change when it happens. A listener that is behind is not: its
//! own worker reads on from the kept journal, as fast as the client takes it. A listener changes
//! between the two under the lock of this index, so that nothing is told twice or left out.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::change::Change;
use super::filter::{Filter, Keys};
use crate::session::client::Client;
use crate::wait::awaited::Wait;
use crate::wait::waiting::Waiter;

/// The offset of a listener that is not behind.
const LIVE: u64 = u64::MAX;

/// A client that listens to changes.
pub struct Listener {
    /// The client.
    pub client: Arc<Client>,
    /// What it listens to.
    pub filter: Filter,
    /// Waits for the first change alone.
    pub waiter: Option<Waiter>,
    /// Where it reads on, if it is behind.
    behind: AtomicU64,
    /// It knows all changes up to this offset already.
    knows: AtomicU64,
}

impl Listener {
    /// Where it reads on, if it is behind the listeners that are told at once.
    #[inline]
    pub fn behind(&self) -> Option<u64> {
        let offset = self.behind.load(Acquire);
        (offset != LIVE).then_some(offset)
    }

    /// Notes how far it has read.
    pub fn note_read(&self, offset: u64) {
        self.behind.store(offset, Release);
    }

    /// It does not keep up from here on.
    fn fall_behind(&self, offset: u64) {
        self.behind.store(offset.max(self.knows.load(Relaxed)), Release);
    }

    /// Whether it must be told of a record that ends at this offset.
    pub(super) fn wants(&self, end: u64) -> bool {
        self.behind().is_none() && end > self.knows.load(Relaxed)
    }

    /// Whether it keeps up, and should be told of changes from before an offset.
    pub(super) fn misses(&self, oldest: u64) -> bool {
        self.behind().is_none() && self.knows.load(Relaxed) < oldest
    }

    /// Whether it was told everything that concerns it up to this offset, and has read no further.
    pub(super) fn is_at(&self, told: u64) -> bool {
        self.behind().is_none() && self.knows.load(Relaxed) <= told
    }
}

type Listening = Vec<Arc<Listener>>;

#[derive(Default)]
pub(super) struct Index {
    ones: HashMap<Box<[u8]>, Listening>,
    /// By length. The prefix of all keys is the empty one.
    prefixes: BTreeMap<usize, HashMap<Box<[u8]>, Listening>>,
    /// Up to this offset it is settled which listeners are told. A listener that is added now, or has
    /// just caught up, is told of nothing up to here.
    pub(super) told: u64,
}

impl Index {
    fn of(&mut self, keys: &Keys) -> &mut Listening {
        match keys {
            Keys::One(key) => self.ones.entry_ref(&**key).or_default(),
            Keys::Prefix(prefix) => {
                let same_length = self.prefixes.entry(prefix.len()).or_default();
                same_length.entry_ref(&**prefix).or_default()
            }
        }
    }

    /// Removes the one with this filter of which `is_it` is true. Returns whether it was there.
    fn remove(
        &mut self,
        Filter { keys, .. }: &Filter,
        is_it: impl Fn(&Arc<Listener>) -> bool,
    ) -> bool {
        let own = self.of(keys);
        let place = own.iter().position(is_it);
        place.into_iter().for_each(|place| drop(own.swap_remove(place)));
        if own.is_empty() {
            match keys {
                Keys::One(key) => drop(self.ones.remove(key)),
                Keys::Prefix(prefix) => {
                    let length = prefix.len();
                    let same_length = self.prefixes.entry(length).or_default();
                    same_length.remove(prefix);
                    if same_length.is_empty() {
                        self.prefixes.remove(&length);
                    }
                }
            }
        }
        place.is_some()
    }

    /// The listeners that a change concerns.
    pub(super) fn admitting(&self, change: &Change<'_>, mut visit: impl FnMut(&Arc<Listener>)) {
        let mut visit_all = |all: &Listening| {
            all.iter().filter(|own| own.filter.admits(change)).for_each(&mut visit);
        };
        let Some(key) = change.key else {
            return self.all().for_each(|listener| {
                if listener.filter.admits(change) {
                    visit(listener);
                }
            });
        };
        self.ones.get(key).into_iter().for_each(&mut visit_all);
        for (&length, same_length) in self.prefixes.range(..=key.len()) {
            same_length.get(&key[..length]).into_iter().for_each(&mut visit_all);
        }
    }

    /// All listeners.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Listener>> {
        let prefixes = self.prefixes.values().flat_map(HashMap::values);
        self.ones.values().chain(prefixes).flatten()
    }
}

/// How many listen, and how they keep up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figures {
    /// Clients that follow.
    pub following: usize,
    /// Clients that wait for one change.
    pub waiting: usize,
    /// How often a client did not keep up, and had to read on from what is kept.
    pub fallen_behind: u64,
    /// How often the next change for a client was not kept any more.
    pub given_up: u64,
}

/// See the module's text.
#[derive(Default)]
pub struct Listeners {
    pub(super) index: Mutex<Index>,
    /// Clients that follow, and clients that wait for one change.
    following: AtomicUsize,
    waiting: AtomicUsize,
    /// How often a client did not keep up, and how often that ended its listening.
    fallen_behind: AtomicU64,
    given_up: AtomicU64,
    /// Every listener that is not behind was told of everything up to here.
    heard: AtomicU64,
    /// Large changes in the form in which they are sent to clients that read on. Several clients may
    /// come to the same change before all have sent it.
    written: Mutex<HashMap<Written, Weak<Vec<u8>>>>,
}

/// Changes of the record that ends at this offset.
pub(super) type Written = (u64, Place);

/// Which of a record's changes.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The one with this number; whether it has a position.
    One(usize, bool),
    /// All that a filter admits.
    All(Filter),
}

impl Listeners {
    /// A large change in the form for followers. It is written once for all followers that have not
    /// sent it yet.
    pub(super) fn written(&self, place: Written, write: impl FnOnce(&mut Vec<u8>)) -> Arc<Vec<u8>> {
        let mut all = self.written.lock();
        if let Some(written) = all.get(&place).and_then(Weak::upgrade) {
            return written;
        }
        // Written under the lock, so that another listener that needs the same change meanwhile shares
        // it.
        let mut text = Vec::new();
        write(&mut text);
        let text = Arc::new(text);
        all.retain(|_, written| written.strong_count() > 0);
        all.insert(place, Arc::downgrade(&text));
        text
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        let figures = self.figures();
        figures.following + figures.waiting
    }

    /// Whether there are no listeners.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The figures for operators.
    pub fn figures(&self) -> Figures {
        Figures {
            following: self.following.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
            fallen_behind: self.fallen_behind.load(Relaxed),
            given_up: self.given_up.load(Relaxed),
        }
    }

    fn count_of(&self, listener: &Listener) -> &AtomicUsize {
        if listener.waiter.is_some() { &self.waiting } else { &self.following }
    }

    /// Adds a listener that follows from an offset. It is behind at first: its worker reads on from
    /// there.
    pub fn add(&self, client: Arc<Client>, filter: Filter, from: u64) -> Arc<Listener> {
        let listener = Arc::new(Listener {
            client,
            filter,
            waiter: None,
            behind: AtomicU64::new(from),
            knows: AtomicU64::new(from),
        });
        self.insert(&mut self.index.lock(), &listener);
        listener
    }

    /// Adds a listener that waits for the first change after an offset, up to which it has looked
    /// itself. False when others were told of later changes already: then it has to look again.
    pub(crate) fn add_waiter(&self, waiter: Waiter, filter: Filter, from: u64) -> bool {
        let mut index = self.index.lock();
        if index.told > from {
            return false;
        }
        let listener = Arc::new(Listener {
            client: Arc::clone(&waiter.client),
            filter,
            waiter: Some(waiter),
            behind: AtomicU64::new(LIVE),
            knows: AtomicU64::new(from),
        });
        self.insert(&mut index, &listener);
        true
    }

    fn insert(&self, index: &mut Index, listener: &Arc<Listener>) {
        index.of(&listener.filter.keys).push(Arc::clone(listener));
        self.count_of(listener).fetch_add(1, Relaxed);
    }

    /// Removes a listener.
    pub fn remove(&self, listener: &Arc<Listener>) {
        if self.index.lock().remove(&listener.filter, |other| Arc::ptr_eq(other, listener)) {
            self.count_of(listener).fetch_sub(1, Relaxed);
        }
    }

    /// Removes the listener of a client that waited with this filter.
    pub(crate) fn remove_waiter(&self, filter: &Filter, wait: &Arc<Wait>) {
        let is_it = |own: &Arc<Listener>| own.waiter.as_ref().is_some_and(|own| own.is_in(wait));
        if self.index.lock().remove(filter, is_it) {
            self.waiting.fetch_sub(1, Relaxed);
        }
    }

    /// Tells a listener that has read everything up to an offset what happens next. False when others
    /// were told of later changes already.
    pub(super) fn catch_up(&self, listener: &Listener, read: u64) -> bool {
        let index = self.index.lock();
        if index.told > read {
            return false;
        }
        listener.knows.store(read, Relaxed);
        listener.behind.store(LIVE, Release);
        true
    }

    /// Notes that a listener does not keep up, from an offset on.
    pub(super) fn leave_behind(&self, listener: &Listener, offset: u64) {
        listener.fall_behind(offset);
        self.fallen_behind.fetch_add(1, Relaxed);
    }

    /// Notes that the next change for a listener is not kept any more.
    pub(super) fn note_given_up(&self) {
        self.given_up.fetch_add(1, Relaxed);
    }

    /// The offset up to which any client may know what happened, because some were told.
    pub(crate) fn told(&self) -> u64 {
        self.index.lock().told
    }

    /// The offset up to which all listeners that keep up were told.
    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Acquire)
    }

    /// Says so.
    pub(super) fn note_heard(&self, offset: u64) {
        self.heard.store(offset, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::change::Operation;
    use crate::testing::TestServer;

    fn change(database: usize, key: &'static str) -> Change<'static> {
        let (database, key) = (Some(database), Some(key.as_bytes()));
        Change { database, key, operation: Operation::Delete, words: None }
    }

    fn filter(database: Option<usize>, keys: Keys) -> Filter {
        Filter { database, keys }
    }

    #[test]
    fn a_change_finds_those_who_listen_to_its_key() {
        let server = TestServer::new();
        let listeners = Listeners::default();
        let prefix = |text: &str| Keys::Prefix(text.as_bytes().into());
        let wanted = [
            filter(None, prefix("")),
            filter(None, prefix("ab")),
            filter(Some(1), prefix("ab")),
            filter(None, prefix("b")),
            filter(None, Keys::One(b"abc"[..].into())),
            filter(Some(0), Keys::One(b"ab"[..].into())),
        ];
        let client = &server.session.client;
        let all: Vec<_> =
            wanted.iter().map(|own| listeners.add(Arc::clone(client), own.clone(), 0)).collect();
        let found = |change: &Change<'_>| {
            let mut places = Vec::new();
            listeners.index.lock().admitting(change, |found| {
                places.extend(all.iter().position(|own| Arc::ptr_eq(own, found)));
            });
            places.sort_unstable();
            places
        };
        assert_eq!(found(&change(0, "abc")), [0, 1, 4]);
        assert_eq!(found(&change(1, "abc")), [0, 1, 2, 4]);
        assert_eq!(found(&change(0, "ab")), [0, 1, 5]);
        assert_eq!(found(&change(0, "a")), [0]);
        assert_eq!(found(&change(1, "ab")), [0, 1, 2], "the key of another database is another");
        let flush = Change { key: None, operation: Operation::Flush, ..change(1, "") };
        assert_eq!(found(&flush), [0, 1, 2, 3, 4]);
        let other = Change { operation: Operation::Update, ..flush };
        assert_eq!(found(&other), [0], "what is about no key is for those who hear everything");
        all.iter().for_each(|own| listeners.remove(own));
        assert!(listeners.is_empty());
        let index = listeners.index.lock();
        assert!(index.ones.is_empty() && index.prefixes.is_empty());
    }

    #[test]
    fn who_has_read_less_than_others_were_told_reads_on() {
        let server = TestServer::new();
        let listeners = Listeners::default();
        let client = Arc::clone(&server.session.client);
        let listener = listeners.add(client, filter(None, Keys::Prefix(Box::default())), 5);
        assert_eq!((listener.behind(), listener.wants(9)), (Some(5), false));
        listeners.index.lock().told = 7;
        assert!(!listeners.catch_up(&listener, 6));
        assert!(listeners.catch_up(&listener, 8));
        assert_eq!(listener.behind(), None);
        assert_eq!((listener.wants(8), listener.wants(9)), (false, true));
        listener.fall_behind(7);
        assert_eq!(listener.behind(), Some(8), "it is not told twice");
    }
}
