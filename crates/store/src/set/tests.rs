use std::collections::BTreeSet;

use base::rng::Rng;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { entries: 12, value: 0 };

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
        let mut packed = true;
        for (kind, member) in steps {
            match kind {
                0..5 => {
                    let is_integer = parse_i64(&member).is_some();
                    prop_assert_eq!(set.add(&member, LIMITS), model.insert(member));
                    packed &= is_integer && model.len() <= LIMITS.entries;
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
            prop_assert_eq!(set.encoding(), if packed { "intset" } else { "hashtable" });
        }
        compare(&set, &model);
        compare_random(&set, &model, &mut rng);
        if let Some(intset) = set.as_intset() {
            let loaded = Set::from_intset(intset.clone(), Limits { entries: 3, value: 0 });
            prop_assert_eq!(loaded.as_intset().is_some(), model.len() <= 3);
            compare(&loaded, &model);
        }
        set.unpack();
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
