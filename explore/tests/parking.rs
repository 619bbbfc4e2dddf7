//! Commands that find a slot locked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use explore::explore;
use shuttle::thread;
use store::gate::Gates;
use store::{Key, Keyspace};

struct World {
    space: Keyspace<()>,
    gates: Gates,
}

fn world() -> Arc<World> {
    Arc::new(World { space: Keyspace::new(1), gates: Gates::new() })
}

/// A program keeps its slot until somebody else has answered a PING. Who wants that slot gives up
/// instead of waiting, so it comes to its PING; if it waited, no schedule would end.
#[test]
fn who_finds_a_slot_locked_goes_on_with_others() {
    explore(|| {
        let (world, answered) = (world(), Arc::new(AtomicBool::new(false)));
        let program = thread::spawn({
            let (world, answered) = (Arc::clone(&world), Arc::clone(&answered));
            move || {
                let gate = world.gates.register();
                let inside = gate.enter();
                let slot = Key::new(b"k").slot;
                let held = world.space.try_hold_one(inside.presence(), slot, 0);
                while held.is_some() && !answered.load(Relaxed) {
                    thread::yield_now();
                }
            }
        });
        let gate = world.gates.register();
        let slot = Key::new(b"k").slot;
        loop {
            let inside = gate.enter();
            let served = world.space.try_hold_one(inside.presence(), slot, 0).is_some();
            drop(inside);
            answered.store(true, Relaxed);
            if served {
                break;
            }
            thread::yield_now();
        }
        program.join().expect("it has been told to end");
    });
}

/// Small commands lock one slot each, for ever; a large one wants both. With a reservation it gets
/// them: without, it would have to find both free at once, and the small ones see to it that they
/// are not: the next one locks before the last one unlocks the other slot.
#[test]
fn who_fails_for_long_gets_its_slots() {
    explore(|| {
        let (world, done) = (world(), Arc::new(AtomicBool::new(false)));
        let keys = [&b"a"[..], b"b"];
        let held = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let small = [0, 1].map(|own| {
            let (world, done, held) = (Arc::clone(&world), Arc::clone(&done), Arc::clone(&held));
            thread::spawn(move || {
                let gate = world.gates.register();
                let slot = Key::new(keys[own]).slot;
                while !done.load(Relaxed) {
                    let inside = gate.enter();
                    if let Some(lock) = world.space.try_hold_one(inside.presence(), slot, 0) {
                        held[own].fetch_add(1, Relaxed);
                        thread::yield_now();
                        held[own].fetch_sub(1, Relaxed);
                        drop(lock);
                    }
                    drop(inside);
                    thread::yield_now();
                }
            })
        });
        let gate = world.gates.register();
        let mut slots = keys.map(|key| Key::new(key).slot);
        slots.sort_unstable();
        let reservation = world.space.reserve();
        loop {
            let inside = gate.enter();
            let both = world.space.try_hold_reserved(inside.presence(), &reservation, &slots, 0);
            if both.is_some() {
                let alone = held.iter().all(|held| held.load(Relaxed) == 0);
                assert!(alone, "a slot has two holders");
                break;
            }
            drop(both);
            drop(inside);
            thread::yield_now();
        }
        drop(reservation);
        done.store(true, Relaxed);
        for thread in small {
            thread.join().expect("it has been told to end");
        }
    });
}
