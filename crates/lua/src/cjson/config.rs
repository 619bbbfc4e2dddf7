//! The settings that scripts may choose.

/// What happens to numbers that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Invalid {
    Refuse,
    Print,
    Null,
}

/// The settings of one copy of the library.
#[derive(Clone, Copy, Debug)]
pub(super) struct CjsonConfig {
    /// Whether an array with too many holes becomes an object.
    pub(super) sparse_convert: bool,
    /// How many places an array may have for each element, 0 for any number.
    pub(super) sparse_ratio: i32,
    /// Arrays up to this length may have any holes.
    pub(super) sparse_safe: i32,
    pub(super) encode_depth: i32,
    pub(super) decode_depth: i32,
    pub(super) precision: i32,
    /// It is remembered, and has no effect: keeping a buffer concerns C's memory only.
    pub(super) keep_buffer: bool,
    pub(super) encode_invalid: Invalid,
    pub(super) decode_invalid: bool,
}

/// The settings of a new copy.
pub(super) const USUAL: CjsonConfig = CjsonConfig {
    sparse_convert: false,
    sparse_ratio: 2,
    sparse_safe: 10,
    encode_depth: 1000,
    decode_depth: 1000,
    precision: 14,
    keep_buffer: true,
    encode_invalid: Invalid::Refuse,
    decode_invalid: true,
};
