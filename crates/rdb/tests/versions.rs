//! Files of all versions, assembled by hand as their servers wrote them.

#![allow(clippy::unwrap_used, reason = "what fails is the test")]

mod common;

use common::assemble::{Assembler, intset, length, listpack, ziplist, zipmap};
use common::{Found, options, read};
use rdb::file::{
    Checksum, Collection, DecodeOptions, FileError, FileReader, FileWriter, Function, Head, Item,
    Usage, WriteOptions,
};
use rdb::{Dialect, Layout, ReadError};
use store::pack::Element;

/// Reads a file whose every byte must be right.
fn found(file: &[u8]) -> Found {
    read(file, &options()).unwrap()
}

fn expiry(field: &str, at_ms: u64) -> (Vec<u8>, u64) {
    (field.into(), at_ms)
}

#[test]
fn version_1_counted_strings_and_expiry_in_seconds() {
    let file = Assembler::new("REDIS0001")
        .raw(b"\xfe\x00")
        .key(0, "string")
        .string(b"text")
        .raw(b"\xfd")
        .raw(&1_000_000_000i32.to_le_bytes())
        .key(0, "integer")
        .raw(b"\xc1\x39\x30")
        .key(1, "list")
        .raw(b"\x03")
        .string(b"a")
        .raw(b"\xc0\xff")
        .string(b"a")
        .raw(b"\xfe\x07")
        .key(2, "set")
        .raw(b"\x02")
        .string(b"x")
        .string(b"y")
        .key(3, "zset")
        .raw(b"\x04")
        .string(b"a")
        .raw(b"\x041e-3")
        .string(b"b")
        .raw(b"\xfe")
        .string(b"c")
        .raw(b"\xff")
        .string(b"d")
        .raw(b"\x03-17")
        .key(4, "hash")
        .raw(b"\x01")
        .string(b"field")
        .string(b"value")
        .end_without_checksum();
    let found = found(&file);
    assert_eq!((found.dialect, found.version), (Dialect::Redis, 1));
    assert_eq!(found.checksum, Checksum::Absent);
    assert_eq!(
        found.listing(),
        [
            r#"0 list -1 "list" "a" "-1" "a""#,
            r#"0 string -1 "string" "text""#,
            r#"0 string 1000000000000 "integer" "12345""#,
            r#"7 hash -1 "hash" "field"="value""#,
            r#"7 set -1 "set" "x" "y""#,
            r#"7 zset -1 "zset" "c"=-inf "d"=-17 "a"=0.001 "b"=inf"#,
        ]
    );
}

#[test]
fn versions_2_to_4_zipmaps_ziplists_and_intsets() {
    let pairs = [("f", "v"), ("number", "17"), ("empty", "")];
    for version in 2..=4 {
        let file = Assembler::new(&format!("REDIS000{version}"))
            .raw(b"\xfe\x00")
            .key(9, "zipmap")
            .string(&zipmap(&pairs))
            .key(10, "list")
            .string(&ziplist(&["a", "12", "-300", "b"]))
            .key(11, "intset")
            .string(&intset(&[-5, 1, 300]))
            .key(12, "zset")
            .string(&ziplist(&["low", "1", "high", "2.5"]))
            .raw(b"\xfc")
            .raw(&1_700_000_000_123i64.to_le_bytes())
            .key(13, "hash")
            .string(&ziplist(&["f", "v", "1", "2"]))
            .end_without_checksum();
        assert_eq!(
            found(&file).listing(),
            [
                r#"0 hash -1 "zipmap" "empty"="" "f"="v" "number"="17""#,
                r#"0 hash 1700000000123 "hash" "1"="2" "f"="v""#,
                r#"0 list -1 "list" "a" "12" "-300" "b""#,
                r#"0 set -1 "intset" "-5" "1" "300""#,
                r#"0 zset -1 "zset" "low"=1 "high"=2.5"#,
            ]
        );
    }
}

#[test]
fn versions_5_and_6_end_with_a_checksum() {
    for version in [5, 6] {
        let assembler = || {
            Assembler::new(&format!("REDIS000{version}")).raw(b"\xfe\x00").key(0, "k").string(b"v")
        };
        let file = assembler().end();
        assert_eq!(found(&file).checksum, Checksum::Correct);
        let without = assembler().raw(b"\xff\0\0\0\0\0\0\0\0").end();
        // Bytes after the file are not looked at.
        assert_eq!(found(&without).checksum, Checksum::Absent);
        let mut wrong = file.clone();
        *wrong.last_mut().unwrap() ^= 1;
        assert!(
            matches!(found(&wrong).checksum, Checksum::Wrong { stated, computed } if stated != computed)
        );
        let unverified = FileReader::open(&wrong[..], false).unwrap().last().unwrap().unwrap();
        assert!(matches!(unverified, rdb::file::Item::End(Checksum::Unverified)));
    }
}

