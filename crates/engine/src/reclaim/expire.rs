//! Active expiry: removes keys, and fields of hashes, whose time has come, even if no command looks
//! at them.
//!
//! Redis keeps all keys with an expiry in a separate table and samples it. Here each slot knows a
//! lower bound of its next expiry, so that a cycle skips each slot with nothing expired at the cost
//! of one word, and looks at every entry of the other slots. A very large slot is looked at in
//! parts: expired keys there go a little late, as with Redis's sampling, unless many of them have
//! expired.
//!
//! A round runs several times per second in a thread of its own, for a bounded share of one
//! processor's time. It opens its gate between short steps and holds a slot for a few entries at a
//! time.

use std::sync::atomic::Ordering::Relaxed;

use base::clock::Ticks;
use base::limits::SLOTS;
use store::gate::{Gate, Pinned};
use store::{Key, LockedSlots};

use crate::db::Db;
use crate::engine::Engine;
use crate::session::attachment::Attachment;
use crate::turn::Turn;
use config::Config;

/// How long one step stays inside the gate, in nanoseconds.
const STEP_NS: u64 = 1_000_000;
/// Entries looked at while a slot is held.
const ENTRIES_PER_LOCK: usize = 32;
/// Fields that go while a slot is held.
const FIELDS_PER_LOCK: usize = 64;
/// Entries of a slot that are looked at before other slots have their turn, for each unit of
/// effort.
const ENTRIES_PER_VISIT: usize = 1024;
/// The weight of the last round in the average.
const STALE_WEIGHT: f64 = 0.05;
/// The share of time is meant for at least this many rounds per second.
const ROUNDS_PER_SECOND_MIN: u32 = 10;

/// How much a cycle does: the setting `active-expire-effort`, 1 to 10, turned into bounds.
struct Effort {
    /// Nanoseconds that a round may take.
    budget_ns: u64,
    /// Entries of a slot that are looked at before other slots have their turn.
    entries_per_visit: usize,
    /// The round comes back to a slot if more than this share of its keys had expired, in percent.
    stale_percent: usize,
}

impl Effort {
    fn of(config: &Config) -> Effort {
        let effort = config.active_expire_effort.clamp(1, 10);
        let rounds = config.hz.max(ROUNDS_PER_SECOND_MIN);
        let percent = u64::from(25 + 2 * (effort - 1));
        Effort {
            budget_ns: 1_000_000_000 * percent / 100 / u64::from(rounds),
            entries_per_visit: ENTRIES_PER_VISIT * effort as usize,
            stale_percent: 11 - effort as usize,
        }
    }
}

/// Counts of entries looked at, and of those that had expired.
#[derive(Clone, Copy, Default)]
struct Tally {
    entries: usize,
    expired: usize,
}

impl Tally {
    fn add(&mut self, entries: usize, expired: usize) {
        self.entries += entries;
        self.expired += expired;
    }
}

/// The result of a step.
#[derive(PartialEq, Eq)]
enum Progress {
    /// Its time was over.
    More,
    /// Nothing is left that is worth looking at now.
    Done,
}

/// Where the rounds stand. One thread has it.
#[derive(Default)]
pub struct ExpireCycle {
    /// The next slot, counted over all databases.
    next: usize,
    /// Slots that this lap has to pass yet.
    left: usize,
    /// A slot of this lap deserves another visit.
    crowded: bool,
    /// The present visit of a slot: entries, and removed fields.
    visit: Tally,
    /// Hashes of that slot with more expired fields than could be removed at once.
    hashes: Vec<Box<[u8]>>,
    /// All entries of that slot have been looked at.
    looked: bool,
    /// The entries of the present round.
    round: Tally,
    /// How many of the keys that were looked at lately had expired, in percent.
    stale_percent: f64,
}

impl ExpireCycle {
    /// Deletes expired keys, for as long as one round may take. The caller is outside its gate,
    /// and holds no slot.
    pub fn round(&mut self, engine: &Engine, turn: &mut Turn, gate: &Gate) {
        if !engine.debug.active_expire.load(Relaxed) {
            return;
        }
        let begun = Ticks::now();
        self.begin_lap(engine);
        self.round = Tally::default();
        loop {
            turn.begin(engine);
            if !turn.may_expire(engine) {
                break;
            }
            let effort = Effort::of(&turn.config);
            let inside = gate.enter();
            let progress = self.step(engine, inside.pinned(), turn, &effort);
            drop(inside);
            if progress == Progress::Done {
                break;
            }
            if begun.elapsed_ns() >= effort.budget_ns {
                turn.stats.expired_time_cap_reached.add(1);
                break;
            }
        }
        self.note_stale(engine);
        turn.stats.expire_cycle_nanoseconds.add(begun.elapsed_ns());
        engine.note_latency(turn, "expire-cycle", begun);
    }

