//! Counters, kept per thread and added up on request.
//!
//! Each thread writes its own [`ThreadStats`] alone, so a count costs a load and a store on a cache
//! line that no other thread writes.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use base::limits;
use parking_lot::Mutex;

use crate::command::RowId;
use crate::observe::hot_keys::{self, HotKey, HotKeys};

/// A count that one thread writes and any thread reads.
#[derive(Default, Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds. Must be called by the owning thread alone.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    /// Takes back what was added since the count was this. As [`Counter::add`].
    pub(crate) fn put_back(&self, before: u64) {
        self.0.store(before, Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Resets the counter. An addition at the same time may survive.
    pub fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

/// The buckets of durations in nanoseconds have the width of a 32nd of their power of two.
const SUB_BUCKETS: usize = 32;
const SUB_BUCKET_BITS: usize = SUB_BUCKETS.trailing_zeros() as usize;
/// Powers of two from that of `SUB_BUCKETS` on: the last bucket begins at about an hour.
const POWERS: usize = 38;
const BUCKETS: usize = POWERS * SUB_BUCKETS;

/// How often durations occurred, to within 3 %. One thread counts, any thread reads.
pub struct Histogram(Box<[AtomicU32; BUCKETS]>);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram(Box::new([const { AtomicU32::new(0) }; BUCKETS]))
    }
}

impl Histogram {
    fn bucket(nanoseconds: u64) -> usize {
        let value = nanoseconds.max(SUB_BUCKETS as u64);
        let exponent = 63 - value.leading_zeros() as usize;
        let scale = exponent - SUB_BUCKET_BITS;
        let fraction = (value >> scale) as usize & (SUB_BUCKETS - 1);
        (scale * SUB_BUCKETS + fraction).min(BUCKETS - 1)
    }

    /// The highest duration that a bucket stands for, in nanoseconds.
    pub fn upper_bound(bucket: usize) -> u64 {
        let (scale, fraction) = (bucket / SUB_BUCKETS, bucket % SUB_BUCKETS);
        (((SUB_BUCKETS + fraction + 1) as u64) << scale) - 1
    }

    /// Counts a duration. Must be called by the owning thread alone.
    pub fn add(&self, nanoseconds: u64) {
        self.add_many(nanoseconds, 1);
    }

    /// Counts a duration `times` times. Only the owning thread may call this.
    pub fn add_many(&self, nanoseconds: u64, times: u32) {
        let bucket = &self.0[Self::bucket(nanoseconds)];
        bucket.store(bucket.load(Relaxed).wrapping_add(times), Relaxed);
    }

    /// Takes back that durations of one bucket were counted so often. As [`Histogram::add`].
    fn take_back(&self, bucket: usize, times: u32) {
        let count = &self.0[bucket];
        count.store(count.load(Relaxed).saturating_sub(times), Relaxed);
    }

    /// The counts: (highest nanoseconds of the bucket, count), ascending, without empty buckets.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.0.iter().map(|bucket| u64::from(bucket.load(Relaxed))).enumerate();
        let counts = counts.filter(|(_, count)| *count > 0);
        counts.map(|(bucket, count)| (Histogram::upper_bound(bucket), count))
    }

    /// Resets the counts. A count made at the same time may survive.
    pub fn reset(&self) {
        self.0.iter().for_each(|bucket| bucket.store(0, Relaxed));
    }
}

/// The durations of something, in nanoseconds to within 3 %; all 0 if it never happened.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Durations {
    /// How often it happened.
    pub count: u64,
    /// Half of the times were at most this long.
    pub p50: u64,
    /// 99 % were at most this long.
    pub p99: u64,
    /// 99.9 % were at most this long.
    pub p99_9: u64,
    /// The longest.
    pub max: u64,
}

impl From<&Histogram> for Durations {
    fn from(histogram: &Histogram) -> Durations {
        let counts: Vec<_> = histogram.counts().collect();
        Durations {
            count: counts.iter().map(|(_, count)| count).sum(),
            p50: at_percentile(&counts, 50.0),
            p99: at_percentile(&counts, 99.0),
            p99_9: at_percentile(&counts, 99.9),
            max: at_percentile(&counts, 100.0),
        }
    }
}

