//! The directory of a long list: its nodes in order, found by number or by element.
//!
//! Most lists have a few nodes, and their directory is one deque. Of a very long list only the nodes
//! near the two ends are in deques; those between lie on shelves of some hundreds, and of a shelf the
//! directory knows how many elements it has. Copies of a list share shelves until one of them changes
//! something there. So a snapshot of a list of millions of nodes copies some thousand references, an
//! element is found by a look at each shelf and at the nodes of one, and whoever inserts in the middle
//! moves the nodes of one.

use std::collections::{VecDeque, vec_deque};
use std::iter::FusedIterator;
use std::ops::{ControlFlow, Range};
use std::slice;
use std::sync::Arc;

use crate::pack::{End, good_size};

/// Nodes that are put on a shelf together. Fewer in tests, whose lists are short.
const SHELF: usize = if cfg!(test) { 8 } else { 512 };
/// A deque of more nodes than this puts some on a shelf.
const NEAR: usize = 2 * SHELF;
/// Items for which a deque has room, however few there are.
const ROOM_KEPT: usize = 16;

/// What a directory finds by the number of elements before it.
pub(super) trait Counted: Clone {
    /// Number of elements.
    fn count(&self) -> usize;
}

/// Nodes of type `T` in order.
#[derive(Debug, Clone)]
pub(super) struct Directory<T> {
    /// All nodes, or those near the tail of a long list.
    tail: VecDeque<T>,
    long: Option<Box<Long<T>>>,
}

/// The other nodes of a long list.
#[derive(Debug, Clone)]
struct Long<T> {
    /// Those near the head.
    head: VecDeque<T>,
    shelves: VecDeque<Shelf<T>>,
    /// How many nodes the shelves have together.
    shelved: usize,
}

/// Some nodes, at least one.
#[derive(Debug, Clone)]
struct Shelf<T> {
    nodes: Arc<Vec<T>>,
    /// How many they are: kept here, so that finding one looks at one shelf alone.
    len: usize,
    /// Their elements together.
    count: usize,
}

/// Says that so many nodes may have been moved, for tests that count them.
#[inline]
fn note_moved(_nodes: usize) {
    #[cfg(test)]
    MOVED.with(|moved| moved.set(moved.get() + _nodes));
}

