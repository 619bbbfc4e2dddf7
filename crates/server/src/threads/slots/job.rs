//! What a move is, what it is told, and what it tells.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use config::Config;
use engine::engine::Engine;
use parking_lot::{Condvar, Mutex};
use persist::cuts::Cuts;
use store::SlotSet;

/// A move of slots to another server.
pub struct Move {
    /// Its name.
    pub id: String,
    /// The slots.
    pub slots: SlotSet,
    /// Where the target is.
    pub host: String,
    /// Its ports: the plain one, and the one with TLS. 0 where it has none.
    pub ports: (u16, u16),
    /// Bytes of the first copy that are sent a second at most, 0 for as many as possible; nothing
    /// where `cluster-migration-bandwidth` says it.
    pub rate: Option<u64>,
    /// The target has to have an append-only file. One that has, syncs it at the hand-over.
    pub needs_file: bool,
    /// The epoch of this server as a primary: a target prefers the later of two sources.
    pub epoch: u64,
    /// No cluster decides: the slots change their owner as soon as the target has them.
    pub alone: bool,
}

impl Move {
    /// The port of the target, by settings that say whether the connection is encrypted.
    pub(super) fn port(&self, config: &Config) -> u16 {
        let (plain, encrypted) = self.ports;
        if config.tls_cluster { encrypted } else { plain }
    }

    /// Where the target is, as people read it.
    pub(super) fn place(&self, config: &Config) -> String {
        let (plain, encrypted) = self.ports;
        let port = [self.port(config), plain, encrypted].into_iter().find(|port| *port != 0);
        format!("{}:{}", self.host, port.unwrap_or_default())
    }
}

/// What becomes of a move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MoveEvent {
    /// The target has nearly everything: [`SlotMovers::hold`] may follow.
    CaughtUp,
    /// Clients of the slots wait.
    Holds,
    /// They wait no longer: the target was too slow. It is tried again.
    LetGo,
    /// The link has broken, and all is sent anew.
    BeginsAnew,
    /// The slots are held, and the target has everything: [`SlotMovers::finish`] follows.
    Delivered,
    /// It is over: whether the slots have gone.
    Done(bool),
    /// It cannot be done.
    Failed(String),
}

/// Who is told what becomes of a move.
pub type Notify = Box<dyn Fn(MoveEvent) + Send + Sync>;

/// What was said to a move since it has begun.
#[derive(Default)]
pub(super) struct Order {
    said: Mutex<Said>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Said {
    pub(super) hold: bool,
    pub(super) end: Option<bool>,
    /// Its thread has done with it.
    pub(super) is_over: bool,
}

impl Order {
    pub(super) fn say(&self, change: impl FnOnce(&mut Said)) {
        change(&mut self.said.lock());
        self.changed.notify_all();
    }

    pub(super) fn said(&self) -> Said {
        *self.said.lock()
    }

    /// Waits until it is to end, but not for long. Returns how.
    pub(super) fn wait_for_end(&self, longest: Duration) -> Option<bool> {
        let mut said = self.said.lock();
        if said.end.is_none() {
            self.changed.wait_for(&mut said, longest);
        }
        said.end
    }

    /// Waits until its thread has done with it.
    pub(super) fn wait_until_over(&self) {
        let mut said = self.said.lock();
        while !said.is_over {
            self.changed.wait(&mut said);
        }
    }

    /// Waits until something is said, but not for long.
    pub(super) fn wait(&self, longest: Duration) {
        self.changed.wait_for(&mut self.said.lock(), longest);
    }
}

/// What the threads share.
pub(super) struct Shared {
    pub(super) engine: OnceLock<Weak<Engine>>,
    pub(super) cuts: Arc<Cuts>,
    /// What encrypts connections, if the settings ask for that.
    pub(super) active: Arc<tls::Active>,
    pub(super) orders: Mutex<HashMap<String, Arc<Order>>>,
    /// Numbers of moves, for the parts of the journal that are kept for them.
    pub(super) number: AtomicU64,
    /// Whether the thread that deletes was woken, once it runs.
    pub(super) emptying: Mutex<Option<bool>>,
    pub(super) more: Condvar,
    pub(super) is_stopped: AtomicBool,
}

impl Shared {
    /// A move is over. Another one may have its name already.
    pub(super) fn forget(&self, id: &str, order: &Arc<Order>) {
        let mut orders = self.orders.lock();
        if orders.get(id).is_some_and(|own| Arc::ptr_eq(own, order)) {
            orders.remove(id);
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_choose_the_port_and_no_other_stands_in_for_it() {
        let job = Move {
            id: String::new(),
            slots: SlotSet::default(),
            host: "h".to_owned(),
            ports: (7000, 0),
            rate: None,
            needs_file: false,
            epoch: 0,
            alone: false,
        };
        let plain = Config::default();
        let encrypted = Config { tls_cluster: true, ..Config::default() };
        assert_eq!((job.port(&plain), job.port(&encrypted)), (7000, 0));
        assert_eq!(job.place(&encrypted), "h:7000");
        let job = Move { ports: (7000, 7001), ..job };
        assert_eq!((job.port(&encrypted), job.place(&encrypted)), (7001, "h:7001".to_owned()));
    }
}
