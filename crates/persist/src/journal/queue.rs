//! Effects that were appended, and that the thread which writes the file has not taken yet.
//!
//! The effects are in the blocks of the stream ([`Tail`]), which the writer of the file reads as
//! followers do. So the queue has pieces of blocks, and between them what the file says besides the
//! stream: annotations, and a SELECT of its own where its first effect lacks one. A piece ends
//! after the effects of a command or transaction, never within.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::passing::PassingBytes;
use engine::journal::EffectBatch;
use engine::journal::backlog::{Backlog, Position};
use engine::journal::batch::select_command;
use engine::journal::block::Block;
use engine::journal::records::{Piece, commands};
use engine::journal::tail::Tail;

use crate::disk::DiskFile;

/// The beginning of an annotation with a time.
pub const TIMESTAMP: &[u8] = b"#TS:";

/// The beginning of an annotation with a position: that of the next effect, and the history that
/// goes on there.
pub const HISTORY: &[u8] = b"#CHANGES:";

/// The beginning of an annotation before one with a position: the number of the database that is
/// selected in the stream there, or -1 if none is known to be.
pub const SELECTED: &[u8] = b"#SELECTED:";

/// The annotation before a SELECT of the stream that stands by itself. A server of another kind
/// that uses the file in between begins with a SELECT, and without this.
pub const COUNTED: &[u8] = b"#COUNTED";

/// The annotation before a command that is the file's own: it is no part of the stream.
pub const UNCOUNTED: &[u8] = b"#UNCOUNTED";

/// The annotation before a command of the stream, or before a transaction, that came from another
/// server and was not applied: this server did not know a command of it.
pub const UNKNOWN: &[u8] = b"#UNKNOWN";

/// How often the file says at which offset it goes on while nothing else is written.
const OFFSET_EVERY: Duration = Duration::from_secs(1);

/// A file in which the journal goes on.
pub struct Opened {
    /// The file.
    pub file: Box<dyn DiskFile>,
    /// Its name.
    pub name: OsString,
    /// Bytes that it has already.
    pub length: u64,
    /// Files of the same list come before it, and are durable.
    pub is_behind_durable: bool,
}

/// Bytes of the file.
pub(super) enum Bytes {
    /// A piece of the stream.
    Stream(Piece),
    /// What the file says besides.
    Own(PassingBytes),
}

/// Bytes of the file, with the offset in the stream after them.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) end: u64,
}

impl Chunk {
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Stream(piece) => piece.bytes(),
            Bytes::Own(bytes) => bytes,
        }
    }

    /// The block that it was a part of, if nobody needs that any more.
    pub(super) fn into_spare(self) -> Option<Arc<Block>> {
        match self.bytes {
            Bytes::Stream(Piece { mut block, .. }) => {
                Arc::get_mut(&mut block).is_some().then_some(block)
            }
            Bytes::Own(_) => None,
        }
    }
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

/// Whether effects begin with a SELECT.
fn selects(effects: &[u8]) -> bool {
    const START: &[u8] = b"*2\r\n$6\r\nSELECT\r\n";
    effects.get(..START.len()).is_some_and(|start| start.eq_ignore_ascii_case(START))
}

/// What happens to effects.
#[derive(Default, PartialEq, Eq)]
enum State {
    /// There is no file.
    #[default]
    Closed,
    /// They go into the file.
    Accepting,
    /// The file was given up: they go into none, until another one has a base.
    Failed,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Queue {
    /// The stream, whatever becomes of the file.
    tail: Tail,
    /// How much of the tail's present block is in `full`, or went into no file.
    queued: usize,
    full: Vec<Work>,
    /// The offset after the effects of the last file, while there is no file.
    closed_at: u64,
    /// The present file has no effect yet, so it has not selected a database.
    lacks_select: bool,
    /// The stream has something behind the last effect that the file does not get, and the file
    /// does not say so yet.
    lacks_offset: bool,
    /// When the file said that last.
    offset_noted_at: Option<Instant>,
    /// `full` does not tell the writer of that yet.
    hides_offset: bool,
    /// The time that the present file gave last.
    second: u64,
    state: State,
    /// Files that follow one another have the same number.
    series: u64,
}

impl Queue {
    /// Appends a batch to the stream, and for the file if there is one. Returns the offset after
    /// it. Nothing is encoded, and nothing counts, while nobody reads the stream.
    #[inline]
    pub(super) fn append(
        &mut self,
        batch: &EffectBatch,
        second: Option<u64>,
        backlog: &Backlog,
    ) -> u64 {
        if self.is_closed() && !backlog.is_on() {
            return self.tail.end();
        }
        if !self.tail.has_room_for(batch) {
            self.close_block();
        }
        let selects = batch.first_database() != self.tail.selected();
        if selects || self.lacks_select || self.lacks_offset || second.is_some() {
            self.begin_effects(second, selects, backlog);
        }
        self.tail.append(batch, backlog)
    }

