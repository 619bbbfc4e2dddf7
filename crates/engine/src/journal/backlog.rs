//! The last part of the journal, in memory, for those who follow it: CHANGES, the change stream of
//! HTTP, and whoever sends the bytes of the stream on.
//!
//! A position in the journal is a history and an offset. The history stays the same as long as
//! offsets go on without a gap. A restarted server begins a new history where the append-only file
//! ends. Followers may have been told of changes that did not reach the disk, so the server knows
//! no position of the old history after that end. Annotations in the file say where histories
//! begin, so that its content is kept here again after a start.
//!
//! The content is the blocks in which the stream was encoded ([`crate::journal::block`]), those
//! that the file's writer reads too. So an effect is in memory once, and the memory that is taken
//! is that of the blocks: no more than the limit, as long as that is enough for one block. Where
//! the effects of a block begin and end is found by reading it ([`crate::journal::records`]).
//!
//! Offsets of this process, which [`crate::journal::Journal`] answers, only grow. A server that
//! takes over the stream of another one ([`Backlog::adopt`]) goes on at an offset of that history.
//! So an offset within a history may differ from the journal's by a number that stays the same as
//! long as anything is kept. Positions have the offsets within their history; all else here has the
//! journal's ([`Backlog::in_history`]).
//!
//! Nothing is kept before a client follows for the first time.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, OnceLock};

use base::limits;
use store::sync::thread;
use store::sync::{AtomicBool, AtomicU64, Mutex, fence};

use crate::journal::block::Block;
use crate::journal::records::{Piece, Record, Records};

/// The name of no history: after a gap, before another history has begun. No client follows from
/// there.
const NO_HISTORY: &str = "none";

/// A place in the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// The name of the history.
    pub history: String,
    /// Bytes of the stream before it, as this history counts them.
    pub offset: u64,
}

impl Position {
    /// Parses the form that [`Position`]'s `Display` writes.
    pub fn parse(text: &[u8]) -> Option<Position> {
        let text = std::str::from_utf8(text).ok()?;
        let (history, offset) = text.split_once(':')?;
        let is_number = !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_digit());
        let offset = offset.parse().ok().filter(|_| is_number)?;
        // Positions occur in headers and in lines of events.
        let is_name =
            !history.is_empty() && history.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_name.then(|| Position { history: history.to_owned(), offset })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.history, self.offset)
    }
}

/// From where a client wants to follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Since {
    /// From now on.
    Now,
    /// From the oldest that is kept.
    Oldest,
    /// After this.
    Position(Position),
}

/// The requested part is not kept, or never was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gone {
    /// The oldest position from which one can follow.
    pub oldest: String,
    /// The present one.
    pub newest: String,
}

impl fmt::Display for Gone {
    /// An error reply, without the dash before it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "GONE oldest={} newest={} what follows that position is not kept: read the keys anew, and \
             follow from newest",
            self.oldest, self.newest
        )
    }
}

/// The names of the present history and of the one before it, with offsets as histories count them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histories {
    /// The present one: 40 hexadecimal digits, unless another server has given it another name.
    pub present: String,
    /// The offset before the oldest byte that is kept.
    pub oldest: u64,
    /// The offset after the newest.
    pub newest: u64,
    /// The one before it, and the offset up to which its positions are those of the present one.
    pub previous: Option<Position>,
}

/// The offset at which a history begins.
#[derive(Clone, Debug)]
struct History {
    name: String,
    from: u64,
}

#[derive(Default)]
struct Kept {
    blocks: VecDeque<Arc<Block>>,
    /// Memory that they take.
    memory: usize,
    /// The offset before the first byte that is kept. The block that it is in may begin earlier.
    start: u64,
    /// The offset after the last, while there is no block.
    end: u64,
    /// The oldest first; where one begins, the one before ends.
    histories: VecDeque<History>,
    /// What to add to the journal's offsets, wrapping, for those of the histories.
    ahead: u64,
    /// The content came from a file, and the journal does not go on from there yet. This database
    /// was selected at its end.
    loaded: Option<Option<usize>>,
    /// Some history has begun in this process.
    named: bool,
    /// The offset from which on somebody needs what is kept, beyond the limit: a replica.
    needed: Option<u64>,
    /// Where a reader stopped last, and the database that is selected there: the next one begins
    /// there most often.
    stopped: (u64, Option<usize>),
}

