//! HyperLogLog: an estimate of how many distinct elements were seen, from at most 12 kB.
//!
//! The idea: hash each element; 14 bits of the hash choose one of 16384 registers, and the
//! register keeps the longest run of trailing zeros (plus one) seen in the other 50 bits. Long
//! runs are rare, so a register tells about how many hashes came its way, and all registers
//! together tell it with a standard error of 0.81 %. The estimator is Ertl's ("New cardinality
//! estimation algorithms for HyperLogLog sketches", 2017), which needs no tables of corrections.
//!
//! The value is an ordinary string in the reference's format, byte for byte, since GET, DUMP and
//! replication show it:
//!
//! ```text
//!  0      4   5        8                       16
//! +------+---+--------+-----------------------+-----------------------------+
//! | HYLL | E | unused | cached count (LE u64) | registers                   |
//! +------+---+--------+-----------------------+-----------------------------+
//!
//! E = 0, dense:  16384 registers of 6 bits, lowest bits first
//! E = 1, sparse: runs of equal registers, one byte each or two
//!                00llllll           ZERO   l + 1 registers (1..64) are 0
//!                01llllll llllllll  XZERO  l + 1 registers (1..16384) are 0
//!                1vvvvvll           VAL    l + 1 registers (1..4) are v + 1 (1..32)
//! ```
//!
//! The highest bit of the cached count says that it is out of date. A sparse value becomes dense
//! when a register exceeds 32 or the value would outgrow a configured length.
//!
//! Anybody can write such a string with SET, so nothing in it is trusted: [`HyperLogLog::parse`]
//! checks header and length, and code that walks sparse runs checks that they add up.

use std::fmt::Write as _;

use smallvec::SmallVec;

/// The number of registers.
pub(crate) const REGISTERS: usize = 1 << INDEX_BITS;

/// Bits of a hash that choose the register.
const INDEX_BITS: u32 = 14;

/// Bits of a hash whose trailing zeros are counted.
const RUN_BITS: u32 = 64 - INDEX_BITS;

/// Bits of a register in the dense representation.
const REGISTER_BITS: usize = 6;

const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
const CACHE_AT: usize = 8;
const HEADER_LENGTH: usize = 16;

/// The length of a dense value.
pub(crate) const DENSE_LENGTH: usize = HEADER_LENGTH + REGISTERS * REGISTER_BITS / 8;

const DENSE: u8 = 0;
const SPARSE: u8 = 1;

/// In the last byte of the cached count: the count is out of date.
const OUTDATED: u8 = 0x80;

const ZERO_LENGTH_MAXIMUM: usize = 64;
const VALUE_LENGTH_MAXIMUM: usize = 4;

/// The largest register that a sparse run can have.
const SPARSE_VALUE_MAXIMUM: u8 = 32;

/// How many runs a change of a sparse value looks at in order to join equal neighbours.
const JOIN_STEPS: usize = 5;

/// Why a string does not serve as a HyperLogLog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HyperLogLogError {
    /// It does not look like one: magic, encoding or length are wrong. (`WRONGTYPE`)
    NotHyperLogLog,
    /// It looks like one, but its sparse runs do not cover the registers. (`INVALIDOBJ`)
    Corrupted,
}

/// How a value represents its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// All registers at fixed places.
    Dense,
    /// Runs of equal registers.
    Sparse,
}

/// A string with the content of a HyperLogLog: `&[u8]` to read, `&mut [u8]` to change in place, and
/// `Vec<u8>` to grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HyperLogLog<B> {
    bytes: B,
}

impl<B: AsRef<[u8]>> HyperLogLog<B> {
    /// Takes a string as a HyperLogLog if header and length fit. Sparse runs are checked only when
    /// they are read.
    pub(crate) fn parse(bytes: B) -> Result<Self, HyperLogLogError> {
        let string = bytes.as_ref();
        let is_known = string.len() >= HEADER_LENGTH
            && string.starts_with(MAGIC)
            && match string[ENCODING_AT] {
                DENSE => string.len() == DENSE_LENGTH,
                SPARSE => true,
                _ => false,
            };
        if is_known { Ok(Self { bytes }) } else { Err(HyperLogLogError::NotHyperLogLog) }
    }

