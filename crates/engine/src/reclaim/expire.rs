//! Active expiry: removes keys, and fields of hashes, whose time has come, even if no command looks at
//! them.
//!
//! Redis keeps all keys with an expiry in a separate table and samples it. Here each slot knows a lower
//! bound of its next due time, so that a cycle skips each slot with nothing due at the cost of one
//! word, and looks at every entry of the other slots. A very large slot is looked at in parts: keys
//! that are due there go a little late, as with Redis's sampling, unless many of them are due.
//!
//! A round runs several times per second in a thread of its own, for a bounded share of one processor's
//! time. It opens its gate between short steps and holds a slot for a few entries at a time.

use std::sync::atomic::Ordering::Relaxed;

use base::clock::Ticks;
use base::limits::SLOTS;
use store::gate::{Gate, Presence};
use store::{Held, Key};

use crate::engine::Engine;
use crate::handler::db::Db;
use crate::run::turn::Turn;
use crate::wait::waiting::Attachment;
use config::Config;

/// How long one step stays inside the gate, in nanoseconds.
const STEP_NS: u64 = 1_000_000;
/// Entries looked at while a slot is held.
const ENTRIES_PER_HOLD: usize = 32;
/// Fields that go while a slot is held.
const FIELDS_PER_HOLD: usize = 64;
/// Entries of a slot that are looked at before other slots have their turn, for each unit of effort.
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
    /// The round comes back to a slot if more than this share of its keys was due, in percent.
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

/// Counts of entries looked at, and of those that were due.
#[derive(Clone, Copy, Default)]
struct Tally {
    entries: usize,
    due: usize,
}

impl Tally {
    fn add(&mut self, entries: usize, due: usize) {
        self.entries += entries;
        self.due += due;
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
    /// Hashes of that slot with more due fields than could be removed at once.
    hashes: Vec<Box<[u8]>>,
    /// All entries of that slot have been looked at.
    looked: bool,
    /// The entries of the present round.
    round: Tally,
    /// How many of the keys that were looked at lately were due, in percent.
    stale_percent: f64,
}

impl ExpireCycle {
    /// Deletes keys that are due, for as long as one round may take. The caller is outside its gate,
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
            let imports = turn.config.import_mode;
            if imports || engine.is_paused(turn.steady) || turn.effects.journal_failed {
                // The data is to stand still.
                break;
            }
            let effort = Effort::of(&turn.config);
            let inside = gate.enter();
            let progress = self.step(engine, inside.presence(), turn, &effort);
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

    /// Averages the share of keys that were found due over the rounds; the latest rounds weigh most.
    fn note_stale(&mut self, engine: &Engine) {
        let percent = self.round.due as f64 * 100.0 / self.round.entries.max(1) as f64;
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
        presence: Presence<'_>,
        turn: &mut Turn,
        effort: &Effort,
    ) -> Progress {
        let begun = Ticks::now();
        while begun.elapsed_ns() < STEP_NS {
            let Some((database, slot)) = self.next_due_slot(engine, turn.now) else {
                if !self.crowded {
                    return Progress::Done;
                }
                self.begin_lap(engine);
                continue;
            };
            let held = engine.keyspace.try_hold_one(presence, slot, turn.clock);
            // What is in the slot may have been written after `import-mode` was turned on.
            if turn.has_old_settings(engine) {
                return Progress::More;
            }
            let finished = match held {
                // A contended slot is busy: its turn comes again.
                None => true,
                Some(held) if self.hashes.is_empty() => self.look(engine, turn, held, database),
                Some(held) => self.go_on(engine, turn, held, database),
            };
            if finished || self.visit.entries >= effort.entries_per_visit {
                let limit = self.visit.entries * effort.stale_percent / 100;
                self.crowded |= !finished && self.visit.due > limit;
                self.pass(engine, 1);
            }
        }
        Progress::More
    }

