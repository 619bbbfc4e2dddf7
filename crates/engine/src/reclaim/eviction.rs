//! Memory: how much keys take, how much waits to be freed, and `maxmemory`.
//!
//! Eviction runs before a command locks anything ([`admit`]), and again when CONFIG SET lowers the
//! limit. A time bound (`maxmemory-eviction-tenacity`) keeps one command from doing all the work;
//! the rest is left to the next commands and to [`Engine::evict`]. `candidates` decides which keys
//! go.
//!
//! Threads publish their allocations a turn at a time. A thread that looks at the limit adds its
//! own allocations since then. It publishes again when these have become large, and after each
//! eviction. So the next command sees what one command adds, and nothing is evicted twice for the
//! same bytes.
//!
//! Memory that is not data of clients and becomes free by itself does not count against the limit:
//! values that wait to be freed or to be written to a snapshot, tables that other threads may still
//! look at, what is on its way to a file or to followers ([`base::passing`]), and the space in
//! which workers read, parse and choose, which may be larger than all data under a small limit.

use std::sync::atomic::Ordering::Relaxed;

use base::clock::Ticks;
use base::limits::FREED_AT_ONCE_BYTES;
use store::garbage::Garbage;
use store::gate::Pinned;
use store::pack::good_size;
use store::{Entry, Key, Removed, Sizes, SlotTable, StringRef, ValueRef};

use crate::command::error::{CommandError, CommandResult};
use crate::command::{self, Spec};
use crate::engine::Engine;
use crate::memory::candidates::{Criteria, Evictor, Search, Victim};
use crate::session::Session;
use crate::turn::Turn;
use crate::turn::expansion::any_has;
use config::MaxmemoryPolicy;

/// Evictions between two looks at the time.
const EVICTIONS_PER_LOOK: usize = 16;
/// Members of a collection from which its size is estimated by default.
pub const DEFAULT_SAMPLES: usize = 5;
/// The size of a list is estimated from at least this many nodes.
const NODE_SAMPLES: usize = 64;
/// The size of a flushed database is estimated from this many tables.
const FLUSH_SAMPLES: usize = 32;

/// Bytes that a key takes: its entry and its value. Large collections are estimated from `samples`
/// members; 0 means all.
pub fn entry_memory(entry: Entry<'_>, samples: usize) -> usize {
    let samples = if samples == 0 { usize::MAX } else { samples };
    let value = match entry.value() {
        ValueRef::String(StringRef::Shared(buffer)) => {
            // The counts and the vector's own three words, and its buffer.
            good_size(size_of::<[usize; 5]>()) + good_size(buffer.capacity())
        }
        ValueRef::String(_) => 0,
        ValueRef::List(list) => list.memory_estimate(samples.max(NODE_SAMPLES)),
        ValueRef::Set(set) => set.memory_usage(samples),
        ValueRef::Hash(hash) => hash.memory_usage(samples),
        ValueRef::Zset(zset) => zset.memory_usage(samples),
        ValueRef::Stream(stream) => stream.memory_usage(samples.max(NODE_SAMPLES)),
    };
    good_size(entry.allocated()) + value
}

impl Engine {
    /// Hands a large value to the background to be freed.
    pub(crate) fn free_later(&self, removed: Removed) {
        let bytes = entry_memory(removed.entry(), DEFAULT_SAMPLES);
        let pending = self.memory.free_later(removed, 1, bytes, &self.host);
        self.host.drop_later(Box::new(pending));
    }

    /// Frees parts that were removed from collections, in the background if they are many.
    pub(crate) fn free_parts(&self, garbage: Garbage) {
        let bytes = garbage.bytes();
        if bytes > FREED_AT_ONCE_BYTES {
            let pending = self.memory.free_later(garbage, 0, bytes, &self.host);
            self.host.drop_later(Box::new(pending));
        }
    }

    /// Hands the tables of a flushed database to the background to be freed.
    pub(crate) fn free_tables_later(&self, tables: Vec<SlotTable>) {
        let keys = tables.iter().map(SlotTable::len).sum();
        let bytes = estimated_bytes(&tables, keys);
        let pending = self.memory.free_later(tables, keys as u64, bytes, &self.host);
        self.host.drop_later(Box::new(pending));
    }

