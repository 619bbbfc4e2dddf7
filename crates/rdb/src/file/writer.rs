//! Writing a file.

use std::io::{self, Write};

use store::ValueRef;
use store::list::NodeRef;
use store::pack::Element;

use super::output::Output;
use super::{CONTENT_TYPE, Usage};
use crate::layout::Layout;
use crate::long_text::LongText;
use crate::opcodes::{kind, opcode};
use crate::value::kind_of;
use crate::write::Writer;
use crate::{FILE_VERSION, FILE_VERSION_OF_VALKEY, FILE_VERSION_WITH_EXPIRING_FIELDS};

/// The first version in which a set may be a listpack.
const FIRST_WITH_SET_LISTPACKS: u16 = 11;
/// The first version in which a stream says when its consumers were last active.
const FIRST_WITH_STREAM_3: u16 = 11;

/// How a file is written.
#[derive(Debug, Clone, Copy)]
pub struct WriteOptions {
    /// Whether strings are compressed: the setting `rdbcompression`.
    pub compress: bool,
    /// Whether the file ends with a checksum: the setting `rdbchecksum`.
    pub checksum: bool,
    /// The version of the format: the setting `rdb-version`. From 10, that of Redis 7.0, to
    /// [`FILE_VERSION_WITH_EXPIRING_FIELDS`]; or [`FILE_VERSION_OF_VALKEY`].
    pub version: u16,
}

impl Default for WriteOptions {
    /// The settings' defaults.
    fn default() -> Self {
        WriteOptions { compress: true, checksum: true, version: FILE_VERSION }
    }
}

/// The information of a file about its origin.
#[derive(Debug, Clone, Copy)]
pub struct Preamble<'a> {
    /// The version of Redis that the server claims to be.
    pub server_version: &'a str,
    /// Seconds since 1970.
    pub created_seconds: u64,
    /// Memory in use, in bytes.
    pub used_memory: u64,
    /// Whether the file is the base of an append-only file.
    pub aof_base: bool,
    /// Where the stream of writes goes on after the file, if that is known.
    pub stream: Option<StreamPlace<'a>>,
}

/// A place in the stream of writes of a server.
#[derive(Debug, Clone, Copy)]
pub struct StreamPlace<'a> {
    /// The database that is selected there.
    pub database: usize,
    /// The name of the history.
    pub history: &'a str,
    /// Bytes of the stream before it.
    pub offset: u64,
}

/// A key, and its attributes besides the value.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// The key.
    pub key: &'a [u8],
    /// When it expires, in milliseconds since 1970.
    pub expire_at_ms: Option<u64>,
    /// How it was used.
    pub usage: Option<Usage>,
}

impl<'a> Head<'a> {
    /// A key that does not expire.
    pub fn new(key: &'a [u8]) -> Head<'a> {
        Head { key, expire_at_ms: None, usage: None }
    }
}

/// A collection that is written in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collection {
    /// Its pieces are nodes.
    List,
    /// Its pieces are members.
    Set,
    /// Its pieces are fields with values.
    Hash,
    /// Its pieces are fields with values, some of which expire.
    ExpiringHash {
        /// When the first of them expires, in milliseconds since 1970.
        earliest: u64,
    },
    /// Its pieces are members with scores. Readers are fastest when the highest comes first.
    Zset,
}

impl Collection {
    fn kind(self) -> u8 {
        match self {
            Collection::List => kind::LIST_OF_NODES,
            Collection::Set => kind::SET,
            Collection::Hash => kind::HASH,
            Collection::ExpiringHash { .. } => kind::HASH_EXPIRING,
            Collection::Zset => kind::ZSET_BINARY,
        }
    }
}

/// A file that is complete.
#[derive(Debug)]
pub struct Finished<W> {
    /// Where it was written; flushed, not synced.
    pub sink: W,
    /// Bytes of the file.
    pub size: u64,
    /// The checksum at its end, 0 if it has none.
    pub checksum: u64,
}

