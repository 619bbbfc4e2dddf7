use std::fs;

use base::crc::crc64;
use resp::client::encode_command;
use tempfile::TempDir;

use super::*;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");

/// The report and its verdict.
fn run(path: &Path, options: Options) -> (Result<Verdict>, String) {
    let mut out = Vec::new();
    let verdict = check(path, options, &mut out);
    (verdict, String::from_utf8(out).unwrap())
}

fn look(path: &Path) -> (Verdict, String) {
    let (verdict, report) = run(path, Options::default());
    (verdict.unwrap(), report)
}

fn fix(path: &Path) -> (Verdict, String) {
    let (verdict, report) = run(path, Options { fix: true, truncate_to: None });
    (verdict.unwrap(), report)
}

fn go_back(path: &Path, second: i64) -> (Result<Verdict>, String) {
    run(path, Options { fix: false, truncate_to: Some(second) })
}

/// A file of lines of words, in which lines beginning with `#` stay as they are.
fn commands(lines: &[&str]) -> Vec<u8> {
    let mut content = Vec::new();
    for line in lines {
        match line.starts_with('#') {
            true => content.extend_from_slice(format!("{line}\r\n").as_bytes()),
            false => encode_command(line.split(' '), &mut content),
        }
    }
    content
}

/// An RDB file: strings in database 1; in place of the third a set that is damaged within.
fn snapshot(version: &str) -> Vec<u8> {
    let mut content = format!("REDIS{version}").into_bytes();
    content.extend_from_slice(b"\xfa\x05ctime\x03100\xfe\x00\xfb\x02\x00");
    content.extend_from_slice(b"\x00\x01a\x011\x00\x01b\x012");
    content.extend_from_slice(b"\xfe\x01\xfc\0\0\0\0\0\0\0\x7f\x0b\x01s\x03bad\x00\x01c\x013\xff");
    if version > "0004" {
        content.extend_from_slice(&crc64(&content).to_le_bytes());
    }
    content
}

/// A directory of an append-only file with these increments.
fn directory(increments: &[&[u8]]) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let mut list = "file a.1.base.rdb seq 1 type b\n".to_owned();
    let mut base = b"REDIS0010\xfa\x05ctime\x03100\xff".to_vec();
    base.extend_from_slice(&crc64(&base).to_le_bytes());
    fs::write(home.path().join("a.1.base.rdb"), base).unwrap();
    for (number, content) in (1..).zip(increments) {
        list += &format!("file a.{number}.incr.aof seq {number} type i\n");
        fs::write(home.path().join(format!("a.{number}.incr.aof")), content).unwrap();
    }
    fs::write(home.path().join("a.manifest"), list).unwrap();
    home
}

