//! What clients did and saw, as the checker gets it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Nanoseconds since the storm began.
pub(crate) type Time = u64;

/// The end of an operation whose answer never came.
pub(crate) const NEVER: Time = Time::MAX;

/// The clock that all clients of a storm share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock(Instant::now())
    }

    pub(crate) fn now(self) -> Time {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(NEVER - 1)
    }
}

/// What an operation did. Refused operations are not recorded: they did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A register's only writer gave it a value, larger than any before.
    Write { register: usize, value: u64 },
    /// A client read a register.
    Read { register: usize, value: Option<u64> },
    /// The only operator swapped two databases, or emptied all, and set the mark in the same
    /// transaction.
    Mark { number: u64, flush: bool },
    /// A fresh element was pushed to one of the queues, or added to a stream.
    Push { element: u64 },
    /// An element was popped, or delivered to a group for the first time.
    Pop { element: u64 },
    /// A pop of up to this many elements got no answer.
    PopUnanswered { most: usize },
    /// An element that a group's consumer had got was acknowledged to the group.
    Settle { element: u64 },
    /// A value of a register, and all that was written before it, is at so many replicas, or synced
    /// on the primary's disk.
    Assured { register: usize, value: u64, copies: u64 },
    /// A counter was changed under WATCH; `seen` is when its value had been read.
    Swap { counter: usize, from: Option<u64>, to: u64, seen: Time },
}

/// One operation. It took effect between its begin and its end, if it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) action: Action,
    pub(crate) begin: Time,
    /// When it was acknowledged, or [`NEVER`].
    pub(crate) end: Time,
}

impl Operation {
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.end != NEVER
    }
}

/// The data of a server when it has started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) registers: BTreeMap<usize, u64>,
    pub(crate) mark: u64,
    pub(crate) elements: BTreeSet<u64>,
    /// Elements that groups have delivered and wait for.
    pub(crate) pending: BTreeSet<u64>,
    pub(crate) counters: BTreeMap<usize, u64>,
}

/// What must have survived the end of a process. Whatever else survived must be what some instant
/// had seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Promise {
    /// All that began and was acknowledged within one of these spans.
    pub(crate) spans: Vec<(Time, Time)>,
    /// All that began and was read within one of these spans, though it may not have been
    /// acknowledged. Readers wait for the disk under `always` only.
    pub(crate) of_what_is_seen: Vec<(Time, Time)>,
    /// Why, for the report.
    pub(crate) reason: String,
}

impl Promise {
    /// A promise of all that clients knew of within these spans.
    pub(crate) fn of_all(spans: Vec<(Time, Time)>, reason: String) -> Promise {
        Promise { of_what_is_seen: spans.clone(), spans, reason }
    }

    pub(crate) fn covers(&self, begin: Time, end: Time) -> bool {
        is_within(&self.spans, begin, end)
    }

    pub(crate) fn covers_what_is_seen(&self, begin: Time, end: Time) -> bool {
        is_within(&self.of_what_is_seen, begin, end)
    }
}

fn is_within(spans: &[(Time, Time)], begin: Time, end: Time) -> bool {
    spans.iter().any(|&(from, to)| from <= begin && end <= to)
}

/// The life of one process, between two states.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) before: State,
    pub(crate) operations: Vec<Operation>,
    pub(crate) promise: Promise,
    pub(crate) after: State,
}
