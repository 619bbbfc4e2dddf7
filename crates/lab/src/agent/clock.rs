//! Measures how much the clock of an agent differs from ours, by asking it for the time several
//! times: the answer that took the shortest time has the smallest error.

/// One question and its answer, in nanoseconds of Unix time.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockSample {
    /// When we asked, on our clock.
    pub(super) asked: u64,
    /// When the question came there, on the agent's clock.
    pub(super) received: u64,
    /// When the answer left there, on the agent's clock.
    pub(super) sent: u64,
    /// When the answer came, on our clock.
    pub(super) answered: u64,
}

/// How two clocks lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Nanoseconds to add to our time to get the agent's.
    pub(super) offset: i64,
    /// The time there and back, in nanoseconds; the error of the offset is half of it at most.
    pub(super) delay: i64,
}

/// The difference by the formula of NTP, from the answer that was on the way for the shortest time.
pub(super) fn difference(answers: &[ClockSample]) -> Difference {
    let of = |one: &ClockSample| {
        let there = one.received as i64 - one.asked as i64;
        let back = one.sent as i64 - one.answered as i64;
        Difference { offset: there.midpoint(back), delay: (there - back).max(0) }
    };
    let all = answers.iter().map(of);
    all.min_by_key(|one| one.delay).unwrap_or(Difference { offset: 0, delay: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_answer_counts() {
        // The agent's clock is 1000 ahead. The first answer was delayed on its way back.
        let slow = ClockSample { asked: 0, received: 1010, sent: 1011, answered: 500 };
        let quick = ClockSample { asked: 600, received: 1610, sent: 1612, answered: 622 };
        assert_eq!(difference(&[slow, quick]), Difference { offset: 1000, delay: 20 });
        let behind = ClockSample { asked: 5000, received: 10, sent: 10, answered: 5020 };
        assert_eq!(difference(&[behind]).offset, -5000);
    }
}
