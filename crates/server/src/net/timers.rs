//! Deadlines of blocked clients, the nearest first.

use std::collections::BTreeSet;
use std::time::Duration;

/// A worker's deadlines, each with the index of its connection.
#[derive(Default)]
pub(super) struct Timers(BTreeSet<(u64, usize)>);

impl Timers {
    /// Exchanges the deadline of the connection at `index`, in milliseconds of the monotonic clock.
    /// A deadline that passed or was given up leaves nothing behind.
    pub(super) fn change(&mut self, index: usize, old: Option<u64>, new: Option<u64>) {
        if let Some(deadline) = old {
            self.0.remove(&(deadline, index));
        }
        if let Some(deadline) = new {
            self.0.insert((deadline, index));
        }
    }

    /// A deadline that has passed: the index of its connection.
    pub(super) fn expired(&mut self, now: u64) -> Option<usize> {
        let &(deadline, index) = self.0.first()?;
        if deadline > now {
            return None;
        }
        self.0.pop_first();
        Some(index)
    }

    /// Time to the next deadline, if there is one; `now` reads the monotonic clock, in
    /// milliseconds.
    pub(super) fn wait(&self, now: impl FnOnce() -> u64) -> Option<Duration> {
        let (deadline, _) = self.0.first()?;
        Some(Duration::from_millis(deadline.saturating_sub(now())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_served_leaves_nothing_behind() {
        let mut timers = Timers::default();
        timers.change(3, None, Some(500));
        for deadline in 1_000..2_000 {
            timers.change(7, None, Some(deadline));
            timers.change(7, Some(deadline), None);
        }
        assert_eq!(timers.0.len(), 1);
        timers.change(7, None, Some(400));
        timers.change(7, Some(400), Some(600));
        assert_eq!(timers.wait(|| 450), Some(Duration::from_millis(50)));
        assert_eq!(timers.expired(499), None);
        assert_eq!(
            (timers.expired(700), timers.expired(700), timers.expired(700)),
            (Some(3), Some(7), None)
        );
    }
}
