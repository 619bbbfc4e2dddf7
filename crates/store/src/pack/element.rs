//! One element of a packed block, as it is read.
//!
//! A listpack stores what looks like an integer as an integer. "Looks like" is strict: the text
//! must be exactly what printing the integer gives, so that nothing is lost ("0123" and "+1" stay
//! text).

use base::num::{i64_len, parse_i64, write_i64};
use smallvec::SmallVec;

/// Room for the text of any `i64`: sign and 19 digits, with one byte to spare.
pub const INTEGER_TEXT_BYTES: usize = 21;

/// An element, borrowed from its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element<'a> {
    /// Bytes stored as they are.
    Str(&'a [u8]),
    /// An integer; to clients it is its decimal text.
    Int(i64),
}

impl<'a> Element<'a> {
    /// The element's text; integers are printed into `buffer`.
    #[inline]
    pub fn as_bytes<'b>(&self, buffer: &'b mut [u8; INTEGER_TEXT_BYTES]) -> &'b [u8]
    where
        'a: 'b,
    {
        match *self {
            Element::Str(bytes) => bytes,
            Element::Int(value) => format_integer(value, buffer),
        }
    }

    /// Appends the element's text.
    #[inline]
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match *self {
            Element::Str(bytes) => out.extend_from_slice(bytes),
            Element::Int(value) => write_i64(out, value),
        }
    }

    /// The element's text, owned.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.len());
        self.write_to(&mut text);
        text
    }

    /// The element, owned, without changing how it is stored.
    #[inline]
    pub fn to_owned_element(&self) -> OwnedElement {
        match *self {
            Element::Str(bytes) => OwnedElement::Bytes(SmallVec::from_slice(bytes)),
            Element::Int(value) => OwnedElement::Int(value),
        }
    }

    /// Whether the element's text is `text`. One comparison; for many against the same text,
    /// prepare a [`Needle`].
    #[inline]
    pub fn equals(&self, text: &[u8]) -> bool {
        match *self {
            Element::Str(bytes) => bytes == text,
            Element::Int(value) => parse_i64(text) == Some(value),
        }
    }

    /// Length of the element's text in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match *self {
            Element::Str(bytes) => bytes.len(),
            Element::Int(value) => i64_len(value),
        }
    }

    /// Whether the element's text is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        matches!(self, Element::Str(bytes) if bytes.is_empty())
    }

    /// The element as an integer, if its text is exactly one.
    #[inline]
    pub fn to_integer(&self) -> Option<i64> {
        match *self {
            Element::Str(bytes) => parse_i64(bytes),
            Element::Int(value) => Some(value),
        }
    }
}

/// An element taken out of its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedElement {
    /// Bytes, inline when short.
    Bytes(SmallVec<[u8; 32]>),
    /// An integer; to clients it is its decimal text.
    Int(i64),
}

impl OwnedElement {
    /// The element, borrowed.
    #[inline]
    pub fn as_element(&self) -> Element<'_> {
        match self {
            OwnedElement::Bytes(bytes) => Element::Str(bytes),
            OwnedElement::Int(value) => Element::Int(*value),
        }
    }
}

/// A text to look for, prepared once: it is compared with integers as an integer.
#[derive(Debug, Clone, Copy)]
pub struct Needle<'a> {
    text: &'a [u8],
    integer: Option<i64>,
}

impl<'a> Needle<'a> {
    /// Prepares `text`.
    #[inline]
    pub fn new(text: &'a [u8]) -> Self {
        Needle { text, integer: parse_i64(text) }
    }

    /// The text to look for.
    #[inline]
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Whether the element's text is this text.
    #[inline]
    pub fn matches(&self, element: Element<'_>) -> bool {
        match element {
            Element::Str(bytes) => bytes == self.text,
            Element::Int(value) => self.integer == Some(value),
        }
    }
}

/// Prints `value` in decimal into `buffer` and returns the part used.
#[inline]
pub fn format_integer(value: i64, buffer: &mut [u8; INTEGER_TEXT_BYTES]) -> &[u8] {
    let mut magnitude = value.unsigned_abs();
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = b'0' + (magnitude % 10) as u8;
        magnitude /= 10;
        if magnitude == 0 {
            break;
        }
    }
    if value < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    &buffer[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_print_as_the_rest_of_the_server_prints_them() {
        for value in [0, 7, -1, 10, 127, -4096, i64::MAX, i64::MIN] {
            let text = value.to_string();
            assert_eq!(format_integer(value, &mut [0; INTEGER_TEXT_BYTES]), text.as_bytes());
            assert_eq!(Element::Int(value).to_vec(), text.as_bytes());
            assert_eq!(Element::Int(value).len(), text.len());
        }
    }

    #[test]
    fn an_integer_equals_its_text_only() {
        assert!(Element::Int(123).equals(b"123"));
        assert!(!Element::Int(123).equals(b"0123"));
        assert!(Element::Str(b"0123").equals(b"0123"));
        assert!(Needle::new(b"-5").matches(Element::Int(-5)));
        assert!(!Needle::new(b"-05").matches(Element::Int(-5)));
    }
}
