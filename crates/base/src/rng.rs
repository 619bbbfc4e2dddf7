//! Random numbers: a small fast generator (xoshiro256++), and entropy from the system.
//!
//! [`Rng`] is for sampling (eviction, SPOP, RANDOMKEY, load shapes) and for simulations that must
//! repeat from a seed. Numbers that must not be guessed (passwords, replication ids) come from
//! [`entropy`].

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;

/// A seeded generator with 256 bits of state: xoshiro256++ by Blackman and Vigna.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator that `seed` names. Equal seeds give equal sequences, on every machine.
    pub fn from_seed(seed: u64) -> Self {
        // splitmix64 spreads the seed: xoshiro must not start from an all-zero or sparse state.
        let mut spread = seed;
        let state = std::array::from_fn(|_| {
            spread = spread.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = spread;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ (word >> 31)
        });
        Rng { state }
    }

    /// A generator seeded from the system's entropy.
    pub fn from_entropy() -> Self {
        Rng::from_seed(entropy_u64())
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let c_next = c ^ a;
        let d_next = d ^ b;
        self.state = [a ^ d_next, b ^ c_next, c_next ^ (b << 17), d_next.rotate_left(45)];
        result
    }

    /// A number below `bound`, uniform but for a bias of at most `bound / 2^64`. Zero for zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// An index into something with `length` elements. Zero when it is empty.
    #[inline]
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number in `0.0 <= x < 1.0`, with 53 random bits.
    #[inline]
    pub fn f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Fills `bytes` with random bytes (not for secrets; see [`entropy`]).
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

thread_local! {
    static LOCAL: RefCell<Rng> = RefCell::new(Rng::from_entropy());
}

/// Runs `action` with this thread's generator. Calls must not be nested.
#[inline]
pub fn with<T>(action: impl FnOnce(&mut Rng) -> T) -> T {
    LOCAL.with_borrow_mut(action)
}

/// The next 64 bits of this thread's generator.
#[inline]
pub fn next_u64() -> u64 {
    with(Rng::next_u64)
}

/// A number below `bound` from this thread's generator. Zero for zero.
#[inline]
pub fn below(bound: u64) -> u64 {
    with(|rng| rng.below(bound))
}

/// Fixes this thread's generator, for tests and simulations that must repeat.
pub fn fix_seed(seed: u64) {
    with(|rng| *rng = Rng::from_seed(seed));
}

/// Fills `bytes` from the system's entropy source: unpredictable, fit for ids and passwords.
///
/// # Errors
/// The error of opening or reading `/dev/urandom`.
pub fn entropy(bytes: &mut [u8]) -> std::io::Result<()> {
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

/// 64 bits from the system's entropy, for seeds. Never fails: if `/dev/urandom` cannot be read, the
/// standard library's own random state (seeded by the system too) is used.
pub fn entropy_u64() -> u64 {
    let mut bytes = [0; 8];
    match entropy(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => RandomState::new().hash_one(0u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vector_of_xoshiro256_plus_plus() {
        // From state 1, 2, 3, 4, as the reference implementation computes it.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn equal_seeds_repeat_and_others_differ() {
        let draw = |seed| Rng::from_seed(seed).next_u64();
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_ne!(entropy_u64(), entropy_u64());
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut rng = Rng::from_seed(1);
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            counts[rng.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (800..1200).contains(&count)), "{counts:?}");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
        assert_eq!(rng.index(1), 0);
    }

    #[test]
    fn fractions_stay_below_one() {
        let mut rng = Rng::from_seed(2);
        let mut sum = 0.0;
        for _ in 0..1000 {
            let value = rng.f64();
            assert!((0.0..1.0).contains(&value));
            sum += value;
        }
        assert!((400.0..600.0).contains(&sum));
    }

    #[test]
    fn fill_reaches_every_byte() {
        let mut rng = Rng::from_seed(3);
        for length in 0..20 {
            let mut seen = vec![0u8; length];
            for _ in 0..64 {
                let mut bytes = vec![0; length];
                rng.fill(&mut bytes);
                seen.iter_mut().zip(&bytes).for_each(|(all, byte)| *all |= byte);
            }
            assert!(seen.iter().all(|&byte| byte != 0));
        }
    }

    #[test]
    fn this_threads_generator_can_be_fixed() {
        fix_seed(11);
        let first = (next_u64(), below(1000));
        fix_seed(11);
        assert_eq!((next_u64(), below(1000)), first);
    }
}
