//! The clients that watch the tree, and counters about it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use etcd::change::Change;
use etcd::json::Object;
use etcd::path;
use etcd::request::Operation;
use parking_lot::Mutex;
use resp::output::Output;
use resp::reply::Reply;

use crate::session::attachment::Waiter;
use crate::session::awaited::{Awaited, Wait};
use crate::session::client::Client;

/// A client that waits for an event.
struct Watch {
    waiter: Waiter,
    /// Whether it waits for events of this node alone, or also of all nodes below it.
    recursive: bool,
    /// The first index that counts.
    since: u64,
}

/// How often an operation has succeeded and failed.
#[derive(Default)]
struct Tally {
    succeeded: AtomicU64,
    failed: AtomicU64,
}

/// The operations with the names of their counters, in the order in which they are shown.
const OPERATIONS: [(Operation, &str); 7] = [
    (Operation::Get, "gets"),
    (Operation::Set, "sets"),
    (Operation::Delete, "delete"),
    (Operation::Update, "update"),
    (Operation::Create, "create"),
    (Operation::CompareAndSwap, "compareAndSwap"),
    (Operation::CompareAndDelete, "compareAndDelete"),
];

/// See the module's text.
#[derive(Default)]
pub struct Hub {
    /// The largest index that an event of this process had. No other event gets it, even if the key
    /// of the events is deleted.
    last: AtomicU64,
    /// The offset of the journal after the last change that this process has made.
    written: AtomicU64,
    /// By path. Changed by threads that hold the slot of the tree, and by clients that give up.
    watches: Mutex<BTreeMap<Box<[u8]>, Vec<Watch>>>,
    tallies: [Tally; OPERATIONS.len()],
    expired: AtomicU64,
}

impl Hub {
    /// The largest index that was given in this process.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Relaxed)
    }

    /// Notes that an index was given.
    pub(crate) fn note_index(&self, index: u64) {
        self.last.fetch_max(index, Relaxed);
    }

    /// Notes the journal's offset after a change. The caller holds the slot of the tree.
    pub(crate) fn note_written(&self, offset: u64) {
        self.written.fetch_max(offset, Relaxed);
    }

    /// The journal's offset after the last change that was made here or was there before, 0 if this
    /// is a replica: what is read of the tree depends on no later one.
    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// The server becomes a primary or a replica. From now on the stream of events alone says which
    /// indexes were given: those that are not in it were given to nobody, since what they stood for
    /// is lost. A primary begins with a journal of this length, and does not know how much of it
    /// others have.
    pub(crate) fn begin_term(&self, written: u64) {
        self.last.store(0, Relaxed);
        self.written.store(written, Relaxed);
    }

    /// Counts an operation.
    pub fn count(&self, operation: Operation, succeeded: bool) {
        let tally = &self.tallies[operation as usize];
        let counter = if succeeded { &tally.succeeded } else { &tally.failed };
        counter.fetch_add(1, Relaxed);
    }

    /// Adds a client that waits for an event of a path with this index or a later one. The caller
    /// holds the slot of the tree, and has seen that there is no such event.
    pub fn add(&self, client: &Arc<Client>, path: &[u8], recursive: bool, since: u64) -> Waiter {
        let waiter = Waiter::new(client, Wait::new(Awaited::Event(path.into()), 0, true, None));
        let watch = Watch { waiter: waiter.clone(), recursive, since };
        self.watches.lock().entry(path.into()).or_default().push(watch);
        waiter
    }

    /// Removes a client that no longer waits.
    pub(crate) fn remove(&self, path: &[u8], wait: &Arc<Wait>) {
        let mut watches = self.watches.lock();
        let Some(own) = watches.get_mut(path) else { return };
        own.retain(|watch| !watch.waiter.is_in(wait));
        if own.is_empty() {
            watches.remove(path);
        }
    }

    /// Watched paths below this one.
    pub(crate) fn below(&self, path: &[u8]) -> Vec<Box<[u8]>> {
        let inside: Box<[u8]> = path::inside(path).into();
        let watches = self.watches.lock();
        let own = watches.range(inside.clone()..).map(|(path, _)| path);
        own.take_while(|path| path.starts_with(&inside)).cloned().collect()
    }

    /// Takes out all watches that a change concerns. Their waiters are claimed for the caller.
    pub(crate) fn claim(&self, change: &Change) -> Vec<Waiter> {
        let (event, mut claimed) = (&change.event, Vec::new());
        let mut watches = self.watches.lock();
        if watches.is_empty() || event.refresh {
            return claimed;
        }
        let mut take = |place: &[u8], concerns: &dyn Fn(&Watch) -> bool| {
            let Some(own) = watches.get_mut(place) else { return };
            own.retain(|watch| {
                let concerns = event.index() >= watch.since && concerns(watch);
                if concerns && watch.waiter.wait.claim() {
                    claimed.push(watch.waiter.clone());
                }
                !concerns
            });
            if own.is_empty() {
                watches.remove(place);
            }
        };
        for place in path::and_above(&event.path) {
            let is_itself = *place == *event.path;
            let is_seen = !path::is_hidden_from(place, &event.path);
            take(place, &|watch| is_itself || (watch.recursive && is_seen));
        }
        change.gone.iter().for_each(|place| take(place, &|_| true));
        claimed
    }

    /// Counts a node that has expired.
    pub(crate) fn count_expired(&self) {
        self.expired.fetch_add(1, Relaxed);
    }

    /// The counters, as JSON.
    pub fn metrics(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        let mut write = |name: &str, number: u64| {
            base::num::write_u64(object.member(name), number);
        };
        for (operation, name) in OPERATIONS {
            let tally = &self.tallies[operation as usize];
            write(&format!("{name}Success"), tally.succeeded.load(Relaxed));
            write(&format!("{name}Fail"), tally.failed.load(Relaxed));
        }
        write("expireCount", self.expired.load(Relaxed));
        let watchers: usize = self.watches.lock().values().map(Vec::len).sum();
        write("watchers", watchers as u64);
        object.end();
        out
    }
}

