//! How old the data of a replica is, as a client sees it: a marker is written to the primary, and
//! the replica is asked for it until it has it.
//!
//! The lag of a marker is the time from the primary's reply to the replica's first reply with the
//! marker. So it is never less than one round trip.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::case::LagRule;
use crate::record::Latency;
use crate::targets::connection::{Connection, Endpoint};
use crate::targets::cpus;

/// A marker that the replica does not have for so long is given up.
const LONGEST: Duration = Duration::from_secs(10);
/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before a lost connection is opened again.
const RETRY: Duration = Duration::from_millis(20);
/// The key of the marker.
const KEY: &str = "lag:marker";
/// It looks before any load on its processors, which would otherwise be part of the lag.
const PRIORITY: i32 = 50;

/// What was seen of a replica.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The lag of all markers. One that was given up has the time until then.
    pub(crate) lag: Latency,
    /// Markers that were given up.
    pub(crate) unseen: u64,
}

/// Looks until it is finished.
#[derive(Debug)]
pub(crate) struct Lag {
    thread: JoinHandle<Result<Seen, String>>,
    stop: Arc<AtomicBool>,
}

impl Lag {
    /// Begins to write markers, and to look for them.
    pub(crate) fn start(rule: &LagRule, primary: Endpoint, replica: Endpoint) -> Lag {
        let stop = Arc::<AtomicBool>::default();
        let (stopped, rule) = (Arc::clone(&stop), rule.clone());
        let thread = std::thread::spawn(move || {
            let mut probe = Probe { primary, replica, stopped, every: rule.every, number: 0 };
            let seen = cpus::load_within(&rule.cpus, PRIORITY, || probe.run());
            seen.map_err(|error| error.to_string())
        });
        Lag { thread, stop }
    }

    /// Ends it, and returns what it has seen.
    ///
    /// # Errors
    /// It could not look, or has seen nothing.
    pub(crate) fn finish(self) -> Result<Seen, String> {
        self.stop.store(true, Ordering::Release);
        let seen = self.thread.join().map_err(|_| "what looks for the lag has panicked")??;
        match seen.lag.count() {
            0 => Err("no marker was written to the primary".to_owned()),
            _ => Ok(seen),
        }
    }
}

struct Probe {
    primary: Endpoint,
    replica: Endpoint,
    stopped: Arc<AtomicBool>,
    every: Duration,
    number: u64,
}

impl Probe {
    fn run(&mut self) -> Seen {
        let mut seen = Seen::default();
        while !self.is_stopped() {
            // A connection that is lost is opened again: the marker may still come.
            if self.look(&mut seen).is_err() {
                std::thread::sleep(RETRY);
            }
        }
        seen
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn look(&mut self, seen: &mut Seen) -> io::Result<()> {
        let mut primary = self.primary.connect(PATIENCE)?;
        let mut replica = self.replica.connect(PATIENCE)?;
        while !self.is_stopped() {
            self.number += 1;
            let begun = Instant::now();
            if primary.call(&["SET", KEY, &self.number.to_string()])?.is_error() {
                std::thread::sleep(RETRY);
                continue;
            }
            let written = Instant::now();
            let arrived = self.wait_for_marker(&mut replica, written);
            let lag = u64::try_from(written.elapsed().as_nanos()).unwrap_or(u64::MAX);
            seen.lag.record(lag);
            if !matches!(arrived, Ok(true)) {
                seen.unseen += 1;
            }
            arrived?;
            std::thread::sleep(self.every.saturating_sub(begun.elapsed()));
        }
        Ok(())
    }

    /// Whether the replica has the marker in the end.
    fn wait_for_marker(&self, replica: &mut Connection, written: Instant) -> io::Result<bool> {
        loop {
            let reply = replica.call(&["GET", KEY])?;
            let text = reply.as_bytes().and_then(|text| std::str::from_utf8(text).ok());
            if text.and_then(|text| text.parse().ok()) == Some(self.number) {
                return Ok(true);
            }
            // At the end of a run a marker has as long as any other.
            if written.elapsed() > LONGEST {
                return Ok(false);
            }
        }
    }
}
