//! Reads a whole file and shows its contents, in the words of the listings that
//! `scripts/make-golden` makes.

// Every test file compiles this for itself, and none uses all of it.
#![allow(dead_code, unreachable_pub)]

pub mod assemble;
pub mod sample;

use std::collections::BTreeMap;
use std::io::Read;

use base::num;
use rdb::file::{
    Checksum, DecodeOptions, EntryBatch, FileError, FileReader, Function, Item, Usage,
};
use rdb::{Dialect, Layout, ReadError, ValueLimits};
use sha1::{Digest, Sha1};
use store::gate::Gates;
use store::list::ListLimits;
use store::pack::Element;
use store::{Entry, Key, Keyspace, Limits, SetLimits, Stream, StreamId, Value, ValueRef};

/// The contents of a file.
#[derive(Debug)]
pub struct Found {
    pub dialect: Dialect,
    pub version: u32,
    pub aux: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Database, keys, keys that expire.
    pub sizes: Vec<(usize, u64, u64)>,
    pub functions: Vec<Function>,
    pub modules: Vec<String>,
    pub entries: Vec<FoundEntry>,
    pub checksum: Checksum,
}

/// A key in a file.
#[derive(Debug)]
pub struct FoundEntry {
    pub database: usize,
    pub key: Vec<u8>,
    pub expire_at_ms: Option<u64>,
    pub usage: Option<Usage>,
    pub layout: Layout,
    /// The fields of a hash that expire, and when.
    pub fields: Vec<(Vec<u8>, u64)>,
    /// The contents of the value, `nothing` or `unsupported`.
    pub shown: String,
}

/// Limits as a server has them unless told otherwise; nothing expires.
pub fn options() -> DecodeOptions {
    options_packing(128)
}

/// Collections of this many elements are packed; nothing expires.
pub fn options_packing(entries: usize) -> DecodeOptions {
    let limits = Limits { entries, value: 64 };
    let list = ListLimits::default();
    let set = SetLimits { integers: entries, listpack: limits };
    let limits = ValueLimits { list, set, hash: limits, zset: limits };
    DecodeOptions { limits, now_ms: 0 }
}

/// Reads all of a file.
pub fn read(file: impl Read, options: &DecodeOptions) -> Result<Found, FileError> {
    let reader = FileReader::open(file, true)?;
    let mut found = Found {
        dialect: reader.dialect(),
        version: reader.version(),
        aux: BTreeMap::new(),
        sizes: Vec::new(),
        functions: Vec::new(),
        modules: Vec::new(),
        entries: Vec::new(),
        checksum: Checksum::Unverified,
    };
    for item in reader {
        match item? {
            Item::Aux { name, value } => drop(found.aux.insert(name, value)),
            Item::Resize { database, keys, expiring } => {
                found.sizes.push((database, keys, expiring));
            }
            Item::Function(function) => found.functions.push(function),
            Item::ModuleAux { module } => found.modules.push(module),
            Item::Entries(batch) => decode(&batch, options, &mut found.entries)?,
            Item::End(checksum) => found.checksum = checksum,
        }
    }
    Ok(found)
}

fn decode(
    batch: &EntryBatch,
    options: &DecodeOptions,
    found: &mut Vec<FoundEntry>,
) -> Result<(), FileError> {
    for raw in batch {
        let (shown, fields) = match raw.decode(options) {
            Ok(entry) => {
                let fields = entry.value.as_ref().map(expiring_fields).unwrap_or_default();
                (entry.value.map_or_else(|| "nothing".to_owned(), shown_value), fields)
            }
            Err(FileError { cause: ReadError::Unsupported(_), .. }) => {
                ("unsupported".to_owned(), Vec::new())
            }
            Err(error) => return Err(error),
        };
        found.push(FoundEntry {
            database: raw.database(),
            key: raw.key()?.into_owned(),
            expire_at_ms: raw.expire_at_ms(),
            usage: raw.usage(),
            layout: raw.layout(),
            fields,
            shown,
        });
    }
    Ok(())
}

/// The fields of a hash that expire, in the order of their names.
fn expiring_fields(value: &Value<'_>) -> Vec<(Vec<u8>, u64)> {
    let Value::Hash(hash) = value else { return Vec::new() };
    let expiring = hash.iter().filter_map(|(field, _, at)| Some((field.to_vec(), at?)));
    let mut expiring: Vec<_> = expiring.collect();
    expiring.sort_unstable();
    expiring
}