/// One who reads the backlog, and rests while there is nothing new.
pub struct Reader {
    resting: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// See the module's text.
pub struct Backlog {
    on: AtomicBool,
    /// Bytes that are kept.
    limit: AtomicU64,
    /// When a client followed last, in milliseconds of the monotonic clock.
    used_at: AtomicU64,
    kept: Mutex<Kept>,
    readers: Mutex<Vec<Arc<Reader>>>,
    /// One of them rests.
    resting: AtomicBool,
    /// The one of the thread that tells followers.
    publisher: OnceLock<Arc<Reader>>,
}

impl Default for Backlog {
    /// A backlog that keeps nothing yet.
    fn default() -> Backlog {
        Backlog {
            on: AtomicBool::new(false),
            limit: AtomicU64::new(limits::DEFAULT_CHANGES_BACKLOG),
            used_at: AtomicU64::new(0),
            kept: Mutex::default(),
            readers: Mutex::default(),
            resting: AtomicBool::new(false),
            publisher: OnceLock::new(),
        }
    }
}

/// Blocks of this part of the limit leave most of it to effects that are kept.
const BLOCKS_IN_LIMIT: u64 = 16;

/// No block is smaller, unless the effects in it are fewer.
const BLOCK_MIN: u64 = 1024;

impl Backlog {
    /// Whether a history has begun here before: the next one needs another name.
    pub fn has_histories(&self) -> bool {
        self.kept.lock().named
    }

    /// Whether anything is kept.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// How much memory is taken, in bytes.
    pub fn set_limit(&self, bytes: u64) {
        if self.limit.swap(bytes, Relaxed) != bytes {
            self.kept.lock().shorten(bytes);
        }
    }

    /// The size of blocks, in bytes.
    pub(super) fn block_size(&self) -> usize {
        if !self.is_on() {
            return limits::JOURNAL_BLOCK;
        }
        let part = self.limit.load(Relaxed) / BLOCKS_IN_LIMIT;
        let part = part.clamp(BLOCK_MIN, limits::JOURNAL_BLOCK as u64);
        // A size of which the allocator wastes nothing.
        1 << part.ilog2()
    }

    /// Notes that a client follows.
    pub fn note_use(&self, monotonic: u64) {
        self.used_at.store(monotonic, Relaxed);
    }

    /// For how many milliseconds no client has followed.
    pub fn unused_for(&self, monotonic: u64) -> u64 {
        monotonic.saturating_sub(self.used_at.load(Relaxed))
    }

    // ---- What the journal says ------------------------------------------------------------------

    /// Begins to keep effects after this offset. With a gap before it, or for the first time, a
    /// history of this name begins. Returns what to note in the file.
    pub fn begin(&self, end: u64, name: String) -> Option<Position> {
        let mut kept = self.kept.lock();
        if !self.on.swap(true, Relaxed) {
            kept.clear_at(end);
        }
        if !kept.histories.is_empty() {
            return None;
        }
        kept.begin_history(name, end);
        kept.current(end)
    }

    /// Stops keeping effects. The history goes on if offsets do.
    pub fn end(&self, goes_on: bool) {
        let mut kept = self.kept.lock();
        self.on.store(false, Relaxed);
        kept.clear();
        if !goes_on {
            kept.histories.clear();
        }
    }

    /// The journal begins another series of files at this offset, with data of its own. If the
    /// present history was loaded, or has had a gap, one of this name follows.
    pub fn begin_series(&self, end: u64, name: String) {
        let mut kept = self.kept.lock();
        let loaded = kept.loaded.take().is_some();
        if (self.is_on() && kept.histories.is_empty()) || loaded {
            if kept.blocks.is_empty() {
                kept.clear_at(end);
            }
            kept.begin_history(name, end);
        }
    }

