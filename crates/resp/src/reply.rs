//! Replies in RESP2 and RESP3.
//!
//! A handler says what it answers (a map, a double, nothing); [`Reply`] writes it in the form that
//! the client's protocol has for it. RESP2 knows only strings, integers, errors and arrays. There,
//! as in Redis, maps become flat arrays, and doubles and booleans become strings and integers.

use std::sync::Arc;

use base::limits;
use base::num;

use crate::frame::{self, FRAME};
use crate::output::{Mark, Output};

/// Room for a number that is printed without an exponent.
const LONGEST_NUMBER: usize = 512;

/// Writes the answers of one connection.
#[derive(Debug)]
pub struct Reply<'a> {
    output: &'a mut Output,
    resp3: bool,
}

impl<'a> Reply<'a> {
    /// A writer into `output`, in RESP3 or RESP2.
    #[inline]
    pub fn new(output: &'a mut Output, resp3: bool) -> Self {
        Reply { output, resp3 }
    }

    /// Whether the client speaks RESP3.
    #[inline]
    pub fn is_resp3(&self) -> bool {
        self.resp3
    }

    /// Changes to another protocol for the next replies.
    pub fn set_protocol(&mut self, resp3: bool) {
        self.resp3 = resp3;
    }

    /// The output beneath.
    pub fn output(&mut self) -> &mut Output {
        self.output
    }

    /// `+OK`, the commonest status.
    #[inline]
    pub fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    /// A status. Line ends within become spaces.
    #[inline]
    pub fn simple(&mut self, text: &[u8]) {
        self.line(b'+', text);
    }

    /// An error: `message` begins with its code, as in `ERR no such key`. Line ends within become
    /// spaces; those at the end are dropped.
    pub fn error(&mut self, message: &[u8]) {
        let kept = message.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
        self.line(b'-', &message[..kept.map_or(0, |last| last + 1)]);
    }

