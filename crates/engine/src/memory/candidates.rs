//! Which key to evict next.
//!
//! As in Redis, the policy is approximated: a few random keys are looked at, and a pool keeps the
//! best candidates seen so far, so that over many evictions the choice comes close to the true
//! order. The random keys come from elsewhere than in Redis. There is no single table to draw from,
//! and slots are of any size (one hash tag may have nearly all keys). So a slot is drawn with a
//! chance in proportion to its keys, from a list of weights that is renewed when it has aged.
//!
//! Each thread has a pool of its own, which needs no lock. The pool has keys, not pointers, so
//! candidates that have vanished are simply skipped.

use base::passing::{Passing, allocated};
use store::gate::Pinned;
use store::{Entry, Keyspace, SlotTable};

use crate::db::EvictionClock;
use crate::session::attachment::Attachment;
use config::{Config, MaxmemoryPolicy};

/// Candidates that are kept.
const POOL: usize = 16;
/// Keys looked at for one eviction, however large `maxmemory-samples` is.
const SAMPLES_MAX: usize = 1024;
/// Keys that are drawn at random if only some of a slot's keys expire, before its table is walked.
const DRAWS: usize = 16;
/// Buckets walked then, from a random one on.
const BUCKETS_PER_WALK: usize = 64;
/// Slots that are drawn for one sample: locked slots, and slots that were emptied meanwhile, give
/// nothing.
const SLOTS_PER_SAMPLE: usize = 4;
/// This many rounds of samples may find no candidate; then the search is left to the next command.
const ROUNDS: usize = 8;
/// Milliseconds after which the weights of slots are out of date.
const WEIGHTS_AGE: u64 = 100;

/// The criteria by which keys go, for one turn.
#[derive(Clone, Copy)]
pub(crate) struct Criteria<'t> {
    pub(crate) config: &'t Config,
    pub(crate) eviction_clock: EvictionClock,
    /// Milliseconds of the monotonic clock.
    pub(crate) monotonic: u64,
    /// Which turn it is.
    pub(crate) turn_clock: u64,
}

/// A key to be evicted.
pub(crate) struct Victim {
    pub(crate) database: usize,
    pub(crate) key: Box<[u8]>,
    /// The higher, the sooner it goes.
    score: u64,
}

impl Victim {
    /// Whether a key still deserves eviction as much as when it was looked at: it was not used
    /// since, and still expires if that is required.
    pub(crate) fn is_fair(&self, by: Criteria<'_>, entry: Entry<'_>) -> bool {
        score(by, entry).is_some_and(|score| score >= self.score)
    }
}

/// The result of the search for a victim.
pub(crate) enum Search {
    Found(Victim),
    /// There are candidates, but none was found in time.
    Later,
    /// There is none.
    Nothing,
}

/// One thread's search for keys to evict.
#[derive(Default)]
pub(crate) struct Evictor {
    policy: Option<MaxmemoryPolicy>,
    /// The best last.
    pool: Vec<Victim>,
    weights: Weights,
    /// The turn in which nothing was left to evict.
    found_nothing_at: u64,
}

impl Evictor {
    /// Whether it is known since the beginning of this turn that there is nothing to evict.
    pub(crate) fn found_nothing_in(&self, turn_clock: u64) -> bool {
        self.found_nothing_at == turn_clock
    }

    /// The next key to evict. It may have vanished, or have been used, by the time it is evicted.
    pub(crate) fn next(
        &mut self,
        keyspace: &Keyspace<Attachment>,
        pinned: Pinned<'_>,
        by: Criteria<'_>,
    ) -> Search {
        let policy = by.config.maxmemory_policy;
        if self.policy.replace(policy) != Some(policy) {
            self.pool.clear();
            self.weights = Weights::default();
        }
        for round in 0..ROUNDS {
            if round > 0 || self.weights.is_old(by.monotonic) {
                self.weights.count(keyspace, policy.is_volatile(), by.monotonic);
                if self.weights.total() == 0 {
                    self.pool.clear();
                    self.found_nothing_at = by.turn_clock;
                    return Search::Nothing;
                }
            }
            // Under a random policy one key is as good as another.
            let samples = if policy.is_random() { 1 } else { by.config.maxmemory_samples };
            let samples = (samples as usize).min(SAMPLES_MAX);
            for _ in 0..samples {
                self.sample(keyspace, pinned, by);
            }
            if let Some(best) = self.pool.pop() {
                return Search::Found(best);
            }
        }
        Search::Later
    }

    /// Looks at one random key.
    fn sample(&mut self, keyspace: &Keyspace<Attachment>, pinned: Pinned<'_>, by: Criteria<'_>) {
        for _ in 0..SLOTS_PER_SAMPLE {
            let Some((database, slot)) = self.weights.draw() else { return };
            let locked = keyspace.try_lock_one(pinned, slot, by.turn_clock);
            let Some(locked) = locked else { continue };
            let table = locked.table(database, slot).filter(|table| !table.is_empty());
            let volatile = by.config.maxmemory_policy.is_volatile();
            let drawn = table.and_then(|table| draw_entry(table, volatile));
            if let Some((entry, score)) = drawn.and_then(|entry| Some((entry, score(by, entry)?))) {
                self.propose(database, entry, score);
                return;
            }
        }
    }

    /// Puts a key into the pool if it is better than the worst one there, or if there is room.
    fn propose(&mut self, database: usize, entry: Entry<'_>, score: u64) {
        let known = |victim: &Victim| victim.database == database && *victim.key == *entry.key();
        if self.pool.iter().any(known) {
            return;
        }
        let at = self.pool.partition_point(|victim| victim.score < score);
        if self.pool.len() == POOL {
            if at == 0 {
                return;
            }
            self.pool.remove(0);
        }
        let at = at.min(self.pool.len());
        self.pool.insert(at, Victim { database, key: entry.key().into(), score });
    }
}

