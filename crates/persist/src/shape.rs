//! Turns the entries of a cut into the bytes of a file: an RDB file, or commands.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

use base::passing::PassingBytes;
use store::cut::Sink;

/// A sink that puts entries into the bytes of a file.
pub(super) trait Shape: Sink {
    /// Keys up to now.
    fn keys(&self) -> u64;

    /// Reports an entry since the last call that could not be turned into bytes.
    fn failed(&mut self) -> io::Result<()>;

    /// Adds the end of the file, and returns its length.
    fn finish(self) -> io::Result<u64>;
}

/// Bytes that are gathered before they are written.
pub(super) const CHUNK: usize = 64 * 1024;

/// Room for so many bytes is kept from one time to the next.
const CHUNKS_KEPT: usize = 16 * CHUNK;

/// Bytes on their way to the file.
#[derive(Clone)]
pub(super) struct Staged<'f>(Rc<RefCell<Stage<'f>>>);

struct Stage<'f> {
    bytes: PassingBytes,
    file: &'f mut dyn Write,
    /// No lock is held: gathered bytes may go to the file at once.
    at_leisure: bool,
    /// How long the thread then rests after each chunk, so that others get the processor.
    rest: Duration,
    /// The first thing that could not be written.
    error: Option<io::Error>,
}

impl Stage<'_> {
    /// Writes the gathered bytes if they are more than `least`. Returns whether it did.
    fn pass_on(&mut self, least: usize) -> bool {
        let passes = self.bytes.len() > least;
        if passes {
            if self.error.is_none() {
                self.error = self.file.write_all(&self.bytes).err();
            }
            self.bytes.clear(CHUNKS_KEPT);
        }
        passes
    }

    /// Adds bytes while nothing is locked: many go to the file at once, without a copy.
    fn pass_through(&mut self, bytes: &[u8]) {
        if bytes.len() <= CHUNK {
            self.bytes.extend(bytes);
            if self.pass_on(CHUNK) {
                self.rest();
            }
            return;
        }
        self.pass_on(0);
        for chunk in bytes.chunks(CHUNK) {
            if self.error.is_none() {
                self.error = self.file.write_all(chunk).err();
            }
            self.rest();
        }
    }

    fn rest(&self) {
        if !self.rest.is_zero() {
            std::thread::sleep(self.rest);
        }
    }
}

impl<'f> Staged<'f> {
    /// Nothing yet; it will become a file.
    pub(super) fn new(file: &'f mut dyn Write, rest: Duration) -> Staged<'f> {
        let stage =
            Stage { bytes: PassingBytes::default(), file, at_leisure: false, rest, error: None };
        Staged(Rc::new(RefCell::new(stage)))
    }

    /// Adds bytes.
    pub(super) fn gather(&self, bytes: &[u8]) {
        let mut stage = self.0.borrow_mut();
        match stage.at_leisure {
            true => stage.pass_through(bytes),
            false => stage.bytes.extend(bytes),
        }
    }

    /// Says whether nothing is locked from now on, so that a large value need not gather as a
    /// whole.
    pub(super) fn set_at_leisure(&self, at_leisure: bool) {
        self.0.borrow_mut().at_leisure = at_leisure;
    }

    /// Writes the gathered bytes if they are more than `least`.
    pub(super) fn pass_on(&self, least: usize) -> io::Result<()> {
        let mut stage = self.0.borrow_mut();
        stage.pass_on(least);
        stage.error.take().map_or(Ok(()), Err)
    }

    /// Writes all that has gathered.
    pub(super) fn end(&self) -> io::Result<()> {
        self.pass_on(0)?;
        self.0.borrow_mut().file.flush()
    }
}

impl Write for Staged<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gather(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
