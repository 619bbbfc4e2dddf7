//! The counts of one thread so far.

use crate::record::{Latency, OperationRecord, Second, TENTHS};

use super::control::Control;

/// Characters of an error's text that are kept, and kinds of errors of which a text is.
const LONGEST_TEXT: usize = 200;
const MOST_TEXTS: usize = 20;

/// Requests of one operation that were sent together, and are answered one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// When they were due, on the monotonic clock; in a closed loop, when they were sent.
    pub(crate) due: u64,
    /// When they were sent.
    pub(crate) sent: u64,
    /// The operation's place in the plan.
    pub(crate) operation: u32,
    /// How many are not answered yet.
    pub(crate) count: u32,
    /// Whether they belong to the measured part.
    pub(crate) is_measured: bool,
}

/// The counts of one thread.
#[derive(Debug)]
pub(crate) struct Tally {
    /// When the measured part began, on the monotonic clock.
    start: u64,
    /// Whether response and service time differ; if not, only the service time is counted.
    has_due_times: bool,
    pub(crate) operations: Vec<OperationRecord>,
    pub(crate) timeline: Vec<Second>,
    second: Second,
    pub(crate) lateness: Latency,
    pub(crate) held_up: Latency,
    pub(crate) unsent: u64,
    pub(crate) connects: u64,
    pub(crate) resumed: u64,
    pub(crate) redirects: u64,
    pub(crate) socket_errors: u64,
    pub(crate) own_errors: u64,
    /// When the last reply came.
    pub(crate) last_reply: u64,
    /// Counts that the control does not have yet: requests, errors, nanoseconds of response time.
    untold: (u64, u64, u64),
}

/// An error's text for a reader: in one line, and not for ever.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut shown: String = line.take(LONGEST_TEXT).collect();
    if text.chars().count() > LONGEST_TEXT {
        shown.push('…');
    }
    shown
}

impl Tally {
    pub(crate) fn new(names: Vec<String>, has_due_times: bool) -> Self {
        let record = |name| OperationRecord { name, ..OperationRecord::default() };
        Tally {
            start: 0,
            has_due_times,
            operations: names.into_iter().map(record).collect(),
            timeline: Vec::new(),
            second: Second::default(),
            lateness: Latency::new(),
            held_up: Latency::new(),
            unsent: 0,
            connects: 0,
            resumed: 0,
            redirects: 0,
            socket_errors: 0,
            own_errors: 0,
            last_reply: 0,
            untold: (0, 0, 0),
        }
    }

    /// The measured part begins at this time of the monotonic clock.
    pub(crate) fn begin(&mut self, start: u64) {
        self.start = start;
    }

    pub(crate) fn sent(&mut self, operation: usize, bytes: usize) {
        self.operations[operation].sent_bytes += bytes as u64;
    }

    /// Some requests of a flight were answered, `failed` of them with errors, with this many bytes.
    #[inline]
    pub(crate) fn answered(
        &mut self,
        flight: &Flight,
        count: u64,
        failed: u64,
        bytes: u64,
        now: u64,
    ) {
        if !flight.is_measured || count == 0 {
            return;
        }
        let service = now.saturating_sub(flight.sent);
        let response = now.saturating_sub(flight.due);
        self.last_reply = now;
        let operation = &mut self.operations[flight.operation as usize];
        let successes = count.saturating_sub(failed);
        operation.requests += count;
        operation.failed += failed;
        operation.received_bytes += bytes;
        if successes > 0 {
            operation.service.record_many(service, successes);
            if self.has_due_times {
                operation.response.record_many(response, successes);
            }
        }
        let tenth = (now.saturating_sub(self.start) / 100_000_000) as usize % TENTHS;
        let second = self.second_of(now);
        second.requests += count;
        second.failed += failed;
        if successes > 0 {
            second.add_to_tenth(tenth, successes);
            second.response.record_many(response, successes);
        }
        self.untold.0 += count;
        self.untold.2 += response * count;
    }

    /// One answer of a flight was an error with this text.
    pub(crate) fn error(&mut self, flight: &Flight, text: &[u8], now: u64) {
        if flight.is_measured {
            let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
            let kind = String::from_utf8_lossy(word);
            self.count_errors(flight, &kind, 1, now);
            let texts = &mut self.operations[flight.operation as usize].error_texts;
            if word.len() < text.len() && !texts.contains_key(&*kind) && texts.len() < MOST_TEXTS {
                texts.insert(kind.into_owned(), shown(text));
            }
        }
    }

    /// The requests of a flight will never be answered.
    pub(crate) fn lost(&mut self, flight: &Flight, reason: &str, now: u64) {
        if flight.is_measured {
            self.count_errors(flight, reason, u64::from(flight.count), now);
        }
    }

    fn count_errors(&mut self, flight: &Flight, word: &str, count: u64, now: u64) {
        let errors = &mut self.operations[flight.operation as usize].errors;
        match errors.get_mut(word) {
            Some(sum) => *sum += count,
            None => {
                errors.insert(word.to_owned(), count);
            }
        }
        self.second_of(now).errors += count;
        self.untold.1 += count;
    }

    /// The second that a time of the measured part is in.
    #[inline]
    fn second_of(&mut self, now: u64) -> &mut Second {
        let at = (now.saturating_sub(self.start) / 1_000_000_000) as u32;
        if at != self.second.at {
            self.end_second();
            self.second.at = at;
        }
        &mut self.second
    }

    fn end_second(&mut self) {
        if self.second.requests > 0 || self.second.errors > 0 {
            self.timeline.push(std::mem::take(&mut self.second));
        }
    }

    /// Tells how far it is.
    #[inline]
    pub(crate) fn tell(&mut self, control: &Control) {
        if self.untold != (0, 0, 0) {
            let (requests, errors, nanoseconds) = std::mem::take(&mut self.untold);
            control.add(requests, errors, nanoseconds);
        }
    }

    /// Nothing follows any more.
    pub(crate) fn end(&mut self) {
        self.end_second();
        if !self.has_due_times {
            for operation in &mut self.operations {
                operation.response = operation.service.clone();
            }
        }
    }
}
