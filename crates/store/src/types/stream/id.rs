//! The ids of entries.

/// Bytes of an id in a file.
const BYTES: usize = 16;

/// Some ids, a few of them without an allocation.
pub type StreamIds = smallvec::SmallVec<[StreamId; 16]>;

/// When an entry came, in milliseconds of Unix time, and its number within that millisecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct StreamId {
    /// Milliseconds.
    pub ms: u64,
    /// The number.
    pub seq: u64,
}

impl StreamId {
    /// The smallest, which no entry has.
    pub const MIN: StreamId = StreamId { ms: 0, seq: 0 };
    /// The largest.
    pub const MAX: StreamId = StreamId { ms: u64::MAX, seq: u64::MAX };

    /// An id of both parts.
    pub const fn new(ms: u64, seq: u64) -> StreamId {
        StreamId { ms, seq }
    }

    /// Whether it is the smallest.
    pub fn is_min(self) -> bool {
        self == Self::MIN
    }

    /// The next one, if there is one.
    pub fn next(self) -> Option<StreamId> {
        match self {
            StreamId { ms, seq: u64::MAX } => Some(StreamId::new(ms.checked_add(1)?, 0)),
            StreamId { ms, seq } => Some(StreamId::new(ms, seq + 1)),
        }
    }

    /// The one before, if there is one.
    pub fn previous(self) -> Option<StreamId> {
        match self {
            StreamId { ms, seq: 0 } => Some(StreamId::new(ms.checked_sub(1)?, u64::MAX)),
            StreamId { ms, seq } => Some(StreamId::new(ms, seq - 1)),
        }
    }

    /// The bytes in files: their order is that of the ids.
    pub fn to_bytes(self) -> [u8; BYTES] {
        ((u128::from(self.ms) << 64) | u128::from(self.seq)).to_be_bytes()
    }

    /// Reads the bytes that [`StreamId::to_bytes`] gives.
    pub fn from_bytes(bytes: [u8; BYTES]) -> StreamId {
        let number = u128::from_be_bytes(bytes);
        StreamId { ms: (number >> 64) as u64, seq: number as u64 }
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_carry_over() {
        let pairs = [
            (StreamId::MIN, StreamId::new(0, 1)),
            (StreamId::new(5, u64::MAX), StreamId::new(6, 0)),
            (StreamId::new(u64::MAX, 7), StreamId::new(u64::MAX, 8)),
        ];
        for (one, other) in pairs {
            assert_eq!((one.next(), other.previous()), (Some(other), Some(one)));
            assert!(one < other && one.to_bytes() < other.to_bytes());
            assert_eq!(StreamId::from_bytes(other.to_bytes()), other);
        }
        assert_eq!((StreamId::MIN.previous(), StreamId::MAX.next()), (None, None));
    }
}
