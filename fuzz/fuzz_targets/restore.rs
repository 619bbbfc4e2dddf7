//! A payload of RESTORE. The input is the type and the value. The versions of both servers, and the
//! checksum, which a fuzzer cannot find by trying, are added after it.

#![no_main]

use base::crc::crc64;
use fuzz::{bounded, options, put_to_use};
use libfuzzer_sys::fuzz_target;
use rdb::file::NEWEST_VALKEY;

/// Bytes that reading takes for the smallest value that grows.
const LEAST: usize = 64 << 10;

/// Bytes that a byte of a payload may take, as for a file.
const PER_BYTE: usize = 400;

/// The version that the payloads of Valkey state. It has layouts of its own.
const VALKEY: u16 = NEWEST_VALKEY as u16;

/// Adds the footer of a version.
fn seal(input: &[u8], version: u16) -> Vec<u8> {
    let mut payload = input.to_vec();
    payload.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

fuzz_target!(|input: &[u8]| {
    let limits = options(input).limits;
    for version in [rdb::DUMP_VERSION, VALKEY] {
        let payload = seal(input, version);
        let restored =
            bounded(input.len(), LEAST, PER_BYTE, || rdb::restore(&payload, &limits, true));
        if let Ok(value) = restored {
            put_to_use(value, &limits);
        }
        // The same as libraries of functions.
        let sources = bounded(input.len(), LEAST, PER_BYTE, || rdb::restore_functions(&payload));
        if let Ok(sources) = sources {
            let again = rdb::dump_functions(sources.iter().map(|source| &source[..]), true);
            let again = rdb::restore_functions(&again).expect("what was taken is whole");
            assert!(again == sources, "libraries are the same after a dump");
        }
    }
    // The same bytes with the footer in which they happen to end.
    let _refused = rdb::restore(input, &limits, true);
    let _believed = rdb::restore(input, &limits, false);
});
