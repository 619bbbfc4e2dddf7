//! Streams: entries in the order of their ids, and groups of consumers that read them.
//!
//! The entries lie in packed blocks (`stream/block.rs`). An ordered map (`stream/tree.rs`) finds
//! them by their first ids. Blocks, the map, and the groups with their pending entries are shared
//! between copies until one of them changes, so that a snapshot takes a stream of any size by
//! reference, and COPY costs nothing.

mod block;
mod group;
mod id;
mod limits;
mod malformed;
mod parts;
#[cfg(test)]
mod tests;
mod tree;

use std::cmp::Ordering;
use std::sync::Arc;

use base::limits::{FREED_AT_ONCE, FREED_AT_ONCE_BYTES};

use crate::garbage;
use crate::pack::{ListpackSlice, good_size};
use block::{Block, Walk};
pub use block::{Fields, StreamEntry};
pub use group::{Consumer, Group, PendingEntry, PendingIter};
use group::{Name, Position};
pub use id::{StreamId, StreamIds};
pub use limits::StreamLimits;
pub use malformed::Malformed;
use tree::{Ascending, Descending, Tree};

/// How far to cut a stream at its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrimTo {
    /// To this many entries.
    Len(u64),
    /// To the entries from this id on.
    From(StreamId),
}

/// How to cut a stream at its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trim {
    /// How far.
    pub to: TrimTo,
    /// Only whole blocks go.
    pub by_blocks: bool,
    /// Remove this many entries at most, if there is a bound. A block that would exceed it stays.
    pub limit: Option<u64>,
}

/// What happens to the groups' pending entries when the entries themselves are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum References {
    /// They stay, though the entries cannot be delivered again.
    #[default]
    Keep,
    /// They go, too.
    Delete,
    /// Entries are deleted only if all groups have read and acknowledged them.
    Acknowledged,
}

/// The outcome of the deletion of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// It was not there.
    Missing,
    /// It is gone.
    Deleted,
    /// It stays, since a group still needs it.
    Referenced,
}

/// Frees blocks, or puts them aside if they are many or large: the stream's slot may be locked.
fn put_aside(blocks: Vec<Block>) {
    let bytes = blocks.iter().map(Block::memory).sum();
    if blocks.len() > FREED_AT_ONCE || bytes > FREED_AT_ONCE_BYTES {
        garbage::put_others_aside(blocks, bytes);
    }
}

/// A stream: eight bytes, as `Option<Stream>` is.
#[repr(transparent)]
#[derive(Clone)]
pub struct Stream(Box<Body>);

#[derive(Clone, Default)]
struct Body {
    numbers: StreamNumbers,
    /// The entries, by the first id of each block.
    blocks: Tree<StreamId, Block>,
    groups: Tree<Name, Group>,
}

/// The numbers that a stream keeps about its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamNumbers {
    /// Entries.
    pub len: u64,
    /// The last id that was ever given.
    pub last_id: StreamId,
    /// The id of the first entry; the smallest id when there is none.
    pub first_id: StreamId,
    /// The largest id of the entries that were deleted one by one.
    pub max_deleted_id: StreamId,
    /// How many entries were ever added.
    pub entries_added: u64,
}

impl StreamNumbers {
    /// Whether an entry at or after this id may have been deleted.
    fn has_gaps_from(&self, id: StreamId) -> bool {
        self.len > 0 && !self.max_deleted_id.is_min() && id <= self.max_deleted_id
    }