/// A random key of a table; one that expires if only those may be evicted, in a bounded search.
fn draw_entry(table: &SlotTable, volatile: bool) -> Option<Entry<'_>> {
    if !volatile {
        return table.random();
    }
    if table.expires() == 0 {
        return None;
    }
    let expires = |entry: &Entry<'_>| entry.expire_at().is_some();
    if let Some(entry) = (0..DRAWS).filter_map(|_| table.random()).find(expires) {
        return Some(entry);
    }
    draw_expiring(table)
}

/// An expiring key in a stretch of the table that begins anywhere; each such key has the same
/// chance.
fn draw_expiring(table: &SlotTable) -> Option<Entry<'_>> {
    let (mut drawn, mut seen) = (None, 0);
    let mut position = base::rng::next_u64() as u32;
    for _ in 0..table.bucket_count().min(BUCKETS_PER_WALK) {
        let next = table.walk(position, |entry| {
            if entry.expire_at().is_some() {
                seen += 1;
                if base::rng::below(seen) == 0 {
                    drawn = Some(entry);
                }
            }
        });
        position = next.unwrap_or(0);
    }
    drawn
}

/// How much a key deserves eviction; `None` when the policy spares it.
fn score(by: Criteria<'_>, entry: Entry<'_>) -> Option<u64> {
    use MaxmemoryPolicy as Policy;
    let policy = by.config.maxmemory_policy;
    if policy.is_volatile() && entry.expire_at().is_none() {
        return None;
    }
    let clock = by.eviction_clock;
    Some(match policy {
        Policy::AllkeysLru | Policy::VolatileLru => {
            // The time of the last access, and not the time since, so that candidates from earlier
            // and later looks are comparable.
            let idle = store::evict::idle_seconds(entry.clock(), clock.now);
            u64::MAX - (by.monotonic / 1000).saturating_sub(u64::from(idle))
        }
        Policy::AllkeysLfu | Policy::VolatileLfu => {
            let counter = store::evict::lfu_decayed(entry.clock(), clock.now, clock.decay_minutes);
            255 - u64::from(counter)
        }
        Policy::VolatileTtl => u64::MAX - entry.expire_at()?,
        Policy::AllkeysRandom | Policy::VolatileRandom => 0,
        Policy::NoEviction => return None,
    })
}

/// The slots that have candidates, each with the number of its keys.
#[derive(Default)]
struct Weights {
    /// (keys up to and with this slot, database, slot)
    sums: Vec<(u64, u32, u16)>,
    /// When they were counted, in milliseconds of the monotonic clock.
    at: u64,
    /// The list takes memory while keys are evicted, of which no more should be for that.
    memory: Passing,
}

impl Weights {
    /// Counts keys without locks: all, or those that expire.
    fn count(&mut self, keyspace: &Keyspace<Attachment>, volatile: bool, now: u64) {
        self.sums.clear();
        let mut sum = 0;
        for database in 0..keyspace.databases() {
            for slot in keyspace.occupied(database) {
                let keys = match volatile {
                    true => keyspace.slot_expires(database, slot),
                    false => keyspace.slot_len(database, slot),
                };
                if keys > 0 {
                    sum += keys as u64;
                    self.sums.push((sum, database as u32, slot));
                }
            }
        }
        self.at = now;
        self.memory = Passing::new(allocated(self.sums.capacity() * size_of::<(u64, u32, u16)>()));
    }

    fn is_old(&self, now: u64) -> bool {
        self.sums.is_empty() || now.abs_diff(self.at) >= WEIGHTS_AGE
    }

    fn total(&self) -> u64 {
        self.sums.last().map_or(0, |last| last.0)
    }

    /// A slot, with a chance in proportion to its keys.
    fn draw(&self) -> Option<(usize, u16)> {
        let wanted = base::rng::below(self.total());
        let at = self.sums.partition_point(|(sum, ..)| *sum <= wanted);
        self.sums.get(at).map(|&(_, database, slot)| (database as usize, slot))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::testing::TestServer;

    #[test]
    fn every_key_that_expires_is_drawn_among_those_that_do_not() {
        let server = TestServer::new();
        let expiring = 100;
        server.populate("{t}", 400, |index| (index < expiring).then_some(u64::MAX / 2));
        let (inside, slot) = (server.gate.enter(), base::crc::key_slot(b"t"));
        let locked = server.engine.keyspace.try_lock_one(inside.pinned(), slot, 0);
        let locked = locked.expect("nobody else holds the slot");
        let table = locked.table(0, slot).expect("the slot has keys");
        let drawn: HashSet<_> =
            (0..20_000).filter_map(|_| Some(draw_expiring(table)?.key())).collect();
        assert_eq!(drawn.len(), expiring);
    }

    #[test]
    fn slots_are_drawn_by_their_keys() {
        let server = TestServer::new();
        server.populate("{many}", 900, |_| None);
        server.populate("few", 100, |_| None);
        let mut weights = Weights::default();
        weights.count(&server.engine.keyspace, false, 0);
        assert_eq!(weights.total(), 1000);
        let many = base::crc::key_slot(b"{many}");
        let drawn = (0..10_000).filter(|_| weights.draw().is_some_and(|(_, slot)| slot == many));
        let drawn = drawn.count();
        assert!((8500..9500).contains(&drawn), "{drawn} of 10000 draws for 900 of 1000 keys");
        weights.count(&server.engine.keyspace, true, 0);
        assert_eq!(weights.total(), 0);
        assert_eq!(Weights::default().draw(), None);
    }
}
