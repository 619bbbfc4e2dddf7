use std::io::Read;

use proptest::prelude::*;
use store::pack::Element;
use store::{Value, ValueRef};

use super::*;
use crate::read::ReadError;
use crate::testing::{Contents, contents, limits, values, with_value};

/// A key and all that a file says of it.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    database: usize,
    key: Vec<u8>,
    expire_at_ms: Option<u64>,
    usage: Option<Usage>,
    contents: Contents,
}

/// All entries of a file that is right from the first byte to the last.
fn read_all(file: impl Read) -> Result<Vec<Told>, FileError> {
    let options = DecodeOptions { limits: limits(8), now_ms: 0 };
    let mut told = Vec::new();
    let mut ended = false;
    for item in FileReader::open(file, true)? {
        match item? {
            Item::Entries(batch) => {
                for raw in &batch {
                    let entry = raw.decode(&options)?;
                    let Some(value) = entry.value else { continue };
                    told.push(Told {
                        database: raw.database(),
                        key: entry.key.into_owned(),
                        expire_at_ms: raw.expire_at_ms(),
                        usage: raw.usage(),
                        contents: with_value(value, contents),
                    });
                }
            }
            Item::End(Checksum::Correct | Checksum::Absent) => ended = true,
            Item::End(other) => {
                let cause = ReadError::Malformed("the checksum is wrong");
                return Err(FileError { offset: 0, reading: format!("{other:?}"), cause });
            }
            _ => {}
        }
    }
    assert!(ended, "without an error there is an end");
    Ok(told)
}

/// Writes a value in one go or in pieces.
fn write_value(
    writer: &mut FileWriter<Vec<u8>>,
    head: &Head<'_>,
    value: ValueRef<'_>,
    in_pieces: bool,
) -> std::io::Result<()> {
    match value {
        value if !in_pieces => return writer.entry(head, value),
        ValueRef::String(_) => {
            let mut serialized = Vec::new();
            crate::serialize(value, true, &mut serialized);
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
            writer.begin(head, Collection::Hash, hash.len() as u64)?;
            hash.iter().try_for_each(|(field, value)| writer.field(field, value))?;
        }
        ValueRef::Zset(zset) => {
            writer.begin(head, Collection::Zset, zset.len() as u64)?;
            zset.iter().try_for_each(|(member, score)| writer.scored(member, score))?;
        }
    }
    writer.end()
}

fn usages() -> impl Strategy<Value = Option<Usage>> {
    prop_oneof![
        Just(None),
        any::<u32>().prop_map(|seconds| Some(Usage::IdleSeconds(seconds.into()))),
        any::<u8>().prop_map(|frequency| Some(Usage::Frequency(frequency))),
    ]
}

/// What a key is made of, besides its name.
type Made = ((Value<'static>, usize), usize, Option<u64>, Option<Usage>, bool);

fn made() -> impl Strategy<Value = Vec<Made>> {
    let expiry = prop_oneof![Just(None), (0..1u64 << 47).prop_map(Some)];
    proptest::collection::vec((values(), 0usize..40, expiry, usages(), any::<bool>()), 0..12)
}

/// A file of these keys, and what it should tell.
fn file_of(made: Vec<Made>, options: WriteOptions) -> (Vec<u8>, Vec<Told>) {
    let mut writer = FileWriter::new(Vec::new(), options).unwrap();
    let preamble =
        Preamble { server_version: "7.0.15", created_seconds: 1, used_memory: 2, aof_base: true };
    writer.preamble(&preamble).unwrap();
    writer.function(b"#!lua name=x\n").unwrap();
    let mut told = Vec::new();
    for (index, ((value, _), database, expire_at_ms, usage, in_pieces)) in
        made.into_iter().enumerate()
    {
        let key = index.to_string().repeat(index + 1).into_bytes();
        writer.select(database).unwrap();
        if index % 3 == 0 {
            writer.resize(7, 8).unwrap();
        }
        let head = Head { key: &key, expire_at_ms, usage };
        let contents = with_value(value, |value| {
            write_value(&mut writer, &head, value, in_pieces).unwrap();
            contents(value)
        });
        told.push(Told { database, key, expire_at_ms, usage, contents });
    }
    (writer.finish().unwrap().sink, told)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(made in made(), compress: bool, checksum: bool) {
        let (file, told) = file_of(made, WriteOptions { compress, checksum });
        prop_assert_eq!(read_all(&file[..]).unwrap(), told);
    }
}

#[test]
fn integers_are_members_like_their_text() {
    let file = |member: Element<'_>| {
        let options = WriteOptions { compress: true, checksum: true };
        let mut writer = FileWriter::new(Vec::new(), options).unwrap();
        writer.begin(&Head::new(b"k"), Collection::Set, 1).unwrap();
        writer.member(member).unwrap();
        writer.end().unwrap();
        writer.finish().unwrap().sink
    };
    assert_eq!(file(Element::Int(77)), file(Element::Str(b"77")));
}
