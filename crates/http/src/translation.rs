//! Replies of commands, in the forms that clients of HTTP take: JSON, MessagePack, or lines of
//! text.
//!
//! A reply may be as large as the data, so it is translated piece by piece, and no piece takes
//! long. Between two pieces a [`Translation`] remembers where it is: which collections are open,
//! and how much of a long string is written. The reply itself is not copied, and large strings in
//! it are read where they lie.

use base::limits;
use base::num::parse_f64;

use crate::json;
use crate::reply::{Begun, Piece, Pieces};

/// How strings are written in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strings {
    /// As text; a string that is not UTF-8 as an object with its bytes in base64.
    Tagged,
    /// As text; bytes that are not UTF-8 become U+FFFD.
    Lossy,
    /// Everything in base64, except names and a whole reply that is OK.
    Base64,
}

/// The form in which a client takes a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// JSON.
    Json(Strings),
    /// A line for each element, and for each pair of a map its name, a tab and its value.
    Lines,
    /// MessagePack: strings that are UTF-8 as text, others as bytes.
    MsgPack,
}

/// How far a translation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The reply is written.
    Complete,
    /// As much is written as was asked for.
    Part,
    /// The reply ends before it is complete.
    BreaksOff,
}

/// A collection that is not written to its end.
#[derive(Clone, Copy, Debug)]
struct Open {
    kind: Kind,
    /// Elements that follow; a pair of a map is two.
    left: usize,
    is_empty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Array,
    /// An array whose elements are outcomes of commands.
    Outcomes,
    Map,
    /// The object around the result of a command, which follows it.
    Result,
}

/// What a piece is for the collection that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Value,
    /// The name of a member.
    Name,
    /// The reply of a command: an object with its `result` or its `error`.
    Outcome,
}

/// How the bytes of a string are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// Escaped for JSON; the bytes are UTF-8.
    Escaped,
    /// The same of bytes that are not.
    Lossy,
    Base64,
    Raw,
}