#[cfg(test)]
thread_local! {
    /// How many nodes this thread has moved to make room for others, or to close a gap.
    pub(super) static MOVED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Where a node is.
enum Place {
    Head(usize),
    Shelf(usize, usize),
    Tail(usize),
}

impl<T: Counted> Shelf<T> {
    fn new(nodes: Vec<T>) -> Self {
        let (len, count) = (nodes.len(), nodes.iter().map(T::count).sum());
        Shelf { nodes: Arc::new(nodes), len, count }
    }

    /// Changes the nodes, which are not shared from now on.
    fn change<R>(&mut self, action: impl FnOnce(&mut Vec<T>) -> R) -> R {
        let nodes = Arc::make_mut(&mut self.nodes);
        let result = action(nodes);
        (self.len, self.count) = (nodes.len(), nodes.iter().map(T::count).sum());
        result
    }
}

impl<T: Counted> Long<T> {
    /// The shelf of a node that is shelved, and its number there. Behind the last for one past the last.
    fn find(&self, node: usize) -> (usize, usize) {
        let mut within = node;
        for (number, shelf) in self.shelves.iter().enumerate() {
            if within < shelf.len {
                return (number, within);
            }
            within -= shelf.len;
        }
        (self.shelves.len(), 0)
    }

    /// Changes the nodes of a shelf, which is split when it becomes long, and joined with a neighbour or
    /// taken away when it becomes short.
    fn change<R>(&mut self, number: usize, action: impl FnOnce(&mut Vec<T>) -> R) -> R {
        let shelf = &mut self.shelves[number];
        let before = shelf.len;
        note_moved(before);
        let result = shelf.change(action);
        let len = shelf.len;
        self.shelved = self.shelved - before + len;
        if len == 0 {
            self.shelves.remove(number);
        } else if len > NEAR {
            let rest = shelf.change(|nodes| nodes.split_off(SHELF));
            self.shelves.insert(number + 1, Shelf::new(rest));
        } else if len < SHELF / 4 {
            self.join(number);
        }
        result
    }

    /// Puts a short shelf together with the one behind it, or before it.
    fn join(&mut self, number: usize) {
        let first = if number + 1 < self.shelves.len() { number } else { number.saturating_sub(1) };
        let lens = self.shelves.range(first..).take(2).map(|shelf| shelf.len);
        if lens.len() == 2
            && lens.sum::<usize>() <= NEAR
            && let Some(second) = self.shelves.remove(first + 1)
        {
            let nodes = Arc::unwrap_or_clone(second.nodes);
            self.shelves[first].change(|own| own.extend(nodes));
        }
    }
}

impl<T: Counted> Directory<T> {
    /// A directory of no nodes, with room for some.
    pub(super) fn with_capacity(nodes: usize) -> Self {
        Directory { tail: VecDeque::with_capacity(nodes), long: None }
    }

    /// Number of nodes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.tail.len() + self.long.as_ref().map_or(0, |long| long.head.len() + long.shelved)
    }

    fn place(&self, node: usize) -> Place {
        let Some(long) = &self.long else { return Place::Tail(node) };
        let Some(behind) = node.checked_sub(long.head.len()) else { return Place::Head(node) };
        let Some(within) = behind.checked_sub(long.shelved) else {
            let (shelf, within) = long.find(behind);
            return Place::Shelf(shelf, within);
        };
        Place::Tail(within)
    }

    /// The node with this number.
    pub(super) fn get(&self, node: usize) -> Option<&T> {
        match (self.place(node), &self.long) {
            (Place::Head(within), Some(long)) => long.head.get(within),
            (Place::Shelf(shelf, within), Some(long)) => long.shelves[shelf].nodes.get(within),
            (Place::Tail(within), _) => self.tail.get(within),
            (_, None) => None,
        }
    }

    /// Changes the node with this number, which is there.
    pub(super) fn change<R>(&mut self, node: usize, action: impl FnOnce(&mut T) -> R) -> R {
        match (self.place(node), &mut self.long) {
            (Place::Head(within), Some(long)) => action(&mut long.head[within]),
            (Place::Shelf(shelf, within), Some(long)) => {
                let shelf = &mut long.shelves[shelf];
                let node = &mut Arc::make_mut(&mut shelf.nodes)[within];
                let before = node.count();
                let result = action(node);
                shelf.count = shelf.count - before + node.count();
                result
            }
            (Place::Tail(within), _) => action(&mut self.tail[within]),
            (_, None) => unreachable!("a list that is not long has all nodes near its tail"),
        }
    }

    /// Puts a node in the place of the one with this number, which is returned.
    pub(super) fn replace(&mut self, node: usize, other: T) -> T {
        self.change(node, |node| std::mem::replace(node, other))
    }

    /// The node at an end.
    #[inline]
    pub(super) fn end(&self, end: End) -> Option<&T> {
        match end {
            End::Front => self.get(0),
            End::Back => self.tail.back().or_else(|| self.get(self.len().checked_sub(1)?)),
        }
    }

    /// The node at an end, for a change.
    #[inline]
    pub(super) fn end_mut(&mut self, end: End) -> Option<&mut T> {
        if self.long.is_some() {
            return self.long_end_mut(end);
        }
        match end {
            End::Front => self.tail.front_mut(),
            End::Back => self.tail.back_mut(),
        }
    }

    #[cold]
    fn long_end_mut(&mut self, end: End) -> Option<&mut T> {
        self.bring_near(end);
        let head = self.long.as_mut().map(|long| &mut long.head);
        match end {
            End::Front => head.and_then(VecDeque::front_mut).or_else(|| self.tail.front_mut()),
            End::Back => self.tail.back_mut().or_else(|| head.and_then(VecDeque::back_mut)),
        }
    }

    /// Adds a node at an end.
    #[inline]
    pub(super) fn push(&mut self, end: End, node: T) {
        match (end, &mut self.long) {
            (End::Front, None) => self.tail.push_front(node),
            (End::Front, Some(long)) => long.head.push_front(node),
            (End::Back, _) => self.tail.push_back(node),
        }
        self.put_away();
    }

    /// Takes the node at an end.
    #[inline]
    pub(super) fn pop(&mut self, end: End) -> Option<T> {
        if self.long.is_some() {
            self.bring_near(end);
        }
        match (end, &mut self.long) {
            (End::Front, None) => self.tail.pop_front(),
            (End::Front, Some(long)) => long.head.pop_front().or_else(|| self.tail.pop_front()),
            (End::Back, None) => self.tail.pop_back(),
            (End::Back, Some(long)) => self.tail.pop_back().or_else(|| long.head.pop_back()),
        }
    }

    /// Puts nodes on a shelf where too many are near an end.
    #[inline]
    fn put_away(&mut self) {
        let head = self.long.as_ref().map_or(0, |long| long.head.len());
        if self.tail.len() > NEAR || head > NEAR {
            self.put_on_shelf();
        }
    }

    #[cold]
    fn put_on_shelf(&mut self) {
        let long = self.long.get_or_insert_with(|| {
            let (head, shelves) = (VecDeque::new(), VecDeque::new());
            Box::new(Long { head, shelves, shelved: 0 })
        });
        if long.head.len() > NEAR {
            let far = long.head.split_off(long.head.len() - SHELF);
            long.shelved += far.len();
            long.shelves.push_front(Shelf::new(far.into()));
        }
        if self.tail.len() > NEAR {
            if long.head.is_empty() && long.shelves.is_empty() {
                // Both ends keep some nodes near.
                long.head = self.tail.drain(..SHELF / 2).collect();
            }
            let far: Vec<T> = self.tail.drain(..SHELF).collect();
            long.shelved += far.len();
            long.shelves.push_back(Shelf::new(far));
        }
    }

    /// Takes nodes from a shelf where none is near an end. A list that has become short has one deque
    /// again.
    fn bring_near(&mut self, end: End) {
        let Some(long) = &mut self.long else { return };
        let near = if end == End::Front { &mut long.head } else { &mut self.tail };
        if near.is_empty() {
            let shelf = match end {
                End::Front => long.shelves.pop_front(),
                End::Back => long.shelves.pop_back(),
            };
            if let Some(shelf) = shelf {
                long.shelved -= shelf.len;
                *near = Arc::unwrap_or_clone(shelf.nodes).into();
            }
        }
        if long.shelves.is_empty() && long.head.len() + self.tail.len() <= SHELF {
            long.head.append(&mut self.tail);
            self.tail = std::mem::take(&mut long.head);
            self.long = None;
        }
    }

    /// Inserts a node before the one with this number, or behind the last one.
    pub(super) fn insert(&mut self, at: usize, node: T) {
        if at == self.len() {
            return self.push(End::Back, node);
        }
        match (self.place(at), &mut self.long) {
            (Place::Head(within), Some(long)) => {
                note_moved(long.head.len());
                long.head.insert(within, node);
            }
            (Place::Shelf(shelf, within), Some(long)) => {
                long.change(shelf, |nodes| nodes.insert(within, node));
            }
            (Place::Tail(within), _) => {
                note_moved(self.tail.len());
                self.tail.insert(within, node);
            }
            (_, None) => unreachable!("a list that is not long has all nodes near its tail"),
        }
        self.put_away();
    }

    /// Takes out the node with this number, which is there.
    pub(super) fn remove(&mut self, at: usize) -> T {
        let removed = match (self.place(at), &mut self.long) {
            (Place::Head(within), Some(long)) => {
                note_moved(long.head.len());
                long.head.remove(within)
            }
            (Place::Shelf(shelf, within), Some(long)) => {
                Some(long.change(shelf, |nodes| nodes.remove(within)))
            }
            (Place::Tail(within), _) => {
                note_moved(self.tail.len());
                self.tail.remove(within)
            }
            (_, None) => None,
        };
        removed.expect("the node is there")
    }

    /// Takes the `count` nodes nearest to an end, in no order.
    pub(super) fn take(&mut self, end: End, count: usize) -> Directory<T> {
        let mut taken = Directory::with_capacity(0);
        let mut left = count.min(self.len());
        let mut shelves = VecDeque::new();
        while left > 0 {
            if self.long.is_some() {
                self.bring_near(end);
            }
            let near = match (end, &mut self.long) {
                (End::Front, Some(long)) if !long.head.is_empty() => &mut long.head,
                (End::Back, Some(long)) if self.tail.is_empty() => &mut long.head,
                _ => &mut self.tail,
            };
            let some = left.min(near.len());
            let range = if end == End::Front { 0..some } else { near.len() - some..near.len() };
            taken.tail.extend(near.drain(range));
            left -= some;
            // Whole shelves go as they are.
            while let Some(long) = &mut self.long
                && let Some(shelf) = match end {
                    End::Front => long.shelves.pop_front_if(|shelf| shelf.len <= left),
                    End::Back => long.shelves.pop_back_if(|shelf| shelf.len <= left),
                }
            {
                (left, long.shelved) = (left - shelf.len, long.shelved - shelf.len);
                shelves.push_back(shelf);
            }
        }
        let shelved = shelves.iter().map(|shelf| shelf.len).sum();
        taken.long = Some(Box::new(Long { head: VecDeque::new(), shelves, shelved }));
        taken
    }

    /// How many of the nodes nearest to an end have up to `elements` elements together, and how many fewer
    /// than that they have.
    pub(super) fn within(&self, end: End, elements: usize) -> (usize, usize) {
        let mut passed = Passed { nodes: 0, left: elements };
        let long = self.long.as_deref();
        let whole = match (end, long) {
            (End::Front, None) => passed.all(self.tail.iter()),
            (End::Back, None) => passed.all(self.tail.iter().rev()),
            (End::Front, Some(Long { head, shelves, .. })) => {
                passed.all(head.iter())
                    && passed.all_on(shelves.iter(), end)
                    && passed.all(self.tail.iter())
            }
            (End::Back, Some(Long { head, shelves, .. })) => {
                passed.all(self.tail.iter().rev())
                    && passed.all_on(shelves.iter().rev(), end)
                    && passed.all(head.iter().rev())
            }
        };
        debug_assert!(whole == (passed.nodes == self.len()));
        (passed.nodes, passed.left)
    }

    /// Changes one node after the other, beginning at an end, until the action says that it is enough. It
    /// gets the nodes' numbers too.
    pub(super) fn change_each(
        &mut self,
        from: End,
        mut action: impl FnMut(usize, &mut T) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (len, mut step) = (self.len(), 0);
        let mut visit = |node: &mut T| {
            let at = if from == End::Front { step } else { len - 1 - step };
            step += 1;
            action(at, node)
        };
        let Directory { tail, long } = self;
        let Some(Long { head, shelves, .. }) = long.as_deref_mut() else {
            return match from {
                End::Front => tail.iter_mut().try_for_each(visit),
                End::Back => tail.iter_mut().rev().try_for_each(visit),
            };
        };
        match from {
            End::Front => {
                head.iter_mut().try_for_each(&mut visit)?;
                shelves.iter_mut().try_for_each(|shelf| {
                    shelf.change(|nodes| nodes.iter_mut().try_for_each(&mut visit))
                })?;
                tail.iter_mut().try_for_each(visit)
            }
            End::Back => {
                tail.iter_mut().rev().try_for_each(&mut visit)?;
                shelves.iter_mut().rev().try_for_each(|shelf| {
                    shelf.change(|nodes| nodes.iter_mut().rev().try_for_each(&mut visit))
                })?;
                head.iter_mut().rev().try_for_each(visit)
            }
        }
    }

    /// All nodes, taken out.
    pub(super) fn into_nodes(self) -> impl Iterator<Item = T> {
        let (head, shelves) = self.long.map(|long| (long.head, long.shelves)).unwrap_or_default();
        let shelved = shelves.into_iter().flat_map(|shelf| Arc::unwrap_or_clone(shelf.nodes));
        head.into_iter().chain(shelved).chain(self.tail)
    }

    /// All nodes, from the head.
    #[inline]
    pub(super) fn iter(&self) -> Iter<'_, T> {
        self.range(0..self.len())
    }

    /// The nodes with these numbers, which are there.
    pub(super) fn range(&self, nodes: Range<usize>) -> Iter<'_, T> {
        let Some(long) = self.long.as_deref() else {
            return Iter { front: self.tail.range(nodes), ..Iter::default() };
        };
        let (before, behind) = (long.head.len(), long.head.len() + long.shelved);
        // What of the numbers lies in a part of the directory, counted from its beginning.
        let part = |from: usize, to: usize| {
            nodes.start.clamp(from, to) - from..nodes.end.clamp(from, to) - from
        };
        let mut iter = Iter {
            front: long.head.range(part(0, before)),
            back: self.tail.range(part(behind, self.len())),
            ..Iter::default()
        };
        let shelved = part(before, behind);
        if !shelved.is_empty() {
            let (first, from) = long.find(shelved.start);
            let (last, to) = long.find(shelved.end);
            if first == last {
                iter.first = long.shelves[first].nodes[from..to].iter();
            } else {
                iter.first = long.shelves[first].nodes[from..].iter();
                iter.shelves = long.shelves.range(first + 1..last);
                iter.last = long.shelves.get(last).map_or(&[][..], |last| &last.nodes[..to]).iter();
            }
        }
        iter
    }

    /// Gives back most of the room of which little is in use.
    pub(super) fn shrink(&mut self) {
        shrink(&mut self.tail);
        if let Some(long) = &mut self.long {
            shrink(&mut long.head);
            shrink(&mut long.shelves);
        }
    }

    /// Bytes of the directory, besides its handle; shelves that are shared count in full.
    pub(super) fn memory(&self) -> usize {
        let bytes = |nodes: usize| if nodes == 0 { 0 } else { good_size(nodes * size_of::<T>()) };
        let long = self.long.as_ref().map_or(0, |long| {
            // The reference counts stand before the vector.
            let shared = good_size(size_of::<Vec<T>>() + 2 * size_of::<usize>());
            let shelves = long.shelves.capacity() * size_of::<Shelf<T>>();
            let shelved = long.shelves.len() * shared + long.shelved * size_of::<T>();
            size_of::<Long<T>>() + bytes(long.head.capacity()) + shelves + shelved
        });
        bytes(self.tail.capacity()) + long
    }

    pub(super) fn check(&self) {
        let Some(long) = &self.long else { return };
        assert_eq!(long.shelved, long.shelves.iter().map(|shelf| shelf.len).sum::<usize>());
        for shelf in &long.shelves {
            assert!((1..=NEAR).contains(&shelf.len) && shelf.len == shelf.nodes.len());
            assert_eq!(shelf.count, shelf.nodes.iter().map(T::count).sum::<usize>());
        }
        assert_eq!(self.iter().len(), self.len());
    }
}

