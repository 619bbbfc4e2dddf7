//! What may be wrong with a stream that comes from outside.

use crate::pack::PackError;

/// Why something from outside is no stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// A block is laid out differently.
    Block,
    /// A block is no listpack.
    Listpack(PackError),
    /// Ids do not ascend.
    Order,
    /// A number of entries is wrong.
    Count,
    /// A pending entry occurs twice, or does not belong to exactly one consumer.
    PendingEntry,
    /// A consumer occurs twice.
    Consumer,
    /// A group occurs twice.
    Group,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Malformed::Block => "stream: a malformed block of entries",
            Malformed::Listpack(error) => return error.fmt(f),
            Malformed::Order => "stream: ids do not ascend",
            Malformed::Count => "stream: a wrong number of entries",
            Malformed::PendingEntry => "stream: a pending entry that is not one consumer's",
            Malformed::Consumer => "stream: a consumer occurs twice",
            Malformed::Group => "stream: a group occurs twice",
        })
    }
}

impl std::error::Error for Malformed {}
