//! The order index of a sorted set: a B-tree whose nodes know how many elements lie below them.
//!
//! The textbook structure is the order-statistics tree: with a count beside every child, the rank
//! of an element and the element at a rank both cost one descent. Redis keeps a skip list with
//! spans for this; a skip list pays one cache miss per comparison, and some 40 bytes per element
//! for its pointers. Here an element costs one machine word:
//!
//! - The tree does not own members. An element is a small handle (a thin pointer, in the sorted
//!   set) through which score and member are read; see [`RankedItem`] for the contract.
//! - A leaf is one block of 64 handles. An inner node keeps the counts of its children, and the
//!   first element of each with its score *beside* it, in arrays of their own. A descent by score
//!   reads contiguous floats and touches no element above the leaf; only equal scores cost a look
//!   at a member. In the leaf all candidates of a search step are prefetched together, so that
//!   their cache misses overlap.
//! - Ascending inserts leave full nodes behind: a full node at the right edge is not halved, the
//!   new element opens a node of its own. Elsewhere a full leaf first evens out with a neighbour
//!   that has room, and splits only when there is none. So a tree costs about 9 bytes per element
//!   after ascending inserts, and about 11 after random ones.
//!
//! Every change happens in two steps: a search yields the path (one child index per level), and
//! the change follows that path down and mends counts, first elements and fill on its way back.

mod item;
mod node;
mod range;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;

pub use item::RankedItem;
use node::{Branch, CAPACITY, Inner, Node, partition_leaf};
pub use range::Range;

/// Levels of inner nodes at most. With `node::MINIMUM` children each this is beyond any memory.
const MAX_DEPTH: usize = 16;

/// Elements ordered by (score, member), with ranks. Ranks count from 0 at the lowest element.
pub struct Ranked<I> {
    root: Node<I>,
    len: usize,
}

/// The path from the root to a position in a leaf: the child taken at each level, then a position.
struct Path {
    children: [u8; MAX_DEPTH],
    depth: usize,
    position: usize,
}

impl Path {
    fn new() -> Self {
        Self { children: [0; MAX_DEPTH], depth: 0, position: 0 }
    }

    fn push(&mut self, child: usize) {
        debug_assert!(child < CAPACITY);
        self.children[self.depth] = child as u8;
        self.depth += 1;
    }

    fn children(&self) -> &[u8] {
        &self.children[..self.depth]
    }
}

/// Compares two elements, given as score and member.
#[inline]
fn compare(score: f64, member: &[u8], other_score: f64, other_member: &[u8]) -> Ordering {
    if score < other_score {
        Ordering::Less
    } else if score > other_score {
        Ordering::Greater
    } else {
        member.cmp(other_member)
    }
}

impl<I: RankedItem> Default for Ranked<I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: RankedItem> Ranked<I> {
    /// An empty tree.
    pub fn new() -> Self {
        Self { root: Node::empty(), len: 0 }
    }

    /// Builds a tree of full nodes from elements that come in ascending order, without
    /// comparing them.
    pub fn from_sorted(items: impl IntoIterator<Item = I>) -> Self {
        let mut items = items.into_iter();
        let mut len = 0;
        let mut level = Vec::new();
        loop {
            let mut leaf = Vec::with_capacity(CAPACITY);
            leaf.extend(items.by_ref().take(CAPACITY));
            if leaf.is_empty() {
                break;
            }
            len += leaf.len();
            level.push(Branch::of(Node::Leaf(leaf)));
        }
        while level.len() > 1 {
            let mut branches = level.into_iter().peekable();
            level = Vec::new();
            while branches.peek().is_some() {
                let inner = Inner::with_branches(branches.by_ref().take(CAPACITY));
                level.push(Branch::of(Node::Inner(inner)));
            }
        }
        let root = level.pop().map_or_else(Node::empty, |branch| branch.child);
        Self { root, len }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The bytes this tree takes, itself included, its elements' own allocations excluded.
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.root.memory_usage()
    }

    /// Inserts an element. No element with its score and member may be present.
    pub fn insert(&mut self, item: I) {
        let path = self.search_up_to(item.score(), item.member());
        debug_assert!(self.item_before(&path).is_none_or(|previous| {
            compare(previous.score(), previous.member(), item.score(), item.member()).is_lt()
        }));
        self.len += 1;
        let split = match &mut self.root {
            Node::Leaf(items) if items.len() < CAPACITY => {
                items.insert(path.position, item);
                None
            }
            Node::Leaf(_) => {
                // A full root leaf becomes the only child of an inner node, which then makes
                // room as for any other.
                let leaf = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
                let mut inner = Inner::with_branches([Branch::of(leaf)]);
                let split = inner.insert(&[0], path.position, item, true);
                self.root = Node::Inner(inner);
                split
            }
            Node::Inner(inner) => inner.insert(path.children(), path.position, item, true),
        };
        if let Some(right) = split {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
            let branches = [Branch::of(left), Branch::of(Node::Inner(right))];
            self.root = Node::Inner(Inner::with_branches(branches));
        }
    }

