//! The common parts of the fuzzers: a bound on memory, values that are put to use, and input in
//! pieces.
//!
//! A fuzzer fails by a panic, by a report of the address sanitizer, or by taking too long; the
//! limits of time and of single allocations are options of libFuzzer, which `make fuzz` sets.

pub mod scripts;

use std::io::{self, Read};

use rdb::ValueLimits;
use rdb::file::DecodeOptions;
use store::garbage;
use store::gate::Gates;
use store::list::ListLimits;
use store::pack::End;
use store::{
    Entry, Key, Keyspace, Limits, SetLimits, StreamId, StringValue, Value, ValueMut, ValueRef,
};
use tests::allocation::{Counting, most_taken};

#[global_allocator]
static COUNTING: Counting = Counting;

/// How many elements of a value are taken out one by one. More would only be slow.
const TAKEN_APART: usize = 64;

/// Does something with `size` bytes of input, and panics if that takes more than `least` bytes and
/// `per_byte` for each of the input at any time.
pub fn bounded<T>(size: usize, least: usize, per_byte: usize, action: impl FnOnce() -> T) -> T {
    let mut result = None;
    let taken = most_taken(|| result = Some(action()));
    assert!(taken <= least + size * per_byte, "{taken} bytes for an input of {size}");
    result.expect("the action has run")
}

/// How to decode values, chosen by the input's last byte, which hardly matters to the formats:
/// collections are packed as usual, or hardly ever. Nothing expires.
pub fn options(input: &[u8]) -> DecodeOptions {
    let usual = input.last().is_none_or(|byte| byte % 2 == 0);
    let limits = if usual { (128, 64) } else { (2, 8) };
    let limits = Limits { entries: limits.0, value: limits.1 };
    let list = if usual { ListLimits::default() } else { ListLimits::new(3, 8) };
    let set = SetLimits { integers: limits.entries, listpack: limits };
    let limits = ValueLimits { list, set, hash: limits, zset: limits };
    DecodeOptions { limits, now_ms: 0 }
}

/// Uses a value from outside, as the entry that it becomes: it keeps its invariants, it is the same
/// after DUMP and RESTORE, and its contents can be found and removed.
pub fn put_to_use(value: Value<'_>, limits: &ValueLimits) {
    // A keyspace has many slots, so one serves all values.
    thread_local!(static SPACE: (Keyspace<()>, Gates) = space());
    SPACE.with(|(space, gates)| {
        let key = Key::new(b"key");
        let stopped = gates.stop_the_world();
        let mut locked = space.all_slots(&stopped, 0);
        locked.insert(0, &key, value, None);
        let value = locked.find(0, &key).map(Entry::value).expect("it was inserted");
        check(value);
        let payload = rdb::dump(value, true);
        let again = rdb::restore(&payload, limits, true).expect("what was taken is whole");
        assert!(contents(value) == contents(again.as_ref()), "DUMP and RESTORE change a value");
        if let ValueRef::Stream(_) = value {
            // It has numbers, groups, consumers and what is pending besides.
            assert!(rdb::dump(again.as_ref(), true) == payload, "a stream is dumped in one way");
        }
        let entry = locked.find_mut(0, &key).expect("it was inserted");
        take_apart(entry.into_value_mut());
        check(locked.find(0, &key).map(Entry::value).expect("it was inserted"));
        locked.remove(0, &key);
        drop(garbage::take());
    });
}

/// A keyspace for the key "key". There is another one in its slot, which stays: the table of a slot
/// without keys would be put aside until threads have left their gates, and libFuzzer takes what
/// piles up for leaks.
fn space() -> (Keyspace<()>, Gates) {
    let (space, gates) = (Keyspace::new(1), Gates::new());
    let other = Value::String(StringValue::from_bytes(b"other"));
    space.all_slots(&gates.stop_the_world(), 0).insert(0, &Key::new(b"{key}"), other, None);
    (space, gates)
}

/// The invariants of a value's structure.
fn check(value: ValueRef<'_>) {
    match value {
        ValueRef::String(_) => {}
        ValueRef::List(list) => list.check(),
        ValueRef::Set(set) => set.check(),
        ValueRef::Hash(hash) => hash.check(),
        ValueRef::Zset(zset) => zset.check(),
        ValueRef::Stream(stream) => stream.check(),
    }
}

