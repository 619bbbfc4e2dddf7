//! What the tests of this crate share: values by their contents.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use store::list::ListLimits;
use store::pack::End;
use store::{Entry, Hash, Key, Keyspace, Limits, List, Set, Value, ValueRef, Zset};

use crate::ValueLimits;

/// Limits that let `entries` elements be packed.
pub(crate) fn limits(entries: usize) -> ValueLimits {
    let limits = Limits { entries, value: 64 };
    ValueLimits { list: ListLimits::default(), set: limits, hash: limits, zset: limits }
}

/// Shows a value through a keyspace, as the server does.
pub(crate) fn with_value<T>(value: Value<'_>, action: impl FnOnce(ValueRef<'_>) -> T) -> T {
    let space: Keyspace<()> = Keyspace::new(1);
    let key = Key::new(b"k");
    let mut held = space.try_hold(&[key.slot], 0).unwrap();
    held.insert(0, &key, value, None);
    action(held.find(0, &key).map(Entry::value).unwrap())
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
pub(crate) fn values() -> impl Strategy<Value = (Value<'static>, usize)> {
    let entries = prop_oneof![Just(0usize), Just(4), Just(1000)];
    (0..5, proptest::collection::vec((texts(), texts(), scores()), 1..24), entries).prop_map(
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
                        hash.set(&item.0, &item.1, limits.hash);
                    }
                    Value::Hash(hash)
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

/// What a value holds, without how.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Contents {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    Zset(Vec<(Vec<u8>, f64)>),
}

pub(crate) fn contents(value: ValueRef<'_>) -> Contents {
    match value {
        ValueRef::String(string) => Contents::String(string.bytes().to_vec()),
        ValueRef::List(list) => {
            Contents::List(list.iter().map(|item| item.as_element().to_vec()).collect())
        }
        ValueRef::Set(set) => Contents::Set(set.iter().map(|member| member.to_vec()).collect()),
        ValueRef::Hash(hash) => {
            let pairs = hash.iter().map(|(field, value)| (field.to_vec(), value.to_vec()));
            Contents::Hash(pairs.collect())
        }
        ValueRef::Zset(zset) => {
            Contents::Zset(zset.iter().map(|(member, score)| (member.to_vec(), score)).collect())
        }
    }
}
