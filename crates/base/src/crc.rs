//! Checksums: CRC-16 for slots, CRC-64 for RDB files and DUMP payloads.
//!
//! CRC-16 works on eight bytes at a time ("slicing by eight"): `TABLE[k][b]` is the checksum of
//! byte `b` followed by `k` zero bytes, and since a CRC is linear, the checksum of eight bytes is
//! the exclusive or of eight independent lookups. Leading zeros change nothing, so they pad the
//! first eight bytes. That is fast enough for keys, which are short. CRC-64 runs over whole files
//! and uses the processor's carry-less multiplication.

use crc_fast::{CrcAlgorithm, Digest};

use crate::limits::SLOTS;

/// CRC-16/XMODEM's polynomial: x^16 + x^12 + x^5 + 1, highest bit first.
const POLYNOMIAL_16: u16 = 0x1021;

static TABLE_16: [[u16; 256]; 8] = table_16();

const fn table_16() -> [[u16; 256]; 8] {
    let mut table = [[0u16; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ POLYNOMIAL_16 } else { crc << 1 };
            bit += 1;
        }
        table[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = table[zeros - 1][byte];
            table[zeros][byte] = (crc << 8) ^ table[0][(crc >> 8) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    table
}

/// CRC-16/XMODEM of `bytes`: initial value 0, not reflected.
#[inline]
pub fn crc16(bytes: &[u8]) -> u16 {
    let (first, blocks) = bytes.as_rchunks::<8>();
    let first = if first.is_empty() { 0 } else { after_block(0, &behind_zeros(first)) };
    blocks.iter().fold(first, after_block)
}

/// The checksum after eight more bytes.
#[inline]
fn after_block(crc: u16, block: &[u8; 8]) -> u16 {
    let [high, low] = crc.to_be_bytes();
    TABLE_16[7][usize::from(block[0] ^ high)]
        ^ TABLE_16[6][usize::from(block[1] ^ low)]
        ^ TABLE_16[5][usize::from(block[2])]
        ^ TABLE_16[4][usize::from(block[3])]
        ^ TABLE_16[3][usize::from(block[4])]
        ^ TABLE_16[2][usize::from(block[5])]
        ^ TABLE_16[1][usize::from(block[6])]
        ^ TABLE_16[0][usize::from(block[7])]
}

/// Fewer than eight bytes behind zeros, which make them eight. They are taken by their beginning
/// and their end, which may overlap.
#[inline]
fn behind_zeros(bytes: &[u8]) -> [u8; 8] {
    let length = bytes.len();
    let word = match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let first = u64::from(u32::from_be_bytes(*first));
            first << (8 * (length - 4)) | u64::from(u32::from_be_bytes(*last))
        }
        _ => bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    word.to_be_bytes()
}

/// The slot of a key: CRC-16 of the key, or of its hash tag if it has one, modulo the slot count.
///
/// A hash tag is the part between the first `{` and the first `}` after it, unless empty. It lets a
/// client place related keys in one slot.
#[inline]
pub fn key_slot(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) & (SLOTS as u16 - 1)
}

#[inline]
fn hash_tag(key: &[u8]) -> &[u8] {
    if has_open_brace(key) { inside_braces(key) } else { key }
}

/// Whether there is a `{`. Keys are short mostly, so that even a call to a fast search takes longer
/// than looking at eight bytes at a time.
#[inline]
fn has_open_brace(key: &[u8]) -> bool {
    const LOWEST_BITS: u64 = 0x0101_0101_0101_0101;
    const HIGHEST_BITS: u64 = 0x8080_8080_8080_8080;
    let (first, blocks) = key.as_rchunks::<8>();
    // A byte of `difference` is zero where the block has a brace, and subtracting one borrows from
    // its highest bit. (A borrow may run on into the next byte, after a brace that was found.)
    let in_block = |block: &[u8; 8]| {
        let difference = u64::from_le_bytes(*block) ^ (LOWEST_BITS * u64::from(b'{'));
        difference.wrapping_sub(LOWEST_BITS) & !difference & HIGHEST_BITS != 0
    };
    in_block(&behind_zeros(first)) || blocks.iter().any(in_block)
}

