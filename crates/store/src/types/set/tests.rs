use std::collections::BTreeSet;

use base::rng::Rng;
use proptest::prelude::*;

use super::*;
use crate::types::packed::Limits;

const LIMITS: SetLimits = SetLimits { integers: 12, listpack: Limits { entries: 8, value: 120 } };

/// Mostly integers of all widths, so that sets stay intsets for a while.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        30 => (-15i64..15).prop_map(|value| value.to_string().into_bytes()),
        3 => (0u32..63).prop_map(|shift| (1i64 << shift).to_string().into_bytes()),
        1 => "[0-9a-b]{0,2}".prop_map(String::into_bytes),
        1 => (0u8..4, 100usize..200).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

type Model = BTreeSet<Vec<u8>>;

fn compare(set: &Set, model: &Model) {
    set.check();
    assert_eq!(set.len(), model.len());
    assert_eq!(set.iter().len(), model.len());
    assert_eq!(set.is_empty(), model.is_empty());
    let contents = |set: &Set| set.iter().map(|member| member.to_vec()).collect::<Model>();
    assert_eq!(&contents(set), model);
    assert_eq!(&contents(&set.clone()), model);
    for member in model {
        assert!(set.contains(member));
        assert!(set.contains_element(Element::Str(member)));
    }
    let (mut scanned, mut position) = (Model::new(), Some(0));
    while let Some(at) = position {
        position = set.scan(at, |member| {
            scanned.insert(member.to_vec());
        });
    }
    assert_eq!(&scanned, model);
}

fn compare_random(set: &Set, model: &Model, rng: &mut Rng) {
    assert_eq!(set.random(rng).is_some(), !model.is_empty());
    for count in [0, 1, 3, 30] {
        let mut distinct = Model::new();
        set.random_distinct(count, rng, |member| assert!(distinct.insert(member.to_vec())));
        assert!(distinct.is_subset(model));
        assert_eq!(distinct.len(), count.min(model.len()));
        let mut repeated = 0;
        set.random_repeating(count, rng, |member| {
            assert!(model.contains(&member.to_vec()));
            repeated += 1;
        });
        assert_eq!(repeated, if model.is_empty() { 0 } else { count });
    }
}

proptest! {
    #[test]
    fn behaves_as_a_set(
        steps in prop::collection::vec((0u8..8, text()), 1..80),
        seed: u64,
    ) {
        let (mut set, mut model, mut rng) = (Set::new(), Model::new(), Rng::from_seed(seed));
        let mut encoding = "intset";
        for (kind, member) in steps {
            match kind {
                0..5 => {
                    let is_integer = parse_i64(&member).is_some();
                    let listpack_holds = member.len() <= 120 && model.len() < 8;
                    let is_new = model.insert(member.clone());
                    prop_assert_eq!(set.add(&member, LIMITS), is_new);
                    encoding = match encoding {
                        "intset" if is_integer && model.len() <= 12 => "intset",
                        "intset" if !is_integer && listpack_holds => "listpack",
                        "listpack" if listpack_holds || !is_new => "listpack",
                        _ => "hashtable",
                    };
                }
                5..7 => prop_assert_eq!(set.remove(&member), model.remove(&member)),
                _ => {
                    let popped = set.pop_random(&mut rng);
                    prop_assert_eq!(popped.is_some(), !model.is_empty());
                    if let Some(popped) = popped {
                        prop_assert!(model.remove(&popped.as_element().to_vec()));
                    }
                }
            }
            prop_assert_eq!(set.encoding(), encoding);
        }
        compare(&set, &model);
        compare_random(&set, &model, &mut rng);
        if let Some(intset) = set.as_intset() {
            let loaded = Set::from_intset(intset.clone(), SetLimits { integers: 3, ..LIMITS });
            prop_assert_eq!(loaded.as_intset().is_some(), model.len() <= 3);
            compare(&loaded, &model);
        }
        if let Some(listpack) = set.as_listpack() {
            let fewer = SetLimits { listpack: Limits { entries: 3, value: 0 }, ..LIMITS };
            let loaded = Set::from_listpack(listpack.to_listpack(), fewer).unwrap();
            prop_assert_eq!(loaded.as_listpack().is_some(), model.len() <= 3);
            compare(&loaded, &model);
            let mut integers = set.clone();
            integers.pack_integers(LIMITS);
            let all = model.iter().all(|member| parse_i64(member).is_some());
            prop_assert_eq!(integers.as_intset().is_some(), all);
            compare(&integers, &model);
        }
        set.unpack();
        compare(&set, &model);
        set.repack(LIMITS);
        let short = model.len() <= 8 && model.iter().all(|member| member.len() <= 120);
        prop_assert_eq!(set.as_listpack().is_some(), short);
        compare(&set, &model);
    }

    #[test]
    fn sets_of_both_encodings_understand_each_other(
        left in prop::collection::btree_set(-10i64..10, 0..10),
        right in prop::collection::btree_set(-10i64..10, 0..10),
        unpack: (bool, bool),
    ) {
        let build = |values: &BTreeSet<i64>, unpack: bool| {
            let mut set = Set::new();
            for value in values {
                set.add_element(Element::Int(*value), LIMITS);
            }
            if unpack {
                set.unpack();
            }
            set
        };
        let (a, mut b) = (build(&left, unpack.0), build(&right, unpack.1));
        let common = a.iter().filter(|&member| b.contains_element(member)).count();
        prop_assert_eq!(common, left.intersection(&right).count());
        let removed = a.iter().filter(|&member| b.remove_element(member)).count();
        prop_assert_eq!(removed, common);
        let added = a.iter().filter(|&member| b.add_element(member, LIMITS)).count();
        prop_assert_eq!(added, left.len());
        prop_assert_eq!(b.len(), left.union(&right).count());
    }
}

