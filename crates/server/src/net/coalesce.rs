//! Waiting a moment so that more requests come at once.
//!
//! A worker that is faster than its clients finds one or two requests each time it looks, and goes
//! to sleep in between: the waits and wake-ups then cost more than the requests. Network cards meet
//! the same problem by coalescing interrupts, and so does this: while many connections send many
//! requests, the worker sleeps until about a quarter of those connections have sent the next one,
//! but never longer than [`LONGEST`]. Few connections, or few requests, are answered at once.
//! What this gains and costs is in `docs/decisions/0002-coalescing.md`.

use std::time::Duration;

/// The longest pause.
const LONGEST: Duration = Duration::from_micros(50);
/// How long requests are counted before the pause is chosen anew, in microseconds.
const WINDOW_US: u64 = 1000;
/// Connections that must have sent something in a window. With fewer, all of them soon wait for the
/// one that pauses.
const ACTIVE_LEAST: u32 = 16;
/// Readable sockets that a window must have seen.
const EVENTS_LEAST: u32 = 64;

/// Bytes for each readable socket, on average, from which on it is not waiting and waking that costs:
/// large values are better taken while they are in the processor's cache.
const BYTES_MOST: u64 = 4096;

/// What a worker has seen lately, and how long it pauses.
#[derive(Default)]
pub(super) struct Coalescing {
    /// Number of the present window.
    window: u32,
    began_us: u64,
    /// Readable sockets in this window.
    events: u32,
    /// Connections among them.
    active: u32,
    /// Bytes that came in this window.
    bytes: u64,
    pause: Option<Duration>,
}

impl Coalescing {
    /// Counts a readable socket; `last_window` is its connection's note of when it was counted last.
    #[inline]
    pub(super) fn note_event(&mut self, last_window: &mut u32) {
        self.events += 1;
        if *last_window != self.window {
            *last_window = self.window;
            self.active += 1;
        }
    }

    /// Counts bytes that were received.
    #[inline]
    pub(super) fn note_bytes(&mut self, count: usize) {
        self.bytes += count as u64;
    }

    /// How long to pause before looking for events again; `now_us` is the time of the turn.
    #[inline]
    pub(super) fn pause(&mut self, now_us: u64) -> Option<Duration> {
        let elapsed = now_us.saturating_sub(self.began_us);
        if elapsed >= WINDOW_US {
            let large = self.bytes > u64::from(self.events) * BYTES_MOST;
            self.pause = if large { None } else { chosen(self.events, self.active, elapsed) };
            *self = Coalescing {
                window: self.window.wrapping_add(1),
                began_us: now_us,
                pause: self.pause,
                ..Coalescing::default()
            };
        }
        self.pause
    }
}

fn chosen(events: u32, active: u32, elapsed_us: u64) -> Option<Duration> {
    let many = active >= ACTIVE_LEAST
        && u64::from(events) * WINDOW_US >= u64::from(EVENTS_LEAST) * elapsed_us;
    let quarter_us = elapsed_us * u64::from(active) / (4 * u64::from(events.max(1)));
    many.then(|| Duration::from_micros(quarter_us).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pause after a window in which `active` connections sent `each` requests.
    fn after(active: u32, each: u32, elapsed_us: u64) -> Option<Duration> {
        let mut coalescing = Coalescing::default();
        assert_eq!(coalescing.pause(10_000), None);
        let mut windows = vec![0; active as usize];
        for _ in 0..each {
            windows.iter_mut().for_each(|window| coalescing.note_event(window));
        }
        coalescing.pause(10_000 + elapsed_us)
    }

    #[test]
    fn few_connections_or_few_requests_are_answered_at_once() {
        assert_eq!(after(0, 0, 1000), None);
        assert_eq!(after(15, 100, 1000), None);
        assert_eq!(after(50, 1, 1000), None);
        assert_eq!(after(1000, 1, 100_000), None);
    }

    #[test]
    fn a_quarter_of_many_is_waited_for_but_never_long() {
        assert_eq!(after(16, 10, 1000), Some(Duration::from_micros(25)));
        assert_eq!(after(1000, 5, 1000), Some(LONGEST));
        assert_eq!(after(200, 1, 1000), Some(LONGEST));
    }

    #[test]
    fn large_values_are_taken_at_once() {
        let mut coalescing = Coalescing::default();
        coalescing.pause(10_000);
        (0..100).for_each(|_| coalescing.note_event(&mut 0));
        let mut windows = [0; 50];
        windows.iter_mut().for_each(|window| coalescing.note_event(window));
        coalescing.note_bytes(150 * 10_000);
        assert_eq!(coalescing.pause(11_000), None);
    }

    #[test]
    fn the_pause_ends_with_the_requests() {
        let mut coalescing = Coalescing::default();
        let mut windows = [0; 100];
        coalescing.pause(1_000);
        windows.iter_mut().for_each(|window| coalescing.note_event(window));
        assert!(coalescing.pause(2_000).is_some());
        assert!(coalescing.pause(2_500).is_some(), "within the next window");
        assert!(coalescing.pause(3_000).is_none());
    }
}
