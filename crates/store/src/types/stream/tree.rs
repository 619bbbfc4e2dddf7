//! An ordered map whose copies share their common parts.
//!
//! The textbook structure is a B+ tree with counted nodes: a copy counts the root, and a writer
//! that changes one of several copies first copies the nodes on its way down. So a snapshot takes a
//! stream of any size, with all pending entries of all its groups, in a moment, and a write during
//! the snapshot costs a few more nodes, once for each.
//!
//! Streams grow at the end. So when a key is added after the last key of a full node, that node is
//! left full, and a new one begun; any other full node is split in the middle. A node that shrinks
//! to a quarter is merged with a neighbour.

use std::borrow::Borrow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::pack::good_size;

/// Items of a node at most.
const FULL: usize = 64;
/// A node with fewer is merged with a neighbour, if one has room.
const SPARSE: usize = FULL / 4;

/// An iterator keeps its place on this many levels without an allocation: 64 to the fourth is 16
/// million.
const LEVELS: usize = 4;

/// See the module's text.
pub(crate) struct Tree<K, V> {
    root: Option<Arc<Node<K, V>>>,
    len: usize,
    nodes: usize,
}

/// Keys ascend. The key beside a child is a lower bound of its keys, and above all keys of the
/// child before.
#[derive(Clone)]
enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    Inner(Vec<(K, Arc<Node<K, V>>)>),
}

use Node::{Inner, Leaf};

impl<K, V> Clone for Tree<K, V> {
    /// Shares all nodes.
    fn clone(&self) -> Self {
        Tree { root: self.root.clone(), ..*self }
    }
}

impl<K, V> Default for Tree<K, V> {
    fn default() -> Self {
        Tree { root: None, len: 0, nodes: 0 }
    }
}

impl<K, V> Tree<K, V> {
    /// Items.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Bytes of the nodes, what the items own not included.
    pub(crate) fn memory(&self) -> usize {
        let counts = 2 * size_of::<usize>();
        self.nodes * good_size(counts + size_of::<Node<K, V>>())
            + self.len * size_of::<(K, V)>()
            + self.nodes * size_of::<(K, Arc<Node<K, V>>)>()
    }

    /// All items, ascending.
    pub(crate) fn iter(&self) -> Ascending<'_, K, V> {
        Ascending { path: self.root.iter().map(|root| (&**root, 0)).collect() }
    }

    /// All items, descending.
    pub(crate) fn iter_back(&self) -> Descending<'_, K, V> {
        Descending { path: self.root.iter().map(|root| (&**root, root.len())).collect() }
    }

    /// The first item.
    pub(crate) fn first(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// The last item.
    pub(crate) fn last(&self) -> Option<(&K, &V)> {
        self.iter_back().next()
    }
}

