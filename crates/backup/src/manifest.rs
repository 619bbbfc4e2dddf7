//! The list of what a store has: `manifest.json`, written after everything that it names.
//! docs/formats/backup.md explains each field.

use replication::id::HistoryId;
use serde::{Deserialize, Serialize};

use crate::moment::Moment;
use crate::position::Position;

/// The name of the list.
pub(crate) const MANIFEST: &str = "manifest.json";
const FORMAT: &str = "dunlin-backup";
/// The version that this program writes, and the newest that it reads.
const VERSION: u32 = 1;
/// No list is longer.
pub(crate) const LONGEST: u64 = 256 << 20;
/// No number of a list is larger, so that what is counted on from one is none that is smaller.
const LARGEST: u64 = i64::MAX as u64;

/// A file of the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredFile {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// All data at a position: an RDB file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Base {
    pub(crate) file: StoredFile,
    /// Bases and segments of one line belong to one stream without a gap.
    pub(crate) line: u64,
    pub(crate) position: Position,
    /// The data is of this time or earlier.
    pub(crate) time: Moment,
    /// The database that is selected in the stream here, if it is known.
    pub(crate) selected: Option<usize>,
    /// How many keys it has.
    pub(crate) keys: u64,
    /// What has written it, as far as it says.
    pub(crate) server: String,
    /// When it was taken in, if it is a plain RDB file. Such a base has a line of its own, with
    /// nothing behind it: whatever the file says of itself, no stream goes on after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) imported: Option<Moment>,
    /// When it was taken, by a clock that may have gone back. Earlier versions have written none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) taken: Option<Moment>,
}

impl Base {
    /// A base of a stream, of which nothing more is known.
    pub(crate) fn new(file: StoredFile, line: u64, position: Position, time: Moment) -> Base {
        let (selected, keys, server) = (None, 0, String::new());
        Base { file, line, position, time, selected, keys, server, imported: None, taken: None }
    }
}

/// A piece of the stream of writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Segment {
    pub(crate) file: StoredFile,
    pub(crate) line: u64,
    /// Its bytes are those after this offset of the history, up to `to`.
    pub(crate) from: Position,
    pub(crate) to: u64,
    /// When the first and the last of them arrived.
    pub(crate) first_time: Moment,
    pub(crate) last_time: Moment,
}

impl Segment {
    /// The position after its last byte.
    pub(crate) fn end(&self) -> Position {
        Position { history: self.from.history, offset: self.to }
    }
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    format: String,
    version: u32,
    /// Grows with each change, so that two programs that write to one store notice each other.
    pub(crate) generation: u64,
    pub(crate) written: Moment,
    /// The number of the next file. None is given twice.
    pub(crate) next: u64,
    /// The runs that have begun files, and have not said that they have ended. Earlier versions
    /// have written none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) running: Option<Vec<String>>,
    /// In the order in which they were taken.
    pub(crate) bases: Vec<Base>,
    /// In the order of lines, and in each in the order of offsets.
    pub(crate) segments: Vec<Segment>,
    /// What was among these until a run did not find the files.
    #[serde(default, skip_serializing_if = "Missing::is_empty")]
    pub(crate) missing: Missing,
}

/// Bases and segments whose files are not there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Missing {
    pub(crate) bases: Vec<Base>,
    pub(crate) segments: Vec<Segment>,
    /// Those of the files that no run has ended with an error for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) untold: Vec<String>,
}

impl Missing {
    fn is_empty(&self) -> bool {
        self.bases.is_empty() && self.segments.is_empty()
    }
}

