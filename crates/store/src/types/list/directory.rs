//! The directory of a long list: its nodes in order, found by number or by element.
//!
//! Most lists have a few nodes, and their directory is one deque. In a very long list only the
//! nodes near the two ends are in deques. The nodes between are in segments of some hundreds, and
//! the directory knows how many elements each segment has. Copies of a list share segments until
//! one of them changes something there. So a snapshot of a list of millions of nodes copies some
//! thousand references. Finding an element takes a look at each segment and at the nodes of one
//! segment. An insertion in the middle moves the nodes of one segment.

use std::collections::{VecDeque, vec_deque};
use std::iter::FusedIterator;
use std::ops::{ControlFlow, Range};
use std::slice;
use std::sync::Arc;

use crate::pack::{End, good_size};

/// Nodes that are put on a segment together. Fewer in tests, whose lists are short.
const SEGMENT: usize = if cfg!(test) { 8 } else { 512 };
/// A deque of more nodes than this puts some on a segment.
const NEAR: usize = 2 * SEGMENT;
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
    /// The nodes near the head.
    head: VecDeque<T>,
    segments: VecDeque<Segment<T>>,
    /// How many nodes the segments have together.
    in_segments: usize,
}

/// Some nodes, at least one.
#[derive(Debug, Clone)]
struct Segment<T> {
    nodes: Arc<Vec<T>>,
    /// How many they are: kept here, so that finding one looks at one segment alone.
    len: usize,
    /// Their elements together.
    count: usize,
}

/// Says that this many nodes may have been moved, for tests that count them.
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
enum Position {
    Head(usize),
    Segment(usize, usize),
    Tail(usize),
}

