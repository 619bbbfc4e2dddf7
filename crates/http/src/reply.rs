//! The pieces of a reply.
//!
//! Commands reply in RESP. After a command has ended and its locks are released, its reply is read
//! once, and written in the form that the client takes: see [`crate::translation`].

use base::num::parse_i64;
use resp::output::{Output, Slices};

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
    /// What comes after that.
    later: Slices<'r>,
    /// Bytes that were read.
    taken: usize,
}

/// The beginning of a piece: the whole piece, or the length of a string that follows.
pub(crate) enum Begun<'r> {
    Piece(Piece<'r>),
    Text(usize),
}

impl<'r> Pieces<'r> {
    /// At the beginning of a reply.
    #[inline]
    pub fn new(reply: &'r [u8]) -> Pieces<'r> {
        Pieces { rest: reply, later: Slices::default(), taken: 0 }
    }

    /// At the beginning of a reply of which strings may lie elsewhere. Each of them is one slice.
    pub fn of(reply: &'r Output) -> Pieces<'r> {
        Pieces { rest: b"", later: reply.slices(), taken: 0 }
    }

    /// The unread rest, of what lies in one piece with what was read.
    pub fn rest(&self) -> &'r [u8] {
        self.rest
    }

    /// How many bytes were read.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// The next string, if only its length is in the reply and its bytes are stored elsewhere.
    pub fn length(&mut self) -> Option<usize> {
        let (&kind, line) = self.line()?;
        if kind == b'$' { parse_i64(line)?.try_into().ok() } else { None }
    }

    /// Whether one whole reply follows, and nothing after it.
    pub fn are_whole(mut self) -> bool {
        self.pass_reply().is_some() && self.ahead(1).is_none()
    }

    fn line(&mut self) -> Option<(&'r u8, &'r [u8])> {
        self.come_to_next_slice();
        // Nearly all lines are a few digits, which are read faster than searched.
        let short = self.rest.iter().take(SHORT_LINE).position(|byte| *byte == b'\r');
        let end = match short {
            Some(end) => end,
            None => memchr::memchr(b'\r', self.rest)?,
        };
        let (kind, line) = self.rest[..end].split_first()?;
        self.pass(end + 2)?;
        Some((kind, line))
    }

    #[inline]
    fn come_to_next_slice(&mut self) {
        if self.rest.is_empty()
            && let Some(next) = self.later.next()
        {
            self.rest = next;
        }
    }

    /// Goes past bytes of the present slice.
    #[inline]
    fn pass(&mut self, count: usize) -> Option<()> {
        self.rest = self.rest.get(count..)?;
        self.taken += count;
        Some(())
    }

    /// The next bytes, which stay unread. A string lies in one slice.
    pub(crate) fn ahead(&mut self, count: usize) -> Option<&'r [u8]> {
        self.come_to_next_slice();
        self.rest.get(..count)
    }

    /// Reads bytes of a string, or the whole.
    pub(crate) fn part(&mut self, count: usize) -> Option<&'r [u8]> {
        let bytes = self.ahead(count)?;
        self.pass(count)?;
        Some(bytes)
    }

    /// Reads the line end behind a string.
    pub(crate) fn end_of_text(&mut self) -> Option<()> {
        self.come_to_next_slice();
        self.pass(2)
    }

    /// Reads a whole string.
    pub(crate) fn text(&mut self, length: usize) -> Option<&'r [u8]> {
        let bytes = self.part(length)?;
        self.end_of_text()?;
        Some(bytes)
    }

    /// Reads the beginning of a piece. Attributes of a reply say nothing in other forms.
    pub(crate) fn begin(&mut self) -> Option<Begun<'r>> {
        let (kind, line) = self.line()?;
        let number = || parse_i64(line);
        let count = || usize::try_from(number()?).ok();
        Some(Begun::Piece(match kind {
            b'+' => Piece::Status(line),
            b'-' => Piece::Error(line),
            b':' => Piece::Integer(number()?),
            b'$' | b'=' | b'!' if number()? >= 0 => {
                // Three letters and a colon give the kind of a text.
                let kind_of_text = if *kind == b'=' { 4 } else { 0 };
                self.part(kind_of_text)?;
                return Some(Begun::Text(count()?.checked_sub(kind_of_text)?));
            }
            b'*' | b'~' | b'>' if number()? >= 0 => Piece::Array(count()?),
            b'%' => Piece::Map(count()?),
            b'$' | b'*' | b'_' => Piece::Null,
            b',' | b'(' => Piece::Double(line),
            b'#' => Piece::Boolean(line == b"t"),
            b'|' => {
                (0..count()?.checked_mul(2)?).try_for_each(|_| self.pass_reply())?;
                return self.begin();
            }
            _ => return None,
        }))
    }

    /// Goes past a whole reply.
    fn pass_reply(&mut self) -> Option<()> {
        let mut left: usize = 1;
        while left > 0 {
            left -= 1;
            left = left.checked_add(match self.next()? {
                Piece::Array(count) => count,
                Piece::Map(pairs) => pairs.checked_mul(2)?,
                _ => 0,
            })?;
        }
        Some(())
    }
}

impl<'r> Iterator for Pieces<'r> {
    type Item = Piece<'r>;

    /// The next piece, if the reply has one.
    #[inline]
    fn next(&mut self) -> Option<Piece<'r>> {
        match self.begin()? {
            Begun::Piece(piece) => Some(piece),
            Begun::Text(length) => Some(Piece::Bytes(self.text(length)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::limits;
    use resp::reply::Reply;

    use super::*;

    #[test]
    fn attributes_are_passed_over() {
        let reply = b"|1\r\n$1\r\na\r\n*1\r\n:5\r\n:7\r\n";
        let mut pieces = Pieces::new(reply);
        assert_eq!((pieces.next(), pieces.next()), (Some(Piece::Integer(7)), None));
        assert!(Pieces::new(reply).are_whole());
        assert!(!Pieces::new(b"*2\r\n:1\r\n").are_whole());
        assert!(!Pieces::new(b":1\r\n:2\r\n").are_whole());
    }

    #[test]
    fn strings_that_lie_elsewhere_are_read_where_they_lie() {
        let long = Arc::new(vec![b'x'; limits::SHARED_REPLY]);
        let mut output = Output::new();
        let mut reply = Reply::new(&mut output, true);
        reply.array(4);
        for text in [&long, &long] {
            reply.bulk_shared(text);
        }
        reply.integer(1);
        reply.bulk_shared(&long);
        let mut pieces = Pieces::of(&output);
        assert_eq!(pieces.next(), Some(Piece::Array(4)));
        for _ in 0..2 {
            let Some(Piece::Bytes(text)) = pieces.next() else { panic!("a string") };
            assert_eq!((text.as_ptr(), text.len()), (long.as_ptr(), long.len()));
        }
        assert_eq!(pieces.next(), Some(Piece::Integer(1)));
        assert_eq!(pieces.next(), Some(Piece::Bytes(&long)));
        assert_eq!((pieces.next(), pieces.taken()), (None, output.len()));
        assert!(Pieces::of(&output).are_whole());
    }
}
