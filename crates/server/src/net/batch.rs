//! Commands that a worker has parsed, of all its connections, and runs together.

use std::ops::Range;

use engine::command::args::KeyAt;
use engine::engine::Row;
use resp::args::ArgRange;

/// Space is kept for this many of the next commands.
const KEPT: usize = 32;

/// One parsed command of the batch.
pub(super) struct Item {
    pub(super) connection_index: usize,
    pub(super) row: Option<&'static Row>,
    pub(super) args: Range<usize>,
    pub(super) keys: Range<usize>,
}

/// Parsed commands that must run now.
#[derive(Default)]
pub(super) struct CommandBatch {
    pub(super) items: Vec<Item>,
    /// The arguments of all commands, one command after the other.
    pub(super) args: Vec<ArgRange>,
    /// The keys of all commands, likewise.
    pub(super) keys: Vec<KeyAt>,
}

impl CommandBatch {
    /// Adds a command of the connection at `connection_index`, with the arguments and keys from
    /// `args` and `keys` on.
    #[inline]
    pub(super) fn add(
        &mut self,
        connection_index: usize,
        row: Option<&'static Row>,
        args: usize,
        keys: usize,
    ) {
        let (args, keys) = (args..self.args.len(), keys..self.keys.len());
        self.items.push(Item { connection_index, row, args, keys });
    }

    /// The present end, to come back to.
    pub(super) fn mark(&self) -> [usize; 3] {
        [self.items.len(), self.args.len(), self.keys.len()]
    }

    /// Takes back everything that was added since `mark`.
    pub(super) fn roll_back(&mut self, [items, args, keys]: [usize; 3]) {
        self.items.truncate(items);
        self.args.truncate(args);
        self.keys.truncate(keys);
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.args.clear();
        self.keys.clear();
    }

    pub(super) fn memory(&self) -> usize {
        self.items.capacity() * size_of::<Item>()
            + self.args.capacity() * size_of::<ArgRange>()
            + self.keys.capacity() * size_of::<KeyAt>()
    }

    /// Frees the space of a large batch. A load that goes on soon has it again.
    pub(super) fn give_back_space(&mut self) {
        self.items.shrink_to(KEPT);
        self.args.shrink_to(KEPT);
        self.keys.shrink_to(KEPT);
    }
}
