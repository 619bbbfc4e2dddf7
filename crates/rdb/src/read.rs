//! Reading lengths and strings.

use std::borrow::Cow;
use std::io;

use base::limits::MAX_KEY;
use base::lzf;

use crate::opcodes::{encoding, length};

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The source failed.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// The bytes end in the middle.
    #[error("the data ends too early")]
    Truncated,
    /// The bytes are not a value; this is the first error.
    #[error("{0}")]
    Malformed(&'static str),
    /// The bytes may be right, but their meaning is unknown here.
    #[error("unsupported: {0}")]
    Unsupported(Cow<'static, str>),
}

impl From<store::pack::PackError> for ReadError {
    fn from(_: store::pack::PackError) -> ReadError {
        ReadError::Malformed("integrity check failed: a packed block does not add up")
    }
}

impl From<store::Malformed> for ReadError {
    fn from(_: store::Malformed) -> ReadError {
        ReadError::Malformed("integrity check failed: a packed block is no collection of its type")
    }
}

/// A length, or an encoding in its place.
pub(crate) enum Length {
    Plain(u64),
    /// One of [`encoding`].
    Encoded(u8),
}

/// The source of bytes: a slice that has them all, or a file with a part in memory.
pub(crate) trait Input {
    /// The next `count` bytes. Nothing is allocated for bytes that do not exist.
    fn take(&mut self, count: u64) -> Result<&[u8], ReadError>;

    /// The next `N` bytes.
    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let bytes = self.take(N as u64)?;
        Ok(*bytes.first_chunk().expect("`take` gives what was asked for"))
    }

    /// The next byte.
    #[inline]
    fn byte(&mut self) -> Result<u8, ReadError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A length or a count. No server writes one as the number of an encoding; Redis takes that
    /// number.
    #[inline]
    fn length(&mut self) -> Result<u64, ReadError> {
        match self.length_or_encoding()? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(number) => Ok(u64::from(number)),
        }
    }

    /// The beginning of a string.
    fn length_or_encoding(&mut self) -> Result<Length, ReadError> {
        let first = self.byte()?;
        Ok(match first & length::MASK {
            length::BITS_6 => Length::Plain(u64::from(first)),
            length::BITS_14 => {
                let high = u64::from(first & !length::MASK);
                Length::Plain(high << 8 | u64::from(self.byte()?))
            }
            length::ENCODED => Length::Encoded(first & !length::MASK),
            _ => match first {
                length::BYTES_4 => Length::Plain(u64::from(u32::from_be_bytes(self.array()?))),
                length::BYTES_8 => Length::Plain(u64::from_be_bytes(self.array()?)),
                _ => return Err(ReadError::Malformed("an unknown form of length")),
            },
        })
    }

    /// Passes over a string without decoding it.
    fn skip_string(&mut self) -> Result<(), ReadError> {
        self.skip_string_of(u64::MAX)
    }

    /// Passes over a key, unless it is longer than a key can be.
    fn skip_key(&mut self) -> Result<(), ReadError> {
        self.skip_string_of(MAX_KEY as u64)
    }

    /// Passes over a string, unless it has more than `most` bytes.
    fn skip_string_of(&mut self, most: u64) -> Result<(), ReadError> {
        let within = |length| if length > most { Err(TOO_LONG) } else { Ok(length) };
        let size = match self.length_or_encoding()? {
            Length::Plain(length) => within(length)?,
            Length::Encoded(encoding::INT_8) => 1,
            Length::Encoded(encoding::INT_16) => 2,
            Length::Encoded(encoding::INT_32) => 4,
            Length::Encoded(encoding::LZF) => {
                let compressed = self.length()?;
                within(self.length()?)?;
                compressed
            }
            Length::Encoded(_) => return Err(UNKNOWN_ENCODING),
        };
        self.take(size).map(drop)
    }
}

const TOO_LONG: ReadError = ReadError::Malformed("a key is longer than 4294967295 bytes");
const UNKNOWN_ENCODING: ReadError = ReadError::Malformed("an unknown encoding of a string");

/// A string as it was written.
pub(crate) enum Text<'a> {
    Plain(&'a [u8]),
    Integer(i64),
    Inflated(Vec<u8>),
}

impl<'a> Text<'a> {
    /// The string's bytes.
    pub(crate) fn into_bytes(self) -> Cow<'a, [u8]> {
        match self {
            Text::Plain(bytes) => Cow::Borrowed(bytes),
            Text::Inflated(bytes) => Cow::Owned(bytes),
            Text::Integer(number) => {
                let mut digits = Vec::with_capacity(base::num::i64_len(number));
                base::num::write_i64(&mut digits, number);
                Cow::Owned(digits)
            }
        }
    }
}

