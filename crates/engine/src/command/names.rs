//! Finding something by the name of a command.

use std::collections::HashMap;

/// Commands by their names in small letters.
pub(crate) struct Names<T> {
    /// Names of up to eight bytes, as most are: an open table, by the name as a number.
    short: [Option<(u64, T)>; SHORT_PLACES],
    long: HashMap<&'static [u8], T, foldhash::fast::FixedState>,
}

/// Four times as many as there are short names, so that the first place is nearly always right.
const SHORT_PLACES: usize = 1024;

impl<T: Copy> Names<T> {
    /// No name twice, each in small letters.
    pub(crate) fn new(all: impl Iterator<Item = (&'static str, T)>) -> Names<T> {
        let mut names = Names { short: [None; SHORT_PLACES], long: HashMap::default() };
        for (name, value) in all {
            let name = name.as_bytes();
            if name.len() > size_of::<u64>() {
                names.long.insert(name, value);
                continue;
            }
            let word = short_word(name);
            let mut place = short_place(word);
            while names.short[place].is_some() {
                place = (place + 1) % SHORT_PLACES;
            }
            names.short[place] = Some((word, value));
        }
        names
    }

    /// What stands under a name, in any case. A name of up to eight bytes may be found by one that
    /// has zero bytes before it.
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
        let mut place = short_place(word);
        loop {
            let (name, value) = self.short[place]?;
            if name == word {
                return Some(value);
            }
            place = (place + 1) % SHORT_PLACES;
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

/// Up to eight bytes as a number, letters made small.
#[inline]
fn short_word(name: &[u8]) -> u64 {
    let mut word = 0;
    for &byte in name {
        word = word << 8 | u64::from(byte.to_ascii_lowercase());
    }
    word
}

#[inline]
fn short_place(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SHORT_PLACES.ilog2())) as usize
}
