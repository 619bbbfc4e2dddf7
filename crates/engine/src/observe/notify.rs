//! Keyspace notifications: what happened to which key, for subscribers of
//! `__keyspace@N__:key` and `__keyevent@N__:event`; and the queue from which these and other news leave
//! in their order.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use parking_lot::Mutex;

use crate::session::pubsub::Kind;
pub use config::NotifyEvents as Class;

/// An event: a class and a name.
#[derive(Clone, Copy, Debug)]
pub struct Event(pub Class, pub &'static str);

/// A message for other clients, which leaves after the journal has the writes that it reports.
#[derive(Debug)]
pub(crate) enum News {
    /// An event of a key.
    Event(Notification),
    /// A message that was published within EXEC.
    Message { kind: Kind, channel: Box<[u8]>, message: Box<[u8]> },
    /// The line of a command that ran, for clients that monitor all commands.
    Line(Vec<u8>),
}

/// An event that is going to be published.
#[derive(Debug)]
pub(crate) struct Notification {
    pub(crate) database: usize,
    pub(crate) event: Event,
    pub(crate) key: Box<[u8]>,
    /// The settings that asked for it. They name the channels to which it goes.
    pub(crate) asked: Class,
}

/// News in the order in which it happened.
///
/// A thread that has changed keys adds its news while it holds their slots, which costs no more than a
/// short lock. It delivers them after it has unlocked the slots. So the news of one key are in the order
/// of its changes, and every receiver gets all news in one order, whichever threads deliver them.
#[derive(Default)]
pub(crate) struct NewsQueue {
    waiting: Mutex<Vec<News>>,
    /// Locked by the thread that delivers.
    delivering: Mutex<()>,
    /// News that was added and not delivered yet.
    undelivered: AtomicUsize,
}

impl NewsQueue {
    /// Adds news, in their order. The calling thread holds the slots that they concern.
    pub(crate) fn add(&self, news: &mut Vec<News>) {
        let mut waiting = self.waiting.lock();
        self.undelivered.fetch_add(news.len(), Relaxed);
        waiting.append(news);
    }

    /// Delivers all that was added before. Returns when that has been delivered, perhaps by another
    /// thread.
    pub(crate) fn deliver(&self, deliver: impl FnMut(News)) {
        if self.undelivered.load(Acquire) == 0 {
            return;
        }
        let _one_at_a_time = self.delivering.lock();
        let news = std::mem::take(&mut *self.waiting.lock());
        let count = news.len();
        news.into_iter().for_each(deliver);
        self.undelivered.fetch_sub(count, Release);
    }
}