    /// The same for effects that are encoded already. Only the first command may be a SELECT that
    /// stands by itself.
    pub(super) fn append_raw(
        &mut self,
        bytes: &[u8],
        selected_after: Option<usize>,
        second: Option<u64>,
        backlog: &Backlog,
    ) -> u64 {
        if self.is_closed() && !backlog.is_on() {
            return self.tail.end();
        }
        if !self.tail.has_room(bytes.len()) {
            self.close_block();
        }
        self.begin_effects(second, selects(bytes), backlog);
        self.tail.append_raw(bytes, selected_after, backlog)
    }

    /// Lets the file say that the effects which come now were not applied. They are encoded
    /// already, and do not begin with SELECT.
    pub(super) fn note_unknown(&mut self, second: Option<u64>, backlog: &Backlog) {
        if self.is_accepting() {
            self.begin_effects(second, false, backlog);
            self.write_own(&[UNKNOWN, b"\r\n".as_slice()].concat());
        }
    }

    /// Writes a batch into the file, and not into the stream.
    pub(super) fn append_beside(&mut self, batch: &EffectBatch) {
        if !self.is_accepting() {
            return;
        }
        let (mut effects, mut own) = (Vec::new(), Vec::new());
        batch.write_to(&mut effects, &mut None);
        for command in commands(&effects) {
            own.extend_from_slice(UNCOUNTED);
            own.extend_from_slice(b"\r\n");
            own.extend_from_slice(command);
        }
        self.write_own(&own);
        // The stream goes on in its own database.
        self.lacks_select = true;
    }

    /// Appends whole commands to the stream that change nothing and select no database. The file
    /// does not get them.
    pub(super) fn append_messages(&mut self, bytes: &[u8], backlog: &Backlog) -> u64 {
        if !backlog.is_on() {
            return self.tail.end();
        }
        if !self.tail.has_room(bytes.len()) {
            self.close_block();
        }
        self.queue_piece();
        let end = self.tail.append_raw(bytes, self.tail.selected(), backlog);
        self.queued = self.tail.present().map_or(0, |(_, length)| length);
        (self.lacks_offset, self.hides_offset) = (self.is_accepting(), self.is_accepting());
        end
    }

    /// Lets the file say at which offset it goes on, if that is not where it was.
    fn note_offset(&mut self, backlog: &Backlog) {
        if std::mem::take(&mut self.lacks_offset)
            && let Some(position) = backlog.current(self.tail.end())
        {
            self.note_history(&position);
            self.offset_noted_at = Some(Instant::now());
        }
    }

    /// Whether the file has to say now at which offset it goes on. It always says that before the
    /// next effect. Without one, it is enough to say it now and then: only followers that have got
    /// messages know positions which the file does not, and they begin anew if the process ends
    /// before the file says so.
    fn is_offset_due(&self) -> bool {
        self.lacks_offset && self.offset_noted_at.is_none_or(|at| at.elapsed() >= OFFSET_EVERY)
    }

    /// Writes into the file what has to stand there before the next effects: where they are, the
    /// time, and a SELECT if the stream has none where the file begins. `selects` says that they
    /// begin with one.
    #[cold]
    fn begin_effects(&mut self, second: Option<u64>, selects: bool, backlog: &Backlog) {
        if !self.is_accepting() {
            return;
        }
        self.note_offset(backlog);
        if let Some(second) = second {
            self.note_time(second);
        }
        if selects {
            self.write_own(&[COUNTED, b"\r\n".as_slice()].concat());
        } else {
            self.note_selected();
        }
        self.lacks_select = false;
    }

    /// Lets the file select the database in which the stream goes on, if it has not done so.
    fn note_selected(&mut self) {
        if self.is_accepting()
            && self.lacks_select
            && let Some(database) = self.tail.selected()
        {
            self.lacks_select = false;
            let mut own = UNCOUNTED.to_vec();
            own.extend_from_slice(b"\r\n");
            own.extend_from_slice(&select_command(database));
            self.write_own(&own);
        }
    }

    /// Lets the file say what time it is, unless it has said that.
    pub(super) fn note_time(&mut self, second: u64) {
        if self.is_accepting() && second > self.second {
            self.second = second;
            let mut text = TIMESTAMP.to_vec();
            text.extend_from_slice(format!("{second}\r\n").as_bytes());
            self.write_own(&text);
        }
    }

    /// Writes something into the file that is no part of the stream.
    fn write_own(&mut self, text: &[u8]) {
        if !text.is_empty() {
            self.queue_piece();
            let mut bytes = PassingBytes::default();
            bytes.extend(text);
            let end = self.tail.end();
            self.push(Chunk { bytes: Bytes::Own(bytes), end });
        }
    }

