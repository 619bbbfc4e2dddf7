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
//!
//! | file | what it answers |
//! |---|---|
//! | `position` | where is a follower, and what is it told when that is gone? |
//! | `kept` | which blocks are kept, and which histories are in them? |
//! | `readers` | who waits for more, and who wakes them? |

mod kept;
mod position;
mod readers;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::limits;
use store::sync::{AtomicBool, AtomicU64, Mutex};

use crate::journal::block::Block;
use crate::journal::records::{Piece, Record, Records};
use kept::Kept;
use readers::Readers;

pub use position::{Gone, Histories, Position, Since};
pub use readers::Reader;

/// See the module's text.
pub struct Backlog {
    on: AtomicBool,
    /// Bytes that are kept.
    limit: AtomicU64,
    /// When a client followed last, in milliseconds of the monotonic clock.
    used_at: AtomicU64,
    kept: Mutex<Kept>,
    readers: Readers,
}

impl Default for Backlog {
    /// A backlog that keeps nothing yet.
    fn default() -> Backlog {
        Backlog {
            on: AtomicBool::new(false),
            limit: AtomicU64::new(limits::DEFAULT_CHANGES_BACKLOG),
            used_at: AtomicU64::new(0),
            kept: Mutex::default(),
            readers: Readers::default(),
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

    /// This database is selected in the stream where a file has got to, if one is known to be.
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

    /// The last history that has had an effect, or the first one, and the offset of the end. One
    /// that begins there counts as well if it is `noted` with that end.
    pub fn last_used(&self, noted: Option<&Position>) -> Option<Position> {
        let kept = self.kept.lock();
        let end = kept.end();
        let offset = kept.in_history(end);
        let noted = noted.filter(|noted| noted.offset == offset);
        let is_noted = |name: &str| noted.is_some_and(|noted| noted.history == name);
        let used = kept.histories.iter().rfind(|own| own.from < end || is_noted(&own.name));
        let used = used.or(kept.histories.front())?;
        Some(Position { history: used.name.clone(), offset })
    }

    /// An offset of the journal as the present history counts it.
    pub fn in_history(&self, offset: u64) -> u64 {
        self.kept.lock().in_history(offset)
    }

    /// An offset of the present history as the journal counts it: 0 for one that is from before the
    /// journal began.
    pub fn in_journal(&self, offset: u64) -> u64 {
        // The journal may be further than the history, which it has taken over from another server.
        let own = offset.wrapping_sub(self.in_history(0)).cast_signed();
        u64::try_from(own).unwrap_or(0)
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

    /// Keeps everything after this offset for a reader of this number, beyond the limit, or nothing
    /// for it any more. The caller chooses a number that no other reader has.
    pub fn pin(&self, number: u64, needed: Option<u64>) {
        let mut kept = self.kept.lock();
        kept.pins.retain(|(own, _)| *own != number);
        kept.pins.extend(needed.map(|from| (number, from)));
        kept.shorten(self.limit.load(Relaxed));
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
        self.readers.add(wake)
    }

    /// Removes a reader.
    pub fn remove_reader(&self, reader: &Arc<Reader>) {
        self.readers.remove(reader);
    }

    /// Lets a reader be woken, once, when something is appended, or may be shown, from now on.
    /// Returns false, and it need not be woken, when there is something after `seen`, the end of
    /// the journal when it looked last.
    pub fn begin_rest(&self, reader: &Reader, seen: u64) -> bool {
        self.readers.begin_rest(reader, || self.newest() > seen)
    }

    /// Has the readers look at the appended effects. Costs next to nothing while they are busy.
    #[inline]
    pub fn wake(&self) {
        self.readers.wake();
    }

    /// Lets the calling thread, which tells followers, rest until there is something to tell,
    /// `longest` at most. It does not rest when there is something after `seen`, the end of the
    /// journal when it looked last.
    pub fn rest(&self, seen: u64, longest: Duration) {
        self.readers.rest(longest, || self.newest() > seen);
    }
}

#[cfg(test)]
mod tests;
