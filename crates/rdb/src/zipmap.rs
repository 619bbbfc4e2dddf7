//! Zipmaps: small hashes of Redis before 2.6, read only.
//!
//! ```text
//! +-------+--------+-------+--------+------+-------+------+-----+------+
//! | count | length | field | length | free | value | free | ... | 0xFF |
//! +-------+--------+-------+--------+------+-------+------+-----+------+
//! ```
//! A count of 254 means "count them". A length is one byte, or 254 and four bytes, little-endian.
//! After a value come as many unused bytes as the byte before it says.

use crate::read::ReadError;

const END: u8 = 0xff;
const WIDE: u8 = 0xfe;

const MALFORMED: ReadError = ReadError::Malformed("a zipmap does not add up");

/// A field and its value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// The fields of a zipmap with their values, after every byte of it was checked.
pub(crate) fn pairs(bytes: &[u8]) -> Result<Vec<Pair<'_>>, ReadError> {
    parse(bytes).ok_or(MALFORMED)
}

fn parse(bytes: &[u8]) -> Option<Vec<Pair<'_>>> {
    let (&count, mut rest) = bytes.split_first()?;
    let mut pairs = Vec::new();
    while rest.first() != Some(&END) {
        let (field_length, after) = length(rest)?;
        let (field, after) = after.split_at_checked(field_length)?;
        let (value_length, after) = length(after)?;
        let (&free, after) = after.split_first()?;
        let (value, after) = after.split_at_checked(value_length)?;
        rest = after.get(usize::from(free)..)?;
        pairs.push((field, value));
    }
    let counted = count == WIDE || usize::from(count) == pairs.len();
    (counted && rest.len() == 1).then_some(pairs)
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes.split_first()? {
        (&END, _) => None,
        (&WIDE, rest) => {
            let (length, rest) = rest.split_first_chunk()?;
            Some((u32::from_le_bytes(*length) as usize, rest))
        }
        (&length, rest) => Some((usize::from(length), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_values_are_read() {
        let block = b"\x02\x01f\x01\x00v\xfe\x01\x00\x00\x00g\x02\x0212..\xff";
        let expected: Vec<Pair<'_>> = vec![(b"f", b"v"), (b"g", b"12")];
        assert_eq!(pairs(block).unwrap(), expected);
        let uncounted = b"\xfe\x01f\x01\x00v\xff";
        assert_eq!(pairs(uncounted).unwrap().len(), 1);
    }

    #[test]
    fn inconsistent_lengths_are_refused() {
        let block = b"\x01\x01f\x01\x00v\xff";
        for length in 0..block.len() {
            assert!(pairs(&block[..length]).is_err());
        }
        for wrong in [&b"\x02\x01f\x01\x00v\xff"[..], b"\x01\x01f\x01\x01v\xff", b"\x00\xff\xff"] {
            assert!(pairs(wrong).is_err());
        }
    }
}