fn names(directory: &TempDir) -> Vec<String> {
    let mut names = RealDisk.list(directory.path()).unwrap();
    names.sort();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn files_of_the_reference_are_good() {
    for name in ["types", "plain", "lfu", "lru", "stream"] {
        let (verdict, report) = look(&Path::new(GOLDEN).join(format!("{name}.rdb")));
        assert_eq!(verdict, Verdict::Good, "{report}");
        assert!(report.contains("redis-ver 7.0.15") && report.ends_with("  good\n"), "{report}");
    }
    for name in ["types", "plain", "fields"] {
        for (version, writer) in
            [("redis-8.0", "redis-ver 8.0.6"), ("valkey-9.1", "valkey-ver 9.1.2")]
        {
            let (verdict, report) = look(&Path::new(GOLDEN).join(format!("{name}-{version}.rdb")));
            assert_eq!(verdict, Verdict::Good, "{report}");
            assert!(report.contains(writer) && report.ends_with("  good\n"), "{report}");
        }
    }
    let (verdict, report) = look(Path::new(GOLDEN));
    assert_eq!(verdict, Verdict::Good);
    assert_eq!(report.matches("  good\n").count(), 11, "{report}");
}

/// Valid data that is not known here is kept, and other damage is repaired.
#[test]
fn what_this_server_does_not_know_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("dump.rdb");
    // A string, and a value of a module.
    let mut whole = b"REDIS0010\xfa\x05ctime\x03100\xfe\x00\xfb\x02\x00".to_vec();
    whole.extend_from_slice(b"\x00\x01a\x011\x07\x01m\x81\0\0\0\0\0\0\0\x01\x02\x05\x00\xff");
    whole.extend_from_slice(&crc64(&whole).to_le_bytes());
    fs::write(&file, &whole).unwrap();
    let (verdict, report) = fix(&file);
    assert_eq!(verdict, Verdict::Unsupported, "{report}");
    assert!(report.contains("1 values of types that this server does not load\n"), "{report}");
    assert_eq!(names(&home), ["dump.rdb"]);
    fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    assert_eq!(look(&file).0, Verdict::Damaged);
    assert_eq!(fix(&file).0, Verdict::Unsupported);
    assert_eq!(fs::read(&file).unwrap(), whole);
    // One that is cut away, because its key is there already, does not matter.
    let mut twice = b"REDIS0010\xfe\x00\x00\x01a\x011".to_vec();
    twice.extend_from_slice(b"\x07\x01a\x81\0\0\0\0\0\0\0\x01\x02\x05\x00\xff");
    twice.extend_from_slice(&crc64(&twice).to_le_bytes());
    fs::write(&file, &twice).unwrap();
    let (verdict, report) = fix(&file);
    assert_eq!(verdict, Verdict::Changed, "{report}");
    assert_eq!(look(&file).0, Verdict::Good);
    // An unknown command that is cut away does not matter.
    let file = home.path().join("x.aof");
    let known = commands(&["#TS:1", "SET a 1"]);
    fs::write(&file, [&known[..], &commands(&["MULTI", "NOSUCH x"])].concat()).unwrap();
    assert_eq!(look(&file).0, Verdict::Damaged);
    assert_eq!(fix(&file).0, Verdict::Changed);
    let later = commands(&["#TS:5", "NOSUCH x", "#TS:9", "SET b 1"]);
    for (second, expected) in [(6, Verdict::Unsupported), (4, Verdict::Changed)] {
        fs::write(&file, [&known[..], &later].concat()).unwrap();
        assert_eq!(go_back(&file, second).0.unwrap(), expected);
    }
}

#[test]
fn what_a_load_leaves_out_is_no_hindrance() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("x.aof");
    let lines = ["#UNKNOWN", "MULTI", "SET a 1", "NOSUCH x", "EXEC", "SET b 1"];
    fs::write(&file, commands(&lines)).unwrap();
    let (verdict, report) = look(&file);
    assert_eq!(verdict, Verdict::Good, "{report}");
    assert!(report.contains("  4 commands of a primary that a load leaves out"), "{report}");
}

#[test]
fn commands_are_counted() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("x.aof");
    let lines = ["#TS:5", "SELECT 0", "set a 1", "SET b 2", "MULTI", "NOSUCH x", "EXEC", "#TS:9"];
    fs::write(&file, commands(&lines)).unwrap();
    let (verdict, report) = look(&file);
    let lines: Vec<&str> = report.lines().skip(1).collect();
    let at = commands(&["#TS:5", "SELECT 0", "set a 1", "SET b 2", "MULTI"]).len();
    let unknown = format!("  UNKNOWN command NOSUCH at offset {at}");
    let refused = "  this server refuses to load it";
    let names = "  SET 2, EXEC 1, MULTI 1, NOSUCH 1, SELECT 1";
    assert_eq!(
        lines,
        ["  6 commands, 1 transactions", names, "  times from 5 to 9", &unknown, refused]
    );
    assert_eq!(verdict, Verdict::Unsupported);
}

#[test]
fn a_torn_file_is_cut_and_the_original_stays() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("x.aof");
    let good = commands(&["SET a 1"]);
    let torn = [&good[..], &commands(&["MULTI", "SET b 2"])].concat();
    fs::write(&file, &torn).unwrap();
    let (verdict, report) = look(&file);
    assert_eq!(verdict, Verdict::Damaged);
    let (length, rest) = (good.len(), torn.len() - good.len());
    let expected = format!(
        "  TORN: the file ends within a transaction\n  good up to offset {length}, {rest} bytes \
         follow\n"
    );
    assert!(report.ends_with(&expected), "{report}");
    assert_eq!(fs::read(&file).unwrap(), torn, "looking changes nothing");
    for (original, before) in [("x.aof.original", &torn), ("x.aof.original.2", &torn)] {
        fs::write(&file, before).unwrap();
        assert_eq!(fix(&file).0, Verdict::Changed);
        assert_eq!(fs::read(&file).unwrap(), good);
        assert_eq!(fs::read(home.path().join(original)).unwrap(), *before);
    }
    assert_eq!(look(&file).0, Verdict::Good);
    assert_eq!(fix(&file).0, Verdict::Good, "nothing is left to be done");
    assert_eq!(names(&home), ["x.aof", "x.aof.original", "x.aof.original.2"]);
}

