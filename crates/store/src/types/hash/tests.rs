use std::collections::{BTreeMap, HashMap};

use base::rng::Rng;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { entries: 12, value: 10 };

/// Texts that look like integers and other texts, few enough to occur repeatedly, some beyond the
/// limit.
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
    SetKeeping(Vec<u8>, Vec<u8>),
    SetTimed(Vec<u8>, Vec<u8>, Option<u64>),
    Expire(Vec<u8>, Option<u64>),
    Remove(Vec<u8>),
    RemoveExpired(u64, usize),
}

fn time() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(prop_oneof![1u64..40, Just(1 << 46)])
}

fn steps(timed: bool) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (text(), text()).prop_map(|(field, value)| Step::Set(field, value)),
        2 => (text(), text()).prop_map(|(field, value)| Step::SetKeeping(field, value)),
        2 => (text(), text(), time())
            .prop_map(|(field, value, at)| Step::SetTimed(field, value, at)),
        4 => (text(), time()).prop_map(|(field, at)| Step::Expire(field, at)),
        2 => text().prop_map(Step::Remove),
        1 => (1u64..40, 0usize..5).prop_map(|(now, count)| Step::RemoveExpired(now, count)),
    ];
    prop::collection::vec(step, 1..120).prop_map(move |mut steps| {
        steps.retain(|step| timed || matches!(step, Step::Set(..) | Step::Remove(_)));
        steps
    })
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

fn owned((field, value, at): Field<'_>) -> (Vec<u8>, (Vec<u8>, Option<u64>)) {
    (field.to_vec(), (value.to_vec(), at))
}

/// Everything that reads, against the model.
fn compare(hash: &Hash, model: &Model) {
    hash.check();
    assert_eq!(hash.len(), model.len());
    assert_eq!(hash.iter().len(), model.len());
    assert_eq!(hash.is_empty(), model.is_empty());
    assert_eq!(&hash.iter().map(owned).collect::<Model>(), model);
    let copy = hash.clone();
    copy.check();
    assert_eq!(&copy.iter().map(owned).collect::<Model>(), model);
    assert_eq!(hash.next_expiry(), model.values().filter_map(|(_, at)| *at).min());
    for (field, (value, at)) in model {
        assert!(hash.contains(field));
        assert_eq!(hash.get(field).unwrap().to_vec(), *value);
        let (timed, own) = hash.get_timed(field).unwrap();
        assert_eq!((timed.to_vec(), own), (value.clone(), *at));
    }
    assert!(hash.get_timed(b"no such field").is_none() && !hash.contains(b"no such field"));
}

/// Compares what the hash shows at a time with the model at that time.
fn compare_view(hash: &Hash, model: &Model, now: u64, rng: &mut Rng) {
    let mut seen = model.clone();
    seen.retain(|_, (_, at)| at.is_none_or(|at| at >= now));
    let view = HashView::new(hash, now);
    assert_eq!((view.len(), view.is_empty()), (seen.len(), seen.is_empty()));
    assert_eq!(view.hides_some(), seen.len() < model.len());
    assert_eq!(&view.iter().map(owned).collect::<Model>(), &seen);
    for (field, (value, _)) in model {
        let there = seen.contains_key(field);
        assert_eq!(view.contains(field), there);
        assert_eq!(view.get(field).map(|own| own.to_vec()), there.then(|| value.clone()));
    }
    let (mut scanned, mut position) = (BTreeMap::new(), Some(0));
    while let Some(at) = position {
        position = view.scan(at, |field, value| {
            scanned.insert(field.to_vec(), value.to_vec());
        });
    }
    let values = seen.iter().map(|(field, (value, _))| (field.clone(), value.clone()));
    assert_eq!(scanned, values.collect());
    compare_random(view, &seen, rng);
}

