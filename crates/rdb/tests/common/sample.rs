//! Files of random keys, written by the crate's own writer.

use std::io;
use std::sync::Arc;

use rdb::file::{Collection, FileWriter, Head, Preamble, Usage, WriteOptions};
use store::list::ListLimits;
use store::pack::End;
use store::stream::{Delivery, Group, StreamLimits};
use store::{
    Hash, Limits, List, Set, SetLimits, Stream, StreamId, StringValue, Value, ValueRef, Zset,
};
use tests::random::Random;

use super::{contents, line, with_entry};

/// A file, and its expected contents.
pub struct Sample {
    pub file: Vec<u8>,
    /// For each key in the order of the file its line in a listing, and how it was used.
    pub keys: Vec<(String, Option<Usage>)>,
}

/// A file of up to `most` random keys.
pub fn sample(random: &mut Random, most: usize) -> Sample {
    let (compress, checksum) = (random.percent(50), random.percent(80));
    let version = rdb::FILE_VERSION_WITH_EXPIRING_FIELDS;
    let options = WriteOptions { compress, checksum, version };
    write(random, most, options).expect("writing to memory cannot fail")
}

fn write(random: &mut Random, most: usize, options: WriteOptions) -> io::Result<Sample> {
    let mut writer = FileWriter::new(Vec::new(), options)?;
    writer.preamble(&Preamble {
        server_version: "7.0.15",
        created_seconds: 1_700_000_000,
        used_memory: 1 << 20,
        aof_base: random.percent(10),
        stream: None,
    })?;
    let mut keys = Vec::new();
    for index in 0..random.below(most + 1) {
        let database = random.below(16);
        writer.select(database)?;
        if random.percent(20) {
            // A hint that may be wrong, though not by much: the reference makes room for it.
            writer.resize(random.below(2000) as u64, random.below(2000) as u64)?;
        }
        let key = format!("{index}{}", ":long".repeat(random.below(20))).into_bytes();
        let later = (1u64 << 42) + (random.bits() >> 20);
        let expire_at_ms = random.percent(30).then_some(later);
        let usage = match random.below(3) {
            0 => Some(Usage::IdleSeconds(random.bits() >> random.between(32, 63))),
            1 => Some(Usage::Frequency(random.bits() as u8)),
            _ => None,
        };
        let head = Head { key: &key, expire_at_ms, usage };
        let in_pieces = random.percent(50);
        let line = with_entry(value(random), |value| {
            write_value(&mut writer, &head, value, in_pieces)?;
            let shown = contents(value).join(" ");
            io::Result::Ok(line(database, value.type_name(), expire_at_ms, &key, &shown))
        })?;
        keys.push((line, usage));
    }
    Ok(Sample { file: writer.finish()?.sink, keys })
}

/// Writes a value in one go or in pieces.
fn write_value(
    writer: &mut FileWriter<Vec<u8>>,
    head: &Head<'_>,
    value: ValueRef<'_>,
    in_pieces: bool,
) -> io::Result<()> {
    match value {
        value if !in_pieces => return writer.entry(head, value),
        ValueRef::String(_) | ValueRef::Stream(_) => {
            let mut serialized = Vec::new();
            rdb::serialize(value, true, &mut serialized);
            return writer.serialized(head, &serialized);
        }
        ValueRef::List(list) => {
            writer.begin(head, Collection::List, list.node_count() as u64)?;
            list.nodes().try_for_each(|node| writer.node(node))?;
        }
        ValueRef::Set(set) => {
            writer.begin(head, Collection::Set, set.len() as u64)?;
            set.iter().try_for_each(|member| writer.member(member))?;
        }
        ValueRef::Hash(hash) => {
            let collection = match hash.next_expiry() {
                Some(earliest) => Collection::ExpiringHash { earliest },
                None => Collection::Hash,
            };
            writer.begin(head, collection, hash.len() as u64)?;
            hash.iter().try_for_each(|(field, value, at)| writer.field(field, value, at))?;
        }
        ValueRef::Zset(zset) => {
            writer.begin(head, Collection::Zset, zset.len() as u64)?;
            zset.iter().try_for_each(|(member, score)| writer.scored(member, score))?;
        }
    }
    writer.end()
}

