//! Iteration in the order of ranks.

use std::iter::FusedIterator;
use std::ops;
use std::slice;

use super::Ranked;
use super::item::RankedItem;

/// How many elements ahead of its caller an iteration prefetches.
const LOOK_AHEAD: usize = 8;

impl<I: RankedItem> Ranked<I> {
    /// All elements, ascending; `.rev()` for descending.
    pub fn iter(&self) -> Range<'_, I> {
        self.range(0..self.len)
    }

    /// The elements whose ranks are in `ranks`, cut to those present; ascending, or descending
    /// with `.rev()`.
    pub fn range(&self, ranks: ops::Range<usize>) -> Range<'_, I> {
        Range::new(self, ranks)
    }
}

/// An iteration over elements in the order of their ranks; made by [`Ranked::range`].
///
/// It walks leaf by leaf and finds the next leaf by its rank: a descent every 64 elements costs
/// less than keeping a stack of nodes current, and serves both directions.
pub struct Range<'a, I> {
    tree: &'a Ranked<I>,
    /// The ranks that neither `front` nor `back` has taken over: `start..end`.
    start: usize,
    end: usize,
    front: slice::Iter<'a, I>,
    back: slice::Iter<'a, I>,
}

impl<'a, I: RankedItem> Range<'a, I> {
    fn new(tree: &'a Ranked<I>, ranks: ops::Range<usize>) -> Self {
        let end = ranks.end.min(tree.len());
        let start = ranks.start.min(end);
        Range { tree, start, end, front: [].iter(), back: [].iter() }
    }

    /// Takes over the next leaf at the front. Returns whether there was one.
    #[cold]
    fn advance_front(&mut self) -> bool {
        if self.start == self.end {
            return false;
        }
        let (items, position) = self.tree.leaf_at(self.start);
        let taken = (items.len() - position).min(self.end - self.start);
        self.start += taken;
        let items = &items[position..position + taken];
        items.iter().take(LOOK_AHEAD).for_each(I::prefetch);
        self.front = items.iter();
        true
    }

    /// Takes over the next leaf at the back. Returns whether there was one.
    #[cold]
    fn advance_back(&mut self) -> bool {
        if self.start == self.end {
            return false;
        }
        let (items, position) = self.tree.leaf_at(self.end - 1);
        let taken = (position + 1).min(self.end - self.start);
        self.end -= taken;
        let items = &items[position + 1 - taken..=position];
        items.iter().rev().take(LOOK_AHEAD).for_each(I::prefetch);
        self.back = items.iter();
        true
    }
}

impl<I: RankedItem> Iterator for Range<'_, I> {
    type Item = I;

    #[inline]
    fn next(&mut self) -> Option<I> {
        if self.front.len() == 0 && !self.advance_front() {
            return self.back.next().copied();
        }
        if let Some(ahead) = self.front.as_slice().get(LOOK_AHEAD) {
            ahead.prefetch();
        }
        self.front.next().copied()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.front.len() + (self.end - self.start) + self.back.len();
        (left, Some(left))
    }
}

impl<I: RankedItem> DoubleEndedIterator for Range<'_, I> {
    #[inline]
    fn next_back(&mut self) -> Option<I> {
        if self.back.len() == 0 && !self.advance_back() {
            return self.front.next_back().copied();
        }
        let items = self.back.as_slice();
        if let Some(ahead) = items.len().checked_sub(1 + LOOK_AHEAD) {
            items[ahead].prefetch();
        }
        self.back.next_back().copied()
    }
}

impl<I: RankedItem> ExactSizeIterator for Range<'_, I> {}

impl<I: RankedItem> FusedIterator for Range<'_, I> {}
