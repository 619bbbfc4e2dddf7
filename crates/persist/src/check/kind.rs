//! The kind of a file: by its name or its place in a list, and by its first bytes.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use rdb::ReadError;
use rdb::file::FileReader;

use super::snapshot::Snapshot;
use crate::aof::reader::begins_with_rdb;

/// The endings of the names of the parts of an append-only file, whatever its own name.
const PARTS: [&str; 3] = [".base.rdb", ".base.aof", ".incr.aof"];

/// The beginnings of an RDB file, before the digits of its version.
const MAGICS: [&[u8]; 2] = [b"REDIS", b"VALKEY"];

/// A message shows this many bytes of the beginning of a file.
const SHOWN_BYTES: usize = 5;

/// What a file is expected to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// An RDB file that is loaded by itself. Anything after its end is ignored.
    Snapshot,
    /// The base of an append-only file, by its name in the RDB format. Servers take commands too.
    Base,
    /// Another part of an append-only file: commands, maybe after an RDB part.
    AppendOnly,
    /// Any of these.
    Any,
}

/// What a file is.
pub(super) enum Kind {
    /// It begins with an RDB part.
    Snapshot,
    /// It is made of commands alone.
    Commands,
    /// It is neither, or not the expected one: this is what is wrong.
    Neither(String),
}

impl Expected {
    /// By the name of a file, when nothing else is known about it.
    pub(super) fn alone(path: &Path) -> Expected {
        if ends_with(path, ".base.rdb") {
            Expected::Base
        } else if ends_with(path, ".rdb") {
            Expected::Snapshot
        } else if ends_with(path, ".aof") {
            Expected::AppendOnly
        } else {
            Expected::Any
        }
    }

    /// For a file that belongs to an append-only file.
    pub(super) fn part(path: &Path) -> Expected {
        match ends_with(path, ".rdb") {
            true => Expected::Base,
            false => Expected::AppendOnly,
        }
    }

    /// Whether it should begin as an RDB file does.
    pub(super) fn is_rdb(self) -> bool {
        matches!(self, Expected::Snapshot | Expected::Base)
    }

    /// The kind of a file with these first bytes.
    pub(super) fn decide(self, first: &[u8]) -> Kind {
        match first.first() {
            _ if begins_with_rdb(first) => Kind::Snapshot,
            None if self.is_rdb() => {
                Kind::Neither("the file is empty, which no RDB file is".to_owned())
            }
            Some(b'*' | b'#') if self == Expected::Snapshot => Kind::Neither(
                "its name is that of an RDB file, but it begins as commands do".to_owned(),
            ),
            // An empty base of commands is one without data.
            None | Some(b'*' | b'#') => Kind::Commands,
            // Space that the file system had reserved for commands that were never written.
            Some(0) if !self.is_rdb() => Kind::Commands,
            Some(_) => Kind::Neither(format!(
                "neither an RDB file nor commands: it begins with \"{}\", an RDB file with \
                 \"REDIS\" or \"VALKEY\", and commands with '*' or '#'",
                first[..first.len().min(SHOWN_BYTES)].escape_ascii()
            )),
        }
    }

    /// Whether the part after an RDB part, which begins with this byte, is commands.
    pub(super) fn continues(self, next: u8) -> bool {
        match self {
            Expected::Snapshot => false,
            Expected::Base | Expected::AppendOnly => true,
            Expected::Any => matches!(next, b'*' | b'#'),
        }
    }

    /// The missing first bytes of a file that is otherwise a complete RDB file.
    pub(super) fn lost_magic(self, path: &Path, first: &[u8]) -> io::Result<Option<&'static [u8]>> {
        let as_commands = !self.is_rdb() && matches!(first.first(), Some(b'*' | b'#'));
        if begins_with_rdb(first) || as_commands {
            return Ok(None);
        }
        for magic in MAGICS {
            if reads_with(magic, path)? {
                return Ok(Some(magic));
            }
        }
        Ok(None)
    }
}

/// The file with other first bytes.
pub(super) fn beginning_with(magic: &'static [u8], path: &Path) -> io::Result<impl Read + use<>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(magic.len() as u64))?;
    Ok(Cursor::new(magic).chain(file))
}

/// Whether the file is a whole RDB file with these first bytes; its checksum covers them.
fn reads_with(magic: &'static [u8], path: &Path) -> io::Result<bool> {
    match FileReader::open(beginning_with(magic, path)?, true) {
        Ok(mut reader) => Ok(Snapshot::read(&mut reader)?.is_good()),
        Err(error) => match error.cause {
            ReadError::Io(error) => Err(error),
            _ => Ok(false),
        },
    }
}

/// Whether the name of a file makes it a part of an append-only file.
pub(super) fn is_part(path: &Path) -> bool {
    PARTS.iter().any(|end| ends_with(path, end))
}

fn ends_with(path: &Path, end: &str) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(end.as_bytes())
}
