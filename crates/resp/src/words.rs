//! Lines of words, as inline commands, the command line tool and configuration files write them.
//!
//! Words are separated by white space. Inside `"..."` the escapes `\n \r \t \b \a \xHH` and `\`
//! before any other byte are understood; inside `'...'` only `\'`. A quoted part must be followed
//! by white space or the end of the line.

/// A quote was not closed, or something followed a closed one directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnbalancedQuotes;

/// One word of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It is in the line as it is, from offset to offset.
    Plain(usize, usize),
    /// It was unquoted into the side buffer, from offset to offset.
    Unquoted(usize, usize),
}

/// Splits a line into words.
///
/// # Errors
/// [`UnbalancedQuotes`], without saying where.
pub fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, UnbalancedQuotes> {
    let (mut words, mut side, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(word) = next_word(line, &mut at, &mut side)? {
        words.push(match word {
            Word::Plain(start, end) => line[start..end].to_vec(),
            Word::Unquoted(start, end) => side[start..end].to_vec(),
        });
    }
    Ok(words)
}

/// White space before a word, and after a quoted part.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Whether a byte ends an unquoted word. As in Redis, vertical tab and form feed do not.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Finds the next word from `at` on and moves `at` past it; `None` at the end of the line. A word
/// with quotes is appended to `side` without them.
pub(crate) fn next_word(
    line: &[u8],
    at: &mut usize,
    side: &mut Vec<u8>,
) -> Result<Option<Word>, UnbalancedQuotes> {
    *at += line[*at..].iter().take_while(|&&byte| is_space(byte)).count();
    let start = *at;
    if start == line.len() {
        return Ok(None);
    }
    let plain = |byte: &&u8| !ends_word(**byte) && !matches!(**byte, b'"' | b'\'');
    *at += line[start..].iter().take_while(plain).count();
    if !matches!(line.get(*at), Some(b'"' | b'\'')) {
        return Ok(Some(Word::Plain(start, *at)));
    }
    let side_start = side.len();
    side.extend_from_slice(&line[start..*at]);
    loop {
        match line.get(*at) {
            None => break,
            Some(&byte) if ends_word(byte) => break,
            Some(&quote @ (b'"' | b'\'')) => {
                *at = unquote(line, *at + 1, quote, side)?;
                break;
            }
            Some(&byte) => {
                side.push(byte);
                *at += 1;
            }
        }
    }
    Ok(Some(Word::Unquoted(side_start, side.len())))
}

/// Appends the quoted part that begins at `at`; returns the offset after the closing quote.
fn unquote(
    line: &[u8],
    mut at: usize,
    quote: u8,
    side: &mut Vec<u8>,
) -> Result<usize, UnbalancedQuotes> {
    loop {
        let rest = line.get(at..).unwrap_or(&[]);
        let (byte, length) = match (quote, rest) {
            (_, []) => return Err(UnbalancedQuotes),
            (b'"', [b'\\', b'x', high, low, ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex_value(*high) << 4 | hex_value(*low), 4)
            }
            (b'"', [b'\\', escaped, ..]) => (unescape(*escaped), 2),
            (b'\'', [b'\\', b'\'', ..]) => (b'\'', 2),
            (_, [byte, after @ ..]) if *byte == quote => {
                let closed = after.first().is_none_or(|&next| is_space(next));
                return if closed { Ok(at + 1) } else { Err(UnbalancedQuotes) };
            }
            (_, [byte, ..]) => (*byte, 1),
        };
        side.push(byte);
        at += length;
    }
}

fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
        split(line).ok()
    }

    #[test]
    fn words_as_the_reference_splits_them() {
        let cases: &[(&[u8], &[&[u8]])] = &[
            (b"", &[]),
            (b" \t\r\n", &[]),
            (b"PING", &[b"PING"]),
            (b"  GET\tkey \r", &[b"GET", b"key"]),
            (b"PING a\rb", &[b"PING", b"a", b"b"]),
            (b"PING\x0bc", &[b"PING\x0bc"]),
            (b"PING \"a b\"", &[b"PING", b"a b"]),
            (b"PING \"\"", &[b"PING", b""]),
            (b"\"\" x", &[b"", b"x"]),
            (b"PING a\"b\"", &[b"PING", b"ab"]),
            (b"PING a'b c'", &[b"PING", b"ab c"]),
            (b"PING \"a\"\tb", &[b"PING", b"a", b"b"]),
            (b"PING \\x41", &[b"PING", b"\\x41"]),
            (b"PING \"'\" '\"'", &[b"PING", b"'", b"\""]),
            (b"PING 'a\\'b\\n'", &[b"PING", b"a'b\\n"]),
            (b"PING \"a\\x4\"", &[b"PING", b"ax4"]),
            (
                b"PING \"\\x41\\xfF\\n\\r\\t\\b\\a\\q\\\"\\x4\"",
                &[b"PING", b"A\xff\n\r\t\x08\x07q\"x4"],
            ),
        ];
        for (line, expected) in cases {
            let expected: Vec<Vec<u8>> = expected.iter().map(|word| word.to_vec()).collect();
            assert_eq!(words(line), Some(expected), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        let cases: &[&[u8]] = &[
            b"PING \"a",
            b"PING 'a",
            b"PING \"",
            b"PING \"a\"b",
            b"PING 'a'b",
            b"PING \"a\\",
            b"PING \"a\\\"",
            b"PING 'a\\'",
            b"a\"\"\"",
        ];
        for line in cases {
            assert_eq!(words(line), None, "{}", line.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn quoted_bytes_come_back(arguments in proptest::collection::vec(any::<Vec<u8>>(), 0..5)) {
            let mut line = Vec::new();
            for argument in &arguments {
                line.extend_from_slice(b" \"");
                argument.iter().for_each(|byte| line.extend(format!("\\x{byte:02x}").bytes()));
                line.push(b'"');
            }
            prop_assert_eq!(words(&line), Some(arguments));
        }

        #[test]
        fn garbage_never_panics(line in "[\"'\\\\x a0\\n]{0,20}") {
            let _ = words(line.as_bytes());
        }
    }
}