    /// The journal takes over a history of another server. At this offset of that history the next
    /// effects are, and `end` is where the journal is. When the present history is at the same
    /// offset it goes on under this name, and what is kept stays. Otherwise nothing of it does.
    /// Returns what to note in the file, and whether the present one goes on.
    pub fn adopt(&self, end: u64, position: Position) -> (Option<Position>, bool) {
        let mut kept = self.kept.lock();
        kept.loaded = None;
        let is_same = self.on.swap(true, Relaxed)
            && !kept.histories.is_empty()
            && kept.in_history(end) == position.offset;
        if !is_same {
            kept.histories.clear();
            kept.clear_at(end);
            kept.ahead = position.offset.wrapping_sub(end);
        }
        kept.forget_unused(end, &position.history);
        if kept.histories.back().is_none_or(|last| last.name != position.history) {
            kept.begin_history(position.history, end);
        }
        (kept.current(end), is_same)
    }

    /// The offset at which the journal goes on after its end was loaded from a file, and the
    /// database that is selected there.
    pub fn loaded_end(&self) -> Option<(u64, Option<usize>)> {
        let kept = self.kept.lock();
        kept.loaded.map(|selected| (kept.end(), selected))
    }

    /// The present history, at an offset: a file notes it at its beginning.
    pub fn current(&self, end: u64) -> Option<Position> {
        self.kept.lock().current(end)
    }

    /// Keeps a block into which effects are going to be appended, behind those of the one before.
    pub(super) fn push(&self, block: Arc<Block>) {
        let mut kept = self.kept.lock();
        kept.memory += block.memory();
        kept.blocks.push_back(block);
        kept.shorten(self.limit.load(Relaxed));
    }

    // ---- What a file says -----------------------------------------------------------------------

    /// Notes a line of a file: a history begins, or goes on, at an offset. The effects after it are
    /// appended at a tail that goes on from there.
    pub fn load_history(&self, position: Position) {
        let mut kept = self.kept.lock();
        if kept.loaded.is_none() || kept.end() != position.offset {
            kept.histories.clear();
            kept.clear_at(position.offset);
        }
        kept.ahead = 0;
        kept.loaded.get_or_insert(None);
        kept.forget_unused(position.offset, &position.history);
        if kept.histories.back().is_none_or(|last| last.name != position.history) {
            kept.begin_history(position.history, position.offset);
        }
        self.on.store(true, Relaxed);
    }

    /// Effects of a file were appended, behind which this database is selected.
    pub fn note_loaded(&self, selected: Option<usize>) {
        self.kept.lock().loaded = Some(selected);
    }

    /// The next effects have no known position in a file, so the loaded ones are dropped.
    pub fn forget_loaded(&self) {
        let mut kept = self.kept.lock();
        if kept.loaded.take().is_some() {
            kept.clear();
            kept.histories.clear();
            self.on.store(false, Relaxed);
        }
    }

    // ---- Those who follow -----------------------------------------------------------------------

    /// The offset after everything that was kept.
    pub fn newest(&self) -> u64 {
        self.kept.lock().end()
    }

    /// The offset before the oldest that is kept.
    pub fn oldest(&self) -> u64 {
        self.kept.lock().start
    }

    /// Memory that is taken, in bytes.
    pub fn bytes(&self) -> usize {
        self.kept.lock().memory
    }

    /// The last history that has had an effect, or the first one, and the offset of the end.
    pub fn last_used(&self) -> Option<Position> {
        let kept = self.kept.lock();
        let end = kept.end();
        let used = kept.histories.iter().rfind(|own| own.from < end).or(kept.histories.front())?;
        Some(Position { history: used.name.clone(), offset: kept.in_history(end) })
    }

    /// An offset of the journal as the present history counts it.
    pub fn in_history(&self, offset: u64) -> u64 {
        self.kept.lock().in_history(offset)
    }

    /// The present history and the one before it, if there is a history.
    pub fn histories(&self) -> Option<Histories> {
        let kept = self.kept.lock();
        let mut last = kept.histories.iter().rev();
        let present = last.next()?;
        let previous = last.next().map(|previous| Position {
            history: previous.name.clone(),
            offset: kept.in_history(present.from),
        });
        Some(Histories {
            present: present.name.clone(),
            oldest: kept.in_history(kept.start),
            newest: kept.in_history(kept.end()),
            previous,
        })
    }

    /// The error for a client whose next changes are not kept any more.
    pub fn gone(&self, shown: u64) -> Gone {
        let kept = self.kept.lock();
        kept.gone(shown.min(kept.end()))
    }