    /// The string.
    pub(crate) fn into_bytes(self) -> B {
        self.bytes
    }

    /// The representation of the registers.
    pub(crate) fn encoding(&self) -> Encoding {
        match self.bytes.as_ref()[ENCODING_AT] {
            DENSE => Encoding::Dense,
            _ => Encoding::Sparse,
        }
    }

    /// The cached count, unless it is out of date.
    pub(crate) fn cached_count(&self) -> Option<u64> {
        let cache = &self.bytes.as_ref()[CACHE_AT..HEADER_LENGTH];
        let count = u64::from_le_bytes(cache.try_into().expect("the cache has eight bytes"));
        (cache[7] & OUTDATED == 0).then_some(count)
    }

    /// Estimates the number of distinct elements from the registers, without the cached count.
    pub(crate) fn estimate(&self) -> Result<u64, HyperLogLogError> {
        let mut histogram = Histogram::default();
        match self.encoding() {
            Encoding::Dense => {
                dense_registers(self.bytes.as_ref(), |value| histogram.add(value, 1))
            }
            Encoding::Sparse => walk(self.bytes.as_ref(), |_, run| {
                histogram.add(run.value, run.length);
            })?,
        }
        Ok(histogram.estimate())
    }

    /// Raises each of `registers` to its counterpart here. After an error, `registers` may have
    /// taken over some.
    pub(crate) fn merge_into(&self, registers: &mut Registers) -> Result<(), HyperLogLogError> {
        let mut values = registers.values.iter_mut();
        match self.encoding() {
            Encoding::Dense => {
                dense_registers(self.bytes.as_ref(), |value| {
                    if let Some(register) = values.next() {
                        *register = value.max(*register);
                    }
                });
                Ok(())
            }
            Encoding::Sparse => walk(self.bytes.as_ref(), |_, run| {
                for register in values.by_ref().take(run.length) {
                    *register = run.value.max(*register);
                }
            }),
        }
    }

