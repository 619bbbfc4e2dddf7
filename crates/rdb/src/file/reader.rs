//! Reading a file: finding its parts.

use std::borrow::Cow;
use std::io::Read;
use std::iter::FusedIterator;
use std::sync::Arc;

use base::limits::RDB_CHUNK;

use super::batch::{EntryBatch, Span};
use super::error::{FileError, shown_key};
use super::source::Source;
use super::{CONTENT_TYPE, Usage};
use crate::extent::skip_value;
use crate::layout::{Dialect, Layout};
use crate::module;
use crate::opcodes::opcode;
use crate::read::{Input, ReadError, Reader};

/// The newest version of Redis's files that we know: that of Redis 8.10. What is new in versions 13
/// to 15 is known by its name alone; all else is as in version 12.
pub const NEWEST_REDIS: u32 = 15;
/// The newest version of Valkey's own files that we know: that of Valkey 9.
pub const NEWEST_VALKEY: u32 = 80;

/// The first version with a checksum at the end.
const FIRST_WITH_CHECKSUM: u32 = 5;

const MAGIC_BYTES: u64 = 9;

/// Types count from 0 upwards, opcodes from 255 downwards: from here on it is an opcode.
const LEAST_OPCODE: u8 = 200;

/// Something that a file consists of.
#[derive(Debug)]
pub enum Item {
    /// A named text about the file or the server that wrote it.
    Aux {
        /// Its name, such as `redis-ver`.
        name: Vec<u8>,
        /// The text.
        value: Vec<u8>,
    },
    /// The size of a database. A hint, and maybe a lie: there may be more or fewer keys, so readers
    /// that make room bound it.
    Resize {
        /// The number of the database.
        database: usize,
        /// How many keys it has.
        keys: u64,
        /// How many of them expire.
        expiring: u64,
    },
    /// A library of functions.
    Function(Function),
    /// Data of a module besides values. It was skipped.
    ModuleAux {
        /// The name of the module's type.
        module: String,
    },
    /// Keys with their values.
    Entries(EntryBatch),
    /// The end of the file.
    End(Checksum),
}

/// A library of functions.
#[derive(Debug, PartialEq, Eq)]
pub enum Function {
    /// Its source, which begins by naming engine and library.
    Library(Vec<u8>),
    /// A library of a release candidate of Redis 7.0, which Redis 7.0 refuses.
    PreRelease {
        /// The name.
        name: Vec<u8>,
        /// The name of the engine.
        engine: Vec<u8>,
        /// Its purpose.
        description: Option<Vec<u8>>,
        /// The source.
        source: Vec<u8>,
    },
}

/// The result of checking the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// The file has no checksum: it is of an old version, or was written without one.
    Absent,
    /// Verification was not requested.
    Unverified,
    /// It is right.
    Correct,
    /// It is wrong: the file is damaged.
    Wrong {
        /// The checksum in the file.
        stated: u64,
        /// The checksum of its bytes.
        computed: u64,
    },
}

/// Reads a file front to back. The caller needs no buffer. When the source gives less than was
/// asked for, no more of it is read than needed, so the source may be a socket.
///
/// The iterator ends after [`Item::End`] or after an error. Entries before an error are returned
/// first.
pub struct FileReader<R> {
    source: Source<R>,
    dialect: Dialect,
    version: u32,
    database: usize,
    ///    /// When the next key expires.
    expire_at_ms: Option<u64>,
    usage: Option<Usage>,
    /// The content type of all following keys, until the next one.
    content_type: Option<Arc<[u8]>>,
    /// The name of a text that was read without its value.
    aux_name: Option<Vec<u8>>,
    /// Entries in the bytes that the source keeps.
    spans: Vec<Span>,
    /// Bytes that those entries take.
    spanned: usize,
    /// The error to return after the entries.
    failure: Option<FileError>,
    over: bool,
}

impl<R: Read> FileReader<R> {
    /// Reads the first bytes. `verify` says whether to check the checksum: the setting
    /// `rdbchecksum`.
    ///
    /// # Errors
    /// When the file cannot be read, is not an RDB file, or has an unknown version.
    pub fn open(file: R, verify: bool) -> Result<FileReader<R>, FileError> {
        let mut source = Source::new(file, verify);
        let (dialect, version) =
            source.take(MAGIC_BYTES).and_then(parse_magic).map_err(|cause| FileError {
                offset: 0,
                reading: "the first bytes".to_owned(),
                cause,
            })?;
        Ok(FileReader {
            source,
            dialect,
            version,
            database: 0,
            expire_at_ms: None,
            usage: None,
            content_type: None,
            aux_name: None,
            spans: Vec::new(),
            spanned: 0,
            failure: None,
            over: false,
        })
    }

