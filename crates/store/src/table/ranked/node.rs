//! The nodes of the tree: how a change updates them on its way back from a leaf.

use super::item::RankedItem;

/// The most elements of a leaf, and the most children of an inner node. Each array of a node has
/// exactly this capacity: 64 words are a size class of the allocator (512 bytes).
pub(super) const CAPACITY: usize = 64;

/// A removal that leaves a node with fewer entries than this merges or evens it out.
pub(super) const MINIMUM: usize = 16;

/// Two neighbours become one when they have at most this many entries together; below
/// [`CAPACITY`], so that a few inserts after a merge do not split it again.
const MERGED_MAXIMUM: usize = 48;

/// A full leaf evens out with a neighbour of at most this many elements instead of splitting.
/// Fuller neighbours would take too little to be worth the move.
const ROOMY: usize = CAPACITY - 8;

/// How a search within a leaf steps: first over every eighth element, then within eight.
const STRIDE: usize = 8;

pub(super) enum Node<I> {
    /// The elements, ascending. Only the leaf of an empty tree is empty.
    Leaf(Vec<I>),
    Inner(Box<Inner<I>>),
}

/// An inner node: four parallel arrays, so that each search reads just the one it needs.
pub(super) struct Inner<I> {
    /// The score of each child's first element.
    scores: Vec<f64>,
    /// The first element of each child.
    pub(super) firsts: Vec<I>,
    /// How many elements each child has, in all its levels.
    pub(super) counts: Vec<usize>,
    pub(super) children: Vec<Node<I>>,
}

/// A child with its parent's record of it.
pub(super) struct Branch<I> {
    score: f64,
    first: I,
    count: usize,
    pub(super) child: Node<I>,
}