impl<K: std::fmt::Debug, V: std::fmt::Debug> std::fmt::Debug for Tree<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord + Clone, V: Clone> Tree<K, V> {
    /// The value of a key.
    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut node = self.root.as_deref()?;
        loop {
            match node {
                Leaf(items) => return find(items, key).ok().map(|at| &items[at].1),
                Inner(children) => node = &children[child_of(children, key)].1,
            }
        }
    }

    /// The value of a key, for a change.
    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let mut node = Arc::make_mut(self.root.as_mut()?);
        loop {
            match node {
                Leaf(items) => return find(items, key).ok().map(|at| &mut items[at].1),
                Inner(children) => {
                    let at = child_of(children, key);
                    node = Arc::make_mut(&mut children[at].1);
                }
            }
        }
    }

    /// The last value, for a change, with its key.
    #[inline]
    pub(crate) fn last_mut(&mut self) -> Option<(&K, &mut V)> {
        self.last_leaf_mut()?.last_mut().map(|(key, value)| (&*key, value))
    }

    /// The items from the first key on that is not below `from`.
    pub(crate) fn ascending_from<Q: Ord + ?Sized>(&self, from: &Q) -> Ascending<'_, K, V>
    where
        K: Borrow<Q>,
    {
        Ascending {
            path: self
                .path_to(from, 1, |items| items.partition_point(|(key, _)| key.borrow() < from)),
        }
    }

    /// The items from the last key on that is not above `from`; from the first one if all are
    /// above. If a key between that one and `from` was removed, it may begin with the first key
    /// above: the caller knows that an item under a key ends before the next key that ever existed.
    pub(crate) fn ascending_from_below<Q: Ord + ?Sized>(&self, from: &Q) -> Ascending<'_, K, V>
    where
        K: Borrow<Q>,
    {
        Ascending {
            path: self.path_to(from, 1, |items| {
                items.partition_point(|(key, _)| key.borrow() <= from).saturating_sub(1)
            }),
        }
    }

    /// The items from the last key on that is not above `from`, descending.
    pub(crate) fn descending_from<Q: Ord + ?Sized>(&self, from: &Q) -> Descending<'_, K, V>
    where
        K: Borrow<Q>,
    {
        Descending {
            path: self
                .path_to(from, 0, |items| items.partition_point(|(key, _)| key.borrow() <= from)),
        }
    }

    /// The way down to the leaf where a key belongs. An iterator that begins there goes on in each
    /// inner node `beyond` children after the one that was entered, and in the leaf at the place
    /// that `place` finds.
    #[inline]
    fn path_to<Q: Ord + ?Sized>(
        &self,
        key: &Q,
        beyond: usize,
        place: impl FnOnce(&[(K, V)]) -> usize,
    ) -> Path<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let mut path = SmallVec::new();
        let Some(mut node) = self.root.as_deref() else { return path };
        loop {
            match node {
                Leaf(items) => {
                    path.push((node, place(items)));
                    return path;
                }
                Inner(children) => {
                    let at = child_of(children, key);
                    path.push((node, at + beyond));
                    node = &children[at].1;
                }
            }
        }
    }

    /// Sets the value of a key. Returns the previous value.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Some(root) = &mut self.root else {
            self.root = Some(Arc::new(Leaf(vec![(key, value)])));
            (self.len, self.nodes) = (1, 1);
            return None;
        };
        let first = root.first_key().clone();
        let Inserted { old, split, nodes } = Node::insert(root, key, value);
        self.nodes += nodes;
        self.len += usize::from(old.is_none());
        if let Some((key, right)) = split {
            let children = vec![(first, Arc::clone(root)), (key, right)];
            *root = Arc::new(Inner(children));
            self.nodes += 1;
            self.mend_first_key();
        }
        old
    }

    /// The first child of a new root has the old root's lower bound, which may be above what was
    /// just inserted.
    fn mend_first_key(&mut self) {
        let Some(root) = &mut self.root else { return };
        if let Inner(children) = Arc::make_mut(root)
            && let Some((key, child)) = children.first_mut()
            && child.first_key() < key
        {
            *key = child.first_key().clone();
        }
    }

    /// Adds items after all others. Their keys ascend, and are above all keys of the tree. The way
    /// down is taken once for each node that is filled.
    pub(crate) fn append(&mut self, items: impl ExactSizeIterator<Item = (K, V)>) {
        let mut items = items.peekable();
        while let Some((key, _)) = items.peek() {
            debug_assert!(self.last().is_none_or(|(last, _)| last < key), "keys ascend");
            match self.last_leaf_mut() {
                Some(leaf) if leaf.len() < FULL => {
                    let more = items.len().min(FULL - leaf.len());
                    leaf.reserve(more);
                    leaf.extend(items.by_ref().take(more));
                    self.len += more;
                }
                Some(_) => {
                    if let Some((key, value)) = items.next() {
                        self.insert(key, value);
                    }
                }
                None => {
                    let first: Vec<_> = items.by_ref().take(FULL).collect();
                    (self.len, self.nodes) = (first.len(), 1);
                    self.root = Some(Arc::new(Leaf(first)));
                }
            }
        }
    }

    /// The items of the last leaf.
    #[inline]
    fn last_leaf_mut(&mut self) -> Option<&mut Vec<(K, V)>> {
        let mut node = Arc::make_mut(self.root.as_mut()?);
        loop {
            match node {
                Leaf(items) => return Some(items),
                Inner(children) => node = Arc::make_mut(&mut children.last_mut()?.1),
            }
        }
    }

    /// Removes a key. Returns its value.
    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut value = None;
        self.remove_run(key, |_| false, |removed| value = Some(removed));
        value
    }

    /// Removes a key, and those that follow it in the same node, as long as `also` wants them.
    /// `take` gets their values in order. Returns how many they were.
    pub(crate) fn remove_run<Q: Ord + ?Sized>(
        &mut self,
        key: &Q,
        mut also: impl FnMut(&K) -> bool,
        mut take: impl FnMut(V),
    ) -> usize
    where
        K: Borrow<Q>,
    {
        let Some(root) = &mut self.root else { return 0 };
        let (removed, merged) = Node::remove_run(root, key, &mut also, &mut take);
        self.len -= removed;
        self.nodes -= merged;
        while let Some(root) = &self.root {
            match &**root {
                Leaf(items) if items.is_empty() => self.root = None,
                Inner(children) if children.len() == 1 => {
                    let only = Arc::clone(&children[0].1);
                    self.root = Some(only);
                }
                _ => break,
            }
            self.nodes -= 1;
        }
        removed
    }

    /// Asserts the invariants.
    ///
    /// # Panics
    /// If one is violated.
    pub(crate) fn check(&self) {
        let mut nodes = 0;
        let mut depths = Vec::new();
        if let Some(root) = &self.root {
            root.check(1, &mut nodes, &mut depths);
            assert!(root.len() > 0);
        }
        assert_eq!(nodes, self.nodes);
        assert!(depths.windows(2).all(|pair| pair[0] == pair[1]), "all leaves are equally deep");
        assert_eq!(self.iter().count(), self.len);
        let keys: Vec<&K> = self.iter().map(|(key, _)| key).collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "keys ascend");
    }
}

