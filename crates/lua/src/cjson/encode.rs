//! From values to JSON.

use std::ffi::c_int;

use super::config::{CjsonConfig, Invalid};
use crate::levels::Levels;
use crate::number;
use crate::output::{Output, Room};
use crate::stack::{Kind, Stack};

/// An array or an object that is being written. It is on the stack; an object with the key after
/// which it goes on.
#[derive(Clone, Copy)]
enum Level {
    /// The next element, and the last.
    Array { next: c_int, last: c_int },
    /// Whether no field was written yet.
    Object { empty: bool },
}

struct Encoder<'room, 'call> {
    stack: Stack<'call>,
    config: CjsonConfig,
    output: Output<'room, 'call>,
}

pub(super) fn encode(stack: Stack<'_>) -> c_int {
    if stack.top() != 1 {
        stack.fail_argument(1, format_args!("expected 1 argument"));
    }
    let mut room = Room::new();
    stack.push_nil();
    stack.insert(1);
    let output = Output::new(stack, 1, &mut room);
    let mut encoder = Encoder { stack, config: stack.shared(), output };
    if let Some(level) = encoder.value(0) {
        encoder.contents(level);
    }
    encoder.output.push_string();
    1
}

impl Encoder<'_, '_> {
    fn fail(&self, index: c_int, why: &str) -> ! {
        let kind = self.stack.kind_name(index);
        self.stack.fail(format_args!("Cannot serialise {kind}: {why}"))
    }

    /// Writes the contents of the table on top of the stack, which was opened.
    fn contents(&mut self, outermost: Level) {
        let mut outer = Levels::new();
        let mut level = outermost;
        loop {
            if self.advance(&mut level) {
                match self.value(outer.count() + 1) {
                    Some(inner) => {
                        outer.push(level);
                        level = inner;
                    }
                    None => self.stack.pop(1),
                }
            } else {
                match outer.pop() {
                    Some(around) => level = around,
                    None => return,
                }
                self.stack.pop(1);
            }
        }
    }

    /// Pushes the next value of a level, and writes the text before it. At the end it writes the
    /// bracket, and leaves the table on top of the stack.
    fn advance(&mut self, level: &mut Level) -> bool {
        match level {
            Level::Array { next, last } => {
                if *next > *last {
                    self.output.push(b']');
                    return false;
                }
                if *next > 1 {
                    self.output.push(b',');
                }
                self.stack.push_element(-1, *next);
                *next += 1;
            }
            Level::Object { empty } => {
                if !self.stack.next(-2) {
                    self.output.push(b'}');
                    return false;
                }
                if !*empty {
                    self.output.push(b',');
                }
                *empty = false;
                self.key();
            }
        }
        true
    }

    /// Writes the key below the top of the stack.
    fn key(&mut self) {
        match self.stack.kind(-2) {
            Kind::Number => {
                self.output.push(b'"');
                self.number(-2);
                self.output.extend(b"\":");
            }
            Kind::String => {
                self.string(-2);
                self.output.push(b':');
            }
            _ => self.fail(-2, "table key must be a number or string"),
        }
    }

    /// Writes the value on top of the stack; of a table, only begins to. It is `depth` levels down.
    fn value(&mut self, depth: usize) -> Option<Level> {
        self.stack.work(1);
        match self.stack.kind(-1) {
            Kind::String => self.string(-1),
            Kind::Number => self.number(-1),
            Kind::Boolean if self.stack.boolean(-1) => self.output.extend(b"true"),
            Kind::Boolean => self.output.extend(b"false"),
            Kind::Nil => self.output.extend(b"null"),
            Kind::Pointer if self.stack.is_null(-1) => self.output.extend(b"null"),
            Kind::Table => return Some(self.table(depth + 1)),
            _ => self.fail(-1, "type not supported"),
        }
        None
    }

    fn table(&mut self, depth: usize) -> Level {
        // One place less than the library in C asks for, since that keeps no output on the stack.
        if depth > self.config.encode_depth as usize || !self.stack.reserve(2) {
            self.stack.fail(format_args!("Cannot serialise, excessive nesting ({depth})"));
        }
        match self.array_length() {
            0 => {
                self.output.push(b'{');
                self.stack.push_nil();
                Level::Object { empty: true }
            }
            last => {
                self.output.push(b'[');
                Level::Array { next: 1, last }
            }
        }
    }

    /// The highest index of the table on top of the stack, if it is an array; 0 makes it an object.
    fn array_length(&self) -> c_int {
        let stack = self.stack;
        let (mut highest, mut count) = (0, 0i32);
        stack.push_nil();
        while stack.next(-2) {
            let index = if stack.kind(-2) == Kind::Number { stack.number(-2) } else { 0.0 };
            if index < 1.0 || index.floor() != index {
                stack.pop(2);
                return 0;
            }
            if index > f64::from(highest) {
                highest = int(index);
            }
            count += 1;
            stack.work(1);
            stack.pop(1);
        }
        let CjsonConfig { sparse_ratio: ratio, sparse_safe: safe, .. } = self.config;
        if ratio > 0 && highest > count.wrapping_mul(ratio) && highest > safe {
            if !self.config.sparse_convert {
                self.fail(-1, "excessively sparse array");
            }
            return 0;
        }
        highest.max(0)
    }

    fn number(&mut self, index: c_int) {
        let value = self.stack.number(index);
        if !value.is_finite() {
            match self.config.encode_invalid {
                Invalid::Refuse => self.fail(index, "must not be NaN or Inf"),
                Invalid::Print if value.is_nan() => return self.output.extend(b"nan"),
                Invalid::Print => {}
                Invalid::Null => return self.output.extend(b"null"),
            }
        }
        let (text, length) = number::print(value, self.config.precision as usize);
        self.output.extend(&text[..length]);
    }

    fn string(&mut self, index: c_int) {
        self.output.push(b'"');
        let mut rest = self.stack.bytes(index);
        while let Some(at) = rest.iter().position(|byte| ESCAPES[*byte as usize] != 0) {
            self.output.extend(&rest[..at]);
            let byte = rest[at];
            match ESCAPES[byte as usize] {
                b'u' => self.unicode(byte),
                letter => self.output.extend(&[b'\\', letter]),
            }
            rest = &rest[at + 1..];
        }
        self.output.extend(rest);
        self.output.push(b'"');
    }

    fn unicode(&mut self, byte: u8) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.output.extend(b"\\u00");
        self.output.push(DIGITS[usize::from(byte >> 4)]);
        self.output.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// A number as C converts it to an int on most processors.
fn int(number: f64) -> c_int {
    if number <= f64::from(c_int::MAX) { number as c_int } else { c_int::MIN }
}

/// The letter after the backslash for each byte that needs one.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let mut byte = 0;
    while byte < 32 {
        escapes[byte] = b'u';
        byte += 1;
    }
    escapes[127] = b'u';
    escapes[8] = b'b';
    escapes[9] = b't';
    escapes[10] = b'n';
    escapes[12] = b'f';
    escapes[13] = b'r';
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes[b'/' as usize] = b'/';
    escapes
};