/// Gives back most of a deque's room when a quarter of it is in use: popping one by one moves each item a
/// bounded number of times then.
fn shrink<T>(items: &mut VecDeque<T>) {
    let (used, room) = (items.len(), items.capacity());
    if room > ROOM_KEPT && used <= room / 4 {
        items.shrink_to(used * 2);
    }
}

/// Nodes that were passed, and how many elements are still to be passed.
struct Passed {
    nodes: usize,
    left: usize,
}

impl Passed {
    /// Passes nodes as far as it may. Whether it may pass all of them.
    fn all<'a, T: Counted + 'a>(&mut self, mut nodes: impl Iterator<Item = &'a T>) -> bool {
        nodes.all(|node| self.pass(1, node.count()))
    }

    /// The same for those on shelves, which come in the order from an end.
    fn all_on<'a, T: Counted + 'a>(
        &mut self,
        mut shelves: impl Iterator<Item = &'a Shelf<T>>,
        end: End,
    ) -> bool {
        shelves.all(|shelf| {
            self.pass(shelf.len, shelf.count)
                || match end {
                    End::Front => self.all(shelf.nodes.iter()),
                    End::Back => self.all(shelf.nodes.iter().rev()),
                }
        })
    }

    fn pass(&mut self, nodes: usize, elements: usize) -> bool {
        let passes = elements <= self.left;
        if passes {
            (self.nodes, self.left) = (self.nodes + nodes, self.left - elements);
        }
        passes
    }
}

