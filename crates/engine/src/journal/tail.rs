//! The end of the stream, where effects are encoded: once, for all who read them.

use std::sync::Arc;

use base::limits;

use crate::journal::backlog::Backlog;
use crate::journal::batch::{EffectBatch, Sink};
use crate::journal::block::{Block, Filling, Room};

/// See the module's text. Who shares it locks it, which orders the stream.
#[derive(Default)]
pub struct Tail {
    /// The present block. None is there before the first effect after a change.
    filling: Option<Filling>,
    /// Blocks of the usual size that nobody needs any more.
    spare: Vec<Arc<Block>>,
    end: u64,
    /// The database that the next effect applies to, unless it is preceded by SELECT.
    selected: Option<usize>,
}

impl Tail {
    /// The offset after everything.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The database that is selected at the end, if one is known to be.
    #[inline]
    pub fn selected(&self) -> Option<usize> {
        self.selected
    }

    /// Goes on at another offset, with another database selected.
    pub fn go_on_from(&mut self, end: u64, selected: Option<usize>) {
        self.close();
        (self.end, self.selected) = (end, selected);
    }

    /// Ends the present block.
    pub fn close(&mut self) {
        self.filling = None;
    }

    /// The present block, and how much of it is in use.
    #[inline]
    pub fn present(&self) -> Option<(&Arc<Block>, usize)> {
        self.filling.as_ref().map(|filling| (filling.block(), filling.len()))
    }

    /// Whether the present block has room for a batch.
    #[inline]
    pub fn has_room_for(&self, batch: &EffectBatch) -> bool {
        self.has_room(batch.most_in_stream())
    }

    /// Whether the present block has room for so many bytes.
    #[inline]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.filling.as_ref().is_some_and(|filling| filling.room() >= bytes)
    }

    /// Appends a batch. A new block is begun if need be, which a backlog that is on keeps. Returns
    /// the offset after it.
    #[inline]
    pub fn append(&mut self, batch: &EffectBatch, backlog: &Backlog) -> u64 {
        let most = batch.most_in_stream();
        self.write(most, backlog, |room, selected| batch.write_to(room, selected))
    }

    /// Appends bytes that are encoded already: whole effects, after which this database is
    /// selected.
    pub fn append_raw(
        &mut self,
        bytes: &[u8],
        selected_after: Option<usize>,
        backlog: &Backlog,
    ) -> u64 {
        self.write(bytes.len(), backlog, |room, selected| {
            room.put(bytes);
            *selected = selected_after;
        })
    }

    #[inline]
    fn write(
        &mut self,
        most: usize,
        backlog: &Backlog,
        write: impl FnOnce(&mut Room<'_>, &mut Option<usize>),
    ) -> u64 {
        if !self.has_room(most) {
            self.begin_block(most, backlog);
        }
        let Some(filling) = &mut self.filling else { unreachable!("it was begun") };
        let selected = &mut self.selected;
        self.end += filling.add(|room| write(room, selected)) as u64;
        self.end
    }

    #[cold]
    fn begin_block(&mut self, most: usize, backlog: &Backlog) {
        self.close();
        let size = backlog.block_size();
        let spare = if most <= size { self.spare.pop() } else { None };
        let filling = Filling::begin((self.end, self.selected), size.max(most), spare);
        if backlog.is_on() {
            backlog.push(Arc::clone(filling.block()));
        }
        self.filling = Some(filling);
    }

    /// Takes blocks that nobody else needs, to use them again.
    pub fn give_back(&mut self, blocks: impl Iterator<Item = Arc<Block>>) {
        let room = limits::JOURNAL_SPARE_BLOCKS.saturating_sub(self.spare.len());
        let usual = blocks.filter(|block| block.capacity() == limits::JOURNAL_BLOCK);
        self.spare.extend(usual.take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(database: usize, value: &str) -> EffectBatch {
        let mut batch = EffectBatch::default();
        batch.push(database, [&b"SET"[..], b"k", value.as_bytes()].into_iter());
        batch
    }

    #[test]
    fn the_stream_is_the_same_in_blocks_of_every_size() {
        let values: Vec<_> = (0..200).map(|n| "v".repeat(n * 7 % 1500)).collect();
        let mut expected = Vec::new();
        let mut selected = None;
        for (n, value) in values.iter().enumerate() {
            batch(n / 20, value).write_to(&mut expected, &mut selected);
        }
        for limit in [0, 20_000, 1 << 20, 1 << 30] {
            let (mut tail, backlog) = (Tail::default(), Backlog::default());
            backlog.set_limit(limit);
            let mut blocks: Vec<Arc<Block>> = Vec::new();
            for (n, value) in values.iter().enumerate() {
                let fits = tail.has_room_for(&batch(n / 20, value));
                tail.append(&batch(n / 20, value), &backlog);
                let (block, length) = tail.present().unwrap();
                assert_eq!(tail.end(), block.start() + length as u64);
                let is_same = blocks.last().is_some_and(|last| Arc::ptr_eq(last, block));
                assert_eq!(is_same, fits);
                if !is_same {
                    blocks.push(Arc::clone(block));
                }
            }
            let bytes: Vec<_> = blocks.iter().map(|block| block.bytes()).collect();
            assert_eq!(bytes.concat(), expected);
            assert!(blocks.is_sorted_by(|one, next| one.end() == next.start()));
        }
    }

    #[test]
    fn blocks_are_used_again() {
        let (mut tail, backlog) = (Tail::default(), Backlog::default());
        tail.append(&batch(0, "x"), &backlog);
        let block = Arc::clone(tail.present().unwrap().0);
        tail.close();
        let place = Arc::as_ptr(&block);
        tail.give_back(std::iter::once(block));
        tail.append(&batch(0, "y"), &backlog);
        let (block, length) = tail.present().unwrap();
        assert_eq!(Arc::as_ptr(block), place);
        assert_eq!((block.selected(), block.bytes().len()), (Some(0), length));
    }
}
