//! The allocator's size classes.

/// The number of bytes the allocator really sets aside for a request of `bytes`.
///
/// Follows jemalloc: 8, then multiples of 16 up to 128, then four steps per doubling. A block that
/// always asks for a full class may grow within it for free, and need not remember its capacity.
#[inline]
pub const fn good_size(bytes: usize) -> usize {
    if bytes <= 8 {
        8
    } else if bytes <= 128 {
        bytes.next_multiple_of(16)
    } else {
        bytes.next_multiple_of(bytes.next_power_of_two() / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_the_allocator() {
        let mut classes = vec![];
        let mut size = 1;
        while classes.len() < 22 {
            classes.push(good_size(size));
            size = good_size(size) + 1;
        }
        let expected = [
            8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768,
            896, 1024, 1280,
        ];
        assert_eq!(classes, expected);
        assert_eq!(good_size(8192), 8192);
        assert_eq!(good_size(8193), 10240);
    }
}
