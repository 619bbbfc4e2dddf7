//! Written files are read, and damaged ones are refused: without a panic, without waiting for ever,
//! and without memory for bytes that are not there.

#![allow(clippy::unwrap_used, reason = "what fails is the test")]

mod common;

use std::io::{self, Read, Write};
use std::time::Duration;

use common::assemble::{Assembler, museum};
use common::sample::{Sample, sample};
use common::{Found, options, read};
use rdb::file::{Checksum, FileError, FileReader, Item, Usage};
use rustix::process::{Resource, Rlimit, setrlimit};
use tests::random::{Random, Rounds};

/// How long each random test goes on by default.
const USUAL_TIME: Duration = Duration::from_secs(4);

/// Memory that the process may take from the system. A reader that believes an announced length
/// soon exceeds it.
const MEMORY: u64 = 4 << 30;

/// Bytes of a magic. A change there may give a version that has no checksum.
const MAGIC: usize = 9;

/// Gives a file in pieces of random sizes.
struct Pieces<'a>(&'a [u8], &'a mut Random);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = 1 + self.1.below(3000);
        let size = buffer.len().min(most);
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

fn rounds(mut round: impl FnMut(&mut Random)) {
    limit_memory();
    for seed in Rounds::from_environment(USUAL_TIME).seeds() {
        let _named = NamedInPanic(seed);
        round(&mut Random::new(seed));
    }
}

fn limit_memory() {
    let limit = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    setrlimit(Resource::As, limit).unwrap();
}

/// The contents of a file if it is complete.
fn whole(result: Result<Found, FileError>) -> Option<Found> {
    result.ok().filter(|found| matches!(found.checksum, Checksum::Correct | Checksum::Absent))
}

fn keys(found: &Found) -> Vec<(String, Option<Usage>)> {
    found.entries.iter().map(|entry| (entry.line(), entry.usage)).collect()
}

#[test]
fn all_layouts_of_older_servers_are_read() {
    let found = whole(read(&museum()[..], &options())).unwrap();
    assert_eq!(found.entries.len(), 22);
    assert_eq!(found.shown("compressed"), "\"abcabcabcabcabcabcabcabcabc\"");
}

#[test]
fn a_file_that_ends_early_is_refused() {
    let museum = museum();
    for length in 0..museum.len() {
        assert!(read(&museum[..length], &options()).is_err(), "of {length} bytes");
    }
}

#[test]
fn a_file_with_a_wrong_bit_is_refused() {
    let museum = museum();
    for at in MAGIC..museum.len() {
        for bit in 0..8 {
            let mut damaged = museum.clone();
            damaged[at] ^= 1 << bit;
            assert!(whole(read(&damaged[..], &options())).is_none(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn errors_say_where_and_which_key() {
    let file = Assembler::new("REDIS0010").key(0, "fine").string(b"v").key(13, "my\nhash");
    let file = file.string(b"no ziplist").end();
    let error = read(&file[..], &options()).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"offset 37, key "my\nhash", a hash as a ziplist: a ziplist does not add up"#
    );
    let error = read(&file[..30], &options()).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"offset 27, key "my\nhash", a hash as a ziplist: the data ends too early"#
    );
}

#[test]
fn what_is_written_is_read() {
    rounds(|random| {
        let Sample { file, keys: expected } = sample(random, 30);
        let found = whole(read(Pieces(&file, random), &options())).expect("it is whole");
        assert_eq!(keys(&found), expected);
    });
}

/// The keys of a file up to the first error, with where their values end.
fn keys_and_ends(file: impl Read) -> Vec<(Vec<u8>, u64)> {
    let mut keys = Vec::new();
    for item in FileReader::open(file, true).unwrap() {
        let Ok(Item::Entries(batch)) = item else { continue };
        for raw in &batch {
            let Ok(key) = raw.key() else { return keys };
            // Decoding is harmless for every value that results.
            drop(raw.decode(&options()));
            keys.push((key.into_owned(), raw.value_offset() + raw.value_bytes() as u64));
        }
    }
    keys
}

#[test]
fn damaged_files_tell_what_was_before_the_damage() {
    rounds(|random| {
        let Sample { file, .. } = sample(random, 20);
        let mut damaged = file.clone();
        for _ in 0..=random.below(3) {
            let at = MAGIC + random.below(damaged.len() - MAGIC);
            match random.below(3) {
                0 => damaged[at] = random.bits() as u8,
                1 => drop(damaged.splice(at..at, [0x81, 0x7f, 0xff, 0xff])),
                _ => damaged.truncate(at + 1),
            }
        }
        let common = file.iter().zip(&damaged).take_while(|(was, is)| was == is).count();
        let before_damage = |keys: Vec<(Vec<u8>, u64)>| -> Vec<(Vec<u8>, u64)> {
            keys.into_iter().take_while(|(_, end)| *end <= common as u64).collect()
        };
        let expected = before_damage(keys_and_ends(&file[..]));
        assert_eq!(before_damage(keys_and_ends(Pieces(&damaged, random))), expected);
    });
}

#[test]
fn arbitrary_bytes_do_no_harm() {
    rounds(|random| {
        let mut file = random.pick(&[&b"REDIS0012"[..], b"VALKEY080", b"REDIS0003"]).to_vec();
        for _ in 0..random.below(300) {
            // Types, opcodes and lengths are more interesting than most bytes.
            let byte = match random.below(4) {
                0 => random.between(0, 25) as u8,
                1 => random.between(240, 255) as u8,
                2 => *random.pick(&[0x00, 0x01, 0x40, 0x80, 0x81, 0xc0, 0xc3, 0xff]),
                _ => random.bits() as u8,
            };
            file.push(byte);
        }
        drop(read(&file[..], &options()));
    });
}
