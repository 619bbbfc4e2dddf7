//! Packed collections: small data types as one heap block each.
//!
//! A collection of a few dozen members costs more in pointers than in data, so small hashes, sets,
//! sorted sets and the nodes of lists are byte blocks that are searched front to back. The bytes
//! are those of Redis's own `listpack` and `intset`, so a dump takes them, and a restore gives
//! them, as they are.
//!
//! Dunlin adds the ownership around the bytes:
//!
//! * [`Listpack`] and [`Intset`] are one thin pointer to a block that stores nothing but the
//!   format: the length stands in the format's header, and the capacity is what the allocator gives
//!   for that length ([`good_size`]), so there is no field for either.
//! * [`ListpackSlice`] is to `Listpack` what `str` is to `String`: all reading lives there, and the
//!   nodes of a list read through it as well.
//! * `Node` is a list's block: the same bytes with free room on both sides, so that a push at the
//!   front moves nothing, and with a reference count, so that a snapshot shares it.
//!
//! Bytes from outside are validated entry by entry once, on the way in. From then on reading relies
//! on them, but through checked slices: a bug here would panic, it could not read foreign memory.

mod element;
mod encoded;
mod form;
mod intset;
mod listpack;
mod node;
mod slice;
mod thin;

#[cfg(test)]
mod tests;

pub use base::size_class::good_size;
pub use element::{Element, INTEGER_TEXT_BYTES, Needle, OwnedElement, format_integer};
pub use encoded::Encoded;
pub use intset::{Intset, IntsetIter};
pub use listpack::Listpack;
pub use slice::{Elements, Entries, ListpackSlice, MAX_LISTPACK_BYTES, Position};

pub(crate) use form::{Either, EitherBlock, EitherMut, Form, FormMut, ListpackMut, PackedOr};
pub(crate) use node::{Growth, HEAD_BYTES as NODE_HEAD_BYTES, Node};
pub(crate) use slice::EMPTY_BYTES as EMPTY_LISTPACK_BYTES;

/// Which end of a sequence an operation works at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The head: index 0.
    Front,
    /// The tail: index -1.
    Back,
}

/// Why bytes from outside were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackError {
    /// Shorter than the smallest block, or its length field disagrees with the bytes at hand.
    Length,
    /// An entry has an unknown encoding, runs past the end, or its back length is wrong.
    Entry,
    /// The element count in the header is not the number of entries.
    Count,
    /// An intset whose width is none of 2, 4 and 8 bytes.
    Width,
    /// An intset whose integers are not strictly ascending.
    Order,
    /// An intset without members, which no set can be.
    Empty,
}

impl std::fmt::Display for PackError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PackError::Length => "packed block: length field and size disagree",
            PackError::Entry => "listpack: malformed entry",
            PackError::Count => "listpack: wrong element count",
            PackError::Width => "intset: unknown integer width",
            PackError::Order => "intset: integers not strictly ascending",
            PackError::Empty => "intset: no members",
        })
    }
}

impl std::error::Error for PackError {}