/// Writes a file front to back; the module's documentation has its order. The sink needs no buffer.
///
/// ```
/// use rdb::file::{Collection, FileWriter, Head, WriteOptions};
/// use store::pack::Element;
///
/// let mut writer = FileWriter::new(Vec::new(), WriteOptions::default())?;
/// writer.select(0)?;
/// writer.resize(1, 0)?;
/// writer.begin(&Head::new(b"numbers"), Collection::Set, 2)?;
/// writer.member(Element::Int(1))?; // between pieces, locks may be released
/// writer.member(Element::Int(2))?;
/// writer.end()?;
/// let file = writer.finish()?.sink;
/// assert!(file.starts_with(b"REDIS0011"));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// All methods give the sink's errors, after which the file is worth nothing. Those about
/// collections also give [`io::ErrorKind::InvalidInput`] when pieces do not add up to what was
/// announced: better no file than a wrong one.
pub struct FileWriter<W: Write> {
    writer: Writer<Output<W>>,
    version: u16,
    /// The collection being written, and how many of its pieces are still to come.
    open: Option<(Collection, u64)>,
    /// The string being written.
    text: Option<LongText>,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file.
    pub fn new(sink: W, options: WriteOptions) -> io::Result<FileWriter<W>> {
        let output = Output::new(sink, options.checksum);
        let mut writer = Writer::new(output, options.compress);
        let version = options.version;
        let magic = match version {
            FILE_VERSION_OF_VALKEY => format!("VALKEY{version:03}"),
            _ => format!("REDIS{version:04}"),
        };
        writer.bytes(magic.as_bytes())?;
        Ok(FileWriter { writer, version, open: None, text: None })
    }

    /// Bytes that the file has so far.
    pub fn position(&self) -> u64 {
        self.writer.sink().position()
    }

    /// Writes where the file comes from.
    pub fn preamble(&mut self, preamble: &Preamble<'_>) -> io::Result<()> {
        self.aux("redis-ver", preamble.server_version.as_bytes())?;
        self.aux_number("redis-bits", 64)?;
        self.aux_number("ctime", preamble.created_seconds)?;
        self.aux_number("used-mem", preamble.used_memory)?;
        if let Some(place) = preamble.stream {
            self.aux_number("repl-stream-db", place.database as u64)?;
            self.aux("repl-id", place.history.as_bytes())?;
            self.aux_number("repl-offset", place.offset)?;
        }
        self.aux_number("aof-base", u64::from(preamble.aof_base))
    }

    /// Sets the content type of all keys from here on; empty for none. Redis ignores it, as any
    /// text whose name it does not know.
    pub fn content_type(&mut self, name: &[u8]) -> io::Result<()> {
        self.aux(CONTENT_TYPE, name)
    }

    /// Writes a named text. Readers ignore names that they do not know.
    pub fn aux(&mut self, name: &str, value: &[u8]) -> io::Result<()> {
        self.opcode(opcode::AUX)?;
        self.writer.string(name.as_bytes())?;
        self.writer.string(value)
    }

    fn aux_number(&mut self, name: &str, value: u64) -> io::Result<()> {
        self.aux(name, value.to_string().as_bytes())
    }

    /// Writes the source of a library of functions.
    pub fn function(&mut self, source: &[u8]) -> io::Result<()> {
        self.opcode(opcode::FUNCTION)?;
        self.writer.string(source)
    }

    /// Names the database of the keys that follow.
    pub fn select(&mut self, database: usize) -> io::Result<()> {
        self.opcode(opcode::SELECT)?;
        self.writer.length(database as u64)
    }

    /// Writes how many keys the database has and how many of them expire, so that readers make
    /// room.
    pub fn resize(&mut self, keys: u64, expiring: u64) -> io::Result<()> {
        self.opcode(opcode::RESIZE)?;
        self.writer.length(keys)?;
        self.writer.length(expiring)
    }

