use proptest::prelude::*;

use super::*;

const BASE: &str = "file a.1.base.rdb seq 1 type b\n";
const FIRST: &str = "file a.1.incr.aof seq 1 type i\n";
const SECOND: &str = "file a.2.incr.aof seq 2 type i\n";

fn parse(lines: &[&str]) -> Result<Manifest, (usize, Problem)> {
    Manifest::parse(lines.concat().as_bytes()).map_err(|error| (error.line, error.problem))
}

/// The names to be loaded, in order.
fn names(manifest: &Manifest) -> Vec<&str> {
    manifest.live().filter_map(|file| file.name.to_str()).collect()
}

#[test]
fn lists_that_redis_reads_are_read() {
    let usual = parse(&[BASE, FIRST, SECOND]).unwrap();
    assert_eq!(names(&usual), ["a.1.base.rdb", "a.1.incr.aof", "a.2.incr.aof"]);
    assert_eq!((usual.last_increment(), usual.history.len()), (2, 0));
    // A comment, another order of files and pairs, a line end of another system, quotes, capitals,
    // words of newer versions.
    assert_eq!(parse(&["# hello\n", FIRST, BASE, SECOND]).unwrap(), usual);
    let other = "TYPE b startoffset 5 Seq 1 FILE \"a.1.base.rdb\"\r\n";
    assert_eq!(parse(&[other, FIRST, SECOND]).unwrap(), usual);
    assert_eq!(parse(&["# nothing yet\n"]).unwrap(), Manifest::default());
    let history = parse(&[BASE, "file old seq 7 type h\n", "file old seq 3 type h\n"]).unwrap();
    assert_eq!((names(&history), history.history.len()), (vec!["a.1.base.rdb"], 2));
}

#[test]
fn the_line_that_is_wrong_is_named() {
    let wrong = |lines: &[&str]| parse(lines).unwrap_err();
    assert_eq!(wrong(&[]), (1, Problem::Empty));
    assert_eq!(wrong(&[BASE, "\n", FIRST]), (2, Problem::Malformed));
    assert_eq!(wrong(&[BASE, "# \n", BASE]), (3, Problem::SecondBase));
    assert_eq!(wrong(&[BASE, SECOND, FIRST]), (3, Problem::OutOfOrder));
    assert_eq!(wrong(&[BASE, FIRST, FIRST]), (3, Problem::OutOfOrder));
    let removed = "file a.1.incr.aof seq 1 type h\n";
    assert_eq!(wrong(&[BASE, FIRST, removed]), (3, Problem::NamedTwice));
    assert_eq!(wrong(&[BASE, removed, removed, FIRST]), (4, Problem::NamedTwice));
    assert_eq!(wrong(&[BASE, "file a.1.base.rdb seq 1 type i\n"]), (2, Problem::NamedTwice));
    assert_eq!(wrong(&[BASE, FIRST.trim_end()]), (2, Problem::Unfinished));
    assert_eq!(wrong(&[&format!("#{:01100}\n", 0)]), (1, Problem::TooLong));
    for (line, problem) in [
        ("file a seq 1 type z\n", Problem::UnknownType),
        ("file a seq 1 type\n", Problem::Malformed),
        ("file a seq 1\n", Problem::Malformed),
        ("file a seq x type i\n", Problem::Malformed),
        ("file a seq 0 type i\n", Problem::Malformed),
        ("file a seq -4 type i\n", Problem::Malformed),
        ("file a seq 9223372036854775807 type i\n", Problem::Malformed),
        ("file a seq 1 type i more\n", Problem::Malformed),
        ("file \"a seq 1 type i\n", Problem::Malformed),
        ("file ../a seq 1 type i\n", Problem::Path),
        ("file .. seq 1 type i\n", Problem::Path),
        ("file \"\" seq 1 type i\n", Problem::Path),
    ] {
        assert_eq!(wrong(&[BASE, line]), (2, problem), "{line}");
    }
    let error = Manifest::parse(b"file /etc/x seq 1 type b\n").unwrap_err().to_string();
    assert_eq!(error, "line 1: File can't be a path, just a filename: file /etc/x seq 1 type b");
}

