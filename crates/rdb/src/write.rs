//! Writing lengths and strings.

use std::io::{self, Write};

use base::{lzf, num};

use crate::opcodes::{encoding, length};

/// The longest string that may be an integer of 32 bits: ten digits and a sign.
const INTEGER_TEXT: usize = 11;
/// Strings longer than this are worth compressing.
const COMPRESS_ABOVE: usize = 20;
/// By how much a compressed string must be shorter than the string: it has a second length.
pub(crate) const COMPRESS_GAIN: usize = 4;

/// Room that is kept from one compressed string to the next, in bytes.
const SCRATCH_KEPT: usize = 64 * 1024;

/// Writes the format to a sink of bytes, which should be buffered.
pub struct Writer<W> {
    sink: W,
    compress: bool,
    /// Room for a string that is being compressed.
    scratch: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes to `sink`; `compress` is the setting `rdbcompression`.
    pub fn new(sink: W, compress: bool) -> Writer<W> {
        Writer { sink, compress, scratch: Vec::new() }
    }

    /// Whether strings are compressed.
    pub(crate) fn compresses(&self) -> bool {
        self.compress
    }

    /// Where it writes to.
    pub(crate) fn sink(&self) -> &W {
        &self.sink
    }

    /// Where it wrote to.
    pub(crate) fn into_sink(self) -> W {
        self.sink
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// The sink's.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.write_all(bytes)
    }

    /// Writes a length or a count in its shortest form.
    ///
    /// # Errors
    /// The sink's.
    pub fn length(&mut self, value: u64) -> io::Result<()> {
        match value {
            0..0x40 => self.bytes(&[length::BITS_6 | value as u8]),
            0x40..0x4000 => self.bytes(&[length::BITS_14 | (value >> 8) as u8, value as u8]),
            0x4000..0x1_0000_0000 => {
                self.bytes(&[length::BYTES_4])?;
                self.bytes(&(value as u32).to_be_bytes())
            }
            _ => {
                self.bytes(&[length::BYTES_8])?;
                self.bytes(&value.to_be_bytes())
            }
        }
    }

    /// Writes a string: as an integer if it is one, compressed if that pays.
    ///
    /// # Errors
    /// The sink's.
    pub fn string(&mut self, text: &[u8]) -> io::Result<()> {
        if text.len() <= INTEGER_TEXT
            && let Some(number) = num::parse_i64(text)
            && let Ok(number) = i32::try_from(number)
        {
            return self.small_integer(number);
        }
        if self.compress && text.len() > COMPRESS_ABOVE && self.compressed(text)? {
            return Ok(());
        }
        self.length(text.len() as u64)?;
        self.bytes(text)
    }

    /// Writes an integer as the string of its digits.
    ///
    /// # Errors
    /// The sink's.
    pub fn integer(&mut self, value: i64) -> io::Result<()> {
        match i32::try_from(value) {
            Ok(small) => self.small_integer(small),
            Err(_) => {
                let mut digits = Vec::with_capacity(num::i64_len(value));
                num::write_i64(&mut digits, value);
                self.length(digits.len() as u64)?;
                self.bytes(&digits)
            }
        }
    }

    fn small_integer(&mut self, value: i32) -> io::Result<()> {
        if let Ok(byte) = i8::try_from(value) {
            self.bytes(&[length::ENCODED | encoding::INT_8, byte.to_le_bytes()[0]])
        } else if let Ok(short) = i16::try_from(value) {
            self.bytes(&[length::ENCODED | encoding::INT_16])?;
            self.bytes(&short.to_le_bytes())
        } else {
            self.bytes(&[length::ENCODED | encoding::INT_32])?;
            self.bytes(&value.to_le_bytes())
        }
    }

    /// Writes a string compressed, if it becomes shorter. Returns whether it did.
    fn compressed(&mut self, text: &[u8]) -> io::Result<bool> {
        let mut compressed = std::mem::take(&mut self.scratch);
        let shorter = lzf::compress(text, &mut compressed, text.len() - COMPRESS_GAIN);
        if shorter {
            self.bytes(&[length::ENCODED | encoding::LZF])?;
            self.length(compressed.len() as u64)?;
            self.length(text.len() as u64)?;
            self.bytes(&compressed)?;
        }
        if compressed.capacity() <= SCRATCH_KEPT {
            compressed.clear();
            self.scratch = compressed;
        }
        Ok(shorter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Input, Reader};

    fn written(action: impl FnOnce(&mut Writer<&mut Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
        let mut bytes = Vec::new();
        action(&mut Writer::new(&mut bytes, true)).unwrap();
        bytes
    }

    #[test]
    fn lengths_take_their_shortest_form_and_read_back() {
        let cases = [(0u64, 1), (63, 1), (64, 2), (16383, 2), (16384, 5), (u32::MAX.into(), 5)];
        for (value, size) in cases.into_iter().chain([(1 << 32, 9), (u64::MAX, 9)]) {
            let bytes = written(|writer| writer.length(value));
            assert_eq!(bytes.len(), size, "{value}");
            assert_eq!(Reader::new(&bytes[..]).length().unwrap(), value);
        }
    }

    #[test]
    fn strings_read_back() {
        let long = b"abcdefg".repeat(50);
        let cases = [&b""[..], b"5", b"-128", b"-129", b"2147483648", b"012", b"+1", &long];
        for text in cases {
            let bytes = written(|writer| writer.string(text));
            assert_eq!(Reader::new(&bytes[..]).string().unwrap(), text);
            if let Some(number) = num::parse_i64(text) {
                assert_eq!(written(|writer| writer.integer(number)), bytes);
            }
        }
        assert!(written(|writer| writer.string(&long)).len() < 40, "compressed");
    }
}