/// The nanoseconds that this share of the counted times did not exceed, in percent; 0 without
/// counts. The counts are in the form of [`Histogram::counts`].
pub fn at_percentile(counts: &[(u64, u64)], percentile: f64) -> u64 {
    let calls: u64 = counts.iter().map(|(_, count)| count).sum();
    let wanted = ((percentile / 100.0 * calls as f64).ceil() as u64).clamp(1, calls.max(1));
    let mut seen = 0;
    let reached = counts.iter().find(|(_, count)| {
        seen += count;
        seen >= wanted
    });
    reached.map_or(0, |(bound, _)| *bound)
}

/// The counters of one thread for one command.
#[derive(Default)]
pub struct CommandStats {
    /// Calls that ran.
    pub calls: Counter,
    /// Time they took, in nanoseconds.
    pub nanoseconds: Counter,
    /// Calls that were refused before they ran.
    pub rejected: Counter,
    /// Calls that ran and answered with an error.
    pub failed: Counter,
    histogram: OnceLock<Histogram>,
}

impl CommandStats {
    /// Counts a call, and its duration if `latency-tracking` asks for that.
    #[inline]
    pub fn record(&self, nanoseconds: u64, latency_tracking: bool) {
        self.calls.add(1);
        self.nanoseconds.add(nanoseconds);
        if latency_tracking {
            self.histogram.get_or_init(Histogram::default).add(nanoseconds);
        }
    }
}

/// Durations of commands that may be taken back.
#[derive(Default)]
pub(crate) struct Recorded {
    /// Row, bucket, and how often.
    durations: Vec<(RowId, usize, u32)>,
    /// So many are put together.
    put_together_at: usize,
}

/// The last durations are searched for one like it, before another is added.
const LIKE_LAST: usize = 8;
/// So many need not be put together.
const FEW_RECORDED: usize = 1024;

impl Recorded {
    /// A call of a command has taken this long.
    pub(crate) fn note(&mut self, row: RowId, nanoseconds: u64) {
        let bucket = Histogram::bucket(nanoseconds);
        let mut last = self.durations.iter_mut().rev().take(LIKE_LAST);
        match last.find(|(other, at, _)| (*other, *at) == (row, bucket)) {
            Some((.., times)) => *times += 1,
            None => self.add((row, bucket, 1)),
        }
    }

    fn add(&mut self, duration: (RowId, usize, u32)) {
        if self.durations.len() >= self.put_together_at.max(FEW_RECORDED) {
            self.durations.sort_unstable();
            self.durations.dedup_by(|next, kept| {
                let is_like = (next.0, next.1) == (kept.0, kept.1);
                kept.2 += if is_like { next.2 } else { 0 };
                is_like
            });
            self.put_together_at = 2 * self.durations.len();
        }
        self.durations.push(duration);
    }

    /// Takes them back from the counts of their thread.
    pub(crate) fn take_back(&self, stats: &ThreadStats) {
        for &(row, bucket, times) in &self.durations {
            if let Some(histogram) = stats.commands[row].histogram.get() {
                histogram.take_back(bucket, times);
            }
        }
    }
}

/// The counters of one thread for one stage of commands.
#[derive(Default)]
pub struct StageStats {
    nanoseconds: Counter,
    histogram: OnceLock<Histogram>,
}

impl StageStats {
    /// Counts how long this many commands spent in the stage. Only the owning thread may call this.
    #[inline]
    pub fn record(&self, nanoseconds: u64, commands: usize) {
        self.nanoseconds.add(nanoseconds.wrapping_mul(commands as u64));
        self.histogram.get_or_init(Histogram::default).add_many(nanoseconds, commands as u32);
    }

    fn reset(&self) {
        self.nanoseconds.reset();
        if let Some(histogram) = self.histogram.get() {
            histogram.reset();
        }
    }
}

/// The stages of a command on its worker, in order.
#[derive(Default)]
pub struct Stages {
    /// The time from the worker's first look at its connections to the start of the batch that the
    /// command is in.
    pub queue: StageStats,
    /// While that batch ran.
    pub execute: StageStats,
    /// The time for which its reply was deferred until the journal was durable.
    pub commit: StageStats,
    /// The time in which the replies of the batch were given to the sockets.
    pub flush: StageStats,
}

