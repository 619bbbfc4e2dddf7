//! A buffer before a file that computes the checksum of the written bytes.

use std::io::{self, Write};

use base::crc::Crc64;

/// Bytes that are collected before the sink gets them.
const BUFFER_BYTES: usize = 64 * 1024;

/// Gathers written bytes; counts and checksums those that leave.
pub(super) struct Output<W> {
    sink: W,
    buffer: Vec<u8>,
    /// Bytes that went to the sink.
    passed: u64,
    ///    /// The checksum of the bytes that went to the sink; `None` if it is not needed.
    checksum: Option<Crc64>,
}

impl<W: Write> Output<W> {
    pub(super) fn new(sink: W, with_checksum: bool) -> Output<W> {
        Output {
            sink,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            passed: 0,
            checksum: with_checksum.then(Crc64::new),
        }
    }

    /// Bytes that were written so far.
    pub(super) fn position(&self) -> u64 {
        self.passed + self.buffer.len() as u64
    }

    /// Empties the buffer and returns the checksum of all bytes, 0 if it is not needed.
    pub(super) fn finish(&mut self) -> io::Result<u64> {
        self.pass_buffer()?;
        Ok(self.checksum.map_or(0, |checksum| checksum.value()))
    }

    /// The sink, after it has received the contents of the buffer.
    pub(super) fn into_sink(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.sink)
    }

    fn pass_buffer(&mut self) -> io::Result<()> {
        pass(&mut self.sink, &mut self.checksum, &mut self.passed, &self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

fn pass(
    sink: &mut impl Write,
    checksum: &mut Option<Crc64>,
    passed: &mut u64,
    bytes: &[u8],
) -> io::Result<()> {
    if let Some(checksum) = checksum {
        checksum.update(bytes);
    }
    sink.write_all(bytes)?;
    *passed += bytes.len() as u64;
    Ok(())
}

impl<W: Write> Write for Output<W> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > BUFFER_BYTES - self.buffer.len() {
            self.pass_buffer()?;
            if bytes.len() >= BUFFER_BYTES {
                return pass(&mut self.sink, &mut self.checksum, &mut self.passed, bytes);
            }
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_buffer()?;
        self.sink.flush()
    }
}
