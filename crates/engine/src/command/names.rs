//! Finding something by the name of a command.

use std::collections::HashMap;

/// Commands by their names in small letters.
pub(crate) struct Names<T> {
    /// Names of up to eight bytes, as most are: an open table, by the name as a number.
    short: [Option<(u64, T)>; SHORT_BUCKETS],
    long: HashMap<&'static [u8], T, foldhash::fast::FixedState>,
}

/// Four times as many as there are short names, so that the first place is nearly always right.
const SHORT_BUCKETS: usize = 1024;

impl<T: Copy> Names<T> {
    /// No name twice, each in small letters.
    pub(crate) fn new(all: impl Iterator<Item = (&'static str, T)>) -> Names<T> {
        let mut names = Names { short: [None; SHORT_BUCKETS], long: HashMap::default() };
        for (name, value) in all {
            let name = name.as_bytes();
            if name.len() > size_of::<u64>() {
                names.long.insert(name, value);
                continue;
            }
            let word = short_word(name);
            let mut bucket = short_bucket(word);
            while let Some((other, _)) = names.short[bucket] {
                debug_assert!(other != word, "{name:?} would not be found");
                bucket = (bucket + 1) % SHORT_BUCKETS;
            }
            names.short[bucket] = Some((word, value));
        }
        names
    }

    /// The entry for a name, in upper or lower case. A name of up to eight bytes may find the entry
    /// of a name of another length.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<T> {
        if name.len() <= size_of::<u64>() {
            self.find_short(short_word(name))
        } else {
            self.find_long(name)
        }
    }

    #[inline]
    fn find_short(&self, word: u64) -> Option<T> {
        let mut bucket = short_bucket(word);
        loop {
            let (name, value) = self.short[bucket]?;
            if name == word {
                return Some(value);
            }
            bucket = (bucket + 1) % SHORT_BUCKETS;
        }
    }

    fn find_long(&self, name: &[u8]) -> Option<T> {
        // No command's name is longer.
        let mut lower = [0; 32];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.long.get(&*lower).copied()
    }
}

/// Up to eight bytes as a number, in lower case. From four bytes on, it consists of the first four
/// and the last four bytes, which may overlap. Names of different lengths may have the same number.
#[inline]
fn short_word(name: &[u8]) -> u64 {
    let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    small_letters(match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        (Some(first), Some(last)) => half(first) | half(last) << 32,
        _ => name.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    })
}

/// Eight bytes with their capital letters made small.
#[inline]
fn small_letters(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGHEST_BITS: u64 = 0x80 * EACH;
    // Without their highest bits, bytes cannot carry into each other: the sums have that bit where
    // a byte is at least `A`, and where it is beyond `Z`.
    let low = word & !HIGHEST_BITS;
    let from_a = low + u64::from(0x80 - b'A') * EACH;
    let beyond_z = low + u64::from(0x7f - b'Z') * EACH;
    let capital = (from_a ^ beyond_z) & !word & HIGHEST_BITS;
    word | capital >> 2
}

#[inline]
fn short_bucket(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SHORT_BUCKETS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_alone_are_made_small() {
        for byte in 0..=u8::MAX {
            let all = small_letters(u64::from_le_bytes([byte; 8]));
            assert_eq!(all, u64::from_le_bytes([byte.to_ascii_lowercase(); 8]), "{byte}");
        }
        let mixed = u64::from_le_bytes(*b"aZ[@\xdaA\x7f_");
        assert_eq!(small_letters(mixed).to_le_bytes(), *b"az[@\xdaa\x7f_");
    }
}
