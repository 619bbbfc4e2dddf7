//! Lists: a deque of packed blocks.
//!
//! The textbook list of this kind is a linked list of listpacks. We keep the listpacks and drop the
//! links: a long list is a chain, a directory of nodes with the number of elements of each beside
//! its pointer, so that finding an index reads short arrays instead of chasing every node. A small
//! list is a node alone, without a directory. Clients see which of the two a list is as its
//! encoding, `listpack` or `quicklist`, so the bounds are those of Redis: a listpack becomes a
//! chain when an addition exceeds the limit, and a chain of one node becomes a listpack when it has
//! shrunk to half of it.
//!
//! There are three more differences in the nodes. Room is kept at both ends, so that a push or a
//! pop at either moves no other element. Block sizes are chosen for the allocator (see
//! [`ListLimits`]). And a node is shared with the snapshots that still read it, and copied at the
//! first change after that.
//!
//! An element too large for a node is a plain node: a shared buffer of its own, which neither a
//! push of a shared buffer nor a read copies.

mod chain;
mod directory;
mod element;
mod items;
mod limits;
mod slot;
#[cfg(test)]
mod tests;

use crate::pack::{
    End, Form, FormMut, Growth, ListpackSlice, NODE_HEAD_BYTES, Needle, Node, PackError, PackedOr,
};
use chain::Chain;
use slot::Slot;

pub use chain::Side;
pub use element::{ListInput, ListItem, Popped};
pub use items::{Items, NodeRef, Nodes};
pub use limits::ListLimits;

/// The block of an empty list: room for one short element.
const FIRST_BLOCK_BYTES: usize = 32;

/// A list of byte strings: eight bytes, as `Option<List>` is.
///
/// A clone shares all nodes; each of the two copies a node before it first changes it.
#[repr(transparent)]
#[derive(Clone)]
pub struct List(PackedOr<Node, Chain>);

impl List {
    /// An empty list.
    pub fn new() -> Self {
        List(PackedOr::packed(Node::new(FIRST_BLOCK_BYTES, End::Back)))
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        match self.0.get() {
            Form::Packed(node) => node.len(),
            Form::Boxed(chain) => chain.len(),
        }
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self.0.get() {
            Form::Packed(node) => node.is_empty(),
            Form::Boxed(chain) => chain.len() == 0,
        }
    }

    /// Whether the list is a single listpack.
    pub fn is_listpack(&self) -> bool {
        matches!(self.0.get(), Form::Packed(_))
    }