fn value(random: &mut Random) -> Value<'static> {
    let limits = Limits { entries: *random.pick(&[0, 4, 128]), value: 64 };
    // Mostly few elements, some of them large; rarely many.
    let count = if random.percent(5) { 1 + random.below(700) } else { 1 + random.below(12) };
    match random.below(6) {
        5 => Value::Stream(stream(random, count)),
        0 => {
            let text = text(random);
            match base::num::parse_i64(&text) {
                Some(number) => Value::String(StringValue::Int(number)),
                None => Value::String(StringValue::Shared(Arc::new(text))),
            }
        }
        1 => {
            let mut list = List::new();
            for _ in 0..count {
                list.push(End::Back, text(random).as_slice(), &ListLimits::default());
            }
            Value::List(list)
        }
        2 => {
            let mut set = Set::new();
            let integers = random.percent(50);
            let set_limits = SetLimits { integers: limits.entries, listpack: limits };
            for _ in 0..count {
                let member = if integers { integer(random) } else { text(random) };
                set.add(&member, set_limits);
            }
            Value::Set(set)
        }
        3 => {
            let mut hash = Hash::new();
            let expires = random.percent(50);
            for _ in 0..count {
                let at = (expires && random.percent(30))
                    .then(|| 2_000_000_000_000 + random.below(9) as u64);
                hash.set_timed(&text(random), &text(random), at, limits);
            }
            Value::Hash(hash)
        }
        _ => {
            let mut zset = Zset::new();
            for _ in 0..count {
                zset.insert(&text(random), score(random), limits);
            }
            Value::Zset(zset)
        }
    }
}

/// A stream, perhaps with a group that has read a part of it.
fn stream(random: &mut Random, count: usize) -> Stream {
    let mut stream = Stream::new();
    let limits = StreamLimits::new(1000, 10);
    for _ in 0..count {
        let fields: Vec<Vec<u8>> = (0..2 + 2 * random.below(3)).map(|_| text(random)).collect();
        let last = stream.last_id();
        let id = StreamId::new(last.ms + random.below(3) as u64, last.seq + 1);
        stream.push(id, fields.iter().map(Vec::as_slice), limits);
    }
    for _ in 0..random.below(3) {
        stream.delete(StreamId::new(random.below(5) as u64, 1 + random.below(count) as u64));
    }
    if random.percent(50) {
        let mut group = Group::new(StreamId::MIN, Some(0));
        let (consumer, _) = group.add_consumer(&text(random), 5);
        stream.add_group(b"group", group);
        let delivery = Delivery { consumer, now_ms: 7, count: random.below(20), pending: true };
        stream.deliver(b"group", &delivery, |_| {});
    }
    stream
}

fn text(random: &mut Random) -> Vec<u8> {
    match random.below(40) {
        0..10 => integer(random),
        10..30 => format!("text {}", random.below(1000)).into_bytes(),
        30..36 => (0..random.below(100)).map(|_| random.bits() as u8).collect(),
        36..39 => b"repeat".repeat(random.below(30)),
        _ => vec![random.bits() as u8; random.below(12_000)],
    }
}

fn integer(random: &mut Random) -> Vec<u8> {
    let bits = random.bits().cast_signed();
    (bits >> random.below(64)).to_string().into_bytes()
}

/// A score that every encoding keeps: a packed sorted set has no negative zero.
fn score(random: &mut Random) -> f64 {
    match random.below(10) {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        2 => Some(f64::from_bits(random.bits())).filter(|score| score.is_normal()).unwrap_or(0.5),
        _ => random.between(-40, 40) as f64 / 4.0 + 0.0,
    }
}
