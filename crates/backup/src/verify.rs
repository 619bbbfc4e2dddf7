//! Whether files are what the list says.

use std::io::{self, Read};

use rdb::Layout;
use rdb::file::{Checksum, FileReader, Item};

use crate::digest::Hashed;
use crate::manifest::{Manifest, Segment, StoredFile};
use crate::moment::Moment;
use crate::segment::{Block, Blocks};
use crate::storage::{Source, read_listed};

/// What an RDB file says of itself.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) keys: u64,
    pub(crate) server: String,
    pub(crate) selected: Option<usize>,
    /// When it was written, if it says a time that there is.
    pub(crate) written: Option<Moment>,
}

/// Reads an RDB file to its end, and checks its checksum.
pub(crate) fn read_rdb(file: &mut dyn Read) -> Result<Contents, String> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let mut contents = Contents::default();
    let mut reader = FileReader::open(file, true).map_err(|error| error.to_string())?;
    let mut has_end = false;
    for item in &mut reader {
        match item.map_err(|error| error.to_string())? {
            Item::Aux { name, value } => {
                let value = text(&value);
                match &name[..] {
                    b"redis-ver" => contents.server = format!("Redis {value}"),
                    b"valkey-ver" => contents.server = format!("Valkey {value}"),
                    b"dunlin-ver" => contents.server = format!("Dunlin {value}"),
                    b"repl-stream-db" => contents.selected = value.parse().ok(),
                    b"ctime" => {
                        let seconds = value.parse().ok();
                        let ms = seconds.and_then(|seconds: u64| seconds.checked_mul(1000));
                        contents.written = ms.map(Moment);
                    }
                    _ => {}
                }
            }
            Item::Entries(batch) => {
                contents.keys += batch.len() as u64;
                // Such a value can be passed over, but no restore could load it.
                let mut entries = batch.entries();
                if let Some(entry) = entries.find(|entry| entry.layout() == Layout::Module) {
                    let key = entry.key().map_err(|error| error.to_string())?;
                    let key = key.escape_ascii();
                    return Err(format!(
                        "the key \"{key}\" has a value of a module, which Dunlin cannot load"
                    ));
                }
            }
            Item::End(Checksum::Wrong { .. }) => {
                return Err("the checksum at the end of the RDB file is wrong".to_owned());
            }
            Item::End(_) => has_end = true,
            _ => {}
        }
    }
    let (file, rest) = reader.into_rest();
    let after = io::copy(file, &mut io::sink()).map_err(|error| error.to_string())?;
    match has_end && rest.is_empty() && after == 0 {
        true => Ok(contents),
        false => Err("something follows the end of the RDB file".to_owned()),
    }
}

/// Whether the bytes that were read are those of the file.
pub(crate) fn compare(file: &StoredFile, bytes: u64, sha256: &str) -> Result<(), String> {
    match (bytes == file.bytes, sha256 == file.sha256) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("{} has {bytes} bytes, not {}", file.name, file.bytes)),
        _ => Err(format!("{} is damaged: its SHA-256 is {sha256}", file.name)),
    }
}

/// Checks a base: its sum, and whether it is a whole RDB file.
pub(crate) fn check_base(store: &dyn Source, file: &StoredFile) -> Result<Contents, String> {
    let mut reader = Hashed::new(read_listed(store, file)?);
    let contents = read_rdb(&mut reader);
    let drained = io::copy(&mut reader, &mut io::sink());
    drained.map_err(|error| format!("{}: {error}", file.name))?;
    let (_, bytes, sha256) = reader.finish();
    compare(file, bytes, &sha256)?;
    contents.map_err(|problem| format!("{}: {problem}", file.name))
}

/// Reads a segment block by block: what was taken counts only if its sum is right at the end, and
/// its blocks follow each other.
pub(crate) fn read_segment(
    store: &dyn Source,
    segment: &Segment,
    mut take: impl FnMut(&Block) -> Result<(), String>,
) -> Result<(), String> {
    let in_segment = |problem: String| format!("{}: {problem}", segment.file.name);
    let mut reader = Hashed::new(read_listed(store, &segment.file)?);
    let mut blocks = Blocks::new(&mut reader, segment.from.offset, segment.to);
    let read = std::iter::from_fn(|| blocks.next().transpose()).try_for_each(|block| take(&block?));
    let drained = io::copy(&mut reader, &mut io::sink());
    drained.map_err(|error| in_segment(error.to_string()))?;
    let (_, bytes, sha256) = reader.finish();
    compare(&segment.file, bytes, &sha256)?;
    read.map_err(in_segment)
}

/// Checks a segment.
pub(crate) fn check_segment(store: &dyn Source, segment: &Segment) -> Result<(), String> {
    read_segment(store, segment, |_| Ok(()))
}

/// Checks everything. Returns what is wrong.
pub(crate) fn check_all(store: &dyn Source, manifest: &Manifest) -> Vec<String> {
    let mut problems = Vec::new();
    for base in &manifest.bases {
        problems.extend(check_base(store, &base.file).err());
    }
    for segment in &manifest.segments {
        problems.extend(check_segment(store, segment).err());
    }
    problems.extend(manifest.missing_files().map(|file| format!("{} is missing", file.name)));
    for line in manifest.lines() {
        problems.extend(manifest.gaps_of(line).iter().map(ToString::to_string));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;

    /// A file that never ends after what it should have.
    struct Endless(&'static [u8]);

    impl Source for Endless {
        fn name(&self) -> String {
            "endless".to_owned()
        }

        fn read(&self, _: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
            Ok(Some(Box::new(self.0.chain(io::repeat(b'#')))))
        }
    }

    #[test]
    fn a_file_is_not_read_behind_its_end() {
        let bytes = b"REDIS0011\xff\0\0\0\0\0\0\0\0";
        let (name, length) = ("f".to_owned(), bytes.len() as u64);
        let file = StoredFile { name, bytes: length, sha256: sha256(bytes) };
        let problem = check_base(&Endless(bytes), &file).unwrap_err();
        assert_eq!(problem, format!("f has {} bytes, not {length}", length + 1));
        let problem = crate::storage::read_all(&Endless(bytes), "f", 1000).unwrap_err();
        assert!(problem.contains("more than 1000 bytes"), "{problem}");
    }

    #[test]
    fn a_value_of_a_module_is_refused_with_its_key() {
        // The id of the module's type is in eight bytes, and no piece of its data follows.
        let value = b"\x07\x03doc\x81\0\0\0\0\0\0\0\0\0";
        let file = |entry: &[u8]| [b"REDIS0011", entry, b"\xff", [0; 8].as_slice()].concat();
        assert_eq!(read_rdb(&mut &file(b"\x00\x01k\x01v")[..]).unwrap().keys, 1);
        let problem = read_rdb(&mut &file(value)[..]).unwrap_err();
        assert!(problem.contains("doc") && problem.contains("module"), "{problem}");
    }
}