    /// Spells out the runs of a sparse value: `z:` for ZERO, `Z:` for XZERO and `v:value,length`
    /// for VAL. `None` for a dense value.
    pub(crate) fn describe_runs(&self) -> Option<String> {
        let bytes = self.bytes.as_ref();
        if self.encoding() == Encoding::Dense {
            return None;
        }
        let mut text = String::new();
        let mut at = HEADER_LENGTH;
        while let Some(run) = Run::read(bytes, at) {
            let separator = if text.is_empty() { "" } else { " " };
            let described = match (run.value, run.width) {
                (0, 1) => write!(text, "{separator}z:{}", run.length),
                (0, _) => write!(text, "{separator}Z:{}", run.length),
                (value, _) => write!(text, "{separator}v:{value},{}", run.length),
            };
            described.expect("writing to a string does not fail");
            at += run.width;
        }
        Some(text)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> HyperLogLog<B> {
    /// Records an estimate as the cached count.
    pub(crate) fn cache_count(&mut self, count: u64) {
        self.bytes.as_mut()[CACHE_AT..HEADER_LENGTH].copy_from_slice(&count.to_le_bytes());
    }

    /// Adds an element to a dense value, which never changes its length. Returns whether a
    /// register rose; `None`, and nothing done, when the value is sparse.
    pub(crate) fn add_in_place(&mut self, element: &[u8]) -> Option<bool> {
        let (index, value) = place(element);
        (self.encoding() == Encoding::Dense).then(|| self.raise_dense(index, value))
    }

    /// Raises a register of a dense value. Returns whether it was lower.
    fn raise_dense(&mut self, index: usize, value: u8) -> bool {
        let registers = &mut self.bytes.as_mut()[HEADER_LENGTH..];
        let is_lower = dense_register(registers, index) < value;
        if is_lower {
            set_dense_register(registers, index, value);
            self.outdate();
        }
        is_lower
    }

    fn outdate(&mut self) {
        self.bytes.as_mut()[HEADER_LENGTH - 1] |= OUTDATED;
    }
}

impl Default for HyperLogLog<Vec<u8>> {
    fn default() -> Self {
        Self::new()
    }
}

impl HyperLogLog<Vec<u8>> {
    /// A sparse value that has seen nothing, and whose count is not yet cached: PFADD and PFMERGE
    /// start from it when the key does not exist.
    pub(crate) fn new() -> Self {
        let mut bytes = vec![0; HEADER_LENGTH];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[ENCODING_AT] = SPARSE;
        bytes[HEADER_LENGTH - 1] = OUTDATED;
        let mut runs = Runs::new();
        push_run(&mut runs, 0, REGISTERS);
        bytes.extend_from_slice(&runs);
        Self { bytes }
    }

    /// Adds an element. Returns whether a register rose: the cached count is then out of date. A
    /// sparse value becomes dense rather than longer than `sparse_maximum` bytes, header included.
    pub(crate) fn add(
        &mut self,
        element: &[u8],
        sparse_maximum: usize,
    ) -> Result<bool, HyperLogLogError> {
        let (index, value) = place(element);
        self.raise(index, value, sparse_maximum)
    }

    /// Raises each register to its counterpart in `registers`, and marks the count out of date.
    /// The value becomes dense at once if `dense` says so, or else when it must.
    pub(crate) fn absorb(
        &mut self,
        registers: &Registers,
        dense: bool,
        sparse_maximum: usize,
    ) -> Result<(), HyperLogLogError> {
        if dense {
            self.make_dense()?;
        }
        for (index, &value) in registers.values.iter().enumerate() {
            if value > 0 {
                self.raise(index, value, sparse_maximum)?;
            }
        }
        self.outdate();
        Ok(())
    }

    /// Makes a sparse value dense. Returns whether it was sparse. The cached count stays.
    pub(crate) fn make_dense(&mut self) -> Result<bool, HyperLogLogError> {
        if self.encoding() == Encoding::Dense {
            return Ok(false);
        }
        let mut dense = vec![0; DENSE_LENGTH];
        let (header, registers) = dense.split_at_mut(HEADER_LENGTH);
        header.copy_from_slice(&self.bytes[..HEADER_LENGTH]);
        header[ENCODING_AT] = DENSE;
        walk(&self.bytes, |first, run| {
            if run.value > 0 {
                for index in first..first + run.length {
                    set_dense_register(registers, index, run.value);
                }
            }
        })?;
        self.bytes = dense;
        Ok(true)
    }

    /// Raises a register. Returns whether it was lower.
    fn raise(
        &mut self,
        index: usize,
        value: u8,
        sparse_maximum: usize,
    ) -> Result<bool, HyperLogLogError> {
        if self.encoding() == Encoding::Sparse {
            if let Some(rose) = self.raise_sparse(index, value, sparse_maximum)? {
                return Ok(rose);
            }
            self.make_dense()?;
        }
        Ok(self.raise_dense(index, value))
    }

    /// Raises a register of a sparse value, by cutting its run in up to three. Returns whether it
    /// was lower; `None`, and nothing done, when the sparse representation does not allow it.
    fn raise_sparse(
        &mut self,
        index: usize,
        value: u8,
        sparse_maximum: usize,
    ) -> Result<Option<bool>, HyperLogLogError> {
        if value > SPARSE_VALUE_MAXIMUM {
            return Ok(None);
        }
        let mut previous_at = HEADER_LENGTH;
        let mut at = HEADER_LENGTH;
        let mut first = 0;
        let run = loop {
            let run = Run::read(&self.bytes, at).ok_or(HyperLogLogError::Corrupted)?;
            if index < first + run.length {
                break run;
            }
            first += run.length;
            previous_at = at;
            at += run.width;
        };
        if run.value >= value {
            return Ok(Some(false));
        }
        let mut parts = Runs::new();
        push_run(&mut parts, run.value, index - first);
        push_run(&mut parts, value, 1);
        push_run(&mut parts, run.value, first + run.length - index - 1);
        let length = self.bytes.len() - run.width + parts.len();
        if length > self.bytes.len() && length > sparse_maximum {
            return Ok(None);
        }
        let end = self.bytes.len().min(at + run.width);
        self.bytes.splice(at..end, parts);
        // Where the run lacked its second byte, the reference drops the last byte of the new ones.
        self.bytes.truncate(length);
        self.join_runs(previous_at);
        self.outdate();
        Ok(Some(true))
    }

    /// Joins runs of equal non-zero registers among the few from `at` on. Which runs are looked
    /// at is visible in the bytes, so the order of steps is the reference's.
    fn join_runs(&mut self, mut at: usize) {
        for _ in 0..JOIN_STEPS {
            let Some(run) = Run::read(&self.bytes, at) else {
                return;
            };
            let joined = Run::read(&self.bytes, at + run.width)
                .filter(|next| run.value > 0 && run.value == next.value)
                .map(|next| run.length + next.length)
                .filter(|&length| length <= VALUE_LENGTH_MAXIMUM);
            if let Some(length) = joined {
                let mut runs = Runs::new();
                push_run(&mut runs, run.value, length);
                self.bytes.splice(at..at + 2, runs);
            } else {
                at += run.width;
            }
        }
    }
}

/// A run of equal registers in a sparse value.
#[derive(Clone, Copy)]
struct Run {
    value: u8,
    length: usize,
    /// The bytes that the run takes in the string.
    width: usize,
}

/// The bytes of the runs that replace one: a run of zeros cut in two around a value, at most.
type Runs = SmallVec<[u8; 8]>;

impl Run {
    /// The run that begins at an offset; `None` at the end of the string. Where the second byte of
    /// a run is missing it is zero: the reference reads the zero that ends each of its strings.
    fn read(bytes: &[u8], at: usize) -> Option<Self> {
        let byte = *bytes.get(at)?;
        let low_bits = usize::from(byte & 0x3F);
        Some(match byte >> 6 {
            0b00 => Self { value: 0, length: low_bits + 1, width: 1 },
            0b01 => {
                let length =
                    (low_bits << 8 | usize::from(bytes.get(at + 1).copied().unwrap_or(0))) + 1;
                Self { value: 0, length, width: 2 }
            }
            _ => Self {
                value: (byte >> 2 & 0x1F) + 1,
                length: usize::from(byte & 0x03) + 1,
                width: 1,
            },
        })
    }
}

/// Appends a run in its shortest form; nothing when `length` is zero.
fn push_run(runs: &mut Runs, value: u8, length: usize) {
    let Some(length_less_one) = length.checked_sub(1) else {
        return;
    };
    if value > 0 {
        debug_assert!(value <= SPARSE_VALUE_MAXIMUM && length <= VALUE_LENGTH_MAXIMUM);
        runs.push(0x80 | (value - 1) << 2 | length_less_one as u8);
    } else if length <= ZERO_LENGTH_MAXIMUM {
        runs.push(length_less_one as u8);
    } else {
        debug_assert!(length <= REGISTERS);
        runs.push(0x40 | (length_less_one >> 8) as u8);
        runs.push(length_less_one as u8);
    }
}

/// Visits the runs of a sparse value, each with its first register, as long as they stay within
/// the registers. They must cover them exactly.
fn walk(bytes: &[u8], mut visit: impl FnMut(usize, Run)) -> Result<(), HyperLogLogError> {
    let mut first = 0;
    let mut at = HEADER_LENGTH;
    while at < bytes.len() {
        let run = Run::read(bytes, at)
            .filter(|run| run.length <= REGISTERS - first)
            .ok_or(HyperLogLogError::Corrupted)?;
        visit(first, run);
        first += run.length;
        at += run.width;
    }
    if first == REGISTERS { Ok(()) } else { Err(HyperLogLogError::Corrupted) }
}

/// Visits all registers of a dense value in order.
fn dense_registers(bytes: &[u8], mut visit: impl FnMut(u8)) {
    // Three bytes are four registers.
    for bytes in bytes[HEADER_LENGTH..].chunks_exact(3) {
        let four = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
        for shift in [0, 6, 12, 18] {
            visit((four >> shift) as u8 & REGISTER_MASK);
        }
    }
}

const REGISTER_MASK: u8 = (1 << REGISTER_BITS) - 1;

/// The byte in which a dense register begins, and the bit there.
fn dense_place(index: usize) -> (usize, usize) {
    let bit = index * REGISTER_BITS;
    (bit / 8, bit % 8)
}

fn dense_register(registers: &[u8], index: usize) -> u8 {
    let (byte, bit) = dense_place(index);
    // The last register ends with the last byte; there is none after it.
    let high = registers.get(byte + 1).copied().unwrap_or_default();
    (u16::from_le_bytes([registers[byte], high]) >> bit) as u8 & REGISTER_MASK
}

fn set_dense_register(registers: &mut [u8], index: usize, value: u8) {
    let (byte, bit) = dense_place(index);
    let [low_mask, high_mask] = (u16::from(REGISTER_MASK) << bit).to_le_bytes();
    let [low, high] = (u16::from(value) << bit).to_le_bytes();
    registers[byte] = registers[byte] & !low_mask | low;
    if high_mask != 0 {
        registers[byte + 1] = registers[byte + 1] & !high_mask | high;
    }
}

/// Registers outside of any string: a union in the making.
#[derive(Clone, Debug)]
pub(crate) struct Registers {
    values: Box<[u8]>,
}

impl Default for Registers {
    fn default() -> Self {
        Self::new()
    }
}

impl Registers {
    /// Registers that have seen nothing.
    pub(crate) fn new() -> Self {
        Self { values: vec![0; REGISTERS].into_boxed_slice() }
    }

    /// The [`REGISTERS`] values.
    pub(crate) fn values(&self) -> &[u8] {
        &self.values
    }

    /// Estimates the number of distinct elements.
    pub(crate) fn estimate(&self) -> u64 {
        let mut histogram = Histogram::default();
        self.values.iter().for_each(|&value| histogram.add(value, 1));
        histogram.estimate()
    }
}

/// How many registers have each value; an estimate depends on nothing else.
struct Histogram {
    counts: [u32; 1 << REGISTER_BITS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; 1 << REGISTER_BITS] }
    }
}

