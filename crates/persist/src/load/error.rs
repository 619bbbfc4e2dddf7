//! What is wrong with which file, and where.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rdb::ReadError;
use rdb::file::FileError;

use crate::aof::directory::DirectoryError;
use crate::aof::reader::{Damage, Tear};

/// Why data was not loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The list of files cannot be used.
    Directory(DirectoryError),
    /// A file cannot be used.
    File {
        /// Which one.
        path: PathBuf,
        /// What is wrong.
        problem: Problem,
    },
    /// The server is to stop.
    Stopped,
}

/// What is wrong with a file.
#[derive(Debug)]
pub enum Problem {
    /// It cannot be read.
    Reading(io::Error),
    /// It cannot be changed.
    Writing(io::Error),
    /// It is damaged, or contains something unknown.
    Snapshot(FileError),
    /// Its checksum is wrong.
    Checksum {
        /// The checksum in the file.
        stated: u64,
        /// The checksum of its bytes.
        computed: u64,
    },
    /// A key cannot be taken in.
    Key {
        /// Where its value begins.
        at: u64,
        /// The key, printable.
        key: String,
        /// Why not.
        reason: String,
    },
    /// A library of functions cannot be taken in.
    Library {
        /// Its first line, printable.
        name: String,
        /// Why not.
        reason: String,
    },
    /// It is an RDB file by its name, and empty.
    Empty,
    /// It breaks off.
    Torn {
        /// Bytes before the part that is not whole.
        good: u64,
        /// How.
        tear: Tear,
        /// Whether other files with commands follow.
        is_followed: bool,
    },
    /// It ends after a command, but had more of them when the next file began.
    Short {
        /// Its bytes.
        size: u64,
    },
    /// It contains something that is not a command.
    Damaged {
        /// Bytes before.
        good: u64,
        /// Where that is.
        at: u64,
        /// What is wrong with it.
        damage: Damage,
    },
    /// A command is not known here.
    UnknownCommand {
        /// Where it begins.
        at: u64,
        /// Its name, printable.
        name: String,
    },
    /// A command cannot be replayed.
    Command {
        /// Where it begins.
        at: u64,
        /// Why not.
        reason: String,
    },
}

impl LoadError {
    pub(super) fn file(path: &Path, problem: Problem) -> LoadError {
        LoadError::File { path: path.to_owned(), problem }
    }

    pub(super) fn reading(path: &Path) -> impl Fn(io::Error) -> LoadError {
        |error| LoadError::file(path, Problem::Reading(error))
    }

    pub(super) fn writing(path: &Path) -> impl Fn(io::Error) -> LoadError {
        |error| LoadError::file(path, Problem::Writing(error))
    }

    pub(super) fn snapshot(path: &Path) -> impl Fn(FileError) -> LoadError {
        |error| LoadError::file(path, Problem::Snapshot(error))
    }
}

impl LoadError {
    /// What is wrong with what a primary has sent, which no file has.
    pub fn of_stream(&self) -> String {
        match self {
            LoadError::File { path, problem } => {
                fmt::from_fn(|formatter| problem.describe(&path.display(), formatter)).to_string()
            }
            other => other.to_string(),
        }
    }

    /// Whether trying again has the same result: what was read is whole, and not understood.
    pub fn is_lasting(&self) -> bool {
        match self {
            LoadError::File { problem, .. } => match problem {
                Problem::Reading(_) | Problem::Writing(_) => false,
                Problem::Snapshot(error) => {
                    !matches!(error.cause, ReadError::Truncated | ReadError::Io(_))
                }
                _ => true,
            },
            _ => false,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Directory(error) => error.fmt(formatter),
            LoadError::File { path, problem } => {
                problem.describe(&path.display(), formatter)?;
                match problem {
                    Problem::Snapshot(_) | Problem::Checksum { .. } | Problem::Key { .. } => {
                        write!(
                            formatter,
                            ". `dunlin check --fix {}` keeps what can be kept",
                            path.display()
                        )
                    }
                    _ => Ok(()),
                }
            }
            LoadError::Stopped => formatter.write_str("the server is stopping"),
        }
    }
}

impl Problem {
    /// Says what is wrong with the file of this name. An error for which Redis has words begins
    /// with them.
    fn describe(&self, file: &dyn fmt::Display, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Reading(error) => write!(formatter, "{file}: cannot be read: {error}"),
            Problem::Writing(error) => write!(formatter, "{file}: cannot be written: {error}"),
            Problem::Snapshot(error @ FileError { cause: ReadError::Truncated, .. }) => {
                write!(formatter, "{file}: Short read or OOM loading DB: {error}")
            }
            Problem::Snapshot(error) => write!(formatter, "{file}: {error}"),
            // Redis expects what it has computed, and gets what the file states.
            Problem::Checksum { stated, computed } => write!(
                formatter,
                "{file}: RDB CRC error. Wrong RDB checksum expected: ({computed:x}) but got ({stated:x})"
            ),
            Problem::Key { at, key, reason } => {
                write!(formatter, "{file}: offset {at}, key \"{key}\": {reason}")
            }
            Problem::Library { name, reason } => {
                write!(formatter, "{file}: the library of functions \"{name}\": {reason}")
            }
            Problem::Empty => write!(
                formatter,
                "{file}: Short read or OOM loading DB: the file is empty, which no RDB file is"
            ),
            Problem::Torn { good, tear, is_followed: false } => write!(
                formatter,
                "Unexpected end of file reading the append only file {file}, good up to offset \
                 {good}: {tear}. `dunlin check --fix {file}` cuts off the incomplete end; with \
                 aof-load-truncated the server does that to the last file itself"
            ),
            Problem::Torn { good, tear, is_followed: true } => write!(
                formatter,
                "Unexpected end of file reading the append only file {file}, good up to offset \
                 {good}: {tear}. Other files follow, which mean nothing without the missing part. \
                 `dunlin check --fix` keeps everything before it, and sets the rest aside"
            ),
            Problem::Short { size } => write!(
                formatter,
                "Unexpected end of file reading the append only file {file} at offset {size}: it had \
                 more commands when the next file began. `dunlin check --fix` keeps everything before \
                 that, and sets the rest aside; with aof-load-truncated the server does that itself"
            ),
            Problem::Damaged { good, at, damage } => write!(
                formatter,
                "Bad file format reading the append only file {file} at offset {at}, good up to \
                 offset {good}: {damage}. `dunlin check --fix {file}` keeps what can be kept"
            ),
            Problem::UnknownCommand { at, name } => write!(
                formatter,
                "Unknown command '{name}' reading the append only file {file} at offset {at}"
            ),
            Problem::Command { at, reason } => {
                write!(formatter, "{file}: the command at offset {at}: {reason}")
            }
        }
    }
}

impl std::error::Error for LoadError {}
