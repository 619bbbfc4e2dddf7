//! The last minutes of a server, second by second, so that a page which is opened shows them at
//! once.
//!
//! A thread takes a sample each second. Old samples give way to new ones, so the memory is bounded.
//! What a page asks about the server itself is not counted: it shows an idle server as idle.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::command::RowId;
use crate::observe::stats::{Stats, Totals, at_percentile};

/// Samples that are kept: ten minutes.
pub const KEPT: usize = 600;
/// Microseconds from one sample to the next.
const APART_US: u64 = 1_000_000;

/// Processor time of threads since they began, in seconds.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct ThreadSeconds {
    /// Each worker's, by its number.
    pub workers: Vec<f64>,
    /// All other threads' together.
    pub others: f64,
}

/// What was the case beside the counters when a sample was taken.
#[derive(Default)]
pub struct Beside {
    /// Bytes of memory in use.
    pub memory: u64,
    /// Connections.
    pub clients: u64,
    /// Processor time; absent where the system does not tell it.
    pub threads: Option<ThreadSeconds>,
}

/// One second.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct Sample {
    /// When it ended, in milliseconds of Unix time.
    pub at: u64,
    /// Commands a second.
    pub commands: f64,
    /// Reads a second that found their key.
    pub hits: f64,
    /// Reads a second that did not.
    pub misses: f64,
    /// Bytes received a second.
    pub input: f64,
    /// Bytes sent a second.
    pub output: f64,
    /// Nanoseconds that half of the commands took at most; absent without commands, or without
    /// `latency-tracking`.
    pub p50: Option<u64>,
    /// The same for 99 % of the commands.
    pub p99: Option<u64>,
    /// Bytes of memory in use.
    pub memory: u64,
    /// Connections.
    pub clients: u64,
    /// The share of a processor that each worker used; empty if unknown.
    pub workers: Vec<f64>,
    /// Processors that all other threads used.
    pub others: f64,
}

/// What was counted at the last sample.
#[derive(Default)]
struct Counted {
    at_us: u64,
    commands: u64,
    totals: Totals,
    durations: Vec<(u64, u64)>,
    threads: Option<ThreadSeconds>,
}

#[derive(Default)]
struct Kept {
    last: Option<Counted>,
    /// The newest first, without the workers' shares.
    samples: VecDeque<Sample>,
    /// The shares of all workers in the newest sample, then in the one before it, and so on.
    shares: VecDeque<f64>,
    workers: usize,
    /// The number that the next sample will have.
    next: u64,
}

impl Kept {
    /// Keeps a sample. The first one takes the memory for all of them, so that the memory of an
    /// idle server stands still.
    fn keep(&mut self, mut sample: Sample) {
        let shares = std::mem::take(&mut sample.workers);
        if self.samples.capacity() == 0 {
            self.samples.reserve_exact(KEPT);
        }
        if shares.len() != self.workers {
            self.workers = shares.len();
            self.shares = VecDeque::with_capacity(KEPT * self.workers);
        }
        self.samples.truncate(KEPT - 1);
        self.samples.push_front(sample);
        self.shares.truncate((KEPT - 1) * self.workers);
        shares.into_iter().rev().for_each(|share| self.shares.push_front(share));
        self.next += 1;
    }

    /// The sample that is so many seconds older than the newest one.
    fn sample(&self, age: usize) -> Sample {
        let shares = self.shares.iter().skip(age * self.workers).take(self.workers);
        Sample { workers: shares.copied().collect(), ..self.samples[age].clone() }
    }
}

/// See the module's text.
#[derive(Default)]
pub struct History(Mutex<Kept>);

impl History {
    /// Whether a second has passed since the last sample, at this microsecond of the monotonic
    /// clock.
    pub fn wants_sample(&self, monotonic_us: u64) -> bool {
        let kept = self.0.lock();
        kept.last.as_ref().is_none_or(|last| monotonic_us >= last.at_us + APART_US)
    }

    /// Takes a sample, at this millisecond of Unix time and this microsecond of the monotonic
    /// clock. The commands of the rows `left_out` are not counted.
    pub fn note(
        &self,
        (now, monotonic_us): (u64, u64),
        stats: &Stats,
        left_out: &[RowId],
        beside: Beside,
    ) {
        let mut kept = self.0.lock();
        let last = kept.last.as_ref();
        let counted = Counted::new(monotonic_us, (stats, left_out), last, beside.threads);
        if let Some(last) = &kept.last {
            let sample = Sample {
                at: now,
                memory: beside.memory,
                clients: beside.clients,
                ..counted.since(last)
            };
            kept.keep(sample);
        }
        kept.last = Some(counted);
    }

    /// The samples from this number on, the oldest first, and the number that the next one will
    /// have. A number that is not reached yet stands for all: it is of another server.
    pub fn since(&self, number: u64) -> (Vec<Sample>, u64) {
        let kept = self.0.lock();
        let new = kept.next.checked_sub(number).unwrap_or(kept.next);
        let count = kept.samples.len().min(usize::try_from(new).unwrap_or(usize::MAX));
        ((0..count).rev().map(|age| kept.sample(age)).collect(), kept.next)
    }
}

