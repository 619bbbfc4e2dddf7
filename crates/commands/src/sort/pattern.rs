//! The patterns of BY and GET: a key with a place for the element, perhaps with a field of a hash.

use store::pack::{Element, INTEGER_TEXT_BYTES};
use store::{Entry, HashView, Key, StringRef, ValueRef};

use engine::db::Db;

/// A pattern, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern<'a> {
    /// `#`: the element itself.
    Element,
    /// Without a place for the element: leads nowhere.
    Fixed,
    /// `prefix*suffix` or `prefix*suffix->field`.
    Key {
        /// The part before the element.
        prefix: &'a [u8],
        /// The part after it.
        suffix: &'a [u8],
        /// The field of the hash that lies under the key, instead of the string.
        field: Option<&'a [u8]>,
    },
}

/// The slot of all keys that a pattern forms, if they have one, as Redis finds it: that of its hash
/// tag, which no place for the element may precede, or that of a pattern without such a place.
pub(super) fn slot(pattern: &[u8]) -> Option<u16> {
    let mut open = None;
    for (index, byte) in pattern.iter().enumerate() {
        match (byte, open) {
            (b'*' | b'?' | b'[' | b'\\', _) => return None,
            (b'{', None) => open = Some(index),
            (b'}', Some(open)) if index > open + 1 => {
                return Some(base::crc::key_slot(&pattern[open + 1..index]));
            }
            _ => {}
        }
    }
    Some(base::crc::key_slot(pattern))
}

impl<'a> Pattern<'a> {
    pub(super) fn new(text: &'a [u8]) -> Pattern<'a> {
        let Some(star) = text.iter().position(|byte| *byte == b'*') else {
            return if text == b"#" { Pattern::Element } else { Pattern::Fixed };
        };
        let (prefix, rest) = (&text[..star], &text[star + 1..]);
        let arrow = rest.windows(2).position(|pair| pair == b"->");
        // An arrow at the end is part of the key.
        let (suffix, field) = match arrow.map(|at| (&rest[..at], &rest[at + 2..])) {
            Some((suffix, field)) if !field.is_empty() => (suffix, Some(field)),
            _ => (rest, None),
        };
        Pattern::Key { prefix, suffix, field }
    }

    /// Whether it depends on the element by way of another key.
    pub(super) fn leads_to_keys(self) -> bool {
        matches!(self, Pattern::Key { .. })
    }

    /// The value to which the pattern leads for an element: a string, or a hash's value.
    pub(super) fn look_up<'e>(self, db: &'e Db<'_>, element: Element<'e>) -> Option<Element<'e>> {
        let (prefix, suffix, field) = match self {
            Pattern::Element => return Some(element),
            Pattern::Fixed => return None,
            Pattern::Key { prefix, suffix, field } => (prefix, suffix, field),
        };
        let mut buffer = [0; INTEGER_TEXT_BYTES];
        let key = [prefix, element.as_bytes(&mut buffer), suffix].concat();
        let key = Key::new(&key);
        if db.locked.missed().is_some() || !db.locked.try_acquire(key.slot, None) {
            // The command begins again: see the callers.
            return None;
        }
        match (db.find(&key).map(Entry::value)?, field) {
            (ValueRef::Hash(hash), Some(field)) => {
                db.field(&key, HashView::new(hash, db.fields_expire_by()), field)
            }
            (ValueRef::String(string), None) => Some(match string {
                StringRef::Int(number) => Element::Int(number),
                StringRef::Inline { bytes, .. } => Element::Str(bytes),
                StringRef::Shared(buffer) => Element::Str(buffer),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern::{self, Element, Fixed, Key};

    #[test]
    fn patterns_are_taken_apart_as_the_reference_does() {
        let key = |prefix, suffix, field| Key { prefix, suffix, field };
        assert_eq!(Pattern::new(b"#"), Element);
        assert_eq!(Pattern::new(b""), Fixed);
        assert_eq!(Pattern::new(b"w->f"), Fixed);
        assert_eq!(Pattern::new(b"w_*"), key(b"w_", b"", None));
        assert_eq!(Pattern::new(b"*_*"), key(b"", b"_*", None));
        assert_eq!(Pattern::new(b"h_*->f"), key(b"h_", b"", Some(b"f")));
        assert_eq!(Pattern::new(b"h->*x->f->g"), key(b"h->", b"x", Some(b"f->g")));
        assert_eq!(Pattern::new(b"h_*->"), key(b"h_", b"->", None));
        assert_eq!(Pattern::new(b"h_*->->"), key(b"h_", b"", Some(b"->")));
    }
}