    /// How many of all entries ever added have ids up to this one, if that can be told.
    pub fn entries_up_to(&self, id: StreamId) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if self.len == 0 && id <= self.last_id {
            return Some(self.entries_added);
        }
        if !id.is_min() && id < self.max_deleted_id {
            return None;
        }
        match id.cmp(&self.last_id) {
            Ordering::Equal => return Some(self.entries_added),
            Ordering::Greater => return None,
            Ordering::Less => {}
        }
        let gone = self.entries_added.wrapping_sub(self.len);
        let whole = self.max_deleted_id.is_min() || self.max_deleted_id < self.first_id;
        match id.cmp(&self.first_id) {
            Ordering::Less if whole => Some(gone),
            Ordering::Equal if whole => Some(gone.wrapping_add(1)),
            _ => None,
        }
    }

    /// How many entries a group has not yet read, if that can be told.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        if self.entries_added == 0 || self.len == 0 {
            return Some(0);
        }
        if group.last_id < self.first_id && self.max_deleted_id < self.first_id {
            return Some(self.len.cast_signed());
        }
        let known = group.entries_read.filter(|_| !self.has_gaps_from(group.last_id));
        let read = known.or_else(|| self.entries_up_to(group.last_id))?;
        Some(self.entries_added.wrapping_sub(read).cast_signed())
    }
}

impl Group {
    /// Notes that the entry with this id was delivered. The id is above the ones before.
    #[inline]
    fn note_delivered(&mut self, numbers: &StreamNumbers, id: StreamId) {
        let counts = self.last_id >= numbers.first_id && !numbers.has_gaps_from(self.last_id);
        if let Some(read) = self.entries_read.filter(|_| counts) {
            self.entries_read = read.checked_add(1);
        } else if numbers.entries_added > 0 {
            self.entries_read = numbers.entries_up_to(id);
        }
        self.last_id = id;
    }
}

/// How entries are given to a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The number of the consumer.
    pub consumer: u32,
    /// The time, in milliseconds of Unix time.
    pub now_ms: i64,
    /// Entries at most.
    pub count: usize,
    /// Whether they are pending until they are acknowledged.
    pub pending: bool,
}

impl Stream {
    /// An empty stream.
    pub fn new() -> Stream {
        Stream(Box::default())
    }

    /// Entries.
    pub fn len(&self) -> usize {
        self.0.numbers.len as usize
    }

    /// Whether there are no entries. An empty stream is a value like any other.
    pub fn is_empty(&self) -> bool {
        self.0.numbers.len == 0
    }

    /// The numbers about its entries.
    pub fn numbers(&self) -> &StreamNumbers {
        &self.0.numbers
    }

    /// The last id that was ever given.
    pub fn last_id(&self) -> StreamId {
        self.0.numbers.last_id
    }

    /// Blocks.
    pub fn block_count(&self) -> usize {
        self.0.blocks.len()
    }

    /// Blocks, and nodes of the map that finds them.
    pub fn node_count(&self) -> usize {
        self.0.blocks.nodes().max(1) + self.0.blocks.len()
    }

    /// The blocks as a file has them, by the id that ids in them are counted from.
    pub fn blocks(&self) -> impl Iterator<Item = (StreamId, &[u8])> {
        self.0.blocks.iter().map(|(master, block)| (*master, block.listpack().as_bytes()))
    }

    /// Sets the last id, and how many were ever added and the largest deleted id where given.
    pub fn set_last_id(
        &mut self,
        last_id: StreamId,
        entries_added: Option<u64>,
        max_deleted_id: Option<StreamId>,
    ) {
        let Body { numbers, groups, .. } = &mut *self.0;
        if last_id < numbers.last_id {
            // Another block may get the id of one that is gone.
            let names: Vec<Name> = groups.iter().map(|(name, _)| Arc::clone(name)).collect();
            for name in &names {
                if let Some(group) = groups.get_mut(name) {
                    group.position = Position::default();
                }
            }
        }
        numbers.last_id = last_id;
        numbers.entries_added = entries_added.unwrap_or(numbers.entries_added);
        numbers.max_deleted_id = max_deleted_id.unwrap_or(numbers.max_deleted_id);
    }

