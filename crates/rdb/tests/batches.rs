//! Files of many chunks: an item that is cut between two chunks is complete in one of them, and
//! other threads decode.

#![allow(clippy::unwrap_used, reason = "what fails is the test")]

mod common;

use std::io::Read;
use std::sync::mpsc;
use std::thread;

use base::limits::RDB_CHUNK;
use common::options;
use rdb::file::{
    Checksum, EntryBatch, FileReader, FileWriter, Finished, Head, Item, Usage, WriteOptions,
};

/// Small keys in the file.
const KEYS: usize = 60_000;
/// One key in the middle has a value that is larger than some chunks.
const LARGE: usize = 3 * RDB_CHUNK;

/// A key by its place in the file: database, name, expiry, usage, length of its value.
type Key = (usize, Vec<u8>, Option<u64>, Option<Usage>, usize);

fn keys() -> impl Iterator<Item = Key> {
    (0..KEYS).map(|index| {
        let expire_at_ms = index.is_multiple_of(3).then_some(1 << 41 | index as u64);
        let usage = index.is_multiple_of(5).then_some(Usage::IdleSeconds(index as u64));
        let length = if index == KEYS / 2 { LARGE } else { index % 40 };
        (index / 1000, format!("key:{index}").into_bytes(), expire_at_ms, usage, length)
    })
}

fn file() -> Vec<u8> {
    let options = WriteOptions { compress: false, ..WriteOptions::default() };
    let mut writer = FileWriter::new(Vec::new(), options).unwrap();
    let mut selected = None;
    for (database, key, expire_at_ms, usage, length) in keys() {
        if selected.replace(database) != Some(database) {
            writer.select(database).unwrap();
            // Now and then something that is not a key comes between the keys.
            if database.is_multiple_of(7) {
                writer.resize(1000, 334).unwrap();
            }
        }
        // A string whose length always takes five bytes.
        let mut value = vec![0, 0x80];
        value.extend_from_slice(&(length as u32).to_be_bytes());
        value.resize(value.len() + length, b'v');
        writer.serialized(&Head { key: &key, expire_at_ms, usage }, &value).unwrap();
    }
    let Finished { sink, size, .. } = writer.finish().unwrap();
    assert_eq!(sink.len() as u64, size);
    sink
}

fn decoded(batch: &EntryBatch) -> Vec<Key> {
    let key = |raw: rdb::file::RawEntry<'_>| {
        let entry = raw.decode(&options()).unwrap();
        let store::Value::String(string) = entry.value.unwrap() else { panic!("all are strings") };
        let length = match string {
            store::StringValue::Plain(text) => text.len(),
            store::StringValue::Shared(text) => text.len(),
            other => panic!("nobody wrote {other:?}"),
        };
        (raw.database(), entry.key.into_owned(), raw.expire_at_ms(), raw.usage(), length)
    };
    batch.entries().map(key).collect()
}

#[test]
fn another_thread_decodes_all_keys_in_order() {
    let file = file();
    let (sender, batches) = mpsc::sync_channel::<EntryBatch>(4);
    let found: Vec<Key> = thread::scope(|scope| {
        let decoder =
            scope.spawn(move || batches.into_iter().flat_map(|batch| decoded(&batch)).collect());
        let mut sizes = 0;
        for item in FileReader::open(&file[..], true).unwrap() {
            match item.unwrap() {
                Item::Entries(batch) => sender.send(batch).unwrap(),
                Item::Resize { database, .. } => {
                    assert!(database.is_multiple_of(7));
                    sizes += 1;
                }
                Item::End(checksum) => assert_eq!(checksum, Checksum::Correct),
                other => panic!("nobody wrote {other:?}"),
            }
        }
        assert_eq!(sizes, (KEYS / 1000).div_ceil(7));
        drop(sender);
        decoder.join().unwrap()
    });
    assert!(found.into_iter().eq(keys()));
}

#[test]
fn batches_are_of_one_size_but_for_large_values() {
    let file = file();
    let sizes: Vec<usize> = FileReader::open(&file[..], false)
        .unwrap()
        .filter_map(|item| match item.unwrap() {
            Item::Entries(batch) => Some(batch.bytes()),
            _ => None,
        })
        .collect();
    assert!(sizes.len() > 5);
    let large: Vec<&usize> = sizes.iter().filter(|size| **size > RDB_CHUNK + 1000).collect();
    assert!(large.iter().all(|size| (LARGE..LARGE + RDB_CHUNK + 1000).contains(size)), "{large:?}");
    assert_eq!(large.len(), 1);
}

#[test]
fn what_follows_a_file_is_given_back() {
    let mut file = file();
    let size = file.len() as u64;
    file.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
    let mut reader = FileReader::open(&file[..], true).unwrap();
    assert!(reader.all(|item| item.is_ok()));
    assert_eq!(reader.offset(), size);
    let (mut source, mut rest) = reader.into_rest();
    source.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"*1\r\n$4\r\nPING\r\n");
}
