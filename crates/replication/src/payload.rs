//! The file with all data that a full sync sends: where it begins and ends.
//!
//! ```text
//! $<length>\r\n  length bytes of file
//! $EOF:<mark>\r\n  a file of unknown length, then the mark of 40 bytes
//! ```
//!
//! Empty lines before it say that the primary is alive. Nothing stands between the file and the
//! stream that follows it.

use memchr::memmem;

use crate::error::LinkError;

/// The bytes of a mark.
pub const MARK: usize = 40;

/// Where a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After this many bytes.
    Length(u64),
    /// Before these bytes.
    Mark([u8; MARK]),
}

impl End {
    /// Reads the line before the file, without its end. `None` if the line is empty.
    ///
    /// # Errors
    /// The line says something else.
    pub fn parse(line: &[u8]) -> Result<Option<End>, LinkError> {
        if line.is_empty() {
            return Ok(None);
        }
        if let Some(words) = line.strip_prefix(b"-") {
            return Err(LinkError::refused(words));
        }
        let malformed = || LinkError::malformed("no file begins with this line", line);
        let end = line.strip_prefix(b"$").ok_or_else(malformed)?;
        if let Some(mark) = end.strip_prefix(b"EOF:") {
            return mark.try_into().map(|mark| Some(End::Mark(mark))).map_err(|_| malformed());
        }
        let length = base::num::parse_i64(end).and_then(|length| u64::try_from(length).ok());
        length.map(|length| Some(End::Length(length))).ok_or_else(malformed)
    }
}

/// A file while it arrives.
#[derive(Debug)]
pub struct Payload {
    end: End,
    received: u64,
    /// The last bytes, which may be the beginning of the mark. Fewer than that has.
    withheld: Vec<u8>,
    over: bool,
}

impl Payload {
    /// A file of which nothing has arrived.
    pub fn new(end: End) -> Payload {
        Payload { end, received: 0, withheld: Vec::new(), over: end == End::Length(0) }
    }

    /// Bytes of the file so far, apart from those that may belong to the mark.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that the file has, if the primary has said that.
    pub fn total(&self) -> Option<u64> {
        match self.end {
            End::Length(length) => Some(length),
            End::Mark(_) => None,
        }
    }

    /// Whether all of it has arrived.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Takes bytes as they arrive, and appends those of the file to `file`. Returns how many of
    /// them it has taken: the others belong to what follows the file.
    pub fn take(&mut self, bytes: &[u8], file: &mut Vec<u8>) -> usize {
        if self.over {
            return 0;
        }
        let before = file.len();
        let taken = match self.end {
            End::Length(length) => {
                let left = usize::try_from(length - self.received).unwrap_or(usize::MAX);
                let taken = left.min(bytes.len());
                file.extend_from_slice(&bytes[..taken]);
                self.over = taken == left;
                taken
            }
            End::Mark(mark) => self.take_to_mark(&mark, bytes, file),
        };
        self.received += (file.len() - before) as u64;
        taken
    }

    fn take_to_mark(&mut self, mark: &[u8; MARK], bytes: &[u8], file: &mut Vec<u8>) -> usize {
        let begin = file.len();
        file.append(&mut self.withheld);
        let old = file.len() - begin;
        file.extend_from_slice(bytes);
        if let Some(at) = memmem::find(&file[begin..], mark) {
            file.truncate(begin + at);
            self.over = true;
            return at + MARK - old;
        }
        // The longest end that may be the beginning of the mark.
        let tail = file.len().saturating_sub(MARK - 1).max(begin);
        let kept = (tail..file.len()).find(|&from| mark.starts_with(&file[from..]));
        self.withheld = file.split_off(kept.unwrap_or(file.len()));
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MARKED: &[u8; MARK] = b"aabaabaabaabaabaabaabaabaabaabaabaabaabc";

    /// The file, and how many bytes follow it, when they arrive in these pieces.
    fn receive(end: End, pieces: &[&[u8]]) -> (Vec<u8>, usize, bool) {
        let (mut payload, mut file, mut rest) = (Payload::new(end), Vec::new(), 0);
        for piece in pieces {
            rest += piece.len() - payload.take(piece, &mut file);
        }
        assert_eq!(payload.received(), file.len() as u64);
        (file, rest, payload.is_over())
    }

    #[test]
    fn the_line_before_the_file_says_where_it_ends() {
        assert_eq!(End::parse(b""), Ok(None));
        assert_eq!(End::parse(b"$12"), Ok(Some(End::Length(12))));
        let line = [b"$EOF:", &MARKED[..]].concat();
        assert_eq!(End::parse(&line), Ok(Some(End::Mark(*MARKED))));
        for wrong in [
            &b"$"[..],
            b"$-1",
            b"$x",
            b"$EOF:",
            b"$EOF:short",
            b"$99999999999999999999999",
            b"*1",
            b"+FULLRESYNC",
        ] {
            assert!(matches!(End::parse(wrong), Err(LinkError::Malformed(_))));
        }
        assert_eq!(End::parse(b"-ERR no").unwrap_err(), LinkError::Refused("ERR no".to_owned()));
    }

    #[test]
    fn a_file_of_known_length_may_be_split_anywhere() {
        let bytes = b"0123456789*1\r\n";
        for at in 0..=bytes.len() {
            let pieces = [&bytes[..at], &bytes[at..]];
            let (file, rest, over) = receive(End::Length(10), &pieces);
            assert_eq!((&file[..], rest, over), (&bytes[..10], 4, true), "{at}");
        }
        assert!(Payload::new(End::Length(0)).is_over());
    }

    #[test]
    fn a_mark_may_be_split_anywhere() {
        let file = b"a file with aabaab in it aabaabaabaabaabaa";
        let bytes = [&file[..], MARKED, b"*1\r\n"].concat();
        for one in 0..=bytes.len() {
            for other in one..=bytes.len() {
                let pieces = [&bytes[..one], &bytes[one..other], &bytes[other..]];
                let (found, rest, over) = receive(End::Mark(*MARKED), &pieces);
                assert_eq!((&found[..], rest, over), (&file[..], 4, true), "{one} {other}");
            }
        }
        let each: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(receive(End::Mark(*MARKED), &each), (file.to_vec(), 4, true));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(
            file in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b')], 0..200),
            rest in 0usize..50,
            cuts in proptest::collection::vec(0usize..300, 0..8),
        ) {
            let bytes = [&file[..], MARKED, &vec![b'a'; rest]].concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(receive(End::Mark(*MARKED), &pieces), (file, rest, true));
        }
    }
}