#[test]
fn what_follows_damage_is_set_aside() {
    let first = commands(&["SET a 1"]);
    let second = [&first[..], b"garbage"].concat();
    let home = directory(&[&first, &second, &first]);
    let (verdict, report) = look(home.path());
    assert_eq!(verdict, Verdict::Damaged);
    let damage =
        format!("DAMAGED at offset {}: a command begins with '*', not with 'g'", first.len());
    assert!(report.contains(&damage), "{report}");
    assert_eq!(fix(home.path()).0, Verdict::Changed);
    assert_eq!(
        names(&home),
        [
            "a.1.base.rdb",
            "a.1.incr.aof",
            "a.2.incr.aof",
            "a.2.incr.aof.original",
            "a.3.incr.aof.original",
            "a.manifest",
            "a.manifest.original"
        ]
    );
    assert_eq!(fs::read(home.path().join("a.2.incr.aof")).unwrap(), first);
    let (verdict, report) = look(home.path());
    assert_eq!((verdict, report.matches("  good\n").count()), (Verdict::Good, 3), "{report}");
}

#[test]
fn what_follows_a_lost_end_is_set_aside() {
    let first = commands(&["SET a 1"]);
    let begins = format!("#BEFORE:{}", first.len() + 27);
    let home = directory(&[&first, &commands(&[&begins, "SET c 3"])]);
    let before = names(&home);
    let (verdict, report) = look(home.path());
    assert_eq!(verdict, Verdict::Damaged);
    assert!(report.contains("  SHORT: it had more commands"), "{report}");
    assert_eq!(names(&home), before, "looking changes nothing");
    assert_eq!(fix(home.path()).0, Verdict::Changed);
    assert!(names(&home).contains(&"a.2.incr.aof.original".to_owned()));
    assert_eq!(look(home.path()).0, Verdict::Good);
    // A durable file that is shorter was shortened on purpose.
    let second = commands(&[&begins, "#BEFORE:durable", "SET c 3"]);
    assert_eq!(look(directory(&[&first, &second]).path()).0, Verdict::Good);
}

#[test]
fn going_back_in_time_cuts_several_files() {
    let first = commands(&["#TS:110", "SET a 1", "#TS:120", "SET a 2"]);
    let second = commands(&["#TS:130", "SET a 3", "#TS:140", "SET a 4"]);
    let home = directory(&[&first, &second]);
    let (verdict, _) = go_back(home.path(), 140);
    assert_eq!((verdict.unwrap(), names(&home).len()), (Verdict::Good, 4), "nothing is later");
    assert_eq!(go_back(&home.path().join("a.manifest"), 135).0.unwrap(), Verdict::Changed);
    let half = commands(&["#TS:130", "SET a 3"]);
    assert_eq!(fs::read(home.path().join("a.2.incr.aof")).unwrap(), half);
    assert_eq!(go_back(home.path(), 129).0.unwrap(), Verdict::Changed);
    assert_eq!(fs::read(home.path().join("a.2.incr.aof")).unwrap(), b"");
    assert_eq!(go_back(home.path(), 115).0.unwrap(), Verdict::Changed);
    let half = commands(&["#TS:110", "SET a 1"]);
    assert_eq!(fs::read(home.path().join("a.1.incr.aof")).unwrap(), half);
    assert!(!home.path().join("a.2.incr.aof").exists());
    // The base itself is of 100.
    assert_eq!(go_back(home.path(), 105).0.unwrap(), Verdict::Changed);
    assert_eq!(fs::read(home.path().join("a.1.incr.aof")).unwrap(), b"");
    let too_early = go_back(home.path(), 99).0.unwrap_err();
    assert!(matches!(too_early, CheckError::TooEarly { begins: 100, .. }), "{too_early}");
    assert!(matches!(go_back(home.path(), 101).0, Err(CheckError::NoTimes { .. })));
    let around = tempfile::tempdir().unwrap();
    fs::rename(directory(&[&first]).keep(), around.path().join("appendonlydir")).unwrap();
    fs::write(around.path().join("dump.rdb"), snapshot("0010")).unwrap();
    assert_eq!(go_back(around.path(), 115).0.unwrap(), Verdict::Changed);
    let alone = home.path().join("alone.aof");
    fs::write(&alone, &first).unwrap();
    let too_early = go_back(&alone, 109).0.unwrap_err();
    assert!(matches!(too_early, CheckError::TooEarly { begins: 110, .. }), "{too_early}");
}

