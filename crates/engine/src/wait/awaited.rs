//! What one client waits for, and who ends the wait.
//!
//! Several threads may end a wait: one that has the key or the answer, one that runs CLIENT UNBLOCK, and
//! the client's own worker, when the time is up or the connection goes. The one that claims it does.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use resp::args::{Arguments, OwnedArguments};
use resp::reply::Reply;
use store::sync::AtomicU8;
use store::{Key, ValueRef};

use crate::changes::filter::Filter;
use crate::command::RowId;
use crate::observe::command_log::Cost;
use crate::wait::sync::SyncWait;

/// Whether the value that one of its keys has now ends the waiting of a command with these arguments.
pub type Ready = fn(Option<ValueRef<'_>>, &Key<'_>, Arguments<'_>) -> bool;

/// The value that a client waits for.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    /// A list.
    List,
    /// A sorted set.
    Zset,
    /// A stream with entries that it has not read, or the removal of a stream.
    Stream(Ready),
}

/// What a client waits for.
#[derive(Debug)]
pub enum Awaited {
    /// Any of its keys, with such a value. The row of its command says how it is served.
    Key(Wanted, RowId),
    /// A change in the journal that this filter admits.
    Changes(Filter),
    /// An event of this node in the tree of [`crate::nodes`].
    Event(Box<[u8]>),
    /// The answer of the host. It cannot give up.
    Host,
    /// Its writes on disk. Its own worker looks at the journal and answers.
    Sync(SyncWait),
}

/// How CLIENT UNBLOCK ends the waiting of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unblocking {
    /// It is answered as if its time were up.
    Timeout,
    /// It is answered an error.
    Error,
}

impl Unblocking {
    /// The client's error with [`Unblocking::Error`].
    pub const ERROR: &'static [u8] = b"UNBLOCKED client unblocked via CLIENT UNBLOCK";
}

// How a wait stands. All states but the first are final.
const WAITING: u8 = 0;
const CLAIMED: u8 = 1;
/// CLIENT UNBLOCK has claimed it.
const TIMED_OUT: u8 = 2;
/// The same, with an error.
const FAILED: u8 = 3;

/// The wait of a client, as all threads see it.
pub struct Wait {
    /// What it waits for.
    pub awaited: Awaited,
    /// The database that the client selected.
    pub database: usize,
    /// The keys it waits for.
    pub keys: Vec<Box<[u8]>>,
    /// A key that serving it also changes (the destination of BLMOVE).
    pub destination: Option<Box<[u8]>>,
    /// The command, if it waits for keys.
    pub argv: OwnedArguments,
    /// Whether its connection speaks RESP3.
    pub resp3: bool,
    /// When it gives up, as [`crate::run::turn::Turn::steady`].
    pub deadline: Option<u64>,
    /// When its command runs again, if it still waits then.
    pub again_at: Option<u64>,
    /// What its command has cost so far, if that is noted when it is answered.
    pub(crate) cost: OnceLock<Cost>,
    /// Of how many the host's answer consists that have not come yet.
    answers_due: AtomicU32,
    state: AtomicU8,
}

impl Wait {
    /// A wait that names no keys.
    pub(crate) fn new(
        awaited: Awaited,
        database: usize,
        resp3: bool,
        deadline: Option<u64>,
    ) -> Wait {
        Wait {
            awaited,
            database,
            keys: Vec::new(),
            destination: None,
            argv: OwnedArguments::default(),
            resp3,
            deadline,
            again_at: None,
            cost: OnceLock::new(),
            answers_due: AtomicU32::new(0),
            state: AtomicU8::new(WAITING),
        }
    }

    /// Approximate bytes of memory that it takes: each key is in the arguments, here, and at its slot.
    pub(crate) fn memory(&self) -> usize {
        let frames = self.keys.len() * 4 * size_of::<Vec<u8>>();
        size_of::<Wait>() + 3 * self.argv.memory() + frames
    }

    /// Keeps what its command has cost until the client is answered, if it waits for a key: only then the
    /// command counts. Returns whether it does.
    pub(crate) fn keep_cost(&self, cost: Cost) -> bool {
        let keeps = matches!(self.awaited, Awaited::Key(..));
        if keeps {
            self.cost.get_or_init(|| cost);
        }
        keeps
    }

    /// The host is asked once more: the wait lasts until it has answered that too.
    pub(crate) fn ask(&self) {
        self.answers_due.fetch_add(1, AcqRel);
    }

    /// The host has answered. Whether it has nothing more to answer.
    pub(crate) fn is_last_answer(&self) -> bool {
        let due = self.answers_due.fetch_update(AcqRel, Acquire, |due| due.checked_sub(1));
        due.is_ok_and(|before| before == 1) || due.is_err()
    }

    /// Whether no thread has claimed it yet.
    pub fn is_waiting(&self) -> bool {
        self.state.load(Acquire) == WAITING
    }

    /// Claims it: the thread that gets true answers the client, or drops it.
    pub fn claim(&self) -> bool {
        self.end_as(CLAIMED)
    }

    /// Claims it for CLIENT UNBLOCK, if the client may give up. The claimer answers, unless the client
    /// waits for a sync: then its worker does, and has to be told.
    pub(crate) fn unblock(&self, how: Unblocking) -> bool {
        let state = match how {
            Unblocking::Timeout => TIMED_OUT,
            Unblocking::Error => FAILED,
        };
        !matches!(self.awaited, Awaited::Host) && self.end_as(state)
    }

    /// How CLIENT UNBLOCK has ended it, if it has.
    pub(crate) fn unblocked(&self) -> Option<Unblocking> {
        match self.state.load(Acquire) {
            TIMED_OUT => Some(Unblocking::Timeout),
            FAILED => Some(Unblocking::Error),
            _ => None,
        }
    }

    fn end_as(&self, state: u8) -> bool {
        self.state.compare_exchange(WAITING, state, AcqRel, Acquire).is_ok()
    }

    /// Whether it waits for the value that a key has now.
    pub(crate) fn is_met(&self, value: Option<ValueRef<'_>>, key: &Key<'_>) -> bool {
        let Awaited::Key(wanted, _) = self.awaited else { return false };
        match wanted {
            Wanted::List => matches!(value, Some(ValueRef::List(_))),
            Wanted::Zset => matches!(value, Some(ValueRef::Zset(_))),
            Wanted::Stream(ready) => ready(value, key, self.argv.view()),
        }
    }

    /// Whether it waits for a stream.
    pub(crate) fn awaits_stream(&self) -> bool {
        matches!(self.awaited, Awaited::Key(Wanted::Stream(_), _))
    }

    /// Whether it must be told when a key goes: a client that reads in a group gets an error then.
    pub(crate) fn needs_keys(&self) -> bool {
        self.awaits_stream() && self.argv.view().at(0).eq_ignore_ascii_case(b"xreadgroup")
    }

    /// Whether it waits for a sync.
    #[inline]
    pub fn awaits_sync(&self) -> bool {
        matches!(self.awaited, Awaited::Sync(_))
    }

    /// Answers a client whose time is up: every command that blocks on keys answers the same.
    pub(crate) fn reply_timed_out(&self, reply: &mut Reply<'_>) {
        reply.null_array();
    }
}
