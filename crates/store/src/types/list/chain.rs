//! The directory of a list that has more than one node.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use base::limits::{FREED_AT_ONCE, FREED_AT_ONCE_BYTES};
use smallvec::SmallVec;

use super::directory::{Counted, Directory};
use super::element::{ListInput, ListItem};
use super::limits::ListLimits;
use super::slot::Slot;
use crate::garbage;
use crate::pack::{Encoded, End, Growth, Needle, Node, Position, good_size};

/// Which side of a pivot to insert at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Nearer to the head.
    Before,
    /// Nearer to the tail.
    After,
}

/// Some neighbours in a chain.
type Neighbours = SmallVec<[Slot; 6]>;

/// What became of an element that was to be inserted in a packed node.
enum Inserted {
    /// It is there.
    Here,
    /// It belongs before the slot with this number, or into its neighbour.
    Not(usize),
    /// It belongs between the node and these, which were split off from it.
    Split(Slot),
}

/// Joins the slot at `at` and the next one, if there are both and together they are small.
fn join_next(neighbours: &mut Neighbours, at: usize, limits: &ListLimits) -> bool {
    let Some([slot, next]) = neighbours.get_mut(at..at + 2) else { return false };
    let joined = slot.try_absorb(next, limits);
    if joined {
        neighbours.remove(at + 1);
    }
    joined
}

/// The nodes of a long list.
///
/// Invariants: `len` is the sum of the counts, each count is its node's, and no node is empty, but
/// for the moments inside a method.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    slots: Directory<Slot>,
    len: usize,
}

impl Chain {
    /// A chain of this node, or of none if it is empty.
    pub(super) fn from_node(node: Node) -> Self {
        let len = node.len();
        let mut slots = Directory::with_capacity(2);
        if len > 0 {
            slots.push(End::Back, Slot::packed(node));
        }
        Chain { slots, len }
    }

