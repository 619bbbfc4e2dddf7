//! A long string that comes in parts.
//!
//! Its parts are compressed one by one. Their LZF forms one after the other are a valid LZF form of
//! the whole, because copies reach back within a part only. The result gathers until the last part,
//! because its length comes first. If it does not become shorter, everything is written as it is:
//! after some megabytes without gain it is not tried further. Nor is it when the result has become
//! very long, because all of it is in memory until the end.

use std::io::{self, Write};

use base::passing::PassingBytes;
use base::{limits, lzf};

use crate::opcodes::{encoding, length};
use crate::write::{COMPRESS_GAIN, TRIED, Writer};

/// The result may take this many bytes. Fewer in tests.
const PACKED_MAX: usize = if cfg!(test) { 150_000 } else { limits::PACKED_TEXT };

/// See the module's text.
pub(crate) struct LongText {
    length: u64,
    /// Bytes that have come so far.
    come: u64,
    /// The compressed form; nothing when the parts are written as they come.
    packed: Option<Packed>,
}

/// The compressed forms of some parts, one after the other.
#[derive(Default)]
struct Packed {
    bytes: PassingBytes,
    /// For each part where its form ends, and its own length.
    parts: Vec<(usize, usize)>,
}

impl Packed {
    fn add(&mut self, part: &[u8]) {
        self.bytes.change(|bytes| lzf::compress(part, bytes, usize::MAX));
        self.parts.push((self.bytes.len(), part.len()));
    }

    /// Writes the parts as they were.
    fn unpack<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        let mut start = 0;
        for &(end, length) in &self.parts {
            let part = lzf::decompress(&self.bytes[start..end], length);
            writer.bytes(&part.expect("it was compressed just now"))?;
            start = end;
        }
        Ok(())
    }
}

impl LongText {
    /// Begins a string of this length.
    pub(crate) fn begin<W: Write>(writer: &mut Writer<W>, length: u64) -> io::Result<LongText> {
        // Readers of the compressed form take 32 bits for both lengths.
        let compress = writer.compresses() && u32::try_from(length).is_ok();
        if !compress {
            writer.length(length)?;
        }
        Ok(LongText { length, come: 0, packed: compress.then(Packed::default) })
    }

    /// Bytes that are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.length - self.come
    }

    /// Adds a part, which is no longer than the missing rest.
    pub(crate) fn add<W: Write>(&mut self, writer: &mut Writer<W>, part: &[u8]) -> io::Result<()> {
        self.come += part.len() as u64;
        let Some(packed) = &mut self.packed else { return writer.bytes(part) };
        packed.add(part);
        let most = if self.come < TRIED { self.length } else { self.come };
        let length = packed.bytes.len();
        if length <= PACKED_MAX && length as u64 + COMPRESS_GAIN as u64 <= most {
            return Ok(());
        }
        writer.length(self.length)?;
        let given_up = self.packed.take();
        given_up.map_or(Ok(()), |packed| packed.unpack(writer))
    }

    /// Ends the string after all of it has come.
    pub(crate) fn end<W: Write>(self, writer: &mut Writer<W>) -> io::Result<()> {
        let Some(packed) = self.packed else { return Ok(()) };
        writer.bytes(&[length::ENCODED | encoding::LZF])?;
        writer.length(packed.bytes.len() as u64)?;
        writer.length(self.length)?;
        writer.bytes(&packed.bytes)
    }
}

#[cfg(test)]
mod tests {
    use base::rng::Rng;

    use super::*;
    use crate::read::Reader;

    fn written(text: &[u8], part: usize, compress: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, compress);
        let mut long = LongText::begin(&mut writer, text.len() as u64).unwrap();
        for part in text.chunks(part) {
            long.add(&mut writer, part).unwrap();
        }
        assert_eq!(long.left(), 0);
        long.end(&mut writer).unwrap();
        bytes
    }

    #[test]
    fn what_comes_in_parts_is_read_as_one_string() {
        let mut rng = Rng::from_seed(3);
        let noise: Vec<u8> = (0..50_000).map(|_| rng.below(256) as u8).collect();
        let words = b"the same words again and again, ".repeat(2000);
        let mixed = [&noise[..], &words].concat();
        let late = [&noise[..], &noise, &noise, &words.repeat(5)].concat();
        // It would become shorter, but too much would be in memory until the end.
        let long = [&noise[..], &words].concat().repeat(4);
        let texts =
            [(&noise, false), (&words, true), (&mixed, true), (&late, false), (&long, false)];
        for (text, shrinks) in texts {
            for part in [1000, 20_000, 50_000] {
                let packed = written(text, part, true);
                assert_eq!(*Reader::new(&packed).string().unwrap(), text[..]);
                assert_eq!(packed.len() < text.len(), shrinks, "{} bytes", packed.len());
                let plain = written(text, part, false);
                assert_eq!(*Reader::new(&plain).string().unwrap(), text[..]);
                assert!(plain.ends_with(text));
            }
        }
    }
}
