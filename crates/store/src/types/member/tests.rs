use std::collections::HashSet;

use base::rng::Rng;

use super::*;

#[test]
fn members_of_twelve_bytes_meet_their_size_classes() {
    let name = b"member:12345";
    let size = |bytes| layout(bytes).size();
    let plain = Member::<Plain>::allocate(name, None);
    let valued = Member::<Valued>::allocate(name, Some(name));
    let scored = Member::<Scored>::allocate(name, None);
    assert_eq!((size(plain.bytes()), size(valued.bytes()), size(scored.bytes())), (16, 32, 32));
    // SAFETY: nothing else knows them.
    unsafe {
        plain.free();
        valued.free();
        scored.free();
    }
}

#[test]
fn lengths_of_every_width_come_back() {
    let mut members = Members::<Valued>::new();
    let texts: Vec<Vec<u8>> = [0, 1, 127, 128, 16_383, 16_384, 70_000]
        .iter()
        .enumerate()
        .map(|(index, &len)| vec![b'a' + index as u8; len])
        .collect();
    for (index, text) in texts.iter().enumerate() {
        members.put_field(text, &texts[texts.len() - 1 - index], None);
    }
    members.check();
    for (index, text) in texts.iter().enumerate() {
        let member = members.get(text).expect("was set");
        assert_eq!(member.value(), texts[texts.len() - 1 - index]);
    }
}

#[test]
fn a_value_that_fits_is_overwritten_in_place() {
    let mut members = Members::<Valued>::new();
    let before = members.put_field(b"field", b"0123456789", None).word();
    let set = |members: &mut Members<Valued>, value: &[u8]| {
        let position = members.find(b"field").expect("was put");
        members.set_value(position, value, None);
        members.at(position).word()
    };
    assert_eq!(set(&mut members, b"a somewhat longer one"), before);
    set(&mut members, &[7; 200]);
    assert_eq!(members.get(b"field").expect("was set").value(), [7; 200]);
    members.check();
}

#[test]
fn a_time_comes_and_goes_without_a_trace_in_the_rest() {
    let mut members = Members::<Valued>::new();
    members.put_field(b"field", b"value", None);
    let position = members.find(b"field").expect("was put");
    for at in [Some(5), Some(1 << 46), None, None, Some(7)] {
        members.set_expire_at(position, at);
        let member = members.at(position);
        let parts = (member.name(), member.value(), member.expire_at());
        assert_eq!(parts, (&b"field"[..], &b"value"[..], at));
        members.check();
    }
    members.set_value(position, b"another", Some(7));
    assert_eq!(members.clone().get(b"field").and_then(Member::expire_at), Some(7));
    members.set_value(position, b"another", None);
    assert_eq!(members.at(position).expire_at(), None);
    members.remove_at(position);
    members.check();
}

#[test]
fn draws_of_different_members_repeat_none() {
    let mut members = Members::<Plain>::new();
    (0..300u32).for_each(|number| assert!(members.add(&number.to_le_bytes())));
    let mut rng = Rng::from_seed(5);
    for count in [0, 1, 20, 99, 100, 101, 250, 300, 400] {
        let mut drawn = HashSet::new();
        members.random_distinct(count, &mut rng, |member| {
            assert!(drawn.insert(member.name()));
        });
        assert_eq!(drawn.len(), count.min(300));
    }
}

#[test]
fn a_large_field_stays_where_it_is_when_its_time_changes() {
    let mut members = Members::<Valued>::new();
    let (value, other) = (vec![7; 20_000], vec![8; 20_000]);
    for first in [None, Some(3)] {
        let start = members.put_field(b"field", &value, first).base();
        let position = members.find(b"field").expect("was put");
        for at in [Some(5), Some(1 << 46), None, None, Some(7)] {
            members.set_expire_at(position, at);
            let member = members.at(position);
            assert_eq!((member.base(), member.expire_at()), (start, at));
            assert_eq!((member.name(), member.value()), (&b"field"[..], &value[..]));
            members.check();
        }
        for (value, at) in [(&other, None), (&value, Some(9)), (&other, Some(10))] {
            members.set_value(position, value, at);
            let member = members.at(position);
            assert_eq!((member.base(), member.expire_at()), (start, at));
            assert_eq!(member.value(), &value[..]);
            let copy = members.clone();
            assert_eq!(copy.get(b"field").and_then(Member::expire_at), at);
        }
        members.set_value(position, b"small", Some(11));
        members.set_expire_at(position, None);
        assert_eq!(members.at(position).bytes(), 12, "a small one gives the room back");
        members.remove_at(position);
    }
}
