use proptest::prelude::*;
use resp::client::encode_command;

use super::*;

/// Gives a few bytes at a time.
struct Slowly<'a>(&'a [u8], usize);

impl Read for Slowly<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(out.len()).min(self.0.len());
        let (now, later) = self.0.split_at(count);
        out[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

/// A file of lines of words, in which lines beginning with `#` stay as they are.
fn file(lines: &[&str]) -> Vec<u8> {
    let mut content = Vec::new();
    for line in lines {
        if line.starts_with('#') {
            content.extend_from_slice(line.as_bytes());
            content.extend_from_slice(b"\r\n");
        } else {
            encode_command(line.split(' '), &mut content);
        }
    }
    content
}

/// The items as words, and the ending.
fn scan(content: &[u8], piece: usize) -> (Vec<String>, Ending) {
    let mut scanner = Scanner::new(Slowly(content, piece), 0);
    let mut items = Vec::new();
    loop {
        match scanner.next().unwrap() {
            Item::Command(arguments) => {
                let words: Vec<_> = arguments.iter().map(String::from_utf8_lossy).collect();
                items.push(words.join(" "));
            }
            Item::Timestamp(second) => items.push(format!("at {second}")),
            Item::End(ending) => {
                assert!(matches!(scanner.next().unwrap(), Item::End(again) if again == ending));
                return (items, ending);
            }
        }
    }
}

#[test]
fn commands_annotations_and_transactions_are_read() {
    let lines = ["#TS:1628217470", "SELECT 0", "SET k v", "# note \"", "MULTI", "DEL k", "exec"];
    let content = file(&lines);
    for piece in [1, 2, 7, 1 << 20] {
        let (items, ending) = scan(&content, piece);
        assert_eq!(items, ["at 1628217470", "SELECT 0", "SET k v", "MULTI", "DEL k", "exec"]);
        assert_eq!(ending, Ending::Complete);
    }
    assert_eq!(scan(b"", 1), (Vec::new(), Ending::Complete));
}

#[test]
fn a_command_is_uncounted_only_right_behind_its_annotation() {
    // The first of them has broken off before its command.
    let lines = ["#UNCOUNTED", "#CHANGES:a:1", "SET k v", "#UNCOUNTED", "SELECT 0", "SET k v"];
    let content = file(&lines);
    let (mut scanner, mut found) = (Scanner::new(&content[..], 0), Vec::new());
    while let Item::Command(_) = scanner.next().unwrap() {
        found.push(scanner.take_uncounted());
    }
    assert_eq!(found, [false, true, false]);
}

#[test]
fn what_was_not_known_is_a_command_or_a_whole_transaction() {
    let lines = ["#UNKNOWN", "A", "B", "#UNKNOWN", "MULTI", "C", "EXEC", "D"];
    // The first annotation has broken off before its command.
    let broken = ["#UNKNOWN", "#UNCOUNTED", "SELECT 0", "MULTI", "E", "EXEC"];
    let content = file(&[&lines[..], &broken].concat());
    let (mut scanner, mut found) = (Scanner::new(&content[..], 0), Vec::new());
    while let Item::Command(_) = scanner.next().unwrap() {
        found.push(scanner.is_unknown());
    }
    let expected = [true, false, true, true, true, false, false, false, false, false];
    assert_eq!(found, expected);
}

#[test]
fn offsets_count_from_the_front_of_the_file() {
    let content = file(&["SET k v", "#TS:7", "MULTI", "DEL k", "EXEC"]);
    let set = file(&["SET k v"]).len() as u64;
    let multi = set + file(&["#TS:7"]).len() as u64;
    let mut scanner = Scanner::new(&content[..], 100);
    let mut seen = Vec::new();
    while !matches!(scanner.next().unwrap(), Item::End(_)) {
        seen.push((scanner.item_offset(), scanner.good(), scanner.in_transaction()));
    }
    assert_eq!(seen[..2], [(100, 100 + set, false), (100 + set, 100 + multi, false)]);
    assert_eq!((seen[2].0, seen[2].1, seen[2].2), (100 + multi, 100 + multi, true));
    assert_eq!((seen[3].1, seen[3].2), (100 + multi, true));
    assert_eq!((seen[4].1, seen[4].2), (100 + content.len() as u64, false));
    assert_eq!(scanner.offset(), 100 + content.len() as u64);
}

/// A file that was cut anywhere is torn, and intact up to the last complete item.
#[test]
fn a_tear_anywhere_is_found() {
    let lines = ["SET k v", "#TS:7", "MULTI", "INCR a", "INCR b", "EXEC", "#note", "DEL k"];
    let content = file(&lines);
    let mut ends = vec![0];
    for count in 1..=lines.len() {
        if !(3..6).contains(&count) {
            ends.push(file(&lines[..count]).len());
        }
    }
    for cut in 0..content.len() {
        let good = ends.iter().rfind(|end| **end <= cut).copied().unwrap();
        for piece in [1, 1 << 20] {
            let (_, ending) = scan(&content[..cut], piece);
            let whole = good == cut;
            match ending {
                Ending::Complete => assert!(whole, "{cut}"),
                Ending::Torn { good: found, .. } => {
                    assert_eq!((found, whole), (good as u64, false), "{cut}");
                }
                Ending::Damaged { .. } => panic!("{cut}: {ending:?}"),
            }
        }
        // What the file system had reserved for the rest.
        let zeros = [&content[..cut], &[0; 100_000][..]].concat();
        let (_, ending) = scan(&zeros, 1 << 20);
        assert_eq!(ending, Ending::Torn { good: good as u64, tear: Tear::Zeros }, "{cut}");
    }
    let inside = file(&["MULTI", "INCR a"]);
    assert_eq!(scan(&inside, 1).1, Ending::Torn { good: 0, tear: Tear::Transaction });
}

/// Zeros of the length of a value or line end are neither.
#[test]
fn zeros_are_no_argument() {
    let good = file(&["SET k v"]);
    let tear = Ending::Torn { good: good.len() as u64, tear: Tear::Zeros };
    for length in [5, 100, 100_000, 5_000_000] {
        let header = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${length}\r\n");
        for written in [0, 1, length] {
            let value = [vec![b'v'; written], vec![0; length - written]].concat();
            for line_end in [&b"\0\0"[..], b"\r\0"] {
                let content = [&good[..], header.as_bytes(), &value[..], line_end].concat();
                for more in [0, 10, 2_000_000] {
                    let content = [&content[..], &vec![0; more]].concat();
                    let (commands, ending) = scan(&content, 1 << 20);
                    assert_eq!((commands.len(), ending), (1, tear), "{length} {written} {more}");
                }
            }
        }
    }
    let at = good.len() as u64;
    let damage = Damage::Protocol(ProtocolError::ExpectedLineEnd);
    for bad in ["*2\r\n$3\r\nDEL\r\n$1\r\nk__", "*2\r_$3\r\nDEL\r\n$1\r\nk\r\n"] {
        let (_, ending) = scan(&[&good[..], bad.as_bytes(), &good[..]].concat(), 1 << 20);
        assert_eq!(ending, Ending::Damaged { good: at, at, damage }, "{bad:?}");
    }
}

#[test]
fn damage_is_told_from_a_tear() {
    let good = file(&["SET k v"]);
    let at = good.len() as u64;
    let ending = |bad: &[u8]| scan(&[&good, bad, &good].concat(), 1 << 20).1;
    let damaged = |damage| Ending::Damaged { good: at, at, damage };
    assert_eq!(ending(b"SET a b\r\n"), damaged(Damage::Start(b'S')));
    assert_eq!(ending(b"\0\0\0"), damaged(Damage::Start(0)));
    for bad in ["SELECT", "SELECT x", "SELECT 1 2", "SELECT -1", "SELECT 2147483647"] {
        assert_eq!(ending(&file(&[bad])), damaged(Damage::Select), "{bad}");
    }
    assert_eq!(ending(&file(&["SELECT 2147483646"])), Ending::Complete);
    assert_eq!(ending(b"*0\r\n"), damaged(Damage::NoArguments));
    assert_eq!(ending(b"*-1\r\n"), damaged(Damage::NoArguments));
    let wrong_length = damaged(Damage::Protocol(ProtocolError::InvalidMultibulkLength));
    assert_eq!(ending(b"*x\r\n"), wrong_length);
    let wrong_mark = damaged(Damage::Protocol(ProtocolError::ExpectedDollar(b'+')));
    assert_eq!(ending(b"*1\r\n+PING\r\n"), wrong_mark);
    assert_eq!(ending(&file(&["EXEC"])), damaged(Damage::LoneExec));
    let endless = [&b"#"[..], &[b'x'; 100_000]].concat();
    assert_eq!(
        scan(&endless, 1 << 20).1,
        Ending::Damaged { good: 0, at: 0, damage: Damage::LongAnnotation }
    );
    // Damage within a transaction costs the whole transaction.
    let multi = file(&["MULTI", "INCR a"]);
    let nested = [&good[..], &multi, &file(&["MULTI"])].concat();
    let inner = at + multi.len() as u64;
    let expected = Ending::Damaged { good: at, at: inner, damage: Damage::NestedMulti };
    assert_eq!(scan(&nested, 1 << 20).1, expected);
}

#[test]
fn big_arguments_are_read_and_lengths_are_not_trusted() {
    let big = "x".repeat(5_000_000);
    let content = file(&[&format!("SET k {big}"), "DEL k"]);
    for piece in [10_000, 1 << 22] {
        let (items, ending) = scan(&content, piece);
        assert_eq!((items[0].len(), &items[1][..]), (big.len() + 6, "DEL k"));
        assert_eq!(ending, Ending::Complete);
    }
    let (_, ending) = scan(&content[..content.len() / 2], 1 << 20);
    assert_eq!(ending, Ending::Torn { good: 0, tear: Tear::Command });
    for announced in ["*2000000000\r\n$1\r\nx\r\n", "*1\r\n$999999999999\r\nx"] {
        let mut scanner = Scanner::new(announced.as_bytes(), 0);
        let torn = Ending::Torn { good: 0, tear: Tear::Command };
        assert!(matches!(scanner.next().unwrap(), Item::End(ending) if ending == torn));
        assert!(scanner.buffer.capacity() + scanner.parser.memory() <= 4 * READ_SIZE);
    }
}

#[test]
fn an_unreadable_file_is_an_error() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(libc::EIO))
        }
    }
    assert!(Scanner::new(Broken, 0).next().is_err());
}