#[test]
fn version_7_texts_sizes_and_lists_of_ziplists() {
    let file = Assembler::new("REDIS0007")
        .aux("redis-ver", "3.2.0")
        .aux("redis-bits", "64")
        .raw(b"\xfe\x03\xfb\x02\x01")
        .key(14, "list")
        .raw(&length(2))
        .string(&ziplist(&["a", "b"]))
        .string(&ziplist(&["3"]))
        .end();
    let found = found(&file);
    assert_eq!(found.aux[&b"redis-ver"[..]], b"3.2.0");
    assert_eq!(found.sizes, [(3, 2, 1)]);
    assert_eq!(found.listing(), [r#"3 list -1 "list" "a" "b" "3""#]);
    assert_eq!(found.entries[0].layout, Layout::ListOfZiplists);
}

/// "ReJSON-RL" version 3, and the possible parts of a module's value or auxiliary data.
const MODULE_ID: &[u8] = b"\x81\x45\xe2\x52\x38\xdf\x91\x2c\x03";
const MODULE_DATA: &[u8] = b"\x01\x05\x02\x40\x80\x03abcd\x04abcdefgh\x05\x03abc\x00";

#[test]
fn version_8_modules_and_binary_scores() {
    let file = Assembler::new("REDIS0008")
        .raw(b"\xf7")
        .raw(MODULE_ID)
        .raw(b"\x02\x01")
        .raw(MODULE_DATA)
        .raw(b"\xfe\x00")
        .key(7, "module")
        .raw(MODULE_ID)
        .raw(MODULE_DATA)
        .key(5, "zset")
        .raw(b"\x02")
        .string(b"b")
        .raw(&2.5f64.to_le_bytes())
        .string(b"a")
        .raw(&f64::NEG_INFINITY.to_le_bytes())
        .raw(b"\xf7")
        .raw(MODULE_ID)
        .raw(b"\x02\x02\x00")
        .end();
    let found = found(&file);
    assert_eq!(found.modules.len(), 2);
    assert_eq!(found.modules[0].len(), 9);
    assert_eq!(
        found.listing(),
        [r#"0 module -1 "module" unsupported"#, r#"0 zset -1 "zset" "a"=-inf "b"=2.5"#,]
    );
    let early = Assembler::new("REDIS0008").key(6, "early").raw(b"\x05").end();
    let error = read(&early[..], &options()).unwrap_err();
    assert!(matches!(error.cause, ReadError::Unsupported(_)));
    assert!(error.reading.contains("\"early\""), "{error}");
}

/// A stream with one entry, 5-0, and one group with one pending entry and the consumer that has it.
/// From the second form on ids and a count stand before the groups.
fn stream(assembler: Assembler, form: u8) -> Assembler {
    let first = [&[0; 7][..], &[5], &[0; 8]].concat();
    let id_and_time = [7; 24];
    // The entry has the field of the block's name.
    let block = listpack(&["1", "0", "1", "f", "0", "2", "0", "0", "v", "4"]);
    let ids: &[u8] = if form > 1 { b"\x05\x06\x00\x00\x01" } else { b"" };
    let read: &[u8] = if form > 1 { b"\x01" } else { b"" };
    let times: &[u8] = if form > 2 { &[8; 16] } else { &[8; 8] };
    let entry = assembler.raw(b"\x01").string(&first).string(&block).raw(b"\x01\x05\x06").raw(ids);
    let group = entry.raw(b"\x01").string(b"group").raw(b"\x05\x06").raw(read);
    let pending = group.raw(b"\x01").raw(&id_and_time).raw(b"\x02");
    let consumer = pending.raw(b"\x01").string(b"consumer").raw(times);
    consumer.raw(b"\x01").raw(&id_and_time[..16])
}

/// What is read of such a stream.
const STREAM: &str =
    "5-0 \"f\"=\"v\" @\"group\"=5-6 506381209866536711-506381209866536711>\"consumer\"";

#[test]
fn version_9_streams_and_hints() {
    let file = Assembler::new("REDIS0009").raw(b"\xfe\x00").raw(b"\xf8\x40\x64").key(15, "one");
    let file = stream(file, 1).raw(b"\xf9\xff").key(19, "two");
    let file = stream(file, 2).key(21, "three");
    let file = stream(file, 3).key(0, "after").string(b"v").end();
    let found = found(&file);
    assert_eq!(found.checksum, Checksum::Correct);
    for stream in ["one", "two", "three"] {
        assert_eq!(found.shown(stream), STREAM);
    }
    assert_eq!(found.shown("after"), "\"v\"");
    assert_eq!(found.entry("one").usage, Some(Usage::IdleSeconds(100)));
    assert_eq!(found.entry("two").usage, Some(Usage::Frequency(255)));
    assert_eq!(found.entry("three").usage, None, "a hint is for one key");
}

/// Settings, a producer whose ids are forgotten, and two counts.
const PRODUCERS: &[u8] = b"\x40\x64\x40\x64\x01\x08producer\x00\x07\x02";
/// The same with an id, and that of its entry.
const PRODUCERS_WITH_IDS: &[u8] = b"\x40\x64\x40\x64\x01\x08producer\x01\x02id\x05\x00\x07\x02";

#[test]
fn streams_of_redis_8_6_and_8_8() {
    let file = Assembler::new("REDIS0014").raw(b"\xfe\x00").key(26, "four");
    let file = stream(file, 4).raw(PRODUCERS).key(27, "five");
    let file = stream(file, 5).raw(b"\x00").raw(PRODUCERS).key(0, "after").string(b"v").end();
    let found = found(&file);
    assert_eq!(found.checksum, Checksum::Correct);
    assert_eq!([found.shown("four"), found.shown("five")], [STREAM; 2]);
    assert_eq!(found.shown("after"), "\"v\"");
}

#[test]
fn what_is_new_in_streams_of_redis_8_6_and_8_8_is_refused() {
    let four = Assembler::new("REDIS0013").raw(b"\xfe\x00").key(26, "four");
    let five = || Assembler::new("REDIS0014").raw(b"\xfe\x00").key(27, "five");
    let nacked = [&[1][..], &[7; 16]].concat();
    for (file, key, what) in [
        (stream(four, 4).raw(PRODUCERS_WITH_IDS), "four", "IDMP"),
        (stream(five(), 5).raw(b"\x00").raw(PRODUCERS_WITH_IDS), "five", "IDMP"),
        (stream(five(), 5).raw(&nacked).raw(PRODUCERS), "five", "XNACK"),
    ] {
        let file = file.key(0, "after").string(b"v").end();
        let mut told = Vec::new();
        for item in FileReader::open(&*file, true).unwrap() {
            if let Item::Entries(batch) = item.unwrap() {
                told.extend((&batch).into_iter().filter_map(|raw| raw.decode(&options()).err()));
            }
        }
        let [FileError { cause: ReadError::Unsupported(_), .. }] = &told[..] else {
            panic!("{told:?}");
        };
        let text = told[0].to_string();
        assert!(text.contains(key) && text.contains(what), "{text}");
        // The next one is found all the same.
        let found = found(&file);
        assert_eq!((found.shown(key), found.shown("after")), ("unsupported", "\"v\""));
    }
}

#[test]
fn version_10_functions_of_release_candidates() {
    let file = Assembler::new("REDIS0010")
        .raw(b"\xf6")
        .string(b"f")
        .string(b"LUA")
        .raw(b"\x01")
        .string(b"what")
        .string(b"return 1")
        .raw(b"\xf6")
        .string(b"g")
        .string(b"LUA")
        .raw(b"\x00")
        .string(b"return 2")
        .raw(b"\xf5")
        .string(b"#!lua name=x\n")
        .end();
    let early = |name: &[u8], description: Option<&[u8]>, source: &[u8]| Function::PreRelease {
        name: name.to_vec(),
        engine: b"LUA".to_vec(),
        description: description.map(<[u8]>::to_vec),
        source: source.to_vec(),
    };
    assert_eq!(
        found(&file).functions,
        [
            early(b"f", Some(b"what"), b"return 1"),
            early(b"g", None, b"return 2"),
            Function::Library(b"#!lua name=x\n".to_vec()),
        ]
    );
}

#[test]
fn version_11_listpacks_and_sizes_of_slots() {
    let file = Assembler::new("REDIS0011")
        .raw(b"\xfe\x00\xf4\x52\x34\x02\x01")
        .key(20, "set")
        .string(&listpack(&["a", "1", "b"]))
        .raw(b"\xf4\x52\x35\x02\x01")
        .key(17, "zset")
        .string(&listpack(&["a", "1", "b", "2"]))
        .key(16, "hash")
        .string(&listpack(&["f", "v"]))
        .key(18, "list")
        .raw(b"\x02\x02")
        .string(&listpack(&["a", "1"]))
        .raw(b"\x01")
        .string(b"plain")
        .end();
    assert_eq!(
        found(&file).listing(),
        [
            r#"0 hash -1 "hash" "f"="v""#,
            r#"0 list -1 "list" "a" "1" "plain""#,
            r#"0 set -1 "set" "1" "a" "b""#,
            r#"0 zset -1 "zset" "a"=1 "b"=2"#,
        ]
    );
    let twice = Assembler::new("REDIS0011").key(20, "set").string(&listpack(&["a", "a"])).end();
    assert!(read(&twice[..], &options()).is_err());
}

/// A file with hashes whose fields expire at 0 (never), 5000 and 6000.
fn expiring_fields() -> Vec<u8> {
    Assembler::new("REDIS0012")
        .key(24, "counted")
        .raw(&5000u64.to_le_bytes())
        .raw(b"\x03")
        .raw(b"\x00")
        .string(b"never")
        .string(b"1")
        .raw(b"\x01")
        .string(b"first")
        .string(b"2")
        .raw(b"\x43\xe9")
        .string(b"second")
        .string(b"3")
        .key(25, "packed")
        .raw(&5000u64.to_le_bytes())
        .string(&listpack(&["first", "2", "5000", "second", "3", "6000", "never", "1", "0"]))
        .key(22, "early")
        .raw(b"\x02")
        .raw(b"\x53\x88")
        .string(b"first")
        .string(b"2")
        .raw(b"\x57\x70")
        .string(b"second")
        .string(b"3")
        .key(23, "early packed")
        .string(&listpack(&["first", "2", "5000"]))
        .end()
}

#[test]
fn version_12_fields_that_expire() {
    let found = found(&expiring_fields());
    let all = r#""first"="2" "never"="1" "second"="3""#;
    assert_eq!(found.shown("counted"), all);
    assert_eq!(found.shown("packed"), all);
    let expiries = [expiry("first", 5000), expiry("second", 6000)];
    for key in ["counted", "packed", "early"] {
        assert_eq!(found.entry(key).fields, expiries, "{key}");
    }
    assert_eq!(found.shown("early packed"), r#""first"="2""#);
}

#[test]
fn fields_that_expired_are_left_out() {
    let at = |now_ms| read(&expiring_fields()[..], &DecodeOptions { now_ms, ..options() }).unwrap();
    assert_eq!(at(5000).entry("early packed").fields, [expiry("first", 5000)]);
    let found = at(5001);
    assert_eq!(found.shown("packed"), r#""never"="1" "second"="3""#);
    assert_eq!(found.entry("packed").fields, [expiry("second", 6000)]);
    assert_eq!(found.shown("early"), r#""second"="3""#);
    assert_eq!(found.shown("early packed"), "nothing");
}

#[test]
fn impossible_expiries_of_fields_are_refused() {
    let files = [
        Assembler::new("REDIS0012").key(25, "k").raw(&[0; 8]).string(&listpack(&["f", "v"])),
        Assembler::new("REDIS0012").key(25, "k").raw(&[0; 8]).string(&listpack(&["f", "v", "x"])),
        Assembler::new("REDIS0012").key(23, "k").string(&listpack(&["f", "v", "-1"])),
        Assembler::new("REDIS0012").key(24, "k").raw(&[0xff; 8]).raw(b"\x01\x02\x01f\x01v"),
        Assembler::new("VALKEY080").key(22, "k").raw(b"\x01\x01f\x01v").raw(&(-2i64).to_le_bytes()),
    ];
    for file in files {
        let error = read(&file.end()[..], &options()).unwrap_err();
        assert!(matches!(error.cause, ReadError::Malformed(_)), "{error}");
        assert!(error.reading.starts_with("key \"k\", a "), "{error}");
    }
}

#[test]
fn valkey_9() {
    let file = Assembler::new("VALKEY080")
        .aux("valkey-ver", "9.0.0")
        .raw(b"\xf3")
        .string(b"job")
        .raw(b"\x02\x00\x05\x40\x64\x40\x65")
        .raw(b"\xfe\x00")
        .key(22, "hash")
        .raw(b"\x02")
        .string(b"never")
        .string(b"1")
        .raw(&(-1i64).to_le_bytes())
        .string(b"later")
        .string(b"2")
        .raw(&9000i64.to_le_bytes())
        .key(20, "set")
        .string(&listpack(&["a"]))
        .end();
    let found = found(&file);
    assert_eq!((found.dialect, found.version), (Dialect::Valkey, 80));
    assert_eq!(found.checksum, Checksum::Correct);
    assert_eq!(found.shown("hash"), r#""later"="2" "never"="1""#);
    assert_eq!(found.entry("hash").fields, [expiry("later", 9000)]);
    assert_eq!(found.shown("set"), "\"a\"");
    // Redis's numbers for the same thing mean nothing here, nor Valkey's in Redis's files.
    for (magic, bytes) in [("VALKEY080", b"\x18\x01k"), ("REDIS0012", b"\xf3\x01k")] {
        let file = Assembler::new(magic).raw(bytes).end();
        let error = read(&file[..], &options()).unwrap_err();
        assert!(matches!(error.cause, ReadError::Unsupported(_)), "{error}");
    }
}

#[test]
fn fields_that_expire_are_written_for_valkey_9() {
    let options = WriteOptions { version: rdb::FILE_VERSION_OF_VALKEY, ..WriteOptions::default() };
    let mut writer = FileWriter::new(Vec::new(), options).unwrap();
    let hash = Collection::ExpiringHash { earliest: 9000 };
    writer.begin(&Head::new(b"hash"), hash, 2).unwrap();
    writer.field(Element::Str(b"never"), Element::Int(1), None).unwrap();
    writer.field(Element::Str(b"later"), Element::Int(2), Some(9000)).unwrap();
    writer.end().unwrap();
    let file = writer.finish().unwrap().sink;
    let found = found(&file);
    assert_eq!((found.dialect, found.version), (Dialect::Valkey, 80));
    assert_eq!(found.shown("hash"), r#""later"="2" "never"="1""#);
    assert_eq!(found.entry("hash").fields, [expiry("later", 9000)]);
}

#[test]
fn collections_that_were_saved_empty_are_nothing() {
    let file = Assembler::new("REDIS0009")
        .key(1, "list")
        .raw(b"\x00")
        .key(13, "hash")
        .string(&ziplist(&[]))
        .key(17, "zset")
        .string(&listpack(&[]))
        .key(0, "string")
        .string(b"")
        .end();
    let found = found(&file);
    for key in ["list", "hash", "zset"] {
        assert_eq!(found.shown(key), "nothing");
    }
    assert_eq!(found.shown("string"), "\"\"");
}

#[test]
fn newer_versions_are_read_up_to_what_is_new_in_them() {
    for version in ["REDIS0013", "REDIS0014", "REDIS0015"] {
        let file = Assembler::new(version).key(0, "known").string(b"v").end();
        assert_eq!(found(&file).shown("known"), "\"v\"");
        for (kind, name) in [
            (28, "28 (an array), of key \"new\""),
            (32, "32 (a hash with a template), of key \"new\""),
            (33, "33, of key \"new\""),
            (242, "242 (a template of hashes)"),
            (243, "243 (what a module notes of a key)"),
        ] {
            let file = Assembler::new(version).key(kind, "new").string(b"v").end();
            let failure = FileReader::open(&*file, true).unwrap().find_map(Result::err).unwrap();
            let told = failure.to_string();
            assert!(told.ends_with(&format!("Unknown RDB encoding type {name}")), "{told}");
        }
    }
}

#[test]
fn other_files_and_newer_versions_are_refused_by_name() {
    let refused = |magic: &[u8]| FileReader::open(magic, true).unwrap_err().to_string();
    assert_eq!(
        refused(b"REDIS0016"),
        "offset 0, the first bytes: unsupported: Can't handle RDB format version 16 of Redis, 15 is the newest we know"
    );
    assert!(refused(b"VALKEY081").contains("version 81 of Valkey, 80 is the newest we know"));
    assert!(refused(b"REDIS0000").contains("version 0 of Redis"));
    for other in [&b"REDISxxxx"[..], b"RIFF....WAVE", b"*2\r\n$6\r\nSELECT\r\n"] {
        assert!(refused(other).contains("Wrong signature trying to load DB from file"));
    }
    assert!(refused(b"REDIS").contains("ends too early"));
}

#[test]
fn expiries_before_1970_are_past_and_minus_one_is_never() {
    let file = Assembler::new("REDIS0009")
        .raw(b"\xfc")
        .raw(&(-1i64).to_le_bytes())
        .key(0, "never")
        .string(b"v")
        .raw(b"\xfc")
        .raw(&(-2i64).to_le_bytes())
        .key(0, "past")
        .string(b"v")
        .raw(b"\xfd")
        .raw(&(-1i32).to_le_bytes())
        .key(0, "never either")
        .string(b"v")
        .end();
    let found = found(&file);
    assert_eq!(found.entry("never").expire_at_ms, None);
    assert_eq!(found.entry("past").expire_at_ms, Some(0));
    assert_eq!(found.entry("never either").expire_at_ms, None);
}
