//! The part of a file that is in memory.
//!
//! The file is read into a chunk of some size. Its reader *keeps* the bytes from a position on:
//! they stay in one piece, the chunk grows as needed, and at the end the reader takes the chunk
//! away without a copy. Only the bytes after the kept ones are moved to the next chunk. If there
//! are more of these than kept bytes, the kept bytes are copied instead.

use std::io::{self, Read};
use std::ops::Range;

use base::crc::Crc64;
use base::limits::RDB_CHUNK;

use crate::read::{Input, ReadError};

/// Bytes of a file, as they come.
pub(super) struct Source<R> {
    file: R,
    chunk: Vec<u8>,
    /// How far the chunk was read.
    position: usize,
    /// Where the chunk begins in the file.
    offset: u64,
    /// The bytes of the chunk from here on must stay.
    kept: usize,
    ///    /// The checksum of the bytes before the chunk; `None` if it is not needed.
    checksum: Option<Crc64>,
}

impl<R: Read> Source<R> {
    pub(super) fn new(file: R, with_checksum: bool) -> Source<R> {
        Source {
            file,
            chunk: Vec::new(),
            position: 0,
            offset: 0,
            kept: 0,
            checksum: with_checksum.then(Crc64::new),
        }
    }

    /// Bytes of the file that were read so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset + self.position as u64
    }

    /// Keeps the bytes from here on, and none before.
    #[inline]
    pub(super) fn keep(&mut self) {
        self.kept = self.position;
    }

    /// How many bytes are kept.
    #[inline]
    pub(super) fn kept_bytes(&self) -> usize {
        self.position - self.kept
    }

    /// Some of the kept bytes.
    pub(super) fn kept(&self, range: Range<usize>) -> &[u8] {
        &self.chunk[self.kept..self.position][range]
    }

    /// Goes back to where `bytes` were kept.
    pub(super) fn rewind(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.kept_bytes(), "only what is kept is still there");
        self.position = self.kept + bytes;
    }

    /// Gives away the kept bytes, with their place in the file.
    pub(super) fn take_kept(&mut self) -> (u64, Vec<u8>) {
        if self.kept_bytes() < self.chunk.len() - self.position {
            // The chunk stays where it is: a reader that takes a few bytes of it again and again
            // would otherwise move all of the rest each time, and get a chunk's room for some
            // bytes.
            let taken = (self.offset + self.kept as u64, self.kept(0..self.kept_bytes()).to_vec());
            self.keep();
            return taken;
        }
        self.forget();
        let rest = &self.chunk[self.position..];
        let mut next = Vec::with_capacity(rest.len().max(RDB_CHUNK));
        next.extend_from_slice(rest);
        let offset = self.offset;
        self.chunk.truncate(self.position);
        self.pass(self.position);
        (offset, std::mem::replace(&mut self.chunk, next))
    }

    /// The checksum of all bytes so far; `None` if it is not needed.
    pub(super) fn checksum(&self) -> Option<u64> {
        self.checksum.map(|mut checksum| {
            checksum.update(&self.chunk[..self.position]);
            checksum.value()
        })
    }

    /// The file, and the bytes read beyond the position.
    pub(super) fn into_rest(self) -> (R, Vec<u8>) {
        let mut rest = self.chunk;
        rest.drain(..self.position);
        (self.file, rest)
    }

    /// Removes bytes that are no longer kept from the chunk.
    fn forget(&mut self) {
        let passed = self.kept;
        self.pass(passed);
        self.chunk.drain(..passed);
        self.kept = 0;
    }

    /// Moves the chunk's start on.
    fn pass(&mut self, bytes: usize) {
        if let Some(checksum) = &mut self.checksum {
            checksum.update(&self.chunk[..bytes]);
        }
        self.offset += bytes as u64;
        self.position -= bytes;
    }

    /// Reads on until the chunk has `count` bytes after the position.
    #[cold]
    fn fill(&mut self, count: u64) -> Result<(), ReadError> {
        self.forget();
        let needed = usize::try_from(count)
            .ok()
            .and_then(|count| self.position.checked_add(count))
            .ok_or(ReadError::Truncated)?;
        while self.chunk.len() < needed {
            self.read_some(needed)?;
        }
        Ok(())
    }

    /// Reads once. The chunk at most doubles, so that an announced length that is a lie costs no
    /// more memory than the bytes that really came. And it grows by a part of itself, so that a
    /// large value read in small steps is not moved at each.
    fn read_some(&mut self, needed: usize) -> Result<(), ReadError> {
        let length = self.chunk.len();
        let wanted = needed.max(length + length / 8);
        let room = wanted.min(2 * length).max(RDB_CHUNK);
        self.chunk.reserve_exact(room - length);
        self.chunk.resize(room, 0);
        let read = self.file.read(&mut self.chunk[length..]);
        self.chunk.truncate(length + read.as_ref().map_or(0, |&read| read));
        match read {
            Ok(0) => Err(ReadError::Truncated),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(ReadError::Io(error)),
        }
    }
}

