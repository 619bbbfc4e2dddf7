//! Which follower follows which keys.
//!
//! A change finds the followers of its key by the key itself. It finds the followers of a prefix by
//! looking up the beginnings of the key, in the lengths that the prefixes have. So the number of
//! followers of other keys does not matter.
//!
//! A follower that keeps up gets a change when it happens. For a follower that is behind, its own
//! worker reads on from the kept journal, as fast as the client takes it. A follower changes
//! between the two under the lock of this index, so that no change is delivered twice or left out.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock, Weak};

use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::command::error::CommandError;
use crate::journal::change::Change;
use crate::journal::filter::{Filter, Keys};
use crate::session::attachment::Waiter;
use crate::session::awaited::Wait;
use crate::session::client::Client;

/// The offset of a follower that is not behind.
const LIVE: u64 = u64::MAX;

/// A client that follows changes.
pub struct Follower {
    /// The client.
    pub client: Arc<Client>,
    /// What it follows.
    pub filter: Filter,
    /// Waits for the first change alone.
    pub waiter: Option<Waiter>,
    /// Where it reads on, if it is behind.
    behind: AtomicU64,
    /// It knows all changes up to this offset already.
    knows: AtomicU64,
    /// See [`Follower::refusal`].
    refusal: OnceLock<CommandError>,
}

impl Follower {
    /// Where it reads on, if it is behind the followers that are told at once.
    #[inline]
    pub fn behind(&self) -> Option<u64> {
        let offset = self.behind.load(Acquire);
        (offset != LIVE).then_some(offset)
    }

    /// The error with which it was sent away, because this node of a cluster does not serve its key
    /// any more. Nobody tells it of changes then.
    pub fn refusal(&self) -> Option<&CommandError> {
        self.refusal.get()
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
    pub(crate) fn wants(&self, end: u64) -> bool {
        self.behind().is_none() && end > self.knows.load(Relaxed)
    }

    /// Whether it keeps up, and should be told of changes from before an offset.
    pub(crate) fn misses(&self, oldest: u64) -> bool {
        self.behind().is_none() && self.knows.load(Relaxed) < oldest
    }

    /// Whether it was told everything that concerns it up to this offset, and has read no further.
    pub(crate) fn is_at(&self, delivered: u64) -> bool {
        self.behind().is_none() && self.knows.load(Relaxed) <= delivered
    }
}

type FollowersOfKey = Vec<Arc<Follower>>;

#[derive(Default)]
pub(crate) struct Index {
    ones: HashMap<Box<[u8]>, FollowersOfKey>,
    /// By length. The prefix of all keys is the empty one.
    prefixes: BTreeMap<usize, HashMap<Box<[u8]>, FollowersOfKey>>,
    /// Up to this offset it is settled which followers are told. A follower that is added now, or
    /// has just caught up, is told of nothing up to here.
    pub delivered: u64,
}

impl Index {
    fn of(&mut self, keys: &Keys) -> &mut FollowersOfKey {
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
        is_it: impl Fn(&Arc<Follower>) -> bool,
    ) -> bool {
        let own = self.of(keys);
        let found = own.iter().position(is_it);
        found.into_iter().for_each(|found| drop(own.swap_remove(found)));
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
        found.is_some()
    }

    /// The followers that a change concerns.
    pub(crate) fn admitting(&self, change: &Change<'_>, mut visit: impl FnMut(&Arc<Follower>)) {
        let mut visit_all = |all: &FollowersOfKey| {
            all.iter().filter(|own| own.filter.admits(change)).for_each(&mut visit);
        };
        let Some(key) = change.key else {
            return self.all().for_each(|follower| {
                if follower.filter.admits(change) {
                    visit(follower);
                }
            });
        };
        self.ones.get(key).into_iter().for_each(&mut visit_all);
        for (&length, same_length) in self.prefixes.range(..=key.len()) {
            same_length.get(&key[..length]).into_iter().for_each(&mut visit_all);
        }
    }