    /// Averages the share of keys that were found expired over the rounds; the latest rounds weigh
    /// most.
    fn note_stale(&mut self, engine: &Engine) {
        let percent = self.round.expired as f64 * 100.0 / self.round.entries.max(1) as f64;
        self.stale_percent += (percent - self.stale_percent) * STALE_WEIGHT;
        engine.stats.note_stale_percentage(self.stale_percent);
    }

    fn begin_lap(&mut self, engine: &Engine) {
        self.left = engine.keyspace.databases() * SLOTS;
        self.crowded = false;
    }

    fn step(
        &mut self,
        engine: &Engine,
        pinned: Pinned<'_>,
        turn: &mut Turn,
        effort: &Effort,
    ) -> Progress {
        let begun = Ticks::now();
        while begun.elapsed_ns() < STEP_NS {
            let Some((database, slot)) = self.next_slot_to_expire(engine, turn.now) else {
                if !self.crowded {
                    return Progress::Done;
                }
                self.begin_lap(engine);
                continue;
            };
            let locked = engine.keyspace.try_lock_one(pinned, slot, turn.clock);
            // What is in the slot may have been written after `import-mode` was turned on.
            if turn.has_old_config(engine) {
                return Progress::More;
            }
            let finished = match locked {
                // A contended slot is busy: its turn comes again.
                None => true,
                Some(locked) if self.hashes.is_empty() => self.look(engine, turn, locked, database),
                Some(locked) => self.go_on(engine, turn, locked, database),
            };
            if finished || self.visit.entries >= effort.entries_per_visit {
                let limit = self.visit.entries * effort.stale_percent / 100;
                self.crowded |= !finished && self.visit.expired > limit;
                self.pass(engine, 1);
            }
        }
        Progress::More
    }

    /// Goes on to the next slot with anything expired. None if the lap ends before.
    fn next_slot_to_expire(&mut self, engine: &Engine, now: u64) -> Option<(usize, u16)> {
        while self.left > 0 {
            let (database, from) = (self.next / SLOTS, self.next % SLOTS);
            match engine.keyspace.next_occupied(database, from) {
                None => self.pass(engine, SLOTS - from),
                Some(slot) if usize::from(slot) > from => {
                    self.pass(engine, usize::from(slot) - from);
                }
                Some(slot) if engine.keyspace.slot_next_expiry(database, slot) < now => {
                    return Some((database, slot));
                }
                Some(_) => self.pass(engine, 1),
            }
        }
        None
    }

    fn pass(&mut self, engine: &Engine, slots: usize) {
        self.next = (self.next + slots) % (engine.keyspace.databases() * SLOTS);
        self.left = self.left.saturating_sub(slots);
        self.visit = Tally::default();
        self.hashes.clear();
        self.looked = false;
    }

    /// Looks at some entries of a slot and deletes those that have expired, and fields of hashes.
    /// Returns whether the slot is done.
    fn look(
        &mut self,
        engine: &Engine,
        turn: &mut Turn,
        mut locked: LockedSlots<'_, Attachment>,
        database: usize,
    ) -> bool {
        let (now, slot) = (turn.now, self.next % SLOTS);
        let mut expired = Vec::<Box<[u8]>>::new();
        let (table, hashes) = (locked.table_mut(database, slot as u16), &mut self.hashes);
        let look = table.look_for_expired(now, ENTRIES_PER_LOCK, |entry| {
            let has_expired = entry.expire_at().is_some_and(|at| at < now);
            let gone = if has_expired { &mut expired } else { &mut *hashes };
            gone.push(entry.key().into());
        });
        leave_held(engine, hashes);
        self.looked = look.finished;
        self.round.add(look.entries, expired.len() + hashes.len());
        self.visit.add(look.entries, expired.len());
        if !expired.is_empty() || !hashes.is_empty() {
            let (mut fields, begun) = (0, Ticks::now());
            engine.delete_unasked(turn, locked, database, |db| {
                if !expired.is_empty() {
                    db.delete_expired_keys(&expired);
                }
                fields = delete_fields(db, hashes);
            });
            engine.note_latency(turn, "expire-del", begun);
            self.visit.add(fields, fields);
        }
        self.looked && self.hashes.is_empty()
    }

