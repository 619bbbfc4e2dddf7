//! A file of commands, maybe after an RDB part. The input is the file.

#![no_main]

use std::io::{Cursor, Read};

use base::limits::BIG_ARGUMENT_EAGER;
use fuzz::{Pieces, bounded};
use libfuzzer_sys::fuzz_target;
use persist::aof::reader::{Ending, Item, Scanner, begins_with_rdb};
use rdb::file::FileReader;

/// Bytes of buffers that are always there, one for an argument that is announced as large among
/// them.
const LEAST: usize = (4 << 20) + BIG_ARGUMENT_EAGER;

/// Bytes that a byte of a file may take: an argument of one byte takes seven, and is a range.
const PER_BYTE: usize = 20;

/// The contents of a file, and how it ends.
#[derive(Debug, PartialEq)]
struct Found {
    commands: usize,
    /// Bytes of all arguments.
    bytes: usize,
    ending: Ending,
}

fn scan(file: impl Read, offset: u64) -> Found {
    let mut scanner = Scanner::new(file, offset);
    let (mut commands, mut bytes) = (0, 0);
    loop {
        match scanner.next().expect("memory can be read") {
            Item::Command(arguments) => {
                assert!(!arguments.is_empty(), "a command has a name");
                commands += 1;
                bytes += arguments.iter().map(<[u8]>::len).sum::<usize>();
            }
            Item::Timestamp(_) => {}
            Item::End(ending) => return Found { commands, bytes, ending },
        }
        assert!(scanner.item_offset() < scanner.offset(), "it gets on");
    }
}

/// Where a file that is scanned from `offset` on is good up to.
fn good(file: &[u8], offset: usize, ending: Ending) -> usize {
    match ending {
        Ending::Complete => file.len(),
        Ending::Torn { good, .. } | Ending::Damaged { good, .. } => {
            let good = usize::try_from(good).expect("it lies in the file");
            assert!((offset..=file.len()).contains(&good), "what is good lies in the file");
            good
        }
    }
}

fuzz_target!(|file: &[u8]| {
    let mut offset = 0;
    if begins_with_rdb(file) {
        let Ok(mut reader) = FileReader::open(file, true) else { return };
        if reader.any(|item| item.is_err()) {
            return;
        }
        offset = usize::try_from(reader.offset()).expect("it lies in the file");
        let (rest, read) = reader.into_rest();
        let mut following = Vec::new();
        let mut rest = Cursor::new(read).chain(rest);
        rest.read_to_end(&mut following).expect("memory can be read");
        assert!(following == file[offset..], "what follows an RDB part is what is scanned");
    }
    let commands = &file[offset..];
    let at = offset as u64;
    let found = bounded(commands.len(), LEAST, PER_BYTE, || scan(commands, at));
    assert_eq!(scan(Pieces::new(commands), at), found, "in pieces it is the same");
    // The good part alone is a complete file, with as many commands, or fewer by a transaction.
    let kept = scan(&file[offset..good(file, offset, found.ending)], at);
    assert_eq!(kept.ending, Ending::Complete);
    assert!(kept.commands <= found.commands && kept.bytes <= found.bytes);
});
