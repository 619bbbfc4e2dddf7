//! Finds where RESP replies end, in pieces of any size, without keeping them: the body of a long string
//! is counted down and never copied. It looks only at lines with lengths, and at the first word of an
//! error.

use base::limits;
use base::num::parse_i64;
use resp::client::ReplyError;

/// How much of an unfinished line is kept: more than a number needs, and enough for the word of an
/// error.
const KEPT_LINE: usize = 64;

/// The scanner of one connection.
#[derive(Debug, Default)]
pub(crate) struct ReplyScanner {
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
    /// Takes the next bytes, and calls `reply` for each reply that ends within them, with its length,
    /// and with its line when it is an error. A message pushed by the server counts only for the length
    /// of the reply after it.
    ///
    /// # Errors
    /// [`ReplyError`] when these are not replies; the connection is of no use any more.
    #[inline]
    pub(crate) fn scan(
        &mut self,
        mut bytes: &[u8],
        mut reply: impl FnMut(u64, Option<&[u8]>),
    ) -> Result<(), ReplyError> {
        loop {
            if self.to_skip > 0 {
                let skipped = self.to_skip.min(bytes.len() as u64);
                self.to_skip -= skipped;
                self.length += skipped;
                bytes = &bytes[skipped as usize..];
                if self.to_skip > 0 {
                    return Ok(());
                }
                self.leave(&mut reply);
            }
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                return self.keep(bytes);
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
            if whole {
                self.leave(&mut reply);
            }
        }
    }

    /// Forgets the unfinished reply, for a new connection.
    pub(crate) fn reset(&mut self) {
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
            b'*' | b'~' => self.collection(line, 1, 0),
            b'>' => {
                self.is_push |= self.open.is_empty();
                self.collection(line, 1, 0)
            }
            b'%' => self.collection(line, 2, 0),
            // Attributes come before the reply they belong to: together they are one.
            b'|' => self.collection(line, 2, 1),
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

    fn collection(&mut self, line: &[u8], factor: u64, more: u64) -> Result<bool, ReplyError> {
        let Some(count) = count(line)? else { return Ok(true) };
        let count = count * factor + more;
        if count == 0 {
            return Ok(true);
        }
        if self.open.len() == limits::MAX_REPLY_NESTING {
            return Err(ReplyError::TooDeep);
        }
        self.open.push(count);
        Ok(false)
    }

    /// Counts a complete reply in the collections around it, and returns whether all are complete.
    #[inline]
    fn leave(&mut self, reply: &mut impl FnMut(u64, Option<&[u8]>)) {
        while let Some(lacking) = self.open.last_mut() {
            *lacking -= 1;
            if *lacking > 0 {
                return;
            }
            self.open.pop();
        }
        if std::mem::take(&mut self.is_push) {
            return;
        }
        let length = std::mem::take(&mut self.length);
        match self.error.take() {
            None => reply(length, None),
            Some(error) => reply(length, Some(&error)),
        }
    }

    /// Keeps the beginning of a line.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), ReplyError> {
        self.length += bytes.len() as u64;
        let room = KEPT_LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..room.min(bytes.len())]);
        match self.line.first() {
            // A status or an error may be long; the line of a number never is.
            None | Some(b'+' | b'-' | b'(') => Ok(()),
            Some(_) if self.line.len() < KEPT_LINE => Ok(()),
            Some(_) => Err(ReplyError::LineTooLong),
        }
    }
}

/// The number in a line; `None` for -1, which stands for no string or no array.
#[inline]
fn count(line: &[u8]) -> Result<Option<u64>, ReplyError> {
    let digits = line.get(1..line.len().saturating_sub(2)).ok_or(ReplyError::InvalidNumber)?;
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
