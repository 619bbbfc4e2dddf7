//! Deadlines of blocked clients, the nearest first.

use std::collections::BTreeSet;
use std::time::Duration;

/// A worker's deadlines, each with the place of its connection.
#[derive(Default)]
pub(super) struct Timers(BTreeSet<(u64, usize)>);

impl Timers {
    /// Exchanges the deadline of the connection at `place`, in milliseconds of the steady clock. A
    /// deadline that passed or was given up leaves nothing behind.
    pub(super) fn change(&mut self, place: usize, old: Option<u64>, new: Option<u64>) {
        if let Some(due) = old {
            self.0.remove(&(due, place));
        }
        if let Some(due) = new {
            self.0.insert((due, place));
        }
    }

    /// A deadline that has passed: the place of its connection.
    pub(super) fn due(&mut self, now: u64) -> Option<usize> {
        let &(due, place) = self.0.first()?;
        if due > now {
            return None;
        }
        self.0.pop_first();
        Some(place)
    }

    /// Time to the next deadline, if there is one; `now` reads the steady clock, in milliseconds.
    pub(super) fn wait(&self, now: impl FnOnce() -> u64) -> Option<Duration> {
        let (due, _) = self.0.first()?;
        Some(Duration::from_millis(due.saturating_sub(now())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_served_leaves_nothing_behind() {
        let mut timers = Timers::default();
        timers.change(3, None, Some(500));
        for due in 1_000..2_000 {
            timers.change(7, None, Some(due));
            timers.change(7, Some(due), None);
        }
        assert_eq!(timers.0.len(), 1);
        timers.change(7, None, Some(400));
        timers.change(7, Some(400), Some(600));
        assert_eq!(timers.wait(|| 450), Some(Duration::from_millis(50)));
        assert_eq!(timers.due(499), None);
        assert_eq!((timers.due(700), timers.due(700), timers.due(700)), (Some(3), Some(7), None));
    }
}