    /// Notes the memory in use before there is any data. Must be called after the threads have
    /// started.
    pub fn note_startup(&self) {
        self.memory.note_startup(self.host.used_memory());
    }

    /// Takes the samples that INFO's rates and peaks come from. Must be called ten times a second.
    pub fn sample_rates(&self) {
        let now_us = base::clock::monotonic_us();
        self.stats.sample_rates(now_us);
        self.memory.note_peak(self.host.used_memory());
        self.clients.sample_buffers(now_us / 1_000_000);
    }

    /// Notes how many bytes the calling thread keeps for reading and parsing requests.
    pub fn note_scratch(&self, turn: &mut Turn, bytes: usize) {
        let before = std::mem::replace(&mut turn.used_memory.scratch, bytes);
        if bytes != before {
            // Two's complement: a difference that is negative is subtracted.
            self.memory.scratch.fetch_add(bytes.wrapping_sub(before), Relaxed);
        }
    }

    /// Bytes that are data no more, or never were, and that the counter of used memory takes for
    /// data.
    fn freed_soon(&self) -> usize {
        self.memory.pending_bytes()
            + self.memory.scratch.load(Relaxed)
            + self.keyspace.cut_memory()
            + self.host.retired_memory()
    }

    /// Bytes in use that do not count against `maxmemory`.
    pub fn uncounted_memory(&self) -> usize {
        let passing = self.host.used_memory().saturating_sub(self.host.counted_memory());
        passing + self.freed_soon()
    }

    /// Evicts keys while more than `maxmemory` is used, for as long as one command may. Returns
    /// whether it is worth calling again at once. The calling thread holds no slot.
    pub fn evict(&self, pinned: Pinned<'_>, turn: &mut Turn) -> bool {
        turn.config.maxmemory > 0 && matches!(make_room(self, pinned, turn), Room::Later)
    }
}

/// The bytes that the keys of some tables take, estimated from a few of them.
fn estimated_bytes(tables: &[SlotTable], keys: usize) -> usize {
    let step = tables.len().div_ceil(FLUSH_SAMPLES).max(1);
    let entries = tables.iter().step_by(step).filter_map(SlotTable::random);
    let mut sizes = Sizes::default();
    entries.for_each(|entry| sizes.note(entry_memory(entry, DEFAULT_SAMPLES)));
    let overhead: usize = tables.iter().step_by(step).map(SlotTable::overhead).sum();
    sizes.average(keys) * keys + overhead * step
}

/// Makes room when a limit is set. When there is none to be made, refuses commands that would need
/// more memory.
#[inline]
pub(crate) fn admit(
    engine: &Engine,
    pinned: Pinned<'_>,
    turn: &mut Turn,
    session: &Session,
    command: &Spec,
) -> CommandResult {
    if turn.config.maxmemory == 0 {
        turn.effects.short_of_memory = false;
        return Ok(());
    }
    let refusable = may_need_memory(session, command);
    let runs_script = any_has(command, session, command::SCRIPT);
    if !refusable && !runs_script && turn.evictor.found_nothing_in(turn.began_at) {
        // Looking again for every read would make reads slow for nothing.
        return Ok(());
    }
    let room = make_room(engine, pinned, turn);
    turn.effects.short_of_memory = matches!(room, Room::None);
    match room {
        Room::None if refusable => Err(CommandError::OUT_OF_MEMORY),
        _ => Ok(()),
    }
}

/// Whether a command is refused when memory is short: commands whose rows say so, and an EXEC with
/// such commands. `client-query-buffer-limit` bounds what a transaction queues otherwise.
fn may_need_memory(session: &Session, command: &Spec) -> bool {
    any_has(command, session, command::DENYOOM)
}

/// The result of an attempt to make room.
enum Room {
    /// There is room.
    Enough,
    /// Not yet: keys that may be evicted remain, or were not found in time.
    Later,
    /// No key remains that the policy may evict.
    None,
}

