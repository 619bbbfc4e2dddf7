//! Scanning an append-only file with any contents ends, finds a place up to which it is good, and
//! takes memory in proportion to the file.

#![allow(clippy::unwrap_used, reason = "what fails is the test")]

use std::io::{self, Read, Write};
use std::time::Duration;

use base::limits::BIG_ARGUMENT_EAGER;
use persist::aof::reader::{Ending, Item, Scanner};
use tests::allocation::{Counting, most_taken};
use tests::mutation::mutated;
use tests::random::{Random, Rounds};

#[global_allocator]
static COUNTING: Counting = Counting;

/// How long the test goes on by default.
const USUAL_TIME: Duration = Duration::from_secs(4);

/// Bytes of buffers that are always there, one for an argument that is announced as large among
/// them.
const AT_LEAST: usize = (4 << 20) + BIG_ARGUMENT_EAGER;

/// Bytes that a byte of a file may take: an argument of one byte takes seven, and is a range.
const PER_BYTE: usize = 20;

/// Gives a file in pieces of random sizes.
struct Pieces<'a>(&'a [u8], Random);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = buffer.len().min(1 + self.1.below(3000));
        self.0.read(&mut buffer[..size])
    }
}

/// Says which round it was that failed.
struct NamedInPanic(u64);

impl Drop for NamedInPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(io::stderr(), "SEED={}", self.0);
        }
    }
}

fn command(file: &mut Vec<u8>, words: &[&[u8]]) {
    write!(file, "*{}\r\n", words.len()).unwrap();
    for word in words {
        write!(file, "${}\r\n", word.len()).unwrap();
        file.extend_from_slice(word);
        file.extend_from_slice(b"\r\n");
    }
}

/// A whole file, with everything that files have.
fn sample(random: &mut Random) -> Vec<u8> {
    let mut file = Vec::new();
    for number in 0..random.below(40) {
        if random.percent(20) {
            write!(file, "#TS:{}\r\n", 1_700_000_000 + number).unwrap();
        }
        let most = if random.percent(5) { 100_000 } else { 40 };
        let value = vec![b'v'; random.below(most)];
        match random.below(3) {
            0 => command(&mut file, &[b"SET", b"key", &value]),
            1 => command(&mut file, &[b"RPUSH", b"list", b"a", b"", &value]),
            _ => {
                command(&mut file, &[b"MULTI"]);
                command(&mut file, &[b"SELECT", b"1"]);
                command(&mut file, &[b"DEL", &value]);
                command(&mut file, &[b"EXEC"]);
            }
        }
    }
    file
}

/// Scans a file to its end: how many commands it has, and how it ends.
fn scan(file: impl Read) -> (usize, Ending) {
    let mut scanner = Scanner::new(file, 0);
    let mut commands = 0;
    loop {
        match scanner.next().unwrap() {
            Item::Command(arguments) => {
                assert!(!arguments.is_empty());
                commands += 1;
            }
            Item::Timestamp(_) => {}
            Item::End(ending) => return (commands, ending),
        }
        assert!(scanner.item_offset() < scanner.offset(), "it gets on");
    }
}

#[test]
fn damaged_files_end_somewhere_good() {
    for seed in Rounds::from_environment(USUAL_TIME).seeds() {
        let _named = NamedInPanic(seed);
        let mut random = Random::new(seed);
        let (whole, other) = (sample(&mut random), sample(&mut random));
        assert_eq!(scan(&whole[..]).1, Ending::Complete);
        let file = mutated(&whole, &other, &mut random);
        let mut found = None;
        let taken = most_taken(|| found = Some(scan(&file[..])));
        assert!(taken <= AT_LEAST + file.len() * PER_BYTE, "{taken} bytes for {}", file.len());
        let (commands, ending) = found.unwrap();
        let pieces = Pieces(&file, Random::new(seed));
        assert_eq!(scan(pieces), (commands, ending), "in pieces it is the same");
        let good = match ending {
            Ending::Complete => file.len() as u64,
            Ending::Torn { good, .. } | Ending::Damaged { good, .. } => good,
        };
        // The good part alone is a complete file, with as many commands, or fewer by a transaction.
        let good = usize::try_from(good).unwrap();
        let (kept, ending) = scan(&file[..good]);
        assert_eq!(ending, Ending::Complete);
        assert!(kept <= commands);
    }
}
