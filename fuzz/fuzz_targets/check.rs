//! What `dunlin check` reports about a file, and what it keeps of a damaged one. The input is the
//! file.

#![no_main]

use std::fs;
use std::path::Path;

use base::limits::BIG_ARGUMENT_EAGER;
use fuzz::bounded;
use libfuzzer_sys::fuzz_target;
use persist::check::{Options, Verdict, check};

/// Bytes of buffers that are always there, one for an argument that is announced as large among
/// them.
const LEAST: usize = (4 << 20) + BIG_ARGUMENT_EAGER;

/// Bytes that a byte of a file may take, as for one that is loaded.
const PER_BYTE: usize = 400;

/// The verdict on the file, with the text for people.
fn look(path: &Path, fix: bool) -> (Verdict, String) {
    let mut report = Vec::new();
    let options = Options { fix, truncate_to: None };
    let verdict = check(path, options, &mut report).expect("there is a file, and a disk");
    (verdict, String::from_utf8_lossy(&report).into_owned())
}

fuzz_target!(|file: &[u8]| {
    // In memory, so that nothing waits for a disk.
    let directory = tempfile::tempdir_in("/dev/shm").expect("there is room for a file");
    let path = directory.path().join("file");
    fs::write(&path, file).expect("there is room for a file");
    let (verdict, report) = bounded(file.len(), LEAST, PER_BYTE, || look(&path, false));
    assert!(verdict != Verdict::Changed, "nothing is changed unless that is asked for: {report}");
    let (fixed, report) = look(&path, true);
    // Bytes that a server does not look at may be cut off a good file.
    assert!(verdict != Verdict::Good || fixed != Verdict::Damaged, "{report}");
    assert!(fixed != Verdict::Good || verdict == Verdict::Good, "{report}");
    let kept = fs::read(&path).expect("the file is there");
    let (again, second) = look(&path, true);
    let unchanged = fs::read(&path).expect("the file is there") == kept;
    assert!(unchanged, "nothing is left to be done: {report}{second}");
    match fixed {
        Verdict::Changed => assert_eq!(again, Verdict::Good, "what was kept is whole: {second}"),
        // Unknown data stays, and other damage may have been repaired.
        Verdict::Unsupported => assert_eq!(again, fixed, "{report}{second}"),
        Verdict::Good | Verdict::Damaged => {
            assert!(kept == file, "what was not changed is as it was: {report}");
        }
    }
});