impl Stages {
    fn named(&self) -> [(&'static str, &StageStats); 4] {
        [
            ("queue", &self.queue),
            ("execute", &self.execute),
            ("commit", &self.commit),
            ("flush", &self.flush),
        ]
    }
}

/// The sums over all threads for one part of the way of commands.
pub struct StageTimes {
    /// Its name.
    pub name: &'static str,
    /// How long all commands were in it.
    pub nanoseconds: u64,
    /// (Highest nanoseconds of the bucket, count), ascending, without empty buckets.
    pub counts: Vec<(u64, u64)>,
}

macro_rules! thread_stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one thread.
        pub struct ThreadStats {
            /// The thread's name.
            pub thread: String,
            $($(#[$doc])* pub $name: Counter,)*
            /// Changes to keys, as `rdb_changes_since_last_save` counts them. CONFIG RESETSTAT does
            /// not reset them: `save` points depend on them.
            pub changes: Counter,
            /// Commands that went into the append-only file, MULTI and EXEC of transactions
            /// included. CONFIG RESETSTAT does not reset them: `master_repl_offset` only grows.
            pub journaled: Counter,
            /// By row: see [`crate::engine::Registry::rows`].
            pub commands: Box<[CommandStats]>,
            /// How long commands were where.
            pub stages: Stages,
            /// Which keys they name most often.
            pub hot_keys: HotKeys,
        }

        impl ThreadStats {
            pub(crate) fn new(thread: &str, rows: usize) -> ThreadStats {
                ThreadStats {
                    thread: thread.to_string(),
                    $($name: Counter::default(),)*
                    changes: Counter::default(),
                    journaled: Counter::default(),
                    commands: (0..rows).map(|_| CommandStats::default()).collect(),
                    stages: Stages::default(),
                    hot_keys: HotKeys::default(),
                }
            }

            fn reset(&self) {
                $(self.$name.reset();)*
                self.stages.named().iter().for_each(|(_, stage)| stage.reset());
                self.hot_keys.reset();
            }
        }

        /// The sums over all threads.
        #[derive(Default, Debug, Clone)]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Totals {
            fn add(&mut self, stats: &ThreadStats) {
                $(self.$name += stats.$name.get();)*
            }
        }
    };
}

thread_stats! {
    /// Commands that ran.
    commands_processed,
    /// Reads that found their key.
    keyspace_hits,
    /// Reads that did not.
    keyspace_misses,
    /// Keys that expired.
    expired_keys,
    /// Fields of hashes that expired.
    expired_subkeys,
    /// Keys that were evicted.
    evicted_keys,
    /// Clients that `maxmemory-clients` made the server drop.
    evicted_clients,
    /// Error replies.
    error_replies,
    /// Connections accepted.
    connections_received,
    /// Connections refused.
    rejected_connections,
    /// Bytes received.
    net_input_bytes,
    /// Bytes sent.
    net_output_bytes,
    /// Reads from sockets.
    reads_processed,
    /// Writes to sockets.
    writes_processed,
    /// Commands that found a slot locked and were tried again.
    contended,
    /// How often clients exceeded the limit of their query buffer.
    query_buffer_limit_disconnections,
    /// How often clients exceeded the limit of their output buffer.
    output_buffer_limit_disconnections,
    /// Cycles of active expiry that ran out of time.
    expired_time_cap_reached,
    /// Time spent in active expiry, in nanoseconds.
    expire_cycle_nanoseconds,
    /// Turns of the workers' loops.
    turns,
    /// Time that these took, without waiting, in nanoseconds.
    turn_nanoseconds,
    /// Requests for results of databases that were answered by a kept and fresh result.
    view_hits,
    /// Requests for results that were kept and stale.
    view_stale,
    /// Requests for results that were not kept.
    view_misses,
}

/// A rate is averaged over this many samples: 1.6 seconds at ten a second, as in Redis.
const RATE_SAMPLES: usize = 16;

/// How fast a count rises.
#[derive(Default)]
struct Rate {
    total: u64,
    per_second: [f64; RATE_SAMPLES],
    next: usize,
}

