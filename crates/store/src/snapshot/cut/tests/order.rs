//! In which order the entries of a cut are shown.

use super::*;

/// Takes down which keys are shown, and when a collection in pieces begins.
#[derive(Default)]
struct Order(Vec<Vec<u8>>);

impl Sink for Order {
    fn entry(&mut self, head: &Head<'_>, _: ValueRef<'_>) {
        self.0.push(head.key.to_vec());
    }

    fn begin(&mut self, head: &Head<'_>, _: PieceKind, _: usize) {
        self.0.push(head.key.to_vec());
    }

    fn piece(&mut self, _: Piece<'_>) {}

    fn end(&mut self) {}

    fn begin_text(&mut self, _: &Head<'_>, _: usize) {}

    fn text(&mut self, _: &[u8]) {}

    fn end_text(&mut self) {}
}

#[test]
fn huge_collections_are_shown_last_unless_many_of_their_copies_wait() {
    for is_pressed in [false, true] {
        // The slot of `06S` is the first.
        let huge = Key::new(b"{06S}");
        let value = "member of a set ".repeat(100);
        let mut hash = Hash::new();
        for n in 0..2 * HUGE_MEMBERS {
            hash.set(format!("field:{n}").as_bytes(), value.as_bytes(), LIMITS);
        }
        let (space, gates, gate) = with_one(&huge, Value::Hash(hash));
        for n in 0..200 {
            let name = format!("key:{n}").into_bytes();
            let (inside, key) = (gate.enter(), Key::new(&name));
            let mut locked = space.try_lock_one(inside.pinned(), key.slot, 0).unwrap();
            locked.insert(0, &key, Value::String(StringValue::Int(1)), None);
        }
        let mut walker = space.begin_cut(&gates.stop_the_world(), 0).expect("there is no other");
        walker.cut.borne.store(200_000, Ordering::Relaxed);
        let mut order = Order::default();
        while walker.huge.is_empty() {
            assert_eq!(walker.step(Access::Gate(&gate), &mut order), WalkProgress::More);
        }
        if is_pressed {
            change(&space, &gate, &huge, |mut entry| {
                if let ValueMut::Hash(hash) = entry.value_mut() {
                    for n in 1..2 * HUGE_MEMBERS {
                        hash.remove(format!("field:{n}").as_bytes());
                    }
                }
            });
        }
        while walker.step(Access::Gate(&gate), &mut order) != WalkProgress::Finished {}
        assert_eq!(order.0.len(), 201);
        let position = order.0.iter().position(|key| key == huge.bytes).expect("it is shown");
        assert_eq!(position == 200, !is_pressed, "it came after {position} others");
    }
}
