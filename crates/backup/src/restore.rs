//! Writing the data of a restore point: a base as an RDB file, and the stream behind it as an
//! increment of an append-only file, with the manifest that names both.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use replication::stream::Stream;
use resp::client::encode_command;

use rustix::io::Errno;

use crate::digest::Hashed;
use crate::files::{BEGUN, create, make_durable, name_anew, remove, sync_name_of};
use crate::manifest::StoredFile;
use crate::moment::Moment;
use crate::options::{Destination, RestoreOptions};
use crate::place::{Names, Place};
use crate::plan::{Cut, Plan};
use crate::position::Position;
use crate::print::{complain, say};
use crate::segment::{Block, TIMESTAMP};
use crate::storage::{Reading, Source, read_listed};
use crate::take::is_without_effect;
use crate::verify;

/// How far a restore has come.
#[derive(Clone, Copy)]
struct Reached {
    position: Position,
    time: Moment,
}

/// Carries out `dunlin restore`.
pub(crate) fn restore(store: &dyn Source, options: &RestoreOptions) -> Result<(), String> {
    let store = &Reading::begin(store)?;
    let in_store = |problem| format!("{}: {problem}", store.name());
    if let Some(warning) = store.manifest.ahead_of(Moment::now()) {
        complain(&warning);
    }
    let plan = Plan::of(&store.manifest, options.at).map_err(in_store)?;
    match &options.to {
        Destination::Rdb(file) => write_rdb(store, &plan, file),
        Destination::Directory { path, folder, prefix } => {
            write_directory(store, &plan, path, folder, prefix)
        }
    }
}

fn write_rdb(store: &dyn Source, plan: &Plan<'_>, path: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    if fs::symlink_metadata(path).is_ok() {
        return Err(failed(Errno::EXIST.into()));
    }
    verify::check_base(store, &plan.base.file)?;
    // What has the name is whole: a restore that is killed leaves another one, for the next.
    let mut part = path.as_os_str().to_owned();
    part.push(BEGUN);
    let part = Path::new(&part);
    let file = remove(part).and_then(|()| create(part)).map_err(failed)?;
    let named = || {
        make_durable(&file)?;
        name_anew(part, path)?;
        sync_name_of(path)
    };
    let written = copy(store, &plan.base.file, &file).and_then(|()| named().map_err(failed));
    if written.is_err() {
        // What is left of it is of no use to anybody.
        let _ = remove(part);
        return written;
    }
    let base = plan.base;
    say(&format!(
        "{} has {} keys at {}, of {}",
        path.display(),
        base.keys,
        base.position,
        base.time
    ));
    Ok(())
}

/// Copies a file of the store, and compares its sum.
fn copy(store: &dyn Source, file: &StoredFile, to: &File) -> Result<(), String> {
    let mut reader = Hashed::new(read_listed(store, file)?);
    let mut to = to;
    io::copy(&mut reader, &mut to).map_err(|error| format!("{}: {error}", file.name))?;
    let (_, bytes, sha256) = reader.finish();
    verify::compare(file, bytes, &sha256)
}

fn write_directory(
    store: &dyn Source,
    plan: &Plan<'_>,
    path: &Path,
    folder: &str,
    prefix: &str,
) -> Result<(), String> {
    Place::check(path, folder)?;
    verify::check_base(store, &plan.base.file)?;
    plan.segments.iter().try_for_each(|segment| verify::check_segment(store, segment))?;
    let place = Place::open(path, folder, Names::of(prefix))?;
    let reached = write_files(store, plan, &place).and_then(|reached| {
        let finished = place.finish().map(|()| reached);
        finished.map_err(|error| format!("{}: {error}", path.display()))
    });
    let reached = reached.map_err(|problem| format!("{problem}; nothing was restored"))?;
    say(&format!("restored {}, of {}", reached.position, reached.time));
    if let Some(note) = &plan.note {
        say(note);
    }
    say(&format!("a server loads it: dunlin serve --dir {} --appendonly yes", path.display()));
    Ok(())
}

fn write_files(store: &dyn Source, plan: &Plan<'_>, place: &Place) -> Result<Reached, String> {
    let Names { base, increment, manifest } = &place.names;
    let failed = |name: &str| {
        let name = name.to_owned();
        move |error: io::Error| format!("{name}: {error}")
    };
    let file = place.create(base).map_err(failed(base))?;
    copy(store, &plan.base.file, &file)?;
    place.complete(&file).map_err(failed(base))?;
    let file = place.create(increment).map_err(failed(increment))?;
    let mut written = Increment::new(BufWriter::with_capacity(1 << 20, file), plan);
    for segment in &plan.segments {
        written.reached.position.history = segment.from.history;
        // A store may give other bytes than those that were compared before.
        verify::read_segment(store, segment, |block| written.add(block))?;
    }
    let reached = written.end(place).map_err(failed(increment))?;
    let lines = format!("file {base} seq 1 type b\nfile {increment} seq 1 type i\n");
    let write = || {
        let mut file = place.create(manifest)?;
        file.write_all(lines.as_bytes())?;
        place.complete(&file)
    };
    write().map_err(failed(manifest))?;
    Ok(reached)
}

/// The increment while it is written.
struct Increment {
    file: BufWriter<File>,
    cut: Cut,
    stream: Stream,
    /// The stream before this offset is in the base.
    begin: u64,
    reached: Reached,
    second: Option<u64>,
    is_over: bool,
    problem: Option<io::Error>,
}

