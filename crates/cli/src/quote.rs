//! Strings as the command line shows them, and as it reads them back.

use std::io::Write;

/// Appends a string in double quotes, with what is no printable ASCII escaped.
pub(crate) fn repr(text: &[u8], output: &mut Vec<u8>) {
    output.push(b'"');
    for byte in text {
        match byte {
            b'\\' | b'"' => output.extend_from_slice(&[b'\\', *byte]),
            b'\n' => output.extend_from_slice(b"\\n"),
            b'\r' => output.extend_from_slice(b"\\r"),
            b'\t' => output.extend_from_slice(b"\\t"),
            7 => output.extend_from_slice(b"\\a"),
            8 => output.extend_from_slice(b"\\b"),
            b' '..=b'~' => output.push(*byte),
            // Writing to memory does not fail.
            other => drop(write!(output, "\\x{other:02x}")),
        }
    }
    output.push(b'"');
}

/// A string in double quotes, as [`repr`] writes it.
pub(crate) fn quoted(text: &[u8]) -> String {
    let mut output = Vec::new();
    repr(text, &mut output);
    String::from_utf8_lossy(&output).into_owned()
}

/// Reads one string that may stand in quotes; `None` if its quotes do not end where it ends.
/// Without quotes at both ends it is the string itself.
pub(crate) fn unquoted(text: &[u8]) -> Option<Vec<u8>> {
    match text {
        [quote @ (b'"' | b'\''), .., end] if quote == end => {
            let mut words = resp::words::split(text).ok()?;
            (words.len() == 1).then(|| words.remove(0))
        }
        [b'"' | b'\'', ..] => None,
        _ => Some(text.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_back() {
        let all: Vec<u8> = (0..=255).collect();
        let shown = quoted(&all);
        assert!(shown.contains("\\x00\\x01") && shown.contains("\\a\\b\\t\\n\\x0b"), "{shown}");
        assert!(shown.ends_with("~\\x7f\\x80") || shown.ends_with("\\xff\""), "{shown}");
        assert_eq!(unquoted(shown.as_bytes()), Some(all));
        assert_eq!(unquoted(b"plain\\x00"), Some(b"plain\\x00".to_vec()));
        assert_eq!(unquoted(br#"'it\'s'"#), Some(b"it's".to_vec()));
        for wrong in [&b"\"open"[..], b"\"a\"b\"", b"\"", b"'a' 'b'"] {
            assert_eq!(unquoted(wrong), None, "{}", wrong.escape_ascii());
        }
    }
}
