//! Which part of a value a range means.

/// Where a range begins and ends in a text of this many bytes; `None` when it contains none of
/// them.
pub(super) fn part_of(
    length: u64,
    (first, last): (Option<u64>, Option<u64>),
) -> Option<(u64, u64)> {
    let (from, to) = match (first, last) {
        (Some(first), Some(last)) => (first, last.saturating_add(1).min(length)),
        (Some(first), None) => (first, length),
        (None, Some(count)) => (length - count.min(length), length),
        (None, None) => (0, length),
    };
    (from < to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_what_is_there() {
        assert_eq!(part_of(10, (Some(0), Some(4))), Some((0, 5)));
        assert_eq!(part_of(10, (Some(5), None)), Some((5, 10)));
        assert_eq!(part_of(10, (Some(5), Some(u64::MAX))), Some((5, 10)));
        assert_eq!(part_of(10, (None, Some(3))), Some((7, 10)));
        assert_eq!(part_of(10, (None, Some(30))), Some((0, 10)));
        assert_eq!(part_of(10, (Some(10), None)), None);
        assert_eq!(part_of(0, (None, Some(3))), None);
        assert_eq!(part_of(10, (None, Some(0))), None);
    }
}
