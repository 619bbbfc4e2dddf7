//! Entity tags: the version of a value, as a client remembers it.
//!
//! A tag is the version in hexadecimal digits between quotes. If a value has several forms, the
//! form follows the digits, so answers with different bytes have different tags. A condition of a
//! change compares only versions. Any other text is not the tag of a version, and matches nothing.

/// The meaning of a list of tags in `If-Match` or `If-None-Match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    /// `*`: any version.
    Any,
    /// These.
    Listed(Vec<Tag>),
}

/// A form in which a value is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// The usual one: the bytes of a string, and JSON of a collection.
    #[default]
    Plain,
    /// Lines of text.
    Text,
    /// MessagePack.
    MsgPack,
}

/// A version of a value in one of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    version: u64,
    variant: Variant,
    gzip: bool,
}

impl Tag {
    /// A version in a form that is not compressed.
    pub fn new(version: u64, variant: Variant) -> Tag {
        Tag { version, variant, gzip: false }
    }

    /// The same, compressed.
    #[must_use]
    pub fn compressed(self) -> Tag {
        Tag { gzip: true, ..self }
    }

    /// The version.
    pub fn version(self) -> u64 {
        self.version
    }

    /// Whether it is of this version in this form, compressed or not.
    #[inline]
    pub fn is_of(self, version: u64, variant: Variant) -> bool {
        (self.version, self.variant) == (version, variant)
    }

    /// What stands behind the digits of its version.
    pub fn suffix(self) -> &'static str {
        let forms = match self.variant {
            Variant::Plain => ["", "-gzip"],
            Variant::Text => ["-text", "-text-gzip"],
            Variant::MsgPack => ["-msgpack", "-msgpack-gzip"],
        };
        forms[usize::from(self.gzip)]
    }

    fn read(text: &[u8]) -> Option<Tag> {
        let length = text.iter().position(|byte| *byte == b'-').unwrap_or(text.len());
        let (digits, suffix) = text.split_at(length);
        let version = version(digits)?;
        let variants = [Variant::Plain, Variant::Text, Variant::MsgPack];
        let plain = variants.map(|variant| Tag::new(version, variant));
        let all = plain.into_iter().chain(plain.map(Tag::compressed));
        all.into_iter().find(|tag| tag.suffix().as_bytes() == suffix)
    }
}

/// One item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Any,
    Own(Tag),
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

/// The digits of a number, all eight at once: each half-byte goes to a byte of its own, and then
/// each byte becomes a character.
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

/// Reads lists of tags (RFC 9110, section 8.8.3: there may be commas within the quotes of a tag).
/// When `strong` tags are asked for, a weak tag is that of no version.
pub fn parse<'v>(lists: impl Iterator<Item = &'v [u8]>, strong: bool) -> Tags {
    let mut tags = Vec::new();
    for list in lists {
        let mut is_quoted = false;
        let items = list.split(|byte| {
            is_quoted ^= *byte == b'"';
            *byte == b',' && !is_quoted
        });
        for item in items {
            match item_of(item.trim_ascii(), strong) {
                Item::Any => return Tags::Any,
                Item::Own(tag) => tags.push(tag),
                Item::Foreign => {}
            }
        }
    }
    Tags::Listed(tags)
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
    let text = quoted.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    match text.and_then(Tag::read) {
        Some(tag) => Item::Own(tag),
        None => Item::Foreign,
    }
}

impl Tags {
    /// Whether the version is one of these, in any form.
    pub fn has(&self, version: u64) -> bool {
        match self {
            Tags::Any => true,
            Tags::Listed(tags) => tags.iter().any(|tag| tag.version == version),
        }
    }

    /// The one that is of this version in this form, compressed or not.
    pub fn of(&self, version: u64, variant: Variant) -> Option<Tag> {
        match self {
            Tags::Any => Some(Tag::new(version, variant)),
            Tags::Listed(tags) => tags.iter().copied().find(|tag| tag.is_of(version, variant)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(versions: &[u64]) -> Tags {
        let tags = versions.iter().map(|version| Tag::new(*version, Variant::Plain));
        Tags::Listed(tags.collect())
    }

    #[test]
    fn forms_of_a_version_have_tags_of_their_own() {
        let variants = [Variant::Plain, Variant::Text, Variant::MsgPack];
        let tags = variants.map(|variant| Tag::new(0x1f, variant));
        let all: Vec<_> = tags.into_iter().chain(tags.map(Tag::compressed)).collect();
        for (place, tag) in all.iter().enumerate() {
            let text = format!("\"1f{}\"", tag.suffix());
            let read = parse([text.as_bytes()].into_iter(), true);
            assert_eq!(read, Tags::Listed(vec![*tag]));
            assert!(all[..place].iter().all(|other| other.suffix() != tag.suffix()));
            assert!(read.has(0x1f) && !read.has(0x1e), "a change depends on the version");
            for variant in variants {
                assert_eq!(read.of(0x1f, variant).is_some(), tag.variant == variant);
            }
        }
        for other in ["\"1f-\"", "\"1f-gzip-text\"", "\"-gzip\"", "\"1f-br\""] {
            assert_eq!(parse([other.as_bytes()].into_iter(), false), plain(&[]), "{other}");
        }
    }

    #[test]
    fn a_tag_is_read_as_it_was_written() {
        let shifted = (0..63).flat_map(|bits| [1 << bits, 0x0123_4567_89ab_cdef >> bits]);
        for version in shifted.chain([0x1a2b, u64::MAX >> 1]).filter(|version| *version > 0) {
            let mut buffer = [0; 16];
            let text = digits(version, &mut buffer);
            assert_eq!(text, format!("{version:x}").as_bytes());
            let tag = [b"\"", text, b"\""].concat();
            assert_eq!(parse([&tag[..]].into_iter(), true), plain(&[version]));
        }
    }

    #[test]
    fn lists_may_have_tags_of_others() {
        let list = br#""1f", W/"2", "other" ,"A", "01", x, """#;
        assert_eq!(parse([&list[..]].into_iter(), true), plain(&[0x1f]));
        assert_eq!(parse([&list[..]].into_iter(), false), plain(&[0x1f, 2]));
        let large = [&b"\"8000000000000000\""[..], b"\"ffffffffffffffff\""];
        assert_eq!(parse(large.into_iter(), true), plain(&[]), "no version is so large");
        let lists = [&b"\"1\""[..], b"\"2\""];
        assert!(parse(lists.into_iter(), true).has(2));
        assert_eq!(parse([&b" * "[..]].into_iter(), true), Tags::Any);
        assert!(!parse([&b""[..]].into_iter(), true).has(0));
        let with_commas = br#""a,*,b", "1f,2", "3""#;
        assert_eq!(parse([&with_commas[..]].into_iter(), true), plain(&[3]));
    }
}
