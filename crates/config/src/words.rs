//! The smallest parts of a configuration text: words with their quoting, numbers, sizes.

/// Splits a line into words as the configuration file and inline requests do.
///
/// Words are separated by white space. Inside double quotes the escapes `\n \r \t \b \a \xHH` and
/// `\` before any other byte are understood, inside single quotes only `\'`. A closing quote must
/// be followed by white space or the end. `None` means that the quotes are unbalanced.
pub fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let (word, after) = take_word(rest)?;
        words.push(word);
        rest = after.trim_ascii_start();
    }
    Some(words)
}

/// Reads one word from the start of `text`; returns it and the rest.
fn take_word(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' | b'\'' => {
                at += 1 + take_quoted(&text[at + 1..], byte, &mut word)?;
                let closed_well = text.get(at).is_none_or(u8::is_ascii_whitespace);
                return closed_well.then(|| (word, &text[at..]));
            }
            _ if byte.is_ascii_whitespace() => break,
            _ => word.push(byte),
        }
        at += 1;
    }
    Some((word, &text[at..]))
}

/// Reads the inside of a quotation; returns how many bytes it took, closing quote included.
fn take_quoted(text: &[u8], quote: u8, word: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        let byte = *text.get(at)?;
        if byte == quote {
            return Some(at + 1);
        }
        at += 1;
        let next = text.get(at).copied();
        match (byte, next) {
            (b'\\', Some(b'\'')) if quote == b'\'' => {
                word.push(b'\'');
                at += 1;
            }
            (b'\\', Some(escape)) if quote == b'"' => {
                if let Some(value) = hex_pair(escape, text.get(at + 1..at + 3)) {
                    word.push(value);
                    at += 3;
                } else {
                    word.push(unescape(escape));
                    at += 1;
                }
            }
            _ => word.push(byte),
        }
    }
}

/// The byte of an `\xHH` escape, when `escape` is `x` and two hexadecimal digits follow.
fn hex_pair(escape: u8, digits: Option<&[u8]>) -> Option<u8> {
    if escape != b'x' {
        return None;
    }
    let &[high, low] = digits? else { return None };
    let value = char::from(high).to_digit(16)? * 16 + char::from(low).to_digit(16)?;
    u8::try_from(value).ok()
}

fn unescape(escape: u8) -> u8 {
    match escape {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// Writes `text` in double quotes so that [`split_words`] reads it back as one word.
pub fn quote(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    for &byte in text {
        match byte {
            b'\\' | b'"' => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0x07 => out.extend(b"\\a"),
            0x08 => out.extend(b"\\b"),
            0x20..=0x7e => out.push(byte),
            _ => out.extend(format!("\\x{byte:02x}").into_bytes()),
        }
    }
    out.push(b'"');
    out
}

/// Reads a whole number that may have a `+` or leading zeros.
pub(super) fn loose_integer<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Writes a size with the largest binary unit that divides it, as a rewritten file has it.
pub(super) fn memory_text(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")] {
        if bytes != 0 && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let text = |word| String::from_utf8(word).unwrap();
        Some(split_words(line.as_bytes())?.into_iter().map(text).collect())
    }

    #[test]
    fn splits_as_the_reference_does() {
        assert_eq!(words("  a  b\tc\r"), Some(vec!["a".into(), "b".into(), "c".into()]));
        assert_eq!(words(r#"a "b c" 'd e' """#).unwrap(), ["a", "b c", "d e", ""]);
        assert_eq!(words(r#""\x41\n\q\"" 'it\'s' '\n'"#).unwrap(), ["A\nq\"", "it's", "\\n"]);
        assert_eq!(words(r#"a"b c""#).unwrap(), ["ab c"]);
        assert_eq!(words(r#""\xZZ""#).unwrap(), ["xZZ"]);
        for unbalanced in [r#"port "77"#, r#"port "77"x"#, "'a", r#""a\"#, r#""\""#] {
            assert_eq!(words(unbalanced), None, "{unbalanced}");
        }
        assert_eq!(words(" \t "), Some(vec![]));
    }

    #[test]
    fn writes_sizes_with_the_largest_unit_that_fits() {
        assert_eq!(memory_text(3 << 30), "3gb");
        assert_eq!(memory_text(5 << 10), "5kb");
        assert_eq!(memory_text(1000), "1000");
        assert_eq!(memory_text(0), "0");
    }

    proptest! {
        #[test]
        fn a_quoted_word_reads_back(word: Vec<u8>) {
            prop_assert_eq!(split_words(&quote(&word)), Some(vec![word]));
        }

        #[test]
        fn any_line_splits_or_is_refused(line: Vec<u8>) {
            if let Some(words) = split_words(&line) {
                prop_assert!(words.iter().map(Vec::len).sum::<usize>() <= line.len());
            }
        }

        #[test]
        fn a_written_size_reads_back(bytes: u64) {
            prop_assert_eq!(base::size::parse_size(memory_text(bytes).as_bytes()), Some(bytes));
        }
    }
}
