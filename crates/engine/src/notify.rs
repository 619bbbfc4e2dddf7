//! Keyspace notifications: what happened to which key, for subscribers of
//! `__keyspace@N__:key` and `__keyevent@N__:event`.

pub use crate::config::NotifyEvents as Class;

/// A class and a name: what happened.
#[derive(Clone, Copy, Debug)]
pub struct Event(pub Class, pub &'static str);

/// An event that is going to be published.
#[derive(Debug)]
pub(crate) struct Notification {
    pub(crate) database: usize,
    pub(crate) event: Event,
    pub(crate) key: Box<[u8]>,
}