impl Counted {
    fn new(
        at_us: u64,
        (stats, left_out): (&Stats, &[RowId]),
        last: Option<&Counted>,
        threads: Option<ThreadSeconds>,
    ) -> Counted {
        let totals = stats.totals();
        let own: u64 = left_out.iter().map(|id| stats.command(*id)[0]).sum();
        let commands = totals.commands_processed.saturating_sub(own);
        // Of a second without commands all durations are known.
        let durations = match last {
            Some(last) if last.commands == commands => last.durations.clone(),
            _ => stats.durations(|id| !left_out.contains(&id)),
        };
        Counted { at_us, commands, totals, durations, threads }
    }

    /// What has happened since then.
    fn since(&self, before: &Counted) -> Sample {
        let seconds = self.at_us.saturating_sub(before.at_us).max(1) as f64 / 1e6;
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let (totals, last) = (&self.totals, &before.totals);
        let durations = difference(&self.durations, &before.durations);
        let quantile =
            |percent| (!durations.is_empty()).then(|| at_percentile(&durations, percent));
        let mut sample = Sample {
            commands: rate(self.commands, before.commands),
            hits: rate(totals.keyspace_hits, last.keyspace_hits),
            misses: rate(totals.keyspace_misses, last.keyspace_misses),
            input: rate(totals.net_input_bytes, last.net_input_bytes),
            output: rate(totals.net_output_bytes, last.net_output_bytes),
            p50: quantile(50.0),
            p99: quantile(99.0),
            ..Sample::default()
        };
        if let (Some(now), Some(before)) = (&self.threads, &before.threads) {
            let used = |now: f64, before: f64| (now - before).max(0.0) / seconds;
            let pairs = now.workers.iter().zip(&before.workers);
            sample.workers = pairs.map(|(now, before)| used(*now, *before)).collect();
            sample.others = used(now.others, before.others);
        }
        sample
    }
}

/// The counts that are new; both are in the form of `Histogram::counts`. After a reset counts are
/// lower than before, and nothing is new.
fn difference(now: &[(u64, u64)], before: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut before = before.iter().peekable();
    let mut new = Vec::new();
    for &(bound, count) in now {
        while before.next_if(|(other, _)| *other < bound).is_some() {}
        let old = before.next_if(|(other, _)| *other == bound).map_or(0, |(_, count)| *count);
        if count > old {
            new.push((bound, count - old));
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(history: &History, second: u64) {
        let workers = vec![second as f64, 0.5];
        history.0.lock().keep(Sample { at: second * 1000, workers, ..Sample::default() });
    }

    #[test]
    fn old_samples_give_way() {
        let history = History::default();
        (0..KEPT as u64 + 50).for_each(|second| sampled(&history, second));
        let (samples, next) = history.since(0);
        assert_eq!((samples.len(), next), (KEPT, KEPT as u64 + 50));
        assert_eq!((samples[0].at, samples[KEPT - 1].at), (50_000, (KEPT as u64 + 49) * 1000));
        assert_eq!(samples[0].workers, [50.0, 0.5]);
        assert_eq!(samples[KEPT - 1].workers, [KEPT as f64 + 49.0, 0.5]);
        assert_eq!(history.since(next - 2).0.len(), 2);
        assert_eq!(history.since(next).0, []);
        assert_eq!(history.since(next + 1).0.len(), KEPT, "another server has counted so far");
        assert_eq!(history.since(u64::MAX).0.len(), KEPT);
    }

    #[test]
    fn all_memory_is_taken_with_the_first_sample() {
        let history = History::default();
        sampled(&history, 0);
        let room = |history: &History| {
            let kept = history.0.lock();
            (kept.samples.capacity(), kept.shares.capacity())
        };
        let first = room(&history);
        (1..2 * KEPT as u64).for_each(|second| sampled(&history, second));
        assert_eq!(room(&history), first);
    }

    #[test]
    fn a_sample_is_what_has_happened_since_the_last() {
        let counted = |at_us, commands, durations: &[(u64, u64)], cpu| Counted {
            at_us,
            commands,
            totals: Totals { net_input_bytes: commands * 10, ..Totals::default() },
            durations: durations.to_vec(),
            threads: Some(ThreadSeconds { workers: vec![cpu, 0.0], others: cpu }),
        };
        let first = counted(1_000_000, 100, &[(1000, 90), (9000, 10)], 1.0);
        let second = counted(3_000_000, 300, &[(500, 1), (1000, 190), (9000, 109)], 2.0);
        let sample = second.since(&first);
        assert_eq!((sample.commands, sample.input), (100.0, 1000.0));
        assert_eq!((sample.p50, sample.p99), (Some(1000), Some(9000)));
        assert_eq!((&sample.workers[..], sample.others), (&[0.5, 0.0][..], 0.5));
        // Counters that were reset meanwhile.
        let sample = first.since(&second);
        assert_eq!((sample.commands, sample.p50, sample.others), (0.0, None, 0.0));
    }
}
