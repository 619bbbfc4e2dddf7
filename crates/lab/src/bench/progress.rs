//! The progress line of a load, and the watch for Ctrl-C.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::experiment::progress::in_words;
use crate::load::{Control, Progress};
use crate::targets::Interrupt;

/// How often it is looked for an interruption.
const LOOK: Duration = Duration::from_millis(20);
/// How often the line is written.
const LINE: Duration = Duration::from_millis(250);

/// Runs `action` while another thread shows its progress, and stops it when interrupted.
pub(super) fn beside<T>(
    shown: Option<&Shown<'_>>,
    control: &Control,
    interrupt: &Interrupt,
    action: impl FnOnce() -> T,
) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(shown, control, interrupt, &is_over));
        let result = action();
        is_over.store(true, Ordering::Release);
        watcher.thread().unpark();
        result
    })
}

fn watch(
    shown: Option<&Shown<'_>>,
    control: &Control,
    interrupt: &Interrupt,
    is_over: &AtomicBool,
) {
    let (mut last, mut written, mut width) = (Progress::default(), Instant::now(), 0);
    while !is_over.load(Ordering::Acquire) {
        thread::park_timeout(LOOK);
        if interrupt.is_set() {
            control.stop();
        }
        if let Some(shown) = shown.filter(|_| written.elapsed() >= LINE) {
            written = Instant::now();
            let now = control.progress();
            let text = shown.line(&last, &now);
            // The user at the terminal has other output than this line.
            let _ = write!(io::stderr(), "\r{text:width$}");
            width = text.len();
            last = now;
        }
    }
    if width > 0 {
        let _ = write!(io::stderr(), "\r{:width$}\r", "");
    }
}

/// What the line is about.
pub(super) struct Shown<'a> {
    /// The load's name.
    pub(super) title: &'a str,
    /// Which of how many loads it is, from 1.
    pub(super) place: (usize, usize),
    /// Requests after which it ends.
    pub(super) requests: Option<u64>,
    /// Seconds after which it ends.
    pub(super) seconds: Option<f64>,
}

impl Shown<'_> {
    /// How much of the load is done, and how many seconds it goes on, if that can be told already.
    fn done(&self, now: &Progress) -> Option<(f64, f64)> {
        let by_requests = self.requests.map(|of| {
            let share = (now.requests as f64 / of.max(1) as f64).min(1.0);
            (share, now.seconds * (1.0 / share - 1.0))
        });
        let by_time = self.seconds.map(|of| {
            let of = of.max(f64::MIN_POSITIVE);
            ((now.seconds / of).min(1.0), (of - now.seconds).max(0.0))
        });
        // Of two bounds the first that is reached ends it.
        let both = by_requests.into_iter().chain(by_time);
        let done = both.min_by(|(_, one), (_, other)| one.total_cmp(other));
        done.filter(|(_, left)| left.is_finite())
    }

    /// How far it is, the rate and the mean latency, since the last line and overall.
    fn line(&self, last: &Progress, now: &Progress) -> String {
        let per = |amount: f64, of: f64| if of > 0.0 { amount / of } else { 0.0 };
        let requests = now.requests.saturating_sub(last.requests) as f64;
        let place = match self.place {
            (_, 1) => String::new(),
            (at, of) => format!("[{at}/{of}] "),
        };
        let done = self.done(now).map_or(String::new(), |(share, left)| {
            format!("{:.0} %, {} left, ", (share * 100.0).floor(), in_words(left.ceil()))
        });
        let mut text = format!(
            "{place}{}: {done}rps={:.1} (overall: {:.1}) avg_msec={:.3} (overall: {:.3})",
            self.title,
            per(requests, now.seconds - last.seconds),
            per(now.requests as f64, now.seconds),
            per(now.response_ms - last.response_ms, requests),
            per(now.response_ms, now.requests as f64),
        );
        if now.errors > 0 {
            text.push_str(&format!(" errors={}", now.errors));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_the_last_while_from_the_whole() {
        let last = Progress { seconds: 1.0, requests: 1000, errors: 0, response_ms: 500.0 };
        let now = Progress { seconds: 1.5, requests: 2000, errors: 3, response_ms: 2500.0 };
        let endless = Shown { title: "SET", place: (1, 1), requests: None, seconds: None };
        assert_eq!(
            endless.line(&last, &now),
            "SET: rps=2000.0 (overall: 1333.3) avg_msec=2.000 (overall: 1.250) errors=3"
        );
        let none = Progress::default();
        let zero = "SET: rps=0.0 (overall: 0.0) avg_msec=0.000 (overall: 0.000)";
        assert_eq!(endless.line(&none, &none), zero);
    }

    #[test]
    fn the_line_tells_how_far_it_is() {
        let now = Progress { seconds: 2.0, requests: 1000, errors: 0, response_ms: 0.0 };
        let shown = |requests, seconds| Shown { title: "GET", place: (2, 3), requests, seconds };
        let begins = |shown: &Shown<'_>, now: &Progress| {
            let line = shown.line(&Progress::default(), now);
            line.split(" rps=").next().unwrap_or_default().to_owned()
        };
        assert_eq!(begins(&shown(Some(4000), None), &now), "[2/3] GET: 25 %, 6 s left,");
        assert_eq!(begins(&shown(None, Some(10.0)), &now), "[2/3] GET: 20 %, 8 s left,");
        assert_eq!(begins(&shown(Some(2000), Some(10.0)), &now), "[2/3] GET: 50 %, 2 s left,");
        assert_eq!(begins(&shown(Some(500), None), &now), "[2/3] GET: 100 %, 0 s left,");
        let none = Progress::default();
        assert_eq!(begins(&shown(Some(4000), None), &none), "[2/3] GET:", "nobody knows yet");
    }

    #[test]
    fn an_interruption_stops_the_load() {
        let (control, interrupt) = (Control::default(), Interrupt::default());
        interrupt.set();
        beside(None, &control, &interrupt, || {
            while !control.is_stopped() {
                thread::yield_now();
            }
        });
    }
}
