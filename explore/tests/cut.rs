//! A cut and its walker, beside writers.

use std::collections::BTreeMap;
use std::sync::Arc;

use explore::explore;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use store::cut::{Head, Sink, WalkProgress};
use store::freeze::{self, Piece, PieceKind};
use store::gate::{Access, Gate, Gates};
use store::{
    Key, Keyspace, Limits, LockedSlots, Set, SetLimits, StringRef, StringValue, Value, ValueMut,
    ValueRef,
};

/// Sets of texts are tables from the first member on.
const LIMITS: SetLimits = SetLimits { integers: 8, listpack: Limits { entries: 0, value: 0 } };

struct World {
    space: Keyspace<()>,
    gates: Gates,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World { space: Keyspace::new(2), gates: Gates::new() })
    }

    /// Runs a command: all its slots, or another attempt, with the gate open in between.
    fn command<T>(
        &self,
        gate: &Gate,
        slots: &[u16],
        act: impl FnOnce(&mut LockedSlots<'_, ()>) -> T,
    ) -> T {
        loop {
            let inside = gate.enter();
            if let Some(mut locked) = self.space.try_lock_slots(inside.pinned(), slots, 0) {
                return act(&mut locked);
            }
            drop(inside);
            thread::yield_now();
        }
    }
}

/// A set that is too large to be copied.
fn large_set() -> Value<'static> {
    let mut set = Set::new();
    for n in 0..80 {
        set.add(format!("member:{n}").as_bytes(), LIMITS);
    }
    Value::Set(set)
}

/// Adds up all amounts that are shown.
#[derive(Default)]
struct Sum {
    amounts: BTreeMap<Vec<u8>, i64>,
    members: usize,
    announced: usize,
}

impl Sink for Sum {
    fn entry(&mut self, head: &Head<'_>, value: ValueRef<'_>) {
        if let ValueRef::String(StringRef::Int(amount)) = value {
            let before = self.amounts.insert(head.key.to_vec(), amount);
            assert!(before.is_none(), "a key was shown twice");
        }
    }

    fn begin(&mut self, _: &Head<'_>, _: PieceKind, len: usize) {
        self.announced += len;
    }

    fn piece(&mut self, _: Piece<'_>) {
        self.members += 1;
    }

    fn end(&mut self) {}

    fn begin_text(&mut self, _: &Head<'_>, _: usize) {}

    fn text(&mut self, _: &[u8]) {}

    fn end_text(&mut self) {}
}

/// A writer that has found the cut comes with its set while the walker ends, or afterwards. No
/// thread then reads a set that is frozen for the walker, or frees it after it is removed. There
/// are many sets, so that the walker often ends between the moment at which the writer finds the
/// cut and the one at which it comes with a set.
#[test]
fn a_cut_that_is_given_up_leaves_nothing_behind() {
    const SETS: [&[u8]; 8] = [b"s1", b"s2", b"s3", b"s4", b"s5", b"s6", b"s7", b"s8"];
    explore(|| {
        let world = World::new();
        {
            let stopped = world.gates.stop_the_world();
            let mut locked = world.space.all_slots(&stopped, 0);
            for name in SETS {
                locked.insert(0, &Key::new(name), large_set(), None);
            }
        }
        let (gate, own) = (world.gates.register(), world.gates.register());
        let mut walker =
            world.space.begin_cut(&world.gates.stop_the_world(), 0).expect("the first");
        let writer = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                for key in SETS.map(Key::new) {
                    world.command(&own, &[key.slot], |locked| {
                        let version = locked.next_version(key.slot);
                        let mut entry = locked.find_mut(0, &key).expect("it is there");
                        if let ValueMut::Set(set) = entry.value_mut() {
                            set.remove(b"member:7");
                        }
                        entry.set_version(version);
                    });
                }
                for key in SETS.map(Key::new) {
                    drop(world.command(&own, &[key.slot], |locked| locked.remove(0, &key)));
                }
            }
        });
        let mut sink = Sum::default();
        for _ in 0..thread_rng().gen_range(0..4) {
            walker.step(Access::Gate(&gate), &mut sink);
        }
        drop(walker);
        writer.join().expect("the writer ends");
        drop((gate, world));
        assert_eq!(freeze::alive(), 0, "a collection is kept for a cut that has ended");
    });
}

/// Amounts move between keys of different slots, and a set of 80 members comes, changes and goes.
/// In every order, the cut has the sum, and all members or none.
#[test]
fn a_cut_is_an_instant() {
    explore(|| {
        let world = World::new();
        let names = [&b"a"[..], b"b", b"c"];
        {
            let stopped = world.gates.stop_the_world();
            let mut locked = world.space.all_slots(&stopped, 0);
            for name in names {
                locked.insert(0, &Key::new(name), Value::String(StringValue::Int(10)), None);
            }
            locked.insert(0, &Key::new(b"set"), large_set(), None);
        }
        let movers = [(0, 1), (1, 2)].map(|(from, to)| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let gate = world.gates.register();
                let (from, to) = (Key::new(names[from]), Key::new(names[to]));
                let mut slots = [from.slot, to.slot];
                slots.sort_unstable();
                for _ in 0..2 {
                    // A write that changes nothing, and then one that does.
                    world
                        .command(&gate, &[from.slot], |locked| locked.find_mut(0, &from).is_some());
                    world.command(&gate, &slots, |locked| move_one(locked, &from, &to));
                }
            })
        });
        let changer = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let gate = world.gates.register();
                let key = Key::new(b"set");
                drop(world.command(&gate, &[key.slot], |locked| locked.remove(0, &key)));
                // As in FLUSHALL and SWAPDB: the cut keeps what it has not seen.
                world.space.swap(&world.gates.stop_the_world(), 0, 1);
                world.space.swap(&world.gates.stop_the_world(), 0, 1);
            }
        });
        let gate = world.gates.register();
        let mut walker =
            world.space.begin_cut(&world.gates.stop_the_world(), 0).expect("the first");
        let mut sum = Sum::default();
        while walker.step(Access::Gate(&gate), &mut sum) != WalkProgress::Finished {}
        drop(walker);
        assert_eq!(sum.amounts.len(), 3);
        assert_eq!(sum.amounts.values().sum::<i64>(), 30, "an amount is torn apart");
        assert_eq!(sum.members, sum.announced);
        for thread in movers.into_iter().chain([changer]) {
            thread.join().expect("all writers end");
        }
        drop(world);
        assert_eq!(freeze::alive(), 0);
    });
}

fn move_one(locked: &mut LockedSlots<'_, ()>, from: &Key<'_>, to: &Key<'_>) {
    // The databases may have been exchanged.
    let database = usize::from(locked.find(0, from).is_none());
    for (key, by) in [(from, -1), (to, 1)] {
        let version = locked.next_version(key.slot);
        let mut entry = locked.find_mut(database, key).expect("amounts stay");
        let ValueRef::String(StringRef::Int(amount)) = entry.as_ref().value() else {
            panic!("an amount is an integer");
        };
        drop(entry.replace(Value::String(StringValue::Int(amount + by)), None));
        drop(entry);
        locked.find_mut(database, key).expect("just now").set_version(version);
    }
}
