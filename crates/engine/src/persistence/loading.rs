//! Loading: how data from a file enters the keyspace, and what clients see meanwhile.
//!
//! There are two ways in. A [`Loader`] places keys with their values; several threads have one
//! each, and they meet only at slots. Commands of an append-only file are replayed through
//! [`Engine::execute`], with a [`Turn::replaying`] and a session that [`Session::replays`].
//!
//! While [`Loading`] is on, clients may run only commands whose rows allow it.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use rdb::ValueLimits;
use rdb::file::Usage;
use smallvec::SmallVec;
use store::gate::{Access, Pinned};
use store::list::ListLimits;
use store::{Key, Keyspace, Limits, LockedSlots, Value};

use crate::db::expiry::Expiry;
use crate::db::{EvictionClock, set_limits};
use crate::engine::Engine;
use crate::session::Session;
use crate::session::attachment::Attachment;
use crate::turn::Turn;
use config::{Config, NotifyEvents};

pub use crate::files::progress::{Counts, Duplicates, LoadFailed, Loading, Progress, Source};

/// The slots and buckets of this many entries are fetched together, before the first is placed.
const WINDOW: usize = 32;

/// What happens to a key that has expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expired {
    /// It is left out and counted.
    Drop,
    /// It stays until it is deleted like other keys: later commands may refer to it.
    Keep,
}

/// How keys are taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadRules {
    /// What happens to a key that exists already.
    pub duplicates: Duplicates,
    /// What happens to a key that has expired.
    pub expired: Expired,
}

/// A key on its way into the keyspace.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The number of its database.
    pub database: usize,
    /// The key.
    pub key: Cow<'a, [u8]>,
    /// Its value.
    pub value: Value<'a>,
    /// When it expires, in Unix milliseconds.
    pub expire_at: Option<u64>,
    /// How it was used, if that is known.
    pub usage: Option<Usage>,
    /// Its content type, if known.
    pub content_type: Option<&'a [u8]>,
}

/// Why a key cannot be taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misfit {
    /// The number of a database that does not exist.
    Database(usize),
    /// The key is there already.
    Duplicate,
}

impl fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::Database(number) => {
                write!(formatter, "database {number} is beyond those that `databases` allows")
            }
            Misfit::Duplicate => formatter.write_str("the key is there already"),
        }
    }
}

/// Places keys in the keyspace, for one thread.
pub struct Loader<'e> {
    engine: &'e Engine,
    keyspace: &'e Keyspace<Attachment>,
    rules: LoadRules,
    access: Access<'e>,
    eviction_clock: EvictionClock,
    /// Unix milliseconds.
    now: u64,
    counts: Counts,
}

