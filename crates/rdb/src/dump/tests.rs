use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use store::gate::Gates;
use store::list::ListLimits;
use store::pack::End;
use store::stream::{Delivery, Group, StreamLimits};
use store::{
    Entry, Hash, Key, Keyspace, Limits, List, Set, SetLimits, Stream, StreamId, StringValue, Zset,
};

use super::*;

fn limits(entries: usize) -> ValueLimits {
    let limits = Limits { entries, value: 64 };
    let set = SetLimits { integers: limits.entries, listpack: limits };
    ValueLimits { list: ListLimits::default(), set, hash: limits, zset: limits }
}

/// Shows a value through a keyspace, as the server does.
fn with_value<T>(value: Value<'_>, action: impl FnOnce(ValueRef<'_>) -> T) -> T {
    let space: Keyspace<()> = Keyspace::new(1);
    let key = Key::new(b"k");
    let gates = Gates::new();
    let stopped = gates.stop_the_world();
    let mut locked = space.all_slots(&stopped, 0);
    locked.insert(0, &key, value, None);
    action(locked.find(0, &key).map(Entry::value).unwrap())
}

fn dumped(value: Value<'_>) -> Vec<u8> {
    with_value(value, |value| dump(value, false))
}

/// Restores a payload and dumps it again.
fn again(payload: &[u8], entries: usize) -> Vec<u8> {
    dumped(restore(payload, &limits(entries), true).unwrap())
}

