//! A place in the stream of a server: the name of its history, and an offset.

use std::fmt;

use replication::id::HistoryId;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Everything up to `offset` bytes of the stream of this history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) history: HistoryId,
    pub(crate) offset: u64,
}

impl Position {
    /// Reads `history:offset`.
    pub(crate) fn parse(text: &str) -> Option<Position> {
        let (history, offset) = text.split_once(':')?;
        let history = HistoryId::parse(history.as_bytes())?;
        let digits = offset.bytes().all(|byte| byte.is_ascii_digit());
        let offset = offset.parse().ok().filter(|_| digits)?;
        Some(Position { history, offset })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.history, self.offset)
    }
}

impl Serialize for Position {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Position, D::Error> {
        let text = String::deserialize(deserializer)?;
        Position::parse(&text).ok_or_else(|| D::Error::custom(format!("'{text}' is no position")))
    }
}