    /// A whole number.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.header(b':', value),
            Err(_) => self.long_line(b':', itoa::Buffer::new().format(value)),
        }
    }

    /// A string of bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        if !frame::write_short_bulk(&mut self.output.buffer, bytes) {
            self.long_bulk(bytes);
        }
    }

    /// A string that is not short, or for which there may be no room.
    #[inline(never)]
    fn long_bulk(&mut self, bytes: &[u8]) {
        if !self.output.make_room(bytes.len() + FRAME) {
            return;
        }
        self.header(b'$', bytes.len() as u64);
        self.output.buffer.extend_from_slice(bytes);
        self.output.buffer.extend_from_slice(b"\r\n");
    }

    /// A string of bytes that is sent from its place in memory, if it is long enough to be
    /// worthwhile.
    #[inline]
    pub fn bulk_shared(&mut self, bytes: &Arc<Vec<u8>>) {
        if bytes.len() < limits::SHARED_REPLY || self.output.copies() {
            return self.bulk(bytes);
        }
        self.header(b'$', bytes.len() as u64);
        self.output.push_shared(bytes);
        self.raw(b"\r\n");
    }

    /// A whole number as a string of bytes.
    #[inline]
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// No value: a missing key or field.
    #[inline]
    pub fn null(&mut self) {
        self.raw(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// No array: an aborted EXEC, a blocking command that timed out.
    #[inline]
    pub fn null_array(&mut self) {
        self.raw(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// The beginning of an array; its `count` elements follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.header(b'*', count as u64);
    }

    /// The beginning of a map; its `pairs` keys and values follow, alternating.
    #[inline]
    pub fn map(&mut self, pairs: usize) {
        let (kind, count) = self.map_header(pairs);
        self.header(kind, count);
    }

    /// The beginning of a set; its `count` members follow.
    #[inline]
    pub fn set(&mut self, count: usize) {
        self.header(self.set_kind(), count as u64);
    }

    /// The beginning of a message that answers no command; its `count` elements follow.
    #[inline]
    pub fn push(&mut self, count: usize) {
        self.header(if self.resp3 { b'>' } else { b'*' }, count as u64);
    }

    /// The beginning of attributes of the reply to come. Returns whether the client understands
    /// them: if so, `pairs` keys and values must follow, and else nothing was written.
    #[must_use]
    pub fn attribute(&mut self, pairs: usize) -> bool {
        if self.resp3 {
            self.header(b'|', pairs as u64);
        }
        self.resp3
    }

    /// A double, with few digits that identify it as Redis 8.0 prints scores.
    pub fn double(&mut self, value: f64) {
        self.number(|buffer| num::write_f64(buffer, value));
    }

    /// A double that was printed already.
    pub fn double_text(&mut self, text: &[u8]) {
        if !self.output.make_room(text.len()) {
            return;
        }
        self.number(|buffer| buffer.extend_from_slice(text));
    }

    fn number(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mark = self.output.mark();
        if !self.output.make_room(LONGEST_NUMBER) {
            return;
        }
        if self.resp3 {
            self.raw(b",");
        }
        let start = self.output.buffer.len();
        write(&mut self.output.buffer);
        let length = self.output.buffer.len() - start;
        self.raw(b"\r\n");
        if !self.resp3 {
            self.insert_header(mark, b'$', length as u64);
        }
    }

    /// A truth value: 1 or 0 in RESP2.
    pub fn boolean(&mut self, value: bool) {
        self.raw(match (self.resp3, value) {
            (true, true) => b"#t\r\n",
            (true, false) => b"#f\r\n",
            (false, true) => b":1\r\n",
            (false, false) => b":0\r\n",
        });
    }

    /// An integer of any size, given as its digits.
    pub fn big_number(&mut self, digits: &[u8]) {
        if self.resp3 { self.line(b'(', digits) } else { self.bulk(digits) }
    }

    /// Text to be shown as it is, with a three-letter format: `txt` or `mkd`.
    pub fn verbatim(&mut self, format: &[u8; 3], text: &[u8]) {
        if !self.resp3 {
            return self.bulk(text);
        }
        if !self.output.make_room(text.len() + FRAME) {
            return;
        }
        self.header(b'=', text.len() as u64 + 4);
        for part in [format, b":" as &[u8], text, b"\r\n"] {
            self.raw(part);
        }
    }

    /// Bytes that are a reply already.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.output.buffer.extend_from_slice(bytes);
    }

    /// The present end: for a collection whose length is known only when it is written
    /// ([`Reply::close_array`]), or for a reply that may be taken back ([`Reply::rollback`]).
    #[inline]
    pub fn mark(&self) -> Mark {
        self.output.mark()
    }

    /// The bytes written since `mark`, apart from strings that are sent from where they lie.
    pub fn since(&self, mark: Mark) -> &[u8] {
        self.output.since(mark)
    }

    /// How many bytes were written since `mark`, strings that are sent from where they lie
    /// included.
    #[inline]
    pub fn len_since(&self, mark: Mark) -> usize {
        self.output.len_since(mark)
    }

    /// Makes the `count` replies written since `mark` an array.
    pub fn close_array(&mut self, mark: Mark, count: usize) {
        self.insert_header(mark, b'*', count as u64);
    }

    /// Makes the `pairs` keys and values written since `mark` a map.
    pub fn close_map(&mut self, mark: Mark, pairs: usize) {
        let (kind, count) = self.map_header(pairs);
        self.insert_header(mark, kind, count);
    }

    /// Makes the `count` replies written since `mark` a set.
    pub fn close_set(&mut self, mark: Mark, count: usize) {
        self.insert_header(mark, self.set_kind(), count as u64);
    }

    /// Takes back all that was written since `mark`.
    pub fn rollback(&mut self, mark: Mark) {
        self.output.rollback(mark);
    }

    fn map_header(&self, pairs: usize) -> (u8, u64) {
        if self.resp3 { (b'%', pairs as u64) } else { (b'*', 2 * pairs as u64) }
    }

    fn set_kind(&self) -> u8 {
        if self.resp3 { b'~' } else { b'*' }
    }

    fn insert_header(&mut self, mark: Mark, kind: u8, count: u64) {
        // A byte for the kind, up to 20 digits, and the line end.
        let mut header = [0; 24];
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(count).as_bytes();
        header[0] = kind;
        header[1..=digits.len()].copy_from_slice(digits);
        header[digits.len() + 1..digits.len() + 3].copy_from_slice(b"\r\n");
        self.output.insert(mark, &header[..digits.len() + 3]);
    }

    #[inline]
    fn header(&mut self, kind: u8, count: u64) {
        frame::write_header(&mut self.output.buffer, kind, count);
    }

    fn long_line(&mut self, kind: u8, digits: &str) {
        let buffer = &mut self.output.buffer;
        buffer.reserve(digits.len() + 3);
        buffer.push(kind);
        buffer.extend_from_slice(digits.as_bytes());
        buffer.extend_from_slice(b"\r\n");
    }

    /// A line of text. A line end within would end the reply early and make the rest look like
    /// another reply, so it becomes a space.
    fn line(&mut self, kind: u8, text: &[u8]) {
        if !self.output.make_room(text.len() + 3) {
            return;
        }
        let buffer = &mut self.output.buffer;
        buffer.push(kind);
        if memchr::memchr2(b'\r', b'\n', text).is_none() {
            buffer.extend_from_slice(text);
        } else {
            let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
            buffer.extend(text.iter().map(|byte| if is_line_end(byte) { b' ' } else { *byte }));
        }
        buffer.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(resp3: bool, write: impl Fn(&mut Reply<'_>)) -> String {
        let mut output = Output::new();
        write(&mut Reply::new(&mut output, resp3));
        String::from_utf8(output.to_vec()).unwrap()
    }

    type Write = fn(&mut Reply<'_>);

    #[test]
    fn each_kind_in_both_protocols() {
        let cases: &[(Write, &str, &str)] = &[
            (|reply| reply.ok(), "+OK\r\n", "+OK\r\n"),
            (|reply| reply.simple(b"PONG"), "+PONG\r\n", "+PONG\r\n"),
            (|reply| reply.error(b"ERR a"), "-ERR a\r\n", "-ERR a\r\n"),
            (|reply| reply.integer(0), ":0\r\n", ":0\r\n"),
            (|reply| reply.integer(-7), ":-7\r\n", ":-7\r\n"),
            (|reply| reply.integer(42), ":42\r\n", ":42\r\n"),
            (
                |reply| reply.integer(i64::MIN),
                ":-9223372036854775808\r\n",
                ":-9223372036854775808\r\n",
            ),
            (
                |reply| reply.integer(i64::MAX),
                ":9223372036854775807\r\n",
                ":9223372036854775807\r\n",
            ),
            (|reply| reply.bulk(b""), "$0\r\n\r\n", "$0\r\n\r\n"),
            (|reply| reply.bulk(b"a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"),
            (|reply| reply.bulk_int(-100), "$4\r\n-100\r\n", "$4\r\n-100\r\n"),
            (|reply| reply.null(), "$-1\r\n", "_\r\n"),
            (|reply| reply.null_array(), "*-1\r\n", "_\r\n"),
            (|reply| reply.array(0), "*0\r\n", "*0\r\n"),
            (|reply| reply.array(12), "*12\r\n", "*12\r\n"),
            (|reply| reply.array(100), "*100\r\n", "*100\r\n"),
            (|reply| reply.map(3), "*6\r\n", "%3\r\n"),
            (|reply| reply.set(3), "*3\r\n", "~3\r\n"),
            (|reply| reply.push(3), "*3\r\n", ">3\r\n"),
            (|reply| assert_eq!(reply.attribute(1), reply.is_resp3()), "", "|1\r\n"),
            (|reply| reply.double(0.1), "$3\r\n0.1\r\n", ",0.1\r\n"),
            (|reply| reply.double(3.0), "$1\r\n3\r\n", ",3\r\n"),
            (|reply| reply.double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n"),
            (|reply| reply.double_text(b"1.5"), "$3\r\n1.5\r\n", ",1.5\r\n"),
            (|reply| reply.boolean(true), ":1\r\n", "#t\r\n"),
            (|reply| reply.boolean(false), ":0\r\n", "#f\r\n"),
            (|reply| reply.big_number(b"123"), "$3\r\n123\r\n", "(123\r\n"),
            (|reply| reply.verbatim(b"txt", b"Hi"), "$2\r\nHi\r\n", "=6\r\ntxt:Hi\r\n"),
        ];
        for (write, resp2, resp3) in cases {
            assert_eq!(written(false, write), *resp2);
            assert_eq!(written(true, write), *resp3);
        }
    }

    #[test]
    fn no_text_can_smuggle_in_a_reply() {
        let text = written(false, |reply| {
            reply.error(b"ERR a\r\n+OK\r\n");
            reply.simple(b"a\nb");
            reply.error(b"\r\n");
        });
        assert_eq!(text, "-ERR a  +OK\r\n+a b\r\n-\r\n");
    }

    #[test]
    fn lengths_can_be_told_afterwards() {
        let write = |reply: &mut Reply<'_>| {
            let outer = reply.mark();
            let inner = reply.mark();
            (0..3).for_each(|value| reply.integer(value));
            reply.close_set(inner, 3);
            let gone = reply.mark();
            reply.bulk(b"gone");
            reply.rollback(gone);
            reply.bulk(b"x");
            let pairs = reply.mark();
            reply.close_map(pairs, 0);
            reply.close_array(outer, 3);
        };
        assert_eq!(written(true, write), "*3\r\n~3\r\n:0\r\n:1\r\n:2\r\n$1\r\nx\r\n%0\r\n");
        assert_eq!(written(false, write), "*3\r\n*3\r\n:0\r\n:1\r\n:2\r\n$1\r\nx\r\n*0\r\n");
    }

    #[test]
    fn large_strings_are_shared_and_small_ones_copied() {
        let small = Arc::new(vec![b'x'; 10]);
        let large = Arc::new(vec![b'x'; limits::SHARED_REPLY]);
        let mut output = Output::new();
        let mut reply = Reply::new(&mut output, false);
        let mark = reply.mark();
        reply.bulk_shared(&small);
        reply.bulk_shared(&large);
        reply.close_array(mark, 2);
        assert_eq!((Arc::strong_count(&small), Arc::strong_count(&large)), (1, 2));
        let x = "x".repeat(limits::SHARED_REPLY);
        let expected = format!("*2\r\n$10\r\nxxxxxxxxxx\r\n$16384\r\n{x}\r\n");
        assert_eq!(output.to_vec(), expected.as_bytes());
    }
}
