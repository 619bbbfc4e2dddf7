//! Slows writers down for a replica that falls behind, before its link has to end.
//!
//! A replica that is let go because too much waits for it comes back and asks for all data, and
//! falls behind again while it gets them. So before that, writers get only a part of the time, the
//! smaller the more waits for the replica. What they lose is bounded: in each period of
//! [`PERIOD_MS`] writes wait for nine tenths of it at most. Nobody is slowed down for a replica
//! that takes nothing, or so little that it could not catch up within [`CATCHES_UP_WITHIN`]
//! seconds: it would be let go in any case.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

/// Writes wait at the beginning of each of these periods, in milliseconds.
pub const PERIOD_MS: u64 = 100;

/// Tenths of a period for which they wait at most.
pub const MOST_TENTHS: u8 = 9;

/// A replica for which writers wait has to be able to catch up within so many seconds, at the pace
/// at which it takes the stream.
pub const CATCHES_UP_WITHIN: u64 = 60;

/// See the module's text.
#[derive(Default)]
pub struct Slowing {
    tenths: AtomicU8,
}

impl Slowing {
    /// Tenths of the time for which writes wait.
    #[inline]
    pub fn tenths(&self) -> u8 {
        self.tenths.load(Relaxed)
    }

    /// Has writes wait for so many tenths of the time. Returns how many it were before.
    pub fn set(&self, tenths: u8) -> u8 {
        self.tenths.swap(tenths.min(MOST_TENTHS), Relaxed)
    }

    /// Until when writes wait, if they do at this millisecond of the monotonic clock.
    #[inline]
    pub fn until(&self, monotonic: u64) -> Option<u64> {
        let tenths = self.tenths();
        if tenths == 0 {
            return None;
        }
        let (begin, end) = (monotonic % PERIOD_MS, u64::from(tenths) * (PERIOD_MS / 10));
        (begin < end).then(|| monotonic + end - begin)
    }
}

/// Tenths of the time for which writes wait for a replica for which so many bytes wait, of which it
/// takes so many in a second. Its link ends when more than `limit` wait; 0 is no limit.
pub fn tenths_for(waiting: u64, pace: u64, limit: u64) -> u8 {
    let from = limit / 2;
    let is_hopeless = pace.saturating_mul(CATCHES_UP_WITHIN) < waiting;
    if limit == 0 || waiting <= from || is_hopeless {
        return 0;
    }
    // From one tenth at half of the limit on, to the most before the limit is reached.
    let share = u128::from(waiting - from) * u128::from(MOST_TENTHS) / u128::from(limit - from);
    (share as u64 + 1).min(u64::from(MOST_TENTHS)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_wait_for_a_part_of_each_period() {
        let slowing = Slowing::default();
        assert!((0..1000).all(|now| slowing.until(now).is_none()));
        for tenths in 1..=10 {
            slowing.set(tenths);
            let waiting = (5000..5000 + 10 * PERIOD_MS).filter(|now| slowing.until(*now).is_some());
            let expected = u64::from(tenths.min(MOST_TENTHS)) * PERIOD_MS;
            assert_eq!(waiting.count() as u64, expected);
        }
        let until = slowing.until(5000).unwrap();
        assert_eq!(until, 5000 + PERIOD_MS / 10 * u64::from(MOST_TENTHS));
        assert_eq!(slowing.until(until), None, "then they run");
    }

    #[test]
    fn the_more_waits_the_longer_writes_wait() {
        let fast = 1 << 20;
        let of = |waiting| tenths_for(waiting, fast, 1000);
        assert_eq!([0, 500, 501, 600, 999, 5000].map(of), [0, 0, 1, 2, 9, 9]);
        assert_eq!(tenths_for(u64::MAX, u64::MAX, u64::MAX), MOST_TENTHS);
    }

    #[test]
    fn nobody_waits_for_a_replica_that_will_not_catch_up() {
        assert_eq!(tenths_for(900, 0, 1000), 0);
        assert_eq!(tenths_for(900, 14, 1000), 0);
        assert!(tenths_for(900, 15, 1000) > 0);
        assert_eq!(tenths_for(900, 15, 0), 0, "its link does not end");
    }
}
