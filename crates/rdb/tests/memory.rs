//! Reading a damaged file or payload of RESTORE ends, and takes memory in proportion to its size:
//! no length is believed before its bytes are there.

#![allow(clippy::unwrap_used, reason = "what fails is the test")]
#![allow(unsafe_code, reason = "freeing what tables have retired is a promise")]

mod common;

use std::io::{self, Write};
use std::time::Duration;

use common::sample::{Sample, sample};
use common::{options, with_entry};
use rdb::file::{FileReader, Item};
use tests::allocation::{Counting, most_taken};
use tests::mutation::mutated;
use tests::random::{Random, Rounds};

#[global_allocator]
static COUNTING: Counting = Counting;

/// How long each test goes on by default.
const USUAL_TIME: Duration = Duration::from_secs(4);

/// Bytes that reading takes in any case: buffers, and an empty keyspace.
const AT_LEAST: usize = 4 << 20;

/// Bytes that a byte of a file may take. An item of LZF gives 88 bytes for each of its own, and
/// exists beside the value that is made of it.
const PER_BYTE: usize = 400;

const GOLDEN: [&[u8]; 5] = [
    include_bytes!("../../../tests/golden/types.rdb"),
    include_bytes!("../../../tests/golden/plain.rdb"),
    include_bytes!("../../../tests/golden/stream.rdb"),
    include_bytes!("../../../tests/golden/lru.rdb"),
    include_bytes!("../../../tests/golden/lfu.rdb"),
];

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
    for seed in Rounds::from_environment(USUAL_TIME).seeds() {
        let _named = NamedInPanic(seed);
        round(&mut Random::new(seed));
        // As a server does several times a second: the list of retired tables must not grow without
        // end. SAFETY: no thread of this program looks at tables without locking them.
        unsafe { store::table::retire::collect(|| true) };
    }
}

#[track_caller]
fn bounded(bytes: &[u8], action: impl FnOnce()) {
    let taken = most_taken(action);
    let size = bytes.len();
    let shown = bytes[..size.min(4096)].escape_ascii();
    assert!(taken <= AT_LEAST + size * PER_BYTE, "{taken} bytes for {size}: {shown}");
}

/// Reads a file to its end or first error, with all readable values.
fn read_all(file: &[u8]) {
    let Ok(reader) = FileReader::open(file, true) else { return };
    for item in reader {
        let Ok(Item::Entries(batch)) = item else { continue };
        for raw in &batch {
            drop(raw.key());
            drop(raw.decode(&options()));
        }
    }
}

#[test]
fn damaged_files_take_memory_in_proportion() {
    rounds(|random| {
        let Sample { file: own, .. } = sample(random, 20);
        let other = *random.pick(&GOLDEN);
        let whole = if random.percent(50) { &own } else { *random.pick(&GOLDEN) };
        let file = mutated(whole, other, random);
        bounded(&file, || read_all(&file));
    });
}

/// The payloads of DUMP of all keys in a file.
fn payloads(file: &[u8]) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    for item in FileReader::open(file, true).unwrap() {
        let Item::Entries(batch) = item.unwrap() else { continue };
        for raw in &batch {
            let Ok(entry) = raw.decode(&options()) else { continue };
            let dump = |value| with_entry(value, |value| rdb::dump(value, true));
            payloads.extend(entry.value.map(dump));
        }
    }
    payloads
}

#[test]
fn damaged_payloads_are_refused_or_values() {
    let limits = options().limits;
    rounds(|random| {
        let Sample { file, .. } = sample(random, 20);
        let payloads = payloads(&file);
        for payload in &payloads {
            let mut damaged = mutated(payload, random.pick::<Vec<u8>>(&payloads), random);
            if random.percent(80) && damaged.len() > 10 {
                // The version is a known one; the rest is looked at.
                let version = damaged.len() - 10;
                damaged[version..version + 2].copy_from_slice(&[10, 0]);
            }
            bounded(&damaged, || drop(rdb::restore(&damaged, &limits, true)));
            let mut again = None;
            bounded(&damaged, || {
                if let Ok(value) = rdb::restore(&damaged, &limits, false) {
                    again = Some(with_entry(value, |value| rdb::dump(value, false)));
                }
            });
            let Some(again) = again else { continue };
            let value = rdb::restore(&again, &limits, true).expect("what was taken is whole");
            let third = with_entry(value, |value| rdb::dump(value, false));
            assert_eq!(third.len(), again.len(), "and stays what it is");
        }
    });
}

#[test]
fn the_counter_notices_an_allocation_by_length() {
    let taken = most_taken(|| drop(Vec::<u8>::with_capacity(1 << 30)));
    assert!(taken >= 1 << 30);
}