/// Nothing is changed after a file that stays damaged.
#[test]
fn a_damaged_earlier_file_stops_going_back_in_time() {
    let torn = [&commands(&["#TS:110", "SET a 1"])[..], b"*1\r\n"].concat();
    let later = commands(&["#TS:130", "SET a 3", "#TS:140", "SET a 4"]);
    let home = directory(&[&torn, &later]);
    let (verdict, report) = go_back(home.path(), 135);
    assert_eq!(verdict.unwrap(), Verdict::Damaged);
    assert!(report.ends_with("left as it is, since a file before it is damaged\n"), "{report}");
    assert_eq!(names(&home).len(), 4);
}

/// When a snapshot has a damaged value, everything else is kept, in its database.
#[test]
fn a_snapshot_is_kept_without_its_damaged_values() {
    for version in ["0010", "0004", "0011"] {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("dump.rdb");
        fs::write(&file, snapshot(version)).unwrap();
        let (verdict, report) = look(&file);
        assert_eq!(verdict, Verdict::Damaged);
        assert!(report.contains("database 1: 1 keys, 0 of them expire"), "{report}");
        assert!(report.contains("key \"s\", a set as an intset"), "{report}");
        assert_eq!(fix(&file).0, Verdict::Changed);
        let (verdict, report) = look(&file);
        assert_eq!(verdict, Verdict::Good, "{report}");
        let counts = "  database 0: 2 keys, 0 of them expire\n  database 1: 1 keys, 0 of them \
                      expire\n  string: 3 keys";
        assert!(report.contains(counts), "{report}");
        assert!(fs::read(&file).unwrap().starts_with(format!("REDIS{version}").as_bytes()));
    }
}

/// What a damaged entry said of the entries after it stays.
#[test]
fn a_repair_keeps_content_types() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("dump.rdb");
    let mut content = b"REDIS0010\xfe\x00\x00\x01a\x011".to_vec();
    content.extend_from_slice(b"\xfa\x0ccontent-type\x03x/y\x0b\x01s\x03bad\x00\x01b\x012");
    content.extend_from_slice(b"\xfa\x0ccontent-type\x00\x0b\x01t\x03bad\x00\x01c\x013\xff");
    content.extend_from_slice(&crc64(&content).to_le_bytes());
    fs::write(&file, &content).unwrap();
    assert_eq!(fix(&file).0, Verdict::Changed);
    assert_eq!(look(&file).0, Verdict::Good);
    let reader = rdb::file::FileReader::open(File::open(&file).unwrap(), true).unwrap();
    let mut found = Vec::new();
    for item in reader {
        if let rdb::file::Item::Entries(batch) = item.unwrap() {
            for entry in &batch {
                let content_type = entry.content_type().map(<[u8]>::to_vec);
                found.push((entry.key().unwrap().to_vec(), content_type));
            }
        }
    }
    let expected = [(b"a", None), (b"b", Some(b"x/y".to_vec())), (b"c", None)];
    assert_eq!(found, expected.map(|(key, content_type)| (key.to_vec(), content_type)));
}

#[test]
fn an_empty_base_is_damaged() {
    let home = directory(&[&commands(&["SET a 1"])]);
    fs::write(home.path().join("a.1.base.rdb"), b"").unwrap();
    let (verdict, report) = look(home.path());
    assert_eq!(verdict, Verdict::Damaged, "{report}");
    assert!(report.contains("the file is empty, which no RDB file is"), "{report}");
}

#[test]
fn a_report_has_bounds() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("dump.rdb");
    let script = "x".repeat(10_000);
    let mut content = b"REDIS0004\xfa\x03lua\x80\x00\x00\x27\x10".to_vec();
    content.extend_from_slice(script.as_bytes());
    for _ in 0..25 {
        content.extend_from_slice(b"\x0b\x01s\x03bad");
    }
    content.push(0xff);
    fs::write(&file, &content).unwrap();
    let (verdict, report) = look(&file);
    assert_eq!(verdict, Verdict::Damaged);
    assert!(report.len() < 2000 && report.ends_with("and 15 more\n"), "{report}");
}