    /// Which family of servers wrote it.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Its version.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Bytes of the file that were read so far, at the end its size. Found entries count before
    /// they are returned.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// The source, and the bytes read beyond the file: in an append-only file, or on a socket,
    /// something else follows.
    pub fn into_rest(self) -> (R, Vec<u8>) {
        self.source.into_rest()
    }

    /// The next item. Entries may come before a failure.
    fn item(&mut self) -> Result<Item, FileError> {
        loop {
            if self.spans.is_empty() {
                self.source.keep();
            } else if self.source.kept_bytes() >= RDB_CHUNK {
                return Ok(self.batch());
            }
            let opcode = self.source.byte();
            let opcode = self.located("a type or opcode", opcode)?;
            if let Some(layout) = Layout::from_byte(opcode, self.dialect) {
                self.entry(layout)?;
                continue;
            }
            let known = self.attribute(opcode);
            if self.located("what belongs to keys that follow", known)? {
                continue;
            }
            if !self.spans.is_empty() {
                // It is returned again after the entries.
                self.aux_name = None;
                return Ok(self.batch());
            }
            let section = self.section(opcode);
            return self.located("a section", section);
        }
    }

    /// Finds the extent of a key with its value, which follow their type.
    fn entry(&mut self, layout: Layout) -> Result<(), FileError> {
        let start = self.source.kept_bytes();
        let skipped = self.source.skip_key();
        self.located("a key", skipped)?;
        let key = start..self.source.kept_bytes();
        if let Err(cause) = skip_value(&mut self.source, layout) {
            let key = Reader::new(self.source.kept(key)).string().unwrap_or_default();
            let reading = format!("{}, a {}", shown_key(&key), layout.name());
            return Err(FileError { offset: self.source.offset(), reading, cause });
        }
        self.spanned = self.source.kept_bytes();
        self.spans.push(Span {
            database: self.database,
            expire_at_ms: self.expire_at_ms.take(),
            usage: self.usage.take(),
            content_type: self.content_type.clone(),
            layout,
            key,
            end: self.spanned,
        });
        Ok(())
    }

