//! The progress line of a load, and the watch for Ctrl-C.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::load::{Control, Progress};
use crate::targets::Interrupt;

/// How often it is looked for an interruption.
const LOOK: Duration = Duration::from_millis(20);
/// How often the line is written.
const LINE: Duration = Duration::from_millis(250);

/// Runs `action` while another thread shows its progress, and stops it when interrupted.
pub(super) fn beside<T>(
    title: &str,
    control: &Control,
    interrupt: &Interrupt,
    shows: bool,
    action: impl FnOnce() -> T,
) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(title, control, interrupt, shows, &is_over));
        let result = action();
        is_over.store(true, Ordering::Release);
        watcher.thread().unpark();
        result
    })
}

fn watch(title: &str, control: &Control, interrupt: &Interrupt, shows: bool, is_over: &AtomicBool) {
    let (mut last, mut written, mut width) = (Progress::default(), Instant::now(), 0);
    while !is_over.load(Ordering::Acquire) {
        thread::park_timeout(LOOK);
        if interrupt.is_set() {
            control.stop();
        }
        if shows && written.elapsed() >= LINE {
            written = Instant::now();
            let now = control.progress();
            let text = line(title, &last, &now);
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

/// The rate and the mean latency, since the last line and overall.
fn line(title: &str, last: &Progress, now: &Progress) -> String {
    let per = |amount: f64, of: f64| if of > 0.0 { amount / of } else { 0.0 };
    let requests = now.requests.saturating_sub(last.requests) as f64;
    let mut text = format!(
        "{title}: rps={:.1} (overall: {:.1}) avg_msec={:.3} (overall: {:.3})",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_the_last_while_from_the_whole() {
        let last = Progress { seconds: 1.0, requests: 1000, errors: 0, response_ms: 500.0 };
        let now = Progress { seconds: 1.5, requests: 2000, errors: 3, response_ms: 2500.0 };
        assert_eq!(
            line("SET", &last, &now),
            "SET: rps=2000.0 (overall: 1333.3) avg_msec=2.000 (overall: 1.250) errors=3"
        );
        let none = Progress::default();
        let zero = "SET: rps=0.0 (overall: 0.0) avg_msec=0.000 (overall: 0.000)";
        assert_eq!(line("SET", &none, &none), zero);
    }

    #[test]
    fn an_interruption_stops_the_load() {
        let (control, interrupt) = (Control::default(), Interrupt::default());
        interrupt.set();
        beside("x", &control, &interrupt, false, || {
            while !control.is_stopped() {
                thread::yield_now();
            }
        });
    }
}
