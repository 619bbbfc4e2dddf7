//! LZF: the light compression that RDB files and DUMP payloads use for strings.
//!
//! A compressed string is a sequence of two kinds of items, told apart by their first byte:
//!
//! ```text
//! 000LLLLL                    a run of L+1 literal bytes follows              (1..=32)
//! LLLooooo [MMMMMMMM] oooooooo  copy L+2 (L = 7: M+9) bytes from o+1 bytes back
//! ```
//!
//! The compressor is greedy, with one candidate per hash of three bytes. Its steps grow while it
//! finds nothing. Every reader of the format reads the output of every compressor, so ours need not
//! produce the same bytes as Redis's.

/// Longest literal run of one item.
const MAX_LITERAL: usize = 32;
/// Shortest copy that is worth an item.
const MIN_COPY: usize = 3;
/// Longest copy of one item: 8 bits beyond the seven that mark the long form.
const MAX_COPY: usize = 255 + 7 + 2;
/// Farthest distance back of a copy.
const MAX_DISTANCE: usize = 1 << 13;

/// Positions without a copy after which the search goes on in larger steps: data without
/// repetitions so far is not likely to have any now, and most saved data has none at all.
const PATIENCE: usize = 32;
/// The largest step. Data that begins to repeat is found soon after all.
const MAX_STEP: usize = 64;

/// Appends the compressed form of `input` to `output` if it takes at most `budget` bytes. Otherwise
/// leaves `output` as it was and returns false: the input is better stored as it is.
pub fn compress(input: &[u8], output: &mut Vec<u8>, budget: usize) -> bool {
    // Clearing the table is most of the work for a short input, so its size follows the input's.
    match input.len() {
        0..=256 => compress_with(&mut [0; 1 << 8], input, output, budget),
        257..=1024 => compress_with(&mut [0; 1 << 10], input, output, budget),
        1025..=4096 => compress_with(&mut [0; 1 << 11], input, output, budget),
        _ => compress_with(&mut [0; 1 << 13], input, output, budget),
    }
}

/// `table` says where bytes of a hash were last: positions plus one (0: nowhere yet), in 32 bits.
/// Longer inputs exist only in theory.
fn compress_with<const BUCKETS: usize>(
    table: &mut [u32; BUCKETS],
    input: &[u8],
    output: &mut Vec<u8>,
    budget: usize,
) -> bool {
    if u32::try_from(input.len()).is_err() {
        return false;
    }
    let start = output.len();
    let (mut at, mut literals_from) = (0, 0);
    let mut misses = 0;
    while let Some(&[first, second, third]) = input.get(at..at + MIN_COPY) {
        let head = u32::from_le_bytes([first, second, third, 0]);
        let bucket = (head.wrapping_mul(0x9e37_79b1) >> (32 - BUCKETS.trailing_zeros())) as usize;
        let candidate = std::mem::replace(&mut table[bucket], at as u32 + 1) as usize;
        // `candidate` is the position plus one, so this is the distance less one, as the item
        // stores it.
        let back = at.wrapping_sub(candidate);
        if candidate == 0
            || back >= MAX_DISTANCE
            || input[candidate - 1..candidate - 1 + MIN_COPY] != [first, second, third]
        {
            at += (1 + misses / PATIENCE).min(MAX_STEP);
            misses += 1;
            continue;
        }
        // If steps were large, the bytes before may be equal too.
        let begin = at - common_suffix(&input[..candidate - 1], &input[literals_from..at]);
        let length = common_prefix(&input[begin - back - 1..], &input[begin..]);
        push_literals(output, &input[literals_from..begin]);
        push_copy(output, back, length);
        if output.len() - start > budget {
            break;
        }
        at = begin + length;
        literals_from = at;
        misses = 0;
    }
    let rest = &input[literals_from..];
    let fits = output.len() - start + rest.len() + rest.len().div_ceil(MAX_LITERAL) <= budget;
    if fits {
        push_literals(output, rest);
    } else {
        output.truncate(start);
    }
    fits
}

