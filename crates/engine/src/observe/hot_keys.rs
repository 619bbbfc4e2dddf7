//! Which keys commands name most often, from a sample of the commands.
//!
//! About one command in [`GAP`] is looked at, at random distances, so that no rhythm of the clients
//! hides a key. Each thread keeps its own counts, of [`COUNTED_KEYS`] keys at most, by the
//! algorithm called Space-Saving: a key that finds no place takes the place of the key with the
//! lowest count. It begins with that count, which is its known error. The reported metric is the
//! count less that error, so a reported key was seen at least that often.
//!
//! Counts cover spans of ten seconds; the last full one and the present one are reported.

use hashbrown::{Equivalent, HashMap};
use parking_lot::Mutex;

/// One in this many commands is looked at, on average.
pub const GAP: u64 = 128;
/// Keys that a thread counts.
const COUNTED_KEYS: usize = 128;
/// Milliseconds that counts are of.
const SPAN: u64 = 10_000;
/// Bytes of the longest key that is counted: the counts must not take much memory.
const LONGEST: usize = 1024;
/// A key is reported if it was looked at this often: once or twice is chance.
const LEAST: u64 = 3;

/// A database, and a key in it.
type Name = (usize, Box<[u8]>);

/// A name that is looked for.
#[derive(Hash)]
struct Sought<'k>(usize, &'k [u8]);

impl Equivalent<Name> for Sought<'_> {
    fn equivalent(&self, (database, key): &Name) -> bool {
        self.0 == *database && *self.1 == **key
    }
}

#[derive(Clone, Copy, Default)]
struct Count {
    seen: u64,
    /// How much of that count may belong to other keys.
    error: u64,
}

/// The counts of a span.
#[derive(Default)]
struct Span {
    keys: HashMap<Name, Count>,
    /// Keys that were looked at, counted or not.
    looked: u64,
    /// No count is lower than this while all places are taken.
    least: u64,
}

impl Span {
    fn add(&mut self, database: usize, key: &[u8]) {
        self.looked += 1;
        if key.len() > LONGEST {
            return;
        }
        if let Some(count) = self.keys.get_mut(&Sought(database, key)) {
            count.seen += 1;
            return;
        }
        let replaced = if self.keys.len() < COUNTED_KEYS { 0 } else { self.give_up_one() };
        let count = Count { seen: replaced + 1, error: replaced };
        self.keys.insert((database, key.into()), count);
    }

    /// Removes one of the keys with the lowest count, and returns that count. Most keys have it
    /// when many keys are seen, so that the first one is found soon.
    fn give_up_one(&mut self) -> u64 {
        let is_least = |count: &Count| count.seen <= self.least;
        if !self.keys.values().any(is_least) {
            self.least = self.keys.values().map(|count| count.seen).min().unwrap_or(0);
        }
        let least = self.least;
        self.keys.extract_if(|_, count| count.seen <= least).next();
        least
    }
}

/// The counts of one thread.
#[derive(Default)]
struct Spans {
    present: Span,
    last: Span,
    /// When the present span began, in milliseconds of the monotonic clock.
    began: u64,
}

impl Spans {
    fn turn_over(&mut self, monotonic: u64) {
        let passed = monotonic.saturating_sub(self.began);
        if passed < SPAN {
            return;
        }
        let ended = std::mem::take(&mut self.present);
        self.last = if passed < 2 * SPAN { ended } else { Span::default() };
        self.began = monotonic;
    }
}

/// The counts of one thread, which other threads may read.
#[derive(Default)]
pub struct HotKeys(Mutex<Spans>);

/// A key that commands name often.
#[derive(Clone, Debug, PartialEq)]
pub struct HotKey {
    /// Its database.
    pub database: usize,
    /// The key.
    pub key: Box<[u8]>,
    /// Commands a second that name it: a lower bound, approximately.
    pub per_second: f64,
    /// Its share of all keys that commands name.
    pub share: f64,
}

impl HotKeys {
    /// Counts a key of a sampled command, at this millisecond of the monotonic clock.
    pub(crate) fn note(&self, database: usize, key: &[u8], monotonic: u64) {
        let mut spans = self.0.lock();
        spans.turn_over(monotonic);
        spans.present.add(database, key);
    }

    /// Resets the counts.
    pub(super) fn reset(&self) {
        *self.0.lock() = Spans::default();
    }
}

/// The keys that all threads together have seen most often; the hottest key comes first.
pub(super) fn hottest<'h>(
    threads: impl Iterator<Item = &'h HotKeys>,
    monotonic: u64,
    most: usize,
) -> Vec<HotKey> {
    let mut found: HashMap<Name, (u64, f64)> = HashMap::new();
    let mut looked = 0;
    for thread in threads {
        let mut spans = thread.0.lock();
        spans.turn_over(monotonic);
        // A thread begins with a span from before all times; what is then known of it is short.
        let since = monotonic.saturating_sub(spans.began).clamp(1000, SPAN);
        let has_last = spans.last.looked > 0;
        let seconds = (since + if has_last { SPAN } else { 0 }) as f64 / 1000.0;
        for span in [&spans.present, &spans.last] {
            looked += span.looked;
            for (name, count) in &span.keys {
                let sure = count.seen - count.error;
                let (seen, rate) = found.entry(name.clone()).or_default();
                *seen += sure;
                *rate += sure as f64 * GAP as f64 / seconds;
            }
        }
    }
    let mut keys: Vec<HotKey> = found
        .into_iter()
        .filter(|(_, (seen, _))| *seen >= LEAST)
        .map(|((database, key), (seen, per_second))| {
            let share = seen as f64 / looked.max(1) as f64;
            HotKey { database, key, per_second, share }
        })
        .collect();
    keys.sort_by(|one, other| {
        let order = other.per_second.total_cmp(&one.per_second);
        order.then_with(|| (one.database, &one.key).cmp(&(other.database, &other.key)))
    });
    keys.truncate(most);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_are_named_most_are_found_among_many() {
        let hot = HotKeys::default();
        for number in 0..20_000u32 {
            hot.note(0, format!("cold:{number}").as_bytes(), 20_000);
            if number % 10 == 0 {
                hot.note(0, b"warm", 20_000);
            }
            if number % 4 == 0 {
                hot.note(3, b"hot", 20_000);
            }
        }
        let keys = hottest([&hot].into_iter(), 21_000, 10);
        let names: Vec<_> = keys.iter().map(|key| (key.database, &*key.key)).collect();
        assert_eq!(names[..2], [(3, &b"hot"[..]), (0, b"warm")], "{keys:?}");
        // 5000 of 27 000, in a second: the reported metric is no more than that.
        assert!((0.15..=0.186).contains(&keys[0].share), "{keys:?}");
        assert!(keys[0].per_second <= 5000.0 * GAP as f64, "{keys:?}");
        assert!(keys.len() <= 2, "what was seen once or twice is not told: {keys:?}");
    }

    #[test]
    fn what_has_cooled_down_is_forgotten() {
        let hot = HotKeys::default();
        (0..100).for_each(|_| hot.note(0, b"k", 50_000));
        assert_eq!(hottest([&hot].into_iter(), 55_000, 5).len(), 1);
        assert_eq!(hottest([&hot].into_iter(), 65_000, 5).len(), 1, "the last span");
        assert_eq!(hottest([&hot].into_iter(), 85_000, 5), []);
        (0..100).for_each(|_| hot.note(0, &[b'x'; LONGEST + 1], 90_000));
        assert_eq!(hottest([&hot].into_iter(), 91_000, 5), [], "too long to be kept");
    }
}