    /// Removes the element with this score and member, and returns it; `None` when there is
    /// none. This must happen before the element's score is changed or its allocation freed.
    pub fn remove(&mut self, score: f64, member: &[u8]) -> Option<I> {
        let path = self.find(score, member)?;
        Some(self.remove_at(&path))
    }

    /// Removes the element at `rank`, and returns it; `None` when `rank` is not below the length.
    pub fn remove_rank(&mut self, rank: usize) -> Option<I> {
        let path = self.path_to(rank)?;
        Some(self.remove_at(&path))
    }

    /// Removes and returns the lowest element.
    pub fn pop_first(&mut self) -> Option<I> {
        self.remove_rank(0)
    }

    /// Removes and returns the highest element.
    pub fn pop_last(&mut self) -> Option<I> {
        self.remove_rank(self.len.checked_sub(1)?)
    }

    /// Removes the elements whose ranks are in `start..end` (`end` may be past the last), and hands
    /// each to `removed` in ascending order, which may free it. Costs one descent per leaf touched.
    pub fn remove_ranks(&mut self, start: usize, end: usize, mut removed: impl FnMut(I)) {
        let end = end.min(self.len);
        let mut left = end.saturating_sub(start);
        // `removed` may free its element at once: an element leaves its leaf first, and the nodes
        // above that still name it are mended before anything reads through it.
        while left > 0 {
            let path = self.path_to(start).expect("ranks below the length are present");
            left -= self.remove_run(&path, left, &mut removed);
        }
    }

    /// Gives a present element a new score. `set_score` writes the score into the element; it is
    /// called once, at the moment the tree permits it. Costs one search when the element keeps
    /// its place among its neighbours, and a removal and an insertion otherwise. Returns `false`,
    /// without calling `set_score`, when the element is not present.
    pub fn rescore(&mut self, item: I, new_score: f64, set_score: impl FnOnce(I, f64)) -> bool {
        let Some(path) = self.find(item.score(), item.member()) else {
            return false;
        };
        if self.keeps_place(&path, new_score, item.member()) {
            set_score(item, new_score);
        } else {
            self.remove_at(&path);
            set_score(item, new_score);
            self.insert(item);
        }
        true
    }

    /// The rank of the element with this score and member.
    pub fn rank_of(&self, score: f64, member: &[u8]) -> Option<usize> {
        Some(self.rank_at(&self.find(score, member)?))
    }

    /// The element at `rank`.
    pub fn get(&self, rank: usize) -> Option<I> {
        (rank < self.len).then(|| {
            let (items, position) = self.leaf_at(rank);
            items[position]
        })
    }

    /// The lowest element.
    pub fn first(&self) -> Option<I> {
        self.get(0)
    }

    /// The highest element.
    pub fn last(&self) -> Option<I> {
        self.get(self.len.checked_sub(1)?)
    }

    /// The number of elements whose score is below `score`: the rank of the first that is not.
    pub fn count_below(&self, score: f64) -> usize {
        self.rank_at(&self.search(|other, _| other < score))
    }

    /// The number of elements whose score is at most `score`: the rank of the first above it.
    pub fn count_up_to(&self, score: f64) -> usize {
        self.rank_at(&self.search(|other, _| other <= score))
    }

    /// The number of elements for which `before` is true, which must be a prefix of the order. For
    /// bounds on members among equal scores.
    pub fn partition_point(&self, before: impl Fn(&I) -> bool) -> usize {
        self.rank_at(&self.search(|_, item| before(item)))
    }