impl Histogram {
    fn add(&mut self, value: u8, registers: usize) {
        self.counts[usize::from(value & REGISTER_MASK)] += registers as u32;
    }

    fn estimate(&self) -> u64 {
        const REGISTER_COUNT: f64 = REGISTERS as f64;
        /// The bias correction for infinitely many registers, 1 / (2 ln 2).
        const ALPHA: f64 = 0.5 / std::f64::consts::LN_2;

        let share = |registers: u32| f64::from(registers) / REGISTER_COUNT;
        let highest = RUN_BITS as usize + 1;
        let unsaturated = REGISTERS as u32 - self.counts[highest];
        let mut sum = REGISTER_COUNT * tau(share(unsaturated));
        for &registers in self.counts[1..highest].iter().rev() {
            sum = (sum + f64::from(registers)) * 0.5;
        }
        sum += REGISTER_COUNT * sigma(share(self.counts[0]));
        (ALPHA * REGISTER_COUNT * REGISTER_COUNT / sum).round() as u64
    }
}

/// The contribution of registers still at zero, of which there is a share `x`.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let mut weight = 1.0;
    let mut sum = x;
    loop {
        x *= x;
        let previous = sum;
        sum += x * weight;
        weight += weight;
        if sum == previous {
            return sum;
        }
    }
}