    /// All followers.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Follower>> {
        let prefixes = self.prefixes.values().flat_map(HashMap::values);
        self.ones.values().chain(prefixes).flatten()
    }
}

/// How many follow, and how they keep up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metrics {
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
pub struct Followers {
    pub(crate) index: Mutex<Index>,
    /// Clients that follow, and clients that wait for one change.
    following: AtomicUsize,
    waiting: AtomicUsize,
    /// How often a client did not keep up, and how often that ended that.
    fallen_behind: AtomicU64,
    given_up: AtomicU64,
    /// Every follower that is not behind was told of everything up to here.
    complete_up_to: AtomicU64,
    /// Large changes in the form in which they are sent to clients that read on. Several clients
    /// may come to the same change before all have sent it.
    written: Mutex<HashMap<Written, Weak<Vec<u8>>>>,
}

/// Changes of the record that ends at this offset.
pub(crate) type Written = (u64, Selection);

/// Which of a record's changes.
#[derive(PartialEq, Eq, Hash)]
pub(crate) enum Selection {
    /// The one with this number; whether it has a position.
    One(usize, bool),
    /// All that a filter admits.
    All(Filter),
}

impl Followers {
    /// A large change in the form for followers. It is written once for all followers that have not
    /// sent it yet.
    pub(crate) fn written(
        &self,
        selected: Written,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Arc<Vec<u8>> {
        let mut all = self.written.lock();
        if let Some(written) = all.get(&selected).and_then(Weak::upgrade) {
            return written;
        }
        // Written under the lock, so that another follower that needs the same change meanwhile
        // shares it.
        let mut text = Vec::new();
        write(&mut text);
        let text = Arc::new(text);
        all.retain(|_, written| written.strong_count() > 0);
        all.insert(selected, Arc::downgrade(&text));
        text
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        let metrics = self.metrics();
        metrics.following + metrics.waiting
    }

    /// Whether there are no followers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The metrics for operators.
    pub fn metrics(&self) -> Metrics {
        Metrics {
            following: self.following.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
            fallen_behind: self.fallen_behind.load(Relaxed),
            given_up: self.given_up.load(Relaxed),
        }
    }

    /// Visits each of them.
    pub(crate) fn each(&self, visit: impl FnMut(&Arc<Follower>)) {
        self.index.lock().all().for_each(visit);
    }

    fn count_of(&self, follower: &Follower) -> &AtomicUsize {
        if follower.waiter.is_some() { &self.waiting } else { &self.following }
    }

    /// Adds a follower that follows from an offset. It is behind at first: its worker reads on from
    /// there.
    pub fn add(&self, client: Arc<Client>, filter: Filter, from: u64) -> Arc<Follower> {
        let follower = Arc::new(Follower {
            client,
            filter,
            waiter: None,
            behind: AtomicU64::new(from),
            knows: AtomicU64::new(from),
            refusal: OnceLock::new(),
        });
        self.insert(&mut self.index.lock(), &follower);
        follower
    }

    /// Adds a follower that waits for the first change after an offset, up to which it has looked
    /// itself. False when others were told of later changes already: then it has to look again.
    pub fn add_waiter(&self, waiter: Waiter, filter: Filter, from: u64) -> bool {
        let mut index = self.index.lock();
        if index.delivered > from {
            return false;
        }
        let follower = Arc::new(Follower {
            client: Arc::clone(&waiter.client),
            filter,
            waiter: Some(waiter),
            behind: AtomicU64::new(LIVE),
            knows: AtomicU64::new(from),
            refusal: OnceLock::new(),
        });
        self.insert(&mut index, &follower);
        true
    }

    fn insert(&self, index: &mut Index, follower: &Arc<Follower>) {
        index.of(&follower.filter.keys).push(Arc::clone(follower));
        self.count_of(follower).fetch_add(1, Relaxed);
    }

    /// Removes a follower.
    pub fn remove(&self, follower: &Arc<Follower>) {
        if self.index.lock().remove(&follower.filter, |other| Arc::ptr_eq(other, follower)) {
            self.count_of(follower).fetch_sub(1, Relaxed);
        }
    }

    /// Removes a follower that is told this error. False if it was sent away before.
    pub(crate) fn send_away(&self, follower: &Arc<Follower>, error: CommandError) -> bool {
        let is_first = follower.refusal.set(error).is_ok();
        if is_first {
            self.remove(follower);
        }
        is_first
    }

    /// Removes the follower of a client that waited with this filter.
    pub(crate) fn remove_waiter(&self, filter: &Filter, wait: &Arc<Wait>) {
        let is_it = |own: &Arc<Follower>| own.waiter.as_ref().is_some_and(|own| own.is_in(wait));
        if self.index.lock().remove(filter, is_it) {
            self.waiting.fetch_sub(1, Relaxed);
        }
    }

    /// Tells a follower that has read everything up to an offset what happens next. False when
    /// others were told of later changes already.
    pub(crate) fn catch_up(&self, follower: &Follower, read: u64) -> bool {
        let index = self.index.lock();
        if index.delivered > read {
            return false;
        }
        follower.knows.store(read, Relaxed);
        follower.behind.store(LIVE, Release);
        true
    }

    /// Notes that a follower does not keep up, from an offset on.
    pub(crate) fn leave_behind(&self, follower: &Follower, offset: u64) {
        follower.fall_behind(offset);
        self.fallen_behind.fetch_add(1, Relaxed);
    }

    /// Notes that the next change for a follower is not kept any more.
    pub(crate) fn note_given_up(&self) {
        self.given_up.fetch_add(1, Relaxed);
    }

    /// The offset up to which any client may know what happened, because some were told.
    pub fn delivered(&self) -> u64 {
        self.index.lock().delivered
    }

    /// The offset up to which all followers that keep up were told.
    pub(crate) fn complete_up_to(&self) -> u64 {
        self.complete_up_to.load(Acquire)
    }

    /// Says so.
    pub(crate) fn note_complete(&self, offset: u64) {
        self.complete_up_to.store(offset, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::change::Operation;
    use crate::testing::TestServer;

    fn change(database: usize, key: &'static str) -> Change<'static> {
        let (database, key) = (Some(database), Some(key.as_bytes()));
        Change { database, key, operation: Operation::Delete, words: None }
    }

    fn filter(database: Option<usize>, keys: Keys) -> Filter {
        Filter { database, keys }
    }

    #[test]
    fn a_change_finds_the_followers_of_its_key() {
        let server = TestServer::new();
        let followers = Followers::default();
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
            wanted.iter().map(|own| followers.add(Arc::clone(client), own.clone(), 0)).collect();
        let found = |change: &Change<'_>| {
            let mut numbers = Vec::new();
            followers.index.lock().admitting(change, |found| {
                numbers.extend(all.iter().position(|own| Arc::ptr_eq(own, found)));
            });
            numbers.sort_unstable();
            numbers
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
        all.iter().for_each(|own| followers.remove(own));
        assert!(followers.is_empty());
        let index = followers.index.lock();
        assert!(index.ones.is_empty() && index.prefixes.is_empty());
    }

    #[test]
    fn a_follower_that_has_read_less_than_was_delivered_reads_on() {
        let server = TestServer::new();
        let followers = Followers::default();
        let client = Arc::clone(&server.session.client);
        let follower = followers.add(client, filter(None, Keys::Prefix(Box::default())), 5);
        assert_eq!((follower.behind(), follower.wants(9)), (Some(5), false));
        followers.index.lock().delivered = 7;
        assert!(!followers.catch_up(&follower, 6));
        assert!(followers.catch_up(&follower, 8));
        assert_eq!(follower.behind(), None);
        assert_eq!((follower.wants(8), follower.wants(9)), (false, true));
        follower.fall_behind(7);
        assert_eq!(follower.behind(), Some(8), "it is not told twice");
    }
}
