//! The other side of the wire: commands out, replies in.
//!
//! [`encode_command`] writes a command. [`ReplyScanner`] finds where replies end, quickly and
//! without looking at their contents; [`ReplyParser`] builds on it and makes a [`Value`] of each.
//! Both take bytes in pieces of any size, and bound what a peer can make them do: nesting by
//! [`base::limits::MAX_REPLY_NESTING`], memory by the bytes received.

mod error;
mod scanner;

pub use error::ReplyError;
pub use scanner::{Found, ReplyScanner};

pub use crate::frame::write_header;
use base::num::{self, parse_i64};

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A status, such as OK.
    Simple(Vec<u8>),
    /// An error, beginning with its code.
    Error(Vec<u8>),
    /// A whole number.
    Integer(i64),
    /// A string of bytes.
    Bulk(Vec<u8>),
    /// No value: `$-1` in RESP2, `_` in RESP3.
    Null,
    /// No array: `*-1` in RESP2.
    NullArray,
    /// An array.
    Array(Vec<Value>),
    /// A map, in the order received.
    Map(Vec<(Value, Value)>),
    /// A set, in the order received.
    Set(Vec<Value>),
    /// A message that answers no command.
    Push(Vec<Value>),
    /// A double, as it was printed.
    Double(Vec<u8>),
    /// A truth value.
    Boolean(bool),
    /// An integer of any size, as its digits.
    BigNumber(Vec<u8>),
    /// Text to be shown as it is, and its three-letter format.
    Verbatim([u8; 3], Vec<u8>),
    /// A reply with attributes before it.
    Attributed(Vec<(Value, Value)>, Box<Value>),
}

impl Value {
    /// The bytes of a status or a string of any kind.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Simple(bytes) | Value::Bulk(bytes) | Value::Verbatim(_, bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The number, of an integer, or a double, or a string that spells one (as RESP2 sends
    /// doubles).
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Integer(value) => Some(*value as f64),
            Value::Double(text) | Value::Bulk(text) => num::parse_f64(text),
            _ => None,
        }
    }

    /// Whether this is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Value::Error(_))
    }
}

/// Appends a command with its arguments, the name first.
#[inline]
pub fn encode_command<A: AsRef<[u8]>>(
    arguments: impl Iterator<Item = A> + Clone,
    output: &mut Vec<u8>,
) {
    write_header(output, b'*', arguments.clone().count() as u64);
    for argument in arguments {
        let argument = argument.as_ref();
        output.reserve(argument.len() + 16);
        write_header(output, b'$', argument.len() as u64);
        output.extend_from_slice(argument);
        output.extend_from_slice(b"\r\n");
    }
}

/// Makes values of replies.
#[derive(Debug, Default)]
pub struct ReplyParser {
    scanner: ReplyScanner,
    /// How many bytes of the reply at the front the scanner has taken.
    scanned: usize,
}

impl ReplyParser {
    /// A parser between two replies.
    pub fn new() -> Self {
        ReplyParser::default()
    }

    /// Reads the reply at the front of `bytes`: its value, and its length, which the caller then
    /// removes before the next call. On `None` the caller appends more bytes after these.
    ///
    /// # Errors
    /// [`ReplyError`]; the connection is of no use any more.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Option<(Value, usize)>, ReplyError> {
        // The tree is built once the whole reply is there, so that no length is trusted beforehand.
        let rest = bytes.get(self.scanned..).unwrap_or(&[]);
        let mut is_whole = false;
        self.scanned += self.scanner.scan_until(rest, |_| {
            is_whole = true;
            true
        })?;
        if !is_whole {
            return Ok(None);
        }
        let length = std::mem::take(&mut self.scanned);
        let value = Reader { bytes: &bytes[..length], at: 0 }.value()?;
        Ok(Some((value, length)))
    }
}

/// Reads the tree of a reply whose extent a [`ReplyScanner`] has found. The scanner has bounded the
/// nesting, so recursion is safe.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Result<Value, ReplyError> {
        let (kind, line) = self.line()?;
        Ok(match kind {
            b'+' => Value::Simple(line.to_vec()),
            b'-' => Value::Error(line.to_vec()),
            b':' => Value::Integer(parse_i64(line).ok_or(ReplyError::InvalidNumber)?),
            b'_' => Value::Null,
            b',' => Value::Double(line.to_vec()),
            b'(' => Value::BigNumber(line.to_vec()),
            b'#' => match line {
                b"t" => Value::Boolean(true),
                b"f" => Value::Boolean(false),
                _ => return Err(ReplyError::InvalidNumber),
            },
            b'$' => self.text(line)?.map_or(Value::Null, |text| Value::Bulk(text.to_vec())),
            b'!' => self.text(line)?.map_or(Value::Null, |text| Value::Error(text.to_vec())),
            b'=' => self.verbatim(line)?,
            b'*' => self.values(line)?.map_or(Value::NullArray, Value::Array),
            b'~' => self.values(line)?.map_or(Value::Null, Value::Set),
            b'>' => self.values(line)?.map_or(Value::Null, Value::Push),
            b'%' => self.pairs(line)?.map_or(Value::Null, Value::Map),
            b'|' => {
                let attributes = self.pairs(line)?.unwrap_or_default();
                Value::Attributed(attributes, Box::new(self.value()?))
            }
            other => return Err(ReplyError::UnknownKind(other)),
        })
    }

    /// The kind and the rest of the present line.
    fn line(&mut self) -> Result<(u8, &'a [u8]), ReplyError> {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        let end = memchr::memchr(b'\n', rest).ok_or(ReplyError::LineTooLong)?;
        self.at += end + 1;
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        line.split_first().map(|(kind, line)| (*kind, line)).ok_or(ReplyError::UnknownKind(b'\n'))
    }

    fn count(line: &[u8]) -> Result<Option<usize>, ReplyError> {
        match parse_i64(line) {
            Some(-1) => Ok(None),
            Some(count) => usize::try_from(count).map(Some).map_err(|_| ReplyError::InvalidNumber),
            None => Err(ReplyError::InvalidNumber),
        }
    }

    fn text(&mut self, line: &[u8]) -> Result<Option<&'a [u8]>, ReplyError> {
        let Some(length) = Self::count(line)? else { return Ok(None) };
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        let text = rest.get(..length).ok_or(ReplyError::InvalidNumber)?;
        self.at += length + 2;
        Ok(Some(text))
    }

    fn verbatim(&mut self, line: &[u8]) -> Result<Value, ReplyError> {
        match self.text(line)? {
            None => Ok(Value::Null),
            Some([first, second, third, b':', text @ ..]) => {
                Ok(Value::Verbatim([*first, *second, *third], text.to_vec()))
            }
            Some(_) => Err(ReplyError::InvalidNumber),
        }
    }

    fn values(&mut self, line: &[u8]) -> Result<Option<Vec<Value>>, ReplyError> {
        let Some(count) = Self::count(line)? else { return Ok(None) };
        (0..count).map(|_| self.value()).collect::<Result<_, _>>().map(Some)
    }

    fn pairs(&mut self, line: &[u8]) -> Result<Option<Vec<(Value, Value)>>, ReplyError> {
        let Some(count) = Self::count(line)? else { return Ok(None) };
        let pairs = (0..count).map(|_| Ok((self.value()?, self.value()?)));
        pairs.collect::<Result<_, _>>().map(Some)
    }
}

#[cfg(test)]
mod tests;
