//! Writing lengths and strings.

use std::io::{self, Write};

use base::passing::PassingBytes;
use base::{lzf, num};

use crate::opcodes::{encoding, length};

/// After this many bytes a string must have become shorter. Fewer in tests.
pub(crate) const TRIED: u64 = if cfg!(test) { 100_000 } else { 4 << 20 };
/// The longest string that may be an integer of 32 bits: ten digits and a sign.
const INTEGER_TEXT: usize = 11;
/// Strings longer than this are worth compressing.
const COMPRESS_ABOVE: usize = 20;
/// By how much a compressed string must be shorter than the string: it has a second length.
pub(crate) const COMPRESS_GAIN: usize = 4;

/// Strings longer than this are compressed in parts of [`PART`] bytes. Fewer in tests.
const WHOLE_MAX: usize = if cfg!(test) { 200_000 } else { 1 << 20 };
const PART: usize = 64 * 1024;

/// Room that is kept from one compressed string to the next, in bytes.
const SCRATCH_KEPT: usize = 64 * 1024;

/// Writes the format to a sink of bytes, which should be buffered.
pub struct Writer<W> {
    sink: W,
    compress: bool,
    /// Room for a string that is being compressed.
    scratch: PassingBytes,
}

impl<W: Write> Writer<W> {
    /// Writes to `sink`; `compress` is the setting `rdbcompression`.
    pub fn new(sink: W, compress: bool) -> Writer<W> {
        Writer { sink, compress, scratch: PassingBytes::default() }
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
        let shorter = match text.len() > WHOLE_MAX {
            true => self.compressed_in_parts(text, &mut compressed)?,
            false => self.compressed_at_once(text, &mut compressed)?,
        };
        compressed.clear(SCRATCH_KEPT);
        self.scratch = compressed;
        Ok(shorter)
    }

    fn compressed_at_once(
        &mut self,
        text: &[u8],
        compressed: &mut PassingBytes,
    ) -> io::Result<bool> {
        let budget = text.len() - COMPRESS_GAIN;
        let shorter = compressed.change(|bytes| lzf::compress(text, bytes, budget));
        if shorter {
            self.begin_compressed(compressed.len(), text)?;
            self.bytes(compressed)?;
        }
        Ok(shorter)
    }

    /// Compresses each part twice: the first time for the length of the whole, which comes first.
    /// So no more than a part is ever in memory.
    fn compressed_in_parts(&mut self, text: &[u8], part: &mut PassingBytes) -> io::Result<bool> {
        let compress = |bytes: &[u8], part: &mut PassingBytes| {
            part.clear(SCRATCH_KEPT);
            part.change(|part| lzf::compress(bytes, part, usize::MAX));
        };
        // Readers take 32 bits for both lengths.
        if u32::try_from(text.len()).is_err() {
            return Ok(false);
        }
        let (mut come, mut total) = (0, COMPRESS_GAIN);
        for bytes in text.chunks(PART) {
            compress(bytes, part);
            (come, total) = (come + bytes.len(), total + part.len());
            let most = if (come as u64) < TRIED { text.len() } else { come };
            if total > most {
                return Ok(false);
            }
        }
        self.begin_compressed(total - COMPRESS_GAIN, text)?;
        for bytes in text.chunks(PART) {
            compress(bytes, part);
            self.bytes(part)?;
        }
        Ok(true)
    }

    fn begin_compressed(&mut self, length: usize, text: &[u8]) -> io::Result<()> {
        self.bytes(&[length::ENCODED | encoding::LZF])?;
        self.length(length as u64)?;
        self.length(text.len() as u64)
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
    fn long_strings_are_compressed_without_being_in_memory_twice() {
        let mut rng = base::rng::Rng::from_seed(5);
        let noise: Vec<u8> = (0..WHOLE_MAX + 7).map(|_| rng.below(256) as u8).collect();
        let words = b"the same words again and again, ".repeat(WHOLE_MAX / 16);
        for (text, shrinks) in [(&noise, false), (&words, true)] {
            let (mut bytes, mut most) = (Vec::new(), 0);
            let mut writer = Writer::new(Watched(&mut bytes, &mut most), true);
            writer.string(text).unwrap();
            assert_eq!(*Reader::new(&bytes[..]).string().unwrap(), text[..]);
            assert_eq!(bytes.len() < text.len(), shrinks);
            assert!(most <= 2 * PART as i64, "{most} bytes beside {}", text.len());
        }
    }

    /// A sink that notes how much passing memory there is when it is written to.
    struct Watched<'a>(&'a mut Vec<u8>, &'a mut i64);

    impl Write for Watched<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            *self.1 = (*self.1).max(base::passing::balance());
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
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