    /// Reads information about the next key or keys. Returns false if the opcode gives no such
    /// information.
    fn attribute(&mut self, opcode: u8) -> Result<bool, ReadError> {
        if opcode == opcode::AUX {
            let name = self.string()?;
            let is_attribute = name == CONTENT_TYPE.as_bytes();
            if is_attribute {
                let value = self.string()?;
                self.content_type = (!value.is_empty()).then(|| value.into());
            } else {
                self.aux_name = Some(name);
            }
            return Ok(is_attribute);
        }
        let source = &mut self.source;
        match opcode {
            opcode::SELECT => {
                self.database = usize::try_from(source.length()?)
                    .map_err(|_| ReadError::Malformed("an impossible database"))?;
            }
            opcode::EXPIRE_MS => self.expire_at_ms = expiry(i64::from_le_bytes(source.array()?)),
            opcode::EXPIRE_SECONDS => {
                let seconds = i64::from(i32::from_le_bytes(source.array()?));
                self.expire_at_ms = if seconds == -1 { None } else { expiry(seconds * 1000) };
            }
            opcode::IDLE => self.usage = Some(Usage::IdleSeconds(source.length()?)),
            opcode::FREQUENCY => self.usage = Some(Usage::Frequency(source.byte()?)),
            opcode::SLOT_INFO => {
                // Slot, keys, keys that expire.
                for _ in 0..3 {
                    source.length()?;
                }
            }
            opcode::SLOT_IMPORT if self.dialect == Dialect::Valkey => {
                source.skip_string()?;
                for _ in 0..source.length()? {
                    source.length()?;
                    source.length()?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads a part that is not an entry and belongs to none.
    fn section(&mut self, opcode: u8) -> Result<Item, ReadError> {
        Ok(match opcode {
            opcode::AUX => {
                let name = self.aux_name.take().unwrap_or_default();
                Item::Aux { name, value: self.string()? }
            }
            opcode::RESIZE => Item::Resize {
                database: self.database,
                keys: self.source.length()?,
                expiring: self.source.length()?,
            },
            opcode::FUNCTION => Item::Function(Function::Library(self.string()?)),
            opcode::FUNCTION_EARLY => Item::Function(Function::PreRelease {
                name: self.string()?,
                engine: self.string()?,
                description: match self.source.length()? {
                    0 => None,
                    _ => Some(self.string()?),
                },
                source: self.string()?,
            }),
            opcode::MODULE_AUX => {
                let module = module::name(self.source.length()?);
                module::skip(&mut self.source)?;
                Item::ModuleAux { module }
            }
            opcode::END => Item::End(self.checksum()?),
            _ => {
                // Behind a type there is a key. It helps to find what nobody here understands.
                let key = if opcode < LEAST_OPCODE { self.string().ok() } else { None };
                let of = key.map_or_else(String::new, |key| format!(", of {}", shown_key(&key)));
                let name = self.newer(opcode).map_or_else(String::new, |name| format!(" ({name})"));
                return Err(ReadError::Unsupported(Cow::Owned(format!(
                    "Unknown RDB encoding type {opcode}{name}{of}"
                ))));
            }
        })
    }

    /// What a type or an opcode is called that newer servers write.
    fn newer(&self, opcode: u8) -> Option<&'static str> {
        if self.dialect != Dialect::Redis {
            return None;
        }
        Some(match opcode {
            28 => "an array",
            29..=32 => "a hash with a template",
            242 => "a template of hashes",
            243 => "what a module notes of a key",
            _ => return None,
        })
    }

    fn string(&mut self) -> Result<Vec<u8>, ReadError> {
        let start = self.source.kept_bytes();
        self.source.skip_string()?;
        let encoded = self.source.kept(start..self.source.kept_bytes());
        Reader::new(encoded).string().map(Cow::into_owned)
    }

    fn checksum(&mut self) -> Result<Checksum, ReadError> {
        if self.version < FIRST_WITH_CHECKSUM {
            return Ok(Checksum::Absent);
        }
        let computed = self.source.checksum();
        let stated = u64::from_le_bytes(self.source.array()?);
        Ok(match computed {
            _ if stated == 0 => Checksum::Absent,
            None => Checksum::Unverified,
            Some(computed) if computed == stated => Checksum::Correct,
            Some(computed) => Checksum::Wrong { stated, computed },
        })
    }

    /// The entries found so far.
    fn batch(&mut self) -> Item {
        self.source.rewind(self.spanned);
        let (offset, bytes) = self.source.take_kept();
        self.spanned = 0;
        Item::Entries(EntryBatch::new(offset, bytes, std::mem::take(&mut self.spans)))
    }

    fn located<T>(&self, reading: &str, result: Result<T, ReadError>) -> Result<T, FileError> {
        let offset = self.source.offset();
        result.map_err(|cause| FileError { offset, reading: reading.to_owned(), cause })
    }
}

impl<R: Read> Iterator for FileReader<R> {
    type Item = Result<Item, FileError>;

    fn next(&mut self) -> Option<Result<Item, FileError>> {
        if self.over {
            return None;
        }
        let item = match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.item(),
        };
        match item {
            Err(failure) if !self.spans.is_empty() => {
                self.failure = Some(failure);
                Some(Ok(self.batch()))
            }
            item => {
                self.over = matches!(item, Err(_) | Ok(Item::End(_)));
                Some(item)
            }
        }
    }
}

impl<R: Read> FusedIterator for FileReader<R> {}

impl<R> std::fmt::Debug for FileReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileReader")
            .field("dialect", &self.dialect)
            .field("version", &self.version)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

/// The time at which a key expires: -1 is "never", and a time before 1970 is only "expired".
fn expiry(at_ms: i64) -> Option<u64> {
    (at_ms != -1).then(|| u64::try_from(at_ms).unwrap_or(0))
}

/// Dialect and version, of which there are four digits, or three.
fn parse_magic(magic: &[u8]) -> Result<(Dialect, u32), ReadError> {
    let (dialect, digits, oldest, newest) = if let Some(digits) = magic.strip_prefix(b"REDIS") {
        (Dialect::Redis, digits, 1, NEWEST_REDIS)
    } else if let Some(digits) = magic.strip_prefix(b"VALKEY") {
        (Dialect::Valkey, digits, NEWEST_VALKEY, NEWEST_VALKEY)
    } else {
        return Err(ReadError::Malformed("Wrong signature trying to load DB from file"));
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(ReadError::Malformed("Wrong signature trying to load DB from file"));
    }
    let version = digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    if (oldest..=newest).contains(&version) {
        return Ok((dialect, version));
    }
    let range = format!(
        "Can't handle RDB format version {version} of {dialect}, {newest} is the newest we know"
    );
    Err(ReadError::Unsupported(Cow::Owned(range)))
}