/// The contribution of registers at their highest value; a share `x` of them is below it.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let mut weight = 1.0;
    let mut sum = 1.0 - x;
    loop {
        x = x.sqrt();
        let previous = sum;
        weight *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * weight;
        if sum == previous {
            return sum / 3.0;
        }
    }
}

/// The register of an element, and the value it raises it to.
fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur_hash(element, 0xADC8_3B19);
    let index = hash as usize & (REGISTERS - 1);
    // A bit beyond the hash bounds the run.
    let run = hash >> INDEX_BITS | 1 << RUN_BITS;
    (index, run.trailing_zeros() as u8 + 1)
}

/// MurmurHash64A by Austin Appleby, reading little-endian.
fn murmur_hash(bytes: &[u8], seed: u64) -> u64 {
    const MULTIPLIER: u64 = 0xC6A4_A793_5BD1_E995;
    const SHIFT: u32 = 47;

    let mix = |word: u64| word ^ (word >> SHIFT);
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        hash = (hash ^ mix(word).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER);
    }
    mix(mix(hash).wrapping_mul(MULTIPLIER))
}

/// Checks that registers keep their values and that estimates are about right, for PFSELFTEST.
/// Takes some ten milliseconds. The error tells what was found.
pub(crate) fn self_test() -> Result<(), String> {
    test_dense_registers()?;
    test_estimates()
}

