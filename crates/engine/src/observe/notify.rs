//! Keyspace notifications: what happened to which key, for subscribers of
//! `__keyspace@N__:key` and `__keyevent@N__:event`.

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
}