    /// The position of an offset.
    pub fn position(&self, offset: u64) -> String {
        self.kept.lock().position(offset)
    }

    /// The offset from which to follow. Effects after `shown` may not be seen yet.
    ///
    /// # Errors
    /// It is not kept.
    pub fn resolve(&self, since: &Since, shown: u64) -> Result<u64, Gone> {
        let kept = self.kept.lock();
        let now = shown.min(kept.end()).max(kept.start);
        match since {
            Since::Now => Ok(now),
            Since::Oldest => Ok(kept.start),
            Since::Position(position) => {
                let known = kept.known(position);
                known.ok_or_else(|| kept.gone(now))
            }
        }
    }

    /// Reads the records after an offset, `count` at most, none after `shown`.
    ///
    /// # Errors
    /// It is not kept any more.
    pub fn read(&self, from: u64, shown: u64, count: usize) -> Result<Vec<Record>, Gone> {
        let mut records = Vec::new();
        let (mut block, stopped) = {
            let kept = self.kept.lock();
            if from < kept.start {
                return Err(kept.gone(shown.min(kept.end())));
            }
            (kept.block_behind(from), kept.stopped)
        };
        let mut at = from;
        // The blocks are read without the lock: what is kept no longer stays while it is read.
        'blocks: while let Some(own) = block {
            // What is appended meanwhile is read the next time.
            let end = own.end();
            let found = match stopped.0 == at && at > own.start() {
                true => Records::behind(&own, (at - own.start()) as usize, stopped.1),
                false => Records::of(&own),
            };
            for record in found.skip_while(|record| record.end() <= from) {
                if record.end() > shown || records.len() == count {
                    break 'blocks;
                }
                records.push(record);
            }
            at = end;
            block = self.kept.lock().block_behind(at).filter(|next| next.start() == at);
        }
        if let Some(last) = records.last() {
            self.kept.lock().stopped = (last.end(), last.selected_after());
        }
        Ok(records)
    }

    /// Keeps everything after this offset, beyond the limit, or nothing beyond it any more.
    pub fn keep_from(&self, needed: Option<u64>) {
        let mut kept = self.kept.lock();
        if kept.needed != needed {
            kept.needed = needed;
            kept.shorten(self.limit.load(Relaxed));
        }
    }

    /// The bytes of the stream after an offset, in pieces, `most` altogether at most and none after
    /// `shown`. The pieces stay what they are, without a lock, for as long as they are referred to.
    ///
    /// # Errors
    /// It is not kept any more.
    pub fn read_bytes(&self, from: u64, shown: u64, most: usize) -> Result<Vec<Piece>, Gone> {
        let kept = self.kept.lock();
        if from < kept.start {
            return Err(kept.gone(shown.min(kept.end())));
        }
        let (mut at, until) = (from, shown.min(from.saturating_add(most as u64)));
        let first = kept.blocks.partition_point(|block| block.end() <= from);
        let mut pieces = Vec::new();
        for block in kept.blocks.range(first..) {
            let end = block.end().min(until);
            if end <= at {
                break;
            }
            let range = (at - block.start()) as usize..(end - block.start()) as usize;
            pieces.push(Piece { block: Arc::clone(block), range });
            at = end;
        }
        Ok(pieces)
    }

    // ---- Who reads it ---------------------------------------------------------------------------

    /// Adds a reader. `wake` is called when there is something new after it has said that it rests:
    /// by the thread that has appended, without slots locked, so it should take no time.
    pub fn add_reader(&self, wake: Box<dyn Fn() + Send + Sync>) -> Arc<Reader> {
        let reader = Arc::new(Reader { resting: AtomicBool::new(false), wake });
        self.readers.lock().push(Arc::clone(&reader));
        reader
    }

    /// Removes a reader.
    pub fn remove_reader(&self, reader: &Arc<Reader>) {
        self.readers.lock().retain(|own| !Arc::ptr_eq(own, reader));
    }

    /// Lets a reader be woken, once, when something is appended, or may be shown, from now on.
    /// Returns false, and it need not be woken, when there is something after `seen`, the end of
    /// the journal when it looked last.
    pub fn begin_rest(&self, reader: &Reader, seen: u64) -> bool {
        reader.resting.store(true, SeqCst);
        self.resting.store(true, SeqCst);
        // A thread that publishes after this look finds the reader resting: see `wake`.
        fence(SeqCst);
        let rests = self.newest() <= seen;
        if !rests {
            reader.resting.store(false, SeqCst);
        }
        rests
    }