    /// Writes a key with its value.
    pub fn entry(&mut self, head: &Head<'_>, value: ValueRef<'_>) -> io::Result<()> {
        if let ValueRef::Set(set) = value
            && set.as_listpack().is_some()
            && self.version < FIRST_WITH_SET_LISTPACKS
        {
            self.begin(head, Collection::Set, set.len() as u64)?;
            set.iter().try_for_each(|member| self.member(member))?;
            return self.end();
        }
        if let ValueRef::Stream(stream) = value
            && self.version < FIRST_WITH_STREAM_3
        {
            self.head(head, kind::STREAM_2)?;
            return self.writer.stream(stream, Layout::Stream2);
        }
        if let ValueRef::Hash(hash) = value
            && let Some(earliest) = hash.next_expiry()
            && self.is_of_valkey()
        {
            self.begin(head, Collection::ExpiringHash { earliest }, hash.len() as u64)?;
            hash.iter().try_for_each(|(field, value, at)| self.field(field, value, at))?;
            return self.end();
        }
        let kind = kind_of(value);
        self.check_version(head, kind)?;
        self.head(head, kind)?;
        self.writer.value(value)
    }

    fn is_of_valkey(&self) -> bool {
        self.version == FILE_VERSION_OF_VALKEY
    }

    /// Refuses a value for which the version of the file has no form.
    fn check_version(&self, head: &Head<'_>, kind: u8) -> io::Result<()> {
        let expiring = matches!(kind, kind::HASH_EXPIRING | kind::HASH_EXPIRING_LISTPACK);
        if !expiring || self.version >= FILE_VERSION_WITH_EXPIRING_FIELDS {
            return Ok(());
        }
        let key = head.key[..head.key.len().min(100)].escape_ascii();
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "fields of the hash \"{key}\" expire, which needs version \
                 {FILE_VERSION_WITH_EXPIRING_FIELDS} of the format: rdb-version is {}",
                self.version
            ),
        ))
    }

    /// Writes a key with a value that [`serialize`](crate::serialize) gave.
    pub fn serialized(&mut self, head: &Head<'_>, value: &[u8]) -> io::Result<()> {
        let (&kind, value) = value.split_first().ok_or_else(|| misuse("a value without a type"))?;
        self.head(head, kind)?;
        self.writer.bytes(value)
    }

    /// Writes a key whose value, of `pieces` pieces, follows by calls of
    /// [`node`](FileWriter::node), [`member`](FileWriter::member), [`field`](FileWriter::field) or
    /// [`scored`](FileWriter::scored). There must be one at least. Then comes
    /// [`end`](FileWriter::end).
    pub fn begin(
        &mut self,
        head: &Head<'_>,
        collection: Collection,
        pieces: u64,
    ) -> io::Result<()> {
        self.check_version(head, collection.kind())?;
        let expires = matches!(collection, Collection::ExpiringHash { .. });
        let kind = match self.is_of_valkey() && expires {
            true => kind::HASH_EXPIRING_VALKEY,
            false => collection.kind(),
        };
        self.head(head, kind)?;
        self.open = Some((collection, pieces));
        if let Collection::ExpiringHash { earliest } = collection
            && !self.is_of_valkey()
        {
            self.writer.bytes(&earliest.to_le_bytes())?;
        }
        self.writer.length(pieces)
    }

    /// Writes a key whose value, a string of `length` bytes, follows in parts by
    /// [`text_part`](FileWriter::text_part). Then comes [`end_text`](FileWriter::end_text).
    pub fn begin_text(&mut self, head: &Head<'_>, length: u64) -> io::Result<()> {
        self.head(head, kind::STRING)?;
        self.text = Some(LongText::begin(&mut self.writer, length)?);
        Ok(())
    }

    /// Writes the next part of a string.
    pub fn text_part(&mut self, part: &[u8]) -> io::Result<()> {
        match &mut self.text {
            Some(text) if text.left() >= part.len() as u64 => text.add(&mut self.writer, part),
            _ => Err(misuse("a part of a string that was not announced")),
        }
    }

    /// Ends a string after all of its parts were written.
    pub fn end_text(&mut self) -> io::Result<()> {
        match self.text.take() {
            Some(text) if text.left() == 0 => text.end(&mut self.writer),
            _ => Err(misuse("a string is shorter than announced")),
        }
    }

    /// Writes the next node of a list.
    pub fn node(&mut self, node: NodeRef<'_>) -> io::Result<()> {
        self.count(Collection::List)?;
        self.writer.node(node)
    }

    /// Writes the next member of a set.
    pub fn member(&mut self, member: Element<'_>) -> io::Result<()> {
        self.count(Collection::Set)?;
        self.writer.element(member)
    }

    /// Writes the next field of a hash, and when it expires in milliseconds since 1970.
    pub fn field(
        &mut self,
        field: Element<'_>,
        value: Element<'_>,
        expire_at: Option<u64>,
    ) -> io::Result<()> {
        match self.open {
            Some((collection @ Collection::ExpiringHash { earliest }, _)) => {
                self.count(collection)?;
                if self.is_of_valkey() {
                    self.writer.element(field)?;
                    self.writer.element(value)?;
                    let at = expire_at.map_or(-1, u64::cast_signed);
                    return self.writer.bytes(&at.to_le_bytes());
                }
                self.writer.field_time(expire_at, earliest)?;
            }
            _ if expire_at.is_some() => {
                return Err(misuse("a field expires in a hash of which none does"));
            }
            _ => self.count(Collection::Hash)?,
        }
        self.writer.element(field)?;
        self.writer.element(value)
    }

    /// Writes the next member of a sorted set.
    pub fn scored(&mut self, member: Element<'_>, score: f64) -> io::Result<()> {
        self.count(Collection::Zset)?;
        self.writer.element(member)?;
        self.writer.score(score)
    }

    /// Ends a collection after all of its pieces were written.
    pub fn end(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some((_, 0)) => Ok(()),
            Some(_) => Err(misuse("a collection has fewer pieces than announced")),
            None => Err(misuse("no collection was begun")),
        }
    }

    /// Ends the file.
    pub fn finish(mut self) -> io::Result<Finished<W>> {
        self.opcode(opcode::END)?;
        let mut output = self.writer.into_sink();
        let checksum = output.finish()?;
        output.write_all(&checksum.to_le_bytes())?;
        let size = output.position();
        Ok(Finished { sink: output.into_sink()?, size, checksum })
    }

    /// Counts a piece of the collection.
    #[inline]
    fn count(&mut self, collection: Collection) -> io::Result<()> {
        match &mut self.open {
            Some((open, left @ 1..)) if *open == collection => {
                *left -= 1;
                Ok(())
            }
            _ => Err(misuse("a piece that was not announced")),
        }
    }

    fn opcode(&mut self, opcode: u8) -> io::Result<()> {
        if self.open.is_some() || self.text.is_some() {
            return Err(misuse("a collection or a string was not ended"));
        }
        self.writer.bytes(&[opcode])
    }

    fn head(&mut self, head: &Head<'_>, kind: u8) -> io::Result<()> {
        if let Some(at) = head.expire_at_ms {
            self.opcode(opcode::EXPIRE_MS)?;
            self.writer.bytes(&at.to_le_bytes())?;
        }
        match head.usage {
            Some(Usage::IdleSeconds(seconds)) => {
                self.opcode(opcode::IDLE)?;
                self.writer.length(seconds)?;
            }
            Some(Usage::Frequency(frequency)) => {
                self.opcode(opcode::FREQUENCY)?;
                self.writer.bytes(&[frequency])?;
            }
            None => {}
        }
        self.opcode(kind)?;
        self.writer.string(head.key)
    }
}

