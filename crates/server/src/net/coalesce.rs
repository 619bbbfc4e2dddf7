//! Waiting a moment so that more requests come at once.
//!
//! A worker that is faster than its clients finds one or two requests each time it looks, and goes
//! to sleep in between: the waits and wake-ups then cost more than the requests. Network cards have
//! the same problem and coalesce interrupts; this does the same. While many connections send many
//! requests, the worker sleeps until about a quarter of those connections have sent the next one,
//! but never longer than [`LONGEST`]. The worker answers at once when there are few connections or
//! few requests, or when pauses turn out to cost throughput ([`super::trial`]). What this gains and
//! costs is in `docs/decisions/0002-coalescing.md`.
//!
//! When nearly all replies wait for a sync of the journal, requests taken in small portions cost
//! more still, because each portion asks for a sync of its own. Then the worker lets a quarter of
//! its busy connections gather before it takes any requests, up to [`LONGEST_GATHERING`], and looks
//! at no socket while the sync goes on (`docs/decisions/0005-one-sync-for-many.md`).

use std::time::Duration;

use super::trial::Trial;

/// The longest pause.
const LONGEST: Duration = Duration::from_micros(50);
/// The longest pause before requests whose replies will wait for a sync, which takes about as long.
const LONGEST_GATHERING: Duration = Duration::from_micros(200);
/// How long requests are counted before the pause is chosen again, in microseconds.
const WINDOW_US: u64 = 1000;
/// Connections that must have sent something in a window. With fewer, all of them would soon wait
/// for the pausing one.
const ACTIVE_LEAST: u32 = 16;
/// Windows over which busy connections are counted; a quarter of these should gather. In one window
/// not all connections of a slow client send something.
const WINDOWS: u32 = 8;
/// Readable sockets that a window must have seen.
const EVENTS_LEAST: u32 = 64;

/// From this many bytes for each readable socket, on average, waiting and waking is not the main
/// cost: large values are better taken while they are in the processor's cache.
const BYTES_MOST: u64 = 4096;

/// The worker's recent observations, and how long it pauses.
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
    /// Replies that had to wait for the journal in this window, counted by connection each time.
    deferred: u32,
    /// Connections that were readable in the present [`WINDOWS`] windows.
    busy: u32,
    pause: Option<Duration>,
    /// The findings of the last windows, if nearly all replies had to wait for the journal.
    gathering: Option<Gathering>,
    /// Connections that were readable in the last [`WINDOWS`] windows.
    lately_busy: u32,
    /// Whether pausing pays under this load.
    trial: Trial,
}

/// How requests arrive when all of them wait for the journal.
#[derive(Clone, Copy)]
struct Gathering {
    /// This many must come before they are taken.
    wanted: u32,
    /// Time from one to the next, in nanoseconds.
    interval_ns: u64,
}

impl Coalescing {
    /// Counts a readable socket; `last_window` is its connection's note of when it was counted
    /// last.
    #[inline]
    pub(super) fn note_event(&mut self, last_window: &mut u32) {
        self.events += 1;
        if *last_window != self.window {
            self.busy += u32::from(*last_window / WINDOWS != self.window / WINDOWS);
            *last_window = self.window;
            self.active += 1;
        }
    }

    /// Counts bytes that were received.
    #[inline]
    pub(super) fn note_bytes(&mut self, count: usize) {
        self.bytes += count as u64;
    }

    /// Counts a connection whose replies wait for the journal.
    #[inline]
    pub(super) fn note_deferred(&mut self) {
        self.deferred += 1;
    }

    /// How long to pause before looking for events again; `now_us` is the time of the turn.
    #[inline]
    pub(super) fn pause(&mut self, now_us: u64) -> Option<Duration> {
        let elapsed = now_us.saturating_sub(self.began_us);
        if elapsed >= WINDOW_US {
            self.end_window(now_us, elapsed);
        }
        self.pause
    }

    fn end_window(&mut self, now_us: u64, elapsed: u64) {
        let large = self.bytes > u64::from(self.events) * BYTES_MOST;
        let window = self.window.wrapping_add(1);
        let pause = if large { None } else { chosen(self.events, self.active, elapsed) };
        if pause.is_some() {
            self.trial.note_window(self.events, elapsed);
        }
        let mut next = Coalescing {
            window,
            began_us: now_us,
            pause: pause.filter(|_| self.trial.pauses()),
            busy: self.busy,
            lately_busy: self.lately_busy,
            trial: std::mem::take(&mut self.trial),
            ..Coalescing::default()
        };
        if window.is_multiple_of(WINDOWS) {
            next.lately_busy = std::mem::take(&mut next.busy);
        }
        // One in thirty-two may be in flight between two counts.
        let nearly_all = u64::from(self.deferred) * 32 >= u64::from(self.events) * 31;
        next.gathering = (nearly_all && self.active >= ACTIVE_LEAST).then(|| Gathering {
            wanted: next.lately_busy / 4,
            interval_ns: elapsed * 1000 / u64::from(self.events.max(1)),
        });
        *self = next;
    }

    /// Whether nearly everything that came lately waits for the journal.
    pub(super) fn gathers(&self) -> bool {
        self.gathering.is_some()
    }

    /// How long it takes until enough connections that will wait for the journal have come, when
    /// `came` have.
    pub(super) fn gathering_pause(&self, came: usize) -> Option<Duration> {
        let Gathering { wanted, interval_ns } = self.gathering?;
        let missing = u64::from(wanted).checked_sub(came as u64).filter(|missing| *missing > 0)?;
        Some(Duration::from_nanos(missing * interval_ns).min(LONGEST_GATHERING))
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

    /// Windows in which each of `busy` connections sends a request in turn, 64 in a window. Of
    /// their replies, all but one in `answered` wait for the journal.
    fn gathering(busy: usize, answered: usize) -> Coalescing {
        let mut coalescing = Coalescing::default();
        let mut marks = vec![u32::MAX; busy];
        coalescing.pause(10_000);
        for request in 0..64 * 2 * WINDOWS as usize {
            coalescing.note_event(&mut marks[request % busy]);
            if request % answered != 0 {
                coalescing.note_deferred();
            }
            if request % 64 == 63 {
                coalescing.pause(11_000 + request as u64 / 64 * 1000);
            }
        }
        coalescing
    }

    #[test]
    fn a_quarter_gathers_where_all_wait_for_the_journal() {
        let coalescing = gathering(50, usize::MAX);
        assert!(coalescing.gathers());
        assert_eq!(coalescing.gathering_pause(12), None);
        assert_eq!(coalescing.gathering_pause(4), Some(Duration::from_micros(8 * 1000 / 64)));
        let many = gathering(500, usize::MAX);
        assert_eq!(many.gathering_pause(125), None);
        assert_eq!(many.gathering_pause(0), Some(LONGEST_GATHERING));
    }

    #[test]
    fn nobody_gathers_where_some_are_answered_at_once_or_few_are_busy() {
        assert!(gathering(50, 64).gathers());
        assert!(!gathering(50, 16).gathers());
        assert_eq!(gathering(50, 16).gathering_pause(0), None);
        assert!(!gathering(15, usize::MAX).gathers());
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
