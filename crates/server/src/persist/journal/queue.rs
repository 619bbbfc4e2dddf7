//! Effects that were appended, and that the thread which writes the file has not taken yet.
//!
//! Bytes gather in pieces of a fixed size, so that appending never moves earlier ones. Full pieces go
//! back and forth between appenders and the thread, so that in a steady state nothing is allocated. A
//! piece ends after the effects of a command or transaction, never within.

use std::collections::VecDeque;
use std::ffi::OsString;

use base::limits;
use base::passing::PassingBytes;
use engine::persistence::backlog::Position;

use crate::persist::disk::DiskFile;

/// The beginning of an annotation with a time.
pub const TIMESTAMP: &[u8] = b"#TS:";

/// The beginning of an annotation with a position: that of the next effect, and the history that goes
/// on there.
pub const HISTORY: &[u8] = b"#CHANGES:";

/// Room in a piece beyond the size at which it is full, for the effects that fill it.
const SLACK: usize = 8 * 1024;

/// A file in which the journal goes on.
pub struct Opened {
    /// The file.
    pub file: Box<dyn DiskFile>,
    /// Its name.
    pub name: OsString,
    /// Bytes that it has already.
    pub length: u64,
}

/// Effects, in the bytes of the file.
pub(super) struct Chunk {
    pub(super) bytes: PassingBytes,
    /// The offset in the stream after them.
    pub(super) end: u64,
}

/// Something for the thread to do.
pub(super) enum Work {
    Write(Chunk),
    Switch(Switch),
}

/// The file ends here. The next effects go into another file, or there are none.
pub(super) struct Switch {
    pub(super) opened: Option<Opened>,
    /// Whether the next effects make sense only after the earlier ones.
    pub(super) follows: bool,
    /// Where in the stream this happens.
    pub(super) offset: u64,
    /// The number of the series of files that begins or goes on.
    pub(super) series: u64,
}

/// What happens to effects.
#[derive(Default, PartialEq, Eq)]
enum State {
    /// There is no file.
    #[default]
    Closed,
    /// They are kept for the thread.
    Accepting,
    /// The file was given up: they are dropped.
    Failed,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Queue {
    /// The piece that is being filled.
    open: PassingBytes,
    full: Vec<Work>,
    spare: Vec<PassingBytes>,
    end: u64,
    /// The offset after the effects of the last file, while there is no file.
    closed_at: u64,
    /// The database that commands of the present file apply to.
    selected: Option<usize>,
    /// The time that the present file gave last.
    second: u64,
    state: State,
    /// Files that follow one another have the same number.
    series: u64,
}

impl Queue {
    #[inline]
    pub(super) fn append(
        &mut self,
        second: Option<u64>,
        write: impl FnOnce(&mut Vec<u8>, &mut Option<usize>),
    ) -> u64 {
        if self.state != State::Accepting {
            // Dropped effects get an offset that is never reached.
            self.end += u64::from(self.state == State::Failed);
            return self.end;
        }
        if let Some(second) = second
            && second > self.second
        {
            self.annotate(second);
        }
        let before = self.open.len();
        let selected = &mut self.selected;
        self.open.change(|bytes| write(bytes, selected));
        self.end += (self.open.len() - before) as u64;
        if self.open.len() >= limits::JOURNAL_CHUNK {
            self.close_chunk();
        }
        self.end
    }

    /// Writes the time into the file. It is no part of the stream, so it does not count there.
    #[cold]
    fn annotate(&mut self, second: u64) {
        self.second = second;
        self.open.extend(TIMESTAMP);
        self.open.extend(format!("{second}\r\n").as_bytes());
    }

    /// Notes which history of the stream goes on here, for the loader of the file. Not part of the
    /// stream either.
    pub(super) fn note_history(&mut self, position: &Position) {
        if self.state == State::Accepting {
            self.open.extend(HISTORY);
            self.open.extend(format!("{position}\r\n").as_bytes());
        }
    }

    /// Counts effects that go into no file.
    pub(super) fn pass_by(&mut self, bytes: u64) -> u64 {
        self.end += bytes;
        self.end
    }

    /// Begins at the offset at which the loaded effects end.
    pub(super) fn go_on_from(&mut self, end: u64) {
        self.end = end;
    }

    #[cold]
    fn close_chunk(&mut self) {
        if !self.open.is_empty() {
            let fresh = || PassingBytes::with_capacity(limits::JOURNAL_CHUNK + SLACK);
            let next = self.spare.pop().unwrap_or_else(fresh);
            let bytes = std::mem::replace(&mut self.open, next);
            self.full.push(Work::Write(Chunk { bytes, end: self.end }));
        }
    }

    /// Begins a series of files.
    pub(super) fn begin(&mut self, opened: Opened) -> u64 {
        self.state = State::Accepting;
        self.series += 1;
        self.switch(Some(opened), false)
    }

    /// Goes on in another file.
    pub(super) fn rotate(&mut self, opened: Opened) -> u64 {
        self.switch(Some(opened), true)
    }

    /// Ends the series.
    pub(super) fn finish(&mut self) -> u64 {
        self.state = State::Closed;
        self.series += 1;
        self.closed_at = self.end;
        self.switch(None, false)
    }

    fn switch(&mut self, opened: Option<Opened>, follows: bool) -> u64 {
        self.close_chunk();
        self.selected = None;
        self.second = 0;
        let (offset, series) = (self.end, self.series);
        self.full.push(Work::Switch(Switch { opened, follows, offset, series }));
        offset
    }

    /// Whether `series` is the present one: no other is to begin already.
    pub(super) fn is_present(&self, series: u64) -> bool {
        series == self.series
    }

    /// Whether no series goes on.
    pub(super) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether appended effects go into a file.
    pub(super) fn is_accepting(&self) -> bool {
        self.state == State::Accepting
    }

    /// Whether appended effects are dropped.
    pub(super) fn is_refusing(&self) -> bool {
        self.state == State::Failed
    }

    /// Drops everything from now on.
    pub(super) fn refuse(&mut self) {
        self.state = State::Failed;
    }

    /// Gives away all of its work. Returns whether there is any.
    pub(super) fn take(&mut self, work: &mut VecDeque<Work>) -> bool {
        self.close_chunk();
        let any = !self.full.is_empty();
        work.extend(self.full.drain(..));
        any
    }

    /// Takes back pieces that were written.
    pub(super) fn give_back(&mut self, chunks: impl Iterator<Item = Chunk>) {
        let room = limits::JOURNAL_SPARE_CHUNKS.saturating_sub(self.spare.len());
        let usual = |chunk: &Chunk| chunk.bytes.capacity() <= 2 * limits::JOURNAL_CHUNK;
        self.spare.extend(chunks.filter(usual).take(room).map(|mut chunk| {
            chunk.bytes.clear(usize::MAX);
            chunk.bytes
        }));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.full.is_empty()
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The offset after the effects that files get, or got.
    pub(super) fn end_of_file(&self) -> u64 {
        if self.is_closed() { self.closed_at } else { self.end }
    }
}
