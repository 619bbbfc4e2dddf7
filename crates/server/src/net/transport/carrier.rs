//! What a session of TLS asks of what is below it.

use std::io::{self, IoSlice};

use super::Transport;

/// What carries the encrypted bytes: a socket, or the end of a link in memory.
pub(in crate::net) trait Carrier: Transport {
    /// Reads into the buffer. Returns how many bytes: 0 at the end of the stream, and fewer than
    /// there is room for only when no more are there now.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes the first of these bytes. Returns how many.
    fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize>;
}
