//! Writes repaired files beside the damaged originals.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use base::crc::Crc64;

use super::snapshot::{Gap, Snapshot};
use crate::aof::manifest::Manifest;
use crate::disk::{Disk, DiskFile};
use crate::originals::replace;

/// A part of a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// These bytes of the original.
    Copy(Range<u64>),
    /// Other bytes.
    Bytes(Vec<u8>),
    /// The checksum of all that comes before it.
    Checksum,
}

/// The opcodes of an RDB file for "a named text", "what follows is in this database" and "the file
/// ends".
const AUX: u8 = 250;
const SELECT: u8 = 254;
const END: u8 = 255;

/// The first version of RDB files that end with a checksum.
const FIRST_WITH_CHECKSUM: u32 = 5;

/// The pieces of an RDB file without its damaged entries.
pub(super) fn whole_snapshot(found: &Snapshot, version: u32) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for gap in &found.gaps {
        let attributes = attributes(gap);
        debug_assert!(attributes.is_ok(), "writing to memory succeeds");
        let bytes = Piece::Bytes(attributes.unwrap_or_default());
        pieces.extend([Piece::Copy(at..gap.place.start), bytes]);
        at = gap.place.end;
    }
    pieces.extend([Piece::Copy(at..found.good), Piece::Bytes(vec![END])]);
    if version >= FIRST_WITH_CHECKSUM {
        pieces.push(Piece::Checksum);
    }
    pieces
}

/// What a part that is left out may have said of the entries after it.
fn attributes(gap: &Gap) -> io::Result<Vec<u8>> {
    let mut bytes = vec![SELECT];
    rdb::Writer::new(&mut bytes, false).length(gap.database as u64)?;
    if let Some(content_type) = &gap.content_type {
        bytes.push(AUX);
        let mut writer = rdb::Writer::new(&mut bytes, false);
        writer.string(rdb::file::CONTENT_TYPE.as_bytes())?;
        writer.string(content_type)?;
    }
    Ok(bytes)
}

/// The same pieces, or the whole file where there are none, with other bytes at the very beginning.
pub(super) fn begin_with(magic: &[u8], pieces: &[Piece], size: u64) -> Vec<Piece> {
    let length = magic.len() as u64;
    let (end, others) = match pieces {
        [Piece::Copy(first), others @ ..] => (first.end, others),
        others => (size, others),
    };
    let mut changed = vec![Piece::Bytes(magic.to_vec()), Piece::Copy(length..end)];
    changed.extend_from_slice(others);
    changed
}

/// Makes a file of pieces of itself. Returns where the original is now, and the new size.
///
/// # Errors
/// The system's; the file is then unchanged.
pub(super) fn rebuild(
    disk: &dyn Disk,
    path: &Path,
    pieces: &[Piece],
) -> io::Result<(PathBuf, u64)> {
    let mut size = 0;
    let original = replace(disk, path, |output| {
        let mut input = File::open(path)?;
        let mut output = Counted { output, size: 0, checksum: Crc64::new() };
        for piece in pieces {
            match piece {
                Piece::Bytes(bytes) => output.write_all(bytes)?,
                Piece::Checksum => {
                    let checksum = output.checksum.value().to_le_bytes();
                    output.write_all(&checksum)?;
                }
                Piece::Copy(range) => {
                    input.seek(io::SeekFrom::Start(range.start))?;
                    let length = range.end - range.start;
                    if io::copy(&mut (&input).take(length), &mut output)? != length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
            }
        }
        size = output.size;
        Ok(())
    })?;
    Ok((original, size))
}

/// A file, and a count of the bytes written to it.
struct Counted<'a> {
    output: &'a mut dyn DiskFile,
    size: u64,
    checksum: Crc64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.output.write(bytes)?;
        self.size += count as u64;
        self.checksum.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Takes the last files out of a list. Returns where the original list is now.
///
/// # Errors
/// The system's; the list is then unchanged.
pub(super) fn shorten_list(
    disk: &dyn Disk,
    path: &Path,
    mut manifest: Manifest,
    without: &[PathBuf],
) -> io::Result<PathBuf> {
    manifest.increments.retain(|file| !without.contains(&path.with_file_name(&file.name)));
    replace(disk, path, |output| output.write_all(&manifest.format()))
}
