//! What is kept: blocks of the stream, and where histories begin in it.

use std::collections::VecDeque;
use std::sync::Arc;

use base::limits;

use super::position::{Gone, Position};
use crate::journal::block::Block;

/// The name of no history: after a gap, before another history has begun. No client follows from
/// there.
const NO_HISTORY: &str = "none";

/// The offset at which a history begins.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) name: String,
    pub(super) from: u64,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) blocks: VecDeque<Arc<Block>>,
    /// Memory that they take.
    pub(super) memory: usize,
    /// The offset before the first byte that is kept. The block that it is in may begin earlier.
    pub(super) start: u64,
    /// The offset after the last, while there is no block.
    pub(super) end: u64,
    /// The oldest first; where one begins, the one before ends.
    pub(super) histories: VecDeque<History>,
    /// What to add to the journal's offsets, wrapping, for those of the histories.
    pub(super) ahead: u64,
    /// The content came from a file, and the journal does not go on from there yet. This database
    /// was selected at its end.
    pub(super) loaded: Option<Option<usize>>,
    /// Some history has begun in this process.
    pub(super) named: bool,
    /// The offset from which on somebody needs what is kept, beyond the limit: a replica.
    pub(super) needed: Option<u64>,
    /// Likewise, of others that read it for a while: by their numbers.
    pub(super) pins: Vec<(u64, u64)>,
    /// Where a reader stopped last, and the database that is selected there: the next one begins
    /// there most often.
    pub(super) stopped: (u64, Option<usize>),
}

impl Kept {
    pub(super) fn end(&self) -> u64 {
        self.blocks.back().map_or(self.end, |block| block.end())
    }

    /// The block with the bytes after an offset, if there are any.
    pub(super) fn block_behind(&self, offset: u64) -> Option<Arc<Block>> {
        let first = self.blocks.partition_point(|block| block.end() <= offset);
        self.blocks.get(first).map(Arc::clone)
    }

    /// Drops the oldest blocks until no more than this many bytes of memory are taken. The newest
    /// stays, however large it is, so that clients that keep up hear of it.
    pub(super) fn shorten(&mut self, limit: u64) {
        while self.memory as u64 > limit
            && self.blocks.len() > 1
            && self.first_needed().is_none_or(|needed| self.blocks[0].end() <= needed)
            && let Some(oldest) = self.blocks.pop_front()
        {
            self.memory -= oldest.memory();
            self.start = oldest.end();
        }
        while self.histories.get(1).is_some_and(|next| next.from < self.start) {
            self.histories.pop_front();
        }
    }

    /// The offset from which on somebody needs what is kept.
    fn first_needed(&self) -> Option<u64> {
        self.needed.into_iter().chain(self.pins.iter().map(|(_, from)| *from)).min()
    }

    pub(super) fn clear(&mut self) {
        self.clear_at(self.end());
    }

    pub(super) fn clear_at(&mut self, end: u64) {
        self.blocks = VecDeque::new();
        self.memory = 0;
        (self.start, self.end) = (end, end);
        self.stopped = (0, None);
    }

    pub(super) fn begin_history(&mut self, name: String, from: u64) {
        self.named = true;
        self.histories.push_back(History { name, from });
        if self.histories.len() > limits::CHANGES_HISTORIES {
            self.histories.pop_front();
        }
    }

    /// Forgets histories that begin here, and so have no effect, if this one goes on in their
    /// place: a replica that starts goes on in the history of its primary, not in one of its own.
    pub(super) fn forget_unused(&mut self, end: u64, name: &str) {
        if let Some(at) = self.histories.iter().rposition(|own| own.name == name)
            && self.histories.range(at + 1..).all(|later| later.from == end)
        {
            self.histories.truncate(at + 1);
        }
    }

    pub(super) fn in_history(&self, offset: u64) -> u64 {
        offset.wrapping_add(self.ahead)
    }

    pub(super) fn current(&self, offset: u64) -> Option<Position> {
        let last = self.histories.back()?;
        Some(Position { history: last.name.clone(), offset: self.in_history(offset) })
    }

    pub(super) fn position(&self, offset: u64) -> String {
        let own = self.histories.iter().rev().find(|history| history.from <= offset);
        let history = own.or(self.histories.front()).map_or(NO_HISTORY, |history| &history.name);
        Position { history: history.to_owned(), offset: self.in_history(offset) }.to_string()
    }

    /// The journal's offset of a position, if it is kept.
    pub(super) fn known(&self, position: &Position) -> Option<u64> {
        let offset = position.offset.wrapping_sub(self.ahead);
        let at = self.histories.iter().position(|own| own.name == position.history)?;
        let end = self.histories.get(at + 1).map_or(self.end(), |next| next.from);
        let from = self.histories[at].from.max(self.start);
        (from..=end).contains(&offset).then_some(offset)
    }

    pub(super) fn gone(&self, now: u64) -> Gone {
        Gone { oldest: self.position(self.start), newest: self.position(now.max(self.start)) }
    }
}
