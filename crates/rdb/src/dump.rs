//! The payload of DUMP and RESTORE: one value, the format's version, a checksum.
//!
//! ```text
//! +-----------+-------+----------------+--------------------------------+
//! | type byte | value | version u16 LE | CRC-64 of all before it u64 LE |
//! +-----------+-------+----------------+--------------------------------+
//! ```

use base::crc::crc64;
use store::{Value, ValueRef};

use crate::file::NEWEST_VALKEY;
use crate::layout::{Dialect, Layout};
use crate::opcodes::opcode;
use crate::read::{Input, ReadError, Reader};
use crate::value::ValueLimits;
use crate::write::Writer;
use crate::{FILE_VERSION, FILE_VERSION_WITH_EXPIRING_FIELDS};

/// The version that the payload states: that of Redis 8.0.
pub const DUMP_VERSION: u16 = 12;

/// Why a payload was refused.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It is not a payload, is damaged, or comes from a newer server.
    #[error("version or checksum are wrong")]
    Footer,
    /// Its checksum is right, but it contains no value.
    #[error(transparent)]
    Value(#[from] ReadError),
}

/// Appends type and value, without a footer. `compress` is the setting `rdbcompression`.
pub fn serialize(value: ValueRef<'_>, compress: bool, payload: &mut Vec<u8>) {
    let mut writer = Writer::new(payload, compress);
    let written = writer.kind(value).and_then(|()| writer.value(value));
    written.expect("writing to memory cannot fail");
}

/// The payload of a value; `compress` is the setting `rdbcompression`.
pub fn dump(value: ValueRef<'_>, compress: bool) -> Vec<u8> {
    let mut payload = Vec::new();
    serialize(value, compress, &mut payload);
    seal(&mut payload, DUMP_VERSION);
    payload
}

/// The payload of a value for another server: of the oldest version that has what the value needs,
/// since a server refuses payloads of newer versions than its own.
pub fn dump_for_others(value: ValueRef<'_>, compress: bool) -> Vec<u8> {
    let mut payload = Vec::new();
    serialize(value, compress, &mut payload);
    let expires = matches!(value, ValueRef::Hash(hash) if hash.next_expiry().is_some());
    let version = if expires { FILE_VERSION_WITH_EXPIRING_FIELDS } else { FILE_VERSION };
    seal(&mut payload, version);
    payload
}

/// Appends the footer.
fn seal(payload: &mut Vec<u8>, version: u16) {
    payload.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64(payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
}

/// Reads the value from a payload that [`dump`] made, here or elsewhere. Bytes between value and
/// footer are ignored, as in Redis. Strings may be borrowed from the payload. Without `verify` the
/// checksum may be any, but not the version. Fields of a hash that have expired are kept, like
/// expired keys that no command has met yet.
///
/// # Errors
/// [`RestoreError`]. The payload may come from anywhere: all of it is checked.
pub fn restore<'p>(
    payload: &'p [u8],
    limits: &ValueLimits,
    verify: bool,
) -> Result<Value<'p>, RestoreError> {
    let (body, dialect) = body(payload, verify).ok_or(RestoreError::Footer)?;
    let mut reader = Reader::new(body);
    // What is newer than the newest payload is no value of one.
    let is_known = |layout: &Layout| !matches!(layout, Layout::Stream4 | Layout::Stream5);
    let layout = Layout::from_byte(reader.byte()?, dialect).filter(is_known);
    let layout = layout.ok_or(ReadError::Malformed("an unknown type of value"))?;
    let value = reader.value(layout, limits, 0)?;
    Ok(value.ok_or(ReadError::Malformed("a collection is empty"))?)
}

/// The payload of FUNCTION DUMP: the sources of libraries. `compress` as in [`dump`].
pub fn dump_functions<'s>(sources: impl Iterator<Item = &'s [u8]>, compress: bool) -> Vec<u8> {
    let mut payload = Vec::new();
    for source in sources {
        payload.push(opcode::FUNCTION);
        let written = Writer::new(&mut payload, compress).string(source);
        written.expect("writing to memory cannot fail");
    }
    seal(&mut payload, DUMP_VERSION);
    payload
}

/// The sources of libraries in a payload that [`dump_functions`] made, here or elsewhere.
///
/// # Errors
/// [`RestoreError`]. The payload may come from anywhere: all of it is checked.
pub fn restore_functions(payload: &[u8]) -> Result<Vec<Vec<u8>>, RestoreError> {
    let (body, _) = body(payload, true).ok_or(RestoreError::Footer)?;
    let mut reader = Reader::new(body);
    let mut sources = Vec::new();
    while reader.position() < body.len() {
        if reader.byte()? != opcode::FUNCTION {
            return Err(ReadError::Malformed("something else than a library").into());
        }
        sources.push(reader.string()?.into_owned());
    }
    Ok(sources)
}

/// The part of a payload that its footer vouches for, or seems to when it is not verified; and its
/// dialect: the versions of Valkey's own begin far above those of Redis.
fn body(payload: &[u8], verify: bool) -> Option<(&[u8], Dialect)> {
    let (covered, checksum) = payload.split_last_chunk()?;
    let (body, version) = covered.split_last_chunk()?;
    let dialect = match u16::from_le_bytes(*version) {
        ..=DUMP_VERSION => Dialect::Redis,
        version if u32::from(version) == NEWEST_VALKEY => Dialect::Valkey,
        _ => return None,
    };
    let genuine = !verify || u64::from_le_bytes(*checksum) == crc64(covered);
    genuine.then_some((body, dialect))
}

#[cfg(test)]
mod tests;