/// Reads the format from bytes in memory.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Input for Reader<'_> {
    #[inline]
    fn take(&mut self, count: u64) -> Result<&[u8], ReadError> {
        self.bytes(count)
    }
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, position: 0 }
    }

    /// Bytes that were read so far.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// The next `count` bytes.
    #[inline]
    pub(crate) fn bytes(&mut self, count: u64) -> Result<&'a [u8], ReadError> {
        let rest = &self.bytes[self.position..];
        let count = usize::try_from(count).map_err(|_| ReadError::Truncated)?;
        let bytes = rest.get(..count).ok_or(ReadError::Truncated)?;
        self.position += count;
        Ok(bytes)
    }

    /// A string in any encoding.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, [u8]>, ReadError> {
        self.text().map(Text::into_bytes)
    }

    /// A string, with its encoding undone where that takes a copy.
    pub(crate) fn text(&mut self) -> Result<Text<'a>, ReadError> {
        let encoded = match self.length_or_encoding()? {
            Length::Plain(length) => return self.bytes(length).map(Text::Plain),
            Length::Encoded(encoded) => encoded,
        };
        Ok(match encoded {
            encoding::INT_8 => Text::Integer(i64::from(i8::from_le_bytes(self.array()?))),
            encoding::INT_16 => Text::Integer(i64::from(i16::from_le_bytes(self.array()?))),
            encoding::INT_32 => Text::Integer(i64::from(i32::from_le_bytes(self.array()?))),
            encoding::LZF => Text::Inflated(self.compressed_string()?),
            _ => return Err(UNKNOWN_ENCODING),
        })
    }

    fn compressed_string(&mut self) -> Result<Vec<u8>, ReadError> {
        let compressed_length = self.length()?;
        let length = self.length()?;
        let compressed = self.bytes(compressed_length)?;
        usize::try_from(length)
            .ok()
            .and_then(|length| lzf::decompress(compressed, length))
            .ok_or(ReadError::Malformed("a compressed string is damaged"))
    }

    /// A score in eight bytes; NaN is not one.
    pub(crate) fn binary_score(&mut self) -> Result<f64, ReadError> {
        checked_score(f64::from_le_bytes(self.array()?))
    }

    /// A score in text, as the first versions wrote it; NaN is not one.
    pub(crate) fn text_score(&mut self) -> Result<f64, ReadError> {
        use crate::opcodes::score::{INFINITY, NAN, NEGATIVE_INFINITY};
        match self.byte()? {
            NAN => checked_score(f64::NAN),
            INFINITY => Ok(f64::INFINITY),
            NEGATIVE_INFINITY => Ok(f64::NEG_INFINITY),
            length => {
                let text = self.bytes(u64::from(length))?;
                base::num::parse_f64(text).ok_or(ReadError::Malformed("a score is no number"))
            }
        }
    }
}

fn checked_score(score: f64) -> Result<f64, ReadError> {
    if score.is_nan() { Err(ReadError::Malformed("a score is no number")) } else { Ok(score) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(bytes: &[u8]) -> Option<Vec<u8>> {
        let text = Reader::new(bytes).string().ok().map(Cow::into_owned);
        let mut skipper = Reader::new(bytes);
        // Only the contents of a compressed string are not looked at in passing.
        let skipped = skipper.skip_string().is_ok();
        assert!(skipped || text.is_none());
        assert!(text.is_none() || skipper.position() == bytes.len());
        text
    }

    #[test]
    fn lengths_have_four_forms() {
        let length = |bytes: &[u8]| Reader::new(bytes).length().ok();
        assert_eq!(length(&[0x3f]), Some(63));
        assert_eq!(length(&[0x40, 0x40]), Some(64));
        assert_eq!(length(&[0x80, 0, 1, 0, 0]), Some(65536));
        assert_eq!(length(&[0x81, 1, 0, 0, 0, 0, 0, 0, 0]), Some(1 << 56));
        assert_eq!(length(&[0xc0]), Some(0));
        assert_eq!(length(&[0xff]), Some(63));
        for wrong in [&[][..], &[0x40], &[0x80, 0, 0], &[0x82, 0, 0, 0, 0]] {
            assert_eq!(length(wrong), None);
        }
    }

    #[test]
    fn strings_have_five_encodings() {
        assert_eq!(string(b"\x03abc").as_deref(), Some(&b"abc"[..]));
        assert_eq!(string(b"\xc0\xff").as_deref(), Some(&b"-1"[..]));
        assert_eq!(string(b"\xc1\x00\x80").as_deref(), Some(&b"-32768"[..]));
        assert_eq!(string(b"\xc2\xff\xff\xff\x7f").as_deref(), Some(&b"2147483647"[..]));
        let repeated = string(b"\xc3\x07\x1b\x02abc\xe0\x0f\x02").unwrap();
        assert_eq!(repeated, b"abc".repeat(9));
        for wrong in [&b"\x04abc"[..], b"\xc4\x00", b"\xc3\x03\x10\x02ab", b"\xc2\x00"] {
            assert_eq!(string(wrong), None);
        }
    }

    #[test]
    fn an_announced_length_allocates_nothing() {
        assert_eq!(string(b"\x81\x7f\xff\xff\xff\xff\xff\xff\xffabc"), None);
        assert_eq!(string(b"\xc3\x03\x81\x7f\xff\xff\xff\xff\xff\xff\xff\x00aa"), None);
    }

    #[test]
    fn a_key_of_four_gigabytes_is_refused_by_its_length() {
        let skip = |bytes: &[u8]| Reader::new(bytes).skip_key().map_err(|error| error.to_string());
        let refused = Err(TOO_LONG.to_string());
        // Plain, and compressed: little compressed text gives as much.
        assert_eq!(skip(b"\x81\0\0\0\x01\0\0\0\0abc"), refused);
        assert_eq!(skip(b"\xc3\x03\x81\0\0\0\x01\0\0\0\0abc"), refused);
        assert_eq!(skip(b"\xc3\x03\x80\xff\xff\xff\xffabc"), Ok(()));
        assert_eq!(skip(b"\x03abc"), Ok(()));
    }

    #[test]
    fn scores_are_numbers() {
        let text = |bytes: &[u8]| Reader::new(bytes).text_score().ok();
        assert_eq!(text(b"\x033.5"), Some(3.5));
        assert_eq!(text(b"\xfe"), Some(f64::INFINITY));
        assert_eq!(text(b"\xff"), Some(f64::NEG_INFINITY));
        assert_eq!(text(b"\xfd"), None);
        assert_eq!(text(b"\x03nan"), None);
        assert!(Reader::new(&f64::NAN.to_le_bytes()[..]).binary_score().is_err());
    }
}
