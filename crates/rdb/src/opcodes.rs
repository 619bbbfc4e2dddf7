//! The numbers of the format.

/// A type byte: how a value is laid out, see [`Layout`](crate::Layout). Counted strings first,
/// packed blocks later in history.
pub(crate) mod kind {
    pub(crate) const STRING: u8 = 0;
    pub(crate) const LIST: u8 = 1;
    pub(crate) const SET: u8 = 2;
    pub(crate) const ZSET: u8 = 3;
    pub(crate) const HASH: u8 = 4;
    pub(crate) const ZSET_BINARY: u8 = 5;
    pub(crate) const MODULE_EARLY: u8 = 6;
    pub(crate) const MODULE: u8 = 7;
    pub(crate) const HASH_ZIPMAP: u8 = 9;
    pub(crate) const LIST_ZIPLIST: u8 = 10;
    pub(crate) const SET_INTSET: u8 = 11;
    pub(crate) const ZSET_ZIPLIST: u8 = 12;
    pub(crate) const HASH_ZIPLIST: u8 = 13;
    pub(crate) const LIST_OF_ZIPLISTS: u8 = 14;
    pub(crate) const STREAM_1: u8 = 15;
    pub(crate) const HASH_LISTPACK: u8 = 16;
    pub(crate) const ZSET_LISTPACK: u8 = 17;
    pub(crate) const LIST_OF_NODES: u8 = 18;
    pub(crate) const STREAM_2: u8 = 19;
    pub(crate) const SET_LISTPACK: u8 = 20;
    pub(crate) const STREAM_3: u8 = 21;
    pub(crate) const HASH_EXPIRING_EARLY: u8 = 22;
    pub(crate) const HASH_EXPIRING_VALKEY: u8 = 22;
    pub(crate) const HASH_EXPIRING_LISTPACK_EARLY: u8 = 23;
    pub(crate) const HASH_EXPIRING: u8 = 24;
    pub(crate) const HASH_EXPIRING_LISTPACK: u8 = 25;
    pub(crate) const STREAM_4: u8 = 26;
    pub(crate) const STREAM_5: u8 = 27;
}

/// Opcodes, which stand in place of a type byte: the highest numbers, counted down in history.
pub(crate) mod opcode {
    /// Valkey: a running migration of slots. A name, and counted pairs of slots.
    pub(crate) const SLOT_IMPORT: u8 = 243;
    /// How many keys a slot has: slot, keys, keys that expire.
    pub(crate) const SLOT_INFO: u8 = 244;
    /// The source of a library of functions.
    pub(crate) const FUNCTION: u8 = 245;
    /// A function as the release candidates of 7.0 wrote it: name, engine, description, source.
    pub(crate) const FUNCTION_EARLY: u8 = 246;
    /// Data of a module besides values: its id, then as in a [`kind::MODULE`](super::kind).
    pub(crate) const MODULE_AUX: u8 = 247;
    /// The next key was not used for this many seconds.
    pub(crate) const IDLE: u8 = 248;
    /// How often the next key was used, as one byte.
    pub(crate) const FREQUENCY: u8 = 249;
    /// A name and a text.
    pub(crate) const AUX: u8 = 250;
    /// How many keys the database has, and how many of them expire.
    pub(crate) const RESIZE: u8 = 251;
    /// When the next key expires, in milliseconds, eight bytes.
    pub(crate) const EXPIRE_MS: u8 = 252;
    /// When the next key expires, in seconds, four bytes.
    pub(crate) const EXPIRE_SECONDS: u8 = 253;
    /// The database of the keys that follow.
    pub(crate) const SELECT: u8 = 254;
    /// The end. Since version 5 a checksum follows.
    pub(crate) const END: u8 = 255;
}

/// The pieces of a module's value, each after one of these numbers.
pub(crate) mod module {
    pub(crate) const END: u64 = 0;
    pub(crate) const SIGNED: u64 = 1;
    pub(crate) const UNSIGNED: u64 = 2;
    pub(crate) const FLOAT: u64 = 3;
    pub(crate) const DOUBLE: u64 = 4;
    pub(crate) const STRING: u64 = 5;
}

/// How a node of a [`kind::LIST_OF_NODES`] stores its elements.
pub(crate) mod container {
    /// One large element as it is.
    pub(crate) const PLAIN: u64 = 1;
    /// A listpack.
    pub(crate) const PACKED: u64 = 2;
}

/// The first byte of a length. Its two highest bits say what follows.
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

/// A score in text has its length in one byte; the highest lengths stand for values that are not
/// numbers.
pub(crate) mod score {
    pub(crate) const NAN: u8 = 253;
    pub(crate) const INFINITY: u8 = 254;
    pub(crate) const NEGATIVE_INFINITY: u8 = 255;
}