#[test]
fn what_could_not_be_written_again_is_refused() {
    // A byte that takes four in quotes.
    let named = |bytes: usize| [b"file ", &vec![0xff; bytes][..], b" seq 1 type i\n"].concat();
    let manifest = Manifest::parse(&named(250)).unwrap();
    assert_eq!(Manifest::parse(&manifest.format()).as_ref(), Ok(&manifest));
    let error = Manifest::parse(&named(251)).unwrap_err();
    assert_eq!((error.line, error.problem), (1, Problem::TooLong));
    // A name that we write, as long as a file system allows.
    for name in [base_name, |prefix: &OsStr, sequence, _| increment_name(prefix, sequence)] {
        let suffix = name(OsStr::new(""), 1, BaseFormat::Rdb).len();
        let prefix = OsString::from_vec(vec![0xff; 255 - suffix]);
        let mut manifest = Manifest::default();
        manifest.replace_base(&prefix, BaseFormat::Rdb, 0);
        manifest.add_increment(&prefix);
        assert_eq!(Manifest::parse(&manifest.format()), Ok(manifest));
    }
}

#[test]
fn new_files_have_names_of_their_own() {
    let prefix = OsStr::new("a");
    let mut manifest =
        parse(&["file a.1.incr.aof seq 4 type b\n", "file a.1.base.rdb seq 1 type h\n"]).unwrap();
    assert_eq!(manifest.add_increment(prefix).name, "a.2.incr.aof");
    let mut manifest = parse(&["file a.1.base.rdb seq 7 type h\n", FIRST]).unwrap();
    assert_eq!(manifest.replace_base(prefix, BaseFormat::Rdb, 0).name, "a.2.base.rdb");
}

#[test]
fn a_rewrite_leaves_the_increments_after_its_cut() {
    let prefix = OsStr::new("a");
    let mut manifest = parse(&[BASE, FIRST]).unwrap();
    assert_eq!(manifest.add_increment(prefix).name, "a.2.incr.aof");
    assert_eq!(names(&manifest), ["a.1.base.rdb", "a.1.incr.aof", "a.2.incr.aof"]);
    let base = manifest.replace_base(prefix, BaseFormat::Aof, 1);
    assert_eq!(base.name, "a.2.base.aof");
    assert_eq!(names(&manifest), ["a.2.base.aof", "a.2.incr.aof"]);
    let text = "file a.2.base.aof seq 2 type b\nfile a.1.base.rdb seq 1 type h\n\
                file a.1.incr.aof seq 1 type h\nfile a.2.incr.aof seq 2 type i\n";
    assert_eq!(String::from_utf8(manifest.format()).unwrap(), text);
    let mut fresh = Manifest::default();
    assert_eq!(fresh.replace_base(prefix, BaseFormat::Rdb, 0).name, "a.1.base.rdb");
    assert_eq!(fresh.add_increment(prefix).name, "a.1.incr.aof");
}

#[test]
fn unusual_names_are_quoted_as_redis_does() {
    let mut manifest = Manifest::default();
    manifest.add_increment(OsStr::new("sp ace\"\u{e9}.aof"));
    let text = "file \"sp ace\\\"\\xc3\\xa9.aof.1.incr.aof\" seq 1 type i\n";
    assert_eq!(String::from_utf8(manifest.format()).unwrap(), text);
}

/// Any byte that a name may contain.
fn name_byte() -> impl Strategy<Value = u8> {
    any::<u8>().prop_filter("no part of a name", |byte| !b"/\0".contains(byte))
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(
        prefix in proptest::collection::vec(name_byte(), 1..30),
        increments in 0..4usize,
        contained in 0..4u64,
    ) {
        let prefix = OsString::from_vec(prefix);
        let mut manifest = Manifest::default();
        manifest.replace_base(&prefix, BaseFormat::Rdb, 0);
        (0..increments).for_each(|_| {
            manifest.add_increment(&prefix);
        });
        manifest.replace_base(&prefix, BaseFormat::Aof, contained);
        prop_assert_eq!(Manifest::parse(&manifest.format()), Ok(manifest));
    }

    #[test]
    fn garbage_never_panics(content in "(file|seq|type|[abhi]|[0-9\"\\\\x#/ \r\n]){0,40}") {
        let _ = Manifest::parse(content.as_bytes());
    }
}