/// Iterator over nodes, from either end.
#[derive(Debug)]
pub(super) struct Iter<'a, T> {
    front: vec_deque::Iter<'a, T>,
    /// What is left of the shelf before those of `shelves`.
    first: slice::Iter<'a, T>,
    shelves: vec_deque::Iter<'a, Shelf<T>>,
    /// What is left of the shelf behind them.
    last: slice::Iter<'a, T>,
    back: vec_deque::Iter<'a, T>,
}

impl<T> Default for Iter<'_, T> {
    fn default() -> Self {
        Iter {
            front: vec_deque::Iter::default(),
            first: slice::Iter::default(),
            shelves: vec_deque::Iter::default(),
            last: slice::Iter::default(),
            back: vec_deque::Iter::default(),
        }
    }
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Iter {
            front: self.front.clone(),
            first: self.first.clone(),
            shelves: self.shelves.clone(),
            last: self.last.clone(),
            back: self.back.clone(),
        }
    }
}

/// Leaves out up to `count` of what comes, and goes on behind it. Returns that, or how many are left.
fn skip<I: ExactSizeIterator>(some: &mut I, count: usize) -> Result<I::Item, usize> {
    let len = some.len();
    some.nth(count).ok_or(count.saturating_sub(len))
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        self.front.next().or_else(|| self.nth(0))
    }

    /// Goes over shelves that it leaves out, without a look at their nodes.
    fn nth(&mut self, count: usize) -> Option<&'a T> {
        let near = |left| skip(&mut self.first, left);
        let mut left = match skip(&mut self.front, count).or_else(near) {
            Ok(node) => return Some(node),
            Err(left) => left,
        };
        for shelf in self.shelves.by_ref() {
            if left < shelf.len {
                self.first = shelf.nodes.iter();
                return self.first.nth(left);
            }
            left -= shelf.len;
        }
        skip(&mut self.last, left).or_else(|left| skip(&mut self.back, left)).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let shelved: usize = self.shelves.clone().map(|shelf| shelf.len).sum();
        let len = self.front.len() + self.first.len() + shelved + self.last.len() + self.back.len();
        (len, Some(len))
    }
}

impl<T> DoubleEndedIterator for Iter<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if let Some(node) = self.back.next_back().or_else(|| self.last.next_back()) {
            return Some(node);
        }
        if let Some(shelf) = self.shelves.next_back() {
            self.last = shelf.nodes.iter();
            return self.last.next_back();
        }
        self.first.next_back().or_else(|| self.front.next_back())
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

impl<T> FusedIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests;