impl<'e> Loader<'e> {
    /// A loader. A thread that has stopped the world may have several, on several threads: they
    /// meet at the locks of slots.
    pub fn new(engine: &'e Engine, rules: LoadRules, access: Access<'e>) -> Loader<'e> {
        Loader::into_another(engine, &engine.keyspace, rules, access)
    }

    /// The same, into a keyspace that is not the engine's, or not yet.
    pub fn into_another(
        engine: &'e Engine,
        keyspace: &'e Keyspace<Attachment>,
        rules: LoadRules,
        access: Access<'e>,
    ) -> Loader<'e> {
        let now = base::clock::now_ms();
        let eviction_clock = EvictionClock::new(&engine.config.load(), base::clock::monotonic_ms());
        Loader { engine, keyspace, rules, access, eviction_clock, now, counts: Counts::default() }
    }

    /// Keys that have expired are placed from now on.
    pub fn keep_expired(&mut self) {
        self.rules.expired = Expired::Keep;
    }

    /// Keys up to now.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Places keys, in their order. If a key does not fit, all keys before it are placed. The error
    /// comes with its position.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn place(&mut self, arrivals: Vec<Arrival<'_>>) -> Result<(), (usize, Misfit)> {
        let mut arrivals = arrivals.into_iter();
        let mut placed = 0;
        while arrivals.len() > 0 {
            let window: SmallVec<[Arrival<'_>; WINDOW]> = arrivals.by_ref().take(WINDOW).collect();
            let count = window.len();
            self.place_window(window).map_err(|(index, misfit)| (placed + index, misfit))?;
            placed += count;
        }
        Ok(())
    }

    fn place_window(
        &mut self,
        window: SmallVec<[Arrival<'_>; WINDOW]>,
    ) -> Result<(), (usize, Misfit)> {
        let keyspace = self.keyspace;
        if let Some(index) = window.iter().position(|own| own.database >= keyspace.databases()) {
            return Err((index, Misfit::Database(window[index].database)));
        }
        let places: SmallVec<[(u64, u16); WINDOW]> = window
            .iter()
            .map(|arrival| {
                let key = Key::new(&arrival.key);
                keyspace.prefetch_slot(key.slot);
                (key.hash, key.slot)
            })
            .collect();
        let inside = self.access.enter();
        for (arrival, &(hash, slot)) in window.iter().zip(&places) {
            keyspace.prefetch_bucket(inside.pinned(), arrival.database, slot, hash);
        }
        let clock = base::clock::now_us();
        let mut replaced = Vec::new();
        for (index, (arrival, (hash, slot))) in window.into_iter().zip(places).enumerate() {
            if self.has_expired(&arrival) {
                self.counts.expired += 1;
                continue;
            }
            let eviction_clock = clock_of(self.eviction_clock, arrival.usage);
            let Arrival { database, key, value, expire_at, content_type, .. } = arrival;
            let key = Key { bytes: &key, hash, slot };
            let mut locked = hold(keyspace, inside.pinned(), slot, clock);
            if locked.find(database, &key).is_some() {
                if self.rules.duplicates == Duplicates::Refuse {
                    return Err((index, Misfit::Duplicate));
                }
                replaced.extend(locked.remove(database, &key));
            }
            locked.insert(database, &key, value, expire_at).set_clock(eviction_clock);
            let content_type_id =
                content_type.and_then(|name| self.engine.content_types.content_type_id(name));
            if let Some(content_type_id) = content_type_id
                && let Some(mut entry) = locked.find_mut(database, &key)
            {
                entry.set_content_type_id(content_type_id);
            }
            self.counts.loaded += 1;
        }
        drop(inside);
        for removed in replaced.into_iter().filter(|removed| removed.is_large()) {
            self.engine.free_later(removed);
        }
        Ok(())
    }

    fn has_expired(&self, arrival: &Arrival<'_>) -> bool {
        self.rules.expired == Expired::Drop && arrival.expire_at.is_some_and(|at| at < self.now)
    }
}

/// Locks one slot, and waits for it: the other threads that lock slots now are loaders, or look at
/// them briefly.
fn hold<'k>(
    keyspace: &'k Keyspace<Attachment>,
    pinned: Pinned<'k>,
    slot: u16,
    clock: u64,
) -> LockedSlots<'k, Attachment> {
    loop {
        match keyspace.try_lock_briefly(pinned, slot, clock) {
            Some(locked) => return locked,
            None => std::thread::yield_now(),
        }
    }
}

/// The eviction clock of a key with this usage. A usage that the policy does not need is ignored,
/// as in Redis.
fn clock_of(clock: EvictionClock, usage: Option<Usage>) -> u32 {
    /// Clocks wrap: a key that was idle for longer than half of a round would seem to be from the
    /// future.
    const IDLE_MAX: u64 = 1 << 23;
    match usage {
        Some(Usage::Frequency(counter)) if clock.lfu => (clock.now << 8) | u32::from(counter),
        Some(Usage::IdleSeconds(seconds)) if !clock.lfu => {
            clock.now.wrapping_sub(seconds.min(IDLE_MAX) as u32) & 0xff_ffff
        }
        _ => clock.fresh(),
    }
}

impl Engine {
    /// How large values may be in their packed encodings, as the settings say.
    pub fn value_limits(&self) -> ValueLimits {
        let config = self.config.load();
        let threshold = self.debug.quicklist_packed_threshold.load(Relaxed);
        ValueLimits {
            list: ListLimits::new(config.list_max_listpack_size, threshold),
            set: set_limits(&config),
            hash: Limits {
                entries: config.hash_max_listpack_entries,
                value: config.hash_max_listpack_value,
            },
            zset: Limits {
                entries: config.zset_max_listpack_entries,
                value: config.zset_max_listpack_value,
            },
        }
    }

    /// What happens to keys in a snapshot that have expired: see [`crate::db::expiry`].
    pub fn expired_in_snapshot(&self) -> Expired {
        let elsewhere = self.expires_elsewhere.load(Relaxed);
        match Expiry::of(&self.config.load(), elsewhere).drops_when_loaded() {
            true => Expired::Drop,
            false => Expired::Keep,
        }
    }

    /// A session that replays commands.
    pub fn replaying_session(&self) -> Session {
        let mut session = Session::internal();
        session.replays = true;
        session
    }
}