/// The reply to a client that has waited: the status, the index of the tree, the event's index, and
/// the event.
pub fn reply_event(reply: &mut Reply<'_>, index: u64, event: &etcd::event::Event<'_>) {
    let mut body = Vec::new();
    event.write(&mut body);
    reply.array(4);
    reply.integer(200);
    reply.integer(index.cast_signed());
    reply.integer(event.index().cast_signed());
    // Many clients may get a copy of the reply, and large events lie apart from it in all copies.
    reply.bulk_shared(&Arc::new(body));
}

/// The same reply, for a client that has waited in a command of its own.
pub(crate) fn event_reply(event: &etcd::event::Event<'_>) -> Output {
    let mut output = Output::default();
    reply_event(&mut Reply::new(&mut output, true), event.index(), event);
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;

    #[test]
    fn a_term_forgets_what_another_one_has_given() {
        let hub = Hub::default();
        hub.note_index(9);
        hub.note_index(7);
        hub.note_written(100);
        assert_eq!((hub.last(), hub.written()), (9, 100));
        hub.begin_term(50);
        assert_eq!((hub.last(), hub.written()), (0, 50));
    }

    #[test]
    fn a_waiting_client_gets_one_event() {
        let server = TestServer::new();
        let client = Arc::clone(&server.session.client);
        let hub = Hub::default();
        let at = |path: &[u8], recursive, since| hub.add(&client, path, recursive, since);
        let exact = at(b"/a/b", false, 1);
        let above = at(b"/a", true, 1);
        let beside = at(b"/a", false, 1);
        let later = at(b"/a/b", false, 9);
        let change = |path: &[u8], index: u64, gone: &[&[u8]]| {
            let node = etcd::node::Node { modified: index, ..etcd::node::Node::ROOT };
            let event = etcd::event::Event {
                action: etcd::event::Action::Delete,
                path: path.to_vec().into(),
                prev: Some(node.clone()),
                node,
                at: 0,
                refresh: false,
            };
            Change { event, gone: gone.iter().map(|path| Box::from(*path)).collect() }
        };
        let is = |claimed: Vec<Waiter>, expected: &[&Waiter]| {
            assert_eq!(claimed.len(), expected.len());
            expected.iter().for_each(|own| assert!(claimed.iter().any(|it| it.is_in(&own.wait))));
        };
        is(hub.claim(&change(b"/a/b", 5, &[])), &[&above, &exact]);
        is(hub.claim(&change(b"/a/b", 6, &[])), &[]);
        assert_eq!(hub.below(b"/a"), [Box::from(&b"/a/b"[..])]);
        assert_eq!(hub.below(b"/"), [Box::from(&b"/a"[..]), Box::from(&b"/a/b"[..])]);
        is(hub.claim(&change(b"/a", 9, &[b"/a/b"])), &[&beside, &later]);
        let hidden = at(b"/", true, 1);
        is(hub.claim(&change(b"/_h/x", 10, &[])), &[]);
        assert!(String::from_utf8(hub.metrics()).unwrap().ends_with("\"watchers\":1}"));
        hub.remove(b"/", &hidden.wait);
        assert!(hub.watches.lock().is_empty());
    }
}
