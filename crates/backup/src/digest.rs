//! The length and the SHA-256 of what passes through.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

/// Counts and hashes the bytes that are read from, or written to, what is inside.
pub(crate) struct Hashed<T> {
    inner: T,
    hash: Sha256,
    bytes: u64,
}

impl<T> Hashed<T> {
    pub(crate) fn new(inner: T) -> Hashed<T> {
        Hashed { inner, hash: Sha256::new(), bytes: 0 }
    }

    /// What is inside, the number of bytes, and their SHA-256.
    pub(crate) fn finish(self) -> (T, u64, String) {
        (self.inner, self.bytes, in_hexadecimal(&self.hash.finalize()))
    }

    fn note(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.note(&buffer[..length]);
        Ok(length)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.inner.write(bytes)?;
        self.note(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The SHA-256 of bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    in_hexadecimal(&Sha256::digest(bytes))
}

fn in_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
