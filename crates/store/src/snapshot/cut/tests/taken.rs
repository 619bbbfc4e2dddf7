//! The estimate of memory for tables that were moved into a cut.

use super::*;

/// Databases of this many entries of 50 bytes each, with some of a megabyte in a slot that is
/// looked at.
fn kept_of(small: usize, large: usize) -> usize {
    let (space, gates) = (Keyspace::<()>::new(DATABASES), Gates::new());
    let gate = gates.register();
    let put = |name: &str, value: Value<'static>| {
        let (key, inside) = (Key::new(name.as_bytes()), gate.enter());
        let mut locked = space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
        locked.insert(0, &key, value, None);
    };
    for number in 0..small {
        put(&format!("small:{number}"), Value::String(StringValue::from_bytes(&[b'x'; 50])));
    }
    let mut looked_at = (0..).map(|number| format!("large:{number}"));
    for _ in 0..large {
        let name =
            looked_at.find(|name| Key::new(name.as_bytes()).slot.is_multiple_of(64)).unwrap();
        put(&name, Value::String(StringValue::Shared(Arc::new(vec![b'x'; 1_000_000]))));
    }
    let walker = space.begin_cut(&gates.stop_the_world(), 0).unwrap();
    assert_eq!(space.take_all(&gates.stop_the_world(), 0).len(), 0, "the walker has all");
    let (kept, memory) = (space.cut_memory(), Arc::clone(&space.cut().unwrap().memory));
    drop(walker);
    assert_eq!(memory.bytes(), 0);
    kept
}

#[test]
fn one_large_entry_is_not_taken_for_many() {
    for small in [0, 1, 10, 100, 1000, 5000] {
        let (with, without) = (kept_of(small, 1), kept_of(small, 0));
        assert!((50 * small..400 * small + 1).contains(&without), "{small}: {without} bytes");
        assert!(with <= 400 * small + 1_100_000, "{small} beside a large one: {with} bytes");
    }
}

#[test]
fn entries_that_are_alike_count_as_what_they_are() {
    let kept = kept_of(0, 30);
    assert!((29_000_000..31_000_000).contains(&kept), "{kept} bytes");
}

#[test]
fn what_came_after_the_cut_is_not_kept() {
    let (space, gates) = (Keyspace::<()>::new(DATABASES), Gates::new());
    let gate = gates.register();
    let fill = |database: usize| {
        for number in 0..100 {
            let name = format!("key:{number}");
            let (key, inside) = (Key::new(name.as_bytes()), gate.enter());
            let mut locked = space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
            let value = Value::String(StringValue::from_bytes(&[b'x'; 500]));
            locked.insert(database, &key, value, None);
        }
    };
    (0..2).for_each(fill);
    let mut walker = space.begin_cut(&gates.stop_the_world(), 0).unwrap();
    assert_eq!(space.take_all(&gates.stop_the_world(), 0).len(), 0, "the walker has all");
    let kept = space.cut_memory();
    for _ in 0..3 {
        fill(0);
        assert!(space.take_all(&gates.stop_the_world(), 0).len() > 90, "the walker needs none");
        assert_eq!(space.cut_memory(), kept);
    }
    // Databases that change places have the tables of the cut only once as well.
    space.swap(&gates.stop_the_world(), 0, 1);
    assert_eq!(space.take_all(&gates.stop_the_world(), 0).len(), 0);
    fill(0);
    assert!(space.take_all(&gates.stop_the_world(), 0).len() > 90);
    let mut collector = Collector::default();
    while walker.step(Access::Gate(&gate), &mut collector) != WalkProgress::Finished {}
    assert_eq!(collector.entries.len(), 200, "all of the cut is shown");
}
