//! Files that the reference server wrote, compared with its own listing of their contents.
//! `scripts/make-golden` makes them.

#![allow(clippy::unwrap_used, reason = "what fails is the test")]

mod common;

use std::path::PathBuf;

use common::{Found, options, options_packing, read};
use rdb::file::{Checksum, DecodeOptions, Function, Usage};
use rdb::{Dialect, Layout};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

/// Reads a file and compares it with its listing, except for keys that had expired.
fn compared(name: &str) -> Found {
    compared_with(name, &options())
}

fn compared_with(name: &str, options: &DecodeOptions) -> Found {
    let found = listed(name, options);
    assert_eq!((found.dialect, found.version), (Dialect::Redis, 10));
    assert_eq!(found.aux[&b"redis-ver"[..]], b"7.0.15");
    found
}

/// Reads a file of any server and compares it with its listing.
fn listed(name: &str, options: &DecodeOptions) -> Found {
    let file = std::fs::File::open(golden(&format!("{name}.rdb"))).unwrap();
    let found = read(file, options).unwrap();
    assert_eq!(found.aux[&b"aof-base"[..]], b"0");
    let listing = std::fs::read_to_string(golden(&format!("{name}.txt"))).unwrap();
    let mut expected: Vec<&str> = listing.lines().collect();
    expected.sort_unstable();
    let mut lines = found.listing();
    lines.retain(|line| !line.contains("\"expired\""));
    for (line, expected) in lines.iter().zip(&expected) {
        assert_eq!(line, expected);
    }
    assert_eq!(lines.len(), expected.len());
    found
}

fn layouts(found: &Found) -> Vec<Layout> {
    let mut layouts: Vec<Layout> = found.entries.iter().map(|entry| entry.layout).collect();
    layouts.sort_unstable();
    layouts.dedup();
    layouts
}

#[test]
fn all_types_in_all_encodings() {
    let found = compared("types");
    assert_eq!(found.checksum, Checksum::Correct);
    let expected = [
        Layout::String,
        Layout::ListOfNodes,
        Layout::Set,
        Layout::SetIntset,
        Layout::Hash,
        Layout::HashListpack,
        Layout::ZsetBinary,
        Layout::ZsetListpack,
    ];
    assert_eq!(layouts(&found), expected);
    let databases: Vec<usize> = found.sizes.iter().map(|(database, ..)| *database).collect();
    assert_eq!(databases, [0, 5, 15]);
    let (_, keys, expiring) = found.sizes[0];
    assert_eq!(keys, found.entries.len() as u64 - 2);
    assert_eq!(expiring, 3);
}

#[test]
fn what_the_newest_servers_write() {
    for (name, dialect, version) in
        [("redis-8.0", Dialect::Redis, 12), ("valkey-9.1", Dialect::Valkey, 80)]
    {
        let all = listed(&format!("types-{name}"), &options());
        assert_eq!((all.dialect, all.version, all.checksum), (dialect, version, Checksum::Correct));
        listed(&format!("plain-{name}"), &options_packing(2));
        // The listing has all fields that have not expired, whether they will or not. This is after
        // the one field that expires at once, and before the others.
        let later = DecodeOptions { now_ms: 1_800_000_000_000, ..options() };
        let fields = listed(&format!("fields-{name}"), &later);
        assert_eq!(fields.entry("set").layout, Layout::SetListpack);
        let at = |field: &str| (field.as_bytes().to_vec(), 9_999_999_999_999_u64);
        assert_eq!(fields.entry("fields:small").fields, [at("b")]);
        assert_eq!(fields.entry("fields:many").fields, [at("1"), at("3")]);
        assert!(fields.entry("fields:gone").fields.is_empty());
    }
}

#[test]
fn a_key_that_expired_before_the_file_was_written_says_so() {
    let found = compared("types");
    let expired = found.entry("expired");
    let written: u64 = String::from_utf8_lossy(&found.aux[&b"ctime"[..]]).parse().unwrap();
    assert!(expired.expire_at_ms.unwrap() <= (written + 1) * 1000);
    assert_eq!(expired.shown, "\"gone\"");
}

#[test]
fn neither_compressed_nor_checked_and_no_packed_encodings() {
    // A packed sorted set keeps no negative zero, so this has to stay as it is.
    let found = compared_with("plain", &options_packing(2));
    assert_eq!(found.checksum, Checksum::Absent);
    let unpacked = [Layout::Set, Layout::Hash, Layout::ZsetBinary];
    assert!(unpacked.iter().all(|layout| layouts(&found).contains(layout)));
}

#[test]
fn hints_for_eviction() {
    let idle = compared("lru").entry("idle").usage;
    assert!(matches!(idle, Some(Usage::IdleSeconds(100_000..=100_010))), "{idle:?}");
    assert_eq!(compared("lfu").entry("frequent").usage, Some(Usage::Frequency(77)));
    assert_eq!(compared("types").entry("fifth").usage, None);
}

#[test]
fn functions_are_kept_and_streams_have_groups() {
    let found = compared("stream");
    let [Function::Library(source)] = &found.functions[..] else { panic!("one library") };
    assert!(source.starts_with(b"#!lua name=golden\n") && source.ends_with(b"end)"));
    assert_eq!(found.entry("stream").layout, Layout::Stream2);
}
