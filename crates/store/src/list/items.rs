//! What goes into a list and what comes out, and walks through it.

use std::iter::FusedIterator;
use std::sync::Arc;

use super::chain::Slot;
use super::directory::{self, Directory};
use crate::pack::{Element, Elements, Encoded, End, Node, OwnedElement};

/// An element to store.
#[derive(Debug, Clone)]
pub enum ListInput<'a> {
    /// Text, to be copied.
    Bytes(&'a [u8]),
    /// An integer.
    Int(i64),
    /// A buffer, to be kept as it is if it is large.
    Shared(Arc<Vec<u8>>),
}

impl ListInput<'_> {
    /// Length of the element's text.
    #[inline]
    pub fn text_len(&self) -> usize {
        match self {
            ListInput::Bytes(text) => text.len(),
            ListInput::Int(value) => Element::Int(*value).len(),
            ListInput::Shared(text) => text.len(),
        }
    }

    /// The element's form in a listpack.
    #[inline(always)]
    pub(super) fn encoded(&self) -> Encoded<'_> {
        match self {
            ListInput::Bytes(text) => Encoded::text(text),
            ListInput::Int(value) => Encoded::integer(*value),
            ListInput::Shared(text) => Encoded::text(text),
        }
    }

    /// The element as a buffer of its own.
    pub(super) fn into_shared(self) -> Arc<Vec<u8>> {
        match self {
            ListInput::Bytes(text) => Arc::new(text.to_vec()),
            ListInput::Int(value) => Arc::new(Element::Int(value).to_vec()),
            ListInput::Shared(text) => text,
        }
    }
}

impl<'a> From<&'a [u8]> for ListInput<'a> {
    #[inline]
    fn from(text: &'a [u8]) -> Self {
        ListInput::Bytes(text)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for ListInput<'a> {
    #[inline]
    fn from(text: &'a [u8; N]) -> Self {
        ListInput::Bytes(text)
    }
}

impl From<Arc<Vec<u8>>> for ListInput<'_> {
    #[inline]
    fn from(text: Arc<Vec<u8>>) -> Self {
        ListInput::Shared(text)
    }
}

impl<'a> From<Element<'a>> for ListInput<'a> {
    #[inline]
    fn from(element: Element<'a>) -> Self {
        match element {
            Element::Str(text) => ListInput::Bytes(text),
            Element::Int(value) => ListInput::Int(value),
        }
    }
}

impl<'a> From<&'a Popped> for ListInput<'a> {
    #[inline]
    fn from(popped: &'a Popped) -> Self {
        match popped {
            Popped::Packed(element) => element.as_element().into(),
            Popped::Plain(text) => ListInput::Shared(Arc::clone(text)),
        }
    }
}

/// An element, borrowed from the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListItem<'a> {
    /// Text in a packed node.
    Str(&'a [u8]),
    /// An integer in a packed node; to clients it is its decimal text.
    Int(i64),
    /// A large element, which a reply may share instead of copying.
    Plain(&'a Arc<Vec<u8>>),
}

impl<'a> ListItem<'a> {
    /// The element, in any of its forms.
    #[inline]
    pub fn as_element(&self) -> Element<'a> {
        match *self {
            ListItem::Str(text) => Element::Str(text),
            ListItem::Int(value) => Element::Int(value),
            ListItem::Plain(text) => Element::Str(text),
        }
    }

    /// The element, owned; a large one is shared.
    #[inline]
    pub fn to_popped(&self) -> Popped {
        match *self {
            ListItem::Plain(text) => Popped::Plain(Arc::clone(text)),
            _ => Popped::Packed(self.as_element().to_owned_element()),
        }
    }
}

impl<'a> From<Element<'a>> for ListItem<'a> {
    #[inline]
    fn from(element: Element<'a>) -> Self {
        match element {
            Element::Str(text) => ListItem::Str(text),
            Element::Int(value) => ListItem::Int(value),
        }
    }
}

/// An element taken out of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Popped {
    /// From a packed node.
    Packed(OwnedElement),
    /// A large one, as it was stored.
    Plain(Arc<Vec<u8>>),
}

impl Popped {
    /// The element as it lay in the list.
    #[inline]
    pub fn as_item(&self) -> ListItem<'_> {
        match self {
            Popped::Packed(element) => element.as_element().into(),
            Popped::Plain(text) => ListItem::Plain(text),
        }
    }

    /// The element, borrowed.
    #[inline]
    pub fn as_element(&self) -> Element<'_> {
        match self {
            Popped::Packed(element) => element.as_element(),
            Popped::Plain(text) => Element::Str(text),
        }
    }
}

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
