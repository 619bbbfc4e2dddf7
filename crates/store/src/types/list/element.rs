//! What goes into a list and what comes out.

use std::sync::Arc;

use crate::pack::{Element, Encoded, OwnedElement};

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