impl<W: Write> std::fmt::Debug for FileWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileWriter")
            .field("position", &self.position())
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

fn misuse(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use store::StreamId;
    use store::stream::{Group, Stream};

    use super::*;

    fn writer() -> FileWriter<Vec<u8>> {
        FileWriter::new(Vec::new(), WriteOptions { compress: false, ..WriteOptions::default() })
            .unwrap()
    }

    #[test]
    fn pieces_must_add_up() {
        let mut writer = writer();
        assert!(writer.end().is_err(), "nothing was begun");
        writer.begin(&Head::new(b"k"), Collection::Set, 1).unwrap();
        assert!(writer.scored(Element::Int(1), 1.0).is_err(), "of another collection");
        assert!(writer.select(1).is_err(), "in the middle");
        writer.member(Element::Int(1)).unwrap();
        assert!(writer.member(Element::Int(2)).is_err(), "one too many");
        writer.end().unwrap();
        writer.begin(&Head::new(b"l"), Collection::Hash, 1).unwrap();
        assert!(writer.end().is_err(), "one too few");
        assert!(writer.serialized(&Head::new(b"m"), b"").is_err(), "no type");
    }

    #[test]
    fn a_file_of_nothing() {
        let finished = writer().finish().unwrap();
        assert_eq!(finished.size, 18);
        assert_eq!(finished.sink[..10], *b"REDIS0011\xff");
        assert_eq!(finished.sink[10..], base::crc::crc64(b"REDIS0011\xff").to_le_bytes());
        assert_eq!(finished.sink[10..], finished.checksum.to_le_bytes());
        let options = WriteOptions { compress: false, checksum: false, version: 10 };
        let finished = FileWriter::new(Vec::new(), options).unwrap().finish().unwrap();
        assert_eq!(finished.sink, b"REDIS0010\xff\0\0\0\0\0\0\0\0");
    }

    #[test]
    fn an_older_file_has_no_sets_as_listpacks() {
        let mut set = store::Set::new_listpack();
        let packed = store::Limits { entries: 8, value: 8 };
        set.add(b"a", store::SetLimits { integers: 8, listpack: packed });
        let written = |version| {
            let options = WriteOptions { compress: false, checksum: false, version };
            let mut writer = FileWriter::new(Vec::new(), options).unwrap();
            writer.entry(&Head::new(b"s"), ValueRef::Set(&set)).unwrap();
            writer.finish().unwrap().sink
        };
        assert_eq!(written(10)[..14], *b"REDIS0010\x02\x01s\x01\x01");
        assert_eq!(written(11)[..13], *b"REDIS0011\x14\x01s\x0a");
    }

    #[test]
    fn an_older_file_has_streams_without_the_times_of_activity() {
        let mut group = Group::new(StreamId::MIN, None);
        group.load_consumer(b"consumer", 5, Some(6)).unwrap();
        let mut stream = Stream::new();
        assert!(stream.add_group(b"group", group));
        let written = |version| {
            let options = WriteOptions { compress: false, checksum: false, version };
            let mut writer = FileWriter::new(Vec::new(), options).unwrap();
            writer.entry(&Head::new(b"s"), ValueRef::Stream(&stream)).unwrap();
            writer.finish().unwrap().sink
        };
        let (older, newer) = (written(10), written(11));
        assert_eq!((older[9], newer[9]), (kind::STREAM_2, kind::STREAM_3));
        assert_eq!(older.len() + size_of::<i64>(), newer.len());
    }

    #[test]
    fn the_position_is_that_of_the_file_and_large_strings_pass_by_the_buffer() {
        let mut writer = writer();
        let text = vec![b'x'; 200_000];
        writer.serialized(&Head::new(&text), b"\x00\x01v").unwrap();
        let position = writer.position();
        let finished = writer.finish().unwrap();
        assert_eq!(position + 9, finished.size);
        assert_eq!(finished.sink.len() as u64, finished.size);
        assert_eq!(finished.checksum, base::crc::crc64(&finished.sink[..finished.sink.len() - 8]));
    }
}
