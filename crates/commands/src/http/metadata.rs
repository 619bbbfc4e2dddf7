//! The parts of replies that HTTP's commands write and the protocol reads: status numbers, and the
//! metadata of a key.

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

/// What the reply to a read of a key says about it: the reply is an array of this, the cursor, and
/// the value.
///
/// This is a string of bytes in a form of its own, since nearly every answer needs all of it, and
/// numbers that stay numbers need not be printed and read: version and expiry with eight bytes
/// each, the type with one, and then the content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata<'f> {
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

impl<'f> Metadata<'f> {
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
    pub fn usual(reply: &'f [u8]) -> Option<(Metadata<'f>, &'f [u8])> {
        let (fixed, rest) = reply.strip_prefix(USUAL)?.split_first_chunk::<FIXED>()?;
        Some((Metadata::read(fixed)?, rest.strip_prefix(LINE_END)?))
    }

    /// Reads them from the first element of such a reply.
    #[inline]
    pub fn read(bytes: &'f [u8]) -> Option<Metadata<'f>> {
        let (version, rest) = bytes.split_first_chunk()?;
        let (expire_at, rest) = rest.split_first_chunk()?;
        let (number, content_type) = rest.split_first()?;
        let expire_at = u64::from_le_bytes(*expire_at);
        Some(Metadata {
            version: u64::from_le_bytes(*version),
            expire_at: (expire_at != NEVER).then_some(expire_at),
            type_name: TYPES.get(usize::from(*number))?,
            content_type: (!content_type.is_empty()).then_some(content_type),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_as_it_was_written() {
        let least =
            Metadata { version: 0, expire_at: None, type_name: "string", content_type: None };
        let most = Metadata {
            version: u64::MAX,
            expire_at: Some(i64::MAX as u64),
            type_name: "stream",
            content_type: Some(b"text/plain; charset=utf-8"),
        };
        for metadata in [least, most] {
            let mut output = resp::output::Output::new();
            metadata.begin_reply(&mut Reply::new(&mut output, true));
            let bytes = output.to_vec();
            let (mut lines, mut begin) = (0, 0);
            while lines < 2 {
                lines += u32::from(bytes[begin] == b'\n');
                begin += 1;
            }
            assert_eq!(Metadata::read(&bytes[begin..bytes.len() - 2]), Some(metadata));
            let usual = metadata.content_type.is_none().then_some((metadata, &b""[..]));
            assert_eq!(Metadata::usual(&bytes), usual);
        }
        assert_eq!(Metadata::read(b"too short"), None);
    }
}