#[test]
fn is_one_pointer() {
    assert_eq!(size_of::<Option<Set>>(), 8);
    fn assert_send<T: Send + Sync>() {}
    assert_send::<Set>();
}

#[test]
fn thousands_of_members_come_and_go() {
    let mut set = Set::new();
    let text = |number: u32| format!("member:{number:05}").into_bytes();
    for number in 0..3000 {
        assert!(set.add(&text(number), LIMITS));
        assert!(!set.add(&text(number / 2), LIMITS));
    }
    set.check();
    let all = set.memory_usage(usize::MAX);
    assert!(all < 3000 * 39, "{all} bytes");
    assert_eq!(set.memory_usage(5), all);
    let mut rng = Rng::from_seed(3);
    for left in (0..3000).rev() {
        assert!(set.pop_random(&mut rng).is_some());
        assert_eq!(set.len(), left);
    }
    assert!(set.pop_random(&mut rng).is_none());
    set.check();
}

#[test]
fn the_number_of_members_to_come_chooses_the_encoding() {
    let encoding = |first: &[u8], count: usize| {
        let mut set = Set::new();
        set.expect(first, count, LIMITS);
        set.add(first, LIMITS);
        set.encoding()
    };
    assert_eq!(encoding(b"1", 12), "intset");
    assert_eq!(encoding(b"1", 13), "hashtable");
    assert_eq!(encoding(b"a", 8), "listpack");
    assert_eq!(encoding(b"a", 9), "hashtable");
    let mut set = Set::new();
    assert!(set.add(b"a", LIMITS));
    set.expect(b"a", 9, LIMITS);
    assert_eq!(set.encoding(), "hashtable");
}

#[test]
fn members_of_a_listpack_are_drawn_with_equal_chances() {
    let mut rng = Rng::from_seed(7);
    let mut counts = [[0u32; 5]; 3];
    for _ in 0..10_000 {
        let mut set = Set::new_listpack();
        (0..5u8).for_each(|member| assert!(set.add(&[b'a' + member], LIMITS)));
        let which = |member: Element<'_>| usize::from(member.to_vec()[0] - b'a');
        counts[0][which(set.random(&mut rng).unwrap())] += 1;
        set.random_distinct(1, &mut rng, |member| counts[1][which(member)] += 1);
        counts[2][which(set.pop_random(&mut rng).unwrap().as_element())] += 1;
    }
    assert!(counts.iter().flatten().all(|count| (1850..2150).contains(count)), "{counts:?}");
}

#[test]
fn a_small_set_of_texts_is_its_block_alone() {
    let mut set = Set::new();
    for member in [b"alpha", b"gamma", b"delta"] {
        assert!(set.add(member, LIMITS));
    }
    // Seven bytes for each member, and seven for the listpack.
    assert_eq!(set.memory_usage(5), 32);
    let order: Vec<_> = set.iter().map(|member| member.to_vec()).collect();
    assert_eq!(order, [b"alpha", b"gamma", b"delta"]);
}