impl<R: Read> Input for Source<R> {
    #[inline]
    fn take(&mut self, count: u64) -> Result<&[u8], ReadError> {
        if count > (self.chunk.len() - self.position) as u64 {
            self.fill(count)?;
        }
        let start = self.position;
        // The filled bytes fit the chunk, so their number is a `usize`.
        self.position += count as usize;
        Ok(&self.chunk[start..self.position])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, and an interruption now and then.
    struct Trickle<'a>(&'a [u8], bool);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.0.read(&mut buffer[..1])
        }
    }

    #[test]
    fn kept_bytes_are_given_away_in_one_piece() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut source = Source::new(Trickle(&bytes, false), true);
        assert_eq!(source.take(10).unwrap(), &bytes[..10]);
        source.keep();
        source.take(5).unwrap();
        source.take(40).unwrap();
        assert_eq!(source.kept(5..45), &bytes[15..55]);
        source.rewind(20);
        assert_eq!(source.offset(), 30);
        assert_eq!(source.take_kept(), (10, bytes[10..30].to_vec()));
        assert_eq!(source.take(30).unwrap(), &bytes[30..60]);
        assert_eq!(source.checksum(), Some(base::crc::crc64(&bytes[..60])));
        assert!(matches!(source.take(41), Err(ReadError::Truncated)));
        source.rewind(29);
        let (_, rest) = source.into_rest();
        assert_eq!(rest, &bytes[59..]);
    }

    #[test]
    fn a_short_kept_part_is_copied_and_the_chunk_stays() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut source = Source::new(&bytes[..], true);
        source.take(1).unwrap();
        let chunk = source.chunk.as_ptr();
        for start in (1..81).step_by(4) {
            source.keep();
            source.take(4).unwrap();
            source.rewind(3);
            let (offset, taken) = source.take_kept();
            assert_eq!((offset, &taken[..]), (start, &bytes[start as usize..][..3]));
            assert!(taken.capacity() < 16, "no room for a chunk");
            assert_eq!(source.take(1).unwrap(), &bytes[start as usize + 3..][..1]);
        }
        assert_eq!(source.chunk.as_ptr(), chunk, "the chunk has stayed");
        assert_eq!(source.checksum(), Some(base::crc::crc64(&bytes[..81])));
        assert_eq!(source.into_rest().1, &bytes[81..]);
    }

    #[test]
    fn an_announced_length_allocates_nothing() {
        let bytes = vec![7; 3 * RDB_CHUNK];
        let mut source = Source::new(&bytes[..], false);
        assert!(matches!(source.take(u64::MAX), Err(ReadError::Truncated)));
        assert!(matches!(source.take(1 << 40), Err(ReadError::Truncated)));
        assert!(source.chunk.capacity() <= 2 * bytes.len());
        source.take(bytes.len() as u64).unwrap();
        assert_eq!(source.checksum(), None);
    }
}