impl Manifest {
    /// That of a store that has nothing.
    pub(crate) fn new() -> Manifest {
        Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            generation: 0,
            written: Moment::default(),
            next: 1,
            running: Some(Vec::new()),
            bases: Vec::new(),
            segments: Vec::new(),
            missing: Missing::default(),
        }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Manifest, String> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let head: Head = serde_json::from_slice(bytes)
            .map_err(|error| format!("{MANIFEST} is none of a backup: {error}"))?;
        if head.format != FORMAT {
            return Err(format!("{MANIFEST} is of another program: {}", head.format));
        }
        if head.version > VERSION {
            return Err(format!(
                "{MANIFEST} has version {}; this program reads up to {VERSION}",
                head.version
            ));
        }
        let manifest: Manifest = serde_json::from_slice(bytes)
            .map_err(|error| format!("{MANIFEST} is damaged: {error}"))?;
        manifest.check().map_err(|problem| format!("{MANIFEST} is damaged: {problem}"))?;
        Ok(manifest)
    }

    /// Names lead nowhere else, offsets go forward, and there is room above each number.
    fn check(&self) -> Result<(), String> {
        let is_plain = |name: &str| {
            let known = |letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter);
            !name.is_empty() && !name.starts_with('.') && name.chars().all(known)
        };
        if let Some(file) = self.all_files().find(|file| !is_plain(&file.name)) {
            return Err(format!("'{}' is no name of a file", file.name));
        }
        let mut names: Vec<&str> = self.all_files().map(|file| file.name.as_str()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        if names.len() < count {
            return Err("it names a file twice".to_owned());
        }
        let last = names.iter().filter_map(|name| number_of(name)).max().unwrap_or(0);
        if self.next <= last {
            return Err(format!("{} is no number of a next file", self.next));
        }
        if let Some(number) = self.numbers().find(|number| *number > LARGEST) {
            return Err(format!("{number} is too large a number"));
        }
        let mut segments = self.segments.iter().chain(&self.missing.segments);
        match segments.find(|segment| segment.to < segment.from.offset) {
            Some(segment) => Err(format!("{} ends before it begins", segment.file.name)),
            None => Ok(()),
        }
    }

    /// All that it counts.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let Missing { bases, segments, .. } = &self.missing;
        let of_bases = self.bases.iter().chain(bases).flat_map(|base| {
            let [imported, taken] = [base.imported, base.taken].map(Option::unwrap_or_default);
            [base.line, base.position.offset, base.time.0, imported.0, taken.0, base.keys]
        });
        let of_segments = self.segments.iter().chain(segments).flat_map(|segment| {
            [segment.line, segment.to, segment.first_time.0, segment.last_time.0]
        });
        let of_files = self.all_files().map(|file| file.bytes);
        [self.generation, self.written.0, self.next]
            .into_iter()
            .chain(of_bases)
            .chain(of_segments)
            .chain(of_files)
    }

    pub(crate) fn format(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("it has nothing that JSON lacks");
        text.push(b'\n');
        text
    }

    /// All files that it names, those too that are missing.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &StoredFile> {
        self.files().chain(self.missing_files())
    }

    /// The files that a restore may count on.
    pub(crate) fn files(&self) -> impl Iterator<Item = &StoredFile> {
        let bases = self.bases.iter().map(|base| &base.file);
        bases.chain(self.segments.iter().map(|segment| &segment.file))
    }

    /// The segments of a line, in their order.
    pub(crate) fn segments_of(&self, line: u64) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(move |segment| segment.line == line)
    }

    /// The bases of a line, in the order of their positions.
    pub(crate) fn bases_of(&self, line: u64) -> Vec<&Base> {
        let mut bases: Vec<_> = self.bases.iter().filter(|base| base.line == line).collect();
        bases.sort_by_key(|base| base.position.offset);
        bases
    }

    /// The lines that have a base, in the order in which they began.
    pub(crate) fn lines(&self) -> Vec<u64> {
        in_order(self.bases.iter().map(|base| base.line))
    }

    /// The bases that it knows, those too that are missing.
    pub(crate) fn known_bases(&self) -> impl Iterator<Item = &Base> {
        self.bases.iter().chain(&self.missing.bases)
    }

    /// The lines of these.
    pub(crate) fn known_lines(&self) -> Vec<u64> {
        in_order(self.known_bases().map(|base| base.line))
    }

    /// Those of them that a server's stream has.
    pub(crate) fn lines_of_servers(&self) -> Vec<u64> {
        let bases = self.known_bases().filter(|base| base.imported.is_none());
        in_order(bases.map(|base| base.line))
    }

    /// The last line, whether it has a base or not; 0 if there is none.
    pub(crate) fn last_line(&self) -> u64 {
        let Missing { bases, segments, .. } = &self.missing;
        let bases = self.bases.iter().chain(bases).map(|base| base.line);
        let segments = self.segments.iter().chain(segments).map(|segment| segment.line);
        bases.chain(segments).max().unwrap_or(0)
    }
}

fn in_order(lines: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut lines: Vec<_> = lines.collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// The number in the name of a file.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    name.split(['-', '.']).nth(1)?.parse().ok()
}

/// The position of a plain RDB file: its sum names a history that no server has. What the file says
/// itself is not unique, as servers number nothing before their first replica comes.
pub(crate) fn position_of_file(sha256: &str) -> Option<Position> {
    let history = HistoryId::parse(sha256.as_bytes().get(..replication::id::DIGITS)?)?;
    Some(Position { history, offset: 0 })
}
