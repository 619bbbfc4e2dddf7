//! A recording: the results of one run of a plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Latency;
use crate::load::Plan;

/// The results of one run of a plan. Everything except `generator` is about the measured part,
/// without the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The plan.
    pub plan: Plan,
    /// When the measured part began, in milliseconds of Unix time.
    pub started_unix_ms: u64,
    /// How long the measured part took.
    pub seconds: f64,
    /// One per operation of the plan, in its order.
    pub operations: Vec<OperationRecord>,
    /// One per second of the measured part.
    pub timeline: Vec<Second>,
    /// How the generator itself did.
    pub generator: Generator,
    /// The run ended before its bound: by a signal, or because a connection was lost.
    pub interrupted: Option<String>,
}

/// The results of the requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationRecord {
    /// The operation's name in the plan.
    pub name: String,
    /// Requests that were answered, errors among them.
    pub requests: u64,
    /// How many of them were answered with an error.
    #[serde(default)]
    pub failed: u64,
    /// Errors by their first word: `ERR`, `MISCONF`, `503`; and requests without an answer:
    /// `connection` (it was lost), `timeout` (the load had ended long ago), `unanswered` (the load
    /// was ended, and they were still open a moment later).
    pub errors: BTreeMap<String, u64>,
    /// What the server answered to the first request of each kind of error, where that says more
    /// than the kind.
    #[serde(default)]
    pub error_texts: BTreeMap<String, String>,
    /// Time from when a request was due (in a closed loop: was sent) to its reply. Errors are not
    /// in it: a server may refuse faster than it works.
    pub response: Latency,
    /// Time from when a request was sent to its reply, without errors.
    pub service: Latency,
    /// Bytes of requests.
    pub sent_bytes: u64,
    /// Bytes of replies.
    pub received_bytes: u64,
}

/// The parts in which a second's answers are counted: a server that is killed and comes back within
/// a second has answered nothing in some of them.
pub(crate) const TENTHS: usize = 10;

/// One second of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Which one, from 0.
    pub at: u32,
    /// Requests answered within it, errors among them.
    pub requests: u64,
    /// How many of them were answered with an error.
    #[serde(default)]
    pub failed: u64,
    /// Errors among them, and requests without an answer.
    pub errors: u64,
    /// Requests whose answer was no error, by tenths of the second. Empty if there were none, and
    /// in files of earlier versions.
    #[serde(default)]
    pub tenths: Vec<u64>,
    /// Response times of the requests answered within it, without errors.
    pub response: Latency,
}

/// How the generator did: whether it, and not the server, was the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// User processor time of the sending threads.
    pub cpu_user_seconds: f64,
    /// System processor time of the sending threads.
    pub cpu_system_seconds: f64,
    /// The busiest thread's share of a processor, 0 to 1.
    pub busiest_thread: f64,
    /// How late sends were though a connection was free; empty in a closed loop.
    pub lateness: Latency,
    /// How long a sending thread was ready to run and had no processor, beyond the cost of waking
    /// up: a value for each 10 ms of all threads, the length of the wait in those that it filled.
    /// Empty if the kernel does not report it.
    #[serde(default)]
    pub held_up: Latency,
    /// Requests that were due and never left.
    pub unsent: u64,
    /// Connections that were opened.
    pub connects: u64,
    /// How many of them went on with a session of TLS.
    #[serde(default)]
    pub resumed: u64,
    /// Requests that a node of a cluster has sent on to another one.
    #[serde(default)]
    pub redirects: u64,
    /// Connections refused, reset or timed out.
    pub socket_errors: u64,
    /// Connections that this side could not open, for want of descriptors, ports or memory.
    #[serde(default)]
    pub own_errors: u64,
    /// Why the run says nothing about the server, one sentence each. Empty: the run is valid.
    pub invalid: Vec<String>,
    /// Why response times from `doubtful_from` on say nothing about the server, though all else
    /// does, one sentence each. Only the generator of an open loop can be late.
    #[serde(default)]
    pub late: Vec<String>,
    /// Why the server could not keep up with the load, one sentence each: requests that were never
    /// sent because all connections waited for it, connections that it lost. Such a run is valid,
    /// and bad.
    #[serde(default)]
    pub overloaded: Vec<String>,
    /// From this percentile on (0.999 is that of 99.9 %; 1 the longest alone) more than a tenth of
    /// a response time may be the generator's own; those below it are the server's. `None`: all are
    /// the server's.
    #[serde(default)]
    pub doubtful_from: Option<f64>,
}

