//! The common parts of small hashes, sets and sorted sets: how large they may grow, what may be
//! wrong with them, and how some of their members are chosen.

use std::collections::HashSet;

use base::rng::Rng;

use crate::pack::{Element, INTEGER_TEXT_BYTES, Listpack};

/// Bytes that a listpack spends on two entries besides their text, at most.
const PAIR_OVERHEAD: usize = 2 * (5 + 5);

/// How large a packed collection may grow, as the `*-max-listpack-*` and `*-max-intset-*` settings
/// say. Passed along with every addition, so that the types read no settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most fields or members.
    pub entries: usize,
    /// Longest field, value or member in bytes.
    pub value: usize,
}

/// How large a packed set may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetLimits {
    /// Most members of an intset.
    pub integers: usize,
    /// How large a listpack may grow.
    pub listpack: Limits,
}

impl Limits {
    /// Whether a text of this length may be packed.
    #[inline]
    pub(crate) fn admit(&self, text: &[u8]) -> bool {
        text.len() <= self.value
    }
}

/// Whether `listpack` has room for two more elements of these lengths.
#[inline]
pub(crate) fn has_room_for_pair(listpack: &Listpack, first: usize, second: usize) -> bool {
    listpack.fits(first.saturating_add(second).saturating_add(PAIR_OVERHEAD))
}

/// Why a packed block from outside is not a collection of the expected type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// A field without a value, or a member without a score.
    Unpaired,
    /// A field or member occurs twice.
    Duplicate,
    /// A score is no number.
    Score,
    /// The members of a sorted set do not ascend.
    Order,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Malformed::Unpaired => "packed collection: an odd number of elements",
            Malformed::Duplicate => "packed collection: a field or member occurs twice",
            Malformed::Score => "packed sorted set: a score is no number",
            Malformed::Order => "packed sorted set: members do not ascend",
        })
    }
}

impl std::error::Error for Malformed {}

/// Whether two of `texts` are equal. Compares hashes, and texts only where hashes agree.
pub(crate) fn has_duplicates<'a>(texts: impl Iterator<Item = Element<'a>> + Clone) -> bool {
    let mut buffer = [0; INTEGER_TEXT_BYTES];
    let hash = |text: Element<'a>, buffer: &mut _| base::hash::hash(text.as_bytes(buffer));
    let mut hashes: Vec<u64> = texts.clone().map(|text| hash(text, &mut buffer)).collect();
    hashes.sort_unstable();
    if !hashes.windows(2).any(|pair| pair[0] == pair[1]) {
        return false;
    }
    let mut seen = HashSet::new();
    !texts.map(|text| text.to_vec()).all(|text| seen.insert(text))
}

/// Chooses `count` of the `len` items that `items` yields, each set of them with equal chances, and
/// shows them in the order of the iteration (Knuth's selection sampling).
pub(crate) fn choose<T>(
    items: impl Iterator<Item = T>,
    len: usize,
    count: usize,
    rng: &mut Rng,
    mut visit: impl FnMut(T),
) {
    let mut wanted = count.min(len);
    for (index, item) in items.take(len).enumerate() {
        if wanted == 0 {
            return;
        }
        if rng.index(len - index) < wanted {
            wanted -= 1;
            visit(item);
        }
    }
}
