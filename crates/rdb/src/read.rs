//! Reading lengths and strings.

use std::io::{self, Read};

use base::lzf;

use crate::opcodes::{encoding, length};

/// What is allocated for a string before its bytes arrive. A longer one grows with what comes.
const EAGER: u64 = 64 * 1024;

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The source failed, or ended in the middle.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// The bytes are no value; says what was wrong first.
    #[error("{0}")]
    Malformed(&'static str),
}

impl From<store::pack::PackError> for ReadError {
    fn from(_: store::pack::PackError) -> ReadError {
        ReadError::Malformed("a packed block does not add up")
    }
}

impl From<store::Malformed> for ReadError {
    fn from(_: store::Malformed) -> ReadError {
        ReadError::Malformed("a packed block is no collection of its type")
    }
}

/// Reads the format from a source of bytes, which should be buffered.
pub struct Reader<R> {
    source: R,
}

/// A length, or what stands in its place.
enum Length {
    Plain(u64),
    /// One of [`encoding`].
    Encoded(u8),
}

impl<R: Read> Reader<R> {
    /// Reads from where `source` stands.
    pub fn new(source: R) -> Reader<R> {
        Reader { source }
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// [`ReadError::Io`], at the end too.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// The next byte.
    ///
    /// # Errors
    /// As [`Reader::array`].
    pub fn byte(&mut self) -> Result<u8, ReadError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`ReadError::Io`] when there are fewer; no more memory than twice what there was is taken.
    pub fn bytes(&mut self, count: u64) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::with_capacity(count.min(EAGER) as usize);
        let read = self.source.by_ref().take(count).read_to_end(&mut bytes)?;
        if (read as u64) < count {
            return Err(ReadError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        if bytes.capacity() - bytes.len() > bytes.len() / 8 {
            bytes.shrink_to_fit();
        }
        Ok(bytes)
    }

    /// A length or a count.
    ///
    /// # Errors
    /// [`ReadError`], also for the mark of an encoded string.
    pub fn length(&mut self) -> Result<u64, ReadError> {
        match self.length_or_encoding()? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(_) => Err(ReadError::Malformed("an encoding where a length belongs")),
        }
    }

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

    /// A string, whatever its encoding.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn string(&mut self) -> Result<Vec<u8>, ReadError> {
        let encoded = match self.length_or_encoding()? {
            Length::Plain(length) => return self.bytes(length),
            Length::Encoded(encoded) => encoded,
        };
        let number = match encoded {
            encoding::INT_8 => i64::from(i8::from_le_bytes(self.array()?)),
            encoding::INT_16 => i64::from(i16::from_le_bytes(self.array()?)),
            encoding::INT_32 => i64::from(i32::from_le_bytes(self.array()?)),
            encoding::LZF => return self.compressed_string(),
            _ => return Err(ReadError::Malformed("an unknown encoding of a string")),
        };
        let mut digits = Vec::with_capacity(base::num::i64_len(number));
        base::num::write_i64(&mut digits, number);
        Ok(digits)
    }

    fn compressed_string(&mut self) -> Result<Vec<u8>, ReadError> {
        let compressed_length = self.length()?;
        let length = self.length()?;
        let compressed = self.bytes(compressed_length)?;
        usize::try_from(length)
            .ok()
            .and_then(|length| lzf::decompress(&compressed, length))
            .ok_or(ReadError::Malformed("a compressed string is damaged"))
    }

    /// A score in eight bytes.
    ///
    /// # Errors
    /// [`ReadError`], also for what is no number.
    pub fn binary_score(&mut self) -> Result<f64, ReadError> {
        checked_score(f64::from_le_bytes(self.array()?))
    }

    /// A score in text, as the first versions wrote it.
    ///
    /// # Errors
    /// [`ReadError`], also for what is no number.
    pub fn text_score(&mut self) -> Result<f64, ReadError> {
        use crate::opcodes::score::{INFINITY, NAN, NEGATIVE_INFINITY};
        match self.byte()? {
            NAN => checked_score(f64::NAN),
            INFINITY => Ok(f64::INFINITY),
            NEGATIVE_INFINITY => Ok(f64::NEG_INFINITY),
            length => {
                let text = self.bytes(u64::from(length))?;
                base::num::parse_f64(&text).ok_or(ReadError::Malformed("a score is no number"))
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
        Reader::new(bytes).string().ok()
    }

    #[test]
    fn lengths_have_four_forms() {
        let length = |bytes: &[u8]| Reader::new(bytes).length().ok();
        assert_eq!(length(&[0x3f]), Some(63));
        assert_eq!(length(&[0x40, 0x40]), Some(64));
        assert_eq!(length(&[0x80, 0, 1, 0, 0]), Some(65536));
        assert_eq!(length(&[0x81, 1, 0, 0, 0, 0, 0, 0, 0]), Some(1 << 56));
        for wrong in [&[][..], &[0x40], &[0x80, 0, 0], &[0x82, 0, 0, 0, 0], &[0xc0]] {
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
