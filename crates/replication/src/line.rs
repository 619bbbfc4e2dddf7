//! Lines that arrive in pieces.

use memchr::memchr;

use crate::error::LinkError;

/// Longest line of a handshake, in bytes.
pub const LONGEST: usize = 4096;

/// The beginning of a line whose end is still to come.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Takes the bytes up to the end of the next line away from `bytes`. Returns the line without
    /// its end, or nothing if it does not end in these bytes.
    ///
    /// # Errors
    /// The line is too long.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, LinkError> {
        let end = memchr(b'\n', bytes);
        let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        *bytes = rest;
        if self.begun.len() + line.len() > LONGEST {
            return Err(LinkError::malformed("a line that does not end", &self.begun));
        }
        self.begun.extend_from_slice(line);
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.begun);
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_be_split_anywhere() {
        let text = b"+PONG\r\n\nrest";
        for at in 0..=text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            let mut left = Vec::new();
            for mut piece in [&text[..at], &text[at..]] {
                while found.len() < 2
                    && let Some(line) = lines.next(&mut piece).unwrap()
                {
                    found.push(line);
                }
                left.extend_from_slice(piece);
            }
            assert_eq!(found, [&b"+PONG"[..], b""], "{at}");
            assert!(b"rest".ends_with(&left), "{at}");
        }
    }

    #[test]
    fn a_line_has_an_end() {
        let mut lines = Lines::default();
        let piece = [b'x'; 1000];
        for _ in 0..LONGEST / 1000 {
            assert_eq!(lines.next(&mut &piece[..]), Ok(None));
        }
        let error = lines.next(&mut &piece[..]).unwrap_err();
        assert!(error.to_string().starts_with("a line that does not end: \"xxx"), "{error}");
        assert!(error.to_string().len() < 300);
    }
}