impl Recording {
    /// Answered requests of all operations.
    pub fn requests(&self) -> u64 {
        self.operations.iter().map(|operation| operation.requests).sum()
    }

    /// Errors of all operations.
    pub fn errors(&self) -> u64 {
        self.operations.iter().flat_map(|operation| operation.errors.values()).sum()
    }

    /// Requests of all operations whose answer was no error.
    pub fn successes(&self) -> u64 {
        self.operations.iter().map(OperationRecord::successes).sum()
    }

    /// Requests a second whose answer was no error.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.successes() as f64 / self.seconds } else { 0.0 }
    }

    /// Response times of all operations, without errors.
    pub fn response(&self) -> Latency {
        let mut all = Latency::new();
        for operation in &self.operations {
            all.merge(&operation.response);
        }
        all
    }

    /// Service times of all operations, without errors.
    pub fn service(&self) -> Latency {
        let mut all = Latency::new();
        for operation in &self.operations {
            all.merge(&operation.service);
        }
        all
    }

    /// Whether the server was measured, and not the generator.
    pub fn is_valid(&self) -> bool {
        self.generator.invalid.is_empty()
    }

    /// Whether a percentile (0.99) of response times does not count, since the generator was late.
    pub fn is_late(&self, share: f64) -> bool {
        !self.generator.late.is_empty() && self.is_doubtful(share)
    }

    /// Whether a percentile (0.999) of response times may be the generator's own, and not the
    /// server's.
    pub fn is_doubtful(&self, share: f64) -> bool {
        self.generator.doubtful_from.is_some_and(|from| share >= from)
    }
}

impl OperationRecord {
    /// Requests whose answer was no error.
    pub fn successes(&self) -> u64 {
        self.requests.saturating_sub(self.failed)
    }

    /// Adds another recording of the same operation.
    pub fn merge(&mut self, other: &OperationRecord) {
        self.requests += other.requests;
        self.failed += other.failed;
        for (word, count) in &other.errors {
            *self.errors.entry(word.clone()).or_default() += count;
        }
        for (word, text) in &other.error_texts {
            self.error_texts.entry(word.clone()).or_insert_with(|| text.clone());
        }
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
    }
}

impl Second {
    /// Requests answered within it whose answer was no error.
    pub fn successes(&self) -> u64 {
        self.requests.saturating_sub(self.failed)
    }

    /// Counts requests whose answer was no error in one of the ten tenths of the second.
    pub(crate) fn add_to_tenth(&mut self, tenth: usize, count: u64) {
        self.tenths.resize(TENTHS, 0);
        self.tenths[tenth.min(TENTHS - 1)] += count;
    }

    /// Adds the seconds that another recording saw to a timeline; both are in order.
    pub fn merge(timeline: &mut Vec<Second>, others: Vec<Second>) {
        for other in others {
            match timeline.binary_search_by_key(&other.at, |second| second.at) {
                Ok(place) => {
                    let second = &mut timeline[place];
                    second.requests += other.requests;
                    second.failed += other.failed;
                    second.errors += other.errors;
                    for (tenth, count) in other.tenths.iter().enumerate() {
                        second.add_to_tenth(tenth, *count);
                    }
                    second.response.merge(&other.response);
                }
                Err(place) => timeline.insert(place, other),
            }
        }
    }

    /// The timeline with the seconds in which nothing was answered.
    pub fn filled(timeline: Vec<Second>) -> Vec<Second> {
        let mut filled: Vec<Second> = Vec::with_capacity(timeline.len());
        for second in timeline {
            while (filled.len() as u64) < u64::from(second.at) {
                filled.push(Second { at: filled.len() as u32, ..Second::default() });
            }
            filled.push(second);
        }
        filled
    }
}
