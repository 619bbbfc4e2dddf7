//! The content types of keys.

use std::sync::Arc;

use base::limits;
use parking_lot::RwLock;

/// Content types have numbers: the id that an entry has is a byte, and 0 is no type.
const MOST: usize = u8::MAX as usize;

/// The content types of keys, such as `text/html`. Each has a number, which is the content-type id
/// of the keys' entries. Types get numbers in the order in which they are first needed, and keep
/// them.
#[derive(Default)]
pub struct ContentTypes(RwLock<Vec<Arc<[u8]>>>);

impl ContentTypes {
    /// The number of a type, which gets one if it has none. `None` when all numbers are taken, or
    /// the name is not valid.
    pub fn content_type_id(&self, name: &[u8]) -> Option<u8> {
        let number = |names: &[Arc<[u8]>]| names.iter().position(|own| **own == *name);
        let known = number(&self.0.read());
        let index = known.or_else(|| {
            let mut names = self.0.write();
            let fits = ContentTypes::is_name(name);
            // A type with parameters, such as a boundary, may be different each time: such types
            // must not take the places of all others.
            let most = if name.contains(&b';') { MOST / 2 } else { MOST };
            // Another thread may have been first.
            number(&names).or_else(|| {
                (fits && names.len() < most).then(|| {
                    names.push(name.into());
                    names.len() - 1
                })
            })
        })?;
        u8::try_from(index + 1).ok()
    }

    /// Whether this may be the name of a content type.
    pub fn is_name(name: &[u8]) -> bool {
        (1..=limits::CONTENT_TYPE).contains(&name.len())
            && name.iter().all(|byte| matches!(byte, b' '..=b'~'))
    }

    /// The content type with a number; `None` for 0.
    pub fn name(&self, content_type_id: u8) -> Option<Arc<[u8]>> {
        self.0.read().get(usize::from(content_type_id).checked_sub(1)?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_number() {
        let kinds = ContentTypes::default();
        assert_eq!(kinds.name(0), None);
        assert_eq!(
            (kinds.content_type_id(b"text/html"), kinds.content_type_id(b"a/b")),
            (Some(1), Some(2))
        );
        assert_eq!(kinds.content_type_id(b"text/html"), Some(1));
        assert_eq!(kinds.name(2).as_deref(), Some(&b"a/b"[..]));
        for wrong in [&b""[..], b"a\r\nb", b"\xff", &[b'x'; limits::CONTENT_TYPE + 1]] {
            assert_eq!(kinds.content_type_id(wrong), None);
        }
        for number in 3..=127 {
            let name = format!("multipart/form-data; boundary={number}");
            assert_eq!(kinds.content_type_id(name.as_bytes()), Some(number));
        }
        assert_eq!(kinds.content_type_id(b"a/b; c=d"), None, "others have their places");
        for number in 128..=u8::MAX {
            assert_eq!(kinds.content_type_id(format!("kind/{number}").as_bytes()), Some(number));
        }
        assert_eq!(kinds.content_type_id(b"one/more"), None);
        assert_eq!(kinds.content_type_id(b"kind/255"), Some(255));
    }
}
