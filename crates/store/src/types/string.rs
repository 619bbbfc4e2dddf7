//! Strings: the forms of a string value on its way into an entry, and as it is stored there.
//!
//! A string that spells a 64-bit integer is stored as the integer, a short one in its entry, and a
//! long one in a buffer of its own that replies can share. `OBJECT ENCODING` shows the form, and
//! whether the string was ever modified in place. Clients see both, so they are the same as in
//! Redis.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// The longest string that `OBJECT ENCODING` calls `embstr`, as in Redis.
pub const EMBSTR_MAX: usize = 44;

/// The longest text of a 64-bit integer.
const INTEGER_TEXT_MAX: usize = 20;

/// A growing buffer below this many bytes doubles; a larger one grows by an eighth at a time.
const DOUBLES_BELOW: usize = 1 << 20;

/// A string value on its way into an entry.
#[derive(Debug, Clone)]
pub enum StringValue<'v> {
    /// A string that is the canonical form of a 64-bit integer.
    Int(i64),
    /// As a client sent it.
    Plain(Cow<'v, [u8]>),
    /// Modified in place: never `embstr` again.
    Raw(Cow<'v, [u8]>),
    /// A large buffer that is taken as it is.
    Shared(Arc<Vec<u8>>),
}

impl<'v> StringValue<'v> {
    /// The string as a reader sees it.
    pub fn as_ref(&self) -> StringRef<'_> {
        match self {
            StringValue::Int(number) => StringRef::Int(*number),
            StringValue::Plain(bytes) => StringRef::Inline { bytes, raw: false },
            StringValue::Raw(bytes) => StringRef::Inline { bytes, raw: true },
            StringValue::Shared(buffer) => StringRef::Shared(buffer),
        }
    }

    /// The form in which SET stores these bytes: an integer if they spell one.
    #[inline]
    pub fn from_bytes(bytes: &'v [u8]) -> StringValue<'v> {
        match (bytes.len() <= INTEGER_TEXT_MAX).then(|| base::num::parse_i64(bytes)).flatten() {
            Some(number) => StringValue::Int(number),
            None => StringValue::Plain(Cow::Borrowed(bytes)),
        }
    }
}

/// A string value as it lies in its entry.
#[derive(Clone, Copy, Debug)]
pub enum StringRef<'e> {
    /// An integer.
    Int(i64),
    /// Bytes inside the entry; `raw` when they were modified in place.
    Inline {
        /// The string.
        bytes: &'e [u8],
        /// Whether it counts as raw at any length.
        raw: bool,
    },
    /// A large buffer.
    Shared(&'e Arc<Vec<u8>>),
}

impl<'e> StringRef<'e> {
    /// The string's bytes.
    #[inline]
    pub fn bytes(self) -> StringBytes<'e> {
        StringBytes(match self {
            StringRef::Int(number) => Bytes::Printed(Digits::of(number)),
            StringRef::Inline { bytes, .. } => Bytes::Stored(bytes),
            StringRef::Shared(buffer) => Bytes::Stored(buffer),
        })
    }

    /// The string as an integer, if it is the canonical form of one.
    #[inline]
    pub fn integer(self) -> Option<i64> {
        match self {
            StringRef::Int(number) => Some(number),
            StringRef::Inline { bytes, .. } => base::num::parse_i64(bytes),
            StringRef::Shared(buffer) => base::num::parse_i64(buffer),
        }
    }

    /// Bytes in the string.
    pub fn len(self) -> usize {
        match self {
            StringRef::Int(number) => base::num::i64_len(number),
            StringRef::Inline { bytes, .. } => bytes.len(),
            StringRef::Shared(buffer) => buffer.len(),
        }
    }

    /// Whether it is the empty string.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The name that OBJECT ENCODING gives: `int`, `embstr` or `raw`.
    pub fn encoding(self) -> &'static str {
        match self {
            StringRef::Int(_) => "int",
            StringRef::Inline { bytes, raw: false } if bytes.len() <= EMBSTR_MAX => "embstr",
            _ => "raw",
        }
    }
}

/// A string's bytes: borrowed if they exist, printed if the value is an integer.
pub struct StringBytes<'e>(Bytes<'e>);

enum Bytes<'e> {
    Stored(&'e [u8]),
    Printed(Digits),
}

impl Deref for StringBytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Stored(bytes) => bytes,
            Bytes::Printed(digits) => digits.as_bytes(),
        }
    }
}

impl AsRef<[u8]> for StringBytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// The decimal digits of an integer, at the end of their buffer.
struct Digits {
    bytes: [u8; INTEGER_TEXT_MAX],
    start: u8,
}

impl Digits {
    fn of(number: i64) -> Digits {
        let mut bytes = [0; INTEGER_TEXT_MAX];
        let mut start = bytes.len();
        let mut rest = number.unsigned_abs();
        loop {
            start -= 1;
            bytes[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            start -= 1;
            bytes[start] = b'-';
        }
        Digits { bytes, start: start as u8 }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }
}

/// How much to allocate for a string that has grown to `length` bytes and may grow further: enough
/// for appending to cost O(1) per byte on average.
fn roomy(length: usize) -> usize {
    let spare = if length < DOUBLES_BELOW { length } else { (length / 8).max(DOUBLES_BELOW) };
    length.saturating_add(spare)
}

/// A buffer of `length` bytes with room to grow: `bytes` followed by zeros.
pub(crate) fn grown_buffer(bytes: &[u8], length: usize) -> Vec<u8> {
    // Zeroed memory from the allocator costs nothing where pages are never touched: a far SETBIT.
    let mut buffer = vec![0; roomy(length)];
    buffer.truncate(length);
    buffer[..bytes.len()].copy_from_slice(bytes);
    buffer
}

/// Lengthens a buffer by zeros, with room to grow further.
pub(crate) fn grow_buffer(buffer: &mut Vec<u8>, length: usize) {
    if length > buffer.capacity() {
        buffer.reserve_exact(roomy(length) - buffer.len());
    }
    buffer.resize(length, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_printed_as_they_were_read() {
        for number in [0, 7, -7, 10, -10, 1_234_567_890, i64::MAX, i64::MIN] {
            let text = number.to_string();
            let string = StringRef::Int(number);
            assert_eq!(&*string.bytes(), text.as_bytes());
            assert_eq!(string.len(), text.len());
            assert!(
                matches!(StringValue::from_bytes(text.as_bytes()), StringValue::Int(n) if n == number)
            );
        }
        assert!(matches!(StringValue::from_bytes(b"01"), StringValue::Plain(_)));
    }

    #[test]
    fn appending_moves_a_buffer_rarely() {
        let mut buffer = grown_buffer(b"begin", 600);
        let mut moves = 0;
        while buffer.len() < 8 << 20 {
            let before = buffer.capacity();
            let length = buffer.len() + 64;
            grow_buffer(&mut buffer, length);
            moves += usize::from(buffer.capacity() != before);
        }
        assert!(moves < 24, "{moves}");
        assert_eq!(&buffer[..8], b"begin\0\0\0");
        assert!(buffer.capacity() <= roomy(8 << 20) + 64);
    }
}
