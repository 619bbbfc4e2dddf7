//! Strings in entries against a model: set, overwritten, grown and given an expiry in any order.

use proptest::prelude::*;

use super::*;
use crate::locks::gate::Gates;
use crate::{Key, Keyspace, LockedSlots};

/// A string of the model: its bytes, and whether it was modified in place since it was set.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    bytes: Vec<u8>,
    modified: bool,
    expire_at: Option<u64>,
}

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>, Option<u64>),
    Grow(usize, u8),
    Expire(Option<u64>),
    Remove,
}

fn expiry() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (1u64..1000).prop_map(Some)]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..40),
        2 => any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        2 => (0usize..600).prop_map(|length| vec![b'x'; length]),
        1 => (INLINE_MAX - 3..INLINE_MAX + 3).prop_map(|length| vec![b'y'; length]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (value(), expiry()).prop_map(|(bytes, expire_at)| Step::Set(bytes, expire_at)),
        4 => (0usize..700, any::<u8>()).prop_map(|(length, byte)| Step::Grow(length, byte)),
        1 => (0usize..20_000, any::<u8>()).prop_map(|(length, byte)| Step::Grow(length, byte)),
        2 => expiry().prop_map(Step::Expire),
        1 => Just(Step::Remove),
    ]
}

fn set(locked: &mut LockedSlots<'_, ()>, key: &Key<'_>, bytes: &[u8], expire_at: Option<u64>) {
    let value = Value::String(StringValue::from_bytes(bytes));
    match locked.find_mut(0, key) {
        Some(mut entry) => drop(entry.replace(value, expire_at)),
        None => {
            locked.insert(0, key, value, expire_at).set_clock(55);
            locked.find_mut(0, key).expect("it was added").set_version(77);
        }
    }
}