    /// Notes which history of the stream goes on here, and in which database, for the loader of the
    /// file. Not part of the stream either. A file that breaks off between the two lines has no
    /// position without its database.
    pub(super) fn note_history(&mut self, position: &Position) {
        if self.is_accepting() {
            let selected = self.tail.selected();
            let selected = selected.map_or_else(|| "-1".to_owned(), |own| own.to_string());
            let mut text = SELECTED.to_vec();
            text.extend_from_slice(format!("{selected}\r\n").as_bytes());
            text.extend_from_slice(HISTORY);
            text.extend_from_slice(format!("{position}\r\n").as_bytes());
            self.write_own(&text);
            self.note_selected();
        }
    }

    /// Goes on at another offset.
    pub(super) fn go_on_from(&mut self, end: u64, selected: Option<usize>) {
        debug_assert!(self.is_closed() && self.is_empty(), "nothing counts from elsewhere");
        self.close_block();
        self.tail.go_on_from(end, selected);
    }

    /// The next effects follow others than those before, in whose place this database was selected.
    pub(super) fn select(&mut self, selected: Option<usize>) {
        self.close_block();
        self.tail.go_on_from(self.tail.end(), selected);
        self.lacks_select = true;
    }

    /// Effects that are appended from now on are in another block.
    #[cold]
    pub(super) fn close_block(&mut self) {
        self.queue_piece();
        self.tail.close();
        self.queued = 0;
    }

    /// Lets the file have the effects that the present block has more than the queue.
    fn queue_piece(&mut self) {
        let Some((block, length)) = self.tail.present() else { return };
        let range = std::mem::replace(&mut self.queued, length)..length;
        if !range.is_empty() && self.state == State::Accepting {
            let piece = Piece { block: Arc::clone(block), range };
            let (bytes, end) = (Bytes::Stream(piece), self.tail.end());
            self.push(Chunk { bytes, end });
        }
    }

    fn push(&mut self, chunk: Chunk) {
        self.hides_offset &= chunk.end < self.tail.end();
        self.full.push(Work::Write(chunk));
    }

    /// Begins a series of files.
    pub(super) fn begin(&mut self, opened: Opened) -> u64 {
        self.queue_piece();
        self.state = State::Accepting;
        self.series += 1;
        self.switch(Some(opened), false)
    }

    /// Goes on in another file. A file that was given up is followed by none.
    pub(super) fn rotate(&mut self, opened: Opened) -> u64 {
        assert!(!self.is_closed(), "there is a file that the next one can follow");
        self.queue_piece();
        self.switch(Some(opened), true)
    }

    /// Ends the series.
    pub(super) fn finish(&mut self) -> u64 {
        self.queue_piece();
        self.state = State::Closed;
        self.series += 1;
        self.closed_at = self.tail.end();
        self.switch(None, false)
    }

    fn switch(&mut self, opened: Option<Opened>, follows: bool) -> u64 {
        self.lacks_select = opened.is_some();
        // The next file begins with its offset.
        (self.lacks_offset, self.hides_offset) = (false, false);
        self.second = 0;
        let (offset, series) = (self.tail.end(), self.series);
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

    /// The file is given up: effects go into none from now on.
    pub(super) fn refuse(&mut self) {
        self.queue_piece();
        self.state = State::Failed;
    }

    /// Gives away all of its work. `is_last` says that the file ends here. Returns whether there is
    /// any.
    pub(super) fn take(
        &mut self,
        work: &mut VecDeque<Work>,
        backlog: &Backlog,
        is_last: bool,
    ) -> bool {
        self.queue_piece();
        if is_last || self.is_offset_due() {
            self.note_offset(backlog);
        }
        if self.hides_offset {
            // The file has everything up to there.
            let (bytes, end) = (Bytes::Own(PassingBytes::default()), self.tail.end());
            self.push(Chunk { bytes, end });
        }
        let any = !self.full.is_empty();
        work.extend(self.full.drain(..));
        any
    }

    /// Takes blocks that nobody else needs.
    pub(super) fn give_back(&mut self, blocks: impl Iterator<Item = Arc<Block>>) {
        self.tail.give_back(blocks);
    }

    pub(super) fn is_empty(&self) -> bool {
        let length = self.tail.present().map_or(0, |(_, length)| length);
        self.full.is_empty()
            && !self.hides_offset
            && (length == self.queued || !self.is_accepting())
    }

    pub(super) fn end(&self) -> u64 {
        self.tail.end()
    }

    /// The database that is selected at the end of the stream.
    pub(super) fn selected(&self) -> Option<usize> {
        self.tail.selected()
    }

    /// The offset after the effects that files get, or got.
    pub(super) fn end_of_file(&self) -> u64 {
        if self.is_closed() { self.closed_at } else { self.tail.end() }
    }
}
