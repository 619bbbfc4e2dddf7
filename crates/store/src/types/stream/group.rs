//! Consumer groups: which consumer was given which entries and has not acknowledged them.

use std::sync::Arc;

use smallvec::SmallVec;

use super::id::StreamId;
use super::malformed::Malformed;
use super::tree::{Ascending, Tree};
use crate::pack::good_size;

/// A group's or a consumer's name.
pub(super) type Name = Arc<[u8]>;

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingEntry {
    /// When it was delivered last, in milliseconds of Unix time.
    pub delivered_ms: i64,
    /// How often it was delivered.
    pub deliveries: u64,
    /// The number of the consumer that it was delivered to: see [`Group::consumer`].
    pub consumer: u32,
}

/// A member of a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Name,
    /// The last sign of life, in milliseconds of Unix time.
    pub seen_ms: i64,
    /// When it last got something, if ever.
    pub active_ms: Option<i64>,
    /// The entries that it has not acknowledged.
    pending: Tree<StreamId, ()>,
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Entries that it has not acknowledged.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// Their ids, ascending, from one on.
    pub fn pending_from(&self, from: StreamId) -> impl Iterator<Item = StreamId> + '_ {
        self.pending.ascending_from(&from).map(|(id, ())| *id)
    }

    /// The lowest and the highest of their ids.
    pub fn pending_ends(&self) -> Option<(StreamId, StreamId)> {
        Some((*self.pending.first()?.0, *self.pending.last()?.0))
    }

    /// Forgets some, whose ids ascend.
    fn forget_all(&mut self, ids: &[StreamId]) {
        let mut rest = ids;
        while let Some((id, more)) = rest.split_first() {
            let mut followers = more.iter();
            let also = |next: &StreamId| followers.next() == Some(next);
            let removed = self.pending.remove_run(id, also, drop);
            rest = &rest[removed.max(1)..];
        }
    }
}

/// Where a block goes on after an entry. Entries of a block stay at the same distance from each
/// other, so this is right as long as the block exists.
#[derive(Clone, Copy, Default)]
pub(super) struct Position {
    /// The block.
    pub(super) master: StreamId,
    /// The entry.
    pub(super) after: StreamId,
    /// How many bytes after the block's first entry the next one begins.
    pub(super) distance: u32,
}

impl std::fmt::Debug for Position {
    /// Says nothing: with and without it, a group is the same.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Place")
    }
}

impl Position {
    /// The place, if it is the one after this entry, or else the beginning.
    pub(super) fn of(self, entry: StreamId) -> Position {
        if self.after == entry { self } else { Position::default() }
    }
}

/// A group of consumers that share a stream's entries.
#[derive(Clone, Default, Debug)]
pub struct Group {
    /// The last entry that was delivered to any of them.
    pub last_id: StreamId,
    /// How many entries of the stream the group has read, if that is known.
    pub entries_read: Option<u64>,
    /// Where the entry after the last one that was delivered begins, so that it is found at once.
    pub(super) position: Position,
    pending: Tree<StreamId, PendingEntry>,
    consumers: Tree<u32, Consumer>,
    /// The consumers' numbers by their names.
    names: Tree<Name, u32>,
}

impl Group {
    /// A group that begins after an entry.
    pub fn new(last_id: StreamId, entries_read: Option<u64>) -> Group {
        Group { last_id, entries_read, ..Group::default() }
    }

    /// Entries that were delivered and not acknowledged.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// The pending ones with the lowest and the highest id.
    pub fn pending_ends(&self) -> Option<(StreamId, StreamId)> {
        Some((*self.pending.first()?.0, *self.pending.last()?.0))
    }

