//! Commands that find a slot locked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use explore::explore;
use explore::world::{Connection, Worker, engine};
use shuttle::thread;
use store::Key;

/// An exclusive command keeps its slot until another connection of the worker that needs the slot
/// was served, and the world was stopped meanwhile. So a worker that finds the slot locked has to
/// leave its gate and serve others: if it tried again inside its gate, no schedule would end.
#[test]
fn a_worker_that_finds_a_slot_locked_serves_others() {
    explore(|| {
        let engine = engine();
        let (held, free) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let exclusive = thread::spawn({
            let (engine, held, free) = (Arc::clone(&engine), Arc::clone(&held), Arc::clone(&free));
            move || {
                let gate = engine.gates.register();
                let inside = gate.enter();
                let slot = Key::new(b"k").slot;
                let lock = engine.keyspace.try_lock_one(inside.pinned(), slot, 0);
                held.store(true, Relaxed);
                while !free.load(Relaxed) {
                    thread::yield_now();
                }
                drop(lock);
            }
        });
        let mut worker = Worker::new(&engine);
        let (mut wants_it, mut other) = (worker.connect(), worker.connect());
        while !held.load(Relaxed) {
            thread::yield_now();
        }
        wants_it.send("GET k");
        wants_it.send("PING");
        worker.serve(&mut wants_it);
        other.send("PING");
        worker.serve(&mut wants_it);
        worker.serve(&mut other);
        assert_eq!((&*wants_it.replies(), &*other.replies()), ("", "+PONG\r\n"));
        free.store(true, Relaxed);
        while !wants_it.rests() {
            worker.serve(&mut wants_it);
            thread::yield_now();
        }
        assert_eq!(wants_it.replies(), "$-1\r\n+PONG\r\n", "in their order");
        exclusive.join().expect("it has been told to end");
    });
}

/// How long a command is tried beside others.
const ESCALATION: Duration = Duration::from_millis(5);

/// Each slot is held until the other one is, so they are never free at once, until a reservation
/// was seen. A command that needs both has to reserve them after some time, and gets them then; the
/// next one begins again without.
#[test]
fn a_command_that_fails_for_long_reserves_its_slots() {
    explore(|| {
        let engine = engine();
        let (reserved, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let held = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let small = [0, 1].map(|own| {
            let (engine, held) = (Arc::clone(&engine), Arc::clone(&held));
            let (reserved, done) = (Arc::clone(&reserved), Arc::clone(&done));
            thread::spawn(move || {
                let gate = engine.gates.register();
                let slot = Key::new([&b"a"[..], b"b"][own]).slot;
                let begun = || reserved.load(Relaxed) || done.load(Relaxed);
                while !done.load(Relaxed) {
                    let inside = gate.enter();
                    let lock = engine.keyspace.try_lock_one(inside.pinned(), slot, 0);
                    held[own].store(lock.is_some(), Relaxed);
                    while lock.is_some() && !begun() && !held[1 - own].load(Relaxed) {
                        thread::yield_now();
                    }
                    thread::yield_now();
                    // A thread that sees this locks before it is unlocked.
                    held[own].store(false, Relaxed);
                    drop(lock);
                    drop(inside);
                    thread::yield_now();
                }
            })
        });
        let mut worker = Worker::new(&engine);
        let mut large = worker.connect();
        for _ in 0..2 {
            large.send("MGET a b");
            while !large.rests() {
                worker.serve(&mut large);
                reserved.store(large.tries.last().is_some_and(|last| last.reserved), Relaxed);
                thread::yield_now();
            }
            check_tries(&mut large);
        }
        done.store(true, Relaxed);
        for thread in small {
            thread.join().expect("it has been told to end");
        }
    });
}

/// Only tries of a command that has failed for long are reserved.
fn check_tries(connection: &mut Connection) {
    let tries = std::mem::take(&mut connection.tries);
    for own in &tries {
        let failed_for = own.at.duration_since(tries[0].at);
        assert_eq!(own.reserved, failed_for >= ESCALATION, "after {failed_for:?}");
    }
    let in_vain = tries.iter().filter(|own| own.contended).count();
    assert_eq!(in_vain, tries.len() - 1, "the last one succeeds");
}

/// Small commands lock one slot each, for ever; a large one wants both. With a reservation it gets
/// them: without, it would have to find both free at once, and the small ones see to it that they
/// are not: the next one locks before the last one unlocks the other slot.
#[test]
fn a_command_that_fails_for_long_gets_its_slots() {
    explore(|| {
        let (engine, done) = (engine(), Arc::new(AtomicBool::new(false)));
        let keys = [&b"a"[..], b"b"];
        let held = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let small = [0, 1].map(|own| {
            let (engine, done, held) = (Arc::clone(&engine), Arc::clone(&done), Arc::clone(&held));
            thread::spawn(move || {
                let gate = engine.gates.register();
                let slot = Key::new(keys[own]).slot;
                while !done.load(Relaxed) {
                    let inside = gate.enter();
                    if let Some(lock) = engine.keyspace.try_lock_one(inside.pinned(), slot, 0) {
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
        let gate = engine.gates.register();
        let mut slots = keys.map(|key| Key::new(key).slot);
        slots.sort_unstable();
        let reservation = engine.keyspace.reserve();
        loop {
            let inside = gate.enter();
            let both = engine.keyspace.try_lock_reserved(inside.pinned(), &reservation, &slots, 0);
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
