//! Replies of commands, translated for clients that speak HTTP.
//!
//! Commands reply in RESP. After a command has ended and its locks are released, its reply is read once
//! and written as JSON, MessagePack or lines of text.

use base::num::{parse_f64, parse_i64};

use crate::json;

/// A piece of a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Piece<'r> {
    /// The beginning of a list of this many replies.
    Array(usize),
    /// The beginning of this many pairs of replies.
    Map(usize),
    /// A string of bytes.
    Bytes(&'r [u8]),
    /// A status, such as OK.
    Status(&'r [u8]),
    /// An error, beginning with its code.
    Error(&'r [u8]),
    /// A whole number.
    Integer(i64),
    /// A number as it is printed.
    Double(&'r [u8]),
    /// A truth value.
    Boolean(bool),
    /// No value.
    Null,
}

/// Bytes of a line that are examined one by one.
const SHORT_LINE: usize = 8;

/// Reads the pieces of a reply.
#[derive(Clone, Debug)]
pub struct Pieces<'r> {
    rest: &'r [u8],
}

impl<'r> Pieces<'r> {
    /// At the beginning of a reply.
    pub fn new(reply: &'r [u8]) -> Pieces<'r> {
        Pieces { rest: reply }
    }

    /// The unread rest.
    pub fn rest(&self) -> &'r [u8] {
        self.rest
    }

    /// The next string, if only its length is in the reply and its bytes are stored elsewhere.
    pub fn length(&mut self) -> Option<usize> {
        let (&kind, line) = self.line()?;
        if kind == b'$' { parse_i64(line)?.try_into().ok() } else { None }
    }

    fn line(&mut self) -> Option<(&'r u8, &'r [u8])> {
        // Nearly all lines are a few digits, which are read faster than searched.
        let short = self.rest.iter().take(SHORT_LINE).position(|byte| *byte == b'\r');
        let end = match short {
            Some(end) => end,
            None => memchr::memchr(b'\r', self.rest)?,
        };
        let (kind, line) = self.rest[..end].split_first()?;
        self.rest = self.rest.get(end + 2..)?;
        Some((kind, line))
    }

    fn take(&mut self, length: usize) -> Option<&'r [u8]> {
        let bytes = self.rest.get(..length)?;
        self.rest = self.rest.get(length + 2..)?;
        Some(bytes)
    }
}

impl<'r> Iterator for Pieces<'r> {
    type Item = Piece<'r>;

    /// The next piece, if the reply has one.
    fn next(&mut self) -> Option<Piece<'r>> {
        let (kind, line) = self.line()?;
        let number = || parse_i64(line);
        Some(match kind {
            b'+' => Piece::Status(line),
            b'-' => Piece::Error(line),
            b':' => Piece::Integer(number()?),
            b'$' | b'=' | b'!' => match number()? {
                -1 => Piece::Null,
                length => {
                    let bytes = self.take(usize::try_from(length).ok()?)?;
                    // Three letters and a colon give the kind of a text.
                    Piece::Bytes(if *kind == b'=' { bytes.get(4..)? } else { bytes })
                }
            },
            b'*' | b'~' | b'>' => match number()? {
                -1 => Piece::Null,
                count => Piece::Array(usize::try_from(count).ok()?),
            },
            b'%' => Piece::Map(usize::try_from(number()?).ok()?),
            b'_' => Piece::Null,
            b',' => Piece::Double(line),
            b'#' => Piece::Boolean(line == b"t"),
            b'(' => Piece::Double(line),
            _ => return None,
        })
    }
}

/// How strings are written in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strings {
    /// As text; a string that is not UTF-8 as an object with its bytes in base64.
    Tagged,
    /// As text; bytes that are not UTF-8 become U+FFFD.
    Lossy,
    /// Everything in base64, except a whole reply that is OK.
    Base64,
}

/// Appends the next reply as JSON. `None` when there is none.
pub fn write_json(pieces: &mut Pieces<'_>, strings: Strings, output: &mut Vec<u8>) -> Option<()> {
    write_next(pieces, strings, Inside::Value, output)
}

/// What a reply is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Value,
    /// The name of a member of an object, which is escaped as a whole.
    Name,
}