impl Rate {
    /// Takes a sample; the first one only marks where the count begins.
    fn note(&mut self, total: u64, elapsed_us: u64, first: bool) {
        let risen = total.saturating_sub(std::mem::replace(&mut self.total, total));
        if !first {
            self.per_second[self.next] = risen as f64 * 1e6 / elapsed_us as f64;
            self.next = (self.next + 1) % RATE_SAMPLES;
        }
    }

    fn average(&self) -> f64 {
        self.per_second.iter().sum::<f64>() / RATE_SAMPLES as f64
    }
}

#[derive(Default)]
struct Rates {
    sampled_at_us: u64,
    commands: Rate,
    input_bytes: Rate,
    output_bytes: Rate,
    turns: Rate,
    turn_nanoseconds: Rate,
}

/// Error replies by code, and all threads' counts.
pub struct Stats {
    /// The number of commands.
    rows: usize,
    threads: Mutex<Vec<Arc<ThreadStats>>>,
    errors: Mutex<Vec<(String, u64)>>,
    rates: Mutex<Rates>,
    /// The bits of [`Stats::stale_percentage`].
    stale: AtomicU64,
}

/// The text in place of all codes when there are too many.
const TOO_MANY_CODES: &str = "ERRORSTATS_DISABLED";

impl Stats {
    /// All counters at zero, for this many rows of commands.
    pub(crate) fn new(rows: usize) -> Stats {
        Stats {
            rows,
            threads: Mutex::default(),
            errors: Mutex::default(),
            rates: Mutex::default(),
            stale: AtomicU64::default(),
        }
    }

    /// Makes the counters of a thread of this name.
    pub fn register(&self, thread: &str) -> Arc<ThreadStats> {
        let stats = Arc::new(ThreadStats::new(thread, self.rows));
        self.threads.lock().push(Arc::clone(&stats));
        stats
    }

    /// Each thread's counters, in the order in which the threads began.
    pub fn threads(&self) -> Vec<Arc<ThreadStats>> {
        self.threads.lock().clone()
    }

