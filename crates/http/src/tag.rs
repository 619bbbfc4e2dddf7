//! Entity tags: the version of a value, as a client remembers it.
//!
//! A tag is the version in hexadecimal digits between quotes. Any other text is the tag of no version,
//! and matches nothing.

/// The meaning of a list of tags in `If-Match` or `If-None-Match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    /// `*`: any version.
    Any,
    /// These versions.
    Versions(Vec<u64>),
}

/// One item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Any,
    Version(u64),
    Foreign,
}

/// The tag of a version, without quotes: the digits and how many there are.
#[inline]
pub fn digits(version: u64, into: &mut [u8; 16]) -> &[u8] {
    into[..8].copy_from_slice(&eight_digits((version >> 32) as u32));
    into[8..].copy_from_slice(&eight_digits(version as u32));
    let zeros = version.leading_zeros() as usize / 4;
    &into[zeros.min(15)..]
}

/// The digits of a number, all eight at once: each half-byte goes to a byte of its own, and then each
/// byte becomes a character.
#[inline]
fn eight_digits(number: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut spread = u64::from(number);
    spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
    spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    spread = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // 10 and 6 carry into the next half-byte.
    let letters = ((spread + 6 * ONES) >> 4) & ONES;
    let distance = u64::from(b'a' - b'9' - 1);
    (spread + u64::from(b'0') * ONES + letters * distance).to_be_bytes()
}

/// The version with these digits.
pub fn version(digits: &[u8]) -> Option<u64> {
    let plain = std::str::from_utf8(digits).ok().filter(|text| {
        (1..=16).contains(&text.len())
            && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && !text.starts_with('0')
    });
    // Commands get versions as signed numbers, and no version comes near their end.
    i64::from_str_radix(plain?, 16).ok().map(i64::cast_unsigned)
}

/// Reads lists of tags (RFC 9110, section 8.8.3: there may be commas within the quotes of a tag). When
/// `strong` tags are asked for, a weak tag is that of no version.
pub fn parse<'v>(lists: impl Iterator<Item = &'v [u8]>, strong: bool) -> Tags {
    let mut versions = Vec::new();
    for list in lists {
        let mut is_quoted = false;
        let items = list.split(|byte| {
            is_quoted ^= *byte == b'"';
            *byte == b',' && !is_quoted
        });
        for item in items {
            match item_of(item.trim_ascii(), strong) {
                Item::Any => return Tags::Any,
                Item::Version(version) => versions.push(version),
                Item::Foreign => {}
            }
        }
    }
    Tags::Versions(versions)
}

fn item_of(item: &[u8], strong: bool) -> Item {
    if item == b"*" {
        return Item::Any;
    }
    let quoted = match item.strip_prefix(b"W/") {
        Some(_) if strong => return Item::Foreign,
        Some(weak) => weak,
        None => item,
    };
    let digits = quoted.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    match digits.and_then(version) {
        Some(version) => Item::Version(version),
        None => Item::Foreign,
    }
}

impl Tags {
    /// Whether the version is one of these.
    pub fn has(&self, version: u64) -> bool {
        match self {
            Tags::Any => true,
            Tags::Versions(versions) => versions.contains(&version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_as_it_was_written() {
        let shifted = (0..63).flat_map(|bits| [1 << bits, 0x0123_4567_89ab_cdef >> bits]);
        for version in shifted.chain([0x1a2b, u64::MAX >> 1]).filter(|version| *version > 0) {
            let mut buffer = [0; 16];
            let text = digits(version, &mut buffer);
            assert_eq!(text, format!("{version:x}").as_bytes());
            let tag = [b"\"", text, b"\""].concat();
            assert_eq!(parse([&tag[..]].into_iter(), true), Tags::Versions(vec![version]));
        }
    }

    #[test]
    fn lists_may_have_tags_of_others() {
        let list = br#""1f", W/"2", "other" ,"A", "01", x, """#;
        assert_eq!(parse([&list[..]].into_iter(), true), Tags::Versions(vec![0x1f]));
        assert_eq!(parse([&list[..]].into_iter(), false), Tags::Versions(vec![0x1f, 2]));
        let large = [&b"\"8000000000000000\""[..], b"\"ffffffffffffffff\""];
        assert_eq!(
            parse(large.into_iter(), true),
            Tags::Versions(vec![]),
            "no version is so large"
        );
        let lists = [&b"\"1\""[..], b"\"2\""];
        assert!(parse(lists.into_iter(), true).has(2));
        assert_eq!(parse([&b" * "[..]].into_iter(), true), Tags::Any);
        assert!(!parse([&b""[..]].into_iter(), true).has(0));
        let with_commas = br#""a,*,b", "1f,2", "3""#;
        assert_eq!(parse([&with_commas[..]].into_iter(), true), Tags::Versions(vec![3]));
    }
}
