//! The contents of an RDB file.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::ops::Range;

use base::limits::MAX_DATABASES;
use rdb::file::{
    Checksum, DecodeOptions, EntryBatch, FileError, FileReader, Function, Item, RawEntry,
};
use rdb::{ReadError, ValueLimits};
use store::list::ListLimits;
use store::{Limits, SetLimits};

use super::verdict::{DATABASES, Verdict, beyond};

/// Damaged entries that a report shows.
const SHOWN_MAX: u64 = 10;

/// Bytes of a text that a report shows; old files have whole scripts in such texts.
const SHOWN_BYTES: usize = 60;

/// How values are decoded to see whether they can be. They are thrown away, so their encoding does
/// not matter.
fn decoding() -> DecodeOptions {
    let packed = Limits { entries: 128, value: 64 };
    let limits = ValueLimits {
        list: ListLimits::new(-2, 1 << 30),
        set: SetLimits { integers: packed.entries, listpack: packed },
        hash: packed,
        zset: packed,
    };
    DecodeOptions { limits, now_ms: 0 }
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Snapshot {
    /// The first lines of the report.
    header: Vec<String>,
    /// The instant of the data, as a Unix second.
    pub(super) created: Option<i64>,
    databases: BTreeMap<usize, Keys>,
    /// Keys and bytes of values, by type.
    types: BTreeMap<&'static str, (u64, u64)>,
    functions: u64,
    modules: u64,
    /// Values that may be right and that a server cannot load.
    unsupported: u64,
    /// What was wrong, in words; when there are several problems, the first.
    problems: Vec<String>,
    problem_count: u64,
    /// Damaged entries.
    pub(super) gaps: Vec<Gap>,
    /// The content type of the last entry.
    content_type: Option<Vec<u8>>,
    /// Where the last thing that could be read ends, besides the end of the file.
    pub(super) good: u64,
    pub(super) end: End,
    seen: Seen,
}

/// A damaged entry, and what it said of the entries after it.
pub(super) struct Gap {
    /// Its bytes, and those before it that belong to it.
    pub(super) place: Range<u64>,
    /// The database of the entries after it.
    pub(super) database: usize,
    /// Their content type, if it was another one before: empty for none.
    pub(super) content_type: Option<Vec<u8>>,
}

/// The keys that were seen, each by 128 bits that cannot be predicted: names would take as much
/// memory as all data.
#[derive(Default)]
struct Seen {
    hashers: [RandomState; 2],
    keys: HashSet<u128>,
}

impl Seen {
    /// Whether the key of that database was seen before; notes that it was.
    fn note(&mut self, database: usize, key: &[u8]) -> bool {
        let [high, low] = &self.hashers;
        let [high, low] = [high, low].map(|hasher| u128::from(hasher.hash_one((database, key))));
        !self.keys.insert(high << 64 | low)
    }
}

/// Keys of a database.
#[derive(Default)]
struct Keys {
    all: u64,
    expiring: u64,
}

/// How a file ends.
#[derive(Default, PartialEq, Eq)]
pub(super) enum End {
    /// It does not: it breaks off, or the rest cannot be read.
    #[default]
    Missing,
    /// With a checksum that is right, or with none.
    Good,
    /// With a checksum that is wrong.
    WrongChecksum,
}

impl Snapshot {
    /// Reads a file to its end, or as far as it can be read.
    ///
    /// # Errors
    /// The system's alone.
    pub(super) fn read(reader: &mut FileReader<impl Read>) -> std::io::Result<Snapshot> {
        let mut found = Snapshot { good: reader.offset(), ..Snapshot::default() };
        found.header.push(format!("version {} of {}", reader.version(), reader.dialect()));
        while let Some(item) = reader.next() {
            match item {
                Ok(Item::Entries(batch)) => found.entries(&batch),
                Ok(Item::End(checksum)) => found.end(checksum),
                Ok(item) => {
                    found.section(item);
                    found.good = reader.offset();
                }
                Err(FileError { cause: ReadError::Io(error), .. }) => return Err(error),
                Err(error) => found.problem(error.to_string()),
            }
        }
        Ok(found)
    }

    /// Whether nothing is damaged.
    pub(super) fn is_good(&self) -> bool {
        self.gaps.is_empty() && self.end == End::Good
    }

    /// The verdict on it apart from damage.
    pub(super) fn verdict(&self) -> Verdict {
        let most = self.databases.keys().last().copied().unwrap_or(0);
        match self.unsupported == 0 && most < DATABASES {
            true => Verdict::Good,
            false => Verdict::Unsupported,
        }
    }

    fn section(&mut self, item: Item) {
        match item {
            Item::Aux { name, value } => {
                if name == b"ctime" {
                    self.created = base::num::parse_i64(&value);
                }
                let (name, more) = (name.escape_ascii(), &value[value.len().min(SHOWN_BYTES)..]);
                let value = value[..value.len() - more.len()].escape_ascii();
                let more = if more.is_empty() { "" } else { ".." };
                self.header.push(format!("{name} {value}{more}"));
            }
            Item::Function(Function::Library(_) | Function::PreRelease { .. }) => {
                self.functions += 1;
            }
            Item::ModuleAux { .. } => self.modules += 1,
            Item::End(_) | Item::Resize { .. } | Item::Entries(_) => {}
        }
    }

    fn end(&mut self, checksum: Checksum) {
        self.end = End::Good;
        if let Checksum::Wrong { stated, computed } = checksum {
            self.end = End::WrongChecksum;
            self.problem(format!(
                "the checksum is {stated:016x} and should be {computed:016x}: some value is wrong"
            ));
        }
    }

    fn entries(&mut self, batch: &EntryBatch) {
        let decoding = decoding();
        for entry in batch {
            let end = entry.value_offset() + entry.value_bytes() as u64;
            let before = self.content_type.take();
            self.content_type = entry.content_type().map(<[u8]>::to_vec);
            match self.entry(&entry, &decoding) {
                Ok(loads) => {
                    self.unsupported += u64::from(!loads);
                    self.count(&entry);
                }
                Err(problem) => {
                    self.problem(problem);
                    let changes = before != self.content_type;
                    let present = || self.content_type.clone().unwrap_or_default();
                    self.gaps.push(Gap {
                        place: self.good..end,
                        database: entry.database(),
                        content_type: changes.then(present),
                    });
                }
            }
            self.good = end;
        }
    }

    /// Looks at an entry, and returns whether a server can load it, or what is wrong with it.
    fn entry(&mut self, raw: &RawEntry<'_>, decoding: &DecodeOptions) -> Result<bool, String> {
        let loads = match raw.decode(decoding) {
            Ok(_) => true,
            Err(FileError { cause: ReadError::Unsupported(_), .. }) => false,
            Err(error) => return Err(error.to_string()),
        };
        let key = raw.key().map_err(|error| error.to_string())?;
        let wrong = match raw.database() {
            index if index >= MAX_DATABASES => "no server has that many databases",
            index if self.seen.note(index, &key) => "the key is there already",
            _ => return Ok(loads),
        };
        let (at, key) = (raw.value_offset(), key.escape_ascii());
        Err(format!("offset {at}, database {}, key \"{key}\": {wrong}", raw.database()))
    }

    fn problem(&mut self, problem: String) {
        self.problem_count += 1;
        if self.problem_count <= SHOWN_MAX {
            self.problems.push(problem);
        }
    }

    fn count(&mut self, entry: &RawEntry<'_>) {
        let keys = self.databases.entry(entry.database()).or_default();
        keys.all += 1;
        keys.expiring += u64::from(entry.expire_at_ms().is_some());
        let (count, bytes) = self.types.entry(entry.layout().type_name()).or_default();
        *count += 1;
        *bytes += entry.value_bytes() as u64;
    }

    /// The report.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.header.join(", ")];
        for (database, Keys { all, expiring }) in &self.databases {
            lines.push(format!("database {database}: {all} keys, {expiring} of them expire"));
        }
        if let Some((&index, _)) = self.databases.last_key_value().filter(|(i, _)| **i >= DATABASES)
        {
            lines.push(beyond(index));
        }
        for (name, (count, bytes)) in &self.types {
            lines.push(format!("{name}: {count} keys, {bytes} bytes"));
        }
        for (count, what) in [
            (self.functions, "libraries of functions"),
            (self.modules, "sections of modules"),
            (self.unsupported, "values of types that this server does not load"),
        ] {
            if count > 0 {
                lines.push(format!("{count} {what}"));
            }
        }
        lines.extend(self.problems.iter().map(|problem| format!("DAMAGED: {problem}")));
        if let Some(more @ 1..) = self.problem_count.checked_sub(SHOWN_MAX) {
            lines.push(format!("and {more} more"));
        }
        lines
    }
}