    /// Has the readers look at the appended effects. Costs next to nothing while they are busy.
    #[inline]
    pub fn wake(&self) {
        // After what was published: a reader that does not see that is seen resting here.
        fence(SeqCst);
        if self.resting.load(Relaxed) {
            self.wake_readers();
        }
    }

    #[cold]
    fn wake_readers(&self) {
        if self.resting.swap(false, SeqCst) {
            for reader in &*self.readers.lock() {
                if reader.resting.swap(false, SeqCst) {
                    (reader.wake)();
                }
            }
        }
    }

    /// Lets the calling thread, which tells followers, rest until there is something to tell,
    /// `longest` at most. It does not rest when there is something after `seen`, the end of the
    /// journal when it looked last.
    pub fn rest(&self, seen: u64, longest: std::time::Duration) {
        let reader = self.publisher.get_or_init(|| {
            let publisher = thread::current();
            self.add_reader(Box::new(move || publisher.unpark()))
        });
        if self.begin_rest(reader, seen) {
            thread::park_timeout(longest);
            reader.resting.store(false, SeqCst);
        }
    }
}

impl Kept {
    fn end(&self) -> u64 {
        self.blocks.back().map_or(self.end, |block| block.end())
    }

    /// The block with the bytes after an offset, if there are any.
    fn block_behind(&self, offset: u64) -> Option<Arc<Block>> {
        let first = self.blocks.partition_point(|block| block.end() <= offset);
        self.blocks.get(first).map(Arc::clone)
    }

    /// Drops the oldest blocks until no more than this many bytes of memory are taken. The newest
    /// stays, however large it is, so that clients that keep up hear of it.
    fn shorten(&mut self, limit: u64) {
        while self.memory as u64 > limit
            && self.blocks.len() > 1
            && self.needed.is_none_or(|needed| self.blocks[0].end() <= needed)
            && let Some(oldest) = self.blocks.pop_front()
        {
            self.memory -= oldest.memory();
            self.start = oldest.end();
        }
        while self.histories.get(1).is_some_and(|next| next.from < self.start) {
            self.histories.pop_front();
        }
    }

    fn clear(&mut self) {
        self.clear_at(self.end());
    }

    fn clear_at(&mut self, end: u64) {
        self.blocks = VecDeque::new();
        self.memory = 0;
        (self.start, self.end) = (end, end);
        self.stopped = (0, None);
    }

    fn begin_history(&mut self, name: String, from: u64) {
        self.named = true;
        self.histories.push_back(History { name, from });
        if self.histories.len() > limits::CHANGES_HISTORIES {
            self.histories.pop_front();
        }
    }

    /// Forgets histories that begin here, and so have no effect, if this one goes on in their
    /// place: a replica that starts goes on in the history of its primary, not in one of its own.
    fn forget_unused(&mut self, end: u64, name: &str) {
        if let Some(at) = self.histories.iter().rposition(|own| own.name == name)
            && self.histories.range(at + 1..).all(|later| later.from == end)
        {
            self.histories.truncate(at + 1);
        }
    }

    fn in_history(&self, offset: u64) -> u64 {
        offset.wrapping_add(self.ahead)
    }

    fn current(&self, offset: u64) -> Option<Position> {
        let last = self.histories.back()?;
        Some(Position { history: last.name.clone(), offset: self.in_history(offset) })
    }

    fn position(&self, offset: u64) -> String {
        let own = self.histories.iter().rev().find(|history| history.from <= offset);
        let history = own.or(self.histories.front()).map_or(NO_HISTORY, |history| &history.name);
        Position { history: history.to_owned(), offset: self.in_history(offset) }.to_string()
    }

    /// The journal's offset of a position, if it is kept.
    fn known(&self, position: &Position) -> Option<u64> {
        let offset = position.offset.wrapping_sub(self.ahead);
        let at = self.histories.iter().position(|own| own.name == position.history)?;
        let end = self.histories.get(at + 1).map_or(self.end(), |next| next.from);
        let from = self.histories[at].from.max(self.start);
        (from..=end).contains(&offset).then_some(offset)
    }