/// A long string that is being written.
#[derive(Clone, Debug)]
struct LongText {
    role: Role,
    /// Bytes that are not written.
    left: usize,
    /// Bytes of which it is known that they are UTF-8, until the encoding is chosen.
    checked: usize,
    encoding: Option<(Encoding, &'static [u8])>,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Translation {
    form: Form,
    /// The reply is an outcome, or an array of outcomes.
    top: Top,
    /// This becomes the name of a member, which is escaped as a whole.
    in_name: bool,
    begun: bool,
    open: Vec<Open>,
    text: Option<LongText>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Top {
    Value,
    Outcome,
    Outcomes,
    /// This many outcomes follow, one after the other.
    Row(usize),
}

const LOSSY: Form = Form::Json(Strings::Lossy);

/// Translates a whole reply. `None` if it breaks off.
pub fn write(pieces: &mut Pieces<'_>, form: Form, output: &mut Vec<u8>) -> Option<()> {
    Translation::new(form).write(pieces, output)
}

impl Translation {
    /// A reply in this form.
    pub fn new(form: Form) -> Translation {
        let (in_name, begun, open, text) = (false, false, Vec::new(), None);
        Translation { form, top: Top::Value, in_name, begun, open, text }
    }

    /// A reply as the outcome of a command: an object with its `result` or its `error`.
    pub fn outcome(strings: Strings) -> Translation {
        Translation { top: Top::Outcome, ..Translation::new(Form::Json(strings)) }
    }

    /// An array of replies, each as an outcome.
    pub fn outcomes(strings: Strings) -> Translation {
        Translation { top: Top::Outcomes, ..Translation::new(Form::Json(strings)) }
    }

    /// The same of this many replies that follow each other.
    pub fn row_of_outcomes(count: usize, strings: Strings) -> Translation {
        Translation { top: Top::Row(count), ..Translation::new(Form::Json(strings)) }
    }

    /// Writes all that is left. `None` if the reply breaks off.
    pub fn write(&mut self, pieces: &mut Pieces<'_>, output: &mut Vec<u8>) -> Option<()> {
        loop {
            match self.advance(pieces, usize::MAX, output) {
                Progress::Complete => return Some(()),
                // It has looked at a part of a long string.
                Progress::Part => {}
                Progress::BreaksOff => return None,
            }
        }
    }

    /// Goes on until the output has about `most` bytes, or some time has passed.
    pub fn advance(
        &mut self,
        pieces: &mut Pieces<'_>,
        most: usize,
        output: &mut Vec<u8>,
    ) -> Progress {
        loop {
            match self.step(pieces, most, output) {
                None => return Progress::BreaksOff,
                Some(Some(progress)) => return progress,
                Some(None) if output.len() >= most => return Progress::Part,
                Some(None) => {}
            }
        }
    }

    /// Takes one piece, or a part of a long string. Returns nothing if the reply breaks off, and
    /// how far the translation is if it does not go on at once.
    fn step(
        &mut self,
        pieces: &mut Pieces<'_>,
        most: usize,
        output: &mut Vec<u8>,
    ) -> Option<Option<Progress>> {
        if self.text.is_some() {
            let has_ended = self.write_long(pieces, most, output)?;
            return Some((!has_ended).then_some(Progress::Part));
        }
        let role = match self.open.last_mut() {
            None if std::mem::replace(&mut self.begun, true) => {
                return Some(Some(Progress::Complete));
            }
            None => match self.top {
                Top::Value | Top::Outcomes => Role::Value,
                Top::Outcome => Role::Outcome,
                Top::Row(count) => {
                    self.open(Kind::Outcomes, count, output);
                    return Some(None);
                }
            },
            Some(Open { left: 0, .. }) => {
                self.close(output);
                return Some(None);
            }
            // A reply that is still to come takes its comma with it.
            Some(_) if pieces.ahead(1).is_none() => return None,
            Some(open) => role_in(open, self.form, output),
        };
        let begun = pieces.begin()?;
        if role == Role::Outcome {
            match begun {
                Begun::Piece(Piece::Error(text)) => write_error(text, output),
                Begun::Piece(Piece::Status(b"OK")) => {
                    output.extend_from_slice(b"{\"result\":\"OK\"}")
                }
                begun => {
                    self.open(Kind::Result, 0, output);
                    self.write_begun(begun, pieces, Role::Value, output)?;
                }
            }
            return Some(None);
        }
        self.write_begun(begun, pieces, role, output)?;
        Some(None)
    }

    fn write_begun(
        &mut self,
        begun: Begun<'_>,
        pieces: &mut Pieces<'_>,
        role: Role,
        output: &mut Vec<u8>,
    ) -> Option<()> {
        match begun {
            Begun::Text(length) if length > limits::HTTP_LONG_TEXT => {
                self.text = Some(LongText { role, left: length, checked: 0, encoding: None });
            }
            Begun::Text(length) => {
                write_text(pieces.text(length)?, self.form, role, output);
            }
            Begun::Piece(Piece::Array(count)) => {
                self.begin_collection((Kind::Array, count), (role, pieces), output)?
            }
            Begun::Piece(Piece::Map(pairs)) => {
                self.begin_collection((Kind::Map, pairs.checked_mul(2)?), (role, pieces), output)?
            }
            Begun::Piece(piece) => write_piece(piece, self.form, role, output),
        }
        Some(())
    }

    fn begin_collection(
        &mut self,
        (kind, left): (Kind, usize),
        (role, pieces): (Role, &mut Pieces<'_>),
        output: &mut Vec<u8>,
    ) -> Option<()> {
        if role == Role::Name && !self.in_name && matches!(self.form, Form::Json(_)) {
            // A script may make a collection a name: its name is its JSON, escaped. A collection
            // that is a name within that name stands there without quotes. Escaped once more at
            // each level, a name would double with each.
            let mut name = Vec::new();
            let mut inner = Translation { in_name: true, begun: true, ..Translation::new(LOSSY) };
            inner.open(kind, left, &mut name);
            inner.write(pieces, &mut name)?;
            json::write_text(output, &name);
            return Some(());
        }
        let is_top = self.open.is_empty() && self.top == Top::Outcomes && kind == Kind::Array;
        self.open(if is_top { Kind::Outcomes } else { kind }, left, output);
        Some(())
    }

    fn open(&mut self, kind: Kind, left: usize, output: &mut Vec<u8>) {
        match (self.form, kind) {
            (Form::Json(_), Kind::Array | Kind::Outcomes) => output.push(b'['),
            (Form::Json(_), Kind::Map) => output.push(b'{'),
            (Form::Json(_), Kind::Result) => output.extend_from_slice(b"{\"result\":"),
            (Form::MsgPack, Kind::Map) => {
                write_count(left / 2, (0x80, 15), [0, 0xde, 0xdf], output);
            }
            (Form::MsgPack, _) => write_count(left, (0x90, 15), [0, 0xdc, 0xdd], output),
            (Form::Lines, _) => {}
        }
        self.open.push(Open { kind, left, is_empty: true });
    }

    fn close(&mut self, output: &mut Vec<u8>) {
        let kind = self.open.pop().map(|open| open.kind);
        if let (Form::Json(_), Some(kind)) = (self.form, kind) {
            output.push(match kind {
                Kind::Array | Kind::Outcomes => b']',
                Kind::Map | Kind::Result => b'}',
            });
        }
    }

    /// Writes a part of a long string. Returns whether that was its end.
    fn write_long(
        &mut self,
        pieces: &mut Pieces<'_>,
        most: usize,
        output: &mut Vec<u8>,
    ) -> Option<bool> {
        let Some(text) = &mut self.text else { return Some(true) };
        let bytes = pieces.ahead(text.left)?;
        let (encoding, end) = match text.encoding {
            Some(chosen) => chosen,
            None => {
                let Some(is_text) = look_on(bytes, &mut text.checked) else { return Some(false) };
                let chosen = begin_text(bytes.len(), is_text, self.form, text.role, output);
                *text.encoding.insert(chosen)
            }
        };
        let room = most.saturating_sub(output.len()).max(limits::HTTP_LONG_TEXT);
        let count = match encoding {
            _ if bytes.len() <= room => bytes.len(),
            // Three bytes are four characters.
            Encoding::Base64 => room / 3 * 3,
            Encoding::Raw => room,
            Encoding::Escaped | Encoding::Lossy => between_characters(bytes, room),
        };
        encode(pieces.part(count)?, encoding, output);
        text.left -= count;
        if text.left > 0 {
            return Some(false);
        }
        output.extend_from_slice(end);
        self.text = None;
        pieces.end_of_text()?;
        Some(true)
    }
}

/// Writes what stands before the next element. Returns its role.
#[inline]
fn role_in(open: &mut Open, form: Form, output: &mut Vec<u8>) -> Role {
    let is_name = open.kind == Kind::Map && open.left.is_multiple_of(2);
    open.left -= 1;
    let is_first = std::mem::replace(&mut open.is_empty, false);
    if matches!(form, Form::Json(_)) && !is_first {
        output.push(if open.kind == Kind::Map && !is_name { b':' } else { b',' });
    }
    match open.kind {
        Kind::Outcomes => Role::Outcome,
        Kind::Map if is_name => Role::Name,
        _ => Role::Value,
    }
}

/// Looks at some more bytes of a string. Returns whether it is UTF-8 when that is known.
fn look_on(bytes: &[u8], checked: &mut usize) -> Option<bool> {
    let end = bytes.len().min(*checked + limits::HTTP_WHOLE);
    match std::str::from_utf8(&bytes[*checked..end]) {
        Ok(_) => *checked = end,
        // A character goes on behind what was looked at.
        Err(error) if error.error_len().is_none() && end < bytes.len() => {
            *checked += error.valid_up_to();
        }
        Err(_) => return Some(false),
    }
    (*checked == bytes.len()).then_some(true)
}

/// A place at or shortly before `place` where no character goes on, and no broken one.
fn between_characters(bytes: &[u8], place: usize) -> usize {
    let goes_on = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    // After its first byte, a character has three more at most.
    (place.saturating_sub(3)..=place).rev().find(|at| !goes_on(*at)).unwrap_or(place)
}

/// Begins a string of this length. Returns how its bytes are written, and what ends it.
fn begin_text(
    length: usize,
    is_text: bool,
    form: Form,
    role: Role,
    output: &mut Vec<u8>,
) -> (Encoding, &'static [u8]) {
    let (begin, encoding, end): (&[u8], _, &'static [u8]) = match (form, role) {
        (Form::Lines, Role::Name) => (b"", Encoding::Raw, b"\t"),
        (Form::Lines, _) => (b"", Encoding::Raw, b"\n"),
        (Form::MsgPack, _) => {
            match is_text {
                true => write_count(length, (0xa0, 31), [0xd9, 0xda, 0xdb], output),
                false => write_count(length, (0, 0), [0xc4, 0xc5, 0xc6], output),
            }
            (b"", Encoding::Raw, b"")
        }
        (Form::Json(Strings::Base64), Role::Value) => (b"\"", Encoding::Base64, b"\""),
        (Form::Json(_), _) if is_text => (b"\"", Encoding::Escaped, b"\""),
        (Form::Json(Strings::Lossy), _) => (b"\"", Encoding::Lossy, b"\""),
        // Names that differ must not become one: the name is the text of the JSON that the value
        // would be.
        (Form::Json(_), Role::Name) => (br#""{\"base64\":\""#, Encoding::Base64, br#"\"}""#),
        (Form::Json(_), _) => (br#"{"base64":""#, Encoding::Base64, br#""}"#),
    };
    output.extend_from_slice(begin);
    (encoding, end)
}

fn encode(bytes: &[u8], encoding: Encoding, output: &mut Vec<u8>) {
    match encoding {
        Encoding::Escaped => match std::str::from_utf8(bytes) {
            Ok(text) => json::escape(output, text),
            Err(_) => json::escape(output, &String::from_utf8_lossy(bytes)),
        },
        Encoding::Lossy => json::escape(output, &String::from_utf8_lossy(bytes)),
        Encoding::Base64 => json::base64(output, bytes),
        Encoding::Raw => output.extend_from_slice(bytes),
    }
}

/// Writes a whole string.
#[inline]
fn write_text(bytes: &[u8], form: Form, role: Role, output: &mut Vec<u8>) {
    match (form, role, std::str::from_utf8(bytes)) {
        (Form::Json(Strings::Tagged | Strings::Lossy), _, Ok(text)) => {
            json::write_str(output, text)
        }
        (form, role, text) => {
            let (encoding, end) = begin_text(bytes.len(), text.is_ok(), form, role, output);
            encode(bytes, encoding, output);
            output.extend_from_slice(end);
        }
    }
}

fn write_error(text: &[u8], output: &mut Vec<u8>) {
    output.extend_from_slice(b"{\"error\":");
    json::write_text(output, text);
    output.push(b'}');
}

/// Writes a piece that is neither a collection nor a string of bytes.
fn write_piece(piece: Piece<'_>, form: Form, role: Role, output: &mut Vec<u8>) {
    match form {
        Form::Json(strings) if role == Role::Name => write_json_name(piece, strings, output),
        Form::Json(strings) => write_json_value(piece, strings, output),
        Form::Lines => {
            match piece {
                Piece::Status(text) | Piece::Error(text) | Piece::Double(text) => {
                    output.extend_from_slice(text);
                }
                Piece::Integer(number) => write_integer(number, output),
                Piece::Boolean(value) => output.extend_from_slice(name_of(value)),
                _ => {}
            }
            output.push(if role == Role::Name { b'\t' } else { b'\n' });
        }
        Form::MsgPack => write_msgpack(piece, output),
    }
}

fn write_json_value(piece: Piece<'_>, strings: Strings, output: &mut Vec<u8>) {
    match piece {
        Piece::Status(text) => write_text(text, Form::Json(strings), Role::Value, output),
        Piece::Error(text) => write_error(text, output),
        Piece::Integer(number) => write_integer(number, output),
        Piece::Double(text) if json::is_number(text) => output.extend_from_slice(text),
        Piece::Double(text) => json::write_text(output, text),
        Piece::Boolean(value) => output.extend_from_slice(name_of(value)),
        _ => output.extend_from_slice(b"null"),
    }
}

/// Writes the name of a member: always text.
fn write_json_name(piece: Piece<'_>, strings: Strings, output: &mut Vec<u8>) {
    match piece {
        Piece::Status(text) => write_text(text, Form::Json(strings), Role::Name, output),
        Piece::Error(text) | Piece::Double(text) => json::write_text(output, text),
        Piece::Integer(number) => json::write_str(output, itoa::Buffer::new().format(number)),
        Piece::Boolean(value) => json::write_text(output, name_of(value)),
        _ => json::write_str(output, "null"),
    }
}

fn write_msgpack(piece: Piece<'_>, output: &mut Vec<u8>) {
    match piece {
        Piece::Status(text) | Piece::Error(text) => {
            write_text(text, Form::MsgPack, Role::Value, output);
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
        _ => output.push(0xc0),
    }
}

fn write_integer(number: i64, output: &mut Vec<u8>) {
    output.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn name_of(value: bool) -> &'static [u8] {
    if value { b"true" } else { b"false" }
}

/// Appends a length: up to `most` in the one byte that begins with `short`, else after the code for
/// one byte (if it has a code), two or four bytes.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use resp::output::Output;
    use resp::reply::Reply;

    use super::*;

    fn written(reply: &str, strings: Strings) -> String {
        let mut output = Vec::new();
        let mut pieces = Pieces::new(reply.as_bytes());
        write(&mut pieces, Form::Json(strings), &mut output).unwrap();
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
            let mut pieces = Pieces::new(b"$2\r\n\xff\x01\r\n");
            write(&mut pieces, Form::Json(strings), &mut output).unwrap();
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
            let mut pieces = Pieces::new(reply.as_bytes());
            Translation::outcome(strings).write(&mut pieces, &mut output).unwrap();
            String::from_utf8(output).unwrap()
        };
        let base64 = Strings::Base64;
        assert_eq!(outcome("+OK\r\n", base64), r#"{"result":"OK"}"#);
        assert_eq!(outcome("*1\r\n+OK\r\n", base64), r#"{"result":["T0s="]}"#);
        assert_eq!(outcome("-ERR no\r\n", Strings::Lossy), r#"{"error":"ERR no"}"#);
        let reply = b"*3\r\n-ERR no\r\n*1\r\n:1\r\n$1\r\na\r\n";
        let expected = r#"[{"error":"ERR no"},{"result":[1]},{"result":"a"}]"#;
        let mut output = Vec::new();
        Translation::outcomes(base64).write(&mut Pieces::new(b"*0\r\n"), &mut output).unwrap();
        assert_eq!(output, b"[]");
        output.clear();
        let mut all = Translation::outcomes(Strings::Tagged);
        all.write(&mut Pieces::new(reply), &mut output).unwrap();
        assert_eq!(output, expected.as_bytes());
        // The same of replies that come one after the other.
        output.clear();
        let mut row = Translation::row_of_outcomes(3, Strings::Tagged);
        for part in [&b"-ERR no\r\n"[..], b"*1\r\n:1\r\n", b""] {
            assert_eq!(row.write(&mut Pieces::new(part), &mut output), None, "more is to come");
        }
        row.write(&mut Pieces::new(b"$1\r\na\r\n"), &mut output).unwrap();
        assert_eq!(output, expected.as_bytes());
    }

    #[test]
    fn replies_become_messagepack_and_lines() {
        let reply = b"%1\r\n$1\r\na\r\n*3\r\n:1\r\n:-1\r\n_\r\n";
        let mut output = Vec::new();
        write(&mut Pieces::new(reply), Form::MsgPack, &mut output).unwrap();
        let minus_one = [0xd3, 255, 255, 255, 255, 255, 255, 255, 255];
        assert_eq!(output, [&[0x81, 0xa1, b'a', 0x93, 1][..], &minus_one, &[0xc0]].concat());
        output.clear();
        let bytes = b"$2\r\n\xff\xff\r\n";
        write(&mut Pieces::new(bytes), Form::MsgPack, &mut output).unwrap();
        assert_eq!(output, [0xc4, 2, 255, 255]);
        output.clear();
        let pairs = b"%1\r\n$1\r\na\r\n$1\r\nb\r\n";
        write(&mut Pieces::new(pairs), Form::Lines, &mut output).unwrap();
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
            assert_eq!(write(&mut pieces, LOSSY, &mut Vec::new()), None);
        }
    }

    #[test]
    fn names_that_are_no_text_stay_different() {
        let reply = b"%2\r\n$1\r\n\xff\r\n:1\r\n$1\r\n\xfe\r\n:2\r\n";
        let mut output = Vec::new();
        let form = Form::Json(Strings::Tagged);
        write(&mut Pieces::new(reply), form, &mut output).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&output).unwrap();
        assert_eq!(
            value,
            serde_json::json!({ r#"{"base64":"/w=="}"#: 1, r#"{"base64":"/g=="}"#: 2 })
        );
    }

    /// A reply with long strings of all kinds, some of them elsewhere.
    fn large_reply(seed: u8) -> Output {
        let long = |unit: &[u8], count: usize| Arc::new(unit.repeat(count));
        let mut output = Output::new();
        let mut reply = Reply::new(&mut output, true);
        reply.array(6);
        reply.bulk_shared(&long(b"\"plain\" \x01", 9000));
        reply.bulk_shared(&long("\u{1f600}x".as_bytes(), 9000));
        reply.bulk_shared(&long(b"\xf0\x9f\x98 \xbf\xbf\xbf\xbf\xbf", 9000));
        reply.map(2);
        reply.bulk(&[seed; 20_000]);
        reply.bulk(b"short");
        reply.bulk("\u{e4}".repeat(10_000 + usize::from(seed)).as_bytes());
        reply.bulk(&b"\xe2\x82".repeat(10_000));
        reply.verbatim(b"txt", &b"verbatim ".repeat(4000));
        reply.array(300);
        (0..300).for_each(|number| reply.bulk_int(number));
        output
    }

    #[test]
    fn what_is_written_in_parts_is_what_is_written_at_once() {
        let strings = [Strings::Tagged, Strings::Lossy, Strings::Base64];
        for form in strings.map(Form::Json).into_iter().chain([Form::Lines, Form::MsgPack]) {
            for seed in [b'a', 0xff, 0x80] {
                let mut source = large_reply(seed);
                let mut whole = Vec::new();
                write(&mut Pieces::of(&source), form, &mut whole).unwrap();
                if let Form::Json(_) = form {
                    let read = serde_json::from_slice::<serde_json::Value>(&whole);
                    assert!(read.is_ok_and(|value| value[5][299] == "299" || form != LOSSY));
                }
                let (mut parts, mut count) = (Vec::new(), 0);
                let mut translation = Translation::new(form);
                loop {
                    let (mut part, mut pieces) = (Vec::new(), Pieces::of(&source));
                    let progress = translation.advance(&mut pieces, 20_000, &mut part);
                    assert!(part.len() <= 20_000 + 6 * (limits::HTTP_LONG_TEXT + 1000));
                    let taken = pieces.taken();
                    source.advance(taken);
                    parts.append(&mut part);
                    count += 1;
                    match progress {
                        Progress::Complete => break,
                        Progress::Part => {}
                        Progress::BreaksOff => panic!("the reply is complete"),
                    }
                }
                assert!(parts == whole && count > 10 && source.is_empty(), "{form:?} {seed}");
            }
        }
    }
}
