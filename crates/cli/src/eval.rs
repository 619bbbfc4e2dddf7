//! A Lua script from a file.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::connection::Words;
use crate::print::{complain, reason};
use crate::session::{Failed, Session};

/// Runs the script. A comma among the words stands between the names of keys and further arguments.
pub(crate) fn run(session: &mut Session, file: &[u8]) -> Result<(), Failed> {
    let path = Path::new(std::ffi::OsStr::from_bytes(file));
    let script = fs::read(path).map_err(|error| {
        complain(&format!("Can't open file '{}': {}", path.display(), reason(&error)));
        Failed
    })?;
    let words = &session.options.words;
    let comma = words.iter().position(|word| word == b",");
    let keys = comma.unwrap_or(words.len());
    let arguments = comma.map_or(&[][..], |comma| &words[comma + 1..]);
    let mut command: Words = vec![b"EVAL".to_vec(), script, keys.to_string().into_bytes()];
    command.extend_from_slice(&words[..keys]);
    command.extend_from_slice(arguments);
    let repeat = session.options.repeat;
    session.issue(&command, repeat)
}
