//! The encoding of one listpack entry.
//!
//! ```text
//! entry   = head data? backlen
//! 0xxxxxxx                          integer 0..=127
//! 10xxxxxx <bytes>                  string of up to 63 bytes
//! 110xxxxx xxxxxxxx                 signed 13-bit integer, high bits first
//! 1110xxxx xxxxxxxx <bytes>         string of up to 4095 bytes, high bits first
//! F0 <u32 LE> <bytes>               longer string
//! F1 | F2 | F3 | F4 <LE>            signed integer of 16, 24, 32 or 64 bits
//! FF                                end of the listpack
//! ```
//! The back length is the size of head and data in 7-bit groups, most significant first; all groups
//! but the first carry the high bit, so it is read from its last byte towards the front.

use base::num::parse_i64;

use super::element::{Element, OwnedElement};

const STRING_6_BIT: u8 = 0x80;
const INTEGER_13_BIT: u8 = 0xC0;
const STRING_12_BIT: u8 = 0xE0;
const STRING_32_BIT: u8 = 0xF0;
const INTEGER_16_BIT: u8 = 0xF1;
const INTEGER_24_BIT: u8 = 0xF2;
const INTEGER_32_BIT: u8 = 0xF3;
const INTEGER_64_BIT: u8 = 0xF4;

/// The byte that ends a listpack.
pub(super) const TERMINATOR: u8 = 0xFF;

/// A back length of five groups reaches 2^35, more than any entry.
const BACKLEN_MAX_BYTES: usize = 5;

/// An element in its stored form, ready to be written: the shortest encoding of its value.
///
/// Scalars rather than an array of head bytes: built, they stay in registers.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    /// The first byte.
    tag: u8,
    /// Bytes of the head, the tag included.
    head_len: u8,
    /// The rest of the head, its first byte lowest.
    rest: u64,
    data: &'a [u8],
}

impl<'a> Encoded<'a> {
    /// Encodes text, as an integer if it is exactly one.
    ///
    /// # Panics
    /// If `text` is longer than `u32::MAX` bytes; callers bound the elements of packed blocks.
    #[inline(always)]
    pub fn text(text: &'a [u8]) -> Self {
        match parse_i64(text) {
            Some(value) => Self::integer(value),
            None => Self::string(text),
        }
    }

    /// Encodes an integer.
    #[inline]
    pub fn integer(value: i64) -> Self {
        let (tag, head_len, rest) = match value {
            0..=127 => (value as u8, 1, 0),
            -4096..=4095 => {
                let [high, low] = (value as u16 & 0x1FFF).to_be_bytes();
                (INTEGER_13_BIT | high, 2, u64::from(low))
            }
            -0x8000..=0x7FFF => (INTEGER_16_BIT, 3, value as u64),
            -0x80_0000..=0x7F_FFFF => (INTEGER_24_BIT, 4, value as u64),
            -0x8000_0000..=0x7FFF_FFFF => (INTEGER_32_BIT, 5, value as u64),
            _ => (INTEGER_64_BIT, 9, value as u64),
        };
        Encoded { tag, head_len, rest, data: &[] }
    }

    #[inline]
    fn string(data: &'a [u8]) -> Self {
        let (tag, head_len, rest) = match data.len() {
            len @ 0..=63 => (STRING_6_BIT | len as u8, 1, 0),
            len @ 64..=4095 => {
                let [high, low] = (len as u16).to_be_bytes();
                (STRING_12_BIT | high, 2, u64::from(low))
            }
            len => {
                let len = u32::try_from(len).expect("callers bound what goes into packed blocks");
                (STRING_32_BIT, 5, u64::from(len))
            }
        };
        Encoded { tag, head_len, rest, data }
    }

    /// Size of the whole entry in bytes, back length included.
    #[expect(clippy::len_without_is_empty, reason = "an entry is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        let len = usize::from(self.head_len) + self.data.len();
        len + backlen_size(len)
    }

    /// Writes the entry; `out` has exactly [`len`](Self::len) bytes.
    #[inline(always)]
    pub(super) fn write(&self, out: &mut [u8]) {
        let head_len = usize::from(self.head_len);
        out[0] = self.tag;
        if head_len > 1 {
            out[1..head_len].copy_from_slice(&self.rest.to_le_bytes()[..head_len - 1]);
        }
        let len = head_len + self.data.len();
        out[head_len..len].copy_from_slice(self.data);
        write_backlen(&mut out[len..], len);
    }
}

impl<'a> From<&'a [u8]> for Encoded<'a> {
    #[inline]
    fn from(text: &'a [u8]) -> Self {
        Encoded::text(text)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Encoded<'a> {
    #[inline]
    fn from(text: &'a [u8; N]) -> Self {
        Encoded::text(text)
    }
}

impl From<i64> for Encoded<'_> {
    #[inline]
    fn from(value: i64) -> Self {
        Encoded::integer(value)
    }
}

impl<'a> From<Element<'a>> for Encoded<'a> {
    #[inline]
    fn from(element: Element<'a>) -> Self {
        match element {
            Element::Str(text) => Encoded::text(text),
            Element::Int(value) => Encoded::integer(value),
        }
    }
}

impl<'a> From<&'a OwnedElement> for Encoded<'a> {
    #[inline]
    fn from(element: &'a OwnedElement) -> Self {
        element.as_element().into()
    }
}

