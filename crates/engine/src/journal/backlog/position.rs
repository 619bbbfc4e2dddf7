//! Places in the journal, as followers know them.

use std::fmt;

/// A place in the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// The name of the history.
    pub history: String,
    /// Bytes of the stream before it, as this history counts them.
    pub offset: u64,
}

impl Position {
    /// Parses the form that [`Position`]'s `Display` writes.
    pub fn parse(text: &[u8]) -> Option<Position> {
        let text = std::str::from_utf8(text).ok()?;
        let (history, offset) = text.split_once(':')?;
        let is_number = !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_digit());
        let offset = offset.parse().ok().filter(|_| is_number)?;
        // Positions occur in headers and in lines of events.
        let is_name =
            !history.is_empty() && history.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_name.then(|| Position { history: history.to_owned(), offset })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.history, self.offset)
    }
}

/// From where a client wants to follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Since {
    /// From now on.
    Now,
    /// From the oldest that is kept.
    Oldest,
    /// After this.
    Position(Position),
}

/// The requested part is not kept, or never was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gone {
    /// The oldest position from which one can follow.
    pub oldest: String,
    /// The present one.
    pub newest: String,
}

impl fmt::Display for Gone {
    /// An error reply, without the dash before it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "GONE oldest={} newest={} what follows that position is not kept: read the keys anew, and \
             follow from newest",
            self.oldest, self.newest
        )
    }
}

/// The names of the present history and of the one before it, with offsets as histories count them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histories {
    /// The present one: 40 hexadecimal digits, unless another server has given it another name.
    pub present: String,
    /// The offset before the oldest byte that is kept.
    pub oldest: u64,
    /// The offset after the newest.
    pub newest: u64,
    /// The one before it, and the offset up to which its positions are those of the present one.
    pub previous: Option<Position>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        let position = Position { history: "ab12".into(), offset: 7 };
        assert_eq!(Position::parse(position.to_string().as_bytes()), Some(position));
        let long = "a:99999999999999999999";
        for wrong in ["", ":", "a:", ":1", "a:-1", "a:+1", "a:1x", "a\r\nX: y:1", "a b:1", long] {
            assert_eq!(Position::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
