//! A small seeded generator, so that a failing run can be replayed from its seed.

use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The generator: splitmix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of that seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.bits()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number from `first` to `last`, both included.
    pub fn between(&mut self, first: i64, last: i64) -> i64 {
        let span = usize::try_from(last - first + 1).unwrap_or(1);
        first + i64::try_from(self.below(span)).unwrap_or(0)
    }

    /// Whether an event of that chance in percent happens.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of `choices`, which are not empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// Which rounds of a random test to play.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Seed of the first round; each next round's is one more.
    pub first: u64,
    /// How long rounds are begun.
    pub patience: Duration,
    /// How many rounds are begun at least.
    pub least: u64,
}

impl Rounds {
    /// `SEED` names the first round, which is the only one unless `SECONDS` says how long to go
    /// on, or `ROUNDS` how many there are at least. Without a seed the clock gives one, and rounds
    /// go on for `usual`.
    pub fn from_environment(usual: Duration) -> Self {
        let setting =
            |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
        let seed = setting("SEED");
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let first = seed.unwrap_or(clock.as_secs() * 1_000_000 + u64::from(clock.subsec_micros()));
        let usual = if seed.is_some() { Duration::ZERO } else { usual };
        let patience = setting("SECONDS").map_or(usual, Duration::from_secs);
        // A line for the seed is worthwhile even if the test harness shows none on success.
        let _ = writeln!(std::io::stderr(), "first seed: {first}");
        Self { first, patience, least: setting("ROUNDS").unwrap_or(1) }
    }

    /// The seeds, until the time is up: at least one.
    pub fn seeds(self) -> impl Iterator<Item = u64> {
        let begin = Instant::now();
        (self.first..).take_while(move |&seed| {
            seed - self.first < self.least.max(1) || begin.elapsed() < self.patience
        })
    }
}