    /// Adds an entry, whose id is above all others, with names and values of its fields in turns.
    ///
    /// # Panics
    /// If the id is not above the last one.
    pub fn push<'f>(
        &mut self,
        id: StreamId,
        fields: impl ExactSizeIterator<Item = &'f [u8]> + Clone,
        limits: StreamLimits,
    ) {
        let Body { numbers, blocks, .. } = &mut *self.0;
        assert!(id > numbers.last_id, "ids ascend");
        let bytes: usize = fields.clone().map(<[u8]>::len).sum();
        match blocks.last_mut() {
            Some((&master, block)) if !block.is_full_for(bytes, limits) => {
                block.push(master, id, fields, limits);
            }
            last => {
                let follows = last.is_some();
                if let Some((_, full)) = last {
                    full.close();
                }
                let mut block = Block::new(fields.clone().step_by(2), follows, limits);
                block.push(id, id, fields, limits);
                blocks.insert(id, block);
            }
        }
        numbers.len += 1;
        numbers.entries_added = numbers.entries_added.wrapping_add(1);
        numbers.last_id = id;
        if numbers.len == 1 {
            numbers.first_id = id;
        }
    }

    /// The entries from one id to another, ascending.
    pub fn range(&self, from: StreamId, to: StreamId) -> StreamRange<'_> {
        range(&self.0.blocks, from, to)
    }

    /// The entries from one id to another, descending: `from` is the lower one.
    pub fn range_back(&self, from: StreamId, to: StreamId) -> StreamRangeBack<'_> {
        StreamRangeBack { blocks: self.0.blocks.descending_from(&to), walk: None, from, to }
    }

    /// An entry.
    pub fn get(&self, id: StreamId) -> Option<StreamEntry<'_>> {
        let (master, block) = self.0.blocks.descending_from(&id).next()?;
        block.walk(*master).find(|entry| entry.id >= id).filter(|entry| entry.id == id)
    }

    /// The id of the last entry, if there is one.
    pub fn last_entry_id(&self) -> Option<StreamId> {
        self.range_back(StreamId::MIN, StreamId::MAX).next().map(|entry| entry.id)
    }

    /// Deletes an entry. Returns whether it was there.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let body = &mut *self.0;
        let Some((&master, _)) = body.blocks.descending_from(&id).next() else { return false };
        let Some(block) = body.blocks.get_mut(&master) else { return false };
        if !block.delete(master, id) {
            return false;
        }
        if block.live() == 0 {
            put_aside(body.blocks.remove(&master).into_iter().collect());
        }
        body.numbers.len -= 1;
        body.numbers.max_deleted_id = body.numbers.max_deleted_id.max(id);
        if id == body.numbers.first_id {
            body.find_first();
        }
        true
    }

    /// Removes entries from the beginning. Returns how many.
    pub fn trim(&mut self, trim: &Trim) -> u64 {
        let body = &mut *self.0;
        let (mut removed, mut blocks) = (0, Vec::new());
        while let Some((&master, block)) = body.blocks.first() {
            let (len, live) = (body.numbers.len, block.live());
            if matches!(trim.to, TrimTo::Len(to) if len <= to)
                || trim.limit.is_some_and(|limit| removed + live > limit)
            {
                break;
            }
            let goes = match trim.to {
                TrimTo::Len(to) => len - live >= to,
                TrimTo::From(id) => block.last_id(master) < id,
            };
            if goes {
                blocks.extend(body.blocks.remove(&master));
                body.numbers.len -= live;
                removed += live;
                continue;
            }
            if !trim.by_blocks {
                removed += body.trim_block(master, trim.to);
            }
            break;
        }
        if removed > 0 {
            body.find_first();
        }
        put_aside(blocks);
        removed
    }

    /// [`Stream::delete`], with regard to groups.
    pub fn delete_with(&mut self, id: StreamId, references: References) -> Deletion {
        if self.get(id).is_none() {
            return Deletion::Missing;
        }
        match references {
            References::Keep => {}
            References::Delete => {
                self.forget(id);
            }
            References::Acknowledged if self.is_referenced(id) => return Deletion::Referenced,
            References::Acknowledged => {}
        }
        self.delete(id);
        Deletion::Deleted
    }

    /// [`Stream::trim`] that takes account of groups. Returns the ids of the removed entries if
    /// they were not the first ones of the stream, and in any case how many they are.
    pub fn trim_with(&mut self, trim: &Trim, references: References) -> (Vec<StreamId>, u64) {
        match references {
            References::Keep => (Vec::new(), self.trim(trim)),
            References::Delete => {
                for id in self.would_trim(trim) {
                    self.forget(id);
                }
                (Vec::new(), self.trim(trim))
            }
            References::Acknowledged => {
                let mut ids = self.would_trim(trim);
                ids.retain(|id| self.delete_with(*id, references) == Deletion::Deleted);
                let removed = ids.len() as u64;
                (ids, removed)
            }
        }
    }

    /// The ids of the entries that a trim removes.
    fn would_trim(&self, trim: &Trim) -> Vec<StreamId> {
        let (mut len, mut ids) = (self.0.numbers.len, Vec::new());
        for (&master, block) in self.0.blocks.iter() {
            let live = block.live();
            let beyond = |limit| ids.len() as u64 + live > limit;
            if matches!(trim.to, TrimTo::Len(to) if len <= to) || trim.limit.is_some_and(beyond) {
                break;
            }
            let goes = match trim.to {
                TrimTo::Len(to) => len - live >= to,
                TrimTo::From(id) => block.last_id(master) < id,
            };
            if !goes && trim.by_blocks {
                break;
            }
            for entry in block.walk(master) {
                let stays = match trim.to {
                    TrimTo::Len(to) => len <= to,
                    TrimTo::From(id) => entry.id >= id,
                };
                if stays {
                    return ids;
                }
                ids.push(entry.id);
                len -= 1;
            }
        }
        ids
    }

    /// Whether a group has still to deliver an entry of this id, or to acknowledge it.
    pub fn is_referenced(&self, id: StreamId) -> bool {
        let mut groups = self.0.groups.iter();
        groups.any(|(_, group)| id > group.last_id || group.pending(id).is_some())
    }

    /// All groups forget that an entry was delivered. Returns whether it was pending in one of
    /// them.
    pub fn forget(&mut self, id: StreamId) -> bool {
        let has = |group: &Group| group.pending(id).is_some();
        let names = self.0.groups.iter().filter(|(_, group)| has(group));
        let names: Vec<Name> = names.map(|(name, _)| Arc::clone(name)).collect();
        for name in &names {
            if let Some(group) = self.0.groups.get_mut(name) {
                group.acknowledge(id);
            }
        }
        !names.is_empty()
    }

    /// The groups by name.
    pub fn groups(&self) -> impl Iterator<Item = (&[u8], &Group)> {
        self.0.groups.iter().map(|(name, group)| (&**name, group))
    }

    /// Groups.
    pub fn group_count(&self) -> usize {
        self.0.groups.len()
    }

    /// A group.
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.0.groups.get(name)
    }

    /// A group, for a change.
    pub fn group_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        self.0.groups.get_mut(name)
    }

    /// Adds a group, unless there is one of this name. Returns whether it did.
    pub fn add_group(&mut self, name: &[u8], group: Group) -> bool {
        let is_new = self.group(name).is_none();
        if is_new {
            self.0.groups.insert(name.into(), group);
        }
        is_new
    }

    /// Removes a group. Returns whether there was one.
    pub fn remove_group(&mut self, name: &[u8]) -> bool {
        let Some(group) = self.0.groups.remove(name) else { return false };
        let steps = group.freeing();
        if steps > FREED_AT_ONCE {
            garbage::put_others_aside(group, steps * size_of::<PendingEntry>());
        }
        true
    }

    /// Gives a consumer the entries that no consumer of its group has got, and shows them. Returns
    /// their ids.
    pub fn deliver(
        &mut self,
        group: &[u8],
        delivery: &Delivery,
        mut show: impl FnMut(&StreamEntry<'_>),
    ) -> StreamIds {
        let Body { numbers, blocks, groups } = &mut *self.0;
        let mut given = StreamIds::new();
        let Some(group) = groups.get_mut(group) else { return given };
        let Some(from) = group.last_id.next() else { return given };
        let &Delivery { consumer, now_ms, count, pending } = delivery;
        let mut entries = range(blocks, from, StreamId::MAX);
        entries.begin_at(group.position.of(group.last_id));
        while given.len() < count
            && let Some(entry) = entries.next()
        {
            group.note_delivered(numbers, entry.id);
            group.position = entries.position_after(entry.id);
            show(&entry);
            given.push(entry.id);
        }
        if pending && !given.is_empty() {
            group
                .assign_all(&given, PendingEntry { delivered_ms: now_ms, deliveries: 1, consumer });
            if let Some(own) = group.consumer_mut(consumer) {
                own.active_ms = Some(now_ms);
            }
        }
        given
    }

    /// Whether freeing it should be left to the background: see [`crate::Entry::is_large`].
    pub(crate) fn frees_slowly(&self) -> bool {
        let Body { blocks, groups, .. } = &*self.0;
        blocks.len() > FREED_AT_ONCE
            || groups.len() > FREED_AT_ONCE
            || blocks.iter().map(|(_, block)| block.memory()).sum::<usize>() > FREED_AT_ONCE_BYTES
            || groups.iter().map(|(_, group)| group.freeing()).sum::<usize>() > FREED_AT_ONCE
    }

    /// Bytes, estimated from `samples` blocks where there are more.
    pub fn memory_usage(&self, samples: usize) -> usize {
        let Body { blocks, groups, .. } = &*self.0;
        let sampled = samples.clamp(1, blocks.len().max(1));
        let bytes: usize = blocks.iter().take(sampled).map(|(_, block)| block.memory()).sum();
        // The last block often has few bytes.
        let all = match blocks.len() {
            few if few <= sampled => bytes,
            many => {
                let last = blocks.last().map_or(0, |(_, block)| block.memory());
                (bytes as u128 * (many as u128 - 1) / sampled as u128) as usize + last
            }
        };
        let groups_own: usize =
            groups.iter().map(|(name, group)| good_size(name.len() + 16) + group.memory()).sum();
        good_size(size_of::<Body>()) + blocks.memory() + all + groups.memory() + groups_own
    }

    /// Asserts the invariants.
    ///
    /// # Panics
    /// If one is violated.
    pub fn check(&self) {
        let Body { numbers, blocks, groups } = &*self.0;
        blocks.check();
        groups.check();
        blocks.iter().for_each(|(master, block)| block.check(*master));
        groups.iter().for_each(|(_, group)| group.check());
        let ids: Vec<StreamId> =
            self.range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "ids ascend");
        assert_eq!(ids.len() as u64, numbers.len);
        assert_eq!(ids.first().copied().unwrap_or_default(), numbers.first_id);
        assert!(ids.last().is_none_or(|last| *last <= numbers.last_id));
    }
}

