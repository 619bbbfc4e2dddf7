//! MONITOR: shows each command as a line to clients that asked for it, in the order of each
//! connection and of each key. As in Redis, a command is shown after it ran, with the database that
//! it left selected. The commands of a transaction are shown before its EXEC. Administrative
//! commands are not shown.

use resp::args::Arguments;

use crate::command::{self, Spec};
use crate::db::effects::Effects;
use crate::db::notify::Publication;
use crate::observe::redaction;
use crate::session::Session;

/// Shows a command that has run, after its effects are settled.
pub(crate) fn show(effects: &mut Effects, session: &Session, command: &Spec, argv: Arguments<'_>) {
    if !command.has(command::SKIP_MONITOR | command::ADMIN) {
        show_anyway(effects, session, command, argv);
    }
}

/// Shows a command, even if its row says otherwise.
pub(crate) fn show_anyway(
    effects: &mut Effects,
    session: &Session,
    command: &Spec,
    argv: Arguments<'_>,
) {
    let now = base::clock::now_us();
    let (seconds, fraction) = (now / 1_000_000, now % 1_000_000);
    let address = if session.script { "lua" } else { &session.client.address };
    let head = format!("+{seconds}.{fraction:06} [{} {address}]", session.database);
    let mut line = head.into_bytes();
    for argument in redaction::shown(command, argv) {
        line.push(b' ');
        quote(argument, &mut line);
    }
    line.extend_from_slice(b"\r\n");
    effects.publications.get_mut().add(Publication::Line(line));
}

/// Appends a string in quotes, with escapes for bytes that are not printable.
pub fn quote(bytes: &[u8], line: &mut Vec<u8>) {
    line.push(b'"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => line.extend_from_slice(&[b'\\', byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            0x07 => line.extend_from_slice(b"\\a"),
            0x08 => line.extend_from_slice(b"\\b"),
            b' '..=b'~' => line.push(byte),
            _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    line.push(b'"');
}
