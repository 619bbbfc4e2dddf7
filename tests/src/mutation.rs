//! Damage of the kinds that break readers: bits that flip, ends that are missing, lengths that
//! promise too much, parts that stand elsewhere or come from another file.

use crate::random::Random;

/// How lengths of many bytes begin in the formats that data is saved in, and numbers that provoke
/// errors.
const PROMISES: [&[u8]; 12] = [
    b"\x80\xff\xff\xff\xff",
    b"\x80\x7f\xff\xff\xff",
    b"\x80\x00\xff\xff\xff",
    b"\x81\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x81\x00\x00\x00\x01\x00\x00\x00\x00",
    b"\x7f\xff",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x80",
    b"\xc3\x05\x80\x3f\xff\xff\xff",
    b"$536870912\r\n",
    b"*1048576\r\n",
    b"9999999999",
];

/// A copy of `bytes` with damage in one to five places. Parts may come from `other`.
pub fn mutated(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    for _ in 0..=random.below(5) {
        damage(&mut damaged, other, random);
    }
    damaged
}

fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    if bytes.is_empty() {
        return bytes.push(random.bits() as u8);
    }
    let at = random.below(bytes.len());
    let end = (at + 1 + random.below(16)).min(bytes.len());
    match random.below(9) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.bits() as u8,
        2 => bytes.truncate(at),
        3 => {
            let promise = *random.pick(&PROMISES);
            let end = (at + promise.len()).min(bytes.len());
            drop(bytes.splice(at..end, promise.iter().copied()));
        }
        4 => drop(bytes.splice(at..at, random.pick(&PROMISES).iter().copied())),
        5 => drop(bytes.drain(at..end)),
        6 => bytes.extend_from_within(at..end),
        7 if !other.is_empty() => {
            let from = random.below(other.len());
            let until = (from + 1 + random.below(64)).min(other.len());
            drop(bytes.splice(at..end, other[from..until].iter().copied()));
        }
        _ => bytes[at] = bytes[at].wrapping_add(*random.pick(&[1, 0xff, 0x80])),
    }
}
