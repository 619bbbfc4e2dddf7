//! The hash of a key: foldhash, seeded once per process.
//!
//! A client chooses the keys, so the seed must be unknown to it: it is drawn from the system's
//! entropy at the first use. Tests that need the same order in each run fix it beforehand with
//! [`fix_seed`]. The "quality" variant is used, because tables take the bucket from some bits of
//! the hash and the tag from others, so all of its bits must be good.

use std::hash::Hasher;
use std::sync::OnceLock;

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

struct Seeds {
    /// Enters each hash directly.
    own: u64,
    /// foldhash's multipliers for longer inputs.
    shared: SharedSeed,
}

impl Seeds {
    fn new(seed: u64) -> Self {
        // Two unrelated values from one seed, so that learning one does not reveal the other.
        let mut rng = crate::rng::Rng::from_seed(seed);
        Seeds { own: rng.next_u64(), shared: SharedSeed::from_u64(rng.next_u64()) }
    }
}

static SEEDS: OnceLock<Seeds> = OnceLock::new();

#[cold]
fn random_seeds() -> Seeds {
    Seeds::new(crate::rng::entropy_u64())
}

/// Hashes `bytes` with the process's seed. All 64 bits are usable.
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    let seeds = SEEDS.get_or_init(random_seeds);
    let mut hasher = FoldHasher::with_seed(seeds.own, &seeds.shared);
    hasher.write(bytes);
    hasher.finish()
}

/// Fixes the seed, for tests and simulations that must repeat. Returns whether it took effect:
/// false once anything has been hashed or a seed has been fixed, since a hash may never change
/// afterwards.
pub fn fix_seed(seed: u64) -> bool {
    SEEDS.set(Seeds::new(seed)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_hash_equally_and_others_do_not() {
        assert_eq!(hash(b"key"), hash(&b"a key"[2..]));
        let mut seen = std::collections::HashSet::new();
        for number in 0..10_000u32 {
            assert!(seen.insert(hash(format!("key:{number}").as_bytes())));
        }
        assert_ne!(hash(b""), hash(b"\0"));
    }

    #[test]
    fn the_seed_cannot_change_after_first_use() {
        let before = hash(b"stable");
        assert!(!fix_seed(1));
        assert_eq!(hash(b"stable"), before);
    }

    #[test]
    fn bucket_bits_and_tag_bits_are_spread() {
        // 256 buckets by the low bits and by the high bits: none may get far more than its share.
        let mut low = [0u32; 256];
        let mut high = [0u32; 256];
        for number in 0..65_536u32 {
            let value = hash(format!("user:{number}").as_bytes());
            low[(value & 255) as usize] += 1;
            high[(value >> 56) as usize] += 1;
        }
        assert!(low.iter().chain(&high).all(|&count| (128..512).contains(&count)));
    }
}