impl Found {
    /// The lines of a listing, sorted.
    pub fn listing(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.entries.iter().map(FoundEntry::line).collect();
        lines.sort_unstable();
        lines
    }

    /// The contents of the one key of that name.
    #[track_caller]
    pub fn shown(&self, key: &str) -> &str {
        &self.entry(key).shown
    }

    /// The entry of a key; there is one of that name.
    #[track_caller]
    pub fn entry(&self, key: &str) -> &FoundEntry {
        let mut named = self.entries.iter().filter(|entry| entry.key == key.as_bytes());
        let entry = named.next().unwrap_or_else(|| panic!("no key {key}"));
        assert!(named.next().is_none(), "key {key} is there twice");
        entry
    }
}

impl FoundEntry {
    /// The key's line in a listing.
    pub fn line(&self) -> String {
        line(self.database, self.layout.type_name(), self.expire_at_ms, &self.key, &self.shown)
    }
}

fn line(database: usize, kind: &str, expire_at_ms: Option<u64>, key: &[u8], shown: &str) -> String {
    let expiry = expire_at_ms.map_or_else(|| "-1".to_owned(), |at| at.to_string());
    format!("{database} {kind} {expiry} {} {shown}", text(key))
}

fn shown_value(value: Value<'_>) -> String {
    with_entry(value, |value| contents(value).join(" "))
}

/// Shows a value as the server sees it: in its entry in a keyspace.
pub fn with_entry<T>(value: Value<'_>, action: impl FnOnce(ValueRef<'_>) -> T) -> T {
    // A keyspace has many slots, so one serves all values.
    thread_local!(static SPACE: (Keyspace<()>, Gates) = (Keyspace::new(1), Gates::new()));
    SPACE.with(|(space, gates)| {
        let key = Key::new(b"k");
        let stopped = gates.stop_the_world();
        let mut locked = space.all_slots(&stopped, 0);
        locked.insert(0, &key, value, None);
        let result = action(locked.find(0, &key).map(Entry::value).unwrap());
        locked.remove(0, &key);
        result
    })
}

fn contents(value: ValueRef<'_>) -> Vec<String> {
    let element = |element: Element<'_>| text(&element.to_vec());
    let mut shown: Vec<String> = match value {
        ValueRef::String(string) => vec![text(&string.bytes())],
        ValueRef::List(list) => list.iter().map(|item| element(item.as_element())).collect(),
        ValueRef::Set(set) => set.iter().map(element).collect(),
        ValueRef::Hash(hash) => hash
            .iter()
            .map(|(field, value, _)| format!("{}={}", element(field), element(value)))
            .collect(),
        ValueRef::Zset(zset) => zset
            .iter()
            .map(|(member, score)| {
                let mut number = Vec::new();
                num::write_f64(&mut number, score);
                format!("{}={}", element(member), String::from_utf8(number).unwrap())
            })
            .collect(),
        ValueRef::Stream(stream) => stream_contents(stream),
    };
    if matches!(value, ValueRef::Set(_) | ValueRef::Hash(_)) {
        shown.sort_unstable();
    }
    shown
}

/// The entries, and the groups with their pending entries.
fn stream_contents(stream: &Stream) -> Vec<String> {
    let mut shown = Vec::new();
    for entry in stream.range(StreamId::MIN, StreamId::MAX) {
        shown.push(entry.id.to_string());
        shown.extend(
            entry
                .fields
                .map(|(name, value)| format!("{}={}", text(&name.to_vec()), text(&value.to_vec()))),
        );
    }
    for (name, group) in stream.groups() {
        shown.push(format!("@{}={}", text(name), group.last_id));
        for (id, pending) in group.pending_from(StreamId::MIN) {
            let consumer = group.consumer(pending.consumer).unwrap();
            shown.push(format!("{id}>{}", text(consumer.name())));
        }
    }
    shown
}

/// A text, or its length and SHA-1 if it is long or cannot be read.
fn text(text: &[u8]) -> String {
    let readable = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if text.len() <= 60 && text.iter().all(readable) {
        return format!("\"{}\"", String::from_utf8_lossy(text));
    }
    let digest = Sha1::digest(text);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}:{hex}", text.len())
}