proptest! {
    /// Scanning ends for every content of a file, and the good part scans as complete.
    #[test]
    fn the_good_part_is_good(
        commands in proptest::collection::vec(
            proptest::sample::select(vec!["SET k v", "MULTI", "EXEC", "#TS:12", "PING"]), 0..12),
        flips in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        piece in 1..40usize,
    ) {
        let mut content = file(&commands);
        for (at, byte) in flips {
            if !content.is_empty() {
                let at = at % content.len();
                content[at] = byte;
            }
        }
        let good = match scan(&content, piece).1 {
            Ending::Complete => content.len(),
            Ending::Torn { good, .. } | Ending::Damaged { good, .. } => good as usize,
        };
        prop_assert_eq!(scan(&content[..good], 1 << 20).1, Ending::Complete);
    }
}

/// Prints what reading costs: `cargo test --profile ci -p server scan_costs -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
fn scan_costs() {
    const COMMANDS: usize = 1_000_000;
    let mut content = Vec::new();
    for number in 0..COMMANDS {
        let words = ["SET", &format!("key:{number:012}"), "a value of some bytes"];
        encode_command(words.iter(), &mut content);
    }
    let begun = std::time::Instant::now();
    let mut scanner = Scanner::new(&content[..], 0);
    let mut arguments_seen = 0;
    while let Item::Command(arguments) = scanner.next().unwrap() {
        arguments_seen += arguments.len();
    }
    assert_eq!(arguments_seen, 3 * COMMANDS);
    let took = begun.elapsed();
    let (each, length) = (took.as_nanos() / COMMANDS as u128, content.len() / COMMANDS);
    println!("reading a command of {length} bytes takes {each} ns");
}
