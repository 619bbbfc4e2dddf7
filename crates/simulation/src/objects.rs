//! What descriptors stand for: connections, files, events, and sets of these that are watched. And
//! the ways on which connections run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::disk::Inode;

/// The number of an object in its world.
pub(crate) type ObjectNumber = u64;
/// The number of a machine in its world.
pub type MachineNumber = usize;
/// The number of a thread in its world.
pub(crate) type ThreadNumber = usize;

pub(crate) const IN: u32 = libc::EPOLLIN as u32;
pub(crate) const OUT: u32 = libc::EPOLLOUT as u32;
pub(crate) const FAILURE: u32 = libc::EPOLLERR as u32;
pub(crate) const HANG_UP: u32 = libc::EPOLLHUP as u32;
pub(crate) const PEER_HANG_UP: u32 = libc::EPOLLRDHUP as u32;

/// The way from one machine to another, where it is not as the weather has it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    /// The nanoseconds that a message takes, the least and the most.
    pub(crate) latency: Option<(u64, u64)>,
    /// Nothing arrives before that time.
    pub(crate) silent_until: u64,
    /// The connection breaks within the next message.
    pub(crate) tears: bool,
}

/// Bytes that a connection holds for its reader, on the way and arrived.
const CONNECTION_MAX: usize = 256 << 10;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct End {
    /// The other end, as long as that is open.
    pub(crate) peer: Option<ObjectNumber>,
    /// What has arrived.
    pub(crate) arrived: VecDeque<u8>,
    /// Bytes on their way here.
    pub(crate) coming: usize,
    /// When the last of what is on its way arrives.
    pub(crate) last_arrival: u64,
    /// The other end sends nothing any more.
    pub(crate) is_ended: bool,
    /// The connection is broken; the flag says whether somebody has been told.
    pub(crate) reset: Option<bool>,
    /// This end sends nothing any more.
    pub(crate) is_shut: bool,
    /// A writer was told to wait.
    pub(crate) is_full: bool,
    pub(crate) port: u16,
    pub(crate) peer_port: u16,
    /// The machine of the other end.
    pub(crate) peer_machine: MachineNumber,
}

impl End {
    pub(crate) fn new(port: u16, peer_port: u16, peer_machine: MachineNumber) -> End {
        End {
            peer: None,
            arrived: VecDeque::new(),
            coming: 0,
            last_arrival: 0,
            is_ended: false,
            reset: None,
            is_shut: false,
            is_full: false,
            port,
            peer_port,
            peer_machine,
        }
    }

    /// How much more may be sent to this end.
    pub(crate) fn room(&self) -> usize {
        CONNECTION_MAX.saturating_sub(self.arrived.len() + self.coming)
    }

    /// Whether a writer that was told to wait is to go on.
    pub(crate) fn has_much_room(&self) -> bool {
        self.room() >= CONNECTION_MAX / 2
    }
}

/// A socket that is no connection yet.
#[derive(Debug, Default)]
pub(crate) struct Socket {
    pub(crate) port: u16,
    pub(crate) is_connecting: bool,
    /// The error of an attempt to connect.
    pub(crate) failed: Option<i32>,
}

/// What is watched of one descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interest {
    pub(crate) object: ObjectNumber,
    pub(crate) events: u32,
    pub(crate) data: u64,
}

/// A set of descriptors that are watched.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) interests: BTreeMap<i32, Interest>,
    /// The descriptors at which something has happened, in that order.
    pub(crate) happened: VecDeque<i32>,
}

/// A file or directory that is open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) inode: Inode,
    pub(crate) position: usize,
    pub(crate) appends: bool,
    /// The path below the root, for what is opened relative to it.
    pub(crate) path: Vec<u8>,
}

/// The kinds of objects.
#[derive(Debug)]
pub(crate) enum Kind {
    Socket(Socket),
    /// Connections that wait to be accepted.
    Listener {
        port: u16,
        queue: VecDeque<ObjectNumber>,
    },
    End(End),
    Watch(Watch),
    Event(u64),
    Open(Open),
    /// A file that is not of the disk: what is left to read.
    Text(VecDeque<u8>),
    /// Random bytes.
    Entropy,
}

/// One object.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) machine: MachineNumber,
    pub(crate) is_nonblocking: bool,
    /// How long a read or a write may wait, in nanoseconds; zero: as long as need be.
    pub(crate) patience: [u64; 2],
    /// Descriptors that stand for it.
    pub(crate) references: usize,
    /// Threads that wait for something to happen here.
    pub(crate) waiting: BTreeSet<ThreadNumber>,
    /// The sets in which it is watched, by which descriptor.
    pub(crate) watched: Vec<(ObjectNumber, i32)>,
}

impl Object {
    pub(crate) fn new(kind: Kind, machine: MachineNumber) -> Object {
        Object {
            kind,
            machine,
            is_nonblocking: false,
            patience: [0; 2],
            references: 0,
            waiting: BTreeSet::new(),
            watched: Vec::new(),
        }
    }
}
