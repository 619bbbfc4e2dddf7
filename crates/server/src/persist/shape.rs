//! What puts the entries of a cut into the bytes of a file: an RDB file, or commands.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use store::cut::Sink;

/// A sink that puts entries into the bytes of a file.
pub(super) trait Shape: Sink {
    /// Keys so far.
    fn keys(&self) -> u64;

    /// What could not be put into bytes since the last call.
    fn failed(&mut self) -> io::Result<()>;

    /// Adds what ends the file, and returns its length.
    fn finish(self) -> io::Result<u64>;
}

/// Bytes on their way to the file.
#[derive(Clone, Default)]
pub(super) struct Staged(Rc<RefCell<Vec<u8>>>);

impl Staged {
    /// Adds bytes.
    pub(super) fn gather(&self, bytes: &[u8]) {
        self.0.borrow_mut().extend_from_slice(bytes);
    }

    /// Writes what has gathered if it is more than `least` bytes.
    pub(super) fn pass_on(&self, file: &mut impl Write, least: usize) -> io::Result<()> {
        let mut bytes = self.0.borrow_mut();
        if bytes.len() > least {
            file.write_all(&bytes)?;
            bytes.clear();
        }
        Ok(())
    }
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gather(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