    /// Removes more fields of the hashes that were met. Returns whether the slot is done.
    fn go_on(
        &mut self,
        engine: &Engine,
        turn: &mut Turn,
        locked: LockedSlots<'_, Attachment>,
        database: usize,
    ) -> bool {
        let (mut fields, hashes) = (0, &mut self.hashes);
        leave_held(engine, hashes);
        engine.delete_unasked(turn, locked, database, |db| fields = delete_fields(db, hashes));
        self.visit.add(fields, fields);
        self.looked && self.hashes.is_empty()
    }
}

/// Leaves the fields of hashes that MIGRATE holds: it could not tell a hash that has lost one from
/// a hash that somebody has changed.
fn leave_held(engine: &Engine, hashes: &mut Vec<Box<[u8]>>) {
    if engine.held_keys.are_any() {
        hashes.retain(|key| !engine.held_keys.have_any([&**key].into_iter()));
    }
}

/// Removes fields whose time is over, as many as may go at once, and takes out of `hashes` those
/// that have no more of them. Returns how many fields it removed.
fn delete_fields(db: &mut Db<'_>, hashes: &mut Vec<Box<[u8]>>) -> usize {
    let mut left = FIELDS_PER_LOCK;
    while left > 0
        && let Some(key) = hashes.last()
    {
        let gone = db.delete_expired_fields(&Key::new(key), left);
        if gone < left {
            hashes.pop();
        }
        left -= gone;
    }
    FIELDS_PER_LOCK - left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;

    /// Puts 1800 keys into one slot and 900 into others; a third of them has expired.
    fn filled() -> TestServer {
        let server = TestServer::new();
        let now = server.turn.now;
        let time = |expired: bool| Some(if expired { now - 10_000 } else { now + 1_000_000 });
        server.populate("{one}", 1800, |number| time(number % 9 < 3));
        for number in 0..900 {
            server.populate(&format!("spread:{number}"), 1, |_| time(number % 9 < 3));
        }
        server
    }

    /// Runs rounds until nothing is left that has expired. The turn's clock is the real one.
    fn run_rounds(server: &mut TestServer) {
        let mut cycle = ExpireCycle::default();
        let gate = server.engine.gates.register();
        for _ in 0..1000 {
            cycle.round(&server.engine, &mut server.turn, &gate);
            let keyspace = &server.engine.keyspace;
            let expired = |database: usize| {
                let mut slots = keyspace.occupied(database);
                slots.any(|slot| keyspace.slot_next_expiry(database, slot) < server.turn.now)
            };
            if !(0..keyspace.databases()).any(expired) {
                return;
            }
        }
        panic!("rounds do not come to an end");
    }

    #[test]
    fn a_round_without_anything_expired_looks_at_nothing() {
        let mut server = filled();
        run_rounds(&mut server);
        let (mut cycle, gate) = (ExpireCycle::default(), server.engine.gates.register());
        cycle.round(&server.engine, &mut server.turn, &gate);
        assert_eq!(cycle.round.entries, 0);
    }

    #[test]
    fn a_crowded_slot_is_visited_again_in_the_same_lap() {
        let mut server = filled();
        let effort = Effort { budget_ns: 0, entries_per_visit: 64, stale_percent: 10 };
        let mut cycle = ExpireCycle::default();
        cycle.begin_lap(&server.engine);
        server.turn.begin(&server.engine);
        let TestServer { engine, turn, gate, .. } = &mut server;
        let inside = gate.enter();
        let mut step = || cycle.step(engine, inside.pinned(), turn, &effort);
        let done = (0..1000).any(|_| step() == Progress::Done);
        drop(inside);
        assert!(done && server.engine.keyspace.len(0) < 1900, "most of a third have gone");
    }

    #[test]
    fn a_round_ends_where_the_settings_change() {
        let mut server = filled();
        let (mut cycle, gate) = (ExpireCycle::default(), server.engine.gates.register());
        cycle.begin_lap(&server.engine);
        server.turn.begin(&server.engine);
        let effort = Effort::of(&server.turn.config);
        server.engine.config.update(|config| config.import_mode = true);
        let inside = gate.enter();
        cycle.step(&server.engine, inside.pinned(), &mut server.turn, &effort);
        drop(inside);
        assert_eq!(server.engine.keyspace.len(0), 2700);
    }
}
