//! JSON: commands that come as arrays of words, and texts in answers.

use std::ops::Range;

use base::limits;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Why a text is not the expected JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// These bytes of the text, as they are: a string without escapes, a number, `true` or `false`.
    Plain(Range<usize>),
    /// A string with escapes, between its quotes: see [`unescape`].
    Escaped(Range<usize>),
}

/// Reads one command: a flat array of strings, numbers and truth values, of which the first is a
/// string. Calls `visit` with each word.
///
/// # Errors
/// It is not a command, or something comes after it.
pub fn read_command(text: &[u8], visit: &mut dyn FnMut(Word)) -> Result<(), Malformed> {
    read_array(text, true, limits::HTTP_WORDS, visit)
}

/// Reads an array of words, each of any kind, `most` at most.
///
/// # Errors
/// As [`read_command`].
pub fn read_words(text: &[u8], most: usize, visit: &mut dyn FnMut(Word)) -> Result<(), Malformed> {
    read_array(text, false, most, visit)
}

fn read_array(
    text: &[u8],
    is_command: bool,
    most: usize,
    visit: &mut dyn FnMut(Word),
) -> Result<(), Malformed> {
    let mut reader = Reader { text, at: 0, left: most };
    reader.expect(b'[')?;
    reader.words(is_command, visit)?;
    reader.end()
}

/// Whether a text is a number in JSON, which knows neither hexadecimal digits nor a sign in front.
pub fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(text);
    if whole == 0 || (whole > 1 && text[0] == b'0') {
        return false;
    }
    let mut rest = &text[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    if let Some(exponent) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let exponent =
            exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let length = digits(exponent);
        return length > 0 && length == exponent.len();
    }
    rest.is_empty()
}

/// Reads an array of commands. Calls `visit` with each word, and with `None` after each command.
///
/// # Errors
/// It is not such an array, or something comes after it.
pub fn read_commands(text: &[u8], mut visit: impl FnMut(Option<Word>)) -> Result<(), Malformed> {
    let mut reader = Reader { text, at: 0, left: limits::HTTP_WORDS };
    reader.expect(b'[')?;
    let mut commands = 0;
    while reader.next_item(commands)? {
        if commands == limits::HTTP_COMMANDS {
            return Err(Malformed("there are too many commands"));
        }
        reader.expect(b'[')?;
        reader.words(true, &mut |word| visit(Some(word)))?;
        visit(None);
        commands += 1;
    }
    reader.end()
}

/// Refuses JSON with more names and values, at all depths, than [`limits::HTTP_WORDS`], to be asked
/// before it is read. Whether it is JSON, its reader says.
///
/// # Errors
/// It has more.
pub fn bound_values(text: &[u8]) -> Result<(), Malformed> {
    if has_more_values(text, limits::HTTP_WORDS) {
        return Err(Malformed("there are too many words"));
    }
    Ok(())
}

/// Whether JSON has more than `most` names and values, besides the one that it is as a whole. One
/// of these bytes precedes each.
fn has_more_values(text: &[u8], most: usize) -> bool {
    let (mut at, mut found) = (0, 0);
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' | b',' | b':' => {
                found += 1;
                if found > most {
                    return true;
                }
            }
            b'"' => at += length_of_string(&text[at..]),
            _ => {}
        }
    }
    false
}

/// The length of a string after its first quote, with its last.
fn length_of_string(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        at += found + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        // What is escaped ends nothing.
        at += 1;
    }
    text.len()
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    /// How many more words it may have.
    left: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.peek() != Some(byte) {
            return Err(Malformed("a command is an array of strings and numbers"));
        }
        self.at += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Malformed("something comes after the array")),
        }
    }

    /// Goes to the next item of an array after `read` items; false at its end.
    fn next_item(&mut self, read: usize) -> Result<bool, Malformed> {
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if read > 0 => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if read == 0 => Ok(true),
            _ => Err(Malformed("an array does not end")),
        }
    }

    fn words(&mut self, is_command: bool, visit: &mut dyn FnMut(Word)) -> Result<(), Malformed> {
        let mut read = 0;
        while self.next_item(read)? {
            let is_text = self.peek() == Some(b'"');
            let word = self.word()?;
            let is_empty = matches!(&word, Word::Plain(range) if range.is_empty());
            if is_command && read == 0 && (!is_text || is_empty) {
                return Err(Malformed("a command begins with its name"));
            }
            self.left = self.left.checked_sub(1).ok_or(Malformed("there are too many words"))?;
            visit(word);
            read += 1;
        }
        if read == 0 { Err(Malformed("a command needs a name")) } else { Ok(()) }
    }

    fn word(&mut self) -> Result<Word, Malformed> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                let from = self.at;
                let is_end = |byte: &u8| matches!(byte, b',' | b']' | b' ' | b'\t' | b'\r' | b'\n');
                let length = self.text[from..].iter().position(is_end);
                self.at = from + length.unwrap_or(self.text.len() - from);
                let word = &self.text[from..self.at];
                match is_number(word) || matches!(word, b"true" | b"false") {
                    true => Ok(Word::Plain(from..self.at)),
                    false => Err(Malformed("a word is neither a string nor a number")),
                }
            }
            _ => Err(Malformed("a command is an array of strings and numbers")),
        }
    }

    fn string(&mut self) -> Result<Word, Malformed> {
        let from = self.at + 1;
        let mut at = from;
        let mut escaped = false;
        loop {
            // Escapes often follow each other.
            while self.text.get(at) == Some(&b'\\') {
                escaped = true;
                at += 2;
            }
            let rest = self.text.get(at..).unwrap_or_default();
            let found =
                memchr::memchr2(b'"', b'\\', rest).ok_or(Malformed("a string does not end"))?;
            at += found;
            if self.text[at] == b'"' {
                break;
            }
        }
        self.at = at + 1;
        let range = from..at;
        if std::str::from_utf8(&self.text[range.clone()]).is_err() {
            return Err(Malformed("a string is not UTF-8"));
        }
        Ok(if escaped { Word::Escaped(range) } else { Word::Plain(range) })
    }
}

