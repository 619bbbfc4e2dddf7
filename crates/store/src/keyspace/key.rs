//! A key as the keyspace looks for it.

/// A key with everything that accesses need of it, computed once.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key itself.
    pub bytes: &'a [u8],
    /// Its hash: see [`base::hash`].
    pub hash: u64,
    /// Its slot: see [`base::crc::key_slot`].
    pub slot: u16,
}

impl<'a> Key<'a> {
    /// Hashes a key.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, hash: base::hash::hash(bytes), slot: base::crc::key_slot(bytes) }
    }
}
