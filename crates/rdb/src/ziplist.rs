//! Ziplists: the packed block of Redis 2.6 to 6.2, read only.
//!
//! ```text
//! +----------------+---------------+--------------+---------+-----+---------+------+
//! | bytes u32 LE   | tail u32 LE   | count u16 LE | entry 0 | ... | entry n | 0xFF |
//! +----------------+---------------+--------------+---------+-----+---------+------+
//! ```
//! `tail` is the offset of the last entry; a `count` of 65535 means "count them". An entry is the
//! length of the entry before it (one byte, or 0xFE and four), an encoding, and the content.

use store::pack::Element;

use crate::read::ReadError;

const HEADER_BYTES: usize = 10;
const TERMINATOR: u8 = 0xff;
/// Marks, as the first byte of an entry, that the previous length has four more bytes.
const WIDE_PREVIOUS: u8 = 0xfe;
const COUNT_UNKNOWN: u16 = u16::MAX;

const MALFORMED: ReadError = ReadError::Malformed("a ziplist does not add up");

/// The elements of a ziplist, after every byte of it was checked.
pub(crate) fn elements(bytes: &[u8]) -> Result<Vec<Element<'_>>, ReadError> {
    parse(bytes).ok_or(MALFORMED)
}

fn parse(bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
    let (&last, entries) = body.split_last()?;
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let count = u16::from_le_bytes([header[8], header[9]]);
    if word(0) as usize != bytes.len() || last != TERMINATOR {
        return None;
    }
    let mut elements = Vec::new();
    let (mut rest, mut tail, mut previous) = (entries, HEADER_BYTES, 0);
    while !rest.is_empty() {
        tail = HEADER_BYTES + entries.len() - rest.len();
        let (stated, after) = previous_length(rest)?;
        let (element, after) = content(after)?;
        if stated != previous {
            return None;
        }
        previous = rest.len() - after.len();
        rest = after;
        elements.push(element);
    }
    let counted = count == COUNT_UNKNOWN || usize::from(count) == elements.len();
    (counted && word(4) as usize == tail).then_some(elements)
}

/// The length that an entry states for the one before it.
fn previous_length(entry: &[u8]) -> Option<(usize, &[u8])> {
    match entry.split_first()? {
        (&TERMINATOR, _) => None,
        (&WIDE_PREVIOUS, rest) => {
            let (length, rest) = rest.split_first_chunk()?;
            Some((u32::from_le_bytes(*length) as usize, rest))
        }
        (&length, rest) => Some((usize::from(length), rest)),
    }
}

/// The element at the start of `bytes`, which begin with its encoding, and the bytes after it.
fn content(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&encoding, rest) = bytes.split_first()?;
    match encoding >> 6 {
        0b00 => text(rest, usize::from(encoding)),
        0b01 => {
            let (&low, rest) = rest.split_first()?;
            text(rest, usize::from(encoding & 0x3f) << 8 | usize::from(low))
        }
        0b10 => {
            let (length, rest) = rest.split_first_chunk()?;
            text(rest, u32::from_be_bytes(*length) as usize)
        }
        _ => integer(encoding, rest),
    }
}

fn text(bytes: &[u8], length: usize) -> Option<(Element<'_>, &[u8])> {
    let (text, rest) = bytes.split_at_checked(length)?;
    Some((Element::Str(text), rest))
}

fn integer(encoding: u8, bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let width = match encoding {
        0xfe => 1,
        0xc0 => 2,
        0xf0 => 3,
        0xd0 => 4,
        0xe0 => 8,
        // The number itself, 0 to 12, in the low bits, counted from 1.
        0xf1..=0xfd => return Some((Element::Int(i64::from(encoding & 0x0f) - 1), bytes)),
        _ => return None,
    };
    let (little_endian, rest) = bytes.split_at_checked(width)?;
    let negative = little_endian[width - 1] & 0x80 != 0;
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    wide[..width].copy_from_slice(little_endian);
    Some((Element::Int(i64::from_le_bytes(wide)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a ziplist from encoded entries without their previous lengths.
    fn ziplist(entries: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        let (mut tail, mut previous) = (HEADER_BYTES, 0);
        for entry in entries {
            tail = bytes.len();
            bytes.push(previous);
            bytes.extend_from_slice(entry);
            previous = (bytes.len() - tail) as u8;
        }
        bytes.push(TERMINATOR);
        let total = bytes.len() as u32;
        bytes[..4].copy_from_slice(&total.to_le_bytes());
        bytes[4..8].copy_from_slice(&(tail as u32).to_le_bytes());
        bytes[8..10].copy_from_slice(&(entries.len() as u16).to_le_bytes());
        bytes
    }

    #[test]
    fn every_encoding_is_read() {
        let entries: [&[u8]; 10] = [
            b"\x01a",
            b"\x40\x02bc",
            b"\x80\x00\x00\x00\x01d",
            b"\xf1",
            b"\xfd",
            b"\xfe\xff",
            b"\xc0\x7f\xff",
            b"\xf0\xff\xff\x7f",
            b"\xd0\x00\x00\x00\x80",
            b"\xe0\x00\x00\x00\x00\x00\x01\x00\x00",
        ];
        let block = ziplist(&entries);
        let text = |text: &'static [u8]| Element::Str(text);
        let mut expected = vec![text(b"a"), text(b"bc"), text(b"d")];
        let integers = [0, 12, -1, -129, 8_388_607, -2_147_483_648, 1 << 40];
        expected.extend(integers.map(Element::Int));
        assert_eq!(elements(&block).unwrap(), expected);
    }

    #[test]
    fn a_prefix_or_a_changed_byte_of_the_frame_is_refused() {
        let block = ziplist(&[b"\x01a", b"\xfe\x05", b"\x02bc"]);
        assert!(elements(&block).is_ok());
        for length in 0..block.len() {
            assert!(elements(&block[..length]).is_err());
        }
        // Everything but the contents: the header, previous lengths, encodings and the terminator.
        for at in (0..=11).chain([13, 14, 16, 17, 20]) {
            let mut changed = block.clone();
            changed[at] ^= 0x01;
            assert!(elements(&changed).is_err(), "byte {at}");
        }
    }
}