    /// Number of elements.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn slots(&self) -> &Directory<Slot> {
        &self.slots
    }

    /// The slot, if there is only one.
    pub(super) fn sole_slot(&self) -> Option<&Slot> {
        self.slots.end(End::Front).filter(|_| self.slots.len() == 1)
    }

    #[inline]
    pub(super) fn push(&mut self, end: End, element: &Encoded<'_>, limits: &ListLimits) {
        self.len += 1;
        if !self.slots.end_mut(end).is_some_and(|slot| slot.try_push(end, element, limits)) {
            self.push_new_node(end, element, limits);
        }
    }

    #[cold]
    fn push_new_node(&mut self, end: End, element: &Encoded<'_>, limits: &ListLimits) {
        self.seal(end);
        let mut node = Node::new(limits.first_block(), end);
        node.push(end, element, limits.growth());
        self.slots.push(end, Slot::Packed { count: 1, node });
    }

    /// Gives back the unused room of the end node, before it becomes an inner one.
    fn seal(&mut self, end: End) {
        if let Some(Slot::Packed { node, .. }) = self.slots.end_mut(end) {
            node.trim();
        }
    }

    pub(super) fn push_plain(&mut self, end: End, value: Arc<Vec<u8>>) {
        self.seal(end);
        self.slots.push(end, Slot::Plain(value));
        self.len += 1;
    }

    /// Appends a whole node of `count` elements.
    pub(super) fn push_node(&mut self, node: Node, count: usize) {
        self.seal(End::Back);
        self.slots.push(End::Back, Slot::packed(node));
        self.len += count;
    }

    #[inline]
    pub(super) fn pop_with<R>(
        &mut self,
        end: End,
        take: impl FnOnce(ListItem<'_>) -> R,
    ) -> Option<R> {
        let (taken, count) = match self.slots.end_mut(end)? {
            Slot::Packed { count, node } => {
                let taken = node.pop_with(end, |element| take(element.into()));
                *count -= 1;
                (taken, *count)
            }
            Slot::Plain(text) => (take(ListItem::Plain(text)), 0),
        };
        self.len -= 1;
        if count == 0 {
            self.slots.pop(end).into_iter().for_each(Slot::release);
            self.slots.shrink();
        }
        Some(taken)
    }

    /// The slot of the element with this index, and its index there. The index is below the length.
    #[inline]
    pub(super) fn locate(&self, index: usize) -> (usize, usize) {
        if index < self.len / 2 {
            return self.slots.within(End::Front, index);
        }
        // How many elements come after it, in the slot and beyond.
        let (beyond, after) = self.slots.within(End::Back, self.len - 1 - index);
        let slot = self.slots.len() - 1 - beyond;
        (slot, self.slot(slot).count() - 1 - after)
    }

    /// The slot with this number, which is there.
    fn slot(&self, at: usize) -> &Slot {
        self.slots.get(at).expect("the slot is there")
    }

    pub(super) fn get(&self, index: usize) -> Option<ListItem<'_>> {
        let (slot, within) = self.locate(index);
        match self.slot(slot) {
            Slot::Packed { node, .. } => node.get(within as i64).map(ListItem::from),
            Slot::Plain(text) => Some(ListItem::Plain(text)),
        }
    }

    /// Replaces the element with this index, which is below the length.
    pub(super) fn set(&mut self, index: usize, value: ListInput<'_>, limits: &ListLimits) {
        let (at, within) = self.locate(index);
        let encoded = limits.encode(&value);
        if self.slot(at).count() == 1 {
            return self.set_slot(at, value, limits);
        }
        let position = self.slots.change(at, |slot| {
            let Slot::Packed { count, node } = slot else {
                unreachable!("a plain node has one element")
            };
            let position = node.seek(within as i64).expect("located in this node");
            if let Some(element) = &encoded
                && limits.fits(node.total_bytes(), 0, element.len())
            {
                node.replace(position, element, Growth::Tight);
                return None;
            }
            // The new element does not fit where the old one was: take that out, then insert.
            node.remove_at(position);
            *count -= 1;
            Some(position)
        });
        if let Some(position) = position {
            self.len -= 1;
            self.insert_in(at, position, Side::Before, value, limits);
        }
    }

    /// Replaces the only element of the slot at `at`. The replacement of a large element goes to
    /// the next node, if that has room.
    fn set_slot(&mut self, at: usize, value: ListInput<'_>, limits: &ListLimits) {
        let slot = match limits.encode(&value) {
            Some(element) => {
                let was_plain = matches!(self.slot(at), Slot::Plain(_));
                if was_plain && self.try_push_at(at + 1, End::Front, &element, limits) {
                    self.slots.remove(at).release();
                    return self.slots.shrink();
                }
                Slot::with_element(&element)
            }
            None => Slot::Plain(value.into_shared()),
        };
        self.slots.replace(at, slot).release();
    }

    /// Adds an element at an end of the slot at `at`, if there is one and it has room.
    fn try_push_at(
        &mut self,
        at: usize,
        end: End,
        element: &Encoded<'_>,
        limits: &ListLimits,
    ) -> bool {
        at < self.slots.len() && self.slots.change(at, |slot| slot.try_push(end, element, limits))
    }

    /// Inserts next to the first element that matches. Returns whether there is one.
    pub(super) fn insert(
        &mut self,
        side: Side,
        pivot: &Needle<'_>,
        value: ListInput<'_>,
        limits: &ListLimits,
    ) -> bool {
        let mut places = self.slots.iter().enumerate();
        let found = places.find_map(|(at, slot)| match slot {
            Slot::Packed { node, .. } => {
                let found = node.find_from(node.first()?, pivot, 0)?;
                let position = if side == Side::After { node.next_or_end(found) } else { found };
                Some((at, Some(position)))
            }
            Slot::Plain(text) => (text.as_slice() == pivot.text()).then_some((at, None)),
        });
        match found {
            Some((at, Some(position))) => self.insert_in(at, position, side, value, limits),
            Some((at, None)) => {
                self.insert_between(at + usize::from(side == Side::After), value, limits);
            }
            None => {}
        }
        found.is_some()
    }

    /// Inserts before this position of the packed node at `at`: on this side of the element that
    /// was looked for.
    fn insert_in(
        &mut self,
        at: usize,
        position: Position,
        side: Side,
        value: ListInput<'_>,
        limits: &ListLimits,
    ) {
        let encoded = limits.encode(&value);
        let inserted = self.slots.change(at, |slot| {
            let Slot::Packed { count, node } = slot else {
                unreachable!("positions are of packed nodes")
            };
            if let Some(element) = &encoded
                && limits.fits(node.total_bytes(), *count as usize, element.len())
            {
                node.insert(position, element, Growth::Tight);
                *count += 1;
                return Inserted::Here;
            }
            if node.is_first(position) {
                return Inserted::Not(at);
            }
            if node.is_end(position) {
                return Inserted::Not(at + 1);
            }
            let rest = Slot::packed(node.split_off(position));
            *count -= rest.count() as u32;
            Inserted::Split(rest)
        });
        let rest = match inserted {
            Inserted::Here => {
                self.len += 1;
                return;
            }
            Inserted::Not(between) => return self.insert_between(between, value, limits),
            Inserted::Split(rest) => rest,
        };
        self.len += 1;
        let Some(element) = limits.encode(&value) else {
            let plain = Slot::Plain(value.into_shared());
            return self.splice(at + 1..at + 1, [plain, rest].into_iter().collect());
        };
        self.insert_after_split(at, rest, side, &element, limits);
    }

    /// Inserts between the slot at `at` and `rest`, which was split off from it: away from the
    /// element that it was inserted next to, or as a node of its own.
    ///
    /// Then joins the nodes around, in the order in which Redis does: the number of nodes shows as
    /// the encoding, once the list has become short.
    fn insert_after_split(
        &mut self,
        at: usize,
        mut rest: Slot,
        side: Side,
        element: &Encoded<'_>,
        limits: &ListLimits,
    ) {
        let pushed = match side {
            Side::Before => {
                self.try_push_at(at, End::Back, element, limits)
                    || rest.try_push(End::Front, element, limits)
            }
            Side::After => {
                rest.try_push(End::Front, element, limits)
                    || self.try_push_at(at, End::Back, element, limits)
            }
        };
        // The node in the middle, with the element next to which it was inserted, and two on either
        // side.
        let middle = if side == Side::Before { at + 1 } else { at };
        let places = middle.saturating_sub(2)..self.slots.len().min(middle + 2);
        let hole = Arc::new(Vec::new());
        let taken = places.clone();
        let taken = taken.map(|at| self.slots.replace(at, Slot::Plain(Arc::clone(&hole))));
        let mut neighbours: Neighbours = taken.collect();
        neighbours.insert(at + 1 - places.start, rest);
        let mut middle = middle - places.start;
        if !pushed {
            neighbours.insert(at + 1 - places.start, Slot::with_element(element));
            middle += usize::from(side == Side::Before);
        }
        if middle >= 2 && join_next(&mut neighbours, middle - 2, limits) {
            middle -= 1;
        }
        join_next(&mut neighbours, middle + 1, limits);
        if middle >= 1 && join_next(&mut neighbours, middle - 1, limits) {
            middle -= 1;
        }
        join_next(&mut neighbours, middle, limits);
        self.splice(places, neighbours);
    }

    /// Replaces slots by others, two more at most.
    fn splice(&mut self, gone: Range<usize>, added: Neighbours) {
        let (mut position, mut added) = (gone.start, added.into_iter());
        while position < gone.end {
            let Some(slot) = added.next() else { return self.remove_slots(position..gone.end) };
            self.slots.replace(position, slot);
            position += 1;
        }
        // Each moves what is near it in the directory, which is not much however long the list is.
        for slot in added {
            self.slots.insert(position, slot);
            position += 1;
        }
    }

    fn remove_slots(&mut self, gone: Range<usize>) {
        if !gone.is_empty() {
            let start = gone.start;
            gone.for_each(|_| drop(self.slots.remove(start)));
            self.slots.shrink();
        }
    }

    /// Inserts before the slot at `at`, which may be one past the last: into a neighbour with room,
    /// or as a node of its own.
    fn insert_between(&mut self, at: usize, value: ListInput<'_>, limits: &ListLimits) {
        self.len += 1;
        let slot = match limits.encode(&value) {
            Some(element) => {
                let before = at.checked_sub(1);
                if before.is_some_and(|at| self.try_push_at(at, End::Back, &element, limits))
                    || self.try_push_at(at, End::Front, &element, limits)
                {
                    return;
                }
                Slot::with_element(&element)
            }
            None => Slot::Plain(value.into_shared()),
        };
        self.slots.insert(at, slot);
    }

    /// Merges the slot at `at` with its neighbours where both together are small.
    fn merge_around(&mut self, at: usize, limits: &ListLimits) {
        let mut gone = at + 1..at + 1;
        if self.absorb_next(at, limits) {
            gone.end += 1;
        }
        if at > 0 && self.absorb_next(at - 1, limits) {
            gone.start -= 1;
        }
        self.remove_slots(gone);
    }

    /// Copies the elements of the slot after `at` to the one there, if there is one and both
    /// together are small. The caller then removes it.
    fn absorb_next(&mut self, at: usize, limits: &ListLimits) -> bool {
        let Some(next) = self.slots.get(at + 1).cloned() else { return false };
        self.slots.change(at, |slot| slot.try_absorb(&next, limits))
    }

    /// Removes up to `limit` elements that match, the ones nearest to `from` first. Returns how
    /// many.
    pub(super) fn remove(
        &mut self,
        needle: &Needle<'_>,
        from: End,
        limit: usize,
        limits: &ListLimits,
    ) -> usize {
        let nodes = self.slots.len();
        let (mut removed, mut changed) = (0, (nodes, 0));
        let visit = |at, slot: &mut Slot| {
            if removed == limit {
                return ControlFlow::Break(());
            }
            let here = match slot {
                Slot::Packed { count, node } => {
                    let here = node.remove_matches(needle, from, limit - removed);
                    *count -= here as u32;
                    here
                }
                Slot::Plain(text) if text.as_slice() == needle.text() => {
                    // An empty node, which is removed with the other empty ones.
                    let empty = Slot::packed(Node::new(0, End::Back));
                    std::mem::replace(slot, empty).release();
                    1
                }
                Slot::Plain(_) => 0,
            };
            if here > 0 {
                changed = (changed.0.min(at), changed.1.max(at));
                removed += here;
            }
            ControlFlow::Continue(())
        };
        let _ = self.slots.change_each(from, visit);
        self.len -= removed;
        if removed > 0 {
            self.compact(changed.0, changed.1, limits);
        }
        removed
    }

    /// Drops the empty nodes from `first` to `last` and merges the small ones there. Where a number
    /// of elements bounds them, they stay as they are, as in Redis: they are not many bytes.
    fn compact(&mut self, first: usize, last: usize, limits: &ListLimits) {
        let joins = limits.bounded_by_bytes;
        if first == last {
            if self.slot(first).count() == 0 {
                self.remove_slots(first..last + 1);
            } else if joins {
                self.merge_around(first, limits);
            }
            return;
        }
        let whole = std::mem::replace(&mut self.slots, Directory::with_capacity(2));
        let kept = &mut self.slots;
        for slot in whole.into_nodes() {
            let absorbed = slot.count() == 0
                || joins
                    && kept
                        .end_mut(End::Back)
                        .is_some_and(|before| before.try_absorb(&slot, limits));
            if !absorbed {
                kept.push(End::Back, slot);
            }
        }
    }

    /// Removes the `count` elements nearest to an end.
    pub(super) fn drop_elements(&mut self, end: End, count: usize) {
        self.len -= count;
        let (whole, left) = self.slots.within(end, count);
        self.drop_slots(end, whole);
        if left > 0
            && let Some(Slot::Packed { count, node }) = self.slots.end_mut(end)
        {
            node.drop_elements(end, left);
            *count -= left as u32;
        }
        self.slots.shrink();
    }

    /// Removes the `count` slots nearest to an end. Many of them are put aside together.
    fn drop_slots(&mut self, end: End, count: usize) {
        if count <= FREED_AT_ONCE {
            (0..count).filter_map(|_| self.slots.pop(end)).for_each(Slot::release);
            return;
        }
        let gone = self.slots.take(end, count);
        let sampled = gone.iter().take(FREED_AT_ONCE).map(Slot::bytes).sum::<usize>();
        let bytes = sampled as u128 * count as u128 / FREED_AT_ONCE as u128;
        garbage::put_others_aside(gone, bytes as usize);
    }

    /// Whether freeing it takes more than a bounded number of steps, or gives back more than a
    /// bounded number of bytes in large allocations.
    pub(super) fn frees_slowly(&self) -> bool {
        self.slots.len() > FREED_AT_ONCE
            || self.slots.iter().map(Slot::plain_bytes).sum::<usize>() > FREED_AT_ONCE_BYTES
    }

    /// Bytes, estimated from `samples` nodes where there are more.
    pub(super) fn memory_usage(&self, samples: usize) -> usize {
        let step = self.slots.len().div_ceil(samples.max(1)).max(1);
        let nodes: usize = self
            .slots
            .iter()
            .step_by(step)
            .map(|slot| match slot {
                Slot::Packed { node, .. } => node.block_size(),
                Slot::Plain(text) => {
                    // The reference counts stand before the vector.
                    let shared = size_of::<Vec<u8>>() + 2 * size_of::<usize>();
                    good_size(shared) + good_size(text.capacity())
                }
            })
            .sum();
        let sampled = self.slots.len().div_ceil(step).max(1);
        let nodes = (nodes as u128 * self.slots.len() as u128 / sampled as u128) as usize;
        good_size(size_of::<Chain>()) + self.slots.memory() + nodes
    }

    pub(super) fn check(&self) {
        assert_eq!(self.len, self.slots.iter().map(Slot::count).sum::<usize>());
        self.slots.check();
        for slot in self.slots.iter() {
            assert!(slot.count() > 0);
            if let Slot::Packed { count, node } = slot {
                node.check();
                assert_eq!(*count as usize, node.len());
            }
        }
    }
}
