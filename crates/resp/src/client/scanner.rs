//! Finds where replies end, in pieces of any size, without keeping them: the body of a long string
//! is counted down and never copied. It looks only at lines with lengths, and at the first word of
//! an error.

use base::limits;
use base::num::parse_i64;

use super::error::ReplyError;

/// How much of an unfinished line is kept: more than a number needs, and enough for the word of an
/// error.
const KEPT_LINE: usize = 64;

/// What ends somewhere in the bytes.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// A reply.
    Reply {
        /// Its length, with that of the messages that the server pushed before it.
        length: u64,
        /// Its line, when it is an error.
        error: Option<&'a [u8]>,
    },
    /// A message that the server pushed, which answers no request.
    Push,
}

/// The scanner of one connection.
#[derive(Debug, Default)]
pub struct ReplyScanner {
    /// Bytes of a string, its line end included, that are still to come.
    to_skip: u64,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    /// For each collection open here, how many replies it still lacks.
    open: Vec<u64>,
    /// Bytes of the reply so far.
    length: u64,
    /// The message answers no request.
    is_push: bool,
    /// The line of the error that the reply is.
    error: Option<Vec<u8>>,
}

impl ReplyScanner {
    /// Takes the next bytes, and calls `reply` for each reply that ends within them, with its
    /// length, and with its line when it is an error. A message pushed by the server counts only
    /// for the length of the reply after it.
    ///
    /// # Errors
    /// [`ReplyError`] when these are not replies; the connection is of no use any more.
    #[inline]
    pub fn scan(
        &mut self,
        bytes: &[u8],
        mut reply: impl FnMut(u64, Option<&[u8]>),
    ) -> Result<(), ReplyError> {
        let all = self.scan_until(bytes, |found| {
            if let Found::Reply { length, error } = found {
                reply(length, error);
            }
            false
        });
        all.map(drop)
    }

    /// Takes the next bytes up to the end of the first reply or message for which `is_enough`, or
    /// else all of them; returns how many it took.
    ///
    /// # Errors
    /// [`ReplyError`] when these are not replies; the connection is of no use any more.
    #[inline]
    pub fn scan_until(
        &mut self,
        all: &[u8],
        mut is_enough: impl FnMut(Found<'_>) -> bool,
    ) -> Result<usize, ReplyError> {
        let mut bytes = all;
        loop {
            if self.to_skip > 0 {
                let skipped = self.to_skip.min(bytes.len() as u64);
                self.to_skip -= skipped;
                self.length += skipped;
                bytes = &bytes[skipped as usize..];
                if self.to_skip > 0 {
                    return Ok(all.len());
                }
                if self.leave(&mut is_enough) {
                    return Ok(all.len() - bytes.len());
                }
            }
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                self.keep(bytes)?;
                return Ok(all.len());
            };
            let (line, rest) = bytes.split_at(end + 1);
            self.length += line.len() as u64;
            bytes = rest;
            let whole = if self.line.is_empty() {
                self.take_line(line)?
            } else {
                let mut kept = std::mem::take(&mut self.line);
                let room = KEPT_LINE.saturating_sub(kept.len());
                // The line end is needed even if the middle of the line is not.
                kept.extend_from_slice(&line[..room.min(line.len())]);
                if kept.last() != Some(&b'\n') {
                    kept.extend_from_slice(b"\r\n");
                }
                let whole = self.take_line(&kept)?;
                kept.clear();
                self.line = kept;
                whole
            };
            if whole && self.leave(&mut is_enough) {
                return Ok(all.len() - bytes.len());
            }
        }
    }

    /// Forgets the unfinished reply, for a new connection.
    pub fn reset(&mut self) {
        *self = ReplyScanner::default();
    }

    /// Parses a line with its end; returns whether it is a whole reply.
    #[inline]
    fn take_line(&mut self, line: &[u8]) -> Result<bool, ReplyError> {
        match line[0] {
            b'+' | b':' | b'_' | b'#' | b',' | b'(' => Ok(true),
            b'$' | b'=' => self.string(line),
            b'-' => {
                if self.open.is_empty() {
                    self.error = Some(line[1..].trim_ascii_end().to_vec());
                }
                Ok(true)
            }
            b'!' => {
                if self.open.is_empty() {
                    self.error = Some(b"error".to_vec());
                }
                self.string(line)
            }
            b'*' | b'~' => self.collection(count(line)?),
            b'>' => {
                self.is_push |= self.open.is_empty();
                self.collection(count(line)?)
            }
            b'%' => self.collection(count(line)?.map(|pairs| 2 * pairs)),
            // Attributes come before the reply they belong to: together they are one.
            b'|' => self.collection(Some(2 * count(line)?.unwrap_or(0) + 1)),
            other => Err(ReplyError::UnknownKind(other)),
        }
    }

    #[inline]
    fn string(&mut self, line: &[u8]) -> Result<bool, ReplyError> {
        match count(line)? {
            None => Ok(true),
            Some(length) if length > limits::MAX_REPLY_BULK => Err(ReplyError::InvalidNumber),
            Some(length) => {
                self.to_skip = length + 2;
                Ok(false)
            }
        }
    }

    /// Opens a collection of this many replies; returns whether it is complete already.
    fn collection(&mut self, count: Option<u64>) -> Result<bool, ReplyError> {
        let Some(count) = count.filter(|count| *count > 0) else { return Ok(true) };
        if self.open.len() == limits::MAX_REPLY_NESTING {
            return Err(ReplyError::TooDeep);
        }
        self.open.push(count);
        Ok(false)
    }

    /// Counts a complete reply in the collections around it. When all of them are complete, it
    /// tells what has ended; returns whether that is enough.
    #[inline]
    fn leave(&mut self, is_enough: &mut impl FnMut(Found<'_>) -> bool) -> bool {
        while let Some(lacking) = self.open.last_mut() {
            *lacking -= 1;
            if *lacking > 0 {
                return false;
            }
            self.open.pop();
        }
        if std::mem::take(&mut self.is_push) {
            return is_enough(Found::Push);
        }
        let length = std::mem::take(&mut self.length);
        match self.error.take() {
            None => is_enough(Found::Reply { length, error: None }),
            Some(error) => is_enough(Found::Reply { length, error: Some(&error) }),
        }
    }

    /// Keeps the beginning of a line.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), ReplyError> {
        self.length += bytes.len() as u64;
        let room = KEPT_LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..room.min(bytes.len())]);
        match self.line.first() {
            // A status, an error or a fraction may be long; the line of a length never is.
            None | Some(b'+' | b'-' | b'(' | b',') => Ok(()),
            Some(_) if self.line.len() < KEPT_LINE => Ok(()),
            Some(_) => Err(ReplyError::LineTooLong),
        }
    }
}

/// The number in a line; `None` for -1, which stands for no string or no array.
#[inline]
fn count(line: &[u8]) -> Result<Option<u64>, ReplyError> {
    // The parser reads the same bytes again and must find the same numbers, so line ends are exact.
    let digits = line.strip_suffix(b"\r\n").and_then(|line| line.get(1..));
    let digits = digits.ok_or(ReplyError::InvalidNumber)?;
    if let [digit @ b'0'..=b'9'] = digits {
        return Ok(Some(u64::from(digit - b'0')));
    }
    match parse_i64(digits) {
        Some(-1) => Ok(None),
        // Doubling it must not overflow.
        Some(count @ 0..=0x7fff_ffff_ffff) => Ok(Some(count as u64)),
        _ => Err(ReplyError::InvalidNumber),
    }
}

#[cfg(test)]
mod tests;
