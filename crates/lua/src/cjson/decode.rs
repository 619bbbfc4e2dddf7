//! From JSON to values.

use std::ffi::c_int;

use super::config::CjsonConfig;
use crate::levels::Levels;
use crate::number;
use crate::stack::Stack;

/// Bytes of a string with escapes that are assembled without memory of Lua's.
const SHORT: usize = 512;

/// The tokens of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Colon,
    Comma,
    /// A string, between these places within its quotes, and whether it has escapes.
    String(usize, usize, bool),
    /// A number; its value is stored separately.
    Number,
    True,
    False,
    Null,
    End,
    /// No token, and why.
    Wrong(&'static str),
}

impl Token {
    /// Its name in messages.
    fn name(self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::String(..) => "T_STRING",
            Token::Number => "T_NUMBER",
            Token::True | Token::False => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::End => "T_END",
            Token::Wrong(why) => why,
        }
    }
}

/// An array or an object that is being read. It is on the stack, an object with the key of the
/// value that comes next.
#[derive(Clone, Copy)]
enum Level {
    /// The index of the element that is read.
    Array(c_int),
    Object,
}

impl Level {
    fn is_end(self, token: Token) -> bool {
        match self {
            Level::Array(_) => token == Token::ArrayEnd,
            Level::Object => token == Token::ObjectEnd,
        }
    }

    /// The tokens that may come after a value.
    fn expected(self) -> &'static str {
        match self {
            Level::Array(_) => "comma or array end",
            Level::Object => "comma or object end",
        }
    }
}

struct Decoder<'call> {
    stack: Stack<'call>,
    config: CjsonConfig,
    text: &'call [u8],
    /// Where the next token is looked for.
    place: usize,
    /// The beginning of the last token that was read, or the place where the text is wrong.
    begin: usize,
    /// The number that was read last.
    number: f64,
}

