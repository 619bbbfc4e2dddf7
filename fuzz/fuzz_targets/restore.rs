//! A payload of RESTORE. The input is the type and the value. The version and the checksum, which a
//! fuzzer cannot find by trying, are added after it.

#![no_main]

use base::crc::crc64;
use fuzz::{bounded, options, put_to_use};
use libfuzzer_sys::fuzz_target;

/// Bytes that reading takes for the smallest value that grows.
const LEAST: usize = 64 << 10;

/// Bytes that a byte of a payload may take, as for a file.
const PER_BYTE: usize = 400;

fuzz_target!(|input: &[u8]| {
    let limits = options(input).limits;
    let mut payload = input.to_vec();
    payload.extend_from_slice(&rdb::DUMP_VERSION.to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    let restored = bounded(input.len(), LEAST, PER_BYTE, || rdb::restore(&payload, &limits, true));
    if let Ok(value) = restored {
        put_to_use(value, &limits);
    }
    // The same bytes with the footer in which they happen to end.
    let _refused = rdb::restore(input, &limits, true);
    let _believed = rdb::restore(input, &limits, false);
});