    /// The position after the last element that is `before`, a prefix of the order. Unless that is
    /// the very beginning, the previous element is in the same leaf.
    #[inline]
    fn search(&self, before: impl Fn(f64, &I) -> bool) -> Path {
        let mut path = Path::new();
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(items) => {
                    path.position = partition_leaf(items, before);
                    return path;
                }
                Node::Inner(inner) => {
                    let index = inner.child_before(&before);
                    path.push(index);
                    node = &inner.children[index];
                }
            }
        }
    }

    /// The position after the last element that is not above (score, member).
    fn search_up_to(&self, score: f64, member: &[u8]) -> Path {
        self.search(|other_score, other| {
            other_score < score || (other_score == score && other.member() <= member)
        })
    }

    /// The position of the element with this score and member.
    fn find(&self, score: f64, member: &[u8]) -> Option<Path> {
        let mut path = self.search_up_to(score, member);
        let item = self.item_before(&path)?;
        path.position -= 1;
        (item.score() == score && item.member() == member).then_some(path)
    }

    /// The element in front of a position, when it is in the same leaf.
    fn item_before(&self, path: &Path) -> Option<I> {
        Some(self.leaf(path)[path.position.checked_sub(1)?])
    }

    fn leaf(&self, path: &Path) -> &[I] {
        let mut node = &self.root;
        for &index in path.children() {
            let Node::Inner(inner) = node else {
                unreachable!("a path has one step for each inner level")
            };
            node = &inner.children[usize::from(index)];
        }
        let Node::Leaf(items) = node else {
            unreachable!("a path ends at a leaf");
        };
        items
    }

    /// The number of elements in front of a position.
    fn rank_at(&self, path: &Path) -> usize {
        let mut rank = path.position;
        let mut node = &self.root;
        for &index in path.children() {
            let Node::Inner(inner) = node else {
                unreachable!("a path has one step for each inner level")
            };
            rank += inner.counts[..usize::from(index)].iter().sum::<usize>();
            node = &inner.children[usize::from(index)];
        }
        rank
    }

    fn path_to(&self, rank: usize) -> Option<Path> {
        if rank >= self.len {
            return None;
        }
        let mut path = Path::new();
        path.position = rank;
        let mut node = &self.root;
        while let Node::Inner(inner) = node {
            let (index, rest) = inner.child_at(path.position);
            path.push(index);
            path.position = rest;
            node = &inner.children[index];
        }
        Some(path)
    }

    /// The leaf with the element at `rank`, and the element's position there.
    fn leaf_at(&self, mut rank: usize) -> (&[I], usize) {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(items) => return (items, rank),
                Node::Inner(inner) => {
                    let (index, rest) = inner.child_at(rank);
                    rank = rest;
                    node = &inner.children[index];
                }
            }
        }
    }

    /// Whether the element at `path` would stay where it is with another score, and no node
    /// records its present one.
    fn keeps_place(&self, path: &Path, new_score: f64, member: &[u8]) -> bool {
        let mut node = &self.root;
        let mut behind = None;
        for &index in path.children() {
            let Node::Inner(inner) = node else {
                unreachable!("a path has one step for each inner level")
            };
            let index = usize::from(index);
            behind = inner.firsts.get(index + 1).copied().or(behind);
            node = &inner.children[index];
        }
        let items = self.leaf(path);
        let in_front = match path.position.checked_sub(1) {
            Some(position) => Some(items[position]),
            // The parent keeps a copy of the first element's score.
            None if path.depth > 0 => return false,
            None => None,
        };
        let behind = items.get(path.position + 1).copied().or(behind);
        let order = |other: I| compare(other.score(), other.member(), new_score, member);
        in_front.is_none_or(|other| order(other).is_lt())
            && behind.is_none_or(|other| order(other).is_gt())
    }

    fn remove_at(&mut self, path: &Path) -> I {
        let mut item = None;
        self.remove_run(path, 1, &mut |removed| item = Some(removed));
        item.expect("the path leads to an element")
    }

    /// Removes up to `limit` elements that lie in one leaf from the end of `path` on. Returns
    /// how many.
    fn remove_run(&mut self, path: &Path, limit: usize, removed: &mut impl FnMut(I)) -> usize {
        let count = self.root.remove_run(path.children(), path.position, limit, removed);
        self.len -= count;
        while let Node::Inner(inner) = &mut self.root
            && inner.children.len() <= 1
        {
            self.root = inner.children.pop().unwrap_or_else(Node::empty);
        }
        count
    }
}

impl<I: RankedItem> Ranked<I> {
    /// Asserts the invariants: ascending order; counts and recorded first elements that agree with
    /// the children; one depth for all leaves; arrays of the planned capacity; and at least
    /// `MINIMUM` entries in each node, except the root and the nodes of the right edge.
    ///
    /// # Panics
    /// If one of them is violated.
    pub fn check(&self) {
        let depth = self.root.check(true, true);
        assert!(depth <= MAX_DEPTH, "{depth} levels");
        assert_eq!(self.len, self.root.count(), "the length is the number of elements");
        if let Node::Inner(inner) = &self.root {
            assert!(inner.children.len() > 1, "a root with one child gives way to it");
        }
        let mut previous: Option<I> = None;
        for item in self.iter() {
            if let Some(previous) = previous {
                let order =
                    compare(previous.score(), previous.member(), item.score(), item.member());
                assert!(order.is_lt(), "elements ascend");
            }
            previous = Some(item);
        }
    }
}

impl<I: RankedItem> fmt::Debug for Ranked<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranked").field("len", &self.len).finish_non_exhaustive()
    }
}
