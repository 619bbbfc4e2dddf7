//! How long ago something was, also where the machine of the tool has slept since.

use std::time::{Duration, Instant, SystemTime};

/// A moment that pauses of servers are measured from.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    /// It stands still while the machine sleeps.
    steady: Instant,
    /// Somebody may set it.
    wall: SystemTime,
}

impl Moment {
    pub(crate) fn now() -> Moment {
        Moment { steady: Instant::now(), wall: SystemTime::now() }
    }

    /// How long ago that was, or longer.
    pub(crate) fn elapsed(&self) -> Duration {
        self.steady.elapsed().max(self.wall.elapsed().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_either_clock_has_seen_is_past() {
        let hour = Duration::from_secs(3600);
        let slept = Moment { wall: SystemTime::now() - hour, ..Moment::now() };
        assert!(slept.elapsed() >= hour);
        let set_back = Moment { wall: SystemTime::now() + hour, ..Moment::now() };
        assert!(set_back.elapsed() < hour);
    }
}