/// Appends the string for this escaped form, which is UTF-8.
///
/// # Errors
/// An escape has no meaning, or the form has what must be escaped.
pub fn unescape(text: &[u8], into: &mut Vec<u8>) -> Result<(), Malformed> {
    const WRONG: Malformed = Malformed("a string has a wrong escape");
    into.reserve(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Ok(()),
            [b'\\', b'u', behind @ ..] => {
                let (character, length) = read_code(behind).ok_or(WRONG)?;
                into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                &behind[length..]
            }
            [b'\\', letter, behind @ ..] => {
                into.push(escaped(*letter).ok_or(WRONG)?);
                behind
            }
            [b'\\'] => return Err(WRONG),
            plain => {
                let length = memchr::memchr(b'\\', plain).unwrap_or(plain.len());
                let (plain, behind) = plain.split_at(length);
                let is_bare = |byte: &u8| (*byte < 0x20) | (*byte == b'"');
                if plain.iter().fold(false, |found, byte| found | is_bare(byte)) {
                    return Err(WRONG);
                }
                into.extend_from_slice(plain);
                behind
            }
        };
    }
}

/// The byte that is meant by a letter after a backslash.
fn escaped(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

/// Reads the four digits of an escaped character, and those of the second half of one that has two.
/// Returns how many bytes that were.
fn read_code(text: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 4)?;
        digits.iter().try_fold(0, |number, digit| {
            let digit = char::from(*digit).to_digit(16)?;
            Some(number << 4 | digit)
        })
    };
    let first = unit(0)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 4));
    }
    let second = text.get(4..6).filter(|mark| *mark == b"\\u").and_then(|_| unit(6))?;
    if !((0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&second)) {
        return None;
    }
    let number = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    Some((char::from_u32(number)?, 10))
}

/// Appends a text as a JSON string; bytes that are not UTF-8 become U+FFFD.
pub fn write_text(output: &mut Vec<u8>, text: &[u8]) {
    match std::str::from_utf8(text) {
        Ok(text) => write_str(output, text),
        Err(_) => write_str(output, &String::from_utf8_lossy(text)),
    }
}

/// Appends a string, escaped as JSON requires.
pub fn write_str(output: &mut Vec<u8>, text: &str) {
    output.push(b'"');
    escape(output, text);
    output.push(b'"');
}

