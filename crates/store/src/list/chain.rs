//! The directory of a list that has more than one node.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use base::limits::{FREED_AT_ONCE, FREED_AT_ONCE_BYTES};
use smallvec::SmallVec;

use super::items::{ListInput, ListItem};
use super::{ListLimits, Side};
use crate::garbage;
use crate::pack::{
    EMPTY_LISTPACK_BYTES, Encoded, End, Growth, NODE_HEAD_BYTES, Needle, Node, Position, good_size,
};

/// Slots for which a directory has room, however few there are.
const DIRECTORY_KEPT: usize = 16;

/// A node, and how many elements it has: kept here, so that finding an index touches no node.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    /// Many small elements.
    Packed { count: u32, node: Node },
    /// One large element.
    Plain(Arc<Vec<u8>>),
}

impl Slot {
    fn packed(node: Node) -> Self {
        Slot::Packed { count: node.len() as u32, node }
    }

    /// A node of the smallest size for one element.
    fn with_element(element: &Encoded<'_>) -> Self {
        let size = NODE_HEAD_BYTES + EMPTY_LISTPACK_BYTES + element.len();
        let mut node = Node::new(size, End::Back);
        node.push(End::Back, element, Growth::Tight);
        Slot::Packed { count: 1, node }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        match self {
            Slot::Packed { count, .. } => *count as usize,
            Slot::Plain(_) => 1,
        }
    }

    /// Frees it, or puts it aside if it is large: the list's slot may be locked.
    fn let_go(self) {
        if let Slot::Plain(text) = self {
            garbage::free_text(text);
        }
    }

    /// Bytes of its block.
    fn bytes(&self) -> usize {
        match self {
            Slot::Packed { node, .. } => node.block_size(),
            Slot::Plain(text) => text.capacity(),
        }
    }

    /// Bytes of its element, if that is a large one.
    fn plain_bytes(&self) -> usize {
        match self {
            Slot::Packed { .. } => 0,
            Slot::Plain(text) => text.capacity(),
        }
    }

    /// Adds an element at an end if this node has room for it.
    #[inline]
    fn try_push(&mut self, end: End, element: &Encoded<'_>, limits: &ListLimits) -> bool {
        let Slot::Packed { count, node } = self else { return false };
        let fits = |total| limits.fits(total, *count as usize, element.len());
        let pushed = node.push_if(end, element, limits.growth(), fits);
        *count += u32::from(pushed);
        pushed
    }

    /// Appends the elements of `next` if both together are small enough.
    fn try_absorb(&mut self, next: &Slot, limits: &ListLimits) -> bool {
        let (Slot::Packed { count, node }, Slot::Packed { count: more, node: other }) =
            (self, next)
        else {
            return false;
        };
        let total = node.total_bytes() + other.total_bytes();
        if !limits.may_join(total, (*count + *more) as usize) {
            return false;
        }
        node.append(other, Growth::Tight);
        *count += *more;
        true
    }
}

/// Some neighbours in a chain.
type Near = SmallVec<[Slot; 6]>;

/// Joins the slot at `at` and the next one, if there are both and together they are small.
fn join_next(near: &mut Near, at: usize, limits: &ListLimits) -> bool {
    let Some([slot, next]) = near.get_mut(at..at + 2) else { return false };
    let joined = slot.try_absorb(next, limits);
    if joined {
        near.remove(at + 1);
    }
    joined
}

/// Says that slots of a directory were moved, for tests that count how often.
#[inline]
fn note_move() {
    #[cfg(test)]
    MOVES.with(|moves| moves.set(moves.get() + 1));
}

#[cfg(test)]
thread_local! {
    /// How often slots of directories were moved by this thread.
    pub(super) static MOVES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The nodes of a long list.
///
/// Invariants: `len` is the sum of the counts, each count is its node's, and no node is empty, but for
/// the moments inside a method.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    slots: VecDeque<Slot>,
    len: usize,
}

impl Chain {
    /// A chain of this node, or of none if it is empty.
    pub(super) fn from_node(node: Node) -> Self {
        let len = node.len();
        let mut slots = VecDeque::with_capacity(2);
        if len > 0 {
            slots.push_back(Slot::packed(node));
        }
        Chain { slots, len }
    }

