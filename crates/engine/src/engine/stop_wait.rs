//! A stop of the server that waits for its replicas. SHUTDOWN ABORT gives it up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// No stop waits.
const NONE: u64 = 0;
/// The one that waits is given up.
const GIVEN_UP: u64 = u64::MAX;

/// See the module's text: until which millisecond of the monotonic clock it waits, or one of the
/// above.
#[derive(Default)]
pub struct StopWait(AtomicU64);

impl StopWait {
    /// A stop waits until this millisecond of the monotonic clock.
    pub fn begin(&self, until: u64) {
        self.0.store(until.clamp(NONE + 1, GIVEN_UP - 1), Relaxed);
    }

    /// The stop waits no longer. Returns whether it was given up.
    pub fn end(&self) -> bool {
        self.0.swap(NONE, Relaxed) == GIVEN_UP
    }

    /// Gives up the stop that waits. Returns whether there is one.
    pub fn give_up(&self) -> bool {
        let waits = |until| (until != NONE && until != GIVEN_UP).then_some(GIVEN_UP);
        self.0.fetch_update(Relaxed, Relaxed, waits).is_ok()
    }

    /// Whether it is given up.
    pub fn is_given_up(&self) -> bool {
        self.0.load(Relaxed) == GIVEN_UP
    }

    /// For how many milliseconds a stop waits at most, if one does.
    pub fn left(&self, monotonic: u64) -> Option<u64> {
        let until = self.0.load(Relaxed);
        (until != NONE && until != GIVEN_UP).then(|| until.saturating_sub(monotonic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_given_up_once_and_while_it_waits() {
        let own = StopWait::default();
        assert!(!own.give_up() && own.left(10).is_none());
        own.begin(30);
        assert_eq!((own.left(10), own.left(40)), (Some(20), Some(0)));
        assert!(!own.is_given_up());
        assert!(own.give_up());
        assert!(!own.give_up() && own.is_given_up() && own.left(10).is_none());
        assert!(own.end());
        own.begin(50);
        assert!(!own.end() && !own.give_up());
    }
}