    /// The sums over all threads.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.threads.lock().iter().for_each(|stats| totals.add(stats));
        totals
    }

    /// Changes to keys since the start, over all threads.
    pub fn changes(&self) -> u64 {
        self.threads.lock().iter().map(|stats| stats.changes.get()).sum()
    }

    /// Commands that went into the append-only file since the start.
    pub fn journaled(&self) -> u64 {
        self.threads.lock().iter().map(|stats| stats.journaled.get()).sum()
    }

    /// Takes the samples that [`Stats::rates`] are averaged over. Must be called ten times a
    /// second.
    pub fn sample_rates(&self, now_us: u64) {
        let totals = self.totals();
        let mut rates = self.rates.lock();
        let elapsed_us = now_us.saturating_sub(rates.sampled_at_us);
        if elapsed_us == 0 {
            return;
        }
        let first = rates.sampled_at_us == 0;
        rates.sampled_at_us = now_us;
        rates.commands.note(totals.commands_processed, elapsed_us, first);
        rates.input_bytes.note(totals.net_input_bytes, elapsed_us, first);
        rates.output_bytes.note(totals.net_output_bytes, elapsed_us, first);
        rates.turns.note(totals.turns, elapsed_us, first);
        rates.turn_nanoseconds.note(totals.turn_nanoseconds, elapsed_us, first);
    }

    /// Recent rates per second: commands, bytes received, bytes sent.
    pub fn rates(&self) -> [f64; 3] {
        let rates = self.rates.lock();
        [&rates.commands, &rates.input_bytes, &rates.output_bytes].map(Rate::average)
    }

    /// Recent turns per second, and how many nanoseconds one took on average.
    pub fn turn_rates(&self) -> (f64, f64) {
        let rates = self.rates.lock();
        let [turns, nanoseconds] = [&rates.turns, &rates.turn_nanoseconds].map(Rate::average);
        (turns, if turns > 0.0 { nanoseconds / turns } else { 0.0 })
    }

    /// Nanoseconds that commands took, over all threads.
    pub fn command_nanoseconds(&self) -> u64 {
        let threads = self.threads.lock();
        let own = threads.iter().flat_map(|thread| &thread.commands);
        own.map(|stats| stats.nanoseconds.get()).sum()
    }

    /// Notes which share of the keys that active expiry looked at had expired, in percent.
    pub fn note_stale_percentage(&self, percentage: f64) {
        self.stale.store(percentage.to_bits(), Relaxed);
    }

    /// How many of the keys that expire have expired and are still there, in percent, as estimated
    /// by active expiry.
    pub fn stale_percentage(&self) -> f64 {
        f64::from_bits(self.stale.load(Relaxed))
    }

    /// Counts an error reply by its code.
    pub fn count_error(&self, code: &str) {
        let mut errors = self.errors.lock();
        if let Some((_, count)) = errors.iter_mut().find(|(other, _)| other == code) {
            *count += 1;
        } else if errors.len() >= limits::ERROR_CODES {
            *errors = vec![(TOO_MANY_CODES.to_string(), 1)];
        } else if errors.first().is_none_or(|(first, _)| first != TOO_MANY_CODES) {
            errors.push((code.to_string(), 1));
        }
    }

    /// Takes back what [`Stats::count_error`] has counted so often.
    pub(crate) fn take_back_errors(&self, code: &str, times: u64) {
        let mut errors = self.errors.lock();
        if let Some(place) = errors.iter().position(|(other, _)| other == code) {
            errors[place].1 = errors[place].1.saturating_sub(times);
            if errors[place].1 == 0 {
                errors.remove(place);
            }
        }
    }

    /// Error replies by code.
    pub fn errors(&self) -> Vec<(String, u64)> {
        self.errors.lock().clone()
    }

    /// One command's sums: calls, nanoseconds, rejected, failed.
    pub fn command(&self, row: RowId) -> [u64; 4] {
        let mut sums = [0; 4];
        for thread in self.threads.lock().iter() {
            let stats = &thread.commands[row];
            let own = [&stats.calls, &stats.nanoseconds, &stats.rejected, &stats.failed];
            sums.iter_mut().zip(own).for_each(|(sum, counter)| *sum += counter.get());
        }
        sums
    }

    /// One command's durations: (highest nanoseconds of the bucket, count), ascending, without
    /// empty buckets.
    pub fn histogram(&self, row: RowId) -> Vec<(u64, u64)> {
        self.sum_histograms(|thread, add| add(&thread.commands[row].histogram))
    }

    /// The durations of the commands that are `wanted`, together. As [`Stats::histogram`].
    pub(super) fn durations(&self, wanted: impl Fn(RowId) -> bool) -> Vec<(u64, u64)> {
        self.sum_histograms(|thread, add| {
            let all = thread.commands.iter().enumerate().filter(|(row, _)| wanted(*row));
            all.for_each(|(_, stats)| add(&stats.histogram));
        })
    }

    /// The sums over the histograms that `of` hands over of each thread.
    fn sum_histograms(
        &self,
        of: impl Fn(&ThreadStats, &mut dyn FnMut(&OnceLock<Histogram>)),
    ) -> Vec<(u64, u64)> {
        let mut counts = vec![0u64; BUCKETS];
        let mut add = |histogram: &OnceLock<Histogram>| {
            let buckets = histogram.get().into_iter().flat_map(|own| own.0.iter());
            for (sum, bucket) in counts.iter_mut().zip(buckets) {
                *sum += u64::from(bucket.load(Relaxed));
            }
        };
        self.threads.lock().iter().for_each(|thread| of(thread, &mut add));
        let counts = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
        counts.map(|(bucket, count)| (Histogram::upper_bound(bucket), count)).collect()
    }

    /// How long commands spent in each part of their way.
    pub fn stages(&self) -> Vec<StageTimes> {
        let names = Stages::default().named().map(|(name, _)| name);
        let times = names.into_iter().enumerate().map(|(at, name)| {
            let threads = self.threads.lock();
            let sums = threads.iter().map(|thread| thread.stages.named()[at].1.nanoseconds.get());
            let nanoseconds = sums.fold(0, u64::wrapping_add);
            drop(threads);
            let counts =
                self.sum_histograms(|thread, add| add(&thread.stages.named()[at].1.histogram));
            StageTimes { name, nanoseconds, counts }
        });
        times.collect()
    }

    /// The keys that commands name most often, at this millisecond of the monotonic clock; the
    /// hottest key comes first.
    pub fn hot_keys(&self, monotonic: u64, most: usize) -> Vec<HotKey> {
        let threads = self.threads.lock();
        hot_keys::hottest(threads.iter().map(|thread| &thread.hot_keys), monotonic, most)
    }

    /// CONFIG RESETSTAT. A count that is being written meanwhile may survive.
    pub fn reset(&self) {
        for thread in self.threads.lock().iter() {
            thread.reset();
        }
        for row in 0..self.rows {
            self.reset_command(row);
        }
        self.errors.lock().clear();
        *self.rates.lock() = Rates::default();
    }

    /// Forgets one command's counts.
    pub fn reset_command(&self, row: RowId) {
        for thread in self.threads.lock().iter() {
            let stats = &thread.commands[row];
            [&stats.calls, &stats.nanoseconds, &stats.rejected, &stats.failed]
                .into_iter()
                .for_each(Counter::reset);
        }
        self.reset_histogram(row);
    }

    /// Forgets one command's durations (LATENCY HISTOGRAM's, RESET).
    pub fn reset_histogram(&self, row: RowId) {
        for thread in self.threads.lock().iter() {
            if let Some(histogram) = thread.commands[row].histogram.get() {
                histogram.reset();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_averages_of_the_last_samples() {
        let stats = Stats::new(0);
        let thread = stats.register("test");
        thread.commands_processed.add(1000);
        stats.sample_rates(1_000_000);
        assert_eq!(stats.rates()[0], 0.0, "what was before the first sample is no rate");
        for second in 0..RATE_SAMPLES as u64 {
            thread.commands_processed.add(50);
            stats.sample_rates(1_100_000 + second * 100_000);
        }
        assert_eq!(stats.rates().map(f64::round), [500.0, 0.0, 0.0]);
        stats.reset();
        assert_eq!(stats.rates()[0], 0.0);
        assert_eq!(stats.totals().commands_processed, 0);
    }

    #[test]
    fn error_codes_beyond_the_limit_share_one_count() {
        let stats = Stats::new(0);
        (0..limits::ERROR_CODES).for_each(|number| stats.count_error(&format!("E{number}")));
        stats.count_error("E0");
        assert_eq!(stats.errors().len(), limits::ERROR_CODES);
        assert_eq!(stats.errors()[0], ("E0".to_string(), 2));
        stats.count_error("ONEMORE");
        stats.count_error("E0");
        assert_eq!(stats.errors(), [(TOO_MANY_CODES.to_string(), 1)]);
        stats.reset();
        stats.count_error("E0");
        assert_eq!(stats.errors(), [("E0".to_string(), 1)]);
    }

    #[test]
    fn percentiles_are_bounds_of_counts() {
        let counts = [(1000, 50), (2000, 49), (3000, 1)];
        assert_eq!(at_percentile(&counts, 0.0), 1000);
        assert_eq!(at_percentile(&counts, 50.0), 1000);
        assert_eq!(at_percentile(&counts, 50.1), 2000);
        assert_eq!(at_percentile(&counts, 99.0), 2000);
        assert_eq!(at_percentile(&counts, 99.9), 3000);
        assert_eq!(at_percentile(&counts, 100.0), 3000);
    }

    #[test]
    fn durations_sum_up_a_histogram() {
        let histogram = Histogram::default();
        assert_eq!(Durations::from(&histogram), Durations::default());
        (0..98).for_each(|_| histogram.add(1000));
        histogram.add(50_000);
        histogram.add(7_000_000);
        let durations = Durations::from(&histogram);
        let near = |shown: u64, exact: u64| (exact..=exact + exact / 32).contains(&shown);
        assert_eq!(durations.count, 100);
        assert!(near(durations.p50, 1000) && near(durations.p99, 50_000), "{durations:?}");
        assert!(near(durations.max, 7_000_000), "{durations:?}");
        assert_eq!(durations.p99_9, durations.max);
        histogram.reset();
        assert_eq!(Durations::from(&histogram), Durations::default());
    }

    #[test]
    fn buckets_hold_what_they_say() {
        for nanoseconds in (0..200_000).step_by(7).chain([1 << 30, (1 << 30) + 12345]) {
            let bucket = Histogram::bucket(nanoseconds);
            assert!(nanoseconds <= Histogram::upper_bound(bucket));
            assert!(bucket == 0 || nanoseconds > Histogram::upper_bound(bucket - 1));
        }
    }
}