impl Turn {
    /// The turn of a thread that replays commands. Its work is not work of clients, so it counts
    /// nowhere, no limit of memory applies, nobody is told of it, and the journal does not get the
    /// commands again, because they come from there.
    pub fn replaying(engine: &Engine) -> Turn {
        let config = engine.config.load();
        let config = Config {
            maxmemory: 0,
            slowlog_log_slower_than: -1,
            commandlog_request_larger_than: -1,
            commandlog_reply_larger_than: -1,
            latency_monitor_threshold: 0,
            latency_tracking: false,
            notify_keyspace_events: NotifyEvents::default(),
            ..Config::clone(&config)
        };
        let mut turn = Turn::uncounted(engine, config);
        turn.look_at_clock();
        turn
    }

    /// Looks at the clock again. [`Turn::now`] is 0: while commands are replayed nothing expires,
    /// because later commands may refer to keys as they were when the commands were written.
    pub fn look_at_clock(&mut self) {
        self.clock = base::clock::now_us();
        self.now = 0;
        self.eviction_clock = EvictionClock::new(&self.config, base::clock::monotonic_ms());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;
    use store::StringValue;

    const RULES: LoadRules = LoadRules { duplicates: Duplicates::Refuse, expired: Expired::Drop };

    fn arrival(key: &str, database: usize, expire_at: Option<u64>) -> Arrival<'_> {
        let value = Value::String(StringValue::Plain(Cow::Borrowed(b"v")));
        let key = Cow::Borrowed(key.as_bytes());
        Arrival { database, key, value, expire_at, usage: None, content_type: None }
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_place() {
        let server = TestServer::new();
        let gate = server.engine.gates.register();
        let mut loader = Loader::new(&server.engine, RULES, Access::Gate(&gate));
        let names: Vec<String> = (0..100).map(|number| format!("k{number}")).collect();
        let mut arrivals: Vec<_> = names.iter().map(|name| arrival(name, 0, None)).collect();
        arrivals.push(arrival("k7", 0, None));
        assert_eq!(loader.place(arrivals), Err((100, Misfit::Duplicate)));
        assert_eq!(server.engine.keyspace.len(0), 100);
        let beyond = loader.place(vec![arrival("a", 15, None), arrival("b", 16, None)]);
        assert_eq!(beyond, Err((1, Misfit::Database(16))));
    }

    #[test]
    fn several_threads_load_at_once() {
        let server = TestServer::new();
        let engine = &server.engine;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    let gate = engine.gates.register();
                    let mut loader = Loader::new(engine, RULES, Access::Gate(&gate));
                    // One slot, so that all meet.
                    let names: Vec<String> =
                        (0..2000).map(|number| format!("{{s}}{thread}:{number}")).collect();
                    loader
                        .place(names.iter().map(|name| arrival(name, 1, None)).collect())
                        .unwrap();
                });
            }
        });
        assert_eq!(engine.keyspace.len(1), 8000);
    }

    #[test]
    fn usage_becomes_the_clock_of_the_policy() {
        let mut config = Config::default();
        let lru = EvictionClock::new(&config, 5_000_000);
        assert_eq!(clock_of(lru, Some(Usage::IdleSeconds(600))), 4400);
        assert_eq!(
            clock_of(lru, Some(Usage::IdleSeconds(6000))),
            5000u32.wrapping_sub(6000) & 0xff_ffff
        );
        assert_eq!(clock_of(lru, Some(Usage::Frequency(9))), lru.fresh());
        config.maxmemory_policy = config::MaxmemoryPolicy::AllkeysLfu;
        let lfu = EvictionClock::new(&config, 6_000_000);
        assert_eq!(clock_of(lfu, Some(Usage::Frequency(9))), 100 << 8 | 9);
        assert_eq!(clock_of(lfu, Some(Usage::IdleSeconds(9))), lfu.fresh());
    }

    #[test]
    fn the_remaining_time_follows_from_what_is_done() {
        let loading = Loading::default();
        assert_eq!(loading.progress(), None);
        loading.begin(1000);
        loading.note_bytes(249);
        let progress = loading.progress().unwrap();
        assert_eq!(progress.percentage(), 24.9);
        assert_eq!(progress.remaining_seconds(progress.started_at), 1);
        assert_eq!(progress.remaining_seconds(progress.started_at + 10), 30);
        loading.end();
        assert!(!loading.is_on());
    }
}