impl Increment {
    fn new(file: BufWriter<File>, plan: &Plan<'_>) -> Increment {
        let base = plan.base;
        let mut increment = Increment {
            file,
            cut: plan.cut,
            stream: Stream::new(plan.segments.first().map_or(0, |first| first.from.offset)),
            begin: base.position.offset,
            reached: Reached { position: base.position, time: base.time },
            second: None,
            is_over: false,
            problem: None,
        };
        if let Some(selected) = base.selected {
            let mut select = Vec::new();
            encode_command(["SELECT", &selected.to_string()].iter(), &mut select);
            increment.write(&select);
        }
        increment
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.problem.is_none() {
            self.problem = self.file.write_all(bytes).err();
        }
    }

    /// Adds what a block has up to the cut.
    fn add(&mut self, block: &Block) -> Result<(), String> {
        let is_late = matches!(self.cut, Cut::Time(time) if block.time > time);
        if self.is_over || is_late {
            self.is_over = true;
            return Ok(());
        }
        let mut stream = std::mem::replace(&mut self.stream, Stream::new(0));
        stream.push(&block.bytes);
        let added = self.add_units(&mut stream, block);
        self.stream = stream;
        added
    }

    fn add_units(&mut self, stream: &mut Stream, block: &Block) -> Result<(), String> {
        loop {
            let units = stream.next_units(1024).map_err(|error| error.to_string())?;
            if units.is_empty() {
                break;
            }
            for unit in units.iter() {
                if matches!(self.cut, Cut::Offset(offset) if unit.end > offset) {
                    self.is_over = true;
                    return Ok(());
                }
                if unit.end <= self.begin {
                    continue;
                }
                if unit.begin() < self.begin {
                    return Err(format!("the base at {} is within a transaction", self.begin));
                }
                (self.reached.position.offset, self.reached.time) = (unit.end, block.time);
                if is_without_effect(&unit) {
                    continue;
                }
                let second = block.time.0 / 1000;
                if self.second.replace(second) != Some(second) {
                    self.write(format!("{TIMESTAMP}{second}\r\n").as_bytes());
                }
                self.write(unit.bytes());
            }
        }
        match stream.waiting() {
            0 => Ok(()),
            _ => Err(format!("the block at {} ends within a command", block.offset)),
        }
    }

    /// Completes the file, and returns what it reaches.
    fn end(mut self, place: &Place) -> io::Result<Reached> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        self.file.flush()?;
        place.complete(self.file.get_ref())?;
        Ok(self.reached)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io::{Cursor, Read};
    use std::sync::Mutex;

    use super::*;
    use crate::digest::sha256;
    use crate::manifest::{Base, MANIFEST, Manifest, Segment};
    use crate::segment::Growing;

    const EMPTY_FILE: &[u8] = b"REDIS0011\xff\0\0\0\0\0\0\0\0";

    /// Gives a file as it was when it is read for the first time, and in another way from then on.
    struct Fickle {
        files: HashMap<String, Vec<u8>>,
        changed: &'static str,
        read_before: Mutex<bool>,
    }

    impl Source for Fickle {
        fn name(&self) -> String {
            "fickle".to_owned()
        }

        fn read(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
            let Some(mut bytes) = self.files.get(file).cloned() else { return Ok(None) };
            if file == self.changed
                && std::mem::replace(&mut self.read_before.lock().unwrap(), true)
            {
                let text = String::from_utf8(bytes).unwrap();
                bytes = text.replace("\r\n100\r\n", "\r\n999\r\n").into_bytes();
            }
            Ok(Some(Box::new(Cursor::new(bytes))))
        }
    }

    /// A base, and two segments with a command each.
    fn files() -> HashMap<String, Vec<u8>> {
        let mut files = HashMap::from([("base-00000001.rdb".to_owned(), EMPTY_FILE.to_vec())]);
        let listed = |name: &str, bytes: &[u8]| StoredFile {
            name: name.to_owned(),
            bytes: bytes.len() as u64,
            sha256: sha256(bytes),
        };
        let mut position = Position::parse(&format!("{}:0", "a".repeat(40))).unwrap();
        let (time, server) = (Moment(1), String::new());
        let mut manifest = Manifest::new();
        manifest.next = 4;
        let file = listed("base-00000001.rdb", EMPTY_FILE);
        let (selected, imported, taken) = (Some(0), None, None);
        manifest.bases.push(Base {
            file,
            line: 1,
            position,
            time,
            selected,
            keys: 0,
            server,
            imported,
            taken,
        });
        for name in ["stream-00000002.aof", "stream-00000003.aof"] {
            let mut command = Vec::new();
            encode_command(["SET", "money", "100"].iter(), &mut command);
            let mut growing = Growing::new(1, position, time);
            growing.add(&command, time);
            let bytes = growing.file().to_vec();
            let (file, to) = (listed(name, &bytes), growing.to);
            let (first_time, last_time) = (time, time);
            manifest.segments.push(Segment {
                file,
                line: 1,
                from: position,
                to,
                first_time,
                last_time,
            });
            position.offset = to;
            files.insert(name.to_owned(), bytes);
        }
        files.insert(MANIFEST.to_owned(), manifest.format());
        files
    }

    #[test]
    fn what_is_written_was_compared_as_well() {
        for (changed, is_good) in [("", true), ("stream-00000002.aof", false)] {
            let store = Fickle { files: files(), changed, read_before: Mutex::new(false) };
            let work = tempfile::tempdir().unwrap();
            let path = work.path().join("to");
            let words = ["--from", "store", "--to", path.to_str().unwrap()];
            let options = RestoreOptions::parse(&words.map(str::to_owned)).unwrap();
            let restored = restore(&store, &options);
            assert_eq!((restored.is_ok(), path.exists()), (is_good, is_good), "{restored:?}");
        }
    }
}