/// Bytes of the back length of `len`. The steps are Redis's: one less than the groups could encode,
/// from two bytes on.
#[inline]
fn backlen_size(len: usize) -> usize {
    match len {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => BACKLEN_MAX_BYTES,
    }
}

#[inline]
fn write_backlen(out: &mut [u8], len: usize) {
    if let [only] = out {
        *only = len as u8;
        return;
    }
    let mut rest = len;
    for byte in out.iter_mut().rev() {
        *byte = (rest & 0x7F) as u8 | 0x80;
        rest >>= 7;
    }
    out[0] &= 0x7F;
}

/// The back length that ends just before `end`: its value and size, or `None` if it runs into more
/// groups than there are.
#[inline]
fn read_backlen(bytes: &[u8], end: usize) -> Option<(usize, usize)> {
    let mut len = 0;
    for step in 0..BACKLEN_MAX_BYTES {
        let byte = *bytes.get(end.checked_sub(step + 1)?)?;
        len |= usize::from(byte & 0x7F) << (7 * step);
        if byte & 0x80 == 0 {
            return Some((len, step + 1));
        }
    }
    None
}

#[inline]
fn little_endian<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// Reads the entry at `at` of a valid listpack: the element, and where the next entry begins.
#[inline(always)]
pub(super) fn decode(bytes: &[u8], at: usize) -> (Element<'_>, usize) {
    let first = bytes[at];
    match first {
        0..STRING_6_BIT => (Element::Int(i64::from(first)), at + 2),
        STRING_6_BIT..INTEGER_13_BIT => {
            let end = at + 1 + usize::from(first & 0x3F);
            (Element::Str(&bytes[at + 1..end]), end + 1)
        }
        _ => decode_long(bytes, at),
    }
}

/// [`decode`] of an entry whose length or integer takes further bytes.
#[inline(never)]
fn decode_long(bytes: &[u8], at: usize) -> (Element<'_>, usize) {
    let first = bytes[at];
    match first {
        0xC0..=0xDF => {
            let bits = u16::from_be_bytes([first, bytes[at + 1]]);
            // Shifting the three tag bits out brings the sign bit to the top.
            (Element::Int(i64::from((bits << 3) as i16 >> 3)), at + 3)
        }
        0xE0..=0xEF => {
            let len = usize::from(u16::from_be_bytes([first & 0x0F, bytes[at + 1]]));
            let end = at + 2 + len;
            (Element::Str(&bytes[at + 2..end]), end + backlen_size(2 + len))
        }
        STRING_32_BIT => {
            let len = u32::from_le_bytes(little_endian(bytes, at + 1)) as usize;
            let end = at + 5 + len;
            (Element::Str(&bytes[at + 5..end]), end + backlen_size(5 + len))
        }
        INTEGER_16_BIT => {
            (Element::Int(i16::from_le_bytes(little_endian(bytes, at + 1)).into()), at + 4)
        }
        INTEGER_24_BIT => {
            let [low, middle, high] = little_endian(bytes, at + 1);
            (Element::Int((i32::from_le_bytes([0, low, middle, high]) >> 8).into()), at + 5)
        }
        INTEGER_32_BIT => {
            (Element::Int(i32::from_le_bytes(little_endian(bytes, at + 1)).into()), at + 6)
        }
        INTEGER_64_BIT => (Element::Int(i64::from_le_bytes(little_endian(bytes, at + 1))), at + 10),
        _ => unreachable!("listpacks are validated on the way in"),
    }
}

/// Where the entry after the one at `at` of a valid listpack begins: [`decode`] without the
/// element.
#[inline]
pub(super) fn next(bytes: &[u8], at: usize) -> usize {
    let first = bytes[at];
    if first < STRING_6_BIT {
        at + 2
    } else if first < INTEGER_13_BIT {
        at + 2 + usize::from(first & 0x3F)
    } else {
        decode(bytes, at).1
    }
}

/// Where the entry that ends just before `end` begins, in a valid listpack.
#[inline]
pub(super) fn previous(bytes: &[u8], end: usize) -> usize {
    let last = bytes[end - 1];
    if last < 0x80 {
        return end - 1 - usize::from(last);
    }
    let (len, size) = read_backlen(bytes, end).expect("listpacks are validated on the way in");
    end - size - len
}

/// Number of entries in a run of whole entries.
pub(super) fn count_entries(run: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < run.len() {
        at = next(run, at);
        count += 1;
    }
    count
}

/// Where the next entry begins if a well-formed entry stands at `at` and ends before `limit`.
pub(super) fn validate(bytes: &[u8], at: usize, limit: usize) -> Option<usize> {
    let first = *bytes.get(at)?;
    let len = match first {
        0..=0x7F => 1,
        0x80..=0xBF => 1 + usize::from(first & 0x3F),
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 2 + usize::from(u16::from_be_bytes([first & 0x0F, *bytes.get(at + 1)?])),
        STRING_32_BIT => {
            let field = bytes.get(at + 1..at + 5)?;
            5 + u32::from_le_bytes([field[0], field[1], field[2], field[3]]) as usize
        }
        INTEGER_16_BIT => 3,
        INTEGER_24_BIT => 4,
        INTEGER_32_BIT => 5,
        INTEGER_64_BIT => 9,
        _ => return None,
    };
    let end = at.checked_add(len)?.checked_add(backlen_size(len))?;
    (end <= limit && read_backlen(bytes, end) == Some((len, backlen_size(len)))).then_some(end)
}