impl Default for Stream {
    fn default() -> Stream {
        Stream::new()
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.numbers.fmt(f)
    }
}

impl Body {
    fn find_first(&mut self) {
        let first = range(&self.blocks, StreamId::MIN, StreamId::MAX).next();
        self.numbers.first_id = first.map_or(StreamId::MIN, |entry| entry.id);
    }

    /// Deletes entries from the beginning of the first block, which has more than should be
    /// deleted.
    fn trim_block(&mut self, master: StreamId, to: TrimTo) -> u64 {
        let Some(block) = self.blocks.get_mut(&master) else { return 0 };
        let len = self.numbers.len;
        let removed = block.delete_first(master, |id, removed| match to {
            TrimTo::Len(to) => len - removed > to,
            TrimTo::From(from) => id < from,
        });
        if block.live() == 0 {
            self.blocks.remove(&master);
        }
        self.numbers.len -= removed;
        removed
    }
}

/// A stream that is being built from a file.
#[derive(Default)]
pub struct StreamBuilder {
    stream: Stream,
    last: Option<StreamId>,
    len: u64,
}

impl StreamBuilder {
    /// Nothing yet.
    pub fn new() -> StreamBuilder {
        StreamBuilder::default()
    }

    /// Adds a block after the others.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn add_block(&mut self, master: StreamId, listpack: &[u8]) -> Result<(), Malformed> {
        let listpack = ListpackSlice::from_bytes(listpack).map_err(Malformed::Listpack)?;
        let Some(block) = Block::from_listpack(master, listpack)? else { return Ok(()) };
        if self.last.is_some_and(|last| master <= last) {
            return Err(Malformed::Order);
        }
        let mut walk = block.walk(master);
        self.last = walk.next_back().map(|entry| entry.id);
        self.len += block.live();
        self.stream.0.blocks.insert(master, block);
        Ok(())
    }

    /// The stream, whose groups are still to be added. The first id is that of the first entry,
    /// even if `numbers` differ.
    ///
    /// # Errors
    /// The blocks do not match `numbers`.
    pub fn finish(mut self, numbers: StreamNumbers) -> Result<Stream, Malformed> {
        if self.len != numbers.len {
            return Err(Malformed::Count);
        }
        if self.last.is_some_and(|last| last > numbers.last_id) {
            return Err(Malformed::Order);
        }
        self.stream.0.numbers = numbers;
        self.stream.0.find_first();
        Ok(self.stream)
    }
}