    /// Goes on to the next slot with anything due. None if the lap ends before.
    fn next_due_slot(&mut self, engine: &Engine, now: u64) -> Option<(usize, u16)> {
        while self.left > 0 {
            let (database, from) = (self.next / SLOTS, self.next % SLOTS);
            match engine.keyspace.next_occupied(database, from) {
                None => self.pass(engine, SLOTS - from),
                Some(slot) if usize::from(slot) > from => {
                    self.pass(engine, usize::from(slot) - from);
                }
                Some(slot) if engine.keyspace.slot_next_due(database, slot) < now => {
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

    /// Looks at some entries of a slot and deletes those that are due, and fields of hashes. Returns
    /// whether the slot is done.
    fn look(
        &mut self,
        engine: &Engine,
        turn: &mut Turn,
        mut held: Held<'_, Attachment>,
        database: usize,
    ) -> bool {
        let (now, slot) = (turn.now, self.next % SLOTS);
        let mut due = Vec::<Box<[u8]>>::new();
        let (table, hashes) = (held.table_mut(database, slot as u16), &mut self.hashes);
        let look = table.look_for_due(now, ENTRIES_PER_HOLD, |entry| {
            let is_due = entry.expire_at().is_some_and(|at| at < now);
            let gone = if is_due { &mut due } else { &mut *hashes };
            gone.push(entry.key().into());
        });
        self.looked = look.finished;
        self.round.add(look.entries, due.len() + hashes.len());
        self.visit.add(look.entries, due.len());
        if !due.is_empty() || !hashes.is_empty() {
            let (mut fields, begun) = (0, Ticks::now());
            engine.delete_unasked(turn, held, database, |db| {
                if !due.is_empty() {
                    db.delete_due(&due);
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
        held: Held<'_, Attachment>,
        database: usize,
    ) -> bool {
        let (mut fields, hashes) = (0, &mut self.hashes);
        engine.delete_unasked(turn, held, database, |db| fields = delete_fields(db, hashes));
        self.visit.add(fields, fields);
        self.looked && self.hashes.is_empty()
    }
}

/// Removes fields whose time is over, as many as may go at once, and takes out of `hashes` those that
/// have no more of them. Returns how many fields it removed.
fn delete_fields(db: &mut Db<'_>, hashes: &mut Vec<Box<[u8]>>) -> usize {
    let mut left = FIELDS_PER_HOLD;
    while left > 0
        && let Some(key) = hashes.last()
    {
        let gone = db.delete_due_fields(&Key::new(key), left);
        if gone < left {
            hashes.pop();
        }
        left -= gone;
    }
    FIELDS_PER_HOLD - left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Effect, TestServer};

    /// "abc" as DUMP serialises it.
    const PAYLOAD: &[u8] = b"\x00\x03abc\x09\x00\x09^a\xf1\x15\xf4\xc1S";

    fn put(server: &mut TestServer, key: &str, at: u64) {
        let at = at.to_string();
        let reply = server.run(&[b"RESTORE", key.as_bytes(), at.as_bytes(), PAYLOAD, b"ABSTTL"]);
        assert_eq!(reply, b"+OK\r\n");
    }

    /// Runs rounds until nothing is due. The turn's clock is the real one.
    fn run_rounds(server: &mut TestServer) {
        let mut cycle = ExpireCycle::default();
        let gate = server.engine.gates.register();
        for _ in 0..1000 {
            cycle.round(&server.engine, &mut server.turn, &gate);
            let keyspace = &server.engine.keyspace;
            let due = |database: usize| {
                let mut slots = keyspace.occupied(database);
                slots.any(|slot| keyspace.slot_next_due(database, slot) < server.turn.now)
            };
            if !(0..keyspace.databases()).any(due) {
                return;
            }
        }
        panic!("rounds do not come to an end");
    }

    /// Puts 1800 keys into one slot and 900 into others; a third of them is due.
    fn filled() -> (TestServer, u64) {
        let mut server = TestServer::new();
        let now = server.turn.now;
        // Earlier than the real clock, so that an expiry in ten seconds is not refused now.
        server.now = Some(now - 20_000);
        for number in 0..2700 {
            let key = match number % 3 {
                0 => format!("spread:{number}"),
                _ => format!("{{one}}:{number}"),
            };
            let at = if number % 9 < 3 { now - 10_000 } else { now + 1_000_000 };
            put(&mut server, &key, at);
        }
        server.now = None;
        server.journal.take();
        (server, now)
    }

    #[test]
    fn what_is_due_goes_and_the_rest_stays() {
        let (mut server, now) = filled();
        server.text("SELECT 3");
        server.now = Some(now - 20_000);
        put(&mut server, "elsewhere", now - 10_000);
        server.now = None;
        server.journal.take();
        run_rounds(&mut server);
        let keyspace = &server.engine.keyspace;
        assert_eq!((keyspace.len(0), keyspace.expires(0), keyspace.len(3)), (1800, 1800, 0));
        assert_eq!(server.turn.stats.expired_keys.get(), 901);
        let effects = server.journal.take();
        let is_deletion = |effect: &Effect| effect.argv[0] == b"DEL";
        assert!(effects.iter().all(is_deletion), "no transaction around them");
        let deleted: usize = effects.iter().map(|effect| effect.argv.len() - 1).sum();
        assert_eq!(deleted, 901);
        assert!(effects.iter().any(|effect| effect.database == 3));
        assert!(server.engine.stats.stale_percentage() > 0.0);
    }

    #[test]
    fn a_round_without_anything_due_looks_at_nothing() {
        let (mut server, _) = filled();
        run_rounds(&mut server);
        let (mut cycle, gate) = (ExpireCycle::default(), server.engine.gates.register());
        cycle.round(&server.engine, &mut server.turn, &gate);
        assert_eq!(cycle.round.entries, 0);
    }

    #[test]
    fn a_crowded_slot_is_come_back_to_in_the_same_lap() {
        let (mut server, _) = filled();
        let effort = Effort { budget_ns: 0, entries_per_visit: 64, stale_percent: 10 };
        let mut cycle = ExpireCycle::default();
        cycle.begin_lap(&server.engine);
        server.turn.begin(&server.engine);
        let TestServer { engine, turn, gate, .. } = &mut server;
        let inside = gate.enter();
        let mut step = || cycle.step(engine, inside.presence(), turn, &effort);
        let done = (0..1000).any(|_| step() == Progress::Done);
        drop(inside);
        assert!(done && server.engine.keyspace.len(0) < 1900, "most of a third have gone");
    }

    /// A server with a hash whose every other field has expired, and the real time.
    fn with_fields(config: Config, key: &str, fields: usize) -> (TestServer, u64) {
        let mut server = TestServer::with_config(config);
        let now = server.turn.now;
        server.now = Some(now - 20_000);
        for number in 0..fields {
            server.text(&format!("HSET {key} f{number} value"));
            let at = if number % 2 == 0 { now - 10_000 } else { now + 1_000_000 };
            server.text(&format!("HPEXPIREAT {key} {at} FIELDS 1 f{number}"));
        }
        server.now = None;
        server.journal.take();
        (server, now)
    }

    #[test]
    fn fields_that_are_due_go_and_the_others_stay_in_order() {
        for fields in [20, 3000] {
            let (mut server, now) = with_fields(Config::default(), "h", fields);
            run_rounds(&mut server);
            assert_eq!(server.text("HLEN h"), format!(":{}\r\n", fields / 2));
            assert_eq!(server.turn.stats.expired_subkeys.get(), fields as u64 / 2);
            assert_eq!(server.engine.keyspace.field_expires(0), 1);
            let effects = server.journal.take();
            let of_hash = |effect: &Effect| effect.argv[..2] == [b"HDEL".to_vec(), b"h".to_vec()];
            assert!(effects.iter().all(of_hash), "no transaction around them, and no DEL");
            let removed: usize = effects.iter().map(|effect| effect.argv.len() - 2).sum();
            assert_eq!(removed, fields / 2);
            // The remaining fields go when their time has come, and the key with them.
            server.engine.keyspace.occupied(0).for_each(|slot| {
                assert_eq!(server.engine.keyspace.slot_next_due(0, slot), now + 1_000_000);
            });
        }
    }

    #[test]
    fn a_hash_goes_with_its_last_field_and_the_one_beside_it_stays() {
        let (mut server, now) = with_fields(Config::default(), "{s}h", 200);
        for number in (1..200).step_by(2) {
            server.text(&format!("HDEL {{s}}h f{number}"));
        }
        server.now = Some(now - 20_000);
        for field in 0..5 {
            server.text(&format!("HSET {{s}}kept f{field} v"));
        }
        server.text(&format!("HPEXPIREAT {{s}}kept {} FIELDS 1 f1", now - 1));
        server.now = None;
        run_rounds(&mut server);
        assert_eq!(server.text("EXISTS {s}h"), ":0\r\n");
        assert_eq!(server.text("HLEN {s}kept"), ":4\r\n");
        assert_eq!(server.engine.keyspace.field_expires(0), 0);
    }

    #[test]
    fn the_fields_of_one_large_hash_go_in_one_round_and_not_a_few_of_them() {
        // The longest rounds: the test checks what a round does, not its time.
        let config = Config { active_expire_effort: 10, hz: 1, ..Config::default() };
        let (mut server, _) = with_fields(config, "h", 4000);
        let (mut cycle, gate) = (ExpireCycle::default(), server.engine.gates.register());
        cycle.round(&server.engine, &mut server.turn, &gate);
        assert_eq!(server.text("HLEN h"), ":2000\r\n");
    }

    #[test]
    fn nothing_goes_while_data_is_imported() {
        let (mut server, _) = filled();
        server.engine.config.update(|config| config.import_mode = true);
        let (mut cycle, gate) = (ExpireCycle::default(), server.engine.gates.register());
        cycle.round(&server.engine, &mut server.turn, &gate);
        assert_eq!(server.engine.keyspace.len(0), 2700);
    }

    #[test]
    fn a_round_ends_where_the_settings_change() {
        let (mut server, _) = filled();
        let (mut cycle, gate) = (ExpireCycle::default(), server.engine.gates.register());
        cycle.begin_lap(&server.engine);
        server.turn.begin(&server.engine);
        let effort = Effort::of(&server.turn.config);
        server.engine.config.update(|config| config.import_mode = true);
        let inside = gate.enter();
        cycle.step(&server.engine, inside.presence(), &mut server.turn, &effort);
        drop(inside);
        assert_eq!(server.engine.keyspace.len(0), 2700);
    }

    #[test]
    fn a_debug_command_stops_it() {
        let (mut server, _) = filled();
        server.engine.debug.active_expire.store(false, Relaxed);
        let (mut cycle, gate) = (ExpireCycle::default(), server.engine.gates.register());
        cycle.round(&server.engine, &mut server.turn, &gate);
        assert_eq!(server.engine.keyspace.len(0), 2700);
    }
}
