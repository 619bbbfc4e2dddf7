//! Deadlines of blocked clients, the nearest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A worker's deadlines. Those that were met or given up stay until they are due; the client's
/// number tells whether they still mean anything.
#[derive(Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(u64, usize, u64)>>);

impl Timers {
    /// Remembers that the client at `place` is due at a Unix millisecond.
    pub(super) fn add(&mut self, due: u64, place: usize, client: u64) {
        self.0.push(Reverse((due, place, client)));
    }

    /// The next deadline that has come: (place, client).
    pub(super) fn due(&mut self, now: u64) -> Option<(usize, u64)> {
        let Reverse((due, place, client)) = *self.0.peek()?;
        if due > now {
            return None;
        }
        self.0.pop();
        Some((place, client))
    }

    /// Milliseconds to the next deadline.
    pub(super) fn wait(&self, now: u64) -> Option<u64> {
        self.0.peek().map(|Reverse((due, ..))| due.saturating_sub(now))
    }
}