fn range(blocks: &Tree<StreamId, Block>, from: StreamId, to: StreamId) -> StreamRange<'_> {
    StreamRange { blocks: blocks.ascending_from_below(&from), walk: None, from, to }
}

/// Entries, ascending.
#[derive(Clone)]
pub struct StreamRange<'s> {
    blocks: Ascending<'s, StreamId, Block>,
    walk: Option<Walk<'s>>,
    from: StreamId,
    to: StreamId,
}

impl StreamRange<'_> {
    /// Passes over the entries before a place at once, if it is in the first block.
    fn begin_at(&mut self, position: Position) {
        let Some((&master, block)) = self.blocks.next() else { return };
        let mut walk = block.walk(master);
        if position.master == master {
            walk.pass_to(position.distance);
        }
        self.walk = Some(walk);
    }

    /// The position after the entry of this id, which it has just answered.
    #[inline]
    fn position_after(&self, after: StreamId) -> Position {
        let walk = self.walk.as_ref();
        walk.map_or(Position::default(), |walk| {
            let (master, distance) = walk.current_position();
            Position { master, after, distance }
        })
    }
}

impl<'s> Iterator for StreamRange<'s> {
    type Item = StreamEntry<'s>;

    #[inline]
    fn next(&mut self) -> Option<StreamEntry<'s>> {
        loop {
            let walk = match &mut self.walk {
                Some(walk) => walk,
                None => {
                    let (&master, block) = self.blocks.next()?;
                    if master > self.to {
                        return None;
                    }
                    self.walk.insert(block.walk(master))
                }
            };
            match walk.find(|entry| entry.id >= self.from) {
                Some(entry) => return (entry.id <= self.to).then_some(entry),
                None => self.walk = None,
            }
        }
    }
}

/// Entries, descending.
pub struct StreamRangeBack<'s> {
    blocks: Descending<'s, StreamId, Block>,
    walk: Option<Walk<'s>>,
    from: StreamId,
    to: StreamId,
}

impl<'s> Iterator for StreamRangeBack<'s> {
    type Item = StreamEntry<'s>;

    #[inline]
    fn next(&mut self) -> Option<StreamEntry<'s>> {
        loop {
            let walk = match &mut self.walk {
                Some(walk) => walk,
                None => {
                    let (&master, block) = self.blocks.next()?;
                    self.walk.insert(block.walk(master))
                }
            };
            while let Some(entry) = walk.next_back() {
                if entry.id <= self.to {
                    return (entry.id >= self.from).then_some(entry);
                }
            }
            self.walk = None;
        }
    }
}