/// The contents of a value, in an order that depends on nothing else.
fn contents(value: ValueRef<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all: Vec<_> = match value {
        ValueRef::String(string) => vec![(string.bytes().to_vec(), Vec::new())],
        ValueRef::List(list) => {
            list.iter().map(|item| (item.as_element().to_vec(), Vec::new())).collect()
        }
        ValueRef::Set(set) => set.iter().map(|member| (member.to_vec(), Vec::new())).collect(),
        ValueRef::Hash(hash) => {
            let fields = hash.iter().map(|(field, value, due)| {
                (field.to_vec(), [&value.to_vec()[..], format!(" {due:?}").as_bytes()].concat())
            });
            fields.collect()
        }
        // Zero has two signs, which no client can tell apart.
        ValueRef::Zset(zset) => zset
            .iter()
            .map(|(member, score)| (member.to_vec(), (score + 0.0).to_le_bytes().to_vec()))
            .collect(),
        ValueRef::Stream(stream) => {
            let entries = stream.range(StreamId::MIN, StreamId::MAX).map(|entry| {
                let mut fields = Vec::new();
                for (name, value) in entry.fields {
                    for part in [name.to_vec(), value.to_vec()] {
                        fields.extend_from_slice(&part.len().to_le_bytes());
                        fields.extend_from_slice(&part);
                    }
                }
                (format!("{:?}", entry.id).into_bytes(), fields)
            });
            let groups = stream.groups().map(|(name, _)| (name.to_vec(), Vec::new()));
            entries.chain(groups).collect()
        }
    };
    if matches!(value, ValueRef::Set(_) | ValueRef::Hash(_)) {
        all.sort_unstable();
    }
    all
}

/// Finds the contents of a value, and removes them.
fn take_apart(value: ValueMut<'_>) {
    match value {
        ValueMut::String(_) => {}
        ValueMut::List(list) => {
            for (index, end) in
                [End::Front, End::Back].into_iter().cycle().take(TAKEN_APART).enumerate()
            {
                let expected = list.get(if index % 2 == 0 { 0 } else { -1 });
                let expected = expected.map(|item| item.as_element().to_vec());
                let popped = list.pop_with(end, |item| item.as_element().to_vec());
                assert!(popped == expected, "what is popped is what was there");
            }
        }
        ValueMut::Set(set) => {
            let members: Vec<_> =
                set.iter().take(TAKEN_APART).map(|member| member.to_vec()).collect();
            for member in members {
                assert!(set.contains(&member) && set.remove(&member), "a member is found");
                assert!(!set.contains(&member), "a member is there once");
            }
        }
        ValueMut::Hash(hash) => {
            let fields: Vec<_> =
                hash.iter().take(TAKEN_APART).map(|(field, ..)| field.to_vec()).collect();
            for field in fields {
                assert!(hash.get(&field).is_some() && hash.remove(&field), "a field is found");
                assert!(!hash.contains(&field), "a field is there once");
            }
        }
        ValueMut::Zset(zset) => {
            let members: Vec<_> = zset
                .iter()
                .take(TAKEN_APART)
                .map(|(member, score)| (member.to_vec(), score))
                .collect();
            for (member, score) in members {
                assert!(zset.rank(&member) == Some(0), "members are in the order of scores");
                assert!(zset.remove(&member) == Some(score), "a member has its score");
                assert!(!zset.contains(&member), "a member is there once");
            }
        }
        ValueMut::Stream(stream) => {
            let entries = stream.range(StreamId::MIN, StreamId::MAX);
            let ids: Vec<_> = entries.take(TAKEN_APART).map(|entry| entry.id).collect();
            for id in ids {
                assert!(stream.get(id).is_some() && stream.delete(id), "an entry is found");
                assert!(stream.get(id).is_none(), "an entry is there once");
            }
            let names: Vec<_> = stream.groups().map(|(name, _)| name.to_vec()).collect();
            for name in names {
                let group = stream.group_mut(&name).expect("a group is found");
                if let Some((first, last)) = group.pending_ends() {
                    assert!(group.pending(first).is_some() && group.acknowledge(first));
                    assert!(group.pending(first).is_none(), "an entry is pending once");
                    assert!(group.acknowledge(last) == (first != last));
                }
                let names: Vec<_> = group.consumers().map(|own| own.name().to_vec()).collect();
                for name in names {
                    let pending = group.remove_consumer(&name);
                    assert!(pending.is_some_and(|_| group.number_of(&name).is_none()));
                }
                assert!(group.pending_len() == 0, "what is pending is a consumer's");
            }
        }
    }
}

/// Gives an input in pieces of this many bytes.
#[derive(Debug)]
pub struct Pieces<'i> {
    input: &'i [u8],
    size: usize,
}

impl<'i> Pieces<'i> {
    /// An input in three pieces at most: readers make much room for each, which takes time.
    pub fn new(input: &'i [u8]) -> Pieces<'i> {
        Pieces { input, size: 1 + input.len() / 3 }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = buffer.len().min(self.size);
        self.input.read(&mut buffer[..size])
    }
}