fn find<K: Borrow<Q>, V, Q: Ord + ?Sized>(items: &[(K, V)], key: &Q) -> Result<usize, usize> {
    items.binary_search_by(|(own, _)| own.borrow().cmp(key))
}

/// The child that a key belongs to.
fn child_of<K: Borrow<Q>, V, Q: Ord + ?Sized>(children: &[(K, V)], key: &Q) -> usize {
    children.partition_point(|(first, _)| first.borrow() <= key).saturating_sub(1)
}

/// The result of an insertion into a node.
struct Inserted<K, V> {
    old: Option<V>,
    /// A node to be placed after it, with a lower bound of its keys.
    split: Option<(K, Arc<Node<K, V>>)>,
    /// Nodes more than before.
    nodes: usize,
}

/// Adds an item to a node's items, and splits them if they were full.
fn add<K: Clone, T>(items: &mut Vec<(K, T)>, at: usize, item: (K, T)) -> Option<Vec<(K, T)>> {
    if items.len() < FULL {
        items.insert(at, item);
        return None;
    }
    if at == FULL {
        return Some(vec![item]);
    }
    let mut right = items.split_off(FULL / 2);
    match at.checked_sub(FULL / 2) {
        Some(at) if at > 0 => right.insert(at, item),
        _ => items.insert(at, item),
    }
    Some(right)
}

impl<K, V> Node<K, V> {
    fn len(&self) -> usize {
        match self {
            Leaf(items) => items.len(),
            Inner(children) => children.len(),
        }
    }

    /// A lower bound of its keys. Nodes are not empty.
    fn first_key(&self) -> &K {
        match self {
            Leaf(items) => &items[0].0,
            Inner(children) => &children[0].0,
        }
    }
}

impl<K: Ord + Clone, V: Clone> Node<K, V> {
    fn insert(node: &mut Arc<Self>, key: K, value: V) -> Inserted<K, V> {
        match Arc::make_mut(node) {
            Leaf(items) => {
                let behind = items.last().is_some_and(|(last, _)| *last < key);
                match if behind { Err(items.len()) } else { find(items, &key) } {
                    Ok(at) => {
                        let old = Some(std::mem::replace(&mut items[at].1, value));
                        Inserted { old, split: None, nodes: 0 }
                    }
                    Err(at) => {
                        let split = add(items, at, (key, value))
                            .map(|right| (right[0].0.clone(), Arc::new(Leaf(right))));
                        Inserted { old: None, nodes: usize::from(split.is_some()), split }
                    }
                }
            }
            Inner(children) => {
                let at = child_of(children, &key);
                if key < children[at].0 {
                    children[at].0 = key.clone();
                }
                let Inserted { old, split, mut nodes } =
                    Self::insert(&mut children[at].1, key, value);
                let split = split.and_then(|child| add(children, at + 1, child));
                nodes += usize::from(split.is_some());
                let split = split.map(|right| (right[0].0.clone(), Arc::new(Inner(right))));
                Inserted { old, split, nodes }
            }
        }
    }

