//! The payload of DUMP and RESTORE: one value, the format's version, a checksum.
//!
//! ```text
//! +-----------+-------+----------------+--------------------------------+
//! | type byte | value | version u16 LE | CRC-64 of all before it u64 LE |
//! +-----------+-------+----------------+--------------------------------+
//! ```

use base::crc::crc64;
use store::{Value, ValueRef};

use crate::VERSION;
use crate::read::{ReadError, Reader};
use crate::value::ValueLimits;
use crate::write::Writer;

/// Why a payload was refused.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It is no payload, was damaged, or a newer server made it.
    #[error("version or checksum are wrong")]
    Footer,
    /// Its checksum is right, but it holds no value.
    #[error(transparent)]
    Value(#[from] ReadError),
}

/// Serialises a value; `compress` is the setting `rdbcompression`.
pub fn dump(value: ValueRef<'_>, compress: bool) -> Vec<u8> {
    let mut payload = Vec::new();
    let mut writer = Writer::new(&mut payload, compress);
    let written = writer.kind(value).and_then(|()| writer.value(value));
    written.expect("writing to memory cannot fail");
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// Makes a value of what [`dump`] made of it, here or elsewhere. Bytes between value and footer are
/// passed over, as Redis does.
///
/// # Errors
/// [`RestoreError`]. The payload may come from anywhere: all of it is checked.
pub fn restore(payload: &[u8], limits: &ValueLimits) -> Result<Value<'static>, RestoreError> {
    let mut reader = Reader::new(body(payload).ok_or(RestoreError::Footer)?);
    let kind = reader.byte()?;
    Ok(reader.value(kind, limits)?)
}

/// What a payload's footer vouches for.
fn body(payload: &[u8]) -> Option<&[u8]> {
    let (covered, checksum) = payload.split_last_chunk()?;
    let (body, version) = covered.split_last_chunk()?;
    let genuine =
        u16::from_le_bytes(*version) <= VERSION && u64::from_le_bytes(*checksum) == crc64(covered);
    genuine.then_some(body)
}

#[cfg(test)]
mod tests;