/// Puts a footer after a body.
fn sealed(body: &[u8], version: u16) -> Vec<u8> {
    let mut payload = body.to_vec();
    payload.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// Payloads that a reference server gave.
#[test]
fn the_reference_writes_the_same_bytes() {
    let string = |text| Value::String(StringValue::from_bytes(text));
    assert_eq!(dumped(string(b"hello")), b"\x00\x05hello\x0c\x00\xa8\x04\xeb\xb6\x9f\x1e\xbeC");
    assert_eq!(
        dumped(string(b"-129")),
        b"\x00\xc1\x7f\xff\x0c\x00\xdc\x16\xb6\xe8\xae\xaa\x1a\xc9"
    );
    let mut list = List::new();
    for element in [&b"a"[..], b"b", b"1", b"-1", b"1000"] {
        list.push(End::Back, element, &ListLimits::default());
    }
    let expected =
        b"\x12\x01\x02\x15\x15\x00\x00\x00\x05\x00\x81a\x02\x81b\x02\x01\x01\xdf\xff\x02\
        \xc3\xe8\x02\xff\x0c\x00\xfcg\x83\xdd+\xa5\xb9\xe9";
    assert_eq!(dumped(Value::List(list)), expected);
    let mut zset = Zset::new();
    for (score, member) in [(1.0, b"a"), (2.5, b"b"), (f64::INFINITY, b"c"), (-f64::INFINITY, b"d")]
    {
        zset.insert(member, score, limits(0).zset);
    }
    let expected =
        b"\x05\x04\x01c\x00\x00\x00\x00\x00\x00\xf0\x7f\x01b\x00\x00\x00\x00\x00\x00\x04@\
        \x01a\x00\x00\x00\x00\x00\x00\xf0?\x01d\x00\x00\x00\x00\x00\x00\xf0\xff\x0c\x00K\xd7\xafS2\x1d\xfd\x17";
    assert_eq!(dumped(Value::Zset(zset)), expected);
}

#[test]
fn footers_are_checked() {
    let payload = sealed(b"\x00\x03abc", DUMP_VERSION);
    assert!(restore(&payload, &limits(8), true).is_ok());
    assert!(restore(&sealed(b"\x00\x03abc", 0), &limits(8), true).is_ok());
    assert!(restore(&sealed(b"\x00\x03abcjunk", 3), &limits(8), true).is_ok());
    let refused =
        |payload: &[u8]| matches!(restore(payload, &limits(8), true), Err(RestoreError::Footer));
    assert!(refused(&sealed(b"\x00\x03abc", DUMP_VERSION + 1)));
    assert!(restore(&sealed(b"\x00\x03abc", 80), &limits(8), true).is_ok(), "Valkey 9");
    assert!(refused(&sealed(b"\x00\x03abc", 79)) && refused(&sealed(b"\x00\x03abc", 81)));
    (0..payload.len()).for_each(|length| assert!(refused(&payload[..length])));
    for at in 0..payload.len() {
        let mut changed = payload.clone();
        changed[at] ^= 1;
        assert!(refused(&changed), "byte {at}");
    }
}

#[test]
fn payloads_of_newer_servers_are_taken() {
    let list = b"\x12\x01\x02\x09\x09\x00\x00\x00\x01\x00\x05\x01\xff";
    let set = b"\x14\x0b\x0b\x00\x00\x00\x02\x00\x01\x01\x02\x01\xff";
    for version in [11, 12, 80] {
        assert!(restore(&sealed(list, version), &limits(8), true).is_ok());
        assert!(restore(&sealed(set, version), &limits(8), true).is_ok());
        // A hash whose fields expire, cut off.
        assert!(restore(&sealed(b"\x16\x01\x01f\x01v", version), &limits(8), true).is_err());
    }
}

#[test]
fn values_that_do_not_add_up_are_refused() {
    let bodies: [&[u8]; 18] = [
        b"",
        b"\x00",
        b"P\x01a",
        b"\x06\x01a",
        b"\x0f\x00",
        b"\x01\x00",
        b"\x01\xc0\x01\x01a",
        b"\x02\x02\x01f\x01f",
        b"\x04\x02\x01f\x01v\x01f\x01w",
        b"\x04\x01\x01f",
        b"\x05\x01\x01m\x00\x00\x00\x00\x00\x00\xf8\x7f",
        b"\x12\x01\x01\x00",
        b"\x12\x01\x03\x01a",
        b"\x12\x02\x02\x09\x09\x00\x00\x00\x01\x00\x05\x01\xff",
        b"\x0d\x14\x14\x00\x00\x00\x10\x00\x00\x00\x03\x00\x00\x01a\x03\x01b\x03\x01c\xff",
        b"\x11\x11\x11\x00\x00\x00\x04\x00\x81b\x02\x02\x01\x81a\x02\x01\x01\xff",
        // A field that expires too late, and one that expires before those ahead of it.
        b"\x19\xff\x9frN\x18\t\x00\x00\x1d\x1d\x00\x00\x00\x06\x00\x81f\x02\x01\x01\xf4\xff\x9frN\x18\t\x01\x00\t\
          \x81g\x02\x02\x01\x00\x01\xff",
        b"\x19\xff\x9frN\x18\t\x00\x00\x1d\x1d\x00\x00\x00\x06\x00\x81f\x02\x01\x01\xf4\xff\x9frN\x18\t\x00\x00\t\
          \x81g\x02\x02\x01\x01\x01\xff",
    ];
    for body in bodies {
        let payload = sealed(body, DUMP_VERSION);
        let result = restore(&payload, &limits(8), true);
        assert!(matches!(result, Err(RestoreError::Value(_))), "{body:?}");
    }
}

#[test]
fn a_large_element_of_a_list_is_dumped_as_a_plain_node() {
    let mut list = List::new();
    list.push(End::Back, vec![b'x'; 9000].as_slice(), &ListLimits::new(2, 1 << 30));
    let payload = dumped(Value::List(list));
    assert_eq!(payload.len(), 9015, "as the reference's");
    assert_eq!(again(&payload, 8), payload);
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        (-200i64..200).prop_map(|number| number.to_string().into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..80),
        (any::<u8>(), 0usize..9000).prop_map(|(byte, length)| vec![byte; length]),
    ]
}

fn scores() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), (-9i32..9).prop_map(f64::from)].prop_filter("number", |f| !f.is_nan())
}