pub(super) fn decode(stack: Stack<'_>) -> c_int {
    if stack.top() != 1 {
        stack.fail_argument(1, format_args!("expected 1 argument"));
    }
    let text = stack.argument_bytes(1);
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        stack.fail(format_args!("JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut decoder =
        Decoder { stack, config: stack.shared(), text, place: 0, begin: 0, number: 0.0 };
    let first = decoder.token();
    if let Some(level) = decoder.value(first, 0) {
        decoder.contents(level);
    }
    let last = decoder.token();
    if last != Token::End {
        decoder.fail("the end", last);
    }
    1
}

impl Decoder<'_> {
    fn fail(&self, expected: &str, found: Token) -> ! {
        let (found, at) = (found.name(), self.begin + 1);
        self.stack.fail(format_args!("Expected {expected} but found {found} at character {at}"))
    }

    /// Reads the contents of the array or object on top of the stack, which was opened.
    fn contents(&mut self, outermost: Level) {
        let mut outer = Levels::new();
        let mut level = outermost;
        let mut token = self.token();
        // A bracket right after the one that opens.
        let mut ended = level.is_end(token);
        loop {
            if !ended {
                let before = self.before_value(level, token);
                if let Some(inner) = self.value(before, outer.count() + 1) {
                    outer.push(level);
                    level = inner;
                    token = self.token();
                    ended = level.is_end(token);
                    continue;
                }
            } else {
                match outer.pop() {
                    Some(around) => level = around,
                    None => return,
                }
            }
            // A value is complete.
            self.put(&mut level);
            token = self.token();
            ended = level.is_end(token);
            if !ended {
                if token != Token::Comma {
                    self.fail(level.expected(), token);
                }
                token = self.token();
            }
        }
    }

    /// Reads the key and the colon before a value of an object, and returns the value's token.
    fn before_value(&mut self, level: Level, token: Token) -> Token {
        if let Level::Array(_) = level {
            return token;
        }
        let Token::String(begin, end, escapes) = token else {
            self.fail("object key string", token)
        };
        self.string(begin, end, escapes);
        let colon = self.token();
        if colon != Token::Colon {
            self.fail("colon", colon);
        }
        self.token()
    }

    /// Puts the value on top of the stack into its table.
    fn put(&self, level: &mut Level) {
        match level {
            Level::Array(index) => {
                self.stack.set_element(-2, *index);
                *index += 1;
            }
            Level::Object => self.stack.set(-3),
        }
    }

    /// Pushes the value that a token is, or a table to fill, `depth` levels down.
    fn value(&mut self, token: Token, depth: usize) -> Option<Level> {
        self.stack.work(1);
        match token {
            Token::String(begin, end, escapes) => self.string(begin, end, escapes),
            Token::Number => self.stack.push_number(self.number),
            Token::True => self.stack.push_boolean(true),
            Token::False => self.stack.push_boolean(false),
            Token::Null => self.stack.push_null(),
            Token::ObjectBegin => {
                self.table(depth + 1, 3);
                return Some(Level::Object);
            }
            Token::ArrayBegin => {
                self.table(depth + 1, 2);
                return Some(Level::Array(1));
            }
            found => self.fail("value", found),
        }
        None
    }

    fn table(&mut self, depth: usize, places: c_int) {
        if depth > self.config.decode_depth as usize || !self.stack.reserve(places) {
            let at = self.place;
            self.stack.fail(format_args!(
                "Found too many nested data structures ({depth}) at character {at}"
            ));
        }
        self.stack.push_table();
    }

    /// A byte of the text. As in C, there is a zero byte after its end.
    fn byte(&self, place: usize) -> u8 {
        self.text.get(place).copied().unwrap_or_default()
    }

    fn wrong(&mut self, place: usize, why: &'static str) -> Token {
        self.begin = place;
        Token::Wrong(why)
    }

    /// The next token.
    fn token(&mut self) -> Token {
        while matches!(self.byte(self.place), b' ' | b'\t' | b'\n' | b'\r') {
            self.place += 1;
        }
        self.begin = self.place;
        let byte = self.byte(self.place);
        let single = match byte {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            0 => return Token::End,
            b'"' => return self.string_token(),
            b'-' | b'0'..=b'9' => {
                if !self.config.decode_invalid && self.is_invalid_number() {
                    return self.wrong(self.place, "invalid number");
                }
                return self.number_token();
            }
            _ => return self.word(),
        };
        self.place += 1;
        single
    }

    fn word(&mut self) -> Token {
        let rest = &self.text[self.place..];
        for (word, token) in [("true", Token::True), ("false", Token::False), ("null", Token::Null)]
        {
            if rest.starts_with(word.as_bytes()) {
                self.place += word.len();
                return token;
            }
        }
        let begins = matches!(rest[0], b'+' | b'i' | b'I' | b'n' | b'N');
        if begins && self.config.decode_invalid && self.is_invalid_number() {
            return self.number_token();
        }
        self.wrong(self.place, "invalid token")
    }

    fn number_token(&mut self) -> Token {
        let (number, length) = number::read(&self.text[self.place..]);
        if length == 0 {
            return self.wrong(self.place, "invalid number");
        }
        self.number = number;
        self.place += length;
        Token::Number
    }

    /// Whether a number is one that C reads and JSON does not have. A text that is not a number at
    /// all shows when it is read.
    fn is_invalid_number(&self) -> bool {
        let mut place = self.place;
        if self.byte(place) == b'+' {
            return true;
        }
        if self.byte(place) == b'-' {
            place += 1;
        }
        match self.byte(place) {
            b'0' => matches!(self.byte(place + 1), b'x' | b'X' | b'0'..=b'9'),
            ..=b'9' => false,
            _ => {
                let word = &self.text[place..self.text.len().min(place + 3)];
                word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
            }
        }
    }

    /// Finds the end of a string, and whether its escapes are valid.
    fn string_token(&mut self) -> Token {
        let begin = self.place + 1;
        let mut place = begin;
        let mut escapes = false;
        loop {
            match self.byte(place) {
                b'"' => break,
                0 => return self.wrong(place, "unexpected end of string"),
                b'\\' => {
                    escapes = true;
                    match self.byte(place + 1) {
                        b'u' => match unicode(&self.text[place..]) {
                            Some((_, length)) => place += length,
                            None => return self.wrong(place, "invalid unicode escape code"),
                        },
                        letter if unescaped(letter).is_some() => place += 2,
                        _ => return self.wrong(place, "invalid escape code"),
                    }
                }
                _ => place += 1,
            }
        }
        self.place = place + 1;
        Token::String(begin, place, escapes)
    }

    /// Pushes a string that a token has found.
    fn string(&mut self, begin: usize, end: usize, escapes: bool) {
        let text = &self.text[begin..end];
        if !escapes {
            self.stack.push_bytes(text);
        } else if text.len() <= SHORT {
            let mut room = [0; SHORT];
            let length = unescape(text, &mut room);
            self.stack.push_bytes(&room[..length]);
        } else {
            self.stack.need(2, "no place for a string");
            let room = self.stack.push_room(text.len());
            let length = unescape(text, room);
            self.stack.push_bytes(&room[..length]);
            self.stack.remove(-2);
        }
    }
}

/// The byte for a letter after a backslash.
fn unescaped(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'f' => 12,
        b'r' => b'\r',
        _ => return None,
    })
}

/// The character for `\uXXXX` or a pair of them, and the length of the escape.
fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let first = four_digits(text)?;
    if first & 0xF800 != 0xD800 {
        return Some((char::from_u32(first)?, 6));
    }
    let second = four_digits(&text[6..])?;
    if first & 0x400 != 0 || second & 0xFC00 != 0xDC00 {
        return None;
    }
    Some((char::from_u32(0x10000 + ((first & 0x3FF) << 10 | second & 0x3FF))?, 12))
}

/// The number in `\uXXXX`.
fn four_digits(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |number, digit| Some(number << 4 | (*digit as char).to_digit(16)?))
}

/// Writes the unescaped form of a string with valid escapes, and returns its length.
fn unescape(text: &[u8], room: &mut [u8]) -> usize {
    let (mut place, mut length) = (0, 0);
    while place < text.len() {
        let mut byte = text[place];
        if byte == b'\\' {
            let letter = text.get(place + 1).copied().unwrap_or_default();
            if let (b'u', Some((character, escape))) = (letter, unicode(&text[place..])) {
                length += character.encode_utf8(&mut room[length..]).len();
                place += escape;
                continue;
            }
            byte = unescaped(letter).unwrap_or_default();
            place += 1;
        }
        room[length] = byte;
        length += 1;
        place += 1;
    }
    length
}