fn check(locked: &LockedSlots<'_, ()>, key: &Key<'_>, model: Option<&Model>) {
    let entry = locked.find(0, key);
    assert_eq!(entry.is_some(), model.is_some());
    let (Some(entry), Some(model)) = (entry, model) else { return };
    let ValueRef::String(string) = entry.value() else { panic!("strings stay strings") };
    assert_eq!((entry.key(), &*string.bytes()), (key.bytes, &*model.bytes));
    assert_eq!(entry.expire_at(), model.expire_at);
    assert_eq!((entry.version(), entry.clock()), (77, 55), "they follow the entry about");
    let integer = base::num::parse_i64(&model.bytes).is_some();
    let expected = match model {
        Model { modified: true, .. } => "raw",
        _ if integer => "int",
        Model { bytes, .. } if bytes.len() <= 44 => "embstr",
        _ => "raw",
    };
    assert_eq!(string.encoding(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn strings_keep_what_they_are_told(
        key in proptest::collection::vec(any::<u8>(), 0..300),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let keyspace = Keyspace::<()>::new(1);
        let key = Key::new(&key);
        let gates = Gates::new();
        let stopped = gates.stop_the_world();
        let mut locked = keyspace.all_slots(&stopped, 0);
        let mut model: Option<Model> = None;
        for step in steps {
            match step {
                Step::Set(bytes, expire_at) => {
                    set(&mut locked, &key, &bytes, expire_at);
                    model = Some(Model { bytes, modified: false, expire_at });
                }
                Step::Grow(length, byte) => {
                    let Some(model) = &mut model else { continue };
                    let mut entry = locked.find_mut(0, &key).expect("the model has it");
                    let length = length.max(model.bytes.len());
                    model.bytes.resize(length, 0);
                    model.modified = true;
                    let bytes = entry.string_mut(length).expect("it is a string");
                    if let (Some(last), Some(own)) = (bytes.last_mut(), model.bytes.last_mut()) {
                        (*last, *own) = (byte, byte);
                    }
                }
                Step::Expire(expire_at) => {
                    let Some(model) = &mut model else { continue };
                    locked.find_mut(0, &key).expect("the model has it").set_expire_at(expire_at);
                    model.expire_at = expire_at;
                }
                Step::Remove => {
                    prop_assert_eq!(locked.remove(0, &key).is_some(), model.take().is_some());
                }
            }
            check(&locked, &key, model.as_ref());
            let table = locked.table(0, key.slot).expect("the database was used");
            let expiring = model.as_ref().and_then(|model| model.expire_at);
            prop_assert_eq!(table.expires(), usize::from(expiring.is_some()));
            prop_assert!(expiring.is_none_or(|at| table.next_expiry() <= at));
        }
    }
}

#[test]
fn a_string_that_fits_is_overwritten_where_it_lies() {
    let keyspace = Keyspace::<()>::new(1);
    let key = Key::new(b"key:000000000042");
    let gates = Gates::new();
    let stopped = gates.stop_the_world();
    let mut locked = keyspace.all_slots(&stopped, 0);
    set(&mut locked, &key, b"abc", None);
    let address = locked.find(0, &key).expect("it was set").key().as_ptr();
    for value in [&b"xyz"[..], b"", b"abcd"] {
        set(&mut locked, &key, value, None);
        let entry = locked.find(0, &key).expect("it was set");
        assert_eq!(entry.key().as_ptr(), address, "32 bytes hold 12 of header and 20 of the rest");
    }
    set(&mut locked, &key, b"abcde", None);
    assert_eq!(locked.find(0, &key).expect("it was set").allocated(), 48);
}

#[test]
fn a_buffer_that_a_reply_reads_is_left_alone() {
    let keyspace = Keyspace::<()>::new(1);
    let key = Key::new(b"k");
    let gates = Gates::new();
    let stopped = gates.stop_the_world();
    let mut locked = keyspace.all_slots(&stopped, 0);
    let buffer = Arc::new(vec![b'a'; 100_000]);
    let value = Value::String(StringValue::Shared(Arc::clone(&buffer)));
    locked.insert(0, &key, value, None);
    let mut entry = locked.find_mut(0, &key).expect("it was set");
    entry.string_mut(0).expect("it is a string")[0] = b'b';
    assert_eq!(buffer[0], b'a');
    let address = entry.string_mut(0).expect("it is a string").as_ptr();
    let again = entry.string_mut(100_001).expect("it is a string");
    assert_eq!((again.as_ptr(), again[0], again[100_000]), (address, b'b', 0));
}

#[test]
#[should_panic(expected = "longer keys are refused before")]
fn no_entry_is_made_of_a_key_whose_length_does_not_fit() {
    // Zeros that nothing reads take no memory.
    let key = vec![0; MAX_KEY + 1];
    let _ = Word::new(&key, Value::String(StringValue::Int(1)), None);
}

#[test]
fn what_is_large_is_so_by_allocations_and_bytes() {
    use crate::pack::End;
    use crate::types::list::ListLimits;
    let limits = crate::Limits { entries: 4, value: 64 };
    let is_large = |value: Value<'_>| {
        let word = Word::new(b"key", value, None);
        let large = Entry::new(word).is_large();
        // SAFETY: nothing else knows the entry.
        unsafe { word.free() };
        large
    };
    let list = |count: usize, size: usize| {
        let mut list = List::new();
        let element = vec![b'e'; size];
        (0..count).for_each(|_| list.push(End::Back, &element[..], &ListLimits::default()));
        Value::List(list)
    };
    assert!(!is_large(list(4_000, 10)), "a few packed nodes");
    assert!(is_large(list(100_000, 10)), "many packed nodes");
    assert!(is_large(list(70, 6_000)), "a node each");
    assert!(!is_large(list(2, 20_000)), "two large elements");
    assert!(is_large(list(10, 20_000)), "ten large elements");

    let hash = |fields: usize, size: usize| {
        let mut hash = Hash::new();
        for field in 0..fields {
            assert!(hash.set(&field.to_le_bytes(), &vec![1; size], limits), "a new field");
        }
        Value::Hash(hash)
    };
    assert!(!is_large(hash(60, 100)), "few small fields");
    assert!(is_large(hash(70, 1)), "many fields");
    assert!(is_large(hash(5, 100_000)), "few fields of many bytes");

    let zset = |members: usize, size: usize| {
        let mut zset = crate::ZsetBuilder::new();
        for member in 0..members {
            zset.add(&[&member.to_le_bytes()[..], &vec![1; size]].concat(), 1.0);
        }
        Value::Zset(zset.finish(limits))
    };
    assert!(!is_large(zset(60, 100)) && is_large(zset(70, 1)) && is_large(zset(5, 100_000)));

    let string = |size: usize| Value::String(StringValue::Shared(Arc::new(vec![1; size])));
    assert!(!is_large(string(4_000_000)) && is_large(string(5_000_000)), "one allocation");
}