/// How many bytes at the beginning are equal, at most as many as one item copies.
fn common_prefix(earlier: &[u8], later: &[u8]) -> usize {
    let most = later.len().min(MAX_COPY);
    let (earlier, later) = (&earlier[..most], &later[..most]);
    let eights = earlier.as_chunks().0.iter().zip(later.as_chunks().0);
    let mut equal = 0;
    for (left, right) in eights {
        let difference = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
        if difference != 0 {
            return equal + difference.trailing_zeros() as usize / 8;
        }
        equal += 8;
    }
    let rest = earlier[equal..].iter().zip(&later[equal..]);
    equal + rest.take_while(|(left, right)| left == right).count()
}

/// How many bytes at the end are equal.
fn common_suffix(earlier: &[u8], later: &[u8]) -> usize {
    let pairs = earlier.iter().rev().zip(later.iter().rev());
    pairs.take_while(|(left, right)| left == right).count()
}

fn push_literals(output: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(MAX_LITERAL) {
        output.push(run.len() as u8 - 1);
        output.extend_from_slice(run);
    }
}

fn push_copy(output: &mut Vec<u8>, back: usize, length: usize) {
    let (high, low) = ((back >> 8) as u8, back as u8);
    let coded = length - 2;
    if coded < 7 {
        output.push((coded as u8) << 5 | high);
    } else {
        output.push(7 << 5 | high);
        output.push((coded - 7) as u8);
    }
    output.push(low);
}

/// Decompresses `input`, which must give exactly `length` bytes; `None` when it is damaged.
///
/// Nothing is allocated for a length that `input` cannot possibly give.
pub fn decompress(input: &[u8], length: usize) -> Option<Vec<u8>> {
    // The densest item gives MAX_COPY bytes for three.
    if length > input.len().saturating_mul(MAX_COPY) / 3 + MAX_COPY {
        return None;
    }
    let mut output = Vec::with_capacity(length);
    let mut input = input;
    while let [control, rest @ ..] = input {
        let (control, mut rest) = (usize::from(*control), rest);
        if control < MAX_LITERAL {
            let (literals, after) = rest.split_at_checked(control + 1)?;
            if literals.len() > length - output.len() {
                return None;
            }
            output.extend_from_slice(literals);
            input = after;
            continue;
        }
        let mut copy_length = (control >> 5) + 2;
        if copy_length == 9 {
            let (extra, after) = rest.split_first()?;
            copy_length += usize::from(*extra);
            rest = after;
        }
        let (low, after) = rest.split_first()?;
        let distance = ((control & 31) << 8 | usize::from(*low)) + 1;
        if copy_length > length - output.len() {
            return None;
        }
        copy_back(&mut output, distance, copy_length)?;
        input = after;
    }
    (output.len() == length).then_some(output)
}

