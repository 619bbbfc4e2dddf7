//! The list of the files that make up the data: Redis's manifest of an append-only directory.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b     the data at a cut
//! file appendonly.aof.3.incr.aof seq 3 type i     what happened then, in this order
//! file appendonly.aof.4.incr.aof seq 4 type i
//! file appendonly.aof.1.base.rdb seq 1 type h     of no use any more, to be removed
//! ```
//!
//! A line is pairs of a word and a value, in any order. Values with unusual bytes are quoted.
//! Pairs with unknown words are skipped and lines that begin with `#` too, so that newer versions
//! can add some. This is only the list; [`super::directory`] changes it on the disk.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use resp::words;

/// Longest line, in bytes with its end: what Redis reads.
pub const LINE_MAX: usize = 1024;

/// Sequence numbers are below this. They grow by one at a time, so none that counts comes near, and
/// counting on from a number that was read does not reach the end of the numbers.
const SEQUENCE_END: u64 = 1 << 62;

/// The role of a file in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The data at a cut.
    Base,
    /// Commands after the base, or after the increment before.
    Increment,
    /// Not needed any more; to be removed.
    History,
}

impl Kind {
    fn letter(self) -> char {
        match self {
            Kind::Base => 'b',
            Kind::Increment => 'i',
            Kind::History => 'h',
        }
    }
}

/// How the data at a cut is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseFormat {
    /// As an RDB file.
    Rdb,
    /// As commands.
    Aof,
}

/// A file of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AofFile {
    /// Its name in the directory.
    pub name: OsString,
    /// Grows with each base, and with each increment.
    pub sequence: u64,
    /// Its role.
    pub kind: Kind,
}

/// The list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The data at a cut; none if everything is in increments.
    pub base: Option<AofFile>,
    /// In the order of their sequence, which is the order in which they apply.
    pub increments: Vec<AofFile>,
    /// Files to be removed.
    pub history: Vec<AofFile>,
    /// Files up to this sequence may be there that no list names: theirs is given to no other. It
    /// is not written, since sequences go on from those that are.
    pub taken: u64,
}

/// The name of the list, for this `appendfilename`.
pub fn manifest_name(prefix: &OsStr) -> OsString {
    suffixed(prefix, ".manifest")
}

/// The name of a base.
pub fn base_name(prefix: &OsStr, sequence: u64, format: BaseFormat) -> OsString {
    let extension = match format {
        BaseFormat::Rdb => "rdb",
        BaseFormat::Aof => "aof",
    };
    suffixed(prefix, &format!(".{sequence}.base.{extension}"))
}

/// The name of an increment.
pub fn increment_name(prefix: &OsStr, sequence: u64) -> OsString {
    suffixed(prefix, &format!(".{sequence}.incr.aof"))
}

/// The sequence of a file whose name makes it a part of this append-only file.
pub fn sequence_of(name: &OsStr, prefix: &OsStr) -> Option<u64> {
    let rest = name.as_bytes().strip_prefix(prefix.as_bytes())?.strip_prefix(b".")?;
    let ends = [&b".base.rdb"[..], b".base.aof", b".incr.aof"];
    let digits = ends.iter().find_map(|end| rest.strip_suffix(*end))?;
    let sequence = base::num::parse_i64(digits).and_then(|number| u64::try_from(number).ok())?;
    (1..SEQUENCE_END).contains(&sequence).then_some(sequence)
}

fn suffixed(prefix: &OsStr, suffix: &str) -> OsString {
    let mut name = prefix.to_owned();
    name.push(suffix);
    name
}

/// Why a list cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The line, from 1; the last one when it is the end that is wrong.
    pub line: usize,
    /// The text of the line.
    pub text: Vec<u8>,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no line at all.
    Empty,
    /// The line is longer than [`LINE_MAX`], or would be if we wrote it.
    TooLong,
    /// The line does not end: the file was cut off.
    Unfinished,
    /// It is not made of pairs, or lacks the name, the sequence or the type.
    Malformed,
    /// The name leads out of the directory.
    Path,
    /// A type that is not one of the three.
    UnknownType,
    /// A second base.
    SecondBase,
    /// An increment whose sequence is not above that of the one before.
    OutOfOrder,
    /// A file that an earlier line names too: one line might want it, and the other remove it.
    NamedTwice,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Problem::Empty => "Found an empty AOF manifest",
            Problem::TooLong => "The AOF manifest file contains too long line",
            Problem::Unfinished => "the last line has no end",
            Problem::Malformed => "Invalid AOF manifest file format: the line does not say file NAME seq NUMBER type b, i or h",
            Problem::Path => "File can't be a path, just a filename",
            Problem::UnknownType => "Unknown AOF file type, which is not b, i or h",
            Problem::SecondBase => "Found duplicate base file information",
            Problem::OutOfOrder => "Found a non-monotonic sequence number",
            Problem::NamedTwice => "the file is named by a line before",
        })
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.problem)?;
        if !self.text.is_empty() {
            write!(formatter, ": {}", self.text.escape_ascii())?;
        }
        Ok(())
    }
}

impl std::error::Error for ManifestError {}

impl Manifest {
    /// Reads a list.
    ///
    /// # Errors
    /// [`ManifestError`], for the first line that is wrong.
    pub fn parse(content: &[u8]) -> Result<Manifest, ManifestError> {
        let mut manifest = Manifest::default();
        let mut lines = 0;
        for line in content.split_inclusive(|&byte| byte == b'\n') {
            lines += 1;
            manifest.read_line(line).map_err(|problem| {
                let shown = &line[..line.len().min(LINE_MAX)];
                ManifestError { line: lines, text: shown.trim_ascii().to_vec(), problem }
            })?;
        }
        if lines == 0 {
            return Err(ManifestError { line: 1, text: Vec::new(), problem: Problem::Empty });
        }
        Ok(manifest)
    }