fn inside_braces(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else { return key };
    let inside = &key[open + 1..];
    match memchr::memchr(b'}', inside) {
        Some(length) if length > 0 => &inside[..length],
        _ => key,
    }
}

/// A CRC-64 (Jones) taken piece by piece: reflected, initial value 0, no final inversion.
#[derive(Clone, Copy, Debug)]
pub struct Crc64(Digest);

impl Crc64 {
    /// The checksum of nothing.
    pub fn new() -> Self {
        Crc64(Digest::new(CrcAlgorithm::Crc64Redis))
    }

    /// Continues over `bytes`. Pieces of some hundred bytes and more are worth their call.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum so far.
    pub fn value(&self) -> u64 {
        self.0.finalize()
    }
}

impl Default for Crc64 {
    fn default() -> Self {
        Crc64::new()
    }
}

/// CRC-64 (Jones) of `bytes` at once.
pub fn crc64(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Redis, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_check_values() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc16(b""), 0);
        assert_eq!(crc64(b""), 0);
    }

    #[test]
    fn slots_as_cluster_keyslot_answers() {
        let cases: &[(&[u8], u16)] = SLOT_CASES;
        for (key, slot) in cases {
            assert_eq!(key_slot(key), *slot, "{}", String::from_utf8_lossy(key));
        }
    }

    /// Answers of a reference server's CLUSTER KEYSLOT.
    const SLOT_CASES: &[(&[u8], u16)] = &[
        (b"", 0),
        (b"a", 15495),
        (b"foo", 12182),
        (b"bar", 5061),
        (b"user:1000", 1649),
        (b"123456789", 12739),
        (b"{user1000}.following", 3443),
        (b"{user1000}.followers", 3443),
        (b"foo{}{bar}", 8363),
        (b"foo{{bar}}zap", 4015),
        (b"foo{bar}{zap}", 5061),
        (b"{}", 15257),
        (b"{", 4092),
        (b"}{", 12793),
        (b"{}x{a}", 684),
        (b"a}b{c", 13587),
        (b"x{c}", 7365),
        (b"key:000000123456", 11249),
        (b"abcdefghijklmnopqrstuvwxyz", 9132),
        (b"{a", 10276),
    ];

    fn bitwise_16(bytes: &[u8]) -> u16 {
        bytes.iter().fold(0, |crc, &byte| {
            (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
                (crc << 1) ^ if crc & 0x8000 != 0 { POLYNOMIAL_16 } else { 0 }
            })
        })
    }

    /// The "Jones" polynomial of RDB files, lowest bit first.
    const POLYNOMIAL_64: u64 = 0x95ac_9329_ac4b_c9b5;

    fn bitwise_64(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |crc, &byte| {
            (0..8).fold(crc ^ u64::from(byte), |crc, _| {
                (crc >> 1) ^ if crc & 1 != 0 { POLYNOMIAL_64 } else { 0 }
            })
        })
    }

    proptest! {
        #[test]
        fn many_at_a_time_equals_bit_by_bit(
            bytes in proptest::collection::vec(any::<u8>(), 0..700),
        ) {
            prop_assert_eq!(crc16(&bytes), bitwise_16(&bytes));
            prop_assert_eq!(crc64(&bytes), bitwise_64(&bytes));
        }

        #[test]
        fn pieces_give_the_same_checksum(
            bytes in proptest::collection::vec(any::<u8>(), 0..700),
            cut in 0usize..700,
        ) {
            let cut = cut.min(bytes.len());
            let mut crc = Crc64::new();
            crc.update(&bytes[..cut]);
            crc.update(&bytes[cut..]);
            prop_assert_eq!(crc.value(), crc64(&bytes));
        }
    }
}