/// The first number of `low..high` that is not `before`, which is true for a prefix of them.
#[inline]
fn partition(mut low: usize, mut high: usize, before: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// How many elements of a leaf are `before`. Two rounds, each over elements prefetched together.
#[inline]
pub(super) fn partition_leaf<I: RankedItem>(
    items: &[I],
    before: impl Fn(f64, &I) -> bool,
) -> usize {
    let is_before = |position: usize| before(items[position].score(), &items[position]);
    for item in items.iter().step_by(STRIDE) {
        item.prefetch();
    }
    let strides = partition(0, items.len().div_ceil(STRIDE), |stride| is_before(stride * STRIDE));
    if strides == 0 {
        return 0;
    }
    let low = (strides - 1) * STRIDE + 1;
    let high = (strides * STRIDE).min(items.len());
    for item in &items[low..high] {
        item.prefetch();
    }
    partition(low, high, is_before)
}

/// Moves entries between two neighbouring arrays until `left` has `target` of them.
fn shift<T>(left: &mut Vec<T>, right: &mut Vec<T>, target: usize) {
    if left.len() > target {
        right.splice(0..0, left.drain(target..));
    } else {
        left.extend(right.drain(..target - left.len()));
    }
}

/// Takes the entries from `at` on into an array of full capacity.
fn split_tail<T>(entries: &mut Vec<T>, at: usize) -> Vec<T> {
    let mut tail = Vec::with_capacity(CAPACITY);
    tail.extend(entries.drain(at..));
    tail
}

impl<I: RankedItem> Node<I> {
    pub(super) fn empty() -> Self {
        Node::Leaf(Vec::with_capacity(CAPACITY))
    }

    /// The number of entries: elements of a leaf, children of an inner node.
    pub(super) fn entries(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Inner(inner) => inner.children.len(),
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Inner(inner) => inner.counts.iter().sum(),
        }
    }

    /// The score of the first element, and that element. The node is not empty.
    pub(super) fn first(&self) -> (f64, I) {
        match self {
            Node::Leaf(items) => (items[0].score(), items[0]),
            Node::Inner(inner) => (inner.scores[0], inner.firsts[0]),
        }
    }

    /// Moves entries between two neighbours until this one, the left of them, has `target`.
    fn shift(&mut self, right: &mut Node<I>, target: usize) {
        match (self, right) {
            (Node::Leaf(left), Node::Leaf(right)) => shift(left, right, target),
            (Node::Inner(left), Node::Inner(right)) => {
                shift(&mut left.scores, &mut right.scores, target);
                shift(&mut left.firsts, &mut right.firsts, target);
                shift(&mut left.counts, &mut right.counts, target);
                shift(&mut left.children, &mut right.children, target);
            }
            _ => unreachable!("neighbours are of one kind: all leaves have the same depth"),
        }
    }

    /// Removes up to `limit` elements from the leaf at the path's end, beginning at `position`.
    pub(super) fn remove_run(
        &mut self,
        path: &[u8],
        position: usize,
        limit: usize,
        removed: &mut impl FnMut(I),
    ) -> usize {
        match (self, path.split_first()) {
            (Node::Leaf(items), None) => {
                let end = items.len().min(position + limit);
                items.drain(position..end).for_each(removed);
                end - position
            }
            (Node::Inner(inner), Some((&index, rest))) => {
                let index = usize::from(index);
                let count = inner.children[index].remove_run(rest, position, limit, removed);
                inner.mend_after_removal(index, count);
                count
            }
            _ => unreachable!("a path has one step for each inner level"),
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        match self {
            Node::Leaf(_) => CAPACITY * size_of::<I>(),
            Node::Inner(inner) => {
                let arrays =
                    size_of::<f64>() + size_of::<I>() + size_of::<usize>() + size_of::<Node<I>>();
                let own = size_of::<Inner<I>>() + CAPACITY * arrays;
                // All leaves weigh the same and their parents are far fewer: no need to visit
                // the leaves.
                match inner.children.first() {
                    Some(leaf @ Node::Leaf(_)) => own + inner.children.len() * leaf.memory_usage(),
                    _ => own + inner.children.iter().map(Node::memory_usage).sum::<usize>(),
                }
            }
        }
    }
}

impl<I: RankedItem> Branch<I> {
    pub(super) fn of(child: Node<I>) -> Self {
        let (score, first) = child.first();
        Self { score, first, count: child.count(), child }
    }
}

impl<I: RankedItem> Inner<I> {
    fn new() -> Self {
        Self {
            scores: Vec::with_capacity(CAPACITY),
            firsts: Vec::with_capacity(CAPACITY),
            counts: Vec::with_capacity(CAPACITY),
            children: Vec::with_capacity(CAPACITY),
        }
    }

    pub(super) fn with_branches(branches: impl IntoIterator<Item = Branch<I>>) -> Box<Self> {
        let mut inner = Box::new(Self::new());
        for branch in branches {
            inner.insert_branch(inner.children.len(), branch);
        }
        inner
    }

    fn insert_branch(&mut self, at: usize, branch: Branch<I>) {
        debug_assert!(self.children.len() < CAPACITY);
        self.scores.insert(at, branch.score);
        self.firsts.insert(at, branch.first);
        self.counts.insert(at, branch.count);
        self.children.insert(at, branch.child);
    }

    fn remove_branch(&mut self, at: usize) -> Node<I> {
        self.scores.remove(at);
        self.firsts.remove(at);
        self.counts.remove(at);
        self.children.remove(at)
    }

    /// Updates the record of the child `index`.
    fn refresh(&mut self, index: usize) {
        self.counts[index] = self.children[index].count();
        self.refresh_first(index);
    }

    fn refresh_first(&mut self, index: usize) {
        (self.scores[index], self.firsts[index]) = self.children[index].first();
    }

    /// The last child whose first element is `before`; the first child when there is none.
    #[inline]
    pub(super) fn child_before(&self, before: impl Fn(f64, &I) -> bool) -> usize {
        let is_before = |index: usize| before(self.scores[index], &self.firsts[index]);
        partition(1, self.children.len(), is_before) - 1
    }

    /// The child with the element `rank` of this subtree, and its rank within the child.
    #[inline]
    pub(super) fn child_at(&self, mut rank: usize) -> (usize, usize) {
        for (index, &count) in self.counts.iter().enumerate() {
            if rank < count {
                return (index, rank);
            }
            rank -= count;
        }
        unreachable!("a rank is looked up only below the number of elements")
    }

    /// Inserts `item` at the end of `path`. A node that had to split returns its right part.
    /// `at_edge` tells that no element of the tree lies to the right of this node.
    pub(super) fn insert(
        &mut self,
        path: &[u8],
        position: usize,
        item: I,
        at_edge: bool,
    ) -> Option<Box<Inner<I>>> {
        let (&index, rest) = path.split_first().expect("a path has one step for each inner level");
        let index = usize::from(index);
        let at_edge = at_edge && index + 1 == self.children.len();
        match &mut self.children[index] {
            Node::Leaf(items) if items.len() == CAPACITY => {
                self.insert_into_full_leaf(index, position, item, at_edge)
            }
            Node::Leaf(items) => {
                items.insert(position, item);
                self.counts[index] += 1;
                if position == 0 {
                    self.refresh_first(index);
                }
                None
            }
            Node::Inner(inner) => {
                let split = inner.insert(rest, position, item, at_edge);
                self.counts[index] += 1;
                self.refresh_first(index);
                let right = split?;
                self.counts[index] = self.children[index].count();
                self.insert_child(index + 1, Node::Inner(right), at_edge)
            }
        }
    }

    /// Makes room for an element in the full leaf `index`, and inserts it: by opening a new leaf
    /// at the right edge, by evening out with a neighbour, or by splitting the leaf.
    fn insert_into_full_leaf(
        &mut self,
        index: usize,
        position: usize,
        item: I,
        at_edge: bool,
    ) -> Option<Box<Inner<I>>> {
        let is_roomy = |neighbour: &Node<I>| neighbour.entries() <= ROOMY;
        let mut right = if at_edge && position == CAPACITY {
            Vec::with_capacity(CAPACITY)
        } else if index > 0 && is_roomy(&self.children[index - 1]) {
            let position = self.children[index - 1].entries() + position;
            self.insert_into_pair(index - 1, position, item);
            return None;
        } else if self.children.get(index + 1).is_some_and(is_roomy) {
            self.insert_into_pair(index, position, item);
            return None;
        } else {
            let Node::Leaf(items) = &mut self.children[index] else {
                unreachable!("the caller saw a leaf")
            };
            split_tail(items, CAPACITY / 2)
        };
        let Node::Leaf(left) = &mut self.children[index] else {
            unreachable!("the caller saw a leaf")
        };
        let (half, position) = match position.checked_sub(left.len()) {
            Some(position) if position > 0 || right.is_empty() => (&mut right, position),
            _ => (left, position),
        };
        half.insert(position, item);
        self.refresh(index);
        self.insert_child(index + 1, Node::Leaf(right), at_edge)
    }

    /// Evens out the leaves `index` and `index + 1`, and inserts an element at `position`,
    /// counted from the start of the left one.
    fn insert_into_pair(&mut self, index: usize, position: usize, item: I) {
        self.even_out(index);
        let (Node::Leaf(left), Node::Leaf(right)) = self.pair(index) else {
            unreachable!("neighbours are of one kind: all leaves have the same depth")
        };
        match position.checked_sub(left.len()) {
            Some(position) if position > 0 => right.insert(position, item),
            _ => left.insert(position, item),
        }
        self.refresh(index);
        self.refresh(index + 1);
    }

    /// Inserts a child. When this node is full it splits, and returns its right part.
    fn insert_child(&mut self, at: usize, child: Node<I>, at_edge: bool) -> Option<Box<Inner<I>>> {
        let branch = Branch::of(child);
        if self.children.len() < CAPACITY {
            self.insert_branch(at, branch);
            return None;
        }
        if at_edge && at == CAPACITY {
            return Some(Inner::with_branches([branch]));
        }
        let half = CAPACITY / 2;
        let mut right = Box::new(Inner {
            scores: split_tail(&mut self.scores, half),
            firsts: split_tail(&mut self.firsts, half),
            counts: split_tail(&mut self.counts, half),
            children: split_tail(&mut self.children, half),
        });
        if at <= half {
            self.insert_branch(at, branch);
        } else {
            right.insert_branch(at - half, branch);
        }
        Some(right)
    }

    /// Moves entries between the children `index` and `index + 1` until they have equally many.
    fn even_out(&mut self, index: usize) {
        let (left, right) = self.pair(index);
        left.shift(right, usize::midpoint(left.entries(), right.entries()));
        self.refresh(index);
        self.refresh(index + 1);
    }

    fn pair(&mut self, index: usize) -> (&mut Node<I>, &mut Node<I>) {
        let (left, right) = self.children.split_at_mut(index + 1);
        (&mut left[index], &mut right[0])
    }

    /// Restores the invariants of child `index` after `removed` elements left it.
    fn mend_after_removal(&mut self, index: usize, removed: usize) {
        let entries = self.children[index].entries();
        if entries == 0 {
            self.remove_branch(index);
            return;
        }
        self.counts[index] -= removed;
        self.refresh_first(index);
        // A node without a neighbour under the same parent lies at the right edge, where nodes
        // may be as small as they like.
        if entries >= MINIMUM || self.children.len() == 1 {
            return;
        }
        let index = index.saturating_sub(1);
        let (left, right) = self.pair(index);
        let together = left.entries() + right.entries();
        if together > MERGED_MAXIMUM {
            self.even_out(index);
            return;
        }
        left.shift(right, together);
        self.remove_branch(index + 1);
        self.refresh(index);
    }
}

impl<I: RankedItem> Node<I> {
    /// Asserts the invariants of a subtree, and returns its number of inner levels.
    pub(super) fn check(&self, is_root: bool, at_edge: bool) -> usize {
        let minimum = match (is_root, at_edge) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => MINIMUM,
        };
        let entries = self.entries();
        assert!((minimum..=CAPACITY).contains(&entries), "{entries} entries in a node");
        let inner = match self {
            Node::Leaf(items) => {
                assert_eq!(items.capacity(), CAPACITY);
                return 0;
            }
            Node::Inner(inner) => inner,
        };
        assert_eq!(inner.scores.len(), entries);
        assert_eq!(inner.firsts.len(), entries);
        assert_eq!(inner.counts.len(), entries);
        assert_eq!(inner.scores.capacity(), CAPACITY);
        assert_eq!(inner.firsts.capacity(), CAPACITY);
        assert_eq!(inner.counts.capacity(), CAPACITY);
        assert_eq!(inner.children.capacity(), CAPACITY);
        let mut depth = None;
        for (index, child) in inner.children.iter().enumerate() {
            let child_depth = child.check(false, at_edge && index + 1 == entries);
            assert_eq!(*depth.get_or_insert(child_depth), child_depth, "leaves lie equally deep");
            assert_eq!(inner.counts[index], child.count(), "counts agree with children");
            let (score, first) = child.first();
            assert_eq!(inner.scores[index], score, "recorded scores agree with children");
            assert_eq!(inner.firsts[index].score(), score, "recorded scores are up to date");
            assert_eq!(inner.firsts[index].member(), first.member(), "recorded first elements");
        }
        depth.expect("an inner node has children") + 1
    }
}