fn write_next(
    pieces: &mut Pieces<'_>,
    strings: Strings,
    inside: Inside,
    output: &mut Vec<u8>,
) -> Option<()> {
    let first = pieces.next()?;
    write_whole(first, pieces, (strings, inside), output)
}

/// Appends a reply whose first piece was taken already.
fn write_whole(
    first: Piece<'_>,
    pieces: &mut Pieces<'_>,
    (strings, inside): (Strings, Inside),
    output: &mut Vec<u8>,
) -> Option<()> {
    match first {
        Piece::Array(count) => {
            output.push(b'[');
            for index in 0..count {
                if index > 0 {
                    output.push(b',');
                }
                write_next(pieces, strings, inside, output)?;
            }
            output.push(b']');
        }
        Piece::Map(count) => {
            output.push(b'{');
            for index in 0..count {
                if index > 0 {
                    output.push(b',');
                }
                write_name(pieces, inside, output)?;
                output.push(b':');
                write_next(pieces, strings, inside, output)?;
            }
            output.push(b'}');
        }
        Piece::Bytes(bytes) | Piece::Status(bytes) => write_string(bytes, strings, output),
        Piece::Error(text) => write_error(text, output),
        Piece::Integer(number) => {
            output.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        Piece::Double(text) if json::is_number(text) => output.extend_from_slice(text),
        Piece::Double(text) => json::write_text(output, text),
        Piece::Boolean(value) => output.extend_from_slice(if value { b"true" } else { b"false" }),
        Piece::Null => output.extend_from_slice(b"null"),
    }
    Some(())
}

fn write_error(text: &[u8], output: &mut Vec<u8>) {
    output.extend_from_slice(b"{\"error\":");
    json::write_text(output, text);
    output.push(b'}');
}

/// Appends the name of a member of an object: always text.
///
/// A script may make a collection a name: its name is its JSON, escaped. A collection that is a name within
/// that name stands there without quotes. Escaped once more at each level, a name would double with each.
fn write_name(pieces: &mut Pieces<'_>, inside: Inside, output: &mut Vec<u8>) -> Option<()> {
    let first = pieces.next()?;
    match first {
        Piece::Bytes(bytes) | Piece::Status(bytes) | Piece::Double(bytes) => {
            json::write_text(output, bytes);
        }
        Piece::Integer(number) => json::write_str(output, itoa::Buffer::new().format(number)),
        Piece::Error(text) => json::write_text(output, text),
        Piece::Boolean(value) => json::write_str(output, if value { "true" } else { "false" }),
        Piece::Null => json::write_str(output, "null"),
        Piece::Array(_) | Piece::Map(_) if inside == Inside::Name => {
            write_whole(first, pieces, (Strings::Lossy, inside), output)?;
        }
        Piece::Array(_) | Piece::Map(_) => {
            let mut text = Vec::new();
            write_whole(first, pieces, (Strings::Lossy, Inside::Name), &mut text)?;
            json::write_text(output, &text);
        }
    }
    Some(())
}

fn write_string(bytes: &[u8], strings: Strings, output: &mut Vec<u8>) {
    match (strings, std::str::from_utf8(bytes)) {
        (Strings::Base64, _) => json::write_base64(output, bytes),
        (Strings::Tagged, Err(_)) => {
            output.extend_from_slice(b"{\"base64\":");
            json::write_base64(output, bytes);
            output.push(b'}');
        }
        (_, Ok(text)) => json::write_str(output, text),
        (Strings::Lossy, Err(_)) => json::write_text(output, bytes),
    }
}

/// Appends the next reply as the outcome of a command: an object with its `result` or its `error`.
/// Returns whether it is a result.
pub fn write_outcome(
    pieces: &mut Pieces<'_>,
    strings: Strings,
    output: &mut Vec<u8>,
) -> Option<bool> {
    let first = pieces.clone().next()?;
    if let Piece::Error(text) = first {
        pieces.next();
        write_error(text, output);
        return Some(false);
    }
    output.extend_from_slice(b"{\"result\":");
    match first {
        Piece::Status(b"OK") => {
            pieces.next();
            output.extend_from_slice(b"\"OK\"");
        }
        _ => write_json(pieces, strings, output)?,
    }
    output.push(b'}');
    Some(true)
}

/// Appends the next reply as MessagePack: strings that are UTF-8 as text, others as bytes.
pub fn write_msgpack(pieces: &mut Pieces<'_>, output: &mut Vec<u8>) -> Option<()> {
    match pieces.next()? {
        Piece::Array(count) => {
            write_count(count, (0x90, 15), [0, 0xdc, 0xdd], output);
            (0..count).try_for_each(|_| write_msgpack(pieces, output))?;
        }
        Piece::Map(count) => {
            write_count(count, (0x80, 15), [0, 0xde, 0xdf], output);
            (0..2 * count).try_for_each(|_| write_msgpack(pieces, output))?;
        }
        Piece::Bytes(bytes) | Piece::Status(bytes) | Piece::Error(bytes) => {
            match std::str::from_utf8(bytes) {
                Ok(_) => write_count(bytes.len(), (0xa0, 31), [0xd9, 0xda, 0xdb], output),
                Err(_) => write_count(bytes.len(), (0, 0), [0xc4, 0xc5, 0xc6], output),
            }
            output.extend_from_slice(bytes);
        }
        Piece::Integer(number @ 0..=127) => output.push(number as u8),
        Piece::Integer(number) => {
            output.push(0xd3);
            output.extend_from_slice(&number.to_be_bytes());
        }
        Piece::Double(text) => {
            output.push(0xcb);
            output.extend_from_slice(&parse_f64(text).unwrap_or(f64::NAN).to_be_bytes());
        }
        Piece::Boolean(value) => output.push(if value { 0xc3 } else { 0xc2 }),
        Piece::Null => output.push(0xc0),
    }
    Some(())
}

/// Appends a length: up to `most` in the one byte that begins with `short`, else after the code for one
/// byte (if it has a code), two or four bytes.
fn write_count(count: usize, (short, most): (u8, usize), codes: [u8; 3], output: &mut Vec<u8>) {
    match count {
        _ if most > 0 && count <= most => output.push(short | count as u8),
        0..=0xff if codes[0] != 0 => output.extend_from_slice(&[codes[0], count as u8]),
        0..=0xffff => {
            output.push(codes[1]);
            output.extend_from_slice(&(count as u16).to_be_bytes());
        }
        _ => {
            output.push(codes[2]);
            output.extend_from_slice(&(count as u32).to_be_bytes());
        }
    }
}

/// Appends the next reply as text: a line for each element, and for each pair of a map its name, a
/// tab and its value.
pub fn write_lines(pieces: &mut Pieces<'_>, output: &mut Vec<u8>) -> Option<()> {
    match pieces.next()? {
        Piece::Array(count) => (0..count).try_for_each(|_| write_lines(pieces, output)),
        Piece::Map(count) => (0..count).try_for_each(|_| {
            write_word(pieces.next()?, output);
            output.push(b'\t');
            write_lines(pieces, output)
        }),
        piece => {
            write_word(piece, output);
            output.push(b'\n');
            Some(())
        }
    }
}

fn write_word(piece: Piece<'_>, output: &mut Vec<u8>) {
    match piece {
        Piece::Bytes(bytes) | Piece::Status(bytes) | Piece::Error(bytes) | Piece::Double(bytes) => {
            output.extend_from_slice(bytes);
        }
        Piece::Integer(number) => {
            output.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        Piece::Boolean(value) => output.extend_from_slice(if value { b"true" } else { b"false" }),
        Piece::Null | Piece::Array(_) | Piece::Map(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reply: &str, strings: Strings) -> String {
        let mut output = Vec::new();
        let mut pieces = Pieces::new(reply.as_bytes());
        write_json(&mut pieces, strings, &mut output).unwrap();
        assert_eq!(pieces.rest(), b"");
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn each_kind_of_reply_becomes_json() {
        for (reply, json) in [
            ("+OK\r\n", "\"OK\""),
            ("-ERR no\r\n", "{\"error\":\"ERR no\"}"),
            (":-5\r\n", "-5"),
            ("$4\r\na\r\nb\r\n", "\"a\\r\\nb\""),
            ("$-1\r\n", "null"),
            ("_\r\n", "null"),
            ("*-1\r\n", "null"),
            ("*3\r\n:1\r\n*0\r\n$0\r\n\r\n", "[1,[],\"\"]"),
            ("%2\r\n$1\r\na\r\n:1\r\n:2\r\n#t\r\n", "{\"a\":1,\"2\":true}"),
            ("~1\r\n,1.5\r\n", "[1.5]"),
            (",inf\r\n", "\"inf\""),
            ("=7\r\ntxt:abc\r\n", "\"abc\""),
            ("(123456789012345678901\r\n", "123456789012345678901"),
        ] {
            assert_eq!(written(reply, Strings::Tagged), json);
            assert!(serde_json::from_str::<serde_json::Value>(json).is_ok());
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_told_as_asked() {
        let json = |strings| {
            let mut output = Vec::new();
            write_json(&mut Pieces::new(b"$2\r\n\xff\x01\r\n"), strings, &mut output).unwrap();
            String::from_utf8(output).unwrap()
        };
        assert_eq!(json(Strings::Tagged), "{\"base64\":\"/wE=\"}");
        assert_eq!(json(Strings::Lossy), "\"\u{fffd}\\u0001\"");
        assert_eq!(json(Strings::Base64), "\"/wE=\"");
    }

    #[test]
    fn outcomes_tell_results_from_errors() {
        let outcome = |reply: &str, strings| {
            let mut output = Vec::new();
            let good = write_outcome(&mut Pieces::new(reply.as_bytes()), strings, &mut output);
            (good.unwrap(), String::from_utf8(output).unwrap())
        };
        let base64 = Strings::Base64;
        assert_eq!(outcome("+OK\r\n", base64), (true, "{\"result\":\"OK\"}".into()));
        assert_eq!(outcome("*1\r\n+OK\r\n", base64), (true, "{\"result\":[\"T0s=\"]}".into()));
        let no = (false, "{\"error\":\"ERR no\"}".into());
        assert_eq!(outcome("-ERR no\r\n", Strings::Lossy), no);
    }

    #[test]
    fn replies_become_messagepack_and_lines() {
        let reply = b"%1\r\n$1\r\na\r\n*3\r\n:1\r\n:-1\r\n_\r\n";
        let mut output = Vec::new();
        write_msgpack(&mut Pieces::new(reply), &mut output).unwrap();
        let minus_one = [0xd3, 255, 255, 255, 255, 255, 255, 255, 255];
        assert_eq!(output, [&[0x81, 0xa1, b'a', 0x93, 1][..], &minus_one, &[0xc0]].concat());
        output.clear();
        write_msgpack(&mut Pieces::new(b"$2\r\n\xff\xff\r\n"), &mut output).unwrap();
        assert_eq!(output, [0xc4, 2, 255, 255]);
        output.clear();
        write_lines(&mut Pieces::new(b"%1\r\n$1\r\na\r\n$1\r\nb\r\n"), &mut output).unwrap();
        assert_eq!(output, b"a\tb\n");
    }

    #[test]
    fn a_name_that_is_no_text_is_escaped_once() {
        let nested = |levels: usize| {
            let names = "%1\r\n".repeat(levels);
            format!("{names}%1\r\n$1\r\na\r\n:1\r\n{}", ":2\r\n".repeat(levels))
        };
        let json = |levels| written(&nested(levels), Strings::Tagged);
        assert_eq!(json(0), r#"{"a":1}"#);
        assert_eq!(json(1), r#"{"{\"a\":1}":2}"#);
        assert_eq!(json(2), r#"{"{{\"a\":1}:2}":2}"#);
        let deep = json(20);
        assert!(deep.len() < 200, "{} bytes", deep.len());
        assert!(serde_json::from_str::<serde_json::Value>(&deep).is_ok());
        // Values beside such a name are written as they are anywhere.
        let beside = "*2\r\n%1\r\n*1\r\n%1\r\n*0\r\n:1\r\n:2\r\n%1\r\n*0\r\n:3\r\n";
        assert_eq!(written(beside, Strings::Tagged), r#"[{"[{[]:1}]":2},{"[]":3}]"#);
    }

    #[test]
    fn a_reply_that_breaks_off_is_none() {
        let whole = b"*2\r\n$3\r\nabc\r\n:12\r\n";
        for length in 0..whole.len() {
            let mut pieces = Pieces::new(&whole[..length]);
            assert_eq!(write_json(&mut pieces, Strings::Lossy, &mut Vec::new()), None);
        }
    }
}