impl<T: Counted> Segment<T> {
    fn new(nodes: Vec<T>) -> Self {
        let (len, count) = (nodes.len(), nodes.iter().map(T::count).sum());
        Segment { nodes: Arc::new(nodes), len, count }
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
    /// The segment of a node that is shelved, and its number there. Behind the last for one past
    /// the last.
    fn find(&self, node: usize) -> (usize, usize) {
        let mut within = node;
        for (number, segment) in self.segments.iter().enumerate() {
            if within < segment.len {
                return (number, within);
            }
            within -= segment.len;
        }
        (self.segments.len(), 0)
    }

    /// Changes the nodes of a segment, which is split when it becomes long, and joined with a
    /// neighbour or taken away when it becomes short.
    fn change<R>(&mut self, number: usize, action: impl FnOnce(&mut Vec<T>) -> R) -> R {
        let segment = &mut self.segments[number];
        let before = segment.len;
        note_moved(before);
        let result = segment.change(action);
        let len = segment.len;
        self.in_segments = self.in_segments - before + len;
        if len == 0 {
            self.segments.remove(number);
        } else if len > NEAR {
            let rest = segment.change(|nodes| nodes.split_off(SEGMENT));
            self.segments.insert(number + 1, Segment::new(rest));
        } else if len < SEGMENT / 4 {
            self.join(number);
        }
        result
    }

    /// Puts a short segment together with the one behind it, or before it.
    fn join(&mut self, number: usize) {
        let first =
            if number + 1 < self.segments.len() { number } else { number.saturating_sub(1) };
        let lens = self.segments.range(first..).take(2).map(|segment| segment.len);
        if lens.len() == 2
            && lens.sum::<usize>() <= NEAR
            && let Some(second) = self.segments.remove(first + 1)
        {
            let nodes = Arc::unwrap_or_clone(second.nodes);
            self.segments[first].change(|own| own.extend(nodes));
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
        self.tail.len() + self.long.as_ref().map_or(0, |long| long.head.len() + long.in_segments)
    }

    fn position(&self, node: usize) -> Position {
        let Some(long) = &self.long else { return Position::Tail(node) };
        let Some(behind) = node.checked_sub(long.head.len()) else { return Position::Head(node) };
        let Some(within) = behind.checked_sub(long.in_segments) else {
            let (segment, within) = long.find(behind);
            return Position::Segment(segment, within);
        };
        Position::Tail(within)
    }

    /// The node with this number.
    pub(super) fn get(&self, node: usize) -> Option<&T> {
        match (self.position(node), &self.long) {
            (Position::Head(within), Some(long)) => long.head.get(within),
            (Position::Segment(segment, within), Some(long)) => {
                long.segments[segment].nodes.get(within)
            }
            (Position::Tail(within), _) => self.tail.get(within),
            (_, None) => None,
        }
    }

    /// Changes the node with this number, which is there.
    pub(super) fn change<R>(&mut self, node: usize, action: impl FnOnce(&mut T) -> R) -> R {
        match (self.position(node), &mut self.long) {
            (Position::Head(within), Some(long)) => action(&mut long.head[within]),
            (Position::Segment(segment, within), Some(long)) => {
                let segment = &mut long.segments[segment];
                let node = &mut Arc::make_mut(&mut segment.nodes)[within];
                let before = node.count();
                let result = action(node);
                segment.count = segment.count - before + node.count();
                result
            }
            (Position::Tail(within), _) => action(&mut self.tail[within]),
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
        self.refill(end);
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
            self.refill(end);
        }
        match (end, &mut self.long) {
            (End::Front, None) => self.tail.pop_front(),
            (End::Front, Some(long)) => long.head.pop_front().or_else(|| self.tail.pop_front()),
            (End::Back, None) => self.tail.pop_back(),
            (End::Back, Some(long)) => self.tail.pop_back().or_else(|| long.head.pop_back()),
        }
    }

    /// Puts nodes on a segment where too many are near an end.
    #[inline]
    fn put_away(&mut self) {
        let head = self.long.as_ref().map_or(0, |long| long.head.len());
        if self.tail.len() > NEAR || head > NEAR {
            self.put_in_segment();
        }
    }

    #[cold]
    fn put_in_segment(&mut self) {
        let long = self.long.get_or_insert_with(|| {
            let (head, segments) = (VecDeque::new(), VecDeque::new());
            Box::new(Long { head, segments, in_segments: 0 })
        });
        if long.head.len() > NEAR {
            let far = long.head.split_off(long.head.len() - SEGMENT);
            long.in_segments += far.len();
            long.segments.push_front(Segment::new(far.into()));
        }
        if self.tail.len() > NEAR {
            if long.head.is_empty() && long.segments.is_empty() {
                // Both ends keep some nodes near.
                long.head = self.tail.drain(..SEGMENT / 2).collect();
            }
            let far: Vec<T> = self.tail.drain(..SEGMENT).collect();
            long.in_segments += far.len();
            long.segments.push_back(Segment::new(far));
        }
    }

    /// Takes nodes from a segment where none is near an end. A list that has become short has one
    /// deque again.
    fn refill(&mut self, end: End) {
        let Some(long) = &mut self.long else { return };
        let near = if end == End::Front { &mut long.head } else { &mut self.tail };
        if near.is_empty() {
            let segment = match end {
                End::Front => long.segments.pop_front(),
                End::Back => long.segments.pop_back(),
            };
            if let Some(segment) = segment {
                long.in_segments -= segment.len;
                *near = Arc::unwrap_or_clone(segment.nodes).into();
            }
        }
        if long.segments.is_empty() && long.head.len() + self.tail.len() <= SEGMENT {
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
        match (self.position(at), &mut self.long) {
            (Position::Head(within), Some(long)) => {
                note_moved(long.head.len());
                long.head.insert(within, node);
            }
            (Position::Segment(segment, within), Some(long)) => {
                long.change(segment, |nodes| nodes.insert(within, node));
            }
            (Position::Tail(within), _) => {
                note_moved(self.tail.len());
                self.tail.insert(within, node);
            }
            (_, None) => unreachable!("a list that is not long has all nodes near its tail"),
        }
        self.put_away();
    }

    /// Takes out the node with this number, which is there.
    pub(super) fn remove(&mut self, at: usize) -> T {
        let removed = match (self.position(at), &mut self.long) {
            (Position::Head(within), Some(long)) => {
                note_moved(long.head.len());
                long.head.remove(within)
            }
            (Position::Segment(segment, within), Some(long)) => {
                Some(long.change(segment, |nodes| nodes.remove(within)))
            }
            (Position::Tail(within), _) => {
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
        let mut segments = VecDeque::new();
        while left > 0 {
            if self.long.is_some() {
                self.refill(end);
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
            // Whole segments go as they are.
            while let Some(long) = &mut self.long
                && let Some(segment) = match end {
                    End::Front => long.segments.pop_front_if(|segment| segment.len <= left),
                    End::Back => long.segments.pop_back_if(|segment| segment.len <= left),
                }
            {
                (left, long.in_segments) = (left - segment.len, long.in_segments - segment.len);
                segments.push_back(segment);
            }
        }
        let in_segments = segments.iter().map(|segment| segment.len).sum();
        taken.long = Some(Box::new(Long { head: VecDeque::new(), segments, in_segments }));
        taken
    }

    /// How many of the nodes nearest to an end have up to `elements` elements together, and how
    /// many fewer than that they have.
    pub(super) fn within(&self, end: End, elements: usize) -> (usize, usize) {
        let mut passed = Passed { nodes: 0, left: elements };
        let long = self.long.as_deref();
        let whole = match (end, long) {
            (End::Front, None) => passed.all(self.tail.iter()),
            (End::Back, None) => passed.all(self.tail.iter().rev()),
            (End::Front, Some(Long { head, segments, .. })) => {
                passed.all(head.iter())
                    && passed.all_on(segments.iter(), end)
                    && passed.all(self.tail.iter())
            }
            (End::Back, Some(Long { head, segments, .. })) => {
                passed.all(self.tail.iter().rev())
                    && passed.all_on(segments.iter().rev(), end)
                    && passed.all(head.iter().rev())
            }
        };
        debug_assert!(whole == (passed.nodes == self.len()));
        (passed.nodes, passed.left)
    }

    /// Changes one node after the other, beginning at an end, until the action says that it is
    /// enough. It gets the nodes' numbers too.
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
        let Some(Long { head, segments, .. }) = long.as_deref_mut() else {
            return match from {
                End::Front => tail.iter_mut().try_for_each(visit),
                End::Back => tail.iter_mut().rev().try_for_each(visit),
            };
        };
        match from {
            End::Front => {
                head.iter_mut().try_for_each(&mut visit)?;
                segments.iter_mut().try_for_each(|segment| {
                    segment.change(|nodes| nodes.iter_mut().try_for_each(&mut visit))
                })?;
                tail.iter_mut().try_for_each(visit)
            }
            End::Back => {
                tail.iter_mut().rev().try_for_each(&mut visit)?;
                segments.iter_mut().rev().try_for_each(|segment| {
                    segment.change(|nodes| nodes.iter_mut().rev().try_for_each(&mut visit))
                })?;
                head.iter_mut().rev().try_for_each(visit)
            }
        }
    }

    /// All nodes, taken out.
    pub(super) fn into_nodes(self) -> impl Iterator<Item = T> {
        let (head, segments) = self.long.map(|long| (long.head, long.segments)).unwrap_or_default();
        let in_segments =
            segments.into_iter().flat_map(|segment| Arc::unwrap_or_clone(segment.nodes));
        head.into_iter().chain(in_segments).chain(self.tail)
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
        let (before, behind) = (long.head.len(), long.head.len() + long.in_segments);
        // What of the numbers lies in a part of the directory, counted from its beginning.
        let part = |from: usize, to: usize| {
            nodes.start.clamp(from, to) - from..nodes.end.clamp(from, to) - from
        };
        let mut iter = Iter {
            front: long.head.range(part(0, before)),
            back: self.tail.range(part(behind, self.len())),
            ..Iter::default()
        };
        let in_segments = part(before, behind);
        if !in_segments.is_empty() {
            let (first, from) = long.find(in_segments.start);
            let (last, to) = long.find(in_segments.end);
            if first == last {
                iter.first = long.segments[first].nodes[from..to].iter();
            } else {
                iter.first = long.segments[first].nodes[from..].iter();
                iter.segments = long.segments.range(first + 1..last);
                iter.last =
                    long.segments.get(last).map_or(&[][..], |last| &last.nodes[..to]).iter();
            }
        }
        iter
    }

    /// Gives back most of the room of which little is in use.
    pub(super) fn shrink(&mut self) {
        shrink(&mut self.tail);
        if let Some(long) = &mut self.long {
            shrink(&mut long.head);
            shrink(&mut long.segments);
        }
    }

    /// Bytes of the directory, besides its handle; segments that are shared count in full.
    pub(super) fn memory(&self) -> usize {
        let bytes = |nodes: usize| if nodes == 0 { 0 } else { good_size(nodes * size_of::<T>()) };
        let long = self.long.as_ref().map_or(0, |long| {
            // The reference counts stand before the vector.
            let shared = good_size(size_of::<Vec<T>>() + 2 * size_of::<usize>());
            let segments = long.segments.capacity() * size_of::<Segment<T>>();
            let in_segments = long.segments.len() * shared + long.in_segments * size_of::<T>();
            size_of::<Long<T>>() + bytes(long.head.capacity()) + segments + in_segments
        });
        bytes(self.tail.capacity()) + long
    }

    pub(super) fn check(&self) {
        let Some(long) = &self.long else { return };
        assert_eq!(
            long.in_segments,
            long.segments.iter().map(|segment| segment.len).sum::<usize>()
        );
        for segment in &long.segments {
            assert!((1..=NEAR).contains(&segment.len) && segment.len == segment.nodes.len());
            assert_eq!(segment.count, segment.nodes.iter().map(T::count).sum::<usize>());
        }
        assert_eq!(self.iter().len(), self.len());
    }
}

/// Gives back most of a deque's room when a quarter of it is in use: popping one by one moves each
/// item a bounded number of times then.
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

    /// The same for those in segments, which come in the order from an end.
    fn all_on<'a, T: Counted + 'a>(
        &mut self,
        mut segments: impl Iterator<Item = &'a Segment<T>>,
        end: End,
    ) -> bool {
        segments.all(|segment| {
            self.pass(segment.len, segment.count)
                || match end {
                    End::Front => self.all(segment.nodes.iter()),
                    End::Back => self.all(segment.nodes.iter().rev()),
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
    /// What is left of the segment before those of `segments`.
    first: slice::Iter<'a, T>,
    segments: vec_deque::Iter<'a, Segment<T>>,
    /// What is left of the segment behind them.
    last: slice::Iter<'a, T>,
    back: vec_deque::Iter<'a, T>,
}

impl<T> Default for Iter<'_, T> {
    fn default() -> Self {
        Iter {
            front: vec_deque::Iter::default(),
            first: slice::Iter::default(),
            segments: vec_deque::Iter::default(),
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
            segments: self.segments.clone(),
            last: self.last.clone(),
            back: self.back.clone(),
        }
    }
}

/// Leaves out up to `count` of what comes, and goes on behind it. Returns that, or how many are
/// left.
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

    /// Goes over segments that it leaves out, without a look at their nodes.
    fn nth(&mut self, count: usize) -> Option<&'a T> {
        let near = |left| skip(&mut self.first, left);
        let mut left = match skip(&mut self.front, count).or_else(near) {
            Ok(node) => return Some(node),
            Err(left) => left,
        };
        for segment in self.segments.by_ref() {
            if left < segment.len {
                self.first = segment.nodes.iter();
                return self.first.nth(left);
            }
            left -= segment.len;
        }
        skip(&mut self.last, left).or_else(|left| skip(&mut self.back, left)).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let in_segments: usize = self.segments.clone().map(|segment| segment.len).sum();
        let len =
            self.front.len() + self.first.len() + in_segments + self.last.len() + self.back.len();
        (len, Some(len))
    }
}

impl<T> DoubleEndedIterator for Iter<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if let Some(node) = self.back.next_back().or_else(|| self.last.next_back()) {
            return Some(node);
        }
        if let Some(segment) = self.segments.next_back() {
            self.last = segment.nodes.iter();
            return self.last.next_back();
        }
        self.first.next_back().or_else(|| self.front.next_back())
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

impl<T> FusedIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests;
