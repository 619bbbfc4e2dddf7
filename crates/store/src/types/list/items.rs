//! Walks through a list.

use std::iter::FusedIterator;
use std::sync::Arc;

use super::directory::{self, Directory};
use super::element::ListItem;
use super::slot::Slot;
use crate::pack::{Elements, End, Node};

/// A node as a dump writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeRef<'a> {
    /// A listpack's bytes.
    Packed(&'a [u8]),
    /// One large element's bytes.
    Plain(&'a [u8]),
}

/// Iterator over the nodes of a list, from head to tail.
#[derive(Debug, Clone)]
pub struct Nodes<'a> {
    single: Option<&'a Node>,
    slots: directory::Iter<'a, Slot>,
}

impl<'a> Nodes<'a> {
    pub(super) fn one(node: &'a Node) -> Self {
        Nodes { single: Some(node), slots: directory::Iter::default() }
    }

    pub(super) fn many(slots: &'a Directory<Slot>) -> Self {
        Nodes { single: None, slots: slots.iter() }
    }
}

impl<'a> Iterator for Nodes<'a> {
    type Item = NodeRef<'a>;

    fn next(&mut self) -> Option<NodeRef<'a>> {
        if let Some(node) = self.single.take() {
            return Some(NodeRef::Packed(node.as_bytes()));
        }
        Some(match self.slots.next()? {
            Slot::Packed { node, .. } => NodeRef::Packed(node.as_bytes()),
            Slot::Plain(text) => NodeRef::Plain(text),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = usize::from(self.single.is_some()) + self.slots.len();
        (len, Some(len))
    }
}

impl ExactSizeIterator for Nodes<'_> {}
impl FusedIterator for Nodes<'_> {}

/// Iterator over a range of elements, towards the tail or towards the head.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    /// The end the walk comes from.
    from: End,
    remaining: usize,
    /// The unread part of the packed node in which the walk is.
    current: Elements<'a>,
    /// The nodes the walk has not entered.
    rest: directory::Iter<'a, Slot>,
}

impl<'a> Items<'a> {
    pub(super) fn empty() -> Self {
        Items {
            from: End::Front,
            remaining: 0,
            current: Elements::default(),
            rest: directory::Iter::default(),
        }
    }

    /// `count` elements of a single node from `index` on.
    pub(super) fn in_node(node: &'a Node, index: usize, count: usize, from: End) -> Self {
        Items { from, remaining: count, current: elements(node, index, from), ..Items::empty() }
    }

    /// `count` elements from the element `within` the slot of this index on.
    pub(super) fn in_slots(
        slots: &'a Directory<Slot>,
        slot: usize,
        within: usize,
        count: usize,
        from: End,
    ) -> Self {
        let mut items = Items { from, remaining: count, ..Items::empty() };
        items.rest = match from {
            End::Front => slots.range(slot..slots.len()),
            End::Back => slots.range(0..slot + 1),
        };
        if let Some(Slot::Packed { node, .. }) = slots.get(slot) {
            items.next_slot();
            items.current = elements(node, within, from);
        }
        items
    }

    #[inline]
    fn next_slot(&mut self) -> Option<&'a Slot> {
        match self.from {
            End::Front => self.rest.next(),
            End::Back => self.rest.next_back(),
        }
    }

    /// Enters the next node. A plain one is its only element.
    #[inline(never)]
    fn enter_next(&mut self) -> Option<Option<&'a Arc<Vec<u8>>>> {
        Some(match self.next_slot()? {
            Slot::Plain(text) => Some(text),
            Slot::Packed { node, .. } => {
                self.current = node.elements();
                None
            }
        })
    }
}

fn elements(node: &Node, index: usize, from: End) -> Elements<'_> {
    match from {
        End::Front => node.elements_from(index),
        End::Back => node.elements_through(index),
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = ListItem<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<ListItem<'a>> {
        if self.remaining == 0 {
            return None;
        }
        self.remaining -= 1;
        loop {
            let element = match self.from {
                End::Front => self.current.next(),
                End::Back => self.current.next_back(),
            };
            if let Some(element) = element {
                return Some(element.into());
            }
            if let Some(plain) = self.enter_next()? {
                return Some(ListItem::Plain(plain));
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Items<'_> {}
impl FusedIterator for Items<'_> {}
