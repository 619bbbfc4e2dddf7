//! Visiting the words of a table: in the order of a walk, and one at random.

use std::sync::atomic::Ordering::Relaxed;

use super::{LONGEST_MAX, Table, WORDS, address, depth_of, prefetch, prefetch_words};

/// Positions drawn and prefetched together when a word is chosen at random.
const DRAWN_AT_ONCE: usize = 4;
/// After this many draws, all words are counted instead. One place in three to ten has a word, so
/// all draws fail only when chains have become much shorter than the longest ever was. Counting
/// then lowers that bound.
const DRAWS: usize = 32;

impl<const SHARED: bool> Table<SHARED> {
    /// Visits the words of the bucket at `position` of a walk and returns the position after it,
    /// or `None` at the end. A walk begins at 0; see the module's text for what it guarantees.
    pub(crate) fn walk(&self, position: u32, visit: impl FnMut(u64)) -> Option<u32> {
        let buckets = self.buckets.load(Relaxed);
        if buckets == 0 {
            return None;
        }
        let index = Self::walked(position, buckets);
        self.bucket(index).for_each(visit);
        Self::behind(position, index, buckets)
    }

    /// Prefetches the next `count` buckets of a walk and the entries of their words, so that
    /// visiting them does not wait for each.
    pub(crate) fn prefetch_walk(&self, position: u32, count: usize) {
        let buckets = self.buckets.load(Relaxed);
        let next = |at: &u32| Self::behind(*at, Self::walked(*at, buckets), buckets);
        let positions =
            || std::iter::successors(Some(position).filter(|_| buckets > 0), next).take(count);
        for at in positions() {
            prefetch(self.bucket(Self::walked(at, buckets)).at.as_ptr().cast());
        }
        for at in positions() {
            prefetch_words(self.bucket(Self::walked(at, buckets)));
        }
    }

    /// The bucket at a position of a walk.
    fn walked(position: u32, buckets: u32) -> u32 {
        address(u64::from(position.reverse_bits()), buckets).0
    }

    /// The position of a walk after the bucket `index`.
    fn behind(position: u32, index: u32, buckets: u32) -> Option<u32> {
        let depth = depth_of(index, buckets);
        if depth == 0 {
            return None;
        }
        let width = 1u32 << (32 - depth);
        (position & !(width - 1)).checked_add(width)
    }

    /// The bucket of a hash in a table of this many buckets.
    pub(crate) fn home_of(hash: u64, buckets: u32) -> u32 {
        address(hash, buckets).0
    }

    /// Visits all words that were in a bucket when the table had `former` buckets, and others that
    /// are beside them now.
    pub(crate) fn for_each_of_former(&self, home: u32, former: u32, mut visit: impl FnMut(u64)) {
        let depth = depth_of(home, former);
        let begin = u64::from(home.reverse_bits());
        let end = begin + (1u64 << (32 - depth));
        let mut position = Some(home.reverse_bits());
        while let Some(at) = position.filter(|&at| u64::from(at) < end) {
            position = self.walk(at, &mut visit);
        }
    }

    /// Where a hash lies in the order of a walk.
    pub(crate) fn position_of(hash: u64) -> u32 {
        (hash as u32).reverse_bits()
    }

    /// A word chosen with equal chances; `below(n)` yields a number under n.
    ///
    /// By rejection: a bucket and a place in a chain as long as the longest are drawn until there
    /// is a word at the place. Every word has one such place, hence the same chance as all others.
    /// When the draws go on for too long, the word is found by counting, which gives equal chances
    /// too.
    pub(crate) fn random(&self, mut below: impl FnMut(u64) -> u64) -> Option<u64> {
        let buckets = u64::from(self.buckets.load(Relaxed));
        if buckets == 0 {
            return None;
        }
        if buckets == 1 {
            return self.bucket(0).nth(below(self.len() as u64) as usize);
        }
        let further = self.longest_chain();
        if further == LONGEST_MAX {
            return self.random_by_counting(below(self.len() as u64) as usize);
        }
        let places = WORDS as u64 + further * (WORDS as u64 - 1);
        for _ in 0..DRAWS {
            let drawn: [_; DRAWN_AT_ONCE] = std::array::from_fn(|_| {
                let bucket = self.bucket(below(buckets) as u32);
                prefetch(bucket.at.as_ptr().cast());
                (bucket, below(places) as usize)
            });
            let word = drawn.iter().find_map(|(bucket, position)| bucket.nth(*position));
            if word.is_some() {
                return word;
            }
        }
        self.random_by_counting(below(self.len() as u64) as usize)
    }

    /// The word with this number in the order of the buckets. Takes down how long the longest chain
    /// is now on the way.
    #[cold]
    fn random_by_counting(&self, mut number: usize) -> Option<u64> {
        let (mut found, mut longest) = (None, 0);
        for index in 0..self.buckets.load(Relaxed) {
            let bucket = self.bucket(index);
            longest = bucket.further().max(longest);
            if found.is_none() {
                found = bucket.nth(number);
                let mut words = 0;
                bucket.for_each(|_| words += 1);
                number = number.saturating_sub(words);
            }
        }
        self.set_longest_chain(longest);
        found
    }
}
