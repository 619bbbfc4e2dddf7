//! The list of the files of an append-only directory. The input is the list.

#![no_main]

use std::ffi::OsStr;
use std::path::Path;

use fuzz::bounded;
use libfuzzer_sys::fuzz_target;
use persist::aof::manifest::{BaseFormat, Manifest};

/// Bytes that the shortest list and the report of a long line take.
const LEAST: usize = 16 << 10;

/// Bytes that a byte of a list may take: the shortest line has 18, and a file of a list that grows
/// takes a hundred.
const PER_BYTE: usize = 40;

fuzz_target!(|content: &[u8]| {
    let parsed = bounded(content.len(), LEAST, PER_BYTE, || Manifest::parse(content));
    let manifest = match parsed {
        Ok(manifest) => manifest,
        Err(error) => {
            drop(error.to_string());
            return;
        }
    };
    for file in manifest.live().chain(&manifest.history) {
        let path = Path::new(&file.name);
        assert_eq!(path.file_name(), Some(file.name.as_os_str()), "a name leads nowhere else");
        assert_eq!(path.components().count(), 1, "a name leads nowhere else");
    }
    let mut changed = manifest.clone();
    let increment = changed.add_increment(OsStr::new("a"));
    let base = changed.replace_base(OsStr::new("a"), BaseFormat::Rdb, 0);
    for file in manifest.live().chain(&manifest.history) {
        assert!(file.name != increment.name && file.name != base.name, "new files are new");
    }
    // After the last number there is no next one.
    if increment.sequence.max(base.sequence) < 1 << 62 {
        assert_eq!(Manifest::parse(&changed.format()), Ok(changed), "what is changed is read");
    }
    // A list of nothing but comments is right, but no server writes one: it would be an empty file.
    if manifest != Manifest::default() {
        assert_eq!(Manifest::parse(&manifest.format()), Ok(manifest), "what is written is read");
    }
});
