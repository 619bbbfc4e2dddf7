//! The times at which the requests of an open load are due.

use base::rng::Rng;

use super::Schedule;

/// The due times of one thread, without end.
#[derive(Debug)]
pub(crate) struct DueTimes {
    /// Nanoseconds of the monotonic clock, whose zero is in this process: a float represents them
    /// exactly for months.
    next: f64,
    /// The mean time between two requests of this thread, in nanoseconds.
    gap: f64,
    schedule: Schedule,
    random: Rng,
}

impl DueTimes {
    /// The share of the thread `thread` of `threads` in `rate` requests a second from `start`, or
    /// from a share `phase` of the time between two of these requests later.
    pub(crate) fn new(
        rate: f64,
        schedule: Schedule,
        (start, phase): (u64, f64),
        thread: usize,
        threads: usize,
        seed: u64,
    ) -> Self {
        let gap = 1e9 * threads as f64 / rate;
        let mut due = DueTimes {
            next: start as f64,
            gap,
            schedule,
            random: Rng::from_seed(seed ^ 0x5eed_u64.wrapping_mul(thread as u64 + 1)),
        };
        match schedule {
            // Threads take turns, so that all together are even.
            Schedule::Constant => due.next += gap * (thread as f64 + phase) / threads as f64,
            Schedule::Poisson => due.advance(),
        }
        due
    }

    /// When the next request is due.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next as u64
    }

    /// Goes on to the request after it.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.next += match self.schedule {
            Schedule::Constant => self.gap,
            // 1 - x is never 0, so that its logarithm is finite.
            Schedule::Poisson => -(1.0 - self.random.f64()).ln() * self.gap,
        };
    }

    /// Goes on to the first request that is due at `until` or later, and returns how many were due
    /// before it. Of very many only the last are drawn one by one, and the rest counted by the
    /// rate: drawing all requests that a rate of a thousand million leaves behind took ten times as
    /// long as the load.
    pub(crate) fn pass(&mut self, until: u64) -> u64 {
        const DRAWN: f64 = 10_000.0;
        let mut passed = 0;
        let far = ((until as f64 - self.next) / self.gap - DRAWN).floor();
        if far > 0.0 {
            self.next += far * self.gap;
            passed = far as u64;
        }
        while self.next() < until {
            passed += 1;
            self.advance();
        }
        passed
    }

    /// About how many requests are due at a time.
    pub(crate) fn overdue(&self, now: u64) -> usize {
        let overdue = now as f64 - self.next;
        if overdue < 0.0 { 0 } else { (overdue / self.gap) as usize + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(schedule: Schedule, thread: usize, threads: usize, count: usize) -> Vec<u64> {
        let mut due = DueTimes::new(1000.0, schedule, (5_000_000, 0.0), thread, threads, 3);
        (0..count)
            .map(|_| {
                let next = due.next();
                due.advance();
                next
            })
            .collect()
    }

    #[test]
    fn constant_times_of_all_threads_are_even() {
        let mut all: Vec<u64> =
            (0..2).flat_map(|thread| times(Schedule::Constant, thread, 2, 50)).collect();
        all.sort_unstable();
        assert_eq!(all[0], 5_000_000);
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000));
    }

    #[test]
    fn agents_that_share_a_schedule_take_turns() {
        // Two agents with half of the rate each, on one and on two threads.
        for threads in [1, 2] {
            let mut all = Vec::new();
            for phase in [0.0, 0.5] {
                for thread in 0..threads {
                    let start = (5_000_000, phase);
                    let mut due =
                        DueTimes::new(500.0, Schedule::Constant, start, thread, threads, 3);
                    for _ in 0..20 / threads {
                        all.push(due.next());
                        due.advance();
                    }
                }
            }
            all.sort_unstable();
            assert!(all.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000), "{all:?}");
        }
    }

    #[test]
    fn poisson_times_have_the_rate_and_the_spread_of_chance() {
        let times = times(Schedule::Poisson, 0, 1, 100_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
        // Of exponential gaps, 1 / e are longer than their mean.
        let longer = gaps.iter().filter(|gap| **gap > 1e6).count() as f64 / gaps.len() as f64;
        assert!((longer - (-1f64).exp()).abs() < 0.01, "{longer}");
    }

    #[test]
    fn what_is_passed_over_is_counted_however_much_it_is() {
        for schedule in [Schedule::Constant, Schedule::Poisson] {
            let mut due = DueTimes::new(1e9, schedule, (0, 0.0), 0, 1, 3);
            // A million seconds: one by one it would take days.
            let until = 1_000_000_000_000_000;
            let passed = due.pass(until) as f64;
            assert!((passed / until as f64 - 1.0).abs() < 1e-3, "{passed}");
            assert!(due.next() >= until);
            let mut few = DueTimes::new(1000.0, schedule, (0, 0.0), 0, 1, 3);
            let mut one_by_one = DueTimes::new(1000.0, schedule, (0, 0.0), 0, 1, 3);
            let mut count = 0;
            while one_by_one.next() < 2_000_000_000 {
                one_by_one.advance();
                count += 1;
            }
            assert_eq!((few.pass(2_000_000_000), few.next()), (count, one_by_one.next()));
            assert_eq!(few.pass(0), 0);
        }
    }

    #[test]
    fn what_is_overdue_is_counted() {
        let due = DueTimes::new(1000.0, Schedule::Constant, (5_000_000, 0.0), 0, 1, 3);
        assert_eq!(due.overdue(4_999_999), 0);
        assert_eq!(due.overdue(5_000_000), 1);
        assert_eq!(due.overdue(8_500_000), 4);
    }
}