fn compare_random(hash: HashView<'_>, model: &Model, rng: &mut Rng) {
    let is_there = |field: Element<'_>, value: Element<'_>| {
        model.get(&field.to_vec()).is_some_and(|other| value.equals(&other.0))
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

/// A hash, its expected fields, and whether it should still be a listpack.
struct Rig {
    hash: Hash,
    model: Model,
    packed: bool,
    timed: bool,
}

impl Rig {
    fn set(&mut self, field: Vec<u8>, value: Vec<u8>, at: Option<u64>) -> bool {
        self.packed &= field.len() <= LIMITS.value && value.len() <= LIMITS.value;
        let added = self.model.insert(field, (value, at)).is_none();
        self.timed |= at.is_some();
        self.packed &= self.model.len() <= LIMITS.entries;
        added
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Set(field, value) => {
                let added = self.hash.set(&field, &value, LIMITS);
                assert_eq!(added, self.set(field, value, None));
            }
            Step::SetKeeping(field, value) => {
                let added = self.hash.set_keeping(&field, &value, LIMITS);
                let at = self.model.get(&field).and_then(|(_, at)| *at);
                assert_eq!(added, self.set(field, value, at));
            }
            Step::SetTimed(field, value, at) => {
                let added = self.hash.set_timed(&field, &value, at, LIMITS);
                assert_eq!(added, self.set(field, value, at));
            }
            Step::Expire(field, at) => {
                self.hash.set_expire_at(&field, at);
                self.timed |= at.is_some();
                if let Some(own) = self.model.get_mut(&field) {
                    own.1 = at;
                }
            }
            Step::Remove(field) => {
                assert_eq!(self.hash.remove(&field), self.model.remove(&field).is_some());
            }
            Step::RemoveExpired(now, count) => {
                let expired = self.hash.expired(now, count);
                let has_expired = |(_, at): &(_, Option<u64>)| at.is_some_and(|at| at < now);
                let all = self.model.values().filter(|own| has_expired(own)).count();
                assert_eq!(expired.len(), all.min(count));
                for field in expired {
                    assert!(self.hash.remove(&field));
                    assert!(self.model.remove(&field).as_ref().is_some_and(has_expired));
                }
            }
        }
        let encoding = match (self.packed, self.timed) {
            (true, false) => "listpack",
            (true, true) => "listpackex",
            (false, _) => "hashtable",
        };
        assert_eq!(self.hash.encoding(), encoding);
    }
}

proptest! {
    #[test]
    fn behaves_as_a_map(steps in any::<bool>().prop_flat_map(steps), seed: u64) {
        let mut rig = Rig { hash: Hash::new(), model: Model::new(), packed: true, timed: false };
        steps.into_iter().for_each(|step| rig.apply(step));
        let Rig { mut hash, model, timed, .. } = rig;
        let mut rng = Rng::from_seed(seed);
        compare(&hash, &model);
        for now in [0, 1, 20, 41, u64::MAX] {
            compare_view(&hash, &model, now, &mut rng);
        }
        if let Some(listpack) = hash.as_listpack().filter(|_| !timed) {
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
        for now in [0, 20, u64::MAX] {
            compare_view(&hash, &model, now, &mut rng);
        }
    }
}

#[test]
fn what_expires_comes_first_in_a_listpack() {
    let mut hash = Hash::new();
    for (field, at) in
        [("never", None), ("late", Some(9)), ("early", Some(5)), ("as late", Some(9))]
    {
        hash.set_timed(field.as_bytes(), b"v", at, LIMITS);
    }
    let order = |hash: &Hash| hash.iter().map(|field| field.0.to_vec()).collect::<Vec<_>>();
    assert_eq!(order(&hash), [&b"early"[..], b"late", b"as late", b"never"]);
    hash.set(b"late", b"w", LIMITS);
    assert_eq!(order(&hash), [&b"early"[..], b"as late", b"never", b"late"]);
    hash.set_keeping(b"early", b"w", LIMITS);
    hash.set_expire_at(b"never", Some(9));
    assert_eq!(order(&hash), [&b"early"[..], b"never", b"as late", b"late"]);
    assert_eq!(hash.expired(6, 3), [b"early".to_vec()]);
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