/// Appends a part of a string as JSON requires, without quotes.
pub fn escape(output: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        output.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
        match byte {
            b'"' => output.extend_from_slice(b"\\\""),
            b'\\' => output.extend_from_slice(b"\\\\"),
            b'\n' => output.extend_from_slice(b"\\n"),
            b'\r' => output.extend_from_slice(b"\\r"),
            b'\t' => output.extend_from_slice(b"\\t"),
            _ => {
                let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
                output.extend_from_slice(b"\\u00");
                output.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    output.extend_from_slice(&bytes[copied..]);
}

/// Appends bytes in base64, without quotes.
pub fn base64(output: &mut Vec<u8>, bytes: &[u8]) {
    output.extend_from_slice(STANDARD.encode(bytes).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn command(text: &str) -> Result<Vec<String>, Malformed> {
        let mut words = Vec::new();
        let mut result = Ok(());
        read_command(text.as_bytes(), &mut |word| match word {
            Word::Plain(range) => words.push(text[range].to_owned()),
            Word::Escaped(range) => {
                let mut bytes = Vec::new();
                result = unescape(&text.as_bytes()[range], &mut bytes);
                words.push(String::from_utf8(bytes).unwrap());
            }
        })?;
        result.map(|()| words)
    }

    #[test]
    fn commands_are_arrays_of_words() {
        let words = command(" [ \"SET\" , \"a\\u00e4\\n\\\"\",1.50,-3,true ] ").unwrap();
        assert_eq!(words, ["SET", "a\u{e4}\n\"", "1.50", "-3", "true"]);
        for broken in [
            "",
            "[",
            "[]",
            "[\"a\"",
            "[\"a\",]",
            "[,\"a\"]",
            "[\"a\" \"b\"]",
            "[\"a\"] x",
            "{}",
            "[null]",
            "[[\"a\"]]",
            "[\"a]",
            "[\"a\\\"]",
            "[01]",
            "[tru]",
            "[\"\\x\"]",
            "\"a\"",
            "[1 2]",
            "[1,2]",
            "[false]",
            "[\"\",1]",
            "[\"a\\ud800\"]",
        ] {
            assert!(command(broken).is_err(), "{broken}");
        }
        assert!(read_command(b"[\"\xff\"]", &mut |_| ()).is_err());
        assert!(read_words(b"[1,\"\",true]", 3, &mut |_| ()).is_ok(), "keys may be anything");
        assert!(read_words(b"[1,\"\",true]", 2, &mut |_| ()).is_err(), "there are too many");
    }

    proptest! {
        /// What another reader of JSON makes of it.
        #[test]
        fn escapes_mean_what_they_mean_elsewhere(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "\\", "u", "0", "d83d", "\\ud83d", "\\ude00", "\\u00e9", "\\n", "\\\"", "\\/",
                    "\"", "\n", "\u{e9}", "x", "00", "\\u0000", "\\b", "\\f", "\\r", "\\t", "\\x",
                ]),
                0..12,
            ),
        ) {
            let text = parts.concat();
            let expected: Option<String> = serde_json::from_str(&format!("\"{text}\"")).ok();
            let mut own = Vec::new();
            let read = unescape(text.as_bytes(), &mut own);
            let own = read.ok().map(|()| String::from_utf8(own).unwrap());
            prop_assert_eq!(own, expected, "{}", text);
        }
    }

    #[test]
    fn names_and_values_are_counted_before_they_are_read() {
        for (text, values) in [
            ("[1,2,3]", 3),
            (r#"{"a":1,"b":2}"#, 4),
            (r#"{"a":[1,{"b":null}],"c":"d"}"#, 8),
            (r#"["[,]","\"[,]","\\"]"#, 3),
            ("[[[1]],[[1]]]", 6),
            ("1", 0),
            ("[\"a", 1),
            ("[\"a\\", 1),
        ] {
            assert!(!has_more_values(text.as_bytes(), values), "{text}");
            assert!(values == 0 || has_more_values(text.as_bytes(), values - 1), "{text}");
        }
    }

    #[test]
    fn numbers_are_those_of_json() {
        for number in ["0", "-0", "12", "1.5", "-0.25e-7", "1E+20"] {
            assert!(is_number(number.as_bytes()), "{number}");
        }
        for other in ["", "-", "+5", "01", "1.", ".5", "0x10", "1e", "1e+", "1 ", "inf", "nan"] {
            assert!(!is_number(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn many_commands_are_an_array_of_arrays() {
        let mut seen = String::new();
        let text = b"[[\"a\",1],[\"b\"]]";
        read_commands(text, |word| match word {
            Some(Word::Plain(range)) => seen.push_str(std::str::from_utf8(&text[range]).unwrap()),
            Some(Word::Escaped(_)) => unreachable!("nothing is escaped"),
            None => seen.push(';'),
        })
        .unwrap();
        assert_eq!(seen, "a1;b;");
        assert_eq!(read_commands(b"[]", |_| ()), Ok(()));
        for broken in ["[[]]", "[\"a\"]", "[[\"a\"],]", "[[\"a\"]", "[[\"a\"]]]"] {
            assert!(read_commands(broken.as_bytes(), |_| ()).is_err(), "{broken}");
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in any::<String>()) {
            let mut written = Vec::new();
            write_str(&mut written, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&written).unwrap(), text.clone());
            let body = [b"[\"x\",", &*written, b"]"].concat();
            prop_assert_eq!(command(std::str::from_utf8(&body).unwrap()).unwrap(), ["x".into(), text]);
        }

        #[test]
        fn no_text_breaks_the_reader(text in any::<Vec<u8>>()) {
            let _ = read_command(&text, &mut |_| ());
            let _ = read_commands(&text, |_| ());
            let _ = bound_values(&text);
        }
    }
}
