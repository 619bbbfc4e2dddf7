//! Deadlines of blocked clients, the nearest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// A worker's deadlines. Those that were met or given up stay until they are due; the client's
/// number tells whether they still mean anything.
#[derive(Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(u64, usize, u64)>>);

impl Timers {
    /// Remembers that the client at `place` is due at that millisecond of the steady clock.
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

    /// Time to the next deadline, if there is one; `now` reads the steady clock, in milliseconds.
    pub(super) fn wait(&self, now: impl FnOnce() -> u64) -> Option<Duration> {
        let Reverse((due, ..)) = self.0.peek()?;
        Some(Duration::from_millis(due.saturating_sub(now())))
    }
}
