use std::collections::{BTreeMap, HashMap};

use base::rng::Rng;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { entries: 12, value: 10 };

/// Texts that look like integers and others, few enough to meet again, some beyond the limit.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (-20i64..20).prop_map(|value| value.to_string().into_bytes()),
        8 => "[a-c]{0,2}".prop_map(String::into_bytes),
        4 => (0u8..30).prop_map(|byte| vec![byte; 10]),
        1 => (0u8..4, 11usize..200).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    Set(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (text(), text()).prop_map(|(field, value)| Step::Set(field, value)),
        1 => text().prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 1..80)
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents(hash: &Hash) -> Model {
    hash.iter().map(|(field, value)| (field.to_vec(), value.to_vec())).collect()
}

/// Everything that reads, against the model.
fn compare(hash: &Hash, model: &Model) {
    hash.check();
    assert_eq!(hash.len(), model.len());
    assert_eq!(hash.iter().len(), model.len());
    assert_eq!(hash.is_empty(), model.is_empty());
    assert_eq!(&contents(hash), model);
    assert_eq!(&contents(&hash.clone()), model);
    for (field, value) in model {
        assert!(hash.contains(field));
        assert_eq!(hash.get(field).unwrap().to_vec(), *value);
        assert_eq!(hash.value_len(field), value.len());
    }
    assert_eq!(hash.value_len(b"no such field"), 0);

    let (mut scanned, mut position) = (Model::new(), Some(0));
    while let Some(at) = position {
        position = hash.scan(at, |field, value| {
            scanned.insert(field.to_vec(), value.to_vec());
        });
    }
    assert_eq!(&scanned, model);
}

fn compare_random(hash: &Hash, model: &Model, rng: &mut Rng) {
    let is_there = |field: Element<'_>, value: Element<'_>| {
        model.get(&field.to_vec()).is_some_and(|other| value.equals(other))
    };
    assert_eq!(hash.random(rng).is_some(), !model.is_empty());
    assert!(hash.random(rng).is_none_or(|(field, value)| is_there(field, value)));
    for count in [0, 1, 3, 30] {
        let mut distinct = HashMap::new();
        hash.random_distinct(count, rng, |field, value| {
            assert!(is_there(field, value));
            assert!(distinct.insert(field.to_vec(), ()).is_none());
        });
        assert_eq!(distinct.len(), count.min(model.len()));
        let mut repeated = 0;
        hash.random_repeating(count, rng, |field, value| {
            assert!(is_there(field, value));
            repeated += 1;
        });
        assert_eq!(repeated, if model.is_empty() { 0 } else { count });
    }
}

proptest! {
    #[test]
    fn behaves_as_a_map(steps in steps(), seed: u64) {
        let (mut hash, mut model) = (Hash::new(), Model::new());
        let mut packed = true;
        for step in steps {
            match step {
                Step::Set(field, value) => {
                    let added = hash.set(&field, &value, LIMITS);
                    packed &= field.len() <= LIMITS.value && value.len() <= LIMITS.value;
                    prop_assert_eq!(added, model.insert(field, value).is_none());
                    packed &= model.len() <= LIMITS.entries;
                }
                Step::Remove(field) => {
                    prop_assert_eq!(hash.remove(&field), model.remove(&field).is_some());
                }
            }
            prop_assert_eq!(hash.encoding(), if packed { "listpack" } else { "hashtable" });
        }
        compare(&hash, &model);
        compare_random(&hash, &model, &mut Rng::from_seed(seed));
        if let Some(listpack) = hash.as_listpack() {
            let bytes = Listpack::from_bytes(listpack.as_bytes()).unwrap();
            let loaded = Hash::from_listpack(bytes.clone(), LIMITS).unwrap();
            prop_assert!(loaded.is_packed());
            compare(&loaded, &model);
            let fewer = Limits { entries: model.len().saturating_sub(1), ..LIMITS };
            let loaded = Hash::from_listpack(bytes, fewer).unwrap();
            prop_assert_eq!(loaded.is_packed(), model.is_empty());
            compare(&loaded, &model);
        }
        hash.unpack();
        compare(&hash, &model);
    }
}

#[test]
fn is_one_pointer() {
    assert_eq!(size_of::<Option<Hash>>(), 8);
    fn assert_send<T: Send + Sync>() {}
    assert_send::<Hash>();
}

#[test]
fn a_small_hash_costs_its_listpack_and_nothing_else() {
    let mut hash = Hash::new();
    hash.set(b"name", b"value", LIMITS);
    let listpack = hash.as_listpack().unwrap();
    assert_eq!(listpack.as_bytes(), b"\x14\0\0\0\x02\0\x84name\x05\x85value\x06\xff");
    assert_eq!(hash.memory_usage(5), 32);
}

#[test]
fn listpacks_that_are_no_hash_are_refused() {
    let load = |elements: &[&[u8]]| {
        let listpack = Listpack::from_elements(elements.iter().copied());
        Hash::from_listpack(listpack, LIMITS).map(|hash| hash.len())
    };
    assert_eq!(load(&[b"a", b"1", b"1", b"a"]), Ok(2));
    assert_eq!(load(&[]), Ok(0));
    assert_eq!(load(&[b"a", b"1", b"b"]), Err(Malformed::Unpaired));
    assert_eq!(load(&[b"a", b"1", b"a", b"2"]), Err(Malformed::Duplicate));
    // An integer and the same text that someone stored as a string.
    let entries = b"\x0f\0\0\0\x04\0\x07\x01\x00\x01\x817\x02\x00\x01\xff";
    let mut bytes = entries.to_vec();
    bytes[0] = bytes.len() as u8;
    let listpack = Listpack::from_bytes(&bytes).unwrap();
    assert_eq!(Hash::from_listpack(listpack, LIMITS).err(), Some(Malformed::Duplicate));
}

#[test]
fn thousands_of_fields_come_and_go() {
    let mut hash = Hash::new();
    let text = |number: u32| format!("field:{number}").into_bytes();
    for number in 0..3000 {
        assert!(hash.set(&text(number), &text(number * 7), LIMITS));
        assert!(!hash.set(&text(number / 2), &text(number), LIMITS));
    }
    assert_eq!(hash.len(), 3000);
    hash.check();
    let all = hash.memory_usage(usize::MAX);
    assert!(all < 3000 * 61, "{all} bytes");
    assert!(hash.memory_usage(5).abs_diff(all) < all / 2);
    for number in 0..2990 {
        assert!(hash.remove(&text(number)));
    }
    assert_eq!(hash.encoding(), "hashtable");
    hash.check();
    assert_eq!(hash.len(), 10);
}