    /// Number of elements.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn slots(&self) -> &VecDeque<Slot> {
        &self.slots
    }

    /// The slot, if there is only one.
    pub(super) fn sole_slot(&self) -> Option<&Slot> {
        self.slots.front().filter(|_| self.slots.len() == 1)
    }

    #[inline]
    fn end_mut(&mut self, end: End) -> Option<&mut Slot> {
        match end {
            End::Front => self.slots.front_mut(),
            End::Back => self.slots.back_mut(),
        }
    }

    fn push_slot(&mut self, end: End, slot: Slot) {
        match end {
            End::Front => self.slots.push_front(slot),
            End::Back => self.slots.push_back(slot),
        }
    }

    fn pop_slot(&mut self, end: End) -> Option<Slot> {
        match end {
            End::Front => self.slots.pop_front(),
            End::Back => self.slots.pop_back(),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, end: End, element: &Encoded<'_>, limits: &ListLimits) {
        self.len += 1;
        if !self.end_mut(end).is_some_and(|slot| slot.try_push(end, element, limits)) {
            self.push_new_node(end, element, limits);
        }
    }

    #[cold]
    fn push_new_node(&mut self, end: End, element: &Encoded<'_>, limits: &ListLimits) {
        self.seal(end);
        let mut node = Node::new(limits.first_block(), end);
        node.push(end, element, limits.growth());
        self.push_slot(end, Slot::Packed { count: 1, node });
    }

    /// Gives back the unused room of the end node, before it becomes an inner one.
    fn seal(&mut self, end: End) {
        if let Some(Slot::Packed { node, .. }) = self.end_mut(end) {
            node.trim();
        }
    }

    pub(super) fn push_plain(&mut self, end: End, value: Arc<Vec<u8>>) {
        self.seal(end);
        self.push_slot(end, Slot::Plain(value));
        self.len += 1;
    }

    /// Gives back most of the directory when little of it is in use: at a quarter, so that popping
    /// one by one moves each slot a bounded number of times.
    fn shrink_directory(&mut self) {
        let (used, capacity) = (self.slots.len(), self.slots.capacity());
        if capacity > DIRECTORY_KEPT && used <= capacity / 4 {
            self.slots.shrink_to(used * 2);
        }
    }

    /// Appends a whole node of `count` elements.
    pub(super) fn push_node(&mut self, node: Node, count: usize) {
        self.seal(End::Back);
        self.slots.push_back(Slot::packed(node));
        self.len += count;
    }

    #[inline]
    pub(super) fn pop_with<R>(
        &mut self,
        end: End,
        take: impl FnOnce(ListItem<'_>) -> R,
    ) -> Option<R> {
        let (taken, count) = match self.end_mut(end)? {
            Slot::Packed { count, node } => {
                let taken = node.pop_with(end, |element| take(element.into()));
                *count -= 1;
                (taken, *count)
            }
            Slot::Plain(text) => (take(ListItem::Plain(text)), 0),
        };
        self.len -= 1;
        if count == 0 {
            self.pop_slot(end).into_iter().for_each(Slot::let_go);
            self.shrink_directory();
        }
        Some(taken)
    }

    /// The slot of the element with this index, and its index there. The index is below the length.
    #[inline]
    pub(super) fn locate(&self, index: usize) -> (usize, usize) {
        if index < self.len / 2 {
            let mut within = index;
            for (slot, count) in self.slots.iter().map(Slot::count).enumerate() {
                if within < count {
                    return (slot, within);
                }
                within -= count;
            }
        } else {
            // How many elements come after it, in the slot and beyond.
            let mut after = self.len - 1 - index;
            for (slot, count) in self.slots.iter().map(Slot::count).enumerate().rev() {
                if after < count {
                    return (slot, count - 1 - after);
                }
                after -= count;
            }
        }
        unreachable!("the index is below the sum of all counts")
    }

    pub(super) fn get(&self, index: usize) -> Option<ListItem<'_>> {
        let (slot, within) = self.locate(index);
        match &self.slots[slot] {
            Slot::Packed { node, .. } => node.get(within as i64).map(ListItem::from),
            Slot::Plain(text) => Some(ListItem::Plain(text)),
        }
    }

    /// Replaces the element with this index, which is below the length.
    pub(super) fn set(&mut self, index: usize, value: ListInput<'_>, limits: &ListLimits) {
        let (at, within) = self.locate(index);
        let encoded = limits.encode(&value);
        let alone = match (&mut self.slots[at], &encoded) {
            (Slot::Packed { count: 2.., node }, Some(element)) => {
                let position = node.seek(within as i64).expect("located in this node");
                if limits.fits(node.total_bytes(), 0, element.len()) {
                    return node.replace(position, element, Growth::Tight);
                }
                false
            }
            (slot, _) => slot.count() == 1,
        };
        if alone {
            return self.set_slot(at, value, limits);
        }
        // The new element does not fit where the old one was: take that out, then insert.
        let Slot::Packed { count, node } = &mut self.slots[at] else {
            unreachable!("a plain node has one element")
        };
        let position = node.seek(within as i64).expect("located in this node");
        node.remove_at(position);
        *count -= 1;
        self.len -= 1;
        self.insert_in(at, position, Side::Before, value, limits);
    }

    /// Replaces the only element of the slot at `at`. The replacement of a large element goes to the
    /// next node, if that has room.
    fn set_slot(&mut self, at: usize, value: ListInput<'_>, limits: &ListLimits) {
        let slot = match limits.encode(&value) {
            Some(element) => {
                let was_plain = matches!(self.slots[at], Slot::Plain(_));
                let next = self.slots.get_mut(at + 1).filter(|_| was_plain);
                if next.is_some_and(|next| next.try_push(End::Front, &element, limits)) {
                    note_move();
                    self.slots.remove(at).into_iter().for_each(Slot::let_go);
                    return self.shrink_directory();
                }
                Slot::with_element(&element)
            }
            None => Slot::Plain(value.into_shared()),
        };
        std::mem::replace(&mut self.slots[at], slot).let_go();
    }

    /// Inserts next to the first element that matches. Returns whether there is one.
    pub(super) fn insert(
        &mut self,
        side: Side,
        pivot: &Needle<'_>,
        value: ListInput<'_>,
        limits: &ListLimits,
    ) -> bool {
        for at in 0..self.slots.len() {
            match &self.slots[at] {
                Slot::Packed { node, .. } => {
                    let found = node.first().and_then(|first| node.find_from(first, pivot, 0));
                    let Some(mut position) = found else { continue };
                    if side == Side::After {
                        position = node.next_or_end(position);
                    }
                    self.insert_in(at, position, side, value, limits);
                    return true;
                }
                Slot::Plain(text) if text.as_slice() == pivot.text() => {
                    self.insert_between(at + usize::from(side == Side::After), value, limits);
                    return true;
                }
                Slot::Plain(_) => {}
            }
        }
        false
    }

    /// Inserts before this position of the packed node at `at`: on this side of the element that was
    /// looked for.
    fn insert_in(
        &mut self,
        at: usize,
        position: Position,
        side: Side,
        value: ListInput<'_>,
        limits: &ListLimits,
    ) {
        let Slot::Packed { count, node } = &mut self.slots[at] else {
            unreachable!("positions are of packed nodes")
        };
        if let Some(element) = limits.encode(&value)
            && limits.fits(node.total_bytes(), *count as usize, element.len())
        {
            node.insert(position, &element, Growth::Tight);
            *count += 1;
            self.len += 1;
            return;
        }
        if node.is_first(position) {
            return self.insert_between(at, value, limits);
        }
        if node.is_end(position) {
            return self.insert_between(at + 1, value, limits);
        }
        let rest = Slot::packed(node.split_off(position));
        *count -= rest.count() as u32;
        self.len += 1;
        let Some(element) = limits.encode(&value) else {
            let plain = Slot::Plain(value.into_shared());
            return self.splice(at + 1..at + 1, [plain, rest].into_iter().collect());
        };
        self.insert_after_split(at, rest, side, &element, limits);
    }

    /// Inserts between the slot at `at` and `rest`, which was split off from it: away from the element
    /// that it was inserted next to, or as a node of its own. Moves the directory once at most.
    ///
    /// Then joins the nodes around, in the order in which Redis does: the number of nodes shows as the
    /// encoding, once the list has become short.
    fn insert_after_split(
        &mut self,
        at: usize,
        mut rest: Slot,
        side: Side,
        element: &Encoded<'_>,
        limits: &ListLimits,
    ) {
        let left = &mut self.slots[at];
        let pushed = match side {
            Side::Before => {
                left.try_push(End::Back, element, limits)
                    || rest.try_push(End::Front, element, limits)
            }
            Side::After => {
                rest.try_push(End::Front, element, limits)
                    || left.try_push(End::Back, element, limits)
            }
        };
        // The node in the middle, with the element next to which it was inserted, and two on either
        // side.
        let middle = if side == Side::Before { at + 1 } else { at };
        let places = middle.saturating_sub(2)..self.slots.len().min(middle + 2);
        let hole = Arc::new(Vec::new());
        let taken = self.slots.range_mut(places.clone());
        let taken = taken.map(|slot| std::mem::replace(slot, Slot::Plain(Arc::clone(&hole))));
        let mut near: Near = taken.collect();
        near.insert(at + 1 - places.start, rest);
        let mut middle = middle - places.start;
        if !pushed {
            near.insert(at + 1 - places.start, Slot::with_element(element));
            middle += usize::from(side == Side::Before);
        }
        if middle >= 2 && join_next(&mut near, middle - 2, limits) {
            middle -= 1;
        }
        join_next(&mut near, middle + 1, limits);
        if middle >= 1 && join_next(&mut near, middle - 1, limits) {
            middle -= 1;
        }
        join_next(&mut near, middle, limits);
        self.splice(places, near);
    }

    /// Replaces slots by others, two more at most, moving those beyond once at most.
    fn splice(&mut self, gone: Range<usize>, added: Near) {
        let (mut place, mut added) = (gone.start, added.into_iter());
        while place < gone.end {
            let Some(slot) = added.next() else { return self.remove_slots(place..gone.end) };
            self.slots[place] = slot;
            place += 1;
        }
        match (added.next(), added.next()) {
            (Some(one), Some(other)) => self.insert_two(place, one, other),
            (Some(one), None) => self.insert_slot(place, one),
            _ => {}
        }
    }

    fn insert_slot(&mut self, at: usize, slot: Slot) {
        note_move();
        self.slots.insert(at, slot);
    }

    /// Inserts two slots, moving each of those on the shorter side once.
    fn insert_two(&mut self, at: usize, one: Slot, other: Slot) {
        note_move();
        let len = self.slots.len();
        if at < len / 2 {
            self.slots.push_front(other);
            self.slots.push_front(one);
            // Each step carries the two new ones on by one, and turns them round.
            (0..at).for_each(|index| self.slots.swap(index, index + 2));
            if at % 2 == 1 {
                self.slots.swap(at, at + 1);
            }
        } else {
            self.slots.push_back(one);
            self.slots.push_back(other);
            (at..len).rev().for_each(|index| self.slots.swap(index, index + 2));
            if (len - at) % 2 == 1 {
                self.slots.swap(at, at + 1);
            }
        }
    }

    fn remove_slots(&mut self, gone: Range<usize>) {
        if !gone.is_empty() {
            note_move();
            self.slots.drain(gone);
            self.shrink_directory();
        }
    }

    /// Inserts before the slot at `at`, which may be one past the last: into a neighbour with room, or
    /// as a node of its own.
    fn insert_between(&mut self, at: usize, value: ListInput<'_>, limits: &ListLimits) {
        self.len += 1;
        let slot = match limits.encode(&value) {
            Some(element) => {
                let before = at.checked_sub(1).and_then(|before| self.slots.get_mut(before));
                if before.is_some_and(|slot| slot.try_push(End::Back, &element, limits)) {
                    return;
                }
                let after = self.slots.get_mut(at);
                if after.is_some_and(|slot| slot.try_push(End::Front, &element, limits)) {
                    return;
                }
                Slot::with_element(&element)
            }
            None => Slot::Plain(value.into_shared()),
        };
        self.insert_slot(at, slot);
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

    /// Copies the elements of the slot after `at` to the one there, if there is one and both together
    /// are small. The caller then removes it.
    fn absorb_next(&mut self, at: usize, limits: &ListLimits) -> bool {
        let end = self.slots.len().min(at + 2);
        let mut pair = self.slots.range_mut(at..end);
        let (Some(slot), Some(next)) = (pair.next(), pair.next()) else { return false };
        slot.try_absorb(next, limits)
    }

    /// Removes up to `limit` elements that match, the ones nearest to `from` first. Returns how many.
    pub(super) fn remove(
        &mut self,
        needle: &Needle<'_>,
        from: End,
        limit: usize,
        limits: &ListLimits,
    ) -> usize {
        let nodes = self.slots.len();
        let (mut removed, mut changed) = (0, (nodes, 0));
        for step in 0..nodes {
            if removed == limit {
                break;
            }
            let at = if from == End::Front { step } else { nodes - 1 - step };
            let here = match &mut self.slots[at] {
                Slot::Packed { count, node } => {
                    let here = node.remove_matches(needle, from, limit - removed);
                    *count -= here as u32;
                    here
                }
                Slot::Plain(text) if text.as_slice() == needle.text() => {
                    // An empty node, which goes with the other empty ones.
                    let empty = Slot::packed(Node::new(0, End::Back));
                    std::mem::replace(&mut self.slots[at], empty).let_go();
                    1
                }
                Slot::Plain(_) => 0,
            };
            if here > 0 {
                changed = (changed.0.min(at), changed.1.max(at));
                removed += here;
            }
        }
        self.len -= removed;
        if removed > 0 {
            self.compact(changed.0, changed.1, limits);
        }
        removed
    }

    /// Drops the empty nodes from `first` to `last` and merges the small ones there. Where a number of
    /// elements bounds them, they stay as they are, as in Redis: they are not many bytes.
    fn compact(&mut self, first: usize, last: usize, limits: &ListLimits) {
        let joins = limits.bounded_by_bytes;
        if first == last {
            if self.slots[first].count() == 0 {
                self.remove_slots(first..last + 1);
            } else if joins {
                self.merge_around(first, limits);
            }
            return;
        }
        let mut kept: VecDeque<Slot> = VecDeque::with_capacity(self.slots.len());
        for slot in std::mem::take(&mut self.slots) {
            let absorbed = slot.count() == 0
                || joins && kept.back_mut().is_some_and(|before| before.try_absorb(&slot, limits));
            if !absorbed {
                kept.push_back(slot);
            }
        }
        self.slots = kept;
        self.shrink_directory();
    }

    /// Removes the `count` elements nearest to an end.
    pub(super) fn drop_elements(&mut self, end: End, count: usize) {
        self.len -= count;
        let (mut left, mut whole) = (count, 0);
        while let Some(slot) = self.slots.get(self.nth(end, whole))
            && left >= slot.count()
            && left > 0
        {
            left -= slot.count();
            whole += 1;
        }
        self.drop_slots(end, whole);
        if left > 0
            && let Some(Slot::Packed { count, node }) = self.end_mut(end)
        {
            node.drop_elements(end, left);
            *count -= left as u32;
        }
        self.shrink_directory();
    }

    /// The place of the slot that is this far from an end.
    fn nth(&self, end: End, steps: usize) -> usize {
        match end {
            End::Front => steps,
            End::Back => self.slots.len().wrapping_sub(1 + steps),
        }
    }

    /// Removes the `count` slots nearest to an end. Many of them are put aside together, and the
    /// smaller part of the directory is moved.
    fn drop_slots(&mut self, end: End, count: usize) {
        if count <= FREED_AT_ONCE {
            (0..count).filter_map(|_| self.pop_slot(end)).for_each(Slot::let_go);
            return;
        }
        note_move();
        let kept = self.slots.len() - count;
        let gone: VecDeque<Slot> = match end {
            End::Back => self.slots.split_off(kept),
            End::Front if count < kept => self.slots.drain(..count).collect(),
            End::Front => {
                let kept = self.slots.split_off(count);
                std::mem::replace(&mut self.slots, kept)
            }
        };
        let sampled = gone.iter().take(FREED_AT_ONCE).map(Slot::bytes).sum::<usize>();
        let bytes = sampled as u128 * count as u128 / FREED_AT_ONCE as u128;
        garbage::put_others_aside(gone, bytes as usize);
    }

    /// Whether freeing it takes more than a bounded number of steps, or gives back more than a bounded
    /// number of bytes in large allocations.
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
        let directory = good_size(self.slots.capacity() * size_of::<Slot>());
        good_size(size_of::<Chain>()) + directory + nodes
    }

    pub(super) fn check(&self) {
        assert_eq!(self.len, self.slots.iter().map(Slot::count).sum::<usize>());
        for slot in &self.slots {
            assert!(slot.count() > 0);
            if let Slot::Packed { count, node } = slot {
                node.check();
                assert_eq!(*count as usize, node.len());
            }
        }
    }
}