/// Writes each register of a dense value, in scattered order, and reads all of them back.
fn test_dense_registers() -> Result<(), String> {
    let mut bytes = vec![0; DENSE_LENGTH];
    let mut expected = vec![0; REGISTERS];
    for round in 0..3 {
        for step in 0..REGISTERS {
            let index = step * 4_099 % REGISTERS;
            let (_, value) = place(&(round * REGISTERS + step).to_le_bytes());
            set_dense_register(&mut bytes[HEADER_LENGTH..], index, value);
            expected[index] = value;
        }
        let mut index = 0;
        let mut wrong = None;
        dense_registers(&bytes, |value| {
            let single = dense_register(&bytes[HEADER_LENGTH..], index);
            if value != expected[index] || single != value {
                wrong = Some(format!(
                    "register {index} is {value}, or {single}, and should be {}",
                    expected[index]
                ));
            }
            index += 1;
        });
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
    }
    Ok(())
}

/// Compares estimates with the numbers of elements added, and a sparse value with a dense one.
fn test_estimates() -> Result<(), String> {
    const ELEMENTS: u64 = 200_000;
    const SPARSE_MAXIMUM: usize = 3_000;
    /// Six standard errors.
    const TOLERANCE: f64 = 6.0 * 1.04 / 128.0;

    let failed = |error| format!("a value made here is refused: {error:?}");
    let mut dense = HyperLogLog::new();
    dense.make_dense().map_err(failed)?;
    let mut sparse = HyperLogLog::new();
    let mut checkpoint = 1;
    for count in 1..=ELEMENTS {
        let element = count.to_le_bytes();
        dense.add(&element, 0).map_err(failed)?;
        sparse.add(&element, SPARSE_MAXIMUM).map_err(failed)?;
        if count < checkpoint {
            continue;
        }
        checkpoint = count * 3;
        let estimate = dense.estimate().map_err(failed)?;
        let other = sparse.estimate().map_err(failed)?;
        if estimate != other {
            return Err(format!("{count} elements: dense says {estimate}, sparse {other}"));
        }
        if estimate.abs_diff(count) as f64 > (TOLERANCE * count as f64).ceil() {
            return Err(format!("{count} elements are estimated as {estimate}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A usual `hll-sparse-max-bytes`.
    const LIMIT: usize = 3_000;

    fn with_numbers(count: u32, limit: usize) -> HyperLogLog<Vec<u8>> {
        let mut value = HyperLogLog::new();
        for number in 0..count {
            value.add(number.to_string().as_bytes(), limit).expect("a sound value");
        }
        value
    }

    #[test]
    fn bytes_are_those_of_the_reference() {
        let mut value = HyperLogLog::new();
        assert_eq!(value.clone().into_bytes(), b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff");
        for element in [b"a", b"b", b"c"] {
            assert_eq!(value.add(element, LIMIT), Ok(true));
            assert_eq!(value.add(element, LIMIT), Ok(false));
        }
        let count = value.estimate().expect("a sound value");
        assert_eq!(value.cached_count(), None);
        value.cache_count(count);
        assert_eq!(value.cached_count(), Some(3));
        let expected = b"HYLL\x01\0\0\0\x03\0\0\0\0\0\0\0`\xf3\x80P\xb1\x84K\xfb\x80BZ";
        assert_eq!(value.into_bytes(), expected);
    }

    #[test]
    fn half_a_run_at_the_end_is_read_as_the_reference_reads_it() {
        const HEADER: &[u8] = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80";
        let bytes = [HEADER, b"\x7f"].concat();
        let mut value = HyperLogLog::parse(bytes).expect("header and length fit");
        assert_eq!(value.describe_runs().as_deref(), Some("Z:16129"));
        assert_eq!(value.estimate(), Err(HyperLogLogError::Corrupted));
        for element in [&b"a"[..], b"b", b"c", b"d", b"e", b"zz"] {
            assert_eq!(value.add(element, LIMIT), Ok(true));
        }
        let runs = b"J\xd9\x80Q\xa0\x80Dv\x80P\xb1\x84I\x8c\x80Bm\x80A";
        assert_eq!(value.into_bytes(), [HEADER, runs].concat());
    }

    #[test]
    fn runs_are_those_of_the_reference() {
        let mut value = HyperLogLog::new();
        for element in [&b""[..], b"longer than eight bytes, indeed", b"exactly8"] {
            value.add(element, LIMIT).expect("a sound value");
        }
        let expected = "Z:75 v:4,1 Z:5862 v:2,1 Z:1650 v:5,1 Z:8794";
        assert_eq!(value.describe_runs().as_deref(), Some(expected));
        assert_eq!(value.make_dense(), Ok(true));
        assert_eq!(value.make_dense(), Ok(false));
        assert_eq!(value.describe_runs(), None);
    }

    #[test]
    fn estimates_and_lengths_are_those_of_the_reference() {
        for (count, estimate, length) in
            [(10, 10, 48), (100, 100, 287), (1_000, 1_001, 1_923), (10_000, 9_987, DENSE_LENGTH)]
        {
            let value = with_numbers(count, LIMIT);
            assert_eq!(value.estimate(), Ok(estimate));
            assert_eq!(value.into_bytes().len(), length);
        }
        assert_eq!(with_numbers(30, 40).encoding(), Encoding::Dense);
        assert_eq!(Registers::new().estimate(), 0);
    }

    #[test]
    fn a_union_counts_each_element_once() {
        let (few, many) = (with_numbers(700, LIMIT), with_numbers(10_000, LIMIT));
        let mut registers = Registers::new();
        few.merge_into(&mut registers).expect("a sound value");
        let mut merged = HyperLogLog::new();
        merged.absorb(&registers, false, LIMIT).expect("a sound value");
        assert_eq!(merged.estimate(), few.estimate());
        assert_eq!(merged.encoding(), Encoding::Sparse);
        many.merge_into(&mut registers).expect("a sound value");
        assert_eq!(Ok(registers.estimate()), many.estimate());
        merged.absorb(&registers, true, LIMIT).expect("a sound value");
        assert_eq!(merged, many);
    }

    #[test]
    fn a_dense_value_changes_in_place() {
        let mut sparse = HyperLogLog::new().into_bytes();
        let mut value = HyperLogLog::parse(sparse.as_mut_slice()).expect("a sound value");
        assert_eq!(value.add_in_place(b"a"), None);

        let mut dense = with_numbers(10_000, LIMIT);
        dense.cache_count(9_987);
        let mut bytes = dense.into_bytes();
        let mut value = HyperLogLog::parse(bytes.as_mut_slice()).expect("a sound value");
        assert_eq!(value.add_in_place(b"17"), Some(false));
        assert_eq!(value.cached_count(), Some(9_987));
        let is_new = (10_000u32..).find(|number| {
            value.add_in_place(number.to_string().as_bytes()).expect("the value is dense")
        });
        assert!(is_new.is_some_and(|number| number < 10_100));
        assert_eq!(value.cached_count(), None);
    }

    #[test]
    fn strings_of_another_kind_are_refused() {
        let with = |change: fn(&mut Vec<u8>)| {
            let mut bytes = HyperLogLog::new().into_bytes();
            change(&mut bytes);
            HyperLogLog::parse(bytes).map(|_| ())
        };
        assert_eq!(with(|_| ()), Ok(()));
        assert_eq!(with(|bytes| bytes.truncate(16)), Ok(()));
        for change in [
            (|bytes| bytes.truncate(15)) as fn(&mut Vec<u8>),
            |bytes| bytes[0] = b'h',
            |bytes| bytes[ENCODING_AT] = DENSE,
            |bytes| bytes[ENCODING_AT] = 2,
            |bytes| bytes.clear(),
        ] {
            assert_eq!(with(change), Err(HyperLogLogError::NotHyperLogLog));
        }
    }

    #[test]
    fn runs_that_do_not_cover_the_registers_are_refused() {
        for runs in [&b""[..], b"\x00", b"\x7f\xfe", b"\x7f\xff\x00", b"\x7f\xff\x7f", b"\x7f"] {
            let bytes = [&HyperLogLog::new().into_bytes()[..HEADER_LENGTH], runs].concat();
            let mut value = HyperLogLog::parse(bytes).expect("the header is sound");
            assert_eq!(value.estimate(), Err(HyperLogLogError::Corrupted));
            assert_eq!(value.make_dense(), Err(HyperLogLogError::Corrupted));
            let merged = value.merge_into(&mut Registers::new());
            assert_eq!(merged, Err(HyperLogLogError::Corrupted));
        }
    }

    #[test]
    fn the_self_test_passes() {
        assert_eq!(self_test(), Ok(()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn both_encodings_hold_the_same_registers(
            raised in prop::collection::vec((0..REGISTERS, 1..=51u8), 0..300),
            near in 0..REGISTERS - 40,
            clustered in prop::collection::vec((0..40usize, 1..4u8), 0..80),
            limit in 16..600usize,
        ) {
            let clustered = clustered.into_iter().map(|(index, value)| (near + index, value));
            let mut expected = Registers::new();
            let mut value = HyperLogLog::new();
            for (index, raise) in clustered.chain(raised) {
                let rises = expected.values[index] < raise;
                expected.values[index] = expected.values[index].max(raise);
                prop_assert_eq!(value.raise(index, raise, limit), Ok(rises));
                let mut registers = Registers::new();
                value.merge_into(&mut registers).expect("a sound value");
                prop_assert!(registers.values == expected.values);
                if value.encoding() == Encoding::Sparse {
                    prop_assert!(value.bytes.len() <= limit.max(HEADER_LENGTH + 2));
                }
            }
            prop_assert_eq!(value.estimate(), Ok(expected.estimate()));
        }

        #[test]
        fn hostile_runs_do_no_harm(
            runs in prop::collection::vec(any::<u8>(), 0..400),
            encoding in 0..3u8,
            elements in prop::collection::vec(any::<u16>(), 1..20),
        ) {
            let mut bytes = HyperLogLog::new().into_bytes();
            bytes[ENCODING_AT] = encoding;
            bytes.truncate(HEADER_LENGTH);
            bytes.extend(runs);
            let Ok(mut value) = HyperLogLog::parse(bytes) else { return Ok(()) };
            let is_sound = value.estimate().is_ok();
            prop_assert_eq!(value.merge_into(&mut Registers::new()).is_ok(), is_sound);
            prop_assert_eq!(value.clone().make_dense().is_ok(), is_sound);
            prop_assert!(value.describe_runs().is_some());
            for element in elements {
                // Neither answer is wrong: only the runs up to the element's register are read.
                let _ = value.add(&element.to_le_bytes(), LIMIT);
            }
            prop_assert_eq!(value.estimate().is_ok(), is_sound);
        }
    }
}