    /// Removes a key below, and those after it in its leaf as long as `also` wants them. Returns
    /// how many items and how many nodes went.
    fn remove_run<Q: Ord + ?Sized>(
        node: &mut Arc<Self>,
        key: &Q,
        also: &mut impl FnMut(&K) -> bool,
        take: &mut impl FnMut(V),
    ) -> (usize, usize)
    where
        K: Borrow<Q>,
    {
        match Arc::make_mut(node) {
            Leaf(items) => {
                let Ok(at) = find(items, key) else { return (0, 0) };
                let more = items[at + 1..].iter().take_while(|(key, _)| also(key)).count();
                for (_, value) in items.drain(at..=at + more) {
                    take(value);
                }
                (1 + more, 0)
            }
            Inner(children) => {
                let at = child_of(children, key);
                let (removed, mut gone) = Self::remove_run(&mut children[at].1, key, also, take);
                let left = children[at].1.len();
                if left == 0 {
                    children.remove(at);
                    gone += 1;
                } else if left < SPARSE && removed > 0 {
                    gone += usize::from(Self::merge_around(children, at));
                }
                (removed, gone)
            }
        }
    }

    /// Merges a sparse child with the next or the previous one, if both fit one node.
    fn merge_around(children: &mut Vec<(K, Arc<Self>)>, at: usize) -> bool {
        let fits = |one: usize| {
            let pair = children.get(one..one + 2);
            pair.is_some_and(|pair| pair[0].1.len() + pair[1].1.len() <= FULL)
        };
        let first = match at {
            at if fits(at) => at,
            1.. if fits(at - 1) => at - 1,
            _ => return false,
        };
        let (_, gone) = children.remove(first + 1);
        match (Arc::make_mut(&mut children[first].1), Arc::unwrap_or_clone(gone)) {
            (Leaf(items), Leaf(more)) => items.extend(more),
            (Inner(items), Inner(more)) => items.extend(more),
            _ => unreachable!("neighbours are equally deep"),
        }
        true
    }

    fn check(&self, depth: usize, nodes: &mut usize, depths: &mut Vec<usize>) {
        *nodes += 1;
        assert!((1..=FULL).contains(&self.len()));
        match self {
            Leaf(_) => depths.push(depth),
            Inner(children) => {
                for (index, (key, child)) in children.iter().enumerate() {
                    child.check(depth + 1, nodes, depths);
                    assert!(key <= child.first_key());
                    let last =
                        Descending { path: SmallVec::from_slice(&[(&**child, child.len())]) }
                            .next()
                            .map(|(key, _)| key);
                    if let (Some((next, _)), Some(last)) = (children.get(index + 1), last) {
                        assert!(last < next);
                    }
                }
            }
        }
    }
}

/// The nodes from the root down to a place, each with a number that says where in it.
type Path<'t, K, V> = SmallVec<[(&'t Node<K, V>, usize); LEVELS]>;

/// Items of a tree, ascending.
pub(crate) struct Ascending<'t, K, V> {
    /// The nodes down to the present place, each with the index of its next child or item.
    path: Path<'t, K, V>,
}

impl<'t, K, V> Iterator for Ascending<'t, K, V> {
    type Item = (&'t K, &'t V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (node, at) = self.path.last_mut()?;
            match node {
                Leaf(items) => {
                    if let Some((key, value)) = items.get(*at) {
                        *at += 1;
                        return Some((key, value));
                    }
                }
                Inner(children) => {
                    if let Some((_, child)) = children.get(*at) {
                        *at += 1;
                        self.path.push((child, 0));
                        continue;
                    }
                }
            }
            self.path.pop();
        }
    }
}

impl<K, V> Clone for Ascending<'_, K, V> {
    fn clone(&self) -> Self {
        Ascending { path: self.path.clone() }
    }
}

/// Items of a tree, descending.
pub(crate) struct Descending<'t, K, V> {
    /// The nodes down to the present place, each with the number of its children or items still to
    /// come.
    path: Path<'t, K, V>,
}