/// At every place where a snapshot breaks off or a byte of it changes, the rest is good after a
/// repair.
#[test]
fn any_damage_to_a_snapshot_can_be_repaired() {
    let whole = fs::read(Path::new(GOLDEN).join("types.rdb")).unwrap();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("dump.rdb");
    let step = (whole.len() / 150).max(1);
    for at in (9..whole.len()).step_by(step) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x55;
        for content in [whole[..at].to_vec(), flipped] {
            fs::write(&file, &content).unwrap();
            let (verdict, report) = look(&file);
            assert_eq!(verdict, Verdict::Damaged, "{at}: {report}");
            assert_eq!(fix(&file).0, Verdict::Changed, "{at}");
            let (verdict, report) = look(&file);
            assert_eq!(verdict, Verdict::Good, "{at}: {report}");
            fs::remove_file(home.path().join("dump.rdb.original")).unwrap();
        }
    }
}

/// Only the first bytes are wrong, and maybe commands after the snapshot too.
#[test]
fn the_first_bytes_of_a_snapshot_are_restored() {
    let home = tempfile::tempdir().unwrap();
    let whole = fs::read(Path::new(GOLDEN).join("types.rdb")).unwrap();
    let with_commands = [&whole[..], &commands(&["SET a 1"])].concat();
    let torn = [&with_commands[..], b"*1\r\n"].concat();
    let mut valkey = b"VALKEY080\xfe\x00\x00\x01a\x011\xff".to_vec();
    valkey.extend_from_slice(&crc64(&valkey).to_le_bytes());
    let cases = [
        ("dump.rdb", &whole, &whole),
        ("dump.rdb", &valkey, &valkey),
        ("dump.rdb", &with_commands, &whole),
        ("a.1.base.rdb", &with_commands, &with_commands),
        ("a.1.base.rdb", &torn, &with_commands),
        ("appendonly.aof", &torn, &with_commands),
    ];
    for (name, content, mended) in cases {
        for first in [b'X', b'*', 0] {
            if first == b'*' && name.ends_with(".aof") {
                continue;
            }
            let file = home.path().join(name);
            let damaged = [&[first], &content[1..]].concat();
            fs::write(&file, &damaged).unwrap();
            let (verdict, report) = look(&file);
            assert_eq!(verdict, Verdict::Damaged, "{report}");
            assert_eq!(fs::read(&file).unwrap(), damaged);
            let (verdict, report) = fix(&file);
            assert_eq!(verdict, Verdict::Changed, "{report}");
            assert!(report.contains("DAMAGED: the file does not begin with"), "{report}");
            assert!(fs::read(&file).unwrap() == **mended, "{name}, {first}: {report}");
        }
    }
}

/// An old append-only file: a snapshot, and commands after it.
#[test]
fn commands_behind_a_snapshot_are_read_and_kept() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("appendonly.aof");
    let good = commands(&["#TS:200", "SET a 1"]);
    fs::write(&file, [&snapshot("0010")[..], &good, b"*1\r\n$"].concat()).unwrap();
    let (verdict, report) = fix(&file);
    assert_eq!(verdict, Verdict::Changed, "{report}");
    let (verdict, report) = look(&file);
    assert_eq!(verdict, Verdict::Good, "{report}");
    assert!(report.contains("string: 3 keys") && report.contains("1 commands"), "{report}");
    assert!(fs::read(&file).unwrap().ends_with(&good));
    assert_eq!(go_back(&file, 150).0.unwrap(), Verdict::Changed);
    let (verdict, report) = look(&file);
    assert_eq!((verdict, report.contains("commands")), (Verdict::Good, false), "{report}");
}

#[test]
fn what_cannot_be_checked_is_said() {
    let home = directory(&[b""]);
    let error = |path: &Path| run(path, Options::default()).0.unwrap_err();
    assert!(matches!(error(&home.path().join("gone")), CheckError::System { .. }));
    fs::remove_file(home.path().join("a.1.incr.aof")).unwrap();
    let missing = error(home.path());
    assert!(matches!(missing, CheckError::Directory(DirectoryError::Missing { .. })), "{missing}");
    fs::write(home.path().join("a.manifest"), "file\n").unwrap();
    let wrong = error(home.path()).to_string();
    assert!(wrong.contains("a.manifest: line 1"), "{wrong}");
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(error(empty.path()), CheckError::Nothing { .. }));
    let newer = empty.path().join("dump.rdb");
    fs::write(&newer, b"REDIS9999\xff").unwrap();
    let (verdict, report) = look(empty.path());
    assert_eq!(verdict, Verdict::Damaged);
    assert!(report.contains("9999"), "{report}");
}