/// Evicts until the used memory is below the limit, or time is up.
fn make_room(engine: &Engine, pinned: Pinned<'_>, turn: &mut Turn) -> Room {
    turn.used_memory.follow(turn.began_at, &*engine.host);
    if excess(engine, turn) == 0 {
        engine.memory.note_within(turn.monotonic_us);
        return Room::Enough;
    }
    if engine.stands_still(turn.monotonic, turn.effects.journal_failed) {
        return Room::Enough;
    }
    engine.memory.note_exceeded(turn.monotonic_us);
    if turn.config.replica_ignore_maxmemory && engine.replication.is_replica() {
        // The primary decides what goes.
        return Room::Enough;
    }
    let never = turn.config.maxmemory_policy == MaxmemoryPolicy::NoEviction;
    // A key that is evicted while data is imported would be missing from the copy.
    if never || turn.config.import_mode {
        return Room::None;
    }
    let begun = Ticks::now();
    let mut evictor = std::mem::take(&mut turn.evictor);
    let room = evict_bytes(engine, pinned, turn, &mut evictor, begun);
    turn.evictor = evictor;
    engine.note_latency(turn, "eviction-cycle", begun);
    if matches!(room, Room::Enough) {
        engine.memory.note_within(turn.monotonic_us);
    }
    room
}

/// Bytes in use beyond the limit.
fn excess(engine: &Engine, turn: &Turn) -> usize {
    let limit = usize::try_from(turn.config.maxmemory).unwrap_or(usize::MAX);
    turn.used_memory.bytes.saturating_sub(engine.freed_soon()).saturating_sub(limit)
}

fn evict_bytes(
    engine: &Engine,
    pinned: Pinned<'_>,
    turn: &mut Turn,
    evictor: &mut Evictor,
    begun: Ticks,
) -> Room {
    let budget_ns = time_budget_ns(turn.config.maxmemory_eviction_tenacity);
    turn.used_memory.look(&*engine.host);
    // By its own count a command evicts no more than the excess that it found, because what it
    // evicts may still be in use by another thread for a moment.
    let mut owed = excess(engine, turn);
    let mut evicted = 0;
    while owed > 0 && excess(engine, turn) > 0 {
        let victim = match evictor.next(&engine.keyspace, pinned, criteria(turn)) {
            Search::Found(victim) => victim,
            Search::Nothing => return Room::None,
            Search::Later => return Room::Later,
        };
        owed = owed.saturating_sub(evict_key(engine, pinned, turn, &victim).unwrap_or(0));
        turn.used_memory.look(&*engine.host);
        evicted += 1;
        if evicted % EVICTIONS_PER_LOOK == 0 && begun.elapsed_ns() > budget_ns {
            return Room::Later;
        }
    }
    Room::Enough
}

/// The criteria of a turn for which keys to evict.
fn criteria(turn: &Turn) -> Criteria<'_> {
    Criteria {
        config: &turn.config,
        eviction_clock: turn.eviction_clock,
        monotonic: turn.monotonic,
        turn_clock: turn.began_at,
    }
}

/// How long one command may evict: up to half a millisecond in even steps, then 15 % more each.
fn time_budget_ns(tenacity: u32) -> u64 {
    match tenacity {
        0..=10 => u64::from(tenacity) * 50_000,
        11..=99 => (500_000.0 * 1.15_f64.powi(tenacity as i32 - 10)) as u64,
        _ => u64::MAX,
    }
}

/// Evicts a key if it is still a candidate, and returns how many bytes it took.
fn evict_key(
    engine: &Engine,
    pinned: Pinned<'_>,
    turn: &mut Turn,
    victim: &Victim,
) -> Option<usize> {
    let key = Key::new(&victim.key);
    // A contended slot is busy: another key will do.
    let locked = engine.keyspace.try_lock_one(pinned, key.slot, turn.clock)?;
    let entry = locked
        .find(victim.database, &key)
        .filter(|entry| victim.is_fair(criteria(turn), *entry))?;
    let bytes = entry_memory(entry, DEFAULT_SAMPLES);
    let begun = Ticks::now();
    engine.delete_unasked(turn, locked, victim.database, |db| db.delete_evicted(&key));
    engine.note_latency(turn, "eviction-del", begun);
    turn.stats.evicted_keys.add(1);
    Some(bytes)
}
