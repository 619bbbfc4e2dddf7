//! An RDB file, as SAVE writes it or as a server finds it at its start. The input is the file.

#![no_main]

use std::io::Read;

use fuzz::{Pieces, bounded, options, put_to_use};
use libfuzzer_sys::fuzz_target;
use rdb::file::{DecodeOptions, FileReader, Item};

/// Bytes that reading always takes: two chunks of a file, and one that is given away.
const LEAST: usize = 1 << 20;

/// Bytes that a byte of a file may take. An item of LZF gives 88 for each of its own, and is there
/// beside the value that is made of it.
const PER_BYTE: usize = 400;

/// The result of reading a file.
#[derive(Debug, PartialEq)]
struct Found {
    /// Where each value begins, and how many bytes it has.
    values: Vec<(u64, usize)>,
    sections: usize,
    error: Option<String>,
}

/// Reads a file to its end or first error, with all values that can be read.
fn read(file: impl Read, options: &DecodeOptions, to_use: bool) -> Found {
    let mut found = Found { values: Vec::new(), sections: 0, error: None };
    let reader = match FileReader::open(file, true) {
        Ok(reader) => reader,
        Err(error) => {
            found.error = Some(error.to_string());
            return found;
        }
    };
    for item in reader {
        match item {
            Ok(Item::Entries(batch)) => {
                for raw in &batch {
                    found.values.push((raw.value_offset(), raw.value_bytes()));
                    let Ok(entry) = raw.decode(options) else { continue };
                    if to_use && let Some(value) = entry.value {
                        put_to_use(value, &options.limits);
                    }
                }
            }
            Ok(_) => found.sections += 1,
            Err(error) => found.error = Some(error.to_string()),
        }
    }
    found
}

fuzz_target!(|file: &[u8]| {
    let options = options(file);
    let found = bounded(file.len(), LEAST, PER_BYTE, || read(file, &options, false));
    let in_pieces = read(Pieces::new(file), &options, true);
    assert_eq!(found, in_pieces, "in pieces it is the same file");
});
