//! What is wrong with bytes that are no reply.

use std::fmt;

/// The bytes received are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// A reply begins with this byte, which names no kind of reply.
    UnknownKind(u8),
    /// A length, a number or a truth value is malformed, or out of range.
    InvalidNumber,
    /// A line does not end.
    LineTooLong,
    /// Collections are nested too deeply.
    TooDeep,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplyError::UnknownKind(byte) => {
                write!(formatter, "unknown kind of reply '{}'", byte.escape_ascii())
            }
            ReplyError::InvalidNumber => formatter.write_str("invalid number in a reply"),
            ReplyError::LineTooLong => formatter.write_str("endless line in a reply"),
            ReplyError::TooDeep => formatter.write_str("replies nested too deeply"),
        }
    }
}

impl std::error::Error for ReplyError {}
