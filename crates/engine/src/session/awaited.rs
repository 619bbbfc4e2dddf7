//! What one client waits for, and which thread ends the wait.
//!
//! Several threads may end a wait: one that has the key or the answer, one that runs CLIENT
//! UNBLOCK, and the client's own worker when the time is up or the connection closes. The thread
//! that claims the wait ends it.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use parking_lot::Mutex;
use resp::args::{Arguments, OwnedArguments};
use resp::output::Output;
use resp::reply::Reply;
use store::sync::AtomicU8;
use store::{Key, ValueRef};

use crate::command::RowId;
use crate::command::error::CommandError;
use crate::journal::filter::Filter;
use crate::observe::command_log::Cost;
use crate::session::sync::SyncWait;
use crate::session::user::User;

/// Whether the value that one of its keys has now ends the waiting of a command with these
/// arguments.
pub type Ready = fn(Option<ValueRef<'_>>, &Key<'_>, Arguments<'_>) -> bool;

/// The value that a client waits for.
#[derive(Clone, Copy, Debug)]
pub enum AwaitedValue {
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
    Key(AwaitedValue, RowId),
    /// A change in the journal that this filter admits.
    Changes(Filter),
    /// An event of this node in the tree of [`crate::nodes`].
    Event(Box<[u8]>),
    /// The answer of the host. It cannot give up.
    Host,
    /// Nothing: this error is its answer when the time is up. It cannot give up before.
    Refusal(CommandError),
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
    /// The user of the client.
    pub(crate) user: User,
    /// The database that the client selected.
    pub database: usize,
    /// The keys it waits for.
    pub keys: Vec<Box<[u8]>>,
    /// A key that serving it also changes (the destination of BLMOVE).
    pub destination: Option<Box<[u8]>>,
    /// It is told when one of its keys goes: its command's flag
    /// [`crate::command::WAKES_ON_REMOVAL`].
    pub(crate) needs_keys: bool,
    /// The command, if it waits for keys, or reads something that the host prepares.
    pub argv: OwnedArguments,
    /// The row of a command of which the host prepares what it reads. The client must still have
    /// the right to it when that is there.
    pub(crate) reads: Option<RowId>,
    /// Whether its connection speaks RESP3.
    pub resp3: bool,
    /// When it gives up, as [`crate::turn::Turn::monotonic`].
    pub deadline: Option<u64>,
    /// When its command runs again, if it still waits then.
    pub again_at: Option<u64>,
    /// What its command has cost so far, if that is noted when it is answered.
    pub(crate) cost: OnceLock<Cost>,
    /// How many parts of the host's answer have not come yet. The command counts as one until its
    /// end: it may ask for more.
    answers_pending: AtomicU32,
    /// The host's answer, when more is due than that, and the offset of the journal on which the
    /// answers so far depend.
    answer: Mutex<(Option<Output>, u64)>,
    state: AtomicU8,
}

impl Wait {
    /// A wait that names no keys.
    pub fn new(awaited: Awaited, database: usize, resp3: bool, deadline: Option<u64>) -> Wait {
        Wait {
            awaited,
            user: User::nobody(),
            database,
            keys: Vec::new(),
            destination: None,
            needs_keys: false,
            argv: OwnedArguments::default(),
            reads: None,
            resp3,
            deadline,
            again_at: None,
            cost: OnceLock::new(),
            answers_pending: AtomicU32::new(0),
            answer: Mutex::default(),
            state: AtomicU8::new(WAITING),
        }
    }

    /// Approximate bytes of memory that it takes: each key is in the arguments, here, and at its
    /// slot.
    pub(crate) fn memory(&self) -> usize {
        let frames = self.keys.len() * 4 * size_of::<Vec<u8>>();
        size_of::<Wait>() + 3 * self.argv.memory() + frames
    }

    /// Keeps what its command has cost until the client is answered, if it waits for a key: only
    /// then the command counts. Returns whether it does.
    pub(crate) fn keep_cost(&self, cost: Cost) -> bool {
        let keeps = matches!(self.awaited, Awaited::Key(..));
        if keeps {
            self.cost.get_or_init(|| cost);
        }
        keeps
    }

    /// The host is asked once more: the wait lasts until it has answered that too.
    pub(crate) fn ask(&self) {
        self.answers_pending.fetch_add(1, AcqRel);
    }

    /// The host has answered, or the command has ended. Claims the wait and returns the client's
    /// reply, and the offset of the journal on which it depends, if nothing more is due.
    pub(crate) fn take_answer(&self, answer: Output, write_offset: u64) -> Option<(Output, u64)> {
        let mut answer = Some(answer);
        if self.answers_pending.load(Acquire) > 1 {
            let mut kept = self.answer.lock();
            kept.1 = kept.1.max(write_offset);
            if answer.as_ref().is_some_and(|own| !own.is_empty()) {
                kept.0 = answer.take();
            }
        }
        let pending =
            self.answers_pending.fetch_update(AcqRel, Acquire, |pending| pending.checked_sub(1));
        let is_last = pending.is_err() || pending == Ok(1);
        let claimed = is_last && self.claim();
        claimed.then(|| {
            let (kept, before) = std::mem::take(&mut *self.answer.lock());
            (kept.or(answer).unwrap_or_default(), write_offset.max(before))
        })
    }

    /// Whether no thread has claimed it yet.
    pub fn is_waiting(&self) -> bool {
        self.state.load(Acquire) == WAITING
    }

    /// Claims it: the thread that gets true answers the client, or drops it.
    pub fn claim(&self) -> bool {
        self.end_as(CLAIMED)
    }

    /// Claims it for CLIENT UNBLOCK, if the client may give up. The claimer answers, unless the
    /// client waits for a sync: then its worker does, and has to be told.
    pub fn unblock(&self, how: Unblocking) -> bool {
        let state = match how {
            Unblocking::Timeout => TIMED_OUT,
            Unblocking::Error => FAILED,
        };
        let may_give_up = !matches!(self.awaited, Awaited::Host | Awaited::Refusal(_));
        may_give_up && self.end_as(state)
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
            AwaitedValue::List => matches!(value, Some(ValueRef::List(_))),
            AwaitedValue::Zset => matches!(value, Some(ValueRef::Zset(_))),
            AwaitedValue::Stream(ready) => ready(value, key, self.argv.view()),
        }
    }

    /// Whether it waits for a stream.
    pub(crate) fn awaits_stream(&self) -> bool {
        matches!(self.awaited, Awaited::Key(AwaitedValue::Stream(_), _))
    }

    /// Whether it waits for a sync.
    #[inline]
    pub fn awaits_sync(&self) -> bool {
        matches!(self.awaited, Awaited::Sync(_))
    }

    /// Answers a client whose time is up: every command that blocks on keys answers the same.
    pub fn reply_timed_out(&self, reply: &mut Reply<'_>) {
        match &self.awaited {
            Awaited::Refusal(error) => reply.error(error.as_bytes()),
            _ => reply.null_array(),
        }
    }
}