impl<'t, K, V> Iterator for Descending<'t, K, V> {
    type Item = (&'t K, &'t V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (node, at) = self.path.last_mut()?;
            if let Some(before) = at.checked_sub(1) {
                *at = before;
                match node {
                    Leaf(items) => return Some((&items[before].0, &items[before].1)),
                    Inner(children) => {
                        let child = &*children[before].1;
                        self.path.push((child, child.len()));
                        continue;
                    }
                }
            }
            self.path.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base::rng::Rng;

    use super::*;

    /// Random changes with keys below `bound`, in the tree and a model, while copies are kept.
    fn compare(seed: u64, bound: u64, steps: usize) {
        let mut rng = Rng::from_seed(seed);
        let mut tree = Tree::<u64, u64>::default();
        let mut model = BTreeMap::new();
        let mut copies: Vec<(Tree<u64, u64>, BTreeMap<u64, u64>)> = Vec::new();
        for step in 0..steps {
            let key = rng.index(bound as usize) as u64;
            let grows = rng.index(100) < if step % 4000 < 2500 { 70 } else { 30 };
            if grows {
                assert_eq!(tree.insert(key, step as u64), model.insert(key, step as u64));
            } else {
                assert_eq!(tree.remove(&key), model.remove(&key));
            }
            if step % 5 == 0 {
                remove_run(&mut tree, &mut model, key, rng.index(100));
            }
            if step % 97 == 0 {
                let next = model.last_key_value().map_or(0, |(last, _)| last + 1);
                let items: Vec<_> = (next..).take(rng.index(200)).map(|key| (key, 7)).collect();
                tree.append(items.iter().copied());
                model.extend(items);
            }
            if let Some(value) = tree.get_mut(&(key / 2)) {
                *value += 1;
                *model.get_mut(&(key / 2)).expect("both have it") += 1;
            }
            assert_eq!(tree.get(&key), model.get(&key));
            if step % 997 == 0 {
                copies.push((tree.clone(), model.clone()));
                let ascending = tree.ascending_from(&key).map(|(key, value)| (*key, *value));
                assert!(ascending.eq(model.range(key..).map(|(key, value)| (*key, *value))));
                let descending = tree.descending_from(&key).map(|(key, value)| (*key, *value));
                let expected = model.range(..=key).rev().map(|(key, value)| (*key, *value));
                assert!(descending.eq(expected));
                tree.check();
            }
        }
        for (tree, model) in copies {
            tree.check();
            assert!(tree.iter().eq(model.iter()), "a copy does not see later changes");
            assert!(tree.iter_back().eq(model.iter().rev()));
            assert_eq!(tree.first(), model.first_key_value());
            assert_eq!(tree.last(), model.last_key_value());
        }
    }

    /// Removes a key and at most `more` items after it.
    fn remove_run(
        tree: &mut Tree<u64, u64>,
        model: &mut BTreeMap<u64, u64>,
        key: u64,
        more: usize,
    ) {
        let (mut wanted, mut values) = (0..more, Vec::new());
        let removed = tree.remove_run(&key, |_| wanted.next().is_some(), |own| values.push(own));
        assert_eq!(removed > 0, model.contains_key(&key));
        assert!(removed <= 1 + more);
        let run = model.range(key..).take(removed).map(|(key, value)| (*key, *value));
        let (keys, expected): (Vec<u64>, Vec<u64>) = run.unzip();
        assert_eq!(values, expected);
        keys.iter().for_each(|key| assert!(model.remove(key).is_some()));
    }

    #[test]
    fn behaves_as_the_model() {
        for seed in 0..4 {
            compare(seed, 50, 5_000);
            compare(seed, 500, 10_000);
            compare(seed, 20_000, 40_000);
        }
    }

    #[test]
    fn what_grows_at_the_end_fills_its_nodes() {
        let mut tree = Tree::default();
        for key in 0..10_000u64 {
            tree.insert(key, ());
            let last = tree.last_mut().map(|(key, ())| *key);
            assert_eq!(last, Some(key));
        }
        tree.check();
        let leaves = 10_000usize.div_ceil(FULL);
        assert_eq!(tree.nodes(), leaves + leaves.div_ceil(FULL) + 1);
        // A queue that moves on keeps no more than it needs.
        for key in 10_000..20_000u64 {
            tree.insert(key, ());
            assert_eq!(tree.remove(&(key - 10_000)), Some(()));
        }
        tree.check();
        assert!(tree.nodes() < leaves + 20);
        (10_000..20_000u64).for_each(|key| assert!(tree.remove(&key).is_some()));
        assert_eq!((tree.len(), tree.nodes()), (0, 0));
        tree.check();
    }
}