/// Appends `length` bytes from `distance` bytes before the end. The two may overlap: then the bytes
/// between repeat, and each round can copy twice as many as the one before.
fn copy_back(output: &mut Vec<u8>, distance: usize, mut length: usize) -> Option<()> {
    let from = output.len().checked_sub(distance)?;
    while length > 0 {
        let piece = length.min(output.len() - from);
        output.extend_from_within(from..from + piece);
        length -= piece;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(input: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        assert!(compress(input, &mut output, usize::MAX));
        output
    }

    #[test]
    fn items_read_as_drawn() {
        assert_eq!(decompress(b"\x02abc", 3).as_deref(), Some(&b"abc"[..]));
        // One literal, then nine bytes (short form: 7 is reserved, so 6 + 2 = 8) from one back.
        assert_eq!(decompress(b"\x00a\xc0\x00", 9).as_deref(), Some(&b"aaaaaaaaa"[..]));
        // The long form: 9 + 1 bytes from two back.
        assert_eq!(decompress(b"\x01ab\xe0\x01\x01", 12).as_deref(), Some(&b"abababababab"[..]));
    }

    #[test]
    fn a_payload_that_a_reference_server_wrote() {
        // DUMP of a string of 100 times "x": the LZF part.
        let mut expected = b"x".repeat(100);
        let payload = b"\x01xx\xe0\x57\x00\x01xx";
        assert_eq!(decompress(payload, 100).as_ref(), Some(&expected));
        expected.pop();
        assert_eq!(decompress(payload, 99), None);
    }

    #[test]
    fn damage_is_refused() {
        assert_eq!(decompress(b"\x05abc", 6), None, "literals cut off");
        assert_eq!(decompress(b"\x00a\xe0", 20), None, "long length cut off");
        assert_eq!(decompress(b"\x00a\x40", 5), None, "distance cut off");
        assert_eq!(decompress(b"\x00a\x40\x01", 5), None, "before the beginning");
        assert_eq!(decompress(b"\x02abc", 2), None, "more than announced");
        assert_eq!(decompress(b"\x02abc", 4), None, "less than announced");
        assert_eq!(decompress(b"\x02abc", usize::MAX), None, "an impossible length");
        assert_eq!(decompress(b"", 0), Some(Vec::new()));
    }

    #[test]
    fn budget_is_kept_and_output_restored() {
        let mut output = b"before".to_vec();
        assert!(!compress(b"abcdefghijklmnopqrstuvwxyz", &mut output, 22));
        assert_eq!(output, b"before");
        assert!(compress(&b"ab".repeat(1000), &mut output, 100));
        assert_eq!(decompress(&output[6..], 2000), Some(b"ab".repeat(1000)));
    }

    #[test]
    fn repetitive_text_shrinks() {
        let text = b"the quick brown fox jumps over the lazy dog; ".repeat(200);
        assert!(packed(&text).len() < text.len() / 20);
        let far: Vec<u8> = [&text[..45], &[7; 8100][..], &text[..45]].concat();
        assert_eq!(decompress(&packed(&far), far.len()), Some(far));
    }

    /// Bytes that do not repeat.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn what_repeats_is_found_behind_what_does_not() {
        let text = b"the quick brown fox jumps over the lazy dog; ".repeat(200);
        let both = [noise(100_000), text.clone()].concat();
        let output = packed(&both);
        let noise_takes = 100_000 + 100_000usize.div_ceil(MAX_LITERAL);
        assert!(output.len() < noise_takes + text.len() / 10, "{}", output.len());
        assert_eq!(decompress(&output, both.len()), Some(both));
    }

    #[test]
    fn a_copy_begins_where_the_repetition_does() {
        // Large steps have passed its first bytes before they find it.
        let repeated = noise(600);
        let both = [&repeated[..], &noise(2000)[600..], &repeated[..]].concat();
        let output = packed(&both);
        assert!(output.len() < 2000 + 2000 / 32 + 3 * 4, "{}", output.len());
        assert_eq!(decompress(&output, both.len()), Some(both));
    }

    proptest! {
        #[test]
        fn noise_and_repetitions_come_back(
            pieces in proptest::collection::vec((0usize..5000, 0usize..4000), 0..8),
        ) {
            let noise = noise(10_000);
            let piece = |&(from, length): &(usize, usize)| &noise[from..from + length];
            let input: Vec<u8> = pieces.iter().flat_map(piece).copied().collect();
            prop_assert_eq!(decompress(&packed(&input), input.len()), Some(input));
        }

        #[test]
        fn whatever_is_compressed_comes_back(
            pieces in proptest::collection::vec(("[ab]{1,6}", 1usize..80), 0..40),
        ) {
            let input: Vec<u8> =
                pieces.iter().flat_map(|(text, times)| text.as_bytes().repeat(*times)).collect();
            prop_assert_eq!(decompress(&packed(&input), input.len()), Some(input));
        }

        #[test]
        fn random_bytes_come_back(input in proptest::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(decompress(&packed(&input), input.len()), Some(input));
        }

        #[test]
        fn garbage_gives_the_announced_length_or_nothing(
            input in proptest::collection::vec(any::<u8>(), 0..60),
            length in 0usize..4000,
        ) {
            prop_assert!(decompress(&input, length).is_none_or(|output| output.len() == length));
        }
    }
}
