//! Tables that are replaced while threads without the lock look at them.

use std::sync::Arc;

use explore::explore;
use shuttle::thread;
use store::gate::Gates;
use store::table::retire;
use store::{Key, Keyspace, StringValue, Value};

struct World {
    space: Keyspace<()>,
    gates: Gates,
}

fn name(number: usize) -> Vec<u8> {
    format!("{{t}}{number}").into_bytes()
}

/// A table grows under its lock, blocks that are out of use are collected, and others look at the
/// table without its lock, inside their gates. They never look at a block that was freed.
#[test]
fn no_block_is_freed_while_a_thread_looks_at_it() {
    explore(|| {
        let world = Arc::new(World { space: Keyspace::new(1), gates: Gates::new() });
        let readers = [0, 1].map(|number| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let (gate, name) = (world.gates.register(), name(number));
                let key = Key::new(&name);
                for _ in 0..3 {
                    let inside = gate.enter();
                    world.space.prefetch_bucket(inside.pinned(), 0, key.slot, key.hash);
                    if world.space.prefetch_entry(inside.pinned(), 0, key.slot, key.hash) {
                        world.space.prefetch_chained(inside.pinned(), 0, key.slot, key.hash);
                    }
                }
            })
        });
        let writer = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let gate = world.gates.register();
                for number in 0..10 {
                    let (inside, name) = (gate.enter(), name(number));
                    let key = Key::new(&name);
                    let held = world.space.try_lock_one(inside.pinned(), key.slot, 0);
                    let mut held = held.expect("nobody else locks it");
                    held.insert(0, &key, Value::String(StringValue::Int(1)), None);
                }
            }
        });
        for _ in 0..3 {
            // SAFETY: every reader has a gate.
            unsafe { retire::collect(|| world.gates.pass()) };
            thread::yield_now();
        }
        for thread in readers.into_iter().chain([writer]) {
            thread.join().expect("it ends");
        }
    });
}
