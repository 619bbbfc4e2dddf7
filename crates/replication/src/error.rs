//! Why a link is of no use, in words for the log.

use std::fmt;

/// Longest part of the other side's words that an error shows, in bytes.
const SHOWN: usize = 200;

/// What the other side has done that ends a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// It refuses for now, in these words: its own link is down, or it loads data.
    NotYet(String),
    /// It refuses, in these words.
    Refused(String),
    /// It has sent what has no place here.
    Malformed(String),
}

impl LinkError {
    /// A refusal in the words of the other side.
    pub(crate) fn refused(words: &[u8]) -> LinkError {
        LinkError::Refused(shown(words))
    }

    pub(crate) fn malformed(what: &str, words: &[u8]) -> LinkError {
        LinkError::Malformed(format!("{what}: \"{}\"", shown(words)))
    }

    /// Whether it ends by itself: then it is worth trying again soon.
    pub fn is_temporary(&self) -> bool {
        matches!(self, LinkError::NotYet(_))
    }
}

/// Words of the other side, printable and not too many.
pub(crate) fn shown(words: &[u8]) -> String {
    match words.split_at_checked(SHOWN) {
        Some((start, rest)) if !rest.is_empty() => format!("{}..", start.escape_ascii()),
        _ => words.escape_ascii().to_string(),
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::NotYet(words) => write!(formatter, "it cannot yet: {words}"),
            LinkError::Refused(words) => write!(formatter, "it refuses: {words}"),
            LinkError::Malformed(what) => formatter.write_str(what),
        }
    }
}

impl std::error::Error for LinkError {}
