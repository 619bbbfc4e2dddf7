//! Replies that wait for the journal.

use std::collections::VecDeque;

use base::clock::Ticks;
use resp::output::Output;

/// Replies that wait until the journal releases an offset.
struct DeferredReply {
    /// Where they begin in the stream of all output; they end at the next such position.
    from: u64,
    offset: u64,
    since: Ticks,
}

/// All replies of a connection that wait for the journal, positions and offsets ascending.
#[derive(Default)]
pub(super) struct Deferred {
    replies: VecDeque<DeferredReply>,
    /// Where the output ended when replies were added that had been written before.
    held: u64,
}

impl Deferred {
    /// Lets the output behind this position wait for this offset of the journal.
    #[inline]
    pub(super) fn add(&mut self, from: u64, offset: u64) {
        if self.replies.back().is_none_or(|last| last.offset < offset) {
            self.replies.push_back(DeferredReply { from, offset, since: Ticks::now() });
        }
    }

    /// Lets output wait that is written already, as far as it was neither sent nor waits.
    #[cold]
    pub(super) fn hold(&mut self, output: &Output, offset: u64) {
        let sent = output.end() - output.len() as u64;
        self.add(sent.max(self.held), offset);
        self.held = output.end();
    }

    /// Releases what depends on nothing after this offset. `note` hears since when it has waited.
    #[inline]
    pub(super) fn release(&mut self, released: u64, note: impl Fn(Ticks)) {
        while let Some(first) = self.replies.pop_front_if(|first| first.offset <= released) {
            note(first.since);
        }
    }

    /// Where the first of them begin.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        self.replies.front().map(|first| first.from)
    }

    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Positions in the output from which replies wait for more than the ones before.
    pub(super) fn len(&self) -> usize {
        self.replies.len()
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.replies.capacity() * size_of::<DeferredReply>()
    }
}