/// A value by its contents, and how many elements may stay packed.
fn values() -> impl Strategy<Value = (Value<'static>, usize)> {
    let entries = prop_oneof![Just(0usize), Just(4), Just(1000)];
    (0..6, proptest::collection::vec((texts(), texts(), scores()), 1..24), entries).prop_map(
        |(kind, items, entries)| {
            let limits = limits(entries);
            let value = match kind {
                0 => Value::String(crate::decode::string_value(items[0].0.clone().into())),
                1 => {
                    let mut list = List::new();
                    let texts = items.iter().map(|item| item.0.as_slice());
                    texts.for_each(|text| list.push(End::Back, text, &limits.list));
                    Value::List(list)
                }
                2 => {
                    let mut set = Set::new();
                    for item in &items {
                        set.add(&item.0, limits.set);
                    }
                    Value::Set(set)
                }
                3 => {
                    let mut hash = Hash::new();
                    for item in &items {
                        // Some expire: at any time, and the last member first.
                        let at = (item.1.len() % 3 == 1).then(|| 1_000_000 - item.1.len() as u64);
                        hash.set_timed(&item.0, &item.1, at, limits.hash);
                    }
                    Value::Hash(hash)
                }
                4 => {
                    let mut stream = Stream::new();
                    let mut group = Group::new(StreamId::MIN, None);
                    let (consumer, _) = group.add_consumer(&items[0].0, 3);
                    for (item, ms) in items.iter().zip(1..) {
                        let fields = [&item.0[..], &item.1];
                        let limits = StreamLimits::new(4096, 3);
                        stream.push(StreamId::new(ms, 0), fields.into_iter(), limits);
                    }
                    stream.delete(StreamId::new(2, 0));
                    stream.add_group(b"group", group);
                    let delivery = Delivery { consumer, now_ms: 9, count: 5, pending: true };
                    stream.deliver(b"group", &delivery, |_| {});
                    Value::Stream(stream)
                }
                _ => {
                    let mut zset = Zset::new();
                    for item in &items {
                        zset.insert(&item.0, item.2, limits.zset);
                    }
                    Value::Zset(zset)
                }
            };
            (value, entries)
        },
    )
}

/// The contents of a value, without its encoding.
#[derive(Debug, PartialEq)]
enum Contents {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    /// Fields with their values and times.
    Hash(BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>),
    Zset(Vec<(Vec<u8>, f64)>),
    /// Entries, and all else as text.
    Stream(Vec<StreamTexts>, String),
}

/// An entry with its names and values.
type StreamTexts = (StreamId, Vec<(Vec<u8>, Vec<u8>)>);

fn contents(value: ValueRef<'_>) -> Contents {
    match value {
        ValueRef::String(string) => Contents::String(string.bytes().to_vec()),
        ValueRef::List(list) => {
            Contents::List(list.iter().map(|item| item.as_element().to_vec()).collect())
        }
        ValueRef::Set(set) => Contents::Set(set.iter().map(|member| member.to_vec()).collect()),
        ValueRef::Hash(hash) => {
            let fields =
                hash.iter().map(|(field, value, at)| (field.to_vec(), (value.to_vec(), at)));
            Contents::Hash(fields.collect())
        }
        ValueRef::Zset(zset) => {
            Contents::Zset(zset.iter().map(|(member, score)| (member.to_vec(), score)).collect())
        }
        ValueRef::Stream(stream) => {
            let entries = stream.range(StreamId::MIN, StreamId::MAX).map(|entry| {
                let fields = entry.fields.map(|(name, value)| (name.to_vec(), value.to_vec()));
                (entry.id, fields.collect())
            });
            let groups: Vec<_> = stream.groups().collect();
            Contents::Stream(entries.collect(), format!("{:?} {groups:?}", stream.numbers()))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_is_dumped_is_restored((value, entries) in values(), compress: bool) {
        let (payload, before, encoding) = with_value(value, |value| {
            (dump(value, compress), contents(value), value.encoding())
        });
        let restored = restore(&payload, &limits(entries), true).unwrap();
        with_value(restored, |value| {
            prop_assert_eq!(contents(value), before);
            prop_assert_eq!(value.encoding(), encoding);
            Ok(())
        })?;
    }

    #[test]
    fn damaged_values_are_refused_or_become_values(
        (value, entries) in values(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let payload = dumped(value);
        let mut body = payload[..payload.len() - 10].to_vec();
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        if is_cut {
            body.truncate(cut.index(body.len()));
        }
        // Any value that results can be dumped and restored again.
        if let Ok(value) = restore(&sealed(&body, DUMP_VERSION), &limits(entries), true) {
            let payload = dumped(value);
            prop_assert!(restore(&payload, &limits(entries), true).is_ok());
        }
    }

    #[test]
    fn arbitrary_bytes_never_do_harm(
        kind in 0u8..26,
        body in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = vec![kind];
        bytes.extend(body);
        drop(restore(&sealed(&bytes, DUMP_VERSION), &limits(8), true));
    }
}