    /// The name that OBJECT ENCODING gives.
    pub fn encoding(&self) -> &'static str {
        if self.is_listpack() { "listpack" } else { "quicklist" }
    }

    /// Adds an element at an end.
    #[inline]
    pub fn push<'a>(&mut self, end: End, value: impl Into<ListInput<'a>>, limits: &ListLimits) {
        let value = value.into();
        self.expect(1, value.text_len(), limits);
        self.push_expected(end, value, limits);
    }

    /// Makes a listpack a chain if `count` elements with `bytes` bytes of text are too many for it.
    /// A command calls this once, before it adds all of its elements.
    #[inline]
    pub fn expect(&mut self, count: usize, bytes: usize, limits: &ListLimits) {
        if let Form::Packed(node) = self.0.get()
            && !limits.is_small(node.total_bytes().saturating_add(bytes), node.len() + count)
        {
            self.chain_mut();
        }
    }

    /// Adds an element that [`List::expect`] was told of.
    #[inline]
    pub fn push_expected<'a>(
        &mut self,
        end: End,
        value: impl Into<ListInput<'a>>,
        limits: &ListLimits,
    ) {
        let value = value.into();
        match self.0.get_mut() {
            FormMut::Packed(node) => node.push(end, &value.encoded(), Growth::Tight),
            FormMut::Boxed(chain) => match limits.encode(&value) {
                Some(encoded) => chain.push(end, &encoded, limits),
                None => chain.push_plain(end, value.into_shared()),
            },
        }
    }

    /// Removes the element at an end and returns it.
    #[inline]
    pub fn pop(&mut self, end: End) -> Option<Popped> {
        self.pop_with(end, |item| item.to_popped())
    }

    /// Removes the element at an end, handing it to `take` first: nothing is copied.
    #[inline]
    pub fn pop_with<R>(&mut self, end: End, take: impl FnOnce(ListItem<'_>) -> R) -> Option<R> {
        match self.0.get_mut() {
            FormMut::Packed(node) if node.is_empty() => None,
            FormMut::Packed(node) => Some(node.pop_with(end, |element| take(element.into()))),
            FormMut::Boxed(chain) => chain.pop_with(end, take),
        }
    }

    /// The element with this index; negative indexes count from the tail, -1 the last.
    #[inline]
    pub fn get(&self, index: i64) -> Option<ListItem<'_>> {
        match self.0.get() {
            Form::Packed(node) => node.get(index).map(ListItem::from),
            Form::Boxed(chain) => chain.get(resolve(index, chain.len())?),
        }
    }

    /// Replaces the element with this index. Returns whether it exists.
    pub fn set<'a>(
        &mut self,
        index: i64,
        value: impl Into<ListInput<'a>>,
        limits: &ListLimits,
    ) -> bool {
        let value = value.into();
        // In any case, and however long the old element is.
        self.expect(1, value.text_len(), limits);
        let Some(index) = resolve(index, self.len()) else { return false };
        match self.0.get_mut() {
            FormMut::Packed(node) => {
                let Some(position) = node.seek(index as i64) else { return false };
                node.replace(position, &value.encoded(), Growth::Tight);
            }
            FormMut::Boxed(chain) => {
                chain.set(index, value, limits);
                self.shrink(limits);
            }
        }
        true
    }

    /// Inserts an element next to the first one whose text is `pivot`. Returns whether there is
    /// one.
    pub fn insert<'a>(
        &mut self,
        side: Side,
        pivot: &[u8],
        value: impl Into<ListInput<'a>>,
        limits: &ListLimits,
    ) -> bool {
        let value = value.into();
        self.expect(1, value.text_len(), limits);
        match self.0.get_mut() {
            FormMut::Packed(node) => {
                let Some(position) = node.find(pivot, 0) else { return false };
                let position = match side {
                    Side::Before => position,
                    Side::After => node.next_or_end(position),
                };
                node.insert(position, &value.encoded(), Growth::Tight);
                true
            }
            FormMut::Boxed(chain) => chain.insert(side, &Needle::new(pivot), value, limits),
        }
    }

    /// Removes elements whose text is `text`: the first `count`, the last `-count` if it is
    /// negative, all if it is 0. Returns how many.
    pub fn remove(&mut self, count: i64, text: &[u8], limits: &ListLimits) -> usize {
        let from = if count < 0 { End::Back } else { End::Front };
        let limit = match count {
            0 => usize::MAX,
            _ => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
        };
        let needle = Needle::new(text);
        match self.0.get_mut() {
            FormMut::Packed(node) => node.remove_matches(&needle, from, limit),
            FormMut::Boxed(chain) => chain.remove(&needle, from, limit, limits),
        }
    }

    /// Keeps only the elements from index `start` to `stop`, both included, negative ones counted
    /// from the tail. Returns how many were removed.
    pub fn trim(&mut self, start: i64, stop: i64) -> usize {
        let len = self.len();
        let (first, count) = resolve_range(start, stop, len).unwrap_or((0, 0));
        // With nothing to keep, all of it is removed from the tail.
        let from_back = len - first - count;
        match self.0.get_mut() {
            FormMut::Packed(node) => {
                node.drop_elements(End::Back, from_back);
                node.drop_elements(End::Front, first);
            }
            FormMut::Boxed(chain) => {
                chain.drop_elements(End::Back, from_back);
                chain.drop_elements(End::Front, first);
            }
        }
        len - count
    }

    /// All elements from the head.
    #[inline]
    pub fn iter(&self) -> Items<'_> {
        self.range(0, usize::MAX, End::Front)
    }

    /// Up to `count` elements from `index` on, towards the tail for [`End::Front`], towards the
    /// head for [`End::Back`]. Without an element at `index` there are none. The iterator's
    /// `for_each` and `fold` are its fastest way through.
    pub fn range(&self, index: usize, count: usize, from: End) -> Items<'_> {
        let len = self.len();
        if index >= len {
            return Items::empty();
        }
        let available = if from == End::Front { len - index } else { index + 1 };
        let count = count.min(available);
        match self.0.get() {
            Form::Packed(node) => Items::in_node(node, index, count, from),
            Form::Boxed(chain) => {
                let (slot, within) = chain.locate(index);
                Items::in_slots(chain.slots(), slot, within, count, from)
            }
        }
    }

    /// The index of the first element and the number of elements that the inclusive range from
    /// `start` to `stop` covers, negative ones counted from the tail; `None` if it covers none.
    #[inline]
    pub fn resolve_range(&self, start: i64, stop: i64) -> Option<(usize, usize)> {
        resolve_range(start, stop, self.len())
    }

    /// Indexes of the elements whose text is `text`, in the order of a walk that begins at the end
    /// `from`. The first `skip` matches are left out, and the walk ends after `limit` matches or
    /// after looking at `scan` elements.
    pub fn positions(
        &self,
        text: &[u8],
        from: End,
        skip: usize,
        limit: usize,
        scan: usize,
    ) -> Vec<usize> {
        let needle = Needle::new(text);
        let len = self.len();
        let start = if from == End::Front { 0 } else { len.saturating_sub(1) };
        self.range(start, scan, from)
            .enumerate()
            .filter(|(_, item)| needle.matches(item.as_element()))
            .map(|(step, _)| if from == End::Front { step } else { len - 1 - step })
            .skip(skip)
            .take(limit)
            .collect()
    }

    /// The list as it is now, for reading elsewhere while this one changes. Costs one reference per
    /// node.
    pub fn freeze(&self) -> FrozenList {
        FrozenList(self.clone())
    }

    /// The nodes from head to tail, as a dump writes them.
    pub fn nodes(&self) -> Nodes<'_> {
        match self.0.get() {
            Form::Packed(node) => Nodes::one(node),
            Form::Boxed(chain) => Nodes::many(chain.slots()),
        }
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        match self.0.get() {
            Form::Packed(_) => 1,
            Form::Boxed(chain) => chain.slots().len(),
        }
    }

    /// Appends the elements of a dumped packed node, after checking every byte of it. A node within
    /// the limits is taken over as it is, the elements of others are distributed.
    ///
    /// # Errors
    /// As [`ListpackSlice::from_bytes`]; the list is unchanged then.
    pub fn push_packed_node(&mut self, bytes: &[u8], limits: &ListLimits) -> Result<(), PackError> {
        let listpack = ListpackSlice::from_bytes(bytes)?;
        let count = listpack.len();
        if count == 0 {
            return Ok(());
        }
        let whole = count <= limits.elements
            && NODE_HEAD_BYTES + listpack.total_bytes() <= limits.block_bytes
            && limits.plain_from > limits.block_bytes;
        if self.is_empty() && limits.is_small(listpack.total_bytes(), count) {
            self.0 = PackedOr::packed(Node::from_listpack(listpack));
        } else if !whole {
            let chain = self.chain_mut();
            for element in listpack.elements() {
                let value = ListInput::from(element);
                match limits.encode(&value) {
                    Some(encoded) => chain.push(End::Back, &encoded, limits),
                    None => chain.push_plain(End::Back, value.into_shared()),
                }
            }
        } else if self.is_empty() {
            self.0 = PackedOr::packed(Node::from_listpack(listpack));
        } else {
            self.chain_mut().push_node(Node::from_listpack(listpack), count);
        }
        Ok(())
    }

    /// What the list takes from the allocator, in bytes; nodes shared with a snapshot count in
    /// full.
    pub fn memory_usage(&self) -> usize {
        self.memory_estimate(usize::MAX)
    }

    /// As [`List::memory_usage`], estimated from `samples` nodes where there are more.
    pub fn memory_estimate(&self, samples: usize) -> usize {
        match self.0.get() {
            Form::Packed(node) => node.block_size(),
            Form::Boxed(chain) => chain.memory_usage(samples),
        }
    }

    /// Whether freeing it should be left to the background.
    pub(crate) fn frees_slowly(&self) -> bool {
        match self.0.get() {
            Form::Packed(_) => false,
            Form::Boxed(chain) => chain.frees_slowly(),
        }
    }

    /// Asserts the invariants.
    ///
    /// # Panics
    /// If one is violated.
    pub fn check(&self) {
        match self.0.get() {
            Form::Packed(node) => node.check(),
            Form::Boxed(chain) => chain.check(),
        }
    }

    /// The chain, made from the single node if there is none yet.
    fn chain_mut(&mut self) -> &mut Chain {
        if let FormMut::Packed(node) = self.0.get_mut() {
            let chain = Chain::from_node(node.clone());
            self.0 = PackedOr::boxed(Box::new(chain));
        }
        match self.0.get_mut() {
            FormMut::Boxed(chain) => chain,
            FormMut::Packed(_) => unreachable!("the node was replaced by a chain"),
        }
    }

    /// Makes a chain that has shrunk to one small node a listpack again. Code that removes elements
    /// calls this once at the end.
    #[inline]
    pub fn shrink(&mut self, limits: &ListLimits) {
        if let Form::Boxed(chain) = self.0.get()
            && chain.slots().len() <= 1
        {
            self.settle(|bytes, count| limits.has_become_small(bytes, count));
        }
    }

    /// Makes a listpack a chain until it shrinks.
    pub fn unpack(&mut self) {
        self.chain_mut();
    }

    /// Gives a list that was built from a dump, or by pushing alone, the encoding of its size.
    pub fn choose_encoding(&mut self, limits: &ListLimits) {
        match self.0.get() {
            Form::Packed(_) => self.expect(0, 0, limits),
            Form::Boxed(_) => self.settle(|bytes, count| limits.is_small(bytes, count)),
        }
    }

    /// Makes a chain a listpack if it has only one node and the node is small.
    fn settle(&mut self, is_small: impl Fn(usize, usize) -> bool) {
        let FormMut::Boxed(chain) = self.0.get_mut() else { return };
        match chain.sole_slot() {
            None if chain.len() == 0 => *self = List::new(),
            Some(Slot::Packed { node, count }) if is_small(node.total_bytes(), *count as usize) => {
                // Replacing the chain drops its handle, without which the block is not shared any
                // more; only then it can be trimmed.
                self.0 = PackedOr::packed(node.clone());
                if let FormMut::Packed(own) = self.0.get_mut() {
                    own.trim();
                }
            }
            _ => {}
        }
    }
}

/// The index from the head that `index` means in a list of `len` elements.
#[inline]
fn resolve(index: i64, len: usize) -> Option<usize> {
    let magnitude = usize::try_from(index.unsigned_abs()).ok()?;
    let index = if index < 0 { len.checked_sub(magnitude)? } else { magnitude };
    (index < len).then_some(index)
}

/// See [`List::resolve_range`].
#[inline]
fn resolve_range(start: i64, stop: i64, len: usize) -> Option<(usize, usize)> {
    let from_tail = |index: i64| {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        if index < 0 { len.saturating_add(index) } else { index }
    };
    let first = usize::try_from(from_tail(start).max(0)).ok()?;
    let last = usize::try_from(from_tail(stop)).ok()?.min(len.checked_sub(1)?);
    (first <= last).then(|| (first, last - first + 1))
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a List {
    type Item = ListItem<'a>;
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

/// A list that does not change any more; its nodes may be shared with one that does.
#[derive(Debug)]
pub struct FrozenList(List);

impl std::ops::Deref for FrozenList {
    type Target = List;

    fn deref(&self) -> &List {
        &self.0
    }
}
