//! Processor time of the calling thread, and the time that it waited for a processor.
#![allow(unsafe_code)]

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

use crate::record::Latency;

/// How often to check how long the thread has waited, in nanoseconds.
const LOOK: u64 = 10_000_000;
/// What waking up may cost each time that the thread gets a processor, in nanoseconds: an idle
/// processor takes some microseconds to begin.
const WAKING: u64 = 20_000;

/// Processor time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl Usage {
    /// What the calling thread has used since it began.
    pub(crate) fn of_this_thread() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a live variable of the right type, and all-zero bytes are a
        // valid value of it in case the call fails, which it does for no thread.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Usage { user: seconds(usage.ru_utime), system: seconds(usage.ru_stime) }
    }

    /// What was used since an earlier look.
    pub(crate) fn since(self, earlier: Usage) -> Usage {
        Usage { user: self.user - earlier.user, system: self.system - earlier.system }
    }

    pub(crate) fn total(self) -> f64 {
        self.user + self.system
    }
}

/// Measures how long the calling thread was ready and had no processor. Neither the due times nor
/// the clock show that when all connections wait: the pause would be charged to the server.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The kernel's account of the thread; `None` where it keeps none.
    file: Option<File>,
    looked: u64,
    /// The nanoseconds waited and the turns on a processor, up to then.
    account: (u64, u64),
}

impl Watch {
    /// Begins to watch the calling thread.
    pub(crate) fn begin(now: u64) -> Self {
        let file = File::open("/proc/thread-self/schedstat").ok();
        let account = file.as_ref().and_then(read);
        Watch {
            file: file.filter(|_| account.is_some()),
            looked: now,
            account: account.unwrap_or_default(),
        }
    }

    /// Records how long it has waited since the last look, if that was 10 ms ago: a value for each
    /// 10 ms, those of the wait with its length and the others with nothing.
    #[inline]
    pub(crate) fn look(&mut self, now: u64, held_up: &mut Latency) {
        if now.saturating_sub(self.looked) >= LOOK {
            self.record(now, held_up);
        }
    }

    fn record(&mut self, now: u64, held_up: &mut Latency) {
        let Some(account) = self.file.as_ref().and_then(read) else { return };
        let elapsed = now.saturating_sub(self.looked);
        spread(excess(self.account, account, elapsed), elapsed, held_up);
        (self.looked, self.account) = (now, account);
    }
}

/// Records a wait within some time: as many values as there were 10 ms, and only as many of them
/// for the wait as it filled. The last of these has the remainder, so that all together are no
/// longer than the wait when each counts 10 ms at most.
fn spread(waited: u64, elapsed: u64, held_up: &mut Latency) {
    let (all, full, rest) = (elapsed / LOOK, waited / LOOK, waited % LOOK);
    held_up.record_many(waited, full);
    // When a wait filled the time to its end, its remainder fell into no complete 10 ms.
    let partial = u64::from(rest > 0 && full < all);
    held_up.record_many(rest, partial);
    held_up.record_many(0, all.saturating_sub(full + partial));
}

/// How long a thread waited for a processor between two accounts, beyond the cost of waking it up.
fn excess(before: (u64, u64), after: (u64, u64), elapsed: u64) -> u64 {
    let waited = after.0.saturating_sub(before.0);
    let turns = after.1.saturating_sub(before.1);
    waited.saturating_sub(turns.saturating_mul(WAKING)).min(elapsed)
}

/// The second and the third number of schedstat: nanoseconds on the run queue, and turns.
fn read(file: &File) -> Option<(u64, u64)> {
    let mut buffer = [0; 96];
    let length = file.read_at(&mut buffer, 0).ok()?;
    parse(std::str::from_utf8(&buffer[..length]).ok()?)
}

fn parse(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_whitespace().skip(1).map_while(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_account_is_understood() {
        assert_eq!(parse("8187379 4711 12\n"), Some((4711, 12)));
        assert_eq!(parse("8187379 4711"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn each_ten_milliseconds_count_once() {
        let mut watch = Watch::begin(0);
        let (mut held_up, has_account) = (Latency::new(), watch.file.is_some());
        watch.look(LOOK - 1, &mut held_up);
        assert_eq!(held_up.count(), 0);
        watch.look(300_000_000, &mut held_up);
        assert_eq!(held_up.count(), if has_account { 30 } else { 0 });
    }

    #[test]
    fn a_wait_is_counted_for_as_long_as_it_was() {
        // 15 ms of 50: one fifth waited for all of it, one fifth for half of its 10 ms, the rest
        // not at all.
        let mut held_up = Latency::new();
        spread(15_000_000, 50_000_000, &mut held_up);
        let above = |nanoseconds: u64| held_up.histogram().count_between(nanoseconds, u64::MAX);
        assert_eq!((held_up.count(), above(14_000_000), above(4_000_000)), (5, 1, 2));
        let mut whole = Latency::new();
        spread(50_000_000, 50_000_000, &mut whole);
        assert_eq!((whole.count(), whole.min_ms().round()), (5, 50.0));
        let mut none = Latency::new();
        spread(0, 39_000_000, &mut none);
        assert_eq!((none.count(), none.histogram().count_between(10_000, u64::MAX)), (3, 0));
    }

    #[test]
    fn waking_up_is_forgiven_and_waiting_is_not() {
        // A hundred turns that took 15 us each to begin, and one that took 7 ms.
        let before = (1_000, 10);
        let after = (1_000 + 100 * 15_000 + 7_000_000, 111);
        assert_eq!(excess(before, (1_000 + 100 * 15_000, 110), LOOK), 0);
        assert_eq!(excess(before, after, LOOK), 6_480_000);
        assert_eq!(excess(before, after, 1_000), 1_000, "not longer than there was time");
    }
}
