//! LATENCY: events that took longer than `latency-monitor-threshold`. Each event has a ring of its
//! last 160 samples, one per second at most.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;

/// Samples kept per event.
pub const SAMPLES_MAX: usize = 160;

/// The samples of one event.
#[derive(Clone, Default, Debug)]
pub struct Series {
    /// (Unix second, milliseconds), the oldest first.
    pub samples: VecDeque<(u64, u64)>,
    /// The highest ever, in milliseconds.
    pub maximum: u64,
}

/// See the module's text.
#[derive(Default)]
pub struct LatencyMonitor(Mutex<BTreeMap<&'static str, Series>>);

impl LatencyMonitor {
    /// Notes that `event` took this many milliseconds. Within a second the longest counts.
    pub fn note(&self, event: &'static str, second: u64, milliseconds: u64) {
        let mut events = self.0.lock();
        let series = events.entry(event).or_default();
        series.maximum = series.maximum.max(milliseconds);
        match series.samples.back_mut() {
            Some((last, longest)) if *last == second => *longest = (*longest).max(milliseconds),
            _ => {
                if series.samples.len() == SAMPLES_MAX {
                    series.samples.pop_front();
                }
                series.samples.push_back((second, milliseconds));
            }
        }
    }

    /// One event's samples, if it ever took long.
    pub fn series(&self, event: &str) -> Option<Series> {
        self.0.lock().get(event).cloned()
    }

    /// All events.
    pub fn all(&self) -> Vec<(&'static str, Series)> {
        self.0.lock().iter().map(|(event, series)| (*event, series.clone())).collect()
    }

    /// Forgets one event, or all. Returns how many were forgotten.
    pub fn reset(&self, event: Option<&str>) -> usize {
        let mut events = self.0.lock();
        match event {
            Some(event) => usize::from(events.remove(event).is_some()),
            None => std::mem::take(&mut *events).len(),
        }
    }
}
