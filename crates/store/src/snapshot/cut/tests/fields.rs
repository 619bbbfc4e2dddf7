//! What a cut tells of fields that expire.

use super::*;

#[test]
fn a_cut_tells_of_fields_that_expire_in_all_its_slots() {
    let key = Key::new(b"key");
    let mut hash = Hash::new();
    hash.set_timed(b"field", b"value", Some(9), LIMITS);
    let (space, gates, _gate) = with_one(&key, Value::Hash(hash));
    let tells = |slots: Option<SlotSet>| {
        let walker = space.begin_cut_of(&gates.stop_the_world(), 0, slots);
        walker.expect("there is no other").has_expiring_fields()
    };
    let own: SlotSet = [key.slot].into_iter().collect();
    let others = (0..SLOTS as u16).filter(|slot| *slot != key.slot).collect();
    assert!(tells(None));
    space.hidden.insert(&own);
    assert!(tells(None), "the cut has hidden slots");
    assert!(tells(Some(own.clone())));
    space.hidden.remove(&own);
    assert!(!tells(Some(others)), "the cut has no other slots");
}
