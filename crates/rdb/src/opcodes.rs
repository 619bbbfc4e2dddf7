//! The numbers of the format.

/// A type byte: how a value is laid out. Lists of strings first, packed blocks later in history; 6
/// and 7 are modules' values, 15 and 19 streams.
pub(crate) mod kind {
    /// A string.
    pub(crate) const STRING: u8 = 0;
    /// A list as a sequence of strings.
    pub(crate) const LIST: u8 = 1;
    /// A set as a sequence of strings.
    pub(crate) const SET: u8 = 2;
    /// A sorted set as a sequence of strings and scores in text.
    pub(crate) const ZSET: u8 = 3;
    /// A hash as a sequence of strings.
    pub(crate) const HASH: u8 = 4;
    /// A sorted set as a sequence of strings and binary scores.
    pub(crate) const ZSET_BINARY: u8 = 5;
    /// A hash as a zipmap.
    pub(crate) const HASH_ZIPMAP: u8 = 9;
    /// A list as one ziplist.
    pub(crate) const LIST_ZIPLIST: u8 = 10;
    /// A set as an intset.
    pub(crate) const SET_INTSET: u8 = 11;
    /// A sorted set as a ziplist.
    pub(crate) const ZSET_ZIPLIST: u8 = 12;
    /// A hash as a ziplist.
    pub(crate) const HASH_ZIPLIST: u8 = 13;
    /// A list as a sequence of ziplists.
    pub(crate) const LIST_QUICKLIST: u8 = 14;
    /// A hash as a listpack.
    pub(crate) const HASH_LISTPACK: u8 = 16;
    /// A sorted set as a listpack.
    pub(crate) const ZSET_LISTPACK: u8 = 17;
    /// A list as a sequence of listpacks and single large elements.
    pub(crate) const LIST_QUICKLIST_2: u8 = 18;
}

/// How a node of a [`kind::LIST_QUICKLIST_2`] holds its elements.
pub(crate) mod container {
    /// One large element as it is.
    pub(crate) const PLAIN: u64 = 1;
    /// A listpack.
    pub(crate) const PACKED: u64 = 2;
}

/// The first byte of a length. The two highest bits say how it goes on.
pub(crate) mod length {
    /// `00`: the length is in the other six bits.
    pub(crate) const BITS_6: u8 = 0x00;
    /// `01`: the length is in the other six bits and the next byte, big-endian.
    pub(crate) const BITS_14: u8 = 0x40;
    /// The length is in the next four bytes, big-endian.
    pub(crate) const BYTES_4: u8 = 0x80;
    /// The length is in the next eight bytes, big-endian.
    pub(crate) const BYTES_8: u8 = 0x81;
    /// `11`: no length; the other six bits say how the string is encoded.
    pub(crate) const ENCODED: u8 = 0xc0;
    /// The two bits that decide.
    pub(crate) const MASK: u8 = 0xc0;
}

/// How a string is encoded that begins with [`length::ENCODED`].
pub(crate) mod encoding {
    /// An integer of one byte.
    pub(crate) const INT_8: u8 = 0;
    /// An integer of two bytes, little-endian.
    pub(crate) const INT_16: u8 = 1;
    /// An integer of four bytes, little-endian.
    pub(crate) const INT_32: u8 = 2;
    /// Compressed: compressed length, length, compressed bytes.
    pub(crate) const LZF: u8 = 3;
}

/// A score in text has its length in one byte, of which the highest stand for what is no number.
pub(crate) mod score {
    pub(crate) const NAN: u8 = 253;
    pub(crate) const INFINITY: u8 = 254;
    pub(crate) const NEGATIVE_INFINITY: u8 = 255;
}
