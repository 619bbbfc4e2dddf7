//! Strings of bytes: comparing short ones, and making room for long ones.

use crate::limits;

/// Makes room for the next bytes of a text of which `missing` bytes are still to come, if there is
/// none. [`limits::BIG_ARGUMENT_EAGER`] bytes are taken in advance. When as many have arrived, the
/// room for all the rest is taken: if it grew little by little, what has arrived would be copied
/// again and again, and each time a worker would stand still, for a value of 400 MB up to half a
/// second. The system provides memory only where bytes arrive.
pub fn make_room(bytes: &mut Vec<u8>, missing: usize) {
    if bytes.len() == bytes.capacity() {
        let is_real = bytes.len() >= limits::BIG_ARGUMENT_EAGER;
        let more = if is_real { missing } else { missing.min(limits::BIG_ARGUMENT_EAGER) };
        bytes.reserve_exact(more);
    }
}

/// Whether two strings of bytes are the same. Those of four to 32 bytes, as most keys are, are
/// compared by their beginnings and ends, which may overlap: a call of the C library takes longer.
#[inline]
pub fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        4..8 => ends::<4>(one) == ends::<4>(other),
        8..16 => ends::<8>(one) == ends::<8>(other),
        16..=32 => ends::<16>(one) == ends::<16>(other),
        _ => one == other,
    }
}

/// The first and the last bytes of a string, if it is long enough.
#[inline]
fn ends<const N: usize>(bytes: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
    bytes.first_chunk().zip(bytes.last_chunk())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_counts_at_each_length() {
        for length in 0..70 {
            let one: Vec<u8> = (0..length).collect();
            assert!(same(&one, &one.clone()), "{length}");
            assert!(!same(&one, &[&one[..], &[0]].concat()), "{length}");
            for place in 0..one.len() {
                let mut other = one.clone();
                other[place] ^= 0x10;
                assert!(!same(&one, &other), "{place} of {length}");
            }
        }
    }
}