    fn read_line(&mut self, line: &[u8]) -> Result<(), Problem> {
        if line.len() >= LINE_MAX {
            return Err(Problem::TooLong);
        }
        let line = line.strip_suffix(b"\n").ok_or(Problem::Unfinished)?;
        if line.starts_with(b"#") {
            return Ok(());
        }
        let file = read_file(line)?;
        // An unusual byte takes four in quotes. The list is rewritten at each change, and must then
        // be readable.
        let mut written = Vec::new();
        write_file(&file, &mut written);
        if written.len() >= LINE_MAX {
            return Err(Problem::TooLong);
        }
        match file.kind {
            Kind::Base if self.base.is_some() => return Err(Problem::SecondBase),
            Kind::Increment if file.sequence <= self.last_increment() => {
                return Err(Problem::OutOfOrder);
            }
            // To remove a file twice does no harm.
            Kind::History if self.live().all(|live| live.name != file.name) => {}
            _ if self.lists(&file.name) => return Err(Problem::NamedTwice),
            _ => {}
        }
        match file.kind {
            Kind::Base => self.base = Some(file),
            Kind::Increment => self.increments.push(file),
            Kind::History => self.history.push(file),
        }
        Ok(())
    }

    /// Writes the list.
    pub fn format(&self) -> Vec<u8> {
        let mut content = Vec::new();
        for file in self.base.iter().chain(&self.history).chain(&self.increments) {
            write_file(file, &mut content);
        }
        content
    }

    /// The files to be loaded, in their order.
    pub fn live(&self) -> impl Iterator<Item = &AofFile> {
        self.base.iter().chain(&self.increments)
    }

    /// The sequence of the last increment, or 0.
    pub fn last_increment(&self) -> u64 {
        self.increments.last().map_or(0, |file| file.sequence)
    }

    /// Whether a file of that name is listed, even if only to be removed.
    fn lists(&self, name: &OsStr) -> bool {
        self.live().chain(&self.history).any(|file| file.name == name)
    }

    /// Adds an increment after the others, and returns its name: one that no file has, and none
    /// that is still to be removed.
    pub fn add_increment(&mut self, prefix: &OsStr) -> AofFile {
        let mut sequence = self.last_increment().max(self.taken) + 1;
        while self.lists(&increment_name(prefix, sequence)) {
            sequence += 1;
        }
        let name = increment_name(prefix, sequence);
        let file = AofFile { name, sequence, kind: Kind::Increment };
        self.increments.push(file.clone());
        file
    }

    /// Makes a new base the first file. It contains the increments up to the sequence `contained`:
    /// these and the old base become history. Returns the name of the new base, which no other file
    /// has.
    pub fn replace_base(&mut self, prefix: &OsStr, format: BaseFormat, contained: u64) -> AofFile {
        let mut sequence = self.base.as_ref().map_or(0, |file| file.sequence).max(self.taken) + 1;
        while self.lists(&base_name(prefix, sequence, format)) {
            sequence += 1;
        }
        let name = base_name(prefix, sequence, format);
        let file = AofFile { name, sequence, kind: Kind::Base };
        let kept = self.increments.partition_point(|file| file.sequence <= contained);
        let obsolete = self.base.replace(file.clone()).into_iter();
        let obsolete = obsolete.chain(self.increments.drain(..kept));
        self.history.extend(obsolete.map(|file| AofFile { kind: Kind::History, ..file }));
        file
    }
}

fn read_file(line: &[u8]) -> Result<AofFile, Problem> {
    let line = words::split(line).map_err(|_| Problem::Malformed)?;
    let (pairs, rest) = line.as_chunks::<2>();
    let (mut name, mut sequence, mut kind) = (None, None, None);
    for [word, value] in pairs {
        match &word.to_ascii_lowercase()[..] {
            b"file" if value.contains(&b'/') || matches!(&value[..], b"." | b".." | b"") => {
                return Err(Problem::Path);
            }
            b"file" => name = Some(OsString::from_vec(value.clone())),
            b"seq" => sequence = base::num::parse_i64(value),
            b"type" => kind = Some(read_kind(value)?),
            _ => {}
        }
    }
    match (name, sequence.and_then(|number| u64::try_from(number).ok()), kind, rest) {
        (Some(name), Some(sequence @ 1..SEQUENCE_END), Some(kind), []) => {
            Ok(AofFile { name, sequence, kind })
        }
        _ => Err(Problem::Malformed),
    }
}

fn read_kind(value: &[u8]) -> Result<Kind, Problem> {
    match value {
        b"b" => Ok(Kind::Base),
        b"i" => Ok(Kind::Increment),
        b"h" => Ok(Kind::History),
        _ => Err(Problem::UnknownType),
    }
}

/// Writes the line of a file.
fn write_file(file: &AofFile, out: &mut Vec<u8>) {
    out.extend_from_slice(b"file ");
    write_value(file.name.as_bytes(), out);
    let rest = format!(" seq {} type {}\n", file.sequence, file.kind.letter());
    out.extend_from_slice(rest.as_bytes());
}

/// Writes a value as it is, or in quotes if a reader would otherwise misread it.
fn write_value(value: &[u8], out: &mut Vec<u8>) {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\".contains(byte);
    if !value.is_empty() && value.iter().all(plain) {
        out.extend_from_slice(value);
    } else {
        engine::clients::monitor::quote(value, out);
    }
}

#[cfg(test)]
mod tests;
