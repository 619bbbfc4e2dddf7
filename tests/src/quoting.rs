//! Words and quotes as in redis-cli, and the two macros that keep transcripts short.

use anyhow::{Result, bail};

/// Splits a command line into arguments.
///
/// Words are separated by blanks. Double quotes understand `\n \r \t \a \b \xHH` and take any
/// other escaped byte as itself; single quotes understand only `\'`.
///
/// # Errors
/// An open quote, or a closing quote that is followed by anything but a blank.
pub fn split(line: &str) -> Result<Vec<Vec<u8>>> {
    let bytes = line.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if at == bytes.len() {
            return Ok(words);
        }
        let (word, next) = word(bytes, at)?;
        words.push(word);
        at = next;
    }
}

/// Reads the word that starts at `at`; returns it and the position after it.
fn word(bytes: &[u8], mut at: usize) -> Result<(Vec<u8>, usize)> {
    let mut word = Vec::new();
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' => {
                at = quoted(bytes, at, &mut word)?;
                if bytes.get(at).is_some_and(|next| !next.is_ascii_whitespace()) {
                    bail!("a closing quote must be followed by a blank");
                }
                return Ok((word, at));
            }
            _ if byte.is_ascii_whitespace() => break,
            _ => word.push(byte),
        }
        at += 1;
    }
    Ok((word, at))
}

/// Appends the content of the quoted text that opens at `at`; returns the position after it.
fn quoted(bytes: &[u8], mut at: usize, word: &mut Vec<u8>) -> Result<usize> {
    let quote = bytes[at];
    at += 1;
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (None, _) => bail!("a quote stays open"),
            (Some(&byte), _) if byte == quote => return Ok(at + 1),
            (Some(b'\\'), Some(b'\'')) if quote == b'\'' => {
                word.push(b'\'');
                at += 2;
            }
            (Some(b'\\'), Some(b'x')) if quote == b'"' && hex(bytes, at + 2).is_some() => {
                word.extend(hex(bytes, at + 2));
                at += 4;
            }
            (Some(b'\\'), Some(&escaped)) if quote == b'"' => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    other => other,
                });
                at += 2;
            }
            (Some(&byte), _) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

/// The byte written as two hexadecimal digits at `at`.
fn hex(bytes: &[u8], at: usize) -> Option<u8> {
    let digits = std::str::from_utf8(bytes.get(at..at + 2)?).ok()?;
    u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

/// Writes bytes in double quotes, with everything unprintable escaped.
#[must_use]
pub fn quote(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => text.extend(['\\', char::from(byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            7 => text.push_str("\\a"),
            8 => text.push_str("\\b"),
            0x20..=0x7e => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

/// Writes a whole command so that [`split`] reads it back.
#[must_use]
pub fn command_line(words: &[Vec<u8>]) -> String {
    let plain = |word: &[u8]| {
        !word.is_empty()
            && word.iter().all(|byte| byte.is_ascii_graphic() && !b"\"'$".contains(byte))
    };
    let shown = words.iter().map(|word| match std::str::from_utf8(word) {
        Ok(text) if plain(word) => text.to_owned(),
        _ => quote(word),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Expands the macros of a command line, as text, before it is split into words.
///
/// `$times(3,ab)` becomes `ababab`; `$each(1..3,% m%)` becomes `1 m1 2 m2 3 m3`.
///
/// # Errors
/// A macro that is not closed, or whose numbers are not numbers.
pub fn expand(line: &str) -> Result<String> {
    const LONGEST: u64 = 1 << 22;
    let mut expanded = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("$times(").into_iter().chain(rest.find("$each(")).min() {
        expanded.push_str(&rest[..start]);
        let call = &rest[start..];
        let Some((inside, behind)) =
            call.split_once('(').and_then(|(_, tail)| tail.split_once(')'))
        else {
            bail!("a macro stays open in: {line}");
        };
        let Some((numbers, body)) = inside.split_once(',') else {
            bail!("a macro needs a number and a text in: {line}");
        };
        if call.starts_with("$times(") {
            let times: u64 = numbers.parse()?;
            if times * body.len() as u64 > LONGEST {
                bail!("a macro grows too long in: {line}");
            }
            expanded.push_str(&body.repeat(usize::try_from(times)?));
        } else {
            let Some((first, last)) = numbers.split_once("..") else {
                bail!("$each needs first..last in: {line}");
            };
            let each = first.parse::<u64>()?..=last.parse::<u64>()?;
            let texts: Vec<_> = each.map(|number| body.replace('%', &number.to_string())).collect();
            expanded.push_str(&texts.join(" "));
        }
        rest = behind;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_come_back() {
        for bytes in [&b""[..], b"a b", b"\x00\xff\"\\\r\n\t\x07\x08", b"it's"] {
            assert_eq!(split(&quote(bytes)).unwrap(), [bytes.to_vec()]);
        }
        assert_eq!(split(r#"a 'b\'c d' "\x41\q" "#).unwrap(), [&b"a"[..], b"b'c d", b"Aq"]);
        assert!(split("\"open").is_err());
        assert!(split("\"a\"b").is_err());
    }

    #[test]
    fn macros_expand_as_text() {
        assert_eq!(expand("SET k $times(3,ab)x").unwrap(), "SET k abababx");
        assert_eq!(expand("ZADD z $each(1..3,% m%)").unwrap(), "ZADD z 1 m1 2 m2 3 m3");
        assert!(expand("$times(3").is_err());
    }
}
