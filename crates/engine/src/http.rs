//! What the commands of HTTP and the protocol agree on, and the content types of keys.

use std::sync::Arc;

use base::limits;
use parking_lot::RwLock;
use resp::reply::Reply;

/// The first part of the answer to a write of a key. The condition of the request was not met.
pub const FAILED: i64 = 0;
/// The key was written, and did not exist before.
pub const CREATED: i64 = 1;
/// It is written or deleted, and the key existed.
pub const REPLACED: i64 = 2;
/// The key did not exist, and does not exist now.
pub const ABSENT: i64 = 3;
/// The key exists, and the settings ask for a condition on changing it.
pub const UNCONDITIONAL: i64 = 4;

/// What the reply to a read of a key says about it: the reply is an array of this, the cursor, and the
/// value.
///
/// This is a string of bytes in a form of its own, since nearly every answer needs all of it, and numbers
/// that stay numbers need not be printed and read: version and expiry with eight bytes each, the type
/// with one, and then the content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<'f> {
    /// The version of the key.
    pub version: u64,
    /// When it expires, in milliseconds of Unix time.
    pub expire_at: Option<u64>,
    /// The name of its type.
    pub type_name: &'static str,
    /// Its content type, if it has one.
    pub content_type: Option<&'f [u8]>,
}

/// The names of types, each at its number.
const TYPES: [&str; 6] = ["string", "list", "set", "hash", "zset", "stream"];
/// Stands for no expiry: none is so late.
const NEVER: u64 = u64::MAX;
/// Bytes before the content type.
const FIXED: usize = 17;
/// What stands before and after them in a reply if there is no content type.
const USUAL: &[u8] = b"*3\r\n$17\r\n";
const LINE_END: &[u8] = b"\r\n";

impl<'f> Facts<'f> {
    /// Begins the reply with them: an array, of which they are the first of three elements.
    #[inline]
    pub fn begin_reply(&self, reply: &mut Reply<'_>) {
        let mut usual = [0; USUAL.len() + FIXED + LINE_END.len()];
        usual[..USUAL.len()].copy_from_slice(USUAL);
        let fixed = &mut usual[USUAL.len()..USUAL.len() + FIXED];
        fixed[..8].copy_from_slice(&self.version.to_le_bytes());
        fixed[8..16].copy_from_slice(&self.expire_at.unwrap_or(NEVER).to_le_bytes());
        let number = TYPES.iter().position(|name| *name == self.type_name);
        fixed[16] = number.unwrap_or(TYPES.len()) as u8;
        match self.content_type {
            None => {
                usual[USUAL.len() + FIXED..].copy_from_slice(LINE_END);
                reply.output().push(&usual);
            }
            Some(content_type) => {
                let text = [fixed, content_type].concat();
                reply.array(3);
                reply.bulk(&text);
            }
        }
    }

    /// Reads them at the beginning of such a reply, if they have no content type. Returns the bytes
    /// after them, too.
    #[inline]
    pub fn usual(reply: &'f [u8]) -> Option<(Facts<'f>, &'f [u8])> {
        let (fixed, rest) = reply.strip_prefix(USUAL)?.split_first_chunk::<FIXED>()?;
        Some((Facts::read(fixed)?, rest.strip_prefix(LINE_END)?))
    }

    /// Reads them from the first element of such a reply.
    #[inline]
    pub fn read(bytes: &'f [u8]) -> Option<Facts<'f>> {
        let (version, rest) = bytes.split_first_chunk()?;
        let (expire_at, rest) = rest.split_first_chunk()?;
        let (number, content_type) = rest.split_first()?;
        let expire_at = u64::from_le_bytes(*expire_at);
        Some(Facts {
            version: u64::from_le_bytes(*version),
            expire_at: (expire_at != NEVER).then_some(expire_at),
            type_name: TYPES.get(usize::from(*number))?,
            content_type: (!content_type.is_empty()).then_some(content_type),
        })
    }
}

/// Content types have numbers: the label of an entry is a byte, and 0 is no type.
const MOST: usize = u8::MAX as usize;

/// The content types of keys, such as `text/html`. Each has a number, which is the label of the keys'
/// entries. Types get numbers in the order in which they are first needed, and keep them.
#[derive(Default)]
pub struct ContentTypes(RwLock<Vec<Arc<[u8]>>>);

impl ContentTypes {
    /// The number of a type, which gets one if it has none. `None` when all numbers are taken, or the
    /// name is not valid.
    pub fn label(&self, name: &[u8]) -> Option<u8> {
        let number = |names: &[Arc<[u8]>]| names.iter().position(|own| **own == *name);
        let known = number(&self.0.read());
        let index = known.or_else(|| {
            let mut names = self.0.write();
            let fits = ContentTypes::is_name(name);
            // A type with parameters, such as a boundary, may be different each time: such types must
            // not take the places of all others.
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
    pub fn name(&self, label: u8) -> Option<Arc<[u8]>> {
        self.0.read().get(usize::from(label).checked_sub(1)?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_they_were_written() {
        let least = Facts { version: 0, expire_at: None, type_name: "string", content_type: None };
        let most = Facts {
            version: u64::MAX,
            expire_at: Some(i64::MAX as u64),
            type_name: "stream",
            content_type: Some(b"text/plain; charset=utf-8"),
        };
        for facts in [least, most] {
            let mut output = resp::output::Output::new();
            facts.begin_reply(&mut Reply::new(&mut output, true));
            let bytes = output.to_vec();
            let (mut lines, mut begin) = (0, 0);
            while lines < 2 {
                lines += u32::from(bytes[begin] == b'\n');
                begin += 1;
            }
            assert_eq!(Facts::read(&bytes[begin..bytes.len() - 2]), Some(facts));
            let usual = facts.content_type.is_none().then_some((facts, &b""[..]));
            assert_eq!(Facts::usual(&bytes), usual);
        }
        assert_eq!(Facts::read(b"too short"), None);
    }

    #[test]
    fn each_kind_has_one_number() {
        let kinds = ContentTypes::default();
        assert_eq!(kinds.name(0), None);
        assert_eq!((kinds.label(b"text/html"), kinds.label(b"a/b")), (Some(1), Some(2)));
        assert_eq!(kinds.label(b"text/html"), Some(1));
        assert_eq!(kinds.name(2).as_deref(), Some(&b"a/b"[..]));
        for wrong in [&b""[..], b"a\r\nb", b"\xff", &[b'x'; limits::CONTENT_TYPE + 1]] {
            assert_eq!(kinds.label(wrong), None);
        }
        for number in 3..=127 {
            let name = format!("multipart/form-data; boundary={number}");
            assert_eq!(kinds.label(name.as_bytes()), Some(number));
        }
        assert_eq!(kinds.label(b"a/b; c=d"), None, "others have their places");
        for number in 128..=u8::MAX {
            assert_eq!(kinds.label(format!("kind/{number}").as_bytes()), Some(number));
        }
        assert_eq!(kinds.label(b"one/more"), None);
        assert_eq!(kinds.label(b"kind/255"), Some(255));
    }
}