    /// The pending entries from an id on, ascending.
    pub fn pending_from(&self, from: StreamId) -> PendingIter<'_> {
        PendingIter(self.pending.ascending_from(&from))
    }

    /// One of them.
    pub fn pending(&self, id: StreamId) -> Option<PendingEntry> {
        self.pending.get(&id).copied()
    }

    /// Consumers.
    pub fn consumers_len(&self) -> usize {
        self.consumers.len()
    }

    /// The consumers by name.
    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.names.iter().filter_map(|(_, number)| self.consumers.get(number))
    }

    /// The consumer of this number.
    pub fn consumer(&self, number: u32) -> Option<&Consumer> {
        self.consumers.get(&number)
    }

    /// The number of a consumer.
    pub fn number_of(&self, name: &[u8]) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// The consumer with this number, to note its last sign of life.
    pub fn consumer_mut(&mut self, number: u32) -> Option<&mut Consumer> {
        self.consumers.get_mut(&number)
    }

    /// Adds a consumer, unless there is one of this name. Returns its number, and whether it is
    /// new.
    pub fn add_consumer(&mut self, name: &[u8], now_ms: i64) -> (u32, bool) {
        if let Some(number) = self.number_of(name) {
            return (number, false);
        }
        let number = self.free_number();
        let name: Name = name.into();
        let consumer = Consumer {
            name: Arc::clone(&name),
            seen_ms: now_ms,
            active_ms: None,
            pending: Tree::default(),
        };
        self.consumers.insert(number, consumer);
        self.names.insert(name, number);
        (number, true)
    }

    fn free_number(&self) -> u32 {
        let Some((&last, _)) = self.consumers.last() else { return 0 };
        last.checked_add(1).unwrap_or_else(|| {
            // After four billion consumers: the first gap.
            let numbers = self.consumers.iter().map(|(number, _)| *number);
            let gap = numbers.zip(0..).find(|(number, expected)| number != expected);
            gap.map_or(u32::MAX, |(_, expected)| expected)
        })
    }

    /// Removes a consumer with all its pending entries. Returns how many pending entries it had.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let number = self.names.remove(name)?;
        let consumer = self.consumers.remove(&number)?;
        for (id, ()) in consumer.pending.iter() {
            self.pending.remove(id);
        }
        Some(consumer.pending.len())
    }

    /// Gives an entry to a consumer, whichever consumer had it before.
    pub fn assign(&mut self, id: StreamId, pending: PendingEntry) {
        let before = self.pending.insert(id, pending).map(|before| before.consumer);
        if before == Some(pending.consumer) {
            return;
        }
        if let Some(before) = before.and_then(|number| self.consumers.get_mut(&number)) {
            before.pending.remove(&id);
        }
        if let Some(consumer) = self.consumers.get_mut(&pending.consumer) {
            consumer.pending.insert(id, ());
        }
    }

    /// Gives entries to a consumer, whichever consumer had them before. Their ids ascend.
    pub(super) fn assign_all(&mut self, ids: &[StreamId], pending: PendingEntry) {
        let Some(first) = ids.first() else { return };
        // Mostly they are newer than all others.
        if self.pending.last().is_none_or(|(last, _)| last < first)
            && let Some(consumer) = self.consumers.get_mut(&pending.consumer)
        {
            self.pending.append(ids.iter().map(|id| (*id, pending)));
            consumer.pending.append(ids.iter().map(|id| (*id, ())));
        } else {
            ids.iter().for_each(|id| self.assign(*id, pending));
        }
    }

    /// Forgets that entries were delivered. Returns how many of them were pending. Neighbours whose
    /// ids ascend go together.
    pub fn acknowledge_all(&mut self, ids: &[StreamId]) -> usize {
        let (mut acknowledged, mut rest) = (0, ids);
        while let Some((id, more)) = rest.split_first() {
            let mut owners: SmallVec<[u32; 16]> = SmallVec::new();
            let mut followers = more.iter();
            let removed = self.pending.remove_run(
                id,
                |next| followers.next() == Some(next),
                |pending| owners.push(pending.consumer),
            );
            let mut run = &rest[..removed];
            for owned in owners.chunk_by(|one, next| one == next) {
                let (own, others) = run.split_at(owned.len());
                if let Some(consumer) = self.consumers.get_mut(&owned[0]) {
                    consumer.forget_all(own);
                }
                run = others;
            }
            acknowledged += removed;
            rest = &rest[removed.max(1)..];
        }
        acknowledged
    }

    /// Forgets that an entry was delivered. Returns whether it was pending.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        if let Some(consumer) = self.consumers.get_mut(&pending.consumer) {
            consumer.pending.remove(&id);
        }
        true
    }

    /// Adds a pending entry that a file has, before its consumer is known.
    pub fn load_pending(
        &mut self,
        id: StreamId,
        delivered_ms: i64,
        deliveries: u64,
    ) -> Result<(), Malformed> {
        let pending = PendingEntry { delivered_ms, deliveries, consumer: u32::MAX };
        match self.pending.insert(id, pending) {
            None => Ok(()),
            Some(_) => Err(Malformed::PendingEntry),
        }
    }

    /// Adds a consumer that a file has.
    pub fn load_consumer(
        &mut self,
        name: &[u8],
        seen_ms: i64,
        active_ms: Option<i64>,
    ) -> Result<u32, Malformed> {
        let (number, is_new) = self.add_consumer(name, seen_ms);
        match self.consumers.get_mut(&number) {
            Some(consumer) if is_new => consumer.active_ms = active_ms,
            _ => return Err(Malformed::Consumer),
        }
        Ok(number)
    }

    /// Sets the owner of a pending entry from a file.
    pub fn load_owner(&mut self, id: StreamId, number: u32) -> Result<(), Malformed> {
        let pending = self.pending.get_mut(&id).filter(|own| own.consumer == u32::MAX);
        pending.ok_or(Malformed::PendingEntry)?.consumer = number;
        let consumer = self.consumers.get_mut(&number).ok_or(Malformed::Consumer)?;
        consumer.pending.insert(id, ());
        Ok(())
    }

    /// Refuses a loaded group with a pending entry without an owner.
    pub fn finish_loading(&self) -> Result<(), Malformed> {
        let owned: usize = self.consumers.iter().map(|(_, own)| own.pending.len()).sum();
        if owned == self.pending.len() { Ok(()) } else { Err(Malformed::PendingEntry) }
    }

    /// How many allocations are freed with it, about.
    pub(super) fn freeing(&self) -> usize {
        2 * (self.pending.nodes() + self.consumers.len() + self.consumers.nodes())
    }

    /// Bytes of memory, besides its own.
    pub(super) fn memory(&self) -> usize {
        let name = |name: &Name| good_size(name.len() + 2 * size_of::<usize>());
        let own = self.pending.memory() + self.consumers.memory() + self.names.memory();
        own + self
            .consumers
            .iter()
            .map(|(_, consumer)| name(&consumer.name) + consumer.pending.memory())
            .sum::<usize>()
    }

    /// Asserts the invariants.
    pub(super) fn check(&self) {
        self.pending.check();
        self.consumers.check();
        self.names.check();
        assert_eq!(self.consumers.len(), self.names.len());
        for (name, number) in self.names.iter() {
            assert_eq!(self.consumers.get(number).map(|own| &own.name), Some(name));
        }
        for (number, consumer) in self.consumers.iter() {
            consumer.pending.check();
            for (id, ()) in consumer.pending.iter() {
                assert_eq!(self.pending.get(id).map(|own| own.consumer), Some(*number));
            }
        }
        assert_eq!(self.finish_loading(), Ok(()));
    }
}

/// Pending entries, ascending.
#[derive(Clone)]
pub struct PendingIter<'g>(Ascending<'g, StreamId, PendingEntry>);

impl Iterator for PendingIter<'_> {
    type Item = (StreamId, PendingEntry);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(id, pending)| (*id, *pending))
    }
}