    fn gone(&self, now: u64) -> Gone {
        Gone { oldest: self.position(self.start), newest: self.position(now.max(self.start)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::EffectBatch;
    use crate::journal::tail::Tail;

    /// A backlog with the end of its stream.
    #[derive(Default)]
    struct Rig {
        backlog: Backlog,
        tail: Tail,
    }

    impl Rig {
        /// One that keeps a history from an offset on.
        fn begun(end: u64, name: &str) -> Rig {
            let mut rig = Rig::default();
            rig.tail.go_on_from(end, Some(0));
            rig.backlog.begin(end, name.into());
            rig
        }

        /// Appends effects of 100 bytes and more in database 0. Returns the offset after them.
        fn append(&mut self, more: usize) -> u64 {
            let (mut batch, value) = (EffectBatch::default(), "x".repeat(more + 73));
            batch.push(0, [&b"SET"[..], b"k", value.as_bytes()].into_iter());
            self.tail.append(&batch, &self.backlog)
        }

        fn load(&mut self, history: &str, offset: u64) {
            self.backlog.load_history(Position { history: history.into(), offset });
            self.tail.go_on_from(offset, Some(0));
        }

        fn resolve(&self, history: &str, offset: u64) -> Result<u64, Gone> {
            let position = Position { history: history.into(), offset };
            self.backlog.resolve(&Since::Position(position), u64::MAX)
        }

        fn read(&self, from: u64, shown: u64, count: usize) -> Result<Vec<u64>, Gone> {
            let records = self.backlog.read(from, shown, count)?;
            Ok(records.iter().map(Record::end).collect())
        }

        fn bytes(&self, from: u64, most: usize) -> Vec<u8> {
            let pieces = self.backlog.read_bytes(from, u64::MAX, most).unwrap();
            pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect()
        }
    }

    #[test]
    fn positions_are_read_as_they_are_written() {
        let position = Position { history: "ab12".into(), offset: 7 };
        assert_eq!(Position::parse(position.to_string().as_bytes()), Some(position));
        let long = "a:99999999999999999999";
        for wrong in ["", ":", "a:", ":1", "a:-1", "a:+1", "a:1x", "a\r\nX: y:1", "a b:1", long] {
            assert_eq!(Position::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn followers_resume_from_every_kept_position() {
        let mut rig = Rig::begun(1000, "a");
        assert_eq!(rig.backlog.current(1000).unwrap().to_string(), "a:1000");
        let ends: Vec<_> = (0..5).map(|_| rig.append(0)).collect();
        assert_eq!(ends, [1100, 1200, 1300, 1400, 1500]);
        let backlog = &rig.backlog;
        assert_eq!(backlog.resolve(&Since::Now, u64::MAX), Ok(1500));
        assert_eq!(backlog.resolve(&Since::Now, 1300), Ok(1300), "no more than may be seen");
        assert_eq!(backlog.resolve(&Since::Oldest, u64::MAX), Ok(1000));
        assert_eq!(rig.resolve("a", 1200), Ok(1200));
        assert_eq!(rig.read(1200, u64::MAX, 10).unwrap(), [1300, 1400, 1500]);
        assert_eq!(rig.read(1200, 1400, 10).unwrap(), [1300, 1400]);
        assert_eq!(rig.read(1000, u64::MAX, 2).unwrap(), [1100, 1200]);
        assert_eq!(rig.read(1200, u64::MAX, 1).unwrap(), [1300], "where another one stopped");
        assert_eq!(rig.read(1500, u64::MAX, 1).unwrap(), [0; 0]);
        for gone in [("a", 999), ("a", 1501), ("b", 1200)] {
            let error = Gone { oldest: "a:1000".into(), newest: "a:1500".into() };
            assert_eq!(rig.resolve(gone.0, gone.1), Err(error));
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_stream() {
        let mut rig = Rig::begun(0, "a");
        rig.backlog.set_limit(1 << 15);
        for more in 0..100 {
            rig.append(more);
        }
        let all = rig.bytes(0, usize::MAX);
        assert_eq!(all.len() as u64, rig.tail.end());
        assert!(rig.backlog.read_bytes(0, u64::MAX, usize::MAX).unwrap().len() > 5);
        for from in (0..all.len()).step_by(97) {
            assert_eq!(rig.bytes(from as u64, 3000), all[from..(from + 3000).min(all.len())]);
            let shown = rig.backlog.read_bytes(from as u64, 5000, usize::MAX).unwrap();
            let shown: usize = shown.iter().map(|piece| piece.bytes().len()).sum();
            assert_eq!(shown, 5000_usize.saturating_sub(from));
            let mut ends = Vec::new();
            let mut at = from as u64;
            while let Some(end) = rig.read(at, u64::MAX, 1).unwrap().first() {
                ends.push(*end);
                at = *end;
            }
            assert_eq!(ends, rig.read(from as u64, u64::MAX, 1000).unwrap());
            assert_eq!(ends.last(), Some(&rig.tail.end()));
        }
        assert_eq!(rig.bytes(rig.tail.end(), 10), b"");
    }

    #[test]
    fn no_more_memory_is_taken_than_the_limit() {
        let mut rig = Rig::begun(0, "a");
        for limit in [100_000, 20_000] {
            rig.backlog.set_limit(limit);
            (0..1000).for_each(|_| {
                rig.append(100);
                assert!(rig.backlog.bytes() as u64 <= limit);
            });
            let kept = rig.tail.end() - rig.backlog.oldest();
            // Small blocks hold few effects, and the rest of each is of no use.
            assert!(kept > limit * 2 / 3, "{kept} of {limit} bytes are effects");
        }
        let oldest = rig.backlog.oldest();
        assert!(rig.read(oldest - 1, u64::MAX, 1).is_err());
        assert!(rig.backlog.read_bytes(oldest - 1, u64::MAX, 1).is_err());
        assert_eq!(rig.read(oldest, u64::MAX, 1).unwrap(), [oldest + 201]);
        let before = rig.tail.end();
        let end = rig.append(100_000);
        assert_eq!((rig.backlog.oldest(), rig.backlog.newest()), (before, end), "it stays");
        // Who reads a block may go on with it.
        let piece = rig.backlog.read_bytes(before, u64::MAX, 100).unwrap().remove(0);
        rig.append(0);
        assert_eq!((rig.backlog.oldest(), piece.bytes().len()), (end, 100));
    }

    #[test]
    fn what_somebody_needs_stays_beyond_the_limit() {
        let mut rig = Rig::begun(0, "a");
        rig.backlog.set_limit(20_000);
        let needed = rig.append(100);
        rig.backlog.keep_from(Some(needed));
        (0..1000).for_each(|_| _ = rig.append(100));
        assert_eq!(rig.bytes(needed, usize::MAX).len() as u64, rig.tail.end() - needed);
        rig.backlog.keep_from(Some(needed + 100_000));
        assert!(rig.backlog.oldest() > needed && rig.backlog.oldest() <= needed + 100_000);
        rig.backlog.keep_from(None);
        assert!(rig.backlog.bytes() <= 20_000);
    }

    #[test]
    fn a_start_begins_a_history_where_the_file_ends() {
        let mut rig = Rig::default();
        rig.load("a", 500);
        assert_eq!(rig.append(0), 600);
        rig.load("a", 600);
        assert_eq!(rig.append(0), 700);
        rig.backlog.note_loaded(Some(3));
        assert_eq!(rig.backlog.loaded_end(), Some((700, Some(3))));
        rig.backlog.begin_series(700, "b".into());
        assert_eq!(rig.backlog.loaded_end(), None);
        assert_eq!(rig.backlog.current(700).unwrap().to_string(), "b:700");
        rig.tail.go_on_from(700, Some(0));
        rig.append(0);
        assert_eq!(rig.resolve("a", 600), Ok(600));
        assert_eq!(rig.resolve("a", 700), Ok(700));
        assert!(rig.resolve("a", 701).is_err(), "the disk has lost that");
        assert_eq!(rig.resolve("b", 800), Ok(800));
        assert!(rig.resolve("b", 699).is_err(), "there was no such position");
        assert_eq!(rig.read(500, u64::MAX, 9).unwrap(), [600, 700, 800]);
        let positions = [699, 700].map(|offset| rig.backlog.position(offset));
        assert_eq!(positions, ["a:699", "b:700"]);
        let histories = rig.backlog.histories().unwrap();
        assert_eq!((histories.oldest, histories.newest), (500, 800));
        assert_eq!(histories.present, "b");
        assert_eq!(histories.previous.unwrap().to_string(), "a:700");
    }

    #[test]
    fn a_gap_begins_another_history() {
        let mut rig = Rig::begun(0, "a");
        rig.append(0);
        rig.backlog.end(true);
        assert_eq!(rig.backlog.begin(400, "c".into()), None, "offsets have gone on");
        assert!(rig.resolve("a", 300).is_err(), "nothing was kept meanwhile");
        assert_eq!(rig.resolve("a", 400), Ok(400));
        rig.backlog.end(false);
        let none = Position::parse(rig.backlog.position(100).as_bytes()).expect("like others");
        assert!(rig.backlog.resolve(&Since::Position(none), u64::MAX).is_err());
        assert_eq!(rig.backlog.histories(), None);
        assert_eq!(rig.backlog.begin(400, "c".into()).unwrap().to_string(), "c:400");
    }

    #[test]
    fn a_history_of_another_server_goes_on_here() {
        let mut rig = Rig::begun(1000, "a");
        rig.append(0);
        let foreign = |offset| Position { history: "p".into(), offset };
        // It is behind our own offset: all is read anew.
        let (noted, goes_on) = rig.backlog.adopt(1100, foreign(50));
        assert_eq!((noted, goes_on), (Some(foreign(50)), false));
        rig.tail.go_on_from(1100, None);
        let bytes = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1\r\n$4\r\nping\r\n";
        let end = rig.tail.append_raw(bytes, Some(0), &rig.backlog);
        assert_eq!((end, rig.backlog.in_history(end)), (1137, 87));
        assert_eq!(rig.backlog.position(1137), "p:87");
        assert!(rig.resolve("a", 1100).is_err() && rig.resolve("p", 49).is_err());
        let from = rig.resolve("p", 50).unwrap();
        assert_eq!(rig.bytes(from, usize::MAX), bytes);
        assert!(rig.resolve("p", 88).is_err());
        // This server is promoted: positions of the old name stay valid up to here.
        let (noted, goes_on) =
            rig.backlog.adopt(1137, Position { history: "q".into(), offset: 87 });
        assert_eq!((noted.unwrap().to_string().as_str(), goes_on), ("q:87", true));
        rig.append(0);
        assert_eq!([rig.resolve("p", 87), rig.resolve("q", 187)], [Ok(1137), Ok(1237)]);
        assert!(rig.resolve("p", 88).is_err() && rig.resolve("q", 86).is_err());
        let histories = rig.backlog.histories().unwrap();
        assert_eq!((histories.oldest, histories.newest), (50, 187));
        assert_eq!(histories.previous.unwrap().to_string(), "p:87");
        // After a start, the old name goes on if nothing has happened under another one.
        let again = || Position { history: "r".into(), offset: 187 };
        assert!(rig.backlog.adopt(1237, again()).1);
        assert!(rig.backlog.adopt(1237, Position { history: "q".into(), ..again() }).1);
        assert_eq!(rig.backlog.position(1237), "q:187");
        assert_eq!(rig.backlog.histories().unwrap().previous.unwrap().to_string(), "p:87");
    }

    #[test]
    fn a_reader_that_rests_is_woken_once() {
        let mut rig = Rig::begun(0, "a");
        let woken = Arc::new(AtomicU64::new(0));
        let own = Arc::clone(&woken);
        let wake = Box::new(move || {
            own.fetch_add(1, Relaxed);
        });
        let reader = rig.backlog.add_reader(wake);
        rig.backlog.wake();
        assert!(rig.backlog.begin_rest(&reader, 0));
        assert_eq!(woken.load(Relaxed), 0, "it did not rest");
        rig.append(0);
        (0..3).for_each(|_| rig.backlog.wake());
        assert_eq!(woken.load(Relaxed), 1);
        assert!(!rig.backlog.begin_rest(&reader, 0), "there is something");
        assert!(rig.backlog.begin_rest(&reader, 100));
        rig.backlog.remove_reader(&reader);
        rig.backlog.wake();
        assert_eq!(woken.load(Relaxed), 1);
    }
}
